// SPDX-License-Identifier: MIT OR Apache-2.0
// The transforms, windows and filters of build/fourier.c where only the running program knows their sizes.
//
// In: dimensions and numbers that are computed. Out: the same products and formulas, whose matrices are values of f64
// computed from coordinates instead of constants. A transform of any but a short length is a chirp's (build/chirp.c),
// padded to one length that has room for the largest: its tables are linear in that, whatever the length is.
#include "build/build.h"

static Value *real_number(Graph *g, Dim d) { return b_cast(g, b_number(g, d), DT_F64); }

// Row (i, part), column (k, part): how much element i adds to result k.
static Value *transform_matrix(Graph *g, const Fourier *t, DType d) {
    Dim dims[4] = { t->in, t->in_parts, t->out, t->out_parts };
    Value *at[4], *length = real_number(g, t->length);
    for (int i = 0; i < 4; i++) at[i] = b_iota(g, 4, dims, i, DT_F64);
    Value *angle = B_MAP(g, "6.283185307179586476925 * floormod(x * y, z) / z", "x y z", at[0], at[2], length);
    const char *part = t->inverse && t->onesided ? "y == 0 ? cos(x) : -sin(x)" :
        t->inverse                               ? "y == z ? cos(x) : (y == 0 ? sin(x) : -sin(x))" :
                                                   "y == z ? cos(x) : (y == 0 ? -sin(x) : sin(x))";
    Value *m = B_MAP(g, part, "x y z", angle, at[1], at[3]);
    // the other half of a real result's spectrum is the conjugate of this one
    if (t->inverse && t->onesided) m = B_MAP(g, "x * (y == 0 || 2 * y == z ? 1 : 2)", "x y z", m, at[0], length);
    if (t->inverse) m = b_binary(g, OP_Div, m, length);
    Dim rows = dim_mul(g, t->in, t->in_parts), columns = dim_mul(g, t->out, t->out_parts);
    return b_reshape(g, b_cast(g, m, d), 2, (Dim[]){ rows, columns });
}

static Value *by_matrix(Graph *g, Value *x, const Fourier *t) {
    Dim rows = x->type.dim[0];
    x = b_reshape(g, x, 2, (Dim[]){ rows, dim_mul(g, t->in, t->in_parts) });
    return b_reshape(g, b_matmul(g, x, transform_matrix(g, t, x ? x->type.dtype : DT_F32)), 3,
        (Dim[]){ rows, t->out, t->out_parts });
}

// ---------------------------------------------------------------- by a chirp

enum { LARGEST_MATRIX = 1 << 14 };                      // numbers that every run computes

// w(j) = e^(-+ pi i j^2 / n) at each number of `at`: the angle of j^2 mod 2 n
static void chirp_at(Graph *g, Value *at, Dim n, bool inverse, Value **re, Value **im) {
    Value *angle = B_MAP(g, "3.141592653589793238463 * f64(floormod(x * x, 2 * y)) / f64(y)", "x y", at,
        b_number(g, n));
    *re = b_unary(g, OP_Cos, angle);
    *im = B_MAP(g, inverse ? "sin(x)" : "-sin(x)", "x", angle);
}

// The spectrum [1, m] of c(j) = c(m - j), the chirp's conjugate where j < n, divided by m.
static void chirp_spectrum(Graph *g, Dim n, int64_t m, bool inverse, Value **re, Value **im) {
    Value *j = b_iota(g, 2, (Dim[]){ 1, m }, 1, DT_I64);
    Value *from_end = B_MAP(g, arena_printf(g->arena, "min(x, %lld - x)", (long long)m), "x", j);
    Value *size = b_number(g, n);
    chirp_at(g, from_end, n, !inverse, re, im);
    const char *kept = arena_printf(g->arena, "y < z ? x / %lld : 0", (long long)m);
    *re = B_MAP(g, kept, "x y z", *re, from_end, size);
    *im = B_MAP(g, kept, "x y z", *im, from_end, size);
    if (*re && *im) b_fft(g, re, im, false);
}

// Part i of x [rows, in, parts] as [rows, length]: the other half of a spectrum is its conjugate, backwards.
static Value *whole_part(Graph *g, Value *x, const Fourier *t, int i) {
    Value *v = b_remove(g, b_part(g, x, 2, i, 1), 2);
    if (!t->inverse || !t->onesided) return v;
    Value *k = b_iota(g, 1, &t->length, 0, DT_I64), *n = b_number(g, t->length);
    v = b_gather(g, v, B_MAP(g, "min(x, y - x)", "x y", k, n), 1);
    return i ? B_MAP(g, "2 * y > z ? -x : x", "x y z", v, k, n) : v;
}

// The first `out` elements of re, im [rows, m] times the chirp, and by the length on the way back.
static Value *chirp_ends(Graph *g, const Fourier *t, Value *re, Value *im) {
    Value *w, *w_im, *part[2];
    chirp_at(g, b_iota(g, 1, &t->out, 0, DT_I64), t->length, t->inverse, &w, &w_im);
    DType d = re->type.dtype;
    part[0] = b_part(g, re, 1, 0, t->out);
    part[1] = b_part(g, im, 1, 0, t->out);
    w = b_cast(g, w, d);
    w_im = b_cast(g, w_im, d);
    if (!part[0] || !part[1] || !w || !w_im) return NULL;
    b_complex_times(g, &part[0], &part[1], w, w_im);
    for (int i = 0; i < t->out_parts; i++) {
        if (t->inverse) part[i] = b_binary(g, OP_Div, part[i], b_cast(g, b_number(g, t->length), d));
        part[i] = b_insert(g, part[i], 2);
    }
    return t->out_parts == 1 ? part[0] : b_concat(g, 2, 2, part);
}

