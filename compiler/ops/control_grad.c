// SPDX-License-Identifier: MIT OR Apache-2.0
// The gradient of Loop: backpropagation through time. The forward loop also stacks its carried values as they enter
// each iteration; a second loop runs the iterations from the last to the first, computes each again from them, and
// carries the adjoints back:
//
//   forward   c[t+1], s[t] = body(t, c[t])
//   backward  dc[t] = dc[t+1] * dbody_c/dc + ds[t] * dbody_s/dc        for t = T-1 .. 0
//
// What the body captures becomes a carried value that never changes (control_lift), whose adjoint therefore adds up
// over the iterations. Where it is only multiplied by (x v) or gathered from (v[i]), as a recurrent layer's weights and
// its projected input are, that sum is taken after the loop: the adjoints of the products are stacked, and dv is one
// product X^T dU, or one scatter.
//
// A loop that a condition may end earlier also counts its iterations, in a carried value; the backward one runs as
// often.
//
// The bodies are differentiated as every graph is, so this column of the op table calls grad/, which calls the columns:
// the recursion over bodies is the one call up from ops/.
#include "common.h"
#include "grad/grad.h"
#include "table.h"

// ---------------------------------------------------------------- the backward loop
// A use x v or v[i] of an unchanging value whose adjoint is summed after the loop.
// node: in the backward body; du, other: stacked, of the result and of x or i
typedef struct Leaf { int carried; Node *node; Value *du, *other; } Leaf;

typedef struct Back {
    Node *n;                                            // the forward loop
    Graph *g, *body;                                    // around it; the backward body
    Dim trips;                                          // or the most of them:
    Value *count;                                       // how many there were; NULL: all
    int carried, scanned;                               // of the forward loop as the loss sees it
    Value **stack;                                      // by carried value: all it was; NULL: unchanging
    bool *summed;                                       // by carried value: its adjoint is summed after the loop
    // by carried value: of its adjoint among those carried back; -1: none
    int *slot;
    int n_adjoints;
    Value **args;                                       // of the iteration computed again
    Value **results;
    VEC(Leaf) leaves;
} Back;

static bool is_leaf_use(const Node *n, const Value *v) {
    bool once = true;
    for (int i = 0; i < n->n_in; i++) once = once && (n->in[i] == v) == (i == (n->op == OP_MatMul));
    if (!once) return false;
    return n->op == OP_MatMul ? v->type.rank == 2 : n->op == OP_Gather && n->in[1]->type.rank == 0;
}

static bool uses(const Graph *g, const Value *v) {
    for (const Node *n = g->first; n; n = n->next) {
        for (int i = 0; i < n->n_in; i++)
            if (n->in[i] == v) return true;
        for (int i = 0; i < n->n_bodies; i++)
            if (uses(n->bodies[i], v)) return true;
    }
    for (int i = 0; i < g->outputs.n; i++)
        if (g->outputs.at[i] == v) return true;
    return false;
}

// Are all uses of an unchanging value leaves?
static bool only_leaves(const Graph *body, const Value *v) {
    int outputs = 0;
    for (const Node *n = body->first; n; n = n->next) {
        bool used = false;
        for (int i = 0; i < n->n_in; i++) used = used || n->in[i] == v;
        if (used && !is_leaf_use(n, v)) return false;
        for (int i = 0; i < n->n_bodies; i++)
            if (uses(n->bodies[i], v)) return false;
    }
    for (int i = 0; i < body->outputs.n; i++) outputs += body->outputs.at[i] == v;
    return outputs == 1;
}

// Sorts the carried values and stacks those that change.
static void prepare(Back *b, Value *const *dout) {
    Graph *forward = b->n->bodies[0];
    Arena *a = b->g->arena;
    b->stack = NEW_ARRAY(a, Value *, b->carried + 1);
    b->summed = NEW_ARRAY(a, bool, b->carried + 1);
    b->slot = NEW_ARRAY(a, int, b->carried + 1);
    for (int i = 0; i < b->carried; i++) {
        Value *v = forward->inputs.at[2 + i];
        bool is_float = dtype_is_float(v->type.dtype), same = forward->outputs.at[1 + i] == v;
        b->summed[i] = same && is_float && !dout[i] && !b->count && only_leaves(forward, v);
        b->slot[i] = is_float && !b->summed[i] ? b->n_adjoints++ : -1;
        if (same || (b->count && i == b->carried - 1)) continue;
        Type t = { .dtype = v->type.dtype, .rank = v->type.rank + 1, .dim = { b->trips } };
        for (int k = 0; k < v->type.rank; k++) t.dim[k + 1] = v->type.dim[k];
        b->stack[i] = loop_add_result(b->n, b->n->n_out, v);
        b->stack[i]->type = t;
    }
}

