// SPDX-License-Identifier: MIT OR Apache-2.0
// Convolutions and products where memory or code is the price (--ram, --optimize size, targets without an operating
// system). In: a kernel in canonical form. Out: the template that needs no scratch memory, no padded copies and no
// more weights than the model has, window.c or window_dw.c; and how far its result may lie over its input.
//
// One text for all sizes: where the code is to be small, what differs between the kernels of a template is an argument,
// so that they are one function (codegen/c/share.c).
#include "pack.h"
#include "schedule/schedule.h"
#include "templates.h"

#include <string.h>

bool template_small(const Options *o) { return o->small || o->ram || o->machine.ram_first; }

bool template_is_window(const Kernel *k) {
    return k->template == &template_window || k->template == &template_window_dw;
}

bool template_takes_scratch(const Kernel *k) {
    return k->template && !template_is_window(k) && k->template != &template_window_blocks;
}

// A product as a convolution of one row of pixels, with a tap.
static Convolution of_product(const Graph *g, const Contraction *s) {
    Convolution c = { .batch = s->batch, .groups = 1, .ic = s->k, .oc = s->n, .x_batch = s->a_batch,
        .x_channel = s->a_col, .y_pixel = s->c_row };
    for (int i = 0; i < 3; i++) c.in[i] = c.out[i] = c.kernel[i] = c.stride[i] = c.dilation[i] = 1;
    c.in[2] = c.out[2] = dim_upper(g, s->m);
    c.x_axis[2] = s->a_row;
    return c;
}

Convolution window_shape(const Graph *g, const Kernel *k) {
    if (k->kind == KERNEL_GEMM && !template_is_window(k) && k->anchor->op == OP_Conv) return k->window;
    return k->kind == KERNEL_GEMM ? of_product(g, &k->gemm) : k->conv;
}

// ---------------------------------------------------------------- weights
// --precision f16, where there is no operating system: half the flash. What is summed stays f32.
bool window_halves(const Options *o) {
    return o->machine.ram_first && !o->train && o->precision && !strcmp(o->precision, "f16");
}

// Templates read numbers; a weight that rounds to infinity leaves its layer to those of floats.
static bool has_halves(const Value *v) {
    const float *w = v->data->data;
    const int64_t n = type_count(&v->type);
    int64_t i = 0;
    while (i < n && (small_from_float(DT_F16, w[i], false) & 0x7c00) != 0x7c00) i++;
    return i == n;
}

// Whole numbers that a byte has (passes/whole_weights.c).
static bool has_bytes(const Value *v, const Options *o) {
    const float *w = v->data->data;
    const int64_t n = o->machine.ram_first && !o->train ? type_count(&v->type) : -1;
    int64_t i = 0;
    while (i < n && w[i] >= INT8_MIN && w[i] <= INT8_MAX && w[i] == (float)(int8_t)w[i]) i++;
    return i == n;
}

// Names of the template's own: what its weights are of, and the sums that go with it.
static void hole_weights(Arena *a, Kernel *k, const Options *o) {
    const bool bytes = has_bytes(k->operand[1], o);
    const char *weight = bytes ? "burn_window_byte" : "burn_window_weight",
               *sums = bytes ? "BURN_WINDOW_WHOLE" : "BURN_WINDOW_FLOATS";
    VEC_PUSH(a, k->holes, (HoleValue){ .name = "WEIGHT", .kind = HOLE_NAME, .text = weight });
    VEC_PUSH(a, k->holes, (HoleValue){ .name = "SUMS", .kind = HOLE_NAME, .text = sums });
}

static Buffer *packed_weights(
    Arena *a, Kernel *k, const Options *o, int64_t n, const char *layout, void (*fill)(const Buffer *, void *)) {
    const DType element = has_bytes(k->operand[1], o) ? DT_I8 : window_halves(o) ? DT_F16 : DT_F32;
    hole_weights(a, k, o);
    return template_packed_as(a, k, k->operand[1], element, (size_t)(n * (int64_t)dtype_size(element)), layout, fill);
}

