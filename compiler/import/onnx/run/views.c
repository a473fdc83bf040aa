// SPDX-License-Identifier: MIT OR Apache-2.0
// Views whose shapes, bounds or axes the running program computes: what the builders of ops/shape.c, ops/index.c and
// ops/reduce.c fall back on where their integers are not known while importing.
//
// In: an OnnxNode and lists of integers as values. Out: the same few operations as ever over measured dimensions
// (run/measure.c). The idea: a cut or a padding whose place is known only at run time is a gather of places that are
// computed, one axis after the other; an axis that is chosen at run time is a reshape that puts it where it is
// expected: [outer, axis, inner], or [kept, reduced] for every axis. No operation of the intermediate representation
// exists for these cases alone.
#include "measure.h"

#include <string.h>

static const int64_t first_axis = 0;

static Value *product(OnnxNode *n, Value *list) { return b_reduce(n->g, OP_ReduceProd, list, 1, &first_axis, false); }

// ---------------------------------------------------------------- reshape

// x in the shape that the list `dims` holds, whose product is x's size. known[i] is dimension i where it is known,
// else NO_LIMIT. The last unknown one follows from the others, so that the type's bound is no more than x's size;
// where x may be empty it does not, and several that are unknown had better be bounded by something else. trusted:
// the list fits; else it holds negative numbers where it does not.
static Value *reshape_to(OnnxNode *n, Value *x, Value *dims, int count, Dim *known, bool trusted) {
    if (!x || !dims) return NULL;
    if (count > MAX_RANK) {
        diag_error_as(EXIT_LIMIT, n->loc, "the result has %d dimensions; at most %d are supported", count, MAX_RANK);
        return NULL;
    }
    Dim total = type_product(n->g, &x->type, 0, x->type.rank), others = 1, shape[MAX_RANK];
    int last = -1, open = 0;
    for (int i = 0; i < count; i++) {
        if (known[i] != NO_LIMIT) {
            others = dim_mul(n->g, others, known[i]);
            continue;
        }
        open++;
        last = i;
    }
    bool filled = dim_lower(n->g, total) >= 1 && dim_lower(n->g, others) >= 1;
    if (!trusted && open == 1) last = -1;               // nothing else would notice that it does not fit
    for (int i = 0; i < count; i++) {
        shape[i] = known[i];
        if (known[i] != NO_LIMIT || (filled && i == last)) continue;
        Dim limit = filled ? dim_div(n->g, total, others) : total == 0 || open > 1 ? NO_LIMIT : total;
        if (!onnx_measure(n, dims, i, 0, i, filled, limit, &shape[i])) return NULL;
    }
    for (int i = 0; i < last && filled; i++)
        if (known[i] == NO_LIMIT) others = dim_mul(n->g, others, shape[i]);
    if (last >= 0 && filled) shape[last] = dim_div(n->g, total, others);
    return b_reshape(n->g, x, count, shape);
}

static void all_unknown(Dim *known, int count) {
    for (int i = 0; i < count && i < MAX_RANK; i++) known[i] = NO_LIMIT;
}

// 0 copies the input's dimension, one -1 is what is left; a list that does not fit becomes negative, which no size
// may be.
Value *onnx_reshape_run(OnnxNode *n, bool allow_zero) {
    Value *x = n->in[0];
    DimItem items[MAX_DIM_VALUES];
    Dim known[MAX_RANK], copied[MAX_RANK];
    int count;
    Value *list = onnx_list(n, 1, "the shape", &count);
    if (!list || !onnx_dim_items(n->g, list, items, &count)) return NULL;
    all_unknown(known, count);
    for (int i = 0; i < count && i < MAX_RANK; i++) {
        copied[i] = i < x->type.rank ? x->type.dim[i] : 0;
        if (!items[i].known || (!items[i].is.symbolic && items[i].is.v < 0)) continue;
        known[i] = items[i].is.v == 0 && !allow_zero ? copied[i] : items[i].is.v;
    }
    if (count > MAX_RANK) return reshape_to(n, x, list, count, known, false);
    Value *size = b_number(n->g, type_product(n->g, &x->type, 0, x->type.rank));
    if (!allow_zero) list = B_MAP(n->g, "x == 0 ? y : x", "x y", list, b_numbers(n->g, count, copied));
    Value *given = product(n, B_MAP(n->g, "x == -1 ? 1 : x", "x", list));
    list = B_MAP(n->g, "x == -1 ? y / z : x", "x y z", list, size, given);
    list = B_MAP(n->g, "x == y ? z : -1", "x y z", product(n, list), size, list);
    return reshape_to(n, x, list, count, known, false);
}

