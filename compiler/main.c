// SPDX-License-Identifier: MIT OR Apache-2.0
// START HERE: options, then the stages of the compiler in running order.
//
//   model.onnx -> import -> Graph -> passes -> Graph -> schedule -> Plan -> codegen -> model.c model.h model.bin
//
// Each stage is one call; a stage that records diagnostics ends the way. The other commands (verify, run, bench, ...)
// are in command/, one file each, and use compile_plan and compile_write too.
#include "command/command.h"
#include "passes/passes.h"

Plan *compile_plan(Arena *a, const Options *o) {
    Graph *graph = import_graph(a, o);
    if (!graph) return NULL;
    dump_graph(a, o, "import", graph);
    if (!passes_run(graph, o)) return NULL;
    Plan *plan = plan_make(graph, o);
    if (plan) dump_plan(a, o, plan);
    return plan;
}

int command_compile(Arena *a, Options *o) {
    bool stop = o->dump && !o->output;
    if (!o->output) o->output = arena_printf(a, "%s%s", o->name, o->machine.backend->extension);
    if (o->train) return compile_train(a, o);
    Plan *plan = compile_plan(a, o);
    if (!plan || stop) return diag_status();
    if (!compile_write(a, o, plan)) return diag_status();
    return o->report ? compile_report(a, plan) : EXIT_OK;
}

int main(int argc, char **argv) {
    Arena *a = arena_new();
    Options *o = NEW(a, Options);
    const Command *command = options_parse(a, o, argc, argv);
    int status = command ? command->run(a, o) : diag_status();
    status = output_finish(status);
    arena_free(a);
    return status;
}