static Value *scalar_i64(Graph *g, int64_t v) { return b_reshape(g, b_ints(g, 1, &v), 0, NULL); }

// The last iteration's time.
static Value *last_time(Graph *g, const Back *b) {
    return b->count ? B_MAP(g, "x - 1", "x", b->count) : scalar_i64(g, b->trips - 1);
}

// Computes the iteration again inside the backward body, at time T-1 - iteration.
static Value *compute_again(Back *b, Value *iteration) {
    const Graph *forward = b->n->bodies[0];
    const Type *t = &forward->inputs.at[0]->type;
    Value *last = last_time(b->body, b), *time = b_binary(b->body, OP_Sub, last, iteration);
    if (!time) return NULL;
    b->args = NEW_ARRAY(b->g->arena, Value *, 2 + b->carried);
    b->results = NEW_ARRAY(b->g->arena, Value *, forward->outputs.n);
    b->args[0] = b_reshape(b->body, time, t->rank, t->dim);
    b->args[1] = b_full(b->body, &forward->inputs.at[1]->type, 1);
    for (int i = 0; i < b->carried; i++) {
        b->args[2 + i] = b->stack[i] ? b_gather(b->body, b->stack[i], time, 0) :
                                       b_unary(b->body, OP_Identity, b->n->in[2 + i]);
        if (!b->args[2 + i]) return NULL;
    }
    graph_inline(forward, b->body, b->args, b->results);
    for (Node *n = b->body->first; n; n = n->next)
        for (int i = 0; i < b->carried; i++)
            if (b->summed[i] && is_leaf_use(n, b->args[2 + i]))
                VEC_PUSH(b->g->arena, b->leaves, (Leaf){ .carried = i, .node = n });
    return time;
}

// The backward body: adjoints of the carried values in, those of an iteration earlier out; then the leaves' du and x
// or i.
static bool build_body(Back *b, Value *const *dout) {
    Arena *a = b->g->arena;
    Graph *body = b->body = graph_body(b->g, "backward");
    int n_y = 0, n_wrt = 0, most = b->carried + b->scanned + 1;
    Value **y = NEW_ARRAY(a, Value *, most), **dy = NEW_ARRAY(a, Value *, most),
          *iteration = graph_input(body, "iteration", type_make(DT_I64, 0, NULL));
    graph_input(body, "condition", type_make(DT_BOOL, 0, NULL));
    for (int i = 0; i < b->carried; i++)
        if (b->slot[i] >= 0) dy[n_y++] = graph_input(body, "adjoint", b->n->in[2 + i]->type);
    Value *time = compute_again(b, iteration);
    if (!time) return false;
    Value **wrt = NEW_ARRAY(a, Value *, b->n_adjoints + b->leaves.n + 1);
    for (int i = 0; i < b->carried; i++) {
        if (b->slot[i] < 0) continue;
        y[n_wrt] = b->results[1 + i];
        wrt[n_wrt++] = b->args[2 + i];
    }
    for (int i = 0; i < b->scanned; i++) {
        if (!dout[b->carried + i]) continue;
        y[n_y] = b->results[1 + b->carried + i];
        if (!(dy[n_y++] = b_gather(body, dout[b->carried + i], time, 0))) return false;
    }
    for (int i = 0; i < b->leaves.n; i++) wrt[n_wrt++] = b->leaves.at[i].node->out[0];
    Value *const *d = graph_pullback(body, n_y, y, dy, n_wrt, wrt);
    if (!d) return false;
    Value *go = b->count ? b_binary(body, OP_Less, iteration, last_time(body, b)) : b_scalar(body, DT_BOOL, 1);
    graph_output(body, go, "condition");
    for (int i = 0; i < n_wrt; i++) graph_output(body, d[i], NULL);
    for (int i = 0; i < b->leaves.n; i++) {
        const Node *leaf = b->leaves.at[i].node;
        graph_output(body, leaf->in[leaf->op == OP_Gather], NULL);
    }
    return true;
}

static Node *build_loop(Back *b, Value *const *dout) {
    Graph *g = b->g;
    Value **in = NEW_ARRAY(g->arena, Value *, 2 + b->n_adjoints);
    for (int i = 0; i < b->carried; i++) {
        if (b->slot[i] < 0) continue;
        in[2 + b->slot[i]] = dout[i] ? dout[i] : b_full(g, &b->n->in[2 + i]->type, 0);
    }
    if (b->count) in[1] = B_MAP(g, "x > 0", "x", b->count);
    Node *loop = graph_node(g, OP_Loop, 2 + b->n_adjoints, in, b->n_adjoints + 2 * b->leaves.n);
    loop->bodies = NEW_ARRAY(g->arena, Graph *, 1);
    loop->bodies[0] = b->body;
    loop->n_bodies = 1;
    node_set_ints(loop, "trips", &b->trips, 1);
    if (b->count) node_set_int(loop, "early", 1);
    if (!node_infer(loop)) return NULL;
    for (int i = 0; i < b->leaves.n; i++) {
        b->leaves.at[i].du = loop->out[b->n_adjoints + i];
        b->leaves.at[i].other = loop->out[b->n_adjoints + b->leaves.n + i];
    }
    return loop;
}

