// SPDX-License-Identifier: MIT OR Apache-2.0
// A loop kernel as a GLSL compute shader.
//
// In: a kernel and where its values lie. Out: the shader's text and its dispatch. The outer parallel axes (those that
// no hoisted reduction would repeat) are shared out among invocations, one point each; loops.c prints the rest of the
// nest in the dialect below. Each buffer is seen through one view per element type (a_f32, a_u8, ... of the arena,
// w_f32, ... of the weights); push constants say where values begin, so that layers of one form share a module.
//
// GLSL lets a compiler contract a*b + c and evaluate both sides of ?:. Temporaries are `precise` (unless
// --fast-math), sums of products say fma themselves, and a guarded load is a function with an `if`, so an address
// outside is never touched. Teams (schedule/gpu/tile.c) put the parts of their reductions together in shared memory;
// then no thread may leave early, and those beyond the last point work on it and store nothing.
#include "glsl.h"

#include "ops/custom.h"
#include "schedule/gpu/blocks.h"

#include <string.h>

// Threads of a workgroup; 128 is what every device has, and those that have many points have 256 (blocks.c). A card
// begins about one workgroup in a nanosecond.
enum { LOCAL_SIZE = 64, TEAM_LOCAL_SIZE = 128, LARGE_LOCAL_SIZE = 256, MANY_POINTS = 1 << 19 };

// ---------------------------------------------------------------- elements in memory
// The dtype whose plain array an element lies in: GLSL's type of it, and what the view's name says.
static DType storage(DType d) {
    if (d == DT_BOOL || d == DT_U4 || d == DT_U2) return DT_U8;
    if (d == DT_I4 || d == DT_I2) return DT_I8;
    return d == DT_F16 || d == DT_BF16 ? DT_U16 : d;
}

static const char *storage_glsl(DType d) {
    switch (storage(d)) {
    case DT_U8: return "uint8_t";
    case DT_I8: return "int8_t";
    case DT_U16: return "uint16_t";
    case DT_I16: return "int16_t";
    default: return spell_glsl.type(d);
    }
}

static const char buffer_letters[BINDINGS] = { 'a', 'w', 'p', 's' };

static const char *view_name(Arena *a, int binding, DType d) {
    return arena_printf(a, "%c_%s", buffer_letters[binding], dtype_name(storage(d)));
}

const char *glsl_load_text(Arena *a, DType d, const char *element) {
    if (d == DT_BOOL) return arena_printf(a, "(uint(%s) != 0u)", element);
    if (d == DT_F16 || d == DT_BF16) return arena_printf(a, "burn_%s_to_f32(uint(%s))", dtype_name(d), element);
    return dtype_size(d) >= 4 ? element : arena_printf(a, "%s(%s)", spell_glsl.type(d), element);
}

// In training gradients that are too large for f16 are to be seen.
const char *glsl_bits_text(const Printing *p, DType d, const char *value) {
    return arena_printf(p->arena, "burn_%s_%s%s(%s)", p->converts && d == DT_F16 ? "convert" : "f32_to",
        d == DT_F16 && !p->options->train ? "near_" : "", dtype_name(d), value);
}

// A value of type `of` as an element of dtype d.
static const char *store_text(const Printing *p, DType of, DType d, const char *value) {
    Arena *a = p->arena;
    if (d == DT_F16 && of != d) return arena_printf(a, "uint16_t(%s)", glsl_bits_text(p, d, value));
    if (d == DT_BOOL) return arena_printf(a, "uint8_t(%s ? 1u : 0u)", value);
    if (d == DT_F16 || d == DT_BF16) return arena_printf(a, "uint16_t(burn_f32_to_%s(%s))", dtype_name(d), value);
    return dtype_size(d) >= 4 ? value : arena_printf(a, "%s(%s)", storage_glsl(d), value);
}

