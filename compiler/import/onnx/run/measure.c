// SPDX-License-Identifier: MIT OR Apache-2.0
// Sizes that depend on data: shapes, bounds and counts that only the running program knows.
//
// In: a list of integers that the model computes. Out: dimensions. The idea: what dims.c can follow stays a constant
// or an expression of symbols; every other element becomes a measured symbol, whose value the program reads from the
// list and checks. Memory is planned for its largest value, which comes from the operator, from the range of the
// list's numbers, from what the model declares, from --dim, or is the largest size that the model has anywhere, with
// a note. Equal computations measure the same symbol, so that tensors cut alike have equal types.
#include "measure.h"

#include <inttypes.h>
#include <string.h>

#define MAX_COMPARED 64         // nodes compared to find that two lists are the same
#define MAX_MEASURED 1024       // sizes of one model that are measured, each of which is compared with all others

// ---------------------------------------------------------------- lists of numbers

Value *onnx_list(OnnxNode *n, int i, const char *what, int *count) {
    Value *v = onnx_input(n, i);
    if (!v) return NULL;
    Dim size = v->type.rank ? v->type.dim[0] : 1;
    if (dtype_class(v->type.dtype) > CLASS_UINT || v->type.rank > 1)
        return onnx_fail(n, "%s must be a list of integers but is %s", what, type_text(n->g->arena, n->g, &v->type));
    if (!dim_is_const(size))
        return onnx_fail(n,
            "%s has an unknown length, and so the result an unknown rank; pin the dimension with --dim NAME=V", what);
    if (size > MAX_DIM_VALUES)
        return onnx_fail(n, "%s has %lld elements; at most %d make sense here", what, (long long)size, MAX_DIM_VALUES);
    *count = (int)size;
    return b_reshape(n->g, b_cast(n->g, v, DT_I64), 1, &size);
}

// ---------------------------------------------------------------- the same computation twice

static bool same_attr(const Attr *a, const Attr *b) {
    if (strcmp(a->name, b->name) || a->kind != b->kind || a->n != b->n) return false;
    switch (a->kind) {
    case ATTR_INT: return a->i == b->i;
    case ATTR_INTS: return !a->n || !memcmp(a->ints, b->ints, sizeof *a->ints * (size_t)a->n);
    case ATTR_STRING: return !strcmp(a->s, b->s);
    default: return false;
    }
}

static bool same_value(const Value *a, const Value *b, int *steps) {
    if (a == b) return true;
    if (!a || !b || --*steps < 0 || !type_equal(&a->type, &b->type)) return false;
    if (a->data && b->data)
        return type_is_static(&a->type) && a->type.dtype != DT_STRING
            && !memcmp(a->data->data, b->data->data, (size_t)type_bytes(&a->type));
    const Node *p = a->def, *q = b->def;
    if (!p || !q || a->def_out != b->def_out || p->op != q->op || p->expr != q->expr || p->n_in != q->n_in
        || p->n_attrs != q->n_attrs || p->n_bodies || q->n_bodies)
        return false;
    for (int i = 0; i < p->n_attrs; i++)
        if (!same_attr(&p->attrs[i], &q->attrs[i])) return false;
    for (int i = 0; i < p->n_in; i++)
        if (!same_value(p->in[i], q->in[i], steps)) return false;
    return true;
}

static bool measured_before(OnnxNode *n, const Value *list, int at, Dim *d) {
    int count;
    const Symbol *all = graph_symbols(n->g, &count);
    for (int i = 0; i < count; i++) {
        int steps = MAX_COMPARED;
        if (!all[i].from || all[i].at != at || all[i].from->graph != n->g || !same_value(all[i].from, list, &steps))
            continue;
        *d = dim_symbol(n->g, all[i].name);
        return true;
    }
    return false;
}

// ---------------------------------------------------------------- measuring

static const char *symbol_name(const OnnxNode *n, int out, int axis, const EndDim *declared) {
    if (declared && !declared->known && *declared->symbol) return declared->symbol;
    const char *name = out >= 0 && out < n->def->n_out && *n->def->out[out] ? n->def->out[out] : n->def->op;
    return arena_printf(n->g->arena, "%s_dim_%d", name, axis);
}

