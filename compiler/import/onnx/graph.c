// SPDX-License-Identifier: MIT OR Apache-2.0
// From the decoded model to a Graph: names become values, functions and branches are inlined, every node meets its
// builder.
//
// In: OnnxModel. Out: Graph, or NULL with diagnostics. The idea: a Namespace maps names to values; they nest as
// graphs do. A node that fails binds its outputs to `poison`, whose users are passed over in silence, so that every
// independent mistake of a model is reported, once.
#include "import/onnx/run/measure.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define MAX_NODES 2000000       // nodes after inlining; functions that call functions grow exponentially
#define MAX_CALLS 64            // functions inside functions, bodies inside bodies

// An inlined call, whose node holds the attributes that the function's nodes refer to.
typedef struct Inlined {
    const OnnxFunction *function;
    const OnnxNodeDef *node;
    const struct Inlined *up;
} Inlined;

typedef struct Namespace {
    const struct Namespace *outer;                      // of a body: whose values it may use
    StrMap *values;                                     // name -> Value *
    StrMap *makers;                                     // name -> the OnnxNodeDef that will define it
    const Inlined *call;
    int n_opsets; const OnnxOpset *opsets;
    int n_nodes; const OnnxNodeDef *nodes;              // those being built in it
    const Loc *loc;                                     // of the call or the node that holds the body; NULL at the top
    Graph *g;
    int depth;
} Namespace;

typedef struct Import {
    Arena *arena;
    const OnnxModel *model;
    const Options *options;
    StrMap *functions;                                  // "domain\nname\noverload" -> OnnxFunction
    int nodes;
    bool stop;                                          // a limit was passed
} Import;

static Value poison = { .name = "poison", .type.dtype = DT_F32 };
// an optional that holds nothing, or an input that a function's user left out
static Value absent = { .name = "absent", .type.dtype = DT_F32 };

Value *onnx_absent(void) { return &absent; }

static void scope_init(Import *im, Namespace *s, const Namespace *outer, Graph *g) {
    *s = (Namespace){ .outer = outer, .values = strmap_new(im->arena), .makers = strmap_new(im->arena), .g = g };
    if (!outer) return;
    s->call = outer->call;
    s->opsets = outer->opsets;
    s->n_opsets = outer->n_opsets;
    s->loc = outer->loc;
    s->depth = outer->depth + 1;
}

static Value *scope_find(const Namespace *s, const char *name) {
    for (; s; s = s->outer) {
        Value *v = strmap_get(s->values, name);
        if (v) return v;
    }
    return NULL;
}

static bool scope_bind(Namespace *s, const char *name, Value *v, const Loc *loc) {
    if (strmap_get(s->values, name)) {
        diag_error(loc, "\"%s\" is defined twice", name);
        return false;
    }
    strmap_put(s->values, name, v);
    return true;
}

// ---------------------------------------------------------------- a node's attributes and inputs

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

int64_t onnx_int(const OnnxNode *n, const char *name, int64_t otherwise) {
    const OnnxAttr *a = onnx_attr(n, name, ONNX_INT);
    return a ? a->i : otherwise;
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
    return i >= n->n_in ? NULL : !n->in[i] && *n->def->in[i] ? &absent : n->in[i];
}

bool onnx_inputs(OnnxNode *n, int at_least) {
    for (int i = 0; i < at_least; i++)
        if (!onnx_input(n, i)) return false;
    return true;
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
    if (d <= DT_NONE || d > DT_I2) {
        onnx_fail(n, "attribute \"%s\": %lld is an unknown or unsupported element type", attr, (long long)d);
        return false;
    }
    *out = (DType)d;
    return true;
}

// ---------------------------------------------------------------- nodes

static bool defined_later(const Namespace *s, const char *name) {
    for (; s; s = s->outer)
        if (strmap_get(s->makers, name)) return true;
    return false;
}

// False when an input is missing (reported) or made by a node that failed (reported there).
static bool resolve_inputs(const Namespace *s, OnnxNode *n) {
    const OnnxNodeDef *def = n->def;
    bool ok = true;
    for (int i = 0; i < def->n_in; i++) {
        if (!*def->in[i]) continue;
        n->in[i] = scope_find(s, def->in[i]);
        if (n->in[i] == &poison) ok = false;
        bool found = n->in[i] != NULL;
        if (n->in[i] == &absent) n->in[i] = NULL;
        if (found) continue;
        ok = false;
        if (defined_later(s, def->in[i]))
            onnx_fail(n, "input \"%s\" is made by a later node: the nodes are not in topological order", def->in[i]);
        else onnx_fail(n, "input \"%s\" is defined nowhere", def->in[i]);
    }
    return ok;
}

