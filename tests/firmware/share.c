// SPDX-License-Identifier: MIT OR Apache-2.0
// Several models in one image, by their descriptors: what each of them computes of the same made-up inputs, to the
// last bit. Built by share.sh with -DMODELS=X(a)X(b)... for a_model, b_model.
#include <stdio.h>
#include <stdlib.h>

#include FIRST

#define X(name) extern const burn_model name##_model;
MODELS
#undef X

static union {
    unsigned char bytes[1 << 20];
    double number;
    int64_t integer;
} work;

static void fill(const burn_tensor_info *info, unsigned char *to) {
    unsigned seed = 1;
    for (size_t i = 0; i < info->bytes / burn_element_bytes(info->dtype); i++) {
        seed = seed * 1103515245u + 12345u;
        const int value = (int)(seed >> 16 & 255u) - 128;
        if (info->dtype == BURN_FLOAT) ((float *)(void *)to)[i] = (float)value / 64;
        else to[i] = (unsigned char)value;
    }
}

static void run(const burn_model *m) {
    enum { MOST = 8 };
    burn_tensor in[MOST] = {0}, out[MOST] = {0};
    if (m->input_count > MOST || m->output_count > MOST) exit(2);
    for (int i = 0; i < m->input_count; i++) {
        in[i].data = calloc(in[i].bytes = m->inputs[i].bytes, 1);
        fill(&m->inputs[i], in[i].data);
    }
    for (int i = 0; i < m->output_count; i++) out[i].data = calloc(out[i].bytes = m->outputs[i].bytes, 1);
    if (m->workspace_bytes > sizeof work) exit(3);
    printf("%d", m->run(NULL, work.bytes, NULL, in, out));
    for (int i = 0; i < m->output_count; i++)
        for (size_t j = 0; j < out[i].bytes; j++) printf(" %02x", ((unsigned char *)out[i].data)[j]);
    printf("\n");
}

int main(void) {
#define X(name) run(&name##_model);
    MODELS
}
