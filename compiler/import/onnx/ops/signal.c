// SPDX-License-Identifier: MIT OR Apache-2.0
// Fourier transforms, window functions, determinants.
//
// In: an OnnxNode with known lengths. Out: fast transforms (ops/fft.c) or, where the length has a large prime factor,
// products with constant matrices: a transform of n (complex) numbers into k is one real matrix [2n, 2k] of cosines
// and sines.
#include "signal.h"

#include <math.h>
#include <string.h>

#define TWO_PI 6.283185307179586476925

typedef struct Transform { int64_t in, length, out; int in_parts, out_parts; bool inverse, onesided; } Transform;

// Row (i, part), column (k, part): how much element i (real or imaginary) adds to result k.
static double coefficient(const Transform *t, int64_t i, int part, int64_t k, int out_part) {
    double c, s;
    fft_turn(i * k, t->length, &c, &s);
    if (t->inverse && t->onesided) {                    // the other half of the spectrum is the conjugate of this one
        bool alone = i == 0 || 2 * i == t->length;
        return (part ? -s : c) * (alone ? 1 : 2) / (double)t->length;
    }
    if (t->inverse) s = -s;
    double v = part == out_part ? c : part ? s : -s;
    return t->inverse ? v / (double)t->length : v;
}

static Value *transform_matrix(Graph *g, const Transform *t, DType d) {
    int64_t rows = t->in * t->in_parts, columns = t->out * t->out_parts;
    if (rows > INT32_MAX || columns > INT32_MAX || rows * columns > INT64_C(1) << 26) {
        diag_error_as(EXIT_LIMIT, g->loc, "a transform of length %lld is too long", (long long)t->length);
        return NULL;
    }
    double *m = NEW_ARRAY(g->arena, double, rows * columns);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++)
            m[r * columns + c] = coefficient(
                t, r / t->in_parts, (int)(r % t->in_parts), c / t->out_parts, (int)(c % t->out_parts));
    return b_floats(g, d, 2, (Dim[]){ rows, columns }, m);
}

// v [outer, in * in_parts] -> [outer, out * out_parts]
static Value *by_matrix(Graph *g, Value *v, const Transform *t) {
    return b_matmul(g, v, transform_matrix(g, t, v->type.dtype));
}

// Half a spectrum [outer, length / 2 + 1] and its other half: the conjugate, backwards.
static Value *mirrored(Graph *g, Value *half, int64_t length, bool negate) {
    int64_t count = length - length / 2 - 1;
    if (!half || count < 1) return half;
    Value *rest = b_slice(g, half, (int64_t[]){ 0, count }, (int64_t[]){ 1, -1 }, (Dim[]){ half->type.dim[0], count });
    if (negate) rest = b_unary(g, OP_Neg, rest);
    return b_concat(g, 1, 2, (Value *[]){ half, rest });
}

// The spectrum of real numbers: its first half tells the other, and the middle bin of an even length is real.
static Value *of_real(Graph *g, Value *x, const Transform *t, bool imaginary) {
    int64_t half = t->length / 2 + 1, own = imaginary && t->length % 2 == 0 ? half - 1 : half;
    Value *v = b_part(g, x, 1, 0, own);
    if (own != half && v)
        v = b_concat(g, 1, 2, (Value *[]){ v, b_filled(g, v->type.dtype, 0, 2, (Dim[]){ v->type.dim[0], 1 }) });
    return t->onesided ? v : mirrored(g, v, t->length, imaginary);
}

// The same by stages; small floats are computed in f32.
static Value *by_stages(Graph *g, Value *v, const Transform *t) {
    DType d = v->type.dtype;
    Dim outer = v->type.dim[0];
    v = b_reshape(g, b_cast(g, v, dtype_wide(d)), 3, (Dim[]){ outer, t->in, t->in_parts });
    Value *part[2] = { b_remove(g, b_part(g, v, 2, 0, 1), 2),
        t->in_parts == 2 ? b_remove(g, b_part(g, v, 2, 1, 1), 2) : NULL };
    for (int i = 0; i < 2 && t->inverse && t->onesided; i++) part[i] = mirrored(g, part[i], t->length, i == 1);
    if (!part[0]) return NULL;
    b_fft(g, &part[0], &part[1], t->inverse);
    for (int i = 0; i < t->out_parts; i++) {
        if (!part[i]) part[i] = b_filled(g, dtype_wide(d), 0, 2, (Dim[]){ outer, t->length });
        if (t->in_parts == 1 && !t->inverse) part[i] = of_real(g, part[i], t, i == 1);
        else if (t->out != t->length) part[i] = b_part(g, part[i], 1, 0, t->out);
        if (t->inverse && part[i])
            part[i] = b_binary(g, OP_Mul, part[i], b_like(g, part[i], 1 / (double)t->length));
        part[i] = b_insert(g, part[i], 2);
    }
    v = t->out_parts == 1 ? part[0] : b_concat(g, 2, 2, part);
    return b_cast(g, b_reshape(g, v, 2, (Dim[]){ outer, t->out * t->out_parts }), d);
}

