// SPDX-License-Identifier: MIT OR Apache-2.0
// Graph of primitives in, Plan out: kernels in order, buffers with offsets. Also the plan's two views for people:
// --dump schedule prints every kernel's loops and expressions, --report says where the bytes and the operations go.
#include "schedule.h"

#include <stdlib.h>
#include <string.h>

// An output that is an input, a constant, or an output already needs a copy of its own. A region copies its bodies'
// outputs anyway, so there only a carried value that becomes another one does: it may be overwritten before it is
// read.
static void own_outputs(Graph *g) {
    g->cursor = NULL;
    for (int i = 0; i < g->outputs.n; i++) {
        Value *v = g->outputs.at[i];
        bool again = v->is_input || v->data || v->graph != g;
        for (int j = 0; j < i; j++) again = again || g->outputs.at[j] == v;
        if (g->parent) again = v->is_input && v->graph == g && i + 1 < g->inputs.n && g->inputs.at[i + 1] != v;
        if (!again) continue;
        Node *n = graph_node(g, OP_Identity, 1, &v, 1);
        n->out[0]->type = v->type;
        g->outputs.at[i] = n->out[0];
    }
}

// Outputs that have the name of a state are its new value: passes may have made another value of it.
static void mark_states(Graph *g) {
    for (int i = 0; i < g->outputs.n; i++)
        if (field_input(g, ROLE_STATE, g->output_names.at[i])) g->outputs.at[i]->role = ROLE_STATE;
}

// ---------------------------------------------------------------- the steps of planning
static bool check_inputs(const Graph *g) {
    for (int i = 0; i < g->inputs.n; i++) {
        const Value *v = g->inputs.at[i];
        if (!type_too_large(&v->type)) continue;
        diag_error_as(EXIT_LIMIT, &(Loc){ .file = g->file, .node = -1, .name = v->name },
            "an input of %s is too large; a tensor may have %lld GiB", type_text(g->arena, g, &v->type),
            (long long)(MAX_TENSOR_BYTES >> 30));
        return false;
    }
    return true;
}

static bool check_types(const Graph *g, const Options *o) {
    if (!check_inputs(g)) return false;
    if (o->machine.backend->sizes) return true;
    for (const Node *n = g->first; n; n = n->next)
        for (int i = 0; i < n->n_out; i++) {
            if (type_is_static(&n->out[i]->type)) continue;
            diag_error(n->loc,
                "its result %s has a size that only the running program knows; GPU programs have fixed sizes",
                type_text(g->arena, g, &n->out[i]->type));
            return false;
        }
    return true;
}

// --io-in-workspace: has every end one place of a fixed size?
static bool check_inside(const Graph *g, const Options *o) {
    const bool fits = o->machine.backend->descriptor == DESCRIPTOR_MODEL && !o->machine.vectors && !o->train
        && o->threads < 2;
    const char *why = fits ? NULL :
        "is for inference with --target portable and those of microcontrollers, without --threads";
    for (int i = 0; o->io_inside && !why && i < g->inputs.n + g->outputs.n; i++) {
        const Value *v = i < g->inputs.n ? g->inputs.at[i] : g->outputs.at[i - g->inputs.n];
        if (v->role || !type_is_static(&v->type) || v->type.dtype == DT_STRING)
            why = "is for inputs and outputs of fixed sizes, without a state and strings";
    }
    if (o->io_inside && why) diag_error_as(EXIT_USAGE, NULL, "--io-in-workspace %s", why);
    return !o->io_inside || !why;
}

// --region is for code that knows where it runs, and one thread.
static bool check_banks(const Options *o) {
    const bool fits = o->machine.backend->descriptor == DESCRIPTOR_MODEL && !o->machine.vectors && o->threads < 2;
    int codes = 0;
    for (int i = 0; i < o->banks.n; i++) codes += (o->banks.at[i].holds & BANK_CODE) != 0;
    if (codes > 1) diag_error_as(EXIT_USAGE, NULL, "--region: code lies in one region, not in %d", codes);
    if (o->banks.n && !fits)
        diag_error_as(EXIT_USAGE, NULL, "--region is for --target portable and those of microcontrollers, without "
            "--threads");
    return !o->banks.n || (fits && codes < 2);
}

