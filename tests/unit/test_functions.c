// SPDX-License-Identifier: MIT OR Apache-2.0
// The elementary functions of an f32 in generated C: error, special values, the same bits however they are compiled,
// and vector code.
//
//   test_functions [--all | --time] [NAME...]
//
// A C file with one loop per function is compiled four ways: scalar and vectorised, both without and with a * b + c
// contracted; scalar without is of the functions as small code has them. Either two must agree in every bit, all must
// lie within the function's bound of the exact value (the double function of libm) at every exponent of both signs with
// many mantissas; --all: at all 2^32 floats. The compiler's report must name each loop as vectorised. --time: CPU time
// per element of 64 Ki, beside the same loop over libm's function.
#define _POSIX_C_SOURCE 200809L
#include "codegen/spell/spell.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BLOCK = 1 << 16, PLAIN = 0, VECTOR, CONTRACTED, SINGLY, VARIANTS };
typedef void Loop(ptrdiff_t n, const float *x, const float *y, float *r);
typedef struct Function {
    const char *name, *libm;
    int arity;
    double bound;
    double (*one)(double);
    double (*two)(double, double);
} Function;

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }
static double softplus(double x) { return x > 40 ? x : log1p(exp(x)); }
static double falling(double x) { return fabs(x) > (double)86.6f ? 0 : exp(-fabs(x)); }
static double larger(double x, double y) { return isnan(x) || isnan(y) ? NAN : x > y ? x : y; }
static double smaller(double x, double y) { return isnan(x) || isnan(y) ? NAN : x < y ? x : y; }

static const Function functions[] = {
    { "exp", "expf(x[i])", 1, 2, exp, NULL },
    { "exp_falling", "expf(-fabsf(x[i]))", 1, 2, falling, NULL },
    { "log", "logf(x[i])", 1, 2, log, NULL },
    { "log1p", "log1pf(x[i])", 1, 3, log1p, NULL },
    { "expm1", "expm1f(x[i])", 1, 3, expm1, NULL },
    { "sqrt", "sqrtf(x[i])", 1, 0.5, sqrt, NULL },
    { "sin", "sinf(x[i])", 1, 2, sin, NULL },
    { "cos", "cosf(x[i])", 1, 2, cos, NULL },
    { "tan", "tanf(x[i])", 1, 3.5, tan, NULL },
    { "asin", "asinf(x[i])", 1, 3, asin, NULL },
    { "acos", "acosf(x[i])", 1, 3, acos, NULL },
    { "atan", "atanf(x[i])", 1, 3, atan, NULL },
    { "sinh", "sinhf(x[i])", 1, 3, sinh, NULL },
    { "cosh", "coshf(x[i])", 1, 3, cosh, NULL },
    { "tanh", "tanhf(x[i])", 1, 3, tanh, NULL },
    { "asinh", "asinhf(x[i])", 1, 4, asinh, NULL },
    { "acosh", "acoshf(x[i])", 1, 4, acosh, NULL },
    { "atanh", "atanhf(x[i])", 1, 4, atanh, NULL },
    { "erf", "erff(x[i])", 1, 3, erf, NULL },
    { "sigmoid", "1.0f / (1.0f + expf(-x[i]))", 1, 3, sigmoid, NULL },
    { "softplus", "log1pf(expf(x[i]))", 1, 3, softplus, NULL },
    { "pow", "powf(x[i], y[i])", 2, 2, NULL, pow },
    { "max", "fmaxf(x[i], y[i])", 2, 0, NULL, larger },
    { "min", "fminf(x[i], y[i])", 2, 0, NULL, smaller },
};

static Arena *arena;
static int tests, failures;

static void report(bool ok, const char *name, const char *detail) {
    printf("%sok %d - %s%s%s\n", ok ? "" : "not ", ++tests, name, *detail ? ": " : "", detail);
    failures += !ok;
}

// ---------------------------------------------------------------- compiling

