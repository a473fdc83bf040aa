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
// and what becomes of the sums as lanes.c has it. Where the window goes along a row, a thread has a strip of that row's
// results, whose windows share most of what they read: of each of the window's rows, it is read once.
//
//     uvec4 s0[6];                                        of 4 results of 3 terms each
//     [[unroll]] for (int j = 0; j < 6; j++) { const int i5 = j; ... s0[j] = w0; }
//     [[unroll]] for (int i5 = 0; i5 < 3; i5++) { uvec4 w1 = ...; for t, lane: sums[t][lane] += s0[t + i5], w1 }
#include "glsl.h"

#include "codegen/loops/loops.h"
#include "ir/expr.h"
#include "codegen/spell/spell.h"

enum { LEAST_THREADS = 1 << 13, STRIP = 4, MOST_IN_STRIP = 12, STRIP_THREADS = 1 << 15 };

// n results along `axis`, 1: one; the window's axis along which they share what the loads of `walks` (bits) bring, each
// `stride` steps of it from the next.
typedef struct Strip { int n, axis, window; int64_t stride; unsigned walks; } Strip;

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

// ---------------------------------------------------------------- strips
typedef struct Steps { const Kernel *kernel; const Strip *strip; bool *seen, fit; } Steps;

// Does every index in e go as far along the strip as it goes in `stride` steps of the window?
static void look_steps(Steps *s, const Expr *e) {
    int64_t coef[64], c0;
    if (!e || s->seen[e->id] || !(e->axes_used >> s->strip->axis & 1)) return;
    s->seen[e->id] = true;
    if (e->dtype == DT_INDEX && expr_affine(e, s->kernel->axes.n, coef, &c0)) {
        s->fit = s->fit && coef[s->strip->axis] == s->strip->stride * coef[s->strip->window];
        return;
    }
    if (e->op == E_Axis) s->fit = false;
    for (int i = 0; i < 3; i++) look_steps(s, e->a[i]);
}

static bool walks_alike(const Printing *p, const Strip *strip, const Expr *load) {
    Steps s = { p->kernel, strip, NEW_ARRAY(p->arena, bool, expr_count(p->kernel->exprs) + 1), true };
    look_steps(&s, load->a[0]);
    look_steps(&s, load->a[1]);
    return s.fit;
}

// Is it only in these loads that e depends on the strip's axis?
static bool depends_in_loads(const Lanes *l, const Expr *e, int axis) {
    if (!e || !(e->axes_used >> axis & 1)) return true;
    for (int i = 0; i < l->loads; i++)
        if (l->load[i] == e) return true;
    if (e->op == E_Axis || e->op == E_Load) return false;
    return depends_in_loads(l, e->a[0], axis) && depends_in_loads(l, e->a[1], axis)
        && depends_in_loads(l, e->a[2], axis);
}

// The strip that a thread has: along the last axis but that of the lanes.
static Strip strip_of(const Printing *p, const Lanes *l, const Expr *reduce, int64_t points) {
    const Kernel *k = p->kernel;
    const Strip none = { .n = 1 };
    Strip s = { .n = STRIP, .axis = l->axis - 1, .window = reduce->axes[reduce->n_axes - 1] };
    int64_t coef[64], c0;
    bool guarded = true;
    while (s.axis >= 0 && k->axes.at[s.axis].extent == 1) s.axis--;
    if (s.axis < 0 || k->axes.at[s.window].extent < 2 || points / l->n / s.n < STRIP_THREADS) return none;
    for (int i = 0; i < l->loads; i++) {
        const Expr *e = l->load[i];
        if (!((e->a[0]->axes_used | (e->a[1] ? e->a[1]->axes_used : 0)) >> s.axis & 1)) continue;
        if (!expr_affine(e->a[0], k->axes.n, coef, &c0) || coef[s.window] <= 0) return none;
        s.stride = coef[s.axis] / coef[s.window];
        s.walks |= 1u << i;
        guarded = guarded && e->a[1];
        if (s.stride < 1 || s.stride >= k->axes.at[s.window].extent || !walks_alike(p, &s, e)) return none;
    }
    const bool whole = k->axes.at[s.axis].extent % s.n == 0 || guarded;
    if (!s.walks || !whole || (s.n - 1) * s.stride + k->axes.at[s.window].extent > MOST_IN_STRIP) return none;
    return depends_in_loads(l, reduce->a[0], s.axis) ? s : none;
}

