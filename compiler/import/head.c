// SPDX-License-Identifier: MIT OR Apache-2.0
// --replace-head N: the layer that gives a model's first output gets N classes.
//
// In: an imported graph, before a file of weights is looked at. Out: the same with new constants in the place of the
// last linear layer's or convolution's, of the old names, which a file of weights gives numbers or --seed draws:
// weights and bias as PyTorch begins a layer, uniform in +-1/sqrt(inputs of one output); scales and shifts behind it 1
// and 0.
//
// The idea: from the output back goes one path, through what treats each class alike (activations, softmax, a
// normalization, pooling, views), to a product with constants. The axis of the classes is known there, and forward
// along the path each operand and each shape that has it is made anew.
#include "head.h"
#include "build/build.h"

#include <math.h>
#include <string.h>

typedef struct Head {
    Graph *g;
    VEC(Node *) path;                                   // from the output back; the last is the layer itself
    int axis;                                           // of the classes, in what the layer gives
    int64_t old, classes;
    double bound;                                       // of what its parameters begin with
    bool biased;                                        // it has met its bias
    Text made;                                          // names, for the note
} Head;

// ---------------------------------------------------------------- finding it

Value *head_constant(Value *v) {
    while (v && v->def && (v->def->op == OP_Transpose || v->def->op == OP_Reshape || v->def->op == OP_Cast))
        v = v->def->in[0];
    return v && !v->def && !v->is_input && (v->data || v->draw) ? v : NULL;
}

static bool is_sum_or_product(Op op) { return op == OP_Add || op == OP_Sub || op == OP_Mul || op == OP_Div; }

// The operand by which the path goes on; NULL: it ends here.
static Value *along(const Node *n) {
    switch (n->op) {
    case OP_Softmax: case OP_LogSoftmax: case OP_Dropout: case OP_Cast: case OP_BatchNorm: case OP_Reshape:
    case OP_Transpose: case OP_ReduceMean: case OP_ReduceSum: case OP_ReduceMax: case OP_AveragePool:
    case OP_WindowSum: case OP_WindowMax: return n->in[0];
    default: break;
    }
    if (is_sum_or_product(n->op)) {
        Value *a = head_constant(n->in[0]), *b = head_constant(n->in[1]);
        return b && !a ? n->in[0] : a && !b ? n->in[1] : NULL;
    }
    return op_is_map(n->op) && n->n_in == 1 ? n->in[0] : NULL;
}

static bool is_layer(const Node *n) {
    if (n->op == OP_MatMul) return n->in[1]->type.rank == 2 && head_constant(n->in[1]);
    return n->op == OP_Conv && node_int(n, "group", 1) == 1 && head_constant(n->in[1]);
}

// Constants of integers with what makes floats of them.
static bool is_dequantized(const Value *v) {
    while (v && v->def && (is_sum_or_product(v->def->op) || op_is_view(v->def->op) || v->def->op == OP_Cast))
        v = v->def->in[0];
    return v && v->data && !dtype_is_float(v->type.dtype);
}

// Does the path end at n for the layer computes on integers?
static bool is_quantized(const Head *h, const Node *n) {
    bool found = false;
    for (int i = 0; n && i < n->n_in; i++) found = found || is_dequantized(n->in[i]);
    for (int i = 0; i < h->path.n && n; i++) {
        DType d = h->path.at[i]->out[0]->type.dtype;
        found = found || (!dtype_is_float(d) && d != DT_I64);           // numbers of classes are no quantized values
    }
    return found;
}

static bool find(Head *h) {
    Value *y = h->g->outputs.n ? h->g->outputs.at[0] : NULL;
    const Node *n = y ? y->def : NULL;
    for (; n && !is_layer(n); n = y ? y->def : NULL) {
        VEC_PUSH(h->g->arena, h->path, y->def);
        y = along(n);
        if (!y) break;
    }
    if (n && is_layer(n)) {
        VEC_PUSH(h->g->arena, h->path, y->def);
        return true;
    }
    if (is_quantized(h, n)) {
        const char *name = n->loc && n->loc->name ? n->loc->name : "";
        diag_error(n->loc, "--replace-head: the layer that gives \"%s\" computes on integers, which learn nothing; let "
            "it stay float when the model is quantized: burncc quantize --keep '^%s'", h->g->output_names.at[0], name);
        return false;
    }
    diag_error(n ? n->loc : &(Loc){ .file = h->g->file, .node = -1 },
        "--replace-head: \"%s\" comes from %s%s; wanted is a linear layer or a convolution of constant weights, with "
        "nothing behind it but activations, normalizations, pooling and views",
        h->g->outputs.n ? h->g->output_names.at[0] : "", n ? "this " : "an input", n ? op_table[n->op].name : "");
    return false;
}

