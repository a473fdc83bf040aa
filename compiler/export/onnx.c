// SPDX-License-Identifier: MIT OR Apache-2.0
// A graph as an ONNX model: the walk over its nodes, its ends and its bodies.
//
// In: an imported graph, whose constants have data. Out: o->output, or diagnostics, one for each node that ONNX cannot
// say. The idea: ONNX is a back end that claims what it has a word for (onnx_rows.def), so the pass that expands the
// rest is that of every back end; then each node is written by its row. Inputs, outputs, parameters and symbols keep
// their names, so that what is read again is the same model.
#include "export/put.h"
#include "passes/passes.h"
#include "target/backend.h"

#include <string.h>

// ---------------------------------------------------------------- ends

static EndDim end_dim(Graph *g, Dim d) {
    if (dim_is_const(d)) return (EndDim){ .known = true, .value = d, .symbol = "" };
    int n;
    const Symbol *all = graph_symbols(g, &n);
    for (int i = 0; i < n; i++)
        if (d == dim_symbol(g, all[i].name)) return (EndDim){ .symbol = all[i].name };
    return (EndDim){ .symbol = "" };
}

static ModelEnd end_of(Export *x, const Value *v, const char *name) {
    const Type *t = &v->type;
    EndDim *dims = NEW_ARRAY(x->arena, EndDim, t->rank + 1);
    for (int i = 0; i < t->rank; i++) dims[i] = end_dim(x->g, t->dim[i]);
    return (ModelEnd){ .name = name, .kind = "tensor", .dtype = (int)t->dtype, .has_shape = true, .rank = t->rank,
        .dim = dims };
}

// The graph's outputs, each of the name that is given it, or of a new one.
static const ModelEnd *write_outputs(Put *p, bool top) {
    Export *x = p->x;
    const Graph *g = p->g;
    ModelEnd *ends = NEW_ARRAY(x->arena, ModelEnd, g->outputs.n + 1);
    x->node = NULL;
    for (int i = 0; i < g->outputs.n; i++) {
        Value *v = g->outputs.at[i];
        const char *from = put_value(p, v), *name = top ? g->output_names.at[i] : from;
        bool own = v->def && v->graph == g && !strcmp(from, name);
        for (int k = 0; k < i && own; k++) own = g->outputs.at[k] != v;
        if (!own && !top) name = put_fresh(p, "result");
        if (!own) put_op(p, name, "Identity", NAMES(from), NO_ATTRS);
        ends[i] = end_of(x, v, name);
    }
    return ends;
}

// Outputs keep their names whatever else has them; what is one output's value alone is called so.
static void claim_ends(Put *p) {
    Export *x = p->x;
    const Graph *g = p->g;
    for (int i = 0; i < g->inputs.n; i++) x->names[g->inputs.at[i]->id] = put_fresh(p, g->inputs.at[i]->name);
    for (int i = 0; i < g->outputs.n; i++) {
        const Value *v = g->outputs.at[i];
        const char *name = g->output_names.at[i];
        put_fresh(p, name);
        if (v->def && v->graph == g && !x->names[v->id]) x->names[v->id] = name;
    }
}

// ---------------------------------------------------------------- graphs

static void use(StrMap *used, const OnnxNodeDef *n) {
    for (int i = 0; i < n->n_in; i++) strmap_put(used, n->in[i], used);
    for (int i = 0; i < n->n_attrs; i++) {
        const OnnxGraphDef *body = n->attrs[i].graph;
        for (int k = 0; body && k < body->n_nodes; k++) use(used, &body->nodes[k]);
    }
}

// An operator may take what was written for operands of its operands: nodes whose results nobody has go.
static void sweep(Put *p, const ModelEnd *outputs) {
    StrMap *used = strmap_new(p->x->arena);
    int kept = p->nodes.n;
    for (int i = 0; i < p->g->outputs.n; i++) strmap_put(used, outputs[i].name, used);
    for (int i = p->nodes.n - 1; i >= 0; i--) {
        const OnnxNodeDef n = p->nodes.at[i];
        bool live = false;
        for (int k = 0; k < n.n_out; k++) live = live || strmap_get(used, n.out[k]);
        if (!live) continue;
        use(used, &n);
        p->nodes.at[--kept] = n;
    }
    p->nodes.at += kept;
    p->nodes.n -= kept;
}

