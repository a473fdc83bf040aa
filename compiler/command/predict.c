// SPDX-License-Identifier: MIT OR Apache-2.0
// burncc predict and evaluate: a model that `burncc fit` made, over other data. In: the model, what is remembered
// beside it (fit_memory.c), files, folders or sources. Out: of predict a line an item, with tabs,
//
//   cat.jpg	cat	0.9931                 classes: the likeliest, its probability
//   houses.csv:3	412.5                  numbers; items of one file are counted from 1
//
// or the text that goes on from a text; of evaluate one line, `items=... loss=... accuracy=... seconds=...`.
//
// Items go through the model one by one, in this process; for evaluate the loss is the model's last output.
#define _POSIX_C_SOURCE 200809L
#include "fit.h"

#include "grad/loss.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { USUAL_LENGTH = 200 };

typedef struct Predictor {
    Arena *a;
    const CommandOptions *c;
    FitMemory memory;
    FitModel model;
    const char *metrics;                                // of evaluate
    Built *built;
    FitRun run;
    const Type *scores;                                 // of the first output
    float *probability;                                 // of each class of the last axis
} Predictor;

// ---------------------------------------------------------------- opening

// The model with its loss behind its outputs, and what that wants besides behind its inputs.
static Built *build_loss(const Options *o) {
    Arena *a = arena_new();
    Options *own = arena_copy(a, o, sizeof *o);
    const Model *m = model_open(a, own);
    Graph *g = m ? model_graph(a, m, own) : NULL;
    LossTerms terms = { 0 };
    bool ok = g && losses_read(&terms, g, own) && losses_targets(&terms, g);
    Value *loss = ok ? losses_sum(&terms, g) : NULL;
    if (loss) graph_output(g, loss, "loss");
    Programs *programs = loss ? compile_graph(a, own, m, g) : NULL;
    if (programs) return build_program(a, own, programs);
    arena_free(a);
    return NULL;
}

// target: of the loss; NULL: without
static bool build(Predictor *p, const burn_dataset *data, const burn_field *target) {
    Options *o = arena_copy(p->a, &p->c->compile, sizeof p->c->compile);
    bool compiled;
    fit_bind(p->a, o, &p->model, data, 1);
    for (int i = 0; target && i < p->memory.loss_count; i++) VEC_PUSH(p->a, o->losses, p->memory.losses[i]);
    if (target && !fit_loss(p->a, o, &p->model, target, &p->metrics)) return false;
    p->built = target ? build_loss(o) : build_model(o, NULL, &compiled);
    if (!p->built) return false;
    const Graph *g = p->built->plan->graph;
    const burn_model *m = p->built->model;
    if (!m || g->outputs.n < 1 || g->outputs.at[0]->type.dtype != DT_F32) {
        diag_error(NULL, "predictions are floats, computed on this processor");
        return false;
    }
    fit_run_open(&p->run, p->a, p->built, g->inputs.n);
    p->scores = &g->outputs.at[0]->type;
    p->probability = NEW_ARRAY(p->a, float, m->outputs[0].bytes / sizeof(float) + 2);
    return true;
}

static int64_t class_count(const Predictor *p) {
    if (p->memory.binary) return 2;
    return p->scores->rank ? p->scores->dim[p->scores->rank - 1] : 1;
}

// Probabilities of a row of scores, which may be such already.
static const float *probabilities(const Predictor *p, const float *x) {
    int64_t n = class_count(p);
    double sum = 0, least = x[0], most = x[0];
    if (p->memory.binary) {
        p->probability[1] = (float)(1 / (1 + exp(-(double)x[0])));
        p->probability[0] = 1 - p->probability[1];
        return p->probability;
    }
    for (int64_t i = 0; i < n; i++) {
        sum += x[i];
        least = fmin(least, x[i]);
        most = fmax(most, x[i]);
    }
    if (least >= 0 && fabs(sum - 1) < 1e-3) return x;
    sum = 0;
    for (int64_t i = 0; i < n; i++) sum += exp(x[i] - most);
    for (int64_t i = 0; i < n; i++) p->probability[i] = (float)(exp(x[i] - most) / sum);
    return p->probability;
}

static int64_t likeliest(const Predictor *p, const float *probability) {
    int64_t best = 0;
    for (int64_t i = 1; i < class_count(p); i++)
        if (probability[i] > probability[best]) best = i;
    return best;
}

static const char *class_name(const Predictor *p, int64_t i) {
    return p->memory.classes && i < p->memory.class_count ? p->memory.classes[i] :
                                                              arena_printf(p->a, "%lld", (long long)i);
}

// ---------------------------------------------------------------- predict

