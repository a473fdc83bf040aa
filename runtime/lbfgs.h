/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* L-BFGS with a line search to the strong Wolfe conditions, over parameters as one row of numbers: what a struct of
 * generated training code is, NAME_params. Nothing is allocated, all memory is the caller's. Not for models whose
 * running statistics are parameters (burncc --frozen-norm makes them constants): they have no gradient. */
#ifndef BURN_LBFGS_H
#define BURN_LBFGS_H
#include <stddef.h>
#include <stdint.h>

#ifndef BURN_LBFGS_REAL
#define BURN_LBFGS_REAL float
#endif
typedef BURN_LBFGS_REAL burn_real;

/* Computes the loss at x and its gradient: NAME_gradients, of one batch. Not 0: an error, which ends the step. */
typedef int burn_objective(void *context, const burn_real *x, burn_real *gradient, burn_real *loss);

/* What is remembered between steps. */
typedef struct burn_lbfgs {
    double rate;                /* 1: length of the first try of each line search */
    int iterations;             /* 20: at most so many in a step */
    int evaluations;            /* 25: no new iteration after so many */
    double least_gradient;      /* 1e-7: the largest element at which a step ends */
    double least_change;        /* 1e-9: of the loss or of an element */
    /* its own */
    int64_t n;
    int history, count, first;  /* of room for pairs: how many there are, from which on */
    int64_t done;               /* iterations so far */
    double length, scale;       /* of the last search; of the first guess of the inverse Hessian */
    burn_real *memory;
} burn_lbfgs;

/* How many numbers of memory n parameters and so many remembered pairs need (100 is usual; 0 is steepest descent). */
size_t burn_lbfgs_size(int64_t n, int history);
/* memory: of that size */
void burn_lbfgs_init(burn_lbfgs *s, int64_t n, int history, burn_real *memory);
/* A step of several iterations: x becomes better; loss: what it was before. 0, or what the objective returned, with x
 * where it was called. */
int burn_lbfgs_step(burn_lbfgs *s, burn_real *x, burn_objective *objective, void *context, burn_real *loss);
#endif
