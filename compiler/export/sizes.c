// SPDX-License-Identifier: MIT OR Apache-2.0
// Dimensions as numbers of the model: constants, or arithmetic on the shapes of its inputs.
//
// In: a dimension, constant or symbolic. Out: the name of an i64[1]. The idea: a symbol is an axis of an input, or an
// element of the value that measures it; a symbolic dimension is a sum of products of symbols and floor divisions
// (ir/dim.c), and is spelled as that.
#include "export/put.h"
#include "ir/dim.h"

static const char *axis_of(Put *p, Value *v, int axis) {
    const char *shape = put_op(p, NULL, "Shape", NAMES(put_value(p, v)), NO_ATTRS);
    const char *at = put_ints(p, 1, (int64_t[]){ axis });
    return put_op(p, NULL, "Gather", NAMES(shape, at), ATTRS(attr_int("axis", 0)));
}

static int axis_with(const Graph *g, const Value *v, Dim d) {
    for (int i = 0; v && i < v->type.rank; i++)
        if (!dim_is_const(v->type.dim[i]) && dim_equal(g, v->type.dim[i], d)) return i;
    return -1;
}

static const char *symbol_size(Put *p, const Symbol *s, Dim self) {
    Graph *g = p->x->g;
    if (s->from) {
        const char *list = put_value(p, s->from), *at = put_ints(p, 1, &s->at);
        return put_op(p, NULL, "Gather", NAMES(list, at), ATTRS(attr_int("axis", 0)));
    }
    for (int i = 0; i < g->inputs.n; i++) {
        int axis = axis_with(g, g->inputs.at[i], self);
        if (axis >= 0) return axis_of(p, g->inputs.at[i], axis);
    }
    const Loc *loc = p->x->node ? p->x->node->loc : NULL;
    diag_error(loc, "the size %s is no axis of an input, so no ONNX operator gives it; --dim %s=N fixes it", s->name,
        s->name);
    return NULL;
}

// floor(num / den); ONNX's division goes toward zero.
static const char *quotient(Put *p, const Atom *atom) {
    const char *num = put_size(p, atom->num, NULL), *den = put_size(p, atom->den, NULL);
    if (num && den && dim_lower(p->x->g, atom->num) < 0) {
        const char *rest = put_op(p, NULL, "Mod", NAMES(num, den), NO_ATTRS);
        num = put_op(p, NULL, "Sub", NAMES(num, rest), NO_ATTRS);
    }
    return put_op(p, NULL, "Div", NAMES(num, den), NO_ATTRS);
}

static const char *factor(Put *p, int number) {
    Graph *g = p->x->g;
    const Dims *dims = g->dims;
    const Atom *atom = &dims->atoms.at[number];
    if (atom->symbol < 0) return quotient(p, atom);
    int n;
    const Symbol *s = &graph_symbols(g, &n)[atom->symbol];
    return symbol_size(p, s, dim_symbol(g, s->name));
}

static const char *product(Put *p, const Term *t) {
    const char *result = t->coef == 1 && t->n ? NULL : put_ints(p, 1, &t->coef);
    for (int i = 0; i < t->n; i++) {
        const char *f = factor(p, t->atom[i]);
        if (!f) return NULL;
        result = result ? put_op(p, NULL, "Mul", NAMES(result, f), NO_ATTRS) : f;
    }
    return result;
}

static const char *computed(Put *p, Dim d) {
    Sum *s = NEW(p->x->arena, Sum);
    const char *result = NULL;
    sum_of(p->x->g, d, s);
    for (int i = 0; i < s->n; i++) {
        const char *term = product(p, &s->terms[i]);
        if (!term) return NULL;
        result = result ? put_op(p, NULL, "Add", NAMES(result, term), NO_ATTRS) : term;
    }
    return result;
}

const char *put_size(Put *p, Dim d, Value *near) {
    if (dim_is_const(d)) return put_ints(p, 1, &d);
    int axis = axis_with(p->x->g, near, d);
    if (axis >= 0) return axis_of(p, near, axis);
    const char *key = arena_printf(p->x->arena, "size %lld", (long long)d);
    for (const Put *q = p; q; q = q->outer)
        if (strmap_get(q->known, key)) return strmap_get(q->known, key);
    const char *name = computed(p, d);
    if (name) strmap_put(p->known, key, (void *)(uintptr_t)name);
    return name;
}

const char *put_sizes(Put *p, int n, const Dim *d, Value *near) {
    bool known = true;
    for (int i = 0; i < n; i++) known = known && dim_is_const(d[i]);
    if (known) return put_ints(p, n, d);
    const char **parts = NEW_ARRAY(p->x->arena, const char *, n + 1);
    for (int i = 0; i < n; i++) parts[i] = put_size(p, d[i], near);
    return n == 1 ? parts[0] : put_op(p, NULL, "Concat", n, parts, ATTRS(attr_int("axis", 0)));
}
