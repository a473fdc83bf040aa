// SPDX-License-Identifier: MIT OR Apache-2.0
/* Convolution 3x3, stride 1, fp32, channels last, one group, by Winograd's F(T x T, 3x3), T 2 or 4: a tile of T*T output pixels takes (T+2)^2
 * products per pair of channels instead of 9 * T^2.  Y = A' [ (G w G') * (B' d B) ] A per tile.
 *
 * The idea: some tiles at a time. Their input is transformed for all input channels (V[x][tile][IC]), and the POINTS numbers of a tile are as many
 * independent products  M[x] = V[x] U[x]  of [tiles x IC] by [IC x OC], made by the register tile that every contraction uses, NR output channels
 * at a time, which are transformed back while they are in cache. Vectors run over channels everywhere, so that transforms are plain sums of
 * vectors; pixels outside of the input are read from a line of zeros.
 *
 *   KERNEL            name of the function
 *   N IC OC           batch, input channels (at least 16) and output channels
 *   IH IW OH OW       input and output sizes;  PH PW padding before
 *   XN XH XW          strides of X in floats; channels are neighbours.   YC: floats of Y from pixel to pixel
 *   T                 2 or 4
 *   MR MF NV          tile of the products: MR or, on machines of 16 vector registers, MF tiles by NV vectors
 *   TB                tiles in a block
 *   VP                floats from tile to tile of V, >= IC and no multiple of 1024
 *   PARTS PART_PANELS IDENTITY_EPILOGUE EPILOGUE_PARAMS EPILOGUE(acc, n, p, c)      as in conv.c; shares are of tiles, or with PART_PANELS of output channels
 *
 * W is transformed and packed by the compiler (pack_winograd_w): [ceil(OC/NR)][POINTS][IC][NR] with NR = NV*16, zeros past OC.
 * scratch: 64-byte aligned, winograd_scratch_bytes in tiles_conv.c.
 * Error, root mean square relative to the outputs' of random normal numbers, for 64, 256, 512 input channels: T 4 8e-7, 14e-7, 21e-7; T 2 3e-7, 5e-7,
 * 7e-7; the direct sum (conv.c), of nine times as many terms one after the other, 4e-7, 9e-7, 12e-7. The largest errors are some 3 times these.
 */
#include "winograd.h"
// holes
#define KERNEL winograd
#define N 1
#define IC 64
#define OC 64
#define IH 56
#define IW 56
#define OH 56
#define OW 56
#define PH 1
#define PW 1
#define XN 200704
#define XH 3584
#define XW 64
#define YC 64
#define T 4
#define MR 14
#define MF 6
#define NV 2
#define TB 56
#define VP 64
#define PARTS 0
#define PART_PANELS 0
#define IDENTITY_EPILOGUE 1
#define EPILOGUE_PARAMS
#define EPILOGUE(acc, n, p, c) (acc)
// end holes

BURN_KERNEL static void KERNEL(const float *restrict W, const float *restrict X, float *restrict Y EPILOGUE_PARAMS,
#if PARTS
                               unsigned char *scratch, ptrdiff_t part)
#else
                               unsigned char *scratch)
