// SPDX-License-Identifier: MIT OR Apache-2.0
// A step towards one: what examples/gpu/stays.c takes again and again.
#include <burncc/model.h>

MODEL(step)
{
    Tensor s = input("s", F32, 4);
    output("next", add(mul(s, full(F32, 0.9, 1)), full(F32, 0.1, 1)));
}
