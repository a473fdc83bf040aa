// SPDX-License-Identifier: MIT OR Apache-2.0
// Diagnostics about the user's model: beside stop.c and progress.c the only place of the compiler that prints to
// standard error.
//
// In: a place in the user's model and a message. Out: a line such as
//   resnet.onnx: node 17 "layer1/conv1" (Conv): error: weight wants 64 input channels, input has 32
//   net.txt:4:8: (Conv): error: weight wants 64 input channels, input has 32
// where the parts of the place that are not known are left out. The idea: the user's mistakes are recorded, so that a
// stage finds all of them and the caller stops after the stage; ours (stop.c) stop at once. What is no error is said
// once, however often a model is compiled for one command. Names from the model are untrusted: control characters in a
// line are printed as '?'. On a terminal the place is bold and the kind has a colour.
#define _POSIX_C_SOURCE 200809L
#include "base/base.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_ERRORS 100                          // printed; more of them only repeat themselves
#define MESSAGE_BYTES 2048                      // longer messages are cut

enum { MAX_SAID = 512 };                        // notes and warnings that are remembered

static struct {
    int errors, status, n_said;
    Text *capture;
    bool quiet, silenced[WARNING_COUNT];
    uint64_t said[MAX_SAID];                    // checksums of lines
    char first[MESSAGE_BYTES];                  // the first error
} diag;

// Replaces control characters (a model's names may hold any bytes; a terminal obeys some of them).
static void make_printable(char *s) {
    for (; *s; s++)
        if ((unsigned char)*s < 0x20 || *s == 0x7f) *s = '?';
}

// NO_COLOR and CLICOLOR_FORCE are conventions of many tools.
static bool in_colour(void) {
    const char *no = getenv("NO_COLOR"), *force = getenv("CLICOLOR_FORCE"), *term = getenv("TERM");
    if (no && *no) return false;
    if (force && *force && strcmp(force, "0")) return true;
    return isatty(STDERR_FILENO) && term && strcmp(term, "dumb");
}

