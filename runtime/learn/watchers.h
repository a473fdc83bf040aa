/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Watchers (watch.h) for people: lines, a dashboard, logs, a report.
 *
 *     burn_watcher watchers[3];
 *     int error = burn_watch_screen(stderr, &watchers[0]);
 *     if (!error) error = burn_watch_logs(&watchers[0], &watchers[1]);
 *     if (!error) error = burn_watch_report(&watchers[0], &watchers[2]);
 *
 * Each makes *watcher, 0 or BURN_ENOMEM; watcher->close frees it. Logs and reports are kept in the task's folder of
 * artifacts, and nothing without one; a file that cannot be written is told once, to `tell` (which outlives the
 * watcher; NULL: to nobody), and the run goes on. */
#ifndef BURN_WATCHERS_H
#define BURN_WATCHERS_H

#include "watch.h"

#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A line that is written anew as batches are done, one that stays for each epoch, and a table at the end. Where `to`
 * is no terminal, or TERM is "dumb": a line for each epoch, and one every half a minute. Colours unless NO_COLOR is
 * set. quiet: warnings and errors alone. */
int burn_watch_lines(FILE *to, int quiet, burn_watcher *watcher);

/* A dashboard on the terminal `to`; burn_watch_lines where it is none, TERM is "dumb" or unknown, or ncurses was not
 * there when this was built. From begin to finish it has the terminal, and handles the signals that end a process so
 * that the terminal is itself again: one at a time in a process. Messages of that time are repeated below the table. */
int burn_watch_screen(FILE *to, burn_watcher *watcher);

/* In the folder of artifacts:
 *   train/epoch-N/METRIC.log, valid/...   a line "value,items" for each batch ("value" for a metric of whole epochs)
 *   history.csv                           epoch,split,metric,unit,better,value: means of epochs
 *   experiment.log                        what happened, with the time (UTC)
 *   tensorboard/train, tensorboard/valid  event files: METRIC by step for each epoch, batch/METRIC for batches
 * A run that is resumed goes on in them. */
int burn_watch_logs(const burn_watcher *tell, burn_watcher *watcher);

/* report.html in the folder of artifacts, new after each epoch: one file with curves, summary, settings, the confusion
 * matrix of the first metric that counts one, and the items of the last validation with the greatest loss. */
int burn_watch_report(const burn_watcher *tell, burn_watcher *watcher);
/* The runs of n such files in one. */
int burn_report_join(int n, const char *const *reports, const char *path, burn_said *said);

#ifdef __cplusplus
}
#endif
#endif
