// SPDX-License-Identifier: MIT OR Apache-2.0
// A quantized model that learns: its weights are floats while it does.
//
//   as read    %2 = DequantizeLinear(fc.weight_quantized: i8)
//   open       %2 = DequantizeLinear(QuantizeLinear(fc.weight: f32, trainable))
//
// The idea: what is quantized again gives the same integers, so the open graph computes what the file did; --weights
// and training know the floats by their name, and once they have their numbers, closing makes integers of them.
#include "import/integers.h"

#include "build/build.h"

#include <string.h>

static const char suffix[] = "_quantized";

static const char *name_of_floats(Arena *a, const Value *q) {
    size_t n = q->name ? strlen(q->name) : 0, end = sizeof suffix - 1;
    if (n > end && !strcmp(q->name + n - end, suffix)) return arena_strndup(a, q->name, n - end);
    return q->name;
}

// The numbers that the last node of a DequantizeLinear gives.
static Value *floats_of(Graph *g, Node *n, const Value *q) {
    const Tensor *computed = value_const(n->out[0]);
    if (!computed || computed->type.dtype != DT_F32) return NULL;
    Tensor *t = tensor_new(g->arena, computed->type);
    memcpy(t->data, computed->data, (size_t)type_bytes(&t->type));
    Value *v = graph_const(g, t, name_of_floats(g->arena, q));
    v->trainable = true;
    return v;
}

void integers_open(Graph *g) {
    for (Node *n = g->first; n; n = n->next) {
        Quant by;
        Value *q;
        if (!quant_read_back(n, &q, &by) || !q->data) continue;
        Value *x = floats_of(g, n, q);
        if (!x) continue;
        if (by.axis < 0) by.axis = 0;
        Node *first = g->first;                         // the first that reads the integers
        while (first != n && (!first->n_in || first->in[0] != q)) first = first->next;
        g->cursor = first;
        g->loc = n->loc;
        Value *again = b_quantize(g, x, &by, q->type.dtype, DT_F32, true);
        if (again) graph_replace(g, q, again);
        by.scale->trainable = false;                    // a range, which the weights are to fill
    }
    g->cursor = NULL;
}

// What nothing reads any more goes, so that the floats are not kept beside their integers.
static void remove_unread(Graph *g) {
    Arena *scratch = arena_new();
    int *uses = graph_use_counts(g, scratch);
    for (Node *n = g->last, *before; n; n = before) {
        bool read = false;
        before = n->prev;
        for (int i = 0; i < n->n_out; i++) read = read || uses[n->out[i]->id];
        if (read || n->n_bodies) continue;
        for (int i = 0; i < n->n_in; i++)
            if (n->in[i]) uses[n->in[i]->id]--;
        graph_remove(g, n);
    }
    arena_free(scratch);
}

void integers_close(Graph *g) {
    for (Node *n = g->first; n; n = n->next) {
        Quant by;
        Value *x;
        if (!quant_read(n, &x, &by) || !x->data) continue;
        const char *name = arena_printf(g->arena, "%s%s", x->name ? x->name : "", suffix);
        Value *q = graph_const(g, value_const(n->out[0]), name);
        graph_replace(g, n->out[0], q);
        by.scale->trainable = true;                     // an initializer, as it was
    }
    remove_unread(g);
}