// fill: as floats; then as the buffer's elements.
static void fill_rounded(const Buffer *b, void *to, void (*fill)(const Buffer *, float *)) {
    if (b->element == DT_F32) {
        fill(b, to);
        return;
    }
    Arena *scratch = arena_new();
    const int64_t n = b->bytes / (int64_t)dtype_size(b->element);
    float *floats = NEW_ARRAY(scratch, float, n);
    uint16_t *halves = to;
    int8_t *bytes = to;
    fill(b, floats);
    for (int64_t i = 0; i < n; i++)
        if (b->element == DT_I8) bytes[i] = (int8_t)floats[i];
        else halves[i] = (uint16_t)small_from_float(b->element, floats[i], false);
    arena_free(scratch);
}

static void window_floats(const Buffer *b, float *to) {
    const Kernel *k = b->packer;
    const float *from = b->value->data->data;
    if (k->kind == KERNEL_GEMM) {
        const Contraction *s = &k->gemm;
        pack_window_w(from, 1, (size_t)s->n, (size_t)s->k, 1, (size_t)s->b_col, (size_t)s->b_row, to);
    } else {
        const Convolution *c = &k->conv;
        size_t ic = (size_t)(c->ic / c->groups), taps = (size_t)(c->kernel[1] * c->kernel[2]);
        pack_window_w(from, (size_t)c->groups, (size_t)(c->oc / c->groups), ic, taps, ic * taps, taps, to);
    }
}

static void depth_floats(const Buffer *b, float *to) {
    const Convolution *c = &b->packer->conv;
    pack_window_dw_w(b->value->data->data, (size_t)c->oc, (size_t)(c->kernel[1] * c->kernel[2]), to);
}

static void fill_window(const Buffer *b, void *to) { fill_rounded(b, to, window_floats); }
static void fill_window_dw(const Buffer *b, void *to) { fill_rounded(b, to, depth_floats); }

// ---------------------------------------------------------------- holes
static void hole_sizes(Arena *a, Kernel *k, const Convolution *c, Dim columns) {
    static const char axis[] = "DHW";
    template_hole_dim(a, k, "N", c->batch);
    for (int i = 1; i < 3; i++) {
        template_hole_dim(a, k, arena_printf(a, "I%c", axis[i]), i == 2 ? columns : c->in[i]);
        template_hole_dim(a, k, arena_printf(a, "O%c", axis[i]),
            i == 2 && k->kind == KERNEL_GEMM ? columns : c->out[i]);
        template_hole_dim(a, k, arena_printf(a, "K%c", axis[i]), c->kernel[i]);
        template_hole_dim(a, k, arena_printf(a, "S%c", axis[i]), c->stride[i]);
        template_hole_dim(a, k, arena_printf(a, "D%c", axis[i]), c->dilation[i]);
        template_hole_dim(a, k, arena_printf(a, "P%c", axis[i]), c->pad[i]);
    }
    template_hole_dim(a, k, "XN", c->x_batch);
    template_hole_dim(a, k, "XH", c->x_axis[1]);
    template_hole_dim(a, k, "XW", c->x_axis[2]);
    template_hole_dim(a, k, "XC", c->x_channel ? c->x_channel : 1);
    template_hole_dim(a, k, "YC", c->y_pixel);
}

static bool is_dense(const Convolution *c) {
    return c->groups == 1 && (c->x_channel == 1 || c->ic == 1)
        && (c->kernel[2] == 1 || (c->dilation[2] == 1 && c->x_axis[2] == c->ic));
}

// Where a pixel's window is that pixel and rows follow each other, all pixels of an image are one row.
static bool one_row(Convolution *c) {
    for (int i = 1; i < 3; i++)
        if (c->kernel[i] != 1 || c->stride[i] != 1 || c->pad[i] || c->in[i] != c->out[i]) return false;
    if (c->in[1] == 1 || c->x_axis[1] != c->x_axis[2] * c->in[2]) return false;
    c->in[2] = c->out[2] = c->in[1] * c->in[2];
    c->in[1] = c->out[1] = 1;
    return true;
}

