// SPDX-License-Identifier: MIT OR Apache-2.0
// Prototypes of every function that a row of ops.def names: shape_X, eval_X, grad_X, lower_X, work_X and expand_X of
// the families in this folder. A row that names a function nobody defines fails to link.
#ifndef BURNCC_OP_TABLE_H
#define BURNCC_OP_TABLE_H
#include "ops/lower.h"

#define OP(name, in_min, in_max, outputs, shape_fn, eval_fn, grad_fn, lower_fn, form, reduce, work_fn)                 \
    bool shape_##shape_fn(Node *n);                                                                                    \
    bool eval_##eval_fn(const Node *n, Tensor *const *in, Tensor *const *out);                                         \
    bool grad_##grad_fn(Node *n, Value *const *dout, Value **din);                                                     \
    Expr *lower_##lower_fn(Lower *l, Node *n, int out, Expr *const *idx);                                              \
    int64_t work_##work_fn(const Node *n);
#define MAP(name, args, text, attrs)
#define COMPOSITE(name, in_min, in_max, outputs, shape_fn, expand_fn, grad_fn, lower_fn, form, reduce, work_fn)        \
    bool shape_##shape_fn(Node *n);                                                                                    \
    bool expand_##expand_fn(Node *n, Value **out);                                                                     \
    bool grad_##grad_fn(Node *n, Value *const *dout, Value **din);                                                     \
    Expr *lower_##lower_fn(Lower *l, Node *n, int out, Expr *const *idx);                                              \
    int64_t work_##work_fn(const Node *n);
#include "ops.def"
#undef OP
#undef MAP
#undef COMPOSITE

// reports "OP is not evaluated at compile time" at the node
bool eval_none(const Node *n, Tensor *const *in, Tensor *const *out);
bool expand_none(Node *n, Value **out);                                     // primitives: a compiler bug
#endif
