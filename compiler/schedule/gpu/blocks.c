// SPDX-License-Identifier: MIT OR Apache-2.0
// The block of a product found in a loop nest (templates/glsl/product.comp) that a workgroup computes.
//
// In: a loop nest that is a product. Out: its holes, among them into how many shares its terms are cut. A block's
// operands pass through shared memory once for all its threads, so that far memory gives bm * bn / (bm + bn)
// multiply-adds for each element that it brings, and shared memory tm * tn / (tm + tn): large blocks are fast where
// there are enough of them for all cores. A block takes a step for bk * slices terms, which is a way to memory and back
// and then arithmetic; the blocks of a core hide each other's ways. The model below says so in microseconds.
#include "blocks.h"
#include "tile.h"
#include "schedule/cpu/templates.h"
#include "schedule/cpu/tune.h"
#include "schedule/schedule.h"

// None wants more than 256 threads and 32 KiB of shared memory.
const Block gpu_blocks[BLOCKS] = {
    { 128, 128, 16, 8, 8, 1, 1, 0.79 },
    { 128, 64, 16, 8, 4, 1, 2, 0.70 },
    { 64, 64, 16, 4, 4, 1, 2, 0.60 },
    { 64, 64, 8, 8, 8, 4, 1, 0.62 },
    { 32, 32, 16, 4, 4, 2, 2, 0.47 },
};
const Gpu gpu_machine = { .cores = 132, .macs = 197e3, .way = 0.5, .meet = 3, .launch = 4.5, .bytes = 2e6,
    .stream = 3.3e6 };

enum { NEAR = 4 };                                      // elements from each other that share what memory brings

double gpu_steps_time(double groups, int64_t steps, double cores, double way, double work, double share) {
    const double together = (double)(int64_t)((groups + cores - 1) / cores), busy = together * work / share,
                 alone = way + work;
    return (double)steps * (busy > alone ? busy : alone);
}

double gpu_block_time(const Block *b, double batch, int64_t m, int64_t n, int64_t k) {
    return gpu_steps_time(batch * (double)(ceil_div(m, b->bm) * ceil_div(n, b->bn)), ceil_div(k, b->bk * b->slices),
        gpu_machine.cores, gpu_machine.way, (double)b->bm * b->bn * b->bk * b->slices / gpu_machine.macs, b->share);
}

// Shares end in a way to memory and back for the sums of each.
double gpu_shares_time(const ProductShape *s, const BlockShares *c) {
    const double batch = (double)s->batch * (double)c->shares,
                 sums = c->shares == 1 ? 0 :
                     gpu_machine.meet + 2 * batch * (double)s->m * (double)s->n * 4 / gpu_machine.bytes;
    return gpu_block_time(&c->block, batch, s->m, s->n, ceil_div(s->k, c->shares)) + sums;
}

// The block and the shares that are done first.
static BlockShares best_block(const ProductShape *s) {
    BlockShares best = { gpu_blocks[0], 1 };
    double least = gpu_shares_time(s, &best);
    for (const Block *b = gpu_blocks; b < gpu_blocks + BLOCKS; b++)
        for (int64_t shares = 1; shares <= MOST_BLOCK_SHARES && shares * b->bk * b->slices < s->k; shares *= 2) {
            const BlockShares one = { *b, shares };
            const double counters = (double)s->batch * (double)(ceil_div(s->m, b->bm) * ceil_div(s->n, b->bn));
            if ((double)shares * (double)s->batch > MAX_GROUPS || counters > MAX_COUNTERS) break;
            if (!gpu_blocks_reach(s->m, s->n, b->bm, b->bn)) break;
            const double time = gpu_shares_time(s, &one);
            if (time >= least) continue;
            least = time;
            best = one;
        }
    return best;
}

bool gpu_blocks_reach(int64_t m, int64_t n, int64_t bm, int64_t bn) {
    return ceil_div(m, bm) <= MAX_GROUPS && ceil_div(n, bn) <= MAX_GROUPS;
}

