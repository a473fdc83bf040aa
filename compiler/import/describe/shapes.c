// SPDX-License-Identifier: MIT OR Apache-2.0
// Calls that move elements: views, parts, and what is put together from parts.
//
// In: tensors, axes that may count from the end, sizes that may be symbols. Out: one value, built by build/.
#include "import/describe/describe.h"

#include <string.h>

// ---------------------------------------------------------------- views

// -1 in a list of sizes: what the others leave of x's elements.
static bool left_over(Graph *g, const Value *x, int rank, const burn_dim *dims, Dim *out) {
    int open = -1;
    Dim others = 1, all = type_size(g, &x->type);
    for (int i = 0; i < rank; i++) {
        if (dims[i] == -1 && open >= 0) return graph_fail(g, "only one size can be -1");
        if (dims[i] == -1) open = i;
        else if (!dim_in(dims[i], "a size", &out[i])) return false;
        else others = dim_mul(g, others, out[i]);
    }
    if (open >= 0) {
        if (others == 0) return graph_fail(g, "the size that is left cannot be told from an empty tensor");
        out[open] = dim_div(g, all, others);
        others = dim_mul(g, others, out[open]);
    }
    if (dim_equal(g, others, all) || !dim_is_const(others) || !dim_is_const(all)) return true;
    return graph_fail(g, "%s has %lld elements, not %lld", shown(g, x), (long long)all, (long long)others);
}

burn_value *language_reshape(const burn_place *at, burn_value *x, int rank, const burn_dim *dims) {
    Graph *g = here(at, NULL);
    Dim d[MAX_RANK];
    if (!x) return NULL;
    if (rank > MAX_RANK) return graph_fail(g, "a tensor has at most %d dimensions", MAX_RANK);
    return left_over(g, x, rank, dims, d) ? b_reshape(g, x, rank, d) : NULL;
}

burn_value *language_expand(const burn_place *at, burn_value *x, int rank, const burn_dim *dims) {
    Graph *g = here(at, NULL);
    Dim d[MAX_RANK];
    if (!x) return NULL;
    if (rank > MAX_RANK || rank < x->type.rank)
        return graph_fail(g, "%s is expanded to %d to %d dimensions", shown(g, x), x->type.rank, MAX_RANK);
    for (int i = 0; i < rank; i++) {
        int from = i - (rank - x->type.rank);
        if (dims[i] == -1 && from >= 0) d[i] = x->type.dim[from];
        else if (!dim_in(dims[i], "a size", &d[i])) return NULL;
    }
    return b_expand(g, x, rank, d);
}

burn_value *language_flatten(const burn_place *at, burn_value *x, int64_t from, int64_t to) {
    Graph *g = here(at, NULL);
    int a, b, n = 0;
    Dim d[MAX_RANK];
    if (!x || !axis_in(x, from, &a) || !axis_in(x, to, &b)) return NULL;
    if (a > b) return graph_fail(g, "the axes %d to %d are none", a, b);
    for (int i = 0; i < a; i++) d[n++] = x->type.dim[i];
    d[n++] = type_product(g, &x->type, a, b + 1);
    for (int i = b + 1; i < x->type.rank; i++) d[n++] = x->type.dim[i];
    return b_reshape(g, x, n, d);
}

burn_value *language_permute(const burn_place *at, burn_value *x, int n, const int64_t *axes) {
    Graph *g = here(at, NULL);
    int perm[MAX_RANK];
    bool seen[MAX_RANK];
    if (!x || !axes_in(x, n, axes, seen, perm)) return NULL;
    if (n != x->type.rank) return graph_fail(g, "%d axes are named, %s has %d", n, shown(g, x), x->type.rank);
    return b_transpose(g, x, perm);
}

burn_value *language_transpose(const burn_place *at, burn_value *x, int64_t a, int64_t b) {
    Graph *g = here(at, NULL);
    int i, k;
    return x && axis_in(x, a, &i) && axis_in(x, b, &k) ? b_swap(g, x, i, k) : NULL;
}

