// SPDX-License-Identifier: MIT OR Apache-2.0
/* The matrix G of Winograd's F(size - taps + 1, taps), by which weights are transformed: g[j][k] = p^k / (the product
 * of p - q over the other points q), p the j-th point (winograd.h); the last row, infinity's, takes the last tap. Part
 * of generated code that packs weights in each run, and of the compiler, which packs constants.
 */
#include <stddef.h>

static void burn_winograd_g(size_t size, size_t taps, double g[8][8])
{
    static const double point[7] = {0, 1, -1, 2, -2, 0.5, -0.5};
    for (size_t j = 0; j + 1 < size; j++) {
        double power = 1;
        for (size_t l = 0; l + 1 < size; l++)
            power /= l == j ? 1 : point[j] - point[l];
        for (size_t k = 0; k < taps; k++, power *= point[j])
            g[j][k] = power;
    }
    for (size_t k = 0; k < taps; k++)
        g[size - 1][k] = k + 1 == taps;
}
