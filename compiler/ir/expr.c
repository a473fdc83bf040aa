// SPDX-License-Identifier: MIT OR Apache-2.0
// Scalar expressions: the pool, the constructors, and rewriting.
//
// In: operations on expressions. Out: nodes of a DAG in which equal expressions are the same pointer. The idea: a
// constructor folds constants, simplifies exactly (expr_simplify.c; DT_INDEX: expr_index.c) and then looks the node
// up by its contents, so that whoever builds an expression, in whatever order, gets the one short form. Walks are
// loops over a postorder, never recursion.
//
// The files expr*.c call one another in a circle: what simplifies an expression builds one. So do dim.c, whose sizes
// they read, and graph.c, in whose root the sizes lie.
#include "expr.h"

#include <stdlib.h>
#include <string.h>

const ExprInfo expr_table[E_COUNT] = {
#define EXPR(name, arity, rule, da, db) [E_##name] = { #name, arity, RULE_##rule, { da, db } },
#include "exprs.def"
#undef EXPR
};

enum { MEMO = 64 };
typedef struct Memo { int row; DType first, last; Expr *e; } Memo;

struct ExprPool {
    Arena *arena;
    const Graph *graph;                         // whose symbols its sizes are made of; NULL before there are any
    VEC(Expr *) all;                            // by id
    Expr **table; size_t mask;                  // open addressing by contents
    Memo *memo;                                 // of rows of maps.def, MEMO; NULL before one is asked for
};

Expr **expr_memo(ExprPool *p, int row, DType first, DType last) {
    if (!p->memo) p->memo = NEW_ARRAY(p->arena, Memo, MEMO);
    Memo *m = &p->memo[((unsigned)row * 31 + (unsigned)first * 7 + (unsigned)last) % MEMO];
    if (m->row != row || m->first != first || m->last != last) *m = (Memo){ row, first, last, NULL };
    return &m->e;
}

static bool is_number(DType d) { return dtype_is_float(d) || dtype_is_int(d); }

bool expr_rule_accepts(EOp op, DType d) {
    switch (expr_table[op].rule) {
    case RULE_SAME: return is_number(d);
    case RULE_FLOAT: case RULE_TEST: return dtype_is_float(d);
    case RULE_INT: return dtype_is_int(d);
    case RULE_CMP:
        return is_number(d) || d == DT_BOOL
            || ((d == DT_STRING || dtype_class(d) == CLASS_COMPLEX) && (op == E_Eq || op == E_Ne));
    case RULE_BOOL: return d == DT_BOOL;
    case RULE_PART: return dtype_class(d) == CLASS_COMPLEX;
    case RULE_PAIR: return d == DT_F32 || d == DT_F64;
    case RULE_SPECIAL: break;
    }
    return false;
}

const char *expr_rule_wants(EOp op) {
    static const char *const text[] = { "nothing", "numbers", "floats", "integers", "numbers or bools", "floats",
        "bools", "complex numbers", "f32 or f64" };
    return text[expr_table[op].rule];
}

// ---- the pool

ExprPool *expr_pool_new(Arena *a) {
    ExprPool *p = NEW(a, ExprPool);
    p->arena = a;
    p->mask = 31;
    p->table = NEW_ARRAY(a, Expr *, p->mask + 1);
    return p;
}

Arena *expr_arena(const ExprPool *p) { return p->arena; }
int expr_count(const ExprPool *p) { return p->all.n; }
const Graph *expr_pool_graph(const ExprPool *p) { return p->graph; }

static void has_sizes_of(ExprPool *p, const Graph *g) {
    const Graph *root = graph_root(g);
    if (p->graph && p->graph != root) bug("sizes of two graphs in one pool");
    p->graph = root;
}

static bool in_pool(const ExprPool *p, const Expr *e) { return e->id < p->all.n && p->all.at[e->id] == e; }

static uint64_t mix(uint64_t h, uint64_t v) {
    h = (h ^ v) * UINT64_C(0x9e3779b97f4a7c15);
    return h ^ h >> 32;
}

static uint64_t hash(const Expr *e) {
    uint64_t h = mix((uint64_t)e->op << 8 | (uint64_t)e->dtype, e->c.u);
    for (int i = 0; i < 3; i++) h = mix(h, e->a[i] ? (uint64_t)e->a[i]->id + 1 : 0);
    if (e->op == E_Axis) h = mix(mix(h, (uint64_t)e->hi), (uint64_t)e->extent);
    if (e->op == E_Load) h = mix(h, (uint64_t)e->value->id);
    if (e->op == E_Reduce) {
        h = mix(h, (uint64_t)e->rop);
        for (int i = 0; i < e->n_axes; i++) h = mix(h, (uint64_t)e->axes[i]);
    }
    return h;
}

