/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Lines about a run: one that is written anew in place while an epoch goes on, one that stays for each epoch, and a
 * table at the end. In: what a learner tells. Out: text on a terminal, or in a file: there nothing is written twice. */
#include "watch_own.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 1024 };
static const double REWRITTEN = 0.1, REPEATED = 30;   /* seconds from one progress line to the next */

typedef struct Lines {
    FILE *to;
    int quiet, colours, has_valid;
    int is_shown;                         /* a progress line stands at the cursor */
    double written, began;                /* when: the last progress line, this split */
    int64_t items_before;                 /* of this split, when it began to be timed */
    double epoch_began;
    burn_split split;
    int64_t epoch;                        /* that are now learnt */
    char done[LINE];                      /* of an epoch whose validation is not done yet */
    WatchHistory history;
    char *name;
} Lines;

typedef struct Text { char text[LINE]; size_t used; } Text;

static void add(Text *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int bytes = vsnprintf(t->text + t->used, LINE - t->used, format, args);
    va_end(args);
    if (bytes > 0) t->used = t->used + (size_t)bytes < LINE ? t->used + (size_t)bytes : LINE - 1;
}

static void clear_line(Lines *l)
{
    if (l->is_shown) fputs("\r\033[K", l->to);
    l->is_shown = 0;
}

static void lines_begin(void *own, const burn_task *task)
{
    Lines *l = own;
    l->has_valid = task->valid != NULL;
    l->name = watch_copy(task->name);
    if (task->artifacts && task->resumed_epoch > 0)
        watch_history_load(&l->history, task->artifacts, task->resumed_epoch);
    if (l->quiet) return;
    fprintf(l->to, "%s: %lld numbers learn from %lld items, batches of %lld, %lld epochs", l->name ? l->name : "",
            (long long)task->parameters, (long long)task->train_items, (long long)task->batch,
            (long long)task->epochs);
    if (task->valid) fprintf(l->to, "; %lld items validate", (long long)task->valid_items);
    if (task->resumed_epoch > 0) fprintf(l->to, "; %lld epochs were done before", (long long)task->resumed_epoch);
    putc('\n', l->to);
    fflush(l->to);
}

static void add_figures(Text *t, const burn_progress *p)
{
    for (int i = 0; i < p->figure_count; i++) {
        const burn_figure *f = &p->figures[i];
        if (isnan(f->mean) && f->metric) continue;
        int has_unit = f->unit && *f->unit;
        add(t, "  %s %s%s%s", f->name, watch_number(f->mean).text, has_unit ? " " : "", has_unit ? f->unit : "");
    }
}

static void add_bar(Text *t, const burn_progress *p)
{
    enum { CELLS = 20 };
    int64_t full = p->batches > 0 ? p->batch * CELLS / p->batches : 0;
    add(t, " [");
    for (int64_t i = 0; i < CELLS; i++) add(t, "%c", i < full ? '=' : i == full ? '>' : ' ');
    add(t, "]");
}

static void lines_batch(void *own, const burn_progress *p)
{
    Lines *l = own;
    watch_history_batch(&l->history, p);
    double now = watch_clock();
    if (p->epoch != l->epoch || p->split != l->split) {
        if (p->epoch != l->epoch) l->epoch_began = now;
        l->epoch = p->epoch;
        l->split = p->split;
        l->began = now;
        l->items_before = p->items;
    }
    if (l->quiet || now - l->written < REWRITTEN) return;
    int rows, columns = watch_terminal(l->to, &rows);
    if (!columns && now - l->written < REPEATED) return;
    Text t = { .used = 0 };
    add(&t, "epoch %lld/%lld %s", (long long)p->epoch, (long long)p->epochs, watch_split(p->split));
    if (columns >= 60) add_bar(&t, p);
    add(&t, " %lld/%lld", (long long)p->batch, (long long)p->batches);
    add(&t, "  %s left", watch_time(p->seconds_left).text);
    add_figures(&t, p);
    if (p->items > l->items_before && now > l->began)
        add(&t, "  %s items/s", watch_number((double)(p->items - l->items_before) / (now - l->began)).text);
    if (p->skipped) add(&t, "  %lld skipped", (long long)p->skipped);
    if (columns) watch_cut(t.text, columns - 1);
    clear_line(l);
    fprintf(l->to, columns ? "%s" : "%s\n", t.text);
    fflush(l->to);
    l->is_shown = columns != 0;
    l->written = now;
}

