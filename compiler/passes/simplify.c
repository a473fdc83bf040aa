// SPDX-License-Identifier: MIT OR Apache-2.0
// Peephole rules: a node and its operands' nodes are replaced by something simpler that gives exactly the same bits.
//
//   before   %1: f32[3,2] = Transpose(%0) {perm=[1,0]}
//            %2: f32[2,3] = Transpose(%1) {perm=[1,0]}
//   after    every use of %2 is %0; dce removes the rest
//
// One small function for each rule, listed by op at the end. A rule returns the value that stands for the node's
// result from now on, or NULL. What it builds stands before the node, so the walk goes on behind it; the walk is
// repeated until nothing changes.
#include "passes.h"
#include "ir/expr.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ROUNDS 16

// The node that made v when it is an `op`, else NULL.
static Node *made_by(const Value *v, Op op) { return v && v->def && v->def->op == op ? v->def : NULL; }

static bool same_type(const Value *a, const Value *b) { return type_equal(&a->type, &b->type); }

// The operand of a binary map that is not the constant `number` everywhere, when the other one is and dropping it
// keeps the type.
static Value *other_than(const Node *n, double number, bool either) {
    double c;
    for (int i = either ? 0 : 1; i < 2; i++)
        if (const_splat(n->in[i], &c) && c == number && signbit(c) == signbit(number)
            && same_type(n->in[1 - i], n->out[0]))
            return n->in[1 - i];
    return NULL;
}

// ---- arithmetic

// x + 0 -> x. For floats only x + -0.0, which is exact: -0.0 + 0.0 is 0.0.
static Value *rule_add(Graph *g, Node *n) {
    (void)g;
    return other_than(n, dtype_is_float(n->out[0]->type.dtype) ? -0.0 : 0.0, true);
}

// x - 0 -> x
static Value *rule_sub(Graph *g, Node *n) {
    (void)g;
    return other_than(n, 0.0, false);
}

// x * 1 -> x
static Value *rule_mul(Graph *g, Node *n) {
    (void)g;
    return other_than(n, 1.0, true);
}

// x / 1 -> x,  x / 2^k -> x * 2^-k: the same bits, and much faster
static Value *rule_div(Graph *g, Node *n) {
    double c;
    int e;
    DType d = n->out[0]->type.dtype;
    if (!const_splat(n->in[1], &c)) return NULL;
    if (c == 1) return other_than(n, 1.0, false);
    if ((d != DT_F32 && d != DT_F64) || fabs(frexp(c, &e)) != 0.5 || abs(e) > 100) return NULL;
    Tensor *t = tensor_new(g->arena, n->in[1]->type);
    for (int64_t i = 0, count = type_count(&t->type); i < count; i++) tensor_set_f(t, i, 1 / c);
    return b_binary(g, OP_Mul, n->in[0], graph_const(g, t, NULL));
}

// pow(x, 1) -> x,  pow(x, 2) -> x*x
static Value *rule_pow(Graph *g, Node *n) {
    double c;
    if (!const_splat(n->in[1], &c) || !same_type(n->in[0], n->out[0])) return NULL;
    return c == 1 ? n->in[0] : c == 2 && dtype_is_float(n->out[0]->type.dtype) ? b_unary(g, OP_Square, n->in[0]) : NULL;
}

// f(f(x)) -> x for Neg and Not
static Value *rule_involution(Graph *g, Node *n) {
    (void)g;
    Node *inner = made_by(n->in[0], n->op);
    return inner ? inner->in[0] : NULL;
}

// f(f(x)) -> f(x) for Abs, Relu, Floor, Ceil, Round, Trunc, Sign
static Value *rule_idempotent(Graph *g, Node *n) {
    (void)g;
    return made_by(n->in[0], n->op) ? n->in[0] : NULL;
}

// c ? x : y with a constant c -> x or y
static Value *rule_where(Graph *g, Node *n) {
    (void)g;
    double c;
    if (!const_splat(n->in[0], &c)) return NULL;
    Value *v = n->in[c != 0 ? 1 : 2];
    return same_type(v, n->out[0]) ? v : NULL;
}

