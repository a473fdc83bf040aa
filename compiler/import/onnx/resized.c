// SPDX-License-Identifier: MIT OR Apache-2.0
// Shape constants of a model whose inputs have other sizes than the file gives them (--shape): the literal batch of a
// Reshape, the sizes of a Resize, states that are one item long.
//
//   file: x f32[1,512,7,7] -> Reshape [1,25088]      now: x f32[batch,512,7,7] -> Reshape [batch,25088]
//
// In: a node before its builder, and the inputs that it had when the model was built as the file has it (shapes.c).
// Out: the same node with inputs for the sizes that it has now. The idea: what a constant meant is told by what it was
// equal to. Where it can have meant several things, a diagnostic says so.
#include "import/onnx/names.h"

#include <string.h>

typedef struct Before { Graph *g; int n; Value **in; } Before;

// A node is known by its place in the file and the calls that it stands in.
static const char *node_key(const OnnxNode *n) {
    Text t;
    text_init(&t, n->import->arena);
    text_printf(&t, "%p", (const void *)n->def);
    for (const Inlined *c = n->scope->call; c; c = c->up) text_printf(&t, " %p", (const void *)c->node);
    return t.at;
}

static void keep(const OnnxNode *n) {
    Before b = { .g = n->g, .n = n->n_in, .in = arena_copy(n->import->arena, n->in, sizeof *n->in * (size_t)n->n_in) };
    strmap_put(n->import->inputs, node_key(n), arena_copy(n->import->arena, &b, sizeof b));
}

// ---------------------------------------------------------------- sizes then and now

static bool is_tensor(const Value *v) { return v && v != &names_absent && !onnx_is_sequence(v); }

// -1: not known
static int64_t size_was(const Before *b, int i, int axis) {
    Dim d = b->in[i]->type.dim[axis];
    return dim_is_const(d) ? d : -1;
}

static bool moved(const OnnxNode *n, const Before *b, int i, int axis) {
    int64_t was = size_was(b, i, axis);
    return was >= 0 && n->in[i]->type.dim[axis] != was;
}

static bool comparable(const OnnxNode *n, const Before *b, int i) {
    return i < n->n_in && i < b->n && is_tensor(n->in[i]) && is_tensor(b->in[i])
        && n->in[i]->type.rank == b->in[i]->type.rank;
}

// Remembers what sizes became, for nodes that meet the old ones as numbers alone.
static bool any_moved(OnnxNode *n, const Before *b) {
    Import *im = n->import;
    bool any = false;
    for (int i = 0; i < n->n_in; i++)
        for (int k = 0; comparable(n, b, i) && k < n->in[i]->type.rank; k++) {
            if (!moved(n, b, i, k)) continue;
            any = true;
            Resized r = { n->in[i]->type.rank, k, size_was(b, i, k), n->in[i]->type.dim[k] };
            bool known = r.was < 2;
            for (int j = 0; j < im->resized.n && !known; j++) {
                const Resized *other = &im->resized.at[j];
                known = other->rank == r.rank && other->axis == k && other->was == r.was;
            }
            if (!known) VEC_PUSH(im->arena, im->resized, r);
        }
    return any;
}

// Numbers that the model has at input i, as it had: false when they are computed, or differ already.
static bool literal(const OnnxNode *n, const Before *b, int i, int64_t *out, int *count) {
    DimValue was[MAX_DIM_VALUES], now[MAX_DIM_VALUES];
    int n_was;
    if (!comparable(n, b, i) || !onnx_dim_values(b->g, b->in[i], was, &n_was)
        || !onnx_dim_values(n->g, n->in[i], now, count) || *count != n_was)
        return false;
    for (int k = 0; k < *count; k++) {
        if (was[k].symbolic || now[k].symbolic || was[k].v != now[k].v) return false;
        out[k] = was[k].v;
    }
    return true;
}

// ---------------------------------------------------------------- reshape

// to: the size of the result that it went into; -1: none
typedef struct Part { Dim now; int64_t was; int to; } Part;
// Consecutive dimensions of the input, and those of the result that have as many elements.
typedef struct Group {
    Part part[MAX_RANK + MAX_DIM_VALUES]; int n;
    int first, n_out;
} Group;
// was: the result's sizes in the file; at `open` the file leaves it to the others (-1: nowhere)
typedef struct Wanted { int n, open; int64_t was[MAX_DIM_VALUES]; Dim now[MAX_RANK]; } Wanted;

