// SPDX-License-Identifier: MIT OR Apache-2.0
// ONNX's ensembles of decision trees (domain ai.onnx.ml): forests as constant tables.
//
// In: an OnnxNode whose attributes list nodes and leaves. Out: for each (row, tree) pair the number of its node,
// advanced by one level in each step, all pairs at once: gather the node's feature and threshold, the row's value,
// compare, gather the child. Leaves lead to themselves, so after as many steps as the deepest tree has levels every
// pair is at a leaf; the leaves' weights are then combined over the trees in order.
//
// The idea: every comparison becomes `x <= hi` (or lo <= x <= hi) with three children, for false, true and NaN;
// leaves come first in the tables.
#include "import/onnx/onnx.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef enum Mode { LEQ, LT, GTE, GT, EQ, NEQ, MEMBER, LEAF } Mode;        // up to MEMBER as numbered by TreeEnsemble
// child[1]: where the comparison holds
typedef struct TreeNode { Mode mode; int64_t feature; double split; int64_t child[2]; bool nan_true; } TreeNode;
typedef struct LeafWeight { int64_t node, target; double weight; } LeafWeight;
typedef VEC(TreeNode) TreeNodes;
typedef struct Forest {
    OnnxNode *n;
    DType dtype;                                // of thresholds and weights: the input's, f32 or f64
    Value *x;                                   // [N, F]
    TreeNodes nodes;
    VEC(int64_t) roots;
    VEC(LeafWeight) weights;
    int64_t targets;
    const char *aggregate;                      // SUM, AVERAGE, MIN, MAX
    int64_t *place;                             // of a node in the tables
    int64_t n_leaves;
    int depth;
} Forest;

#define MAX_DEPTH 4096
#define MAX_TABLE ((int64_t)1 << 28)

static bool forest_fail(const Forest *f, const char *what) {
    onnx_fail(f->n, "%s", what);
    return false;
}

// ---------------------------------------------------------------- checks and numbering

