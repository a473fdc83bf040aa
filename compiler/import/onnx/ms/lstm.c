// SPDX-License-Identifier: MIT OR Apache-2.0
// com.microsoft: LSTM with 8-bit weights, whose inputs and states are quantised while it runs.
//
// In: an OnnxNode. Out: what build/recurrent.c makes of each direction.
#include "import/onnx/onnx.h"

#include <string.h>

enum { X, W, R, BIAS, LENGTHS, INITIAL_H, INITIAL_C, PEEPHOLES, W_SCALE, W_ZERO, R_SCALE, R_ZERO, N_INPUTS };

// Inputs i of this direction, without its axis.
static Value *of_direction(OnnxNode *n, int i, int direction) {
    Value *v = onnx_optional(n, i);
    return v ? b_remove(n->g, b_part(n->g, v, 0, direction, 1), 0) : NULL;
}

// Weights of one direction less their zero points, and their scales: one for all columns, or one of each.
static bool weights_of(OnnxNode *n, int weight, int scale, int direction, Value **w, Value **s) {
    *s = of_direction(n, scale, direction);
    *w = of_direction(n, weight, direction);
    *w = b_centred(n->g, *w, of_direction(n, scale + 1, direction));
    return *w && *s;
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
        ByteLstm l = { .hidden = hidden, .reverse = d == 1 || !strcmp(direction, "reverse") };
        Value *w, *scale, *bias = of_direction(n, BIAS, d), *state[2];
        if (!weights_of(n, W, W_SCALE, d, &w, &scale) || !weights_of(n, R, R_SCALE, d, &l.weight, &l.scale))
            return NULL;
        Value *rows = b_byte_product(n->g, n->in[X], w, scale);
        if (bias) {
            Value *half = b_part(n->g, bias, 0, 0, 4 * hidden);
            half = b_binary(n->g, OP_Add, half, b_part(n->g, bias, 0, 4 * hidden, 4 * hidden));
            rows = b_binary(n->g, OP_Add, rows, half);
        }
        for (int i = 0; i < 2; i++) {
            state[i] = of_direction(n, INITIAL_H + i, d);
            if (!state[i]) state[i] = b_filled(n->g, DT_F32, 0, 2, (Dim[]){ batch, hidden });
        }
        if (!rows || !state[0] || !state[1] || !(y[d] = b_insert(n->g, b_byte_lstm(n->g, &l, rows, state), 1)))
            return NULL;
        for (int i = 0; i < 2; i++) last[i][d] = b_insert(n->g, state[i], 0);
    }
    n->out[1] = b_concat(n->g, 0, count, last[0]);
    n->out[2] = b_concat(n->g, 0, count, last[1]);
    return b_concat(n->g, 1, count, y);
}
