// SPDX-License-Identifier: MIT OR Apache-2.0
// blocks.c: the blocks that workgroups compute of products, and the model of their time.
#ifndef BURNCC_GPU_BLOCKS_H
#define BURNCC_GPU_BLOCKS_H
#include "plan.h"

#include <stdbool.h>
#include <stdint.h>

// share: of a core's multiply-adds that it gets where blocks abound
typedef struct Block { int bm, bn, bk, tm, tn, slices, stages; double share; } Block;
// A choice for a product found in a loop nest: into how many shares its terms are cut, too.
typedef struct BlockShares { Block block; int64_t shares; } BlockShares;
// The threads of a workgroup of a product of few rows.
typedef struct RowThreads { int across, along; int64_t shares; } RowThreads;
// A product as records and models of time know it; of few rows: wide: as Lies has it for the right factor, whose
// elements have so many bytes, 0: four.
typedef struct ProductShape { int64_t batch, m, n, k; int wide, bytes; } ProductShape;
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
double gpu_shares_time(const ProductShape *s, const BlockShares *b);
double gpu_rows_time(const ProductShape *s, const RowThreads *r);
bool gpu_blocks_reach(int64_t m, int64_t n, int64_t bm, int64_t bn);        // does a dispatch have as many workgroups?
bool gpu_fills_blocks(int64_t batch, int64_t m, int64_t n, int64_t k);      // is a product as large as templates want?
int64_t gpu_terms(const Kernel *k);                     // of a product, as templates count them: words, of bytes
// How a factor lies in memory. wide: 0: it is not read four at a time, 1: it is along the terms, 2: along its own;
// where neighbours in memory lie: along the terms (and not along its own), or along its own; guarded: are some elements
// none?
typedef struct Lies { int wide; bool terms, own, guarded; } Lies;
Lies gpu_lies(Arena *a, Kernel *k, int which, int own);             // own: COORD_M or COORD_N; sets its fours too

// ---------------------------------------------------------------- choices.c: what `burncc tune` measures
// Do templates and devices allow these?
bool gpu_block_fits(const void *shape, const void *block);              // ProductShape, Block: gemm.comp
bool gpu_shares_fit(const void *shape, const void *shares);             // BlockShares: product.comp
bool gpu_rows_fit(const void *shape, const void *threads);              // RowThreads: rows.comp
// Gives the kernel its signature and its choice: the record's, which then stands in *tiles, or what stands there.
struct TuneForm;
void gpu_choose(Arena *a, Kernel *k, const Options *o, const ProductShape *s, const char *more,
    const struct TuneForm *form, bool (*fits)(const void *shape, const void *tiles), void *tiles, size_t bytes);
enum { ROW_FORMS = 5, MOST_BLOCK_SHARES = 32, MOST_ROW_SHARES = 64 };
extern const RowThreads gpu_row_forms[ROW_FORMS];
#endif
