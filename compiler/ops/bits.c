// SPDX-License-Identifier: MIT OR Apache-2.0
// MatMulBits: y = x w^T, with weights w [n, k] of 2, 4 or 8 bits, quantised in blocks along k.
//
//   in          x [..., k]; packed u8 [n, blocks, bytes of a block], low bits first; scale [n, blocks] in x's type;
//               zero points [n, blocks] in u8 or x's type, NULL: the middle of the range; group i [k] or NULL
//   attributes  bits, block (elements), k; run, where features of x lie turned: feature i of w is feature
//               i % run * (k / run) + i / run of x
//   formula     w = (q - zero) * scale. A group index picks the scale of each input feature, instead of its block
//
// The expansion keeps the packed bytes: what unpacks them is one map, which does not fold because its result is
// several times larger.
#include "common.h"
#include "table.h"

#include <string.h>

typedef struct Bits { int64_t bits, block, k, n, blocks, bytes; Value *packed, *scale, *zero, *group; } Bits;

static Bits bits_of(const Node *n) {
    const Type *t = &n->in[1]->type;
    return (Bits){ .bits = node_int(n, "bits", 4),
        .block = node_int(n, "block", 0),
        .k = node_int(n, "k", 0),
        .n = t->dim[0],
        .blocks = t->dim[1],
        .bytes = t->dim[2],
        .packed = n->in[1],
        .scale = n->in[2],
        .zero = n->n_in > 3 ? n->in[3] : NULL,
        .group = n->n_in > 4 ? n->in[4] : NULL };
}

// ---------------------------------------------------------------- shape
static bool packed_fits(Node *n) {
    const int64_t bits = node_int(n, "bits", 4), block = node_int(n, "block", 0), k = node_int(n, "k", 0);
    const Type *t = &n->in[1]->type;
    if (bits != 2 && bits != 4 && bits != 8) {
        diag_error(n->loc, "bits must be 2, 4 or 8, they are %lld", (long long)bits);
        return false;
    }
    if (k < 1 || block < 1 || block > INT64_C(1) << 31 || block * bits % 8) {
        diag_error(n->loc, "k and block must be positive, and a block whole bytes; they are %lld and %lld",
            (long long)k, (long long)block);
        return false;
    }
    if (t->dtype == DT_U8 && t->rank == 3 && type_is_static(t) && t->dim[1] == k / block + (k % block != 0)
        && t->dim[2] == block * bits / 8)
        return true;
    diag_error(n->loc, "the weights %s are not u8 [n, blocks, bytes of a block]", value_type_text(n->in[1]));
    return false;
}

// One for each block of each column.
static bool of_blocks(Node *n, const Value *v, const char *what) {
    const Type *t = &n->in[1]->type;
    if (v->type.rank == 2 && v->type.dim[0] == t->dim[0] && v->type.dim[1] == t->dim[1]) return true;
    diag_error(n->loc, "the %s %s are not [n, blocks]", what, value_type_text(v));
    return false;
}

// Feature k of w in x.
static int64_t run_of(const Node *n) { return node_int(n, "run", 0); }

bool shape_matmul_bits(Node *n) {
    const Type *x = &n->in[0]->type;
    const int64_t run = run_of(n);
    if (run < 0 || (run && node_int(n, "k", 0) % run)) {
        diag_error(n->loc, "features do not lie in runs of %lld", (long long)run);
        return false;
    }
    if (!packed_fits(n) || !of_blocks(n, n->in[2], "scales")) return false;
    const Bits b = bits_of(n);
    if (b.zero && !of_blocks(n, b.zero, "zero points")) return false;
    if (!dtype_is_float(x->dtype) || b.scale->type.dtype != x->dtype
        || (b.zero && b.zero->type.dtype != DT_U8 && b.zero->type.dtype != x->dtype)) {
        diag_error(n->loc, "scales, and zero points that are not u8, must have the type of %s, a float's",
            value_type_text(n->in[0]));
        return false;
    }
    if (b.group
        && (!op_index_type(n, b.group) || b.group->type.rank != 1 || !dims_agree(n, b.group->type.dim[0], b.k))) {
        diag_error(n->loc, "the group indices %s are not [k]", value_type_text(b.group));
        return false;
    }
    if (x->rank < 1 || !dims_agree(n, x->dim[x->rank - 1], b.k)) {
        diag_error(n->loc, "cannot multiply %s by weights of %lld rows", value_type_text(n->in[0]), (long long)b.k);
        return false;
    }
    Type t = *x;
    t.dim[t.rank - 1] = b.n;
    n->out[0]->type = t;
    return true;
}

