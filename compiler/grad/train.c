// SPDX-License-Identifier: MIT OR Apache-2.0
// --train: an imported model becomes programs over structs that the caller owns.
//
//   predict   (params, inputs) -> outputs
//   gradients (params, inputs, target) -> loss, grads
//   update    (params, grads, state, hyper-parameters) -> params, state        in place
//
// and with --schedule a fourth, learning_rate (step, parameters) -> rate. Weights turn into inputs of the role
// ROLE_PARAM; the gradients are those of a loss appended to the model. Losses, optimizers and schedules are rows of
// losses.def, optimizers.def and schedules.def.
#include "train.h"
#include "passes/passes.h"
#include "grad/grad.h"
#include "ops/training.h"

#include <string.h>

enum { MAX_OPERANDS = 16 };                             // of an optimizer's row

// ---------------------------------------------------------------- parameters
static bool field_taken(const Training *t, const char *field) {
    for (int i = 0; i < t->params.n; i++) if (!strcmp(t->params.at[i].field, field)) return true;
    return false;
}

static void promote(Training *t, Graph *g, Value *v) {
    const char *base = name_c(g->arena, v->name && *v->name ? v->name : "weight"), *field = base;
    for (int i = 2; field_taken(t, field); i++) field = arena_printf(g->arena, "%s_%d", base, i);
    VEC_PUSH(g->arena, t->params,
        (Parameter){ .name = v->name ? v->name : field, .field = field, .type = v->type, .initial = v->data });
    v->data = NULL;
    v->is_input = true;
    v->trainable = false;
    v->name = field;
    v->role = ROLE_PARAM;
    VEC_PUSH(g->arena, g->inputs, v);
}

static void promote_all(Training *t, Graph *model, const Graph *g) {     // g: the model or a body in it
    for (const Node *n = g->first; n; n = n->next) {
        for (int i = 0; i < n->n_in; i++) {
            Value *v = n->in[i];
            if (v && v->data && v->trainable && v->graph == model) promote(t, model, v);
        }
        for (int i = 0; i < n->n_bodies; i++) promote_all(t, model, n->bodies[i]);
    }
}

static Value *role_input(Graph *g, const char *name, Type type, Role role) {
    Value *v = graph_input(g, name, type);
    v->role = role;
    return v;
}

// ---------------------------------------------------------------- loss and gradients
static Graph *gradient_graph(Graph *model, const LossRow *loss, const Options *o) {
    Graph *g = graph_clone(model, model->name);
    if (!passes_run(g, o)) return NULL;
    Value *y = g->outputs.at[0];
    Type target = y->type;
    if (loss->classes) {
        target.dtype = DT_I64;
        target.rank--;
    }
    if (y->type.rank < 1 || !dtype_is_float(y->type.dtype)) {
        diag_error(y->def ? y->def->loc : NULL,
            "--loss %s wants float outputs [..., classes], the model's first output is %s", loss->name,
            type_text(g->arena, g, &y->type));
        return NULL;
    }
    int n = 0;
    Value **params = NEW_ARRAY(g->arena, Value *, g->inputs.n + 1);
    for (int i = 0; i < g->inputs.n; i++) if (g->inputs.at[i]->role) params[n++] = g->inputs.at[i];
    Value *t = graph_input(g, "target", target);
    g->cursor = NULL;
    g->outputs.n = g->output_names.n = 0;
    Value *l = b_op(g, loss->op, 2, (Value *[]){ y, t });
    if (!l) return NULL;
    graph_output(g, l, "loss");
    if (!passes_run(g, o)) return NULL;
    pass_expand(g, NULL);
    g->cursor = NULL;
    Value *const *grads = graph_gradient(g, g->outputs.at[0], n, params);
    if (!grads) return NULL;
    for (int i = 0; i < n; i++) graph_output(g, grads[i], params[i]->name);
    if (!passes_run(g, o)) return NULL;
    g->cursor = NULL;
    for (int i = 0; i < n; i++) {                       // values of their own: two parameters may share one gradient
        Value *d = b_unary(g, OP_Identity, g->outputs.at[1 + i]);
        d->role = ROLE_GRAD;
        g->outputs.at[1 + i] = d;
    }
    return g;
}

// ---------------------------------------------------------------- optimizer step
// The hyper-parameters of a row as inputs that are passed by value.
static int hyper_inputs(Graph *g, const char *list, Value **in) {
    const char *name;
    double usual;
    int n = 0;
    while (row_word(g->arena, &list, &name, &usual))
        in[n++] = role_input(g, name, type_make(DT_F32, 0, NULL), ROLE_VALUE);
    return n;
}

