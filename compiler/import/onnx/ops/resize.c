// SPDX-License-Identifier: MIT OR Apache-2.0
// Resize and Upsample.
//
// In: an OnnxNode whose sizes are known. Out: one step per resized axis: a view where every element is repeated or
// skipped, a gather for `nearest`, a few weighted gathers for `linear` and `cubic`, a product with a constant matrix
// for wide (antialiasing) filters. The idea: each output coordinate o reads the input at x(o), a formula that
// coordinate_transformation_mode chooses, with weights filter((i - x) * scale).
#include "resize.h"

#include <math.h>
#include <string.h>

#define MAX_TAPS 4              // weighted gathers; wider filters become matrices
#define MAX_SUPPORT 4096
#define MAX_PLACE 1e12
#define MAX_OUT (1 << 19)       // elements along a resized axis
#define MAX_WEIGHED (INT64_C(1) << 26)      // pairs of an input and an output coordinate that are looked at
#define MAX_MATRIX (INT64_C(1) << 22)       // ... and that become elements of a constant

static bool is(const char *s, const char *t) { return !strcmp(s, t); }

// Where output coordinate o lies in the input.
static double source(const Resize *r, const AxisPlan *p, int64_t o) {
    double in = (double)p->in, width = p->scale * in, x = (double)o;
    if (is(r->coordinates, "asymmetric")) return x / p->scale;
    if (is(r->coordinates, "tf_half_pixel_for_nn")) return (x + 0.5) / p->scale;
    if (is(r->coordinates, "align_corners")) return width == 1 ? 0 : x * (in - 1) / (width - 1);
    if (is(r->coordinates, "pytorch_half_pixel"))
        return p->out == 1 ? (r->mode == RESIZE_NEAREST ? 0 : -0.5) : (x + 0.5) / p->scale - 0.5;
    if (is(r->coordinates, "half_pixel_symmetric"))
        return in / 2 * (1 - (double)p->out / width) + (x + 0.5) / p->scale - 0.5;
    if (is(r->coordinates, "tf_crop_and_resize")) {
        double span = (p->roi_end - p->roi_start) * (in - 1);
        return p->roi_start * (in - 1) + (width == 1 ? span / 2 : x * span / (width - 1));
    }
    return (x + 0.5) / p->scale - 0.5;
}

// The same, kept to where integers reach: scales and regions come from a file, and may be anything.
static double place(const Resize *r, const AxisPlan *p, int64_t o) {
    double x = source(r, p, o);
    return !(x > -MAX_PLACE) ? -MAX_PLACE : x < MAX_PLACE ? x : MAX_PLACE;
}

static bool outside(const Resize *r, const AxisPlan *p, double x) {
    return is(r->coordinates, "tf_crop_and_resize") && (x < 0 || x > (double)p->in - 1);
}

static int64_t clamp_index(double x, int64_t n) { return x < 0 ? 0 : x > (double)(n - 1) ? n - 1 : (int64_t)x; }

static int64_t nearest(const Resize *r, const AxisPlan *p, double x) {
    double at = is(r->rounding, "floor")     ? floor(x) :
        is(r->rounding, "ceil")              ? ceil(x) :
        is(r->rounding, "round_prefer_ceil") ? floor(x + 0.5) :
                                               ceil(x - 0.5);
    return clamp_index(at, p->in);
}

