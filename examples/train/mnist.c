// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Teaches LeNet, a model described in C, to read MNIST's digits from nothing. In: a folder with MNIST's four files,
// unpacked. Out: how many of the 10,000 test images it reads after each of EPOCHS rounds, and lenet.safetensors.
//     burncc models/lenet.c --train --optimizer adam --dim batch=64 -o lenet.c
//     cc -O3 -march=native -I . examples/train/mnist.c lenet.c -lm -o mnist && ./mnist FOLDER
#include <stdio.h>
#include <stdlib.h>

#include "lenet.h"

enum { PIXELS = 28 * 28, CLASSES = 10, BATCH = 64, EPOCHS = 3 };

typedef struct Images { unsigned char *pixels, *labels; int count; } Images;

// The bytes of a file behind its header; ends the program where they cannot be read.
static unsigned char *read_file(const char *folder, const char *set, const char *rest, long header, long *bytes) {
    char path[1024];
    snprintf(path, sizeof path, "%s/%s%s", folder, set, rest);
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END)) exit((perror(path), 1));
    unsigned char *data = malloc((size_t)(*bytes = ftell(file) - header));
    if (!data || fseek(file, header, SEEK_SET) || fread(data, 1, (size_t)*bytes, file) != (size_t)*bytes)
        exit((fprintf(stderr, "%s: cannot be read\n", path), 1));
    fclose(file);
    return data;
}

static Images read_images(const char *folder, const char *set) {
    long pixels, labels;
    Images m = { read_file(folder, set, "-images-idx3-ubyte", 16, &pixels),
        read_file(folder, set, "-labels-idx1-ubyte", 8, &labels), 0 };
    m.count = (int)(pixels / PIXELS < labels ? pixels / PIXELS : labels);
    return m;
}

static void make_batch(const Images *m, const int *which, float *image, int64_t *label) {
    for (int b = 0; b < BATCH; b++) {
        for (int i = 0; i < PIXELS; i++) image[b * PIXELS + i] = (float)m->pixels[which[b] * PIXELS + i] / 255.0f;
        label[b] = m->labels[which[b]];
    }
}

static int best_of(const float *logits) {
    int best = 0;
    for (int k = 1; k < CLASSES; k++) best = logits[k] > logits[best] ? k : best;
    return best;
}

int main(int argc, char **argv) {
    static lenet_params params, grads;
    static lenet_state state;                           // Adam's: zero at the start
    static lenet_gradients_workspace work;
    static lenet_predict_workspace predict_work;
    static int order[60000];
    static float image[BATCH * PIXELS], logits[BATCH * CLASSES];
    int64_t label[BATCH];
    if (argc != 2) return fprintf(stderr, "usage: %s FOLDER\n", argv[0]), 2;
    Images train = read_images(argv[1], "train"), test = read_images(argv[1], "t10k");
    int count = train.count < 60000 ? train.count : 60000, step = 0, which[BATCH];
    for (int i = 0; i < count; i++) order[i] = i;
    lenet_params_init(&params);
    for (int epoch = 1; epoch <= EPOCHS; epoch++) {
        float loss, total = 0, rate = epoch < EPOCHS ? 0.001f : 0.0002f;
        int batches = count / BATCH, right = 0, read = test.count / BATCH * BATCH;
        for (int i = count - 1; i > 0; i--) {
            int k = rand() % (i + 1), kept = order[i];
            order[i] = order[k], order[k] = kept;
        }
        for (int b = 0; b < batches; b++, total += loss / (float)batches) {
            make_batch(&train, order + b * BATCH, image, label);
            lenet_gradients(&work, image, &params, label, &loss, &grads);
            lenet_update(rate, 0.9f, 0.999f, 1e-8f, 0, (float)++step, &params, &grads, &state);
        }
        for (int b = 0; b < read; b += BATCH) {
            for (int i = 0; i < BATCH; i++) which[i] = b + i;
            make_batch(&test, which, image, label);
            lenet_predict(&predict_work, image, &params, logits);
            for (int i = 0; i < BATCH; i++) right += best_of(logits + i * CLASSES) == label[i];
        }
        printf("epoch %d: loss %.4f, reads %.2f %%\n", epoch, (double)total, 100.0 * right / read);
    }
    return lenet_params_save(&params, "lenet.safetensors") ? (perror("lenet.safetensors"), 1) : 0;
}