static bool grown(const Part *p) { return p->now != p->was; }

// A dimension, or those that it was made of.
static void add_part(const Import *im, Graph *g, Group *to, Dim now, int64_t was) {
    for (int i = im->merges.n - 1; i >= 0 && now != was; i--) {
        const Merge *m = &im->merges.at[i];
        int64_t product = 1;
        for (int k = 0; k < m->n; k++) product *= m->was[k];
        if (product != was || !dim_equal(g, m->whole, now) || to->n + m->n >= (int)COUNT(to->part)) continue;
        for (int k = 0; k < m->n; k++) to->part[to->n++] = (Part){ m->part[k], m->was[k], -1 };
        return;
    }
    to->part[to->n++] = (Part){ now, was, -1 };
}

// What the size `to` was made of; rest: a number besides the parts that went into it.
static void remember(OnnxNode *n, Dim whole, const Group *g, int to, int64_t rest) {
    Arena *a = n->import->arena;
    Merge m = { .whole = whole };
    Dim *part = NEW_ARRAY(a, Dim, g->n + 1);
    int64_t *was = NEW_ARRAY(a, int64_t, g->n + 1);
    bool any = false;
    for (int i = 0; i < g->n; i++) {
        if (g->part[i].to != to) continue;
        part[m.n] = g->part[i].now;
        was[m.n++] = g->part[i].was;
        any = any || grown(&g->part[i]);
    }
    if (rest > 1) part[m.n] = was[m.n] = rest;
    m.n += rest > 1;
    m.part = part;
    m.was = was;
    if (any && m.n > 1) VEC_PUSH(a, n->import->merges, m);
}

// Sizes of the result that are sizes of the input, those that have changed first. How many remain open?
static int take_equal(Group *g, Wanted *t, bool *done) {
    int open = 0;
    for (int change = 1; change >= 0; change--)
        for (int j = g->first; j < g->first + g->n_out; j++)
            for (int i = 0; i < g->n && !done[j]; i++) {
                Part *p = &g->part[i];
                if (p->to >= 0 || p->was != t->was[j] || grown(p) != (change == 1)) continue;
                p->to = j;
                done[j] = true;
            }
    for (int j = g->first; j < g->first + g->n_out; j++) open += !done[j];
    return open;
}

// Which open size of the result a changed one of the input is part of; -1: not to be told.
static int holder(const Group *g, const Wanted *t, const bool *done, const int64_t *rest, const Part *p) {
    int found = -1;
    if (t->open >= g->first && t->open < g->first + g->n_out && !done[t->open] && rest[t->open] % p->was == 0)
        return t->open;
    bool outermost = p == g->part || (p == g->part + 1 && g->part->was == 1);
    for (int j = g->first; j < g->first + g->n_out; j++) {
        if (done[j] || rest[j] % p->was) continue;
        if (found >= 0) return outermost ? found : -1;
        found = j;
    }
    return found;
}

// Says of each part which size of the result it goes into; rest: what is left of their numbers.
static bool place_parts(Group *g, const Wanted *t, bool *done, int open, bool ones, int64_t *rest) {
    for (int i = 0; i < g->n; i++) {
        Part *p = &g->part[i];
        if (p->to >= 0 || (!grown(p) && open != 1)) continue;
        int only = g->first;
        while (open == 1 && done[only]) only++;
        int j = open == 1 ? only : p->was > 1 ? holder(g, t, done, rest, p) : g->n_out && !ones ? g->first : -1;
        if (j < 0) return false;
        p->to = j;
        if (!done[j]) rest[j] /= p->was;
    }
    return true;
}

static bool fit_group(OnnxNode *n, Group *g, Wanted *t, bool ones) {
    bool done[MAX_RANK] = { false };
    int64_t rest[MAX_RANK];
    int open = take_equal(g, t, done);
    for (int j = g->first; j < g->first + g->n_out; j++) rest[j] = done[j] ? 1 : t->was[j];
    if (!place_parts(g, t, done, open, ones, rest)) return false;
    for (int j = g->first; j < g->first + g->n_out; j++) {
        t->now[j] = rest[j];
        for (int i = 0; i < g->n; i++)
            if (g->part[i].to == j) t->now[j] = dim_mul(n->g, t->now[j], g->part[i].now);
        remember(n, t->now[j], g, j, rest[j]);
    }
    return true;
}