// Of v in what the kernel sees of its buffer.
static uint32_t first_element(const Printing *p, Value *v) {
    const Layout *l = p->layout;
    const Region r = layout_region(l, v);
    const int64_t at = r.is_weight ? r.at - p->weights_from : r.at, size = (int64_t)dtype_size(layout_element(l, v));
    if (at % size) bug("%%%d lies at %lld, no multiple of its element", v->id, (long long)at);
    return (uint32_t)(at / size);
}

// The push constants, before anything is spelled: the order in which a C compiler evaluates arguments decides nothing.
static void place_values(Printing *p) {
    const Kernel *k = p->kernel;
    const int most = MAX_PUSH - (int)COUNT(p->more) - (k->sizes.n ? 1 + k->sizes.n : 0);
    for (int i = 0; i < k->writes.n + k->reads.n && p->placed.n < most; i++) {
        Value *v = i < k->writes.n ? k->writes.at[i] : k->reads.at[i - k->writes.n];
        VEC_PUSH(p->arena, p->placed, v);
    }
}

// The push constant of v; what found no room among them is a number.
const char *glsl_origin(const Printing *p, Value *v) {
    for (int i = 0; i < p->placed.n; i++)
        if (p->placed.at[i] == v) return arena_printf(p->arena, "at%d", i);
    return number_text(p->arena, first_element(p, v));
}

// What a view of plain elements is an array of. Of a program with control on the host a kernel sees 4 GiB, and no int
// counts so many bytes: there they lie in pieces, whose numbers are ints.
enum { PIECE_SHIFT = 16 };
static bool in_pieces(const Printing *p, DType d) { return p->layout->moved && dtype_size(d) == 1; }

static const char *view_element(const Printing *p, DType d, const char *view, const char *at) {
    if (!in_pieces(p, d)) return arena_printf(p->arena, "%s[%s]", view, at);
    return arena_printf(p->arena, "%s[uint(%s) >> %d][uint(%s) & %uu]", view, at, PIECE_SHIFT, at,
        (1u << PIECE_SHIFT) - 1);
}

// What a kernel that is told where v begins indexes: the view's name.
static const char *view_of(Printing *p, const Value *v, bool written) {
    const DType d = layout_element(p->layout, v);
    const int binding = layout_binding(p->layout, v);
    p->viewed[binding][d] = true;
    if (written) p->written[binding] = true;
    return view_name(p->arena, binding, d);
}

const char *glsl_element(Printing *p, Value *v, const char *index, bool written) {
    const char *view = view_of(p, v, written);
    return view_element(p, layout_element(p->layout, v), view,
        arena_printf(p->arena, "%s + %s", glsl_origin(p, v), index));
}

static const struct { const char *name, *type; } wide[] = {
    [WIDE_F32X4] = { "f32x4", "vec4" }, [WIDE_U16X4] = { "u16x4", "uvec2" }, [WIDE_U16X8] = { "u16x8", "uvec4" },
    [WIDE_U8X4] = { "u8x4", "uint" }, [WIDE_U8X2] = { "u8x2", "uint16_t" },
    [WIDE_U8X16] = { "u8x16", "uvec4" }
};

const char *glsl_wide(Printing *p, Value *v, Wide w) {
    const int binding = layout_binding(p->layout, v);
    p->wide[binding][w] = true;
    return arena_printf(p->arena, "%c_%s", buffer_letters[binding], wide[w].name);
}

const char *glsl_elements(Printing *p, Value *v, Wide w, int n, const char *index) {
    return arena_printf(p->arena, in_pieces(p, layout_element(p->layout, v)) ? "%s[uint(%s + %s) / %du]" :
        "%s[(%s + %s) / %d]", glsl_wide(p, v, w), glsl_origin(p, v), index, n);
}

// ---------------------------------------------------------------- the dialect of the loop printer
static const char *glsl_load(void *ctx, Value *v, const char *index) {
    Printing *p = ctx;
    return glsl_load_text(p->arena, layout_element(p->layout, v), glsl_element(p, v, index, false));
}

