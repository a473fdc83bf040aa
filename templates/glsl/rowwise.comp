// SPDX-License-Identifier: MIT OR Apache-2.0
/* Reductions along rows on a GPU, one after the other, and what is stored of them: softmax, norms, sums, arguments of
 * maxima. Every element of a row is read once: what more than one stage needs of it stays in registers.
 *
 * A workgroup owns MEMBERS rows, and a team of TEAM threads each of them. A thread takes elements TEAM apart, adds
 * them up, and the team's parts come together by shuffles within subgroups, of whatever size, and through shared
 * memory between them. Without SUBGROUPS, or where a device's subgroups are not full, all goes through shared memory.
 * Sums are put together in the same order every time.
 *
 *   ROWS COLUMNS      sizes
 *   TEAM MEMBERS      powers of two; their product is the number of threads
 *   BY_POINT          1: neighbouring threads have neighbouring rows, 0: neighbouring elements
 *   KEPT_EACH         of the elements of a thread, so many stay in registers; the others are read again
 *   STAGES            reductions of a stage need those of the stages before
 *   ELEMENTS          1: something is stored for each element, 0: for each row
 *   SUBGROUPS         1: the device has shuffles
 *   SHARES SHARE      so many workgroups share a row's columns, as many each, of sums of one stage; the last to be done
 *                     adds them up, always in the same order
 *   KEPT              what of an element stays in registers: a type, and
 *   KEPT_AT(row, column)     its value
 *   BEGIN(s)          stage s has seen nothing yet
 *   ADD(s, kept, row, column)    it sees an element
 *   PUT(s, at)        its results go to place `at` of shared memory of its own, which has one for each thread
 *   JOIN(s, at)       the results there are added to its own
 *   SHUFFLE(s, mask)  those of the invocation that differs by `mask` are
 *   LEAVE(row, share) its results go to memory, where SHARES > 1;  TAKE(row, share)  those there are added to its own
 *   COUNT(i)          counter i, one for each MEMBERS rows, 0 before and after
 *   FINISH(kept, row, column)    stores an element, or what there is to a row
 *
 * Groups: ceil(ROWS / MEMBERS) in all, of which there are at most 65535 along x; SHARES along z. */
#version 450
layout(set = 0, binding = 0, std430) buffer Memory { float memory[]; };
// holes
#define ROWS 512
#define COLUMNS 768
#define TEAM 128
#define MEMBERS 1
#define BY_POINT 0
#define KEPT_EACH 6
#define STAGES 1
#define ELEMENTS 1
#define SUBGROUPS 0
#define SHARES 1
#define SHARE 768
#define LEAVE(row, share)
#define TAKE(row, share)
#define COUNT(i) 0u
#define KEPT float
#define KEPT_AT(row, column) memory[(row) * COLUMNS + (column)]
#define BEGIN(s) sum = 0.0
#define ADD(s, kept, row, column) sum += kept
#define PUT(s, at) parts[at] = sum
#define JOIN(s, at) sum += parts[at]
#define SHUFFLE(s, mask)
#define FINISH(kept, row, column) memory[ROWS * COLUMNS + (row) * COLUMNS + (column)] = (kept) / sum
shared float parts[TEAM * MEMBERS];
float sum;
// end holes

const int THREADS = TEAM * MEMBERS, EACH = (COLUMNS + TEAM - 1) / TEAM;
const int STEP = BY_POINT == 1 ? MEMBERS : 1;           /* from a thread of a team to the next */
const int GROUP = TEAM < 16 ? TEAM : 16;                /* threads whose parts come together first in shared memory */

const int TOGETHER = 16, NEAR = 8;                      /* elements and parts on their way to a thread at a time */

layout(local_size_x = THREADS) in;
#if SHARES > 1
shared bool last;
#endif

/* The parts of `count` threads, so many apart. */
void gather(const int stage, const int first, const int count, const int apart)
{
    BEGIN(stage);
    for (int i = 0; i < count; i++) {
        JOIN(stage, first + i * apart);
    }
}

