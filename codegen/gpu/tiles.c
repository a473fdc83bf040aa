// SPDX-License-Identifier: MIT OR Apache-2.0
// Maps that read a transposed tensor: by tiles.
//
// In: a kernel of maps alone that stores along its last axis q, and reads something that lies along another axis p.
// Out: a shader whose workgroups have a tile of SIDE x SIDE elements each. Its threads read that along p into shared
// memory and, behind a barrier, compute and store along q: both ways neighbours touch neighbours. An element a thread
// would make each of its reads, or of its stores, a transaction of its own.
//
//     shared float tile0[32 * 33];             // a row more, so that columns lie in different banks
//     for n: { const int i1 = first1 + fast, i2 = first2 + slow + n; tile0[(slow + n) * 33 + fast] = a_f32[...]; }
//     barrier();
//     for n: { const int i2 = first2 + fast, i1 = first1 + slow + n; a_f32[...] = tile0[fast * 33 + slow + n] * 2.0; }
#include "glsl.h"

#include "schedule/gpu/blocks.h"

enum { SIDE = 32, STEP = 4, LEAST_EXTENT = 16, LEAST_POINTS = 1 << 14, MOST_TILES = 3 };

typedef struct Tiles {
    const Printing *p;
    int along, across;                                  // q, and p; p -1: not known yet
    bool *seen, ok;
    VEC(const Expr *) loads;                            // all there are
    const Expr *turned[MOST_TILES]; int n;
} Tiles;

static void collect(Tiles *t, const Expr *e) {
    if (!e || t->seen[e->id]) return;
    t->seen[e->id] = true;
    if (e->op == E_Reduce) t->ok = false;
    if (e->op == E_Load) VEC_PUSH(t->p->arena, t->loads, e);
    for (int i = 0; i < 3; i++) collect(t, e->a[i]);
}

static bool is_only_load(const Tiles *t, const Expr *e) {
    int times = 0;
    for (int i = 0; i < t->loads.n; i++) times += t->loads.at[i]->value == e->value;
    return times == 1;
}

// Does it lie along another axis, the one of those found before? The hook for loads knows values, not expressions.
static bool is_turned(Tiles *t, const Expr *e) {
    const Kernel *k = t->p->kernel;
    int64_t coef[64], c0;
    if (e->a[1] || dtype_size(e->dtype) > 4 || !is_only_load(t, e)) return false;
    if (!expr_affine(e->a[0], k->axes.n, coef, &c0) || (uint64_t)coef[t->along] < 2) return false;
    for (int i = 0; i < k->axes.n && t->across < 0; i++)
        if (coef[i] == 1 && k->axes.at[i].extent >= LEAST_EXTENT) t->across = i;
    return t->across >= 0 && coef[t->across] == 1;
}

static bool stores_in_order(const Tiles *t) {
    const Kernel *k = t->p->kernel;
    for (int i = 0; i < k->stores.n; i++) {
        const Store *s = &k->stores.at[i];
        int64_t coef[64], c0;
        if (s->guard || s->op != RED_NONE || !expr_affine(s->index, k->axes.n, coef, &c0) || coef[t->along] != 1)
            return false;
    }
    return true;
}

static bool find(Tiles *t) {
    const Kernel *k = t->p->kernel;
    int64_t points = 1;
    if (!glsl_is_map(k)) return false;
    while (t->along >= 0 && k->axes.at[t->along].extent == 1) t->along--;
    for (int i = 0; i < k->axes.n; i++) points *= k->axes.at[i].extent;
    if (t->along < 0 || k->axes.at[t->along].extent < LEAST_EXTENT || points < LEAST_POINTS || !stores_in_order(t))
        return false;
    for (int i = 0; i < k->stores.n; i++) {
        collect(t, k->stores.at[i].index);
        collect(t, k->stores.at[i].expr);
    }
    for (int i = 0; i < t->loads.n && t->n < MOST_TILES; i++)
        if (is_turned(t, t->loads.at[i])) t->turned[t->n++] = t->loads.at[i];
    return t->ok && t->n;
}

// ---------------------------------------------------------------- the text
static void keep(void *ctx, Text *out, const Store *s, const char *index, const char *value) {
    const Printing *p = ctx;
    (void)s;
    (void)index;
    text_printf(out, "tile%d[(slow + n) * %d + fast] = %s;", p->lane_at, SIDE + 1, value);
}

static const char *load(void *ctx, Value *v, const char *index) {
    Printing *p = ctx;
    for (int i = 0; i < p->n_four; i++)
        if (p->four[i] == v) return arena_printf(p->arena, "tile%d[fast * %d + slow + n]", i, SIDE + 1);
    return glsl_dialect(p).load(ctx, v, index);
}

