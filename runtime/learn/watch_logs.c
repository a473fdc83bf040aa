/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Logs of a run, in its folder of artifacts: a file of numbers for each epoch and metric, as Burn lays them out; the
 * means of all epochs in one table; what happened when; and TensorBoard's events. In: what a learner tells. A run that
 * goes on where another stopped keeps what that one logged of batches and epochs that are not learnt again. */
#define _POSIX_C_SOURCE 200809L
#include "watch_own.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { EVENTS_OF_EPOCH = 1000 };          /* batches of an epoch that TensorBoard gets to see */

typedef struct Logs {
    const burn_watcher *tell;
    int has_failed, resumes;
    char *folder;
    FILE *experiment, *history, *events[2];
    int is_restarted[2];
    /* the epoch that goes on: a file for each figure that has a number for batches */
    burn_split split;
    int64_t epoch, items;
    int file_count;
    FILE **files;
} Logs;

static void fail(Logs *l, const char *what)
{
    char *text = watch_format("%s/%s: %s; logs are not complete", l->folder, what, strerror(errno));
    if (text && !l->has_failed) watch_say(l->tell, BURN_WARNING, text);
    l->has_failed = 1;
    free(text);
}

static FILE *open_file(Logs *l, const char *name, const char *mode)
{
    char *path = watch_format("%s/%s", l->folder, name);
    FILE *to = path ? fopen(path, mode) : NULL;
    free(path);
    if (!to) fail(l, name);
    return to;
}

/* Writes out what is buffered: a log is of use while the run goes on, and when it is killed. */
static void flush(Logs *l, FILE *to, const char *what)
{
    if (to && (fflush(to) || ferror(to))) {
        fail(l, what);
        clearerr(to);
    }
}

