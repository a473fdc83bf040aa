// SPDX-License-Identifier: MIT OR Apache-2.0
// Products of quantised tensors become products of bytes. Contract: in C; integers stay exact. What learns is read as
// floats by now (grad/through.c).
//
//   before   %3: i32[m,k] = Sub(Cast(%x), %za)                   %x: u8[m,k], %w: i8[k,n]
//            %4: i32[k,n] = Sub(Cast(%w), %zb)
//            %5: i32[m,n] = MatMul(%3, %4)
//   after    %6: i32[m,n] = MatMul(%x, %w)                       bytes: exact sums in i32
//            %5 = %6 - %za * (columns of w - k * %zb) - (rows of x) * %zb
//
// The idea: (x - za)(w - zb) summed along k, multiplied out. Sums of a constant's columns are folded; a zero point of
// 0 takes its term with it. The left factor is brought to u8, the right one to i8, by 128 more or less in the bytes
// and in the zero point. No sum leaves i32 where k <= 32768. A convolution's image is padded with its zero point
// first; its weights' zero point goes with the sums of windows of (x - za), over all channels of a group at once.
// Targets in fixed point have both factors signed, and convolutions that fill the padding themselves. There the left
// one may have 16 bits, where its weights are constant and so small that no sum leaves i32, whatever it is. So it is,
// but for 16 bits, where products are found in loops.
//
// In floats: MatMul(s (x - za), t (w - zb)) becomes s t MatMul(x - za, w - zb), and likewise a Conv, when s is one
// number and t one number or one for each column. That sum is exact and is rounded once, where the sum of floats
// rounds each of its k terms: the two differ by the rounding of the latter, at most about k * 2^-24 of the sum of the
// terms' magnitudes. Quantised anew, a result may so differ by one step where it lies that near to the middle of two.
#include "passes.h"

#include <math.h>
#include <string.h>

enum { MOST_TERMS = 32768 };                    // 2 * 255 * 128 of them stay below 2^31

// What a target's kernels take. both_signed: left factors of i8, else of u8; halves: of i16; fills: convolutions fill
// the padding themselves.
typedef struct Kinds { bool both_signed, halves, fills; } Kinds;

// q - zero in i32, times scale in f32 where there is one. q: u8 or i8. zero: i32, NULL: 0.
typedef struct Bytes { Value *q, *zero, *scale; } Bytes;

static Value *settled(Value *v) {                       // the constant that v is, where that is known
    Tensor *t = v && !v->data ? value_const(v) : NULL;
    return t ? graph_const(v->graph, t, v->name) : v;
}

static bool is_byte(const Value *v) { return dtype_is_byte(v->type.dtype); }
static bool is_half(const Value *v) { return v->type.dtype == DT_U16 || v->type.dtype == DT_I16; }
static bool made_by(const Value *v, Op op) { return v && v->def && v->def->op == op; }

// Constants of few bits, or of bytes near their zero point: less it, as i8.
static void centre_constant(Graph *g, Bytes *b) {
    Tensor *q = b->q->data, *zero = b->zero ? b->zero->data : NULL;
    if (!q || (b->zero && !zero) || (q->type.dtype == DT_I8 && !zero)) return;
    Value *wide = b_cast(g, graph_const(g, q, NULL), DT_I32);
    Value *all = settled(b->zero ? b_binary(g, OP_Sub, wide, b->zero) : wide);
    if (!all || !all->data || !type_same_shape(&all->type, &q->type)) return;
    for (int64_t i = 0, n = type_count(&q->type); i < n; i++) {
        int64_t v = tensor_get_i(all->data, i);
        if (v < INT8_MIN || v > INT8_MAX) return;
    }
    *b = (Bytes){ settled(b_cast(g, all, DT_I8)), NULL, b->scale };
}

static bool has_few_bits(const Value *v) {
    return v->data && dtype_is_int(v->type.dtype) && dtype_bits(v->type.dtype) < 8;
}

