// SPDX-License-Identifier: MIT OR Apache-2.0
// Starts programs from a process that is itself small: the parent's size shows in neither the time nor the memory.
//
// usage: launch TIMES PROGRAM ARGUMENT...        the program prints the monotonic clock (ns) when it has its first
// result; prints the
//                                                median, over so many starts, of the ns from the start until then
//        launch usage FILE PROGRAM ARGUMENT...   runs it once; its time and its processor time (ns) and peak resident
//            set (KiB) go
//                                                into FILE; ends with its exit status
#define _GNU_SOURCE
#include <inttypes.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 1001 };
extern char **environ;

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int64_t start_once(char **argv) {
    int ends[2];
    pid_t child;
    posix_spawn_file_actions_t actions;
    if (pipe(ends) || posix_spawn_file_actions_init(&actions)) return -1;
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    int64_t begin = now();
    int failed = posix_spawn(&child, argv[0], &actions, NULL, argv, environ), status = 0;
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    char line[64] = "";
    ssize_t n = failed ? 0 : read(ends[0], line, sizeof line - 1);
    close(ends[0]);
    if (failed || waitpid(child, &status, 0) < 0 || status || n <= 0) return -1;
    return strtoll(line, NULL, 10) - begin;
}

static int ascending(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int run_measured(const char *path, char **argv) {
    pid_t child;
    int status = 0;
    struct rusage used;
    int64_t begin = now();
    if (posix_spawnp(&child, argv[0], NULL, NULL, argv, environ) || wait4(child, &status, 0, &used) < 0) return 127;
    int64_t taken = now() - begin,
            cpu = (int64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000000
        + (int64_t)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1000;
    FILE *f = fopen(path, "w");
    if (!f) return 126;
    fprintf(f, "%" PRId64 " %" PRId64 " %ld\n", taken, cpu, used.ru_maxrss);
    fclose(f);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 125;
}

int main(int argc, char **argv) {
    if (argc > 3 && strcmp(argv[1], "usage") == 0) return run_measured(argv[2], argv + 3);
    static int64_t times[MOST];
    int n = argc > 2 ? atoi(argv[1]) : 0;
    if (n < 1 || n > MOST) return 2;
    for (int i = 0; i < n; i++)
        if ((times[i] = start_once(argv + 2)) < 0) return 1;
    qsort(times, (size_t)n, sizeof *times, ascending);
    printf("%" PRId64 "\n", times[n / 2]);
    return 0;
}
