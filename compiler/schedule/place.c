// SPDX-License-Identifier: MIT OR Apache-2.0
// Where buffers lie in the workspace. In: sizes and lifetimes. Out: offsets, such that no two buffers that are alive
// at once overlap, and the end of the last.
//
// A result may lie over an operand that dies with it, from some distance below its beginning on: its kernel has read
// the bytes that it overwrites. Where that leaves holes, kernels may go from the end to the beginning, with the result
// some distance above: of layers that follow one another every second one does, and the results go up and down.
//
// Buffers are put down one after the other, each at the lowest place where it meets none that is there already: only
// the sequence is open. The best of some plain ones (largest first, most crowded first, ...) is improved while it is
// above the lower bound: a buffer at the top has been put down too late, so it changes places in the sequence with
// one that it meets. The search ends after a number of steps, not after a time, and its random numbers are always the
// same: so is the result.
#include "schedule.h"

#include <stdlib.h>
#include <string.h>

#define MAX_STEPS INT64_C(30000000)                     // looks at a neighbour: about a tenth of a second

typedef struct Item {
    int64_t bytes, offset;
    int first, last;
    const Buffer *of;
    const Over *over; int n_over;                       // buffers that it may lie over
    uint64_t *meets; int n_meets;                       // items that are alive together with it, somewhen: bit i % 64
                                                        // of word i / 64; how many
    int64_t crowd;                                      // most bytes alive in its lifetime
} Item;

// Places that a buffer may not begin at because of another: between low and high, which may be.
typedef struct Blocked { int64_t low, high; } Blocked;

typedef struct Placing {
    Item *items; int n;
    int *there, n_there;                                // items that are put down already, by offset
    int *order; Blocked *blocked;
    int64_t steps;
    uint64_t random;
    bool ways;                                          // kernels may go from the end to the beginning
} Placing;

static uint32_t draw(Placing *s, int below) {
    s->random = s->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);     // Knuth, MMIX
    return (uint32_t)((s->random >> 33) % (uint64_t)below);
}

static bool meets(const Item *x, int item) { return x->meets[item / 64] >> item % 64 & 1; }

static int nth_met(const Item *x, int n) {
    int i = 0;
    for (;; i++) {
        if (!x->meets[i / 64]) i += 63;
        else if (meets(x, i) && n-- == 0) return i;
    }
}

// How `out` may lie over the buffer `in`; NULL: it may not.
static const Over *over(const Item *out, const Item *in) {
    for (int i = 0; i < out->n_over; i++)
        if (out->over[i].dying == in->of) return &out->over[i];
    return NULL;
}

// Where x may not be because of y, which is there.
static Blocked blocked_by(const Placing *s, const Item *x, const Item *y) {
    Blocked b = { y->offset - x->bytes, y->offset + y->bytes };
    const Over *o;
    if ((o = over(x, y))) {
        b.low = y->offset - align_up(o->distance);
        if (s->ways && align_up(o->above) < y->bytes) b.high = y->offset + align_up(o->above);
    } else if ((o = over(y, x))) {
        b.high = y->offset + align_up(o->distance);
        if (s->ways && align_up(o->above) < x->bytes) b.low = y->offset - align_up(o->above);
    }
    return b;
}

// The lowest gap among those that are there and that x meets. They come by offset: what they block is almost sorted.
static int64_t lowest_gap(Placing *s, const Item *x) {
    int n = 0;
    int64_t at = 0;
    for (int i = 0; i < s->n_there; i++) {
        if (!meets(x, s->there[i])) continue;
        const Blocked b = blocked_by(s, x, &s->items[s->there[i]]);
        int j = n++;
        for (; j > 0 && s->blocked[j - 1].low > b.low; j--) s->blocked[j] = s->blocked[j - 1];
        s->steps += n - j;
        s->blocked[j] = b;
    }
    s->steps += s->n_there;
    for (int i = 0; i < n; i++) {
        if (at <= s->blocked[i].low) break;
        if (s->blocked[i].high > at) at = s->blocked[i].high;
    }
    return at;
}

static void put(Placing *s, int item) {
    const int64_t offset = s->items[item].offset;
    int from = 0, to = s->n_there;                      // behind those that begin no higher
    while (from < to) {
        const int middle = from + (to - from) / 2;
        if (s->items[s->there[middle]].offset <= offset) from = middle + 1;
        else to = middle;
    }
    memmove(s->there + from + 1, s->there + from, sizeof(int) * (size_t)(s->n_there++ - from));
    s->there[from] = item;
}