static double filter(const Resize *r, double d) {
    d = fabs(d);
    if (r->mode == RESIZE_LINEAR) return d < 1 ? 1 - d : 0;
    double a = r->cubic_a;
    if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
    return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

// The weights of one output coordinate on all input coordinates (row: `in` zeros at first).
static void weigh(const Resize *r, const AxisPlan *p, double x, double *row) {
    double shrink = r->antialias && p->scale < 1 ? p->scale : 1, sum = 0;
    int64_t support = (int64_t)ceil((r->mode == RESIZE_LINEAR ? 1 : 2) / shrink),
            first = (int64_t)floor(x) - support + 1, last = (int64_t)floor(x) + support;
    for (int64_t i = first; i <= last; i++) {
        double w = filter(r, ((double)i - x) * shrink);
        if (r->exclude_outside && (i < 0 || i >= p->in)) continue;
        row[clamp_index((double)i, p->in)] += w;
        sum += w;
    }
    if ((r->antialias || r->exclude_outside) && sum != 0)
        for (int64_t i = first < 0 ? 0 : first; i <= last && i < p->in; i++) row[i] /= sum;
}

// ---------------------------------------------------------------- one axis

static Value *extrapolate(OnnxNode *n, const Resize *r, const AxisPlan *p, Value *v) {
    bool any = false;
    if (!v) return NULL;
    Tensor *t = tensor_new(n->g->arena, type_make(DT_BOOL, 1, &p->out));
    for (int64_t o = 0; o < p->out; o++)
        if (outside(r, p, place(r, p, o))) {
            tensor_set_i(t, o, 1);
            any = true;
        }
    if (!any) return v;
    Value *outside = b_along(n->g, graph_const(n->g, t, NULL), v->type.rank, p->axis);
    return b_where(n->g, outside, b_like(n->g, v, r->extrapolation), v);
}

// Indices that repeat or skip evenly need no gather. NULL: they do not.
static Value *even_view(OnnxNode *n, Value *x, const AxisPlan *p, const int64_t *at) {
    bool repeats = p->out % p->in == 0, skips = p->out > 1;
    int64_t by = p->out / p->in, step = skips ? at[1] - at[0] : 0;
    for (int64_t o = 0; o < p->out; o++) {
        repeats = repeats && at[o] == o / by;
        skips = skips && at[o] == at[0] + o * step;
    }
    if (repeats && x->type.rank < MAX_RANK) {
        Type t = x->type;
        Value *v = b_insert(n->g, x, p->axis + 1);
        if (!v) return NULL;
        Type wide = v->type;
        wide.dim[p->axis + 1] = by;
        t.dim[p->axis] = p->out;
        return b_reshape(n->g, b_expand(n->g, v, wide.rank, wide.dim), t.rank, t.dim);
    }
    if (!skips || step < 1) return NULL;
    int64_t starts[MAX_RANK] = { 0 }, steps[MAX_RANK];
    Type t = x->type;
    for (int i = 0; i < t.rank; i++) steps[i] = 1;
    starts[p->axis] = at[0];
    steps[p->axis] = step;
    t.dim[p->axis] = p->out;
    return b_slice(n->g, x, starts, steps, t.dim);
}

static Value *nearest_axis(OnnxNode *n, const Resize *r, const AxisPlan *p, Value *x) {
    int64_t *at = NEW_ARRAY(n->g->arena, int64_t, p->out);
    for (int64_t o = 0; o < p->out; o++) at[o] = nearest(r, p, place(r, p, o));
    Value *v = even_view(n, x, p, at);
    return extrapolate(n, r, p, v ? v : b_gather(n->g, x, b_ints(n->g, (int)p->out, at), p->axis));
}

// W [out, in]: y = x W^T along the axis.
static Value *matrix_axis(OnnxNode *n, const AxisPlan *p, Value *x, const double *w) {
    int last = x->type.rank - 1;
    Value *m = b_swap(n->g, b_floats(n->g, x->type.dtype, 2, (Dim[]){ p->out, p->in }, w), 0, 1);
    return b_swap(n->g, b_matmul(n->g, b_swap(n->g, x, p->axis, last), m), p->axis, last);
}

// The weights of output coordinate o on the input coordinates.
static void weigh_row(const Resize *r, const AxisPlan *p, int64_t o, double *row) {
    double at = place(r, p, o);
    memset(row, 0, sizeof *row * (size_t)p->in);
    if (!outside(r, p, at)) weigh(r, p, at, row);
}

// Sum of at most MAX_TAPS gathers, each times a weight per output coordinate. NULL: an output reads more inputs.
static Value *taps_axis(OnnxNode *n, const Resize *r, const AxisPlan *p, Value *x) {
    Arena *a = n->g->arena;
    int64_t *at[MAX_TAPS];
    double *weight[MAX_TAPS], *row = NEW_ARRAY(a, double, p->in);
    int taps = 0;
    for (int64_t o = 0; o < p->out; o++) {
        int used = 0;
        weigh_row(r, p, o, row);
        for (int64_t i = 0; i < p->in; i++) {
            if (row[i] == 0) continue;
            if (used == MAX_TAPS) return NULL;
            if (used == taps) {
                at[taps] = NEW_ARRAY(a, int64_t, p->out);
                weight[taps++] = NEW_ARRAY(a, double, p->out);
            }
            at[used][o] = i;
            weight[used++][o] = row[i];
        }
    }
    Value *sum = taps ? NULL : b_filled(n->g, x->type.dtype, 0, x->type.rank, x->type.dim);
    for (int k = 0; k < taps; k++) {
        Value *wide = b_along(n->g, b_floats(n->g, x->type.dtype, 1, &p->out, weight[k]), x->type.rank, p->axis);
        Value *term = b_binary(n->g, OP_Mul, b_gather(n->g, x, b_ints(n->g, (int)p->out, at[k]), p->axis), wide);
        sum = k ? b_binary(n->g, OP_Add, sum, term) : term;
    }
    return sum;
}

static Value *filtered_axis(OnnxNode *n, const Resize *r, const AxisPlan *p, Value *x) {
    bool too_large = p->in * p->out > MAX_WEIGHED || (r->antialias && p->scale < 1.0 / MAX_SUPPORT);
    int errors = diag_errors();
    Value *v = too_large ? NULL : taps_axis(n, r, p, x);
    if (diag_errors() > errors) return NULL;
    if (!v && (too_large || p->in * p->out > MAX_MATRIX)) {
        diag_error_as(EXIT_LIMIT, n->loc, "resizing %lld to %lld elements is too large for a constant matrix",
            (long long)p->in, (long long)p->out);
        return NULL;
    }
    if (!v) {
        double *w = NEW_ARRAY(n->g->arena, double, p->in * p->out);
        for (int64_t o = 0; o < p->out; o++) weigh_row(r, p, o, w + o * p->in);
        v = matrix_axis(n, p, x, w);
    }
    return extrapolate(n, r, p, v);
}

static Value *resize(OnnxNode *n, const Resize *r, Value *x) {
    DType d = x->type.dtype, wide = dtype_is_float(d) ? dtype_wide(d) : DT_F32;
    if (r->mode != RESIZE_NEAREST) x = b_cast(n->g, x, wide);
    for (int i = 0; i < r->count && x; i++) {
        const AxisPlan *p = &r->axes[i];
        if (p->in == p->out && p->scale == 1 && !is(r->coordinates, "tf_crop_and_resize")) continue;
        if (p->in == 0 || p->out == 0) return onnx_fail(n, "axis %d: an empty axis cannot be resized", p->axis);
        if (p->out < 0 || p->out > MAX_OUT) {
            diag_error_as(EXIT_LIMIT, n->loc, "axis %d: %lld elements are more than the %d of a resized axis", p->axis,
                (long long)p->out, MAX_OUT);
            return NULL;
        }
        x = r->mode == RESIZE_NEAREST ? nearest_axis(n, r, p, x) : filtered_axis(n, r, p, x);
    }
    return b_cast(n->g, x, d);
}

// ---------------------------------------------------------------- the operators

static bool set_scale(OnnxNode *n, const Value *x, AxisPlan *p, int axis, double scale) {
    p->axis = axis;
    p->in = x->type.dim[axis];
    p->scale = scale;
    double out = floor((double)p->in * scale);
    if (!(scale > 0) || !(out < 1e9)) return onnx_fail(n, "the scale of axis %d is %g", axis, scale), false;
    p->out = (int64_t)out;
    return true;
}

static bool set_size(OnnxNode *n, const Value *x, AxisPlan *p, int axis, int64_t size) {
    p->axis = axis;
    p->in = x->type.dim[axis];
    p->out = size;
    if (size < 0 || size > 1000000000)
        return onnx_fail(n, "the size of axis %d is %lld", axis, (long long)size), false;
    p->scale = p->in ? (double)size / (double)p->in : 1;
    return true;
}

// One scale for all axes, such that no axis is larger (or smaller) than asked for.
static void keep_aspect(Resize *r, bool larger) {
    double scale = r->axes[0].scale;
    for (int i = 1; i < r->count; i++)
        if (larger ? r->axes[i].scale > scale : r->axes[i].scale < scale) scale = r->axes[i].scale;
    for (int i = 0; i < r->count; i++) {
        r->axes[i].scale = scale;
        r->axes[i].out = (int64_t)floor(scale * (double)r->axes[i].in + 0.5);
    }
}

static bool read_scales(OnnxNode *n, Resize *r, Value *x, int input, const int64_t *axes) {
    Tensor *t = onnx_const_input(n, input, "scales");
    if (!t) return false;
    if (type_count(&t->type) != r->count)
        return onnx_fail(n, "%lld scales for %d axes", (long long)type_count(&t->type), r->count), false;
    for (int i = 0; i < r->count; i++)
        if (!set_scale(n, x, &r->axes[i], (int)axes[i], tensor_get_f(t, i))) return false;
    return true;
}

static bool read_sizes(OnnxNode *n, Resize *r, Value *x, const int64_t *axes) {
    int64_t sizes[MAX_RANK];
    int count;
    if (!onnx_ints_input(n, 3, "sizes", sizes, &count, MAX_RANK)) return false;
    if (count != r->count) return onnx_fail(n, "%d sizes for %d axes", count, r->count), false;
    for (int i = 0; i < r->count; i++)
        if (!set_size(n, x, &r->axes[i], (int)axes[i], sizes[i])) return false;
    const char *policy = onnx_string(n, "keep_aspect_ratio_policy", "stretch");
    if (!is(policy, "stretch") && r->count) keep_aspect(r, is(policy, "not_smaller"));
    return true;
}

static bool read_roi(OnnxNode *n, Resize *r) {
    for (int i = 0; i < r->count; i++) r->axes[i].roi_end = 1;
    if (!is(r->coordinates, "tf_crop_and_resize")) return true;
    Tensor *t = onnx_const_input(n, 1, "roi");
    if (!t) return false;
    if (type_count(&t->type) != 2 * r->count)
        return onnx_fail(n, "roi has %lld elements, expected %d", (long long)type_count(&t->type), 2 * r->count),
               false;
    for (int i = 0; i < r->count; i++) {
        r->axes[i].roi_start = tensor_get_f(t, i);
        r->axes[i].roi_end = tensor_get_f(t, r->count + i);
    }
    return true;
}

static bool read_mode(OnnxNode *n, Resize *r) {
    static const char *const coordinates[] = { "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel",
        "align_corners", "asymmetric", "tf_crop_and_resize", "tf_half_pixel_for_nn" };
    static const char *const roundings[] = { "round_prefer_floor", "round_prefer_ceil", "floor", "ceil" };
    bool old = n->opset < 11, known = false;
    const char *mode = onnx_string(n, "mode", "nearest");
    if (!is(mode, "nearest") && !is(mode, "linear") && !is(mode, "bilinear") && !is(mode, "cubic"))
        return onnx_fail(n, "attribute \"mode\" is \"%s\"", mode), false;
    r->mode = is(mode, "nearest") ? RESIZE_NEAREST : is(mode, "cubic") ? RESIZE_CUBIC : RESIZE_LINEAR;
    r->coordinates = old ? "asymmetric" : onnx_string(n, "coordinate_transformation_mode", "half_pixel");
    r->rounding = old ? "floor" : onnx_string(n, "nearest_mode", "round_prefer_floor");
    for (size_t i = 0; i < COUNT(coordinates); i++) known = known || is(coordinates[i], r->coordinates);
    if (!known) return onnx_fail(n, "attribute \"coordinate_transformation_mode\" is \"%s\"", r->coordinates), false;
    known = false;
    for (size_t i = 0; i < COUNT(roundings); i++) known = known || is(roundings[i], r->rounding);
    if (!known) return onnx_fail(n, "attribute \"nearest_mode\" is \"%s\"", r->rounding), false;
    r->antialias = onnx_int(n, "antialias", 0) != 0;
    r->exclude_outside = onnx_int(n, "exclude_outside", 0) != 0;
    r->cubic_a = onnx_float(n, "cubic_coeff_a", -0.75);
    r->extrapolation = onnx_float(n, "extrapolation_value", 0);
    return true;
}

static bool has_elements(const OnnxNode *n, int i) {
    const Value *v = onnx_optional(n, i);
    return v && !(v->type.rank == 1 && v->type.dim[0] == 0);
}

// May coordinates and weights be constants?
static bool known_inputs(const OnnxNode *n, const Resize *r, int numbers) {
    Value *v = onnx_optional(n, numbers), *roi = is(r->coordinates, "tf_crop_and_resize") ? onnx_optional(n, 1) : NULL;
    return type_is_static(&n->in[0]->type) && (!v || value_const(v)) && (!roi || value_const(roi));
}

Value *onnx_resize(OnnxNode *n) {
    Resize r = { 0 };
    int64_t axes[MAX_RANK];
    bool given;
    if (!onnx_inputs(n, 1) || !read_mode(n, &r)) return NULL;
    Value *x = n->in[0];
    if (!onnx_axes(n, 99, x->type.rank, axes, &r.count, &given)) return NULL;
    if (!given)
        for (r.count = 0; r.count < x->type.rank; r.count++) axes[r.count] = r.count;
    bool by_sizes = n->opset >= 11 && has_elements(n, 3);
    int scales_at = n->opset < 11 ? 1 : 2;
    if (!known_inputs(n, &r, by_sizes ? 3 : scales_at)) return onnx_resize_run(n, &r, axes, by_sizes ? -1 : scales_at);
    bool ok = by_sizes ? read_sizes(n, &r, x, axes) : read_scales(n, &r, x, scales_at, axes);
    return ok && read_roi(n, &r) ? resize(n, &r, x) : NULL;
}

Value *onnx_upsample(OnnxNode *n) {
    Resize r = { 0 };
    if (!onnx_inputs(n, 1) || !read_mode(n, &r)) return NULL;
    Value *x = n->in[0];
    int64_t axes[MAX_RANK];
    for (r.count = 0; r.count < x->type.rank; r.count++) axes[r.count] = r.count;
    if (n->opset >= 9 && !known_inputs(n, &r, 1)) return onnx_resize_run(n, &r, axes, 1);
    if (n->opset < 9 && !b_static(n->g, x, "Upsample")) return NULL;
    if (n->opset >= 9) return read_scales(n, &r, x, 1, axes) && read_roi(n, &r) ? resize(n, &r, x) : NULL;
    const OnnxAttr *scales = n->opset < 7 ? NULL : onnx_attr(n, "scales", ONNX_FLOATS);
    if (n->opset < 7 ? r.count != 4 : !scales || scales->n != r.count)
        return onnx_fail(n,
            "wants an image [n, c, h, w], or from version 7 on an attribute \"scales\" of one element per dimension");
    const double sides[2] = { n->opset < 7 ? onnx_float(n, "height_scale", 1) : 1,
        n->opset < 7 ? onnx_float(n, "width_scale", 1) : 1 };
    for (int i = 0; i < r.count; i++)
        if (!set_scale(n, x, &r.axes[i], i, scales ? (double)scales->floats[i] : i < 2 ? 1 : sides[i - 2]))
            return NULL;
    return read_roi(n, &r) ? resize(n, &r, x) : NULL;
}
