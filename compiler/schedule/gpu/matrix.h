// SPDX-License-Identifier: MIT OR Apache-2.0
// The block of a product on a GPU's matrix units.
#ifndef BURNCC_SCHEDULE_MATRIX_H
#define BURNCC_SCHEDULE_MATRIX_H
#include "blocks.h"

// As templates/glsl/gemm_mma.comp has them. together: how many of them a core holds at once; alone, share: of the
// largest block's multiply-adds that a core does with one of them, and with so many
typedef struct MatrixBlock {
    int bm, bn, bk, wm, wn, slices, halves, together;
    double alone, share;
} MatrixBlock;
// A choice: into how many shares its terms are cut, too.
typedef struct MatrixShares { MatrixBlock block; int64_t shares; } MatrixShares;

enum { MATRIX_BLOCKS = 10, MOST_MATRIX_SHARES = 16 };
extern const MatrixBlock gpu_matrix_blocks[MATRIX_BLOCKS];
bool gpu_matrix_fits(const void *shape, const void *shares);            // do template and devices allow these?
double gpu_matrix_time(const ProductShape *s, const MatrixShares *c);   // microseconds
// the block and the shares that a record names, *c; false: it names none
bool gpu_matrix_recorded(const char *choice, MatrixShares *c);
#endif