// 1 where the axis is in the list, i64[rank].
static Value *chosen_axes(OnnxNode *n, Value *axes, int count, int rank) {
    axes = b_reshape(n->g, b_normal_axes(n->g, axes, rank), 2, (Dim[]){ 1, count });
    Value *at = b_iota(n->g, 2, (Dim[]){ rank, 1 }, 0, DT_I64);
    Value *hit = b_cast(n->g, b_binary(n->g, OP_Equal, at, axes), DT_I64);
    return b_reduce(n->g, OP_ReduceMax, hit, 1, (int64_t[]){ 1 }, false);
}

// How many axes before each one are not chosen.
static Value *places_of(OnnxNode *n, Value *chosen, int rank) {
    Value *at = b_iota(n->g, 2, (Dim[]){ rank, rank }, 0, DT_I64),
          *before = b_iota(n->g, 2, (Dim[]){ rank, rank }, 1, DT_I64);
    Value *kept = B_MAP(n->g, "x < y ? 1 - z : 0", "x y z", before, at, chosen);
    return b_reduce(n->g, OP_ReduceSum, kept, 1, (int64_t[]){ 1 }, false);
}

// The dimensions of the axes that are not chosen, in order: i64[count].
static Value *kept_dims(OnnxNode *n, Value *dims, Value *chosen, int rank, int count) {
    if (!count) return b_ints(n->g, 0, NULL);
    Value *to = b_iota(n->g, 2, (Dim[]){ count, rank }, 0, DT_I64);
    Value *picked = B_MAP(n->g, "x == y && z == 0 ? w : 0", "x y z w", to, places_of(n, chosen, rank), chosen, dims);
    return b_reduce(n->g, OP_ReduceSum, picked, 1, (int64_t[]){ 1 }, false);
}

static bool axes_list(OnnxNode *n, int input, int rank, Value **axes, int *count) {
    *axes = onnx_list(n, input, "the list of axes", count);
    if (*axes && *count <= rank) return true;
    if (*axes) onnx_fail(n, "%d axes are listed, the tensor has %d", *count, rank);
    return false;
}

Value *onnx_squeeze_run(OnnxNode *n) {
    Value *x = n->in[0], *axes;
    int count, rank = x->type.rank;
    Dim known[MAX_RANK];
    if (!axes_list(n, 1, rank, &axes, &count)) return NULL;
    all_unknown(known, rank);
    Value *dims = b_numbers(n->g, rank, x->type.dim);
    dims = kept_dims(n, dims, chosen_axes(n, axes, count, rank), rank, rank - count);
    return reshape_to(n, x, dims, rank - count, known, true);
}

Value *onnx_unsqueeze_run(OnnxNode *n) {
    Value *x = n->in[0], *axes;
    int count, rank = x->type.rank;
    Dim known[MAX_RANK];
    if (!axes_list(n, 1, MAX_RANK, &axes, &count)) return NULL;
    int wide = rank + count;
    all_unknown(known, wide);
    if (wide > MAX_RANK) return reshape_to(n, x, axes, wide, known, true);
    Value *chosen = chosen_axes(n, axes, count, wide);
    if (!rank) return reshape_to(n, x, chosen, wide, known, true);
    Value *from = b_numbers(n->g, rank, x->type.dim);
    from = b_gather(n->g, from, places_of(n, chosen, wide), 0);
    return reshape_to(n, x, B_MAP(n->g, "x != 0 ? 1 : y", "x y", chosen, from), wide, known, true);
}

// x as [outer, axis, inner] around an axis that a scalar names.
Value *onnx_lines_run(OnnxNode *n, Value *x, Value *axis) {
    int rank = x->type.rank;
    Dim known[MAX_RANK];
    if (!rank) return onnx_fail(n, "the input has no axes");
    Value *at = b_iota(n->g, 1, (Dim[]){ rank }, 0, DT_I64), *dims = b_numbers(n->g, rank, x->type.dim);
    axis = b_normal_axes(n->g, b_cast(n->g, b_scalar_of(n->g, axis), DT_I64), rank);
    Value *outer = product(n, B_MAP(n->g, "x < y ? z : 1", "x y z", at, axis, dims));
    Value *length = product(n, B_MAP(n->g, "x == y ? z : 1", "x y z", at, axis, dims));
    Value *inner = product(n, B_MAP(n->g, "x > y ? z : 1", "x y z", at, axis, dims));
    all_unknown(known, 3);
    return reshape_to(n, x, b_joined(n->g, 3, (Value *[]){ outer, length, inner }), 3, known, true);
}

