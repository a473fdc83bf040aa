// SPDX-License-Identifier: MIT OR Apache-2.0
// burncc verify --trace: every node's value against the evaluator's, to find where a difference comes from.
//
// In: a model, options and the inputs of a data set. Out: a table, a row a node of the model,
//
//   node  op    name    value           error    ulp  growth     alone    ulp
//      0  Conv  conv_c  f32[1,8,6,6]  6.2e-08   0.52       -   6.2e-08   0.52
//      1  Relu  relu_r  f32[1,8,6,6]  6.2e-08   0.52       1         0      0
//
// and the first bad node. Errors are relative to the value's largest element, of other types than floats the number of
// elements that differ. The idea: three computations. The evaluator, the plain reference of every operation, computes
// the imported graph. `error` is that of the whole model's C, in which each node's value is an output besides, so that
// errors come down the graph as they do in the model; growth is by what it exceeds the largest error of the node's
// operands. `alone` is that of a second C file, in which each node is given the evaluator's values: who is bad there is
// guilty. Both have the model's kernels but for what fuses values away; when no node is bad and the model still
// fails, either the evaluator differs from the record too, which is said, or it is fusion.
#include "command.h"
#include "passes/passes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct Pair { Difference whole, alone; bool has_whole, has_alone; } Pair;
typedef struct Row {
    const Loc *loc;
    const Node *node;                                   // one of those that the importer made of it
    const Value *value;                                 // the worst of what it computes
    double growth;                                      // negative: its operands are exact
} Row;
typedef struct Tracing {
    Arena *a;
    Graph *graph;                                       // as imported, evaluated
    Pair *pairs;                                        // by value id
    Tolerance allowed;
    VEC(Row) rows;
} Tracing;

// ---------------------------------------------------------------- three computations

// The imported graph over these inputs, ready for value_const; NULL with diagnostics.
static Graph *evaluated(Arena *a, const Options *o, const Graph *signature, const Inputs *in) {
    Graph *g = import_graph(a, o);
    if (!g) return NULL;
    g->evaluated = true;
    for (int i = 0; i < g->inputs.n; i++) {
        Value *v = g->inputs.at[i];
        for (int j = 0; j < in->n && !v->data; j++)
            if (!strcmp(signature->inputs.at[j]->name, v->name)) v->data = in->at[j];
        if (!v->data) bug("there is no value for the input '%s'", v->name);
        v->type = v->data->type;
        v->is_input = false;
    }
    return pass_bind_dims(g, o) && diag_errors() ? NULL : g;
}

static int value_id(const char *name) { return *name == '%' ? atoi(name + 1) : -1; }

// By id; the graph's own values and those of its bodies.
static Value **values_of(Arena *a, Graph *g) {
    Value **at = NEW_ARRAY(a, Value *, g->value_count);
    for (Node *n = g->first; n; n = n->next)
        for (int i = 0; i < n->n_out; i++) at[n->out[i]->id] = n->out[i];
    return at;
}

// The model's inputs, then the evaluator's values for those that keep_values has made. NULL where it has none.
static const char *inputs_of(
    Tracing *t, const Built *b, const Graph *signature, const Inputs *in, Value *const *values, Inputs *out) {
    const Graph *g = b->plan->graph;
    int own = t->graph->inputs.n;
    *out = (Inputs){ g->inputs.n, NEW_ARRAY(t->a, Tensor *, g->inputs.n + 1) };
    for (int i = 0; i < g->inputs.n; i++) {
        const char *name = g->inputs.at[i]->name;
        for (int j = 0; j < in->n && i < own; j++)
            if (!strcmp(signature->inputs.at[j]->name, name)) out->at[i] = in->at[j];
        if (i >= own) out->at[i] = value_const(values[value_id(name)]);
        if (!out->at[i]) return arena_printf(t->a, "the evaluator cannot compute %s", text_name(t->a, name));
    }
    return NULL;
}

// Runs what was built and compares each value that it gives with the evaluator's; else why not.
static const char *compare_values(Tracing *t, const CommandOptions *c, const Built *b, const Graph *signature,
    const Inputs *in, bool alone) {
    if (!b) return "it does not compile";
    const Graph *g = b->plan->graph;
    Value **values = values_of(t->a, t->graph);
    Inputs bound;
    Tensor **got = NEW_ARRAY(t->a, Tensor *, g->outputs.n + 1);
    const char *why = inputs_of(t, b, signature, in, values, &bound);
    if (!why) why = sandbox_run(t->a, b, &bound, got, c->timeout);
    for (int i = t->graph->outputs.n; i < g->outputs.n && !why; i++) {
        int id = value_id(g->output_names.at[i]);
        const Tensor *want = value_const(values[id]);
        if (!want) continue;
        Pair *p = &t->pairs[id];
        Difference d = compare_tensors(t->a, got[i], want, t->allowed);
        *(alone ? &p->alone : &p->whole) = d;
        *(alone ? &p->has_alone : &p->has_whole) = true;
    }
    return why;
}

// ---------------------------------------------------------------- rows

