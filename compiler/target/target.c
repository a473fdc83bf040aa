// SPDX-License-Identifier: MIT OR Apache-2.0
// The machines that code is made for: vector width in floats, vector registers and cache sizes in bytes, which
// schedules are chosen by; and what the C compiler is to be told.
//
// Several x86-64 targets, "x86-64-v2,x86-64-v3", are one whose code is there once for each (codegen/c/targets.c).
// They share packed weights and block sizes, so these are chosen for all of them, with the caches of the widest.
#include "target/target.h"

#include <string.h>
#include <unistd.h>

// Processors of microcontrollers have no cache, or a small one before flash that no schedule may count on: l2 is a few
// KiB of what they read and write anyway. Their code takes flags that forbid contraction: multiply-adds are asked for
// where they are (templates/c/vec.h), so that results are the same bits everywhere; clang makes fmaf an instruction
// where it sets no errno. Gcc knows no cortex-m85 before 13.
//
// A compiler makes no vectors of loops by itself: those of floats in MVE take subnormal numbers for 0 and know but one
// NaN (clang makes such), and those of RISC-V end in frames of a size that only the processor knows.
#define AS_WRITTEN " -fno-tree-vectorize -fno-tree-slp-vectorize"
#define EXACT " -ffp-contract=off -fno-math-errno"
#define CORTEX_M(cpu, fpu) "-O2 -mthumb " cpu " " fpu EXACT
#define CORTEX_M_ROW .backend_name = "c", .lanes = 1, .l1 = 4 << 10, .l2 = 16 << 10, .ram_first = true, \
    .fixed_point = true, .cc = "arm-none-eabi-gcc", .triple = "arm-none-eabi"
#define RISCV_ROW(name) .backend_name = "c", .lanes = 1, .l1 = 4 << 10, .l2 = 16 << 10, .ram_first = true, \
    .fixed_point = true, .cc = "riscv64-unknown-elf-gcc --specs=picolibc.specs", .triple = name "-unknown-elf", \
    .integer_registers = 28
#define RV32_ROW RISCV_ROW("riscv32")
#define RV64_ROW RISCV_ROW("riscv64")

