/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Checkpoints, the best epoch, and when to stop early. In: a learner between two steps. Out: a pair of files, or a
 * learner as it was when they were written.
 *
 * step-N.safetensors is the module's own checkpoint. step-N.txt is lines of "name value ... name", numbers of floating
 * point in hexadecimal so that all their bits are there, and in the end the FNV-1a sum of what stands before. It is
 * written when the first is on the disk; a pair is good when the text's sum is right and the module takes its file. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include "data_own.h"
#include "learner_own.h"
#include "record_own.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_BYTES = 1200, RECORD_BYTES = 1 << 16 };

/* ---- which figure says what is best */

static int find_figure(burn_learner *l, burn_said *said)
{
    const char *by = l->how.best_by ? l->how.best_by : l->how.valid ? "valid loss" : "train loss";
    burn_split split = !strncmp(by, "valid ", 6) ? BURN_VALIDATION : BURN_TRAINING;
    const Figures *f = &l->figures[split];
    int is_split = split == BURN_VALIDATION ? l->how.valid != NULL : !strncmp(by, "train ", 6);
    l->keep.figures = f;
    for (int i = 0; is_split && i < f->count; i++)
        if (!strcmp(f->of[i].name, by + 6) && f->of[i].better != BURN_NEITHER) return l->keep.figure = i, BURN_OK;
    char names[300] = "";
    for (int s = 0; s < (l->how.valid ? 2 : 1); s++)
        for (int i = 0; i < l->figures[s].count; i++) {
            const burn_figure *g = &l->figures[s].of[i];
            size_t used = strlen(names);
            if (g->better != BURN_NEITHER)
                snprintf(names + used, sizeof names - used, "%s '%s %s'", used ? "," : "", s ? "valid" : "train",
                         g->name);
        }
    return data_said(said, BURN_EINVAL, "no figure '%s' says which epoch is best; there are%s", by, names);
}

static int make_folder(const char *path, burn_said *said)
{
    if (!mkdir(path, 0777) || errno == EEXIST) return BURN_OK;
    return data_said(said, BURN_EIO, "%s: %s", path, strerror(errno));
}

int keep_open(burn_learner *l, burn_said *said)
{
    Keep *k = &l->keep;
    k->patient_value = NAN;
    k->saved[0] = -1;
    int error = find_figure(l, said);
    if (error) return error;
    if (!l->how.artifacts) {
        k->best = malloc(l->t->params_bytes + 1);
        return k->best ? BURN_OK : data_said(said, BURN_ENOMEM, "no memory");
    }
    if (!l->t->checkpoint_save)
        return data_said(said, BURN_EINVAL, "%s is compiled without files: no checkpoints", l->t->name);
    size_t room = strlen(l->how.artifacts) + sizeof "/checkpoint";
    k->folder = malloc(room);
    if (!k->folder) return data_said(said, BURN_ENOMEM, "no memory");
    if (room > PATH_BYTES - 64) return data_said(said, BURN_EINVAL, "artifacts: the path is too long");
    strcpy(k->folder, l->how.artifacts);
    error = make_folder(k->folder, said);
    strcat(k->folder, "/checkpoint");
    return error ? error : make_folder(k->folder, said);
}

void keep_close(Keep *k)
{
    free(k->folder);
    free(k->best);
}

/* ---- files */

static void path_of(const Keep *k, int64_t step, const char *end, char *path)
{
    snprintf(path, PATH_BYTES, "%s/step-%09lld.%s", k->folder, (long long)step, end);
}

/* The steps of all files of that ending, or of their temporary ones, the newest first; how many, -1 without memory. */
static int list_steps(const Keep *k, const char *end, int64_t **steps)
{
    DIR *folder = opendir(k->folder);
    int count = 0, room = 0;
    *steps = NULL;
    for (struct dirent *e; folder && (e = readdir(folder));) {
        long long step;
        int used = 0;
        if (sscanf(e->d_name, "step-%lld.%n", &step, &used) < 1 || !used || strcmp(e->d_name + used, end)) continue;
        if (count == room) {
            int64_t *more = realloc(*steps, (size_t)(room = 2 * room + 16) * sizeof *more);
            if (!more) break;
            *steps = more;
        }
        int at = count++;
        for (; at > 0 && (*steps)[at - 1] < step; at--) (*steps)[at] = (*steps)[at - 1];
        (*steps)[at] = step;
    }
    if (folder) closedir(folder);
    return count;
}

