// SPDX-License-Identifier: MIT OR Apache-2.0
// Rows of optimizers.def and schedules.def by the names that options give them.
#ifndef BURNCC_FORMULAS_H
#define BURNCC_FORMULAS_H
#include "ir.h"

typedef struct OptimizerRow { const char *name; Op op; const char *state, *hyper, *options, *steps; } OptimizerRow;
typedef struct ScheduleRow { const char *name, *hyper, *assignments; } ScheduleRow;

// NULL when there is none of that name
const OptimizerRow *optimizer_find(const char *name);   // ops/update.c
const ScheduleRow *schedule_find(const char *name);
// what an operation expands by; a compiler bug when it is none of them
const OptimizerRow *optimizer_of(Op op);
// what updates parameters that are no matrices; NULL: the row itself does
const OptimizerRow *optimizer_others(const OptimizerRow *row);
// " a b c": names, for diagnostics
extern const char optimizer_names[], schedule_names[];
#endif
