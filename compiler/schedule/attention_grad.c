// SPDX-License-Identifier: MIT OR Apache-2.0
// The backward pass of an attention as one kernel. In: an AttentionGrad, which passes/attention_grad.c has made, and
// the nodes between its operands and the two products behind them, scores and gradients of what met the values. Out: a
// kernel of templates/c/attention_grad.c, in whose memory no matrix of scores ever stands.
//
// Four expressions lie between the products: the score of a product, what of a probability meets the values (dropout),
// the same for its gradient, and the way back from the score's gradient to the product's. Each is lowered with what
// comes before it as its anchor. Operands are read with strides through their views, as attention.c reads them.
#include "attention.h"

// The node's operand, and from there the product that made it through what is computed inside.
static Node *product_inside(const Fusion *f, const Value *v) {
    Node *n = v->def;
    if (!n || v->data || n->op == OP_MatMul) return v->data ? NULL : n;
    for (int i = 0; f->inside[n->mark] && i < n->n_in; i++) {
        Node *found = n->in[i] ? product_inside(f, n->in[i]) : NULL;
        if (found && found->op == OP_MatMul) return found;
    }
    return NULL;
}

// The softmax that the operand p comes from, and its gradient behind ds.
static Node *made_inside(const Fusion *f, const Value *v, Op op) {
    Node *n = v->def;
    if (!n || v->data || !f->inside[n->mark]) return NULL;
    if (n->op == op) return n;
    for (int i = 0; i < n->n_in; i++) {
        Node *found = n->in[i] ? made_inside(f, n->in[i], op) : NULL;
        if (found) return found;
    }
    return NULL;
}

typedef struct Backward { Node *node, *softmax, *back, *scores, *values; } Backward;

// The root as an expression of the anchor at (query, key).
static Expr *between(AttentionBuild *b, Value *anchor, Value *root) {
    Fusion f = *b->epilogue;
    f.anchor = anchor;
    f.root = root;
    f.violation = NULL;
    f.reduces.n = 0;
    return attention_element(b, &f);
}

static bool lower_stages(AttentionBuild *b, const Backward *w) {
    Attention *s = &b->k->attention;
    s->score = between(b, w->scores->out[0], w->softmax->in[0]);
    s->pass = between(b, w->softmax->out[0], w->node->in[1]);
    s->passed = between(b, w->values->out[0], w->back->in[1]);
    s->dscore = between(b, w->back->out[0], w->node->in[0]);
    return s->score && s->pass && s->passed && s->dscore;
}

// Element (batch, row, column) of result `which`, as the node permutes it.
static bool lower_result(AttentionBuild *b, const Backward *w, int which, Expr *const *batch, Expr *row, Expr *column) {
    Value *v = w->node->out[which];
    const int64_t *perm = attention_grad_perm(w->node, which);
    const double scale = attention_grad_scale(w->node, which);
    const int rank = v->type.rank;
    Expr *at[MAX_RANK], *idx[MAX_RANK], *e = expr_acc(b->k->exprs, DT_F32);
    Operand o;
    for (int i = 0; i < rank - 2; i++) at[i] = batch[i];
    at[rank - 2] = row;
    at[rank - 1] = column;
    for (int i = 0; i < rank; i++) idx[i] = at[perm ? perm[i] : i];
    if (!operand_direct(b->epilogue->plan, b->k, v, idx, &o)) return false;
    if (scale != 1) e = expr_binary(b->k->exprs, E_Mul, e, expr_const_f(b->k->exprs, DT_F32, scale));
    VEC_PUSH(b->a, b->k->stores, (Store){ .value = v, .index = lower_flat(&b->l, &v->type, idx), .expr = e });
    attention_shape(b, 4 + which, &o, which ? KEY : QUERY, which == 2 ? DEPTH : INNER);
    return true;
}

static bool operand(AttentionBuild *b, Value *v, Expr *const *batch, const Type *product, Expr *row, Expr *column,
    Operand *to) {
    Expr *idx[MAX_RANK];
    if (!attention_batch(b, &v->type, product, batch, idx)) return false;
    idx[v->type.rank - 2] = row;
    idx[v->type.rank - 1] = column;
    return attention_strides(b, v, idx, to);
}

