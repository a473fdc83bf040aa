// SPDX-License-Identifier: MIT OR Apache-2.0
// ONNX's ensembles of decision trees (domain ai.onnx.ml): forests as constant tables.
//
// In: an OnnxNode whose attributes list nodes and leaves, in the forms of versions 1, 3 and 5. Out: what build/forest.c
// makes of them.
#include "import/onnx/onnx.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// ---------------------------------------------------------------- the attributes of versions 1 and 3

// Floats, or a tensor under the name with _as_tensor. `get` reads either.
typedef struct Numbers { int count; const float *f; const Tensor *t; } Numbers;

static Numbers numbers(const OnnxNode *n, const char *name) {
    Numbers v = { 0 };
    v.f = onnx_floats(n, name, &v.count);
    const OnnxAttr *a = onnx_attr(n, arena_printf(n->g->arena, "%s_as_tensor", name), ONNX_TENSOR);
    const DType d = a ? a->tensor->type.dtype : DT_NONE;
    if (!v.count && (dtype_is_float(d) || dtype_is_int(d)) && type_count(&a->tensor->type) <= INT32_MAX)
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

static TreeMode mode_named(const char *s) {
    static const char *const names[] = { "BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ",
        "BRANCH_NEQ", "", "LEAF" };
    for (size_t i = 0; i < COUNT(names); i++)
        if (!strcmp(s, names[i]) && *s) return (TreeMode)i;
    return TREE_MEMBER;                              // none that these versions have
}

// A tree's root is its first node that no other leads to.
static void add_root(Forest *f, const int64_t *tree, int at, const bool *is_child) {
    if (!is_child[at] && !(f->roots.n && tree[f->roots.at[f->roots.n - 1]] == tree[at]))
        VEC_PUSH(f->g->arena, f->roots, at);
}

static bool read_nodes(OnnxNode *n, Forest *f, Key **keys) {
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
        if (t.mode == TREE_MEMBER) {
            onnx_fail(n, "attribute \"nodes_modes\" has \"%s\"", modes->strings[i]);
            return false;
        }
        t.nan_true = t.mode == TREE_NEQ || (have[4] && nan[i]);
        for (int k = 0; k < 2 && t.mode != TREE_LEAF; k++) {
            t.child[k] = find_node(*keys, count, tree[i], k ? yes[i] : no[i]);
            if (t.child[k] >= 0) is_child[t.child[k]] = true;
        }
        VEC_PUSH(a, f->nodes, t);
    }
    for (int i = 0; i < count; i++) add_root(f, tree, i, is_child);
    return true;
}

// The leaves' weights from <prefix>_treeids, _nodeids, _ids and _weights.
static bool read_weights(OnnxNode *n, Forest *f, const char *prefix, const Key *keys) {
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
        if (f->nodes.at[at].mode == TREE_LEAF)
            VEC_PUSH(a, f->weights, (LeafWeight){ at, target[i], number(&weights, i) });
    }
    return true;
}

static bool read_forest(OnnxNode *n, Forest *f, const char *prefix) {
    Key *keys = NULL;
    f->x = onnx_input(n, 0);
    f->x = f->x ? b_rows_of(n->g, f->x) : NULL;
    if (!f->x || !read_nodes(n, f, &keys) || !read_weights(n, f, prefix, keys)) return false;
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
    Tensor *t = tensor_new(f->g->arena, type_make(f->dtype, 1, (Dim[]){ base->count }));
    for (int i = 0; i < base->count; i++) tensor_set_f(t, i, number(base, i));
    return graph_const(f->g, t, NULL);
}

