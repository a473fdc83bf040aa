// SPDX-License-Identifier: MIT OR Apache-2.0
// Gives every template kernel its template file, block sizes (tiles.c), packed constant operand (pack.c) and scratch
// memory. In: kernels in canonical form. Out: the same with integer holes filled; codegen only spells them.
#include "pack.h"
#include "schedule/schedule.h"
#include "templates.h"
#include "tune.h"

#include <string.h>

// ---------------------------------------------------------------- gemm
static void fill_gemm_b(const Buffer *b, void *to) {
    const Contraction *s = &b->packer->gemm;
    const size_t nr = 16 * (size_t)template_hole_value(b->packer, "NV"),
                 one = pack_gemm_b_floats((size_t)s->n, (size_t)s->k, nr);
    const float *from = b->value->data->data;
    for (int64_t i = 0; i < (s->b_batch ? s->batch : 1); i++)
        pack_gemm_b(from + i * s->b_batch, (size_t)s->n, (size_t)s->k, (size_t)s->b_row, (size_t)s->b_col, nr,
            (float *)to + (size_t)i * one);
}

static void fill_gemv(const Buffer *b, void *to) {
    const Contraction *s = &b->packer->gemm;
    const size_t one = pack_gemv_w_floats((size_t)s->n, (size_t)s->k);
    const float *from = b->value->data->data;
    for (int64_t i = 0; i < (s->b_batch ? s->batch : 1); i++)
        pack_gemv_w(from + i * s->b_batch, (size_t)s->n, (size_t)s->k, (size_t)s->b_row, (size_t)s->b_col,
            (float *)to + (size_t)i * one);
}

// Do the constants that this graph's nodes read, the matrix among them, stay in the core's second cache from run to
// run (of a loop's body, from step to step)?
static bool constants_near(const Graph *g, const Options *o) {
    int64_t room = (int64_t)o->machine.l2 * 5 / 4;
    for (const Node *n = g->first; n; n = n->next)
        for (int i = 0; i < n->n_in; i++)
            if (n->in[i] && n->in[i]->data) room -= type_bytes(&n->in[i]->type);
    return room >= 0;
}

// One row of A: B is read once, in long straight lines. B's layout decides between packed (0; 3 for few columns),
// row-major (1) and transposed (2).
static bool plan_gemv(Arena *a, const Graph *g, Kernel *k, const Options *o) {
    const Contraction *s = &k->gemm;
    Value *w = k->operand[1];
    // a transposed view of what others read as it lies (passes/share_weights.c)
    bool shared = w->data && k->anchor->in[1] != w && s->b_row == 1;
    bool packed = template_packs(k, w) && !shared;
    int layout = packed ? 0 : s->b_col == 1 ? 1 : s->b_row == 1 ? 2 : -1;
    if (s->m != 1 || s->a_col != 1 || layout < 0 || !dim_is_const(s->n) || !dim_is_const(s->k)) return false;
    GemmShape shape = template_gemm_shape(g, k);
    bool near = packed && constants_near(g, o);
    Record *r = packed ? tune_record(a, k, o,
                    arena_printf(a, "%s%s", template_gemm_signature(a, g, k, &shape, "gemm"), near ? " near=1" : "")) :
                         NULL;
    TileTarget target = template_target(o);
    GemvTiles t = packed ? gemv_tiles(s->n, s->k, &target, near) : (GemvTiles){ 1, GEMV_SIDE }, recorded = t;
    if (r && tune_parse(&tune_gemv, r->choice, &recorded) && gemv_fits(&shape, &recorded)) {
        t = recorded;
        k->tuned = true;
    } else if (r) tune_refuse(k, r);
    if (packed) k->choice = tune_text(a, &tune_gemv, &t);
    bool few = packed && t.nv == 0;
    if (few) {
        layout = 3;
        t.nv = 1;
    }
    size_t one = few ? pack_gemv_w_floats((size_t)s->n, (size_t)s->k) :
                       pack_gemm_b_floats((size_t)s->n, (size_t)s->k, 16 * (size_t)t.nv);
    k->template = &template_gemv;
    template_hole_dim(a, k, "BATCH", s->batch);
    template_hole(a, k, "N", s->n);
    template_hole(a, k, "K", s->k);
    template_hole_dim(a, k, "AB", s->a_batch);
    template_hole_dim(a, k, "CB", s->c_batch);
    template_hole_dim(a, k, "BB", !packed ? s->b_batch : s->b_batch ? (int64_t)one : 0);
    template_hole(a, k, "LAYOUT", layout);
    template_hole_dim(a, k, "LB", layout == 2 ? s->b_col : s->b_row);
    template_hole(a, k, "NV", t.nv);
    template_hole(a, k, "SIDE", t.side);
    if (packed)
        k->packed = template_packed(a, k, w, one * (size_t)(s->b_batch ? s->batch : 1),
            few ? "16 terms of each column in turn" : "panels of columns", few ? fill_gemv : fill_gemm_b);
    return true;
}

