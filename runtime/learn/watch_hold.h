/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A terminal that is given back whatever ends the process (watch_hold.c). */
#ifndef BURN_WATCH_HOLD_H
#define BURN_WATCH_HOLD_H

/* Terminfo knows how to write on this terminal. */
int watch_hold_knows(int out);
/* Remembers the modes of the terminal `in` and who handles signals; 0 where it is none, or one is held already. */
int watch_hold_modes(int in);
/* From now on: the current terminal of terminfo, which is written to by `out`, is set back when the process ends. */
void watch_hold(int out);
/* No more: it was given back. Signals are handled as before. */
void watch_hold_end(void);

#endif