// The first block of each table is the largest.
bool gpu_fills_blocks(int64_t batch, int64_t m, int64_t n, int64_t k) {
    enum { LEAST_ROWS = 8, LEAST_COLUMNS = 16, LEAST_TERMS = 16 };              // fewer leave most of a block empty
    return batch > 0 && m >= LEAST_ROWS && n >= LEAST_COLUMNS && k >= LEAST_TERMS && batch <= MAX_GROUPS
        && gpu_blocks_reach(m, n, gpu_blocks->bm, gpu_blocks->bn);
}

bool gpu_takes_conv(const Node *n) {
    const Type *x = &n->in[0]->type, *w = &n->in[1]->type, *y = &n->out[0]->type;
    const bool bytes = node_of_bytes(n) && y->dtype == DT_I32;
    if ((y->dtype != DT_F32 && !bytes) || !type_is_static(x) || !type_is_static(w) || !type_is_static(y)) return false;
    const int64_t count = type_count(y), rows = w->dim[0] / node_int(n, "group", 1);
    return count && gpu_fills_blocks(1, rows, count / w->dim[0], ceil_div(type_count(w) / w->dim[0], bytes ? 4 : 1));
}

int64_t gpu_terms(const Kernel *k) {
    const int64_t terms = k->product.of[COORD_K].size;
    return k->product.bytes ? ceil_div(terms, 4) : terms;
}

// ---------------------------------------------------------------- how a factor lies in memory
typedef struct Lie { const Kernel *kernel; const Coordinate *of; int64_t coef[64], c0; } Lie;

// The term of the index that changes from one value of a coordinate to the next: its last digits as one number, or the
// last one; -1: there is none. run: how many values it goes on without the others.
static int last_term(const Lie *l, int which, int64_t *run) {
    const Coordinate *c = &l->of[which];
    const int n = l->kernel->axes.n;
    *run = 1;
    for (int i = c->n - 1; i >= 0; i--) {
        *run *= l->kernel->axes.at[c->axis[i]].extent;
        if (l->coef[n + c->axis[i]]) return n + c->axis[i];
    }
    if (c->n) *run = l->kernel->axes.at[c->axis[c->n - 1]].extent;
    return c->n ? c->axis[c->n - 1] : -1;
}

// Can n elements along this coordinate be read at once, wherever a multiple of n of it begins?
static bool runs_along(const Lie *l, int which, int n) {
    int64_t run;
    const int term = last_term(l, which, &run);
    if (term < 0 || l->coef[term] != 1 || run % n || l->c0 % n) return false;
    for (int i = 0; i < 2 * l->kernel->axes.n; i++)
        if (i != term && l->coef[i] % n) return false;
    return true;
}

// Are four terms in two bytes, one after the other, wherever a multiple of four begins? Weights of four bits are: their
// last digit says which half of a byte, and does not walk memory.
static bool pairs_of_terms(const Lie *l) {
    const Coordinate *c = &l->of[COORD_K];
    const int n = l->kernel->axes.n, half = c->n ? c->axis[c->n - 1] : 0, byte = c->n > 1 ? c->axis[c->n - 2] : 0;
    if (c->n < 2 || l->kernel->axes.at[half].extent != 2 || l->coef[half] || l->coef[n + half]) return false;
    const int term = l->coef[byte] ? byte : n + byte;
    if (l->coef[term] != 1 || l->kernel->axes.at[byte].extent % 2 || l->c0 % 2) return false;
    for (int i = 0; i < 2 * n; i++)
        if (i != term && l->coef[i] % 2) return false;
    return true;
}

typedef struct Found { Expr *load[16]; int n; bool *seen; } Found;

static void find_loads(Found *f, Expr *e) {
    if (!e || f->seen[e->id]) return;
    f->seen[e->id] = true;
    if (e->op == E_Load && f->n < (int)COUNT(f->load)) f->load[f->n++] = e;
    for (int i = 0; i < 3; i++) find_loads(f, e->a[i]);
}

static int loads_of(const Found *f, const Value *v) {
    int n = 0;
    for (int i = 0; i < f->n; i++) n += f->load[i]->value == v;
    return n;
}

