// SPDX-License-Identifier: MIT OR Apache-2.0
// ONNX's operators that take parts of tensors, or surround them: Slice, Pad, CenterCropPad, Trilu.
//
// In: an OnnxNode. Out: Slice and Pad of bounds that are known while importing; run/views.c has those that the program
// computes.
#include "import/onnx/run/measure.h"

#include <string.h>

typedef struct Cut { int axis; DimValue start, end; int64_t step; } Cut;

// The last elements of an axis of unknown size: gathered by negative indices.
static Value *slice_tail(OnnxNode *n, Value *x, const Cut *c) {
    int64_t from = c->start.v, to = c->end.v < 0 ? c->end.v : 0, count = to - from;
    if (!b_table(n->g, (double)count)) {
        Value *run = B_MAP(n->g, arena_printf(n->g->arena, "x + %lld", (long long)from), "x",
            b_iota(n->g, 1, &count, 0, DT_I64));
        return b_gather(n->g, x, run, c->axis);
    }
    int64_t *at = NEW_ARRAY(n->g->arena, int64_t, count);
    for (int64_t i = 0; i < count; i++) at[i] = from + i;
    return b_gather(n->g, x, b_ints(n->g, (int)count, at), c->axis);
}

static Dim cut_end(Graph *g, Dim size, const Cut *c) {
    if (!c->end.symbolic && c->end.v >= INT32_MAX) return size;
    return !c->end.symbolic && c->end.v < 0 ? dim_sub(g, size, -c->end.v) : c->end.v;
}

// Is the cut plain to see: of known bounds, or, where the size or an end is symbolic, of steps of 1 from a known
// start and inside for every size?
static bool plain_cut(Graph *g, Dim size, const Cut *c) {
    if (dim_is_const(size) && !c->start.symbolic && !c->end.symbolic) return true;
    if (c->step != 1 || c->start.symbolic || c->start.v < -INT32_MAX || (!c->end.symbolic && c->end.v < -INT32_MAX))
        return false;
    if (c->start.v < 0) {
        int64_t to = c->end.v < 0 ? c->end.v : 0;
        return !dim_is_const(size) && !c->end.symbolic && (c->end.v < 0 || c->end.v >= INT32_MAX) && to > c->start.v
            && to - c->start.v <= 4096 && dim_lower(g, size) >= -c->start.v;
    }
    Dim end = cut_end(g, size, c);
    return dim_lower(g, dim_sub(g, size, end)) >= 0 && dim_lower(g, dim_sub(g, end, c->start.v)) >= 0;
}

static Value *slice_symbolic(OnnxNode *n, Value *x, const Cut *c) {
    if (c->start.v < 0) return slice_tail(n, x, c);
    return b_part(n->g, x, c->axis, c->start.v, dim_sub(n->g, cut_end(n->g, x->type.dim[c->axis], c), c->start.v));
}

static int64_t clamp(int64_t v, int64_t lo, int64_t hi) { return v < lo ? lo : v > hi ? hi : v; }

static Value *slice_axis(OnnxNode *n, Value *x, const Cut *c) {
    Dim size = x->type.dim[c->axis];
    if (c->step == 0) return onnx_fail(n, "the step of axis %d is 0", c->axis);
    if (!dim_is_const(size) || c->start.symbolic || c->end.symbolic) return slice_symbolic(n, x, c);
    int64_t start = c->start.v < 0 ? c->start.v + size : c->start.v, end = c->end.v < 0 ? c->end.v + size : c->end.v,
            count;
    if (c->step > 0) {
        start = clamp(start, 0, size);
        end = clamp(end, 0, size);
        count = end > start ? (end - start - 1) / c->step + 1 : 0;
    } else {
        start = clamp(start, -1, size - 1);
        end = clamp(end, -1, size - 1);
        count = start > end ? (start - end - 1) / (c->step == INT64_MIN ? INT64_MAX : -c->step) + 1 : 0;
    }
    int64_t starts[MAX_RANK] = { 0 }, steps[MAX_RANK];
    Dim sizes[MAX_RANK];
    for (int i = 0; i < x->type.rank; i++) {
        steps[i] = 1;
        sizes[i] = x->type.dim[i];
    }
    starts[c->axis] = count ? start : 0;
    steps[c->axis] = count > 1 ? c->step : 1;
    sizes[c->axis] = count;
    return b_slice(n->g, x, starts, steps, sizes);
}

static bool constants(DimItem *to, const int64_t *from, int count) {
    for (int i = 0; i < count && i < MAX_RANK; i++) to[i] = (DimItem){ .known = true, .is = { false, from[i] } };
    return from != NULL && count <= MAX_RANK;
}

// Item k of input i as a scalar; absent: 1.
static Value *cut_number(OnnxNode *n, int i, int k) {
    int count;
    return onnx_optional(n, i) ? b_item(n->g, onnx_list(n, i, "a bound", &count), k) : b_number(n->g, 1);
}

