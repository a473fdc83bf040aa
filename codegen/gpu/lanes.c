// SPDX-License-Identifier: MIT OR Apache-2.0
// Loop kernels whose elements lie in order: a thread has four neighbours, or eight of 16 bits.
//
// In: a kernel of maps alone that stores along its last axis, or what a product does with its sums. Out: what a thread
// does with its lanes: what lies in order too is read at once, then each lane is computed, then all are stored at once.
// A thread for each element would leave a large card waiting for threads to begin, which is slower than its memory; and
// a store that the next load may overlap keeps that one waiting.
//
//     const int first = i1 * 4;
//     vec4 w0;                                 what is read, where i1 is the first of the lanes
//     { const int i1 = first; w0 = a_f32x4[(at1 + i0 * 768 + i1) / 4]; }
//     precise float r0[4];
//     [[unroll]] for (int lane = 0; lane < 4; lane++) { const int i1 = first + lane; r0[lane] = w0[lane] * 2.0; }
//     { const int i1 = first; a_f32x4[(at0 + i0 * 768 + i1) / 4] = vec4(r0[0], r0[1], r0[2], r0[3]); }
#include "glsl.h"

enum { LEAST_THREADS = 1 << 13, MOST_STORES = 4 };

typedef struct Look {
    const Printing *p;
    int axis, lanes;
    bool *seen, ok, guarded;                            // guarded: what is outside all lanes are at once
    const Expr *found[MAX_LANES_READ]; int n;           // loads of all lanes
} Look;

static bool is_read_wide(DType d) { return d == DT_F32 || d == DT_F16 || d == DT_BF16 || dtype_is_byte(d); }

// Is axis i of an expression the one of the lanes? A product's indices have numbers as well, which go with the last of
// their digits (plan.h).
static bool is_of_lanes(const Look *l, int i) {
    const Kernel *k = l->p->kernel;
    return i == l->axis || (k->kind == KERNEL_PRODUCT && i == k->axes.n + l->axis);
}

static bool walks_lanes(const Look *l, const Expr *e) {
    return e->axes_used >> l->axis & 1
        || (l->p->kernel->kind == KERNEL_PRODUCT && e->axes_used >> (l->p->kernel->axes.n + l->axis) & 1);
}

// Does this index walk memory along the axis, from whole vectors on?
static bool lies_in_order(const Look *l, Value *v, const Expr *index, bool whole) {
    const Kernel *k = l->p->kernel;
    const int64_t bytes = l->lanes * (int64_t)dtype_size(layout_element(l->p->layout, v));
    const int n = k->kind == KERNEL_PRODUCT ? 2 * k->axes.n : k->axes.n;
    int64_t coef[64], c0, step = 0;
    if (!expr_affine(index, n, coef, &c0)) return false;
    for (int i = 0; i < n; i++)
        if (is_of_lanes(l, i)) step += coef[i];
        else if (whole && coef[i] % l->lanes) return false;
    if (step != 1) return false;
    return !whole || (c0 % l->lanes == 0 && layout_region(l->p->layout, v).at % bytes == 0);
}

// What else depends on the axis is read by each lane alone, where that is neighbours too.
static void look(Look *l, const Expr *e) {
    if (!e || !l->ok || l->seen[e->id]) return;
    l->seen[e->id] = true;
    if (e->op == E_Reduce) l->ok = false;
    if (e->op == E_Load && walks_lanes(l, e->a[0])) {
        const DType d = layout_element(l->p->layout, e->value);
        const bool fits = is_read_wide(d) && (l->lanes == 4 || dtype_size(d) == 2);
        const bool whole = !e->a[1] || (l->guarded && !walks_lanes(l, e->a[1]) && (!e->a[2] || e->a[2]->op == E_Const));
        if (whole && fits && l->n < MAX_LANES_READ && lies_in_order(l, e->value, e->a[0], true))
            l->found[l->n++] = e;
        else l->ok = lies_in_order(l, e->value, e->a[0], false) && (l->lanes == 4 || dtype_size(d) == 2);
    }
    for (int i = 0; i < 3; i++) look(l, e->a[i]);
}

// Of values that are read in two places `four` knows neither: those that are read in one, and their number.
static int take_single(const Look *l, const Expr **out) {
    int n = 0;
    for (int i = 0; i < l->n; i++) {
        int times = 0;
        for (int j = 0; j < l->n; j++) times += l->found[j]->value == l->found[i]->value;
        if (times == 1) out[n++] = l->found[i];
    }
    return n;
}