bool graph_trains(const Graph *g) {
    bool loss = false, writes = false;
    for (int i = 0; i < g->outputs.n; i++) {
        loss |= g->outputs.at[i]->role == ROLE_LOSS;
        writes |= g->outputs.at[i]->role == ROLE_GRAD || g->outputs.at[i]->role == ROLE_PARAM;
    }
    return loss && writes;
}

bool plan_ran(const Plan *p, int at) {
    const Kernel *k = p->kernels.at[at];
    for (int i = 0; i < at && k->runs > 1; i++)
        if (p->kernels.at[i] == k) return true;
    return false;
}

// A kernel is called after the node that gives its result, with its number: `k7_layer1_conv1`.
static void name_kernels(Plan *p, const char *prefix, int *numbered) {
    for (int i = 0; i < p->kernels.n; i++) {
        Kernel *k = p->kernels.at[i];
        const Node *last = k->nodes.n ? k->nodes.at[k->nodes.n - 1] : NULL;
        const Node *n = k->anchor ? k->anchor : last;
        if (plan_ran(p, i)) continue;
        const char *from = n && n->loc && n->loc->name && *n->loc->name ? n->loc->name :
            n                                                           ? op_table[n->op].name :
                                                                          "copy";
        if (strlen(from) > 48) from += strlen(from) - 48;
        k->number = (*numbered)++;
        k->name = arena_printf(p->arena, "%s%d_%s", prefix, i, name_c(p->arena, from));
        for (int j = 0; j < kernel_bodies(k); j++)
            name_kernels(k->region.bodies[j], arena_printf(p->arena, "%s%d_%d_", prefix, i, j), numbered);
    }
}

Plan *plan_body(const Plan *outer, Graph *body) {
    Plan *p = NEW(outer->arena, Plan);
    *p = (Plan){ .arena = outer->arena,
        .graph = body,
        .parent = outer,
        .values = outer->values,
        .options = outer->options };
    if (!check_types(body, outer->options)) return NULL;
    own_outputs(body);
    return outer->options->machine.backend->plan(p) ? p : NULL;
}

Plan *plan_make(Graph *g, const Options *o) {
    Plan *p = NEW(g->arena, Plan);
    *p = (Plan){ .arena = g->arena, .graph = g, .values = NEW(g->arena, ValuePlans), .options = o };
    progress_stage("%s: planning", g->name);
    if (!check_types(g, o)) return NULL;
    own_outputs(g);
    mark_states(g);
    if (!check_inside(g, o) || !check_banks(o)) return NULL;
    if (!o->machine.backend->plan(p)) return NULL;
    name_kernels(p, "k", &p->numbered);
    return budget_holds(p) ? p : NULL;
}

// Bytes by which the run moves its memory up to a cache line, for vectors wider than the 16 bytes that malloc aligns
// to: one that crosses a line is two accesses. Other targets take the workspace as it comes.
int64_t plan_slack(const Plan *p) {
    const Target *m = &p->options->machine;
    return m->vectors && m->lanes != 4 && p->work_bytes ? 63 : 0;
}

// ---------------------------------------------------------------- for people
static const char *const kind_names[] = { "loop", "gemm", "conv", "depthwise", "planes", "attention", "attention_grad",
    "region", "call", "product", "sizes" };

const char *kernel_kind(const Kernel *k) { return kind_names[k->kind]; }

static void print_parts(const Plan *p, const Kernel *k, Text *out) {
    const Strips *s = k->strips;
    if (k->parts > 1) text_printf(out, ", in %d parts", k->parts);
    if (k->parts > k->workers && k->workers) text_printf(out, " for %d workers", k->workers);
    if (!s) return;
    const bool first = k == s->member[0];
    if (!first) text_printf(out, ", in strips");
    else text_printf(out, ", with the next %d in %d strips", s->n - 1, s->part[s->parts] - s->parts);
    if (first && (p->options->ram || p->bank_bytes)) text_printf(out, " that move %lld bytes", (long long)s->moved);
    if (s->parts > 1) text_printf(out, " in %d parts", s->parts);
}

