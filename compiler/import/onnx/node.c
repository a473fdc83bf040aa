// SPDX-License-Identifier: MIT OR Apache-2.0
// A node as its builder sees it: its attributes and inputs, what the model declares of its outputs, and diagnostics at
// it.
//
// In: an OnnxNode. Out: values and numbers, checked when read. Attributes may stand for those of enclosing functions;
// which were looked at is noted, so that the others are warned about.
#include "import/onnx/names.h"

#include <stdarg.h>
#include <string.h>

Value *onnx_fail(const OnnxNode *n, const char *fmt, ...) {
    char line[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    diag_error(n->loc, "%s", line);
    return NULL;
}

void onnx_note(const OnnxNode *n, const char *fmt, ...) {
    char line[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    if (n->import->options && !n->import->options->quiet) diag_note(n->loc, "%s", line);
}

static const OnnxAttr *find_attr(int n, const OnnxAttr *attrs, const char *name) {
    for (int i = 0; i < n; i++)
        if (!strcmp(attrs[i].name, name)) return &attrs[i];
    return NULL;
}

// Follows references to the attributes of enclosing functions. NULL: absent.
static const OnnxAttr *resolve_attr(const OnnxAttr *a, const Inlined *call) {
    while (a && a->ref) {
        if (!call) return NULL;
        const OnnxAttr *given = find_attr(call->node->n_attrs, call->node->attrs, a->ref);
        if (given) {
            a = given;
            call = call->up;
        } else {
            a = find_attr(call->function->n_attrs, call->function->attrs, a->ref);
            if (a && a->ref) return NULL;
        }
    }
    return a;
}

static const OnnxAttr *node_attribute(const OnnxNode *n, const char *name) {
    const OnnxAttr *a = find_attr(n->def->n_attrs, n->def->attrs, name);
    if (!a) return NULL;
    n->read[a - n->def->attrs] = true;
    return resolve_attr(a, n->scope->call);
}

bool onnx_has(const OnnxNode *n, const char *name) { return node_attribute(n, name) != NULL; }

const OnnxAttr *onnx_attr(const OnnxNode *n, const char *name, int type) {
    static const char *const types[] = { "nothing", "a float", "an integer", "a string", "a tensor", "a graph",
        "floats", "integers", "strings", "tensors", "graphs", "a sparse tensor" };
    const OnnxAttr *a = node_attribute(n, name);
    if (!a || (a->type == type && (type != ONNX_TENSOR || a->tensor))) return a;
    if (a->type == type) return onnx_fail(n, "attribute \"%s\" holds no tensor", name), NULL;
    const char *is = a->type >= 0 && a->type < (int)COUNT(types) ? types[a->type] : "of an unknown kind";
    onnx_fail(n, "attribute \"%s\" should be %s but is %s", name, types[type], is);
    return NULL;
}

int64_t onnx_int64(const OnnxNode *n, const char *name, int64_t otherwise) {
    const OnnxAttr *a = onnx_attr(n, name, ONNX_INT);
    return a ? a->i : otherwise;
}

// One bound for all counts and sizes, so that no operator's sums and products of a few of them overflow.
int64_t onnx_int(const OnnxNode *n, const char *name, int64_t otherwise) {
    int64_t v = onnx_int64(n, name, otherwise);
    if (v == otherwise || (v >= INT32_MIN && v <= INT32_MAX)) return v;
    onnx_fail(n, "attribute \"%s\" is %lld; it may have 32 bits", name, (long long)v);
    return otherwise;
}

double onnx_float(const OnnxNode *n, const char *name, double otherwise) {
    const OnnxAttr *a = onnx_attr(n, name, ONNX_FLOAT);
    return a ? a->f : otherwise;
}

const char *onnx_string(const OnnxNode *n, const char *name, const char *otherwise) {
    const OnnxAttr *a = onnx_attr(n, name, ONNX_STRING);
    return a ? a->s : otherwise;
}

const int64_t *onnx_ints(const OnnxNode *n, const char *name, int *count) {
    static const int64_t none[1];
    const OnnxAttr *a = onnx_attr(n, name, ONNX_INTS);
    *count = a ? a->n : 0;
    return !a ? NULL : a->n ? a->ints : none;
}

Value *onnx_input(OnnxNode *n, int i) {
    if (i < n->n_in && n->in[i]) return n->in[i];
    return onnx_fail(n, "input %d is missing", i);
}

Value *onnx_given(const OnnxNode *n, int i) {
    return i >= n->n_in ? NULL : !n->in[i] && *n->def->in[i] ? &names_absent : n->in[i];
}

bool onnx_inputs(OnnxNode *n, int at_least) {
    for (int i = 0; i < at_least; i++)
        if (!onnx_input(n, i)) return false;
    return true;
}

Value *onnx_by_parts(OnnxNode *n, Value *(*make)(OnnxNode *n, bool imaginary)) {
    Value *x = n->in[0];
    if (dtype_class(x->type.dtype) != CLASS_COMPLEX) return make(n, false);
    n->in[0] = B_MAP(n->g, "real(x)", "x", x);
    Value *real = n->in[0] ? make(n, false) : NULL;
    n->in[0] = real ? B_MAP(n->g, "imag(x)", "x", x) : NULL;
    Value *imaginary = n->in[0] ? make(n, true) : NULL;
    n->in[0] = x;
    return B_MAP(n->g, "complex(x, y)", "x y", real, imaginary);
}

bool onnx_axis(const OnnxNode *n, int64_t axis, int rank, int *out) {
    if (axis < -rank || axis >= rank) {
        onnx_fail(n, "axis %lld is not within -%d..%d", (long long)axis, rank, rank - 1);
        return false;
    }
    *out = (int)(axis < 0 ? axis + rank : axis);
    return true;
}

bool onnx_dtype(OnnxNode *n, const char *attr, DType otherwise, DType *out) {
    int64_t d = onnx_int(n, attr, otherwise);
    if (d <= DT_NONE || d >= DT_INDEX) {
        onnx_fail(n, "attribute \"%s\": %lld is an unknown or unsupported element type", attr, (long long)d);
        return false;
    }
    *out = (DType)d;
    return true;
}

// ---------------------------------------------------------------- what the model and the options say of sizes

static const ModelEnd *find_info(int count, const ModelEnd *infos, const char *name) {
    for (int i = 0; i < count; i++)
        if (!strcmp(infos[i].name, name)) return &infos[i];
    return NULL;
}

// An output of a function's node is declared where it is an output of the call, too.
const EndDim *onnx_declared_dim(const OnnxNode *n, int out, int axis) {
    if (n->import->model->was) return NULL;             // of the file's sizes, not of those that --shape gives
    const char *name = out < n->def->n_out ? n->def->out[out] : "";
    for (const Inlined *c = n->scope->call; c; c = c->up) {
        int k = 0;
        while (k < c->function->n_out && strcmp(c->function->out[k], name)) k++;
        name = k < c->function->n_out && k < c->node->n_out ? c->node->out[k] : "";
    }
    const OnnxGraphDef *g = n->import->model->graph;
    const ModelEnd *info = *name ? find_info(g->n_outputs, g->outputs, name) : NULL;
    if (!info && *name) info = find_info(g->n_infos, g->infos, name);
    return info && info->has_shape && axis < info->rank ? &info->dim[axis] : NULL;
}

static void largest_of(int count, const ModelEnd *infos, int64_t *most) {
    for (int i = 0; i < count; i++)
        for (int k = 0; k < infos[i].rank; k++)
            if (infos[i].dim[k].known && infos[i].dim[k].value > *most) *most = infos[i].dim[k].value;
}

int64_t onnx_largest_size(const OnnxNode *n) {
    const OnnxGraphDef *g = n->import->model->graph;
    const Options *o = n->import->options;
    int64_t most = o && o->largest_size > 1 ? o->largest_size : 1;
    largest_of(g->n_inputs, g->inputs, &most);
    largest_of(g->n_outputs, g->outputs, &most);
    largest_of(g->n_infos, g->infos, &most);
    for (int i = 0; o && i < o->dims.n; i++)
        if (o->dims.at[i].hi > most) most = o->dims.at[i].hi;
    return most;
}

bool onnx_trains_norms(const OnnxNode *n) {
    const Options *o = n->import->options;
    return o && o->train && !o->frozen_norm;
}

bool onnx_trains_dropout(const OnnxNode *n) { return n->import->options && n->import->options->train; }

bool onnx_says_notes(const OnnxNode *n) { return n->import->options && !n->import->options->quiet; }

const DimOption *onnx_dim_option(const OnnxNode *n, const char *name) {
    const Options *o = n->import->options;
    for (int i = 0; o && i < o->dims.n; i++)
        if (!strcmp(o->dims.at[i].name, name)) return &o->dims.at[i];
    return NULL;
}
