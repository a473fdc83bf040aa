/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the watchers (watch_*.c) share: the curves of a run, and how numbers and times are written. */
#ifndef BURN_WATCH_OWN_H
#define BURN_WATCH_OWN_H

#include "watchers.h"

/* x: epochs since the start, a whole number at the end of one. */
typedef struct WatchPoint { double x, y; } WatchPoint;

enum { WATCH_WHOLE = 512, WATCH_RECENT = 256 };

/* One figure of one split over the run. Batches stand in memory that does not grow: the last WATCH_RECENT of them, and
 * all as means of `stride` batches, which doubles whenever there are WATCH_WHOLE. */
typedef struct WatchCurve {
    char *name, *unit;
    burn_better better;
    burn_split split;
    double now, mean;                       /* of the last batch; of its epoch so far */
    WatchPoint *epochs;                     /* the means of epochs that are done */
    int64_t epoch_count, epoch_room;
    WatchPoint recent[WATCH_RECENT];        /* batch i at i % WATCH_RECENT */
    int64_t batches;
    WatchPoint whole[WATCH_WHOLE];
    int whole_count;
    int64_t stride, pending;                /* batches of the mean that is being made: */
    double sum;                             /* of those that have a number, */
    int64_t numbers;                        /* so many */
} WatchCurve;

typedef struct WatchHistory {
    WatchCurve **curves;                    /* in the order in which they were seen */
    int count, room;
} WatchHistory;

/* The curve of that name and split, made where there is none; NULL without memory. */
WatchCurve *watch_curve(WatchHistory *h, const burn_figure *figure, burn_split split);
/* What memory does not suffice for is left out. */
void watch_history_batch(WatchHistory *h, const burn_progress *p);
void watch_history_epoch(WatchHistory *h, const burn_progress *p);
/* Epochs that a run before this one logged in `folder`, at most so many; none where there is no such log. */
void watch_history_load(WatchHistory *h, const char *folder, int64_t epochs);
void watch_history_free(WatchHistory *h);
/* The best epoch, or NULL where it has none: all are NaN, or none is better than another. */
const WatchPoint *watch_curve_best(const WatchCurve *c);

const char *watch_split(burn_split split);  /* as files call it: "train", "valid" */
/* "0.9731", "12.35", "1.2e-05", "nan". */
typedef struct WatchText { char text[32]; } WatchText;
WatchText watch_number(double value);
/* "0:42", "1:02:03", "?" for NaN. */
WatchText watch_time(double seconds);
double watch_clock(void);                   /* seconds since some moment */
/* Columns and rows of a terminal, 0 where it is none or TERM is "dumb". */
int watch_terminal(FILE *to, int *rows);
int watch_colours(void);                    /* NO_COLOR is not set */
/* Cuts UTF-8 to so many characters; how many there are. */
int watch_cut(char *text, int characters);
/* How a run ended, and a table of its curves (watch_lines.c). name: may be NULL. */
void watch_summary(FILE *to, const WatchHistory *h, const char *name, const burn_outcome *outcome);
/* folder/train/epoch-3/NAME.log, "/" and " " in the name as "_"; the caller frees it. NULL without memory. */
char *watch_log_path(const char *folder, burn_split split, int64_t epoch, const char *name);
/* A field of a line of CSV, in double quotes where it must be; watch_csv_field reads one, unquoted in place. */
void watch_csv_text(FILE *to, const char *text);
char *watch_csv_field(char **line);
/* Text made by a format, which the caller frees; NULL without memory. */
char *watch_format(const char *format, ...);
char *watch_copy(const char *text);         /* of NULL: of "" */
void watch_say(const burn_watcher *to, burn_level level, const char *text);

/* Events for TensorBoard (watch_events.c). NULL where the folder or its file cannot be made. */
FILE *watch_events_open(const char *folder);
void watch_events_scalar(FILE *to, const char *tag, int64_t step, double value);
/* A run that goes on at `step`: what stands for later steps in files before counts no more. */
void watch_events_restart(FILE *to, int64_t step);
/* The page of reports, "report": watch_page.html, which the build makes a function of. */
const char *watch_page(const char *name);
/* mkdir -p; 0 where that fails, with errno. */
int watch_make_folder(const char *path);

#endif
