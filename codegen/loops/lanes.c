// SPDX-License-Identifier: MIT OR Apache-2.0
// What becomes of exact sums, an expression over a template's accumulator, in vectors of 32-bit integers, for
// neighbours along the result's last axis: four of Arm's (arm_mve.h), or `now` of RISC-V's (riscv_vector.h). In: the
// kernel with that one store. Out: statements, of which the last returns; or false, and nothing printed: there is an
// operation that such vectors have not.
//
//   const int32x4_t t0 = vldrwq_s32(&e_bias[i2]);       const vint32m4_t t0 = __riscv_vle32_v_i32m4(&e_bias[i2], now);
//   const int32x4_t t1 = vaddq_s32(acc, t0);            const vint32m4_t t1 = __riscv_vadd_vv_i32m4(acc, t0, now);
//   const int32x4_t t2 = vldrwq_s32(&e_scale[i2]);      const vint32m4_t t2 = __riscv_vle32_v_i32m4(&e_scale[i2], now);
//   const int32x4_t t3 = vrmulhq_s32(t1, t2);           const vint32m4_t t3 = burn_across_high(1, t1, t2, now);
//
// The last is (i64(t1) t2 + 2^31) >> 32. Pairs, of Arm's: eight neighbours, those of even and those of odd places, as
// products of bytes leave them. Values of fewer bits are lanes of 32; a result's upper bits are nobody's.
#include "loops.h"

#include "ir/expr.h"

typedef struct Lanes {
    LoopPrinter p;
    bool pairs, many;                                   // many: RISC-V's
    int axis;                                           // along which the lanes lie
    const char **name[2];                               // by expression id: what holds it
} Lanes;

static bool put(Lanes *l, Expr *e);

static const char *temporary(Lanes *l, const Expr *e, int half) {
    const char *const suffix[] = { l->pairs ? "e" : "", "o" };
    l->name[half][e->id] = arena_printf(l->p.arena, "t%d%s", e->id, suffix[half]);
    loops_line(&l->p, 1);
    return l->name[half][e->id];
}

static bool is_short(const Expr *e) { return dtype_is_int(e->dtype) && dtype_size(e->dtype) <= 4; }

static bool varies(const Lanes *l, const Expr *e) {
    if (!e) return false;
    if (e->op == E_Acc || (e->op == E_Axis && e->c.i == l->axis)) return true;
    return varies(l, e->a[0]) || varies(l, e->a[1]) || varies(l, e->a[2]);
}

static const char *vector_type(const Lanes *l) { return l->many ? "vint32m4_t" : "int32x4_t"; }

// e = text with x's name in the place of the first %s
static void define(Lanes *l, const Expr *e, const char *before, const Expr *x, const char *after) {
    for (int h = 0; h <= l->pairs; h++) {
        const char *to = temporary(l, e, h);
        text_printf(l->p.out, "const %s %s = %s%s%s;\n", vector_type(l), to, before, l->name[h][x->id], after);
    }
}

// e = x op y, or with y NULL x op the scalar; op as both families of vectors have it: "add", "max"
static void apply(Lanes *l, Expr *e, const char *op, const Expr *x, const Expr *y, const char *scalar) {
    for (int h = 0; h <= l->pairs; h++) {
        const char *to = temporary(l, e, h), *left = l->name[h][x->id];
        if (l->many)
            text_printf(l->p.out, "const vint32m4_t %s = __riscv_v%s_v%c_i32m4(%s, %s, now);\n", to, op, y ? 'v' : 'x',
                left, y ? l->name[h][y->id] : scalar);
        else if (y)
            text_printf(l->p.out, "const int32x4_t %s = v%sq_s32(%s, %s);\n", to, op, left, l->name[h][y->id]);
        else
            text_printf(l->p.out, "const int32x4_t %s = v%sq_s32(%s, vdupq_n_s32(%s));\n", to, op, left, scalar);
    }
}

static void same(Lanes *l, Expr *e, const Expr *x) {
    for (int h = 0; h <= l->pairs; h++) l->name[h][e->id] = l->name[h][x->id];
}

