// SPDX-License-Identifier: MIT OR Apache-2.0
// Tensors of bytes stay bytes. Contract: inference; constant scales and zero points.
//
// Everywhere, as it changes no bit: bytes that become floats and the same bytes again never were floats, and what moves
// elements or is monotone (views, slices, concatenation, max, clamps) is done behind the quantisation, on bytes.
//
// On a target in fixed point what lies between is computed in integers too:
//
//   before   %3: f32 = Mul(Cast(%acc), %scale)           %acc: i32, from a product of bytes
//            %4: f32 = Div(Add(%3, %bias), 0.0118)       and the same for any sum of such terms
//            %5: i8 = Cast(Add(Round(%4), -128))
//   after    %5: i8 = Map(%acc, %b, %m) {expr="i8(clamp((i64(x + y) * z + c) >> 32))"}
//
// The idea: a float that is made from integers by constant factors and addends is sum(k_i q_i) + c. Quantised, it is
// one integer expression: round(v) = (v 2^s + 2^(s-1)) >> s with the factors in units of 2^-s. Rounding is to nearest,
// halves upwards, once, at the end. Of bytes alone everything fits 32 bits with s up to 22; a 32-bit sum is multiplied
// by m = round(k 2^32) in 64 bits, of which the upper word is the result. The error of the factors is below 2^-8 of a
// step wherever the result is not cut off. Factors of few bits meet the middle of two steps often: there halves go to
// the even one. Sums of windows and along axes are sums of the integers; any other function of one byte is a table
// (byte_table.c). Tensors of 16 bits are computed likewise, their factors with as many bits more; functions of them are
// parabolas.
#include "requantize.h"

#include <math.h>

enum { MAX_TERMS = 4, MAX_LOOK = 64 };

// scale * q, of type f64 and constant. q: of integers
typedef struct Term { Value *q, *scale; } Term;
typedef struct Affine { Term at[MAX_TERMS]; int n; Value *offset; } Affine;

Value *requantize_known(Value *v) {
    Tensor *t = v && !v->data ? value_const(v) : NULL;
    return t ? graph_const(v->graph, t, v->name) : v && v->data ? v : NULL;
}

static Value *real(Graph *g, Value *v) { return requantize_known(b_cast(g, v, DT_F64)); }
static Value *number(Graph *g, double x) { return b_scalar(g, DT_F64, x); }
static Value *computed(Graph *g, Op op, Value *x, Value *y) { return requantize_known(b_binary(g, op, x, y)); }

// ---------------------------------------------------------------- what a float is made of
static bool find(Graph *g, Value *v, Affine *a, int look);

// The integers q + c, whose additions go into the offset.
static bool find_integers(Graph *g, Value *q, Affine *a) {
    Value *offset = number(g, 0);
    for (Node *n = q->def; n && q->type.dtype == DT_I32; n = q->def) {
        Value *c = n->op == OP_Add || n->op == OP_Sub ? requantize_known(n->in[1]) : NULL;
        if (n->op == OP_Cast && (dtype_is_byte(n->in[0]->type.dtype) || is_half(n->in[0]->type.dtype))) {
            q = n->in[0];
            break;
        }
        if (!c || !type_same_shape(&n->in[0]->type, &q->type)) break;
        offset = computed(g, n->op, offset, real(g, c));
        q = n->in[0];
    }
    if (q->type.dtype != DT_I32 && !dtype_is_byte(q->type.dtype) && !is_half(q->type.dtype)) return false;
    *a = (Affine){ .n = 1, .at[0] = { q, number(g, 1) }, .offset = offset };
    return true;
}

static void scale_by(Graph *g, Affine *a, Op op, Value *c) {
    for (int i = 0; i < a->n; i++) a->at[i].scale = computed(g, op, a->at[i].scale, c);
    a->offset = computed(g, op, a->offset, c);
}

