// SPDX-License-Identifier: MIT OR Apache-2.0
// What the columns `lower` of the op table build an element from: sizes and indices as expressions, guards, and, by
// whoever asks for the element, elements of operands and new axes.
#include "lower.h"

// A scalar has no indices, but what goes by them counts from the first.
Expr *lower_load(Lower *l, Value *v, Expr *const *idx) {
    static Expr *const none[1] = { NULL };
    return l->load(l, v, idx ? idx : none);
}

Expr *lower_axis(Lower *l, Dim extent, bool reduce) {
    return extent == 1 ? expr_index(l->p, 0) : l->axis(l, extent, reduce);
}

void lower_shared(Lower *l, Value *v, Expr *e) { l->shared(l, v, e); }

Expr *lower_dim(Lower *l, Dim d) {
    return expr_size(l->p, l->graph, d);
}

Expr *lower_guard(Lower *l, Expr *cond) {
    Expr *old = l->guard;
    l->guard = old ? expr_binary(l->p, E_And, old, cond) : cond;
    if (l->guard->op == E_Const && l->guard->c.i) l->guard = NULL;
    return old;
}

static void dim_strides(Lower *l, const Type *t, Dim *stride) {
    Dim n = 1;
    for (int i = t->rank - 1; i >= 0; i--) {
        stride[i] = n;
        n = dim_mul(l->graph, n, t->dim[i]);
    }
}

Expr *lower_flat(Lower *l, const Type *t, Expr *const *idx) {
    Expr *flat = expr_index(l->p, 0);
    Dim stride[MAX_RANK];
    dim_strides(l, t, stride);
    for (int i = 0; i < t->rank; i++)
        flat = expr_binary(l->p, E_Add, flat, expr_binary(l->p, E_Mul, idx[i], lower_dim(l, stride[i])));
    return flat;
}

void lower_unflat(Lower *l, const Type *t, Expr *flat, Expr **idx) {
    Dim stride[MAX_RANK];
    dim_strides(l, t, stride);
    for (int i = 0; i < t->rank; i++) {
        if (t->dim[i] == 1) {
            idx[i] = expr_index(l->p, 0);
            continue;
        }
        Expr *q = expr_binary(l->p, E_Div, flat, lower_dim(l, stride[i]));
        bool outermost = true;
        for (int j = 0; j < i; j++) outermost = outermost && t->dim[j] == 1;
        idx[i] = outermost ? q : expr_binary(l->p, E_Mod, q, lower_dim(l, t->dim[i]));
    }
}