burn_value *language_squeeze(const burn_place *at, burn_value *x, int n, const int64_t *axes) {
    Graph *g = here(at, NULL);
    int list[MAX_RANK], rank = 0;
    bool seen[MAX_RANK];
    Dim d[MAX_RANK];
    if (!x || !axes_in(x, n, axes, seen, list)) return NULL;
    for (int i = 0; i < x->type.rank; i++) {
        if (!seen[i]) d[rank++] = x->type.dim[i];
        else if (x->type.dim[i] != 1) return graph_fail(g, "axis %d of %s has not the size 1", i, shown(g, x));
    }
    return n ? b_reshape(g, x, rank, d) : graph_fail(g, "wants an axis: squeeze(x, 0)");
}

// A new axis of size 1, which may count from the end of those that there will be.
static Value *inserted(Graph *g, Value *x, int64_t axis) {
    int64_t i = axis < 0 ? axis + x->type.rank + 1 : axis;
    if (i < 0 || i > x->type.rank)
        return graph_fail(g, "there is no place %lld between the axes of %s", (long long)axis, shown(g, x));
    return x->type.rank == MAX_RANK ? graph_fail(g, "a tensor has at most %d dimensions", MAX_RANK) :
                                      b_insert(g, x, (int)i);
}

// Axes of what there will be, in any order.
burn_value *language_unsqueeze(const burn_place *at, burn_value *x, int n, const int64_t *axes) {
    Graph *g = here(at, NULL);
    bool added[MAX_RANK] = { false };
    if (!x) return NULL;
    int rank = x->type.rank + n;
    if (n < 1 || rank > MAX_RANK) return graph_fail(g, "%d axes more for %s", n, shown(g, x));
    for (int i = 0; i < n; i++) {
        int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
        if (axis < 0 || axis >= rank || added[axis])
            return graph_fail(g, "there is no place %lld between the axes of %s", (long long)axes[i], shown(g, x));
        added[axis] = true;
    }
    for (int i = 0; i < rank; i++)
        if (added[i]) x = b_insert(g, x, i);
    return x;
}

burn_value *language_movedim(const burn_place *at, burn_value *x, int64_t from, int64_t to) {
    Graph *g = here(at, NULL);
    int i, k;
    return x && axis_in(x, from, &i) && axis_in(x, to, &k) ? b_move_axes(g, x, i, 1, k) : NULL;
}

burn_value *language_narrow(const burn_place *at, burn_value *x, int64_t axis, burn_dim start, burn_dim length) {
    Graph *g = here(at, NULL);
    int i;
    Dim from, size;
    if (!x || !axis_in(x, axis, &i) || !dim_in(start, "the start", &from) || !dim_in(length, "the length", &size))
        return NULL;
    Dim whole = x->type.dim[i], end = dim_add(g, from, size);
    if (dim_is_const(whole) && dim_is_const(end) && end > whole)
        return graph_fail(g, "%lld elements from %lld on are not in axis %lld of %s", (long long)size, (long long)from,
            (long long)axis, shown(g, x));
    return b_part(g, x, i, from, size);
}

burn_value *language_paste(const burn_place *at, burn_value *x, burn_value *part, int64_t axis, burn_dim start) {
    Graph *g = here(at, NULL);
    int i;
    Dim from;
    if (!x || !part || !axis_in(x, axis, &i) || !dim_in(start, "the start", &from)) return NULL;
    return b_slice_scatter(g, x, b_cast(g, part, x->type.dtype), i, from);
}

// Elements start, start + step, ... before end of an axis of known size, which count from its end if negative.
typedef struct Range { int64_t start, step, count; } Range;
static Range range_in(int64_t size, int64_t start, int64_t end, int64_t step) {
    int64_t from = start < 0 ? max64(start + size, 0) : min64(start, size),
            to = end < 0 ? max64(end + size, 0) : min64(end, size);
    return (Range){ from, step, to > from ? ceil_div(to - from, step) : 0 };
}

