// SPDX-License-Identifier: MIT OR Apache-2.0
// ONNX's elementwise operators, casts among them.
//
// In: an OnnxNode. Out: the value of output 0. The idea: most rows of onnx_ops.def use onnx_map, which takes the
// operation of the same name (or the row's argument) and copies the attributes that its MAP row lists; the functions
// below are those whose inputs or attributes changed or differ.
#include "import/onnx/onnx.h"

#include <math.h>
#include <string.h>

// Copies what "alpha=0.01 beta=1" lists and the model gives.
static void copy_attrs(OnnxNode *n, Node *node, const char *list) {
    while (list && *(list += strspn(list, " "))) {
        char name[32];
        size_t length = strcspn(list, "=");
        if (length >= sizeof name) bug("attribute list \"%s\"", list);
        memcpy(name, list, length);
        name[length] = 0;
        for (int i = 0; i < n->def->n_attrs; i++) {
            if (strcmp(n->def->attrs[i].name, name)) continue;
            if (n->def->attrs[i].type == ONNX_INT) node_set_float(node, name, (double)onnx_int64(n, name, 0));
            else if (onnx_has(n, name)) node_set_float(node, name, onnx_float(n, name, 0));
        }
        list += strcspn(list, " ");
    }
}

static Op row_op(const OnnxNode *n) {
    Op op;
    const char *name = *n->argument ? n->argument : n->def->op;
    if (!op_find(name, &op)) bug("onnx_ops.def names the unknown operation %s", name);
    return op;
}

Value *onnx_map(OnnxNode *n) {
    Op op = row_op(n);
    int arity = op_table[op].in_min;
    if (!onnx_inputs(n, arity)) return NULL;
    // the attributes are no integers
    bool wide = arity == 1 && *op_table[op].attrs && dtype_is_int(n->in[0]->type.dtype);
    Value *x = wide ? b_cast(n->g, n->in[0], DT_F64) : n->in[0];
    Node *node = graph_node(n->g, op, arity, wide ? &x : n->in, 1);
    copy_attrs(n, node, op_table[op].attrs);
    return wide ? b_cast(n->g, b_finish(node), n->in[0]->type.dtype) : b_finish(node);
}

// Before opset 7 broadcasting had to be asked for, and y's dimensions could be placed at an axis of x.
static Value *placed(OnnxNode *n, Value *x, Value *y) {
    bool at_axis = onnx_has(n, "axis");
    int axis = 0;
    if (!onnx_int(n, "broadcast", 0) || !at_axis || !y->type.rank) return y;
    if (!onnx_axis(n, onnx_int(n, "axis", 0), x->type.rank, &axis)) return NULL;
    if (axis + y->type.rank > x->type.rank) return onnx_fail(n, "axis %d leaves no room for the second input", axis);
    Dim dims[MAX_RANK];
    for (int i = axis; i < x->type.rank; i++) dims[i - axis] = i - axis < y->type.rank ? y->type.dim[i - axis] : 1;
    return b_reshape(n->g, y, x->type.rank - axis, dims);
}

Value *onnx_map_placed(OnnxNode *n) {
    return onnx_inputs(n, 2) ? b_binary(n->g, row_op(n), n->in[0], placed(n, n->in[0], n->in[1])) : NULL;
}

Value *onnx_variadic(OnnxNode *n) {
    if (!onnx_inputs(n, n->n_in ? n->n_in : 1)) return NULL;
    Value *v = n->in[0];
    bool mean = !strcmp(n->def->op, "Mean");
    Op op = row_op(n);
    for (int i = 1; i < n->n_in; i++) v = b_binary(n->g, op, v, n->in[i]);
    if (!v || !mean || n->n_in == 1) return v;
    return b_binary(n->g, OP_Div, v, b_like(n->g, v, n->n_in));
}

Value *onnx_clip(OnnxNode *n) {
    if (!onnx_inputs(n, 1)) return NULL;
    Value *v = n->in[0], *lo = NULL, *hi = NULL;
    if (n->opset < 11) {
        if (onnx_has(n, "min")) lo = b_like(n->g, v, onnx_float(n, "min", 0));
        if (onnx_has(n, "max")) hi = b_like(n->g, v, onnx_float(n, "max", 0));
    } else {
        lo = onnx_optional(n, 1);
        hi = onnx_optional(n, 2);
        if (lo && !(lo = b_scalar_of(n->g, lo))) return NULL;
        if (hi && !(hi = b_scalar_of(n->g, hi))) return NULL;
    }
    if (lo) v = b_binary(n->g, OP_Max, v, lo);
    if (hi) v = b_binary(n->g, OP_Min, v, hi);
    return v;
}

