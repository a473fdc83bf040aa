// SPDX-License-Identifier: MIT OR Apache-2.0
// A product found in a loop nest as a compute shader: its template (templates/glsl/product.comp, or rows.comp where it
// has few rows) with the holes that the schedule has chosen, its factors as functions of their coordinates, and the
// rest of the kernel as the function that each element of the result goes through.
#include "glsl.h"

#include "schedule/cpu/templates.h"

enum { VECTOR = 16 };                                   // bytes of four sums

static const char coordinate_names[COORDS] = { 'b', 'm', 'n', 'k' };

// const int i0 = v / behind % extent; 0: there is nothing above
static void print_digit(Text *out, int axis, char v, int64_t behind, int64_t extent) {
    text_printf(out, "    const int i%d = ", axis);
    if (behind == 1 && !extent) text_printf(out, "%c;\n", v);
    else if (behind == 1) text_printf(out, "int(uint(%c) %% %lldu);\n", v, (long long)extent);
    else if (!extent) text_printf(out, "int(uint(%c) / %lldu);\n", v, (long long)behind);
    else text_printf(out, "int(uint(%c) / %lldu %% %lldu);\n", v, (long long)behind, (long long)extent);
}

// i0, i1, ... of a coordinate's digits, and the numbers that they make with those behind them (plan.h), where used.
static void print_digits(Text *out, const Kernel *k, int which, uint64_t used) {
    const Coordinate *c = &k->product.of[which];
    int64_t behind = 1;
    for (int i = c->n - 1; i >= 0; i--) {
        const int axis = c->axis[i];
        const int64_t extent = k->axes.at[axis].extent;
        if (used >> axis & 1) print_digit(out, axis, coordinate_names[which], behind, i ? extent : 0);
        behind *= extent;
        if (used >> (k->axes.n + axis) & 1)
            print_digit(out, k->axes.n + axis, coordinate_names[which], 1, i ? behind : 0);
    }
}

// The kernel's nest with all its axes known: one store.
static void print_store(Printing *p, Text *out, const Dialect *d, Store s) {
    Arena *a = p->arena;
    Kernel *k = arena_copy(a, p->kernel, sizeof *p->kernel);
    const int n = p->kernel->axes.n;
    k->axes.at = NULL;
    k->axes.n = k->axes.cap = 0;
    for (int i = 0; i < 2 * n + MAX_OWN; i++) VEC_PUSH(a, k->axes, ((Axis){ .extent = 2, .size = 2 }));
    k->n_parallel = k->axes.n;
    k->stores.at = NULL;
    k->stores.n = k->stores.cap = 0;
    VEC_PUSH(a, k->stores, s);
    loops_print(a, out, k, d, k->n_parallel, 1);
}

// The same of e at `index`, for a dialect that stores in its own way.
static void print_body(Printing *p, Text *out, const Dialect *d, Expr *e, Expr *index) {
    print_store(p, out, d, (Store){ .value = p->kernel->stores.at[0].value, .index = index, .expr = e });
}

static void give_back(void *ctx, Text *out, const Store *s, const char *index, const char *value) {
    (void)ctx;
    (void)s;
    (void)index;
    text_printf(out, "return %s;", value);
}

static void keep_own(void *ctx, Text *out, const Store *s, const char *index, const char *value) {
    (void)ctx;
    (void)s;
    text_printf(out, "own.i%s = %s;", index, value);
}

static void name_own(void *ctx, Text *out, const Store *s, const char *index, const char *value) {
    (void)ctx;
    (void)s;
    text_printf(out, "const int i%s = %s;", index, value);
}

// ---------------------------------------------------------------- four elements at a time
Wide glsl_wide_of(DType d, int lanes) {
    return d == DT_F32 ? WIDE_F32X4 : dtype_size(d) == 1 ? WIDE_U8X4 : lanes == 8 ? WIDE_U16X8 : WIDE_U16X4;
}

static bool storage_is_signed(DType d) { return d == DT_I8 || d == DT_I4 || d == DT_I2; }

const char *glsl_wide_type(DType d, int lanes) {
    return d == DT_F32 ? "vec4" : dtype_size(d) == 1 ? "uint" : lanes == 8 ? "uvec4" : "uvec2";
}

static const char *wide_type(DType d) { return glsl_wide_type(d, 4); }

