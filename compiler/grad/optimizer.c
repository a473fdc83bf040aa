// SPDX-License-Identifier: MIT OR Apache-2.0
// --optimizer NAME(parameter=value, ...): a row of optimizers.def as a step on each parameter.
//
// In: the option's text; parameters and gradients of a graph. Out: a node for each, of the row, or where the row is for
// matrices and the parameter is none, of the row for the others, whose hyper-parameters begin with its name. What is
// given a value is a constant, an attribute of the nodes; other hyper-parameters are arguments of the program.
#include "build/build.h"
#include "ops/formulas.h"
#include "step.h"

#include <stdlib.h>
#include <string.h>

static const OptimizerRow *row_at(const Training *t, int k) {
    return k ? optimizer_others(t->optimizer) : t->optimizer;
}

// 0: the row is for p, 1: that of the others
static int which(const Training *t, const Parameter *p) {
    return optimizer_others(t->optimizer) && p->type.rank != 2;
}

// What the program calls a hyper-parameter of row k.
static const char *called(const Training *t, Arena *a, int k, const char *name) {
    return k && strcmp(name, "step") ? arena_printf(a, "%s_%s", row_at(t, k)->name, name) : name;
}

// The number that is given for it, if any.
static bool given(const Training *t, const char *name, double *number) {
    const Spec *s = t->optimizer_spec;
    for (int i = 0; i < s->args.n; i++)
        if (s->args.at[i].key && !strcmp(s->args.at[i].key, name)) {
            *number = strtod(s->args.at[i].value->word, NULL);
            return true;
        }
    return false;
}

static bool lists(const Training *t, Arena *a, int k, const char *list, const char *key) {
    const char *name;
    for (double usual; row_word(a, &list, &name, &usual);)
        if (!strcmp(called(t, a, k, name), key) && strcmp(name, "step")) return true;
    return false;
}

static bool known(const Training *t, Arena *a, const SpecArg *arg) {
    char *end;
    strtod(arg->value->word, &end);
    if (!arg->key || arg->value->args.n || end == arg->value->word || *end) return false;
    for (int k = 0; k < 2 && row_at(t, k); k++) {
        const OptimizerRow *row = row_at(t, k);
        if (lists(t, a, k, row->hyper, arg->key) || lists(t, a, k, row->options, arg->key)) return true;
    }
    return false;
}

bool optimizer_has(const Training *t, Arena *a, const char *name) {
    for (int k = 0; k < 2 && row_at(t, k); k++)
        if (lists(t, a, k, row_at(t, k)->hyper, name)) return true;
    return false;
}

bool optimizer_read(Training *t, Arena *a, const char *text) {
    const char *s = text ? text : "sgd";
    const Spec *spec = t->optimizer_spec = spec_parse(a, &s);
    t->optimizer = spec ? optimizer_find(spec->word) : NULL;
    if (!spec || *s) {
        diag_error_as(EXIT_USAGE, NULL, "--optimizer %s: cannot be read; it is NAME(parameter=value, ...)", text);
        return false;
    }
    if (!t->optimizer) {
        diag_error_as(EXIT_USAGE, NULL, "--optimizer: no optimizer is called '%s'; there are%s", spec->word,
            optimizer_names);
        return false;
    }
    for (int i = 0; i < spec->args.n; i++) {
        if (known(t, a, &spec->args.at[i])) continue;
        const OptimizerRow *row = t->optimizer;
        diag_error_as(EXIT_USAGE, NULL, "--optimizer %s: it has the numbers %s%s%s", text, optimizer_usual(t, a),
            *row->options ? " " : "", row->options);
        return false;
    }
    return true;
}

static Value *value_input(const Graph *g, const char *name) {
    for (int i = 0; i < g->inputs.n; i++)
        if (g->inputs.at[i]->role == ROLE_VALUE && !strcmp(g->inputs.at[i]->name, name)) return g->inputs.at[i];
    return NULL;
}