static uint64_t sum_of(const char *text, size_t bytes)
{
    uint64_t sum = 14695981039346656037u;
    for (size_t i = 0; i < bytes; i++) sum = (sum ^ (uint8_t)text[i]) * 1099511628211u;
    return sum;
}

/* ---- records */

static void put(char *text, size_t *used, const char *format, ...)
{
    va_list a;
    va_start(a, format);
    if (*used < RECORD_BYTES) *used += (size_t)vsnprintf(text + *used, RECORD_BYTES - *used, format, a);
    va_end(a);
}

static int write_record(burn_learner *l, const char *path, burn_said *said)
{
    const Keep *k = &l->keep;
    const Half *half = &l->half;
    size_t used = 0;
    char *text = malloc(RECORD_BYTES);
    if (!text) return data_said(said, BURN_ENOMEM, "no memory");
    put(text, &used, "burncc checkpoint 1\n");
    put(text, &used, "run %llu %lld %lld %s\n", (unsigned long long)l->how.seed, (long long)l->how.batch,
        (long long)l->how.train->count, l->t->name);
    put(text, &used, "done %lld %lld %lld\n", (long long)l->epoch, (long long)half->batches, (long long)l->step);
    put(text, &used, "half %a %a %a %lld %lld\n", half->loss, half->losses, half->rate, (long long)half->items,
        (long long)half->skipped);
    put(text, &used, "best %lld %a %lld\n", (long long)k->best_step, k->patient_value, (long long)k->patient_epoch);
    for (int s = 0; s < 2; s++)
        for (int i = 0; i < l->figures[s].count; i++)
            put(text, &used, "figure %d %a %lld %s\n", s, l->figures[s].of[i].best,
                (long long)l->figures[s].of[i].best_epoch, l->figures[s].of[i].name);
    put(text, &used, "sum %016llx\n", (unsigned long long)sum_of(text, used < RECORD_BYTES ? used : 0));
    int error = used < RECORD_BYTES ? record_replace(path, text, used, said)
                                    : data_said(said, BURN_ELIMIT, "%s: too many figures", path);
    free(text);
    return error;
}

/* What a line says, into the learner. */
static void read_line(burn_learner *l, const char *line)
{
    Keep *k = &l->keep;
    long long epoch, batch, step;
    double value, second, third;
    int split, used = 0;
    if (sscanf(line, "done %lld %lld %lld", &epoch, &batch, &step) == 3) {
        l->epoch = epoch;
        l->half.batches = batch;
        l->step = step;
    } else if (sscanf(line, "half %lf %lf %lf %lld %lld", &value, &second, &third, &batch, &step) == 5) {
        l->half = (Half){ l->half.batches, batch, step, value, second, third };
    } else if (sscanf(line, "best %lld %lf %lld", &step, &value, &epoch) == 3) {
        k->best_step = step;
        k->patient_value = value;
        k->patient_epoch = epoch;
    } else if (sscanf(line, "figure %d %lf %lld %n", &split, &value, &epoch, &used) == 3 && split >= 0 && split < 2) {
        Figures *f = &l->figures[split];
        size_t length = strcspn(line + used, "\n");
        for (int i = 0; i < f->count; i++)
            if (strlen(f->of[i].name) == length && !memcmp(f->of[i].name, line + used, length)) {
                f->of[i].best = value;
                f->of[i].best_epoch = epoch;
            }
    }
}

/* The record of a whole pair; NULL with a message. The caller frees it. */
static char *read_record(const char *path, burn_said *said)
{
    size_t bytes = 0;
    char *text = (char *)data_read(path, &bytes, said), *end = text ? strstr(text, "\nsum ") : NULL;
    if (!text) return NULL;
    int ok = end && !strncmp(text, "burncc checkpoint 1\n", 20)
        && strtoull(end + 5, NULL, 16) == sum_of(text, (size_t)(end + 1 - text));
    if (ok) return text;
    data_said(said, BURN_EFORMAT, "%s: not what was written", path);
    free(text);
    return NULL;
}

