// SPDX-License-Identifier: MIT OR Apache-2.0
/* Y[i] = the state in which an automaton ends that reads the bytes of X[i] from state 0 on.
 *
 *   KERNEL    name of the function
 *   ELEMENT   type of a state in the table
 *   COUNT     number of strings
 *   CLASSES   classes of bytes that the automaton treats alike: class[byte]; the next state is next[state*CLASSES +
 *             class]
 *   SIZES     further parameters that the sizes are made of
 */
#include <stddef.h>
#include <stdint.h>
#include "../../runtime/burn.h"
// holes
#define KERNEL string_match
#define ELEMENT uint16_t
#define COUNT 16
#define CLASSES 4
#define SIZES
// end holes

static void KERNEL(const burn_string *X, const uint8_t *class_of, const ELEMENT *next, int64_t *Y SIZES)
{
    for (ptrdiff_t i = 0; i < COUNT; i++) {
        ptrdiff_t state = 0;
        for (const char *s = X[i]; *s; s++) state = (ptrdiff_t)next[state * CLASSES + class_of[(unsigned char)*s]];
        Y[i] = state;
    }
}
