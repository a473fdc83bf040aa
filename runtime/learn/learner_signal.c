/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* SIGINT and SIGTERM while a learner runs: the first is remembered, a second one does what it always did. Handlers are
 * the process' own, so what they remember is, too: the only static variable of the learner. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include "learner_own.h"

#include <signal.h>
#include <stdlib.h>

static const int taken[] = { SIGINT, SIGTERM };
enum { TAKEN = sizeof taken / sizeof *taken };
static volatile sig_atomic_t came;

static void remember(int number)
{
    if (came) {
        signal(number, SIG_DFL);
        raise(number);
    }
    came = number;
}

int signals_take(Signals *s)
{
    struct sigaction action = { .sa_handler = remember, .sa_flags = SA_RESTART }, *before;
    s->before = before = calloc(TAKEN, sizeof *before);
    if (!before) return 0;
    came = 0;
    sigemptyset(&action.sa_mask);
    for (s->count = 0; s->count < TAKEN; s->count++) sigaction(taken[s->count], &action, &before[s->count]);
    return 1;
}

int signals_came(void)
{
    return came;
}

void signals_give_back(Signals *s)
{
    const struct sigaction *before = s->before;
    for (int i = 0; i < s->count; i++) sigaction(taken[i], &before[i], NULL);
    free(s->before);
    *s = (Signals){ 0 };
}
