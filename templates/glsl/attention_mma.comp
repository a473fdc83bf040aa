// SPDX-License-Identifier: MIT OR Apache-2.0
/* Attention on a GPU's matrix units: attention.comp's function of queries, keys and values of 16 bits, sums in fp32.
 *
 * A workgroup has BM queries and meets BN keys at a time, a subgroup of it 16 * TILES queries, and nobody else's. Its
 * queries, scores and sums stay in registers, as matrices of 16 x 16. Which elements of a matrix a thread has, only the
 * device knows: so one is loaded whose elements say where they are. exp(score - top) is made where the scores are; a
 * strip of shared memory of the subgroup's own takes of each row 16 numbers that have its largest among them, whence
 * all have it, and the shares in 16 bits, which come back as a left factor. What they are multiplied with V is added to
 * the sums, which are scaled where a larger score came. So only the blocks of keys and values are anything that
 * subgroups wait for each other for, and the next block is on its way meanwhile.
 *
 *   BATCH1 BATCH2     sizes of the inner axes of b; the outer one is the number of groups along z
 *   M N DK DV         queries, keys, length of a query and of a value
 *   TILES SUBGROUPS   BM is 16 * TILES * SUBGROUPS
 *   BN                keys of a block, a multiple of 32
 *   QUERY_WIDE KEY_WIDE VALUE_WIDE   1: the eights may be read, of one row, at multiples of 8
 *   QUERY(b0, b1, b2, m, k) KEY(b0, b1, b2, n, k) VALUE(b0, b1, b2, n, d)       an element's bits, and
 *   QUERY8 KEY8 VALUE8        those of eight from there on, as a uvec4
 *   EMPTY MASKED FIRST LAST SCORE FINISH      as attention.comp has them
 *
 * Matrices' dimensions carry marks, and units.glsl says why.
 *
 * Threads: 32 * SUBGROUPS. Groups: ceil(M / BM) x (BATCH1 * BATCH2) x BATCH0. */
#version 450
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#extension GL_NV_cooperative_matrix : require
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_GOOGLE_include_directive : require
#include "units.glsl"
layout(set = 0, binding = 0, std430) buffer Memory { uint16_t memory[]; };
layout(set = 0, binding = 0, std430) buffer Memory8 { uvec4 memory8[]; };
// holes
#define BATCH1 1
#define BATCH2 12
#define M 128
#define N 128
#define DK 64
#define DV 64
#define TILES 1
#define SUBGROUPS 4
#define BN 64
#define QUERY_WIDE 1
#define KEY_WIDE 1
#define VALUE_WIDE 0
#define QUERY(b0, b1, b2, m, k) uint(memory[(m) * 768 + (b2) * 64 + (k)])
#define KEY(b0, b1, b2, n, k) uint(memory[98304 + (n) * 768 + (b2) * 64 + (k)])
#define VALUE(b0, b1, b2, n, d) uint(memory[196608 + (n) * 768 + (b2) * 64 + (d)])
#define QUERY8(b0, b1, b2, m, k) memory8[((m) * 768 + (b2) * 64 + (k)) / 8]
#define KEY8(b0, b1, b2, n, k) memory8[(98304 + (n) * 768 + (b2) * 64 + (k)) / 8]
#define VALUE8(b0, b1, b2, n, d) uvec4(0u)
#define EMPTY 0
#define MASKED 0
#define FIRST(b0, b1, b2, m) 0
#define LAST(b0, b1, b2, m) (N - 1)
#define SCORE(acc, b0, b1, b2, m, n) (acc) * 0.125
#define FINISH(acc, b0, b1, b2, m, d) memory[294912 + (m) * 768 + (b2) * 64 + (d)] = uint16_t(packHalf2x16(vec2(acc, 0.0)))
// end holes

