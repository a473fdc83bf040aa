// SPDX-License-Identifier: MIT OR Apache-2.0
// burncc run: builds the model and runs it once. In: --input NAME=FILE for every input. Out: NAME.npy files in
// --output DIR, or a summary of each output: its shape, least, largest and mean value, the first values, and the five
// largest of a row of scores.
#define _POSIX_C_SOURCE 200809L
#include "command.h"

#include <math.h>
#include <string.h>

enum { FIRST_VALUES = 8, TOP = 5, MIN_CLASSES = 5, JSON_VALUES = 4096 };

typedef struct Summary { double low, high, mean; int64_t not_finite; } Summary;

static bool has_numbers(const Tensor *t) {
    DClass class = dtype_class(t->type.dtype);
    return class == CLASS_FLOAT || class == CLASS_INT || class == CLASS_UINT || class == CLASS_BOOL;
}

static Summary summarize(const Tensor *t) {
    Summary s = { .low = INFINITY, .high = -INFINITY };
    int64_t n = type_count(&t->type), finite = 0;
    for (int64_t i = 0; i < n; i++) {
        double v = tensor_get_f(t, i);
        if (!isfinite(v)) {
            s.not_finite++;
            continue;
        }
        finite++;
        if (v < s.low) s.low = v;
        if (v > s.high) s.high = v;
        s.mean += (v - s.mean) / (double)finite;
    }
    if (!finite) s.low = s.high = s.mean = NAN;
    return s;
}

static void value_text(Text *t, const Tensor *x, int64_t i, bool json) {
    DType d = x->type.dtype;
    if (d == DT_STRING) {
        const char *s = ((const char *const *)x->data)[i];
        json_quoted(t, s ? s : "");
    } else if (dtype_class(d) == CLASS_COMPLEX) {
        bool wide = d == DT_C128;
        double re = wide ? ((const double *)x->data)[2 * i] : (double)((const float *)x->data)[2 * i];
        double im = wide ? ((const double *)x->data)[2 * i + 1] : (double)((const float *)x->data)[2 * i + 1];
        text_printf(t, json ? "[%.9g,%.9g]" : "%.6g%+.6gi", re, im);
    } else if (dtype_is_float(d)) {
        if (json) json_number(t, tensor_get_f(x, i));
        else text_printf(t, "%.6g", tensor_get_f(x, i));
    } else if (d == DT_U64) {
        text_printf(t, "%llu", (unsigned long long)tensor_get_i(x, i));
    } else {
        text_printf(t, "%lld", (long long)tensor_get_i(x, i));
    }
}

// One row of at least a few floats: scores of classes, as far as one can tell.
static bool looks_like_scores(const Tensor *t) {
    int64_t n = type_count(&t->type);
    return dtype_is_float(t->type.dtype) && t->type.rank > 0 && n >= MIN_CLASSES && t->type.dim[t->type.rank - 1] == n;
}

static void print_top(Text *out, const Tensor *t) {
    int64_t n = type_count(&t->type), best[TOP];
    int count = 0;
    for (int64_t i = 0; i < n; i++) {
        double v = tensor_get_f(t, i);
        int at = count < TOP ? count++ : TOP;
        while (at > 0 && v > tensor_get_f(t, best[at - 1])) {
            if (at < TOP) best[at] = best[at - 1];
            at--;
        }
        if (at < TOP) best[at] = i;
    }
    text_printf(out, "  largest:");
    for (int i = 0; i < count; i++)
        text_printf(out, "%s %lld (%.6g)", i ? "," : "", (long long)best[i], tensor_get_f(t, best[i]));
    text_printf(out, "\n");
}

static void print_output(Text *out, Arena *a, const char *name, const Tensor *t) {
    int64_t n = type_count(&t->type);
    text_printf(out, "%s: %s", text_name(a, name), type_text(a, NULL, &t->type));
    if (has_numbers(t) && n > 1) {
        Summary s = summarize(t);
        text_printf(out, "  min=%.6g max=%.6g mean=%.6g", s.low, s.high, s.mean);
        if (s.not_finite) text_printf(out, " not_finite=%lld", (long long)s.not_finite);
    }
    text_printf(out, "\n ");
    for (int64_t i = 0; i < n && i < FIRST_VALUES; i++) {
        text_printf(out, " ");
        value_text(out, t, i, false);
    }
    text_printf(out, n > FIRST_VALUES ? " ...\n" : "\n");
    if (looks_like_scores(t)) print_top(out, t);
}

static void json_output(Text *out, Arena *a, const char *name, const Tensor *t) {
    int64_t n = type_count(&t->type);
    text_printf(out, "{\"name\":");
    json_quoted(out, name);
    text_printf(out, ",");
    json_type(out, a, NULL, &t->type);
    if (has_numbers(t)) {
        Summary s = summarize(t);
        text_printf(out, ",\"min\":");
        json_number(out, s.low);
        text_printf(out, ",\"max\":");
        json_number(out, s.high);
        text_printf(out, ",\"mean\":");
        json_number(out, s.mean);
    }
    text_printf(out, ",\"values\":[");                  // the first ones of large outputs
    for (int64_t i = 0; i < n && i < JSON_VALUES; i++) {
        if (i) text_printf(out, ",");
        value_text(out, t, i, true);
    }
    text_printf(out, "]}");
}

// A file name from an output's name: what could lead elsewhere or confuse a shell becomes '_'.
static bool write_outputs(Arena *a, const Options *o, const Graph *g, Tensor *const *out) {
    bool ok = true;
    for (int i = 0; i < g->outputs.n && ok; i++) ok = tensor_write(a, o->output, g->output_names.at[i], out[i]);
    return ok;
}

static void print_outputs(Arena *a, bool json, const Graph *g, Tensor *const *out) {
    Text t;
    text_init(&t, a);
    if (json) text_printf(&t, "{\"outputs\":[");
    for (int i = 0; i < g->outputs.n; i++) {
        if (json && i) text_printf(&t, ",");
        if (json) json_output(&t, a, g->output_names.at[i], out[i]);
        else print_output(&t, a, g->output_names.at[i], out[i]);
    }
    if (json) text_printf(&t, "]}\n");
    print_text(&t, 0);
}

int command_run(Arena *a, CommandOptions *c) {
    const Options *o = &c->compile;
    Inputs in;
    const Graph *signature = inputs_read(a, c, true, &in);
    if (!signature || !inputs_complete(a, o, signature, &in)) return diag_status();
    BuildCache cache = { .arena = a, .runner = c->runner };
    const char *frozen = "";
    Built *b = build_for_inputs(&cache, o, signature, &in, &frozen);
    if (!b) return diag_status();
    if (*frozen) diag_note(NULL, "shapes depend on the values of %s; compiled for these values", frozen);
    const Graph *g = b->plan->graph;
    Tensor **out = NEW_ARRAY(a, Tensor *, g->outputs.n + 1);
    Inputs bound = inputs_select(a, b, signature, &in);
    const char *why = sandbox_run(a, b, &bound, out, c->timeout);
    if (why) diag_error(NULL, "the model's code failed: %s", why);
    else if (!o->output || write_outputs(a, o, g, out)) print_outputs(a, c->json, g, out);
    build_cache_free(&cache);
    return diag_status();
}
