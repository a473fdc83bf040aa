// SPDX-License-Identifier: MIT OR Apache-2.0
// Products of one value with several constant matrices become one product. Contract: inference only; the same bits
// but for the sign of a zero.
//
//   before   %4: f32[1,128,384] = MatMul(%0, %1)        %1 %2 %3: constants f32[384,384]
//            %5: f32[1,128,384] = Add(%4, %b1)          and likewise with %2, %3
//   after    %8: f32[1,128,1152] = MatMul(%0, %7)       %7: [%1 %2 %3] side by side
//            %9: f32[1,128,1152] = Add(%8, %b)          %b: [%b1 %b2 %b3], 0 where there is none
//            %10: f32[1,128,384] = Slice(%9)            a view, and likewise for the others
//
// What follows all products alike (a bias, maps of one operand) is done once, before the slices. A product stays
// alone where it would lose by this: where maps of its own follow, which end its loop, or where it is wanted as it
// lies in memory: by an output, a concatenation, a window.
#include "passes.h"

#include <string.h>

typedef VEC(Node *) Nodes;
// by value id; fixed: captured by a body or an output
typedef struct Merger { Arena *scratch; Graph *g; Nodes *users; bool *fixed; bool changed; } Merger;

enum { MAX_SIBLINGS = 16, MAX_MAPS = 8, MAX_LOOK = 8 };
// bias: NULL: none; last: the end of what all have in common
typedef struct Sibling { Node *product; Value *bias, *last; } Sibling;
typedef struct Siblings { Sibling at[MAX_SIBLINGS]; int n; bool biased; Node *maps[MAX_MAPS]; int n_maps; } Siblings;

static const Nodes *users_of(const Merger *m, const Value *v) { return &m->users[v->id]; }

static Node *only_user(const Merger *m, const Value *v) {
    const Nodes *u = users_of(m, v);
    return u->n == 1 && !m->fixed[v->id] ? u->at[0] : NULL;
}


// Does everyone who reads v take it from wherever strides say? `moved`: a transpose lies between, so no map could end
// the product's loop.
static bool reads_anywhere(const Merger *m, const Value *v, bool moved, int look) {
    const Nodes *u = users_of(m, v);
    if (m->fixed[v->id] || look == 0 || u->n == 0) return false;
    for (int i = 0; i < u->n; i++) {
        const Node *n = u->at[i];
        bool fine = op_is_view(n->op) ? reads_anywhere(m, n->out[0], moved || n->op == OP_Transpose, look - 1) :
                                     n->op == OP_MatMul || (moved && (op_is_map(n->op) || n->op == OP_Concat));
        if (!fine) return false;
    }
    return true;
}

static bool is_candidate(const Merger *m, const Node *n) {
    if (n->op != OP_MatMul) return false;
    const Value *x = n->in[0], *w = n->in[1];
    return w->data && w->type.rank == 2 && w->type.dtype == DT_F32 && !x->data && x->type.rank >= 2
        && !m->fixed[n->out[0]->id];
}

// The vector that an Add puts on the last axis of v.
static Value *bias_of(const Node *n, const Value *v) {
    if (!n || n->op != OP_Add || n->in[0] == n->in[1]) return NULL;
    Value *b = n->in[n->in[0] == v];
    int last = b->type.rank - 1;
    if (!b->data || last < 0 || !type_equal(&n->out[0]->type, &v->type)
        || b->type.dim[last] != v->type.dim[v->type.rank - 1])
        return NULL;
    return type_count(&b->type) == b->type.dim[last] ? b : NULL;
}

static bool same_map(const Node *a, const Node *b) {
    if (a->op != b->op || a->n_in != 1 || b->n_in != 1 || a->expr != b->expr || a->n_attrs != b->n_attrs
        || !op_is_map(a->op))
        return false;
    for (int i = 0; i < a->n_attrs; i++) {
        const Attr *x = &a->attrs[i], *y = node_attr(b, x->name);
        if (!y || x->kind != y->kind || (x->kind != ATTR_INT && x->kind != ATTR_FLOAT) || x->i != y->i || x->f != y->f)
            return false;
    }
    return a->out[0]->type.dtype == b->out[0]->type.dtype;
}

// How far the siblings go the same way.
static void common_tail(const Merger *m, Siblings *s) {
    s->biased = false;
    s->n_maps = 0;
    for (int i = 0; i < s->n; i++) {
        Sibling *one = &s->at[i];
        one->last = one->product->out[0];
        Node *add = only_user(m, one->last);
        one->bias = bias_of(add, one->last);
        if (one->bias) one->last = add->out[0];
        s->biased = s->biased || one->bias;
    }
    while (s->n_maps < MAX_MAPS) {
        Node *first = only_user(m, s->at[0].last), *next[MAX_SIBLINGS];
        bool same = first != NULL;
        for (int i = 0; i < s->n && same; i++) {
            next[i] = only_user(m, s->at[i].last);
            same = next[i] && same_map(first, next[i]);
        }
        if (!same) return;
        for (int i = 0; i < s->n; i++) s->at[i].last = next[i]->out[0];
        s->maps[s->n_maps++] = first;
    }
}

static void keep(Siblings *s, const bool *kept) {
    int n = 0;
    for (int i = 0; i < s->n; i++)
        if (kept[i]) s->at[n++] = s->at[i];
    s->n = n;
}

