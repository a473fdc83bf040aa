// SPDX-License-Identifier: MIT OR Apache-2.0
/* Attention on a GPU: O[b][m][d] = FINISH(sum over n of p[n] * V[b][n][d]), where p is the softmax over n of
 * SCORE(sum over k of Q[b][m][k] * K[b][n][k]), sums in fp32; b counts three axes.
 *
 * The matrix of scores never exists. A workgroup has BM queries in shared memory and meets BN keys at a time: their
 * scores become exp(score - top), top being the largest so far, and are multiplied with the values while they are
 * there. When a larger score comes, the sums so far are scaled to it. Of each query and key this reads CK elements at a
 * time into shared memory, of each value CV, so that vectors of any length go. Keys that no query of the workgroup
 * sees are left out by whole blocks.
 *
 * A thread has TM queries, and of a block every ACROSS'th key and vector of four elements of values: what it has of a
 * row it adds up alone until the end, and only tops are told each other in each block.
 *
 *   BATCH1 BATCH2     sizes of the inner axes of b; the outer one is the number of groups along z
 *   M N DK DV         queries, keys, length of a query and of a value
 *   BM BN             queries and keys of a block; BN a multiple of 4 and of ACROSS
 *   TM ACROSS         queries of a thread, and threads that have the same: BM / TM * ACROSS threads
 *   CK CV             of a piece, multiples of 4
 *   QUERY_WIDE KEY_WIDE VALUE_WIDE   1: the fours may be read, of one row, at multiples of 4
 *   QUERY(b0, b1, b2, m, k) KEY(b0, b1, b2, n, k) VALUE(b0, b1, b2, n, d)       an element, and
 *   QUERY4 KEY4 VALUE4        the four from there on
 *   EMPTY             a row whose scores are all -inf: 0: NaN, as its division by 0 gives; 1: 0; 2: the same, and rows
 *                     with a score that is NaN give 0
 *   MASKED            1: the scores of a query are -inf before the key FIRST and behind LAST
 *   FIRST(b0, b1, b2, m) LAST(b0, b1, b2, m)
 *   SCORE(acc, b0, b1, b2, m, n)       what the softmax is taken of
 *   FINISH(acc, b0, b1, b2, m, d)      stores an element
 *
 * Groups: ceil(M / BM) x (BATCH1 * BATCH2) x BATCH0. */
#version 450
layout(set = 0, binding = 0, std430) buffer Memory { float memory[]; };
layout(set = 0, binding = 0, std430) buffer Memory4 { vec4 memory4[]; };
// holes
#define BATCH1 1
#define BATCH2 12
#define M 128
#define N 128
#define DK 64
#define DV 64
#define BM 32
#define BN 32
#define TM 4
#define ACROSS 16
#define CK 64
#define CV 64
#define QUERY_WIDE 1
#define KEY_WIDE 1
#define VALUE_WIDE 0
#define QUERY(b0, b1, b2, m, k) memory[(m) * 768 + (b2) * 64 + (k)]
#define KEY(b0, b1, b2, n, k) memory[98304 + (n) * 768 + (b2) * 64 + (k)]
#define VALUE(b0, b1, b2, n, d) memory[196608 + (n) * 768 + (b2) * 64 + (d)]
#define QUERY4(b0, b1, b2, m, k) memory4[((m) * 768 + (b2) * 64 + (k)) / 4]
#define KEY4(b0, b1, b2, n, k) memory4[(98304 + (n) * 768 + (b2) * 64 + (k)) / 4]
#define VALUE4(b0, b1, b2, n, d) vec4(0.0)
#define EMPTY 0
#define MASKED 0
#define FIRST(b0, b1, b2, m) 0
#define LAST(b0, b1, b2, m) (N - 1)
#define SCORE(acc, b0, b1, b2, m, n) (acc) * 0.125
#define FINISH(acc, b0, b1, b2, m, d) memory[294912 + (m) * 768 + (b2) * 64 + (d)] = acc
// end holes

