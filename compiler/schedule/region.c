// SPDX-License-Identifier: MIT OR Apache-2.0
// Control flow: an If or Loop node becomes one kernel that holds a plan per body. A body's values live in a workspace
// of their own, which the outer plan places as the kernel's scratch memory; what a body reads from outside (values,
// constants, packed operands) counts as read by the kernel, so that lifetimes and weights are the outer plan's
// business alone.
#include "schedule.h"

#include <string.h>

// Zeros are not read but set.
static bool is_zero(const Value *v) {
    const char *p = v->data ? v->data->data : NULL;
    int64_t n = p ? type_bytes(&v->type) : 0;
    return n > 0 && !*p && !memcmp(p, p + 1, (size_t)n - 1);
}

static void add_copied(Arena *a, Kernel *k, Value *v) {
    if (!is_zero(v)) kernel_read(a, k, v);
}

// How often a body runs at most, as far as that is known: room for the strings that it makes.
static int64_t iterations(const Node *n) {
    enum { UNKNOWN = 64 };
    int count;
    const int64_t *trips = node_ints(n, "trips", &count);
    if (n->op != OP_Loop) return 1;
    int64_t upper = trips          ? dim_upper(n->graph, trips[0]) :
        n->in[0] && n->in[0]->data ? tensor_get_i(n->in[0]->data, 0) :
                                     UNKNOWN;
    return upper < 1 ? 1 : upper < INT32_MAX ? upper : UNKNOWN;
}

static void take_body(Arena *a, Kernel *k, Plan *body) {
    for (int i = 0; i < body->kernels.n; i++) {
        const Kernel *inner = body->kernels.at[i];
        for (int j = 0; j < inner->reads.n; j++) {
            Value *v = inner->reads.at[j];
            bool packed = inner->packed && !kernel_packs(inner) && inner->packed->value == v;
            if (!packed && (v->data || v->graph != body->graph)) kernel_read(a, k, v);
        }
        if (inner->packed && !kernel_packs(inner)) VEC_PUSH(a, k->region.packs, inner->packed);
        for (int j = 0; inner->kind == KERNEL_REGION && j < inner->region.packs.n; j++)
            VEC_PUSH(a, k->region.packs, inner->region.packs.at[j]);
        k->flops += inner->flops;
        kernel_moves(k, inner->traffic);
        int64_t times = iterations(k->anchor);
        k->string_bytes += inner->string_bytes > MAX_POOL / times ? MAX_POOL : inner->string_bytes * times;
    }
    for (int i = 0; i < body->graph->outputs.n; i++) {
        Value *v = body->graph->outputs.at[i];
        bool condition = k->anchor->op == OP_Loop && i == 0;
        if (v->data ? !condition : v->graph != body->graph) add_copied(a, k, v);
    }
    for (int i = 0; i < body->buffers.n; i++) body->buffers.at[i]->base = k->scratch;
    if (body->work_bytes > k->scratch_bytes) k->scratch_bytes = body->work_bytes;
}

Kernel *kernel_region(const Plan *outer, Node *n) {
    Arena *a = outer->arena;
    Kernel *k = NEW(a, Kernel);
    k->kind = KERNEL_REGION;
    k->anchor = n;
    k->exprs = expr_pool_new(a);
    k->scratch = NEW(a, Buffer);
    k->region.n_bodies = n->n_bodies;
    k->region.bodies = NEW_ARRAY(a, Plan *, n->n_bodies);
    VEC_PUSH(a, k->nodes, n);
    for (int i = 0; i < n->n_bodies; i++) {
        k->region.bodies[i] = plan_body(outer, n->bodies[i]);
        if (!k->region.bodies[i]) return NULL;
        take_body(a, k, k->region.bodies[i]);
    }
    for (int i = 0; i < n->n_in; i++) {
        // number: in the text itself
        bool carried = n->op == OP_Loop && i >= 2, number = n->op == OP_Loop && i < 2 && n->in[i] && n->in[i]->data;
        if (carried) add_copied(a, k, n->in[i]);
        else if (n->in[i] && !number) kernel_read(a, k, n->in[i]);
    }
    for (int i = 0; i < n->n_out; i++) VEC_PUSH(a, k->writes, n->out[i]);
    return k;
}