// Which of the fours v is; n_four: none.
static int four_of(const Printing *p, const Value *v) {
    int i = 0;
    while (i < p->n_four && p->four[i] != v) i++;
    return i;
}

static bool is_paired(const Printing *p, int four) { return p->paired >> four & 1; }

// four elements from this one on, as they lie in memory
static const char *load_four(void *ctx, Value *v, const char *index) {
    Printing *p = ctx;
    if (is_paired(p, four_of(p, v)))
        return arena_printf(p->arena, "uint(%s)", glsl_elements(p, v, WIDE_U8X2, 2, index));
    return glsl_elements(p, v, glsl_wide_of(layout_element(p->layout, v), 4), 4, index);
}

// element `lane` of what load_four() gave
const char *glsl_load_lane(void *ctx, Value *v, const char *index) {
    Printing *p = ctx;
    const DType d = layout_element(p->layout, v);
    const int i = four_of(p, v);
    if (i == p->n_four) return glsl_load_text(p->arena, d, glsl_element(p, v, index, false));
    const char *element = is_paired(p, i) ? arena_printf(p->arena, "(w%d >> (lane / 2 * 8) & 255u)", i) :
        d == DT_F32 ? arena_printf(p->arena, "w%d[lane]", i) :
        dtype_size(d) == 2 ? arena_printf(p->arena, "(w%d[lane / 2] >> (lane %% 2 * 16) & 65535u)", i) :
        storage_is_signed(d) ? arena_printf(p->arena, "bitfieldExtract(int(w%d), lane * 8, 8)", i) :
                             arena_printf(p->arena, "(w%d >> (lane * 8) & 255u)", i);
    return glsl_load_text(p->arena, d, element);
}

static bool is_digit(const Kernel *k, int which, int axis) {
    const Coordinate *c = &k->product.of[which];
    for (int i = 0; i < c->n; i++)
        if (axis == c->axis[i] || axis == k->axes.n + c->axis[i]) return true;
    return false;
}

// struct A_own, what of an element's place its row alone decides, and own A_own(b, m), which makes it
static void print_own(Printing *p, Text *out, int which, uint64_t used) {
    const Kernel *k = p->kernel;
    const Product *of = &k->product;
    const char name = which ? 'B' : 'A', row = which ? 'n' : 'm';
    const int first = 2 * k->axes.n;
    uint64_t digits = used;
    const bool any = used & ((UINT64_C(1) << (first + of->n_own)) - 1);
    Dialect d = glsl_dialect(p);
    d.store = keep_own;
    text_printf(out, "struct %c_own {\n", name);
    for (int i = 0; i < first + of->n_own; i++)
        if (used >> i & 1) text_printf(out, "    int i%d;\n", i);
    if (!any) text_printf(out, "    int none;\n");   // a struct has members
    text_printf(out, "};\n\n%c_own %c_own_at(const int b, const int %c) {\n    %c_own own;\n", name, name, row, name);
    for (int i = 0; i < of->n_own; i++)
        if (used >> (first + i) & 1) digits |= of->own[i]->axes_used;
    print_digits(out, k, COORD_B, digits);
    print_digits(out, k, which ? COORD_N : COORD_M, digits);
    for (int i = 0; i < first; i++)
        if (used >> i & 1) text_printf(out, "    own.i%d = i%d;\n", i, i);
    for (int i = 0; i < of->n_own; i++)
        if (used >> (first + i) & 1) print_body(p, out, &d, of->own[i], expr_index(k->exprs, first + i));
    text_printf(out, "%s    return own;\n}\n\n", any ? "" : "    own.none = 0;\n");
}

static Expr *load_of(Expr *e, const Value *v) {
    Expr *found = !e || (e->op == E_Load && e->value == v) ? e : NULL;
    for (int i = 0; e && i < 3 && !found; i++) found = load_of(e->a[i], v);
    return found;
}

// What e needs of b, of m or n, and of k, from these.
static void print_place(Printing *p, Text *out, const Expr *e) {
    const Kernel *k = p->kernel;
    const Product *of = &k->product;
    const int first = 2 * k->axes.n;
    uint64_t used = e->axes_used;
    Dialect d = glsl_dialect(p);
    d.store = name_own;
    for (int i = 0; i < of->n_own; i++)
        if (e->axes_used >> (first + i) & 1) used |= of->own[i]->axes_used;
    for (int i = 0; i < COORDS; i++) print_digits(out, k, i, used);
    for (int i = 0; i < of->n_own; i++)
        if (e->axes_used >> (first + i) & 1) print_body(p, out, &d, of->own[i], expr_index(k->exprs, first + i));
}