static void plan_dense(Arena *a, Kernel *k, const Options *o, Convolution *c, Dim columns) {
    if (one_row(c)) columns = c->in[2];
    int64_t ic = c->ic / c->groups, oc = c->oc / c->groups, taps = c->kernel[1] * c->kernel[2];
    k->template = &template_window;
    hole_sizes(a, k, c, columns);
    template_hole_dim(a, k, "G", c->groups);
    template_hole_dim(a, k, "IC", ic);
    template_hole_dim(a, k, "OC", oc);
    template_hole(a, k, "MR", o->small ? 1 : 4);
    template_hole(a, k, "DENSE", is_dense(c));
    template_hole(a, k, "SINGLE", o->small && c->groups == 1 && c->batch == 1 && c->y_pixel == oc);
    template_hole(a, k, "APART", o->small);
    template_hole(a, k, "BACK", 0);
    k->packed = packed_weights(a, k, o, c->groups * oc * ic * taps + 3,
        "four output channels at a time, tap by tap", fill_window);
}

static void plan_depth(Arena *a, Kernel *k, const Options *o, const Convolution *c) {
    k->template = &template_window_dw;
    hole_sizes(a, k, c, c->in[2]);
    template_hole_dim(a, k, "C", c->oc);
    template_hole_dim(a, k, "MULT", c->oc / c->groups);
    const int64_t together = !o->small && c->oc == c->groups && c->x_channel == 1 ? 4 : 1;
    template_hole(a, k, "NR", together);
    template_hole(a, k, "EDGE", together == 1 || c->oc % together);
    template_hole(a, k, "BACK", 0);
    k->packed = packed_weights(a, k, o, c->oc * c->kernel[1] * c->kernel[2],
        "taps of all channels", fill_window_dw);
}

static bool floats(const Kernel *k) {
    return k->operand[0]->type.dtype == DT_F32 && k->operand[1]->type.dtype == DT_F32
        && k->writes.at[0]->type.dtype == DT_F32;
}

bool plan_window(Arena *a, const Graph *g, Kernel *k, const Options *o) {
    if (!template_small(o) || !template_packs(k, k->operand[1]) || !floats(k)) return false;
    if (window_halves(o) && !has_bytes(k->operand[1], o) && !has_halves(k->operand[1])) return false;
    const Contraction *s = &k->gemm;
    const bool product = k->kind == KERNEL_GEMM;
    if (product && !(dim_is_const(s->n) && dim_is_const(s->k) && dim_is_const(s->a_row) && dim_is_const(s->a_col)
            && dim_is_const(s->c_row) && !s->b_batch))
        return false;
    Convolution c = window_shape(g, k);
    if (!product && (c.in[0] != 1 || c.out[0] != 1 || c.kernel[0] != 1)) return false;
    if (k->kind == KERNEL_DEPTHWISE) plan_depth(a, k, o, &c);
    else plan_dense(a, k, o, &c, product ? s->m : c.in[2]);
    return true;
}

// ---------------------------------------------------------------- one function for all
static bool differ(const Plan *p, const Template *of, int hole, int other) {
    for (int i = 0; i < p->kernels.n; i++) {
        const Kernel *k = p->kernels.at[i];
        if (k->template == of && k->holes.at[hole].value != k->holes.at[other].value) return true;
    }
    return false;
}

static bool varies(const Plan *p, const Kernel *k, int hole) {
    for (int i = 0; i < p->kernels.n; i++) {
        const Kernel *other = p->kernels.at[i];
        if (other->template == k->template && other->holes.at[hole].value != k->holes.at[hole].value) return true;
    }
    return false;
}

// Those that are other than one only in few networks.
static bool is_rare(const char *hole) {
    static const char *const rare[] = { "N", "G", "DH", "DW", "MULT", "XN" };
    for (size_t i = 0; i < COUNT(rare); i++)
        if (!strcmp(rare[i], hole)) return true;
    return false;
}

// Holes that have one value in all kernels are numbers, which the C compiler folds; those that always have the value of
// one before them, as heights and widths of square images, are its name. What several models have in common must not
// follow from one of them.
static void share_hole(const Plan *p, Kernel *k, int hole) {
    HoleValue *h = &k->holes.at[hole];
    const bool common = p->options->share && !is_rare(h->name);
    if (h->kind != HOLE_SIZE || !dim_is_const(h->value)) return;
    const bool alone = k->holes.at[0].value == 1;       // N: no other image is XN floats further on
    if (p->options->share && alone && !strcmp(h->name, "XN")) h->value = 0;
    h->kind = common || varies(p, k, hole) ? HOLE_ARGUMENT : HOLE_NUMBER;
    for (int i = 0; !common && h->kind == HOLE_ARGUMENT && i < hole; i++)
        if (k->holes.at[i].kind == HOLE_ARGUMENT && !differ(p, k->template, i, hole)) {
            h->kind = HOLE_NAME;
            h->text = k->holes.at[i].name;
        }
}

