// SPDX-License-Identifier: MIT OR Apache-2.0
// Calls that put elements at computed places, or take them from there: scatter, roll, diagonals, patches, grids.
//
// In: tensors, indices, axes that may count from the end. Out: one value, built by build/.
#include "import/describe/describe.h"

#include <string.h>

// ONNX's word for PyTorch's of scatter_reduce; NULL after a diagnostic.
static const char *reduction(Graph *g, const char *how) {
    static const char *const rows[][2] = { { "none", "none" }, { "sum", "add" }, { "prod", "mul" }, { "amin", "min" },
        { "amax", "max" } };
    for (size_t i = 0; i < COUNT(rows); i++)
        if (!strcmp(how, rows[i][0])) return rows[i][1];
    graph_fail(g, "there is no reduction \"%s\"; there are sum, prod, amin, amax", how);
    return NULL;
}

static bool is_index(Graph *g, const Value *index) {
    return dtype_is_int(index->type.dtype) || graph_fail(g, "the indices are %s, not integers", shown(g, index));
}

// The elements to put: a tensor as it is in x's type, a number for each index.
static Value *source(Graph *g, const Value *x, const Value *index, burn_arg arg) {
    if (!arg.is_number) return arg.tensor ? b_cast(g, arg.tensor, x->type.dtype) : NULL;
    return b_filled(g, x->type.dtype, arg.number, index->type.rank, index->type.dim);
}

burn_value *language_scatter(
    const burn_place *at, burn_value *x, int64_t axis, burn_value *index, burn_arg from, const char *how) {
    Graph *g = here(at, NULL);
    int i;
    if (!x || !index || !axis_in(x, axis, &i) || !is_index(g, index)) return NULL;
    const char *word = reduction(g, how);
    Value *put = source(g, x, index, from);
    return word && put ? b_scatter_elements(g, x, index, put, i, word) : NULL;
}

burn_value *language_scatter_nd(
    const burn_place *at, burn_value *x, burn_value *index, burn_value *from, const char *how) {
    Graph *g = here(at, NULL);
    if (!x || !index || !from || !is_index(g, index)) return NULL;
    const char *word = reduction(g, how);
    return word ? b_scatter_nd(g, x, index, b_cast(g, from, x->type.dtype), word) : NULL;
}

burn_value *language_gather_nd(const burn_place *at, burn_value *x, burn_value *index) {
    Graph *g = here(at, NULL);
    if (!x || !index || !is_index(g, index)) return NULL;
    return b_op(g, OP_GatherND, 2, (Value *[]){ x, index });
}

// index_add, index_copy: whole parts along an axis
burn_value *language_index_put(
    const burn_place *at, burn_value *x, int64_t axis, burn_value *index, burn_value *from) {
    Graph *g = here(at, NULL);
    int i;
    if (!x || !index || !from || !axis_in(x, axis, &i) || !is_index(g, index)) return NULL;
    if (index->type.rank != 1) return graph_fail(g, "the indices are a list, not %s", shown(g, index));
    const char *word = strstr(at->call, "add") ? "add" : "none";
    Value *first = b_move_axes(g, x, i, 1, 0), *put = b_move_axes(g, b_cast(g, from, x->type.dtype), i, 1, 0);
    Value *made = b_scatter_nd(g, first, b_insert(g, index, 1), put, word);
    return b_move_axes(g, made, 0, 1, i);
}

burn_value *language_index_fill(
    const burn_place *at, burn_value *x, int64_t axis, burn_value *index, double value) {
    Graph *g = here(at, NULL);
    Dim dims[MAX_RANK];
    int i;
    if (!x || !index || !axis_in(x, axis, &i)) return NULL;
    if (index->type.rank != 1) return graph_fail(g, "the indices are a list, not %s", shown(g, index));
    memcpy(dims, x->type.dim, sizeof dims);
    dims[i] = index->type.dim[0];
    return language_index_put(at, x, axis, index, b_filled(g, x->type.dtype, value, x->type.rank, dims));
}

