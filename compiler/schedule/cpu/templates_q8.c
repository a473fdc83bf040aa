// SPDX-License-Identifier: MIT OR Apache-2.0
// Products of signed bytes, or of 16 bits by bytes, on machines in fixed point (dot_q8.c, taps_q8.c). In: kernels in
// canonical form, of a constant right operand. Out: the same with their template, its integer
// holes, weights in the order in which they are read, and scratch memory.
//
// Weights of dense products and windows that are all of 4 bits lie two to a byte (vec_q4.h), unless speed is asked for:
// flash is scarcer than the instructions that take them apart, a tenth or two more. Depthwise weights, which are few,
// stay bytes.
//
// RISC-V's vectors have neighbouring columns as their lanes, of any number (across_q8.h): weights lie row by row then,
// where there are enough columns. Fewer are sums over lanes.
#include "schedule/schedule.h"
#include "templates.h"

#include <string.h>

static int64_t words(int64_t bytes) { return ceil_div(bytes, 4) * 4; }

// ---------------------------------------------------------------- weights
static bool have_four_bits(const Value *w) {
    const int8_t *q = w->data->data;
    for (int64_t i = 0, n = type_count(&w->type); i < n; i++)
        if (q[i] < -8 || q[i] > 7) return false;
    return true;
}

// The bytes of a column of n weights, in whole words where it lies by itself.
static int64_t column_bytes(bool packed, bool across, int64_t n) {
    if (across) return packed ? ceil_div(n, 2) : n;
    return packed ? ceil_div(n, 8) * 4 : words(n);
}

// Weight k of n of the column at `to`, which is zeros so far; vec_q4.h has the order.
static void put(int8_t *to, bool packed, int64_t n, int64_t k, int8_t w) {
    int64_t piece = k / 32 * 32, half = ceil_div(n - piece < 32 ? n - piece : 32, 8) * 4, at = k - piece;
    uint8_t *byte = (uint8_t *)to + (packed ? piece / 2 + at % half : k);
    if (packed) *byte = (uint8_t)(*byte | (at < half ? w & 15 : (w & 15) << 4));
    else to[k] = w;
}

// The same where columns lie across, `columns` of them side by side: two weights of a byte are of two rows.
static void put_across(int8_t *to, bool packed, int64_t columns, int64_t n, int64_t k, int8_t w) {
    uint8_t *byte = (uint8_t *)to + (packed ? k / 2 : k) * columns + n;
    if (packed) *byte = (uint8_t)(*byte | (k % 2 ? (w & 15) << 4 : w & 15));
    else *byte = (uint8_t)w;
}

// How a kernel's weights lie: groups of `columns`, each of kb bytes, of `read` weights with those that are zero.
typedef struct Layout { bool across, packed; int64_t columns, kb, read; } Layout;

static Layout layout_of(const Kernel *k) {
    return (Layout){ .across = template_hole_value(k, "ACROSS"), .packed = template_hole_value(k, "PACKED"),
        .columns = template_hole_value(k, "N"), .kb = template_hole_value(k, "KB"),
        .read = template_hole_value(k, template_hole_value(k, "WINDOW") ? "KP" : "K") };
}

// Weight k of column n of the group at `to`.
static void put_in(const Layout *l, int8_t *to, int64_t n, int64_t k, int8_t w) {
    if (l->across) put_across(to, l->packed, l->columns, n, k, w);
    else put(to + n * l->kb, l->packed, l->read, k, w);
}

// [b][n][column], or across, of [b][k][n] at any strides
static void fill_product(const Buffer *b, void *to) {
    const Contraction *s = &b->packer->gemm;
    const int8_t *from = b->value->data->data;
    const Layout l = layout_of(b->packer);
    const int64_t batch = s->b_batch ? s->batch : 1;
    int8_t *dst = to;
    memset(dst, 0, (size_t)(batch * s->n * l.kb));
    for (int64_t i = 0; i < batch; i++, dst += s->n * l.kb)
        for (int64_t n = 0; n < s->n; n++)
            for (int64_t k = 0; k < s->k; k++)
                put_in(&l, dst, n, k, from[i * s->b_batch + k * s->b_row + n * s->b_col]);
}