#endif
{
    enum { SIZE = T + 2, POINTS = SIZE * SIZE, PANEL = NV * 16, WIDTH = NV * BURN_VF_LANES, ROWS = BURN_MANY_REGISTERS ? MR : MF, PANELS = (OC + PANEL - 1) / PANEL };
    enum { ACROSS = (OW + T - 1) / T, TILES = (OH + T - 1) / T * ACROSS, TEAMS = (TILES + ROWS - 1) / ROWS, BLOCK = TB < ROWS ? 1 : TB / ROWS };
    enum { V_STEP = BLOCK * ROWS * VP + 16, M_STEP = BLOCK * ROWS * PANEL + 16 };
    float *const zeros = (float *)(void *)scratch, *const half = zeros + (IC + 15) / 16 * 16, *const out = half + POINTS * 16;
    float *const m = out + T * T * PANEL, *const v = m + (ptrdiff_t)POINTS * M_STEP;
    memset(zeros, 0, IC * sizeof *zeros);
    const ptrdiff_t units = (ptrdiff_t)N * TEAMS; /* a team is as many tiles as a register tile has rows */
#if PARTS && PART_PANELS
    const ptrdiff_t first_unit = 0, end_unit = units, first_panel = (ptrdiff_t)PANELS * part / PARTS, end_panel = (ptrdiff_t)PANELS * (part + 1) / PARTS;
#elif PARTS
    const ptrdiff_t first_unit = units * part / PARTS, end_unit = units * (part + 1) / PARTS, first_panel = 0, end_panel = PANELS;
#else
    const ptrdiff_t first_unit = 0, end_unit = units, first_panel = 0, end_panel = PANELS;
#endif
    for (ptrdiff_t unit = first_unit, block; unit < end_unit; unit += block) {
        const ptrdiff_t n = unit / TEAMS, team = unit % TEAMS, t0 = team * ROWS;
        block = TEAMS - team < BLOCK ? TEAMS - team : BLOCK;
        block = end_unit - unit < block ? end_unit - unit : block;
        const ptrdiff_t t1 = t0 + block * ROWS < TILES ? t0 + block * ROWS : TILES;
        for (ptrdiff_t t = t0; t < t1 && first_panel < end_panel; t++) {
            const float *pixel[POINTS];
            for (ptrdiff_t i = 0; i < POINTS; i++) {
                const ptrdiff_t y = t / ACROSS * T - PH + i / SIZE, x = t % ACROSS * T - PW + i % SIZE;
                pixel[i] = y >= 0 && y < IH && x >= 0 && x < IW ? X + n * XN + y * XH + x * XW : zeros;
            }
            burn_wino_in(SIZE, v + (t - t0) * VP, V_STEP, pixel, IC, half);
        }
        for (ptrdiff_t panel = first_panel; panel < end_panel; panel++) {
            const ptrdiff_t width = OC - panel * PANEL < PANEL ? OC - panel * PANEL : PANEL;
            for (ptrdiff_t i = 0; i < POINTS; i++)
                for (ptrdiff_t o = 0; o < PANEL; o += WIDTH) {
                    const float *const w = W + (panel * POINTS + i) * (ptrdiff_t)(IC * PANEL) + o;
                    for (ptrdiff_t t = 0; t < t1 - t0; t += ROWS)
                        burn_tile_at(ROWS, TILES % ROWS, NV, NV, t0 + t + ROWS > TILES, IC, v + i * V_STEP + t * VP, VP, 1, w, PANEL, m + i * M_STEP + t * PANEL + o, PANEL, 0,
                                     t < ROWS * (PANEL / 16) ? w + (IC * PANEL) + t / ROWS * (IC * 16) : w);
                }
            for (ptrdiff_t t = t0; t < t1; t++) {
                const ptrdiff_t oh = t / ACROSS * T, ow = t % ACROSS * T;
                for (ptrdiff_t j = 0; j < PANEL; j += 16)
                    burn_wino_out(SIZE, out + j, PANEL, m + (t - t0) * PANEL + j, M_STEP, half);
                for (ptrdiff_t r = 0; r < T && oh + r < OH; r++)
                    for (ptrdiff_t k = 0; k < T && ow + k < OW; k++) {
                        const ptrdiff_t p = (oh + r) * OW + ow + k;
                        const float *const from = out + (r * T + k) * PANEL;
                        float *const y = Y + (n * (OH * OW) + p) * YC + panel * PANEL;
                        if (width < PANEL)
                            for (ptrdiff_t j = 0; j < width; j++)
                                y[j] = EPILOGUE(from[j], n, p, (panel * PANEL + j));
                        else {
                            BURN_LOOP
                            for (ptrdiff_t j = 0; j < PANEL; j++)
                                y[j] = EPILOGUE(from[j], n, p, (panel * PANEL + j));
                        }
                    }
            }
        }
    }
}