// The one integer tensor of a, with what has to be added to it; false: that is no integer, or not one for all.
// stores: what it is made of is to be in memory, which bytes take less of.
static bool centred(Graph *g, const Affine *a, bool stores, Value **q, double *scale) {
    double offset;
    if (a->n != 1 || !const_splat(a->at[0].scale, scale) || !const_splat(a->offset, &offset) || *scale == 0)
        return false;
    double zero = offset / *scale;
    if (fabs(zero) > 1 << 24 || fabs(zero - rint(zero)) > 1e-4) return false;
    bool few = (dtype_is_byte(a->at[0].q->type.dtype) || is_half(a->at[0].q->type.dtype)) && a->at[0].q->def;
    *q = b_cast(g, few && stores ? b_stored(g, a->at[0].q) : a->at[0].q, DT_I32);
    if (rint(zero) != 0) *q = b_binary(g, OP_Add, *q, b_scalar(g, DT_I32, rint(zero)));
    return *q != NULL;
}

// How large the integers of q can be; INFINITY where nobody knows.
static double bound_of(const Value *q) {
    const Node *n = q->def;
    int count;
    double c;
    if (dtype_is_byte(q->type.dtype)) return 256;
    if (is_half(q->type.dtype)) return q->type.dtype == DT_U16 ? 65536 : 32768;
    if (!n || !type_is_static(&q->type)) return INFINITY;
    switch (n->op) {
    case OP_Cast: case OP_Identity: return bound_of(n->in[0]);
    case OP_Add: return const_splat(n->in[1], &c) ? bound_of(n->in[0]) + fabs(c) : INFINITY;
    case OP_Mul: return bound_of(n->in[0]) * bound_of(n->in[1]);
    case OP_ReduceSum:
        return bound_of(n->in[0]) * (double)type_count(&n->in[0]->type) / (double)type_count(&q->type);
    case OP_WindowSum: {
        const int64_t *kernel = node_ints(n, "kernel", &count);
        double terms = bound_of(n->in[0]);
        for (int i = 0; i < count; i++) terms *= (double)kernel[i];
        return terms;
    }
    default: return INFINITY;
    }
}

// Nothing is known to leave 32 bits.
static bool stays(const Value *q) { return q && !(isfinite(bound_of(q)) && bound_of(q) >= 0x1p31); }

// A sum along axes or of windows: that of the integers.
static bool find_sum(Graph *g, Node *n, Affine *a, int look) {
    Value *q;
    double scale;
    if (!find(g, n->in[0], a, look) || !centred(g, a, true, &q, &scale)) return false;
    Value *sum = b_finish(node_like(g, n, &q));
    *a = (Affine){ .n = 1, .at[0] = { sum, number(g, scale) }, .offset = number(g, 0) };
    return stays(sum);
}

static bool find_product(Graph *g, Node *n, Affine *a, int look) {
    Value *q[2];
    double scale[2];
    for (int i = 0; i < 2; i++)
        if (!find(g, n->in[i], a, look) || !centred(g, a, false, &q[i], &scale[i])) return false;
    Value *all = b_binary(g, OP_Mul, q[0], q[1]);
    *a = (Affine){ .n = 1, .at[0] = { all, number(g, scale[0] * scale[1]) }, .offset = number(g, 0) };
    return stays(all);
}

static bool find_addition(Graph *g, Node *n, Affine *a, int look) {
    Affine b;
    if (!find(g, n->in[0], a, look) || !find(g, n->in[1], &b, look) || a->n + b.n > MAX_TERMS) return false;
    if (n->op == OP_Sub) scale_by(g, &b, OP_Mul, number(g, -1));
    for (int i = 0; i < b.n; i++) a->at[a->n++] = b.at[i];
    a->offset = computed(g, OP_Add, a->offset, b.offset);
    return true;
}

static bool find(Graph *g, Value *v, Affine *a, int look) {
    Node *n = v->def;
    if (!n || look == 0 || v->type.dtype != DT_F32) return false;
    if (n->op == OP_Cast) return dtype_is_int(n->in[0]->type.dtype) && find_integers(g, n->in[0], a);
    if (n->op == OP_Identity) return find(g, n->in[0], a, look - 1);
    if (n->op == OP_WindowSum || n->op == OP_ReduceSum) return find_sum(g, n, a, look - 1);
    if (n->op != OP_Add && n->op != OP_Sub && n->op != OP_Mul && n->op != OP_Div) return false;
    Value *left = requantize_known(n->in[0]), *right = requantize_known(n->in[1]);
    if (n->op == OP_Div && !right) return false;
    if (!left && !right) return n->op == OP_Mul ? find_product(g, n, a, look - 1) : find_addition(g, n, a, look - 1);
    if (!find(g, n->in[right ? 0 : 1], a, look - 1)) return false;
    Value *c = real(g, right ? right : left);
    if (n->op == OP_Mul || n->op == OP_Div) scale_by(g, a, n->op, c);
    else {
        if (n->op == OP_Sub && !right) scale_by(g, a, OP_Mul, number(g, -1));
        a->offset = computed(g, n->op == OP_Sub && right ? OP_Sub : OP_Add, a->offset, c);
    }
    return a->offset != NULL;
}

