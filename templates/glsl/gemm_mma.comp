// SPDX-License-Identifier: MIT OR Apache-2.0
/* Contraction on a GPU's matrix units: C[b][m][n] = FINISH(sum over k of A[b][m][k] * B[b][k][n]), factors of 16 bits,
 * sums in fp32.
 *
 * A workgroup computes a block of BM x BN, each of its subgroups WM x WN of it, in matrices of 16 x 16. Blocks of A and
 * B, BK terms deep, go through shared memory, in vectors of eight elements; the next ones are on their way while these
 * are multiplied. Where there are few blocks, SLICES teams of subgroups take a share each of a block's terms, and their
 * sums meet at the end. Sums leave through shared memory as well, since a matrix lies in a subgroup's registers in an
 * order that only the device knows.
 *
 *   BATCH M N K       sizes;  AB AR AC, BB BR BC: strides of A's batches, rows (m) and columns (k), of B's batches,
 *                     rows (k) and columns (n), in elements
 *   BM BN BK          block;  WM WN: of a subgroup; multiples of 16, BK of 16 * SLICES
 *   BUFFERS           1, or 2: a block's successor has room of its own, which saves a barrier
 *   A_WIDE            1: eight elements along k are read at once: AC is 1, AR, AB and K multiples of 8;  2: eight along
 *                     m: AR is 1, AC, AB and M multiples of 8. Else 0
 *   B_WIDE            1: eight along n: BC is 1, BR, BB and N multiples of 8;  2: eight along k: BR is 1, BC, BB and K
 *                     multiples of 8. Else 0
 *   A_AT(i) B_AT(i)   bits of element i of an operand;  A8_AT(i) B8_AT(i): of eight, from element 8 * i on, as a uvec4
 *   FINISH(acc, b, m, n)    stores C's element
 *
 * Dimensions of matrices carry a mark of which axis they are, M, N or K: which factor a matrix is follows from its two,
 * and codegen/gpu/cooperative.c, which makes a module for VK_KHR_cooperative_matrix of this one, has to say so.
 *
 * Threads: 32 * (BM / WM) * (BN / WN) * SLICES. Groups: ceil(N / BN) x ceil(M / BM) x BATCH. */
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
#define BM 64
#define BN 64
#define BK 32
#define WM 32
#define WN 32
#define SLICES 1
#define BUFFERS 1
#define A_WIDE 1
#define B_WIDE 1
#define A_AT(i) uint(memory[i])
#define B_AT(i) uint(memory[98304 + (i)])
#define A8_AT(i) memory8[i]
#define B8_AT(i) memory8[12288 + (i)]
#define FINISH(acc, b, m, n) memory[688128 + ((b) * M + (m)) * N + (n)] = uint16_t(packHalf2x16(vec2(acc, 0.0)))
// end holes

/* Do a block's vectors run along k, as the elements lie? Conditions below that begin with a hole are settled when it is
 * filled, and say so by holes alone. */
#define A_ALONG_K (A_WIDE == 1 || (A_WIDE == 0 && AR != 1))
#define B_ALONG_K (B_WIDE == 2 || (B_WIDE == 0 && BR == 1))

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
const int BUFFER = A_SIZE + B_SIZE;
// sums of 16 rows of each subgroup, on their way out
const int STRIP_ROW = WN / 4 + 1, STRIP = 16 * STRIP_ROW, STRIPS = STRIP * TEAM * SLICES;
// nothing of a block lies outside
const bool A_WHOLE = M % BM == 0 && K % BK == 0, B_WHOLE = K % BK == 0 && N % BN == 0;
const int BAND = 8;    // workgroups that follow one another share this many rows of blocks, and so their operands

layout(local_size_x = 32 * (BM / WM) * (BN / WN) * SLICES) in;

shared uvec4 block[BUFFER * BUFFERS > STRIPS ? BUFFER * BUFFERS : STRIPS];

const int MARKED_M = 0x10010, MARKED_N = 0x20010, MARKED_K = 0x30010;
#define MATRIX_A fcoopmatNV<16, gl_ScopeSubgroup, MARKED_M, MARKED_K>
#define MATRIX_B fcoopmatNV<16, gl_ScopeSubgroup, MARKED_K, MARKED_N>
#define MATRIX_C fcoopmatNV<32, gl_ScopeSubgroup, MARKED_M, MARKED_N>

/* Eight elements of the left factor: those of row m from k on, or those of rows m to m + 7 at k. */
uvec4 a_load(int b, int m, int k)
{
    uvec4 x = uvec4(0u);
#if A_WIDE
    if (A_WHOLE || (m < M && k < K))
        x = A8_AT((b * AB + m * AR + k * AC) / 8);
#elif AR != 1
    [[unroll]] for (int i = 0; i < 8; i++)
        if (m < M && k + i < K)
            x[i / 2] |= A_AT(b * AB + m * AR + (k + i) * AC) << 16 * (i % 2);
#else
    [[unroll]] for (int i = 0; i < 8; i++)
        if (m + i < M && k < K)
            x[i / 2] |= A_AT(b * AB + (m + i) * AR + k * AC) << 16 * (i % 2);
#endif
    return x;
}

/* Eight elements of the right factor: those of column n from k on, or those of columns n to n + 7 at k. */
uvec4 b_load(int b, int k, int n)
{
    uvec4 x = uvec4(0u);
#if B_WIDE
    if (B_WHOLE || (k < K && n < N))
        x = B8_AT((b * BB + k * BR + n * BC) / 8);
#elif BR == 1
    [[unroll]] for (int i = 0; i < 8; i++)
        if (k + i < K && n < N)
            x[i / 2] |= B_AT(b * BB + (k + i) * BR + n * BC) << 16 * (i % 2);
#else
    [[unroll]] for (int i = 0; i < 8; i++)
        if (k < K && n + i < N)
            x[i / 2] |= B_AT(b * BB + k * BR + (n + i) * BC) << 16 * (i % 2);
#endif
    return x;
}

