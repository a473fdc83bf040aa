// SPDX-License-Identifier: MIT OR Apache-2.0
// What is being done: for who waits, and for who asks with -v.
//
// In: the name of a stage, when it begins. Out, on a terminal: from the second second of the command on, one line of
// standard error that a timer writes anew every quarter of a second and every other line removes; with -v a line for
// each stage that ended, with its time. The idea: a stage cannot know how long it will take, so a timer speaks for it;
// what takes no second is silent, and no stage does more than to leave its name.
#define _POSIX_C_SOURCE 200809L
#define _XOPEN_SOURCE 700
#include "base/base.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { STAGE_BYTES = 160 };

static struct {
    bool verbose, timed;
    double begun, stage_begun;                          // seconds
    char stage[STAGE_BYTES];                            // "" : none
    volatile sig_atomic_t shown;                        // a line of the timer's stands on the terminal
} progress;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);                 // async-signal-safe
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void put(const char *s, size_t n) {
    while (n) {
        ssize_t done = write(STDERR_FILENO, s, n);
        if (done <= 0) return;
        s += done;
        n -= (size_t)done;
    }
}

// In a signal handler: write() and no stdio.
static void on_timer(int number) {
    (void)number;
    int kept = errno;
    char line[STAGE_BYTES + 32] = "\r\033[K", digits[12];
    size_t n = strlen(line), length = strlen(progress.stage);
    int at = 0;
    unsigned seconds = (unsigned)(now() - progress.begun);
    if (length && seconds) {
        memcpy(line + n, progress.stage, length);
        n += length;
        do digits[at++] = (char)('0' + seconds % 10);
        while ((seconds /= 10) > 0);
        line[n++] = ' ';
        while (at) line[n++] = digits[--at];
        line[n++] = 's';
        progress.shown = 1;
        put(line, n);
    }
    errno = kept;
}

void progress_start(bool quiet, bool verbose) {
    progress.begun = now();
    progress.verbose = verbose;
    if (quiet || verbose || !isatty(STDERR_FILENO)) return;
    struct sigaction action = { .sa_flags = SA_RESTART };
    action.sa_handler = on_timer;
    sigemptyset(&action.sa_mask);
    struct itimerval quarter = { { 0, 250000 }, { 0, 250000 } };
    progress.timed = !sigaction(SIGALRM, &action, NULL) && !setitimer(ITIMER_REAL, &quarter, NULL);
}

void progress_hide(void) {
    if (!progress.shown) return;
    progress.shown = 0;
    put("\r\033[K", 4);
}

void progress_stage(const char *fmt, ...) {
    double t = now();
    if (progress.verbose && *progress.stage)
        fprintf(stderr, "burncc: %8.3f s  %s\n", t - progress.stage_begun, progress.stage);
    progress_hide();
    char next[STAGE_BYTES] = "";
    if (fmt) {
        va_list ap;
        va_start(ap, fmt);
        vsnprintf(next, sizeof next, fmt, ap);
        va_end(ap);
    }
    for (char *c = next; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f) *c = '?';
    *progress.stage = 0;                                // the timer may come between
    memcpy(progress.stage + 1, next + 1, sizeof next - 1);
    *progress.stage = *next;
    progress.stage_begun = t;
}

void progress_line(const char *fmt, ...) {
    if (!progress.timed && !progress.verbose) return;
    progress_hide();
    va_list ap;
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
}
