// SPDX-License-Identifier: MIT OR Apache-2.0
// The exact text form of a graph; ir/parse.c reads it back.
//
//   graph lenet(%0 image: f32[n,1,28,28]) {
//     dim n 1..32
//     %1 w = const f32[8,1,3,3] hash 0x1234567890abcdef
//     %2: f32[n,8,26,26] = Conv(%0, %1) {group=1, pads=[0,0,0,0]}   ; node 3 "conv1"
//     return %2 logits
//   }
//
// A constant stands before its first user: its elements in full up to 16 of them, else `fill V` when they are all the
// same, else a hash of the bytes, under which a block behind the graph has them (ir/blocks.c); or `draw uniform(0,
// 1)`: what they are to be drawn from. An absent operand is `_`. Bodies follow their node, indented. The attributes
// `shape`, `sizes` and `trips` hold dimensions, `to` and `dtype` element types.
#include "ir/blocks.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FULL_ELEMENTS 16

typedef struct GraphWriter {
    Text *out;
    Arena *scratch;
    bool *printed, full;
    int indent;
    Blocks *blocks;
} GraphWriter;

static void name_print(Text *out, const char *s) {
    if (name_is_plain(s) && strcmp(s, "_")) text_printf(out, "%s", s);
    else text_quoted(out, s);
}

// Always with something that an integer lacks, so that a number's kind can be read from its text.
static void float_print(Text *out, double v, int digits) {
    char s[40];
    if (isnan(v)) snprintf(s, sizeof s, "nan");
    else if (isinf(v)) snprintf(s, sizeof s, v < 0 ? "-inf" : "inf");
    else {
        // the shortest of three tries that reads back
        for (int d = 6; d <= digits; d = d < digits && d + 3 > digits ? digits : d + 3) {
            snprintf(s, sizeof s, "%.*g", d, v);
            double back = strtod(s, NULL);
            if (d == digits || back == v || (digits == 9 && (float)back == (float)v)) break;
        }
        if (!strpbrk(s, ".e")) strcat(s, ".0");
    }
    text_printf(out, "%s", s);
}

static void element_print(Text *out, const Tensor *t, int64_t i) {
    DType d = t->type.dtype;
    switch (dtype_class(d)) {
    case CLASS_FLOAT: float_print(out, tensor_get_f(t, i), d == DT_F64 ? 17 : 9); break;
    case CLASS_STRING: text_quoted(out, ((const char *const *)t->data)[i]); break;
    case CLASS_COMPLEX:
        for (int k = 0; k < 2; k++) {
            double part = d == DT_C64 ? (double)((const float *)t->data)[2 * i + k] :
                                        ((const double *)t->data)[2 * i + k];
            if (k) text_printf(out, ", ");
            float_print(out, part, d == DT_C64 ? 9 : 17);
        }
        break;
    case CLASS_UINT: text_printf(out, "%" PRIu64, (uint64_t)tensor_get_i(t, i)); break;
    default: text_printf(out, "%" PRId64, tensor_get_i(t, i)); break;
    }
}

static bool is_uniform(const Tensor *t) {
    size_t size = dtype_size(t->type.dtype);
    const char *p = t->data;
    return t->type.dtype != DT_STRING && dtype_class(t->type.dtype) != CLASS_COMPLEX
        && !memcmp(p, p + size, (size_t)type_bytes(&t->type) - size);
}

// Do the texts of the first n elements give their bits? That of a NaN with a payload does not.
static bool is_exact(const Tensor *t, int64_t n) {
    size_t size = dtype_size(t->type.dtype);
    uint64_t bits = 0;
    Tensor nan = { type_make(t->type.dtype, 0, NULL), &bits };
    if (!dtype_is_float(t->type.dtype)) return true;
    tensor_set_f(&nan, 0, NAN);
    for (int64_t i = 0; i < n; i++)
        if (isnan(tensor_get_f(t, i)) && memcmp(&bits, (const char *)t->data + (size_t)i * size, size)) return false;
    return true;
}

