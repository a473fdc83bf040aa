// SPDX-License-Identifier: MIT OR Apache-2.0
// What a model's functions come to once their calls are inlined, before any is: functions that call functions grow
// exponentially with the file, and those that call themselves have no end.
//
// In: the model and its functions by name. Out: how many nodes may be built; false with a diagnostic at the node whose
// call has no end or is too much, with the chain of calls that leads there. Each function is looked at once; its nodes
// count those of the bodies that its nodes hold.
#include "import/onnx/names.h"

#include <string.h>

// What is known of a function: its nodes with all that they call, how deep the calls go, and the call that most of
// them come from.
typedef struct Extent {
    bool open, known;                                   // open: its calls are being looked at
    double nodes;
    int depth;
    const OnnxFunction *heaviest; double heaviest_nodes;
} Extent;

typedef struct Calls {
    Import *im;
    Extent *of;                                         // by the function's place in the model
    const Loc *from;                                    // the node of the model's graph that is looked at
    const OnnxFunction *chain[MAX_CALLS + 1]; int depth;
} Calls;

static const char *chain_text(Arena *a, int n, const OnnxFunction *const *chain) {
    enum { SHOWN = 6 };
    Text t;
    text_init(&t, a);
    for (int i = 0; i < n; i++) {
        if (n > SHOWN + 2 && i >= SHOWN && i < n - 1) {
            if (i == SHOWN) text_printf(&t, " > ...");
            continue;
        }
        text_printf(&t, "%s%.64s", i ? " > " : "", chain[i]->name);
    }
    return t.at;
}

static bool add_nodes(Calls *c, Extent *e, int n, const OnnxNodeDef *nodes);

static bool look_at(Calls *c, const OnnxFunction *f) {
    Extent *e = &c->of[f - c->im->model->functions];
    if (e->known && c->depth + 1 + e->depth <= MAX_CALLS) return true;
    c->chain[c->depth++] = f;
    const char *chain = e->open || c->depth > MAX_CALLS ? chain_text(c->im->arena, c->depth, c->chain) : NULL;
    if (e->open) diag_error(c->from, "function \"%s\" calls itself: %s", f->name, chain);
    else if (chain) diag_error_as(EXIT_LIMIT, c->from, "functions are nested more than %d deep: %s", MAX_CALLS, chain);
    if (chain) return false;
    *e = (Extent){ .open = true };
    bool ok = add_nodes(c, e, f->n_nodes, f->nodes);
    e->open = false;
    e->known = true;
    c->depth--;
    return ok;
}

static bool add_call(Calls *c, Extent *e, const OnnxFunction *f) {
    if (!look_at(c, f)) return false;
    const Extent *called = &c->of[f - c->im->model->functions];
    e->nodes += called->nodes;
    if (called->depth >= e->depth) e->depth = called->depth + 1;
    if (called->nodes > e->heaviest_nodes) {
        e->heaviest = f;
        e->heaviest_nodes = called->nodes;
    }
    return true;
}

// The recursion into bodies is as deep as the messages of the file are nested, which wire.c bounds.
static bool add_nodes(Calls *c, Extent *e, int n, const OnnxNodeDef *nodes) {
    for (int i = 0; i < n; i++) {
        e->nodes++;
        const OnnxFunction *f = onnx_function(c->im, &nodes[i]);
        if (f && !add_call(c, e, f)) return false;
        for (int k = 0; k < nodes[i].n_attrs; k++) {
            const OnnxGraphDef *body = nodes[i].attrs[k].graph;
            if (body && !add_nodes(c, e, body->n_nodes, body->nodes)) return false;
        }
    }
    return true;
}

static int count_written(int n, const OnnxNodeDef *nodes) {
    int count = n;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < nodes[i].n_attrs; k++) {
            const OnnxGraphDef *body = nodes[i].attrs[k].graph;
            if (body) count += count_written(body->n_nodes, body->nodes);
        }
    return count;
}

bool onnx_calls_check(Import *im) {
    const OnnxModel *m = im->model;
    Calls c = { .im = im, .of = NEW_ARRAY(im->arena, Extent, m->n_functions + 1) };
    Extent all = { 0 };
    im->most = MAX_INLINED + count_written(m->graph->n_nodes, m->graph->nodes);
    for (int i = 0; i < m->graph->n_nodes && m->n_functions; i++) {
        c.from = m->graph->nodes[i].loc;
        if (!add_nodes(&c, &all, 1, &m->graph->nodes[i])) return false;
        if (all.nodes <= im->most) continue;
        for (const OnnxFunction *f = all.heaviest; f && c.depth < MAX_CALLS; f = c.of[f - m->functions].heaviest)
            c.chain[c.depth++] = f;
        diag_error_as(EXIT_LIMIT, c.from, "the calls of functions come to %.3g nodes, more than %d: %s", all.nodes,
            im->most, chain_text(im->arena, c.depth, c.chain));
        return false;
    }
    return true;
}
