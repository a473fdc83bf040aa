// SPDX-License-Identifier: MIT OR Apache-2.0
// Runs the phases of passes.def in their order, checks the graph after each pass, and prints it where --dump asks for
// it.
//
// In: an imported graph. Out: the same graph over sizes that are bound, primitives and composites that the back end
// claims; false after diagnostics.
#include "passes.h"

#include <string.h>

typedef enum Phase { PHASE_CANON, PHASE_GRAD, PHASE_LOWER } Phase;
typedef struct PassRow { Phase phase; const char *name; PassFn *run; AskingPassFn *asks; bool runs; } PassRow;
static const char *const phase_names[] = { "CANON", "GRAD", "LOWER" };

void dump_graph(const Graph *g, const Options *o, const char *stage) {
    if (!o->dump || strcmp(o->dump, stage)) return;
    Arena *scratch = arena_new();
    Text t;
    text_init(&t, scratch);
    graph_print_full(g, &t);
    fputs(t.at, stdout);
    arena_free(scratch);
}

static bool pass_done(const Graph *g, const Options *o, const char *name, int errors) {
    if (diag_errors() > errors) return false;
    graph_validate(g, name);
    dump_graph(g, o, name);
    return true;
}

// What --train has made no parameter of is a constant like any other.
static void freeze(Graph *g) {
    for (Node *n = g->first; n; n = n->next) {
        for (int i = 0; i < n->n_in; i++) if (n->in[i]) n->in[i]->trainable = false;
        for (int i = 0; i < n->n_bodies; i++) freeze(n->bodies[i]);
    }
}

// A pass runs more than once: which time a dumped graph is of.
static void dump_place(const Options *o, const PassRow *row, int place, bool again) {
    if (!o->dump || strcmp(o->dump, row->name)) return;
    printf("; after %s, pass %d of %s%s\n", row->name, place, phase_names[row->phase], again ? " again" : "");
}

static bool run_pass(Graph *g, const Options *o, const PassRow *row, int errors) {
    progress_stage("%s: pass %s", g->name, row->name);
    g->cursor = NULL;
    if (row->asks) row->asks(g, o);
    else row->run(g);
    if (!pass_done(g, o, row->name, errors)) return false;
    graph_release(g);
    return true;
}

// again: the phase has run already
static bool run_phase(Graph *g, const Options *o, Phase phase, int errors, bool again) {
    const PassRow order[] = {
#define PASS(phase, name, when) { PHASE_##phase, #name, pass_##name, NULL, when },
#define ASKING_PASS(phase, name, when) { PHASE_##phase, #name, NULL, pass_##name, when },
#include "passes.def"
#undef PASS
#undef ASKING_PASS
    };
    for (size_t i = 0, place = 0; i < COUNT(order); i++) {
        if (order[i].phase != phase || !order[i].runs) continue;
        dump_place(o, &order[i], (int)++place, again);
        if (!run_pass(g, o, &order[i], errors)) return false;
    }
    return true;
}

bool passes_canon(Graph *g, const Options *o) { return run_phase(g, o, PHASE_CANON, diag_errors(), false); }

bool passes_run(Graph *g, const Options *o) {
    int errors = diag_errors();
    const Loc *loc = g->loc;
    freeze(g);
    pass_bind_dims(g, o);
    if (!pass_done(g, o, "bind_dims", errors)) return false;
    if (!run_phase(g, o, PHASE_CANON, errors, false)) return false;
    dump_graph(g, o, "canon");
    if (has_gradient(g)) {
        if (!run_phase(g, o, PHASE_GRAD, errors, false)) return false;
        dump_graph(g, o, "grad");
        if (!run_phase(g, o, PHASE_CANON, errors, true)) return false;
    }
    if (!run_phase(g, o, PHASE_LOWER, errors, false)) return false;
    g->cursor = NULL;
    g->loc = loc;
    if (!bind_required(g)) return false;
    dump_graph(g, o, "passes");
    return true;
}
