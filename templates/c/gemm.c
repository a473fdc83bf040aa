// SPDX-License-Identifier: MIT OR Apache-2.0
/* Contraction: C[b][m][n] = EPILOGUE(sum over k of A[b][m][k] * B[b][k][n]), fp32. Sizes and strides are constants or
 * expressions.
 *
 * The idea: register tiles of MR rows by NV vectors (half the rows, up, on machines of 16 vector registers), whose
 * columns of B lie in panels of NR = NV*16 floats, a multiple of every vector width, so that one packing serves
 * AVX-512, AVX2, SSE and NEON. A panel of KC x NR stays in L1 while the tiles of MC rows pass over it. Element (b, m,
 * k) of A is A[b*AB + m*AM + k*AK].
 *
 *   KERNEL            name of the function
 *   BATCH M N K       sizes, all >= 1
 *   M_FIXED N_FIXED   where M and N are constants, these modulo any tile's rows or columns, but not 0: their edges
 *                     then are tiles of their own; else 0: the last rows go in tiles of 4 and of 1, the last columns
 *                     (PACK_B is 1 then) in whole tiles over the zeros of the panels
 *   AB AM AK          strides of A in floats (AB 0: the same A for every b); one of AM, AK is 1 for speed, any value is
 *                     right
 *   B_PACKED          1: B is constant and the compiler packed it (pack_gemm_b): [b][ceil(N/NR)][K][NR], zeros past N;
 *                     BB is then the packed size of one matrix. 0: element (b, k, n) is B[b*BB + k*BK + n*BN]
 *   BB BK BN          strides of B in floats (BB 0: broadcast); BN 1 is row-major, BK 1 is transposed, any value is
 *                     right
 *   PACK_B            with B_PACKED 0: 1 copies blocks KC x NC of B into panels first (needed if BN != 1, and pays from
 *                     M >= 4*MR on), 0 reads B where it lies (BN must be 1), 2 too, but for a panel at a time, which
 *                     the first tile of rows copies while it reads (BN must be 1, M and N constants)
 *   PACK_A            1 copies blocks MC x KC of A first: for AK != 1, and for AM a multiple of 1024, where rows share
 *                     cache sets
 *   CB CM             strides of C in floats: C[b*CB + m*CM + n]
 *   MR NV             tile: MR <= 16; NV <= 4
 *   KC NC MC          blocks: KC along k; NC along n, a multiple of NR; MC along m, a multiple of MR. Each may exceed
 *                     its size
 *   PARTS SHARES PART_AXIS PART_COLUMNS    PARTS 0: all of C. Else the function does the part'th of SHARES shares:
 *                     SHARES / PART_COLUMNS of the batches (PART_AXIS 0) or of the tiles of MR rows (1), each in
 *                     PART_COLUMNS of the panels of NR columns; every element is the same as with PARTS 0
 *   PART_TALL         shares are numbered as in blocks.h, in blocks of so many of their rows
 *   STRIP             1: the function does rows strip..strip_end-1 of the only matrix, whole tiles or up to the last
 *                     row, and A and C begin at rows a_at and c_at; PARTS is 0 then
 *   IDENTITY_EPILOGUE 1: EPILOGUE(acc, ...) is acc, and tiles go straight to C
 *   FINISH            name of a function of the kernel's own
 *   EPILOGUE_PARAMS   text after the parameter C: empty or `, const float *restrict e_bias`; no name of a local here
 *   FINISH_PARAMS     what EPILOGUE and CM need of it; FINISH_ARGS the same as arguments
 *   EPILOGUE(acc, b, m, n)  the value stored, an expression
 *
 * scratch: 64-byte aligned, at least 4 * (b_floats + PACK_A * (MC, and MR if that is odd) * (KC + 16)) bytes, where
 * b_floats is KC * NC if PACK_B is 1, KC * NR if it is 2, or if B is neither packed nor PACK_B and N is no multiple of
 * NR, else 0 (gemm_scratch_bytes in tiles.c). When K > KC, C holds partial sums in between; so nothing that EPILOGUE
 * reads may share memory with C.
 */
