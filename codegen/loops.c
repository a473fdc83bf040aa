// SPDX-License-Identifier: MIT OR Apache-2.0
// Prints a loop kernel: nested loops over its axes, every expression at the outermost level where all it needs is known.
//
// In: stores of expressions over loads, axes and reductions. Out: text in a Dialect (C, GLSL). The levels form a tree of scopes: the
// parallel axes are one chain, every reduction hangs its own chain of axes below the scope of the innermost axis it depends on.
// A nest whose points each sum a little, where memory runs along the innermost parallel axis, goes along that axis some points at a time
// (see strips below). An expression belongs to the deepest scope among its axes, so what does not depend on a loop is computed before it, and a softmax's
// maximum ends up outside the loop that uses it without anybody saying so.
#include "codegen.h"

#include <stdlib.h>
#include <string.h>

enum { LANES = 16, MIN_LANES_EXTENT = 32, MAX_NESTING = 10 };   // MAX_NESTING: operations in one C expression, for the reader and clang's bracket limit

typedef struct Scope { int parent, depth, axis; Expr *reduce; } Scope;  // axis -1: the root; reduce: whose chain this is, NULL: parallel
typedef struct Printer {
    Arena *arena;
    const Kernel *k;
    const Dialect *d;
    Text *out;
    VEC(Expr *) exprs;                                  // reachable, operands first
    int *uses, *scope_of;                               // by expression id
    bool *seen, *deeper, *is_temp;                      // by expression id; deeper: used in a scope below its own
    bool *holds;                                        // by expression id: a condition that is true in the loop being printed (see interiors)
    const char **name;                                  // by expression id: of its temporary once printed
    Expr **peer;                                        // by expression id: the next reduction over the very same axes, computed in the same loops
    bool *follows;                                      // by expression id: a peer of a reduction with a higher id, printed with it
    bool shared[64];                                    // by axis: its loop is shared out among the team
    int parts;                                          // slots of the team's memory in use
    VEC(Scope) scopes;
    int axis_scope[64];
    const char *axis_name[64];
    int temps, bound, last_parallel;
    VEC(Expr *) fresh;                                  // temporaries of the lane loop that is being printed
    VEC(Expr *) hoisted;                                // and of the loops around it, where the lanes make no difference
    const Expr *certain;                                // a condition that holds where text is printed: loads guarded by it need no guard
} Printer;

// ---------------------------------------------------------------- collecting
static void collect(Printer *p, Expr *e) {
    if (!e) return;
    p->uses[e->id]++;
    if (p->seen[e->id]) return;
    p->seen[e->id] = true;
    for (int i = 0; i < 3; i++) collect(p, e->a[i]);
    VEC_PUSH(p->arena, p->exprs, e);
}

static int by_id(const void *x, const void *y) { return (*(Expr *const *)x)->id - (*(Expr *const *)y)->id; }

static int deepest(const Printer *p, uint64_t axes) {
    int best = p->bound;                                // scopes 0..bound are the root and the caller's axes
    for (int i = 0; axes; i++, axes >>= 1)
        if (axes & 1 && p->scopes.at[p->axis_scope[i]].depth > p->scopes.at[best].depth) best = p->axis_scope[i];
    return best;
}

static int add_scope(Printer *p, int parent, int axis, Expr *reduce) {
    VEC_PUSH(p->arena, p->scopes, (Scope){ parent, p->scopes.at[parent].depth + 1, axis, reduce });
    p->axis_scope[axis] = p->scopes.n - 1;
    return p->scopes.n - 1;
}

static void build_scopes(Printer *p) {
    VEC_PUSH(p->arena, p->scopes, (Scope){ -1, 0, -1, NULL });
    for (int i = 0; i < p->k->n_parallel; i++) add_scope(p, i, i, NULL);
    p->last_parallel = p->k->n_parallel;
    Expr *first[64] = { NULL };
    for (int i = p->exprs.n - 1; i >= 0; i--) {         // outer reductions have higher ids than the ones inside their bodies
        Expr *e = p->exprs.at[i];
        if (e->op != E_Reduce) continue;
        int at = deepest(p, e->axes_used);
        if (e->n_axes && first[e->axes[0]]) {
            Expr *f = first[e->axes[0]];
            if (p->scopes.at[p->axis_scope[e->axes[0]]].parent != at) bug("reductions over the same axes at different depths");
            p->peer[e->id] = p->peer[f->id];
            p->peer[f->id] = e;
            p->follows[e->id] = true;
            continue;
        }
        if (e->n_axes) first[e->axes[0]] = e;
        for (int j = 0; j < e->n_axes; j++) at = add_scope(p, at, e->axes[j], e);
    }
    for (int i = 0; i < p->exprs.n; i++) p->scope_of[p->exprs.at[i]->id] = deepest(p, p->exprs.at[i]->axes_used);
}

// The scope an expression's operands are needed in: a reduction needs its body at the end of its own chain.
static int body_scope(const Printer *p, const Expr *e) {
    return e->op == E_Reduce && e->n_axes ? p->axis_scope[e->axes[e->n_axes - 1]] : p->scope_of[e->id];
}

static bool is_leaf(const Expr *e) { return e->op == E_Const || e->op == E_Axis || e->op == E_Acc || e->op == E_Size; }

static bool plain_index(const Expr *e) {                // cheap address arithmetic that the C compiler moves by itself
    int64_t coef[64], c0;
    return e->dtype == DT_INDEX && e->op != E_Load && expr_affine(e, 64, coef, &c0);
}

static void choose_temps(Printer *p) {
    for (int i = 0; i < p->exprs.n; i++) {
        const Expr *e = p->exprs.at[i];
        for (int j = 0; j < 3; j++)
            if (e->a[j] && p->scope_of[e->a[j]->id] != body_scope(p, e)) p->deeper[e->a[j]->id] = true;
    }
    for (int i = 0; i < p->k->stores.n; i++) {
        const Store *s = &p->k->stores.at[i];
        if (p->scope_of[s->expr->id] != p->last_parallel) p->deeper[s->expr->id] = true;
    }
    int *nesting = NEW_ARRAY(p->arena, int, expr_count(p->k->exprs) + 1);
    for (int i = 0; i < p->exprs.n; i++) {
        const Expr *e = p->exprs.at[i];
        int depth = 0;
        for (int j = 0; j < 3; j++)
            if (e->a[j] && !p->is_temp[e->a[j]->id] && nesting[e->a[j]->id] > depth) depth = nesting[e->a[j]->id];
        nesting[e->id] = plain_index(e) ? 1 : depth + 1;
        p->is_temp[e->id] = e->op == E_Reduce || (!is_leaf(e) && !plain_index(e) && (p->uses[e->id] > 1 || p->deeper[e->id] || depth >= MAX_NESTING));
    }
}

// ---------------------------------------------------------------- text
static const char *operand(Printer *p, Expr *e);

