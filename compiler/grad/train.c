// SPDX-License-Identifier: MIT OR Apache-2.0
// --train: an imported model becomes programs over structs that the caller owns.
//
//   predict   (params, inputs) -> outputs
//   evaluate  (params, inputs, target) -> loss, outputs
//   gradients (params, inputs, target) -> loss, grads
//   update    (params, grads, state, hyper-parameters) -> params, state        in place
//   train_step (params, inputs, target, hyper-parameters, state) -> loss, params, state
//              both in one, in place: each gradient is gone before the next ones are made (step.c)
//
// and with --schedule learning_rate (step, parameters) -> rate; request.c has more. Weights turn into inputs of the
// role ROLE_PARAM (parameters.c); the gradients are those of a loss appended to the model in training mode (mode.c).
// Losses, optimizers and schedules are rows of losses.def, optimizers.def and schedules.def.
#include "train.h"
#include "parameters.h"
#include "build/build.h"
#include "mode.h"
#include "ops/formulas.h"
#include "request.h"
#include "schedule.h"
#include "through.h"
#include "step.h"

#include <string.h>

Value *train_input(Graph *g, const char *name, Type type, Role role) {
    Value *v = graph_input(g, name, type);
    v->role = role;
    return v;
}

void train_output(Graph *g, Value *v, const char *name, Role role) {
    v->role = role;
    graph_output(g, v, name);
}

// ---------------------------------------------------------------- loss and gradients
// The loss in place of the model's n outputs; those behind them stay.
static void replace_outputs(Graph *g, int n, Value *loss) {
    g->outputs.at[0] = loss;
    g->output_names.at[0] = "loss";
    for (int i = n; i < g->outputs.n; i++) {
        g->outputs.at[1 + i - n] = g->outputs.at[i];
        g->output_names.at[1 + i - n] = g->output_names.at[i];
    }
    g->outputs.n = g->output_names.n = 1 + g->outputs.n - n;
}

bool train_is_trained(const Training *t, const Value *input) {
    for (int i = 0; input->role == ROLE_PARAM && i < t->params.n; i++)
        if (!strcmp(t->params.at[i].field, input->name)) return t->params.at[i].kind == PARAMETER_TRAINED;
    return false;
}

// The loss beside the model's outputs, as it computes them in inference.
static Graph *evaluation_graph(Training *t, Graph *model) {
    Graph *g = graph_clone(model, "evaluate");
    int n = g->outputs.n;
    Value *l = losses_targets(&t->losses, g) ? losses_sum(&t->losses, g) : NULL;
    if (!l) return NULL;
    l->role = ROLE_LOSS;
    graph_output(g, l, "loss");
    for (int i = n; i > 0; i--) {                       // first, as of the gradients
        g->outputs.at[i] = g->outputs.at[i - 1];
        g->output_names.at[i] = g->output_names.at[i - 1];
    }
    g->outputs.at[0] = l;
    g->output_names.at[0] = "loss";
    return g;
}

Graph *train_loss(Training *t, Graph *model, const char *name) {
    Graph *g = graph_clone(model, name);
    int n_model = g->outputs.n;
    Value *l = losses_targets(&t->losses, g) && mode_train(t, g) ? losses_sum(&t->losses, g) : NULL;
    if (!l) return NULL;
    replace_outputs(g, n_model, l);
    l->role = ROLE_LOSS;
    return g;
}

// The loss, and a Gradient node by the parameters.
static Graph *gradient_graph(Training *t, Graph *model) {
    Graph *g = train_loss(t, model, "gradients");
    if (!g) return NULL;
    Value **in = NEW_ARRAY(g->arena, Value *, g->inputs.n + 1);
    int n = 0;
    if (!(in[n++] = scale_loss(t, g, g->outputs.at[0]))) return NULL;
    for (int i = 0; i < model->inputs.n; i++)
        if (train_is_trained(t, g->inputs.at[i]) || request_takes(t, g->inputs.at[i])) in[n++] = g->inputs.at[i];
    Node *gradient = graph_node(g, OP_Gradient, n, in, n - 1);
    if (!node_infer(gradient)) return NULL;
    for (int i = 1; i < n; i++) {
        bool asked = !in[i]->role;
        const char *name = asked ? request_gradient_name(g->arena, in[i]) : in[i]->name;
        Value *d = scale_back(t, g, gradient->out[i - 1]);
        if (!d) return NULL;
        train_output(g, d, name, asked ? ROLE_NONE : ROLE_GRAD);
    }
    return g;
}

// ---------------------------------------------------------------- optimizer step
static bool update_running(Graph *g, const Hyper *h, const Parameter *p, Value *batches) {
    Value *running = train_input(g, p->field, p->type, ROLE_PARAM), *sum = train_input(g, p->field, p->type, ROLE_GRAD);
    Value *next = mode_run_on(g, p, running, sum, batches);
    if (next) next = scale_keep(g, h, running, next);
    if (next) train_output(g, next, p->field, ROLE_PARAM);
    return next != NULL;
}