// A form that not all kernels can have none has.
static void share_form(const Plan *p, const char *hole) {
    bool all = true;
    for (int i = 0; i < p->kernels.n; i++)
        all = all && (p->kernels.at[i]->template != &template_window || template_hole_value(p->kernels.at[i], hole));
    for (int i = 0; !all && i < p->kernels.n; i++) {
        Kernel *k = p->kernels.at[i];
        for (int j = 0; k->template == &template_window && j < k->holes.n; j++)
            if (!strcmp(k->holes.at[j].name, hole)) k->holes.at[j].value = 0;
    }
}

static bool is_relu(const Expr *e) { return e->op == E_Max && e->a[1]->op == E_Const && e->a[1]->c.f == 0; }
static const Expr *under_relu(const Expr *e) { return is_relu(e) ? e->a[0] : e; }

// Are they printed alike, whatever they load?
static bool alike(const Expr *x, const Expr *y) {
    if (!x || !y || x->op != y->op || x->dtype != y->dtype) return x == y;
    if ((x->op == E_Const || x->op == E_Axis) && x->c.i != y->c.i) return false;
    for (int i = 0; i < 3; i++)
        if (!alike(x->a[i], y->a[i])) return false;
    return true;
}

enum { LOWEST = 511 };                                  // sign and exponent of -infinity

// Of kernels that are the same but for a Relu at the end, whether it is there is an argument: a last layer has none.
static void share_relu(const Plan *p, Kernel *k) {
    const Template *of = k->template;
    const bool relu = is_relu(k->stores.at[0].expr);
    bool other = false;
    for (int i = 0; i < p->kernels.n; i++) {
        const Kernel *k2 = p->kernels.at[i];
        const Expr *e = k2->template == of ? k2->stores.at[0].expr : NULL;
        other = other || (e && is_relu(e) != relu && alike(under_relu(e), under_relu(k->stores.at[0].expr)));
    }
    template_hole(p->arena, k, "RELU", other || p->options->share);
    template_hole_dim(p->arena, k, "LEAST", relu ? 0 : LOWEST);
}

static void share_relus(const Plan *p) {
    for (int i = 0; i < p->kernels.n; i++)
        if (p->kernels.at[i]->template == &template_window) share_relu(p, p->kernels.at[i]);
    for (int i = 0; i < p->kernels.n; i++) {
        Kernel *k = p->kernels.at[i];
        if (k->template != &template_window || !template_hole_value(k, "RELU")) continue;
        Store *s = &k->stores.at[0];
        if (is_relu(s->expr)) s->expr = s->expr->a[0];
    }
}

void window_share(Plan *p) {
    if (!p->options->small) return;
    share_form(p, "DENSE");
    share_form(p, "SINGLE");
    share_relus(p);
    for (int i = 0; i < p->kernels.n; i++) {
        Kernel *k = p->kernels.at[i];
        for (int j = 0; template_is_window(k) && j < k->holes.n; j++) share_hole(p, k, j);
    }
}

// ---------------------------------------------------------------- results over inputs
#define NEVER ((int64_t)1 << 40)                        // floats: more than any distance
// The first tap of an axis that lies inside the input, for the window that begins at `from`.
static int64_t first_inside(const Convolution *c, int axis, int64_t from) {
    return from < 0 ? (c->dilation[axis] - 1 - from) / c->dilation[axis] : 0;
}

int64_t window_start(const Convolution *c, int64_t p) {
    int64_t row = p / c->out[2], ih = row % c->out[1] * c->stride[1] - c->pad[1],
            iw = p % c->out[2] * c->stride[2] - c->pad[2];
    return row / c->out[1] * c->x_batch + (ih + first_inside(c, 1, ih) * c->dilation[1]) * c->x_axis[1]
        + (iw + first_inside(c, 2, iw) * c->dilation[2]) * c->x_axis[2];
}

