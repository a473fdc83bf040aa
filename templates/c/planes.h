// SPDX-License-Identifier: MIT OR Apache-2.0
/* What convolutions on planes share: padded rows, and sums over the taps of a window. Copied once, whole, into a
 * generated file that has any. */
#ifndef BURN_PLANES_H
#define BURN_PLANES_H
#include "vec.h"

#if defined(BURN_PORTABLE)
typedef const float *burn_planes_part;
typedef struct burn_planes_lanes {
    ptrdiff_t from, end;
} burn_planes_lanes;

BURN_INLINE burn_planes_lanes burn_planes_between(ptrdiff_t from, ptrdiff_t end)
{
    const burn_planes_lanes lanes = {from, end};
    return lanes;
}

BURN_INLINE burn_planes_part burn_planes_load(const float *p)
{
    return p;
}

BURN_INLINE void burn_planes_muladd(burn_vf *sum, float scale, burn_planes_part v)
{
    burn_vf_muladd(sum, scale, v);
}

BURN_INLINE burn_planes_part burn_planes_only(burn_planes_part v, burn_planes_lanes inside, float *room)
{
    for (int i = 0; i < BURN_VF_LANES; i++)
        room[i] = i >= inside.from && i < inside.end ? v[i] : 0.0f;
    return room;
}
#else
typedef burn_vf burn_planes_part;
typedef int32_t burn_planes_lanes __attribute__((vector_size(4 * BURN_VF_LANES)));
typedef int32_t burn_planes_lanes_memory __attribute__((vector_size(4 * BURN_VF_LANES), aligned(4), may_alias));

/* All bits of the lanes from..end-1, where these are. */
BURN_INLINE burn_planes_lanes burn_planes_between(ptrdiff_t from, ptrdiff_t end)
{
#define BURN_FOUR(x) x, x, x, x
    static const int32_t bits[48] = {BURN_FOUR(0), BURN_FOUR(0), BURN_FOUR(0), BURN_FOUR(0),
                                     BURN_FOUR(-1), BURN_FOUR(-1), BURN_FOUR(-1), BURN_FOUR(-1)};
#undef BURN_FOUR
    const ptrdiff_t skip = from < 0 ? 0 : from < 16 ? from : 16, take = end < 0 ? 0 : end < 16 ? end : 16;
    return *(const burn_planes_lanes_memory *)(bits + 16 - skip) &
           *(const burn_planes_lanes_memory *)(bits + 32 - take);
}

/* A vector that several sums take. */
BURN_INLINE burn_planes_part burn_planes_load(const float *p)
{
    burn_vf v = burn_vf_load(p);
#if defined(__x86_64__) && !defined(__clang__)
    __asm__("" : "+v"(v)); /* or gcc loads it anew for each sum, and most loads cross a cache line */
#endif
    return v;
}

BURN_INLINE void burn_planes_muladd(burn_vf *sum, float scale, burn_planes_part v)
{
    BURN_CONTRACT
    *sum += scale * v;
}

/* v, and 0 in the lanes that are not inside. */
BURN_INLINE burn_planes_part burn_planes_only(burn_planes_part v, burn_planes_lanes inside, float *room)
{
    (void)room;
    return (burn_vf)((burn_planes_lanes)v & inside);
}
#endif

/* A window on a padded image: its taps, strides and dilations along rows and columns; floats from row to row and from
 * slice to slice of the image. Where sw > 1, column q of the image lies at q % sw * phase + q / sw of its row: what a
 * tap reads for neighbouring outputs are neighbours. */
typedef struct burn_planes_window {
    int kd, kh, kw, sh, sw, dh, dw;
    ptrdiff_t phase, row, slice;
} burn_planes_window;

/* Is row y of what a tile's windows cover in the window of its i'th output? */
BURN_INLINE bool burn_planes_in(burn_planes_window g, int y, int i)
{
    return y >= i * g.sh && (y - i * g.sh) % g.dh == 0 && (y - i * g.sh) / g.dh < g.kh;
}

/* v, which is in row y, goes to all sums whose windows have this row; w: the taps of its column. */
BURN_INLINE void burn_planes_tap(burn_vf *sum, int rows, burn_planes_window g, int y, const float *w,
                                 burn_planes_part v)
{
    BURN_UNROLL
    for (int i = 0; i < rows; i++)
        if (burn_planes_in(g, y, i))
            burn_planes_muladd(&sum[i], w[(y - i * g.sh) / g.dh * g.kw], v);
}

/* Row y is in the sums now: else gcc puts off each sum's products to where it is stored, and what has been loaded for
 * all of them waits on the stack. */
