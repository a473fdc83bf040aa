// SPDX-License-Identifier: MIT OR Apache-2.0
// A second of sound as 61 columns of 20 log-mel bands. In: a WAV file of 8,000 samples a second, one channel of 16
// bits, or silence behind its end. The samples come as a microphone gives them, 128 at a time, so that no more than a
// window of them is in memory.
#ifndef EARS_H
#define EARS_H

enum { BANDS = 20, COLUMNS = 61 };
int hear(const char *path, float mel[BANDS * COLUMNS]);         // 0, or what is wrong is printed
#endif
