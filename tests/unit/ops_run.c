// SPDX-License-Identifier: MIT OR Apache-2.0
// Running the graphs of test_ops.c. In: a graph in text. Out: every value's tensor, from the evaluator; and an
// interpreter of lowerings, which must give the same, with no load outside its tensor.
#include "plan.h"
#include "ir/expr.h"
#include "ops/common.h"
#include "ops/table.h"
#include "passes/passes.h"
#include "schedule/schedule.h"

#include "ops_run.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

// ---------------------------------------------------------------- graphs
Graph *make_graph(Arena *a, const char *inputs, const char *body, const char *result) {
    char text[2048];
    snprintf(text, sizeof text, "graph t(%s) {\n %s\n return %s\n}\n", inputs, body, result);
    return graph_parse(a, text, "case");
}

static uint32_t next_random(void) {
    static uint32_t state = 1;
    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

double random_number(const char *name, bool real) {
    double u = (double)next_random() / (double)(1 << 24);
    if (!strcmp(name, "pos")) return 0.5 + u;
    if (!strncmp(name, "below", 5)) return floor((2 * u - 1) * atof(name + 5));
    return real ? 2 * u - 1 : floor(u * 12) - 4;
}

Tensor *tensor_of(const Run *r, const Value *v) { return !v ? NULL : v->data ? v->data : r->at[v->id]; }

void fill_inputs(Run *r) {
    for (int i = 0; i < r->g->inputs.n; i++) {
        Value *v = r->g->inputs.at[i];
        Tensor *t = r->at[v->id] = tensor_new(r->arena, v->type);
        for (int64_t k = 0; k < type_count(&v->type); k++) {
            double x = random_number(v->name ? v->name : "", dtype_is_float(v->type.dtype));
            element_set(t, k, dtype_is_float(v->type.dtype) ? (Scalar){ .f = x } : (Scalar){ .i = (int64_t)x });
        }
    }
}

// Bodies see the values around them through their memo.
static void show(const Run *r, bool yes) {
    for (int i = 0; i < r->g->inputs.n; i++) r->g->inputs.at[i]->folded = yes ? r->at[r->g->inputs.at[i]->id] : NULL;
    for (Node *n = r->g->first; n; n = n->next)
        for (int i = 0; i < n->n_out; i++) n->out[i]->folded = yes ? r->at[n->out[i]->id] : NULL;
}

// By what it expands into, of constants.
static void eval_composite(const Run *r, const Node *n, Tensor *const *in, Tensor *const *out) {
    Graph *g = graph_new(r->arena, "composite", NULL);
    Value *operands[32] = { 0 };
    for (int i = 0; i < n->n_in; i++)
        if (in[i]) operands[i] = graph_const(g, in[i], NULL);
    Node *copy = graph_node(g, n->op, n->n_in, operands, n->n_out);
    copy->attrs = n->attrs;
    copy->n_attrs = n->n_attrs;
    assert_true(node_infer(copy));
    for (int i = 0; i < n->n_out; i++) {
        const Tensor *t = value_const(copy->out[i]);
        assert_non_null(t);
        memcpy(out[i]->data, t->data, (size_t)type_bytes(&t->type));
    }
}

// All nodes up to the one that makes `until` (NULL: all)
void run_graph(Run *r, const Value *until) {
    for (Node *n = r->g->first; n; n = n->next) {
        Tensor *in[32] = { 0 }, *out[32] = { 0 };
        for (int i = 0; i < n->n_in; i++) in[i] = tensor_of(r, n->in[i]);
        for (int i = 0; i < n->n_out; i++) {
            if (!r->at[n->out[i]->id]) r->at[n->out[i]->id] = tensor_new(r->arena, n->out[i]->type);
            out[i] = r->at[n->out[i]->id];
        }
        if (n->n_bodies) show(r, true);
        if (op_table[n->op].kind == KIND_COMPOSITE) eval_composite(r, n, in, out);
        else if (!op_table[n->op].eval(n, in, out)) fail_msg("%s is not evaluated", op_table[n->op].name);
        if (n->n_bodies) show(r, false);
        if (until && until->def == n) return;
    }
}

// ---------------------------------------------------------------- lowerings, interpreted
typedef struct Point { const Run *run; const Kernel *kernel; int64_t axis[64]; } Point;

static Scalar interpret(Point *p, const Expr *e);

static Scalar interpret_load(Point *p, const Expr *e) {
    const Tensor *t = tensor_of(p->run, e->value);
    if (e->a[1] && !interpret(p, e->a[1]).i) return e->a[2] ? interpret(p, e->a[2]) : (Scalar){ .i = 0 };
    int64_t at = interpret(p, e->a[0]).i;
    if (at < 0 || at >= type_count(&t->type))
        fail_msg("load of element %lld of %lld", (long long)at, (long long)type_count(&t->type));
    return element_get(t, at);
}

static Scalar interpret_reduce(Point *p, const Expr *e) {
    DType d = e->a[0]->dtype;
    bool arg = reduce_is_arg(e->rop), min = reduce_table[e->rop].extreme == RED_MIN,
         last = reduce_table[e->rop].tie == TIE_LAST, first = true;
    int64_t extent[MAX_RANK], k[MAX_RANK] = { 0 };
    Scalar best = { .i = 0 }, acc = arg ? best : reduce_identity(e->rop, d);
    for (int i = 0; i < e->n_axes; i++) {
        extent[i] = dim_upper(p->run->g, p->kernel->axes.at[e->axes[i]].size);
        if (extent[i] == 0) return acc;
    }
    do {
        for (int i = 0; i < e->n_axes; i++) p->axis[e->axes[i]] = k[i];
        Scalar x = interpret(p, e->a[0]);
        if (!arg) acc = reduce_combine(e->rop, d, acc, x);
        else if (first || (min ? element_less(d, x, best) : element_less(d, best, x))
            || (last && !element_less(d, x, best) && !element_less(d, best, x))) {
            best = x;
            acc = interpret(p, e->a[1]);
        }
        first = false;
    } while (index_next(e->n_axes, extent, k));
    return acc;
}

static Scalar interpret(Point *p, const Expr *e) {
    switch (e->op) {
    case E_Const: return e->c;
    case E_Axis: return (Scalar){ .i = p->axis[e->c.i] };
    case E_Size: return (Scalar){ .i = dim_upper(e->graph, e->extent) };
    case E_Load: return interpret_load(p, e);
    case E_Reduce: return interpret_reduce(p, e);
    case E_Cast: return eval_cast_scalar(e->a[0]->dtype, e->dtype, e->c.i != 0, interpret(p, e->a[0]));
    case E_Select: {                                    // both sides run: loads have to be guarded by themselves
        Scalar c = interpret(p, e->a[0]), x = interpret(p, e->a[1]), y = interpret(p, e->a[2]);
        return c.i ? x : y;
    }
    default:
        return eval_op(
            e->op, e->a[0]->dtype, interpret(p, e->a[0]), e->a[1] ? interpret(p, e->a[1]) : (Scalar){ .i = 0 });
    }
}

static double tolerance(DType d) {
    return d == DT_F64 ? 1e-12 : d == DT_F32 ? 1e-5 : d == DT_BF16 ? 1e-2 : 2e-3;
}

static bool close_to(DType d, Scalar a, Scalar b, double tol) {
    if (!dtype_is_float(d)) return a.i == b.i;
    return (isnan(a.f) && isnan(b.f)) || a.f == b.f || fabs(a.f - b.f) <= tol * (1 + fabs(b.f));
}


void lower_output(const Run *r, Node *n, int out, Lowered *to) {
    Value *v = n->out[out];
    ValuePlans none = { 0 };
    const Plan p = { .arena = r->arena, .scratch = r->arena, .graph = r->g, .values = &none };
    Fusion f = { .plan = &p, .root = v, .inside = NEW_ARRAY(r->arena, bool, 2) };
    Lower l;
    *to = (Lowered){ .n = n, .v = v, .k = { .exprs = expr_pool_new(r->arena) } };
    for (Node *m = r->g->first; m; m = m->next) m->mark = m == n;
    f.inside[1] = true;
    lower_init(&l, r->arena, &to->k, &f);
    for (int i = 0; i < v->type.rank; i++) to->idx[i] = lower_axis(&l, v->type.dim[i], false);
    to->e = lower_root(&l, v, to->idx);
    assert_non_null(to->e);
    assert_int_equal(to->e->dtype, v->type.dtype);
    assert_null(f.violation);
    assert_null(l.guard);
}

// Element by element: against what the evaluator left in r->at.
void check_lowered(const Run *r, const Lowered *l) {
    const Value *v = l->v;
    const Expr *e = l->e;
    Point p = { .run = r, .kernel = &l->k };
    int64_t at[MAX_RANK] = { 0 }, count = type_count(&v->type);
    for (int64_t o = 0; o < count; o++) {
        for (int i = 0; i < v->type.rank; i++)
            if (l->idx[i]->op == E_Axis) p.axis[l->idx[i]->c.i] = at[i];
        Scalar got = interpret(&p, e), want = element_get(r->at[v->id], o);
        if (dtype_is_small_float(e->dtype))
            got.f = (double)small_to_float(e->dtype, small_from_float(e->dtype, (float)got.f, true));
        if (!close_to(v->type.dtype, got, want, tolerance(v->type.dtype)))
            fail_msg("%s: element %lld is %g lowered, %g evaluated", op_table[l->n->op].name, (long long)o,
                dtype_is_float(e->dtype) ? got.f : (double)got.i, dtype_is_float(e->dtype) ? want.f : (double)want.i);
        index_next(v->type.rank, v->type.dim, at);
    }
}

static void check_lowering(const Run *r, Node *n, int out) {
    Lowered l;
    if (type_count(&n->out[out]->type) == 0) return;
    lower_output(r, n, out, &l);
    check_lowered(r, &l);
}

void check_lowerings(const Run *r) {
    for (Node *n = r->g->first; n; n = n->next)
        for (int i = 0; i < n->n_out; i++)
            if (op_table[n->op].lower != lower_none) check_lowering(r, n, i);
}
