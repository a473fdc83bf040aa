// SPDX-License-Identifier: MIT OR Apache-2.0
// What else a template kernel could be: the algorithms and blocks that `burncc tune` tries, of those that its template
// allows (forms.c).
//
// In: a kernel's shape and, for the second round, the best choice so far. Out: choices as texts. The first round
// varies the algorithm and the register tile, the second the blocks in cache around the best; neither asks the cost
// model for more than a place to begin.
#include "schedule/schedule.h"
#include "templates.h"
#include "forms.h"

#include <string.h>

// ---------------------------------------------------------------- which are tried
// many: the code that is measured has 32 vector registers
typedef struct Proposals { Arena *arena; Choices *out; bool many; } Proposals;

static void propose(Proposals *t, const TuneForm *form, const void *tiles) {
    VEC_PUSH(t->arena, *t->out, tune_text(t->arena, form, tiles));
}

// The most rows by v vectors that registers hold with v vectors and one broadcast.
static int64_t most_rows(const Proposals *t, int64_t v) { return min64(((t->many ? 32 : 16) - 1 - v) / v, 14); }

// n in as few parts of at most `most` as can be, each as large as the others.
static int64_t even(int64_t n, int64_t most) { return most < 1 ? 1 : ceil_div(n, ceil_div(n, most)); }

// n times 1/4, 1/2, 2, 4, whole; a multiple of unit
static int64_t scaled(int64_t n, int i, int64_t unit, int64_t most) {
    static const int num[] = { 1, 1, 2, 4 }, den[] = { 4, 2, 1, 1 };
    int64_t v = i == 4 ? most : n * num[i] / den[i];
    return max64(unit, min64(ceil_div(v, unit) * unit, ceil_div(most, unit) * unit));
}

static void gemm_tiles_tried(Proposals *t, const GemmShape *s, GemmTiles base) {
    for (int v = 1; v <= MAX_VECTORS; v++) {
        int64_t before = 0;
        for (int64_t most = most_rows(t, v), i = 0; i < 4 && most >= 2; most--) {
            GemmTiles g = base;
            int64_t rows = even(s->m, most);            // of the machine that measures
            if (rows == before || (!t->many && rows * 2 > MAX_ROWS)) continue;
            before = rows;
            i++;
            g.mr = (int)(t->many ? rows : rows * 2);
            g.nv = v;
            g.mc = max64(g.mr, base.mc / g.mr * g.mr);
            g.nc = max64(PANEL * v, base.nc / (PANEL * v) * (PANEL * v));
            if (base.pack_b != 1) g.nc = ceil_div(s->n, PANEL * v) * (PANEL * v);
            propose(t, &tune_gemm, &g);
        }
    }
}

// Tiles are all there is to choose.
static void low_tried(Proposals *t, const TuneForm *form, int64_t m) {
    for (int v = 1; v <= MAX_VECTORS; v++) {
        int64_t before = 0;
        for (int64_t most = most_rows(t, v), i = 0; i < 5 && most >= 1; most--) {
            int64_t rows = even(m, most), mr = t->many ? rows : rows * 2;
            if (rows == before || mr > MAX_ROWS) continue;
            before = rows;
            i++;
            propose(t, form, &(LowTiles){ (int)mr, v });
        }
    }
}

static void gemm_blocks_tried(Proposals *t, const GemmShape *s, GemmTiles base) {
    GemmTiles g = base;
    g.pack_a = !base.pack_a;
    propose(t, &tune_gemm, &g);
    g = base;
    for (g.pack_b = 0; g.pack_b <= 2; g.pack_b++)
        if (!s->b_packed && g.pack_b != base.pack_b) propose(t, &tune_gemm, &g);
    for (int i = 0; i < 5; i++) {
        g = base;
        g.kc = scaled(base.kc, i, 1, s->k);
        propose(t, &tune_gemm, &g);
        g = base;
        g.mc = scaled(base.mc, i, base.mr, s->m);
        propose(t, &tune_gemm, &g);
        g = base;
        g.nc = scaled(base.nc, i, PANEL * base.nv, s->n);
        propose(t, &tune_gemm, &g);
    }
}

static void set_rows(const Proposals *t, int64_t rows, int *many, int *few) { *(t->many ? many : few) = (int)rows; }

