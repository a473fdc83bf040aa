// SPDX-License-Identifier: MIT OR Apache-2.0
/* Attention of few queries on a GPU, as when a text is decoded word by word: what attention.comp computes, of up to
 * eight queries that meet the same keys. How many keys there are, the run may say.
 *
 * The way to memory bounds it: what a block needs is all on its way at once. A workgroup has the queries, and of the
 * keys a block of as many as it has threads at a time: four threads multiply a key with all queries, neighbours reading
 * what lies together; then each thread has a score of each query, and the shares exp(score - top), top being the
 * largest so far, are multiplied with the values, of which a thread has one vector of some keys. Where
 * keys are many, up to SHARES workgroups have EACH_SHARE of them or more: each leaves its sums, and the last to be done
 * adds them up, always in the same order.
 *
 *   BATCH1 BATCH2     sizes of the inner axes of b
 *   TOGETHER HEADS M  the axis of b along which keys and values are the same ones, and its size, as far as the queries
 *                     of a workgroup go there (3, 1: none does); queries of each
 *   N DK DV           keys, which may be a size of the run; length of a query and of a value
 *   THREADS           a multiple of 64, and keys of a block
 *   COLUMNS           threads that have the vectors of a value: a power of two, DV / 4 or more
 *   SHARES EACH_SHARE
 *   QUERY4(b0, b1, b2, m, k) KEY4(b0, b1, b2, n, k) VALUE4(b0, b1, b2, n, d)    the four elements from there on, 0
 *                     where there are none, at multiples of 4
 *   PART(i) COUNT(i)  where SHARES > 1: vector i of what they leave, SHARES * HEADS * M * (1 + ceil(DV / 4)) for each
 *                     workgroup's queries; counter i, one for those, 0 before and after
 *   EMPTY MASKED FIRST LAST SCORE FINISH     as in attention.comp
 *
 * Groups: SHARES x (BATCH1 * BATCH2) x BATCH0, where TOGETHER is one of these its size is 1. */
#version 450
layout(set = 0, binding = 0, std430) buffer Memory { float memory[]; };
layout(set = 0, binding = 0, std430) buffer Memory4 { vec4 memory4[]; };
layout(set = 0, binding = 0, std430) coherent buffer Parts { vec4 parts[]; };
layout(set = 0, binding = 0, std430) coherent buffer Counts { uint counts[]; };
// holes
#define BATCH1 12
#define BATCH2 1
#define TOGETHER 3
#define HEADS 1
#define M 1
#define N 1000
#define DK 64
#define DV 64
#define THREADS 256
#define COLUMNS 16
#define SHARES 2
#define EACH_SHARE 256
#define QUERY4(b0, b1, b2, m, k) memory4[((b1) * 64 + (k)) / 4]
#define KEY4(b0, b1, b2, n, k) memory4[(768 + ((b1) * 1000 + (n)) * 64 + (k)) / 4]
#define VALUE4(b0, b1, b2, n, d) memory4[(768768 + ((b1) * 1000 + (n)) * 64 + (d)) / 4]
#define PART(i) parts[384192 + (i)]
#define COUNT(i) counts[1600000 + (i)]
#define EMPTY 0
#define MASKED 0
#define FIRST(b0, b1, b2, m) 0
#define LAST(b0, b1, b2, m) (N - 1)
#define SCORE(acc, b0, b1, b2, m, n) (acc) * 0.125
#define FINISH(acc, b0, b1, b2, m, d) memory[1700000 + (b1) * 64 + (d)] = acc
// end holes

const int ROWS = HEADS * M, K4 = (DK + 3) / 4, V4 = (DV + 3) / 4;       /* vectors of a query and of a value */
const int TEAM = 4, NEAR = THREADS / TEAM;              /* threads of a key; keys that are multiplied at a time */
const int APART = THREADS / COLUMNS;                    /* from a thread's value to its next one, COLUMNS in a block */
const int LATELY = ROWS > 4 ? 8 : 16;                   /* values of a thread that are on their way early: */
const int AHEAD = COLUMNS < LATELY ? COLUMNS : LATELY;
const int PIECES = (K4 + TEAM - 1) / TEAM, PIECE = PIECES < 4 ? PIECES : 4;     /* vectors of a key's thread, at once */
const int GROUP = 16, GROUPS = THREADS / GROUP;         /* threads whose numbers come together first */

