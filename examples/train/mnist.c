// SPDX-License-Identifier: MIT OR Apache-2.0
// Teaches LeNet, a model described in C, to read MNIST's digits from nothing. In: a folder with MNIST's four files,
// unpacked. Out: how many of the 10,000 test images it reads after each of EPOCHS rounds, and lenet.safetensors.
//     burncc models/lenet.c --train --optimizer adam --dim batch=64 -o lenet.c
//     cc -O3 -march=native -I . examples/train/mnist.c lenet.c -lm -o mnist && ./mnist FOLDER
#include <stdio.h>
#include <stdlib.h>

#include "lenet.h"

enum { PIXELS = 28 * 28, CLASSES = 10, BATCH = 64, EPOCHS = 3, MOST = 60000 };
typedef struct Images { int count; unsigned char pixels[MOST][PIXELS], labels[MOST]; } Images;
static Images train, test;
static lenet_params params, grads;
static lenet_state state;                               // Adam's: zero at the start
static float image[BATCH * PIXELS], logits[BATCH * CLASSES];
static int64_t label[BATCH];

// How many items a file has behind its header; ends the program where there is none.
static int read_items(const char *folder, const char *name, long header, void *items, size_t size) {
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    int count = file && !fseek(file, header, SEEK_SET) ? (int)fread(items, size, MOST, file) : 0;
    if (!count) exit((fprintf(stderr, "%s: cannot be read\n", path), 1));
    fclose(file);
    return count;
}

static void put(int b, const Images *m, int i) {
    for (int k = 0; k < PIXELS; k++) image[b * PIXELS + k] = (float)m->pixels[i][k] / 255.0f;
    label[b] = m->labels[i];
}

// The mean loss of a round over all images in a new order.
static float learn(float rate) {
    static lenet_gradients_workspace work;
    static int order[MOST], step;
    float loss, total = 0;
    for (int i = 0, k; i < train.count; i++) {          // image i comes to a place among those before it
        order[i] = order[k = rand() % (i + 1)];
        order[k] = i;
    }
    for (int from = 0; from + BATCH <= train.count; from += BATCH, total += loss) {
        for (int b = 0; b < BATCH; b++) put(b, &train, order[from + b]);
        lenet_gradients(&work, image, &params, label, &loss, &grads);
        lenet_update(rate, 0.9f, 0.999f, 1e-8f, 0, (float)++step, &params, &grads, &state);
    }
    return total / (float)(train.count / BATCH);
}

static double share_read(void) {
    static lenet_predict_workspace work;
    int right = 0, seen = 0;
    for (; seen + BATCH <= test.count; seen += BATCH) {
        for (int b = 0; b < BATCH; b++) put(b, &test, seen + b);
        lenet_predict(&work, image, &params, logits);
        for (int b = 0; b < BATCH; b++) {
            int best = 0;
            for (int k = 1; k < CLASSES; k++) best = logits[b * CLASSES + k] > logits[b * CLASSES + best] ? k : best;
            right += best == label[b];
        }
    }
    return 100.0 * right / seen;
}

int main(int argc, char **argv) {
    if (argc != 2) return fprintf(stderr, "usage: %s FOLDER\n", argv[0]), 2;
    read_items(argv[1], "train-labels-idx1-ubyte", 8, train.labels, 1);
    read_items(argv[1], "t10k-labels-idx1-ubyte", 8, test.labels, 1);
    train.count = read_items(argv[1], "train-images-idx3-ubyte", 16, train.pixels, PIXELS);
    test.count = read_items(argv[1], "t10k-images-idx3-ubyte", 16, test.pixels, PIXELS);
    lenet_params_init(&params);
    for (int epoch = 1; epoch <= EPOCHS; epoch++) {
        float loss = learn(epoch < EPOCHS ? 0.001f : 0.0002f);
        printf("epoch %d: loss %.4f, reads %.2f %%\n", epoch, (double)loss, share_read());
    }
    return lenet_params_save(&params, "lenet.safetensors") ? (perror("lenet.safetensors"), 1) : 0;
}
