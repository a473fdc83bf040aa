/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The loader: batches of a dataset, epoch after epoch, got ahead by threads.
 *
 * The idea: a batch is a function of (seed, epoch, number), so the order does not depend on who gets it. Batches live
 * in a ring of slots; slot k holds the batches k, k + slots, ... counted from where the loader was set to. A worker
 * claims the next batch that nobody has begun when its slot is free, and fills it with no lock held; the caller takes
 * the batches in order and so frees a slot. Without workers the caller fills the one slot itself. */
#include "data_own.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef enum SlotState { FREE, FILLING, FULL } SlotState;
typedef struct Slot {
    SlotState state;
    int error;                                             /* of filling it */
    int64_t items, skipped, *numbers;                      /* numbers: of the items that it is to have, then has */
    void *fields[BURN_FIELDS];
    burn_said said;
} Slot;

struct burn_loader {
    burn_dataset *data;
    burn_loading how;
    int64_t batches;                                       /* of an epoch, of all shards */
    int64_t epoch, from;                                   /* where the loader was set to */
    int64_t claimed, taken;                                /* batches begun, given to the caller, since then */
    int holds_slot;                                        /* the caller reads the slot of batch taken - 1 */
    int slot_count, worker_count, ends;
    Slot *slots;
    pthread_t *workers;
    pthread_mutex_t lock;
    pthread_cond_t freed, filled;
    int64_t *order, order_epoch;                           /* of an epoch, made under the lock; -1: none */
    int64_t skipped;
};

/* Which items a batch has: their numbers into `items`, at most how.batch; how many. -1 without memory. Under the lock.
 * The next epoch's order is made when its first batch is claimed; batches claimed before have their numbers. */
static int64_t batch_items(burn_loader *l, int64_t epoch, int64_t number, int64_t *items)
{
    int64_t first = number * l->how.batch, count = l->data->count;
    int64_t n = count - first < l->how.batch ? count - first : l->how.batch;
    if (number >= l->batches) return 0;
    if (l->how.shuffle && l->order_epoch != epoch) {
        uint64_t seed = l->how.seed + (uint64_t)epoch * 0x9e3779b97f4a7c15u;
        free(l->order);
        l->order_epoch = epoch;
        l->order = data_order(count, data_random(&seed));
    }
    if (l->how.shuffle && !l->order) return l->order_epoch = -1;
    for (int64_t i = 0; i < n; i++) items[i] = l->how.shuffle ? l->order[first + i] : first + i;
    return n;
}

/* Gets the items into the slot. */
static void fill(const burn_loader *l, Slot *s, int64_t epoch, int64_t count)
{
    const burn_dataset *d = l->data;
    s->items = s->skipped = 0;
    s->error = count < 0 ? data_said(&s->said, BURN_ENOMEM, "no memory") : BURN_OK;
    for (int64_t i = 0; i < count && !s->error; i++) {
        void *to[BURN_FIELDS];
        uint64_t seed = l->how.seed ^ (uint64_t)epoch << 40 ^ (uint64_t)s->numbers[i];
        for (int f = 0; f < d->field_count; f++)
            to[f] = (uint8_t *)s->fields[f] + (size_t)s->items * d->fields[f].bytes;
        int error = d->get(d, s->numbers[i], data_random(&seed), to, &s->said);
        if (error && l->how.skip_bad) s->skipped++;
        else if (error) s->error = error;
        else s->numbers[s->items++] = s->numbers[i];
    }
    for (int f = 0; f < d->field_count; f++)
        memset((uint8_t *)s->fields[f] + (size_t)s->items * d->fields[f].bytes, 0,
               (size_t)(l->how.batch - s->items) * d->fields[f].bytes);
}

/* Rounds of batches, one for each shard, from this one to the epoch's end. */
static int64_t rounds_from(const burn_loader *l, int64_t batch)
{
    return (l->batches - batch + l->how.shards - 1) / l->how.shards;
}

/* Which batch of which epoch is the k-th of this shard since the loader was set; is it the epoch's first? */
static int place(const burn_loader *l, int64_t k, int64_t *epoch, int64_t *number)
{
    int64_t first = rounds_from(l, l->from), rounds = rounds_from(l, 0);
    int64_t from = k < first ? l->from : 0, round = k < first ? k : (k - first) % rounds;
    *epoch = k < first ? l->epoch : l->epoch + 1 + (k - first) / rounds;
    *number = from + round * l->how.shards + l->how.shard;
    return !round;
}

/* Claims the next batch and fills its slot; the lock is held before and after, not while it fills. */
static void fill_next(burn_loader *l)
{
    int64_t epoch, number;
    place(l, l->claimed, &epoch, &number);
    Slot *s = &l->slots[l->claimed++ % l->slot_count];
    int64_t count = batch_items(l, epoch, number, s->numbers);
    s->state = FILLING;
    pthread_mutex_unlock(&l->lock);
    fill(l, s, epoch, count);
    pthread_mutex_lock(&l->lock);
    s->state = FULL;
    pthread_cond_broadcast(&l->filled);
}