layout(local_size_x = THREADS) in;

/* queries; of each query and key the team's parts of a score, and then sums; numbers of each query and thread */
shared vec4 queries[ROWS * K4], pool[ROWS * THREADS];
shared float numbers[ROWS * THREADS], of_groups[ROWS * GROUPS];
#if SHARES > 1
shared bool last;
#endif

#define LOWEST uintBitsToFloat(0xff800000u)              /* minus infinity */
float top[ROWS], total[ROWS];                           /* total: of this thread's shares */
vec4 sums[ROWS];

/* The place in the batch, and the query, of a row. */
ivec4 place_of(const int row)
{
    const int wide = TOGETHER == 2 ? 1 : BATCH2, y = int(gl_WorkGroupID.y);
    ivec4 at = ivec4(int(gl_WorkGroupID.z), y / wide, y % wide, row % M);
#if TOGETHER < 3
    at[TOGETHER] = row / M;
#endif
    return at;
}

/* The largest, or the sum, of all threads' numbers of each query; threads wait for one another. */
#define MEET(start, join, result) \
    barrier(); \
    [[unroll]] for (int r = 0; r < ROWS; r++) { \
        float x = start; \
        [[unroll]] for (int i = 0; i < GROUP; i++) { \
            const float y = numbers[r * THREADS + local / GROUP * GROUP + i]; \
            x = join; \
        } \
        if (local % GROUP == 0) \
            of_groups[r * GROUPS + local / GROUP] = x; \
    } \
    barrier(); \
    [[unroll]] for (int r = 0; r < ROWS; r++) { \
        float x = start; \
        [[unroll]] for (int i = 0; i < GROUPS; i++) { \
            const float y = of_groups[r * GROUPS + i]; \
            x = join; \
        } \
        result[r] = x; \
    }

/* The thread's vectors of its keys of a block, from its vector `first` on. */
void bring_keys(const int local, const int n0, const int stop, const int first, out vec4 x[PIECE][TEAM])
{
    const ivec4 b = place_of(0);
    [[unroll]] for (int i = 0; i < PIECE; i++)
        [[unroll]] for (int j = 0; j < TEAM; j++) {
            const int n = n0 + j * NEAR + local / TEAM, k = (first + i) * TEAM + local % TEAM;
            x[i][j] = vec4(0.0);
            if (n < stop && k < K4)
                x[i][j] = KEY4(b.x, b.y, b.z, n, k * 4);
        }
}

void multiply(const int local, const int first, const vec4 x[PIECE][TEAM], inout float acc[TEAM][ROWS])
{
    [[unroll]] for (int i = 0; i < PIECE; i++) {
        const int k = min((first + i) * TEAM + local % TEAM, K4 - 1);
        [[unroll]] for (int r = 0; r < ROWS; r++) {
            const vec4 q = queries[r * K4 + k];
            [[unroll]] for (int j = 0; j < TEAM; j++) {
                acc[j][r] = fma(x[i][j].x, q.x, acc[j][r]);
                acc[j][r] = fma(x[i][j].y, q.y, acc[j][r]);
                acc[j][r] = fma(x[i][j].z, q.z, acc[j][r]);
                acc[j][r] = fma(x[i][j].w, q.w, acc[j][r]);
            }
        }
    }
}

/* The thread's vector of its i'th value of a block. */
vec4 value_of(const int local, const int n0, const int stop, const int i)
{
    const ivec4 b = place_of(0);
    const int n = n0 + i * APART + local / COLUMNS, column = local % COLUMNS;
    vec4 v = vec4(0.0);
    if (n < stop && (V4 % COLUMNS == 0 || column < V4))
        v = VALUE4(b.x, b.y, b.z, n, column * 4);
    return v;
}

