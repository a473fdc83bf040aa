// SPDX-License-Identifier: MIT OR Apache-2.0
// Functions of a byte are tables, those of 16 bits parabolas. Contract: as requantize.c, of which this is the part for
// what is no sum of integers.
//
//   before   %2: f32 = Sigmoid((%q - 3) * 0.1)               %3: i8 = Cast(Round(%2 / 0.004) - 128)
//   after    %3: i8 = Gather(%table, %q as u8)               %table: i8[256], computed here
//
// The idea: whatever the operations between one tensor of bytes and the next do element by element, with constants of
// one number, has 256 results. They are the evaluator's for these operations, so they are those of floats to the bit.
// Equal tables are one constant. Of 16 bits each run of 256 neighbours has a parabola, through three points of it;
// where that is more than a step from the floats' result for any of the 65,536, as at a kink, it is left to them.
//
// A softmax is a table, too: exp of the distance to the row's largest element, in fixed point (of 16 bits: of the upper
// and of the lower byte, multiplied); a row's sum is divided once, into the factor of all its elements.
#include "requantize.h"

#include <math.h>

enum { BYTES = 256, HALVES = 65536, MOST_NODES = 64, FINE = 30 };

typedef struct Table {
    Value *q;                                           // the tensor of bytes, or of 16 bits, once it is met
    VEC(Value *) from, to;                              // values, and what they are of all bytes
    Arena *scratch;
} Table;

// All bytes, in the order of their bits; all of 16 bits, from the lowest up.
static Value *all_of(Graph *g, DType d) {
    int64_t count = dtype_is_byte(d) ? BYTES : HALVES;
    Tensor *t = tensor_new(g->arena, type_make(d, 1, &(Dim){ count }));
    for (int64_t i = 0; i < count; i++)
        tensor_set_i(t, i, is_half(d) ? i + lowest(d) : d == DT_I8 && i > INT8_MAX ? i - BYTES : i);
    return graph_const(g, t, NULL);
}

static Value *of_all(Graph *g, Table *t, Value *v);

static Value *computed(Graph *g, Table *t, Value *v) {
    double number;
    Value *c = requantize_known(v);
    Node *n = v->def;
    if (c) return const_splat(c, &number) ? b_scalar(g, c->type.dtype, number) : NULL;
    if ((dtype_is_byte(v->type.dtype) || is_half(v->type.dtype)) && (!t->q || t->q == v)) {
        t->q = v;
        return all_of(g, v->type.dtype);
    }
    if (!n || n->graph != g || t->from.n > MOST_NODES || (!op_is_map(n->op) && n->op != OP_Identity)) return NULL;
    Value **in = NEW_ARRAY(t->scratch, Value *, n->n_in);
    for (int i = 0; i < n->n_in; i++)
        if (!n->in[i] || !(in[i] = of_all(g, t, n->in[i]))) return NULL;
    return b_finish(node_like(g, n, in));
}

static Value *of_all(Graph *g, Table *t, Value *v) {
    for (int i = 0; i < t->from.n; i++)
        if (t->from.at[i] == v) return t->to.at[i];
    Value *made = computed(g, t, v);
    VEC_PUSH(t->scratch, t->from, v);
    VEC_PUSH(t->scratch, t->to, made);
    return made;
}

static Value *made_of(Graph *g, Value *v, const Steps *s) {
    Value *steps = b_binary(g, OP_Div, v, b_scalar(g, DT_F32, s->scale));
    return b_round_to(g, steps, b_scalar(g, s->d, (double)s->zero), s->d, true);
}

// The bytes of q as numbers from 0 to 255: which of all_bytes.
static Value *index_of(Graph *g, Value *q) {
    return q->type.dtype == DT_U8 ? q : b_map(g, "u8(i32(x) & 255)", "x", 1, &q);
}

