// SPDX-License-Identifier: MIT OR Apache-2.0
/* Attention: O[b][m][d] = EPILOGUE(sum over n of p[n] * V[b][n][d]), where p is the softmax over n of
 * SCORE(sum over k of Q[b][m][k] * K[b][n][k]), fp32; b counts three axes. Sizes and strides are constants or
 * expressions.
 *
 * The idea: the matrix of scores never exists. A tile of queries meets KB keys at a time; what leaves the softmax is
 * multiplied with the values while it lies in L1. Past the first block the sums so far are scaled to the new maximum.
 * Keys and values of a head are packed once, into the panels of gemm.c. DIRECT: a few queries; keys and values are read
 * once, where they lie.
 *
 *   KERNEL            name of the function
 *   BATCH0 BATCH1 BATCH2   sizes of the three axes of b, the heads among them
 *   M N DK DV         queries, keys, length of a query and of a value; DK and DV constants, all >= 1
 *   M_FIXED           M where it is a constant, else 0: the last rows go in tiles of 4 and of 1
 *   Q0 Q1 Q2 QM QK    strides in floats of Q along b, m, k; K0 K1 K2 KN KK, V0 V1 V2 VN VK, O0 O1 O2 OM OD likewise
 *   DIRECT            1: one query at a time; QK, KK and VK must be 1, DV small enough for the stack
 *   MR NV             tile of rows and vectors as in gemm.c
 *   KB                keys in a block, a multiple of PANEL; may exceed N
 *   EMPTY             a row whose scores are all -inf: 0: NaN, as its division by 0 gives; 1: the sum over n of 0 * V;
 *                     2: the same, and rows with a score that is NaN give 0
 *   MASKED            1: the scores of a query are -inf before the key FIRST and behind LAST, whatever they say of one
 *                     that there is no such key
 *   FIRST(b0, b1, b2, m) LAST(b0, b1, b2, m)
 *   WEIGHTED          1: the values are multiplied by PASS of p, which is p times something else, and not by p
 *   EXP(x)            the exponential function, for x <= 0
 *   PARTS SHARES      0: all of O. Else the function does the part'th of SHARES shares of its tiles of queries
 *   SOFTMAX TILE      names of functions of the kernel's own
 *   EPILOGUE_PARAMS   text after the parameter O, for EPILOGUE and SCORE; SCORE_PARAMS, SCORE_ARGS: what SCORE needs of
 *                     it, and as arguments
 *   SCORE(acc, b0, b1, b2, m, n)       what the softmax is taken of
 *   PASS(acc, b0, b1, b2, m, n)        what of it meets the values
 *   EPILOGUE(acc, b0, b1, b2, m, d)    the value stored
 *
 * scratch: 64-byte aligned. DIRECT: 4 * N bytes, N rounded up to a multiple of 32; else 4 * (PANELS(N) * DK +
 * PANELS(DV) * N + MR * (KB + 16 + PANELS(DV))) bytes, PANELS(x) being x rounded up to a multiple of PANEL = NV*16;
 * with PARTS behind 64 bytes more, of which the first are two pointers, NULL before a worker's first part: what it has
 * packed stays for its next one.
 */
#include "vec.h"
#include <math.h>
// holes
#define KERNEL attention
#define BATCH0 1
#define BATCH1 1
#define BATCH2 12
#define M 128
#define N 128
#define DK 32
#define DV 32
#define M_FIXED 128
#define Q0 0
#define Q1 0
#define Q2 32
#define QM 384
#define QK 1
#define K0 0
#define K1 0
#define K2 32
#define KN 384
#define KK 1
#define V0 0
#define V1 0
#define V2 32
#define VN 384
#define VK 1
#define O0 0
#define O1 0
#define O2 32
#define OM 384
#define OD 1
#define DIRECT 0
#define MR 12
#define NV 2
#define KB 128
#define EMPTY 0
#define MASKED 0
#define FIRST(b0, b1, b2, m) 0
#define LAST(b0, b1, b2, m) INT64_MAX
#define WEIGHTED 0
#define PASS(acc, b0, b1, b2, m, n) (acc)
#define PARTS 0
#define SHARES 1
#define EXP(x) expf(x)
#define SOFTMAX attention_softmax
#define TILE attention_tile
#define EPILOGUE_PARAMS
#define SCORE_PARAMS
#define SCORE_ARGS
#define SCORE(acc, b0, b1, b2, m, n) (acc)
#define EPILOGUE(acc, b0, b1, b2, m, d) (acc)
// end holes

