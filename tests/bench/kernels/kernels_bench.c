// SPDX-License-Identifier: MIT OR Apache-2.0
/* Checks every instantiated template against a plain loop in double precision, with canaries around outputs and
 * scratch, and times those marked so.  kernels_bench [check|time] [part of a name].  A line a case:
 *   NAME ok err=E of bound    (E: largest error over the bound of a sum of that length)
 *   NAME us=.. gflops=.. peak=.. */
#define _POSIX_C_SOURCE 200112L
#ifdef HAVE_OPENBLAS
#include <cblas.h> /* before the cases, which define M and N */
#endif
#include "cases_c.h"
#include "../../../compiler/schedule/cpu/pack.h"
#include "shapes.h"
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef void (*Run)(const float *a, const float *b, float *c, const float *e, unsigned char *scratch);

enum { GUARD = 64 };
static const float CANARY = 12345.678f;
static const TileTarget target = TARGET;
static int failures;

static float *random_floats(size_t n)
{
    static unsigned state = 1;
    float *p = malloc(n * sizeof *p);
    for (size_t i = 0; p && i < n; i++) {
        state = state * 1664525u + 1013904223u;
        p[i] = (float)(int)(state >> 8) / 8388608.0f - 1.0f;
    }
    return p ? p : (perror("malloc"), exit(1), p);
}

/* Of this thread: what others run does not count. */
static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A scratch block that is aligned, ends with a canary, and starts as NaN so that a read of what was never written
 * shows. */
static unsigned char *scratch_new(size_t bytes, void **block)
{
    if (posix_memalign(block, 64, bytes + GUARD))
        exit(1);
    memset(*block, 0xff, bytes);
    memset((unsigned char *)*block + bytes, 0x5a, GUARD);
    return *block;
}

static void canaries_check(const char *name, const float *c, size_t n, const unsigned char *scratch, size_t bytes)
{
    for (size_t i = 0; i < GUARD; i++)
        if (memcmp(&c[i], &CANARY, 4) || memcmp(&c[GUARD + n + i], &CANARY, 4) || scratch[bytes + i] != 0x5a) {
            printf("%s FAIL: wrote out of bounds\n", name);
            failures++;
            return;
        }
}

static double epilogue(int kind, double acc, const float *e, int64_t channel, int64_t index)
{
    if (kind == 1)
        return acc + (double)e[channel] > 0 ? acc + (double)e[channel] : 0;
    return kind == 2 ? acc + (double)e[index] : acc;
}

static void report(const char *name, double worst)
{
    printf("%-24s %s err=%.3g of bound\n", name, worst <= 1 ? "ok" : "FAIL", worst);
    failures += !(worst <= 1);
}

/* The rate of fused multiply-adds on registers alone, right now: what a kernel's rate is a share of. */
BURN_KERNEL static double peak_rate(void)
{
    BURN_CONTRACT
    double best = 1e9;
#if !defined(BURN_PORTABLE)
    enum { CHAINS = 12, STEPS = 20000 };
    burn_vf sum[CHAINS], scale = (burn_vf){0} + 0.999f;
    for (int i = 0; i < CHAINS; i++)
        sum[i] = (burn_vf){0} + (float)i;
    for (int run = 0; run < 20; run++) {
        const double t = seconds();
        for (int k = 0; k < STEPS; k++) {
            BURN_UNROLL
            for (int i = 0; i < CHAINS; i++)
                sum[i] = sum[i] * scale + scale;
        }
        const double d = seconds() - t;
        best = d < best ? d : best;
    }
    volatile float keep = 0;
    for (int i = 0; i < CHAINS; i++)
        keep += burn_vf_sum(&sum[i]);
    return 2.0 * CHAINS * STEPS * BURN_VF_LANES / best;
#else
    return best;
#endif
}

