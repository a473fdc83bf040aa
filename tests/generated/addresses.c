// SPDX-License-Identifier: MIT OR Apache-2.0
// A kernel whose result and operand lie in one object, at strides of 4 and 1: gcc 12 writes the result's address as 4
// times the operand's less 3 times the object's, a store to memory "at zero", and where that is nothing it leaves the
// kernel out. Status 0: it did not.
#include "vec.h"

BURN_INLINE void spread(float *restrict y, const float *restrict x, const float *restrict z, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; i++)
        y[i * 4] = x[i] + z[i];
}

BURN_OUTLINE void kernel(unsigned char *work, ptrdiff_t n)
{
    spread((float *)(void *)(work + 384), (float *)(void *)work, (float *)(void *)(work + 128), n);
}

int main(int argc, char **argv)
{
    static union { double align; float f[400]; unsigned char bytes[1600]; } work;
    (void)argv;
    for (int i = 0; i < 400; i++)
        work.f[i] = (float)i;
    kernel(work.bytes, argc + 2);
    return work.f[100] == 34.0f && work.f[104] == 36.0f ? 0 : 1;
}
