// SPDX-License-Identifier: MIT OR Apache-2.0
// Scalar maps: OP_Map, every row of maps.def, and Cast.
//
// In: a node whose inputs broadcast against each other. The idea: everything follows from the node's expression
// (node_expr): its dtype is the output's, the evaluator runs it over blocks of elements, lowering substitutes loads
// for its arguments, and the gradient is its derivative, again a map, summed over the axes along which the input was
// broadcast.
#include "common.h"
#include "ir/expr.h"
#include "table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// ---------------------------------------------------------------- a node's expression

enum { MAX_BINDINGS = 16 };                     // arguments and attributes of a row of maps.def
typedef struct Bindings { int n; const char *name[MAX_BINDINGS]; Expr *bound[MAX_BINDINGS]; } Bindings;

// The next word of *s up to a space or `stop`; NULL at the end.
static const char *next_word(Arena *a, const char **s, char stop) {
    while (**s == ' ') ++*s;
    const char *start = *s;
    while (**s && **s != ' ' && **s != stop) ++*s;
    return *s == start ? NULL : arena_strndup(a, start, (size_t)(*s - start));
}

static void bind(Bindings *b, const char *name, Expr *e) {
    if (b->n == MAX_BINDINGS) bug("more than %d names in a row of maps.def", MAX_BINDINGS);
    b->name[b->n] = name;
    b->bound[b->n++] = e;
}

// Attributes are constants of the arguments' dtype: the node's value or the row's default.
static void bind_attributes(Arena *a, Bindings *b, const Node *n, DType d) {
    const char *s = op_table[n->op].attrs, *name;
    while ((name = next_word(a, &s, '='))) {
        double otherwise = strtod(s + 1, NULL), v = node_float(n, name, otherwise);
        while (*s && *s != ' ') s++;
        if (d == DT_BOOL) continue;
        bind(b, name,
            dtype_is_float(d) ? expr_const_f(n->graph->exprs, d, v) :
                                expr_const_i(n->graph->exprs, d,
                                    fabs(v) < 0x1p63 ? (int64_t)v :
                                        v > 0        ? INT64_MAX :
                                                       INT64_MIN));
    }
}

static Expr *parse_row(const Node *n, const char **error) {
    const OpInfo *info = &op_table[n->op];
    const char *s = info->args, *name;
    Bindings b = { .n = 0 };
    DType d = DT_NONE;
    // a row's expression of arguments of these types, where no attribute is in it
    Expr **memo = *info->attrs ? NULL :
                                 expr_memo(n->graph->exprs, (int)n->op, n->in[0]->type.dtype,
                                     n->in[n->n_in - 1]->type.dtype);
    if (memo && *memo) return *memo;
    Arena *scratch = arena_new();
    for (int i = 0; i < n->n_in && (name = next_word(scratch, &s, ' ')); i++) {
        bind(&b, name, expr_arg(n->graph->exprs, i, n->in[i]->type.dtype));
        if (strcmp(name, "c") != 0) d = n->in[i]->type.dtype;
    }
    bind_attributes(scratch, &b, n, d);
    Expr *e = expr_parse(n->graph->exprs, info->expr, b.n, b.name, b.bound, d, error);
    arena_free(scratch);
    if (memo) *memo = e;
    return e;
}

Expr *node_expr(const Node *n) {
    const char *error = NULL;
    if (n->expr) return n->expr;
    if (op_table[n->op].kind != KIND_MAP) bug("%s has no expression", op_table[n->op].name);
    Expr *e = parse_row(n, &error);
    if (!e) bug("%s: %s", op_table[n->op].name, error);
    return e;
}

// ---------------------------------------------------------------- shape

