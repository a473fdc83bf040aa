// SPDX-License-Identifier: MIT OR Apache-2.0
// Which products of f32 go to a GPU's matrix units, in pieces of 16 bits (templates/glsl/gemm_pieces.comp).
//
// In: a product of f32 whose kernel without such units is chosen. Out: a row of the table, and shares, where the model
// of time says that six products of pieces are done before one of floats: where blocks abound, and terms are many.
#include "matrix.h"
#include "tile.h"
#include "schedule/schedule.h"

// None wants more than 256 threads and 48 KiB of shared memory. A row of the table has one slice and one half.
static const MatrixBlock blocks[] = {
    { 128, 64, 16, 32, 32, 1, 1, 1, 1.00, 1.00 },
};

// As measured on an H100: multiply-adds of f32 of a core in a microsecond, of the largest block; the way to memory; and
// how many blocks of a matrix product have room in a core: more begin when such a round has ended
static const struct { double cores, macs, way, room; } machine = { 132, 163e3, 0.75, 2 };

static int64_t blocks_of(const ProductShape *s, const MatrixBlock *b) {
    return s->batch * ceil_div(s->m, b->bm) * ceil_div(s->n, b->bn);
}

static double time_of(const ProductShape *s, const MatrixBlock *b, int64_t shares, bool rounds) {
    const double groups = (double)(blocks_of(s, b) * shares), round = machine.cores * machine.room,
                 begun = groups <= round || !rounds ? groups :
                                                      round * (double)(int64_t)((groups + round - 1) / round),
                 sums = shares == 1 ? 0 :
                     gpu_machine.meet + 2 * groups * b->bm * b->bn * (double)sizeof(float) / gpu_machine.bytes;
    return gpu_steps_time(begun, ceil_div(ceil_div(s->k, b->bk), shares), machine.cores, machine.way,
        (double)b->bm * b->bn * b->bk / machine.macs, b->share) + sums;
}

// What regions make has no buffer yet: it lies as it is.
static bool is_float(const Plan *p, const Value *v) {
    const Buffer *b = plan_value(p, v).buffer;
    return (b ? b->element : v->type.dtype) == DT_F32;
}

// Does the kernel read what it multiplies as f32, and nothing else?
static bool reads_floats(const Plan *p, const Expr *e) {
    if (!e || e->dtype == DT_INDEX) return true;
    if (e->op == E_Load && !is_float(p, e->value)) return false;
    for (int i = 0; i < 3; i++)
        if (!reads_floats(p, e->a[i])) return false;
    return true;
}

static bool has_floats(const Plan *p, const Kernel *k) {
    for (int i = 0; i < 2; i++)
        if (k->kind == KERNEL_PRODUCT ? !reads_floats(p, k->product.factor[i]) :
                                        !is_float(p, k->operand[i]))
            return false;
    return true;
}

// Sums of shares lie in memory that nothing else has meanwhile: no more of them than a quarter of the operands, or than
// a device's cache keeps for whoever adds them up.
static bool has_room(const ProductShape *s, const MatrixBlock *b, int64_t shares) {
    const int64_t kept = 8 << 20, sums = blocks_of(s, b) * shares * b->bm * b->bn,
                  operands = s->batch * s->k * (s->m + s->n);
    return shares == 1 || sums * (int64_t)sizeof(float) <= kept || 4 * sums <= operands;
}

void gpu_pieces(const Plan *p, Kernel *k, const ProductShape *s, double without) {
    const MatrixBlock *best = NULL;
    int64_t best_shares = 1;
    const Options *o = p->options;
    without *= 1.25;                                    // products of floats take so much longer than the model has it
    if (k->units.block || o->precision || o->no_units || p->parent || !has_floats(p, k)) return;
    if (!o->train && k->kind != KERNEL_GEMM) return;    // loop nests outside training: 30 KB for each convolution
    for (const MatrixBlock *b = blocks; b < blocks + COUNT(blocks); b++)
        for (int64_t shares = 1; shares <= MOST_MATRIX_SHARES; shares *= 2) {
            const MatrixShares one = { *b, shares };
            const double time = time_of(s, b, shares, k->kind == KERNEL_GEMM);
            if (!gpu_matrix_fits(s, &one) || !has_room(s, b, shares) || time >= without) continue;
            without = time;
            best = b;
            best_shares = shares;
        }
    if (!best) return;
    k->units = (Units){ .block = best, .pieces = true, .shares = best_shares, .blocks = blocks_of(s, best),
        .runs = { k->units.runs[0], k->units.runs[1] } };
    const int64_t bytes = k->units.blocks * best_shares * best->bm * best->bn * (int64_t)sizeof(float);
    if (best_shares > 1 && bytes > k->scratch_bytes) k->scratch_bytes = bytes;
}