// ---------------------------------------------------------------- integers for it
// INFINITY also of what is no number.
static double largest(const Value *v) {
    double most = 0;
    for (int64_t i = 0; i < type_count(&v->type); i++) {
        const double x = fabs(tensor_get_f(v->data, i));
        most = isnan(x) ? INFINITY : fmax(most, x);
    }
    return most;
}

// round(v * by) as constants of type d, of one number where all are the same; NULL: some do not fit.
static Value *rounded(Graph *g, const Value *v, double by, DType d) {
    double one, most = d == DT_I32 ? INT32_MAX : 0x1p62;
    if (!(largest(v) * by <= most)) return NULL;
    if (const_splat(v, &one)) return b_scalar(g, d, rint(one * by));
    Tensor *t = tensor_new(g->arena, type_make(d, v->type.rank, v->type.dim));
    for (int64_t i = 0; i < type_count(&v->type); i++) tensor_set_i(t, i, (int64_t)rint(tensor_get_f(v->data, i) * by));
    return graph_const(g, t, NULL);
}

// v's own bytes, or shifted by whole steps.
static Value *whole_steps(Graph *g, const Affine *a, const Steps *s) {
    double k, offset;
    Value *q = a->at[0].q;
    bool half = is_half(q->type.dtype) && !s->exactly;
    if (a->n != 1 || !(dtype_is_byte(q->type.dtype) || half)) return NULL;
    if (!const_splat(a->at[0].scale, &k) || !const_splat(a->offset, &offset)) return NULL;
    double by = offset + (double)s->zero;
    if (fabs(k - 1) > (half ? 1e-6 : 1e-5) || fabs(by - rint(by)) > 1e-3 || !(fabs(by) < 0x1p30)) return NULL;
    if (rint(by) == 0 && q->type.dtype == s->d) return q;
    return b_map(g, arena_printf(g->arena, "%s(min(max(i32(x) + %d, %d), %d))", dtype_name(s->d), (int)rint(by),
        (int)lowest(s->d), (int)highest(s->d)), "x", 1, &q);
}

// The least b of which all factors are whole multiples of 2^-b; -1: there is none up to 8.
static int whole_bits(const Affine *a) {
    double x;
    for (int b = 0; b <= 8; b++) {
        bool whole = const_splat(a->offset, &x) && ldexp(x, b) == rint(ldexp(x, b));
        for (int i = 0; i < a->n; i++)
            whole = whole && const_splat(a->at[i].scale, &x) && ldexp(x, b) == rint(ldexp(x, b));
        if (whole) return b;
    }
    return -1;
}

// Where the middle between two steps is met often, as by averages of two or four, halves go to the even one.
static const char *halved(Graph *g, const char *sum, int bits) {
    if (!bits) return sum;
    return arena_printf(
        g->arena, "((%s) + %d + ((%s) >> %d & 1)) >> %d", sum, (1 << (bits - 1)) - 1, sum, bits, bits);
}