// For this thread's elements of the tile, those that there are: the stores, where `i` lies along `fast` and `j` not.
static void print_side(Printing *p, Text *out, const Dialect *d, const Store *stores, int n, int i, int j) {
    const Kernel *k = p->kernel;
    const int64_t extent[] = { k->axes.at[i].extent, k->axes.at[j].extent };
    text_printf(out, "    [[unroll]] for (int n = 0; n < %d; n += %d) {\n", SIDE, STEP);
    if (extent[0] % SIDE || extent[1] % SIDE)
        text_printf(out, "        if (first%d + fast >= %lld || first%d + slow + n >= %lld) continue;\n", i,
            (long long)extent[0], j, (long long)extent[1]);
    glsl_print_nest(p, out, d, stores, n, arena_printf(p->arena, "i%d = first%d + fast, i%d = first%d + slow + n", i, i,
        j, j));
    text_printf(out, "    }\n");
}

static void print_tiles(Printing *p, const Tiles *t, Text *out) {
    const Kernel *k = p->kernel;
    Expr *none = expr_index(k->exprs, 0);
    Dialect d = glsl_dialect(p);
    d.store = keep;
    for (p->lane_at = 0; p->lane_at < t->n; p->lane_at++) {
        const Expr *e = t->turned[p->lane_at];
        const Store s = { k->stores.at[0].value, none, NULL, (Expr *)(uintptr_t)e, RED_NONE };
        print_side(p, out, &d, &s, 1, t->across, t->along);
    }
    d = glsl_dialect(p);
    d.load = load;
    for (int i = 0; i < t->n; i++) p->four[i] = t->turned[i]->value;
    p->n_four = t->n;
    text_printf(out, "    barrier();\n");
    print_side(p, out, &d, k->stores.at, k->stores.n, t->along, t->across);
}

// A workgroup for each tile: the axes, of which two count tiles, are digits of its number.
static void print_place(Printing *p, const Tiles *t, Text *out, Shader *s) {
    const Kernel *k = p->kernel;
    Kernel *tiled = arena_copy(p->arena, k, sizeof *k);
    int64_t groups = 1;
    tiled->axes.at = arena_copy(p->arena, k->axes.at, sizeof *k->axes.at * (size_t)k->axes.n);
    for (int i = 0; i < k->axes.n; i++) {
        Axis *axis = &tiled->axes.at[i];
        s->points *= axis->extent;
        if (i == t->along || i == t->across) axis->size = axis->extent = ceil_div(axis->extent, SIDE);
        groups *= axis->extent;
    }
    s->groups[1] = (uint32_t)ceil_div(groups, MAX_GROUPS);
    s->groups[0] = s->groups[1] > 1 ? MAX_GROUPS : (uint32_t)groups;
    text_printf(out, "    uint point = gl_WorkGroupID.x + gl_WorkGroupID.y * %uu;\n", (unsigned)MAX_GROUPS);
    if (s->groups[1] > 1) text_printf(out, "    if (point >= %lldu) return;\n", (long long)groups);
    p->kernel = tiled;
    glsl_axes(p, out, k->axes.n);
    p->kernel = k;
    for (int side = 0; side < 2; side++) {
        const int i = side ? t->across : t->along;
        if (tiled->axes.at[i].extent == 1) text_printf(out, "    const int first%d = 0;\n", i);
        else text_printf(out, "    const int first%d = i%d * %d;\n", i, i, SIDE);
    }
    text_printf(out, "    const int fast = int(gl_LocalInvocationIndex %% %du);\n", SIDE);
    text_printf(out, "    const int slow = int(gl_LocalInvocationIndex / %du);\n", SIDE);
}

bool glsl_tiles(Printing *p, Shader *out) {
    Arena *a = p->arena;
    const Kernel *k = p->kernel;
    Tiles t = { .p = p, .along = k->axes.n - 1, .across = -1, .ok = true,
        .seen = NEW_ARRAY(a, bool, expr_count(k->exprs) + 1) };
    Text body, shared;
    if (!find(&t)) return false;
    text_init(&body, a);
    text_init(&shared, a);
    *out = (Shader){ .points = 1, .each = 1, .groups = { 1, 1, 1 } };
    text_printf(&shared, "layout(local_size_x = %d) in;\n", SIDE * STEP);
    for (int i = 0; i < t.n; i++)
        text_printf(&shared, "shared %s tile%d[%d];\n", spell_glsl.type(t.turned[i]->dtype), i, SIDE * (SIDE + 1));
    text_printf(&body, "void main() {\n");
    print_place(p, &t, &body, out);
    print_tiles(p, &t, &body);
    text_printf(&body, "}\n");
    glsl_shader(p, "#extension GL_EXT_control_flow_attributes : require\n", shared.at, body.at, out);
    return true;
}