const int LANES = 32, THREADS = LANES * SUBGROUPS, ROWS = 16 * TILES, BM = ROWS * SUBGROUPS;
/* rows in vectors of eight elements, or of four scores or sums: each has more room, to begin in other banks */
const int K8 = (DK + 15) / 16 * 2, V8 = (DV + 15) / 16 * 2, KEY_ROW = K8 + 1, VALUE_ROW = V8 + 1;
const int TOP_ROW = 5, SHARE_ROW = BN / 8 + 1, SUM_ROW = V8 * 2 + 1;
/* where values and the subgroups' strips lie: for each 16 queries the tops, and then their shares */
const int VALUES = BN * KEY_ROW, OWN = VALUES + BN * VALUE_ROW, STRIP = 16 * max(TOP_ROW, SHARE_ROW);
const int OWN_SIZE = TILES * STRIP;
/* before all that the queries lie there, and behind it totals and sums of 16 queries of each subgroup */
const int SIZE = OWN + SUBGROUPS * OWN_SIZE, END = 16 * (TOP_ROW + SUM_ROW), ENDS = SUBGROUPS * END;
const int POOL = SIZE > BM * KEY_ROW ? SIZE : BM * KEY_ROW;
const int K_EACH = (BN * K8 + THREADS - 1) / THREADS, V_EACH = (BN * V8 + THREADS - 1) / THREADS;

layout(local_size_x = 32 * SUBGROUPS) in;

shared uvec4 block[POOL > ENDS ? POOL : ENDS];

#define LOAD_SUMS(x, from, step) coopMatLoadNV(x, block, from, step, false);
/* a left factor that stays when something else comes to where it was loaded from */
#define MATRIX_KEPT MATRIX_A
#define LOAD_KEPT(x, from, step) coopMatLoadNV(x, block, from, step, false);
/* sums as numbers of 16 bits */
#define STORE_ROUNDED(x, from, step) { \
        const MATRIX_R rounded = MATRIX_R(x); \
        coopMatStoreNV(rounded, block, from, step, false); \
    }
#define ELEMENT(x, i) x[i]
#define EACH_ELEMENT(i) [[unroll]] for (int i = 0; i < 8; i++)

/* the eight elements from k on, 0 where there are none */
uvec4 query_at(const int b0, const int b1, const int b2, const int m, const int k)
{
    uvec4 x = uvec4(0u);
#if QUERY_WIDE
    if (k < DK)
        x = QUERY8(b0, b1, b2, m, k);
#else
    [[unroll]] for (int i = 0; i < 8; i++)
        if (k + i < DK)
            x[i / 2] |= QUERY(b0, b1, b2, m, k + i) << 16 * (i % 2);
#endif
    return x;
}

uvec4 key_at(const int b0, const int b1, const int b2, const int n, const int k)
{
    uvec4 x = uvec4(0u);
#if KEY_WIDE
    if (k < DK)
        x = KEY8(b0, b1, b2, n, k);
#else
    [[unroll]] for (int i = 0; i < 8; i++)
        if (k + i < DK)
            x[i / 2] |= KEY(b0, b1, b2, n, k + i) << 16 * (i % 2);
#endif
    return x;
}

uvec4 value_at(const int b0, const int b1, const int b2, const int n, const int d)
{
    uvec4 x = uvec4(0u);
#if VALUE_WIDE
    if (d < DV)
        x = VALUE8(b0, b1, b2, n, d);
#else
    [[unroll]] for (int i = 0; i < 8; i++)
        if (d + i < DV)
            x[i / 2] |= VALUE(b0, b1, b2, n, d + i) << 16 * (i % 2);
#endif
    return x;
}

/* The keys and values of the block from `first` on into registers, 0 behind the last. */
#define BRING(first) \
    [[unroll]] for (int i = 0; i < K_EACH; i++) { \
        const int v = local + i * THREADS; \
        keys[i] = uvec4(0u); \
        if ((first) + v / K8 < stop && (BN * K8 % THREADS == 0 || v < BN * K8)) \
            keys[i] = key_at(b0, b1, b2, (first) + v / K8, v % K8 * 8); \
    } \
    [[unroll]] for (int i = 0; i < V_EACH; i++) { \
        const int v = local + i * THREADS; \
        values[i] = uvec4(0u); \
        if ((first) + v / V8 < stop && (BN * V8 % THREADS == 0 || v < BN * V8)) \
            values[i] = value_at(b0, b1, b2, (first) + v / V8, v % V8 * 8); \
    }

#define PUT \
    [[unroll]] for (int i = 0; i < K_EACH; i++) { \
        const int v = local + i * THREADS; \
        if (BN * K8 % THREADS == 0 || v < BN * K8) \
            block[v / K8 * KEY_ROW + v % K8] = keys[i]; \
    } \
    [[unroll]] for (int i = 0; i < V_EACH; i++) { \
        const int v = local + i * THREADS; \
        if (BN * V8 % THREADS == 0 || v < BN * V8) \
            block[VALUES + v / V8 * VALUE_ROW + v % V8] = values[i]; \
    }