// ---------------------------------------------------------------- of 16 bits
// c0 + f (c1 + f c2) for the f-th of a run of 256, in units of 2^-bits steps; c2 in units of 2^-(bits + 8)
typedef struct Parabolas { int64_t c[3][BYTES]; int bits; } Parabolas;

static int64_t at_parabola(const Parabolas *p, int64_t i, const Steps *s) {
    int64_t f = i % BYTES, run = i / BYTES;
    int64_t v = (p->c[0][run] + f * (p->c[1][run] + (f * p->c[2][run] >> 8))) >> p->bits;
    return v < lowest(s->d) ? lowest(s->d) : v > highest(s->d) ? highest(s->d) : v;
}

// Through three points of each run, near to where a Chebyshev polynomial is 0. v: the function of all 16 bits.
static bool fit_parabolas(const Value *v, const Steps *s, Parabolas *p) {
    static const int at[3] = { 17, 127, 238 };
    double most = 0, c[BYTES][3];
    for (int run = 0; run < BYTES; run++) {
        double y[3];
        for (int i = 0; i < 3; i++) y[i] = tensor_get_f(v->data, (int64_t)run * BYTES + at[i]) / s->scale;
        double first = (y[1] - y[0]) / (at[1] - at[0]), second = (y[2] - y[1]) / (at[2] - at[1]);
        double bend = (second - first) / (at[2] - at[0]);
        c[run][2] = bend;
        c[run][1] = first - bend * (at[0] + at[1]);
        c[run][0] = y[0] - at[0] * (c[run][1] + bend * at[0]) + (double)s->zero + 0.5;
        double bound = fabs(c[run][0]) + BYTES * (fabs(c[run][1]) + BYTES * fabs(bend));
        if (!(bound < 0x1p24)) return false;
        most = fmax(most, bound);
    }
    p->bits = 16;
    while (p->bits > 4 && !(ldexp(most, p->bits) < 0x1p30)) p->bits--;
    if (!(ldexp(most, p->bits) < 0x1p30)) return false;
    for (int run = 0; run < BYTES; run++)
        for (int i = 0; i < 3; i++) p->c[i][run] = (int64_t)rint(ldexp(c[run][i], p->bits + (i == 2 ? 8 : 0)));
    return true;
}

// One of their three tables, as narrow as its numbers allow.
static Value *parabola_table(Graph *g, const int64_t *c) {
    bool narrow = true;
    for (int i = 0; i < BYTES; i++) narrow = narrow && c[i] >= INT16_MIN && c[i] <= INT16_MAX;
    Tensor *t = tensor_new(g->arena, type_make(narrow ? DT_I16 : DT_I32, 1, &(Dim){ BYTES }));
    for (int64_t i = 0; i < BYTES; i++) tensor_set_i(t, i, c[i]);
    return graph_const(g, t, NULL);
}

// Which run q is of.
static Value *run_of(Graph *g, Value *q) {
    return b_map(g, arena_printf(g->arena, "u8((i32(x) + %d) >> 8)", (int)-lowest(q->type.dtype)), "x", 1, &q);
}

// real: the function before it is rounded, table: behind, of all that q can be
static Value *parabola_of_half(Graph *g, Value *q, const Value *real, const Value *table, const Steps *s) {
    Parabolas p;
    if (!fit_parabolas(real, s, &p)) return NULL;
    for (int64_t i = 0; i < HALVES; i++) {
        int64_t off = at_parabola(&p, i, s) - tensor_get_i(table->data, i);
        if (off < -1 || off > 1) return NULL;
    }
    Value *run = run_of(g, q), *in[4] = { q };
    for (int i = 0; i < 3; i++) in[i + 1] = b_gather(g, parabola_table(g, p.c[i]), run, 0);
    const char *f = "(i32(x) & 255)";
    const char *sum = arena_printf(g->arena, "(i32(a) + %s * (i32(b) + (%s * i32(c) >> 8))) >> %d", f, f, p.bits);
    return b_map(g, arena_printf(g->arena, "%s(min(max(%s, %d), %d))", dtype_name(s->d), sum, (int)lowest(s->d),
        (int)highest(s->d)), "x a b c", 4, in);
}

