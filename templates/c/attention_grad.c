// SPDX-License-Identifier: MIT OR Apache-2.0
/* Attention, backward: the gradients of queries, keys and values by the gradient G of what attention.c gives. With
 * p = softmax over n of SCORE(sum over k of Q[b][m][k] * K[b][n][k]), fp32, b counting three axes:
 *
 *   dp[m][n] = PASSED(sum over d of G[b][m][d] * V[b][n][d])
 *   ds[m][n] = DSCORE(p[m][n] * (dp[m][n] - sum over n of p[m][n] * dp[m][n]))
 *   QG[b][m][k] = EPILOGUE(sum over n of ds[m][n] * K[b][n][k])
 *   KG[b][n][k] = FINISH_K(sum over m of ds[m][n] * Q[b][m][k])
 *   VG[b][n][d] = FINISH_V(sum over m of PASS(p[m][n]) * G[b][m][d])
 *
 * The idea: nothing of the size of the scores is kept from the forward pass or stands in memory. MB queries at a time
 * compute their rows of scores again, which lie in the second cache until all three products have read them. Keys and
 * values of a head are packed once, into the panels of gemm.c; so are the queries and G of each block. Sums over
 * queries grow in the order of the blocks, whoever computes which head: the same bits for any number of threads.
 *
 *   KERNEL            name of the function
 *   BATCH0 BATCH1 BATCH2   sizes of the three axes of b, the heads among them
 *   SHARED            1: all of b2 have the same keys and values, whose gradients are sums over b2
 *   M N DK DV         queries, keys, length of a query and of a value; DK and DV constants, all >= 1
 *   M_FIXED           M where it is a constant, else 0: the last rows go in tiles of 4 and of 1
 *   Q0 Q1 Q2 QM QK    strides in floats of Q along b, m, k; K0 K1 K2 KN KK, V0 V1 V2 VN VD, G0 G1 G2 GM GD likewise,
 *                     and of the results QG0 ... QGK, KG0 ... KGK, VG0 ... VGD
 *   MR NV             tile of rows and vectors as in gemm.c; MR is even
 *   MB                queries in a block, a multiple of MR
 *   MASKED FIRST LAST EXP   as in attention.c
 *   PARTS SHARES      0: all heads. Else the function does the part'th of SHARES shares of them
 *   TILE GROWN        names of functions of the kernel's own
 *   EPILOGUE_PARAMS   text after the parameter VG, for what follows
 *   SCORE(acc, b0, b1, b2, m, n)       what the softmax is taken of
 *   PASS PASSED DSCORE(acc, b0, b1, b2, m, n)       as above: what of p meets the values, and the chain back
 *   EPILOGUE(acc, b0, b1, b2, m, d) FINISH_K(acc) FINISH_V(acc)   the values stored
 *
 * Rows whose scores are all -inf have no gradient.
 *
 * scratch: 64-byte aligned; 4 * (PANELS(N) * (DK + DV) + N * PANELS(DK) + ROWS(N) * (PANELS(DK) + PANELS(DV)) +
 * MB * (2 * (PANELS(N) + MR + 16) + 2 * PANELS(DK) + PANELS(DV))) bytes, PANELS(x) being x rounded up to a multiple
 * of PANEL = NV*16, and ROWS(x) being PANELS(x) + MR.
 */
#include "vec.h"
#include <math.h>
// holes
#define KERNEL attention_grad
#define BATCH0 1
#define BATCH1 1
#define BATCH2 12
#define SHARED 0
#define M 128
#define N 128
#define DK 64
#define DV 64
#define M_FIXED 128
#define Q0 0
#define Q1 0
#define Q2 64
#define QM 768
#define QK 1
#define K0 0
#define K1 0
#define K2 64
#define KN 768
#define KK 1
#define V0 0
#define V1 0
#define V2 64
#define VN 768
#define VD 1
#define G0 0
#define G1 0
#define G2 64
#define GM 768
#define GD 1
#define QG0 0
#define QG1 0
#define QG2 64
#define QGM 768
#define QGK 1
#define KG0 0
#define KG1 0
#define KG2 64
#define KGN 768
#define KGK 1
#define VG0 0
#define VG1 0
#define VG2 64
#define VGN 768
#define VGD 1
#define MR 12
#define NV 2
#define MB 48
#define MASKED 0
#define FIRST(b0, b1, b2, m) 0
#define LAST(b0, b1, b2, m) INT64_MAX
#define PARTS 0
#define SHARES 1
#define EXP(x) expf(x)
#define TILE attention_grad_tile
#define GROWN attention_grad_grown
#define EPILOGUE_PARAMS
#define SCORE(acc, b0, b1, b2, m, n) (acc)
#define PASS(acc, b0, b1, b2, m, n) (acc)
#define PASSED(acc, b0, b1, b2, m, n) (acc)
#define DSCORE(acc, b0, b1, b2, m, n) (acc)
#define EPILOGUE(acc, b0, b1, b2, m, d) (acc)
#define FINISH_K(acc) (acc)
#define FINISH_V(acc) (acc)
// end holes

