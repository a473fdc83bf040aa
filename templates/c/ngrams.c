// SPDX-License-Identifier: MIT OR Apache-2.0
/* Y[r][c] = how often the n-grams of column c occur in row r of X.
 *
 *   KERNEL             name of the function
 *   ROWS SIZE COLUMNS  X is [ROWS][SIZE], Y is [ROWS][COLUMNS]
 *   KINDS GRAMS        lengths that n-grams have, and n-grams in all
 *   SKIPS              elements that may be left out between those of an n-gram, always as many
 *   SIZES              further parameters that the sizes are made of
 *
 * lengths[k]: the length, where its n-grams begin in the pool, how many n-grams come before. Those of a length are in
 * ascending order.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>
// holes
#define KERNEL ngrams
#define ROWS 1
#define SIZE 16
#define COLUMNS 7
#define KINDS 2
#define GRAMS 7
#define SKIPS 0
#define SIZES
// end holes

static void KERNEL(const int64_t *X, const int64_t *pool, const int64_t *column, const int64_t *lengths, float *Y SIZES)
{
    memset(Y, 0, sizeof *Y * (size_t)(ROWS) * (size_t)(COLUMNS));
    for (ptrdiff_t r = 0; r < ROWS; r++)
        for (ptrdiff_t k = 0; k < KINDS; k++) {
            const ptrdiff_t n = (ptrdiff_t)lengths[3 * k], first = (ptrdiff_t)lengths[3 * k + 2];
            const ptrdiff_t count = (k + 1 < KINDS ? (ptrdiff_t)lengths[3 * k + 5] : GRAMS) - first;
            for (ptrdiff_t step = 1; step - 1 <= (n == 1 ? 0 : SKIPS) && (n - 1) * step < SIZE; step++)
                for (ptrdiff_t at = 0; at + (n - 1) * step < SIZE; at++) {
                    const int64_t *const x = X + r * SIZE + at;
                    ptrdiff_t low = 0, high = count;
                    while (low < high) { /* the first n-gram that is not below */
                        const ptrdiff_t mid = low + (high - low) / 2;
                        const int64_t *const gram = pool + lengths[3 * k + 1] + mid * n;
                        ptrdiff_t i = 0;
                        while (i < n && gram[i] == x[i * step]) i++;
                        if (i < n && gram[i] < x[i * step]) low = mid + 1;
                        else high = mid;
                    }
                    for (; low < count; low++) {
                        const int64_t *const gram = pool + lengths[3 * k + 1] + low * n;
                        ptrdiff_t i = 0;
                        while (i < n && gram[i] == x[i * step]) i++;
                        if (i < n) break;
                        Y[r * COLUMNS + (ptrdiff_t)column[first + low]] += 1.0f;
                    }
                }
        }
}
