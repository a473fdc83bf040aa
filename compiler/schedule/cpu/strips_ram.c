// SPDX-License-Identifier: MIT OR Apache-2.0
// Strips for a budget (--ram): where a plan takes more, the groups of kernels that go a few rows at a time, so that of
// what lies between them only those rows are in memory. In: a plan with lifetimes, kernel by kernel. Out: Kernel.strips
// of a choice that needs no more than the budget with the least moved and the fewest calls, or, where there is none, of
// one that needs the least.
//
// What a group needs at once is what is alive beside it, the rows between its members, its input and its result, which
// may lie over the input. No sum is cut and nothing is computed twice: results have the same bits.
#include "strips.h"
#include "templates.h"

enum { CALL_COST = 256 };                               // bytes moved in the time of a call

// What the plan without strips has: buffers with a place of their own in the workspace.
typedef struct Alive { const Buffer *of; int64_t bytes; int first, last; } Alive;
typedef struct Cost { int64_t over, work; } Cost;       // bytes past the budget; work that is not there without strips
typedef struct Choice { Cost cost; int length; int64_t pixels; } Choice;
typedef struct Budget {
    Plan *p;
    Arena *a;
    Alive *alive; int n;
    int64_t ram;
} Budget;

static bool less(Cost x, Cost y) { return x.over != y.over ? x.over < y.over : x.work < y.work; }

static Budget *budget_of(Arena *a, Plan *p) {
    Budget *b = NEW(a, Budget);
    *b = (Budget){ .p = p, .a = a, .alive = NEW_ARRAY(a, Alive, p->buffers.n + 1) };
    for (int i = 0; i < p->buffers.n; i++) {
        const Buffer *x = p->buffers.at[i];
        if (x->place == PLACE_WORK) b->alive[b->n++] = (Alive){ x, x->bytes, x->first, x->last };
    }
    return b;
}

// ---------------------------------------------------------------- a group's result over its input
static int64_t element_bytes(const Value *v) { return (int64_t)dtype_size(v->type.dtype); }

// No pixel from `at` on reads a lower element of the input.
static int64_t window_from(const Graph *g, const Kernel *k, int64_t at) {
    const Convolution c = window_shape(g, k);
    int64_t lowest = INT64_MAX, row = at / c.out[2], pixels = c.batch * c.out[1] * c.out[2];
    for (int i = 0; i < 2; i++) {
        int64_t p = i ? (row + 1) * c.out[2] : at, of = p / c.out[2];
        if (p >= pixels) break;
        int64_t h = max64(0, of % c.out[1] * c.stride[1] - c.pad[1]),
                w = max64(0, p % c.out[2] * c.stride[2] - c.pad[2]),
                from = of / c.out[1] * c.x_batch + h * c.x_axis[1] + w * c.x_axis[2];
        lowest = from < lowest ? from : lowest;
    }
    return lowest;
}

static bool loads(const Kernel *k, const Value *v) {
    for (int i = 0; i < k->loads.n; i++)
        if (k->loads.at[i] == v) return true;
    return false;
}

// The same, in bytes of v, of a member in strips.
static bool reads_from(const Plan *p, const Strips *s, int m, const Value *v, int64_t at, int64_t *byte) {
    const Kernel *k = s->member[m];
    Reach r;
    if (k->kind != KERNEL_LOOP && loads(k, v)) {        // added to its own result (strips_distance)
        *byte = at * s->width[m] * element_bytes(v);
        return true;
    }
    if (k->kind == KERNEL_LOOP) {
        if (!loop_reach(k, v, &r)) return false;
        *byte = reach_low(&r, at / s->pixels[m] * s->steps[m]) * element_bytes(v);
        return true;
    }
    // one more pixel at the end of a product's rows (Member.before)
    const int64_t from = window_from(p->graph, k, at && k->template == &template_dot_q8 ? at - 1 : at);
    *byte = from == INT64_MAX ? from : from * element_bytes(v);
    return true;
}

