// SPDX-License-Identifier: MIT OR Apache-2.0
// How expressions are spelled in a language: one table (c.c, glsl.c) and the functions that its text may call
// (c_helpers.c, glsl_helpers.c). Adding a language is two such files.
//
// A text is a name, a literal, a call or in parentheses, so texts nest. A value of a small float is a float, of a 2- or
// 4-bit integer an 8-bit one (or more), of DT_INDEX what the language indexes with.
#ifndef BURNCC_SPELL_H
#define BURNCC_SPELL_H
#include "ir.h"

// Of an operation, on floats and on integers; "" where its rule excludes them.
//   $0 $1   operands; $u0 the operand as the unsigned type that arithmetic runs in, so that overflow wraps and is never
//           undefined
//   %w      at the front: brings the result back to the dtype's width
//   %f      the libm suffix (expf, exp)
//   %d      at the front: computes in float where the dtype is a double
//   @       the type arithmetic runs in (f32 f64 i32 u32 i64 u64), for helpers
typedef struct Format { const char *on_float, *on_int; } Format;

typedef struct Helper { const char *name, *text; } Helper;

// Constants of one float type: what ends digits, and what has none.
typedef struct FloatWords { const char *end, *nan, *infinity, *minus_infinity; } FloatWords;

typedef struct Language {
    DType index;                                        // what loop indices and addresses are: i64 or i32
    bool masks;                                         // floats are chosen by burn_select_@, so loops become vectors
    bool promotes;                                      // arithmetic on narrow integers gives a wider one
    FloatWords f32, f64;
    Format op[E_COUNT];
    struct { const char *equal, *different; } strings;
    struct { const char *equal, *different, *real, *imag; } complexes;
    const char *(*type)(DType d);                       // that arithmetic runs in
    const char *(*zero)(DType d);                       // stands for an element that is not there
    void (*integer)(Text *out, DType d, Scalar c);
    // x as the type of d, which holds it or which it is cut to
    void (*convert)(Text *out, DType d, const char *x);
    void (*truncate)(Text *out, DType d, const char *x);
    // brings 32- or 64-bit arithmetic back to d; call: the text is a call, already of d's own type at 32 or 64 bits
    void (*wrap)(Text *out, DType d, const char *body, bool call);
    void (*bits)(Text *out, DType from, DType to, const char *x);
    const Helper *helpers;                              // ends with name NULL
} Language;
extern const Language spell_c, spell_glsl;
extern const Helper spell_c_helpers[], spell_glsl_helpers[];

// spell.c: one operation (no leaf of a kernel: Arg, Axis, Load, Acc, Reduce) over its operands' texts
void spell_op(const Language *l, Text *out, const Expr *e, const char *const *operands);
// acc = step(acc, term) of a reduction, so that integers wrap and minima treat NaN as everywhere else
void spell_step(const Language *l, Text *out, ReduceOp op, DType d, const char *acc, const char *term);
const char *text_bare(Arena *a, const char *s);          // an expression without parentheses around all of it
bool spell_is_wide(DType d);                            // 64 bits
bool spell_is_narrow(DType d);                          // an integer of less than 32
// the definitions of the helpers that the text of a program calls, those that these call first, without those that
// stand in `above` already (or NULL)
void spell_helpers(const Language *l, Text *out, const Text *above, const char *program);

// sizes.c, in C: int64_t over the symbols' variables
const char *spell_symbol(Arena *a, const Symbol *s);    // its variable: n_batch
const char *spell_size(Arena *a, const Graph *g, Dim d);
const char *spell_size_operand(Arena *a, const Graph *g, Dim d);    // in parentheses when not one word

// c.c: elements in memory
const char *spell_c_storage(DType d);
const char *spell_c_load(Arena *a, DType d, const char *element);
const char *spell_c_store(Arena *a, DType d, const char *value);
// c_helpers.c: C for a processor without vectors, where masks in the place of choices are instructions for nothing;
// small: where code is to be small
Language spell_c_scalar(Arena *a, bool small);
// does a program call an elementary function of an f32 (c_functions.def)?
bool spell_c_has_functions(const char *program);
#endif
