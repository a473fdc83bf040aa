// SPDX-License-Identifier: MIT OR Apache-2.0
// anomaly FILE.wav: does the machine sound as it did when the detector learnt? What it cannot reconstruct is new to it.
#include "board.h"
#include "detector-made.h"
#include "ears.h"

static const float usual = 1.25f;                       // hums that it did not learn from come to about 1 at most

int program(void)
{
    static detector_workspace work;
    static float mel[BANDS * COLUMNS], error[1];
    char path[200];
    if (!board_argument(1, path, sizeof path) || hear(path, mel) || detector_run(&work, mel, error)) return 1;
    board_print(error[0] > usual ? "unusual, " : "as usual, ");
    board_number((long long)(error[0] * 1000));
    board_print(" thousandths\n");
    return 0;
}
