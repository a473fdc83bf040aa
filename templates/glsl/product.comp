// SPDX-License-Identifier: MIT OR Apache-2.0
/* Contraction on a GPU: C[b][m][n] = FINISH(sum over k of A[b][m][k] * B[b][k][n]), sums in fp32.
 *
 * A workgroup computes a block of BM x BN, each thread TM x TN of it. Blocks of A and B, BK terms deep, go through
 * shared memory, so that each element comes from far memory once for a whole block; the next ones are on their way
 * while these are multiplied, and with two STAGES they are written where nobody reads yet, which spares a barrier.
 * Where there are few blocks, SLICES teams of a workgroup take every SLICES'th piece of k, and SHARES workgroups a
 * share each: all but the last to be done leave their sums in memory, and that one adds them up, always in the same
 * order.
 *
 *   BATCH M N K       sizes
 *   BM BN BK          block; BK a multiple of 4;  TM TN: of a thread, multiples of 4
 *   A_WIDE            1: A4_AT(b, m, k) is the four elements from k on, of one row, where K and k are multiples of 4;
 *                     2: the four from m on, of one column, where M and m are.  0: there is no such thing
 *   B_WIDE            the same of B4_AT(b, k, n): 1 from k on, 2 from n on
 * and of factors that are not wide
 *   A_OWN B_OWN       what an element's place needs of its row (b, m) or column (b, n), made once: a type, and
 *   A_OWN_AT(b, m) B_OWN_AT(b, n)  its value, anything where m >= M or n >= N
 *   A_AT(own, k) B_AT(own, k)      an element, which may be computed: the window of a convolution
 *   A_RUNS B_RUNS     do neighbours in memory lie along the terms?
 *   PART(i) COUNT(i)  where SHARES > 1: vector i of the sums, SHARES * BM * BN / 4 for each block; counter i, one for
 *                     each block, 0 before and after
 *   FINISH(acc, b, m, n)    stores C's element
 *   FOUR MULTIPLY(x, y, sum)   what four elements, or sums, are: vec4, or ivec4 of words of four bytes each, which K and
 *                     k count then; and x * y + sum, of elements and of fours of them
 *
 * Threads: (BM / TM) * (BN / TN) * SLICES. Groups: ceil(N / BN) x ceil(M / BM) x (BATCH * SHARES). */
#version 450
layout(set = 0, binding = 0, std430) buffer Memory { float memory[]; };
layout(set = 0, binding = 0, std430) buffer Memory4 { vec4 memory4[]; };
layout(set = 0, binding = 0, std430) coherent buffer Parts { vec4 parts[]; };
layout(set = 0, binding = 0, std430) coherent buffer Counts { uint counts[]; };
// holes
#define BATCH 1
#define M 128
#define N 768
#define K 768
#define BM 32
#define BN 32
#define BK 8
#define TM 4
#define TN 4
#define SLICES 4
#define SHARES 2
#define STAGES 2
#define A_WIDE 1
#define B_WIDE 2
#define A_RUNS 1
#define B_RUNS 0
#define A_OWN int
#define B_OWN int
#define A_OWN_AT(b, m) (m) * K
#define B_OWN_AT(b, n) (n)
#define A_AT(own, k) memory[(own) + (k)]
#define B_AT(own, k) memory[98304 + (k) * N + (own)]
#define A4_AT(b, m, k) memory4[((m) * K + (k)) / 4]
#define B4_AT(b, k, n) memory4[24576 + ((k) * N + (n)) / 4]
#define PART(i) parts[196608 + (i)]
#define COUNT(i) counts[1179648 + (i)]
#define FINISH(acc, b, m, n) memory[688128 + ((b) * M + (m)) * N + (n)] = acc
#define FOUR vec4
#define MULTIPLY(x, y, sum) fma(x, y, sum)
// end holes

