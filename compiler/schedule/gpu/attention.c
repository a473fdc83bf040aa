// SPDX-License-Identifier: MIT OR Apache-2.0
// Which attention a GPU's template takes (templates/glsl/attention.comp), and the block that a workgroup computes.
//
// In: attention in canonical form (schedule/attention.c). Out: holes. Blocks are as large as shared memory and a
// thread's registers allow, and no larger than keeps all cores busy. Of 16 bits there is a form for matrix units
// besides (templates/glsl/attention_mma.comp). Few queries have a template of their own, whose keys the run may count
// (templates/glsl/attention_rows.comp).
#include "blocks.h"
#include "tile.h"
#include "schedule/cpu/templates.h"
#include "schedule/schedule.h"

typedef struct QueryBlock { int bm, bn, tm, across; } QueryBlock;
static const QueryBlock blocks[] = { { 32, 32, 4, 16 }, { 16, 32, 2, 16 }, { 8, 32, 2, 16 } };

// elements; bytes that all devices of note have; registers; of a workgroup of few
enum { PIECE = 64, SHARED = 32 << 10, SUMS = 64, MOST_QUERIES = 8 };

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

// ---------------------------------------------------------------- few queries
static bool strides_known(const Kernel *k) {
    bool known = true;
    for (int i = 0; i < 3; i++) {
        known = known && dim_is_const(k->operand_at[i]) && dim_is_const(k->attention.of[i].row)
            && dim_is_const(k->attention.of[i].col);
        for (int j = 0; j < 3; j++) known = known && dim_is_const(k->attention.of[i].batch[j]);
    }
    return known;
}

// The last axis along which keys and values are the same ones, where a workgroup may have all its queries; 3: none.
static int axis_together(const Attention *s) {
    for (int i = 2; i >= 0; i--)
        if (s->batch[i] > 1 && s->batch[i] * s->m <= MOST_QUERIES && !s->of[1].batch[i] && !s->of[2].batch[i]) return i;
    return 3;
}

// All 0: it has many queries, or few keys, or some size but that of the keys is the run's. keys: at most so many.
// A workgroup begins with some way to memory and ends with meeting the others: it should have a few blocks of keys.
static AttentionRows rows_of(const Kernel *k, int64_t keys) {
    enum { LEAST_KEYS = 64, LONGEST = 256, EACH_SHARE = 256, MOST_SHARES = 32, FEW = 4 };
    const Attention *s = &k->attention;
    AttentionRows r = { .together = axis_together(s), .each_share = EACH_SHARE };
    bool known = dim_is_const(s->m) && s->k <= LONGEST && s->d <= LONGEST && strides_known(k);
    for (int i = 0; i < 3; i++) known = known && dim_is_const(s->batch[i]) && s->batch[i] > 0;
    if (!known || s->m < 1 || s->m > MOST_QUERIES || (keys < LEAST_KEYS && !k->sizes.n)) return (AttentionRows){ 0 };
    const int64_t heads = r.together < 3 ? s->batch[r.together] : 1;
    r.rows = (int)(heads * s->m);
    r.threads = r.rows > FEW ? 128 : 256;
    for (r.columns = 1; r.columns < ceil_div(s->d, 4);) r.columns *= 2;
    r.blocks = s->batch[0] * s->batch[1] * s->batch[2] / heads;
    const int64_t wanted = FEW * (int64_t)gpu_machine.cores / r.blocks;
    r.shares = (int)max64(1, min64(min64(wanted, ceil_div(keys, EACH_SHARE)), MOST_SHARES));
    if (r.blocks > MAX_COUNTERS) r.shares = 1;
    return r;
}

bool gpu_queries(const Plan *p, Kernel *k) {
    Attention *s = &k->attention;
    s->few = rows_of(k, dim_upper(p->graph, s->n));
    if (s->few.shares > 1)
        k->scratch_bytes = s->few.blocks * s->few.shares * s->few.rows * (1 + ceil_div(s->d, 4)) * 16;
    return s->few.rows > 0;
}

static bool from_softmax(const Value *v, int depth) {
    enum { FAR = 8 };
    const Node *n = v && !v->data ? v->def : NULL;
    if (!n || depth > FAR || n->op == OP_Softmax) return n && n->op == OP_Softmax;
    bool found = false;
    for (int i = 0; i < n->n_in && !found && (op_is_map(n->op) || n->op == OP_Reshape); i++)
        found = from_softmax(n->in[i], depth + 1);
    return found;
}

bool gpu_attends_few(const Node *n) {
    const Type *y = &n->out[0]->type;
    return n->op == OP_MatMul && y->dtype == DT_F32 && y->rank > 1 && type_is_static(y)
        && y->dim[y->rank - 2] <= MOST_QUERIES && from_softmax(n->in[0], 0);
}

bool gpu_attends(const Kernel *k, const Options *o) {
    const Attention *s = &k->attention;
    if (s->pass || s->batch[1] * s->batch[2] > MAX_GROUPS || s->batch[0] > MAX_GROUPS) return false;
    if (rows_of(k, k->sizes.n ? INT32_MAX : s->n).rows) return true;
    if (k->sizes.n) return false;
    if (ceil_div(s->m, blocks[COUNT(blocks) - 1].bm) > MAX_GROUPS) return false;
    return best_block(s) && (!o->precision || o->no_units || suits_units(s) || beats_products(s));
}

// Always four subgroups: one, two and eight of them were no faster on an H200, with 128 to 2,048 queries. Of two tiles
// of queries each block of keys and values feeds twice as much, where registers have room for them and workgroups for
// all cores are left.
static AttentionUnits units_of(const Plan *p, const Kernel *k) {
    enum { SHORT = 64, EACH_CORE = 4 };
    const Attention *s = &k->attention;
    AttentionUnits u = { .tiles = 1, .subgroups = 4, .keys = 32 };
    const int64_t groups = s->batch[0] * s->batch[1] * s->batch[2] * ceil_div(s->m, 16 * 2 * u.subgroups);
    if (s->k <= SHORT && s->d <= SHORT && groups >= EACH_CORE * (int64_t)gpu_machine.cores) u.tiles = 2;
    if (!p->options->precision || p->options->no_units || p->parent || !suits_units(s)) return (AttentionUnits){ 0 };
    for (int i = 0; i < 3; i++)
        if (!gpu_is_half(p, k->operand[i])) return (AttentionUnits){ 0 };
    return u;
}

void gpu_attention(const Plan *p, Kernel *k) {
    Arena *a = p->arena;
    Attention *s = &k->attention;
    if (s->few.rows) return;
    const QueryBlock *b = best_block(s);
    s->units = units_of(p, k);
    TEMPLATE_HOLES(a, k, { "BATCH1", s->batch[1] }, { "BATCH2", s->batch[2] }, { "M", s->m }, { "N", s->n },
        { "DK", s->k }, { "DV", s->d }, { "BM", b->bm }, { "BN", b->bn }, { "TM", b->tm }, { "ACROSS", b->across },
        { "CK", piece_of(s->k) }, { "CV", piece_of(s->d) }, { "EMPTY", s->empty },
        { "MASKED", s->first || s->last });
}
