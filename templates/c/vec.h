// SPDX-License-Identifier: MIT OR Apache-2.0
/* Prelude of the template kernels: copied once, whole, into a generated file that uses any of them. It has no holes.
 *
 * In: the macros that name the machine (__AVX512F__, __AVX2__, __ARM_NEON, ...). Out: burn_vf, a vector of
 * BURN_VF_LANES floats in GCC/Clang vector extensions, and burn_tile, the register tile that every contraction is made
 * of. Where the compiler has no vector extensions, or BURN_PORTABLE is defined, burn_vf is an array and all is plain
 * C99 loops of a form that compilers turn into vectors by themselves; so kernels pass burn_vf by address only.
 *
 * BURN_KERNEL goes before a kernel's `static`. For gcc it allows a*b+c to become one fused multiply-add also under
 * -std=c99, where gcc's default is off; functions without it still inline into functions with it. Clang wants a pragma
 * inside the body for that, BURN_CONTRACT, and needs to be told that 512-bit vectors are wanted, or it halves them on
 * many processors. A portable build has none of this but for gcc's BURN_ZERO_IS_MEMORY: gcc writes one address as a
 * multiple of another of the same object (`0 + 4 * p - 3 * object`, in its pass for induction variables), and where
 * null is no address, what it knows of a function for its callers forgets such an access, up to leaving the call out
 * (seen in gcc 12 at -O1 and -O2; tests/generated).
 */
#ifndef BURN_VEC_H
#define BURN_VEC_H
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#if !defined(BURN_PORTABLE) && !defined(__GNUC__)
#define BURN_PORTABLE 1
#endif

#define BURN_ZERO_IS_MEMORY "no-delete-null-pointer-checks"

/* After BURN_OPAQUE(p) the compiler knows nothing of the pointer p but its value: what is at constant distances is
 * addressed by offsets, where gcc else keeps a register for the sum of each and spills most of them. */
#if defined(BURN_PORTABLE)
#define BURN_OPAQUE(p) ((void)0)
#else
#define BURN_OPAQUE(p) __asm__("" : "+r"(p))
#endif

#if defined(BURN_PORTABLE)
#if defined(__GNUC__) && !defined(__clang__)
#define BURN_KERNEL __attribute__((optimize(BURN_ZERO_IS_MEMORY)))
#else
#define BURN_KERNEL
#endif
#define BURN_CONTRACT
#define BURN_UNROLL
#define BURN_LOOP
#define BURN_PREFETCH(p) ((void)(p))
#define BURN_PREFETCH_NEAR(p) ((void)(p))
#if defined(__GNUC__)
#define BURN_INLINE __attribute__((always_inline, unused)) BURN_KERNEL static inline
#else
#define BURN_INLINE static inline
#endif
#elif defined(__clang__)
#if defined(BURN_VF_LANES) ? BURN_VF_LANES == 16 : defined(__AVX512F__)
#define BURN_KERNEL __attribute__((min_vector_width(512)))
#else
#define BURN_KERNEL
#endif
#define BURN_CONTRACT _Pragma("STDC FP_CONTRACT ON")
#define BURN_UNROLL _Pragma("clang loop unroll(full)")
#define BURN_LOOP _Pragma("clang loop unroll(disable)") /* kept a loop until it is vectorised */
#define BURN_INLINE __attribute__((always_inline, unused)) BURN_KERNEL static inline
#define BURN_PREFETCH(p) __builtin_prefetch((p), 0, 2)
#define BURN_PREFETCH_NEAR(p) __builtin_prefetch((p), 0, 3)
#else
/* gcc, too, would halve what it vectorises itself */
#if defined(__AVX512F__) && !defined(BURN_VF_LANES) && __GNUC__ >= 8
#define BURN_KERNEL __attribute__((optimize("fp-contract=fast", BURN_ZERO_IS_MEMORY), \
                                   target("prefer-vector-width=512")))
