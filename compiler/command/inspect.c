// SPDX-License-Identifier: MIT OR Apache-2.0
// burncc inspect: what a model is and what it would cost. In: a model. Out: inputs, outputs, symbolic dimensions,
// operators as the file has them, parameters, and, if the model can be compiled as it stands, multiply-adds and
// memory. Status 0 only if it can.
#include "picture.h"
#include "profile.h"

#include <stdlib.h>
#include <string.h>

typedef struct OpCount { const char *op; int n; } OpCount;
typedef struct Findings {
    VEC(OpCount) ops;                                   // most frequent first
    int nodes;
    int64_t parameters, parameter_bytes;
    bool declared;                                      // as the file says; nothing is known of parameters
    const Programs *programs;                           // one for each function; NULL: not supported
} Findings;
typedef struct Cost { double multiply_adds, flops; } Cost;

// Which of the graph's inputs and outputs are of a function.
typedef struct Part { const char *name; int input, inputs, output, outputs; } Part;

static Part part_of(const Graph *g, int function) {
    Part p = { .inputs = g->inputs.n, .outputs = g->outputs.n };
    for (int i = 0; i <= function && i < g->functions.n; i++) {
        const GraphFunction *f = &g->functions.at[i];
        p = (Part){ f->name, i ? p.input + p.inputs : 0, f->inputs, i ? p.output + p.outputs : 0, f->outputs };
    }
    return p;
}

static int parts_of(const Graph *g) { return g->functions.n ? g->functions.n : 1; }

static void count_op(Arena *a, Findings *f, const char *op) {
    for (int i = 0; i < f->ops.n; i++)
        if (strcmp(f->ops.at[i].op, op) == 0) {
            f->ops.at[i].n++;
            return;
        }
    VEC_PUSH(a, f->ops, (OpCount){ op, 1 });
}

static int compare_counts(const void *x, const void *y) {
    const OpCount *a = x, *b = y;
    return a->n != b->n ? (a->n < b->n ? 1 : -1) : strcmp(a->op, b->op);
}

// One of the file's nodes may have become several of ours, in a row; they share its number. Of a text each counts. What
// a custom operation could be made of instead is no part of the model.
static void count_nodes(Arena *a, Findings *f, const Graph *g) {
    int last = -1;
    for (const Node *n = g->first; n; n = n->next) {
        bool numbered = n->loc && n->loc->op && n->loc->node >= 0, known = numbered || (n->loc && n->loc->line);
        if (numbered && n->loc->node == last) continue;
        last = numbered ? n->loc->node : -1;
        f->nodes += known;
        if (known) count_op(a, f, n->loc->op);
        for (int i = 0; i < n->n_bodies && n->op != OP_Custom; i++) count_nodes(a, f, n->bodies[i]);
    }
}

static void count_parameter(Findings *f, const Value *v, StrMap *seen, Arena *a) {
    if (!v || !v->data || !dtype_is_float(v->type.dtype)) return;
    const char *key = arena_printf(a, "%p", (const void *)v->data);
    if (strmap_get(seen, key)) return;
    strmap_put(seen, key, v->data);
    f->parameters += type_count(&v->data->type);
    f->parameter_bytes += type_bytes(&v->data->type);
}

static void count_parameters(Arena *a, Findings *f, const Graph *g, StrMap *seen) {
    for (const Node *n = g->first; n; n = n->next) {
        for (int i = 0; i < n->n_in; i++) count_parameter(f, n->in[i], seen, a);
        for (int i = 0; i < n->n_bodies; i++) count_parameters(a, f, n->bodies[i], seen);
    }
}

// Multiply-adds of a contraction: outputs times what is summed for each; sizes at their upper bounds.
static double multiply_adds(const Node *n) {
    const OpInfo *info = &op_table[n->op];
    if (info->form != FORM_CONTRACT) return 0;
    return (double)type_count_upper(n->graph, &n->out[0]->type) * (double)info->work(n);
}

static void add_costs(Cost *c, const Plan *p) {
    for (int i = 0; i < p->kernels.n; i++) {
        const Kernel *k = p->kernels.at[i];
        c->flops += k->flops;
        for (int j = 0; j < k->nodes.n; j++)
            c->multiply_adds += multiply_adds(k->nodes.at[j]);
        for (int j = 0; j < kernel_bodies(k); j++) add_costs(c, k->region.bodies[j]);
    }
}