/* The team's parts of a stage come together: all its threads have the same result. */
void meet(const int stage, const int local, const int rank, const int first, const int lanes)
{
#if SUBGROUPS
    if (lanes > 1) {
        for (int mask = STEP; mask < lanes && mask < STEP * TEAM; mask *= 2) {
            SHUFFLE(stage, mask);
        }
        const int near = lanes <= STEP ? 1 : lanes / STEP;
        if (near < TEAM) {
            PUT(stage, local);
            barrier();
            gather(stage, first, TEAM / near, near * STEP);
        }
        return;
    }
#endif
#if TEAM > 1
    PUT(stage, local);
    barrier();
    gather(stage, first + rank / GROUP * GROUP * STEP, GROUP, STEP);
#if TEAM > 16
    barrier();
    PUT(stage, local);
    barrier();
    gather(stage, first, TEAM / GROUP, GROUP * STEP);
#endif
#endif
}

void main()
{
#if SUBGROUPS
    const bool full = gl_NumSubgroups * gl_SubgroupSize == uint(THREADS);
    const int lanes = full ? int(gl_SubgroupSize) : 1;
    const int local = int(full ? gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID : gl_LocalInvocationIndex);
#else
    const int lanes = 1, local = int(gl_LocalInvocationIndex);
#endif
    const int rank = BY_POINT == 1 ? local / MEMBERS : local % TEAM;
    const int member = BY_POINT == 1 ? local % MEMBERS : local / TEAM;
    const int first = BY_POINT == 1 ? member : member * TEAM;
    const int wanted = int(gl_WorkGroupID.x + gl_WorkGroupID.y * 65535u) * MEMBERS + member;
    /* nobody leaves before the team has met: those beyond the last row read it and store nothing */
    const bool live = wanted < ROWS;
    const int row = live ? wanted : ROWS - 1;
#if SHARES > 1
    const int share = int(gl_WorkGroupID.z), from = share * SHARE, stop = min(from + SHARE, COLUMNS);
#else
    const int from = 0, stop = COLUMNS;
#endif
    KEPT kept[KEPT_EACH];
    [[unroll]] for (int i = 0; i < KEPT_EACH; i++) {
        const int column = from + i * TEAM + rank;
        if ((SHARES == 1 && COLUMNS % TEAM == 0) || column < stop)
            kept[i] = KEPT_AT(row, column);
    }
    [[unroll]] for (int stage = 0; stage < STAGES; stage++) {
        BEGIN(stage);
        [[unroll]] for (int i = 0; i < KEPT_EACH; i++) {
            const int column = from + i * TEAM + rank;
            if ((SHARES == 1 && COLUMNS % TEAM == 0) || column < stop) {
                ADD(stage, kept[i], row, column);
            }
        }
#if SHARES > 1
        int column = from + KEPT_EACH * TEAM + rank;
        for (; column + (TOGETHER - 1) * TEAM < stop; column += TOGETHER * TEAM)
            [[unroll]] for (int i = 0; i < TOGETHER; i++) {
                ADD(stage, kept[0], row, column + i * TEAM);
            }
        for (; column < stop; column += TEAM) {
            ADD(stage, kept[0], row, column);
        }
#else
        for (int column = KEPT_EACH * TEAM + rank; column < COLUMNS; column += TEAM) {
            const KEPT other = KEPT_AT(row, column);
            ADD(stage, other, row, column);
        }
#endif
        meet(stage, local, rank, first, lanes);
    }
#if SHARES > 1
    if (live && rank == 0) {
        LEAVE(row, share);
    }
    memoryBarrierBuffer();
    barrier();
    if (local == 0)
        last = atomicAdd(COUNT(wanted / MEMBERS), 1u) == SHARES - 1;
    barrier();
    if (!last)
        return;
    memoryBarrierBuffer();
    if (local == 0)
        COUNT(wanted / MEMBERS) = 0u;
    BEGIN(0);
    int other = rank;
    for (; other + (NEAR - 1) * TEAM < SHARES; other += NEAR * TEAM)
        [[unroll]] for (int i = 0; i < NEAR; i++) {
            TAKE(row, other + i * TEAM);
        }
    for (; other < SHARES; other += TEAM) {
        TAKE(row, other);
    }
    meet(0, local, rank, first, lanes);
#endif
    if (!live)
        return;
#if ELEMENTS
    [[unroll]] for (int i = 0; i < KEPT_EACH; i++) {
        const int column = i * TEAM + rank;
        if (COLUMNS % TEAM == 0 || column < COLUMNS) {
            FINISH(kept[i], row, column);
        }
    }
    for (int column = KEPT_EACH * TEAM + rank; column < COLUMNS; column += TEAM) {
        const KEPT other = KEPT_AT(row, column);
        FINISH(other, row, column);
    }
#else
    if (rank == 0) {
        FINISH(kept[0], row, 0);
    }
#endif
}
