// SPDX-License-Identifier: MIT OR Apache-2.0
// What ops/sequence.c and run/stacked.c share: a sequence as a list of values, and as one tensor of which it is the
// first axis.
#ifndef BURNCC_ONNX_SEQUENCE_H
#define BURNCC_ONNX_SEQUENCE_H

#include "import/onnx/run/measure.h"

#define MAX_ITEMS 4096          // of a list

typedef struct Sequence {
    Value stand_in;                                     // first: a Value * to it is a Sequence *
    int n; Value **items;                               // a list
    Value *stacked;                                     // as one tensor, once somebody has asked
    // or not NULL: the elements, of one shape, along a first axis whose size the program knows
    Value *rows;
    // or what a loop carries from one iteration to the next, of which its body knows nothing
    bool carried;
    const struct Sequence *before;                      // or such a one, and the element items[0] after it
} Sequence;

Sequence *sequence_input(OnnxNode *n, int i);           // a list or rows; NULL with a diagnostic
bool sequence_elements(OnnxNode *n, int count, Value *const *items); // tensors all, or a diagnostic
Value *sequence_list(OnnxNode *n, int count, Value *const *items);
bool sequence_one_type(OnnxNode *n, int count, Value *const *items);            // else a diagnostic

// run/stacked.c: items[index], of one rank, of a shape that is measured
Value *onnx_ragged_at(OnnxNode *n, int count, Value *const *items, Value *index);

// The builders of ops/sequence.c for rows; i: which input is the position.
Value *stacked_at(OnnxNode *n, const Sequence *s);
Value *stacked_insert(OnnxNode *n, const Sequence *s, Value *v);
Value *stacked_erase(OnnxNode *n, const Sequence *s);
Value *stacked_length(OnnxNode *n, const Sequence *s);
Value *stacked_concat(OnnxNode *n, const Sequence *s);
Value *stacked_split(OnnxNode *n, Value *x, int axis, bool keep);    // slices of size 1
Value *stacked_map(OnnxNode *n);
#endif
