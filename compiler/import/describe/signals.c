// SPDX-License-Identifier: MIT OR Apache-2.0
// Calls over signals: Fourier transforms, of a whole axis or of frames under a window.
//
// In: real tensors, or complex ones, whose numbers are pairs along a last axis. Out: one value, built by build/.
#include "import/describe/describe.h"

#include <math.h>
#include <string.h>

// rfft: x real -> [..., n / 2 + 1, ..., 2], irfft back; fft, ifft: all of the spectrum, of pairs or real numbers
burn_value *language_fourier(const burn_place *at, burn_value *x, int64_t axis, int64_t length) {
    Graph *g = here(at, NULL);
    bool inverse = at->call[0] == 'i', half = strstr(at->call, "rfft") != NULL;
    int i;
    if (!x) return NULL;
    if (!dtype_is_float(x->type.dtype)) return graph_fail(g, "wants floats, not %s", shown(g, x));
    if (half && !inverse) x = b_insert(g, x, x->type.rank);
    else if (x->type.rank < 2 || x->type.dim[x->type.rank - 1] != 2)
        return graph_fail(g, "wants pairs along the last axis, not %s", shown(g, x));
    if (!x || !axis_in(x, axis < 0 ? axis - 1 : axis, &i) || !b_static(g, x, at->call)) return NULL;
    if (i == x->type.rank - 1) return graph_fail(g, "the last axis is that of the pairs");
    int64_t n = length ? length : half && inverse ? 2 * (x->type.dim[i] - 1) : x->type.dim[i];
    if (n < 1) return graph_fail(g, "a length of %lld", (long long)n);
    Value *y = b_fourier(g, x, i, n, inverse, half);
    return half && inverse && y ? b_remove(g, y, y->type.rank - 1) : y;
}

// ---------------------------------------------------------------- frames

typedef struct Frames { int64_t length, hop, shift; Value *window; double scale; } Frames;

static bool frames_in(Graph *g, const struct burn_stft *o, DType d, Frames *f) {
    f->length = o->n_fft;
    f->hop = o->hop ? o->hop : o->n_fft / 4;
    f->shift = yes(o->center) ? o->n_fft / 2 : 0;
    f->scale = o->normalized == 1 ? 1 / sqrt((double)o->n_fft) : 1;
    if (f->length < 1 || f->hop < 1 || f->hop > f->length)
        return graph_fail(g, "frames of %lld every %lld", (long long)f->length, (long long)f->hop);
    f->window = b_filled(g, d, 1, 1, &f->length);
    if (!o->window) return f->window != NULL;
    const Type *t = &o->window->type;
    if (t->rank != 1 || !dim_is_const(t->dim[0]) || t->dim[0] > f->length)
        return graph_fail(g, "the window is a list of up to %lld numbers, not %s", (long long)f->length,
            shown(g, o->window));
    int64_t lo = (f->length - t->dim[0]) / 2, hi = f->length - t->dim[0] - lo, none = 0;
    f->window = b_pad(g, b_cast(g, o->window, d), &lo, &hi, &none, NULL);
    return f->window != NULL;
}

// [b, samples] -> [b, bins, frames, 2]
static Value *transformed(Graph *g, Value *x, const Frames *f, bool onesided) {
    int64_t pad[2] = { 0, f->shift };
    if (f->shift && x->type.dim[1] <= f->shift)
        return graph_fail(g, "%s is too short to be reflected by %lld", shown(g, x), (long long)f->shift);
    if (!(x = b_pad_mode(g, x, pad, pad, "reflect", NULL))) return NULL;
    int64_t samples = x->type.dim[1], count = (samples - f->length) / f->hop + 1;
    if (samples < f->length)
        return graph_fail(g, "%lld samples hold no frame of %lld", (long long)samples, (long long)f->length);
    Value *frame = b_frames(g, b_insert(g, x, 2), count, f->length, f->hop);
    Value *y = b_binary(g, OP_Mul, frame, b_along(g, f->window, 4, 2));
    y = b_fourier(g, y, 2, f->length, false, onesided);
    return y && f->scale != 1 ? b_swap(g, b_binary(g, OP_Mul, y, b_like(g, y, f->scale)), 1, 2) : b_swap(g, y, 1, 2);
}

