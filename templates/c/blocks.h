// SPDX-License-Identifier: MIT OR Apache-2.0
/* Where a part lies in the grid that a convolution goes in. Part of generated code that is compiled with
 * --threads.
 *
 * The idea: a grid of parts, `columns` side by side, is numbered block by block, a block being `tall` parts by `wide`,
 * which one worker does: column by column, so that weights stay near while the rows of a block pass by.
 */
#include "vec.h"

BURN_INLINE ptrdiff_t burn_part_down(ptrdiff_t part, ptrdiff_t columns, ptrdiff_t tall)
{
    return part / (tall * columns) * tall + part % tall;
}

BURN_INLINE ptrdiff_t burn_part_across(ptrdiff_t part, ptrdiff_t columns, ptrdiff_t tall, ptrdiff_t wide)
{
    return part / (tall * wide) % (columns / wide) * wide + part % (tall * wide) / tall;
}
