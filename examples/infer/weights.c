// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Reads a handwritten digit by a model whose weights are a file. In: that file's name and that of a PGM image of 28x28
// pixels. Out: the digit. With -DLINKED the weights are part of the program (weights.S), and the file's name is none.
//
//     burncc models/digits/digits.onnx --embed-limit 0 -o digits.c
//     cc -O3 -I . -I runtime examples/infer/weights.c digits.c runtime/weights.c -lm -o weights
//     ./weights digits.bin models/digits/images/7.pgm
#include <stdbool.h>
#include <stdio.h>

#include "digits.h"
#include "weights.h"

enum { PIXELS = 28 * 28, CLASSES = 10 };

static digits_workspace workspace;
#ifdef LINKED
extern const unsigned char digits_weights[DIGITS_WEIGHTS_BYTES];
#endif

static bool read_image(const char *path, float *image) { // the PGMs here have a header of three lines without comments
    unsigned char bytes[PIXELS];
    int width = 0, height = 0, white = 0;
    FILE *file = fopen(path, "rb");
    if (!file) return false;
    bool ok = fscanf(file, "P5 %d %d %d", &width, &height, &white) == 3 && width * height == PIXELS && white == 255
        && getc(file) != EOF && fread(bytes, 1, PIXELS, file) == PIXELS;
    fclose(file);
    for (int i = 0; ok && i < PIXELS; i++) image[i] = (float)bytes[i] / 255.0f;
    return ok;
}

int main(int argc, char **argv) {
    float image[PIXELS], logits[CLASSES];
    int best = 0, code = 0;
    if (argc != 3 || !read_image(argv[2], image))
        return fprintf(stderr, "usage: %s WEIGHTS.bin IMAGE.pgm (28x28 pixels)\n", argv[0]), 2;
#ifdef LINKED
    code = digits_run(&workspace, digits_weights, image, logits);
#else
    burn_weights weights;
    code = burn_weights_open(&weights, argv[1], DIGITS_WEIGHTS_BYTES, digits_weights_check, 0);
    if (!code) code = digits_run(&workspace, weights.data, image, logits);
    burn_weights_close(&weights);
#endif
    if (code) return fprintf(stderr, "%s: %s\n", argv[1], burn_strerror(code)), 1;
    for (int k = 1; k < CLASSES; k++)
        if (logits[k] > logits[best]) best = k;
    return printf("%s: this is a %d\n", argv[2], best) < 0;
}