// ---------------------------------------------------------------- printing

static void print_values(Text *t, Arena *a, const Graph *g, const Part *p, bool outputs) {
    for (int i = 0; i < (outputs ? p->outputs : p->inputs); i++) {
        const int at = i + (outputs ? p->output : p->input);
        const Value *v = outputs ? g->outputs.at[at] : g->inputs.at[at];
        text_printf(t, "%-12s %s: %s\n",
            i           ? "" :
                outputs ? "outputs" :
                          "inputs",
            text_name(a, outputs ? g->output_names.at[at] : v->name), type_text(a, g, &v->type));
    }
}

static void print_ends(Text *t, Arena *a, const Graph *g) {
    for (int i = 0; i < parts_of(g); i++) {
        const Part p = part_of(g, i);
        if (p.name) text_printf(t, "%-12s %s\n", "function", p.name);
        print_values(t, a, g, &p, false);
        print_values(t, a, g, &p, true);
    }
}

static void print_cost(Text *t, Arena *a, const Program *p) {
    Cost c = { 0 };
    add_costs(&c, p->plan);
    if (p->function) text_printf(t, "%-12s %s\n", "function", p->function);
    if (p->plan->options->train) text_printf(t, "%-12s %s\n", "program", p->plan->graph->name);
    text_printf(t, "%-12s %s multiply-adds, %s operations in all, %d kernels\n", "work",
        text_count(a, c.multiply_adds), text_count(a, c.flops), p->plan->kernels.n);
    text_printf(t, "%-12s workspace %s (%lld bytes; lower bound %lld), weights %s\n", "memory",
        text_bytes(a, p->plan->work_bytes), (long long)p->plan->work_bytes, (long long)p->plan->live_bytes,
        text_bytes(a, p->plan->weight_bytes));
}

static void print_people(Text *t, Arena *a, const Options *o, const Model *m, Graph *g, const Findings *f) {
    int symbols;
    const Symbol *symbol = graph_symbols(g, &symbols);
    text_printf(t, "%-12s %s\n%-12s %s", "model", text_name(a, m->file), "format", m->n_facts ? "" : m->format->name);
    for (int i = 0; i < m->n_facts; i++)
        text_printf(t, "%s%s %lld", i ? ", " : "", m->facts[i].label, (long long)m->facts[i].value);
    text_printf(t, "\n");
    print_ends(t, a, g);
    for (int i = 0; i < symbols; i++) {
        text_printf(t, "%-12s %s", i ? "" : "symbols", text_name(a, symbol[i].name));
        if (symbol[i].pinned) text_printf(t, " = %lld", (long long)symbol[i].hi);
        text_printf(t, "\n");
    }
    text_printf(t, "%-12s %d:", "operators", f->nodes);
    for (int i = 0; i < f->ops.n; i++)
        text_printf(t, "%s %s %d", i ? "," : "", text_name(a, f->ops.at[i].op), f->ops.at[i].n);
    text_printf(t, "\n");
    if (!f->declared)
        text_printf(t, "%-12s %s (%s)\n", "parameters", text_count(a, (double)f->parameters),
            text_bytes(a, f->parameter_bytes));
    for (int i = 0; f->programs && i < f->programs->n; i++) print_cost(t, a, &f->programs->at[i]);
    if (f->programs && f->programs->training) inspect_training(t, a, o, g, f->programs);
    text_printf(t, "%-12s %s\n", "support", f->programs ? "all of it" : "not as it stands, see above");
}

static void json_values(Text *t, Arena *a, const Graph *g, const Part *p, bool outputs) {
    text_printf(t, "\"%s\":[", outputs ? "outputs" : "inputs");
    for (int i = 0; i < (outputs ? p->outputs : p->inputs); i++) {
        const int at = i + (outputs ? p->output : p->input);
        const Value *v = outputs ? g->outputs.at[at] : g->inputs.at[at];
        text_printf(t, "%s{\"name\":", i ? "," : "");
        json_quoted(t, outputs ? g->output_names.at[at] : v->name);
        text_printf(t, ",");
        json_type(t, a, g, &v->type);
        text_printf(t, "}");
    }
    text_printf(t, "],");
}

