// SPDX-License-Identifier: MIT OR Apache-2.0
// Matrix units where there are none: linked into a burncc of the tests' own (--wrap), in which shaders for cooperative
// matrices are compiled with matrices of plain GLSL, so that what a device with such units would run runs on lavapipe,
// from the planner to the last store.
//
// A "subgroup" is 32 threads that follow one another, whatever the device has. Each of them holds eight elements of a
// sum and knows where a factor lies in shared memory, which stays as it is between a barrier and the next: it computes
// its elements alone. So nothing has to be in step, which lavapipe's subgroups of eight would not be: what a subgroup
// waits for, all do. A factor that stays for longer is copied.
#include "codegen/gpu/cooperative.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool __real_spirv_compile(const char *glsl, const char *name, SpirvModule *out);
bool __wrap_spirv_compile(const char *glsl, const char *name, SpirvModule *out);
bool __wrap_cooperative_rewrite(SpirvModule *module, bool bf16);

static const char types[] =
    "struct Factor { int at, stride; bool turned; };\n"
    "struct Kept { uint e[128]; };\n"
    "#ifdef BYTES\n"
    "#define SUM int\n"
    "#define OF_WORD(x) int(x)\n"
    "#define AS_WORD(x) uint(x)\n"
    "#else\n"
    "#define SUM float\n"
    "#define OF_WORD(x) uintBitsToFloat(x)\n"
    "#define AS_WORD(x) floatBitsToUint(x)\n"
    "#endif\n"
    "struct Sums { SUM e[8]; };\n"
    "Sums sums_of(const SUM x) { Sums c; for (int i = 0; i < 8; i++) c.e[i] = x; return c; }\n"
    "#define LANE int(gl_LocalInvocationIndex % 32u)\n"
    "#define LOAD_SUMS(x, first, step) [[dont_unroll]] for (int sum = 0; sum < 8; sum++) { \\\n"
    "        const int of_it = LANE * 8 + sum; \\\n"
    "        x.e[sum] = OF_WORD(block[(first) + of_it / 16 * (step) + of_it % 16 / 4][of_it % 4]); }\n"
    "#define LOAD_KEPT(x, first, step) [[dont_unroll]] for (int word = 0; word < 128; word++) \\\n"
    "        x.e[word] = block[(first) + word / 8 * (step) + word % 8 / 4][word % 4];\n"
    "#define LOAD(x, from, first, step, is_turned) x = Factor(first, step, is_turned)\n"
    "#define STORE(x, to, first, step, is_turned) [[dont_unroll]] for (int sum = 0; sum < 8; sum++) { \\\n"
    "        const int of_it = LANE * 8 + sum; \\\n"
    "        to[(first) + of_it / 16 * (step) + of_it % 16 / 4][of_it % 4] = AS_WORD(x.e[sum]); }\n"
    "#define STORE_ROUNDED(x, first, step) [[dont_unroll]] for (int two = 0; two < 4; two++) \\\n"
    "        block[(first) + LANE / 2 * (step) + LANE % 2][two] = PACKED(x.e[two * 2], x.e[two * 2 + 1]);\n";

// behind the shader's shared memory, `block`
static const char product[] =
    "#ifdef BYTES\n"
    "int element_of(const Factor x, const int row, const int column) {\n"
    "    const int outer = x.turned ? column : row, inner = x.turned ? row : column;\n"
    "    return bitfieldExtract(int(block[x.at + outer * x.stride + inner / 16][inner % 16 / 4]), inner % 4 * 8, 8);\n"
    "}\n"
    "#define TERMS 32\n"
    "#define ADDED(x, y, sum) x * y + sum\n"
    "#else\n"
    "#define TERMS 16\n"
    "#define ADDED(x, y, sum) fma(x, y, sum)\n"
    "float element_of(const Factor x, const int row, const int column) {\n"
    "    const int outer = x.turned ? column : row, inner = x.turned ? row : column;\n"
    "    const uint h = block[x.at + outer * x.stride + inner / 8][inner % 8 / 2] >> 16 * (inner % 2) & 65535u;\n"
    "    return HALF(h);\n"
    "}\n"
    "float element_of(const Kept x, const int row, const int column) {\n"
    "    const uint h = x.e[row * 8 + column / 2] >> 16 * (column % 2) & 65535u;\n"
    "    return HALF(h);\n"
    "}\n"
    "#endif\n"
    "#define MULTIPLIED(Left) Sums multiplied(const Left a, const Factor b, Sums c) { \\\n"
    "    [[dont_unroll]] for (int i = 0; i < 8; i++) { \\\n"
    "        const int e = LANE * 8 + i; \\\n"
    "        SUM sum = c.e[i]; \\\n"
    "        [[dont_unroll]] for (int k = 0; k < TERMS; k++) \\\n"
    "            sum = ADDED(element_of(a, e / 16, k), element_of(b, k, e % 16), sum); \\\n"
    "        c.e[i] = sum; \\\n"
    "    } \\\n"
    "    return c; }\n"
    "MULTIPLIED(Factor)\n"
    "#ifndef BYTES\n"
    "MULTIPLIED(Kept)\n"
    "#endif\n"
    "Sums SUM_OF(Sums a, const Sums b) {\n"
    "    [[dont_unroll]] for (int i = 0; i < 8; i++) a.e[i] += b.e[i];\n"
    "    return a;\n"
    "}\n";

