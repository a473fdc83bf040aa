// SPDX-License-Identifier: MIT OR Apache-2.0
// Graphs in a node's attributes: built in place or as graphs of their own, and nodes that are built once more.
//
// In: an OnnxNode and values for the inputs of its body. Out: the body's outputs. A body is made of nodes: here the
// importer's circle closes, from graph.c to a node's row, its builder, and back to graph.c for what is inside.
#include "import/onnx/names.h"

#include <string.h>

// A body's nodes are built in place; its values may use those around it.
static bool inline_body(
    OnnxNode *n, const OnnxGraphDef *body, Graph *g, int n_in, Value *const *in, int n_out, Value **out) {
    Import *im = n->import;
    if (n->scope->depth >= MAX_CALLS) {
        diag_error_as(EXIT_LIMIT, n->loc, "functions and bodies are nested more than %d deep", MAX_CALLS);
        return false;
    }
    if (body->n_inputs != n_in || body->n_outputs < n_out) {
        onnx_fail(n, "the body takes %d values and gives %d; this use wants %d and %d", body->n_inputs,
            body->n_outputs, n_in, n_out);
        return false;
    }
    int errors = diag_errors();
    Namespace inner;
    names_init(im, &inner, n->scope, g);
    inner.loc = n->loc;
    for (int i = 0; i < n_in; i++) names_bind(&inner, body->inputs[i].name, in[i], n->loc);
    onnx_add_initializers(im, &inner, body, false);
    onnx_build_nodes(im, &inner, body->n_nodes, body->nodes);
    for (int i = 0; i < n_out; i++) {
        out[i] = names_find(&inner, body->outputs[i].name);
        if (!out[i]) onnx_fail(n, "output \"%s\" of the body is not defined", body->outputs[i].name);
    }
    n->g->loc = n->loc;
    for (int i = 0; i < n_out; i++) n->poisoned = n->poisoned || out[i] == &names_poison;
    return diag_errors() == errors && !n->poisoned;
}

const OnnxGraphDef *onnx_body(const OnnxNode *n, const char *attr) {
    const OnnxAttr *a = onnx_attr(n, attr, ONNX_GRAPH);
    if (!a || !a->graph) onnx_fail(n, "attribute \"%s\" should hold a graph", attr);
    return a ? a->graph : NULL;
}

bool onnx_subgraph(OnnxNode *n, const char *attr, int n_in, Value *const *in, int n_out, Value **out) {
    const OnnxGraphDef *body = onnx_body(n, attr);
    return body && inline_body(n, body, n->g, n_in, in, n_out, out);
}

Graph *onnx_new_body(OnnxNode *n, const char *name) {
    Import *im = n->import;
    if (++im->bodies <= MAX_BODIES) return graph_body(n->g, name);
    if (!im->stop)
        diag_error_as(EXIT_LIMIT, n->loc,
            "the model has more than %d bodies of If, Loop and Scan once functions are inlined; export it with fewer "
            "branches, or give inputs that decide them with --freeze",
            MAX_BODIES);
    im->stop = true;
    return NULL;
}

Graph *onnx_body_graph(OnnxNode *n, const char *attr, int n_in, const Type *types, int n_out) {
    const OnnxGraphDef *body = onnx_body(n, attr);
    if (!body) return NULL;
    Graph *g = onnx_new_body(n, attr);
    if (!g) return NULL;
    Value **in = NEW_ARRAY(g->arena, Value *, n_in + 1), **out = NEW_ARRAY(g->arena, Value *, n_out + 1);
    for (int i = 0; i < n_in; i++)
        in[i] = types[i].dtype == DT_NONE ? onnx_sequence_carried(g) :
                                            graph_input(g, i < body->n_inputs ? body->inputs[i].name : "", types[i]);
    if (!inline_body(n, body, g, n_in, in, n_out, out)) return NULL;
    for (int i = 0; i < n_out; i++) graph_output(g, out[i], body->outputs[i].name);
    return g;
}

// ---------------------------------------------------------------- the nodes between some values and another

static bool any_marked(const StrMap *marked, int count, const char *const *names) {
    for (int i = 0; i < count; i++)
        if (strmap_get(marked, names[i])) return true;
    return false;
}

static bool node_reads(const OnnxNodeDef *d, const StrMap *marked) {
    if (any_marked(marked, d->n_in, d->in)) return true;
    for (int i = 0; i < d->n_attrs; i++)
        for (int k = 0; d->attrs[i].graph && k < d->attrs[i].graph->n_nodes; k++)
            if (node_reads(&d->attrs[i].graph->nodes[k], marked)) return true;
    return false;
}

static void mark_reads(const OnnxNodeDef *d, StrMap *marked) {
    for (int i = 0; i < d->n_in; i++) strmap_put(marked, d->in[i], &names_poison);
    for (int i = 0; i < d->n_attrs; i++)
        for (int k = 0; d->attrs[i].graph && k < d->attrs[i].graph->n_nodes; k++)
            mark_reads(&d->attrs[i].graph->nodes[k], marked);
}

// Forwards: the nodes that `names` flow into. Backwards: those of them that flow into `wanted`.
static bool *nodes_between(
    const OnnxNode *n, const Namespace *s, int count, const char *const *names, const char *wanted) {
    StrMap *after = strmap_new(n->g->arena), *before = strmap_new(n->g->arena);
    bool *between = NEW_ARRAY(n->g->arena, bool, s->n_nodes + 1);
    for (int i = 0; i < count; i++) strmap_put(after, names[i], &names_poison);
    for (int i = 0; i < s->n_nodes; i++) {
        const OnnxNodeDef *d = &s->nodes[i];
        between[i] = d != n->def && !any_marked(after, d->n_out, d->out) && node_reads(d, after);
        for (int k = 0; k < d->n_out && between[i]; k++)
            if (*d->out[k]) strmap_put(after, d->out[k], &names_poison);
    }
    strmap_put(before, wanted, &names_poison);
    for (int i = s->n_nodes - 1; i >= 0; i--) {
        between[i] = between[i] && any_marked(before, s->nodes[i].n_out, s->nodes[i].out);
        if (between[i]) mark_reads(&s->nodes[i], before);
    }
    return between;
}

Value *onnx_recompute(
    OnnxNode *n, Graph *g, int count, const char *const *names, Value *const *values, const char *wanted) {
    const Namespace *s = n->scope;
    Namespace inner;
    if (n->scope->depth >= MAX_CALLS) {
        diag_error_as(EXIT_LIMIT, n->loc, "functions and bodies are nested more than %d deep", MAX_CALLS);
        return NULL;
    }
    while (s && !strmap_get(s->makers, wanted)) s = s->outer;
    names_init(n->import, &inner, n->scope, g);
    inner.loc = n->loc;
    for (int i = 0; i < count; i++)
        if (!names_bind(&inner, names[i], values[i], n->loc)) return NULL;
    const bool *between = s ? nodes_between(n, s, count, names, wanted) : NULL;
    for (int i = 0; s && i < s->n_nodes; i++)
        if (between[i]) onnx_build_node(n->import, &inner, &s->nodes[i]);
    n->g->loc = n->loc;
    Value *v = names_find(&inner, wanted);
    if (!v) return onnx_fail(n, "\"%s\" is defined nowhere before this node", wanted);
    if (v != &names_poison) return v;
    n->poisoned = true;
    return NULL;
}
