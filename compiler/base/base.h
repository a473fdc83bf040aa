// SPDX-License-Identifier: MIT OR Apache-2.0
// What every stage stands on: the arena, growing text, string maps, diagnostics, files. Knows nothing of tensors.
#ifndef BURNCC_BASE_H
#define BURNCC_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#if defined(__GNUC__)
#define PRINTF_LIKE(f, a) __attribute__((format(printf, f, a)))
#define NORETURN __attribute__((noreturn))
#define OUT_OF_LINE __attribute__((noinline))   // what is rare and has a large frame
#else
#define PRINTF_LIKE(f, a)
#define NORETURN
#define OUT_OF_LINE
#endif

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static inline int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }     // a >= 0, b > 0
static inline int64_t max64(int64_t a, int64_t b) { return a > b ? a : b; }
// Rounded down, and what is left, of the divisor's sign. b != 0
static inline int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }
static inline int64_t floor_mod(int64_t a, int64_t b) {
    const int64_t r = a % b;
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

typedef struct Arena Arena;
typedef struct Loc Loc;

// ---------------------------------------------------------------- base/stop.c: what ends the process at once
enum { EXIT_OK = 0, EXIT_INVALID = 1, EXIT_USAGE = 2, EXIT_LIMIT = 3, EXIT_IO = 4, EXIT_MEMORY = 5 };
NORETURN void bug_at(const char *file, int line, const char *fmt, ...) PRINTF_LIKE(3, 4);   // our mistake: abort
#define bug(...) bug_at(__FILE__, __LINE__, __VA_ARGS__)
NORETURN void fatal(int status, const char *fmt, ...) PRINTF_LIKE(2, 3);

// ---------------------------------------------------------------- base/arena.c
Arena *arena_new(void);
void arena_free(Arena *a);
// zeroed, 64-byte aligned when >= 64 bytes else 16; out of memory: status 5
void *arena_alloc(Arena *a, size_t bytes);
void *arena_copy(Arena *a, const void *p, size_t bytes);
// frees a block now; false: too small to have memory of its own, or not this arena's
bool arena_release(Arena *a, const void *block);
char *arena_strdup(Arena *a, const char *s);
char *arena_strndup(Arena *a, const char *s, size_t n);
char *arena_printf(Arena *a, const char *fmt, ...) PRINTF_LIKE(2, 3);
size_t arena_bytes(const Arena *a);
#define NEW(a, T) ((T *)arena_alloc(a, sizeof(T)))
#define NEW_ARRAY(a, T, n) ((T *)arena_alloc(a, sizeof(T) * (size_t)(n)))

// A growing array in an arena: struct { T *at; int n, cap; } v; VEC_PUSH(arena, v, x)
#define VEC(T) struct { T *at; int n, cap; }
#define VEC_PUSH(arena, v, ...) \
    (vec_grow(arena, (void **)&(v).at, &(v).n, &(v).cap, sizeof *(v).at), (v).at[(v).n - 1] = (__VA_ARGS__))
void vec_grow(Arena *a, void **at, int *n, int *cap, size_t size);   // makes room for one more and counts it

// ---------------------------------------------------------------- base/text.c: growing text and string maps
typedef struct Text { char *at; size_t n, cap; Arena *arena; } Text;
void text_init(Text *t, Arena *a);
void text_printf(Text *t, const char *fmt, ...) PRINTF_LIKE(2, 3);
void text_append(Text *t, const char *s, size_t n);
void text_quoted(Text *out, const char *s);             // in "", escaped as the IR's text reads it
// A text with @WORDS@ that mean something; others stay. A line with one that means NULL is left out.
typedef struct Word { const char *name, *means; } Word;
void text_fill(Text *out, const char *text, int n, const Word *words);
typedef struct StrMap StrMap;
uint64_t text_hash(const char *s);                       // FNV-1a
StrMap *strmap_new(Arena *a);
void strmap_put(StrMap *m, const char *key, void *value);            // copies the key; replaces
void *strmap_get(const StrMap *m, const char *key);                  // NULL when absent

// ---------------------------------------------------------------- base/name.c
const char *name_c(Arena *a, const char *any);          // a C identifier from any text
bool name_is_library(const char *s);                    // a type or a function that generated code may use

// ---------------------------------------------------------------- templates/: embedded by tools/embed.c
const char *template_text(const char *name);            // a file of templates/ as text, NULL when absent

// ---------------------------------------------------------------- base/diag.c: what is wrong with a model
// Where a node comes from: `resnet.onnx: node 17 "layer1/conv1" (Conv)`, or in a text `net.txt:4:8: (Conv)`. Nodes made
// by a fusion keep the chain.
struct Loc {
    const char *file;
    int node;                                           // in a format that counts its nodes; -1: not known
    const char *name, *op;
    const Loc *next;
    int line, column;                                   // in a text, from 1; 0: not known
    bool backward;                                      // of what differentiates the node that it names
};
// the model's mistake: recorded, status EXIT_INVALID
void diag_error(const Loc *loc, const char *fmt, ...) PRINTF_LIKE(2, 3);
void diag_error_as(int status, const Loc *loc, const char *fmt, ...) PRINTF_LIKE(3, 4);
// What --silence calls warnings, with '-' for '_'.
#define WARNINGS(W) \
    W(attribute) W(categories) W(folding) W(ir_version) W(map) W(output_type) W(records) W(shape) W(softmax) \
    W(tolerance) W(tuning) W(weights)
#define WARN_NAME(name) WARN_##name,
typedef enum Warning { WARNINGS(WARN_NAME) WARNING_COUNT } Warning;
// the line says how to silence it; one that was said before is not said again, of notes too
void diag_warn(Warning w, const Loc *loc, const char *fmt, ...) PRINTF_LIKE(3, 4);
void diag_note(const Loc *loc, const char *fmt, ...) PRINTF_LIKE(2, 3);
void diag_quiet(void);                                  // no notes from here on
bool diag_silence(const char *name);                    // no warnings of this name, or `all`; false: no such name
const char *diag_warnings(void);                        // their names
void diag_passed_on(int errors, int status);            // what another process has printed
int diag_errors(void);                                  // how many errors so far
int diag_status(void);                                  // exit status of the first error, EXIT_OK if none
const char *diag_first(void);                           // its line, "" if none
void diag_replay(const Text *captured);                 // prints what was captured
void diag_reset(void);                                  // for tests
void diag_capture(Text *into);                          // tests: collect instead of printing; NULL: print again
typedef struct DiagHold { int errors, status; Text *capture; } DiagHold;
DiagHold diag_hold(Text *into);                         // a trial begins: what it says goes into `into`
bool diag_release(DiagHold h);                          // it ends: its errors are forgotten; true: there were none

// ---------------------------------------------------------------- base/progress.c: what is being done
void progress_start(bool quiet, bool verbose);          // once; without it there is none
// begins, and ends what began last; NULL: nothing begins
void progress_stage(const char *fmt, ...) PRINTF_LIKE(1, 2);
void progress_line(const char *fmt, ...) PRINTF_LIKE(1, 2);          // stays, on a terminal
void progress_hide(void);                               // before anything else is printed to a terminal

// ---------------------------------------------------------------- base/file.c
typedef struct File { const uint8_t *data; size_t size; void *map; } File;
bool file_map(File *f, const char *path);               // read-only mmap; false with diag (EXIT_IO)
void file_unmap(File *f);
// What this process reads and writes, each path once: kept in `a`, and from then on.
typedef VEC(const char *) ReadFiles;
typedef struct WrittenFile { const char *path; int64_t bytes; } WrittenFile;
typedef VEC(WrittenFile) WrittenFiles;                  // by out_commit, but for those in temporary folders
void files_keep(Arena *a);
void reads_add(const char *path);                       // file_map says it, and whoever reads by other means
const ReadFiles *reads_all(void);
const WrittenFiles *written_all(void);
// written to a temporary beside the target, renamed by out_commit
typedef struct OutFile OutFile;
OutFile *out_open(Arena *a, const char *path);          // NULL with diag
// What tells a file that was written here from somebody else's: it has this text near its beginning, or has it not.
typedef struct OutMark { const char *text; bool has; } OutMark;
// may the file be replaced? Not somebody else's, unless out_force() was called. False with diag.
bool out_allowed(const char *path, OutMark ours);
void out_force(void);
OutFile *out_replace(Arena *a, const char *path, OutMark ours);      // out_open, where that is allowed
bool out_write(OutFile *o, const void *p, size_t n);
bool out_can_rewrite(const OutFile *o);                 // no pipe, no device
bool out_rewrite(OutFile *o, int64_t at, const void *p, size_t n);           // bytes that have been written
bool out_commit(OutFile *o);                            // flush, check, rename; false with diag, temporary removed
void out_abandon(OutFile *o);
bool out_whole(Arena *a, const char *path, const void *p, size_t n);         // a file of these bytes; false with diag
// ---------------------------------------------------------------- base/process.c
// a temporary folder, gone at the latest when the process ends; NULL with diagnostics
const char *folder_make(void);
bool folder_holds(const char *path);                    // is it in one of these?
void folder_remove(const char *path);                   // NULL: nothing
// A command: words, split at spaces; no shell.
typedef VEC(const char *) Argv;
void argv_add(Arena *a, Argv *v, const char *text);
char **argv_end(Arena *a, Argv *v);                     // for execvp
// runs it to its end, its standard output going where errors go: its exit status, 128 and more: a signal ended it
enum { PROCESS_NONE = 127 };                            // there is no such program
int process_run(Arena *a, Argv *v);
int process_try(Arena *a, Argv *v);                     // the same, and nobody sees what it prints

// ---------------------------------------------------------------- base/spec.c: name(key=value, ...)
typedef struct Spec Spec;
typedef struct SpecArg { const char *key; const Spec *value; } SpecArg;     // key NULL: none stands there
struct Spec { const char *word; VEC(SpecArg) args; };
// moves *text behind it and the blanks that follow; NULL where it is none
const Spec *spec_parse(Arena *a, const char **text);
#endif