// ---------------------------------------------------------------- reductions

// An axis is cut in two, [kept, reduced]: one of them is the axis and the other 1.
Value *onnx_reduce_run(OnnxNode *n, Op op, Value *x, const RunAxes *a) {
    Dim dims[MAX_RANK];
    // one axis after the other, as all at once would double the rank
    for (int i = 0; i < a->rank && x; i++) {
        if (x->type.dim[i] == 1) continue;
        for (int k = 0; k < a->rank; k++) dims[k + (k > i)] = x->type.dim[k];
        dims[i] = a->kept[i];
        dims[i + 1] = a->reduced[i];
        x = b_reduce(n->g, op, b_reshape(n->g, x, a->rank + 1, dims), 1, (int64_t[]){ i + 1 }, false);
    }
    return x;
}

// What was reduced, in every place that it came from: x's dimensions again.
Value *onnx_reduce_spread(OnnxNode *n, Value *x, const RunAxes *a, const Dim *full) {
    Dim dims[MAX_RANK];
    for (int i = 0; i < a->rank && x; i++) {
        if (full[i] == 1) continue;
        for (int k = 0; k < a->rank; k++) dims[k + (k > i)] = x->type.dim[k];
        dims[i + 1] = 1;
        x = b_reshape(n->g, x, a->rank + 1, dims);
        dims[i + 1] = a->reduced[i];
        x = b_expand(n->g, x, a->rank + 1, dims);
        for (int k = i + 1; k < a->rank; k++) dims[k] = dims[k + 1];
        dims[i] = full[i];
        x = b_reshape(n->g, x, a->rank, dims);
    }
    return x;
}

// The same dimensions without those that were reduced.
Value *onnx_reduce_drop(OnnxNode *n, Value *x, const RunAxes *a) {
    Dim known[MAX_RANK];
    all_unknown(known, a->rank);
    return reshape_to(
        n, x, kept_dims(n, a->dims, a->chosen, a->rank, a->rank - a->count), a->rank - a->count, known, true);
}

bool onnx_run_axes(OnnxNode *n, const Value *x, RunAxes *a) {
    Value *axes;
    *a = (RunAxes){ .rank = x->type.rank };
    if (!axes_list(n, 1, a->rank, &axes, &a->count)) return false;
    if (a->rank >= MAX_RANK)
        return onnx_fail(n, "axes that are computed at run time want fewer than %d dimensions", MAX_RANK), false;
    a->chosen = chosen_axes(n, axes, a->count, a->rank);
    a->dims = b_numbers(n->g, a->rank, x->type.dim);
    Value *kept = B_MAP(n->g, "x != 0 ? 1 : y", "x y", a->chosen, a->dims),
          *reduced = B_MAP(n->g, "x != 0 ? y : 1", "x y", a->chosen, a->dims);
    for (int i = 0; i < a->rank; i++) {
        Dim d = x->type.dim[i];
        bool filled = dim_lower(n->g, d) >= 1;
        a->kept[i] = a->reduced[i] = 1;
        if (d == 1) continue;
        if (!onnx_measure(n, kept, i, -1, i, filled, dim_is_const(d) && d < 1 ? 1 : d, &a->kept[i])) return false;
        if (filled) a->reduced[i] = dim_div(n->g, d, a->kept[i]);
        else if (!onnx_measure(n, reduced, i, -1, i, 0, dim_is_const(d) && d < 1 ? 1 : d, &a->reduced[i]))
            return false;
    }
    return true;
}

// ---------------------------------------------------------------- expand, tile, fill

