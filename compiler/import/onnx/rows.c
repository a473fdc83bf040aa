// SPDX-License-Identifier: MIT OR Apache-2.0
// The table of supported ONNX operators, from onnx_ops.def.
//
// In: domain, name, opset version. Out: the row whose meaning holds in that version.
#include "onnx.h"

#include <string.h>

static const OnnxRow rows[] = {
#define ONNX(op, domain, since, until, builder, argument) { #op, domain, since, until, onnx_##builder, argument },
#include "onnx_ops.def"
#undef ONNX
};

const OnnxRow *onnx_rows(int *count) {
    *count = (int)COUNT(rows);
    return rows;
}

const OnnxRow *onnx_row(const char *domain, const char *op, int64_t opset, bool *known) {
    *known = false;
    for (size_t i = 0; i < COUNT(rows); i++) {
        if (strcmp(rows[i].op, op) || strcmp(rows[i].domain, domain)) continue;
        *known = true;
        if (rows[i].since <= opset && opset <= rows[i].until) return &rows[i];
    }
    return NULL;
}