// The next group begins at sizes i of the input and j of the result. Groups are as small as can be; ones that are left
// over at the end go with the last. False: the sizes do not come to the same.
static bool next_group(const Before *b, const Wanted *t, int *i, int *j) {
    int rank = b->in[0]->type.rank;
    int64_t in = size_was(b, 0, (*i)++), out = t->was[(*j)++];
    while (in != out) {
        if (in < out ? *i == rank : *j == t->n) return false;
        if (in < out) in *= size_was(b, 0, (*i)++);
        else out *= t->was[(*j)++];
    }
    while (*j == t->n && *i < rank) (*i)++;
    while (*i == rank && *j < t->n) (*j)++;
    return true;
}

static bool fit_groups(OnnxNode *n, const Before *b, Wanted *t) {
    const Type *x = &n->in[0]->type;
    int ones = 0, i = 0, j = 0;                         // ones: more of them than the input has
    for (int k = 0; k < t->n; k++) ones += t->was[k] == 1;
    for (int k = 0; k < x->rank; k++) ones -= size_was(b, 0, k) == 1;
    while (i < x->rank) {
        Group g = { .first = j };
        int from = i;
        if (!next_group(b, t, &i, &j)) return false;
        g.n_out = j - g.first;
        for (int k = from; k < i; k++) add_part(n->import, n->g, &g, x->dim[k], size_was(b, 0, k));
        if (!fit_group(n, &g, t, ones >= 0)) return false;
    }
    return true;
}

// The result's sizes in the file: 0 copies, -1 is what is left. False: they do not fit the input there.
static bool wanted_was(const Before *b, bool allow_zero, Wanted *t) {
    const Type *x = &b->in[0]->type;
    int64_t total = 1, others = 1;
    t->open = -1;
    if (!t->n || t->n > MAX_RANK || !x->rank || !type_is_static(x)) return false;
    for (int k = 0; k < x->rank; k++) total *= x->dim[k];
    for (int k = 0; k < t->n; k++) {
        if (t->was[k] == 0 && !allow_zero && k < x->rank) t->was[k] = x->dim[k];
        if (t->was[k] == -1 && t->open < 0) t->open = k;
        else if (t->was[k] < 1 || t->was[k] > total / others) return false;
        else others *= t->was[k];
    }
    if (t->open >= 0 && total % others == 0) t->was[t->open] = total / others;
    return total > 0 && (t->open >= 0 ? total % others == 0 : total == others);
}

static bool fit_reshape(OnnxNode *n, const Before *b) {
    Wanted t = { 0 };
    int count = 0;
    const int64_t *given = n->opset < 5 ? onnx_ints(n, "shape", &count) : NULL;
    if (given ? count > MAX_RANK : !literal(n, b, 1, t.was, &count)) return true;
    if (given) memcpy(t.was, given, sizeof *given * (size_t)count);
    t.n = count;
    if (!wanted_was(b, onnx_int(n, "allowzero", 0) != 0, &t)) return true;
    if (!fit_groups(n, b, &t)) {
        Type was = type_make(n->in[0]->type.dtype, t.n, t.was);
        onnx_fail(n, "the model reads %s as %s here; how it is to read %s cannot be told",
            type_text(n->g->arena, b->g, &b->in[0]->type), type_text(n->g->arena, n->g, &was),
            type_text(n->g->arena, n->g, &n->in[0]->type));
        return false;
    }
    Value *in[] = { n->in[0], b_numbers(n->g, t.n, t.now) };
    n->in = arena_copy(n->g->arena, in, sizeof in);
    n->n_in = 2;
    if (n->opset < 5) n->opset = 5;                     // the shape is an input since then
    return in[1] != NULL;
}

static bool fit_flatten(OnnxNode *n, const Before *b) {
    int rank = n->in[0]->type.rank, axis = (int)onnx_int(n, "axis", 1);
    if (axis < 0) axis += rank;
    for (int half = 0; half < 2 && axis >= 0 && axis <= rank; half++) {
        Group g = { 0 };
        int from = half ? axis : 0, to = half ? rank : axis;
        for (int k = from; k < to; k++) add_part(n->import, n->g, &g, n->in[0]->type.dim[k], size_was(b, 0, k));
        remember(n, type_product(n->g, &n->in[0]->type, from, to), &g, -1, 1);
    }
    return true;
}

