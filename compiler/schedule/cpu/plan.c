// SPDX-License-Identifier: MIT OR Apache-2.0
// Planning for processors: the steps from a graph of primitives to kernels in order, with everything's place.
//
// Template kernels get their blocks and packed weights; kernels that follow one another may go strip by strip;
// --threads cuts kernels into parts; --train-memory lets some run twice.
#include "schedule/schedule.h"

bool cpu_plan(Plan *p) {
    if (!fuse_graph(p) || !templates_plan(p)) return false;
    if (!p->parent) strips_plan(p);
    order_plan(p);
    parts_plan(p);
    const int64_t budget = p->options->train_memory;
    if (budget && graph_trains(p->graph) && !p->parent) return checkpoint_plan(p, budget);
    const int64_t ram = p->options->ram, banks = banks_bytes(p->options), least = ram && ram < banks ? ram : banks;
    return (ram || banks) && !p->parent ? strips_within(p, banks ? least : ram) : memory_plan(p);
}
