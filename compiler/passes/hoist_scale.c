// SPDX-License-Identifier: MIT OR Apache-2.0
// Numbers that multiply the queries or keys of an attention multiply the scores instead. Contract: inference only;
// results differ in rounding.
//
//   before   %2: f32[1,12,128,32] = Mul(%1, %c)          %c: one number; %1: a view of something
//            %3: f32[1,12,128,128] = MatMul(%2, %k)      %k: perhaps such a product, too
//   after    %3: f32[1,12,128,128] = MatMul(%1, %k)
//            %4: f32[1,12,128,128] = Mul(%3, %c)
//
// The idea: attention reads queries and keys through views at no cost, but a map between the view and the product
// would have to be stored. On the score it is one multiplication more in a loop that computes an exponential anyway.
// Only where a softmax follows and both factors are computed.
//
// Divisors of scores, and of what an error function is taken of, become factors: what follows rounds more than the
// reciprocal does.
#include "passes.h"


typedef struct Hoist { const int *uses; Node **user; int n; } Hoist;

static Node *only_user(const Hoist *h, const Value *v) {
    return v->id < h->n && h->uses[v->id] == 1 ? h->user[v->id] : NULL;
}

// Maps and reshapes, then a softmax.
static bool feeds_softmax(const Hoist *h, const Value *v) {
    enum { LOOK = 8 };
    for (int i = 0; i < LOOK; i++) {
        const Node *n = v->id < h->n ? h->user[v->id] : NULL;
        if (n && n->op == OP_Softmax) return true;
        if (!n || h->uses[v->id] != 1 || (!op_has_expr(n->op) && n->op != OP_Reshape)) return false;
        v = n->out[0];
    }
    return false;
}

// Takes a factor out of what makes operand `at` of n; 1: there is none.
static double take_factor(const Hoist *h, Node *n, int at) {
    double c;
    Value **place = &n->in[at];
    while ((*place)->def && !(*place)->data && only_user(h, *place) && op_is_view((*place)->def->op)
           && (*place)->def->n_in)
        place = &(*place)->def->in[0];
    Node *mul = (*place)->def;
    if (!mul || (*place)->data || mul->op != OP_Mul || !only_user(h, *place)) return 1;
    for (int i = 0; i < 2; i++) {
        if (!const_splat(mul->in[1 - i], &c) || !type_equal(&mul->in[i]->type, &mul->out[0]->type)) continue;
        *place = mul->in[i];
        return c;
    }
    return 1;
}

// x / c -> x * (1 / c), in place.
static bool invert_divisor(const Hoist *h, Graph *g, Node *n) {
    double c;
    const Node *user = only_user(h, n->out[0]);
    if (n->op != OP_Div || n->out[0]->type.dtype != DT_F32 || !const_splat(n->in[1], &c)
        || !type_equal(&n->in[0]->type, &n->out[0]->type))
        return false;
    if (c == 0 || (!(user && user->op == OP_Erf) && !feeds_softmax(h, n->out[0]))) return false;
    n->in[1] = b_scalar(g, DT_F32, 1 / c);
    n->op = OP_Mul;
    return true;
}

static bool hoist_graph(Hoist *h, Graph *g) {
    bool changed = false;
    for (Node *n = g->first; n; n = n->next) {
        for (int i = 0; i < n->n_bodies; i++) changed = hoist_graph(h, n->bodies[i]) || changed;
        changed = invert_divisor(h, g, n) || changed;
        if (n->op != OP_MatMul || n->in[0]->data || n->in[1]->data || n->out[0]->type.dtype != DT_F32
            || !feeds_softmax(h, n->out[0]))
            continue;
        double c = take_factor(h, n, 0) * take_factor(h, n, 1);
        if (c == 1) continue;
        g->cursor = n->next;
        g->loc = n->loc;
        Value *number = b_scalar(g, DT_F32, c);
        Node *mul = graph_node(g, OP_Mul, 2, (Value *[]){ number, number }, 1);
        mul->out[0]->type = n->out[0]->type;
        graph_replace(g, n->out[0], mul->out[0]);
        mul->in[0] = n->out[0];
        changed = true;
    }
    g->cursor = NULL;
    return changed;
}

// user[id]: a node that uses the value, of several the last.
static void find_users(const Graph *g, Node **user) {
    for (Node *n = g->first; n; n = n->next) {
        for (int i = 0; i < n->n_in; i++)
            if (n->in[i]) user[n->in[i]->id] = n;
        for (int i = 0; i < n->n_bodies; i++) find_users(n->bodies[i], user);
    }
}

bool pass_hoist_scale(Graph *g) {
    Arena *scratch = arena_new();
    Hoist h = { .n = graph_root(g)->value_count };
    h.uses = graph_use_counts(g, scratch);
    h.user = NEW_ARRAY(scratch, Node *, h.n + 1);
    find_users(g, h.user);
    bool changed = hoist_graph(&h, g);
    arena_free(scratch);
    return pass_dce(g) || changed;
}
