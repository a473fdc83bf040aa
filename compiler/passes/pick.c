// SPDX-License-Identifier: MIT OR Apache-2.0
// Sums over the classes of what stands at one of them become that one: what the targets of a loss hit. Contract: sums
// of several rows are rounded in another order.
//
//   before   %3: bool[32,512] = Equal(%1, %2)                 %1: i64[32,1]; %2: 0, 1, 2 ... along the classes
//            %4: f32[32,512] = Map(%0, %3) {expr="y ? -x : 0"}
//            %5: f32[] = ReduceSum(%4) {axes=[0,1]}
//   after    %6: i64[32,1] = Map(%1) {expr="min(max(x, 0), 511)"}
//            %7: bool[32,1] = Equal(%1, %6)
//            %8: f32[32,1] = GatherElements(%0, %6) {axis=1}
//            %9: f32[32,1] = Map(%8, %7) {expr="y ? -x : 0"}
//            %10: f32[32,1] = Identity(%9) {stored=1}
//            %5: f32[] = ReduceSum(%10) {axes=[0,1]}
//
// A class that is none is still never hit. The loss of a language model read all its logits and as many comparisons
// for one in 50,257 of them, and its gradient, which is left as the only reader of the comparisons, makes them itself.
// What is picked is stored, so that rows are computed side by side before they are summed.
#include "passes.h"

#include <math.h>

// What is summed is zero where operand `hit` of the node is not: class == target, and `also`, where that is not NULL.
typedef struct Pick { const Node *node; int hit, axis; Value *target, *also; } Pick;

// ---------------------------------------------------------------- finding
static int axis_in(const Value *v, const Type *whole, int axis) { return axis - (whole->rank - v->type.rank); }

// One element along the axis, else shaped like the whole.
static bool is_row(const Value *v, const Type *whole, int axis) {
    if (v->type.rank != whole->rank) return false;
    for (int i = 0; i < whole->rank; i++)
        if (v->type.dim[i] != (i == axis ? 1 : whole->dim[i])) return false;
    return true;
}

// 0, 1, 2 ... along the axis, the same for all rows.
static bool counts(const Value *v, const Type *whole, int axis) {
    const int at = axis_in(v, whole, axis);
    if (at < 0 || !dtype_is_int(v->type.dtype) || v->type.dim[at] != whole->dim[axis]) return false;
    if (!v->data) return v->def && v->def->op == OP_Iota && node_int(v->def, "axis", 0) == at;
    const int64_t n = type_count(&v->type);
    for (int64_t i = 0; i < n; i++)
        if (n != v->type.dim[at] || tensor_get_i(v->data, i) != i) return false;
    return true;
}

static bool find_hit(Pick *p, const Value *v, const Type *whole) {
    const Node *n = v->data ? NULL : v->def;
    for (int i = 0; n && i < 2 && (n->op == OP_Equal || n->op == OP_And); i++) {
        if (n->op == OP_And && is_row(n->in[1 - i], whole, p->axis) && find_hit(p, n->in[i], whole) && !p->also) {
            p->also = n->in[1 - i];
            return true;
        }
        if (n->op == OP_Equal && counts(n->in[i], whole, p->axis) && is_row(n->in[1 - i], whole, p->axis)) {
            p->target = n->in[1 - i];
            return true;
        }
    }
    return false;
}

static bool is_finite(const Node *n, const Expr *e) {
    double number;
    if (e->op == E_Arg) return const_splat(n->in[e->c.i], &number) && isfinite(number);
    if (e->op == E_Const) return !dtype_is_float(e->dtype) || isfinite(e->c.f);
    return e->op == E_Neg && is_finite(n, e->a[0]);
}

