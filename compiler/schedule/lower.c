// SPDX-License-Identifier: MIT OR Apache-2.0
// Element expressions: a value and an index in, a scalar expression over loads of materialised values out.
//
// Every pull-style op says what ONE of its elements is in terms of elements of its inputs (its LowerFn). Lowering a
// kernel's root therefore composes maps, views and reductions into one expression; chains of views vanish in the
// index arithmetic. Results are memoised by (value, guard, index), so that diamonds stay DAGs. Ops know this file by
// the functions that a Lower holds: the element of an operand, a new axis of the kernel, what rows share.
#include "schedule.h"

#include <string.h>

typedef struct Memo { Value *value; Expr *guard; Expr *idx[MAX_RANK]; Expr *result; } Memo;
typedef struct State {
    Arena *arena, *scratch;                             // of the kernel's axes; the plan's
    Fusion *fusion;
    Kernel *kernel;                                     // whose axes grow
    Memo *memo; int memo_cap, memo_n;
    int depth;
} State;

// of nested LowerFn calls; deeper chains are cut by materialising
enum { MAX_DEPTH = 2000 };

static uint64_t memo_hash(const Value *v, const Expr *guard, Expr *const *idx) {
    uint64_t h = (uint64_t)v->id * 0x9e3779b97f4a7c15u + (guard ? (uint64_t)guard->id + 1 : 0);
    for (int i = 0; i < v->type.rank; i++) h = (h ^ (uint64_t)idx[i]->id) * 0xbf58476d1ce4e5b9u;
    return h ^ h >> 29;
}

// The slot of this key: its memo, or the empty one where it belongs.
static Memo *memo_slot(State *s, const Value *v, const Expr *guard, Expr *const *idx) {
    size_t mask = (size_t)s->memo_cap - 1, i = (size_t)memo_hash(v, guard, idx) & mask,
           size = sizeof *idx * (size_t)v->type.rank;                  // none of a scalar, whose idx may be NULL
    for (;; i = (i + 1) & mask) {
        Memo *m = &s->memo[i];
        if (!m->value) return m;
        if (m->value == v && m->guard == guard && (!size || !memcmp(m->idx, idx, size))) return m;
    }
}

static void memo_grow(State *s) {
    int cap = s->memo_cap;
    Memo *old = s->memo;
    s->memo_cap = cap ? cap * 2 : 64;
    s->memo = NEW_ARRAY(s->scratch, Memo, s->memo_cap);
    for (int i = 0; i < cap; i++)
        if (old[i].value) *memo_slot(s, old[i].value, old[i].guard, old[i].idx) = old[i];
}

// A constant whose elements are all the same needs no load.
static Expr *uniform_const(Lower *l, const Value *v) {
    const Tensor *t = v->data;
    DClass c = dtype_class(t->type.dtype);
    if (c == CLASS_COMPLEX || c == CLASS_STRING) return NULL;
    size_t size = dtype_size(t->type.dtype);
    int64_t n = type_count(&t->type);
    if (n == 0) return NULL;
    if (n > 1 && memcmp(t->data, (const char *)t->data + size, size * (size_t)(n - 1))) return NULL;
    if (c == CLASS_FLOAT) return expr_const_f(l->p, t->type.dtype, tensor_get_f(t, 0));
    return expr_const_i(l->p, t->type.dtype, tensor_get_i(t, 0));
}

Expr *lower_stored(Lower *l, Value *v, Expr *const *idx, Value **where) {
    Expr *moved[MAX_RANK];
    const ValuePlan of = plan_value(((const State *)l->state)->fusion->plan, v);
    *where = of.home ? of.home : v;
    if (!of.home) return lower_flat(l, &v->type, idx);
    memcpy(moved, idx, sizeof(Expr *) * (size_t)v->type.rank);
    moved[v->type.rank - 1] = expr_binary(l->p, E_Add, idx[v->type.rank - 1], lower_dim(l, of.home_at));
    return lower_flat(l, &of.home->type, moved);
}

static Expr *load(Lower *l, Value *v, Expr *const *idx) {
    Expr *e = v->data ? uniform_const(l, v) : NULL, *at = e ? NULL : lower_stored(l, v, idx, &v);
    return e ? e : expr_load(l->p, v, at, l->guard, NULL);
}

