// SPDX-License-Identifier: MIT OR Apache-2.0
// ONNX's operators that rearrange elements and the integers that describe shapes.
//
// In: an OnnxNode. Out: views (Reshape, Transpose, Concat, Expand, Slice). The idea: shape-like inputs are read
// while importing (dims.c) and become attributes; they may hold symbolic dimensions where the meaning does not depend
// on their size.
#include "import/onnx/run/measure.h"

#include <math.h>
#include <string.h>

// ---------------------------------------------------------------- constants

static Value *constant_tensor(OnnxNode *n, DType d, int rank, int64_t count, Tensor **t) {
    *t = tensor_new(n->g->arena, type_make(d, rank, &count));
    return graph_const(n->g, *t, NULL);
}

static Value *constant_list(OnnxNode *n, const char *name, const OnnxAttr *a) {
    Tensor *t;
    bool many = name[strlen(name) - 1] == 's';
    int64_t count = many ? a->n : 1;
    DType d = a->type == ONNX_FLOAT || a->type == ONNX_FLOATS ? DT_F32 :
        a->type == ONNX_INT || a->type == ONNX_INTS           ? DT_I64 :
                                                                DT_STRING;
    Value *v = constant_tensor(n, d, many, count, &t);
    for (int64_t i = 0; i < count; i++) {
        if (d == DT_F32) ((float *)t->data)[i] = many ? a->floats[i] : (float)a->f;
        else if (d == DT_I64) ((int64_t *)t->data)[i] = many ? a->ints[i] : a->i;
        else ((const char **)t->data)[i] = many ? a->strings[i] : a->s;
    }
    return v;
}

Value *onnx_constant(OnnxNode *n) {
    static const struct { const char *name; int type;
    } forms[] = {
        { "value", ONNX_TENSOR },
        { "sparse_value", ONNX_SPARSE_TENSOR },
        { "value_float", ONNX_FLOAT },
        { "value_floats", ONNX_FLOATS },
        { "value_int", ONNX_INT },
        { "value_ints", ONNX_INTS },
        { "value_string", ONNX_STRING },
        { "value_strings", ONNX_STRINGS },
    };
    for (size_t i = 0; i < COUNT(forms); i++) {
        if (!onnx_has(n, forms[i].name)) continue;
        const OnnxAttr *a = onnx_attr(n, forms[i].name, forms[i].type);
        if (!a) return NULL;
        if (i >= 2) return constant_list(n, forms[i].name, a);
        return a->tensor ? graph_given(n->g, a->tensor, NULL) :
                           onnx_fail(n, "attribute \"%s\" holds no tensor", forms[i].name);
    }
    return onnx_fail(n, "has none of the value attributes");
}

// Converts shape numbers to dimensions. False with a diagnostic when one is negative.
static bool to_dims(OnnxNode *n, const DimValue *v, int count, Dim *dims) {
    if (count > MAX_RANK) {
        diag_error_as(EXIT_LIMIT, n->loc, "the result has %d dimensions; at most %d are supported", count, MAX_RANK);
        return false;
    }
    for (int i = 0; i < count; i++) {
        if (!v[i].symbolic && v[i].v < 0)
            return onnx_fail(n, "dimension %d of the shape is negative (%lld)", i, (long long)v[i].v), false;
        dims[i] = v[i].v;
    }
    return true;
}

Value *onnx_constant_of_shape(OnnxNode *n) {
    DimValue v[MAX_DIM_VALUES];
    Dim dims[MAX_RANK];
    int count;
    if (!onnx_inputs(n, 1)) return NULL;
    if (onnx_dim_values(n->g, n->in[0], v, &count)) {
        if (!to_dims(n, v, count, dims)) return NULL;
    } else {
        Value *list = onnx_list(n, 0, "the shape", &count);
        if (!list || !onnx_measure_all(n, list, count, NULL, dims)) return NULL;
    }
    const OnnxAttr *a = onnx_attr(n, "value", ONNX_TENSOR);
    if (!a) return b_filled(n->g, DT_F32, 0, count, dims);
    if (!a->tensor) return onnx_fail(n, "attribute \"value\" holds no tensor");
    return b_expand(n->g, b_scalar_of(n->g, graph_const(n->g, a->tensor, NULL)), count, dims);
}