const int ACROSS = BN / TN, TEAM = BM / TM * ACROSS;
// vectors of a block, and of them those that one thread of the team brings
const int A_VECTORS = BM * BK / 4, A_EACH = (A_VECTORS + TEAM - 1) / TEAM;
const int B_VECTORS = BN * BK / 4, B_EACH = (B_VECTORS + TEAM - 1) / TEAM;
const int STEPS = (K + BK * SLICES * SHARES - 1) / (BK * SLICES * SHARES);
/* in vectors, [k][m / 4] and [k][n / 4]; a row's last vector is room alone, so that stores along k meet other banks */
const int A_ROW = BM / 4 + 1, B_ROW = BN / 4 + 1, A_SIZE = BK * A_ROW, B_SIZE = BK * B_ROW;
const int BLOCKS = STAGES * SLICES * (A_SIZE + B_SIZE), SUMS = SLICES > 1 ? BM * BN / 4 : 0;

layout(local_size_x = (BM / TM) * (BN / TN) * SLICES) in;

shared FOUR pool[BLOCKS > SUMS ? BLOCKS : SUMS];        // the blocks, and then the teams' sums
#if SHARES > 1
shared bool last;
#endif

/* Vector i of a block of so many rows or columns: its first k, and its first m or n. Neighbouring threads read
 * neighbours: vectors along the terms, elements along them, vectors across. */
ivec2 place(int i, const int across, const int wide, const int runs)
{
    return wide == 1              ? ivec2(i % (BK / 4) * 4, i / (BK / 4))
        : wide == 0 && runs == 1 ? ivec2(i % BK, i / BK * 4)
                                 : ivec2(i / (across / 4), i % (across / 4) * 4);
}

