// SPDX-License-Identifier: MIT OR Apache-2.0
/* Prelude of the kernels over weights of few bits: copied once, whole, behind vec.h into a generated file that uses it.
 * No holes.
 *
 * A word of 32 bits holds 32/bits numbers of one column that follow each other along k, the first in the lowest bits:
 * bfloat16, the upper half of a float (bits 16), or unsigned integers. Here a vector of words becomes vectors of
 * floats, one number of each word at a time: a shift or two instructions more, so that what is read from memory is all
 * that bounds a product with few rows.
 */
#ifndef BURN_VEC_LOW_H
#define BURN_VEC_LOW_H
#if !defined(BURN_PORTABLE)
typedef uint32_t burn_low_words __attribute__((vector_size(4 * BURN_VF_LANES)));
typedef uint32_t burn_low_memory __attribute__((vector_size(4 * BURN_VF_LANES), aligned(4), may_alias));
typedef int32_t burn_low_integers __attribute__((vector_size(4 * BURN_VF_LANES)));

BURN_INLINE void burn_low_load(burn_low_words *w, const uint32_t *p)
{
    *w = *(const burn_low_memory *)p;
}

/* Number i of each word. */
BURN_INLINE void burn_low_part(burn_vf *to, burn_low_words *w, int bits, int i)
{
    if (bits == 16)
        *to = (burn_vf)(i ? *w & 0xffff0000u : *w << 16);
    else
        *to = __builtin_convertvector((burn_low_integers)(*w >> (bits * i) & ((1u << (bits % 32)) - 1)), burn_vf);
}

BURN_INLINE void burn_low_muladd(burn_vf *sum, float scale, burn_vf *x)
{
    BURN_CONTRACT
    *sum += scale * *x;
}

/* acc += scale * (sum - zero * of_row), with scale and (from != NULL) zero of each column */
BURN_INLINE void burn_low_scaled(burn_vf *acc, burn_vf *sum, const float *scale, const uint8_t *from, float zero,
                                 float of_row)
{
    BURN_CONTRACT
    burn_vf z = zero - (burn_vf){0};
    for (int j = 0; from && j < BURN_VF_LANES; j++)
        z[j] = (float)from[j];
    *acc += burn_vf_load(scale) * (*sum - z * of_row);
}

#else
typedef uint32_t burn_low_words[BURN_VF_LANES];

BURN_INLINE void burn_low_load(burn_low_words *w, const uint32_t *p)
{
    memcpy(*w, p, sizeof *w);
}

BURN_INLINE void burn_low_part(burn_vf *to, burn_low_words *w, int bits, int i)
{
    if (bits == 16) {
        for (int j = 0; j < BURN_VF_LANES; j++) {
            const union { uint32_t from; float to; } up = {i == 1 ? (*w)[j] & 0xffff0000u : (*w)[j] << 16};
            (*to)[j] = up.to;
        }
        return;
    }
    for (int j = 0; j < BURN_VF_LANES; j++)
        (*to)[j] = (float)(int32_t)((*w)[j] >> (bits * i) & ((1u << (bits % 32)) - 1u));
}

BURN_INLINE void burn_low_muladd(burn_vf *sum, float scale, burn_vf *x)
{
    for (int j = 0; j < BURN_VF_LANES; j++)
        (*sum)[j] += scale * (*x)[j];
}

BURN_INLINE void burn_low_scaled(burn_vf *acc, burn_vf *sum, const float *scale, const uint8_t *from, float zero,
                                 float of_row)
{
    for (int j = 0; j < BURN_VF_LANES; j++)
        (*acc)[j] += scale[j] * ((*sum)[j] - (from ? (float)from[j] : zero) * of_row);
}
#endif
#endif
