/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A report of a run: one file of HTML that needs nothing else. In: what a learner tells. Out: report.html in the folder
 * of artifacts, new after each epoch, as a whole or not at all.
 *
 * The page (watch_page.html) draws what stands in it as JSON, an element for each run; so a report of several runs is
 * the page with the elements of several reports. */
#define _POSIX_C_SOURCE 200809L
#include "data_own.h"
#include "watch_own.h"
#include "watch_worst.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CLASSES = 1000 };                                         /* of a confusion matrix that is shown */
static const char BEGIN[] = "<script class=\"run\" type=\"application/json\">", END[] = "</script>";
static const char RUNS[] = "<!--runs-->\n";                    /* where they stand in the page */

typedef struct Report {
    const burn_watcher *tell;
    int has_failed;
    char *folder, *name, *state;
    WatchHistory history;
    Worst worst;
    int setting_count;
    char *(*settings)[2];
    int64_t epoch, epochs, steps, worst_epoch;
    double seconds;
    int64_t classes, *counts;
} Report;

/* ---- JSON */

/* Bytes of the UTF-8 character at `text`, 0 where there is none. */
static int character(const unsigned char *text)
{
    int n = *text < 0x80 ? 1 : *text >= 0xc2 && *text < 0xe0 ? 2 : *text >= 0xe0 && *text < 0xf0 ? 3
            : *text >= 0xf0 && *text < 0xf5 ? 4 : 0;
    for (int i = 1; i < n; i++)
        if ((text[i] & 0xc0) != 0x80) return 0;
    return n;
}

/* A string, in which no "<" ends the element that it stands in. */
static void put_text(FILE *to, const char *text)
{
    putc('"', to);
    for (const unsigned char *c = (const unsigned char *)(text ? text : ""); *c;) {
        int n = character(c);
        if (!n) fputs("\\ufffd", to);
        else if (*c < ' ' || *c == '<' || *c == '"' || *c == '\\' || *c == 127) fprintf(to, "\\u%04x", *c);
        else fwrite(c, 1, (size_t)n, to);
        c += n ? n : 1;
    }
    putc('"', to);
}

static void put_number(FILE *to, double value)
{
    if (isfinite(value)) fprintf(to, "%.7g", value);
    else fputs("null", to);
}

static void put_points(FILE *to, const char *name, const WatchPoint *points, int64_t count)
{
    fprintf(to, ",\"%s\":[", name);
    for (int64_t i = 0; i < count; i++) {
        fputs(i ? ",[" : "[", to);
        put_number(to, points[i].x);
        putc(',', to);
        put_number(to, points[i].y);
        putc(']', to);
    }
    putc(']', to);
}

static void put_curves(FILE *to, const WatchHistory *h)
{
    fputs(",\n\"curves\":[", to);
    for (int i = 0; i < h->count; i++) {
        const WatchCurve *c = h->curves[i];
        fputs(i ? ",\n{\"name\":" : "\n{\"name\":", to);
        put_text(to, c->name);
        fputs(",\"unit\":", to);
        put_text(to, c->unit);
        fprintf(to, ",\"better\":%d,\"split\":\"%s\"", (int)c->better, watch_split(c->split));
        put_points(to, "epochs", c->epochs, c->epoch_count);
        put_points(to, "batches", c->whole, c->whole_count);
        putc('}', to);
    }
    putc(']', to);
}

static void put_class(FILE *to, const Report *r, int64_t number)
{
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)number);
    const char *name = worst_class(&r->worst, number);
    put_text(to, name ? name : text);
}

static void put_confusion(FILE *to, const Report *r)
{
    if (!r->counts) return;
    fputs(",\n\"confusion\":{\"classes\":[", to);
    for (int64_t i = 0; i < r->classes; i++) {
        if (i) putc(',', to);
        put_class(to, r, i);
    }
    fputs("],\"counts\":[", to);
    for (int64_t i = 0; i < r->classes * r->classes; i++)
        fprintf(to, "%s%lld", i % r->classes ? "," : i ? "],[" : "[", (long long)r->counts[i]);
    fputs("]]}", to);
}