burn_value *language_slice(
    const burn_place *at, burn_value *x, int64_t axis, int64_t start, int64_t end, int64_t step) {
    Graph *g = here(at, NULL);
    int i;
    int64_t starts[MAX_RANK] = { 0 }, steps[MAX_RANK];
    Dim sizes[MAX_RANK];
    if (!x || !axis_in(x, axis, &i)) return NULL;
    if (step < 1) return graph_fail(g, "the step is %lld; flip turns an axis round", (long long)step);
    Dim size = x->type.dim[i];
    if (!dim_is_const(size)) {
        Dim to = end == INT64_MAX ? size : end < 0 ? dim_sub(g, size, -end) : end;
        Dim from = start < 0 ? dim_sub(g, size, -start) : start;
        Value *part = b_part(g, x, i, from, dim_sub(g, to, from));
        return step == 1 ? part : graph_fail(g, "a step of %lld wants an axis of known size", (long long)step);
    }
    Range r = range_in(size, start, end, step);
    for (int k = 0; k < x->type.rank; k++) {
        steps[k] = k == i ? step : 1;
        sizes[k] = x->type.dim[k];
    }
    starts[i] = r.start;
    sizes[i] = r.count;
    return b_slice(g, x, starts, steps, sizes);
}

// The elements of `from` spread out to their places along the axis, zeros between them.
static Value *spread(Graph *g, const Value *x, Value *from, int axis, Range r) {
    int64_t lo[MAX_RANK] = { 0 }, hi[MAX_RANK] = { 0 }, between[MAX_RANK] = { 0 };
    if (from->type.rank != x->type.rank) return graph_fail(g, "%s does not fit in %s", shown(g, from), shown(g, x));
    for (int i = 0; i < x->type.rank; i++) {
        Dim wanted = i == axis ? r.count : x->type.dim[i];
        if (!dim_equal(g, from->type.dim[i], wanted))
            return graph_fail(
                g, "%s has not the sizes of the part of %s that it replaces", shown(g, from), shown(g, x));
    }
    lo[axis] = r.start;
    between[axis] = r.step - 1;
    hi[axis] = x->type.dim[axis] - r.start - (r.count - 1) * r.step - 1;
    return b_pad(g, b_cast(g, from, x->type.dtype), lo, hi, between, NULL);
}

// slice_scatter: x with a slice replaced; select_scatter: with one element of the axis
burn_value *language_replace(const burn_place *at, burn_value *x, int64_t axis, int64_t start, int64_t end,
    int64_t step, burn_arg from) {
    Graph *g = here(at, NULL);
    bool one = !strcmp(at->call, "select_scatter");
    int i;
    int64_t size;
    if (!x || (!from.is_number && !from.tensor) || !axis_in(x, axis, &i)
        || !number_in(dim_out(x->type.dim[i]), "the size of the axis", &size))
        return NULL;
    if (one && (start < -size || start >= size))
        return graph_fail(g, "there is no element %lld in axis %lld of %s", (long long)start, (long long)axis,
            shown(g, x));
    if (step < 1) return graph_fail(g, "the step is %lld", (long long)step);
    start = one && start < 0 ? start + size : start;
    Range r = range_in(size, start, one ? start + 1 : end, step);
    if (!r.count) return x;
    Value *put = from.is_number ? b_like(g, x, from.number) : one ? b_insert(g, from.tensor, i) : from.tensor;
    if (!from.is_number && put) put = spread(g, x, put, i, r);
    const char *inside = arena_printf(g->arena, "x >= %lld && x < %lld && (x - %lld) %% %lld == 0", (long long)r.start,
        (long long)(r.start + r.count * step), (long long)r.start, (long long)step);
    Dim along[1] = { size };
    Value *place = b_iota(g, 1, along, 0, DT_I64), *which = B_MAP(g, inside, "x", place);
    return put && which ? b_where(g, b_along(g, which, x->type.rank, i), put, x) : NULL;
}

