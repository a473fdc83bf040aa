// SPDX-License-Identifier: MIT OR Apache-2.0
// Attention as one kernel: MatMul(softmax(score(MatMul(Q, K^T))), V). In: the second product as the anchor of a
// fusion. Out: a kernel of templates/c/attention.c, in whose memory no matrix of scores ever stands.
//
// The softmax is a composite that the back end claims (cpu/anchors.c); one that no such product reads is a loop over
// its rows. The score is whatever expression of the first product lowers at the element it was computed at: scales,
// masks, biases, soft caps. Q, K, V and the result are read and written with strides that come from lowering their
// elements, so that splitting and joining heads moves nothing. b counts up to three axes; where heads share keys, the
// heads' axis, or the rows where the heads that share are stacked, is split in two until all strides are affine. Blocks
// and holes: cpu/templates_attention.c, and gpu/attention.c for templates/glsl/attention.comp.
#include "attention.h"
#include "schedule.h"

#include <string.h>

// ---------------------------------------------------------------- finding
// Reshapes that keep the rows, and maps, from v back to a softmax.
static bool softmax_behind(Arena *a, Graph *g, const Value *v, Softmax *s) {
    enum { MOST = 8 };
    Node *n = v->data || s->nodes.n > MOST ? NULL : v->def;
    if (!n || n->n_out != 1) return false;
    VEC_PUSH(a, s->nodes, n);
    if (n->op == OP_Softmax) return true;
    const int nodes = s->nodes.n;
    const bool map = op_is_map(n->op);
    for (int i = 0; i < n->n_in && (map || n->op == OP_Reshape); i++) {
        const Type *from = &n->in[i]->type;
        s->nodes.n = nodes;
        s->weighted = s->weighted || map;
        if (from->dtype != v->type.dtype || from->rank < 1 || v->type.rank < 1
            || from->dim[from->rank - 1] != v->type.dim[v->type.rank - 1]
            || type_size(g, from) != type_size(g, &v->type))
            continue;
        if (softmax_behind(a, g, n->in[i], s)) return true;
    }
    return false;
}

bool softmax_before(Arena *a, Graph *g, const Node *product, Softmax *s) {
    *s = (Softmax){ .empty = EMPTY_NAN };
    if (product->op != OP_MatMul || !softmax_behind(a, g, product->in[0], s)) return false;
    const Node *n = s->nodes.at[s->nodes.n - 1];
    s->softmax = n->out[0];
    s->score = n->in[0];
    s->empty = (SoftmaxEmpty)node_int(n, "empty", EMPTY_NAN);
    return s->score->def && !s->score->data;
}

// ---------------------------------------------------------------- building
static Expr *zero(const AttentionBuild *b) { return expr_index(b->k->exprs, 0); }

// ((b0 * B1 + b1) * B2 + b2) * M + m: the row of the matrix of scores
static Expr *row(const AttentionBuild *b) {
    Expr *flat = zero(b);
    for (int i = B0; i <= QUERY; i++)
        flat = expr_binary(b->k->exprs, E_Add,
            expr_binary(b->k->exprs, E_Mul, flat, expr_size(b->k->exprs, b->g, b->size[i])), b->axis[i]);
    return flat;
}

bool attention_axes(AttentionBuild *b, const Type *t, AttentionSplit by, Expr **idx) {
    const int64_t group = by.group;
    int used = B0, last = -1;
    for (int i = 0; i < t->rank - 2; i++) if (t->dim[i] != 1) last = i;
    for (int i = 0; i <= QUERY; i++) b->size[i] = 1;
    for (int i = 0; i < t->rank - 2; i++) {
        if (t->dim[i] == 1) continue;
        bool split = i == last && group > 1;
        if (used + split > B2) return false;
        b->size[used++] = split ? t->dim[i] / group : t->dim[i];
        if (split) b->size[used++] = group;
    }
    if (by.rows > 1 && used > B2) return false;
    const int heads = b->rows_last ? B2 : used;
    if (by.rows > 1) b->size[heads] = by.rows;
    b->size[QUERY] = dim_div(b->g, t->dim[t->rank - 2], by.rows);
    for (int i = 0; i < AXES; i++) {
        VEC_PUSH(b->a, b->k->axes,
            (Axis){ .extent = dim_upper(b->g, b->size[i]), .size = b->size[i], .reduce = i >= PARALLEL });
        b->axis[i] = b->size[i] == 1 ? zero(b) : expr_axis_size(b->k->exprs, b->g, i, b->size[i]);
    }
    used = B0;
    for (int i = 0; i < t->rank - 2; i++) {
        bool split = i == last && group > 1;
        idx[i] = t->dim[i] == 1 ? zero(b) : b->axis[used++];
        if (split)
            idx[i] = expr_binary(b->k->exprs, E_Add,
                expr_binary(b->k->exprs, E_Mul, idx[i], expr_index(b->k->exprs, group)), b->axis[used++]);
    }
    b->line = b->axis[QUERY];
    if (by.rows == 1) return true;
    Expr *of_head = expr_size(b->k->exprs, b->g, b->size[QUERY]);
    b->line = expr_binary(b->k->exprs, E_Add, expr_binary(b->k->exprs, E_Mul, b->axis[heads], of_head), b->line);
    return true;
}

