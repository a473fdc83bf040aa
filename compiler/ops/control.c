// SPDX-License-Identifier: MIT OR Apache-2.0
// Control flow: If and Loop. Their bodies are graphs that see the enclosing graph's values; the shapes of what they
// give are known ahead, so both branches of an If must agree and a Loop's carried values keep their shape, with
// scanned outputs stacked over a number of iterations that is known: the constant trip count or, where that is a
// dimension, attribute trips. Iterations that a condition ends earlier (early=1) leave room behind what they stack.
// An If on a constant is inlined (passes/inline_if.c), so what is left here is decided at run time.
//
// Evaluation sets the memo of a body's inputs and asks for its outputs, which computes the body over them
// (value_const), then forgets what it has computed.
#include "common.h"
#include "table.h"

#include <string.h>

static bool same_type(const Node *n, const char *what, int i, const Value *a, const Value *b) {
    bool same = a->type.dtype == b->type.dtype && a->type.rank == b->type.rank;
    for (int k = 0; same && k < a->type.rank; k++) same = dim_equal(n->graph, a->type.dim[k], b->type.dim[k]);
    if (same) return true;
    diag_error(n->loc, "%s %d is %s on one side and %s on the other; only values of one fixed shape can be compiled",
        what, i, type_text(n->graph->arena, n->graph, &a->type), type_text(n->graph->arena, n->graph, &b->type));
    return false;
}

// One number, of whatever rank.
static bool is_single(const Value *v) { return type_is_static(&v->type) && type_count(&v->type) == 1; }
static bool is_flag(const Value *v) { return v->type.dtype == DT_BOOL && is_single(v); }

bool shape_if(Node *n) {
    const Graph *yes = n->bodies[0], *no = n->bodies[1];
    if (!is_flag(n->in[0]) || yes->outputs.n != n->n_out || no->outputs.n != n->n_out) {
        diag_error(n->loc, "If wants a single bool as condition and %d outputs from both branches; they give %d and %d",
            n->n_out, yes->outputs.n, no->outputs.n);
        return false;
    }
    for (int i = 0; i < n->n_out; i++) {
        if (!same_type(n, "output", i, yes->outputs.at[i], no->outputs.at[i])) return false;
        n->out[i]->type = yes->outputs.at[i]->type;
    }
    return true;
}

// Is every iteration up to the trip count done?
static bool goes_on(const Node *n) {
    const Graph *b = n->bodies[0];
    const Value *next = b->outputs.at[0];
    while (next->def && next->def->op == OP_Identity) next = next->def->in[0];
    Tensor *first = n->in[1] ? value_const(n->in[1]) : NULL;
    if (n->in[1] && (!first || !tensor_get_i(first, 0))) return false;
    return next == b->inputs.at[1] || (next->data && tensor_get_i(next->data, 0));
}

bool loop_trips(const Node *n, Dim *out) {
    int count;
    if (node_int(n, "early", 0)) return false;
    const int64_t *given = node_ints(n, "trips", &count);
    Tensor *trips = n->in[0] && !given ? value_const(n->in[0]) : NULL;
    if ((!given && !trips) || !goes_on(n)) return false;
    *out = given ? given[0] : tensor_get_i(trips, 0);
    if (!given && *out < 0) *out = 0;
    return true;
}

// Does the type have sizes that an iteration measures? Others may differ.
static bool measured_inside(const Graph *body, const Type *t) {
    int count;
    const Symbol *all = graph_symbols(graph_root(body), &count);
    for (int i = 0; i < count; i++) {
        const Graph *g = all[i].from ? all[i].from->graph : NULL;
        while (g && g != body) g = g->parent;
        if (g && type_uses(body, t, i)) return true;
    }
    return false;
}

// Are trips, condition and what the body has in their places single numbers of their kinds, and are carried values
// inside what they are around the loop?
static bool loop_operands(const Node *n, int carried) {
    const Graph *b = n->bodies[0];
    const Value *trips = n->in[0], *go = n->in[1], *number = b->inputs.at[0];
    if ((trips && !(dtype_is_int(trips->type.dtype) && is_single(trips))) || (go && !is_flag(go))
        || number->type.dtype != DT_I64 || !is_single(number) || !is_flag(b->inputs.at[1])
        || !is_flag(b->outputs.at[0])) {
        diag_error(n->loc, "Loop wants a number of iterations and bools as conditions, single ones, around its body "
                           "and in it");
        return false;
    }
    for (int i = 0; i < carried; i++) {
        const Type *out = &n->in[2 + i]->type, *in = &b->inputs.at[2 + i]->type;
        bool same = out->dtype == in->dtype && out->rank == in->rank;
        for (int k = 0; same && k < in->rank; k++)
            same = in->dim[k] == out->dim[k] || !dim_is_const(in->dim[k]) || !dim_is_const(out->dim[k]);
        if (!same) return same_type(n, "carried value", i, n->in[2 + i], b->inputs.at[2 + i]);
    }
    return true;
}