#include "vec.h"
// holes
#define KERNEL gemm
#define BATCH 1
#define M 128
#define N 1536
#define K 384
#define M_FIXED 128
#define N_FIXED 1536
#define AB 0
#define AM 384
#define AK 1
#define B_PACKED 1
#define BB 0
#define BK 1536
#define BN 1
#define PACK_B 0
#define PACK_A 0
#define CB 0
#define CM 1536
#define MR 12
#define NV 2
#define KC 384
#define NC 1536
#define MC 132
#define PARTS 0
#define SHARES 1
#define PART_AXIS 1
#define PART_COLUMNS 1
#define PART_TALL 1
#define STRIP 0
#define IDENTITY_EPILOGUE 1
#define FINISH gemm_finish
#define EPILOGUE_PARAMS
#define FINISH_PARAMS
#define FINISH_ARGS
#define EPILOGUE(acc, b, m, n) (acc)
// end holes

/* A tile of sums becomes `count` rows of results. A function of its own: its constants would take the tile's registers.
 */
BURN_OUTLINE void FINISH(const float *restrict tile, float *restrict c, ptrdiff_t count, ptrdiff_t columns, ptrdiff_t b,
                         ptrdiff_t m, ptrdiff_t n FINISH_PARAMS)
{
    enum { WIDTH = NV * BURN_VF_LANES };
    (void)b, (void)m, (void)n;
    if (columns < WIDTH) {
        for (ptrdiff_t i = 0; i < count; i++) {
            BURN_ROW
            for (ptrdiff_t j = 0; j < (N_FIXED ? N_FIXED % WIDTH : columns); j++)
                c[i * CM + j] = EPILOGUE(tile[i * WIDTH + j], b, (m + i), (n + j));
        }
        return;
    }
    for (ptrdiff_t i = 0; i < count; i++) {
        BURN_ROW
        BURN_LOOP
        for (ptrdiff_t j = 0; j < WIDTH; j++)
            c[i * CM + j] = EPILOGUE(tile[i * WIDTH + j], b, (m + i), (n + j));
    }
}

BURN_KERNEL static void KERNEL(const float *restrict A, const float *restrict B, float *restrict C EPILOGUE_PARAMS,
#if STRIP
                               unsigned char *scratch, ptrdiff_t strip, ptrdiff_t strip_end, ptrdiff_t a_at,
                               ptrdiff_t c_at)
#elif PARTS
                               unsigned char *scratch, ptrdiff_t part)
#else
                               unsigned char *scratch)
