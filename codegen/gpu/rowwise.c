// SPDX-License-Identifier: MIT OR Apache-2.0
// Reductions along rows as a compute shader: their template (templates/glsl/rowwise.comp), with what an element keeps,
// what each stage adds, shares and joins, and what is stored as functions of a row and a column.
//
// Two forms of it: one in which threads meet in shared memory alone, which runs everywhere, and one with shuffles of
// subgroups, which devices that have them take instead. A norm that a product makes of its left factor's rows has the
// same functions, in the product's template (templates/glsl/rows.comp).
#include "glsl.h"

#include "codegen/loops/loops.h"
#include "schedule/gpu/blocks.h"

#include <string.h>

static const Rowwise *rows_of(const Printing *p) { return p->kernel->loop.rows; }

// ---------------------------------------------------------------- coordinates
static void print_digits(const Printing *p, Text *out, int n, const signed char *axis, const char *of, uint64_t used) {
    int64_t behind = 1;
    for (int i = n - 1; i >= 0; i--) {
        const int64_t extent = p->kernel->axes.at[axis[i]].extent;
        if (extent > 1 && used >> axis[i] & 1) {
            text_printf(out, "    const int i%d = int(uint(%s)", axis[i], of);
            if (behind > 1) text_printf(out, " / %lldu", (long long)behind);
            if (i) text_printf(out, " %% %lldu", (long long)extent);
            text_printf(out, ");\n");
        }
        behind *= extent;
    }
}

static void print_coordinates(const Printing *p, Text *out, uint64_t used) {
    const Rowwise *r = rows_of(p);
    signed char axis[64];
    const int n = p->kernel->loop.spread;
    for (int i = 0; i < n; i++) axis[i] = (signed char)i;
    print_digits(p, out, n, axis, "row", used);
    print_digits(p, out, r->n_columns, r->column, "column", used);
}

// ---------------------------------------------------------------- values of the kernel's own
static const char *load(void *ctx, Value *v, const char *index) {
    Printing *p = ctx;
    const Rowwise *r = rows_of(p);
    for (int i = 0; i < r->n_kept; i++)
        if (r->kept[i].value == v) return arena_printf(p->arena, "kept.k%d", i);
    for (int i = 0; i < r->n_sums; i++)
        if (r->sum[i].result == v) return arena_printf(p->arena, "sums.s%d", i);
    return glsl_dialect(p).load(ctx, v, index);
}

static const char *plain(DType d) { return d == DT_INDEX ? "int" : spell_glsl.type(d); }

static void store_kept(void *ctx, Text *out, const Store *s, const char *index, const char *value) {
    (void)ctx;
    (void)s;
    text_printf(out, "kept.k%s = %s;", index, value);
}

// x0 and x1: what a reduction sees of an element
static void name_term(void *ctx, Text *out, const Store *s, const char *index, const char *value) {
    const Printing *p = ctx;
    text_printf(out, "%s x%s = %s;", glsl_dialect((Printing *)(uintptr_t)p).type(s->expr->dtype), index, value);
}

// Stores in a nest all of whose axes are known.
static void print_stores(Printing *p, Text *out, const Dialect *d, int n, const Store *stores, int depth) {
    Arena *a = p->arena;
    Kernel *k = arena_copy(a, p->kernel, sizeof *p->kernel);
    k->axes.at = NULL;
    k->axes.n = k->axes.cap = 0;
    k->stores.at = NULL;
    k->stores.n = k->stores.cap = 0;
    for (int i = 0; i < p->kernel->axes.n; i++) VEC_PUSH(a, k->axes, ((Axis){ .extent = 2, .size = 2 }));
    for (int i = 0; i < n; i++) VEC_PUSH(a, k->stores, stores[i]);
    k->n_parallel = k->axes.n;
    loops_print(a, out, k, d, k->n_parallel, depth);
}

static Dialect dialect(Printing *p) {
    Dialect d = glsl_dialect(p);
    d.load = load;
    return d;
}

// ---------------------------------------------------------------- what a stage computes
typedef struct Step { const char *name; void (*print)(Printing *p, Text *out, int i); } Step;

static bool is_arg(const RowSum *s) { return reduce_is_arg(s->op); }

static void print_begin(Printing *p, Text *out, int i) {
    const RowSum *s = &rows_of(p)->sum[i];
    const DType d = s->result->type.dtype;
    Expr of = { .rop = s->op, .dtype = d };
    const LoopPrinter l = { .arena = p->arena, .k = p->kernel, .d = &(Dialect){ .language = &spell_glsl } };
    if (is_arg(s))
        text_printf(out, "        sums.s%d = -1;\n        sums.x%d = %s(0);\n", i, i, plain(s->extreme->type.dtype));
    else text_printf(out, "        sums.s%d = %s;\n", i, loops_identity(&l, &of));
}

