// SPDX-License-Identifier: MIT OR Apache-2.0
// A scalar expression as ONNX operators, one for each of its operations.
//
// In: a node with an expression (ir/expr.c) over its inputs' elements. Out: nodes that broadcast like it. The idea:
// every operation has a spelling of a few operators over whole tensors. Arithmetic of 16 bits and less runs in f32 and
// is rounded once, at the end, so that is where its casts are.
#include "export/put.h"
#include "ir/expr.h"

#include <string.h>

typedef struct Spelling { const char *op; int since; } Spelling;
static const Spelling spellings[E_COUNT] = {
    [E_Add] = { "Add", 7 }, [E_Sub] = { "Sub", 7 }, [E_Mul] = { "Mul", 7 }, [E_Div] = { "Div", 7 },
    [E_Neg] = { "Neg", 6 }, [E_Abs] = { "Abs", 6 }, [E_Sign] = { "Sign", 9 }, [E_Min] = { "Min", 12 },
    [E_Max] = { "Max", 12 }, [E_Pow] = { "Pow", 12 }, [E_Exp] = { "Exp", 6 }, [E_Log] = { "Log", 6 },
    [E_Sqrt] = { "Sqrt", 6 }, [E_Sin] = { "Sin", 7 }, [E_Cos] = { "Cos", 7 }, [E_Tan] = { "Tan", 7 },
    [E_Asin] = { "Asin", 7 }, [E_Acos] = { "Acos", 7 }, [E_Atan] = { "Atan", 7 }, [E_Sinh] = { "Sinh", 9 },
    [E_Cosh] = { "Cosh", 9 }, [E_Tanh] = { "Tanh", 6 }, [E_Asinh] = { "Asinh", 9 }, [E_Acosh] = { "Acosh", 9 },
    [E_Atanh] = { "Atanh", 9 }, [E_Erf] = { "Erf", 9 }, [E_Sigmoid] = { "Sigmoid", 6 },
    [E_Softplus] = { "Softplus", 1 }, [E_Floor] = { "Floor", 6 }, [E_Ceil] = { "Ceil", 6 }, [E_Round] = { "Round", 11 },
    [E_IsNan] = { "IsNaN", 9 }, [E_IsInf] = { "IsInf", 10 }, [E_Lt] = { "Less", 9 }, [E_Le] = { "LessOrEqual", 12 },
    [E_Eq] = { "Equal", 11 }, [E_And] = { "And", 7 }, [E_Or] = { "Or", 7 }, [E_Xor] = { "Xor", 7 },
    [E_Not] = { "Not", 1 }, [E_BitAnd] = { "BitwiseAnd", 18 }, [E_BitOr] = { "BitwiseOr", 18 },
    [E_BitXor] = { "BitwiseXor", 18 }, [E_BitNot] = { "BitwiseNot", 18 }, [E_Select] = { "Where", 9 },
};

// of: names of the operands of the expression's nodes; result: of the last; wide: small floats are f32
typedef struct Spell { Put *p; const Node *node; const char *result; bool wide; } Spell;

static DType dtype_in(const Spell *s, DType d) { return s->wide ? dtype_wide(d) : d; }

static const char *constant(const Spell *s, const Expr *e) {
    DType d = dtype_in(s, e->dtype);
    if (dtype_is_float(d)) return put_number(s->p, d, e->c.f);
    Tensor *t = tensor_new(s->p->x->arena, type_make(d, 0, NULL));
    tensor_set_i(t, 0, e->c.i);
    return d == DT_I64 ? put_int(s->p, e->c.i) : put_constant(s->p, t);
}

static const char *argument(const Spell *s, const Expr *e) {
    const char *x = put_value(s->p, s->node->in[e->c.i]);
    DType d = dtype_in(s, e->dtype);
    return d == e->dtype ? x : put_cast(s->p, NULL, x, d);
}

