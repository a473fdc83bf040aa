/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the parts of the learner (learner*.c) share: its state, and what each part does. */
#ifndef BURN_LEARNER_OWN_H
#define BURN_LEARNER_OWN_H

#include "learner.h"

/* Where a tensor of the module comes from. */
typedef struct Feed {
    int field;                             /* of the dataset */
    burn_dtype from;                       /* the field's type */
    int64_t elements;                      /* of an item */
    size_t bytes;                          /* of an item, as the module has it */
    int64_t *shape;                        /* of the tensor; shape[0] is the batch's unless items have no axis for it */
} Feed;

/* A dataset as the module takes it: a Feed for each input, then each target. */
typedef struct Feeds {
    burn_dataset *data;
    Feed *of;
} Feeds;

/* What one batch is computed in. */
typedef struct Lane {
    int64_t items, rows;                   /* there are, and the module computes */
    int64_t turn;                          /* so many of the items are copied to make up for those missing */
    int64_t number, of_step;               /* of the batch in its epoch and in its step, from 0 */
    int64_t *numbers;                      /* of the items in the dataset */
    burn_tensor *in;                       /* inputs, then targets: into the loader's memory, or the rooms */
    int64_t *shapes;                       /* MOST_RANK each */
    void **rooms;
    void *work, *grads;
    double loss;
    int error;
} Lane;
enum { MOST_RANK = BURN_FIELD_RANK + 2 };

/* The figures of a split. */
typedef struct Figures {
    int count;
    burn_figure *of;                       /* the loss first */
    burn_metric **metrics;                 /* beside them; NULL for the loss and the learning rate */
    double loss_sum, loss_items;           /* of the epoch so far */
    double asked, took;                    /* when metrics were last asked for their values, and how long it took */
} Figures;

/* An epoch as far as it is trained, after a whole step. */
typedef struct Half {
    int64_t batches, items, skipped;
    double loss, losses, rate;             /* of the figures */
} Half;

/* What is kept of a run. */
typedef struct Keep {
    char *folder;                          /* of checkpoints; NULL: none */
    const Figures *figures;                /* of the split that says which epoch is best, */
    int figure;                            /* and which of them */
    int64_t best_step;                     /* of the best epoch's checkpoint; 0: none */
    void *best;                            /* or its parameters, where there is no folder */
    double patient_value;                  /* what an epoch must be better than, and since which one */
    int64_t patient_epoch;
    int64_t saved[3];                      /* epoch, batch and step of the newest checkpoint; -1: none */
    burn_level note_level;                 /* what resuming has to say, once watchers are told of the beginning */
    burn_said note;
} Keep;

/* The configuration as texts. */
enum { SETTINGS = 40, SETTING_BYTES = 64 };
typedef struct Settings {
    int count, own_count;
    char texts[SETTINGS][SETTING_BYTES];
    const char *(*pairs)[2];
} Settings;

/* Time of a split: of this epoch, and of all batches that this process computed. */
typedef struct Pace {
    double began, last, waited;            /* of the epoch; last: when a batch was done */
    int64_t items, skipped_before;         /* by the loader, in epochs before */
    int64_t refused;                       /* items that the loss would not take, of this epoch */
    int64_t others;                        /* bad items of other ranks, of this epoch */
    double seconds;                        /* of all */
    int64_t batches;
} Pace;

struct burn_learner {
    burn_learning how;                     /* with what 0 stands for put in */
    const burn_training *t;
    int end_count;                         /* inputs and targets */
    int64_t least, most;                   /* items that the module computes at once */
    Feeds feeds[2];                        /* these by burn_split */
    burn_loader *loaders[2];
    Figures figures[2];
    Pace pace[2];
    float *hypers, *schedule;
    void *params, *state, *sum;
    int lane_count;
    Lane *lanes;
    burn_tensor *out;                      /* predictions of a batch */
    int64_t *out_shapes;                   /* MOST_RANK each */
    void *seen_predicted, *seen_target;    /* of an observation, where the module's types are others */
    int64_t epoch, step;                   /* done */
    Half half;
    int64_t batch;                         /* of this split of this epoch, done */
    int64_t per_step;                      /* batches, of all ranks */
    double began;
    burn_wish asked, wish;                 /* the strongest since it was last obeyed: of this rank; of all */
    struct Ranks *ranks;                   /* NULL: this one alone */
    Keep keep;
    int64_t resumed_epoch;
    int is_told_waits;
    Settings settings;
    burn_said reason;
};

/* ---- learner_feed.c: from fields to tensors */
/* Finds the field of each tensor. Keeps nothing. */
int feeds_open(const burn_learner *l, Feeds *feeds, burn_dataset *data, burn_said *said);
void feeds_close(const burn_learner *l, Feeds *feeds);
/* The batch sizes of the module, by the items of a dataset. */
int feeds_sizes(burn_learner *l, const Feeds *feeds, burn_said *said);
int lane_open(const burn_learner *l, Lane *lane, int gradients);
void lane_close(const burn_learner *l, Lane *lane);
/* Item k of a lane, with another's room. */
void lane_alone(const burn_learner *l, const Feeds *feeds, const Lane *lane, int64_t k, Lane *one);
/* The lane without its item k. */
void lane_take_out(const burn_learner *l, const Feeds *feeds, Lane *lane, int64_t k);
/* The batch as the module takes it. What is missing to its least size are copies of its first `turn` items, in turn.
 * copied: all of it is brought to the lane's own memory. */
