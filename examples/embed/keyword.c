// SPDX-License-Identifier: MIT OR Apache-2.0
// keyword FILE.wav: which of four whistles is in it.
#include "board.h"
#include "ears.h"
#include "words-made.h"

static const char *const names[4] = {"beeps", "fall", "rise", "trill"};

int program(void)
{
    static words_workspace work;
    static float mel[BANDS * COLUMNS], logits[4];
    char path[200];
    int best = 0;
    if (!board_argument(1, path, sizeof path) || hear(path, mel) || words_run(&work, mel, logits)) return 1;
    for (int i = 1; i < 4; i++)
        if (logits[i] > logits[best]) best = i;
    board_print(names[best]);
    board_print("\n");
    return 0;
}