static const char *cast(const Spell *s, const Expr *e, const char *x) {
    DType from = dtype_in(s, e->a[0]->dtype), to = dtype_in(s, e->dtype);
    if (to == e->dtype) return from == to ? x : put_cast(s->p, s->result, x, to);
    return put_cast(s->p, s->result, put_cast(s->p, NULL, x, e->dtype), to);      // rounds, and goes on in f32
}

// Integers: x / 0 and x % 0 are 0 here, and the end of the program elsewhere.
static const char *integer_division(const Spell *s, const Expr *e, const char *const *x, const char *op) {
    Put *p = s->p;
    DType d = e->dtype;
    const Expr *by = e->a[1];
    int n = !strcmp(op, "Mod") && e->op == E_Mod;
    const OnnxAttr fmod = attr_int("fmod", 1);
    if (by->op == E_Const && by->c.i) return put_op(p, s->result, op, 2, x, n, &fmod);
    const char *zero = put_number(p, d, 0), *one = put_number(p, d, 1);
    const char *none = put_op(p, NULL, "Equal", NAMES(x[1], zero), NO_ATTRS);
    const char *safe = put_op(p, NULL, "Where", NAMES(none, one, x[1]), NO_ATTRS);
    const char *y = put_op(p, NULL, op, NAMES(x[0], safe), n, &fmod);
    return put_op(p, s->result, "Where", NAMES(none, zero, y), NO_ATTRS);
}

static const char *modulo(const Spell *s, const Expr *e, const char *const *x) {
    Put *p = s->p;
    if (!dtype_is_float(e->dtype)) return integer_division(s, e, x, "Mod");
    const char *q = put_op(p, NULL, "Div", 2, x, NO_ATTRS);
    q = put_op(p, NULL, "Floor", NAMES(q), NO_ATTRS);
    q = put_op(p, NULL, "Mul", NAMES(q, x[1]), NO_ATTRS);
    return put_op(p, s->result, "Sub", NAMES(x[0], q), NO_ATTRS);
}

static const char *truncated(const Spell *s, const char *x) {
    const char *size = put_op(s->p, NULL, "Abs", NAMES(x), NO_ATTRS);
    const char *sign = put_op(s->p, NULL, "Sign", NAMES(x), NO_ATTRS);
    size = put_op(s->p, NULL, "Floor", NAMES(size), NO_ATTRS);
    return put_op(s->p, s->result, "Mul", NAMES(sign, size), NO_ATTRS);
}

static const char *log1p_of(const Spell *s, DType d, const char *x) {
    const char *one = put_number(s->p, d, 1), *sum = put_op(s->p, NULL, "Add", NAMES(one, x), NO_ATTRS);
    return put_op(s->p, s->result, "Log", NAMES(sum), NO_ATTRS);
}

static const char *expm1_of(const Spell *s, DType d, const char *const *x) {
    const char *y = put_op(s->p, NULL, "Exp", 1, x, NO_ATTRS), *one = put_number(s->p, d, 1);
    return put_op(s->p, s->result, "Sub", NAMES(y, one), NO_ATTRS);
}

static const char *fail(const Spell *s, const Expr *e, int since) {
    const char *name = expr_table[e->op].name;
    if (since > s->p->x->opset)
        diag_error(s->node->loc, "%s of %s needs operator set %d; --opset %d or a newer one has it", name,
            dtype_name(e->dtype), since, since);
    else diag_error(s->node->loc, "ONNX has no operator for %s of %s", name, dtype_name(e->dtype));
    return NULL;
}

static const char *shifted(const Spell *s, const Expr *e, const char *const *x) {
    if (dtype_class(e->dtype) != CLASS_UINT) return fail(s, e, 0);
    return put_op(s->p, s->result, "BitShift", 2, x,
        ATTRS(attr_string("direction", e->op == E_Shl ? "LEFT" : "RIGHT")));
}