// The arguments of a map share a dtype; the condition of Where is bool.
static bool check_dtypes(Node *n) {
    const OpInfo *info = &op_table[n->op];
    int first = info->kind == KIND_MAP && info->args[0] == 'c' ? 1 : 0;
    if (first == 1 && n->in[0]->type.dtype != DT_BOOL) {
        diag_error(n->loc, "%s wants a bool condition, not %s", info->name, value_type_text(n->in[0]));
        return false;
    }
    for (int i = 0; i < n->n_in; i++) {
        DClass class = dtype_class(n->in[i]->type.dtype);
        // what any element allows; arithmetic is for numbers
        bool moved = n->op == OP_Where || n->op == OP_Equal || n->op == OP_Map;
        if (((class == CLASS_COMPLEX || class == CLASS_STRING) && !moved) || class == CLASS_NONE) {
            diag_error(n->loc, "%s wants numbers or bools, input %d is %s", info->name, i, value_type_text(n->in[i]));
            return false;
        }
        if (i > first && info->kind == KIND_MAP && n->in[i]->type.dtype != n->in[first]->type.dtype) {
            diag_error(n->loc, "%s wants inputs of one type, has %s and %s", info->name, value_type_text(n->in[first]),
                value_type_text(n->in[i]));
            return false;
        }
    }
    return true;
}

// OP_Map: arguments are numbered and typed as the inputs are.
static bool check_args(Node *n) {
    ExprOrder o;
    bool ok = true;
    order_make(&o, n->expr);
    for (int i = 0; i < o.n && ok; i++) {
        const Expr *e = o.at[i];
        if (e->op != E_Arg) continue;
        ok = e->c.i < n->n_in && n->in[e->c.i]->type.dtype == e->dtype;
        if (!ok)
            diag_error(n->loc, "argument %d of the expression is %s; there are %d inputs", (int)e->c.i,
                dtype_name(e->dtype), n->n_in);
    }
    order_free(&o);
    return ok;
}

bool shape_map(Node *n) {
    const OpInfo *info = &op_table[n->op];
    const char *error = NULL;
    for (int i = 0; i < n->n_in; i++)
        if (!n->in[i]) {
            diag_error(n->loc, "input %d is absent", i);
            return false;
        }
    if (info->kind == KIND_MAP && n->n_in != info->in_min) {
        diag_error(n->loc, "%s wants %d inputs, has %d", info->name, info->in_min, n->n_in);
        return false;
    }
    if (n->op == OP_Map && !n->expr) bug("a map without an expression");
    if (!check_dtypes(n) || (n->expr && !check_args(n))) return false;
    Type t = n->n_in ? n->in[0]->type : type_make(DT_NONE, 0, NULL);
    for (int i = 1; i < n->n_in; i++) {
        if (dims_broadcast(n, &t, &t, &n->in[i]->type)) continue;
        diag_error(n->loc, "shapes do not broadcast: %s and %s", type_text(n->graph->arena, n->graph, &t),
            value_type_text(n->in[i]));
        return false;
    }
    Expr *e = n->expr ? n->expr : parse_row(n, &error);
    if (!e) {
        diag_error(n->loc, "%s is not defined for %s: %s", info->name, value_type_text(n->in[n->n_in - 1]), error);
        return false;
    }
    t.dtype = e->dtype;
    n->out[0]->type = t;
    return true;
}

// ---------------------------------------------------------------- evaluation
// The expression's postorder, run over blocks of elements.

enum { BLOCK = 256 };
// value[node][width], offset[input][width]; width: BLOCK, or all elements where they are fewer
typedef struct Blocks { ExprOrder o; size_t width; Scalar *value; int64_t *offset; } Blocks;