static const char *glsl_load_if(void *ctx, Value *v, const char *index, const char *guard, const char *otherwise) {
    Printing *p = ctx;
    const DType d = layout_element(p->layout, v);
    const char *view = view_of(p, v, false);
    p->guarded[layout_binding(p->layout, v)][d] = true;
    if (!otherwise) otherwise = spell_glsl.zero(v->type.dtype);
    return arena_printf(p->arena, "%c_%s_if(%s, %s + %s, %s)", view[0], dtype_name(d), guard, glsl_origin(p, v),
        index, otherwise);
}

static void glsl_store(void *ctx, Text *out, const Store *s, const char *index, const char *value) {
    Printing *p = ctx;
    const DType d = s->value->type.dtype, stored = layout_element(p->layout, s->value);
    const char *at = glsl_element(p, s->value, index, true);
    if (s->op != RED_NONE) {
        Text t;
        text_init(&t, p->arena);
        spell_step(&spell_glsl, &t, s->op, d, glsl_load_text(p->arena, stored, at), value);
        value = t.at;
    }
    bool strict = dtype_is_float(d) && !p->options->fast_math && strpbrk(value, "+-*");
    if (strict)
        text_printf(out, "{ precise %s v = %s; %s = %s; }", spell_glsl.type(d), value, at,
            store_text(p, d, stored, "v"));
    else text_printf(out, "%s = %s;", at, store_text(p, d, stored, value));
}

// An element of the team's memory: LOCAL elements a slot, in the order of the threads.
static const char *glsl_part(void *ctx, DType d, int slot, const char *rank) {
    Printing *p = ctx;
    if (slot >= p->parts[d]) p->parts[d] = slot + 1;
    const char *base = arena_printf(p->arena, "part_%s[%d + ", dtype_name(d), slot * TEAM_LOCAL_SIZE);
    if (!rank) return arena_printf(p->arena, "%sint(gl_LocalInvocationIndex)]", base);
    if (p->team.by_point)
        return arena_printf(p->arena, "%s%s * %d + member]", base, rank, TEAM_LOCAL_SIZE / p->team.size);
    return arena_printf(p->arena, "%smember * %d + %s]", base, p->team.size, rank);
}

static const char *strict_type(DType d) {
    if (!dtype_is_float(d)) return d == DT_INDEX ? "int" : spell_glsl.type(d);
    return d == DT_F64 ? "precise double" : "precise float";
}

static const char *relaxed_type(DType d) { return d == DT_INDEX ? "int" : spell_glsl.type(d); }

// ---------------------------------------------------------------- what GLSL does not have
static const Loc *kernel_loc(const Kernel *k) {
    return k->anchor ? k->anchor->loc : k->nodes.n ? k->nodes.at[k->nodes.n - 1]->loc : NULL;
}

static const char *kernel_op(const Kernel *k) {
    const Node *n = k->anchor ? k->anchor : k->nodes.n ? k->nodes.at[k->nodes.n - 1] : NULL;
    return n ? op_table[n->op].name : "copy";
}

bool glsl_has_type(DType d) {
    switch (d) {
    case DT_F8E4M3FN:
    case DT_F8E4M3FNUZ:
    case DT_F8E5M2:
    case DT_F8E5M2FNUZ:
    case DT_F4E2M1:
    case DT_F6E2M3:
    case DT_F6E3M2:
    case DT_F8E8M0: return false;
    case DT_STRING: case DT_C64: case DT_C128: return false;
    default: return true;
    }
}

// Doubles have arithmetic, comparisons and rounding; the rest exists for floats only.
static bool op_has_doubles(EOp op) { return (op < E_Exp || op > E_Softplus || op == E_Sqrt) && op != E_Pow; }

typedef struct Check { const Kernel *kernel; bool *seen; bool ok, quiet; } Check;

