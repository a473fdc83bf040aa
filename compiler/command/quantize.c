// SPDX-License-Identifier: MIT OR Apache-2.0
// burncc quantize: a model of floats becomes one of integers. In: a model, data. Out: an ONNX file with QuantizeLinear
// and DequantizeLinear, which other runtimes run too, and on standard output
//
//   layers=3 float_layers=0 weights_bytes=60160 quantized_bytes=15228 sqnr_db=34.1 float_accuracy=0.99 accuracy=0.9898
//   items=10000
//
// The way: the graph is prepared and planned (compiler/quantize/); one program with the scales as inputs is built and
// sees the data, first for ranges, then for errors; what is chosen is written, and the file itself is built and
// measured beside the floats.
#include "quantizing.h"

#include "export/onnx.h"

#include <math.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

enum { USUAL_ITEMS = 256, NOISE_ITEMS = 64, USUAL_BLOCK = 32 };

int64_t quantizing_item(const burn_dataset *data, int64_t n, int64_t i) { return i * data->count / n; }

// ---------------------------------------------------------------- data

// Labels, where the source has some that the model's output can be measured by.
static const burn_field *labels(const Quantizing *z) {
    const burn_dataset *d = z->measured;
    if (d->field_count <= z->model.graph->inputs.n) return NULL;
    const burn_field *f = fit_target(&z->model, d);
    bool binary = f->class_count == 2 && z->model.classes == 1;
    if (!f->class_count || binary || !z->model.classes || f->class_count <= z->model.classes) return f;
    diag_note(NULL, "the data has %d classes, the model's output %lld: no accuracy is measured", f->class_count,
        (long long)z->model.classes);
    return NULL;
}

static bool open_data(Quantizing *z) {
    const struct FitOptions *fit = &z->c->fit;
    if (!fit_memory_read(z->a, z->o->model, &z->memory)) return false;
    if (!fit_source(z->a, &z->memory, &z->model.asked, z->c->data.at[0], &z->data)) return false;
    if (fit->valid && !fit_source(z->a, &z->memory, &z->model.asked, fit->valid, &z->apart)) return false;
    const burn_source *apart = fit->valid ? &z->apart : &z->data;
    z->seen = z->data.plain ? z->data.plain : z->data.train;
    z->measured = apart->valid ? apart->valid : apart->plain ? apart->plain : apart->train;
    if (z->seen->count < 1) {
        diag_error(NULL, "%s has no items: ranges are taken from data", z->c->data.at[0]);
        return false;
    }
    if (z->seen->count < 16)
        diag_note(NULL, "%lld item%s: values that other data has may be out of the ranges; some hundred are usual",
            (long long)z->seen->count, z->seen->count == 1 ? "" : "s");
    z->target = labels(z);
    return true;
}

// ---------------------------------------------------------------- the plan

static bool compile_keep(const Quantizing *z, regex_t *at) {
    const struct QuantizeOptions *how = &z->c->quantize;
    for (int i = 0; i < how->keep.n; i++) {
        char why[128];
        int code = regcomp(&at[i], how->keep.at[i], REG_EXTENDED | REG_NOSUB);
        if (!code) continue;
        regerror(code, &at[i], why, sizeof why);
        diag_error_as(EXIT_USAGE, NULL, "--keep %s: %s", how->keep.at[i], why);
        while (i--) regfree(&at[i]);
        return false;
    }
    return true;
}

typedef struct Kept { regex_t *at; int n; bool *used; } Kept;

static bool is_kept(void *own, const char *name) {
    const Kept *k = own;
    bool kept = false;
    for (int i = 0; i < k->n; i++)
        if (!regexec(&k->at[i], name, 0, NULL, 0)) kept = k->used[i] = true;
    return kept;
}

static bool end_keep(const Quantizing *z, const Kept *k) {
    bool ok = true;
    for (int i = 0; i < k->n; i++) {
        if (!k->used[i]) {
            diag_error_as(EXIT_USAGE, NULL, "--keep %s: no layer is called so", z->c->quantize.keep.at[i]);
            ok = false;
        }
        regfree(&k->at[i]);
    }
    return ok;
}