// Every value of `from` is a value of `to`.
static bool is_lossless(DType from, DType to) {
    static const struct { DType from, to;
    } table[] = {
        { DT_F16, DT_F32 },
        { DT_BF16, DT_F32 },
        { DT_F16, DT_F64 },
        { DT_BF16, DT_F64 },
        { DT_F32, DT_F64 },
        { DT_I8, DT_I16 },
        { DT_I8, DT_I32 },
        { DT_I8, DT_I64 },
        { DT_I16, DT_I32 },
        { DT_I16, DT_I64 },
        { DT_I32, DT_I64 },
        { DT_U8, DT_U16 },
        { DT_U8, DT_U32 },
        { DT_U8, DT_U64 },
        { DT_U8, DT_I16 },
        { DT_U8, DT_I32 },
        { DT_U8, DT_I64 },
        { DT_U16, DT_I32 },
        { DT_U16, DT_I64 },
        { DT_U32, DT_I64 },
        { DT_I8, DT_F32 },
        { DT_U8, DT_F32 },
        { DT_I16, DT_F32 },
        { DT_U16, DT_F32 },
        { DT_I32, DT_F64 },
        { DT_U32, DT_F64 },
    };
    if (from == DT_BOOL) return dtype_is_int(to) || to == DT_F32 || to == DT_F64;
    for (size_t i = 0; i < COUNT(table); i++)
        if (table[i].from == from && table[i].to == to) return true;
    return false;
}

// cast<T>(x: T) -> x,  cast<C>(cast<B>(x)) -> cast<C>(x) when B holds every value of x's type. The outer cast keeps
// its attributes.
// x of min(max(x, lo), hi) where these are the ends of an integer's range, or beyond: casts end there by themselves.
static Value *clamped(const Node *n) {
    DType to = n->out[0]->type.dtype;
    int64_t lo, hi;
    double a, b;
    Node *upper = made_by(n->in[0], OP_Min), *lower = upper ? made_by(upper->in[0], OP_Max) : NULL;
    if (!lower || !dtype_is_float(n->in[0]->type.dtype) || !int_bounds(to, &lo, &hi) || dtype_size(to) > 2) return NULL;
    if (!const_splat(lower->in[1], &a) || !const_splat(upper->in[1], &b)) return NULL;
    bool free = a <= (double)lo && b >= (double)hi && same_type(lower->in[0], n->in[0]);
    return free ? lower->in[0] : NULL;
}

static Value *rule_cast(Graph *g, Node *n) {
    if (same_type(n->in[0], n->out[0])) return n->in[0];
    Value *x = clamped(n);
    if (x) return b_cast(g, x, n->out[0]->type.dtype);
    Node *inner = made_by(n->in[0], OP_Cast);
    if (!inner || !is_lossless(inner->in[0]->type.dtype, inner->out[0]->type.dtype)) return NULL;
    if (same_type(inner->in[0], n->out[0])) return inner->in[0];
    Node *cast = graph_node(g, OP_Cast, 1, inner->in, 1);
    for (int i = 0; i < n->n_attrs; i++) node_set_int(cast, n->attrs[i].name, n->attrs[i].i);
    return b_finish(cast);
}

// f(expand(x), y) -> f(x, y) when f's broadcasting gives the same shape
static Value *rule_broadcast(Graph *g, Node *n) {
    (void)g;
    for (int i = 0; i < n->n_in; i++) {
        Node *expand = made_by(n->in[i], OP_Expand);
        if (!expand) continue;
        Type t = expand->in[0]->type;
        bool possible = true;
        for (int k = 0; k < n->n_in && possible; k++)
            if (k != i) possible = type_broadcast(&t, &t, &n->in[k]->type);
        if (!possible || t.rank != n->out[0]->type.rank
            || memcmp(t.dim, n->out[0]->type.dim, sizeof *t.dim * (size_t)t.rank))
            continue;
        n->in[i] = expand->in[0];               // in place: the node stays what it is
        return n->out[0];
    }
    return NULL;
}

// ---- views

// identity(x) -> x, unless it is to stop a gradient or fusion
static Value *rule_identity(Graph *g, Node *n) {
    if (node_int(n, "stored", 0)) return NULL;
    return node_int(n, "stop_gradient", 0) && has_gradient(g) ? NULL : n->in[0];
}

// dropout(x) -> x, unless it is told a step
static Value *rule_dropout(Graph *g, Node *n) {
    (void)g;
    return n->n_in > 1 ? NULL : n->in[0];
}

// reshape(reshape(x)) -> reshape(x),  reshape to x's own shape -> x
static Value *rule_reshape(Graph *g, Node *n) {
    const Type *t = &n->out[0]->type;
    Node *inner = made_by(n->in[0], OP_Reshape);
    if (inner) return b_reshape(g, inner->in[0], t->rank, t->dim);
    return same_type(n->in[0], n->out[0]) ? n->in[0] : NULL;
}

