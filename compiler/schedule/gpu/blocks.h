// SPDX-License-Identifier: MIT OR Apache-2.0
// blocks.c: the blocks that workgroups compute of products, and the model of their time.
#ifndef BURNCC_GPU_BLOCKS_H
#define BURNCC_GPU_BLOCKS_H
#include "plan.h"

#include <stdbool.h>
#include <stdint.h>

// share: of a core's multiply-adds that it gets where blocks abound
typedef struct Block { int bm, bn, bk, tm, tn, slices, stages; double share; } Block;
enum { BLOCKS = 5 };
extern const Block gpu_blocks[BLOCKS];

// A large discrete GPU, as measured on an H100: others have fewer cores, in like proportion.
typedef struct Gpu {
    double cores, macs;                                 // multiply-adds of a core in a microsecond
    double way, meet, launch;                           // to memory and back; until all shares of a block have met; of
                                                        // one more kernel
    double bytes;                                       // of a sum's parts, in a microsecond
    double stream;                                      // of what is read once in order, as its makers have it
} Gpu;
extern const Gpu gpu_machine;

enum { MAX_GROUPS = 65535,                              // along an axis, on every device
       MAX_COUNTERS = 1 << 16 };                        // of shares, of one kernel (runtime/vulkan_steps.c)
// Microseconds of so many workgroups, each of so many steps: a way to memory and back, and arithmetic, which takes
// `work` where a core has the workgroup alone, and work / share where workgroups abound.
double gpu_steps_time(double groups, int64_t steps, double cores, double way, double work, double share);
double gpu_block_time(const Block *b, double batch, int64_t m, int64_t n, int64_t k);
bool gpu_fills_blocks(int64_t batch, int64_t m, int64_t n, int64_t k);      // is a product as large as templates want?
// How a factor lies in memory. wide: 0: it is not read four at a time, 1: it is along the terms, 2: along its own;
// where neighbours in memory lie: along the terms (and not along its own), or along its own; guarded: are some elements
// none?
typedef struct Lies { int wide; bool terms, own, guarded; } Lies;
Lies gpu_lies(Arena *a, Kernel *k, int which, int own);             // own: COORD_M or COORD_N; sets its fours too
#endif
