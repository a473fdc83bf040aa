// SPDX-License-Identifier: MIT OR Apache-2.0
// Diagnostics about the user's model: beside stop.c the only place of the compiler that prints to standard error.
//
// In: a place in the user's model and a message. Out: a line such as
//   resnet.onnx: node 17 "layer1/conv1" (Conv): error: weight wants 64 input channels, input has 32
//   net.txt:4:8: (Conv): error: weight wants 64 input channels, input has 32
// where the parts of the place that are not known are left out. The idea: the user's mistakes are recorded, so that a
// stage finds all of them and the caller stops after the stage; ours (stop.c) stop at once. Names from the model are
// untrusted: control characters in a line are printed as '?'.
#define _POSIX_C_SOURCE 200809L
#include "base/base.h"

#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#define MAX_ERRORS 100                          // printed; more of them only repeat themselves
#define MESSAGE_BYTES 2048                      // longer messages are cut

static struct { int errors, status; Text *capture; } diag;

// Replaces control characters (a model's names may hold any bytes; a terminal obeys some of them).
static void make_printable(char *s) {
    for (; *s; s++)
        if ((unsigned char)*s < 0x20 || *s == 0x7f) *s = '?';
}

static void emit(const char *line) {
    if (diag.capture) text_printf(diag.capture, "%s\n", line);
    else fprintf(stderr, "%s\n", line);
}

static size_t put(char *to, size_t n, const char *fmt, ...) PRINTF_LIKE(3, 4);

// Appends to a line of MESSAGE_BYTES, cutting what does not fit; returns the new length.
static size_t put(char *to, size_t n, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    int more = vsnprintf(to + n, MESSAGE_BYTES - n, fmt, ap);
    va_end(ap);
    if (more < 0) return n;
    return n + (size_t)more < MESSAGE_BYTES ? n + (size_t)more : MESSAGE_BYTES - 1;
}

static void say(const Loc *loc, const char *kind, const char *fmt, va_list ap) {
    char line[2 * MESSAGE_BYTES];
    size_t n = 0;
    line[0] = 0;
    const char *sep = "";
    if (loc) {
        if (loc->file) {
            n = put(line, n, "%.512s", loc->file);
            if (loc->line) n = put(line, n, ":%d", loc->line);
            if (loc->line && loc->column) n = put(line, n, ":%d", loc->column);
            sep = ": ";
        }
        bool has_node = loc->node >= 0, has_name = loc->name && *loc->name, has_op = loc->op && *loc->op;
        if (has_node || has_name || has_op) {
            n = put(line, n, "%s", sep);
            const char *gap = "";
            if (has_node) {
                n = put(line, n, "node %d", loc->node);
                gap = " ";
            }
            if (has_name) {
                n = put(line, n, "%s\"%.256s\"", gap, loc->name);
                gap = " ";
            }
            if (has_op) n = put(line, n, "%s(%.128s)", gap, loc->op);
            sep = ": ";
        }
    }
    if (!*sep) {
        n = put(line, n, "burncc");
        sep = ": ";
    }
    n = put(line, n, "%s%s: ", sep, kind);
    vsnprintf(line + n, sizeof line - n, fmt, ap);
    make_printable(line);
    emit(line);
}

static void record(int status, const Loc *loc, const char *fmt, va_list ap) {
    if (!diag.errors++) diag.status = status;
    if (diag.errors <= MAX_ERRORS) say(loc, "error", fmt, ap);
    if (diag.errors == MAX_ERRORS) emit("burncc: note: further errors are counted but not shown");
}

void diag_error(const Loc *loc, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    record(EXIT_INVALID, loc, fmt, ap);
    va_end(ap);
}

void diag_error_as(int status, const Loc *loc, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    record(status, loc, fmt, ap);
    va_end(ap);
}

void diag_warn(const Loc *loc, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    say(loc, "warning", fmt, ap);
    va_end(ap);
}

void diag_note(const Loc *loc, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    say(loc, "note", fmt, ap);
    va_end(ap);
}

void diag_passed_on(int errors, int status) {
    if (!diag.errors) diag.status = status;
    diag.errors += errors;
}

int diag_errors(void) { return diag.errors; }
int diag_status(void) { return diag.status; }
void diag_reset(void) { diag.errors = diag.status = 0; }
void diag_capture(Text *into) { diag.capture = into; }

DiagHold diag_hold(Text *into) {
    DiagHold h = { diag.errors, diag.status, diag.capture };
    diag.capture = into;
    return h;
}

bool diag_release(DiagHold h) {
    bool ok = diag.errors == h.errors;
    diag.errors = h.errors;
    diag.status = h.status;
    diag.capture = h.capture;
    return ok;
}

void diag_progress(const char *fmt, ...) {
    if (diag.capture || !isatty(STDERR_FILENO)) return;
    va_list ap;
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
}