static double error_of(const Difference *d) {
    return d->largest > 0 ? d->max_abs / d->largest : d->max_abs > 0 ? HUGE_VAL : (double)d->differ;
}

// The largest error of what the nodes of this row take from other nodes.
static double operand_error(const Tracing *t, const Row *r) {
    double most = 0;
    for (const Node *n = t->graph->first; n; n = n->next)
        for (int i = 0; i < n->n_in && (n == r->node || (r->loc && n->loc == r->loc)); i++) {
            const Value *v = n->in[i];
            if (!v || !v->def || v->graph != t->graph || v->def->loc == r->loc) continue;
            const Pair *p = &t->pairs[v->id];
            if (p->has_whole) most = fmax(most, error_of(&p->whole));
        }
    return most;
}

static bool is_worse(const Tracing *t, const Value *v, const Value *than) {
    if (!than) return true;
    const Pair *p = &t->pairs[v->id], *q = &t->pairs[than->id];
    if (p->has_alone && q->has_alone && !p->alone.fault != !q->alone.fault) return p->alone.fault;
    return error_of(&p->whole) > error_of(&q->whole);
}

static Row *row_for(Tracing *t, const Node *n) {
    for (int i = t->rows.n - 1; i >= 0 && n->loc; i--)
        if (t->rows.at[i].loc == n->loc) return &t->rows.at[i];
    VEC_PUSH(t->a, t->rows, (Row){ .loc = n->loc, .node = n });
    return &t->rows.at[t->rows.n - 1];
}

static void make_rows(Tracing *t) {
    for (const Node *n = t->graph->first; n; n = n->next)
        for (int i = 0; i < n->n_out; i++) {
            const Pair *p = &t->pairs[n->out[i]->id];
            if (!p->has_whole && !p->has_alone) continue;
            Row *r = row_for(t, n);
            if (is_worse(t, n->out[i], r->value)) r->value = n->out[i];
        }
    for (int i = 0; i < t->rows.n; i++) {
        Row *r = &t->rows.at[i];
        double before = operand_error(t, r);
        r->growth = before > 0 ? error_of(&t->pairs[r->value->id].whole) / before : -1;
    }
}

static const Row *first_bad(const Tracing *t, bool alone) {
    for (int i = 0; i < t->rows.n; i++) {
        const Pair *p = &t->pairs[t->rows.at[i].value->id];
        if (alone ? p->alone.fault : p->whole.fault) return &t->rows.at[i];
    }
    return NULL;
}

// ---------------------------------------------------------------- what is said

static const char *op_of(const Row *r) {
    return r->loc && r->loc->op && *r->loc->op ? r->loc->op : op_table[r->node->op].name;
}

static const char *name_of(const Row *r) {
    return r->loc && r->loc->name && *r->loc->name ? r->loc->name : r->value->name ? r->value->name : "";
}

// The number of a node, or the line of a text.
static const char *place_of(Arena *a, const Row *r) {
    if (r->loc && r->loc->node >= 0) return arena_printf(a, "%d", r->loc->node);
    return r->loc && r->loc->line ? arena_printf(a, "line %d", r->loc->line) : "-";
}

static const char *factor(Arena *a, double v, bool known) { return known ? arena_printf(a, "%.2g", v) : "-"; }

// The end of a name, which tells most.
static const char *short_name(Arena *a, const Row *r) {
    enum { LONGEST = 40 };
    const char *s = text_name(a, name_of(r));
    size_t n = strlen(s);
    return n > LONGEST ? arena_printf(a, "...%s", s + n - (LONGEST - 3)) : s;
}

static const char *mark_of(const Pair *p) { return p->alone.fault ? "bad" : p->whole.fault ? "grown" : ""; }

static void print_table(Text *out, const Tracing *t) {
    enum { COLUMNS = 10 };
    static const char *const head[COLUMNS] = {
        "node", "op", "name", "value", "error", "ulp", "growth", "alone", "ulp", ""
    };
    Arena *a = t->a;
    const char *(*cells)[COLUMNS] = arena_alloc(a, sizeof *cells * (size_t)(t->rows.n + 1));
    int width[COLUMNS] = { 0 };
    memcpy(cells[0], head, sizeof head);
    for (int i = 0; i < t->rows.n; i++) {
        const Row *r = &t->rows.at[i];
        const Pair *p = &t->pairs[r->value->id];
        const char *row[COLUMNS] = { place_of(a, r), text_name(a, op_of(r)), short_name(a, r),
            type_text(a, t->graph, &r->value->type), factor(a, error_of(&p->whole), p->has_whole),
            factor(a, p->whole.ulps, p->has_whole), factor(a, r->growth, p->has_whole && r->growth >= 0),
            factor(a, error_of(&p->alone), p->has_alone), factor(a, p->alone.ulps, p->has_alone), mark_of(p) };
        memcpy(cells[i + 1], row, sizeof row);
    }
    for (int i = 0; i <= t->rows.n; i++)
        for (int k = 0; k < COLUMNS; k++)
            if ((int)strlen(cells[i][k]) > width[k]) width[k] = (int)strlen(cells[i][k]);
    for (int i = 0; i <= t->rows.n; i++) {
        for (int k = 0; k + 1 < COLUMNS; k++) {
            bool left = k >= 1 && k <= 3;
            text_printf(out, "%s%*s", k ? "  " : "", left ? -width[k] : width[k], cells[i][k]);
        }
        text_printf(out, "%s%s\n", *cells[i][COLUMNS - 1] ? "  " : "", cells[i][COLUMNS - 1]);
    }
}