// What such a shader has, and what stands there instead.
static const struct { const char *from, *to; } words[] = {
    { "#extension GL_NV_cooperative_matrix : require\n", "" },
    { "fcoopmatNV<16, gl_ScopeSubgroup, MARKED_M, MARKED_K>", "Factor" },
    { "fcoopmatNV<16, gl_ScopeSubgroup, MARKED_K, MARKED_N>", "Factor" },
    { "fcoopmatNV<32, gl_ScopeSubgroup, MARKED_M, MARKED_N>", "Sums" },
    { "#extension GL_NV_integer_cooperative_matrix : require\n", "" },
    { "icoopmatNV<8, gl_ScopeSubgroup, MARKED_M, MARKED_BYTES>", "Factor" },
    { "icoopmatNV<8, gl_ScopeSubgroup, MARKED_BYTES, MARKED_N>", "Factor" },
    { "icoopmatNV<32, gl_ScopeSubgroup, MARKED_M, MARKED_N>", "Sums" },
    { "fcoopmatNV<16, gl_ScopeSubgroup, MARKED_M, MARKED_N>", "Sums" },
    { "MATRIX_C(", "sums_of(" },
    { "coopMatLoadNV(", "LOAD(" },
    { "coopMatStoreNV(", "STORE(" },
    { "coopMatMulAddNV(", "multiplied(" },
    { "#define SUM_OF(x, y) ((x) + (y))\n", "" },
    { "#define LOAD_SUMS(x, from, step) coopMatLoadNV(x, block, from, step, false);\n", "" },
    { "#define LOAD_KEPT(x, from, step) coopMatLoadNV(x, block, from, step, false);\n", "" },
    { "#define STORE_ROUNDED(x, from, step) { \\\n        const MATRIX_R rounded = MATRIX_R(x); \\\n"
      "        coopMatStoreNV(rounded, block, from, step, false); \\\n    }\n", "" },
    { "#define MATRIX_KEPT MATRIX_A\n", "#define MATRIX_KEPT Kept\n" },
    { "#define ELEMENT(x, i) x[i]\n", "#define ELEMENT(x, i) x.e[i]\n" },
    { "subgroupBarrier()", "barrier()" },
    { "gl_SubgroupID", "(gl_LocalInvocationIndex / 32u)" },
    { "gl_SubgroupInvocationID", "(gl_LocalInvocationIndex % 32u)" },
};

static char *emulated(const char *glsl, bool bf16) {
    const size_t room = 4 * strlen(glsl) + 2 * sizeof types + sizeof product;
    char *out = malloc(room), *at = out;
    const char *from = glsl;
    bool typed = false;
    if (!out) abort();
    while (*from) {
        size_t i = 0;
        // behind the last of the extensions, which have to come first
        if (!typed && (from == glsl || from[-1] == '\n') && *from != '#') {
            at += sprintf(at, "#define HALF(h) %s\n#define PACKED(x, y) %s\n%s",
                bf16 ? "uintBitsToFloat((h) << 16)" : "unpackHalf2x16(h).x",
                bf16 ? "(floatBitsToUint(x) + 0x8000u >> 16 | floatBitsToUint(y) + 0x8000u & 0xFFFF0000u)" :
                       "packHalf2x16(vec2(x, y))", types);
            typed = true;
        }
        if (!strncmp(from, "void main()", 11)) at += sprintf(at, "%s", product);
        while (i < sizeof words / sizeof *words && strncmp(from, words[i].from, strlen(words[i].from))) i++;
        if (i < sizeof words / sizeof *words) {
            at += sprintf(at, "%s", words[i].to);
            from += strlen(words[i].from);
        } else *at++ = *from++;
    }
    *at = 0;
    return out;
}

static char *last;                                      // the shader that was compiled last, where it has matrices
static const char *last_name = "";

bool __wrap_spirv_compile(const char *glsl, const char *name, SpirvModule *out) {
    free(last);
    last = NULL;
    if (!strstr(glsl, "fcoopmatNV")) return __real_spirv_compile(glsl, name, out);
    last = malloc(strlen(glsl) + 1);
    if (!last) abort();
    strcpy(last, glsl);
    last_name = name;
    char *text = emulated(glsl, false);
    const bool done = __real_spirv_compile(text, name, out);
    free(text);
    return done;
}

// The module is one of f16.
bool __wrap_cooperative_rewrite(SpirvModule *module, bool bf16) {
    if (!last) return false;
    if (!bf16) return true;
    char *text = emulated(last, true);
    spirv_free(module);
    const bool done = __real_spirv_compile(text, last_name, module);
    free(text);
    return done;
}
