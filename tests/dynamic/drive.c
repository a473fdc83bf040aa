// SPDX-License-Identifier: MIT OR Apache-2.0
// Calls one model at each of its sizes. Built by drive.py, with what is known of the model in spec.h:
//   MODEL, SETS, INPUTS, OUTPUTS, SIZES (numbers of them), RANK; sets[] (below), typed(), shared[input][axis] and
//       fixed[input][axis]
// In: FOLDER/input_I.bin in the current folder. Out: status 0 when the typed function and the descriptor's give the
// same bytes whatever the workspace holds, the shapes are the expected ones, and what must be refused is. Buffers are
// heap blocks of exactly their size.
#define _POSIX_C_SOURCE 200112L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Set {
    const char *folder;
    int code;
    int64_t size[SIZES], in[INPUTS][RANK], out[OUTPUTS][RANK];
    size_t in_bytes[INPUTS], out_bytes[OUTPUTS];
} Set;
#include "tables.h"

static void *exactly(size_t bytes) {
    void *p = malloc(bytes ? bytes : 1);
    if (!p) exit(9);
    return p;
}

static void expect(long got, long want, int set, const char *what, int which) {
    if (got == want) return;
    printf("FAIL %s %d: %ld, expected %ld; at the sizes", what, which, got, want);
    for (int i = 0; i < SIZES; i++) printf(" %lld", (long long)sets[set].size[i]);
    printf("\n");
    exit(1);
}

static void read_input(int set, int i, void *to) {
    char path[64];
    snprintf(path, sizeof path, "%s/input_%d.bin", sets[set].folder, i);
    FILE *f = fopen(path, "rb");
    if (!f || fread(to, 1, sets[set].in_bytes[i], f) != sets[set].in_bytes[i])
        expect(1, 0, set, "cannot read input", i);
    fclose(f);
}

// Shapes that the descriptor's function must refuse, with the buffers as they are.
static void check_shapes(int set, void *ws, const burn_tensor *in, const burn_tensor *out) {
    const Set *s = &sets[set];
    for (int i = 0; i < INPUTS; i++) {
        int64_t shape[RANK];
        burn_tensor changed[INPUTS];
        memcpy(changed, in, sizeof changed);
        changed[i].shape = shape;
        for (int d = 0; d < MODEL.inputs[i].rank; d++) {
            const int64_t most = MODEL.inputs[i].shape[d],
                          least = MODEL.inputs[i].least ? MODEL.inputs[i].least[d] : most;
            memcpy(shape, s->in[i], sizeof shape);
            shape[d] = most + 1;
            if (MODEL.run(NULL, ws, NULL, changed, out) == 0) expect(0, -1, set, "a size above its bound in input", i);
            shape[d] = least - 1;
            if (MODEL.run(NULL, ws, NULL, changed, out) == 0) expect(0, -1, set, "a size below its bound in input", i);
            shape[d] = s->in[i][d] == least ? most : least;
            if ((shared[i][d] || fixed[i][d]) && shape[d] != s->in[i][d])
                expect(MODEL.run(NULL, ws, NULL, changed, out), -11, set, "sizes that disagree in input", i);
        }
        changed[i] = in[i];
        changed[i].data = NULL;
        expect(MODEL.run(NULL, ws, NULL, changed, out), -1, set, "no data in input", i);
        changed[i] = in[i];
        if (!changed[i].bytes--) continue;
        expect(MODEL.run(NULL, ws, NULL, changed, out), -1, set, "short input", i);
    }
}

// Sizes that the typed function must refuse.
static void check_sizes(int set, void *ws, void *const *in, void *const *out) {
    int64_t shapes[OUTPUTS][RANK];
    for (int k = 0; k < SIZES; k++) {
        if (!passed[k]) continue;
        int64_t size[SIZES];
        memcpy(size, sets[set].size, sizeof size);
        size[k] = bounds[k][1] + 1;
        expect(typed(ws, size, in, out, shapes), -5, set, "a size above its bound, size", k);
        size[k] = bounds[k][0] - 1;
        expect(typed(ws, size, in, out, shapes), -5, set, "a size below its bound, size", k);
        size[k] = INT64_MAX;
        expect(typed(ws, size, in, out, shapes), -5, set, "the largest integer, size", k);
        size[k] = INT64_MIN;
        expect(typed(ws, size, in, out, shapes), -5, set, "the least integer, size", k);
    }
}

