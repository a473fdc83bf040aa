// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Teaches the digit reader dark ink on light paper. It was trained on light ink on dark paper alone, and reads little
// else. In: the names of PGM images N.pgm of 28x28 pixels, each showing the digit N. Out: the loss on the way, how
// many digits it reads before and after, and the trained weights as finetuned.safetensors.
//
// All there is to training with generated code: parameters, gradients and the optimizer's state are structs of the
// caller; the gradients function changes nothing but its outputs, so a batch is a sum of its results, and so would be
// several threads' work.
//
// Images come one at a time, which is no batch to take statistics of: normalization stays by the recorded ones.
//
//     burncc models/digits/digits.onnx --train --frozen-norm --optimizer adam -o digits_train.c
//     cc -O3 -march=native -I . examples/train/finetune.c digits_train.c -lm -o finetune
//     ./finetune models/digits/images/*.pgm
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "digits_train.h"

enum { SIDE = 28, PIXELS = SIDE * SIDE, CLASSES = 10, LARGEST_SET = 100, BATCH = 16, STEPS = 200 };

typedef struct Sample { float image[PIXELS]; int64_t digit; } Sample;

static Sample samples[LARGEST_SET];
static int sample_count;
static digits_train_params params, grads, sum;          // 37 KB each
static digits_train_state state;                        // Adam's: zero at the start
static digits_train_gradients_workspace work;
static digits_train_predict_workspace predict_work;

static uint32_t random_below(uint32_t n) {              // xorshift32: the same run everywhere
    static uint32_t x = 2463534242u;
    x ^= x << 13, x ^= x >> 17, x ^= x << 5;
    return x % n;
}

static bool read_sample(const char *path, Sample *s) {  // the PGMs here have a header of three lines without comments
    unsigned char bytes[PIXELS];
    int width = 0, height = 0, white = 0;
    const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    FILE *file = fopen(path, "rb");
    if (!file) return false;
    bool ok = fscanf(file, "P5 %d %d %d", &width, &height, &white) == 3 && width == SIDE && height == SIDE
        && white == 255 && getc(file) != EOF && fread(bytes, 1, PIXELS, file) == PIXELS;
    fclose(file);
    for (int i = 0; ok && i < PIXELS; i++) s->image[i] = (float)bytes[i] / 255.0f;
    s->digit = base[0] - '0';
    return ok && s->digit >= 0 && s->digit < CLASSES;
}

// The image moved by dx, dy, and with light and dark exchanged if `dark_ink`.
static void vary(float *to, const float *from, int dx, int dy, bool dark_ink) {
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++) {
            bool inside = y - dy >= 0 && y - dy < SIDE && x - dx >= 0 && x - dx < SIDE;
            float ink = inside ? from[(y - dy) * SIDE + x - dx] : 0.0f;
            to[y * SIDE + x] = dark_ink ? 1.0f - ink : ink;
        }
}

static int count_right(const digits_train_params *p, bool dark_ink) {
    float image[PIXELS], logits[CLASSES];
    int right = 0;
    for (int i = 0; i < sample_count; i++) {
        vary(image, samples[i].image, 0, 0, dark_ink);
        digits_train_predict(&predict_work, image, p, logits);
        int best = 0;
        for (int k = 1; k < CLASSES; k++)
            if (logits[k] > logits[best]) best = k;
        right += best == samples[i].digit;
    }
    return right;
}

// Mean loss of a batch of random variations; their mean gradients in `sum`.
static float batch_gradients(void) {
    float image[PIXELS], loss, total = 0;
    memset(&sum, 0, sizeof sum);
    for (int b = 0; b < BATCH; b++) {
        const Sample *s = &samples[random_below((uint32_t)sample_count)];
        int dx = (int)random_below(5) - 2, dy = (int)random_below(5) - 2;
        vary(image, s->image, dx, dy, b % 2 == 0);
        digits_train_gradients(&work, image, &params, &s->digit, &loss, &grads);
        const float *from = (const float *)&grads;      // the structs hold floats alone
        float *to = (float *)&sum;
        for (size_t i = 0; i < sizeof sum / sizeof *to; i++) to[i] += from[i] / BATCH;
        total += loss / BATCH;
    }
    return total;
}

int main(int argc, char **argv) {
    static digits_train_params loaded;
    for (int i = 1; i < argc && sample_count < LARGEST_SET; i++)
        if (!read_sample(argv[i], &samples[sample_count++]))
            return fprintf(stderr, "%s: is no 28x28 PGM named after its digit\n", argv[i]), 1;
    if (!sample_count) return fprintf(stderr, "usage: %s 0.pgm 1.pgm ...\n", argv[0]), 2;

    digits_train_params_init(&params);                  // the weights in the .onnx file
    printf("before: reads %d of %d in light ink, %d in dark ink\n", count_right(&params, false), sample_count,
        count_right(&params, true));
    for (int step = 1; step <= STEPS; step++) {
        float loss = batch_gradients();
        digits_train_update(0.001f, 0.9f, 0.999f, 1e-8f, 0.0f, (float)step, &params, &sum, &state);
        if (step == 1 || step % 40 == 0) printf("step %3d: loss %.4f\n", step, (double)loss);
    }
    if (digits_train_params_save(&params, "finetuned.safetensors")) return perror("finetuned.safetensors"), 1;
    if (digits_train_params_load(&loaded, "finetuned.safetensors")) return perror("finetuned.safetensors"), 1;
    printf("after:  reads %d of %d in light ink, %d in dark ink\n", count_right(&loaded, false), sample_count,
        count_right(&loaded, true));
    return 0;
}
