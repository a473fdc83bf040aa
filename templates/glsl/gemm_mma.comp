// SPDX-License-Identifier: MIT OR Apache-2.0
/* Contraction on a GPU's matrix units: C[b][m][n] = FINISH(sum over k of A[b][m][k] * B[b][k][n]), factors of 16 bits,
 * sums in fp32.
 *
 * A workgroup computes a block of BM x BN, each of its subgroups WM x WN of it, in matrices of 16 x 16. Blocks of A and
 * B, BK terms deep, go through shared memory, in vectors of eight elements. While a step is multiplied, the next one
 * goes from registers into its own half of shared memory, and the one after that comes from far memory into registers.
 * With one half (HALVES 1) it goes there behind the multiplications, and a core has room for more workgroups.
 * Where there are few blocks, SLICES teams of subgroups take a share each of a block's terms, and SHARES workgroups:
 * all but the last to be done leave their sums in memory, and that one adds them up, always in the same order. Sums
 * leave through shared memory as well, four neighbours of a row at a time, since a matrix lies in a subgroup's
 * registers in an order that only the device knows.
 *
 *   BATCH M N K       sizes
 *   BM BN BK          block;  WM WN: of a subgroup; multiples of 16, BK of 16 * SLICES;  HALVES: 1 or 2
 *   A_WIDE B_WIDE     1: eight elements are read at once along k, from a multiple of 8 on, as K is one;  2: along m, or
 *                     n. Else 0, and A_RUNS B_RUNS: do neighbours in memory lie along k?
 *   A_OWN B_OWN       what an element's place needs of its row (b, m) or column (b, n), made once: a type, and
 *   A_OWN_AT(b, m) B_OWN_AT(b, n)  its value
 *   A_AT(own, k) B_AT(own, k)      an element's bits
 *   A8_AT(own, k) B8_AT(own, k)    those of eight, from there on along k, or along m or n, as a uvec4
 *   PART(i) COUNT(i)  where SHARES > 1: vector i of the sums, SHARES * BM * BN / 4 for each block; counter i, one for
 *                     each block, 0 before and after
 *   FINISH(acc, b, m, n)    stores C's element;  where C_WIDE is 1, N is a multiple of four, and
 *   FINISH4(sums, b, m, n)  stores those of columns n to n + 3, a multiple of four on
 *   FOUR SUMS(x)      what four sums are, vec4, or ivec4, as which an element is two bytes and k counts such pairs: these
 *                     are read along k alone; and the four sums that a vector of shared memory has
 *
 * Threads: 32 * (BM / WM) * (BN / WN) * SLICES. Groups: ceil(N / BN) x ceil(M / BM) x (BATCH * SHARES). */
#version 450
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_NV_cooperative_matrix : require
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_GOOGLE_include_directive : require
#include "units.glsl"
layout(set = 0, binding = 0, std430) buffer Memory { uint16_t memory[]; };
layout(set = 0, binding = 0, std430) buffer Memory8 { uvec4 memory8[]; };
layout(set = 0, binding = 0, std430) coherent buffer Parts { vec4 parts[]; };
layout(set = 0, binding = 0, std430) coherent buffer Counts { uint counts[]; };
// holes
#define BATCH 1
#define M 128
#define N 768
#define K 768
#define BM 64
#define BN 64
#define BK 32
#define WM 32
#define WN 32
#define SLICES 1
#define HALVES 2
#define SHARES 2
#define A_WIDE 1
#define B_WIDE 2
#define A_RUNS 1
#define B_RUNS 0
#define A_OWN int
#define B_OWN int
#define A_OWN_AT(b, m) (m) * K
#define B_OWN_AT(b, n) (n)
#define A_AT(own, k) uint(memory[(own) + (k)])
#define B_AT(own, k) uint(memory[98304 + (k) * N + (own)])
#define A8_AT(own, k) memory8[((own) + (k)) / 8]
#define B8_AT(own, k) memory8[12288 + ((k) * N + (own)) / 8]
#define PART(i) parts[172032 + (i)]
#define COUNT(i) counts[1179648 + (i)]
#define C_WIDE 0
#define FINISH(acc, b, m, n) memory[688128 + ((b) * M + (m)) * N + (n)] = uint16_t(packHalf2x16(vec2(acc, 0.0)))
#define FINISH4(sums, b, m, n) memory8[86016 + (((b) * M + (m)) * N + (n)) / 8] = floatBitsToUint(sums)
#define FOUR vec4
#define SUMS(x) uintBitsToFloat(x)
// end holes

