// SPDX-License-Identifier: MIT OR Apache-2.0
// ONNX's reductions, running sums, and the softmax family.
//
// In: an OnnxNode. Out: Reduce*, Arg*, Cum* and maps around them. The idea: what differs between versions is where
// the axes come from; the rest is one table of what happens before and after the sum.
#include "import/onnx/run/measure.h"

#include <string.h>

// Axes of a reduction: none given means all of them, or none at all with noop_with_empty_axes.
static bool reduce_axes(OnnxNode *n, int rank, int64_t *axes, int *count) {
    bool given, all = !onnx_int(n, "noop_with_empty_axes", 0);
    if (!onnx_axes(n, 1, rank, axes, count, &given)) return false;
    if (*count || !all) return true;
    *count = rank;
    for (int i = 0; i < rank; i++) axes[i] = i;
    return true;
}

// What is reduced: axes that are known, or (run) those that the program finds in input 1.
typedef struct Over { const RunAxes *run; int count; const int64_t *axes; } Over;

static Value *reduce_over(OnnxNode *n, Op op, Value *x, const Over *o, bool keep) {
    if (!o->run) return b_reduce(n->g, op, x, o->count, o->axes, keep);
    x = onnx_reduce_run(n, op, x, o->run);
    return keep ? x : onnx_reduce_drop(n, x, o->run);
}

// log(sum(exp(x))) = m + log(sum(exp(x - m))), with m = max(x), or 0 where that is infinite.
static Value *log_sum_exp(OnnxNode *n, Value *x, const Over *o, bool keep) {
    Value *m = reduce_over(n, OP_ReduceMax, x, o, true);
    m = B_MAP(n->g, "isinf(x) ? 0 : x", "x", m);
    Value *all = o->run ? onnx_reduce_spread(n, m, o->run, x->type.dim) : m;
    Value *sum = reduce_over(n, OP_ReduceSum, B_MAP(n->g, "exp(x - y)", "x y", x, all), o, true);
    Value *v = B_MAP(n->g, "log(x) + y", "x y", sum, m);
    if (!v || keep || !o->count) return v;
    if (o->run) return onnx_reduce_drop(n, v, o->run);
    Dim dims[MAX_RANK];
    int rank = 0;
    for (int i = 0; i < v->type.rank; i++) {
        bool reduced = false;
        for (int k = 0; k < o->count; k++) reduced = reduced || o->axes[k] == i;
        if (!reduced) dims[rank++] = v->type.dim[i];
    }
    return b_reshape(n->g, v, rank, dims);
}

Value *onnx_reduce(OnnxNode *n) {
    static const struct { const char *name, *before; Op op; const char *after;
    } forms[] = {
        { "ReduceSum", NULL, OP_ReduceSum, NULL },
        { "ReduceMean", NULL, OP_ReduceMean, NULL },
        { "ReduceProd", NULL, OP_ReduceProd, NULL },
        { "ReduceMax", NULL, OP_ReduceMax, NULL },
        { "ReduceMin", NULL, OP_ReduceMin, NULL },
        { "ReduceL1", "abs(x)", OP_ReduceSum, NULL },
        { "ReduceL2", "x * x", OP_ReduceSum, "sqrt(x)" },
        { "ReduceSumSquare", "x * x", OP_ReduceSum, NULL },
        { "ReduceLogSum", NULL, OP_ReduceSum, "log(x)" },
    };
    int64_t axes[MAX_RANK];
    if (!onnx_inputs(n, 1)) return NULL;
    Value *x = n->in[0];
    DType d = x->type.dtype;
    bool keep = onnx_int(n, "keepdims", 1) != 0;
    RunAxes run;
    Over over = { .axes = axes };
    if (onnx_knows(n, 1)) {
        if (!reduce_axes(n, x->type.rank, axes, &over.count)) return NULL;
    } else {
        if (!onnx_run_axes(n, x, &run)) return NULL;
        over.run = &run;
        over.count = run.count;
        onnx_int(n, "noop_with_empty_axes", 0);
    }
    if (!strcmp(n->def->op, "ReduceLogSumExp")) return log_sum_exp(n, x, &over, keep);
    for (size_t i = 0; i < COUNT(forms); i++) {
        if (strcmp(forms[i].name, n->def->op)) continue;
        if (d == DT_BOOL && !(x = b_cast(n->g, x, DT_U8))) return NULL;
        DType sum = forms[i].after && dtype_is_int(d) ? DT_F64 : x->type.dtype;
        if (forms[i].before) x = B_MAP(n->g, forms[i].before, "x", x);
        Value *v = b_cast(n->g, reduce_over(n, forms[i].op, x, &over, keep), sum);
        if (forms[i].after) v = B_MAP(n->g, forms[i].after, "x", v);
        return b_cast(n->g, v, d);
    }
    bug("row %s is no reduction", n->def->op);
}

