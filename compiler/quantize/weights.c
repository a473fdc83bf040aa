// SPDX-License-Identifier: MIT OR Apache-2.0
// Weights as integers.
//
// In: units with their numbers; what their inputs are on average. Out: a scale for each channel, symmetric, -127..127
// or -7..7;
// biases that take back what rounding the weights adds; or, for --weights-only, a graph whose weights alone are stored
// in few bits.
#include "build/build.h"
#include "quantize/quantize.h"

#include <math.h>

static int most_of(DType d) { return d == DT_I4 ? 7 : 127; }
static double number(const Tensor *t, int64_t i) { return ((const float *)t->data)[i]; }

// ---------------------------------------------------------------- scales

static double square_error(const QuantUnit *u, int64_t c, double scale) {
    double sum = 0, most = most_of(u->as);
    int64_t n = type_count(&u->w->type);
    for (int64_t i = 0; i < n; i++) {
        if (c >= 0 && unit_channel(u, i) != c) continue;
        double x = number(u->w, i), error = x - scale * fmin(fmax(rint(x / scale), -most), most);
        sum += error * error;
    }
    return sum;
}

// Of channel c, of all with -1: the scale of the least square error among those that cut off a part.
static double best_scale(const QuantUnit *u, int64_t c, double whole) {
    enum { CUTS = 20 };
    double best = whole, least = square_error(u, c, whole);
    for (int i = 1; i < CUTS && type_count(&u->w->type) * u->channels < (int64_t)1 << 27; i++) {
        double scale = whole * (1 - 0.025 * i), error = square_error(u, c, scale);
        if (error >= least) continue;
        least = error;
        best = scale;
    }
    return best;
}

// A bias in i32 has the scale of the sums, which weights that are nearly 0 make too small for it.
static double for_bias(const QuantUnit *u, int64_t c, double scale, double input) {
    double least = u->b ? fabs(number(u->b, c)) / (input * 0x1p30) : 0;
    return fmax(scale, least);
}

static void unit_scales(const Quantizer *q, QuantUnit *u) {
    double largest = 0;
    for (int64_t c = 0; c < u->channels; c++) u->scales[c] = 0;
    for (int64_t i = 0; i < type_count(&u->w->type); i++) {
        double *s = &u->scales[unit_channel(u, i)];
        *s = fmax(*s, fabs(number(u->w, i)) / most_of(u->as));
        largest = fmax(largest, *s);
    }
    double input = q->points.at[q->point_of[u->first->in[0]->id]].scale, all = 0;
    bool search = q->how.method == QUANT_MSE;
    if (q->how.per_tensor && largest > 0 && search) largest = best_scale(u, -1, largest);
    for (int64_t c = 0; c < u->channels; c++) {
        double s = q->how.per_tensor ? largest : u->scales[c];
        if (s > 0 && search && !q->how.per_tensor) s = best_scale(u, c, s);
        u->scales[c] = (float)for_bias(u, c, s > 0 ? s : 1, input);
        all = fmax(all, u->scales[c]);
    }
    for (int64_t c = 0; c < u->channels && q->how.per_tensor; c++) u->scales[c] = all;
}

void quant_weights(Quantizer *q) {
    for (int i = 0; i < q->units.n; i++)
        if (q->units.at[i].kind == QUANT_WEIGHTED) unit_scales(q, &q->units.at[i]);
}

float quant_rounded(const QuantUnit *u, int64_t i) {
    double s = u->scales[unit_channel(u, i)], most = most_of(u->as);
    return (float)(s * fmin(fmax(rint(number(u->w, i) / s), -most), most));
}

int64_t quant_weight_bytes(const QuantUnit *u) { return (type_count(&u->w->type) * dtype_bits(u->as) + 7) / 8; }

// ---------------------------------------------------------------- biases

// The channel of element i of an item of a unit's input, of `channels`; a convolution's are its second axis.
static int64_t channel_of(const QuantUnit *u, int64_t channels, int64_t n, int64_t i) {
    return u->first->op == OP_Conv ? i / (n / channels) : i % channels;
}