// Parts of this size, every `step` elements: the elements at i * step + k.
burn_value *language_frames(const burn_place *at, burn_value *x, int64_t axis, int64_t size, int64_t step) {
    Graph *g = here(at, NULL);
    int i;
    if (!x || !axis_in(x, axis, &i)) return NULL;
    Dim whole = x->type.dim[i];
    if (size < 1 || step < 1 || (dim_is_const(whole) && whole < size))
        return graph_fail(g, "axis %lld of %s has no parts of %lld every %lld", (long long)axis, shown(g, x),
            (long long)size, (long long)step);
    Dim count = dim_add(g, dim_div(g, dim_sub(g, whole, size), step), 1), shape[2] = { count, size };
    Value *frame = b_iota(g, 2, shape, 0, DT_I64), *within = b_iota(g, 2, shape, 1, DT_I64);
    Value *place = B_MAP(g, arena_printf(g->arena, "x * %lld + y", (long long)step), "x y", frame, within);
    Value *y = b_gather(g, x, place, i);
    return y ? b_move_axes(g, y, i + 1, 1, y->type.rank - 1) : NULL;
}

burn_value *language_chosen(const burn_place *at, burn_value *x, int64_t axis, int64_t index) {
    Graph *g = here(at, NULL);
    int i;
    if (!x || !axis_in(x, axis, &i)) return NULL;
    Dim size = x->type.dim[i], from = index < 0 ? dim_sub(g, size, -index) : index;
    if (dim_is_const(size) && (index >= size || index < -size))
        return graph_fail(
            g, "there is no element %lld in axis %lld of %s", (long long)index, (long long)axis, shown(g, x));
    return b_remove(g, b_part(g, x, i, from, 1), i);
}

// chunk: so many parts; split: parts of this size. The last one may be smaller.
burn_value *language_chunk(const burn_place *at, burn_value *x, int64_t count, int64_t axis, int64_t which) {
    Graph *g = here(at, NULL);
    int i;
    int64_t size;
    if (!x || !axis_in(x, axis, &i) || !number_in(dim_out(x->type.dim[i]), "the size of the axis", &size)) return NULL;
    int64_t part = count < 1 ? 0 : at->call[0] == 'c' ? max64(ceil_div(size, count), 1) : count, from = which * part;
    if (part < 1 || which < 0 || (which && from >= size))
        return graph_fail(g, "axis %lld of %s has no part %lld of %lld%s", (long long)axis, shown(g, x),
            (long long)which, (long long)count, at->call[0] == 'c' ? "" : " elements each");
    return b_part(g, x, i, from, min64(part, size - from));
}

burn_value *language_split(
    const burn_place *at, burn_value *x, int64_t axis, int64_t which, int n, const burn_dim *sizes) {
    Graph *g = here(at, NULL);
    int i;
    Dim start = 0, end = 0, size;
    if (!x || !axis_in(x, axis, &i)) return NULL;
    if (which < 0 || which >= n) return graph_fail(g, "there is no part %lld of %d", (long long)which, n);
    for (int k = 0; k < n; k++) {
        if (!dim_in(sizes[k], "a size", &size)) return NULL;
        if (k == which) start = end;
        end = dim_add(g, end, size);
    }
    if (!dim_equal(g, end, x->type.dim[i]))
        return graph_fail(g, "the sizes add up to %s, axis %lld of %s has others", dim_text(g->arena, g, end),
            (long long)axis, shown(g, x));
    return dim_in(sizes[which], "a size", &size) ? b_part(g, x, i, start, size) : NULL;
}

burn_value *language_cat(const burn_place *at, int64_t axis, int n, burn_value *const *x) {
    Graph *g = here(at, NULL);
    int i;
    bool stacks = !strcmp(at->call, "stack");
    burn_arg *args = NEW_ARRAY(g->arena, burn_arg, n + 1);
    Value **in = NEW_ARRAY(g->arena, Value *, n + 1);
    for (int k = 0; k < n; k++) args[k] = (burn_arg){ .tensor = x[k] };
    if (n < 1 || !operands(g, n, args, in)) return NULL;
    for (int k = 0; k < n && stacks; k++)
        if (!(in[k] = inserted(g, in[k], axis))) return NULL;
    return in[0] && axis_in(in[0], axis, &i) ? b_concat(g, i, n, in) : NULL;
}