static const char *spell(Printer *p, Expr *e) {
    Text t;
    const char *operands[3] = { NULL, NULL, NULL };
    if (e->op == E_Axis) return p->axis_name[e->c.i];
    if (e->op == E_Acc) return "acc";                   // a template epilogue's parameter
    if (e->op == E_Size) {
        const char *size = dim_c_text(p->arena, e->graph, e->extent);
        return strchr(size, ' ') ? arena_printf(p->arena, "(%s)", text_bare(p->arena, size)) : size;
    }
    if (e->op == E_Select && p->holds[e->a[0]->id]) return operand(p, e->a[1]);
    for (int i = 0; i < 3; i++) if (e->a[i]) operands[i] = operand(p, e->a[i]);
    text_init(&t, p->arena);
    if (e->op == E_Load && e->a[1] && p->holds[e->a[1]->id]) text_printf(&t, "%s", p->d->load(p->d->ctx, e->value, operands[0]));
    else if (e->op != E_Load) p->d->text(&t, e, operands);
    else if (e->a[1] && p->d->load_if) text_printf(&t, "%s", p->d->load_if(p->d->ctx, e->value, operands[0], operands[1], operands[2]));
    else {
        const char *element = p->d->load(p->d->ctx, e->value, operands[0]);
        if (e->a[1] && e->a[1] != p->certain) text_printf(&t, "(%s ? %s : %s)", operands[1], element, operands[2] ? operands[2] : expr_c_zero(e->dtype));
        else text_printf(&t, "%s", element);
    }
    return t.at;
}

static const char *operand(Printer *p, Expr *e) { return p->holds[e->id] ? "true" : p->name[e->id] ? p->name[e->id] : spell(p, e); }

static void line(Printer *p, int depth) { for (int i = 0; i < depth; i++) text_printf(p->out, "%s", p->d->indent); }

static void define_temp(Printer *p, Expr *e, int depth) {
    const char *text = text_bare(p->arena, spell(p, e));
    const char *name = arena_printf(p->arena, "t%d", p->temps++);
    line(p, depth);
    text_printf(p->out, "%s%s %s = %s;\n", p->d->constant, p->d->type(e->dtype), name, text);
    p->name[e->id] = name;
}

static void emit_scope(Printer *p, int scope, int depth);

static bool is_ranged(const Printer *p, int axis) { return p->d->first && axis == p->k->part_axis; }

static const char *extent_text(const Printer *p, int axis) { return dim_c_text(p->arena, p->d->graph, p->k->axes.at[axis].size); }

static void open_loop(Printer *p, int axis, int depth) {
    const char *i = p->axis_name[axis], *it = p->d->index_type, *extent = extent_text(p, axis);
    line(p, depth);
    if (is_ranged(p, axis)) text_printf(p->out, "for (%s %s = %s; %s < %s; %s++) {\n", it, i, p->d->first, i, p->d->last, i);
    else if (p->shared[axis]) text_printf(p->out, "for (%s %s = rank; %s < %s; %s += %d) {\n", it, i, i, extent, i, p->d->team);
    else text_printf(p->out, "for (%s %s = 0; %s < %s; %s++) {\n", it, i, i, extent, i);
}

static void close_loop(Printer *p, int depth) { line(p, depth); text_printf(p->out, "}\n"); }

// ---------------------------------------------------------------- reductions
static bool is_arg(ReduceOp op) { return op >= RED_ARGMAX_FIRST; }

static const char *identity(const Printer *p, const Expr *e) {
    DType d = e->dtype;
    ExprPool *pool = p->k->exprs;
    DClass c = dtype_class(d);
    int bits = (int)dtype_size(d) * 8;
    int64_t top = c == CLASS_INT ? (int64_t)(((uint64_t)1 << (bits - 1)) - 1) : bits == 64 ? -1 : (int64_t)(((uint64_t)1 << bits) - 1);
    int64_t bottom = c == CLASS_INT ? -top - 1 : 0;
    Expr *v;
    switch (e->rop) {
    case RED_SUM: case RED_XOR: case RED_OR: v = c == CLASS_FLOAT ? expr_const_f(pool, d, 0) : expr_const_i(pool, d, 0); break;
    case RED_PROD: v = c == CLASS_FLOAT ? expr_const_f(pool, d, 1) : expr_const_i(pool, d, 1); break;
    case RED_AND: v = expr_const_i(pool, d, d == DT_BOOL ? 1 : -1); break;
    case RED_MAX: v = c == CLASS_FLOAT ? expr_const_f(pool, d, -1.0 / 0.0) : expr_const_i(pool, d, c == CLASS_BOOL ? 0 : bottom); break;
    default: v = c == CLASS_FLOAT ? expr_const_f(pool, d, 1.0 / 0.0) : expr_const_i(pool, d, c == CLASS_BOOL ? 1 : top); break;
    }
    Text t;
    text_init(&t, p->arena);
    p->d->text(&t, v, (const char *const[]){ NULL, NULL, NULL });
    return t.at;
}

// `acc op= x` spelled through the dialect's own binary operations, so that integers wrap and minima treat NaN as everywhere else.
static void combine(Printer *p, const Expr *e, const char *acc, const char *x, int depth) {
    static const EOp ops[] = { E_Add, E_Mul, E_Max, E_Min, E_And, E_Or, E_BitXor };
    Expr step = { .op = ops[e->rop], .dtype = e->dtype };
    Expr side = { .op = E_Acc, .dtype = e->dtype };
    if (e->dtype == DT_BOOL) step.op = e->rop == RED_MAX || e->rop == RED_SUM ? E_Or : e->rop == RED_MIN || e->rop == RED_PROD ? E_And : e->rop == RED_XOR ? E_Xor : step.op;
    else if (e->rop == RED_AND) step.op = E_BitAnd;
    else if (e->rop == RED_OR) step.op = E_BitOr;
    step.a[0] = step.a[1] = &side;
    line(p, depth);
    if (e->rop == RED_SUM && dtype_is_float(e->dtype)) { text_printf(p->out, "%s += %s;\n", acc, text_bare(p->arena, x)); return; }
    text_printf(p->out, "%s = ", acc);
    p->d->text(p->out, &step, (const char *const[]){ acc, x, NULL });
    text_printf(p->out, ";\n");
}

static void combine_arg(Printer *p, Expr *e, const char *best, const char *at, int depth) {
    const char *x = operand(p, e->a[0]), *payload = operand(p, e->a[1]);
    const char *cmp = e->rop == RED_ARGMAX_FIRST ? ">" : e->rop == RED_ARGMAX_LAST ? ">=" : e->rop == RED_ARGMIN_FIRST ? "<" : "<=";
    line(p, depth);
    text_printf(p->out, "if (%s < 0 || %s %s %s", at, x, cmp, best);
    if (dtype_is_float(e->a[0]->dtype) && e->rop == RED_ARGMAX_FIRST) text_printf(p->out, " || (%s != %s && %s == %s)", x, x, best, best);
    if (dtype_is_float(e->a[0]->dtype) && e->rop == RED_ARGMAX_LAST) text_printf(p->out, " || %s != %s", x, x);
    text_printf(p->out, ") {\n");
    line(p, depth + 1);
    text_printf(p->out, "%s = %s;\n", best, x);
    line(p, depth + 1);
    text_printf(p->out, "%s = %s;\n", at, payload);
    close_loop(p, depth);
}

