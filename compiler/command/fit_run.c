// SPDX-License-Identifier: MIT OR Apache-2.0
// Items of data through a model's generated code, one by one, in this process; and what is measured of the results.
//
// In: a model that is built, a dataset. Out: buffers of its inputs and outputs, filled; metrics. An input takes the
// field of its name, else the field at its place.
#include "fit.h"

#include <stdlib.h>
#include <string.h>

void fit_run_open(FitRun *r, Arena *a, const Built *b, int given) {
    const burn_model *m = b->model;
    *r = (FitRun){ .a = a, .built = b, .given = given };
    r->in = NEW_ARRAY(a, burn_tensor, m->input_count + 1);
    r->out = NEW_ARRAY(a, burn_tensor, m->output_count + 1);
    r->field = NEW_ARRAY(a, int, m->input_count + 1);
    r->work = module_memory(m->workspace_bytes);
    for (int i = 0; i < m->input_count; i++)
        r->in[i] = (burn_tensor){ .data = arena_alloc(a, m->inputs[i].bytes + 1), .bytes = m->inputs[i].bytes };
    for (int i = 0; i < m->output_count; i++)
        r->out[i] = (burn_tensor){ .data = arena_alloc(a, m->outputs[i].bytes + 1), .bytes = m->outputs[i].bytes };
}

void fit_run_close(const FitRun *r) { free(r->work); }

static bool is_narrower(burn_dtype dtype) { return dtype == BURN_INT32 || dtype == BURN_FLOAT; }

bool fit_run_fields(FitRun *r, const burn_dataset *data, const FitModel *model, const burn_field *target) {
    const burn_model *m = r->built->model;
    int own = model->graph->inputs.n;                   // behind them are the targets
    r->item = NEW_ARRAY(r->a, void *, data->field_count + 1);
    for (int f = 0; f < data->field_count; f++) r->item[f] = arena_alloc(r->a, data->fields[f].bytes + 8);
    for (int i = 0; i < r->given; i++) {
        int f = burn_data_field(data, m->inputs[i].name);
        r->field[i] = f >= 0 ? f : i < own ? i : (int)(target - data->fields) + i - own;
        const burn_field *field = r->field[i] < data->field_count ? &data->fields[r->field[i]] : NULL;
        bool fits = field && (field->dtype == m->inputs[i].dtype
            ? field->bytes == m->inputs[i].bytes
            : field->dtype == BURN_INT64 && is_narrower(m->inputs[i].dtype) && field->bytes == 2 * m->inputs[i].bytes);
        if (fits) continue;
        diag_error(NULL, "the model's input '%s' takes %zu bytes, an item of the data has %zu", m->inputs[i].name,
            m->inputs[i].bytes, field ? field->bytes : 0);
        return false;
    }
    return true;
}

bool fit_run_model(FitRun *r) {
    int code = r->built->model->run(NULL, r->work, r->built->weights, r->in, r->out);
    if (code == BURN_ERANGE) diag_error(NULL, "the data has a class that the model has not");
    else if (code) diag_error(NULL, "the model's code returned %d", code);
    return !code;
}

bool fit_run_item(FitRun *r, const burn_dataset *data, int64_t i) {
    burn_said said = { "" };
    int error = burn_data_get(data, i, 0, r->item, &said);
    fit_failed(error, &said);
    for (int k = 0; !error && k < r->given; k++) {
        const burn_field *f = &data->fields[r->field[k]];
        const int64_t *whole = r->item[r->field[k]];
        burn_dtype wanted = r->built->model->inputs[k].dtype;
        if (f->dtype == wanted) memcpy(r->in[k].data, whole, f->bytes);
        for (size_t e = 0; e < f->bytes / 8 && f->dtype != wanted; e++)
            if (wanted == BURN_FLOAT) ((float *)r->in[k].data)[e] = (float)whole[e];
            else ((int32_t *)r->in[k].data)[e] = (int32_t)whole[e];
    }
    return !error && fit_run_model(r);
}

// ---------------------------------------------------------------- measures

static bool open_measure(const char *name, burn_metric **metric) {
    char why[400];
    int error = burn_metric_open(name, metric, why, sizeof why);
    if (error) diag_error_as(EXIT_USAGE, NULL, "--metrics: %s", error == BURN_EINVAL ? why : "not enough memory");
    return !error;
}

bool fit_measures_open(Arena *a, FitMeasures *m, const char *metrics) {
    m->names = fit_words(a, metrics);
    m->at = NEW_ARRAY(a, burn_metric *, m->names.n + 1);
    for (int i = 0; i < m->names.n; i++)
        if (!open_measure(m->names.at[i], &m->at[i])) return false;
    return true;
}

bool fit_measures_add(FitMeasures *m, const burn_field *target, const float *predicted, const Type *t,
    const void *wanted) {
    burn_observation seen = { .items = 1, .predicted = predicted, .rank = t->rank, .shape = t->dim };
    float value = 0;
    if (m->binary && target->dtype == BURN_INT64) value = (float)*(const int64_t *)wanted;
    if (m->binary) seen.values = &value;
    else if (target->dtype == BURN_INT64) seen.classes = wanted;
    else seen.values = wanted;
    int error = 0;
    for (int i = 0; i < m->names.n && !error; i++) error = burn_metric_add(m->at[i], &seen);
    if (error) diag_error(NULL, error == BURN_ERANGE ? "the data has a class that the model has not" :
                                                       "a metric does not take what the model predicts");
    return !error;
}

void fit_measures_close(const FitMeasures *m) {
    for (int i = 0; m->at && i < m->names.n; i++) burn_metric_close(m->at[i]);
}