// Do four elements at a time begin at whole vectors?
static bool whole_vectors(const Printing *p, const Value *v, int elements) {
    Value *of = (Value *)(uintptr_t)v;
    return layout_region(p->layout, of).at % (elements * (int64_t)dtype_size(layout_element(p->layout, of))) == 0;
}

// Which of a factor's values are read four at a time where they lie; their number.
static int take_fours(Printing *p, int which) {
    const Product *of = &p->kernel->product;
    p->n_four = 0;
    p->paired = 0;
    for (int i = 0; i < of->fours[which].n; i++) {
        const unsigned paired = of->fours[which].paired >> i & 1;
        if (!whole_vectors(p, of->fours[which].value[i], paired ? 2 : 4)) continue;
        p->paired |= paired << p->n_four;
        p->four[p->n_four++] = of->fours[which].value[i];
    }
    return p->n_four;
}

// vec4 A4_at(b, m, k), B4_at(b, k, n): four of them, along the terms (wide 1) or along its own (2). The fours of each
// value that has them are read first, and then each element is made of its lanes.
static void print_four(Printing *p, Text *out, int which, int64_t wide) {
    const char name = which ? 'B' : 'A';
    const char *const places =
        which ? "const int b, const int k, const int n" : "const int b, const int m, const int k";
    Expr *e = p->kernel->product.factor[which];
    Dialect d = glsl_dialect(p);
    d.store = give_back;
    d.load = load_four;
    for (int i = 0; i < p->n_four; i++) {
        Expr *load = load_of(e, p->four[i]);
        text_printf(out, "%s %c_four%d(%s) {\n", wide_type(layout_element(p->layout, load->value)), name, i, places);
        print_place(p, out, load);
        print_body(p, out, &d, load, expr_index(p->kernel->exprs, 0));
        text_printf(out, "}\n\n");
    }
    d.load = glsl_load_lane;
    text_printf(out, "float %c_lane(%s, const int lane", name, places);
    for (int i = 0; i < p->n_four; i++)
        text_printf(out, ", const %s w%d", wide_type(layout_element(p->layout, (Value *)(uintptr_t)p->four[i])), i);
    text_printf(out, ") {\n");
    print_place(p, out, e);
    print_body(p, out, &d, e, expr_index(p->kernel->exprs, 0));
    text_printf(out, "}\n\nvec4 %c4_at(%s) {\n", name, places);
    for (int i = 0; i < p->n_four; i++)
        text_printf(out, "    const %s w%d = %c_four%d(%s);\n",
            wide_type(layout_element(p->layout, (Value *)(uintptr_t)p->four[i])), i, name, i,
            which ? "b, k, n" : "b, m, k");
    text_printf(out, "    return vec4(");
    for (int j = 0; j < 4; j++) {
        const char *of = wide == 1 ? which ? "b, k + %d, n, %d" : "b, m, k + %d, %d" :
                         which ? "b, k, n + %d, %d" : "b, m + %d, k, %d";
        text_printf(out, j ? ", %c_lane(" : "%c_lane(", name);
        text_printf(out, of, j, j);
        for (int i = 0; i < p->n_four; i++) text_printf(out, ", w%d", i);
        text_printf(out, ")");
    }
    text_printf(out, ");\n}\n\n");
}

// ---------------------------------------------------------------- several bytes at a time
// An operand of a template's that bytes are read as: so many terms in one that it counts, all `bytes` of which are read
// at once where they lie together.
struct Packing { int terms, bytes; Wide wide; const char *type, *name; };
static const struct Packing words = { 4, 4, WIDE_U8X4, "int", "_at" }, pairs = { 2, 2, WIDE_U8X2, "uint", "_at" },
                            eight_pairs = { 2, 16, WIDE_U8X16, "uvec4", "8_at" };

static const char *load_packed(void *ctx, Value *v, const char *index) {
    Printing *p = ctx;
    return arena_printf(p->arena, "%s(%s)", p->packing->type,
        glsl_elements(p, v, p->packing->wide, p->packing->bytes, index));
}

