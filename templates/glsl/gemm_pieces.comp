// SPDX-License-Identifier: MIT OR Apache-2.0
/* Contraction in f32 on a GPU's matrix units: C[b][m][n] = FINISH(sum over k of A[b][m][k] * B[b][k][n]).
 *
 * A float is the sum of three bfloat16 numbers, exactly: each has the 8 bits that the one before left. Of the nine
 * products of two floats' pieces the three smallest are below the last bit of a float's product; the other six are
 * matrix units' work, which is faster than one multiplication of floats where these do not have units. Sums of 16 terms
 * come from the units, which cut bits off as they add; they are added up in f32. A sum that is not finite is made once
 * more, of the factors as they are: an infinity has no pieces.
 *
 * A workgroup computes a block of BM x BN, each of its subgroups WM x WN of it, in matrices of 16 x 16. Blocks of A and
 * B, BK terms deep, go through shared memory in pieces, in vectors of eight; the next ones are on their way while these
 * are multiplied. SHARES workgroups take a share each of a block's terms: all but the last to be done leave their sums
 * in memory, and that one adds them up, always in the same order.
 *
 *   BATCH M N K       sizes
 *   BM BN BK          block;  WM WN: of a subgroup; multiples of 16
 *   BUFFERS           1, or 2: a block's successor has room of its own, which saves a barrier
 *   A_WIDE            1: A4_AT(b, m, k) is the four elements from k on, of one row, where K and k are multiples of 4;
 *                     2: the four from m on, of one column, where M and m are.  0: there is no such thing
 *   B_WIDE            the same of B4_AT(b, k, n): 1 from k on, 2 from n on
 * and of factors that are not wide
 *   A_OWN B_OWN       what an element's place needs of its row (b, m) or column (b, n), made once: a type, and
 *   A_OWN_AT(b, m) B_OWN_AT(b, n)  its value, anything where m >= M or n >= N
 *   A_AT(own, k) B_AT(own, k)      an element
 *   A_RUNS B_RUNS     do neighbours in memory lie along the terms?
 *   PART(i) COUNT(i)  where SHARES > 1: vector i of the sums, SHARES * BM * BN / 4 for each block; counter i, one for
 *                     each block, 0 before and after
 *   FINISH(acc, b, m, n)    stores C's element
 *
 * Threads: 32 * (BM / WM) * (BN / WN). Groups: ceil(N / BN) x ceil(M / BM) x (BATCH * SHARES). */
#version 450
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_NV_cooperative_matrix : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_GOOGLE_include_directive : require
#include "units.glsl"
layout(set = 0, binding = 0, std430) buffer Memory { float memory[]; };
layout(set = 0, binding = 0, std430) buffer Memory4 { vec4 memory4[]; };
layout(set = 0, binding = 0, std430) coherent buffer Parts { vec4 parts[]; };
layout(set = 0, binding = 0, std430) coherent buffer Counts { uint counts[]; };
// holes
#define BATCH 1
#define M 128
#define N 768
#define K 768
#define BM 64
#define BN 64
#define BK 16
#define WM 32
#define WN 32
#define SHARES 2
#define BUFFERS 2
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
// end holes

/* Do a block's vectors run along k, as the elements lie? */
#define A_ALONG_K (A_WIDE == 1 || (A_WIDE == 0 && A_RUNS == 1))
#define B_ALONG_K (B_WIDE == 1 || (B_WIDE == 0 && B_RUNS == 1))

