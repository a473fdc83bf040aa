// SPDX-License-Identifier: MIT OR Apache-2.0
// From a graph of floats to one of integers: QuantizeLinear and DequantizeLinear around what computes.
//
//   Graph -- prepare.c --> plan.c: units and points -- equalize.c --> simulate.c: a program to observe and to try
//       -- ranges.c, weights.c: scales --> write.c --> Graph, or weights.c alone for --weights-only
//
// The idea: a unit is what a processor computes on integers in one go, a product with its bias and what clips behind
// it, and a point is a value between units. Each point has one scale and zero point, each unit that has weights a scale
// for each channel. One program with all of these as inputs answers every question about them; the caller runs it.
#ifndef BURNCC_QUANTIZE_H
#define BURNCC_QUANTIZE_H
#include "options.h"

typedef enum QuantMethod { QUANT_MSE, QUANT_MINMAX, QUANT_PERCENTILE, QUANT_ENTROPY, QUANT_METHODS } QuantMethod;
extern const char *const quant_methods[QUANT_METHODS];  // their names

typedef struct QuantHow {
    QuantMethod method;
    DType activations;                                  // i8, u8, or i16 around 0
    DType weights;                                      // i8 or i4
    bool per_tensor;                                    // one scale for all channels of weights
} QuantHow;

enum { QUANT_BINS = 2048 };
typedef struct QuantPoint {
    Value *value;
    int root;                                           // whose scale it has, as its elements are that one's
    bool made;                                          // by a unit of integers: whoever uses it reads these
    bool active;                                        // it is of integers
    double lo, hi;                                      // seen, or chosen; 0 is between them
    int64_t *bins;                                      // how often, between lo and hi
    double *sums; int64_t seen;                         // of each channel of so many elements; NULL: not wanted
    double scale;
    int zero;
} QuantPoint;

typedef enum QuantKind { QUANT_NOT, QUANT_WEIGHTED, QUANT_MIXED, QUANT_MOVED } QuantKind;
typedef struct QuantUnit {
    QuantKind kind;
    const char *name;                                   // of its first node, in the model
    Node *first, *sum, *last;                           // sum: adds the bias, or NULL
    Value *weight;                                      // the model's, its name
    Tensor *w, *b;                                      // its numbers; b: a vector for the channels, NULL: none
    int axis; int64_t channels;                         // of w's results
    DType as;                                           // what w becomes
    double *scales;                                     // of w
    bool integer;
    const char *kept;                                   // why it stays float, NULL: it need not
} QuantUnit;

typedef struct Quantizer {
    Arena *arena;
    Graph *graph;
    QuantHow how;
    VEC(QuantUnit) units;                               // in the order of the graph
    VEC(QuantPoint) points;
    int *point_of, *unit_of;                            // by value id, by node mark; -1: none
} Quantizer;

// ---------------------------------------------------------------- prepare.c
// Batch normalization goes into the convolutions before it; constants are computed. False with diagnostics.
bool quant_prepare(Graph *g, const Options *o);

// ---------------------------------------------------------------- plan.c
Quantizer *quant_plan(Arena *a, Graph *g, const QuantHow *how);
// Which units are of integers, and which points, from which units are kept.
void quant_settle(Quantizer *q);
int64_t quant_least(const QuantHow *how), quant_most(const QuantHow *how);      // of a value's integers
int64_t unit_channel(const QuantUnit *u, int64_t i);    // of element i of w

// ---------------------------------------------------------------- equalize.c
int quant_equalize(Quantizer *q);                       // how many pairs of units were brought to like ranges

// ---------------------------------------------------------------- ranges.c: what is seen at a point
void quant_see(QuantPoint *p, const float *x, int64_t n);
void quant_count(QuantPoint *p, const float *x, int64_t n);     // once lo and hi are known
void quant_choose(Quantizer *q);                        // scales and zero points
bool quant_counts(const QuantHow *how);                 // does the method want quant_count?

// ---------------------------------------------------------------- weights.c
void quant_weights(Quantizer *q);                       // their scales
float quant_rounded(const QuantUnit *u, int64_t i);     // weight i as integers have it
int64_t quant_weight_bytes(const QuantUnit *u);         // of all of them
void quant_see_channels(Quantizer *q, QuantPoint *p, const float *x, int64_t n);    // of an item, for what follows
void quant_correct_biases(Quantizer *q);                // by what rounding the weights adds on average
typedef enum QuantOnly { ONLY_NOT, ONLY_INT8, ONLY_INT4, ONLY_F16 } QuantOnly;
typedef struct QuantStored { int tensors; int64_t before, after; double db; } QuantStored;     // bytes; signal to noise
// Weights alone, in blocks of so many where they are multiplied with vectors.
QuantStored quant_only(Graph *g, QuantOnly how, int64_t block, bool (*keeps)(void *own, const char *name), void *own);

// ---------------------------------------------------------------- simulate.c
// The program's inputs behind the model's: f32[2 * points], scale (0: floats) and zero point by turns, then w and b of
// each unit that has them. Its outputs behind the model's: the points' values.
Graph *quant_simulation(const Quantizer *q);
// fills in these inputs, as the units' weights and the points' scales are; floats: as the model was
void quant_program(const Quantizer *q, bool floats, float *scales, float *const *weights);
int quant_tensors(const Quantizer *q);                  // how many w and b there are

// ---------------------------------------------------------------- write.c
void quant_write(Quantizer *q);                         // into the graph
#endif
