// SPDX-License-Identifier: MIT OR Apache-2.0
/* Contraction of few rows on a GPU: C[b][m][n] = FINISH(sum over k of A[b][m][k] * B[b][k][n]), sums in fp32.
 *
 * Memory bounds it: each element of B, a matrix of weights, is read once, and four at once. A workgroup has
 * 4 * ACROSS columns, each thread four of them and every ALONG'th four terms; neighbouring threads read what lies
 * together. Threads of the same columns add up their sums as a tree, in shared memory. Where there are few workgroups,
 * SHARES of them have a share of the terms each: all but the last to be done leave their sums in memory, and that one
 * adds them up, always in the same order. A may be a norm of its rows, which each workgroup makes in shared memory
 * while its first elements of B are on their way: TEAM threads add up each row, as in rowwise.comp.
 *
 *   BATCH M N K       sizes; M up to 8
 *   ACROSS ALONG      threads, powers of two
 *   A_WIDE            1: A4_AT(b, m, k) is the four elements from k on, of one row, where k is a multiple of 4.  Else 0
 *   B_WIDE            1: B4_AT(b, k, n) is the four elements from k on, of one column;  2: from n on, of one term. All
 *                     of them exist where the first does: K, or N, is a multiple of 4.  0: there is no such thing, and
 *                     neighbours in memory lie along the columns, of which a thread has every ACROSS'th
 *   PREPARED          1: the rows of A are what SET(kept, row, column) makes of them, by set_left(row, column, x);
 *                     STAGES, KEPT, KEPT_AT, BEGIN, ADD, PUT, JOIN as in rowwise.comp, KEPT_WORDS of an element.  0:
 *                     they are in memory
 *   FLIGHT            so many fours of a thread are on their way at a time; where B_WIDE is not 0
 *   A_OWN, A_OWN_AT(b, m), A_AT(own, k), B_OWN, B_OWN_AT(b, n), B_AT(own, k)   where they are 0: as in product.comp
 *   PART(i) COUNT(i)  where SHARES > 1: vector i of the sums, SHARES * M * ACROSS for each workgroup's columns; counter
 *                     i, one for those columns, 0 before and after
 *   FINISH(acc, b, m, n)    stores C's element
 *   FOUR MULTIPLY(x, y, sum)   what four elements, or sums, are: vec4, or ivec4 of words of four bytes each, which K and
 *                     k count then; and x * y + sum, of elements and of fours of them
 *
 * Threads: ACROSS * ALONG. Groups: ceil(N / (4 * ACROSS)) x SHARES x BATCH. */
#version 450
layout(set = 0, binding = 0, std430) buffer Memory { float memory[]; };
layout(set = 0, binding = 0, std430) buffer Memory4 { vec4 memory4[]; };
layout(set = 0, binding = 0, std430) coherent buffer Parts { vec4 parts[]; };
layout(set = 0, binding = 0, std430) coherent buffer Counts { uint counts[]; };
// holes
#define BATCH 1
#define M 2
#define N 768
#define K 768
#define ACROSS 8
#define ALONG 16
#define SHARES 4
#define A_WIDE 1
#define B_WIDE 2
#define FLIGHT 2
#define PREPARED 0
#define STAGES 0
#define KEPT_WORDS 1
#define KEPT float
#define KEPT_AT(row, column) 0.0
#define BEGIN(s)
#define ADD(s, kept, row, column)
#define PUT(s, at)
#define JOIN(s, at)
#define SET(kept, row, column)
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

const int EACH = (K + SHARES * 4 * ALONG - 1) / (SHARES * 4 * ALONG);           // fours of a thread
const int TOGETHER = SHARES % 16 == 0 ? 16 : SHARES % 4 == 0 ? 4 : 1;           // shares that are read at once

layout(local_size_x = ACROSS * ALONG) in;

#if ALONG > 1
shared FOUR tree[M * ACROSS * ALONG];
#endif
#if SHARES > 1
shared bool last;
#endif

FOUR acc[M];                                            // of four columns
#if !A_WIDE && !PREPARED
A_OWN a_own[M];
#endif
#if !B_WIDE
B_OWN b_own[4];
#endif

