// SPDX-License-Identifier: MIT OR Apache-2.0
// Convolutions with the channels last. In: a kernel in canonical form. Out: its template (direct, Winograd's or
// depthwise), block sizes (tiles_conv.c), packed weights (pack.c) and scratch memory.
#include "pack.h"
#include "templates.h"

#include <string.h>

static ConvLayout conv_layout(const Graph *g, const Kernel *k, const Options *o) {
    const Convolution *c = &k->conv;
    ConvShape s = { .n = dim_upper(g, c->batch), .groups = c->groups, .ic = c->ic / c->groups, .oc = c->oc / c->groups };
    memcpy(s.in, c->in, sizeof s.in); memcpy(s.out, c->out, sizeof s.out); memcpy(s.kernel, c->kernel, sizeof s.kernel);
    memcpy(s.stride, c->stride, sizeof s.stride); memcpy(s.dilation, c->dilation, sizeof s.dilation); memcpy(s.pad, c->pad, sizeof s.pad);
    return (ConvLayout){ .conv = s, .xn = dim_upper(g, c->x_batch), .xd = c->x_axis[0], .xh = c->x_axis[1], .xw = c->x_axis[2], .xc = c->x_channel, .yc = c->y_pixel, .parts = o->threads };
}

static void hole_shape(Arena *a, const Graph *g, Kernel *k, const ConvLayout *l) {
    const ConvShape *s = &l->conv;
    template_hole_dim(a, g, k, "N", k->conv.batch);
    template_hole3(a, k, "I", s->in); template_hole3(a, k, "O", s->out); template_hole3(a, k, "K", s->kernel);
    template_hole3(a, k, "S", s->stride); template_hole3(a, k, "D", s->dilation); template_hole3(a, k, "P", s->pad);
    template_hole3(a, k, "X", (int64_t[]){ l->xd, l->xh, l->xw });
    template_hole_dim(a, g, k, "XN", k->conv.x_batch); template_hole(a, k, "XC", l->xc); template_hole(a, k, "YC", l->yc);
    template_hole(a, k, "G", s->groups); template_hole(a, k, "IC", s->ic); template_hole(a, k, "OC", s->oc);
}

static size_t taps_of(const Convolution *c) { return (size_t)(c->kernel[0] * c->kernel[1] * c->kernel[2]); }

// ---------------------------------------------------------------- direct
static void fill_direct(const Buffer *b, void *to) {
    const Convolution *c = &b->packer->conv;
    size_t groups = (size_t)c->groups, merge = groups / (size_t)template_hole_value(b->packer, "G");
    pack_conv_w(b->value->data->data, groups, (size_t)c->oc / groups, (size_t)c->ic / groups, taps_of(c), merge, 16 * (size_t)template_hole_value(b->packer, "NV"), to);
}

static void plan_direct(Arena *a, const Graph *g, Kernel *k, const Options *o, ConvLayout l) {
    TileTarget target = template_target(o);
    int64_t merge = conv_merge(l.conv.groups, l.conv.oc);
    l.conv.groups /= merge; l.conv.ic *= merge; l.conv.oc *= merge;
    ConvTiles t = conv_tiles(&l, &target);
    k->template_file = "c/conv.c";
    hole_shape(a, g, k, &l);
    template_hole(a, k, "MR", t.mr); template_hole(a, k, "MF", t.mf); template_hole(a, k, "NV", t.nv); template_hole(a, k, "IMAGE", t.image);
    template_hole(a, k, "PIXEL", t.pixel); template_hole(a, k, "KB", t.kb); template_hole(a, k, "RC", t.rc); template_hole(a, k, "CC", t.cc);
    template_hole(a, k, "PART_PANELS", t.part_panels);
    k->scratch_bytes = (int64_t)conv_scratch_bytes(&l, &t);
    const Convolution *c = &k->conv;
    size_t groups = (size_t)c->groups, floats = pack_conv_w_floats(groups, (size_t)c->oc / groups, (size_t)c->ic / groups, taps_of(c), (size_t)merge, 16 * (size_t)t.nv);
    k->packed = template_packed(a, k, k->operand[1], floats, "panels of output channels, tap by tap", fill_direct);
}

// ---------------------------------------------------------------- Winograd
static void fill_winograd(const Buffer *b, void *to) {
    const Convolution *c = &b->packer->conv;
    pack_winograd_w(b->value->data->data, (size_t)c->oc, (size_t)c->ic, (size_t)template_hole_value(b->packer, "T"), 16 * (size_t)template_hole_value(b->packer, "NV"), to);
}

// Fewer products for 3x3 windows. Portable code has no vectors that its transforms could count on.
static bool plan_winograd(Arena *a, const Graph *g, Kernel *k, const Options *o, const ConvLayout *l) {
    if (!o->machine.vectors) return false;
    TileTarget target = template_target(o);
    WinogradTiles t = winograd_tiles(l, &target);
    if (!t.preferred) return false;
    k->template_file = "c/winograd.c";
    hole_shape(a, g, k, l);
    template_hole(a, k, "T", t.t); template_hole(a, k, "MR", t.mr); template_hole(a, k, "MF", t.mf); template_hole(a, k, "NV", t.nv);
    template_hole(a, k, "TB", t.tb); template_hole(a, k, "VP", t.vp); template_hole(a, k, "PART_PANELS", t.part_panels);
    k->scratch_bytes = (int64_t)winograd_scratch_bytes(l, &t);
    size_t floats = pack_winograd_w_floats((size_t)k->conv.oc, (size_t)k->conv.ic, (size_t)t.t, 16 * (size_t)t.nv);
    k->packed = template_packed(a, k, k->operand[1], floats, arena_printf(a, "matrices of F(%dx%d, 3x3) in panels of output channels", t.t, t.t), fill_winograd);
    return true;
}

// ---------------------------------------------------------------- depthwise
static void fill_depthwise(const Buffer *b, void *to) {
    const Convolution *c = &b->packer->conv;
    pack_conv_dw_w(b->value->data->data, (size_t)c->groups, (size_t)(c->oc / c->groups), taps_of(c), to);
}

static void plan_depthwise(Arena *a, const Graph *g, Kernel *k, const Options *o, const ConvLayout *l) {
    TileTarget target = template_target(o);
    ConvDwTiles t = conv_dw_tiles(l, &target);
    k->template_file = "c/conv_dw.c";
    hole_shape(a, g, k, l);
    template_hole(a, k, "MULT", l->conv.oc); template_hole(a, k, "BR", t.br); template_hole(a, k, "BF", t.bf); template_hole(a, k, "CB", t.cb);
    template_hole(a, k, "IMAGE", t.image); template_hole(a, k, "RC", t.rc);
    k->scratch_bytes = (int64_t)conv_dw_scratch_bytes(l, &t);
    size_t floats = pack_conv_dw_w_floats((size_t)k->conv.groups, (size_t)l->conv.oc, taps_of(&k->conv));
    k->packed = template_packed(a, k, k->operand[1], floats, "taps of all channels", fill_depthwise);
}

void plan_conv(Arena *a, const Graph *g, Kernel *k, const Options *o) {
    ConvLayout l = conv_layout(g, k, o);
    if (k->kind == KERNEL_DEPTHWISE) plan_depthwise(a, g, k, o, &l);
    else if (!plan_winograd(a, g, k, o, &l)) plan_direct(a, g, k, o, l);
}
