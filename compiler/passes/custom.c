// SPDX-License-Identifier: MIT OR Apache-2.0
// Custom operations become their formulas where there is no kernel in the back end's language, and where they are to be
// differentiated and say no gradient of their own; the others lose their bodies, which nothing asks for any more.
// Contract: while something waits to be differentiated, a Custom node has its gradient or nothing that it could be
// taken of; afterwards it has a kernel and no body, or there are diagnostics.
//
//   before   %1: f32[4] = Custom(%0) {...}  body formula(%2: f32[4]) { %3: f32[4] = Mul(%2, %2)  return %3 }
//   after    %3: f32[4] = Mul(%0, %0)
#include "passes.h"

#include "ops/custom.h"

#include <string.h>

typedef struct Choice { Rewrite r; const char *language; bool differentiates; } Choice;

static bool takes_formula(const Choice *c, const Node *n) {
    if (!custom_body(n, "formula")) return false;
    if (c->differentiates) return !custom_body(n, "gradient");
    return !c->language || !node_string(n, c->language, NULL);
}

static void choose(Choice *c, Node *n) {
    if (c->differentiates) return;
    n->n_bodies = 0;
    if (c->language && node_string(n, c->language, NULL)) return;
    if (!c->language)
        diag_error(n->loc, "it has no formula, and nothing else can be said of it here; give it .formula");
    else
        diag_error(n->loc, "it has neither a kernel in %s nor a formula for this target; give it one of them",
            !strcmp(c->language, "glsl") ? "GLSL" : "C");
}

static void custom_graph(Choice *c, Graph *g) {
    for (Node *n = g->first, *next; n; n = next) {
        rewrite_operands(&c->r, n);
        next = n->next;
        bool custom = n->op == OP_Custom;
        for (int i = 0; i < n->n_bodies && !custom; i++) custom_graph(c, n->bodies[i]);
        if (custom && !takes_formula(c, n)) choose(c, n);
        else if (custom) {
            Node *before = n->prev;
            Value **out = NEW_ARRAY(c->r.scratch, Value *, n->n_out);
            g->cursor = n;
            graph_inline(custom_body(n, "formula"), g, n->in, out);
            for (int i = 0; i < n->n_out; i++) rewrite_set(&c->r, n->out[i], out[i]);
            graph_remove(g, n);
            next = before ? before->next : g->first;    // a formula may have custom operations of its own
        }
    }
    g->cursor = NULL;
    rewrite_outputs(&c->r, g);
}

bool pass_custom(Graph *g, const Options *o) {
    Choice c = { .r = { .scratch = arena_new() }, .language = o->machine.backend->kernels,
        .differentiates = has_gradient(g) };
    custom_graph(&c, g);
    arena_free(c.r.scratch);
    return c.r.changed;
}