// acc += x, e's body; a product goes in with one rounding where the dialect has a name for that.
static void accumulate(Printer *p, const Expr *e, Expr *x, const char *acc, int depth) {
    bool fused = p->d->fma && e->rop == RED_SUM && x->op == E_Mul && dtype_is_float(x->dtype) && !p->name[x->id];
    if (!fused) { combine(p, e, acc, operand(p, x), depth); return; }
    line(p, depth);
    text_printf(p->out, "%s = %s(%s, %s, %s);\n", acc, p->d->fma, operand(p, x->a[0]), operand(p, x->a[1]), acc);
}

// What the body defined is gone when its scope closes.
static void forget(Printer *p, int scope) {
    for (int i = 0; i < p->exprs.n; i++)
        if (p->scope_of[p->exprs.at[i]->id] == scope) p->name[p->exprs.at[i]->id] = NULL;
}

static void reduce_body(Printer *p, Expr *e, int at, int depth, const char *acc, const char *second) {
    int scope = p->axis_scope[e->axes[at]];
    emit_scope(p, scope, depth);
    if (at + 1 < e->n_axes) {
        open_loop(p, e->axes[at + 1], depth);
        reduce_body(p, e, at + 1, depth + 1, acc, second);
        close_loop(p, depth);
    } else if (is_arg(e->rop)) combine_arg(p, e, acc, second, depth);
    else accumulate(p, e, e->a[0], acc, depth);
    for (Expr *m = p->peer[e->id]; m && at + 1 == e->n_axes; m = p->peer[m->id]) accumulate(p, m, m->a[0], p->name[m->id], depth);
    forget(p, scope);
}

static bool use_lanes(const Printer *p, const Expr *e) {
    return p->d->lanes && !is_arg(e->rop) && dtype_is_float(e->dtype) && e->n_axes == 1 && p->k->axes.at[e->axes[0]].extent >= MIN_LANES_EXTENT;
}

// A long sum as LANES interleaved ones: independent, so that the C compiler may keep them in a vector without reassociating anything. Gcc would
// write the lanes out one by one and then find no vector of maxima: BURN_LANES keeps the loop.
static void emit_lanes(Printer *p, Expr *e, const char *acc, int depth) {
    int axis = e->axes[0];
    const char *i = p->axis_name[axis], *type = p->d->type(e->dtype), *zero = identity(p, e), *it = p->d->index_type;
    Dim size = p->k->axes.at[axis].size;
    bool fixed = dim_is_const(size);
    const char *whole = fixed ? arena_printf(p->arena, "%lld", (long long)(size / LANES * LANES)) : arena_printf(p->arena, "%s / %d * %d", extent_text(p, axis), LANES, LANES);
    const char *lane = arena_printf(p->arena, "%sl", acc), *base = arena_printf(p->arena, "%sb", i), *part = arena_printf(p->arena, "%sl[%sl]", acc, i);
    line(p, depth); text_printf(p->out, "%s %s[%d];\n", type, lane, LANES);
    line(p, depth); text_printf(p->out, "for (%s %sl = 0; %sl < %d; %sl++) %s = %s;\n", it, i, i, LANES, i, part, zero);
    line(p, depth); text_printf(p->out, "for (%s %s = 0; %s < %s; %s += %d)\n", it, base, base, whole, base, LANES);
    line(p, depth + 1); text_printf(p->out, "BURN_LANES for (%s %sl = 0; %sl < %d; %sl++) {\n", it, i, i, LANES, i);
    line(p, depth + 2); text_printf(p->out, "const %s %s = %s + %sl;\n", it, i, base, i);
    reduce_body(p, e, 0, depth + 2, part, NULL);
    close_loop(p, depth + 1);
    if (!fixed || size % LANES) {
        line(p, depth); text_printf(p->out, "for (%s %s = %s; %s < %s; %s++) {\n", it, i, whole, i, extent_text(p, axis), i);
        reduce_body(p, e, 0, depth + 1, arena_printf(p->arena, "%s[0]", lane), NULL);
        close_loop(p, depth);
    }
    for (int half = LANES / 2; half > 1; half /= 2) {
        line(p, depth); text_printf(p->out, "%sfor (%s %sl = 0; %sl < %d; %sl++)\n", e->rop == RED_SUM ? "" : "BURN_LANES ", it, i, i, half, i);
        combine(p, e, part, arena_printf(p->arena, "%s[%sl + %d]", lane, i, half), depth + 1);
    }
    line(p, depth); text_printf(p->out, "%s %s = %s[0];\n", type, acc, lane);
    combine(p, e, acc, arena_printf(p->arena, "%s[1]", lane), depth);
}

// ---------------------------------------------------------------- teams
// The axis of a chain worth sharing out: the longest, the innermost of equals.
static int longest(const Printer *p, const int *axes, int n) {
    int best = axes[0];
    for (int i = 1; i < n; i++)
        if (p->k->axes.at[axes[i]].extent >= p->k->axes.at[best].extent) best = axes[i];
    return best;
}

static bool is_teamwork(const Printer *p, const Expr *e) { return p->d->team > 1 && p->scope_of[e->id] == p->bound && !is_arg(e->rop) && e->n_axes; }

static void choose_shared(Printer *p) {
    for (int i = 0; i < p->exprs.n; i++) {
        const Expr *e = p->exprs.at[i];
        if (e->op == E_Reduce && is_teamwork(p, e)) p->shared[longest(p, e->axes, e->n_axes)] = true;
    }
    int inner[64], n = 0;
    for (int i = p->bound; i < p->last_parallel; i++) inner[n++] = i;
    if (n && p->d->team > 1) p->shared[longest(p, inner, n)] = true;
}

// Does a later reduction, whose terms all members sum, need e or one of its peers?
static bool feeds_reduction(const Printer *p, const Expr *e) {
    bool *needs = NEW_ARRAY(p->arena, bool, expr_count(p->k->exprs) + 1);
    for (const Expr *m = e; m; m = p->peer[m->id]) needs[m->id] = true;
    for (int i = 0; i < p->exprs.n; i++) {
        const Expr *x = p->exprs.at[i];
        for (int j = 0; j < 3; j++) {
            if (!x->a[j] || !needs[x->a[j]->id]) continue;
            if (x->op == E_Reduce) return true;
            needs[x->id] = true;
        }
    }
    return false;
}

