// SPDX-License-Identifier: MIT OR Apache-2.0
// Builders of ensembles of decision trees: forests as constant tables.
//
// In: a Forest, its nodes and leaves listed. Out: for each (row, tree) pair the number of its node, advanced by one
// level in each step, all pairs at once: gather the node's feature and threshold, the row's value, compare, gather the
// child. Leaves lead to themselves, so after as many steps as the deepest tree has levels every pair is at a leaf; the
// leaves' weights are then combined over the trees in order.
//
// The idea: every comparison becomes `x <= hi` (or lo <= x <= hi) with three children, for false, true and NaN;
// leaves come first in the tables.
#include "build/build.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define MAX_DEPTH 4096
#define MAX_TABLE ((int64_t)1 << 22)            // elements of the table of leaves, and for each weight of the file more
#define MAX_SPARSE 4096

bool forest_fail(const Forest *f, const char *what) {
    graph_fail(f->g, "%s", what);
    return false;
}

// ---------------------------------------------------------------- checks and numbering

static bool forest_check(const Forest *f) {
    const Dim features = f->x->type.dim[1];
    const int count = f->nodes.n;
    for (int i = 0; i < count; i++) {
        const TreeNode *t = &f->nodes.at[i];
        if (t->mode == TREE_LEAF) continue;
        if (t->feature < 0 || t->feature > INT32_MAX || (dim_is_const(features) && t->feature >= features))
            return forest_fail(f, "a node tests a feature that the input lacks");
        for (int k = 0; k < 2; k++)
            if (t->child[k] < 0 || t->child[k] >= count)
                return forest_fail(f, "a node has a child that does not exist");
    }
    for (int i = 0; i < f->roots.n; i++)
        if (f->roots.at[i] < 0 || f->roots.at[i] >= count) return forest_fail(f, "a tree's root does not exist");
    for (int i = 0; i < f->weights.n; i++)
        if (f->weights.at[i].target < 0 || f->weights.at[i].target >= f->targets)
            return forest_fail(f, "a leaf has a target that does not exist");
    return f->roots.n > 0 || forest_fail(f, "there is no tree");
}

// Numbers the nodes, leaves first, and finds the longest way from a root by removing nodes that nothing leads to;
// what remains is a circle.
static bool forest_order(Forest *f) {
    Arena *a = f->g->arena;
    int count = f->nodes.n, *parents = NEW_ARRAY(a, int, count + 1), *depth = NEW_ARRAY(a, int, count + 1),
        *queue = NEW_ARRAY(a, int, count + 1), n = 0;
    int64_t leaf = 0, inner = 0;
    f->place = NEW_ARRAY(a, int64_t, count + 1);
    for (int i = 0; i < count; i++) {
        const TreeNode *t = &f->nodes.at[i];
        f->n_leaves += t->mode == TREE_LEAF;
        for (int k = 0; k < 2 && t->mode != TREE_LEAF; k++) parents[t->child[k]]++;
    }
    for (int i = 0; i < count; i++) f->place[i] = f->nodes.at[i].mode == TREE_LEAF ? leaf++ : f->n_leaves + inner++;
    for (int i = 0; i < count; i++)
        if (!parents[i]) queue[n++] = i;
    for (int i = 0; i < n; i++) {
        const TreeNode *t = &f->nodes.at[queue[i]];
        for (int k = 0; k < 2 && t->mode != TREE_LEAF; k++) {
            int64_t child = t->child[k];
            if (depth[child] < depth[queue[i]] + 1) depth[child] = depth[queue[i]] + 1;
            if (f->depth < depth[child]) f->depth = depth[child];
            if (!--parents[child]) queue[n++] = (int)child;
        }
    }
    if (n < count) return forest_fail(f, "the nodes of a tree form a circle");
    return f->depth <= MAX_DEPTH || forest_fail(f, "a tree is too deep");
}

// ---------------------------------------------------------------- the walk

typedef struct Tables { Value *feature, *lo, *hi, *child; int64_t ways; bool strict; } Tables;

static double below(double v, DType d) {
    if (v == -INFINITY) return NAN;             // nothing is less
    if (v == 0) return d == DT_F64 ? -DBL_MIN : -(double)FLT_MIN;        // GPUs may take subnormal numbers for 0
    return d == DT_F64 ? nextafter(v, -INFINITY) : (double)nextafterf((float)v, -INFINITY);
}

// A comparison as an interval [lo, hi] and where x lies for child[in]. strict: hi itself is outside, in all nodes.
static int interval(const TreeNode *t, DType d, bool strict, double *lo, double *hi) {
    bool open = t->mode == TREE_LT || t->mode == TREE_GTE, point = t->mode == TREE_EQ || t->mode == TREE_NEQ;
    *lo = point ? t->split : -INFINITY;
    *hi = open && !strict ? below(t->split, d) : t->split;
    return t->mode == TREE_GTE || t->mode == TREE_GT || t->mode == TREE_NEQ ? 0 : 1;
}

