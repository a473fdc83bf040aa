// SPDX-License-Identifier: MIT OR Apache-2.0
/* Attention on a GPU's matrix units: attention.comp's function of queries, keys and values of 16 bits, sums in fp32.
 *
 * A workgroup has BM queries and meets BN keys at a time. Both products are of 16 x 16 matrices in shared memory, four
 * subgroups for each 16 queries: Q K^T leaves a block of scores there, of which eight threads for each query make
 * exp(score - top), in 16 bits, and with V that makes a block of the result, which the same threads add to what they
 * have so far, scaled where a larger score came. The next block's keys and values are on their way meanwhile.
 *
 *   BATCH1 BATCH2     sizes of the inner axes of b; the outer one is the number of groups along z
 *   M N DK DV         queries, keys, length of a query and of a value
 *   BM                16 or 32
 *   QUERY_WIDE KEY_WIDE VALUE_WIDE   1: the eights may be read, of one row, at multiples of 8
 *   QUERY(b0, b1, b2, m, k) KEY(b0, b1, b2, n, k) VALUE(b0, b1, b2, n, d)       an element's bits, and
 *   QUERY8 KEY8 VALUE8        those of eight from there on, as a uvec4
 *   BITS(x)           bits of a number
 *   EMPTY MASKED FIRST LAST SCORE FINISH      as attention.comp has them
 *
 * Matrices' dimensions carry marks, and gemm_mma.comp says why.
 *
 * Threads: 8 * BM. Groups: ceil(M / BM) x (BATCH1 * BATCH2) x BATCH0. */
#version 450
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_NV_cooperative_matrix : require
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_EXT_control_flow_attributes : require
layout(set = 0, binding = 0, std430) buffer Memory { uint16_t memory[]; };
layout(set = 0, binding = 0, std430) buffer Memory8 { uvec4 memory8[]; };
// holes
#define BATCH1 1
#define BATCH2 12
#define M 128
#define N 128
#define DK 64
#define DV 64
#define BM 32
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

const int BN = 64, MEMBERS = 8, THREADS = BM * MEMBERS;         /* threads of a query */
/* rows in vectors of eight elements, or of four sums: each has one more, so that rows begin in other banks */
const int K8 = (DK + 15) / 16 * 2, V8 = (DV + 15) / 16 * 2, QUERY_ROW = K8 + 1;
const int BLOCK_ROW = (K8 > V8 ? K8 : V8) + 1, SHARE_ROW = BN / 8 + 1;
const int SUM_ROW = (BN / 4 > V8 * 2 ? BN / 4 : V8 * 2) + 1;
const int BLOCK = BM * QUERY_ROW, SHARES = BLOCK + BN * BLOCK_ROW, SUMS = SHARES + BM * SHARE_ROW;
const int TOPS = SUMS + BM * SUM_ROW, TOP_ROW = MEMBERS / 4;
const int K_EACH = (BN * K8 + THREADS - 1) / THREADS, V_EACH = (BN * V8 + THREADS - 1) / THREADS;
const int COLUMNS = V8 / 2, EACH = (V8 * 2 + MEMBERS - 1) / MEMBERS;    /* matrices of a row; fours of a thread */

layout(local_size_x = 8 * BM) in;

shared uvec4 block[TOPS + BM * TOP_ROW];

const int MARKED_M = 0x10010, MARKED_N = 0x20010, MARKED_K = 0x30010;
#define MATRIX_A fcoopmatNV<16, gl_ScopeSubgroup, MARKED_M, MARKED_K>
#define MATRIX_B fcoopmatNV<16, gl_ScopeSubgroup, MARKED_K, MARKED_N>
#define MATRIX_C fcoopmatNV<32, gl_ScopeSubgroup, MARKED_M, MARKED_N>

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