const int LANES = 32, ACROSS = BN / WN, TEAM = BM / WM * ACROSS, THREADS = LANES * TEAM, PIECES = 3;
/* A block's rows: of each piece so many vectors, and one more, so that rows begin in other banks. */
#if A_ALONG_K
const int A_PART = BK / 8, A_ROW = PIECES * A_PART + 1, A_SIZE = BM * A_ROW;
#else
const int A_PART = BM / 8, A_ROW = PIECES * A_PART + 1, A_SIZE = BK * A_ROW;
#endif
#if B_ALONG_K
const int B_PART = BK / 8, B_ROW = PIECES * B_PART + 1, B_SIZE = BN * B_ROW;
#else
const int B_PART = BN / 8, B_ROW = PIECES * B_PART + 1, B_SIZE = BK * B_ROW;
#endif
// vectors of a piece of a block; those that a thread brings
const int A_VECTORS = BM * BK / 8, A_EACH = (A_VECTORS + THREADS - 1) / THREADS;
const int B_VECTORS = BN * BK / 8, B_EACH = (B_VECTORS + THREADS - 1) / THREADS;
const int BUFFER = A_SIZE + B_SIZE;
// sums of 16 rows of each subgroup, on their way out
const int STRIP_ROW = WN / 4 + 1, STRIP = 16 * STRIP_ROW, STRIPS = STRIP * TEAM;
// nothing of a block lies outside
const bool A_WHOLE = M % BM == 0 && K % BK == 0, B_WHOLE = N % BN == 0 && K % BK == 0;
const int STEPS = (K + BK - 1) / BK, EACH_STEPS = (STEPS + SHARES - 1) / SHARES;      // all, and of a share
const int FOURS = BM * BN / 4, TOGETHER = SHARES < 32 ? 32 / SHARES : 1;        // sums of a block; vectors on their way

layout(local_size_x = 32 * (BM / WM) * (BN / WN)) in;

shared uvec4 block[BUFFER * BUFFERS > STRIPS ? BUFFER * BUFFERS : STRIPS];
#if SHARES > 1
shared bool last;
#endif

#define SUM_OF(x, y) ((x) + (y))

struct Eight { vec4 low, high; };
Eight a_next[A_EACH], b_next[B_EACH];                   // of the next step, on their way
#if A_WIDE == 0
const int A_OWNS = A_RUNS == 1 ? 1 : 8;
A_OWN a_own[A_EACH * A_OWNS];
#endif
#if B_WIDE == 0
const int B_OWNS = B_RUNS == 1 ? 1 : 8;
B_OWN b_own[B_EACH * B_OWNS];
#endif

/* The first piece of eight numbers, which leave what it does not have. */
uvec4 piece_of(inout Eight x)
{
    const uvec4 low = floatBitsToUint(x.low) & 0xFFFF0000u, high = floatBitsToUint(x.high) & 0xFFFF0000u;
    x.low -= uintBitsToFloat(low);
    x.high -= uintBitsToFloat(high);
    return uvec4(low.x >> 16 | low.y, low.z >> 16 | low.w, high.x >> 16 | high.y, high.z >> 16 | high.w);
}

float a_element(int b, int m, int k)
{
#if A_WIDE == 1
    return A4_AT(b, m, k / 4 * 4)[k % 4];
#elif A_WIDE == 2
    return A4_AT(b, m / 4 * 4, k)[m % 4];
#else
    return A_AT(A_OWN_AT(b, m), k);
#endif
}

float b_element(int b, int k, int n)
{
#if B_WIDE == 1
    return B4_AT(b, k / 4 * 4, n)[k % 4];
#elif B_WIDE == 2
    return B4_AT(b, k, n / 4 * 4)[n % 4];
#else
    return B_AT(B_OWN_AT(b, n), k);
#endif
}

/* A sum as it should be: of some terms of row m and column n. */
float checked(float sum, int b, int m, int n, int first, int end)
{
    if ((floatBitsToUint(sum) & 0x7F800000u) != 0x7F800000u || m >= M || n >= N)
        return sum;
    sum = 0.0;
    for (int k = first; k < min(end, K); k++) sum = fma(a_element(b, m, k), b_element(b, k, n), sum);
    return sum;
}

