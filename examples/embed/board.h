// SPDX-License-Identifier: MIT OR Apache-2.0
// What the examples ask of a board. board.c has it for a Cortex-M4 with a debugger, or an emulator, that answers
// semihosting calls: its files, its console and its command line are the debugger's. host.c has it for this machine.
#ifndef BOARD_H
#define BOARD_H

int board_argument(int at, char *to, int size);         // a word of the command line, 0 the program's; 0: there is none
int board_open(const char *path);                       // a file to read; negative: there is none
int board_read(int file, void *to, int bytes);          // how many were there
void board_close(int file);
void board_print(const char *text);
void board_number(long long n);

int program(void);                                      // the example: its status ends the run
#endif
