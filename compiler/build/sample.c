// SPDX-License-Identifier: MIT OR Apache-2.0
// Builders that read images at computed places.
//
// In: x [b, c, space...], its sizes constant or the running program's. Out: gathers and maps. The idea: space is one
// flat axis, x [b, c, space], places are one coordinate per spatial axis, [b, p] each; interpolation is a sum over the
// corners around a place of weight times element, 2 corners per axis (linear) or 4 (cubic).
#include "build/build.h"


// The size of a spatial axis as a scalar of v's type.
Value *b_size_like(Graph *g, const Sampler *s, int axis, const Value *v) {
    return v ? b_cast(g, b_number(g, s->size[axis]), v->type.dtype) : NULL;
}

// Folds v back between the borders of an axis: a triangle wave.
static Value *reflect(Graph *g, const Sampler *s, int axis, Value *v) {
    Value *size = b_size_like(g, s, axis, v);
    if (s->align)
        return B_MAP(g, "n > 1 ? x < n - 1 ? x : 2 * (n - 1) - x : 0", "x n",
            B_MAP(g, "n > 1 ? floormod(x, 2 * (n - 1)) : 0", "x n", v, size), size);
    return B_MAP(
        g, "(x < n ? x : 2 * n - x) - 0.5", "x n", B_MAP(g, "floormod(x + 0.5, 2 * n)", "x n", v, size), size);
}

// An index along one axis (a whole number, in floats) brought inside; *valid collects where it was there already, for
// SAMPLE_ZEROS.
static Value *inside(Graph *g, const Sampler *s, Value *v, int axis, Value **valid) {
    Value *size = b_size_like(g, s, axis, v);
    if (s->outside == SAMPLE_REFLECTION) v = B_MAP(g, "trunc(x)", "x", reflect(g, s, axis, v));
    if (s->outside == SAMPLE_ZEROS) {
        Value *ok = B_MAP(g, "x >= 0 && x <= n - 1", "x n", v, size);
        *valid = *valid ? b_binary(g, OP_And, *valid, ok) : ok;
    }
    return B_MAP(g, "min(max(x, 0), n - 1)", "x n", v, size);
}

// Keys' cubic weights (a = -0.75) of the corners -1, 0, 1, 2 around a place with the fraction x.
static const char *const cubic_weights[] = {
    "((-0.75 * (x + 1) + 3.75) * (x + 1) - 6) * (x + 1) + 3",
    "(1.25 * x - 2.25) * x * x + 1",
    "(1.25 * (1 - x) - 2.25) * (1 - x) * (1 - x) + 1",
    "((-0.75 * (2 - x) + 3.75) * (2 - x) - 6) * (2 - x) + 3",
};

static Value *corner_weight(Graph *g, Interpolation mode, Value *fraction, int corner) {
    if (mode == SAMPLE_NEAREST) return NULL;
    if (mode == SAMPLE_LINEAR) return corner ? fraction : B_MAP(g, "1 - x", "x", fraction);
    return B_MAP(g, cubic_weights[corner], "x", fraction);
}

// Element at whole coordinates: x [b, c, space], at [b, p] -> [b, c, p].
static Value *pixels(Graph *g, const Sampler *s, Value *x, Value *const *at) {
    Value *flat = NULL, *valid = NULL;
    for (int i = 0; i < s->space; i++) {
        Value *v = inside(g, s, at[i], i, &valid);
        v = b_cast(g, v, DT_I64);
        flat = flat ? B_MAP(g, "x * n + y", "x n y", flat, b_number(g, s->size[i]), v) : v;
    }
    if (!flat) return NULL;
    Dim dims[3] = { x->type.dim[0], x->type.dim[1], flat->type.dim[1] };
    Value *v = b_gather_elements(g, x, b_expand(g, b_insert(g, flat, 1), 3, dims), 2);
    if (!valid || !v) return v;
    Value *inside = b_insert(g, valid, 1);
    return b_where(g, inside, v, b_like(g, v, 0));
}

// Interpolates x [b, c, space] at the places at[axis] [b, p] -> [b, c, p].
Value *b_sample(Graph *g, const Sampler *s, Value *x, Value *const *at) {
    int per = s->mode == SAMPLE_NEAREST ? 1 : s->mode == SAMPLE_LINEAR ? 2 : 4, corners = 1;
    if (!x) return NULL;
    Value *base[MAX_SPACE], *fraction[MAX_SPACE], *sum = NULL;
    for (int i = 0; i < s->space; i++) {
        base[i] = b_unary(g, s->mode == SAMPLE_NEAREST ? OP_Round : OP_Floor, at[i]);
        fraction[i] = s->mode == SAMPLE_NEAREST ? NULL : b_binary(g, OP_Sub, at[i], base[i]);
        corners *= per;
    }
    for (int c = 0; c < corners; c++) {
        Value *where[MAX_SPACE], *weight = NULL;
        for (int i = s->space - 1, rest = c; i >= 0; i--, rest /= per) {
            int corner = rest % per, shift = s->mode == SAMPLE_CUBIC ? corner - 1 : corner;
            where[i] = shift ?
                B_MAP(g, arena_printf(g->arena, "x + %.17g + %.17g", (double)shift, 0.0), "x", base[i]) :
                base[i];
            Value *w = corner_weight(g, s->mode, fraction[i], corner);
            weight = weight && w ? b_binary(g, OP_Mul, weight, w) : w ? w : weight;
        }
        Value *v = pixels(g, s, x, where);
        if (weight && v) v = b_binary(g, OP_Mul, v, b_cast(g, b_insert(g, weight, 1), v->type.dtype));
        if (!v) return NULL;
        sum = sum ? b_binary(g, s->combine, sum, v) : v;
    }
    return sum;
}