static const char *scalar_text(Lanes *l, Expr *e) { return text_bare(l->p.arena, loops_operand(&l->p, e)); }

static bool splat(Lanes *l, Expr *e) {
    const char *text = scalar_text(l, e);
    for (int h = 0; h <= l->pairs; h++) {
        const char *to = temporary(l, e, h);
        text_printf(l->p.out, l->many ? "const vint32m4_t %s = __riscv_vmv_v_x_i32m4(%s, now);\n"
                                      : "const int32x4_t %s = vdupq_n_s32(%s);\n", to, text);
    }
    return true;
}

// `now` elements, of 1 or 2 bytes widened.
static bool load_many(Lanes *l, const Expr *e, const char *from, bool is_signed) {
    const int bytes = (int)dtype_size(e->dtype);
    const char *to = temporary(l, e, 0);
    text_printf(l->p.out, "const vint32m4_t %s = ", to);
    if (bytes == 4) text_printf(l->p.out, "__riscv_vle32_v_i32m4(%s, now);\n", from);
    else if (is_signed)
        text_printf(l->p.out, "__riscv_vsext_vf%d_i32m4(__riscv_vle%d_v_i%dm%d(%s, now), now);\n", 4 / bytes,
            8 * bytes, 8 * bytes, bytes, from);
    else
        text_printf(l->p.out, "__riscv_vreinterpret_v_u32m4_i32m4(__riscv_vzext_vf%d_u32m4("
            "__riscv_vle%d_v_u%dm%d(%s, now), now));\n", 4 / bytes, 8 * bytes, 8 * bytes, bytes, from);
    return true;
}

// Elements that follow each other in memory.
static bool load(Lanes *l, Expr *e) {
    int64_t coef[64], c0;
    const bool narrow = dtype_size(e->dtype) < 4, is_signed = e->dtype == DT_I8 || e->dtype == DT_I16;
    if (e->a[1] || varies(l, e->a[1]) || !expr_affine(e->a[0], 64, coef, &c0) || coef[l->axis] != 1) return false;
    if (e->dtype == DT_U32 || (e->dtype == DT_BOOL && (l->pairs || l->many))) return false;
    const char *from = l->p.d->address(l->p.d->ctx, e->value, loops_operand(&l->p, e->a[0]));
    if (l->many) return load_many(l, e, from, is_signed);
    const char size = dtype_size(e->dtype) == 1 ? 'b' : dtype_size(e->dtype) == 2 ? 'h' : 'w';
    const char sign = is_signed || !narrow ? 's' : 'u';
    if (!l->pairs) {
        const char *to = temporary(l, e, 0);
        text_printf(l->p.out, "const int32x4_t %s = %svldr%cq_%c32(%s);\n", to,
            sign == 'u' ? "(int32x4_t)" : "", size, sign, from);
        return true;
    }
    const char *both = arena_printf(l->p.arena, "t%d", e->id);
    loops_line(&l->p, 1);
    if (narrow) text_printf(l->p.out, "const %sint16x8_t %s = vldr%cq_%c16(%s);\n", sign == 'u' ? "u" : "", both, size,
        sign, from);
    else text_printf(l->p.out, "const int32x4x2_t %s = vld2q_s32(%s);\n", both, from);
    for (int h = 0; h < 2; h++) {
        const char *to = temporary(l, e, h);
        if (narrow) text_printf(l->p.out, "const int32x4_t %s = %svmovl%cq_%c16(%s);\n", to,
            sign == 'u' ? "(int32x4_t)" : "", h ? 't' : 'b', sign, both);
        else text_printf(l->p.out, "const int32x4_t %s = %s.val[%d];\n", to, both, h);
    }
    return true;
}

// The integers of 32 bits, or fewer, that e has as 64; NULL: none.
static Expr *widened(Expr *e) {
    return e->op == E_Cast && is_short(e->a[0]) && e->a[0]->dtype != DT_U32 ? e->a[0] : NULL;
}

static bool is_word(const Expr *e) { return e->op == E_Const && e->c.i >= INT32_MIN && e->c.i <= INT32_MAX; }

