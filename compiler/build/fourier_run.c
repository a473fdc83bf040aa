// SPDX-License-Identifier: MIT OR Apache-2.0
// The transforms, windows and filters of build/fourier.c where only the running program knows their sizes.
//
// In: dimensions and numbers that are computed. Out: the same products and formulas, whose matrices are values of f64
// computed from coordinates instead of constants.
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

// x [rows, length, parts] -> [rows, out, parts]: what is missing of `in` elements is 0.
Value *b_fourier_rows(Graph *g, Value *x, const Fourier *t) {
    if (!x) return NULL;
    Dim rows = x->type.dim[0];
    if (x->type.dim[1] != t->in) x = b_gather(g, x, b_iota(g, 1, &t->in, 0, DT_I64), 1);
    x = b_reshape(g, x, 2, (Dim[]){ rows, dim_mul(g, t->in, t->in_parts) });
    return b_reshape(g, b_matmul(g, x, transform_matrix(g, t, x ? x->type.dtype : DT_F32)), 3,
        (Dim[]){ rows, t->out, t->out_parts });
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
