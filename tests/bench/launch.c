// SPDX-License-Identifier: MIT OR Apache-2.0
// From starting a program to its first result.
//
// usage: launch TIMES PROGRAM ARGUMENT...    the program prints the monotonic clock (ns) when it has its result
// Prints the median over so many starts, in ns: the start itself, loading, reading inputs and the first run.
#define _GNU_SOURCE
#include <inttypes.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 1001 };
extern char **environ;

static int64_t start_once(char **argv) {
    int ends[2];
    pid_t child;
    posix_spawn_file_actions_t actions;
    struct timespec t;
    if (pipe(ends) || posix_spawn_file_actions_init(&actions)) return -1;
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    clock_gettime(CLOCK_MONOTONIC, &t);
    int failed = posix_spawn(&child, argv[0], &actions, NULL, argv, environ), status = 0;
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    char line[64] = "";
    ssize_t n = failed ? 0 : read(ends[0], line, sizeof line - 1);
    close(ends[0]);
    if (failed || waitpid(child, &status, 0) < 0 || status || n <= 0) return -1;
    return strtoll(line, NULL, 10) - ((int64_t)t.tv_sec * 1000000000 + t.tv_nsec);
}

static int ascending(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    static int64_t times[MOST];
    int n = argc > 2 ? atoi(argv[1]) : 0;
    if (n < 1 || n > MOST) return 2;
    for (int i = 0; i < n; i++)
        if ((times[i] = start_once(argv + 2)) < 0) return 1;
    qsort(times, (size_t)n, sizeof *times, ascending);
    printf("%" PRId64 "\n", times[n / 2]);
    return 0;
}
