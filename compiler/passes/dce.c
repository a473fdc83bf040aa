// SPDX-License-Identifier: MIT OR Apache-2.0
// Removes nodes whose results nobody uses. Inputs stay, used or not: they are the model's interface.
//
//   before   %1: f32[2] = Neg(%0)
//            %2: f32[2] = Exp(%0)
//            return %1
//   after    %1: f32[2] = Neg(%0)
//            return %1
//
// One walk backwards: a node is live when a result of it is, and then so are its operands and what its bodies use. Of
// a live If or Loop the results that nobody uses go, and with a carried value its operand and its place in the body,
// unless another result needs it.
#include "passes.h"

#include <string.h>

// What the graph's live values need, without removing anything.
static void mark(const Graph *g, bool *live) {
    for (const Node *n = g->last; n; n = n->prev) {
        bool used = false;
        for (int i = 0; i < n->n_out; i++) used |= live[n->out[i]->id];
        if (!used) continue;
        for (int i = 0; i < n->n_in; i++)
            if (n->in[i]) live[n->in[i]->id] = true;
        for (int i = 0; i < n->n_bodies; i++) {
            for (int k = 0; k < n->bodies[i]->outputs.n; k++) live[n->bodies[i]->outputs.at[k]->id] = true;
            mark(n->bodies[i], live);
        }
    }
}

// A carried value is needed when a needed output, the condition, or a size that is measured is computed from it.
static void need_carried(const Node *n, const bool *measured, bool *keep, Arena *scratch) {
    const Graph *b = n->bodies[0];
    const int carried = n->n_in - 2, count = graph_root(n->graph)->value_count;
    bool *live = NEW_ARRAY(scratch, bool, count);
    for (bool changed = true; changed;) {
        memcpy(live, measured, (size_t)count * sizeof *live);
        changed = false;
        live[b->outputs.at[0]->id] = true;
        for (int i = 0; i < n->n_out; i++)
            if (keep[i]) live[b->outputs.at[1 + i]->id] = true;
        mark(b, live);
        for (int i = 0; i < carried; i++)
            if (!keep[i] && live[b->inputs.at[2 + i]->id]) keep[i] = changed = true;
    }
}

static void body_keep(Graph *b, int first, int n_out, int n_carried, const bool *keep) {
    int outputs = first, inputs = 2;
    for (int i = 0; i < n_out; i++) {
        if (!keep[i]) continue;
        b->output_names.at[outputs] = b->output_names.at[first + i];
        b->outputs.at[outputs++] = b->outputs.at[first + i];
        if (i < n_carried) b->inputs.at[inputs++] = b->inputs.at[2 + i];
    }
    b->outputs.n = b->output_names.n = outputs;
    if (first) b->inputs.n = inputs;
}

// Takes unused results off an If or Loop.
static bool narrow(Node *n, const bool *live) {
    Arena *scratch = arena_new();
    bool *keep = NEW_ARRAY(scratch, bool, n->n_out), loop = n->op == OP_Loop;
    int kept = 0, operands = loop ? 2 : n->n_in, old = n->n_out;
    for (int i = 0; i < n->n_out; i++) keep[i] = live[n->out[i]->id];
    if (loop) need_carried(n, live, keep, scratch);
    for (int i = 0; i < n->n_bodies; i++) body_keep(n->bodies[i], loop, n->n_out, loop ? n->n_in - 2 : 0, keep);
    for (int i = 0; i < old; i++) {
        if (!keep[i]) continue;
        if (loop && i < n->n_in - 2) n->in[operands++] = n->in[2 + i];
        n->out[i]->def_out = kept;
        n->out[kept++] = n->out[i];
    }
    n->n_out = kept;
    n->n_in = operands;
    arena_free(scratch);
    return kept < old;
}

static bool sweep(Graph *g, bool *live) {
    bool changed = false;
    for (int i = 0; i < g->outputs.n; i++) live[g->outputs.at[i]->id] = true;
    for (Node *n = g->last, *prev; n; n = prev) {
        prev = n->prev;
        bool used = false;
        for (int i = 0; i < n->n_out; i++) used |= live[n->out[i]->id];
        if (!used) {
            graph_remove(g, n);
            changed = true;
            continue;
        }
        if (n->op == OP_If || n->op == OP_Loop) changed |= narrow(n, live);
        for (int i = 0; i < n->n_in; i++)
            if (n->in[i]) live[n->in[i]->id] = true;
        for (int i = 0; i < n->n_bodies; i++) changed |= sweep(n->bodies[i], live);
    }
    return changed;
}

// Sizes that some type or start of a part mentions are measured.
static void keep_measured(const Graph *g, bool *live) {
    Graph *root = graph_root(g);
    for (const Node *n = g->first; n; n = n->next) {
        for (int i = 0; i < n->n_bodies; i++) keep_measured(n->bodies[i], live);
        for (int i = 0; i < n->n_out; i++)
            for (int s = 0; s < root->symbols.n; s++)
                if (root->symbols.at[s].from && type_uses(g, &n->out[i]->type, s))
                    live[root->symbols.at[s].from->id] = true;
        int count = 0;
        const int64_t *starts = node_ints(n, "starts", &count);
        for (int i = 0; i < count; i++)
            for (int s = 0; s < root->symbols.n; s++)
                if (root->symbols.at[s].from && dim_uses(g, starts[i], s)) live[root->symbols.at[s].from->id] = true;
    }
}

bool pass_dce(Graph *g) {
    Arena *scratch = arena_new();
    bool *live = NEW_ARRAY(scratch, bool, graph_root(g)->value_count);
    keep_measured(g, live);
    bool changed = sweep(g, live);
    arena_free(scratch);
    return changed;
}
