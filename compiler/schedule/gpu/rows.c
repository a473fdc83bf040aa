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
#include "schedule/schedule.h"

enum { MOST_ROWS = 8, LEAST_COLUMNS = 16, LEAST_TERMS = 16, MOST_SHARES = 64,
       RESIDENT = 16,                                   // workgroups of a core at a time
       NEIGHBOURS = 4 };                                // threads that read together what memory brings together

// threads: 128, which every device has
static const struct { int across, along; } forms[] = { { 128, 1 }, { 32, 4 }, { 8, 16 }, { 2, 64 }, { 1, 128 } };

typedef struct Rows { int64_t batch, m, n, k; int wide; } Rows;

static double form_time(const Rows *r, size_t form, int64_t shares) {
    const int across = forms[form].across, along = forms[form].along, together = r->wide == 1 ? along : across;
    const double groups = (double)r->batch * (double)(ceil_div(r->n, 4 * across) * shares),
                 waves = (double)(int64_t)(groups / (gpu_machine.cores * RESIDENT) + 1),
                 steps = (double)ceil_div(r->k, 4 * along * shares),
                 bytes = (double)r->batch * (double)r->n * (double)r->k * 4,
                 spread = together < NEIGHBOURS ? (double)NEIGHBOURS / together : 1,
                 parts = (double)r->batch * (double)(r->m * r->n * shares) * 4,
                 stream = bytes * spread / gpu_machine.stream, ways = waves * steps * gpu_machine.way;
    return stream + ways + (shares > 1 ? gpu_machine.meet + 2 * parts / gpu_machine.bytes : 0);
}

static bool takes(const Coordinate *of) {
    return of[COORD_M].size <= MOST_ROWS && of[COORD_N].size >= LEAST_COLUMNS && of[COORD_K].size >= LEAST_TERMS
        && of[COORD_B].size > 0 && of[COORD_B].size <= MAX_GROUPS;
}

// Along what four elements of the right factor are read, at once or one by one; 0: along columns, one by one; -1: there
// is no way
static int way_of(Arena *a, Kernel *k) {
    if (!takes(k->product.of)) return -1;
    const Lies lies = gpu_lies(a, k, 1, COORD_N);
    if (lies.wide) return lies.wide;
    if (lies.guarded) return -1;
    return lies.terms && k->product.of[COORD_K].size % 4 == 0 ? 1 : lies.own ? 0 : -1;
}

bool gpu_rows(Arena *a, Kernel *k) {
    Product *p = &k->product;
    const Coordinate *of = p->of;
    const bool turned = of[COORD_N].size < of[COORD_M].size;
    if (turned) product_turn(p);
    const Rows r = { of[COORD_B].size, of[COORD_M].size, of[COORD_N].size, of[COORD_K].size, way_of(a, k) };
    size_t best = 0;
    int64_t best_shares = 0;
    double least = 0;
    for (size_t i = 0; i < COUNT(forms) && r.wide >= 0; i++)
        for (int64_t shares = 1; shares <= MOST_SHARES; shares *= 2) {
            const int64_t groups = ceil_div(r.n, 4 * forms[i].across);
            const double time = form_time(&r, i, shares);
            if (shares > 1 && shares * 4 * forms[i].along > r.k) break;
            if (groups > MAX_GROUPS || (shares > 1 && groups * r.batch > MAX_COUNTERS)) continue;
            if (best_shares && time >= least) continue;
            least = time;
            best = i;
            best_shares = shares;
        }
    if (!best_shares && turned) product_turn(p);
    if (!best_shares) return false;
    const int wide = gpu_lies(a, k, 0, COORD_M).wide, across = forms[best].across;
    product_lift(k);
    p->few = true;
    p->shares = best_shares;
    p->blocks = r.batch * ceil_div(r.n, 4 * across);
    if (best_shares > 1) k->scratch_bytes = p->blocks * best_shares * r.m * across * 4 * (int64_t)sizeof(float);
    TEMPLATE_HOLES(a, k, { "BATCH", r.batch }, { "M", r.m }, { "N", r.n }, { "K", r.k }, { "ACROSS", across },
        { "ALONG", forms[best].along }, { "SHARES", best_shares }, { "A_WIDE", wide == 1 }, { "B_WIDE", r.wide });
    return true;
}