static void run_operation(const Blocks *g, int i, int count) {
    const Expr *e = g->o.at[i];
    const int *a = g->o.arg[i];
    const size_t width = g->width;
    Scalar *v = &g->value[(size_t)i * width];
    const Scalar *x = &g->value[(size_t)a[0] * width], *y = &g->value[(size_t)(a[1] >= 0 ? a[1] : a[0]) * width];
    DType d = e->a[0]->dtype;
    if (e->op == E_Select) {
        const Scalar *z = &g->value[(size_t)a[2] * width];
        for (int k = 0; k < count; k++) v[k] = x[k].i ? y[k] : z[k];
    } else if (e->op == E_Cast) {
        for (int k = 0; k < count; k++) v[k] = eval_cast_scalar(d, e->dtype, e->c.i != 0, x[k]);
    } else if (e->op == E_Bits) {
        for (int k = 0; k < count; k++) v[k] = eval_bits(d, e->dtype, x[k]);
    } else if (d == DT_F32 && e->op == E_Add) {
        for (int k = 0; k < count; k++) v[k].f = (double)(float)(x[k].f + y[k].f);
    } else if (d == DT_F32 && e->op == E_Mul) {
        for (int k = 0; k < count; k++) v[k].f = (double)(float)(x[k].f * y[k].f);
    } else {
        for (int k = 0; k < count; k++) v[k] = eval_op(e->op, d, x[k], y[k]);
    }
}

static void load_block(const Tensor *t, const int64_t *at, Scalar *v, int count) {
    if (t->type.dtype == DT_F32) {
        const char *data = t->data;             // mapped from a file it need not be aligned
        float f;
        for (int k = 0; k < count; k++) memcpy(&f, data + 4 * at[k], 4), v[k].f = (double)f;
    } else {
        for (int k = 0; k < count; k++) v[k] = element_get(t, at[k]);
    }
}

static void run_block(const Blocks *g, Tensor *const *in, int count) {
    for (int i = 0; i < g->o.n; i++) {
        const Expr *e = g->o.at[i];
        Scalar *v = &g->value[(size_t)i * g->width];
        if (e->op == E_Const) {
            for (int k = 0; k < count; k++) v[k] = e->c;
        } else if (e->op == E_Arg) {
            const int64_t *at = &g->offset[(size_t)e->c.i * g->width];
            load_block(in[e->c.i], at, v, count);
        } else {
            run_operation(g, i, count);
        }
    }
}

// Strides of an input over the output's axes: 0 where it is broadcast.
static void broadcast_strides(const Type *in, const Type *out, int64_t *stride) {
    int64_t own[MAX_RANK];
    int lead = out->rank - in->rank;
    type_strides(in, own);
    for (int i = 0; i < out->rank; i++) stride[i] = i < lead || in->dim[i - lead] == 1 ? 0 : own[i - lead];
}

// Where the elements of a block lie in one input: the odometer of the output, over that input's strides.
typedef struct Cursor { int64_t idx[MAX_RANK], stride[MAX_RANK], at; } Cursor;

static void cursor_block(Cursor *w, const Type *t, int64_t *offset, int count) {
    for (int k = 0; k < count; k++) {
        offset[k] = w->at;
        for (int d = t->rank - 1; d >= 0; d--) {
            w->at += w->stride[d];
            if (++w->idx[d] < t->dim[d]) break;
            w->at -= w->stride[d] * t->dim[d];
            w->idx[d] = 0;
        }
    }
}

// Larger than a Scalar: left to the program.
static bool has_complex(const ExprOrder *o) {
    for (int i = 0; i < o->n; i++)
        if (dtype_class(o->at[i]->dtype) == CLASS_COMPLEX) return true;
    return false;
}

bool eval_map(const Node *n, Tensor *const *in, Tensor *const *out) {
    const Type *t = &out[0]->type;
    int64_t count = type_count(t);
    Blocks g = { .width = count < BLOCK ? (size_t)count : BLOCK };
    order_make(&g.o, node_expr(n));
    if (has_complex(&g.o)) {
        order_free(&g.o);
        return false;
    }
    g.value = scratch_new((size_t)g.o.n * g.width, sizeof *g.value);
    g.offset = scratch_new((size_t)(n->n_in + 1) * g.width, sizeof *g.offset);
    Cursor *cursors = scratch_new((size_t)n->n_in + 1, sizeof *cursors);
    for (int i = 0; i < n->n_in; i++) {
        cursors[i] = (Cursor){ .at = 0 };
        broadcast_strides(&in[i]->type, t, cursors[i].stride);
    }
    for (int64_t done = 0; done < count; done += BLOCK) {
        int block = count - done < BLOCK ? (int)(count - done) : BLOCK;
        for (int i = 0; i < n->n_in; i++) cursor_block(&cursors[i], t, &g.offset[(size_t)i * g.width], block);
        run_block(&g, in, block);
        const Scalar *result = &g.value[(size_t)(g.o.n - 1) * g.width];
        for (int k = 0; k < block; k++) element_set(out[0], done + k, result[k]);
    }
    free(cursors), free(g.value), free(g.offset);
    order_free(&g.o);
    return true;
}