Value *onnx_shape(OnnxNode *n) {
    if (!onnx_inputs(n, 1)) return NULL;
    Value *x = n->in[0];
    int64_t rank = x->type.rank, start = onnx_int(n, "start", 0), end = onnx_int(n, "end", rank);
    start = start < 0 ? start + rank : start;
    end = end < 0 ? end + rank : end;
    start = start < 0 ? 0 : start > rank ? rank : start;
    end = end < start ? start : end > rank ? rank : end;
    bool known = true;
    for (int64_t i = start; i < end; i++) known = known && dim_is_const(x->type.dim[i]);
    if (known) return b_ints(n->g, (int)(end - start), x->type.dim + start);
    return b_part(n->g, b_unary(n->g, OP_Shape, x), 0, start, end - start);
}

Value *onnx_size(OnnxNode *n) {
    if (!onnx_inputs(n, 1)) return NULL;
    Value *x = n->in[0];
    int64_t axis = 0;
    if (!type_is_static(&x->type)) return b_reduce(n->g, OP_ReduceProd, b_unary(n->g, OP_Shape, x), 1, &axis, false);
    return b_reshape(n->g, b_ints(n->g, 1, (int64_t[]){ type_count(&x->type) }), 0, NULL);
}

// What a range's elements are computed in: stash_type says it for floats of 16 bits.
static bool range_type(OnnxNode *n, DType d, DType *wide) {
    DType stash;
    if (!onnx_dtype(n, "stash_type", DT_F32, &stash)) return false;
    *wide = dtype_wide(d);
    if (!dtype_is_float(d) || dtype_size(d) != 2) return true;
    if (stash != DT_F32 && stash != DT_F64)
        return onnx_fail(n, "attribute \"stash_type\" is neither float (1) nor double (11)"), false;
    *wide = stash;
    return true;
}

// start + i * delta for i below max(ceil((limit - start) / delta), 0).
Value *onnx_range(OnnxNode *n) {
    DimValue v[3][MAX_DIM_VALUES];
    int count;
    if (!onnx_inputs(n, 3)) return NULL;
    DType d = n->in[0]->type.dtype, wide;
    if (!range_type(n, d, &wide)) return NULL;
    Dim size;
    if (dtype_is_float(d)) {
        Tensor *t[3];
        for (int i = 0; i < 3; i++) {
            t[i] = value_const(n->in[i]);
            if (!t[i]) return onnx_range_run(n, wide);
            if (type_count(&t[i]->type) != 1) return onnx_fail(n, "start, limit and step must be single numbers");
        }
        double delta = tensor_get_f(t[2], 0), steps = ceil((tensor_get_f(t[1], 0) - tensor_get_f(t[0], 0)) / delta);
        if (!(steps < 1e12)) return onnx_fail(n, "the range has no end");
        size = steps > 0 ? (int64_t)steps : 0;
    } else {
        for (int i = 0; i < 3; i++)
            if (!onnx_dim_values(n->g, n->in[i], v[i], &count)) return onnx_range_run(n, wide);
            else if (count != 1) return onnx_fail(n, "start, limit and step must be single numbers");
        if (v[2]->symbolic) return onnx_range_run(n, wide);
        if (v[2]->v == 0) return onnx_fail(n, "the step is zero");
        int64_t delta = v[2]->v;
        if (!v[0]->symbolic && !v[1]->symbolic) {
            if ((v[1]->v < 0) != (v[0]->v < 0)
                && (v[1]->v > INT64_MAX / 2 || v[1]->v < INT64_MIN / 2 || v[0]->v > INT64_MAX / 2
                    || v[0]->v < INT64_MIN / 2))
                return onnx_fail(n, "the range has no end");
            int64_t span = v[1]->v - v[0]->v;
            size = span / delta + (span % delta != 0 && (span < 0) == (delta < 0));
            if (size < 0) size = 0;
        } else {
            if (delta < 0 || (!v[0]->symbolic && v[0]->v < 0) || (!v[1]->symbolic && v[1]->v < 0))
                return onnx_range_run(n, wide);
            size = dim_ceil_div(n->g, dim_sub(n->g, v[1]->v, v[0]->v), delta);
            if (dim_lower(n->g, size) < 0) return onnx_range_run(n, wide);
        }
    }
    Value *at = b_iota(n->g, 1, &size, 0, wide);
    Value *in[] = { at, b_cast(n->g, b_scalar_of(n->g, n->in[2]), wide),
        b_cast(n->g, b_scalar_of(n->g, n->in[0]), wide) };
    return b_cast(n->g, b_map(n->g, "x * y + z", "x y z", 3, in), d);
}

