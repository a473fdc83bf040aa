// SPDX-License-Identifier: MIT OR Apache-2.0
// Operators that read images at computed places: GridSample, AffineGrid, RoiAlign, DeformConv, MaxUnpool.
//
// In: an OnnxNode; its sizes may be the running program's. Out: gathers and maps. The idea: space is one flat axis, x
// [b, c, space], places are one coordinate per spatial axis, [b, p] each; interpolation is a sum over the corners
// around a place of weight times element, 2 corners per axis (linear) or 4 (cubic).
#include "import/onnx/run/measure.h"

#include <math.h>
#include <string.h>

#define MAX_EXTENT (INT64_C(1) << 30)      // of a kernel, a stride, a padding
#define MAX_SPACE 4

typedef enum Outside { ZEROS, BORDER, REFLECTION } Outside;
typedef enum Interpolation { NEAREST, LINEAR, CUBIC } Interpolation;
typedef struct Sampler {
    int space;
    Dim size[MAX_SPACE];
    Interpolation mode;
    Outside outside;
    bool align;
    Op combine;
} Sampler;

static const char *format_map(OnnxNode *n, const char *text, double a, double b) {
    return arena_printf(n->g->arena, text, a, b);
}

// The size of a spatial axis as a scalar of v's type.
static Value *size_like(OnnxNode *n, const Sampler *s, int axis, const Value *v) {
    return v ? b_cast(n->g, b_number(n->g, s->size[axis]), v->type.dtype) : NULL;
}

// Folds v back between the borders of an axis: a triangle wave.
static Value *reflect(OnnxNode *n, const Sampler *s, int axis, Value *v) {
    Value *size = size_like(n, s, axis, v);
    if (s->align)
        return B_MAP(n->g, "n > 1 ? x < n - 1 ? x : 2 * (n - 1) - x : 0", "x n",
            B_MAP(n->g, "n > 1 ? floormod(x, 2 * (n - 1)) : 0", "x n", v, size), size);
    return B_MAP(
        n->g, "(x < n ? x : 2 * n - x) - 0.5", "x n", B_MAP(n->g, "floormod(x + 0.5, 2 * n)", "x n", v, size), size);
}

// An index along one axis (a whole number, in floats) brought inside; *valid collects where it was there already, for
// ZEROS.
static Value *inside(OnnxNode *n, const Sampler *s, Value *v, int axis, Value **valid) {
    Value *size = size_like(n, s, axis, v);
    if (s->outside == REFLECTION) v = B_MAP(n->g, "trunc(x)", "x", reflect(n, s, axis, v));
    if (s->outside == ZEROS) {
        Value *ok = B_MAP(n->g, "x >= 0 && x <= n - 1", "x n", v, size);
        *valid = *valid ? b_binary(n->g, OP_And, *valid, ok) : ok;
    }
    return B_MAP(n->g, "min(max(x, 0), n - 1)", "x n", v, size);
}

// Keys' cubic weights (a = -0.75) of the corners -1, 0, 1, 2 around a place with the fraction x.
static const char *const cubic_weights[] = {
    "((-0.75 * (x + 1) + 3.75) * (x + 1) - 6) * (x + 1) + 3",
    "(1.25 * x - 2.25) * x * x + 1",
    "(1.25 * (1 - x) - 2.25) * (1 - x) * (1 - x) + 1",
    "((-0.75 * (2 - x) + 3.75) * (2 - x) - 6) * (2 - x) + 3",
};

static Value *corner_weight(OnnxNode *n, Interpolation mode, Value *fraction, int corner) {
    if (mode == NEAREST) return NULL;
    if (mode == LINEAR) return corner ? fraction : B_MAP(n->g, "1 - x", "x", fraction);
    return B_MAP(n->g, cubic_weights[corner], "x", fraction);
}

// Element at whole coordinates: x [b, c, space], at [b, p] -> [b, c, p].
static Value *pixels(OnnxNode *n, const Sampler *s, Value *x, Value *const *at) {
    Value *flat = NULL, *valid = NULL;
    for (int i = 0; i < s->space; i++) {
        Value *v = inside(n, s, at[i], i, &valid);
        v = b_cast(n->g, v, DT_I64);
        flat = flat ? B_MAP(n->g, "x * n + y", "x n y", flat, b_number(n->g, s->size[i]), v) : v;
    }
    if (!flat) return NULL;
    Dim dims[3] = { x->type.dim[0], x->type.dim[1], flat->type.dim[1] };
    Value *v = b_gather_elements(n->g, x, b_expand(n->g, b_insert(n->g, flat, 1), 3, dims), 2);
    if (!valid || !v) return v;
    Value *inside = b_insert(n->g, valid, 1);
    return b_where(n->g, inside, v, b_like(n->g, v, 0));
}