// One loop per line, so that the compiler's report tells them apart; first: the number of function 0's line.
static const char *program(const Language *l, int *first) {
    Text body, all;
    text_init(&body, arena);
    text_init(&all, arena);
    for (size_t i = 0; i < COUNT(functions); i++)
        text_printf(&body,
            "void own_%s(ptrdiff_t n, const float *restrict x, const float *restrict y, float *restrict r) { "
            "(void)y; for (ptrdiff_t i = 0; i < n; i++) r[i] = burn_%s_f32(x[i]%s); }\n",
            functions[i].name, functions[i].name, functions[i].arity > 1 ? ", y[i]" : "");
    for (size_t i = 0; i < COUNT(functions); i++)
        text_printf(&body,
            "void libm_%s(ptrdiff_t n, const float *restrict x, const float *restrict y, float *restrict r) { "
            "(void)y; for (ptrdiff_t i = 0; i < n; i++) r[i] = %s; }\n",
            functions[i].name, functions[i].libm);
    text_printf(&all,
        "#include <math.h>\n#include <stdbool.h>\n#include <stddef.h>\n#include <stdint.h>\n#include <string.h>\n");
    spell_helpers(l, &all, NULL, body.at);
    *first = 1;
    for (const char *s = all.at; *s; s++) *first += *s == '\n';
    text_append(&all, body.at, body.n);
    return all.at;
}

static bool write_program(const Language *l, const char *path, int *first) {
    OutFile *o = out_open(arena, path);
    const char *text = program(l, first);
    return o && out_write(o, text, strlen(text)) && out_commit(o);
}

static void *compile(const char *folder, const char *file, const char *flags, const char *remarks) {
    const char *cc = getenv("CC") ? getenv("CC") : "cc";
    static int made;
    char *library = arena_printf(arena, "%s/%d.so", folder, made++);
    bool ok = system(arena_printf(arena, "%s %s -w -shared -fPIC -o %s %s/%s -lm 2>%s/%s", cc, flags, library, folder,
                  file, folder, remarks))
        == 0;
    void *handle = ok ? dlopen(library, RTLD_NOW) : NULL;
    if (!handle) report(false, "compiles", flags);
    return handle;
}

static Loop *loop_of(void *handle, const char *kind, const char *name) {
    void *symbol = dlsym(handle, arena_printf(arena, "%s_%s", kind, name));
    Loop *loop;
    memcpy(&loop, &symbol, sizeof loop);
    return loop;
}

// Is a loop of this line vector code? Both compilers begin a remark with file:line:column.
static bool is_vectorised(const char *remarks, int line) {
    const char *mark = arena_printf(arena, "t.c:%d:", line);
    for (const char *s = remarks; (s = strstr(s, mark)); s++) {
        const char *end = strchr(s, '\n'), *found = strstr(s, "vectorized");
        if (found && (!end || found < end)) return true;
    }
    return false;
}

static void check_vectors(const char *folder, const char *remarks, int first) {
    File f;
    if (!file_map(&f, arena_printf(arena, "%s/%s", folder, remarks))) return report(false, "the compiler's report", "");
    const char *text = arena_strndup(arena, (const char *)f.data, f.size);
    file_unmap(&f);
    for (size_t i = 0; i < COUNT(functions); i++)
        if (!is_vectorised(text, first + (int)i)) report(false, functions[i].name, "not vector code");
}

// ---------------------------------------------------------------- errors

typedef struct Worst { double ulp; float x, y, got; } Worst;

static double error_ulp(float got, double want) {
    int e;
    if (isnan(want) || isnan(got)) return isnan(want) && isnan(got) ? 0 : (double)INFINITY;
    // the largest float's upper neighbour is as near as infinity
    if (isinf((float)want) || isinf(got)) {
        bool same = (double)got == want
            || (isinf((float)want) && fabs(want) < (double)INFINITY && !signbit(got) == !signbit(want)
                && fabsf(got) >= 0x1.fffffap127f);
        return same || fabs(want) >= 0x1.fffffcp127 ? 0 : (double)INFINITY;
    }
    if (got == 0 && !signbit(got) != !signbit(want)) return INFINITY;
    frexp(want, &e);
    return fabs((double)got - want) / ldexp(1, (e < -125 ? -125 : e) - 24);
}

typedef struct Check {
    const Function *f;
    Loop *loop[VARIANTS];
    Worst worst[VARIANTS];
    int64_t differing;
    float at;
} Check;