static bool can(Look *l) {
    const Kernel *k = l->p->kernel;
    Arena *a = l->p->arena;
    l->ok = true;
    l->n = 0;
    l->seen = NEW_ARRAY(a, bool, expr_count(k->exprs) + 1);
    for (int i = 0; i < k->stores.n && l->ok; i++) {
        const Store *s = &k->stores.at[i];
        const DType d = layout_element(l->p->layout, s->value);
        const DType of = s->value->type.dtype;
        l->ok = !s->guard && s->op == RED_NONE && (of == DT_F32 || dtype_is_byte(d))
            && (d == DT_F32 || dtype_is_byte(d) ? l->lanes == 4 : d == DT_F16 || d == DT_BF16)
            && lies_in_order(l, s->value, s->index, true);
        look(l, s->expr);
        for (int j = 0; j < i; j++) l->ok = l->ok && k->stores.at[j].value != s->value;
    }
    return l->ok;
}

bool glsl_is_map(const Kernel *k) {
    for (int i = 0; i < k->axes.n; i++)
        if (k->axes.at[i].reduce) return false;
    return k->loop.team.size == 1 && k->loop.spread == k->n_parallel && k->axes.n == k->n_parallel && !k->sizes.n
        && k->stores.n > 0 && k->stores.n <= MOST_STORES;
}

static Lanes lanes_of(const Look *l) {
    Printing *p = (Printing *)(uintptr_t)l->p;
    Lanes out = { .n = l->lanes, .axis = l->axis };
    out.loads = take_single(l, out.load);
    for (int i = 0; i < out.loads; i++) p->four[i] = out.load[i]->value;
    return out;
}

Lanes glsl_lanes(Printing *p) {
    const Kernel *k = p->kernel;
    Look l = { .p = p, .axis = k->axes.n - 1 };
    int64_t points = 1;
    while (l.axis >= 0 && k->axes.at[l.axis].extent == 1) l.axis--;
    for (int i = 0; i < k->axes.n; i++) points *= k->axes.at[i].extent;
    for (l.lanes = 8; l.axis >= 0 && glsl_is_map(k) && l.lanes >= 4; l.lanes /= 2) {
        if (k->axes.at[l.axis].extent % l.lanes || points / l.lanes < LEAST_THREADS || !can(&l)) continue;
        return lanes_of(&l);
    }
    return (Lanes){ .n = 1 };
}

Lanes glsl_lanes_along(Printing *p, int axis) {
    Look l = { .p = p, .axis = axis, .lanes = 4 };
    const bool whole = axis >= 0 && p->kernel->axes.at[axis].extent % l.lanes == 0;
    return whole && can(&l) ? lanes_of(&l) : (Lanes){ .n = 1 };
}

// Of a sum over windows: what its term reads is read by all lanes at once.
Lanes glsl_lanes_of_term(Printing *p, int axis, int lanes, const Expr *term) {
    Look l = { .p = p, .axis = axis, .lanes = lanes, .ok = true, .guarded = true };
    l.seen = NEW_ARRAY(p->arena, bool, expr_count(p->kernel->exprs) + 1);
    look(&l, term);
    const Lanes out = l.ok && l.n ? lanes_of(&l) : (Lanes){ .n = 1 };
    return out.loads == l.n ? out : (Lanes){ .n = 1 };
}

// What is stored of such sums, which `sums` has.
Lanes glsl_lanes_of_sums(Printing *p, int axis, int lanes) {
    Look l = { .p = p, .axis = axis, .lanes = lanes };
    if (!can(&l)) return (Lanes){ .n = 1 };
    Lanes out = lanes_of(&l);
    out.sums = true;
    return out;
}

// ---------------------------------------------------------------- the text
static void keep_whole(void *ctx, Text *out, const Store *s, const char *index, const char *value) {
    const Printing *p = ctx;
    (void)s;
    (void)index;
    text_printf(out, "w%d = %s;", p->lane_at, value);
}

static void keep_lane(void *ctx, Text *out, const Store *s, const char *index, const char *value) {
    const Printing *p = ctx;
    int i = 0;
    (void)index;
    while (p->kernel->stores.at[i].value != s->value) i++;
    text_printf(out, "r%d[lane] = %s;", i, value);
}

static const char *load_whole(void *ctx, Value *v, const char *index) {
    Printing *p = ctx;
    return glsl_elements(p, v, glsl_wide_of(layout_element(p->layout, v), p->lanes), p->lanes, index);
}

static const char *load_whole_if(void *ctx, Value *v, const char *index, const char *guard, const char *otherwise) {
    Printing *p = ctx;
    (void)otherwise;                                    // which it is already
    return arena_printf(p->arena, "%s ? %s : w%d", guard, load_whole(ctx, v, index), p->lane_at);
}

