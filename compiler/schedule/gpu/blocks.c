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
#include "schedule/schedule.h"

// None wants more than 256 threads and 32 KiB of shared memory.
const Block gpu_blocks[BLOCKS] = {
    { 128, 128, 16, 8, 8, 1, 1, 0.79 },
    { 128, 64, 16, 8, 4, 1, 2, 0.70 },
    { 64, 64, 16, 4, 4, 1, 2, 0.60 },
    { 64, 64, 8, 8, 8, 4, 1, 0.62 },
    { 32, 32, 16, 4, 4, 2, 2, 0.47 },
};
const Gpu gpu_machine = { .cores = 132, .macs = 197e3, .way = 0.5, .meet = 3, .launch = 4.5, .bytes = 2e6 };

enum { NEAR = 4 };                                      // elements from each other that share what memory brings

double gpu_block_time(const Block *b, double batch, int64_t m, int64_t n, int64_t k) {
    const double groups = batch * (double)(ceil_div(m, b->bm) * ceil_div(n, b->bn)),
                 work = (double)b->bm * b->bn * b->bk * b->slices / gpu_machine.macs,
                 together = (double)(int64_t)((groups + gpu_machine.cores - 1) / gpu_machine.cores),
                 busy = together * work / b->share, alone = gpu_machine.way + work;
    return (double)ceil_div(k, b->bk * b->slices) * (busy > alone ? busy : alone);
}

typedef struct Choice { const Block *block; int64_t shares; double time; } Choice;

// The block and the shares that are done first. Shares end in a way to memory and back for the sums of each.
static Choice best_block(double batch, int64_t m, int64_t n, int64_t k) {
    enum { MOST_SHARES = 32 };
    Choice best = { gpu_blocks, 1, gpu_block_time(gpu_blocks, batch, m, n, k) };
    for (const Block *b = gpu_blocks; b < gpu_blocks + BLOCKS; b++)
        for (int64_t shares = 1; shares <= MOST_SHARES && shares * b->bk * b->slices < k; shares *= 2) {
            if ((double)shares * batch > MAX_GROUPS) break;
            const double sums = shares == 1 ? 0 :
                gpu_machine.meet + 2 * (double)shares * batch * (double)m * (double)n * 4 / gpu_machine.bytes,
                         time = gpu_block_time(b, batch * (double)shares, m, n, ceil_div(k, shares)) + sums;
            if (time < best.time) best = (Choice){ b, shares, time };
        }
    return best;
}

bool gpu_fills_blocks(int64_t batch, int64_t m, int64_t n, int64_t k) {
    enum { LEAST_ROWS = 8, LEAST_COLUMNS = 16, LEAST_TERMS = 16 };              // fewer leave most of a block empty
    return batch > 0 && m >= LEAST_ROWS && n >= LEAST_COLUMNS && k >= LEAST_TERMS && batch <= MAX_GROUPS
        && ceil_div(m, 32) <= MAX_GROUPS && ceil_div(n, 32) <= MAX_GROUPS;
}

bool gpu_takes_conv(const Node *n) {
    const Type *x = &n->in[0]->type, *w = &n->in[1]->type, *y = &n->out[0]->type;
    if (y->dtype != DT_F32 || !type_is_static(x) || !type_is_static(w) || !type_is_static(y)) return false;
    const int64_t count = type_count(y), rows = w->dim[0] / node_int(n, "group", 1);
    return count && gpu_fills_blocks(1, rows, count / w->dim[0], type_count(w) / w->dim[0]);
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

// Can four elements along this coordinate be read at once, wherever a multiple of four of it begins?
static bool fours_along(const Lie *l, int which) {
    int64_t run;
    const int term = last_term(l, which, &run);
    if (term < 0 || l->coef[term] != 1 || run % 4 || l->c0 % 4) return false;
    for (int i = 0; i < 2 * l->kernel->axes.n; i++)
        if (i != term && l->coef[i] % 4) return false;
    return true;
}

static Expr *first_load(Expr *e) {
    Expr *found = !e || e->op == E_Load ? e : NULL;
    for (int i = 0; e && i < 3 && !found; i++) found = first_load(e->a[i]);
    return found;
}

// own: COORD_M or COORD_N. wide: 0 none, 1 along the terms, 2 along its own; runs: do neighbours in memory lie along
// the terms?
static void lies(const Kernel *k, int which, int own, int64_t *wide, bool *runs) {
    Expr *e = k->product.factor[which], *load = first_load(e);
    Lie l = { .kernel = k, .of = k->product.of };
    int64_t run;
    *wide = 0;
    *runs = false;
    if (!load || !expr_affine(load->a[0], 2 * k->axes.n, l.coef, &l.c0)) return;
    const int across = last_term(&l, own, &run), along = last_term(&l, COORD_K, &run);
    const int64_t step = across < 0 ? 0 : l.coef[across];
    *runs = along >= 0 && l.coef[along] == 1 && (step < -NEAR || step > NEAR || step == 0);
    if (e != load || load->a[1] || load->value->type.dtype != DT_F32) return;
    *wide = fours_along(&l, COORD_K) ? 1 : fours_along(&l, own) ? 2 : 0;
}

bool gpu_product(Arena *a, Kernel *k) {
    const Kernel *product = product_of(a, k);
    if (!product) return false;
    const Coordinate *of = product->product.of;
    const int64_t batch = of[COORD_B].size, m = of[COORD_M].size, n = of[COORD_N].size, terms = of[COORD_K].size;
    if (!gpu_fills_blocks(batch, m, n, terms)) return false;
    *k = *product;
    const Choice best = best_block((double)batch, m, n, terms);
    const Block *b = best.block;
    int64_t wide[2];
    bool runs[2];
    lies(k, 0, COORD_M, &wide[0], &runs[0]);
    lies(k, 1, COORD_N, &wide[1], &runs[1]);
    product_lift(k);
    k->product.shares = best.shares;
    k->product.blocks = batch * ceil_div(m, b->bm) * ceil_div(n, b->bn);
    if (best.shares > 1)
        k->scratch_bytes = k->product.blocks * best.shares * b->bm * b->bn * (int64_t)sizeof(float);
    TEMPLATE_HOLES(a, k, { "BATCH", batch }, { "M", m }, { "N", n }, { "K", terms }, { "BM", b->bm }, { "BN", b->bn },
        { "BK", b->bk }, { "TM", b->tm }, { "TN", b->tn }, { "SLICES", b->slices }, { "SHARES", best.shares },
        { "STAGES", b->stages }, { "A_WIDE", wide[0] }, { "B_WIDE", wide[1] }, { "A_RUNS", runs[0] },
        { "B_RUNS", runs[1] });
    return true;
}
