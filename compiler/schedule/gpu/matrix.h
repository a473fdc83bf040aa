// SPDX-License-Identifier: MIT OR Apache-2.0
// The block of a product on a GPU's matrix units.
#ifndef BURNCC_SCHEDULE_MATRIX_H
#define BURNCC_SCHEDULE_MATRIX_H
#include "plan.h"

// As templates/glsl/gemm_mma.comp has them. share: of a core's multiply-adds that it gets where blocks abound
typedef struct MatrixBlock { int bm, bn, bk, wm, wn, slices, buffers; double share; } MatrixBlock;

enum { MATRIX_BLOCKS = 6 };
extern const MatrixBlock gpu_matrix_blocks[MATRIX_BLOCKS];
const MatrixBlock *gpu_matrix_row(const char *choice);          // the row that a record names; NULL: it names none
const MatrixBlock *gpu_matrix_block(const Kernel *gemm);
#endif
