// SPDX-License-Identifier: MIT OR Apache-2.0
// The order of the kernels, where another one needs clearly less memory than the model's: branches one after the
// other, large values used up before the next are made.
//
// In: a plan's kernels in the order of the model. Out: the same kernels in an order in which every value is still
// written before it is read and read before it is overwritten. Two orders compete: the model's, and one that always
// takes the ready kernel that leaves the fewest bytes alive; of training a third, in which what uses up the kernel's
// result at once counts with it. The best one is improved by moving single kernels for a fixed number of steps, with
// random numbers that are always the same. Whatever the order: an update of a parameter that is the last reader of its
// gradient comes as soon as it can, though that may be far from the worst moment; what runs again for memory's sake
// (checkpoint.c) would have no use of it else, and the gradient is still in the caches.
#include "steps.h"

#include <stdlib.h>
#include <string.h>

#ifndef ORDER_STEPS                                     // less in the fuzzer's build, for more files a second
#define ORDER_STEPS INT64_C(20000000)                   // looks at an operand: about a tenth of a second
#endif
// of each move since the last that helped: few kernels have few orders
#define IDLE_TRIALS 200
// steps that use up what the one before them has made
enum { MOST_CHAIN = 6 };
// less is not worth another order than the reader of the model expects
enum { GAIN_PERCENT = 3 };

typedef struct Order {
    Arena *a;
    const Steps *of;
    Step *steps; int n;                                 // those of `of`
    int *first, *last;                                  // by buffer: positions
    int64_t *live;                                      // by position: bytes that come, or go after it
    int *place;                                         // by step: its position
    int *maker;                                         // by buffer: the step that writes it first; -1: none
    bool trains;
    int64_t work;
    uint64_t random;
} Order;
// sum of the bytes alive over all moments: of equal peaks the least. Of training it is of their fourth powers, for what
// runs again lowers the worst moment, and the next ones are then the worst.
typedef struct Cost { int64_t peak; double sum; } Cost;

static bool is_less(Cost x, Cost y) { return x.peak != y.peak ? x.peak < y.peak : x.sum < y.sum; }

static uint32_t draw(Order *o, int below) {
    o->random = o->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);     // Knuth, MMIX
    return (uint32_t)((o->random >> 33) % (uint64_t)below);
}

// ---------------------------------------------------------------- what the kernels use
typedef struct User { int step; bool write; } User;
typedef VEC(User) UserList;                             // of a buffer: who wrote it last, and who has read that

static int by_number(const void *x, const void *y) { return *(const int *)x - *(const int *)y; }

// Step n comes after those whose results it uses or overwrites, and after those that use what it overwrites.
static void follow(Order *o, int n, UserList *users) {
    Step *s = &o->steps[n];
    for (int x = 0; x < s->uses.n; x++) {
        const Access *u = &s->uses.at[x];
        UserList *l = &users[u->buffer];
        // what is before a write is before all behind it; the write stands first in the list
        const int count = u->write ? l->n : l->n && l->at[0].write;
        for (int i = 0; i < count; i++) VEC_PUSH(o->a, s->before, l->at[i].step);
        if (u->write) l->n = 0;
        VEC_PUSH(o->a, *l, (User){ n, u->write });
    }
    if (!s->before.n) return;
    qsort(s->before.at, (size_t)s->before.n, sizeof(int), by_number);
    int kept = 0;
    for (int i = 0; i < s->before.n; i++) {
        const int step = s->before.at[i];
        if (kept && s->before.at[kept - 1] == step) continue;
        s->before.at[kept++] = step;
        VEC_PUSH(o->a, o->steps[step].after, n);
    }
    s->before.n = kept;
}

static void find_makers(Order *o) {
    o->maker = NEW_ARRAY(o->a, int, o->of->buffers.n + 1);
    for (int b = 0; b < o->of->buffers.n; b++) o->maker[b] = -1;
    for (int i = o->n - 1; i >= 0; i--)
        for (int j = 0; j < o->steps[i].uses.n; j++)
            if (o->steps[i].uses.at[j].write) o->maker[o->steps[i].uses.at[j].buffer] = i;
}