static void check_expr(Check *c, const Expr *e) {
    if (!e || !c->ok || c->seen[e->id]) return;
    c->seen[e->id] = true;
    const char *why = NULL;
    if (!glsl_has_type(e->dtype)) why = "elements";
    else if (e->dtype == DT_F64 && !op_has_doubles(e->op)) why = "functions";
    if (why && c->quiet) c->ok = false;
    else if (why) {
        diag_error(kernel_loc(c->kernel), "%s: GPU kernels have no %s %s; use --target generic", kernel_op(c->kernel),
            dtype_name(e->dtype), why);
        c->ok = false;
    }
    for (int i = 0; i < 3; i++) check_expr(c, e->a[i]);
}

static bool indices_fit(const Layout *l, const Kernel *k) {             // they are ints
    const int64_t weights = l->n_windows ? l->windows[layout_window(l, k)].bytes : l->weights_bytes,
                  most = l->arena_bytes > weights ? l->arena_bytes : weights;
    for (int i = 0; i < k->reads.n + k->writes.n; i++) {
        Value *v = i < k->reads.n ? k->reads.at[i] : k->writes.at[i - k->reads.n];
        int64_t bytes = (int64_t)dtype_size(layout_element(l, v));
        if (gpu_calls(k) && bytes > (int64_t)sizeof(uint32_t)) bytes = sizeof(uint32_t);    // of scratch memory
        const int64_t reach = l->moved ? plan_value(l->plan, v).buffer->bytes : most;
        if (reach / bytes <= INT32_MAX) continue;
        diag_error_as(EXIT_LIMIT, kernel_loc(k),
            "%s: a GPU kernel reaches 2^31 elements, the buffers have %lld bytes; use --target generic", kernel_op(k),
            (long long)reach);
        return false;
    }
    return true;
}

static bool check_exprs(Arena *a, const Kernel *k, bool quiet) {
    Check c = { k, NEW_ARRAY(a, bool, expr_count(k->exprs) + 1), true, quiet };
    for (int i = 0; i < k->stores.n; i++) {
        const Store *s = &k->stores.at[i];
        check_expr(&c, s->expr);
        check_expr(&c, s->index);
        check_expr(&c, s->guard);
        if (c.ok && !glsl_has_type(s->value->type.dtype)) {
            if (!quiet)
                diag_error(kernel_loc(k), "%s: GPU kernels have no %s elements; use --target generic", kernel_op(k),
                    dtype_name(s->value->type.dtype));
            c.ok = false;
        }
    }
    if (k->kind == KERNEL_ATTENTION) {
        check_expr(&c, k->attention.score);
        check_expr(&c, k->attention.first);
        check_expr(&c, k->attention.last);
    }
    return c.ok;
}

static bool is_own(const Kernel *k) { return k->kind == KERNEL_CALL && k->anchor->op == OP_Custom; }

static bool has_shader(const Kernel *k) {
    return k->kind == KERNEL_LOOP || k->kind == KERNEL_GEMM || k->kind == KERNEL_PRODUCT || k->kind == KERNEL_ATTENTION;
}

bool glsl_can(Arena *a, const Kernel *k) {
    return is_own(k) || gpu_calls(k) || (has_shader(k) && check_exprs(a, k, true));
}

// ---------------------------------------------------------------- the shader around the nest
static void print_views(Printing *p, Text *out) {
    bool done[BINDINGS][DT_COUNT] = { { false } };
    for (int b = 0; b < BINDINGS; b++)
        for (int d = 0; d < DT_COUNT; d++) {
            DType s = storage((DType)d);
            if (!p->viewed[b][d] || done[b][s]) continue;
            done[b][s] = true;
            const char *name = view_name(p->arena, b, s);
            text_printf(out, "layout(set = 0, binding = %d, std430) %sbuffer View_%s { %s %s[]%s; };\n", b,
                !p->written[b] ? "readonly " : p->coherent ? "coherent " : "", name, storage_glsl(s), name,
                in_pieces(p, s) ? arena_printf(p->arena, "[%u]", 1u << PIECE_SHIFT) : "");
        }
    for (int b = 0; b < BINDINGS; b++)
        for (int i = 0; i < WIDE_COUNT; i++)
            if (p->wide[b][i])
                text_printf(out, "layout(set = 0, binding = %d, std430) %sbuffer View_%c_%s { %s %c_%s[]; };\n", b,
                    p->wide_written[b][i] ? "" : "readonly ", buffer_letters[b], wide[i].name, wide[i].type,
                    buffer_letters[b], wide[i].name);
}