// Interpolates x [b, c, space] at the places at[axis] [b, p] -> [b, c, p].
static Value *sample(OnnxNode *n, const Sampler *s, Value *x, Value *const *at) {
    int per = s->mode == NEAREST ? 1 : s->mode == LINEAR ? 2 : 4, corners = 1;
    if (!x) return NULL;
    Value *base[MAX_SPACE], *fraction[MAX_SPACE], *sum = NULL;
    for (int i = 0; i < s->space; i++) {
        base[i] = b_unary(n->g, s->mode == NEAREST ? OP_Round : OP_Floor, at[i]);
        fraction[i] = s->mode == NEAREST ? NULL : b_binary(n->g, OP_Sub, at[i], base[i]);
        corners *= per;
    }
    for (int c = 0; c < corners; c++) {
        Value *where[MAX_SPACE], *weight = NULL;
        for (int i = s->space - 1, rest = c; i >= 0; i--, rest /= per) {
            int corner = rest % per, shift = s->mode == CUBIC ? corner - 1 : corner;
            where[i] = shift ? B_MAP(n->g, format_map(n, "x + %.17g + %.17g", shift, 0), "x", base[i]) : base[i];
            Value *w = corner_weight(n, s->mode, fraction[i], corner);
            weight = weight && w ? b_binary(n->g, OP_Mul, weight, w) : w ? w : weight;
        }
        Value *v = pixels(n, s, x, where);
        if (weight && v) v = b_binary(n->g, OP_Mul, v, b_cast(n->g, b_insert(n->g, weight, 1), v->type.dtype));
        if (!v) return NULL;
        sum = sum ? b_binary(n->g, s->combine, sum, v) : v;
    }
    return sum;
}

static Value *flat_space(OnnxNode *n, Value *x) {
    if (!x) return NULL;
    return b_reshape(
        n->g, x, 3, (Dim[]){ x->type.dim[0], x->type.dim[1], type_product(n->g, &x->type, 2, x->type.rank) });
}

static bool sampler_init(OnnxNode *n, Sampler *s, const Value *x) {
    *s = (Sampler){ .space = x->type.rank - 2, .mode = LINEAR, .outside = ZEROS, .combine = OP_Add };
    if (s->space < 1 || s->space > MAX_SPACE)
        return onnx_fail(n, "%d spatial dimensions are not supported", s->space), false;
    for (int i = 0; i < s->space; i++) {
        s->size[i] = x->type.dim[2 + i];
        if (s->size[i] == 0) return onnx_fail(n, "the image is empty"), false;
    }
    return true;
}

// ---------------------------------------------------------------- GridSample and AffineGrid

static bool grid_modes(OnnxNode *n, Sampler *s) {
    const char *mode = onnx_string(n, "mode", "linear"), *outside = onnx_string(n, "padding_mode", "zeros");
    bool linear = !strcmp(mode, "linear") || !strcmp(mode, "bilinear"),
         cubic = !strcmp(mode, "cubic") || !strcmp(mode, "bicubic");
    if (!linear && !cubic && strcmp(mode, "nearest")) return onnx_fail(n, "attribute \"mode\" is \"%s\"", mode), false;
    if (strcmp(outside, "zeros") && strcmp(outside, "border") && strcmp(outside, "reflection"))
        return onnx_fail(n, "attribute \"padding_mode\" is \"%s\"", outside), false;
    s->mode = linear ? LINEAR : cubic ? CUBIC : NEAREST;
    s->outside = *outside == 'z' ? ZEROS : *outside == 'b' ? BORDER : REFLECTION;
    s->align = onnx_int(n, "align_corners", 0) != 0;
    return true;
}

