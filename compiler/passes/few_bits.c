// SPDX-License-Identifier: MIT OR Apache-2.0
// Constant weights of few bits under a DequantizeLinear, whose floats folding would store, or the run would make.
// Contract: inference only; sums are rounded in another order.
//
//   before   %3: f32[784,10] = Mul(Cast(%1), %2)         %1: constant i8[784,10], %2: scales of blocks along axis 0
//            %4: f32[1,10] = MatMul(%0, %3)
//   after    %4: f32[1,10] = MatMulBits(%0, %1', %2')    %1': u8[10,25,32], %2': f32[10,25]
//
// Where memory is the price all of these products keep their numbers as they are, and so do tables; elsewhere those
// whose floats folding leaves to the run. Weights of convolutions, and those whose columns have one scale, become
// constants here: behind the passes that move them, passes/whole_weights.c finds their numbers again.
#include "passes.h"

#include <string.h>

// Bytes that pass_fold takes for little; bits of a word. Kernels with panels sum numbers from 0 on, and take away what
// that is too much behind each block: a long block's sums would lose in it what is small.
enum { FOLDED = 64 << 10, WORD = 32, LONGEST = 64 };

// Rows of matrix W [k, n] lie `row` apart in q, columns `column`; in the scales, where they are those of blocks.
typedef struct Few {
    const Tensor *q, *scale, *zero;                     // zero: NULL: 0
    int64_t k, n, block, row, column, s_row, s_column, bits;
    int64_t sums;                                       // rows in a block of the product, `block` or a part of it
} Few;

static Value *under_transpose(Value *w, bool *turned) {
    const Node *n = w->def;
    int rank;
    const int64_t *perm = n && n->op == OP_Transpose ? node_ints(n, "perm", &rank) : NULL;
    *turned = perm && rank == 2 && perm[0] == 1;
    return *turned ? n->in[0] : w;
}

static bool read_quant(Value *w, Value **q, Quant *by) {
    return !w->data && w->def && w->type.dtype == DT_F32 && quant_read_back(w->def, q, by) && (*q)->data
        && by->scale->data && by->scale->type.dtype == DT_F32 && (!by->zero || by->zero->data);
}

// The numbers of a product's right factor, when they have 8 bits or fewer.
static bool read_few(Value *w, Few *f) {
    bool turned;
    Quant by;
    Value *q, *of = under_transpose(w, &turned);
    if (of->type.rank != 2 || !read_quant(of, &q, &by) || dtype_bits(q->type.dtype) > 8) return false;
    const int k = turned, n = !turned;                  // their axes
    const Dim *dim = q->type.dim;
    *f = (Few){ .q = q->data, .scale = by.scale->data, .zero = by.zero ? by.zero->data : NULL, .k = dim[k],
        .n = dim[n], .block = dim[k], .row = turned ? 1 : dim[1], .column = turned ? dim[1] : 1,
        .bits = dtype_bits(q->type.dtype) < 8 ? 4 : 8 };
    if (by.block && by.axis != k) return false;
    if (by.block) {
        const Dim *blocks = by.scale->type.dim;
        f->block = by.block < dim[k] ? by.block : dim[k];
        f->s_row = turned ? 1 : blocks[1];
        f->s_column = turned ? blocks[1] : 1;
    } else if (type_count(&by.scale->type) > 1) {
        if (by.axis != n) return false;
        f->s_column = 1;
    }
    // one block may be of any length: what it has too few of are zeros
    const int64_t whole = WORD / f->bits;
    if (f->block == f->k) f->block = (f->k + whole - 1) / whole * whole;
    f->sums = f->block;
    return f->block > 0 && f->block % whole == 0;
}

// q - zero, from -2^(bits-1) on; false: it is out of that.
static bool number_at(const Few *f, int64_t k, int64_t n, int64_t *q) {
    const int64_t half = INT64_C(1) << (f->bits - 1), s = k / f->block * f->s_row + n * f->s_column;
    *q = tensor_get_i(f->q, k * f->row + n * f->column);
    if (f->zero) *q -= tensor_get_i(f->zero, type_count(&f->zero->type) > 1 ? s : 0);
    return *q >= -half && *q < half;
}