// ---------------------------------------------------------------- constants that are as long as the old size

// Are all parts along the axis the same? Then what the constant says, it says of any number of them.
static bool same_along(const Tensor *t, int axis) {
    if (t->type.dtype == DT_STRING || dtype_bits(t->type.dtype) % 8) return false;
    int64_t outer = 1, inner = dtype_bits(t->type.dtype) / 8;
    for (int k = 0; k < axis; k++) outer *= t->type.dim[k];
    for (int k = axis + 1; k < t->type.rank; k++) inner *= t->type.dim[k];
    const char *at = t->data;
    for (int64_t i = 0; i < outer; i++, at += inner * t->type.dim[axis])
        for (int64_t k = 1; k < t->type.dim[axis]; k++)
            if (memcmp(at, at + k * inner, (size_t)inner)) return false;
    return true;
}

// Input i with one part along the axis; NULL: it has parts that differ, or is no constant.
static Value *one_part(const OnnxNode *n, int i, int axis) {
    Value *v = n->in[i];
    const Tensor *t = type_is_static(&v->type) ? value_const(v) : NULL;
    if (!t || v->type.dim[axis] == 1) return t ? v : NULL;
    return v->type.dim[axis] > 0 && same_along(t, axis) ? b_part(n->g, v, axis, 0, 1) : NULL;
}

// Input i is given the size along the axis, where it can be; where not, its builder says what does not fit.
static bool stretch(OnnxNode *n, int i, int axis, Dim size) {
    Value *one = one_part(n, i, axis);
    if (!one) return true;
    Dim dims[MAX_RANK];
    for (int k = 0; k < one->type.rank; k++) dims[k] = k == axis ? size : one->type.dim[k];
    return (n->in[i] = b_expand(n->g, one, one->type.rank, dims)) != NULL;
}

static bool fit_concat(OnnxNode *n, const Before *b) {
    int axis, rank = n->in[0]->type.rank;
    if (!onnx_axis(n, onnx_int(n, "axis", 1), rank, &axis)) return false;
    for (int j = 0; j < n->n_in; j++)
        for (int k = 0; k < rank; k++) {
            if (k == axis || !comparable(n, b, j) || n->in[j]->type.rank != rank || !moved(n, b, j, k)) continue;
            for (int i = 0; i < n->n_in; i++)
                if (comparable(n, b, i) && n->in[i]->type.rank == rank && !moved(n, b, i, k)
                    && !stretch(n, i, k, n->in[j]->type.dim[k]))
                    return false;
        }
    return true;
}

// States and lengths of an LSTM, GRU or RNN are a batch long.
static bool fit_recurrent(OnnxNode *n, const Before *b) {
    bool batch_first = onnx_int(n, "layout", 0) != 0;
    int batch = batch_first ? 0 : 1;
    if (n->in[0]->type.rank != 3 || !moved(n, b, 0, batch)) return true;
    for (int i = 4; i < 7; i++) {
        int axis = i == 4 ? 0 : batch;
        if (comparable(n, b, i) && n->in[i]->type.rank > axis && !moved(n, b, i, axis)
            && !stretch(n, i, axis, n->in[0]->type.dim[batch]))
            return false;
    }
    return true;
}

// What is broadcast needs one part where it had as many, all the same.
static bool fit_broadcast(OnnxNode *n, const Before *b) {
    for (int j = 0; j < n->n_in; j++)
        for (int i = 0; i < n->n_in; i++)
            for (int back = 1; comparable(n, b, i) && comparable(n, b, j) && back <= n->in[i]->type.rank
                     && back <= n->in[j]->type.rank; back++) {
                int at = n->in[i]->type.rank - back, to = n->in[j]->type.rank - back;
                if (!moved(n, b, j, to) || moved(n, b, i, at) || n->in[i]->type.dim[at] != size_was(b, j, to)) continue;
                Value *one = one_part(n, i, at);
                if (one) n->in[i] = one;
            }
    return true;
}

// ---------------------------------------------------------------- sizes and bounds as numbers

static bool give_numbers(OnnxNode *n, int i, int count, const Dim *now) {
    return (n->in[i] = b_numbers(n->g, count, now)) != NULL;
}