/* Do a block's vectors run along k, as the elements lie? Conditions below that begin with a hole are settled when it is
 * filled, and say so by holes alone. */
#define A_ALONG_K (A_WIDE == 1 || (A_WIDE == 0 && A_RUNS == 1))
#define B_ALONG_K (B_WIDE == 1 || (B_WIDE == 0 && B_RUNS == 1))

const int LANES = 32, ACROSS = BN / WN, TEAM = BM / WM * ACROSS, THREADS = LANES * TEAM * SLICES;
// vectors of a block's row, with one more, so that rows begin in other banks; of a block; those that a thread brings
#if A_ALONG_K
const int A_ROW = BK / 8, A_SIZE = BM * (A_ROW + 1);
#else
const int A_ROW = BM / 8, A_SIZE = BK * (A_ROW + 1);
#endif
#if B_ALONG_K
const int B_ROW = BK / 8, B_SIZE = BN * (B_ROW + 1);
#else
const int B_ROW = BN / 8, B_SIZE = BK * (B_ROW + 1);
#endif
const int A_VECTORS = BM * BK / 8, A_EACH = (A_VECTORS + THREADS - 1) / THREADS;
const int B_VECTORS = BN * BK / 8, B_EACH = (B_VECTORS + THREADS - 1) / THREADS;
const int BUFFER = A_SIZE + B_SIZE, TURNS = BK / SLICES / 16;       // TURNS: of 16 terms, in a step
// sums of 16 rows of each subgroup, on their way out
const int STRIP_ROW = WN / 4 + 1, STRIP = 16 * STRIP_ROW, STRIPS = STRIP * TEAM * SLICES;
const bool WHOLE = K % BK == 0;                          // no step has terms that there are not
const int STEPS = (K + BK - 1) / BK, EACH_STEPS = (STEPS + SHARES - 1) / SHARES;      // all, and of a share
const int FOURS = BM * BN / 4, TOGETHER = SHARES < 32 ? 32 / SHARES : 1;        // sums of a block; vectors on their way

layout(local_size_x = 32 * (BM / WM) * (BN / WN) * SLICES) in;

shared uvec4 block[HALVES * BUFFER > STRIPS ? HALVES * BUFFER : STRIPS];
#if SHARES > 1
shared bool last;
#endif

/* a strip is read by the subgroup that wrote it, or by those that share its terms */
#if SLICES == 1
#define STRIP_BARRIER subgroupBarrier()
#else
#define STRIP_BARRIER barrier()
#endif

/* A row or column that there is, in place of one that is not: what that gives, nobody stores. Of eight, the first. */
int inside(int i, int size, bool eight) { return min(i, eight ? (size - 1) / 8 * 8 : size - 1); }

/* Eight elements of the left factor: those of row m from k on, or those of rows m to m + 7 at k. */
uvec4 a_load(A_OWN own, int b, int m, int k)
{
    uvec4 x = uvec4(0u);
#if A_WIDE
    if (WHOLE || k < K)
        x = A8_AT(own, k);
#elif A_RUNS
    [[unroll]] for (int i = 0; i < 8; i++)
        if (k + i < K)
            x[i / 2] |= A_AT(own, k + i) << 16 * (i % 2);
#else
    [[unroll]] for (int i = 0; i < 8; i++)
        if (k < K)
            x[i / 2] |= A_AT(A_OWN_AT(b, inside(m + i, M, false)), k) << 16 * (i % 2);
#endif
    return x;
}

/* Eight elements of the right factor: those of column n from k on, or those of columns n to n + 7 at k. */
uvec4 b_load(B_OWN own, int b, int k, int n)
{
    uvec4 x = uvec4(0u);
#if B_WIDE
    if (WHOLE || k < K)
        x = B8_AT(own, k);
#elif B_RUNS
    [[unroll]] for (int i = 0; i < 8; i++)
        if (k + i < K)
            x[i / 2] |= B_AT(own, k + i) << 16 * (i % 2);
#else
    [[unroll]] for (int i = 0; i < 8; i++)
        if (k < K)
            x[i / 2] |= B_AT(B_OWN_AT(b, inside(n + i, N, false)), k) << 16 * (i % 2);
#endif
    return x;
}