// The result as it is and one more: of an index, which of two it is.
static void print_joined(Printing *p, Text *out, int i, const char *sum, const char *extreme) {
    const RowSum *s = &rows_of(p)->sum[i];
    const DType d = s->result->type.dtype;
    if (!is_arg(s)) {
        text_printf(out, "        sums.s%d = ", i);
        if (s->op == RED_SUM && dtype_is_float(d)) text_printf(out, "sums.s%d + %s", i, sum);
        else spell_step(&spell_glsl, out, s->op, d, arena_printf(p->arena, "sums.s%d", i), sum);
        text_printf(out, ";\n");
        return;
    }
    const ReduceInfo *info = &reduce_table[s->op];
    const bool max = info->extreme == RED_MAX, floats = dtype_is_float(s->extreme->type.dtype);
    const char *tie = info->tie == TIE_LAST ? ">" : "<", *x = extreme, *best = arena_printf(p->arena, "sums.x%d", i);
    text_printf(out, "        if (%s >= 0 && (sums.s%d < 0 || %s %s %s || (%s == %s && %s %s sums.s%d)", sum, i, x,
        max ? ">" : "<", best, x, best, sum, tie, i);
    // a NaN is larger than any number
    if (floats && max)
        text_printf(out, " || (isnan(%s) && (!isnan(%s) || %s %s sums.s%d))", x, best, sum, tie, i);
    text_printf(out, ")) {\n            sums.s%d = %s;\n            sums.x%d = %s;\n        }\n", i, sum, i, x);
}

static void print_add(Printing *p, Text *out, int i) {
    const RowSum *s = &rows_of(p)->sum[i];
    Dialect d = dialect(p);
    const bool product = s->op == RED_SUM && s->term->op == E_Mul && dtype_is_float(s->term->dtype);
    Store terms[2];
    uint64_t used = s->term->axes_used;
    int n = 0;
    d.store = name_term;
    terms[n++] = (Store){ .value = s->result, .expr = product ? s->term->a[0] : s->term };
    if (product) terms[n++] = (Store){ .value = s->result, .expr = s->term->a[1] };
    if (s->payload) {
        used |= s->payload->axes_used;
        terms[n++] = (Store){ .value = s->result, .expr = s->payload };
    }
    for (int j = 0; j < n; j++) terms[j].index = expr_index(p->kernel->exprs, j);
    text_printf(out, "        {\n");
    print_coordinates(p, out, used);
    print_stores(p, out, &d, n, terms, 2);
    if (product) text_printf(out, "        sums.s%d = fma(x0, x1, sums.s%d);\n", i, i);
    else print_joined(p, out, i, is_arg(s) ? "x1" : "x0", "x0");
    text_printf(out, "        }\n");
}

static void print_put(Printing *p, Text *out, int i) {
    text_printf(out, "        part_s%d[at] = sums.s%d;\n", i, i);
    if (is_arg(&rows_of(p)->sum[i])) text_printf(out, "        part_x%d[at] = sums.x%d;\n", i, i);
}

static void print_join(Printing *p, Text *out, int i) {
    print_joined(p, out, i, arena_printf(p->arena, "part_s%d[at]", i), arena_printf(p->arena, "part_x%d[at]", i));
}

static void print_shuffle(Printing *p, Text *out, int i) {
    const RowSum *s = &rows_of(p)->sum[i];
    const char *text = "        %s %c%d = subgroupShuffleXor(sums.%c%d, uint(mask));\n";
    text_printf(out, text, plain(s->result->type.dtype), 'b', i, 's', i);
    if (is_arg(s)) text_printf(out, text, plain(s->extreme->type.dtype), 'c', i, 'x', i);
    print_joined(p, out, i, arena_printf(p->arena, "b%d", i), arena_printf(p->arena, "c%d", i));
}

// What a row came to in a share: among the parts, and from there.
static const char *part_text(const Printing *p, int i) {
    const Rowwise *r = rows_of(p);
    const long long rows = (long long)ceil_div(r->rows, 4) * 4;
    return arena_printf(
        p->arena, "parts[parts_at + ((share * %d + %d) * %lld + row) / 4][row %% 4]", r->n_sums, i, rows);
}