bool attention_batch(const AttentionBuild *b, const Type *t, const Type *product, Expr *const *of, Expr **idx) {
    if (t->rank < 2 || t->rank > product->rank) return false;
    int skip = product->rank - t->rank;
    for (int i = 0; i < t->rank - 2; i++) idx[i] = t->dim[i] == 1 ? zero(b) : of[skip + i];
    return true;
}

bool attention_strides(const AttentionBuild *b, Value *v, Expr *const *idx, Operand *out) {
    return operand_through_views(b->epilogue->plan, b->k, v, idx, out)
        || (b->stored && operand_direct(b->epilogue->plan, b->k, v, idx, out));
}

static bool score_operands(AttentionBuild *b, Operand *q, Operand *k) {
    const Node *n = b->score->anchor->def;
    const Type *t = &n->out[0]->type, *tq = &n->in[0]->type, *tk = &n->in[1]->type;
    Type rows = type_make(DT_F32, t->rank - 1, t->dim);
    Expr *of[MAX_RANK], *idx[MAX_RANK];
    lower_unflat(&b->l, &rows, row(b), of);
    if (!attention_batch(b, tq, t, of, idx)) return false;
    idx[tq->rank - 2] = of[t->rank - 2];
    idx[tq->rank - 1] = b->axis[INNER];
    if (!attention_strides(b, n->in[0], idx, q) || !attention_batch(b, tk, t, of, idx)) return false;
    idx[tk->rank - 2] = b->axis[INNER];
    idx[tk->rank - 1] = b->axis[KEY];
    return attention_strides(b, n->in[1], idx, k);
}

Expr *attention_element(AttentionBuild *b, Fusion *f) {
    Lower l;
    Expr *idx[MAX_RANK], *keys = expr_size(b->k->exprs, b->g, b->size[KEY]);
    lower_init(&l, b->a, b->k, f);
    f->anchor_flat = expr_binary(b->k->exprs, E_Add, expr_binary(b->k->exprs, E_Mul, row(b), keys), b->axis[KEY]);
    lower_unflat(&l, &f->root->type, f->anchor_flat, idx);
    Expr *e = lower_root(&l, f->root, idx);
    return f->violation || f->reduces.n ? NULL : e;
}

static bool has_anchor(const Expr *e) {
    return e && (e->op == E_Acc || has_anchor(e->a[0]) || has_anchor(e->a[1]) || has_anchor(e->a[2]));
}

// Is it the anchor times something: of a sum, that of the terms? chooses: or nothing in the anchor's place.
static bool is_linear(const Expr *e, bool chooses) {
    switch (e->op) {
    case E_Acc: return true;
    case E_Const: return e->c.f == 0;
    case E_Neg: return is_linear(e->a[0], chooses);
    case E_Div: return is_linear(e->a[0], chooses) && !has_anchor(e->a[1]);
    case E_Select:
        return chooses && !has_anchor(e->a[0]) && is_linear(e->a[1], chooses) && is_linear(e->a[2], chooses);
    case E_Mul:
        return (is_linear(e->a[0], chooses) && !has_anchor(e->a[1]))
            || (is_linear(e->a[1], chooses) && !has_anchor(e->a[0]));
    default: return false;
    }
}

static bool draws(const Graph *g, const bool *inside) {
    for (const Node *n = g->first; n; n = n->next)
        if (inside[n->mark] && n->op == OP_RandomUniform) return true;
    return false;
}

// What of the softmax meets the values, where it is not all of it. A row without a score is NaN, which a choice could
// leave out; that of dropout keeps some of it.
static bool lower_weights(AttentionBuild *b, const Softmax *s) {
    if (!s->weighted) return true;
    Fusion weights = { .plan = b->epilogue->plan, .root = b->epilogue->anchor->def->in[0], .anchor = s->softmax,
        .inside = s->inside };
    b->k->attention.pass = attention_element(b, &weights);
    const bool chooses = s->empty != EMPTY_NAN || draws(b->g, s->inside);
    return b->k->attention.pass && is_linear(b->k->attention.pass, chooses);
}