static bool forest_check(const Forest *f) {
    const Dim features = f->x->type.dim[1];
    const int count = f->nodes.n;
    for (int i = 0; i < count; i++) {
        const TreeNode *t = &f->nodes.at[i];
        if (t->mode == LEAF) continue;
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
    Arena *a = f->n->g->arena;
    int count = f->nodes.n, *parents = NEW_ARRAY(a, int, count + 1), *depth = NEW_ARRAY(a, int, count + 1),
        *queue = NEW_ARRAY(a, int, count + 1), n = 0;
    int64_t leaf = 0, inner = 0;
    f->place = NEW_ARRAY(a, int64_t, count + 1);
    for (int i = 0; i < count; i++) {
        const TreeNode *t = &f->nodes.at[i];
        f->n_leaves += t->mode == LEAF;
        for (int k = 0; k < 2 && t->mode != LEAF; k++) parents[t->child[k]]++;
    }
    for (int i = 0; i < count; i++) f->place[i] = f->nodes.at[i].mode == LEAF ? leaf++ : f->n_leaves + inner++;
    for (int i = 0; i < count; i++)
        if (!parents[i]) queue[n++] = i;
    for (int i = 0; i < n; i++) {
        const TreeNode *t = &f->nodes.at[queue[i]];
        for (int k = 0; k < 2 && t->mode != LEAF; k++) {
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
    bool open = t->mode == LT || t->mode == GTE, point = t->mode == EQ || t->mode == NEQ;
    *lo = point ? t->split : -INFINITY;
    *hi = open && !strict ? below(t->split, d) : t->split;
    return t->mode == GTE || t->mode == GT || t->mode == NEQ ? 0 : 1;
}

static Tables forest_tables(const Forest *f) {
    Graph *g = f->n->g;
    bool strict = true, points = false, missing = false;
    for (int i = 0; i < f->nodes.n; i++) {
        const TreeNode *t = &f->nodes.at[i];
        if (t->mode == LEAF) continue;
        strict &= t->mode == LT || t->mode == GTE;
        points |= t->mode == EQ || t->mode == NEQ;
        missing |= t->nan_true != (t->mode == NEQ || t->mode == GTE || t->mode == GT);     // NaN is in no interval
    }
    const int64_t count = f->nodes.n, ways = missing ? 3 : 2;
    Tensor *feature = tensor_new(g->arena, type_make(DT_I32, 1, (Dim[]){ count })),
           *child = tensor_new(g->arena, type_make(DT_I32, 1, (Dim[]){ count * ways }));
    Tensor *lo = tensor_new(g->arena, type_make(f->dtype, 1, (Dim[]){ count })), *hi = tensor_new(g->arena, lo->type);
    for (int i = 0; i < f->nodes.n; i++) {
        const TreeNode *t = &f->nodes.at[i];
        int64_t at = f->place[i];
        double from = 0, to = 0;
        int in = t->mode == LEAF ? 1 : interval(t, f->dtype, strict, &from, &to);
        for (int k = 0; k < ways; k++) {
            bool hold = k == 2 ? t->nan_true : k == in;
            tensor_set_i(child, at * ways + k, t->mode == LEAF ? at : f->place[t->child[hold]]);
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
    Graph *g = f->n->g;
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
    v = b_reduce(f->n->g, op, v, 1, (int64_t[]){ axis }, false);
    if (v && is_extreme(f)) return B_MAP(f->n->g, "isinf(x) ? 0 : x", "x", v);
    if (v && !strcmp(f->aggregate, "AVERAGE"))
        return B_MAP(f->n->g, "x / y", "x y", v, b_like(f->n->g, v, f->roots.n));
    return v;
}

// The only target of each tree's leaves; false when a tree has several or shares nodes with another.
static bool one_target_each(const Forest *f, int64_t *target) {
    int count = f->nodes.n;
    int64_t *leaf = NEW_ARRAY(f->n->g->arena, int64_t, count + 1),
            *stack = NEW_ARRAY(f->n->g->arena, int64_t, count + 2);
    bool *seen = NEW_ARRAY(f->n->g->arena, bool, count + 1);
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
            if (seen[at] && f->nodes.at[at].mode == LEAF) continue;
            if (seen[at]) return false;
            seen[at] = true;
            if (f->nodes.at[at].mode != LEAF) {
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
    const int64_t columns = flat ? 1 : f->targets;
    if (columns * f->n_leaves > MAX_TABLE) return onnx_fail(f->n, "the table of leaves is too large");
    Tensor *t = tensor_new(f->n->g->arena, type_make(f->dtype, flat ? 1 : 2, (Dim[]){ f->n_leaves, columns }));
    const double none = no_weight(f);
    for (int64_t i = 0; i < f->n_leaves * columns; i++) tensor_set_f(t, i, none);
    for (int i = 0; i < f->weights.n; i++) {
        const LeafWeight *w = &f->weights.at[i];
        int64_t at = f->place[w->node] * columns + (flat ? 0 : w->target);
        double had = tensor_get_f(t, at);
        tensor_set_f(t, at, had == none ? w->weight : had + w->weight);
    }
    return graph_const(f->n->g, t, NULL);
}

// Scores [N, targets]. When each tree is for one target, the trees are sorted by target, and made as many for each by
// one-leaf trees.
static Value *forest_scores(Forest *f) {
    Graph *g = f->n->g;
    int trees = f->roots.n;
    int64_t *target = NEW_ARRAY(g->arena, int64_t, trees + 1), *each = NEW_ARRAY(g->arena, int64_t, f->targets + 1),
            most = 0;
    if (!forest_check(f)) return NULL;
    bool flat = one_target_each(f, target);
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
    VEC_PUSH(g->arena, f->nodes, (TreeNode){ .mode = LEAF });
    if (!forest_order(f)) return NULL;
    int64_t *roots = NEW_ARRAY(g->arena, int64_t, most * f->targets);
    for (int64_t i = 0; i < most * f->targets; i++) roots[i] = f->nodes.n - 1;
    memset(each, 0, sizeof *each * (size_t)f->targets);
    for (int i = 0; i < trees; i++) roots[target[i] * most + each[target[i]]++] = f->roots.at[i];
    Value *w = weight_table(f, true);
    w = b_gather(g, w, forest_walk(f, (int)(most * f->targets), roots), 0);
    return combine(f, w ? b_reshape(g, w, 3, (Dim[]){ f->x->type.dim[0], f->targets, most }) : NULL, 2);
}

// ---------------------------------------------------------------- the attributes of versions 1 and 3

// Floats, or a tensor under the name with _as_tensor. `get` reads either.
typedef struct Numbers { int count; const float *f; const Tensor *t; } Numbers;

static Numbers numbers(const OnnxNode *n, const char *name) {
    Numbers v = { 0 };
    v.f = onnx_floats(n, name, &v.count);
    const OnnxAttr *a = onnx_attr(n, arena_printf(n->g->arena, "%s_as_tensor", name), ONNX_TENSOR);
    if (!v.count && a && type_count(&a->tensor->type) <= INT32_MAX)
        v = (Numbers){ .t = a->tensor, .count = (int)type_count(&a->tensor->type) };
    return v;
}

static double number(const Numbers *v, int i) { return v->f ? (double)v->f[i] : tensor_get_f(v->t, i); }

typedef struct Key { int64_t tree, node; int at; } Key;

static int compare_keys(const void *a, const void *b) {
    const Key *x = a, *y = b;
    if (x->tree != y->tree) return x->tree < y->tree ? -1 : 1;
    if (x->node != y->node) return x->node < y->node ? -1 : 1;
    return 0;
}

static int64_t find_node(const Key *keys, int count, int64_t tree, int64_t node) {
    const Key *k = bsearch(&(Key){ .tree = tree, .node = node }, keys, (size_t)count, sizeof *keys, compare_keys);
    return k ? k->at : -1;
}

static Mode mode_named(const char *s) {
    static const char *const names[] = { "BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ",
        "BRANCH_NEQ", "", "LEAF" };
    for (size_t i = 0; i < COUNT(names); i++)
        if (!strcmp(s, names[i]) && *s) return (Mode)i;
    return MEMBER;                              // none that these versions have
}

// A tree's root is its first node that no other leads to.
static void add_root(Forest *f, const int64_t *tree, int at, const bool *is_child) {
    if (!is_child[at] && !(f->roots.n && tree[f->roots.at[f->roots.n - 1]] == tree[at]))
        VEC_PUSH(f->n->g->arena, f->roots, at);
}

static bool read_nodes(Forest *f, Key **keys) {
    OnnxNode *n = f->n;
    Arena *a = n->g->arena;
    int count, have[5];
    const int64_t *node = onnx_ints(n, "nodes_nodeids", &count), *tree = onnx_ints(n, "nodes_treeids", &have[0]),
                  *feature = onnx_ints(n, "nodes_featureids", &have[1]);
    const int64_t *yes = onnx_ints(n, "nodes_truenodeids", &have[2]),
                  *no = onnx_ints(n, "nodes_falsenodeids", &have[3]),
                  *nan = onnx_ints(n, "nodes_missing_value_tracks_true", &have[4]);
    const OnnxAttr *modes = onnx_attr(n, "nodes_modes", ONNX_STRINGS);
    const Numbers splits = numbers(n, "nodes_values");
    numbers(n, "nodes_hitrates");
    bool agree = count > 0 && modes && modes->n == count && splits.count == count && (!have[4] || have[4] == count);
    for (int i = 0; i < 4; i++) agree &= have[i] == count;
    if (!agree) return forest_fail(f, "the attributes nodes_... must have a value for each node");
    *keys = NEW_ARRAY(a, Key, count);
    bool *is_child = NEW_ARRAY(a, bool, count);
    for (int i = 0; i < count; i++) (*keys)[i] = (Key){ tree[i], node[i], i };
    qsort(*keys, (size_t)count, sizeof **keys, compare_keys);
    for (int i = 1; i < count; i++)
        if (!compare_keys(&(*keys)[i - 1], &(*keys)[i]))
            return forest_fail(f, "two nodes of a tree have the same number");
    for (int i = 0; i < count; i++) {
        TreeNode t = { .mode = mode_named(modes->strings[i]), .feature = feature[i], .split = number(&splits, i) };
        if (t.mode == MEMBER) {
            onnx_fail(n, "attribute \"nodes_modes\" has \"%s\"", modes->strings[i]);
            return false;
        }
        t.nan_true = t.mode == NEQ || (have[4] && nan[i]);
        for (int k = 0; k < 2 && t.mode != LEAF; k++) {
            t.child[k] = find_node(*keys, count, tree[i], k ? yes[i] : no[i]);
            if (t.child[k] >= 0) is_child[t.child[k]] = true;
        }
        VEC_PUSH(a, f->nodes, t);
    }
    for (int i = 0; i < count; i++) add_root(f, tree, i, is_child);
    return true;
}

// The leaves' weights from <prefix>_treeids, _nodeids, _ids and _weights.
static bool read_weights(Forest *f, const char *prefix, const Key *keys) {
    OnnxNode *n = f->n;
    Arena *a = n->g->arena;
    int count, have[2];
    const int64_t *tree = onnx_ints(n, arena_printf(a, "%s_treeids", prefix), &count),
                  *node = onnx_ints(n, arena_printf(a, "%s_nodeids", prefix), &have[0]);
    const int64_t *target = onnx_ints(n, arena_printf(a, "%s_ids", prefix), &have[1]);
    const Numbers weights = numbers(n, arena_printf(a, "%s_weights", prefix));
    if (have[0] != count || have[1] != count || weights.count != count)
        return forest_fail(f, "the leaves' attributes must have the same number of values");
    for (int i = 0; i < count; i++) {
        int64_t at = find_node(keys, f->nodes.n, tree[i], node[i]);
        if (at < 0) return forest_fail(f, "a weight is for a node that does not exist");
        if (f->nodes.at[at].mode == LEAF) VEC_PUSH(a, f->weights, (LeafWeight){ at, target[i], number(&weights, i) });
    }
    return true;
}

static bool read_forest(Forest *f, const char *prefix) {
    Key *keys;
    f->x = onnx_input(f->n, 0);
    f->x = f->x ? onnx_rows_of(f->n, f->x) : NULL;
    if (!f->x || !read_nodes(f, &keys) || !read_weights(f, prefix, keys)) return false;
    f->dtype = f->x->type.dtype;
    return true;
}

static bool known_aggregate(const Forest *f) {
    static const char *const names[] = { "AVERAGE", "SUM", "MIN", "MAX" };
    for (size_t i = 0; i < COUNT(names); i++)
        if (!strcmp(f->aggregate, names[i])) return true;
    return forest_fail(f, "attribute \"aggregate_function\" must be SUM, AVERAGE, MIN or MAX");
}

static Value *base_values(const Forest *f, const Numbers *base) {
    Tensor *t = tensor_new(f->n->g->arena, type_make(f->dtype, 1, (Dim[]){ base->count }));
    for (int i = 0; i < base->count; i++) tensor_set_f(t, i, number(base, i));
    return graph_const(f->n->g, t, NULL);
}

Value *onnx_tree_regressor(OnnxNode *n) {
    Forest f = {
        .n = n, .targets = onnx_int(n, "n_targets", 1), .aggregate = onnx_string(n, "aggregate_function", "SUM")
    };
    if (f.targets < 1 || f.targets > INT32_MAX)
        return onnx_fail(n, "attribute \"n_targets\" is %lld", (long long)f.targets);
    if (!known_aggregate(&f) || !read_forest(&f, "target")) return NULL;
    const Numbers base = numbers(n, "base_values");
    if (base.count && base.count != f.targets)
        return onnx_fail(n, "has %d base values for %lld targets", base.count, (long long)f.targets);
    Value *y = forest_scores(&f);
    if (base.count) y = b_binary(n->g, OP_Add, y, base_values(&f, &base));
    return onnx_post_transform(n, b_cast(n->g, y, DT_F32), onnx_string(n, "post_transform", "NONE"));
}

// ---------------------------------------------------------------- classifiers

// Which classes have weights, and whether all weights are positive.
typedef struct Classes { bool first, second, other, positive; } Classes;

static Classes classes_of(const Forest *f) {
    Classes c = { .positive = true };
    for (int i = 0; i < f->weights.n; i++) {
        const LeafWeight *w = &f->weights.at[i];
        *(w->target == 0 ? &c.first : w->target == 1 ? &c.second : &c.other) = true;
        c.positive &= w->weight >= 0;
    }
    return c;
}

// Two classes, as ONNX Runtime reads the standard: trees for the first class alone give one score, that of the second
// class. Its label wins above 0, or above 0.5 when all weights are positive: then the scores are probabilities. Two
// base values keep both columns, the second at 0.
static Value *two_classes(Forest *f, const ClassLabels *labels, const Numbers *base, const char *how) {
    OnnxNode *n = f->n;
    const Classes c = classes_of(f);
    const bool alone = !c.second, probabilities = c.positive && c.first != c.second;
    if (alone) f->targets = 1;
    Value *y = forest_scores(f);
    const double first_base = base->count && c.first ? number(base, 0) : 0,
                 second_base = base->count == 2 && !alone ? number(base, 1) : 0;
    if (base->count)
        y = b_binary(n->g, OP_Add, y,
            b_floats(n->g, f->dtype, 1, (Dim[]){ f->targets }, (double[]){ first_base, second_base }));
    int64_t winning = f->targets - 1;
    if (alone && base->count == 2 && y) {
        Value *second = b_filled(n->g, f->dtype, 0, 2, (Dim[]){ y->type.dim[0], 1 });
        y = b_concat(n->g, 1, 2, (Value *[]){ y, second });
    }
    y = b_cast(n->g, y, DT_F32);
    if (!y) return NULL;
    int64_t scores = y->type.dim[1];
    Value *winner = b_remove(n->g, b_part(n->g, y, 1, winning, 1), 1);
    Value *index = winner ? b_cast(n->g, B_MAP(n->g, probabilities ? "x > 0.5" : "x > 0", "x", winner), DT_I64) : NULL;
    if (n->n_out > 1)
        n->out[1] = scores == 1 ? onnx_two_scores(n, y, how, probabilities) : onnx_post_transform(n, y, how);
    return index ? onnx_label(n, labels, index) : NULL;
}

Value *onnx_tree_classifier(OnnxNode *n) {
    Forest f = { .n = n, .aggregate = "SUM" };
    ClassLabels labels = onnx_class_labels(n, "classlabels_int64s", "classlabels_strings");
    const char *how = onnx_string(n, "post_transform", "NONE");
    f.targets = labels.count;
    if (!labels.count) return onnx_fail(n, "has no class labels");
    if (!read_forest(&f, "class")) return NULL;
    const Numbers base = numbers(n, "base_values");
    if (base.count && base.count != labels.count && !(base.count == 1 && labels.count == 2))
        return onnx_fail(n, "has %d base values for %d classes", base.count, labels.count);
    const Classes c = classes_of(&f);
    if (labels.count == 2 && (!c.first || !c.second || base.count == 1)) return two_classes(&f, &labels, &base, how);
    Value *y = forest_scores(&f);
    if (base.count) y = b_binary(n->g, OP_Add, y, base_values(&f, &base));
    y = b_cast(n->g, y, DT_F32);
    if (n->n_out > 1) n->out[1] = onnx_post_transform(n, y, how);
    Value *best = onnx_first_best(n, y);
    return best ? onnx_label(n, &labels, best) : NULL;
}

// ---------------------------------------------------------------- TreeEnsemble (version 5)

static const Tensor *tensor_attr(const OnnxNode *n, const char *name, int64_t *count) {
    const OnnxAttr *a = onnx_attr(n, name, ONNX_TENSOR);
    *count = a ? type_count(&a->tensor->type) : 0;
    return a ? a->tensor : NULL;
}

// x in {v, ...} becomes a chain of x == v: the first takes the node's place, the others are appended. Sets end with
// NaN.
static void expand_membership(Forest *f, int at, const Tensor *members, int64_t count, int64_t *next) {
    const TreeNode set = f->nodes.at[at];
    int last = -1;
    while (*next < count) {
        double v = tensor_get_f(members, (*next)++);
        if (isnan(v)) break;
        TreeNode t = set;
        t.mode = EQ;
        t.split = v;
        if (last < 0) {
            f->nodes.at[last = at] = t;
            continue;
        }
        f->nodes.at[last].child[0] = f->nodes.n;
        last = f->nodes.n;
        VEC_PUSH(f->n->g->arena, f->nodes, t);
    }
    if (last < 0) {                             // the empty set holds nothing
        f->nodes.at[at].mode = EQ;
        f->nodes.at[at].split = NAN;
    }
}

// Inner nodes come first, then the leaves: a child of a node is one or the other.
static bool read_ensemble(Forest *f) {
    OnnxNode *n = f->n;
    Arena *a = n->g->arena;
    int count, have[5], leaves, trees;
    int64_t modes_count, splits_count, weights_count, members_count, next = 0;
    const int64_t *feature = onnx_ints(n, "nodes_featureids", &count),
                  *nan = onnx_ints(n, "nodes_missing_value_tracks_true", &have[4]);
    const int64_t *child[2] = { onnx_ints(n, "nodes_falsenodeids", &have[0]),
        onnx_ints(n, "nodes_truenodeids", &have[1]) };
    const int64_t *leaf[2] = { onnx_ints(n, "nodes_falseleafs", &have[2]), onnx_ints(n, "nodes_trueleafs", &have[3]) };
    const int64_t *target = onnx_ints(n, "leaf_targetids", &leaves), *roots = onnx_ints(n, "tree_roots", &trees);
    const Tensor *modes = tensor_attr(n, "nodes_modes", &modes_count),
                 *splits = tensor_attr(n, "nodes_splits", &splits_count);
    const Tensor *weights = tensor_attr(n, "leaf_weights", &weights_count),
                 *members = tensor_attr(n, "membership_values", &members_count);
    int64_t rates;
    tensor_attr(n, "nodes_hitrates", &rates);
    bool agree = modes && splits && weights && modes_count == count && splits_count == count && weights_count == leaves
        && (!have[4] || have[4] == count);
    for (int i = 0; i < 4; i++) agree &= have[i] == count;
    if (!agree)
        return forest_fail(f, "the attributes nodes_... and leaf_... must have a value for each node and each leaf");
    for (int i = 0; i < count; i++) {
        int64_t mode = tensor_get_i(modes, i);
        if (mode < LEQ || mode > MEMBER) return forest_fail(f, "attribute \"nodes_modes\" has an unknown mode");
        TreeNode t = { .mode = (Mode)mode,
            .feature = feature[i],
            .split = tensor_get_f(splits, i),
            .nan_true = mode == NEQ || (have[4] && nan[i]) };
        for (int k = 0; k < 2; k++) {
            if (child[k][i] < 0 || child[k][i] >= (leaf[k][i] ? leaves : count))
                return forest_fail(f, "a node has a child that does not exist");
            t.child[k] = child[k][i] + (leaf[k][i] ? count : 0);
        }
        VEC_PUSH(a, f->nodes, t);
    }
    for (int i = 0; i < leaves; i++) {
        VEC_PUSH(a, f->nodes, (TreeNode){ .mode = LEAF });
        VEC_PUSH(a, f->weights, (LeafWeight){ count + i, target[i], tensor_get_f(weights, i) });
    }
    for (int i = 0; i < count; i++)
        if (f->nodes.at[i].mode == MEMBER) expand_membership(f, i, members, members_count, &next);
    for (int i = 0; i < trees; i++) VEC_PUSH(a, f->roots, roots[i]);
    return true;
}

Value *onnx_tree_ensemble(OnnxNode *n) {
    static const char *const aggregates[] = { "AVERAGE", "SUM", "MIN", "MAX" },
                             *const transforms[] = { "NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT" };
    if (!onnx_inputs(n, 1)) return NULL;
    int64_t aggregate = onnx_int(n, "aggregate_function", 1), transform = onnx_int(n, "post_transform", 0);
    if (aggregate < 0 || aggregate >= (int64_t)COUNT(aggregates) || transform < 0
        || transform >= (int64_t)COUNT(transforms))
        return onnx_fail(n, "attributes \"aggregate_function\" %lld, \"post_transform\" %lld", (long long)aggregate,
            (long long)transform);
    Forest f = { .n = n,
        .targets = onnx_int(n, "n_targets", 1),
        .aggregate = aggregates[aggregate],
        .x = onnx_rows_of(n, n->in[0]) };
    if (f.targets < 1 || f.targets > INT32_MAX)
        return onnx_fail(n, "attribute \"n_targets\" is %lld", (long long)f.targets);
    if (!f.x || !read_ensemble(&f)) return NULL;
    f.dtype = f.x->type.dtype;
    return b_cast(n->g, onnx_post_transform(n, forest_scores(&f), transforms[transform]), n->in[0]->type.dtype);
}