// Is the expression zero where its operand `hit` is false?
static bool is_zero_without(const Node *n, const Expr *e, int hit) {
    double number;
    switch (e->op) {
    case E_Arg: return const_splat(n->in[e->c.i], &number) && number == 0;
    case E_Const: return dtype_is_float(e->dtype) ? e->c.f == 0 : e->c.i == 0;
    case E_Select:
        return is_zero_without(n, e->a[2], hit)
            && ((e->a[0]->op == E_Arg && e->a[0]->c.i == hit) || is_zero_without(n, e->a[1], hit));
    case E_Neg: return is_zero_without(n, e->a[0], hit);
    case E_Mul:
        return (is_zero_without(n, e->a[0], hit) && is_finite(n, e->a[1]))
            || (is_zero_without(n, e->a[1], hit) && is_finite(n, e->a[0]));
    default: return false;
    }
}

static bool find(Pick *p, const Node *sum, int axis) {
    const Node *n = sum->in[0]->data ? NULL : sum->in[0]->def;
    if (!n || !op_has_expr(n->op) || !dim_is_const(n->out[0]->type.dim[axis])) return false;
    const Type *whole = &n->out[0]->type;
    for (int i = 0; i < n->n_in; i++)
        if (!n->in[i]) return false;
    for (int i = 0; i < n->n_in; i++) {
        *p = (Pick){ .node = n, .hit = i, .axis = axis };
        if (n->in[i]->type.dtype == DT_BOOL && find_hit(p, n->in[i], whole)
            && is_zero_without(n, node_expr(n), i))
            return true;
    }
    return false;
}

// ---------------------------------------------------------------- building
// An operand at the class that is hit; NULL: it cannot be.
static Value *picked(Graph *g, const Pick *p, Value *v, Value *class) {
    const Type *whole = &p->node->out[0]->type;
    const int at = axis_in(v, whole, p->axis);
    double number;
    if (at < 0 || v->type.dim[at] == 1) return v;
    if (const_splat(v, &number)) return b_filled(g, v->type.dtype, number, 0, NULL);
    for (int i = 0; i < whole->rank; i++)
        if (v->type.rank != whole->rank || v->type.dim[i] != whole->dim[i]) return NULL;
    return b_gather_elements(g, v, class, p->axis);
}

static Value *build(Graph *g, const Pick *p, const Node *sum, bool sum_of_rows) {
    const Node *n = p->node;
    const long long last = (long long)n->out[0]->type.dim[p->axis] - 1;
    Value **in = NEW_ARRAY(g->arena, Value *, n->n_in);
    Value *class = B_MAP(g, arena_printf(g->arena, "min(max(x, 0), %lld)", last), "x", p->target);
    Value *hit = b_binary(g, OP_Equal, p->target, class);
    if (p->also) hit = b_binary(g, OP_And, hit, p->also);
    for (int i = 0; i < n->n_in; i++) {
        in[i] = i == p->hit ? hit : picked(g, p, n->in[i], class);
        if (!in[i]) return NULL;
    }
    Value *one = b_finish(node_like(g, n, in));
    if (one && sum_of_rows) one = b_stored(g, one);
    if (!one) return NULL;
    if (!sum_of_rows) return b_reshape(g, one, sum->out[0]->type.rank, sum->out[0]->type.dim);
    Node *all = node_like(g, sum, &one);
    return all ? b_finish(all) : NULL;
}

static void pick_all(Rewrite *r, Graph *g) {
    for (Node *n = g->first; n; n = n->next) {
        Pick p;
        int count = 0;
        const int64_t *axes = node_ints(n, "axes", &count);
        rewrite_operands(r, n);
        for (int i = 0; i < n->n_bodies; i++) pick_all(r, n->bodies[i]);
        for (int i = 0; n->op == OP_ReduceSum && i < count; i++) {
            if (!find(&p, n, (int)axes[i])) continue;
            g->cursor = n;
            g->loc = n->loc;
            Value *y = build(g, &p, n, count > 1);
            if (y) rewrite_set(r, n->out[0], y);
            break;
        }
    }
    g->cursor = NULL;
    rewrite_outputs(r, g);
}

bool pass_pick(Graph *g) {
    Rewrite r = { .scratch = arena_new() };
    pick_all(&r, g);
    arena_free(r.scratch);
    return r.changed && pass_dce(g);
}
