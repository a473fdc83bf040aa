// SPDX-License-Identifier: MIT OR Apache-2.0
// Elementwise calls: a row each, of an operation or of an expression.
//
// In: tensors and numbers. Out: one value. Types are promoted as PyTorch does: bool below integers below floats, a
// number counts by its kind only (2.5 beside integers makes f32 of them).
#include "import/describe/describe.h"

#include <math.h>
#include <string.h>

// operands: of bools; floats, which integers become; the first is a bool; anything
typedef enum Operands { ANY, BOOLS, FLOATS, CHOICE } Operands;
// op OP_Map, or more than one operand: expression over x, y, z; attribute: what the number behind the tensor is
typedef struct MapCall { const char *name; Operands operands; Op op; const char *expression, *attribute; } MapCall;

static const MapCall calls[] = {
    { "add", ANY, OP_Add, NULL, NULL },
    { "sub", ANY, OP_Sub, NULL, NULL },
    { "mul", ANY, OP_Mul, NULL, NULL },
    { "div", FLOATS, OP_Div, NULL, NULL },
    { "remainder", ANY, OP_Mod, NULL, NULL },
    { "fmod", ANY, OP_FMod, NULL, NULL },
    { "pow", ANY, OP_Pow, NULL, NULL },
    { "atan2", FLOATS, OP_Map,
        "y > 0 ? atan(x / y) : x >= 0 ? (y < 0 ? atan(x / y) + 3.1415926535897932 : x > 0 ? 1.5707963267948966 : 0) : "
        "y < 0 ? atan(x / y) - 3.1415926535897932 : -1.5707963267948966",
        NULL },
    { "hypot", FLOATS, OP_Map, "sqrt(x * x + y * y)", NULL },
    { "minimum", ANY, OP_Min, NULL, NULL },
    { "maximum", ANY, OP_Max, NULL, NULL },
    { "clamp", ANY, OP_Map, "min(max(x, y), z)", NULL },
    { "lerp", FLOATS, OP_Map, "x + z * (y - x)", NULL },
    { "where", CHOICE, OP_Where, NULL, NULL },
    { "eq", ANY, OP_Equal, NULL, NULL },
    { "ne", ANY, OP_Map, "x != y", NULL },
    { "lt", ANY, OP_Less, NULL, NULL },
    { "le", ANY, OP_LessOrEqual, NULL, NULL },
    { "gt", ANY, OP_Greater, NULL, NULL },
    { "ge", ANY, OP_GreaterOrEqual, NULL, NULL },
    { "logical_and", BOOLS, OP_And, NULL, NULL },
    { "logical_or", BOOLS, OP_Or, NULL, NULL },
    { "logical_xor", BOOLS, OP_Xor, NULL, NULL },
    { "logical_not", BOOLS, OP_Not, NULL, NULL },
    { "bitwise_and", ANY, OP_BitwiseAnd, NULL, NULL },
    { "bitwise_or", ANY, OP_BitwiseOr, NULL, NULL },
    { "bitwise_xor", ANY, OP_BitwiseXor, NULL, NULL },
    { "bitwise_not", ANY, OP_BitwiseNot, NULL, NULL },
    { "bitwise_left_shift", ANY, OP_ShiftLeft, NULL, NULL },
    { "bitwise_right_shift", ANY, OP_ShiftRight, NULL, NULL },
    { "neg", ANY, OP_Neg, NULL, NULL },
    { "abs", ANY, OP_Abs, NULL, NULL },
    { "sign", ANY, OP_Sign, NULL, NULL },
    { "square", ANY, OP_Square, NULL, NULL },
    { "reciprocal", FLOATS, OP_Reciprocal, NULL, NULL },
    { "sqrt", FLOATS, OP_Sqrt, NULL, NULL },
    { "rsqrt", FLOATS, OP_Rsqrt, NULL, NULL },
    { "exp", FLOATS, OP_Exp, NULL, NULL },
    { "exp2", FLOATS, OP_Map, "exp(0.69314718055994531 * x)", NULL },
    { "expm1", FLOATS, OP_Expm1, NULL, NULL },
    { "log", FLOATS, OP_Log, NULL, NULL },
    { "log2", FLOATS, OP_Map, "1.4426950408889634 * log(x)", NULL },
    { "log10", FLOATS, OP_Map, "0.43429448190325183 * log(x)", NULL },
    { "log1p", FLOATS, OP_Log1p, NULL, NULL },
    { "sin", FLOATS, OP_Sin, NULL, NULL },
    { "cos", FLOATS, OP_Cos, NULL, NULL },
    { "tan", FLOATS, OP_Tan, NULL, NULL },
    { "asin", FLOATS, OP_Asin, NULL, NULL },
    { "acos", FLOATS, OP_Acos, NULL, NULL },
    { "atan", FLOATS, OP_Atan, NULL, NULL },
    { "sinh", FLOATS, OP_Sinh, NULL, NULL },
    { "cosh", FLOATS, OP_Cosh, NULL, NULL },
    { "tanh", FLOATS, OP_Tanh, NULL, NULL },
    { "asinh", FLOATS, OP_Asinh, NULL, NULL },
    { "acosh", FLOATS, OP_Acosh, NULL, NULL },
    { "atanh", FLOATS, OP_Atanh, NULL, NULL },
    { "erf", FLOATS, OP_Erf, NULL, NULL },
    { "floor", FLOATS, OP_Floor, NULL, NULL },
    { "ceil", FLOATS, OP_Ceil, NULL, NULL },
    { "round", FLOATS, OP_Round, NULL, NULL },
    { "trunc", FLOATS, OP_Trunc, NULL, NULL },
    { "is_nan", FLOATS, OP_IsNaN, NULL, NULL },
    { "is_inf", FLOATS, OP_IsInf, NULL, NULL },
    { "is_finite", FLOATS, OP_Map, "x - x == 0", NULL },
    { "relu", ANY, OP_Relu, NULL, NULL },
    { "relu6", ANY, OP_Map, "min(max(x, 0), 6)", NULL },
    { "sigmoid", FLOATS, OP_Sigmoid, NULL, NULL },
    { "silu", FLOATS, OP_Swish, NULL, NULL },
    { "gelu", FLOATS, OP_Gelu, NULL, NULL },
    { "gelu_tanh", FLOATS, OP_GeluTanh, NULL, NULL },
    { "quick_gelu", FLOATS, OP_Map, "x * sigmoid(1.702 * x)", NULL },
    { "mish", FLOATS, OP_Mish, NULL, NULL },
    { "softplus", FLOATS, OP_Softplus, "softplus(x * y) / y", NULL },
    { "softsign", FLOATS, OP_Softsign, NULL, NULL },
    { "log_sigmoid", FLOATS, OP_Map, "-softplus(-x)", NULL },
    { "hardtanh", FLOATS, OP_Map, "min(max(x, y), z)", NULL },
    { "hardsigmoid", FLOATS, OP_Map, "max(min(x * 0.16666666666666666 + 0.5, 1), 0)", NULL },
    { "hardswish", FLOATS, OP_HardSwish, NULL, NULL },
    { "tanhshrink", FLOATS, OP_Map, "x - tanh(x)", NULL },
    { "selu", FLOATS, OP_Selu, NULL, NULL },
    { "elu", FLOATS, OP_Elu, NULL, "alpha" },
    { "celu", FLOATS, OP_Celu, NULL, "alpha" },
    { "leaky_relu", FLOATS, OP_LeakyRelu, NULL, "alpha" },
    { "prelu", FLOATS, OP_PRelu, NULL, NULL },
    { "hardshrink", FLOATS, OP_Shrink, NULL, "lambd" },
    { "softshrink", FLOATS, OP_Map, "x > y ? x - y : x < -y ? x + y : 0", NULL },
    { "threshold", ANY, OP_Map, "x > y ? x : z", NULL },
    { "thresholded_relu", FLOATS, OP_ThresholdedRelu, NULL, "alpha" },
    { "shrink", FLOATS, OP_Map, "x < -y ? x + z : x > y ? x - z : 0", NULL },
    { "rrelu", FLOATS, OP_Map, "x < 0 ? x * ((y + z) / 2) : x", NULL },
    { "deg2rad", FLOATS, OP_Map, "0.017453292519943296 * x", NULL },
    { "rad2deg", FLOATS, OP_Map, "57.295779513082321 * x", NULL },
    { "is_close", FLOATS, OP_Map, "x == y || (y - y == 0 && abs(x - y) <= 0.00000001 + 0.00001 * abs(y))", NULL },
};

