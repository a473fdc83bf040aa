/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Who looks on while a model learns: progress lines, a dashboard, logs, a report. A learner (learner.h) tells each of
 * its watchers what happens, in the thread that it runs in, and asks what is wished. A watcher is a struct of
 * functions, each of which may be NULL; what it is told is the learner's and good until the function returns. */
#ifndef BURN_WATCH_H
#define BURN_WATCH_H

#include "data.h"
#include "metric.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum burn_split { BURN_TRAINING, BURN_VALIDATION } burn_split;

/* One figure of a split: the loss, the learning rate, a metric. */
typedef struct burn_figure {
    const char *name, *unit;       /* as in files: "loss", "accuracy", "top_k(k=5)"; unit "" or "%", "s" ... */
    burn_better better;
    double now;                    /* of the last batch; NaN where it says nothing of one */
    double mean;                   /* of the epoch so far; NaN before the first batch */
    double best;                   /* of the epochs that are done; NaN before the first */
    int64_t best_epoch;            /* from 1; 0: none */
    const burn_metric *metric;     /* NULL for the loss and the learning rate */
} burn_figure;

typedef struct burn_progress {
    burn_split split;
    int64_t epoch, epochs;         /* from 1 */
    int64_t batch, batches;        /* of this split of this epoch: done, all */
    int64_t step;                  /* updates done since the beginning, also before a resume */
    int64_t items, skipped;        /* of this split of this epoch so far */
    double seconds, seconds_left;  /* since this process began to learn; expected till the end (NaN: unknown) */
    double computing;              /* the share of this split's seconds that was not waiting for data, 0 to 1 */
    int figure_count;
    const burn_figure *figures;    /* the loss first */
} burn_progress;

/* What is learnt, told once. Pairs of texts: the configuration, in an order worth reading. */
typedef struct burn_task {
    const char *name;              /* of the model */
    const char *artifacts;         /* the folder of what is kept; NULL: nothing is kept */
    int64_t epochs, parameters;    /* numbers that learn */
    int64_t train_items, valid_items, batch;
    const burn_dataset *train, *valid;   /* valid: NULL where there is none */
    int setting_count;
    const char *const (*settings)[2];
    int64_t resumed_epoch;         /* epochs done before; 0: from the start */
} burn_task;

/* A batch of the validation split, for whoever looks at single items. */
typedef struct burn_seen {
    const burn_batch *batch;
    int64_t first_item;            /* number in the dataset of the first; the others follow (validation is in order) */
    const burn_observation *observation;
} burn_seen;

typedef enum burn_level { BURN_NOTE, BURN_WARNING, BURN_ERROR } burn_level;
typedef enum burn_wish { BURN_GO_ON, BURN_SAVE, BURN_STOP, BURN_QUIT } burn_wish;  /* STOP saves first, QUIT does not */

typedef struct burn_outcome {
    int error;                     /* 0, or what ended it */
    const char *reason;            /* "epochs done", "stopped early: ...", "interrupted", or the error's message */
    int64_t epochs, best_epoch, steps;
    double seconds;
} burn_outcome;

typedef struct burn_watcher {
    void *own;
    void (*begin)(void *own, const burn_task *task);
    void (*batch)(void *own, const burn_progress *progress);      /* after each batch of either split */
    void (*seen)(void *own, const burn_seen *seen);               /* validation only */
    void (*epoch)(void *own, const burn_progress *progress);      /* a split of an epoch is done: means are final */
    void (*checkpoint)(void *own, const char *path, int64_t epoch, int best);
    void (*say)(void *own, burn_level level, const char *text);
    burn_wish (*wish)(void *own);                                 /* asked between batches */
    void (*finish)(void *own, const burn_outcome *outcome);
    void (*close)(void *own);                                     /* frees what is behind own */
} burn_watcher;

#ifdef __cplusplus
}
#endif
#endif