// q - zero, or q + more - zero: bytes of the other sign (io.c). v may be of a graph around g.
static bool read_centred(Graph *g, Value *v, Bytes *b) {
    Value *less = made_by(v, OP_Sub) ? v->def->in[0] : v, *cast = made_by(less, OP_Add) ? less->def->in[0] : less;
    *b = (Bytes){ 0 };
    if (!made_by(cast, OP_Cast) || cast->type.dtype != DT_I32) return false;
    b->q = cast->def->in[0];
    if (!is_byte(b->q) && !is_half(b->q) && !has_few_bits(b->q)) return false;
    if (less != v) b->zero = settled(v->def->in[1]);
    double zero, more;
    if (cast != less) {
        if (!const_splat(settled(less->def->in[1]), &more)) return false;
        Value *by = b_scalar(g, DT_I32, -more);
        b->zero = b->zero ? settled(b_binary(g, OP_Add, b->zero, by)) : by;
    }
    if (b->zero && const_splat(b->zero, &zero) && zero == 0) b->zero = NULL;
    centre_constant(g, b);
    return (is_byte(b->q) || is_half(b->q)) && type_equal(&v->type, &cast->type);
}

static Value *swapped(Graph *g, Value *v, const int *perm) { return v && v->type.rank ? b_transpose(g, v, perm) : v; }

static bool read_scaled(Graph *g, Value *v, Bytes *b) {
    if (made_by(v, OP_Transpose)) {                     // a Gemm's weights
        int count, perm[MAX_RANK];
        const int64_t *p = node_ints(v->def, "perm", &count);
        if (!read_scaled(g, v->def->in[0], b)) return false;
        if ((b->zero && b->zero->type.rank && b->zero->type.rank != count)
            || (b->scale->type.rank && b->scale->type.rank != count))
            return false;
        for (int i = 0; i < count; i++) perm[i] = (int)p[i];
        *b = (Bytes){ settled(b_transpose(g, b->q, perm)), settled(swapped(g, b->zero, perm)),
            settled(swapped(g, b->scale, perm)) };
        return true;
    }
    if (!made_by(v, OP_Mul) || v->type.dtype != DT_F32 || !made_by(v->def->in[0], OP_Cast)) return false;
    if (!read_centred(g, v->def->in[0]->def->in[0], b) || !type_equal(&v->type, &v->def->in[0]->type)) return false;
    b->scale = v->def->in[1];
    return true;
}

// Is v the same along axis `axis` (negative: counted from the last) of what it broadcasts to?
static bool constant_along(const Value *v, int rank, int axis) {
    if (!v) return true;
    int at = axis - (rank - v->type.rank);
    return at < 0 || v->type.dim[at] == 1;
}

static bool one_number(const Value *v) {
    for (int i = 0; v && i < v->type.rank; i++)
        if (v->type.dim[i] != 1) return false;
    return true;
}

// q and zero with `by` added to both, as bytes of type d.
static void shift(Graph *g, Bytes *b, DType d, int by) {
    if (b->q->type.dtype == d) return;
    b->q = settled(b_map(g, arena_printf(g->arena, "%s(i32(x) + %d)", dtype_name(d), by), "x", 1, &b->q));
    b->zero = b->zero ? settled(b_map(g, arena_printf(g->arena, "x + %d", by), "x", 1, &b->zero)) :
                        b_scalar(g, DT_I32, by);
    double zero;
    if (b->zero && const_splat(b->zero, &zero) && zero == 0) b->zero = NULL;
}

static Value *sum_along(Graph *g, Value *q, int n, const int64_t *axes, bool keep) {
    return settled(b_reduce(g, OP_ReduceSum, b_cast(g, q, DT_I32), n, axes, keep));
}
static Value *less(Graph *g, Value *x, Value *y) { return y ? b_binary(g, OP_Sub, x, y) : x; }
static Value *times(Graph *g, Value *x, Value *y) { return settled(b_binary(g, OP_Mul, x, y)); }

// ---------------------------------------------------------------- MatMul
static bool fits_matmul(const Node *n, const Bytes *a, const Bytes *b) {
    const Type *x = &n->in[0]->type, *w = &n->in[1]->type;
    Dim k = x->rank ? x->dim[x->rank - 1] : 0;
    if (x->rank < 2 || w->rank < 2 || !dim_is_const(k) || k > MOST_TERMS) return false;
    return constant_along(a->zero, x->rank, x->rank - 1) && constant_along(b->zero, w->rank, w->rank - 2);
}

static void shift_left_factor(Graph *g, Bytes *a, Kinds kinds) {
    if (is_half(a->q)) shift(g, a, DT_I16, -32768);
    else shift(g, a, kinds.both_signed ? DT_I8 : DT_U8, kinds.both_signed ? -128 : 128);
}

