// SPDX-License-Identifier: MIT OR Apache-2.0
// Sequences and optionals.
//
// In: an OnnxNode. Out: a list of values behind a stand-in Value of no element type, which only the builders here and
// those that pass values on may take. The idea: a sequence's length is known at nearly every place where compiled
// code could use it, so sequences need not exist at run time. Where it is a size of the running program,
// run/stacked.c takes over.
#include "sequence.h"

#include <string.h>

bool onnx_is_sequence(const Value *v) { return v && v->type.dtype == DT_NONE; }

Value *onnx_sequence_of(Graph *g, int n, Value *const *items) {
    for (int i = 0; i < n; i++)
        if (!items[i]) return NULL;
    Sequence *s = NEW(g->arena, Sequence);
    s->n = n;
    s->items = arena_copy(g->arena, items, sizeof *items * (size_t)(n ? n : 1));
    return &s->stand_in;
}

Value *const *onnx_sequence_items(const Value *v, int *n) {
    const Sequence *s = onnx_is_sequence(v) ? (const Sequence *)v : NULL;
    *n = s ? s->n : 0;
    return s && !s->rows && !s->carried && !s->before ? s->items : NULL;
}

bool sequence_elements(OnnxNode *n, int count, Value *const *items) {
    for (int i = 0; i < count; i++)
        if (onnx_is_sequence(items[i]) || items[i] == onnx_absent())
            return onnx_fail(n, "element %d is %s; sequences are of tensors", i,
                       onnx_is_sequence(items[i]) ? "itself a sequence" : "nothing"),
                   false;
    return true;
}

Value *sequence_list(OnnxNode *n, int count, Value *const *items) {
    if (!sequence_elements(n, count, items)) return NULL;
    if (count <= MAX_ITEMS) return onnx_sequence_of(n->g, count, items);
    diag_error_as(EXIT_LIMIT, n->loc, "a sequence of %d elements; at most %d are supported", count, MAX_ITEMS);
    return NULL;
}

static Sequence *any_sequence(OnnxNode *n, int i) {
    Value *v = onnx_input(n, i);
    if (v && !onnx_is_sequence(v)) v = onnx_fail(n, "input %d must be a sequence", i);
    return (Sequence *)v;
}

Sequence *sequence_input(OnnxNode *n, int i) {
    Sequence *s = any_sequence(n, i);
    if (s && (s->carried || s->before))
        return onnx_fail(
                   n, "reads a sequence that the loop changes; that needs a known and small number of iterations"),
               NULL;
    return s;
}

// A position in a sequence, negative ones counted from the end: a number, or a scalar that the program computes.
typedef struct Position { int at; Value *computed; } Position;

// Of elements that a position is to choose from while the program runs.
bool sequence_one_type(OnnxNode *n, int count, Value *const *items) {
    for (int i = 0; i < count; i++) {
        bool tensors = !onnx_is_sequence(items[0]) && !onnx_is_sequence(items[i]);
        if (!tensors || !type_equal(&items[0]->type, &items[i]->type))
            return onnx_fail(n,
                       "the length or a position is known to the program only; that needs elements of one shape, "
                       "which element %d has not",
                       i),
                   false;
    }
    return true;
}

// From input i: 0..last in a sequence of `count`; `otherwise` when it is absent.
static bool position(OnnxNode *n, int i, int count, int last, int otherwise, Position *out) {
    DimValue v[MAX_DIM_VALUES] = { { false, otherwise } };
    int one = 1;
    *out = (Position){ 0 };
    if (onnx_optional(n, i) && !onnx_dim_values(n->g, n->in[i], v, &one)) {
        Value *at = b_scalar_of(n->g, n->in[i]);
        return (out->computed = at ? B_MAP(n->g, arena_printf(n->g->arena, "x < 0 ? x + %d : x", count), "x",
                                    b_cast(n->g, at, DT_I64)) :
                                     NULL)
            != NULL;
    }
    if (one != 1 || v[0].symbolic) return onnx_fail(n, "the position must be one number"), false;
    int64_t at = v[0].v < 0 ? v[0].v + count : v[0].v;
    out->at = (int)at;
    return at >= 0 && at <= last ?
        true :
        (onnx_fail(n, "position %lld lies outside a sequence of %d", (long long)v[0].v, count), false);
}

// Element i of a sequence after one was put in or taken out at a position that is computed: of `count` candidates,
// the one that `which` (over p, the position) names.
static Value *one_of(OnnxNode *n, const char *which, Value *position, int count, Value *const *candidates) {
    return onnx_ragged_at(n, count, candidates, B_MAP(n->g, which, "p", position));
}

Value *onnx_sequence_empty(OnnxNode *n) {
    onnx_int(n, "dtype", DT_F32);
    return sequence_list(n, 0, (Value *[]){ NULL });
}