// Numbers behind the one tensor that a call can leave out.
static const struct { const char *name; int count; double number[2]; } otherwise[] = {
    { "hardtanh", 2, { -1, 1 } },
    { "elu", 1, { 1 } },
    { "celu", 1, { 1 } },
    { "leaky_relu", 1, { 0.01 } },
    { "hardshrink", 1, { 0.5 } },
    { "softshrink", 1, { 0.5 } },
    { "thresholded_relu", 1, { 1 } },
    { "shrink", 2, { 0.5, 0 } },
    { "rrelu", 2, { 0.125, 0.33333333333333333 } },
};

// ---------------------------------------------------------------- element types

static int type_class(DType d) { return dtype_is_float(d) ? 2 : d == DT_BOOL ? 0 : 1; }

static DType promoted(DType a, DType b) {
    int x = type_class(a), y = type_class(b);
    if (a == b || x > y) return a;
    if (x < y) return b;
    if (dtype_size(a) == dtype_size(b)) return x == 2 ? DT_F32 : dtype_class(a) == CLASS_INT ? a : b;
    return dtype_size(a) > dtype_size(b) ? a : b;
}

bool operands(Graph *g, int n, const burn_arg *args, Value **out) {
    DType common = DT_NONE;
    bool fraction = false;
    for (int i = 0; i < n; i++) {
        if (!args[i].is_number && !args[i].tensor) return false;
        if (args[i].is_number) fraction |= args[i].number != rint(args[i].number) && isfinite(args[i].number);
        else common = common ? promoted(common, args[i].tensor->type.dtype) : args[i].tensor->type.dtype;
    }
    if (!common || (fraction && type_class(common) < 2)) common = DT_F32;
    bool numbers = false;
    for (int i = 0; i < n; i++) numbers |= args[i].is_number;
    if (numbers && common == DT_BOOL) common = DT_I64;
    for (int i = 0; i < n; i++) {
        out[i] = args[i].is_number ? b_scalar(g, common, args[i].number) : b_cast(g, args[i].tensor, common);
        if (!out[i]) return false;
    }
    return true;
}

