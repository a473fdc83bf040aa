// SPDX-License-Identifier: MIT OR Apache-2.0
// learn FOLDER: a keyword spotter learns three sounds that it does not know, from eight of each in FOLDER/hum,
// FOLDER/hush and FOLDER/rattle, and is asked about four others. Its convolutions stay as they are, on bytes; the last
// layer is new, and of floats. One sound at a time is in memory.
#include "board.h"
#include "ears.h"
#include "head-made.h"

#include <string.h>

enum { KINDS = 3, EXAMPLES = 8, OTHERS = 4, ROUNDS = 6 };
static const char *const names[KINDS] = {"hum", "hush", "rattle"};
static const float learning_rate = 0.01f;

static union {                                          // one at a time
    head_train_step_workspace step;
    head_predict_workspace predict;
} work;
static head_params params;
static head_state state;                                 // zeros at first
static float mel[BANDS * COLUMNS];
static char folder[100];

static int hear_one(int kind, int i)                    // FOLDER/KIND/I.wav
{
    char path[128], number[8] = {(char)('0' + i / 10), (char)('0' + i % 10), 0};
    strcpy(path, folder);
    strcat(strcat(strcat(path, "/"), names[kind]), "/");
    strcat(strcat(path, i < 10 ? number + 1 : number), ".wav");
    return hear(path, mel);
}

static int learn_once(void)
{
    static float step;
    float sum = 0;
    for (int i = 0; i < EXAMPLES; i++)
        for (int64_t kind = 0; kind < KINDS; kind++) {
            float loss[1];
            step++;
            if (hear_one((int)kind, i) || head_train_step(&work.step, mel, &params, &kind, learning_rate, 0.9f, 0.999f,
                                              1e-8f, 0, step, &state, loss))
                return 1;
            sum += loss[0];
        }
    uint32_t bits;
    memcpy(&bits, &sum, sizeof bits);
    board_print("loss ");
    board_number((long long)(sum / (KINDS * EXAMPLES) * 1e6f));
    board_print(" millionths, bits ");
    board_number(bits);
    board_print("\n");
    return 0;
}

int program(void)
{
    int right = 0;
    if (!board_argument(1, folder, sizeof folder)) return 1;
    head_params_init(&params);
    for (int round = 0; round < ROUNDS; round++)
        if (learn_once()) return 1;
    for (int kind = 0; kind < KINDS; kind++)
        for (int i = EXAMPLES; i < EXAMPLES + OTHERS; i++) {
            float logits[KINDS];
            if (hear_one(kind, i) || head_predict(&work.predict, mel, &params, logits)) return 1;
            int best = 0;
            for (int k = 1; k < KINDS; k++) best = logits[k] > logits[best] ? k : best;
            right += best == kind;
        }
    board_number(right);
    board_print(" of 12 others right; workspace, parameters and state take ");
    board_number((long long)(sizeof work + sizeof params + sizeof state));
    board_print(" bytes\n");
    return 0;
}