static void print_extensions(const Printing *p, Text *out, const char *shader) {
    bool bytes = false, halves = false;
    for (int b = 0; b < BINDINGS; b++) {
        halves = halves || p->wide[b][WIDE_U8X2];
        for (int d = 0; d < DT_COUNT; d++) {
            bytes = bytes || (p->viewed[b][d] && dtype_size((DType)d) == 1);
            halves = halves || (p->viewed[b][d] && dtype_size((DType)d) == 2);
        }
    }
    if (bytes) text_printf(out, "#extension GL_EXT_shader_8bit_storage : require\n");
    if (halves) text_printf(out, "#extension GL_EXT_shader_16bit_storage : require\n");
    if (strstr(shader, "int64_t"))
        text_printf(out, "#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require\n");
}

static void print_guarded(Printing *p, Text *out) {
    for (int b = 0; b < BINDINGS; b++)
        for (int d = 0; d < DT_COUNT; d++) {
            if (!p->guarded[b][d]) continue;
            const char *type = spell_glsl.type((DType)d), *view = view_name(p->arena, b, (DType)d);
            text_printf(out,
                "%s %c_%s_if(bool guard, int i, %s otherwise) {\n"
                "    %s x = otherwise;\n    if (guard) x = %s;\n    return x;\n}\n",
                type, view[0], dtype_name((DType)d), type, type,
                glsl_load_text(p->arena, (DType)d, view_element(p, (DType)d, view, "i")));
        }
}

// point -> i0, i1, ...: the last axis varies fastest, so that neighbours read neighbours.
void glsl_axes(const Printing *p, Text *out, int n) {
    const Kernel *k = p->kernel;
    int first = 0;
    while (first < n && k->axes.at[first].size == 1) first++;
    for (int i = n - 1; i >= first; i--) {
        const Dim size = k->axes.at[i].size;
        const char *extent = arena_printf(p->arena, dim_is_const(size) ? "%su" : "uint(%s)",
            spell_size(p->arena, p->layout->plan->graph, size));
        if (size == 1) continue;
        if (i == first) {
            text_printf(out, "    const int i%d = int(point);\n", i);
            continue;
        }
        text_printf(out, "    const int i%d = int(point %% %s);\n    point /= %s;\n", i, extent, extent);
    }
}

static int64_t points_of(const Kernel *k, int outer) {
    int64_t points = 1;
    for (int i = 0; i < outer; i++)
        if (__builtin_mul_overflow(points, k->axes.at[i].extent, &points)) points = INT64_MAX;
    return points;
}

bool glsl_choose_groups(const Kernel *k, int64_t points, int team, Shader *s) {
    s->points = points;
    if (s->points > INT32_MAX) {
        diag_error_as(EXIT_LIMIT, kernel_loc(k), "%s: more than 2^31 elements in one GPU kernel; use --target generic",
            kernel_op(k));
        return false;
    }
    int64_t each = team > 1 ? TEAM_LOCAL_SIZE / team : points >= MANY_POINTS ? LARGE_LOCAL_SIZE : LOCAL_SIZE;
    s->each = (int)each;
    int64_t groups = (s->points + each - 1) / each, rows = (groups + MAX_GROUPS - 1) / MAX_GROUPS;
    s->groups[0] = (uint32_t)(rows > 1 ? MAX_GROUPS : groups);
    s->groups[1] = (uint32_t)rows;
    s->groups[2] = 1;
    return true;
}