/* c[count][width] = a * b, b in panels of NV vectors, `step` floats apart; count: a multiple of a tile's rows, or up to
 * the last query. */
BURN_OUTLINE void TILE(ptrdiff_t count, ptrdiff_t width, ptrdiff_t depth, const float *a, ptrdiff_t am, ptrdiff_t ak,
                       const float *b, ptrdiff_t step, float *c, ptrdiff_t cm)
{
    enum { PANEL = NV * 16, WIDTH = NV * BURN_VF_LANES, ROWS = BURN_MANY_REGISTERS ? MR : MR / 2 };
    for (ptrdiff_t j = 0; j < width; j += WIDTH) {
        const float *const column = b + j / PANEL * step + j % PANEL;
        const int vectors = width - j < WIDTH ? (int)((width - j + BURN_VF_LANES - 1) / BURN_VF_LANES) : NV;
        for (ptrdiff_t i = 0; i < count; i += ROWS) {
            const float *const row = a + i * am;
            float *const to = c + i * cm + j;
#if M_FIXED
            burn_tile_at(ROWS, M_FIXED % ROWS, NV, vectors, count - i < ROWS, depth, row, am, ak, column, PANEL, to, cm,
                         0, column);
#else
            const ptrdiff_t left = count - i, fours = left < ROWS ? left / 4 * 4 : 0;
            if (left >= ROWS)
                burn_tile_at(ROWS, 0, NV, vectors, 0, depth, row, am, ak, column, PANEL, to, cm, 0, column);
            for (ptrdiff_t r = 0; r < fours; r += 4)
                burn_tile_at(4, 0, NV, vectors, 0, depth, row + r * am, am, ak, column, PANEL, to + r * cm, cm, 0,
                             column);
            for (ptrdiff_t r = fours; r < left && left < ROWS; r++)
                burn_tile_at(1, 0, NV, vectors, 0, depth, row + r * am, am, ak, column, PANEL, to + r * cm, cm, 0,
                             column);
#endif
        }
    }
}

/* c[n][width] += the sum over a block's queries of a[query][n] * b[query][width]; whole tiles of rows. */
BURN_OUTLINE void GROWN(ptrdiff_t count, ptrdiff_t width, ptrdiff_t depth, const float *a, ptrdiff_t pitch,
                        const float *b, float *c, ptrdiff_t cm)
{
    enum { PANEL = NV * 16, WIDTH = NV * BURN_VF_LANES, ROWS = BURN_MANY_REGISTERS ? MR : MR / 2 };
    for (ptrdiff_t i = 0; i < count; i += ROWS)
        for (ptrdiff_t j = 0; j < width; j += WIDTH) {
            const float *const column = b + j / PANEL * PANEL * depth + j % PANEL;
            const int vectors = width - j < WIDTH ? (int)((width - j + BURN_VF_LANES - 1) / BURN_VF_LANES) : NV;
            burn_tile_at(ROWS, 0, NV, vectors, 0, depth, a + i, 1, pitch, column, PANEL, c + i * cm + j, cm, 1, column);
        }
}

BURN_KERNEL static void KERNEL(const float *restrict Q, const float *restrict K, const float *restrict V,
                               const float *restrict G, float *restrict QG, float *restrict KG,
                               float *restrict VG EPILOGUE_PARAMS,
#if PARTS
                               unsigned char *scratch, ptrdiff_t part)
#else
                               unsigned char *scratch)