// [b, frames, length], added up where they overlap: [b, (frames - 1) * hop + length]. Frames are cut into parts of a
// hop, part j of all of them lies j hops further on.
static Value *overlapped(Graph *g, Value *x, const Frames *f) {
    int64_t parts = ceil_div(f->length, f->hop), lo[3] = { 0 }, hi[3] = { 0, 0, parts * f->hop - f->length };
    Dim b = x->type.dim[0], frames = x->type.dim[1];
    Value *sum = NULL, *all = b_pad(g, x, lo, hi, (int64_t[3]){ 0 }, NULL);
    for (int64_t j = 0; j < parts && all; j++) {
        int64_t before[3] = { 0, j, 0 }, behind[3] = { 0, parts - 1 - j, 0 };
        Value *part = b_part(g, all, 2, j * f->hop, f->hop);
        part = b_pad(g, part, before, behind, (int64_t[3]){ 0 }, NULL);
        sum = sum ? b_binary(g, OP_Add, sum, part) : part;
    }
    Dim flat[2] = { b, (frames + parts - 1) * f->hop };
    return sum ? b_part(g, b_reshape(g, sum, 2, flat), 1, 0, (frames - 1) * f->hop + f->length) : NULL;
}

// [b, bins, frames, 2] -> [b, samples]: the frames under the window again, over the sum of its squares
static Value *restored(Graph *g, Value *x, const Frames *f, bool onesided, int64_t length) {
    if (x->type.dim[1] != (onesided ? f->length / 2 + 1 : f->length))
        return graph_fail(g, "%s is not of frames of %lld", shown(g, x), (long long)f->length);
    Value *y = b_fourier(g, b_swap(g, x, 1, 2), 2, f->length, true, onesided);
    y = y ? b_remove(g, b_part(g, y, 3, 0, 1), 3) : NULL;
    Value *window = b_along(g, f->window, 3, 2), *signal = b_binary(g, OP_Mul, y, window);
    Value *square = b_unary(g, OP_Square, window);
    if (!signal || !square) return NULL;
    Value *each = b_expand(g, square, 3, (Dim[]){ 1, x->type.dim[2], f->length });
    Value *total = overlapped(g, signal, f), *weight = overlapped(g, each, f);
    const char *text = arena_printf(g->arena, "y > 0.00000000001 ? x / y * %.17g : x", 1 / f->scale);
    Value *z = B_MAP(g, text, "x y", total, weight);
    if (!z) return NULL;
    int64_t rest = z->type.dim[1] - f->shift, kept = length ? length : rest - f->shift;
    if (kept < 1) return graph_fail(g, "nothing is left of %lld samples", (long long)z->type.dim[1]);
    int64_t none[2] = { 0 }, more[2] = { 0, max64(kept - rest, 0) };
    z = b_part(g, z, 1, f->shift, min64(kept, rest));
    return b_pad(g, z, none, more, none, NULL);
}

burn_value *language_stft(const burn_place *at, burn_value *x, const struct burn_stft *o) {
    Graph *g = here(at, NULL);
    bool back = at->call[0] == 'i';
    Frames f;
    if (!x) return NULL;
    if (!dtype_is_float(x->type.dtype) || x->type.rank != (back ? 4 : 2) || (back && x->type.dim[3] != 2))
        return graph_fail(g, "wants %s, not %s", back ? "[batch, bins, frames, 2]" : "[batch, samples]", shown(g, x));
    if (!b_static(g, x, at->call) || !frames_in(g, o, x->type.dtype, &f)) return NULL;
    return back ? restored(g, x, &f, yes(o->onesided), o->length) : transformed(g, x, &f, yes(o->onesided));
}