// Gives up, with more than `enough`, once it is sure to need more.
static int64_t put_all(Placing *s, int64_t enough) {
    int64_t end = 0;
    s->n_there = 0;
    for (int i = 0; i < s->n && end <= enough; i++) {
        Item *x = &s->items[s->order[i]];
        x->offset = lowest_gap(s, x);
        put(s, s->order[i]);
        end = max64(end, x->offset + x->bytes);
    }
    return end;
}

typedef struct Keyed { int64_t key; int item; } Keyed;

static int by_key(const void *x, const void *y) {
    const Keyed *a = x, *b = y;
    return a->key != b->key ? (a->key < b->key ? 1 : -1) : a->item - b->item;
}

// Sequence number `kind`, largest key first.
static int64_t sequence_key(const Item *x, int kind) {
    int64_t length = x->last - x->first + 1;
    switch (kind) {
    case 0: return x->bytes;
    case 1: return x->bytes < INT64_MAX / length ? x->bytes * length : INT64_MAX;
    case 2: return x->crowd;
    case 3: return length;
    case 4: return -(int64_t)x->first;
    default: return x->last;
    }
}

static bool at_once(const Item *x, const Item *y) {
    int from = x->first > y->first ? x->first : y->first, to = x->last < y->last ? x->last : y->last;
    if (!x->of->gaps.n && !y->of->gaps.n) return from <= to;
    while (from <= to && !(buffer_alive(x->of, from) && buffer_alive(y->of, from))) from++;
    return from <= to;
}

static void met(Item *x, int other) {
    x->meets[other / 64] |= UINT64_C(1) << other % 64;
    x->n_meets++;
}

static void meet(Arena *a, Placing *s, const int64_t *live) {
    for (int i = 0; i < s->n; i++) s->items[i].meets = NEW_ARRAY(a, uint64_t, s->n / 64 + 1);
    for (int i = 0; i < s->n; i++) {
        Item *x = &s->items[i];
        for (int j = i + 1; j < s->n; j++) {
            if (!at_once(x, &s->items[j])) continue;
            met(x, j);
            met(&s->items[j], i);
        }
        for (int at = x->first; at <= x->last; at++)
            if (live[at] > x->crowd && buffer_alive(x->of, at)) x->crowd = live[at];
    }
}

typedef struct Best { int64_t end; int *order; int64_t *offsets; } Best;

static void keep(Placing *s, Best *b, int64_t end) {
    b->end = end;
    memcpy(b->order, s->order, sizeof(int) * (size_t)s->n);
    for (int i = 0; i < s->n; i++) b->offsets[i] = s->items[i].offset;
}

// One of those at the top, or one that it meets, changes places in the sequence with another of them.
static void change(Placing *s, const int64_t *offsets, int64_t end) {
    int tops = 0, top = 0;
    for (int i = 0; i < s->n; i++)
        if (offsets[i] + s->items[i].bytes == end && draw(s, ++tops) == 0) top = i;
    const Item *x = &s->items[top];
    int a = top, b = top;
    if (draw(s, 2)) a = nth_met(x, (int)draw(s, x->n_meets));
    while (b == a) b = draw(s, 4) ? nth_met(x, (int)draw(s, x->n_meets)) : (int)draw(s, s->n);
    for (int i = 0; i < s->n; i++)
        if (s->order[i] == a) s->order[i] = b;
        else if (s->order[i] == b) s->order[i] = a;
}

static void improve(Placing *s, Best *b, int64_t bound) {
    while (b->end > bound && s->steps < MAX_STEPS) {
        memcpy(s->order, b->order, sizeof(int) * (size_t)s->n);
        for (uint32_t i = 0, times = 1 + draw(s, 3); i < times; i++) change(s, b->offsets, b->end);
        int64_t end = put_all(s, b->end);
        s->steps += 4 * s->n;
        if (end <= b->end) keep(s, b, end);
    }
}

// Bytes of one buffer that lie in another, which begins so far behind it.
static int64_t in_common(int64_t first, int64_t second, int64_t distance) {
    const int64_t d = align_up(distance), both = max64(first, second + (d > 0 ? d : 0));
    return max64(first + second - both, 0);
}