// A dimension that is not 1 stays; a 1 becomes what the shape says.
Value *onnx_expand_run(OnnxNode *n) {
    Value *x = n->in[0];
    int count;
    Value *list = onnx_list(n, 1, "the shape", &count);
    if (!list) return NULL;
    int rank = count > x->type.rank ? count : x->type.rank;
    Dim dims[MAX_RANK];
    if (rank > MAX_RANK) return onnx_fail(n, "the result has %d dimensions; at most %d are supported", rank, MAX_RANK);
    for (int i = 0; i < rank; i++) {
        int from = i - (rank - x->type.rank), at = i - (rank - count);
        Dim d = from < 0 ? 1 : x->type.dim[from];
        dims[i] = d;
        if (at < 0 || (dim_is_const(d) && d != 1)) continue;
        Value *asked = list;
        if (d != 1) asked = B_MAP(n->g, "y == 1 ? x : y", "x y", list, b_number(n->g, d));
        if (!onnx_measure(n, asked, at, 0, i, 0, NO_LIMIT, &dims[i])) return NULL;
        if (d == 1 || dims[i] == d) continue;
        // 0 where there is one element
        Value *place = B_MAP(n->g, "min(x, y - 1)", "x y", b_iota(n->g, 1, &dims[i], 0, DT_I64), b_number(n->g, d));
        x = b_gather(n->g, x, place, from);
        if (!x) return NULL;
    }
    return b_expand(n->g, x, rank, dims);
}

bool onnx_repeats_run(OnnxNode *n, const Value *x, Dim *times) {
    int count;
    Value *list = onnx_list(n, 1, "repeats", &count);
    if (!list) return false;
    if (count != x->type.rank)
        return onnx_fail(n, "repeats has %d elements, the input has %d dimensions", count, x->type.rank), false;
    for (int i = 0; i < count; i++) {
        const EndDim *declared = onnx_declared_dim(n, 0, i);
        Dim d = x->type.dim[i], limit = NO_LIMIT;
        if (declared && declared->known && declared->value >= 0 && dim_is_const(d) && d > 0)
            limit = declared->value / d;
        if (!onnx_measure(n, list, i, 0, i, 0, limit, &times[i])) return false;
    }
    return true;
}

// ---------------------------------------------------------------- slice

// Both ends counted from the start and clamped: to 0..size for steps up, to -1..size-1 for steps down.
static const char clamp[] = "min(max(x < 0 ? x + y : x, z < 0 ? -1 : 0), z < 0 ? y - 1 : y)";
static const char steps_between[] = "z == 0 ? -1 : (z > 0 ? x < y : x > y) ? (y - x - (z > 0 ? 1 : -1)) / z + 1 : 0";

static Value *take_cut(OnnxNode *n, Value *x, int axis, Value *start, Value *step, Value *counts, int at) {
    Dim size;
    if (!counts || !onnx_measure(n, counts, at, 0, axis, 0, x->type.dim[axis], &size)) return NULL;
    Tensor *known = value_const(step);
    return b_take(n->g, x, axis, start, known && tensor_get_i(known, 0) == 1 ? NULL : step, size);
}

Value *onnx_cut_run(OnnxNode *n, Value *x, int axis, Value *start, Value *end, Value *step) {
    if (!x) return NULL;
    Value *length = b_number(n->g, x->type.dim[axis]);
    start = B_MAP(n->g, clamp, "x y z", start, length, step);
    end = B_MAP(n->g, clamp, "x y z", end, length, step);
    Value *count = B_MAP(n->g, steps_between, "x y z", start, end, step);
    return take_cut(n, x, axis, start, step, b_joined(n->g, 1, &count), 0);
}

// The list's items at the axes that another list says, `otherwise` [rank] at the others: i64[rank].
static Value *spread(OnnxNode *n, Value *list, Value *axes, int count, int rank, Value *otherwise) {
    if (!axes || !list) return NULL;
    axes = b_reshape(n->g, b_normal_axes(n->g, axes, rank), 2, (Dim[]){ 1, count });
    Value *at = b_iota(n->g, 2, (Dim[]){ rank, 1 }, 0, DT_I64);
    Value *here = B_MAP(n->g, "x == y ? z : 0", "x y z", at, axes, list),
          *any = b_cast(n->g, b_binary(n->g, OP_Equal, at, axes), DT_I64);
    here = b_reduce(n->g, OP_ReduceSum, here, 1, (int64_t[]){ 1 }, false);
    any = b_reduce(n->g, OP_ReduceMax, any, 1, (int64_t[]){ 1 }, false);
    return B_MAP(n->g, "x != 0 ? y : z", "x y z", any, here, otherwise);
}