void lane_fill(const burn_learner *l, const Feeds *feeds, const burn_batch *batch, int64_t turn, int copied,
               Lane *lane);
/* What is known of a batch that was evaluated into l->out. */
void lane_observe(burn_learner *l, const Feeds *feeds, const Lane *lane, burn_observation *seen, int64_t *shape);
/* As numbers of another type. */
void convert(burn_dtype from, burn_dtype to, int64_t count, const void *source, void *target);
size_t dtype_bytes(burn_dtype dtype);

/* ---- learner_figures.c */
int figures_open(burn_learner *l, burn_split split, burn_said *said);
void figures_close(Figures *f);
/* Before an epoch. */
int figures_begin(Figures *f);
/* In the middle of an epoch: with what came before it. */
void figures_go_on(Figures *f, double loss_sum, double loss_items, double learning_rate);
/* A batch: its loss counts `items` times. */
int figures_add(Figures *f, const burn_observation *seen, burn_said *said);
/* Brings the means of metrics up to date, or, unless `surely`, leaves them where that took long of late. */
void figures_ask(Figures *f, int surely);
/* At the end of an epoch: the best ones. */
void figures_rank(Figures *f, int64_t epoch);

/* ---- learner_check.c: what is wrong */
/* Of a lane whose batch the module refused: says why, with the tensor or the item that it is about. Where items are
 * to be skipped and it is about some of them, takes these out instead, and gives back 0. */
int check_lane(burn_learner *l, const Feeds *feeds, burn_split split, Lane *lane, burn_said *said);
/* Is there a number in parameters or state that is none? Then BURN_ENAN. */
int check_finite(const burn_learner *l, burn_said *said);

/* ---- learner_keep.c: checkpoints */
int keep_open(burn_learner *l, burn_said *said);
void keep_close(Keep *k);
/* When another rank is lost: a checkpoint of the last whole step, if no other makes it. */
void keep_lost(burn_learner *l);
/* Before the first epoch: goes to where a checkpoint was made, or removes those that there are. */
int keep_begin(burn_learner *l, burn_said *said);
/* A checkpoint of now, unless there is one. */
int keep_save(burn_learner *l, burn_said *said);
/* After an epoch, whose figures are ranked. */
int keep_epoch(burn_learner *l, burn_said *said);
/* Has it not become better for so long that it is to stop? */
int keep_is_over(const burn_learner *l);

/* ---- learner_ranks.c; without ranks the first two do nothing but give back `error` */
typedef struct Ranks Ranks;
/* The first error of any rank, and the strongest wish, become everybody's. */
int ranks_agree(burn_learner *l, int error, burn_said *said);
/* The same, and are all at the same step? */
int ranks_begin(burn_learner *l, int error, burn_said *said);
int ranks_open(burn_learner *l);
void ranks_close(Ranks *r);
/* Bytes of a struct of gradients with room to be cut into pieces. */
size_t ranks_bytes(const burn_learner *l);
/* The sum of a step's gradients into l->sum, and of their batches' shares of a full one. */
int ranks_sum(burn_learner *l, double rate, double *shares, burn_said *said);

/* ---- learner_signal.c */
typedef struct Signals { int count; void *before; } Signals;
/* From here on SIGINT and SIGTERM are remembered; 0 without memory. */
int signals_take(Signals *s);
/* The one that came, or 0. */
int signals_came(void);
void signals_give_back(Signals *s);

/* ---- learner_step.c */
int hypers_open(burn_learner *l, burn_said *said);
/* One step over the next batches of the epoch, of which there is one. */
int learner_step(burn_learner *l, burn_said *said);
/* Gets the next batch into the lane; of_step: which one of the step it is. */
int learner_fill(burn_learner *l, Lane *lane, int64_t of_step, burn_said *said);
/* What the module's function gives for the lane's batch; step: of dropout. */
int learner_differentiate(const burn_learner *l, const struct burn_threads *threads, const Lane *lane, int64_t step,
                          double *loss, void *grads);
/* The lane's loss and gradients; without items nothing. */
int learner_gradients(burn_learner *l, Lane *lane, burn_said *said);
/* A batch of training is done: figures, watchers. */
int learner_count(burn_learner *l, burn_observation *seen, double rate, burn_said *said);
/* Batches that this epoch of training still has. */
int64_t learner_left(const burn_learner *l);
/* Evaluates a batch and adds it to the figures; is_told: watchers see it. */
int learner_look(burn_learner *l, const Feeds *feeds, const burn_batch *batch, Figures *f, int is_told,
                 burn_said *said);
/* As burn_loader_next, with the time that it takes. */
int learner_next(burn_learner *l, burn_split split, burn_batch *batch, burn_said *said);

/* ---- learner_run.c: what is told */
double learner_clock(void);
/* Bad items of this epoch so far. */
int64_t pace_skipped(const burn_learner *l, burn_split split);
void learner_say(burn_learner *l, burn_level level, const char *format, ...);
/* A batch of so many items is done. */
void learner_told(burn_learner *l, burn_split split, int64_t items);
#endif