// Every member of the team holds a part of each peer: all parts go to the team's memory, and are combined in order of rank, so that all hold
// the same result. Where only rank 0 will use it, the others skip that.
static void emit_gather(Printer *p, Expr *e, int depth) {
    int first = p->parts;
    const char *it = p->d->index_type;
    bool root_only = p->bound == p->last_parallel && !feeds_reduction(p, e);
    for (Expr *m = e; m; m = p->peer[m->id]) {
        line(p, depth);
        text_printf(p->out, "%s = %s;\n", p->d->part(p->d->ctx, m->dtype, p->parts++, NULL), p->name[m->id]);
    }
    line(p, depth);
    text_printf(p->out, "%s\n", p->d->barrier);
    int slot = first;
    for (Expr *m = e; m; m = p->peer[m->id]) {
        line(p, depth);
        text_printf(p->out, "%s = %s;\n", p->name[m->id], p->d->part(p->d->ctx, m->dtype, slot++, "0"));
    }
    line(p, depth);
    if (root_only) text_printf(p->out, "for (%s other = 1; rank == 0 && other < %d; other++) {\n", it, p->d->team);
    else text_printf(p->out, "for (%s other = 1; other < %d; other++) {\n", it, p->d->team);
    slot = first;
    for (Expr *m = e; m; m = p->peer[m->id]) combine(p, m, p->name[m->id], p->d->part(p->d->ctx, m->dtype, slot++, "other"), depth + 1);
    close_loop(p, depth);
}

// Defines the temporaries that e needs here and now.
static void demand(Printer *p, Expr *e, int depth) {
    if (!e || p->name[e->id] || p->holds[e->id]) return;
    for (int i = 0; i < 3; i++) demand(p, e->a[i], depth);
    if (!p->is_temp[e->id]) return;
    define_temp(p, e, depth);
    VEC_PUSH(p->arena, p->fresh, e);
}

// Ends the block, and with it the temporaries that demand() defined there.
static void close_fresh(Printer *p, int depth) {
    for (int i = 0; i < p->fresh.n; i++) p->name[p->fresh.at[i]->id] = NULL;
    p->fresh.n = 0;
    close_loop(p, depth);
}

// A few terms stand one after the other, without loops: nothing between the C compiler and a vector over the points around them.
enum { MAX_UNROLLED = 16 };

static bool unrolls(const Printer *p, const Expr *e) {
    int64_t terms = 1;
    if (!p->d->lanes || is_arg(e->rop)) return false;
    for (int i = 0; i < e->n_axes; i++) {
        if (!dim_is_const(p->k->axes.at[e->axes[i]].size) || terms > MAX_UNROLLED) return false;
        terms *= p->k->axes.at[e->axes[i]].size;
    }
    for (int i = 0; i < p->exprs.n; i++)                // a sum inside of a term has loops of its own
        if (p->exprs.at[i]->op == E_Reduce && p->scope_of[p->exprs.at[i]->id] >= p->axis_scope[e->axes[0]] && p->scope_of[p->exprs.at[i]->id] <= body_scope(p, e)) return false;
    return terms > 1 && terms <= MAX_UNROLLED;
}

// Opens a block for the term at `at`, which uses these axes.
static void open_term(Printer *p, const Expr *e, uint64_t used, const int64_t *at, int depth) {
    line(p, depth);
    text_printf(p->out, "{\n");
    for (int k = 0; k < e->n_axes; k++) {
        if (!(used >> e->axes[k] & 1)) continue;
        line(p, depth + 1);
        text_printf(p->out, "const %s %s = %lld;\n", p->d->index_type, p->axis_name[e->axes[k]], (long long)at[k]);
    }
}

// The next term; false after the last, and `at` is the first again.
static bool next_term(const Printer *p, const Expr *e, int64_t *at) {
    for (int i = e->n_axes - 1; i >= 0; i--) {
        if (++at[i] < p->k->axes.at[e->axes[i]].size) return true;
        at[i] = 0;
    }
    return false;
}

static void emit_unrolled(Printer *p, Expr *e, int depth) {
    int64_t at[MAX_RANK] = { 0 };
    uint64_t used = 0;
    for (const Expr *m = e; m; m = p->peer[m->id]) used |= m->a[0]->axes_used;
    do {
        open_term(p, e, used, at, depth);
        for (Expr *m = e; m; m = p->peer[m->id]) {
            demand(p, m->a[0], depth + 1);
            accumulate(p, m, m->a[0], p->name[m->id], depth + 1);
        }
        close_fresh(p, depth);
    } while (next_term(p, e, at));
}

// A reduction and its peers.
static void emit_reduce(Printer *p, Expr *e, int depth) {
    const char *acc = NULL, *best = NULL;
    for (Expr *m = e; m; m = p->peer[m->id]) {
        const char *name = arena_printf(p->arena, "r%d", p->temps++);
        p->name[m->id] = name;
        if (m == e) acc = name;
        if (m == e && use_lanes(p, e)) { emit_lanes(p, e, acc, depth); return; }
        line(p, depth);
        if (is_arg(m->rop)) {
            best = arena_printf(p->arena, "%sx", name);
            text_printf(p->out, "%s %s = 0;\n", p->d->type(m->a[0]->dtype), best);
            line(p, depth);
            text_printf(p->out, "%s %s = -1;\n", p->d->type(m->dtype), name);
        } else text_printf(p->out, "%s %s = %s;\n", p->d->type(m->dtype), name, identity(p, m));
    }
    if (e->n_axes && unrolls(p, e)) emit_unrolled(p, e, depth);
    else if (e->n_axes) {
        open_loop(p, e->axes[0], depth);
        reduce_body(p, e, 0, depth + 1, is_arg(e->rop) ? best : acc, acc);
        close_loop(p, depth);
    } else if (is_arg(e->rop)) combine_arg(p, e, best, acc, depth);
    else accumulate(p, e, e->a[0], acc, depth);
    if (is_teamwork(p, e)) emit_gather(p, e, depth);
}

// ---------------------------------------------------------------- scopes
static void emit_stores(Printer *p, int depth) {
    for (int i = 0; i < p->k->stores.n; i++) {
        const Store *s = &p->k->stores.at[i];
        const char *index = operand(p, s->index), *value = operand(p, s->expr);
        line(p, depth);
        if (p->d->store_if) text_printf(p->out, "if (%s) ", p->d->store_if);
        if (s->guard) text_printf(p->out, "if (%s) ", operand(p, s->guard));
        p->d->store(p->d->ctx, p->out, s, index, value);
        text_printf(p->out, "\n");
    }
}

// ---------------------------------------------------------------- strips
// Some points of the innermost parallel axis at a time (16 in the sketch): the reductions' loops stand outside, a loop over the points inside, so that the
// C compiler makes a vector of it: windows, contractions as plain loops, sums along outer axes.
//
//   for (i2b = 0; i2b < 48; i2b += 16) {
//       float r0l[16];
//       for (i2l = 0; i2l < 16; i2l++) r0l[i2l] = 0.0f;
//       for (i3 = 0; i3 < 3; i3++)
//           for (i2l = 0; i2l < 16; i2l++) { const ptrdiff_t i2 = i2b + i2l; r0l[i2l] += x[i3 * 55 + i2]; }
//       for (i2l = 0; i2l < 16; i2l++) { const ptrdiff_t i2 = i2b + i2l; y[i2] = r0l[i2l]; }
//   }
enum { MIN_STRIP = 4, MAX_STRIP = 64, MAX_STRIP_SUM = 1024, SUM_BLOCK = 256 };          // terms of a plain sum that may go one after the other, for its rounding; more go in blocks