/* Vector i of a block of rows of so many: its first row or column, and its first term. */
ivec2 place(int i, int row, bool along_k)
{
    const int across = i % row * 8, down = i / row;
    return along_k ? ivec2(down, across) : ivec2(across, down);
}

/* The block of this workgroup, in bands that go down before they go across. */
ivec2 block_place()
{
    const int wide = (N + BN - 1) / BN, high = (M + BM - 1) / BM;
    const int id = int(gl_WorkGroupID.y) * wide + int(gl_WorkGroupID.x);
    const int first = id / (BAND * wide) * BAND, rows = min(BAND, high - first), rest = id - first * wide;
    return ivec2(first + rest % rows, rest / rows) * ivec2(BM, BN);
}

void main()
{
    const int local = int(gl_LocalInvocationIndex), subgroup = int(gl_SubgroupID), lane = int(gl_SubgroupInvocationID);
    const int slice = subgroup / TEAM, part = subgroup % TEAM, b = int(gl_WorkGroupID.z);
    const int my = part / ACROSS * WM, nx = part % ACROSS * WN;    // this subgroup's part of the block
    const ivec2 at = block_place();
    MATRIX_C acc[WM / 16][WN / 16];
    uvec4 a_next[A_EACH], b_next[B_EACH];
    [[unroll]] for (int i = 0; i < WM / 16; i++)
        [[unroll]] for (int j = 0; j < WN / 16; j++) acc[i][j] = MATRIX_C(0.0);
    const int steps = (K + BK - 1) / BK;
    for (int step = -1; step < steps; step++) {
        /* the pieces of the step after this one, into registers */
        const int k0 = (step + 1) * BK;
        if (step + 1 < steps) {
            [[unroll]] for (int i = 0; i < A_EACH; i++) {
                const ivec2 p = place(local + i * THREADS, A_ROW, A_ALONG_K);
                if (A_VECTORS % THREADS == 0 || local + i * THREADS < A_VECTORS)
                    a_next[i] = a_load(b, at.x + p.x, k0 + p.y);
            }
            [[unroll]] for (int i = 0; i < B_EACH; i++) {
                const ivec2 p = place(local + i * THREADS, B_ROW, B_ALONG_K);
                if (B_VECTORS % THREADS == 0 || local + i * THREADS < B_VECTORS)
                    b_next[i] = b_load(b, k0 + p.y, at.y + p.x);
            }
        }
        if (step >= 0) {
            const int base = step % BUFFERS * BUFFER;
            [[unroll]] for (int k = 0; k < BK / SLICES; k += 16) {
                const int from = slice * (BK / SLICES) + k;
                MATRIX_A x[WM / 16];
                [[unroll]] for (int i = 0; i < WM / 16; i++) {
                    const int row = my + i * 16;
                    coopMatLoadNV(x[i], block,
                        base + (A_ALONG_K ? row * (A_ROW + 1) + from / 8 : from * (A_ROW + 1) + row / 8), A_ROW + 1,
                        !A_ALONG_K);
                }
                [[unroll]] for (int j = 0; j < WN / 16; j++) {
                    const int column = nx + j * 16;
                    MATRIX_B y;
                    coopMatLoadNV(y, block,
                        base + A_SIZE +
                            (B_ALONG_K ? column * (B_ROW + 1) + from / 8 : from * (B_ROW + 1) + column / 8),
                        B_ROW + 1, B_ALONG_K);
                    [[unroll]] for (int i = 0; i < WM / 16; i++) acc[i][j] = coopMatMulAddNV(x[i], y, acc[i][j]);
                }
            }
        }
        if (BUFFERS == 1)
            barrier();
        if (step + 1 < steps) {
            const int base = (step + 1) % BUFFERS * BUFFER;
            [[unroll]] for (int i = 0; i < A_EACH; i++) {
                const int v = local + i * THREADS;
                if (A_VECTORS % THREADS == 0 || v < A_VECTORS)
                    block[base + v / A_ROW * (A_ROW + 1) + v % A_ROW] = a_next[i];
            }
            [[unroll]] for (int i = 0; i < B_EACH; i++) {
                const int v = local + i * THREADS;
                if (B_VECTORS % THREADS == 0 || v < B_VECTORS)
                    block[base + A_SIZE + v / B_ROW * (B_ROW + 1) + v % B_ROW] = b_next[i];
            }
        }
        barrier();
    }
    [[unroll]] for (int i = 0; i < WM / 16; i++) {
        [[unroll]] for (int j = 0; j < WN / 16; j++)
            coopMatStoreNV(acc[i][j], block, subgroup * STRIP + j * 4, STRIP_ROW, false);
        barrier();
        /* the elements of a part are for its teams together */
        for (int e = slice * LANES + lane; e < 16 * WN; e += LANES * SLICES) {
            const int m = at.x + my + i * 16 + e / WN, n = at.y + nx + e % WN;
            const int from = part * STRIP + e / WN * STRIP_ROW + e % WN / 4;
            float sum = uintBitsToFloat(block[from][e % 4]);
            [[unroll]] for (int s = 1; s < SLICES; s++) sum += uintBitsToFloat(block[from + s * TEAM * STRIP][e % 4]);
            if ((M % BM == 0 || m < M) && (N % BN == 0 || n < N)) {
                FINISH(sum, b, m, n);
            }
        }
        barrier();
    }
}