// WebAssembly has no registers. Engines on x86-64 have 16 to give, those on AArch64 32; sums that do not fit are
// spilled in the innermost loop, and half the rows cost little: 16.
static const Target targets[] = {
    { .name = "generic",
        .backend_name = "c",
        .vectors = true,
        .registers = 16,
        .l1 = 32 << 10,
        .l2 = 1 << 20,
        .l3 = 16 << 20,
        .flags = "-O3 -march=native",
        .about = "one file for any C99 compiler; fast with gcc and clang, whose flags name the vectors" },
    { .name = "portable",
        .backend_name = "c",
        .registers = 16,
        .l1 = 32 << 10,
        .l2 = 256 << 10,
        .l3 = 4 << 20,
        .flags = "-O2",
        .about = "plain C99 alone" },
    { .name = "native",
        .backend_name = "c",
        .vectors = true,
        .native = true,
        .registers = 16,
        .l1 = 32 << 10,
        .l2 = 1 << 20,
        .l3 = 16 << 20,
        .flags = "-O3 -march=native",
        .about = "the vectors and caches of this machine" },
    { .name = "x86-64-v2",
        .backend_name = "c",
        .vectors = true,
        .lanes = 4,
        .registers = 16,
        .unfused = true,
        .l1 = 32 << 10,
        .l2 = 256 << 10,
        .l3 = 8 << 20,
        .arch = "x86-64",
        .flags = "-O3 -march=x86-64-v2",
        .features = "sse4.2",
        .about = "SSE4.2: 4 lanes, 16 registers" },
    { .name = "x86-64-v3",
        .backend_name = "c",
        .vectors = true,
        .lanes = 8,
        .registers = 16,
        .l1 = 32 << 10,
        .l2 = 512 << 10,
        .l3 = 16 << 20,
        .arch = "x86-64",
        .flags = "-O3 -march=x86-64-v3",
        .features = "avx2,fma",
        .about = "AVX2 and FMA: 8 lanes, 16 registers" },
    { .name = "x86-64-v4",
        .backend_name = "c",
        .vectors = true,
        .lanes = 16,
        .registers = 32,
        .l1 = 32 << 10,
        .l2 = 1 << 20,
        .l3 = 16 << 20,
        .arch = "x86-64",
        .flags = "-O3 -march=x86-64-v4",
        .features = "avx2,fma,avx512f,avx512vl,avx512bw,avx512dq",
        .about = "AVX-512: 16 lanes, 32 registers" },
    { .name = "aarch64",
        .backend_name = "c",
        .vectors = true,
        .lanes = 4,
        .registers = 32,
        .l1 = 64 << 10,
        .l2 = 1 << 20,
        .l3 = 16 << 20,
        .arch = "aarch64",
        .flags = "-O3",
        .about = "NEON: 4 lanes, 32 registers" },
    { .name = "wasm-simd128",
        .backend_name = "c",
        .vectors = true,
        .lanes = 4,
        .registers = 16,
        .unfused = true,
        .l1 = 32 << 10,
        .l2 = 512 << 10,
        .l3 = 8 << 20,
        .arch = "wasm32",
        .flags = "-O3 -msimd128",
        .about = "WebAssembly: 4 lanes; counts on 16 registers, as engines on x86-64 have" },
    { .name = "cortex-m0",
        CORTEX_M_ROW,
        .registers = 8,
        .unfused = true,
        .soft_float = true,
        .integer_registers = 8,
        .short_product = true,
        .flags = CORTEX_M("-mcpu=cortex-m0", "-mfloat-abi=soft"),
        .about = "and M0+: 8 registers, no floats" },
    { .name = "cortex-m3",
        CORTEX_M_ROW,
        .registers = 13,
        .unfused = true,
        .soft_float = true,
        .integer_registers = 13,
        .flags = CORTEX_M("-mcpu=cortex-m3", "-mfloat-abi=soft"),
        .about = "no floats" },
    { .name = "cortex-m4",
        CORTEX_M_ROW,
        .registers = 32,
        .integers = INTEGER_DSP,
        .integer_registers = 13,
        .flags = CORTEX_M("-mcpu=cortex-m4", "-mfloat-abi=hard -mfpu=fpv4-sp-d16"),
        .about = "with FPU: 32 single registers, fused; products of 16 bits in pairs" },
    { .name = "cortex-m7",
        CORTEX_M_ROW,
        .registers = 32,
        .integers = INTEGER_DSP,
        .integer_registers = 13,
        .flags = CORTEX_M("-mcpu=cortex-m7", "-mfloat-abi=hard -mfpu=fpv5-d16"),
        .about = "as cortex-m4, two instructions at a time" },
    { .name = "cortex-m33",
        CORTEX_M_ROW,
        .registers = 32,
        .integers = INTEGER_DSP,
        .integer_registers = 13,
        .flags = CORTEX_M("-mcpu=cortex-m33", "-mfloat-abi=hard -mfpu=fpv5-sp-d16"),
        .about = "as cortex-m4" },
    { .name = "cortex-m55",
        CORTEX_M_ROW,
        .registers = 32,
        .integers = INTEGER_MVE,
        .integer_registers = 13,
        .flags = CORTEX_M("-mcpu=cortex-m55", "-mfloat-abi=hard" AS_WRITTEN),
        .about = "with FPU and MVE: vectors of 128 bits" },
    { .name = "cortex-m85",
        CORTEX_M_ROW,
        .registers = 32,
        .integers = INTEGER_MVE,
        .integer_registers = 13,
        .flags = CORTEX_M("-march=armv8.1-m.main+mve.fp+fp.dp", "-mfloat-abi=hard" AS_WRITTEN),
        .about = "as cortex-m55, two instructions at a time" },
    { .name = "rv32imc",
        RV32_ROW,
        .registers = 28,
        .unfused = true,
        .soft_float = true,
        .flags = "-O2 -march=rv32imc -mabi=ilp32" EXACT,
        .about = "RISC-V of 32 bits, no floats" },
    { .name = "rv32imafc",
        RV32_ROW,
        .registers = 32,
        .flags = "-O2 -march=rv32imafc -mabi=ilp32f" EXACT,
        .about = "RISC-V of 32 bits with floats: 32 registers, fused" },
    { .name = "rv32imafcv",
        RV32_ROW,
        .registers = 32,
        .integers = INTEGER_RVV,
        .flags = "-O2 -march=rv32imafc_zve32f_zvl128b -mabi=ilp32f" AS_WRITTEN EXACT,
        .about = "with vectors (Zve32f or V) of 128 bits or more" },
    { .name = "rv64gc",
        RV64_ROW,
        .registers = 32,
        .flags = "-O2 -march=rv64gc -mabi=lp64d -mcmodel=medany" EXACT,
        .about = "RISC-V of 64 bits, without an operating system: 32 registers, fused" },
    { .name = "rv64gcv",
        RV64_ROW,
        .registers = 32,
        .integers = INTEGER_RVV,
        .flags = "-O2 -march=rv64gcv -mabi=lp64d -mcmodel=medany" AS_WRITTEN EXACT,
        .about = "with vectors (V) of 128 bits or more" },
    { .name = "vulkan", .backend_name = "vulkan", .flags = "-O2", .about = "SPIR-V kernels for GPUs" },
    { .name = "plan", .backend_name = "plan", .about = "no code: kernels, and where values lie, as text" },
};