static bool begin_keep(const Quantizing *z, Kept *k) {
    k->n = z->c->quantize.keep.n;
    k->at = arena_alloc(z->a, sizeof *k->at * (size_t)(k->n + 1));
    k->used = NEW_ARRAY(z->a, bool, k->n + 1);
    return compile_keep(z, k->at);
}

static bool has_products(const Quantizer *q) {
    for (int i = 0; i < q->units.n; i++)
        if (q->units.at[i].kind == QUANT_WEIGHTED && q->units.at[i].integer) return true;
    return false;
}

static bool plan(Quantizing *z) {
    const struct QuantizeOptions *how = &z->c->quantize;
    Kept k = { 0 };
    Graph *g = z->model.graph;
    if (!begin_keep(z, &k)) return false;
    bool ok = quant_prepare(g, z->o);
    if (ok)
        z->q = quant_plan(g->arena, g, &(QuantHow){ .method = (QuantMethod)how->method,
            .activations = how->halves ? DT_I16 : how->unsigned_bytes ? DT_U8 : DT_I8,
            .weights = how->weights == ONLY_INT4 ? DT_I4 : DT_I8, .per_tensor = how->per_tensor });
    for (int i = 0; ok && i < z->q->units.n; i++)
        if (is_kept(&k, z->q->units.at[i].name)) z->q->units.at[i].kept = "--keep";
    ok = end_keep(z, &k) && ok;
    if (!ok) return false;
    quant_settle(z->q);
    if (how->equalize) diag_note(NULL, "%d pairs of layers equalized", quant_equalize(z->q));
    if (!has_products(z->q))
        diag_error(&(Loc){ .file = z->o->model, .node = -1 },
            "has nothing to quantize: no convolution or matrix product of f32 with constant weights");
    return !diag_errors();
}

// ---------------------------------------------------------------- the simulation

static Options *bound(const Quantizing *z) {
    Options *o = arena_copy(z->a, z->o, sizeof *z->o);
    fit_bind(z->a, o, &z->model, z->seen, 1);
    return o;
}

static bool simulate(Quantizing *z) {
    Options *o = bound(z);
    Graph *g = quant_simulation(z->q);
    int given = z->model.graph->inputs.n;
    Programs *p = compile_graph(g->arena, o, &(Model){ 0 }, g);
    z->simulation = p ? build_program(g->arena, o, p) : NULL;
    if (!z->simulation) return false;
    if (!z->simulation->model) {
        diag_error(NULL, "a model is quantized on this processor: no --target of another one");
        return false;
    }
    fit_run_open(&z->floats, z->a, z->simulation, given);
    fit_run_open(&z->whole, z->a, z->simulation, given);
    return fit_run_fields(&z->floats, z->seen, &z->model, NULL) && fit_run_fields(&z->whole, z->seen, &z->model, NULL);
}

static void program(const Quantizing *z, const FitRun *r, bool floats) {
    int n = quant_tensors(z->q);
    float **weights = NEW_ARRAY(z->a, float *, n + 1);
    for (int i = 0; i < n; i++) weights[i] = r->in[r->given + 1 + i].data;
    quant_program(z->q, floats, r->in[r->given].data, weights);
}

void quantizing_program(Quantizing *z) { program(z, &z->whole, false); }

static int outputs_before(const Quantizing *z) { return z->model.graph->outputs.n; }

static bool all_finite(const Quantizing *z, const QuantPoint *p) {
    if (isfinite(p->lo) && isfinite(p->hi)) return true;
    const Node *n = p->value->def;
    diag_error(n ? n->loc : NULL, "gives what is no number for an item of %s", z->c->data.at[0]);
    return false;
}