static void print_parts(Printing *p, Text *out) {
    const Rowwise *r = rows_of(p);
    text_printf(out, "void leave(const int row, const int share) {\n");
    for (int i = 0; i < r->n_sums; i++) text_printf(out, "    %s = sums.s%d;\n", part_text(p, i), i);
    text_printf(out, "}\n\nvoid take(const int row, const int share) {\n");
    for (int i = 0; i < r->n_sums; i++) text_printf(out, "    sums.s%d += %s;\n", i, part_text(p, i));
    text_printf(out, "}\n\n");
}

// A function of the stage, whose number is known where it is called.
static void print_step(Printing *p, Text *out, const char *head, void (*print)(Printing *p, Text *out, int i)) {
    const Rowwise *r = rows_of(p);
    text_printf(out, "void %s {\n", head);
    for (int stage = 0; stage < r->stages; stage++) {
        text_printf(out, "    if (stage == %d) {\n", stage);
        for (int i = 0; i < r->n_sums; i++)
            if (r->sum[i].stage == stage) print(p, out, i);
        text_printf(out, "    }\n");
    }
    text_printf(out, "}\n\n");
}

// ---------------------------------------------------------------- the functions of rows and columns
static void print_kept(Printing *p, Text *out) {
    const Rowwise *r = rows_of(p);
    Dialect d = dialect(p);
    Store stores[MAX_KEPT];
    uint64_t used = 0;
    text_printf(out, "struct Kept {\n");
    for (int i = 0; i < r->n_kept; i++) {
        used |= r->kept[i].is->axes_used;
        stores[i] = (Store){ .value = r->kept[i].value,
            .index = expr_index(p->kernel->exprs, i),
            .expr = r->kept[i].is };
        text_printf(out, "    %s k%d;\n", plain(r->kept[i].value->type.dtype), i);
    }
    if (!r->n_kept) text_printf(out, "    int none;\n");
    text_printf(out, "};\n\nKept kept_at(const int row, const int column) {\n    Kept kept;\n");
    if (!r->n_kept) text_printf(out, "    kept.none = 0;\n");
    print_coordinates(p, out, used);
    d.store = store_kept;
    if (r->n_kept) print_stores(p, out, &d, r->n_kept, stores, 1);
    text_printf(out, "    return kept;\n}\n\n");
}

static void print_sums(Printing *p, Text *out, Text *shared) {
    const Rowwise *r = rows_of(p);
    text_printf(out, "struct Sums {\n");
    for (int i = 0; i < r->n_sums; i++) {
        const Value *of[2] = { r->sum[i].result, r->sum[i].extreme };
        for (int j = 0; j < 2; j++) {
            if (!of[j]) continue;
            text_printf(out, "    %s %c%d;\n", plain(of[j]->type.dtype), "sx"[j], i);
            text_printf(shared, "shared %s part_%c%d[%d];\n", plain(of[j]->type.dtype), "sx"[j], i,
                r->team * r->members);
        }
    }
    text_printf(out, "} sums;\n\n");
}

static void print_finish(Printing *p, Text *out, const Dialect *d) {
    const Rowwise *r = rows_of(p);
    uint64_t used = 0;
    for (int i = 0; i < r->stores.n; i++) used |= r->stores.at[i].expr->axes_used | r->stores.at[i].index->axes_used;
    text_printf(out, "void finish(const Kept kept, const int row, const int column) {\n");
    print_coordinates(p, out, used);
    print_stores(p, out, d, r->stores.n, r->stores.at, 1);
    text_printf(out, "}\n\n");
}

// All functions of rows and columns and of stages but that which stores, and what they share.
static void print_functions(Printing *p, Text *out, Text *shared) {
    print_kept(p, out);
    print_sums(p, out, shared);
    print_step(p, out, "begin(const int stage)", print_begin);
    print_step(p, out, "add(const int stage, const Kept kept, const int row, const int column)", print_add);
    print_step(p, out, "put(const int stage, const int at)", print_put);
    print_step(p, out, "join(const int stage, const int at)", print_join);
}

static const Hole functions[] = { { "KEPT", NULL, "Kept" }, { "KEPT_AT", "row, column", "kept_at(row, column)" },
    { "BEGIN", "s", "begin(s)" }, { "ADD", "s, kept, row, column", "add(s, kept, row, column)" },
    { "PUT", "s, at", "put(s, at)" }, { "JOIN", "s, at", "join(s, at)" } };

// Have shuffles all types that the sums have, and what compares indices?
static bool can_shuffle(const Rowwise *r) {
    for (int i = 0; i < r->n_sums; i++) {
        const Value *of[2] = { r->sum[i].result, r->sum[i].extreme };
        for (int j = 0; j < 2; j++)
            if (of[j] && (dtype_size(of[j]->type.dtype) > 4 || of[j]->type.dtype == DT_BOOL)) return false;
    }
    return r->team > 1;
}

