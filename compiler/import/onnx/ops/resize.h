// SPDX-License-Identifier: MIT OR Apache-2.0
// What ops/resize.c and run/resize.c share: the attributes of Resize.
#ifndef BURNCC_ONNX_RESIZE_H
#define BURNCC_ONNX_RESIZE_H
#include "import/onnx/run/measure.h"

typedef struct AxisPlan {
    int axis;
    int64_t in, out;
    double scale, roi_start, roi_end;
} AxisPlan;

typedef struct Resize {
    enum { RESIZE_NEAREST, RESIZE_LINEAR, RESIZE_CUBIC } mode;
    const char *coordinates, *rounding;
    bool antialias, exclude_outside;
    double cubic_a, extrapolation;
    int count;
    AxisPlan axes[MAX_RANK];
} Resize;

// r->count axes; the input that holds scales, -1: sizes are given
Value *onnx_resize_run(OnnxNode *n, const Resize *r, const int64_t *axes, int scales_at);
#endif
