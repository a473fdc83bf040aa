// SPDX-License-Identifier: MIT OR Apache-2.0
// Sequences whose length only the running program knows: elements of one shape, as one tensor with the elements along
// its first axis.
//
// In: an OnnxNode. Out: rows behind a stand-in, or tensors. The idea: the length is then a dimension as any other, so
// inserting is a concatenation, taking out a gather, mapping a loop with a stacked output; and a loop that appends
// one element each time makes one.
#include "import/onnx/ops/sequence.h"

#include <string.h>

// A list where the length is known after all.
Value *onnx_sequence_of_rows(Graph *g, Value *rows) {
    if (!rows) return NULL;
    if (dim_is_const(rows->type.dim[0]) && rows->type.dim[0] <= MAX_ITEMS) {
        Value **items = NEW_ARRAY(g->arena, Value *, rows->type.dim[0] + 1);
        for (int64_t i = 0; i < rows->type.dim[0]; i++) items[i] = b_remove(g, b_part(g, rows, 0, i, 1), 0);
        return onnx_sequence_of(g, (int)rows->type.dim[0], items);
    }
    Sequence *s = NEW(g->arena, Sequence);
    s->rows = rows;
    return &s->stand_in;
}

static Dim length_of(const Sequence *s) { return s->rows->type.dim[0]; }

Value *onnx_sequence_stack(const Value *v) { return onnx_is_sequence(v) ? ((const Sequence *)v)->rows : NULL; }

static bool sees(const Graph *g, const Value *v) {
    while (g && g != v->graph) g = g->parent;
    return g != NULL;
}

// A list is stacked once, in the outermost graph that knows all its elements: a loop over a list would else stack it
// in each iteration.
static Value *stacked_list(OnnxNode *n, Sequence *s) {
    Graph *outer = n->g;
    if (s->stacked && sees(n->g, s->stacked)) return s->stacked;
    for (bool all = true; all && outer->parent;) {
        for (int i = 0; i < s->n; i++) all = all && sees(outer->parent, s->items[i]);
        if (all) outer = outer->parent;
    }
    outer->loc = n->loc;
    return s->stacked = b_stack(outer, 0, s->n, s->items);
}

Value *onnx_sequence_rows(OnnxNode *n, Value *v) {
    Sequence *s = onnx_is_sequence(v) ? (Sequence *)v : NULL;
    if (!s || s->carried || s->before) return onnx_fail(n, "this needs a sequence of its own"), NULL;
    if (s->rows) return s->rows;
    if (!s->n)
        return onnx_fail(n,
            "an empty sequence is joined with one whose length the program knows; the type of its elements is not "
            "known");
    return sequence_one_type(n, s->n, s->items) ? stacked_list(n, s) : NULL;
}

// ---------------------------------------------------------------- elements of different shapes

// All elements as lists with room for the largest, and what shapes they have.
static Value *leveled(OnnxNode *n, int count, Value *const *items, int64_t room, Tensor *shapes) {
    Value **lists = NEW_ARRAY(n->g->arena, Value *, count);
    int rank = items[0]->type.rank;
    for (int i = 0; i < count; i++) {
        Dim size = type_count(&items[i]->type);
        Value *places = b_iota(n->g, 1, &room, 0, DT_I64);                  // those beyond the end read 0
        Value *list = size ? b_gather(n->g, b_reshape(n->g, items[i], 1, &size), places, 0) :
                             b_filled(n->g, items[i]->type.dtype, 0, 1, &room);
        lists[i] = b_insert(n->g, list, 0);
        for (int k = 0; k < rank; k++) tensor_set_i(shapes, i * rank + k, items[i]->type.dim[k]);
    }
    return b_concat(n->g, 0, count, lists);
}