const int THREADS = BM / TM * ACROSS, KEYS = BN / ACROSS;
const int K4 = (DK + 3) / 4, V4 = (DV + 3) / 4;         /* vectors of a query and of a value */
const int CK4 = CK / 4, CV4 = CV / 4, EACH = (CV4 + ACROSS - 1) / ACROSS;
const int K_PIECES = (K4 + CK4 - 1) / CK4, V_PIECES = (V4 + CV4 - 1) / CV4;
/* in vectors: rows of pieces of queries and keys, of values and of shares. Neighbouring rows have their vectors in
 * another order, eight of which there are, so that their readers meet other banks */
const int KEY_PITCH = (CK4 + 7) / 8 * 8, QUERY_PITCH = K_PIECES * KEY_PITCH, SHARE_PITCH = (BN / 4 + 7) / 8 * 8;
const int KEYS_SIZE = BN * KEY_PITCH > BM * SHARE_PITCH ? BN * KEY_PITCH : BM * SHARE_PITCH;
const int VALUES_SIZE = BN * CV4 > BM * ACROSS / 4 ? BN * CV4 : BM * ACROSS / 4;
const int KEYS_EACH = (BN * CK4 + THREADS - 1) / THREADS, VALUES_EACH = (BN * CV4 + THREADS - 1) / THREADS;
const int APART = BM / TM;                              /* queries of a thread */

layout(local_size_x = THREADS) in;

/* keys, then shares of those queries; tops, then values */
shared vec4 queries[BM * QUERY_PITCH], block[KEYS_SIZE], block_values[VALUES_SIZE];

/* the four elements from k on, 0 where there are none */
vec4 query_at(const int b0, const int b1, const int b2, const int m, const int k)
{
    vec4 x = vec4(0.0);
#if QUERY_WIDE
    if (k < DK)
        x = QUERY4(b0, b1, b2, m, k);
#else
    [[unroll]] for (int i = 0; i < 4; i++)
        if (k + i < DK)
            x[i] = QUERY(b0, b1, b2, m, k + i);
#endif
    return x;
}

vec4 key_at(const int b0, const int b1, const int b2, const int n, const int k)
{
    vec4 x = vec4(0.0);
#if KEY_WIDE
    if (k < DK)
        x = KEY4(b0, b1, b2, n, k);
#else
    [[unroll]] for (int i = 0; i < 4; i++)
        if (k + i < DK)
            x[i] = KEY(b0, b1, b2, n, k + i);
#endif
    return x;
}

vec4 value_at(const int b0, const int b1, const int b2, const int n, const int d)
{
    vec4 x = vec4(0.0);
#if VALUE_WIDE
    if (d < DV)
        x = VALUE4(b0, b1, b2, n, d);
#else
    [[unroll]] for (int i = 0; i < 4; i++)
        if (d + i < DV)
            x[i] = VALUE(b0, b1, b2, n, d + i);
#endif
    return x;
}

/* vector `at` of row `row` */
int place(const int row, const int at, const int pitch) { return row * pitch + (at ^ row & 7); }

/* What other threads of a query should know. */
void tell(const int i, const float x) { block_values[i / 4][i % 4] = x; }
float told(const int i) { return block_values[i / 4][i % 4]; }

/* Piece c of the keys, and of the values, from n0 on, into registers. */
#define BRING_KEYS(n0, c) \
    [[unroll]] for (int i = 0; i < KEYS_EACH; i++) { \
        const int v = local + i * THREADS, n = (n0) + v / CK4; \
        next[i] = vec4(0.0); \
        if (n < stop && (BN * CK4 % THREADS == 0 || v < BN * CK4)) \
            next[i] = key_at(b0, b1, b2, n, ((c) * CK4 + v % CK4) * 4); \
    }
#define BRING_VALUES(n0, c) \
    [[unroll]] for (int i = 0; i < VALUES_EACH; i++) { \
        const int v = local + i * THREADS, n = (n0) + v / CV4; \
        next[i] = vec4(0.0); \
        if (n < stop && (BN * CV4 % THREADS == 0 || v < BN * CV4)) \
            next[i] = value_at(b0, b1, b2, n, ((c) * CV4 + v % CV4) * 4); \
    }