// Where the anchor's element `at` is found in v, which follows it through views and maps; false: nowhere.
static bool follow(const AttentionBuild *b, Lower *l, const Value *v, Expr *const *at, Expr **idx) {
    const Fusion *f = b->epilogue;
    Expr *from[MAX_RANK];
    if (v == f->anchor) {
        memcpy(idx, at, sizeof(Expr *) * (size_t)v->type.rank);
        return true;
    }
    const Node *n = v->def;
    if (!n || v->data || v->graph != f->plan->graph || !f->inside[n->mark]) return false;
    for (int i = 0; i < n->n_in; i++) {
        if (!n->in[i] || !follow(b, l, n->in[i], at, from)) continue;
        const Type *t = &n->in[i]->type;
        int count;
        const int64_t *perm = node_ints(n, "perm", &count);
        if (n->op == OP_Reshape) lower_unflat(l, &v->type, lower_flat(l, t, from), idx);
        else if (n->op == OP_Transpose)
            for (int j = 0; j < v->type.rank; j++) idx[j] = from[perm ? perm[j] : v->type.rank - 1 - j];
        else if (t->rank == v->type.rank && !memcmp(t->dim, v->type.dim, sizeof(Dim) * (size_t)t->rank))
            memcpy(idx, from, sizeof(Expr *) * (size_t)t->rank);
        else return false;
        return true;
    }
    return false;
}

static bool lower_result(AttentionBuild *b, Expr *const *batch, Operand *o) {
    Fusion *f = b->epilogue;
    const Type *t = &f->anchor->type;
    Lower l;
    Expr *at[MAX_RANK], *idx[MAX_RANK];
    lower_init(&l, b->a, b->k, f);
    memcpy(at, batch, sizeof(Expr *) * (size_t)(t->rank - 2));
    at[t->rank - 2] = b->line;
    at[t->rank - 1] = b->axis[DEPTH];
    f->anchor_flat = lower_flat(&l, t, at);
    if (!follow(b, &l, f->root, at, idx)) return false;
    Expr *index = lower_flat(&l, &f->root->type, idx), *e = lower_root(&l, f->root, idx);
    if (f->reduces.n && !f->violation) f->violation = f->reduces.at[0].value;
    VEC_PUSH(b->a, b->k->stores, (Store){ .value = f->root, .index = index, .expr = e });
    return !f->violation && expr_affine_sizes(index, b->g, AXES, o->coef, &o->offset);
}

void attention_shape(AttentionBuild *b, int which, const Operand *o, int row, int column) {
    Attention *s = &b->k->attention;
    memcpy(s->of[which].batch, o->coef, sizeof s->of[which].batch);
    s->of[which].row = o->coef[row];
    s->of[which].col = o->coef[column];
    kernel_sizes(b->a, b->k, b->g, o->offset);
    for (int j = 0; j < 3; j++) kernel_sizes(b->a, b->k, b->g, s->of[which].batch[j]);
    kernel_sizes(b->a, b->k, b->g, s->of[which].row);
    kernel_sizes(b->a, b->k, b->g, s->of[which].col);
}

void attention_sizes(AttentionBuild *b, int operands, const Operand *const *of, SoftmaxEmpty empty) {
    Attention *s = &b->k->attention;
    memcpy(s->batch, b->size, sizeof s->batch);
    s->m = b->size[QUERY];
    s->n = b->size[KEY];
    s->k = b->size[INNER];
    s->d = b->size[DEPTH];
    s->empty = empty;
    for (int i = 0; i < operands; i++) {
        b->k->operand[i] = of[i]->value;
        b->k->operand_at[i] = of[i]->offset;
        kernel_read(b->a, b->k, of[i]->value);
    }
    for (int i = 0; i < AXES; i++) kernel_sizes(b->a, b->k, b->g, b->size[i]);
}

double attention_count(const AttentionBuild *b, int axes) {
    double n = 1;
    for (int i = 0; i < axes; i++) n *= (double)dim_upper(b->g, b->size[i]);
    return n;
}