static bool same(const Expr *x, const Expr *y) {
    return x->op == y->op && x->dtype == y->dtype && x->c.u == y->c.u && x->a[0] == y->a[0] && x->a[1] == y->a[1]
        && x->a[2] == y->a[2] && x->value == y->value
        && (x->op != E_Axis || (x->hi == y->hi && x->extent == y->extent))
        && (x->op != E_Reduce
            || (x->rop == y->rop && x->n_axes == y->n_axes
                && !memcmp(x->axes, y->axes, (size_t)x->n_axes)));
}

static void grow(ExprPool *p) {
    p->mask = p->mask * 2 + 1;
    p->table = NEW_ARRAY(p->arena, Expr *, p->mask + 1);
    for (int i = 0; i < p->all.n; i++) {
        size_t at = (size_t)hash(p->all.at[i]) & p->mask;
        while (p->table[at]) at = (at + 1) & p->mask;
        p->table[at] = p->all.at[i];
    }
}

// Facts that follow from the operands: which axes it depends on, the range of an index.
static void set_facts(Expr *e) {
    if (e->op == E_Axis) e->axes_used = UINT64_C(1) << e->c.i;
    for (int i = 0; i < 3; i++)
        if (e->a[i]) e->axes_used |= e->a[i]->axes_used;
    if (e->op == E_Reduce)
        for (int i = 0; i < e->n_axes; i++) e->axes_used &= ~(UINT64_C(1) << e->axes[i]);
    if (e->dtype == DT_INDEX) index_range(e);
}

// A node that is not there yet.
static Expr *enter(ExprPool *p, const Expr *key) {
    Expr *e = NEW(p->arena, Expr);
    size_t at = (size_t)hash(key) & p->mask;
    while (p->table[at]) at = (at + 1) & p->mask;
    *e = *key;
    e->id = p->all.n;
    VEC_PUSH(p->arena, p->all, e);
    p->table[at] = e;
    if ((size_t)p->all.n * 2 > p->mask) grow(p);
    return e;
}

static Expr *intern(ExprPool *p, Expr *key) {
    size_t at = (size_t)hash(key) & p->mask;
    for (; p->table[at]; at = (at + 1) & p->mask)
        if (same(p->table[at], key)) return p->table[at];
    for (int i = 0; i < 3; i++)
        if (key->a[i] && !in_pool(p, key->a[i]))
            bug("operand %d of %s is of another pool", i, expr_table[key->op].name);
    set_facts(key);
    bool maybe_none = key->op == E_Axis && key->extent;        // a loop that may not run at all stays one
    if (key->dtype == DT_INDEX && key->lo == key->hi && key->op != E_Const && !maybe_none)
        return expr_index(p, key->lo);
    return enter(p, key);
}

// ids stay in the same order
ExprPool *expr_pool_keep(Arena *a, const ExprPool *from, int n, Expr **const *roots) {
    Arena *scratch = arena_new();
    int kept = 0;
    Expr **now = NEW_ARRAY(scratch, Expr *, from->all.n + 1);
    for (int i = 0; i < n; i++)
        if (*roots[i]) now[(*roots[i])->id] = *roots[i];
    for (int i = from->all.n - 1; i >= 0; i--)
        for (int j = 0; now[i] && j < 3; j++)
            if (now[i]->a[j]) now[now[i]->a[j]->id] = now[i]->a[j];
    for (int i = 0; i < from->all.n; i++) kept += now[i] != NULL;
    ExprPool *p = NEW(a, ExprPool);
    *p = (ExprPool){ .arena = a, .graph = from->graph, .mask = 31, .all.cap = kept };
    while ((size_t)kept * 2 > p->mask) p->mask = p->mask * 2 + 1;
    p->table = NEW_ARRAY(a, Expr *, p->mask + 1);
    p->all.at = NEW_ARRAY(a, Expr *, kept);
    for (int i = 0; i < from->all.n; i++) {
        if (!now[i]) continue;
        Expr key = *now[i];
        for (int j = 0; j < 3; j++)
            if (key.a[j]) key.a[j] = now[key.a[j]->id];
        now[i] = enter(p, &key);
    }
    for (int i = 0; i < n; i++)
        if (*roots[i]) *roots[i] = now[(*roots[i])->id];
    arena_free(scratch);
    return p;
}

