// SPDX-License-Identifier: MIT OR Apache-2.0
// Which products a GPU's template takes (templates/glsl/gemm.comp), and the block that a workgroup computes.
//
// In: a product's shape. Out: holes, and into how many shares of its terms it should be cut. A block's operands pass
// through shared memory once for all its threads, so that far memory gives bm * bn / (bm + bn) multiply-adds for each
// element that it brings, and shared memory tm * tn / (tm + tn): large blocks are fast where there are enough of them
// for all cores. A block takes a step for bk * slices terms, which is a way to memory and back and then arithmetic; the
// blocks of a core hide each other's ways. The model (blocks.c) says so in microseconds.
#include "blocks.h"
#include "tile.h"
#include "schedule/cpu/templates.h"
#include "schedule/cpu/tune.h"
#include "schedule/schedule.h"

static const Block *best_block(double batch, int64_t m, int64_t n, int64_t k) {
    const Block *best = gpu_blocks;
    for (const Block *b = gpu_blocks + 1; b < gpu_blocks + BLOCKS; b++)
        if (gpu_blocks_reach(m, n, b->bm, b->bn)
            && gpu_block_time(b, batch, m, n, k) < gpu_block_time(best, batch, m, n, k))
            best = b;
    return best;
}

bool gpu_has_template(const Node *n, const Options *o) {
    (void)o;
    if (n->op == OP_Conv) return gpu_takes_conv(n);
    const bool bytes = n->op == OP_MatMul && node_of_bytes(n) && n->out[0]->type.dtype == DT_I32;
    if (n->op != OP_MatMul || (!bytes && (n->in[0]->type.dtype != DT_F32 || n->in[1]->type.dtype != DT_F32)))
        return false;
    const Type *x = &n->in[0]->type, *w = &n->in[1]->type, *y = &n->out[0]->type;
    if (!type_is_static(x) || !type_is_static(w) || x->rank < 2 || w->rank < 2) return false;
    int64_t m = x->dim[x->rank - 2], k = x->dim[x->rank - 1], columns = w->dim[w->rank - 1],
            batch = columns && m ? type_count_upper(n->graph, y) / (m * columns) : 0;
    // a left factor in one piece with a single matrix on the right is one tall matrix
    int64_t rows = w->rank == 2 ? m * batch : m;
    // those of bytes are found in loop nests, few rows too, and read words of four terms
    const int64_t few = 8;
    if (bytes) return rows > 0 && gpu_fills_blocks(batch, rows < few ? few : rows, columns, ceil_div(k, 4));
    return gpu_fills_blocks(batch, rows, columns, k) && kernel_gemm_folds(n->graph, x, w);
}

bool gpu_channels_first(const Node *n) {
    return node_int(n, "group", 1) == n->in[0]->type.dim[1] && n->in[1]->type.dim[1] == 1;
}

int64_t gpu_shares(const Node *n) {
    enum { MOST_SHARES = 16 };
    const Type *x = &n->in[0]->type, *w = &n->in[1]->type;
    if (n->op != OP_MatMul || node_of_bytes(n) || !gpu_has_template(n, NULL) || w->rank != 2) return 1;
    const int64_t k = w->dim[0], columns = w->dim[1], rows = type_count(x) / k;
    const double part = (double)rows * (double)columns * 4 / gpu_machine.bytes;
    double least = gpu_block_time(best_block(1, rows, columns, k), 1, rows, columns, k);
    int64_t best = 1;
    for (int64_t shares = 2; shares <= MOST_SHARES && k % (shares * 16) == 0; shares *= 2) {
        const Block *b = best_block((double)shares, rows, columns, k / shares);
        const double time = gpu_block_time(b, (double)shares, rows, columns, k / shares) + gpu_machine.launch
            + 2 * (double)shares * part;
        if (time >= least) continue;
        least = time;
        best = shares;
    }
    return best;
}

static bool fours(int64_t x) { return x % 4 == 0; }

void gpu_gemm(const Plan *p, Kernel *k) {
    Arena *a = p->arena;
    const Contraction *s = &k->gemm;
    bool a_fours = fours(s->a_batch) && fours(k->operand_at[0]);
    int64_t a_wide = a_fours && s->a_col == 1 && fours(s->a_row) && fours(s->k) ? 1 :
                     a_fours && s->a_row == 1 && fours(s->a_col) && fours(s->m) ? 2 : 0;
    bool b_fours = fours(s->b_batch) && fours(k->operand_at[1]);
    int64_t b_wide = b_fours && s->b_col == 1 && fours(s->b_row) && fours(s->n) ? 1 :
                     b_fours && s->b_row == 1 && fours(s->b_col) && fours(s->k) ? 2 : 0;
    const ProductShape shape = { s->batch, s->m, s->n, s->k, 0, 0 };
    Block block = *best_block((double)s->batch, s->m, s->n, s->k);
    const Block *b = &block;
    gpu_choose(a, k, p->options, &shape,
        arena_printf(a, " a=%d:%d b=%d:%d:%d", (int)a_wide, s->a_col == 1, (int)b_wide, s->b_col == 1, s->b_row == 1),
        &tune_block, gpu_block_fits, &block, sizeof block);
    gpu_units(p, k, &shape);
    gpu_pieces(p, k, &shape, gpu_block_time(b, (double)s->batch, s->m, s->n, s->k));
    TEMPLATE_HOLES(a, k, { "BATCH", s->batch }, { "M", s->m }, { "N", s->n }, { "K", s->k }, { "AB", s->a_batch },
        { "AR", s->a_row }, { "AC", s->a_col }, { "BB", s->b_batch }, { "BR", s->b_row }, { "BC", s->b_col },
        { "BM", b->bm }, { "BN", b->bn }, { "BK", b->bk }, { "TM", b->tm }, { "TN", b->tn }, { "SLICES", b->slices },
        { "A_WIDE", a_wide }, { "B_WIDE", b_wide });
}