burn_value *language_flip(const burn_place *at, burn_value *x, int n, const int64_t *axes) {
    Graph *g = here(at, NULL);
    int list[MAX_RANK];
    bool seen[MAX_RANK];
    return x && axes_in(x, n, axes, seen, list) ? b_flip(g, x, seen) : NULL;
}

// repeat names all axes, tile the last ones.
burn_value *language_repeat(const burn_place *at, burn_value *x, int n, const int64_t *times) {
    Graph *g = here(at, NULL);
    if (!x) return NULL;
    int skipped = at->call[0] == 't' && n < x->type.rank ? x->type.rank - n : 0;
    if (n + skipped < x->type.rank || n > MAX_RANK)
        return graph_fail(g, "%d numbers for the axes of %s", n, shown(g, x));
    while (x && x->type.rank < n) x = b_insert(g, x, 0);
    for (int i = 0; i < n; i++) {
        if (times[i] < 1) return graph_fail(g, "a tensor is repeated %lld times", (long long)times[i]);
        if (times[i] > 1) x = b_repeat(g, x, skipped + i, times[i]);
    }
    return x;
}

// Each element so often, side by side.
burn_value *language_interleave(const burn_place *at, burn_value *x, int64_t times, int64_t axis) {
    Graph *g = here(at, NULL);
    int i;
    Dim wide[MAX_RANK + 1], merged[MAX_RANK];
    if (!x || !axis_in(x, axis, &i)) return NULL;
    if (times < 1) return graph_fail(g, "a tensor is repeated %lld times", (long long)times);
    if (x->type.rank == MAX_RANK) return graph_fail(g, "%s has too many axes", shown(g, x));
    Value *y = b_insert(g, x, i + 1);
    memcpy(wide, y->type.dim, sizeof *wide * (size_t)y->type.rank);
    memcpy(merged, x->type.dim, sizeof merged);
    wide[i + 1] = times;
    merged[i] = dim_mul(g, merged[i], times);
    return b_reshape(g, b_expand(g, y, y->type.rank, wide), x->type.rank, merged);
}

burn_value *language_pad(const burn_place *at, burn_value *x, const struct burn_pad *o) {
    static const char *const modes[][2] = { { "constant", "constant" }, { "reflect", "reflect" },
        { "replicate", "edge" }, { "circular", "wrap" } };
    Graph *g = here(at, NULL);
    int64_t lo[MAX_RANK] = { 0 }, hi[MAX_RANK] = { 0 };
    size_t mode = 0;
    if (!x) return NULL;
    while (o->mode && mode < COUNT(modes) && strcmp(o->mode, modes[mode][0])) mode++;
    if (mode == COUNT(modes)) return graph_fail(g, "there is no mode \"%s\"; there are constant, reflect, replicate, "
        "circular", o->mode);
    for (int i = 0; i < 4; i++) {
        if (!o->pads[2 * i] && !o->pads[2 * i + 1]) continue;
        if (i >= x->type.rank) return graph_fail(g, "pads of %d axes, %s", i + 1, shown(g, x));
        lo[x->type.rank - 1 - i] = o->pads[2 * i];
        hi[x->type.rank - 1 - i] = o->pads[2 * i + 1];
    }
    Value *fill = mode == 0 && o->value != 0 ? b_like(g, x, o->value) : NULL;
    return b_pad_mode(g, x, lo, hi, modes[mode][1], fill);
}

burn_value *language_triangle(const burn_place *at, burn_value *x, int64_t diagonal) {
    Graph *g = here(at, NULL);
    if (!x) return NULL;
    if (x->type.rank < 2) return graph_fail(g, "%s is no matrix", shown(g, x));
    Value *k = diagonal ? b_scalar(g, DT_I64, (double)diagonal) : NULL;
    return b_triangle(g, x, k, !strcmp(at->call, "triu"));
}