Value *table_of_byte(Graph *g, Value *v, const Steps *s) {
    Table t = { .scratch = arena_new() };
    Value *all = of_all(g, &t, v), *table = all ? requantize_known(made_of(g, all, s)) : NULL;
    arena_free(t.scratch);
    if (!table || !t.q || table->type.rank != 1 || !type_same_shape(&t.q->type, &v->type)) return NULL;
    if (dtype_is_byte(t.q->type.dtype)) return b_gather(g, table, index_of(g, t.q), 0);
    Value *real = requantize_known(all);
    return real ? parabola_of_half(g, t.q, real, table, s) : NULL;
}

// ---------------------------------------------------------------- softmax
// exp(-i scale) in units of 2^-bits, for i from 0 to 255
static Value *falling(Graph *g, double scale, int bits) {
    Tensor *t = tensor_new(g->arena, type_make(DT_I32, 1, &(Dim){ BYTES }));
    for (int64_t i = 0; i < BYTES; i++) tensor_set_i(t, i, (int64_t)rint(ldexp(exp(-(double)i * scale), bits)));
    return graph_const(g, t, NULL);
}

// exp(-below scale) in units of 2^-bits, below: bytes or 16 bits
static Value *falls(Graph *g, Value *below, double scale, int bits) {
    if (dtype_is_byte(below->type.dtype)) return b_gather(g, falling(g, scale, bits), below, 0);
    Value *high = b_map(g, "u8(i32(x) >> 8)", "x", 1, &below), *low = b_map(g, "u8(i32(x) & 255)", "x", 1, &below);
    Value *coarse = b_gather(g, falling(g, BYTES * scale, bits), high, 0),
          *fine = b_gather(g, falling(g, scale, FINE), low, 0);
    const char *product = arena_printf(g->arena, "i32(i64(x) * i64(y) + %d >> %d)", 1 << (FINE - 1), FINE);
    return B_MAP(g, product, "x y", coarse, fine);
}

Value *softmax_of_bytes(Graph *g, const Node *n, Value *q, double scale, const Steps *s) {
    const Type *x = &n->in[0]->type;
    int64_t axis = node_int(n, "axis", -1);
    int bits = 21;
    if (axis < 0) axis += x->rank;
    bool half = is_half(q->type.dtype);
    if ((!dtype_is_byte(q->type.dtype) && !half) || !type_same_shape(&q->type, x) || !dim_is_const(x->dim[axis]))
        return NULL;
    while (bits > 12 && ldexp((double)x->dim[axis], bits) > 0x1p30) bits--;     // the sum in 32 bits
    double whole = ldexp(1 / s->scale, bits + 22);      // a result of 1; its product with an element stays in 64 bits
    if (ldexp((double)x->dim[axis], bits) > 0x1p30 || !(whole < 0x1p62) || !(1 / s->scale < 0x1p18)) return NULL;
    Value *top = b_reduce(g, OP_ReduceMax, q, 1, &axis, true);
    Value *below = B_MAP(g, half ? "u16(i32(x) - i32(y))" : "u8(i32(x) - i32(y))", "x y", top, q);
    Value *e = falls(g, below, scale, bits);
    Value *sum = b_reduce(g, OP_ReduceSum, e, 1, &axis, true);
    Value *factor = B_MAP(g, "y / i64(x)", "x y", sum, b_scalar(g, DT_I64, rint(whole)));
    const char *steps = arena_printf(g->arena, "(i64(x) * y + %lld) >> %d", (long long)1 << (bits + 21), bits + 22);
    return B_MAP(g, arena_printf(g->arena, "%s(min(max(i32(%s) + %d, %d), %d))", dtype_name(s->d), steps, (int)s->zero,
        (int)lowest(s->d), (int)highest(s->d)), "x y", e, factor);
}