// What the strip reads of one row of the window.
static void print_row(Printing *p, const Lanes *l, const Strip *s, Text *out, const char *const *otherwise) {
    const int64_t n = (s->n - 1) * s->stride + p->kernel->axes.at[s->window].extent;
    for (int i = 0; i < l->loads; i++) {
        if (!(s->walks >> i & 1)) continue;
        text_printf(out, "    %s s%d[%lld];\n    [[unroll]] for (int j = 0; j < %lld; j++) {\n    const int i%d = j;\n",
            glsl_wide_type(layout_element(p->layout, l->load[i]->value), l->n), i, (long long)n, (long long)n,
            s->window);
        glsl_print_whole(p, l, out, otherwise, 1u << i);
        text_printf(out, "    s%d[j] = w%d;\n    }\n", i, i);
    }
}

// ---------------------------------------------------------------- sums
// The terms of the lanes at one place of the window; to: what their sums are called.
static void print_lane_terms(Printing *p, const Lanes *l, Text *out, const Expr *reduce, const char *to) {
    Expr *term = reduce->a[0];
    const bool product = reduce->rop == RED_SUM && term->op == E_Mul;
    Value *stored = p->kernel->stores.at[0].value;
    Dialect d = glsl_dialect(p);
    Store x[2];
    int n = 0;
    d.load = glsl_load_lane;
    d.load_if = lane_of;
    d.store = name_term;
    p->n_four = l->loads;
    x[n++] = (Store){ .value = stored, .index = expr_index(p->kernel->exprs, 0), .expr = product ? term->a[0] : term };
    if (product) x[n++] = (Store){ .value = stored, .index = expr_index(p->kernel->exprs, 1), .expr = term->a[1] };
    text_printf(out, "    [[unroll]] for (int lane = 0; lane < %d; lane++) {\n", l->n);
    glsl_print_nest(p, out, &d, x, n, arena_printf(p->arena, "i%d = first + lane", l->axis));
    text_printf(out, "        %s = ", to);
    if (product) text_printf(out, "fma(x0, x1, %s)", to);
    else if (reduce->rop == RED_SUM) text_printf(out, "%s + x0", to);
    else spell_step(&spell_glsl, out, reduce->rop, DT_F32, to, "x0");
    text_printf(out, ";\n    }\n");
}

// The innermost axis of the window: as a loop around its terms, or with a strip behind what the strip reads.
static void print_terms(Printing *p, const Lanes *l, const Strip *s, Text *out, const Expr *reduce) {
    const char *otherwise[MAX_LANES_READ];
    const int axis = reduce->axes[reduce->n_axes - 1];
    for (int i = 0; i < l->loads; i++) {
        const Expr *e = l->load[i];
        otherwise[i] = filled(p, layout_element(p->layout, e->value), e->a[2] ? e->a[2]->c.f : 0, l->n);
    }
    if (s->n > 1) print_row(p, l, s, out, otherwise);
    text_printf(out, "    [[unroll]] for (int i%d = 0; i%d < %lld; i%d++)\n    {\n", axis, axis,
        (long long)p->kernel->axes.at[axis].extent, axis);
    glsl_print_whole(p, l, out, otherwise, ~s->walks);
    if (s->n > 1) text_printf(out, "    [[unroll]] for (int t = 0; t < %d; t++) {\n", s->n);
    for (int i = 0; i < l->loads; i++)
        if (s->walks >> i & 1)
            text_printf(out, "    const %s w%d = s%d[t * %lld + i%d];\n",
                glsl_wide_type(layout_element(p->layout, l->load[i]->value), l->n), i, i, (long long)s->stride, axis);
    print_lane_terms(p, l, out, reduce, s->n > 1 ? "all[t][lane]" : "sums[lane]");
    if (s->n > 1) text_printf(out, "    }\n");
    text_printf(out, "    }\n");
}