static Value *as_bool(Graph *g, Value *x) {
    return !x || x->type.dtype == DT_BOOL ? x : B_MAP(g, "x != 0", "x", x);
}

static bool typed_operands(Graph *g, Operands kind, int n, const burn_arg *args, Value **in) {
    int first = kind == CHOICE;
    if (!operands(g, n - first, args + first, in + first)) return false;
    if (first && !(in[0] = as_bool(g, args[0].tensor))) return false;
    for (int i = 0; i < n; i++) {
        if (kind == BOOLS) in[i] = as_bool(g, in[i]);
        if (kind == FLOATS && !dtype_is_float(in[i]->type.dtype)) in[i] = b_cast(g, in[i], DT_F32);
        if (!in[i]) return false;
    }
    return true;
}

// ---------------------------------------------------------------- calls

// What an operation of numbers is of bools, in which PyTorch counts 1 + 1 as 1.
static Op of_bools(Op op) {
    switch (op) {
    case OP_Add: case OP_Max: case OP_BitwiseOr: return OP_Or;
    case OP_Mul: case OP_Min: case OP_BitwiseAnd: return OP_And;
    case OP_BitwiseXor: return OP_Xor;
    case OP_BitwiseNot: return OP_Not;
    default: return op;
    }
}

static Value *with_attribute(Graph *g, const MapCall *call, Value *x, const burn_arg *number) {
    if (!number->is_number) return graph_fail(g, "%s is a number, not a tensor", call->attribute);
    Node *n = graph_node(g, call->op, 1, &x, 1);
    node_set_float(n, call->attribute, number->number);
    return b_finish(n);
}

burn_value *language_map(const burn_place *at, int given, const burn_arg *args) {
    const MapCall *call = calls;
    burn_arg all[3] = { 0 };
    Value *in[3];
    int n = given;
    Graph *g = here(at, NULL);
    while (strcmp(call->name, at->call)) call++;
    for (int i = 0; i < given; i++) all[i] = args[i];
    for (size_t k = 0; k < COUNT(otherwise); k++)
        for (; !strcmp(otherwise[k].name, call->name) && n <= otherwise[k].count; n++)
            all[n] = (burn_arg){ NULL, otherwise[k].number[n - 1], true };
    if (!typed_operands(g, call->operands, call->attribute ? 1 : n, all, in)) return NULL;
    if (call->attribute) return with_attribute(g, call, in[0], &all[1]);
    if (call->op == OP_Map || (call->expression && n > 1)) return b_map(g, call->expression, "x y z", n, in);
    return b_op(g, in[0]->type.dtype == DT_BOOL ? of_bools(call->op) : call->op, n, in);
}

burn_value *language_cast(const burn_place *at, burn_value *x, int dtype) {
    Graph *g = here(at, NULL);
    if (!dtype_in(g, dtype)) return NULL;
    return b_cast(g, x, (DType)dtype);
}