// ---- leaves

Expr *expr_const_f(ExprPool *p, DType d, double v) {
    if (!dtype_is_float(d)) bug("float constant of type %s", dtype_name(d));
    return intern(p, &(Expr){ .op = E_Const, .dtype = d, .c.f = float_round(d, v) });
}

Expr *expr_const_i(ExprPool *p, DType d, int64_t v) {
    if (dtype_is_float(d)) return expr_const_f(p, d, (double)v);
    // an empty string
    if ((d == DT_STRING || dtype_class(d) == CLASS_COMPLEX) && v == 0)
        return intern(p, &(Expr){ .op = E_Const, .dtype = d });
    if (d != DT_BOOL && !dtype_is_int(d)) bug("integer constant of type %s", dtype_name(d));
    return intern(p, &(Expr){ .op = E_Const, .dtype = d, .c.i = int_wrap(d, (uint64_t)v) });
}

Expr *expr_index(ExprPool *p, int64_t v) { return expr_const_i(p, DT_INDEX, v); }
Expr *expr_arg(ExprPool *p, int i, DType d) { return intern(p, &(Expr){ .op = E_Arg, .dtype = d, .c.i = i }); }
Expr *expr_acc(ExprPool *p, DType d) { return intern(p, &(Expr){ .op = E_Acc, .dtype = d }); }

Expr *expr_axis(ExprPool *p, int axis, int64_t extent) {
    if (axis < 0 || axis >= 64) bug("loop axis %d", axis);
    return intern(
        p, &(Expr){ .op = E_Axis, .dtype = DT_INDEX, .c.i = axis, .lo = 0, .hi = extent > 0 ? extent - 1 : 0 });
}

Expr *expr_axis_size(ExprPool *p, const Graph *g, int axis, Dim extent) {
    if (dim_is_const(extent)) return expr_axis(p, axis, extent);
    if (axis < 0 || axis >= 64) bug("loop axis %d", axis);
    int64_t top = dim_upper(g, extent);
    has_sizes_of(p, g);
    return intern(p,
        &(Expr){ .op = E_Axis,
            .dtype = DT_INDEX,
            .c.i = axis,
            .lo = 0,
            .hi = top > 0 ? top - 1 : 0,
            .graph = p->graph,
            .extent = extent });
}

Expr *expr_size_leaf(ExprPool *p, const Graph *g, Dim d) {
    if (dim_is_const(d)) return expr_index(p, d);
    has_sizes_of(p, g);
    int64_t lo = dim_lower(g, d);
    return intern(p,
        &(Expr){ .op = E_Size,
            .dtype = DT_INDEX,
            .c.i = d,
            .lo = lo == -INT64_MAX ? INT64_MIN : lo,
            .hi = dim_upper(g, d),
            .graph = p->graph,
            .extent = d });
}

Expr *expr_size(ExprPool *p, const Graph *g, Dim d) {
    if (dim_is_const(d)) return expr_index(p, d);
    has_sizes_of(p, g);
    return index_size(p, p->graph, d);
}

Expr *expr_load(ExprPool *p, Value *v, Expr *index, Expr *guard, Expr *otherwise) {
    DType d = v->type.dtype;
    if (index->dtype != DT_INDEX || (guard && guard->dtype != DT_BOOL) || (otherwise && otherwise->dtype != d))
        bug("ill-typed load of %s", dtype_name(d));
    if (guard && is_const(guard)) {
        if (!guard->c.i) return otherwise ? otherwise : expr_const_i(p, d, 0);
        guard = NULL;
    }
    if (!guard || (otherwise && is_const(otherwise) && otherwise->c.u == 0)) otherwise = NULL;
    return intern(p, &(Expr){ .op = E_Load, .dtype = d, .a = { index, guard, otherwise }, .value = v });
}

Expr *expr_reduce(ExprPool *p, ReduceOp op, int n_axes, const int *axes, Expr *body, Expr *payload) {
    if (n_axes < 0 || n_axes > MAX_RANK) bug("reduction over %d axes", n_axes);
    if (n_axes == 0) return payload ? payload : body;
    Expr key = { .op = E_Reduce,
        .dtype = payload ? payload->dtype : body->dtype,
        .a = { body, payload, NULL },
        .rop = op,
        .n_axes = n_axes };
    for (int i = 0; i < n_axes; i++) {
        if (axes[i] < 0 || axes[i] >= 64) bug("loop axis %d", axes[i]);
        key.axes[i] = (signed char)axes[i];
    }
    return intern(p, &key);
}

