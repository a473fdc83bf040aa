// SPDX-License-Identifier: MIT OR Apache-2.0
// Drives runtime/learn/learner.h as it is told, or trains by the module's own calls: what learner.py compares. In:
// KEY=NUMBER arguments, those of `keys`, and artifacts=FOLDER. Out: a line for each split of an epoch and for each
// checkpoint, one for the outcome, sums of the bits of the parameters and of the best ones.
// Built with -DMODULE=name and its header in front.
#include MODULE_HEADER
#include "learn/learner.h"
#include "threads.h"
#ifdef RANKS
#include "learn/ranks_mpi.h"
#endif

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#define TRAINING PASTE(MODULE, _training)
enum { WIDTH = 6, CLASSES = 3, MOST_BATCH = 64 };

static const char *const keys[] = { "epochs", "batch", "accumulate", "at_once", "threads", "seed", "workers", "items",
    "valid", "skip_bad", "bad_label", "broken", "plain", "stop_at", "learning_rate", "in_order", "metrics", "swap",
    "resume", "keep", "checkpoint_steps", "interrupts", "patience", "least_change", "best_by", "no_number", "slow",
    "dies", "dies_at", "train_metrics" };
static const char *artifacts;
static double values[sizeof keys / sizeof *keys];

static double value(const char *key)
{
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (!strcmp(keys[i], key)) return values[i];
    fprintf(stderr, "no key %s\n", key);
    exit(2);
}

/* ---- data: three clouds of points; item i is a function of i */
static double next(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 11) * 0x1p-53 - 0.5;
}

static int get(const burn_dataset *data, int64_t i, uint64_t seed, void *const *to, burn_said *said)
{
    int swap = value("swap") != 0;
    uint64_t state = (uint64_t)i * 977 + (data->count == (int64_t)value("valid") ? 5 : 1);
    int64_t label = i % CLASSES;
    (void)seed;
    for (int k = 0; k < 4; k++) next(&state);
    for (int k = 0; k < WIDTH; k++) ((float *)to[swap])[k] = (float)(2 * next(&state) + (k % CLASSES == label));
    if (i == (int64_t)value("no_number")) ((float *)to[swap])[2] = (float)NAN;
    *(int64_t *)to[!swap] = i == (int64_t)value("bad_label") ? 7 : label;
    if (i != (int64_t)value("broken")) return 0;
    snprintf(said->text, sizeof said->text, "points.txt: row %lld is broken", (long long)i);
    return BURN_EFORMAT;
}

static const char *path_of(const burn_dataset *data, int64_t i)
{
    (void)data;
    (void)i;
    return "points.txt";
}

static burn_dataset *points(int64_t count)
{
    burn_dataset model = { .count = count, .field_count = 2, .get = get, .path = path_of }, *data;
    int swap = value("swap") != 0;
    model.fields[swap] = burn_field_of("points", BURN_FLOAT, 1, (int64_t[]){ WIDTH });
    model.fields[!swap] = burn_field_of("kind", BURN_INT64, 0, NULL);
    return burn_data_of(&model, &data) ? exit(2), NULL : data;
}

/* ---- what is printed */
static void print_bits(const char *what, const void *params)
{
    uint64_t sum = 14695981039346656037u;
    for (int i = 0; i < TRAINING.param_count; i++) {
        const burn_part *p = &TRAINING.params[i];
        const uint8_t *at = (const uint8_t *)params + p->offset;
        for (size_t k = 0; k < p->tensor.bytes && p->role != BURN_BATCHES; k++) sum = (sum ^ at[k]) * 1099511628211u;
    }
    printf("%s %016llx\n", what, (unsigned long long)sum);
}

static void print_epoch(void *own, const burn_progress *p)
{
    (void)own;
    printf("%s %lld", p->split == BURN_TRAINING ? "train" : "valid", (long long)p->epoch);
    for (int i = 0; i < p->figure_count; i++) printf(" %s=%.17g", p->figures[i].name, p->figures[i].mean);
    printf(" items=%lld skipped=%lld step=%lld batches=%lld\n", (long long)p->items, (long long)p->skipped,
           (long long)p->step, (long long)p->batches);
    fflush(stdout);
}

