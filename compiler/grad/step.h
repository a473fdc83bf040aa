// SPDX-License-Identifier: MIT OR Apache-2.0
// What the optimizer's step and that which computes its gradients have in common; see train.c and step.c.
#ifndef BURNCC_STEP_H
#define BURNCC_STEP_H
#include "train.h"
#include "uses.h"

enum { MAX_OPERANDS = 16 };                             // of an optimizer's row

// A parameter's value and gradient in the graph of a step.
typedef struct Update { const Parameter *of; Value *param, *gradient; } Update;

// train.c
Value *train_input(Graph *g, const char *name, Type type, Role role);
void train_output(Graph *g, Value *v, const char *name, Role role);
bool train_is_trained(const Training *t, const Value *input);

// optimizer.c
// The hyper-parameters as inputs that are passed by value, NULL where a number is given: of the row, and of that for
// what is no matrix.
// Of clipping, NULL where there is none.
// finite: of --loss-scale, 1 where all gradients are; NULL: nobody asks
typedef struct Hyper { int n[2]; Value *in[2][MAX_OPERANDS], *clip_value, *clip_norm, *finite; } Hyper;
bool optimizer_read(Training *t, Arena *a, const char *text);              // text NULL: the first row
void optimizer_hyper(const Training *t, Graph *g, Hyper *h);
// One node: the row's operation on this parameter; what it gives has the names of the structs' fields.
bool optimizer_update(const Training *t, Graph *g, const Update *u, const Hyper *h);
bool optimizer_has(const Training *t, Arena *a, const char *name);         // a hyper-parameter, but `step`
void optimizer_state(Training *t, Arena *a, const Parameter *p);           // adds the fields of its struct

// update.c: those of n parameters, with clipping and groups; false with diagnostics
bool train_updates(const Training *t, Graph *g, Hyper *h, int n, Update *u);
bool groups_read(Training *t, Arena *a, const Options *o);      // --group: fills t->groups
bool groups_find(const Training *t, Uses *all);                 // fills all->groups; false with diagnostics
const char *groups_doc(const Training *t, Arena *a);            // "" or a sentence on a line of its own
// The hyper-parameter `name` of p: v, or the number where v is NULL, unless p's group has its own. NULL: it is the
// number.
Value *group_value(const Training *t, Graph *g, const Parameter *p, const char *name, Value *v, double number);

// scale.c: --loss-scale; without it these give what they are given, and add nothing
bool scale_read(Training *t, Arena *a, const Options *o);
Value *scale_loss(const Training *t, Graph *g, Value *loss);            // what is differentiated
Value *scale_back(const Training *t, Graph *g, Value *gradient);
bool scale_begin(const Training *t, Graph *g, Hyper *h, int n, const Update *u);        // before clipping: h->finite
Value *scale_keep(Graph *g, const Hyper *h, Value *old, Value *new);    // old, where the step is skipped
bool scale_end(const Training *t, Graph *g, const Hyper *h);            // how the scale goes on
void scale_state(Training *t, Arena *a);                                // adds its fields of the optimizer's struct

// step.c: NULL with diagnostics
Graph *step_graph(Training *t, Graph *gradients);
#endif
