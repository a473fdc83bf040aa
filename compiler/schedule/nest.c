// SPDX-License-Identifier: MIT OR Apache-2.0
// What of a kernel's loop nest may be shared out: the parallel axes outside of every reduction that their points share.
#include "schedule.h"

typedef struct Search { const Kernel *kernel; bool *seen; int outer; } Search;

// A reduction that depends on no axis of another's stands inside the last parallel axis that it uses, and before the
// loops over the next.
static void meet(Search *s, const Expr *e) {
    if (!e || s->seen[e->id]) return;
    s->seen[e->id] = true;
    if (e->op == E_Reduce && !(e->axes_used >> s->kernel->n_parallel)) {
        int inside = 0;
        while (e->axes_used >> inside) inside++;
        if (inside < s->outer) s->outer = inside;
    }
    for (int i = 0; i < 3; i++) meet(s, e->a[i]);
}

int nest_outer_axes(const Kernel *k) {
    Arena *scratch = arena_new();
    Search s = { .kernel = k, .seen = NEW_ARRAY(scratch, bool, expr_count(k->exprs) + 1), .outer = k->n_parallel };
    for (int i = 0; i < k->stores.n; i++) {
        meet(&s, k->stores.at[i].index);
        meet(&s, k->stores.at[i].guard);
        meet(&s, k->stores.at[i].expr);
    }
    arena_free(scratch);
    return s.outer;
}
