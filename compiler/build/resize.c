// SPDX-License-Identifier: MIT OR Apache-2.0
// Builders that resize axes of known sizes.
//
// In: a Resize with a plan for each axis. Out: one step per resized axis: a view where every element is repeated or
// skipped, a gather for `nearest`, a few weighted gathers for `linear` and `cubic`, a product with a constant matrix
// for wide (antialiasing) filters. The idea: each output coordinate o reads the input at x(o), a formula that
// `coordinates` chooses, with weights filter((i - x) * scale).
#include "build/build.h"

#include <math.h>
#include <string.h>

#define MAX_TAPS 4              // weighted gathers; wider filters become matrices
#define MAX_SUPPORT 4096
#define MAX_PLACE 1e12
#define MAX_OUT (1 << 19)       // elements along a resized axis
#define MAX_WEIGHED (INT64_C(1) << 26)      // pairs of an input and an output coordinate that are looked at
#define MAX_MATRIX (INT64_C(1) << 22)       // ... and that become elements of a constant

static bool is(const char *s, const char *t) { return !strcmp(s, t); }

// ---------------------------------------------------------------- sizes

bool resize_by_scale(Graph *g, const Value *x, AxisPlan *p, int axis, double scale) {
    p->axis = axis;
    p->in = x->type.dim[axis];
    p->scale = scale;
    double out = floor((double)p->in * scale);
    if (!(scale > 0) || !(out < 1e9)) return graph_fail(g, "the scale of axis %d is %g", axis, scale), false;
    p->out = (int64_t)out;
    return true;
}

bool resize_to_size(Graph *g, const Value *x, AxisPlan *p, int axis, int64_t size) {
    p->axis = axis;
    p->in = x->type.dim[axis];
    p->out = size;
    if (size < 0 || size > 1000000000)
        return graph_fail(g, "the size of axis %d is %lld", axis, (long long)size), false;
    p->scale = p->in ? (double)size / (double)p->in : 1;
    return true;
}

// One scale for all axes, such that no axis is larger (or smaller) than asked for.
void resize_keep_aspect(Resize *r, bool larger) {
    double scale = r->axes[0].scale;
    for (int i = 1; i < r->count; i++)
        if (larger ? r->axes[i].scale > scale : r->axes[i].scale < scale) scale = r->axes[i].scale;
    for (int i = 0; i < r->count; i++) {
        r->axes[i].scale = scale;
        r->axes[i].out = (int64_t)floor(scale * (double)r->axes[i].in + 0.5);
    }
}

// ---------------------------------------------------------------- coordinates and weights

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

static Value *extrapolate(Graph *g, const Resize *r, const AxisPlan *p, Value *v) {
    bool any = false;
    if (!v) return NULL;
    Tensor *t = tensor_new(g->arena, type_make(DT_BOOL, 1, &p->out));
    for (int64_t o = 0; o < p->out; o++)
        if (outside(r, p, place(r, p, o))) {
            tensor_set_i(t, o, 1);
            any = true;
        }
    if (!any) return v;
    Value *outside = b_along(g, graph_const(g, t, NULL), v->type.rank, p->axis);
    return b_where(g, outside, b_like(g, v, r->extrapolation), v);
}

// Indices that repeat or skip evenly need no gather. NULL: they do not.
static Value *even_view(Graph *g, Value *x, const AxisPlan *p, const int64_t *at) {
    bool repeats = p->out % p->in == 0, skips = p->out > 1;
    int64_t by = p->out / p->in, step = skips ? at[1] - at[0] : 0;
    for (int64_t o = 0; o < p->out; o++) {
        repeats = repeats && at[o] == o / by;
        skips = skips && at[o] == at[0] + o * step;
    }
    if (repeats && x->type.rank < MAX_RANK) {
        Type t = x->type;
        Value *v = b_insert(g, x, p->axis + 1);
        if (!v) return NULL;
        Type wide = v->type;
        wide.dim[p->axis + 1] = by;
        t.dim[p->axis] = p->out;
        return b_reshape(g, b_expand(g, v, wide.rank, wide.dim), t.rank, t.dim);
    }
    if (!skips || step < 1) return NULL;
    int64_t starts[MAX_RANK] = { 0 }, steps[MAX_RANK];
    Type t = x->type;
    for (int i = 0; i < t.rank; i++) steps[i] = 1;
    starts[p->axis] = at[0];
    steps[p->axis] = step;
    t.dim[p->axis] = p->out;
    return b_slice(g, x, starts, steps, t.dim);
}

