// SPDX-License-Identifier: MIT OR Apache-2.0
// What ops/signal.c takes from run/signal.c where sizes are known only at run time.
#ifndef BURNCC_ONNX_SIGNAL_H
#define BURNCC_ONNX_SIGNAL_H
#include "import/onnx/run/measure.h"

Value *onnx_window_run(OnnxNode *n, const double *a, DType d);
Value *onnx_dft_along(OnnxNode *n, int axis, bool inverse, bool onesided);
Value *onnx_dft_run(OnnxNode *n, Value *axis, bool inverse, bool onesided);     // axis: a scalar
Value *onnx_stft_run(OnnxNode *n, Value *window);
Value *onnx_mel_weights_run(OnnxNode *n, DType d);
#endif
