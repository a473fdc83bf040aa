// SPDX-License-Identifier: MIT OR Apache-2.0
// See ears.h. One column is a run of the model mel over the last 256 samples.
#include "ears.h"

#include <stdint.h>
#include <string.h>

#include "board.h"
#include "mel-made.h"

enum { HEAD = 44, WINDOW = 256, HOP = 128, KEPT = WINDOW - HOP };

static int is_wav(const uint8_t *head, int bytes)
{
    return bytes == HEAD && !memcmp(head, "RIFF", 4) && head[22] == 1 && !memcmp(head + 24, "\x40\x1f\0\0", 4)
        && head[34] == 16 && !memcmp(head + 36, "data", 4);
}

int hear(const char *path, float mel[BANDS * COLUMNS])
{
    static mel_workspace work;
    static float window[WINDOW], column[BANDS];
    static uint8_t bytes[2 * HOP];
    const int file = board_open(path);
    if (file < 0 || !is_wav(bytes, board_read(file, bytes, HEAD))) {
        board_print(path);
        board_print(": no WAV file of one channel, 8 kHz and 16 bits\n");
        return 1;
    }
    for (int t = -1; t < COLUMNS; t++) {                // the first window is full when two hops are there
        memset(bytes, 0, sizeof bytes);
        board_read(file, bytes, sizeof bytes);
        memmove(window, window + HOP, KEPT * sizeof *window);
        for (int i = 0; i < HOP; i++)
            window[KEPT + i] = (float)(int16_t)(bytes[2 * i] | bytes[2 * i + 1] << 8) / 32768;
        if (t < 0) continue;
        if (mel_run(&work, window, column)) return 1;
        for (int m = 0; m < BANDS; m++) mel[m * COLUMNS + t] = column[m];
    }
    board_close(file);
    return 0;
}
