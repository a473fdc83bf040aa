// SPDX-License-Identifier: MIT OR Apache-2.0
// What updates do to gradients and hyper-parameters before the optimizer's row is computed: clipping, groups.
//
//   --clip-value   g = min(max(g, -clip_value), clip_value)
//   --clip-norm    g = g * min(1, clip_norm / (norm + 1e-6)), norm: of all gradients as one vector
//   --group WHAT:learning_rate*0.1,weight_decay=0
//
// Clipping has PyTorch's formulas and, where both are asked for, this order. In: the parameters with their gradients,
// in a graph of an update. Out: its updates. A group is a selection (select.c) whose hyper-parameters are numbers of
// its own, or the caller's times a factor; a parameter is of the first one that means it.
#include "step.h"

#include "build/build.h"
#include "ops/formulas.h"
#include "select.h"

#include <stdlib.h>
#include <string.h>

// ---------------------------------------------------------------- clipping

// The sum of an array's squares, row by row.
static Value *square_sum(Graph *g, Value *v) {
    int64_t axes[MAX_RANK];
    int n = 0;
    for (int i = 1; i < v->type.rank; i++) axes[n++] = i;
    if (n) v = b_reduce(g, OP_ReduceSumSquare, v, n, axes, false);
    return b_reduce(g, n ? OP_ReduceSum : OP_ReduceSumSquare, v, 1, (int64_t[]){ 0 }, false);
}

static Value *norm_of(Graph *g, int n, const Update *u) {
    Value *sum = NULL;
    for (int i = 0; i < n; i++) {
        Value *v = u[i].gradient;
        Value *one = v->type.rank ? square_sum(g, v) : b_binary(g, OP_Mul, v, v);
        sum = sum ? b_binary(g, OP_Add, sum, one) : one;
        if (!sum) return NULL;
    }
    return b_unary(g, OP_Sqrt, sum);
}

static bool clip(Graph *g, const Hyper *h, int n, Update *u) {
    for (int i = 0; i < n && h->clip_value; i++)
        if (!(u[i].gradient = B_MAP(g, "min(max(x, -y), y)", "x y", u[i].gradient, h->clip_value))) return false;
    Value *norm = h->clip_norm ? norm_of(g, n, u) : NULL;
    if (!h->clip_norm || !norm) return !h->clip_norm;
    Value *factor = B_MAP(g, "min(x / (y + 1e-6), 1)", "x y", h->clip_norm, norm);
    for (int i = 0; i < n && factor; i++)
        if (!(u[i].gradient = b_binary(g, OP_Mul, u[i].gradient, factor))) return false;
    return factor != NULL;
}

// ---------------------------------------------------------------- groups

// "learning_rate*0.1,weight_decay=0"
static bool read_settings(const Training *t, Arena *a, const char *text, const char *s, Group *group) {
    for (;;) {
        size_t length = strcspn(s, "=*");
        char *end = NULL;
        GroupSetting set = { .name = arena_strndup(a, s, length), .factor = s[length] == '*' };
        if (s[length]) set.number = strtod(s + length + 1, &end);
        bool ok = end && end > s + length + 1 && (!*end || *end == ',');
        if (!ok || !optimizer_has(t, a, set.name)) {
            diag_error_as(EXIT_USAGE, NULL,
                "--group wants WHAT:name=NUMBER or name*FACTOR, with commas, not '%s'; --optimizer %s has %s", text,
                t->optimizer->name, optimizer_usual(t, a));
            return false;
        }
        VEC_PUSH(a, group->settings, set);
        if (!*end) return true;
        s = end + 1;
    }
}

bool groups_read(Training *t, Arena *a, const Options *o) {
    for (int i = 0; i < o->groups.n; i++) {
        const char *text = o->groups.at[i], *colon = strrchr(text, ':');
        Group group = { .text = text };
        if (!colon || colon == text) colon = text + strlen(text);
        group.what = arena_strndup(a, text, (size_t)(colon - text));
        if (!read_settings(t, a, text, *colon ? colon + 1 : colon, &group)) return false;
        VEC_PUSH(a, t->groups, group);
    }
    return true;
}

bool groups_find(const Training *t, Uses *all) {
    bool *marks = NEW_ARRAY(all->scratch, bool, all->at.n + 1);
    int *groups = NEW_ARRAY(all->scratch, int, all->at.n + 1);
    for (int k = t->groups.n - 1; k >= 0; k--) {
        memset(marks, 0, (size_t)all->at.n * sizeof(bool));
        if (!select_uses(all, "--group", t->groups.at[k].what, marks)) return false;
        select_share(all, marks);
        for (int i = 0; i < all->at.n; i++) groups[i] = marks[i] ? k + 1 : groups[i];
    }
    all->groups = groups;
    return true;
}

const char *groups_doc(const Training *t, Arena *a) {
    Text text;
    text_init(&text, a);
    text_append(&text, "", 0);
    for (int i = 0; i < t->groups.n; i++)
        text_printf(&text, "%s%s", i ? "; " : "\n * Groups: ", t->groups.at[i].text);
    return t->groups.n ? arena_printf(a, "%s.", text.at) : "";
}

Value *group_value(const Training *t, Graph *g, const Parameter *p, const char *name, Value *v, double number) {
    const Group *group = p->group ? &t->groups.at[p->group - 1] : NULL;
    for (int k = 0; group && k < group->settings.n; k++) {
        const GroupSetting *s = &group->settings.at[k];
        if (strcmp(s->name, name)) continue;
        if (!s->factor) return b_scalar(g, DT_F32, s->number);
        Value *factor = b_scalar(g, DT_F32, v ? s->number : s->number * number);
        return v ? b_binary(g, OP_Mul, v, factor) : factor;
    }
    return v;
}

// ---------------------------------------------------------------- the updates

bool train_updates(const Training *t, Graph *g, Hyper *h, int n, Update *u) {
    if (!scale_begin(t, g, h, n, u) || !clip(g, h, n, u)) return false;
    for (int i = 0; i < n; i++)
        if (!optimizer_update(t, g, &u[i], h)) return false;
    return scale_end(t, g, h);
}
