// SPDX-License-Identifier: MIT OR Apache-2.0
// Any model by its descriptor: what it says of itself, a line each, and what it answers to tensors that do not fit.
// Built by descriptor.sh with -DMODEL=NAME_model and the model's header before this file, without burncc's runtime.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 8, RANK = 8 };
static burn_tensor in[MOST], out[MOST];
static int64_t in_shape[MOST][RANK], out_shape[MOST][RANK];
static void *workspace;

static void print_ends(const char *side, int n, const burn_tensor_info *infos) {
    for (int i = 0; i < n; i++) {
        printf("%s %s type %d bytes %zu dims", side, infos[i].name, (int)infos[i].dtype, infos[i].bytes);
        for (int d = 0; d < infos[i].rank; d++) {
            const char *name = infos[i].dims ? infos[i].dims[d] : NULL;
            if (name) printf(" %s<=%lld", name, (long long)infos[i].shape[d]);
            else printf(" %lld", (long long)infos[i].shape[d]);
        }
        printf("\n");
    }
}

static void take(int n, const burn_tensor_info *infos, burn_tensor *t, int64_t (*shapes)[RANK]) {
    for (int i = 0; i < n; i++) {
        t[i] = (burn_tensor){ calloc(infos[i].bytes + 1, 1), infos[i].bytes, shapes[i], infos[i].dtype, infos[i].rank };
        for (int d = 0; d < infos[i].rank; d++) shapes[i][d] = infos[i].shape[d];
    }
}

static void run(const char *what) {
    printf("%s: %s\n", what, burn_strerror(MODEL.run(NULL, workspace, NULL, in, out)));
}

// The smallest of what the first input may be: what is told of the first output, and what the run says of it.
static void run_least(void) {
    const burn_tensor_info *info = &MODEL.inputs[0];
    for (int d = 0; d < info->rank; d++) in_shape[0][d] = info->least[d];
    out_shape[0][0] = -1;
    const int code = MODEL.shapes(in, out);
    printf("told: %s %lld\n", burn_strerror(code), (long long)out_shape[0][0]);
    out_shape[0][0] = -1;
    run("least");
    printf("has: %lld\n", (long long)out_shape[0][0]);
    in_shape[0][0] = info->shape[0] + 1;
    printf("told: %s\n", burn_strerror(MODEL.shapes(in, out)));
    run("beyond");
    in_shape[0][0] = info->shape[0];
}

int main(void) {
    const burn_model *m = &MODEL;
    if (m->version < 1 || m->input_count > MOST || m->output_count > MOST) return 2;
    printf("model %s version %d parts %d workspace %d weights %zu\n", m->name, m->version, m->parts,
        m->workspace_bytes > 0, m->weights_bytes);
    print_ends("input", m->input_count, m->inputs);
    print_ends("output", m->output_count, m->outputs);
    for (int i = 0; i < m->size_count; i++)
        printf("size %s %lld..%lld\n", m->sizes[i].name, (long long)m->sizes[i].least, (long long)m->sizes[i].most);
    for (int i = 0; m->metadata && m->metadata[i]; i += 2)
        printf("metadata %s=%s\n", m->metadata[i], m->metadata[i + 1]);
    take(m->input_count, m->inputs, in, in_shape);
    take(m->output_count, m->outputs, out, out_shape);
    workspace = malloc(m->workspace_bytes + 1);
    run("good");
    in[0].dtype = BURN_INT8;
    run("type");
    in[0].dtype = BURN_UNDEFINED;
    in[0].rank = 99;
    run("nothing said");
    in[0].dtype = m->inputs[0].dtype;
    run("rank");
    in[0].rank = m->inputs[0].rank;
    in_shape[0][in[0].rank - 1]++;
    run("shape");
    in_shape[0][in[0].rank - 1]--;
    in[0].bytes--;
    run("short");
    in[0].bytes++;
    if (m->shapes) run_least();
    run("good");
    return 0;
}
