// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Reads many handwritten digits on the GPU, several under way at a time. In: names of PGM images of 28x28 pixels. Out:
// the devices there are, and a digit for each image. What the driver makes of the kernels is kept in the folder `gpu`,
// if there is one.
//
//     burncc models/digits/digits.onnx --target vulkan -o digits_gpu.c
//     cc -O2 -I . -I runtime examples/gpu/lanes.c digits_gpu.c runtime/vulkan.c -lvulkan -o lanes_gpu
//     ./lanes_gpu models/digits/images/*.pgm
#include <stdbool.h>
#include <stdio.h>

#include "burn.h"
#include "digits_gpu.h"

enum { PIXELS = 28 * 28, CLASSES = 10, LANES = 3 };

// The memory of one run, and what goes in and comes out of it.
typedef struct Lane {
    burn_vk_workspace *workspace;
    const char *path; // NULL: nothing is under way
    float image[PIXELS], logits[CLASSES];
} Lane;

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

static void list_devices(void) {
    burn_vk_device all[8];
    int n = burn_vk_devices(all, 8);
    for (int i = 0; i < n && i < 8; i++)
        printf("#%d %s%s%s\n", i, all[i].name, all[i].lacks ? ", which lacks " : "", all[i].lacks ? all[i].lacks : "");
}

// Waits for the lane's run, if there is one, and says what it read.
static int finish(Lane *lane) {
    int error = burn_vk_wait(lane->workspace), best = 0;
    if (error || !lane->path) return error;
    for (int k = 1; k < CLASSES; k++)
        if (lane->logits[k] > lane->logits[best]) best = k;
    printf("%s: this is a %d\n", lane->path, best);
    lane->path = NULL;
    return 0;
}

static int start(Lane *lane, const char *path) {
    const burn_tensor inputs[] = {{.data = lane->image, .bytes = sizeof lane->image}},
                      outputs[] = {{.data = lane->logits, .bytes = sizeof lane->logits}};
    if (!read_image(path, lane->image)) return BURN_EIO;
    int error = burn_vk_submit(lane->workspace, inputs, outputs);
    if (!error) lane->path = path;
    return error;
}

int main(int argc, char **argv) {
    burn_vk *device = NULL;
    burn_vk_session *session = NULL;
    Lane lanes[LANES] = {{0}};

    list_devices();
    int error = burn_vk_open(&device, NULL);
    if (!error) (void)burn_vk_cache(device, "gpu"); // without the folder all is compiled each time
    if (!error) error = burn_vk_load(device, &digits_gpu_program, digits_gpu_weights, &session);
    for (int i = 0; i < LANES && !error; i++) error = burn_vk_workspace_new(session, &lanes[i].workspace);

    for (int i = 1; i < argc && !error; i++) { // while one lane is read, the others compute
        Lane *lane = &lanes[i % LANES];
        error = finish(lane);
        if (!error) error = start(lane, argv[i]);
    }
    for (int i = 0; i < LANES && !error; i++) error = finish(&lanes[(argc + i) % LANES]);
    if (error) fprintf(stderr, "error %d: %s; %s\n", error, burn_strerror(error), burn_vk_last_error(device));

    for (int i = 0; i < LANES; i++) burn_vk_workspace_free(lanes[i].workspace);
    burn_vk_session_free(session);
    burn_vk_close(device);
    return error != 0;
}
