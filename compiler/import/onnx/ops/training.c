// SPDX-License-Identifier: MIT OR Apache-2.0
// ONNX's preview domain of training: Gradient, and the steps of three optimizers.
//
// In: an OnnxNode. Out: maps, and for Gradient the nodes between its xs and its y built once more in a graph of their
// own, whose inputs are the values given for xs and zs; that graph is expanded, differentiated (grad/reverse.c) and
// put in the node's place. What is computed twice by this, the later passes merge.
#include "grad/grad.h"
#include "import/onnx/onnx.h"
#include "passes/passes.h"

#include <string.h>

// ---------------------------------------------------------------- Gradient

// The graph from the node's inputs to y alone; NULL with a diagnostic.
static Graph *differentiated(OnnxNode *n, int count, const char *const *names, const char *y) {
    Graph *body = graph_body(n->g, "gradient");
    Value **leaf = NEW_ARRAY(n->g->arena, Value *, count + 1);
    for (int i = 0; i < count; i++) leaf[i] = graph_input(body, names[i], n->in[i]->type);
    body->loc = n->loc;
    Value *v = onnx_recompute(n, body, count, names, leaf, y);
    if (!v) return NULL;
    if (!dtype_is_float(v->type.dtype))
        return onnx_fail(n, "\"%s\" has no gradient: it is %s", y, type_text(n->g->arena, n->g, &v->type)), NULL;
    body->loc = n->loc;
    graph_output(body, b_unary(body, OP_Identity, v), y);
    pass_expand(body);
    return body;
}

// dy/dx for each x of xs, where y's elements count alike.
Value *onnx_gradient(OnnxNode *n) {
    Arena *a = n->g->arena;
    const OnnxAttr *xs = onnx_attr(n, "xs", ONNX_STRINGS), *zs = onnx_attr(n, "zs", ONNX_STRINGS);
    const char *y = onnx_string(n, "y", "");
    int n_x = xs ? xs->n : 0, count = n_x + (zs ? zs->n : 0), errors = diag_errors();
    if (!n_x || !*y) return onnx_fail(n, "the attributes \"xs\" and \"y\" are missing");
    if (n->n_in != count || n->n_out > n_x)
        return onnx_fail(n, "has %d inputs and %d outputs; xs and zs name %d, xs %d", n->n_in, n->n_out, count, n_x);
    if (!onnx_inputs(n, count)) return NULL;
    const char **names = NEW_ARRAY(a, const char *, count);
    for (int i = 0; i < count; i++) names[i] = i < n_x ? xs->strings[i] : zs->strings[i - n_x];
    for (int i = 0; i < n_x; i++)
        if (!dtype_is_float(n->in[i]->type.dtype))
            return onnx_fail(n, "\"%s\" has no gradient: it is %s", names[i], type_text(a, n->g, &n->in[i]->type));
    Graph *body = differentiated(n, count, names, y);
    if (!body || diag_errors() != errors) return NULL;
    Value *target = body->outputs.at[0],
          *one = b_expand(body, b_like(body, target, 1), target->type.rank, target->type.dim);
    Value *const *d = one ? graph_pullback(body, 1, &target, &one, n_x, body->inputs.at) : NULL;
    if (!d) return NULL;
    body->outputs.n = 0;
    for (int i = 0; i < n_x; i++) graph_output(body, d[i], names[i]);
    Value **out = NEW_ARRAY(a, Value *, n_x);
    graph_inline(body, n->g, n->in, out);
    for (int i = 0; i < n->n_out; i++) n->out[i] = out[i];
    return n->out[0];
}

// ---------------------------------------------------------------- optimizer steps: rate, step count, then groups of tensors

// Input `group` of the i-th of `count` tensors.
static Value *member(OnnxNode *n, int group, int i, int count) { return onnx_input(n, 2 + group * count + i); }

static Value *regularised(OnnxNode *n, Value *x, Value *g) {
    return B_MAP(n->g, arena_printf(n->g->arena, "x * %.17g + y", onnx_float(n, "norm_coefficient", 0)), "x y", x, g);
}

static int member_count(OnnxNode *n, int in_groups, int out_groups) {
    int count = (n->n_in - 2) / in_groups;
    if (n->n_in < 2 + in_groups || (n->n_in - 2) % in_groups || n->n_out != count * out_groups)
        return onnx_fail(n, "inputs and outputs do not form groups of equal size"), 0;
    return count;
}