// ---- operations

Expr *expr_make(ExprPool *p, EOp op, DType d, Expr *a, Expr *b, Expr *c) {
    return intern(p, &(Expr){ .op = op, .dtype = d, .a = { a, b, c } });
}

static DType result_dtype(EOp op, DType d) {
    ExprRule r = expr_table[op].rule;
    if (r == RULE_PART) return d == DT_C64 ? DT_F32 : DT_F64;
    if (r == RULE_PAIR) return d == DT_F32 ? DT_C64 : DT_C128;
    return r == RULE_CMP || r == RULE_TEST || r == RULE_BOOL ? DT_BOOL : d;
}

static Expr *fold(ExprPool *p, EOp op, Expr *x, Expr *y) {
    DType d = result_dtype(op, x->dtype);
    if (expr_table[op].rule == RULE_PART) return expr_const_f(p, d, 0);         // the one complex constant is 0
    Scalar s = eval_op(op, x->dtype, x->c, y ? y->c : (Scalar){ .i = 0 });
    return dtype_is_float(d) ? expr_const_f(p, d, s.f) : expr_const_i(p, d, s.i);
}

Expr *expr_unary(ExprPool *p, EOp op, Expr *x) {
    if (expr_table[op].arity != 1 || !expr_rule_accepts(op, x->dtype))
        bug("%s of %s", expr_table[op].name, dtype_name(x->dtype));
    if (is_const(x)) return fold(p, op, x, NULL);
    if (x->dtype == DT_INDEX && op == E_Neg) return index_binary(p, E_Sub, expr_index(p, 0), x);
    Expr *e = simplify_unary(p, op, x);
    return e ? e : expr_make(p, op, result_dtype(op, x->dtype), x, NULL, NULL);
}

static bool commutes(EOp op) {
    switch (op) {
    case E_Add:
    case E_Mul:
    case E_Min:
    case E_Max:
    case E_Eq:
    case E_Ne:
    case E_And:
    case E_Or:
    case E_Xor:
    case E_BitAnd:
    case E_BitOr:
    case E_BitXor: return true;
    default: return false;
    }
}

Expr *expr_binary(ExprPool *p, EOp op, Expr *x, Expr *y) {
    if (expr_table[op].arity != 2 || x->dtype != y->dtype || !expr_rule_accepts(op, x->dtype))
        bug("%s of %s and %s", expr_table[op].name, dtype_name(x->dtype), dtype_name(y->dtype));
    if (is_const(x) && is_const(y) && expr_table[op].rule != RULE_PAIR) return fold(p, op, x, y);
    if (x->dtype == DT_INDEX) {
        Expr *e = expr_table[op].rule == RULE_CMP ? index_compare(p, op, x, y) : index_binary(p, op, x, y);
        return e ? e : expr_make(p, op, result_dtype(op, DT_INDEX), x, y, NULL);
    }
    if (commutes(op) && (is_const(x) || (!is_const(y) && x->id > y->id && op != E_And && op != E_Or))) {
        // constants stand second; And, Or keep their order: the cheap test is first
        Expr *t = x;
        x = y, y = t;
    }
    Expr *e = simplify_binary(p, op, x, y);
    return e ? e : expr_make(p, op, result_dtype(op, x->dtype), x, y, NULL);
}

Expr *expr_not(ExprPool *p, Expr *x) { return expr_unary(p, E_Not, x); }

Expr *expr_select(ExprPool *p, Expr *c, Expr *x, Expr *y) {
    if (c->dtype != DT_BOOL || x->dtype != y->dtype)
        bug("Select of %s, %s and %s", dtype_name(c->dtype), dtype_name(x->dtype), dtype_name(y->dtype));
    Expr *e = simplify_select(p, c, x, y);
    return e ? e : expr_make(p, E_Select, x->dtype, c, x, y);
}

Expr *expr_cast_to(ExprPool *p, Expr *x, DType to, bool to_infinity) {
    if (!is_number(to) && to != DT_BOOL) bug("Cast to %s", dtype_name(to));
    if (!is_number(x->dtype) && x->dtype != DT_BOOL) bug("Cast of %s", dtype_name(x->dtype));
    if (x->dtype == to) return x;
    if (is_const(x)) {
        Scalar s = eval_cast_scalar(x->dtype, to, to_infinity, x->c);
        return dtype_is_float(to) ? expr_const_f(p, to, s.f) : expr_const_i(p, to, s.i);
    }
    Expr *e = simplify_cast(p, x, to);
    if (!e && to == DT_INDEX) e = index_cast(p, x);
    return e ? e : intern(p, &(Expr){ .op = E_Cast, .dtype = to, .a = { x }, .c.i = to_infinity });
}

