// SPDX-License-Identifier: MIT OR Apache-2.0
// The ends of the stages in main.c: what --dump prints between them, and what is written after them.
#include "command.h"

#include "codegen/check.h"
#include "grad/train.h"

#include <string.h>
#include <unistd.h>

static const char *const stages[] = {                   // a pass that runs twice is here twice
    "import", "bind_dims",
#define PASS(name, ...) #name,
#define ASKING_PASS PASS
#include "passes.def"
#undef PASS
#undef ASKING_PASS
    "passes", "schedule",
};

static int stage_index(const char *stage) {
    int i = 0;
    while (i < (int)COUNT(stages) && strcmp(stages[i], stage)) i++;
    return i;
}

// A stage of the back end's own, after the schedule.
static bool dumps(const Options *o, const char *stage) {
    const Backend *b = o->machine.backend;
    return b->dump && !strcmp(stage, b->dump_stage);
}

bool dump_known(const Options *o, const char *stage) {
    return stage_index(stage) < (int)COUNT(stages) || dumps(o, stage);
}

const char *dump_names(Arena *a, const Options *o) {
    Text t;
    text_init(&t, a);
    for (int i = 0; i < (int)COUNT(stages); i++)
        if (stage_index(stages[i]) == i) text_printf(&t, "%s%s", i ? ", " : "", stages[i]);
    if (o->machine.backend->dump) text_printf(&t, ", %s", o->machine.backend->dump_stage);
    return t.at;
}

void dump_graph(Arena *a, const Options *o, const char *stage, const Graph *g) {
    if (!o->dump || strcmp(o->dump, stage)) return;
    Text t;
    text_init(&t, a);
    graph_print_full(g, &t);
    print_text(&t, EXIT_OK);
}

void dump_plan(Arena *a, const Options *o, const Plan *p) {
    bool own = o->dump && dumps(o, o->dump);
    if (!own && (!o->dump || strcmp(o->dump, "schedule"))) return;
    Text t;
    text_init(&t, a);
    if (own) o->machine.backend->dump(a, o, p, &t);
    else plan_print(p, &t);
    print_text(&t, EXIT_OK);
}

// model.c -> model.h, model.bin
static const char *sibling(Arena *a, const char *c_file, const char *suffix) {
    return arena_printf(a, "%.*s%s", (int)(strlen(c_file) - 2), c_file, suffix);
}

// --check on what was written; files that libclang finds fault with do not stay.
static bool check_written(Arena *a, const Options *o, bool has_weights_file) {
    if (!o->check || check_c(a, o->output, o)) return true;
    unlink(o->output);
    unlink(sibling(a, o->output, ".h"));
    if (has_weights_file) unlink(sibling(a, o->output, ".bin"));
    return false;
}

int compile_train(Arena *a, const Options *o) {
    Graph *graph = import_graph(a, o);
    if (!graph) return diag_status();
    Training *t = train_programs(graph, o);
    if (!t || !o->machine.backend->write(a, o, o->name, t->n_programs, t->programs, t) || !check_written(a, o, false))
        return diag_status();
    for (int i = 0; o->report && i < t->n_programs; i++) {
        int status = compile_report(a, t->programs[i].plan);
        if (status) return status;
    }
    return EXIT_OK;
}

bool compile_write(Arena *a, const Options *o, Plan *plan) {
    Program program = {
        .name = arena_printf(a, "%s_run", o->name), .name_of_workspace = o->name, .plan = plan, .descriptor = true
    };
    if (!o->machine.backend->write(a, o, o->name, 1, &program, NULL)) return false;
    return check_written(a, o, plan->weight_bytes > o->embed_limit);
}

int compile_report(Arena *a, const Plan *p) {
    Text t;
    text_init(&t, a);
    plan_report(p, &t);
    return print_text(&t, EXIT_OK);
}