// Ranges, then how often which values are in them.
static bool calibrate(Quantizing *z) {
    const struct QuantizeOptions *how = &z->c->quantize;
    int64_t n = how->calibrate ? how->calibrate : USUAL_ITEMS;
    if (n > z->seen->count) n = z->seen->count;
    program(z, &z->floats, true);
    for (int turn = 0; turn <= quant_counts(&z->q->how); turn++)
        for (int64_t i = 0; i < n; i++) {
            progress_stage("%s: item %lld of %lld, %s", z->o->name, (long long)i + 1, (long long)n,
                turn ? "distributions" : "ranges");
            if (!fit_run_item(&z->floats, z->seen, quantizing_item(z->seen, n, i))) return false;
            for (int k = 0; k < z->q->points.n; k++) {
                QuantPoint *p = &z->q->points.at[k];
                const burn_tensor *t = &z->floats.out[outputs_before(z) + k];
                int64_t count = (int64_t)(t->bytes / sizeof(float));
                if (p->root == k && !turn) quant_see(p, t->data, count);
                if (p->root == k && !turn && !all_finite(z, p)) return false;
                if (!turn && how->bias_correction) quant_see_channels(z->q, p, t->data, count);
                if (turn && !p->bins) p->bins = NEW_ARRAY(z->a, int64_t, QUANT_BINS);
                if (turn && p->root == k) quant_count(p, t->data, count);
            }
        }
    quant_choose(z->q);
    quant_weights(z->q);
    if (how->bias_correction) quant_correct_biases(z->q);
    quantizing_program(z);
    return true;
}

// ---------------------------------------------------------------- errors

typedef struct Power { double signal, noise; } Power;

static void add_power(Power *p, const burn_tensor *want, const burn_tensor *got) {
    const float *x = want->data, *y = got->data;
    for (size_t i = 0; i < want->bytes / sizeof *x; i++) {
        double d = (double)x[i] - (double)y[i];
        p->signal += (double)x[i] * (double)x[i];
        p->noise += d * d;
    }
}

static double decibels(const Power *p) {
    return p->noise > 0 ? p->signal > 0 ? 10 * log10(p->signal / p->noise) : -HUGE_VAL : HUGE_VAL;
}

bool quantizing_noise(Quantizing *z, int64_t n, double *db) {
    int points = z->q->points.n, first = outputs_before(z);
    Power *power = NEW_ARRAY(z->a, Power, points + 1);
    if (n > z->seen->count) n = z->seen->count;
    for (int64_t i = 0; i < n; i++) {
        int64_t item = quantizing_item(z->seen, n, i);
        if (!fit_run_item(&z->floats, z->seen, item) || !fit_run_item(&z->whole, z->seen, item)) return false;
        for (int k = 0; k < points; k++) add_power(&power[k], &z->floats.out[first + k], &z->whole.out[first + k]);
        if (z->model.graph->outputs.at[0]->type.dtype == DT_F32)
            add_power(&power[points], &z->floats.out[0], &z->whole.out[0]);
    }
    for (int k = 0; k <= points; k++) db[k] = decibels(&power[k]);
    return true;
}

// Values to compare with are as many as the output has; else there is no label, which is said once.
static void check_values(Quantizing *z, const Graph *g) {
    int64_t values = 1;
    if (!z->target || z->target->class_count) return;
    for (int i = 0; i < z->target->rank; i++) values *= z->target->shape[i];
    if (values == type_count_upper(g, &g->outputs.at[0]->type)) return;
    diag_note(NULL, "\"%s\" of the data has %lld values, the model's output %lld: no error beside it is measured",
        z->target->name, (long long)values, (long long)type_count_upper(g, &g->outputs.at[0]->type));
    z->target = NULL;
}

// A second model of the same outputs beside the floats.
bool quantizing_measure(Quantizing *z, int64_t n, FitRun *whole, Measured *m) {
    FitMeasures of[2] = { { .binary = z->model.classes == 1 }, { .binary = z->model.classes == 1 } };
    const burn_dataset *d = z->measured;
    const Graph *g = z->simulation->plan->graph;
    Power power = { 0 };
    check_values(z, g);
    bool ok = fit_run_fields(&z->floats, d, &z->model, NULL) && fit_run_fields(whole, d, &z->model, NULL);
    const char *metrics = z->c->fit.metrics, *usual = "mae";
    if (z->target && z->target->class_count) usual = z->model.classes == 1 ? "accuracy(threshold=0)" : "accuracy";
    if (!metrics) metrics = usual;
    bool measures = z->target && g->outputs.at[0]->type.dtype == DT_F32;
    for (int k = 0; k < 2 && measures; k++) {
        of[k].binary = of[k].binary && z->target->class_count == 2;
        ok = ok && fit_measures_open(z->a, &of[k], metrics);
    }
    for (int64_t i = 0; ok && i < n; i++) {
        int64_t item = quantizing_item(d, n, i);
        if (i % 64 == 0) progress_stage("%s: measuring item %lld of %lld", z->o->name, (long long)i, (long long)n);
        ok = fit_run_item(&z->floats, d, item) && fit_run_item(whole, d, item);
        if (ok) add_power(&power, &z->floats.out[0], &whole->out[0]);
        for (int k = 0; ok && measures && k < 2; k++) {
            const FitRun *r = k ? whole : &z->floats;
            ok = fit_measures_add(&of[k], z->target, r->out[0].data, &g->outputs.at[0]->type,
                r->item[z->target - d->fields]);
        }
    }
    *m = (Measured){ .items = n, .db = decibels(&power) };
    if (ok && measures) {
        m->metric = arena_strndup(z->a, of[0].names.at[0], strcspn(of[0].names.at[0], "("));
        m->floats = burn_metric_value(of[0].at[0]);
        m->whole = burn_metric_value(of[1].at[0]);
    }
    for (int k = 0; k < 2; k++) fit_measures_close(&of[k]);
    return ok;
}

