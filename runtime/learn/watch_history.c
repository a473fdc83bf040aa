/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The curves of a run, for whoever draws them or sums them up. In: what a learner tells watchers, or the logs of the
 * run that this one goes on with. Out: the means of epochs, and batches in memory that does not grow. */
#include "watch_own.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

WatchCurve *watch_curve(WatchHistory *h, const burn_figure *figure, burn_split split)
{
    for (int i = 0; i < h->count; i++)
        if (h->curves[i]->split == split && !strcmp(h->curves[i]->name, figure->name)) return h->curves[i];
    if (h->count == h->room) {
        int room = 2 * h->room + 8;
        WatchCurve **curves = realloc(h->curves, (size_t)room * sizeof *curves);
        if (!curves) return NULL;
        h->curves = curves;
        h->room = room;
    }
    WatchCurve *c = calloc(1, sizeof *c);
    if (c) {
        c->name = watch_copy(figure->name);
        c->unit = watch_copy(figure->unit);
        c->better = figure->better;
        c->split = split;
        c->stride = 1;
        c->now = c->mean = NAN;
    }
    if (!c || !c->name || !c->unit) {
        if (c) free(c->name);
        if (c) free(c->unit);
        free(c);
        return NULL;
    }
    h->curves[h->count++] = c;
    return c;
}

/* Halves the points: each two become their mean, at the second one's place. */
static void merge_points(WatchCurve *c)
{
    for (int i = 0; i < WATCH_WHOLE / 2; i++) {
        WatchPoint a = c->whole[2 * i], b = c->whole[2 * i + 1];
        c->whole[i] = (WatchPoint){ b.x, isnan(a.y) ? b.y : isnan(b.y) ? a.y : (a.y + b.y) / 2 };
    }
    c->whole_count = WATCH_WHOLE / 2;
    c->stride *= 2;
}

static void add_batch(WatchCurve *c, double x, double y)
{
    c->recent[c->batches++ % WATCH_RECENT] = (WatchPoint){ x, y };
    if (!isnan(y)) {
        c->sum += y;
        c->numbers++;
    }
    if (++c->pending < c->stride) return;
    if (c->whole_count == WATCH_WHOLE) merge_points(c);
    c->whole[c->whole_count++] = (WatchPoint){ x, c->numbers ? c->sum / (double)c->numbers : NAN };
    c->pending = c->numbers = 0;
    c->sum = 0;
}

static void add_epoch(WatchCurve *c, double epoch, double mean)
{
    if (c->epoch_count == c->epoch_room) {
        int64_t room = 2 * c->epoch_room + 16;
        WatchPoint *epochs = realloc(c->epochs, (size_t)room * sizeof *epochs);
        if (!epochs) return;
        c->epochs = epochs;
        c->epoch_room = room;
    }
    c->epochs[c->epoch_count++] = (WatchPoint){ epoch, mean };
}

void watch_history_batch(WatchHistory *h, const burn_progress *p)
{
    double x = (double)(p->epoch - 1) + (p->batches > 0 ? (double)p->batch / (double)p->batches : 0);
    for (int i = 0; i < p->figure_count; i++) {
        const burn_figure *f = &p->figures[i];
        WatchCurve *c = watch_curve(h, f, p->split);
        if (!c) continue;
        c->now = f->now;
        c->mean = f->mean;
        /* a metric of whole epochs has no curve of batches; a loss that is no number is worth a gap */
        if (!f->metric || !isnan(f->now)) add_batch(c, x, f->now);
    }
}

void watch_history_epoch(WatchHistory *h, const burn_progress *p)
{
    for (int i = 0; i < p->figure_count; i++) {
        WatchCurve *c = watch_curve(h, &p->figures[i], p->split);
        if (!c) continue;
        c->mean = p->figures[i].mean;
        add_epoch(c, (double)p->epoch, c->mean);
    }
}

/* Batches of an epoch out of its log. */
static void load_batches(WatchCurve *c, const char *folder, int64_t epoch)
{
    char line[128], *path = watch_log_path(folder, c->split, epoch, c->name);
    FILE *in = path ? fopen(path, "r") : NULL;
    free(path);
    if (!in) return;
    int64_t lines = 0, batch = 0;
    while (fgets(line, sizeof line, in)) lines += strchr(line, ',') != NULL;
    rewind(in);
    while (batch < lines && fgets(line, sizeof line, in))
        if (strchr(line, ','))
            add_batch(c, (double)(epoch - 1) + (double)++batch / (double)lines, strtod(line, NULL));
    fclose(in);
}

static void load_row(WatchHistory *h, char *line, const char *folder, int64_t epochs)
{
    int64_t epoch = strtoll(watch_csv_field(&line), NULL, 10);
    burn_split split = !strcmp(watch_csv_field(&line), "valid") ? BURN_VALIDATION : BURN_TRAINING;
    burn_figure f = { .name = watch_csv_field(&line) };
    f.unit = watch_csv_field(&line);
    f.better = (burn_better)strtol(watch_csv_field(&line), NULL, 10);
    if (epoch < 1 || epoch > epochs) return;
    WatchCurve *c = watch_curve(h, &f, split);
    if (!c) return;
    add_epoch(c, (double)epoch, strtod(watch_csv_field(&line), NULL));
    load_batches(c, folder, epoch);
}

void watch_history_load(WatchHistory *h, const char *folder, int64_t epochs)
{
    char line[1024], *path = watch_format("%s/history.csv", folder);
    FILE *in = path ? fopen(path, "r") : NULL;
    free(path);
    if (!in) return;
    while (fgets(line, sizeof line, in)) {
        line[strcspn(line, "\n")] = 0;
        load_row(h, line, folder, epochs);
    }
    fclose(in);
}

void watch_history_free(WatchHistory *h)
{
    for (int i = 0; i < h->count; i++) {
        free(h->curves[i]->name);
        free(h->curves[i]->unit);
        free(h->curves[i]->epochs);
        free(h->curves[i]);
    }
    free(h->curves);
    *h = (WatchHistory){ 0 };
}

const WatchPoint *watch_curve_best(const WatchCurve *c)
{
    const WatchPoint *best = NULL;
    for (int64_t i = 0; c->better != BURN_NEITHER && i < c->epoch_count; i++) {
        const WatchPoint *p = &c->epochs[i];
        if (isnan(p->y)) continue;
        if (!best || (c->better == BURN_LARGER ? p->y > best->y : p->y < best->y)) best = p;
    }
    return best;
}
