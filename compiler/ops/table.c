// SPDX-License-Identifier: MIT OR Apache-2.0
// op_table: ops.def and maps.def as data, and the functions that stand where a row has nothing of its own (`none`),
// so that no column is ever NULL. Every scalar map shares shape_map, eval_map, grad_map and lower_map (ops/map.c).
#include "ops.h"
#include <string.h>

const OpInfo op_table[OP_COUNT] = {
    [OP_NONE] = { .name = "None",
        .shape = shape_same,
        .eval = eval_none,
        .grad = grad_none,
        .lower = lower_none,
        .expand = expand_none },
#define OP(n, lo, hi, outputs, shape_fn, eval_fn, grad_fn, lower_fn)                                                                          \
    [OP_##n] = {#n, KIND_PRIMITIVE, lo, hi, outputs, shape_##shape_fn, eval_##eval_fn, grad_##grad_fn, lower_##lower_fn, expand_none, NULL,    \
                NULL, NULL},
#define MAP(n, args_, text, attrs_)                                                                                                           \
    [OP_##n] = {#n, KIND_MAP, (int)(sizeof(args_) / 2), (int)(sizeof(args_) / 2), 1, shape_map, eval_map, grad_map, lower_map, expand_none,    \
                args_, text, attrs_},
#define COMPOSITE(n, lo, hi, outputs, shape_fn, expand_fn, lower_fn)                                                  \
    [OP_##n] = { #n, KIND_COMPOSITE, lo, hi, outputs, shape_##shape_fn, eval_none, grad_none, lower_##lower_fn,       \
        expand_##expand_fn, NULL, NULL, NULL },
#include "ops.def"
#undef OP
#undef MAP
#undef COMPOSITE
};

bool op_find(const char *name, Op *out) {
    for (int i = 1; i < OP_COUNT; i++)
        if (strcmp(op_table[i].name, name) == 0) {
            *out = (Op)i;
            return true;
        }
    return false;
}

bool shape_same(Node *n) {
    n->out[0]->type = n->in[0]->type;
    return true;
}

bool shape_scalar(Node *n) {
    n->out[0]->type = type_make(n->in[0]->type.dtype, 0, NULL);
    return true;
}

bool grad_none(Node *n, Value *const *dout, Value **din) {
    (void)dout, (void)din;
    diag_error(n->loc, "%s has no gradient", op_table[n->op].name);
    return false;
}

bool eval_none(const Node *n, Tensor *const *in, Tensor *const *out) {
    (void)in, (void)out;
    diag_error(n->loc, "%s is not evaluated at compile time", op_table[n->op].name);
    return false;
}

Expr *lower_none(Lower *l, Node *n, int out, Expr *const *idx) {
    (void)l, (void)out, (void)idx;
    bug("%s has no element expression", op_table[n->op].name);
}

bool expand_none(Node *n, Value **out) {
    (void)out;
    bug("%s is not a composite", op_table[n->op].name);
}