// ---------------------------------------------------------------- what an order costs
static int64_t bytes_of(const Order *o, int buffer) { return steps_bytes(o->of, buffer); }

static int64_t reused(const Order *o, const Step *s, int at) {
    for (int i = 0; i < s->reuse.n; i++) {
        int in = s->reuse.at[i];
        for (int j = 0; o->last[in] == at && j < s->uses.n; j++) {
            int out = s->uses.at[j].buffer;
            if (s->uses.at[j].write && o->first[out] == at && bytes_of(o, in) == bytes_of(o, out))
                return bytes_of(o, in);
        }
    }
    return 0;
}

static Cost cost_of(Order *o, const int *order) {
    Cost c = { 0 };
    int64_t alive = 0;
    for (int i = 0; i < o->of->buffers.n; i++) o->first[i] = -1;
    memset(o->live, 0, sizeof(int64_t) * (size_t)(o->n + 1));
    for (int at = 0; at < o->n; at++) {
        const Step *s = &o->steps[order[at]];
        for (int i = 0; i < s->uses.n; i++) {
            int b = s->uses.at[i].buffer;
            if (o->first[b] < 0) o->first[b] = at;
            o->last[b] = at;
        }
        o->work += s->uses.n + 4;
    }
    for (int i = 1; i < o->of->buffers.n; i++) {
        if (o->first[i] < 0) continue;
        o->live[o->first[i]] += bytes_of(o, i);
        o->live[o->last[i] + 1] -= bytes_of(o, i);
    }
    o->work += o->of->buffers.n;
    for (int at = 0; at < o->n; at++) {
        const Step *s = &o->steps[order[at]];
        alive += o->live[at];
        int64_t now = alive + s->scratch - reused(o, s, at);
        const double x = (double)now;
        if (now > c.peak) c.peak = now;
        c.sum += o->trains ? x * x * x * x : x;
    }
    return c;
}

// The most that one kernel needs alone: no order needs less.
static int64_t least_peak(const Order *o) {
    int64_t least = 0;
    for (int i = 0; i < o->n; i++) {
        int64_t all = o->steps[i].scratch, in = 0;
        for (int j = 0; j < o->steps[i].uses.n; j++) all += bytes_of(o, o->steps[i].uses.at[j].buffer);
        for (int j = 0; j < o->steps[i].reuse.n; j++)
            if (bytes_of(o, o->steps[i].reuse.at[j]) > in) in = bytes_of(o, o->steps[i].reuse.at[j]);
        if (all - in > least) least = all - in;
    }
    return least;
}

// ---------------------------------------------------------------- the search
// What is there while kernels are taken one by one.
typedef struct Taken {
    int *waits;                                         // by step: how many it waits for; -1: it has been taken
    int *users;                                         // by buffer: steps to come that use it
    bool *made;                                         // by buffer
} Taken;

// By how many bytes less or more is alive behind the step.
static int64_t take(const Order *o, Taken *t, int step) {
    const Step *s = &o->steps[step];
    int64_t more = 0;
    for (int j = 0; j < s->uses.n; j++) {
        const int b = s->uses.at[j].buffer;
        if (!t->made[b]) more += bytes_of(o, b);
        if (--t->users[b] == 0) more -= bytes_of(o, b);
        t->made[b] = true;
    }
    for (int j = 0; j < s->after.n; j++) t->waits[s->after.at[j]]--;
    t->waits[step] = -1;
    return more;
}

static void put_back(const Order *o, Taken *t, int step) {
    const Step *s = &o->steps[step];
    t->waits[step] = 0;
    for (int j = 0; j < s->after.n; j++) t->waits[s->after.at[j]]++;
    for (int j = 0; j < s->uses.n; j++) {
        const int b = s->uses.at[j].buffer;
        t->users[b]++;
        if (s->uses.at[j].write && o->maker[b] == step) t->made[b] = false;
    }
}