static void tensor_print(GraphWriter *p, const Graph *g, const Tensor *t) {
    text_printf(p->out, "%s ", type_text(p->scratch, g, &t->type));
    int64_t n = type_count(&t->type);
    bool fill = n > FULL_ELEMENTS && is_uniform(t);
    if ((n > FULL_ELEMENTS && !fill) || !is_exact(t, fill ? 1 : n)) {
        text_printf(p->out, "hash 0x%016" PRIx64, block_key(p->blocks, t));
    } else if (fill) {
        text_printf(p->out, "fill ");
        element_print(p->out, t, 0);
    } else {
        text_printf(p->out, "{");
        for (int64_t i = 0; i < n; i++) {
            if (i) text_printf(p->out, ", ");
            element_print(p->out, t, i);
        }
        text_printf(p->out, "}");
    }
}

static void value_print(GraphWriter *p, const Value *v) {
    text_printf(p->out, "%%%d", v->id);
    if (v->name) {
        text_append(p->out, " ", 1);
        name_print(p->out, v->name);
    }
}

static void typed_print(GraphWriter *p, const Graph *g, const Value *v) {
    value_print(p, v);
    text_printf(p->out, ": %s", type_text(p->scratch, g, &v->type));
    if (v->role) text_printf(p->out, " @%s", role_name(v->role));
}

static void draw_print(GraphWriter *p, const Graph *g, const Value *v) {
    text_printf(p->out, "%s draw %s(", type_text(p->scratch, g, &v->type), draw_name(v->draw->kind));
    for (int i = 0; i < draw_count(v->draw->kind); i++) {
        if (i) text_append(p->out, ", ", 2);
        float_print(p->out, v->draw->of[i], 17);
    }
    text_append(p->out, ")", 1);
}

static void constant_print(GraphWriter *p, const Graph *g, const Value *v) {
    if (!v || !(v->data || v->draw) || p->printed[v->id]) return;
    p->printed[v->id] = true;
    text_printf(p->out, "%*s", p->indent, "");
    value_print(p, v);
    text_printf(p->out, " = const %s", v->trainable ? "trainable " : "");
    if (v->draw) draw_print(p, g, v);
    else tensor_print(p, g, v->data);
    text_append(p->out, "\n", 1);
}

static void ints_print(GraphWriter *p, const Graph *g, const Attr *a) {
    bool dims = !strcmp(a->name, "shape") || !strcmp(a->name, "starts") || !strcmp(a->name, "sizes")
        || !strcmp(a->name, "trips");
    for (int i = 0; i < a->n; i++) {
        if (i) text_append(p->out, ",", 1);
        if (dims) text_printf(p->out, "%s", dim_text(p->scratch, g, a->ints[i]));
        else text_printf(p->out, "%" PRId64, a->ints[i]);
    }
}

static void attr_print(GraphWriter *p, const Graph *g, const Attr *a) {
    text_printf(p->out, "%s=", a->name);
    bool is_type = a->kind == ATTR_INT && attr_is_dtype(a->name) && a->i > DT_NONE && a->i < DT_INDEX;
    if (a->kind == ATTR_INTS || a->kind == ATTR_FLOATS || a->kind == ATTR_STRINGS) text_append(p->out, "[", 1);
    switch (a->kind) {
    case ATTR_INT:
        if (is_type) text_printf(p->out, "%s", dtype_name((DType)a->i));
        else text_printf(p->out, "%" PRId64, a->i);
        break;
    case ATTR_FLOAT: float_print(p->out, a->f, 17); break;
    case ATTR_STRING: text_quoted(p->out, a->s); break;
    case ATTR_TENSOR: tensor_print(p, g, a->tensor); break;
    case ATTR_INTS: ints_print(p, g, a); break;
    case ATTR_FLOATS:
        for (int i = 0; i < a->n; i++) {
            if (i) text_append(p->out, ",", 1);
            float_print(p->out, a->floats[i], 17);
        }
        break;
    case ATTR_STRINGS:
        for (int i = 0; i < a->n; i++) {
            if (i) text_append(p->out, ",", 1);
            text_quoted(p->out, a->strings[i]);
        }
        break;
    }
    if (a->kind == ATTR_INTS || a->kind == ATTR_FLOATS || a->kind == ATTR_STRINGS) text_append(p->out, "]", 1);
}

