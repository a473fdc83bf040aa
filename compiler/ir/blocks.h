// SPDX-License-Identifier: MIT OR Apache-2.0
// The data of large constants in the text form: blocks behind the graph, under the hash that stands for them in it.
#ifndef BURNCC_IR_BLOCKS_H
#define BURNCC_IR_BLOCKS_H
#include "ir.h"

// Writing: the key of a constant; the blocks of all keys that were asked for.
typedef struct Blocks Blocks;
Blocks *blocks_new(Arena *a);
uint64_t block_key(Blocks *b, const Tensor *t);
void blocks_print(const Blocks *b, Text *out);

// Reading: where in a text the data under each key begin; behind the last one there is nothing but space.
StrMap *blocks_find(Arena *a, const char *text);
const char *block_at(const StrMap *found, uint64_t key);        // NULL: it is not there
// The bytes of a tensor that holds no strings; NULL: fine, else what is wrong.
const char *block_read(const char *at, Tensor *t);
#endif