// One node: the row's operation on this parameter; what it gives has the names of the structs' fields.
static bool update_parameter(Training *t, Graph *g, const OptimizerRow *row, const Parameter *p, int n_hyper,
    Value *const *hyper) {
    Arena *a = g->arena;
    const char *list = row->state, *name, *fields[MAX_OPERANDS] = { p->field };
    double usual;
    int n = 2, n_out = 1;
    Value *in[MAX_OPERANDS] = { role_input(g, p->field, p->type, ROLE_PARAM),
        role_input(g, p->field, p->type, ROLE_GRAD) };
    while (row_word(a, &list, &name, &usual)) {
        const char *field = fields[n_out++] = arena_printf(a, "%s_%s", p->field, name);
        VEC_PUSH(a, t->state, (Parameter){ .name = field, .field = field, .type = p->type });
        in[n++] = role_input(g, field, p->type, ROLE_STATE);
    }
    for (int i = 0; i < n_hyper; i++) in[n++] = hyper[i];
    Node *step = graph_node(g, row->op, n, in, n_out);
    if (!node_infer(step)) return false;
    for (int i = 0; i < n_out; i++) {
        step->out[i]->name = fields[i];
        graph_output(g, step->out[i], fields[i]);
    }
    return true;
}

static bool is_state(const Training *t, const char *field) {
    for (int i = 0; i < t->state.n; i++) if (!strcmp(t->state.at[i].field, field)) return true;
    return false;
}

static Graph *update_graph(Training *t, Graph *model, const OptimizerRow *row, const Options *o) {
    Graph *g = graph_new(model->arena, model->name, model->file);
    Value *hyper[MAX_OPERANDS];
    int n = hyper_inputs(g, row->hyper, hyper);
    for (int i = 0; i < t->params.n; i++)
        if (!update_parameter(t, g, row, &t->params.at[i], n, hyper)) return NULL;
    if (!passes_run(g, o)) return NULL;
    for (int i = 0; i < g->outputs.n; i++)
        g->outputs.at[i]->role = is_state(t, g->output_names.at[i]) ? ROLE_STATE : ROLE_PARAM;
    return g;
}

// ---------------------------------------------------------------- the learning rate
static Graph *schedule_graph(Graph *model, const ScheduleRow *row, const Options *o) {
    Graph *g = graph_new(model->arena, model->name, model->file);
    Value *in[MAX_OPERANDS] = { role_input(g, "step", type_make(DT_F32, 0, NULL), ROLE_VALUE) };
    int n = 1 + hyper_inputs(g, row->hyper, in + 1);
    Formula f = { .g = g };
    for (int i = 0; i < n; i++) formula_let(&f, in[i]->name, in[i], 0);
    if (!formula_run(&f, row->assignments)) return NULL;
    graph_output(g, formula_value(&f, "rate"), "rate");
    return passes_run(g, o) ? g : NULL;
}

// ---------------------------------------------------------------- the programs
static bool add_program(Training *t, Graph *g, const Options *o, const char *suffix, const char *doc, bool descriptor) {
    Plan *p = g ? plan_make(g, o) : NULL;
    if (!p) return false;
    Arena *a = g->arena;
    t->programs[t->n_programs++] = (Program){ .name = arena_printf(a, "%s_%s", o->name, suffix),
        .name_of_workspace = arena_printf(a, "%s_%s", o->name, suffix),
        .doc = doc,
        .plan = p,
        .descriptor = descriptor };
    return true;
}

Training *train_programs(Graph *model, const Options *o) {
    const LossRow *loss = loss_find(o->loss ? o->loss : "cross_entropy");
    const OptimizerRow *opt = optimizer_find(o->optimizer ? o->optimizer : "sgd");
    const ScheduleRow *schedule = o->schedule ? schedule_find(o->schedule) : NULL;
    Arena *a = model->arena;
    if (!loss)
        diag_error_as(EXIT_USAGE, NULL, "--loss: no loss is called '%s'; there are%s", o->loss, loss_names);
    if (!opt)
        diag_error_as(EXIT_USAGE, NULL, "--optimizer: no optimizer is called '%s'; there are%s", o->optimizer,
            optimizer_names);
    if (o->schedule && !schedule)
        diag_error_as(EXIT_USAGE, NULL, "--schedule: no schedule is called '%s'; there are%s", o->schedule,
            schedule_names);
    if (!loss || !opt || (o->schedule && !schedule)) return NULL;
    if (model->outputs.n > 1)
        diag_note(NULL, "the loss is computed on the first of %d outputs, \"%s\"", model->outputs.n,
            model->output_names.at[0]);
    Training *t = NEW(a, Training);
    promote_all(t, model, model);
    if (!t->params.n) {
        diag_error(NULL, "the model has no float weights to train");
        return NULL;
    }
    Graph *predict = graph_clone(model, model->name);
    bool ok = passes_run(predict, o)
        && add_program(t, predict, o, "predict", "The model with the caller's parameters.", false);
    ok = ok
        && add_program(t, gradient_graph(model, loss, o), o, "gradients",
            "Loss of one batch (the mean over its items) and the gradients of all parameters; nothing is updated.",
            false);
    ok = ok
        && add_program(t, update_graph(t, model, opt, o), o, "update",
            arena_printf(a, "One step of %s: params and state change in place. Usual values: %s.", opt->name, opt->hyper),
            false);
    ok = ok
        && (!schedule
            || add_program(t, schedule_graph(model, schedule, o), o, "learning_rate",
                arena_printf(a, "The learning rate of a step, which counts from 0, by the schedule %s. Usual values: %s.",
                    schedule->name, schedule->hyper),
                false));
    return ok ? t : NULL;
}