#endif
{
    BURN_CONTRACT
    /* LANES: more than compilers unroll before they vectorise; rows not a multiple of 64 floats apart share no cache
     * sets */
    enum { PANEL = NV * 16, ROWS = BURN_MANY_REGISTERS ? MR : MR / 2, LANES = 32 };
    enum { KEY_COLUMNS = (DK + PANEL - 1) / PANEL * PANEL, COLUMNS = (DV + PANEL - 1) / PANEL * PANEL };
    const ptrdiff_t across = (N + PANEL - 1) / PANEL * PANEL, down = across + MR, pitch = across + MR + 16;
    float *const keys = (float *)(void *)scratch, *const values = keys + across * DK;
    float *const key_rows = values + across * DV, *const dk = key_rows + KEY_COLUMNS * N;
    float *const dv = dk + down * KEY_COLUMNS, *const p = dv + down * COLUMNS, *const dp = p + MB * pitch;
    float *const q_rows = dp + MB * pitch, *const g_rows = q_rows + KEY_COLUMNS * MB;
    float *const dq = g_rows + COLUMNS * MB;
#if SHARED
    const ptrdiff_t heads = BATCH0 * BATCH1, together = BATCH2;
#else
    const ptrdiff_t heads = BATCH0 * BATCH1 * BATCH2, together = 1;
#endif
#if PARTS
    const ptrdiff_t begin = heads * part / SHARES, end = heads * (part + 1) / SHARES;
#else
    const ptrdiff_t begin = 0, end = heads;
#endif
    for (ptrdiff_t unit = begin * together; unit < end * together; unit++) {
        const ptrdiff_t b0 = unit / (BATCH1 * BATCH2), b1 = unit / BATCH2 % BATCH1, b2 = unit % BATCH2;
        const float *const q_head = Q + b0 * Q0 + b1 * Q1 + b2 * Q2, *const g_head = G + b0 * G0 + b1 * G1 + b2 * G2;
        const float *const k_head = K + b0 * K0 + b1 * K1 + b2 * K2, *const v_head = V + b0 * V0 + b1 * V1 + b2 * V2;
        for (ptrdiff_t n = 0; n < N && unit % together == 0; n += PANEL) {
            burn_pack_panel(keys + n * DK, PANEL, k_head + n * KN, KK, KN, DK, N - n < PANEL ? N - n : PANEL);
            burn_pack_panel(values + n * DV, PANEL, v_head + n * VN, VD, VN, DV, N - n < PANEL ? N - n : PANEL);
        }
        for (ptrdiff_t k = 0; k < DK && unit % together == 0; k += PANEL)
            burn_pack_panel(key_rows + k * N, PANEL, k_head + k * KK, KN, KK, N, DK - k < PANEL ? DK - k : PANEL);
        for (ptrdiff_t i = 0; i < down * (KEY_COLUMNS + COLUMNS) && unit % together == 0; i++)
            dk[i] = 0.0f;
        for (ptrdiff_t m0 = 0; m0 < M; m0 += MB) {
            const ptrdiff_t count = M - m0 < MB ? M - m0 : MB;
            const float *const q = q_head + m0 * QM, *const g = g_head + m0 * GM;
#if MASKED
            ptrdiff_t from = N - 1, stop = 1; /* the keys that some query of the block sees; one is there in any case */
            for (ptrdiff_t i = m0; i < m0 + count; i++) {
                const int64_t first = FIRST(b0, b1, b2, i), last = LAST(b0, b1, b2, i);
                from = first < from ? (first > 0 ? (ptrdiff_t)first : 0) : from;
                stop = last >= stop ? (last < N ? (ptrdiff_t)last + 1 : N) : stop;
            }
            from = (from < stop ? from : stop - 1) / PANEL * PANEL;
#else
            const ptrdiff_t from = 0, stop = N;
#endif
            const ptrdiff_t seen = stop - from, whole = (seen + LANES - 1) / LANES * LANES;
            const ptrdiff_t tiles = (seen + ROWS - 1) / ROWS * ROWS, filled = whole > tiles ? whole : tiles;
            TILE(count, seen, DK, q, QM, QK, keys + from * DK, PANEL * DK, p, pitch);
            TILE(count, seen, DV, g, GM, GD, values + from * DV, PANEL * DV, dp, pitch);
            for (ptrdiff_t i = 0; i < count; i++) {
                float *const row = p + i * pitch, *const drow = dp + i * pitch;
                const ptrdiff_t m = m0 + i;
                float lane[LANES], both[LANES], most = -INFINITY, sum = 0.0f, dot = 0.0f;
                (void)m;
                for (ptrdiff_t n = 0; n < seen; n++)
                    row[n] = SCORE(row[n], b0, b1, b2, m, (from + n));
                for (ptrdiff_t n = 0; n < seen; n++)
                    drow[n] = PASSED(drow[n], b0, b1, b2, m, (from + n));
                for (ptrdiff_t n = seen; n < filled; n++) {
                    row[n] = -INFINITY;
                    drow[n] = 0.0f;
                }
                for (int j = 0; j < LANES; j++)
                    lane[j] = row[j];
                for (ptrdiff_t n = LANES; n < whole; n += LANES)
                    for (int j = 0; j < LANES; j++)
                        lane[j] = lane[j] > row[n + j] ? lane[j] : row[n + j];
                for (int j = 0; j < 16; j++)
                    lane[j] = lane[j] > lane[j + 16] ? lane[j] : lane[j + 16];
                for (int j = 0; j < 8; j++)
                    lane[j] = lane[j] > lane[j + 8] ? lane[j] : lane[j + 8];
                for (int j = 0; j < 8; j++)
                    most = most > lane[j] ? most : lane[j];
                const float shift = most > -INFINITY ? most : 0.0f; /* exp(-inf - 0) is 0 */
                for (int j = 0; j < LANES; j++)
                    lane[j] = both[j] = 0.0f;
                for (ptrdiff_t n = 0; n < whole; n += LANES)
                    for (int j = 0; j < LANES; j++) {
                        const float e = EXP(row[n + j] - shift);
                        row[n + j] = e;
                        lane[j] += e;
                        both[j] += e * drow[n + j];
                    }
                for (int j = 0; j < 16; j++) {
                    lane[j] += lane[j + 16];
                    both[j] += both[j + 16];
                }
                for (int j = 0; j < 8; j++) {
                    lane[j] += lane[j + 8];
                    both[j] += both[j + 8];
                }
                for (int j = 0; j < 4; j++) {
                    sum += lane[j] + lane[j + 4];
                    dot += both[j] + both[j + 4];
                }
                const float scale = sum > 0.0f || sum != sum ? 1.0f / sum : 0.0f, mean = dot * scale;
                for (ptrdiff_t n = 0; n < seen; n++) {
                    const float x = row[n] * scale, t = x * (drow[n] - mean);
                    row[n] = PASS(x, b0, b1, b2, m, (from + n));
                    drow[n] = DSCORE(t, b0, b1, b2, m, (from + n));
                }
                for (ptrdiff_t n = seen; n < filled; n++)
                    row[n] = drow[n] = 0.0f;
            }
            TILE(count, DK, seen, dp, pitch, 1, key_rows + from * PANEL, PANEL * N, dq, KEY_COLUMNS);
            float *const to_q = QG + b0 * QG0 + b1 * QG1 + b2 * QG2 + m0 * QGM;
            for (ptrdiff_t i = 0; i < count; i++)
                for (ptrdiff_t k = 0; k < DK; k++)
                    to_q[i * QGM + k * QGK] = EPILOGUE(dq[i * KEY_COLUMNS + k], b0, b1, b2, (m0 + i), k);
            for (ptrdiff_t k = 0; k < DK; k += PANEL)
                burn_pack_panel(q_rows + k * count, PANEL, q + k * QK, QM, QK, count, DK - k < PANEL ? DK - k : PANEL);
            for (ptrdiff_t d = 0; d < DV; d += PANEL)
                burn_pack_panel(g_rows + d * count, PANEL, g + d * GD, GM, GD, count, DV - d < PANEL ? DV - d : PANEL);
            GROWN(tiles, DK, count, dp, pitch, q_rows, dk + from * KEY_COLUMNS, KEY_COLUMNS);
            GROWN(tiles, DV, count, p, pitch, g_rows, dv + from * COLUMNS, COLUMNS);
        }
        float *const to_k = KG + b0 * KG0 + b1 * KG1 + b2 * KG2, *const to_v = VG + b0 * VG0 + b1 * VG1 + b2 * VG2;
        for (ptrdiff_t n = 0; n < N && unit % together == together - 1; n++) {
            for (ptrdiff_t k = 0; k < DK; k++)
                to_k[n * KGN + k * KGK] = FINISH_K(dk[n * KEY_COLUMNS + k]);
            for (ptrdiff_t d = 0; d < DV; d++)
                to_v[n * VGN + d * VGD] = FINISH_V(dv[n * COLUMNS + d]);
        }
    }
}