static void *work(void *argument)
{
    burn_loader *l = argument;
    pthread_mutex_lock(&l->lock);
    while (!l->ends) {
        if (l->slots[l->claimed % l->slot_count].state == FREE) fill_next(l);
        else pthread_cond_wait(&l->freed, &l->lock);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

/* Ends the workers; what they fill is finished first. */
static void stop(burn_loader *l)
{
    pthread_mutex_lock(&l->lock);
    l->ends = 1;
    pthread_cond_broadcast(&l->freed);
    pthread_mutex_unlock(&l->lock);
    for (int i = 0; i < l->worker_count; i++) pthread_join(l->workers[i], NULL);
    l->worker_count = 0;
}

/* Starts as many workers as can be had; none is no error, for the caller then fills. */
static void start(burn_loader *l)
{
    l->ends = 0;
    while (l->worker_count < l->how.workers && !pthread_create(&l->workers[l->worker_count], NULL, work, l))
        l->worker_count++;
}

void burn_loader_close(burn_loader *l)
{
    if (!l) return;
    stop(l);
    for (int k = 0; l->slots && k < l->slot_count; k++) {
        free(l->slots[k].numbers);
        for (int f = 0; f < l->data->field_count; f++) free(l->slots[k].fields[f]);
    }
    pthread_mutex_destroy(&l->lock);
    pthread_cond_destroy(&l->freed);
    pthread_cond_destroy(&l->filled);
    burn_data_close(l->data);
    free(l->slots);
    free(l->workers);
    free(l->order);
    free(l);
}

static int64_t batches_of(int64_t items, const burn_loading *how)
{
    return how->drop_last ? items / how->batch : (items + how->batch - 1) / how->batch;
}

/* Memory for the ring; false without. */
static int make_ring(burn_loader *l)
{
    int ok = 1;
    l->slots = calloc((size_t)l->slot_count, sizeof *l->slots);
    l->workers = calloc((size_t)l->how.workers + 1, sizeof *l->workers);
    if (!l->slots || !l->workers) return 0;
    for (int k = 0; k < l->slot_count; k++) {
        ok &= (l->slots[k].numbers = calloc((size_t)l->how.batch, sizeof(int64_t))) != NULL;
        for (int f = 0; f < l->data->field_count; f++)
            ok &= (l->slots[k].fields[f] = calloc((size_t)l->how.batch, l->data->fields[f].bytes)) != NULL;
    }
    return ok;
}

int burn_loader_open(burn_dataset *data, const burn_loading *how, burn_loader **loader, burn_said *said)
{
    if (!data || !how || !loader) return BURN_EINVAL;
    *loader = NULL;
    int shards = how->shards ? how->shards : 1;
    if (how->batch < 1 || how->workers < 0 || how->ahead < 0 || shards < 1 || how->shard < 0 || how->shard >= shards)
        return data_said(said, BURN_EINVAL, "a batch has at least one item, workers are 0 or more, a shard is one of "
                         "the shards");
    burn_loader *l = calloc(1, sizeof *l);
    if (!l) return data_said(said, BURN_ENOMEM, "no memory");
    l->data = burn_data_keep(data);
    l->how = *how;
    l->how.shards = shards;
    l->batches = batches_of(data->count, how);
    l->order_epoch = -1;
    l->slot_count = !how->workers ? 1 : 1 + (how->ahead ? how->ahead : 2 * how->workers);
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->freed, NULL);
    pthread_cond_init(&l->filled, NULL);
    int ok = make_ring(l);
    if (!ok || !l->batches) {
        burn_loader_close(l);
        return ok ? data_said(said, BURN_EINVAL, "%lld items are less than a batch of %lld", (long long)data->count,
                              (long long)how->batch)
                  : data_said(said, BURN_ENOMEM, "no memory");
    }
    start(l);
    *loader = l;
    return BURN_OK;
}

int burn_loader_seek(burn_loader *l, int64_t epoch, int64_t batch)
{
    if (!l || epoch < 0 || batch < 0 || batch > l->batches) return BURN_EINVAL;
    stop(l);
    for (int k = 0; k < l->slot_count; k++) l->slots[k].state = FREE;
    l->epoch = epoch;
    l->from = batch;
    l->claimed = l->taken = l->holds_slot = 0;
    start(l);
    return BURN_OK;
}

int burn_loader_next(burn_loader *l, burn_batch *batch, burn_said *said)
{
    if (!l || !batch) return BURN_EINVAL;
    pthread_mutex_lock(&l->lock);
    if (l->holds_slot) {
        l->slots[(l->taken - 1) % l->slot_count].state = FREE;
        pthread_cond_signal(&l->freed);
        l->holds_slot = 0;
        int64_t epoch, number;
        if (place(l, l->taken, &epoch, &number)) return pthread_mutex_unlock(&l->lock), 0;
    }
    Slot *s = &l->slots[l->taken % l->slot_count];
    if (!l->worker_count) fill_next(l);
    while (s->state != FULL) pthread_cond_wait(&l->filled, &l->lock);
    int64_t epoch, number;
    place(l, l->taken++, &epoch, &number);
    *batch = (burn_batch){ epoch, number, s->items, s->fields, s->numbers };
    l->holds_slot = 1;
    l->skipped += s->skipped;
    int error = s->error;
    if (error && said) *said = s->said;
    pthread_mutex_unlock(&l->lock);
    return error ? error : 1;
}

int64_t burn_loader_batches(const burn_loader *l)
{
    return l->batches;
}

int64_t burn_loader_skipped(burn_loader *l)
{
    return l->skipped;
}
