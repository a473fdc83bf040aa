// SPDX-License-Identifier: MIT OR Apache-2.0
// Which node of the model makes a number that is none. In: the batch and the parameters over which the loss, or a
// gradient, is infinite or not a number. Out: words, `node 4 "fc2" (Gemm)`.
//
// The graph of the gradients' program is computed by the evaluator, node by node; then from the first of its outputs
// that is none the way goes back through operands that are, to a node whose operands are better than its result, or
// which reads an input or a parameter that is none. Infinities of constants, as masks have them, are not asked after.
// A model that is too large for the evaluator goes without.
#include "fit.h"

#include "grad/train.h"

#include <math.h>
#include <string.h>

enum { FINE, INFINITE, NO_NUMBER, MOST_WORK = 1 << 30 };        // work: see ir/constant.c; half a minute at most

typedef struct Blame { Arena *a; Graph *graph; char *badness; bool *seen; } Blame;

static char badness_of(const Value *v) {
    const Tensor *t = v->data ? v->data : v->folded;
    char worst = FINE;
    if (!t || !dtype_is_float(t->type.dtype)) return FINE;
    for (int64_t i = 0; i < type_count(&t->type); i++) {
        double x = tensor_get_f(t, i);
        if (isnan(x)) return NO_NUMBER;
        if (isinf(x)) worst = INFINITE;
    }
    return worst;
}

static void give(Value *v, Arena *a, const void *data) {
    v->data = tensor_new(a, v->type);
    memcpy(v->data->data, data, (size_t)type_bytes(&v->type));
}

// The graph with this batch and these parameters; NULL where sizes are the run's.
static Graph *with_values(Arena *a, const Module *m, const burn_tensor *in, const void *params) {
    const Training *t = m->programs->training;
    Graph *g = NULL;
    int given = 0;
    for (int i = 0; i < m->programs->n; i++)
        if (!strcmp(m->code->programs[i].name, "gradients")) g = m->programs->at[i].plan->graph;
    for (int i = 0; g && i < g->inputs.n; i++) {
        Value *v = g->inputs.at[i];
        if (!type_is_static(&v->type)) return NULL;
        if (v->role == ROLE_NONE) give(v, a, in[given++].data);
        else if (v->role == ROLE_VALUE) v->data = tensor_new(a, v->type);       // the number of a step
        for (int p = 0; p < t->params.n && v->role == ROLE_PARAM; p++)
            if (!strcmp(t->params.at[p].field, v->name)) give(v, a, (const char *)params + m->code->fields[p]);
        if (!v->data) return NULL;
        v->is_input = false;
    }
    if (g) g->evaluated = true;
    return g;
}

static const Node *culprit(Blame *b, const Value *v) {
    const Node *n = v->def, *found = NULL;
    char worst = FINE;
    if (!n || b->seen[v->id]) return NULL;
    b->seen[v->id] = true;
    for (char least = NO_NUMBER; least > FINE && !found; least--)       // numbers that are none first
        for (int i = 0; i < n->n_in && !found; i++) {
            const Value *operand = n->in[i];
            if (!operand || operand->graph != b->graph || b->badness[operand->id] != least) continue;
            if (least > worst) worst = least;
            if (operand->def) found = culprit(b, operand);
            else if (operand->role == ROLE_PARAM || operand->role == ROLE_NONE) found = n;
        }
    return found ? found : b->badness[v->id] > worst ? n : NULL;
}

void fit_blame(void *module, const burn_tensor *in, const void *params, char *text, size_t room) {
    const Module *m = module;
    Arena *a = m->arena;
    Blame b = { .a = a, .graph = with_values(a, m, in, params) };
    const Node *found = NULL;
    if (!b.graph) return;
    b.badness = NEW_ARRAY(a, char, b.graph->value_count + 1);
    b.seen = NEW_ARRAY(a, bool, b.graph->value_count + 1);
    for (int i = 0; i < b.graph->inputs.n; i++)
        b.badness[b.graph->inputs.at[i]->id] = badness_of(b.graph->inputs.at[i]);
    for (const Node *n = b.graph->first; n && b.graph->folding->spent < MOST_WORK; n = n->next)
        for (int i = 0; i < n->n_out; i++)
            if (value_const(n->out[i])) b.badness[n->out[i]->id] = badness_of(n->out[i]);
    for (int i = 0; i < b.graph->outputs.n && !found; i++)
        if (b.badness[b.graph->outputs.at[i]->id]) found = culprit(&b, b.graph->outputs.at[i]);
    if (found)
        snprintf(text, room, "%s%s", found->loc && found->loc->backward ? "the gradient of " : "",
            node_words(a, found));
}
