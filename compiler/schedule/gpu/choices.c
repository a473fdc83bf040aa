// SPDX-License-Identifier: MIT OR Apache-2.0
// What `burncc tune` may choose of products on GPUs, as schedule/cpu/forms.c and candidates.c for processors: which
// blocks and threads the templates allow, how a record spells them, what it knows a kernel by, and what is worth
// measuring. First the tables' rows, with every number of shares, those first that the model of time thinks fastest;
// then what is around the best.
#include "blocks.h"
#include "matrix.h"
#include "schedule/cpu/templates.h"
#include "schedule/cpu/tune.h"

#include <stdlib.h>
#include <string.h>

#define OF_BLOCK(T, at) \
    { "bm", offsetof(T, at bm), false }, { "bn", offsetof(T, at bn), false }, { "bk", offsetof(T, at bk), false }, \
        { "tm", offsetof(T, at tm), false }, { "tn", offsetof(T, at tn), false }, \
        { "slices", offsetof(T, at slices), false }
#define OF_STAGES { "stages", offsetof(BlockShares, block.stages), false }
#define OF_UNITS(f) { #f, offsetof(MatrixShares, block.f), false }
#define CPU_FORM(name, ...)
#define GPU_FORM TUNE_FORM
#include "schedule/cpu/forms.def"

// ---------------------------------------------------------------- what templates and devices allow
// ROOM: of shared memory, for blocks and then for sums: 32 KiB, which devices of Vulkan 1.2 have, less a flag's
enum { LEAST_THREADS = 16, MOST_THREADS = 256, ROOM = (32 << 10) - 256, LEAST_SIDE = 32, MOST_SIDE = 256,
       MOST_DEPTH = 64, MOST_SLICES = 8 };

static bool within(int64_t v, int64_t lo, int64_t hi) { return lo <= v && v <= hi; }
static bool is_power(int64_t v) { return v > 0 && !(v & (v - 1)); }

static int64_t pool_bytes(const Block *b) {
    return (int64_t)b->slices * b->bk * (b->bm / 4 + b->bn / 4 + 2) * 4 * (int64_t)sizeof(float);
}

static int64_t sums_bytes(const Block *b) {
    return b->slices > 1 ? (int64_t)b->bm * b->bn * (int64_t)sizeof(float) : 0;
}

static bool block_fits(const Block *b) {
    return is_power(b->bm) && within(b->bm, LEAST_SIDE, MOST_SIDE) && is_power(b->bn)
        && within(b->bn, LEAST_SIDE, MOST_SIDE) && is_power(b->bk) && within(b->bk, 4, MOST_DEPTH)
        && (b->tm == 4 || b->tm == 8) && (b->tn == 4 || b->tn == 8) && is_power(b->slices)
        && b->slices <= MOST_SLICES
        && within((int64_t)(b->bm / b->tm) * (b->bn / b->tn) * b->slices, LEAST_THREADS, MOST_THREADS);
}

bool gpu_block_fits(const void *shape, const void *block) {
    const ProductShape *s = shape;
    const Block *b = block;
    return block_fits(b) && pool_bytes(b) <= ROOM && sums_bytes(b) <= ROOM
        && gpu_blocks_reach(s->m, s->n, b->bm, b->bn);
}

bool gpu_shares_fit(const void *shape, const void *shares) {
    const ProductShape *s = shape;
    const BlockShares *c = shares;
    const Block *b = &c->block;
    if (!block_fits(b) || !within(b->stages, 1, 2) || b->stages * pool_bytes(b) > ROOM || sums_bytes(b) > ROOM)
        return false;
    if (!gpu_blocks_reach(s->m, s->n, b->bm, b->bn)) return false;
    if (c->shares == 1) return true;
    const int64_t blocks = s->batch * ceil_div(s->m, b->bm) * ceil_div(s->n, b->bn);
    return within(c->shares, 2, MOST_BLOCK_SHARES) && c->shares * b->bk * b->slices < s->k
        && c->shares * s->batch <= MAX_GROUPS && blocks <= MAX_COUNTERS
        && blocks * c->shares * b->bm * b->bn * (int64_t)sizeof(float) <= INT32_MAX;
}

bool gpu_rows_fit(const void *shape, const void *threads) {
    const ProductShape *s = shape;
    const RowThreads *c = threads;
    const bool powers = is_power(c->across) && is_power(c->along);
    if (!powers || !within((int64_t)c->across * c->along, LEAST_THREADS, MOST_THREADS)) return false;
    const int64_t groups = ceil_div(s->n, 4 * c->across),
                  sums = s->m * c->across * c->along * 4 * (int64_t)sizeof(float);
    return groups <= MAX_GROUPS && sums <= ROOM && within(c->shares, 1, MOST_ROW_SHARES)
        && (c->shares == 1 || (c->shares * 4 * c->along <= s->k && groups * s->batch <= MAX_COUNTERS));
}