void main()
{
    const int local = int(gl_LocalInvocationIndex), slice = local / TEAM, t = local % TEAM;
    const int ty = t / ACROSS, tx = t % ACROSS, b = int(gl_WorkGroupID.z) / SHARES;
    const int m0 = int(gl_WorkGroupID.y) * BM, n0 = int(gl_WorkGroupID.x) * BN;
    const int share = int(gl_WorkGroupID.z) % SHARES, first = (share * STEPS * SLICES + slice) * BK;
    FOUR acc[TM][TN / 4], a_next[A_EACH], b_next[B_EACH];
    [[unroll]] for (int i = 0; i < TM; i++)
        [[unroll]] for (int j = 0; j < TN / 4; j++) acc[i][j] = FOUR(0);
#if !A_WIDE
    A_OWN a_own[A_EACH * 4];
    [[unroll]] for (int i = 0; i < A_EACH * 4; i++)
        a_own[i] = A_OWN_AT(b, m0 + place(t + i / 4 * TEAM, BM, 0, A_RUNS).y + i % 4);
#endif
#if !B_WIDE
    B_OWN b_own[B_EACH * 4];
    [[unroll]] for (int i = 0; i < B_EACH * 4; i++)
        b_own[i] = B_OWN_AT(b, n0 + place(t + i / 4 * TEAM, BN, 0, B_RUNS).y + i % 4);
#endif
    for (int step = -1; step < STEPS; step++) {
        /* the pieces of the step after this one, into registers: four elements along k where a factor is wide so, else
         * those of rows m to m + 3, or columns, at k */
        const int k0 = first + (step + 1) * SLICES * BK;
        if (step + 1 < STEPS) {
            [[unroll]] for (int i = 0; i < A_EACH; i++) {
                const ivec2 at = place(t + i * TEAM, BM, A_WIDE, A_RUNS);
                const bool within = (A_VECTORS % TEAM == 0 || t + i * TEAM < A_VECTORS)
                    && (K % (BK * SLICES * SHARES) == 0 || k0 + at.x < K);
                a_next[i] = FOUR(0);
#if A_WIDE
                if (within && (M % BM == 0 || m0 + at.y < M))
                    a_next[i] = A4_AT(b, m0 + at.y, k0 + at.x);
#else
                [[unroll]] for (int j = 0; j < 4; j++)
                    if (within && (M % BM == 0 || m0 + at.y + j < M))
                        a_next[i][j] = A_AT(a_own[4 * i + j], k0 + at.x);
#endif
            }
            [[unroll]] for (int i = 0; i < B_EACH; i++) {
                const ivec2 at = place(t + i * TEAM, BN, B_WIDE, B_RUNS);
                const bool within = (B_VECTORS % TEAM == 0 || t + i * TEAM < B_VECTORS)
                    && (K % (BK * SLICES * SHARES) == 0 || k0 + at.x < K);
                b_next[i] = FOUR(0);
#if B_WIDE
                if (within && (N % BN == 0 || n0 + at.y < N))
                    b_next[i] = B4_AT(b, k0 + at.x, n0 + at.y);
#else
                [[unroll]] for (int j = 0; j < 4; j++)
                    if (within && (N % BN == 0 || n0 + at.y + j < N))
                        b_next[i][j] = B_AT(b_own[4 * i + j], k0 + at.x);
#endif
            }
        }
        if (step >= 0) {
            const int stage = (STAGES == 1 ? 0 : step & 1) * SLICES + slice;
            const int a_block = stage * A_SIZE, b_block = STAGES * SLICES * A_SIZE + stage * B_SIZE;
            [[unroll]] for (int k = 0; k < BK; k++) {
                FOUR x[TM / 4], y[TN / 4];
                [[unroll]] for (int i = 0; i < TM / 4; i++) x[i] = pool[a_block + k * A_ROW + i * (BM / TM) + ty];
                [[unroll]] for (int j = 0; j < TN / 4; j++) y[j] = pool[b_block + k * B_ROW + j * ACROSS + tx];
                [[unroll]] for (int i = 0; i < TM; i++)
                    [[unroll]] for (int j = 0; j < TN / 4; j++)
                        acc[i][j] = MULTIPLY(FOUR(x[i / 4][i % 4]), y[j], acc[i][j]);
            }
        }
#if STAGES == 1
        barrier();
#endif
        if (step + 1 < STEPS) {
            const int stage = (STAGES == 1 ? 0 : (step + 1) & 1) * SLICES + slice;
            const int a_block = stage * A_SIZE, b_block = STAGES * SLICES * A_SIZE + stage * B_SIZE;
            [[unroll]] for (int i = 0; i < A_EACH; i++) {
                const ivec2 at = place(t + i * TEAM, BM, A_WIDE, A_RUNS);
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
                const ivec2 at = place(t + i * TEAM, BN, B_WIDE, B_RUNS);
                if (B_VECTORS % TEAM == 0 || t + i * TEAM < B_VECTORS) {
#if B_WIDE == 1
                    [[unroll]] for (int j = 0; j < 4; j++)
                        pool[b_block + (at.x + j) * B_ROW + at.y / 4][at.y % 4] = b_next[i][j];
#else
                    pool[b_block + at.x * B_ROW + at.y / 4] = b_next[i];
#endif
                }
            }
        }
        barrier();
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
#endif
#if SHARES > 1
    const int block = (b * ((M + BM - 1) / BM) + int(gl_WorkGroupID.y)) * ((N + BN - 1) / BN) + int(gl_WorkGroupID.x);
    if (slice == 0)
        [[unroll]] for (int i = 0; i < TM; i++)
            [[unroll]] for (int j = 0; j < TN / 4; j++)
                PART((block * SHARES + share) * (BM * BN / 4) + (i * (TN / 4) + j) * TEAM + t) = acc[i][j];
    memoryBarrierBuffer();
    barrier();
    if (local == 0)
        last = atomicAdd(COUNT(block), 1u) == SHARES - 1;
    barrier();
    if (!last)
        return;
    memoryBarrierBuffer();
    if (local == 0)
        COUNT(block) = 0u;
#endif
    if (slice > 0)
        return;
#if SHARES > 1
    /* a share's vectors are all on their way before the first is added: the way is long */
    [[unroll]] for (int i = 0; i < TM; i++)
        [[unroll]] for (int j = 0; j < TN / 4; j++) acc[i][j] = FOUR(0);
    for (int s = 0; s < SHARES; s++) {
        FOUR part[TM][TN / 4];
        [[unroll]] for (int i = 0; i < TM; i++)
            [[unroll]] for (int j = 0; j < TN / 4; j++)
                part[i][j] = PART((block * SHARES + s) * (BM * BN / 4) + (i * (TN / 4) + j) * TEAM + t);
        [[unroll]] for (int i = 0; i < TM; i++)
            [[unroll]] for (int j = 0; j < TN / 4; j++) acc[i][j] += part[i][j];
    }
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