static Kernel *try_build(Arena *a, const Backward *w, Fusion *inside, AttentionSplit by, bool stored) {
    const Node *n = w->node;
    const Type *t = &n->in[0]->type, *tq = &n->in[2]->type, *ty = &n->in[4]->type;
    AttentionBuild b = { .a = a,
        .g = inside->plan->graph,
        .k = kernel_new(a, KERNEL_ATTENTION_GRAD),
        .epilogue = inside,
        .score = inside,
        .stored = stored,
        .rows_last = true };
    Expr *batch[MAX_RANK];
    Operand q, k, v, y;
    b.size[DEPTH] = ty->dim[ty->rank - 1];
    b.size[KEY] = t->dim[t->rank - 1];
    b.size[INNER] = tq->dim[tq->rank - 1];
    if (!attention_axes(&b, t, by, batch)) return NULL;
    b.k->n_parallel = PARALLEL;
    lower_init(&b.l, a, b.k, inside);
    if (!operand(&b, n->in[2], batch, t, b.line, b.axis[INNER], &q)
        || !operand(&b, n->in[3], batch, t, b.axis[INNER], b.axis[KEY], &k)
        || !operand(&b, w->values->in[1], batch, t, b.axis[DEPTH], b.axis[KEY], &v)
        || !operand(&b, n->in[4], batch, t, b.line, b.axis[DEPTH], &y) || !lower_stages(&b, w))
        return NULL;
    if (b.k->axes.n != AXES) return NULL;
    attention_sizes(&b, 4, (const Operand *[]){ &q, &k, &v, &y }, (SoftmaxEmpty)node_int(w->softmax, "empty", 0));
    attention_shape(&b, 0, &q, QUERY, INNER);
    attention_shape(&b, 1, &k, KEY, INNER);
    attention_shape(&b, 2, &v, KEY, DEPTH);
    attention_shape(&b, 3, &y, QUERY, DEPTH);
    if (!lower_result(&b, w, 0, batch, b.line, b.axis[INNER])
        || !lower_result(&b, w, 1, batch, b.axis[KEY], b.axis[INNER])
        || !lower_result(&b, w, 2, batch, b.axis[KEY], b.axis[DEPTH]))
        return NULL;
    b.k->attention.shared = by.rows > 1;
    attention_keys(b.g, b.k, b.axis[KEY], b.size[KEY]);
    b.k->anchor = w->node;
    b.k->flops = attention_count(&b, DEPTH) * (double)dim_upper(b.g, b.size[KEY])
        * (6 * (double)dim_upper(b.g, b.size[INNER]) + 4 * (double)dim_upper(b.g, b.size[DEPTH]) + 30);
    return b.k;
}

// The products behind, whose operands the kernel reads itself.
static bool find(const Fusion *inside, Node *n, Backward *w) {
    *w = (Backward){ .node = n,
        .softmax = made_inside(inside, n->in[1], OP_Softmax),
        .back = made_inside(inside, n->in[0], OP_SoftmaxGrad) };
    if (!w->softmax || !w->back) return false;
    w->scores = product_inside(inside, w->softmax->in[0]);
    w->values = product_inside(inside, w->back->in[1]);
    return w->scores && w->values;
}

Kernel *kernel_attention_grad(Arena *a, Fusion *inside, Node *n) {
    Backward w;
    Graph *g = inside->plan->graph;
    if (!find(inside, n, &w)) return NULL;
    for (int stored = 0; stored < 2; stored++) {
        AttentionSplit by = { 1, 1 };
        do {
            Kernel *k = try_build(a, &w, inside, by, stored);
            if (!k) continue;
            inside->inside[w.scores->mark] = inside->inside[w.values->mark] = true;
            kernel_finish(a, k, inside);
            return k;
        } while (attention_next_split(g, &n->in[0]->type, &by));
    }
    return NULL;
}