// x [..., axis, ..., 1 or 2] along axis.
static Value *transform(Graph *g, Value *x, int axis, int64_t length, bool inverse, bool onesided) {
    if (!x) return NULL;
    int rank = x->type.rank, last = rank - 1, at = rank - 2;
    if (!dim_is_const(x->type.dim[axis]) || !dim_is_const(x->type.dim[last]))
        return b_static(g, x, "a Fourier transform"), NULL;
    Transform t = { .length = length,
        .in_parts = (int)x->type.dim[last],
        .out_parts = inverse && onesided ? 1 : 2,
        .inverse = inverse,
        .onesided = onesided };
    t.in = inverse && onesided ? length / 2 + 1 : length;
    t.out = onesided && !inverse ? length / 2 + 1 : length;
    if (length < 1 || length > INT32_MAX || (t.in_parts != 1 && t.in_parts != 2))
        return graph_fail(g, "the last dimension must be 1 (real) or 2 (complex), the length positive");
    int64_t lo[MAX_RANK] = { 0 }, hi[MAX_RANK] = { 0 };
    hi[axis] = t.in - x->type.dim[axis];
    Value *v = b_swap(g, b_pad(g, x, lo, hi, NULL, NULL), axis, at);
    if (!v) return NULL;
    Type out = v->type;
    v = b_reshape(g, v, 2, (Dim[]){ type_product(g, &v->type, 0, at), t.in * t.in_parts });
    out.dim[at] = t.out;
    out.dim[last] = t.out_parts;
    v = v && fft_fits(length) ? by_stages(g, v, &t) : v ? by_matrix(g, v, &t) : NULL;
    return b_swap(g, b_reshape(g, v, rank, out.dim), axis, at);
}

// Which axis of known sizes it is decides at run time between transforms that are all known.
typedef struct Choice { Value *x, *axis; int at; bool inverse; } Choice;

static Value *transform_here(Graph *g, void *of) {
    const Choice *c = of;
    return transform(g, c->x, c->at, c->x->type.dim[c->at], c->inverse, false);
}

static Branch transform_along;

static Value *transform_next(Graph *g, void *of) {
    Choice next = *(const Choice *)of;
    next.at++;
    return transform_along(g, &next);
}

static Value *transform_along(Graph *g, void *of) {
    const Choice *c = of;
    if (c->at == c->x->type.rank - 2) return transform_here(g, of);
    Value *here = B_MAP(g, arena_printf(g->arena, "x == %d", c->at), "x", c->axis);
    return b_choose(g, here, transform_here, transform_next, of);
}

