// SPDX-License-Identifier: MIT OR Apache-2.0
// The machines that code is made for.
#ifndef BURNCC_TARGET_H
#define BURNCC_TARGET_H

#include "base/base.h"
#include "target/backend.h"

enum { MAX_TARGETS = 4 };
// Floats that templates count as a vector where there are none: a tile of 4 x 4 sums in single registers.
enum { SCALAR_LANES = 4 };
// What one instruction does with integers that no expression of C says. DSP: two products of 16 bits and their sum
// (SMLAD; arm_acle.h, __ARM_FEATURE_SIMD32). MVE: vectors of 128 bits with sums of products of bytes (VMLADAVA;
// arm_mve.h, __ARM_FEATURE_MVE). RVV: RISC-V's vectors, whose length the processor knows (riscv_vector.h).
typedef enum IntegerUnit { INTEGER_PLAIN, INTEGER_DSP, INTEGER_MVE, INTEGER_RVV } IntegerUnit;
typedef struct Target {
    const char *name;
    const char *backend_name; const Backend *backend;   // backend_find(backend_name), once a command has chosen it
    bool vectors, native;
    int lanes, registers;                               // lanes 0: the C compiler's flags say, or the parts
    // bytes are multiplied signed, and their sums brought to the next bytes by a multiplication and a shift
    bool fixed_point;
    bool unfused;                                       // a multiply-add is two instructions
    bool soft_float;                                    // floats are calls of the C compiler's library
    IntegerUnit integers;
    int integer_registers;                              // of 32 bits, for a loop's use; 0: nobody counts them
    bool short_product;                                 // a product of 32 bits by 32 keeps 32 (Cortex-M0)
    // no operating system: memory is the price, not caches, and weights are arrays, which stay in flash
    bool ram_first;
    size_t l1, l2, l3;
    // the processors that alone can run it; NULL: any that there is a compiler for
    const char *arch;
    const char *flags;                                  // for gcc and clang
    // a cross compiler's: the command where CC is not set, and clang's --target; NULL: this machine's own
    const char *cc, *triple;
    // features: what a file of several targets asks the processor for; NULL: it cannot be one of several
    const char *features, *about;
    // "x86-64-v2,x86-64-v3": the code of each, narrowest first, chosen at run time
    const struct Target *parts[MAX_TARGETS]; int n_parts;
} Target;
// a name of the table in target.c, or several of x86-64's with commas between
bool target_find(const char *name, Target *out);
const Target *target_at(int i);                         // row i of the table; NULL after the last
const char *target_host(void);                          // the `arch` that this process runs on, "" for others
#endif