static Value *product(Graph *g, const Node *n, Bytes a, Bytes b, Kinds kinds) {
    shift_left_factor(g, &a, kinds);
    shift(g, &b, DT_I8, -128);
    if (!a.q || !b.q) return NULL;
    int64_t k = a.q->type.dim[a.q->type.rank - 1], rows = a.q->type.rank - 1, columns = b.q->type.rank - 2;
    Value *sum = b_matmul_to(g, a.q, b.q, DT_I32), *zb = b.zero;
    if (a.zero) {
        Value *part = sum_along(g, b.q, 1, &columns, true);
        if (zb) part = settled(less(g, part, times(g, zb, b_scalar(g, DT_I32, (double)k))));
        sum = less(g, sum, times(g, a.zero, part));
    }
    if (zb) sum = less(g, sum, times(g, sum_along(g, a.q, 1, &rows, true), zb));
    Type want = n->out[0]->type;
    want.dtype = DT_I32;
    return sum && type_equal(&sum->type, &want) ? sum : NULL;          // a zero point of more axes would make it larger
}

// ---------------------------------------------------------------- Conv
static bool fits_conv(const Node *n, const Bytes *a, const Bytes *w) {
    const Type *x = &n->in[0]->type;
    int64_t terms = 1;
    for (int i = 1; i < x->rank; i++) {
        terms *= w->q->type.dim[i];
        if (!constant_along(w->zero, x->rank, i)) return false;
    }
    bool apart = node_int(n, "group", 1) == 1 || w->q->type.dim[1] == 1;
    bool centred = !w->zero && w->q->type.dtype == DT_I8;
    return w->q->data && !node_int(n, "same", 0) && terms <= MOST_TERMS && one_number(a->zero) && (centred || apart);
}

// The image with its padding, for a convolution that has none then.
static Value *padded(Graph *g, const Node *n, Value *q, Value *zero) {
    int rank = q->type.rank, count;
    int64_t lo[MAX_RANK] = { 0 }, hi[MAX_RANK] = { 0 };
    const int64_t *pads = node_ints(n, "pads", &count);
    for (int i = 2; i < rank && pads; i++) {
        lo[i] = pads[i - 2];
        hi[i] = pads[count / 2 + i - 2];
    }
    return b_pad(g, q, lo, hi, NULL, zero ? settled(b_cast(g, zero, q->type.dtype)) : NULL);
}

// A vector, of output channels, in a shape that goes with a convolution's result.
static Value *by_channel(Graph *g, Value *v, int rank) {
    Dim along[MAX_RANK];
    if (!v) return NULL;
    for (int i = 0; i < rank; i++) along[i] = i == 1 ? type_count(&v->type) : 1;
    return settled(b_reshape(g, v, rank, along));
}

// (x - za) summed over each window and the channels of its group, times zb.
static Value *windows_times(Graph *g, const Node *n, const Bytes *a, const Bytes *w) {
    int rank = a->q->type.rank, count;
    int64_t channels = 1, per = w->q->type.dim[0] / node_int(n, "group", 1);
    static const char *const same[] = { "strides", "dilations", "pads" };
    Value *x = less(g, b_cast(g, a->q, DT_I32), a->zero);
    if (w->q->type.dim[1] > 1) x = b_reduce(g, OP_ReduceSum, x, 1, &channels, true);
    else if (per > 1 && node_int(n, "group", 1) > 1) return NULL;       // each channel stands behind several
    if (!x) return NULL;
    Node *sum = graph_node(g, OP_WindowSum, 1, &x, 1);
    node_set_ints(sum, "kernel", w->q->type.dim + 2, rank - 2);
    for (size_t i = 0; i < COUNT(same); i++) {
        const int64_t *v = node_ints(n, same[i], &count);
        node_set_ints(sum, same[i], v, count);
    }
    return times(g, b_finish(sum), one_number(w->zero) ? b_reshape(g, w->zero, 0, NULL) : by_channel(g, w->zero, rank));
}

static Value *convolution(Graph *g, const Node *n, Bytes a, Bytes w, Kinds kinds) {
    int rank = a.q->type.rank;
    int64_t none[2 * MAX_RANK] = { 0 }, axes[MAX_RANK];
    double fill = 0;
    shift_left_factor(g, &a, kinds);
    shift(g, &w, DT_I8, -128);
    if (!a.q || !w.q) return NULL;
    Value *more = w.zero ? windows_times(g, n, &a, &w) : NULL;
    if (w.zero && !more) return NULL;
    Value *zero = a.zero ? b_reshape(g, a.zero, 0, NULL) : NULL;
    bool fills = kinds.fills && (!zero || const_splat(settled(zero), &fill));
    Node *conv = node_like(g, n, (Value *[]){ fills ? a.q : padded(g, n, a.q, zero), w.q });
    if (!conv) return NULL;
    if (!fills) node_set_ints(conv, "pads", none, 2 * (rank - 2));
    if (a.q->type.dtype != DT_U8) node_set_int(conv, "wide", 1);
    if (fill != 0) node_set_int(conv, "fill", (int64_t)fill);
    if (!node_infer(conv)) return NULL;
    if (!zero) return less(g, conv->out[0], more);
    for (int i = 1; i < rank; i++) axes[i - 1] = i;
    Value *sums = by_channel(g, sum_along(g, w.q, rank - 1, axes, false), rank);
    return less(g, less(g, conv->out[0], times(g, zero, sums)), more);
}