// As MatMulBits has them (ops/bits.c); false: numbers have more bits.
static bool pack(Graph *g, const Few *f, Value **packed, Value **scale) {
    const int64_t blocks = (f->k + f->sums - 1) / f->sums, bytes = f->sums * f->bits / 8, per = 8 / f->bits;
    Tensor *q = tensor_new(g->arena, type_make(DT_U8, 3, (Dim[]){ f->n, blocks, bytes }));
    Tensor *s = tensor_new(g->arena, type_make(DT_F32, 2, (Dim[]){ f->n, blocks }));
    uint8_t *to = memset(q->data, 0, (size_t)(f->n * blocks * bytes));
    for (int64_t n = 0; n < f->n; n++, to += blocks * bytes) {
        for (int64_t b = 0; b < blocks; b++)
            ((float *)s->data)[n * blocks + b]
                = ((const float *)f->scale->data)[b * f->sums / f->block * f->s_row + n * f->s_column];
        for (int64_t k = 0; k < f->k; k++) {
            int64_t number;
            if (!number_at(f, k, n, &number)) return false;
            const uint64_t above = (uint64_t)(number + (INT64_C(1) << (f->bits - 1)));
            to[k / per] = (uint8_t)(to[k / per] | above << (k % per * f->bits));
        }
    }
    *packed = graph_const(g, q, NULL);
    *scale = graph_const(g, s, NULL);
    return true;
}

static Value *product_of_bits(Graph *g, Node *n, const Few *f) {
    Value *packed, *scale;
    if (!pack(g, f, &packed, &scale)) return NULL;
    Node *y = graph_node(g, OP_MatMulBits, 3, (Value *[]){ n->in[0], packed, scale }, 1);
    node_set_int(y, "bits", f->bits);
    node_set_int(y, "block", f->sums);
    node_set_int(y, "k", f->k);
    return b_finish(y);
}

// Of few floats, or of one scale for a column: constants, where a run would compute them else.
static void as_constant(Rewrite *r, Graph *g, Node *n) {
    Value *w = n->in[1], *q;
    bool turned;
    Quant by;
    if (!read_quant(under_transpose(w, &turned), &q, &by) || !value_const(w)) return;
    rewrite_set(r, w, graph_const(g, value_const(w), w->name));
    n->in[1] = rewrite_get(r, w);
}

// Rows of a table in blocks along them: the numbers are looked up, and become floats behind that.
static Value *looked_up(Graph *g, const Node *n) {
    Quant by;
    Value *q, *table = n->in[0];
    if (node_int(n, "axis", 0) != 0 || table->type.rank != 2 || !read_quant(table, &q, &by) || by.zero || !by.block
        || by.axis != 1)
        return NULL;
    Value *rows = b_gather(g, q, n->in[1], 0), *scales = b_gather(g, by.scale, n->in[1], 0);
    if (!rows || !scales) return NULL;
    return b_dequantize(g, rows, &(Quant){ scales, NULL, rows->type.rank - 1, by.block }, DT_F32);
}

static void visit(Rewrite *r, Graph *g, const Options *o) {
    for (Node *n = g->first; n; n = n->next) {
        rewrite_operands(r, n);
        for (int i = 0; i < n->n_bodies; i++) visit(r, n->bodies[i], o);
        g->cursor = n;
        g->loc = n->loc;
        const bool dear = o->machine.ram_first;
        Value *row = dear && n->op == OP_Gather ? looked_up(g, n) : NULL;
        if (row) rewrite_set(r, n->out[0], row);
        if (n->op != OP_MatMul && n->op != OP_Conv) continue;
        Few f;
        const bool product = n->op == OP_MatMul && read_few(n->in[1], &f),
                   columns = product && f.block >= f.k;
        const bool bits = product && (dear ? !columns : type_bytes(&n->in[1]->type) > FOLDED)
            && n->in[0]->type.dtype == DT_F32 && n->in[0]->type.rank > 1;
        if (bits && !dear && f.sums > LONGEST && (columns || f.block % LONGEST == 0)) f.sums = LONGEST;
        Value *y = bits ? product_of_bits(g, n, &f) : NULL;
        if (y) rewrite_set(r, n->out[0], y);
        else if (n->op == OP_Conv || columns) as_constant(r, g, n);
    }
    g->cursor = NULL;
    rewrite_outputs(r, g);
}

bool pass_few_bits(Graph *g, const Options *o) {
    Rewrite r = { .scratch = arena_new() };
    visit(&r, g, o);
    arena_free(r.scratch);
    return r.changed && pass_dce(g);
}