static void write_epoch(Lines *l, const burn_progress *p, int is_best)
{
    clear_line(l);
    double seconds = watch_clock() - l->epoch_began;
    if (is_best && l->colours) fputs("\033[1m", l->to);
    fprintf(l->to, "epoch %lld/%lld%s", (long long)p->epoch, (long long)p->epochs, l->done);
    if (seconds < 60) fprintf(l->to, "  %.1f s", seconds);
    else fprintf(l->to, "  %s", watch_time(seconds).text);
    if (p->epoch < p->epochs) fprintf(l->to, ", %s left", watch_time(p->seconds_left).text);
    fprintf(l->to, "%s%s\n", is_best ? "  best" : "", is_best && l->colours ? "\033[0m" : "");
    fflush(l->to);
    *l->done = 0;
}

static void lines_epoch(void *own, const burn_progress *p)
{
    Lines *l = own;
    watch_history_epoch(&l->history, p);
    Text t = { .used = 0 };
    if (*l->done && p->split == BURN_VALIDATION) add(&t, "%s", l->done);
    add(&t, "  %s", watch_split(p->split));
    add_figures(&t, p);
    if (p->skipped) add(&t, "  %lld skipped", (long long)p->skipped);
    memcpy(l->done, t.text, sizeof l->done);
    if (l->quiet || (l->has_valid && p->split == BURN_TRAINING)) return;
    write_epoch(l, p, p->figure_count > 0 && p->figures[0].best_epoch == p->epoch);
    l->written = watch_clock();
}

static void lines_say(void *own, burn_level level, const char *text)
{
    Lines *l = own;
    if (l->quiet && level == BURN_NOTE) return;
    const char *what = level == BURN_NOTE ? "" : level == BURN_WARNING ? "warning: " : "error: ";
    const char *colour = level == BURN_NOTE ? "" : level == BURN_WARNING ? "\033[33m" : "\033[31m";
    clear_line(l);
    if (l->colours && *colour) fprintf(l->to, "%s%s\033[0m%s\n", colour, what, text);
    else fprintf(l->to, "%s%s\n", what, text);
    fflush(l->to);
}

static void write_row(FILE *to, const WatchCurve *c, int width)
{
    const WatchPoint *best = watch_curve_best(c);
    fprintf(to, "| %s | %-*s | %-8s | %-8s | ", watch_split(c->split), width, c->name,
            watch_number(c->epochs[0].y).text, watch_number(c->epochs[c->epoch_count - 1].y).text);
    if (best) fprintf(to, "%-8s | %5.0f |\n", watch_number(best->y).text, best->x);
    else fprintf(to, "-        |     - |\n");
}

void watch_summary(FILE *to, const WatchHistory *h, const char *name, const burn_outcome *outcome)
{
    int width = 6, rows = 0;
    fprintf(to, "\n%s: %s after %lld epochs, %lld steps, %s\n", name ? name : "",
            outcome->reason ? outcome->reason : "done", (long long)outcome->epochs, (long long)outcome->steps,
            watch_time(outcome->seconds).text);
    for (int i = 0; i < h->count; i++) {
        const WatchCurve *c = h->curves[i];
        if (c->epoch_count && (int)strlen(c->name) > width) width = (int)strlen(c->name);
        rows += c->epoch_count > 0;
    }
    if (!rows) return;
    fprintf(to, "| Split | %-*s | First    | Last     | Best     | Epoch |\n|-------|", width, "Metric");
    for (int i = 0; i < width + 2; i++) putc('-', to);
    fputs("|----------|----------|----------|-------|\n", to);
    for (int split = BURN_TRAINING; split <= BURN_VALIDATION; split++)
        for (int i = 0; i < h->count; i++)
            if ((int)h->curves[i]->split == split && h->curves[i]->epoch_count) write_row(to, h->curves[i], width);
}

static void lines_finish(void *own, const burn_outcome *outcome)
{
    Lines *l = own;
    clear_line(l);
    if (l->quiet) return;
    watch_summary(l->to, &l->history, l->name, outcome);
    fflush(l->to);
}

static void lines_close(void *own)
{
    Lines *l = own;
    watch_history_free(&l->history);
    free(l->name);
    free(l);
}

int burn_watch_lines(FILE *to, int quiet, burn_watcher *watcher)
{
    Lines *l = calloc(1, sizeof *l);
    int rows;
    if (!l) return BURN_ENOMEM;
    l->to = to ? to : stderr;
    l->quiet = quiet;
    l->colours = watch_terminal(l->to, &rows) && watch_colours();
    l->written = watch_clock();
    *watcher = (burn_watcher){ .own = l, .begin = lines_begin, .batch = lines_batch, .epoch = lines_epoch,
                               .say = lines_say, .finish = lines_finish, .close = lines_close };
    return BURN_OK;
}