static const char *load_packed_if(void *ctx, Value *v, const char *index, const char *guard, const char *otherwise) {
    Printing *p = ctx;
    (void)otherwise;                                    // print_packed_if() knows it
    glsl_wide(p, v, p->packing->wide);
    return arena_printf(p->arena, "%c_if(%s, uint(%s + %s) / %du)", p->factor, guard, glsl_origin(p, v), index,
        p->packing->bytes);
}

static const char *load_four_words(void *ctx, Value *v, const char *index) {
    Printing *p = ctx;
    return arena_printf(p->arena, "ivec4(%s)", glsl_elements(p, v, WIDE_U8X16, 16, index));
}

// A_if(guard, i): number i of what the factor loads, or of what stands for it where the guard does not hold
static void print_packed_if(Printing *p, Text *out, const Expr *load) {
    const unsigned fill = load->a[2] ? (unsigned)load->a[2]->c.i & 255 : 0;
    const char *type = p->packing->type;
    text_printf(out, "%s %c_if(const bool guard, const uint i) {\n    %s x = %s(%uu);\n    if (guard) x = %s(%s[i]);\n"
        "    return x;\n}\n\n", type, p->factor, type, type, fill * 0x01010101u, type,
        glsl_wide(p, load->value, p->packing->wide));
}

// A_own, and A_at(own, at), of a factor of bytes: those that lie together, or one after the other.
static void print_packed(Printing *p, Text *out, int which, const struct Packing *as, bool whole) {
    const Kernel *k = p->kernel;
    Expr *e = whole ? k->product.factor[which]->a[0] : k->product.factor[which];
    const char name = which ? 'B' : 'A';
    const long long terms = k->product.of[COORD_K].size;
    uint64_t used = e->axes_used;
    Dialect d = glsl_dialect(p);
    d.store = give_back;
    p->packing = as;
    p->factor = name;
    if (whole) {
        d.load = load_packed;
        d.load_if = load_packed_if;
        if (e->a[1]) print_packed_if(p, out, e);
    }
    for (int i = 0; i < 2 * k->axes.n; i++)
        if (is_digit(k, COORD_K, i)) used &= ~(UINT64_C(1) << i);
    print_own(p, out, which, used);
    if (whole)
        text_printf(out, "%s %c%s(const %c_own own, const int at) {\n    const int k = %d * at;\n", as->type, name,
            as->name, name, as->terms);
    else text_printf(out, "int %c_byte(const %c_own own, const int k) {\n", name, name);
    for (int i = 0; i < 64; i++)
        if (used >> i & 1) text_printf(out, "    const int i%d = own.i%d;\n", i, i);
    print_digits(out, k, COORD_K, e->axes_used);
    print_body(p, out, &d, e, expr_index(k->exprs, 0));
    text_printf(out, "}\n\n");
    if (whole) return;
    text_printf(out,
        "%s %c_at(const %c_own own, const int at) {\n    int x = 0;\n    [[unroll]] for (int i = 0; i < %d; i++)\n"
        "        if (%lld %% %d == 0 || %d * at + i < %lld) x |= (%c_byte(own, %d * at + i) & 255) << 8 * i;\n"
        "    return %s(x);\n}\n\n",
        as->type, name, name, as->terms, terms, as->terms, as->terms, terms, name, as->terms, as->type);
}

// ivec4 A4_at(b, m, word), B4_at(b, word, n): four words that lie together
static void print_four_words(Printing *p, Text *out, int which) {
    Expr *load = p->kernel->product.factor[which]->a[0];
    Dialect d = glsl_dialect(p);
    d.store = give_back;
    d.load = load_four_words;
    text_printf(out, "ivec4 %s) {\n    const int k = 4 * word;\n",
        which ? "B4_at(const int b, const int word, const int n" : "A4_at(const int b, const int m, const int word");
    print_place(p, out, load);
    print_body(p, out, &d, load, expr_index(p->kernel->exprs, 0));
    text_printf(out, "}\n\n");
}

// Four words at a time?
static bool print_words(Printing *p, Text *out, int which) {
    const Product *of = &p->kernel->product;
    const Expr *load = of->factor[which]->a[0];
    const bool four = of->words[which] == 4 && whole_vectors(p, load->value, 16);
    if (four) print_four_words(p, out, which);
    else print_packed(p, out, which, &words, of->words[which] && whole_vectors(p, load->value, 4));
    return four;
}

static bool is_unsigned(const Kernel *k, int which) { return k->product.factor[which]->a[0]->dtype == DT_U8; }

