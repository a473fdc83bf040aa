// SPDX-License-Identifier: MIT OR Apache-2.0
// The stages in running order, for inference and training alike.
//
//   model -> import -> Graph -> (--train: a graph for each program) -> passes -> Graph -> schedule -> Plan
//
// In: options. Out: programs, each with its plan. A stage that records diagnostics ends the way; --dump prints each
// program's graph or plan behind the stage that it names.
#include "compile.h"

#include "grad/train.h"
#include "import/import.h"
#include "passes/passes.h"

#include <string.h>

static bool dump_plan(Arena *a, const Options *o, const Plan *p) {
    const Backend *b = o->machine.backend;
    bool own = o->dump && b->dump && !strcmp(o->dump, b->dump_stage);
    if (!own && (!o->dump || strcmp(o->dump, "schedule"))) return true;
    Text t;
    text_init(&t, a);
    if (!own) plan_print(p, &t);
    else if (!b->dump(a, o, p, &t)) return false;
    fputs(t.at, stdout);
    return true;
}

// t: of --train, NULL: inference
static Plan *planned(Arena *a, const Options *o, Graph *g, const TrainGraph *t) {
    dump_graph(g, o, "import");
    if (o->keep) keep_values(g, o->keep);
    if (!passes_run(g, o)) return NULL;
    if (t) train_ends(t);
    Plan *p = plan_make(g, o);
    return p && dump_plan(a, o, p) ? p : NULL;
}

static bool training_programs(Arena *a, const Options *o, Graph *model, Programs *p) {
    Training *t = train_parameters(model, o);
    if (!t) return false;
    pass_bind_dims(model, o);                           // once, with its notes, and not for each program
    if (diag_errors() || !train_graphs(t, model)) return false;
    for (p->training = t; p->n < t->n_graphs; p->n++) {
        const TrainGraph *one = &t->graphs[p->n];
        const char *name = arena_printf(a, "%s_%s", o->name, one->graph->name);
        Plan *plan = planned(a, o, one->graph, one);
        if (!plan) return false;
        p->at[p->n] = (Program){ .name = name, .name_of_workspace = name, .doc = one->doc, .plan = plan };
    }
    return true;
}

Programs *compile_graph(Arena *a, const Options *o, const Model *m, Graph *model) {
    Programs *p = NEW(a, Programs);
    p->settings = m->settings;
    if (o->train) return training_programs(a, o, model, p) ? p : NULL;
    Plan *plan = planned(a, o, model, NULL);
    if (!plan) return NULL;
    const char *name = arena_printf(a, "%s_run", o->name);
    p->at[p->n++] = (Program){ .name = name, .name_of_workspace = o->name, .plan = plan, .descriptor = true };
    return p;
}

Programs *compile_programs(Arena *a, const Options *o) {
    const Model *m = model_open(a, o);
    Graph *model = m ? model_graph(a, m, o) : NULL;
    return model ? compile_graph(a, o, m, model) : NULL;
}