Value *onnx_dft(OnnxNode *n) {
    if (!onnx_inputs(n, 1)) return NULL;
    Value *x = n->in[0];
    int axis, count;
    int64_t given = -2, length;
    bool inverse = onnx_int(n, "inverse", 0) != 0, onesided = onnx_int(n, "onesided", 0) != 0,
         known = onnx_knows(n, 1);
    if (n->opset < 20) given = onnx_int(n, "axis", 1);
    else if (!onnx_knows(n, 2) && !onesided && !onnx_optional(n, 1) && type_is_static(&x->type) && x->type.rank > 1) {
        Value *at = b_normal_axes(n->g, b_cast(n->g, b_scalar_of(n->g, n->in[2]), DT_I64), x->type.rank);
        return transform_along(n->g, &(Choice){ x, at, 0, inverse });
    } else if (!onnx_knows(n, 2)) return onnx_dft_run(n, n->in[2], inverse, onesided);
    else if (onnx_optional(n, 2) && !onnx_ints_input(n, 2, "the axis", &given, &count, 1)) return NULL;
    if (given < -x->type.rank || given >= x->type.rank)
        return onnx_fail(n, "axis %lld is outside a tensor of rank %d", (long long)given, x->type.rank);
    if (!known) return onnx_dft_run(n, b_number(n->g, given < 0 ? given + x->type.rank : given), inverse, onesided);
    if (x->type.rank < 2 || !onnx_axis(n, given, x->type.rank, &axis) || axis == x->type.rank - 1)
        return onnx_fail(n, "the axis must not be the last one, which holds real and imaginary parts");
    length = inverse && onesided ? 2 * (x->type.dim[axis] - 1) : x->type.dim[axis];
    if (onnx_optional(n, 1) && !onnx_ints_input(n, 1, "dft_length", &length, &count, 1)) return NULL;
    return transform(n->g, x, axis, length, inverse, onesided);
}

// Frames of the signal [b, t, parts], every frame_step samples, times a window, transformed: [b, frames, bins, 2].
Value *onnx_stft(OnnxNode *n) {
    if (!onnx_inputs(n, 2)) return NULL;
    Value *x = n->in[0], *window = onnx_optional(n, 2);
    bool known = onnx_knows(n, 1) && onnx_knows(n, 3) && type_is_static(&x->type)
        && (!window || type_is_static(&window->type));
    if (!known && x->type.rank == 3 && dim_is_const(x->type.dim[2]) && (!window || window->type.rank == 1))
        return onnx_stft_run(n, window);
    if (!b_static(n->g, x, "STFT")) return NULL;
    int64_t step,
        length = window && window->type.rank == 1 ? window->type.dim[0] :
        x->type.rank == 3                         ? x->type.dim[1] :
                                                    0;
    int count;
    if (!onnx_ints_input(n, 1, "frame_step", &step, &count, 1)) return NULL;
    if (onnx_optional(n, 3) && !onnx_ints_input(n, 3, "frame_length", &length, &count, 1)) return NULL;
    if (x->type.rank != 3 || step < 1 || length < 1 || length > x->type.dim[1])
        return onnx_fail(n, "the signal must be [batch, samples, 1 or 2] and hold a frame");
    int64_t frames = (x->type.dim[1] - length) / step + 1;
    if (frames > INT32_MAX / length) return onnx_fail(n, "has too many frames");
    int64_t *at = NEW_ARRAY(n->g->arena, int64_t, frames * length);
    for (int64_t i = 0; i < frames * length; i++) at[i] = i / length * step + i % length;
    Value *v = b_gather(
        n->g, x, b_reshape(n->g, b_ints(n->g, (int)(frames * length), at), 2, (Dim[]){ frames, length }), 1);
    if (window) v = b_binary(n->g, OP_Mul, v, b_along(n->g, window, 4, 2));
    return transform(n->g, v, 2, length, false, onnx_int(n, "onesided", 1) != 0);
}

// a0 - a1 cos(2 pi i / n) + a2 cos(4 pi i / n), with n the size, less 1 unless periodic.
Value *onnx_window_function(OnnxNode *n) {
    static const struct {
        const char *name;
        double a[3];
    } kinds[] = { { "hann", { 0.5, 0.5, 0 } }, { "hamming", { 25.0 / 46, 21.0 / 46, 0 } },
        { "blackman", { 0.42, 0.5, 0.08 } } };
    int64_t size;
    int count;
    DType d;
    if (!onnx_inputs(n, 1) || !onnx_dtype(n, "output_datatype", DT_F32, &d)) return NULL;
    for (size_t k = 0; k < COUNT(kinds) && !onnx_knows(n, 0); k++)
        if (!strcmp(kinds[k].name, n->argument)) return onnx_window_run(n, kinds[k].a, d);
    if (!onnx_ints_input(n, 0, "the size", &size, &count, 1)) return NULL;
    if (size < 0 || size > 1 << 22) return onnx_fail(n, "the size is %lld", (long long)size);
    double span = (double)(onnx_int(n, "periodic", 1) ? size : size - 1),
           *v = NEW_ARRAY(n->g->arena, double, size + 1);
    for (size_t k = 0; k < COUNT(kinds); k++) {
        if (strcmp(kinds[k].name, n->argument)) continue;
        const double *a = kinds[k].a;
        for (int64_t i = 0; i < size; i++)
            v[i] = span != 0 ?
                a[0] - a[1] * cos(TWO_PI * (double)i / span) + a[2] * cos(2 * TWO_PI * (double)i / span) :
                1;
    }
    return b_floats(n->g, d, 1, &size, v);
}