static const QuantUnit *weighted_user(const Quantizer *q, const QuantPoint *p) {
    for (int i = 0; i < q->units.n; i++)
        if (q->units.at[i].kind == QUANT_WEIGHTED && q->units.at[i].first->in[0] == p->value) return &q->units.at[i];
    return NULL;
}

static int64_t input_channels(const QuantUnit *u) {
    const Type *x = &u->first->in[0]->type;
    return u->first->op == OP_Conv ? x->dim[1] : x->dim[x->rank - 1];
}

void quant_see_channels(Quantizer *q, QuantPoint *p, const float *x, int64_t n) {
    const QuantUnit *u = weighted_user(q, p);
    if (!u) return;
    int64_t channels = input_channels(u);
    if (!p->sums) p->sums = NEW_ARRAY(q->arena, double, channels + 1);
    for (int64_t i = 0; i < n; i++) p->sums[channel_of(u, channels, n, i)] += x[i];
    p->seen += n / channels;
}

// Rounding adds (w' - w) x to each channel, on average that of the mean x.
static void correct(const Quantizer *q, QuantUnit *u) {
    const QuantPoint *p = &q->points.at[q->point_of[u->first->in[0]->id]];
    if (!u->b || !u->integer || !p->seen) return;
    bool conv = u->first->op == OP_Conv;
    const Type *t = &u->w->type;
    int64_t n = type_count(t), inner = 1, each = conv ? t->dim[1] : t->dim[t->rank - 2];
    int64_t per_group = conv ? u->channels / node_int(u->first, "group", 1) : u->channels;
    for (int k = conv ? 2 : t->rank - 1; k < t->rank; k++) inner *= t->dim[k];
    for (int64_t i = 0; i < n; i++) {
        int64_t c = unit_channel(u, i), from = i / inner % each + (conv ? c / per_group * each : 0);
        double mean = p->sums[from] / (double)p->seen, error = (quant_rounded(u, i) - number(u->w, i)) * mean;
        ((float *)u->b->data)[c] -= (float)error;
    }
}

void quant_correct_biases(Quantizer *q) {
    for (int i = 0; i < q->units.n; i++)
        if (q->units.at[i].kind == QUANT_WEIGHTED) correct(q, &q->units.at[i]);
}

// ---------------------------------------------------------------- weights alone

typedef struct Stored { const Value *of; Value *as; } Stored;

// What v is stored as.
static Value *dequantized(Graph *g, const Value *v, Tensor *q, Tensor *scales, int axis, int64_t block) {
    const char *name = v->name ? v->name : "weight";
    Value *numbers = graph_const(g, q, arena_printf(g->arena, "%s_quantized", name));
    Value *by = graph_const(g, scales, arena_printf(g->arena, "%s_scale", name));
    by->trainable = true;                               // an initializer of floats
    return b_dequantize(g, numbers, &(Quant){ by, NULL, axis, block }, DT_F32);
}

// In blocks along axis: symmetric, the largest of a block at the end of the range.
static Value *in_blocks(Graph *g, const Value *v, int axis, int64_t block, DType d) {
    Type blocks = v->type;
    int64_t inner = 1, size = v->type.dim[axis], most = most_of(d);
    for (int k = axis + 1; k < v->type.rank; k++) inner *= v->type.dim[k];
    blocks.dim[axis] = (size + block - 1) / block;
    Tensor *scales = tensor_new(g->arena, blocks), *q = tensor_new(g->arena, v->type);
    q->type.dtype = d;
    float *s = scales->data;
    for (int64_t i = 0, n = type_count(&v->type); i < 2 * n; i++) {     // the scales, then the numbers
        int64_t at = i % n, b = (at / inner / size * blocks.dim[axis] + at / inner % size / block) * inner + at % inner;
        double x = number(v->data, at);
        if (i < n) s[b] = fmaxf(s[b], (float)(fabs(x) / (double)most));
        else tensor_set_i(q, at, s[b] > 0 ? (int64_t)rint(x / s[b]) : 0);
    }
    return dequantized(g, v, q, scales, axis, block);
}