static void check_block(Check *c, ptrdiff_t n, const float *x, const float *y) {
    static float r[VARIANTS][BLOCK];
    for (int v = 0; v < VARIANTS; v++) c->loop[v](n, x, y, r[v]);
    for (ptrdiff_t i = 0; i < n; i++) {
        double want = c->f->arity > 1 ? c->f->two((double)x[i], (double)y[i]) : c->f->one((double)x[i]);
        for (int v = 0; v < VARIANTS; v++) {
            double e = error_ulp(r[v][i], want);
            if (e > c->worst[v].ulp) c->worst[v] = (Worst){ e, x[i], y[i], r[v][i] };
        }
        for (int v = 0; v < VARIANTS; v += 2) {
            bool both_nan = isnan(r[v][i]) && isnan(r[v + 1][i]);
            if (both_nan || !memcmp(&r[v][i], &r[v + 1][i], sizeof(float))) continue;
            if (!c->differing++) c->at = x[i];
        }
    }
}

static uint64_t seed = 11;
static uint32_t random_bits(void) {
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(seed >> 32);
}

static float of_bits(uint32_t u) {
    float v;
    memcpy(&v, &u, sizeof v);
    return v;
}

// Every exponent with both signs; mantissas at both ends and anywhere.
static ptrdiff_t draw_exponents(float *x, int mantissas) {
    static const uint32_t ends[] = { 0, 1, 2, 0x400000, 0x3504f3, 0x3504f4, 0x7ffffe, 0x7fffff };
    ptrdiff_t n = 0;
    for (uint32_t top = 0; top < 512; top++)
        for (int k = 0; k < mantissas; k++)
            x[n++] = of_bits(top << 23 | (k < (int)COUNT(ends) ? ends[k] : random_bits() & 0x7fffff));
    return n;
}

// y beside each x: special values, whole numbers, and what keeps x^y in range.
static void draw_powers(ptrdiff_t n, const float *x, float *y) {
    static const float special[] = { 0, -0.0f, 1, -1, 2, -2, 3, 0.5f, -0.5f, INFINITY, -INFINITY, NAN, 1e30f, -1e30f,
        1e-40f, 16777215, -16777215, 33554432, -0.75f };
    for (ptrdiff_t i = 0; i < n; i++) {
        double l = log2(fabs((double)x[i])), any = (double)random_bits() * 0x1p-31 - 1;
        if (i % 4 == 0) y[i] = special[random_bits() % COUNT(special)];
        else if (i % 4 == 1 || !isfinite(l) || fabs(l) < 1e-6) y[i] = (float)((int)(random_bits() % 41) - 20);
        else y[i] = (float)(any * 160 / l);
    }
}

static void check_function(Check *c, bool all) {
    static float x[BLOCK], y[BLOCK];
    static const float special[] = { 0, -0.0f, 1, -1, INFINITY, -INFINITY, NAN, 0.5f, -0.5f, 2, -2, 3, -3, 1e-40f,
        -1e-40f };
    ptrdiff_t n = 0;
    for (size_t i = 0; i < COUNT(special); i++)
        for (size_t k = 0; k < COUNT(special); k++) x[n] = special[i], y[n++] = special[k];
    check_block(c, n, x, y);
    if (all && c->f->arity == 1) {
        for (uint64_t from = 0; from <= UINT32_MAX; from += BLOCK) {
            for (uint32_t i = 0; i < BLOCK; i++) x[i] = of_bits((uint32_t)from + i);
            check_block(c, BLOCK, x, y);
        }
        return;
    }
    for (int round = 0; round < (all ? 20000 : 2); round++) {
        n = draw_exponents(x, BLOCK / 512);
        if (c->f->arity > 1) draw_powers(n, x, y);
        check_block(c, n, x, y);
    }
    for (int round = 0; round < 2; round++) {                   // where the functions bend
        for (n = 0; n < BLOCK; n++)
            x[n] = (float)((double)random_bits() * 0x1p-31 - 1) * (round ? 2.0f : 20.0f),
            y[n] = (float)(random_bits() % 200) * 0.25f - 25;
        check_block(c, n, x, y);
    }
}

// ---------------------------------------------------------------- time

static double time_of(Loop *loop, const float *x, const float *y, float *r) {
    double best = INFINITY;
    for (int round = 0; round < 40; round++) {
        struct timespec a, b;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
        loop(BLOCK, x, y, r);
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
        best = fmin(best, (double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec));
    }
    return best / BLOCK;
}

