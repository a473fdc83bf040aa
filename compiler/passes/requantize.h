// SPDX-License-Identifier: MIT OR Apache-2.0
// Between requantize.c and byte_table.c.
#ifndef BURNCC_PASSES_REQUANTIZE_H
#define BURNCC_PASSES_REQUANTIZE_H
#include "passes.h"

// What a value is rounded to: round(v / scale) + zero, cut to d, of 8 or 16 bits. Exactly: only by what gives the bits
// that floats would give. short_product: as Target has it.
typedef struct Steps { double scale; int64_t zero; DType d; bool exactly, short_product; } Steps;

static inline bool is_half(DType d) { return d == DT_I16 || d == DT_U16; }
static inline int64_t lowest(DType d) { return d == DT_I8 ? INT8_MIN : d == DT_I16 ? INT16_MIN : 0; }
static inline int64_t highest(DType d) {
    return d == DT_I8 ? INT8_MAX : d == DT_U8 ? UINT8_MAX : d == DT_I16 ? INT16_MAX : UINT16_MAX;
}
Value *requantize_known(Value *v);                      // the constant that v is; NULL: none

// byte_table.c; NULL: v, or n, is no such function
Value *table_of_byte(Graph *g, Value *v, const Steps *s);
// q: the bytes that n, a Softmax, has the real numbers of, in steps of `scale`
Value *softmax_of_bytes(Graph *g, const Node *n, Value *q, double scale, const Steps *s);
#endif
