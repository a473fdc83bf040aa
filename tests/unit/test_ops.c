// SPDX-License-Identifier: MIT OR Apache-2.0
// Every primitive against itself, three ways. A case is a graph in text over odd sizes; for each:
//   - the evaluator runs it (and gives the expected numbers where the case states them);
//   - each node's lowering, interpreted element by element, must give what its evaluator gives, with no load outside
//       its tensor;
//   - where inputs are f64, gradients must agree with central differences, and the backward nodes pass the lowering
//       check as well; so must the gradients of a weighted sum of these gradients, and tangents of the outputs.
//   - a sized case has symbolic dimensions: its lowerings, made before the sizes are known, must give what the
//       evaluator gives with them.
#include "plan.h"
#include "grad/grad.h"
#include "ir/expr.h"
#include "ops/common.h"
#include "ops/table.h"
#include "passes/passes.h"
#include "schedule/schedule.h"

#include "ops_cases.h"
#include "ops_run.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

// ---------------------------------------------------------------- gradients
// loss = sum of outputs times fixed random weights
static Value *make_loss(Graph *g) {
    Value *loss = NULL;
    for (int i = 0; i < g->outputs.n; i++) {
        Value *y = g->outputs.at[i];
        if (y->type.dtype != DT_F64) continue;
        Tensor *w = tensor_new(g->arena, y->type);
        for (int64_t k = 0; k < type_count(&y->type); k++) tensor_set_f(w, k, random_number("pos", true));
        Value *weighted = b_binary(g, OP_Mul, y, graph_const(g, w, NULL));
        weighted = b_reduce(g, OP_ReduceSum, weighted, y->type.rank, (int64_t[]){ 0, 1, 2, 3, 4, 5, 6, 7 }, false);
        loss = loss ? b_binary(g, OP_Add, loss, weighted) : weighted;
    }
    return loss;
}

static double loss_at(Run *r, const Value *loss, Tensor *x, int64_t k, double v) {
    tensor_set_f(x, k, v);
    run_graph(r, loss);
    return tensor_get_f(tensor_of(r, loss), 0);
}

static void check_gradient(Run *r, const Value *loss, const Value *x, const Value *dx) {
    Tensor *t = r->at[x->id];
    Tensor *grad = tensor_new(r->arena, dx->type);
    assert_true(type_equal(&dx->type, &x->type));
    memcpy(grad->data, tensor_of(r, dx)->data, (size_t)type_bytes(&dx->type));
    for (int64_t k = 0; k < type_count(&x->type); k++) {
        double at = tensor_get_f(t, k), h = 1e-5;
        double slope = (loss_at(r, loss, t, k, at + h) - loss_at(r, loss, t, k, at - h)) / (2 * h),
               got = tensor_get_f(grad, k);
        tensor_set_f(t, k, at);
        if (!(fabs(got - slope) <= 1e-6 * (1 + fabs(slope))))
            fail_msg("gradient %lld of %%%d is %g, the slope is %g", (long long)k, x->id, got, slope);
    }
}

// Room for the values that have come since.
static void extend(Run *r) {
    Tensor **more = NEW_ARRAY(r->arena, Tensor *, r->g->value_count);
    for (int i = 0; i < r->g->inputs.n; i++) more[r->g->inputs.at[i]->id] = r->at[r->g->inputs.at[i]->id];
    r->at = more;
}

static void move(Run *r, const Value *x, const Tensor *direction, double by) {
    Tensor *t = r->at[x->id];
    for (int64_t k = 0; k < type_count(&t->type); k++)
        tensor_set_f(t, k, tensor_get_f(t, k) + by * tensor_get_f(direction, k));
}

static Tensor *copy_of(const Run *r, const Value *v) {
    Tensor *t = tensor_new(r->arena, v->type);
    memcpy(t->data, tensor_of(r, v)->data, (size_t)type_bytes(&t->type));
    return t;
}

// The loss by the inputs, then the sum of these gradients, weighted.
static void check_order(Run *r, Value *loss, int n, Value *const *wrt, bool again) {
    Value *const *grads = graph_gradient(r->g, loss, n, wrt);
    assert_non_null(grads);
    r->g->outputs.n = r->g->output_names.n = 0;
    for (int i = 0; i < n; i++) graph_output(r->g, grads[i], NULL);
    Value *next = again ? make_loss(r->g) : NULL;
    extend(r);
    run_graph(r, NULL);
    check_lowerings(r);
    for (int i = 0; i < n; i++) {
        check_gradient(r, loss, wrt[i], grads[i]);
        run_graph(r, NULL);
    }
    if (again) check_order(r, next, n, wrt, false);
}

