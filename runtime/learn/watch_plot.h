/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Curves as characters (watch_plot.c): a cell is 2 by 4 dots of Braille, or one letter where there is no UTF-8. */
#ifndef BURN_WATCH_PLOT_H
#define BURN_WATCH_PLOT_H

#include "watch_own.h"

enum { PLOT_LAYERS = 2 };

typedef struct Plot {
    int rows, columns;                    /* cells */
    double low, high, from, to;           /* what the corners stand for: y, x */
    unsigned char *dots[PLOT_LAYERS];     /* of each cell: bits as in the Braille block of Unicode */
} Plot;

typedef struct PlotText { char text[4]; } PlotText;

/* 0 without memory. */
int plot_open(Plot *p, int rows, int columns);
void plot_close(Plot *p);
/* Widens low and high (NaN: none yet) so that all but the outermost fiftieth of the points fit. */
void plot_fit(Plot *p, const WatchPoint *points, int64_t count);
void plot_line(Plot *p, int layer, const WatchPoint *points, int64_t count);
/* The character of a cell, "" where nothing is drawn; the layer that is drawn on top of the others there. */
PlotText plot_cell(const Plot *p, int row, int column, int utf8, int *layer);

#endif
