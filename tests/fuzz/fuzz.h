// SPDX-License-Identifier: MIT OR Apache-2.0
// What the files of the fuzzer share: the functions by which libFuzzer, or replay.c in its place, knows a target.
#ifndef BURNCC_FUZZ_H
#define BURNCC_FUZZ_H

#include "plan.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);   // libFuzzer's own: bytes

// words.c: whether the bytes may be a graph in text, and another one; its size, 0: it has no room
bool is_graph_text(const uint8_t *data, size_t size);
size_t mutate_words(uint8_t *data, size_t size, size_t max_size, uint64_t random);

// An archive, of zip or tar, of the parts that the bytes name; returns its bytes, what has no room is left out.
size_t fuzz_pack(const uint8_t *data, size_t size, bool tar, uint8_t *to, size_t room);
#endif