static int64_t batches_told;
static int rank;

static void count_batch(void *own, const burn_progress *p)
{
    (void)own;
    batches_told += p->split == BURN_TRAINING;
    if (value("dies_at") > 0 && rank == (int)value("dies") && batches_told == (int64_t)value("dies_at")) raise(SIGKILL);
    struct timespec pause = { 0, (long)(1e6 * value("slow")) };
    while (nanosleep(&pause, &pause)) {
    }
}

static burn_wish wish(void *own)
{
    (void)own;
    return value("stop_at") > 0 && batches_told >= (int64_t)value("stop_at") ? BURN_STOP : BURN_GO_ON;
}

static void print_said(void *own, burn_level level, const char *text)
{
    (void)own;
    printf("said %d %s\n", (int)level, text);
}

static void print_checkpoint(void *own, const char *path, int64_t epoch, int best)
{
    (void)own;
    printf("checkpoint %s of epoch %lld%s\n", strrchr(path, '/') + 1, (long long)epoch, best ? ", best" : "");
}

/* Rank 0 prints; others count and die. */
static burn_watcher watcher_of(int which)
{
    burn_watcher w = { .batch = count_batch, .wish = wish };
    if (which) return w;
    w.epoch = print_epoch;
    w.say = print_said;
    w.checkpoint = print_checkpoint;
    return w;
}

/* ---- both ways to learn */
static int by_learner(burn_dataset *train, burn_dataset *valid, const burn_ranks *ranks)
{
    burn_threads threads = { 0 };
    burn_said said = { "" };
    burn_outcome outcome;
    burn_learner *learner;
    const char *const metrics[] = { "accuracy", "iteration_speed" }, *const names[] = { "learning_rate" };
    const double rate = value("learning_rate");
    const burn_watcher watcher = watcher_of(rank);
    if (value("threads") > 0 && burn_threads_open(&threads, (int)value("threads"), 0)) return 2;
    const burn_learning how = {
        .training = &TRAINING, .train = train, .valid = valid, .epochs = (int64_t)value("epochs"),
        .batch = (int64_t)value("batch"), .accumulate = (int64_t)value("accumulate"),
        .at_once = (int64_t)value("at_once"), .threads = threads.run ? &threads : NULL, .ranks = ranks,
        .seed = (uint64_t)value("seed"), .workers = (int)value("workers"), .skip_bad = (int)value("skip_bad"),
        .artifacts = artifacts, .resume = (int)value("resume"), .keep = (int)value("keep"),
        .checkpoint_steps = (int64_t)value("checkpoint_steps"), .interrupts = (int)value("interrupts"),
        .patience = (int64_t)value("patience"), .least_change = value("least_change"),
        .best_by = value("best_by") > 1 ? "valid nothing" : value("best_by") > 0 ? "valid accuracy" : NULL,
        .in_order = (int)value("in_order"), .metric_count = (int)value("metrics"),
        .train_metrics = (int)value("train_metrics"), .metrics = metrics,
        .hyper_count = rate > 0, .hyper_names = names, .hyper_values = &rate, .watcher_count = 1,
        .watchers = &watcher };
    int error = burn_learner_open(&how, &learner, &said);
    if (error) return printf("refused %d %s\n", error, said.text), 1;
    error = burn_learner_run(learner, &outcome, &said);
    if (!rank) printf("end %d epochs=%lld steps=%lld best=%lld: %s\n", outcome.error, (long long)outcome.epochs,
           (long long)outcome.steps, (long long)outcome.best_epoch, outcome.reason);
    print_bits("bits", burn_learner_params(learner));
    void *best = malloc(TRAINING.params_bytes);
    if (rank) printf("rank %d ended: %s\n", rank, outcome.reason);
    else if (burn_learner_best(learner, best, &said)) printf("best: %s\n", said.text);
    else print_bits("best", best);
    free(best);
    burn_learner_close(learner);
    burn_threads_close(&threads);
    return error != 0;
}

