// SPDX-License-Identifier: MIT OR Apache-2.0
// Which block a workgroup computes on a GPU's matrix units (templates/glsl/gemm_mma.comp).
//
// In: a product whose factors have 16 bits, or are bytes, of which two are an element. Out: a row of the table, and
// shares. A block takes a step for bk terms,
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

// LANES: threads of a subgroup; SHARED: bytes of a workgroup, less a flag's, and REGISTERS of a thread, of such devices
enum { LANES = 32, MOST_SIDE = 256, MOST_THREADS = 256, SHARED = (48 << 10) - 256, REGISTERS = 255 };

// As measured on an H100, that of 96 rows on an H200.
const MatrixBlock gpu_matrix_blocks[MATRIX_BLOCKS] = {
    { 128, 128, 32, 64, 64, 1, 1, 2, 0.65, 1.00 },
    { 128, 256, 16, 64, 64, 1, 2, 1, 0.83, 0.83 },
    { 96, 128, 32, 48, 64, 1, 1, 2, 0.50, 0.82 },
    { 128, 64, 32, 64, 32, 1, 1, 3, 0.35, 0.70 },
    { 64, 128, 32, 32, 64, 1, 1, 3, 0.35, 0.70 },
    { 64, 64, 64, 32, 32, 1, 1, 2, 0.42, 0.55 },
    { 64, 64, 64, 32, 16, 1, 2, 1, 0.42, 0.42 },
    { 32, 128, 64, 32, 32, 1, 2, 1, 0.37, 0.37 },
    { 32, 64, 64, 32, 32, 4, 2, 1, 0.30, 0.30 },
    { 32, 32, 128, 32, 32, 4, 2, 1, 0.17, 0.17 },
};

// macs: multiply-adds of a core in a microsecond, of the largest block; way: the first step's from memory, and the
// sums' there; launch: until the first workgroup begins
static const struct { double cores, macs, way, launch; } machine = { 132, 1090e3, 0.75, 1.0 };

// ---------------------------------------------------------------- which blocks there may be
static bool within(int64_t v, int64_t least, int64_t most) { return least <= v && v <= most; }

static int64_t threads_of(const MatrixBlock *b) {
    return (int64_t)LANES * (b->bm / b->wm) * (b->bn / b->wn) * b->slices;
}

// as the template counts it, whichever way a factor lies
static int64_t shared_bytes(const MatrixBlock *b) {
    enum { VECTOR = 16 };
    const int64_t along = (int64_t)(b->bm + b->bn) * (b->bk / 8 + 1),
                  across = (int64_t)b->bk * (b->bm / 8 + b->bn / 8 + 2),
                  strips = (int64_t)16 * (b->wn / 4 + 1) * (threads_of(b) / LANES),
                  room = along > across ? along : across;
    return VECTOR * (b->halves * room > strips ? b->halves * room : strips);
}

// of a thread: its sums, the matrices of a turn, what is on its way, and places
static int64_t registers_of(const MatrixBlock *b) {
    enum { PLACES = 48 };
    const int64_t threads = threads_of(b), brought = ceil_div((int64_t)b->bm * b->bk / 8, threads)
        + ceil_div((int64_t)b->bn * b->bk / 8, threads);
    return (int64_t)b->wm * b->wn / LANES + (b->wm + b->wn) / 16 * 4 + 4 * brought + PLACES;
}

static bool is_allowed(const MatrixBlock *b) {
    const bool sixteens = b->wm >= 16 && b->wm % 16 == 0 && b->wn >= 16 && b->wn % 16 == 0 && b->slices > 0;
    if (!sixteens || b->bm % b->wm || b->bn % b->wn || b->bk <= 0 || b->bk % (16 * b->slices)) return false;
    return within(b->bm, b->wm, MOST_SIDE) && within(b->bn, b->wn, MOST_SIDE) && b->bk <= MOST_SIDE
        && within(b->halves, 1, 2) && within(threads_of(b), LANES, MOST_THREADS)
        && shared_bytes(b) <= SHARED && registers_of(b) <= REGISTERS;
}