/* The sums of row m, columns n to n + 3, those of them that there are. */
void finish_four(const FOUR sum, const int b, const int m, const int n)
{
    if (M % BM != 0 && m >= M)
        return;
#if C_WIDE
    if (N % BN == 0 || n < N) {
        FINISH4(sum, b, m, n);
    }
#else
    [[unroll]] for (int j = 0; j < 4; j++)
        if (N % BN == 0 || n + j < N) {
            FINISH(sum[j], b, m, n + j);
        }
#endif
}

/* Functions of main's variables, whose arguments are known when compiling.
 *
 * Step `step` of far memory into registers, if it is one. */
#define BRING(step) \
    if ((step) < stop) { \
        [[unroll]] for (int i = 0; i < A_EACH; i++) { \
            const ivec2 p = place(local + i * THREADS, A_ROW, A_ALONG_K); \
            if (A_VECTORS % THREADS == 0 || local + i * THREADS < A_VECTORS) \
                a_next[i] = a_load(a_own[i], b, at.x + p.x, (step) * BK + p.y); \
        } \
        [[unroll]] for (int i = 0; i < B_EACH; i++) { \
            const ivec2 p = place(local + i * THREADS, B_ROW, B_ALONG_K); \
            if (B_VECTORS % THREADS == 0 || local + i * THREADS < B_VECTORS) \
                b_next[i] = b_load(b_own[i], b, (step) * BK + p.y, at.y + p.x); \
        } \
    }

/* What the registers have, to the half of shared memory that begins there. */
#define PUT(begins) \
    [[unroll]] for (int i = 0; i < A_EACH; i++) { \
        const int v = local + i * THREADS; \
        if (A_VECTORS % THREADS == 0 || v < A_VECTORS) \
            block[(begins) + line_of(v, A_ROW) * (A_ROW + 1) + v % A_ROW] = a_next[i]; \
    } \
    [[unroll]] for (int i = 0; i < B_EACH; i++) { \
        const int v = local + i * THREADS; \
        if (B_VECTORS % THREADS == 0 || v < B_VECTORS) \
            block[(begins) + A_SIZE + line_of(v, B_ROW) * (B_ROW + 1) + v % B_ROW] = b_next[i]; \
    }

/* The matrices of turn `turn` of the step that lies there. */
#define TAKE(begins, turn) { \
        const int from = slice * (BK / SLICES) + (turn) * 16; \
        [[unroll]] for (int i = 0; i < WM / 16; i++) { \
            const int row = my + i * 16; \
            coopMatLoadNV(x[i], block, \
                (begins) + (A_ALONG_K ? row * (A_ROW + 1) + from / 8 : from * (A_ROW + 1) + row / 8), A_ROW + 1, \
                !A_ALONG_K); \
        } \
        [[unroll]] for (int j = 0; j < WN / 16; j++) { \
            const int column = nx + j * 16; \
            coopMatLoadNV(y[j], block, \
                (begins) + A_SIZE \
                    + (B_ALONG_K ? column * (B_ROW + 1) + from / 8 : from * (B_ROW + 1) + column / 8), \
                B_ROW + 1, B_ALONG_K); \
        } \
    }

#define MULTIPLY \
    [[unroll]] for (int j = 0; j < WN / 16; j++) \
        [[unroll]] for (int i = 0; i < WM / 16; i++) acc[i][j] = coopMatMulAddNV(x[i], y[j], acc[i][j]);

/* Step `step`, which lies `here`. What lay `there`, nobody reads any more, and the next one goes there while this is
 * multiplied. */
#define STEP(step, here, there) { \
        [[unroll]] for (int turn = 0; turn < TURNS; turn++) { \
            TAKE(here, turn) \
            if (turn == 0) { \
                if ((step) + 1 < stop) { \
                    PUT(there) \
                } \
                BRING((step) + 2) \
            } \
            MULTIPLY \
        } \
        barrier(); \
    }