Value *onnx_ragged_at(OnnxNode *n, int count, Value *const *items, Value *index) {
    const Type *first = &items[0]->type;
    Dim limit[MAX_RANK] = { 0 }, dims[MAX_RANK];
    int64_t room = 0;
    bool same = first->dtype != DT_NONE;
    for (int i = 1; i < count; i++) same = same && type_equal(&items[i]->type, first);
    if (same) return index ? b_gather(n->g, b_stack(n->g, 0, count, items), index, 0) : NULL;
    for (int i = 0; i < count; i++) {
        const Type *t = &items[i]->type;
        if (t->dtype == DT_NONE || t->dtype != first->dtype || t->rank != first->rank || !type_is_static(t))
            return onnx_fail(n,
                "the position is known to the program only; that needs elements of one type and rank and of known "
                "shapes, here %s and %s",
                type_text(n->g->arena, n->g, first), type_text(n->g->arena, n->g, t));
        if (type_count(t) > room) room = type_count(t);
        for (int k = 0; k < t->rank; k++)
            if (t->dim[k] > limit[k]) limit[k] = t->dim[k];
    }
    Tensor *shapes = tensor_new(n->g->arena, type_make(DT_I64, 2, (Dim[]){ count, first->rank }));
    Value *table = leveled(n, count, items, room, shapes),
          *all = table && index ? b_gather(n->g, table, index, 0) : NULL;
    if (!all) return NULL;
    if (!onnx_measure_all(n, b_gather(n->g, graph_const(n->g, shapes, NULL), index, 0), first->rank, limit, dims))
        return NULL;
    Type t = type_make(first->dtype, first->rank, dims);
    return b_reshape(n->g, b_part(n->g, all, 0, 0, type_size(n->g, &t)), first->rank, dims);
}

Value *onnx_sequence_joined(OnnxNode *n, Value *first, Value *rows) {
    int count;
    bool empty = onnx_sequence_items(first, &count) && !count;
    Value *before = empty ? NULL : onnx_sequence_rows(n, first);
    if (!empty && !before) return NULL;
    return onnx_sequence_of_rows(n->g, empty ? rows : b_concat(n->g, 0, 2, (Value *[]){ before, rows }));
}

// ---------------------------------------------------------------- what a loop carries

Value *onnx_sequence_carried(Graph *g) {
    Sequence *s = NEW(g->arena, Sequence);
    s->carried = true;
    return &s->stand_in;
}

Value *onnx_sequence_appended(const Value *v) {
    const Sequence *s = onnx_is_sequence(v) ? (const Sequence *)v : NULL;
    return s && s->before ? s->items[0] : NULL;
}

// ---------------------------------------------------------------- operators

// Input i as an index from the front, negative ones counted from the end; NULL: absent, or with a diagnostic.
static Value *index_of(OnnxNode *n, int i, const Sequence *s) {
    Value *at = onnx_optional(n, i) ? b_scalar_of(n->g, n->in[i]) : NULL,
          *length = at ? b_number(n->g, length_of(s)) : NULL;
    return at && length ? B_MAP(n->g, "x < 0 ? x + y : x", "x y", b_cast(n->g, at, DT_I64), length) : NULL;
}

Value *stacked_at(OnnxNode *n, const Sequence *s) { return b_gather(n->g, s->rows, index_of(n, 1, s), 0); }

Value *stacked_insert(OnnxNode *n, const Sequence *s, Value *v) {
    Value *last_row = b_insert(n->g, v, 0),
          *all = last_row ? b_concat(n->g, 0, 2, (Value *[]){ s->rows, last_row }) : NULL;
    if (!all || !onnx_optional(n, 2)) return onnx_sequence_of_rows(n->g, all);
    Value *order = b_iota(n->g, 1, all->type.dim, 0, DT_I64), *at = index_of(n, 2, s),
          *last = b_number(n->g, length_of(s));
    if (!order || !at || !last) return NULL;
    return onnx_sequence_of_rows(
        n->g, b_gather(n->g, all, B_MAP(n->g, "x < y ? x : x == y ? z : x - 1", "x y z", order, at, last), 0));
}

Value *stacked_erase(OnnxNode *n, const Sequence *s) {
    Dim left = dim_sub(n->g, length_of(s), 1);
    if (dim_lower(n->g, left) < 0)
        return onnx_fail(n, "the sequence may be empty; --sequence NAME=1..N says that it is not");
    if (!onnx_optional(n, 1)) return onnx_sequence_of_rows(n->g, b_part(n->g, s->rows, 0, 0, left));
    Value *order = b_iota(n->g, 1, &left, 0, DT_I64), *at = index_of(n, 1, s);
    if (!order || !at) return NULL;
    return onnx_sequence_of_rows(n->g, b_gather(n->g, s->rows, B_MAP(n->g, "x < y ? x : x + 1", "x y", order, at), 0));
}