Value *onnx_sequence_construct(OnnxNode *n) {
    return onnx_inputs(n, n->n_in ? n->n_in : 1) ? sequence_list(n, n->n_in, n->in) : NULL;
}

Value *onnx_sequence_at(OnnxNode *n) {
    Sequence *s = sequence_input(n, 0);
    Position p;
    if (s && s->rows) return stacked_at(n, s);
    if (!s || !position(n, 1, s->n, s->n - 1, 0, &p)) return NULL;
    if (!p.computed) return s->items[p.at];
    if (!s->n) return onnx_fail(n, "the sequence is empty");
    bool same = true;
    for (int i = 1; i < s->n; i++) same = same && type_equal(&s->items[i]->type, &s->items[0]->type);
    return same ? b_gather(n->g, onnx_sequence_rows(n, &s->stand_in), p.computed, 0) :
                  onnx_ragged_at(n, s->n, s->items, p.computed);
}

// What a loop's body does with the sequence that it grows.
static Value *append(Graph *g, const Sequence *to, Value *v) {
    Sequence *s = NEW(g->arena, Sequence);
    s->before = to;
    s->n = 1;
    s->items = arena_copy(g->arena, &v, sizeof v);
    return &s->stand_in;
}

Value *onnx_sequence_insert(OnnxNode *n) {
    Sequence *s = any_sequence(n, 0);
    Value *v = onnx_input(n, 1), **items;
    int k = 0;
    Position p;
    if (s && v && s->carried && !onnx_optional(n, 2)) return append(n->g, s, v);
    s = sequence_input(n, 0);
    if (s && v && s->rows) return stacked_insert(n, s, v);
    if (!s || !v || !position(n, 2, s->n, s->n, s->n, &p)) return NULL;
    items = NEW_ARRAY(n->g->arena, Value *, s->n + 1);
    for (int i = 0; i <= s->n; i++) {
        Value *candidates[3] = { i < s->n ? s->items[i] : v, v, i ? s->items[i - 1] : v };
        const char *which = arena_printf(n->g->arena, "p > %d ? 0 : p == %d ? 1 : 2", i, i);
        items[i] = p.computed ? one_of(n, which, p.computed, 3, candidates) : i == p.at ? v : s->items[k++];
    }
    return sequence_list(n, s->n + 1, items);
}

Value *onnx_sequence_erase(OnnxNode *n) {
    Sequence *s = sequence_input(n, 0);
    int k = 0;
    Position p;
    if (s && s->rows) return stacked_erase(n, s);
    if (!s || !position(n, 1, s->n, s->n - 1, s->n - 1, &p)) return NULL;
    Value **items = NEW_ARRAY(n->g->arena, Value *, s->n + 1);
    if (!s->n) return onnx_fail(n, "the sequence is empty");
    for (int i = 0; i < s->n; i++) {
        if (p.computed ? i == s->n - 1 : i == p.at) continue;
        items[k++] = p.computed ?
            one_of(n, arena_printf(n->g->arena, "p > %d ? 0 : 1", i), p.computed, 2, s->items + i) :
            s->items[i];
    }
    return sequence_list(n, s->n - 1, items);
}

Value *onnx_sequence_length(OnnxNode *n) {
    Sequence *s = sequence_input(n, 0);
    if (s && s->rows) return stacked_length(n, s);
    return s ? b_reshape(n->g, b_ints(n->g, 1, (int64_t[]){ s->n }), 0, NULL) : NULL;
}

Value *onnx_concat_from_sequence(OnnxNode *n) {
    Sequence *s = sequence_input(n, 0);
    bool fresh = onnx_int(n, "new_axis", 0) != 0;
    int axis;
    if (!s) return NULL;
    if (s->rows) return stacked_concat(n, s);
    if (!s->n) return onnx_fail(n, "the sequence is empty");
    if (!onnx_axis(n, onnx_int(n, "axis", 0), s->items[0]->type.rank + fresh, &axis)) return NULL;
    Value **items = NEW_ARRAY(n->g->arena, Value *, s->n);
    for (int i = 0; i < s->n; i++) items[i] = fresh ? b_insert(n->g, s->items[i], axis) : s->items[i];
    return b_concat(n->g, axis, s->n, items);
}

// Parts of sizes that the program computes.
static Value *split_run(OnnxNode *n, int axis) {
    OnnxNode parts = *n;
    if (!dim_is_const(n->in[1]->type.dim[0]) || n->in[1]->type.dim[0] > MAX_DIM_VALUES)
        return onnx_fail(n, "the number of parts is not known, or too large");
    parts.n_out = (int)n->in[1]->type.dim[0];
    parts.out = NEW_ARRAY(n->g->arena, Value *, parts.n_out + 1);
    return onnx_split_run(&parts, axis) ? sequence_list(n, parts.n_out, parts.out) : NULL;
}

