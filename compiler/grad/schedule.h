// SPDX-License-Identifier: MIT OR Apache-2.0
// What --schedule asks for; see schedule.c.
#ifndef BURNCC_GRAD_SCHEDULE_H
#define BURNCC_GRAD_SCHEDULE_H
#include "build/build.h"

// Is the text a schedule? false with diagnostics.
bool schedule_read(Arena *a, const char *text, const Spec **spec);
// learning_rate (step, parameters) -> rate; usual: the parameters with their usual values. NULL with diagnostics.
Graph *schedule_graph(const Graph *model, const Spec *spec, const char **usual);
#endif