Value *onnx_slice(OnnxNode *n) {
    if (!onnx_inputs(n, 1)) return NULL;
    Value *x = n->in[0];
    DimItem starts[MAX_DIM_VALUES], ends[MAX_DIM_VALUES], steps[MAX_DIM_VALUES];
    int64_t axes[MAX_RANK];
    int count, n_ends, n_axes, n_steps = 0;
    bool given;
    if (n->opset < 10) {
        const int64_t *a = onnx_ints(n, "starts", &count), *b = onnx_ints(n, "ends", &n_ends);
        if (!constants(starts, a, count) || !constants(ends, b, n_ends))
            return onnx_fail(n, "attributes \"starts\" and \"ends\" are missing or too long");
    } else {
        if (!onnx_list(n, 1, "starts", &count) || !onnx_list(n, 2, "ends", &n_ends)) return NULL;
        if (!onnx_knows(n, 3)) return onnx_slice_run(n);
        if (onnx_optional(n, 4)
            && (!onnx_list(n, 4, "steps", &n_steps) || !onnx_dim_items(n->g, n->in[4], steps, &n_steps)))
            return NULL;
        if (!onnx_dim_items(n->g, n->in[1], starts, &count) || !onnx_dim_items(n->g, n->in[2], ends, &n_ends))
            return NULL;
    }
    if (!onnx_axes(n, 3, x->type.rank, axes, &n_axes, &given)) return NULL;
    if (count != n_ends || (given && n_axes != count) || (n_steps && n_steps != count) || count > x->type.rank)
        return onnx_fail(n, "starts, ends, axes and steps differ in length, or exceed the input's rank");
    for (int i = 0; i < count && x; i++) {
        bool known = starts[i].known && ends[i].known && (!n_steps || (steps[i].known && !steps[i].is.symbolic));
        Cut c = { given ? (int)axes[i] : i, starts[i].is, ends[i].is, n_steps ? steps[i].is.v : 1 };
        if (known && plain_cut(n->g, x->type.dim[c.axis], &c)) x = slice_axis(n, x, &c);
        else if (n->opset >= 10) {
            Value *start = cut_number(n, 1, i), *end = cut_number(n, 2, i);
            x = onnx_cut_run(n, x, c.axis, start, end, cut_number(n, 4, i));
        } else
            return onnx_fail(
                n, "the slice of axis %d depends on a symbolic dimension; pin it with --dim NAME=V", c.axis);
    }
    return x;
}

// ---------------------------------------------------------------- pad

Value *onnx_pad(OnnxNode *n) {
    if (!onnx_inputs(n, 1)) return NULL;
    Value *x = n->in[0], *fill = NULL;
    int64_t pads[2 * MAX_RANK], axes[MAX_RANK], lo[MAX_RANK] = { 0 }, hi[MAX_RANK] = { 0 };
    int rank = x->type.rank, count, n_axes = rank;
    for (int i = 0; i < rank; i++) axes[i] = i;
    if (n->opset < 11) {
        const int64_t *given = onnx_ints(n, n->opset < 2 ? "paddings" : "pads", &count);
        if (!given || count > 2 * MAX_RANK) return onnx_fail(n, "attribute \"pads\" is missing or too long");
        memcpy(pads, given, sizeof *pads * (size_t)count);
        double value = onnx_float(n, "value", 0);
        if (value != 0) fill = b_like(n->g, x, value);
    } else {
        bool given;
        if (!onnx_input(n, 1)) return NULL;
        if (onnx_optional(n, 2) && !(fill = b_scalar_of(n->g, n->in[2]))) return NULL;
        if (!onnx_knows(n, 1) || !onnx_knows(n, 3)) return onnx_pad_run(n, onnx_string(n, "mode", "constant"), fill);
        if (!onnx_ints_input(n, 1, "pads", pads, &count, 2 * MAX_RANK)) return NULL;
        if (onnx_optional(n, 3) && !onnx_axes(n, 3, rank, axes, &n_axes, &given)) return NULL;
    }
    if (count != 2 * n_axes) return onnx_fail(n, "pads has %d elements for %d axes", count, n_axes);
    for (int i = 0; i < n_axes; i++) {
        lo[axes[i]] = pads[i];
        hi[axes[i]] = pads[n_axes + i];
    }
    return b_pad_mode(n->g, x, lo, hi, onnx_string(n, "mode", "constant"), fill);
}

Value *onnx_center_crop_pad(OnnxNode *n) {
    if (!onnx_inputs(n, 2)) return NULL;
    Value *x = n->in[0];
    int64_t shape[MAX_RANK], axes[MAX_RANK], lo[MAX_RANK] = { 0 }, hi[MAX_RANK] = { 0 };
    int count, n_axes;
    bool given;
    if (!onnx_axes(n, 99, x->type.rank, axes, &n_axes, &given) || !onnx_list(n, 1, "the shape", &count)) return NULL;
    if (count != (given ? n_axes : x->type.rank))
        return onnx_fail(n, "the shape has %d elements for %d axes", count, given ? n_axes : x->type.rank);
    if (!onnx_knows(n, 1) || !type_is_static(&x->type)) return onnx_center_crop_pad_run(n, given ? axes : NULL);
    if (!onnx_ints_input(n, 1, "the shape", shape, &count, MAX_RANK)) return NULL;
    for (int i = 0; i < count; i++) {
        int axis = given ? (int)axes[i] : i;
        if (shape[i] < 0) return onnx_fail(n, "the shape holds %lld", (long long)shape[i]);
        int64_t size = x->type.dim[axis], grow = shape[i] - size;
        lo[axis] = grow >= 0 ? grow / 2 : -(-grow / 2);
        hi[axis] = grow - lo[axis];
    }
    return b_pad(n->g, x, lo, hi, NULL, NULL);
}

Value *onnx_trilu(OnnxNode *n) {
    if (!onnx_inputs(n, 1)) return NULL;
    Value *x = n->in[0];
    int rank = x->type.rank;
    if (rank < 2) return onnx_fail(n, "the input must have at least 2 dimensions");
    bool upper = onnx_int(n, "upper", 1) != 0;
    return b_triangle(n->g, x, onnx_optional(n, 1), upper);
}