#else
#if defined(__aarch64__) /* the pass moves loads up until a tile's sums find no registers */
#define BURN_KERNEL __attribute__((optimize("fp-contract=fast", "no-schedule-insns", BURN_ZERO_IS_MEMORY)))
#else
#define BURN_KERNEL __attribute__((optimize("fp-contract=fast", BURN_ZERO_IS_MEMORY)))
#endif
#endif
#define BURN_CONTRACT
#define BURN_UNROLL _Pragma("GCC unroll 16")
#define BURN_LOOP
#define BURN_INLINE __attribute__((always_inline, unused)) BURN_KERNEL static inline
#define BURN_PREFETCH(p) __builtin_prefetch((p), 0, 2)
#define BURN_PREFETCH_NEAR(p) __builtin_prefetch((p), 0, 3)
#endif

/* Lanes of a vector, and whether 32 vector registers are there (else 16): kernels take half the rows in a tile if not.
 * A portable build counts in 16 columns where there are vectors to be found by the compiler, 4 where there are none.
 * BURN_VF_LANES, and with it BURN_MANY_REGISTERS, may be given: by a file for several targets, and by one for a
 * microcontroller, whose sums are then in the same order wherever it runs. */
#if defined(BURN_PORTABLE) && !defined(BURN_VF_LANES)
#if defined(__SSE2__) || defined(__ARM_NEON) || defined(__wasm_simd128__) || defined(__riscv_vector) \
    || defined(__ALTIVEC__) || \
    defined(_M_X64) || defined(_M_ARM64)
#define BURN_VF_LANES 16
#else
#define BURN_VF_LANES 4
#endif
#define BURN_MANY_REGISTERS 1
#elif defined(BURN_VF_LANES)
#elif defined(__AVX512F__)
#define BURN_VF_LANES 16
#define BURN_MANY_REGISTERS 1
#elif defined(__AVX__)
#define BURN_VF_LANES 8
#define BURN_MANY_REGISTERS 0
#else
#define BURN_VF_LANES 4
#if defined(__aarch64__) || defined(__powerpc64__)
#define BURN_MANY_REGISTERS 1
#else
#define BURN_MANY_REGISTERS 0
#endif
#endif

/* sum + x * y, in portable code. Where BURN_FUSES is defined, by a file for a processor with such an instruction, it is
 * rounded once, on every machine: the bits are then the same on all. */
#if defined(BURN_FUSES) && defined(__GNUC__)
#define BURN_MULADD(sum, x, y) __builtin_fmaf((x), (y), (sum))
#elif defined(BURN_FUSES)
#define BURN_MULADD(sum, x, y) fmaf((x), (y), (sum))
#else
#define BURN_MULADD(sum, x, y) ((sum) + (x) * (y))
#endif

/* BURN_HELD(v): the vector v stays in its register from here on. gcc else reads what came from memory again for each
 * use where its tables of costs (those of Zen 2 and 3) say that this is no dearer: a tile of 4 rows by 3 vectors then
 * loads 16 times for 12 multiply-adds, and not 7 times. */
#if !defined(BURN_PORTABLE) && defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__SSE__)
#define BURN_HELD(v) __asm__("" : "+v"(v))
#else
#define BURN_HELD(v) ((void)0)
#endif

/* BURN_ROW begins what a loop does with a row of a tile. gcc 12 else unrolls short rows and makes vectors of what lies
 * in a column where a bias is the row's: 112 shuffles for 6 rows of 16 floats. */
#if !defined(BURN_PORTABLE) && defined(__GNUC__) && !defined(__clang__)
#define BURN_ROW __asm__ __volatile__("");
#else
#define BURN_ROW
#endif

#define BURN_AHEAD 8 /* steps of a tile: some 100 cycles, what a line takes to come from L2 */
#define BURN_TILE_ROWS 16 /* the most rows and vectors a tile may have */
#define BURN_TILE_VECTORS 4

