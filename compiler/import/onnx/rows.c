// SPDX-License-Identifier: MIT OR Apache-2.0
// The table of supported ONNX operators, from onnx_ops.def.
//
// In: domain, name, opset version. Out: the row whose meaning holds in that version.
#include "onnx.h"

#include <limits.h>
#include <string.h>

static const OnnxRow rows[] = {
#define MANY INT_MAX
#define ONNX(op, domain, since, until, fewest_in, most_in, fewest_out, most_out, builder, argument) \
    { { #op, domain, since, until }, { fewest_in, most_in }, { fewest_out, most_out }, onnx_##builder, argument },
#include "onnx_ops.def"
#undef ONNX
#undef MANY
};

const Support *onnx_support(Arena *a, int *n) {
    Support *all = NEW_ARRAY(a, Support, COUNT(rows));
    for (size_t i = 0; i < COUNT(rows); i++) {
        all[i] = rows[i].is;
        if (!*all[i].domain) all[i].domain = "ai.onnx";
    }
    *n = (int)COUNT(rows);
    return all;
}

// The newest version that any operator of the domain is known in.
static int newest_of(const char *domain) {
    int newest = 0;
    for (size_t i = 0; i < COUNT(rows); i++)
        if (rows[i].is.until > newest && !strcmp(rows[i].is.domain, domain)) newest = rows[i].is.until;
    return newest;
}

const OnnxRow *onnx_row(const char *domain, const char *op, int64_t opset, bool *known, int *newest) {
    const OnnxRow *found = NULL;
    *known = false;
    for (size_t i = 0; i < COUNT(rows); i++) {
        const Support *is = &rows[i].is;
        if (*is->op != *op || strcmp(is->op, op) || strcmp(is->domain, domain)) continue;
        *known = true;
        if (is->since <= opset && opset <= is->until) found = &rows[i];
    }
    *newest = found ? 0 : newest_of(domain);
    return found;
}