// int dot4(x, y, sum): sum and the four products of the bytes in two words; and of four pairs of such
static void print_dot(const Printing *p, Text *out) {
    const bool x = is_unsigned(p->kernel, 0), y = is_unsigned(p->kernel, 1);
    static const char *const byte[] = { "bitfieldExtract(%c, 8 * i, 8)", "int(bitfieldExtract(uint(%c), 8 * i, 8))" };
    if (p->dots) {
        const char *type = x && y ? "uint" : "int";
        text_printf(out,
            "spirv_instruction(extensions = [\"SPV_KHR_integer_dot_product\"], capabilities = [6018, 6019], id = %d)\n"
            "%s dot_of(%s x, %s y, spirv_literal int format);\n\n"
            "int dot4(const int x, const int y, const int sum) { return sum + int(dot_of(%s(%s), %s(%s), 0)); }\n",
            x && y ? 4451 : x || y ? 4452 : 4450, type, type, type, type, x ? "y" : "x", type, x ? "x" : "y");
    } else {
        text_printf(out, "int dot4(const int x, const int y, int sum) {\n"
            "    [[unroll]] for (int i = 0; i < 4; i++) sum += ");
        text_printf(out, byte[x], 'x');
        text_printf(out, " * ");
        text_printf(out, byte[y], 'y');
        text_printf(out, ";\n    return sum;\n}\n");
    }
    text_printf(out, "ivec4 dot4(const ivec4 x, const ivec4 y, const ivec4 sum) {\n"
        "    ivec4 all;\n    [[unroll]] for (int i = 0; i < 4; i++) all[i] = dot4(x[i], y[i], sum[i]);\n"
        "    return all;\n}\n\n");
}

void glsl_product_nest(Printing *p, Text *out, const Dialect *d, const Store *stores, int n, const char *at) {
    uint64_t used = 0;
    for (int i = 0; i < n; i++)
        used |= stores[i].expr->axes_used | stores[i].index->axes_used
            | (stores[i].guard ? stores[i].guard->axes_used : 0);
    text_printf(out, "    const int n = %s;\n", at);
    for (int i = 0; i < COORDS; i++) print_digits(out, p->kernel, i, used);
    for (int i = 0; i < n; i++) print_store(p, out, d, stores[i]);
}

static bool sums_bytes(const Kernel *k) { return k->kind == KERNEL_PRODUCT && k->product.bytes; }
const char *glsl_sum(const Kernel *k) { return sums_bytes(k) ? "int" : "float"; }
const char *glsl_sums(const Kernel *k) { return sums_bytes(k) ? "ivec4" : "vec4"; }

// What becomes of the sum at a batch, row and column, or of four columns', and where it is stored (gemm.c).
static void print_finish(Printing *p, Text *out, bool fours, Hole *holes, int *n) {
    const Coordinate *columns = &p->kernel->product.of[COORD_N];
    const Lanes four =
        glsl_lanes_along(p, fours && columns->n && !p->kernel->product.few ? columns->axis[columns->n - 1] : -1);
    const Dialect d = glsl_dialect(p);
    glsl_finish_holes(four.n > 1, holes, n);
    if (four.n > 1) {
        text_printf(out, "void finish4(const %s sums, const int b, const int m, const int first) {\n",
            glsl_sums(p->kernel));
        glsl_print_lanes(p, &four, out);
    } else {
        text_printf(out, "void finish(const %s acc, const int b, const int m, const int column) {\n",
            glsl_sum(p->kernel));
        glsl_product_nest(p, out, &d, p->kernel->stores.at, p->kernel->stores.n, "column");
    }
    text_printf(out, "}\n\n");
}

// ---------------------------------------------------------------- on matrix units
static const char *load_eight(void *ctx, Value *v, const char *index) {
    Printing *p = ctx;
    return glsl_elements(p, v, WIDE_U16X8, 8, index);
}

static const char *load_eight_if(void *ctx, Value *v, const char *index, const char *guard, const char *otherwise) {
    Printing *p = ctx;
    (void)otherwise;                                    // 0 (Units.wide)
    return arena_printf(p->arena, "%s_if(%s, (%s + %s) / 8)", glsl_wide(p, v, WIDE_U16X8), guard, glsl_origin(p, v),
        index);
}