BURN_INLINE void burn_planes_now(burn_vf *sum, int rows, burn_planes_window g, int y)
{
#if defined(__x86_64__) && !defined(__clang__) && !defined(BURN_PORTABLE)
    BURN_UNROLL
    for (int i = 0; i < rows; i++)
        if (burn_planes_in(g, y, i))
            __asm__("" : "+v"(sum[i]));
#endif
    (void)sum, (void)rows, (void)g, (void)y;
}

/* Columns left..left+count-1 of a row of the image become the `count` floats from `from` on. */
BURN_INLINE void burn_planes_row(float *restrict to, ptrdiff_t sw, ptrdiff_t phase, ptrdiff_t left, ptrdiff_t count,
                                 const float *restrict from)
{
    if (sw == 1) {
        memcpy(to + left, from, (size_t)count * sizeof *to);
        return;
    }
    for (ptrdiff_t s = 0; s < sw; s++) {
        const ptrdiff_t first = left > s ? (left - s + sw - 1) / sw : 0,
            end = left + count > s ? (left + count - s + sw - 1) / sw : 0;
        for (ptrdiff_t q = first; q < end; q++)
            to[s * phase + q] = from[q * sw + s - left];
    }
}

/* to[i * step + lane] = the sums of one vector of columns, for `rows` outputs below each other, stored in this order;
 * x: where the first one's window begins in the image. An element of the image is loaded once for all outputs that it
 * is in, as long as the taps are few. */
BURN_INLINE void burn_planes_tile(int rows, burn_planes_window g, const float *x, const float *w, float *to,
                                  ptrdiff_t step)
{
    burn_vf sum[BURN_TILE_ROWS];
    BURN_UNROLL
    for (int i = 0; i < rows; i++)
        burn_vf_zero(&sum[i]);
    for (int d = 0; d < g.kd; d++, x += g.slice, w += g.kh * g.kw) {
        if (g.kh * g.kw <= 25 && (rows - 1) * g.sh + (g.kh - 1) * g.dh < 16) {
            BURN_UNROLL
            for (int y = 0; y <= (rows - 1) * g.sh + (g.kh - 1) * g.dh; y++) {
                BURN_UNROLL
                for (int k = 0; k < g.kw; k++) {
                    const burn_planes_part v = burn_planes_load(x + y * g.row + k * g.dw % g.sw * g.phase
                                                                + k * g.dw / g.sw);
                    burn_planes_tap(sum, rows, g, y, w + k, v);
                }
                burn_planes_now(sum, rows, g, y);
            }
        } else {
            for (int h = 0; h < g.kh; h++)
                for (int k = 0; k < g.kw; k++) {
                    BURN_UNROLL
                    for (int i = 0; i < rows; i++)
                        burn_vf_muladd(&sum[i], w[h * g.kw + k],
                                       x + (i * g.sh + h * g.dh) * g.row + k * g.dw % g.sw * g.phase + k * g.dw / g.sw);
                }
        }
    }
    BURN_UNROLL
    for (int i = 0; i < rows; i++)
        burn_vf_put(to + i * step, &sum[i]);
}

/* The same without padding: a slice's rows lie at x, or where row[y] + at says, each slice's in turn; of what the k'th
 * tap of each row reads, the lanes outside of inside[k], unless that is NULL, count as 0. */
BURN_INLINE void burn_planes_tile_rows(int rows, burn_planes_window g, const float *x, const float *const *row,
                                       ptrdiff_t at, const burn_planes_lanes *inside, const float *w, float *to,
                                       ptrdiff_t step)
{
    const int high = (rows - 1) * g.sh + (g.kh - 1) * g.dh + 1;
    float room[BURN_VF_LANES];
    (void)room;
    burn_vf sum[BURN_TILE_ROWS];
    BURN_UNROLL
    for (int i = 0; i < rows; i++)
        burn_vf_zero(&sum[i]);
    for (int d = 0; d < g.kd; d++, w += g.kh * g.kw) {
        BURN_UNROLL
        for (int y = 0; y < high; y++) {
            BURN_UNROLL
            for (int k = 0; k < g.kw; k++) {
                const float *const from = row ? row[d * high + y] + at : x + d * g.slice + y * g.row;
                burn_planes_part v = burn_planes_load(from + k * g.dw);
                if (inside != NULL)
                    v = burn_planes_only(v, inside[k], room);
                burn_planes_tap(sum, rows, g, y, w + k, v);
            }
            burn_planes_now(sum, rows, g, y);
        }
    }
    BURN_UNROLL
    for (int i = 0; i < rows; i++)
        burn_vf_put(to + i * step, &sum[i]);
}
#endif