static bool is_static(const Convolution *c, const Kernel *k) {
    return dim_is_const(c->batch) && dim_is_const(c->x_batch) && dim_is_const(c->y_pixel)
        && (k->kind != KERNEL_GEMM || dim_is_const(k->gemm.m));
}

int64_t window_end(const Convolution *c, int64_t p) {
    int64_t at = p / c->out[2] / c->out[1] * c->x_batch + (c->ic - 1) * c->x_channel + 1, pixel[3] = { 0 };
    pixel[1] = p / c->out[2] % c->out[1];
    pixel[2] = p % c->out[2];
    for (int i = 1; i < 3; i++) {
        const int64_t last = pixel[i] * c->stride[i] - c->pad[i] + (c->kernel[i] - 1) * c->dilation[i];
        at += max64(0, min64(last, c->in[i] - 1)) * c->x_axis[i];
    }
    return at;
}

// Channels that are computed together at the end of a pixel.
static int64_t last_channels(const Kernel *k, const Convolution *c) {
    if (k->template != &template_window_dw) return (c->oc / c->groups - 1) % 4 + 1;
    int64_t together = template_hole_value(k, "NR");
    return c->oc % together ? 1 : together;
}

static int64_t together(const Kernel *k) {              // pixels
    if (k->template == &template_window_blocks) return 1;
    if (k->template == &template_window) return template_hole_value(k, "MR");
    return template_hole_value(k, "NR") > 1 ? 2 : 1;
}

// Pixels are finished in order, `many` at a time: what of those before `end` is stored while the ones from p on read.
// From the last pixel to the first: `needed` is the lowest float that is still read.
bool window_distance(const Graph *g, const Kernel *k, int64_t *bytes) {
    const Convolution c = window_shape(g, k);
    if (!is_static(&c, k)) return false;
    const int64_t pixels = c.batch * c.out[1] * c.out[2], width = c.oc, last = last_channels(k, &c), many = together(k);
    int64_t needed = INT64_MAX, distance = -NEVER;
    for (int64_t p = pixels - 1; p >= 0; p--) {
        // whole pixels before the next one reads, all but the last channels before this one has
        if (p + 1 < pixels) distance = max64(distance, p * c.y_pixel + width - needed);
        needed = min64(needed, window_start(&c, p));
        const int64_t end = min64(p + many, pixels) - 1;
        if (width > last) distance = max64(distance, end * c.y_pixel + width - last - needed);
    }
    *bytes = distance * (int64_t)sizeof(float);
    return true;
}

bool template_distance(const Graph *g, const Kernel *k, const Value *v, int64_t *bytes) {
    if (!template_may_over(k) || k->operand[0] != v || k->operand_at[0]) return false;
    return !template_takes_scratch(k) ? window_distance(g, k, bytes) : q8_distance(k, bytes);
}

// From the first pixel to the last, which is computed first: `needed` is the end of what those up to it read.
static int64_t window_above(const Graph *g, const Kernel *k) {
    const Convolution c = window_shape(g, k);
    const int64_t pixels = c.batch * c.out[1] * c.out[2], many = together(k);
    int64_t needed = 0, above = -NEVER;
    for (int64_t p = 0; p < pixels; p++) {
        for (int64_t i = p; i < min64(p + many, pixels); i++) needed = max64(needed, window_end(&c, i));
        above = max64(above, needed - p * c.y_pixel);
    }
    return above * (int64_t)sizeof(float);
}

static HoleValue *hole_back(Kernel *k) {
    for (int i = 0; template_may_over(k) && i < k->holes.n; i++)
        if (!strcmp(k->holes.at[i].name, "BACK")) return &k->holes.at[i];
    return NULL;
}

// Small code has one text for both ends of a model, which goes one way.
int64_t template_above(const Graph *g, const Kernel *k) {
    if (k->template == &template_window_blocks) return NOT_ABOVE;
    if (template_is_window(k) && template_hole_value(k, k->template == &template_window ? "MR" : "NR") == 1)
        return NOT_ABOVE;
    const int64_t above = template_is_window(k) ? window_above(g, k) : q8_above(k);
    return above < NOT_ABOVE ? above : NOT_ABOVE;
}

void template_back(Kernel *k, bool back) {
    HoleValue *h = hole_back(k);
    if (h) h->value = back;
}
