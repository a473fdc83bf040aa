/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Curves as characters. In: points in any order of y, x growing. Out: cells of 2 by 4 dots, a layer for each curve. */
#include "watch_plot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int plot_open(Plot *p, int rows, int columns)
{
    size_t cells = (size_t)rows * (size_t)columns;
    *p = (Plot){ .rows = rows, .columns = columns, .low = NAN, .high = NAN };
    p->dots[0] = calloc(PLOT_LAYERS * cells + 1, 1);
    for (int i = 1; i < PLOT_LAYERS; i++) p->dots[i] = p->dots[0] ? p->dots[i - 1] + cells : NULL;
    return p->dots[0] != NULL;
}

void plot_close(Plot *p)
{
    free(p->dots[0]);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void plot_fit(Plot *p, const WatchPoint *points, int64_t count)
{
    double *y = malloc((size_t)count * sizeof *y + 1);
    int64_t n = 0;
    for (int64_t i = 0; y && i < count; i++)
        if (isfinite(points[i].y)) y[n++] = points[i].y;
    if (n) {
        qsort(y, (size_t)n, sizeof *y, by_value);
        double low = y[n / 50], high = y[n - 1 - n / 50];
        if (!(p->low <= low)) p->low = low;
        if (!(p->high >= high)) p->high = high;
    }
    free(y);
}

static void dot(Plot *p, int layer, int x, int y)
{
    static const unsigned char BITS[4][2] = { { 0x01, 0x08 }, { 0x02, 0x10 }, { 0x04, 0x20 }, { 0x40, 0x80 } };
    if (x < 0 || y < 0 || x >= 2 * p->columns || y >= 4 * p->rows) return;
    p->dots[layer][y / 4 * p->columns + x / 2] |= BITS[y % 4][x % 2];
}

/* Dots from one place to another (Bresenham 1965). */
static void segment(Plot *p, int layer, int x, int y, int to_x, int to_y)
{
    int across = abs(to_x - x), down = -abs(to_y - y), error = across + down;
    while (x != to_x || y != to_y) {
        dot(p, layer, x, y);
        int twice = 2 * error;
        if (twice >= down) {
            error += down;
            x += x < to_x ? 1 : -1;
        }
        if (twice <= across) {
            error += across;
            y += y < to_y ? 1 : -1;
        }
    }
    dot(p, layer, x, y);
}

/* A share of the width or height as a dot, near enough to it where it is outside. */
static int place(double share, int dots)
{
    double at = share * (dots - 1);
    return at < -dots ? -dots : at > 2 * dots ? 2 * dots : (int)lround(at);
}

void plot_line(Plot *p, int layer, const WatchPoint *points, int64_t count)
{
    int was = 0, x = 0, y = 0;
    for (int64_t i = 0; i < count; i++) {
        double across = p->to > p->from ? (points[i].x - p->from) / (p->to - p->from) : 0.5;
        double up = p->high > p->low ? (points[i].y - p->low) / (p->high - p->low) : 0.5;
        if (!isfinite(points[i].y)) {
            was = 0;
            continue;
        }
        int to_x = place(across, 2 * p->columns), to_y = place(1 - up, 4 * p->rows);
        segment(p, layer, was ? x : to_x, was ? y : to_y, to_x, to_y);
        was = 1;
        x = to_x;
        y = to_y;
    }
}

PlotText plot_cell(const Plot *p, int row, int column, int utf8, int *layer)
{
    static const char LETTERS[PLOT_LAYERS] = { '.', '*' };
    int dots = 0;
    *layer = 0;
    for (int i = 0; i < PLOT_LAYERS; i++) {
        int own = p->dots[i][row * p->columns + column];
        if (own) *layer = i;
        dots |= own;
    }
    PlotText to = { "" };
    if (dots && !utf8) to.text[0] = LETTERS[*layer];
    else if (dots) to = (PlotText){ { (char)0xe2, (char)(0xa0 | dots >> 6), (char)(0x80 | (dots & 0x3f)), 0 } };
    return to;
}