// Of small integers alone: 32 bits.
static Value *of_bytes(Graph *g, const Affine *a, const Steps *s) {
    double bound = largest(a->offset) + 512, error = 0;
    int bits = 22, whole = whole_bits(a);
    for (int i = 0; i < a->n; i++) {
        bound += largest(a->at[i].scale) * bound_of(a->at[i].q);
        error += bound_of(a->at[i].q) / 2;
    }
    while (bits > 0 && !(ldexp(bound, bits) < 0x1p30)) bits--;
    if (whole >= 0 && whole < bits) bits = whole;
    else if (ldexp(error, -bits) > 0x1p-8) return NULL;
    else whole = -1;
    Value *in[2 * MAX_TERMS + 1];
    Value *c = computed(g, OP_Add, a->offset, number(g, (double)s->zero + (whole < 0 ? 0.5 : 0)));
    const char *sum = "y", *names = "y";
    int n = 0;
    in[n++] = rounded(g, c, ldexp(1, bits), DT_I32);
    for (int i = 0; i < a->n; i++) {
        in[n++] = a->at[i].q;
        in[n++] = rounded(g, a->at[i].scale, ldexp(1, bits), DT_I32);
        names = arena_printf(g->arena, "%s q%d k%d", names, i, i);
        sum = arena_printf(g->arena, "i32(q%d) * k%d + %s", i, i, sum);
    }
    sum = whole < 0 ? arena_printf(g->arena, "(%s) >> %d", sum, bits) : halved(g, sum, bits);
    return b_map(g, arena_printf(g->arena, "%s(min(max(%s, %d), %d))", dtype_name(s->d), sum, (int)lowest(s->d),
        (int)highest(s->d)), names, n, in);
}

// One sum's addend in its own units, so that it is added in 32 bits; NULL: that would not be near enough.
static Value *bias_of(Graph *g, const Affine *a) {
    Value *b = a->n == 1 ? computed(g, OP_Div, a->offset, a->at[0].scale) : NULL;
    if (!b || !(largest(b) < 0x1p28)) return NULL;
    Value *whole = rounded(g, b, 1, DT_I32);
    Value *rest = computed(g, OP_Mul, computed(g, OP_Sub, b, real(g, whole)), a->at[0].scale);
    return rest && largest(rest) < 0x1p-9 ? whole : NULL;
}

// One sum in steps of 2^bits is shifted; halves, which are common there, go to the even one.
static Value *of_shift(Graph *g, const Affine *a, const Steps *s) {
    double k, none;
    int exponent;
    if (a->n != 1 || !const_splat(a->at[0].scale, &k) || frexp(k, &exponent) != 0.5) return NULL;
    int bits = 1 - exponent;
    Value *b = computed(g, OP_Div, a->offset, a->at[0].scale);
    if (bits < 1 || bits > 24 || !(largest(b) < 0x1p28)) return NULL;
    Value *in[2] = { b_cast(g, a->at[0].q, DT_I32), rounded(g, b, 1, DT_I32) };
    if (largest(computed(g, OP_Sub, b, real(g, in[1]))) > 0) return NULL;
    bool biased = !const_splat(in[1], &none) || none != 0;
    const char *sum = halved(g, biased ? "x + y" : "x", bits);
    return b_map(g, arena_printf(g->arena, "%s(min(max((%s) + %d, %d), %d))", dtype_name(s->d), sum, (int)s->zero,
        (int)lowest(s->d), (int)highest(s->d)), biased ? "x y" : "x", biased ? 2 : 1, in);
}

// (i64(x) z + 2^31) >> 32 by products of 16 bits, for z >= 0. Nothing leaves 32 bits: with x = a 2^16 + b and
// z = h 2^16 + l, x z 2^-16 is a h 2^16 + (a l + (b l >> 16)) + b h, but for what is cut off below; 2^31 is 2^15 there.
static const char *by_half_words(Graph *g, const char *x) {
    Arena *a = g->arena;
    const char *low = arena_printf(a, "((%s) & 65535)", x), *high = arena_printf(a, "((%s) >> 16)", x);
    const char *u = arena_printf(a, "(%s * (z & 65535) + i32(u32(%s) * u32(z & 65535) >> u32(16)))", high, low);
    const char *v = arena_printf(a, "(%s * (z >> 16))", low);
    return arena_printf(a, "%s * (z >> 16) + (%s >> 16) + (%s >> 16) + ((%s & 65535) + (%s & 65535) + 32768 >> 16)",
        high, u, v, u, v);
}

