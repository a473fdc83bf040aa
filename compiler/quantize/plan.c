// SPDX-License-Identifier: MIT OR Apache-2.0
// What is computed on integers, and which values are.
//
// In: a prepared graph. Out: units and points. The idea: a node of a kind that integers can compute opens a unit; a
// bias and what clips behind it join while each is the only user of the one before. What only moves elements has the
// scale of what it moves, and is of integers where a neighbour is.
#include "build/build.h"
#include "passes/passes.h"
#include "quantize/quantize.h"

#include <string.h>

static const QuantKind kinds[OP_COUNT] = {
    [OP_Conv] = QUANT_WEIGHTED, [OP_MatMul] = QUANT_WEIGHTED,
    [OP_Add] = QUANT_MIXED, [OP_Sub] = QUANT_MIXED, [OP_Mul] = QUANT_MIXED, [OP_Concat] = QUANT_MIXED,
    [OP_AveragePool] = QUANT_MIXED, [OP_ReduceMean] = QUANT_MIXED, [OP_Relu] = QUANT_MIXED,
    [OP_LeakyRelu] = QUANT_MIXED, [OP_Sigmoid] = QUANT_MIXED, [OP_Tanh] = QUANT_MIXED,
    [OP_HardSwish] = QUANT_MIXED, [OP_HardSigmoid] = QUANT_MIXED, [OP_Softmax] = QUANT_MIXED,
    [OP_WindowMax] = QUANT_MOVED, [OP_Reshape] = QUANT_MOVED, [OP_Transpose] = QUANT_MOVED,
    [OP_Slice] = QUANT_MOVED, [OP_Identity] = QUANT_MOVED, [OP_Expand] = QUANT_MOVED,
};

typedef struct Planner {
    Quantizer *q;
    const int *uses;
    Node **user;                                        // by value id: one of them
} Planner;

static bool is_float(const Value *v) { return v && v->type.dtype == DT_F32; }
static bool is_activation(const Value *v) { return is_float(v) && (v->def || v->is_input); }

int64_t unit_channel(const QuantUnit *u, int64_t i) {
    int64_t stride = 1;
    for (int k = u->axis + 1; k < u->w->type.rank; k++) stride *= u->w->type.dim[k];
    return i / stride % u->channels;
}

// ---------------------------------------------------------------- units

static QuantKind kind_of(const Node *n) {
    QuantKind k = kinds[n->op];
    if (!k || n->n_out != 1 || !is_float(n->out[0])) return QUANT_NOT;
    if (k == QUANT_WEIGHTED && n->in[1]->data) return is_activation(n->in[0]) ? k : QUANT_NOT;
    if (k == QUANT_WEIGHTED) return n->op == OP_MatMul && is_activation(n->in[1]) ? QUANT_MIXED : QUANT_NOT;
    for (int i = 0; i < n->n_in; i++)
        if (is_activation(n->in[i])) return k;
    return QUANT_NOT;
}

static Node *only_user(const Planner *p, const Node *n) {
    const Value *v = n->out[0];
    Node *user = p->user[v->id];
    return p->uses[v->id] == 1 && user && user->graph == n->graph ? user : NULL;
}

// The numbers of a constant that is added to the channels, as a vector; NULL: it is none.
static Tensor *channel_numbers(Arena *a, const Value *v, const Type *sum, int axis, int64_t channels) {
    if (!v->data || v->type.dtype != DT_F32 || v->type.rank > sum->rank) return NULL;
    int at = axis - (sum->rank - v->type.rank);
    for (int i = 0; i < v->type.rank; i++)
        if (i != at && v->type.dim[i] != 1) return NULL;
    bool varies = at >= 0 && v->type.dim[at] != 1;
    Tensor *t = tensor_new(a, type_make(DT_F32, 1, &channels));
    for (int64_t i = 0; i < channels; i++) tensor_set_f(t, i, tensor_get_f(v->data, varies ? i : 0));
    return t;
}

static void take_bias(const Planner *p, QuantUnit *u) {
    Node *n = only_user(p, u->last);
    if (!n || n->op != OP_Add || !type_equal(&n->out[0]->type, &u->last->out[0]->type)) return;
    int at = n->in[0] == u->last->out[0];
    const Type *sum = &n->out[0]->type;
    u->b = channel_numbers(p->q->arena, n->in[at], sum, u->first->op == OP_Conv ? 1 : sum->rank - 1, u->channels);
    if (!u->b) return;
    n->in[at]->trainable = true;
    if (!at) {
        n->in[1] = n->in[0];
        n->in[0] = u->last->out[0];
    }
    u->sum = u->last = n;
}

// Relu, or one half of Clip.
static bool clips(const Node *n, const Value *x) {
    double number;
    if (n->op == OP_Relu) return true;
    return (n->op == OP_Min || n->op == OP_Max) && n->n_in == 2 && n->in[0] != n->in[1]
        && const_splat(n->in[n->in[0] == x ? 1 : 0], &number) && type_equal(&n->out[0]->type, &x->type);
}