static void note(Logs *l, const char *level, const char *text)
{
    char at[32];
    time_t now = time(NULL);
    struct tm utc;
    if (!l->experiment) return;
    strftime(at, sizeof at, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    fprintf(l->experiment, "%s %-5s %s\n", at, level, text);
    flush(l, l->experiment, "experiment.log");
}

static void note_made(Logs *l, const char *level, char *text)
{
    if (text) note(l, level, text);
    free(text);
}

/* history.csv, without the epochs that are learnt again. */
static void open_history(Logs *l, int64_t epochs)
{
    char line[1024], *kept = malloc(1);
    size_t bytes = 0;
    FILE *old = epochs > 0 ? open_file(l, "history.csv", "r") : NULL;
    while (old && kept && fgets(line, sizeof line, old)) {
        int64_t epoch = strtoll(line, NULL, 10);
        char *more = epoch >= 1 && epoch <= epochs ? realloc(kept, bytes + strlen(line) + 1) : NULL;
        if (!more) continue;
        kept = more;
        memcpy(kept + bytes, line, strlen(line));
        bytes += strlen(line);
    }
    if (old) fclose(old);
    l->history = open_file(l, "history.csv", "w");
    if (l->history) {
        fputs("epoch,split,metric,unit,better,value\n", l->history);
        if (kept) fwrite(kept, 1, bytes, l->history);
        flush(l, l->history, "history.csv");
    }
    free(kept);
}

static void open_events(Logs *l, burn_split split)
{
    char *folder = watch_format("%s/tensorboard/%s", l->folder, watch_split(split));
    l->events[split] = folder ? watch_events_open(folder) : NULL;
    free(folder);
    if (!l->events[split]) fail(l, "tensorboard");
}

static void logs_begin(void *own, const burn_task *task)
{
    Logs *l = own;
    if (!task->artifacts) return;
    l->folder = watch_copy(task->artifacts);
    if (!l->folder) return;
    if (!watch_make_folder(l->folder)) fail(l, "");
    l->resumes = task->resumed_epoch > 0;
    l->experiment = open_file(l, "experiment.log", l->resumes ? "a" : "w");
    open_history(l, task->resumed_epoch);
    open_events(l, BURN_TRAINING);
    if (task->valid) open_events(l, BURN_VALIDATION);
    note_made(l, "info", watch_format("%s: %lld parameters, %lld items to learn from, %lld to validate, batches of "
                                      "%lld, %lld epochs, %lld of them done before", task->name,
                                      (long long)task->parameters, (long long)task->train_items,
                                      (long long)task->valid_items, (long long)task->batch, (long long)task->epochs,
                                      (long long)task->resumed_epoch));
    for (int i = 0; i < task->setting_count; i++)
        note_made(l, "info", watch_format("%s: %s", task->settings[i][0], task->settings[i][1]));
}

static void close_epoch(Logs *l)
{
    for (int i = 0; i < l->file_count; i++)
        if (l->files[i] && fclose(l->files[i])) fail(l, "metrics");
    free(l->files);
    l->files = NULL;
    l->file_count = 0;
}

/* The log of a figure, behind the lines of so many batches, where an earlier run wrote them. */
static FILE *open_log(Logs *l, const burn_progress *p, const char *name, int64_t batches)
{
    char line[128], *path = watch_log_path(l->folder, p->split, p->epoch, name);
    FILE *to = path && batches > 0 ? fopen(path, "r+") : NULL;
    while (to && batches-- > 0 && fgets(line, sizeof line, to)) continue;
    if (to && (fflush(to) || fseek(to, 0, SEEK_CUR) || ftruncate(fileno(to), ftell(to)))) fail(l, name);
    if (path && !to) to = fopen(path, "w");
    free(path);
    if (!to) fail(l, name);
    return to;
}

/* before: batches that an earlier run logged. */
static void open_epoch(Logs *l, const burn_progress *p, int64_t before)
{
    if (p->epoch == l->epoch && p->split == l->split && l->files) return;
    close_epoch(l);
    char *folder = watch_format("%s/%s/epoch-%lld", l->folder, watch_split(p->split), (long long)p->epoch);
    if (!folder || !watch_make_folder(folder)) fail(l, "metrics");
    free(folder);
    l->files = calloc((size_t)p->figure_count, sizeof *l->files);
    l->file_count = l->files ? p->figure_count : 0;
    for (int i = 0; i < l->file_count; i++) l->files[i] = open_log(l, p, p->figures[i].name, before);
    l->epoch = p->epoch;
    l->split = p->split;
    l->items = p->batch > 0 ? p->items * before / p->batch : 0;
}

static void scalar(Logs *l, const burn_progress *p, const char *before, const char *name, double value)
{
    FILE *to = l->events[p->split];
    char *tag = watch_format("%s%s", before, name);
    if (to && l->resumes && !l->is_restarted[p->split]) watch_events_restart(to, p->step);
    l->is_restarted[p->split] = 1;
    if (to && tag) watch_events_scalar(to, tag, p->step, value);
    free(tag);
}

/* As Rust reads numbers, which Burn's files are for. */
static void write_value(FILE *to, double value)
{
    if (isnan(value)) fputs("NaN", to);
    else fprintf(to, "%.9g", value);
}

static void logs_batch(void *own, const burn_progress *p)
{
    Logs *l = own;
    if (!l->folder) return;
    open_epoch(l, p, p->batch - 1);
    int64_t every = p->batches / EVENTS_OF_EPOCH + 1;
    for (int i = 0; i < p->figure_count && i < l->file_count; i++) {
        const burn_figure *f = &p->figures[i];
        if (!l->files[i] || (f->metric && isnan(f->now))) continue;
        write_value(l->files[i], f->now);
        fprintf(l->files[i], ",%lld\n", (long long)(p->items - l->items));
        if (p->split == BURN_TRAINING && p->batch % every == 0) scalar(l, p, "batch/", f->name, f->now);
    }
    l->items = p->items;
}

static void logs_epoch(void *own, const burn_progress *p)
{
    Logs *l = own;
    if (!l->folder) return;
    open_epoch(l, p, p->batch);          /* of which a run that goes on may do none */
    char *text = watch_format("epoch %lld/%lld %s:", (long long)p->epoch, (long long)p->epochs, watch_split(p->split));
    for (int i = 0; i < p->figure_count; i++) {
        const burn_figure *f = &p->figures[i];
        if (i < l->file_count && l->files[i] && f->metric && isnan(f->now)) {
            write_value(l->files[i], f->mean);
            putc('\n', l->files[i]);
        }
        scalar(l, p, "", f->name, f->mean);
        if (l->history) {
            fprintf(l->history, "%lld,%s,", (long long)p->epoch, watch_split(p->split));
            watch_csv_text(l->history, f->name);
            putc(',', l->history);
            watch_csv_text(l->history, f->unit ? f->unit : "");
            fprintf(l->history, ",%d,%.17g\n", (int)f->better, f->mean);
        }
        char *more = text ? watch_format("%s %s %s", text, f->name, watch_number(f->mean).text) : NULL;
        free(text);
        text = more;
    }
    char *whole = text ? watch_format("%s; %.0f %% computing", text, 100 * p->computing) : NULL;
    free(text);
    note_made(l, "info", whole);
    flush(l, l->history, "history.csv");
    flush(l, l->events[p->split], "tensorboard");
    close_epoch(l);
}

static void logs_checkpoint(void *own, const char *path, int64_t epoch, int best)
{
    Logs *l = own;
    for (int i = 0; i < l->file_count; i++) flush(l, l->files[i], "metrics");    /* who resumes there finds its lines */
    note_made(l, "info", watch_format("epoch %lld is kept in %s%s", (long long)epoch, path, best ? ", the best" : ""));
}

static void logs_say(void *own, burn_level level, const char *text)
{
    note(own, level == BURN_NOTE ? "info" : level == BURN_WARNING ? "warn" : "error", text);
}

static void logs_finish(void *own, const burn_outcome *outcome)
{
    Logs *l = own;
    note_made(l, outcome->error ? "error" : "info",
              watch_format("%s; %lld epochs, %lld steps, %.1f s", outcome->reason ? outcome->reason : "done",
                           (long long)outcome->epochs, (long long)outcome->steps, outcome->seconds));
    close_epoch(l);
    for (int i = 0; i < 2; i++) flush(l, l->events[i], "tensorboard");
}

static void logs_close(void *own)
{
    Logs *l = own;
    FILE *files[] = { l->experiment, l->history, l->events[0], l->events[1] };
    close_epoch(l);
    for (int i = 0; i < 4; i++)
        if (files[i]) fclose(files[i]);
    free(l->folder);
    free(l);
}

int burn_watch_logs(const burn_watcher *tell, burn_watcher *watcher)
{
    Logs *l = calloc(1, sizeof *l);
    if (!l) return BURN_ENOMEM;
    l->tell = tell;
    *watcher = (burn_watcher){ .own = l, .begin = logs_begin, .batch = logs_batch, .epoch = logs_epoch,
                               .checkpoint = logs_checkpoint, .say = logs_say, .finish = logs_finish,
                               .close = logs_close };
    return BURN_OK;
}
