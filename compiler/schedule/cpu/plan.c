// SPDX-License-Identifier: MIT OR Apache-2.0
// Planning for processors: the steps from a graph of primitives to kernels in order, with everything's place.
//
// Template kernels get their blocks and packed weights; kernels that follow one another may go strip by strip;
// --threads cuts kernels into parts; of training some run twice.
#include "schedule/schedule.h"

// of a core, as strips.c has them
static const Rates core = { .products = 100, .loops = 10, .bytes = 20, .call = 30, .spare = 0.01 };

bool cpu_plan(Plan *p) {
    if (!fuse_graph(p) || !templates_plan(p)) return false;
    if (!p->parent) strips_plan(p);
    order_plan(p);
    parts_plan(p);
    const int64_t budget = p->options->train_memory;
    const bool trains = graph_trains(p->graph) && !p->parent;
    if (budget && trains) return checkpoint_plan(p, budget, &core);
    if (trains) checkpoint_spare(p, &core);
    const int64_t ram = p->options->ram, banks = banks_bytes(p->options), least = ram && ram < banks ? ram : banks;
    return (ram || banks) && !p->parent ? strips_within(p, banks ? least : ram) : memory_plan(p);
}