// ---------------------------------------------------------------- gradient

// Renumbers the arguments of an expression by first use; the subexpression `result`, when met, becomes the last of
// `all`.
typedef struct Operands {
    Expr *result;
    Value *all[64], *used[64];
    int number[64];
    int n_all, n_used;
    ExprPool *p;
} Operands;

static Expr *renumber(void *ctx, Expr *e) {
    Operands *o = ctx;
    int i = e == o->result ? o->n_all - 1 : e->op == E_Arg ? (int)e->c.i : -1;
    if (i < 0) return NULL;
    if (o->number[i] < 0) {
        o->number[i] = o->n_used;
        o->used[o->n_used++] = o->all[i];
    }
    return expr_arg(o->p, o->number[i], o->all[i]->type.dtype);
}

// A map of n's inputs, dy and n's output: where e computes the forward result again, that output is read instead
// (forward NULL: nowhere), and only the operands that are left are kept.
static Value *gradient_map(Node *n, Expr *e, Expr *forward, Value *dy) {
    Graph *g = n->graph;
    Operands o = { .result = forward && forward->a[0] ? forward : NULL, .n_all = n->n_in + 2, .p = g->exprs };
    for (int i = 0; i < o.n_all; i++) {
        o.all[i] = i < n->n_in ? n->in[i] : i == n->n_in ? dy : n->out[0];
        o.number[i] = -1;
    }
    Expr *whole = expr_rebuild(g->exprs, e, renumber, &o);
    ExprOrder order;                            // what is left once the forward result is an input
    Operands final = { .n_all = o.n_used, .p = g->exprs };
    bool needed[64] = { false };
    order_make(&order, whole);
    for (int i = 0; i < order.n; i++)
        if (order.at[i]->op == E_Arg) needed[order.at[i]->c.i] = true;
    order_free(&order);
    for (int i = 0; i < o.n_used; i++) {
        final.all[i] = o.used[i];
        final.number[i] = -1;
        if (!needed[i]) continue;
        final.number[i] = final.n_used;
        final.used[final.n_used++] = o.used[i];
    }
    Node *m = graph_node(g, OP_Map, final.n_used, final.used, 1);
    m->expr = expr_rebuild(g->exprs, whole, renumber, &final);
    return b_finish(m);
}

// Is the derivative d by input i, whose type is to, the same for all elements that are summed for the input: does it
// read nothing that varies along an axis where the input is broadcast?
static bool sums_first(const Node *n, const Expr *d, const Type *to) {
    const Type *y = &n->out[0]->type;
    ExprOrder order;
    bool same = true, summed = false;
    order_make(&order, d);
    for (int axis = 0; axis < y->rank; axis++) {
        int at = axis - y->rank + to->rank;
        if ((at >= 0 && to->dim[at] != 1) || y->dim[axis] == 1) continue;
        summed = true;
        for (int k = 0; k < order.n && same; k++) {
            if (order.at[k]->op != E_Arg) continue;
            const Type *t = &n->in[order.at[k]->c.i]->type;
            int j = axis - y->rank + t->rank;
            same = j < 0 || t->dim[j] == 1;
        }
    }
    order_free(&order);
    return same && summed;
}

