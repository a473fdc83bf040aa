// SPDX-License-Identifier: MIT OR Apache-2.0
// State of one loop nest that is printed, shared by the files of this folder.
#ifndef BURNCC_CODEGEN_LOOPS_H
#define BURNCC_CODEGEN_LOOPS_H
#include "codegen/codegen.h"

// MAX_NESTING: operations in one C expression, for the reader and clang's bracket limit
enum { LANES = 16, MIN_LANES_EXTENT = 32, MAX_NESTING = 10 };

// axis -1: the root; reduce: whose chain this is, NULL: parallel
typedef struct LoopScope { int parent, depth, axis; Expr *reduce; } LoopScope;
// Points lo..hi-1 of an axis, at which conditions (by expression id) hold; holds NULL: none.
typedef struct Ends { int64_t lo, hi; bool *holds; } Ends;
// Neighbours with their channels as one vector (spans.c): the axis of the neighbours, so many of which make one of
// `width` points, and that of the channels; rows that are copied first, kept: of the channels alone. scope 0: none.
typedef struct Span {
    int scope, outer, inner, points, width;
    Ends ends;                                          // the other points, at the ends, go one by one
    VEC(Expr *) rows;
    int64_t elements;                                   // of all rows
    bool sums, floats;                                  // what is computed of bytes
    const char **kept;                                  // by expression id: the name of such a row, or NULL
} Span;
typedef struct LoopPrinter LoopPrinter;
struct LoopPrinter {
    Arena *arena;
    const Kernel *k;
    const Dialect *d;
    Text *out;
    VEC(Expr *) exprs;                                  // reachable, operands first
    int *uses, *scope_of;                               // by expression id
    bool *seen, *deeper, *is_temp;                      // by expression id; deeper: used in a scope below its own
    // by expression id: a condition that is true in the loop being printed (see ends.c)
    bool *holds;
    const char **name;                                  // by expression id: of its temporary once printed
    // by expression id: the next reduction over the very same axes, computed in the same loops
    Expr **peer;
    // by expression id: a peer of a reduction with a higher id, printed with it
    bool *follows;
    bool in_order;                                      // sums are those of strips, term after term, without strips
    bool shared[64];                                    // by axis: its loop is shared out among the team
    int parts;                                          // slots of the team's memory in use
    VEC(LoopScope) scopes;
    int axis_scope[64];
    const char *axis_name[64];
    int temps, bound, last_parallel;
    VEC(Expr *) fresh;                                  // temporaries of the lane loop that is being printed
    // and of the loops around it, where the lanes make no difference
    VEC(Expr *) hoisted;
    Span span;
    // a condition that holds where text is printed: loads guarded by it need no guard
    const Expr *certain;
    // loops.c: prints a scope with all that is inside
    void (*scope)(LoopPrinter *p, int scope, int depth);
};

// nest.c
void loops_init(LoopPrinter *p, Arena *a, Text *out, const Kernel *k, const Dialect *d, int bound);
bool loops_is_leaf(const Expr *e);                      // a name or a number
bool loops_plain_index(const Expr *e);                  // cheap address arithmetic that the C compiler moves by itself
// the scope that an expression's operands are needed in: a reduction needs its body at the end of its own chain
int loops_body_scope(const LoopPrinter *p, const Expr *e);
bool loops_is_ranged(const LoopPrinter *p, int axis);       // is it shared out in parts?
const char *loops_size(const LoopPrinter *p, Dim size);
const char *loops_extent(const LoopPrinter *p, int axis);
const char *loops_spell(LoopPrinter *p, Expr *e);           // an expression over the temporaries that have names
const char *loops_operand(LoopPrinter *p, Expr *e);         // its own name, if it has one
void loops_line(LoopPrinter *p, int depth);                 // the indentation
void loops_open(LoopPrinter *p, int axis, int depth);
void loops_close(LoopPrinter *p, int depth);
void loops_define(LoopPrinter *p, Expr *e, int depth);      // a temporary for e
void loops_demand(LoopPrinter *p, Expr *e, int depth);      // the temporaries that e needs here and now ...
void loops_close_fresh(LoopPrinter *p, int depth);          // ... until the block ends
// a block for the term at `at`, which uses these axes
void loops_open_term(LoopPrinter *p, const Expr *e, uint64_t used, const int64_t *at, int depth);
// false after the last, and `at` is the first again
bool loops_next_term(const LoopPrinter *p, const Expr *e, int64_t *at);
void loops_store(LoopPrinter *p, const Store *s, int depth);
void loops_stores(LoopPrinter *p, int depth);
// reduce.c
const char *loops_identity(const LoopPrinter *p, const Expr *e);    // what a reduction starts from
void loops_accumulate(LoopPrinter *p, const Expr *e, Expr *x, const char *acc, int depth);
bool loops_unrolls(const LoopPrinter *p, const Expr *e);    // does a reduction stand term by term, without loops?
void loops_reduce(LoopPrinter *p, Expr *e, int depth);      // a reduction and its peers
void loops_share(LoopPrinter *p);                           // which axes a team of threads shares out
// strips.c: the loop over the axis of `scope`, `width` points at a time from i0b on, of which `points` prints `count`
typedef void (*PrintPoints)(LoopPrinter *p, int scope, const char *count, int depth);
void loops_strips(LoopPrinter *p, int scope, int width, PrintPoints points, int depth);
// The loop over the axis of `scope` in another form, where that pays.
bool strips_pay(const LoopPrinter *p, int scope);
void strips_emit(LoopPrinter *p, int scope, int depth);
bool turned_emit(LoopPrinter *p, int scope, int depth);
Ends ends_find(const LoopPrinter *p, int scope);
void ends_print(LoopPrinter *p, int scope, const Ends *e, int depth);
bool ends_emit(LoopPrinter *p, int scope, int depth);
bool halves_emit(LoopPrinter *p, int scope, int depth);
// the rows before all loops, where spans pay
void spans_begin(LoopPrinter *p, int depth);
bool spans_emit(LoopPrinter *p, int scope, int depth);
#endif
