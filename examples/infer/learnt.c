// SPDX-License-Identifier: MIT OR Apache-2.0
//
// What a model that `burncc fit` made sees in images or sounds. In: the folder of artifacts; files, or folders of them.
// Out: a line each: the file, its class, the score of that. The compiled model says itself how its data was read and
// what its classes are called; the library reads the files in the same way.
//
//     burncc fit examples/train/photos.c --data photos --epochs 20 --artifacts pets --target native
//     cc -I pets examples/infer/learnt.c pets/model.c -o see $(pkg-config --cflags --libs burncc-learn burncc-weights)
//     ./see pets cat.jpg dog.jpg
#include "model.h"

#include <burncc/source.h>
#include <burncc/weights.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *fact(const char *key) {
    const char *const *at = model_model.metadata;
    while (at && *at && strcmp(*at, key) != 0) at += 2;
    return at && *at ? at[1] : "";
}

// Line i of the classes.
static void print_class(long i) {
    const char *at = fact("burncc.classes");
    for (; i > 0 && *at; i--) at += strcspn(at, "\n") + 1;
    printf("%.*s", (int)strcspn(at, "\n"), at);
}

static int see(const char *path, const void *weights, const burn_tensor *in, const burn_tensor *out, void *work) {
    char text[2000];
    burn_source from;
    burn_said said = { "" };
    snprintf(text, sizeof text, "%s:%s,%s", fact("burncc.source"), path, fact("burncc.settings"));
    int error = burn_source_open(text, NULL, &from, &said);
    for (int64_t i = 0; !error && i < from.train->count; i++) {
        const float *score = out->data;
        long best = 0;
        error = burn_data_get(from.train, i, 0, (void *[]){ in->data, &(int64_t){ 0 } }, &said);
        if (!error) error = model_model.run(NULL, work, weights, in, out);
        if (error) break;
        for (size_t k = 1; k < out->bytes / sizeof *score; k++) best = score[k] > score[best] ? (long)k : best;
        printf("%s\t", burn_data_path(from.train, i));
        print_class(best);
        printf("\t%.3f\n", (double)score[best]);
    }
    if (error) fprintf(stderr, "%s: %s\n", path, said.text);
    burn_source_close(&from);
    return error;
}

int main(int argc, char **argv) {
    const burn_tensor_info *image = &model_model.inputs[0], *scores = &model_model.outputs[0];
    const burn_tensor in = { .data = malloc(image->bytes), .bytes = image->bytes };
    const burn_tensor out = { .data = malloc(scores->bytes), .bytes = scores->bytes };
    void *work = malloc(model_model.workspace_bytes + 1);
    char file[2000];
    burn_weights w;
    snprintf(file, sizeof file, "%s/model.bin", argc > 1 ? argv[1] : "."); // nothing, where the code has them
    int failed = burn_weights_open(&w, file, model_model.weights_bytes, model_model.weights_check, 0);
    if (failed) fprintf(stderr, "%s: cannot be read, or is another model's\n", file);
    if (!in.data || !out.data || !work) failed = 1;
    for (int i = 2; i < argc && !failed; i++) failed = see(argv[i], w.data, &in, &out, work);
    burn_weights_close(&w);
    free(in.data);
    free(out.data);
    free(work);
    return failed != 0;
}