// Elements of these are taken apart by codegen/gpu/product.c.
static bool has_fours(DType d) { return d == DT_F32 || (dtype_size(d) < 4 && d != DT_I16 && d != DT_U16); }

// The values that are loaded four at a time along a coordinate.
static void find_fours(Kernel *k, int which, int coordinate, const Found *f) {
    Lie l = { .kernel = k, .of = k->product.of };
    k->product.fours[which].n = 0;
    k->product.fours[which].paired = 0;
    for (int i = 0; i < f->n && k->product.fours[which].n < MAX_FOURS; i++) {
        const Expr *load = f->load[i];
        const bool one = !load->a[1] && loads_of(f, load->value) == 1 && has_fours(load->value->type.dtype);
        if (!one || !expr_affine(load->a[0], 2 * k->axes.n, l.coef, &l.c0)) continue;
        const bool paired = coordinate == COORD_K && load->value->type.dtype == DT_U8 && pairs_of_terms(&l);
        if (!paired && !runs_along(&l, coordinate, 4)) continue;
        if (paired) k->product.fours[which].paired |= 1u << k->product.fours[which].n;
        k->product.fours[which].value[k->product.fours[which].n++] = load->value;
    }
}

// The load that walks most of memory; NULL: there is none.
static const Expr *widest(const Found *f) {
    const Expr *best = NULL;
    for (int i = 0; i < f->n; i++) {
        const Expr *index = f->load[i]->a[0];
        if (!best || index->hi - index->lo > best->a[0]->hi - best->a[0]->lo) best = f->load[i];
    }
    return best;
}

// From one term to the next that is elsewhere: packed elements have neighbours at one place.
static int64_t step_of_terms(const Lie *l) {
    const Coordinate *c = &l->of[COORD_K];
    for (int i = c->n - 1; i >= 0; i--) {
        const int64_t step = l->coef[l->kernel->axes.n + c->axis[i]];
        if (step || l->coef[c->axis[i]]) return step ? step : l->coef[c->axis[i]];
    }
    return 0;
}

// false: nobody can say.
static bool elements_lie(Arena *a, const Kernel *k, int which, int own, Found *f, Lies *lies) {
    Lie l = { .kernel = k, .of = k->product.of };
    int64_t run;
    *f = (Found){ .seen = NEW_ARRAY(a, bool, expr_count(k->exprs) + 1) };
    find_loads(f, k->product.factor[which]);
    for (int i = 0; i < f->n; i++) lies->guarded = lies->guarded || f->load[i]->a[1];
    const Expr *load = widest(f);
    if (!load || !expr_affine(load->a[0], 2 * k->axes.n, l.coef, &l.c0)) return false;
    const int across = last_term(&l, own, &run);
    const int64_t step = across < 0 ? 0 : l.coef[across];
    lies->own = step == 1;
    lies->terms = step_of_terms(&l) == 1 && (step < -NEAR || step > NEAR || step == 0);
    return true;
}

// Is this factor one load, of n elements at a time along this coordinate, whose guard asks nothing of them?
static bool reads_along(const Kernel *k, const Expr *e, int coordinate, int n) {
    const Coordinate *c = &k->product.of[coordinate];
    Lie l = { .kernel = k, .of = k->product.of };
    if (e->op != E_Load || !c->n || (e->a[2] && e->a[2]->op != E_Const)) return false;
    const int last = c->axis[c->n - 1];
    if (e->a[1] && (k->axes.at[last].extent % n || e->a[1]->axes_used >> last & 1)) return false;
    return expr_affine(e->a[0], 2 * k->axes.n, l.coef, &l.c0) && runs_along(&l, coordinate, n);
}

static bool eights_along(const Kernel *k, int which, int coordinate) {
    const Expr *e = k->product.factor[which];
    return reads_along(k, e, coordinate, 8) && (!e->a[2] || e->a[2]->c.f == 0);
}

