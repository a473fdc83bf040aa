/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A learner: teaches any module that burncc --train writes from any dataset, epoch after epoch.
 *
 *     burn_learning how = { .training = &lenet_training, .train = train, .valid = test, .epochs = 3 };
 *     burn_learner *learner;
 *     burn_outcome outcome;
 *     int error = burn_learner_open(&how, &learner, &said);
 *     if (!error) error = burn_learner_run(learner, &outcome, &said);
 *     if (!error) error = lenet_training.params_save(burn_learner_params(learner), "lenet.safetensors");
 *     burn_learner_close(learner);
 *
 * An epoch is a pass over `train`, batch after batch in an order by `seed`, then one over `valid`, in its order. A step
 * is one update from `accumulate` batches: their gradients are summed in the order of the batches, each by the items
 * it has, so that the bits are the same whoever computed which, on however many threads. What is figured: the loss
 * first; of training the learning rate and those metrics that want no predictions (with train_metrics all); of
 * validation all metrics, from the module's first output and first target.
 *
 * The module's inputs and targets are fields of the dataset: of the same name, else the first field left over that
 * fits, in order. A field fits a tensor of [batch, the item's shape], also where one has dimensions of 1 more; whole
 * numbers become floats where the module wants floats.
 *
 * Batches that lack items, as the last of an epoch may: a module compiled for --dim batch=A..B computes those that
 * are there. A module of a fixed batch leaves the rest of an epoch out in training (another order each epoch); in
 * validation the room is filled with copies of the batch's first item, and what they add to the mean is subtracted,
 * measured by a batch of that item alone: right for losses that are means over items, not where classes weigh
 * differently or some count as padding. Losses of epochs are means over items.
 *
 * Checkpoints are pairs of files in ARTIFACTS/checkpoint: step-N.safetensors, parameters and the optimizer's state as
 * the module writes them, and step-N.txt, what the learner must know besides to go on from there, with a sum. Both are
 * written beside and renamed, the second after the first, so that a process may be killed at any time: a run resumed
 * from the newest pair that is whole makes the same bits as one that was not stopped, also from the middle of an
 * epoch. What is not finite is not written.
 *
 * Several ranks have a batch each where one rank has them one after another, so that `accumulate` batches to a step of
 * n ranks are the same, bit by bit, as n times as many of one, on machines that compute alike. All validate; rank 0
 * writes, in a folder that all see. When a rank is lost, one of those that are left and told to end (SIGTERM, with
 * `interrupts`) saves what there was after the last whole step, and any number of ranks goes on from there.
 *
 * Functions return 0 or a BURN_E... code, with what is wrong in `said` (may be NULL): of data with the file and row,
 * of a loss that is no number (BURN_ENAN) with the first tensor that is none. A learner is for one thread. */
#ifndef BURN_LEARNER_H
#define BURN_LEARNER_H

#include "ranks.h"
#include "watch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What to learn and how. All zero but `training` and `train` is a start; what is pointed at stays the caller's, and as
 * it is until the learner is closed. */
typedef struct burn_learning {
    const burn_training *training;
    const void *weights;                 /* the content of its file of constants, where it has one */
    const void *params;                  /* to begin with; NULL: the module's own */
    burn_dataset *train, *valid;         /* kept; valid may be NULL */
    const char *const *fields;           /* the field for each input, then each target; NULL: as said above */
    int64_t epochs, batch;               /* 0: 10, and the module's largest */
    int64_t accumulate;                  /* batches to a step; 0: 1 */
    int64_t at_once;                     /* of these so many are computed at once, on `threads`; 0: one after another,
                                            and the module has the threads. Memory for each */
    const struct burn_threads *threads;
    int in_order;                        /* 1: training goes through its items in order, each epoch */
    uint64_t seed;                       /* of that order, and of what datasets draw */
    int workers, skip_bad;               /* as of burn_loading; an item that the loss refuses is bad, too */
    int hyper_count;                     /* hyper-parameters of the optimizer and the schedule; others are the usual */
    const char *const *hyper_names;
    const double *hyper_values;
    int metric_count;
    const char *const *metrics;          /* as burn_metric_open takes them */
    int train_metrics;                   /* 1: those that want predictions are figured of training, too: evaluate
                                            computes each batch once more, before its step. Not for ranks; an epoch
                                            that a run goes on with in the middle has those of the rest */
    int kind_count;
    const burn_metric_kind *const *kinds;   /* metrics of the caller's own */
    const char *best_by;                 /* "valid loss", "valid accuracy", "train loss" ...; NULL: the loss of
                                            validation, or without it of training */
    int64_t patience;                    /* ends after so many epochs without a better one; 0: never */
    double least_change;                 /* what an epoch must be better by, for that */
    const char *artifacts;               /* a folder for checkpoints; NULL: nothing is kept */
    int keep;                            /* the newest so many, besides the best; 0: 2 */
    int64_t checkpoint_steps;            /* within an epoch every so many steps; 0: at ends of epochs */
    int resume;                          /* 1: from the newest good checkpoint there, if there is one; 0: those of a
                                            run before are removed */
    int interrupts;                      /* 1: SIGINT and SIGTERM save and stop; a second one ends the process */
    int class_axis;                      /* of the first output: where its classes are; 0: the last */
    const burn_ranks *ranks;             /* NULL: this process alone */
    /* Of a batch (inputs, then targets) and parameters over which the loss is no number: where in the model that comes
     * from, in words, or nothing; for the message. NULL: not asked */
    void (*blame)(void *own, const burn_tensor *in, const void *params, char *text, size_t room);
    void *blame_own;
    int watcher_count;
    const burn_watcher *watchers;        /* their close is the caller's */
    int setting_count;
    const char *const (*settings)[2];    /* told to watchers as part of the configuration, in front */
} burn_learning;

typedef struct burn_learner burn_learner;
int burn_learner_open(const burn_learning *how, burn_learner **learner, burn_said *said);
/* Learns till the end. *outcome (may be NULL) is the learner's, also after an error. */
int burn_learner_run(burn_learner *learner, burn_outcome *outcome, burn_said *said);
/* The parameters as they are now. */
const void *burn_learner_params(const burn_learner *learner);
/* Those of the best epoch, into a struct of the module's; the present ones, before an epoch is done. */
int burn_learner_best(burn_learner *learner, void *params, burn_said *said);
/* The loss and the metrics over other data, with the parameters as they are now; watchers are not told. What *figures
 * points at is the learner's, until it is next called. */
int burn_learner_evaluate(burn_learner *learner, burn_dataset *data, burn_progress *figures, burn_said *said);
void burn_learner_close(burn_learner *learner);
/* The size of the batches of a run that is kept in this folder of artifacts; 0: no run is. One that resumes it, with
 * fewer ranks for instance, computes the same ones. */
int64_t burn_learner_kept(const char *artifacts);

#ifdef __cplusplus
}
#endif
#endif