static void attrs_print(GraphWriter *p, const Graph *g, const Node *n) {
    if (!n->n_attrs && !n->expr) return;
    text_append(p->out, "{", 1);
    if (n->expr) {
        Text e;
        text_init(&e, p->scratch);
        expr_print(n->expr, &e);
        text_append(p->out, "expr=", 5);
        text_quoted(p->out, e.at);
    }
    for (int i = 0; i < n->n_attrs; i++) {
        if (i || n->expr) text_append(p->out, ", ", 2);
        attr_print(p, g, &n->attrs[i]);
    }
    text_append(p->out, "}", 1);
}

// `; node 3 "conv1" (Conv)` of a format that counts its nodes; in full text also `; at 11:20 "conv1" (conv2d)`
static void loc_print(GraphWriter *p, const Node *n) {
    const Loc *l = n->loc;
    bool named = l && l->op && strcmp(l->op, op_table[n->op].name), at = named && l->node < 0 && l->line && p->full;
    if (at) text_printf(p->out, "   ; at %d:%d", l->line, l->column);
    else if (l && l->node >= 0) text_printf(p->out, "   ; node %d", l->node);
    else return;
    if (l->name && *l->name) {
        text_append(p->out, " ", 1);
        text_quoted(p->out, l->name);
    }
    if (named) text_printf(p->out, " (%s)", l->op);
}

static void graph_print_in(GraphWriter *p, const Graph *g, const char *keyword);

// Constants of a graph stand in it, not in the body that is the first to use them: only a model's own may be trained.
static void captured_print(GraphWriter *p, const Graph *g, const Graph *body) {
    for (const Node *n = body->first; n; n = n->next) {
        for (int i = 0; i < n->n_in; i++)
            if (n->in[i] && n->in[i]->graph == g) constant_print(p, g, n->in[i]);
        for (int i = 0; i < n->n_bodies; i++) captured_print(p, g, n->bodies[i]);
    }
    for (int i = 0; i < body->outputs.n; i++)
        if (body->outputs.at[i]->graph == g) constant_print(p, g, body->outputs.at[i]);
}

static void node_print(GraphWriter *p, const Graph *g, const Node *n) {
    for (int i = 0; i < n->n_in; i++) constant_print(p, g, n->in[i]);
    for (int i = 0; i < n->n_bodies; i++) captured_print(p, g, n->bodies[i]);
    text_printf(p->out, "%*s", p->indent, "");
    for (int i = 0; i < n->n_out; i++) {
        if (i) text_append(p->out, ", ", 2);
        typed_print(p, g, n->out[i]);
    }
    text_printf(p->out, " = %s(", op_table[n->op].name);
    for (int i = 0; i < n->n_in; i++) {
        if (i) text_append(p->out, ", ", 2);
        if (n->in[i]) text_printf(p->out, "%%%d", n->in[i]->id);
        else text_append(p->out, "_", 1);
    }
    text_append(p->out, n->n_attrs || n->expr ? ") " : ")", n->n_attrs || n->expr ? 2 : 1);
    attrs_print(p, g, n);
    loc_print(p, n);
    text_append(p->out, "\n", 1);
    for (int i = 0; i < n->n_bodies; i++) {
        p->indent += 2;
        text_printf(p->out, "%*s", p->indent, "");
        graph_print_in(p, n->bodies[i], "body");
        p->indent -= 2;
    }
}