// transpose(transpose(x)) -> transpose(x) or x;  a transpose that only moves axes of size 1 -> reshape
static Value *rule_transpose(Graph *g, Node *n) {
    const Type *t = &n->out[0]->type;
    int count, last = -1, perm[MAX_RANK];
    const int64_t *p = node_ints(n, "perm", &count), *q;
    Node *inner = made_by(n->in[0], OP_Transpose);
    if (inner) {
        q = node_ints(inner, "perm", &count);
        for (int i = 0; i < count; i++) perm[i] = (int)q[p[i]];
        return b_transpose(g, inner->in[0], perm);
    }
    for (int i = 0; i < count; i++) {
        if (t->dim[i] == 1) continue;
        if (p[i] < last) return NULL;
        last = (int)p[i];
    }
    return b_reshape(g, n->in[0], t->rank, t->dim);
}

// expand(expand(x)) -> expand(x),  expand to x's own shape -> x
static Value *rule_expand(Graph *g, Node *n) {
    const Type *t = &n->out[0]->type;
    Node *inner = made_by(n->in[0], OP_Expand);
    if (inner) return b_expand(g, inner->in[0], t->rank, t->dim);
    return same_type(n->in[0], n->out[0]) ? n->in[0] : NULL;
}

// slice(slice(x)) -> slice(x),  slice of everything -> x
static Value *rule_slice(Graph *g, Node *n) {
    const Type *t = &n->out[0]->type;
    int rank;
    const int64_t *start = node_ints(n, "starts", &rank), *step = node_ints(n, "steps", &rank);
    Node *inner = made_by(n->in[0], OP_Slice);
    if (!inner) {
        Value *all = n->in[0];
        for (int i = 0; i < rank; i++)
            if (start[i] != 0 || step[i] != 1) return NULL;
        return same_type(all, n->out[0]) ? all : NULL;
    }
    const int64_t *start0 = node_ints(inner, "starts", &rank), *step0 = node_ints(inner, "steps", &rank);
    int64_t steps[MAX_RANK];
    Dim starts[MAX_RANK];
    for (int i = 0; i < rank; i++) {            // element j is x[start0 + (start + j*step)*step0]
        Dim offset = dim_mul(g, start[i], step0[i] < 0 ? -step0[i] : step0[i]);
        if (__builtin_mul_overflow(step[i], step0[i], &steps[i])) return NULL;
        starts[i] = step0[i] < 0 ? dim_sub(g, start0[i], offset) : dim_add(g, start0[i], offset);
    }
    return b_slice(g, inner->in[0], starts, steps, t->dim);
}

// gather at constant, evenly spaced places -> reshape(slice(x))
static Value *rule_gather(Graph *g, Node *n) {
    const Tensor *at = n->in[1]->data;
    const Type *x = &n->in[0]->type, *t = &n->out[0]->type;
    int axis = (int)node_int(n, "axis", 0);
    int64_t count = at ? type_count(&at->type) : 0, first, step = 1;
    if (count < 1 || !dim_is_const(x->dim[axis])) return NULL;
    first = tensor_get_i(at, 0);
    if (count > 1 && __builtin_sub_overflow(tensor_get_i(at, 1), first, &step)) return NULL;
    for (int64_t i = 0; i < count; i++) {
        int64_t index = tensor_get_i(at, i);
        if (index < -x->dim[axis] || index >= x->dim[axis] || (index < 0) != (first < 0) || index != first + i * step
            || step == 0)
            return NULL;
    }
    Dim starts[MAX_RANK] = { 0 }, sizes[MAX_RANK];
    int64_t steps[MAX_RANK];
    for (int i = 0; i < x->rank; i++) {
        steps[i] = 1;
        sizes[i] = x->dim[i];
    }
    starts[axis] = first < 0 ? first + x->dim[axis] : first;
    steps[axis] = step;
    sizes[axis] = count;
    return b_reshape(g, b_slice(g, n->in[0], starts, steps, sizes), t->rank, t->dim);
}

// pad by nothing -> x
static Value *rule_pad(Graph *g, Node *n) {
    (void)g;
    static const char *const names[] = { "lo", "hi", "interior" };
    for (size_t k = 0; k < COUNT(names); k++) {
        int count;
        const int64_t *v = node_ints(n, names[k], &count);
        for (int i = 0; i < count; i++)
            if (v[i]) return NULL;
    }
    return n->in[0];
}

// concat(x) -> x;  operands without elements are left out
static Value *rule_concat(Graph *g, Node *n) {
    Value **kept = NEW_ARRAY(g->arena, Value *, n->n_in);
    int64_t axis = node_int(n, "axis", 0);
    int count = 0;
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i]->type.dim[axis] != 0) kept[count++] = n->in[i];
    if (count == 0 || (count == n->n_in && count > 1)) return NULL;
    return b_concat(g, (int)axis, count, kept);
}

// a reduction over no axes or over axes of size 1 -> reshape
static Value *rule_reduce(Graph *g, Node *n) {
    const Type *from = &n->in[0]->type, *to = &n->out[0]->type;
    if (!type_is_static(from) || type_count(from) == 0 || type_count(from) != type_count(to)) return NULL;
    return b_reshape(g, n->in[0], to->rank, to->dim);
}