static void bind_outputs(Namespace *s, const OnnxNode *n, bool ok) {
    for (int i = 0; i < n->def->n_out; i++) {
        const char *name = n->def->out[i];
        if (!*name) continue;
        Value *v = ok ? n->out[i] : &poison;
        if (!v) {
            onnx_fail(n, "output %d (\"%s\") of this operator is not supported", i, name);
            v = &poison;
        }
        if (v != &poison && !v->name) v->name = name;
        scope_bind(s, name, v, n->loc);
    }
}

static int64_t opset_version(const Import *im, const Namespace *s, const char *domain) {
    for (int i = 0; i < s->n_opsets; i++)
        if (!strcmp(s->opsets[i].domain, domain)) return s->opsets[i].version;
    return !*domain && im->model->ir_version < 3 ? 1 : 0;
}

static void build_nodes(Import *im, Namespace *s, int count, const OnnxNodeDef *nodes);

static const OnnxFunction *find_function(Import *im, const OnnxNodeDef *def) {
    return strmap_get(im->functions, arena_printf(im->arena, "%s\n%s\n%s", def->domain, def->op, def->overload));
}

// The function's nodes are built in place, in a scope of their own where only its inputs are known.
static bool inline_function(Import *im, const Namespace *s, OnnxNode *n, const OnnxFunction *f) {
    for (const Inlined *c = s->call; c; c = c->up)
        if (c->function == f) {
            onnx_fail(n, "function \"%s\" calls itself", f->name);
            return false;
        }
    if (s->depth >= MAX_CALLS) {
        diag_error_as(EXIT_LIMIT, n->loc, "functions and bodies are nested more than %d deep", MAX_CALLS);
        return false;
    }
    if (n->def->n_in > f->n_in || n->def->n_out > f->n_out) {
        onnx_fail(n, "function \"%s\" takes %d inputs and gives %d outputs", f->name, f->n_in, f->n_out);
        return false;
    }
    Inlined call = { f, n->def, s->call };
    Namespace inner;
    scope_init(im, &inner, NULL, s->g);
    inner.call = &call;
    inner.loc = n->loc;
    inner.depth = s->depth + 1;
    inner.opsets = f->n_opsets ? f->opsets : s->opsets;
    inner.n_opsets = f->n_opsets ? f->n_opsets : s->n_opsets;
    for (int i = 0; i < f->n_in; i++)
        if (!scope_bind(&inner, f->in[i], i < n->def->n_in && n->in[i] ? n->in[i] : &absent, n->loc)) return false;
    int errors = diag_errors();
    build_nodes(im, &inner, f->n_nodes, f->nodes);
    for (int i = 0; i < n->def->n_out; i++) {
        n->out[i] = scope_find(&inner, f->out[i]);
        if (!n->out[i]) onnx_fail(n, "function \"%s\" does not define its output \"%s\"", f->name, f->out[i]);
        if (n->out[i] == &poison || n->out[i] == &absent) n->out[i] = NULL;
    }
    return diag_errors() == errors;
}

static const OnnxRow *find_row(Import *im, const Namespace *s, OnnxNode *n) {
    const OnnxNodeDef *def = n->def;
    const char *shown = *def->domain ? def->domain : "ai.onnx";
    n->opset = opset_version(im, s, def->domain);
    if (!n->opset) {
        onnx_fail(n, "operator domain \"%s\" is not imported by the model", shown);
        return NULL;
    }
    if (!*def->domain && n->opset > ONNX_OPSET_LATEST) n->opset = ONNX_OPSET_LATEST;
    bool known;
    const OnnxRow *row = onnx_row(def->domain, def->op, n->opset, &known);
    if (row) return row;
    if (known)
        onnx_fail(n, "operator %s is not supported in version %lld of \"%s\"", def->op, (long long)n->opset, shown);
    else onnx_fail(n, "operator %s of \"%s\" is not supported; `burncc ops` lists those that are", def->op, shown);
    return NULL;
}