typedef struct Reads { const Printer *p; int axis, inner; bool *seen, good; } Reads;

// Do the loads below e lie along the axis rather than along the reduction's innermost one?
static void judge_reads(Reads *r, const Expr *e) {
    Dim coef[64], c0;
    if (!e || r->seen[e->id] || !r->good) return;
    r->seen[e->id] = true;
    if (e->op == E_Reduce) { r->good = r->p->scope_of[e->id] <= r->p->last_parallel; return; }         // named by then, if it is no part of this one
    if (e->op == E_Load) {
        r->good = expr_affine_sizes(e->a[0], r->p->d->graph, r->p->k->axes.n, coef, &c0);
        Dim step = r->good ? coef[r->axis] : -1, along = r->good && r->inner >= 0 ? coef[r->inner] : 0;
        bool row = along == 1 && step != 1 && r->p->k->axes.at[r->inner].extent >= MIN_LANES_EXTENT;
        r->good = r->good && step >= 0 && step <= 2 && !row;
    }
    for (int i = 0; i < 3; i++) judge_reads(r, e->a[i]);
}

static bool is_plain_sum(const Expr *e) { return e->rop == RED_SUM && dtype_is_float(e->dtype) && e->a[0]->op != E_Mul; }

static double count_terms(const Printer *p, const Expr *e) {
    double terms = 1;
    for (int k = 0; k < e->n_axes; k++) terms *= (double)p->k->axes.at[e->axes[k]].extent;
    return terms;
}

// Is some load below e guarded by what the strip's axis has no part in? Its lanes are then all read or all left out.
static bool guarded_apart(const Expr *e, int axis, bool *seen) {
    if (!e || seen[e->id]) return false;
    seen[e->id] = true;
    if (e->op == E_Load && e->a[1] && !(e->a[1]->axes_used >> axis & 1)) return true;
    return guarded_apart(e->a[0], axis, seen) || guarded_apart(e->a[1], axis, seen) || guarded_apart(e->a[2], axis, seen);
}

static bool strip_pays(const Printer *p, int scope) {
    int axis = p->scopes.at[scope].axis, found = 0;
    if (!p->d->lanes || p->shared[axis] || p->k->axes.at[axis].extent < MIN_STRIP) return false;
    for (int s = scope + 1; s <= p->last_parallel; s++)
        if (p->k->axes.at[p->scopes.at[s].axis].size != 1) return false;
    for (int i = 0; i < p->exprs.n; i++) {
        const Expr *e = p->exprs.at[i];
        if (e->op != E_Reduce || p->scope_of[e->id] < scope) continue;
        if (p->scope_of[e->id] > p->last_parallel || is_arg(e->rop) || !e->n_axes) return false;
        if (unrolls(p, e) && !guarded_apart(e->a[0], axis, NEW_ARRAY(p->arena, bool, expr_count(p->k->exprs) + 1))) return false;
        if (is_plain_sum(e) && count_terms(p, e) > MAX_STRIP_SUM && (e->n_axes > 1 || p->peer[e->id] || p->follows[e->id])) return false;
        Reads r = { p, axis, e->axes[e->n_axes - 1], NEW_ARRAY(p->arena, bool, expr_count(p->k->exprs) + 1), true };
        judge_reads(&r, e->a[0]);
        if (!r.good) return false;
        found++;
    }
    return found > 0;
}

// Points in a strip: several vectors, so that one's sums need not wait for their last step; one strip where they are few.
static int strip_width(Dim size) { return !dim_is_const(size) ? LANES : size < MAX_STRIP ? (int)size : MAX_STRIP; }

static void open_lanes(Printer *p, int axis, const char *count, int depth, bool element, bool chooses) {
    const char *i = p->axis_name[axis], *it = p->d->index_type;
    line(p, depth);
    text_printf(p->out, "%sfor (%s %sl = 0; %sl < %s; %sl++) {\n", chooses ? "BURN_LANES " : "", it, i, i, count, i);
    if (!element) return;
    line(p, depth + 1);
    text_printf(p->out, "const %s %s = %sb + %sl;\n", it, i, i, i);
}

static void declare_lanes(Printer *p, const Expr *e, const char *name, int axis, const char *count, int depth) {
    line(p, depth);
    text_printf(p->out, "%s %s[%d];\n", p->d->type(e->dtype), name, strip_width(p->k->axes.at[axis].size));
    open_lanes(p, axis, count, depth, false, false);
    line(p, depth + 1);
    text_printf(p->out, "%s[%sl] = %s;\n", name, p->axis_name[axis], identity(p, e));
    close_loop(p, depth);
}

// Defines what of e the strip's axis has no part in, before its lanes begin.
static void hoist(Printer *p, Expr *e, int axis, int depth) {
    if (!e || p->name[e->id] || is_leaf(e)) return;
    bool apart = !(e->axes_used >> axis & 1);
    for (int i = 0; i < 3; i++) hoist(p, e->a[i], axis, depth);
    if (!apart || plain_index(e)) return;
    define_temp(p, e, depth);
    VEC_PUSH(p->arena, p->hoisted, e);
}

static void forget_hoisted(Printer *p) {
    for (int i = 0; i < p->hoisted.n; i++) p->name[p->hoisted.at[i]->id] = NULL;
    p->hoisted.n = 0;
}

// The condition without which a term of e adds nothing, and that the strip's axis has no part in; NULL: none.
static Expr *term_condition(const Expr *e, int axis) {
    const Expr *x = e->a[0];
    bool load = x->op == E_Load && x->a[1], select = x->op == E_Select;
    Expr *cond = load ? x->a[1] : select ? x->a[0] : NULL, *otherwise = load || select ? x->a[2] : NULL;
    if (!cond || cond->axes_used >> axis & 1 || !dtype_is_float(x->dtype) || x->dtype != e->dtype) return NULL;
    if (otherwise && otherwise->op != E_Const) return NULL;
    double nothing = e->rop == RED_SUM ? 0 : e->rop == RED_MAX ? -1.0 / 0.0 : 1;
    return (otherwise ? otherwise->c.f : 0) == nothing ? cond : NULL;
}

// One term of e and its peers for all lanes.
static void strip_terms(Printer *p, Expr *e, int axis, const char *count, int depth) {
    Expr *cond = p->peer[e->id] ? NULL : term_condition(e, axis), *term = cond && e->a[0]->op == E_Select ? e->a[0]->a[1] : e->a[0];
    int inner = cond ? depth + 1 : depth;
    if (cond) hoist(p, cond, axis, depth);
    else for (Expr *m = e; m; m = p->peer[m->id]) hoist(p, m->a[0], axis, depth);
    if (cond) {
        line(p, depth);
        text_printf(p->out, "if (%s) {\n", operand(p, cond));
        hoist(p, term, axis, inner);
        p->certain = cond;
    }
    open_lanes(p, axis, count, inner, true, e->rop != RED_SUM);
    for (Expr *m = e; m; m = p->peer[m->id]) {
        Expr *x = m == e ? term : m->a[0];
        demand(p, x, inner + 1);
        accumulate(p, m, x, p->name[m->id], inner + 1);
    }
    close_fresh(p, inner);
    p->certain = NULL;
    if (cond) close_loop(p, depth);
    forget_hoisted(p);
}

