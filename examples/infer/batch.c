// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Reads any number of handwritten digits, up to 32 in one run. In: names of grey PGM images of 28x28 pixels, white
// ink on black. Out: a line an image. The model is compiled once, for all batch sizes:
//
//     burncc models/digits/digits_batch.onnx --dim batch=1..32 -o digits_batch.c
//     cc -O3 -march=native -I . examples/infer/batch.c digits_batch.c -lm -o batch
//     ./batch models/digits/images/*.pgm
#include <stdbool.h>
#include <stdio.h>

#include "digits_batch.h"

enum { SIDE = 28, PIXELS = SIDE * SIDE, CLASSES = 10, MOST = 32 };

static digits_batch_workspace workspace; // for the largest batch
static float images[MOST][PIXELS], logits[MOST][CLASSES];

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

int main(int count, char **names) {
    for (int first = 1; first < count; first += MOST) {
        int n = count - first < MOST ? count - first : MOST;
        for (int i = 0; i < n; i++) {
            if (read_image(names[first + i], images[i])) continue;
            fprintf(stderr, "%s: not a PGM image of %d x %d\n", names[first + i], SIDE, SIDE);
            return 1;
        }
        if (digits_batch_run(&workspace, n, images[0], logits[0])) return 1;
        for (int i = 0; i < n; i++) {
            int best = 0;
            for (int k = 1; k < CLASSES; k++)
                if (logits[i][k] > logits[i][best]) best = k;
            printf("%s: %d\n", names[first + i], best);
        }
    }
    return 0;
}