static Kernel *try_build(Arena *a, const Softmax *s, Fusion *epilogue, Fusion *score, AttentionSplit by, bool stored) {
    const Node *n = epilogue->anchor->def;
    const Type *t = &n->out[0]->type, *tp = &n->in[0]->type, *tv = &n->in[1]->type,
               *ts = &score->anchor->def->in[0]->type;
    AttentionBuild b = { .a = a,
        .g = epilogue->plan->graph,
        .k = kernel_new(a, KERNEL_ATTENTION),
        .epilogue = epilogue,
        .score = score,
        .stored = stored };
    Expr *batch[MAX_RANK], *idx[MAX_RANK];
    Operand q, k, v, o;
    b.size[DEPTH] = t->dim[t->rank - 1];
    b.size[KEY] = tp->dim[tp->rank - 1];
    b.size[INNER] = ts->dim[ts->rank - 1];
    if (!attention_axes(&b, t, by, batch)) return NULL;
    b.k->n_parallel = PARALLEL;
    lower_init(&b.l, a, b.k, score);
    if (!attention_batch(&b, tv, t, batch, idx)) return NULL;
    idx[tv->rank - 2] = b.axis[KEY];
    idx[tv->rank - 1] = b.axis[DEPTH];
    if (!lower_weights(&b, s) || !attention_strides(&b, n->in[1], idx, &v) || !score_operands(&b, &q, &k)
        || !(b.k->attention.score = attention_element(&b, score)) || !lower_result(&b, batch, &o))
        return NULL;
    if (b.k->axes.n != AXES) return NULL;
    attention_sizes(&b, 3, (const Operand *[]){ &q, &k, &v }, s->empty);
    attention_shape(&b, 0, &q, QUERY, INNER);
    attention_shape(&b, 1, &k, KEY, INNER);
    attention_shape(&b, 2, &v, KEY, DEPTH);
    attention_shape(&b, 3, &o, QUERY, DEPTH);
    b.k->result_at = o.offset;
    attention_keys(b.g, b.k, b.axis[KEY], b.size[KEY]);
    b.k->anchor = epilogue->anchor->def;
    const double keys = (double)dim_upper(b.g, b.size[KEY]), inner = (double)dim_upper(b.g, b.size[INNER]);
    b.k->flops = 2 * attention_count(&b, KEY) * keys + attention_count(&b, DEPTH) * keys * (2 * inner + 20);
    return b.k;
}

// Which nodes the kernel computes, for comments and reports.
static void mark_nodes(const Softmax *s, Fusion *epilogue, const Fusion *score, int n_nodes) {
    for (int i = 0; i < n_nodes; i++) epilogue->inside[i] = epilogue->inside[i] || score->inside[i];
    for (int i = 0; i < s->nodes.n; i++) epilogue->inside[s->nodes.at[i]->mark] = true;
    epilogue->inside[score->anchor->def->mark] = true;
}

bool attention_next_split(Graph *g, const Type *t, AttentionSplit *by) {
    enum { MOST = 64 };
    const Dim heads = t->rank > 2 ? t->dim[t->rank - 3] : 1, rows = t->dim[t->rank - 2];
    if (by->rows == 1) {
        while (dim_is_const(heads) && ++by->group <= MOST && by->group <= heads)
            if (heads % by->group == 0) return true;
        by->group = 1;
    }
    while (++by->rows <= MOST && by->rows <= dim_upper(g, rows))
        if (dim_equal(g, dim_mul(g, dim_div(g, rows, by->rows), by->rows), rows)) return true;
    return false;
}

Kernel *kernel_attention(Arena *a, const Softmax *s, Fusion *epilogue, Fusion *score, int n_nodes) {
    const Type *t = &epilogue->anchor->type, *first = &score->anchor->type, *tp = &epilogue->anchor->def->in[0]->type;
    const Dim keys = tp->dim[tp->rank - 1];
    const Backend *back = epilogue->plan->options->machine.backend;
    Graph *g = epilogue->plan->graph;
    if (t->rank < 2 || first->rank < 2 || t->rank != tp->rank
        || score->root->type.dim[score->root->type.rank - 1] != keys || first->dim[first->rank - 1] != keys)
        return NULL;
    if (type_size(g, first) != type_size(g, tp) || !dim_is_const(t->dim[t->rank - 1])
        || !dim_is_const(score->anchor->def->in[0]->type.dim[first->rank - 1]))
        return NULL;
    if (memcmp(t->dim, tp->dim, sizeof(Dim) * (size_t)(t->rank - 1))) return NULL;
    for (int stored = 0; stored < 2; stored++) {
        AttentionSplit by = { 1, 1 };
        do {
            score->violation = epilogue->violation = NULL;
            score->reduces.n = epilogue->reduces.n = 0;
            Kernel *k = try_build(a, s, epilogue, score, by, stored);
            if (epilogue->violation) return NULL;
            if (!k) continue;
            if (back->attends && !back->attends(k, epilogue->plan->options)) return NULL;
            mark_nodes(s, epilogue, score, n_nodes);
            kernel_finish(a, k, epilogue);
            return k;
        } while (attention_next_split(g, t, &by));
    }
    return NULL;
}