void main()
{
    const int local = int(gl_LocalInvocationIndex), subgroup = int(gl_SubgroupID), lane = int(gl_SubgroupInvocationID);
    const int slice = subgroup / TEAM, part = subgroup % TEAM;
    const int b = int(gl_WorkGroupID.z) / SHARES, share = int(gl_WorkGroupID.z) % SHARES;
    const int my = part / ACROSS * WM, nx = part % ACROSS * WN;    // this subgroup's part of the block
    const int first = share * EACH_STEPS, stop = min(first + EACH_STEPS, STEPS);
    const ivec2 at = block_place((M + BM - 1) / BM, (N + BN - 1) / BN) * ivec2(BM, BN);
    MATRIX_C acc[WM / 16][WN / 16];
    MATRIX_A x[WM / 16];
    MATRIX_B y[WN / 16];
    uvec4 a_next[A_EACH], b_next[B_EACH];
    A_OWN a_own[A_EACH];
    B_OWN b_own[B_EACH];
    [[unroll]] for (int i = 0; i < A_EACH; i++)
        a_own[i] = A_OWN_AT(b, inside(at.x + place(local + i * THREADS, A_ROW, A_ALONG_K).x, M, !A_ALONG_K));
    [[unroll]] for (int i = 0; i < B_EACH; i++)
        b_own[i] = B_OWN_AT(b, inside(at.y + place(local + i * THREADS, B_ROW, B_ALONG_K).x, N, !B_ALONG_K));
    [[unroll]] for (int i = 0; i < WM / 16; i++)
        [[unroll]] for (int j = 0; j < WN / 16; j++) acc[i][j] = MATRIX_C(FOUR(0).x);
    BRING(first)
    PUT(0)
    BRING(first + 1)
    barrier();
    /* unrolled as well, as drivers like it, this takes a quarter longer on an H200 */
#if HALVES == 2
    [[dont_unroll]] for (int step = first; step < stop; step += 2) {
        STEP(step, 0, BUFFER)
        if (step + 1 == stop)
            break;
        STEP(step + 1, BUFFER, 0)
    }
#else
    [[dont_unroll]] for (int step = first; step < stop; step++) {
        [[unroll]] for (int turn = 0; turn < TURNS; turn++) {
            TAKE(0, turn)
            MULTIPLY
        }
        barrier();
        if (step + 1 < stop) {
            PUT(0)
            BRING(step + 2)
            barrier();
        }
    }
#endif
    const int id = (b * ((M + BM - 1) / BM) + at.x / BM) * ((N + BN - 1) / BN) + at.y / BN;
    barrier();
    [[unroll]] for (int i = 0; i < WM / 16; i++) {
        [[unroll]] for (int j = 0; j < WN / 16; j++)
            coopMatStoreNV(acc[i][j], block, subgroup * STRIP + j * 4, STRIP_ROW, false);
        STRIP_BARRIER;
        /* what a part has is for its teams together */
#if SHARES > 1
        for (int e = slice * LANES + lane; e < 4 * WN; e += LANES * SLICES) {
            const int from = part * STRIP + e / (WN / 4) * STRIP_ROW + e % (WN / 4);
            FOUR sum = SUMS(block[from]);
            [[unroll]] for (int s = 1; s < SLICES; s++) sum += SUMS(block[from + s * TEAM * STRIP]);
            PART((id * SHARES + share) * FOURS + (i * TEAM + part) * (4 * WN) + e) = sum;
        }
#else
        for (int e = slice * LANES + lane; e < 4 * WN; e += LANES * SLICES) {
            const int from = part * STRIP + e / (WN / 4) * STRIP_ROW + e % (WN / 4);
            FOUR sum = SUMS(block[from]);
            [[unroll]] for (int s = 1; s < SLICES; s++) sum += SUMS(block[from + s * TEAM * STRIP]);
            finish_four(sum, b, at.x + my + i * 16 + e / (WN / 4), at.y + nx + e % (WN / 4) * 4);
        }
#endif
        STRIP_BARRIER;
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
        FOUR parts_of[TOGETHER][SHARES];
        [[unroll]] for (int t = 0; t < TOGETHER; t++)
            [[unroll]] for (int s = 0; s < SHARES; s++) {
                parts_of[t][s] = FOUR(0);
                if (FOURS % (THREADS * TOGETHER) == 0 || e0 + t * THREADS < FOURS)
                    parts_of[t][s] = PART((id * SHARES + s) * FOURS + e0 + t * THREADS);
            }
        [[unroll]] for (int t = 0; t < TOGETHER; t++) {
            const int e = e0 + t * THREADS, strip = e / (4 * WN);
            const int m = at.x + strip % TEAM / ACROSS * WM + strip / TEAM * 16 + e % (4 * WN) / (WN / 4);
            const int n = at.y + strip % ACROSS * WN + e % (WN / 4) * 4;
            FOUR sum = FOUR(0);
            [[unroll]] for (int s = 0; s < SHARES; s++) sum += parts_of[t][s];
            if (e < FOURS)
                finish_four(sum, b, m, n);
        }
    }
#endif
}
