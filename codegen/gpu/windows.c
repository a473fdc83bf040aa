// SPDX-License-Identifier: MIT OR Apache-2.0
// Sums over windows whose channels lie last (schedule/gpu/windows.c): a thread has four or eight neighbours.
//
//     float s[8] = { 0.0, ... };
//     for (int i4 = 0; i4 < 3; i4++) for (int i5 = 0; i5 < 3; i5++) {
//         uvec4 w0 = uvec4(0u);
//         { const int i3 = first; if (inside) w0 = a_u16x8[...]; }      what a term reads of all of them, and then
//         [[unroll]] for (int lane = 0; lane < 8; lane++) { ... s[lane] = fma(x0, x1, s[lane]); }
//     }
//
// and what becomes of the sums as lanes.c has it.
#include "glsl.h"

#include "codegen/loops/loops.h"
#include "ir/expr.h"
#include "codegen/spell/spell.h"

enum { LEAST_THREADS = 1 << 13 };

static Expr *find_reduce(Expr *e) {
    Expr *found = !e || e->op == E_Reduce ? e : NULL;
    for (int i = 0; e && i < 3 && !found; i++) found = find_reduce(e->a[i]);
    return found;
}

static Expr *sum_is_acc(void *ctx, Expr *e) { return e->op == E_Reduce ? expr_acc(ctx, DT_F32) : NULL; }

static void name_term(void *ctx, Text *out, const Store *s, const char *index, const char *value) {
    const Printing *p = ctx;
    text_printf(out, "%s x%s = %s;", glsl_dialect((Printing *)(uintptr_t)p).type(s->expr->dtype), index, value);
}

static const char *lane_of(void *ctx, Value *v, const char *index, const char *guard, const char *otherwise) {
    (void)guard;                                        // all lanes have what is outside already
    (void)otherwise;
    return glsl_load_lane(ctx, v, index);
}

// What stands for this number in all lanes of a vector.
static const char *filled(const Printing *p, DType d, double x, int lanes) {
    if (d == DT_F32) return arena_printf(p->arena, "vec4(%s)", x == 0 ? "0.0" : x < 0 ? "-1.0 / 0.0" : "1.0 / 0.0");
    const unsigned half = (unsigned)small_from_float(d, (float)x, false);
    return arena_printf(p->arena, "%s(%uu)", glsl_wide_type(d, lanes), half | half << 16);
}

// The terms of the lanes at one place of the window.
static void print_terms(Printing *p, const Lanes *l, Text *out, const Expr *reduce) {
    Expr *term = reduce->a[0];
    const bool product = reduce->rop == RED_SUM && term->op == E_Mul;
    const char *otherwise[MAX_LANES_READ];
    Value *stored = p->kernel->stores.at[0].value;
    Dialect d = glsl_dialect(p);
    Store x[2];
    int n = 0;
    for (int i = 0; i < l->loads; i++) {
        const Expr *e = l->load[i];
        otherwise[i] = filled(p, layout_element(p->layout, e->value), e->a[2] ? e->a[2]->c.f : 0, l->n);
    }
    glsl_print_whole(p, l, out, otherwise);
    d.load = glsl_load_lane;
    d.load_if = lane_of;
    d.store = name_term;
    p->n_four = l->loads;
    x[n++] = (Store){ .value = stored, .index = expr_index(p->kernel->exprs, 0), .expr = product ? term->a[0] : term };
    if (product) x[n++] = (Store){ .value = stored, .index = expr_index(p->kernel->exprs, 1), .expr = term->a[1] };
    text_printf(out, "    [[unroll]] for (int lane = 0; lane < %d; lane++) {\n", l->n);
    glsl_print_nest(p, out, &d, x, n, arena_printf(p->arena, "i%d = first + lane", l->axis));
    text_printf(out, "        sums[lane] = ");
    if (product) text_printf(out, "fma(x0, x1, sums[lane])");
    else if (reduce->rop == RED_SUM) text_printf(out, "sums[lane] + x0");
    else spell_step(&spell_glsl, out, reduce->rop, DT_F32, "sums[lane]", "x0");
    text_printf(out, ";\n    }\n");
}