// How the outputs move along a direction, forward mode: the slope of each element.
static void check_tangents(Run *r, int n, Value *const *x) {
    Value *y[8], *v[8];
    int n_y = 0;
    const double h = 1e-5;
    for (int i = 0; i < r->g->outputs.n; i++)
        if (r->g->outputs.at[i]->type.dtype == DT_F64) y[n_y++] = r->g->outputs.at[i];
    for (int i = 0; i < n; i++) {
        Tensor *t = tensor_new(r->g->arena, x[i]->type);
        for (int64_t k = 0; k < type_count(&t->type); k++) tensor_set_f(t, k, random_number("", true));
        v[i] = graph_const(r->g, t, NULL);
    }
    Value *const *tangent = graph_tangent(r->g, n_y, y, n, x, v);
    assert_non_null(tangent);
    extend(r);
    Tensor *side[2][8];
    for (int s = 0; s < 2; s++) {
        for (int i = 0; i < n; i++) move(r, x[i], v[i]->data, s ? -2 * h : h);
        run_graph(r, NULL);
        for (int i = 0; i < n_y; i++) side[s][i] = copy_of(r, y[i]);
    }
    for (int i = 0; i < n; i++) move(r, x[i], v[i]->data, h);
    run_graph(r, NULL);
    for (int i = 0; i < n_y; i++)
        for (int64_t k = 0; k < type_count(&y[i]->type); k++) {
            double slope = (tensor_get_f(side[0][i], k) - tensor_get_f(side[1][i], k)) / (2 * h),
                   got = tensor_get_f(tensor_of(r, tangent[i]), k);
            if (isfinite(slope) && !(fabs(got - slope) <= 1e-6 * (1 + fabs(slope))))
                fail_msg("element %lld of %%%d moves by %g, the slope is %g", (long long)k, y[i]->id, got, slope);
        }
}

static bool differentiated[OP_COUNT];                   // by a case

static void mark_differentiated(const Graph *g) {
    for (const Node *n = g->first; n; n = n->next) {
        differentiated[n->op] = true;
        for (int i = 0; i < n->n_bodies; i++) mark_differentiated(n->bodies[i]);
    }
}

// Where the op table says that no gradient flows, no float goes in or none comes out.
static void check_zero(const Graph *g) {
    for (const Node *n = g->first; n; n = n->next) {
        bool in = false, out = false;
        for (int i = 0; i < n->n_in; i++) in = in || (n->in[i] && dtype_is_float(n->in[i]->type.dtype));
        for (int i = 0; i < n->n_out; i++) out = out || dtype_is_float(n->out[i]->type.dtype);
        if (op_table[n->op].kind == KIND_PRIMITIVE && op_table[n->op].grad == grad_zero && in && out)
            fail_msg("a gradient may flow through %s", op_table[n->op].name);
    }
}

static void check_gradients(Run *r) {
    Value *wrt[8];
    int n = 0;
    for (int i = 0; i < r->g->inputs.n; i++)
        if (r->g->inputs.at[i]->type.dtype == DT_F64) wrt[n++] = r->g->inputs.at[i];
    Value *loss = make_loss(r->g);
    if (!n || !loss) return;
    mark_differentiated(r->g);
    check_tangents(r, n, wrt);
    check_order(r, loss, n, wrt, true);
}

// ---------------------------------------------------------------- the cases
static void check_numbers(const Run *r, const char *expect) {
    char *end;
    for (int i = 0; i < r->g->outputs.n; i++) {
        const Tensor *t = tensor_of(r, r->g->outputs.at[i]);
        for (int64_t k = 0; k < type_count(&t->type); k++, expect = end) {
            double want = strtod(expect, &end), got = tensor_get_f(t, k);
            assert_true(end > expect);
            if (got != want && !(fabs(got - want) < 1e-6))
                fail_msg("element %lld is %g, not %g", (long long)k, got, want);
        }
    }
}

static bool has_lowering(const Node *n, const Options *o) {
    (void)o;
    return op_table[n->op].lower != lower_none;
}

// Composites that loops may be asked for: the lowering against the expansion.
static void check_kept(const Case *c) {
    static const Backend keeps = { .claims = has_lowering };
    const Options o = { .quiet = true, .machine.backend = &keeps };
    Arena *a = arena_new();
    Run r = { .arena = a, .g = make_graph(a, c->inputs, c->body, c->result) };
    bool any = false;
    assert_non_null(r.g);
    for (const Node *n = r.g->first; n; n = n->next)
        any = any || (op_table[n->op].kind == KIND_COMPOSITE && has_lowering(n, &o));
    if (any) {
        pass_expand(r.g, &o);
        r.at = NEW_ARRAY(a, Tensor *, r.g->value_count);
        fill_inputs(&r);
        run_graph(&r, NULL);
        check_lowerings(&r);
    }
    arena_free(a);
}