Expr *expr_cast(ExprPool *p, Expr *x, DType to) { return expr_cast_to(p, x, to, false); }

Expr *expr_bits(ExprPool *p, Expr *x, DType to) {
    static const DType whole[] = { [1] = DT_U8, [2] = DT_U16, [4] = DT_U32, [8] = DT_U64 };
    DType from = x->dtype;
    if (!is_number(from) || !is_number(to) || dtype_size(from) != dtype_size(to))
        bug("the bits of %s as %s", dtype_name(from), dtype_name(to));
    if (from == to || (!dtype_is_float(from) && !dtype_is_float(to))) return expr_cast(p, x, to);
    if (dtype_is_float(from) && dtype_is_float(to)) return expr_bits(p, expr_bits(p, x, whole[dtype_size(to)]), to);
    // a NaN's payload may not survive the other way
    if (x->op == E_Bits && x->a[0]->dtype == to && !dtype_is_float(to)) return x->a[0];
    if (is_const(x)) {
        Scalar s = eval_bits(from, to, x->c);
        return dtype_is_float(to) ? expr_const_f(p, to, s.f) : expr_const_i(p, to, s.i);
    }
    return expr_make(p, E_Bits, to, x, NULL, NULL);
}

// ---- postorder

typedef struct OrderIndex { const Expr **key; int *position; size_t mask; } OrderIndex;

static void *grow_bytes(void *p, size_t bytes) {
    p = realloc(p, bytes);
    if (!p) fatal(EXIT_MEMORY, "out of memory");
    return p;
}

static size_t order_slot(const OrderIndex *x, const Expr *e) {
    size_t at = (size_t)mix((uint64_t)(uintptr_t)e, 1) & x->mask;
    while (x->key[at] && x->key[at] != e) at = (at + 1) & x->mask;
    return at;
}

static void index_resize(OrderIndex *x, size_t size) {
    OrderIndex old = *x;
    x->mask = size - 1;
    x->key = grow_bytes(NULL, size * sizeof *x->key);
    x->position = grow_bytes(NULL, size * sizeof *x->position);
    for (size_t i = 0; i < size; i++) x->key[i] = NULL;
    for (size_t i = 0; old.key && i <= old.mask; i++)
        if (old.key[i]) {
            size_t at = order_slot(x, old.key[i]);
            x->key[at] = old.key[i], x->position[at] = old.position[i];
        }
    free(old.key), free(old.position);
}

int order_find(const ExprOrder *o, const Expr *e) {
    const OrderIndex *x = o->index;
    size_t at = order_slot(x, e);
    return x->key[at] ? x->position[at] : -1;
}

static void order_push(ExprOrder *o, const Expr *e) {
    OrderIndex *x = o->index;
    if (o->n == o->cap) {
        o->cap = o->cap ? o->cap * 2 : 32;
        o->at = grow_bytes(o->at, sizeof *o->at * (size_t)o->cap);
        o->arg = grow_bytes(o->arg, sizeof *o->arg * (size_t)o->cap);
        o->uses = grow_bytes(o->uses, sizeof *o->uses * (size_t)o->cap);
    }
    if ((size_t)o->n * 2 >= x->mask) index_resize(x, (x->mask + 1) * 2);
    o->at[o->n] = (Expr *)e;
    o->uses[o->n] = 0;
    for (int i = 0; i < 3; i++) {
        o->arg[o->n][i] = e->a[i] ? order_find(o, e->a[i]) : -1;
        if (e->a[i]) o->uses[o->arg[o->n][i]]++;
    }
    size_t at = order_slot(x, e);
    x->key[at] = e, x->position[at] = o->n++;
}

void order_make(ExprOrder *o, const Expr *e) {
    *o = (ExprOrder){ .index = grow_bytes(NULL, sizeof(OrderIndex)) };
    *(OrderIndex *)o->index = (OrderIndex){ .key = NULL };
    index_resize(o->index, 64);
    struct Frame { const Expr *e; int next; } *stack = NULL;
    size_t n = 0, cap = 0;
    const Expr *push = e;
    for (;;) {
        if (push) {
            if (n == cap) stack = grow_bytes(stack, sizeof *stack * (cap = cap ? cap * 2 : 32));
            stack[n++] = (struct Frame){ push, 0 };
            push = NULL;
        }
        struct Frame *f = &stack[n - 1];
        if (f->next < 3) {
            const Expr *a = f->e->a[f->next++];
            if (a && order_find(o, a) < 0) push = a;
            continue;
        }
        order_push(o, f->e);
        if (--n == 0) break;
    }
    free(stack);
}