#define PUT_KEYS \
    [[unroll]] for (int i = 0; i < KEYS_EACH; i++) { \
        const int v = local + i * THREADS; \
        if (BN * CK4 % THREADS == 0 || v < BN * CK4) \
            block[place(v / CK4, v % CK4, KEY_PITCH)] = next[i]; \
    }
#define PUT_VALUES \
    [[unroll]] for (int i = 0; i < VALUES_EACH; i++) { \
        const int v = local + i * THREADS; \
        if (BN * CV4 % THREADS == 0 || v < BN * CV4) \
            block_values[v] = next[i]; \
    }

void main()
{
    const float lowest = uintBitsToFloat(0xff800000u);
    const int local = int(gl_LocalInvocationIndex), ty = local / ACROSS, tx = local % ACROSS;
    const int m0 = int(gl_WorkGroupID.x) * BM, b0 = int(gl_WorkGroupID.z);
    const int b1 = int(gl_WorkGroupID.y) / BATCH2, b2 = int(gl_WorkGroupID.y) % BATCH2;
    float top[TM], total[TM];
    vec4 sums[TM][V_PIECES][EACH], next[KEYS_EACH > VALUES_EACH ? KEYS_EACH : VALUES_EACH];
    for (int i = local; i < BM * K_PIECES * CK4; i += THREADS) {
        const int row = i / (K_PIECES * CK4), at = i % (K_PIECES * CK4);
        vec4 x = vec4(0.0);
        if (M % BM == 0 || m0 + row < M)
            x = query_at(b0, b1, b2, m0 + row, at * 4);
        queries[place(row, at / CK4 * KEY_PITCH + at % CK4, QUERY_PITCH)] = x;
    }
    [[unroll]] for (int i = 0; i < TM; i++) {
        top[i] = lowest;
        total[i] = 0.0;
        [[unroll]] for (int c = 0; c < V_PIECES; c++)
            [[unroll]] for (int j = 0; j < EACH; j++) sums[i][c][j] = vec4(0.0);
    }
    int from = 0, stop = N; /* the keys that some query here sees */
#if MASKED
    from = N;
    stop = 0;
    for (int i = 0; i < BM && m0 + i < M; i++) {
        from = min(from, max(int(FIRST(b0, b1, b2, (m0 + i))), 0));
        stop = max(stop, min(int(LAST(b0, b1, b2, (m0 + i))), N - 1) + 1);
    }
    from = min(from, stop) / BN * BN;
#endif
    BRING_KEYS(from, 0)
    for (int n0 = from; n0 < stop; n0 += BN) {
        float score[TM][KEYS];
        [[unroll]] for (int i = 0; i < TM; i++)
            [[unroll]] for (int j = 0; j < KEYS; j++) score[i][j] = 0.0;
        [[unroll]] for (int c = 0; c < K_PIECES; c++) {
            barrier(); /* the block's last readers are done; the queries are there */
            PUT_KEYS
            barrier();
            if (c + 1 < K_PIECES) {
                BRING_KEYS(n0, c + 1)
            } else {
                BRING_VALUES(n0, 0)
            }
            [[dont_unroll]] for (int k = 0; k < CK4; k++) {
                vec4 x[TM], y[KEYS];
                [[unroll]] for (int i = 0; i < TM; i++)
                    x[i] = queries[place(ty + APART * i, c * KEY_PITCH + k, QUERY_PITCH)];
                [[unroll]] for (int j = 0; j < KEYS; j++) y[j] = block[place(tx + ACROSS * j, k, KEY_PITCH)];
                [[unroll]] for (int i = 0; i < TM; i++)
                    [[unroll]] for (int j = 0; j < KEYS; j++) {
                        score[i][j] = fma(x[i].x, y[j].x, score[i][j]);
                        score[i][j] = fma(x[i].y, y[j].y, score[i][j]);
                        score[i][j] = fma(x[i].z, y[j].z, score[i][j]);
                        score[i][j] = fma(x[i].w, y[j].w, score[i][j]);
                    }
            }
        }
        [[unroll]] for (int i = 0; i < TM; i++) {
            const int m = m0 + ty + APART * i;
            float most = lowest;
            [[unroll]] for (int j = 0; j < KEYS; j++) {
                const int n = n0 + tx + ACROSS * j;
                float x = lowest;
                if (n < stop && (M % BM == 0 || m < M))
                    x = SCORE(score[i][j], b0, b1, b2, m, n);
                score[i][j] = x;
                most = x > most ? x : most;
            }
            tell((ty + APART * i) * ACROSS + tx, most);
        }
        barrier();
        /* a share's place: those of one thread stand together */
        [[unroll]] for (int i = 0; i < TM; i++) {
            const int row = ty + APART * i;
            const float before = top[i];
            [[unroll]] for (int j = 0; j < ACROSS; j++) {
                const float other = told(row * ACROSS + j);
                top[i] = other > top[i] ? other : top[i];
            }
            /* exp(-inf - 0) is 0; a NaN is never the top, but comes into the sum */
            const float shift = top[i] > lowest ? top[i] : 0.0, scale = before > lowest ? exp(before - shift) : 0.0;
            float sum = 0.0;
            [[unroll]] for (int j = 0; j < KEYS; j++) {
                const float e = score[i][j] == lowest ? 0.0 : exp(score[i][j] - shift);
                const int at = tx * KEYS + j;
                sum += e;
                block[place(row, at / 4, SHARE_PITCH)][at % 4] = e;
            }
            total[i] = total[i] * scale + sum;
            [[unroll]] for (int c = 0; c < V_PIECES; c++)
                [[unroll]] for (int j = 0; j < EACH; j++) sums[i][c][j] *= scale;
        }
        [[unroll]] for (int c = 0; c < V_PIECES; c++) {
            barrier(); /* the tops were read, or the last piece */
            PUT_VALUES
            barrier();
            if (c + 1 < V_PIECES) {
                BRING_VALUES(n0, c + 1)
            } else {
                BRING_KEYS(n0 + BN, 0)
            }
            [[dont_unroll]] for (int q = 0; q < BN / 4; q++) {
                vec4 p[TM];
                [[unroll]] for (int i = 0; i < TM; i++) p[i] = block[place(ty + APART * i, q, SHARE_PITCH)];
                [[unroll]] for (int s = 0; s < 4; s++) {
                    const int at = q * 4 + s, key = at / KEYS + ACROSS * (at % KEYS);
                    [[unroll]] for (int j = 0; j < EACH; j++)
                        if (CV4 % ACROSS == 0 || tx + ACROSS * j < CV4) {
                            const vec4 v = block_values[key * CV4 + tx + ACROSS * j];
                            [[unroll]] for (int i = 0; i < TM; i++)
                                sums[i][c][j] = fma(vec4(p[i][s]), v, sums[i][c][j]);
                        }
                }
            }
        }
    }
    /* the totals of the threads of a row */
    barrier();
    [[unroll]] for (int i = 0; i < TM; i++) tell((ty + APART * i) * ACROSS + tx, total[i]);
    barrier();
    [[unroll]] for (int i = 0; i < TM; i++) {
        const int m = m0 + ty + APART * i;
        float sum = 0.0;
        [[unroll]] for (int j = 0; j < ACROSS; j++) sum += told((ty + APART * i) * ACROSS + j);
        const bool lost = EMPTY == 2 && isnan(sum), none = sum == 0.0;
        const float divisor = none ? 1.0 : sum, otherwise = EMPTY == 0 ? uintBitsToFloat(0x7fc00000u) : 0.0;
        if (M % BM == 0 || m < M) {
            [[unroll]] for (int c = 0; c < V_PIECES; c++)
                [[unroll]] for (int j = 0; j < EACH; j++)
                    [[unroll]] for (int s = 0; s < 4; s++) {
                        const int vector = tx + ACROSS * j, d = (c * CV4 + vector) * 4 + s;
                        if (vector < CV4 && d < DV) {
                            const float x = lost ? 0.0 : none ? otherwise : sums[i][c][j][s] / divisor;
                            FINISH(x, b0, b1, b2, m, d);
                        }
                    }
        }
    }
}