// Of bools, which few runtimes choose between: c && x || !c && y.
static const char *chosen_bool(const Spell *s, const char *const *x) {
    const char *yes = put_op(s->p, NULL, "And", 2, x, NO_ATTRS), *not = put_op(s->p, NULL, "Not", 1, x, NO_ATTRS);
    const char *no = put_op(s->p, NULL, "And", NAMES(not, x[2]), NO_ATTRS);
    return put_op(s->p, s->result, "Or", NAMES(yes, no), NO_ATTRS);
}

static const char *operation(const Spell *s, const Expr *e, const char *const *x) {
    Put *p = s->p;
    DType d = dtype_in(s, e->dtype);
    bool whole = dtype_is_int(d);
    switch (e->op) {
    case E_Const: return constant(s, e);
    case E_Arg: return argument(s, e);
    case E_Cast: return cast(s, e, x[0]);
    case E_Bits:
        return p->x->opset < 26 ? fail(s, e, 26) : put_op(p, s->result, "BitCast", 1, x, ATTRS(attr_int("to", d)));
    case E_Ne: return put_op(p, s->result, "Not", NAMES(put_op(p, NULL, "Equal", 2, x, NO_ATTRS)), NO_ATTRS);
    case E_Log1p: return log1p_of(s, d, x[0]);
    case E_Expm1: return expm1_of(s, d, x);
    case E_Mod:
        if (whole) return integer_division(s, e, x, "Mod");
        return put_op(p, s->result, "Mod", 2, x, ATTRS(attr_int("fmod", 1)));
    case E_FloorMod: return modulo(s, e, x);
    case E_Trunc: return truncated(s, x[0]);
    case E_Shl: case E_Shr: return shifted(s, e, x);
    case E_Select: if (d == DT_BOOL) return chosen_bool(s, x); break;
    case E_Div: if (whole) return integer_division(s, e, x, "Div"); break;
    default: break;
    }
    const Spelling *spelling = &spellings[e->op];
    if (!spelling->op || spelling->since > p->x->opset) return fail(s, e, spelling->since);
    return put_op(p, s->result, spelling->op, expr_table[e->op].arity, x, NO_ATTRS);
}

// Inputs that the expression does not use may be what makes the result as large as it is.
static bool reaches_shape(const Node *n, const ExprOrder *order) {
    Type t = { .dtype = n->out[0]->type.dtype };
    for (int i = 0; i < order->n; i++) {
        const Expr *e = order->at[i];
        if (e->op == E_Arg && !type_broadcast(&t, &t, &n->in[e->c.i]->type)) return false;
    }
    t.dtype = n->out[0]->type.dtype;
    return type_equal(&t, &n->out[0]->type);
}

bool put_expr(Put *p, Node *n) {
    Expr *e = node_expr(n);
    ExprOrder order;
    order_make(&order, e);
    bool small = false, plain = reaches_shape(n, &order);
    for (int i = 0; i < order.n; i++) small = small || dtype_is_small_float(order.at[i]->dtype);
    Spell s = { .p = p, .node = n, .wide = small };
    const char **names = NEW_ARRAY(p->x->arena, const char *, order.n + 1), *result = put_name(p, n->out[0]);
    bool rounds = dtype_in(&s, e->dtype) != e->dtype;
    for (int i = 0; i < order.n; i++) {
        const char *x[3];
        int k = 0;
        for (; k < 3 && order.arg[i][k] >= 0; k++) x[k] = names[order.arg[i][k]];
        s.result = i == order.n - 1 && plain && !rounds ? result : NULL;
        if (!(names[i] = operation(&s, order.at[i], x))) break;
    }
    const char *y = names[order.n - 1];
    order_free(&order);
    if (!y) return false;
    if (rounds) y = put_cast(p, plain ? result : NULL, y, e->dtype);
    if (!plain) {
        const Type *t = &n->out[0]->type;
        const char *sizes = put_sizes(p, t->rank, t->dim, NULL);
        y = put_op(p, result, "Expand", NAMES(y, sizes), NO_ATTRS);
    }
    if (y && y != result) put_op(p, result, "Identity", NAMES(y), NO_ATTRS);
    return y != NULL;
}
