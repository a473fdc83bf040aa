// SPDX-License-Identifier: MIT OR Apache-2.0
// One prediction: reads an image of 28x28 gray pixels (PGM) and tells which digit it shows. The projects beside this
// file build it with digits.c and digits.h, which burncc writes for models/digits/digits.onnx.
#include <stdio.h>

#include "digits.h"

static digits_workspace workspace;

int main(int argc, char **argv) {
    unsigned char pixels[28 * 28];
    float image[28 * 28], logits[10];
    FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
    if (!file || fscanf(file, "P5 28 28 255%*c") || fread(pixels, sizeof pixels, 1, file) != 1) {
        fprintf(stderr, "usage: %s IMAGE.pgm   (28x28, one byte a pixel)\n", argv[0]);
        return 2;
    }
    fclose(file);
    for (int i = 0; i < 28 * 28; i++) image[i] = (float)pixels[i] / 255;
    if (digits_run(&workspace, image, logits)) return 1;
    int best = 0;
    for (int i = 1; i < 10; i++)
        if (logits[i] > logits[best]) best = i;
    printf("%d\n", best);
    return 0;
}
