// SPDX-License-Identifier: MIT OR Apache-2.0
// com.microsoft: LSTM with 8-bit weights, whose inputs and states are quantised while it runs.
//
// In: an OnnxNode. Out: one integer product for the inputs of all steps and a loop over time with one for the state.
// Formulas, with q(x) the input quantised by its own range and weights of order i, o, f, c: z = q(x) W + q(h) R + b;
// c' = s(f) c + s(i) tanh(c); h' = s(o) tanh(c').
#include "import/onnx/onnx.h"

#include <string.h>

enum { X, W, R, BIAS, LENGTHS, INITIAL_H, INITIAL_C, PEEPHOLES, W_SCALE, W_ZERO, R_SCALE, R_ZERO, N_INPUTS };

// of the recurrent product; the bias is in the rows
typedef struct Layer { Value *weight, *scale, *bias; int64_t hidden; bool reverse; } Layer;

// Inputs i of this direction, without its axis.
static Value *of_direction(OnnxNode *n, int i, int direction) {
    Value *v = onnx_optional(n, i);
    return v ? b_remove(n->g, b_part(n->g, v, 0, direction, 1), 0) : NULL;
}

// Weights of one direction less their zero points, and their scales: one for all columns, or one of each.
static bool weights_of(OnnxNode *n, int weight, int scale, int direction, Value **w, Value **s) {
    *s = of_direction(n, scale, direction);
    *w = b_centred(n->g, of_direction(n, weight, direction), of_direction(n, scale + 1, direction));
    return *w && *s;
}

// v quantised by its range, times the weights, in f32.
static Value *quantised_product(Graph *g, Value *v, Value *weight, Value *scale) {
    Value *by = NULL, *zero = NULL, *q = b_quantized_u8(g, v, &by, &zero);
    Value *sum = b_cast(g, b_matmul(g, b_centred(g, q, zero), weight), DT_F32);
    return sum && by ? B_MAP(g, "x * (y * z)", "x y z", sum, by, scale) : NULL;
}

static Value *gate(Graph *g, const Layer *l, Value *z, int at, Op op) {
    return b_unary(g, op, b_part(g, z, 1, at * l->hidden, l->hidden));
}

// One step: row [b, 4h] of the inputs' part, state h, c [b, h] -> the new ones.
static bool step(Graph *g, const Layer *l, Value *row, Value **h, Value **c) {
    Value *z = b_binary(g, OP_Add, row, quantised_product(g, *h, l->weight, l->scale));
    Value *i = gate(g, l, z, 0, OP_Sigmoid), *o = gate(g, l, z, 1, OP_Sigmoid), *f = gate(g, l, z, 2, OP_Sigmoid),
          *new = gate(g, l, z, 3, OP_Tanh);
    if (!i || !o || !f || !new) return false;
    *c = B_MAP(g, "f * c + i * x", "f c i x", f, *c, i, new);
    *h = b_binary(g, OP_Mul, o, b_unary(g, OP_Tanh, *c));
    return *h != NULL;
}

// All steps over rows [t, b, 4h]: state becomes the last one, the result is h of each step in the order of time, [t,
// b, h].
static Value *run(OnnxNode *n, const Layer *l, Value *rows, Value **state) {
    Value *in[4], *trips = b_size_of(n->g, rows, 0),
                  *last = l->reverse ? b_binary(n->g, OP_Sub, trips, b_scalar(n->g, DT_I64, 1)) : NULL;
    Dim steps = rows->type.dim[0];
    Graph *body = b_loop_body(n->g, "step", 2, state, in);
    Value *at = l->reverse ? b_binary(body, OP_Sub, last, in[0]) : in[0], *h = in[2], *c = in[3];
    if (!step(body, l, b_gather(body, rows, at, 0), &h, &c)) return NULL;
    graph_output(body, b_scalar(body, DT_BOOL, 1), "");
    graph_output(body, h, "");
    graph_output(body, c, "");
    graph_output(body, b_unary(body, OP_Identity, h), "");
    Node *loop = graph_node(
        n->g, OP_Loop, 4, (Value *[]){ dim_is_const(steps) ? trips : NULL, NULL, state[0], state[1] }, 3);
    loop->bodies = NEW_ARRAY(n->g->arena, Graph *, 1);
    loop->bodies[0] = body;
    loop->n_bodies = 1;
    if (!dim_is_const(steps)) node_set_ints(loop, "trips", &steps, 1);
    if (!node_infer(loop)) return NULL;
    state[0] = loop->out[0];
    state[1] = loop->out[1];
    if (!l->reverse || steps == 1) return loop->out[2];
    if (!dim_is_const(steps))
        return onnx_fail(
            n, "the reverse direction wants a known number of steps; pin the dimension with --dim NAME=V");
    const Type t = loop->out[2]->type;
    return b_slice(n->g, loop->out[2], (int64_t[]){ steps - 1, 0, 0 }, (int64_t[]){ -1, 1, 1 }, t.dim);
}