static Value *hyper_input(Graph *g, const char *name, double usual) {
    Value *there = value_input(g, name), *v = there;    // dropout's step is an integer
    if (!v) v = train_input(g, name, type_make(DT_F32, 0, NULL), ROLE_VALUE);
    if (!strcmp(name, "step")) {                        // from 1 where powers of it divide, else from 0
        struct Allowed *r = NEW(g->arena, struct Allowed);
        *r = (struct Allowed){ .lo = (int64_t)usual, .hi = INT64_MAX };
        v->range = r;
    }
    return there ? b_cast(g, v, DT_F32) : v;
}

void optimizer_hyper(const Training *t, Graph *g, Hyper *h) {
    *h = (Hyper){ 0 };
    for (int k = 0; k < 2 && row_at(t, k); k++) {
        bool used = false;
        for (int i = 0; i < t->params.n; i++)
            used = used || (t->params.at[i].kind == PARAMETER_TRAINED && which(t, &t->params.at[i]) == k);
        const char *list = row_at(t, k)->hyper, *name;
        double number;
        for (double usual; row_word(g->arena, &list, &name, &usual);) {
            const char *full = called(t, g->arena, k, name);
            bool constant = given(t, full, &number) || (k && !used);
            h->in[k][h->n[k]++] = constant ? NULL : hyper_input(g, full, usual);
        }
    }
    if (t->clip_value) h->clip_value = hyper_input(g, "clip_value", 1);
    if (t->clip_norm) h->clip_norm = hyper_input(g, "clip_norm", 1);
}

static void set_given(const Training *t, Node *step, int k, const char *list) {
    const char *name;
    double number;
    for (double usual; row_word(step->graph->arena, &list, &name, &usual);)
        if (given(t, called(t, step->graph->arena, k, name), &number)) node_set_float(step, name, number);
}

bool optimizer_update(const Training *t, Graph *g, const Update *u, const Hyper *h) {
    Arena *a = g->arena;
    int k = which(t, u->of), n = 2, n_out = 1;
    const OptimizerRow *row = row_at(t, k);
    const char *list = row->state, *name, *fields[MAX_OPERANDS] = { u->of->field };
    Value *in[MAX_OPERANDS] = { u->param, u->gradient };
    for (double none; row_word(a, &list, &name, &none);) {
        const char *field = fields[n_out++] = arena_printf(a, "%s_%s", u->of->field, name);
        in[n++] = train_input(g, field, u->of->type, ROLE_STATE);
    }
    list = row->hyper;
    for (double number; row_word(a, &list, &name, &number); n++) {
        const char *full = called(t, a, k, name);
        given(t, full, &number);
        in[n] = group_value(t, g, u->of, full, h->in[k][n - 1 - n_out], number);
    }
    Node *step = graph_node(g, row->op, n, in, n_out);
    set_given(t, step, k, row->hyper);
    set_given(t, step, k, row->options);
    if (!node_infer(step)) return false;
    for (int i = 0; i < n_out; i++) {
        Value *next = scale_keep(g, h, in[i ? i + 1 : 0], step->out[i]);
        if (!next) return false;
        next->name = fields[i];
        train_output(g, next, fields[i], i ? ROLE_STATE : ROLE_PARAM);
    }
    return true;
}

void optimizer_state(Training *t, Arena *a, const Parameter *p) {
    const char *list = row_at(t, which(t, p))->state, *name;
    for (double none; row_word(a, &list, &name, &none);) {
        const char *field = arena_printf(a, "%s_%s", p->field, name);
        VEC_PUSH(a, t->state, (Parameter){ .name = field, .field = field, .type = p->type });
    }
}

const char *optimizer_usual(const Training *t, Arena *a) {
    Text text;
    text_init(&text, a);
    text_append(&text, "", 0);
    for (int k = 0; k < 2 && row_at(t, k); k++) {
        const char *list = row_at(t, k)->hyper, *name;
        double number;
        for (double usual; row_word(a, &list, &name, &usual);) {
            const char *full = called(t, a, k, name);
            if (given(t, full, &number)) continue;
            text_printf(&text, "%s%s=%.9g", text.n ? " " : "", full, usual);
        }
    }
    if (t->clip_value) text_printf(&text, "%sclip_value=1", text.n ? " " : "");
    if (t->clip_norm) text_printf(&text, "%sclip_norm=1", text.n ? " " : "");
    return text.at;
}