// ---------------------------------------------------------------- both
// The largest sum of magnitudes of constant weights that one result is multiplied with.
static double largest_sum(const Node *n, const Tensor *w) {
    const Type *t = &w->type;
    int64_t columns = n->op == OP_MatMul ? t->dim[t->rank - 1] : 1;
    int64_t k = n->op == OP_MatMul ? t->dim[t->rank - 2] : type_count(t) / t->dim[0];
    double most = 0;
    for (int64_t i = 0, groups = type_count(t) / (k * columns); i < groups; i++)
        for (int64_t j = 0; j < columns; j++) {
            double sum = 0;
            for (int64_t at = 0; at < k; at++) sum += fabs(tensor_get_f(w, (i * k + at) * columns + j));
            most = fmax(most, sum);
        }
    return most;
}

// Halves times bytes: the largest sum there can be, with the zero point and a bias as requantize.c takes it, in shares
// of what 32 bits hold: below 1 it fits. Infinity: these are no such products.
static double share_of_halves(const Node *n, const Bytes *a, const Bytes *b) {
    double zero = 0;
    if (!is_byte(b->q) || !b->q->data || b->zero || b->q->type.dtype != DT_I8 || !type_count(&b->q->type))
        return INFINITY;
    if (a->zero && !const_splat(a->zero, &zero)) return INFINITY;
    if (a->q->type.dtype == DT_U16) zero -= 32768;
    return largest_sum(n, b->q->data) * (32768 + fabs(zero)) / (0x1p31 - 0x1p28);
}

// Elements from..end of all along an axis.
static Bytes piece(Graph *g, const Bytes *of, int axis, int64_t from, int64_t end) {
    const Type *t = &of->q->type;
    int64_t starts[MAX_RANK] = { 0 }, steps[MAX_RANK];
    Dim sizes[MAX_RANK];
    for (int i = 0; i < t->rank; i++) {
        steps[i] = 1;
        sizes[i] = t->dim[i];
    }
    starts[axis] = from;
    sizes[axis] = end - from;
    return (Bytes){ settled(b_slice(g, of->q, starts, steps, sizes)), of->zero, of->scale };
}

// The same of each group's channels.
static Bytes piece_of_groups(Graph *g, const Bytes *of, int64_t groups, int64_t from, int64_t end) {
    const Type *t = &of->q->type;
    const int rank = t->rank;
    if (groups == 1) return piece(g, of, 1, from, end);
    Dim sizes[MAX_RANK] = { t->dim[0], groups, t->dim[1] / groups };
    for (int i = 2; i < rank; i++) sizes[i + 1] = t->dim[i];
    const Bytes apart = { b_reshape(g, of->q, rank + 1, sizes), of->zero, of->scale };
    Bytes part = piece(g, &apart, 2, from, end);
    Dim whole[MAX_RANK];
    for (int i = 0; i < rank; i++) whole[i] = i == 1 ? groups * (end - from) : t->dim[i];
    part.q = settled(b_reshape(g, part.q, rank, whole));
    return part;
}