burn_value *language_roll(const burn_place *at, burn_value *x, int64_t shift, int64_t axis) {
    Graph *g = here(at, NULL);
    int i;
    if (!x || !axis_in(x, axis, &i)) return NULL;
    Dim size = x->type.dim[i];
    if (!dim_is_const(size)) {                          // of so many elements that the program has at least the shift
        Dim last = shift < 0 ? dim_sub(g, size, -shift) : shift, rest = dim_sub(g, size, last);
        Value *end = b_part(g, x, i, rest, last), *begin = b_part(g, x, i, 0, rest);
        return b_concat(g, i, 2, (Value *[]){ end, begin });
    }
    int64_t last = size ? (shift % size + size) % size : 0;
    if (!last) return x;
    Value *end = b_part(g, x, i, size - last, last), *begin = b_part(g, x, i, 0, size - last);
    return b_concat(g, i, 2, (Value *[]){ end, begin });
}

// Elements i, i + offset of the last two axes: a view of them in one axis that steps over columns + 1 elements.
burn_value *language_diagonal(const burn_place *at, burn_value *x, int64_t offset) {
    Graph *g = here(at, NULL);
    int64_t rows, columns, starts[MAX_RANK] = { 0 }, steps[MAX_RANK];
    Dim dims[MAX_RANK];
    if (!x) return NULL;
    int rank = x->type.rank - 1;
    if (rank < 1) return graph_fail(g, "%s is no matrix", shown(g, x));
    if (!number_in(dim_out(x->type.dim[rank - 1]), "the number of rows", &rows)
        || !number_in(dim_out(x->type.dim[rank]), "the number of columns", &columns))
        return NULL;
    int64_t count = min64(rows + min64(offset, 0), columns - max64(offset, 0));
    if (count < 1) return graph_fail(g, "%s has no diagonal %lld", shown(g, x), (long long)offset);
    memcpy(dims, x->type.dim, sizeof dims);
    dims[rank - 1] = rows * columns;
    x = b_reshape(g, x, rank, dims);
    for (int i = 0; i < rank; i++) steps[i] = 1;
    dims[rank - 1] = count;
    starts[rank - 1] = offset < 0 ? -offset * columns : offset;
    steps[rank - 1] = columns + 1;
    return b_slice(g, x, starts, steps, dims);
}

burn_value *language_diag_embed(const burn_place *at, burn_value *x) {
    Graph *g = here(at, NULL);
    if (!x) return NULL;
    int rank = x->type.rank;
    if (rank < 1 || rank == MAX_RANK) return graph_fail(g, "%s is no list", shown(g, x));
    Value *is = diagonal_mask(g, x->type.dim[rank - 1], x->type.dim[rank - 1], '=', 0);
    Value *column = b_insert(g, x, rank);
    return b_where(g, is, column, b_like(g, x, 0));
}

// ---------------------------------------------------------------- images

// The patches under each position of a kernel, as columns: [n, c * taps, places]
static Value *unfolded(Graph *g, Value *x, const Window *w) {
    int64_t lo[MAX_RANK] = { 0, 0, w->pads[0], w->pads[1] }, steps[MAX_RANK] = { 1, 1, w->strides[0], w->strides[1] };
    int64_t taps = w->kernel[0] * w->kernel[1];
    Dim sizes[MAX_RANK];
    if (!(x = b_pad(g, x, lo, lo, (int64_t[MAX_RANK]){ 0 }, NULL))) return NULL;
    Value **part = NEW_ARRAY(g->arena, Value *, taps);
    memcpy(sizes, x->type.dim, sizeof sizes);
    for (int i = 0; i < 2; i++) {
        int64_t rest = x->type.dim[2 + i] - window_extent(w, i);
        if (rest < 0) return graph_fail(g, "the kernel is larger than the padded image");
        sizes[2 + i] = rest / w->strides[i] + 1;
    }
    for (int64_t tap = 0; tap < taps; tap++) {
        int64_t starts[MAX_RANK] = { 0, 0, tap / w->kernel[1] * w->dilations[0], tap % w->kernel[1] * w->dilations[1] };
        part[tap] = b_slice(g, x, starts, steps, sizes);
    }
    Dim channels = dim_mul(g, sizes[1], taps), flat[3] = { sizes[0], channels, sizes[2] * sizes[3] };
    return b_reshape(g, b_stack(g, 2, (int)taps, part), 3, flat);
}