// i32((i64(x) * i64(y) + c) >> 32), where c is whole steps and perhaps the half of one.
static bool high_word(Lanes *l, Expr *e) {
    Expr *shift = e->a[0], *sum = shift->op == E_Shr ? shift->a[0] : NULL;
    if (!sum || shift->a[1]->op != E_Const || shift->a[1]->c.i != 32) return false;
    int64_t c = 0;
    if (sum->op == E_Add) {
        int at = sum->a[1]->op == E_Const ? 1 : 0;
        if (sum->a[at]->op != E_Const) return false;
        c = sum->a[at]->c.i;
        sum = sum->a[!at];
    }
    if (sum->op != E_Mul || (c & 0x7fffffff)) return false;
    Expr *x = widened(sum->a[0]), *y = widened(sum->a[1]);
    if (!x && !y) return false;
    const Expr *constant = !x ? sum->a[0] : !y ? sum->a[1] : NULL;
    if (constant && !is_word(constant)) return false;
    if ((x && !put(l, x)) || (y && !put(l, y))) return false;
    const bool rounds = c & 0x80000000;
    const Expr *left = x ? x : y;
    const char *number = constant ? arena_printf(l->p.arena, "%lld", (long long)constant->c.i) : NULL;
    if (!l->many) apply(l, e, rounds ? "rmulh" : "mulh", left, constant ? NULL : y, number);
    else define(l, e, arena_printf(l->p.arena, "burn_across_high%s(%d, ", constant ? "_by" : "", rounds), left,
        arena_printf(l->p.arena, ", %s, now)", constant ? number : l->name[0][y->id]));
    int64_t steps = (c - (c & 0xffffffff)) / ((int64_t)1 << 32);
    for (int h = 0; h <= l->pairs && steps; h++) {
        const char *name = l->name[h][e->id];
        loops_line(&l->p, 1);
        if (l->many) text_printf(l->p.out, "const vint32m4_t %ss = __riscv_vadd_vx_i32m4(%s, %lld, now);\n", name,
            name, (long long)steps);
        else text_printf(l->p.out, "const int32x4_t %ss = vaddq_n_s32(%s, %lld);\n", name, name, (long long)steps);
        l->name[h][e->id] = arena_printf(l->p.arena, "%ss", l->name[h][e->id]);
    }
    return true;
}

// All that x can be fits d.
static bool is_cut_to(const Expr *x, DType d) {
    int64_t lo, hi, from_lo, from_hi;
    int_bounds(d, &lo, &hi);
    int_bounds(x->dtype, &from_lo, &from_hi);
    if (from_lo >= lo && from_hi <= hi) return true;
    if (x->op != E_Min || x->a[0]->op != E_Max || !is_word(x->a[1]) || !is_word(x->a[0]->a[1])) return false;
    return x->a[1]->c.i <= hi && x->a[0]->a[1]->c.i >= lo;
}

static bool cast(Lanes *l, Expr *e) {
    if (e->a[0]->dtype == DT_I64) return e->dtype == DT_I32 && high_word(l, e);
    if (!is_short(e->a[0]) || e->a[0]->dtype == DT_U32 || !is_cut_to(e->a[0], e->dtype) || !put(l, e->a[0]))
        return false;
    same(l, e, e->a[0]);
    return true;
}

static bool binary(Lanes *l, Expr *e, const char *op) {
    Expr *x = e->a[0], *y = e->a[1];
    // RISC-V's take a scalar on the right
    if (l->many && !varies(l, x) && e->op != E_Sub) {
        x = e->a[1];
        y = e->a[0];
    }
    const bool by_scalar = l->many && !varies(l, y) && is_short(y) && y->dtype != DT_U32;
    if (!put(l, x) || (!by_scalar && !put(l, y))) return false;
    apply(l, e, op, x, by_scalar ? NULL : y, by_scalar ? scalar_text(l, y) : NULL);
    return true;
}

static bool shift(Lanes *l, Expr *e) {
    if (e->a[1]->op != E_Const || e->a[1]->c.i < 1 || e->a[1]->c.i > 31 || !put(l, e->a[0])) return false;
    define(l, e, l->many ? "__riscv_vsra_vx_i32m4(" : "vshrq_n_s32(", e->a[0],
        arena_printf(l->p.arena, ", %d%s)", (int)e->a[1]->c.i, l->many ? ", now" : ""));
    return true;
}