static const char *item_name(const Predictor *p, const char *given, const burn_dataset *data, int64_t i) {
    const char *path = burn_data_path(data, i);
    return path ? path : arena_printf(p->a, "%.*s:%lld", (int)strcspn(given, ","), given, (long long)i + 1);
}

static void print_item(const Predictor *p, Text *t, const char *name) {
    const float *x = p->run.out[0].data;
    int64_t n = (int64_t)(p->run.out[0].bytes / sizeof *x), classes = class_count(p);
    bool json = p->c->json, whole = p->memory.logits && (p->memory.binary || n == classes);
    if (json) text_printf(t, "{\"file\":");
    if (json) json_quoted(t, name);
    else text_printf(t, "%s", text_name(p->a, name));
    if (whole) {
        const float *probability = probabilities(p, x);
        int64_t best = likeliest(p, probability);
        if (json) text_printf(t, ",\"class\":");
        if (json) json_quoted(t, class_name(p, best));
        else text_printf(t, "\t%s", text_name(p->a, class_name(p, best)));
        text_printf(t, json ? ",\"probability\":%.6g,\"probabilities\":[" : "\t%.4f\n", (double)probability[best]);
        for (int64_t i = 0; i < classes && json; i++)
            text_printf(t, "%s%.6g", i ? "," : "", (double)probability[i]);
    } else {
        if (json) text_printf(t, ",\"values\":[");
        for (int64_t i = 0; i < n; i++)
            text_printf(t, json ? "%s%.9g" : "%s%.6g", i ? json ? "," : " " : json ? "" : "\t", (double)x[i]);
        if (!json) text_printf(t, "\n");
    }
    if (json) text_printf(t, "]}\n");
}

static burn_dataset *data_of(const burn_source *s) { return s->valid ? s->valid : s->train; }

static bool predict_data(Predictor *p, const char *given, const burn_dataset *data) {
    bool ok = (p->built || build(p, data, NULL)) && fit_run_fields(&p->run, data, &p->model, NULL);
    for (int64_t i = 0; ok && i < data->count; i++) {
        Text t;
        text_init(&t, p->a);
        ok = fit_run_item(&p->run, data, i);
        if (ok) print_item(p, &t, item_name(p, given, data, i));
        ok = ok && !print_text(&t, 0);
    }
    return ok;
}

// ---------------------------------------------------------------- a text that goes on

static double draw(uint64_t *state) {                   // SplitMix64
    uint64_t x = *state += 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return (double)((x ^ x >> 31) >> 11) * 0x1p-53;
}

static int64_t next_token(const Predictor *p, const float *x, uint64_t *state) {
    int64_t n = class_count(p), best = 0;
    double heat = p->c->fit.temperature, sum = 0, most = x[0];
    for (int64_t i = 1; i < n; i++)
        if (x[i] > x[best]) best = i;
    if (!(heat > 0)) return best;
    most = x[best];
    for (int64_t i = 0; i < n; i++) sum += exp((x[i] - most) / heat);
    double at = draw(state) * sum;
    for (int64_t i = 0; i < n; i++)
        if ((at -= exp((x[i] - most) / heat)) < 0) return i;
    return best;
}

static void print_token(const Predictor *p, Text *t, int64_t token) {
    if (p->memory.classes) text_printf(t, "%s", class_name(p, token));
    else text_append(t, (const char[]){ (char)token }, 1);
}

// The last tokens that the model has room for, the rest zeros behind them; its answer is at the last one.
static bool continue_text(Predictor *p, const burn_dataset *tokens) {
    uint64_t state = (uint64_t)p->c->compile.seed;
    int64_t room = p->model.asked.shape[0], n = tokens->count;
    int64_t more = p->c->fit.length ? p->c->fit.length : USUAL_LENGTH;
    int64_t *all = NEW_ARRAY(p->a, int64_t, n + 1 + more), next = 0;
    burn_said said = { "" };
    Text t;
    text_init(&t, p->a);
    for (int64_t i = 0; i < n; i++)
        if (burn_data_get(tokens, i, 0, (void *[]){ &all[i], &next }, &said)) return false;
    if (n) all[n++] = next;
    for (int64_t i = 0; i < n; i++) print_token(p, &t, all[i]);
    for (int64_t made = 0; made < more; made++) {
        int64_t from = n > room ? n - room : 0, count = n - from;
        memset(p->run.in[0].data, 0, p->run.in[0].bytes);
        for (int64_t i = 0; i < count; i++) {
            void *to = p->run.in[0].data;
            if (p->built->model->inputs[0].dtype == BURN_INT32) ((int32_t *)to)[i] = (int32_t)all[from + i];
            else ((int64_t *)to)[i] = all[from + i];
        }
        if (!fit_run_model(&p->run)) return false;
        all[n] = next_token(p, (const float *)p->run.out[0].data + (count - 1) * class_count(p), &state);
        print_token(p, &t, all[n++]);
    }
    text_printf(&t, "\n");
    return !print_text(&t, 0);
}

