// SPDX-License-Identifier: MIT OR Apache-2.0
// Gradients of models against central differences, by the evaluator in double precision.
//
// usage: check_gradients MODEL... ; beside each MODEL.onnx or MODEL.txt stands MODEL.data, the values of its inputs as
// doubles. The loss is the sum of the outputs' elements, each with a weight. A line a model: "ok NAME derivatives=N
// worst=X alone=OP scalars=A,B", or what is wrong; alone: the graph's only operation, or -, scalars: those of its
// expression. Compared are the gradients by every input of doubles, and the tangents of the outputs along a direction.
//
//        check_gradients --operations ; every row of ops.def and exprs.def, a line each: "map NAME", "primitive NAME",
// "composite NAME" and "scalar NAME", followed by "zero" where the row says that no gradient can flow; and
// "type f64 N", the number of that type in an attribute.
#include "options.h"

#include "grad/grad.h"
#include "import/import.h"
#include "build/build.h"
#include "ir/expr.h"
#include "ops/table.h"
#include "passes/passes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BOUND 1e-5
#define STEP 1e-5

enum { MOST = 32 };

typedef struct Check {
    Arena *a;
    Graph *g;
    Value *x[MOST], *y[MOST];                           // of doubles
    int n_x, n_y, compared;
    double worst;
    bool bad;
} Check;

static double noise(void) {
    static uint32_t state = 7;
    state = state * 1664525u + 1013904223u;
    return 0.25 + (state >> 8) / (double)(1 << 24);
}

// ---------------------------------------------------------------- evaluation
static void forget(Graph *g) {
    for (int i = 0; i < g->inputs.n; i++) g->inputs.at[i]->folded = NULL;
    for (Node *n = g->first; n; n = n->next) {
        n->not_folded = false;
        for (int i = 0; i < n->n_out; i++) n->out[i]->folded = NULL;
        for (int i = 0; i < n->n_bodies; i++) forget(n->bodies[i]);
    }
}

static const Tensor *value_of(Check *c, Value *v) {
    const Tensor *t = value_const(v);
    if (!t) {
        printf("not ok %s: %%%d is not evaluated\n", c->g->file, v->id);
        exit(1);
    }
    return t;
}

static double number_of(Check *c, Value *v) {
    forget(c->g);
    return tensor_get_f(value_of(c, v), 0);
}

static void compare(Check *c, const char *what, const Value *v, int64_t i, double got, double slope, double largest) {
    double off = fabs(got - slope) / fmax(fabs(slope), fmax(1e-3, 1e-2 * largest));
    c->compared++;
    c->worst = fmax(c->worst, off);
    if (off <= BOUND || c->bad) return;
    printf("not ok %s: %s %s element %lld is %.9g, the slope is %.9g\n", c->g->file, what, v->name ? v->name : "",
        (long long)i, got, slope);
    c->bad = true;
}

// ---------------------------------------------------------------- gradients
static Value *loss_of(Check *c) {
    Value *sum = NULL;
    for (int i = 0; i < c->n_y; i++) {
        Value *y = c->y[i];
        Tensor *w = tensor_new(c->a, y->type);
        int64_t axes[MAX_RANK];
        for (int k = 0; k < y->type.rank; k++) axes[k] = k;
        for (int64_t k = 0; k < type_count(&y->type); k++) tensor_set_f(w, k, noise());
        Value *weighted = b_binary(c->g, OP_Mul, y, graph_const(c->g, w, NULL));
        weighted = b_reduce(c->g, OP_ReduceSum, weighted, y->type.rank, axes, false);
        sum = sum ? b_binary(c->g, OP_Add, sum, weighted) : weighted;
    }
    return sum;
}

static void check_gradients(Check *c) {
    Value *loss = loss_of(c);
    Value *const *d = graph_gradient(c->g, loss, c->n_x, c->x);
    if (!d) {
        printf("not ok %s: no gradient\n", c->g->file);
        c->bad = true;
        return;
    }
    for (int i = 0; i < c->n_x && !c->bad; i++) {
        Tensor *x = c->x[i]->data;
        int64_t count = type_count(&x->type);
        double *slope = NEW_ARRAY(c->a, double, count + 1), largest = 0;
        for (int64_t k = 0; k < count; k++) {
            double was = tensor_get_f(x, k);
            tensor_set_f(x, k, was + STEP);
            double above = number_of(c, loss);
            tensor_set_f(x, k, was - STEP);
            slope[k] = (above - number_of(c, loss)) / (2 * STEP);
            tensor_set_f(x, k, was);
            largest = fmax(largest, fabs(slope[k]));
        }
        forget(c->g);
        const Tensor *got = value_of(c, d[i]);
        for (int64_t k = 0; k < count; k++)
            compare(c, "gradient by", c->x[i], k, tensor_get_f(got, k), slope[k], largest);
    }
}

// ---------------------------------------------------------------- tangents
static void go(Check *c, Value *const *v, double h) {
    for (int i = 0; i < c->n_x; i++) {
        Tensor *x = c->x[i]->data;
        for (int64_t k = 0; k < type_count(&x->type); k++)
            tensor_set_f(x, k, tensor_get_f(x, k) + h * tensor_get_f(v[i]->data, k));
    }
}

// Of their own: a view's bytes are its operand's.
static void copies(Check *c, double h, Value *const *v, const Tensor **to) {
    go(c, v, h);
    forget(c->g);
    for (int i = 0; i < c->n_y; i++) {
        Tensor *t = tensor_new(c->a, c->y[i]->type);
        memcpy(t->data, value_of(c, c->y[i])->data, (size_t)type_bytes(&t->type));
        to[i] = t;
    }
}