// From -1..1 to elements; places beyond the borders move inside.
static Value *grid_place(OnnxNode *n, const Sampler *s, Value *v, int axis) {
    Value *size = size_like(n, s, axis, v);
    v = B_MAP(n->g, s->align ? "(x + 1) / 2 * (n - 1)" : "((x + 1) * n - 1) / 2", "x n", v, size);
    if (s->mode == NEAREST) v = b_unary(n->g, OP_Round, v);
    if (s->outside == ZEROS) return v;
    Value *moved = s->outside == REFLECTION ? reflect(n, s, axis, v) :
                                              B_MAP(n->g, "min(max(x, 0), n - 1)", "x n", v, size);
    return B_MAP(
        n->g, s->align ? "x < 0 || x > n - 1 ? y : x" : "x < -0.5 || x > n - 0.5 ? y : x", "x n y", v, size, moved);
}

Value *onnx_grid_sample(OnnxNode *n) {
    Sampler s;
    if (!onnx_inputs(n, 2) || !sampler_init(n, &s, n->in[0]) || !grid_modes(n, &s)) return NULL;
    Value *x = n->in[0], *grid = n->in[1], *at[MAX_SPACE];
    const Type t = grid->type;
    if (t.rank != s.space + 2 || t.dim[t.rank - 1] != s.space
        || (t.dim[0] != x->type.dim[0] && dim_is_const(t.dim[0]) && dim_is_const(x->type.dim[0])))
        return onnx_fail(n, "the grid must be [batch, places..., spatial dimensions]");
    Dim places = type_product(n->g, &t, 1, t.rank - 1), dims[MAX_RANK] = { x->type.dim[0], x->type.dim[1] };
    grid = b_reshape(n->g, b_cast(n->g, grid, dtype_wide(t.dtype)), 3, (Dim[]){ t.dim[0], places, s.space });
    for (int i = 0; i < s.space; i++)
        at[i] = grid_place(n, &s, b_remove(n->g, b_part(n->g, grid, 2, s.space - 1 - i, 1), 2), i);
    for (int i = 0; i < s.space; i++) dims[2 + i] = t.dim[1 + i];
    return b_reshape(n->g, sample(n, &s, flat_space(n, x), at), s.space + 2, dims);
}

// theta [n, k, k+1] applied to the regular grid over size: [n, size..., k], x first.
// theta times (..., y, x, 1)'s coordinates [places, k + 1] -> [batch, space..., k].
static Value *affine_places(OnnxNode *n, Value *grid, int k, const Dim *space) {
    Dim dims[MAX_RANK] = { n->in[0]->type.dim[0] };
    for (int i = 0; i < k; i++) dims[1 + i] = space[i];
    dims[1 + k] = k;
    return b_reshape(n->g, b_matmul(n->g, grid, b_swap(n->g, n->in[0], 1, 2)), k + 2, dims);
}

// Of a size that the program computes: the coordinates are too.
static Value *affine_grid_run(OnnxNode *n, Value *size, int k, bool align) {
    Dim space[MAX_RANK], places = 1;
    Value *column[MAX_SPACE + 1];
    for (int i = 0; i < k; i++) {
        if (!onnx_measure(n, size, 2 + i, 0, 1 + i, 1, NO_LIMIT, &space[i])) return NULL;
        places = dim_mul(n->g, places, space[i]);
    }
    for (int i = 0; i < k; i++) {
        Value *length = b_cast(n->g, b_number(n->g, space[i]), DT_F64);
        Value *at = B_MAP(n->g, align ? "y > 1 ? 2 * x / (y - 1) - 1 : -1" : "(2 * x + 1) / y - 1", "x y",
            b_iota(n->g, k, space, i, DT_F64), length);
        column[k - 1 - i] = b_reshape(n->g, at, 2, (Dim[]){ places, 1 });
    }
    column[k] = b_filled(n->g, DT_F64, 1, 2, (Dim[]){ places, 1 });
    for (int i = 0; i < k; i++)
        if (!column[i]) return NULL;
    return affine_places(n, b_cast(n->g, b_concat(n->g, 1, k + 1, column), n->in[0]->type.dtype), k, space);
}

