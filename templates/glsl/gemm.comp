// SPDX-License-Identifier: MIT OR Apache-2.0
/* Contraction on a GPU: C[b][m][n] = FINISH(sum over k of A[b][m][k] * B[b][k][n]), sums in fp32.
 *
 * A workgroup computes a block of BM x BN, each thread TM x TN of it. Blocks of A and B, BK terms deep, go through
 * shared memory, so that each element comes from far memory once for a whole block; the next ones are on their way
 * while these are multiplied. Where there are few blocks, SLICES teams of a workgroup take every SLICES'th piece of k,
 * and their sums meet at the end.
 *
 *   BATCH M N K       sizes;  AB AR AC, BB BR BC: strides of A's batches, rows (m) and columns (k), of B's batches,
 *                     rows (k) and columns (n), in elements
 *   BM BN BK          block; BK a multiple of 4;  TM TN: of a thread, multiples of 4
 *   A_WIDE            1: four elements along k are read at once: AC is 1, AR, AB and K multiples of 4;  2: four along
 *                     m: AR is 1, AC, AB and M multiples of 4. Else 0
 *   B_WIDE            1: four along n: BC is 1, BR, BB and N multiples of 4;  2: four along k: BR is 1, BC, BB and K
 *                     multiples of 4. Else 0
 *   A_AT(i) B_AT(i)   element i of an operand;  A4_AT(i) B4_AT(i): four of them, from element 4 * i on, as a vec4
 *   FINISH(acc, b, m, n)    stores C's element
 *
 * Threads: (BM / TM) * (BN / TN) * SLICES. Groups: ceil(N / BN) x ceil(M / BM) x BATCH. */
#version 450
layout(set = 0, binding = 0, std430) buffer Memory { float memory[]; };
layout(set = 0, binding = 0, std430) buffer Memory4 { vec4 memory4[]; };
// holes
#define BATCH 1
#define M 128
#define N 768
#define K 768
#define AB 0
#define AR 768
#define AC 1
#define BB 0
#define BR 768
#define BC 1
#define BM 32
#define BN 32
#define BK 8
#define TM 4
#define TN 4
#define SLICES 4
#define A_WIDE 1
#define B_WIDE 1
#define A_AT(i) memory[i]
#define B_AT(i) memory[98304 + (i)]
#define A4_AT(i) memory4[i]
#define B4_AT(i) memory4[24576 + (i)]
#define FINISH(acc, b, m, n) memory[688128 + ((b) * M + (m)) * N + (n)] = acc
// end holes

const int ACROSS = BN / TN, TEAM = BM / TM * ACROSS, THREADS = TEAM * SLICES;
// vectors of a block, and of them those that one thread of the team brings
const int A_VECTORS = BM * BK / 4, A_EACH = (A_VECTORS + TEAM - 1) / TEAM;
const int B_VECTORS = BN * BK / 4, B_EACH = (B_VECTORS + TEAM - 1) / TEAM;

layout(local_size_x = (BM / TM) * (BN / TN) * SLICES) in;

/* in vectors, [k][m / 4] and [k][n / 4]; a row's last vector is room alone, so that stores along k meet other banks */
const int A_ROW = BM / 4 + 1, B_ROW = BN / 4 + 1, A_SIZE = BK * A_ROW, B_SIZE = BK * B_ROW;
const int BLOCKS = SLICES * (A_SIZE + B_SIZE), SUMS = SLICES > 1 ? BM * BN / 4 : 0;
shared vec4 pool[BLOCKS > SUMS ? BLOCKS : SUMS];        // the blocks, and then the teams' sums

/* Four elements of the left factor: where it is wide along k those of row m from k on, else those of rows m to m + 3 at
 * k. */
vec4 a_load(int b, int m, int k)
{
    vec4 x = vec4(0.0);
#if A_WIDE == 2
    if (m < M && k < K)
        x = A4_AT((b * AB + m + k * AC) / 4);
#elif A_WIDE == 1
    if (m < M && k < K)
        x = A4_AT((b * AB + m * AR + k) / 4);
#else
    for (int i = 0; i < 4; i++)
        if (m + i < M && k < K)
            x[i] = A_AT(b * AB + (m + i) * AR + k * AC);
#endif
    return x;
}

/* Four elements of the right factor: where it is wide along k those of column n, else those of columns n to n + 3. */
vec4 b_load(int b, int k, int n)
{
    vec4 x = vec4(0.0);
#if B_WIDE == 2
    if (k < K && n < N)
        x = B4_AT((b * BB + k + n * BC) / 4);
#elif B_WIDE == 1
    if (k < K && n < N)
        x = B4_AT((b * BB + k * BR + n) / 4);
#else
    for (int i = 0; i < 4; i++)
        if (k < K && n + i < N)
            x[i] = B_AT(b * BB + k * BR + (n + i) * BC);
#endif
    return x;
}

/* Vector i of a block: its first k, and its first m or n. Neighbouring threads read neighbours. */
ivec2 a_place(int i)
{
#if A_WIDE == 1
    return ivec2(i % (BK / 4) * 4, i / (BK / 4));
#elif A_WIDE == 0 && AC == 1
    return ivec2(i % BK, i / BK * 4);
#else
    return ivec2(i / (BM / 4), i % (BM / 4) * 4);
#endif
}