// The ready step that is the last to read what this one, which has just been taken, has made; -1: there is none.
static int uses_up(const Order *o, const Taken *t, int step) {
    const Step *s = &o->steps[step];
    for (int i = 0; i < s->after.n; i++) {
        const int next = s->after.at[i];
        for (int j = 0; t->waits[next] == 0 && j < o->steps[next].uses.n; j++) {
            const int b = o->steps[next].uses.at[j].buffer;
            if (o->maker[b] == step && t->users[b] == 1) return next;
        }
    }
    return -1;
}

// The same where what is made is used up at once, by steps that need nothing else: a gradient, by an update.
static int64_t take_chain(const Order *o, Taken *t, int step) {
    int chain[MOST_CHAIN], n = 0;
    int64_t all = 0, least = INT64_MAX;
    for (int next = step; n < MOST_CHAIN && next >= 0; next = uses_up(o, t, next)) {
        chain[n++] = next;
        all += take(o, t, next);
        if (all < least) least = all;
    }
    while (n > 0) put_back(o, t, chain[--n]);
    return least;
}

// Always the ready kernel after which the fewest bytes are alive, of equals the model's first. chains: ... after which
// and those that use up what it makes.
static void take_least(Order *o, int *order, bool chains) {
    Taken t = { NEW_ARRAY(o->a, int, o->n + 1), NEW_ARRAY(o->a, int, o->of->buffers.n + 1),
        NEW_ARRAY(o->a, bool, o->of->buffers.n + 1) };
    for (int i = 0; i < o->n; i++) {
        t.waits[i] = o->steps[i].before.n;
        for (int j = 0; j < o->steps[i].uses.n; j++) t.users[o->steps[i].uses.at[j].buffer]++;
    }
    for (int at = 0; at < o->n; at++) {
        int best = -1;
        int64_t least = INT64_MAX;
        for (int i = 0; i < o->n; i++) {
            if (t.waits[i]) continue;
            int64_t more = 0;
            for (int j = 0; j < o->steps[i].uses.n && !chains; j++) {
                int b = o->steps[i].uses.at[j].buffer;
                if (!t.made[b]) more += bytes_of(o, b);
                if (t.users[b] == 1) more -= bytes_of(o, b);
            }
            if (chains) more = take_chain(o, &t, i);
            if (more < least) {
                least = more;
                best = i;
            }
        }
        if (best < 0) bug("kernels wait for one another");
        order[at] = best;
        take(o, &t, best);
    }
}

// Moves the kernel at a random place to another where it may stand; false: there is none.
static bool move(Order *o, int *order) {
    int from = (int)draw(o, o->n), low = 0, high = o->n - 1;
    const Step *s = &o->steps[order[from]];
    for (int i = 0; i < o->n; i++) o->place[order[i]] = i;
    for (int i = 0; i < s->before.n; i++)
        if (o->place[s->before.at[i]] >= low) low = o->place[s->before.at[i]] + 1;
    for (int i = 0; i < s->after.n; i++)
        if (o->place[s->after.at[i]] <= high) high = o->place[s->after.at[i]] - 1;
    o->work += o->n + s->before.n + s->after.n;
    if (low >= high) return false;
    int to = low + (int)draw(o, high - low + 1), one = order[from];
    if (to > from) memmove(order + from, order + from + 1, sizeof(int) * (size_t)(to - from));
    else memmove(order + to + 1, order + to, sizeof(int) * (size_t)(from - to));
    order[to] = one;
    return to != from;
}

static Cost improve(Order *o, int *order, Cost cost, int64_t least) {
    int *trial = NEW_ARRAY(o->a, int, o->n + 1);
    const int64_t patience = IDLE_TRIALS * (int64_t)o->n * o->n;        // pairs of a kernel and a place
    for (int64_t idle = 0; cost.peak > least && o->work < ORDER_STEPS && idle < patience; idle++) {
        memcpy(trial, order, sizeof(int) * (size_t)o->n);
        bool moved = false;
        for (uint32_t i = 0, times = 1 + draw(o, 3); i < times; i++) moved |= move(o, trial);
        if (!moved) continue;
        Cost c = cost_of(o, trial);
        if (is_less(cost, c)) continue;
        if (is_less(c, cost)) idle = 0;
        cost = c;
        memcpy(order, trial, sizeof(int) * (size_t)o->n);
    }
    return cost;
}

