// SPDX-License-Identifier: MIT OR Apache-2.0
// Outputs that are computed together: an optimizer's step makes a parameter and its state out of the same gradient, so
// one loop that reads each operand once and stores all of them moves 7 numbers an element where three loops move 12
// (Adam).
//
// In: a graph of primitives. Out: by value the number of its group. A group's outputs have one shape, are maps of the
// graph's inputs, of gradients that are stored, and of nothing else, and hang together by a value of that size which
// several of them read.
#include "schedule.h"

enum { MAX_DEPTH = 100 };

typedef struct Together {
    const Plan *plan;
    bool *refused;                                      // by value id: more than maps of inputs is behind it
    bool *seen;                                         // by value id: whether `refused` says so
    Value **reader;                                     // by value id: the output that reads it first
    int *group;
} Together;

static bool is_map_or_view(const Node *n) { return n->n_out == 1 && (op_is_map(n->op) || op_is_view(n->op)); }

// Does v come from the graph's inputs by maps and views alone, and few of them?
static bool is_map_of_inputs(Together *t, const Value *v, int depth) {
    if (v->data || v->is_input) return v->graph == t->plan->graph;
    if (v->def && node_is_stored(v->def)) return true;
    if (t->seen[v->id]) return !t->refused[v->id];
    t->seen[v->id] = true;
    bool ok = v->def && v->graph == t->plan->graph && is_map_or_view(v->def) && depth < MAX_DEPTH;
    for (int i = 0; ok && i < v->def->n_in; i++) ok = !v->def->in[i] || is_map_of_inputs(t, v->def->in[i], depth + 1);
    t->refused[v->id] = !ok;
    return ok;
}

static int members(const Together *t, int group) {
    const Graph *g = t->plan->graph;
    int n = 0;
    for (int i = 0; i < g->outputs.n; i++) n += t->group[g->outputs.at[i]->id] == group;
    return n;
}

static void unite(Together *t, Value *a, Value *b) {
    const Graph *g = t->plan->graph;
    int to = t->group[a->id], from = t->group[b->id];
    if (to == from || !type_same_shape(&a->type, &b->type) || members(t, to) + members(t, from) > MAX_TOGETHER) return;
    for (int i = 0; i < g->outputs.n; i++)
        if (t->group[g->outputs.at[i]->id] == from) t->group[g->outputs.at[i]->id] = to;
}

// Unites `output` with those that read what it reads.
static void meet(Together *t, Value *output, Value *v) {
    Graph *g = t->plan->graph;
    if (v->data || type_size(g, &v->type) != type_size(g, &output->type)) return;
    if (t->reader[v->id]) {
        unite(t, t->reader[v->id], output);
        return;
    }
    t->reader[v->id] = output;
    for (int i = 0; v->def && !node_is_stored(v->def) && i < v->def->n_in; i++)
        if (v->def->in[i]) meet(t, output, v->def->in[i]);
}

static bool is_candidate(Together *t, const Value *v) {
    Graph *g = t->plan->graph;
    return v->def && v->graph == g && !v->data && dtype_is_float(v->type.dtype) && type_size(g, &v->type) != 1
        && is_map_of_inputs(t, v, 0);
}

int *outputs_together(const Plan *p) {
    const Graph *g = p->graph;
    Arena *a = p->arena;
    int values = graph_root(g)->value_count + 1, next = 0;
    Together t = { p, NEW_ARRAY(a, bool, values), NEW_ARRAY(a, bool, values), NEW_ARRAY(a, Value *, values),
        NEW_ARRAY(a, int, values) };
    if (p->parent || p->options->no_fuse) return t.group;
    for (int i = 0; i < g->outputs.n; i++)
        if (is_candidate(&t, g->outputs.at[i])) t.group[g->outputs.at[i]->id] = ++next;
    for (int i = 0; i < g->outputs.n; i++)
        if (t.group[g->outputs.at[i]->id]) meet(&t, g->outputs.at[i], g->outputs.at[i]);
    for (int i = 0; i < g->outputs.n; i++)
        if (members(&t, t.group[g->outputs.at[i]->id]) < 2) t.group[g->outputs.at[i]->id] = 0;
    return t.group;
}
