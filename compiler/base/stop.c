// SPDX-License-Identifier: MIT OR Apache-2.0
// What ends the process at once: our own mistakes (bug: file, line, abort, so that a debugger or a core shows the
// place) and what nothing can be done about (fatal: no memory). It stands on nothing, so that all else may call it.
#include "base/base.h"

#include <stdarg.h>
#include <stdlib.h>

void bug_at(const char *file, int line, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    fprintf(stderr, "burncc: bug at %s:%d: ", file, line);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
    abort();
}

void fatal(int status, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    fputs("burncc: error: ", stderr);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
    exit(status);
}
