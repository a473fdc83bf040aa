// SPDX-License-Identifier: MIT OR Apache-2.0
// Which products a GPU's template takes (templates/glsl/gemm.comp), and the block that a workgroup computes.
//
// In: a product's shape. Out: holes, and into how many shares of its terms it should be cut. A block's operands pass
// through shared memory once for all its threads, so that far memory gives bm * bn / (bm + bn) multiply-adds for each
// element that it brings, and shared memory tm * tn / (tm + tn): large blocks are fast where there are enough of them
// for all cores. A block takes a step for bk * slices terms, which is a way to memory and back and then arithmetic; the
// blocks of a core hide each other's ways. The model below says so in microseconds.
#include "tile.h"
#include "schedule/cpu/templates.h"
#include "schedule/schedule.h"

// share: of a core's multiply-adds that it gets where blocks abound
typedef struct Block { int bm, bn, bk, tm, tn, slices; double share; } Block;

// None wants more than 256 threads and 24 KiB of shared memory.
static const Block blocks[] = {
    { 128, 128, 16, 8, 8, 1, 0.79 },
    { 128, 64, 16, 8, 4, 1, 0.70 },
    { 64, 64, 16, 4, 4, 1, 0.60 },
    { 64, 64, 8, 8, 8, 4, 0.62 },
    { 32, 32, 16, 4, 4, 2, 0.47 },
};

// A large discrete GPU, as measured on an H100: others have fewer cores, in like proportion.
static const struct {
    double cores, macs;                                 // multiply-adds of a core in a microsecond
    double way, launch;                                 // to memory and back; of one more kernel
    double bytes;                                       // of a sum's parts, in a microsecond
} machine = { 132, 197e3, 0.5, 4.5, 2e6 };

enum { LEAST_ROWS = 8, LEAST_COLUMNS = 16,              // fewer leave most of a block empty
       LEAST_TERMS = 16,
       MAX_GROUPS = 65535 };                            // along an axis, on every device

static double block_time(const Block *b, double batch, int64_t m, int64_t n, int64_t k) {
    const double groups = batch * (double)(ceil_div(m, b->bm) * ceil_div(n, b->bn)),
                 work = (double)b->bm * b->bn * b->bk * b->slices / machine.macs,
                 together = (double)(int64_t)((groups + machine.cores - 1) / machine.cores),
                 busy = together * work / b->share, alone = machine.way + work;
    return (double)ceil_div(k, b->bk * b->slices) * (busy > alone ? busy : alone);
}

static const Block *best_block(double batch, int64_t m, int64_t n, int64_t k) {
    const Block *best = blocks;
    for (const Block *b = blocks + 1; b < blocks + COUNT(blocks); b++)
        if (block_time(b, batch, m, n, k) < block_time(best, batch, m, n, k)) best = b;
    return best;
}

bool gpu_has_template(const Node *n, const Options *o) {
    (void)o;
    if (n->op == OP_Conv) return gpu_takes_conv(n);
    if (n->op != OP_MatMul || n->in[0]->type.dtype != DT_F32 || n->in[1]->type.dtype != DT_F32) return false;
    const Type *x = &n->in[0]->type, *w = &n->in[1]->type, *y = &n->out[0]->type;
    if (!type_is_static(x) || !type_is_static(w) || x->rank < 2 || w->rank < 2) return false;
    int64_t m = x->dim[x->rank - 2], k = x->dim[x->rank - 1], columns = w->dim[w->rank - 1],
            batch = columns && m ? type_count_upper(n->graph, y) / (m * columns) : 0;
    // a left factor in one piece with a single matrix on the right is one tall matrix
    int64_t rows = w->rank == 2 ? m * batch : m;
    return batch && rows >= LEAST_ROWS && columns >= LEAST_COLUMNS && k >= LEAST_TERMS && batch <= MAX_GROUPS
        && ceil_div(rows, 32) <= MAX_GROUPS && ceil_div(columns, 32) <= MAX_GROUPS
        && kernel_gemm_folds(n->graph, x, w);
}

int64_t gpu_shares(const Node *n) {
    enum { MOST_SHARES = 16 };
    const Type *x = &n->in[0]->type, *w = &n->in[1]->type;
    if (n->op != OP_MatMul || !gpu_has_template(n, NULL) || w->rank != 2) return 1;
    const int64_t k = w->dim[0], columns = w->dim[1], rows = type_count(x) / k;
    const double part = (double)rows * (double)columns * 4 / machine.bytes;
    double least = block_time(best_block(1, rows, columns, k), 1, rows, columns, k);
    int64_t best = 1;
    for (int64_t shares = 2; shares <= MOST_SHARES && k % (shares * 16) == 0; shares *= 2) {
        const Block *b = best_block((double)shares, rows, columns, k / shares);
        const double time = block_time(b, (double)shares, rows, columns, k / shares) + machine.launch
            + 2 * (double)shares * part;
        if (time >= least) continue;
        least = time;
        best = shares;
    }
    return best;
}

static bool fours(int64_t x) { return x % 4 == 0; }

void gpu_gemm(Arena *a, Kernel *k) {
    const Contraction *s = &k->gemm;
    const Block *b = best_block((double)s->batch, s->m, s->n, s->k);
    bool a_wide = s->a_col == 1 && fours(s->a_row) && fours(s->a_batch) && fours(k->operand_at[0]) && fours(s->k);
    bool b_fours = fours(s->b_batch) && fours(k->operand_at[1]);
    int64_t b_wide = b_fours && s->b_col == 1 && fours(s->b_row) && fours(s->n) ? 1 :
                     b_fours && s->b_row == 1 && fours(s->b_col) && fours(s->k) ? 2 : 0;
    TEMPLATE_HOLES(a, k, { "BATCH", s->batch }, { "M", s->m }, { "N", s->n }, { "K", s->k }, { "AB", s->a_batch },
        { "AR", s->a_row }, { "AC", s->a_col }, { "BB", s->b_batch }, { "BR", s->b_row }, { "BC", s->b_col },
        { "BM", b->bm }, { "BN", b->bn }, { "BK", b->bk }, { "TM", b->tm }, { "TN", b->tn }, { "SLICES", b->slices },
        { "A_WIDE", a_wide }, { "B_WIDE", b_wide });
}