/* The places of this thread's vectors, as far as the terms do not change them. */
void own(int b, ivec2 at)
{
#if A_WIDE == 0
    [[unroll]] for (int i = 0; i < A_EACH * A_OWNS; i++) {
        const int m = place(int(gl_LocalInvocationIndex) + i / A_OWNS * THREADS, A_PART, A_ALONG_K).x;
        a_own[i] = A_OWN_AT(b, at.x + m + i % A_OWNS);
    }
#endif
#if B_WIDE == 0
    [[unroll]] for (int i = 0; i < B_EACH * B_OWNS; i++) {
        const int n = place(int(gl_LocalInvocationIndex) + i / B_OWNS * THREADS, B_PART, B_ALONG_K).x;
        b_own[i] = B_OWN_AT(b, at.y + n + i % B_OWNS);
    }
#endif
}

/* The elements of the block at `at` of BK terms from k0 on, into registers. */
void fetch(int b, ivec2 at, int k0)
{
    [[unroll]] for (int i = 0; i < A_EACH; i++) {
        const int v = int(gl_LocalInvocationIndex) + i * THREADS;
        const ivec2 p = place(v, A_PART, A_ALONG_K);
        const int m = at.x + p.x, k = k0 + p.y;
        const bool mine = A_VECTORS % THREADS == 0 || v < A_VECTORS;
        a_next[i] = Eight(vec4(0.0), vec4(0.0));
#if A_WIDE == 1
        if (mine && (A_WHOLE || (m < M && k < K)))
            a_next[i].low = A4_AT(b, m, k);
        if (mine && (A_WHOLE || (m < M && k + 4 < K)))
            a_next[i].high = A4_AT(b, m, k + 4);
#elif A_WIDE == 2
        if (mine && (A_WHOLE || (m < M && k < K)))
            a_next[i].low = A4_AT(b, m, k);
        if (mine && (A_WHOLE || (m + 4 < M && k < K)))
            a_next[i].high = A4_AT(b, m + 4, k);
#else
        [[unroll]] for (int j = 0; j < 8; j++) {
            const int down = A_RUNS == 1 ? 0 : j, along = A_RUNS == 1 ? j : 0;
            float x = 0.0;
            if (mine && (A_WHOLE || (m + down < M && k + along < K)))
                x = A_AT(a_own[i * A_OWNS + down], k + along);
            if (j < 4) a_next[i].low[j % 4] = x;
            else a_next[i].high[j % 4] = x;
        }
#endif
    }
    [[unroll]] for (int i = 0; i < B_EACH; i++) {
        const int v = int(gl_LocalInvocationIndex) + i * THREADS;
        const ivec2 p = place(v, B_PART, B_ALONG_K);
        const int n = at.y + p.x, k = k0 + p.y;
        const bool mine = B_VECTORS % THREADS == 0 || v < B_VECTORS;
        b_next[i] = Eight(vec4(0.0), vec4(0.0));
#if B_WIDE == 1
        if (mine && (B_WHOLE || (n < N && k < K)))
            b_next[i].low = B4_AT(b, k, n);
        if (mine && (B_WHOLE || (n < N && k + 4 < K)))
            b_next[i].high = B4_AT(b, k + 4, n);
#elif B_WIDE == 2
        if (mine && (B_WHOLE || (n < N && k < K)))
            b_next[i].low = B4_AT(b, k, n);
        if (mine && (B_WHOLE || (n + 4 < N && k < K)))
            b_next[i].high = B4_AT(b, k, n + 4);
#else
        [[unroll]] for (int j = 0; j < 8; j++) {
            const int down = B_RUNS == 1 ? 0 : j, along = B_RUNS == 1 ? j : 0;
            float x = 0.0;
            if (mine && (B_WHOLE || (n + down < N && k + along < K)))
                x = B_AT(b_own[i * B_OWNS + down], k + along);
            if (j < 4) b_next[i].low[j % 4] = x;
            else b_next[i].high[j % 4] = x;
        }
#endif
    }
}

