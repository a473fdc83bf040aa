// SPDX-License-Identifier: MIT OR Apache-2.0
// Differentiation, graph to graph, backward and at the end of this file forward. In: a scalar loss and the values it is
// differentiated by (inputs, constants that are parameters, or anything between). Out: one gradient of equal type each,
// as nodes appended to the graph.
//
// Nodes between wrt and loss are visited from the loss back; each one's GradFn (the op table's column) turns the
// gradients of its outputs into those of its inputs, and contributions to one value add up. Composites without a
// gradient of their own have to be expanded before. What the loss does not reach gets zeros.
#include "ops/common.h"

#include "grad/grad.h"

#include <math.h>
#include <string.h>

typedef struct Reverse {
    Graph *g;
    Arena *scratch;
    bool *depends;                                      // by value id: a float value that wrt flows into
    Value **grad;                                       // by value id: dloss/dvalue so far
    int count;                                          // of values that exist before the backward graph
} Reverse;

static bool depends(const Reverse *r, const Value *v) { return v && v->id < r->count && r->depends[v->id]; }

// A body reads values of the graphs around it, so a control-flow node depends on what its bodies name.
static bool body_depends(const Reverse *r, const Graph *body) {
    for (const Node *n = body->first; n; n = n->next) {
        for (int i = 0; i < n->n_in; i++)
            if (depends(r, n->in[i])) return true;
        for (int i = 0; i < n->n_bodies; i++)
            if (body_depends(r, n->bodies[i])) return true;
    }
    for (int i = 0; i < body->outputs.n; i++)
        if (depends(r, body->outputs.at[i])) return true;
    return false;
}

static bool node_depends(const Reverse *r, const Node *n) {
    for (int i = 0; i < n->n_in; i++)
        if (depends(r, n->in[i])) return true;
    for (int i = 0; i < n->n_bodies; i++)
        if (body_depends(r, n->bodies[i])) return true;
    return false;
}

static void mark_dependent(Reverse *r, int n, Value *const *wrt) {
    for (int i = 0; i < n; i++) r->depends[wrt[i]->id] = true;
    for (const Node *at = r->g->first; at; at = at->next) {
        if (!node_depends(r, at)) continue;
        for (int i = 0; i < at->n_out; i++)
            if (dtype_is_float(at->out[i]->type.dtype)) r->depends[at->out[i]->id] = true;
    }
}

static bool is_zeros(const Value *v) {
    const Value *one = v->def && v->def->op == OP_Expand ? v->def->in[0] : v;
    return one->data && type_count(&one->type) == 1 && fpclassify(tensor_get_f(one->data, 0)) == FP_ZERO;
}

// The axis along which zeros are put around v and nothing else is done; -1: v is not such a value.
static int padded_axis(const Value *v) {
    const Node *n = v->def;
    if (!n || n->op != OP_Pad || n->n_in != 1 || strcmp(node_string(n, "mode", ""), "constant")) return -1;
    int rank = 0, axis = -1;
    const int64_t *lo = node_ints(n, "lo", &rank), *hi = node_ints(n, "hi", &rank),
                  *interior = node_ints(n, "interior", &rank);
    for (int i = 0; i < rank; i++) {
        if (interior[i]) return -1;
        if (!lo[i] && !hi[i]) continue;
        if (axis >= 0 || lo[i] < 0 || hi[i] < 0 || !dim_is_const(n->in[0]->type.dim[i])) return -1;
        axis = i;
    }
    return axis;
}

static int64_t pad_before(const Node *n, int axis) { return node_ints(n, "lo", &(int){ 0 })[axis]; }

// Two slices of one value that lie one behind the other: their gradients side by side, not a sum of both among zeros.
// After the last slice of a split there are no zeros left. NULL: they are not that.
static Value *side_by_side(Graph *g, Value *a, Value *b) {
    const int axis = padded_axis(a);
    if (axis < 0 || padded_axis(b) != axis || a->type.dim[axis] != b->type.dim[axis]) return NULL;
    const bool in_order = pad_before(a->def, axis) < pad_before(b->def, axis);
    const Node *first = in_order ? a->def : b->def, *second = in_order ? b->def : a->def;
    Value *const x = first->in[0], *const y = second->in[0];
    const int64_t before = pad_before(first, axis), end = before + x->type.dim[axis];
    if (end != pad_before(second, axis)) return NULL;
    int64_t lo[MAX_RANK] = { 0 }, hi[MAX_RANK] = { 0 };
    lo[axis] = before;
    hi[axis] = a->type.dim[axis] - end - y->type.dim[axis];
    const Node *more = y->def && y->def->op == OP_Concat && node_int(y->def, "axis", 0) == axis ? y->def : NULL;
    VEC(Value *) parts = { 0 };
    VEC_PUSH(g->arena, parts, x);
    for (int i = 0; i < (more ? more->n_in : 1); i++) VEC_PUSH(g->arena, parts, more ? more->in[i] : y);
    return b_pad(g, b_concat(g, axis, parts.n, parts.at), lo, hi, NULL, NULL);
}

// Rows that were picked by an index are added to what there is: no zeros, which they would be added to first.
static Value *sum_of(Graph *g, Value *old, Value *d) {
    Node *n = d->def;
    Value *joined = side_by_side(g, old, d);
    if (joined) return joined;
    if (!n || op_table[n->op].form != FORM_SCATTER || strcmp(node_string(n, "reduction", "none"), "add")
        || !is_zeros(n->in[0]))
        return b_binary(g, OP_Add, old, d);
    n->in[0] = old;
    return d;
}