static void put_worst(FILE *to, const Report *r)
{
    fputs(",\n\"worst\":[", to);
    for (int i = 0; i < r->worst.count; i++) {
        const WorstItem *w = &r->worst.items[i];
        const char *path = burn_data_path(r->worst.data, w->item);
        char *image = worst_image(&r->worst, w), *text = image ? NULL : worst_text(&r->worst, w);
        fprintf(to, "%s\n{\"item\":%lld,\"loss\":", i ? "," : "", (long long)w->item);
        put_number(to, w->loss);
        fputs(",\"sure\":", to);
        put_number(to, w->sure);
        fputs(",\"wanted\":", to);
        if (w->wanted < 0) put_text(to, watch_number((double)w->wanted_value).text);
        else put_class(to, r, w->wanted);
        fputs(",\"predicted\":", to);
        if (w->wanted < 0) put_text(to, watch_number((double)w->predicted_value).text);
        else put_class(to, r, w->predicted);
        fputs(",\"file\":", to);
        put_text(to, path && strrchr(path, '/') ? strrchr(path, '/') + 1 : path);
        fputs(",\"image\":", to);
        put_text(to, image);
        fputs(",\"text\":", to);
        put_text(to, text);
        putc('}', to);
        free(image);
        free(text);
    }
    putc(']', to);
}

static void put_run(FILE *to, const Report *r)
{
    const char *slash = strrchr(r->folder, '/');
    fputs(BEGIN, to);
    fputs("\n{\"name\":", to);
    put_text(to, r->name);
    fputs(",\"label\":", to);
    put_text(to, slash && slash[1] ? slash + 1 : r->folder);
    fputs(",\"state\":", to);
    put_text(to, r->state ? r->state : "learning");
    fprintf(to, ",\"ended\":%s", r->state ? "true" : "false");
    fprintf(to, ",\"epoch\":%lld,\"epochs\":%lld,\"steps\":%lld,\"seconds\":%.3f,\n\"settings\":[", (long long)r->epoch,
            (long long)r->epochs, (long long)r->steps, r->seconds);
    for (int i = 0; i < r->setting_count; i++) {
        fputs(i ? ",[" : "[", to);
        put_text(to, r->settings[i][0]);
        putc(',', to);
        put_text(to, r->settings[i][1]);
        putc(']', to);
    }
    putc(']', to);
    put_curves(to, &r->history);
    put_confusion(to, r);
    put_worst(to, r);
    fprintf(to, "}\n%s\n", END);
}

/* ---- files */

/* Opens PATH.tmp, with what comes before the runs. */
static FILE *open_page(const char *path, char **temporary)
{
    const char *page = watch_page("report"), *at = strstr(page, RUNS);
    *temporary = watch_format("%s.tmp", path);
    FILE *to = *temporary ? fopen(*temporary, "w") : NULL;
    if (to) fwrite(page, 1, (size_t)(at - page), to);
    return to;
}

/* The rest of the page; then the file takes the place of PATH. 0 where that fails, with errno. */
static int close_page(FILE *to, const char *path, char *temporary)
{
    fputs(strstr(watch_page("report"), RUNS) + sizeof RUNS - 1, to);
    int ok = !fflush(to) && !ferror(to);
    ok = !fclose(to) && ok && !rename(temporary, path);
    if (!ok) {
        int error = errno;
        unlink(temporary);
        errno = error;
    }
    return ok;
}

static void write_report(Report *r)
{
    char *temporary = NULL, *path = watch_format("%s/report.html", r->folder);
    FILE *to = path ? open_page(path, &temporary) : NULL;
    if (to) put_run(to, r);
    int ok = to && close_page(to, path, temporary);
    if (!ok && !r->has_failed) {
        char *text = watch_format("%s/report.html: %s; there is no new report", r->folder, strerror(errno));
        if (text) watch_say(r->tell, BURN_WARNING, text);
        free(text);
    }
    r->has_failed |= !ok;
    free(temporary);
    free(path);
}

/* ---- what a learner tells */

static void report_begin(void *own, const burn_task *task)
{
    Report *r = own;
    if (!task->artifacts) return;
    r->folder = watch_copy(task->artifacts);
    r->name = watch_copy(task->name);
    r->epochs = task->epochs;
    r->epoch = task->resumed_epoch;
    r->settings = calloc((size_t)task->setting_count + 1, sizeof *r->settings);
    for (int i = 0; r->settings && i < task->setting_count; i++) {
        r->settings[i][0] = watch_copy(task->settings[i][0]);
        r->settings[i][1] = watch_copy(task->settings[i][1]);
        r->setting_count++;
    }
    worst_open(&r->worst, task->valid);
    if (r->folder && task->resumed_epoch > 0) watch_history_load(&r->history, r->folder, task->resumed_epoch);
    if (r->folder && !watch_make_folder(r->folder)) write_report(r);     /* which says so */
}

