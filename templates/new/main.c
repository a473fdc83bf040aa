// A prediction by @NAME@.c, which burncc writes for @MODEL@: reads a file of numbers for each input, prints those of
// each output. A file that ends early is filled up with its last number.
#include <stdio.h>
#include <stdlib.h>

#include "@NAME@.h"

static double number(const void *data, burn_dtype dtype, size_t i) {
    switch (dtype) {
    case BURN_FLOAT: return (double)((const float *)data)[i];
    case BURN_DOUBLE: return ((const double *)data)[i];
    case BURN_INT64: return (double)((const int64_t *)data)[i];
    case BURN_INT32: return ((const int32_t *)data)[i];
    case BURN_INT8: return ((const int8_t *)data)[i];
    default: return ((const uint8_t *)data)[i];
    }
}

static void set_number(void *data, burn_dtype dtype, size_t i, double v) {
    switch (dtype) {
    case BURN_FLOAT: ((float *)data)[i] = (float)v; return;
    case BURN_DOUBLE: ((double *)data)[i] = v; return;
    case BURN_INT64: ((int64_t *)data)[i] = (int64_t)v; return;
    case BURN_INT32: ((int32_t *)data)[i] = (int32_t)v; return;
    case BURN_INT8: ((int8_t *)data)[i] = (int8_t)v; return;
    default: ((uint8_t *)data)[i] = (uint8_t)v;
    }
}

static size_t count(const burn_tensor_info *info) {
    size_t n = 1;
    for (int i = 0; i < info->rank; i++) n *= (size_t)info->shape[i];
    return n;
}

// Zeroed memory for a tensor; the program ends when there is none.
static burn_tensor room(const burn_tensor_info *info) {
    burn_tensor t = { .data = calloc(1, info->bytes + 8), .bytes = info->bytes };
    if (!t.data) exit(1);
    return t;
}

static int read_numbers(const char *path, const burn_tensor_info *info, void *data) {
    FILE *file = fopen(path, "r");
    double v = 0;
    if (!file) return -1;
    for (size_t i = 0; i < count(info); i++) {
        double next;
        if (fscanf(file, " %lf%*[ ,;]", &next) == 1) v = next;
        set_number(data, info->dtype, i, v);
    }
    return fclose(file);
}

int main(int argc, char **argv) {
    const burn_model *model = &@NAME@_model;
    burn_tensor *inputs = calloc((size_t)model->input_count + 1, sizeof *inputs);
    burn_tensor *outputs = calloc((size_t)model->output_count + 1, sizeof *outputs);
    void *workspace = malloc(model->workspace_bytes + 8);
    if (!inputs || !outputs || !workspace) return 1;
    for (int i = 0; i < model->input_count; i++) {
        inputs[i] = room(&model->inputs[i]);
        if (i + 1 < argc && read_numbers(argv[i + 1], &model->inputs[i], inputs[i].data)) {
            fprintf(stderr, "%s: cannot be read\n", argv[i + 1]);
            return 1;
        }
    }
    for (int i = 0; i < model->output_count; i++) outputs[i] = room(&model->outputs[i]);
    int error = model->run(NULL, workspace, NULL, inputs, outputs);
    if (error) fprintf(stderr, "%s: %s\n", model->name, burn_strerror(error));
    for (int i = 0; i < model->output_count && !error; i++) {
        printf("%s:", model->outputs[i].name);
        for (size_t k = 0; k < count(&model->outputs[i]) && k < 20; k++)
            printf(" %g", number(outputs[i].data, model->outputs[i].dtype, k));
        printf("\n");
    }
    return error != 0;
}