/* The largest of a row of 16 tops, which two threads read, in place of all of them. */
void spread_top(const int at)
{
    const vec4 four = max(uintBitsToFloat(block[at]), uintBitsToFloat(block[at + 1]));
    const float eight = max(max(four.x, four.y), max(four.z, four.w));
    block[at] = block[at + 1] = floatBitsToUint(vec4(max(eight, subgroupShuffleXor(eight, 1))));
}

void main()
{
    const float lowest = uintBitsToFloat(0xff800000u), log2_e = 1.442695041;
    const int local = int(gl_LocalInvocationIndex), subgroup = int(gl_SubgroupID), lane = int(gl_SubgroupInvocationID);
    const int row = lane / 2, half_row = lane % 2, own = OWN + subgroup * OWN_SIZE;     /* of a tile; vectors taken */
    const int m0 = int(gl_WorkGroupID.x) * BM, my = m0 + subgroup * ROWS, b0 = int(gl_WorkGroupID.z);
    const int b1 = int(gl_WorkGroupID.y) / BATCH2, b2 = int(gl_WorkGroupID.y) % BATCH2;
    const int pair = row * TOP_ROW + half_row * 2;      /* this thread's vectors of tops */
    int place[8];                                       /* 16 * row + column of its elements of a matrix */
    uvec4 keys[K_EACH], values[V_EACH];
    MATRIX_KEPT query[TILES][K8 / 2];
    MATRIX_C sums[TILES][V8 / 2], top[TILES], total[TILES];
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
    for (int i = local; i < BM * K8; i += THREADS) {
        uvec4 x = uvec4(0u);
        if (M % BM == 0 || m0 + i / K8 < M)
            x = query_at(b0, b1, b2, m0 + i / K8, i % K8 * 8);
        block[i / K8 * KEY_ROW + i % K8] = x;
    }
    barrier();
    [[unroll]] for (int t = 0; t < TILES; t++) {
        top[t] = MATRIX_C(lowest);
        total[t] = MATRIX_C(0.0);
        [[unroll]] for (int k = 0; k < K8 / 2; k++)
            LOAD_KEPT(query[t][k], (subgroup * ROWS + t * 16) * KEY_ROW + k * 2, KEY_ROW)
        [[unroll]] for (int d = 0; d < V8 / 2; d++) sums[t][d] = MATRIX_C(0.0);
    }
    barrier();
    {
        MATRIX_C places;
        [[unroll]] for (int i = 0; i < 2; i++)
            block[subgroup * STRIP + pair + i] = floatBitsToUint(row * 16 + half_row * 8 + i * 4 + vec4(0, 1, 2, 3));
        subgroupBarrier();
        LOAD_SUMS(places, subgroup * STRIP, TOP_ROW)
        EACH_ELEMENT(e) place[e] = int(ELEMENT(places, e));
    }
    BRING(from)
    for (int n0 = from; n0 < stop; n0 += BN) {
        barrier(); /* the last block's readers are done, and the first one's of queries */
        PUT
        barrier();
        BRING(n0 + BN)
        MATRIX_C score[TILES][BN / 16];
        [[unroll]] for (int j = 0; j < BN / 16; j++) {
            [[unroll]] for (int t = 0; t < TILES; t++) score[t][j] = MATRIX_C(0.0);
            [[unroll]] for (int k = 0; k < K8 / 2; k++) {
                MATRIX_B y;
                coopMatLoadNV(y, block, j * 16 * KEY_ROW + k * 2, KEY_ROW, true);
                [[unroll]] for (int t = 0; t < TILES; t++) score[t][j] = coopMatMulAddNV(query[t][k], y, score[t][j]);
            }
        }
        [[unroll]] for (int t = 0; t < TILES; t++) {
            MATRIX_C most = top[t];
            [[unroll]] for (int j = 0; j < BN / 16; j++)
                EACH_ELEMENT(e) {
                    const int m = my + t * 16 + place[e] / 16, n = n0 + j * 16 + place[e] % 16;
                    float x = lowest;
                    if (((MASKED == 0 && N % BN == 0) || n < stop) && (M % BM == 0 || m < M))
                        x = SCORE(ELEMENT(score[t][j], e), b0, b1, b2, m, n);
                    ELEMENT(score[t][j], e) = x;
                    ELEMENT(most, e) = max(ELEMENT(most, e), x);
                }
            coopMatStoreNV(most, block, own + t * STRIP, TOP_ROW, false);
        }
        subgroupBarrier();
        [[unroll]] for (int t = 0; t < TILES; t++) spread_top(own + t * STRIP + pair);
        subgroupBarrier();
        MATRIX_C most[TILES];
        [[unroll]] for (int t = 0; t < TILES; t++) LOAD_SUMS(most[t], own + t * STRIP, TOP_ROW)
        subgroupBarrier();
        [[unroll]] for (int t = 0; t < TILES; t++) {
            EACH_ELEMENT(e) {
                /* exp(-inf - 0) is 0 */
                const float above = ELEMENT(most[t], e), shift = above > lowest ? above * log2_e : 0.0;
                const float scale = exp2(ELEMENT(top[t], e) * log2_e - shift);
                ELEMENT(top[t], e) = above;
                ELEMENT(total[t], e) *= scale;
                [[unroll]] for (int j = 0; j < BN / 16; j++) {
                    const float x = exp2(ELEMENT(score[t][j], e) * log2_e - shift);
                    ELEMENT(score[t][j], e) = x;
                    ELEMENT(total[t], e) += x;
                }
                [[unroll]] for (int d = 0; d < V8 / 2; d++) ELEMENT(sums[t][d], e) *= scale;
            }
            [[unroll]] for (int j = 0; j < BN / 16; j++)
                STORE_ROUNDED(score[t][j], own + t * STRIP + j * 2, SHARE_ROW)
        }
        subgroupBarrier();
        [[unroll]] for (int n = 0; n < BN / 16; n++) {
            MATRIX_A x[TILES];
            [[unroll]] for (int t = 0; t < TILES; t++)
                coopMatLoadNV(x[t], block, own + t * STRIP + n * 2, SHARE_ROW, false);
            [[unroll]] for (int d = 0; d < V8 / 2; d++) {
                MATRIX_B y;
                coopMatLoadNV(y, block, VALUES + n * 16 * VALUE_ROW + d * 2, VALUE_ROW, false);
                [[unroll]] for (int t = 0; t < TILES; t++) sums[t][d] = coopMatMulAddNV(x[t], y, sums[t][d]);
            }
        }
    }
    const int totals = subgroup * END, end = totals + 16 * TOP_ROW;
    [[unroll]] for (int t = 0; t < TILES; t++) {
        barrier();
        coopMatStoreNV(total[t], block, totals, TOP_ROW, false);
        [[unroll]] for (int d = 0; d < V8 / 2; d++)
            coopMatStoreNV(sums[t][d], block, end + d * 4, SUM_ROW, false);
        subgroupBarrier();
        const vec4 four = uintBitsToFloat(block[totals + pair]) + uintBitsToFloat(block[totals + pair + 1]);
        const float eight = (four.x + four.y) + (four.z + four.w), sum = eight + subgroupShuffleXor(eight, 1);
        const bool lost = EMPTY == 2 && isnan(sum), none = sum == 0.0;
        const float otherwise = EMPTY == 0 ? uintBitsToFloat(0x7fc00000u) : 0.0;
        if (half_row == 0)
            block[end + row * SUM_ROW + SUM_ROW - 1].xy
                = floatBitsToUint(vec2(lost || none ? 0.0 : 1.0 / sum, none && !lost ? otherwise : 0.0));
        subgroupBarrier();
        for (int e = lane; e < 16 * DV; e += LANES) {
            const int m = my + t * 16 + e / DV, d = e % DV, at = end + e / DV * SUM_ROW;
            const vec2 factor = uintBitsToFloat(block[at + SUM_ROW - 1].xy);
            const float x = uintBitsToFloat(block[at + d / 4][d % 4]);
            if (M % BM == 0 || m < M) {
                FINISH((factor.x == 0.0 ? 0.0 : x * factor.x) + factor.y, b0, b1, b2, m, d);
            }
        }
    }
}
