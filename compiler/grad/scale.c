// SPDX-License-Identifier: MIT OR Apache-2.0
// --loss-scale: gradients of a loss times a number, so that those of 16 bits do not vanish.
//
//   --loss-scale 1024       the scale is this number
//   --loss-scale dynamic(initial=65536, growth=2, backoff=0.5, interval=2000)
//
// In: the graphs of training programs. Out: `gradients` differentiates the scaled loss and divides what comes out by
// the scale, in f32, so whoever clips, sums or uses gradients sees none of it. A gradient that is infinite or not a
// number makes an update a step that is skipped: parameters, running statistics and the optimizer's state stay, and
// the powers of beta in Adam's row do not count it. A dynamic scale is part of that state and moves as in PyTorch's
// GradScaler: `backoff` times it after a step that was skipped, `growth` times it after `interval` in a row that were
// not. The state is zero before the first step: a scale of zero is the initial one.
#include "step.h"

#include "build/build.h"
#include "ops/formulas.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char usual[] = "initial=65536 growth=2 backoff=0.5 interval=2000";

// ---------------------------------------------------------------- the option

static double *number_of(LossScale *s, const char *name) {
    return !strcmp(name, "initial") ? &s->initial :
        !strcmp(name, "growth")     ? &s->growth :
        !strcmp(name, "backoff")    ? &s->backoff :
        !strcmp(name, "interval")   ? &s->interval :
                                      NULL;
}

static bool read_number(const char *text, double *to) {
    char *end;
    *to = strtod(text, &end);
    return end > text && !*end && isfinite(*to) && *to > 0;
}

static bool read_dynamic(LossScale *s, const Spec *spec) {
    for (int i = 0; i < spec->args.n; i++) {
        const SpecArg *arg = &spec->args.at[i];
        double *to = arg->key ? number_of(s, arg->key) : NULL;
        if (!to || arg->value->args.n || !read_number(arg->value->word, to)) return false;
    }
    return s->growth >= 1 && s->backoff <= 1 && s->interval >= 1;
}

bool scale_read(Training *t, Arena *a, const Options *o) {
    const bool small = o->precision && !strcmp(o->precision, "f16");
    const char *text = o->loss_scale ? o->loss_scale : small ? "dynamic" : NULL, *at = text, *name;
    LossScale *s = &t->scale;
    double number;
    if (!text || !strcmp(text, "none")) return true;
    for (const char *list = usual; row_word(a, &list, &name, &number);) *number_of(s, name) = number;
    const Spec *spec = spec_parse(a, &at);
    s->dynamic = spec && !strcmp(spec->word, "dynamic");
    s->used = spec && !*at
        && (s->dynamic ? read_dynamic(s, spec) : !spec->args.n && read_number(spec->word, &s->initial));
    if (s->used) return true;
    diag_error_as(EXIT_USAGE, NULL,
        "--loss-scale wants a number above 0, none, or dynamic(%s) with others of these numbers (growth from 1, "
        "backoff up to 1), not '%s'", "initial=65536, growth=2, backoff=0.5, interval=2000", text);
    return false;
}

// ---------------------------------------------------------------- gradients

static Value *state_input(Graph *g, const char *name) {
    for (int i = 0; i < g->inputs.n; i++)
        if (g->inputs.at[i]->role == ROLE_STATE && !strcmp(g->inputs.at[i]->name, name)) return g->inputs.at[i];
    return train_input(g, name, type_make(DT_F32, 0, NULL), ROLE_STATE);
}

static Value *scale_now(const LossScale *s, Graph *g) {
    if (!s->dynamic) return b_scalar(g, DT_F32, s->initial);
    return B_MAP(g, arena_printf(g->arena, "x > 0 ? x : %.17g", s->initial), "x", state_input(g, "loss_scale"));
}

Value *scale_loss(const Training *t, Graph *g, Value *loss) {
    if (!t->scale.used) return loss;
    Value *scale = b_cast(g, scale_now(&t->scale, g), loss->type.dtype);
    return scale ? b_binary(g, OP_Mul, loss, scale) : NULL;
}

Value *scale_back(const Training *t, Graph *g, Value *gradient) {
    if (!t->scale.used) return gradient;
    Value *factor = B_MAP(g, "1 / x", "x", scale_now(&t->scale, g));
    return factor ? b_binary(g, OP_Mul, gradient, b_cast(g, factor, gradient->type.dtype)) : NULL;
}