#if PREPARED
const int MEMBERS = M > 4 ? 8 : M > 2 ? 4 : M;          /* rows at a time, a power of two */
const int TEAM = ACROSS * ALONG / MEMBERS, NEAR = TEAM < 16 ? TEAM : 16, OF_THREAD = (K + TEAM - 1) / TEAM;
const int KEPT_EACH = OF_THREAD < 64 / KEPT_WORDS ? OF_THREAD : 64 / KEPT_WORDS, K4 = (K + 3) / 4;
shared vec4 left[M * K4];

void set_left(const int row, const int column, const float x) { left[row * K4 + column / 4][column % 4] = x; }

/* What the threads of a row came to in a stage. */
void meet(const int stage, const int local)
{
    PUT(stage, local);
    barrier();
    BEGIN(stage);
    for (int i = 0; i < NEAR; i++) {
        JOIN(stage, local / NEAR * NEAR + i);
    }
    barrier();
    PUT(stage, local);
    barrier();
    BEGIN(stage);
    for (int i = 0; i < TEAM; i += NEAR) {
        JOIN(stage, local / TEAM * TEAM + i);
    }
}

/* The rows, and 0 behind their last elements. */
void prepare(const int local)
{
    const int rank = local % TEAM, row = min(local / TEAM, M - 1);
    const bool live = local / TEAM < M;
    KEPT kept[KEPT_EACH];
    [[unroll]] for (int i = 0; i < KEPT_EACH; i++)
        if (K % TEAM == 0 || i * TEAM + rank < K)
            kept[i] = KEPT_AT(row, i * TEAM + rank);
    [[unroll]] for (int stage = 0; stage < STAGES; stage++) {
        BEGIN(stage);
        [[unroll]] for (int i = 0; i < KEPT_EACH; i++)
            if (K % TEAM == 0 || i * TEAM + rank < K) {
                ADD(stage, kept[i], row, i * TEAM + rank);
            }
        for (int column = KEPT_EACH * TEAM + rank; column < K; column += TEAM) {
            const KEPT other = KEPT_AT(row, column);
            ADD(stage, other, row, column);
        }
        meet(stage, local);
    }
    [[unroll]] for (int i = 0; i < KEPT_EACH; i++)
        if (live && (K % TEAM == 0 || i * TEAM + rank < K)) {
            SET(kept[i], row, i * TEAM + rank);
        }
    for (int column = KEPT_EACH * TEAM + rank; live && column < K; column += TEAM) {
        const KEPT other = KEPT_AT(row, column);
        SET(other, row, column);
    }
    for (int column = K + rank; live && column < K4 * 4; column += TEAM) set_left(row, column, 0.0);
    barrier();
}
#endif

/* What the thread has of B from k on: with B_WIDE 1 four terms of column j each, else four columns of term j. */
void bring(const int b, const int k, const int n0, out FOUR y[4])
{
    [[unroll]] for (int j = 0; j < 4; j++) {
        y[j] = FOUR(0);
#if B_WIDE == 1
        if (N % 4 == 0 || n0 + j < N)
            y[j] = B4_AT(b, k, n0 + j);
#else
#if B_WIDE == 2
        if (K % 4 == 0 || k + j < K)
            y[j] = B4_AT(b, k + j, n0);
#else
        [[unroll]] for (int t = 0; t < 4; t++)
            if ((K % 4 == 0 || k + j < K) && (N % (4 * ACROSS) == 0 || n0 + t * ACROSS < N))
                y[j][t] = B_AT(b_own[t], k + j);
#endif
#endif
    }
}

/* Those times the rows. */
void take(const int b, const int k, const FOUR y[4])
{
    [[unroll]] for (int m = 0; m < M; m++) {
        FOUR x = FOUR(0);
#if PREPARED
        x = left[m * K4 + k / 4];
#elif A_WIDE
        x = A4_AT(b, m, k);
#else
        [[unroll]] for (int j = 0; j < 4; j++)
            if (K % 4 == 0 || k + j < K)
                x[j] = A_AT(a_own[m], k + j);
#endif
        [[unroll]] for (int j = 0; j < 4; j++) {
#if B_WIDE == 1
            [[unroll]] for (int t = 0; t < 4; t++) acc[m][j] = MULTIPLY(x[t], y[j][t], acc[m][j]);
#else
            acc[m] = MULTIPLY(FOUR(x[j]), y[j], acc[m]);
#endif
        }
    }
}