// One sum with its addend in its own units, where a product of 64 bits is a call.
static Value *of_short_products(Graph *g, const Affine *a, const Steps *s) {
    double least = 0, k = 0, none;
    Value *bias = bias_of(g, a), *scale = a->at[0].scale;
    for (int64_t i = 0; bias && i < type_count(&scale->type); i++)
        if ((k = tensor_get_f(scale->data, i)) < least) least = k;
    if (!bias || least < 0 || !(largest(scale) < 0.5)) return NULL;
    Value *in[] = { b_cast(g, a->at[0].q, DT_I32), bias, rounded(g, scale, 0x1p32, DT_I32) };
    const char *sum = const_splat(bias, &none) && none == 0 ? "x" : "x + y";
    return b_map(g, arena_printf(g->arena, "%s(min(max(%s + %d, %d), %d))", dtype_name(s->d), by_half_words(g, sum),
        (int)s->zero, (int)lowest(s->d), (int)highest(s->d)), "x y z", 3, in);
}

// With sums of 32 bits: 64.
static Value *of_sums(Graph *g, const Affine *a, const Steps *s) {
    double most = 0;
    int bits = is_half(s->d) ? 44 : 32;
    for (int i = 0; i < a->n; i++) most = fmax(most, largest(a->at[i].scale));
    while (ldexp(most, bits) >= 0x1p31) bits--;
    if (bits < 16 || !(largest(a->offset) < 0x1p24)) return NULL;
    Value *in[2 * MAX_TERMS + 1], *bias = bias_of(g, a);
    Value *offset = bias ? number(g, 0) : a->offset;
    Value *c = computed(g, OP_Add, offset, number(g, (double)s->zero + 0.5));
    const char *sum = "y", *names = "y";
    double none = 0;
    int n = 0;
    bool biased = bias && !(const_splat(bias, &none) && none == 0);
    in[n++] = rounded(g, c, ldexp(1, bits), DT_I64);
    for (int i = 0; i < a->n; i++) {
        in[n++] = b_cast(g, a->at[i].q, DT_I32);
        in[n++] = rounded(g, a->at[i].scale, ldexp(1, bits), DT_I32);
        names = arena_printf(g->arena, "%s q%d k%d", names, i, i);
        sum = arena_printf(g->arena, "i64(q%d%s) * i64(k%d) + %s", i, biased ? " + b" : "", i, sum);
    }
    if (biased) {
        in[n++] = bias;
        names = arena_printf(g->arena, "%s b", names);
    }
    const char *shifted = bits < 32 ? arena_printf(g->arena, "(%s) >> %d", sum, bits)
                                    : arena_printf(g->arena, "i32((%s) >> 32)", sum);
    if (bits > 32) shifted = arena_printf(g->arena, "(%s >> %d)", shifted, bits - 32);
    return b_map(g, arena_printf(g->arena, "%s(min(max(%s, %d), %d))", dtype_name(s->d), shifted, (int)lowest(s->d),
        (int)highest(s->d)), names, n, in);
}

// ---------------------------------------------------------------- quantised
static Value *quantised(Graph *g, Value *v, const Steps *s, int look);

// max(v, c), min(v, c): on the steps.
static Value *limited(Graph *g, Node *n, const Steps *s, int look) {
    double c = 0;
    if (n->op != OP_Relu && !const_splat(requantize_known(n->in[1]), &c)) return NULL;
    Value *q = quantised(g, n->in[0], s, look);
    double at = (double)rintf((float)c / (float)s->scale) + (double)s->zero;
    if (!q) return NULL;
    if (n->op == OP_Min ? at >= (double)highest(s->d) : at <= (double)lowest(s->d)) return q;
    at = fmin(fmax(at, (double)lowest(s->d)), (double)highest(s->d));
    return b_binary(g, n->op == OP_Min ? OP_Min : OP_Max, q, b_scalar(g, s->d, at));
}

static Value *moved(Graph *g, Node *n, const Steps *s, int look) {
    Value **in = NEW_ARRAY(g->arena, Value *, n->n_in);
    bool all = n->op == OP_Concat;
    for (int i = 0; i < n->n_in; i++) in[i] = i == 0 || all ? quantised(g, n->in[i], s, look) : n->in[i];
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i] && !in[i]) return NULL;
    return b_finish(node_like(g, n, in));
}