ivec2 b_place(int i)
{
#if B_WIDE == 2
    return ivec2(i % (BK / 4) * 4, i / (BK / 4));
#elif B_WIDE == 0 && BR == 1
    return ivec2(i % BK, i / BK * 4);
#else
    return ivec2(i / (BN / 4), i % (BN / 4) * 4);
#endif
}

void main()
{
    const int local = int(gl_LocalInvocationIndex), slice = local / TEAM, t = local % TEAM;
    const int ty = t / ACROSS, tx = t % ACROSS, b = int(gl_WorkGroupID.z);
    const int m0 = int(gl_WorkGroupID.y) * BM, n0 = int(gl_WorkGroupID.x) * BN;
    const int a_block = slice * A_SIZE, b_block = SLICES * A_SIZE + slice * B_SIZE;
    vec4 acc[TM][TN / 4], a_next[A_EACH], b_next[B_EACH];
    [[unroll]] for (int i = 0; i < TM; i++)
        [[unroll]] for (int j = 0; j < TN / 4; j++) acc[i][j] = vec4(0.0);
    const int steps = (K + BK * SLICES - 1) / (BK * SLICES);
    for (int step = -1; step < steps; step++) {
        /* the pieces of the step after this one, into registers */
        const int k0 = ((step + 1) * SLICES + slice) * BK;
        if (step + 1 < steps) {
            [[unroll]] for (int i = 0; i < A_EACH; i++) {
                const ivec2 at = a_place(t + i * TEAM);
                if (A_VECTORS % TEAM == 0 || t + i * TEAM < A_VECTORS)
                    a_next[i] = a_load(b, m0 + at.y, k0 + at.x);
            }
            [[unroll]] for (int i = 0; i < B_EACH; i++) {
                const ivec2 at = b_place(t + i * TEAM);
                if (B_VECTORS % TEAM == 0 || t + i * TEAM < B_VECTORS)
                    b_next[i] = b_load(b, k0 + at.x, n0 + at.y);
            }
        }
        if (step >= 0) {
            [[unroll]] for (int k = 0; k < BK; k++) {
                vec4 x[TM / 4], y[TN / 4];
                [[unroll]] for (int i = 0; i < TM / 4; i++) x[i] = pool[a_block + k * A_ROW + i * (BM / TM) + ty];
                [[unroll]] for (int j = 0; j < TN / 4; j++) y[j] = pool[b_block + k * B_ROW + j * ACROSS + tx];
                [[unroll]] for (int i = 0; i < TM; i++)
                    [[unroll]] for (int j = 0; j < TN / 4; j++)
                        acc[i][j] = fma(vec4(x[i / 4][i % 4]), y[j], acc[i][j]);
            }
        }
        barrier();
        if (step + 1 < steps) {
            [[unroll]] for (int i = 0; i < A_EACH; i++) {
                const ivec2 at = a_place(t + i * TEAM);
                if (A_VECTORS % TEAM == 0 || t + i * TEAM < A_VECTORS) {
#if A_WIDE == 1
                    [[unroll]] for (int j = 0; j < 4; j++)
                        pool[a_block + (at.x + j) * A_ROW + at.y / 4][at.y % 4] = a_next[i][j];
#else
                    pool[a_block + at.x * A_ROW + at.y / 4] = a_next[i];
#endif
                }
            }
            [[unroll]] for (int i = 0; i < B_EACH; i++) {
                const ivec2 at = b_place(t + i * TEAM);
                if (B_VECTORS % TEAM == 0 || t + i * TEAM < B_VECTORS) {
#if B_WIDE == 2
                    [[unroll]] for (int j = 0; j < 4; j++)
                        pool[b_block + (at.x + j) * B_ROW + at.y / 4][at.y % 4] = b_next[i][j];
#else
                    pool[b_block + at.x * B_ROW + at.y / 4] = b_next[i];
#endif
                }
            }
            barrier();
        }
    }
#if SLICES > 1
    /* the other teams' sums, one team after the other: the same order, and so the same bits, every time */
    for (int s = 1; s < SLICES; s++) {
        if (slice == s)
            [[unroll]] for (int i = 0; i < TM; i++)
                [[unroll]] for (int j = 0; j < TN / 4; j++)
                    pool[(i * (TN / 4) + j) * TEAM + t] = acc[i][j];
        barrier();
        if (slice == 0)
            [[unroll]] for (int i = 0; i < TM; i++)
                [[unroll]] for (int j = 0; j < TN / 4; j++)
                    acc[i][j] += pool[(i * (TN / 4) + j) * TEAM + t];
        barrier();
    }
    if (slice > 0)
        return;
#endif
    [[unroll]] for (int i = 0; i < TM; i++) {
        const int m = m0 + (i / 4 * (BM / TM) + ty) * 4 + i % 4;
        [[unroll]] for (int j = 0; j < TN; j++) {
            const int n = n0 + (j / 4 * ACROSS + tx) * 4 + j % 4;
            if ((M % BM == 0 || m < M) && (N % BN == 0 || n < N)) {
                FINISH(acc[i][j / 4][j % 4], b, m, n);
            }
        }
    }
}