void add_value(const int local, const int i, const vec4 v)
{
    [[unroll]] for (int r = 0; r < ROWS; r++)
        sums[r] = fma(vec4(numbers[r * THREADS + i * APART + local / COLUMNS]), v, sums[r]);
}

/* The keys from `from` on. */
void meet_keys(const int local, const int from, const int stop)
{
    for (int n0 = from; n0 < stop; n0 += THREADS) {
        vec4 early[AHEAD], keys[PIECE][TEAM];
        float most[ROWS], score[ROWS], acc[TEAM][ROWS];
        bring_keys(local, n0, stop, 0, keys);
        [[unroll]] for (int i = 0; i < AHEAD; i++) early[i] = value_of(local, n0, stop, i);
        if (n0 == from)
            barrier(); /* the queries are there */
        [[unroll]] for (int j = 0; j < TEAM; j++)
            [[unroll]] for (int r = 0; r < ROWS; r++) acc[j][r] = 0.0;
        multiply(local, 0, keys, acc);
        for (int piece = PIECE; piece < PIECES; piece += PIECE) {
            bring_keys(local, n0, stop, piece, keys);
            multiply(local, piece, keys, acc);
        }
        [[unroll]] for (int r = 0; r < ROWS; r++)
            [[unroll]] for (int j = 0; j < TEAM; j++)
                pool[r * THREADS + j * NEAR + local / TEAM][local % TEAM] = acc[j][r];
        barrier();
        [[unroll]] for (int r = 0; r < ROWS; r++) {
            const ivec4 b = place_of(r);
            const vec4 x = pool[r * THREADS + local];
            score[r] = LOWEST;
            if (n0 + local < stop)
                score[r] = SCORE((x.x + x.y) + (x.z + x.w), b.x, b.y, b.z, b.w, n0 + local);
            numbers[r * THREADS + local] = score[r];
        }
        MEET(LOWEST, y > x ? y : x, most)
        [[unroll]] for (int r = 0; r < ROWS; r++) {
            const float before = top[r];
            top[r] = most[r] > before ? most[r] : before;
            /* exp(-inf - 0) is 0; a NaN is never the top, but comes into the sum */
            const float shift = top[r] > LOWEST ? top[r] : 0.0, scale = before > LOWEST ? exp(before - shift) : 0.0;
            const float e = score[r] == LOWEST ? 0.0 : exp(score[r] - shift);
            total[r] = total[r] * scale + e;
            numbers[r * THREADS + local] = e;
            sums[r] *= scale;
        }
        barrier();
        const int values = min((stop - n0 + APART - 1) / APART, COLUMNS);
        [[unroll]] for (int i = 0; i < AHEAD; i++) add_value(local, i, early[i]);
        int i = AHEAD;
        for (; i + 4 <= values; i += 4) {
            vec4 v[4];
            [[unroll]] for (int j = 0; j < 4; j++) v[j] = value_of(local, n0, stop, i + j);
            [[unroll]] for (int j = 0; j < 4; j++) add_value(local, i + j, v[j]);
        }
        for (; i < values; i++) add_value(local, i, value_of(local, n0, stop, i));
    }
}

/* Vector `column` of a row's result. */
void finish_four(const int row, const int column, const vec4 sum, const float total)
{
    const ivec4 b = place_of(row);
    const bool lost = EMPTY == 2 && isnan(total), none = total == 0.0;
    const float divisor = none ? 1.0 : total, otherwise = EMPTY == 0 ? uintBitsToFloat(0x7fc00000u) : 0.0;
    [[unroll]] for (int s = 0; s < 4; s++) {
        const int d = column * 4 + s;
        if (DV % 4 == 0 || d < DV) {
            const float x = lost ? 0.0 : none ? otherwise : sum[s] / divisor;
            FINISH(x, b.x, b.y, b.z, b.w, d);
        }
    }
}