// The largest size that dimension `axis` of output `out` may have as far as the model and the options say; lo: the
// least. With a note where they say nothing.
static int64_t stated_bound(OnnxNode *n, const char *name, const EndDim *declared, int64_t *lo) {
    const DimOption *option = onnx_dim_option(n, name);
    if (option) {
        *lo = option->lo;
        return option->hi;
    }
    if (declared && declared->known && declared->value >= 0) return declared->value;
    int64_t hi = onnx_largest_size(n);
    if (onnx_says_notes(n))
        diag_note(n->loc,
            "dimension %s depends on the values of inputs and is taken to be at most %" PRId64
            "; --dim %s=0..N gives another bound",
            name, hi, name);
    return hi;
}

int64_t onnx_bound(OnnxNode *n, int out, int axis) {
    const EndDim *declared = onnx_declared_dim(n, out, axis);
    int64_t lo;
    return stated_bound(n, symbol_name(n, out, axis, declared), declared, &lo);
}

bool onnx_measure(OnnxNode *n, Value *list, int at, int out, int axis, int64_t least, Dim limit, Dim *d) {
    DimItem items[MAX_DIM_VALUES];
    int count;
    if (!list || !onnx_dim_items(n->g, list, items, &count) || at >= count) return false;
    const DimItem *x = &items[at];
    if (x->known) {
        *d = x->is.v;
        if (x->is.symbolic || (x->is.v >= 0 && x->is.v <= INT64_C(1) << 48)) return true;
        return onnx_fail(n, "dimension %d of the result would be %" PRId64, axis, x->is.v), false;
    }
    if (measured_before(n, list, at, d)) return true;
    const EndDim *declared = out < 0 ? NULL : onnx_declared_dim(n, out, axis);
    const char *name = symbol_name(n, out, axis, declared);
    const DimOption *option = onnx_dim_option(n, name);
    bool known = limit != NO_LIMIT;
    int64_t lo = x->lo > least ? x->lo : least, hi = min64(x->hi, known ? dim_upper(n->g, limit) : INT64_MAX);
    if (option) {
        lo = option->lo;
        hi = option->hi;
    } else if (!known && declared && declared->known && declared->value >= 0) hi = min64(hi, declared->value);
    else if (!known && hi >= INT32_MAX) hi = stated_bound(n, name, declared, &lo);
    graph_symbols(n->g, &count);
    if (count > MAX_MEASURED) {
        diag_error_as(EXIT_LIMIT, n->loc,
            "more than %d sizes of this model depend on the values of inputs, here dimension %d of the result; fold "
            "its shapes to constants, or give its loops fewer trips",
            MAX_MEASURED, axis);
        return false;
    }
    *d = dim_measured(n->g, name, min64(lo, hi), hi, list, at);
    if (option || limit == NO_LIMIT) return true;
    Symbol *all = graph_symbols(n->g, &count);
    all[count - 1].limit = limit;
    return true;
}

// Of the dimension with its symbols between the bounds that they will have. Recursion follows limits, each of which
// was made before its symbol.
int64_t onnx_dim_most(OnnxNode *n, Dim d) {
    int count;
    Arena *scratch = arena_new();
    Symbol *all = graph_symbols(n->g, &count), *was = arena_copy(scratch, all, sizeof *all * (size_t)count);
    bool known = true;
    for (int i = 0; i < count; i++) {
        const DimOption *option = onnx_dim_option(n, all[i].name);
        if (!dim_uses(n->g, d, i)) continue;
        if (option) {
            all[i].lo = option->lo;
            all[i].hi = option->hi;
        } else if (all[i].from) {
            int64_t most = all[i].limit == NO_LIMIT ? 0 : onnx_dim_most(n, all[i].limit);
            if (most > 0) all[i].hi = min64(all[i].hi, most);
        } else known = false;
    }
    int64_t most = dim_upper(n->g, d);
    if (count) memcpy(all, was, sizeof *all * (size_t)count);
    arena_free(scratch);
    return known && most < INT32_MAX / 2 ? most : 0;
}

bool onnx_measure_all(OnnxNode *n, Value *list, int count, const Dim *limits, Dim *dims) {
    if (count > MAX_RANK) {
        diag_error_as(EXIT_LIMIT, n->loc, "the result has %d dimensions; at most %d are supported", count, MAX_RANK);
        return false;
    }
    for (int i = 0; i < count; i++)
        if (!onnx_measure(n, list, i, 0, i, 0, limits ? limits[i] : NO_LIMIT, &dims[i])) return false;
    return true;
}