static OnnxGraphDef *finish(Put *p, const ModelEnd *inputs, const ModelEnd *outputs) {
    OnnxGraphDef *def = NEW(p->x->arena, OnnxGraphDef);
    *def = (OnnxGraphDef){ .name = p->g->name && *p->g->name ? p->g->name : "graph",
        .n_nodes = p->nodes.n,
        .nodes = p->nodes.at,
        .n_inits = p->inits.n,
        .inits = p->inits.at,
        .n_inputs = p->g->inputs.n,
        .inputs = inputs,
        .n_outputs = p->g->outputs.n,
        .outputs = outputs };
    return def;
}

static OnnxGraphDef *write_graph(Put *p) {
    Export *x = p->x;
    const Graph *g = p->g;
    bool ok = true;
    ModelEnd *inputs = NEW_ARRAY(x->arena, ModelEnd, g->inputs.n + 1);
    for (int i = 0; i < g->inputs.n; i++) inputs[i] = end_of(x, g->inputs.at[i], put_name(p, g->inputs.at[i]));
    for (Node *n = g->first; n; n = n->next) ok &= put_operation(p, n);
    if (!ok) return NULL;
    const ModelEnd *outputs = write_outputs(p, !p->outer);
    sweep(p, outputs);
    return finish(p, inputs, outputs);
}

OnnxGraphDef *put_body(Put *p, Graph *body) {
    Put inner = { .x = p->x, .outer = p, .g = body, .known = strmap_new(p->x->arena) };
    return write_graph(&inner);
}

// ---------------------------------------------------------------- the model

static bool claims(const Node *n, const Options *o) { return put_has_row(n, o->opset); }

// Of each operator set the oldest version of the format that has it.
static int64_t ir_version(int opset) {
    static const struct { int opset, ir; } since[] = { { 28, 14 }, { 25, 13 }, { 24, 12 }, { 23, 11 }, { 21, 10 },
        { 19, 9 }, { 15, 8 }, { 13, 7 } };
    int i = 0;
    while (since[i].opset > opset) i++;
    return since[i].ir;
}

static bool write_model(Arena *a, const Options *o, const Export *x, const OnnxGraphDef *def) {
    const OnnxOpset opset = { "", x->opset };
    const OnnxModel m = { .file = o->output, .ir_version = ir_version(x->opset), .n_opsets = 1, .opsets = &opset,
        .graph = def, .metadata.at = x->g->metadata.at, .metadata.n = x->g->metadata.n };
    return onnx_encode(a, &m, o->output, arena_printf(a, "%s.data", o->output), o->embed_limit);
}

static bool prepare(Graph *g, const Options *o) {
    int errors = diag_errors();
    if (o->dims.n && !bind_given(g, o)) return false;
    if (o->optimized && !passes_canon(g, o)) return false;
    if (o->optimized) pass_dce(g);
    pass_custom(g, o);                                  // ONNX has operators and no kernels
    pass_expand(g, o);
    return diag_errors() == errors;
}

bool export_onnx(Arena *a, const Options *o, Graph *g) {
    static const Backend onnx = { .name = "onnx", .sizes = true, .claims = claims };
    Options as = *o;
    int errors = diag_errors();
    as.machine.backend = &onnx;
    as.opset = o->opset ? o->opset : EXPORT_OPSET;
    if (!prepare(g, &as)) return false;
    Export x = { .arena = a, .g = g, .opset = as.opset, .optimized = o->optimized };
    x.taken = strmap_new(a);
    x.node_names = strmap_new(a);
    x.names = NEW_ARRAY(a, const char *, g->value_count + 1);
    x.uses = graph_use_counts(g, a);
    Put top = { .x = &x, .g = g, .known = strmap_new(a) };
    claim_ends(&top);
    OnnxGraphDef *def = write_graph(&top);
    if (!def || diag_errors() != errors) return false;
    return write_model(a, &as, &x, def);
}