// A long plain sum in blocks, each summed by itself.
static void strip_blocks(Printer *p, Expr *e, int axis, const char *count, int depth) {
    const char *i = p->axis_name[e->axes[0]], *it = p->d->index_type, *extent = extent_text(p, e->axes[0]), *total = p->name[e->id];
    const char *name = arena_printf(p->arena, "r%dp", p->temps++);
    line(p, depth);
    text_printf(p->out, "for (%s %sb = 0; %sb < %s; %sb += %d) {\n", it, i, i, extent, i, SUM_BLOCK);
    declare_lanes(p, e, name, axis, count, depth + 1);
    p->name[e->id] = arena_printf(p->arena, "%s[%sl]", name, p->axis_name[axis]);
    line(p, depth + 1);
    text_printf(p->out, "for (%s %s = %sb; %s < %sb + %d && %s < %s; %s++) {\n", it, i, i, i, i, SUM_BLOCK, i, extent, i);
    strip_terms(p, e, axis, count, depth + 2);
    close_loop(p, depth + 1);
    open_lanes(p, axis, count, depth + 1, false, false);
    line(p, depth + 2);
    text_printf(p->out, "%s += %s;\n", total, p->name[e->id]);
    close_loop(p, depth + 1);
    close_loop(p, depth);
    p->name[e->id] = total;
}

// Does cond hold for all of e's terms when it does for the first and the last? So it does where each comparison goes with one axis alone.
static bool holds_between(const Printer *p, const Expr *e, const Expr *cond) {
    int64_t coef[64], c0;
    uint64_t axes = 0;
    if (cond->op == E_And) return holds_between(p, e, cond->a[0]) && holds_between(p, e, cond->a[1]);
    for (int i = 0; i < e->n_axes; i++) axes += cond->axes_used >> e->axes[i] & 1;
    bool compares = (cond->op == E_Lt || cond->op == E_Le) && cond->a[0]->dtype == DT_INDEX;
    return compares && axes < 2 && expr_affine(cond->a[0], p->k->axes.n, coef, &c0) && expr_affine(cond->a[1], p->k->axes.n, coef, &c0);
}

// Where a few terms have a condition and all of them hold, as inside of an image: no loops and no array, sums stay in registers. Leaves an else open.
static void strip_inside(Printer *p, Expr *e, int axis, const char *count, int depth) {
    Expr *cond = term_condition(e, axis), *term = e->a[0]->op == E_Select ? e->a[0]->a[1] : e->a[0];
    const char *all = arena_printf(p->arena, "all%d", p->temps++), *sum = arena_printf(p->arena, "r%d", p->temps++);
    int64_t at[MAX_RANK] = { 0 };
    line(p, depth);
    text_printf(p->out, "bool %s = true;\n", all);
    for (int last = 0; last < 2; last++) {
        for (int i = 0; i < e->n_axes; i++) at[i] = last ? p->k->axes.at[e->axes[i]].size - 1 : 0;
        open_term(p, e, cond->axes_used, at, depth);
        hoist(p, cond, axis, depth + 1);
        line(p, depth + 1);
        text_printf(p->out, "%s = %s && %s;\n", all, all, operand(p, cond));
        forget_hoisted(p);
        close_loop(p, depth);
    }
    next_term(p, e, at);
    line(p, depth);
    text_printf(p->out, "if (%s) {\n", all);
    open_lanes(p, axis, count, depth + 1, true, e->rop != RED_SUM);
    line(p, depth + 2);
    text_printf(p->out, "%s %s = %s;\n", p->d->type(e->dtype), sum, identity(p, e));
    p->certain = cond;
    p->name[cond->id] = "true";                         // nobody asks
    do {
        open_term(p, e, term->axes_used, at, depth + 2);
        demand(p, term, depth + 3);
        accumulate(p, e, term, sum, depth + 3);
        close_fresh(p, depth + 2);
    } while (next_term(p, e, at));
    p->certain = NULL;
    p->name[cond->id] = NULL;
    line(p, depth + 2);
    text_printf(p->out, "%s = %s;\n", p->name[e->id], sum);
    close_loop(p, depth + 1);
    line(p, depth);
    text_printf(p->out, "} else {\n");
}

static void strip_reduce(Printer *p, Expr *e, int axis, const char *count, int depth) {
    for (Expr *m = e; m; m = p->peer[m->id]) {
        const char *name = arena_printf(p->arena, "r%dl", p->temps++);
        p->name[m->id] = arena_printf(p->arena, "%s[%sl]", name, p->axis_name[axis]);
        declare_lanes(p, m, name, axis, count, depth);
    }
    if (is_plain_sum(e) && !p->peer[e->id] && e->n_axes == 1 && count_terms(p, e) > MAX_STRIP_SUM) {
        strip_blocks(p, e, axis, count, depth);
        return;
    }
    const Expr *cond = !p->peer[e->id] && unrolls(p, e) ? term_condition(e, axis) : NULL;
    bool apart = cond && holds_between(p, e, cond);
    if (apart) strip_inside(p, e, axis, count, depth++);
    for (int i = 0; i < e->n_axes; i++) open_loop(p, e->axes[i], depth + i);
    strip_terms(p, e, axis, count, depth + e->n_axes);
    for (int i = e->n_axes - 1; i >= 0; i--) close_loop(p, depth + i);
    if (apart) close_loop(p, depth - 1);
}

static void strip_points(Printer *p, int scope, const char *count, int depth) {
    int axis = p->scopes.at[scope].axis;
    for (int i = 0; i < p->exprs.n; i++) {
        Expr *e = p->exprs.at[i];
        if (e->op == E_Reduce && p->scope_of[e->id] >= scope && !p->follows[e->id]) strip_reduce(p, e, axis, count, depth);
    }
    open_lanes(p, axis, count, depth, true, false);
    for (int i = 0; i < p->k->stores.n; i++) {
        const Store *s = &p->k->stores.at[i];
        demand(p, s->index, depth + 1);
        demand(p, s->guard, depth + 1);
        demand(p, s->expr, depth + 1);
    }
    emit_stores(p, depth + 1);
    close_fresh(p, depth);
    for (int i = 0; i < p->exprs.n; i++)
        if (p->scope_of[p->exprs.at[i]->id] >= scope) p->name[p->exprs.at[i]->id] = NULL;
}