// [oc][column of kh, kw, ic], or across group by group, of [oc][ic][kh][kw]
static void fill_windows(const Buffer *b, void *to) {
    const Convolution *c = &b->packer->window;
    const int8_t *from = b->value->data->data;
    const int64_t ic = c->ic / c->groups, taps = c->kernel[1] * c->kernel[2], k = taps * ic;
    const Layout l = layout_of(b->packer);
    int8_t *dst = to;
    memset(dst, 0, (size_t)(c->oc * l.kb));
    for (int64_t n = 0; n < c->oc; n++, from += k)
        for (int64_t i = 0; i < k; i++)
            put_in(&l, dst + n / l.columns * l.columns * l.kb, n % l.columns, i, from[i % ic * taps + i / ic]);
}

// [taps][channels] of [channels][taps]
static void fill_taps(const Buffer *b, void *to) {
    const Convolution *c = &b->packer->window;
    const int8_t *from = b->value->data->data;
    const int64_t taps = c->kernel[1] * c->kernel[2];
    int8_t *dst = to;
    for (int64_t i = 0; i < taps * c->oc; i++) dst[i] = from[i % c->oc * taps + i / c->oc];
}

// ---------------------------------------------------------------- holes
static bool is_wide(const Kernel *k) { return k->anchor->in[0]->type.dtype == DT_I16; }

static void type_holes(Arena *a, Kernel *k) {
    VEC_PUSH(a, k->holes, (HoleValue){ .name = "AT", .kind = HOLE_ELEMENT, .value = k->anchor->in[0]->type.dtype });
    template_hole(a, k, "WIDE", is_wide(k));
    VEC_PUSH(a, k->holes, (HoleValue){ .name = "CT", .kind = HOLE_ELEMENT, .value = k->writes.at[0]->type.dtype });
}

// Of fewer columns, sums over lanes take fewer instructions than lanes that are sums.
static bool is_across(const Options *o, int64_t columns) {
    enum { FEWEST = 8 };
    return o->machine.integers == INTEGER_RVV && columns >= FEWEST;
}

// Sums of a tile that stay in registers, beside the operands: 2 by 2, of one row 4; or vectors of them.
static void tile_holes(Arena *a, Kernel *k, const Options *o, int64_t rows, int64_t columns) {
    const bool across = is_across(o, columns);
    int64_t mr = rows < 2 ? 1 : 2, nc = mr == 2 ? 2 : 4;
    if (across) nc = columns >= 32 ? 32 : columns >= 16 ? 16 : 8;
    TEMPLATE_HOLES(a, k, { "MR", mr }, { "NC", columns < nc ? columns : nc }, { "ACROSS", across },
        { "VECTORS", across || (o->machine.integers == INTEGER_MVE && columns >= 4) });
}

static void geometry_holes(Arena *a, Kernel *k, const Convolution *c) {
    TEMPLATE_HOLES(a, k, { "AB", c->x_batch }, { "AY", c->x_axis[1] }, { "AX", c->x_axis[2] }, { "IH", c->in[1] },
        { "IW", c->in[2] }, { "KH", c->kernel[1] }, { "KW", c->kernel[2] }, { "SH", c->stride[1] },
        { "SW", c->stride[2] }, { "DH", c->dilation[1] }, { "DW", c->dilation[2] }, { "PH", c->pad[1] },
        { "PW", c->pad[2] }, { "FILL", node_int(k->anchor, "fill", 0) });
}

// ---------------------------------------------------------------- plans
static const char *two_to_a_byte(bool packed) { return packed ? ", two weights to a byte" : ""; }

static const char *in_order(bool across, bool taps) {
    if (across) return taps ? "tap by tap, all channels of a group" : "row by row";
    return taps ? "a channel after the other, of whole words, tap by tap" : "a column after the other, of whole words";
}

static void plan_product(Arena *a, Kernel *k, const Options *o, bool packed) {
    const Contraction *s = &k->gemm;
    const bool across = is_across(o, s->n);
    const int64_t kb = column_bytes(packed, across, s->k), one = s->n * kb, batch = s->b_batch ? s->batch : 1;
    k->template = &template_dot_q8;
    TEMPLATE_HOLES(a, k, { "BATCH", s->batch }, { "G", 1 }, { "H", 1 }, { "W", s->m }, { "N", s->n }, { "K", s->k },
        { "KP", s->k }, { "KB", kb }, { "PACKED", packed }, { "AB", s->a_batch }, { "AG", 0 }, { "AY", 0 },
        { "AX", s->a_row }, { "WINDOW", 0 }, { "BB", s->b_batch ? one : 0 }, { "CB", s->c_batch }, { "CM", s->c_row },
        { "XW", s->a_row }, { "BACK", 0 });
    tile_holes(a, k, o, s->m, s->n);
    type_holes(a, k);
    k->packed = template_packed_as(a, k, k->operand[1], DT_I8, (size_t)(batch * one),
        arena_printf(a, "%s%s", in_order(across, false), two_to_a_byte(packed)), fill_product);
}