/* A row of products with the keys from n0 on becomes exp(score - top), top being the largest score so far, and their
 * sum is returned. Up to a multiple of 32 it is filled with zeros. */
BURN_OUTLINE float SOFTMAX(float *restrict row, ptrdiff_t depth, float *top, ptrdiff_t b0, ptrdiff_t b1, ptrdiff_t b2,
                           ptrdiff_t m, ptrdiff_t n0 SCORE_PARAMS)
{
    BURN_CONTRACT
    enum { LANES = 32 }; /* more than compilers unroll before they vectorise */
    const ptrdiff_t whole = (depth + LANES - 1) / LANES * LANES;
    float lane[LANES], most = *top;
    (void)b0, (void)b1, (void)b2, (void)m, (void)n0;
    for (ptrdiff_t n = 0; n < depth; n++)
        row[n] = SCORE(row[n], b0, b1, b2, m, (n0 + n));
    for (ptrdiff_t n = depth; n < whole; n++)
        row[n] = -INFINITY;
    for (int j = 0; j < LANES; j++)
        lane[j] = row[j];
    for (ptrdiff_t n = LANES; n < whole; n += LANES)
        for (int j = 0; j < LANES; j++)
            lane[j] = lane[j] > row[n + j] ? lane[j] : row[n + j];
    for (int j = 0; j < 16; j++)
        lane[j] = lane[j] > lane[j + 16] ? lane[j] : lane[j + 16];
    for (int j = 0; j < 8; j++)
        lane[j] = lane[j] > lane[j + 8] ? lane[j] : lane[j + 8];
    for (int j = 0; j < 4; j++)
        lane[j] = lane[j] > lane[j + 4] ? lane[j] : lane[j + 4];
    for (int j = 0; j < 4; j++)
        most = most > lane[j] ? most : lane[j];
    /* exp(-inf - 0) is 0; a NaN may not be in `most` but comes into the sum */
    const float shift = most > -INFINITY ? most : 0.0f;
    for (int j = 0; j < LANES; j++)
        lane[j] = 0.0f;
    for (ptrdiff_t n = 0; n < whole; n += LANES)
        for (int j = 0; j < LANES; j++) {
            const float e = EXP(row[n + j] - shift);
            row[n + j] = e;
            lane[j] += e;
        }
    for (int j = 0; j < 16; j++)
        lane[j] += lane[j + 16];
    for (int j = 0; j < 8; j++)
        lane[j] += lane[j + 8];
    *top = most;
    for (int j = 0; j < 4; j++)
        lane[j] += lane[j + 4];
    return (lane[0] + lane[1]) + (lane[2] + lane[3]);
}

#if !DIRECT
/* burn_tile of `count` rows, a whole tile's or what is left at the end, by `vectors` <= NV vectors of a panel. */
BURN_INLINE void TILE(ptrdiff_t count, int vectors, ptrdiff_t depth, const float *a, ptrdiff_t am, ptrdiff_t ak,
                      const float *b, float *c, ptrdiff_t cm, int add, const float *ahead)
{
    enum { PANEL = NV * 16, ROWS = BURN_MANY_REGISTERS ? MR : MR / 2 };
#if M_FIXED
    burn_tile_at(ROWS, M_FIXED % ROWS, NV, vectors, count < ROWS, depth, a, am, ak, b, PANEL, c, cm, add, ahead);
#else
    const ptrdiff_t fours = count < ROWS ? count / 4 * 4 : 0;
    if (count >= ROWS)
        burn_tile_at(ROWS, 0, NV, vectors, 0, depth, a, am, ak, b, PANEL, c, cm, add, ahead);
    for (ptrdiff_t i = 0; i < fours; i += 4)
        burn_tile_at(4, 0, NV, vectors, 0, depth, a + i * am, am, ak, b, PANEL, c + i * cm, cm, add, ahead);
    for (ptrdiff_t i = fours; i < count && count < ROWS; i++)
        burn_tile_at(1, 0, NV, vectors, 0, depth, a + i * am, am, ak, b, PANEL, c + i * cm, cm, add, ahead);
#endif
}

#endif
BURN_KERNEL static void KERNEL(const float *restrict Q, const float *restrict K, const float *restrict V,
                               float *restrict O EPILOGUE_PARAMS,
#if PARTS
                               unsigned char *scratch, ptrdiff_t part)
