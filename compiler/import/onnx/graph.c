// SPDX-License-Identifier: MIT OR Apache-2.0
// From the decoded model to a Graph: names become values, functions and branches are inlined, every node meets its
// builder.
//
// In: OnnxModel. Out: Graph, or NULL with diagnostics. The idea: a Namespace maps names to values; they nest as
// graphs do. A node that fails binds its outputs to `poison`, whose users are passed over in silence, so that every
// independent mistake of a model is reported, once.
#include "import/onnx/names.h"

#include <stdlib.h>
#include <string.h>

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
        n->in[i] = names_find(s, def->in[i]);
        if (n->in[i] == &names_poison) ok = false;
        bool found = n->in[i] != NULL;
        if (n->in[i] == &names_absent) n->in[i] = NULL;
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
        Value *v = ok ? n->out[i] : &names_poison;
        if (!v) {
            onnx_fail(n, "output %d (\"%s\") of this operator is not supported", i, name);
            v = &names_poison;
        }
        if (v != &names_poison && !v->name) v->name = name;
        names_bind(s, name, v, n->loc);
    }
}

static int64_t opset_version(const Import *im, const Namespace *s, const char *domain) {
    for (int i = 0; i < s->n_opsets; i++)
        if (!strcmp(s->opsets[i].domain, domain)) return s->opsets[i].version;
    return !*domain && im->model->ir_version < 3 ? 1 : 0;
}

const OnnxFunction *onnx_function(Import *im, const OnnxNodeDef *def) {
    return strmap_get(im->functions, arena_printf(im->arena, "%s\n%s\n%s", def->domain, def->op, def->overload));
}