Value *onnx_arg(OnnxNode *n) {
    int axis;
    if (!onnx_inputs(n, 1) || !onnx_axis(n, onnx_int(n, "axis", 0), n->in[0]->type.rank, &axis)) return NULL;
    Node *node = graph_node(n->g, !strcmp(n->def->op, "ArgMax") ? OP_ArgMax : OP_ArgMin, 1, n->in, 1);
    node_set_int(node, "axis", axis);
    node_set_int(node, "keepdims", onnx_int(n, "keepdims", 1));
    node_set_int(node, "last", onnx_int(n, "select_last_index", 0));
    return b_finish(node);
}

Value *onnx_cumulate(OnnxNode *n) {
    int64_t given;
    int axis = 0, count;
    if (!onnx_inputs(n, 2)) return NULL;
    Value *x = n->in[0];
    const Type t = x->type;
    bool run = !onnx_knows(n, 1) && t.rank > 1;         // over one dimension there is one choice
    if (run) {
        if (!(x = onnx_lines_run(n, x, n->in[1]))) return NULL;
        axis = 1;
    } else if (t.rank != 1 || onnx_knows(n, 1)) {
        if (!onnx_ints_input(n, 1, "the axis", &given, &count, 1) || !onnx_axis(n, given, t.rank, &axis)) return NULL;
    }
    Op op = !strcmp(n->def->op, "CumSum") ? OP_CumSum : OP_CumProd;
    x = b_cumulate(n->g, op, x, axis, onnx_int(n, "exclusive", 0) != 0, onnx_int(n, "reverse", 0) != 0);
    return run ? b_reshape(n->g, x, t.rank, t.dim) : x;
}

// ---------------------------------------------------------------- softmax, log-softmax, hardmax

// 1 at the first maximum along axis, 0 elsewhere.
static Value *hardmax(OnnxNode *n, Value *x, int axis) {
    Node *node = graph_node(n->g, OP_ArgMax, 1, &x, 1);
    node_set_int(node, "axis", axis);
    node_set_int(node, "keepdims", 1);
    node_set_int(node, "last", 0);
    Value *at = b_iota(n->g, x->type.rank, x->type.dim, axis, DT_I64);
    return b_cast(n->g, b_binary(n->g, OP_Equal, at, b_finish(node)), x->type.dtype);
}

static Value *along_axis(OnnxNode *n, Value *x, int axis) {
    if (!strcmp(n->def->op, "Hardmax")) return hardmax(n, x, axis);
    Node *node = graph_node(n->g, !strcmp(n->def->op, "Softmax") ? OP_Softmax : OP_LogSoftmax, 1, &x, 1);
    node_set_int(node, "axis", axis);
    return b_finish(node);
}

Value *onnx_softmax(OnnxNode *n) {
    int axis;
    if (!onnx_inputs(n, 1) || !onnx_axis(n, onnx_int(n, "axis", -1), n->in[0]->type.rank, &axis)) return NULL;
    return along_axis(n, n->in[0], axis);
}

// Before opset 13: over all dimensions from axis on, as one.
Value *onnx_softmax_flat(OnnxNode *n) {
    int axis;
    if (!onnx_inputs(n, 1)) return NULL;
    Value *x = n->in[0];
    const Type t = x->type;
    int64_t given = onnx_int(n, "axis", 1);
    if (given == t.rank) return b_filled(n->g, t.dtype, !strcmp(n->def->op, "LogSoftmax") ? 0 : 1, t.rank, t.dim);
    if (!onnx_axis(n, given, t.rank, &axis)) return NULL;
    if (axis == t.rank - 1) return along_axis(n, x, axis);
    x = b_reshape(n->g, x, 2, (Dim[]){ type_product(n->g, &t, 0, axis), type_product(n->g, &t, axis, t.rank) });
    return x ? b_reshape(n->g, along_axis(n, x, 1), t.rank, t.dim) : NULL;
}
