// SPDX-License-Identifier: MIT OR Apache-2.0
// Mixed precision: which layers stay float.
//
// In: a simulation with its scales; --accuracy, what may be lost, and --budget, the bytes that weights may take. Out:
// units that are kept. The idea: a layer is as sensitive as the output is noisy when it alone is of integers; the most
// sensitive ones are kept, as many as the budget holds, or until what is lost is little enough.
#include "quantizing.h"

#include <math.h>
#include <stdlib.h>

enum { ALONE_ITEMS = 16, TRIED_ITEMS = 1000 };

static int64_t unit_bytes(const QuantUnit *u, bool floats) {
    int64_t n = type_count(&u->w->type), scales = 4 * u->channels, bias = u->b ? 4 * u->channels : 0;
    return floats ? 4 * n + bias : n + scales + bias;
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
        if (unit_bytes(u, true) - unit_bytes(u, false) > room) continue;
        if (!worst || z->alone[i] < z->alone[worst - z->q->units.at]) worst = u;
    }
    return worst;
}

static void keep(Quantizing *z, QuantUnit *u, const char *why) {
    u->kept = why;
    quant_settle(z->q);
    quantizing_program(z);
}

static bool within_budget(Quantizing *z, int64_t budget) {
    int64_t least = quantizing_bytes(z->q, false);
    if (least > budget) {
        diag_error(NULL, "--budget: the weights take %lld bytes as integers; --weights-only int4 takes less",
            (long long)least);
        return false;
    }
    for (QuantUnit *u; (u = most_sensitive(z, budget - quantizing_bytes(z->q, false))) != NULL;) keep(z, u, "--budget");
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
    if ((accuracy || how->budget || z->c->report) && !alone(z)) return false;
    if (how->budget && !within_budget(z, how->budget)) return false;
    return !accuracy || accurate(z, how->accuracy);
}
