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
#include "schedule/schedule.h"

#include <string.h>

static bool dump_plan(Arena *a, const Options *o, const Plan *p) {
    const Backend *b = o->machine.backend;
    bool own = o->dump && b->dump && !strcmp(o->dump, b->dump_stage);
    if (!own && (!o->dump || strcmp(o->dump, "plan"))) return true;
    Text t;
    text_init(&t, a);
    if (!own) plan_print(p, &t);
    else if (!b->dump(a, o, p, &t)) return false;
    fputs(t.at, stdout);
    return true;
}

static bool is_stored(void *plan, const Value *v) {
    const Buffer *b = plan_value(plan, v).buffer;
    return b && (b->place == PLACE_WORK || (b->place == PLACE_ALIAS && !op_is_view(v->def->op)));
}

// --precision, where the back end's plan does not narrow values itself. What is kept says a plan of the graph as it is.
static bool halve_kept(Graph *g, const Options *o) {
    if (!o->precision || o->machine.backend->halves || !graph_trains(g)) return true;
    const Plan *p = plan_make(g, o);
    if (!p) return false;
    if (keep_halves(g, strcmp(o->precision, "f16") ? DT_BF16 : DT_F16, is_stored, (void *)p)) pass_dce(g);
    return true;
}

// t: of --train, NULL: inference
static Plan *planned(Arena *a, const Options *o, Graph *g, const TrainGraph *t) {
    dump_graph(g, o, "import");
    if (o->keep) keep_values(g, o->keep);
    if (!passes_run(g, o)) return NULL;
    if (t) train_ends(t);
    if (t && !o->machine.backend->spread_points && graph_trains(g) && update_rows(g, o)) pass_dce(g);
    if (t && !halve_kept(g, o)) return NULL;
    Plan *p = plan_make(g, o);
    return p && dump_plan(a, o, p) ? p : NULL;
}

static bool has_state(const Graph *g) {
    bool has = false;
    for (int i = 0; i < g->inputs.n; i++) has = has || g->inputs.at[i]->role == ROLE_STATE;
    return has;
}

static bool training_programs(Arena *a, const Options *o, Graph *model, Programs *p) {
    if (has_state(model) || model->functions.n) {
        diag_error(&(Loc){ .file = model->file, .node = -1 },
            "--train wants a model of one function without a state; --function NAME chooses one of several");
        return false;
    }
    Training *t = train_parameters(model, o);
    if (!t) return false;
    pass_bind_dims(model, o);                           // once, with its notes, and not for each program
    if (diag_errors() || !train_graphs(t, model)) return false;
    for (p->training = t; p->n < t->n_graphs; p->n++) {
        const TrainGraph *one = &t->graphs[p->n];
        const char *name = arena_printf(a, "%s_%s", o->name, one->graph->name);
        Plan *plan = planned(a, o, one->graph, one);
        if (!plan) return false;
        p->at[p->n] = (Program){ .name = name, .name_of_workspace = name, .prefix = name,
            .doc = one->doc, .plan = plan };
    }
    return true;
}

// A program for each function; they have the constants in common.
static bool function_programs(Arena *a, const Options *o, Graph *model, Programs *p) {
    Loc file = { .file = model->file, .node = -1 };
    if (model->functions.n > MAX_PROGRAMS) {
        diag_error_as(EXIT_LIMIT, &file, "%d functions; a model may have %d", model->functions.n, MAX_PROGRAMS);
        return false;
    }
    for (; p->n < model->functions.n; p->n++) {
        const char *function = model->functions.at[p->n].name, *name = arena_printf(a, "%s_%s", o->name, function);
        Graph *g = graph_function(model, p->n);
        Plan *plan = g ? planned(a, o, g, NULL) : NULL;
        if (!plan) return false;
        p->at[p->n] = (Program){ .name = name, .name_of_workspace = o->name, .prefix = name, .function = function,
            .plan = plan, .descriptor = true };
    }
    return true;
}

static bool states_fit(const Options *o, const Graph *model) {
    bool several = model->functions.n > 0;
    if ((!several && !has_state(model)) || o->machine.backend->states) return true;
    diag_error(&(Loc){ .file = model->file, .node = -1 },
        "the model has %s: this is for programs in C, not for --target %s",
        several ? "several functions" : "a state", o->target);
    return false;
}

// Of constants that nodes read, each once.
static int64_t constant_bytes(Arena *a, const Graph *g, StrMap *seen) {
    int64_t bytes = 0;
    for (const Node *n = g->first; n; n = n->next) {
        for (int i = 0; i < n->n_in; i++) {
            const Tensor *t = n->in[i] ? n->in[i]->data : NULL;
            const char *key = t ? arena_printf(a, "%p", (const void *)t) : "";
            if (!t || strmap_get(seen, key)) continue;
            strmap_put(seen, key, n->in[i]);
            bytes += type_bytes(&t->type);
        }
        for (int i = 0; i < n->n_bodies; i++) bytes += constant_bytes(a, n->bodies[i], seen);
    }
    return bytes;
}

static Programs *with_constants(const Options *o, Programs *p) {
    return banks_constants(o, p->n, p->at) ? p : NULL;
}

Programs *compile_graph(Arena *a, const Options *o, const Model *m, Graph *model) {
    Programs *p = NEW(a, Programs);
    p->settings = m->settings;
    p->model_bytes = constant_bytes(a, model, strmap_new(a));
    if (o->train) return training_programs(a, o, model, p) ? with_constants(o, p) : NULL;
    if (!states_fit(o, model)) return NULL;
    if (model->functions.n) return function_programs(a, o, model, p) ? with_constants(o, p) : NULL;
    Plan *plan = planned(a, o, model, NULL);
    if (!plan) return NULL;
    const char *name = arena_printf(a, "%s_run", o->name);
    p->at[p->n++] = (Program){
        .name = name, .name_of_workspace = o->name, .prefix = o->name, .plan = plan, .descriptor = true
    };
    return with_constants(o, p);
}

Programs *compile_programs(Arena *a, const Options *o) {
    const Model *m = model_open(a, o);
    Graph *model = m ? model_graph(a, m, o) : NULL;
    return model ? compile_graph(a, o, m, model) : NULL;
}
