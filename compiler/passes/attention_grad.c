// SPDX-License-Identifier: MIT OR Apache-2.0
// The backward pass of an attention becomes one operation, which computes the scores again. Contract: gradients differ
// in rounding; the matrix of probabilities is read by the forward product alone, so that nothing has to keep it.
//
//   before   %3: f32[2,4,64,64] = Softmax(%2)           %2: scale, mask, ... of MatMul(%q, %k)
//            %4: f32[2,4,64,16] = MatMul(%3, %v)
//            ...
//            %6: f32[2,4,64,64] = MatMul(%dy, %vt)
//            %7: f32[2,4,16,64] = MatMul(%3 transposed, %dy)                    by values
//            %8: f32[2,4,64,64] = Mul(%3, %6 - sum(%3 * %6))
//            %9: f32[2,4,64,16] = MatMul(%8, %k transposed)                     by queries
//            %10: f32[2,4,64,16] = MatMul(%8 transposed, %q)                    by keys
//   after    %12: f32[2,4,64,64] = MatMul(%q, %k) {again=1}
//            %13: f32[2,4,64,64] = Softmax(%12)
//            %14: f32[2,4,64,64] = SoftmaxGrad(%13, %6)
//            %15, %16, %17 = AttentionGrad(%14, %13, %q, %k, %dy)
//
// Maps may lie between products and softmax, dropout between softmax and values. Whatever of all this somebody else
// reads, too, as the gradient of a bias on the scores does, leaves the attention as it is. A permutation and a number
// behind a result, as splitting heads and scaling queries leave there, become the operation's.
#include "passes.h"

#include <string.h>

enum { MOST_MAPS = 16 };
typedef VEC(Node *) Nodes;
typedef struct Finder {
    Arena *scratch;
    Graph *g;
    Nodes *users;                                       // by value id
    bool *fixed;                                        // by value id: an output, or a body reads it
    int n_values;
} Finder;

// Maps and reshapes from a product, the last one first, or to one.
typedef struct Path { Node *product, *node[MOST_MAPS]; int n; } Path;

// What the forward pass has, then the backward one. p: the softmax's, weights: what of it meets the values; ds: what of
// its gradient meets keys and queries.
typedef struct Found {
    Node *softmax, *back, *dot;
    Path scores, values, dropped, chain;
    Value *weights, *ds, *dp;
    Node *by[3];                                        // the products by queries, keys and values
    bool turned[3];                                     // whose result is transposed
} Found;

// ---------------------------------------------------------------- finding
static const Nodes *users_of(const Finder *f, const Value *v) { return &f->users[v->id]; }

static bool same_size(Graph *g, const Value *x, const Value *y) {
    return type_size(g, &x->type) == type_size(g, &y->type);
}

static bool in_graph(const Finder *f, const Value *v) {
    return v && v->def && !v->data && v->graph == f->g && v->id < f->n_values;
}

// Does nobody but so many nodes read it?
static bool read_by(const Finder *f, const Value *v, int n) {
    return v->id < f->n_values && users_of(f, v)->n == n && !f->fixed[v->id];
}

static bool keeps_elements(const Node *n) {
    return n->n_out == 1 && !n->n_bodies && ((op_is_map(n->op) && n->op != OP_Cast) || n->op == OP_Reshape);
}

// The one product that v is made of, element by element; what lies between is read by nobody else.
static bool product_behind(const Finder *f, const Value *v, Path *p) {
    int found = 0;
    if (!in_graph(f, v)) return false;
    Node *n = v->def;
    if (n->op == OP_MatMul) {
        p->product = n;
        return true;
    }
    if (!keeps_elements(n)) return false;
    const int at = p->n;
    Path behind = *p;
    if (at == MOST_MAPS) return false;
    behind.node[behind.n++] = n;
    for (int i = 0; i < n->n_in; i++) {
        Path one = behind;
        if (!same_size(f->g, n->in[i], v) || !product_behind(f, n->in[i], &one)) continue;
        if (!read_by(f, n->in[i], 1)) return false;
        *p = one;
        found++;
    }
    return found == 1;
}

