// SPDX-License-Identifier: MIT OR Apache-2.0
// Prints a loop kernel: nested loops over its axes, every expression at the outermost level where all it needs is
// known.
//
// In: stores of expressions over loads, axes and reductions. Out: text in a Dialect (C, GLSL). The tree of scopes and
// the temporaries come from nest.c, reductions from reduce.c. A nest whose points each sum a little, where memory
// runs along the innermost parallel axis, goes along that axis some points at a time (strips.c), ends of windows have
// loops of their own (ends.c), turned copies go in blocks (turned.c), and elements of f16 become floats in rows
// (halves.c), and bytes of few channels go some neighbours at a time (spans.c). These call back, through
// LoopPrinter.scope, for what is inside of a loop.
#include "loops.h"

static void print_scope(LoopPrinter *p, int scope, int depth) {
    for (int i = 0; i < p->exprs.n; i++) {
        Expr *e = p->exprs.at[i];
        if (p->scope_of[e->id] != scope || !p->is_temp[e->id] || p->holds[e->id]) continue;
        if (p->follows[e->id]) continue;
        if (e->op == E_Reduce) loops_reduce(p, e, depth);
        else loops_define(p, e, depth);
    }
    if (p->scopes.at[scope].reduce) return;
    if (scope == p->last_parallel) {
        loops_stores(p, depth);
        return;
    }
    int next = scope + 1, axis = p->scopes.at[next].axis;
    if (p->k->axes.at[axis].size == 1) {
        print_scope(p, next, depth);
        return;
    }
    if (spans_emit(p, next, depth)) return;
    if (strips_pay(p, next)) {
        if (p->d->strips) {
            strips_emit(p, next, depth);
            return;
        }
        p->in_order = true;
    }
    if (turned_emit(p, next, depth)) return;
    if (ends_emit(p, next, depth)) return;
    if (halves_emit(p, next, depth)) return;
    loops_open(p, axis, depth);
    print_scope(p, next, depth + 1);
    loops_close(p, depth);
}

void loops_print(Arena *a, Text *out, const Kernel *k, const Dialect *d, int bound, int depth) {
    LoopPrinter p;
    loops_init(&p, a, out, k, d, bound);
    p.scope = print_scope;
    loops_share(&p);
    spans_begin(&p, depth);
    print_scope(&p, bound, depth);
}