bool shape_loop(Node *n) {
    const Graph *b = n->bodies[0];
    int carried = n->n_in - 2, scanned = n->n_out - carried;
    const int64_t *given;
    if (node_attr(n, "trips") && !op_ints(n, "trips", 1, &given)) return false;
    if (scanned < 0 || b->inputs.n != 2 + carried || b->outputs.n != 1 + n->n_out) {
        diag_error(n->loc, "Loop with %d carried values and %d outputs has a body of %d inputs and %d outputs",
            carried, n->n_out, b->inputs.n, b->outputs.n);
        return false;
    }
    if (!loop_operands(n, carried)) return false;
    for (int i = 0; i < carried; i++) {
        if (!same_type(n, "carried value", i, n->in[2 + i], b->outputs.at[1 + i])) return false;
        n->out[i]->type = b->outputs.at[1 + i]->type;
    }
    if (scanned == 0) return true;
    Dim trips;
    int count;
    if (node_int(n, "early", 0) && node_ints(n, "trips", &count)) trips = *node_ints(n, "trips", &count);
    else if (!loop_trips(n, &trips)) {
        diag_error(n->loc,
            "Loop stacks outputs of iterations whose number %s at run time; only a trip count known ahead can be "
            "compiled",
            goes_on(n) ? "is computed" : "a condition decides");
        return false;
    }
    for (int i = carried; i < n->n_out; i++) {
        const Type *t = &b->outputs.at[1 + i]->type;
        if (measured_inside(b, t)) {
            diag_error(n->loc, "Loop would stack output %d, %s, whose size each iteration finds out", i,
                type_text(n->graph->arena, b, t));
            return false;
        }
        if (t->rank == MAX_RANK) {
            diag_error(n->loc, "Loop would stack output %d to more than %d dimensions", i, MAX_RANK);
            return false;
        }
        Type stacked = { .dtype = t->dtype, .rank = t->rank + 1, .dim = { trips } };
        for (int j = 0; j < t->rank; j++) stacked.dim[j + 1] = t->dim[j];
        n->out[i]->type = stacked;
    }
    return true;
}

// ---------------------------------------------------------------- evaluation
enum { MAX_EVAL_NODES = 1 << 16 };                      // iterations times nodes of the body

static int count_nodes(const Graph *g) {
    int count = 1;
    for (const Node *n = g->first; n; n = n->next) {
        count++;
        for (int i = 0; i < n->n_bodies; i++) count += count_nodes(n->bodies[i]);
    }
    return count;
}

static void forget(Graph *g) {
    for (int i = 0; i < g->inputs.n; i++) g->inputs.at[i]->folded = NULL;
    for (Node *n = g->first; n; n = n->next) {
        for (int i = 0; i < n->n_out; i++) n->out[i]->folded = NULL;
        for (int i = 0; i < n->n_bodies; i++) forget(n->bodies[i]);
    }
}

// The outputs first..first+count-1 of a body whose inputs are set.
static bool eval_body(Graph *body, int first, int count, Tensor **out) {
    for (int i = 0; i < count; i++)
        if (!(out[i] = value_const(body->outputs.at[first + i]))) return false;
    return true;
}

static void copy_tensor(void *to, const Tensor *from) { memcpy(to, from->data, (size_t)type_bytes(&from->type)); }

bool body_eval(Graph *body, Tensor *const *out) {
    int n = body->outputs.n;
    Tensor **result = NEW_ARRAY(body->arena, Tensor *, n + 1);
    bool ok = eval_body(body, 0, n, result);
    for (int i = 0; ok && i < n; i++) copy_tensor(out[i]->data, result[i]);
    forget(body);
    return ok;
}

bool eval_if(const Node *n, Tensor *const *in, Tensor *const *out) {
    return body_eval(n->bodies[tensor_get_i(in[0], 0) ? 0 : 1], out);
}

// One iteration: state is the condition and the carried values, replaced by the next ones; scanned outputs go to
// their places.
static bool eval_iteration(const Node *n, int64_t iteration, Tensor **state, Tensor *const *out) {
    Graph *body = n->bodies[0];
    Tensor *number = tensor_new(n->graph->arena, body->inputs.at[0]->type),
           **result = NEW_ARRAY(n->graph->arena, Tensor *, n->n_out + 1);
    int carried = n->n_in - 2;
    tensor_set_i(number, 0, iteration);
    body->inputs.at[0]->folded = number;
    for (int i = 0; i <= carried; i++) body->inputs.at[1 + i]->folded = state[i];
    bool ok = eval_body(body, 0, n->n_out + 1, result);
    forget(body);
    if (!ok) return false;
    for (int i = 0; i <= carried; i++) state[i] = result[i];
    for (int i = carried; i < n->n_out; i++)
        copy_tensor((char *)out[i]->data + iteration * type_bytes(&result[1 + i]->type), result[1 + i]);
    return true;
}

bool eval_loop(const Node *n, Tensor *const *in, Tensor *const *out) {
    int carried = n->n_in - 2, count;
    const int64_t *given = node_ints(n, "trips", &count);
    int64_t most = graph_root(n->graph)->evaluated ? INT64_MAX : MAX_EVAL_NODES / count_nodes(n->bodies[0]),
            trips = given ? *given :
        n->in[0]          ? tensor_get_i(in[0], 0) :
                            INT64_MAX;
    Tensor **state = NEW_ARRAY(n->graph->arena, Tensor *, carried + 1);
    state[0] = tensor_new(n->graph->arena, n->bodies[0]->inputs.at[1]->type);
    tensor_set_i(state[0], 0, n->in[1] ? tensor_get_i(in[1], 0) : 1);
    for (int i = 0; i < carried; i++) state[1 + i] = in[2 + i];
    for (int64_t it = 0; it < trips && tensor_get_i(state[0], 0); it++)
        if (it >= most || !eval_iteration(n, it, state, out)) return false;
    for (int i = 0; i < carried; i++) copy_tensor(out[i]->data, state[1 + i]);
    return true;
}