static bool lowers_in_place(const State *s, const Value *v) {
    const Fusion *f = s->fusion;
    // a captured value was stored by its own graph
    if (!v->def || v->data || v->graph != f->plan->graph || s->depth >= MAX_DEPTH) return false;
    return f->views_only ? op_is_view(v->def->op) : f->inside[v->def->mark];
}

static void shared(Lower *l, Value *v, Expr *e) {
    State *s = l->state;
    VEC_PUSH(s->scratch, s->fusion->reduces, (ReduceUse){ v, e });
}

static Expr *lower_inside(Lower *l, Value *v, Expr *const *idx) {
    State *s = l->state;
    Memo *m;
    if (s->memo_n * 2 >= s->memo_cap) memo_grow(s);
    m = memo_slot(s, v, l->guard, idx);
    if (m->value) return m->result;
    Expr *guard = l->guard;
    s->depth++;
    Expr *e = op_table[v->def->op].lower(l, v->def, v->def_out, idx);
    s->depth--;
    l->guard = guard;
    if (e && op_is_reduce(v->def->op)) shared(l, v, e);
    if (s->memo_n * 2 >= s->memo_cap) memo_grow(s);
    m = memo_slot(s, v, guard, idx);
    *m = (Memo){ .value = v, .guard = guard, .result = e };
    if (v->type.rank) memcpy(m->idx, idx, sizeof(Expr *) * (size_t)v->type.rank);
    s->memo_n++;
    return e;
}

static Expr *lower_anchor(Lower *l, Value *v, Expr *const *idx) {
    Fusion *f = ((State *)l->state)->fusion;
    bool same = !l->guard && lower_flat(l, &v->type, idx) == f->anchor_flat;
    if (!same && !f->violation) f->violation = v;
    return expr_acc(l->p, v->type.dtype);
}

// Small floats are computed in f32: does e hold a value of its dtype all the same?
static bool is_rounded(const Expr *e, int depth) {
    switch (e->op) {
    case E_Const: case E_Load: case E_Cast: case E_Bits: return true;
    case E_Neg: case E_Abs: return depth > 0 && is_rounded(e->a[0], depth - 1);
    case E_Min: case E_Max: return depth > 0 && is_rounded(e->a[0], depth - 1) && is_rounded(e->a[1], depth - 1);
    case E_Select: return depth > 0 && is_rounded(e->a[1], depth - 1) && is_rounded(e->a[2], depth - 1);
    default: return false;
    }
}

// A value that is never stored is rounded as if it were: fusing does not change results.
static Expr *rounded(Lower *l, Expr *e) {
    enum { LOOK = 6 };
    if (!e || !dtype_is_small_float(e->dtype) || is_rounded(e, LOOK)) return e;
    return expr_cast(l->p, expr_cast(l->p, e, DT_F32), e->dtype);
}

static Expr *load_or_inline(Lower *l, Value *v, Expr *const *idx) {
    const State *s = l->state;
    if (v == s->fusion->anchor && !s->fusion->views_only) return rounded(l, lower_anchor(l, v, idx));
    return lowers_in_place(s, v) ? rounded(l, lower_inside(l, v, idx)) : load(l, v, idx);
}

Expr *lower_root(Lower *l, Value *v, Expr *const *idx) {
    const State *s = l->state;
    if (v == s->fusion->anchor) return expr_acc(l->p, v->type.dtype);           // at this very element
    return v->def && !v->data ? lower_inside(l, v, idx) : load(l, v, idx);
}

static Expr *new_axis(Lower *l, Dim extent, bool reduce) {
    const State *s = l->state;
    Kernel *k = s->kernel;
    if (k->axes.n >= 64) {
        if (!s->fusion->violation)
            s->fusion->violation = s->fusion->reduces.n ? s->fusion->reduces.at[0].value : s->fusion->root;
        return expr_index(l->p, 0);
    }
    VEC_PUSH(s->arena, k->axes, (Axis){ .extent = dim_upper(l->graph, extent), .size = extent, .reduce = reduce });
    return expr_axis_size(l->p, l->graph, k->axes.n - 1, extent);
}

void lower_init(Lower *l, Arena *a, Kernel *k, Fusion *f) {
    State *s = NEW(f->plan->scratch, State);
    *s = (State){ .arena = a, .scratch = f->plan->scratch, .fusion = f, .kernel = k };
    *l = (Lower){ .p = k->exprs,
        .graph = f->plan->graph,
        .load = load_or_inline,
        .axis = new_axis,
        .shared = shared,
        .state = s };
}