#if SHARES > 1
/* The shares of the workgroups, in their order. */
void add_shares(const int local, const int block, const int taking)
{
    for (int i = local; i < ROWS * V4; i += THREADS) {
        const int row = i / V4, first = block * SHARES * ROWS * (V4 + 1) + row * (V4 + 1), apart = ROWS * (V4 + 1);
        float highest = LOWEST, whole = 0.0;
        vec4 sum = vec4(0.0);
        for (int s = 0; s < taking; s++) {
            const float x = PART(first + s * apart + V4).x;
            highest = x > highest ? x : highest;
        }
        for (int s = 0; s < taking; s++) {
            const vec4 of = PART(first + s * apart + V4);
            const float scale = of.x > LOWEST ? exp(of.x - highest) : isnan(of.y) ? of.y : 0.0;
            whole += of.y * scale;
            sum += PART(first + s * apart + i % V4) * scale;
        }
        finish_four(row, i % V4, sum, whole);
    }
}
#endif

void main()
{
    const int local = int(gl_LocalInvocationIndex), share = int(gl_WorkGroupID.x);
    int from = 0, stop = N; /* the keys that some query here sees */
#if MASKED
    from = N;
    stop = 0;
    for (int r = 0; r < ROWS; r++) {
        const ivec4 b = place_of(r);
        from = min(from, max(int(FIRST(b.x, b.y, b.z, b.w)), 0));
        stop = max(stop, min(int(LAST(b.x, b.y, b.z, b.w)), N - 1) + 1);
    }
    from = min(from, stop);
#endif
#if SHARES > 1
    const int taking = clamp((stop - from + EACH_SHARE - 1) / EACH_SHARE, 1, SHARES);
    const int each = ((stop - from + taking - 1) / taking + 3) / 4 * 4;
    if (share >= taking)
        return;
    from += share * each;
    stop = min(stop, from + each);
#endif
    for (int i = local; i < ROWS * K4; i += THREADS) {
        const ivec4 b = place_of(i / K4);
        queries[i] = QUERY4(b.x, b.y, b.z, b.w, i % K4 * 4);
    }
    [[unroll]] for (int r = 0; r < ROWS; r++) {
        top[r] = LOWEST;
        total[r] = 0.0;
        sums[r] = vec4(0.0);
    }
    meet_keys(local, from, stop);
    /* what the threads have of the totals, and of each vector */
    float whole[ROWS];
    barrier();
    [[unroll]] for (int r = 0; r < ROWS; r++) numbers[r * THREADS + local] = total[r];
    MEET(0.0, x + y, whole)
    [[unroll]] for (int r = 0; r < ROWS; r++) pool[r * THREADS + local] = sums[r];
    [[unroll]] for (int left = APART; left > 1; left = (left + 3) / 4) {
        const int next = (left + 3) / 4 * COLUMNS;
        barrier();
        if (local < next)
            [[unroll]] for (int r = 0; r < ROWS; r++) {
                [[unroll]] for (int i = next; i < left * COLUMNS; i += next)
                    sums[r] += pool[r * THREADS + local + i];
                pool[r * THREADS + local] = sums[r];
            }
    }
#if SHARES > 1
    const int block = int(gl_WorkGroupID.z * gl_NumWorkGroups.y + gl_WorkGroupID.y);
    if (taking > 1) {
        const int first = (block * SHARES + share) * ROWS * (V4 + 1);
        [[unroll]] for (int r = 0; r < ROWS; r++) {
            if (local < V4)
                PART(first + r * (V4 + 1) + local) = sums[r];
            if (local == 0)
                PART(first + r * (V4 + 1) + V4) = vec4(top[r], whole[r], 0.0, 0.0);
        }
        memoryBarrierBuffer();
        barrier();
        if (local == 0)
            last = atomicAdd(COUNT(block), 1u) == uint(taking) - 1u;
        barrier();
        if (!last)
            return;
        memoryBarrierBuffer();
        if (local == 0)
            COUNT(block) = 0u;
        add_shares(local, block, taking);
        return;
    }
#endif
    if (local < V4)
        [[unroll]] for (int r = 0; r < ROWS; r++) finish_four(r, local, sums[r], whole[r]);
}