Value *stacked_length(OnnxNode *n, const Sequence *s) { return b_number(n->g, length_of(s)); }

Value *stacked_concat(OnnxNode *n, const Sequence *s) {
    bool fresh = onnx_int(n, "new_axis", 0) != 0;
    int axis, rank = s->rows->type.rank;
    if (!onnx_axis(n, onnx_int(n, "axis", 0), rank - 1 + fresh, &axis)) return NULL;
    Value *v = b_move_axes(n->g, s->rows, 0, 1, axis);
    if (fresh || !v) return v;
    Dim dims[MAX_RANK];                                 // [.., length, size, ..] -> [.., length * size, ..]
    for (int i = 0; i < rank - 1; i++)
        dims[i] = i < axis ? v->type.dim[i] :
            i == axis      ? dim_mul(n->g, v->type.dim[i], v->type.dim[i + 1]) :
                             v->type.dim[i + 1];
    return b_reshape(n->g, v, rank - 1, dims);
}

Value *stacked_split(OnnxNode *n, Value *x, int axis, bool keep) {
    Value *rows = b_move_axes(n->g, x, axis, 1, 0);
    return onnx_sequence_of_rows(n->g, keep ? b_insert(n->g, rows, axis + 1) : rows);
}

// ---------------------------------------------------------------- SequenceMap

// The sequences among the inputs as rows, all as long as the first.
static bool map_inputs(OnnxNode *n, Value **rows) {
    for (int i = 0; i < n->n_in; i++) {
        if (!onnx_is_sequence(n->in[i])) continue;
        if (!(rows[i] = onnx_sequence_rows(n, n->in[i]))) return false;
        Value *first = b_iota(n->g, 1, rows[0]->type.dim, 0, DT_I64),
              *other = b_iota(n->g, 1, rows[i]->type.dim, 0, DT_I64);
        // nobody reads the sum; it wants equal sizes
        if (rows[i]->type.dim[0] != rows[0]->type.dim[0] && !b_binary(n->g, OP_Add, first, other)) return false;
    }
    return true;
}

Value *stacked_map(OnnxNode *n) {
    Graph *outer = n->g, *g = onnx_new_body(n, "map");
    if (!g) return NULL;
    Value **rows = NEW_ARRAY(g->arena, Value *, n->n_in + 1), **in = NEW_ARRAY(g->arena, Value *, n->n_in + 1),
          **out = NEW_ARRAY(g->arena, Value *, n->n_out + 1);
    if (!map_inputs(n, rows)) return NULL;
    Value *number = graph_input(g, "iteration", type_make(DT_I64, 0, NULL));
    graph_input(g, "condition", type_make(DT_BOOL, 0, NULL));
    n->g = g;
    for (int i = 0; i < n->n_in; i++) in[i] = rows[i] ? b_gather(g, rows[i], number, 0) : n->in[i];
    bool ok = onnx_subgraph(n, "body", n->n_in, in, n->n_out, out);
    n->g = outer;
    if (!ok || !sequence_elements(n, n->n_out, out)) return NULL;
    graph_output(g, b_scalar(g, DT_BOOL, 1), "condition");
    for (int i = 0; i < n->n_out; i++) graph_output(g, out[i], NULL);
    Node *node = graph_node(outer, OP_Loop, 2, (Value *[]){ NULL, NULL }, n->n_out);
    node->bodies = NEW(outer->arena, Graph *);
    node->bodies[0] = g;
    node->n_bodies = 1;
    node_set_ints(node, "trips", rows[0]->type.dim, 1);
    if (!b_finish(node)) return NULL;
    for (int i = 0; i < n->n_out; i++) n->out[i] = onnx_sequence_of_rows(outer, node->out[i]);
    return n->out[0];
}
