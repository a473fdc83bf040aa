// SPDX-License-Identifier: MIT OR Apache-2.0
// What computes otherwise in training than in inference.
//
// In: the model's graph for the gradients, whose running statistics are parameters. Out: the same with batch
// normalization by the mean and the variance of the batch, which are outputs besides: in the struct of gradients they
// stand where that of parameters has the running statistics. So the gradients still change nothing, are summed over
// threads as the caller likes, and the optimizer's step is what updates:
//
//   running = running * momentum + (sum of the batches' / number of batches) * (1 - momentum)
//
// with the batches that a sum of gradients is of as a field of its own, `batches`, so that means serve as well as sums.
// As PyTorch has it, the variance is over count in the normalization, and over count - 1 in the running statistic.
//
// Dropout drops: the mask is a function of --seed, of the node's number among its like and of an argument, `step`, so
// that nothing is remembered between calls (ops/random.c has the generator). The scheduler stores it as bytes between
// forward and backward: to compute it twice would be some 20 operations an element.
#include "mode.h"
#include "build/build.h"

// The parameter or constant of a statistic, which may be rounded on its way.
static Value *statistic_of(const Node *n, int i) {
    Value *v = n->in[i];
    return v->def && v->def->op == OP_Cast ? v->def->in[0] : v;
}

bool mode_runs(const Node *n) {
    bool constant = n->op == OP_BatchNorm && !n->graph->parent;
    for (int i = 3; i < 5 && constant; i++) {
        const Value *v = statistic_of(n, i);
        constant = v->data || v->draw || v->role == ROLE_PARAM;
    }
    return constant;
}

// Are both of its statistics parameters by now?
static bool is_running(const Node *n) {
    return n->op == OP_BatchNorm && statistic_of(n, 3)->role == ROLE_PARAM && statistic_of(n, 4)->role == ROLE_PARAM;
}

double mode_momentum(const Node *n) { return node_float(n, "momentum", 0.9); }

// ---------------------------------------------------------------- batch normalization
// What the nodes met so far, each updating the statistic in its turn, come to as one step that keeps `kept` of it.
typedef struct Turn { Value *running, *batch; double kept; } Turn;
typedef VEC(Turn) Turns;

static bool take_turn(Graph *g, Turns *turns, Value *running, Value *batch, double momentum) {
    Turn *t = NULL;
    batch = b_cast(g, batch, running->type.dtype);
    for (int i = 0; i < turns->n; i++)
        if (turns->at[i].running == running) t = &turns->at[i];
    if (!t) {
        VEC_PUSH(g->arena, *turns, ((Turn){ running, batch, momentum }));
        return batch != NULL;
    }
    t->kept *= momentum;
    double share = t->kept < 1 ? (1 - momentum) / (1 - t->kept) : 1;
    t->batch = B_MAP(g, arena_printf(g->arena, "x * %.17g + y * %.17g", 1 - share, share), "x y", t->batch, batch);
    return t->batch != NULL;
}

// count / (count - 1) of it; of a single number there is none, and it stays
static Value *unbiased(Graph *g, Value *var, Value *x) {
    int64_t axes[MAX_RANK] = { 0 };
    int n = 1;
    for (int i = 2; i < x->type.rank; i++) axes[n++] = i;
    return B_MAP(g, "x * (y / max(y - 1, 1))", "x y", var, b_count(g, x, n, axes, var->type.dtype));
}

static bool train_norm(Graph *g, Node *n, Turns *turns) {
    Value *now[2];
    Value *y = b_batch_norm_training(g, n->in[0], n->in + 1, node_float(n, "epsilon", 1e-5), now);
    bool ok = y && take_turn(g, turns, statistic_of(n, 3), now[0], mode_momentum(n))
        && take_turn(g, turns, statistic_of(n, 4), unbiased(g, now[1], n->in[0]), mode_momentum(n));
    if (!ok) return false;
    graph_replace(g, n->out[0], y);
    graph_remove(g, n);
    return true;
}

// ---------------------------------------------------------------- dropout
static bool train_dropout(Training *t, Graph *g, Node *n) {
    if (!t->step) {
        t->step = graph_input(g, "step", type_make(DT_I64, 0, NULL));
        t->step->role = ROLE_VALUE;
    }
    Node *drop = graph_node(g, OP_Dropout, 2, (Value *[]){ n->in[0], t->step }, 1);
    node_set_float(drop, "ratio", node_float(n, "ratio", 0.5));
    node_set_int(drop, "seed", (int64_t)((uint64_t)t->seed << 32 | (uint64_t)t->n_drops++));
    Value *y = b_finish(drop);
    if (!y) return false;
    graph_replace(g, n->out[0], y);
    graph_remove(g, n);
    return true;
}

// ---------------------------------------------------------------- the graph
static void output_statistic(Graph *g, Value *v, const char *field) {
    v->role = ROLE_GRAD;
    graph_output(g, v, field);
}

bool mode_train(Training *t, Graph *g) {
    Turns turns = { 0 };
    bool ok = true;
    for (Node *n = g->first, *next; n; n = next) {
        next = n->next;
        g->cursor = n;
        g->loc = n->loc;
        if (is_running(n)) ok = train_norm(g, n, &turns) && ok;
        else if (t->drops && n->op == OP_Dropout) ok = train_dropout(t, g, n) && ok;
    }
    g->cursor = NULL;
    g->loc = NULL;
    for (int i = 0; i < turns.n; i++) output_statistic(g, turns.at[i].batch, turns.at[i].running->name);
    if (turns.n) output_statistic(g, b_scalar(g, DT_F32, 1), t->runs);
    return ok;
}

Value *mode_run_on(Graph *g, const Parameter *p, Value *running, Value *sum, Value *batches) {
    const char *text = arena_printf(g->arena, "z > 0 ? x * %.17g + y / z * %.17g : x", p->keep, 1 - p->keep);
    return B_MAP(g, text, "x y z", running, sum, b_cast(g, batches, running->type.dtype));
}