// All that the last member stores in a step, it stores before the others read for the next one.
bool strips_distance(const Plan *p, const Strips *s, const Value *in, int64_t *bytes) {
    const int last = s->n - 1, line = 2 * s->n - 1;
    const int64_t end = s->line.at[(s->part[1] - 1) * line + last],
                  pixel = s->width[last] * element_bytes(s->member[last]->writes.at[0]);
    bool reads = false;
    int64_t distance = -((int64_t)1 << 40);
    for (int m = 0; m <= last; m++) {
        const Kernel *k = s->member[m];
        const bool loop = k->kind == KERNEL_LOOP, loaded = loads(k, in);
        int64_t own = 0, from;
        if ((!loop && !template_may_over(k)) || s->parts > 1) return false;
        if (!loaded && k->operand[0] != in) continue;
        reads = true;
        if (m == last) {
            if (loaded ? !kernel_in_place(p->arena, k, in) : !template_distance(p->graph, k, in, &own)) return false;
            distance = max64(distance, own);
        } else if (loaded && !loop && !kernel_in_place(p->arena, k, in)) return false;
        for (int i = 1; i < s->part[1] && m < last; i++) {
            const int64_t stored = s->line.at[i * line + last], next = s->line.at[i * line + m];
            if (!reads_from(p, s, m, in, next, &from)) return false;
            if (stored < end && from < INT64_MAX) distance = max64(distance, stored * pixel - from);
        }
    }
    *bytes = distance;
    return reads;
}

// ---------------------------------------------------------------- what a group needs
static bool is_inner(const Trial *t, const Buffer *b) {
    for (int i = 0; i + 1 < t->n; i++)
        if (plan_value(t->p, t->m[i].k->writes.at[0]).buffer == b) return true;
    return false;
}

static bool lies_over(const Budget *b, const Kernel *last, const Strips *s, const Value *v, int64_t *distance) {
    if (s->n > 1) return strips_distance(b->p, s, v, distance);
    *distance = 0;
    if (kernel_in_place(b->a, last, v)) return true;
    return template_distance(b->p->graph, last, v, distance);
}

// Bytes that the result and an input that dies in the group have in common.
static int64_t shared(const Budget *b, const Strips *s, int from) {
    const Kernel *last = s->member[s->n - 1];
    const Buffer *out = last->writes.n == 1 ? plan_value(b->p, last->writes.at[0]).buffer : NULL;
    int64_t most = 0, distance;
    for (int m = 0; m < s->n && out && out->place == PLACE_WORK; m++)
        for (int i = 0; i < s->member[m]->reads.n; i++) {
            const Value *v = s->member[m]->reads.at[i];
            const Buffer *in = plan_value(b->p, v).buffer;
            if (!in || in->place != PLACE_WORK || in->last >= from + s->n || in->first >= from
                || !lies_over(b, last, s, v, &distance))
                continue;
            int64_t both = max64(out->bytes, in->bytes + max64(distance, 0)), above = NOT_ABOVE;
            if (s->n == 1 && template_distance(b->p->graph, last, v, &distance))
                above = template_above(b->p->graph, last);
            if (both > max64(in->bytes, out->bytes + max64(above, 0)))
                both = max64(in->bytes, out->bytes + max64(above, 0));
            most = max64(most, in->bytes + out->bytes - both);
        }
    return most;
}

// All that is alive in the group is from its beginning to its end.
static Cost cost_of(const Budget *b, Trial *t, int from, int64_t pixels) {
    Arena *own = arena_new();
    int64_t needs = 0;
    Cost c = { 0 };
    Strips s = { .n = t->n, .parts = 1, .part = NEW_ARRAY(own, int, 2), .width = NEW_ARRAY(own, int64_t, t->n),
        .member = NEW_ARRAY(own, Kernel *, t->n), .steps = NEW_ARRAY(own, int64_t, t->n),
        .pixels = NEW_ARRAY(own, int64_t, t->n) };
    for (int i = 0; i < b->n; i++)
        if (b->alive[i].first < from + t->n && b->alive[i].last >= from && !is_inner(t, b->alive[i].of))
            needs += b->alive[i].bytes;
    for (int i = 0; i < t->n; i++) {
        s.member[i] = t->m[i].k;
        s.width[i] = t->m[i].width;
        s.steps[i] = t->m[i].steps;
        s.pixels[i] = t->m[i].grain;
    }
    if (t->n > 1) {
        strips_walk(own, t, pixels, &s);
        for (int i = 0; i + 1 < t->n; i++) needs += strips_buffer(t, i);
        c.work = t->moved + t->steps * t->n * CALL_COST;
    }
    needs -= shared(b, &s, from);
    c.over = needs > b->ram ? needs - b->ram : 0;
    arena_free(own);
    return c;
}

