// SPDX-License-Identifier: MIT OR Apache-2.0
// Long running sums (products, extremes) go block by block: within each block, and from what the blocks before it come
// to, which is a shorter one. Contract: of floats, sums and products are rounded in another order.
//
//   before   %1: f32[4096] = CumSum(%0) {axis=0}
//   after    %2: f32[64,64] = Reshape(%0)
//            %3: f32[64,64] = CumSum(%2) {axis=1}
//            %4: f32[64,1] = ReduceSum(%2) {axes=[1], keepdims=1}
//            %5: f32[64,1] = CumSum(%4) {axis=0, exclusive=1}
//            %6: f32[64,64] = Add(%5, %3)
//            %7: f32[4096] = Reshape(%6)
//
// A loop kernel adds up all terms for each element anew, so that elements are independent of each other, on a GPU as in
// vectors: of n elements n * n terms. Blocks of 64 make that n * 64, however long the line. The last block in the order
// of the terms may be filled up, with anything.
#include "passes.h"

#include <string.h>

enum { LONG = 256, LEAST_BLOCK = 16, MOST_BLOCK = 64 };

// How it goes: op's reduction of a block, and of two terms.
typedef struct Scan { Op op, all, two; int axis; bool exclusive, reverse; } Scan;

static bool scan_of(const Node *n, Scan *s) {
    static const Scan known[] = { { .op = OP_CumSum, .all = OP_ReduceSum, .two = OP_Add },
        { .op = OP_CumProd, .all = OP_ReduceProd, .two = OP_Mul },
        { .op = OP_CumMax, .all = OP_ReduceMax, .two = OP_Max },
        { .op = OP_CumMin, .all = OP_ReduceMin, .two = OP_Min } };
    for (size_t i = 0; i < COUNT(known); i++) {
        if (known[i].op != n->op) continue;
        *s = known[i];
        s->axis = (int)node_int(n, "axis", 0);
        s->exclusive = node_int(n, "exclusive", 0) != 0;
        s->reverse = node_int(n, "reverse", 0) != 0;
        return true;
    }
    return false;
}

static bool is_long(const Type *t, int axis) {
    return dim_is_const(t->dim[axis]) && t->dim[axis] > LONG && t->rank < MAX_RANK;
}

// So many elements more behind the last in the order of the terms.
static Value *fill_up(Graph *g, Value *x, const Scan *s, int64_t more) {
    int64_t lo[MAX_RANK] = { 0 }, hi[MAX_RANK] = { 0 }, interior[MAX_RANK] = { 0 };
    (s->reverse ? lo : hi)[s->axis] = more;
    return more ? b_pad(g, x, lo, hi, interior, NULL) : x;
}

static Value *cut_off(Graph *g, Value *x, const Scan *s, int64_t more) {
    int64_t starts[MAX_RANK] = { 0 }, steps[MAX_RANK];
    Dim sizes[MAX_RANK];
    if (!x || !more) return x;
    for (int i = 0; i < x->type.rank; i++) steps[i] = 1;
    memcpy(sizes, x->type.dim, sizeof sizes);
    sizes[s->axis] -= more;
    if (s->reverse) starts[s->axis] = more;
    return b_slice(g, x, starts, steps, sizes);
}

// About as many blocks as elements of one, where there are few; rather one of which there is a whole number.
static int64_t block_of(int64_t n) {
    int64_t block = LEAST_BLOCK;
    while (block < MOST_BLOCK && block * block < n) block *= 2;
    for (int64_t b = block; b >= block / 2; b--)
        if (n % b == 0) return b;
    return block;
}

static Value *split(Graph *g, Value *x, const Scan *s) {
    if (!x || !is_long(&x->type, s->axis)) return x ? b_cumulate(g, s->op, x, s->axis, s->exclusive, s->reverse) : NULL;
    const int64_t n = x->type.dim[s->axis], block = block_of(n), blocks = (n + block - 1) / block,
                  more = blocks * block - n;
    Dim dims[MAX_RANK];
    const Type whole = x->type;
    x = fill_up(g, x, s, more);
    for (int i = 0; i < whole.rank; i++) dims[i + (i > s->axis)] = whole.dim[i];
    dims[s->axis] = blocks;
    dims[s->axis + 1] = block;
    x = b_reshape(g, x, whole.rank + 1, dims);
    Value *within = x ? b_cumulate(g, s->op, x, s->axis + 1, s->exclusive, s->reverse) : NULL,
          *all = within ? b_reduce(g, s->all, x, 1, (int64_t[]){ s->axis + 1 }, true) : NULL;
    Scan before = *s;
    before.exclusive = true;
    Value *so_far = split(g, all, &before), *y = so_far ? b_binary(g, s->two, so_far, within) : NULL;
    memcpy(dims, whole.dim, sizeof dims);
    dims[s->axis] = n + more;
    return cut_off(g, y ? b_reshape(g, y, whole.rank, dims) : NULL, s, more);
}

static void split_all(Rewrite *r, Graph *g) {
    for (Node *n = g->first; n; n = n->next) {
        Scan s;
        rewrite_operands(r, n);
        for (int i = 0; i < n->n_bodies; i++) split_all(r, n->bodies[i]);
        if (!scan_of(n, &s) || !is_long(&n->in[0]->type, s.axis)) continue;
        g->cursor = n;
        g->loc = n->loc;
        Value *y = split(g, b_wide(g, n->in[0]), &s);
        y = y ? b_cast(g, y, n->out[0]->type.dtype) : NULL;
        if (y) rewrite_set(r, n->out[0], y);
    }
    g->cursor = NULL;
    rewrite_outputs(r, g);
}

bool pass_split_scan(Graph *g) {
    Rewrite r = { .scratch = arena_new() };
    split_all(&r, g);
    arena_free(r.scratch);
    return r.changed && pass_dce(g);
}
