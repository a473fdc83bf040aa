// SPDX-License-Identifier: MIT OR Apache-2.0
// How a loop kernel is spread over a GPU's threads.
#ifndef BURNCC_TILE_H
#define BURNCC_TILE_H
#include "plan.h"

void gpu_spread(Arena *a, Kernel *k);                   // k->loop, and tiles where they help
void gpu_gemm(Arena *a, Kernel *k);                     // gemm.c: the holes of a product's template
void gpu_halves(Plan *p);                               // halves.c: --precision, elements of 16 bits
#endif