static Graph *update_graph(Training *t, Graph *model) {
    Graph *g = graph_new(model->arena, "update", model->file);
    g->bound = true;                                    // --dim is about the model's sizes
    Hyper hyper;
    optimizer_hyper(t, g, &hyper);
    Update *u = NEW_ARRAY(g->arena, Update, t->params.n + 1);
    int n = 0;
    for (int i = 0; i < t->params.n; i++) {
        const Parameter *p = &t->params.at[i];
        if (p->kind != PARAMETER_TRAINED) continue;
        optimizer_state(t, g->arena, p);
        u[n].of = p;
        u[n].param = train_input(g, p->field, p->type, ROLE_PARAM);
        u[n++].gradient = train_input(g, p->field, p->type, ROLE_GRAD);
    }
    if (!train_updates(t, g, &hyper, n, u)) return NULL;
    scale_state(t, g->arena);
    Value *batches = t->runs ? train_input(g, t->runs, type_make(DT_F32, 0, NULL), ROLE_GRAD) : NULL;
    for (int i = 0; i < t->params.n; i++)
        if (t->params.at[i].kind == PARAMETER_RUNNING && !update_running(g, &hyper, &t->params.at[i], batches))
            return NULL;
    return g;
}

// ---------------------------------------------------------------- the graphs
static bool add_graph(Training *t, Graph *g, const char *doc) {
    if (!g) return false;
    int n = t->n_graphs++;
    t->graphs[n] = (TrainGraph){ .graph = g, .doc = doc, .roles = NEW_ARRAY(g->arena, Role, g->outputs.n) };
    for (int i = 0; i < g->outputs.n; i++) t->graphs[n].roles[i] = g->outputs.at[i]->role;
    return true;
}

void train_ends(const TrainGraph *t) {
    Graph *g = t->graph;
    for (int i = 0; i < g->outputs.n; i++) {
        Value *v = g->outputs.at[i];
        g->cursor = v->def ? v->def->next : NULL;       // gradients are done with where they are made
        if (t->roles[i] == ROLE_GRAD) v = g->outputs.at[i] = b_unary(g, OP_Identity, v);
        v->role = t->roles[i];
    }
    g->cursor = NULL;
}

Training *train_parameters(Graph *model, const Options *o) {
    Training *t = NEW(model->arena, Training);
    t->drops = !o->no_dropout;
    t->seed = o->seed;
    if (!request_check(t, model, o)) return NULL;
    t->schedule_text = o->schedule;
    t->clip_value = o->clip_value;
    t->clip_norm = o->clip_norm;
    if (!losses_read(&t->losses, model, o) || !optimizer_read(t, model->arena, o->optimizer)) return NULL;
    if (!groups_read(t, model->arena, o) || !scale_read(t, model->arena, o)) return NULL;
    if (o->schedule && !schedule_read(model->arena, o->schedule, &t->schedule)) return NULL;
    straight_scales(model);
    return parameters_make(t, model, o) ? t : NULL;
}

static const char *gradients_doc(const Training *t, const Graph *g) {
    return arena_printf(g->arena,
        "Loss of one batch and the gradients of all parameters; nothing is updated.%s%s%s", losses_doc(&t->losses, g),
        t->runs ? " The\n * statistics of the batch are where params has the running ones of batch normalization." : "",
        t->step ? "\n * The masks of dropout are a function of step: those of equal numbers are equal." : "");
}

bool train_graphs(Training *t, Graph *model) {
    Arena *a = model->arena;
    bool ok = add_graph(t, graph_clone(model, "predict"), "The model with the caller's parameters.");
    ok = ok
        && (!t->jvp
            || add_graph(t, jvp_graph(t, model),
                "The model's outputs as in predict, and how they move as inputs and parameters move along their\n"
                " * tangents."));
    ok = ok
        && add_graph(t, evaluation_graph(t, model),
            "Loss of one batch and the model's outputs, computed as in predict: nothing is dropped or trained.");
    Graph *gradients = ok ? gradient_graph(t, model) : NULL;
    ok = gradients && add_graph(t, gradients, gradients_doc(t, gradients));
    ok = ok
        && add_graph(t, update_graph(t, model),
            arena_printf(a, "One step of %s: params and state change in place.%s Usual values: %s.%s",
                t->optimizer->name, t->runs ? " Running statistics go on to those of the batches." : "",
                optimizer_usual(t, a), groups_doc(t, a)));
    ok = ok
        && add_graph(t, step_graph(t, gradients),
            arena_printf(a,
                "The same as gradients and then update, without a struct of gradients: each is used up when it is "
                "made.\n * params and state change in place. Usual values: %s.",
                optimizer_usual(t, a)));
    Graph *schedule = ok && t->schedule ? schedule_graph(model, t->schedule, &t->schedule_usual) : NULL;
    if (!ok || !t->schedule) return ok;
    return add_graph(t, schedule,
        arena_printf(a, "The learning rate of a step, which counts from 0, by the schedule %s.%s%s%s", t->schedule_text,
            *t->schedule_usual ? " Usual values: " : "", t->schedule_usual, *t->schedule_usual ? "." : ""));
}

bool train_apart(const Training *t, const Options *o) {
    int64_t bytes = 0;
    for (int i = 0; i < t->params.n; i++) bytes += type_bytes(&t->params.at[i].type);
    return bytes > o->embed_limit;
}