// ---------------------------------------------------------------- sums after the loop
// [t, ..., n] -> [t * ..., n]
static Value *as_rows(Graph *g, Value *x) {
    if (!x) return NULL;
    int last = x->type.rank - 1;
    Dim rows = 1;
    for (int i = 0; i < last; i++) rows = dim_mul(g, rows, x->type.dim[i]);
    return b_reshape(g, x, 2, (Dim[]){ rows, x->type.dim[last] });
}

// u = x v for every iteration: dv = X^T dU
static Value *sum_products(Graph *g, const Leaf *l) {
    Value *x = b_transpose(g, as_rows(g, l->other), (int[]){ 1, 0 });
    return b_matmul(g, x, as_rows(g, l->du));
}

// u = v[i] along an axis: dv is dU added up at the indices
static Value *sum_gathered(Graph *g, const Leaf *l, const Type *v) {
    int axis = (int)node_int(l->node, "axis", 0);
    Type moved = *v;
    for (int i = axis; i > 0; i--) moved.dim[i] = v->dim[i - 1];
    moved.dim[0] = v->dim[axis];
    Value *at = b_reshape(g, l->other, 2, (Dim[]){ l->other->type.dim[0], 1 });
    return b_move_axes(g, b_scatter_nd(g, b_full(g, &moved, 0), at, l->du, "add"), 0, 1, axis);
}

// The most iterations of a loop that may end earlier; -1: nobody knows
static Dim most_trips(const Node *n) {
    int count;
    const int64_t *given = node_ints(n, "trips", &count);
    const Tensor *trips = n->in[0] && !given ? value_const(n->in[0]) : NULL;
    return given ? *given : trips ? tensor_get_i(trips, 0) : -1;
}

// A carried value more, behind the others: how many iterations there were. What the loop stacks has room for the most.
static bool count_iterations(Back *b) {
    Node *n = b->n;
    Graph *body = n->bodies[0];
    const Type t = type_make(DT_I64, 0, NULL);
    graph_input(body, "count", t);
    Value *iteration = b_reshape(body, body->inputs.at[0], 0, NULL), *next = B_MAP(body, "x + 1", "x", iteration);
    Value **in = NEW_ARRAY(b->g->arena, Value *, n->n_in + 1);
    if (!next) return false;
    for (int i = 0; i < n->n_in; i++) in[i] = n->in[i];
    b->count = loop_add_result(n, b->carried, next);
    b->count->type = t;
    in[n->n_in++] = b_scalar(b->g, DT_I64, 0);
    n->in = in;
    n->in[0] = NULL;
    node_set_ints(n, "trips", &b->trips, 1);
    node_set_int(n, "early", 1);
    b->carried++;
    return in[n->n_in - 1] != NULL;
}

bool grad_loop(Node *n, Value *const *dout, Value **din) {
    Back b = { .n = n, .g = n->graph, .carried = n->n_in - 2, .scanned = n->n_out - (n->n_in - 2) };
    if (!loop_trips(n, &b.trips)) {
        b.trips = most_trips(n);
        Value **more = NEW_ARRAY(b.g->arena, Value *, n->n_out + 1);
        for (int i = 0; i < n->n_out; i++) more[i + (i >= b.carried)] = dout[i];
        dout = more;
        if (b.trips >= 0 && !count_iterations(&b)) return false;
    }
    if (b.trips < 0 || !dim_is_const(b.trips)) {
        diag_error(n->loc,
            "a loop of which nobody knows how often it runs at most has no gradient; give it a trip count");
        return false;
    }
    prepare(&b, dout);
    if (!build_body(&b, dout)) return false;
    const Node *loop = build_loop(&b, dout);
    if (!loop) return false;
    for (int i = 0; i < b.carried; i++) din[2 + i] = b.slot[i] >= 0 ? loop->out[b.slot[i]] : NULL;
    for (int i = 0; i < b.leaves.n; i++) {
        const Leaf *l = &b.leaves.at[i];
        Value **d = &din[2 + l->carried],
              *v = l->node->op == OP_MatMul ? sum_products(b.g, l) :
                                              sum_gathered(b.g, l, &n->in[2 + l->carried]->type);
        *d = *d ? b_binary(b.g, OP_Add, *d, v) : v;
        if (!*d) return false;
    }
    return true;
}
