// SPDX-License-Identifier: MIT OR Apache-2.0
// Which products a GPU's template takes (templates/glsl/gemm.comp), and the block that a workgroup computes.
//
// In: a product's shape. Out: holes. A block's operands pass through shared memory once for all its threads, so that
// far memory gives bm * bn / (bm + bn) multiply-adds for each element that it brings: large blocks are for large
// products, and small ones, in which several teams share out k, for those that would leave most of the machine idle.
// No block wants more than 256 threads and 16 KiB of shared memory, which every GPU has.
#include "tile.h"
#include "schedule/cpu/templates.h"
#include "schedule/schedule.h"

typedef struct Block { int bm, bn, bk, tm, tn, slices; } Block;

static const Block blocks[] = {                         // large ones first
    { 128, 64, 16, 8, 4, 1 },
    { 64, 64, 16, 4, 4, 1 },
    { 64, 32, 16, 4, 4, 2 },
    { 32, 32, 8, 4, 4, 4 },
};

enum { ENOUGH_GROUPS = 256,                             // two for each core of a large GPU
       LEAST_ROWS = 8, LEAST_COLUMNS = 16,              // fewer leave most of a block empty
       LEAST_TERMS = 16,
       MAX_GROUPS = 65535 };                            // along an axis, on every device

static int64_t groups_of(const Contraction *s, const Block *b) {
    return s->batch * ((s->m + b->bm - 1) / b->bm) * ((s->n + b->bn - 1) / b->bn);
}

bool gpu_has_template(const Node *n, const Options *o) {
    (void)o;
    if (n->op != OP_MatMul || n->in[0]->type.dtype != DT_F32 || n->in[1]->type.dtype != DT_F32) return false;
    const Type *x = &n->in[0]->type, *w = &n->in[1]->type, *y = &n->out[0]->type;
    if (!type_is_static(x) || !type_is_static(w) || x->rank < 2 || w->rank < 2) return false;
    int64_t m = x->dim[x->rank - 2], k = x->dim[x->rank - 1], columns = w->dim[w->rank - 1],
            batch = columns && m ? type_count_upper(n->graph, y) / (m * columns) : 0;
    // a left factor in one piece with a single matrix on the right is one tall matrix
    int64_t rows = w->rank == 2 ? m * batch : m;
    return batch && rows >= LEAST_ROWS && columns >= LEAST_COLUMNS && k >= LEAST_TERMS && batch <= MAX_GROUPS
        && (rows + 31) / 32 <= MAX_GROUPS && (columns + 31) / 32 <= MAX_GROUPS
        && kernel_gemm_folds(n->graph, x, w);
}

static bool fours(int64_t x) { return x % 4 == 0; }

void gpu_gemm(Arena *a, Kernel *k) {
    const Contraction *s = &k->gemm;
    const Block *b = &blocks[0], *end = blocks + COUNT(blocks) - 1;
    while (b < end && groups_of(s, b) < ENOUGH_GROUPS) b++;
    bool a_wide = s->a_col == 1 && fours(s->a_row) && fours(s->a_batch) && fours(k->operand_at[0]) && fours(s->k);
    bool b_fours = fours(s->b_batch) && fours(k->operand_at[1]);
    int64_t b_wide = b_fours && s->b_col == 1 && fours(s->b_row) && fours(s->n) ? 1 :
                     b_fours && s->b_row == 1 && fours(s->b_col) && fours(s->k) ? 2 : 0;
    const struct { const char *name; int64_t value; } holes[] = {
        { "BATCH", s->batch }, { "M", s->m }, { "N", s->n }, { "K", s->k }, { "AB", s->a_batch }, { "AR", s->a_row },
        { "AC", s->a_col }, { "BB", s->b_batch }, { "BR", s->b_row }, { "BC", s->b_col }, { "BM", b->bm },
        { "BN", b->bn }, { "BK", b->bk }, { "TM", b->tm }, { "TN", b->tn }, { "SLICES", b->slices },
        { "A_WIDE", a_wide }, { "B_WIDE", b_wide },
    };
    for (size_t i = 0; i < COUNT(holes); i++) template_hole(a, k, holes[i].name, holes[i].value);
}
