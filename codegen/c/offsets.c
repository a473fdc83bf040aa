// SPDX-License-Identifier: MIT OR Apache-2.0
// Pointers to where a loop kernel begins. What the addresses of all elements that it touches of an operand have in
// common, a constant or a size, goes into the pointer that it is given, so that kernels over other columns, slices,
// or parts of concatenations are the same text (see share.c).
//
//   k(float *y, const float *x)  { y[i0 + n] = x[i0 * 91 + 2]; }     called k(y, x)
//   k(float *y, const float *x)  { y[i0] = x[i0 * 91]; }             called k(y + n, x + 2)
//
// In: a kernel's text with its parameters. Out: their `at`, and where one is not 0 a kernel of its own without the
// offsets.
#include "c.h"
#include "schedule/schedule.h"

// ---------------------------------------------------------------- values as parameters of a kernel
// Values whose bytes coincide (in-place results) are one parameter.
static bool same_bytes(const Plan *p, const Value *x, const Value *y) {
    int64_t ox, oy;
    const Buffer *bx = buffer_owner(plan_value(p, x).buffer, &ox), *by = buffer_owner(plan_value(p, y).buffer, &oy);
    return bx == by && ox == oy;
}

bool c_is_param(const KernelText *k, int i, const Value *v) {
    return k->params[i].value == v || same_bytes(k->file->plan, k->params[i].value, v);
}

#include <string.h>

typedef struct Offset { bool known, mixed; Dim at; } Offset;      // mixed: the pointer stays as it is
typedef struct Offsets { CFile *file; KernelText *text; Kernel *kernel; Offset of[MAX_PARAMS]; bool *seen; } Offsets;

static int param_of(const Offsets *o, Value *v) {
    int i = 0;
    while (i < o->text->n_params && !c_is_param(o->text, i, v)) i++;
    if (i == o->text->n_params) bug("%%%d is no operand of kernel %s", v->id, o->text->name);
    return i;
}

// Of several constants the least; sizes have to be the same everywhere.
static void meet(Offsets *o, Value *v, const Expr *index) {
    Offset *to = &o->of[param_of(o, v)];
    Dim at;
    if (!expr_offset(index, o->file->plan->graph, &at)) {
        to->mixed = true;
        return;
    }
    if (!to->known) *to = (Offset){ .known = true, .mixed = to->mixed, .at = at };
    else if (dim_is_const(at) && dim_is_const(to->at)) to->at = at < to->at ? at : to->at;
    else if (at != to->at) to->mixed = true;
}

static void meet_loads(Offsets *o, const Expr *e) {
    if (!e || o->seen[e->id]) return;
    o->seen[e->id] = true;
    if (e->op == E_Load) meet(o, e->value, e->a[0]);
    for (int i = 0; i < 3; i++) meet_loads(o, e->a[i]);
}

static Expr *minus(Offsets *o, Expr *index, Dim at) {
    return expr_binary(o->kernel->exprs, E_Sub, index, expr_size(o->kernel->exprs, o->file->plan->graph, at));
}

static Expr *without_offsets(void *offsets, Expr *e) {
    Offsets *o = offsets;
    Expr *a[3];
    if (e->op != E_Load) return NULL;
    for (int i = 0; i < 3; i++) a[i] = e->a[i] ? expr_map_leaves(o->kernel->exprs, e->a[i], without_offsets, o) : NULL;
    Dim at = o->of[param_of(o, e->value)].at;
    return expr_load(o->kernel->exprs, e->value, at ? minus(o, a[0], at) : a[0], a[1], a[2]);
}

static void take_sizes(Offsets *o, const Expr *e) {
    if (!e || o->seen[e->id]) return;
    o->seen[e->id] = true;
    if (e->op == E_Size) kernel_sizes(o->file->arena, o->kernel, graph_root(o->file->plan->graph), e->extent);
    for (int i = 0; i < 3; i++) take_sizes(o, e->a[i]);
}

// The kernel without the offsets, and of its sizes those that are left.
static void rewrite(Offsets *o) {
    Arena *a = o->file->arena;
    Kernel *k = o->kernel = NEW(a, Kernel);
    *k = *o->text->kernel;
    memset(&k->stores, 0, sizeof k->stores);
    memset(&k->sizes, 0, sizeof k->sizes);
    for (int i = 0; i < o->text->kernel->stores.n; i++) {
        Store s = o->text->kernel->stores.at[i];
        Dim at = o->of[param_of(o, s.value)].at;
        s.index = expr_map_leaves(k->exprs, s.index, without_offsets, o);
        if (at) s.index = minus(o, s.index, at);
        s.expr = expr_map_leaves(k->exprs, s.expr, without_offsets, o);
        if (s.guard) s.guard = expr_map_leaves(k->exprs, s.guard, without_offsets, o);
        VEC_PUSH(a, k->stores, s);
    }
    for (int i = 0; i < k->axes.n; i++) kernel_sizes(a, k, graph_root(o->file->plan->graph), k->axes.at[i].size);
    o->seen = NEW_ARRAY(a, bool, expr_count(k->exprs) + 1);
    for (int i = 0; i < k->stores.n; i++) {
        take_sizes(o, k->stores.at[i].index);
        take_sizes(o, k->stores.at[i].guard);
        take_sizes(o, k->stores.at[i].expr);
    }
    o->text->kernel = k;
}

void c_take_offsets(CFile *g, KernelText *t) {
    const Kernel *k = t->kernel;
    Offsets o = { .file = g, .text = t, .seen = NEW_ARRAY(g->arena, bool, expr_count(k->exprs) + 1) };
    bool some = false;
    for (int i = 0; i < k->stores.n; i++) {
        const Store *s = &k->stores.at[i];
        meet(&o, s->value, s->index);
        meet_loads(&o, s->index);
        meet_loads(&o, s->guard);
        meet_loads(&o, s->expr);
    }
    for (int i = 0; i < t->n_params; i++) {
        Offset *f = &o.of[i];
        Dim room = type_size(graph_root(g->plan->graph), &t->params[i].value->type);
        bool inside = f->known && !f->mixed && dim_lower(g->plan->graph, f->at) >= 0;
        if (inside && dim_is_const(f->at)) inside = f->at <= dim_lower(g->plan->graph, room);
        else if (inside) inside = t->params[i].written;         // where a part of a concatenation begins
        if (!inside) f->at = 0;
        t->params[i].at = f->at;
        some = some || f->at;
    }
    if (some) rewrite(&o);
}
