// SPDX-License-Identifier: MIT OR Apache-2.0
// Bytes of few channels that lie beside each other, as in pictures with the channels last: a vector goes over some
// neighbours with all their channels (8 points of 8 channels in the sketch), as what is read and stored by both axes
// lies in one line. What does not lie so comes in rows, copied first: of the channels alone before all loops,
// repeated for each neighbour; of other steps before each vector. Points at which conditions fail, as padding has, go
// one by one.
//
//   int32_t t0[9 * 64];
//   for (i3 ..) for (i4 ..) for (i1 = 0; i1 < 8; i1++) for (i2 = 0; i2 < 8; i2++)
//       t0[(i3 * 3 + i4) * 64 + i1 * 8 + i2] = (int32_t)w[i3 * 24 + i4 * 8 + i2];
//   for (i0 ..)
//       for (i1b = 0; i1b + 8 <= 48; i1b += 8) {
//           const ptrdiff_t i1 = i1b;
//           for (i2 = 0; i2 < 64; i2++) { sum of x[i0 * 400 + i3 * 400 + i1 * 8 + i4 * 8 + i2] * t0[...]; y[..] = .. }
//       }
//
// The points go in the order that they have without it.
#include "loops.h"

#include <stdlib.h>

// Points of a vector, where they are wide enough; MOST_SPAN and MOST_ROWS, of all rows, bound the stack.
enum { SPAN = 64, MIN_SPAN = 32, MOST_SPAN = 512, MOST_ROWS = 8192 };

// The parallel scope of more than one point after (by 1) or before (by -1) this one; -1: none.
static int long_scope(const LoopPrinter *p, int from, int by) {
    for (int s = from + by; s > p->bound && s <= p->last_parallel; s += by)
        if (p->k->axes.at[p->scopes.at[s].axis].size != 1) return s;
    return -1;
}

static uint64_t span_axes(const LoopPrinter *p) { return (uint64_t)1 << p->span.outer | (uint64_t)1 << p->span.inner; }

// Is the index that of a line which goes on from the last channel to the neighbour's first?
static bool goes_on(const LoopPrinter *p, const Expr *index) {
    int64_t coef[64], c0;
    return expr_affine(index, p->k->axes.n, coef, &c0)
        && coef[p->span.outer] == coef[p->span.inner] * p->k->axes.at[p->span.inner].size;
}

// ---------------------------------------------------------------- which rows
static bool has_reduction(const Expr *e) {
    return e && (e->op == E_Reduce || has_reduction(e->a[0]) || has_reduction(e->a[1]) || has_reduction(e->a[2]));
}

// Elements of the row of e: a vector for each term of the sums that it stands in.
static int64_t row_elements(const LoopPrinter *p, const Expr *e) {
    int64_t n = p->span.width;
    for (int i = p->k->n_parallel; i < p->k->axes.n; i++)
        if (e->axes_used >> i & 1) n *= p->k->axes.at[i].extent;
    return n;
}

// Is e, a condition, the same for all points of a vector?
static bool is_same(const LoopPrinter *p, const Expr *e) {
    return !(e->axes_used & span_axes(p)) || p->holds[e->id]
        || (e->op == E_And && is_same(p, e->a[0]) && is_same(p, e->a[1]));
}

// Is e the same for each neighbour, and in every vector?
static bool of_channels(const LoopPrinter *p, const Expr *e) {
    const uint64_t others = ((uint64_t)1 << p->k->n_parallel) - 1 - ((uint64_t)1 << p->span.inner);
    return !(e->axes_used & others);
}

// Is e a channel's element in another type? The row has that: it is found once.
static bool widens(const LoopPrinter *p, const Expr *e) {
    return e->op == E_Cast && of_channels(p, e) && (e->a[0]->op == E_Load || widens(p, e->a[0]));
}

// False: e cannot stand in the loop over a vector.
static bool sort_out(LoopPrinter *p, Expr *e, bool *met) {
    if (!e || met[e->id] || !(e->axes_used & span_axes(p))) return true;
    met[e->id] = true;
    bool load = e->op == E_Load, guarded = load && e->a[1] && !is_same(p, e->a[1]);
    if (e->dtype == DT_BOOL && is_same(p, e)) return true;
    // a condition that changes within a vector costs more than vectors of one point
    if (guarded || e->dtype == DT_BOOL || e->dtype == DT_INDEX) return false;
    if (load && goes_on(p, e->a[0])) return sort_out(p, e->a[2], met);
    if (load || widens(p, e)) {
        // not where a guard makes a channel's element another one by line: there is a row of it for each vector
        const bool along = e->op == E_Load && e->a[0]->axes_used >> p->span.outer & 1;
        if (!along && !of_channels(p, e)) return false;
        p->span.elements += row_elements(p, e);
        VEC_PUSH(p->arena, p->span.rows, e);
        return !has_reduction(e) && p->span.elements <= MOST_ROWS;
    }
    if (e->op == E_Reduce
        && (dtype_is_float(e->dtype) || !loops_unrolls(p, e) || p->scope_of[e->id] != p->axis_scope[p->span.inner]))
        return false;
    p->span.floats = p->span.floats || dtype_is_float(e->dtype);
    p->span.sums = p->span.sums || e->op == E_Reduce;
    return sort_out(p, e->a[0], met) && sort_out(p, e->a[1], met) && sort_out(p, e->a[2], met);
}