/* Is it of a run like this one? */
static int check_run(const burn_learner *l, const char *path, const char *text, burn_said *said)
{
    unsigned long long seed = 0;
    long long batch = 0, items = 0;
    char name[200] = "";
    const char *run = strstr(text, "\nrun ");
    int found = run && sscanf(run + 1, "run %llu %lld %lld %199[^\n]", &seed, &batch, &items, name) == 4;
    if (found && seed == l->how.seed && batch == l->how.batch && items == l->how.train->count
        && !strcmp(name, l->t->name))
        return BURN_OK;
    return data_said(said, BURN_EINVAL, "%s: of module %s, %lld items, batches of %lld, seed %llu: go on with these, "
                     "or take another folder", path, name, items, batch, seed);
}

int64_t burn_learner_kept(const char *artifacts)
{
    char folder[PATH_BYTES - 64], path[PATH_BYTES];
    long long batch = 0;
    int64_t *steps;
    const Keep k = { .folder = folder };
    if (!artifacts || snprintf(folder, sizeof folder, "%s/checkpoint", artifacts) >= (int)sizeof folder) return 0;
    int count = list_steps(&k, "txt", &steps);
    for (int i = 0; i < count && !batch; i++) {
        path_of(&k, steps[i], "txt", path);
        char *text = read_record(path, NULL);
        const char *run = text ? strstr(text, "\nrun ") : NULL;
        if (run && sscanf(run, "\nrun %*u %lld", &batch) < 1) batch = 0;
        free(text);
    }
    free(steps);
    return batch;
}

/* ---- keeping */

static void remove_steps(const Keep *k, const char *end, const int64_t *kept, int kept_count)
{
    char path[PATH_BYTES];
    int64_t *steps;
    int count = list_steps(k, end, &steps);
    for (int i = 0; i < count; i++) {
        int stays = 0;
        for (int j = 0; j < kept_count; j++) stays |= steps[i] == kept[j];
        path_of(k, steps[i], end, path);
        if (!stays) remove(path);
    }
    free(steps);
}

/* Removes all but these; the records first, so that no record is without its file. */
static void remove_others(const Keep *k, const int64_t *kept, int count)
{
    remove_steps(k, "txt.tmp", NULL, 0);
    remove_steps(k, "safetensors.tmp", NULL, 0);
    remove_steps(k, "lost", NULL, 0);
    remove_steps(k, "txt", kept, count);
    remove_steps(k, "safetensors", kept, count);
}

/* Of the pairs in the folder the newest, and the best. */
static void tidy(const burn_learner *l)
{
    int64_t *steps;
    int count = list_steps(&l->keep, "txt", &steps), most = l->how.keep ? l->how.keep : 2;
    int64_t *kept = realloc(steps, (size_t)(count + 1) * sizeof *kept);
    if (kept) {
        int n = count < most ? count : most;
        kept[n] = l->keep.best_step;
        remove_others(&l->keep, kept, n + 1);
    }
    free(kept ? kept : steps);
}

static int save(burn_learner *l, burn_said *said)
{
    Keep *k = &l->keep;
    char path[PATH_BYTES], record[PATH_BYTES];
    int error = check_finite(l, said);
    if (error) return error;
    path_of(k, l->step, "safetensors", path);
    path_of(k, l->step, "txt", record);
    errno = 0;
    error = l->t->checkpoint_save(l->params, l->state, l->step, path);
    if (error) return data_said(said, error, "%s: %s", path, errno ? strerror(errno) : "cannot be written");
    error = write_record(l, record, said);
    if (error) return error;
    for (int i = 0; i < l->how.watcher_count; i++) {
        const burn_watcher *w = &l->how.watchers[i];
        if (w->checkpoint) w->checkpoint(w->own, path, l->epoch, k->best_step == l->step && !l->half.batches);
    }
    tidy(l);
    return BURN_OK;
}

int keep_save(burn_learner *l, burn_said *said)
{
    Keep *k = &l->keep;
    const int64_t now[3] = { l->epoch, l->half.batches, l->step };
    if (!k->folder || !memcmp(now, k->saved, sizeof now)) return BURN_OK;
    int error = !l->ranks || !l->how.ranks->rank ? save(l, said) : BURN_OK;
    error = ranks_agree(l, error, said);
    if (!error) memcpy(k->saved, now, sizeof now);
    return error;
}

void keep_lost(burn_learner *l)
{
    char path[PATH_BYTES];
    if (!l->keep.folder || !l->step) return;
    path_of(&l->keep, l->step, "lost", path);
    int mine = open(path, O_CREAT | O_EXCL | O_WRONLY, 0666);
    if (mine < 0) return;                                 /* somebody saves it, or did */
    if (save(l, &l->reason)) learner_say(l, BURN_WARNING, "%s", l->reason.text);
    close(mine);
    remove(path);
}