static void test_case(void **state) {
    const Case *c = *state;
    check_kept(c);
    Arena *a = arena_new();
    Run r = { .arena = a, .g = make_graph(a, c->inputs, c->body, c->result) };
    assert_non_null(r.g);
    r.g->evaluated = true;
    check_zero(r.g);
    for (int i = 0; i < r.g->inputs.n; i++)
        if (r.g->inputs.at[i]->type.dtype == DT_F64) mark_differentiated(r.g);
    pass_expand(r.g, NULL);
    assert_int_equal(diag_errors(), 0);
    r.at = NEW_ARRAY(a, Tensor *, r.g->value_count);
    fill_inputs(&r);
    run_graph(&r, NULL);
    if (c->expect) check_numbers(&r, c->expect);
    check_lowerings(&r);
    check_gradients(&r);
    assert_int_equal(diag_errors(), 0);
    arena_free(a);
}

// Sizes are given only after the lowerings are made.
static void check_sized(const Case *c, const DimOption *sizes, int n_sizes) {
    Arena *a = arena_new();
    Run r = { .arena = a, .g = make_graph(a, c->inputs, c->body, c->result) };
    Options o = { .quiet = true };
    assert_non_null(r.g);
    pass_expand(r.g, NULL);
    assert_int_equal(diag_errors(), 0);
    VEC(Lowered) lowered = { 0 };
    for (Node *n = r.g->first; n; n = n->next)
        for (int i = 0; i < n->n_out; i++)
            if (op_table[n->op].lower != lower_none) {
                Lowered l;
                lower_output(&r, n, i, &l);
                VEC_PUSH(a, lowered, l);
            }
    for (int i = 0; i < n_sizes; i++) {
        dim_symbol(r.g, sizes[i].name);
        VEC_PUSH(a, o.dims, sizes[i]);
    }
    pass_bind_dims(r.g, &o);
    assert_int_equal(diag_errors(), 0);
    r.at = NEW_ARRAY(a, Tensor *, r.g->value_count);
    fill_inputs(&r);
    run_graph(&r, NULL);
    for (int i = 0; i < lowered.n; i++) check_lowered(&r, &lowered.at[i]);
    arena_free(a);
}

static void test_sized(void **state) {
    static const int64_t values[][4] = { { 1, 1, 3, 1 }, { 4, 2, 5, 3 }, { 2, 3, 8, 7 }, { 5, 1, 9, 4 } };
    static const char *const names[] = { "n", "m", "h", "s" };
    const Case *c = *state;
    for (size_t i = 0; i < COUNT(values); i++) {
        DimOption sizes[4];
        for (int k = 0; k < 4; k++) sizes[k] = (DimOption){ names[k], values[i][k], values[i][k] };
        check_sized(c, sizes, 4);
    }
}

static void test_faults(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(faults); i++) {
        Arena *a = arena_new();
        Text said;
        text_init(&said, a);
        text_printf(&said, "%s", "");
        diag_capture(&said);
        make_graph(a, faults[i].inputs, faults[i].body, "%0");
        diag_capture(NULL);
        if (!diag_errors() || !strstr(said.at, faults[i].says)) fail_msg("%s says \"%s\"", faults[i].body, said.at);
        diag_reset();
        arena_free(a);
    }
}

// Mean and variance of uniform numbers, no repetition along the index, and another stream for another seed.
static void test_random_quality(void **state) {
    (void)state;
    Arena *a = arena_new();
    enum { N = 40000 };
    Run r = { .arena = a,
        .g = make_graph(a, "",
            "%0 = RandomUniform() {shape=[40000], dtype=f64, seed=3}\n"
            " %1 = RandomUniform() {shape=[40000], dtype=f64, seed=4}",
            "%0, %1") };
    r.at = NEW_ARRAY(a, Tensor *, r.g->value_count);
    run_graph(&r, NULL);
    const Tensor *x = tensor_of(&r, r.g->outputs.at[0]), *y = tensor_of(&r, r.g->outputs.at[1]);
    double mean = 0, square = 0, lag = 0, cross = 0;
    for (int64_t i = 0; i < N; i++) {
        double u = tensor_get_f(x, i) - 0.5;
        mean += u / N;
        square += u * u / N;
        lag += u * (tensor_get_f(x, (i + 1) % N) - 0.5) / N;
        cross += u * (tensor_get_f(y, i) - 0.5) / N;
    }
    assert_true(fabs(mean) < 0.006 && fabs(square - 1 / 12.0) < 0.002 && fabs(lag) < 0.002 && fabs(cross) < 0.002);
    arena_free(a);
}

