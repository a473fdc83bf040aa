// SPDX-License-Identifier: MIT OR Apache-2.0
// Which attention a GPU's template takes (templates/glsl/attention.comp), and the block that a workgroup computes.
//
// In: attention in canonical form (schedule/attention.c). Out: holes. Blocks are as large as shared memory and a
// thread's registers allow, and no larger than keeps all cores busy. Of 16 bits there is a form for matrix units
// besides (templates/glsl/attention_mma.comp).
#include "blocks.h"
#include "tile.h"
#include "schedule/cpu/templates.h"
#include "schedule/schedule.h"

typedef struct QueryBlock { int bm, bn, tm, across; } QueryBlock;
static const QueryBlock blocks[] = { { 32, 32, 4, 16 }, { 16, 32, 2, 16 }, { 8, 32, 2, 16 } };

enum { PIECE = 64, SHARED = 32 << 10, SUMS = 64 };       // elements; bytes that all devices of note have; registers

static int64_t piece_of(int64_t n) { return n < PIECE ? ceil_div(n, 4) * 4 : PIECE; }

// as the template counts them
static int64_t shared_bytes(const QueryBlock *b, const Attention *s) {
    const int64_t ck = piece_of(s->k), cv = piece_of(s->d), pitch = ceil_div(ck, 32) * 32, of_keys = b->bn * pitch,
                  of_shares = b->bm * ceil_div(b->bn, 32) * 32;
    const int64_t queries = b->bm * ceil_div(s->k, ck) * pitch;
    return 4 * (queries + max64(of_keys, of_shares) + max64(b->bn * cv, b->bm * b->across));
}

static bool fits(const QueryBlock *b, const Attention *s) {
    const int64_t cv = piece_of(s->d), each = ceil_div(cv, 4 * b->across) * 4;
    return shared_bytes(b, s) <= SHARED && b->tm * ceil_div(s->d, cv) * each <= SUMS;
}

static int64_t groups_of(const QueryBlock *b, const Attention *s) {
    return s->batch[0] * s->batch[1] * s->batch[2] * ceil_div(s->m, b->bm);
}

// The largest that fits, or the next one where that leaves cores without work; NULL: none fits.
static const QueryBlock *best_block(const Attention *s) {
    const QueryBlock *best = NULL;
    for (size_t i = 0; i < COUNT(blocks); i++) {
        const bool idle = best && groups_of(best, s) < (int64_t)gpu_machine.cores && s->m > blocks[i].bm;
        if (fits(&blocks[i], s) && (!best || idle)) best = &blocks[i];
    }
    return best;
}

// Queries and values are whole in shared memory there, and in registers.
static bool suits_units(const Attention *s) {
    enum { LONGEST = 128 };
    return s->k <= LONGEST && s->d <= LONGEST;
}

// In 16 bits, where this kernel has no form for them, a device's matrix units are several times as fast at products:
// then long rows of scores are worth their way to memory, 8 bytes of each.
static bool beats_products(const Attention *s) {
    const double scores = (double)(s->batch[0] * s->batch[1] * s->batch[2]) * (double)s->m * (double)s->n,
                 macs = scores * (double)(s->k + s->d), rate = gpu_machine.cores * gpu_machine.macs;
    const double here = macs / (rate * 0.5), there = macs / (rate * 3) + 8 * scores / gpu_machine.bytes
        + 2 * gpu_machine.launch;
    return here < there;
}

bool gpu_attends(const Kernel *k, const Options *o) {
    const Attention *s = &k->attention;
    if (s->pass || k->sizes.n || s->batch[1] * s->batch[2] > MAX_GROUPS || s->batch[0] > MAX_GROUPS) return false;
    if (ceil_div(s->m, blocks[COUNT(blocks) - 1].bm) > MAX_GROUPS) return false;
    return best_block(s) && (!o->precision || o->no_units || suits_units(s) || beats_products(s));
}

// Always four subgroups: one, two and eight of them were no faster on an H200, with 128 to 2,048 queries.
static AttentionUnits units_of(const Plan *p, const Kernel *k) {
    const Attention *s = &k->attention;
    const AttentionUnits u = { .tiles = 1, .subgroups = 4, .keys = 32 };
    if (!p->options->precision || p->options->no_units || p->parent || !suits_units(s)) return (AttentionUnits){ 0 };
    for (int i = 0; i < 3; i++)
        if (!gpu_is_half(p, k->operand[i])) return (AttentionUnits){ 0 };
    return u;
}

void gpu_attention(const Plan *p, Kernel *k) {
    Arena *a = p->arena;
    Attention *s = &k->attention;
    const QueryBlock *b = best_block(s);
    s->units = units_of(p, k);
    TEMPLATE_HOLES(a, k, { "BATCH1", s->batch[1] }, { "BATCH2", s->batch[2] }, { "M", s->m }, { "N", s->n },
        { "DK", s->k }, { "DV", s->d }, { "BM", b->bm }, { "BN", b->bn }, { "TM", b->tm }, { "ACROSS", b->across },
        { "CK", piece_of(s->k) }, { "CV", piece_of(s->d) }, { "EMPTY", s->empty },
        { "MASKED", s->first || s->last });
}
