// SPDX-License-Identifier: MIT OR Apache-2.0
/* Puts blocks of lines in order in shared memory, each by a bitonic network, and stores the first of each.
 *
 * What is sorted are ranks: an element's key, as one or two words whose order as unsigned integers is the elements',
 * and below it its position in the line. No two are equal, so that equal keys keep their order, whatever the network.
 * One dispatch takes the elements of lines that fit into a block to the result. Of longer ones the first dispatch
 * (FROM_LINE) leaves the first KEEP ranks of each block, and further ones take these for lines, until a line is one
 * block (TO_RESULT); or merge.comp merges whole blocks.
 *
 *   LINES LENGTH      lines, and elements or ranks of each
 *   BLOCK             of a block, a power of two;  TOGETHER  blocks of a workgroup, a power of two
 *   KEEP              of a block that are stored
 *   KEPT              TO_RESULT 0: that a line has when each of its blocks has stored KEEP, or all it had
 *   THREADS           of a workgroup
 *   GROUPS            workgroups, MAX_GROUPS in a row of them
 *   WORDS             of a rank, 2 or 3
 *   FROM_LINE         1: KEY_AT(line, i) is the key of an element;  0: RANKS(i) are ranks, line after line
 *   TO_RESULT         1: FINISH(line, i, at) stores the i-th: the element that was at `at`;  0: they go to TO(i)
 *
 * Threads: THREADS. Shared memory: BLOCK * TOGETHER * WORDS words. */
#version 450
layout(set = 0, binding = 0, std430) buffer Memory { uint memory[]; };
// holes
#define LINES 4
#define LENGTH 1000
#define BLOCK 256
#define TOGETHER 1
#define KEEP 10
#define KEPT 40
#define THREADS 128
#define GROUPS 16
#define WORDS 2
#define FROM_LINE 1
#define TO_RESULT 0
#define KEY_AT(line, i) memory[(line) * LENGTH + (i)]
#define FROM(i) memory[4000 + (i)]
#define TO(i) memory[8000 + (i)]
#define FINISH(line, i, at) memory[12000 + (line) * KEEP + (i)] = (at)
// end holes

#if WORDS == 2
#define RANK uvec2
#else
#define RANK uvec3
#endif
const int BLOCKS = (LENGTH + BLOCK - 1) / BLOCK, ALL = BLOCK * TOGETHER;

layout(local_size_x = THREADS) in;

shared RANK pool[ALL];

bool before(const RANK x, const RANK y)
{
#if WORDS == 2
    return x.x < y.x || (x.x == y.x && x.y < y.y);
#else
    return x.x < y.x || (x.x == y.x && (x.y < y.y || (x.y == y.y && x.z < y.z)));
#endif
}

RANK rank_of(const int line, const int i)
{
#if FROM_LINE
    return RANK(KEY_AT(line, i), uint(i));
#else
    const int at = (line * LENGTH + i) * WORDS;
#if WORDS == 2
    return RANK(FROM(at), FROM(at + 1));
#else
    return RANK(FROM(at), FROM(at + 1), FROM(at + 2));
#endif
#endif
}

void keep(const int line, const int i, const RANK rank)
{
#if TO_RESULT
    FINISH(line, i, int(rank[WORDS - 1]));
#else
    if (i < KEPT)
        for (int w = 0; w < WORDS; w++) TO((line * KEPT + i) * WORDS + w) = rank[w];
#endif
}

void main()
{
    const int group = int(gl_WorkGroupID.x + gl_WorkGroupID.y * 65535u), local = int(gl_LocalInvocationIndex);
    if (group >= GROUPS)
        return;
    for (int i = local; i < ALL; i += THREADS) {
        const int block = group * TOGETHER + i / BLOCK, line = block / BLOCKS, at = block % BLOCKS * BLOCK + i % BLOCK;
        pool[i] = RANK(~0u); // behind all others
        if (line < LINES && at < LENGTH)
            pool[i] = rank_of(line, at);
    }
    barrier();
    /* Runs of `size` from two of half that: first what lies as far from the middle of both, then by halves. */
    for (int size = 2; size <= BLOCK; size *= 2)
        for (int far = size / 2; far > 0; far /= 2) {
            for (int i = local; i < ALL / 2; i += THREADS) {
                const int from = i / far * far * 2, low = from + i % far,
                          high = far == size / 2 ? from + size - 1 - i % far : low + far;
                const RANK x = pool[low], y = pool[high];
                if (before(y, x)) {
                    pool[low] = y;
                    pool[high] = x;
                }
            }
            barrier();
        }
    for (int i = local; i < ALL; i += THREADS) {
        const int block = group * TOGETHER + i / BLOCK, line = block / BLOCKS, at = block % BLOCKS * KEEP + i % BLOCK;
        if (line < LINES && i % BLOCK < KEEP)
            keep(line, at, pool[i]);
    }
}