// ---------------------------------------------------------------- the axis of the classes

// Where an axis of a type is after a reshaping, with equally many elements before it; -1: it is no axis there.
static int axis_after(Graph *g, const Type *from, int axis, const Type *to) {
    Dim before = type_product(g, from, 0, axis);
    for (int i = 0; i < to->rank; i++)
        if (to->dim[i] == from->dim[axis] && dim_equal(g, before, type_product(g, to, 0, i))) return i;
    return -1;
}

static int reduced_axis(const Node *n, int axis) {
    int count, less = 0;
    const int64_t *axes = node_ints(n, "axes", &count);
    for (int i = 0; i < count; i++) {
        if (axes[i] == axis) return -1;
        less += axes[i] < axis;
    }
    return node_int(n, "keepdims", 1) ? axis : axis - less;
}

static int axis_behind(const Node *n, const Value *x, int axis) {
    int count;
    const int64_t *perm = node_ints(n, "perm", &count);
    switch (n->op) {
    case OP_Reshape: return axis_after(n->graph, &x->type, axis, &n->out[0]->type);
    case OP_ReduceMean: case OP_ReduceSum: case OP_ReduceMax: return reduced_axis(n, axis);
    case OP_BatchNorm: case OP_AveragePool: case OP_WindowSum: case OP_WindowMax: return axis == 1 ? 1 : -1;
    case OP_Transpose:
        for (int i = 0; i < count; i++)
            if (perm[i] == axis) return i;
        return -1;
    default: return axis + n->out[0]->type.rank - x->type.rank;
    }
}

// ---------------------------------------------------------------- new constants

static const char *name_of(Head *h, const Value *v) {
    Arena *scratch = arena_new();
    const char *name = v->name && *v->name ? v->name : h->biased ? "head.bias" : "head.weight";
    if (graph_use_counts(h->g, scratch)[v->id] > 1) name = arena_printf(h->g->arena, "%s.head", name);    // tied
    arena_free(scratch);
    return name;
}

// A constant like v, but with the new number of classes at the axis.
static Value *renewed(Head *h, Value *v, int axis, const Draw *d) {
    Graph *g = h->g;
    Type t = v->type;
    t.dim[axis] = h->classes;
    if (!v->def) {
        Value *own = graph_drawn(g, name_of(h, v), t, d);
        own->trainable = true;
        text_printf(&h->made, "%s%s %s", h->made.n ? ", " : "", own->name, type_text(g->arena, g, &t));
        return own;
    }
    Node *n = v->def;
    if (n->op == OP_Transpose) {
        int perm[MAX_RANK], count;
        const int64_t *given = node_ints(n, "perm", &count);
        for (int i = 0; i < count; i++) perm[i] = (int)given[i];
        return b_transpose(g, renewed(h, n->in[0], perm[axis], d), perm);
    }
    if (n->op == OP_Cast) return b_cast(g, renewed(h, n->in[0], axis, d), t.dtype);
    int from = axis_after(g, &v->type, axis, &n->in[0]->type);
    if (from < 0) return graph_fail(g, "--replace-head: no axis of \"%s\" is that of the classes", n->in[0]->name);
    return b_reshape(g, renewed(h, n->in[0], from, d), t.rank, t.dim);
}

static bool is_used(Graph *g, const Value *v) {
    Arena *scratch = arena_new();
    bool used = graph_use_counts(g, scratch)[v->id] > 0;
    arena_free(scratch);
    return used;
}

// What turned the constant that was, or it would be a parameter still.
static void drop(Graph *g, const Value *v) {
    while (v->def && !is_used(g, v)) {
        Node *n = v->def;
        v = n->in[0];
        graph_remove(g, n);
    }
}

static bool renew(Head *h, Node *n, int i, int axis, const Draw *d) {
    Value *v = n->in[i], *root = head_constant(v);
    if (!root || axis < 0 || axis >= v->type.rank || v->type.dim[axis] != h->old) return true;      // none by class
    if (!dtype_is_float(root->type.dtype))
        return graph_fail(h->g, "--replace-head: its weights \"%s\" are %s; wanted are floats",
            root->name ? root->name : "", type_text(h->g->arena, h->g, &root->type)) != NULL;
    n->in[i] = renewed(h, v, axis, d);
    drop(h->g, v);
    return n->in[i] != NULL;
}

