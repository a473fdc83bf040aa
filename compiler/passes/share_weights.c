// SPDX-License-Identifier: MIT OR Apache-2.0
// A matrix that also lies transposed in a table of rows is read there: a language model's words, which it looks up at
// its beginning and multiplies with at its end. Contract: the same bits up to the order of sums.
//
//   before   %3: f32[1,768] = Gather(%1, %0)             %1: const f32[50257,768]
//            %9: f32[1,50257] = MatMul(%8, %2)           %2: const f32[768,50257], the transpose of %1
//   after    %10: f32[768,50257] = Transpose(%1)         a view
//            %9: f32[1,50257] = MatMul(%8, %10)
//
// Where templates have weights packed in an order of their own, only for one row, whose product reads the matrix once,
// in either order; where they read weights as they lie, for any number.
#include "passes.h"

enum { LARGE = 1 << 20 };                       // bytes worth the comparison

static bool is_table(const Value *v) {
    return v && v->data && v->type.rank == 2 && v->type.dtype == DT_F32
        && type_bytes(&v->type) >= LARGE;
}

static bool is_transpose(const Value *table, const Value *w) {
    const Dim rows = table->type.dim[0], columns = table->type.dim[1];
    const float *t = table->data->data, *m = w->data->data;
    if (w->type.dim[0] != columns || w->type.dim[1] != rows) return false;
    for (Dim i = 0; i < rows; i++)
        for (Dim j = 0; j < columns; j++)
            if (t[i * columns + j] != m[j * rows + i]) return false;
    return true;
}

static bool has_one_row(const Value *x) {
    for (int i = 0; i < x->type.rank - 1; i++)
        if (x->type.dim[i] != 1) return false;
    return true;
}

bool pass_share_weights(Graph *g, const Options *o) {
    bool changed = false;
    for (Node *n = g->first; n; n = n->next) {
        if (n->op != OP_MatMul || !is_table(n->in[1])) continue;
        if (o->machine.backend->packs_weights && !has_one_row(n->in[0])) continue;
        for (Node *other = g->first; other; other = other->next) {
            if (other->op != OP_Gather || !is_table(other->in[0]) || !is_transpose(other->in[0], n->in[1])) continue;
            g->cursor = n;
            g->loc = n->loc;
            n->in[1] = b_transpose(g, other->in[0], (int[]){ 1, 0 });
            changed = true;
            break;
        }
    }
    g->cursor = NULL;
    return changed;
}