static void emit_strips(Printer *p, int scope, int depth) {
    int axis = p->scopes.at[scope].axis, width = strip_width(p->k->axes.at[axis].size);
    bool ranged = is_ranged(p, axis);
    const char *i = p->axis_name[axis], *it = p->d->index_type, *extent = ranged ? p->d->last : extent_text(p, axis);
    const char *first = ranged ? p->d->first : "0";
    Dim size = p->k->axes.at[axis].size;
    bool fixed = dim_is_const(size) && !ranged;
    line(p, depth);
    text_printf(p->out, "for (%s %sb = %s; %sb + %d <= %s; %sb += %d) {\n", it, i, first, i, width, extent, i, width);
    strip_points(p, scope, arena_printf(p->arena, "%d", width), depth + 1);
    close_loop(p, depth);
    if (fixed && size % width == 0) return;
    line(p, depth);
    text_printf(p->out, "{\n");
    line(p, depth + 1);
    if (ranged) text_printf(p->out, "const %s %sb = %s + (%s - %s) / %d * %d;\n", it, i, first, extent, first, width, width);
    else text_printf(p->out, "const %s %sb = %s / %d * %d;\n", it, i, extent, width, width);
    strip_points(p, scope, fixed ? arena_printf(p->arena, "%d", (int)(size % width)) : arena_printf(p->arena, "%s - %sb", extent, i), depth + 1);
    close_loop(p, depth);
}

// ---------------------------------------------------------------- interiors
// Where conditions of loads fail only near the ends of the innermost parallel axis, those points have a loop of their own, and the others
// one without the conditions, which the C compiler makes vector code of.
//
//   for (i2 = 0; i2 < 192; i2 += i2 == 1 ? 189 : 1) { sum of (1 < i2 + i3 && i2 + i3 < 194 ? x[i2 + i3 - 2] : 0) }
//   for (i2 = 2; i2 < 190; i2++) { sum of x[i2 + i3 - 2] }
enum { MIN_INTERIOR = 16 };

// The points lo..hi-1 of the axis where e, a < of indices, is true whatever the reductions' axes are. False: none, or it is no such condition.
static bool true_within(const Printer *p, const Expr *e, int axis, int64_t *lo, int64_t *hi) {
    int64_t a[64] = { 0 }, b[64] = { 0 }, a0, b0, extent = p->k->axes.at[axis].extent;
    if (e->op != E_Lt || e->a[0]->dtype != DT_INDEX || !expr_affine(e->a[0], p->k->axes.n, a, &a0) || !expr_affine(e->a[1], p->k->axes.n, b, &b0)) return false;
    int64_t least = b0 - a0, slope = b[axis] - a[axis];     // e: slope * i + least > 0
    for (int i = 0; i < p->k->axes.n; i++) {
        int64_t c = b[i] - a[i];
        if (i == axis || c == 0) continue;
        if (!p->k->axes.at[i].reduce || !dim_is_const(p->k->axes.at[i].size)) return false;
        if (c < 0) least += c * (p->k->axes.at[i].extent - 1);
    }
    *lo = 0;
    *hi = extent;
    if (slope > 0 && least <= 0) *lo = -least / slope + 1;
    if (slope < 0) *hi = least <= 0 ? 0 : (least - 1) / -slope + 1;
    if (*hi > extent) *hi = extent;
    return slope != 0 && *lo < *hi;
}

// Prints the loop over the axis of `scope` as two and returns true, where that pays.
static bool emit_interior(Printer *p, int scope, int depth) {
    int axis = p->scopes.at[scope].axis;
    int64_t lo = 0, hi = p->k->axes.at[axis].extent, extent = hi, from, to;
    const char *i = p->axis_name[axis], *it = p->d->index_type;
    bool *holds = NEW_ARRAY(p->arena, bool, expr_count(p->k->exprs) + 1), found = false;
    if (!p->d->lanes || p->shared[axis] || is_ranged(p, axis) || !dim_is_const(p->k->axes.at[axis].size)) return false;
    for (int s = scope + 1; s <= p->last_parallel; s++)
        if (p->k->axes.at[p->scopes.at[s].axis].size != 1) return false;
    for (int n = 0; n < p->exprs.n; n++) {
        const Expr *e = p->exprs.at[n];
        if (e->op == E_And) holds[e->id] = holds[e->a[0]->id] && holds[e->a[1]->id];
        if (p->scope_of[e->id] < scope || !true_within(p, e, axis, &from, &to)) continue;
        from = from > lo ? from : lo;
        to = to < hi ? to : hi;
        if (to - from < MIN_INTERIOR || to - from < extent / 4 * 3) continue;
        lo = from;
        hi = to;
        holds[e->id] = found = true;
    }
    if (!found || (lo == 0 && hi == extent)) return false;
    line(p, depth);
    if (lo == 0) text_printf(p->out, "for (%s %s = %lld; %s < %lld; %s++) {\n", it, i, (long long)hi, i, (long long)extent, i);
    else if (hi == extent) text_printf(p->out, "for (%s %s = 0; %s < %lld; %s++) {\n", it, i, i, (long long)lo, i);
    else text_printf(p->out, "for (%s %s = 0; %s < %lld; %s += %s == %lld ? %lld : 1) {\n", it, i, i, (long long)extent, i, i, (long long)lo - 1, (long long)(hi - lo + 1));
    emit_scope(p, scope, depth + 1);
    close_loop(p, depth);
    for (int n = 0; n < p->exprs.n; n++) {
        int id = p->exprs.at[n]->id;
        if (p->scope_of[id] >= scope) p->name[id] = NULL;
        p->holds[id] = holds[id];
    }
    line(p, depth);
    text_printf(p->out, "for (%s %s = %lld; %s < %lld; %s++) {\n", it, i, (long long)lo, i, (long long)hi, i);
    emit_scope(p, scope, depth + 1);
    close_loop(p, depth);
    for (int n = 0; n < p->exprs.n; n++) p->holds[p->exprs.at[n]->id] = false;
    return true;
}

// ---------------------------------------------------------------- turned blocks
// Where memory is read along one axis and written along the other, blocks of 16 x 16 are turned on the way, so that both sides go in lines.
//
//   for (i0b = 0; i0b < 64; i0b += 16)
//       for (i1b = 0; i1b < 3136; i1b += 16) {
//           float x0[256];
//           { const ptrdiff_t i0 = i0b, i1 = i1b; burn_turn(x0, &x[i1 * 64 + i0], 64, 16, 16); }
//           for (i0 ..) for (i1 ..) y[i0 * 3136 + i1] = x0[(i0 - i0b) * 16 + i1 - i1b];
//       }
enum { TURN = 16, MIN_TURN = 8, MAX_TURNED = 3 };

// The next parallel scope below `scope` whose axis is longer than 1; -1: none.
static int scope_below(const Printer *p, int scope) {
    for (int s = scope + 1; s <= p->last_parallel; s++)
        if (p->k->axes.at[p->scopes.at[s].axis].size != 1) return s;
    return -1;
}