static bool fit_expand(OnnxNode *n, const Before *b) {
    int64_t was[MAX_DIM_VALUES];
    Dim now[MAX_DIM_VALUES];
    int count, rank = n->in[0]->type.rank;
    if (!literal(n, b, 1, was, &count)) return true;
    for (int k = 0; k < count; k++) {
        int axis = k + rank - count;
        bool follows = axis >= 0 && moved(n, b, 0, axis) && was[k] == size_was(b, 0, axis);
        now[k] = follows ? n->in[0]->type.dim[axis] : was[k];
        if (now[k] < 0 && !follows) return true;
    }
    return give_numbers(n, 1, count, now);
}

// What a size along an axis has become, of tensors of as many dimensions; 0: nothing
static Dim became(const Import *im, int rank, int axis, int64_t was) {
    for (int i = 0; i < im->resized.n; i++) {
        const Resized *r = &im->resized.at[i];
        if (r->rank == rank && r->axis == axis && r->was == was) return r->now;
    }
    return 0;
}

static bool fit_resize(OnnxNode *n, const Before *b) {
    int64_t was[MAX_DIM_VALUES];
    Dim now[MAX_DIM_VALUES];
    int count, n_axes, rank = n->in[0]->type.rank;
    const int64_t *axes = onnx_ints(n, "axes", &n_axes);
    if (!literal(n, b, 3, was, &count)) return true;
    if (count != (axes ? n_axes : rank)) return true;
    for (int k = 0; k < count; k++) {
        int axis = k;
        if (axes && !onnx_axis(n, axes[k], rank, &axis)) return false;
        int64_t from = size_was(b, 0, axis);
        Dim size = n->in[0]->type.dim[axis], other = became(n->import, rank, axis, was[k]);
        bool changed = moved(n, b, 0, axis);
        now[k] = was[k] == from                                ? size :
            other                                              ? other :
            changed && from > 0 && was[k] > 0 && was[k] % from == 0 ? dim_mul(n->g, size, was[k] / from) :
                                                                 was[k];
        if (now[k] != was[k] || !changed) continue;
        onnx_fail(n, "the model resizes %lld to %lld along axis %d; what %s is resized to cannot be told",
            (long long)from, (long long)was[k], axis, dim_text(n->g->arena, n->g, size));
        return false;
    }
    return give_numbers(n, 3, count, now);
}

// Bounds at the end of an axis stay there.
static bool fit_slice(OnnxNode *n, const Before *b) {
    int64_t ends[MAX_DIM_VALUES], axes[MAX_DIM_VALUES];
    Dim now[MAX_DIM_VALUES];
    int count, n_axes = 0, n_starts, rank = n->in[0]->type.rank;
    const int64_t *given = n->opset < 10 ? onnx_ints(n, "ends", &count) : NULL;
    if (n->opset < 10 && (!given || count > rank)) return true;
    if (given) memcpy(ends, given, sizeof *given * (size_t)count);
    else if (!literal(n, b, 2, ends, &count)) return true;
    const int64_t *listed = onnx_ints(n, "axes", &n_axes);
    bool has_axes = listed || onnx_optional(n, 3);
    if (!listed && has_axes && !literal(n, b, 3, axes, &n_axes)) return true;
    if (count > rank || (has_axes && n_axes != count)) return true;
    bool any = false;
    for (int k = 0; k < count; k++) {
        int axis = k;
        if (has_axes && !onnx_axis(n, listed ? listed[k] : axes[k], rank, &axis)) return false;
        bool whole = moved(n, b, 0, axis) && ends[k] == size_was(b, 0, axis);
        now[k] = whole ? n->in[0]->type.dim[axis] : ends[k];
        any = any || whole;
        if (!whole && ends[k] < 0) return true;         // counted from the end, or backwards
        if (moved(n, b, 0, axis) && !whole && ends[k] > 0 && ends[k] < size_was(b, 0, axis))
            diag_warn(WARN_shape, n->loc, "axis %d ends at %lld of %lld in the model, and so it does of %s", axis,
                (long long)ends[k], (long long)size_was(b, 0, axis),
                dim_text(n->g->arena, n->g, n->in[0]->type.dim[axis]));
    }
    if (!any) return true;
    if (n->opset >= 10) return give_numbers(n, 2, count, now);
    const int64_t *starts = onnx_ints(n, "starts", &n_starts);
    if (!starts || n_starts != count) return true;
    Value *from = b_ints(n->g, count, starts), *to = b_numbers(n->g, count, now);
    n->in = arena_copy(n->g->arena, (Value *[]){ n->in[0], from, to }, 3 * sizeof *n->in);
    n->n_in = 3;
    n->opset = 10;                                      // bounds are inputs since then
    return from && to;
}