static void warn_unread(const OnnxNode *n) {
    static const char *const harmless[] = { "consumed_inputs", "layout", "storage_order", "body", "then_branch",
        "else_branch" };
    for (int i = 0; i < n->def->n_attrs; i++) {
        bool known = n->read[i];
        for (size_t j = 0; j < COUNT(harmless) && !known; j++) known = !strcmp(harmless[j], n->def->attrs[i].name);
        if (!known) diag_warn(n->loc, "attribute \"%s\" is not known and has no effect", n->def->attrs[i].name);
    }
}

// Rows with the argument "any" pass on what they do not look at; others get tensors, and numbers unless they know
// strings.
static bool inputs_fit(const OnnxNode *n) {
    if (!strcmp(n->argument, "any")) return true;
    for (int i = 0; i < n->n_in; i++) {
        const char *what = onnx_is_sequence(n->in[i]) ? "a sequence" :
            n->in[i] && n->in[i]->type.dtype == DT_STRING && !onnx_takes_strings(n->def->op, i) ?
                                                        "a tensor of strings" :
                                                        NULL;
        if (what) {
            onnx_fail(n, "input %d is %s; this operator takes tensors of numbers", i, what);
            return false;
        }
    }
    return true;
}

static bool run_builder(OnnxNode *n, const OnnxRow *row) {
    int errors = diag_errors();
    n->argument = row->argument;
    n->g->loc = n->loc;
    if (!inputs_fit(n)) return false;
    Value *v = row->build(n);
    if (diag_errors() != errors || n->poisoned) return false;
    if (!v && !(n->n_out == 0 || !n->asked[0])) {
        onnx_fail(n, "this use of the operator is not supported");
        return false;
    }
    if (n->n_out) n->out[0] = v;
    warn_unread(n);
    return true;
}

static void build_node(Import *im, Namespace *s, const OnnxNodeDef *def) {
    if (im->stop) return;
    if (++im->nodes > MAX_NODES) {
        diag_error_as(
            EXIT_LIMIT, def->loc, "the model has more than %d nodes once functions and bodies are inlined", MAX_NODES);
        im->stop = true;
        return;
    }
    const Loc *loc = def->loc;
    if (s->loc) {
        Loc *chained = arena_copy(im->arena, loc, sizeof *loc);
        chained->next = s->loc;
        loc = chained;
    }
    OnnxNode n = {
        .g = s->g, .loc = loc, .def = def, .n_in = def->n_in, .n_out = def->n_out, .import = im, .scope = s
    };
    n.in = NEW_ARRAY(im->arena, Value *, def->n_in + 1);
    n.out = NEW_ARRAY(im->arena, Value *, def->n_out + 8);
    n.asked = NEW_ARRAY(im->arena, bool, def->n_out + 1);
    n.read = NEW_ARRAY(im->arena, bool, def->n_attrs + 1);
    for (int i = 0; i < def->n_out; i++) n.asked[i] = *def->out[i] != 0;
    const OnnxFunction *f = find_function(im, def);
    const OnnxRow *row = f ? NULL : find_row(im, s, &n);
    bool ok = resolve_inputs(s, &n) && (f || row);
    if (ok) ok = f ? inline_function(im, s, &n, f) : run_builder(&n, row);
    bind_outputs(s, &n, ok);
}

static void build_nodes(Import *im, Namespace *s, int count, const OnnxNodeDef *nodes) {
    s->n_nodes = count;
    s->nodes = nodes;
    for (int i = 0; i < count; i++)
        for (int j = 0; j < nodes[i].n_out; j++)
            if (*nodes[i].out[j]) strmap_put(s->makers, nodes[i].out[j], (void *)(uintptr_t)&nodes[i]);
    for (int i = 0; i < count; i++) build_node(im, s, &nodes[i]);
}

// ---------------------------------------------------------------- graphs

static void add_initializers(Import *im, Namespace *s, const OnnxGraphDef *def, bool top) {
    Loc file = { .file = im->model->file, .node = -1 };
    for (int i = 0; i < def->n_inits; i++) {
        const OnnxInit *init = &def->inits[i];
        if (!*init->name) {
            diag_error(&file, "initializer %d has no name", i);
            continue;
        }
        Value *v = init->tensor ? graph_const(s->g, init->tensor, init->name) : &poison;
        if (top && init->tensor) v->trainable = dtype_is_float(init->tensor->type.dtype);
        scope_bind(s, init->name, v, &file);
    }
}

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
    scope_init(im, &inner, n->scope, g);
    inner.loc = n->loc;
    for (int i = 0; i < n_in; i++) scope_bind(&inner, body->inputs[i].name, in[i], n->loc);
    add_initializers(im, &inner, body, false);
    build_nodes(im, &inner, body->n_nodes, body->nodes);
    for (int i = 0; i < n_out; i++) {
        out[i] = scope_find(&inner, body->outputs[i].name);
        if (!out[i]) onnx_fail(n, "output \"%s\" of the body is not defined", body->outputs[i].name);
    }
    n->g->loc = n->loc;
    for (int i = 0; i < n_out; i++) n->poisoned = n->poisoned || out[i] == &poison;
    return diag_errors() == errors && !n->poisoned;
}

