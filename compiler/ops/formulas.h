// SPDX-License-Identifier: MIT OR Apache-2.0
// Rows of losses.def, optimizers.def and schedules.def by the names that options give them.
#ifndef BURNCC_FORMULAS_H
#define BURNCC_FORMULAS_H
#include "ir.h"

// classes: targets are class numbers, one per row of the predictions, and no values in their shape
typedef struct LossRow { const char *name; Op op, through; bool classes; const char *formula; } LossRow;
typedef struct OptimizerRow { const char *name; Op op; const char *state, *hyper, *steps; } OptimizerRow;
typedef struct ScheduleRow { const char *name, *hyper, *assignments; } ScheduleRow;

// NULL when there is none of that name
const LossRow *loss_find(const char *name);             // ops/loss.c
const OptimizerRow *optimizer_find(const char *name);   // ops/update.c
const ScheduleRow *schedule_find(const char *name);
// what an operation expands by; a compiler bug when it is none of them
const OptimizerRow *optimizer_of(Op op);
// " a b c": names, for diagnostics
extern const char loss_names[], optimizer_names[], schedule_names[];
#endif
