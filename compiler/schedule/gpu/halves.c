// SPDX-License-Identifier: MIT OR Apache-2.0
// Which values a GPU program keeps in 16 bits (--precision f16 or bf16).
//
// In: kernels in order, before anything has a place. Out: buffers of half the bytes, of another element than their
// values' f32. Kernels compute in f32 as before: a value is rounded when it is stored, and only then, so that what is
// fused stays exact, and sums are f32.
//
// f32 stays what others see (inputs and outputs), what kernels of the model's own read, what is summed in memory, the
// parts of a long row's sum (split_reduce.c), constants that 16 bits cannot hold, and numbers that integers or
// conditions come from: an index or a comparison does not err by a little. In
// training also what is made of whole gradients and parameters, and the sums of rows that norms and losses are made of,
// which are few.
#include "schedule/schedule.h"
#include "tile.h"

#include <math.h>
#include <string.h>

typedef struct Halving { const Plan *plan; Arena *scratch; DType to; bool *exact; } Halving;     // exact: by value id

// Constants: nothing becomes infinite, and the largest keeps all its bits.
static bool fits(const Value *v, DType to) {
    const float *x = v->data->data;
    const double most = to == DT_F16 ? 65504 : 0x1.fep127, least = to == DT_F16 ? 0x1p-14 : 0x1p-126;
    double largest = 0;
    for (int64_t i = 0, n = type_count(&v->type); i < n; i++)
        if (isfinite(x[i]) && fabs((double)x[i]) > largest) largest = fabs((double)x[i]);
    return largest == 0 || (largest >= least && largest <= most);
}

static bool is_float(const Value *v) { return dtype_is_float(v->type.dtype); }

// Outputs that are no tensors (gradients, new parameters and state, losses), up to the sums that they come from.
static void mark_learnt(Halving *h, const Graph *g) {
    for (int i = 0; i < g->outputs.n; i++)
        if (g->outputs.at[i]->role != ROLE_NONE) h->exact[g->outputs.at[i]->id] = true;
    for (const Node *n = g->last; n; n = n->prev) {
        const int form = (int)op_table[n->op].form;
        bool exact = false;
        for (int i = 0; i < n->n_out; i++) exact = exact || (n->out[i] && h->exact[n->out[i]->id]);
        const bool sums = form == FORM_CONTRACT || form == FORM_REDUCE || form == FORM_WINDOW || form == FORM_SCATTER;
        if (!exact || sums) continue;
        for (int i = 0; i < n->n_in; i++)
            if (n->in[i]) h->exact[n->in[i]->id] = true;
    }
}

static bool is_sum_of_many(const Node *n) {
    enum { MANY = 16 };
    const Graph *g = n->graph;
    return op_table[n->op].form == FORM_REDUCE && n->n_out == 1
        && type_count_upper(g, &n->in[0]->type) >= MANY * type_count_upper(g, &n->out[0]->type);
}

// Sums of many elements, and what is computed of them, parameters and constants alone.
static void mark_sums(Halving *h, const Graph *g) {
    bool *few = NEW_ARRAY(h->scratch, bool, graph_root(g)->value_count + 1);
    for (const Node *n = g->first; n; n = n->next) {
        bool any = is_sum_of_many(n), all = op_is_map(n->op) || op_is_view(n->op);
        for (int i = 0; i < n->n_in && all && !any; i++) {
            const Value *v = n->in[i];
            all = v && (few[v->id] || v->data || v->role == ROLE_PARAM);
        }
        for (int i = 0; i < n->n_in && all && !any; i++) any = few[n->in[i]->id];
        if (!any || n->n_out != 1) continue;
        few[n->out[0]->id] = h->exact[n->out[0]->id] = true;
    }
}

// Numbers behind which there is something that is no float, up to the products and convolutions that they come from.
static void mark_exact(Halving *h, const Graph *g) {
    for (const Node *n = g->last; n; n = n->prev) {
        bool exact = false;
        for (int i = 0; i < n->n_out; i++)
            exact = exact || (n->out[i] && (!is_float(n->out[i]) || h->exact[n->out[i]->id]));
        if (op_table[n->op].form == FORM_CONTRACT) continue;
        for (int i = 0; i < n->n_in && exact; i++)
            if (n->in[i]) h->exact[n->in[i]->id] = true;
    }
}