/* The least time of a run, from batches that are long enough for the clock, over 0.3 seconds. */
static void time_run(const char *name, Run run, const float *a, const float *b, float *c, const float *e,
    unsigned char *scratch, double flops) {
    double best = 1e9, peak = peak_rate();
    const double start = seconds();
    run(a, b, c, e, scratch);
    const double once = seconds() - start;
    const int batch = once < 2e-5 ? (int)(4e-5 / (once + 1e-7)) + 1 : 1;
    const double stop = seconds() + 0.3;
    for (int i = 0; i < 3 || seconds() < stop; i++) {
        const double t = seconds();
        for (int j = 0; j < batch; j++)
            run(a, b, c, e, scratch);
        const double d = (seconds() - t) / batch;
        best = d < best ? d : best;
    }
    const double now = peak_rate();
    peak = now > peak ? now : peak;
    printf("%-24s us=%.2f gflops=%.1f peak=%.0f%%\n", name, best * 1e6, flops / best * 1e-9, 100 * flops / best / peak);
    fflush(stdout);
}

/* err over bound, for one output: acc is the exact sum, magnitude the sum of absolute products. */
static double error_of(double got, double want, double magnitude, int64_t depth)
{
    const double bound = ((double)depth + 3) * (double)FLT_EPSILON * 0.5 * (magnitude + fabs(want)) + 1e-30;
    return isfinite(got) ? fabs(got - want) / bound : 1e9;
}

#ifdef HAVE_OPENBLAS
static GemmShape blas_shape;
static void run_blas(const float *a, const float *b, float *c, const float *e, unsigned char *scratch)
{
    const int m = (int)blas_shape.m, n = (int)blas_shape.n, k = (int)blas_shape.k;
    (void)e, (void)scratch;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1.0f, a, k, b, n, 0.0f, c, n);
}

/* The same product by OpenBLAS, single-threaded (OPENBLAS_NUM_THREADS=1), right after ours. */
static void time_blas(const char *name, const float *a, const float *b, float *c, const GemmShape *s)
{
    char text[64];
    if (s->batch != 1 || s->ak != 1 || s->am != s->k || s->bn != 1 || s->bk != s->n)
        return;
    blas_shape = *s;
    snprintf(text, sizeof text, "  OpenBLAS %.50s", name);
    time_run(text, run_blas, a, b, c, NULL, NULL, 2.0 * (double)s->m * (double)s->n * (double)s->k);
}
#endif

/* m == 0: the case is one of gemv. */
static void gemm_case(const char *name, Run run, GemmShape s, int b_kind, int kind, int near, int timing)
{
    const int is_gemv = s.m == 0;
    s.m += is_gemv;
    const GemmTiles t = gemm_tiles(&s, &target);
    const size_t an = (size_t)(s.batch * s.m * s.k), bn = (size_t)(s.batch * s.n * s.k),
                 cn = (size_t)(s.batch * s.m * s.n);
    const size_t nr = 16 * (size_t)(is_gemv ? gemv_tiles(s.n, s.k, &target, near).nv : t.nv),
                 bytes = is_gemv ? 0 : gemm_scratch_bytes(&s, &t);
    const size_t one = nr ? pack_gemm_b_floats((size_t)s.n, (size_t)s.k, nr) :
                            pack_gemv_w_floats((size_t)s.n, (size_t)s.k);
    float *a = random_floats(an), *b = random_floats(bn), *e = random_floats(cn), *c = random_floats(cn + 2 * GUARD);
    float *packed = b_kind ? b : random_floats((size_t)s.batch * one);
    void *block;
    unsigned char *scratch = scratch_new(bytes, &block);
    double worst = 0;
    for (size_t i = 0; i < cn + 2 * GUARD; i++)
        c[i] = CANARY;
    for (int64_t i = 0; i < s.batch && !b_kind; i++)
        if (nr)
            pack_gemm_b(
                b + i * s.n * s.k, (size_t)s.n, (size_t)s.k, (size_t)s.bk, (size_t)s.bn, nr, packed + (size_t)i * one);
        else
            pack_gemv_w(
                b + i * s.n * s.k, (size_t)s.n, (size_t)s.k, (size_t)s.bk, (size_t)s.bn, packed + (size_t)i * one);
    run(a, packed, c + GUARD, e, scratch);
    canaries_check(name, c, cn, scratch, bytes);
    for (size_t i = 0; i < cn; i += cn > 100000 ? cn / 5003 : 1) {
        const int64_t n = (int64_t)i % s.n, m = (int64_t)i / s.n % s.m, bt = (int64_t)i / s.n / s.m;
        double acc = 0, magnitude = 0;
        for (int64_t k = 0; k < s.k; k++) {
            const double p = (double)a[bt * s.m * s.k + m * s.am + k * s.ak]
                * (double)b[bt * s.n * s.k + k * s.bk + n * s.bn];
            acc += p, magnitude += fabs(p);
        }
        const double err = error_of((double)c[GUARD + i], epilogue(kind, acc, e, n, (int64_t)i), magnitude, s.k);
        worst = err > worst ? err : worst;
    }
    if (!timing || worst > 1)
        report(name, worst);
    if (timing)
        time_run(name, run, a, packed, c + GUARD, e, scratch, 2.0 * (double)cn * (double)s.k);
#ifdef HAVE_OPENBLAS
    if (timing)
        time_blas(name, a, b, c + GUARD, &s);
#endif
    if (packed != b)
        free(packed);
    free(a), free(b), free(c), free(e), free(block);
}