Value *onnx_affine_grid(OnnxNode *n) {
    int64_t size[MAX_RANK], places = 1;
    int rank;
    Value *list = onnx_inputs(n, 2) ? onnx_list(n, 1, "the size", &rank) : NULL;
    if (!list) return NULL;
    int k = rank - 2;
    bool align = onnx_int(n, "align_corners", 0) != 0;
    if (k < 1 || k > MAX_SPACE || n->in[0]->type.rank != 3)
        return onnx_fail(n, "the size must list batch, channels and space, theta must have 3 dimensions");
    if (!onnx_knows(n, 1)) return affine_grid_run(n, list, k, align);
    if (!onnx_ints_input(n, 1, "the size", size, &rank, MAX_SPACE + 2)) return NULL;
    for (int i = 0; i < k; i++) {
        if (size[2 + i] < 1 || size[2 + i] > 1 << 16)
            return onnx_fail(n, "the size holds %lld", (long long)size[2 + i]);
        places *= size[2 + i];
    }
    if (places > 1 << 26) return onnx_fail(n, "the grid is too large");
    double *base = NEW_ARRAY(n->g->arena, double, places * (k + 1));
    for (int64_t p = 0; p < places; p++) {
        int64_t rest = p;
        for (int i = k - 1; i >= 0; i--) {
            double length = (double)size[2 + i], at = (double)(rest % size[2 + i]);
            base[p * (k + 1) + (k - 1 - i)] = align ? (length > 1 ? 2 * at / (length - 1) - 1 : -1) :
                                                      (2 * at + 1) / length - 1;
            rest /= size[2 + i];
        }
        base[p * (k + 1) + k] = 1;
    }
    Value *grid = b_floats(n->g, n->in[0]->type.dtype, 2, (Dim[]){ places, k + 1 }, base);
    return affine_places(n, grid, k, size + 2);
}

// ---------------------------------------------------------------- RoiAlign

// Sample places along one axis: start + (bin + (s + 0.5) / count) * length / bins, as [rois, bins, count].
static Value *roi_places(OnnxNode *n, Value *start, Value *length, int64_t bins, int64_t count) {
    Dim shape[3] = { 1, bins, count };
    const char *text = arena_printf(
        n->g->arena, "x + (z + (w + 0.5) / %.17g) * y / %.17g", (double)count, (double)bins);
    Value *bin = b_iota(n->g, 3, shape, 1, DT_F32), *step = b_iota(n->g, 3, shape, 2, DT_F32);
    if (!start || !length) return NULL;
    Value *from = b_insert(n->g, start, 2), *size = b_insert(n->g, length, 2);
    return B_MAP(n->g, text, "x y z w", from, size, bin, step);
}

Value *onnx_roi_align(OnnxNode *n) {
    Sampler s;
    if (!onnx_inputs(n, 3) || !sampler_init(n, &s, n->in[0])) return NULL;
    Value *x = n->in[0], *rois = b_cast(n->g, n->in[1], DT_F32), *edge[4], *at[2];
    int64_t bins[2] = { onnx_int(n, "output_height", 1), onnx_int(n, "output_width", 1) },
            count = onnx_int(n, "sampling_ratio", 0);
    bool half = n->opset >= 16
        && !strcmp(onnx_string(n, "coordinate_transformation_mode", "half_pixel"), "half_pixel");
    bool most = !strcmp(onnx_string(n, "mode", "avg"), "max");
    if (!rois) return NULL;
    if (s.space != 2 || rois->type.rank != 2 || rois->type.dim[1] != 4)
        return onnx_fail(n, "wants an image [n, c, h, w] and rois [r, 4]");
    if (count < 1 || bins[0] < 1 || bins[1] < 1 || count > 1024 || bins[0] > 4096 || bins[1] > 4096)
        return onnx_fail(n, "wants a sampling_ratio of 1 to 1024 and sizes of 1 to 4096");
    const char *scale = arena_printf(
        n->g->arena, "x * %.17g - %.17g", onnx_float(n, "spatial_scale", 1), half ? 0.5 : 0);
    for (int i = 0; i < 4; i++) edge[i] = B_MAP(n->g, scale, "x", b_part(n->g, rois, 1, i, 1));
    Dim r = rois->type.dim[0], wide[5] = { r, bins[0], count, bins[1], count },
        places = bins[0] * bins[1] * count * count;
    for (int i = 0; i < 2; i++) {
        Value *length = b_binary(n->g, OP_Sub, edge[3 - i], edge[1 - i]);
        if (!half) length = B_MAP(n->g, "max(x, 1)", "x", length);
        Value *v = roi_places(n, edge[1 - i], length, bins[i], count);
        v = b_reshape(n->g, v, 5, i ? (Dim[]){ r, 1, 1, bins[1], count } : (Dim[]){ r, bins[0], count, 1, 1 });
        at[i] = b_reshape(n->g, b_expand(n->g, v, 5, wide), 2, (Dim[]){ r, places });
    }
    // Places more than one element outside count as 0; others move to the edge.
    Value *size[2] = { NULL };
    for (int i = 0; i < 2; i++) size[i] = size_like(n, &s, i, at[i]);
    Value *gone = B_MAP(n->g, "x < -1 || x > h || y < -1 || y > w", "x y h w", at[0], at[1], size[0], size[1]);
    for (int i = 0; i < 2; i++) at[i] = B_MAP(n->g, "min(max(x, 0), n - 1)", "x n", at[i], size[i]);
    s.outside = BORDER;
    s.combine = most ? OP_Max : OP_Add;
    Value *v = sample(n, &s, flat_space(n, b_gather(n->g, x, n->in[2], 0)), at);
    if (!v || !gone) return NULL;
    gone = b_insert(n->g, gone, 1);
    v = b_where(n->g, gone, b_like(n->g, v, 0), v);
    v = b_reshape(n->g, v, 6, (Dim[]){ r, x->type.dim[1], bins[0], count, bins[1], count });
    return b_reduce(n->g, most ? OP_ReduceMax : OP_ReduceMean, v, 2, (int64_t[]){ 3, 5 }, false);
}