// ---------------------------------------------------------------- what cannot be another size

static bool fit_squeeze(OnnxNode *n, const Before *b) {
    int64_t axes[MAX_RANK];
    int count, rank = n->in[0]->type.rank;
    bool given;
    if (!onnx_knows(n, 1)) return true;
    if (!onnx_axes(n, 1, rank, axes, &count, &given)) return false;
    for (int k = 0; k < rank; k++) {
        bool drops = !given;
        for (int i = 0; i < count; i++) drops = drops || axes[i] == k;
        if (!drops || size_was(b, 0, k) != 1 || !moved(n, b, 0, k)) continue;
        onnx_fail(n, "drops dimension %d, which is 1 in the model and %s now", k,
            dim_text(n->g->arena, n->g, n->in[0]->type.dim[k]));
        return false;
    }
    return true;
}

static bool fit_gather(OnnxNode *n, const Before *b) {
    int axis;
    if (!comparable(n, b, 1) || !onnx_axis(n, onnx_int(n, "axis", 0), n->in[0]->type.rank, &axis)) return true;
    if (moved(n, b, 0, axis) && size_was(b, 0, axis) == 1 && value_const(n->in[1]))
        diag_warn(WARN_shape, n->loc, "takes the first of axis %d, which is all in the model, but not of %s", axis,
            dim_text(n->g->arena, n->g, n->in[0]->type.dim[axis]));
    return true;
}

// Into parts of the same size; others say nothing of another size.
static bool fit_split(OnnxNode *n, const Before *b) {
    int64_t sizes[MAX_DIM_VALUES];
    int axis, count;
    const int64_t *attr = onnx_ints(n, "split", &count);
    if (!onnx_axis(n, onnx_int(n, "axis", 0), n->in[0]->type.rank, &axis) || !moved(n, b, 0, axis)) return true;
    if (!attr && !literal(n, b, 1, sizes, &count)) return true;
    bool same = !attr && count == n->n_out;
    for (int k = 1; same && k < count; k++) same = sizes[k] == sizes[0];
    if (same) {
        n->n_in = 1;
        return true;
    }
    onnx_fail(n, "splits axis %d into sizes of its own, which are not known for %s", axis,
        dim_text(n->g->arena, n->g, n->in[0]->type.dim[axis]));
    return false;
}

// ---------------------------------------------------------------- all nodes

typedef struct Row { const char *op; bool (*fit)(OnnxNode *n, const Before *b); bool always; } Row;
static const Row rows[] = {                             // always: even where no input of the node has changed
    { "Reshape", fit_reshape, false },
    { "Flatten", fit_flatten, false },
    { "Expand", fit_expand, false },
    { "Concat", fit_concat, false },
    { "Resize", fit_resize, true },
    { "Slice", fit_slice, false },
    { "Squeeze", fit_squeeze, false },
    { "Gather", fit_gather, false },
    { "Split", fit_split, false },
    { "LSTM", fit_recurrent, false },
    { "GRU", fit_recurrent, false },
    { "RNN", fit_recurrent, false },
    { "Add", fit_broadcast, false },
    { "Sub", fit_broadcast, false },
    { "Mul", fit_broadcast, false },
    { "Div", fit_broadcast, false },
    { "Pow", fit_broadcast, false },
    { "Min", fit_broadcast, false },
    { "Max", fit_broadcast, false },
    { "Where", fit_broadcast, false },
    { "PRelu", fit_broadcast, false },
};

bool onnx_resized(OnnxNode *n) {
    const Import *im = n->import;
    if (im->inputs) keep(n);
    const Before *b = im->was ? strmap_get(im->was->inputs, node_key(n)) : NULL;
    if (!b || *n->def->domain || !comparable(n, b, 0)) return true;
    bool changed = any_moved(n, b);
    for (size_t i = 0; i < COUNT(rows); i++)
        if (!strcmp(rows[i].op, n->def->op)) return (changed || rows[i].always) ? rows[i].fit(n, b) : true;
    return true;
}