static bool supported(OnnxNode *n) {
    static const char *const usual[] = { "Sigmoid", "Tanh", "Tanh" };
    const OnnxAttr *functions = onnx_attr(n, "activations", ONNX_STRINGS);
    for (int i = 0; functions && i < functions->n; i++)
        if (strcmp(functions->strings[i], usual[i % 3]))
            return onnx_fail(n, "activation \"%s\" is not supported here; quantise the model without its LSTM",
                       functions->strings[i]),
                   false;
    if (onnx_optional(n, LENGTHS) || onnx_optional(n, PEEPHOLES))
        return onnx_fail(n, "sequence_lens and peepholes are not supported here; quantise the model without its LSTM"),
               false;
    if (onnx_float(n, "clip", 0) > 0 || onnx_int(n, "input_forget", 0))
        return onnx_fail(n, "clip and input_forget are not supported here; quantise the model without its LSTM"),
               false;
    onnx_has(n, "activation_alpha");
    onnx_has(n, "activation_beta");
    for (int i = W_SCALE; i < N_INPUTS; i++)
        if (!onnx_input(n, i)) return false;
    const Type *x = &n->in[X]->type, *w = &n->in[W]->type, *r = &n->in[R]->type;
    bool fits = x->rank == 3 && w->rank == 3 && r->rank == 3 && type_is_static(w) && type_is_static(r)
        && r->dim[2] == 4 * r->dim[1] && w->dim[2] == r->dim[2] && w->dim[0] == r->dim[0];
    if (!fits)
        onnx_fail(n,
            "wants weights [directions, input, 4 * hidden] and [directions, hidden, 4 * hidden], got %s and %s",
            type_text(n->g->arena, n->g, w), type_text(n->g->arena, n->g, r));
    return fits;
}

// Outputs: h of each step [t, directions, b, h], the last h and c [directions, b, h].
Value *onnx_ms_dynamic_lstm(OnnxNode *n) {
    Value *y[2], *last[2][2];
    if (!onnx_inputs(n, 3) || !supported(n)) return NULL;
    const char *direction = onnx_string(n, "direction", "forward");
    int count = (int)n->in[R]->type.dim[0];
    int64_t hidden = n->in[R]->type.dim[1];
    onnx_int(n, "hidden_size", hidden);
    if (count != (strcmp(direction, "bidirectional") ? 1 : 2))
        return onnx_fail(n, "%d directions do not fit the direction \"%s\"", count, direction);
    Dim batch = n->in[X]->type.dim[1];
    for (int d = 0; d < count; d++) {
        Layer l = { .hidden = hidden, .reverse = d == 1 || !strcmp(direction, "reverse") };
        Value *w, *scale, *bias = of_direction(n, BIAS, d), *state[2];
        if (!weights_of(n, W, W_SCALE, d, &w, &scale) || !weights_of(n, R, R_SCALE, d, &l.weight, &l.scale))
            return NULL;
        Value *rows = quantised_product(n->g, n->in[X], w, scale);
        if (bias)
            rows = b_binary(n->g, OP_Add, rows,
                b_binary(n->g, OP_Add, b_part(n->g, bias, 0, 0, 4 * hidden),
                    b_part(n->g, bias, 0, 4 * hidden, 4 * hidden)));
        for (int i = 0; i < 2; i++) {
            state[i] = of_direction(n, INITIAL_H + i, d);
            if (!state[i]) state[i] = b_filled(n->g, DT_F32, 0, 2, (Dim[]){ batch, hidden });
        }
        if (!rows || !state[0] || !state[1] || !(y[d] = b_insert(n->g, run(n, &l, rows, state), 1))) return NULL;
        for (int i = 0; i < 2; i++) last[i][d] = b_insert(n->g, state[i], 0);
    }
    n->out[1] = b_concat(n->g, 0, count, last[0]);
    n->out[2] = b_concat(n->g, 0, count, last[1]);
    return b_concat(n->g, 1, count, y);
}