// Do eight elements of the factor's value lie together as matrices have them, as the schedule would read them?
static bool whole_eights(const Printing *p, int which, DType to) {
    const Expr *e = p->kernel->product.factor[which];
    if (!p->kernel->units.wide[which] || layout_element(p->layout, e->value) != to) return false;
    return layout_region(p->layout, e->value).at % (8 * (int64_t)sizeof(uint16_t)) == 0;
}

// float A_at(own, k), of a factor; `eight`: uvec4 A8_at(own, k), the bits of eight elements from there on.
static void print_element(Printing *p, Text *out, int which, bool eight) {
    const Kernel *k = p->kernel;
    Expr *e = k->product.factor[which];
    const char name = which ? 'B' : 'A';
    uint64_t used = e->axes_used;
    Dialect d = glsl_dialect(p);
    d.store = give_back;
    if (eight) {
        d.load = load_eight;
        d.load_if = load_eight_if;
    }
    for (int i = 0; i < 2 * k->axes.n; i++)
        if (is_digit(k, COORD_K, i)) used &= ~(UINT64_C(1) << i);
    print_own(p, out, which, used);
    text_printf(out, "%s %c%s_at(const %c_own own, const int k) {\n", eight ? "uvec4" : "float", name, eight ? "8" : "",
        name);
    for (int i = 0; i < 64; i++)
        if (used >> i & 1) text_printf(out, "    const int i%d = own.i%d;\n", i, i);
    print_digits(out, k, COORD_K, e->axes_used);
    print_body(p, out, &d, e, expr_index(k->exprs, 0));
    text_printf(out, "}\n\n");
}

void glsl_product_units(Printing *p, Text *out, DType to, bool wide[2], Hole *holes, int *n) {
    static const Hole fixed[] = { { "A_OWN", NULL, "A_own" }, { "B_OWN", NULL, "B_own" },
        { "A_OWN_AT", "b, m", "A_own_at(b, m)" }, { "B_OWN_AT", "b, n", "B_own_at(b, n)" },
        { "A8_AT", "own, k", "A8_at(own, k)" }, { "B8_AT", "own, k", "B8_at(own, k)" } };
    const Product *of = &p->kernel->product;
    for (int i = 0; i < 2; i++) {
        const char *at = i ? "B_at(own, k)" : "A_at(own, k)";
        wide[i] = of->bytes ? p->kernel->units.wide[i] && whole_vectors(p, of->factor[i]->a[0]->value, 16) :
                              whole_eights(p, i, to);
        if (of->bytes) print_packed(p, out, i, wide[i] ? &eight_pairs : &pairs, wide[i]);
        else print_element(p, out, i, wide[i]);
        const char *element = wide[i] ? "0u" : of->bytes ? at : glsl_bits_text(p, to, at);
        holes[(*n)++] = (Hole){ i ? "B_AT" : "A_AT", "own, k", element };
    }
    for (size_t i = 0; i < COUNT(fixed); i++) holes[(*n)++] = fixed[i];
    print_finish(p, out, true, holes, n);
}

// ---------------------------------------------------------------- the whole
const char *glsl_share_memory(Printing *p) {
    const Kernel *k = p->kernel;
    if (!gpu_counters(k)) return "";
    p->more[p->n_more++] = (More){ "parts_at", (uint32_t)(layout_scratch(k).at / VECTOR) };
    p->more[p->n_more++] = (More){ "counts_at", layout_counter(p->layout, k) };
    // where values may lie anywhere, the counters lie with the constants (runtime/vulkan_steps.c)
    return arena_printf(p->arena,
        "layout(set = 0, binding = 0, std430) coherent buffer Parts { %s parts[]; };\n"
        "layout(set = 0, binding = %d, std430) coherent buffer Counts { uint counts[]; };\n",
        glsl_sums(k), p->layout->moved);
}

// The narrower an element, the more of them are to be on their way for memory to be busy; of values that have fours.
// Of a row or two, registers have room for more: a thread with few fours has all of them on their way at once.
static int flight(const Printing *p) {
    enum { WORD = 4, FEW_ROWS = 2, MOST = 4 };
    const Kernel *k = p->kernel;
    int64_t least = WORD;
    for (int i = 0; i < p->n_four; i++) {
        const int64_t bytes = (int64_t)dtype_size(layout_element(p->layout, (Value *)(uintptr_t)p->four[i]));
        if (bytes < least) least = bytes;
    }
    const int64_t each = ceil_div(template_hole_value(k, "K"), k->product.shares * 4 * template_hole_value(k, "ALONG")),
                  room = k->product.of[COORD_M].size <= FEW_ROWS ? min64(each, MOST) : 1;
    return (int)max64(WORD / least, room);
}

