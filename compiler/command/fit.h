// SPDX-License-Identifier: MIT OR Apache-2.0
// What fit, predict and evaluate share: what a model takes and gives, and what of the data is remembered beside it.
#ifndef BURNCC_COMMAND_FIT_H
#define BURNCC_COMMAND_FIT_H
#include "module.h"
#include "fit_memory.h"
#include "runtime/learn/learner.h"

// ---------------------------------------------------------------- fit_model.c
typedef struct FitModel {
    Graph *graph;                                       // as imported
    burn_asked asked;                                   // an item of its first input
    const char *batch;                                  // the symbol of the first axis; NULL: it is fixed
    int64_t fixed;                                      // at this
    int64_t classes;                                    // the size of the first output's last axis, or 0
    const char *settings;                               // of a model described in C, as JSON, else NULL
} FitModel;
// The model of o, which stays as it is; false with diagnostics.
bool fit_model(Arena *a, const Options *o, FitModel *m);
// Settings `classes` and `features` that such a model asks for and that are not given take what the data has; were
// there any?
bool fit_settings(Arena *a, Options *o, const FitModel *m, const burn_dataset *data);
// Sizes that the model leaves open take those of the data's fields, the batch's the one that is given; what --dim says
// stays.
void fit_bind(Arena *a, Options *o, const FitModel *m, const burn_dataset *data, int64_t batch);
// The field that is to be predicted: the first behind those of the inputs; NULL with a diagnostic.
const burn_field *fit_target(const FitModel *m, const burn_dataset *data);
// What the loss is without --loss, and what is measured without --metrics; false with diagnostics.
bool fit_loss(Arena *a, Options *o, const FitModel *m, const burn_field *target, const char **metrics);
// ---------------------------------------------------------------- fit_blame.c
// As burn_learning wants it; module: a Module that this process has built.
void fit_blame(void *module, const burn_tensor *in, const void *params, char *text, size_t room);

// "a,b(c=1,d=2)" at commas outside of brackets
typedef VEC(const char *) Words;
Words fit_words(Arena *a, const char *list);

// ---------------------------------------------------------------- fit_run.c: items through a model, in this process
typedef struct FitRun {
    Arena *a;
    const Built *built;
    int given;                                          // how many of its inputs the data gives: the first ones
    burn_tensor *in, *out;
    int *field;                                         // of the data, for each input
    void *work, **item;                                 // item: a buffer for each field
} FitRun;
void fit_run_open(FitRun *r, Arena *a, const Built *b, int given);
// Which field each input takes; behind the model's own are targets.
bool fit_run_fields(FitRun *r, const burn_dataset *data, const FitModel *model, const burn_field *target);
bool fit_run_model(FitRun *r);                          // over what is in `in`
bool fit_run_item(FitRun *r, const burn_dataset *data, int64_t i);
void fit_run_close(const FitRun *r);

// Metrics of predictions; binary: of one class against none.
typedef struct FitMeasures { bool binary; Words names; burn_metric **at; } FitMeasures;
bool fit_measures_open(Arena *a, FitMeasures *m, const char *metrics);
bool fit_measures_add(FitMeasures *m, const burn_field *target, const float *predicted, const Type *t,
    const void *wanted);
void fit_measures_close(const FitMeasures *m);

#endif