// ---------------------------------------------------------------- forward again

static bool renew_layer(Head *h, Node *n) {
    const Type *w = &n->in[1]->type;
    int axis = n->op == OP_Conv ? 0 : 1;
    if (!type_is_static(w)) return graph_fail(h->g, "--replace-head: its weights have no fixed size") != NULL;
    h->axis = n->op == OP_Conv ? 1 : n->out[0]->type.rank - 1;
    h->old = w->dim[axis];
    h->bound = h->old ? 1 / sqrt((double)type_count(w) / (double)h->old) : 0;
    return renew(h, n, 1, axis, &(Draw){ DRAW_UNIFORM, { -h->bound, h->bound } });
}

// Operands of a node behind the layer; axis: of the classes in its result
static bool renew_operands(Head *h, Node *n, int axis) {
    static const double beginnings[] = { 0, 1, 0, 0, 1 };      // of a batch normalization
    for (int i = 1; n->op == OP_BatchNorm && i < 5; i++) {
        h->biased = true;
        if (!renew(h, n, i, 0, &(Draw){ DRAW_FILL, { beginnings[i] } })) return false;
    }
    if (!is_sum_or_product(n->op)) return true;
    bool sum = n->op == OP_Add || n->op == OP_Sub, bias = sum && !h->biased;
    const Draw d = bias ? (Draw){ DRAW_UNIFORM, { -h->bound, h->bound } } : (Draw){ DRAW_FILL, { sum ? 0 : 1 } };
    h->biased = true;
    int i = head_constant(n->in[0]) ? 0 : 1;
    return renew(h, n, i, axis - (n->out[0]->type.rank - n->in[i]->type.rank), &d);
}

// The types of everything that depends on the layer.
static bool infer_behind(Head *h, Node *layer) {
    Arena *scratch = arena_new();
    bool *changed = NEW_ARRAY(scratch, bool, h->g->value_count + 1), ok = true;
    for (Node *n = layer; n && ok; n = n->next) {
        bool reads = n == layer;
        for (int i = 0; i < n->n_in; i++) reads = reads || (n->in[i] && changed[n->in[i]->id]);
        if (!reads) continue;
        ok = node_infer(n);
        for (int i = 0; i < n->n_out; i++) changed[n->out[i]->id] = true;
    }
    arena_free(scratch);
    return ok;
}

static bool lost(const Node *n) {
    diag_error(n->loc, "--replace-head: the classes are no axis any more behind this %s", op_table[n->op].name);
    return false;
}

static bool replace(Head *h) {
    Node *layer = h->path.at[h->path.n - 1];
    h->g->cursor = layer;
    h->g->loc = layer->loc;
    if (!renew_layer(h, layer)) return false;
    int axis = h->axis;
    for (int k = h->path.n - 2; k >= 0; k--) {
        Node *n = h->path.at[k];
        h->g->cursor = n;
        h->g->loc = n->loc;
        axis = axis_behind(n, h->path.at[k + 1]->out[0], axis);
        if (axis < 0) return lost(n);
        if (!renew_operands(h, n, axis)) return false;
        if (n->op != OP_Reshape) continue;
        Type t = n->out[0]->type;
        t.dim[axis] = h->classes;
        node_set_ints(n, "shape", t.dim, t.rank);
    }
    return infer_behind(h, layer);
}

bool head_replace(Graph *g, const Options *o, const Node **layer) {
    *layer = NULL;
    if (!o || !o->replace_head) return true;
    Head h = { .g = g, .classes = o->replace_head };
    text_init(&h.made, g->arena);
    bool ok = find(&h) && replace(&h);
    g->cursor = NULL;
    g->loc = NULL;
    if (ok) *layer = h.path.at[h.path.n - 1];
    if (ok)
        diag_note(h.path.at[h.path.n - 1]->loc, "the head: %lld classes become %lld: %s", (long long)h.old,
            (long long)h.classes, h.made.at);
    return ok;
}

bool head_resized(const Type *from, const Type *to, const Options *o) {
    int differ = 0;
    bool fits = o->replace_head && from->rank == to->rank;
    for (int i = 0; i < to->rank && fits; i++) {
        bool same = from->dim[i] == to->dim[i];
        differ += !same;
        fits = same || to->dim[i] == o->replace_head;
    }
    return fits && differ == 1;
}