// Which point, and for a team: which of its members.
void glsl_print_thread(const Printing *p, Text *out, const Shader *s, int outer) {
    int size = p->team.size;
    const char *group = s->groups[1] > 1 ? "(gl_WorkGroupID.x + gl_WorkGroupID.y * 65535u)" : "gl_WorkGroupID.x";
    const char *points = arena_printf(p->arena, p->kernel->sizes.n ? "uint(points)" : "%uu", (unsigned)s->points);
    if (size == 1) {
        text_printf(out, "    uint point = %s * %uu + gl_LocalInvocationIndex;\n    if (point >= %s) return;\n",
            group, (unsigned)s->each, points);
    } else {
        unsigned each = (unsigned)(TEAM_LOCAL_SIZE / size), stride = p->team.by_point ? each : (unsigned)size;
        text_printf(out,
            "    const int rank = int(gl_LocalInvocationIndex %s %uu), member = int(gl_LocalInvocationIndex %s %uu);\n",
            p->team.by_point ? "/" : "%", stride, p->team.by_point ? "%" : "/", stride);
        text_printf(out,
            "    uint point = %s * %uu + uint(member);\n"
            "    const bool live = point < %s;\n    point = min(point, %s - 1u);\n",
            group, each, points, points);
    }
    glsl_axes(p, out, outer);
}

static void print_parts(const Printing *p, Text *out) {
    for (int d = 0; d < DT_COUNT; d++)
        if (p->parts[d])
            text_printf(out, "shared %s part_%s[%d];\n", relaxed_type((DType)d), dtype_name((DType)d),
                p->parts[d] * TEAM_LOCAL_SIZE);
}

// Where the values begin, and what sizes are.
static void print_push(const Printing *p, Text *out) {
    const Kernel *k = p->kernel;
    int n;
    const Symbol *symbols = graph_symbols(graph_root(p->layout->plan->graph), &n);
    const char *next = "layout(push_constant) uniform Places { int ";
    for (int i = 0; i < p->n_more; i++, next = ", ") text_printf(out, "%s%s", next, p->more[i].name);
    for (int i = 0; i < p->placed.n; i++, next = ", ") text_printf(out, "%sat%d", next, i);
    for (int i = 0; i < k->sizes.n; i++, next = ", ")
        text_printf(out, "%s%s%s", next, i ? "" : "points, ", spell_symbol(p->arena, &symbols[k->sizes.at[i]]));
    if (p->number) text_printf(out, "%s%s", next, p->number);
    if (*next == ',') text_printf(out, "; };\n");
}

static void take_push(const Printing *p, Shader *out) {
    for (int i = 0; i < p->n_more; i++) out->push[out->n_push++] = p->more[i].value;
    for (int i = 0; i < p->placed.n; i++) {
        out->placed[out->n_placed++] = p->placed.at[i];
        out->push[out->n_push++] = first_element(p, p->placed.at[i]);
    }
}

void glsl_fill_units(const Printing *p, Text *out, const char *file, int n, const Hole *holes) {
    text_printf(out, "%s\n", template_text("glsl/units.glsl"));
    template_fill(p->arena, out, file, n, holes);
}

void glsl_shader(Printing *p, const char *extensions, const char *shared, const char *body, Shader *out) {
    Text guarded, shader, text;
    text_init(&guarded, p->arena);
    text_init(&shader, p->arena);
    text_init(&text, p->arena);
    text_printf(&guarded, "%s", "");
    print_guarded(p, &guarded);
    print_views(p, &shader);
    print_push(p, &shader);
    print_parts(p, &shader);
    text_printf(&shader, "%s%s\n", p->converts ? GLSL_NEAREST : "", shared);
    spell_helpers(&spell_glsl, &shader, NULL, arena_printf(p->arena, "%s%s", guarded.at, body));
    text_printf(&shader, "%s%s", guarded.at, body);
    text_printf(&text, "#version 450\n%s", extensions);
    print_extensions(p, &text, shader.at);
    text_printf(&text, "%s", shader.at);
    out->glsl = text.at;
    take_push(p, out);
}