// Those that lose leave, and the others may then have more in common; where fewer than two gain, the first ones that
// go on alike.
static bool thin(const Merger *m, Siblings *s) {
    bool gains[MAX_SIBLINGS] = { false };
    int n = 0;
    for (int i = 0; i < s->n; i++) n += gains[i] = reads_anywhere(m, s->at[i].last, false, MAX_LOOK);
    if (n == s->n) return false;
    for (int i = 0; i < s->n && n < 2; i++) {
        const Node *first = only_user(m, s->at[i].last);
        n = 0;
        for (int j = 0; j < s->n; j++) {
            const Node *other = only_user(m, s->at[j].last);
            n += gains[j] = j >= i && first && other && same_map(first, other);
        }
    }
    int before = s->n;
    keep(s, gains);
    if (s->n == before) s->n = 0;                       // longer tails than are looked at
    return true;
}

static void find_siblings(const Merger *m, Node *first, Siblings *s) {
    const Nodes *u = users_of(m, first->in[0]);
    s->n = 0;
    for (int i = 0; i < u->n && s->n < MAX_SIBLINGS; i++)
        if (u->at[i]->in[0] == first->in[0] && is_candidate(m, u->at[i]))
            s->at[s->n++] = (Sibling){ .product = u->at[i] };
    do common_tail(m, s);
    while (s->n > 1 && thin(m, s));
}

// Constants [rows, n0], [rows, n1], ... side by side; NULL of them: zeros.
static Value *side_by_side(Merger *m, const Siblings *s, bool bias) {
    Dim rows = bias ? 1 : s->at[0].product->in[1]->type.dim[0], columns = 0, at = 0;
    for (int i = 0; i < s->n; i++) columns += s->at[i].product->in[1]->type.dim[1];
    Tensor *t = tensor_new(m->g->arena, type_make(DT_F32, bias ? 1 : 2, bias ? &columns : (Dim[]){ rows, columns }));
    for (int i = 0; i < s->n; i++) {
        const Value *v = bias ? s->at[i].bias : s->at[i].product->in[1];
        Dim n = s->at[i].product->in[1]->type.dim[1];
        for (Dim r = 0; r < rows && v; r++)
            memcpy(
                (float *)t->data + r * columns + at, (const float *)v->data->data + r * n, sizeof(float) * (size_t)n);
        at += n;
    }
    return graph_const(m->g, t, NULL);
}

static bool merge(Merger *m, const Siblings *s, Node *before) {
    Graph *g = m->g;
    g->cursor = before;
    g->loc = s->at[0].product->loc;
    Value *y = b_matmul(g, s->at[0].product->in[0], side_by_side(m, s, false));
    if (y && s->biased) y = b_binary(g, OP_Add, y, side_by_side(m, s, true));
    for (int i = 0; i < s->n_maps && y; i++) {
        Node *n = graph_node(g, s->maps[i]->op, 1, &y, 1);
        n->attrs = s->maps[i]->attrs;
        n->n_attrs = s->maps[i]->n_attrs;
        n->expr = s->maps[i]->expr;
        y = b_finish(n);
    }
    if (!y) return false;
    Dim starts[MAX_RANK] = { 0 };
    int64_t steps[MAX_RANK];
    int last = y->type.rank - 1;
    for (int i = 0; i <= last; i++) steps[i] = 1;
    for (int i = 0; i < s->n; i++) {
        g->loc = s->at[i].last->def->loc;
        Value *part = b_slice(g, y, starts, steps, s->at[i].last->type.dim);
        if (!part) return false;
        starts[last] += s->at[i].last->type.dim[last];
        if (!part->name) part->name = s->at[i].last->name;
        graph_replace(g, s->at[i].last, part);
    }
    return m->changed = true;
}

static void note_fixed(Merger *m, const Graph *body) {
    for (const Node *n = body->first; n; n = n->next) {
        for (int i = 0; i < n->n_in; i++)
            if (n->in[i] && n->in[i]->graph != body) m->fixed[n->in[i]->id] = true;
        for (int i = 0; i < n->n_bodies; i++) note_fixed(m, n->bodies[i]);
    }
    for (int i = 0; i < body->outputs.n; i++) m->fixed[body->outputs.at[i]->id] = true;
}

static void merge_graph(Graph *g, bool *changed) {
    int values = graph_root(g)->value_count + 1;
    Merger m = { .scratch = arena_new(), .g = g };
    m.users = arena_alloc(m.scratch, sizeof(Nodes) * (size_t)values);
    m.fixed = NEW_ARRAY(m.scratch, bool, values);
    VEC(Node *) products = { 0 };
    for (Node *n = g->first; n; n = n->next) {
        for (int i = 0; i < n->n_in; i++)
            if (n->in[i]) VEC_PUSH(m.scratch, m.users[n->in[i]->id], n);
        if (n->op == OP_MatMul) VEC_PUSH(m.scratch, products, n);
    }
    note_fixed(&m, graph_root(g));
    bool *done = NEW_ARRAY(m.scratch, bool, values);
    for (int i = 0; i < products.n; i++) {
        Node *n = products.at[i];
        Siblings s;
        // a slice of this round: the next one looks at it
        if (n->in[0]->id >= values || done[n->in[0]->id] || !is_candidate(&m, n)) continue;
        done[n->in[0]->id] = true;
        find_siblings(&m, n, &s);
        if (s.n > 1) merge(&m, &s, n);
    }
    *changed = *changed || m.changed;
    arena_free(m.scratch);
    g->cursor = NULL;
    for (Node *n = g->first; n; n = n->next)
        for (int i = 0; i < n->n_bodies; i++) merge_graph(n->bodies[i], changed);
}

bool pass_merge_matmul(Graph *g) {
    enum { MAX_ROUNDS = 4 };
    bool any = false, changed = true;
    for (int round = 0; round < MAX_ROUNDS && changed; round++) {
        changed = false;
        merge_graph(g, &changed);
        pass_dce(g);
        any = any || changed;
    }
    return any;
}