// Where in the workspace a kernel's result lies.
static void print_place(const Plan *p, const Value *v, Text *out) {
    int64_t at = 0;
    Buffer *b = plan_value(p, v).buffer;
    const Buffer *owner = b ? buffer_owner(b, &at) : NULL;
    if (owner && owner->place == PLACE_WORK)
        text_printf(out, "   ; %lld bytes at %lld%s%s", (long long)b->bytes, (long long)(owner->offset + at),
            p->options->banks.n ? " of " : "", p->options->banks.n ? p->options->banks.at[owner->bank].name : "");
}

// A call's kernel has no stores: its node says what it makes.
static void print_call(const Plan *p, const Kernel *k, Text *out) {
    const Node *n = k->anchor;
    text_printf(out, "    ");
    for (int i = 0; i < n->n_out; i++)
        if (n->out[i]) text_printf(out, "%s%%%d", i ? ", " : "", n->out[i]->id);
    text_printf(out, " = %s(", op_table[n->op].name);
    for (int i = 0; i < n->n_in; i++) {
        text_printf(out, i ? ", " : "");
        if (n->in[i]) text_printf(out, "%%%d", n->in[i]->id);
    }
    text_append(out, ")", 1);
    if (n->n_out && n->out[0]) print_place(p, n->out[0], out);
    text_append(out, "\n", 1);
}

static void print_kernel(const Plan *p, const Kernel *k, Text *out) {
    text_printf(out, "  %s %s [", kernel_kind(k), k->name);
    for (int j = 0; j < k->axes.n; j++)
        text_printf(out, "%s%s%s", j ? " " : "", j >= k->n_parallel || k->axes.at[j].reduce ? "r" : "",
            dim_text(out->arena, p->graph, k->axes.at[j].size));
    text_append(out, "]", 1);
    print_parts(p, k, out);
    text_append(out, "\n", 1);
    if (k->kind == KERNEL_CALL) print_call(p, k, out);
    for (int j = 0; j < k->stores.n; j++) {
        const Store *s = &k->stores.at[j];
        text_printf(out, "    %%%d[", s->value->id);
        expr_print(s->index, out);
        text_printf(out, "] = ");
        expr_print(s->expr, out);
        print_place(p, s->value, out);
        text_append(out, "\n", 1);
    }
}

double plan_speedup(const Plan *p) {
    double alone = 0, shared = 0;
    for (int i = 0; i < p->kernels.n; i++) {
        alone += p->kernels.at[i]->alone_ns;
        shared += p->kernels.at[i]->share_ns;
    }
    return shared > 0 ? alone / shared : 1;
}

static void print_speedup(const Plan *p, Text *out) {
    if (p->options->threads > 1)
        text_printf(out, "; %d threads at best %.2f times as fast", p->options->threads, plan_speedup(p));
}

void plan_print(const Plan *p, Text *out) {
    text_printf(out, "plan %s: workspace %lld bytes, live %lld, weights %lld", p->graph->name,
        (long long)p->work_bytes, (long long)p->live_bytes, (long long)p->weight_bytes);
    if (p->saved_bytes) text_printf(out, "; the model's own order needs %lld more", (long long)p->saved_bytes);
    print_speedup(p, out);
    text_append(out, "\n", 1);
    for (int i = 0; i < p->kernels.n; i++) print_kernel(p, p->kernels.at[i], out);
}

static void human(Text *out, double bytes) {
    const char *unit[] = { "B", "KiB", "MiB", "GiB" };
    int i = 0;
    for (; bytes >= 1024 && i < 3; i++) bytes /= 1024;
    text_printf(out, i ? "%.1f %s" : "%.0f %s", bytes, unit[i]);
}