void main()
{
    const float lowest = uintBitsToFloat(0xff800000u);
    const int local = int(gl_LocalInvocationIndex), subgroup = int(gl_SubgroupID);
    const int row = local / MEMBERS, member = local % MEMBERS;              /* of the block, and of its threads */
    const int my = subgroup / 4 * 16, part = subgroup % 4;                  /* of the products */
    const int m0 = int(gl_WorkGroupID.x) * BM, m = m0 + row, b0 = int(gl_WorkGroupID.z);
    const int b1 = int(gl_WorkGroupID.y) / BATCH2, b2 = int(gl_WorkGroupID.y) % BATCH2;
    float top = lowest, total = 0.0;
    vec4 sums[EACH];
    uvec4 keys[K_EACH], values[V_EACH];
    [[unroll]] for (int j = 0; j < EACH; j++) sums[j] = vec4(0.0);
    for (int i = local; i < BM * K8; i += THREADS) {
        uvec4 x = uvec4(0u);
        if (M % BM == 0 || m0 + i / K8 < M)
            x = query_at(b0, b1, b2, m0 + i / K8, i % K8 * 8);
        block[i / K8 * QUERY_ROW + i % K8] = x;
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
    for (int n0 = from - BN; n0 < stop; n0 += BN) {
        if (n0 >= from) {
            [[unroll]] for (int i = 0; i < K_EACH; i++) {
                const int v = local + i * THREADS;
                if (BN * K8 % THREADS == 0 || v < BN * K8)
                    block[BLOCK + v / K8 * BLOCK_ROW + v % K8] = keys[i];
            }
            barrier();
        }
        /* the next keys; these keys' values have their turn below */
        [[unroll]] for (int i = 0; i < K_EACH; i++) {
            const int v = local + i * THREADS, n = n0 + BN + v / K8;
            keys[i] = uvec4(0u);
            if (n < stop && (BN * K8 % THREADS == 0 || v < BN * K8))
                keys[i] = key_at(b0, b1, b2, n, v % K8 * 8);
        }
        if (n0 < from)
            continue;
        [[unroll]] for (int i = 0; i < V_EACH; i++) {
            const int v = local + i * THREADS, n = n0 + v / V8;
            values[i] = uvec4(0u);
            if (n < stop && (BN * V8 % THREADS == 0 || v < BN * V8))
                values[i] = value_at(b0, b1, b2, n, v % V8 * 8);
        }
        MATRIX_C score = MATRIX_C(0.0);
        [[unroll]] for (int k = 0; k < K8; k += 2) {
            MATRIX_A x;
            MATRIX_B y;
            coopMatLoadNV(x, block, my * QUERY_ROW + k, QUERY_ROW, false);
            coopMatLoadNV(y, block, BLOCK + part * 16 * BLOCK_ROW + k, BLOCK_ROW, true);
            score = coopMatMulAddNV(x, y, score);
        }
        coopMatStoreNV(score, block, SUMS + my * SUM_ROW + part * 4, SUM_ROW, false);
        barrier();
        /* a query's threads have eight keys each */
        float shares[8], most = lowest;
        [[unroll]] for (int j = 0; j < 8; j++) {
            const int n = n0 + member * 8 + j;
            float x = lowest;
            if (n < stop && (M % BM == 0 || m < M))
                x = SCORE(uintBitsToFloat(block[SUMS + row * SUM_ROW + member * 2 + j / 4][j % 4]), b0, b1, b2, m, n);
            shares[j] = x;
            most = x > most ? x : most;
        }
        block[TOPS + row * TOP_ROW + member / 4][member % 4] = floatBitsToUint(most);
        [[unroll]] for (int i = 0; i < V_EACH; i++) {
            const int v = local + i * THREADS;
            if (BN * V8 % THREADS == 0 || v < BN * V8)
                block[BLOCK + v / V8 * BLOCK_ROW + v % V8] = values[i];
        }
        barrier();
        const float before = top;
        [[unroll]] for (int j = 0; j < MEMBERS; j++) {
            const float other = uintBitsToFloat(block[TOPS + row * TOP_ROW + j / 4][j % 4]);
            top = other > top ? other : top;
        }
        /* exp(-inf - 0) is 0; a NaN is never the top, but comes into the sum */
        const float shift = top > lowest ? top : 0.0, scale = before > lowest ? exp(before - shift) : 0.0;
        uvec4 bits = uvec4(0u);
        float sum = 0.0;
        [[unroll]] for (int j = 0; j < 8; j++) {
            const float e = shares[j] == lowest ? 0.0 : exp(shares[j] - shift);
            sum += e;
            bits[j / 2] |= BITS(e) << 16 * (j % 2);
        }
        total = total * scale + sum;
        block[SHARES + row * SHARE_ROW + member] = bits;
        barrier();
        [[unroll]] for (int c = 0; c < COLUMNS; c += 4)
            if (COLUMNS % 4 == 0 || c + part < COLUMNS) {
                MATRIX_C result = MATRIX_C(0.0);
                [[unroll]] for (int n = 0; n < BN / 8; n += 2) {
                    MATRIX_A x;
                    MATRIX_B y;
                    coopMatLoadNV(x, block, SHARES + my * SHARE_ROW + n, SHARE_ROW, false);
                    coopMatLoadNV(y, block, BLOCK + n * 8 * BLOCK_ROW + (c + part) * 2, BLOCK_ROW, false);
                    result = coopMatMulAddNV(x, y, result);
                }
                coopMatStoreNV(result, block, SUMS + my * SUM_ROW + (c + part) * 4, SUM_ROW, false);
            }
        barrier();
        [[unroll]] for (int j = 0; j < EACH; j++)
            if (V8 * 2 % MEMBERS == 0 || member + j * MEMBERS < V8 * 2)
                sums[j] = sums[j] * scale + uintBitsToFloat(block[SUMS + row * SUM_ROW + member + j * MEMBERS]);
    }
    /* the totals of the threads of a query */
    barrier();
    block[TOPS + row * TOP_ROW + member / 4][member % 4] = floatBitsToUint(total);
    barrier();
    float sum = 0.0;
    [[unroll]] for (int j = 0; j < MEMBERS; j++) sum += uintBitsToFloat(block[TOPS + row * TOP_ROW + j / 4][j % 4]);
    const bool lost = EMPTY == 2 && isnan(sum), none = sum == 0.0;
    const float divisor = none ? 1.0 : sum, otherwise = EMPTY == 0 ? uintBitsToFloat(0x7fc00000u) : 0.0;
    if (M % BM == 0 || m < M) {
        [[unroll]] for (int j = 0; j < EACH; j++)
            [[unroll]] for (int s = 0; s < 4; s++) {
                const int d = (member + j * MEMBERS) * 4 + s;
                if (d < DV) {
                    const float x = lost ? 0.0 : none ? otherwise : sums[j][s] / divisor;
                    FINISH(x, b0, b1, b2, m, d);
                }
            }
    }
}