void order_free(ExprOrder *o) {
    OrderIndex *x = o->index;
    free(x->key), free(x->position), free(x);
    free(o->at), free(o->arg), free(o->uses);
}

// ---- rewriting

// Build the node `e` anew in p over substitutes of its operands.
static Expr *rebuild_node(ExprPool *p, Expr *e, Expr *const a[3], const ExprOrder *o, Expr *const *made) {
    switch (e->op) {
    case E_Const: case E_Arg: case E_Acc: case E_Axis: case E_Size: {
        if (in_pool(p, e)) return e;
        Expr key = *e;
        if (e->graph) has_sizes_of(p, e->graph);
        key.axes_used = 0;
        return intern(p, &key);
    }
    case E_Load: return expr_load(p, e->value, a[0], a[1], a[2]);
    case E_Select: return expr_select(p, a[0], a[1], a[2]);
    case E_Cast: return expr_cast_to(p, a[0], e->dtype, e->c.i != 0);
    case E_Bits: return expr_bits(p, a[0], e->dtype);
    case E_Reduce: {
        // an axis that was replaced by another is reduced over under its new number; by a constant, no more
        int axes[MAX_RANK], n = 0;
        for (int i = 0; i < e->n_axes; i++) {
            const Expr *with = NULL;
            for (int k = 0; k < o->n; k++)
                if (o->at[k]->op == E_Axis && o->at[k]->c.i == e->axes[i]) with = made[k];
            if (!with || with->op == E_Axis) axes[n++] = with ? (int)with->c.i : e->axes[i];
        }
        return expr_reduce(p, e->rop, n, axes, a[0], a[1]);
    }
    default: return a[1] ? expr_binary(p, e->op, a[0], a[1]) : expr_unary(p, e->op, a[0]);
    }
}

Expr *expr_rebuild(ExprPool *p, Expr *e, Expr *(*replace)(void *ctx, Expr *e), void *ctx) {
    ExprOrder o;
    order_make(&o, e);
    Expr **made = grow_bytes(NULL, sizeof *made * (size_t)o.n);
    for (int i = 0; i < o.n; i++) {
        made[i] = replace ? replace(ctx, o.at[i]) : NULL;
        if (made[i]) continue;
        Expr *a[3];
        bool kept = in_pool(p, o.at[i]);
        for (int k = 0; k < 3; k++) {
            a[k] = o.arg[i][k] >= 0 ? made[o.arg[i][k]] : NULL;
            kept = kept && a[k] == o.at[i]->a[k];
        }
        made[i] = kept && o.at[i]->op != E_Reduce ? o.at[i] : rebuild_node(p, o.at[i], a, &o, made);
    }
    Expr *result = made[o.n - 1];
    free(made);
    order_free(&o);
    return result;
}

typedef struct LeafMap { Expr *(*leaf)(void *ctx, Expr *e); void *ctx; } LeafMap;

static Expr *replace_leaf(void *ctx, Expr *e) {
    LeafMap *m = ctx;
    bool leaf = e->op == E_Arg || e->op == E_Axis || e->op == E_Size || e->op == E_Load || e->op == E_Acc;
    return leaf ? m->leaf(m->ctx, e) : NULL;
}

Expr *expr_map_leaves(ExprPool *p, Expr *e, Expr *(*leaf)(void *ctx, Expr *e), void *ctx) {
    LeafMap m = { leaf, ctx };
    return expr_rebuild(p, e, replace_leaf, &m);
}

typedef struct ArgMap { ExprPool *p; Expr *const *args; } ArgMap;

static Expr *replace_arg(void *ctx, Expr *e) {
    ArgMap *m = ctx;
    if (e->op != E_Arg) return NULL;
    Expr *with = m->args[e->c.i];
    if (with->dtype != e->dtype)
        bug("argument %d of %s replaced by %s", (int)e->c.i, dtype_name(e->dtype), dtype_name(with->dtype));
    return in_pool(m->p, with) ? with : expr_rebuild(m->p, with, NULL, NULL);
}

Expr *expr_subst(ExprPool *p, Expr *e, Expr *const *args) {
    ArgMap m = { p, args };
    return expr_rebuild(p, e, replace_arg, &m);
}