// ---------------------------------------------------------------- kernels of the model's own (ops/custom.c)
static bool check_own(const Layout *l, const Kernel *k) {
    for (int i = 0; i < k->call.args.n; i++) {
        DType d = k->call.args.at[i]->type.dtype;
        if (glsl_has_type(d) && dtype_size(d) >= 4) continue;
        diag_error(kernel_loc(k), "kernels in GLSL take elements of 32 or 64 bits, and %s is one of %s", dtype_name(d),
            k->call.args.at[i]->def == k->anchor ? "its results" : "its inputs");
        return false;
    }
    return indices_fit(l, k);
}

// Its sizes and numbers are constants of their names.
static void print_given(const Graph *g, Text *out, const Node *n, const CustomParam *params) {
    const Attr *numbers = node_attr(n, "numbers");
    int count;
    const Dim *sizes = node_ints(n, "sizes", &count);
    for (int i = 0; i < count; i++)
        text_printf(out, "    const int %s = %s;\n", params[i].name, spell_size(out->arena, g, sizes[i]));
    for (int i = 0; numbers && i < numbers->n; i++)
        text_printf(out, "    const float %s = float(%.17g);\n", params[count + i].name, numbers->floats[i]);
}

static bool own_kernel(Arena *a, const Options *o, const Layout *l, const Kernel *k, Shader *out) {
    const Node *n = k->anchor;
    Printing p = { .arena = a, .options = o, .layout = l, .kernel = k, .weights_from = layout_weights_from(l, k),
        .team = { 1, true } };
    CustomParam params[MAX_CUSTOM_PARAMS];
    Operand operands[MAX_CUSTOM_PARAMS];
    Dim points = 1;
    Text body, shader, text;
    custom_points(n, &points);
    custom_params(a, node_string(n, "glsl_params", ""), params);
    out->size = points;
    if (!check_own(l, k) || !glsl_choose_groups(k, dim_upper(l->plan->graph, points), 1, out)) return false;
    if (points == 0) return true;
    place_values(&p);
    text_init(&body, a);
    text_init(&shader, a);
    text_init(&text, a);
    for (int i = 0; i < k->call.args.n; i++) {
        Value *v = k->call.args.at[i];
        operands[i].name = params[i].name;
        operands[i].first = glsl_origin(&p, v);
        operands[i].view = view_of(&p, v, v->def == n);
    }
    text_printf(&body, "void own(const int point) {\n");
    print_given(l->plan->graph, &body, n, params + k->call.args.n);
    text_printf(&body, "#line %lld\n%s\n}\n\nvoid main() {\n", (long long)node_int(n, "glsl_line", 1),
        glsl_custom_text(a, node_string(n, "glsl", ""), k->call.args.n, operands));
    glsl_print_thread(&p, &body, out, 0);
    print_views(&p, &shader);
    print_push(&p, &shader);
    text_printf(&shader, "layout(local_size_x = %d) in;\n\n%s    own(int(point));\n}\n", out->each, body.at);
    text_printf(&text, "#version 450\n");
    print_extensions(&p, &text, shader.at);
    text_printf(&text, "%s", shader.at);
    out->glsl = text.at;
    take_push(&p, out);
    return true;
}

Dialect glsl_dialect(Printing *p) {
    return (Dialect){ .index_type = "int",
        .indent = "    ",
        .constant = "",
        .graph = p->layout->plan->graph,
        .fma = "fma",
        .type = p->options->fast_math ? relaxed_type : strict_type,
        .language = &spell_glsl,
        .load = glsl_load,
        .load_if = glsl_load_if,
        .store = glsl_store,
        .ctx = p };
}