// ---------------------------------------------------------------- records
void gpu_choose(Arena *a, Kernel *k, const Options *o, const ProductShape *s, const char *more, const TuneForm *form,
    bool (*fits)(const void *shape, const void *tiles), void *tiles, size_t bytes) {
    Record *r = tune_record(a, k, o,
        arena_printf(a, "%s batch=%lld m=%lld n=%lld k=%lld%s%s%s", form->algorithm, (long long)s->batch,
            (long long)s->m, (long long)s->n, (long long)s->k, more, o->precision ? " precision=" : "",
            o->precision ? o->precision : ""));
    void *recorded = arena_copy(a, tiles, bytes);
    MatrixShares of_units;
    const bool units = r && o->precision && form != &tune_rows && gpu_matrix_recorded(r->choice, &of_units)
        && gpu_matrix_fits(s, &of_units);
    k->tuned = units || (r && tune_parse(form, r->choice, recorded) && fits(s, recorded));
    if (r && !k->tuned) tune_refuse(k, r);
    if (k->tuned && !units) memcpy(tiles, recorded, bytes);
    k->choice = units ? r->choice : tune_text(a, form, tiles);
}

// ---------------------------------------------------------------- what is worth measuring
typedef struct Candidate { double time; const char *choice; } Candidate;
typedef VEC(Candidate) Candidates;

static int by_time(const void *x, const void *y) {
    const Candidate *a = x, *b = y;
    return a->time != b->time ? (a->time > b->time) - (a->time < b->time) : strcmp(a->choice, b->choice);
}

static void table_of(Arena *a, const ProductShape *s, const TuneForm *form, Candidates *out) {
    for (const Block *b = gpu_blocks; b < gpu_blocks + BLOCKS && form == &tune_block; b++)
        if (gpu_block_fits(s, b))
            VEC_PUSH(a, *out,
                (Candidate){ gpu_block_time(b, (double)s->batch, s->m, s->n, s->k), tune_text(a, form, b) });
    for (const Block *b = gpu_blocks; b < gpu_blocks + BLOCKS && form == &tune_product; b++)
        for (BlockShares c = { *b, 1 }; c.shares <= MOST_BLOCK_SHARES; c.shares *= 2)
            if (gpu_shares_fit(s, &c))
                VEC_PUSH(a, *out, (Candidate){ gpu_shares_time(s, &c), tune_text(a, form, &c) });
    for (const RowThreads *r = gpu_row_forms; r < gpu_row_forms + ROW_FORMS && form == &tune_rows; r++)
        for (RowThreads c = *r; c.shares <= MOST_ROW_SHARES; c.shares *= 2)
            if (gpu_rows_fit(s, &c)) VEC_PUSH(a, *out, (Candidate){ gpu_rows_time(s, &c), tune_text(a, form, &c) });
}

// On matrix units, the fastest first as the model of time has it.
static void units_of(Arena *a, const Kernel *k, const ProductShape *s, Candidates *out) {
    for (int i = 0; i < MATRIX_BLOCKS && k->units.block && !k->units.pieces; i++)
        for (MatrixShares c = { gpu_matrix_blocks[i], 1 }; c.shares <= MOST_MATRIX_SHARES; c.shares *= 2)
            if (gpu_matrix_fits(s, &c))
                VEC_PUSH(a, *out, (Candidate){ gpu_matrix_time(s, &c), tune_text(a, &tune_units, &c) });
    if (out->n) qsort(out->at, (size_t)out->n, sizeof *out->at, by_time);
}

static void around(Arena *a, const ProductShape *s, const TuneForm *form, const char *best, Choices *out) {
    Block block = { 0 };
    BlockShares shares = { .shares = 1 };
    RowThreads threads = { 0 };
    MatrixShares units;
    if (gpu_matrix_recorded(best, &units)) {
        tune_neighbours(a, &tune_units, &units, sizeof units, gpu_matrix_fits, s, out);
        return;
    }
    if (form == &tune_block && tune_parse(form, best, &block))
        tune_neighbours(a, form, &block, sizeof block, gpu_block_fits, s, out);
    if (form == &tune_product && tune_parse(form, best, &shares))
        tune_neighbours(a, form, &shares, sizeof shares, gpu_shares_fit, s, out);
    if (form == &tune_rows && tune_parse(form, best, &threads))
        tune_neighbours(a, form, &threads, sizeof threads, gpu_rows_fit, s, out);
}

void gpu_candidates(Arena *a, const Kernel *k, const char *best, Choices *out) {
    const TuneForm *form = k->kind == KERNEL_GEMM ? &tune_block : k->product.few ? &tune_rows : &tune_product;
    const ProductShape s = { template_hole_value(k, "BATCH"), template_hole_value(k, "M"),
        template_hole_value(k, "N"), template_hole_value(k, "K"),
        form == &tune_rows ? (int)template_hole_value(k, "B_WIDE") : 0, 0 };
    Candidates all = { 0 };
    if (best) {
        around(a, &s, form, best, out);
        return;
    }
    // which of the two kernels runs, the device decides
    units_of(a, k, &s, &all);
    for (int i = 0; i < all.n; i++) VEC_PUSH(a, *out, all.at[i].choice);
    all.n = 0;
    table_of(a, &s, form, &all);
    if (all.n) qsort(all.at, (size_t)all.n, sizeof *all.at, by_time);
    for (int i = 0; i < all.n; i++) VEC_PUSH(a, *out, all.at[i].choice);
}