static bool is_last_sum(const Node *n) {
    int count;
    const int64_t *axes = node_ints(n, "axes", &count);
    return n->op == OP_ReduceSum && count == 1 && axes[0] == n->in[0]->type.rank - 1 && node_int(n, "keepdims", 1);
}

// p * (dp - sum(p * dp))
static bool is_softmax_grad(const Finder *f, Node *n, const Value *p, Found *to) {
    if (n->op != OP_Mul) return false;
    const Value *side = n->in[n->in[0] == p];
    if (!in_graph(f, side) || side->def->op != OP_Sub || !in_graph(f, side->def->in[1])) return false;
    Node *sub = side->def, *sum = sub->in[1]->def, *dot = is_last_sum(sum) ? sum->in[0]->def : NULL;
    Value *dp = sub->in[0];
    if (!dot || dot->op != OP_Mul || !((dot->in[0] == p && dot->in[1] == dp) || (dot->in[1] == p && dot->in[0] == dp)))
        return false;
    if (!read_by(f, side, 1) || !read_by(f, sub->in[1], 1) || !read_by(f, sum->in[0], 1) || !read_by(f, dp, 2))
        return false;
    to->back = n;
    to->dot = dot;
    to->dp = dp;
    return true;
}

// From v through maps that nobody else follows, as long as one node but `not` reads it; the last value.
static Value *follow(const Finder *f, Value *v, const Found *but, Path *p) {
    for (;;) {
        Node *next = NULL;
        int others = 0;
        if (!in_graph(f, v) || f->fixed[v->id]) return NULL;
        for (int i = 0; i < users_of(f, v)->n; i++) {
            Node *n = users_of(f, v)->at[i];
            if (n == but->back || n == but->dot) continue;
            next = n;
            others++;
        }
        if (others != 1 || !keeps_elements(next) || !same_size(f->g, next->out[0], v)) return v;
        if (p->n == MOST_MAPS) return NULL;
        p->node[p->n++] = next;
        v = next->out[0];
    }
}

static bool swaps_last(const Node *n) {
    int rank;
    const int64_t *perm = node_ints(n, "perm", &rank);
    if (n->op != OP_Transpose || rank < 2 || perm[rank - 1] != rank - 2 || perm[rank - 2] != rank - 1) return false;
    for (int i = 0; i < rank - 2; i++)
        if (perm[i] != i) return false;
    return true;
}

// A value as the transpose of another, with its last axes swapped if asked for.
static const Value *seen_through(const Value *v, bool swap, int *perm) {
    const int rank = v->type.rank;
    for (int i = 0; i < rank; i++) perm[i] = i;
    if (swap) perm[rank - 1] = rank - 2;
    if (swap) perm[rank - 2] = rank - 1;
    while (v->def && !v->data && v->def->op == OP_Transpose) {
        int count;
        const int64_t *of = node_ints(v->def, "perm", &count);
        if (!of) return v;
        for (int i = 0; i < rank; i++) perm[i] = (int)of[perm[i]];
        v = v->def->in[0];
    }
    return v;
}

// Are they the same matrices, the second transposed?
static bool same_matrices(const Value *x, const Value *y, bool transposed) {
    int a[MAX_RANK], b[MAX_RANK];
    if (x->type.rank != y->type.rank || x->type.rank < 2) return false;
    return seen_through(x, false, a) == seen_through(y, transposed, b)
        && !memcmp(a, b, sizeof *a * (size_t)x->type.rank);
}

// Is n the product x^T y, where `made` is x, or its transpose y^T x?
static bool is_product_of(const Finder *f, Node *n, const Value *made, const Value *y, bool *turned) {
    if (n->op == OP_MatMul && n->in[1] == made) {
        *turned = true;
        return same_matrices(n->in[0], y, true);
    }
    if (!swaps_last(n) || !read_by(f, n->out[0], 1)) return false;
    const Node *product = users_of(f, n->out[0])->at[0];
    *turned = false;
    return product->op == OP_MatMul && product->in[0] == n->out[0] && same_matrices(product->in[1], y, false);
}