static double conv_error(const ConvShape *s, const float *x, const float *w, const float *e, int kind, size_t i,
    size_t e_index, double got) {
    const int64_t p = (int64_t)i % (s->out[0] * s->out[1] * s->out[2]),
                  all = (int64_t)i / (s->out[0] * s->out[1] * s->out[2]);
    const int64_t c = all % (s->groups * s->oc), n = all / (s->groups * s->oc), g = c / s->oc;
    const int64_t o[3] = {p / s->out[2] / s->out[1], p / s->out[2] % s->out[1], p % s->out[2]};
    const int64_t taps = s->kernel[0] * s->kernel[1] * s->kernel[2];
    double acc = 0, magnitude = 0;
    for (int64_t k = 0; k < s->ic * taps; k++) {
        const int64_t tap[3] = { k % taps / s->kernel[2] / s->kernel[1], k % taps / s->kernel[2] % s->kernel[1],
            k % s->kernel[2] };
        int64_t at = n * s->groups * s->ic + g * s->ic + k / taps;
        int inside = 1;
        for (int d = 0; d < 3; d++) {
            const int64_t v = o[d] * s->stride[d] - s->pad[d] + tap[d] * s->dilation[d];
            inside = inside && v >= 0 && v < s->in[d];
            at = at * s->in[d] + v;
        }
        if (inside) {
            const double q = (double)w[c * s->ic * taps + k] * (double)x[at];
            acc += q, magnitude += fabs(q);
        }
    }
    return error_of(got, epilogue(kind, acc, e, c, (int64_t)e_index), magnitude, s->ic * taps);
}

typedef enum { BY_CONV, BY_TAPS, BY_DW, BY_PLANES, BY_WINOGRAD } Template;

/* Rows of pixels laid out as `to` has them, from [n][c][pixels]. */
static void lay_out(float *to, const float *from, const ConvLayout *l, int64_t channels)
{
    const int64_t *in = l->conv.in;
    for (int64_t n = 0; n < l->conv.n; n++)
        for (int64_t c = 0; c < channels; c++)
            for (int64_t d = 0; d < in[0]; d++)
                for (int64_t h = 0; h < in[1]; h++)
                    for (int64_t w = 0; w < in[2]; w++)
                        to[n * l->xn + d * l->xd + h * l->xh + w * l->xw + c * l->xc] = *from++;
}