// ---------------------------------------------------------------- MaxRoiPool

// Which of `size` pixels part i of `bins` holds, bool [r, bins, size]: of the region from..to the pixels from +
// floor(i extent / bins) up to before from + ceil((i + 1) extent / bins).
static Value *roi_parts(OnnxNode *n, Value *from, Value *to, int64_t bins, int64_t size) {
    const Dim r = from->type.dim[0];
    Value *extent = B_MAP(n->g, "max(y - x + 1, 1)", "x y", from, to),
          *i = b_iota(n->g, 3, (Dim[]){ 1, bins, 1 }, 1, DT_I64);
    Value *pixel = b_iota(n->g, 3, (Dim[]){ 1, 1, size }, 2, DT_I64);
    if (!extent) return NULL;
    from = b_reshape(n->g, from, 3, (Dim[]){ r, 1, 1 });
    extent = b_reshape(n->g, extent, 3, (Dim[]){ r, 1, 1 });
    const char *text = arena_printf(n->g->arena, "p >= x + i * y / %lld && p < x + ((i + 1) * y + %lld) / %lld",
        (long long)bins, (long long)bins - 1, (long long)bins);
    return B_MAP(n->g, text, "p i x y", pixel, i, from, extent);
}

// The largest element along `axis` where the mask holds.
static Value *masked_max(OnnxNode *n, Value *x, Value *mask, int axis) {
    return x && mask ? b_reduce(
               n->g, OP_ReduceMax, b_where(n->g, mask, x, b_like(n->g, x, -INFINITY)), 1, (int64_t[]){ axis }, false) :
                       NULL;
}

// Rows [batch, x1, y1, x2, y2], corners included, rounded to pixels; a part that holds none gives 0.
Value *onnx_max_roi_pool(OnnxNode *n) {
    int count;
    if (!onnx_inputs(n, 2) || !b_static(n->g, n->in[0], "MaxRoiPool")) return NULL;
    const int64_t *bins = onnx_ints(n, "pooled_shape", &count);
    Value *x = n->in[0], *rois = b_cast(n->g, n->in[1], DT_F32), *at[4];
    if (!rois || x->type.rank != 4 || rois->type.rank != 2 || rois->type.dim[1] != 5)
        return onnx_fail(n, "wants an image [n, c, h, w] and rois [r, 5]");
    if (count != 2 || bins[0] < 1 || bins[1] < 1 || bins[0] > 4096 || bins[1] > 4096)
        return onnx_fail(n, "attribute \"pooled_shape\" must be two sizes of 1 to 4096");
    const char *scale = arena_printf(n->g->arena, "round(x * %.17g)", onnx_float(n, "spatial_scale", 1));
    for (int i = 0; i < 4; i++) at[i] = b_cast(n->g, B_MAP(n->g, scale, "x", b_part(n->g, rois, 1, 1 + i, 1)), DT_I64);
    const Dim r = rois->type.dim[0], h = x->type.dim[2], w = x->type.dim[3];
    if (!at[0] || !at[1] || !at[2] || !at[3]) return NULL;
    Value *rows = roi_parts(n, at[1], at[3], bins[0], h), *columns = roi_parts(n, at[0], at[2], bins[1], w);
    Value *batch = b_reshape(n->g, b_cast(n->g, b_part(n->g, rois, 1, 0, 1), DT_I64), 1, &r);
    Value *v = b_insert(n->g, b_gather(n->g, x, batch, 0), 2);                                       // [r, c, 1, h, w]
    v = masked_max(n, v, b_reshape(n->g, rows, 5, (Dim[]){ r, 1, bins[0], h, 1 }), 3);              // [r, c, rows, w]
    v = masked_max(n, b_insert(n->g, v, 3), b_reshape(n->g, columns, 5, (Dim[]){ r, 1, 1, bins[1], w }), 4);
    return v ? B_MAP(n->g, "x == y ? 0 : x", "x y", v, b_like(n->g, v, -INFINITY)) : NULL;
}