/* What was fetched, in pieces into shared memory. */
void put(int base)
{
    [[unroll]] for (int i = 0; i < A_EACH; i++) {
        const int v = int(gl_LocalInvocationIndex) + i * THREADS, to = base + line_of(v, A_PART) * A_ROW + v % A_PART;
        if (A_VECTORS % THREADS == 0 || v < A_VECTORS) {
            block[to] = piece_of(a_next[i]);
            block[to + A_PART] = piece_of(a_next[i]);
            block[to + 2 * A_PART] = piece_of(a_next[i]);
        }
    }
    [[unroll]] for (int i = 0; i < B_EACH; i++) {
        const int v = int(gl_LocalInvocationIndex) + i * THREADS;
        const int to = base + A_SIZE + line_of(v, B_PART) * B_ROW + v % B_PART;
        if (B_VECTORS % THREADS == 0 || v < B_VECTORS) {
            block[to] = piece_of(b_next[i]);
            block[to + B_PART] = piece_of(b_next[i]);
            block[to + 2 * B_PART] = piece_of(b_next[i]);
        }
    }
}

#define LOAD_A(x, piece) \
    [[unroll]] for (int i = 0; i < WM / 16; i++) \
        coopMatLoadNV(x[i], block, base + (piece) * A_PART + \
            (A_ALONG_K ? (my + i * 16) * A_ROW + k / 8 : k * A_ROW + (my + i * 16) / 8), A_ROW, !A_ALONG_K);
#define LOAD_B(y, piece) \
    coopMatLoadNV(y, block, base + A_SIZE + (piece) * B_PART + \
        (B_ALONG_K ? (nx + j * 16) * B_ROW + k / 8 : k * B_ROW + (nx + j * 16) / 8), B_ROW, B_ALONG_K);
#define ADD_PRODUCTS(x, y) \
    [[unroll]] for (int i = 0; i < WM / 16; i++) sum[i] = coopMatMulAddNV(x[i], y, sum[i]);

