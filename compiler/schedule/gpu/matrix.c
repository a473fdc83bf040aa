// SPDX-License-Identifier: MIT OR Apache-2.0
// Which block a workgroup computes on a GPU's matrix units (templates/glsl/gemm_mma.comp).
//
// In: a product whose factors have 16 bits. Out: a row of the table, and shares. A block takes a step for bk terms,
// whose way from memory is as long as the arithmetic of two steps before it. A core holds one block of most rows at a
// time, since what such programs have of its shared memory is 48 KiB: so a product has rounds, and the blocks of the
// last one should be many. Products of few blocks want some that several subgroups share the terms of, and several
// workgroups for a block.
#include "matrix.h"
#include "tile.h"
#include "ir/expr.h"
#include "schedule/cpu/tune.h"
#include "schedule/schedule.h"

#include <math.h>

// None wants more than 256 threads and 48 KiB of shared memory. As measured on an H100, but for the last
// and for 128 x 64, which is 64 x 128 turned.
const MatrixBlock gpu_matrix_blocks[MATRIX_BLOCKS] = {
    { 128, 256, 16, 64, 64, 1, 1, 1.00, 1.00 },
    { 128, 128, 32, 32, 64, 1, 1, 0.92, 0.92 },
    { 64, 128, 32, 32, 32, 1, 1, 0.63, 0.63 },
    { 128, 64, 32, 32, 32, 1, 1, 0.63, 0.63 },
    { 64, 64, 64, 32, 16, 1, 1, 0.51, 0.51 },
    { 64, 64, 32, 32, 32, 1, 2, 0.36, 0.57 },
    { 32, 128, 64, 32, 32, 1, 1, 0.44, 0.44 },
    { 32, 64, 64, 32, 32, 4, 1, 0.36, 0.36 },
    { 32, 32, 128, 32, 32, 4, 1, 0.20, 0.20 },
};

// macs: multiply-adds of a core in a microsecond, of the largest block; way: the first step's from memory, and the
// sums' there; launch: until the first workgroup begins
static const struct { double cores, macs, way, launch; } machine = { 132, 900e3, 0.75, 1.0 };

static int64_t blocks_of(const ProductShape *s, const MatrixBlock *b) {
    return s->batch * ceil_div(s->m, b->bm) * ceil_div(s->n, b->bn);
}

// The last of a block's workgroups reads the parts of all, so many vectors of a thread at once as the template does.
static double adding_time(const MatrixShares *c, double groups) {
    const MatrixBlock *b = &c->block;
    const int64_t threads = (int64_t)32 * (b->bm / b->wm) * (b->bn / b->wn) * b->slices,
                  rounds = ceil_div(b->bm * b->bn / 4, threads * (32 / c->shares));
    return gpu_machine.meet + (double)rounds * machine.way
        + 2 * groups * b->bm * b->bn * (double)sizeof(float) / gpu_machine.bytes;
}

// By its numbers: a row has bytes between them that are anything.
const MatrixBlock *gpu_matrix_row(const MatrixBlock *of) {
    for (const MatrixBlock *b = gpu_matrix_blocks; b < gpu_matrix_blocks + MATRIX_BLOCKS; b++)
        if (b->bm == of->bm && b->bn == of->bn && b->bk == of->bk && b->wm == of->wm && b->wn == of->wn
            && b->slices == of->slices)
            return b;
    return NULL;
}

double gpu_matrix_time(const ProductShape *s, const MatrixShares *c) {
    const MatrixBlock *b = &c->block;
    const double groups = (double)(blocks_of(s, b) * c->shares), held = machine.cores * b->together,
                 rounds = ceil(groups / held),
                 each = ceil(groups / rounds / machine.cores),
                 work = (double)b->bm * b->bn * b->bk / machine.macs, alone = work / b->alone,
                 step = each * work / b->share > alone ? each * work / b->share : alone,
                 sums = c->shares == 1 ? 0 : adding_time(c, groups);
    return machine.launch + rounds * ((double)ceil_div(ceil_div(s->k, b->bk), c->shares) * step + 2 * machine.way)
        + sums;
}

