// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Reads handwritten digits with a compiled model. In: the names of grey PGM images of 28x28 pixels, white
// ink on black. Out: the picture, the digit, and what one run costs in time and memory.
//
// All there is to using a compiled model: include its header, own a workspace, call its run function.
//
//     burncc models/digits/digits.onnx -o digits.c
//     cc -O3 -march=native -I . examples/infer/classify.c digits.c -lm -o classify
//     ./classify models/digits/images/7.pgm
#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "digits.h"

enum { SIDE = 28, PIXELS = SIDE * SIDE, CLASSES = 10, RUNS = 1001 };

static digits_workspace workspace; // every intermediate value; one for each thread that runs the model

// The next number of a PGM header, past white space and comments; -1 if there is none.
static int read_number(FILE *file) {
    int c = getc(file);
    while (isspace(c) || c == '#') {
        if (c == '#') {
            while (c != '\n' && c != EOF) c = getc(file);
        } else {
            c = getc(file);
        }
    }
    ungetc(c, file);
    int number = -1;
    return fscanf(file, "%5d", &number) == 1 ? number : -1;
}

// Reads a binary PGM into pixel values 0..1; false if it is not one of SIDE x SIDE.
static bool read_image(const char *path, float image[PIXELS]) {
    unsigned char bytes[PIXELS];
    FILE *file = fopen(path, "rb");
    if (!file) return false;
    bool ok = getc(file) == 'P' && getc(file) == '5';
    int width = ok ? read_number(file) : 0;
    int height = ok ? read_number(file) : 0;
    int white = ok ? read_number(file) : 0;
    ok = width == SIDE && height == SIDE && white > 0 && white < 256 && isspace(getc(file)) &&
         fread(bytes, 1, PIXELS, file) == PIXELS;
    fclose(file);
    for (int i = 0; ok && i < PIXELS; i++) image[i] = (float)bytes[i] / (float)white;
    return ok;
}

// Every second row, since a character is about twice as tall as wide.
static void print_image(const float image[PIXELS]) {
    static const char ink[] = " .:-=+*#%@";
    for (int y = 0; y < SIDE; y += 2) {
        for (int x = 0; x < SIDE; x++) {
            float grey = (image[y * SIDE + x] + image[(y + 1) * SIDE + x]) / 2;
            putchar(ink[(int)(grey * 9 + 0.5f)]);
        }
        putchar('\n');
    }
}

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static long long now_ns(void) {
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (long long)t.tv_sec * 1000000000 + t.tv_nsec;
}

static double median_run_ms(const float image[PIXELS]) {
    static double ms[RUNS];
    float logits[CLASSES];
    for (int i = 0; i < RUNS; i++) {
        long long start = now_ns();
        digits_run(&workspace, image, logits);
        ms[i] = (double)(now_ns() - start) * 1e-6;
    }
    qsort(ms, RUNS, sizeof ms[0], compare_doubles);
    return ms[RUNS / 2];
}

int main(int argc, char **argv) {
    float image[PIXELS], logits[CLASSES];
    if (argc < 2) {
        fprintf(stderr, "usage: %s IMAGE.pgm...\n", argv[0]);
        return 2;
    }
    for (int i = 1; i < argc; i++) {
        if (!read_image(argv[i], image)) {
            fprintf(stderr, "%s: cannot be read as a binary PGM of %dx%d pixels\n", argv[i], SIDE, SIDE);
            return 1;
        }
        int error = digits_run(&workspace, image, logits);
        if (error) {
            fprintf(stderr, "digits_run: error %d\n", error);
            return 1;
        }
        int best = 0;
        for (int k = 1; k < CLASSES; k++)
            if (logits[k] > logits[best]) best = k;
        float sum = 0; // softmax: of the best class, 1 / sum exp(logit - best logit)
        for (int k = 0; k < CLASSES; k++) sum += expf(logits[k] - logits[best]);
        print_image(image);
        printf("%s: this is a %d (%.1f %%)\n", argv[i], best, 100 / (double)sum);
    }
    printf("time per run: %.4f ms (median of %d)\n", median_run_ms(image), RUNS);
    printf("workspace: %zu bytes\n", sizeof workspace);
    return 0;
}
