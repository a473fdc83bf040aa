// SPDX-License-Identifier: MIT OR Apache-2.0
// Nodes that compute the same thing from the same operands become one; so do equal constants.
//
//   before   %1: f32[2] = Neg(%0)
//            %2: f32[2] = Neg(%0)
//            %3: f32[2] = Add(%1, %2)
//   after    %3: f32[2] = Add(%1, %1)
//
// A hash table of what has been seen: op, operands, attributes, expression and type; each body has a table of its
// own. Every primitive is a function of these (random numbers too: of their seed). Nodes with bodies are left alone.
#include "passes.h"

#include <string.h>

#define MAX_CONST_BYTES ((int64_t)64 << 10)     // constants up to this size are compared; larger ones by address

typedef struct Slot { uint64_t hash; Node *node; Value *constant; } Slot;
typedef struct Table { Arena *scratch; Slot *at; size_t cap, n; } Table;   // open addressing, at most half full

static uint64_t mix(uint64_t h, const void *p, size_t n) {      // FNV-1a
    for (const uint8_t *at = p; n--; at++) h = (h ^ *at) * 0x100000001b3u;
    return h;
}

static uint64_t mix_int(uint64_t h, uint64_t v) { return mix(h, &v, sizeof v); }

static uint64_t mix_tensor(uint64_t h, const Tensor *t) {
    h = mix_int(h, (uint64_t)t->type.dtype);
    for (int i = 0; i < t->type.rank; i++) h = mix_int(h, (uint64_t)t->type.dim[i]);
    if (t->type.dtype == DT_STRING || type_bytes(&t->type) > MAX_CONST_BYTES) return mix_int(h, (uintptr_t)t->data);
    return mix(h, t->data, (size_t)type_bytes(&t->type));
}

static bool tensor_equal(const Tensor *a, const Tensor *b) {
    if (!type_equal(&a->type, &b->type)) return false;
    if (a->data == b->data) return true;
    if (a->type.dtype == DT_STRING || type_bytes(&a->type) > MAX_CONST_BYTES) return false;
    return !memcmp(a->data, b->data, (size_t)type_bytes(&a->type));
}

static bool attr_equal(const Attr *a, const Attr *b) {
    if (a->kind != b->kind || a->n != b->n || strcmp(a->name, b->name)) return false;
    switch (a->kind) {
    case ATTR_INT: return a->i == b->i;
    case ATTR_FLOAT: return !memcmp(&a->f, &b->f, sizeof a->f);
    case ATTR_STRING: return !strcmp(a->s, b->s);
    case ATTR_INTS: return !a->n || !memcmp(a->ints, b->ints, sizeof *a->ints * (size_t)a->n);
    case ATTR_FLOATS: return !a->n || !memcmp(a->floats, b->floats, sizeof *a->floats * (size_t)a->n);
    case ATTR_TENSOR: return tensor_equal(a->tensor, b->tensor);
    case ATTR_STRINGS:
        for (int i = 0; i < a->n; i++)
            if (strcmp(a->strings[i], b->strings[i])) return false;
        return true;
    }
    return false;
}

static uint64_t node_hash(const Node *n) {
    uint64_t h = mix_int(mix_int(0xcbf29ce484222325u, (uint64_t)n->op), (uintptr_t)n->expr);
    for (int i = 0; i < n->n_in; i++) h = mix_int(h, n->in[i] ? (uint64_t)n->in[i]->id : UINT64_MAX);
    for (int i = 0; i < n->n_attrs; i++) {
        const Attr *a = &n->attrs[i];
        h = mix(h, a->name, strlen(a->name));
        if (a->kind == ATTR_INT) h = mix_int(h, (uint64_t)a->i);
        if (a->kind == ATTR_INTS && a->n) h = mix(h, a->ints, sizeof *a->ints * (size_t)a->n);
    }
    return h;
}

static bool node_equal(const Node *a, const Node *b) {
    if (a->op != b->op || a->expr != b->expr || a->n_in != b->n_in || a->n_out != b->n_out || a->n_attrs != b->n_attrs)
        return false;
    for (int i = 0; i < a->n_in; i++)
        if (a->in[i] != b->in[i]) return false;
    for (int i = 0; i < a->n_out; i++)
        if (!type_equal(&a->out[i]->type, &b->out[i]->type)) return false;
    for (int i = 0; i < a->n_attrs; i++)
        if (!attr_equal(&a->attrs[i], &b->attrs[i])) return false;
    return true;
}

static void table_grow(Table *t) {
    Table grown = { .scratch = t->scratch, .cap = t->cap ? 2 * t->cap : 64, .n = t->n };
    grown.at = NEW_ARRAY(t->scratch, Slot, grown.cap);
    for (size_t i = 0; i < t->cap; i++) {
        if (!t->at[i].node && !t->at[i].constant) continue;
        size_t k = t->at[i].hash & (grown.cap - 1);
        while (grown.at[k].node || grown.at[k].constant) k = (k + 1) & (grown.cap - 1);
        grown.at[k] = t->at[i];
    }
    *t = grown;
}

// The entry equal to what is given (a node or a constant), which is entered when there is none.
static Slot *table_find(Table *t, uint64_t hash, Node *node, Value *constant) {
    if (2 * (t->n + 1) > t->cap) table_grow(t);
    size_t i = hash & (t->cap - 1);
    for (; t->at[i].node || t->at[i].constant; i = (i + 1) & (t->cap - 1)) {
        Slot *e = &t->at[i];
        if (e->hash != hash) continue;
        if (node ? e->node && node_equal(e->node, node) :
                   e->constant && tensor_equal(e->constant->data, constant->data))
            return e;
    }
    t->n++;
    t->at[i] = (Slot){ hash, node, constant };
    return &t->at[i];
}

static Value *unify_constant(Table *constants, Rewrite *r, Value *v) {
    if (!v || !v->data) return v;
    Value *first = table_find(constants, mix_tensor(0xcbf29ce484222325u, v->data), NULL, v)->constant;
    if (first != v) r->changed = true;
    return first;
}

static void cse_graph(Rewrite *r, Table *constants, Graph *g) {
    Table seen = { .scratch = r->scratch };
    for (Node *n = g->first, *next; n; n = next) {
        next = n->next;
        rewrite_operands(r, n);
        for (int i = 0; i < n->n_in; i++) n->in[i] = unify_constant(constants, r, n->in[i]);
        for (int i = 0; i < n->n_bodies; i++) cse_graph(r, constants, n->bodies[i]);
        if (n->n_bodies) continue;
        Node *first = table_find(&seen, node_hash(n), n, NULL)->node;
        if (first == n) continue;
        for (int i = 0; i < n->n_out; i++) rewrite_set(r, n->out[i], first->out[i]);
        graph_remove(g, n);
    }
    rewrite_outputs(r, g);
}

bool pass_cse(Graph *g) {
    Rewrite r = { .scratch = arena_new() };
    Table constants = { .scratch = r.scratch };
    cse_graph(&r, &constants, g);
    arena_free(r.scratch);
    return r.changed;
}
