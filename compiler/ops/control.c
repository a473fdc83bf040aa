// SPDX-License-Identifier: MIT OR Apache-2.0
// Control flow: If and Loop. Their bodies are graphs that see the enclosing graph's values; the shapes of what they give are known ahead,
// so both branches of an If must agree and a Loop's carried values keep their shape, with scanned outputs stacked over a constant
// number of iterations. An If on a constant is inlined (passes/inline_if.c), so what is left here is decided at run time.
#include "common.h"
#include "ops.h"

static bool same_type(const Node *n, const char *what, int i, const Value *a, const Value *b) {
    if (type_equal(&a->type, &b->type)) return true;
    diag_error(n->loc, "%s %d is %s on one side and %s on the other; only values of one fixed shape can be compiled", what, i,
        type_text(n->graph->arena, n->graph, &a->type), type_text(n->graph->arena, n->graph, &b->type));
    return false;
}

bool shape_if(Node *n) {
    const Graph *yes = n->bodies[0], *no = n->bodies[1];
    if (n->in[0]->type.dtype != DT_BOOL || yes->outputs.n != n->n_out || no->outputs.n != n->n_out) {
        diag_error(n->loc, "If wants a bool condition and %d outputs from both branches; they give %d and %d", n->n_out, yes->outputs.n, no->outputs.n);
        return false;
    }
    for (int i = 0; i < n->n_out; i++) {
        if (!same_type(n, "output", i, yes->outputs.at[i], no->outputs.at[i])) return false;
        n->out[i]->type = yes->outputs.at[i]->type;
    }
    return true;
}

bool shape_loop(Node *n) {
    const Graph *b = n->bodies[0];
    int carried = n->n_in - 2, scanned = n->n_out - carried;
    if (scanned < 0 || b->inputs.n != 2 + carried || b->outputs.n != 1 + n->n_out) {
        diag_error(n->loc, "Loop with %d carried values and %d outputs has a body of %d inputs and %d outputs", carried, n->n_out, b->inputs.n, b->outputs.n);
        return false;
    }
    for (int i = 0; i < carried; i++) {
        if (!same_type(n, "carried value", i, n->in[2 + i], b->outputs.at[1 + i])) return false;
        n->out[i]->type = b->outputs.at[1 + i]->type;
    }
    Tensor *trips = n->in[0] ? value_const(n->in[0]) : NULL;
    for (int i = carried; i < n->n_out; i++) {
        const Type *t = &b->outputs.at[1 + i]->type;
        if (!trips || t->rank == MAX_RANK) {
            diag_error(n->loc, "Loop stacks output %d over a number of iterations computed at run time; only a constant trip count can be compiled", i);
            return false;
        }
        Type stacked = { .dtype = t->dtype, .rank = t->rank + 1, .dim = { tensor_get_i(trips, 0) } };
        for (int j = 0; j < t->rank; j++) stacked.dim[j + 1] = t->dim[j];
        n->out[i]->type = stacked;
    }
    return true;
}