static void plan_gemm(Arena *a, const Graph *g, Kernel *k, const Options *o) {
    if (plan_bytes(a, g, k, o) || plan_low(a, g, k, o) || plan_pairs(a, g, k, o) || plan_window(a, g, k, o)
        || plan_blas(a, g, k, o) || plan_gemv(a, g, k, o))
        return;
    Contraction *s = &k->gemm;
    Value *w = k->operand[1];
    bool packed = template_packs(k, w), m_fixed = dim_is_const(s->m), n_fixed = dim_is_const(s->n);
    TileTarget target = template_target(o);
    GemmShape shape = template_gemm_shape(g, k);
    shape.shared = o->threads > 2;
    GemmTiles t = gemm_tiles(&shape, &target), recorded = t;
    Record *r = tune_record(a, k, o, template_gemm_signature(a, g, k, &shape, "gemm"));
    if (r && tune_parse(&tune_gemm, r->choice, &recorded) && gemm_fits(&shape, n_fixed, &recorded)) {
        t = recorded;
        k->tuned = true;
    } else if (r) tune_refuse(k, r);
    if (o->train_memory) gemm_within(&shape, o->train_memory / 8, &t);
    k->choice = tune_text(a, &tune_gemm, &t);
    k->template = &template_gemm;
    template_hole_dim(a, k, "BATCH", s->batch);
    template_hole_dim(a, k, "M", s->m);
    template_hole_dim(a, k, "N", s->n);
    template_hole_dim(a, k, "K", s->k);
    template_hole(a, k, "M_FIXED", m_fixed ? template_edge(s->m, template_whole_rows(t.mr)) : 0);
    template_hole(a, k, "N_FIXED", n_fixed ? template_edge(s->n, 16 * t.nv) : 0);
    template_hole_dim(a, k, "AB", s->a_batch);
    template_hole_dim(a, k, "AM", s->a_row);
    template_hole_dim(a, k, "AK", s->a_col);
    template_hole(a, k, "B_PACKED", packed);
    template_hole(a, k, "PACK_A", t.pack_a);
    template_hole(a, k, "PACK_B", t.pack_b);
    template_hole_dim(a, k, "CB", s->c_batch);
    template_hole_dim(a, k, "CM", s->c_row);
    template_hole(a, k, "MR", t.mr);
    template_hole(a, k, "NV", t.nv);
    template_hole_dim(a, k, "KC", t.kc);
    template_hole_dim(a, k, "NC", t.nc);
    template_hole_dim(a, k, "MC", t.mc);
    size_t one = packed ? pack_gemm_b_floats((size_t)s->n, (size_t)s->k, 16 * (size_t)t.nv) : 0;
    template_hole_dim(a, k, "BB", !packed ? s->b_batch : s->b_batch ? (int64_t)one : 0);
    template_hole_dim(a, k, "BK", s->b_row);
    template_hole_dim(a, k, "BN", s->b_col);
    if (packed)
        k->packed = template_packed(
            a, k, w, one * (size_t)(s->b_batch ? s->batch : 1), "panels of columns", fill_gemm_b);
    k->scratch_bytes = (int64_t)gemm_scratch_bytes(&shape, &t);
}

void template_plan(Arena *a, const Graph *g, Kernel *k, const Options *o) {
    if (k->kind == KERNEL_GEMM) plan_gemm(a, g, k, o);
    else if (k->kind == KERNEL_CONV || k->kind == KERNEL_DEPTHWISE) plan_conv(a, g, k, o);
    else if (k->kind == KERNEL_PLANES) plan_planes(a, g, k, o);
    else if (k->kind == KERNEL_ATTENTION) plan_attention(a, g, k, o);
    else if (k->kind == KERNEL_ATTENTION_GRAD) plan_attention_grad(a, g, k, o);
}

// Weights that L2 does not keep from run to run come from far memory. Their price rises until what Winograd's algorithm
// adds to the model's own is within bounds: an eighth and what a few layers of a small model take, or, where that is
// more, what the widest layers of a common one do.
enum { MOST_PRICE = 64 * 1024, ROOM_SHARE = 8, ROOM = 24 << 20, LEAST_ROOM = 52 << 20 };

static int64_t room_for_growth(int64_t weights) {
    const int64_t share = weights / ROOM_SHARE + ROOM;
    return share > LEAST_ROOM ? share : LEAST_ROOM;
}

static int64_t weights_bytes(const Graph *g) {
    int64_t bytes = 0;
    for (const Node *n = g->first; n; n = n->next)
        for (int i = 0; i < n->n_in; i++) bytes += n->in[i] && n->in[i]->data ? type_bytes(&n->in[i]->data->type) : 0;
    return bytes;
}

static void set_price(Plan *p, int price) {
    for (int i = 0; i < p->kernels.n; i++)
        if (kernel_is_conv(p->kernels.at[i])) p->kernels.at[i]->conv.price = price;
}

static void weights_price(Plan *p) {
    const Options *o = p->options;
    int64_t weights = weights_bytes(graph_root(p->graph)), l2 = o->machine.l2 ? (int64_t)o->machine.l2 : 512 << 10,
            growth = INT64_MAX;
    for (int price = WEIGHTS_FAR; weights > l2 && growth > room_for_growth(weights) && price <= MOST_PRICE;
         price += (price - WEIGHTS_FAR) / 2 + WEIGHTS_FAR / 32) {
        set_price(p, price);
        growth = 0;
        for (int i = 0; i < p->kernels.n; i++)
            growth += p->kernels.at[i]->kind == KERNEL_CONV ? template_conv_growth(p->graph, p->kernels.at[i], o) : 0;
    }
}

bool templates_plan(Plan *p) {
    weights_price(p);
    for (int i = 0; i < p->kernels.n; i++) template_plan(p->arena, p->graph, p->kernels.at[i], p->options);
    window_share(p);
    return true;
}