// The result has x's type. A float exponent of an integer base is computed in floats.
Value *onnx_pow(OnnxNode *n) {
    if (!onnx_inputs(n, 2)) return NULL;
    Value *x = n->in[0], *y = n->opset < 7 ? placed(n, n->in[0], n->in[1]) : n->in[1];
    if (!y) return NULL;
    DType d = x->type.dtype, e = y->type.dtype;
    bool wide = dtype_is_float(e) && !dtype_is_float(d);
    Value *v = wide ? b_binary(n->g, OP_Pow, b_cast(n->g, x, e), y) : b_binary(n->g, OP_Pow, x, b_cast(n->g, y, d));
    return b_cast(n->g, v, d);
}

Value *onnx_mod(OnnxNode *n) {
    if (!onnx_inputs(n, 2)) return NULL;
    return b_binary(n->g, onnx_int(n, "fmod", 0) ? OP_FMod : OP_Mod, n->in[0], n->in[1]);
}

Value *onnx_bit_shift(OnnxNode *n) {
    if (!onnx_inputs(n, 2)) return NULL;
    const char *direction = onnx_string(n, "direction", "");
    bool left = !strcmp(direction, "LEFT");
    if (!left && strcmp(direction, "RIGHT")) return onnx_fail(n, "attribute \"direction\" must be LEFT or RIGHT");
    return b_binary(n->g, left ? OP_ShiftLeft : OP_ShiftRight, n->in[0], n->in[1]);
}

Value *onnx_gelu(OnnxNode *n) {
    if (!onnx_inputs(n, 1)) return NULL;
    const char *how = onnx_string(n, "approximate", "none");
    if (strcmp(how, "none") && strcmp(how, "tanh")) return onnx_fail(n, "attribute \"approximate\" is \"%s\"", how);
    return b_unary(n->g, *how == 't' ? OP_GeluTanh : OP_Gelu, n->in[0]);
}

Value *onnx_prelu(OnnxNode *n) {
    if (!onnx_inputs(n, 2)) return NULL;
    Value *x = n->in[0], *slope = n->in[1];
    if (n->opset < 7 && slope->type.rank == 1 && x->type.rank > 1 && slope->type.dim[0] != 1)
        slope = b_along(n->g, slope, x->type.rank - 1, 0);
    return b_binary(n->g, OP_PRelu, x, slope);
}

Value *onnx_binarizer(OnnxNode *n) {
    if (!onnx_inputs(n, 1)) return NULL;
    return B_MAP(
        n->g, arena_printf(n->g->arena, "x > %.17g ? 1 : x * 0", onnx_float(n, "threshold", 0)), "x", n->in[0]);
}

// ---------------------------------------------------------------- casts

static Value *cast(OnnxNode *n, Value *x, DType to) {
    if (x->type.dtype == to) return x;
    if (x->type.dtype == DT_STRING || to == DT_STRING) {
        onnx_int(n, "saturate", 1);
        return b_cast_string(n->g, x, to);
    }
    bool narrow = dtype_is_int(to) && dtype_bits(to) < 8;
    if (narrow && dtype_is_float(x->type.dtype)) x = b_cast(n->g, x, DT_I32);       // wraps, as integers do
    if (!x) return NULL;
    Node *node = graph_node(n->g, OP_Cast, 1, &x, 1);
    node_set_int(node, "to", to);
    node_set_int(node, "saturate", onnx_int(n, "saturate", 1));
    const char *mode = onnx_string(n, "round_mode", "up");
    if (to == DT_F8E8M0) node_set_string(node, "round_mode", mode);
    return b_finish(node);
}