// What reductions of long rows came to (passes/split_reduce.c): a million exponentials are more than f16 has.
static void mark_parts(Halving *h, const Graph *g) {
    for (const Node *n = g->first; n; n = n->next)
        if (node_is_stored(n) && n->in[0]->def && op_is_row_reduce(n->in[0]->def->op)) h->exact[n->out[0]->id] = true;
}

static Value *owner(const Halving *h, const Value *v) {
    int64_t at;
    return buffer_owner(plan_value(h->plan, v).buffer, &at)->value;
}

// Whoever shares its bytes has its element.
static void keep(Halving *h, const Value *v) { h->exact[owner(h, v)->id] = true; }

static void look(Halving *h, const Kernel *k, const Value *v) {
    const Value *o = owner(h, v);
    if (v->type.dtype != DT_F32 || o->type.dtype != DT_F32 || o->is_input || h->exact[v->id] || k->kind == KERNEL_CALL
        || k->kind == KERNEL_REGION || (o->data && !h->exact[o->id] && !fits(o, h->to)))
        keep(h, v);
}

static void mark_kernels(Halving *h) {
    const Plan *p = h->plan;
    for (int i = 0; i < p->kernels.n; i++) {
        const Kernel *k = p->kernels.at[i];
        for (int j = 0; j < k->reads.n; j++) look(h, k, k->reads.at[j]);
        for (int j = 0; j < k->writes.n; j++) look(h, k, k->writes.at[j]);
        for (int j = 0; j < k->stores.n; j++)
            if (k->stores.at[j].op != RED_NONE) keep(h, k->stores.at[j].value);
    }
    for (int i = 0; i < p->graph->outputs.n; i++)
        if (plan_value(p, p->graph->outputs.at[i]).buffer) keep(h, p->graph->outputs.at[i]);
}

static void fill_halves(const Buffer *b, void *to) {
    const float *from = b->value->data->data;
    uint16_t *half = to;
    for (int64_t i = 0, n = type_count(&b->value->type); i < n; i++)
        half[i] = (uint16_t)small_from_float(b->element, from[i], false);
}

// The value's buffer, and those that it is a window of.
static void narrow(const Halving *h, const Value *v) {
    if (h->exact[owner(h, v)->id]) return;
    for (Buffer *b = plan_value(h->plan, v).buffer; b && b->element != h->to; b = b->alias) {
        b->element = h->to;
        b->bytes /= 2;
        b->offset /= 2;
        if (b->data) b->fill = fill_halves;
    }
}

static void count_traffic(const Halving *h, Kernel *k) {
    for (int i = 0; i < k->reads.n + k->writes.n; i++) {
        const Value *v = i < k->reads.n ? k->reads.at[i] : k->writes.at[i - k->reads.n];
        const Buffer *b = plan_value(h->plan, v).buffer;
        if (b->element != v->type.dtype) k->traffic -= b->bytes;
    }
}

void gpu_halves(Plan *p) {
    Arena *scratch = arena_new();
    Halving h = { p, scratch, strcmp(p->options->precision, "f16") ? DT_BF16 : DT_F16, NULL };
    h.exact = NEW_ARRAY(scratch, bool, graph_root(p->graph)->value_count + 1);
    for (int i = 0; i < p->kernels.n; i++)              // buffers for all of them
        for (int j = 0; j < p->kernels.at[i]->reads.n + p->kernels.at[i]->writes.n; j++) {
            const Kernel *k = p->kernels.at[i];
            buffer_of(p, j < k->reads.n ? k->reads.at[j] : k->writes.at[j - k->reads.n]);
        }
    mark_exact(&h, p->graph);
    mark_parts(&h, p->graph);
    if (p->options->train) {
        mark_learnt(&h, p->graph);
        mark_sums(&h, p->graph);
    }
    mark_kernels(&h);
    for (int i = 0; i < p->kernels.n; i++) {
        Kernel *k = p->kernels.at[i];
        for (int j = 0; j < k->reads.n; j++) narrow(&h, k->reads.at[j]);
        for (int j = 0; j < k->writes.n; j++) narrow(&h, k->writes.at[j]);
    }
    for (int i = 0; i < p->kernels.n; i++) count_traffic(&h, p->kernels.at[i]);
    arena_free(scratch);
}
