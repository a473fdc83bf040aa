// SPDX-License-Identifier: MIT OR Apache-2.0
// Which block a workgroup computes on a GPU's matrix units (templates/glsl/gemm_mma.comp).
//
// In: a product's shape. Out: a row of the table. As for other products (gemm.c) a block takes a step for bk terms,
// which is a way to memory and back and then arithmetic; here the way is the longer part unless blocks are large, so
// that products of few blocks want deep ones, whose terms several subgroups share.
#include "matrix.h"
#include "blocks.h"
#include "schedule/cpu/tune.h"

#include <string.h>

// None wants more than 256 threads and 48 KiB of shared memory.
const MatrixBlock gpu_matrix_blocks[MATRIX_BLOCKS] = {
    { 128, 128, 64, 32, 64, 1, 1, 1.00 },
    { 64, 64, 64, 32, 32, 1, 1, 0.45 },
    { 32, 64, 64, 32, 32, 2, 1, 0.26 },
    { 32, 64, 128, 32, 32, 4, 1, 0.26 },
    { 32, 32, 64, 16, 16, 1, 2, 0.20 },
    { 32, 32, 128, 32, 32, 4, 1, 0.20 },
};

// As measured on an H100. macs: multiply-adds of a core in a microsecond, of the largest block; way: to memory and back
static const struct { double cores, macs, way; } machine = { 132, 727e3, 0.75 };

static double block_time(const MatrixBlock *b, const Contraction *s) {
    return gpu_steps_time((double)s->batch * (double)(ceil_div(s->m, b->bm) * ceil_div(s->n, b->bn)),
        ceil_div(s->k, b->bk), machine.cores, machine.way, (double)b->bm * b->bn * b->bk / machine.macs, b->share);
}

const MatrixBlock *gpu_matrix_row(const char *choice) {
    MatrixBlock one = { 0 };
    if (!tune_parse(&tune_units, choice, &one)) return NULL;
    for (const MatrixBlock *b = gpu_matrix_blocks; b < gpu_matrix_blocks + MATRIX_BLOCKS; b++)
        if (!memcmp(&one, b, offsetof(MatrixBlock, share))) return b;
    return NULL;
}

const MatrixBlock *gpu_matrix_block(const Kernel *gemm) {
    const Contraction *s = &gemm->gemm;
    const MatrixBlock *best = gpu_matrix_blocks, *recorded = gemm->tuned ? gpu_matrix_row(gemm->choice) : NULL;
    if (recorded) return recorded;
    for (const MatrixBlock *b = gpu_matrix_blocks + 1; b < gpu_matrix_blocks + MATRIX_BLOCKS; b++)
        if (block_time(b, s) < block_time(best, s)) best = b;
    return best;
}