static size_t cache_size(int name, size_t otherwise) {
    long n = sysconf(name);
    return n > 0 ? (size_t)n : otherwise;
}

static void fill_native(Target *t) {
#if defined(__x86_64__) && defined(__GNUC__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl")) {
        t->lanes = 16;
        t->registers = 32;
    } else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        t->lanes = 8;
        t->registers = 16;
    } else {
        t->lanes = 4;
        t->registers = 16;
        t->unfused = true;
    }
#elif defined(__ARM_NEON)
    t->lanes = 4;
    t->registers = 32;
#endif
#ifdef _SC_LEVEL1_DCACHE_SIZE
    t->l1 = cache_size(_SC_LEVEL1_DCACHE_SIZE, t->l1);
    t->l2 = cache_size(_SC_LEVEL2_CACHE_SIZE, t->l2);
    t->l3 = cache_size(_SC_LEVEL3_CACHE_SIZE, t->l3);
#endif
}

static const Target *find(const char *name, size_t n) {
    for (size_t i = 0; i < COUNT(targets); i++)
        if (strlen(targets[i].name) == n && !memcmp(name, targets[i].name, n)) return &targets[i];
    return NULL;
}

// Adds a part, keeping the narrowest first; false where one file cannot hold it with the others.
static bool add_part(Target *all, const Target *part) {
    if (!part || !part->features || all->n_parts == MAX_TARGETS) return false;
    int at = all->n_parts;
    for (; at > 0 && all->parts[at - 1]->lanes >= part->lanes; at--) {
        if (all->parts[at - 1] == part) return false;
        all->parts[at] = all->parts[at - 1];
    }
    all->parts[at] = part;
    all->n_parts++;
    const Target *widest = all->parts[all->n_parts - 1];
    all->l1 = widest->l1;
    all->l2 = widest->l2;
    all->l3 = widest->l3;
    return true;
}

static bool find_several(const char *names, Target *out) {
    *out = (Target){ .name = names, .backend_name = "c", .vectors = true, .registers = 16, .flags = "-O3" };
    for (const char *s = names;; s++) {
        size_t n = strcspn(s, ",");
        if (!add_part(out, find(s, n))) return false;
        s += n;
        if (!*s) return true;
    }
}

bool target_find(const char *name, Target *out) {
    if (strchr(name, ',')) return find_several(name, out);
    const Target *found = find(name, strlen(name));
    if (!found) return false;
    *out = *found;
    if (out->native) fill_native(out);
    return true;
}

const Target *target_at(int i) { return i < (int)COUNT(targets) ? &targets[i] : NULL; }

const char *target_host(void) {
#if defined(__x86_64__)
    return "x86-64";
#elif defined(__aarch64__)
    return "aarch64";
#else
    return "";
#endif
}
