// SPDX-License-Identifier: MIT OR Apache-2.0
// Gradients and the optimizer's step in one program, so that the gradients are never all there.
//
// In: the graph of the gradients. Out: a copy in which each gradient, instead of an output, is the operand of its
// parameter's update. A gradient is stored all the same (Identity with stored=1): then the kernels are those of the
// separate programs, so are the bits, and the file has each function once. What makes it worth it is the order of the
// kernels (schedule/order.c): an update comes as soon as nobody reads the old parameter any more. Where memory is short
// only those are stored that sum something (sums=1): an outer product, of one example, is computed in the update.
#include "step.h"

#include "build/build.h"
#include "mode.h"
#include "ops/formulas.h"

#include <string.h>

static const Parameter *parameter_of(const Training *t, const char *field) {
    for (int i = 0; i < t->params.n; i++)
        if (!strcmp(t->params.at[i].field, field)) return &t->params.at[i];
    bug("no parameter is called %s", field);
}

static bool run_on(Graph *g, const Hyper *h, const Update *u) {
    Value *next = mode_run_on(g, u->of, u->param, u->gradient, b_scalar(g, DT_F32, 1));
    if (next) next = scale_keep(g, h, u->param, next);
    if (next) train_output(g, next, u->of->field, ROLE_PARAM);
    return next != NULL;
}

static Value *param_input(const Graph *g, const char *field) {
    for (int i = 0; i < g->inputs.n; i++)
        if (g->inputs.at[i]->role == ROLE_PARAM && !strcmp(g->inputs.at[i]->name, field)) return g->inputs.at[i];
    bug("the gradients read no parameter %s", field);
}

static Value *gradient_of(const Training *t, Graph *g, Value *made) {
    Value *v = b_stored(g, made);
    if (v && t->short_of_memory) node_set_int(v->def, "sums", 1);
    return v;
}

Graph *step_graph(Training *t, Graph *gradients) {
    Graph *g = graph_clone(gradients, "train_step");
    Hyper hyper;
    int n_updates = 0, n_runs = 0;
    const int n = gradients->outputs.n;
    Update *updates = NEW_ARRAY(g->arena, Update, n + 1), *runs = NEW_ARRAY(g->arena, Update, n + 1);
    optimizer_hyper(t, g, &hyper);
    Value *const *made = arena_copy(g->arena, g->outputs.at, sizeof *made * (size_t)n);
    g->outputs.n = g->output_names.n = 0;
    for (int i = 0; i < n; i++) {
        const char *name = gradients->output_names.at[i];
        const Parameter *p = made[i]->role == ROLE_GRAD ? parameter_of(t, name) : NULL;
        if (!p) {
            graph_output(g, made[i], name);
            continue;
        }
        made[i]->role = ROLE_NONE;
        if (p->kind == PARAMETER_BATCHES) continue;
        Update u = { p, param_input(g, name), gradient_of(t, g, made[i]) };
        if (!u.gradient) return NULL;
        if (p->kind == PARAMETER_RUNNING) runs[n_runs++] = u;
        else updates[n_updates++] = u;
    }
    bool ok = train_updates(t, g, &hyper, n_updates, updates);
    for (int i = 0; i < n_runs && ok; i++) ok = run_on(g, &hyper, &runs[i]);
    return ok ? g : NULL;
}