static const ModelEnd *find_info(int count, const ModelEnd *infos, const char *name) {
    for (int i = 0; i < count; i++)
        if (!strcmp(infos[i].name, name)) return &infos[i];
    return NULL;
}

// An output of a function's node is declared where it is an output of the call, too.
const EndDim *onnx_declared_dim(const OnnxNode *n, int out, int axis) {
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

bool onnx_says_notes(const OnnxNode *n) { return n->import->options && !n->import->options->quiet; }

const DimOption *onnx_dim_option(const OnnxNode *n, const char *name) {
    const Options *o = n->import->options;
    for (int i = 0; o && i < o->dims.n; i++)
        if (!strcmp(o->dims.at[i].name, name)) return &o->dims.at[i];
    return NULL;
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

Graph *onnx_body_graph(OnnxNode *n, const char *attr, int n_in, const Type *types, int n_out) {
    const OnnxGraphDef *body = onnx_body(n, attr);
    if (!body) return NULL;
    Graph *g = graph_body(n->g, attr);
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
    for (int i = 0; i < d->n_in; i++) strmap_put(marked, d->in[i], &poison);
    for (int i = 0; i < d->n_attrs; i++)
        for (int k = 0; d->attrs[i].graph && k < d->attrs[i].graph->n_nodes; k++)
            mark_reads(&d->attrs[i].graph->nodes[k], marked);
}

// Forwards: the nodes that `names` flow into. Backwards: those of them that flow into `wanted`.
static bool *nodes_between(
    const OnnxNode *n, const Namespace *s, int count, const char *const *names, const char *wanted) {
    StrMap *after = strmap_new(n->g->arena), *before = strmap_new(n->g->arena);
    bool *between = NEW_ARRAY(n->g->arena, bool, s->n_nodes + 1);
    for (int i = 0; i < count; i++) strmap_put(after, names[i], &poison);
    for (int i = 0; i < s->n_nodes; i++) {
        const OnnxNodeDef *d = &s->nodes[i];
        between[i] = d != n->def && !any_marked(after, d->n_out, d->out) && node_reads(d, after);
        for (int k = 0; k < d->n_out && between[i]; k++)
            if (*d->out[k]) strmap_put(after, d->out[k], &poison);
    }
    strmap_put(before, wanted, &poison);
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
    scope_init(n->import, &inner, n->scope, g);
    inner.loc = n->loc;
    for (int i = 0; i < count; i++)
        if (!scope_bind(&inner, names[i], values[i], n->loc)) return NULL;
    const bool *between = s ? nodes_between(n, s, count, names, wanted) : NULL;
    for (int i = 0; s && i < s->n_nodes; i++)
        if (between[i]) build_node(n->import, &inner, &s->nodes[i]);
    n->g->loc = n->loc;
    Value *v = scope_find(&inner, wanted);
    if (!v) return onnx_fail(n, "\"%s\" is defined nowhere before this node", wanted);
    if (v != &poison) return v;
    n->poisoned = true;
    return NULL;
}

// ---------------------------------------------------------------- the model's inputs and outputs

const ModelEnd *const *onnx_true_inputs(Arena *a, const OnnxModel *m, int *n) {
    StrMap *inits = strmap_new(a);
    const ModelEnd **found = NEW_ARRAY(a, const ModelEnd *, m->graph->n_inputs + 1);
    for (int i = 0; i < m->graph->n_inits; i++) strmap_put(inits, m->graph->inits[i].name, &poison);
    *n = 0;
    for (int i = 0; i < m->graph->n_inputs; i++)
        if (!strmap_get(inits, m->graph->inputs[i].name)) found[(*n)++] = &m->graph->inputs[i];
    return found;
}

static void add_input(Import *im, Namespace *s, const ModelEnd *in) {
    int index = (int)(in - im->model->graph->inputs);
    Loc file = { .file = im->model->file, .node = -1 };
    if (!*in->name) diag_error(&file, "input %d has no name", index);
    Value *v = onnx_end_input(s->g, im->model, im->options, in, index);
    if (*in->name) scope_bind(s, in->name, v ? v : &poison, &file);
}

static void add_outputs(Import *im, const Namespace *s, const OnnxGraphDef *def) {
    Loc file = { .file = im->model->file, .node = -1 };
    StrMap *seen = strmap_new(im->arena);
    if (!def->n_outputs) diag_error(&file, "the graph has no outputs");
    for (int i = 0; i < def->n_outputs; i++) {
        const char *name = def->outputs[i].name;
        Value *v = scope_find(s, name);
        if (!v) diag_error(&file, "output \"%s\" is defined nowhere", name);
        if (strmap_get(seen, name)) diag_error(&file, "output \"%s\" is listed twice", name);
        strmap_put(seen, name, &poison);
        if (v && v != &poison) onnx_end_output(s->g, im->model, &def->outputs[i], v);
    }
}

// ---------------------------------------------------------------- the model

static bool check_versions(const OnnxModel *m) {
    Loc file = { .file = m->file, .node = -1 };
    if (m->ir_version < 1) {
        diag_error(&file, "not an ONNX model: it has no IR version");
        return false;
    }
    if (m->ir_version > ONNX_IR_LATEST)
        diag_warn(&file, "IR version %lld is newer than %d, the newest known; reading it as that",
            (long long)m->ir_version, ONNX_IR_LATEST);
    if (!m->n_opsets && m->ir_version >= 3) {
        diag_error(&file, "the model imports no operator set");
        return false;
    }
    for (int i = 0; i < m->n_opsets; i++) {
        const OnnxOpset *o = &m->opsets[i];
        if (o->version < 1) {
            diag_error(&file, "operator set \"%s\" has the version %lld", o->domain, (long long)o->version);
            return false;
        }
        if (!*o->domain && o->version > ONNX_OPSET_LATEST)
            diag_warn(&file, "operator set %lld is newer than %d, the newest known; reading it as that",
                (long long)o->version, ONNX_OPSET_LATEST);
    }
    return true;
}

static void register_functions(Import *im) {
    for (int i = 0; i < im->model->n_functions; i++) {
        const OnnxFunction *f = &im->model->functions[i];
        const char *key = arena_printf(im->arena, "%s\n%s\n%s", f->domain, f->name, f->overload);
        Loc at = { .file = im->model->file, .node = -1, .name = f->name };
        if (strmap_get(im->functions, key)) diag_error(&at, "function is defined twice");
        strmap_put(im->functions, key, (void *)(uintptr_t)f);
    }
}

static void add_inputs(Import *im, Namespace *s) {
    int n;
    const ModelEnd *const *in = onnx_true_inputs(im->arena, im->model, &n);
    for (int i = 0; i < n; i++) add_input(im, s, in[i]);
}

Graph *onnx_build(Arena *a, const Model *model, const Options *o) {
    const OnnxModel *m = model->source;
    if (!check_versions(m) || (o && !onnx_ends_check(a, m, o))) return NULL;
    Graph *g = graph_new(a, o && o->name ? o->name : "model", m->file);
    Import im = { .arena = a, .model = m, .options = o, .functions = strmap_new(a) };
    register_functions(&im);
    Namespace top;
    scope_init(&im, &top, NULL, g);
    top.opsets = m->opsets;
    top.n_opsets = m->n_opsets;
    add_initializers(&im, &top, m->graph, true);
    add_inputs(&im, &top);
    build_nodes(&im, &top, m->graph->n_nodes, m->graph->nodes);
    g->loc = NULL;
    add_outputs(&im, &top, m->graph);
    return g;
}

Graph *onnx_inputs_only(Arena *a, const Model *model, const Options *o) {
    const OnnxModel *m = model->source;
    int errors = diag_errors();
    Graph *g = graph_new(a, "inputs", m->file);
    Options given = { .sequences.at = o->sequences.at,
        .sequences.n = o->sequences.n,
        .absent.at = o->absent.at,
        .absent.n = o->absent.n,
        .quiet = true };
    Import im = { .arena = a, .model = m, .options = &given, .functions = strmap_new(a) };
    Namespace top;
    scope_init(&im, &top, NULL, g);
    add_inputs(&im, &top);
    return diag_errors() == errors ? g : NULL;
}