// The function's nodes are built in place, in a scope of their own where only its inputs are known.
static bool inline_function(Import *im, const Namespace *s, OnnxNode *n, const OnnxFunction *f) {
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
    names_init(im, &inner, NULL, s->g);
    inner.call = &call;
    inner.loc = n->loc;
    inner.depth = s->depth + 1;
    inner.opsets = f->n_opsets ? f->opsets : s->opsets;
    inner.n_opsets = f->n_opsets ? f->n_opsets : s->n_opsets;
    for (int i = 0; i < f->n_in; i++)
        if (!names_bind(&inner, f->in[i], i < n->def->n_in && n->in[i] ? n->in[i] : &names_absent, n->loc))
            return false;
    int errors = diag_errors();
    onnx_build_nodes(im, &inner, f->n_nodes, f->nodes);
    for (int i = 0; i < n->def->n_out; i++) {
        n->out[i] = names_find(&inner, f->out[i]);
        if (!n->out[i]) onnx_fail(n, "function \"%s\" does not define its output \"%s\"", f->name, f->out[i]);
        if (n->out[i] == &names_poison || n->out[i] == &names_absent) n->out[i] = NULL;
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
    bool known;
    int newest;
    const OnnxRow *row = onnx_row(def->domain, def->op, n->opset, &known, &newest);
    if (row) return row;
    if (known && n->opset > newest)
        onnx_fail(n, "version %lld of \"%s\" is newer than %d, the newest known; export the model for that version",
            (long long)n->opset, shown, newest);
    else if (known)
        onnx_fail(n, "operator %s is not supported in version %lld of \"%s\"", def->op, (long long)n->opset, shown);
    else onnx_fail(n, "operator %s of \"%s\" is not supported; `burncc ops` lists those that are", def->op, shown);
    return NULL;
}

// Absent ones at the end are passed over where there are too many.
static bool count_fits(const OnnxNode *n, OnnxCount may, int has, const char *const *names, const char *what) {
    if (has > MAX_ENDS && may.most > MAX_ENDS) {
        diag_error_as(EXIT_LIMIT, n->loc, "has %d %ss, at most %d are supported; do it in several nodes", has, what,
            MAX_ENDS);
        return false;
    }
    while (has > may.most && !*names[has - 1]) has--;
    if (may.fewest <= has && has <= may.most) return true;
    bool wants_more = has < may.fewest;
    int bound = wants_more ? may.fewest : may.most;
    onnx_fail(n, "the operator has at %s %d %s%s in version %lld, this node has %d", wants_more ? "least" : "most",
        bound, what, bound == 1 ? "" : "s", (long long)n->opset, has);
    return false;
}

// Attributes that may be there though nothing reads them: of old versions and of subgraphs, and those that the operator
// has but looks at only beside certain inputs, types or other attributes.
static bool may_go_unread(const char *op, const char *attribute) {
    static const struct { const char *op, *attribute; } rows[] = { { NULL, "consumed_inputs" }, { NULL, "layout" },
        { NULL, "storage_order" }, { NULL, "body" }, { NULL, "then_branch" }, { NULL, "else_branch" },
        { "Cast", "round_mode" }, { "Cast", "saturate" }, { "CastLike", "round_mode" }, { "CastLike", "saturate" },
        { "MoE", "activation_alpha" }, { "MoE", "activation_beta" }, { "QMoE", "activation_alpha" },
        { "QMoE", "activation_beta" }, { "QuantizeLinear", "saturate" }, { "Resize", "keep_aspect_ratio_policy" } };
    for (size_t i = 0; i < COUNT(rows); i++)
        if ((!rows[i].op || !strcmp(rows[i].op, op)) && !strcmp(rows[i].attribute, attribute)) return true;
    return false;
}

static void warn_unread(const OnnxNode *n) {
    for (int i = 0; i < n->def->n_attrs; i++)
        if (!n->read[i] && !may_go_unread(n->def->op, n->def->attrs[i].name))
            diag_warn(WARN_attribute, n->loc, "attribute \"%s\" is not known and has no effect", n->def->attrs[i].name);
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
    if (!count_fits(n, row->in, n->n_in, n->def->in, "input")) return false;
    if (!count_fits(n, row->out, n->n_out, n->def->out, "output")) return false;
    if (!inputs_fit(n) || !onnx_resized(n)) return false;
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

void onnx_build_node(Import *im, Namespace *s, const OnnxNodeDef *def) {
    if (!im->stop && ++im->nodes > im->most) {
        diag_error_as(EXIT_LIMIT, def->loc, "the model has more than %d nodes once functions and bodies are inlined",
            im->most);
        im->stop = true;
    }
    if (im->stop) {
        bind_outputs(s, &(OnnxNode){ .def = def, .loc = def->loc }, false);
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
    const OnnxFunction *f = onnx_function(im, def);
    const OnnxRow *row = f ? NULL : find_row(im, s, &n);
    bool ok = resolve_inputs(s, &n) && (f || row);
    if (ok) ok = f ? inline_function(im, s, &n, f) : run_builder(&n, row);
    bind_outputs(s, &n, ok);
}

void onnx_build_nodes(Import *im, Namespace *s, int count, const OnnxNodeDef *nodes) {
    s->n_nodes = count;
    s->nodes = nodes;
    for (int i = 0; i < count; i++)
        for (int j = 0; j < nodes[i].n_out; j++)
            if (*nodes[i].out[j]) strmap_put(s->makers, nodes[i].out[j], (void *)(uintptr_t)&nodes[i]);
    for (int i = 0; i < count; i++) onnx_build_node(im, s, &nodes[i]);
}

// ---------------------------------------------------------------- graphs

void onnx_add_initializers(Import *im, Namespace *s, const OnnxGraphDef *def, bool top) {
    Loc file = { .file = im->model->file, .node = -1 };
    for (int i = 0; i < def->n_inits; i++) {
        const OnnxInit *init = &def->inits[i];
        if (!*init->name) {
            diag_error(&file, "initializer %d has no name", i);
            continue;
        }
        Value *v = init->tensor ? graph_given(s->g, init->tensor, init->name) : &names_poison;
        if (top && init->tensor) v->trainable = dtype_is_float(init->tensor->type.dtype);
        names_bind(s, init->name, v, &file);
    }
}

// ---------------------------------------------------------------- the model's inputs and outputs

const ModelEnd *const *onnx_true_inputs(Arena *a, const OnnxModel *m, int *n) {
    StrMap *inits = strmap_new(a);
    const ModelEnd **found = NEW_ARRAY(a, const ModelEnd *, m->graph->n_inputs + 1);
    for (int i = 0; i < m->graph->n_inits; i++) strmap_put(inits, m->graph->inits[i].name, &names_poison);
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
    if (*in->name) names_bind(s, in->name, v ? v : &names_poison, &file);
}

static void add_outputs(Import *im, const Namespace *s, const OnnxGraphDef *def) {
    Loc file = { .file = im->model->file, .node = -1 };
    StrMap *seen = strmap_new(im->arena);
    if (!def->n_outputs) diag_error(&file, "the graph has no outputs");
    if (def->n_outputs > MAX_ENDS) {
        diag_error_as(EXIT_LIMIT, &file, "the model has %d outputs, at most %d are supported; concatenate some",
            def->n_outputs, MAX_ENDS);
        return;
    }
    for (int i = 0; i < def->n_outputs; i++) {
        const char *name = def->outputs[i].name;
        Value *v = names_find(s, name);
        if (!v) diag_error(&file, "output \"%s\" is defined nowhere", name);
        if (strmap_get(seen, name)) diag_error(&file, "output \"%s\" is listed twice", name);
        strmap_put(seen, name, &names_poison);
        if (v && v != &names_poison) onnx_end_output(s->g, im->model, &def->outputs[i], v);
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
        diag_warn(WARN_ir_version, &file, "IR version %lld is newer than %d, the newest known; reading it as that",
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
        if (*o->domain || o->version <= ONNX_OPSET_LATEST) continue;
        diag_error(&file, "operator set %lld is newer than %d, the newest known; export the model for that version",
            (long long)o->version, ONNX_OPSET_LATEST);
        return false;
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

Graph *onnx_import(Import *im) {
    const OnnxModel *m = im->model;
    const Options *o = im->options;
    Graph *g = graph_new(im->arena, o && o->name ? o->name : "model", m->file);
    im->functions = strmap_new(im->arena);
    register_functions(im);
    if (!onnx_calls_check(im)) return NULL;
    Namespace top;
    names_init(im, &top, NULL, g);
    top.opsets = m->opsets;
    top.n_opsets = m->n_opsets;
    onnx_add_initializers(im, &top, m->graph, true);
    add_inputs(im, &top);
    onnx_build_nodes(im, &top, m->graph->n_nodes, m->graph->nodes);
    g->loc = NULL;
    add_outputs(im, &top, m->graph);
    for (int i = 0; i < m->metadata.n; i++) VEC_PUSH(im->arena, g->metadata, m->metadata.at[i]);
    return g;
}

Graph *onnx_build(Arena *a, const Model *model, const Options *o) {
    const OnnxModel *m = model->source;
    if (!check_versions(m) || (o && !onnx_ends_check(a, m, o))) return NULL;
    Import im = { .arena = a, .model = m, .options = o };
    return m->was ? onnx_import_resized(&im) : onnx_import(&im);
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
    names_init(&im, &top, NULL, g);
    add_inputs(&im, &top);
    return diag_errors() == errors ? g : NULL;
}
