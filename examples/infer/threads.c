// SPDX-License-Identifier: MIT OR Apache-2.0
//
// One model on several processors. In: names of grey PGM images of 28x28 pixels, up to 512; without any, noise. Out:
// the digits, and what a run takes on the calling thread alone and on a pool; both give the same bits. A program that
// has threads of its own gives those instead: it fills in a burn_threads, two fields, whose run() calls
// task(argument, part) for each part in any order and waits for all.
//
//     burncc models/digits/digits_batch.onnx --dim batch=1..512 --threads 4 -o digits_batch.c
//     cc -O3 -march=native -pthread -I . -I runtime -o threads
//         examples/infer/threads.c digits_batch.c runtime/threads.c -lm
//     ./threads models/digits/images/*.pgm
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "digits_batch.h"
#include "threads.h"

enum { SIDE = 28, PIXELS = SIDE * SIDE, CLASSES = 10, MOST = 512, RUNS = 200 };

static digits_batch_workspace workspace; // of one run, however many threads do its parts
static float images[MOST][PIXELS], logits[2][MOST][CLASSES];

static bool read_image(const char *path, float image[PIXELS]) {
    unsigned char bytes[PIXELS];
    int width = 0, height = 0, white = 0;
    FILE *file = fopen(path, "rb");
    if (!file) return false;
    bool ok = fscanf(file, "P5 %4d %4d %4d", &width, &height, &white) == 3 && width == SIDE && height == SIDE
        && white == 255;
    ok = ok && getc(file) != EOF && fread(bytes, 1, PIXELS, file) == PIXELS;
    fclose(file);
    for (int i = 0; ok && i < PIXELS; i++) image[i] = (float)bytes[i] / 255;
    return ok;
}

// The fastest of many runs, in microseconds; negative when a run fails. NULL: on this thread alone.
static double fastest_us(const burn_threads *threads, int n, float *out) {
    double best = 1e30;
    for (int i = 0; i < RUNS; i++) {
        struct timespec from, to;
        timespec_get(&from, TIME_UTC);
        if (digits_batch_run(&workspace, n, images[0], out, threads)) return -1;
        timespec_get(&to, TIME_UTC);
        double us = (double)(to.tv_sec - from.tv_sec) * 1e6 + (double)(to.tv_nsec - from.tv_nsec) * 1e-3;
        if (us < best) best = us;
    }
    return best;
}

int main(int count, char **names) {
    int n = count - 1 < MOST ? count - 1 : MOST;
    burn_threads threads;
    for (int i = 0; i < n; i++) {
        if (read_image(names[1 + i], images[i])) continue;
        fprintf(stderr, "%s: not a PGM image of %d x %d\n", names[1 + i], SIDE, SIDE);
        return 1;
    }
    for (int i = 0; n == 0 && i < MOST; i++)
        for (int k = 0; k < PIXELS; k++) images[i][k] = (float)((i + k) * 7919 % 1000) / 1000;
    if (burn_threads_open(&threads, 0, 0)) { // as many as there are processors
        fprintf(stderr, "no threads to be had\n");
        return 1;
    }
    int size = n ? n : MOST;
    double alone = fastest_us(NULL, size, logits[0][0]), shared = fastest_us(&threads, size, logits[1][0]);
    burn_threads_close(&threads);
    if (alone < 0 || shared < 0) return 1;
    for (int i = 0; i < n; i++) {
        int best = 0;
        for (int k = 1; k < CLASSES; k++)
            if (logits[0][i][k] > logits[0][i][best]) best = k;
        printf("%s: %d\n", names[1 + i], best);
    }
    printf("%d images: %.0f us on one thread, %.0f us on all, %s\n", size, alone, shared,
        memcmp(logits[0], logits[1], sizeof logits[0]) ? "NOT the same bits" : "the same bits");
    return 0;
}
