// SPDX-License-Identifier: MIT OR Apache-2.0
/* Attention on a GPU's matrix units: attention.comp's function of queries, keys and values of 16 bits, sums in fp32.
 *
 * A workgroup has BM queries and meets BN keys at a time, a subgroup of it 16 * TILES queries, and nobody else's. Its
 * queries and its sums stay in registers, as matrices of 16 x 16. Q K^T goes through a strip of shared memory of its
 * own, where a row has two threads, which make exp(score - top) of it, in 16 bits: what is multiplied with V and added
 * to the sums, which are scaled where a larger score came. So only the blocks of keys and values are anything that
 * subgroups wait for each other for, and the next block is on its way meanwhile.
 *
 *   BATCH1 BATCH2     sizes of the inner axes of b; the outer one is the number of groups along z
 *   M N DK DV         queries, keys, length of a query and of a value
 *   TILES SUBGROUPS   BM is 16 * TILES * SUBGROUPS
 *   BN                keys of a block, a multiple of 32
 *   QUERY_WIDE KEY_WIDE VALUE_WIDE   1: the eights may be read, of one row, at multiples of 8
 *   QUERY(b0, b1, b2, m, k) KEY(b0, b1, b2, n, k) VALUE(b0, b1, b2, n, d)       an element's bits, and
 *   QUERY8 KEY8 VALUE8        those of eight from there on, as a uvec4
 *   BITS(x)           bits of a number
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
#define BITS(x) packHalf2x16(vec2(x, 0.0))
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
const int SCORE_ROW = BN / 4 + 1, SUM_ROW = V8 * 2 + 1;
/* where values and the subgroups' strips lie. A row of a strip has scores, and then their shares and their scale */
const int VALUES = BN * KEY_ROW, OWN = VALUES + BN * VALUE_ROW, SCALE = BN / 8, OWN_SIZE = ROWS * SCORE_ROW;
/* before all that the queries lie there, and behind it sums of 16 queries of each subgroup */
const int SIZE = OWN + SUBGROUPS * OWN_SIZE, ENDS = SUBGROUPS * 16 * SUM_ROW;
const int POOL = SIZE > BM * KEY_ROW ? SIZE : BM * KEY_ROW;
const int K_EACH = (BN * K8 + THREADS - 1) / THREADS, V_EACH = (BN * V8 + THREADS - 1) / THREADS;
const int FOURS = BN / 8;                               /* of scores, of a thread's half of a row */

layout(local_size_x = 32 * SUBGROUPS) in;

shared uvec4 block[POOL > ENDS ? POOL : ENDS];

#define LOAD_SUMS(x, from, step) coopMatLoadNV(x, block, from, step, false);
/* a left factor that stays when something else comes to where it was loaded from */
#define MATRIX_KEPT MATRIX_A
#define LOAD_KEPT(x, from, step) coopMatLoadNV(x, block, from, step, false);
#define ELEMENT(x, i) x[i]

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

