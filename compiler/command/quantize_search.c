// SPDX-License-Identifier: MIT OR Apache-2.0
// Mixed precision: which layers stay float.
//
// In: a simulation with its scales; --accuracy, what may be lost, --budget, the bytes that weights may take, and --ram,
// those of a workspace, which is planned for each candidate. Out: units that are kept. The idea: a layer is as
// sensitive as the output is noisy when it alone is of integers; the most sensitive ones are kept, as many as the
// budget holds, or until what is lost is little enough.
#include "quantizing.h"

#include "codegen/codegen.h"

#include <math.h>
#include <stdlib.h>

#define RAM_TARGET "cortex-m4"                         // all microcontrollers' plans take the same
enum { ALONE_ITEMS = 16, TRIED_ITEMS = 1000 };

static int64_t unit_bytes(const QuantUnit *u, bool floats) {
    int64_t n = type_count(&u->w->type), scales = 4 * u->channels, bias = u->b ? 4 * u->channels : 0;
    return floats ? 4 * n + bias : quant_weight_bytes(u) + scales + bias;
}

int64_t quantizing_bytes(const Quantizer *q, bool floats) {
    int64_t sum = 0;
    for (int i = 0; i < q->units.n; i++) {
        const QuantUnit *u = &q->units.at[i];
        if (u->kind == QUANT_WEIGHTED) sum += unit_bytes(u, floats || !u->integer);
    }
    return sum;
}

// Of each layer: the noise of the output when it alone is of integers.
static bool alone(Quantizing *z) {
    Quantizer *q = z->q;
    double *db = NEW_ARRAY(z->a, double, q->points.n + 1);
    const char **kept = NEW_ARRAY(z->a, const char *, q->units.n + 1);
    bool ok = true;
    z->alone = NEW_ARRAY(z->a, double, q->units.n + 1);
    for (int i = 0; i < q->units.n; i++) kept[i] = q->units.at[i].kept;
    for (int i = 0; i < q->units.n && ok; i++) {
        if (q->units.at[i].kind != QUANT_WEIGHTED || kept[i]) continue;
        progress_stage("%s: %s alone", z->o->name, q->units.at[i].name);
        for (int k = 0; k < q->units.n; k++) q->units.at[k].kept = k == i ? NULL : "for a moment";
        quant_settle(q);
        quantizing_program(z);
        ok = quantizing_noise(z, ALONE_ITEMS, db);
        z->alone[i] = db[q->points.n];
    }
    for (int i = 0; i < q->units.n; i++) q->units.at[i].kept = kept[i];
    quant_settle(q);
    quantizing_program(z);
    return ok;
}

static QuantUnit *most_sensitive(const Quantizing *z, int64_t room) {
    QuantUnit *worst = NULL;
    for (int i = 0; i < z->q->units.n; i++) {
        QuantUnit *u = &z->q->units.at[i];
        if (u->kind != QUANT_WEIGHTED || !u->integer) continue;
        if (unit_bytes(u, true) - unit_bytes(u, false) > room || z->refused[i]) continue;
        if (!worst || z->alone[i] < z->alone[worst - z->q->units.at]) worst = u;
    }
    return worst;
}

// Of the workspace, were the model written as it stands: a copy is, and planned for a microcontroller. -1: with
// diagnostics.
static int64_t planned_ram(const Quantizing *z) {
    Options *o = arena_copy(z->a, z->o, sizeof *z->o);
    Graph *g = graph_clone(z->model.graph, z->model.graph->name);
    Quantizer *q = quant_plan(g->arena, g, &z->q->how);
    fit_bind(z->a, o, &z->model, z->seen, 1);
    if (!backend_target(RAM_TARGET, &o->machine)) bug("no target %s", RAM_TARGET);
    o->target = RAM_TARGET;
    o->embed_limit = INT32_MAX;
    for (int i = 0; i < q->units.n; i++) {
        const QuantUnit *as = &z->q->units.at[i];
        QuantUnit *u = &q->units.at[i];
        u->kept = as->kept;
        u->w = as->w;
        u->b = as->b;
        u->scales = as->scales;
    }
    for (int i = 0; i < q->points.n; i++) {
        q->points.at[i].scale = z->q->points.at[i].scale;
        q->points.at[i].zero = z->q->points.at[i].zero;
    }
    quant_settle(q);
    quant_write(q);
    const Programs *p = compile_graph(g->arena, o, &(Model){ 0 }, g);
    return p ? p->at[0].plan->work_bytes : -1;
}

// It stays an integer where floats would take more RAM than there is.
static void keep(Quantizing *z, QuantUnit *u, const char *why) {
    u->kept = why;
    quant_settle(z->q);
    if (z->ram && planned_ram(z) > z->ram) {
        u->kept = NULL;
        z->refused[u - z->q->units.at] = true;
        quant_settle(z->q);
    }
    quantizing_program(z);
}

static bool within_ram(const Quantizing *z) {
    const int64_t least = planned_ram(z);
    if (least > z->ram)
        diag_error_as(EXIT_LIMIT, NULL, "--ram: with all that can be integers the model needs a workspace of %lld "
            "bytes, not %lld (--target %s)", (long long)least, (long long)z->ram, RAM_TARGET);
    return least >= 0 && least <= z->ram;
}

static bool within_budget(Quantizing *z, int64_t budget) {
    int64_t least = quantizing_bytes(z->q, false);
    if (least > budget) {
        diag_error(NULL,
            "--budget: the weights take %lld bytes as integers; --weight-type int4 and --weights-only int4 take less",
            (long long)least);
        return false;
    }
    const char *why = budget < INT64_MAX ? "--budget" : "--ram";
    for (QuantUnit *u; (u = most_sensitive(z, budget - quantizing_bytes(z->q, false))) != NULL;) keep(z, u, why);
    return true;
}

static bool lost(Quantizing *z, double *by) {
    Measured m;
    int64_t n = z->measured->count < TRIED_ITEMS ? z->measured->count : TRIED_ITEMS;
    bool ok = quantizing_measure(z, n, &z->whole, &m);
    *by = fabs(m.floats - m.whole);
    return ok;
}

static bool accurate(Quantizing *z, double allowed) {
    double by;
    if (!z->target) {
        diag_error(NULL, "--accuracy wants data with labels that the model predicts");
        return false;
    }
    for (QuantUnit *u;;) {
        if (!lost(z, &by)) return false;
        if (by <= allowed || !(u = most_sensitive(z, INT64_MAX))) return true;
        keep(z, u, "--accuracy");
    }
}

bool quantizing_search(Quantizing *z) {
    const struct QuantizeOptions *how = &z->c->quantize;
    bool accuracy = how->accuracy >= 0;
    const int64_t budget = how->budget || accuracy || !z->ram ? how->budget : INT64_MAX;
    z->refused = NEW_ARRAY(z->a, bool, z->q->units.n + 1);
    if ((accuracy || budget || z->c->report) && !alone(z)) return false;
    if (z->ram && !within_ram(z)) return false;
    if (budget && !within_budget(z, budget)) return false;
    return !accuracy || accurate(z, how->accuracy);
}