void main()
{
    const int local = int(gl_LocalInvocationIndex), b = int(gl_WorkGroupID.z), share = int(gl_WorkGroupID.y);
#if B_WIDE == 1
    const int across = local / ALONG, along = local % ALONG;
#else
    const int across = local % ACROSS, along = local / ACROSS;
#endif
    /* the columns: n0, n0 + apart, ... */
#if B_WIDE
    const int n0 = (int(gl_WorkGroupID.x) * ACROSS + across) * 4, apart = 1;
#else
    const int n0 = int(gl_WorkGroupID.x) * ACROSS * 4 + across, apart = ACROSS;
    [[unroll]] for (int j = 0; j < 4; j++) b_own[j] = B_OWN_AT(b, n0 + j * apart);
#endif
    [[unroll]] for (int m = 0; m < M; m++) acc[m] = FOUR(0);
#if !A_WIDE && !PREPARED
    [[unroll]] for (int m = 0; m < M; m++) a_own[m] = A_OWN_AT(b, m);
#endif
    const int first = (share * EACH * ALONG + along) * 4;
    const int steps = n0 < N && first < K ? min(EACH, (K - first + 4 * ALONG - 1) / (4 * ALONG)) : 0;
    int i = 0;
#if PREPARED
    FOUR early[FLIGHT][4];
    [[unroll]] for (int f = 0; f < FLIGHT; f++)
        if (f < steps)
            bring(b, first + f * 4 * ALONG, n0, early[f]);
    prepare(local);
    [[unroll]] for (int f = 0; f < FLIGHT; f++)
        if (f < steps)
            take(b, first + f * 4 * ALONG, early[f]);
    i = FLIGHT;
#endif
#if FLIGHT > 1
    for (; i + FLIGHT <= steps; i += FLIGHT) {
        FOUR y[FLIGHT][4];
        [[unroll]] for (int f = 0; f < FLIGHT; f++) bring(b, first + (i + f) * 4 * ALONG, n0, y[f]);
        [[unroll]] for (int f = 0; f < FLIGHT; f++) take(b, first + (i + f) * 4 * ALONG, y[f]);
    }
#endif
    for (; i < steps; i++) {
        FOUR y[4];
        bring(b, first + i * 4 * ALONG, n0, y);
        take(b, first + i * 4 * ALONG, y);
    }
#if ALONG > 1
    [[unroll]] for (int m = 0; m < M; m++) tree[(m * ALONG + along) * ACROSS + across] = acc[m];
    [[unroll]] for (int left = ALONG; left > 1; left = (left + 7) / 8) {
        const int next = (left + 7) / 8;
        barrier();
        if (along < next)
            [[unroll]] for (int m = 0; m < M; m++) {
                [[unroll]] for (int i = next; i < left; i += next)
                    acc[m] += tree[(m * ALONG + along + i) * ACROSS + across];
                tree[(m * ALONG + along) * ACROSS + across] = acc[m];
            }
    }
#endif
#if SHARES > 1
    const int block = b * ((N + 4 * ACROSS - 1) / (4 * ACROSS)) + int(gl_WorkGroupID.x);
    if (along == 0)
        [[unroll]] for (int m = 0; m < M; m++)
            PART(((block * SHARES + share) * M + m) * ACROSS + across) = acc[m];
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
    if (along == 0)
        [[unroll]] for (int m = 0; m < M; m++) {
            acc[m] = FOUR(0);
            /* many are on their way before the first is added */
            for (int s0 = 0; s0 < SHARES; s0 += TOGETHER) {
                FOUR parts_of[TOGETHER];
                [[unroll]] for (int s = 0; s < TOGETHER; s++)
                    parts_of[s] = PART(((block * SHARES + s0 + s) * M + m) * ACROSS + across);
                [[unroll]] for (int s = 0; s < TOGETHER; s++) acc[m] += parts_of[s];
            }
        }
#endif
    if (along > 0)
        return;
    [[unroll]] for (int m = 0; m < M; m++)
        [[unroll]] for (int j = 0; j < 4; j++)
            if (N % (4 * ACROSS) == 0 || n0 + j * apart < N) {
                FINISH(acc[m][j], b, m, n0 + j * apart);
            }
}