static void direct_tiles_tried(Proposals *t, const ConvShape *s, const TileTarget *target, ConvTiles base) {
    int64_t ow = s->out[2], tap_rows = s->kernel[0] * s->kernel[1], l2 = target->l2 ? (int64_t)target->l2 : 1 << 20;
    for (int v = 1; v <= MAX_VECTORS; v++) {
        int64_t before = 0;
        for (int64_t most = most_rows(t, v), i = 0; i < 4 && most >= 2; most--) {
            int64_t rows = ow > most ? even(ow, most) : ow * min64(most / ow, s->out[1]);
            ConvTiles c = base;
            if (rows == before) continue;
            before = rows;
            i++;
            set_rows(t, rows, &c.mr, &c.mf);
            c.nv = v;
            // a panel's part in half of L2
            c.kb = even(tap_rows, min64(tap_rows, l2 / 2 / (s->kernel[2] * s->ic * PANEL * v * 4)));
            if (c.mr > ow || c.mf > ow) c.rc = max64(c.rc, max64(c.mr, c.mf) / ow);
            propose(t, &tune_direct, &c);
        }
    }
}

static void direct_blocks_tried(Proposals *t, const ConvShape *s, ConvTiles base) {
    ConvTiles c = base;
    c.image = !base.image;
    propose(t, &tune_direct, &c);
    c = base;
    c.pixel = base.pixel == s->ic ? s->ic + PANEL : s->ic;
    propose(t, &tune_direct, &c);
    for (int i = 0; i < 5; i++) {
        int64_t rows = max64(1, max64(base.mr, base.mf) / s->out[2]);
        c = base;
        c.rc = scaled(base.rc, i, rows, s->out[1]);
        propose(t, &tune_direct, &c);
        c = base;
        c.kb = scaled(base.kb, i, 1, s->kernel[0] * s->kernel[1]);
        propose(t, &tune_direct, &c);
        c = base;
        c.cc = scaled(base.cc, i, 1, s->out[2]);
        propose(t, &tune_direct, &c);
    }
}

static void winograd_tiles_tried(Proposals *t, const ConvLayout *l, const TileTarget *target) {
    WinogradTile form[9];
    for (int i = 0, n = winograd_forms(&l->conv, form); i < n; i++) {
        WinogradTiles base = winograd_tiles_by(l, target, form[i]);
        propose(t, &tune_winograd, &base);
        for (int v = 1; v <= MAX_VECTORS; v++) {
            WinogradTiles w = base;
            int64_t rows = even(winograd_count(&l->conv, form[i]), most_rows(t, v));
            set_rows(t, rows, &w.mr, &w.mf);
            w.nv = v;
            w.tb = max64(rows, base.tb / rows * rows);
            propose(t, &tune_winograd, &w);
        }
    }
}

static void winograd_blocks_tried(Proposals *t, const ConvShape *s, WinogradTiles base) {
    int64_t tiles = winograd_count(s, base.tile), rows = t->many ? base.mr : base.mf;
    WinogradTiles w = base;
    w.vp = base.vp == s->ic ? s->ic + PANEL : s->ic;
    propose(t, &tune_winograd, &w);
    for (int i = 0; i < 5; i++) {
        w = base;
        w.tb = scaled(base.tb, i, rows, tiles);
        propose(t, &tune_winograd, &w);
    }
    for (int64_t most = rows - 1; most >= rows - 4 && most >= 2; most--) {
        w = base;
        set_rows(t, most, &w.mr, &w.mf);
        w.tb = max64(most, base.tb / most * most);
        propose(t, &tune_winograd, &w);
    }
}

static void taps_tiles_tried(Proposals *t, const ConvLayout *l, const TileTarget *target) {
    TapTiles base = conv_taps_tiles(l, target);
    propose(t, &tune_taps, &base);
    for (int v = 1; v <= MAX_VECTORS; v++) {
        TapTiles c = base;
        set_rows(t, even(l->conv.out[1] * l->conv.out[2], most_rows(t, v)), &c.mr, &c.mf);
        c.nv = v;
        c.tb = max64(base.tb, max64(c.mr, c.mf));
        propose(t, &tune_taps, &c);
    }
}

static void taps_blocks_tried(Proposals *t, const ConvShape *s, TapTiles base) {
    for (int i = 0; i < 5; i++) {
        TapTiles c = base;
        c.tb = scaled(base.tb, i, max64(base.mr, base.mf), s->out[1] * s->out[2]);
        propose(t, &tune_taps, &c);
        c = base;
        c.rc = scaled(base.rc, i, 1, s->out[1]);
        propose(t, &tune_taps, &c);
    }
}

static void pairs_blocks_tried(Proposals *t, const ConvShape *s, PairTiles base) {
    for (int i = 0; i < 5; i++) {
        PairTiles c = base;
        c.rc = scaled(base.rc, i, 1, ceil_div(s->out[1], 2));
        propose(t, &tune_pairs, &c);
    }
}

static void depthwise_tiles_tried(Proposals *t, const ConvShape *s, ConvDwTiles base) {
    int64_t before = 0;
    for (int64_t most = MAX_ROWS; most >= 2; most--) {
        ConvDwTiles d = base;
        int64_t rows = even(s->out[2], most);
        if (rows == before) continue;
        before = rows;
        set_rows(t, rows, &d.br, &d.bf);
        propose(t, &tune_depthwise, &d);
    }
}

