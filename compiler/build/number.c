// SPDX-License-Identifier: MIT OR Apache-2.0
// Builders of integers that describe shapes: sizes as numbers of the program, and lists of them.
//
// In: dimensions, constant or symbolic, and i64 values. Out: i64 values. The idea: a size that is known is a constant;
// a symbolic one is the shape of a vector that nobody makes.
#include "build/build.h"

Value *b_item(Graph *g, Value *list, int at) { return b_scalar_of(g, b_part(g, list, 0, at, 1)); }

Value *b_numbers(Graph *g, int count, const Dim *d) {
    bool known = true;
    for (int i = 0; i < count; i++) known = known && dim_is_const(d[i]);
    if (known) return b_ints(g, count, d);
    Value *list = NULL;
    for (int i = 0; i < count; i++) {
        Value *v = dim_is_const(d[i]) ? b_ints(g, 1, &d[i]) :
                                        b_unary(g, OP_Shape, b_iota(g, 1, &d[i], 0, DT_I64));
        list = list ? b_concat(g, 0, 2, (Value *[]){ list, v }) : v;
    }
    return list;
}

Value *b_number(Graph *g, Dim d) { return b_reshape(g, b_numbers(g, 1, &d), 0, NULL); }

Value *b_joined(Graph *g, int count, Value *const *items) {
    Value **rows = NEW_ARRAY(g->arena, Value *, count + 1);
    if (!count) return b_ints(g, 0, NULL);
    for (int i = 0; i < count; i++)
        if (!(rows[i] = b_reshape(g, items[i], 1, (Dim[]){ 1 }))) return NULL;
    return count == 1 ? rows[0] : b_concat(g, 0, count, rows);
}

Value *b_size_of(Graph *g, Value *v, int axis) {
    if (!v) return NULL;
    if (dim_is_const(v->type.dim[axis])) return b_scalar(g, DT_I64, (double)v->type.dim[axis]);
    return b_scalar_of(g, b_part(g, b_unary(g, OP_Shape, v), 0, axis, 1));
}

Value *b_normal_axes(Graph *g, Value *axes, int rank) {
    return B_MAP(g, arena_printf(g->arena, "x < 0 ? x + %d : x", rank), "x", axes);
}

Value *b_count(Graph *g, Value *x, int n_axes, const int64_t *axes, DType d) {
    Dim count = 1;
    for (int i = 0; i < n_axes; i++) count = dim_mul(g, count, x->type.dim[axes[i]]);
    if (dim_is_const(count)) return b_scalar(g, d, (double)count);
    Value *dims = b_unary(g, OP_Shape, x), *which = b_ints(g, n_axes, axes);
    return b_cast(g, b_reduce(g, OP_ReduceProd, b_gather(g, dims, which, 0), 1, (int64_t[]){ 0 }, false), d);
}

bool b_static(Graph *g, const Value *v, const char *what) {
    if (type_is_static(&v->type)) return true;
    for (int i = 0; i < v->type.rank; i++)
        if (!dim_is_const(v->type.dim[i])) {
            graph_fail(g, "%s needs known sizes, but dimension %d is %s; pin it with --dim NAME=V", what, i,
                dim_text(g->arena, g, v->type.dim[i]));
            return false;
        }
    return true;
}
