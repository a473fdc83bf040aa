// SPDX-License-Identifier: MIT OR Apache-2.0
// Which block a workgroup computes on a GPU's matrix units (templates/glsl/gemm_mma.comp).
//
// In: a product whose factors have 16 bits. Out: a row of the table, and shares. As for other products (gemm.c) a block
// takes a step for bk terms, which is a way to memory and back and then arithmetic; here the way is the longer part
// unless blocks are large, so that products of few blocks want deep ones, whose terms several subgroups share, several
// steps on their way at once, and several workgroups for a block.
#include "matrix.h"
#include "tile.h"
#include "ir/expr.h"
#include "schedule/cpu/tune.h"
#include "schedule/schedule.h"

#include <string.h>

// None wants more than 256 threads and 48 KiB of shared memory.
const MatrixBlock gpu_matrix_blocks[MATRIX_BLOCKS] = {
    { 128, 128, 64, 32, 64, 1, 1, 1, 1.00 },
    { 64, 64, 64, 32, 32, 1, 1, 1, 0.45 },
    { 64, 64, 64, 32, 32, 1, 1, 2, 0.45 },
    { 32, 64, 64, 32, 32, 2, 1, 1, 0.26 },
    { 32, 64, 128, 32, 32, 4, 1, 1, 0.26 },
    { 32, 64, 128, 32, 32, 4, 1, 2, 0.26 },
    { 32, 32, 64, 16, 16, 1, 2, 1, 0.20 },
    { 32, 32, 128, 32, 32, 4, 1, 1, 0.20 },
    { 32, 32, 128, 32, 32, 4, 1, 2, 0.20 },
};

// As measured on an H100. macs: multiply-adds of a core in a microsecond, of the largest block; way: to memory and
// back; ahead: the same with two steps on their way at once
static const struct { double cores, macs, way, ahead; } machine = { 132, 727e3, 0.75, 0.6 };

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

double gpu_matrix_time(const ProductShape *s, const MatrixShares *c) {
    const MatrixBlock *b = &c->block;
    const double groups = (double)(blocks_of(s, b) * c->shares),
                 sums = c->shares == 1 ? 0 : adding_time(c, groups);
    return gpu_steps_time(groups, ceil_div(ceil_div(s->k, b->bk), c->shares), machine.cores,
        b->ahead > 1 ? machine.ahead : machine.way, (double)b->bm * b->bn * b->bk / machine.macs, b->share) + sums;
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
    for (const MatrixBlock *b = gpu_matrix_blocks; b < gpu_matrix_blocks + MATRIX_BLOCKS; b++)
        if (!memcmp(&one.block, b, offsetof(MatrixBlock, share))) {
            *c = (MatrixShares){ *b, one.shares };
            return true;
        }
    return false;
}

// windows: what says where the elements of a window lie takes the registers of a second step on its way
static MatrixShares best_shares(const ProductShape *s, bool windows) {
    MatrixShares best = { gpu_matrix_blocks[0], 1 };
    for (const MatrixBlock *b = gpu_matrix_blocks; b < gpu_matrix_blocks + MATRIX_BLOCKS; b++)
        if (windows && b->ahead > 1) continue;
        else
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
        c = best_shares(s, k->kind == KERNEL_PRODUCT);
    for (const MatrixBlock *b = gpu_matrix_blocks; b < gpu_matrix_blocks + MATRIX_BLOCKS; b++)
        if (!memcmp(&c.block, b, offsetof(MatrixBlock, share))) k->units.block = b;
    k->units.shares = c.shares;
    k->units.blocks = blocks_of(s, &c.block);
    const int64_t bytes = k->units.blocks * c.shares * c.block.bm * c.block.bn * (int64_t)sizeof(float);
    if (c.shares > 1 && bytes > k->scratch_bytes) k->scratch_bytes = bytes;
}

int64_t gpu_counters(const Kernel *k) {
    const int64_t here = k->units.block && k->units.shares > 1 ? k->units.blocks : 0,
                  there = k->kind == KERNEL_PRODUCT && k->product.shares > 1 ? k->product.blocks : 0;
    return here > there ? here : there;
}
