// SPDX-License-Identifier: MIT OR Apache-2.0
// The plan into the graph: QuantizeLinear and DequantizeLinear where integers begin and end.
//
//   before   %3 = Conv(%x, %w)       %4 = Add(%3, %b)       %5 = Relu(%4)
//   after    %x' = DequantizeLinear(QuantizeLinear(%x))     %w' = DequantizeLinear(i8)     %b' = DequantizeLinear(i32)
//            %3 = Conv(%x', %w')     %4 = Add(%3, %b')      %5 = Relu(%4)      and %5' likewise for its users
//
// That is the form in which other runtimes look for integer operators. What units of floats compute is quantized for
// the units of integers alone that take it.
#include "build/build.h"
#include "quantize/quantize.h"

#include <math.h>
#include <string.h>

static const Loc *place(Graph *g, const char *name, const char *op) {
    Loc *loc = NEW(g->arena, Loc);
    *loc = (Loc){ .file = g->file, .node = -1, .name = arena_printf(g->arena, "%s_%s", name, op), .op = op };
    return loc;
}

static const char *name_of(const Graph *g, const Value *v) {
    if (v->name && *v->name) return v->name;
    const char *label = v->def ? node_label(v->def) : "";
    return *label ? label : arena_printf(g->arena, "value%d", v->id);
}

static Value *float_constant(Graph *g, Tensor *t, const char *name, const char *what) {
    Value *v = graph_const(g, t, arena_printf(g->arena, "%s_%s", name, what));
    v->trainable = true;                                // an initializer, as scales are in other tools' files
    return v;
}

static Value *one_float(Graph *g, double x, const char *name) {
    Tensor *t = tensor_new(g->arena, type_make(DT_F32, 0, NULL));
    tensor_set_f(t, 0, x);
    return float_constant(g, t, name, "scale");
}

static Value *one_zero(Graph *g, DType d, int64_t zero, const char *name) {
    Tensor *t = tensor_new(g->arena, type_make(d, 0, NULL));
    tensor_set_i(t, 0, zero);
    return graph_const(g, t, arena_printf(g->arena, "%s_zero_point", name));
}

// ---------------------------------------------------------------- points

static bool reads(const Quantizer *q, const Node *n) {
    int u = q->unit_of[n->mark];
    return u >= 0 && q->units.at[u].integer;
}

static void write_point(Quantizer *q, const QuantPoint *p) {
    Graph *g = q->graph;
    Value *x = p->value;
    Node *before = x->def;
    const char *name = name_of(g, x);
    DType d = q->how.activations;
    g->cursor = before ? before->next : g->first;
    Quant by = { .scale = one_float(g, p->scale, name), .zero = one_zero(g, d, p->zero, name) };
    g->loc = place(g, name, "QuantizeLinear");
    Value *whole = b_quantize(g, x, &by, d, DT_F32, true);
    whole->name = arena_printf(g->arena, "%s_quantized", name);
    g->loc = place(g, name, "DequantizeLinear");
    Value *y = b_dequantize(g, whole, &by, DT_F32);
    y->name = arena_printf(g->arena, "%s_dequantized", name);
    for (Node *n = y->def->next; n; n = n->next)
        for (int k = 0; k < n->n_in; k++)
            if (n->in[k] == x && (p->made || reads(q, n))) n->in[k] = y;
    for (int k = 0; k < g->outputs.n && p->made; k++)
        if (g->outputs.at[k] == x) g->outputs.at[k] = y;
}

// ---------------------------------------------------------------- constants

static Value *whole_weights(Graph *g, const QuantUnit *u, Value *scale) {
    const char *name = u->weight->name ? u->weight->name : arena_printf(g->arena, "%s.weight", u->name);
    Tensor *t = tensor_new(g->arena, u->w->type);
    t->type.dtype = u->as;
    for (int64_t i = 0, n = type_count(&u->w->type); i < n; i++)
        tensor_set_i(t, i, (int64_t)rint(quant_rounded(u, i) / u->scales[unit_channel(u, i)]));
    Value *numbers = graph_const(g, t, arena_printf(g->arena, "%s_quantized", name));
    g->loc = place(g, name, "DequantizeLinear");
    Value *w = b_dequantize(g, numbers, &(Quant){ .scale = scale, .axis = u->axis }, DT_F32);
    w->name = arena_printf(g->arena, "%s_dequantized", name);
    return w;
}