// ---------------------------------------------------------------- which gradients there are
// Numbers that every function is smooth at and has a value for.
static double smooth_number(const char *op) {
    double u = random_number("pos", true);              // 0.5..1.5
    return !strcmp(op, "Acosh") ? 1 + u : !strcmp(op, "FMod") || !strcmp(op, "Mod") ? 3 * u : 0.1 + 0.5 * u;
}

// A map of operands of its expression's types, twice: of positive numbers, and of negative ones where it has values.
static void check_map(Op op, int n_in, bool negative) {
    Arena *a = arena_new();
    Run r = { .arena = a, .g = graph_new(a, "map", NULL) };
    Value *in[4];
    for (int i = 0; i < n_in; i++)
        in[i] = graph_input(r.g, NULL, type_make(op == OP_Where && !i ? DT_BOOL : DT_F64, 1, (Dim[]){ 3 }));
    Node *n = graph_node(r.g, op, n_in, in, 1);
    assert_true(node_infer(n));
    graph_output(r.g, n->out[0], NULL);
    r.at = NEW_ARRAY(a, Tensor *, r.g->value_count);
    for (int i = 0; i < n_in; i++) {
        Tensor *t = r.at[in[i]->id] = tensor_new(a, in[i]->type);
        for (int64_t k = 0; k < 3; k++) {
            double x = smooth_number(op_table[op].name);
            element_set(t, k, t->type.dtype == DT_BOOL ? (Scalar){ .i = k == 1 } : (Scalar){ .f = negative ? -x : x });
        }
    }
    run_graph(&r, NULL);
    if (n->out[0]->type.dtype != DT_F64 || isfinite(tensor_get_f(tensor_of(&r, n->out[0]), 0))) check_gradients(&r);
    differentiated[op] = true;
    arena_free(a);
}

static bool of_integers(Op op) {                        // they take no floats
    const char *name = op_table[op].name;
    return !strncmp(name, "Bitwise", 7) || !strncmp(name, "Shift", 5) || op == OP_And || op == OP_Or || op == OP_Xor
        || op == OP_Not;
}

