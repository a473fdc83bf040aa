// SPDX-License-Identifier: MIT OR Apache-2.0
// Where a GPU program's values lie: one arena holds the plan's workspace, then the inputs, then the outputs; weights
// have a buffer of their own. Last come the counters of products whose terms are shared out.
#include "vulkan.h"
#include "codegen/weights.h"

enum { IO_ALIGN = 256 };                                // of inputs and outputs in the arena

static int64_t align_up(int64_t n) { return (n + IO_ALIGN - 1) & ~(int64_t)(IO_ALIGN - 1); }

static uint32_t counters_of(const Kernel *k) {
    return k->kind == KERNEL_PRODUCT && k->product.shares > 1 ? (uint32_t)k->product.blocks : 0;
}

Layout layout_make(Arena *a, const Plan *p, bool external) {
    const Graph *g = p->graph;
    Layout l = { .plan = p,
        .input_at = NEW_ARRAY(a, int64_t, g->inputs.n + 1),
        .output_at = NEW_ARRAY(a, int64_t, g->outputs.n + 1),
        .weights_at = external ? WEIGHTS_HEADER : 0,
        .arena_bytes = align_up(p->work_bytes),
        .work_bytes = align_up(p->work_bytes) };
    for (int i = 0; i < g->inputs.n; i++) {
        l.input_at[i] = l.arena_bytes;
        l.arena_bytes += align_up(type_bytes_upper(g, &g->inputs.at[i]->type));
    }
    for (int i = 0; i < g->outputs.n; i++) {
        l.output_at[i] = l.arena_bytes;
        l.arena_bytes += align_up(type_bytes_upper(g, &g->outputs.at[i]->type));
    }
    l.counters_at = l.arena_bytes;
    for (int i = 0; i < p->kernels.n; i++) l.n_counters += counters_of(p->kernels.at[i]);
    l.arena_bytes += align_up(l.n_counters * (int64_t)sizeof(uint32_t));
    l.weights_bytes = p->weight_bytes ? p->weight_bytes + l.weights_at : 0;
    return l;
}

DType layout_element(const Layout *l, const Value *v) { return plan_value(l->plan, v).buffer->element; }

Region layout_region(const Layout *l, Value *v) {
    Region r = { false, 0, plan_value(l->plan, v).buffer->bytes };
    const Buffer *b = buffer_owner(plan_value(l->plan, v).buffer, &r.at);
    switch (b->place) {
    case PLACE_INPUT: r.at += l->input_at[b->index]; break;
    case PLACE_OUTPUT: r.at += l->output_at[b->index]; break;
    case PLACE_WEIGHT:
        r.at += l->weights_at + b->offset;
        r.is_weight = true;
        break;
    default: r.at += b->offset; break;
    }
    return r;
}

Region layout_scratch(const Kernel *k) {
    Region r = { 0 };
    if (!k->scratch) return r;
    const Buffer *b = buffer_owner(k->scratch, &r.at);
    r.at += b->offset;
    r.bytes = k->scratch->bytes;
    return r;
}

uint32_t layout_counter(const Layout *l, const Kernel *k) {
    uint32_t at = (uint32_t)(l->counters_at / (int64_t)sizeof(uint32_t));
    for (int i = 0; l->plan->kernels.at[i] != k; i++) at += counters_of(l->plan->kernels.at[i]);
    return at;
}
