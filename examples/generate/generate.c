// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Greedy generation with a language model of two functions, prefill and step. In: how many tokens, and those that they
// follow. Out: the tokens. The prompt goes through prefill once; then a token costs one step, which looks at what the
// state keeps of those before it.
//
//     burncc models/llama.c -o lm.c --set cache=64 --dim length=1..64 --set layers=2 --set width=64 ...
//     cc -O3 -march=native -I . examples/generate/generate.c lm.c -lm -o generate
//     ./generate 16 3 14 15
#include <stdio.h>
#include <stdlib.h>

#include "lm.h"

enum { MOST = 64 };                     // as --set cache says

static lm_workspace workspace;          // every intermediate value; prefill and step take turns with it
static lm_state state;                  // keys and values of the tokens so far; zero at first

static int64_t largest(const float *logits, int64_t n) {
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++)
        if (logits[i] > logits[best]) best = i;
    return best;
}

int main(int argc, char **argv) {
    // sizes of the last output, logits[1][1][vocabulary]
    const int64_t vocabulary = lm_step_model.outputs[lm_step_model.output_count - 1].shape[2];
    int64_t tokens[MOST], n = argc - 2, end = argc > 2 ? n + atoi(argv[1]) : 0;
    float *logits = malloc((size_t)vocabulary * sizeof *logits);
    if (!logits || n < 1 || end <= n || end > MOST) {
        fprintf(stderr, "usage: generate COUNT TOKEN..., at most %d in all\n", MOST);
        return 2;
    }
    for (int64_t i = 0; i < n; i++) tokens[i] = atoi(argv[2 + i]);
    int code = lm_prefill(&workspace, n, tokens, &state, logits);
    while (code == 0 && n < end) {
        tokens[n] = largest(logits, vocabulary);
        printf("%lld%s", (long long)tokens[n], n + 1 < end ? " " : "\n");
        if (n + 1 < end) code = lm_step(&workspace, &n, &tokens[n], &state, logits);
        n++;
    }
    free(logits);
    if (code) fprintf(stderr, "the model returned %d\n", code);
    return code != 0;
}
