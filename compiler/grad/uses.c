// SPDX-License-Identifier: MIT OR Apache-2.0
// Where a model's parameters are used, and by which modules.
//
// In: an imported graph. Out: a list of the inputs of nodes that a trainable constant or a running statistic is. The
// idea: nodes tell their module by the path in their name, as PyTorch writes it
// ("/layers/layers.0/norm/LayerNormalization" is of layers.0.norm), so that a use has an owner and, of that owner, a
// name; what --untie, --freeze and the like say is about those.
#include "uses.h"
#include "build/build.h"
#include "mode.h"

#include <ctype.h>
#include <string.h>

bool use_is_statistic(const Use *u) { return u->n->op == OP_BatchNorm && u->i >= 3; }

bool use_is_running(const Uses *all, const Use *u) {
    return !all->frozen && !u->stays && use_is_statistic(u) && mode_runs(u->n);
}

void uses_find(Uses *u, const Graph *model, const Graph *g) {
    for (Node *n = g->first; n; n = n->next) {
        for (int i = 0; i < n->n_in; i++) {
            Value *v = n->in[i];
            bool takes = v && (v->trainable || use_is_running(u, &(Use){ .v = v, .n = n, .i = i }));
            if (!takes || !v->data || v->graph != model) continue;
            bool known = false;
            for (int k = 0; k < u->values.n && !known; k++) known = u->values.at[k] == v;
            if (!known) VEC_PUSH(u->scratch, u->values, v);
            VEC_PUSH(u->scratch, u->at, (Use){ .v = v, .n = n, .i = i });
        }
        for (int i = 0; i < n->n_bodies; i++) uses_find(u, model, n->bodies[i]);
    }
}

// ---------------------------------------------------------------- what is of no consequence

static void reach_all(const Graph *body, bool *reached) {
    for (const Node *n = body->first; n; n = n->next) {
        for (int i = 0; i < n->n_in; i++)
            if (n->in[i]) reached[n->in[i]->id] = true;
        for (int i = 0; i < n->n_out; i++) reached[n->out[i]->id] = true;
        for (int i = 0; i < n->n_bodies; i++) reach_all(n->bodies[i], reached);
    }
    for (int i = 0; i < body->outputs.n; i++) reached[body->outputs.at[i]->id] = true;
}

static bool is_reached(const Node *n, const bool *reached) {
    bool any = false;
    for (int i = 0; i < n->n_out; i++) any = any || reached[n->out[i]->id];
    return any;
}

void uses_idle(Uses *u, const Graph *model, const bool *outputs) {
    bool *reached = NEW_ARRAY(u->scratch, bool, model->value_count + 1);
    for (int i = 0; i < model->outputs.n; i++)
        if (outputs[i]) reached[model->outputs.at[i]->id] = true;
    for (const Node *n = model->last; n; n = n->prev) {
        if (!is_reached(n, reached)) continue;
        for (int i = 0; i < n->n_in; i++)
            if (n->in[i]) reached[n->in[i]->id] = true;
        for (int i = 0; i < n->n_bodies; i++) reach_all(n->bodies[i], reached);
    }
    for (int i = 0; i < u->at.n; i++) u->at.at[i].idle = !is_reached(u->at.at[i].n, reached);
}

// ---------------------------------------------------------------- modules

bool use_opens_module(const Uses *all, const Use *u) {
    if (use_is_statistic(u)) return false;
    for (const Use *w = all->at.at; w < u; w++)
        if (w->v == u->v && !use_is_statistic(w) && same_module(w->n, u->n)) return false;
    return true;
}

int uses_modules(const Uses *all, const Value *v) {
    int n = 0;
    for (int i = 0; i < all->at.n; i++) n += all->at.at[i].v == v && use_opens_module(all, &all->at.at[i]);
    return n;
}

// ---------------------------------------------------------------- names

// What its module calls the parameter.
static const char *role_in_module(const Use *u) {
    if (use_is_statistic(u)) return u->i == 3 ? "running_mean" : "running_var";
    bool norm = u->n->op == OP_BatchNorm || u->n->op == OP_LayerNorm || u->n->op == OP_GroupNorm
        || u->n->op == OP_InstanceNorm;
    if (norm || u->n->op == OP_Conv) return u->i == 2 ? "bias" : "weight";
    const char *dot = u->v->name ? strrchr(u->v->name, '.') : NULL;
    return dot && (isalpha((unsigned char)dot[1]) || dot[1] == '_') ? dot + 1 : u->n->op == OP_Add ? "bias" : "weight";
}

const char *use_own_name(Arena *a, const Use *u) {
    const char *path = module_path(a, node_label(u->n));
    return *path ? arena_printf(a, "%s.%s", path, role_in_module(u)) : role_in_module(u);
}