#if defined(__GNUC__)
#define BURN_OUTLINE __attribute__((noinline, unused)) BURN_KERNEL static
#else
#define BURN_OUTLINE static
#endif

#if !defined(BURN_PORTABLE)
typedef float burn_vf __attribute__((vector_size(4 * BURN_VF_LANES)));
typedef float burn_vf_memory __attribute__((vector_size(4 * BURN_VF_LANES), aligned(4), may_alias));

BURN_INLINE burn_vf burn_vf_load(const float *p)
{
    return *(const burn_vf_memory *)p;
}

BURN_INLINE void burn_vf_store(float *p, burn_vf v)
{
    *(burn_vf_memory *)p = v;
}

BURN_INLINE void burn_vf_zero(burn_vf *sum)
{
    *sum = (burn_vf){0};
}

/* sum += scale * the vector at p */
BURN_INLINE void burn_vf_muladd(burn_vf *sum, float scale, const float *p)
{
    BURN_CONTRACT
    *sum += scale * burn_vf_load(p);
}

/* sum += the products of the vectors at p and q */
BURN_INLINE void burn_vf_muladd2(burn_vf *sum, const float *p, const float *q)
{
    BURN_CONTRACT
    *sum += burn_vf_load(p) * burn_vf_load(q);
}

BURN_INLINE void burn_vf_put(float *p, burn_vf *sum)
{
    burn_vf_store(p, *sum);
}

/* burn_tile below, with `apart` bytes of `ahead` from step to step: a line at each step is more than a core has under
 * way where memory is far. With `keep`, b's columns are copied there as they are read, so that the next tile finds them
 * in a line, and what lies beside them is brought near instead of `ahead`. */
BURN_INLINE void burn_tile_steps(int rows, int vectors, ptrdiff_t depth, const float *a, ptrdiff_t am, ptrdiff_t ak,
                                 const float *b, ptrdiff_t bk, float *c, ptrdiff_t cm, bool add, const float *ahead,
                                 ptrdiff_t apart, float *keep)
{
    BURN_CONTRACT
    const bool own = __builtin_constant_p(ahead == NULL) && ahead == NULL;
    burn_vf sum[BURN_TILE_ROWS][BURN_TILE_VECTORS];
    BURN_UNROLL
    for (int i = 0; i < rows; i++) {
        BURN_UNROLL
        for (int v = 0; v < vectors; v++)
            sum[i][v] = (burn_vf){0};
    }
    for (ptrdiff_t k = 0; k < depth; k++) {
        if (keep == NULL && !own)
            BURN_PREFETCH((const char *)ahead + k * apart);
        if (keep == NULL && own) {
            BURN_UNROLL
            for (int v = 0; v < vectors; v++)
                if (v * BURN_VF_LANES % 16 == 0) /* a line */
                    BURN_PREFETCH_NEAR(b + (k + BURN_AHEAD) * bk + v * BURN_VF_LANES);
        }
        burn_vf column[BURN_TILE_VECTORS];
        BURN_UNROLL
        for (int v = 0; v < vectors; v++) {
            column[v] = burn_vf_load(b + k * bk + v * BURN_VF_LANES);
            if (rows > 1)
                BURN_HELD(column[v]);
            if (keep != NULL) {
                BURN_PREFETCH(b + k * bk + (vectors + v) * BURN_VF_LANES);
                burn_vf_store(keep + (k * vectors + v) * BURN_VF_LANES, column[v]);
            }
        }
        BURN_UNROLL
        for (int i = 0; i < rows; i++) {
            const float s = a[i * am + k * ak];
            BURN_UNROLL
            for (int v = 0; v < vectors; v++)
                sum[i][v] += s * column[v];
        }
    }
    if (add) { /* once: asked for each vector, it takes gcc a quarter of its time for a tile */
        BURN_UNROLL
        for (int i = 0; i < rows; i++) {
            BURN_UNROLL
            for (int v = 0; v < vectors; v++)
                sum[i][v] = burn_vf_load(c + i * cm + v * BURN_VF_LANES) + sum[i][v];
        }
    }
    BURN_UNROLL
    for (int i = 0; i < rows; i++) {
        BURN_UNROLL
        for (int v = 0; v < vectors; v++)
            burn_vf_store(c + i * cm + v * BURN_VF_LANES, sum[i][v]);
    }
}