// ---------------------------------------------------------------- DeformConv

// Places of every kernel tap at every output along one axis: o * stride - pad + tap * dilation + offset, [n * groups,
// taps * outputs].
static Value *deformed(OnnxNode *n, Value *offset, const Window *w, int axis, const Dim *out, Dim images) {
    Dim shape[4] = { w->kernel[0], w->kernel[1], out[0], out[1] };
    Value *tap = b_iota(n->g, 4, shape, axis, DT_F32), *place = b_iota(n->g, 4, shape, 2 + axis, DT_F32);
    const char *text = arena_printf(n->g->arena, "y * %lld - %lld + x * %lld", (long long)w->strides[axis],
        (long long)w->pads[axis], (long long)w->dilations[axis]);
    int64_t taps = w->kernel[0] * w->kernel[1];
    Dim places = dim_mul(n->g, out[0], out[1]), all = dim_mul(n->g, taps, places);
    Value *regular = b_reshape(n->g, B_MAP(n->g, text, "x y", tap, place), 2, (Dim[]){ 1, all });
    Value *v = b_reshape(n->g, offset, 4, (Dim[]){ images, taps, 2, places });
    v = b_reshape(n->g, b_part(n->g, v, 2, axis, 1), 2, (Dim[]){ images, all });
    return b_binary(n->g, OP_Add, b_cast(n->g, v, DT_F32), regular);
}

Value *onnx_deform_conv(OnnxNode *n) {
    Sampler s;
    Window w;
    if (!onnx_inputs(n, 3) || !sampler_init(n, &s, n->in[0]) || !b_static(n->g, n->in[1], "a weight")) return NULL;
    Value *x = n->in[0], *weight = n->in[1], *offset = n->in[2], *mask = onnx_optional(n, 4), *at[2];
    if (s.space != 2 || weight->type.rank != 4 || offset->type.rank != 4
        || !onnx_window(n, x, weight->type.dim + 2, &w) || w.same)
        return onnx_fail(n, "only images [n, c, h, w] are supported");
    int64_t groups = onnx_int(n, "offset_group", 1), group = onnx_int(n, "group", 1), channels = x->type.dim[1],
            outputs = weight->type.dim[0], taps = w.kernel[0] * w.kernel[1];
    if (!dim_is_const(channels)) return onnx_fail(n, "the number of channels must be known; pin it with --dim NAME=V");
    Dim batch = x->type.dim[0], out[2] = { offset->type.dim[2], offset->type.dim[3] },
        places = dim_mul(n->g, out[0], out[1]), space = dim_mul(n->g, s.size[0], s.size[1]);
    if (groups < 1 || group < 1 || channels % groups || channels % group || outputs % group
        || weight->type.dim[1] * group != channels)
        return onnx_fail(n, "channels do not divide into groups");
    Dim images = dim_mul(n->g, batch, groups);
    if ((offset->type.dim[0] != batch && dim_is_const(offset->type.dim[0]) && dim_is_const(batch))
        || offset->type.dim[1] != groups * taps * 2)
        return onnx_fail(n, "the offsets have %lld channels, expected %lld", (long long)offset->type.dim[1],
            (long long)(groups * taps * 2));
    for (int i = 0; i < 2; i++) at[i] = deformed(n, offset, &w, i, out, images);
    Value *v = b_reshape(n->g, x, 3, (Dim[]){ images, channels / groups, space });
    v = sample(n, &s, v, at);
    if (mask)
        v = b_binary(n->g, OP_Mul, v, b_reshape(n->g, mask, 3, (Dim[]){ images, 1, dim_mul(n->g, taps, places) }));
    v = b_reshape(n->g, v, 4, (Dim[]){ batch, group, channels / group * taps, places });
    v = b_matmul(n->g, b_reshape(n->g, weight, 3, (Dim[]){ group, outputs / group, channels / group * taps }), v);
    v = b_reshape(n->g, v, 4, (Dim[]){ batch, outputs, out[0], out[1] });
    return onnx_optional(n, 3) && v ? b_binary(n->g, OP_Add, v, b_along(n->g, n->in[3], 4, 1)) : v;
}

