// SPDX-License-Identifier: MIT OR Apache-2.0
/* In: constant weights in their model's order. Out: the same numbers, or as many of their bits as are wanted, in
 * panels that a kernel reads once in a straight line. Padding is zeros. */
#include "pack_low.h"
#include "plan.h"

#include <string.h>

size_t pack_i8_bytes(size_t n, size_t runs, size_t run, size_t nr)
{
    return (n + nr - 1) / nr * nr * runs * ((run + 3) / 4 * 4);
}

void pack_i8(const int8_t *src, size_t n, size_t runs, size_t run, const size_t *row, size_t column_stride, size_t nr,
    int8_t *dst) {
    for (size_t n0 = 0; n0 < n; n0 += nr)
        for (size_t r = 0; r < runs; r++)
            for (size_t i0 = 0; i0 < run; i0 += 4)
                for (size_t j = n0; j < n0 + nr; j++)
                    for (size_t i = i0; i < i0 + 4; i++)
                        *dst++ = (int8_t)(j < n && i < run ? src[row[r * run + i] + j * column_stride] : 0);
}

static uint32_t bf16(float v)
{
    return small_from_float(DT_BF16, v, false);
}

size_t pack_bf16_words(size_t n, size_t k, size_t nr)
{
    return (n + nr - 1) / nr * nr * ((k + 1) / 2);
}

void pack_bf16(const float *src, size_t n, size_t k, size_t row_stride, size_t column_stride, size_t nr, uint32_t *dst)
{
    for (size_t n0 = 0; n0 < n; n0 += nr)
        for (size_t i = 0; i < k; i += 2)
            for (size_t j = n0; j < n0 + nr; j++) {
                const float *at = src + i * row_stride + j * column_stride;
                *dst++ = j < n ? bf16(*at) | (i + 1 < k ? bf16(at[row_stride]) << 16 : 0) : 0;
            }
}

size_t pack_bits_words(const PackBits *b, size_t nr)
{
    const size_t per = 32 / b->bits, head = nr + (b->zero ? nr / 4 : 0);
    return (b->n + nr - 1) / nr * ((b->k + b->block - 1) / b->block) * (head + b->block / per * nr);
}

/* Number k of row n. */
static uint32_t bits_at(const PackBits *b, size_t n, size_t k)
{
    const size_t blocks = (b->k + b->block - 1) / b->block, bit = (n * blocks * b->block + k) * b->bits;
    return b->q[bit / 8] >> bit % 8 & ((1u << b->bits) - 1);
}

void pack_bits(const PackBits *b, size_t nr, uint32_t *dst)
{
    const size_t per = 32 / b->bits, blocks = (b->k + b->block - 1) / b->block;
    for (size_t n0 = 0; n0 < b->n; n0 += nr)
        for (size_t i = 0; i < blocks; i++) {
            for (size_t j = n0; j < n0 + nr; j++, dst++)
                if (j < b->n)
                    memcpy(dst, &b->scale[j * blocks + i], sizeof *dst);
            for (size_t j = n0; b->zero && j < n0 + nr; j++)
                ((uint8_t *)dst)[j - n0] = j < b->n ? b->zero[j * blocks + i] : 0;
            dst += b->zero ? nr / 4 : 0;
            for (size_t k = i * b->block; k < (i + 1) * b->block; k += per)
                for (size_t j = n0; j < n0 + nr; j++, dst++)
                    for (size_t p = 0; p < per && j < b->n && k + p < b->k; p++)
                        *dst |= bits_at(b, j, k + p) << p * b->bits;
        }
}

/* Numbers k and k + 1 of row n, of 4 bits, less 8: the other sign of both. */
static uint8_t two_centred(const PackBits *b, size_t n, size_t k)
{
    const uint32_t next = k + 1 < b->k ? bits_at(b, n, k + 1) : 8;
    return (uint8_t)((bits_at(b, n, k) | next << 4) ^ 0x88u);
}

static size_t rows_of_bytes(const PackBits *b) { return b->bits == 8 ? b->k : (b->k + 1) / 2; }

size_t pack_window_blocks_words(const PackBits *b)
{
    enum { BEHIND = 3 };
    return b->n * ((b->k + b->block - 1) / b->block) + (b->n * rows_of_bytes(b) + BEHIND + 3) / 4;
}

void pack_window_blocks(const PackBits *b, uint32_t *dst)
{
    const size_t blocks = (b->k + b->block - 1) / b->block, rows = rows_of_bytes(b);
    float *scale = (float *)(void *)dst;
    uint8_t *q = (uint8_t *)(dst + b->n * blocks);
    for (size_t n0 = 0; n0 < b->n; n0 += 4) {
        const size_t end = n0 + 4 < b->n ? n0 + 4 : b->n;
        for (size_t i = 0; i < blocks; i++)
            for (size_t n = n0; n < end; n++)
                *scale++ = b->scale[n * blocks + i];
        for (size_t i = 0; i < rows; i++)
            for (size_t n = n0; n < end; n++)
                *q++ = b->bits == 8 ? (uint8_t)(bits_at(b, n, i) ^ 0x80u) : two_centred(b, n, 2 * i);
    }
}