// ---------------------------------------------------------------- the file

static bool export(const Quantizing *z) {
    Options *o = arena_copy(z->a, z->o, sizeof *z->o);
    o->written = WRITTEN_ONNX;
    o->embed_limit = INT32_MAX;
    o->dims.n = 0;                                      // they are bound
    progress_stage("writing %s", o->output);
    return export_onnx(z->a, o, z->model.graph);
}

// What was written, as any other model: what was said of the one that it was made of is in it.
static bool measure_file(Quantizing *z, Measured *m) {
    Options *o = bound(z);
    FitRun whole;
    bool compiled;
    o->model = z->o->output;
    o->settings.n = o->weights.n = o->maps.n = o->shapes.n = o->absent.n = o->frozen.n = 0;
    o->config = o->function = NULL;
    o->seeded = o->strict = false;
    o->replace_head = o->lora_rank = 0;
    Built *b = build_model(o, NULL, &compiled);
    if (!b) return false;
    fit_run_open(&whole, z->a, b, z->model.graph->inputs.n);
    program(z, &z->floats, true);
    bool ok = quantizing_measure(z, z->measured->count, &whole, m);
    fit_run_close(&whole);
    build_free(b);
    return ok;
}

// ---------------------------------------------------------------- the command

static bool weights_alone(Quantizing *z) {
    Kept k = { 0 };
    int64_t block = z->c->quantize.block ? z->c->quantize.block : USUAL_BLOCK;
    if (!begin_keep(z, &k) || !quant_prepare(z->model.graph, z->o)) return false;
    QuantStored s = quant_only(z->model.graph, (QuantOnly)z->c->quantize.only, block, is_kept, &k);
    if (!end_keep(z, &k)) return false;
    if (!s.tensors)
        diag_error(&(Loc){ .file = z->o->model, .node = -1 }, "has no constant weights of f32 that are multiplied");
    return s.tensors && export(z) && !quantizing_print_only(z, &s);
}

static bool integers(Quantizing *z) {
    Measured m;
    if (!open_data(z) || !plan(z) || !simulate(z) || !calibrate(z)) return false;
    z->noise = NEW_ARRAY(z->a, double, z->q->points.n + 1);
    if (!quantizing_search(z) || !quantizing_noise(z, NOISE_ITEMS, z->noise)) return false;
    quant_write(z->q);
    return export(z) && measure_file(z, &m) && !quantizing_print(z, &m);
}

static void end(const Quantizing *z) {
    fit_run_close(&z->floats);
    fit_run_close(&z->whole);
    burn_source close[2] = { z->data, z->apart };
    for (int i = 0; i < 2; i++) burn_source_close(&close[i]);
}

int command_quantize(Arena *a, CommandOptions *c) {
    Quantizing z = { .a = a, .c = c, .o = arena_copy(a, &c->compile, sizeof c->compile) };
    z.ram = z.o->ram;                                   // not of the simulation
    z.o->ram = 0;
    Arena *own = arena_new();
    bool only = c->quantize.only != ONLY_NOT;
    if (!out_allowed(z.o->output, onnx_mark)) return diag_status();
    if (fit_model(own, z.o, &z.model)) {
        if (only) weights_alone(&z);
        else integers(&z);
    }
    end(&z);
    if (z.simulation) build_free(z.simulation);
    else arena_free(own);
    return diag_status();
}
