// SPDX-License-Identifier: MIT OR Apache-2.0
// How a GPU sorts lines: the dispatches that follow one another.
#ifndef BURNCC_GPU_SORT_H
#define BURNCC_GPU_SORT_H
#include "plan.h"

// From the lines, or from ranks in scratch memory, to ranks or the result (templates/glsl/sort.comp, merge.comp).
typedef struct SortPass {
    bool merges, from_line, to_result;
    int64_t length, kept;                               // elements or ranks of a line, and ranks that it has then
    int block, together;                                // elements of a block, and blocks of a workgroup
    int64_t run;                                        // merges: ranks that are in order before
    int64_t from, to;                                   // where ranks lie, in words of the scratch memory
} SortPass;

enum { SORT_PASSES = 64 };
typedef struct Sorting {
    int64_t lines, length, inner, count;
    int block, words;                                   // the largest block; words of a rank
    bool largest;
    int64_t scratch_words;
    int n; SortPass pass[SORT_PASSES];
} Sorting;

bool sorting_of(const Kernel *k, Sorting *s);           // false: no sort, or of sizes or elements that it is not for
#endif
