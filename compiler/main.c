// SPDX-License-Identifier: MIT OR Apache-2.0
// START HERE: options, the command that they name, its exit status.
//
//   model.onnx -> import -> Graph -> passes -> Graph -> schedule -> Plan -> codegen -> model.c model.h model.bin
//
// compile_programs (compile.c) is the stages up to the plans, in running order; command/compile.c writes what comes of
// them. The other commands (verify, run, bench, ...) are in command/, one file each, and use both.
#include "command/command.h"

int main(int argc, char **argv) {
    Arena *a = arena_new();
    CommandOptions *o = NEW(a, CommandOptions);
    const Command *command = options_parse(a, o, argc, argv);
    int status = command ? command->run(a, o) : diag_status();
    progress_stage(NULL);
    status = output_finish(status);
    arena_free(a);
    return status;
}