// What the descriptor tells of the outputs before a run: their shapes, or the largest where only the run finds out.
static void check_told(int set, const burn_tensor *in) {
    const Set *s = &sets[set];
    int64_t shapes[OUTPUTS][RANK];
    burn_tensor given[INPUTS], told[OUTPUTS];
    memset(told, 0, sizeof told);
    for (int i = 0; i < INPUTS; i++) given[i] = (burn_tensor){ .shape = in[i].shape };
    for (int i = 0; i < OUTPUTS; i++) told[i].shape = shapes[i];
    if (!MODEL.shapes) return;
    expect(MODEL.shapes(given, told), 0, set, "the descriptor's shapes", 0);
    for (int i = 0; i < OUTPUTS; i++)
        for (int d = 0; d < MODEL.outputs[i].rank; d++) {
            const int64_t dim = s->out[i][d], most = MODEL.outputs[i].shape[d];
            if (measured[i] && (dim > shapes[i][d] || shapes[i][d] > most))
                expect((long)shapes[i][d], (long)most, set, "what is told of output", i);
            if (!measured[i]) expect((long)shapes[i][d], (long)dim, set, "the shape that is told of output", i);
        }
}

static void run_set(int set) {
    const Set *s = &sets[set];
    burn_tensor in[INPUTS], out[OUTPUTS];
    int64_t in_shapes[INPUTS][RANK], out_shapes[OUTPUTS][RANK], again_shapes[OUTPUTS][RANK];
    void *ws, *in_data[INPUTS], *again[OUTPUTS];
    if (posix_memalign(&ws, 64, MODEL.workspace_bytes ? MODEL.workspace_bytes : 1)) exit(9);
    memset(ws, 0xa5, MODEL.workspace_bytes);
    memcpy(in_shapes, s->in, sizeof in_shapes);
    for (int i = 0; i < INPUTS; i++) {
        in_data[i] = exactly(s->in_bytes[i]);
        read_input(set, i, in_data[i]);
        in[i] = (burn_tensor){ .data = in_data[i], .bytes = s->in_bytes[i], .shape = in_shapes[i] };
    }
    for (int i = 0; i < OUTPUTS; i++) {
        const size_t bytes = measured[i] || s->code ? MODEL.outputs[i].bytes : s->out_bytes[i];
        out[i] = (burn_tensor){ .data = exactly(bytes), .bytes = bytes, .shape = out_shapes[i] };
        again[i] = exactly(bytes);
        memset(out[i].data, 0x11, bytes);
        memset(again[i], 0x22, bytes);
    }
    expect(MODEL.run(NULL, ws, NULL, in, out), s->code, set, "the descriptor's run", 0);
    if (!s->code) check_told(set, in);
    memset(ws, 0x5a, MODEL.workspace_bytes);
    expect(typed(ws, s->size, in_data, again, again_shapes), s->code, set, "the typed function", 0);
    for (int i = 0; i < OUTPUTS && !s->code; i++) {
        for (int d = 0; d < MODEL.outputs[i].rank; d++) {
            expect((long)out_shapes[i][d], (long)s->out[i][d], set, "the shape of output", i);
            if (measured[i])
                expect((long)again_shapes[i][d], (long)s->out[i][d], set, "the typed function's shape of output", i);
        }
        expect(
            memcmp(out[i].data, again[i], s->out_bytes[i]) != 0, 0, set, "what the workspace held changed output", i);
    }
    if (!s->code) check_shapes(set, ws, in, out);
    if (!s->code) check_sizes(set, ws, in_data, again);
    free(ws);
    for (int i = 0; i < INPUTS; i++) free(in_data[i]);
    for (int i = 0; i < OUTPUTS; i++) {
        free(out[i].data);
        free(again[i]);
    }
}

int main(void) {
    for (int k = 0; k < SETS; k++) run_set(k);
    printf("pass data=all\n");
    return 0;
}