/* c[i*cm + j] = sum over k < depth of a[i*am + k*ak] * b[k*bk + j], plus the old c[i*cm + j] if `add`, for i < rows and
 * j < vectors * BURN_VF_LANES. The accumulators live in registers because rows and vectors are constants where this is
 * inlined: all loops over them must unroll. am and ak should be constants too, so that rows are addressed by offsets.
 * Meanwhile depth * 16 floats from `ahead` on are brought near; they should be what is read next (if nothing is, let it
 * be b). With a null constant it is b, some steps before it is read: what a level of cache further off holds. */
BURN_INLINE void burn_tile(int rows, int vectors, ptrdiff_t depth, const float *a, ptrdiff_t am, ptrdiff_t ak,
                           const float *b, ptrdiff_t bk, float *c, ptrdiff_t cm, bool add, const float *ahead)
{
    burn_tile_steps(rows, vectors, depth, a, am, ak, b, bk, c, cm, add, ahead, 64, NULL);
}

BURN_INLINE void burn_tile_keep(int rows, int vectors, ptrdiff_t depth, const float *a, ptrdiff_t am, ptrdiff_t ak,
                                const float *b, ptrdiff_t bk, float *c, ptrdiff_t cm, bool add, float *keep)
{
    burn_tile_steps(rows, vectors, depth, a, am, ak, b, bk, c, cm, add, b, 64, keep);
}

#else
typedef float burn_vf[BURN_VF_LANES];

BURN_INLINE void burn_vf_zero(burn_vf *sum)
{
    for (int j = 0; j < BURN_VF_LANES; j++)
        (*sum)[j] = 0.0f;
}

BURN_INLINE void burn_vf_muladd(burn_vf *sum, float scale, const float *p)
{
    for (int j = 0; j < BURN_VF_LANES; j++)
        (*sum)[j] = BURN_MULADD((*sum)[j], scale, p[j]);
}

BURN_INLINE void burn_vf_muladd2(burn_vf *sum, const float *p, const float *q)
{
    for (int j = 0; j < BURN_VF_LANES; j++)
        (*sum)[j] = BURN_MULADD((*sum)[j], p[j], q[j]);
}

BURN_INLINE void burn_vf_put(float *p, burn_vf *sum)
{
    for (int j = 0; j < BURN_VF_LANES; j++)
        p[j] = (*sum)[j];
}

/* The same in plain C. `rows` at a time (4, or 1 at the end), each an array of its own, which is the form that gcc and
 * clang both keep in registers and vectorise. Not inlined: gcc 12 at -O2 loses sums of some shapes when it specialises
 * these loops in place. */
BURN_INLINE void burn_tile_rows(int rows, ptrdiff_t depth, const float *a, ptrdiff_t am, ptrdiff_t ak, const float *b,
                                ptrdiff_t bk, float *c, ptrdiff_t cm, bool add)
{
    BURN_CONTRACT
    const ptrdiff_t step = rows == 4 ? am : 0, to = rows == 4 ? cm : 0;
    float s0[BURN_VF_LANES] = {0}, s1[BURN_VF_LANES] = {0}, s2[BURN_VF_LANES] = {0}, s3[BURN_VF_LANES] = {0};
    for (ptrdiff_t k = 0; k < depth; k++) {
        const float x0 = a[k * ak], x1 = a[step + k * ak], x2 = a[2 * step + k * ak], x3 = a[3 * step + k * ak];
        const float *column = b + k * bk;
        for (int j = 0; j < BURN_VF_LANES; j++) {
            s0[j] = BURN_MULADD(s0[j], x0, column[j]);
            if (rows == 4) {
                s1[j] = BURN_MULADD(s1[j], x1, column[j]);
                s2[j] = BURN_MULADD(s2[j], x2, column[j]);
                s3[j] = BURN_MULADD(s3[j], x3, column[j]);
            }
        }
    }
    for (int j = 0; j < BURN_VF_LANES; j++) {
        c[j] = add ? c[j] + s0[j] : s0[j];
        if (rows == 4) {
            c[to + j] = add ? c[to + j] + s1[j] : s1[j];
            c[2 * to + j] = add ? c[2 * to + j] + s2[j] : s2[j];
            c[3 * to + j] = add ? c[3 * to + j] + s3[j] : s3[j];
        }
    }
}

