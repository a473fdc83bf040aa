// SPDX-License-Identifier: MIT OR Apache-2.0
// Builders of recurrent cells that are no composites (those: ops/recurrent.c): an LSTM with 8-bit weights.
//
// In: rows of inputs, weights less their zero points. Out: one integer product for the inputs of all steps and a loop
// over time with one for the state. Formulas, with q(x) quantised by its own range and weights of order i, o, f, c: z
// = q(x) W + q(h) R + b; c' = s(f) c + s(i) tanh(c); h' = s(o) tanh(c').
#include "build/build.h"

// v quantised by its range, times the weights, in f32.
Value *b_byte_product(Graph *g, Value *v, Value *weight, Value *scale) {
    Value *by = NULL, *zero = NULL, *q = b_quantized_u8(g, v, &by, &zero);
    Value *sum = b_cast(g, b_matmul(g, b_centred(g, q, zero), weight), DT_F32);
    return sum && by ? B_MAP(g, "x * (y * z)", "x y z", sum, by, scale) : NULL;
}

static Value *gate(Graph *g, const ByteLstm *l, Value *z, int at, Op op) {
    return b_unary(g, op, b_part(g, z, 1, at * l->hidden, l->hidden));
}

// One step: row [b, 4h] of the inputs' part, state h, c [b, h] -> the new ones.
static bool step(Graph *g, const ByteLstm *l, Value *row, Value **h, Value **c) {
    Value *z = b_binary(g, OP_Add, row, b_byte_product(g, *h, l->weight, l->scale));
    Value *i = gate(g, l, z, 0, OP_Sigmoid), *o = gate(g, l, z, 1, OP_Sigmoid), *f = gate(g, l, z, 2, OP_Sigmoid),
          *new = gate(g, l, z, 3, OP_Tanh);
    if (!i || !o || !f || !new) return false;
    *c = B_MAP(g, "f * c + i * x", "f c i x", f, *c, i, new);
    *h = b_binary(g, OP_Mul, o, b_unary(g, OP_Tanh, *c));
    return *h != NULL;
}

// All steps over rows [t, b, 4h]: state becomes the last one, the result is h of each step in the order of time, [t,
// b, h].
Value *b_byte_lstm(Graph *g, const ByteLstm *l, Value *rows, Value **state) {
    Value *in[4], *trips = b_size_of(g, rows, 0),
                  *last = l->reverse ? b_binary(g, OP_Sub, trips, b_scalar(g, DT_I64, 1)) : NULL;
    Dim steps = rows->type.dim[0];
    Graph *body = b_loop_body(g, "step", 2, state, in);
    Value *at = l->reverse ? b_binary(body, OP_Sub, last, in[0]) : in[0], *h = in[2], *c = in[3];
    if (!step(body, l, b_gather(body, rows, at, 0), &h, &c)) return NULL;
    graph_output(body, b_scalar(body, DT_BOOL, 1), "");
    graph_output(body, h, "");
    graph_output(body, c, "");
    graph_output(body, b_unary(body, OP_Identity, h), "");
    Node *loop = graph_node(
        g, OP_Loop, 4, (Value *[]){ dim_is_const(steps) ? trips : NULL, NULL, state[0], state[1] }, 3);
    loop->bodies = NEW_ARRAY(g->arena, Graph *, 1);
    loop->bodies[0] = body;
    loop->n_bodies = 1;
    if (!dim_is_const(steps)) node_set_ints(loop, "trips", &steps, 1);
    if (!node_infer(loop)) return NULL;
    state[0] = loop->out[0];
    state[1] = loop->out[1];
    if (!l->reverse || steps == 0 || steps == 1) return loop->out[2];
    if (!dim_is_const(steps))
        return graph_fail(
            g, "the reverse direction wants a known number of steps; pin the dimension with --dim NAME=V");
    const Type t = loop->out[2]->type;
    return b_slice(g, loop->out[2], (int64_t[]){ steps - 1, 0, 0 }, (int64_t[]){ -1, 1, 1 }, t.dim);
}
