// SPDX-License-Identifier: MIT OR Apache-2.0
/* Contraction by a BLAS: C[b][m][n] = EPILOGUE(sum over k of A[b][m][k] * B[b][k][n]), of floats or doubles, all
 * operands where they lie.
 *
 * A batch is a call for each b. One row or one column is a matrix-vector product. The epilogue passes over what a call
 * has written.
 *
 *   KERNEL            name of the function
 *   ELEMENT           float or double; GEMM and GEMV are cblas_sgemm and cblas_sgemv, or those of doubles
 *   BATCH M N K       sizes; K >= 1
 *   AB BB CB          batch strides in elements (AB, BB 0: the same for every b)
 *   ONE               0: a matrix times a matrix; 1: M is 1; 2: N is 1
 *   A_ORDER LDA       CblasNoTrans: element (m, k) of A is at m*LDA + k; CblasTrans: at m + k*LDA
 *   B_ORDER LDB       CblasNoTrans: element (k, n) of B is at k*LDB + n; CblasTrans: at k + n*LDB
 *   LINES LINE LD     with ONE the matrix (1: B; 2: A) as it lies: LINES of LINE elements each, LD apart; MATRIX_ORDER:
 *                     CblasNoTrans where the sums go along the lines, CblasTrans where they go across
 *   STEP              with ONE from one element of the vector to the next: of the row of A, the column of B
 *   CM                from one row of C to the next; its columns follow each other
 *   IDENTITY_EPILOGUE EPILOGUE_PARAMS EPILOGUE(acc, b, m, n)   as in gemm.c; nothing that it reads may share memory
 *                                                              with C
 *
 * scratch: none. A matrix-vector product is added to zeros: some BLAS let a NaN that lies in the result survive where
 * they are to overwrite it.
 */
#include <cblas.h>

#include "vec.h"
// holes
#define KERNEL blas
#define ELEMENT float
#define GEMM cblas_sgemm
#define GEMV cblas_sgemv
#define BATCH 1
#define M 128
#define N 1536
#define K 384
#define AB 0
#define BB 0
#define CB 0
#define ONE 0
#define A_ORDER CblasNoTrans
#define LDA 384
#define B_ORDER CblasNoTrans
#define LDB 1536
#define MATRIX_ORDER CblasNoTrans
#define LINES 384
#define LINE 1536
#define LD 1536
#define STEP 1
#define CM 1536
#define IDENTITY_EPILOGUE 1
#define EPILOGUE_PARAMS
#define EPILOGUE(acc, b, m, n) (acc)
// end holes

BURN_KERNEL static void KERNEL(const ELEMENT *restrict A, const ELEMENT *restrict B,
                               ELEMENT *restrict C EPILOGUE_PARAMS, unsigned char *scratch)
{
    (void)scratch;
    for (ptrdiff_t b = 0; b < BATCH; b++) {
        ELEMENT *const c = C + b * CB;
#if ONE == 1
        memset(c, 0, sizeof(ELEMENT) * (size_t)N);
        GEMV(CblasRowMajor, MATRIX_ORDER, (int)LINES, (int)LINE, 1.0f, B + b * BB, (int)LD, A + b * AB, (int)STEP, 1.0f,
             c, 1);
#if !IDENTITY_EPILOGUE
        BURN_LOOP
        for (ptrdiff_t n = 0; n < N; n++)
            c[n] = EPILOGUE(c[n], b, 0, n);
#endif
#elif ONE == 2
        for (ptrdiff_t m = 0; m < M; m++)
            c[m * CM] = 0.0f;
        GEMV(CblasRowMajor, MATRIX_ORDER, (int)LINES, (int)LINE, 1.0f, A + b * AB, (int)LD, B + b * BB, (int)STEP, 1.0f,
             c, (int)CM);
#if !IDENTITY_EPILOGUE
        BURN_LOOP
        for (ptrdiff_t m = 0; m < M; m++)
            c[m * CM] = EPILOGUE(c[m * CM], b, m, 0);
#endif
#else
        GEMM(CblasRowMajor, A_ORDER, B_ORDER, (int)M, (int)N, (int)K, 1.0f, A + b * AB, (int)LDA, B + b * BB, (int)LDB,
             0.0f, c, (int)CM);
#if !IDENTITY_EPILOGUE
        for (ptrdiff_t m = 0; m < M; m++) {
            BURN_LOOP
            for (ptrdiff_t n = 0; n < N; n++)
                c[m * CM + n] = EPILOGUE(c[m * CM + n], b, m, n);
        }
#endif
#endif
    }
}