// A window of one point that never lies in the padding is a row where it is.
static bool is_row(const Convolution *c) {
    return c->kernel[1] * c->kernel[2] == 1 && !c->pad[1] && !c->pad[2]
        && (c->out[1] - 1) * c->stride[1] < c->in[1] && (c->out[2] - 1) * c->stride[2] < c->in[2];
}

static void plan_windows(Arena *a, Kernel *k, const Options *o, bool packed) {
    const Convolution *c = &k->window;
    const bool direct = is_row(c);
    const int64_t ic = c->ic / c->groups, row = c->kernel[1] * c->kernel[2] * ic, kp = words(row);
    const bool across = is_across(o, c->oc / c->groups);
    const int64_t read = direct || across ? row : kp, kb = column_bytes(packed, across, read);
    const bool runs = c->groups == 1 && c->dilation[2] == 1 && c->x_axis[2] == ic;
    k->template = &template_dot_q8;
    TEMPLATE_HOLES(a, k, { "BATCH", c->batch }, { "G", c->groups }, { "H", c->out[1] }, { "W", c->out[2] },
        { "N", c->oc / c->groups }, { "K", row }, { "KP", kp }, { "KB", kb },
        { "PACKED", packed }, { "AG", ic }, { "WINDOW", !direct }, { "IC", ic },
        { "RUNS", runs }, { "BB", 0 }, { "CB", c->out[1] * c->out[2] * c->y_pixel }, { "CM", c->y_pixel },
        { "XW", c->x_axis[2] }, { "BACK", 0 });
    if (direct)
        TEMPLATE_HOLES(a, k, { "AB", c->x_batch }, { "AY", c->stride[1] * c->x_axis[1] },
            { "AX", c->stride[2] * c->x_axis[2] });
    else geometry_holes(a, k, c);
    tile_holes(a, k, o, c->out[2], c->oc / c->groups);
    type_holes(a, k);
    k->scratch_bytes = direct ? 0 : template_hole_value(k, "MR") * kp * (is_wide(k) ? 2 : 1);
    k->packed = template_packed_as(a, k, k->operand[1], DT_I8, (size_t)(c->oc * kb),
        arena_printf(a, "%s%s", in_order(across, true), two_to_a_byte(packed)), fill_windows);
}

static void plan_depthwise(Arena *a, Kernel *k, const Options *o) {
    const Convolution *c = &k->window;
    bool padded = false;
    for (int i = 1; i < 3; i++) {
        int64_t last = (c->out[i] - 1) * c->stride[i] + (c->kernel[i] - 1) * c->dilation[i] - c->pad[i];
        padded = padded || c->pad[i] || last >= c->in[i];
    }
    k->template = &template_taps_q8;
    TEMPLATE_HOLES(a, k, { "BATCH", c->batch }, { "H", c->out[1] }, { "W", c->out[2] }, { "N", c->oc },
        { "PADDED", padded }, { "CB", c->out[1] * c->out[2] * c->y_pixel }, { "CM", c->y_pixel },
        { "XW", c->x_axis[2] }, { "BACK", 0 }, { "MR", c->out[2] < 2 ? 1 : 2 },
        { "ACROSS", o->machine.integers == INTEGER_RVV },
        { "VECTORS", o->machine.integers == INTEGER_RVV || (o->machine.integers == INTEGER_MVE && c->oc >= 8) });
    geometry_holes(a, k, c);
    type_holes(a, k);
    k->scratch_bytes = padded ? c->oc * (is_wide(k) ? 2 : 1) : 0;
    k->packed = template_packed_as(a, k, k->operand[1], DT_I8, (size_t)type_count(&k->operand[1]->type),
        "taps of all channels", fill_taps);
}

void plan_q8(Arena *a, Kernel *k, const Options *o) {
    const Convolution *c = &k->window;
    const bool packed = !o->fast && !is_wide(k) && have_four_bits(k->operand[1]);
    if (k->anchor->op != OP_Conv) plan_product(a, k, o, packed);
    else if (c->groups == c->ic && c->oc == c->ic && c->groups > 1) plan_depthwise(a, k, o);
    else plan_windows(a, k, o, packed);
}

