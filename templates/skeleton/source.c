// SPDX-License-Identifier: MIT OR Apache-2.0
/* The head of a generated C file: what its code asks of the C compiler and its library.
 *
 *   HEADER       the file's header, "lenet.h"
 *   HAS_FILES    it writes files, and wants to know when they are on the disk
 *   HAS_BLAS     it calls a BLAS
 *   HAS_BARE     it is for processors that may have no C library
 *   HAS_PLAIN    it is what checkers of firmware read: C99 without vectors
 *   HAS_VECTORS  it has loops that want the widest vectors that the compiler's flags name
 *   HAS_FUSED HAS_APART HAS_ONE HAS_LANES HAS_ALIGNED  which of the macros below it mentions
 *   SECTIONS     macros for where constants and code lie (--region)
 */
// holes
#define HEADER <stddef.h>
#define HAS_FILES 1
#define HAS_BLAS 0
#define HAS_BARE 1
#define HAS_PLAIN 1
#define HAS_VECTORS 1
#define HAS_FUSED 1
#define HAS_APART 1
#define HAS_ONE 1
#define HAS_LANES 1
#define HAS_ALIGNED 1
#define SECTIONS
// end holes
#if HAS_PLAIN
/* Required rules of MISRA C:2012 that cppcheck's addon finds broken in such files, not all of them in each, and why;
 * no mandatory one is, and docs/firmware.md lists the advisory ones:
 *   2.2    nothing dead is kept; operations on sizes of one are taken for dead
 *   4.1    an octal escape has three digits, and ends there
 *   8.14   restrict says what callers promise; without it each store makes the next load wait
 *   9.2    a list of one string is taken for characters
 *   10.1   shifts are by int, of negative sums too: compilers for these processors fill with the sign
 *   10.3, 10.4, 10.6, 10.7, 10.8  distances are ptrdiff_t, sizes size_t, constants int; bytes are widened first
 *   20.7   parameters of macros that are names have no parentheses
 *   21.1, 21.2  INFINITY, NAN and isnan where there is no math.h; square roots are declared as free of errno
 */
#endif
#if HAS_FILES
#if (defined(__unix__) || defined(__APPLE__)) && !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L /* fsync */
#endif
#endif
#include HEADER
SECTIONS

#if HAS_BARE
#if !defined(BURN_FREESTANDING)
#include <math.h>
#endif
#else
#include <math.h>
#endif
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#if HAS_BARE
#if defined(BURN_FREESTANDING) /* no C library: what is asked of one, and of gcc and clang in its place */
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define isnan __builtin_isnan
#define isinf __builtin_isinf
#define fabsf __builtin_fabsf
#define copysignf __builtin_copysignf
float floorf(float), ceilf(float), truncf(float), rintf(float), sqrtf(float), fmodf(float, float), powf(float, float);
size_t strlen(const char *), strspn(const char *, const char *), strcspn(const char *, const char *);
int strcmp(const char *, const char *), strncmp(const char *, const char *, size_t);
char *strchr(const char *, int), *strstr(const char *, const char *);
void *memmove(void *, const void *, size_t);

/* Compilers call these two by themselves, too. Weak: the program may have its own. The barriers keep them from being
 * recognised as what they are, and made calls of themselves. */
typedef uint32_t __attribute__((may_alias)) burn_word;

__attribute__((weak)) void *memcpy(void *to, const void *from, size_t n);
__attribute__((weak)) void *memcpy(void *to, const void *from, size_t n)
{
    unsigned char *at = (unsigned char *)to;
    const unsigned char *s = (const unsigned char *)from;
    if ((((uintptr_t)at | (uintptr_t)s) & 3u) == 0u)
        for (; n >= 4u; n -= 4u, at += 4, s += 4) {
            *(burn_word *)(void *)at = *(const burn_word *)(const void *)s;
            __asm__ volatile("" ::: "memory");
        }
    for (; n > 0u; n--) {
        *at++ = *s++;
        __asm__ volatile("" ::: "memory");
    }
    return to;
}

__attribute__((weak)) void *memset(void *to, int byte, size_t n);
__attribute__((weak)) void *memset(void *to, int byte, size_t n)
{
    unsigned char *at = (unsigned char *)to;
    const burn_word word = 0x01010101u * (unsigned char)byte;
    if (((uintptr_t)at & 3u) == 0u)
        for (; n >= 4u; n -= 4u, at += 4) {
            *(burn_word *)(void *)at = word;
            __asm__ volatile("" ::: "memory");
        }
    for (; n > 0u; n--) {
        *at++ = (unsigned char)byte;
        __asm__ volatile("" ::: "memory");
    }
    return to;
}
#else
#include <string.h>
#endif
#else
#include <string.h>
#endif

#if HAS_BLAS
#include <cblas.h>

#endif
#ifdef __cplusplus
#define restrict __restrict
#endif

#if HAS_VECTORS
#if defined(__AVX512F__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC target("prefer-vector-width=512") /* gcc halves them by itself */
#endif

#endif
#if HAS_FUSED
#if defined(__GNUC__) && !defined(__clang__)
#define BURN_FUSED __attribute__((optimize("fp-contract=fast", \
                                           "no-delete-null-pointer-checks"))) /* as for the functions that it calls */
#else
#define BURN_FUSED
#endif

#endif
#if HAS_APART
#if defined(__GNUC__)
#define BURN_APART __attribute__((noinline)) /* called often */
#else
#define BURN_APART
#endif

#endif
#if HAS_ONE
/* Of functions of this name, which are the same code, an image keeps one: link with --gc-sections. */
#if defined(__GNUC__) && defined(__ELF__)
#define BURN_ONE(name) __attribute__((weak, visibility("hidden"), section(".text." #name)))
#elif defined(__GNUC__) && (defined(__APPLE__) || defined(__wasm__))
#define BURN_ONE(name) __attribute__((weak, visibility("hidden")))
#else
#define BURN_ONE(name) static
#endif

#endif
#if HAS_LANES
#if defined(__GNUC__) && !defined(__clang__)
#define BURN_LANES _Pragma("GCC unroll 1") /* a loop until it is vector code */
#else
#define BURN_LANES
#endif

#endif
#if HAS_ALIGNED
#if defined(__GNUC__)
#define BURN_ALIGNED __attribute__((aligned(64))) /* no vector of the weights crosses a cache line */
#else
#define BURN_ALIGNED
#endif

#endif
