// SPDX-License-Identifier: MIT OR Apache-2.0
// Graphs of test_ops.c: made of text, run by the evaluator, and their lowerings interpreted element by element.
#ifndef BURNCC_OPS_RUN_H
#define BURNCC_OPS_RUN_H
#include "plan.h"

typedef struct Run { Arena *arena; Graph *g; Tensor **at; } Run;    // tensors by value id
// What node n's LowerFn says about one of its outputs.
typedef struct Lowered { Node *n; Value *v; Kernel k; Expr *idx[MAX_RANK], *e; } Lowered;

Graph *make_graph(Arena *a, const char *inputs, const char *body, const char *result);
// Input names choose the values: pos (0.5..1.5), below5 (-5..4), anything else -1..1 or small integers.
double random_number(const char *name, bool real);
Tensor *tensor_of(const Run *r, const Value *v);
void fill_inputs(Run *r);
void run_graph(Run *r, const Value *until);             // all nodes up to the one that makes `until` (NULL: all)
void lower_output(const Run *r, Node *n, int out, Lowered *to);
void check_lowered(const Run *r, const Lowered *l);     // element by element: against what the evaluator left in r->at
void check_lowerings(const Run *r);
#endif