// ---------------------------------------------------------------- updates

// How many elements are infinite or not a number, above 0 if one is; row by row, then of the rows.
static Value *count_bad(Graph *g, Value *v) {
    Value *bad = B_MAP(g, "abs(x) <= 3.4028234663852886e38 ? 0 : 1", "x", v);
    int64_t axes[MAX_RANK];
    int n = 0;
    for (int i = 1; i < v->type.rank; i++) axes[n++] = i;
    if (bad && n) bad = b_reduce(g, OP_ReduceSum, bad, n, axes, false);
    if (bad && v->type.rank) bad = b_reduce(g, OP_ReduceSum, bad, 1, (int64_t[]){ 0 }, false);
    return bad ? b_cast(g, bad, DT_F32) : NULL;
}

// The optimizer's step is of those that were not skipped.
static bool count_steps(Graph *g, const Training *t, Hyper *h, Value *skipped) {
    for (int k = 0; k < 2; k++) {
        const OptimizerRow *row = k ? optimizer_others(t->optimizer) : t->optimizer;
        const char *list = row ? row->hyper : "", *name;
        double number;
        for (int i = 0; row_word(g->arena, &list, &name, &number); i++)
            if (!strcmp(name, "step") && h->in[k][i]
                && !(h->in[k][i] = b_binary(g, OP_Sub, h->in[k][i], skipped)))
                return false;
    }
    return true;
}

// gradients: what the two programs have of them, before clipping
bool scale_begin(const Training *t, Graph *g, Hyper *h, int n, const Update *u) {
    if (!t->scale.used) return true;
    Value *bad = NULL;
    for (int i = 0; i < n; i++) {
        Value *one = count_bad(g, u[i].gradient);
        bad = bad && one ? b_binary(g, OP_Add, bad, one) : one;
        if (!bad) return false;
    }
    h->finite = bad ? B_MAP(g, "x > 0 ? 0 : 1", "x", bad) : NULL;
    return !bad || (h->finite && count_steps(g, t, h, state_input(g, "skipped_steps")));
}

Value *scale_keep(Graph *g, const Hyper *h, Value *old, Value *new) {
    if (!h->finite) return new;
    Value *finite = b_cast(g, h->finite, old->type.dtype);
    return finite ? B_MAP(g, "z > 0 ? y : x", "x y z", old, new, finite) : NULL;
}

bool scale_end(const Training *t, Graph *g, const Hyper *h) {
    const LossScale *s = &t->scale;
    Arena *a = g->arena;
    if (!h->finite) return true;
    Value *skipped = B_MAP(g, "x + (1 - y)", "x y", state_input(g, "skipped_steps"), h->finite);
    if (!skipped) return false;
    train_output(g, skipped, "skipped_steps", ROLE_STATE);
    if (!s->dynamic) return true;
    Value *good = state_input(g, "good_steps"), *now = scale_now(s, g);
    if (!now) return false;
    // a scale that would be infinite stays
    Value *scale = B_MAP(g,
        arena_printf(a, "y > 0 ? (z + 1 >= %.17g && x * %.17g <= 3.4028234663852886e38 ? x * %.17g : x) : x * %.17g",
            s->interval, s->growth, s->growth, s->backoff),
        "x y z", now, h->finite, good);
    Value *next = B_MAP(g, arena_printf(a, "y > 0 && z + 1 < %.17g ? z + 1 : 0", s->interval), "y z", h->finite, good);
    if (!scale || !next) return false;
    train_output(g, scale, "loss_scale", ROLE_STATE);
    train_output(g, next, "good_steps", ROLE_STATE);
    return true;
}

void scale_state(Training *t, Arena *a) {
    static const char *const fields[] = { "skipped_steps", "loss_scale", "good_steps" };
    bool trains = false;
    for (int i = 0; i < t->params.n; i++) trains = trains || t->params.at[i].kind == PARAMETER_TRAINED;
    for (int i = 0; i < (t->scale.used && trains ? t->scale.dynamic ? 3 : 1 : 0); i++)
        VEC_PUSH(a, t->state,
            (Parameter){ .name = fields[i], .field = fields[i], .type = type_make(DT_F32, 0, NULL) });
}
