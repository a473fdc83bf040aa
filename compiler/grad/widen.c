// SPDX-License-Identifier: MIT OR Apache-2.0
// The same graph in double precision. In: a graph as imported, or behind passes of CANON. Out: its floats (inputs,
// constants and all that is computed) are f64; its integers are as they were.
//
// The idea: inputs, constants, the element types that nodes name and the expressions of maps are changed, and the shape
// rules do the rest. What stays narrow by its rule (random numbers, which are to be the same) is cast. Roundings to 16
// bits go with the rest: the wide graph is smooth where the narrow one has steps.
#include "train.h"
#include "build/build.h"
#include "ir/expr.h"

static bool is_narrow(const Type *t) { return dtype_is_float(t->dtype) && t->dtype != DT_F64; }

static DType wide(DType d) { return dtype_is_float(d) ? DT_F64 : d; }

static void widen_constant(Value *v) {
    if (!v || !v->data || !is_narrow(&v->type)) return;
    Type type = v->type;
    type.dtype = DT_F64;
    Tensor *data = tensor_new(v->graph->arena, type);
    for (int64_t i = 0, n = type_count(&type); i < n; i++) tensor_set_f(data, i, tensor_get_f(v->data, i));
    v->data = data;
    v->type = type;
}

static Expr *widen_expr(ExprPool *p, Expr *e) {
    Expr *a[3];
    for (int i = 0; i < 3; i++) a[i] = e->a[i] ? widen_expr(p, e->a[i]) : NULL;
    switch (e->op) {
    case E_Arg: return expr_arg(p, (int)e->c.i, wide(e->dtype));
    case E_Const: return dtype_is_float(e->dtype) ? expr_const_f(p, DT_F64, e->c.f) : e;
    case E_Cast: return expr_cast(p, a[0], wide(e->dtype));
    case E_Select: return expr_select(p, a[0], a[1], a[2]);
    case E_Bits: return e;
    default: return a[1] ? expr_binary(p, e->op, a[0], a[1]) : a[0] ? expr_unary(p, e->op, a[0]) : e;
    }
}

// The element type that a node says it makes.
static void widen_attribute(Node *n) {
    const char *name = n->op == OP_Cast ? "to" : n->op == OP_Iota ? "dtype" : NULL;
    if (name) node_set_int(n, name, (int64_t)wide((DType)node_int(n, name, DT_I64)));
}

static bool widen_node(Graph *g, Node *n) {
    for (int i = 0; i < n->n_in; i++) widen_constant(n->in[i]);
    for (int i = 0; i < n->n_bodies; i++)
        if (!graph_widen(n->bodies[i])) return false;
    widen_attribute(n);
    if (n->expr) n->expr = widen_expr(g->exprs, n->expr);
    if (!node_infer(n)) return false;
    g->cursor = n->next;
    g->loc = n->loc;
    for (int i = 0; i < n->n_out; i++) {
        Value *v = n->out[i];
        v->folded = NULL;
        if (!is_narrow(&v->type)) continue;
        Value *cast = b_cast(g, v, DT_F64);
        if (!cast) return false;
        graph_replace(g, v, cast);
        cast->def->in[0] = v;
    }
    return true;
}

bool graph_widen(Graph *g) {
    for (int i = 0; i < g->inputs.n; i++) g->inputs.at[i]->type.dtype = wide(g->inputs.at[i]->type.dtype);
    bool ok = true;
    for (Node *n = g->first, *next; n && ok; n = next) {
        next = n->next;
        ok = widen_node(g, n);
    }
    g->cursor = NULL;
    g->loc = NULL;
    for (int i = 0; i < g->outputs.n; i++) widen_constant(g->outputs.at[i]);
    return ok;
}
