// SPDX-License-Identifier: MIT OR Apache-2.0
// Blocks, holes and scratch memory of attention (templates/c/attention.c), what a record knows it by, and what else it
// could be. In: a kernel in canonical form (schedule/attention.c).
#include "templates.h"
#include "tiles_cost.h"
#include "tune.h"

static void stride_holes(Arena *a, Kernel *k, int i, const char *name, char line, char column) {
    for (int j = 0; j < 3; j++) template_hole_dim(a, k, arena_printf(a, "%s%d", name, j), k->attention.of[i].batch[j]);
    template_hole_dim(a, k, arena_printf(a, "%s%c", name, line), k->attention.of[i].row);
    template_hole_dim(a, k, arena_printf(a, "%s%c", name, column), k->attention.of[i].col);
}

static int64_t round_up(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

enum { NV = 2, WIDTH = PANEL * NV };

typedef struct Queries { int64_t m, depth; } Queries;

// All queries in tiles of r rows; a tile's hole is even, since half of it goes on machines of 16 registers.
static int64_t queries_work(const void *shape, const TileMachine *t, int64_t r, int64_t v) {
    const Queries *q = shape;
    if (v != NV || (t->registers >= 32 && r % 2)) return TILE_NONE;
    return q->m / r * tile_cost(t, r, v, q->depth) + tile_cost(t, q->m % r, v, q->depth);
}

// The result of a query lies on the stack meanwhile.
static bool can_be_direct(const Attention *s) {
    enum { MOST = 1024 };
    return s->of[0].col == 1 && s->of[1].col == 1 && s->of[2].col == 1 && s->d <= MOST;
}

static AttentionTiles attention_tiles(const Graph *g, const Attention *s, const Options *o) {
    // a tile of scores of a block lies in L1; from FEW queries on packing pays
    enum { BLOCK = 512, FEW = 6 };
    int64_t m = dim_upper(g, s->m), n = dim_upper(g, s->n), blocks = (n + BLOCK - 1) / BLOCK;
    TileTarget target = template_target(o);
    TileChoice tile = tile_choose_halves(&target, queries_work, &(Queries){ m, s->k });
    return (AttentionTiles){ m < FEW && can_be_direct(s), tile.many, round_up((n + blocks - 1) / blocks, WIDTH) };
}

static bool attention_fits(const Graph *g, const Attention *s, const AttentionTiles *t) {
    bool tile = t->mr >= 2 && t->mr <= 14 && t->mr % 2 == 0 && t->kb >= WIDTH && t->kb % WIDTH == 0
        && t->kb <= round_up(dim_upper(g, s->n), WIDTH);
    return tile && (t->direct == 0 || (t->direct == 1 && can_be_direct(s)));
}

static const char *attention_signature(Arena *a, const Graph *g, const Attention *s) {
    Text t;
    text_init(&t, a);
    text_printf(&t, "attention batch=%lldx%lldx%lld m=%lld n=%lld k=%lld d=%lld", (long long)dim_upper(g, s->batch[0]),
        (long long)dim_upper(g, s->batch[1]), (long long)dim_upper(g, s->batch[2]), (long long)dim_upper(g, s->m),
        (long long)dim_upper(g, s->n), (long long)s->k, (long long)s->d);
    for (int i = 0; i < 4; i++)
        text_printf(&t, " %c=%lld,%lld", "qkvo"[i], (long long)dim_upper(g, s->of[i].row),
            (long long)dim_upper(g, s->of[i].col));
    if (!dim_is_const(s->m) || !dim_is_const(s->n)) text_printf(&t, " sizes=open");
    return t.at;
}

// Both ways, the numbers of rows, and, around `best`, the numbers of keys.
void attention_candidates(
    Arena *a, const Graph *g, const Kernel *k, const Options *o, const char *best, Choices *out) {
    const Attention *s = &k->attention;
    AttentionTiles t = attention_tiles(g, s, o);
    if (best && !tune_parse(&tune_attention, best, &t)) return;
    for (int i = 0; best && i < 4; i++) {
        AttentionTiles other = t;
        other.kb = round_up((int64_t[]){ t.kb / 4, t.kb / 2, t.kb * 2, dim_upper(g, s->n) }[i], WIDTH);
        VEC_PUSH(a, *out, tune_text(a, &tune_attention, &other));
    }
    for (t.direct = 0; !best && t.direct < 2; t.direct++)
        for (t.mr = 14; t.mr >= 4; t.mr -= t.direct ? 14 : 2) VEC_PUSH(a, *out, tune_text(a, &tune_attention, &t));
}

static void size_holes(Arena *a, Kernel *k) {
    const Attention *s = &k->attention;
    for (int i = 0; i < 3; i++) template_hole_dim(a, k, arena_printf(a, "BATCH%d", i), s->batch[i]);
    template_hole_dim(a, k, "M", s->m);
    template_hole_dim(a, k, "N", s->n);
    template_hole(a, k, "DK", s->k);
    template_hole(a, k, "DV", s->d);
    template_hole(a, k, "M_FIXED", dim_is_const(s->m) ? s->m : 0);
}

void plan_attention(Arena *a, const Graph *g, Kernel *k, const Options *o) {
    const Attention *s = &k->attention;
    AttentionTiles t = attention_tiles(g, s, o), recorded = t;
    Record *r = tune_record(a, k, o, attention_signature(a, g, s));
    if (r && tune_parse(&tune_attention, r->choice, &recorded) && attention_fits(g, s, &recorded)) {
        t = recorded;
        k->tuned = true;
    } else if (r) tune_refuse(k, r);
    k->choice = tune_text(a, &tune_attention, &t);
    bool few = t.direct;
    int64_t n = dim_upper(g, s->n), rows = t.mr, block = t.kb;
    k->template = &template_attention;
    size_holes(a, k);
    stride_holes(a, k, 0, "Q", 'M', 'K');
    stride_holes(a, k, 1, "K", 'N', 'K');
    stride_holes(a, k, 2, "V", 'N', 'K');
    stride_holes(a, k, 3, "O", 'M', 'D');
    template_hole(a, k, "DIRECT", few);
    template_hole(a, k, "MR", rows);
    template_hole(a, k, "NV", NV);
    template_hole(a, k, "KB", block);
    template_hole(a, k, "EMPTY", s->empty);
    template_hole(a, k, "MASKED", s->first || s->last);
    template_hole(a, k, "WEIGHTED", s->pass != NULL);
    VEC_PUSH(a, k->holes, (HoleValue){ .name = "SOFTMAX", .kind = HOLE_OWN, .text = "softmax" });
    VEC_PUSH(a, k->holes, (HoleValue){ .name = "TILE", .kind = HOLE_OWN, .text = "tile" });
    VEC_PUSH(a, k->holes,
        (HoleValue){ .name = "EXP", .kind = HOLE_HELPER, .params = "x", .text = "exp_falling" });
    int64_t columns = round_up(s->d, WIDTH);
    k->scratch_bytes = 4
        * (round_up(n, WIDTH) * (few ? 1 : s->k) + (few ? 0 : columns * n + rows * (block + 16 + columns)));
}

// ---------------------------------------------------------------- backward
// Rows of a tile, and queries in a block: their scores and the gradients of these lie in the second cache.
static AttentionTiles grad_tiles(int64_t m, int64_t k, const Options *o) {
    enum { BLOCK = 72 };
    TileTarget target = template_target(o);
    TileChoice tile = tile_choose_halves(&target, queries_work, &(Queries){ m, k });
    const int64_t rows = tile.many, most = round_up(m, rows);
    return (AttentionTiles){ .mr = (int)rows, .kb = most < BLOCK ? most : BLOCK / rows * rows };
}

static int64_t grad_scratch(const AttentionTiles *t, int64_t n, int64_t dk, int64_t dv) {
    const int64_t across = round_up(n, WIDTH), down = across + t->mr, k = round_up(dk, WIDTH), v = round_up(dv, WIDTH);
    return 4 * (across * (dk + dv) + n * k + down * (k + v) + t->kb * (2 * (across + t->mr + 16) + 2 * k + v));
}

// What the kernel computes again, scores and exponentials, against the matrices that it does not write and read: where
// vectors are short the first costs more, unless a mask hides half of it, and short heads are no work to speak of.
bool cpu_attends_back(const Node *scores, int64_t depth, bool masked, const Options *o) {
    enum { LEAST = 1024, MANY = 512, MANY_MASKED = 128, WIDE = 16 };
    const Type *t = &scores->out[0]->type;
    const Dim inner = scores->in[0]->type.dim[scores->in[0]->type.rank - 1];
    if (!o->machine.vectors || o->no_fuse || o->precision || !cpu_has_template(scores, o)) return false;
    if (!dim_is_const(inner)) return false;
    const int64_t m = dim_upper(scores->graph, t->dim[t->rank - 2]), n = dim_upper(scores->graph, t->dim[t->rank - 1]);
    const AttentionTiles tiles = grad_tiles(m, inner, o);
    if (grad_scratch(&tiles, n, inner, depth) > 2 * 4 * type_count_upper(scores->graph, t)) return false;
    if (o->train_memory) return true;
    if (o->machine.lanes && o->machine.lanes < WIDE) return n >= (masked ? MANY_MASKED : MANY);
    return n * (inner + depth) >= 2 * LEAST;
}

void plan_attention_grad(Arena *a, const Graph *g, Kernel *k, const Options *o) {
    const Attention *s = &k->attention;
    const AttentionTiles t = grad_tiles(dim_upper(g, s->m), s->k, o);
    k->template = &template_attention_grad;
    size_holes(a, k);
    stride_holes(a, k, 0, "Q", 'M', 'K');
    stride_holes(a, k, 1, "K", 'N', 'K');
    stride_holes(a, k, 2, "V", 'N', 'D');
    stride_holes(a, k, 3, "G", 'M', 'D');
    stride_holes(a, k, 4, "QG", 'M', 'K');
    stride_holes(a, k, 5, "KG", 'N', 'K');
    stride_holes(a, k, 6, "VG", 'N', 'D');
    template_hole(a, k, "SHARED", s->shared);
    template_hole(a, k, "MR", t.mr);
    template_hole(a, k, "NV", NV);
    template_hole(a, k, "MB", t.kb);
    template_hole(a, k, "MASKED", s->first || s->last);
    VEC_PUSH(a, k->holes, (HoleValue){ .name = "TILE", .kind = HOLE_OWN, .text = "tile" });
    VEC_PUSH(a, k->holes, (HoleValue){ .name = "GROWN", .kind = HOLE_OWN, .text = "grown" });
    VEC_PUSH(a, k->holes,
        (HoleValue){ .name = "EXP", .kind = HOLE_HELPER, .params = "x", .text = "exp_falling" });
    k->scratch_bytes = grad_scratch(&t, dim_upper(g, s->n), s->k, s->d);
}