static void print_shader(Printing *p, Shader *out, bool subgroups) {
    Arena *a = p->arena;
    const Rowwise *r = rows_of(p);
    Text body, shared;
    text_init(&body, a);
    text_init(&shared, a);
    const Dialect d = dialect(p);
    print_functions(p, &body, &shared);
    if (subgroups) print_step(p, &body, "shuffle(const int stage, const int mask)", print_shuffle);
    if (r->shares > 1) print_parts(p, &body);
    print_finish(p, &body, &d);
    text_printf(&shared, "%s", glsl_share_memory(p));
    enum { FUNCTIONS = COUNT(functions) };
    const Hole own[] = { { "ROWS", NULL, number_text(a, r->rows) }, { "COLUMNS", NULL, number_text(a, r->columns) },
        { "TEAM", NULL, number_text(a, r->team) }, { "MEMBERS", NULL, number_text(a, r->members) },
        { "BY_POINT", NULL, r->by_point ? "1" : "0" }, { "KEPT_EACH", NULL, number_text(a, r->kept_each) },
        { "STAGES", NULL, number_text(a, r->stages) }, { "ELEMENTS", NULL, r->elements ? "1" : "0" },
        { "SUBGROUPS", NULL, subgroups ? "1" : "0" }, { "SHARES", NULL, number_text(a, r->shares) },
        { "SHARE", NULL, number_text(a, r->share) }, { "LEAVE", "row, share", "leave(row, share)" },
        { "TAKE", "row, share", "take(row, share)" }, { "COUNT", "i", "counts[counts_at + (i)]" },
        { "SHUFFLE", "s, mask", "shuffle(s, mask)" }, { "FINISH", "kept, row, column", "finish(kept, row, column)" } };
    Hole holes[COUNT(own) + FUNCTIONS];
    memcpy(holes, own, sizeof own);
    memcpy(holes + COUNT(own), functions, sizeof functions);
    template_fill(a, &body, "glsl/rowwise.comp", COUNT(holes), holes);
    glsl_shader(p,
        subgroups ? "#extension GL_EXT_control_flow_attributes : require\n"
                    "#extension GL_KHR_shader_subgroup_shuffle : require\n" :
                    "#extension GL_EXT_control_flow_attributes : require\n",
        shared.at ? shared.at : "", body.at, out);
    out->points = r->rows * (r->elements ? r->columns : 1);
    const int64_t groups = ceil_div(r->rows, r->members);
    out->groups[0] = (uint32_t)(groups > MAX_GROUPS ? MAX_GROUPS : groups);
    out->groups[1] = (uint32_t)ceil_div(groups, MAX_GROUPS);
    out->groups[2] = (uint32_t)r->shares;
}

bool glsl_rowwise(Printing *p, Shader *out) {
    Printing other = *p;
    if (can_shuffle(rows_of(p))) {
        out->instead = NEW(p->arena, Shader);
        print_shader(&other, out->instead, true);
    }
    print_shader(p, out, false);
    return true;
}

// ---------------------------------------------------------------- the rows of a product's left factor
static void store_left(void *ctx, Text *out, const Store *s, const char *index, const char *value) {
    (void)ctx;
    (void)s;
    (void)index;
    text_printf(out, "set_left(row, column, %s);", value);
}

void glsl_norm(Printing *p, int team, int members, Text *out, Text *shared, Hole *holes, int *n) {
    const Kernel *product = p->kernel, *norm = product->product.norm;
    Kernel *k = arena_copy(p->arena, norm, sizeof *norm);
    Rowwise *r = arena_copy(p->arena, norm->loop.rows, sizeof *norm->loop.rows);
    k->loop.rows = r;
    r->team = team;
    r->members = members;
    p->kernel = k;
    Dialect d = dialect(p);
    d.store = store_left;
    print_functions(p, out, shared);
    text_printf(out, "void set_left(const int row, const int column, const float x);\n\n");
    print_finish(p, out, &d);
    p->kernel = product;
    for (size_t i = 0; i < COUNT(functions); i++) holes[(*n)++] = functions[i];
    holes[(*n)++] = (Hole){ "SET", "kept, row, column", "finish(kept, row, column)" };
    holes[(*n)++] = (Hole){ "STAGES", NULL, number_text(p->arena, r->stages) };
    holes[(*n)++] = (Hole){ "KEPT_WORDS", NULL, number_text(p->arena, r->n_kept ? r->n_kept : 1) };
}
