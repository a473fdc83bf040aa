// SPDX-License-Identifier: MIT OR Apache-2.0
// Planning for GPUs: every kernel is a loop nest, whose points threads share out.
#include "schedule/schedule.h"

bool gpu_plan(Plan *p) {
    if (!fuse_graph(p)) return false;
    order_plan(p);
    return memory_plan(p);
}
