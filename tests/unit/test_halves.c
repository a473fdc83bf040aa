// SPDX-License-Identifier: MIT OR Apache-2.0
// f16 in rows, as generated C has it (burn_f16_row_load, _round, _store), against one element at a time: the same bits
// of all 65,536 codes, and of floats at every exponent with mantissas around the ties of normal and of subnormal
// numbers. Rows of 1 to 40 elements, between canaries; with what the C compiler takes any machine to have, and with
// what this one has.
#define _POSIX_C_SOURCE 200809L
#include "codegen/spell/spell.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LONGEST = 40, CANARY = 0x5a };
typedef void Load(float *to, const uint16_t *from, ptrdiff_t n);
typedef void Round(float *to, ptrdiff_t n);
typedef void Put(uint16_t *to, const float *from, ptrdiff_t n);
typedef struct Functions { Load *load[2]; Round *round[2]; Put *store[2]; } Functions;      // in rows, one at a time

static const char program[] =
    "void load_row(float *to, const uint16_t *from, ptrdiff_t n) { burn_f16_row_load(to, from, n); }\n"
    "void round_row(float *to, ptrdiff_t n) { burn_f16_row_round(to, n); }\n"
    "void store_row(uint16_t *to, const float *from, ptrdiff_t n) { burn_f16_row_store(to, from, n); }\n"
    "void load_one(float *to, const uint16_t *from, ptrdiff_t n) {\n"
    "    for (ptrdiff_t i = 0; i < n; i++) to[i] = burn_f16_to_f32(from[i]);\n}\n"
    "void round_one(float *to, ptrdiff_t n) { for (ptrdiff_t i = 0; i < n; i++) to[i] = burn_round_f16(to[i]); }\n"
    "void store_one(uint16_t *to, const float *from, ptrdiff_t n) {\n"
    "    for (ptrdiff_t i = 0; i < n; i++) to[i] = burn_f32_to_f16(from[i]);\n}\n";

static Arena *arena;
static int tests, failures;

static void report(bool ok, const char *name, const char *flags, const char *detail) {
    printf("%sok %d - %s%s%s%s\n", ok ? "" : "not ", ++tests, name, flags, *detail ? ": " : "", detail);
    failures += !ok;
}

static float of_bits(uint32_t u) {
    float v;
    memcpy(&v, &u, sizeof v);
    return v;
}

static uint32_t bits_of(float v) {
    uint32_t u;
    memcpy(&u, &v, sizeof u);
    return u;
}

// The same bits, or both NaN, whose payload a load keeps and a rounding may.
static bool same(float a, float b) { return bits_of(a) == bits_of(b) || (isnan(a) && isnan(b)); }

static void check_loads(const Functions *f, const char *flags) {
    uint16_t from[LONGEST];
    float to[2][LONGEST + 1];
    int64_t wrong = 0, at = 0;
    for (uint32_t code = 0, n = 1; code < 65536; code += n, n = n % LONGEST + 1) {
        for (uint32_t i = 0; i < n; i++) from[i] = (uint16_t)(code + i);
        for (int v = 0; v < 2; v++) {
            memset(to[v], CANARY, sizeof to[v]);
            f->load[v](to[v], from, (ptrdiff_t)n);
        }
        for (uint32_t i = 0; i <= n; i++)
            if (!same(to[0][i], to[1][i]) && !wrong++) at = code + i;
    }
    report(!wrong, "load", flags,
        wrong ? arena_printf(arena, "%lld codes, 0x%04llx", (long long)wrong, (long long)at) : "");
}