typedef struct Kept { const Buffer *buffer; const Kernel *maker; } Kept;

static int by_bytes(const void *x, const void *y) {
    const Buffer *a = ((const Kept *)x)->buffer, *b = ((const Kept *)y)->buffer;
    return a->bytes != b->bytes ? (a->bytes < b->bytes ? 1 : -1) : a->id - b->id;
}

static int64_t alive_bytes(const Plan *p, int at) {
    int64_t live = 0;
    for (int j = 0; j < p->buffers.n; j++) {
        const Buffer *b = p->buffers.at[j];
        if (b->place == PLACE_WORK && buffer_alive(b, at)) live += b->bytes;
    }
    return live;
}

void plan_kept(const Plan *p, Text *out, int shown) {
    int worst = 0, n = 0;
    Kept *kept = NEW_ARRAY(out->arena, Kept, p->buffers.n + 1);
    for (int i = 1; i < p->kernels.n; i++)
        if (alive_bytes(p, i) > alive_bytes(p, worst)) worst = i;
    for (int i = 0; i < p->buffers.n; i++) {
        const Buffer *b = p->buffers.at[i];
        if (b->place == PLACE_WORK && buffer_alive(b, worst)) kept[n++] = (Kept){ b, p->kernels.at[b->first] };
    }
    qsort(kept, (size_t)n, sizeof *kept, by_bytes);
    if (p->options->train_memory)
        text_printf(out, "%d kernels run again, %.1f %% more work; ", p->runs_again, 100 * p->again_share);
    text_printf(out, "at %s are kept\n", p->kernels.at[worst]->name);
    for (int i = 0; i < n && i < shown; i++)
        text_printf(out, "  %12lld %s of %s\n", (long long)kept[i].buffer->bytes,
            kept[i].buffer->value ? type_text(out->arena, p->graph, &kept[i].buffer->value->type) : "scratch memory",
            kept[i].maker->name);
    if (n > shown) text_printf(out, "  and %d more\n", n - shown);
}

void plan_report(const Plan *p, Text *out) {
    double flops = 0;
    double traffic = 0;
    text_printf(out, "%-44s %-9s %12s %12s %12s  fused\n", "kernel", "kind", "operations", "traffic", "live bytes");
    for (int i = 0; i < p->kernels.n; i++) {
        const Kernel *k = p->kernels.at[i];
        int64_t live = alive_bytes(p, i);
        text_printf(out, "%-44s %-9s %12.0f %12lld %12lld ", k->name, kernel_kind(k), k->flops,
            (long long)k->traffic, (long long)live);
        for (int j = 0; j < k->nodes.n; j++) text_printf(out, "%s%s", j ? "+" : " ", op_table[k->nodes.at[j]->op].name);
        print_parts(p, k, out);
        if (plan_ran(p, i)) text_printf(out, ", again");
        if (k->choice) text_printf(out, ", %s%s", k->choice, k->tuned ? " (from records)" : "");
        text_printf(out, "\n");
        flops += k->flops;
        traffic += (double)k->traffic;
    }
    text_printf(out, "%d kernels, %.3g operations, traffic ", p->kernels.n, flops);
    human(out, traffic);
    text_printf(out, ", weights ");
    human(out, (double)p->weight_bytes);
    text_printf(out,
        "\nworkspace %lld bytes planned, %lld bytes alive at the worst moment (lower bound of this order)",
        (long long)p->work_bytes, (long long)p->live_bytes);
    if (p->live_bytes)
        text_printf(out, ": %+.1f %%", 100.0 * (double)(p->work_bytes - p->live_bytes) / (double)p->live_bytes);
    if (p->saved_bytes) text_printf(out, "; the model's own order needs %lld more", (long long)p->saved_bytes);
    print_speedup(p, out);
    text_printf(out, "\n");
    banks_report(p, out);
    if (p->options->train_memory && graph_trains(p->graph)) plan_kept(p, out, 20);
}