static Node *product_after(const Finder *f, Node *n) { return n->op == OP_MatMul ? n : users_of(f, n->out[0])->at[0]; }

// Those who read `weights`: the forward product, where somebody wants its result, and the gradient of the values.
static bool find_values(const Finder *f, Found *to) {
    const Nodes *u = users_of(f, to->weights);
    const Value *dy = to->values.product->in[0];
    bool forward = false;
    for (int i = 0; i < u->n; i++) {
        Node *n = u->at[i];
        bool turned;
        if (n == to->back || n == to->dot) continue;
        if (n->op == OP_MatMul && n->in[0] == to->weights && !forward) {
            forward = true;
            if (!same_matrices(n->in[1], to->values.product->in[1], true)) return false;
        } else if (!to->by[2] && is_product_of(f, n, to->weights, dy, &turned)) {
            to->by[2] = product_after(f, n);
            to->turned[2] = turned;
        } else return false;
    }
    return to->by[2] != NULL;
}

// Those who read `ds`: the gradients of queries and keys.
static bool find_scores(const Finder *f, Found *to) {
    const Nodes *u = users_of(f, to->ds);
    const Value *q = to->scores.product->in[0], *k = to->scores.product->in[1];
    if (!read_by(f, to->ds, 2)) return false;
    for (int i = 0; i < u->n; i++) {
        Node *n = u->at[i];
        if (!to->by[0] && n->op == OP_MatMul && n->in[0] == to->ds && same_matrices(n->in[1], k, true)) to->by[0] = n;
        else if (!to->by[1] && is_product_of(f, n, to->ds, q, &to->turned[1])) to->by[1] = product_after(f, n);
        else return false;
    }
    return to->by[0] && to->by[1];
}

static bool same_shape(const Value *x, const Value *y) { return type_equal(&x->type, &y->type); }

// Do the operation's results have the shapes of those that it stands for? b_swap is what `turned` undoes.
static bool shapes_fit(const Found *m) {
    const Type *t = &m->ds->type;
    const Value *s = m->scores.product->out[0];
    if (!same_shape(s, m->weights) || !same_shape(s, m->values.product->out[0]) || !same_shape(s, m->ds)) return false;
    for (int i = 0; i < 3; i++) {
        const Type *y = &m->by[i]->out[0]->type;
        if (y->rank != t->rank || memcmp(y->dim, t->dim, sizeof(Dim) * (size_t)(t->rank - 2))) return false;
    }
    return true;
}

// All that the operation takes is there before the product by values, the first of the backward nodes.
static bool comes_after(const Found *m) {
    const int first = m->values.product->mark;
    const Path *paths[] = { &m->values, &m->chain };
    for (int i = 0; i < 3; i++)
        if (m->by[i]->mark < first) return false;
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < paths[i]->n; j++) {
            const Node *n = paths[i]->node[j];
            for (int k = 0; k < n->n_in; k++) {
                const Value *v = n->in[k];
                bool inside = v == m->values.product->out[0] || v == m->back->out[0];
                for (int l = 0; l < paths[i]->n; l++) inside = inside || v == paths[i]->node[l]->out[0];
                if (!inside && v->def && !v->data && v->graph == n->graph && v->def->mark > first) return false;
            }
        }
    return true;
}

// Is v made of places and constants alone?
static bool is_of_places(const Value *v, int look) {
    const Node *n = v->def;
    if (v->data || (n && n->op == OP_Iota)) return true;
    if (!n || !look || (!op_is_map(n->op) && !op_is_view(n->op))) return false;
    for (int i = 0; i < n->n_in; i++) if (!is_of_places(n->in[i], look - 1)) return false;
    return true;
}