static bool find_rows(LoopPrinter *p) {
    bool *met = NEW_ARRAY(p->arena, bool, expr_count(p->k->exprs) + 1);
    for (int i = 0; i < p->k->stores.n; i++) {
        const Store *s = &p->k->stores.at[i];
        if (dtype_size(s->value->type.dtype) != 1 || s->guard || s->op != RED_NONE || !goes_on(p, s->index)
            || !sort_out(p, s->expr, met))
            return false;
    }
    // rows for each vector cost more than what is done to bytes alone
    bool pays = p->span.sums;
    for (int i = 0; i < p->span.rows.n; i++) pays = pays && of_channels(p, p->span.rows.at[i]);
    if (!pays && !p->span.floats) return false;
    // what only rows need is computed where they are
    for (int i = 0; i < p->exprs.n; i++) {
        const Expr *e = p->exprs.at[i];
        if (e->axes_used & span_axes(p) && !met[e->id]) p->is_temp[e->id] = false;
    }
    for (int i = 0; i < p->span.rows.n; i++) p->is_temp[p->span.rows.at[i]->id] = false;
    return true;
}

// ---------------------------------------------------------------- text
static const char *define_row(LoopPrinter *p, Expr *e, const char *first, const char *last, int depth) {
    const char *i = p->axis_name[p->span.outer], *j = p->axis_name[p->span.inner], *it = p->d->index_type;
    const char *row = arena_printf(p->arena, "t%d", p->temps++), *term = "0";
    const int channels = (int)p->k->axes.at[p->span.inner].size;
    int inner = depth;
    loops_line(p, depth);
    text_printf(p->out, "%s %s[%lld];\n", p->d->type(e->dtype), row, (long long)row_elements(p, e));
    for (int a = p->k->n_parallel; a < p->k->axes.n; a++) {
        if (!(e->axes_used >> a & 1)) continue;
        loops_open(p, a, inner++);
        term = inner == depth + 1 ? p->axis_name[a] :
            arena_printf(p->arena, "(%s * %lld + %s)", term, (long long)p->k->axes.at[a].size, p->axis_name[a]);
    }
    const char *at = inner == depth ? "" : arena_printf(p->arena, "%s * %d + ", term, p->span.width);
    loops_line(p, inner);
    text_printf(p->out, "for (%s %s = %s; %s < %s; %s++) {\n", it, i, first, i, last, i);
    loops_line(p, inner + 1);
    text_printf(p->out, "for (%s %s = 0; %s < %d; %s++) {\n", it, j, j, channels, j);
    for (int a = 0; a < 3; a++) loops_demand(p, e->a[a], inner + 2);
    const char *value = text_bare(p->arena, loops_spell(p, e));
    loops_line(p, inner + 2);
    const char *neighbour = *first == '0' ? i : arena_printf(p->arena, "(%s - %s)", i, first);
    text_printf(p->out, "%s[%s%s * %d + %s] = %s;\n", row, at, neighbour, channels, j, value);
    loops_close_fresh(p, inner + 1);
    while (inner >= depth) loops_close(p, inner--);
    return arena_printf(p->arena, "%s[%s%s]", row, at, j);
}

// Rows have no names before all are there: one's place in a vector is another one's element.
static void define_rows(LoopPrinter *p, bool kept, const char *first, const char *last, int depth) {
    const char **names = NEW_ARRAY(p->arena, const char *, (size_t)p->span.rows.n + 1);
    for (int k = 0; k < p->span.rows.n; k++)
        if (of_channels(p, p->span.rows.at[k]) == kept)
            names[k] = define_row(p, p->span.rows.at[k], first, last, depth);
    for (int k = 0; k < p->span.rows.n; k++)
        if (names[k]) p->name[p->span.rows.at[k]->id] = names[k];
}

static void hold(LoopPrinter *p, bool on) {
    for (int i = 0; p->span.ends.holds && i < p->exprs.n; i++) {
        const int id = p->exprs.at[i]->id;
        p->holds[id] = on && p->span.ends.holds[id];
    }
}