BURN_OUTLINE void burn_tile(int rows, int vectors, ptrdiff_t depth, const float *a, ptrdiff_t am, ptrdiff_t ak,
                            const float *b,
                           ptrdiff_t bk, float *c, ptrdiff_t cm, bool add, const float *ahead)
{
    const int fours = rows / 4 * 4;
    (void)ahead;
    for (int v = 0; v < vectors * BURN_VF_LANES; v += BURN_VF_LANES) {
        for (int i = 0; i < fours; i += 4)
            burn_tile_rows(4, depth, a + i * am, am, ak, b + v, bk, c + i * cm + v, cm, add);
        for (int i = fours; i < rows; i++)
            burn_tile_rows(1, depth, a + i * am, am, ak, b + v, bk, c + i * cm + v, cm, add);
    }
}

BURN_INLINE void burn_tile_steps(int rows, int vectors, ptrdiff_t depth, const float *a, ptrdiff_t am, ptrdiff_t ak,
                                 const float *b, ptrdiff_t bk, float *c, ptrdiff_t cm, bool add, const float *ahead,
                                 ptrdiff_t apart, float *keep)
{
    (void)apart, (void)keep;
    burn_tile(rows, vectors, depth, a, am, ak, b, bk, c, cm, add, ahead);
}

BURN_INLINE void burn_tile_keep(int rows, int vectors, ptrdiff_t depth, const float *a, ptrdiff_t am, ptrdiff_t ak,
                                const float *b, ptrdiff_t bk, float *c, ptrdiff_t cm, bool add, float *keep)
{
    const ptrdiff_t width = (ptrdiff_t)vectors * BURN_VF_LANES;
    for (ptrdiff_t k = 0; k < depth; k++)
        memcpy(keep + k * width, b + k * bk, (size_t)width * sizeof *keep);
    burn_tile(rows, vectors, depth, a, am, ak, keep, width, c, cm, add, keep);
}
#endif

/* The sum of all lanes, in pairs. */
BURN_INLINE float burn_vf_sum(burn_vf *sum)
{
    float s[BURN_VF_LANES];
    burn_vf_put(s, sum);
    for (int i = 0; i < BURN_VF_LANES / 2; i++)
        s[i] += s[i + BURN_VF_LANES / 2];
    for (int i = 0; i < BURN_VF_LANES / 4; i++)
        s[i] += s[i + BURN_VF_LANES / 4];
    for (int i = 0; i < BURN_VF_LANES / 8; i++)
        s[i] += s[i + BURN_VF_LANES / 8];
    for (int i = 0; i < BURN_VF_LANES / 16; i++)
        s[i] += s[i + BURN_VF_LANES / 16];
    return s[0];
}

/* burn_tile for a tile that may be at an edge: `rows`, or `rows_edge` where at_row_edge, by `vectors` of at most
 * max_vectors. Only `vectors` varies at run time; each possible tile is compiled, and none computes rows that are not
 * there. at_row_edge is an int: with a bool clang 14 keeps Winograd's tile (SSE) in memory. apart: as of
 * burn_tile_steps. */
