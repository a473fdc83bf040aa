// SPDX-License-Identifier: MIT OR Apache-2.0
// Convolutions with the channels last, and those on planes. In: a kernel in canonical form. Out: its template
// (direct, tap by tap, Winograd's or depthwise), block sizes (tiles_conv.c), packed weights (pack.c) and scratch
// memory.
#include "pack.h"
#include "templates.h"
#include "tune.h"

#include <string.h>

int64_t template_conv_growth(const Graph *g, const Kernel *k, const Options *o) {
    ConvLayout l = template_conv_layout(g, &k->conv, o);
    TileTarget target = template_target(o);
    WinogradTiles w = { 0 };
    if (k->kind == KERNEL_CONV && o->machine.vectors && k->operand[1]->data) w = winograd_tiles(&l, &target);
    int64_t taps = l.conv.kernel[1] * l.conv.kernel[2];
    return w.preferred ? (winograd_points(&l.conv, w.tile) - taps) * l.conv.ic * l.conv.oc * (int64_t)sizeof(float) : 0;
}

typedef void PutHole(Arena *a, Kernel *k, const char *name, int64_t value);

// `stride`, `hole`: of the input's strides, and of channels; template_hole_dim where the template takes any expressions
static void hole_shape(Arena *a, Kernel *k, const ConvLayout *l, PutHole *stride, PutHole *hole) {
    const ConvShape *s = &l->conv;
    template_hole_dim(a, k, "N", k->conv.batch);
    template_hole3(a, k, "I", s->in);
    template_hole3(a, k, "O", s->out);
    template_hole3(a, k, "K", s->kernel);
    template_hole3(a, k, "S", s->stride);
    template_hole3(a, k, "D", s->dilation);
    template_hole3(a, k, "P", s->pad);
    stride(a, k, "XD", l->xd);
    stride(a, k, "XH", l->xh);
    stride(a, k, "XW", l->xw);
    template_hole_dim(a, k, "XN", k->conv.x_batch);
    stride(a, k, "XC", l->xc);
    hole(a, k, "YC", l->yc);
    template_hole(a, k, "G", s->groups);
    hole(a, k, "IC", s->ic);
    hole(a, k, "OC", s->oc);
}

static size_t taps_of(const Convolution *c) { return (size_t)(c->kernel[0] * c->kernel[1] * c->kernel[2]); }

// ---------------------------------------------------------------- direct
static void fill_direct(const Buffer *b, void *to) {
    const Convolution *c = &b->packer->conv;
    size_t groups = (size_t)c->groups, merge = groups / (size_t)template_hole_value(b->packer, "G");
    pack_conv_w(b->value->data->data, groups, (size_t)c->oc / groups, (size_t)c->ic / groups, taps_of(c), merge,
        16 * (size_t)template_hole_value(b->packer, "NV"), to);
}

// `r`: a record of it, which has to fit, or NULL.
static bool plan_direct(Arena *a, Kernel *k, const Options *o, const ConvLayout *whole, const Record *r) {
    TileTarget target = template_target(o);
    ConvLayout l = template_conv_merged(*whole);
    int64_t merge = whole->conv.groups / l.conv.groups;
    ConvTiles t = conv_tiles(&l, &target);
    if (r && !(tune_parse(&tune_direct, r->choice, &t) && direct_fits(&l, &t))) return false;
    if (o->train_memory) conv_within(&l, o->train_memory / 8, &t);
    k->choice = tune_text(a, &tune_direct, &t);
    k->template = &template_conv;
    hole_shape(a, k, &l, template_hole_dim, template_hole_dim);
    template_hole(a, k, "MR", t.mr);
    template_hole(a, k, "MF", t.mf);
    template_hole(a, k, "NV", t.nv);
    template_hole(a, k, "IMAGE", t.image);
    template_hole_dim(a, k, "PIXEL", t.pixel);
    bool dense = l.conv.dilation[2] == 1 && (t.image ? t.pixel : l.xw) == l.conv.ic;
    template_hole(a, k, "RUNS", dense ? 1 : l.conv.kernel[2]);
    template_hole(a, k, "OC_EDGE", template_edge(l.conv.oc, 16 * t.nv));
    template_hole(a, k, "KB", t.kb);
    template_hole_dim(a, k, "RC", t.rc);
    template_hole(a, k, "CC", t.cc);
    k->scratch_bytes = (int64_t)conv_scratch_bytes(&l, &t);
    Convolution *c = &k->conv;
    c->w_merge = merge;
    c->w_panel = 16 * t.nv;
    size_t groups = (size_t)c->groups,
           floats = pack_conv_w_floats(
               groups, (size_t)c->oc / groups, (size_t)c->ic / groups, taps_of(c), (size_t)merge, 16 * (size_t)t.nv);
    k->packed = template_packed(a, k, k->operand[1], floats, "panels of output channels, tap by tap", fill_direct);
    return true;
}