// Do the scores depend on where they stand: which keys a query sees?
static bool is_masked(const Found *m) {
    enum { LOOK = 8 };
    for (int i = 0; i < m->scores.n; i++) {
        const Node *n = m->scores.node[i];
        for (int j = 0; j < n->n_in; j++)
            if (n->in[j]->type.rank > 1 && is_of_places(n->in[j], LOOK)) return true;
    }
    return false;
}

static bool find(const Finder *f, Node *n, const Options *o, Found *to) {
    *to = (Found){ .softmax = n };
    Value *p = n->out[0];
    const int last = p->type.rank - 1;
    if (n->op != OP_Softmax || p->type.dtype != DT_F32 || last < 1 || node_int(n, "axis", last) != last) return false;
    if (!in_graph(f, p) || f->fixed[p->id] || !read_by(f, n->in[0], 1)) return false;
    for (int i = 0; i < users_of(f, p)->n && !to->back; i++) is_softmax_grad(f, users_of(f, p)->at[i], p, to);
    if (!to->back || !product_behind(f, n->in[0], &to->scores) || !product_behind(f, to->dp, &to->values)) return false;
    if (!read_by(f, to->scores.product->out[0], 1)) return false;
    if (!(to->weights = follow(f, p, to, &to->dropped))) return false;
    if (!(to->ds = follow(f, to->back->out[0], to, &to->chain))) return false;
    if (!find_values(f, to) || !find_scores(f, to) || !shapes_fit(to) || !comes_after(to)) return false;
    const Type *dy = &to->values.product->in[0]->type;
    const Dim depth = dy->dim[dy->rank - 1];
    return dim_is_const(depth) && o->machine.backend->attends_back(to->scores.product, depth, is_masked(to), o);
}

// ---------------------------------------------------------------- building
typedef struct Renamed { const Value *from; Value *to; } Renamed;

// The path's nodes once more, behind `to` in the place of `from`; forward: they are in running order.
static Value *again(Graph *g, const Path *p, bool forward, Value *from, Value *to) {
    Renamed renamed[MOST_MAPS + 1] = { { from, to } };
    int known = 1;
    for (int i = 0; i < p->n && to; i++) {
        Node *n = p->node[forward ? i : p->n - 1 - i];
        Value **in = NEW_ARRAY(g->arena, Value *, n->n_in + 1);
        for (int j = 0; j < n->n_in; j++) {
            in[j] = n->in[j];
            for (int k = 0; k < known; k++) if (in[j] == renamed[k].from) in[j] = renamed[k].to;
        }
        Node *copy = node_like(g, n, in);
        to = copy && node_infer(copy) ? copy->out[0] : NULL;
        renamed[known++] = (Renamed){ n->out[0], to };
    }
    return to;
}

static Node *operation(Graph *g, const Found *m) {
    Node *product = node_like(g, m->scores.product, m->scores.product->in);
    node_set_int(product, "again", 1);
    if (!node_infer(product)) return NULL;
    Value *score = again(g, &m->scores, false, m->scores.product->out[0], product->out[0]);
    Node *softmax = score ? node_like(g, m->softmax, &score) : NULL;
    if (!softmax || !node_infer(softmax)) return NULL;
    Value *p = softmax->out[0], *dy = m->values.product->in[0];
    Value *dp = again(g, &m->values, false, m->values.product->out[0], m->values.product->out[0]);
    Value *weights = again(g, &m->dropped, true, m->softmax->out[0], p);
    Value *back = b_op(g, OP_SoftmaxGrad, 2, (Value *[]){ p, dp });
    Value *ds = back ? again(g, &m->chain, true, m->back->out[0], back) : NULL;
    if (!weights || !ds) return NULL;
    return graph_node(g, OP_AttentionGrad, 5,
        (Value *[]){ ds, weights, product->in[0], product->in[1], dy }, 3);
}

