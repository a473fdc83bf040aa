// SPDX-License-Identifier: MIT OR Apache-2.0
// Shared by the files that compute with symbolic dimensions: their table, and sums of products in the making.
#ifndef BURNCC_DIM_H
#define BURNCC_DIM_H
#include "ir.h"

#define MAX_TERMS 256                           // of one expression; more is no shape that anybody meant
#define MAX_FACTORS 16

typedef struct Atom { int symbol; Dim num, den; } Atom;         // symbol -1: floor(num / den)
typedef struct Term { int64_t coef; int n; int atom[MAX_FACTORS]; } Term;   // atoms in ascending order
typedef struct Poly { int n; const Term *terms; } Poly;         // terms in the order of term_order, no zero coefficient
// a Poly in the making; large: it has too many terms or factors, or overflowed
typedef struct Sum { int n; bool large; Term terms[MAX_TERMS]; } Sum;

typedef struct Dims {
    VEC(Atom) atoms;
    VEC(Poly) polys;                            // Dim d < 0 is polys.at[-1 - d]
    VEC(int) copies;                            // of each symbol: the last k that was tried for a symbol name_k
    int *table; size_t mask;                    // polys by contents, open addressing; 0: empty, else number + 1
} Dims;

typedef struct Range { int64_t lo, hi; } Range;

// a Sum is some 20 kB, of which only the terms that it has are ever set
void sum_none(Sum *s);
void sum_only(Sum *s, Term t);
void sum_of(Graph *g, Dim d, Sum *s);
void sum_add(Sum *s, Term t);
Dim dim_intern(Graph *g, const Sum *s);                 // INT64_MAX with a diagnostic when the sum is too large
void term_factors(const Term *p, const Term *q, Term *out);     // appends the factors of both, which must fit
bool term_divide(Term *t, const Term *d);                       // t / d when d divides it, exactly
Range atom_range(const Graph *g, const Atom *a);

// dim_factor.c: factors of index expressions, c * m with c != 0 where m is 1 or a symbolic sum without a common
// factor that begins with a positive one; zero is 0 * 1. Functions are false when the result is too large.
typedef struct Factor { int64_t c; Dim m; } Factor;
bool factor_of(const Graph *g, Dim d, Factor *out);
bool factor_add(const Graph *g, Factor a, Factor b, Factor *out);
bool factor_mul(const Graph *g, Factor a, Factor b, Factor *out);
// a = d*q + r, with as much in q as division term by term gives; integers are divided toward zero. d > 0.
bool factor_divide(const Graph *g, Factor a, Factor d, Factor *q, Factor *r);
int64_t gcd(int64_t a, int64_t b);                       // >= 0; 1 when it is no int64_t
Factor factor_common(const Graph *g, Factor a, Factor b);       // some common factor, > 0
Factor factor_split(const Graph *g, Factor a, int64_t *constant);           // takes the constant term out
bool factor_dim(const Graph *g, Factor a, Dim *out);
typedef struct BoundTerm { Factor f; Dim by; } BoundTerm;
bool bound_is_nonnegative(const Graph *g, int n, const BoundTerm *terms);   // sum of f*by, provably, by >= 0
bool bound_sum(const Graph *g, int n, const BoundTerm *terms, Dim *out);    // the sum as a dimension; false: too large
#endif