// No placement needs less: most bytes alive at once, less what results share with operands that die there.
static int64_t least_live(Arena *a, const int64_t *live, int moments, const Placing *s) {
    int64_t most = 0, *shared = NEW_ARRAY(a, int64_t, moments + 1);
    for (int i = 0; i < s->n; i++) {
        const Buffer *x = s->items[i].of;
        for (int j = 0; j < s->items[i].n_over; j++) {
            const Over *o = &s->items[i].over[j];
            if (o->dying->bank != x->bank) continue;
            const int64_t out = s->items[i].bytes, in = align_up(o->dying->bytes),
                          both = max64(in_common(out, in, o->distance), in_common(in, out, o->above));
            for (int at = x->first; at <= x->last && at <= o->dying->last; at++)
                if (buffer_alive(x, at) && buffer_alive(o->dying, at)) shared[at] += both;
        }
    }
    for (int at = 0; at < moments; at++)
        if (live[at] - shared[at] > most) most = live[at] - shared[at];
    return most;
}

// Buffers as items that know which others they meet; *bound: no placement needs less.
static Placing *placing_new(Arena *a, int n, Buffer *const *buffers, int64_t *bound) {
    Placing *s = NEW(a, Placing);
    *s = (Placing){ .items = NEW_ARRAY(a, Item, n + 1),
        .n = n,
        .there = NEW_ARRAY(a, int, n + 1),
        .order = NEW_ARRAY(a, int, n + 1),
        .blocked = NEW_ARRAY(a, Blocked, n + 1) };
    int moments = 0;
    for (int i = 0; i < n; i++) {
        const Buffer *of = buffers[i];
        s->items[i] = (Item){ .bytes = align_up(of->bytes), .first = of->first, .last = of->last, .of = of,
            .over = of->over_dying.at, .n_over = of->over_dying.n };
        if (buffers[i]->last >= moments) moments = buffers[i]->last + 1;
    }
    int64_t *live = NEW_ARRAY(a, int64_t, moments + 1);
    for (int i = 0; i < n; i++)
        for (int at = s->items[i].first; at <= s->items[i].last; at++) {
            if (!buffer_alive(buffers[i], at)) continue;
            live[at] += s->items[i].bytes;
        }
    *bound = least_live(a, live, moments, s);
    meet(a, s, live);
    return s;
}

static int64_t place(Arena *a, Placing *s, int64_t bound, bool improves, bool ways, int64_t *offsets) {
    const int n = s->n;
    Best best = { INT64_MAX, NEW_ARRAY(a, int, n + 1), offsets };
    Keyed *sorted = NEW_ARRAY(a, Keyed, n + 1);
    s->random = 1;
    s->steps = 0;
    s->ways = ways;
    for (int kind = 0; kind < 6 && best.end > bound; kind++) {
        for (int i = 0; i < n; i++) sorted[i] = (Keyed){ sequence_key(&s->items[i], kind), i };
        qsort(sorted, (size_t)n, sizeof *sorted, by_key);
        for (int i = 0; i < n; i++) s->order[i] = sorted[i].item;
        int64_t end = put_all(s, INT64_MAX);
        if (end < best.end) keep(s, &best, end);
    }
    if (improves) improve(s, &best, bound);
    return n ? best.end : 0;
}

static void set_offsets(int n, Buffer *const *buffers, const int64_t *offsets) {
    for (int i = 0; i < n; i++) buffers[i]->offset = offsets[i];
}

// May any kernel go from the end to the beginning, with its result above what dies?
static bool has_ways(const Placing *s) {
    for (int i = 0; i < s->n; i++)
        for (int j = 0; j < s->items[i].n_over; j++) {
            const Over *o = &s->items[i].over[j];
            if (align_up(o->above) < align_up(o->dying->bytes)) return true;
        }
    return false;
}

int64_t place_buffers(Arena *a, int n, Buffer *const *buffers, int64_t *bound) {
    int64_t *forward = NEW_ARRAY(a, int64_t, n + 1), *both = NEW_ARRAY(a, int64_t, n + 1);
    Placing *s = placing_new(a, n, buffers, bound);
    const int64_t end = place(a, s, *bound, true, false, forward);
    const int64_t less = end > *bound && has_ways(s) ? place(a, s, *bound, true, true, both) : end;
    set_offsets(n, buffers, less < end ? both : forward);
    return less < end ? less : end;
}

int64_t place_roughly(Arena *a, int n, Buffer *const *buffers) {
    int64_t bound, *offsets = NEW_ARRAY(a, int64_t, n + 1);
    Placing *s = placing_new(a, n, buffers, &bound);
    const int64_t end = place(a, s, bound, false, false, offsets);
    set_offsets(n, buffers, offsets);
    return end;
}