static void symbols_print(GraphWriter *p, const Graph *g) {
    for (int i = 0; i < g->symbols.n; i++) {
        const Symbol *s = &g->symbols.at[i];
        if (s->lo == 1 && s->hi == INT32_MAX && !s->pinned && !s->from) continue;
        text_printf(p->out, "%*sdim ", p->indent, "");
        symbol_print(p->out, s->name);
        text_printf(p->out, " %" PRId64 "..%" PRId64 "%s", s->lo, s->hi, s->pinned ? " pinned" : "");
        if (s->from && !s->pinned) {
            text_printf(p->out, " is %%%d[%" PRId64 "]", s->from->id, s->at);
            if (s->limit != s->hi) text_printf(p->out, " <= %s", dim_text(p->scratch, g, s->limit));
        }
        text_append(p->out, "\n", 1);
    }
}

// `bundle input x optional sequence stacked absent (x_0, x_1)`: what it is of these, and its tensors
static void bundles_print(GraphWriter *p, const Graph *g) {
    for (int i = 0; i < g->bundles.n; i++) {
        const Bundle *b = &g->bundles.at[i];
        text_printf(p->out, "%*sbundle %s ", p->indent, "", b->output ? "output" : "input");
        name_print(p->out, b->name);
        text_printf(p->out, "%s%s%s%s (", b->optional ? " optional" : "", b->sequence ? " sequence" : "",
            b->stacked ? " stacked" : "", b->absent ? " absent" : "");
        for (int k = 0; k < b->n; k++) {
            if (k) text_append(p->out, ", ", 2);
            name_print(p->out, b->names[k]);
        }
        text_append(p->out, ")\n", 2);
    }
}

// `function prefill 2 1`: how many inputs and outputs are its own
static void functions_print(GraphWriter *p, const Graph *g) {
    for (int i = 0; i < g->functions.n; i++) {
        const GraphFunction *f = &g->functions.at[i];
        text_printf(p->out, "%*sfunction ", p->indent, "");
        name_print(p->out, f->name);
        text_printf(p->out, " %d %d\n", f->inputs, f->outputs);
    }
}

static void graph_print_in(GraphWriter *p, const Graph *g, const char *keyword) {
    text_printf(p->out, "%s ", keyword);
    name_print(p->out, g->name);
    text_append(p->out, "(", 1);
    for (int i = 0; i < g->inputs.n; i++) {
        if (i) text_append(p->out, ", ", 2);
        typed_print(p, g, g->inputs.at[i]);
    }
    text_append(p->out, ") {\n", 4);
    p->indent += 2;
    if (!g->parent) {
        symbols_print(p, g);
        bundles_print(p, g);
        functions_print(p, g);
    }
    for (const Node *n = g->first; n; n = n->next) node_print(p, g, n);
    for (int i = 0; i < g->outputs.n; i++) constant_print(p, g, g->outputs.at[i]);
    text_printf(p->out, "%*sreturn", p->indent, "");
    for (int i = 0; i < g->outputs.n; i++) {
        text_printf(p->out, "%s%%%d", i ? ", " : " ", g->outputs.at[i]->id);
        if (!g->output_names.at[i]) continue;
        text_append(p->out, " ", 1);
        name_print(p->out, g->output_names.at[i]);
    }
    p->indent -= 2;
    text_printf(p->out, "\n%*s}\n", p->indent, "");
}

static void print(const Graph *g, Text *out, bool full) {
    GraphWriter p = { .out = out, .scratch = arena_new(), .full = full };
    p.printed = NEW_ARRAY(p.scratch, bool, graph_root(g)->value_count);
    p.blocks = blocks_new(p.scratch);
    graph_print_in(&p, g, g->parent ? "body" : "graph");
    if (full) blocks_print(p.blocks, out);
    arena_free(p.scratch);
}

void node_print_attrs(const Node *n, Text *out) {
    GraphWriter p = { .out = out, .scratch = arena_new() };
    p.blocks = blocks_new(p.scratch);
    attrs_print(&p, n->graph, n);
    arena_free(p.scratch);
}

void graph_print(const Graph *g, Text *out) { print(g, out, false); }
void graph_print_full(const Graph *g, Text *out) { print(g, out, true); }