bool gpu_matrix_fits(const ProductShape *s, const MatrixShares *c) {
    if (!gpu_blocks_reach(s->m, s->n, c->block.bm, c->block.bn)) return false;
    if (c->shares == 1) return true;
    return c->shares >= 2 && c->shares <= MOST_MATRIX_SHARES && c->shares <= ceil_div(s->k, c->block.bk)
        && c->shares * s->batch <= MAX_GROUPS && blocks_of(s, &c->block) <= MAX_COUNTERS
        && blocks_of(s, &c->block) * c->shares * c->block.bm * c->block.bn <= INT32_MAX;
}

bool gpu_matrix_recorded(const char *choice, MatrixShares *c) {
    MatrixShares one = { .shares = 1 };
    if (!choice || !tune_parse(&tune_units, choice, &one)) return false;
    const MatrixBlock *row = gpu_matrix_row(&one.block);
    if (row) *c = (MatrixShares){ *row, one.shares };
    return row != NULL;
}

static MatrixShares best_shares(const ProductShape *s) {
    MatrixShares best = { gpu_matrix_blocks[0], 1 };
    for (const MatrixBlock *b = gpu_matrix_blocks; b < gpu_matrix_blocks + MATRIX_BLOCKS; b++)
        for (int64_t shares = 1; shares <= MOST_MATRIX_SHARES; shares *= 2) {
            const MatrixShares one = { *b, shares };
            if (gpu_matrix_fits(s, &one) && gpu_matrix_time(s, &one) < gpu_matrix_time(s, &best)) best = one;
        }
    return best;
}

// ---------------------------------------------------------------- factors of 16 bits
// In training also f32 that is to keep its bits, like a gradient that is added to: a product rounds what it reads.
bool gpu_is_half(const Plan *p, const Value *v) {
    int64_t at;
    Buffer *b = plan_value(p, v).buffer;
    return b->element == DT_F16 || b->element == DT_BF16
        || (b->element == DT_F32 && (p->options->train || buffer_owner(b, &at)->value->is_input));
}

// All that it loads; *some: there is one of 16 bits.
static bool loads_halves(const Plan *p, const Expr *e, bool *some) {
    if (!e || e->dtype == DT_INDEX) return true;
    if (e->op == E_Load) {
        if (!gpu_is_half(p, e->value)) return false;
        *some = *some || plan_value(p, e->value).buffer->element != DT_F32;
    }
    for (int i = 0; i < 3; i++)
        if (!loads_halves(p, e->a[i], some)) return false;
    return true;
}

static bool has_halves(const Plan *p, const Kernel *k) {
    bool some = false;
    for (int i = 0; i < 2; i++)
        if (k->kind == KERNEL_PRODUCT ? !loads_halves(p, k->product.factor[i], &some) : !gpu_is_half(p, k->operand[i]))
            return false;
    for (int i = 0; i < 2 && k->kind == KERNEL_GEMM; i++)
        some = some || plan_value(p, k->operand[i]).buffer->element != DT_F32;
    return some;
}

void gpu_units(const Plan *p, Kernel *k, const ProductShape *s) {
    MatrixShares c;
    if (!p->options->precision || p->options->no_units || p->parent || !has_halves(p, k)) return;
    if (!k->tuned || !gpu_matrix_recorded(k->choice, &c) || !gpu_matrix_fits(s, &c))
        c = best_shares(s);
    k->units.block = gpu_matrix_row(&c.block);
    k->units.shares = c.shares;
    k->units.blocks = blocks_of(s, &c.block);
    const int64_t bytes = k->units.blocks * c.shares * c.block.bm * c.block.bn * (int64_t)sizeof(float);
    if (c.shares > 1 && bytes > k->scratch_bytes) k->scratch_bytes = bytes;
}

int64_t gpu_counters(const Kernel *k) {
    const int64_t here = k->units.block && k->units.shares > 1 ? k->units.blocks : 0,
                  there = k->kind == KERNEL_PRODUCT && k->product.shares > 1 ? k->product.blocks : 0;
    if (k->kind == KERNEL_LOOP)
        return k->loop.rows && k->loop.rows->shares > 1 ? ceil_div(k->loop.rows->rows, k->loop.rows->members) : 0;
    return here > there ? here : there;
}
