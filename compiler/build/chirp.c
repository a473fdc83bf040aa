// SPDX-License-Identifier: MIT OR Apache-2.0
// Fourier transforms of lengths with large prime factors, by three of a length without them.
//
// In: real and imaginary parts [outer, n]. Out: the same of the spectrum, not scaled. The idea is L. Bluestein's (IEEE
// Trans. Audio Electroacoust. 18, 1970): 2 j k = j^2 + k^2 - (k - j)^2, so with the chirp w(j) = e^(sign pi i j^2 / n)
//   y(k) = w(k) sum over j of (x(j) w(j)) conj(w(k - j)),
// a convolution, which is a product of spectra once both are padded to m >= 2 n - 1 elements. The spectrum of the
// conjugate chirp is a constant; all tables are linear in n.
#include "build/build.h"

// Of these times a power of two m is the smallest that has room.
static const int64_t odd_factors[] = { 1, 3, 5, 9, 15 };

int64_t chirp_length(int64_t n) {
    int64_t least = INT64_MAX;
    for (size_t i = 0; i < COUNT(odd_factors); i++) {
        int64_t m = odd_factors[i];
        while (m < 2 * n - 1) m *= 2;
        least = min64(least, m);
    }
    return least;
}

// ---------------------------------------------------------------- the chirp's spectrum

// e^(-2 pi i k / length) at each k of the whole length
typedef struct Spectrum { double *turn_re, *turn_im; } Spectrum;
typedef struct Parts { double *re, *im; } Parts;

static int64_t least_factor(int64_t n) { return n % 2 == 0 ? 2 : n % 3 == 0 ? 3 : 5; }

// y = the transform of the n elements of x that are `stride` apart; n has the factors 2, 3 and 5 alone.
static void spectrum_of(const Spectrum *s, int64_t n, Parts x, int64_t stride, Parts y) {
    if (n == 1) {
        *y.re = *x.re;
        *y.im = *x.im;
        return;
    }
    int64_t r = least_factor(n), m = n / r;
    for (int64_t j = 0; j < r; j++)
        spectrum_of(s, m, (Parts){ x.re + j * stride, x.im + j * stride }, stride * r,
            (Parts){ y.re + j * m, y.im + j * m });
    for (int64_t k = 0; k < m; k++) {
        double re[5] = { 0 }, im[5] = { 0 };
        for (int64_t q = 0; q < r; q++)
            for (int64_t j = 0; j < r; j++) {           // n stride = length: the angle of j (q m + k) / n
                int64_t at = j * (q * m + k) % n * stride;
                re[q] += y.re[j * m + k] * s->turn_re[at] - y.im[j * m + k] * s->turn_im[at];
                im[q] += y.re[j * m + k] * s->turn_im[at] + y.im[j * m + k] * s->turn_re[at];
            }
        for (int64_t q = 0; q < r; q++) {
            y.re[q * m + k] = re[q];
            y.im[q * m + k] = im[q];
        }
    }
}

// ---------------------------------------------------------------- the transform

// w [n], and the spectrum of its conjugate c(j) = c(m - j), divided by m: the transform back is not scaled.
typedef struct Chirp { Value *re, *im, *spectrum_re, *spectrum_im; } Chirp;

static Chirp chirp_make(Graph *g, DType d, int64_t n, int64_t m, int sign) {
    Arena *scratch = arena_new();
    double *table[8];
    for (int i = 0; i < 8; i++) table[i] = NEW_ARRAY(scratch, double, m);
    Spectrum s = { table[0], table[1] };
    Parts w = { table[2], table[3] }, c = { table[4], table[5] }, of_c = { table[6], table[7] };
    for (int64_t k = 0; k < m; k++) {
        fft_turn(k, m, &s.turn_re[k], &s.turn_im[k]);
        s.turn_im[k] = -s.turn_im[k];
    }
    for (int64_t j = 0; j < n; j++) {
        fft_turn(j * j % (2 * n), 2 * n, &w.re[j], &w.im[j]);
        w.im[j] *= sign;
        c.re[j] = c.re[(m - j) % m] = w.re[j] / (double)m;
        c.im[j] = c.im[(m - j) % m] = -w.im[j] / (double)m;
    }
    spectrum_of(&s, m, c, 1, of_c);
    Chirp made;
    made.re = b_floats(g, d, 1, &n, w.re);
    made.im = b_floats(g, d, 1, &n, w.im);
    made.spectrum_re = b_floats(g, d, 1, &m, of_c.re);
    made.spectrum_im = b_floats(g, d, 1, &m, of_c.im);
    arena_free(scratch);
    return made;
}

void b_chirp(Graph *g, Value **re, Value **im, bool inverse) {
    Value *a = *re, *b = *im;
    DType d = a->type.dtype;
    int64_t n = a->type.dim[1], m = chirp_length(n), none[2] = { 0 }, room[2] = { 0, m - n };
    *re = *im = NULL;
    if (!b_table(g, 2 * ((double)n + (double)m))) {
        diag_error_as(EXIT_LIMIT, g->loc,
            "a transform of length %lld, which has a prime factor above 13, takes too many constants; a length of "
            "small factors does not",
            (long long)n);
        return;
    }
    Chirp w = chirp_make(g, d, n, m, inverse ? 1 : -1);
    b_complex_times(g, &a, &b, w.re, w.im);
    a = b_pad(g, a, none, room, NULL, NULL);
    b = b_pad(g, b, none, room, NULL, NULL);
    if (!a || !b) return;
    b_fft(g, &a, &b, false);
    if (!a || !b) return;
    b_complex_times(g, &a, &b, w.spectrum_re, w.spectrum_im);
    if (!a || !b) return;
    b_fft(g, &b, &a, false);                            // back, by the same tables: parts changed before and behind
    a = b_part(g, a, 1, 0, n);
    b = b_part(g, b, 1, 0, n);
    if (!a || !b) return;
    b_complex_times(g, &a, &b, w.re, w.im);
    *re = a;
    *im = b;
}