static int64_t blocks_of(const ProductShape *s, const MatrixBlock *b) {
    return s->batch * ceil_div(s->m, b->bm) * ceil_div(s->n, b->bn);
}

// The last of a block's workgroups reads the parts of all, so many vectors of a thread at once as the template does.
static double adding_time(const MatrixShares *c, double groups) {
    const MatrixBlock *b = &c->block;
    const int64_t rounds = ceil_div(b->bm * b->bn / 4, threads_of(b) * (32 / c->shares));
    return gpu_machine.meet + (double)rounds * machine.way
        + 2 * groups * b->bm * b->bn * (double)sizeof(float) / gpu_machine.bytes;
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

bool gpu_matrix_fits(const void *shape, const void *shares) {
    const ProductShape *s = shape;
    const MatrixShares *c = shares;
    if (!is_allowed(&c->block) || !gpu_blocks_reach(s->m, s->n, c->block.bm, c->block.bn)) return false;
    if (c->shares == 1) return true;
    return c->shares >= 2 && c->shares <= MOST_MATRIX_SHARES && c->shares <= ceil_div(s->k, c->block.bk)
        && c->shares * s->batch <= MAX_GROUPS && blocks_of(s, &c->block) <= MAX_COUNTERS
        && blocks_of(s, &c->block) * c->shares * c->block.bm * c->block.bn <= INT32_MAX;
}

bool gpu_matrix_recorded(const char *choice, MatrixShares *c) {
    *c = (MatrixShares){ .shares = 1 };
    return choice && tune_parse(&tune_units, choice, c);
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

// Matrices are of signed bytes.
static bool has_bytes(const Kernel *k) {
    return k->kind == KERNEL_PRODUCT && k->product.bytes && k->product.factor[0]->a[0]->dtype == DT_I8
        && k->product.factor[1]->a[0]->dtype == DT_I8;
}

static bool has_halves(const Plan *p, const Kernel *k) {
    bool some = false;
    if (!p->options->precision) return false;
    for (int i = 0; i < 2; i++)
        if (k->kind == KERNEL_PRODUCT ? !loads_halves(p, k->product.factor[i], &some) : !gpu_is_half(p, k->operand[i]))
            return false;
    for (int i = 0; i < 2 && k->kind == KERNEL_GEMM; i++)
        some = some || plan_value(p, k->operand[i]).buffer->element != DT_F32;
    return some;
}

void gpu_units(const Plan *p, Kernel *k, const ProductShape *s) {
    MatrixShares c;
    if (p->options->no_units || p->parent || !(has_bytes(k) || has_halves(p, k))) return;
    if (!k->tuned || !gpu_matrix_recorded(k->choice, &c) || !gpu_matrix_fits(s, &c))
        c = best_shares(s);
    k->units.block = arena_copy(p->arena, &c.block, sizeof c.block);
    k->units.shares = c.shares;
    k->units.blocks = blocks_of(s, &c.block);
    const int64_t bytes = k->units.blocks * c.shares * c.block.bm * c.block.bn * (int64_t)sizeof(float);
    if (c.shares > 1 && bytes > k->scratch_bytes) k->scratch_bytes = bytes;
}

int64_t gpu_counters(const Kernel *k) {
    const int64_t here = k->units.block && k->units.shares > 1 ? k->units.blocks : 0,
                  there = k->kind == KERNEL_PRODUCT && k->product.shares > 1 ? k->product.blocks : 0;
    if (k->kind == KERNEL_ATTENTION) return k->attention.few.shares > 1 ? k->attention.few.blocks : 0;
    if (k->kind == KERNEL_LOOP)
        return k->loop.rows && k->loop.rows->shares > 1 ? ceil_div(k->loop.rows->rows, k->loop.rows->members) : 0;
    return here > there ? here : there;
}
