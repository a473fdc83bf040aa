// SPDX-License-Identifier: MIT OR Apache-2.0
// Templates of low precision: products of bytes (gemm_i8.c), of bfloat16 (gemm_bf16.c), and of floats with weights of
// few bits (gemv_low.c, gemm_low.c). In: kernels in canonical form. Out: the same with their template, its integer
// holes, packed constant operand and scratch memory.
#include "pack_low.h"
#include "schedule/schedule.h"
#include "templates.h"
#include "tune.h"

#include <string.h>

// ---------------------------------------------------------------- products of bytes
// As recorded, if that fits, else t. rows: the most of a tile; where one file serves machines that take half the
// rows, `even`.
static LowTiles chosen_tiles(Arena *a, Kernel *k, const Options *o, const char *signature, const TuneForm *form,
    int64_t rows, bool even, LowTiles t) {
    Record *r = tune_record(a, k, o, signature);
    LowTiles recorded = t;
    if (r && tune_parse(form, r->choice, &recorded) && low_fits(rows, even, &recorded)) {
        t = recorded;
        k->tuned = true;
    } else if (r) tune_refuse(k, r);
    k->choice = tune_text(a, form, &t);
    return t;
}

// Half-cycles of a tile for a group of four along k: two dot products a cycle, two loads a cycle, at least 5 cycles
// of latency.
static int64_t tile_cost(int64_t rows, int64_t vectors) {
    int64_t cost = rows * vectors, loads = rows + vectors;
    if (cost < loads) cost = loads;
    return cost < 10 ? 10 : cost;
}

// The tile that takes least time over lines of w rows and n columns. Its columns, sums and a broadcast fit 32
// registers, half its rows 16.
static LowTiles byte_tiles(int64_t w, int64_t n) {
    static const LowTiles some[] = { { 12, 2 }, { 14, 2 }, { 10, 2 }, { 8, 3 }, { 8, 2 }, { 7, 3 }, { 6, 4 }, { 5, 4 },
        { 4, 4 }, { 3, 4 }, { 2, 4 }, { 1, 4 }, { 14, 1 }, { 7, 1 }, { 4, 1 }, { 2, 2 }, { 1, 2 }, { 1, 1 } };
    LowTiles best = some[0];
    int64_t least = INT64_MAX;
    for (size_t i = 0; i < COUNT(some); i++) {
        int64_t width = 16 * some[i].nv, edge = ceil_div(n % width, 16), tiles = ceil_div(w, some[i].mr);
        int64_t cost = tiles
            * (n / width * tile_cost(some[i].mr, some[i].nv) + (edge ? tile_cost(some[i].mr, edge) : 0));
        if (some[i].mr > w || cost >= least) continue;
        least = cost;
        best = some[i];
    }
    return best;
}

static void fill_gemm_i8(const Buffer *b, void *to) {
    const Contraction *s = &b->packer->gemm;
    const size_t nr = 16 * (size_t)template_hole_value(b->packer, "NV"),
                 one = pack_i8_bytes((size_t)s->n, 1, (size_t)s->k, nr);
    const int8_t *from = b->value->data->data;
    Arena *scratch = arena_new();
    size_t *row = NEW_ARRAY(scratch, size_t, s->k);
    for (int64_t i = 0; i < s->k; i++) row[i] = (size_t)(i * s->b_row);
    for (int64_t i = 0; i < (s->b_batch ? s->batch : 1); i++)
        pack_i8(from + i * s->b_batch, (size_t)s->n, 1, (size_t)s->k, row, (size_t)s->b_col, nr,
            (int8_t *)to + (size_t)i * one);
    arena_free(scratch);
}

static void byte_holes(Arena *a, Kernel *k, const LowTiles *t) {
    template_hole(a, k, "MR", t->mr);
    template_hole(a, k, "NV", t->nv);
    VEC_PUSH(a, k->holes, (HoleValue){ .name = "CT", .kind = HOLE_ELEMENT, .value = k->writes.at[0]->type.dtype });
}

// Rows of so many bytes that fill half of L2.
static int64_t block_rows(int64_t bytes, const Options *o, int mr) {
    int64_t rows = (o->machine.l2 ? (int64_t)o->machine.l2 : 512 << 10) / 2 / bytes;
    return rows < mr ? mr : rows / mr * mr;
}

// The runs of a convolution's window: taps that follow each other in memory are one.
typedef struct Runs { int64_t bytes, y, x; } Runs;