static void pack_conv_case(const ConvShape *s, const ConvShape *merged, Template by, int nv, const WinogradForm *form,
    const float *w, float *packed) {
    const size_t taps = (size_t)(s->kernel[0] * s->kernel[1] * s->kernel[2]), g = (size_t)s->groups,
                 oc = (size_t)s->oc, ic = (size_t)s->ic, nr = 16 * (size_t)nv;
    if (by == BY_CONV || by == BY_TAPS)
        pack_conv_w(w, g, oc, ic, taps, (size_t)(s->groups / merged->groups), nr, packed);
    else if (by == BY_DW)
        pack_conv_dw_w(w, g, oc, taps, packed);
    else if (by == BY_PLANES)
        memcpy(packed, w, g * oc * taps * sizeof *w);
    else
        pack_winograd_w(w, oc, ic, form, nr, packed);
}

static void conv_case(const char *name, Run run, ConvShape s, Template by, int kind, int variant, int timing)
{
    for (int i = 0; i < 3; i++)
        s.out[i] = (s.in[i] + 2 * s.pad[i] - (s.kernel[i] - 1) * s.dilation[i] - 1) / s.stride[i] + 1;
    const ConvShape merged = by == BY_CONV ? merged_of(s) : s;
    const ConvLayout l = layout_of(merged, variant | (by == BY_PLANES ? PLANES : 0));
    const ConvTiles t = conv_tiles(&l, &target);
    const TapTiles tap = conv_taps_tiles(&l, &target);
    const ConvDwTiles dw = conv_dw_tiles(&l, &target);
    const ConvPlanesTiles planes = conv_planes_tiles(&s, &target);
    const WinogradTiles wino = by == BY_WINOGRAD ? winograd_of(&l, &target, variant) : (WinogradTiles){0};
    const WinogradForm form = {(size_t)wino.tile.h, (size_t)wino.tile.w, (size_t)s.kernel[1], (size_t)s.kernel[2]};
    const size_t taps = (size_t)(s.kernel[0] * s.kernel[1] * s.kernel[2]), channels = (size_t)(s.groups * s.oc),
                 pixels = (size_t)(s.out[0] * s.out[1] * s.out[2]);
    const size_t xn = (size_t)(s.n * s.groups * s.ic * s.in[0] * s.in[1] * s.in[2]),
                 yn = (size_t)s.n * channels * pixels, all = (size_t)s.n * pixels * (size_t)l.yc;
    const size_t bytes = by == BY_CONV     ? conv_scratch_bytes(&l, &t)
                         : by == BY_TAPS   ? conv_taps_scratch_bytes(&l, &tap)
                         : by == BY_DW     ? conv_dw_scratch_bytes(&l, &dw)
                         : by == BY_PLANES ? conv_planes_scratch_bytes(&s, &planes)
                                           : winograd_scratch_bytes(&l, &wino);
    const int nv = by == BY_CONV ? t.nv : by == BY_TAPS ? tap.nv : wino.nv;
    const size_t floats = by == BY_CONV || by == BY_TAPS ? pack_conv_w_floats((size_t)s.groups, (size_t)s.oc,
                              (size_t)s.ic, taps, (size_t)(s.groups / merged.groups), 16 * (size_t)nv) :
        by == BY_DW     ? pack_conv_dw_w_floats((size_t)s.groups, (size_t)s.oc, taps) :
        by == BY_PLANES ? channels * taps :
                          pack_winograd_w_floats((size_t)s.oc, (size_t)s.ic, &form, 16 * (size_t)wino.nv);
    float *x = random_floats(xn), *w = random_floats(channels * (size_t)s.ic * taps),
          *e = random_floats(yn > 4096 ? yn : 4096);
    float *y = random_floats(all + 2 * GUARD);
    void *packed_block, *x_block, *block;
    float *packed = (float *)(void *)scratch_new(4 * floats, &packed_block),
          *laid = (float *)(void *)scratch_new((size_t)(4 * s.n * l.xn), &x_block);
    unsigned char *scratch = scratch_new(bytes, &block);
    double worst = 0;
    pack_conv_case(&s, &merged, by, nv, &form, w, packed);
    lay_out(laid, x, &l, s.groups * s.ic);
    for (size_t i = 0; i < all + 2 * GUARD; i++)
        y[i] = CANARY;
    run(packed, laid, y + GUARD, e, scratch);
    canaries_check(name, y, all, scratch, bytes);
    for (size_t i = 0; i < all && (size_t)l.yc > channels; i++)
        if (i % (size_t)l.yc >= channels && memcmp(&y[GUARD + i], &CANARY, 4)) {
            printf("%s FAIL: wrote between pixels\n", name);
            failures++;
            break;
        }
    for (size_t i = 0; i < yn; i += yn > 50000 ? yn / 3001 : 1) {
        const size_t p = i % pixels, c = i / pixels % channels, row = i / pixels / channels * pixels + p;
        const size_t at = by == BY_PLANES ? i : row * (size_t)l.yc + c;
        const double err = conv_error(
            &s, x, w, e, kind, i, by == BY_PLANES ? i : row * channels + c, (double)y[GUARD + at]);
        worst = err > worst ? err : worst;
    }
    if (!timing || worst > 1)
        report(name, worst);
    if (timing)
        time_run(name, run, packed, laid, y + GUARD, e, scratch, 2.0 * (double)yn * (double)s.ic * (double)taps);
    free(x), free(w), free(e), free(y), free(packed_block), free(x_block), free(block);
}

