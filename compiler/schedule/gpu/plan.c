// SPDX-License-Identifier: MIT OR Apache-2.0
// Planning for GPUs: the steps from a graph of primitives to kernels in order, with everything's place. Kernels are
// loop nests, whose points threads share out (tile.c), and products, which have a template (gemm.c).
#include "schedule/schedule.h"
#include "tile.h"

// A product of few rows with weights of few bits: each is read once for every row, from where it is packed. Of many
// rows, what unpacks them first does so once.
bool gpu_claims(const Node *n, const Options *o) {
    enum { FEW_ROWS = 8 };
    (void)o;
    const Type *y = &n->out[0]->type;
    return n->op == OP_MatMulBits && type_count_upper(n->graph, y) <= FEW_ROWS * y->dim[y->rank - 1];
}

bool gpu_plan(Plan *p) {
    if (!fuse_graph(p)) return false;
    order_plan(p);
    for (int i = 0; i < p->kernels.n; i++) gpu_sort(p->kernels.at[i]);
    if (p->options->precision && !p->parent) gpu_halves(p);
    // products store over nothing that they read
    for (int i = 0; i < p->kernels.n; i++)
        if (p->kernels.at[i]->kind == KERNEL_LOOP) gpu_product(p->arena, p->kernels.at[i]);
    const int64_t budget = p->options->train_memory;
    if (budget && graph_trains(p->graph) && !p->parent ? !checkpoint_plan(p, budget) : !memory_plan(p)) return false;
    for (int i = 0; i < p->kernels.n; i++)
        if (plan_ran(p, i)) continue;
        else if (p->kernels.at[i]->kind == KERNEL_LOOP) {
            gpu_scatter(p->arena, p->kernels.at[i]);
            gpu_spread(p->arena, p->kernels.at[i]);
        }
        else if (p->kernels.at[i]->kind == KERNEL_GEMM) gpu_gemm(p->arena, p->kernels.at[i]);
    return true;
}