Value *b_flat_space(Graph *g, Value *x) {
    if (!x) return NULL;
    return b_reshape(g, x, 3, (Dim[]){ x->type.dim[0], x->type.dim[1], type_product(g, &x->type, 2, x->type.rank) });
}

bool b_sampler(Graph *g, Sampler *s, const Value *x) {
    *s = (Sampler){ .space = x->type.rank - 2, .mode = SAMPLE_LINEAR, .outside = SAMPLE_ZEROS, .combine = OP_Add };
    if (s->space < 1 || s->space > MAX_SPACE)
        return graph_fail(g, "%d spatial dimensions are not supported", s->space), false;
    for (int i = 0; i < s->space; i++) {
        s->size[i] = x->type.dim[2 + i];
        if (s->size[i] == 0) return graph_fail(g, "the image is empty"), false;
    }
    return true;
}

// ---------------------------------------------------------------- grids

// From -1..1 to elements; places beyond the borders move inside.
static Value *grid_place(Graph *g, const Sampler *s, Value *v, int axis) {
    Value *size = b_size_like(g, s, axis, v);
    v = B_MAP(g, s->align ? "(x + 1) / 2 * (n - 1)" : "((x + 1) * n - 1) / 2", "x n", v, size);
    if (s->mode == SAMPLE_NEAREST) v = b_unary(g, OP_Round, v);
    if (s->outside == SAMPLE_ZEROS) return v;
    Value *moved = s->outside == SAMPLE_REFLECTION ? reflect(g, s, axis, v) :
                                              B_MAP(g, "min(max(x, 0), n - 1)", "x n", v, size);
    return B_MAP(
        g, s->align ? "x < 0 || x > n - 1 ? y : x" : "x < -0.5 || x > n - 0.5 ? y : x", "x n y", v, size, moved);
}

Value *b_grid_sample(Graph *g, const Sampler *s, Value *x, Value *grid) {
    if (!x || !grid) return NULL;
    const Type t = grid->type;
    Value *at[MAX_SPACE];
    bool open = t.rank > 0 && !dim_is_const(t.dim[t.rank - 1]);
    if (t.rank != s->space + 2 || (!open && t.dim[t.rank - 1] != s->space)
        || (t.dim[0] != x->type.dim[0] && dim_is_const(t.dim[0]) && dim_is_const(x->type.dim[0])))
        return graph_fail(g, "the grid must be [batch, places..., spatial dimensions]");
    if (open) dim_require(g, t.dim[t.rank - 1], s->space);
    Dim places = type_product(g, &t, 1, t.rank - 1), dims[MAX_RANK] = { x->type.dim[0], x->type.dim[1] };
    grid = b_reshape(g, b_cast(g, grid, dtype_wide(t.dtype)), 3, (Dim[]){ t.dim[0], places, s->space });
    for (int i = 0; i < s->space; i++)
        at[i] = grid_place(g, s, b_remove(g, b_part(g, grid, 2, s->space - 1 - i, 1), 2), i);
    for (int i = 0; i < s->space; i++) dims[2 + i] = t.dim[1 + i];
    return b_reshape(g, b_sample(g, s, b_flat_space(g, x), at), s->space + 2, dims);
}

// theta times the coordinates (..., y, x, 1) [places, k + 1] -> [batch, space..., k].
static Value *affine_places(Graph *g, Value *theta, Value *grid, int k, const Dim *space) {
    Dim dims[MAX_RANK] = { theta->type.dim[0] };
    for (int i = 0; i < k; i++) dims[1 + i] = space[i];
    dims[1 + k] = k;
    return b_reshape(g, b_matmul(g, grid, b_swap(g, theta, 1, 2)), k + 2, dims);
}

Value *b_affine_grid(Graph *g, Value *theta, int k, const int64_t *size, bool align) {
    int64_t places = 1;
    for (int i = 0; i < k; i++)
        if (__builtin_mul_overflow(places, size[i], &places)) return graph_fail(g, "the grid is too large");
    if (!b_table(g, (double)places * (k + 1))) return b_affine_grid_run(g, theta, k, size, align);
    double *base = NEW_ARRAY(g->arena, double, places * (k + 1));
    for (int64_t p = 0; p < places; p++) {
        int64_t rest = p;
        for (int i = k - 1; i >= 0; i--) {
            double length = (double)size[i], at = (double)(rest % size[i]);
            base[p * (k + 1) + (k - 1 - i)] = align ? (length > 1 ? 2 * at / (length - 1) - 1 : -1) :
                                                      (2 * at + 1) / length - 1;
            rest /= size[i];
        }
        base[p * (k + 1) + k] = 1;
    }
    Value *grid = b_floats(g, theta->type.dtype, 2, (Dim[]){ places, k + 1 }, base);
    return affine_places(g, theta, grid, k, size);
}

// The coordinates are computed, too.
Value *b_affine_grid_run(Graph *g, Value *theta, int k, const Dim *size, bool align) {
    Value *column[MAX_SPACE + 1];
    Dim places = 1;
    for (int i = 0; i < k; i++) places = dim_mul(g, places, size[i]);
    for (int i = 0; i < k; i++) {
        Value *length = b_cast(g, b_number(g, size[i]), DT_F64);
        Value *at = B_MAP(g, align ? "y > 1 ? 2 * x / (y - 1) - 1 : -1" : "(2 * x + 1) / y - 1", "x y",
            b_iota(g, k, size, i, DT_F64), length);
        column[k - 1 - i] = b_reshape(g, at, 2, (Dim[]){ places, 1 });
    }
    column[k] = b_filled(g, DT_F64, 1, 2, (Dim[]){ places, 1 });
    return affine_places(g, theta, b_cast(g, b_concat(g, 1, k + 1, column), theta->type.dtype), k, size);
}