static Value *nearest_axis(Graph *g, const Resize *r, const AxisPlan *p, Value *x) {
    int64_t *at = NEW_ARRAY(g->arena, int64_t, p->out);
    for (int64_t o = 0; o < p->out; o++) at[o] = nearest(r, p, place(r, p, o));
    Value *v = even_view(g, x, p, at);
    return extrapolate(g, r, p, v ? v : b_gather(g, x, b_ints(g, (int)p->out, at), p->axis));
}

// W [out, in]: y = x W^T along the axis.
static Value *matrix_axis(Graph *g, const AxisPlan *p, Value *x, const double *w) {
    int last = x->type.rank - 1;
    Value *m = b_swap(g, b_floats(g, x->type.dtype, 2, (Dim[]){ p->out, p->in }, w), 0, 1);
    return b_swap(g, b_matmul(g, b_swap(g, x, p->axis, last), m), p->axis, last);
}

// The weights of output coordinate o on the input coordinates.
static void weigh_row(const Resize *r, const AxisPlan *p, int64_t o, double *row) {
    double at = place(r, p, o);
    memset(row, 0, sizeof *row * (size_t)p->in);
    if (!outside(r, p, at)) weigh(r, p, at, row);
}

// Sum of at most MAX_TAPS gathers, each times a weight per output coordinate. NULL: an output reads more inputs.
static Value *taps_axis(Graph *g, const Resize *r, const AxisPlan *p, Value *x) {
    Arena *a = g->arena;
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
    Value *sum = taps ? NULL : b_filled(g, x->type.dtype, 0, x->type.rank, x->type.dim);
    for (int k = 0; k < taps; k++) {
        Value *wide = b_along(g, b_floats(g, x->type.dtype, 1, &p->out, weight[k]), x->type.rank, p->axis);
        Value *term = b_binary(g, OP_Mul, b_gather(g, x, b_ints(g, (int)p->out, at[k]), p->axis), wide);
        sum = k ? b_binary(g, OP_Add, sum, term) : term;
    }
    return sum;
}

static Value *filtered_axis(Graph *g, const Resize *r, const AxisPlan *p, Value *x) {
    bool too_large = p->in * p->out > MAX_WEIGHED || (r->antialias && p->scale < 1.0 / MAX_SUPPORT);
    int errors = diag_errors();
    Value *v = too_large ? NULL : taps_axis(g, r, p, x);
    if (diag_errors() > errors) return NULL;
    if (!v && (too_large || p->in * p->out > MAX_MATRIX)) {
        diag_error_as(EXIT_LIMIT, g->loc, "resizing %lld to %lld elements is too large for a constant matrix",
            (long long)p->in, (long long)p->out);
        return NULL;
    }
    if (!v) {
        double *w = NEW_ARRAY(g->arena, double, p->in * p->out);
        for (int64_t o = 0; o < p->out; o++) weigh_row(r, p, o, w + o * p->in);
        v = matrix_axis(g, p, x, w);
    }
    return extrapolate(g, r, p, v);
}

Value *b_resize(Graph *g, const Resize *r, Value *x) {
    DType d = x->type.dtype, wide = dtype_is_float(d) ? dtype_wide(d) : DT_F32;
    if (r->mode != RESIZE_NEAREST) x = b_cast(g, x, wide);
    for (int i = 0; i < r->count && x; i++) {
        const AxisPlan *p = &r->axes[i];
        if (p->in == p->out && p->scale == 1 && !is(r->coordinates, "tf_crop_and_resize")) continue;
        if (p->in == 0 || p->out == 0) return graph_fail(g, "axis %d: an empty axis cannot be resized", p->axis);
        if (p->out < 0 || p->out > MAX_OUT) {
            diag_error_as(EXIT_LIMIT, g->loc, "axis %d: %lld elements are more than the %d of a resized axis", p->axis,
                (long long)p->out, MAX_OUT);
            return NULL;
        }
        x = r->mode == RESIZE_NEAREST ? nearest_axis(g, r, p, x) : filtered_axis(g, r, p, x);
    }
    return b_cast(g, x, d);
}
