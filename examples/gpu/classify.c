// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Reads a handwritten digit on the GPU. In: the name of a PGM image of 28x28 pixels. Out: the device, the digit, and
// what one run costs.
//
// The compiled model is data (SPIR-V kernels, their order, one arena); burn_vk_load puts it on a device once,
// burn_vk_run runs it.
//
//     burncc models/digits/digits.onnx --target vulkan -o digits_gpu.c
//     cc -O2 -I . -I runtime examples/gpu/classify.c digits_gpu.c runtime/vulkan.c -lvulkan -o classify_gpu
//     ./classify_gpu models/digits/images/7.pgm
#include <stdbool.h>
#include <stdio.h>
#include <time.h>

#include "burn.h"
#include "digits_gpu.h"

enum { PIXELS = 28 * 28, CLASSES = 10, RUNS = 100 };

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

static double now_ms(void) {
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

int main(int argc, char **argv) {
    float image[PIXELS], logits[CLASSES];
    const burn_tensor inputs[] = {{.data = image, .bytes = sizeof image}},
                      outputs[] = {{.data = logits, .bytes = sizeof logits}};
    burn_vk *device = NULL;
    burn_vk_session *session = NULL;
    if (argc != 2 || !read_image(argv[1], image))
        return fprintf(stderr, "usage: %s IMAGE.pgm (28x28 pixels)\n", argv[0]), 2;

    int error = burn_vk_open(&device, NULL);
    if (!error) error = burn_vk_load(device, &digits_gpu_program, digits_gpu_weights, &session);
    if (!error) error = burn_vk_run(session, inputs, outputs);
    double start = now_ms();
    for (int i = 0; i < RUNS && !error; i++) error = burn_vk_run(session, inputs, outputs);
    if (error) {
        fprintf(stderr, "error %d: %s\n", error, burn_vk_last_error(device));
    } else {
        int best = 0;
        for (int k = 1; k < CLASSES; k++)
            if (logits[k] > logits[best]) best = k;
        printf("%s\n%s: this is a %d\n", burn_vk_device_name(device), argv[1], best);
        printf("time per run: %.3f ms (mean of %d)\n", (now_ms() - start) / RUNS, RUNS);
    }
    burn_vk_session_free(session);
    burn_vk_close(device);
    return error != 0;
}