// Parts of given sizes, of one size (the last may be smaller), or single slices.
Value *onnx_split_to_sequence(OnnxNode *n) {
    int axis, count = 0;
    int64_t sizes[MAX_DIM_VALUES] = { 1 }, at = 0;
    if (!onnx_inputs(n, 1) || onnx_is_sequence(n->in[0])) return onnx_fail(n, "wants a tensor");
    Value *x = n->in[0], *split = onnx_optional(n, 1);
    bool keep = onnx_int(n, "keepdims", 1) != 0, equal = !split || split->type.rank == 0;
    if (!onnx_axis(n, onnx_int(n, "axis", 0), x->type.rank, &axis)) return NULL;
    if (split && split->type.rank == 1 && !onnx_knows(n, 1)) return split_run(n, axis);
    if (split && !onnx_ints_input(n, 1, "the list of sizes", sizes, &count, MAX_DIM_VALUES)) return NULL;
    bool single = equal && sizes[0] == 1;
    if (!dim_is_const(x->type.dim[axis]) && single) return stacked_split(n, x, axis, split || keep);
    if (!dim_is_const(x->type.dim[axis]))
        return onnx_fail(n, "splits an axis whose size only the program knows into parts of more than 1");
    int64_t size = x->type.dim[axis], parts = equal && sizes[0] > 0 ? size / sizes[0] + (size % sizes[0] != 0) : count;
    if (parts > MAX_ITEMS || (equal && sizes[0] < 1))
        return onnx_fail(n, "cannot be split into parts of %lld", (long long)sizes[0]);
    Value **items = NEW_ARRAY(n->g->arena, Value *, parts + 1);
    for (int64_t i = 0; i < parts; i++) {
        int64_t part = equal && sizes[0] > size - at ? size - at : sizes[equal ? 0 : i];
        if (part < 0 || part > size - at) return onnx_fail(n, "the sizes do not add up to %lld", (long long)size);
        items[i] = b_part(n->g, x, axis, at, part);
        if (!split && !keep) items[i] = b_remove(n->g, items[i], axis);
        at += part;
    }
    if (at != size) return onnx_fail(n, "the sizes do not add up to %lld", (long long)size);
    return sequence_list(n, (int)parts, items);
}

// The body once per element of the first sequence; other inputs are sequences of the same length, or the same for all.
Value *onnx_sequence_map(OnnxNode *n) {
    Sequence *s = sequence_input(n, 0);
    if (!s || !onnx_inputs(n, n->n_in)) return NULL;
    for (int i = 0; i < n->n_in; i++) {
        if (!onnx_is_sequence(n->in[i])) continue;
        Sequence *one = sequence_input(n, i);
        if (!one || one->rows) return one ? stacked_map(n) : NULL;
    }
    Value ***out = NEW_ARRAY(n->g->arena, Value **, n->n_out + 1), **in = NEW_ARRAY(n->g->arena, Value *, n->n_in),
          **step = NEW_ARRAY(n->g->arena, Value *, n->n_out + 1);
    for (int i = 0; i < n->n_out; i++) out[i] = NEW_ARRAY(n->g->arena, Value *, s->n + 1);
    for (int k = 0; k < s->n; k++) {
        for (int i = 0; i < n->n_in; i++) {
            Sequence *other = onnx_is_sequence(n->in[i]) ? (Sequence *)n->in[i] : NULL;
            if (other && other->n != s->n)
                return onnx_fail(n, "input %d has %d elements, the first sequence %d", i, other->n, s->n);
            in[i] = other ? other->items[k] : n->in[i];
        }
        if (!onnx_subgraph(n, "body", n->n_in, in, n->n_out, step)) return NULL;
        for (int i = 0; i < n->n_out; i++) out[i][k] = step[i];
    }
    for (int i = 0; i < n->n_out; i++)
        if (!(n->out[i] = sequence_list(n, s->n, out[i]))) return NULL;
    return n->out[0];
}

// ---------------------------------------------------------------- optionals: one that holds something is what it holds

Value *onnx_optional_make(OnnxNode *n) {
    onnx_has(n, "type");
    return n->n_in && onnx_given(n, 0) ? onnx_given(n, 0) : onnx_absent();
}

Value *onnx_optional_get_element(OnnxNode *n) {
    if (onnx_given(n, 0) == onnx_absent()) return onnx_fail(n, "the optional \"%s\" holds nothing", n->def->in[0]);
    return onnx_input(n, 0);
}

Value *onnx_optional_has_element(OnnxNode *n) { return b_scalar(n->g, DT_BOOL, onnx_optional(n, 0) != NULL); }