void glsl_product_factors(Printing *p, Text *out, Hole *holes, int *n) {
    static const char *const wide[2] = { "A_WIDE", "B_WIDE" };
    static const Hole fixed[] = { { "A_OWN", NULL, "A_own" }, { "B_OWN", NULL, "B_own" },
        { "A_OWN_AT", "b, m", "A_own_at(b, m)" }, { "B_OWN_AT", "b, n", "B_own_at(b, n)" },
        { "A_AT", "own, k", "A_at(own, k)" }, { "B_AT", "own, k", "B_at(own, k)" },
        { "A4_AT", "b, m, k", "A4_at(b, m, k)" }, { "B4_AT", "b, k, n", "B4_at(b, k, n)" },
        { "PART", "i", "parts[parts_at + (i)]" }, { "COUNT", "i", "counts[counts_at + (i)]" } };
    const Kernel *k = p->kernel;
    for (int i = k->product.norm ? 1 : 0; i < 2; i++) {
        const int64_t along = template_hole_value(k, wide[i]);
        // the right factor of few rows is read so anyway, lane by lane where no value has fours
        const bool bytes = k->product.bytes,
                   four = bytes ? print_words(p, out, i) : along && (take_fours(p, i) || (k->product.few && i));
        if (!four) glsl_refuse(*n, holes, wide[i]);
        if (four && !bytes) print_four(p, out, i, along);
        else if (!bytes) print_element(p, out, i, false);
    }
    if (k->product.bytes) print_dot(p, out);
    holes[(*n)++] = (Hole){ "FOUR", NULL, glsl_sums(k) };
    holes[(*n)++] = (Hole){ "MULTIPLY", "x, y, sum", k->product.bytes ? "dot4(x, y, sum)" : "fma(x, y, sum)" };
    for (size_t i = 0; i < COUNT(fixed); i++) holes[(*n)++] = fixed[i];
    print_finish(p, out, false, holes, n);
}

// The left factor's rows, made by each workgroup.
static void print_norm(Printing *p, Text *body, Text *shared, Hole *holes, int *n) {
    const Kernel *k = p->kernel;
    const int64_t threads = template_hole_value(k, "ACROSS") * template_hole_value(k, "ALONG");
    int members = 1;
    while (members < k->product.of[COORD_M].size) members *= 2;
    holes[(*n)++] = (Hole){ "PREPARED", NULL, "1" };
    glsl_norm(p, (int)threads / members, members, body, shared, holes, n);
}

bool glsl_product(Printing *p, Shader *out) {
    enum { MAX_HOLES = 60 };
    const Kernel *k = p->kernel;
    Hole holes[MAX_HOLES];
    int n = glsl_chosen(p, holes);
    Text body, shared;
    text_init(&body, p->arena);
    text_init(&shared, p->arena);
    text_printf(&shared, "%s", glsl_share_memory(p));
    if (k->product.norm) print_norm(p, &body, &shared, holes, &n);
    else if (k->product.few) holes[n++] = (Hole){ "PREPARED", NULL, "0" };
    glsl_product_factors(p, &body, holes, &n);
    if (k->product.few) holes[n++] = (Hole){ "FLIGHT", NULL, number_text(p->arena, flight(p)) };
    template_fill(p->arena, &body, k->product.few ? "glsl/rows.comp" : "glsl/product.comp", n, holes);
    glsl_shader(p, p->dots ? GLSL_DOTS : "#extension GL_EXT_control_flow_attributes : require\n", shared.at, body.at,
        out);
    out->points = k->product.of[COORD_B].size * k->product.of[COORD_M].size * k->product.of[COORD_N].size;
    if (k->product.few) {
        out->size = 1;
        out->all_groups = true;
        out->groups[0] = (uint32_t)ceil_div(k->product.of[COORD_N].size, 4 * template_hole_value(k, "ACROSS"));
        out->groups[1] = (uint32_t)k->product.shares;
        out->groups[2] = (uint32_t)k->product.of[COORD_B].size;
        return true;
    }
    glsl_blocks(k, out);
    out->groups[2] = (uint32_t)(k->product.of[COORD_B].size * k->product.shares);
    return true;
}