// v = alpha v + beta g, x = x - rate v (or rate (g + alpha v)).
Value *onnx_momentum(OnnxNode *n) {
    int count = member_count(n, 3, 2);
    if (!count || !onnx_inputs(n, n->n_in)) return NULL;
    double alpha = onnx_float(n, "alpha", 0), beta = onnx_float(n, "beta", 1);
    const char *mode = onnx_string(n, "mode", "standard");
    bool nesterov = !strcmp(mode, "nesterov");
    Value *rate = b_scalar_of(n->g, n->in[0]), *step = b_scalar_of(n->g, n->in[1]);
    if (!nesterov && strcmp(mode, "standard")) return onnx_fail(n, "attribute \"mode\" is \"%s\"", mode);
    for (int i = 0; i < count; i++) {
        Value *x = member(n, 0, i, count), *g = regularised(n, x, member(n, 1, i, count));
        Value *grown = B_MAP(
            n->g, arena_printf(n->g->arena, "x > 0 ? %.17g : 1", beta), "x", b_cast(n->g, step, x->type.dtype));
        Value *v = B_MAP(
            n->g, arena_printf(n->g->arena, "x * %.17g + y * z", alpha), "x y z", member(n, 2, i, count), g, grown);
        Value *move = nesterov ? B_MAP(n->g, arena_printf(n->g->arena, "x + y * %.17g", alpha), "x y", g, v) : v;
        n->out[i] = B_MAP(n->g, "x - y * z", "x y z", x, b_cast(n->g, rate, x->type.dtype), move);
        n->out[count + i] = v;
    }
    return n->out[0];
}

// h = h + g^2, x = x - rate / (1 + step decay) g / (sqrt(h) + epsilon).
Value *onnx_adagrad(OnnxNode *n) {
    int count = member_count(n, 3, 2);
    if (!count || !onnx_inputs(n, n->n_in)) return NULL;
    double epsilon = onnx_float(n, "epsilon", 1e-6), decay = onnx_float(n, "decay_factor", 0);
    Value *rate = b_scalar_of(n->g, n->in[0]), *step = b_scalar_of(n->g, n->in[1]);
    for (int i = 0; i < count; i++) {
        Value *x = member(n, 0, i, count), *g = regularised(n, x, member(n, 1, i, count));
        Value *h = B_MAP(n->g, "x + y * y", "x y", member(n, 2, i, count), g);
        Value *slow = B_MAP(n->g, arena_printf(n->g->arena, "x / (1 + y * %.17g)", decay), "x y",
            b_cast(n->g, rate, x->type.dtype), b_cast(n->g, step, x->type.dtype));
        n->out[i] = B_MAP(
            n->g, arena_printf(n->g->arena, "x - y * z / (sqrt(w) + %.17g)", epsilon), "x y z w", x, slow, g, h);
        n->out[count + i] = h;
    }
    return n->out[0];
}

// v = a v + (1 - a) g, h = b h + (1 - b) g^2, x = x - rate sqrt(1 - b^t) / (1 - a^t) v / (sqrt(h) + epsilon).
Value *onnx_adam(OnnxNode *n) {
    int count = member_count(n, 4, 3);
    if (!count || !onnx_inputs(n, n->n_in)) return NULL;
    double a = onnx_float(n, "alpha", 0.9), b = onnx_float(n, "beta", 0.999), epsilon = onnx_float(n, "epsilon", 1e-6),
           post = onnx_float(n, "norm_coefficient_post", 0);
    Value *rate = b_scalar_of(n->g, n->in[0]), *step = b_scalar_of(n->g, n->in[1]);
    for (int i = 0; i < count; i++) {
        Value *x = member(n, 0, i, count), *g = regularised(n, x, member(n, 1, i, count));
        Value *v = B_MAP(
            n->g, arena_printf(n->g->arena, "x * %.17g + y * %.17g", a, 1 - a), "x y", member(n, 2, i, count), g);
        Value *h = B_MAP(
            n->g, arena_printf(n->g->arena, "x * %.17g + y * y * %.17g", b, 1 - b), "x y", member(n, 3, i, count), g);
        const char *adjust = arena_printf(
            n->g->arena, "y > 0 ? x * sqrt(1 - pow(%.17g, y)) / (1 - pow(%.17g, y)) : x", b, a);
        Value *now = B_MAP(n->g, adjust, "x y", b_cast(n->g, rate, x->type.dtype), b_cast(n->g, step, x->type.dtype));
        const char *move = arena_printf(n->g->arena, "(x - y * z / (sqrt(w) + %.17g)) * %.17g", epsilon, 1 - post);
        n->out[i] = B_MAP(n->g, move, "x y z w", x, now, v, h);
        n->out[count + i] = v;
        n->out[2 * count + i] = h;
    }
    return n->out[0];
}
