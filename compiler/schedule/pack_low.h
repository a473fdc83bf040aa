// SPDX-License-Identifier: MIT OR Apache-2.0
/* Constant weights of few bits in the panels that the C templates of low precision read (templates/c/gemm_i8.c). */
#ifndef BURNCC_SCHEDULE_PACK_LOW_H
#define BURNCC_SCHEDULE_PACK_LOW_H
#include <stddef.h>
#include <stdint.h>

/* A matrix of `runs` times `run` rows and n columns as [ceil(n/nr)][run][ceil(run/4)][nr][4], zeros past n and past a run. Row i of
 * run r lies at offset[r] + i*row_stride, columns are column_stride apart. */
size_t pack_i8_bytes(size_t n, size_t runs, size_t run, size_t nr);
void pack_i8(const int8_t *src, size_t n, size_t runs, const size_t *offset, size_t run, size_t row_stride, size_t column_stride, size_t nr, int8_t *dst);
#endif
