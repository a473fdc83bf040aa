// SPDX-License-Identifier: MIT OR Apache-2.0
// The writers that onnx_rows.def names, and what they share.
#ifndef BURNCC_EXPORT_ROWS_H
#define BURNCC_EXPORT_ROWS_H
#include "export/put.h"

// The attributes that a row lists, as ONNX has them, behind n that are there already; how many there are then.
enum { MAX_ATTRS = 16 };
int row_attrs(const Node *n, const Row *row, int count, OnnxAttr *attrs);
bool fits_window(const Node *n, int opset);
bool fits_conv(const Node *n, int opset);               // windows.c
bool is_zero(int n, const int64_t *v);                  // all of them

#define ROW(op, name, since, types, fits, writer, attrs) WriteFn write_##writer;
#include "export/onnx_rows.def"
#undef ROW
#endif
