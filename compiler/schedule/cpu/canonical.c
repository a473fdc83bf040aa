// SPDX-License-Identifier: MIT OR Apache-2.0
// What the planners of template kernels share: the templates by name, holes, packed operands, and a kernel's canonical
// form as the shapes that tiles*.c takes and as the signature that records know it by.
#include "schedule/schedule.h"
#include "templates.h"

#include <string.h>

#define TEMPLATE(name, params, axes, epilogue, parts, strips, over) \
    const Template template_##name = { "c/" #name ".c", params, axes, epilogue, parts, strips, over };
#include "templates.def"
#undef TEMPLATE

TileTarget template_target(const Options *o) {
    const Target *m = &o->machine;
    // a tile of 4 rows, with their vector of weights and a float of each row in turn
    enum { SCALAR_REGISTERS = 4 + 2 };
    if (m->lanes == 1) return (TileTarget){ SCALAR_LANES, SCALAR_REGISTERS, 0, m->l1, m->l2, m->l3 };
    return (TileTarget){ m->lanes, m->registers, m->unfused, m->l1, m->l2, m->l3 };
}

void template_hole(Arena *a, Kernel *k, const char *name, int64_t value) {
    VEC_PUSH(a, k->holes, (HoleValue){ .name = name, .value = value });
}

void template_holes(Arena *a, Kernel *k, int n, const TemplateHole *all) {
    for (int i = 0; i < n; i++) template_hole(a, k, all[i].name, all[i].value);
}

void template_hole_dim(Arena *a, Kernel *k, const char *name, Dim d) {
    VEC_PUSH(a, k->holes, (HoleValue){ .name = name, .kind = HOLE_SIZE, .value = d });
}

void template_hole3(Arena *a, Kernel *k, const char *prefix, const int64_t *v) {
    for (int i = 0; i < 3; i++) template_hole(a, k, arena_printf(a, "%s%c", prefix, "DHW"[i]), v[i]);
}

int64_t template_hole_value(const Kernel *k, const char *name) {
    for (int i = 0; i < k->holes.n; i++)
        if (!strcmp(k->holes.at[i].name, name)) return k->holes.at[i].value;
    bug("kernel has no hole %s", name);
}

int64_t template_whole_rows(int64_t mr) { return mr % 2 ? mr * ((mr + 1) / 2) : mr; }

int64_t template_edge(int64_t size, int64_t unit) { return (size - 1) % unit + 1; }

Buffer *template_packed_as(Arena *a, Kernel *k, Value *v, DType element, size_t bytes, const char *layout,
    void (*fill)(const Buffer *, void *)) {
    Buffer *b = NEW(a, Buffer);
    *b = (Buffer){ .place = v->data ? PLACE_WEIGHT : PLACE_WORK,
        .value = v,
        .bytes = (int64_t)bytes,
        .element = element,
        .layout = layout,
        .fill = fill,
        .packer = k,
        .first = INT32_MAX,
        .last = -1 };
    return b;
}

Buffer *template_packed(
    Arena *a, Kernel *k, Value *v, size_t floats, const char *layout, void (*fill)(const Buffer *, void *)) {
    return template_packed_as(a, k, v, DT_F32, floats * sizeof(float), layout, fill);
}

// ---------------------------------------------------------------- products
// A constant right operand is packed; its row-major bytes are then not written.
bool template_packs(const Kernel *k, const Value *v) {
    return v->data && k->operand[0] != v;
}

GemmShape template_gemm_shape(const Graph *g, const Kernel *k) {
    const Contraction *s = &k->gemm;
    return (GemmShape){ dim_upper(g, s->batch), dim_upper(g, s->m), dim_upper(g, s->n), dim_upper(g, s->k), s->a_row,
        s->a_col, s->b_row, s->b_col, template_packs(k, k->operand[1]), !dim_is_const(s->m),
        !dim_is_const(s->n), 0, 0 };
}

// What a record knows it by. Sizes that the running program knows are theirs at most.
const char *template_gemm_signature(Arena *a, const Graph *g, const Kernel *k, const GemmShape *s, const char *kind) {
    const Contraction *c = &k->gemm;
    const char *open = dim_is_const(c->m) && dim_is_const(c->n) && dim_is_const(c->k) ? "" : " sizes=open";
    const char *b = s->b_packed ?
        "packed" :
        arena_printf(a, "%lld,%lld", (long long)dim_upper(g, c->b_row), (long long)dim_upper(g, c->b_col));
    return arena_printf(a, "%s batch=%lld m=%lld n=%lld k=%lld a=%lld,%lld b=%s c=%lld%s", kind, (long long)s->batch,
        (long long)s->m, (long long)s->n, (long long)s->k, (long long)dim_upper(g, c->a_row),
        (long long)dim_upper(g, c->a_col), b, (long long)dim_upper(g, c->c_row), open);
}

// ---------------------------------------------------------------- convolutions
ConvShape template_conv_shape(const Graph *g, const Convolution *c) {
    ConvShape s = {
        .n = dim_upper(g, c->batch), .groups = c->groups, .ic = c->ic / c->groups, .oc = c->oc / c->groups
    };
    memcpy(s.in, c->in, sizeof s.in);
    memcpy(s.out, c->out, sizeof s.out);
    memcpy(s.kernel, c->kernel, sizeof s.kernel);
    memcpy(s.stride, c->stride, sizeof s.stride);
    memcpy(s.dilation, c->dilation, sizeof s.dilation);
    memcpy(s.pad, c->pad, sizeof s.pad);
    return s;
}

ConvLayout template_conv_layout(const Graph *g, const Convolution *c, const Options *o) {
    return (ConvLayout){ .conv = template_conv_shape(g, c),
        .xn = dim_upper(g, c->x_batch),
        .xd = c->x_axis[0],
        .xh = c->x_axis[1],
        .xw = c->x_axis[2],
        .xc = c->x_channel,
        .yc = c->y_pixel,
        .parts = o->threads,
        .price = c->price };
}

ConvLayout template_conv_merged(ConvLayout l) {
    int64_t merge = conv_merge(l.conv.groups, l.conv.oc);
    l.conv.groups /= merge;
    l.conv.ic *= merge;
    l.conv.oc *= merge;
    return l;
}

static const char *three(Arena *a, const int64_t *v) {
    return arena_printf(a, "%lldx%lldx%lld", (long long)v[0], (long long)v[1], (long long)v[2]);
}

const char *template_layout_signature(Arena *a, const ConvLayout *l, const char *kind) {
    const ConvShape *s = &l->conv;
    return arena_printf(a,
        "%s n=%lld g=%lld ic=%lld oc=%lld in=%s out=%s k=%s s=%s d=%s p=%s x=%lld,%lld,%lld,%lld,%lld y=%lld", kind,
        (long long)s->n, (long long)s->groups, (long long)s->ic, (long long)s->oc, three(a, s->in), three(a, s->out),
        three(a, s->kernel), three(a, s->stride), three(a, s->dilation), three(a, s->pad), (long long)l->xn,
        (long long)l->xd, (long long)l->xh, (long long)l->xw, (long long)l->xc, (long long)l->yc);
}

const char *template_conv_signature(
    Arena *a, const Graph *g, const Convolution *c, const Options *o, const char *kind) {
    ConvLayout l = template_conv_layout(g, c, o);
    return template_layout_signature(a, &l, kind);
}