#endif
{
    enum { PANEL = NV * 16, WIDTH = NV * BURN_VF_LANES, ROWS = BURN_MANY_REGISTERS ? MR : (MR + 1) / 2 };
    enum { COLUMNS_EDGE = N_FIXED % WIDTH,
           VECTORS_EDGE = N_FIXED ? (COLUMNS_EDGE + BURN_VF_LANES - 1) / BURN_VF_LANES : NV,
           /* the last columns are whole vectors: nothing is read or written past N */
           WHOLE_EDGE = N_FIXED != 0 && COLUMNS_EDGE % BURN_VF_LANES == 0,
           EDGE_LIES = !PACK_B && WHOLE_EDGE };
#if M_FIXED
    enum { ROWS_EDGE = M_FIXED % ROWS };
#else
    enum { ROWS_EDGE = 1 };
#endif
    const ptrdiff_t block = (MC + ROWS - 1) / ROWS * ROWS;
    float *const panels = (float *)(void *)scratch;
#if PACK_A
    float *const rows = panels + (B_PACKED ? 0 : PACK_B == 1 ? KC * NC : PACK_B || N % PANEL ? KC * PANEL : 0);
    const ptrdiff_t am = AM == 1 ? 1 : KC + 16, ak = AM == 1 ? ROWS : 1, row_step = AM == 1 ? KC : KC + 16;
#else
    const ptrdiff_t am = AM, ak = AK, row_step = AM;
#endif
    (void)panels;
#if !STRIP
    const ptrdiff_t a_at = 0, c_at = 0;
#endif
#if STRIP
    const ptrdiff_t b_from = 0, b_end = 1, m_from = strip, m_end = strip_end, n_from = 0, n_end = N;
#elif PARTS
    const ptrdiff_t down_shares = SHARES / PART_COLUMNS;
    const ptrdiff_t down = burn_part_down(part, PART_COLUMNS, PART_TALL),
        across = burn_part_across(part, PART_COLUMNS, PART_TALL), size = PART_AXIS == 0 ? BATCH : M,
        unit = PART_AXIS == 0 ? 1 : ROWS;
    const ptrdiff_t units = (size + unit - 1) / unit, from = units * down / down_shares * unit,
        to = units * (down + 1) / down_shares * unit, end = to < size ? to : size;
    const ptrdiff_t columns_all = (N + PANEL - 1) / PANEL, n_from = columns_all * across / PART_COLUMNS * PANEL,
        n_to = columns_all * (across + 1) / PART_COLUMNS * PANEL, n_end = n_to < N ? n_to : N;
    const ptrdiff_t b_from = PART_AXIS == 0 ? from : 0, m_from = PART_AXIS == 1 ? from : 0;
    const ptrdiff_t b_end = PART_AXIS == 0 ? end : BATCH, m_end = PART_AXIS == 1 ? end : M;
#endif
#if STRIP || PARTS
    for (ptrdiff_t b = b_from; b < b_end && m_from < m_end; b++)
#else
    const ptrdiff_t b_from = 0, n_from = 0, n_end = N;
    (void)b_from, (void)n_from, (void)n_end;
    for (ptrdiff_t b = 0; b < BATCH; b++)
#endif
        for (ptrdiff_t n0 = n_from; n0 < n_end; n0 += NC)
            for (ptrdiff_t k0 = 0; k0 < K; k0 += KC) {
                const ptrdiff_t n1 = n0 + NC < n_end ? n0 + NC : n_end, depth = k0 + KC < K ? KC : K - k0;
                const bool first = k0 == 0, last = k0 + KC >= K;
#if !B_PACKED
                const float *const b_block = B + b * BB + k0 * BK;
#endif
#if !B_PACKED && PACK_B != 2
                const bool packed = BB == 0 && b > b_from && KC >= K && NC >= n_end - n_from; /* for the one before */
                for (ptrdiff_t n = packed || EDGE_LIES ? n1 : PACK_B ? n0 : N - COLUMNS_EDGE; n < n1; n += PANEL)
                    burn_pack_panel(panels + (PACK_B ? (n - n0) * depth : 0), PANEL, b_block + n * BN, BK, BN, depth,
                                    n1 - n < PANEL ? n1 - n : PANEL);
#endif
#if STRIP || PARTS
                for (ptrdiff_t m0 = m_from; m0 < m_end; m0 += block) {
                    const ptrdiff_t m1 = m0 + block < m_end ? m0 + block : m_end;
#else
                for (ptrdiff_t m0 = 0; m0 < M; m0 += block) {
                    const ptrdiff_t m1 = m0 + block < M ? m0 + block : M;
#endif
#if B_PACKED
#if PARTS
                    /* from `head` to `foot`: the block's, all of whose parts pass over a panel */
                    const ptrdiff_t above = down - down % PART_TALL, below = above + PART_TALL;
                    const bool pass = PART_AXIS == 1 && m0 == m_from;
                    const ptrdiff_t head = pass ? units * above / down_shares * unit : m0,
                        foot = pass ? units * below / down_shares * unit : m1;
#else
                    const ptrdiff_t head = m0, foot = m1;
#endif
                    /* the tiles that pass over a panel bring the next one near, each its share */
                    const ptrdiff_t tiles = (foot - head + ROWS - 1) / ROWS, share = (PANEL * 4 + tiles - 1) / tiles,
                        apart = share < 64 ? share : 64;
#endif
                    const float *row0 = A + b * AB + (m0 - a_at) * AM + k0 * AK;
#if PACK_A
                    burn_pack_rows(rows, row_step, ROWS, row0, AM, AK, m1 - m0, depth);
                    row0 = rows;
#endif
                    for (ptrdiff_t n = n0; n < n1; n += WIDTH) {
                        const bool column_edge = (!N_FIXED || COLUMNS_EDGE > 0) && n + WIDTH > N;
                        const ptrdiff_t columns = !column_edge ? WIDTH : N_FIXED ? COLUMNS_EDGE : N - n;
#if B_PACKED
                        const float *const column = B + b * BB + (n / PANEL * K + k0) * PANEL + n % PANEL;
                        const ptrdiff_t bk = PANEL;
#elif PACK_B == 2
                        if (column_edge)
                            burn_pack_panel(panels, WIDTH, b_block + n, BK, 1, depth, columns);
#else
                        const bool edge_packed = column_edge && !EDGE_LIES;
                        const float *const column = PACK_B
                            ? panels + (n - n0) / PANEL * PANEL * depth + n % PANEL
                                                    : edge_packed ? panels
                                                                  : b_block + n;
                        const ptrdiff_t bk = PACK_B || edge_packed ? PANEL : BK;
#endif
                        for (ptrdiff_t m = m0; m < m1; m += ROWS) {
                            const bool row_edge = ROWS_EDGE > 0 && m + ROWS > M,
                                      to_c = (!column_edge || WHOLE_EDGE) && (IDENTITY_EPILOGUE || !last);
#if M_FIXED
                            const ptrdiff_t count = row_edge ? ROWS_EDGE : ROWS;
#else
                            const ptrdiff_t count = row_edge ? M - m : ROWS;
#endif
#if PACK_B == 2
                            const bool keeps = m == m0 && !column_edge && !row_edge, kept = column_edge || m > m0;
                            const float *const column = kept ? panels : b_block + n;
                            const ptrdiff_t bk = kept ? WIDTH : BK;
#endif
#if B_PACKED
                            const char *const next =
                                (const char *)(column + (n1 - n0 > PANEL ? (ptrdiff_t)K : depth) * PANEL);
                            const float *const ahead =
                                (const float *)(const void *)(next + (m - head) / ROWS * depth * apart);
#else
                            const float *const ahead = 0;
                            const ptrdiff_t apart = 64;
#endif
                            float tile[ROWS * WIDTH];
                            float *const c_tile = C + b * CB + (m - c_at) * CM + n, *const out = to_c ? c_tile : tile;
                            for (ptrdiff_t i = 0; i < count && !to_c && !first; i++)
                                for (ptrdiff_t j = 0; j < columns; j++)
                                    tile[i * WIDTH + j] = c_tile[i * CM + j];
#if PACK_B == 2
                            if (keeps)
                                burn_tile_keep(ROWS, NV, depth, row0, am, ak, column, BK, out, to_c ? CM : WIDTH,
                                               !first, panels);
                            else
#endif
#if M_FIXED
                            burn_tile_apart(ROWS, ROWS_EDGE, NV, column_edge ? VECTORS_EDGE : NV, row_edge, depth,
                                            row0 + (m - m0) * row_step, am, ak, column, bk, out, to_c ? CM : WIDTH,
                                            !first, ahead, apart);
#else
                            const float *const a_tile = row0 + (m - m0) * row_step;
                            const int vectors = column_edge ? VECTORS_EDGE : NV;
                            const ptrdiff_t cm = to_c ? CM : WIDTH, fours = row_edge ? count / 4 * 4 : 0;
                            if (!row_edge)
                                burn_tile_apart(ROWS, 0, NV, vectors, 0, depth, a_tile, am, ak, column, bk, out, cm,
                                                !first, ahead, apart);
                            for (ptrdiff_t i = 0; i < fours; i += 4)
                                burn_tile_at(4, 0, NV, vectors, 0, depth, a_tile + i * am, am, ak, column, bk,
                                             out + i * cm, cm, !first, column);
                            for (ptrdiff_t i = fours; i < count && row_edge; i++)
                                burn_tile_at(1, 0, NV, vectors, 0, depth, a_tile + i * am, am, ak, column, bk,
                                             out + i * cm, cm, !first, column);
#endif
                            for (ptrdiff_t i = 0; i < count && !to_c && !last; i++)
                                for (ptrdiff_t j = 0; j < columns; j++)
                                    c_tile[i * CM + j] = tile[i * WIDTH + j];
                            if (!to_c && last)
                                FINISH(tile, c_tile, count, columns, b, m, n FINISH_ARGS);
                        }
                    }
                }
            }
}
