// SPDX-License-Identifier: MIT OR Apache-2.0
// The machines that code is made for: vector width in floats, vector registers and cache sizes in bytes; what schedules are chosen by.
#include "../burncc.h"

#include <string.h>
#include <unistd.h>

static const Target targets[] = {
    // name         vectors native lanes regs  L1        L2          L3
    { "generic",    true,  false, 0,  16, 32 << 10, 1 << 20,   16 << 20 },      // width chosen by the C compiler's flags
    { "portable",   false, false, 0,  16, 32 << 10, 256 << 10, 4 << 20 },       // plain C99
    { "native",     true,  true,  0,  16, 32 << 10, 1 << 20,   16 << 20 },      // this machine, filled in below
    { "x86-64-v3",  true,  false, 8,  16, 32 << 10, 512 << 10, 16 << 20 },      // AVX2 and FMA
    { "x86-64-v4",  true,  false, 16, 32, 32 << 10, 1 << 20,   16 << 20 },      // AVX-512
    { "vulkan",     false, false, 0,  0,  0,        0,         0 },             // SPIR-V kernels
};

static size_t cache_size(int name, size_t otherwise) {
    long n = sysconf(name);
    return n > 0 ? (size_t)n : otherwise;
}

static void fill_native(Target *t) {
#if defined(__x86_64__) && defined(__GNUC__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl")) { t->lanes = 16; t->registers = 32; }
    else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) { t->lanes = 8; t->registers = 16; }
    else { t->lanes = 4; t->registers = 16; }
#elif defined(__ARM_NEON)
    t->lanes = 4; t->registers = 32;
#endif
#ifdef _SC_LEVEL1_DCACHE_SIZE
    t->l1 = cache_size(_SC_LEVEL1_DCACHE_SIZE, t->l1);
    t->l2 = cache_size(_SC_LEVEL2_CACHE_SIZE, t->l2);
    t->l3 = cache_size(_SC_LEVEL3_CACHE_SIZE, t->l3);
#endif
}

bool target_find(const char *name, Target *out) {
    for (size_t i = 0; i < COUNT(targets); i++) {
        if (strcmp(name, targets[i].name)) continue;
        *out = targets[i];
        if (out->native) fill_native(out);
        return true;
    }
    return false;
}