// How many words of four terms a factor of bytes is read by at once: 4, 1, or 0 where each byte is read alone.
static int words_at_once(const Kernel *k, int which) {
    enum { WORD = 4 };
    const Expr *e = k->product.factor[which]->a[0];
    if (!reads_along(k, e, COORD_K, WORD)) return 0;
    return !e->a[1] && reads_along(k, e, COORD_K, 4 * WORD) ? 4 : 1;
}

Lies gpu_lies(Arena *a, Kernel *k, int which, int own) {
    Found f;
    Lies lies = { 0 };
    const bool known = elements_lie(a, k, which, own, &f, &lies);
    if (k->product.bytes) {
        const int words = words_at_once(k, which);
        k->product.words[which] = (signed char)words;
        lies.wide = words == 4;
        lies.terms = lies.terms || words;
    }
    for (int wide = 1; wide <= 2 && !lies.wide && known && !k->product.bytes; wide++) {
        find_fours(k, which, wide == 1 ? COORD_K : own, &f);
        if (k->product.fours[which].n) lies.wide = wide;
    }
    return lies;
}

bool gpu_product(const Plan *plan, Kernel *k) {
    Arena *a = plan->arena;
    const Options *o = plan->options;
    Kernel *product = product_of(a, k);
    if (!product) return false;
    // a nest's operations are its products, without the sums
    product->flops += (double)product->product.of[COORD_B].size * (double)product->product.of[COORD_M].size
        * (double)product->product.of[COORD_N].size * (double)product->product.of[COORD_K].size;
    if (gpu_rows(plan, product)) {
        *k = *product;
        return true;
    }
    const Coordinate *of = product->product.of;
    const ProductShape s = { of[COORD_B].size, of[COORD_M].size, of[COORD_N].size, gpu_terms(product), 0, 0 };
    if (!gpu_fills_blocks(s.batch, s.m, s.n, s.k)) return false;
    *k = *product;
    const Lies left = gpu_lies(a, k, 0, COORD_M), right = gpu_lies(a, k, 1, COORD_N);
    BlockShares best = best_block(&s);
    gpu_choose(a, k, o, &s,
        arena_printf(a, "%s a=%d:%d:%d b=%d:%d:%d", k->product.bytes ? " bytes" : "", left.wide, left.terms,
            left.guarded, right.wide, right.terms, right.guarded),
        &tune_product, gpu_shares_fit, &best, sizeof best);
    const Block *b = &best.block;
    for (int i = 0; i < 2; i++) {
        const int own = i ? COORD_N : COORD_M;
        const bool bytes = k->product.bytes, along = bytes ? reads_along(k, k->product.factor[i]->a[0], COORD_K, 16) :
                                                             eights_along(k, i, COORD_K);
        k->units.wide[i] = along ? 1 : !bytes && eights_along(k, i, own) ? 2 : 0;
        k->units.runs[i] = bytes || (i ? right.terms : left.terms);
    }
    product_lift(k);
    k->product.shares = best.shares;
    k->product.blocks = s.batch * ceil_div(s.m, b->bm) * ceil_div(s.n, b->bn);
    if (best.shares > 1)
        k->scratch_bytes = k->product.blocks * best.shares * b->bm * b->bn * (int64_t)sizeof(float);
    const ProductShape pairs = { s.batch, s.m, s.n, ceil_div(of[COORD_K].size, 2), 0, 0 };
    gpu_units(plan, k, k->product.bytes ? &pairs : &s);
    gpu_pieces(plan, k, &s, gpu_shares_time(&s, &best));
    TEMPLATE_HOLES(a, k, { "BATCH", s.batch }, { "M", s.m }, { "N", s.n }, { "K", s.k }, { "BM", b->bm },
        { "BN", b->bn }, { "BK", b->bk }, { "TM", b->tm }, { "TN", b->tn }, { "SLICES", b->slices },
        { "SHARES", best.shares }, { "STAGES", b->stages }, { "A_WIDE", left.wide }, { "B_WIDE", right.wide },
        { "A_RUNS", left.terms }, { "B_RUNS", right.terms });
    return true;
}