static Value *repeated(OnnxNode *n, int64_t number, int count) {
    int64_t list[MAX_RANK];
    for (int i = 0; i < count; i++) list[i] = number;
    return b_ints(n->g, count, list);
}

// Which axes are cut is not known: each one may be.
Value *onnx_slice_run(OnnxNode *n) {
    Value *x = n->in[0];
    int count, n_ends, n_axes, n_steps, rank = x->type.rank;
    Value *starts = onnx_list(n, 1, "starts", &count), *ends = onnx_list(n, 2, "ends", &n_ends),
          *axes = onnx_list(n, 3, "the list of axes", &n_axes);
    Value *steps = onnx_optional(n, 4) ? onnx_list(n, 4, "steps", &n_steps) :
                                         repeated(n, 1, n_steps = count > MAX_RANK ? 0 : count);
    if (!starts || !ends || !axes || !steps) return NULL;
    if (count != n_ends || count != n_axes || count != n_steps || count > rank)
        return onnx_fail(n, "starts, ends, axes and steps differ in length, or exceed the input's rank");
    Value *lengths = b_numbers(n->g, rank, x->type.dim);
    starts = spread(n, starts, axes, count, rank, repeated(n, 0, rank));
    ends = spread(n, ends, axes, count, rank, lengths);
    steps = spread(n, steps, axes, count, rank, repeated(n, 1, rank));
    starts = B_MAP(n->g, clamp, "x y z", starts, lengths, steps);
    ends = B_MAP(n->g, clamp, "x y z", ends, lengths, steps);
    Value *counts = B_MAP(n->g, steps_between, "x y z", starts, ends, steps);
    for (int i = 0; i < rank && x; i++) {
        Value *start = b_item(n->g, starts, i);
        x = take_cut(n, x, i, start, b_item(n->g, steps, i), counts, i);
    }
    return x;
}

// Sizes that must add up to the axis.
Value *onnx_split_run(OnnxNode *n, int axis) {
    Value *x = n->in[0];
    int count;
    Value *sizes = onnx_list(n, 1, "the list of sizes", &count), *start = NULL;
    if (!sizes) return NULL;
    if (count != n->n_out) return onnx_fail(n, "%d sizes for %d outputs", count, n->n_out);
    Value *sum = b_reduce(n->g, OP_ReduceSum, sizes, 1, &first_axis, false);
    Value *checked = B_MAP(n->g, "x == y ? z : -1", "x y z", sum, b_number(n->g, x->type.dim[axis]), sizes);
    for (int i = 0; i < count; i++) {
        Dim size;
        if (!onnx_measure(n, checked, i, i, axis, 0, x->type.dim[axis], &size)) return NULL;
        if (!(n->out[i] = b_take(n->g, x, axis, start, NULL, size))) return NULL;
        Value *taken = b_item(n->g, sizes, i);
        start = start ? b_binary(n->g, OP_Add, start, taken) : taken;
    }
    return n->out[0];
}

// ---------------------------------------------------------------- pad

// `size` elements along axis, of which the first is x's element -lo; what lies outside is `fill` (NULL: 0) or follows
// the mode.
static Value *shift_axis(OnnxNode *n, Value *x, int axis, Value *lo, Dim size, const char *mode, Value *fill) {
    Value *length = b_number(n->g, x->type.dim[axis]),
          *at = B_MAP(n->g, "x - y", "x y", b_iota(n->g, 1, &size, 0, DT_I64), lo);
    if (!strcmp(mode, "edge")) return b_gather(n->g, x, B_MAP(n->g, "min(max(x, 0), y - 1)", "x y", at, length), axis);
    if (!strcmp(mode, "wrap")) return b_gather(n->g, x, B_MAP(n->g, "floormod(x, y)", "x y", at, length), axis);
    if (!strcmp(mode, "reflect")) {
        Value *t = B_MAP(n->g, "floormod(x, 2 * y - 2)", "x y", at, length);
        return b_gather(n->g, x, B_MAP(n->g, "x < y ? x : 2 * y - 2 - x", "x y", t, length), axis);
    }
    Value *inside = B_MAP(n->g, "x >= 0 && x < y", "x y", at, length);
    Value *v = b_gather(n->g, x, b_where(n->g, inside, at, length), axis);      // an index from outside reads 0
    return fill && v ? b_where(n->g, b_along(n->g, inside, v->type.rank, axis), v, fill) : v;
}

