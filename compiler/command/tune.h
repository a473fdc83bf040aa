// SPDX-License-Identifier: MIT OR Apache-2.0
// What tune.c and tune_time.c share: forms of one kernel that are timed against each other.
#ifndef BURNCC_COMMAND_TUNE_H
#define BURNCC_COMMAND_TUNE_H
#include "command.h"
#include "codegen/codegen.h"

enum { MAX_FORMS = 40 };
typedef void AloneFn(unsigned char *const *at, unsigned char *scratch);
typedef struct Contest {
    int n;
    const Kernel *kernels[MAX_FORMS];                   // the first is the cost model's choice, whose result is right
    AloneFn *const *functions;
    Alone alone;                                        // their operands
    size_t cold_bytes;                                  // calls go round so many bytes of weights
    double seconds;
} Contest;
// of each form, HUGE_VAL where its result is wrong; NULL, or what went wrong
const char *contest_run(Arena *a, const Contest *c, double *ms);
#endif
