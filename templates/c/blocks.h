// SPDX-License-Identifier: MIT OR Apache-2.0
/* Where a part lies in the grid that a product or a convolution goes in. Part of generated code that is compiled with
 * --threads.
 *
 * The idea: a grid of parts, `columns` side by side, is numbered in blocks of `tall` rows, in each column by column:
 * the parts that a worker does one after the other read the same weights, which stay near while the rows of a block
 * pass by. With blocks of one row: row by row.
 */
#include "vec.h"

BURN_INLINE ptrdiff_t burn_part_down(ptrdiff_t part, ptrdiff_t columns, ptrdiff_t tall)
{
    return part / (tall * columns) * tall + part % tall;
}

BURN_INLINE ptrdiff_t burn_part_across(ptrdiff_t part, ptrdiff_t columns, ptrdiff_t tall)
{
    return part % (tall * columns) / tall;
}