// A number that v alone is multiplied by.
static bool is_scaled(const Node *n, double *number) {
    if (n->n_in != 2 || n->n_out != 1 || n->out[0]->type.dtype != DT_F32) return false;
    const Expr *e = n->expr;
    bool product = n->op == OP_Mul
        || (n->op == OP_Map && e && e->op == E_Mul && e->a[0]->op == E_Arg && e->a[1]->op == E_Arg
            && e->a[0] != e->a[1]);
    for (int i = 0; i < 2 && product; i++)
        if (const_splat(n->in[i], number) && type_equal(&n->in[1 - i]->type, &n->out[0]->type)) return true;
    return false;
}

// Result i of the operation takes the place of a product, and of what moves or scales it alone.
static Value *take_over(const Finder *f, const Found *m, Node *op, int i) {
    Value *old = m->by[i]->out[0];
    const int rank = old->type.rank;
    int64_t perm[MAX_RANK], before[MAX_RANK];
    double scale;
    bool moved = m->turned[i];
    for (int j = 0; j < rank; j++) perm[j] = j;
    if (moved) perm[rank - 1] = rank - 2;
    if (moved) perm[rank - 2] = rank - 1;
    if (read_by(f, old, 1) && is_scaled(users_of(f, old)->at[0], &scale)) {
        node_set_float(op, arena_printf(f->g->arena, "scale%d", i), scale);
        old = users_of(f, old)->at[0]->out[0];
    }
    if (read_by(f, old, 1) && users_of(f, old)->at[0]->op == OP_Transpose) {
        const Node *transpose = users_of(f, old)->at[0];
        int count;
        const int64_t *by = node_ints(transpose, "perm", &count);
        memcpy(before, perm, sizeof perm);
        for (int j = 0; j < rank; j++) perm[j] = before[by ? by[j] : rank - 1 - j];
        moved = true;
        old = transpose->out[0];
    }
    if (moved) node_set_ints(op, arena_printf(f->g->arena, "perm%d", i), perm, rank);
    return old;
}

static bool replace(const Finder *f, const Found *m) {
    Graph *g = f->g;
    Value *old[3];
    g->cursor = m->values.product->next;
    g->loc = m->values.product->loc;
    Node *op = operation(g, m);
    for (int i = 0; op && i < 3; i++) old[i] = take_over(f, m, op, i);
    if (!op || !node_infer(op)) bug("the backward pass of an attention cannot be built");
    for (int i = 0; i < 3; i++) {
        if (!type_equal(&old[i]->type, &op->out[i]->type)) bug("a gradient of attention has another shape");
        graph_replace(g, old[i], op->out[i]);
    }
    g->cursor = NULL;
    return true;
}

// ---------------------------------------------------------------- the pass
static void use(Finder *f, Value *v, Node *by) {
    if (!v || v->id >= f->n_values) return;
    if (!by || by->graph != f->g) f->fixed[v->id] = true;
    else VEC_PUSH(f->scratch, f->users[v->id], by);
}

static void use_all(Finder *f, Graph *g) {
    int at = 0;
    for (Node *n = g->first; n; n = n->next) {
        if (g == f->g) n->mark = at++;
        for (int i = 0; i < n->n_in; i++) {
            bool twice = false;
            for (int j = 0; j < i; j++) twice = twice || n->in[j] == n->in[i];
            if (!twice) use(f, n->in[i], n);
        }
        for (int i = 0; i < n->n_bodies; i++) use_all(f, n->bodies[i]);
    }
    for (int i = 0; i < g->outputs.n; i++) use(f, g->outputs.at[i], NULL);
}

bool pass_attention_grad(Graph *g, const Options *o) {
    Finder f = { .scratch = arena_new(), .g = g, .n_values = graph_root(g)->value_count };
    bool changed = false;
    f.users = NEW_ARRAY(f.scratch, Nodes, f.n_values + 1);
    f.fixed = NEW_ARRAY(f.scratch, bool, f.n_values + 1);
    use_all(&f, g);
    for (Node *n = g->first, *next; n; n = next) {
        Found m;
        next = n->next;
        if (n->op == OP_Softmax && find(&f, n, o, &m)) changed = replace(&f, &m);
    }
    arena_free(f.scratch);
    return changed && pass_dce(g);
}