static void depthwise_blocks_tried(Proposals *t, const ConvShape *s, ConvDwTiles base) {
    int64_t filled = ceil_div(s->groups, PANEL) * PANEL;
    ConvDwTiles d = base;
    d.image = !base.image;
    d.cb = filled;
    d.rc = base.image ? 1 : min64(s->out[1], 4);
    propose(t, &tune_depthwise, &d);
    for (int i = 0; i < 5; i++) {
        d = base;
        if (base.image) d.rc = scaled(base.rc, i, 1, s->out[1]);
        else d.cb = scaled(base.cb, i, PANEL, filled);
        propose(t, &tune_depthwise, &d);
    }
}

static void gemv_tried(Proposals *t, const GemmShape *s) {
    GemvTiles v = { 0, 1 };
    if (s->n <= GEMV_FEW) propose(t, &tune_gemv, &v);
    for (v.nv = 1; v.nv <= GEMV_VECTORS; v.nv *= 2)
        for (v.side = 1; v.side <= GEMV_SIDE; v.side *= GEMV_SIDE) propose(t, &tune_gemv, &v);
}

static void gemm_tried(Proposals *t, const Graph *g, const Kernel *k, const Options *o, const char *best) {
    TileTarget target = template_target(o);
    GemmShape s = template_gemm_shape(g, k);
    GemmTiles tiles = gemm_tiles(&s, &target);
    LowTiles low;
    const TuneForm *form = tune_parse(&tune_bytes, k->choice, &low) ? &tune_bytes :
        tune_parse(&tune_low, k->choice, &low)                      ? &tune_low :
                                                                      NULL;
    if (form && !best) low_tried(t, form, k->anchor->op == OP_Conv ? k->window.out[2] : s.m);
    if (form) return;
    if (best && tune_parse(&tune_gemm, best, &tiles)) gemm_blocks_tried(t, &s, tiles);
    else if (!best && tune_parse(&tune_gemm, k->choice, &tiles)) gemm_tiles_tried(t, &s, tiles);
    else if (!best) gemv_tried(t, &s);
}

static void conv_tried(Proposals *t, const Graph *g, const Kernel *k, const Options *o, const char *best) {
    TileTarget target = template_target(o);
    ConvLayout l = template_conv_layout(g, &k->conv, o), merged = template_conv_merged(l);
    ConvTiles direct = conv_tiles(&merged, &target);
    WinogradTiles winograd = winograd_tiles(&l, &target);
    TapTiles taps = conv_taps_tiles(&l, &target);
    PairTiles pairs = conv_pairs_tiles(&l, &target);
    if (!best) {
        if (o->machine.vectors && pairs_fits(&l, &pairs)) propose(t, &tune_pairs, &pairs);
        if (o->machine.vectors && winograd_fits(&l, &winograd)) winograd_tiles_tried(t, &l, &target);
        if (taps_fits(&l, &taps)) taps_tiles_tried(t, &l, &target);
        direct_tiles_tried(t, &merged.conv, &target, direct);
    } else if (tune_parse(&tune_direct, best, &direct)) direct_blocks_tried(t, &merged.conv, direct);
    else if (tune_parse(&tune_taps, best, &taps)) taps_blocks_tried(t, &l.conv, taps);
    else if (tune_parse(&tune_pairs, best, &pairs)) pairs_blocks_tried(t, &l.conv, pairs);
    else if (tune_parse(&tune_winograd, best, &winograd)) winograd_blocks_tried(t, &l.conv, winograd);
}

static void depthwise_tried(Proposals *t, const Graph *g, const Kernel *k, const Options *o, const char *best) {
    TileTarget target = template_target(o);
    ConvLayout l = template_conv_layout(g, &k->conv, o);
    ConvDwTiles tiles = conv_dw_tiles(&l, &target);
    if (!best) depthwise_tiles_tried(t, &l.conv, tiles);
    else if (tune_parse(&tune_depthwise, best, &tiles)) depthwise_blocks_tried(t, &l.conv, tiles);
}

void template_candidates(Arena *a, const Graph *g, const Kernel *k, const Options *o, const char *best, Choices *out) {
    Target here = o->machine;
    if (!here.lanes) target_find("native", &here);      // the generic file has what this machine has
    Proposals t = { a, out, here.registers >= 32 };
    if (k->kind == KERNEL_GEMM) gemm_tried(&t, g, k, o, best);
    else if (k->kind == KERNEL_DEPTHWISE) depthwise_tried(&t, g, k, o, best);
    else if (k->kind == KERNEL_ATTENTION) attention_candidates(a, g, k, o, best, out);
    else if (k->kind == KERNEL_CONV) conv_tried(&t, g, k, o, best);
}
