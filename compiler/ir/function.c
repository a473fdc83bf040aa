// SPDX-License-Identifier: MIT OR Apache-2.0
// The functions of a model: one graph with the inputs and outputs of all of them, whose constants they share.
//
//   function prefill 1 1      graph(%0 ids, %5 ids, ...)      return %4 logits, %9 logits
//   function step 2 1
//
// In: that graph, and which. Out: a graph of that one's inputs and outputs, and of what leads from the ones to the
// others. Constants are the same tensors in all of them.
#include "ir.h"

const char *graph_functions(Arena *a, const Graph *g) {
    Text t;
    text_init(&t, a);
    for (int i = 0; i < g->functions.n; i++) text_printf(&t, "%s%s", i ? ", " : "", g->functions.at[i].name);
    return t.at;
}

typedef struct Cut {
    Graph *g;
    int first_input, inputs, first_output, outputs;
    bool *foreign, *live;                               // by value id: depends on another function's input; is needed
} Cut;

static bool any_foreign(const Cut *c, const Graph *g) {
    for (int i = 0; i < g->outputs.n; i++)
        if (g->outputs.at[i] && c->foreign[g->outputs.at[i]->id]) return true;
    for (const Node *n = g->first; n; n = n->next) {
        for (int i = 0; i < n->n_in; i++)
            if (n->in[i] && c->foreign[n->in[i]->id]) return true;
        for (int i = 0; i < n->n_bodies; i++)
            if (any_foreign(c, n->bodies[i])) return true;
    }
    return false;
}

static void mark_foreign(const Cut *c) {
    for (int i = 0; i < c->g->inputs.n; i++)
        c->foreign[c->g->inputs.at[i]->id] = i < c->first_input || i >= c->first_input + c->inputs;
    for (const Node *n = c->g->first; n; n = n->next) {
        bool foreign = false;
        for (int i = 0; i < n->n_in; i++) foreign = foreign || (n->in[i] && c->foreign[n->in[i]->id]);
        for (int i = 0; i < n->n_bodies; i++) foreign = foreign || any_foreign(c, n->bodies[i]);
        for (int i = 0; i < n->n_out; i++) c->foreign[n->out[i]->id] = foreign;
    }
    for (int i = 0; i < c->g->symbols.n; i++) {         // sizes that another function measures
        Symbol *s = &c->g->symbols.at[i];
        if (!s->from || !c->foreign[s->from->id]) continue;
        s->from = NULL;
        s->runtime = false;
    }
}

static void need(const Cut *c, const Graph *g) {
    for (int i = 0; i < g->outputs.n; i++) c->live[g->outputs.at[i]->id] = true;
    for (const Node *n = g->last; n; n = n->prev) {
        bool used = g != c->g;
        for (int i = 0; i < n->n_out; i++) used = used || c->live[n->out[i]->id];
        for (int i = 0; used && i < n->n_in; i++)
            if (n->in[i]) c->live[n->in[i]->id] = true;
        for (int i = 0; used && i < n->n_bodies; i++) need(c, n->bodies[i]);
    }
}

static bool cut_ends(const Cut *c, const char *name) {
    Graph *g = c->g;
    for (int i = 0; i < c->outputs; i++) {
        g->outputs.at[i] = g->outputs.at[c->first_output + i];
        g->output_names.at[i] = g->output_names.at[c->first_output + i];
        if (!c->foreign[g->outputs.at[i]->id]) continue;
        diag_error(&(Loc){ .file = g->file, .node = -1 }, "function \"%s\": its output \"%s\" needs inputs of another",
            name, g->output_names.at[i]);
        return false;
    }
    for (int i = 0; i < c->inputs; i++) g->inputs.at[i] = g->inputs.at[c->first_input + i];
    g->inputs.n = c->inputs;
    g->outputs.n = g->output_names.n = c->outputs;
    g->functions.n = 0;
    return true;
}

Graph *graph_function(Graph *whole, int which) {
    const GraphFunction *f = &whole->functions.at[which];
    Cut c = { .g = graph_clone(whole, f->name), .inputs = f->inputs, .outputs = f->outputs };
    for (int i = 0; i < which; i++) {
        c.first_input += whole->functions.at[i].inputs;
        c.first_output += whole->functions.at[i].outputs;
    }
    Arena *scratch = arena_new();
    c.foreign = NEW_ARRAY(scratch, bool, c.g->value_count);
    c.live = NEW_ARRAY(scratch, bool, c.g->value_count);
    mark_foreign(&c);
    bool ok = cut_ends(&c, f->name);
    for (int i = 0; i < c.g->symbols.n; i++)
        if (c.g->symbols.at[i].from) c.live[c.g->symbols.at[i].from->id] = true;
    need(&c, c.g);
    for (Node *n = c.g->last, *before; n; n = before) {
        bool used = false;
        before = n->prev;
        for (int i = 0; i < n->n_out; i++) used = used || c.live[n->out[i]->id];
        if (!used) graph_remove(c.g, n);
    }
    arena_free(scratch);
    return ok ? c.g : NULL;
}
