/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A terminal that is given back whatever ends the process. In: a terminal before a dashboard takes it. Out: its modes,
 * screen and cursor as they were, at exit and on signals that end the process: their handler writes what was prepared
 * before. That is what `held` is for, the only state of watchers that is not a watcher's own. */
#define _POSIX_C_SOURCE 200809L
#ifdef BURN_WATCH_CURSES
#include "watch_hold.h"

#include <curses.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <term.h>
#include <termios.h>
#include <unistd.h>

static const int ENDS[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL };
enum { END_COUNT = sizeof ENDS / sizeof *ENDS };

static struct {
    volatile sig_atomic_t is_held, requests;
    int out, in, is_at_exit;
    char leave[256];                      /* what sets the terminal back */
    size_t leave_bytes;
    struct termios modes;
    struct sigaction before[END_COUNT];
} held;

/* Of use in a handler: nothing here allocates or locks. */
static void let_go(void)
{
    if (!held.is_held) return;
    held.is_held = 0;
    ssize_t written = write(held.out, held.leave, held.leave_bytes);
    (void)written;
    tcsetattr(held.in, TCSANOW, &held.modes);
}

/* A signal that ends the process, unless somebody handles it: a learner does SIGINT and SIGTERM, once. */
static void on_end(int number)
{
    int i = 0;
    while (ENDS[i] != number) i++;
    void (*handler)(int) = held.before[i].sa_handler;
    int is_request = (number == SIGINT || number == SIGTERM) && handler != SIG_DFL;
    if (handler == SIG_IGN) return;
    if (!is_request || held.requests++) let_go();
    if (is_request) {
        handler(number);
        return;
    }
    sigaction(number, &held.before[i], NULL);
    raise(number);
}

int watch_hold_knows(int out)
{
    int error, is_known = setupterm(NULL, out, &error) == OK && tigetstr("cup");
    if (is_known) del_curterm(cur_term);
    return is_known;
}

int watch_hold_modes(int in)
{
    if (held.is_held || tcgetattr(in, &held.modes)) return 0;
    held.in = in;
    for (int i = 0; i < END_COUNT; i++) sigaction(ENDS[i], NULL, &held.before[i]);
    return 1;
}

static void prepare(const char *capability)
{
    const char *text = tigetstr(capability);
    size_t bytes = text && text != (char *)-1 ? strlen(text) : 0;
    if (held.leave_bytes + bytes > sizeof held.leave) return;
    memcpy(held.leave + held.leave_bytes, bytes ? text : "", bytes);
    held.leave_bytes += bytes;
}

void watch_hold(int out)
{
    struct sigaction action = { .sa_handler = on_end, .sa_flags = SA_RESTART };
    held.leave_bytes = 0;
    prepare("rmkx");                      /* keys as before, */
    prepare("sgr0");                      /* plain letters, */
    prepare("op");                        /* the usual colours, */
    prepare("cnorm");                     /* a cursor, */
    prepare("rmcup");                     /* and the screen of before */
    held.out = out;
    held.requests = 0;
    held.is_held = 1;
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < END_COUNT; i++) sigaction(ENDS[i], &action, NULL);
    if (!held.is_at_exit) held.is_at_exit = !atexit(let_go);
}

void watch_hold_end(void)
{
    held.is_held = 0;
    for (int i = 0; i < END_COUNT; i++) sigaction(ENDS[i], &held.before[i], NULL);
}
#endif