static Tables forest_tables(const Forest *f) {
    Graph *g = f->g;
    bool strict = true, points = false, missing = false;
    for (int i = 0; i < f->nodes.n; i++) {
        const TreeNode *t = &f->nodes.at[i];
        if (t->mode == TREE_LEAF) continue;
        strict &= t->mode == TREE_LT || t->mode == TREE_GTE;
        points |= t->mode == TREE_EQ || t->mode == TREE_NEQ;
        missing |= t->nan_true
            != (t->mode == TREE_NEQ || t->mode == TREE_GTE || t->mode == TREE_GT); // NaN is in no interval
    }
    const int64_t count = f->nodes.n, ways = missing ? 3 : 2;
    Tensor *feature = tensor_new(g->arena, type_make(DT_I32, 1, (Dim[]){ count })),
           *child = tensor_new(g->arena, type_make(DT_I32, 1, (Dim[]){ count * ways }));
    Tensor *lo = tensor_new(g->arena, type_make(f->dtype, 1, (Dim[]){ count })), *hi = tensor_new(g->arena, lo->type);
    for (int i = 0; i < f->nodes.n; i++) {
        const TreeNode *t = &f->nodes.at[i];
        int64_t at = f->place[i];
        double from = 0, to = 0;
        int in = t->mode == TREE_LEAF ? 1 : interval(t, f->dtype, strict, &from, &to);
        for (int k = 0; k < ways; k++) {
            bool hold = k == 2 ? t->nan_true : k == in;
            tensor_set_i(child, at * ways + k, t->mode == TREE_LEAF ? at : f->place[t->child[hold]]);
        }
        tensor_set_i(feature, at, t->feature);
        tensor_set_f(lo, at, from);
        tensor_set_f(hi, at, to);
    }
    return (Tables){ graph_const(g, feature, NULL), points ? graph_const(g, lo, NULL) : NULL, graph_const(g, hi, NULL),
        graph_const(g, child, NULL), ways, strict };
}

// One level down: each row's and tree's node to its child. The roots are the same for all rows, [count]; below them
// [N, count].
static Value *forest_step(Graph *g, const Forest *f, const Tables *t, const char *text, Value *at) {
    if (!at) return NULL;
    Value *feature = b_gather(g, t->feature, at, 0), *hi = b_gather(g, t->hi, at, 0),
          *lo = t->lo ? b_gather(g, t->lo, at, 0) : hi;
    Value *v = at->type.rank == 1 ? b_gather(g, f->x, feature, 1) : b_gather_elements(g, f->x, feature, 1);
    return v && hi && lo ? b_gather(g, t->child, B_MAP(g, text, "s v hi lo", at, v, hi, lo), 0) : NULL;
}

// The leaf's number for each row and each of the given trees: i32 [N, count]. A few levels are written out, more are
// a loop.
static Value *forest_walk(const Forest *f, int count, const int64_t *roots) {
    enum { WRITTEN_OUT = 16 };
    Graph *g = f->g;
    const Tables t = forest_tables(f);
    Tensor *start = tensor_new(g->arena, type_make(DT_I32, 1, (Dim[]){ count }));
    for (int i = 0; i < count; i++) tensor_set_i(start, i, f->place[roots[i]]);
    const char *test = t.lo ? "v <= hi && v >= lo" : t.strict ? "v < hi" : "v <= hi";
    const char *text = arena_printf(
        g->arena, t.ways == 3 ? "isnan(v) ? s * 3 + 2 : %s ? s * 3 + 1 : s * 3" : "%s ? s * 2 + 1 : s * 2", test);
    Value *at = graph_const(g, start, NULL);
    int written = f->depth <= WRITTEN_OUT ? f->depth : 1;
    for (int i = 0; i < written; i++) at = forest_step(g, f, &t, text, at);
    if (at && written < f->depth) {
        Value *in[3], *out[2];
        Graph *body = b_loop_body(g, "level", 1, &at, in);
        out[0] = b_unary(body, OP_Identity, in[1]);
        out[1] = forest_step(body, f, &t, text, in[2]);
        Node *loop = b_loop(g, body, b_scalar(g, DT_I64, f->depth - written), 1, &at, out);
        at = loop ? loop->out[0] : NULL;
    }
    return at ? b_expand(g, at, 2, (Dim[]){ f->x->type.dim[0], count }) : NULL;
}

// ---------------------------------------------------------------- the sum

static bool is_extreme(const Forest *f) { return !strcmp(f->aggregate, "MIN") || !strcmp(f->aggregate, "MAX"); }

static double no_weight(const Forest *f) {
    return !is_extreme(f) ? 0 : !strcmp(f->aggregate, "MIN") ? INFINITY : -INFINITY;
}

