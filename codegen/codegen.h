// SPDX-License-Identifier: MIT OR Apache-2.0
// What the files of codegen/ share: the loop printer with its dialects, names and the template engine.
#ifndef BURNCC_CODEGEN_H
#define BURNCC_CODEGEN_H
#include "plan.h"
#include "codegen/spell/spell.h"

// backends.c
const Backend *backend_find(const char *name);          // a row of backends.def
bool backend_target(const char *name, Target *out);     // target_find, and what makes code for it

// How a loop kernel is spelled in one language. Element texts come in and go out in the type arithmetic runs in (f32
// for f16 …).
typedef struct Dialect {
    const char *index_type;                             // of loop variables
    const char *indent;                                 // one level
    const char *constant;                               // "const "
    // whose symbols' variables sizes are spelled with; NULL where all sizes are fixed
    const Graph *graph;
    // name of the fused multiply-add for sums of products; NULL: * and +
    const char *fma;
    bool lanes;                                         // split long inner reductions into independent partial results
    // an extent or a step from element to element that may be other than this in the next kernel of the same text:
    // how it is spelled; NULL: as itself
    const char *(*number)(void *ctx, int64_t value);
    const char *(*type)(DType d);                       // of temporaries
    const Language *language;                           // of operations
    const char *(*load)(void *ctx, Value *v, const char *index);             // the element as the arithmetic type
    // The same where a guard stands over it; `otherwise` NULL: zero. NULL: the ?: operator around load().
    const char *(*load_if)(void *ctx, Value *v, const char *index, const char *guard, const char *otherwise);
    // a statement without its end of line
    void (*store)(void *ctx, Text *out, const Store *s, const char *index, const char *value);
    // a statement before a loop that stores at `index`: the line of memory is wanted; NULL: none
    void (*touch)(void *ctx, Text *out, const Store *s, const char *index);
    // where an element lies; NULL: f16 has no instructions of its own, that turn a row of it into floats and back
    const char *(*address)(void *ctx, Value *v, const char *index);
    const char *store_if;                               // condition over every store; NULL: none
    // `team` > 1 GPU threads share each point, and `rank` is a variable of each: they share out the reductions
    // outside every inner loop, then the longest inner loop. part() spells an element of memory that they all see, of
    // this one (rank NULL) or another; `barrier` waits for all.
    int team;
    // the kernel's part_axis goes from the one to below the other; NULL: over its extent
    const char *first, *last;
    const char *barrier;
    const char *(*part)(void *ctx, DType d, int slot, const char *rank);
    void *ctx;
} Dialect;

// Prints the nest of a loop kernel. The first `bound` parallel axes are variables i0, i1, ... that the caller has
// declared (GPU threads).
void loops_print(Arena *a, Text *out, const Kernel *k, const Dialect *d, int bound, int depth);

// file.c: what every generated file has
const char *path_swap(Arena *a, const char *path, const char *extension);   // model.c -> model.h
const char *path_base(const char *path);
const char *text_upper(Arena *a, const char *s);
// of runtime/burn.h, between `/* block begin */` and `/* block end */`
const char *burn_types(Arena *a, const char *block);
void c_comment(Text *out, const char *s);               // text from a stranger inside a comment
// Which inputs and outputs are one sequence of the model's, and which optionals are there, by these names or (NULL)
// the model's: lines of a comment.
void bundles_comment(Text *h, const Graph *g, const char *const *inputs, const char *const *outputs);
const char *c_string(Arena *a, const char *s);          // the same inside "" (which the caller writes)
void print_banner(Text *t, const Options *o);
// the nodes a kernel comes from and their shapes, as a comment
void print_origin(Arena *a, Text *out, const Graph *g, const Kernel *k);
// and commits `extra` (NULL: none)
bool files_write(Arena *a, const Text *texts, const char *const *paths, int n, int n_more, OutFile *const *more);

// template.c: fills the holes of an embedded template (see any file in templates/c); all its holes, or some
// params: "acc, n, c, p" for function-like holes, else NULL
typedef struct Hole { const char *name, *params, *text; } Hole;
void template_fill(Arena *a, Text *out, const char *file, int n, const Hole *holes);
void skeleton_fill(Arena *a, Text *out, const char *file, int n, const Hole *holes);     // of templates/skeleton
const char *number_text(Arena *a, int64_t n);           // a hole's text


// c/file.c: the C functions that the kernels of programs are, each under the nodes that they come from; and the name of
// a kernel's, once that has been called; NULL: it is none. training: as of Backend.write
struct Training;
typedef struct Listed { const char *name, *text; } Listed;
typedef struct Listing { int n; Listed *at; } Listing;
void codegen_listing(
    Arena *a, const Options *o, int n, Program *programs, const struct Training *training, Listing *out);
const char *codegen_function(const Kernel *k);
// c/alone.c: forms of one template kernel, each a function burncc_alone[i](at, scratch), where at[j] is where
// operand[j] begins
enum { MAX_ALONE = 64 };
// packed: which has the layout that each form packs; -1: none
typedef struct Alone { int n, result, packed; Value *operand[MAX_ALONE]; } Alone;
bool codegen_alone(
    Arena *a, const Options *o, const Plan *p, int n, const Kernel *const *kernels, const char *path, Alone *out);
#endif