int keep_epoch(burn_learner *l, burn_said *said)
{
    Keep *k = &l->keep;
    const burn_figure *f = &k->figures->of[k->figure];
    if (f->best_epoch == l->epoch) {
        k->best_step = l->step;
        if (k->best) memcpy(k->best, l->params, l->t->params_bytes);
    }
    if (isnan(k->patient_value) || (double)f->better * (f->mean - k->patient_value) > l->how.least_change) {
        k->patient_value = f->mean;
        k->patient_epoch = l->epoch;
    }
    return keep_save(l, said);
}

int keep_is_over(const burn_learner *l)
{
    return l->how.patience > 0 && l->keep.patient_epoch && l->epoch - l->keep.patient_epoch >= l->how.patience;
}

int burn_learner_best(burn_learner *l, void *params, burn_said *said)
{
    char path[PATH_BYTES];
    if (!l || !params) return BURN_EINVAL;
    const Keep *k = &l->keep;
    if (!k->folder || !k->best_step) {
        memcpy(params, k->best_step ? k->best : l->params, l->t->params_bytes);
        return BURN_OK;
    }
    path_of(k, k->best_step, "safetensors", path);
    int error = l->t->params_load(params, path);
    return error ? data_said(said, error, "%s: cannot be read, or is not what was written", path) : BURN_OK;
}

/* ---- resuming */

/* Takes a pair, if it is good: 1, 0 where it is damaged, or an error. */
static int take_pair(burn_learner *l, int64_t step, burn_said *said)
{
    char path[PATH_BYTES], record[PATH_BYTES];
    int64_t loaded = -1;
    path_of(&l->keep, step, "safetensors", path);
    path_of(&l->keep, step, "txt", record);
    char *text = read_record(record, said);
    if (!text) return 0;
    int error = check_run(l, record, text, said);
    if (!error && (l->t->checkpoint_load(l->params, l->state, &loaded, path) || loaded != step)) {
        data_said(said, 0, "%s: cannot be read, or is not what was written", path);
        free(text);
        return 0;
    }
    for (const char *line = text; !error && (line = strchr(line, '\n')) && *++line;) read_line(l, line);
    free(text);
    return error ? error : 1;
}

static int resume(burn_learner *l, burn_said *said)
{
    Keep *k = &l->keep;
    int64_t *steps;
    int count = list_steps(k, "txt", &steps), taken = 0, at = 0, error;
    burn_said damage = { "" };
    while (at < count && !taken) {
        taken = take_pair(l, steps[at], said);
        if (!taken && !at) damage = *said;
        at++;
    }
    if (count && !taken) taken = data_said(said, BURN_EFORMAT, "%s: no checkpoint there is good", k->folder);
    if ((error = ranks_begin(l, taken < 0 ? taken : BURN_OK, said))) taken = 0;
    if (taken > 0) {
        if (!l->ranks || !l->how.ranks->rank) remove_others(k, steps + at - 1, count - at + 1);  /* newer: damaged */
        k->note_level = at > 1 ? BURN_WARNING : BURN_NOTE;
        data_said(&k->note, 0, "%s%sgoes on after step %lld, %lld epochs done", damage.text, *damage.text ? "; " : "",
                  (long long)l->step, (long long)l->epoch);
    }
    free(steps);
    return error;
}

int keep_begin(burn_learner *l, burn_said *said)
{
    Keep *k = &l->keep;
    burn_loader *train = l->loaders[BURN_TRAINING], *valid = l->loaders[BURN_VALIDATION];
    if (!k->folder) return BURN_OK;
    if (!l->how.resume && (!l->ranks || !l->how.ranks->rank)) remove_others(k, NULL, 0);
    int error = l->how.resume ? resume(l, said) : ranks_begin(l, BURN_OK, said);
    if (error || !l->step) return error;
    l->resumed_epoch = l->epoch;
    int64_t batches = burn_loader_batches(train);
    int is_whole = l->half.batches >= batches;
    error = burn_loader_seek(train, l->epoch + is_whole, is_whole ? 0 : l->half.batches);
    return error || !valid ? error : burn_loader_seek(valid, l->epoch, 0);
}