// The lanes of a store as what its view holds.
static void store_whole(void *ctx, Text *out, const Store *s, const char *index, const char *value) {
    Printing *p = ctx;
    const DType d = layout_element(p->layout, s->value);
    const Wide wide = glsl_wide_of(d, p->lanes);
    int at = 0;
    (void)value;
    while (p->kernel->stores.at[at].value != s->value) at++;
    text_printf(out, "%s = %s(", glsl_elements(p, s->value, wide, p->lanes, index), glsl_wide_type(d, p->lanes));
    p->wide_written[layout_binding(p->layout, s->value)][wide] = true;
    p->written[layout_binding(p->layout, s->value)] = true;
    for (int i = 0; i < p->lanes; i++) {
        const char *lane = arena_printf(p->arena, "r%d[%d]", at, i);
        const char *next = i + 1 == p->lanes ? ");" : dtype_is_byte(d) ? " | " : d == DT_F32 || i % 2 ? ", " : " | ";
        if (d == DT_F32) text_printf(out, "%s%s", lane, next);
        else if (dtype_is_byte(d)) text_printf(out, "(uint(%s) & 255u) << %d%s", lane, 8 * i, next);
        else text_printf(out, i % 2 ? "%s << 16%s" : "%s%s", glsl_bits_text(p, d, lane), next);
    }
}

void glsl_print_nest(Printing *p, Text *out, const Dialect *d, const Store *stores, int n, const char *place) {
    Kernel *k = arena_copy(p->arena, p->kernel, sizeof *p->kernel);
    k->stores.at = NULL;
    k->stores.n = k->stores.cap = 0;
    for (int i = 0; i < n; i++) VEC_PUSH(p->arena, k->stores, stores[i]);
    text_printf(out, "        const int %s;\n", place);
    loops_print(p->arena, out, k, d, k->n_parallel, 2);
}

// The nest where the lanes' axis is `at`.
static void print_nest(Printing *p, const Lanes *l, Text *out, const Dialect *d, const Store *stores, int n,
    const char *at) {
    if (p->kernel->kind == KERNEL_PRODUCT) glsl_product_nest(p, out, d, stores, n, at);
    else glsl_print_nest(p, out, d, stores, n, arena_printf(p->arena, "i%d = %s", l->axis, at));
}

static const char *whole_type(const Printing *p, const Lanes *l, int i) {
    return glsl_wide_type(layout_element(p->layout, l->load[i]->value), l->n);
}

// w0, w1, ...: what is read of values that have several elements together, from `first` on.
void glsl_print_whole(Printing *p, const Lanes *l, Text *out, const char *const *otherwise) {
    const Kernel *k = p->kernel;
    Dialect d = glsl_dialect(p);
    p->lanes = l->n;
    d.load = load_whole;
    d.load_if = load_whole_if;
    d.store = keep_whole;
    for (p->lane_at = 0; p->lane_at < l->loads; p->lane_at++) {
        const Expr *e = l->load[p->lane_at];
        const Store s = { k->stores.at[0].value, expr_index(k->exprs, 0), NULL, (Expr *)(uintptr_t)e, RED_NONE };
        text_printf(out, "    %s w%d%s%s;\n    {\n", whole_type(p, l, p->lane_at), p->lane_at, otherwise ? " = " : "",
            otherwise ? otherwise[p->lane_at] : "");
        print_nest(p, l, out, &d, &s, 1, "first");
        text_printf(out, "    }\n");
    }
}

void glsl_print_lanes(Printing *p, const Lanes *l, Text *out) {
    const Kernel *k = p->kernel;
    Arena *a = p->arena;
    Expr *none = expr_index(k->exprs, 0);
    Dialect d = glsl_dialect(p);
    if (k->kind != KERNEL_LOOP || l->sums) {}           // a parameter, or known
    else if (k->axes.at[l->axis].extent == l->n) text_printf(out, "    const int first = 0;\n");
    else text_printf(out, "    const int first = i%d * %d;\n", l->axis, l->n);
    p->lanes = l->n;
    glsl_print_whole(p, l, out, NULL);
    for (int i = 0; i < k->stores.n; i++)
        text_printf(out, "    %s r%d[%d];\n", d.type(k->stores.at[i].value->type.dtype), i, l->n);
    d.load = glsl_load_lane;
    d.store = keep_lane;
    p->n_four = l->loads;
    text_printf(out, "    [[unroll]] for (int lane = 0; lane < %d; lane++) {\n", l->n);
    if (k->kind != KERNEL_LOOP || l->sums) text_printf(out, "        const %s acc = sums[lane];\n", glsl_sum(k));
    print_nest(p, l, out, &d, k->stores.at, k->stores.n, "first + lane");
    text_printf(out, "    }\n    {\n");
    d.store = store_whole;
    Store *stores = arena_copy(a, k->stores.at, sizeof *stores * (size_t)k->stores.n);
    for (int i = 0; i < k->stores.n; i++) stores[i].expr = none;
    print_nest(p, l, out, &d, stores, k->stores.n, "first");
    text_printf(out, "    }\n");
}