static Runs window_runs(const Convolution *c) {
    int64_t ic = c->ic / c->groups;
    bool rows = c->groups == 1 && c->dilation[2] == 1 && c->x_axis[2] == ic;
    return rows ? (Runs){ ic * c->kernel[2], c->kernel[1], 1 } : (Runs){ ic, c->kernel[1], c->kernel[2] };
}

// Weights are [oc][ic][kh][kw]; rows go by kh, kw, ic.
static void fill_conv_i8(const Buffer *b, void *to) {
    const Convolution *c = &b->packer->window;
    const Runs runs = window_runs(c);
    const int64_t ic = c->ic / c->groups, taps = c->kernel[1] * c->kernel[2], oc = c->oc / c->groups;
    const size_t nr = 16 * (size_t)template_hole_value(b->packer, "NV"),
                 one = pack_i8_bytes((size_t)oc, (size_t)(runs.y * runs.x), (size_t)runs.bytes, nr);
    Arena *scratch = arena_new();
    size_t *row = NEW_ARRAY(scratch, size_t, taps * ic);
    for (int64_t i = 0; i < taps * ic; i++) row[i] = (size_t)(i % ic * taps + i / ic);
    for (int64_t i = 0; i < c->groups; i++)
        pack_i8((const int8_t *)b->value->data->data + i * oc * ic * taps, (size_t)oc, (size_t)(runs.y * runs.x),
            (size_t)runs.bytes, row, (size_t)(ic * taps), nr, (int8_t *)to + (size_t)i * one);
    arena_free(scratch);
}

static void plan_conv_bytes(Arena *a, const Graph *g, Kernel *k, const Options *o) {
    const Convolution *c = &k->window;
    const Runs runs = window_runs(c);
    const int64_t w = c->out[2], n = c->oc / c->groups;
    LowTiles t = chosen_tiles(
        a, k, o, template_conv_signature(a, g, c, o, "bytes"), &tune_bytes, w, false, byte_tiles(w, n));
    size_t one = pack_i8_bytes((size_t)n, (size_t)(runs.y * runs.x), (size_t)runs.bytes, 16 * (size_t)t.nv);
    int64_t line = c->stride[1] * c->x_axis[1], room = (o->machine.l2 ? (int64_t)o->machine.l2 : 512 << 10) / 2;
    k->template = &template_gemm_i8;
    template_hole_dim(a, k, "BATCH", c->batch);
    template_hole(a, k, "G", c->groups);
    template_hole(a, k, "H", c->out[1]);
    template_hole(a, k, "W", w);
    template_hole(a, k, "W_FIXED", w);
    template_hole(a, k, "N", n);
    template_hole(a, k, "RUN", runs.bytes);
    template_hole(a, k, "RUNS_Y", runs.y);
    template_hole(a, k, "RUNS_X", runs.x);
    template_hole_dim(a, k, "AB", c->x_batch);
    template_hole(a, k, "AG", c->ic / c->groups);
    template_hole(a, k, "AY", line);
    template_hole(a, k, "AX", c->stride[2] * c->x_axis[2]);
    template_hole(a, k, "KY", c->dilation[1] * c->x_axis[1]);
    template_hole(a, k, "KX", c->dilation[2] * c->x_axis[2]);
    template_hole(a, k, "PACK_A", 0);
    template_hole(a, k, "AK", 1);
    template_hole(a, k, "B_PACKED", 1);
    template_hole(a, k, "BB", 0);
    template_hole(a, k, "BK", 0);
    template_hole(a, k, "BN", 0);
    template_hole(a, k, "CB", c->out[1] * w * c->y_pixel);
    template_hole(a, k, "CM", c->y_pixel);
    template_hole(a, k, "YC", line && room > line ? room / line : 1);    // line 0: there is one
    template_hole(a, k, "MC", ceil_div(w, t.mr) * t.mr);
    byte_holes(a, k, &t);
    k->packed = template_packed_as(a, k, k->operand[1], DT_I8, one * (size_t)c->groups,
        "panels of output channels, four bytes of each together", fill_conv_i8);
}

