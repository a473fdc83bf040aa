// SPDX-License-Identifier: MIT OR Apache-2.0
// What the kernels of attention, forward (attention.c) and backward (attention_grad.c), are built with.
#ifndef BURNCC_SCHEDULE_ATTENTION_H
#define BURNCC_SCHEDULE_ATTENTION_H
#include "schedule.h"

// axes of the kernel: the result's five, then one of the score and the first product's sum
enum { B0, B1, B2, QUERY, DEPTH, KEY, INNER, AXES };
enum { PARALLEL = KEY };

// The heads' axis in groups of `group`, or the rows as those of `rows` heads.
typedef struct AttentionSplit { int64_t group, rows; } AttentionSplit;

typedef struct AttentionBuild {
    Arena *a;
    Graph *g;
    Kernel *k;
    Lower l;
    Fusion *epilogue, *score;
    // operands that no strides reach through their views are stored first
    bool stored;
    bool rows_last;                                     // heads that share their rows' keys are the axis B2
    Expr *axis[AXES], *line;                            // line: the row of the second product
    Dim size[AXES];
} AttentionBuild;

// Coordinates of the second product along its batch axes, the last of which may be b1 * B2 + b2, and of its rows, which
// may be those of several heads; false: too many of them.
bool attention_axes(AttentionBuild *b, const Type *t, AttentionSplit by, Expr **idx);
// An operand's batch coordinates: those of the product, 0 where the operand is broadcast.
bool attention_batch(const AttentionBuild *b, const Type *t, const Type *product, Expr *const *of, Expr **idx);
// Strides of an operand through its views or of the value itself. False: no strides say where its elements are.
bool attention_strides(const AttentionBuild *b, Value *v, Expr *const *idx, Operand *out);
// The fusion's root at (row, key) as an expression of its anchor's element there; NULL: it is none.
Expr *attention_element(AttentionBuild *b, Fusion *f);
// sizes, and the first `operands` of what it reads
void attention_sizes(AttentionBuild *b, int operands, const Operand *const *of, SoftmaxEmpty empty);
// strides of which of an attention's operands: its element's row and column run along these axes
void attention_shape(AttentionBuild *b, int which, const Operand *o, int row, int column);
double attention_count(const AttentionBuild *b, int axes);      // points of so many axes
// The split after `by`, into what surely divides; false: that was the last.
bool attention_next_split(Graph *g, const Type *t, AttentionSplit *by);
#endif