static bool operation(Lanes *l, Expr *e) {
    const bool word = e->dtype == DT_I32;               // of fewer bits, arithmetic wraps around earlier
    switch (e->op) {
    case E_Load: return load(l, e);
    case E_Cast: return cast(l, e);
    case E_Add: return word && binary(l, e, "add");
    case E_Sub: return word && binary(l, e, "sub");
    case E_Mul: return word && binary(l, e, "mul");
    case E_BitAnd: return word && binary(l, e, "and");
    case E_Shr: return word && shift(l, e);
    case E_Max: return binary(l, e, "max");
    case E_Min: return binary(l, e, "min");
    default: return false;
    }
}

static bool put(Lanes *l, Expr *e) {
    if (l->name[0][e->id]) return true;
    if (!is_short(e) || e->dtype == DT_U32) return false;
    if (e->op == E_Acc) {
        l->name[0][e->id] = l->pairs ? "acc.even" : "acc";
        l->name[1][e->id] = "acc.odd";
        return true;
    }
    return varies(l, e) ? operation(l, e) : splat(l, e);
}

// What is cut to all that d can be, so that narrowing does it; NULL: e is not.
static Expr *uncut(Expr *e, DType d) {
    int64_t lo, hi;
    Expr *min = e->op == E_Cast && e->dtype == d ? e->a[0] : NULL;
    if (!min || min->op != E_Min || min->a[0]->op != E_Max || min->dtype != DT_I32) return NULL;
    if (!is_word(min->a[1]) || !is_word(min->a[0]->a[1]) || !int_bounds(d, &lo, &hi)) return NULL;
    return min->a[1]->c.i == hi && min->a[0]->a[1]->c.i == lo ? min->a[0]->a[0] : NULL;
}

// Both in one vector of elements of 16 bits, in order.
static void merge(Lanes *l, const Expr *e, DType cut) {
    const char *even = l->name[0][e->id], *odd = l->name[1][e->id];
    const char *u = dtype_class(cut) == CLASS_INT ? "" : "u";
    loops_line(&l->p, 1);
    if (cut == DT_NONE) {
        text_printf(l->p.out, "return vmovntq_s32((int16x8_t)%s, %s);\n", even, odd);
        return;
    }
    text_printf(l->p.out, "const %sint16x8_t narrow = vqmov%sntq_s32(vqmov%snbq_s32((%sint16x8_t)%s, %s), %s);\n", u, u,
        u, u, even, even, odd);
    loops_line(&l->p, 1);
    if (dtype_size(cut) == 2) text_printf(l->p.out, "return (int16x8_t)narrow;\n");
    else text_printf(l->p.out, "return (int16x8_t)vqmovnbq_%c16((%sint8x16_t)narrow, narrow);\n", *u ? 'u' : 's', u);
}

bool loops_lanes(Arena *a, Text *out, const Kernel *k, const Dialect *d, int axes, LanesForm form) {
    const bool pairs = form == LANES_PAIRS;
    Lanes l = { .pairs = pairs, .many = form == LANES_MANY, .axis = axes - 1 };
    Expr *e = k->stores.at[0].expr;
    const DType stored = k->stores.at[0].value->type.dtype;
    Text body;
    text_init(&body, a);
    loops_init(&l.p, a, &body, k, d, axes);
    for (int h = 0; h < 2; h++) l.name[h] = NEW_ARRAY(a, const char *, expr_count(k->exprs) + 1);
    if (!dtype_is_int(stored) || dtype_size(stored) > (pairs ? 2 : 4)) return false;
    Expr *x = pairs ? uncut(e, stored) : NULL;
    if (!put(&l, x ? x : e)) return false;
    text_printf(out, "%s", body.at ? body.at : "");
    l.p.out = out;
    if (pairs) merge(&l, x ? x : e, x ? stored : DT_NONE);
    else {
        loops_line(&l.p, 1);
        text_printf(out, "return %s;\n", l.name[0][e->id]);
    }
    return true;
}