#else
                               unsigned char *scratch)
#endif
{
    BURN_CONTRACT
#if DIRECT
    enum { ROWS = 1, TOGETHER = 4 };
    float *const row = (float *)(void *)scratch;
#else
    enum { PANEL = NV * 16, WIDTH = NV * BURN_VF_LANES, ROWS = BURN_MANY_REGISTERS ? MR : MR / 2 };
    /* rows not a multiple of 64 floats apart share no cache sets */
    enum { COLUMNS = (DV + PANEL - 1) / PANEL * PANEL, PITCH = KB + 16 };
#if PARTS
    const float **const near = (const float **)(void *)scratch, *near_k = near[0], *near_v = near[1];
    float *const keys = (float *)(void *)(scratch + 64);
#else
    const float *near_k = NULL, *near_v = NULL;
    float *const keys = (float *)(void *)scratch;
#endif
    float *const values = keys + (N + PANEL - 1) / PANEL * PANEL * DK;
    float *const scores = values + COLUMNS * N, *const sums = scores + ROWS * PITCH;
#endif
    const ptrdiff_t tiles = (M + ROWS - 1) / ROWS, units = BATCH0 * BATCH1 * BATCH2 * tiles;
#if PARTS
    const ptrdiff_t begin = units * part / SHARES, end = units * (part + 1) / SHARES;
#else
    const ptrdiff_t begin = 0, end = units;
#endif
    for (ptrdiff_t unit = begin; unit < end; unit++) {
        const ptrdiff_t head = unit / tiles, m = unit % tiles * ROWS;
        const ptrdiff_t b0 = head / (BATCH1 * BATCH2), b1 = head / BATCH2 % BATCH1, b2 = head % BATCH2;
#if MASKED
        ptrdiff_t from = N - 1, stop = 1; /* the keys that some query of the tile sees; one is there in any case */
        for (ptrdiff_t i = m; i < m + ROWS && i < M; i++) {
            const int64_t first = FIRST(b0, b1, b2, i), last = LAST(b0, b1, b2, i);
            from = first < from ? (first > 0 ? (ptrdiff_t)first : 0) : from;
            stop = last >= stop ? (last < N ? (ptrdiff_t)last + 1 : N) : stop;
        }
        from = (from < stop ? from : stop - 1) / 32 * 32;
#else
        const ptrdiff_t from = 0, stop = N;
#endif
#if DIRECT
        const float *const q = Q + b0 * Q0 + b1 * Q1 + b2 * Q2 + m * QM;
        const float *const keys = K + b0 * K0 + b1 * K1 + b2 * K2, *const values = V + b0 * V0 + b1 * V1 + b2 * V2;
        float *const to = O + b0 * O0 + b1 * O1 + b2 * O2 + m * OM;
        float out[DV], top = -INFINITY;
        for (ptrdiff_t n = from; n < stop; n += TOGETHER) {
            burn_vf dot[TOGETHER];
            BURN_UNROLL
            for (int i = 0; i < TOGETHER; i++)
                burn_vf_zero(&dot[i]);
            for (ptrdiff_t k = 0; k + BURN_VF_LANES <= DK; k += BURN_VF_LANES) {
                BURN_UNROLL
                for (int i = 0; i < TOGETHER; i++) /* keys past the end repeat the last one */
                    burn_vf_muladd2(&dot[i], keys + (n + i < stop ? n + i : stop - 1) * KN + k, q + k);
            }
            for (int i = 0; i < TOGETHER && n + i < stop; i++) {
                row[n + i] = burn_vf_sum(&dot[i]);
                for (ptrdiff_t k = DK - DK % BURN_VF_LANES; k < DK; k++)
                    row[n + i] += keys[(n + i) * KN + k] * q[k];
            }
        }
        const float sum = SOFTMAX(row + from, stop - from, &top, b0, b1, b2, m, from SCORE_ARGS);
#if WEIGHTED
        for (ptrdiff_t n = from; n < stop; n++)
            row[n] = PASS(row[n], b0, b1, b2, m, n);
#endif
        for (ptrdiff_t d = 0; d < DV; d++)
            out[d] = 0.0f;
        const ptrdiff_t fours = from + (stop - from) / 4 * 4;
        for (ptrdiff_t n = from; n < fours; n += 4) {
            const float p0 = row[n], p1 = row[n + 1], p2 = row[n + 2], p3 = row[n + 3], *const v = values + n * VN;
            for (ptrdiff_t d = 0; d < DV; d++)
                out[d] += (p0 * v[d] + p1 * v[VN + d]) + (p2 * v[2 * VN + d] + p3 * v[3 * VN + d]);
        }
        for (ptrdiff_t n = fours; n < stop; n++)
            for (ptrdiff_t d = 0; d < DV; d++)
                out[d] += row[n] * values[n * VN + d];
        const bool lost = EMPTY == 2 && sum != sum;
        const float divisor = EMPTY && sum == 0.0f ? 1.0f : sum;
        for (ptrdiff_t d = 0; d < DV; d++)
            to[d * OD] = EPILOGUE(lost ? 0.0f : out[d] / divisor, b0, b1, b2, m, d);
#else
        const ptrdiff_t count = M - m < ROWS ? M - m : ROWS;
        const float *const q = Q + b0 * Q0 + b1 * Q1 + b2 * Q2 + m * QM;
        const float *const k_head = K + b0 * K0 + b1 * K1 + b2 * K2, *const v_head = V + b0 * V0 + b1 * V1 + b2 * V2;
        float *const to = O + b0 * O0 + b1 * O1 + b2 * O2 + m * OM;
        float top[ROWS], total[ROWS];
        for (ptrdiff_t n = 0; n < N && near_k != k_head; n += PANEL)
            burn_pack_panel(keys + n * DK, PANEL, k_head + n * KN, KK, KN, DK, N - n < PANEL ? N - n : PANEL);
        for (ptrdiff_t d = 0; d < DV && near_v != v_head; d += PANEL)
            burn_pack_panel(values + d * N, PANEL, v_head + d * VK, VN, VK, N, DV - d < PANEL ? DV - d : PANEL);
        near_k = k_head;
        near_v = v_head;
        for (int i = 0; i < ROWS; i++) {
            top[i] = -INFINITY;
            total[i] = 0.0f;
        }
        for (ptrdiff_t n0 = from; n0 < stop; n0 += KB) {
            const ptrdiff_t n1 = n0 + KB < stop ? n0 + KB : stop, depth = n1 - n0;
            for (ptrdiff_t n = n0; n < n1; n += WIDTH) {
                const float *const column = keys + n / PANEL * PANEL * DK + n % PANEL;
                const int vectors = n1 - n < WIDTH ? (int)((n1 - n + BURN_VF_LANES - 1) / BURN_VF_LANES) : NV;
                TILE(count, vectors, DK, q, QM, QK, column, scores + n - n0, PITCH, 0, column + DK * PANEL);
            }
            for (ptrdiff_t i = 0; i < count; i++) {
                const float before = top[i], sum = SOFTMAX(scores + i * PITCH, depth, &top[i], b0, b1, b2, (m + i),
                                                           n0 SCORE_ARGS);
#if WEIGHTED
                for (ptrdiff_t n = 0; n < depth; n++)
                    scores[i * PITCH + n] = PASS(scores[i * PITCH + n], b0, b1, b2, (m + i), (n0 + n));
#endif
                const float scale = n0 > from && top[i] > -INFINITY ? EXP(before - top[i]) : 0.0f;
                total[i] = total[i] * scale + sum;
                for (ptrdiff_t d = 0; d < COLUMNS && n0 > from; d++)
                    sums[i * COLUMNS + d] *= scale;
            }
            for (ptrdiff_t d = 0; d < DV; d += WIDTH) {
                const float *const column = values + d / PANEL * PANEL * N + n0 * PANEL + d % PANEL;
                const int vectors = DV - d < WIDTH ? (int)((DV - d + BURN_VF_LANES - 1) / BURN_VF_LANES) : NV;
                TILE(count, vectors, depth, scores, PITCH, 1, column, sums + d, COLUMNS, n0 > from, column);
            }
        }
        for (ptrdiff_t i = 0; i < count; i++) {
            const bool lost = EMPTY == 2 && total[i] != total[i];
            const float divisor = EMPTY && total[i] == 0.0f ? 1.0f : total[i];
            for (ptrdiff_t d = 0; d < DV; d++)
                to[i * OM + d * OD] = EPILOGUE(lost ? 0.0f : sums[i * COLUMNS + d] / divisor, b0, b1, b2, (m + i), d);
        }
#endif
    }
#if PARTS && !DIRECT
    near[0] = near_k;
    near[1] = near_v;
#endif
}
