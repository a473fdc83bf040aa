// SPDX-License-Identifier: MIT OR Apache-2.0
// START HERE: options, then the stages of the compiler in running order.
//
//   model.onnx -> import -> Graph -> passes -> Graph -> schedule -> Plan -> codegen -> model.c model.h model.bin
//
// compile_programs (compile.c) is all up to the plans. The other commands (verify, run, bench, ...) are in command/, one
// file each, and use it and compile_write too.
#include "command/command.h"

int command_compile(Arena *a, CommandOptions *c) {
    Options *o = &c->compile;
    bool stop = o->dump && !o->output;
    if (!o->output) o->output = arena_printf(a, "%s%s", o->name, o->machine.backend->extension);
    Programs *programs = compile_programs(a, o);
    if (!programs || stop) return diag_status();
    if (!compile_write(a, o, programs) || (c->check && !compile_check(a, o, programs))) return diag_status();
    return c->report ? compile_report(a, programs) : EXIT_OK;
}

int main(int argc, char **argv) {
    Arena *a = arena_new();
    CommandOptions *o = NEW(a, CommandOptions);
    const Command *command = options_parse(a, o, argc, argv);
    int status = command ? command->run(a, o) : diag_status();
    status = output_finish(status);
    arena_free(a);
    return status;
}