static void print_sums(Printing *p, const Lanes *l, const Strip *s, Text *out, const Expr *reduce) {
    const Kernel *k = p->kernel;
    const Dialect d = { .language = &spell_glsl };
    const LoopPrinter printer = { .arena = p->arena, .k = k, .d = &d };
    const char *precise = p->options->fast_math ? "" : "precise ";
    if (s->n > 1)
        text_printf(out, "    %sfloat all[%d][%d];\n    [[unroll]] for (int t = 0; t < %d; t++)\n", precise, s->n, l->n,
            s->n);
    else text_printf(out, "    %sfloat sums[%d];\n", precise, l->n);
    text_printf(out, "    [[unroll]] for (int lane = 0; lane < %d; lane++) %s = %s;\n", l->n,
        s->n > 1 ? "all[t][lane]" : "sums[lane]", loops_identity(&printer, reduce));
    if (s->n > 1) text_printf(out, "    {\n    const int i%d = strip;\n", s->axis);
    for (int i = 0; i + 1 < reduce->n_axes; i++) {
        const int axis = reduce->axes[i];
        text_printf(out, "    [[unroll]] for (int i%d = 0; i%d < %lld; i%d++)\n", axis, axis,
            (long long)k->axes.at[axis].extent, axis);
    }
    text_printf(out, "    {\n");
    print_terms(p, l, s, out, reduce);
    text_printf(out, "    }\n");
    if (s->n > 1) text_printf(out, "    }\n");
}

// What becomes of the sums, one result of the strip after the other.
static void print_results(Printing *p, const Lanes *l, const Strip *s, Text *out) {
    const int64_t extent = p->kernel->axes.at[s->axis].extent;
    if (s->n == 1) {
        glsl_print_lanes(p, l, out);
        return;
    }
    text_printf(out, "    [[unroll]] for (int t = 0; t < %d; t++)\n    ", s->n);
    if (extent % s->n) text_printf(out, "if (strip + t < %lld) ", (long long)extent);
    text_printf(out, "{\n    const int i%d = strip + t;\n    float sums[%d];\n"
        "    [[unroll]] for (int lane = 0; lane < %d; lane++) sums[lane] = all[t][lane];\n", s->axis, l->n, l->n);
    glsl_print_lanes(p, l, out);
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
    int64_t points = 1, elements = 1;
    Text body;
    text_init(&body, a);
    while (loop->axes.at[axis].extent == 1) axis--;
    k->stores.at = arena_copy(a, loop->stores.at, sizeof *loop->stores.at);
    k->stores.at[0].expr = expr_rebuild(k->exprs, loop->stores.at[0].expr, sum_is_acc, k->exprs);
    p->kernel = k;
    p->team = k->loop.team;
    const int lanes = lanes_of(p, axis, reduce);
    Lanes of = lanes > 1 ? glsl_lanes_of_term(p, axis, lanes, reduce->a[0]) : (Lanes){ .n = 1 };
    for (int i = 0; i < k->n_parallel; i++) elements *= k->axes.at[i].extent;
    const Strip strip = lanes > 1 ? strip_of(p, &of, reduce, elements) : (Strip){ .n = 1 };
    vectors->axes.at = arena_copy(a, k->axes.at, sizeof *k->axes.at * (size_t)k->axes.n);
    vectors->axes.at[axis].extent = vectors->axes.at[axis].size = k->axes.at[axis].extent / lanes;
    if (strip.n > 1)
        vectors->axes.at[strip.axis].extent = vectors->axes.at[strip.axis].size =
            ceil_div(k->axes.at[strip.axis].extent, strip.n);
    for (int i = 0; i < k->n_parallel; i++) points *= vectors->axes.at[i].extent;
    p->kernel = lanes > 1 ? vectors : loop;
    if (lanes == 1 || !glsl_choose_groups(vectors, points, 1, out)) return false;
    text_printf(&body, "void main() {\n");
    glsl_print_thread(p, &body, out, k->n_parallel);
    p->kernel = k;
    text_printf(&body, "    const int first = i%d * %d;\n", axis, lanes);
    if (strip.n > 1) text_printf(&body, "    const int strip = i%d * %d;\n", strip.axis, strip.n);
    print_sums(p, &of, &strip, &body, reduce);
    of = glsl_lanes_of_sums(p, axis, lanes);
    print_results(p, &of, &strip, &body);
    text_printf(&body, "}\n");
    glsl_shader(p, "#extension GL_EXT_control_flow_attributes : require\n",
        arena_printf(a, "layout(local_size_x = %d) in;\n", out->each), body.at, out);
    return true;
}