// Triangles over the bins of a spectrum, evenly spaced on the mel scale m = 2595 log10(1 + f / 700): [dft_length / 2
// + 1, bins].
Value *onnx_mel_weights(OnnxNode *n) {
    double in[5];
    DType d;
    if (!onnx_dtype(n, "output_datatype", DT_F32, &d)) return NULL;
    for (int i = 0; i < 5; i++) {
        if (onnx_optional(n, i) && !value_const(n->in[i])) return onnx_mel_weights_run(n, d);
        Tensor *t = onnx_const_number(n, i, "a parameter");
        if (!t) return NULL;
        in[i] = tensor_get_f(t, 0);
    }
    if (!(in[0] >= 1 && in[0] < 1 << 16 && in[1] >= 1 && in[1] < 1 << 24 && in[2] > 0 && in[0] * in[1] <= 1 << 23))
        return onnx_fail(n, "a parameter is out of range");
    int64_t bins = (int64_t)in[0], spectrum = (int64_t)in[1] / 2 + 1;
    double low = 2595 * log10(1 + in[3] / 700), step = (2595 * log10(1 + in[4] / 700) - low) / (double)(bins + 2);
    int64_t *edge = NEW_ARRAY(n->g->arena, int64_t, bins + 2);
    double *w = NEW_ARRAY(n->g->arena, double, spectrum * bins);
    for (int64_t i = 0; i < bins + 2; i++) {
        double hertz = 700 * (pow(10, (low + step * (double)i) / 2595) - 1), bin = floor((in[1] + 1) * hertz / in[2]);
        edge[i] = !(bin > 0) ? 0 : bin >= (double)spectrum ? spectrum - 1 : (int64_t)bin;
    }
    for (int64_t i = 0; i < bins; i++) {
        int64_t left = edge[i], middle = edge[i + 1], right = edge[i + 2];
        if (left == middle) w[middle * bins + i] = 1;
        for (int64_t j = left; j <= middle && left < middle; j++)
            w[j * bins + i] = (double)(j - left) / (double)(middle - left);
        for (int64_t j = middle; j < right; j++) w[j * bins + i] = (double)(right - j) / (double)(right - middle);
    }
    return b_floats(n->g, d, 2, (Dim[]){ spectrum, bins }, w);
}

// ---------------------------------------------------------------- determinants

#define MAX_DET 5               // expansion along the first row: size! products

static Value *determinant(Graph *g, Value *const m[MAX_DET][MAX_DET], int size, int row, unsigned columns) {
    Value *sum = NULL;
    bool minus = false;
    for (int c = 0; c < size; c++) {
        if (!(columns >> c & 1)) continue;
        Value *v = m[row][c];
        if (row + 1 < size) v = b_binary(g, OP_Mul, v, determinant(g, m, size, row + 1, columns & ~(1u << c)));
        sum = sum ? b_binary(g, minus ? OP_Sub : OP_Add, sum, v) : v;
        minus = !minus;
    }
    return sum;
}

Value *onnx_det(OnnxNode *n) {
    if (!onnx_inputs(n, 1)) return NULL;
    Value *x = n->in[0], *m[MAX_DET][MAX_DET];
    int rank = x->type.rank;
    Dim size = rank >= 2 ? x->type.dim[rank - 1] : 0;
    if (rank < 2 || x->type.dim[rank - 2] != size) return onnx_fail(n, "the last two dimensions must be square");
    if (size < 1 || size > MAX_DET) return onnx_fail(n, "matrices of more than %d rows are not supported", MAX_DET);
    for (int i = 0; i < size; i++)
        for (int j = 0; j < size; j++)
            m[i][j] = b_remove(n->g,
                b_remove(n->g, b_part(n->g, b_part(n->g, x, rank - 2, i, 1), rank - 1, j, 1), rank - 1), rank - 2);
    return determinant(n->g, m, (int)size, 0, (1u << size) - 1);
}