bool grad_map(Node *n, Value *const *dout, Value **din) {
    Graph *g = n->graph;
    ExprPool *p = g->exprs;
    Expr *e = node_expr(n);
    if (!dout[0] || !dtype_is_float(e->dtype)) return true;
    if (n->n_in > 62) {
        diag_error(n->loc, "no gradient of a map with %d inputs", n->n_in);
        return false;
    }
    Expr *dy = expr_arg(p, n->n_in, e->dtype);
    for (int i = 0; i < n->n_in; i++) {
        if (!dtype_is_float(n->in[i]->type.dtype)) continue;
        Expr *d = expr_diff(p, e, i);
        if (const_is(d, 0)) continue;
        const Type *to = &n->in[i]->type;
        Expr *product = expr_chain(p, d, dy);
        bool first = sums_first(n, d, to);              // a factor of the whole sum, which others may want as well
        Value *v = first ? b_sum_to(g, dout[0], to) : dout[0];
        if (product != dy) v = gradient_map(n, product, first ? NULL : e, v);
        din[i] = b_cast(g, b_sum_to(g, v, to), to->dtype);
        if (!din[i]) return false;
    }
    return true;
}

// ---------------------------------------------------------------- lowering

Expr *lower_map(Lower *l, Node *n, int out, Expr *const *idx) {
    int rank = n->out[out]->type.rank;
    Expr **args = NEW_ARRAY(n->graph->arena, Expr *, n->n_in + 1), *zero = expr_index(l->p, 0);
    for (int i = 0; i < n->n_in; i++) {
        const Type *t = &n->in[i]->type;
        Expr *at[MAX_RANK];
        for (int k = 0; k < t->rank; k++) at[k] = t->dim[k] == 1 ? zero : idx[rank - t->rank + k];
        args[i] = lower_load(l, n->in[i], at);
    }
    return expr_subst(l->p, node_expr(n), args);
}

// ---------------------------------------------------------------- Cast

static bool saturates(const Node *n) { return node_int(n, "saturate", 1) != 0; }

bool shape_cast(Node *n) {
    DType to = (DType)node_int(n, "to", DT_NONE);
    if (n->in[0]->type.dtype != DT_BOOL && !op_numeric(n, n->in[0])) return false;
    DClass class = to > DT_NONE && to < DT_INDEX ? dtype_class(to) : CLASS_NONE;
    if (class == CLASS_NONE || class == CLASS_STRING || class == CLASS_COMPLEX) {
        diag_error(n->loc, "no casts to %s%s", to > DT_NONE && to < DT_INDEX ? dtype_name(to) : "an unknown type",
            class == CLASS_COMPLEX ? "; give real and imaginary parts as tensors of their own" : "");
        return false;
    }
    n->out[0]->type = n->in[0]->type;
    n->out[0]->type.dtype = to;
    return true;
}

bool eval_cast(const Node *n, Tensor *const *in, Tensor *const *out) {
    DType from = in[0]->type.dtype, to = out[0]->type.dtype;
    int64_t count = type_count(&out[0]->type);
    // may hold the infinity that element_set would saturate
    bool byte_float = dtype_is_small_float(to) && dtype_size(to) == 1;
    for (int64_t i = 0; i < count; i++) {
        Scalar v = eval_cast_scalar(from, to, !saturates(n), element_get(in[0], i));
        if (byte_float) ((uint8_t *)out[0]->data)[i] = (uint8_t)small_from_float(to, (float)v.f, saturates(n));
        else element_set(out[0], i, v);
    }
    return true;
}

bool grad_cast(Node *n, Value *const *dout, Value **din) {
    if (!dout[0] || !dtype_is_float(n->in[0]->type.dtype)) return true;
    din[0] = b_cast(n->graph, dout[0], n->in[0]->type.dtype);
    return din[0] != NULL;
}

Expr *lower_cast(Lower *l, Node *n, int out, Expr *const *idx) {
    return expr_cast_to(l->p, lower_load(l, n->in[0], idx), n->out[out]->type.dtype, !saturates(n));
}