Value *onnx_eye_like(OnnxNode *n) {
    DType d;
    if (!onnx_inputs(n, 1)) return NULL;
    const Type *t = &n->in[0]->type;
    if (!onnx_dtype(n, "dtype", t->dtype, &d)) return NULL;
    if (t->rank != 2) return onnx_fail(n, "the input must be a matrix");
    Value *row = b_iota(n->g, 2, t->dim, 0, DT_I64), *column = b_iota(n->g, 2, t->dim, 1, DT_I64);
    Value *shifted = b_binary(n->g, OP_Add, row, b_scalar(n->g, DT_I64, (double)onnx_int(n, "k", 0)));
    return b_cast(n->g, b_binary(n->g, OP_Equal, shifted, column), d);
}

// ---------------------------------------------------------------- reshape

Value *onnx_reshape(OnnxNode *n) {
    if (!onnx_inputs(n, 1)) return NULL;
    Value *x = n->in[0];
    DimValue v[MAX_DIM_VALUES];
    int count, infer = -1;
    if (n->opset < 5) {
        const int64_t *shape = onnx_ints(n, "shape", &count);
        if (!shape || count > MAX_RANK) return onnx_fail(n, "attribute \"shape\" is missing or too long");
        for (int i = 0; i < count; i++) v[i] = (DimValue){ false, shape[i] };
    }
    bool allow_zero = onnx_int(n, "allowzero", 0) != 0;
    if (n->opset >= 5 && !onnx_input(n, 1)) return NULL;
    if (n->opset >= 5 && !onnx_dim_values(n->g, n->in[1], v, &count)) return onnx_reshape_run(n, allow_zero);
    Dim others = 1, total = type_product(n->g, &x->type, 0, x->type.rank);
    for (int i = 0; i < count; i++) {
        if (!v[i].symbolic && v[i].v == -1) {
            if (infer >= 0) return onnx_fail(n, "the shape has more than one -1");
            infer = i;
            v[i].v = 1;
            continue;
        }
        if (!v[i].symbolic && v[i].v == 0 && !allow_zero) {
            if (i >= x->type.rank)
                return onnx_fail(n, "the shape copies dimension %d, which the input does not have", i);
            v[i] = (DimValue){ !dim_is_const(x->type.dim[i]), x->type.dim[i] };
        }
        if (v[i].symbolic || v[i].v >= 0) others = dim_mul(n->g, others, v[i].v);
    }
    if (infer >= 0) {
        if (others == 0 || (dim_is_const(others) && dim_is_const(total) && total % others))
            return onnx_fail(n, "%s cannot be reshaped: no size fits for dimension %d",
                type_text(n->g->arena, n->g, &x->type), infer);
        v[infer].v = dim_div(n->g, total, others);
        v[infer].symbolic = !dim_is_const(v[infer].v);
    }
    Dim dims[MAX_RANK];
    return to_dims(n, v, count, dims) ? b_reshape(n->g, x, count, dims) : NULL;
}

Value *onnx_flatten(OnnxNode *n) {
    if (!onnx_inputs(n, 1)) return NULL;
    Value *x = n->in[0];
    int64_t axis = onnx_int(n, "axis", 1);
    int rank = x->type.rank;
    if (axis < -rank || axis > rank)
        return onnx_fail(n, "axis %lld is not within -%d..%d", (long long)axis, rank, rank);
    if (axis < 0) axis += rank;
    Dim dims[2] = { type_product(n->g, &x->type, 0, (int)axis), type_product(n->g, &x->type, (int)axis, rank) };
    return b_reshape(n->g, x, 2, dims);
}

