// SPDX-License-Identifier: MIT OR Apache-2.0
// Fourier transforms of a known length along an axis, the windows before them and the filters behind them.
//
// In: x [..., axis, ..., 1 or 2], real or real and imaginary parts. Out: fast transforms (build/fft.c, build/chirp.c)
// or, of short lengths with a large prime factor, products with constant matrices: a transform of n (complex) numbers
// into k is one real matrix [2n, 2k] of cosines and sines.
#include "build/build.h"

#include <math.h>

#define TWO_PI 6.283185307179586476925
enum { LARGEST_MATRIX = 1 << 19 };                      // of numbers

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
    Arena *scratch = arena_new();
    double *m = NEW_ARRAY(scratch, double, rows * columns);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++)
            m[r * columns + c] = coefficient(
                t, r / t->in_parts, (int)(r % t->in_parts), c / t->out_parts, (int)(c % t->out_parts));
    Value *matrix = b_floats(g, d, 2, (Dim[]){ rows, columns }, m);
    arena_free(scratch);
    return matrix;
}

// Short enough for a matrix, which is faster than passes over memory.
static bool is_short(Graph *g, const Transform *t) {
    int64_t rows = t->in * t->in_parts, columns = t->out * t->out_parts;
    return rows <= LARGEST_MATRIX / columns && b_table(g, (double)(rows * columns));
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
    Value *part[2] = { NULL, NULL };
    for (int i = 0; i < t->in_parts; i++) part[i] = b_remove(g, b_part(g, v, 2, i, 1), 2);
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
Value *b_fourier(Graph *g, Value *x, int axis, int64_t length, bool inverse, bool onesided) {
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
    v = v && !fft_fits(length) && is_short(g, &t) ? by_matrix(g, v, &t) : v ? by_stages(g, v, &t) : NULL;
    return b_swap(g, b_reshape(g, v, rank, out.dim), axis, at);
}

// Which axis of known sizes it is decides at run time between transforms that are all known.
typedef struct Choice { Value *x, *axis; int at; bool inverse; } Choice;

static Value *transform_here(Graph *g, void *of) {
    const Choice *c = of;
    return b_fourier(g, c->x, c->at, c->x->type.dim[c->at], c->inverse, false);
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

Value *b_fourier_along(Graph *g, Value *x, Value *axis, bool inverse) {
    return transform_along(g, &(Choice){ x, axis, 0, inverse });
}

// ---------------------------------------------------------------- windows, filters

Value *b_frame_places(Graph *g, int64_t frames, int64_t length, int64_t step) {
    if (!b_table(g, (double)frames * (double)length))
        return b_frame_places_run(g, frames, length, b_scalar(g, DT_I64, (double)step));
    int64_t *at = NEW_ARRAY(g->arena, int64_t, frames * length);
    for (int64_t i = 0; i < frames * length; i++) at[i] = i / length * step + i % length;
    return b_reshape(g, b_ints(g, (int)(frames * length), at), 2, (Dim[]){ frames, length });
}

Value *b_frames(Graph *g, Value *x, int64_t frames, int64_t length, int64_t step) {
    return b_gather(g, x, b_frame_places(g, frames, length, step), 1);
}

Value *b_cosine_window(Graph *g, DType d, int64_t size, bool periodic, const double *a) {
    if (!b_table(g, (double)size)) return b_cosine_window_run(g, d, size, periodic, a);
    double span = (double)(periodic ? size : size - 1), *v = NEW_ARRAY(g->arena, double, size + 1);
    for (int64_t i = 0; i < size; i++) {
        double turn = TWO_PI * (double)i / span;
        v[i] = span != 0 ? a[0] - a[1] * cos(turn) + a[2] * cos(2 * TWO_PI * (double)i / span) : 1;
    }
    return b_floats(g, d, 1, &size, v);
}

Value *b_mel_weights(Graph *g, DType d, const MelFilters *m) {
    int64_t bins = m->bins, spectrum = m->length / 2 + 1;
    double low = 2595 * log10(1 + m->low / 700), step = (2595 * log10(1 + m->high / 700) - low) / (double)(bins + 2);
    int64_t *edge = NEW_ARRAY(g->arena, int64_t, bins + 2);
    double *w = NEW_ARRAY(g->arena, double, spectrum * bins);
    for (int64_t i = 0; i < bins + 2; i++) {
        double hertz = 700 * (pow(10, (low + step * (double)i) / 2595) - 1);
        double bin = floor(((double)m->length + 1) * hertz / m->rate);
        edge[i] = !(bin > 0) ? 0 : bin >= (double)spectrum ? spectrum - 1 : (int64_t)bin;
    }
    for (int64_t i = 0; i < bins; i++) {
        int64_t left = edge[i], middle = edge[i + 1], right = edge[i + 2];
        if (left == middle) w[middle * bins + i] = 1;
        for (int64_t j = left; j <= middle && left < middle; j++)
            w[j * bins + i] = (double)(j - left) / (double)(middle - left);
        for (int64_t j = middle; j < right; j++) w[j * bins + i] = (double)(right - j) / (double)(right - middle);
    }
    return b_floats(g, d, 2, (Dim[]){ spectrum, bins }, w);
}
