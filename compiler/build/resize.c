// SPDX-License-Identifier: MIT OR Apache-2.0
// Builders that resize axes of known sizes.
//
// In: a Resize with a plan for each axis. Out: one step per resized axis: a view where every element is repeated or
// skipped, a gather for `nearest`, a few weighted gathers for `linear` and `cubic`, the sum of one weighted gather for
// wide (antialiasing) filters. The idea: each output coordinate o reads the input at x(o), a formula that
// `coordinates` chooses, with weights filter((i - x) * scale); so a table has the places and weights of each o, and is
// about as long as the longer of the axes, however wide the filter. Tables spend what constants may cost (constant.c).
#include "build/build.h"

#include <math.h>
#include <string.h>

#define MAX_TAPS 4              // gathers, one for each; wider filters have one for all
#define MAX_PLACE 1e12

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
        r->axes[i].out = (int64_t)fmin(floor(scale * (double)r->axes[i].in + 0.5), MAX_PLACE);
    }
}

// ---------------------------------------------------------------- coordinates and weights

// Where output coordinate o lies in the input.
static double source(const Resize *r, const AxisPlan *p, int64_t o) {
    double in = (double)p->in, width = p->scale * in, x = (double)o;
    if (r->coordinates == PLACE_ASYMMETRIC) return x / p->scale;
    if (r->coordinates == PLACE_HALF_PIXEL_FOR_NN) return (x + 0.5) / p->scale;
    if (r->coordinates == PLACE_ALIGN_CORNERS) return width == 1 ? 0 : x * (in - 1) / (width - 1);
    if (r->coordinates == PLACE_PYTORCH_HALF_PIXEL)
        return p->out == 1 ? (r->mode == RESIZE_NEAREST ? 0 : -0.5) : (x + 0.5) / p->scale - 0.5;
    if (r->coordinates == PLACE_HALF_PIXEL_SYMMETRIC)
        return in / 2 * (1 - (double)p->out / width) + (x + 0.5) / p->scale - 0.5;
    if (r->coordinates == PLACE_CROP_AND_RESIZE) {
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
    return r->coordinates == PLACE_CROP_AND_RESIZE && (x < 0 || x > (double)p->in - 1);
}

static int64_t clamp_index(double x, int64_t n) { return x < 0 ? 0 : x > (double)(n - 1) ? n - 1 : (int64_t)x; }

static int64_t nearest(const Resize *r, const AxisPlan *p, double x) {
    double at = r->rounding == ROUND_FLOOR     ? floor(x) :
        r->rounding == ROUND_CEIL              ? ceil(x) :
        r->rounding == ROUND_PREFER_CEIL ? floor(x + 0.5) :
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

// How far a filter reaches to each side of a place.
static double support(const Resize *r, const AxisPlan *p) {
    return ceil((r->mode == RESIZE_LINEAR ? 1 : 2) / (r->antialias && p->scale < 1 ? p->scale : 1));
}

// What one output coordinate reads: inputs first..first+count-1 with weights, a few of which may be 0.
typedef struct Reads { int64_t first, count; double *weight; } Reads;

static void weigh(const Resize *r, const AxisPlan *p, double x, Reads *reads) {
    double shrink = r->antialias && p->scale < 1 ? p->scale : 1, sum = 0;
    int64_t reach = (int64_t)support(r, p), at = (int64_t)floor(x), from = at - reach + 1, to = at + reach;
    reads->first = clamp_index((double)from, p->in);
    reads->count = clamp_index((double)to, p->in) - reads->first + 1;
    memset(reads->weight, 0, sizeof *reads->weight * (size_t)reads->count);
    for (int64_t i = from; i <= to; i++) {
        double w = filter(r, ((double)i - x) * shrink);
        if (r->exclude_outside && (i < 0 || i >= p->in)) continue;
        reads->weight[clamp_index((double)i, p->in) - reads->first] += w;
        sum += w;
    }
    if ((r->antialias || r->exclude_outside) && sum != 0)
        for (int64_t i = 0; i < reads->count; i++) reads->weight[i] /= sum;
}

// A table is made where the file may still cost so much; else a diagnostic.
static bool table_allowed(Graph *g, const AxisPlan *p, double entries) {
    if (b_table(g, entries)) return true;
    diag_error_as(EXIT_LIMIT, g->loc,
        "axis %d: resizing %lld to %lld elements takes a table of %.3g weights, too many for a constant",
        p->axis, (long long)p->in, (long long)p->out, entries);
    return false;
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
    if (!table_allowed(g, p, (double)p->out)) return NULL;
    int64_t *at = NEW_ARRAY(g->arena, int64_t, p->out);
    for (int64_t o = 0; o < p->out; o++) at[o] = nearest(r, p, place(r, p, o));
    Value *v = even_view(g, x, p, at);
    return extrapolate(g, r, p, v ? v : b_gather(g, x, b_ints(g, (int)p->out, at), p->axis));
}

// The nonzero weights of o, their places in *reads.
static int64_t read_by(const Resize *r, const AxisPlan *p, int64_t o, Reads *reads) {
    double x = place(r, p, o);
    int64_t used = 0;
    reads->first = reads->count = 0;
    if (!outside(r, p, x)) weigh(r, p, x, reads);
    for (int64_t i = 0; i < reads->count; i++) used += reads->weight[i] != 0;
    return used;
}

// The tables of all output coordinates, [taps, out] each. One that reads fewer inputs has its last again with the
// weight 0, so that nothing else meets its sum.
typedef struct Tables { int64_t taps; Tensor *at, *weight; } Tables;

static bool tables_make(Graph *g, const Resize *r, const AxisPlan *p, DType d, Tables *t) {
    double widest = fmin(2 * support(r, p), (double)p->in);
    if (!table_allowed(g, p, (double)p->out * 2 * support(r, p))) return false;
    Reads reads = { .weight = NEW_ARRAY(g->arena, double, (int64_t)widest) };
    *t = (Tables){ 0 };
    for (int64_t o = 0; o < p->out; o++) {
        int64_t used = read_by(r, p, o, &reads);
        if (used > t->taps) t->taps = used;
    }
    t->at = tensor_new(g->arena, type_make(DT_I64, 2, (Dim[]){ t->taps, p->out }));
    t->weight = tensor_new(g->arena, type_make(d, 2, (Dim[]){ t->taps, p->out }));
    for (int64_t o = 0; o < p->out; o++) {
        int64_t used = read_by(r, p, o, &reads), k = 0, last = 0;
        for (int64_t i = 0; i < reads.count; i++) {
            if (reads.weight[i] == 0) continue;
            last = reads.first + i;
            tensor_set_i(t->at, k * p->out + o, last);
            tensor_set_f(t->weight, k++ * p->out + o, reads.weight[i]);
        }
        for (k = used; k < t->taps; k++) tensor_set_i(t->at, k * p->out + o, last);
    }
    return true;
}

static Value *table_row(Graph *g, const Tensor *table, int64_t k) {
    Tensor *row = tensor_new(g->arena, type_make(table->type.dtype, 1, &table->type.dim[1]));
    size_t bytes = (size_t)type_bytes(&row->type);
    memcpy(row->data, (const char *)table->data + (size_t)k * bytes, bytes);
    return graph_const(g, row, NULL);
}

static Value *sum_of_gathers(Graph *g, const AxisPlan *p, const Tables *t, Value *x) {
    Value *sum = t->taps ? NULL : b_filled(g, x->type.dtype, 0, x->type.rank, x->type.dim);
    for (int64_t k = 0; k < t->taps; k++) {
        Value *wide = b_along(g, table_row(g, t->weight, k), x->type.rank, p->axis);
        Value *term = b_binary(g, OP_Mul, b_gather(g, x, table_row(g, t->at, k), p->axis), wide);
        sum = k ? b_binary(g, OP_Add, sum, term) : term;
    }
    return sum;
}

// x [.., in, ..] -> [.., taps, out, ..], summed over taps.
static Value *sum_of_one_gather(Graph *g, const AxisPlan *p, const Tables *t, Value *x) {
    Dim dims[MAX_RANK];
    Value *all = b_gather(g, x, graph_const(g, t->at, NULL), p->axis);
    if (!all) return NULL;
    for (int i = 0; i < all->type.rank; i++) dims[i] = 1;
    dims[p->axis] = t->taps;
    dims[p->axis + 1] = p->out;
    Value *weight = b_reshape(g, graph_const(g, t->weight, NULL), all->type.rank, dims);
    return b_reduce(g, OP_ReduceSum, b_binary(g, OP_Mul, all, weight), 1, (int64_t[]){ p->axis }, false);
}

static Value *filtered_axis(Graph *g, const Resize *r, const AxisPlan *p, Value *x) {
    Tables t;
    if (!tables_make(g, r, p, x->type.dtype, &t)) return NULL;
    return extrapolate(g, r, p, t.taps > MAX_TAPS ? sum_of_one_gather(g, p, &t, x) : sum_of_gathers(g, p, &t, x));
}

Value *b_resize(Graph *g, const Resize *r, Value *x) {
    DType d = x->type.dtype, wide = dtype_is_float(d) ? dtype_wide(d) : DT_F32;
    if (r->mode != RESIZE_NEAREST) x = b_cast(g, x, wide);
    for (int i = 0; i < r->count && x; i++) {
        const AxisPlan *p = &r->axes[i];
        if (p->in == p->out && p->scale == 1 && r->coordinates != PLACE_CROP_AND_RESIZE) continue;
        if (p->in == 0 || p->out == 0) return graph_fail(g, "axis %d: an empty axis cannot be resized", p->axis);
        x = r->mode == RESIZE_NEAREST ? nearest_axis(g, r, p, x) : filtered_axis(g, r, p, x);
    }
    return b_cast(g, x, d);
}