BURN_INLINE void burn_tile_apart(int rows, int rows_edge, int max_vectors, int vectors, int at_row_edge,
                                 ptrdiff_t depth, const float *a, ptrdiff_t am, ptrdiff_t ak, const float *b,
                                 ptrdiff_t bk, float *c, ptrdiff_t cm, bool add, const float *ahead, ptrdiff_t apart)
{
    const ptrdiff_t d = depth;
    if (vectors >= max_vectors) { /* not ==, which would let a compiler put the variable in the constant's place */
        if (at_row_edge == 0)
            burn_tile_steps(rows, max_vectors, d, a, am, ak, b, bk, c, cm, add, ahead, apart, NULL);
        else if (rows_edge > 0)
            burn_tile_steps(rows_edge, max_vectors, d, a, am, ak, b, bk, c, cm, add, ahead, apart, NULL);
    } else if (at_row_edge == 0) {
        if (vectors == 1)
            burn_tile_steps(rows, 1, d, a, am, ak, b, bk, c, cm, add, ahead, apart, NULL);
        else if (vectors == 2 && max_vectors > 2)
            burn_tile_steps(rows, 2, d, a, am, ak, b, bk, c, cm, add, ahead, apart, NULL);
        else if (max_vectors > 3)
            burn_tile_steps(rows, 3, d, a, am, ak, b, bk, c, cm, add, ahead, apart, NULL);
    } else if (rows_edge > 0) {
        if (vectors == 1)
            burn_tile_steps(rows_edge, 1, d, a, am, ak, b, bk, c, cm, add, ahead, apart, NULL);
        else if (vectors == 2 && max_vectors > 2)
            burn_tile_steps(rows_edge, 2, d, a, am, ak, b, bk, c, cm, add, ahead, apart, NULL);
        else if (max_vectors > 3)
            burn_tile_steps(rows_edge, 3, d, a, am, ak, b, bk, c, cm, add, ahead, apart, NULL);
    }
}

BURN_INLINE void burn_tile_at(int rows, int rows_edge, int max_vectors, int vectors, int at_row_edge, ptrdiff_t depth,
                              const float *a, ptrdiff_t am, ptrdiff_t ak, const float *b, ptrdiff_t bk, float *c,
                              ptrdiff_t cm, bool add, const float *ahead)
{
    burn_tile_apart(
        rows, rows_edge, max_vectors, vectors, at_row_edge, depth, a, am, ak, b, bk, c, cm, add, ahead, 64);
}

#if !defined(BURN_PORTABLE) && defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define BURN_TURNS_FOUR 1
#endif
#endif

#if defined(BURN_TURNS_FOUR)
/* to[i*pitch + j] = from[j*step + i] for i, j < 4, by pairs of pairs. */
BURN_INLINE void burn_turn_four(float *restrict to, ptrdiff_t pitch, const float *restrict from, ptrdiff_t step)
{
    typedef float four __attribute__((vector_size(16)));
    typedef float four_memory __attribute__((vector_size(16), aligned(4), may_alias));
    const four a = *(const four_memory *)from, b = *(const four_memory *)(from + step),
        c = *(const four_memory *)(from + 2 * step), d = *(const four_memory *)(from + 3 * step);
    const four ab = __builtin_shufflevector(a, b, 0, 4, 1, 5), cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    const four ba = __builtin_shufflevector(a, b, 2, 6, 3, 7), dc = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    *(four_memory *)to = __builtin_shufflevector(ab, cd, 0, 1, 4, 5);
    *(four_memory *)(to + pitch) = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
    *(four_memory *)(to + 2 * pitch) = __builtin_shufflevector(ba, dc, 0, 1, 4, 5);
    *(four_memory *)(to + 3 * pitch) = __builtin_shufflevector(ba, dc, 2, 3, 6, 7);
}
#endif