void main()
{
    const int local = int(gl_LocalInvocationIndex), part = int(gl_SubgroupID), lane = int(gl_SubgroupInvocationID);
    const int b = int(gl_WorkGroupID.z) / SHARES, share = int(gl_WorkGroupID.z) % SHARES;
    const int my = part / ACROSS * WM, nx = part % ACROSS * WN;    // this subgroup's part of the block
    const int first = share * EACH_STEPS, stop = min(first + EACH_STEPS, STEPS);
    const ivec2 at = block_place((M + BM - 1) / BM, (N + BN - 1) / BN) * ivec2(BM, BN);
    MATRIX_C acc[WM / 16][WN / 16];
    own(b, at);
    [[unroll]] for (int i = 0; i < WM / 16; i++)
        [[unroll]] for (int j = 0; j < WN / 16; j++) acc[i][j] = MATRIX_C(0.0);
    fetch(b, at, first * BK);
    put(0);
    if (first + 1 < stop)
        fetch(b, at, (first + 1) * BK);
    barrier();
    for (int step = first; step < stop; step++) {
        const int base = BUFFERS == 1 ? 0 : (step - first) % 2 * BUFFER, other = BUFFERS == 1 ? 0 : BUFFER - base;
        [[unroll]] for (int k = 0; k < BK; k += 16) {
            MATRIX_A x0[WM / 16], x1[WM / 16], x2[WM / 16];
            LOAD_A(x0, 0)
            LOAD_A(x1, 1)
            LOAD_A(x2, 2)
            if (BUFFERS == 2 && k == 0) {
                if (step + 1 < stop)
                    put(other);
                if (step + 2 < stop)
                    fetch(b, at, (step + 2) * BK);
            }
            [[unroll]] for (int j = 0; j < WN / 16; j++) {
                MATRIX_B y0, y1, y2;
                MATRIX_C sum[WM / 16];
                LOAD_B(y0, 0)
                LOAD_B(y1, 1)
                LOAD_B(y2, 2)
                [[unroll]] for (int i = 0; i < WM / 16; i++) sum[i] = MATRIX_C(0.0);
                /* the smallest first */
                ADD_PRODUCTS(x2, y0)
                ADD_PRODUCTS(x1, y1)
                ADD_PRODUCTS(x0, y2)
                ADD_PRODUCTS(x1, y0)
                ADD_PRODUCTS(x0, y1)
                ADD_PRODUCTS(x0, y0)
                [[unroll]] for (int i = 0; i < WM / 16; i++) acc[i][j] = SUM_OF(acc[i][j], sum[i]);
            }
        }
        barrier();
        if (BUFFERS == 1 && step + 1 < stop) {
            put(0);
            if (step + 2 < stop)
                fetch(b, at, (step + 2) * BK);
            barrier();
        }
    }
    const int id = (b * ((M + BM - 1) / BM) + at.x / BM) * ((N + BN - 1) / BN) + at.y / BN;
    barrier();
    [[unroll]] for (int i = 0; i < WM / 16; i++) {
        [[unroll]] for (int j = 0; j < WN / 16; j++)
            coopMatStoreNV(acc[i][j], block, part * STRIP + j * 4, STRIP_ROW, false);
        barrier();
#if SHARES > 1
        for (int e = lane; e < 4 * WN; e += LANES) {
            const int m = at.x + my + i * 16 + e / (WN / 4), n = at.y + nx + e % (WN / 4) * 4;
            vec4 sum = uintBitsToFloat(block[part * STRIP + e / (WN / 4) * STRIP_ROW + e % (WN / 4)]);
            [[unroll]] for (int j = 0; j < 4; j++) sum[j] = checked(sum[j], b, m, n + j, first * BK, stop * BK);
            PART((id * SHARES + share) * FOURS + (i * TEAM + part) * (4 * WN) + e) = sum;
        }
#else
        for (int e = lane; e < 16 * WN; e += LANES) {
            const int m = at.x + my + i * 16 + e / WN, n = at.y + nx + e % WN;
            const float sum = uintBitsToFloat(block[part * STRIP + e / WN * STRIP_ROW + e % WN / 4][e % 4]);
            if ((M % BM == 0 || m < M) && (N % BN == 0 || n < N)) {
                FINISH(checked(sum, b, m, n, 0, K), b, m, n);
            }
        }
#endif
        barrier();
    }
#if SHARES > 1
    memoryBarrierBuffer();
    barrier();
    if (local == 0)
        last = atomicAdd(COUNT(id), 1u) == SHARES - 1;
    barrier();
    if (!last)
        return;
    memoryBarrierBuffer();
    if (local == 0)
        COUNT(id) = 0u;
    /* many parts are on their way before the first is added: the way is long */
    for (int e0 = local; e0 < FOURS; e0 += THREADS * TOGETHER) {
        vec4 parts_of[TOGETHER][SHARES];
        [[unroll]] for (int t = 0; t < TOGETHER; t++)
            [[unroll]] for (int s = 0; s < SHARES; s++) {
                parts_of[t][s] = vec4(0.0);
                if (FOURS % (THREADS * TOGETHER) == 0 || e0 + t * THREADS < FOURS)
                    parts_of[t][s] = PART((id * SHARES + s) * FOURS + e0 + t * THREADS);
            }
        [[unroll]] for (int t = 0; t < TOGETHER; t++) {
            const int e = e0 + t * THREADS, strip = e / (4 * WN);
            const int m = at.x + strip % TEAM / ACROSS * WM + strip / TEAM * 16 + e % (4 * WN) / (WN / 4);
            const int n = at.y + strip % ACROSS * WN + e % (WN / 4) * 4;
            vec4 sum = vec4(0.0);
            [[unroll]] for (int s = 0; s < SHARES; s++) sum += parts_of[t][s];
            [[unroll]] for (int j = 0; j < 4; j++)
                if (e < FOURS && (M % BM == 0 || m < M) && (N % BN == 0 || n + j < N)) {
                    FINISH(sum[j], b, m, n + j);
                }
        }
    }
#endif
}