// The next `n` floats: near 2^e * (1 + k / 2^m) for every e and k of few bits, where halves tie.
static void draw(float *x, uint32_t n, uint32_t *at) {
    static const uint32_t ends[] = { 0, 1, 0xfff, 0x1000, 0x1001, 0x1fff, 0x2000, 0x2fff, 0x3000, 0x3001, 0x3fffff,
        0x400000, 0x400001, 0x5fffff, 0x600000, 0x600001, 0x7fefff, 0x7ff000, 0x7ff001, 0x7fffff };
    for (uint32_t i = 0; i < n; i++, ++*at) {
        uint32_t top = *at / 64 % 512, k = *at % 64, mixed = (*at * 2654435761u) >> 9;
        x[i] = of_bits(top << 23 | (k < COUNT(ends) ? ends[k] : k < 43 ? 0x7fffffu >> (k - 20) : mixed & 0x7fffffu));
    }
}

static void check_floats(const Functions *f, const char *flags) {
    float x[LONGEST], to[2][LONGEST + 1];
    uint16_t code[2][LONGEST + 1];
    int64_t rounds = 0, stores = 0;
    float round_at = 0, store_at = 0;
    for (uint32_t at = 0, n = 1; at < 64 * 512 * 4; n = n % LONGEST + 1) {
        draw(x, n, &at);
        memset(to, CANARY, sizeof to);
        memset(code, CANARY, sizeof code);
        for (int v = 0; v < 2; v++) {
            memcpy(to[v], x, n * sizeof *x);
            f->round[v](to[v], (ptrdiff_t)n);
            f->store[v](code[v], x, (ptrdiff_t)n);
        }
        for (uint32_t i = 0; i <= n; i++) {
            if (!same(to[0][i], to[1][i]) && !rounds++) round_at = x[i];
            if (code[0][i] != code[1][i] && !stores++) store_at = x[i];
        }
    }
    report(!rounds, "round", flags, rounds ? arena_printf(arena, "%lld, %a", (long long)rounds, (double)round_at) : "");
    report(!stores, "store", flags, stores ? arena_printf(arena, "%lld, %a", (long long)stores, (double)store_at) : "");
}

// ---- the program

static void symbol(void *handle, const char *name, void *to) {
    void *found = dlsym(handle, name);
    memcpy(to, &found, sizeof found);
}

static void check(const char *folder, const char *flags) {
    const char *cc = getenv("CC") ? getenv("CC") : "cc", *library = arena_printf(arena, "%s/%d.so", folder, tests);
    const char *command = arena_printf(arena, "%s -std=gnu11 -O2 -w %s -shared -fPIC -o %s %s/t.c", cc, flags, library,
        folder);
    void *handle = system(command) == 0 ? dlopen(library, RTLD_NOW) : NULL;
    Functions f;
    if (!handle) return report(false, "compiles", flags, cc);
    for (int v = 0; v < 2; v++) {
        const char *way = v ? "one" : "row";
        symbol(handle, arena_printf(arena, "load_%s", way), &f.load[v]);
        symbol(handle, arena_printf(arena, "round_%s", way), &f.round[v]);
        symbol(handle, arena_printf(arena, "store_%s", way), &f.store[v]);
    }
    check_loads(&f, flags);
    check_floats(&f, flags);
}

int main(void) {
    arena = arena_new();
    char *folder = arena_strdup(arena, "/tmp/burncc-halves-XXXXXX");
    if (!mkdtemp(folder)) return 1;
    Text text;
    text_init(&text, arena);
    text_printf(&text,
        "#include <math.h>\n#include <stdbool.h>\n#include <stddef.h>\n#include <stdint.h>\n#include <string.h>\n");
    spell_helpers(&spell_c, &text, NULL, program);
    text_printf(&text, "%s", program);
    OutFile *o = out_open(arena, arena_printf(arena, "%s/t.c", folder));
    if (!o || !out_write(o, text.at, text.n) || !out_commit(o)) return 1;
    check(folder, "");
#if defined(__x86_64__)
    check(folder, " -march=native");
    if (__builtin_cpu_supports("avx2")) check(folder, " -mavx -mf16c");
#endif
    printf("1..%d\n", tests);
    int removed = system(arena_printf(arena, "rm -r %s", folder));
    arena_free(arena);
    return failures || removed;
}
