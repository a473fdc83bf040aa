// SPDX-License-Identifier: MIT OR Apache-2.0
// The fast Fourier transform of a length whose prime factors are small, as slices, maps and concatenations.
//
// In: real and imaginary parts [outer, n] in the type that they are computed in. Out: the same of the spectrum, not
// scaled. The idea: Stockham's form of Cooley and Tukey's algorithm. A stage of radix r sees its data as [r, m, p], n
// = r m p, combines the r parts, turns part k of position i by the angle 2 pi i k / (r m) and stores [m, r, p]; after
// the last stage all is in order, and no stage shuffles.
#include "build/build.h"

#include <math.h>

#define TWO_PI 6.283185307179586476925
enum { MAX_RADIX = 13, MAX_STAGES = 48 };

// A NULL imaginary part is zero.
typedef struct Complex { Value *re, *im; } Complex;
// sign: of the exponent, -1 forwards
typedef struct Stage { Graph *g; DType dtype; int sign; Dim outer; int64_t m, p; } Stage;

void fft_turn(int64_t k, int64_t n, double *c, double *s) {
    static const double quarter[] = { 1, 0, -1, 0 };
    k %= n;
    bool exact = 4 * k % n == 0;
    double angle = TWO_PI * (double)k / (double)n;
    *c = exact ? quarter[4 * k / n] : cos(angle);
    *s = exact ? quarter[(4 * k / n + 3) % 4] : sin(angle);
}

// 4s, a 2 before them when one is left over, then the odd primes; 0: there is a large one.
static int factors(int64_t n, int64_t *radix) {
    int count = 0;
    for (; n % 4 == 0; n /= 4) radix[count++] = 4;
    if (n % 2 == 0) {
        radix[count++] = radix[0];
        radix[0] = 2;
        n /= 2;
    }
    for (int64_t r = 3; r <= MAX_RADIX; r += 2)
        for (; n % r == 0; n /= r) radix[count++] = r;
    return n == 1 ? count : 0;
}

// ---------------------------------------------------------------- complex numbers

static Value *sum(Stage *s, Value *x, Value *y) { return x && y ? b_binary(s->g, OP_Add, x, y) : x ? x : y; }

static Value *difference(Stage *s, Value *x, Value *y) {
    return !y ? x : x ? b_binary(s->g, OP_Sub, x, y) : b_unary(s->g, OP_Neg, y);
}

static Value *times(Stage *s, Value *x, double c) {
    return x ? b_binary(s->g, OP_Mul, x, b_scalar(s->g, s->dtype, c)) : NULL;
}

// C says of the parts of an initialiser as little as of arguments which is made first: one statement each.
static Complex add(Stage *s, Complex x, Complex y) {
    x.re = sum(s, x.re, y.re);
    x.im = sum(s, x.im, y.im);
    return x;
}

static Complex subtract(Stage *s, Complex x, Complex y) {
    x.re = difference(s, x.re, y.re);
    x.im = difference(s, x.im, y.im);
    return x;
}

static Complex scaled(Stage *s, Complex x, double c) {
    x.re = times(s, x.re, c);
    x.im = times(s, x.im, c);
    return x;
}

// x + i y and x - i y
static Complex add_turned(Stage *s, Complex x, Complex y) {
    x.re = difference(s, x.re, y.im);
    x.im = sum(s, x.im, y.re);
    return x;
}

static Complex subtract_turned(Stage *s, Complex x, Complex y) {
    x.re = sum(s, x.re, y.im);
    x.im = difference(s, x.im, y.re);
    return x;
}

// ---------------------------------------------------------------- butterflies
// y[k] = sum over j of x[j] e^(sign 2 pi i j k / r)

static void butterfly_4(Stage *s, const Complex *x, Complex *y) {
    Complex a = add(s, x[0], x[2]), b = subtract(s, x[0], x[2]), c = add(s, x[1], x[3]), d = subtract(s, x[1], x[3]);
    y[0] = add(s, a, c);
    y[2] = subtract(s, a, c);
    y[s->sign > 0 ? 1 : 3] = add_turned(s, b, d);
    y[s->sign > 0 ? 3 : 1] = subtract_turned(s, b, d);
}

// x[j] and x[r - j] meet conjugate factors: with their sum u and difference v, y[k] = x[0] + sum cos u + i sum sin v,
// y[r - k] the same with - i.
static void butterfly_odd(Stage *s, int r, const Complex *x, Complex *y) {
    Complex u[MAX_RADIX], v[MAX_RADIX];
    y[0] = x[0];
    for (int j = 1; 2 * j < r; j++) {
        u[j] = add(s, x[j], x[r - j]);
        v[j] = subtract(s, x[j], x[r - j]);
        y[0] = add(s, y[0], u[j]);
    }
    for (int k = 1; 2 * k < r; k++) {
        Complex a = x[0], b = { NULL, NULL };
        for (int j = 1; 2 * j < r; j++) {
            double c, sine;
            fft_turn((int64_t)j * k, r, &c, &sine);
            a = add(s, a, scaled(s, u[j], c));
            b = add(s, b, scaled(s, v[j], s->sign * sine));
        }
        y[k] = add_turned(s, a, b);
        y[r - k] = subtract_turned(s, a, b);
    }
}

