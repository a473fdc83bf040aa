// SPDX-License-Identifier: MIT OR Apache-2.0
// Element expressions of operations: what a LowerFn is given, and what it builds its element from.
#ifndef BURNCC_LOWER_H
#define BURNCC_LOWER_H

#include "ir.h"

struct Lower {
    ExprPool *p;
    Graph *graph;                                       // whose symbols sizes are made of
    Expr *guard;                                        // condition under which loads are valid; NULL: always
    // who asks for the element (schedule/lower.c) says what an operand's element is and which axes there are
    Expr *(*load)(Lower *l, Value *v, Expr *const *idx);
    Expr *(*axis)(Lower *l, Dim extent, bool reduce);
    void (*shared)(Lower *l, Value *v, Expr *e);
    void *state;                                        // and what it remembers
};
Expr *lower_load(Lower *l, Value *v, Expr *const *idx); // element of v: inlines v's node when fused, else a load
Expr *lower_axis(Lower *l, Dim extent, bool reduce);                 // a new loop axis
// e, of an element of v, is a reduction that all elements of a row share: where it is not computed once for each row,
// v has to be stored
void lower_shared(Lower *l, Value *v, Expr *e);
Expr *lower_dim(Lower *l, Dim d);                       // a dimension as an index expression
Expr *lower_guard(Lower *l, Expr *cond);                // narrows l->guard, returns the old one to restore
Expr *lower_flat(Lower *l, const Type *t, Expr *const *idx);         // row-major flat index
void lower_unflat(Lower *l, const Type *t, Expr *flat, Expr **idx);
// attention.c: how result `which` of an AttentionGrad is permuted (NULL: as it is), and what it is multiplied by
const int64_t *attention_grad_perm(const Node *n, int which);
double attention_grad_scale(const Node *n, int which);
#endif
