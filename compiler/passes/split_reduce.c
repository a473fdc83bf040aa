// SPDX-License-Identifier: MIT OR Apache-2.0
// Reductions of few and long rows become two: of the parts of a row, and of what the parts come to. Contract: of
// floats, sums and products are rounded in another order.
//
//   before   %1: f32[1] = ReduceSum(%0) {axes=[1]}            %0: f32[1,1048576]
//   after    %2: f32[1,512,2048,1] = Reshape(%0)
//            %3: f32[1,512,1] = ReduceSum(%2) {axes=[2]}
//            %4: f32[1,512,1] = Identity(%3) {stored=1}
//            %5: f32[1,1] = ReduceSum(%4) {axes=[1]}
//            %6: f32[1] = Identity(Reshape(%5)) {stored=1}
//
// Of axes that do not stand together, as those of a batch norm's statistics, the first stay for the second reduction:
//
//   before   %1: f32[64] = ReduceSum(%0) {axes=[0,2,3]}       %0: f32[32,64,112,112]
//   after    %2: f32[32,64,1,1] = ReduceSum(%0) {axes=[2,3], keepdims=1}
//            %3: f32[32,64,1,1] = Identity(%2) {stored=1}
//            %1: f32[64] = ReduceSum(%3) {axes=[0,2,3]}
//
// For machines of many cores, one of which has a row: softmax of a million numbers by one workgroup took 1.9 ms on an
// H100, where memory brings them in 2 us. What is stored is a kernel of its own, and not computed again by those of
// the parts that read it. Lengths without a divisor near what is wanted stay as they are.
#include "passes.h"

enum { FEW_ROWS = 128, LONG = 1 << 15, PART = 2048, MOST_PARTS = 1024, MOST_ROWS = 1024,
       FEW_APART = 1024, LONG_APART = 4096, WANTED = 2048, SHORT = 256 };    // where the first axes stay

// A reduction of axes that stand together, as [outer, length, inner].
typedef struct Rows { int64_t outer, length, inner; } Rows;

static bool rows_of(const Node *n, Rows *r) {
    const Type *x = &n->in[0]->type;
    int count = 0, first = x->rank, last = -1;
    const int64_t *axes = node_ints(n, "axes", &count);
    if (!node_attr(n, "axes")) {
        first = 0;
        last = x->rank - 1;
        count = x->rank;
    }
    for (int i = 0; i < count && node_attr(n, "axes"); i++) {
        if (axes[i] < first) first = (int)axes[i];
        if (axes[i] > last) last = (int)axes[i];
    }
    if (count == 0 || last - first + 1 != count) return false;
    *r = (Rows){ 1, 1, 1 };
    for (int i = 0; i < x->rank; i++) *(i < first ? &r->outer : i > last ? &r->inner : &r->length) *= x->dim[i];
    return true;
}

// Halves would round what the parts come to.
static bool takes(const Node *n) {
    if (n->op != OP_ReduceSum && n->op != OP_ReduceProd && n->op != OP_ReduceMax && n->op != OP_ReduceMin) return false;
    const DType d = n->in[0]->type.dtype;
    return (d == DT_F32 || d == DT_F64 || dtype_is_int(d)) && type_is_static(&n->in[0]->type);
}

// The largest number of parts that is wanted and divides the length; 1: it stays.
static int64_t parts_of(const Rows *r) {
    const int64_t rows = r->outer * r->inner;
    if (rows < 1 || rows > FEW_ROWS || r->length < LONG) return 1;
    int64_t most = r->length / PART;
    if (most > MOST_PARTS) most = MOST_PARTS;
    if (most > MOST_ROWS / rows) most = MOST_ROWS / rows;
    for (int64_t parts = most; parts >= most / 4 && parts > 1; parts--)
        if (r->length % parts == 0) return parts;
    return 1;
}

static Value *split(Graph *g, const Node *n, const Rows *r, int64_t parts) {
    const Type *y = &n->out[0]->type;
    Value *x = b_reshape(g, n->in[0], 4, (Dim[]){ r->outer, parts, r->length / parts, r->inner });
    Value *part = x ? b_reduce(g, n->op, x, 1, (int64_t[]){ 2 }, false) : NULL;
    if (part) part = b_stored(g, part);
    Value *all = part ? b_reduce(g, n->op, part, 1, (int64_t[]){ 1 }, false) : NULL;
    if (all) all = b_stored(g, all);
    return all ? b_reshape(g, all, y->rank, y->dim) : NULL;
}

// How many of the first axes of those that lie apart stay, so that there are rows enough.
static int staying(const Node *n, int n_axes, const int64_t *axes) {
    const Type *x = &n->in[0]->type;
    int64_t rows = type_count(&n->out[0]->type), terms = rows ? type_count(x) / rows : 0;
    int stay = 0;
    if (rows >= FEW_APART || terms < LONG_APART) return 0;
    for (int i = 1; i < n_axes; i++)
        if (axes[i] <= axes[i - 1]) return 0;
    for (; stay + 1 < n_axes && rows < WANTED && terms / x->dim[axes[stay]] >= SHORT; stay++) {
        rows *= x->dim[axes[stay]];
        terms /= x->dim[axes[stay]];
    }
    return stay;
}

static Value *split_apart(Graph *g, const Node *n) {
    int n_axes = 0;
    const int64_t *axes = node_ints(n, "axes", &n_axes);
    const int stay = staying(n, n_axes, axes);
    if (!stay) return NULL;
    Value *first = b_reduce(g, n->op, n->in[0], n_axes - stay, axes + stay, true);
    Value *kept = first ? b_stored(g, first) : NULL;
    return kept ? b_reduce(g, n->op, kept, n_axes, axes, node_int(n, "keepdims", 0) != 0) : NULL;
}

static void split_all(Rewrite *r, Graph *g) {
    for (Node *n = g->first; n; n = n->next) {
        Rows rows;
        rewrite_operands(r, n);
        for (int i = 0; i < n->n_bodies; i++) split_all(r, n->bodies[i]);
        if (!takes(n)) continue;
        const bool together = rows_of(n, &rows);
        const int64_t parts = together ? parts_of(&rows) : 1;
        if (together && parts == 1) continue;
        g->cursor = n;
        g->loc = n->loc;
        Value *y = together ? split(g, n, &rows, parts) : split_apart(g, n);
        if (y) rewrite_set(r, n->out[0], y);
    }
    g->cursor = NULL;
    rewrite_outputs(r, g);
}

bool pass_split_reduce(Graph *g) {
    Rewrite r = { .scratch = arena_new() };
    split_all(&r, g);
    arena_free(r.scratch);
    return r.changed && pass_dce(g);
}