// ---------------------------------------------------------------- stages

// e^(sign 2 pi i k pos / (r m)) at each position pos of m: [m, 1] each. Computed by the program where constants would
// take too much.
static void turns(Stage *s, int64_t k, int64_t r, Value **re, Value **im) {
    Graph *g = s->g;
    Dim dims[2] = { s->m, 1 };
    if (!b_table(g, 2 * (double)s->m)) {
        const char *text = arena_printf(g->arena, "%.17g * floormod(x * %lld, %lld) / %lld", s->sign * TWO_PI,
            (long long)k, (long long)(r * s->m), (long long)(r * s->m));
        Value *angle = B_MAP(g, text, "x", b_iota(g, 2, dims, 0, DT_F64));
        *re = b_cast(g, b_unary(g, OP_Cos, angle), s->dtype);
        *im = b_cast(g, b_unary(g, OP_Sin, angle), s->dtype);
        return;
    }
    Arena *scratch = arena_new();
    double *c = NEW_ARRAY(scratch, double, s->m), *d = NEW_ARRAY(scratch, double, s->m);
    for (int64_t i = 0; i < s->m; i++) {
        fft_turn(i * k, r * s->m, &c[i], &d[i]);
        d[i] *= s->sign;
    }
    *re = b_floats(g, s->dtype, 2, dims, c);
    *im = b_floats(g, s->dtype, 2, dims, d);
    arena_free(scratch);
}

void b_complex_times(Graph *g, Value **x, Value **y, Value *z, Value *w) {
    Value *re = *y ? B_MAP(g, "x * z - y * w", "x y z w", *x, *y, z, w) : b_binary(g, OP_Mul, *x, z);
    *y = *y ? B_MAP(g, "x * w + y * z", "x y z w", *x, *y, z, w) : b_binary(g, OP_Mul, *x, w);
    *x = re;
}

// x times them.
static Complex twiddled(Stage *s, Complex x, int64_t k, int64_t r) {
    if (k == 0 || s->m == 1) return x;
    Value *re, *im;
    turns(s, k, r, &re, &im);
    b_complex_times(s->g, &x.re, &x.im, re, im);
    return x;
}

// Part j of [outer, r, m, p] as [outer, m, p].
static Value *part(Stage *s, Value *v, int64_t j, int64_t r) {
    if (!v) return NULL;
    v = b_reshape(s->g, v, 4, (Dim[]){ s->outer, r, s->m, s->p });
    return b_remove(s->g, b_part(s->g, v, 1, j, 1), 1);
}

// r parts [outer, m, p] as [outer, m, r, p]; all NULL: NULL.
static Value *joined(Stage *s, int64_t r, Value **v) {
    Graph *g = s->g;
    bool any = false;
    for (int64_t k = 0; k < r; k++) any = any || v[k];
    if (!any) return NULL;
    for (int64_t k = 0; k < r; k++)
        v[k] = v[k] ? b_insert(g, v[k], 2) : b_filled(g, s->dtype, 0, 4, (Dim[]){ s->outer, s->m, 1, s->p });
    return b_concat(g, 2, (int)r, v);
}

static Complex stage(Stage *s, Complex x, int64_t r) {
    Complex in[MAX_RADIX] = { { 0 } }, out[MAX_RADIX];
    Value *re[MAX_RADIX], *im[MAX_RADIX];
    for (int64_t j = 0; j < r; j++) {
        in[j].re = part(s, x.re, j, r);
        in[j].im = part(s, x.im, j, r);
    }
    if (r == 2) {
        out[0] = add(s, in[0], in[1]);
        out[1] = subtract(s, in[0], in[1]);
    } else if (r == 4) butterfly_4(s, in, out);
    else butterfly_odd(s, (int)r, in, out);
    for (int64_t k = 0; k < r; k++) {
        out[k] = twiddled(s, out[k], k, r);
        re[k] = out[k].re;
        im[k] = out[k].im;
    }
    x.re = joined(s, r, re);
    x.im = joined(s, r, im);
    return x;
}

bool fft_fits(int64_t length) {
    int64_t radix[MAX_STAGES];
    return length > 0 && factors(length, radix) > 0;
}

void b_fft(Graph *g, Value **re, Value **im, bool inverse) {
    int64_t radix[MAX_STAGES], length = (*re)->type.dim[1];
    int count = factors(length, radix);
    if (length > 1 && !count) {
        b_chirp(g, re, im, inverse);
        return;
    }
    Stage s = {
        .g = g, .dtype = (*re)->type.dtype, .sign = inverse ? 1 : -1, .outer = (*re)->type.dim[0], .m = length, .p = 1
    };
    Complex x = { *re, *im };
    for (int i = 0; i < count && x.re; i++) {
        s.m /= radix[i];
        x = stage(&s, x, radix[i]);
        s.p *= radix[i];
    }
    *re = x.re ? b_reshape(g, x.re, 2, (Dim[]){ s.outer, length }) : NULL;
    *im = x.im ? b_reshape(g, x.im, 2, (Dim[]){ s.outer, length }) : NULL;
}
