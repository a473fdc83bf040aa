// SPDX-License-Identifier: MIT OR Apache-2.0
// The back end that only prints the plan: what a model's kernels are where every one is a loop nest, and where values
// lie. In: programs. Out: model.plan.
//
// It is also the least that a back end is, to begin another one from: kernels as the scheduler makes them of
// primitives, in an order, with their places, and a printer. It takes no templates. It claims norms and recurrent
// cells: each is a kernel, of which the plan says what it is.
#include "codegen.h"
#include "schedule/schedule.h"

static bool plan_claims(const Node *n, const Options *o) {
    (void)o;
    switch (n->op) {
    case OP_LayerNorm:
    case OP_RMSNorm:
    case OP_GroupNorm:
    case OP_InstanceNorm:
    case OP_RNN:
    case OP_GRU:
    case OP_LSTM: return true;
    default: return false;
    }
}

static bool plan_loops(Plan *p) {
    if (!fuse_graph(p)) return false;
    order_plan(p);
    return memory_plan(p);
}

// ---------------------------------------------------------------- printing
static void print_place(const Plan *p, Text *out, const Value *v, const char *what, int64_t at) {
    text_printf(out, "    %%%d %s: %s %lld\n", v->id, type_text(out->arena, p->graph, &v->type), what, (long long)at);
}

static void print_places(const Plan *p, Text *out) {
    static const char *const names[] = { "in input", "in output", "weights from byte", "workspace from byte" };
    for (int i = 0; i < p->graph->inputs.n; i++) print_place(p, out, p->graph->inputs.at[i], "input", i);
    for (int i = 0; i < p->graph->outputs.n; i++) print_place(p, out, p->graph->outputs.at[i], "output", i);
    for (int i = 0; i < p->buffers.n; i++) {
        Buffer *b = p->buffers.at[i];
        int64_t at;
        if (!b->value) {                                // what a call or a region needs while it runs
            text_printf(out, "    %lld bytes: workspace from byte %lld\n", (long long)b->bytes, (long long)b->offset);
            continue;
        }
        const Buffer *owner = buffer_owner(b, &at);
        bool end = owner->place == PLACE_INPUT || owner->place == PLACE_OUTPUT;
        print_place(p, out, b->value, names[owner->place], end ? owner->index : at + owner->offset);
    }
}

static void print_plan(const Plan *p, Text *out) {
    plan_print(p, out);
    text_printf(out, "  places\n");
    print_places(p, out);
    for (int i = 0; i < p->kernels.n; i++) {
        const Kernel *k = p->kernels.at[i];
        for (int j = 0; k->kind == KERNEL_REGION && j < k->region.n_bodies; j++) {
            text_printf(out, "\nbody %d of %s: ", j, k->name);
            print_plan(k->region.bodies[j], out);
        }
    }
}

static bool plan_write(
    Arena *a, const Options *o, const char *model, int n, Program *programs, const struct Training *training) {
    Text out;
    (void)model;
    (void)training;
    text_init(&out, a);
    for (int i = 0; i < n; i++) {
        text_printf(&out, "%s%s: ", i ? "\n" : "", programs[i].name);
        print_plan(programs[i].plan, &out);
    }
    return files_write(a, o->machine.backend->mark, &out, &o->output, 1, 0, NULL);
}

const Backend backend_plan = {
    .name = "plan",
    .extension = ".plan",
    .mark = { ": plan ", true },
    .sizes = true,
    .training = true,
    .kernels = "c",
    .claims = plan_claims,
    .plan = plan_loops,
    .write = plan_write,
};
