// SPDX-License-Identifier: MIT OR Apache-2.0
// Where a GPU program's values lie: one arena holds the plan's workspace, then the inputs, then the outputs; weights
// have a buffer of their own, of which a kernel sees a window where it is large. Last come the counters of products
// whose terms are shared out.
#include "vulkan.h"
#include "codegen/weights.h"

enum {
    IO_ALIGN = 256,                                     // of inputs and outputs in the arena
    WINDOW_ALIGN = 256,                                 // what minStorageBufferOffsetAlignment is at most
    WINDOW_BYTES = 1 << 27,                             // what maxStorageBufferRange is at least
};

static int64_t align_up(int64_t n) { return (n + IO_ALIGN - 1) & ~(int64_t)(IO_ALIGN - 1); }

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
    for (int i = 0; i < p->kernels.n; i++) l.n_counters += (uint32_t)gpu_counters(p->kernels.at[i]);
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

int layout_binding(const Layout *l, const Value *v) {
    int64_t at;
    const Buffer *b = buffer_owner(plan_value(l->plan, v).buffer, &at);
    if (b->place == PLACE_WEIGHT) return 1;
    const Role role = l->moved && b->value ? b->value->role : ROLE_NONE;
    return role == ROLE_PARAM ? 2 : role == ROLE_NONE || role == ROLE_VALUE || role == ROLE_LOSS ? 0 : 3;
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
    for (int i = 0; l->plan->kernels.at[i] != k; i++) at += (uint32_t)gpu_counters(l->plan->kernels.at[i]);
    return at;
}

// ---------------------------------------------------------------- windows of the weights
// From the first to the last byte of the weights that k reads; of no bytes where it reads none.
static Region weights_read(const Layout *l, const Kernel *k) {
    Region all = { true, 0, 0 };
    for (int i = 0; i < k->reads.n; i++) {
        const Region r = layout_region(l, k->reads.at[i]);
        if (!r.is_weight || !r.bytes) continue;
        const int64_t from = all.bytes && all.at < r.at ? all.at : r.at,
                      end = all.bytes && all.at + all.bytes > r.at + r.bytes ? all.at + all.bytes : r.at + r.bytes;
        all = (Region){ true, from, end - from };
    }
    return all;
}

// The last window where the kernel's weights fit into it, perhaps made wider; else one of its own. Kernels stand in the
// order in which weights lie, but for those that others read too.
static int window_for(Layout *l, Region r) {
    for (int i = l->n_windows - 1; i >= 0; i--) {
        struct WeightWindow *w = &l->windows[i];
        const int64_t from = r.at < w->at ? r.at / WINDOW_ALIGN * WINDOW_ALIGN : w->at,
                      end = r.at + r.bytes > w->at + w->bytes ? r.at + r.bytes : w->at + w->bytes;
        if (end - from > WINDOW_BYTES) continue;
        *w = (struct WeightWindow){ from, end - from };
        return i;
    }
    const int64_t from = r.at / WINDOW_ALIGN * WINDOW_ALIGN;
    l->windows[l->n_windows] = (struct WeightWindow){ from, r.at + r.bytes - from };
    return l->n_windows++;
}

void layout_windows(Arena *a, Layout *l) {
    const Plan *p = l->plan;
    int last = 0;
    if (l->weights_bytes <= WINDOW_BYTES) return;
    l->windows = NEW_ARRAY(a, struct WeightWindow, p->kernels.n + 1);
    l->window_of = NEW_ARRAY(a, int, p->kernels.n + 1);
    for (int i = 0; i < p->kernels.n; i++) {
        const Region r = weights_read(l, p->kernels.at[i]);
        l->window_of[i] = last = r.bytes ? window_for(l, r) : last;
    }
}

int layout_window(const Layout *l, const Kernel *k) {
    if (!l->n_windows) return 0;
    for (int i = 0; i < l->plan->kernels.n; i++)
        if (l->plan->kernels.at[i] == k) return l->window_of[i];
    bug("a kernel that the plan has not has no window");
}

int64_t layout_weights_from(const Layout *l, const Kernel *k) {
    return l->n_windows ? l->windows[layout_window(l, k)].at : 0;
}
