// SPDX-License-Identifier: MIT OR Apache-2.0
// Where memory is read along one axis and written along the other, blocks of 16 x 16 are turned on the way, so that
// both sides go in lines. As many rows are too many for the processor to see where each goes on: it is told.
//
//   for (i0b = 0; i0b < 64; i0b += 16)
//       for (i1b = 0; i1b < 3136; i1b += 16) {
//           float x0[256];
//           { const ptrdiff_t i0 = i0b, i1 = i1b; burn_turn(x0, &x[i1 * 64 + i0], 64, 16, 16); }
//           for (i0 ..) {
//               { const ptrdiff_t i1 = i1b + 16; BURN_PREFETCH(&y[i0 * 3136 + i1]); }
//               for (i1 ..) y[i0 * 3136 + i1] = x0[(i0 - i0b) * 16 + i1 - i1b];
//           }
//       }
#include "loops.h"

enum { TURN = 16, MIN_TURN = 8, MAX_TURNED = 3 };

// The next parallel scope below `scope` whose axis is longer than 1; -1: none.
static int scope_below(const LoopPrinter *p, int scope) {
    for (int s = scope + 1; s <= p->last_parallel; s++)
        if (p->k->axes.at[p->scopes.at[s].axis].size != 1) return s;
    return -1;
}

// Floats that lie along axis a and far apart along b, everything else along b: the number of such loads; 0: it does
// not pay.
static int find_turned(const LoopPrinter *p, int a, int b, Expr **loads) {
    int n = 0;
    Dim coef[64], c0;
    for (int i = 0; i < p->exprs.n; i++) {
        Expr *e = p->exprs.at[i];
        bool inner = e->axes_used >> a & 1 || e->axes_used >> b & 1;
        if (e->op == E_Reduce && (inner || p->scope_of[e->id] > p->axis_scope[a])) return 0;
        if (e->op != E_Load || !inner) continue;
        if (e->a[1] || !expr_affine_sizes(e->a[0], p->d->graph, p->k->axes.n, coef, &c0)) return 0;
        if (coef[b] == 0 || coef[b] == 1) continue;
        if (coef[a] != 1 || e->dtype != DT_F32 || n == MAX_TURNED) return 0;
        loads[n++] = e;
    }
    for (int i = 0; i < p->k->stores.n; i++) {
        const Store *s = &p->k->stores.at[i];
        if (s->guard || !expr_affine_sizes(s->index, p->d->graph, p->k->axes.n, coef, &c0) || coef[b] != 1) return 0;
    }
    return n;
}

static void open_blocks(LoopPrinter *p, int axis, int depth) {
    const char *i = p->axis_name[axis], *it = p->d->index_type,
               *extent = loops_is_ranged(p, axis) ? p->d->last : loops_extent(p, axis);
    loops_line(p, depth);
    text_printf(p->out, "for (%s %sb = %s; %sb < %s; %sb += %d) {\n", it, i,
        loops_is_ranged(p, axis) ? p->d->first : "0", i, extent, i, TURN);
    loops_line(p, depth + 1);
    text_printf(p->out, "const %s %sn = %s - %sb < %d ? %s - %sb : %d;\n", it, i, extent, i, TURN, extent, i, TURN);
}

// The lines that the next block along `axis` writes.
static void touch_next(LoopPrinter *p, int axis, int depth) {
    const char *i = p->axis_name[axis];
    if (!p->d->touch) return;
    loops_line(p, depth);
    text_printf(p->out, "{\n");
    loops_line(p, depth + 1);
    text_printf(p->out, "const %s %s = %sb + %d;\n", p->d->index_type, i, i, TURN);
    for (int k = 0; k < p->k->stores.n; k++) {
        const Store *s = &p->k->stores.at[k];
        loops_demand(p, s->index, depth + 1);
        loops_line(p, depth + 1);
        p->d->touch(p->d->ctx, p->out, s, loops_operand(p, s->index));
        text_printf(p->out, "\n");
    }
    loops_close_fresh(p, depth);
}

bool turned_emit(LoopPrinter *p, int scope, int depth) {
    int below = scope_below(p, scope),
        axis[2] = { p->scopes.at[scope].axis, below < 0 ? -1 : p->scopes.at[below].axis };
    Expr *loads[MAX_TURNED];
    Dim coef[64], c0;
    if (!p->d->lanes || below < 0 || scope_below(p, below) >= 0) return false;
    for (int k = 0; k < 2; k++)
        if (p->shared[axis[k]] || p->k->axes.at[axis[k]].extent < MIN_TURN) return false;
    const char *i = p->axis_name[axis[0]], *j = p->axis_name[axis[1]], *it = p->d->index_type;
    int n = find_turned(p, axis[0], axis[1], loads);
    if (!n) return false;
    open_blocks(p, axis[0], depth);
    open_blocks(p, axis[1], depth + 1);
    for (int k = 0; k < n; k++) {
        const char *name = arena_printf(p->arena, "x%d", p->temps++);
        expr_affine_sizes(loads[k]->a[0], p->d->graph, p->k->axes.n, coef, &c0);
        loops_line(p, depth + 2);
        text_printf(p->out, "float %s[%d];\n", name, TURN * TURN);
        loops_line(p, depth + 2);
        text_printf(p->out, "{\n");
        loops_line(p, depth + 3);
        text_printf(p->out, "const %s %s = %sb, %s = %sb;\n", it, i, i, j, j);
        loops_line(p, depth + 3);
        text_printf(p->out, "burn_turn(%s, &%s, %s, %sn, %sn);\n", name, loops_spell(p, loads[k]),
            loops_size(p, coef[axis[1]]), i, j);
        loops_close(p, depth + 2);
        p->name[loads[k]->id] = arena_printf(p->arena, "%s[(%s - %sb) * %d + %s - %sb]", name, i, i, TURN, j, j);
    }
    for (int k = 0; k < 2; k++) {
        const char *x = p->axis_name[axis[k]];
        loops_line(p, depth + 2 + k);
        text_printf(p->out, "for (%s %s = %sb; %s < %sb + %sn; %s++) {\n", it, x, x, x, x, x, x);
        if (k == 0) touch_next(p, axis[1], depth + 3);
    }
    for (int k = 0; k < p->k->stores.n; k++) {
        loops_demand(p, p->k->stores.at[k].index, depth + 4);
        loops_demand(p, p->k->stores.at[k].expr, depth + 4);
    }
    loops_stores(p, depth + 4);
    loops_close_fresh(p, depth + 3);
    for (int k = 2; k >= 0; k--) loops_close(p, depth + k);
    for (int k = 0; k < n; k++) p->name[loads[k]->id] = NULL;
    return true;
}