// A thread for each so many neighbours.
static bool lanes_kernel(Printing *p, const Lanes *l, Shader *out) {
    Arena *a = p->arena;
    const Kernel *k = p->kernel;
    Kernel *vectors = arena_copy(a, k, sizeof *k);
    Text body;
    text_init(&body, a);
    vectors->axes.at = arena_copy(a, k->axes.at, sizeof *k->axes.at * (size_t)k->axes.n);
    vectors->axes.at[l->axis].extent = vectors->axes.at[l->axis].size = k->axes.at[l->axis].extent / l->n;
    if (!glsl_choose_groups(vectors, points_of(vectors, k->n_parallel), 1, out)) return false;
    text_printf(&body, "void main() {\n");
    p->kernel = vectors;
    glsl_print_thread(p, &body, out, k->n_parallel);
    p->kernel = k;
    glsl_print_lanes(p, l, &body);
    text_printf(&body, "}\n");
    glsl_shader(p, "#extension GL_EXT_control_flow_attributes : require\n",
        arena_printf(a, "layout(local_size_x = %d) in;\n", out->each), body.at, out);
    return true;
}

static bool loop_kernel(Printing *p, Shader *out) {
    Arena *a = p->arena;
    const Kernel *k = p->kernel;
    const int outer = k->loop.spread;
    Text nest, body;
    p->team = k->loop.team;
    const Lanes lanes = glsl_lanes(p);
    if (lanes.n > 1) return lanes_kernel(p, &lanes, out);
    if (glsl_tiles(p, out)) return true;
    if (!glsl_choose_groups(k, points_of(k, outer), p->team.size, out)) return false;
    if (out->points == 0) return true;
    out->size = 1;
    for (int i = 0; i < outer && k->sizes.n; i++)
        out->size = dim_mul(graph_root(p->layout->plan->graph), out->size, k->axes.at[i].size);
    text_init(&nest, a);
    text_init(&body, a);
    Dialect d = glsl_dialect(p);
    d.team = p->team.size;
    d.barrier = "barrier();";
    d.part = glsl_part;
    if (p->team.size > 1) d.store_if = outer == k->n_parallel ? "live && rank == 0" : "live";
    loops_print(a, &nest, k, &d, outer, 1);
    text_printf(&body, "void main() {\n");
    glsl_print_thread(p, &body, out, outer);
    text_printf(&body, "%s}\n", nest.at);
    glsl_shader(p, "",
        arena_printf(a, "layout(local_size_x = %d) in;\n", p->team.size > 1 ? TEAM_LOCAL_SIZE : out->each), body.at,
        out);
    return true;
}

bool glsl_kernel(Arena *a, const Options *o, const Layout *l, const Kernel *k, Shader *out) {
    Printing p = { .arena = a, .options = o, .layout = l, .kernel = k, .weights_from = layout_weights_from(l, k) };
    if (is_own(k)) return own_kernel(a, o, l, k, out);
    if (gpu_calls(k)) {
        const int64_t word = layout_scratch(k).at / (int64_t)sizeof(uint32_t);
        if (!indices_fit(l, k)) return false;
        if (k->scratch_bytes) p.more[p.n_more++] = (More){ "scratch_at", (uint32_t)word };
        place_values(&p);
        glsl_sort(&p, out);
        return true;
    }
    if (!has_shader(k)) {
        diag_error(kernel_loc(k), "%s does not run on the GPU; use --target generic", kernel_op(k));
        return false;
    }
    if (!check_exprs(a, k, false) || !indices_fit(l, k)) return false;
    place_values(&p);
    if (k->kind == KERNEL_ATTENTION) return glsl_attention(&p, out);
    if (k->kind == KERNEL_LOOP && k->loop.rows) return glsl_rowwise(&p, out);
    if (k->kind == KERNEL_LOOP && k->loop.windows && glsl_windows(&p, out)) return true;
    if (k->kind == KERNEL_LOOP) return loop_kernel(&p, out);
    Printing other = p;
    Shader **instead = &out->instead;
    if (k->kind == KERNEL_PRODUCT && k->product.bytes) {
        Printing dots = p;
        dots.dots = true;
        glsl_product(&dots, *instead = NEW(a, Shader));
        instead = &(*instead)->instead;
    }
    if (k->units.block) (k->units.pieces ? glsl_pieces : glsl_matrix)(&other, *instead = NEW(a, Shader));
    return k->kind == KERNEL_GEMM ? glsl_gemm(&p, out) : glsl_product(&p, out);
}
