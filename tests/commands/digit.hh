// SPDX-License-Identifier: MIT OR Apache-2.0
// What the programs in C++ that read a digit share: what its logits say, and the code of what a call throws.
#ifndef BURN_TESTS_DIGIT_HH
#define BURN_TESTS_DIGIT_HH
#include "burn.hpp"

#include <cstdio>

static int digit_of(burn::span<const float> logits)
{
    int best = 0;
    for (int k = 1; k < 10; k++)
        if (logits[static_cast<std::size_t>(k)] > logits[static_cast<std::size_t>(best)])
            best = k;
    return best;
}

template <class F> static int code_of(F f)
{
    try {
        f();
    } catch (const burn::error &e) {
        std::printf("%s\n", e.what());
        return e.code();
    }
    return 0;
}
#endif