Value *onnx_pad_run(OnnxNode *n, const char *mode, Value *fill) {
    Value *x = n->in[0];
    int count, rank = x->type.rank, n_axes = rank;
    Value *pads = onnx_list(n, 1, "pads", &count), *axes = NULL;
    if (!pads) return NULL;
    if (onnx_optional(n, 3) && !(axes = onnx_list(n, 3, "the list of axes", &n_axes))) return NULL;
    if (count != 2 * n_axes || n_axes > rank) return onnx_fail(n, "pads has %d elements for %d axes", count, n_axes);
    DimValue at[MAX_DIM_VALUES];
    Value *lows = b_part(n->g, pads, 0, 0, n_axes), *highs = b_part(n->g, pads, 0, n_axes, n_axes);
    if (axes && !onnx_knows(n, 3)) {
        lows = spread(n, lows, axes, n_axes, rank, repeated(n, 0, rank));
        highs = spread(n, highs, axes, n_axes, rank, repeated(n, 0, rank));
        n_axes = rank;
        axes = NULL;
    }
    if (axes && !onnx_dim_values(n->g, axes, at, &n_axes)) return NULL;
    for (int i = 0; i < n_axes && x; i++) {
        int axis = i;
        if (axes && !onnx_axis(n, at[i].v, rank, &axis)) return NULL;
        Value *lo = b_item(n->g, lows, i), *hi = b_item(n->g, highs, i);
        Value *sum = b_binary(n->g, OP_Add, b_binary(n->g, OP_Add, b_number(n->g, x->type.dim[axis]), lo), hi);
        Dim size;
        if (!sum || !onnx_measure(n, b_joined(n->g, 1, &sum), 0, 0, axis, 0, NO_LIMIT, &size)) return NULL;
        Tensor *constant = value_const(lo);
        if (size == x->type.dim[axis] && constant && tensor_get_i(constant, 0) == 0) continue;
        x = shift_axis(n, x, axis, lo, size, mode, fill);
    }
    return x;
}

Value *onnx_center_crop_pad_run(OnnxNode *n, const int64_t *axes) {
    Value *x = n->in[0];
    int count;
    Value *shape = onnx_list(n, 1, "the shape", &count);
    for (int i = 0; i < count && x && shape; i++) {
        int axis = axes ? (int)axes[i] : i;
        Dim size;
        if (!onnx_measure(n, shape, i, 0, axis, 0, NO_LIMIT, &size)) return NULL;
        Value *lo = B_MAP(n->g, "(x - y) / 2", "x y", b_item(n->g, shape, i), b_number(n->g, x->type.dim[axis]));
        x = shift_axis(n, x, axis, lo, size, "constant", NULL);
    }
    return shape ? x : NULL;
}

// ---------------------------------------------------------------- range

// start + i * step for i below (limit - start) / step, rounded up; floats are computed in `wide`.
Value *onnx_range_run(OnnxNode *n, DType wide) {
    DType d = n->in[0]->type.dtype;
    Value *in[3];
    Dim size;
    for (int i = 0; i < 3; i++)
        if (!(in[i] = b_scalar_of(n->g, b_cast(n->g, n->in[i], wide)))) return NULL;
    Value *count;
    if (dtype_is_float(d)) {
        Value *steps = B_MAP(n->g, "ceil((y - x) / z)", "x y z", in[0], in[1], in[2]);
        count = b_cast(n->g, B_MAP(n->g, "x > 0 ? min(x, 1e9) : 0", "x", steps), DT_I64);
    } else {
        for (int i = 0; i < 3; i++) in[i] = b_cast(n->g, in[i], DT_I64);
        count = B_MAP(
            n->g, "z == 0 ? -1 : max((y - x + (z > 0 ? z - 1 : z + 1)) / z, 0)", "x y z", in[0], in[1], in[2]);
    }
    if (!count || !onnx_measure(n, b_joined(n->g, 1, &count), 0, 0, 0, 0, NO_LIMIT, &size)) return NULL;
    Value *at = b_iota(n->g, 1, &size, 0, in[0]->type.dtype);
    return b_cast(n->g, B_MAP(n->g, "x * y + z", "x y z", at, in[2], in[0]), d);
}
