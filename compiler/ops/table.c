// SPDX-License-Identifier: MIT OR Apache-2.0
// op_table: ops.def and maps.def as data, and the functions that stand where a row has nothing of its own (`none`),
// so that no column is ever NULL. Every scalar map shares shape_map, eval_map, grad_map and lower_map (ops/map.c).
//
// ir/ asks this table for names, arities and rules, although it lies below ops/: a graph knows its operations by number
// alone, and what a number means is a row here.
#include "table.h"
#include <string.h>

const OpInfo op_table[OP_COUNT] = {
    [OP_NONE] = { .name = "None",
        .shape = shape_same,
        .eval = eval_none,
        .grad = grad_none,
        .lower = lower_none,
        .expand = expand_none,
        .work = work_one },
#define OP(n, lo, hi, outputs, shape_fn, eval_fn, grad_fn, lower_fn, form_, reduce_, work_fn)                          \
    [OP_##n] = { .name = #n,                                                                                           \
        .kind = KIND_PRIMITIVE,                                                                                        \
        .in_min = lo,                                                                                                  \
        .in_max = hi,                                                                                                  \
        .n_out = outputs,                                                                                              \
        .shape = shape_##shape_fn,                                                                                     \
        .eval = eval_##eval_fn,                                                                                        \
        .grad = grad_##grad_fn,                                                                                        \
        .lower = lower_##lower_fn,                                                                                     \
        .expand = expand_none,                                                                                         \
        .form = FORM_##form_,                                                                                          \
        .reduce = RED_##reduce_,                                                                                       \
        .work = work_##work_fn },
#define MAP(n, args_, text, attrs_)                                                                                    \
    [OP_##n] = { .name = #n,                                                                                           \
        .kind = KIND_MAP,                                                                                              \
        .in_min = (int)(sizeof(args_) / 2),                                                                            \
        .in_max = (int)(sizeof(args_) / 2),                                                                            \
        .n_out = 1,                                                                                                    \
        .shape = shape_map,                                                                                            \
        .eval = eval_map,                                                                                              \
        .grad = grad_map,                                                                                              \
        .lower = lower_map,                                                                                            \
        .expand = expand_none,                                                                                         \
        .form = FORM_MAP,                                                                                              \
        .work = work_one,                                                                                              \
        .args = args_,                                                                                                 \
        .expr = text,                                                                                                  \
        .attrs = attrs_ },
#define COMPOSITE(n, lo, hi, outputs, shape_fn, expand_fn, grad_fn, lower_fn, form_, reduce_, work_fn)                 \
    [OP_##n] = { .name = #n,                                                                                           \
        .kind = KIND_COMPOSITE,                                                                                        \
        .in_min = lo,                                                                                                  \
        .in_max = hi,                                                                                                  \
        .n_out = outputs,                                                                                              \
        .shape = shape_##shape_fn,                                                                                     \
        .eval = eval_none,                                                                                             \
        .grad = grad_##grad_fn,                                                                                        \
        .lower = lower_##lower_fn,                                                                                     \
        .expand = expand_##expand_fn,                                                                                  \
        .form = FORM_##form_,                                                                                          \
        .reduce = RED_##reduce_,                                                                                       \
        .work = work_##work_fn },
#include "ops.def"
#undef OP
#undef MAP
#undef COMPOSITE
};

bool op_find(const char *name, Op *out) {
    for (int i = 1; i < OP_COUNT; i++)
        if (*op_table[i].name == *name && !strcmp(op_table[i].name, name)) {
            *out = (Op)i;
            return true;
        }
    return false;
}

bool op_is_map(Op op) { return op_table[op].form == FORM_MAP; }
bool op_has_expr(Op op) { return op_is_map(op) && op != OP_Cast; }

bool op_is_view(Op op) {
    OpForm f = op_table[op].form;
    return f == FORM_VIEW || f == FORM_RESHAPE || f == FORM_INDEX;
}

// A composite without element expression is called by the back end that claimed it.
bool op_is_called(Op op) {
    const OpInfo *info = &op_table[op];
    return info->form == FORM_CALL || (info->kind == KIND_COMPOSITE && info->lower == lower_none);
}

bool op_has_gradient(Op op) { return op_table[op].grad != grad_none; }

bool op_is_row_reduce(Op op) { return op_table[op].form == FORM_REDUCE || op_table[op].form == FORM_ARG; }

bool op_is_reduce(Op op) {
    OpForm f = op_table[op].form;
    return op_is_row_reduce(op) || f == FORM_SCAN || f == FORM_WINDOW || f == FORM_CONTRACT;
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

bool grad_zero(Node *n, Value *const *dout, Value **din) {
    (void)n, (void)dout, (void)din;
    return true;
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

int64_t work_one(const Node *n) {
    (void)n;
    return 1;
}