// A sum of scaled integers.
static Value *of_integers(Graph *g, Value *v, const Steps *s, int look) {
    Affine a;
    if (!find(g, v, &a, look)) return NULL;
    scale_by(g, &a, OP_Div, number(g, s->scale));
    for (int i = 0; i < a.n; i++)
        if (!a.at[i].scale || !isfinite(largest(a.at[i].scale))) return NULL;
    if (!a.offset || !isfinite(largest(a.offset))) return NULL;
    Value *same = whole_steps(g, &a, s);
    if (same || s->exactly) return same;
    Value *small = of_bytes(g, &a, s);
    Value *sum = small ? small : of_shift(g, &a, s);
    if (!sum && s->short_product && !is_half(s->d)) sum = of_short_products(g, &a, s);
    return sum ? sum : of_sums(g, &a, s);
}

static Value *softmax(Graph *g, Node *n, const Steps *s, int look) {
    Affine a;
    double scale;
    if (!find(g, n->in[0], &a, look) || a.n != 1 || !const_splat(a.at[0].scale, &scale)) return NULL;
    return scale > 0 && const_splat(a.offset, &(double){ 0 }) ? softmax_of_bytes(g, n, a.at[0].q, scale, s) : NULL;
}

// The float v in these steps; NULL: it is not made from integers alone.
static Value *quantised(Graph *g, Value *v, const Steps *s, int look) {
    Node *n = v->def;
    if (!n || look == 0 || n->graph != g) return NULL;
    switch (n->op) {
    case OP_Relu: case OP_Max: case OP_Min: return limited(g, n, s, look - 1);
    case OP_Identity: case OP_Reshape: case OP_Transpose: case OP_Expand: case OP_Slice: case OP_Concat: case OP_Gather:
    case OP_WindowMax: case OP_ReduceMax: return moved(g, n, s, look - 1);
    default: break;
    }
    if (n->op == OP_Softmax && !s->exactly) return softmax(g, n, s, look - 1);
    Value *sum = of_integers(g, v, s, look);
    return sum || s->exactly ? sum : table_of_byte(g, v, s);
}

// Cast(Round(v / scale) + zero)
static Value *rewritten(Graph *g, Node *n, const Target *machine) {
    Steps s = { .scale = 1, .d = n->out[0]->type.dtype, .exactly = !machine->fixed_point,
        .short_product = machine->short_product };
    double zero = 0, by;
    bool integer = dtype_is_byte(s.d) || (is_half(s.d) && machine->fixed_point);
    if (n->op != OP_Cast || !integer || n->in[0]->type.dtype != DT_F32) return NULL;
    Node *m = n->in[0]->def;
    if (m && m->op == OP_Add && const_splat(requantize_known(m->in[1]), &zero)) m = m->in[0]->def;
    if (!m || m->op != OP_Round || !(fabs(zero) <= 65536)) return NULL;
    s.zero = (int64_t)zero;
    Value *v = m->in[0];
    if (v->def && v->def->op == OP_Div && const_splat(requantize_known(v->def->in[1]), &by) && by > 0) {
        s.scale = by;
        v = v->def->in[0];
    } else if (v->def && v->def->op == OP_Mul && const_splat(requantize_known(v->def->in[1]), &by)
        && frexp(by, &(int){ 0 }) == 0.5) {             // as divisions by powers of two are written
        s.scale = 1 / by;
        v = v->def->in[0];
    }
    Value *q = quantised(g, v, &s, MAX_LOOK);
    return q && type_equal(&q->type, &n->out[0]->type) ? q : NULL;
}

static void requantize_graph(Rewrite *r, Graph *g, const Target *machine) {
    for (Node *n = g->first; n; n = n->next) {
        rewrite_operands(r, n);
        for (int i = 0; i < n->n_bodies; i++) requantize_graph(r, n->bodies[i], machine);
        g->cursor = n;
        g->loc = n->loc;
        Value *v = rewritten(g, n, machine);
        if (v && v != n->out[0]) rewrite_set(r, n->out[0], v);
    }
    g->cursor = NULL;
    rewrite_outputs(r, g);
}

bool pass_requantize(Graph *g, const Options *o) {
    Rewrite r = { .scratch = arena_new() };
    requantize_graph(&r, g, &o->machine);
    arena_free(r.scratch);
    return pass_dce(g) || r.changed;
}