static bool is_row(Op op) {                              // of formulas: tests/train/ has them
    static const Op rows[] = {
#define LOSS(name, ...) OP_##name,
#include "losses.def"
#undef LOSS
#define OPTIMIZER(name, ...) OP_##name,
#include "optimizers.def"
#undef OPTIMIZER
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        if (rows[i] == op) return true;
    return false;
}

// Every operation has a gradient that a case above compares with central differences, or none to flow.
static void test_gradients(void **state) {
    (void)state;
    int counts[3] = { 0 };
    for (int op = 1; op < OP_COUNT; op++) {
        const OpInfo *info = &op_table[op];
        if (info->kind == KIND_MAP && !of_integers((Op)op))
            for (int negative = 0; negative < 2; negative++) check_map((Op)op, info->in_min, negative);
        bool maps_integers = info->kind == KIND_MAP && of_integers((Op)op);
        if (op == OP_Gradient || op == OP_Tangent || maps_integers || is_row((Op)op)) continue;
        if (info->kind == KIND_PRIMITIVE && info->grad == grad_zero) counts[1]++;
        else if (info->kind == KIND_PRIMITIVE && info->grad == grad_none) fail_msg("%s has no gradient", info->name);
        else if (!differentiated[op]) fail_msg("no case differentiates %s", info->name);
        else counts[info->kind == KIND_COMPOSITE ? 2 : 0]++;
    }
    printf("%d gradients, %d of composites, %d zero\n", counts[0], counts[2], counts[1]);
}

// What the loss does not depend on gets zeros; an operation without gradient is named.
static void test_reverse(void **state) {
    (void)state;
    Arena *a = arena_new();
    Text said;
    Graph *g = make_graph(a, "%0: f32[2], %1: f32[3]",
        "%2 = ReduceSum(%0)\n %3 = ReduceSum(%2) {keepdims=0}\n %4 = Gradient(%3, %0)\n %5 = ReduceSum(%4)",
        "%3, %5");
    Value *const *grads = graph_gradient(g, g->outputs.at[0], 2, g->inputs.at);
    assert_non_null(grads);
    Tensor *zeros = value_const(grads[1]);
    assert_true(zeros && zeros->type.dim[0] == 3 && tensor_get_f(zeros, 2) == 0);
    text_init(&said, a);
    diag_capture(&said);
    assert_null(graph_gradient(g, g->outputs.at[1], 1, g->inputs.at));
    assert_null(graph_gradient(g, g->inputs.at[0], 1, g->inputs.at));
    diag_capture(NULL);
    diag_reset();
    assert_non_null(strstr(said.at, "Gradient has no gradient"));
    assert_non_null(strstr(said.at, "the loss must be one float, it is f32[2]"));
    arena_free(a);
}

// Symbolic dimensions go through the shape rules.
static void test_symbols(void **state) {
    (void)state;
    Arena *a = arena_new();
    Graph *g = make_graph(a, "%0: f32[n,3,h,8], %1: f32[4,3,3,3]",
        "%2 = Conv(%0, %1) {strides=[2,2], pads=[1,1,1,1]}\n %3 = Concat(%0, %0) {axis=0}\n"
        "%4 = Reshape(%0) {shape=[n,24*h]}\n %5 = Pad(%0) {lo=[0,0,1,0], hi=[0,0,-3,0], interior=[0,0,1,0]}",
        "%2, %3, %4, %5");
    assert_non_null(g);
    assert_string_equal(type_text(a, g, &g->outputs.at[1]->type), "f32[2*n,3,h,8]");
    assert_int_equal(g->outputs.at[0]->type.dim[3], 4);
    Dim h = g->inputs.at[0]->type.dim[2];
    assert_true(dim_equal(g, g->outputs.at[0]->type.dim[2], dim_add(g, dim_div(g, dim_sub(g, h, 1), 2), 1)));
    assert_true(dim_equal(g, g->outputs.at[3]->type.dim[2], dim_sub(g, dim_mul(g, h, 2), 3)));
    assert_int_equal(diag_errors(), 0);
    arena_free(a);
}

// A row's form agrees with its other columns.
static void test_forms(void **state) {
    (void)state;
    for (int i = 1; i < OP_COUNT; i++) {
        const OpInfo *info = &op_table[i];
        bool lowers = info->lower != lower_none, whole = info->form == FORM_CALL || info->form == FORM_SCATTER;
        if (info->form != FORM_OTHER && lowers == whole)
            fail_msg("%s: its form and its lowering contradict each other", info->name);
        if ((info->reduce != RED_NONE) != op_is_reduce((Op)i))
            fail_msg("%s: its form and its reduction contradict each other", info->name);
    }
}

// What a reduction starts from adds nothing, on either side.
static void test_identities(void **state) {
    (void)state;
    static const DType types[] = { DT_F32, DT_F64, DT_I2, DT_I8, DT_U8, DT_I32, DT_U32, DT_I64, DT_U64, DT_BOOL };
    for (int op = RED_NONE + 1; op < RED_COUNT; op++)
        for (size_t i = 0; i < COUNT(types) && !reduce_is_arg((ReduceOp)op); i++) {
            DType d = types[i];
            if (dtype_is_float(d) && !expr_rule_accepts(reduce_step((ReduceOp)op, d), d)) continue;
            for (int64_t v = 0; v < 2; v++) {
                Scalar x = dtype_is_float(d) ? (Scalar){ .f = (double)v } : (Scalar){ .i = v },
                       none = reduce_identity((ReduceOp)op, d);
                Scalar left = reduce_combine((ReduceOp)op, d, none, x),
                       right = reduce_combine((ReduceOp)op, d, x, none);
                if (left.u != x.u || right.u != x.u)
                    fail_msg("%s of %s: %lld and nothing", reduce_table[op].word, dtype_name(d), (long long)v);
            }
        }
}

int main(void) {
    static const struct CMUnitTest listed[] = {
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_identities),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_random_quality),
        cmocka_unit_test(test_reverse),
        cmocka_unit_test(test_symbols),
    };
    static struct CMUnitTest tests[COUNT(listed) + COUNT(cases) + COUNT(sized) + 1];
    memcpy(tests, listed, sizeof listed);
    for (size_t i = 0; i < COUNT(cases); i++)
        tests[COUNT(listed) + i] = (struct CMUnitTest){
            .name = cases[i].body, .test_func = test_case, .initial_state = (void *)(uintptr_t)&cases[i]
        };
    for (size_t i = 0; i < COUNT(sized); i++)
        tests[COUNT(listed) + COUNT(cases) + i] = (struct CMUnitTest){
            .name = sized[i].body, .test_func = test_sized, .initial_state = (void *)(uintptr_t)&sized[i]
        };
    tests[COUNT(tests) - 1] = (struct CMUnitTest)cmocka_unit_test(test_gradients);       // behind all cases
    return cmocka_run_group_tests(tests, NULL, NULL);
}
