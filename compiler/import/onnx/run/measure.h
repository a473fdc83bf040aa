// SPDX-License-Identifier: MIT OR Apache-2.0
// Integers that only the running program knows: lists of them as values, sizes taken from them, and views by them.
//
// The idea: a builder asks onnx_knows() whether its shapes, bounds and axes are known while importing; where they are
// not, it takes the operator's form in run/views.c.
#ifndef BURNCC_ONNX_MEASURE_H
#define BURNCC_ONNX_MEASURE_H
#include "import/onnx/onnx.h"

// ---------------------------------------------------------------- dims.c
// A number of which at least the range lo..hi is known; INT64_MIN, INT64_MAX: no bound.
typedef struct DimItem { bool known; DimValue is; int64_t lo, hi; } DimItem;
// the same where some elements are only computed by the program
bool onnx_dim_items(Graph *g, Value *v, DimItem *out, int *count);
bool onnx_knows(const OnnxNode *n, int i);              // input i is absent, or a list of constants

// ---------------------------------------------------------------- run/measure.c: sizes that the program computes
#define NO_LIMIT INT64_MAX
Value *onnx_list(OnnxNode *n, int i, const char *what, int *count);             // input i as i64[count]
// Element `at` of the i64 list as a dimension: a constant or an expression of symbols where it is known, else a
// measured symbol of least..limit (or at most what output `out`, -1: none, is declared with in dimension `axis`; or
// what --dim says; or, with a note, the largest size that the model has anywhere). False with a diagnostic.
bool onnx_measure(OnnxNode *n, Value *list, int at, int out, int axis, int64_t least, Dim limit, Dim *d);
// a bound on a size that is measured later: by --dim, by the declaration, or the largest size anywhere, with a note
int64_t onnx_bound(OnnxNode *n, int out, int axis);
// output 0's dimensions; limits NULL: none known
bool onnx_measure_all(OnnxNode *n, Value *list, int count, const Dim *limits, Dim *dims);
// graph.c: of an output, as the model's value infos say; NULL: nothing
const EndDim *onnx_declared_dim(const OnnxNode *n, int out, int axis);
const DimOption *onnx_dim_option(const OnnxNode *n, const char *name);
// the most that a dimension will be, by --dim and by what measured sizes are bounded by; 0: no bound is known
int64_t onnx_dim_most(OnnxNode *n, Dim d);
int64_t onnx_largest_size(const OnnxNode *n);           // the largest size that the model declares or an option gives
bool onnx_says_notes(const OnnxNode *n);

// ---------------------------------------------------------------- run/views.c: views by computed integers
Value *onnx_reshape_run(OnnxNode *n, bool allow_zero);
Value *onnx_squeeze_run(OnnxNode *n);
Value *onnx_unsqueeze_run(OnnxNode *n);
Value *onnx_lines_run(OnnxNode *n, Value *x, Value *axis);           // [outer, axis, inner]
// `count` axes of `rank`: i64[rank] 1 where chosen; dimensions
typedef struct RunAxes { int rank, count; Value *chosen, *dims; Dim kept[MAX_RANK], reduced[MAX_RANK]; } RunAxes;
bool onnx_run_axes(OnnxNode *n, const Value *x, RunAxes *a);         // of input 1
Value *onnx_reduce_run(OnnxNode *n, Op op, Value *x, const RunAxes *a);         // keeps the axes as 1
// back to the dimensions that were reduced
Value *onnx_reduce_spread(OnnxNode *n, Value *x, const RunAxes *a, const Dim *full);
Value *onnx_reduce_drop(OnnxNode *n, Value *x, const RunAxes *a);
Value *onnx_expand_run(OnnxNode *n);
bool onnx_repeats_run(OnnxNode *n, const Value *x, Dim *times);
// one axis of a slice; the ends and the step are scalars
Value *onnx_cut_run(OnnxNode *n, Value *x, int axis, Value *start, Value *end, Value *step);
Value *onnx_slice_run(OnnxNode *n);
Value *onnx_split_run(OnnxNode *n, int axis);
Value *onnx_pad_run(OnnxNode *n, const char *mode, Value *fill);
Value *onnx_center_crop_pad_run(OnnxNode *n, const int64_t *axes);   // axes NULL: all
Value *onnx_range_run(OnnxNode *n, DType wide);
#endif
