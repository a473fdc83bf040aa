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

#endif