// place: of the bytes before the kind of the diagnostic
static void emit(const char *line, size_t place, const char *kind) {
    progress_hide();
    const char *message = line + place + strlen(kind);
    if (diag.capture) text_printf(diag.capture, "%s\n", line);
    else if (!in_colour()) fprintf(stderr, "%s\n", line);
    else
        fprintf(stderr, "\033[1m%.*s\033[%sm%s:\033[0m%s\n", (int)place, line,
            *kind == 'e' ? "31" : *kind == 'w' ? "35" : "36", kind, message + 1);
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

// Appends `file:line:column: node N "name" (Op): `, or `burncc: `.
static size_t put_place(char *line, const Loc *loc) {
    size_t n = 0;
    if (loc && loc->file) {
        n = put(line, n, "%.512s", loc->file);
        if (loc->line) n = put(line, n, ":%d", loc->line);
        if (loc->line && loc->column) n = put(line, n, ":%d", loc->column);
        n = put(line, n, ": ");
    }
    bool has_node = loc && loc->node >= 0, has_name = loc && loc->name && *loc->name,
         has_op = loc && loc->op && *loc->op;
    if (has_node) n = put(line, n, "node %d%s", loc->node, has_name || has_op ? " " : "");
    if (has_name) n = put(line, n, "\"%.256s\"%s", loc->name, has_op ? " " : "");
    if (has_op) n = put(line, n, "(%.128s)", loc->op);
    if (has_node || has_name || has_op) n = put(line, n, ": ");
    return n ? n : put(line, n, "burncc: ");
}

// Was this line said before? It is from now on.
static bool said(const char *line) {
    uint64_t sum = UINT64_C(0xcbf29ce484222325);        // FNV-1a
    for (const char *c = line; *c; c++) sum = (sum ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
    for (int i = 0; i < diag.n_said; i++)
        if (diag.said[i] == sum) return true;
    if (diag.n_said < MAX_SAID) diag.said[diag.n_said++] = sum;
    return false;
}

// silencer: the name of a warning, which says by it how to be silenced; NULL: none
static void say(const Loc *loc, const char *kind, const char *silencer, const char *fmt, va_list ap) {
    char line[2 * MESSAGE_BYTES];
    size_t place = put_place(line, loc), n = put(line, place, "%s: ", kind);
    int more = vsnprintf(line + n, sizeof line - n, fmt, ap);
    size_t end = strlen(line);
    if (silencer && more >= 0) snprintf(line + end, sizeof line - end, " (--silence %s)", silencer);
    make_printable(line);
    bool error = *kind == 'e';
    if (error && diag.errors == 1) snprintf(diag.first, sizeof diag.first, "%.*s", MESSAGE_BYTES - 1, line);
    if (error || diag.capture || !said(line)) emit(line, place, kind);
}

static void record(int status, const Loc *loc, const char *fmt, va_list ap) {
    if (!diag.errors++) diag.status = status;
    if (diag.errors <= MAX_ERRORS) say(loc, "error", NULL, fmt, ap);
    if (diag.errors == MAX_ERRORS)
        emit("burncc: note: further errors are counted but not shown", strlen("burncc: "), "note");
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

#define NAME(name) #name
#define ROW(name) NAME(name),
static const char *const warning_names[] = { WARNINGS(ROW) };

// As it is written: '-' for '_'.
static const char *warning_name(Warning w) {
    static char name[32];
    snprintf(name, sizeof name, "%s", warning_names[w]);
    for (char *c = name; *c; c++)
        if (*c == '_') *c = '-';
    return name;
}

void diag_warn(Warning w, const Loc *loc, const char *fmt, ...) {
    if (diag.silenced[w]) return;
    va_list ap;
    va_start(ap, fmt);
    say(loc, "warning", warning_name(w), fmt, ap);
    va_end(ap);
}

void diag_note(const Loc *loc, const char *fmt, ...) {
    if (diag.quiet) return;
    va_list ap;
    va_start(ap, fmt);
    say(loc, "note", NULL, fmt, ap);
    va_end(ap);
}

void diag_quiet(void) { diag.quiet = true; }

bool diag_silence(const char *name) {
    bool all = !strcmp(name, "all"), found = all;
    for (int i = 0; i < WARNING_COUNT; i++) {
        if (!all && strcmp(name, warning_name((Warning)i))) continue;
        found = diag.silenced[i] = true;
    }
    return found;
}

const char *diag_warnings(void) {
    static char list[256];
    size_t n = 0;
    for (int i = 0; i < WARNING_COUNT && n < sizeof list; i++)
        n += (size_t)snprintf(list + n, sizeof list - n, "%s, ", warning_name((Warning)i));
    snprintf(list + n, sizeof list - n, "all");
    return list;
}

void diag_passed_on(int errors, int status) {
    if (!diag.errors) diag.status = status;
    diag.errors += errors;
}

void diag_replay(const Text *captured) {
    progress_hide();
    for (const char *at = captured->n ? captured->at : "", *end; *at; at = end + 1) {
        char line[2 * MESSAGE_BYTES];
        end = strchr(at, '\n');
        snprintf(line, sizeof line, "%.*s", (int)(end - at), at);
        if (diag.capture) text_printf(diag.capture, "%s\n", line);
        else if (strstr(line, "error: ") || !said(line)) fprintf(stderr, "%s\n", line);
    }
}

const char *diag_first(void) {
    static const char bare[] = "burncc: error: ";
    return strncmp(diag.first, bare, strlen(bare)) ? diag.first : diag.first + strlen(bare);
}

int diag_errors(void) { return diag.errors; }
int diag_status(void) { return diag.status; }
void diag_reset(void) {
    diag.errors = diag.status = 0;
    *diag.first = 0;
}
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