// The file is read as single tokens.
static bool predict_text(Predictor *p, const char *given) {
    burn_source s;
    FitMemory single = p->memory;
    single.settings = arena_printf(p->a, "length=1,%s", p->memory.settings);
    const char *length = strstr(p->memory.settings, "length=");
    if (!p->model.asked.shape[0] && length) p->model.asked.shape[0] = strtol(length + 7, NULL, 10);
    if (!fit_source(p->a, &single, &p->model.asked, given, &s)) return false;
    burn_dataset whole = { .field_count = 1 };
    whole.fields[0] = burn_field_of("tokens", BURN_INT64, 1, p->model.asked.shape);
    bool ok = (p->built || build(p, &whole, NULL)) && continue_text(p, s.train);
    burn_source_close(&s);
    return ok;
}

// ---------------------------------------------------------------- evaluate

static void print_measures(const Predictor *p, const FitMeasures *m, double loss, int64_t items, double seconds) {
    Text t;
    text_init(&t, p->a);
    bool json = p->c->json;
    text_printf(&t, json ? "{\"items\":%lld,\"loss\":" : "items=%lld loss=", (long long)items);
    if (json) json_number(&t, loss / (double)items);
    else text_printf(&t, "%.6g", loss / (double)items);
    for (int i = 0; i < m->names.n; i++) {
        text_printf(&t, json ? "," : " ");
        if (json) json_quoted(&t, m->names.at[i]);
        else text_printf(&t, "%s", m->names.at[i]);
        text_printf(&t, json ? ":" : "=");
        if (json) json_number(&t, burn_metric_value(m->at[i]));
        else text_printf(&t, "%.6g", burn_metric_value(m->at[i]));
    }
    text_printf(&t, json ? ",\"seconds\":%.3f}\n" : " seconds=%.3f\n", seconds);
    print_text(&t, 0);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool evaluate_data(Predictor *p, const burn_dataset *data) {
    const burn_field *target = fit_target(&p->model, data);
    FitMeasures m = { .binary = p->memory.binary };
    bool ok = target && build(p, data, target) && fit_run_fields(&p->run, data, &p->model, target)
        && fit_measures_open(p->a, &m, p->metrics);
    double start = now(), loss = 0;
    for (int64_t i = 0; ok && i < data->count; i++) {
        ok = fit_run_item(&p->run, data, i)
            && fit_measures_add(&m, target, p->run.out[0].data, p->scores, p->run.item[target - data->fields]);
        loss += (double)*(const float *)p->run.out[p->built->model->output_count - 1].data;
    }
    if (ok) print_measures(p, &m, loss, data->count, now() - start);
    fit_measures_close(&m);
    return ok;
}

// ---------------------------------------------------------------- the commands

static bool begin(Predictor *p, Arena *a, const CommandOptions *c) {
    *p = (Predictor){ .a = a, .c = c, .metrics = c->fit.metrics };
    return fit_memory_read(a, c->compile.model, &p->memory) && fit_model(a, &c->compile, &p->model);
}

static int end(const Predictor *p) {
    if (p->built) build_free(p->built);
    fit_run_close(&p->run);
    return diag_status();
}

int command_predict(Arena *a, CommandOptions *c) {
    Predictor p;
    bool ok = begin(&p, a, c), text = ok && p.memory.kind && !strcmp(p.memory.kind, "text");
    for (int i = 0; ok && i < c->data.n; i++) {
        burn_source s;
        if (text) {
            ok = predict_text(&p, c->data.at[i]);
        } else if ((ok = fit_source(a, &p.memory, &p.model.asked, c->data.at[i], &s))) {
            ok = predict_data(&p, c->data.at[i], data_of(&s));
            burn_source_close(&s);
        }
    }
    return end(&p);
}

int command_evaluate(Arena *a, CommandOptions *c) {
    Predictor p;
    burn_source s;
    if (c->data.n != 1) diag_error_as(EXIT_USAGE, NULL, "evaluate takes one source");
    if (c->data.n == 1 && begin(&p, a, c) && fit_source(a, &p.memory, &p.model.asked, c->data.at[0], &s)) {
        evaluate_data(&p, data_of(&s));
        burn_source_close(&s);
        end(&p);
    }
    return diag_status();
}