static void json_cost(Text *t, const Plan *p) {
    Cost c = { 0 };
    add_costs(&c, p);
    text_printf(t,
        "\"multiply_adds\":%.17g,\"flops\":%.17g,\"kernels\":%d,\"workspace_bytes\":%lld,"
        "\"workspace_bound\":%lld,\"weights_bytes\":%lld",
        c.multiply_adds, c.flops, p->kernels.n, (long long)p->work_bytes, (long long)p->live_bytes,
        (long long)p->weight_bytes);
}

static void json_functions(Text *t, Arena *a, const Graph *g, const Programs *programs) {
    text_printf(t, "\"functions\":[");
    for (int i = 0; i < g->functions.n; i++) {
        const Part p = part_of(g, i);
        text_printf(t, "%s{", i ? "," : "");
        json_values(t, a, g, &p, false);
        json_values(t, a, g, &p, true);
        if (programs) json_cost(t, programs->at[i].plan);
        text_printf(t, "%s\"name\":\"%s\"}", programs ? "," : "", p.name);
    }
    text_printf(t, "],");
}

static void print_json(Text *t, Arena *a, const Options *o, const Model *m, Graph *g, const Findings *f) {
    int symbols;
    const Symbol *symbol = graph_symbols(g, &symbols);
    text_printf(t, "{\"model\":");
    json_quoted(t, m->file);
    text_printf(t, ",");
    for (int i = 0; i < m->n_facts; i++) text_printf(t, "\"%s\":%lld,", m->facts[i].key, (long long)m->facts[i].value);
    const Part all = { .inputs = g->inputs.n, .outputs = g->outputs.n };
    if (g->functions.n) json_functions(t, a, g, f->programs);
    else json_values(t, a, g, &all, false);
    if (!g->functions.n) json_values(t, a, g, &all, true);
    text_printf(t, "\"symbols\":[");
    for (int i = 0; i < symbols; i++) {
        if (i) text_printf(t, ",");
        json_quoted(t, symbol[i].name);
    }
    text_printf(t, "],\"nodes\":%d,\"operators\":{", f->nodes);
    for (int i = 0; i < f->ops.n; i++) {
        if (i) text_printf(t, ",");
        json_quoted(t, f->ops.at[i].op);
        text_printf(t, ":%d", f->ops.at[i].n);
    }
    if (!f->declared)
        text_printf(t, "},\"parameters\":%lld,\"parameter_bytes\":%lld", (long long)f->parameters,
            (long long)f->parameter_bytes);
    else text_printf(t, "}");
    text_printf(t, ",\"supported\":%s", f->programs ? "true" : "false");
    if (f->programs && f->programs->training) inspect_training_json(t, a, o, g, f->programs);
    else if (f->programs && !g->functions.n) {
        text_printf(t, ",");
        json_cost(t, f->programs->at[0].plan);
    }
    text_printf(t, "}\n");
}

// What is drawn of a model that cannot be compiled is the graph as it was imported.
static int inspect_dot(Arena *a, const CommandOptions *c, const Model *m, Graph *g) {
    const Stage stage = c->stage ? (Stage)stage_find(c->stage) : STAGE_IMPORT;
    const Programs *programs = stage != STAGE_IMPORT ? compile_graph(a, &c->compile, m, g) : NULL;
    if (stage != STAGE_IMPORT && !programs) return diag_status();
    const Pictures p = pictures_of(a, stage, g, programs);
    Text t;
    text_init(&t, a);
    dot_print(&t, c->compile.name, &p);
    if (c->compile.output) text_write(a, c->compile.output, &t);
    else print_text(&t, 0);
    return diag_status();
}

// The program of times: the only one, in C.
static const Profile *times(Arena *a, CommandOptions *c, const Programs *programs, BuildCache *marked) {
    if (programs->n == 1) return profile_take(a, c, marked);
    diag_error_as(EXIT_USAGE, NULL, "--profile: the model has several functions; --function NAME chooses one");
    return NULL;
}

