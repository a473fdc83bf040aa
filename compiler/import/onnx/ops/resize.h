// SPDX-License-Identifier: MIT OR Apache-2.0
// What ops/resize.c takes from run/resize.c where sizes are known only at run time.
#ifndef BURNCC_ONNX_RESIZE_H
#define BURNCC_ONNX_RESIZE_H
#include "import/onnx/run/measure.h"

// r->count axes; the input that holds scales, -1: sizes are given
Value *onnx_resize_run(OnnxNode *n, const Resize *r, const int64_t *axes, int scales_at);
#endif
