// SPDX-License-Identifier: MIT OR Apache-2.0
// Products of few rows (templates/glsl/rows.comp): which they are, and how many threads share out columns and terms.
//
// In: a product found in a loop nest. Out: its holes. Memory bounds it: the matrix passes once, at the machine's speed,
// if enough of it is on its way at a time. A step of a workgroup is a way to memory and back and brings 16 elements a
// thread, so that all cores want to be full of workgroups with few steps each, which shares of the terms give them;
// those cost the time until they have met. The model below says so in microseconds.
#include "blocks.h"
#include "tile.h"
#include "schedule/cpu/templates.h"
#include "schedule/cpu/tune.h"
#include "schedule/schedule.h"

enum { MOST_ROWS = 8, LEAST_COLUMNS = 16, LEAST_TERMS = 16,
       RESIDENT = 16,                                   // workgroups of a core at a time
       NEIGHBOURS = 4 };                                // threads that read together what memory brings together

// threads: 128, which every device has
const RowThreads gpu_row_forms[ROW_FORMS] = { { 128, 1, 1 }, { 32, 4, 1 }, { 8, 16, 1 }, { 2, 64, 1 }, { 1, 128, 1 } };

double gpu_rows_time(const ProductShape *r, const RowThreads *c) {
    const int across = c->across, along = c->along, together = r->wide == 1 ? along : across;
    const int64_t shares = c->shares;
    const double groups = (double)r->batch * (double)(ceil_div(r->n, 4 * across) * shares),
                 waves = (double)(int64_t)(groups / (gpu_machine.cores * RESIDENT) + 1),
                 steps = (double)ceil_div(r->k, 4 * along * shares),
                 bytes = (double)r->batch * (double)r->n * (double)r->k * (r->bytes ? r->bytes : 4),
                 spread = together < NEIGHBOURS ? (double)NEIGHBOURS / together : 1,
                 parts = (double)r->batch * (double)(r->m * r->n * shares) * 4,
                 stream = bytes * spread / gpu_machine.stream, ways = waves * steps * gpu_machine.way;
    return stream + ways + (shares > 1 ? gpu_machine.meet + 2 * parts / gpu_machine.bytes : 0);
}

static bool takes(const Kernel *k) {
    const Coordinate *of = k->product.of;
    return of[COORD_M].size <= MOST_ROWS && of[COORD_N].size >= LEAST_COLUMNS && gpu_terms(k) >= LEAST_TERMS
        && of[COORD_B].size > 0 && of[COORD_B].size <= MAX_GROUPS;
}

// Along what four elements of the right factor are read, at once or one by one; 0: along columns, one by one; -1: there
// is no way
static int way_of(Arena *a, Kernel *k) {
    if (!takes(k)) return -1;
    const Lies lies = gpu_lies(a, k, 1, COORD_N);
    if (lies.wide) return lies.wide;
    if (lies.guarded) return -1;
    if (k->product.bytes) return 0;
    return lies.terms && k->product.of[COORD_K].size % 4 == 0 ? 1 : lies.own ? 0 : -1;
}

// Of an element of the right factor, where that is read four at a time.
static int bytes_of(const Plan *plan, const Product *p) {
    if (!p->fours[1].n) return 0;
    Value *v = (Value *)(uintptr_t)p->fours[1].value[0];
    const Buffer *b = plan_value(plan, v).buffer;
    return (int)dtype_size(b ? b->element : v->type.dtype);
}

bool gpu_rows(const Plan *plan, Kernel *k) {
    Arena *a = plan->arena;
    const Options *o = plan->options;
    Product *p = &k->product;
    const Coordinate *of = p->of;
    const bool turned = of[COORD_N].size < of[COORD_M].size;
    if (turned) product_turn(p);
    ProductShape s = { of[COORD_B].size, of[COORD_M].size, of[COORD_N].size, gpu_terms(k), way_of(a, k), 0 };
    s.bytes = bytes_of(plan, p);
    RowThreads best = { 0 };
    double least = 0;
    for (const RowThreads *form = gpu_row_forms; form < gpu_row_forms + ROW_FORMS && s.wide >= 0; form++)
        for (RowThreads one = *form; one.shares <= MOST_ROW_SHARES; one.shares *= 2) {
            if (!gpu_rows_fit(&s, &one)) continue;
            const double time = gpu_rows_time(&s, &one);
            if (best.shares && time >= least) continue;
            least = time;
            best = one;
        }
    if (!best.shares && turned) product_turn(p);
    if (!best.shares) return false;
    const int wide = gpu_lies(a, k, 0, COORD_M).wide;
    gpu_choose(a, k, o, &s, arena_printf(a, "%s a=%d b=%d", p->bytes ? " bytes" : "", wide == 1, s.wide),
        &tune_rows, gpu_rows_fit, &best, sizeof best);
    product_lift(k);
    p->few = true;
    p->shares = best.shares;
    p->blocks = s.batch * ceil_div(s.n, 4 * best.across);
    if (best.shares > 1) k->scratch_bytes = p->blocks * best.shares * s.m * best.across * 4 * (int64_t)sizeof(float);
    TEMPLATE_HOLES(a, k, { "BATCH", s.batch }, { "M", s.m }, { "N", s.n }, { "K", s.k }, { "ACROSS", best.across },
        { "ALONG", best.along }, { "SHARES", best.shares }, { "A_WIDE", wide == 1 }, { "B_WIDE", s.wide });
    return true;
}