// Floats that lie along axis a and far apart along b, everything else along b: the number of such loads; 0: it does not pay.
static int find_turned(const Printer *p, int a, int b, Expr **loads) {
    int n = 0;
    Dim coef[64], c0;
    for (int i = 0; i < p->exprs.n; i++) {
        Expr *e = p->exprs.at[i];
        bool inner = e->axes_used >> a & 1 || e->axes_used >> b & 1;
        if (e->op == E_Reduce && (inner || p->scope_of[e->id] > p->axis_scope[a])) return 0;
        if (e->op != E_Load || !inner) continue;
        if (e->a[1] || !expr_affine_sizes(e->a[0], p->d->graph, p->k->axes.n, coef, &c0)) return 0;
        if (coef[b] == 0 || coef[b] == 1) continue;
        if (coef[a] != 1 || e->dtype != DT_F32 || n == MAX_TURNED) return 0;
        loads[n++] = e;
    }
    for (int i = 0; i < p->k->stores.n; i++) {
        const Store *s = &p->k->stores.at[i];
        if (s->guard || !expr_affine_sizes(s->index, p->d->graph, p->k->axes.n, coef, &c0) || coef[b] != 1) return 0;
    }
    return n;
}

static void open_blocks(Printer *p, int axis, int depth) {
    const char *i = p->axis_name[axis], *it = p->d->index_type, *extent = is_ranged(p, axis) ? p->d->last : extent_text(p, axis);
    line(p, depth);
    text_printf(p->out, "for (%s %sb = %s; %sb < %s; %sb += %d) {\n", it, i, is_ranged(p, axis) ? p->d->first : "0", i, extent, i, TURN);
    line(p, depth + 1);
    text_printf(p->out, "const %s %sn = %s - %sb < %d ? %s - %sb : %d;\n", it, i, extent, i, TURN, extent, i, TURN);
}

static bool emit_turned(Printer *p, int scope, int depth) {
    int below = scope_below(p, scope), axis[2] = { p->scopes.at[scope].axis, below < 0 ? -1 : p->scopes.at[below].axis };
    Expr *loads[MAX_TURNED];
    Dim coef[64], c0;
    if (!p->d->lanes || below < 0 || scope_below(p, below) >= 0) return false;
    for (int k = 0; k < 2; k++)
        if (p->shared[axis[k]] || p->k->axes.at[axis[k]].extent < MIN_TURN) return false;
    const char *i = p->axis_name[axis[0]], *j = p->axis_name[axis[1]], *it = p->d->index_type;
    int n = find_turned(p, axis[0], axis[1], loads);
    if (!n) return false;
    open_blocks(p, axis[0], depth);
    open_blocks(p, axis[1], depth + 1);
    for (int k = 0; k < n; k++) {
        const char *name = arena_printf(p->arena, "x%d", p->temps++);
        expr_affine_sizes(loads[k]->a[0], p->d->graph, p->k->axes.n, coef, &c0);
        line(p, depth + 2); text_printf(p->out, "float %s[%d];\n", name, TURN * TURN);
        line(p, depth + 2); text_printf(p->out, "{\n");
        line(p, depth + 3); text_printf(p->out, "const %s %s = %sb, %s = %sb;\n", it, i, i, j, j);
        line(p, depth + 3); text_printf(p->out, "burn_turn(%s, &%s, %s, %sn, %sn);\n", name, spell(p, loads[k]), dim_c_text(p->arena, p->d->graph, coef[axis[1]]), i, j);
        close_loop(p, depth + 2);
        p->name[loads[k]->id] = arena_printf(p->arena, "%s[(%s - %sb) * %d + %s - %sb]", name, i, i, TURN, j, j);
    }
    for (int k = 0; k < 2; k++) {
        const char *x = p->axis_name[axis[k]];
        line(p, depth + 2 + k);
        text_printf(p->out, "for (%s %s = %sb; %s < %sb + %sn; %s++) {\n", it, x, x, x, x, x, x);
    }
    for (int k = 0; k < p->k->stores.n; k++) {
        demand(p, p->k->stores.at[k].index, depth + 4);
        demand(p, p->k->stores.at[k].expr, depth + 4);
    }
    emit_stores(p, depth + 4);
    close_fresh(p, depth + 3);
    for (int k = 2; k >= 0; k--) close_loop(p, depth + k);
    for (int k = 0; k < n; k++) p->name[loads[k]->id] = NULL;
    return true;
}

static void emit_scope(Printer *p, int scope, int depth) {
    for (int i = 0; i < p->exprs.n; i++) {
        Expr *e = p->exprs.at[i];
        if (p->scope_of[e->id] != scope || !p->is_temp[e->id] || p->holds[e->id]) continue;
        if (p->follows[e->id]) continue;
        if (e->op == E_Reduce) emit_reduce(p, e, depth);
        else define_temp(p, e, depth);
    }
    if (p->scopes.at[scope].reduce) return;
    if (scope == p->last_parallel) { emit_stores(p, depth); return; }
    int next = scope + 1, axis = p->scopes.at[next].axis;
    if (p->k->axes.at[axis].size == 1) { emit_scope(p, next, depth); return; }
    if (strip_pays(p, next)) { emit_strips(p, next, depth); return; }
    if (emit_turned(p, next, depth)) return;
    if (emit_interior(p, next, depth)) return;
    open_loop(p, axis, depth);
    emit_scope(p, next, depth + 1);
    close_loop(p, depth);
}

static void printer_init(Printer *p, Arena *a, Text *out, const Kernel *k, const Dialect *d, int bound) {
    size_t n = (size_t)expr_count(k->exprs) + 1;
    *p = (Printer){ .arena = a, .k = k, .d = d, .out = out, .bound = bound };
    p->uses = NEW_ARRAY(a, int, n);
    p->scope_of = NEW_ARRAY(a, int, n);
    p->seen = NEW_ARRAY(a, bool, n);
    p->deeper = NEW_ARRAY(a, bool, n);
    p->is_temp = NEW_ARRAY(a, bool, n);
    p->holds = NEW_ARRAY(a, bool, n);
    p->name = NEW_ARRAY(a, const char *, n);
    p->peer = NEW_ARRAY(a, Expr *, n);
    p->follows = NEW_ARRAY(a, bool, n);
    for (int i = 0; i < k->axes.n && i < 64; i++) p->axis_name[i] = arena_printf(a, "i%d", i);
}

static void analyse(Printer *p) {
    for (int i = 0; i < p->k->stores.n; i++) {
        collect(p, p->k->stores.at[i].index);
        collect(p, p->k->stores.at[i].guard);
        collect(p, p->k->stores.at[i].expr);
    }
    qsort(p->exprs.at, (size_t)p->exprs.n, sizeof *p->exprs.at, by_id);
    build_scopes(p);
}

void loops_print(Arena *a, Text *out, const Kernel *k, const Dialect *d, int bound, int depth) {
    Printer p;
    printer_init(&p, a, out, k, d, bound);
    analyse(&p);
    choose_temps(&p);
    choose_shared(&p);
    emit_scope(&p, bound, depth);
}

int loops_outer_axes(const Kernel *k) {
    Printer p;
    Arena *a = arena_new();
    printer_init(&p, a, NULL, k, NULL, 0);
    analyse(&p);
    int outer = k->n_parallel;
    for (int i = 0; i < p.exprs.n; i++) {
        const Expr *e = p.exprs.at[i];
        if (e->op == E_Reduce && p.scope_of[e->id] < outer) outer = p.scope_of[e->id];
    }
    arena_free(a);
    return outer;
}
