// SPDX-License-Identifier: MIT OR Apache-2.0
/* Constant weights of few bits in the panels that the C templates of low precision read (templates/c/gemm_i8.c,
 * gemm_low.c, gemv_low.c). */
#ifndef BURNCC_SCHEDULE_PACK_LOW_H
#define BURNCC_SCHEDULE_PACK_LOW_H
#include <stddef.h>
#include <stdint.h>

/* A matrix of `runs` times `run` rows and n columns as [ceil(n/nr)][run][ceil(run/4)][nr][4], zeros past n and
 * past a run. A row i begins at row[i], columns are column_stride apart. */
size_t pack_i8_bytes(size_t n, size_t runs, size_t run, size_t nr);
void pack_i8(const int8_t *src, size_t n, size_t runs, size_t run, const size_t *row, size_t column_stride, size_t nr,
    int8_t *dst);

/* A matrix of k rows and n columns rounded to bfloat16, as [ceil(n/nr)][ceil(k/2)][nr] words of two rows each, the
 * first in the low half. */
size_t pack_bf16_words(size_t n, size_t k, size_t nr);
void pack_bf16(const float *src, size_t n, size_t k, size_t row_stride, size_t column_stride, size_t nr, uint32_t *dst);

/* Integers of 2, 4 or 8 bits with a scale and perhaps a zero point for each block of `block` rows (a multiple of
 * 32/bits). q is [n][blocks] of block*bits/8 bytes, low bits first; scale and zero (NULL: none) are [n][blocks].
 * Packed: [ceil(n/nr)][block] of nr scales, nr bytes of zero points and [block*bits/32][nr] words. dst is zeroed
 * by the caller. */
typedef struct PackBits { size_t n, k, block, bits; const uint8_t *q, *zero; const float *scale; } PackBits;
size_t pack_bits_words(const PackBits *b, size_t nr);
void pack_bits(const PackBits *b, size_t nr, uint32_t *dst);

/* The same for window_blocks.c, of 8 or 4 bits without zero points: less the middle of their range, in panels of four
 * columns as it has them. dst is zeroed by the caller. */
size_t pack_window_blocks_words(const PackBits *b);
void pack_window_blocks(const PackBits *b, uint32_t *dst);
#endif
