// SPDX-License-Identifier: MIT OR Apache-2.0
// RandomUniform: numbers in [0,1) that are a function of (seed, element index) alone, so that any order of computing,
// any thread count and any back end gives the same bits. Input 0, when present, is an integer scalar mixed into the
// seed, such as the number of a step.
//
// Element i is the top bits of  mix(mix(i + k0) ^ k1 ^ mix(step + k0))  with k0, k1 from the seed; mix is "triple32",
// the 32-bit bijection of least known bias (C. Wellons, hash-prospector, 2018): shifts, xors and multiplications of
// u32, which every target has. As many bits are taken as the dtype's significand holds: 24 for f32, 11 for f16, 8 for
// bf16, 53 from two words for f64.
#include "common.h"
#include "table.h"

typedef struct MixStep { int shift; uint32_t factor; } MixStep;
static const MixStep mix_steps[] = { { 17, 0xed5ad4bbu }, { 11, 0xac4c1b51u }, { 15, 0x31848babu }, { 14, 1 } };
enum { SECOND_WORD = 0x3c6ef372 };                      // told apart from the first by another k1

static uint32_t mix(uint32_t x) {
    for (size_t i = 0; i < COUNT(mix_steps); i++) {
        x ^= x >> mix_steps[i].shift;
        x *= mix_steps[i].factor;
    }
    return x;
}

static void random_keys(const Node *n, uint32_t *k0, uint32_t *k1) {
    uint64_t seed = (uint64_t)node_int(n, "seed", 0);
    *k0 = mix((uint32_t)seed + 0x9e3779b9u);
    *k1 = mix((uint32_t)(seed >> 32) ^ *k0);
}

static int random_bits(DType d) { return d == DT_F16 ? 11 : d == DT_BF16 ? 8 : 24; }

bool shape_random(Node *n) {
    int rank = 0;
    const int64_t *dims = node_ints(n, "shape", &rank);
    DType d = (DType)node_int(n, "dtype", DT_F32);
    if (d != DT_F32 && d != DT_F64 && d != DT_F16 && d != DT_BF16) {
        diag_error(n->loc, "random numbers are f32, f64, f16 or bf16, not %s; cast them", dtype_name(d));
        return false;
    }
    if (rank > MAX_RANK) {
        diag_error_as(EXIT_LIMIT, n->loc, "shape has %d dimensions, the most is %d", rank, MAX_RANK);
        return false;
    }
    if (n->n_in && n->in[0] && (!dtype_is_int(n->in[0]->type.dtype) || n->in[0]->type.rank != 0)) {
        diag_error(
            n->loc, "what is mixed into the seed must be an integer scalar, it is %s", value_type_text(n->in[0]));
        return false;
    }
    n->out[0]->type = type_make(d, rank, dims);
    return true;
}

bool eval_random(const Node *n, Tensor *const *in, Tensor *const *out) {
    uint32_t k0, k1;
    int64_t count = type_count(&out[0]->type);
    DType d = out[0]->type.dtype;
    random_keys(n, &k0, &k1);
    if (n->n_in && n->in[0]) k1 ^= mix((uint32_t)tensor_get_i(in[0], 0) + k0);
    for (int64_t i = 0; i < count; i++) {
        uint32_t inner = mix((uint32_t)i + k0), word = mix(inner ^ k1);
        if (d == DT_F64)
            tensor_set_f(
                out[0], i, ((double)(word >> 5) * 0x1p26 + (double)(mix(inner ^ k1 ^ SECOND_WORD) >> 6)) * 0x1p-53);
        else tensor_set_f(out[0], i, (double)(word >> (32 - random_bits(d))) / (double)(1u << random_bits(d)));
    }
    return true;
}

// ---------------------------------------------------------------- lowering: the same in u32 expressions
static Expr *u32(Lower *l, uint32_t v) { return expr_const_i(l->p, DT_U32, (int64_t)v); }

static Expr *mix_expr(Lower *l, Expr *x) {
    for (size_t i = 0; i < COUNT(mix_steps); i++) {
        x = expr_binary(l->p, E_BitXor, x, expr_binary(l->p, E_Shr, x, u32(l, (uint32_t)mix_steps[i].shift)));
        if (mix_steps[i].factor != 1) x = expr_binary(l->p, E_Mul, x, u32(l, mix_steps[i].factor));
    }
    return x;
}

// The top `bits` bits of a word as a float of type d
static Expr *top_bits(Lower *l, Expr *word, int bits, DType d) {
    return expr_cast(l->p, expr_binary(l->p, E_Shr, word, u32(l, (uint32_t)(32 - bits))), d);
}

Expr *lower_random(Lower *l, Node *n, int out, Expr *const *idx) {
    DType d = n->out[out]->type.dtype;
    uint32_t k0, k1;
    random_keys(n, &k0, &k1);
    Expr *key = u32(l, k1);
    if (n->n_in && n->in[0]) {
        Expr *step = lower_load(l, n->in[0], NULL);
        if (!step) return NULL;
        step = expr_cast(l->p, step, DT_U32);
        step = expr_binary(l->p, E_Add, step, u32(l, k0));
        key = expr_binary(l->p, E_BitXor, mix_expr(l, step), key);
    }
    Expr *i = expr_cast(l->p, lower_flat(l, &n->out[out]->type, idx), DT_U32);
    Expr *inner = mix_expr(l, expr_binary(l->p, E_Add, i, u32(l, k0)));
    Expr *keyed = expr_binary(l->p, E_BitXor, inner, key), *word = mix_expr(l, keyed);
    if (d == DT_F64) {
        Expr *low = mix_expr(l, expr_binary(l->p, E_BitXor, keyed, u32(l, SECOND_WORD)));
        Expr *high = top_bits(l, word, 27, d);
        high = expr_binary(l->p, E_Mul, high, expr_const_f(l->p, d, 0x1p26));
        Expr *both = expr_binary(l->p, E_Add, high, top_bits(l, low, 26, d));
        return expr_binary(l->p, E_Mul, both, expr_const_f(l->p, d, 0x1p-53));
    }
    int bits = random_bits(d);
    Expr *top = top_bits(l, word, bits, DT_F32),
         *e = expr_binary(l->p, E_Mul, top, expr_const_f(l->p, DT_F32, 1.0 / (double)(1u << bits)));
    return d == DT_F32 ? e : expr_cast(l->p, e, d);
}
