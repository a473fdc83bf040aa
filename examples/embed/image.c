// SPDX-License-Identifier: MIT OR Apache-2.0
// image FILE.pgm: which digit is in a picture of 28 x 28 grey values.
#include <stdint.h>
#include <string.h>

#include "board.h"
#include "digits-made.h"

enum { HEAD = 13, PIXELS = 28 * 28 };

int program(void)
{
    static digits_workspace work;
    static uint8_t file[HEAD + PIXELS];
    static float image[PIXELS], logits[10];
    char path[200];
    int best = 0;
    const int open = board_argument(1, path, sizeof path) ? board_open(path) : -1;
    const int n = open < 0 ? 0 : board_read(open, file, sizeof file);
    if (n != HEAD + PIXELS || memcmp(file, "P5\n28 28\n255\n", HEAD)) {
        board_print("image: wants a PGM file of 28 x 28 bytes\n");
        return 1;
    }
    for (int i = 0; i < PIXELS; i++) image[i] = (float)file[HEAD + i] / 255;
    if (digits_run(&work, image, logits)) return 1;
    for (int i = 1; i < 10; i++)
        if (logits[i] > logits[best]) best = i;
    board_print("this is a ");
    board_number(best);
    board_print("\n");
    return 0;
}