static bool waits_for(const Order *o, int step, int other) {
    for (int i = 0; i < o->steps[step].before.n; i++)
        if (o->steps[step].before.at[i] == other) return true;
    return false;
}

// Moves what makes nothing in the workspace and is the last reader of something there to where it may first stand.
static void use_up(Order *o, int *order) {
    cost_of(o, order);                                  // for o->last
    for (int at = 0; at < o->n; at++) {
        const Step *s = &o->steps[order[at]];
        bool makes = s->scratch > 0, frees = false;
        for (int i = 0; i < s->uses.n; i++) {
            const Access *u = &s->uses.at[i];
            if (!bytes_of(o, u->buffer)) continue;
            makes = makes || u->write;
            frees = frees || o->last[u->buffer] == at;
        }
        if (makes || !frees) continue;
        const int one = order[at];
        int to = at;
        while (to > 0 && !waits_for(o, one, order[to - 1])) to--;
        memmove(order + to + 1, order + to, sizeof(int) * (size_t)(at - to));
        order[to] = one;
    }
}

// Sizes that are measured, strings and states that are updated have an order of their own. Fields that training updates
// lie where they are read, so that an update waits for the last reader.
static bool may_order(const Plan *p) {
    if (p->parent || p->kernels.n < 3) return false;
    for (int i = 0; i < p->graph->inputs.n; i++)
        if (p->graph->inputs.at[i]->role && !p->options->train) return false;
    for (int i = 0; i < p->kernels.n; i++) {
        const Kernel *k = p->kernels.at[i];
        if (k->kind == KERNEL_SIZES || k->kind == KERNEL_REGION || k->string_bytes || kernel_fails(k)) return false;
    }
    return true;
}

static void set_order(const Order *o, Plan *p, const int *order) {
    Kernel **kernels = NEW_ARRAY(p->arena, Kernel *, p->kernels.n);
    for (int i = 0, n = 0; i < o->n; i++)
        for (int m = 0; m < o->steps[order[i]].kernels; m++)
            kernels[n++] = p->kernels.at[o->steps[order[i]].kernel + m];
    p->kernels.at = kernels;
    p->kernels.cap = p->kernels.n;
}

void order_plan(Plan *p) {
    if (!may_order(p)) return;
    memory_ends(p);
    Order o = { .a = arena_new(), .random = 1, .trains = graph_trains(p->graph) };
    o.of = steps_read(o.a, p);
    o.steps = o.of->at;
    o.n = o.of->n;
    UserList *users = NEW_ARRAY(o.a, UserList, o.of->buffers.n + 1);
    for (int i = 0; i < o.n; i++) follow(&o, i, users);
    o.first = NEW_ARRAY(o.a, int, o.of->buffers.n + 1);
    o.last = NEW_ARRAY(o.a, int, o.of->buffers.n + 1);
    o.live = NEW_ARRAY(o.a, int64_t, o.n + 2);
    o.place = NEW_ARRAY(o.a, int, o.n + 1);
    find_makers(&o);
    int *order = NEW_ARRAY(o.a, int, o.n + 1), *other = NEW_ARRAY(o.a, int, o.n + 1);
    int *best = NEW_ARRAY(o.a, int, o.n + 1);
    for (int i = 0; i < o.n; i++) order[i] = best[i] = i;
    const Cost before = cost_of(&o, order);
    Cost cost = before;
    int64_t least = least_peak(&o);
    if (before.peak > least) {
        for (int chains = 0; chains < (o.trains ? 2 : 1); chains++) {
            take_least(&o, other, chains);
            const Cost c = cost_of(&o, other);
            if (!is_less(c, cost)) continue;
            cost = c;
            memcpy(best, other, sizeof *best * (size_t)o.n);
        }
        cost = improve(&o, best, cost, least);
    }
    const bool gains = (double)cost.peak * 100 <= (double)before.peak * (100 - GAIN_PERCENT);
    if (gains) {
        order = best;
        p->saved_bytes = before.peak - cost.peak;
    }
    if (o.trains) use_up(&o, order);
    if (gains || o.trains) set_order(&o, p, order);
    arena_free(o.a);
}
