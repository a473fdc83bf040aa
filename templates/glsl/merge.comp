// SPDX-License-Identifier: MIT OR Apache-2.0
/* Merges sorted runs of ranks (sort.comp) in pairs: each thread finds its rank's place by a search in the other run.
 *
 *   LINES LENGTH      lines, and ranks of each
 *   RUN               ranks of a run; a line's last one may be shorter
 *   COUNT             TO_RESULT: so many of a line are wanted
 *   THREADS           of a workgroup;  GROUPS  workgroups
 *   WORDS             of a rank, 2 or 3
 *   FROM(i) TO(i)     words of ranks, line after line
 *   TO_RESULT         1: FINISH(line, i, at) stores the i-th: the element that was at `at`;  0: they go to TO(i) */
#version 450
layout(set = 0, binding = 0, std430) buffer Memory { uint memory[]; };
// holes
#define LINES 4
#define LENGTH 1000
#define RUN 256
#define COUNT 1000
#define THREADS 128
#define GROUPS 32
#define WORDS 2
#define TO_RESULT 0
#define FROM(i) memory[4000 + (i)]
#define TO(i) memory[12000 + (i)]
#define FINISH(line, i, at) memory[20000 + (line) * COUNT + (i)] = (at)
// end holes

layout(local_size_x = THREADS) in;

uint word(const int line, const int i, const int w) { return FROM((line * LENGTH + i) * WORDS + w); }

void main()
{
    const int group = int(gl_WorkGroupID.x + gl_WorkGroupID.y * 65535u),
              point = group * THREADS + int(gl_LocalInvocationIndex);
    if (group >= GROUPS || point >= LINES * LENGTH)
        return;
    const int line = point / LENGTH, i = point % LENGTH, run = i / RUN, other = (run ^ 1) * RUN;
    uint rank[WORDS];
    int low = 0, high = clamp(LENGTH - other, 0, RUN);
    for (int w = 0; w < WORDS; w++) rank[w] = word(line, i, w);
    while (low < high) {
        const int middle = (low + high) / 2;
        bool less = false, equal = true;
        for (int w = 0; w < WORDS; w++) {
            const uint x = word(line, other + middle, w);
            less = less || (equal && x < rank[w]);
            equal = equal && x == rank[w];
        }
        if (less) low = middle + 1;
        else high = middle;
    }
    const int to = run / 2 * 2 * RUN + i % RUN + low;
#if TO_RESULT
    if (to < COUNT)
        FINISH(line, to, int(rank[WORDS - 1]));
#else
    for (int w = 0; w < WORDS; w++) TO((line * LENGTH + to) * WORDS + w) = rank[w];
#endif
}