static void print_time(const Function *f, void *handle) {
    static float x[BLOCK], y[BLOCK], r[BLOCK];
    bool positive = f->one == log || f->one == sqrt || f->one == acosh || f->two,
         narrow = f->one == asin || f->one == acos || f->one == atanh || f->one == log1p;
    for (int i = 0; i < BLOCK; i++) {
        double any = (double)random_bits() * 0x1p-31 - 1;
        x[i] = (float)(narrow ? any : positive ? 1 + 10 * fabs(any) : 10 * any);
        y[i] = (float)(any * 3);
    }
    double own = time_of(loop_of(handle, "own", f->name), x, y, r),
           libm = time_of(loop_of(handle, "libm", f->name), x, y, r);
    printf("%-9s %6.2f ns, libm %6.2f ns\n", f->name, own, libm);
}

// ---------------------------------------------------------------- program

static bool chosen(const char *name, int n, char **names) {
    for (int i = 0; i < n; i++)
        if (!strcmp(names[i], name)) return true;
    return n == 0;
}

static void check_one(const Function *f, void *const *handle, bool all) {
    Check c = { .f = f };
    for (int v = 0; v < VARIANTS; v++) c.loop[v] = loop_of(handle[v], "own", f->name);
    check_function(&c, all);
    bool ok = c.worst[PLAIN].ulp <= f->bound && c.worst[CONTRACTED].ulp <= f->bound;
    const Worst *w = &c.worst[PLAIN], *k = &c.worst[CONTRACTED];
    char *second = f->arity > 1 ? arena_printf(arena, ", %a", (double)w->y) : "";
    report(ok, f->name,
        arena_printf(arena, "%.3f ulp at %a%s gives %a, contracted %.3f at %a", w->ulp, (double)w->x, second,
            (double)w->got, k->ulp, (double)k->x));
    if (c.differing)
        report(false, f->name,
            arena_printf(
                arena, "other bits as vector code, %lld times, as at %a", (long long)c.differing, (double)c.at));
}

int main(int argc, char **argv) {
    bool all = argc > 1 && !strcmp(argv[1], "--all"), timing = argc > 1 && !strcmp(argv[1], "--time");
    int names = 1 + (all || timing), first;
    arena = arena_new();
    char *folder = arena_strdup(arena, "/tmp/burncc-functions-XXXXXX");
    if (!mkdtemp(folder)) return 1;
    const Language small = spell_c_scalar(arena, true);
    const char *cc = getenv("CC") ? getenv("CC") : "cc";
    if (!write_program(&small, arena_printf(arena, "%s/small.c", folder), &first)
        || !write_program(&spell_c, arena_printf(arena, "%s/t.c", folder), &first))
        return 1;
    bool is_clang = system(arena_printf(arena, "%s -dM -E -x c /dev/null | grep -q __clang__", cc)) == 0;
    const char *report_flags = is_clang ? "-Rpass=loop-vectorize -gline-tables-only" : "-fopt-info-vec-optimized";
#if defined(__x86_64__)
    const char *machine = "-march=native", *checked = "-march=x86-64-v3";
#else
    const char *machine = "", *checked = "";
#endif
    void *handle[VARIANTS] = {
        compile(folder, "small.c",
            is_clang ? "-std=c99 -O1 -ffp-contract=off -fno-vectorize" : "-std=c99 -O1 -ffp-contract=off", "plain"),
        compile(folder, "t.c", arena_printf(arena, "-O3 %s -ffp-contract=off", machine), "vector"),
        compile(folder, "t.c", arena_printf(arena, "-O3 %s -ffp-contract=fast", machine), "contracted"),
        compile(folder, "t.c",
            arena_printf(arena, "-O3 %s -ffp-contract=fast -fno-tree-vectorize -fno-tree-slp-vectorize", machine),
            "singly"),
    };
    if (handle[PLAIN] && handle[VECTOR] && handle[CONTRACTED] && handle[SINGLY]) {
        for (size_t i = 0; i < COUNT(functions); i++) {
            if (!chosen(functions[i].name, argc - names, argv + names)) continue;
            if (timing) print_time(&functions[i], handle[CONTRACTED]);
            else check_one(&functions[i], handle, all);
            fflush(stdout);
        }
        if (!timing && compile(folder, "t.c", arena_printf(arena, "-O3 %s %s", checked, report_flags), "remarks"))
            check_vectors(folder, "remarks", first);
    }
    if (!timing) printf("1..%d\n", tests);
    int removed = system(arena_printf(arena, "rm -r %s", folder));
    arena_free(arena);
    return failures || removed;
}