int main(int argc, char **argv)
{
    const int timing = argc > 1 && !strcmp(argv[1], "time");
    const char *part = argc > 2 ? argv[2] : "";
#define WANTED(name, timed) ((!timing || timed) && strstr(#name, part))
#define GEMM(name, timed, batch, m, n, k, a_t, b_kind, kind) \
    if (WANTED(name, timed)) \
        gemm_case(#name, run_##name, \
            (GemmShape){batch, m, n, k, a_t ? 1 : k, a_t ? m : 1, b_kind == 2 ? 1 : n, b_kind == 2 ? k : 1, \
                b_kind == 0, 0}, \
            b_kind, kind, 0, timing);
#define GEMV(name, timed, batch, n, k, layout, kind, near) \
    if (WANTED(name, timed)) \
        gemm_case(#name, run_##name, \
            (GemmShape){batch, 0, n, k, k, 1, layout == 2 ? 1 : n, layout == 2 ? k : 1, layout == 0, 0}, \
            layout, kind, near, timing);
#define CONV_BY(                                                                                                      \
    by, name, timed, n, g, ic, oc, id, ih, iw, kd, kh, kw, sd, sh, sw, dd, dh, dw, pd, ph, pw, kind, variant)         \
    if (WANTED(name, timed))                                                                                          \
        conv_case(#name, run_##name,                                                                                  \
            (ConvShape){ n, g, ic, oc, { id, ih, iw }, { 0 }, { kd, kh, kw }, { sd, sh, sw }, { dd, dh, dw },         \
                { pd, ph, pw } },                                                                                     \
            by, kind, variant, timing);
#define CONV(...) CONV_BY(BY_CONV, __VA_ARGS__)
#define CONV_TAPS(name, timed, n, ic, oc, ih, iw, kh, kw, sh, sw, dh, dw, ph, pw, kind, variant) \
    CONV_BY(BY_TAPS, name, timed, n, 1, ic, oc, 1, ih, iw, 1, kh, kw, 1, sh, sw, 1, dh, dw, 0, ph, pw, kind, variant)
#define CONV_DW(name, timed, n, g, mult, ...) CONV_BY(BY_DW, name, timed, n, g, 1, mult, __VA_ARGS__)
#define CONV_PLANES(name, timed, n, g, mult, ...) CONV_BY(BY_PLANES, name, timed, n, g, 1, mult, __VA_ARGS__)
#define WINOGRAD(name, timed, n, ic, oc, ih, iw, kh, kw, ph, pw, kind, variant) \
    CONV_BY(BY_WINOGRAD, name, timed, n, 1, ic, oc, 1, ih, iw, 1, kh, kw, 1, 1, 1, 1, 1, 1, 0, ph, pw, kind, variant)
#include "cases.def"
    if (!timing)
        printf(failures ? "%d failures\n" : "all ok\n", failures);
    return failures != 0;
}
