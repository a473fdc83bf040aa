// SPDX-License-Identifier: MIT OR Apache-2.0
// Fourier transforms, window functions, mel filters, determinants.
//
// In: an OnnxNode. Out: what build/fourier.c makes of known lengths; run/signal.c has those that the program computes.
#include "signal.h"

#include <string.h>

static Value *too_many(const OnnxNode *n, double elements, double most) {
    diag_error_as(EXIT_LIMIT, n->loc, "%.3g elements; at most %.0f are supported", elements, most);
    return NULL;
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
        return b_fourier_along(n->g, x, at, inverse);
    } else if (!onnx_knows(n, 2)) return onnx_dft_run(n, n->in[2], inverse, onesided);
    else if (onnx_optional(n, 2) && !onnx_ints_input(n, 2, "the axis", &given, &count, 1)) return NULL;
    if (given < -x->type.rank || given >= x->type.rank)
        return onnx_fail(n, "axis %lld is outside a tensor of rank %d", (long long)given, x->type.rank);
    if (x->type.rank < 2 || !onnx_axis(n, given, x->type.rank, &axis) || axis == x->type.rank - 1)
        return onnx_fail(n, "the axis must not be the last one, which holds real and imaginary parts");
    if (!known || !dim_is_const(x->type.dim[axis])) return onnx_dft_along(n, axis, inverse, onesided);
    length = inverse && onesided ? 2 * (x->type.dim[axis] - 1) : x->type.dim[axis];
    if (onnx_optional(n, 1) && !onnx_ints_input(n, 1, "dft_length", &length, &count, 1)) return NULL;
    if (length > INT32_MAX) return too_many(n, (double)length, INT32_MAX);
    return b_fourier(n->g, x, axis, length, inverse, onesided);
}

// Frames of the signal [b, t, parts], every frame_step samples, times a window, transformed: [b, frames, bins, 2].
Value *onnx_stft(OnnxNode *n) {
    if (!onnx_inputs(n, 2)) return NULL;
    Value *x = n->in[0], *window = onnx_optional(n, 2);
    // ONNX Runtime takes a real signal [batch, samples] too
    if (x->type.rank == 2) n->in[0] = x = b_insert(n->g, x, 2);
    if (!x) return NULL;
    bool known = onnx_knows(n, 1) && onnx_knows(n, 3) && type_is_static(&x->type)
        && (!window || type_is_static(&window->type));
    if (x->type.rank != 3) return onnx_fail(n, "the signal must be [batch, samples] or [batch, samples, 1 or 2]");
    if (!known && dim_is_const(x->type.dim[2]) && (!window || window->type.rank == 1))
        return onnx_stft_run(n, window);
    if (!b_static(n->g, x, "STFT")) return NULL;
    int64_t step, length = window && window->type.rank == 1 ? window->type.dim[0] : x->type.dim[1];
    int count;
    if (!onnx_ints_input(n, 1, "frame_step", &step, &count, 1)) return NULL;
    if (onnx_optional(n, 3) && !onnx_ints_input(n, 3, "frame_length", &length, &count, 1)) return NULL;
    if (step < 1 || length < 1 || length > x->type.dim[1])
        return onnx_fail(n, "the signal of %lld samples must hold a frame", (long long)x->type.dim[1]);
    int64_t frames = (x->type.dim[1] - length) / step + 1;
    if (frames > INT32_MAX / length) return too_many(n, (double)frames * (double)length, INT32_MAX);
    Value *v = b_frames(n->g, x, frames, length, step);
    if (window) v = b_binary(n->g, OP_Mul, v, b_along(n->g, window, 4, 2));
    return b_fourier(n->g, v, 2, length, false, onnx_int(n, "onesided", 1) != 0);
}

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
    if (size < 0) return onnx_fail(n, "the size is %lld", (long long)size);
    bool periodic = onnx_int(n, "periodic", 1) != 0;
    for (size_t k = 0; k < COUNT(kinds); k++)
        if (!strcmp(kinds[k].name, n->argument)) return b_cosine_window(n->g, d, size, periodic, kinds[k].a);
    bug("row %s is no window", n->def->op);
}

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
    if (!(in[0] >= 1 && in[1] >= 1 && in[2] > 0))
        return onnx_fail(n, "%g bins, a length of %g, a rate of %g: not all are positive", in[0], in[1], in[2]);
    if (!b_table(n->g, in[0] * (in[1] / 2 + 1))) return onnx_mel_weights_run(n, d);
    MelFilters m = {
        .bins = (int64_t)in[0], .length = (int64_t)in[1], .rate = in[2], .low = in[3], .high = in[4]
    };
    return b_mel_weights(n->g, d, &m);
}

Value *onnx_det(OnnxNode *n) { return onnx_inputs(n, 1) ? b_determinant(n->g, n->in[0]) : NULL; }