Value *onnx_tree_regressor(OnnxNode *n) {
    Forest f = {
        .g = n->g, .targets = onnx_int(n, "n_targets", 1), .aggregate = onnx_string(n, "aggregate_function", "SUM")
    };
    if (f.targets < 1 || f.targets > INT32_MAX)
        return onnx_fail(n, "attribute \"n_targets\" is %lld", (long long)f.targets);
    if (!known_aggregate(&f) || !read_forest(n, &f, "target")) return NULL;
    const Numbers base = numbers(n, "base_values");
    if (base.count && base.count != f.targets)
        return onnx_fail(n, "has %d base values for %lld targets", base.count, (long long)f.targets);
    Value *y = b_forest(&f);
    if (base.count) y = b_binary(n->g, OP_Add, y, base_values(&f, &base));
    return b_post_transform(n->g, b_cast(n->g, y, DT_F32), onnx_string(n, "post_transform", "NONE"));
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
static Value *two_classes(OnnxNode *n, Forest *f, const ClassLabels *labels, const Numbers *base, const char *how) {
    const Classes c = classes_of(f);
    const bool alone = !c.second, probabilities = c.positive && c.first != c.second;
    if (alone) f->targets = 1;
    Value *y = b_forest(f);
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
        n->out[1] = scores == 1 ? b_two_scores(n->g, y, how, probabilities) : b_post_transform(n->g, y, how);
    return index ? b_label(n->g, labels, index) : NULL;
}

Value *onnx_tree_classifier(OnnxNode *n) {
    Forest f = { .g = n->g, .aggregate = "SUM" };
    ClassLabels labels = onnx_class_labels(n, "classlabels_int64s", "classlabels_strings");
    const char *how = onnx_string(n, "post_transform", "NONE");
    f.targets = labels.count;
    if (!labels.count) return onnx_fail(n, "has no class labels");
    if (!read_forest(n, &f, "class")) return NULL;
    const Numbers base = numbers(n, "base_values");
    if (base.count && base.count != labels.count && !(base.count == 1 && labels.count == 2))
        return onnx_fail(n, "has %d base values for %d classes", base.count, labels.count);
    const Classes c = classes_of(&f);
    if (labels.count == 2 && (!c.first || !c.second || base.count == 1))
        return two_classes(n, &f, &labels, &base, how);
    Value *y = b_forest(&f);
    if (base.count) y = b_binary(n->g, OP_Add, y, base_values(&f, &base));
    y = b_cast(n->g, y, DT_F32);
    if (n->n_out > 1) n->out[1] = b_post_transform(n->g, y, how);
    Value *best = b_first_best(n->g, y);
    return best ? b_label(n->g, &labels, best) : NULL;
}

// ---------------------------------------------------------------- TreeEnsemble (version 5)

// Of real numbers; what is not that is as if it were absent.
static const Tensor *tensor_attr(const OnnxNode *n, const char *name, int64_t *count) {
    const OnnxAttr *a = onnx_attr(n, name, ONNX_TENSOR);
    const DType d = a ? a->tensor->type.dtype : DT_NONE;
    bool numbers = dtype_is_float(d) || dtype_is_int(d);
    if (a && !numbers) onnx_fail(n, "attribute \"%s\" holds %s, expected numbers", name, dtype_name(d));
    *count = numbers ? type_count(&a->tensor->type) : 0;
    return numbers ? a->tensor : NULL;
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
        t.mode = TREE_EQ;
        t.split = v;
        if (last < 0) {
            f->nodes.at[last = at] = t;
            continue;
        }
        f->nodes.at[last].child[0] = f->nodes.n;
        last = f->nodes.n;
        VEC_PUSH(f->g->arena, f->nodes, t);
    }
    if (last < 0) {                             // the empty set holds nothing
        f->nodes.at[at].mode = TREE_EQ;
        f->nodes.at[at].split = NAN;
    }
}

// Inner nodes come first, then the leaves: a child of a node is one or the other.
static bool read_ensemble(OnnxNode *n, Forest *f) {
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
        if (mode < TREE_LEQ || mode > TREE_MEMBER) return forest_fail(f, "attribute \"nodes_modes\" has an unknown "
                                                                         "mode");
        TreeNode t = { .mode = (TreeMode)mode,
            .feature = feature[i],
            .split = tensor_get_f(splits, i),
            .nan_true = mode == TREE_NEQ || (have[4] && nan[i]) };
        for (int k = 0; k < 2; k++) {
            if (child[k][i] < 0 || child[k][i] >= (leaf[k][i] ? leaves : count))
                return forest_fail(f, "a node has a child that does not exist");
            t.child[k] = child[k][i] + (leaf[k][i] ? count : 0);
        }
        VEC_PUSH(a, f->nodes, t);
    }
    for (int i = 0; i < leaves; i++) {
        VEC_PUSH(a, f->nodes, (TreeNode){ .mode = TREE_LEAF });
        VEC_PUSH(a, f->weights, (LeafWeight){ count + i, target[i], tensor_get_f(weights, i) });
    }
    for (int i = 0; i < count; i++)
        if (f->nodes.at[i].mode == TREE_MEMBER) expand_membership(f, i, members, members_count, &next);
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
    Forest f = { .g = n->g,
        .targets = onnx_int(n, "n_targets", 1),
        .aggregate = aggregates[aggregate],
        .x = b_rows_of(n->g, n->in[0]) };
    if (f.targets < 1 || f.targets > INT32_MAX)
        return onnx_fail(n, "attribute \"n_targets\" is %lld", (long long)f.targets);
    if (!f.x || !read_ensemble(n, &f)) return NULL;
    f.dtype = f.x->type.dtype;
    return b_cast(n->g, b_post_transform(n->g, b_forest(&f), transforms[transform]), n->in[0]->type.dtype);
}