// Rows of the channels stay.
static void forget(LoopPrinter *p) {
    for (int i = 0; i < p->exprs.n; i++) {
        const Expr *e = p->exprs.at[i];
        if (p->scope_of[e->id] >= p->span.scope) p->name[e->id] = p->span.kept[e->id];
    }
}

static void span_points(LoopPrinter *p, int scope, const char *count, int depth) {
    (void)scope;
    const char *i = p->axis_name[p->span.outer], *j = p->axis_name[p->span.inner], *it = p->d->index_type;
    const char *first = arena_printf(p->arena, "%sb", i), *last = arena_printf(p->arena, "%sb + %s", i, count);
    const long long channels = p->k->axes.at[p->span.inner].size;
    char *end;
    const long long known = strtoll(count, &end, 10);
    const char *elements = *end ? arena_printf(p->arena, "(%s) * %lld", count, channels) :
        arena_printf(p->arena, "%lld", known * channels);
    define_rows(p, false, first, last, depth);
    loops_line(p, depth);
    text_printf(p->out, "const %s %s = %sb;\n", it, i, i);
    loops_line(p, depth);
    text_printf(p->out, "for (%s %s = 0; %s < %s; %s++) {\n", it, j, j, elements, j);
    p->scope(p, p->axis_scope[p->span.inner], depth + 1);
    loops_close(p, depth);
    forget(p);
}

// Finds out whether that pays, and prints what stands before all loops.
void spans_begin(LoopPrinter *p, int depth) {
    const int inner = long_scope(p, p->last_parallel + 1, -1), outer = inner < 0 ? -1 : long_scope(p, inner, -1);
    if (!p->d->spans || outer < 0) return;
    const Axis *channel = &p->k->axes.at[p->scopes.at[inner].axis], *along = &p->k->axes.at[p->scopes.at[outer].axis];
    if (!dim_is_const(channel->size) || channel->size >= SPAN || !dim_is_const(along->size)) return;
    const Ends ends = ends_find(p, outer);
    const int64_t neighbours = ends.holds ? ends.hi - ends.lo : along->size;
    int64_t points = SPAN;
    while (points % 2 == 0 && points / 2 * channel->size % SPAN == 0) points /= 2;
    if (points * channel->size > MOST_SPAN) points = ceil_div(2 * SPAN, channel->size);
    if (points > neighbours) points = neighbours;
    p->span = (Span){ .outer = p->scopes.at[outer].axis, .inner = p->scopes.at[inner].axis, .points = (int)points,
        .width = (int)(points * channel->size), .ends = ends };
    if (points < 2 || p->span.width < MIN_SPAN || p->shared[p->span.outer] || p->shared[p->span.inner]
        || loops_is_ranged(p, p->span.inner))
        return;
    hold(p, true);
    const bool found = find_rows(p);
    if (found) {
        p->span.scope = outer;
        p->span.kept = NEW_ARRAY(p->arena, const char *, (size_t)expr_count(p->k->exprs) + 1);
        define_rows(p, true, "0", arena_printf(p->arena, "%d", p->span.points), depth);
        for (int i = 0; i < p->span.rows.n; i++) {
            const int id = p->span.rows.at[i]->id;
            p->span.kept[id] = p->name[id];
        }
    }
    hold(p, false);
}

bool spans_emit(LoopPrinter *p, int scope, int depth) {
    const Ends *e = &p->span.ends;
    const int64_t points = p->span.points, whole = e->holds ? (e->hi - e->lo) / points * points : 0;
    const char *i = p->axis_name[p->span.outer], *it = p->d->index_type;
    if (!p->span.scope || scope != p->span.scope) return false;
    if (!e->holds) {
        loops_strips(p, scope, p->span.points, span_points, depth);
        return true;
    }
    ends_print(p, scope, e, depth);
    forget(p);
    hold(p, true);
    loops_line(p, depth);
    text_printf(p->out, "for (%s %sb = %lld; %sb < %lld; %sb += %lld) {\n", it, i, (long long)e->lo, i,
        (long long)(e->lo + whole), i, (long long)points);
    span_points(p, scope, arena_printf(p->arena, "%lld", (long long)points), depth + 1);
    loops_close(p, depth);
    if (e->lo + whole < e->hi) {
        loops_line(p, depth);
        text_printf(p->out, "{\n");
        loops_line(p, depth + 1);
        text_printf(p->out, "const %s %sb = %lld;\n", it, i, (long long)(e->lo + whole));
        span_points(p, scope, arena_printf(p->arena, "%lld", (long long)(e->hi - e->lo - whole)), depth + 1);
        loops_close(p, depth);
    }
    hold(p, false);
    return true;
}