static void json_difference(Text *out, const char *key, const Difference *d, bool known) {
    if (!known) return;
    text_printf(out, ",\"%s\":{\"error\":", key);
    json_number(out, error_of(d));
    text_printf(out, ",\"ulp\":");
    json_number(out, d->ulps);
    text_printf(out, ",\"pass\":%s}", d->fault ? "false" : "true");
}

static void json_rows(Text *out, const Tracing *t) {
    for (int i = 0; i < t->rows.n; i++) {
        const Row *r = &t->rows.at[i];
        const Pair *p = &t->pairs[r->value->id];
        text_printf(out, "%s{\"node\":", i ? "," : "");
        json_quoted(out, place_of(t->a, r));
        text_printf(out, ",\"op\":");
        json_quoted(out, op_of(r));
        text_printf(out, ",\"name\":");
        json_quoted(out, name_of(r));
        text_printf(out, ",");
        json_type(out, t->a, t->graph, &r->value->type);
        json_difference(out, "whole", &p->whole, p->has_whole);
        json_difference(out, "alone", &p->alone, p->has_alone);
        text_printf(out, "}");
    }
}

static const char *verdict(const Tracing *t, const char *of_model, const char *of_evaluator) {
    const Row *guilty = first_bad(t, true), *late = of_model ? first_bad(t, false) : NULL;
    const Row *r = guilty ? guilty : late;
    if (r) {
        const Pair *p = &t->pairs[r->value->id];
        const char *node = arena_printf(t->a, "node %s \"%s\" (%s)", place_of(t->a, r), name_of(r), op_of(r));
        if (guilty) return arena_printf(t->a, "%s is wrong alone: %s", node, p->alone.fault);
        return arena_printf(t->a, "%s, where errors have grown too large, right alone: %s", node, p->whole.fault);
    }
    if (!of_model) return "none, and the model passes";
    if (of_evaluator)
        return arena_printf(t->a, "none, but the evaluator differs from the record too: %s", of_evaluator);
    return "none, so it is what becomes of several nodes; see whether --no-fuse passes";
}

// ---------------------------------------------------------------- tracing

// What the evaluator computes for the model's outputs; NULL where it cannot.
static Tensor **evaluated_outputs(Tracing *t) {
    const Graph *g = t->graph;
    Tensor **got = NEW_ARRAY(t->a, Tensor *, g->outputs.n + 1);
    for (int i = 0; i < g->outputs.n; i++)
        if (!(got[i] = value_const(g->outputs.at[i]))) return NULL;
    return got;
}

bool trace_start(Trace *trace, Arena *a, const CommandOptions *c, const Options *o, const Graph *signature,
    const Inputs *in, Tolerance allowed) {
    BuildCache cache = { .arena = a, .runner = c->runner };
    Options *keep = arena_copy(a, o, sizeof *o);
    const char *frozen;
    bool compiled;
    keep->keep = KEEP_NODES;
    keep->io = DT_NONE;                                 // nodes are compared in the units of the model
    keep->quiet = true;
    allowed.against = "evaluator's";
    Tracing *t = trace->tracing = NEW(a, Tracing);
    *t = (Tracing){ .a = a, .allowed = allowed };
    Built *whole = build_for_inputs(&cache, keep, signature, in, &frozen);
    Options *own = whole ? arena_copy(a, whole->options, sizeof *own) : NULL;
    if (own && (t->graph = evaluated(a, own, signature, in))) {
        t->pairs = NEW_ARRAY(a, Pair, t->graph->value_count + 1);
        own->keep = KEEP_ALONE;
        Built *alone = build_model(own, c->runner, &compiled);
        trace->why = compare_values(t, c, whole, signature, in, false);
        const char *why = compare_values(t, c, alone, signature, in, true);
        if (!trace->why) trace->why = why;
        if (alone) build_free(alone);
        make_rows(t);
        trace->outputs = evaluated_outputs(t);
    }
    build_cache_free(&cache);
    return t->graph;
}

void trace_print(Text *out, const Trace *trace, const char *of_model, const char *of_evaluator, bool json) {
    const Tracing *t = trace->tracing;
    const char *bad = verdict(t, of_model, of_evaluator);
    if (json) {
        text_printf(out, ",\"trace\":[");
        json_rows(out, t);
        text_printf(out, "],\"first_bad\":");
        json_quoted(out, bad);
        return;
    }
    print_table(out, t);
    if (trace->why) text_printf(out, "incomplete: %s\n", text_name(t->a, trace->why));
    text_printf(out, "first bad: %s\n", text_name(t->a, bad));
}