/* The same without a learner: batches of the loader, gradients summed over `accumulate` of them, an update. */
static int plainly(burn_dataset *train)
{
    const burn_training *t = &TRAINING;
    const burn_loading loading = { .batch = (int64_t)value("batch"), .shuffle = 1, .seed = (uint64_t)value("seed") };
    int64_t step = 0, accumulate = value("accumulate") > 0 ? (int64_t)value("accumulate") : 1, drops = 0;
    void *params = calloc(1, t->params_bytes), *grads = calloc(1, t->params_bytes), *sum = calloc(1, t->params_bytes);
    void *state = calloc(1, t->state_bytes + 1), *work = calloc(1, t->gradients_bytes + t->update_bytes);
    float hypers[16];
    burn_loader *loader;
    burn_said said;
    if (t->params_init(params) || burn_loader_open(train, &loading, &loader, &said)) return 2;
    for (int epoch = 1; epoch <= (int)value("epochs"); epoch++) {
        double losses = 0, items = 0;
        int64_t batches = burn_loader_batches(loader);
        for (int64_t from = 0; from < batches; from += accumulate) {
            int64_t n = batches - from < accumulate ? batches - from : accumulate;
            t->grads_zero(sum);
            for (int64_t k = 0; k < n; k++) {
                burn_batch b;
                double loss;
                if (burn_loader_next(loader, &b, &said) != 1) return 2;
                int64_t shapes[2][2] = { { b.items, WIDTH }, { b.items } };
                const burn_tensor in[2] = {
                    { b.fields[0], (size_t)b.items * WIDTH * 4, shapes[0], BURN_FLOAT, 2 },
                    { b.fields[1], (size_t)b.items * 8, shapes[1], BURN_INT64, 1 } };
                drops = step * accumulate + k + 1;
                if (t->gradients(NULL, work, NULL, in, params, drops, &loss, grads)) return 2;
                t->grads_add(sum, grads);
                losses += loss * (double)b.items;
                items += (double)b.items;
            }
            if (n > 1) t->grads_scale(sum, (float)(1.0 / (double)n));
            step++;
            for (int i = 0; i < t->hyper_count; i++)
                hypers[i] = strcmp(t->hypers[i].name, "step") ? (float)t->hypers[i].usual : (float)step;
            if (t->update(NULL, work, NULL, hypers, params, sum, state)) return 2;
        }
        burn_batch none;
        if (burn_loader_next(loader, &none, &said)) return 2;
        printf("train %d loss=%.17g\n", epoch, losses / items);
    }
    print_bits("bits", params);
    return 0;
}

int main(int argc, char **argv)
{
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        values[i] = strcmp(keys[i], "bad_label") && strcmp(keys[i], "broken") && strcmp(keys[i], "no_number") ? 0 : -1;
    for (int a = 1; a < argc; a++) {
        size_t i = 0, name = strcspn(argv[a], "=");
        if (!strncmp(argv[a], "artifacts=", 10)) {
            artifacts = argv[a] + 10;
            continue;
        }
        while (i < sizeof keys / sizeof *keys && (strlen(keys[i]) != name || strncmp(keys[i], argv[a], name))) i++;
        if (i == sizeof keys / sizeof *keys) return fprintf(stderr, "no key %s\n", argv[a]), 2;
        values[i] = atof(argv[a] + name + 1);
    }
    burn_dataset *train = points((int64_t)value("items"));
    burn_dataset *valid = value("valid") > 0 ? points((int64_t)value("valid")) : NULL;
    const burn_ranks *ranks = NULL;
#ifdef RANKS
    burn_ranks all;
    if (burn_mpi_open(&argc, &argv, &all)) return 2;
    ranks = &all;
    rank = all.rank;
#endif
    int result = value("plain") > 0 ? plainly(train) : by_learner(train, valid, ranks);
#ifdef RANKS
    printf("sent %lld of %lld\n", (long long)burn_mpi_sent(ranks), (long long)TRAINING.params_bytes);
    burn_mpi_close(&all);
#endif
    burn_data_close(train);
    burn_data_close(valid);
    return result;
}