/* to[k*panel + j] = from[k*row + j] for k < depth, j < panel; panel is a constant. */
BURN_INLINE void burn_pack_lines(float *to, ptrdiff_t panel, const float *from, ptrdiff_t row, ptrdiff_t depth)
{
    for (ptrdiff_t k = 0; k < depth; k++) {
        for (ptrdiff_t j = 0; j < panel; j += 16) /* no processor foresees so short pieces; 16 are on their way */
            BURN_PREFETCH(from + (k + 16) * row + j);
        memcpy(to + k * panel, from + k * row, (size_t)panel * sizeof *to);
    }
}

/* Packs columns: to[k*panel + j] = from[k*row + j*column] for k < depth, j < width, and 0 for width <= j < panel. One
 * function for all kernels: it works long on each call. */
BURN_OUTLINE void burn_pack_panel(float *to, ptrdiff_t panel, const float *from, ptrdiff_t row, ptrdiff_t column,
                                  ptrdiff_t depth, ptrdiff_t width)
{
    if (column == 1 && width == panel) {
        if (panel == 16)
            burn_pack_lines(to, 16, from, row, depth);
        else if (panel == 32)
            burn_pack_lines(to, 32, from, row, depth);
        else if (panel == 48)
            burn_pack_lines(to, 48, from, row, depth);
        else if (panel == 64)
            burn_pack_lines(to, 64, from, row, depth);
        else
            burn_pack_lines(to, panel, from, row, depth);
        return;
    }
    /* 16 floats are a cache line: each is read and written while it is near, and the next of its column comes near */
    for (ptrdiff_t k0 = 0; k0 < depth; k0 += 16) {
        const ptrdiff_t k1 = k0 + 16 < depth ? k0 + 16 : depth;
        ptrdiff_t turned = 0;
#if defined(BURN_TURNS_FOUR)
        if (row == 1 && k1 == k0 + 16) turned = width / 4 * 4;
        for (ptrdiff_t j0 = 0; j0 < turned; j0 += 4) {
            const float *const p = from + k0 + j0 * column;
            for (ptrdiff_t j = 0; j < 4; j++)
                BURN_PREFETCH(p + 16 + j * column);
            for (ptrdiff_t k = 0; k < 16; k += 4)
                burn_turn_four(to + (k0 + k) * panel + j0, panel, p + k, column);
        }
#endif
        for (ptrdiff_t j = turned; j < width; j++)
            for (ptrdiff_t k = k0; k < k1; k++)
                to[k * panel + j] = from[k * row + j * column];
        for (ptrdiff_t k = k0; k < k1; k++)
            for (ptrdiff_t j = width; j < panel; j++)
                to[k * panel + j] = 0.0f;
    }
}

/* Packs rows for burn_tile: `count` rows of `depth` floats. With am == 1 (a transposed matrix) as panels of `rows`
 * rows, element (i, k) at to[i/rows*rows*pitch + k*rows + i%rows]; else row by row at to[i*pitch + k]. */
BURN_INLINE void burn_pack_rows(float *to, ptrdiff_t pitch, ptrdiff_t rows, const float *from, ptrdiff_t am,
                                ptrdiff_t ak, ptrdiff_t count, ptrdiff_t depth)
{
    if (am == 1) {
        for (ptrdiff_t i0 = 0; i0 < count; i0 += rows) {
            const ptrdiff_t left = count - i0;
            for (ptrdiff_t k = 0; k < depth; k++)
                if (left >= rows) /* `rows` is a constant: a few vectors */
                    memcpy(to + i0 * pitch + k * rows, from + i0 + k * ak, (size_t)rows * sizeof *to);
                else
                    memcpy(to + i0 * pitch + k * rows, from + i0 + k * ak, (size_t)left * sizeof *to);
        }
    } else {
        for (ptrdiff_t i = 0; i < count; i++)
            for (ptrdiff_t k = 0; k < depth; k++)
                to[i * pitch + k] = from[i * am + k * ak];
    }
}
#endif