bool plan_bytes(Arena *a, const Graph *g, Kernel *k, const Options *o) {
    const Contraction *s = &k->gemm;
    Value *w = k->operand[1];
    if (!node_of_bytes(k->anchor)) return false;
    if (k->anchor->in[0]->type.dtype != DT_U8) {
        plan_q8(a, k, o);
        return true;
    }
    if (k->anchor->op == OP_Conv) {
        plan_conv_bytes(a, g, k, o);
        return true;
    }
    bool packed = w->data && k->operand[0] != w, fixed = dim_is_const(s->m), pack_a = s->a_col != 1;
    GemmShape shape = template_gemm_shape(g, k);
    LowTiles t = chosen_tiles(a, k, o, template_gemm_signature(a, g, k, &shape, "bytes"), &tune_bytes,
        fixed ? s->m : INT32_MAX, false, byte_tiles(shape.m, s->n));
    int64_t mc = block_rows(s->k, o, t.mr);
    size_t one = pack_i8_bytes((size_t)s->n, 1, (size_t)s->k, 16 * (size_t)t.nv);
    k->template = &template_gemm_i8;
    template_hole_dim(a, k, "BATCH", s->batch);
    template_hole(a, k, "G", 1);
    template_hole(a, k, "H", 1);
    template_hole_dim(a, k, "W", s->m);
    template_hole(a, k, "N", s->n);
    template_hole(a, k, "W_FIXED", fixed ? s->m : 0);
    template_hole(a, k, "RUN", s->k);
    template_hole(a, k, "RUNS_Y", 1);
    template_hole(a, k, "RUNS_X", 1);
    template_hole_dim(a, k, "AB", s->a_batch);
    template_hole(a, k, "AG", 0);
    template_hole(a, k, "AY", 0);
    template_hole_dim(a, k, "AX", s->a_row);
    template_hole(a, k, "KY", 0);
    template_hole(a, k, "KX", 0);
    template_hole(a, k, "PACK_A", pack_a);
    template_hole_dim(a, k, "AK", s->a_col);
    template_hole(a, k, "B_PACKED", packed);
    template_hole_dim(a, k, "BB", !packed ? s->b_batch : s->b_batch ? (int64_t)one : 0);
    template_hole_dim(a, k, "BK", s->b_row);
    template_hole_dim(a, k, "BN", s->b_col);
    template_hole_dim(a, k, "CB", s->c_batch);
    template_hole_dim(a, k, "CM", s->c_row);
    template_hole(a, k, "YC", 1);
    template_hole(a, k, "MC", mc);
    byte_holes(a, k, &t);
    k->scratch_bytes = (packed ? 0 : (int64_t)one) + (pack_a ? (mc + t.mr) * (ceil_div(s->k, 4) * 4) : 0);
    if (packed)
        k->packed = template_packed_as(a, k, w, DT_I8, one * (size_t)(s->b_batch ? s->batch : 1),
            "panels of columns, four bytes of each together", fill_gemm_i8);
    return true;
}

// ---------------------------------------------------------------- weights of few bits
// Those of a MatMulBits that cpu_claims took.
static PackBits bits_of(const Node *n) {
    return (PackBits){ .n = (size_t)n->in[1]->type.dim[0],
        .k = (size_t)node_int(n, "k", 0),
        .block = (size_t)node_int(n, "block", 0),
        .bits = (size_t)node_int(n, "bits", 4),
        .q = n->in[1]->data->data,
        .scale = value_const(n->in[2])->data,
        .zero = n->n_in > 3 ? value_const(n->in[3])->data : NULL };
}

static void fill_bits(const Buffer *b, void *to) {
    PackBits p = bits_of(b->packer->anchor);
    pack_bits(&p, 16 * (size_t)template_hole_value(b->packer, "NV"), to);
}

static void fill_blocks(const Buffer *b, void *to) {
    const PackBits p = bits_of(b->packer->anchor);
    pack_window_blocks(&p, to);
}

// Where memory is the price: a weight at a time, and no panels' sums.
static bool plan_blocks(Arena *a, Kernel *k, const Options *o) {
    const Contraction *s = &k->gemm;
    if (!o->machine.ram_first || k->anchor->op != OP_MatMulBits || !dim_is_const(s->m)) return false;
    const PackBits b = bits_of(k->anchor);
    if ((b.bits != 8 && b.bits != 4) || b.zero) return false;
    k->template = &template_window_blocks;
    template_hole_dim(a, k, "M", s->m);
    TEMPLATE_HOLES(a, k, { "N", s->n }, { "K", s->k }, { "BITS", (int64_t)b.bits }, { "BLOCK", (int64_t)b.block },
        { "RUN", node_int(k->anchor, "run", 0) });
    template_hole_dim(a, k, "AM", s->a_row);
    template_hole_dim(a, k, "CM", s->c_row);
    k->packed = template_packed_as(a, k, k->operand[1], DT_U32, 4 * pack_window_blocks_words(&b),
        "the scales of all, then four columns at a time", fill_blocks);
    return true;
}

