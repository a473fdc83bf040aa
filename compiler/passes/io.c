// SPDX-License-Identifier: MIT OR Apache-2.0
// --io: inputs and outputs that the model quantizes are the integers. Contract: inference; runs first, while
// QuantizeLinear and DequantizeLinear stand as they were imported.
//
//   before   (%0 x: f32[4])  %1: i8[4] = Cast(Round(%0 / 0.5) + 3)    ...   return %9 y: f32[2] = (%8 - 1) * 0.25
//   after    (%1 x: i8[4])                                           ...   return %8 y: i8[2]
//
// The idea: an input's steps are those of the first QuantizeLinear that is behind it, with nothing but moves of
// elements between; what else reads it has (q - zero) * scale. An output's are those of the DequantizeLinear before it.
// Bytes can be signed or not, whichever the model has: both they and the zero point are 128 more or less. What the
// steps are stands with the graph (QuantizedEnd), for headers, descriptors and who compares with floats.
#include "passes.h"

#include <math.h>

// What v takes its elements from, unchanged.
static Value *origin(Value *v) {
    while (v->def && (v->def->op == OP_Reshape || v->def->op == OP_Transpose || v->def->op == OP_Identity))
        v = v->def->in[0];
    return v;
}

static bool one_of(Value *v, double *number) {
    Tensor *t = v ? value_const(v) : NULL;
    if (!t || type_count(&t->type) != 1) return false;
    *number = tensor_get_f(t, 0);
    return true;
}

// The steps of tensors of type `has` as those of type `wants`; false: there are none.
static bool steps_of(const Quant *by, DType has, DType wants, QuantizedEnd *out) {
    double zero = 0;
    if (has != wants && !(dtype_is_byte(has) && dtype_is_byte(wants))) return false;
    if (!one_of(by->scale, &out->scale) || !(out->scale > 0) || (by->zero && !one_of(by->zero, &zero))) return false;
    out->zero = (int64_t)zero + (has == wants ? 0 : wants == DT_I8 ? -128 : 128);
    return true;
}

static Quant quant_of(Graph *g, const QuantizedEnd *e, DType d) {
    Value *scale = b_scalar(g, DT_F32, e->scale);
    return (Quant){ scale, b_scalar(g, d, (double)e->zero), -1, 0 };
}

// ---------------------------------------------------------------- inputs
static bool find_steps(Graph *g, const Value *input, DType wants, QuantizedEnd *out) {
    Quant by;
    Value *x;
    for (Node *n = g->first; n; n = n->next)
        if (quant_read(n, &x, &by) && origin(x) == input && steps_of(&by, n->out[0]->type.dtype, wants, out))
            return true;
    return false;
}

// The bytes `have` of another sign, as other nodes read them: as integers, from q.
static void replace_shifted(Graph *g, Value *have, Value *q, int by) {
    for (Node *n = have->def, *next; n; n = next) {
        next = n->next;
        if (n->op != OP_Cast || n->in[0] != have || n->out[0]->type.dtype != DT_I32) continue;
        g->cursor = n;
        g->loc = n->loc;
        Value *wide = b_cast(g, q, DT_I32);
        graph_replace(g, n->out[0], b_binary(g, OP_Add, wide, b_scalar(g, DT_I32, by)));
    }
    g->cursor = have->def;
    const char *expr = arena_printf(g->arena, "%s(i32(x) + %d)", dtype_name(have->type.dtype), by);
    graph_replace(g, have, b_map(g, expr, "x", 1, &q));
}

// What is quantized with these steps is q itself.
static void replace_quantized(Graph *g, const Value *real, Value *q, const QuantizedEnd *e) {
    for (Node *n = g->first, *next; n; n = next) {
        next = n->next;
        Quant by;
        Value *x;
        QuantizedEnd own;
        DType has = n->out[0]->type.dtype;
        if (!quant_read(n, &x, &by) || x != real || !steps_of(&by, has, q->type.dtype, &own)) continue;
        if (own.scale != e->scale || own.zero != e->zero) continue;
        if (has == q->type.dtype) graph_replace(g, n->out[0], q);
        else replace_shifted(g, n->out[0], q, has == DT_U8 ? 128 : -128);
    }
}

static bool input_becomes(Graph *g, int at, DType wants) {
    Value *v = g->inputs.at[at];
    QuantizedEnd e = { .name = v->name };
    if (v->type.dtype != DT_F32 || v->role || !find_steps(g, v, wants, &e)) return false;
    Type t = v->type;
    t.dtype = wants;
    Value *q = graph_input(g, v->name, t);
    g->inputs.at[at] = q;
    g->inputs.n--;
    v->is_input = false;
    g->cursor = g->first;
    Quant by = quant_of(g, &e, wants);
    Value *real = b_dequantize(g, q, &by, DT_F32);
    graph_replace(g, v, real);
    replace_quantized(g, real, q, &e);
    VEC_PUSH(g->arena, g->quantized, e);
    return true;
}

// ---------------------------------------------------------------- outputs
static bool output_becomes(Graph *g, int at, DType wants) {
    Value *v = g->outputs.at[at], *from = origin(v), *q;
    Quant by;
    QuantizedEnd e = { .name = g->output_names.at[at], .output = true };
    if (v->type.dtype != DT_F32 || v->role || !from->def || !quant_read_back(from->def, &q, &by)) return false;
    if (!steps_of(&by, q->type.dtype, wants, &e)) return false;
    g->cursor = NULL;
    if (from != v || q->type.dtype != wants) {
        Quant to = quant_of(g, &e, wants);
        q = b_quantize(g, v, &to, wants, DT_F32, true);
    }
    g->outputs.at[at] = q;
    VEC_PUSH(g->arena, g->quantized, e);
    return true;
}

static void note_real(const Graph *g, const char *what, const char *name, const Value *v, DType wants) {
    if (v->type.dtype == DT_F32 && !v->role)
        diag_note(&(Loc){ .file = g->file, .node = -1 },
            "--io: %s '%s' stays f32: the model has no scale of one number for it as %s", what, name,
            dtype_name(wants));
}

bool pass_io(Graph *g, const Options *o) {
    bool changed = false;
    for (int i = 0; i < g->inputs.n; i++)
        if (input_becomes(g, i, o->io)) changed = true;
        else note_real(g, "input", g->inputs.at[i]->name, g->inputs.at[i], o->io);
    for (int i = 0; i < g->outputs.n; i++)
        if (output_becomes(g, i, o->io)) changed = true;
        else note_real(g, "output", g->output_names.at[i], g->outputs.at[i], o->io);
    g->cursor = NULL;
    if (!changed && !g->quantized.n)
        diag_error(&(Loc){ .file = g->file, .node = -1 },
            "--io: no input or output is quantized to %s; `burncc quantize` makes models of which they are bytes",
            dtype_name(o->io));
    return changed && pass_dce(g);
}