// the extreme of all elements, however they lie -> that of what they were before
static Value *rule_extreme(Graph *g, Node *n) {
    Value *x = n->in[0], *same = rule_reduce(g, n);
    const Type *to = &n->out[0]->type;
    int64_t axes[MAX_RANK];
    for (Node *m = x->def; m && (m->op == OP_Reshape || m->op == OP_Transpose); m = x->def) x = m->in[0];
    if (same || x == n->in[0] || !type_is_static(&x->type) || !type_is_static(to) || type_count(to) != 1) return same;
    for (int i = 0; i < x->type.rank; i++) axes[i] = i;
    return b_reshape(g, b_reduce(g, n->op, x, x->type.rank, axes, false), to->rank, to->dim);
}

// a window of one element, at every place -> the operand
static Value *rule_window(Graph *g, Node *n) {
    (void)g;
    bool one = all_ints(n, "kernel", 1) && all_ints(n, "strides", 1) && all_ints(n, "pads", 0);
    return one && same_type(n->in[0], n->out[0]) ? n->in[0] : NULL;
}

// A carried value that a loop never changes is the value around the loop.
static void unchanging(Rewrite *r, Node *n) {
    const Graph *b = n->bodies[0];
    for (int i = 2; i < n->n_in; i++) {
        Value *inside = b->inputs.at[i];
        if (b->outputs.at[i - 1] != inside || !same_type(inside, n->in[i])) continue;
        rewrite_set(r, inside, n->in[i]);
        rewrite_set(r, n->out[i - 2], n->in[i]);
    }
}

// ---- the walk

typedef struct Rule { Op op; Value *(*apply)(Graph *g, Node *n); } Rule;
static const Rule rules[] = {
    { OP_Add, rule_add },
    { OP_Sub, rule_sub },
    { OP_Mul, rule_mul },
    { OP_Div, rule_div },
    { OP_Pow, rule_pow },
    { OP_Neg, rule_involution },
    { OP_Not, rule_involution },
    { OP_Abs, rule_idempotent },
    { OP_Relu, rule_idempotent },
    { OP_Floor, rule_idempotent },
    { OP_Ceil, rule_idempotent },
    { OP_Round, rule_idempotent },
    { OP_Trunc, rule_idempotent },
    { OP_Sign, rule_idempotent },
    { OP_Where, rule_where },
    { OP_Cast, rule_cast },
    { OP_Identity, rule_identity },
    { OP_Dropout, rule_dropout },
    { OP_Reshape, rule_reshape },
    { OP_Transpose, rule_transpose },
    { OP_Expand, rule_expand },
    { OP_Slice, rule_slice },
    { OP_Gather, rule_gather },
    { OP_Pad, rule_pad },
    { OP_Concat, rule_concat },
    { OP_ReduceSum, rule_reduce },
    { OP_ReduceProd, rule_reduce },
    { OP_ReduceMax, rule_extreme },
    { OP_ReduceMin, rule_extreme },
    { OP_WindowSum, rule_window },
    { OP_WindowMax, rule_window },
};

// The first rule that applies; n->out[0] itself when n was changed in place.
static Value *simpler(Graph *g, Node *n) {
    for (size_t i = 0; i < COUNT(rules); i++) {
        Value *v = rules[i].op == n->op ? rules[i].apply(g, n) : NULL;
        if (v) return v;
    }
    return op_has_expr(n->op) ? rule_broadcast(g, n) : NULL;
}

static void simplify_graph(Rewrite *r, Graph *g) {
    for (Node *n = g->first, *next; n; n = next) {
        next = n->next;
        rewrite_operands(r, n);
        if (n->op == OP_Loop) unchanging(r, n);
        for (int i = 0; i < n->n_bodies; i++) simplify_graph(r, n->bodies[i]);
        g->cursor = n;
        g->loc = n->loc;
        Value *v;
        while ((v = simpler(g, n)) == n->out[0] && n->n_out) r->changed = true;
        if (!v) continue;
        rewrite_set(r, n->out[0], v);
        g->cursor = NULL;
        graph_remove(g, n);
    }
    g->cursor = NULL;
    rewrite_outputs(r, g);
}

bool pass_simplify(Graph *g) {
    bool changed = false;
    for (int round = 0; round < MAX_ROUNDS; round++) {
        Rewrite r = { .scratch = arena_new() };
        simplify_graph(&r, g);
        arena_free(r.scratch);
        if (!r.changed) break;
        changed = true;
        pass_dce(g);                            // what fell dead would be looked at again
    }
    return changed;
}
