// SPDX-License-Identifier: MIT OR Apache-2.0
// Adding nodes, constants and names to an ONNX graph in the making.
//
// In: what a writer asks for. Out: entries of a Put. The idea: names are ONNX's references, and bodies see the names of
// the graphs around them, so a name is given once in a model. What is trained is an initializer; any other constant of
// floats is a Constant node, which no importer takes for a parameter.
#include "export/put.h"

#include <string.h>

// ---------------------------------------------------------------- attributes

OnnxAttr attr_int(const char *name, int64_t i) { return (OnnxAttr){ .name = name, .type = ONNX_INT, .i = i }; }
OnnxAttr attr_float(const char *name, double f) { return (OnnxAttr){ .name = name, .type = ONNX_FLOAT, .f = f }; }

OnnxAttr attr_string(const char *name, const char *s) {
    return (OnnxAttr){ .name = name, .type = ONNX_STRING, .s = s };
}

OnnxAttr attr_ints(const char *name, int n, const int64_t *v) {
    return (OnnxAttr){ .name = name, .type = ONNX_INTS, .n = n, .ints = v };
}

OnnxAttr attr_floats(Arena *a, const char *name, int n, const double *v) {
    float *f = NEW_ARRAY(a, float, n + 1);
    for (int i = 0; i < n; i++) f[i] = (float)v[i];
    return (OnnxAttr){ .name = name, .type = ONNX_FLOATS, .n = n, .floats = f };
}

OnnxAttr attr_tensor(const char *name, Tensor *t) {
    return (OnnxAttr){ .name = name, .type = ONNX_TENSOR, .tensor = t };
}

// ---------------------------------------------------------------- names

// `wanted`, or with a number behind it; how often it was wanted stands in the map.
static const char *unique(Arena *a, StrMap *taken, const char *wanted) {
    const char *name = wanted;
    for (uintptr_t n = (uintptr_t)strmap_get(taken, wanted); strmap_get(taken, name); n++)
        name = arena_printf(a, "%s_%llu", wanted, (unsigned long long)n);
    strmap_put(taken, name, (void *)(uintptr_t)1);
    if (name != wanted) strmap_put(taken, wanted, (void *)((uintptr_t)strmap_get(taken, wanted) + 1));
    return name;
}

const char *put_fresh(Put *p, const char *wanted) { return unique(p->x->arena, p->x->taken, wanted); }

// What nobody has named is called after the user's node that it came from, as a path, which is no C identifier.
static const char *default_name(Put *p, const char *op) {
    const Loc *loc = p->x->node ? p->x->node->loc : NULL;
    return arena_printf(p->x->arena, "%s/%s", loc && loc->name ? loc->name : "", op);
}

const char *put_name(Put *p, Value *v) {
    const char **name = &p->x->names[v->id];
    if (*name) return *name;
    const char *kind = v->def ? op_table[v->def->op].name : "Constant";
    return *name = put_fresh(p, v->name && *v->name ? v->name : default_name(p, kind));
}

// ---------------------------------------------------------------- nodes

static const char *node_name(const Export *x) {
    const Loc *loc = x->node ? x->node->loc : NULL;
    return loc && loc->name && *loc->name ? unique(x->arena, x->node_names, loc->name) : "";
}

static Names copied(Arena *a, int n, Names from) {
    const char **to = NEW_ARRAY(a, const char *, n + 1);
    for (int i = 0; i < n; i++) to[i] = from[i];
    return to;
}

void put_node(Put *p, const char *op, int n_in, Names in, int n_out, Names out, int n_attrs, const OnnxAttr *attrs) {
    Arena *a = p->x->arena;
    while (n_in && !*in[n_in - 1]) n_in--;              // absent ones at the end are not there
    OnnxNodeDef node = { .name = node_name(p->x), .op = op, .domain = "", .n_in = n_in, .n_out = n_out };
    node.n_attrs = n_attrs;
    node.in = copied(a, n_in, in);
    node.out = copied(a, n_out, out);
    if (n_attrs) node.attrs = arena_copy(a, attrs, sizeof *attrs * (size_t)n_attrs);
    VEC_PUSH(a, p->nodes, node);
}

const char *put_op(Put *p, const char *result, const char *op, int n_in, Names in, int n_attrs,
    const OnnxAttr *attrs) {
    for (int i = 0; i < n_in; i++)
        if (!in[i]) return NULL;
    if (!result) result = put_fresh(p, default_name(p, op));
    put_node(p, op, n_in, in, 1, &result, n_attrs, attrs);
    return result;
}

const char *put_cast(Put *p, const char *result, const char *x, DType to) {
    return put_op(p, result, "Cast", NAMES(x), ATTRS(attr_int("to", to)));
}

const char *put_reshape(Put *p, const char *result, const char *x, int n, const int64_t *shape) {
    const char *list = put_ints(p, n, shape);
    return put_op(p, result, "Reshape", NAMES(x, list), NO_ATTRS);
}

// ---------------------------------------------------------------- constants

const char *put_constant(Put *p, Tensor *t) {
    return put_op(p, NULL, "Constant", 0, NULL, ATTRS(attr_tensor("value", t)));
}

// One that this graph or one around it has already; `key` tells all of it.
static const char *known(const Put *p, const char *key) {
    for (; p; p = p->outer) {
        const char *name = strmap_get(p->known, key);
        if (name) return name;
    }
    return NULL;
}

static const char *put_known(Put *p, const char *key, Tensor *t) {
    const char *name = known(p, key);
    if (name) return name;
    name = put_constant(p, t);
    strmap_put(p->known, key, (void *)(uintptr_t)name);
    return name;
}

static const char *ints_of_rank(Put *p, int rank, int n, const int64_t *v) {
    Arena *a = p->x->arena;
    Text key;
    text_init(&key, a);
    text_printf(&key, "%d", rank);
    Tensor *t = tensor_new(a, type_make(DT_I64, rank, (Dim[]){ n }));
    for (int i = 0; i < n; i++) {
        text_printf(&key, " %lld", (long long)v[i]);
        tensor_set_i(t, i, v[i]);
    }
    return put_known(p, key.at, t);
}

const char *put_ints(Put *p, int n, const int64_t *v) { return ints_of_rank(p, 1, n, v); }
const char *put_int(Put *p, int64_t v) { return ints_of_rank(p, 0, 1, &v); }

const char *put_number(Put *p, DType d, double v) {
    Tensor *t = tensor_new(p->x->arena, type_make(d, 0, NULL));
    if (dtype_is_float(d)) tensor_set_f(t, 0, v);
    else tensor_set_i(t, 0, (int64_t)v);
    return put_known(p, arena_printf(p->x->arena, "%s %a", dtype_name(d), v), t);
}

// The graph that a constant belongs to, which is p or around it.
static Put *owner(Put *p, const Value *v) {
    while (p->outer && p->g != v->graph) p = p->outer;
    return p;
}

static void write_constant(Put *p, Value *v) {
    Put *to = owner(p, v);
    const char *name = put_name(p, v);
    const Node *node = p->x->node;
    bool plain = v->trainable || p->x->optimized || !dtype_is_float(v->type.dtype);
    if (plain && !to->outer) {
        VEC_PUSH(p->x->arena, to->inits, (OnnxInit){ name, v->data });
        return;
    }
    p->x->node = NULL;
    put_op(to, name, "Constant", 0, NULL, ATTRS(attr_tensor("value", v->data)));
    p->x->node = node;
}

const char *put_value(Put *p, Value *v) {
    if (!v) return "";
    if (!p->x->names[v->id] && !v->def && !v->is_input) write_constant(p, v);
    return put_name(p, v);
}