static void check_tangents(Check *c) {
    Value *v[MOST];
    const Tensor *above[MOST], *below[MOST];
    for (int i = 0; i < c->n_x; i++) {
        Tensor *t = tensor_new(c->a, c->x[i]->type);
        for (int64_t k = 0; k < type_count(&t->type); k++) tensor_set_f(t, k, noise() - 0.75);
        v[i] = graph_const(c->g, t, NULL);
    }
    Value *const *tangent = graph_tangent(c->g, c->n_y, c->y, c->n_x, c->x, v);
    if (!tangent) {
        printf("not ok %s: no tangent\n", c->g->file);
        c->bad = true;
        return;
    }
    copies(c, STEP, v, above);
    copies(c, -2 * STEP, v, below);
    go(c, v, STEP);
    forget(c->g);
    for (int i = 0; i < c->n_y; i++) {
        const Tensor *got = value_of(c, tangent[i]);
        for (int64_t k = 0; k < type_count(&c->y[i]->type) && !c->bad; k++)
            compare(c, "tangent of", c->y[i], k, tensor_get_f(got, k),
                (tensor_get_f(above[i], k) - tensor_get_f(below[i], k)) / (2 * STEP), 1);
    }
}

// ---------------------------------------------------------------- the models
// The graph with its inputs' values as constants; NULL with diagnostics.
static Graph *opened(Check *c, const Options *o) {
    Graph *g = import_graph(c->a, o);
    const char *data = arena_printf(c->a, "%.*s.data", (int)(strrchr(o->model, '.') - o->model), o->model);
    FILE *f = g ? fopen(data, "rb") : NULL;
    if (!f) return NULL;
    g->evaluated = true;
    for (int i = 0; i < g->inputs.n; i++) {
        Value *v = g->inputs.at[i];
        v->data = tensor_new(c->a, v->type);
        for (int64_t k = 0; k < type_count(&v->type); k++) {
            double x = 0;
            if (fread(&x, sizeof x, 1, f) != 1) return NULL;
            if (dtype_is_float(v->type.dtype)) tensor_set_f(v->data, k, x);
            else tensor_set_i(v->data, k, (int64_t)x);
        }
        if (v->type.dtype == DT_F64) c->x[c->n_x++] = v;
    }
    fclose(f);
    return g;
}

// ---------------------------------------------------------------- what is reached
// The only operation of a graph of one node; "-" of others.
static const char *alone(const Graph *g) { return g->first && g->first == g->last ? op_table[g->first->op].name : "-"; }

static void mark_scalars(const Expr *e, bool *used) {
    used[e->op] = true;
    for (int i = 0; i < (int)COUNT(e->a); i++)
        if (e->a[i]) mark_scalars(e->a[i], used);
}

static const char *scalars_of(Check *c) {
    Text t;
    bool used[E_COUNT] = { 0 };
    const Node *n = c->g->first;
    text_init(&t, c->a);
    if (n && n == c->g->last && op_has_expr(n->op)) mark_scalars(node_expr(n), used);
    for (int i = 0; i < E_COUNT; i++)
        if (used[i]) text_printf(&t, "%s%s", t.n ? "," : "", expr_table[i].name);
    return t.n ? t.at : "-";
}

static bool check(const char *model) {
    Options o = { .quiet = true, .model = model };
    Check c = { .a = arena_new() };
    c.g = opened(&c, &o);
    bool ok = c.g && !(pass_bind_dims(c.g, &o) && diag_errors());
    const char *only = ok ? alone(c.g) : "-", *scalars = ok ? scalars_of(&c) : "-";
    if (ok) {
        pass_expand(c.g, NULL);
        for (int i = 0; i < c.g->inputs.n; i++) c.g->inputs.at[i]->is_input = false;
        for (int i = 0; i < c.g->outputs.n; i++)
            if (c.g->outputs.at[i]->type.dtype == DT_F64) c.y[c.n_y++] = c.g->outputs.at[i];
        check_gradients(&c);
        if (!c.bad) check_tangents(&c);
    }
    if (!ok || diag_errors()) printf("not ok %s: it is refused\n", model);
    else if (!c.bad)
        printf("ok %s derivatives=%d worst=%.1e alone=%s scalars=%s\n", model, c.compared, c.worst, only, scalars);
    ok = ok && !c.bad && !diag_errors();
    fflush(stdout);
    diag_reset();
    arena_free(c.a);
    return ok;
}

static void print_operations(void) {
    static const char *const kinds[] = {
        [KIND_MAP] = "map", [KIND_PRIMITIVE] = "primitive", [KIND_COMPOSITE] = "composite"
    };
    for (int i = OP_NONE + 1; i < OP_COUNT; i++) {
        const OpInfo *op = &op_table[i];
        printf("%s %s%s\n", kinds[op->kind], op->name, op->grad == grad_zero ? " zero" : "");
    }
    for (int i = 0; i < E_COUNT; i++)
        printf("scalar %s%s\n", expr_table[i].name, *expr_table[i].diff[0] || *expr_table[i].diff[1] ? "" : " zero");
    printf("type %s %d\n", dtype_name(DT_F64), DT_F64);
}

int main(int argc, char **argv) {
    int bad = 0;
    if (argc == 2 && !strcmp(argv[1], "--operations")) {
        print_operations();
        return 0;
    }
    for (int i = 1; i < argc; i++) bad += !check(argv[i]);
    return bad > 0;
}