static int inspect_html(Arena *a, CommandOptions *c, const Model *m, Graph *g) {
    Graph *imported = graph_clone(g, NULL);                                // passes change the graph
    Programs *programs = compile_graph(a, &c->compile, m, g);
    if (!programs) return diag_status();
    BuildCache marked = { .arena = a };
    const Profile *profile = c->profile ? times(a, c, programs, &marked) : NULL;
    Pictures stages[STAGE_COUNT];
    for (int i = 0; i < STAGE_COUNT; i++) stages[i] = pictures_of(a, (Stage)i, imported, programs);
    Text t;
    text_init(&t, a);
    if (!c->profile || profile) {
        html_print(&t, a, c, stages, programs, profile);
        text_write(a, c->html, &t);
    }
    build_cache_free(&marked);
    return diag_status();
}

// ---------------------------------------------------------------- a model that does not become a graph
typedef struct Counting { Arena *a; Findings *f; } Counting;

static void count_declared(void *ctx, const char *op) {
    const Counting *c = ctx;
    c->f->nodes++;
    count_op(c->a, c->f, op);
}

// An output as the file declares it, among those of the graph; nothing where it says no type that there is.
static void declare_output(Graph *g, const ModelEnd *e) {
    if (!e->has_shape || e->rank > MAX_RANK || strcmp(e->kind, "tensor") || !dtype_size((DType)e->dtype)) return;
    Value *v = NEW(g->arena, Value);
    v->name = e->name;
    v->graph = g;
    v->type = (Type){ .dtype = (DType)e->dtype, .rank = e->rank };
    for (int i = 0; i < e->rank; i++)
        v->type.dim[i] = e->dim[i].known ? e->dim[i].value : dim_symbol(g, *e->dim[i].symbol ? e->dim[i].symbol : "?");
    VEC_PUSH(g->arena, g->outputs, v);
    VEC_PUSH(g->arena, g->output_names, e->name);
}

// What the file says of itself, behind the diagnostics: its ends, dimensions and operators.
static int inspect_declared(Arena *a, const CommandOptions *c, const Model *m) {
    const Options *o = &c->compile;
    const int status = diag_status();
    Graph *g = m->format->operators ? m->format->inputs(a, m, o) : NULL;
    if (!g || status == EXIT_USAGE) return status;
    Findings f = { .declared = true };
    for (int i = 0; i < m->n_outputs; i++) declare_output(g, &m->outputs[i]);
    m->format->operators(m, count_declared, &(Counting){ a, &f });
    if (f.ops.n) qsort(f.ops.at, (size_t)f.ops.n, sizeof *f.ops.at, compare_counts);
    Text t;
    text_init(&t, a);
    if (c->json) print_json(&t, a, o, m, g, &f);
    else print_people(&t, a, o, m, g, &f);
    return print_text(&t, status);
}

int command_inspect(Arena *a, CommandOptions *c) {
    const Options *o = &c->compile;
    c->compile.unseen = !c->profile;
    if (weights_file(o->model)) return inspect_weights(a, c);
    if (diag_errors()) return diag_status();
    const Model *m = model_open(a, o);
    Graph *g = m ? model_graph(a, m, o) : NULL;
    if (g && o->output && !c->dot)
        diag_error_as(EXIT_USAGE, NULL, "inspect: --output writes the tensors of a file of weights, not a model's");
    if (m && !g && !c->dot && !c->html) return inspect_declared(a, c, m);
    if (!g || diag_errors()) return diag_status();
    if (c->dot) return inspect_dot(a, c, m, g);
    if (c->html) return inspect_html(a, c, m, g);
    Findings f = { 0 };
    count_nodes(a, &f, g);
    count_parameters(a, &f, g, strmap_new(a));
    if (f.ops.n) qsort(f.ops.at, (size_t)f.ops.n, sizeof *f.ops.at, compare_counts);
    f.programs = compile_graph(a, o, m, graph_clone(g, NULL));             // passes change the graph
    Text t;
    text_init(&t, a);
    if (c->json) print_json(&t, a, o, m, g, &f);
    else print_people(&t, a, o, m, g, &f);
    if (f.programs && c->report) compile_report(a, o, f.programs, &t);
    return print_text(&t, diag_status());
}