static void fill_bf16(const Buffer *b, void *to) {
    const Contraction *s = &b->packer->gemm;
    pack_bf16(b->value->data->data, (size_t)s->n, (size_t)s->k, (size_t)s->b_row, (size_t)s->b_col,
        16 * (size_t)template_hole_value(b->packer, "NV"), to);
}

// Of halves, bfloat16, every row's format is the same; blocks of bits have theirs.
static const char *low_signature(Arena *a, const Graph *g, const Kernel *k, bool bits) {
    GemmShape shape = template_gemm_shape(g, k);
    const Node *n = k->anchor;
    const char *kind = bits ? arena_printf(a, "low bits=%lld block=%lld zeros=%d", (long long)node_int(n, "bits", 4),
                           (long long)node_int(n, "block", 0), n->n_in > 3) :
                              "low bits=16";
    return template_gemm_signature(a, g, k, &shape, kind);
}

bool plan_low(Arena *a, const Graph *g, Kernel *k, const Options *o) {
    enum { FEW_ROWS = 4 };                              // as many sums stay in registers
    const Contraction *s = &k->gemm;
    Value *w = k->operand[1];
    bool bits = k->anchor->op == OP_MatMulBits,
         halves = o->precision && !strcmp(o->precision, "bf16") && !bits
        && w->data && w->type.dtype == DT_F32 && k->operand[0] != w;
    if ((!bits && !halves) || s->batch != 1 || s->a_col != 1 || !dim_is_const(s->n) || !dim_is_const(s->k))
        return false;
    if (plan_blocks(a, k, o)) return true;
    bool few = dim_is_const(s->m) && s->m <= FEW_ROWS;
    TileTarget target = template_target(o);
    GemmShape shape = { 1, dim_upper(g, s->m), s->n, s->k, s->a_row, 1, s->n, 1, 1, !dim_is_const(s->m), 0, 0, 0 };
    GemmTiles by_model = gemm_tiles(&shape, &target);
    LowTiles t = { by_model.mr, few ? 1 : by_model.nv };
    if (!few)
        t = chosen_tiles(a, k, o, low_signature(a, g, k, bits), &tune_low, INT32_MAX,
            !target.lanes || target.vector_registers < 32, t);
    size_t nr = 16 * (size_t)t.nv;
    PackBits b = bits ? bits_of(k->anchor) : (PackBits){ .block = (size_t)s->k, .bits = 16 };
    k->template = few ? &template_gemv_low : bits ? &template_gemm_low : &template_gemm_bf16;
    template_hole_dim(a, k, "M", s->m);
    template_hole(a, k, "N", s->n);
    template_hole(a, k, "K", s->k);
    template_hole_dim(a, k, "AM", s->a_row);
    template_hole_dim(a, k, "CM", s->c_row);
    template_hole(a, k, "NV", (int64_t)nr / 16);
    if (bits || few) {
        template_hole(a, k, "BITS", (int64_t)b.bits);
        template_hole(a, k, "BLOCK", (int64_t)b.block);
        template_hole(a, k, "ZEROS", b.zero != NULL);
        template_hole(a, k, "ZERO", 1 << (b.bits - 1));
    }
    if (!few) {
        template_hole(a, k, "M_FIXED", dim_is_const(s->m) ? s->m : 0);
        template_hole(a, k, "MR", t.mr);
    }
    if (few)
        k->scratch_bytes = bits ? 4 * s->m * ceil_div(s->k, (int64_t)b.block) : 0;
    else if (bits)
        k->scratch_bytes = 4 * s->k * (int64_t)nr;
    else {
        int64_t all = ceil_div(shape.m, t.mr) * t.mr, most = block_rows(2 * s->k, o, t.mr),
                rows = all < most ? all : most;
        template_hole(a, k, "MC", rows);
        int64_t floats = 4 * rows * (ceil_div(s->k, 16) * 16),
                halves_amx = 2 * (ceil_div(rows, 32) * 32) * (ceil_div(s->k, 32) * 32);
        k->scratch_bytes = floats > halves_amx ? floats : halves_amx;
    }
    size_t words = bits ? pack_bits_words(&b, nr) : pack_bf16_words((size_t)s->n, (size_t)s->k, nr);
    k->packed = template_packed_as(a, k, w, DT_U32, 4 * words,
        bits ? "panels of columns, blocks with their scales" : "panels of columns in bfloat16, two rows in a word",
        bits ? fill_bits : fill_bf16);
    return true;
}