static void report_batch(void *own, const burn_progress *p)
{
    Report *r = own;
    if (!r->folder) return;
    watch_history_batch(&r->history, p);
    r->steps = p->step;
    r->seconds = p->seconds;
}

static void report_seen(void *own, const burn_seen *seen)
{
    Report *r = own;
    if (!r->folder) return;
    if (seen->batch->epoch != r->worst_epoch || seen->batch->number == 0) worst_forget(&r->worst);
    r->worst_epoch = seen->batch->epoch;
    worst_see(&r->worst, seen);
}

static void keep_confusion(Report *r, const burn_progress *p)
{
    for (int i = 0; i < p->figure_count; i++) {
        int64_t n = 0;
        const int64_t *counts = burn_metric_confusion(p->figures[i].metric, &n);
        if (!counts || n < 2 || n > CLASSES) continue;
        int64_t *copy = realloc(r->counts, (size_t)(n * n) * sizeof *copy);
        if (!copy) return;
        r->counts = memcpy(copy, counts, (size_t)(n * n) * sizeof *copy);
        r->classes = n;
        return;
    }
}

static void report_epoch(void *own, const burn_progress *p)
{
    Report *r = own;
    if (!r->folder) return;
    watch_history_epoch(&r->history, p);
    r->epoch = p->epoch;
    r->steps = p->step;
    r->seconds = p->seconds;
    if (p->split == BURN_VALIDATION) keep_confusion(r, p);
    if (p->split == BURN_VALIDATION || !r->worst.data) write_report(r);
}

static void report_finish(void *own, const burn_outcome *outcome)
{
    Report *r = own;
    if (!r->folder) return;
    r->state = watch_copy(outcome->reason ? outcome->reason : "done");
    r->seconds = outcome->seconds;
    r->steps = outcome->steps;
    write_report(r);
    worst_close(&r->worst);
}

static void report_close(void *own)
{
    Report *r = own;
    worst_close(&r->worst);
    watch_history_free(&r->history);
    for (int i = 0; i < r->setting_count; i++) {
        free(r->settings[i][0]);
        free(r->settings[i][1]);
    }
    free(r->settings);
    free(r->counts);
    free(r->folder);
    free(r->name);
    free(r->state);
    free(r);
}

int burn_watch_report(const burn_watcher *tell, burn_watcher *watcher)
{
    Report *r = calloc(1, sizeof *r);
    if (!r) return BURN_ENOMEM;
    r->tell = tell;
    r->worst_epoch = -1;
    *watcher = (burn_watcher){ .own = r, .begin = report_begin, .batch = report_batch, .seen = report_seen,
                               .epoch = report_epoch, .finish = report_finish, .close = report_close };
    return BURN_OK;
}

/* ---- several runs */

/* Copies the elements of a report's runs; how many there are. */
static int copy_runs(FILE *to, const char *text)
{
    int runs = 0;
    for (const char *at = text; (at = strstr(at, BEGIN)) != NULL; runs++) {
        const char *end = strstr(at, END);
        if (!end) break;
        end += sizeof END - 1;
        fwrite(at, 1, (size_t)(end - at), to);
        putc('\n', to);
        at = end;
    }
    return runs;
}

int burn_report_join(int n, const char *const *reports, const char *path, burn_said *said)
{
    char *temporary = NULL;
    FILE *to = open_page(path, &temporary);
    int error = to ? BURN_OK : data_said(said, BURN_EIO, "%s: %s", path, strerror(errno));
    for (int i = 0; !error && i < n; i++) {
        size_t bytes;
        char *text = (char *)data_read(reports[i], &bytes, said);
        if (!text) error = BURN_EIO;
        else if (!copy_runs(to, text)) error = data_said(said, BURN_EFORMAT, "%s: is no report of a run", reports[i]);
        free(text);
    }
    if (to && error) {
        fclose(to);
        unlink(temporary);
    } else if (to && !close_page(to, path, temporary)) {
        error = data_said(said, BURN_EIO, "%s: %s", path, strerror(errno));
    }
    free(temporary);
    return error;
}