// The largest of what follows and this group: its excess; the sum of their work.
static Cost with(Cost group, Cost rest) {
    return (Cost){ max64(group.over, rest.over), group.work + rest.work };
}

static void try_sizes(const Budget *b, Trial *t, int from, Choice *best, const Choice *rest) {
    const Member *last = &t->m[t->n - 1];
    for (int64_t unit = t->n > 1 ? strips_unit(t) : last->total, size = unit;; size *= 2) {
        Choice c = { with(cost_of(b, t, from, size), rest->cost), t->n, size };
        if (!best->length || less(c.cost, best->cost)) *best = c;
        if (t->n == 1 || size >= last->total) return;
    }
}

static void choose(const Budget *b) {
    Plan *p = b->p;
    int n = p->kernels.n;
    Choice *best = NEW_ARRAY(b->a, Choice, n + 1);
    Trial t = { .p = p, .parts = 1 };
    for (int i = n - 1; i >= 0; i--) {
        int most = strips_reach(&t, i);
        for (t.n = 1; t.n == 1 || t.n <= most; t.n++) {
            t.m[0].k = p->kernels.at[i];
            if (!strips_closed(&t)) continue;
            try_sizes(b, &t, i, &best[i], &best[i + t.n]);
        }
    }
    for (int i = 0; i < n; i += best[i].length) {
        if (best[i].length < 2) continue;
        strips_reach(&t, i);
        t.n = best[i].length;
        strips_make(p, &t, best[i].pixels);
    }
}

// ---------------------------------------------------------------- the plan
static void undo(Plan *p, const Budget *b) {
    for (int i = 0; i < p->kernels.n; i++) {
        Kernel *k = p->kernels.at[i];
        if (k->strips && k->template) k->holes.n--;     // STRIP
        k->strips = NULL;
    }
    for (int i = 0; i < b->n; i++) ((Buffer *)(uintptr_t)b->alive[i].of)->bytes = b->alive[i].bytes;
}

// More than what there is where the regions (--region) are too small, however the workspace is shared out to them.
static int64_t wanted(const Plan *p, int64_t ram) {
    return p->bank_excess && p->work_bytes < ram + p->bank_excess ? ram + p->bank_excess : p->work_bytes;
}

typedef struct Search {
    Plan *p;
    Arena *a;
    int64_t ram, wants, least, aim_of_least;            // bytes: there are, of the last try, fewest, where that aimed
    bool ok;
} Search;

// Plans strips that aim at so many bytes. Do they keep to what there is? Else, or not `kept`, they are undone.
static bool aims(Search *s, int64_t aim, bool kept) {
    memory_lifetimes(s->p);
    Budget *b = budget_of(s->a, s->p);
    b->ram = aim;
    choose(b);
    s->ok = memory_plan(s->p);
    s->wants = wanted(s->p, s->ram);
    if (s->wants < s->least) {
        s->least = s->wants;
        s->aim_of_least = aim;
    }
    const bool fits = s->ok && s->wants <= s->ram;
    if (!kept && s->ok) undo(s->p, b);
    return fits;
}

// Holes between buffers, and regions between which none is divided, make a plan larger than what is alive: less is
// aimed at then, a little at first; where that does not do, at the least, and at as much above that as does.
bool strips_within(Plan *p, int64_t ram) {
    enum { TRIES = 6, HALVES = 4 };
    if (!memory_plan(p)) return false;
    ram -= plan_slack(p);
    if (wanted(p, ram) <= ram || p->options->no_fuse) return true;
    Arena *a = arena_new();
    Search s = { .p = p, .a = a, .ram = ram, .least = INT64_MAX, .ok = true };
    int64_t aim = ram, does = 0;
    bool fits = false;
    for (int i = 0; i < TRIES && s.ok && !fits; i++) {
        if (i) aim -= (s.wants - ram) / 2 + 64;
        fits = aims(&s, aim, false);
    }
    if (s.ok && !fits && aim > 0 && (fits = aims(&s, 0, false))) {
        for (int i = 0; i < HALVES && s.ok; i++) {
            const int64_t half = (does + aim) / 2;
            if (aims(&s, half, false)) does = half;
            else aim = half;
        }
        aim = does;
    }
    if (s.ok) aims(&s, fits ? aim : s.aim_of_least, true);
    arena_free(a);
    return s.ok;
}
