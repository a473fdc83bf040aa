// SPDX-License-Identifier: MIT OR Apache-2.0
// -o model.onnx: a graph as an ONNX model.
#ifndef BURNCC_EXPORT_ONNX_H
#define BURNCC_EXPORT_ONNX_H
#include "import/onnx/onnx.h"

enum {
    EXPORT_OPSET_OLDEST = 13,                           // Softmax as we know it, axes and splits as inputs
    EXPORT_OPSET = 21,                                  // unless --opset says: what has group norms, and most read
    EXPORT_OPSET_NEWEST = ONNX_OPSET_LATEST
};

extern const OutMark onnx_mark;                         // of files that may be replaced
// Writes o->output, and beside it the data of weights that o->embed_limit keeps out. Takes the graph apart where ONNX
// has no word for a composite. False with diagnostics, and no file left.
bool export_onnx(Arena *a, const Options *o, Graph *g);
#endif