// ---------------------------------------------------------------- MaxUnpool

static bool in_reach(int64_t size) { return size >= -MAX_EXTENT && size <= MAX_EXTENT; }

// Elements go back to where a max pool found them (flat indices into the tensor that was pooled); the rest is 0.
Value *onnx_max_unpool(OnnxNode *n) {
    if (!onnx_inputs(n, 2)) return NULL;
    Value *x = n->in[0];
    Type t = x->type;
    int rank = t.rank - 2, count, n_strides, n_pads;
    const int64_t *kernel = onnx_ints(n, "kernel_shape", &count), *strides = onnx_ints(n, "strides", &n_strides),
                  *pads = onnx_ints(n, "pads", &n_pads);
    if (rank < 1 || !kernel || count != rank || (strides && n_strides != rank) || (pads && n_pads != 2 * rank))
        return onnx_fail(n, "kernel_shape, strides or pads do not fit the input");
    for (int i = 0; i < 2 * rank; i++)
        if (!in_reach(kernel[i / 2]) || (strides && (strides[i / 2] < 1 || !in_reach(strides[i / 2])))
            || (pads && !in_reach(pads[i])) || (dim_is_const(t.dim[2 + i / 2]) && !in_reach(t.dim[2 + i / 2])))
            return onnx_fail(n, "axis %d: a size is out of range", i / 2);
    for (int i = 0; i < rank; i++) {
        int64_t stride = strides ? strides[i] : 1, more = kernel[i] - stride - (pads ? pads[i] + pads[rank + i] : 0);
        Dim spread = dim_mul(n->g, t.dim[2 + i], stride);
        if (dim_is_const(spread) && spread + more < 0) return onnx_fail(n, "axis %d: a size is out of range", i);
        t.dim[2 + i] = dim_is_const(spread) ? spread + more :
            more < 0                        ? dim_sub(n->g, spread, -more) :
                                              dim_add(n->g, spread, more);
    }
    Type checked;
    if (type_is_static(&t) && !onnx_type(&checked, (int)t.dtype, t.rank, t.dim, "output", "0", n->loc)) return NULL;
    int64_t given[MAX_RANK], lo[MAX_RANK] = { 0 }, hi[MAX_RANK] = { 0 };
    Dim total = type_size(n->g, &t), elements = type_size(n->g, &x->type);
    Value *in[3] = { b_filled(n->g, t.dtype, 0, 1, &total), b_reshape(n->g, n->in[1], 1, &elements),
        b_reshape(n->g, x, 1, &elements) };
    Node *node = graph_node(n->g, OP_ScatterElements, 3, in, 1);
    node_set_int(node, "axis", 0);
    node_set_string(node, "reduction", "none");
    Value *v = b_reshape(n->g, b_finish(node), t.rank, t.dim);
    if (!onnx_optional(n, 2)) return v;
    if (!onnx_knows(n, 2)) {                            // what lies outside reads 0
        Value *list = onnx_list(n, 2, "output_shape", &count);
        if (!list || count != t.rank)
            return list ? onnx_fail(n, "output_shape has %d elements, expected %d", count, t.rank) : NULL;
        for (int i = 0; i < t.rank && v; i++) {
            Dim size;
            if (!onnx_measure(n, list, i, 0, i, 0, NO_LIMIT, &size)) return NULL;
            v = b_take(n->g, v, i, NULL, NULL, size);
        }
        return v;
    }
    if (!onnx_ints_input(n, 2, "output_shape", given, &count, MAX_RANK)) return NULL;
    for (int i = 0; i < t.rank; i++)
        if (!dim_is_const(t.dim[i]))
            return onnx_fail(n, "output_shape needs known sizes; pin the dimensions with --dim NAME=V");
    if (count != t.rank) return onnx_fail(n, "output_shape has %d elements, expected %d", count, t.rank);
    for (int i = 0; i < t.rank; i++) {
        if (given[i] < 0) return onnx_fail(n, "output_shape holds %lld", (long long)given[i]);
        hi[i] = given[i] - t.dim[i];
    }
    return b_pad(n->g, v, lo, hi, NULL, NULL);
}