static void print_sums(Printing *p, const Lanes *l, Text *out, const Expr *reduce) {
    const Kernel *k = p->kernel;
    const Dialect d = { .language = &spell_glsl };
    const LoopPrinter printer = { .arena = p->arena, .k = k, .d = &d };
    text_printf(out, "    const int first = i%d * %d;\n", l->axis, l->n);
    text_printf(out, "    %sfloat sums[%d];\n    [[unroll]] for (int lane = 0; lane < %d; lane++) sums[lane] = %s;\n",
        p->options->fast_math ? "" : "precise ", l->n, l->n, loops_identity(&printer, reduce));
    for (int i = 0; i < reduce->n_axes; i++) {
        const int axis = reduce->axes[i];
        text_printf(out, "    [[unroll]] for (int i%d = 0; i%d < %lld; i%d++)\n", axis, axis,
            (long long)k->axes.at[axis].extent, axis);
    }
    text_printf(out, "    {\n");
    print_terms(p, l, out, reduce);
    text_printf(out, "    }\n");
}

// The lanes that the kernel can have; 1: none.
static int lanes_of(Printing *p, int axis, const Expr *reduce) {
    int64_t points = 1;
    for (int i = 0; i < p->kernel->n_parallel; i++) points *= p->kernel->axes.at[i].extent;
    for (int lanes = 8; lanes >= 4; lanes /= 2) {
        if (lanes > 4 && points / lanes < LEAST_THREADS) continue;
        if (glsl_lanes_of_term(p, axis, lanes, reduce->a[0]).n > 1 && glsl_lanes_of_sums(p, axis, lanes).n > 1)
            return lanes;
    }
    return 1;
}

bool glsl_windows(Printing *p, Shader *out) {
    Arena *a = p->arena;
    const Kernel *loop = p->kernel;
    Kernel *k = arena_copy(a, loop, sizeof *loop), *vectors = arena_copy(a, loop, sizeof *loop);
    const Expr *reduce = find_reduce(loop->stores.at[0].expr);
    int axis = loop->n_parallel - 1;
    int64_t points = 1;
    Text body;
    text_init(&body, a);
    while (loop->axes.at[axis].extent == 1) axis--;
    k->stores.at = arena_copy(a, loop->stores.at, sizeof *loop->stores.at);
    k->stores.at[0].expr = expr_rebuild(k->exprs, loop->stores.at[0].expr, sum_is_acc, k->exprs);
    p->kernel = k;
    p->team = k->loop.team;
    const int lanes = lanes_of(p, axis, reduce);
    vectors->axes.at = arena_copy(a, k->axes.at, sizeof *k->axes.at * (size_t)k->axes.n);
    vectors->axes.at[axis].extent = vectors->axes.at[axis].size = k->axes.at[axis].extent / lanes;
    for (int i = 0; i < k->n_parallel; i++) points *= vectors->axes.at[i].extent;
    p->kernel = lanes > 1 ? vectors : loop;
    if (lanes == 1 || !glsl_choose_groups(vectors, points, 1, out)) return false;
    text_printf(&body, "void main() {\n");
    glsl_print_thread(p, &body, out, k->n_parallel);
    p->kernel = k;
    Lanes of = glsl_lanes_of_term(p, axis, lanes, reduce->a[0]);
    print_sums(p, &of, &body, reduce);
    of = glsl_lanes_of_sums(p, axis, lanes);
    glsl_print_lanes(p, &of, &body);
    text_printf(&body, "}\n");
    glsl_shader(p, "#extension GL_EXT_control_flow_attributes : require\n",
        arena_printf(a, "layout(local_size_x = %d) in;\n", out->each), body.at, out);
    return true;
}