Value *onnx_squeeze(OnnxNode *n) {
    if (!onnx_inputs(n, 1)) return NULL;
    Value *x = n->in[0];
    int64_t axes[MAX_RANK];
    int count, rank = 0;
    bool given;
    Dim dims[MAX_RANK];
    if (!onnx_knows(n, 1)) return onnx_squeeze_run(n);
    if (!onnx_axes(n, 1, x->type.rank, axes, &count, &given)) return NULL;
    for (int i = 0; i < x->type.rank; i++) {
        bool drop = !given && x->type.dim[i] == 1;
        for (int k = 0; k < count; k++) drop = drop || axes[k] == i;
        if (drop && x->type.dim[i] != 1 && dim_is_const(x->type.dim[i]))
            return onnx_fail(n, "dimension %d is %lld, not 1", i, (long long)x->type.dim[i]);
        if (!drop) dims[rank++] = x->type.dim[i];
    }
    return b_reshape(n->g, x, rank, dims);
}

Value *onnx_unsqueeze(OnnxNode *n) {
    if (!onnx_inputs(n, 1)) return NULL;
    Value *x = n->in[0];
    int64_t axes[MAX_RANK];
    int count, from = 0;
    bool given, insert[MAX_RANK] = { false };
    if (n->opset < 13) onnx_ints(n, "axes", &count);
    else if (!onnx_knows(n, 1)) return onnx_unsqueeze_run(n);
    else {
        DimValue v[MAX_DIM_VALUES];
        if (!onnx_shape_input(n, 1, "the list of axes", v, &count)) return NULL;
    }
    int rank = x->type.rank + count;
    if (rank > MAX_RANK) {
        diag_error_as(EXIT_LIMIT, n->loc, "the result has %d dimensions; at most %d are supported", rank, MAX_RANK);
        return NULL;
    }
    if (!onnx_axes(n, 1, rank, axes, &count, &given)) return NULL;
    for (int k = 0; k < count; k++) insert[axes[k]] = true;
    Dim dims[MAX_RANK];
    for (int i = 0; i < rank; i++) dims[i] = insert[i] ? 1 : x->type.dim[from++];
    return b_reshape(n->g, x, rank, dims);
}

Value *onnx_transpose(OnnxNode *n) {
    if (!onnx_inputs(n, 1)) return NULL;
    Value *x = n->in[0];
    int rank = x->type.rank, count, perm[MAX_RANK];
    const int64_t *given = onnx_ints(n, "perm", &count);
    if (given && count != rank) return onnx_fail(n, "attribute \"perm\" has %d axes, the input has %d", count, rank);
    unsigned seen = 0;
    for (int i = 0; i < rank; i++) {
        int64_t axis = given ? given[i] : rank - 1 - i;
        if (axis < 0 || axis >= rank)           // the one list of axes that may not count from the end
            return onnx_fail(
                n, "attribute \"perm\" has the axis %lld; it lists 0..%d once each", (long long)axis, rank - 1);
        perm[i] = (int)axis;
        if (seen >> perm[i] & 1) return onnx_fail(n, "attribute \"perm\" lists axis %d twice", perm[i]);
        seen |= 1u << perm[i];
    }
    return b_transpose(n->g, x, perm);
}

Value *onnx_depth_to_space(OnnxNode *n) {
    bool crd = !strcmp(onnx_string(n, "mode", "DCR"), "CRD");
    return onnx_inputs(n, 1) ? b_depth_to_space(n->g, n->in[0], onnx_int(n, "blocksize", 0), crd) : NULL;
}

Value *onnx_space_to_depth(OnnxNode *n) {
    bool crd = !strcmp(onnx_string(n, "mode", "DCR"), "CRD");
    return onnx_inputs(n, 1) ? b_space_to_depth(n->g, n->in[0], onnx_int(n, "blocksize", 0), crd) : NULL;
}

// ---------------------------------------------------------------- expand and tile

Value *onnx_expand(OnnxNode *n) {
    if (!onnx_inputs(n, 1)) return NULL;
    Value *x = n->in[0];
    DimValue v[MAX_DIM_VALUES];
    Dim shape[MAX_RANK];
    int count;
    if (!onnx_input(n, 1)) return NULL;
    if (!onnx_dim_values(n->g, n->in[1], v, &count)) return onnx_expand_run(n);
    if (!to_dims(n, v, count, shape)) return NULL;
    Type want = type_make(x->type.dtype, count, shape), out;
    if (!type_broadcast(&out, &x->type, &want))
        return onnx_fail(n, "%s cannot be broadcast to %s", type_text(n->g->arena, n->g, &x->type),
            type_text(n->g->arena, n->g, &want));
    return b_expand(n->g, x, out.rank, out.dim);
}