// ---------------------------------------------------------------- expansion
// [n, k] in the type d.
static Value *unpacked_weights(Graph *g, const Bits *b, DType d) {
    Value *zero = b->zero ? b_cast(g, b->zero, d) : b_scalar(g, d, (double)(1 << (b->bits - 1)));
    const char *name = dtype_name(d),
               *text = b->bits == 8 ? arena_printf(g->arena, "(%s(x) - z) * w", name) :
                                      arena_printf(g->arena, "(%s(x >> y & %d) - z) * w", name, (1 << b->bits) - 1);
    if (!zero) return NULL;
    if (b->group) {
        Value *rows = b_reshape(g, b->packed, 2, (Dim[]){ b->n, b->blocks * b->bytes }),
              *q = b_unpacked(g, rows, b->bits, b->k), *scale = b_gather(g, b->scale, b->group, 1);
        if (zero->type.rank) zero = b_gather(g, zero, b->group, 1);
        return B_MAP(g, arena_printf(g->arena, "(%s(x) - z) * w", name), "x z w", q, zero, scale);
    }
    Dim column[4] = { b->n, b->blocks, 1, 1 };
    Value *q = b_reshape(g, b->packed, 4, (Dim[]){ b->n, b->blocks, b->bytes, 1 }), *shifts = b_bit_shifts(g, b->bits);
    if (zero->type.rank) zero = b_reshape(g, zero, 4, column);
    Value *scale = b_reshape(g, b->scale, 4, column), *w = B_MAP(g, text, "x y z w", q, shifts, zero, scale);
    return b_part(g, b_reshape(g, w, 2, (Dim[]){ b->n, b->blocks * b->block }), 1, 0, b->k);
}

bool expand_matmul_bits(Node *n, Value **out) {
    Graph *g = n->graph;
    const Bits b = bits_of(n);
    Value *w = unpacked_weights(g, &b, n->in[0]->type.dtype), *x = n->in[0];
    const int rank = x->type.rank;
    if (run_of(n)) {
        Dim dims[MAX_RANK + 1];
        memcpy(dims, x->type.dim, sizeof *dims * (size_t)rank);
        dims[rank - 1] = run_of(n);
        dims[rank] = b.k / run_of(n);
        x = b_swap(g, b_reshape(g, x, rank + 1, dims), rank - 1, rank);
        x = b_reshape(g, x, rank, n->in[0]->type.dim);
    }
    return expand_done(n, b_matmul(g, x, b_swap(g, w, 0, 1)), out);
}

// ---------------------------------------------------------------- lowering
// The integer of column `row` at `k`, which stands in `block` at `within`.
static Expr *element_bits(Lower *l, const Bits *b, Expr *row, Expr *block, Expr *within) {
    const int64_t per = 8 / b->bits;
    Expr *q = lower_load(l, b->packed, (Expr *[]){ row, block, ix_divc(l, within, per) });
    if (!q || per == 1) return q;
    Expr *shift = expr_cast(l->p, ix_mulc(l, ix_modc(l, within, per), b->bits), DT_U8);
    q = expr_binary(l->p, E_Shr, q, shift);
    return expr_binary(l->p, E_BitAnd, q, expr_const_i(l->p, DT_U8, (1 << b->bits) - 1));
}

Expr *lower_matmul_bits(Lower *l, Node *n, int out, Expr *const *idx) {
    (void)out;
    const Bits b = bits_of(n);
    const DType d = n->in[0]->type.dtype, wide = dtype_wide(d);
    const int last = n->in[0]->type.rank - 1;
    Expr *k = lower_axis(l, b.k, true), *block = ix_divc(l, k, b.block), *cond = NULL, *ix[MAX_RANK];
    Expr *q = element_bits(l, &b, idx[last], block, ix_modc(l, k, b.block));
    memcpy(ix, idx, sizeof(Expr *) * (size_t)last);
    const int64_t run = run_of(n);
    ix[last] = run ? expr_binary(l->p, E_Add, ix_mulc(l, ix_modc(l, k, run), b.k / run), ix_divc(l, k, run)) : k;
    Expr *x = lower_load(l, n->in[0], ix),
         *at[] = { idx[last], b.group ? lower_index(l, b.group, &k, b.blocks, &cond) : block };
    if (!q || !x || !at[1]) return NULL;
    Expr *zero = b.zero ? lower_guarded(l, b.zero, at, cond, expr_zero(l->p, b.zero->type.dtype)) :
                          expr_const_f(l->p, wide, (double)(1 << (b.bits - 1))),
         *scale = lower_guarded(l, b.scale, at, cond, expr_zero(l->p, d));
    if (!zero || !scale) return NULL;
    Expr *w = expr_binary(l->p, E_Sub, expr_cast(l->p, q, wide), expr_cast(l->p, zero, wide));
    w = expr_binary(l->p, E_Mul, w, expr_cast(l->p, scale, wide));
    const bool summed = k->op == E_Axis;
    const int axis = summed ? (int)k->c.i : 0;
    Expr *product = expr_binary(l->p, E_Mul, expr_cast(l->p, x, wide), w);
    return expr_cast(l->p, expr_accumulate(l, RED_SUM, summed, &axis, product), d);
}