void main()
{
    const float lowest = uintBitsToFloat(0xff800000u);
    const int local = int(gl_LocalInvocationIndex), subgroup = int(gl_SubgroupID), lane = int(gl_SubgroupInvocationID);
    const int row = lane / 2, half_row = lane % 2, own = OWN + subgroup * OWN_SIZE;     /* of a tile; vectors taken */
    const int m0 = int(gl_WorkGroupID.x) * BM, my = m0 + subgroup * ROWS, b0 = int(gl_WorkGroupID.z);
    const int b1 = int(gl_WorkGroupID.y) / BATCH2, b2 = int(gl_WorkGroupID.y) % BATCH2;
    float top[TILES], total[TILES];
    uvec4 keys[K_EACH], values[V_EACH];
    MATRIX_KEPT query[TILES][K8 / 2];
    MATRIX_C sums[TILES][V8 / 2];
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
        top[t] = lowest;
        total[t] = 0.0;
        [[unroll]] for (int k = 0; k < K8 / 2; k++)
            LOAD_KEPT(query[t][k], (subgroup * ROWS + t * 16) * KEY_ROW + k * 2, KEY_ROW)
        [[unroll]] for (int d = 0; d < V8 / 2; d++) sums[t][d] = MATRIX_C(0.0);
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
            [[unroll]] for (int j = 0; j < BN / 16; j++)
                coopMatStoreNV(score[t][j], block, own + t * 16 * SCORE_ROW + j * 4, SCORE_ROW, false);
            subgroupBarrier();
            const int m = my + t * 16 + row, here = own + (t * 16 + row) * SCORE_ROW;
            vec4 x[FOURS];
            float most = top[t], sum = 0.0;
            [[unroll]] for (int j = 0; j < FOURS; j++) {
                const vec4 from_strip = uintBitsToFloat(block[here + j * 2 + half_row]);
                [[unroll]] for (int i = 0; i < 4; i++) {
                    const int n = n0 + (j * 2 + half_row) * 4 + i;
                    x[j][i] = lowest;
                    if (n < stop && (M % BM == 0 || m < M))
                        x[j][i] = SCORE(from_strip[i], b0, b1, b2, m, n);
                    most = x[j][i] > most ? x[j][i] : most;
                }
            }
            const float others = subgroupShuffleXor(most, 1);
            most = others > most ? others : most;
            subgroupBarrier(); /* a row's two threads have read it */
            /* exp(-inf - 0) is 0; a NaN is never the top, but comes into the sum */
            const float shift = most > lowest ? most : 0.0, scale = top[t] > lowest ? exp(top[t] - shift) : 0.0;
            [[unroll]] for (int j = 0; j < FOURS; j++) {
                [[unroll]] for (int i = 0; i < 4; i++) {
                    x[j][i] = x[j][i] == lowest ? 0.0 : exp(x[j][i] - shift);
                    sum += x[j][i];
                }
                block[here + j][half_row * 2] = BITS(x[j][0]) | BITS(x[j][1]) << 16;
                block[here + j][half_row * 2 + 1] = BITS(x[j][2]) | BITS(x[j][3]) << 16;
            }
            top[t] = most;
            total[t] = total[t] * scale + sum;
            [[unroll]] for (int i = 0; i < 2; i++)
                block[here + SCALE + half_row * 2 + i] = floatBitsToUint(vec4(scale));
            subgroupBarrier();
            MATRIX_C scales;
            LOAD_SUMS(scales, own + t * 16 * SCORE_ROW + SCALE, SCORE_ROW)
            [[unroll]] for (int d = 0; d < V8 / 2; d++)
                [[unroll]] for (int i = 0; i < 8; i++) ELEMENT(sums[t][d], i) *= ELEMENT(scales, i);
        }
        [[unroll]] for (int n = 0; n < BN / 16; n++) {
            MATRIX_A x[TILES];
            [[unroll]] for (int t = 0; t < TILES; t++)
                coopMatLoadNV(x[t], block, own + t * 16 * SCORE_ROW + n * 2, SCORE_ROW, false);
            [[unroll]] for (int d = 0; d < V8 / 2; d++) {
                MATRIX_B y;
                coopMatLoadNV(y, block, VALUES + n * 16 * VALUE_ROW + d * 2, VALUE_ROW, false);
                [[unroll]] for (int t = 0; t < TILES; t++) sums[t][d] = coopMatMulAddNV(x[t], y, sums[t][d]);
            }
        }
    }
    const int end = subgroup * 16 * SUM_ROW;
    [[unroll]] for (int t = 0; t < TILES; t++) {
        barrier();
        [[unroll]] for (int d = 0; d < V8 / 2; d++)
            coopMatStoreNV(sums[t][d], block, end + d * 4, SUM_ROW, false);
        const float sum = total[t] + subgroupShuffleXor(total[t], 1);
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
