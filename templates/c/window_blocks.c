// SPDX-License-Identifier: MIT OR Apache-2.0
/* Product with constant weights of few bits in blocks, where memory is dear: C[m][n] = EPILOGUE(sum over k of A[m][k] *
 * B[k][n]), A and the sums in fp32. The weights stay as they are in memory and become floats one by one; no scratch
 * memory. A block's sum is multiplied by its scale and added.
 *
 *   KERNEL            name of the function
 *   M N K AM CM       sizes; strides of A's and C's rows in floats
 *   BITS              of a number of B: 8 or 4
 *   BLOCK             rows of B that share scales, even
 *   RUN               0; or A's rows are turned: row k of B meets A[m][k % RUN * (K / RUN) + k / RUN]
 *   EPILOGUE_PARAMS EPILOGUE(acc, b, m, n)   as in gemm.c, b is 0
 *
 * B is packed by the compiler (pack_window_blocks), in panels of four columns, the last as narrow as what is left: the
 * scales of all, [panel][block][4] floats, then their numbers, [panel][K][4] bytes or, of 4 bits, [panel][K/2][4], the
 * lower half of a byte before the upper one, and three bytes that are read and not used.
 * C may lie over A as in window.c: rows are finished in order.
 */
#include "window.h"
// holes
#define KERNEL window_blocks
#define M 1
#define N 128
#define K 640
#define AM 640
#define CM 128
#define BITS 8
#define BLOCK 32
#define RUN 0
#define IDENTITY_EPILOGUE 1
#define EPILOGUE_PARAMS
#define EPILOGUE(acc, b, m, n) (acc)
// end holes

BURN_KERNEL static void KERNEL(const float *A, const uint32_t *B, float *C EPILOGUE_PARAMS)
{
    enum { BLOCKS = (K + BLOCK - 1) / BLOCK };
    for (ptrdiff_t m = 0; m < M; m++) {
        const float *scales = (const float *)(const void *)B;
        const burn_window_byte *numbers = (const burn_window_byte *)(const void *)(scales + N * BLOCKS);
        for (ptrdiff_t n = 0; n < N; n += 4) {
            const ptrdiff_t width = N - n < 4 ? N - n : 4;
#if RUN
            const burn_window_walk walk = {A + m * AM, K / RUN, RUN, RUN, 1 - (RUN - 1) * (K / RUN)};
#else
            const burn_window_walk walk = {A + m * AM, 1, K, K, 0};
#endif
            float sums[4];
#if BITS == 8
            burn_window_blocks(sums, walk, scales, numbers, K, BLOCK, width);
            numbers += K * width;
#else
            burn_window_nibbles(sums, walk, scales, numbers, K, BLOCK, width);
            numbers += (K + 1) / 2 * width;
#endif
            scales += BLOCKS * width;
            for (ptrdiff_t j = 0; j < width; j++)
                C[m * CM + n + j] = EPILOGUE(sums[j], 0, m, (n + j));
        }
    }
}