// Before opset 6 the type was named: "FLOAT16".
static bool named_dtype(OnnxNode *n, DType *to) {
    static const struct { const char *name; DType d;
    } names[] = {
        { "FLOAT", DT_F32 },
        { "UINT8", DT_U8 },
        { "INT8", DT_I8 },
        { "UINT16", DT_U16 },
        { "INT16", DT_I16 },
        { "INT32", DT_I32 },
        { "INT64", DT_I64 },
        { "BOOL", DT_BOOL },
        { "FLOAT16", DT_F16 },
        { "DOUBLE", DT_F64 },
        { "UINT32", DT_U32 },
        { "UINT64", DT_U64 },
        { "STRING", DT_STRING },
    };
    const char *name = onnx_string(n, "to", "");
    for (size_t i = 0; i < COUNT(names); i++)
        if (!strcmp(names[i].name, name)) {
            *to = names[i].d;
            return true;
        }
    return onnx_fail(n, "attribute \"to\": \"%s\" is not a known type", name), false;
}

Value *onnx_cast(OnnxNode *n) {
    DType to;
    if (!onnx_inputs(n, 1)) return NULL;
    if (n->opset < 6 ? !named_dtype(n, &to) : !onnx_dtype(n, "to", DT_NONE, &to)) return NULL;
    return cast(n, n->in[0], to);
}

Value *onnx_cast_like(OnnxNode *n) { return onnx_inputs(n, 2) ? cast(n, n->in[0], n->in[1]->type.dtype) : NULL; }

// The same bits as another type. A bool is the byte 0 or 1.
Value *onnx_bit_cast(OnnxNode *n) {
    DType to;
    if (!onnx_inputs(n, 1) || !onnx_dtype(n, "to", DT_NONE, &to)) return NULL;
    Value *x = n->in[0];
    DType from = x->type.dtype;
    if (from == to) return x;
    if (from == DT_BOOL) x = b_cast(n->g, x, from = DT_U8);
    DType via = to == DT_BOOL ? DT_U8 : to;
    bool numbers = (dtype_is_int(from) || dtype_is_float(from)) && (dtype_is_int(via) || dtype_is_float(via));
    if (!numbers || from == DT_F4E2M1 || via == DT_F4E2M1 || dtype_bits(from) != dtype_bits(via))
        return onnx_fail(n, "the bits of %s cannot be read as %s", dtype_name(from), dtype_name(to));
    return b_cast(
        n->g, b_map(n->g, arena_printf(n->g->arena, "bits_%s(x)", dtype_name(via)), "x", 1, (Value *[]){ x }), to);
}

// ---------------------------------------------------------------- the same value

Value *onnx_identity(OnnxNode *n) { return onnx_given(n, 0) ? onnx_given(n, 0) : onnx_input(n, 0); }

// Inference passes the input on. Training: kept elements grow by 1 / (1 - ratio), so the expectation stays.
Value *onnx_dropout(OnnxNode *n) {
    if (!onnx_inputs(n, 1)) return NULL;
    Value *x = n->in[0];
    DType mask_type = n->opset < 10 ? x->type.dtype : DT_BOOL;
    double ratio = onnx_float(n, "ratio", 0.5);
    int64_t seed = onnx_int64(n, "seed", 0);
    bool training = false;
    onnx_int(n, "is_test", 1);
    if (n->opset >= 12) {
        if (onnx_optional(n, 2)) {
            Tensor *t;
            if (!onnx_known_number(n, n->in[2], "training_mode", &t)) return NULL;
            bool fixed = !onnx_optional(n, 1) || value_const(n->in[1]);
            Value *given = onnx_optional(n, 1);
            if (!t || (tensor_get_i(t, 0) && !fixed))
                return b_dropout_run(n->g, x, given ? given : b_scalar(n->g, DT_F32, 0.5), n->in[2], seed, mask_type,
                    &n->out[1]);
            training = tensor_get_i(t, 0) != 0;
        }
        if ((training || onnx_trains_dropout(n)) && onnx_optional(n, 1)) {
            Tensor *t = onnx_const_number(n, 1, "the ratio");
            if (!t) return NULL;
            ratio = tensor_get_f(t, 0);
        }
    }
    bool asked = n->n_out > 1 && n->asked[1];
    if (onnx_trains_dropout(n) && ratio > 0 && !asked) return b_dropout_trained(n->g, x, ratio);
    if (!training || ratio == 0) {
        n->out[1] = asked ? b_filled(n->g, mask_type, 1, x->type.rank, x->type.dim) : NULL;
        return x;
    }
    return b_dropout(n->g, x, &(Drop){ ratio, seed, NULL }, mask_type, &n->out[1]);
}