// ---------------------------------------------------------------- results over inputs
// Where the tile of row `at` of a line begins to read, in elements of A.
static int64_t tile_start(const Kernel *k, int64_t b, int64_t y, int64_t at) {
    const bool rows = k->template == &template_dot_q8 && !template_hole_value(k, "WINDOW");
    const int64_t line = b * template_hole_value(k, "H") + y;
    if (!rows) return window_start(&k->window, line * template_hole_value(k, "W") + at);
    return b * template_hole_value(k, "AB") + y * template_hole_value(k, "AY") + at * template_hole_value(k, "AX");
}

// And where it ends.
static int64_t tile_end(const Kernel *k, int64_t b, int64_t y, int64_t row) {
    const int64_t width = template_hole_value(k, "W"), lines = template_hole_value(k, "H");
    if (k->anchor->op == OP_Conv) return window_end(&k->window, (b * lines + y) * width + row);
    return b * template_hole_value(k, "AB") + y * template_hole_value(k, "AY") + row * template_hole_value(k, "AX")
        + template_hole_value(k, "K");
}

// What of a tile's own result, counted from the first element of its last row, is stored before it has read the
// element `read` of what begins with its first row; below 0: nothing is. Windows are copied before.
static int64_t stored_inside(const Kernel *k, int64_t n, bool bytes_alike, int64_t *read) {
    enum { MOST_LANES = 8 };
    *read = 0;
    if (k->template == &template_dot_q8) {
        const int64_t nc = template_hole_value(k, "NC");
        return template_hole_value(k, "WINDOW") || n <= nc ? -1 : (n - 1) / nc * nc;
    }
    if (n <= 4) return -1;
    // channel by channel, the last of them from further back
    *read = bytes_alike ? -MOST_LANES : 0;
    return bytes_alike ? 0 : n - 1;
}

// Tiles go in order. From the last to the first: `needed` is the lowest byte that is still read.
bool q8_distance(const Kernel *k, int64_t *bytes) {
    const int64_t lines = template_hole_value(k, "H"), width = template_hole_value(k, "W"),
                  rows = template_hole_value(k, "MR"), n = template_hole_value(k, "N"),
                  cb = template_hole_value(k, "CB"), cm = template_hole_value(k, "CM"),
                  from = (int64_t)dtype_size(k->anchor->in[0]->type.dtype),
                  to = (int64_t)dtype_size(k->writes.at[0]->type.dtype);
    int64_t needed = INT64_MAX, distance = -((int64_t)1 << 40), read;
    if (k->template == &template_dot_q8 && template_hole_value(k, "G") > 1) return false;
    const int64_t inside = stored_inside(k, n, from == to, &read);
    for (int64_t b = template_hole_value(k, "BATCH") - 1; b >= 0; b--)
        for (int64_t y = lines - 1; y >= 0; y--)
            for (int64_t x = (width - 1) / rows * rows; x >= 0; x -= rows) {
                const int64_t at = x + rows <= width ? x : width - rows, start = tile_start(k, b, y, at) * from,
                              m = y * width + x;
                needed = start < needed ? start : needed;
                if (inside >= 0)
                    distance = max64(distance, (b * cb + (y * width + at + rows - 1) * cm + inside) * to
                        - start - read * from);
                if (m) distance = max64(distance, (b * cb + (m - 1) * cm + n) * to - needed);
                else if (b) distance = max64(distance, ((b - 1) * cb + (lines * width - 1) * cm + n) * to - needed);
            }
    *bytes = distance;
    return true;
}

// From the first tile to the last, which is computed first: `needed` is the end of what those up to it read.
int64_t q8_above(const Kernel *k) {
    const int64_t lines = template_hole_value(k, "H"), width = template_hole_value(k, "W"),
                  rows = template_hole_value(k, "MR"), cb = template_hole_value(k, "CB"),
                  cm = template_hole_value(k, "CM"),
                  from = (int64_t)dtype_size(k->anchor->in[0]->type.dtype),
                  to = (int64_t)dtype_size(k->writes.at[0]->type.dtype);
    int64_t needed = 0, above = -((int64_t)1 << 40);
    for (int64_t b = 0; b < template_hole_value(k, "BATCH"); b++)
        for (int64_t y = 0; y < lines; y++)
            for (int64_t x = 0; x < width; x += rows) {
                for (int64_t i = x; i < x + rows && i < width; i++)
                    needed = max64(needed, tile_end(k, b, y, i) * from);
                above = max64(above, needed - (b * cb + (y * width + x) * cm) * to);
            }
    return above;
}