static void take_weights(const Planner *p, QuantUnit *u) {
    u->weight = u->first->in[1];
    u->w = tensor_new(p->q->arena, u->weight->type);
    u->axis = u->first->op == OP_Conv ? 0 : u->w->type.rank - 1;
    u->channels = u->w->type.rank ? u->w->type.dim[u->axis] : 1;
    memcpy(u->w->data, u->weight->data->data, (size_t)type_bytes(&u->w->type));
    // a depthwise convolution's are few, and each of them counts
    bool depthwise = u->first->op == OP_Conv && u->w->type.dim[1] == 1 && node_int(u->first, "group", 1) > 1;
    u->as = depthwise ? DT_I8 : p->q->how.weights;
    u->scales = NEW_ARRAY(p->q->arena, double, u->channels);
    take_bias(p, u);
}

static void open_unit(Planner *p, Node *n, QuantKind kind) {
    QuantUnit u = { .kind = kind, .first = n, .last = n, .name = node_label(n) };
    if (kind == QUANT_WEIGHTED) take_weights(p, &u);
    for (Node *m = u.last; kind != QUANT_MOVED && (m = only_user(p, m)) && clips(m, u.last->out[0]);) u.last = m;
    for (Node *m = n;; m = p->user[m->out[0]->id]) {
        p->q->unit_of[m->mark] = p->q->units.n;
        if (m == u.last) break;
    }
    if (!*u.name) u.name = u.last->out[0]->name ? u.last->out[0]->name : "";
    VEC_PUSH(p->q->arena, p->q->units, u);
}

// ---------------------------------------------------------------- points

static int point_at(Quantizer *q, Value *v) {
    int *at = &q->point_of[v->id];
    if (*at < 0) {
        *at = q->points.n;
        VEC_PUSH(q->arena, q->points, (QuantPoint){ .value = v, .root = *at });
    }
    return *at;
}

static void find_points(Quantizer *q) {
    for (int i = 0; i < q->units.n; i++) {
        const QuantUnit *u = &q->units.at[i];
        for (int k = 0; k < u->first->n_in; k++)
            if (is_activation(u->first->in[k])) point_at(q, u->first->in[k]);
        int to = point_at(q, u->last->out[0]);
        if (u->kind == QUANT_MOVED) q->points.at[to].root = q->points.at[q->point_of[u->first->in[0]->id]].root;
    }
}

Quantizer *quant_plan(Arena *a, Graph *g, const QuantHow *how) {
    Quantizer *q = NEW(a, Quantizer);
    *q = (Quantizer){ .arena = a, .graph = g, .how = *how };
    Planner p = { .q = q, .uses = graph_use_counts(g, a), .user = NEW_ARRAY(a, Node *, g->value_count) };
    int n_nodes = 0;
    for (Node *n = g->first; n; n = n->next) {
        n->mark = ++n_nodes;                            // 0: of nodes that come later
        for (int i = 0; i < n->n_in; i++)
            if (n->in[i]) p.user[n->in[i]->id] = n;
    }
    q->unit_of = NEW_ARRAY(a, int, n_nodes + 1);
    q->point_of = NEW_ARRAY(a, int, g->value_count);
    for (int i = 0; i <= n_nodes; i++) q->unit_of[i] = -1;
    for (int i = 0; i < g->value_count; i++) q->point_of[i] = -1;
    for (Node *n = g->first; n; n = n->next) {
        QuantKind kind = q->unit_of[n->mark] < 0 ? kind_of(n) : QUANT_NOT;
        if (kind) open_unit(&p, n, kind);
    }
    find_points(q);
    quant_settle(q);
    return q;
}

// ---------------------------------------------------------------- what is of integers

static bool reads_integers(const Quantizer *q, const QuantUnit *u) {
    for (int k = 0; k < u->first->n_in; k++) {
        const Value *v = u->first->in[k];
        if (is_activation(v) && q->points.at[q->point_of[v->id]].made) return true;
    }
    return false;
}

// Forwards: what has weights, and what takes or moves what that makes; backwards: what moves what they take.
void quant_settle(Quantizer *q) {
    for (int i = 0; i < q->points.n; i++) q->points.at[i].made = q->points.at[i].active = false;
    for (int i = 0; i < q->units.n; i++) {
        QuantUnit *u = &q->units.at[i];
        u->integer = !u->kept && (u->kind == QUANT_WEIGHTED || reads_integers(q, u));
        if (u->integer) q->points.at[q->point_of[u->last->out[0]->id]].made = true;
    }
    for (int i = q->units.n - 1; i >= 0; i--) {
        QuantUnit *u = &q->units.at[i];
        QuantPoint *to = &q->points.at[q->point_of[u->last->out[0]->id]];
        if (u->kind == QUANT_MOVED && !u->kept && to->active) u->integer = true;
        if (!u->integer) continue;
        to->made = to->active = true;
        for (int k = 0; k < u->first->n_in; k++)
            if (is_activation(u->first->in[k])) q->points.at[q->point_of[u->first->in[k]->id]].active = true;
    }
}