static Value *combine(const Forest *f, Value *v, int axis) {
    Op op = !is_extreme(f) ? OP_ReduceSum : !strcmp(f->aggregate, "MIN") ? OP_ReduceMin : OP_ReduceMax;
    v = b_reduce(f->g, op, v, 1, (int64_t[]){ axis }, false);
    if (v && is_extreme(f)) return B_MAP(f->g, "isinf(x) ? 0 : x", "x", v);
    if (v && !strcmp(f->aggregate, "AVERAGE"))
        return B_MAP(f->g, "x / y", "x y", v, b_like(f->g, v, f->roots.n));
    return v;
}

// The only target of each tree's leaves; false when a tree has several or shares nodes with another.
static bool one_target_each(const Forest *f, int64_t *target) {
    int count = f->nodes.n;
    int64_t *leaf = NEW_ARRAY(f->g->arena, int64_t, count + 1), *stack = NEW_ARRAY(f->g->arena, int64_t, count + 2);
    bool *seen = NEW_ARRAY(f->g->arena, bool, count + 1);
    for (int i = 0; i < count; i++) leaf[i] = -1;
    for (int i = 0; i < f->weights.n; i++) {
        int64_t *at = &leaf[f->weights.at[i].node];
        if (*at >= 0 && *at != f->weights.at[i].target) return false;
        *at = f->weights.at[i].target;
    }
    for (int i = 0; i < f->roots.n; i++) {
        int top = 0;
        target[i] = -1;
        for (stack[top++] = f->roots.at[i]; top;) {
            int64_t at = stack[--top];
            if (seen[at] && f->nodes.at[at].mode == TREE_LEAF) continue;
            if (seen[at]) return false;
            seen[at] = true;
            if (f->nodes.at[at].mode != TREE_LEAF) {
                if (top + 2 > count) return false;
                stack[top++] = f->nodes.at[at].child[0];
                stack[top++] = f->nodes.at[at].child[1];
            } else if (leaf[at] >= 0) {
                if (target[i] >= 0 && target[i] != leaf[at]) return false;
                target[i] = leaf[at];
            }
        }
        if (target[i] < 0) target[i] = 0;
    }
    return true;
}

// A weight per (leaf, target) or, when `flat`, per leaf.
static Value *weight_table(const Forest *f, bool flat) {
    const int64_t columns = flat ? 1 : f->targets, most = MAX_TABLE + MAX_SPARSE * (int64_t)f->weights.n;
    if (f->n_leaves && columns > most / f->n_leaves) return graph_fail(f->g, "the table of leaves is too large");
    Tensor *t = tensor_new(f->g->arena, type_make(f->dtype, flat ? 1 : 2, (Dim[]){ f->n_leaves, columns }));
    const double none = no_weight(f);
    for (int64_t i = 0; i < f->n_leaves * columns; i++) tensor_set_f(t, i, none);
    for (int i = 0; i < f->weights.n; i++) {
        const LeafWeight *w = &f->weights.at[i];
        int64_t at = f->place[w->node] * columns + (flat ? 0 : w->target);
        double had = tensor_get_f(t, at);
        tensor_set_f(t, at, had == none ? w->weight : had + w->weight);
    }
    return graph_const(f->g, t, NULL);
}

// Scores [N, targets]. When each tree is for one target, the trees are sorted by target, and made as many for each by
// one-leaf trees.
Value *b_forest(Forest *f) {
    Graph *g = f->g;
    int trees = f->roots.n;
    int64_t *target = NEW_ARRAY(g->arena, int64_t, trees + 1), *each = NULL, most = 0;
    if (!forest_check(f)) return NULL;
    bool flat = f->targets <= 2 * (int64_t)trees + 2 && one_target_each(f, target);
    if (flat) each = NEW_ARRAY(g->arena, int64_t, f->targets + 1);
    for (int i = 0; i < trees && flat; i++) {
        int64_t k = ++each[target[i]];
        if (most < k) most = k;
    }
    flat = flat && most * f->targets <= 2 * (int64_t)trees + 2;
    if (!flat) {
        if (!forest_order(f)) return NULL;
        Value *table = weight_table(f, false);
        return combine(f, b_gather(g, table, forest_walk(f, trees, f->roots.at), 0), 1);
    }
    VEC_PUSH(g->arena, f->nodes, (TreeNode){ .mode = TREE_LEAF });
    if (!forest_order(f)) return NULL;
    int64_t *roots = NEW_ARRAY(g->arena, int64_t, most * f->targets);
    for (int64_t i = 0; i < most * f->targets; i++) roots[i] = f->nodes.n - 1;
    memset(each, 0, sizeof *each * (size_t)f->targets);
    for (int i = 0; i < trees; i++) roots[target[i] * most + each[target[i]]++] = f->roots.at[i];
    Value *w = weight_table(f, true);
    w = b_gather(g, w, forest_walk(f, (int)(most * f->targets), roots), 0);
    return combine(f, w ? b_reshape(g, w, 3, (Dim[]){ f->x->type.dim[0], f->targets, most }) : NULL, 2);
}