// ---------------------------------------------------------------- tap by tap
static bool plan_taps(Arena *a, Kernel *k, const Options *o, const ConvLayout *l, const Record *r) {
    TileTarget target = template_target(o);
    TapTiles t = conv_taps_tiles(l, &target);
    if (r ? !(tune_parse(&tune_taps, r->choice, &t) && taps_fits(l, &t)) : !t.preferred) return false;
    k->choice = tune_text(a, &tune_taps, &t);
    k->template = &template_conv_taps;
    hole_shape(a, k, l, template_hole, template_hole);
    template_hole(a, k, "MR", t.mr);
    template_hole(a, k, "MF", t.mf);
    template_hole(a, k, "NV", t.nv);
    template_hole(a, k, "PITCH", t.pitch);
    template_hole(a, k, "TB", t.tb);
    template_hole(a, k, "RC", t.rc);
    k->scratch_bytes = (int64_t)conv_taps_scratch_bytes(l, &t);
    k->conv.w_merge = 1;
    k->conv.w_panel = 16 * t.nv;
    size_t floats = pack_conv_w_floats(
        1, (size_t)l->conv.oc, (size_t)l->conv.ic, taps_of(&k->conv), 1, 16 * (size_t)t.nv);
    k->packed = template_packed(a, k, k->operand[1], floats, "panels of output channels, tap by tap", fill_direct);
    return true;
}

// ---------------------------------------------------------------- pairs of pixels
static void fill_pairs(const Buffer *b, void *to) {
    const Convolution *c = &b->packer->conv;
    pack_conv_pairs_w(b->value->data->data, (size_t)c->oc, (size_t)c->ic, taps_of(c), to);
}

// Rows go with rows half an image below: nothing for kernels that go strip by strip.
static bool plan_pixel_pairs(Arena *a, Kernel *k, const Options *o, const ConvLayout *l, const Record *r) {
    if (!o->machine.vectors || o->ram || !k->operand[1]->data) return false;
    TileTarget target = template_target(o);
    PairTiles t = conv_pairs_tiles(l, &target);
    if (r ? !(tune_parse(&tune_pairs, r->choice, &t) && pairs_fits(l, &t)) : !t.preferred) return false;
    k->choice = tune_text(a, &tune_pairs, &t);
    k->template = &template_conv_pairs;
    hole_shape(a, k, l, template_hole, template_hole);
    template_hole(a, k, "MR", t.mr);
    template_hole(a, k, "RC", t.rc);
    k->scratch_bytes = (int64_t)conv_pairs_scratch_bytes(l, &t);
    k->conv.w_merge = 1;
    k->conv.w_panel = 16;
    size_t floats = 16 * taps_of(&k->conv) * (size_t)k->conv.ic;
    k->packed = template_packed(a, k, k->operand[1], floats, "output channels, each twice, tap by tap", fill_pairs);
    return true;
}

// ---------------------------------------------------------------- Winograd
static WinogradForm winograd_form(const Kernel *k) {
    return (WinogradForm){ (size_t)template_hole_value(k, "TH"), (size_t)template_hole_value(k, "TW"),
        (size_t)k->conv.kernel[1], (size_t)k->conv.kernel[2] };
}

static void fill_winograd(const Buffer *b, void *to) {
    const Convolution *c = &b->packer->conv;
    WinogradForm f = winograd_form(b->packer);
    pack_winograd_w(
        b->value->data->data, (size_t)c->oc, (size_t)c->ic, &f, 16 * (size_t)template_hole_value(b->packer, "NV"), to);
}

