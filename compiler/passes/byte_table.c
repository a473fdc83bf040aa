// SPDX-License-Identifier: MIT OR Apache-2.0
// Functions of a byte are tables. Contract: as requantize.c, of which this is the part for what is no sum of integers.
//
//   before   %2: f32 = Sigmoid((%q - 3) * 0.1)               %3: i8 = Cast(Round(%2 / 0.004) - 128)
//   after    %3: i8 = Gather(%table, %q as u8)               %table: i8[256], computed here
//
// The idea: whatever the operations between one tensor of bytes and the next do element by element, with constants of
// one number, has 256 results. They are the evaluator's for these operations, so they are those of floats to the bit.
// Equal tables are one constant. A softmax is a table, too: exp of the distance to the row's largest byte, in fixed
// point; a row's sum is divided once, into the factor of all its elements.
#include "requantize.h"

#include <math.h>

enum { BYTES = 256, MOST_NODES = 64 };

typedef struct Table {
    Value *q;                                           // the tensor of bytes, once it is met
    VEC(Value *) from, to;                              // values, and what they are of all bytes
    Arena *scratch;
} Table;

// All bytes, in the order of their bits.
static Value *all_bytes(Graph *g, DType d) {
    Tensor *t = tensor_new(g->arena, type_make(d, 1, &(Dim){ BYTES }));
    for (int64_t i = 0; i < BYTES; i++) tensor_set_i(t, i, d == DT_I8 && i > INT8_MAX ? i - BYTES : i);
    return graph_const(g, t, NULL);
}

static Value *of_all(Graph *g, Table *t, Value *v);

static Value *computed(Graph *g, Table *t, Value *v) {
    double number;
    Value *c = requantize_known(v);
    Node *n = v->def;
    if (c) return const_splat(c, &number) ? b_scalar(g, c->type.dtype, number) : NULL;
    if (is_byte(v->type.dtype) && (!t->q || t->q == v)) {
        t->q = v;
        return all_bytes(g, v->type.dtype);
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
    return b_round_to(g, b_binary(g, OP_Div, v, b_scalar(g, DT_F32, s->scale)),
        b_scalar(g, s->d, (double)s->zero), s->d, true);
}

// The bytes of q as numbers from 0 to 255: which of all_bytes.
static Value *index_of(Graph *g, Value *q) {
    return q->type.dtype == DT_U8 ? q : b_map(g, "u8(i32(x) & 255)", "x", 1, &q);
}

Value *table_of_byte(Graph *g, Value *v, const Steps *s) {
    Table t = { .scratch = arena_new() };
    Value *all = of_all(g, &t, v), *table = all ? requantize_known(made_of(g, all, s)) : NULL;
    arena_free(t.scratch);
    if (!table || !t.q || table->type.rank != 1 || !type_same_shape(&t.q->type, &v->type)) return NULL;
    return b_gather(g, table, index_of(g, t.q), 0);
}

// ---------------------------------------------------------------- softmax
// exp(-i scale) in units of 2^-bits, for i from 0 on
static Value *falling(Graph *g, double scale, int bits) {
    Tensor *t = tensor_new(g->arena, type_make(DT_I32, 1, &(Dim){ BYTES }));
    for (int64_t i = 0; i < BYTES; i++) tensor_set_i(t, i, (int64_t)rint(ldexp(exp(-(double)i * scale), bits)));
    return graph_const(g, t, NULL);
}

Value *softmax_of_bytes(Graph *g, const Node *n, Value *q, double scale, const Steps *s) {
    const Type *x = &n->in[0]->type;
    int64_t axis = node_int(n, "axis", -1);
    int bits = 21;
    if (axis < 0) axis += x->rank;
    if (!is_byte(q->type.dtype) || !type_same_shape(&q->type, x) || !dim_is_const(x->dim[axis])) return NULL;
    while (bits > 12 && ldexp((double)x->dim[axis], bits) > 0x1p30) bits--;     // the sum in 32 bits
    double whole = ldexp(1 / s->scale, bits + 22);      // a result of 1; its product with an element stays in 64 bits
    if (ldexp((double)x->dim[axis], bits) > 0x1p30 || !(whole < 0x1p62) || !(1 / s->scale < 0x1p18)) return NULL;
    Value *top = b_reduce(g, OP_ReduceMax, q, 1, &axis, true);
    Value *below = B_MAP(g, "u8(i32(x) - i32(y))", "x y", top, q);
    Value *e = b_gather(g, falling(g, scale, bits), below, 0);
    Value *sum = b_reduce(g, OP_ReduceSum, e, 1, &axis, true);
    Value *factor = B_MAP(g, "y / i64(x)", "x y", sum, b_scalar(g, DT_I64, rint(whole)));
    const char *steps = arena_printf(g->arena, "(i64(x) * y + %lld) >> %d", (long long)1 << (bits + 21), bits + 22);
    return B_MAP(g, arena_printf(g->arena, "%s(min(max(i32(%s) + %d, %d), %d))", dtype_name(s->d), steps, (int)s->zero,
        (int)lowest(s->d), (int)highest(s->d)), "x y", e, factor);
}