// A product of halves whose sums leave 32 bits, in as few pieces of its terms (channels of a convolution's groups) as
// do not: each is exact, and they are added as floats. f32, less zero points, without the scale.
static Value *in_pieces(Graph *g, Node *n, const Bytes *a, const Bytes *b, Kinds kinds, double share) {
    enum { MOST_PIECES = 64 };
    const int rank = a->q->type.rank;
    const bool conv = n->op == OP_Conv;
    const int64_t groups = conv ? node_int(n, "group", 1) : 1;
    if ((!conv && b->q->type.rank != 2) || (groups > 1 && rank == MAX_RANK)) return NULL;
    if (!(share < MOST_PIECES)) return NULL;
    const int64_t k = b->q->type.dim[conv];
    for (int64_t pieces = (int64_t)share + 1; pieces <= MOST_PIECES && pieces <= k; pieces++) {
        Bytes right[MOST_PIECES];
        bool fit = true;
        for (int64_t i = 0; i < pieces && fit; i++) {
            right[i] = piece(g, b, conv, k * i / pieces, k * (i + 1) / pieces);
            fit = share_of_halves(n, a, &right[i]) < 1;
        }
        Value *all = NULL;
        for (int64_t i = 0; i < pieces && fit; i++) {
            const int64_t from = k * i / pieces, end = k * (i + 1) / pieces;
            const Bytes left = conv ? piece_of_groups(g, a, groups, from, end) : piece(g, a, rank - 1, from, end);
            Value *sum = conv ? convolution(g, n, left, right[i], kinds) : product(g, n, left, right[i], kinds);
            if (!sum) return NULL;
            sum = b_cast(g, sum, DT_F32);
            all = all ? b_binary(g, OP_Add, all, sum) : sum;
        }
        if (fit) return all;
    }
    return NULL;
}

static bool reads(Graph *g, Node *n, bool scaled, Bytes *a, Bytes *b) {
    if (scaled) return read_scaled(g, n->in[0], a) && read_scaled(g, n->in[1], b);
    return read_centred(g, n->in[0], a) && read_centred(g, n->in[1], b);
}

// The scale of the product: of the right factor one number, or one for each column (channel).
static Value *product_scale(Graph *g, const Node *n, Value *sa, Value *sb) {
    int rank = n->in[1]->type.rank, axis = n->op == OP_MatMul ? rank - 1 : 0;
    if (!one_number(sa)) return NULL;
    for (int i = 0; i < rank; i++)
        if (i != axis && !constant_along(sb, rank, i)) return NULL;
    Dim along[MAX_RANK];
    for (int i = 0; i < rank; i++) along[i] = i == 1 ? n->in[1]->type.dim[0] : 1;
    if (sa->type.rank) sa = b_reshape(g, sa, 0, NULL);
    if (n->op == OP_Conv && !one_number(sb)) sb = b_reshape(g, sb, rank, along);
    if (sb && one_number(sb)) sb = b_reshape(g, sb, 0, NULL);
    return times(g, sa, sb);
}

static Value *rewritten(Graph *g, Node *n, Kinds kinds) {
    Bytes a, b;
    DType d = n->out[0]->type.dtype;
    if ((n->op != OP_MatMul && n->op != OP_Conv) || (d != DT_I32 && d != DT_F32)) return NULL;
    if (!reads(g, n, d == DT_F32, &a, &b)) return NULL;
    if (is_half(b.q) || (is_half(a.q) && !kinds.halves)) return NULL;
    if (n->op == OP_MatMul ? !fits_matmul(n, &a, &b) : !fits_conv(n, &a, &b)) return NULL;
    const double share = is_half(a.q) ? share_of_halves(n, &a, &b) : 0;
    if (share >= 1 && d != DT_F32) return NULL;
    Value *scale = d == DT_F32 ? product_scale(g, n, a.scale, b.scale) : NULL;
    if (d == DT_F32 && !scale) return NULL;
    if (share >= 1) {
        Value *sum = in_pieces(g, n, &a, &b, kinds, share);
        return sum ? b_binary(g, OP_Mul, sum, scale) : NULL;
    }
    Value *sum = n->op == OP_MatMul ? product(g, n, a, b, kinds) : convolution(g, n, a, b, kinds);
    return sum && scale ? b_binary(g, OP_Mul, b_cast(g, sum, DT_F32), scale) : sum;
}

static void quantize_graph(Rewrite *r, Graph *g, Kinds kinds) {
    for (Node *n = g->first; n; n = n->next) {
        rewrite_operands(r, n);
        for (int i = 0; i < n->n_bodies; i++) quantize_graph(r, n->bodies[i], kinds);
        g->cursor = n;
        g->loc = n->loc;
        Value *v = rewritten(g, n, kinds);
        if (v) rewrite_set(r, n->out[0], v);
    }
    g->cursor = NULL;
    rewrite_outputs(r, g);
}

bool pass_quantize(Graph *g, const Options *o) {
    Rewrite r = { .scratch = arena_new() };
    const bool fixed = o->machine.fixed_point, loops = o->machine.backend->windows_in_loops;
    quantize_graph(&r, g, (Kinds){ .both_signed = fixed || loops, .halves = fixed, .fills = fixed || loops });
    arena_free(r.scratch);
    return pass_dce(g) || r.changed;
}
