// SPDX-License-Identifier: MIT OR Apache-2.0
// The rows of losses.def, for --loss, for the functions of the language, and for ONNX's operators.
#ifndef BURNCC_LOSS_H
#define BURNCC_LOSS_H
#include "build/build.h"

typedef enum LossTargets {
    TARGETS_VALUES, TARGETS_DISTRIBUTIONS, TARGETS_CLASSES, TARGETS_ROWS, TARGETS_SEQUENCES, TARGETS_NONE
} LossTargets;
// operands, options: lists for row_word
typedef struct LossRow {
    const char *name;
    Op op;
    const char *operands; LossTargets targets;
    const char *options, *formula;
} LossRow;
// value: a tensor that broadcasts against the predictions, or NULL: the number
typedef struct LossOption { const char *name; Value *value; double number; } LossOption;
typedef struct LossOptions {
    const char *reduction;                              // "none", "sum", "mean", "batchmean"; NULL: "mean"
    int axis;                                           // of the classes
    Value *weight;                                      // of classes [C], else of losses; or NULL
    bool ignores; int64_t ignored;                      // a target that does not count
    VEC(LossOption) given;                              // those of the row
} LossOptions;

extern const char loss_names[];                         // " a b c", for diagnostics
const LossRow *loss_find(const char *name);             // NULL when there is none of that name
const LossRow *loss_of(Op op);                          // a compiler bug when it is no loss
bool loss_has(const LossRow *row, const char *option);
int loss_operands(const LossRow *row);                  // how many tensors a model gives
// the shape of the targets of predictions x; of a row without targets as x
Type loss_target_type(const LossRow *row, const Type *x, int axis);
// in: the operands, then the targets, if it has any; NULL with a diagnostic. Operands may broadcast.
Value *b_loss(Graph *g, const LossRow *row, Value *const *in, const LossOptions *o);
double loss_number(const LossRow *row, const LossOptions *o, const char *name);         // an option, given or usual

// sequence_loss.c; targets: [batch, length], and how many of the steps and of the targets count, [batch]
const LossRow *sequence_loss_find(const char *name);    // its operation is OP_NONE
Value *b_sequence_loss(Graph *g, const LossRow *row, Value *const *in, const LossOptions *o);
#endif