// Fewer products. Portable code has no vectors that its transforms could count on.
static bool plan_winograd(Arena *a, Kernel *k, const Options *o, const ConvLayout *l, const Record *r) {
    if (!o->machine.vectors || (!k->operand[1]->data && !l->images)) return false;
    TileTarget target = template_target(o);
    WinogradTiles t = winograd_tiles(l, &target);
    if (r ? !(tune_parse(&tune_winograd, r->choice, &t) && winograd_fits(l, &t)) : !t.preferred) return false;
    k->choice = tune_text(a, &tune_winograd, &t);
    k->template = &template_winograd;
    hole_shape(a, k, l, template_hole_dim, template_hole);
    template_hole(a, k, "TH", t.tile.h);
    template_hole(a, k, "TW", t.tile.w);
    template_hole(a, k, "MR", t.mr);
    template_hole(a, k, "MF", t.mf);
    template_hole(a, k, "NV", t.nv);
    template_hole(a, k, "TB", t.tb);
    template_hole(a, k, "VP", t.vp);
    template_hole(a, k, "TOGETHER", l->images ? l->images : 1);
    VEC_PUSH(a, k->holes, (HoleValue){ .name = "INPUTS", .kind = HOLE_OWN, .text = "inputs" });
    k->conv.w_merge = 1;
    k->conv.w_panel = 16 * t.nv;
    k->scratch_bytes = (int64_t)winograd_scratch_bytes(l, &t);
    WinogradForm f = winograd_form(k);
    size_t floats = pack_winograd_w_floats((size_t)k->conv.oc, (size_t)k->conv.ic, &f, 16 * (size_t)t.nv);
    k->packed = template_packed(a, k, k->operand[1], floats,
        arena_printf(a, "matrices of F(%zux%zu, %zux%zu) in panels of output channels", f.th, f.tw, f.kh, f.kw),
        fill_winograd);
    return true;
}

// ---------------------------------------------------------------- depthwise
static void fill_depthwise(const Buffer *b, void *to) {
    const Convolution *c = &b->packer->conv;
    pack_conv_dw_w(b->value->data->data, (size_t)c->groups, (size_t)(c->oc / c->groups), taps_of(c), to);
}

static bool plan_depthwise(Arena *a, Kernel *k, const Options *o, const ConvLayout *l, const Record *r) {
    TileTarget target = template_target(o);
    ConvDwTiles t = conv_dw_tiles(l, &target);
    if (r && !(tune_parse(&tune_depthwise, r->choice, &t) && depthwise_fits(l, &t))) return false;
    k->choice = tune_text(a, &tune_depthwise, &t);
    k->template = &template_conv_dw;
    hole_shape(a, k, l, template_hole, template_hole);
    template_hole(a, k, "MULT", l->conv.oc);
    template_hole(a, k, "BR", t.br);
    template_hole(a, k, "BF", t.bf);
    template_hole(a, k, "CB", t.cb);
    template_hole(a, k, "IMAGE", t.image);
    template_hole(a, k, "RC", t.rc);
    k->scratch_bytes = (int64_t)conv_dw_scratch_bytes(l, &t);
    k->conv.w_merge = 1;
    k->conv.w_panel = (k->conv.groups + 15) / 16 * 16;
    size_t floats = pack_conv_dw_w_floats((size_t)k->conv.groups, (size_t)l->conv.oc, taps_of(&k->conv));
    k->packed = template_packed(a, k, k->operand[1], floats, "taps of all channels", fill_depthwise);
    return true;
}

void plan_planes(Arena *a, const Graph *g, Kernel *k, const Options *o) {
    TileTarget target = template_target(o);
    ConvLayout l = template_conv_layout(g, &k->conv, o);
    ConvPlanesTiles t = conv_planes_tiles(&l.conv, &target);
    k->choice = tune_text(a, &tune_planes, &t);
    k->template = &template_conv_planes;
    hole_shape(a, k, &l, template_hole, template_hole);
    template_hole(a, k, "MULT", l.conv.oc);
    template_hole(a, k, "BR", t.br);
    template_hole(a, k, "BF", t.bf);
    template_hole(a, k, "RC", t.rc);
    template_hole(a, k, "DIRECT", conv_planes_direct(&l));
    k->scratch_bytes = (int64_t)conv_planes_scratch_bytes(&l.conv, &t);
}

static bool plan_by(Arena *a, Kernel *k, const Options *o, const ConvLayout *l, const Record *r) {
    if (k->kind == KERNEL_DEPTHWISE) return plan_depthwise(a, k, o, l, r);
    return plan_winograd(a, k, o, l, r) || plan_taps(a, k, o, l, r) || plan_pixel_pairs(a, k, o, l, r)
        || plan_direct(a, k, o, l, r);
}

void plan_conv(Arena *a, const Graph *g, Kernel *k, const Options *o) {
    if (plan_window(a, g, k, o)) return;
    ConvLayout l = template_conv_layout(g, &k->conv, o);
    const char *kind = k->kind == KERNEL_DEPTHWISE ? "depthwise" : "conv";
    if (!k->operand[1]->data && dim_is_const(k->conv.batch)) l.images = k->conv.batch;
    Record *r = k->operand[1]->data ? tune_record(a, k, o, template_layout_signature(a, &l, kind)) : NULL;
    k->tuned = r && plan_by(a, k, o, &l, r);
    if (k->tuned) return;
    if (r) tune_refuse(k, r);
    plan_by(a, k, o, &l, NULL);
}