static Value *whole_bias(Graph *g, const QuantUnit *u, const char *name, double input, bool one) {
    int64_t n = u->channels, count = one ? 1 : n;
    Tensor *t = tensor_new(g->arena, type_make(DT_I32, 1, &n));
    Tensor *s = tensor_new(g->arena, type_make(DT_F32, one ? 0 : 1, &count));
    for (int64_t c = 0; c < n; c++) {
        double scale = (float)(input * u->scales[c]);
        if (c < count) tensor_set_f(s, c, scale);
        tensor_set_i(t, c, (int64_t)fmin(fmax(rint(tensor_get_f(u->b, c) / scale), -0x1p31), 0x1p31 - 1));
    }
    Value *numbers = graph_const(g, t, arena_printf(g->arena, "%s_quantized", name));
    Value *scale = float_constant(g, s, name, "scale");
    g->loc = place(g, name, "DequantizeLinear");
    Value *b = b_dequantize(g, numbers, &(Quant){ .scale = scale }, DT_F32);
    b->name = arena_printf(g->arena, "%s_dequantized", name);
    return b;
}

static void write_unit(Quantizer *q, const QuantUnit *u) {
    Graph *g = q->graph;
    const char *name = u->weight->name ? u->weight->name : arena_printf(g->arena, "%s.weight", u->name);
    bool one = q->how.per_tensor;
    int64_t n = u->channels;
    Tensor *s = tensor_new(g->arena, type_make(DT_F32, one ? 0 : 1, &n));
    for (int64_t c = 0; c < (one ? 1 : n); c++) tensor_set_f(s, c, u->scales[c]);
    g->cursor = u->first;
    u->first->in[1] = whole_weights(g, u, float_constant(g, s, name, "scale"));
    if (!u->b) return;
    const Value *old = u->sum->in[1];
    const char *called = old->name ? old->name : arena_printf(g->arena, "%s.bias", u->name);
    int rank = u->sum->out[0]->type.rank;
    g->cursor = u->sum;
    Value *b = whole_bias(g, u, called, q->points.at[q->point_of[u->first->in[0]->id]].scale, one);
    if (u->first->op == OP_Conv) b = b_along(g, b, rank, 1);
    u->sum->in[1] = b;
}

// A constant that a unit without weights computes with: its own range, the same type as the values that it meets.
static void write_constant(Quantizer *q, Node *n, int at) {
    Graph *g = q->graph;
    const Value *v = n->in[at];
    bool half = q->how.activations == DT_I16;           // around 0
    int64_t count = type_count(&v->type), least = quant_least(&q->how), most = quant_most(&q->how);
    double lo = 0, hi = 0;
    for (int64_t i = 0; i < count; i++) {
        lo = fmin(lo, tensor_get_f(v->data, i));
        hi = fmax(hi, tensor_get_f(v->data, i));
    }
    if (half) lo = -(hi = fmax(hi, -lo));
    double scale = hi > lo ? (float)((hi - lo) / (double)(most - least)) : 1;
    double zero = half ? 0 : rint((double)least - lo / scale);
    const char *name = name_of(g, v);
    Tensor *t = tensor_new(g->arena, v->type);
    t->type.dtype = q->how.activations;
    for (int64_t i = 0; i < count; i++)
        tensor_set_i(t, i, (int64_t)fmin(fmax(rint(tensor_get_f(v->data, i) / scale) + zero, (double)least),
            (double)most));
    g->cursor = n;
    g->loc = place(g, name, "DequantizeLinear");
    Quant by = { .scale = one_float(g, scale, name), .zero = one_zero(g, q->how.activations, (int64_t)zero, name) };
    Value *numbers = graph_const(g, t, arena_printf(g->arena, "%s_quantized", name));
    n->in[at] = b_dequantize(g, numbers, &by, DT_F32);
}

void quant_write(Quantizer *q) {
    Graph *g = q->graph;
    for (int i = 0; i < q->units.n; i++) {
        QuantUnit *u = &q->units.at[i];
        if (!u->integer) continue;
        if (u->kind == QUANT_WEIGHTED) write_unit(q, u);
        for (int k = 0; k < u->first->n_in && u->kind == QUANT_MIXED; k++)
            if (u->first->in[k]->data && u->first->in[k]->type.dtype == DT_F32) write_constant(q, u->first, k);
    }
    for (int i = 0; i < q->points.n; i++)
        if (q->points.at[i].active) write_point(q, &q->points.at[i]);
    g->cursor = NULL;
}