static Value *by_chirp(Graph *g, Value *x, const Fourier *t) {
    DType d = x->type.dtype;
    int64_t m = chirp_length(t->most);
    Value *w, *w_im, *of_c, *of_c_im, *im = NULL, *places = b_iota(g, 1, &m, 0, DT_I64);
    x = b_cast(g, x, dtype_wide(d));
    Value *re = whole_part(g, x, t, 0);
    if (t->in_parts == 2) im = whole_part(g, x, t, 1);
    chirp_at(g, b_iota(g, 1, &t->length, 0, DT_I64), t->length, t->inverse, &w, &w_im);
    chirp_spectrum(g, t->length, m, t->inverse, &of_c, &of_c_im);
    w = b_cast(g, w, dtype_wide(d));
    w_im = b_cast(g, w_im, dtype_wide(d));
    of_c = b_cast(g, of_c, dtype_wide(d));
    of_c_im = b_cast(g, of_c_im, dtype_wide(d));
    if (!re || (t->in_parts == 2 && !im) || !w_im || !of_c || !of_c_im) return NULL;
    b_complex_times(g, &re, &im, w, w_im);
    re = b_gather(g, re, places, 1);                    // 0 beyond the last element
    im = b_gather(g, im, places, 1);
    if (!re || !im) return NULL;
    b_fft(g, &re, &im, false);
    if (!re || !im) return NULL;
    b_complex_times(g, &re, &im, of_c, of_c_im);
    if (!re || !im) return NULL;
    b_fft(g, &im, &re, false);                          // back, by the same tables: parts changed before and behind
    return re && im ? b_cast(g, chirp_ends(g, t, re, im), d) : NULL;
}

// x [rows, length, parts] -> [rows, out, parts]: what is missing of `in` elements is 0.
Value *b_fourier_rows(Graph *g, Value *x, const Fourier *t) {
    if (!x) return NULL;
    if (x->type.dim[1] != t->in) x = b_gather(g, x, b_iota(g, 1, &t->in, 0, DT_I64), 1);
    if (!x) return NULL;
    if (dim_is_const(t->length)) return b_fourier(g, x, 1, t->length, t->inverse, t->onesided);
    double numbers = (double)t->most * (double)t->most * (double)t->in_parts * (double)t->out_parts;
    return t->most < 1 || numbers <= LARGEST_MATRIX ? by_matrix(g, x, t) : by_chirp(g, x, t);
}

// The sizes of a transform over `length`.
void fourier_sizes(Graph *g, Fourier *t, Dim length) {
    Dim half = dim_add(g, dim_div(g, length, 2), 1);
    t->length = length;
    t->in = t->inverse && t->onesided ? half : length;
    t->out = t->onesided && !t->inverse ? half : length;
    t->out_parts = t->inverse && t->onesided ? 1 : 2;
}

Value *b_frame_places_run(Graph *g, Dim frames, Dim length, Value *step) {
    Dim dims[2] = { frames, length };
    Value *frame = b_iota(g, 2, dims, 0, DT_I64), *place = b_iota(g, 2, dims, 1, DT_I64);
    return B_MAP(g, "x * z + y", "x y z", frame, place, step);
}

Value *b_frames_run(Graph *g, Value *x, Dim frames, Dim length, Value *step) {
    return b_gather(g, x, b_frame_places_run(g, frames, length, step), 1);
}

Value *b_cosine_window_run(Graph *g, DType d, Dim size, bool periodic, const double *a) {
    Value *span = B_MAP(g, periodic ? "x" : "x - 1", "x", real_number(g, size));
    const char *text = arena_printf(g->arena,
        "y == 0 ? 1 : %.17g - %.17g * cos(6.283185307179586476925 * x / y) + %.17g * cos(12.56637061435917295385 * x "
        "/ y)",
        a[0], a[1], a[2]);
    return b_cast(g, B_MAP(g, text, "x y", b_iota(g, 1, &size, 0, DT_F64), span), d);
}

Value *b_mel_weights_run(Graph *g, DType d, Dim bins, Dim spectrum, Value *const in[5]) {
    static const char mel[] = "2595 * log(1 + x / 700) / 2.302585092994045684";
    Value *edge[3];
    Value *low = B_MAP(g, mel, "x", in[3]), *high = B_MAP(g, mel, "x", in[4]);
    Value *step = B_MAP(g, "(y - x) / (z + 2)", "x y z", low, high, in[0]),
          *last = B_MAP(g, "x - 1", "x", real_number(g, spectrum));
    Value *j = b_iota(g, 2, (Dim[]){ spectrum, 1 }, 0, DT_F64), *i = b_iota(g, 2, (Dim[]){ 1, bins }, 1, DT_F64);
    for (int k = 0; k < 3; k++) {
        const char *text = arena_printf(g->arena, "700 * (pow(10, (x + y * (z + %d)) / 2595) - 1)", k);
        Value *hertz = B_MAP(g, text, "x y z", low, step, i);
        edge[k] = B_MAP(g, "max(min(floor((y + 1) * x / z), w), 0)", "x y z w", hertz, in[1], in[2], last);
    }
    Value *up = B_MAP(
        g, "y == z ? (x == z ? 1 : 0) : x >= y && x <= z ? (x - y) / (z - y) : 0", "x y z", j, edge[0], edge[1]);
    return b_cast(g, B_MAP(g, "x >= y && x < z ? (z - x) / (z - y) : w", "x y z w", j, edge[1], edge[2], up), d);
}