static Value *in_channels(Graph *g, const Value *v, DType d) {
    int64_t rows = v->type.dim[0], inner = type_count(&v->type) / rows, most = most_of(d);
    Tensor *scales = tensor_new(g->arena, type_make(DT_F32, 1, &rows)), *q = tensor_new(g->arena, v->type);
    q->type.dtype = d;
    for (int64_t r = 0; r < rows; r++) {
        float *s = &((float *)scales->data)[r];
        for (int64_t i = 0; i < inner; i++)
            *s = fmaxf(*s, (float)(fabs(number(v->data, r * inner + i)) / (double)most));
        if (!(*s > 0)) *s = 1;
        for (int64_t i = 0; i < inner; i++)
            tensor_set_i(q, r * inner + i, (int64_t)rint(number(v->data, r * inner + i) / *s));
    }
    return dequantized(g, v, q, scales, 0, 0);
}

static Value *in_half(Graph *g, const Value *v) {
    Tensor *t = tensor_new(g->arena, v->type);
    t->type.dtype = DT_F16;
    for (int64_t i = 0, n = type_count(&v->type); i < n; i++) tensor_set_f(t, i, number(v->data, i));
    Value *half = graph_const(g, t, v->name);
    half->trainable = true;
    return b_cast(g, half, DT_F32);
}

// Which operand of n is weights; -1: none.
static int weights_of(const Node *n) {
    int at = n->op == OP_Conv || n->op == OP_MatMul ? 1 : n->op == OP_Gather ? 0 : -1;
    const Value *v = at >= 0 ? n->in[at] : NULL;
    return v && v->data && v->type.dtype == DT_F32 && v->type.rank >= 2 && type_count(&v->type) ? at : -1;
}

static Value *stored(Graph *g, const Node *n, const Value *v, QuantOnly how, int64_t block) {
    DType d = how == ONLY_INT4 ? DT_I4 : DT_I8;
    if (how == ONLY_F16) return in_half(g, v);
    if (n->op == OP_Conv) return in_channels(g, v, d);
    int axis = n->op == OP_MatMul ? v->type.rank - 2 : v->type.rank - 1;
    return in_blocks(g, v, axis, block < v->type.dim[axis] ? block : v->type.dim[axis], d);
}

static int64_t stored_bytes(const Tensor *t) { return (type_count(&t->type) * dtype_bits(t->type.dtype) + 7) / 8; }

// Adds one, from what was made of it; in[0] of the first nodes are the numbers, the scale is a constant beside them.
static void add(QuantStored *s, const Value *from, Value *as, double power[2]) {
    const Tensor *got = value_const(as);
    int64_t n = type_count(&from->type);
    for (int64_t i = 0; i < n; i++) {
        double x = number(from->data, i), error = x - tensor_get_f(got, i);
        power[0] += x * x;
        power[1] += error * error;
    }
    s->tensors++;
    s->before += 4 * n;
    for (const Node *m = as->def; m; m = m->n_in ? m->in[0]->def : NULL) {
        Quant by;
        Value *q;
        if (quant_read_back(m, &q, &by)) s->after += stored_bytes(by.scale->data);
        if (m->in[0]->data) s->after += stored_bytes(m->in[0]->data);
    }
}

QuantStored quant_only(Graph *g, QuantOnly how, int64_t block, bool (*keeps)(void *own, const char *name), void *own) {
    VEC(Stored) all = { 0 };
    QuantStored s = { 0 };
    double power[2] = { 0 };
    for (Node *n = g->first; n; n = n->next) {
        int at = weights_of(n), k = 0;
        if (at < 0 || keeps(own, node_label(n))) continue;
        const Value *v = n->in[at];
        while (k < all.n && all.at[k].of != v) k++;
        g->cursor = g->first;
        g->loc = n->loc;
        if (k == all.n) {
            VEC_PUSH(g->arena, all, (Stored){ v, stored(g, n, v, how, block) });
            add(&s, v, all.at[k].as, power);
        }
        n->in[at] = all.at[k].as;
    }
    g->cursor = NULL;
    s.db = power[1] > 0 ? 10 * log10(power[0] / power[1]) : HUGE_VAL;
    return s;
}