burn_value *language_fold(const burn_place *at, burn_value *x, int64_t size, const struct burn_pool *o) {
    Graph *g = here(at, NULL);
    bool back = at->call[0] == 'f';
    Window w = { .rank = 2 };
    int64_t to[2];
    if (!x || !sizes_in(o->kernel, 2, 0, "the kernel", w.kernel) || !sizes_in(o->stride, 2, 1, "the stride", w.strides)
        || !sizes_in(o->dilation, 2, 1, "the dilation", w.dilations)
        || !sizes_in(o->padding, 2, 0, "the padding", w.pads) || !sizes_in(size, 2, 1, "the size", to))
        return NULL;
    if (w.kernel[0] < 1 || w.kernel[1] < 1) return graph_fail(g, "wants a kernel");
    memcpy(w.pads + 2, w.pads, 2 * sizeof *w.pads);
    if (x->type.rank != (back ? 3 : 4))
        return graph_fail(g, "wants %s, not %s", back ? "[batch, columns, places]" : "[batch, channels, height, width]",
            shown(g, x));
    if (!back) return b_known_size(g, x, 2, at->call) && b_known_size(g, x, 3, at->call) ? unfolded(g, x, &w) : NULL;
    return b_static(g, x, at->call) ? b_col2im(g, x, to, &w) : NULL;
}

burn_value *language_grid_sample(
    const burn_place *at, burn_value *x, burn_value *grid, const struct burn_sample *o) {
    static const char *const modes[] = { "nearest", "bilinear", "bicubic" };
    static const char *const outsides[] = { "zeros", "border", "reflection" };
    Graph *g = here(at, NULL);
    Sampler s;
    size_t mode = o->mode ? 0 : 1, outside = 0;
    if (!x || !grid || !b_sampler(g, &s, x)) return NULL;
    while (o->mode && mode < COUNT(modes) && strcmp(modes[mode], o->mode)) mode++;
    while (o->padding_mode && outside < COUNT(outsides) && strcmp(outsides[outside], o->padding_mode)) outside++;
    if (mode == COUNT(modes))
        return graph_fail(g, "there is no mode \"%s\"; there are nearest, bilinear, bicubic", o->mode);
    if (outside == COUNT(outsides))
        return graph_fail(g, "there is no padding mode \"%s\"; there are zeros, border, reflection", o->padding_mode);
    s.mode = mode == 0 ? SAMPLE_NEAREST : mode == 1 ? SAMPLE_LINEAR : SAMPLE_CUBIC;
    s.outside = outside == 0 ? SAMPLE_ZEROS : outside == 1 ? SAMPLE_BORDER : SAMPLE_REFLECTION;
    s.align = o->align_corners == 1;
    return b_grid_sample(g, &s, x, grid);
}

burn_value *language_affine_grid(const burn_place *at, burn_value *theta, int64_t size, bool align) {
    Graph *g = here(at, NULL);
    int64_t to[3];
    if (!theta) return NULL;
    int k = theta->type.rank == 3 && theta->type.dim[1] == 3 ? 3 : 2;
    if (theta->type.rank != 3 || theta->type.dim[1] != k || theta->type.dim[2] != k + 1)
        return graph_fail(g, "wants matrices [batch, 2, 3] or [batch, 3, 4], not %s", shown(g, theta));
    return sizes_in(size, k, 1, "the size", to) ? b_affine_grid(g, theta, k, to, align) : NULL;
}