static bool contribute(Reverse *r, const Node *n, Value *v, Value *d) {
    if (!d || !depends(r, v)) return true;
    if (d->type.dtype != v->type.dtype || d->type.rank != v->type.rank)
        bug("gradient of %s has type %s for an input of type %s", op_table[n->op].name,
            type_text(r->scratch, r->g, &d->type), type_text(r->scratch, r->g, &v->type));
    Value *old = r->grad[v->id];
    r->grad[v->id] = old ? sum_of(r->g, old, d) : d;
    return r->grad[v->id] != NULL;
}

static Value *gradient_of(const Reverse *r, const Value *v) { return v->id < r->count ? r->grad[v->id] : NULL; }

// The place of what differentiates a node.
static const Loc *backward_of(Arena *a, const Loc *loc) {
    if (!loc || loc->backward) return loc;
    Loc *own = arena_copy(a, loc, sizeof *loc);
    own->backward = true;
    return own;
}

// The gradients of n's inputs from those of its outputs; nothing to do when no output has one.
static bool reverse_node(Reverse *r, Node *n) {
    bool reached = false;
    for (int i = 0; i < n->n_out; i++) reached = reached || gradient_of(r, n->out[i]);
    if (!reached || !node_depends(r, n)) return true;
    const int n_in = n->op == OP_If || n->op == OP_Loop ? control_lift(n, r->depends, r->count) : n->n_in,
              operands = n->n_in;
    Value **dout = NEW_ARRAY(r->scratch, Value *, n->n_out + 1), **din = NEW_ARRAY(r->scratch, Value *, n->n_in + 1);
    for (int i = 0; i < n->n_out; i++) dout[i] = gradient_of(r, n->out[i]);
    if (op_table[n->op].kind == KIND_COMPOSITE && !op_has_gradient(n->op))
        bug("%s has to be expanded before it is differentiated", op_table[n->op].name);
    r->g->loc = backward_of(r->g->arena, n->loc);
    if (!op_table[n->op].grad(n, dout, din)) return false;
    for (int i = 0; i < operands; i++)
        if (!contribute(r, n, n->in[i], din[i])) return false;
    if (n_in < operands) n->n_in = n_in;
    return true;
}

static Value *filled(Graph *g, const Value *like, double v) {
    Value *s = b_like(g, like, v);
    return b_expand(g, s, like->type.rank, like->type.dim);
}

static bool check_request(const Graph *g, const Value *loss, int n, Value *const *wrt) {
    const Loc *loc = loss->def ? loss->def->loc : NULL;
    bool ok = true;
    for (int i = 0; i < n; i++)
        if (!dtype_is_float(wrt[i]->type.dtype)) {
            diag_error(
                loc, "cannot differentiate by %s: only floats have gradients", type_text(g->arena, g, &wrt[i]->type));
            ok = false;
        }
    if (dtype_is_float(loss->type.dtype) && type_is_static(&loss->type) && type_count(&loss->type) == 1) return ok;
    diag_error(loc, "the loss must be one float, it is %s; reduce it to a scalar", type_text(g->arena, g, &loss->type));
    return false;
}

static bool backward(Reverse *r, int n_y, Value *const *y, Value *const *dy, int n, Value *const *wrt, Value **out) {
    Graph *g = r->g;
    Node *last = g->cursor ? g->cursor->prev : g->last;
    bool ok = true;
    mark_dependent(r, n, wrt);
    for (int i = 0; i < n_y; i++) {
        Value *old = r->grad[y[i]->id];
        r->grad[y[i]->id] = old ? b_binary(g, OP_Add, old, dy[i]) : dy[i];
        ok = ok && r->grad[y[i]->id];
    }
    if (!ok) return false;
    // a failure leaves its inputs without gradient; all are reported
    for (Node *at = last; at; at = at->prev) ok = reverse_node(r, at) && ok;
    if (!ok) return false;
    for (int i = 0; i < n; i++) {
        out[i] = r->grad[wrt[i]->id] ? r->grad[wrt[i]->id] : filled(g, wrt[i], 0);
        if (!out[i]) return false;
    }
    return true;
}

Value *const *graph_pullback(Graph *g, int n_y, Value *const *y, Value *const *dy, int n, Value *const *wrt) {
    const Loc *loc = g->loc;
    Arena *scratch = arena_new();
    Reverse r = { .g = g, .scratch = scratch, .count = graph_root(g)->value_count };
    r.depends = NEW_ARRAY(scratch, bool, r.count);
    r.grad = NEW_ARRAY(scratch, Value *, r.count);
    Value **out = NEW_ARRAY(g->arena, Value *, n + 1);
    bool ok = backward(&r, n_y, y, dy, n, wrt, out);
    g->loc = loc;
    arena_free(scratch);
    return ok ? out : NULL;
}

Value *const *graph_gradient(Graph *g, Value *loss, int n, Value *const *wrt) {
    if (!check_request(g, loss, n, wrt)) return NULL;
    Value *one = filled(g, loss, 1);
    return one ? graph_pullback(g, 1, &loss, &one, n, wrt) : NULL;
}

// The gradients u -> J^T u are linear in u, whatever u is; the gradient of v . J^T u by u is J v. Of the first graph
// nothing is left but what J reads of the model's values: the rest is dead.
Value *const *graph_tangent(Graph *g, int n_y, Value *const *y, int n, Value *const *x, Value *const *v) {
    Value **u = NEW_ARRAY(g->arena, Value *, n_y + 1);
    for (int i = 0; i < n_y; i++)
        if (!(u[i] = filled(g, y[i], 1))) return NULL;
    Value *const *d = graph_pullback(g, n_y, y, u, n, x);
    return d ? graph_pullback(g, n, d, v, n_y, u) : NULL;
}