Value *onnx_tile(OnnxNode *n) {
    if (!onnx_inputs(n, 1)) return NULL;
    Value *x = n->in[0];
    DimValue v[MAX_DIM_VALUES];
    Dim times[MAX_RANK];
    int count;
    if (n->opset < 6) {                         // one axis: tiles, axis
        int64_t by, at;
        int axis;
        if (!onnx_ints_input(n, 1, "tiles", &by, &count, 1) || !onnx_ints_input(n, 2, "the axis", &at, &count, 1))
            return NULL;
        if (!onnx_axis(n, at, x->type.rank, &axis)) return NULL;
        return by < 0 ? onnx_fail(n, "tiles is negative") : b_repeat(n->g, x, axis, by);
    }
    if (!onnx_input(n, 1)) return NULL;
    if (!onnx_dim_values(n->g, n->in[1], v, &count)) {
        if (!onnx_repeats_run(n, x, times)) return NULL;
        count = x->type.rank;
    } else if (!to_dims(n, v, count, times)) {
        return NULL;
    }
    if (count != x->type.rank)
        return onnx_fail(n, "repeats has %d elements, the input has %d dimensions", count, x->type.rank);
    for (int i = 0; i < count; i++) x = b_repeat(n->g, x, i, times[i]);
    return x;
}

// ---------------------------------------------------------------- concat and split

Value *onnx_concat(OnnxNode *n) {
    if (!onnx_inputs(n, n->n_in ? n->n_in : 1)) return NULL;
    int axis;
    if (n->opset >= 4 && !onnx_has(n, "axis")) return onnx_fail(n, "attribute \"axis\" is missing");
    if (!onnx_axis(n, onnx_int(n, "axis", 1), n->in[0]->type.rank, &axis)) return NULL;
    return b_concat(n->g, axis, n->n_in, n->in);
}

static bool split_sizes(OnnxNode *n, Dim size, Dim *sizes) {
    int count;
    const int64_t *given = onnx_ints(n, "split", &count);
    if (!given && onnx_optional(n, 1)) {
        if (!onnx_ints_input(n, 1, "the list of sizes", sizes, &count, MAX_DIM_VALUES)) return false;
        given = sizes;
    }
    int64_t total = 0;
    if (given) {
        if (count != n->n_out) return onnx_fail(n, "%d sizes for %d outputs", count, n->n_out), false;
        for (int i = 0; i < count; i++) {
            if (given[i] < 0 || given[i] > INT64_MAX - total)
                return onnx_fail(n, "size %d is %lld", i, (long long)given[i]), false;
            total += sizes[i] = given[i];
        }
        if (dim_is_const(size) && total != size)
            return onnx_fail(n, "the sizes add up to %lld, the axis has %lld", (long long)total, (long long)size),
                   false;
        return true;
    }
    int64_t parts = onnx_int(n, "num_outputs", n->n_out);
    if (parts != n->n_out || parts < 1)
        return onnx_fail(n, "num_outputs is %lld but the node has %d outputs", (long long)parts, n->n_out), false;
    Dim each = dim_ceil_div(n->g, size, parts);
    for (int i = 0; i < parts; i++)
        sizes[i] = i < parts - 1 ? each : dim_sub(n->g, size, dim_mul(n->g, each, parts - 1));
    if (dim_is_const(size) && each * (parts - 1) > size)
        return onnx_fail(n, "%lld elements cannot be split into %lld parts", (long long)size, (long long)parts), false;
    return true;
}

Value *onnx_split(OnnxNode *n) {
    if (!onnx_inputs(n, 1)) return NULL;
    Value *x = n->in[0];
    int axis;
    if (!onnx_axis(n, onnx_int(n, "axis", 0), x->type.rank, &axis)) return NULL;
    Dim *sizes = NEW_ARRAY(n->g->arena, Dim, n->n_out > MAX_DIM_VALUES ? n->n_out : MAX_DIM_VALUES), at = 0;
    if (!onnx_has(n, "split") && !onnx_knows(n, 1)) return onnx_split_run(n, axis);
    if (!split_sizes(n, x->type.dim[axis], sizes)) return NULL;
    for (int i = 0; i < n->n_out; at = dim_add(n->g, at, sizes[i++]))
        if (!(n->out[i] = b_part(n->g, x, axis, at, sizes[i]))) return NULL;
    return n->out[0];
}

