// SPDX-License-Identifier: MIT OR Apache-2.0
// Planning for GPUs: the steps from a graph of primitives to kernels in order, with everything's place. Kernels are
// loop nests, whose points threads share out (tile.c), and products and attention, which have templates (gemm.c,
// attention.c).
#include "schedule/schedule.h"
#include "blocks.h"
#include "tile.h"

enum { FEW_ROWS = 8 };

static bool from_product(const Value *v, int depth) {
    enum { FAR = 16 };
    const Node *n = v && !v->data ? v->def : NULL;
    if (!n || depth > FAR) return false;
    bool found = n->op == OP_MatMul;
    for (int i = 0; i < n->n_in && !found && (op_is_map(n->op) || op_is_view(n->op)); i++)
        found = from_product(n->in[i], depth + 1);
    return found;
}

// Few queries, whose keys the run counts.
static bool is_few(const Type *t) {
    bool known = t->rank > 1 && t->dim[t->rank - 2] <= FEW_ROWS;
    for (int i = 0; i < t->rank - 1; i++) known = known && dim_is_const(t->dim[i]);
    return known;
}

// Softmaxes of rows of scores, which attention takes whole; where there is none they are loops.
static bool is_softmax_of_scores(const Node *n, const Options *o) {
    const Type *t = &n->out[0]->type;
    const int64_t last = t->rank - 1;
    return n->op == OP_Softmax && !o->no_fuse && t->dtype == DT_F32 && (type_is_static(t) || is_few(t))
        && node_int(n, "axis", last) == last && t->dim[last] != 1 && t->dim[last] != 0 && from_product(n->in[0], 0);
}

// A product of few rows with weights of few bits: each is read once for every row, from where it is packed. Of many
// rows, what unpacks them first does so once.
bool gpu_claims(const Node *n, const Options *o) {
    if (is_softmax_of_scores(n, o)) return true;
    const Type *y = &n->out[0]->type;
    return n->op == OP_MatMulBits && type_count_upper(n->graph, y) <= FEW_ROWS * y->dim[y->rank - 1];
}

double gpu_alone_time(const Plan *body) {
    // of one workgroup in a microsecond, reckoned and not measured: what a core of many reads, and computes
    const double near_bytes = 60e3, near_operations = 400e3;
    double bytes = 0, operations = 0;
    for (int i = 0; i < body->kernels.n; i++) {
        bytes += (double)body->kernels.at[i]->traffic;
        operations += body->kernels.at[i]->flops;
    }
    return bytes / near_bytes + operations / near_operations;
}

double gpu_commands_time(const Plan *body) {
    return (body->kernels.n + body->graph->outputs.n) * gpu_machine.launch;
}

// A large GPU: products on matrix units, of 16 bits and of floats in pieces, all that they wait for counted; loops are
// as fast as memory, mostly. Who asks for 16 bits wants room; of floats nothing runs again unasked.
static const Rates halves_rates = { .products = 100e3, .loops = 10e3, .bytes = 3.3e3, .call = 4500, .spare = 0.022 },
                   floats_rates = { .products = 30e3, .loops = 10e3, .bytes = 3.3e3, .call = 4500, .spare = 0 };

bool gpu_plan(Plan *p) {
    if (!fuse_graph(p)) return false;
    order_plan(p);
    for (int i = 0; i < p->kernels.n; i++) gpu_sort(p->kernels.at[i]);
    gpu_join(p);
    if (p->options->precision && !p->parent) gpu_halves(p);
    // a loop's step that one workgroup may do (codegen/gpu/loop.c) stays loops; products store over nothing that they
    // read
    const bool alone = p->parent && gpu_alone_time(p) <= gpu_commands_time(p);
    for (int i = 0; i < p->kernels.n && !alone; i++)
        if (p->kernels.at[i]->kind == KERNEL_LOOP) gpu_product(p, p->kernels.at[i]);
    gpu_append(p);
    gpu_prepare(p);
    for (int i = 0; i < p->kernels.n; i++)
        if (p->kernels.at[i]->kind == KERNEL_GEMM) gpu_gemm(p, p->kernels.at[i]);
    for (int i = 0; i < p->kernels.n; i++)
        if (p->kernels.at[i]->kind == KERNEL_ATTENTION) gpu_queries(p, p->kernels.at[i]);
    for (int i = 0; i < p->kernels.n && !p->parent; i++)
        if (p->kernels.at[i]->kind == KERNEL_LOOP) gpu_share(p->arena, p->kernels.at[i]);
    const int64_t budget = p->options->train_memory;
    const bool trains = graph_trains(p->graph) && !p->parent;
    const Rates *rates = p->options->precision ? &halves_rates : &floats_rates;
    if (trains && !budget && rates->spare > 0) checkpoint_spare(p, rates);
    if (trains && budget ? !checkpoint_plan(p, budget, rates) : !memory_plan(p)) return false;
    for (int i = 0; i < p->kernels.n; i++)
        if (plan_ran(p, i)) continue;
        else if (p->kernels.at[i]->kind == KERNEL_LOOP) {
            gpu_scatter(p->arena, p->kernels.at[i]);
            gpu_spread(p->arena, p->kernels.at[i]);
        }
        else if (p->kernels.at[i]->kind == KERNEL_ATTENTION) gpu_attention(p, p->kernels.at[i]);
    return true;
}
