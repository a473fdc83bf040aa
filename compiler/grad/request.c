// SPDX-License-Identifier: MIT OR Apache-2.0
// What --train gives besides on request: gradients by inputs (--input-gradients), and how the outputs move when inputs
// and parameters do (--jvp).
//
//   gradients (...) -> loss, grads, INPUT_gradient of each input that is named
//   jvp       (params, inputs, tangents, INPUT_tangent) -> outputs, OUTPUT_tangent
//
// jvp computes as predict does. Its derivatives are J v of the Jacobian J and the direction v: one node, Tangent, which
// the pass gradient replaces.
#include "request.h"

#include <string.h>

static bool has_gradient_input(const Value *v) { return !v->role && dtype_is_float(v->type.dtype); }

// Is name an item of the list, or the list "all"?
static bool lists(const char *list, const char *name) {
    size_t length = strlen(name);
    if (!strcmp(list, "all")) return true;
    for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',')
        if (strcspn(at, ",") == length && !strncmp(at, name, length)) return true;
    return false;
}

bool request_check(Training *t, const Graph *model, const Options *o) {
    Arena *a = model->arena;
    Text names;
    t->input_gradients = o->input_gradients;
    t->jvp = o->jvp;
    t->short_of_memory = o->machine.ram_first;
    if (!t->input_gradients) return true;
    text_init(&names, a);
    text_append(&names, "", 0);
    int wanted = 1, found = 0;
    for (const char *at = t->input_gradients; *at; at++) wanted += *at == ',';
    for (int i = 0; i < model->inputs.n; i++) {
        const Value *v = model->inputs.at[i];
        if (!has_gradient_input(v)) continue;
        text_printf(&names, " %s", v->name);
        found += lists(t->input_gradients, v->name);
    }
    if (!strcmp(t->input_gradients, "all") ? found > 0 : found == wanted) return true;
    diag_error_as(EXIT_USAGE, NULL, "--input-gradients %s: the inputs of floats are%s%s", t->input_gradients,
        names.n ? names.at : "", names.n ? "" : " none");
    return false;
}

bool request_takes(const Training *t, const Value *input) {
    return t->input_gradients && has_gradient_input(input) && lists(t->input_gradients, input->name);
}

const char *request_gradient_name(Arena *a, const Value *input) { return arena_printf(a, "%s_gradient", input->name); }

// ---------------------------------------------------------------- forward mode
Graph *jvp_graph(const Training *t, Graph *model) {
    Graph *g = graph_clone(model, "jvp");
    Arena *a = g->arena;
    int n_y = 0, n_x = 0, n_in = g->inputs.n, n_out = g->outputs.n;
    Value **in = NEW_ARRAY(a, Value *, n_out + 2 * n_in + 1), **moves = NEW_ARRAY(a, Value *, n_in + 1);
    const char **names = NEW_ARRAY(a, const char *, n_out + 1);
    for (int i = 0; i < n_out; i++) {
        if (!dtype_is_float(g->outputs.at[i]->type.dtype)) continue;
        names[n_y] = arena_printf(a, "%s_tangent", g->output_names.at[i]);
        in[n_y++] = g->outputs.at[i];
    }
    for (int i = 0; i < n_in; i++) {
        Value *x = g->inputs.at[i];
        bool trained = train_is_trained(t, x);
        if (!trained && !has_gradient_input(x)) continue;
        const char *name = trained ? x->name : arena_printf(a, "%s_tangent", x->name);
        in[n_y + n_x] = x;
        moves[n_x++] = train_input(g, name, x->type, trained ? ROLE_TANGENT : ROLE_NONE);
    }
    if (!n_y || !n_x) return graph_fail(g, "--jvp: the model has no %s of floats", n_y ? "inputs" : "outputs");
    for (int i = 0; i < n_x; i++) in[n_y + n_x + i] = moves[i];
    Node *tangent = graph_node(g, OP_Tangent, n_y + 2 * n_x, in, n_y);
    if (!node_infer(tangent)) return NULL;
    for (int i = 0; i < n_y; i++) graph_output(g, tangent->out[i], names[i]);
    return g;
}
