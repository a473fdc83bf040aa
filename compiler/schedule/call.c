// SPDX-License-Identifier: MIT OR Apache-2.0
// Called templates: operations that no loop over one element of the result can express (a sort, a search, strings of
// any length) are functions from whole stored tensors to whole stored tensors. In: a node with a row below, and which
// of its outputs anyone uses. Out: a kernel with a template under templates/c, its holes filled. Nothing fuses with
// it. A composite that the back end claims, and that has no element expression, is called too; without a row it has no
// template, which then is the back end's own matter.
//
// To add an operation: its OP row in ops.def with `none` as lowering and the form CALL; the template (and its line in
// templates/meson.build); a row here:
//   op, file (NULL: it is no template; .parts = PARTS where its lines, OUTER * INNER of them, can be shared out:
//            cpu/parts.c)
//   wanted   per output, a hole that is 1 when anyone uses the output; the template then leaves out the parameter
//            when it is 0. NULL: the template always writes it
//   fails    not 0: the function returns an int, not 0 when it cannot go on, and the run then returns this: -5
//            (BURN_ELIMIT) for a bound that was set when compiling, -6 (BURN_EFORMAT) for bytes that are not what they
//            should be
//   fill     sets the template's holes with hole(), hole_text() and hole_size(), and needs_scratch(); see call_sort
//
// The template's function is KERNEL(inputs that are there..., wanted outputs... SIZES, burn_pool *pool, unsigned char
// *scratch): the pool where k->string_bytes is set (it makes strings, see templates/c/pool.h), the scratch memory
// where needs_scratch() was called. Sizes go into holes: a constant is a number that `#if` can test; one that is
// known when the program runs is an expression over int64_t parameters, which the hole SIZES declares (so `#define
// SIZES` empty in the template's defaults, and ordinary ifs where a size decides).
#include "ops/common.h"
#include "ops/custom.h"
#include "schedule.h"

#include <string.h>

typedef struct Callee { Arena *a; const Plan *p; Graph *g; Kernel *k; Node *n; const bool *wanted; } Callee;

static void hole(Callee *c, const char *name, int64_t value) {
    VEC_PUSH(c->a, c->k->holes, (HoleValue){ .name = name, .value = value });
}
static void hole_text(Callee *c, const char *name, HoleKind kind, const char *text) {
    VEC_PUSH(c->a, c->k->holes, (HoleValue){ .name = name, .kind = kind, .text = text });
}

static void hole_type(Callee *c, const char *name, HoleKind kind, DType d) {
    VEC_PUSH(c->a, c->k->holes, (HoleValue){ .name = name, .kind = kind, .value = d });
}

// A template that has scratch memory is given some, be its size 0.
static void needs_scratch(Callee *c, int64_t bytes) { c->k->scratch_bytes = bytes > 0 ? bytes : 1; }

// A size, and the symbols in it as parameters.
static void hole_size(Callee *c, const char *name, Dim d) {
    VEC_PUSH(c->a, c->k->holes, (HoleValue){ .name = name, .kind = HOLE_SIZE, .value = d });
    kernel_sizes(c->a, c->k, c->g, d);
}

// How elements of d are declared in memory, the type they are compared in, and the expression that reads one so.
static void holes_element(Callee *c, DType d, const char *element, const char *key, const char *load) {
    hole_type(c, element, HOLE_ELEMENT, d);
    hole_type(c, key, HOLE_TYPE, d);
    VEC_PUSH(c->a, c->k->holes, (HoleValue){ .name = load, .kind = HOLE_LOAD, .value = d, .params = "e" });
}

static Dim product(Graph *g, const Type *t, int from, int to) {
    Dim d = 1;
    for (int i = from; i < to; i++) d = dim_mul(g, d, t->dim[i]);
    return d;
}

static double log2_of(int64_t n) {
    double bits = 0;
    for (; n > 1; n = (n + 1) / 2) bits++;
    return bits;
}

// (outer, axis, inner). Keys of 32 bits go into one word with their position, and where at most half is wanted only so
// many words are kept; else a line and its positions are kept twice.
static void call_sort(Callee *c) {
    enum { BLOCK = 64 };
    static const Template select = { .file = "c/select.c", .parts = PARTS };
    const Type *t = &c->n->in[0]->type;
    int axis = (int)node_int(c->n, "axis", 0);
    const Dim size = t->dim[axis], wanted = c->n->out[0]->type.dim[axis];
    const int64_t length = dim_upper(c->g, size), most = dim_upper(c->g, wanted), bytes = (int64_t)dtype_size(t->dtype);
    const bool wide = length > INT32_MAX, word = !wide && bytes <= (int64_t)sizeof(float), few = most <= length / 2;
    const int64_t position = wide ? sizeof(int64_t) : sizeof(int32_t), kept = word && few ? most : length;
    hole_size(c, "OUTER", product(c->g, t, 0, axis));
    hole_size(c, "AXIS", size);
    hole_size(c, "INNER", product(c->g, t, axis + 1, t->rank));
    hole_size(c, "COUNT", wanted);
    hole(c, "FLOAT", dtype_is_float(t->dtype));
    hole(c, "LARGEST", node_int(c->n, "largest", 0) != 0);
    hole_text(c, "BEFORE", HOLE_OWN, "before");
    hole_type(c, "INDEX", HOLE_ELEMENT, wide ? DT_I64 : DT_I32);
    holes_element(c, t->dtype, "ELEMENT", "KEY", "LOAD");
    needs_scratch(c, 2 * kept * (word ? (int64_t)sizeof(uint64_t) : position + bytes));
    c->k->flops = (double)type_count_upper(c->g, t) * (kept < length ? 1 : log2_of(length));
    if (!word) return;
    c->k->template = &select;
    hole_size(c, "ROOM", few ? wanted : size);
    hole(c, "FEW", few);
    hole(c, "BLOCK", BLOCK);
    hole(c, "SIGNED", dtype_class(t->dtype) == CLASS_INT);
    hole_text(c, "RANK", HOLE_OWN, "rank");
    hole_text(c, "SIFT", HOLE_OWN, "sift");
    hole_text(c, "SORT", HOLE_OWN, "sort");
}

// ---------------------------------------------------------------- strings (ops/string.c)
static void hole_count(Callee *c) { hole_size(c, "COUNT", type_size(c->g, &c->n->in[0]->type)); }

// Room for as many new strings as there are in the first input: --string-bytes each.
static void makes_strings(Callee *c, int64_t each) {
    int64_t n = type_count_upper(c->g, &c->n->in[0]->type);
    c->k->string_bytes = n > MAX_POOL / each ? MAX_POOL : n * each;
}

static void call_string_find(Callee *c) {
    hole_count(c);
    hole_size(c, "KEYS", c->n->in[1]->type.dim[0]);
}

static void call_string_match(Callee *c) {
    hole_count(c);
    hole_type(c, "ELEMENT", HOLE_ELEMENT, c->n->in[2]->type.dtype);
    hole_size(c, "CLASSES", c->n->in[2]->type.dim[1]);
}

static void call_string_concat(Callee *c) {
    hole_count(c);
    makes_strings(c, c->p->options->string_bytes);
}

static void call_string_case(Callee *c) {
    hole_count(c);
    hole(c, "UPPER", node_int(c->n, "upper", 0) != 0);
    makes_strings(c, c->p->options->string_bytes);
}

static void call_string_split(Callee *c) {
    const char *delimiter = node_string(c->n, "delimiter", "");
    int64_t most = node_int(c->n, "maxsplit", -1);
    int count;
    const Dim *room = node_ints(c->n, "sizes", &count);
    hole_count(c);
    hole(c, "PARTS", room != NULL);
    hole(c, "LIMITED", most >= 0);
    hole(c, "MOST", most);
    hole(c, "LENGTH", (int64_t)strlen(delimiter));
    hole_text(c, "DELIMITER", HOLE_STRING, delimiter);
    if (!room) return;
    hole_size(c, "ROOM", room[0]);
    makes_strings(c, c->p->options->string_bytes);
}

static void call_string_format(Callee *c) {
    enum { LONGEST = 25 };                              // -1.2345678901234567e-308 and its end
    DType d = c->n->in[0]->type.dtype;
    hole_count(c);
    hole_text(c, "WRITE", HOLE_OWN, "write");
    hole(c, "FLOAT", dtype_is_float(d));
    hole(c, "UNSIGNED", dtype_class(d) == CLASS_UINT || d == DT_BOOL);
    hole(c, "DOUBLE", d == DT_F64);
    holes_element(c, d, "ELEMENT", "KEY", "LOAD");
    makes_strings(c, LONGEST);
}

static void call_string_parse(Callee *c) {
    hole_count(c);
    hole_text(c, "PARSE", HOLE_OWN, "one");
    hole(c, "INTEGER", node_int(c->n, "to", DT_NONE) == DT_I64);
}

static void call_ngrams(Callee *c) {
    const Type *x = &c->n->in[0]->type;
    hole_size(c, "ROWS", x->dim[0]);
    hole_size(c, "SIZE", x->dim[1]);
    hole(c, "COLUMNS", node_int(c->n, "columns", 0));
    hole_size(c, "KINDS", c->n->in[3]->type.dim[0]);
    hole_size(c, "GRAMS", c->n->in[2]->type.dim[0]);
    hole(c, "SKIPS", node_int(c->n, "skips", 0));
}

// ---------------------------------------------------------------- what is found (ops/found.c)
static void call_positions(Callee *c) { hole_count(c); }

static void call_unique(Callee *c) {
    const Type *t = &c->n->in[0]->type;
    int64_t rows = dim_upper(c->g, t->dim[0]);
    hole_text(c, "BEFORE", HOLE_OWN, "before");
    holes_element(c, t->dtype, "ELEMENT", "KEY", "LOAD");
    hole_size(c, "ROWS", t->dim[0]);
    hole_size(c, "COLUMNS", t->dim[1]);
    hole(c, "FLOAT", dtype_is_float(t->dtype));
    hole(c, "STRING", t->dtype == DT_STRING);
    hole(c, "SORTED", node_int(c->n, "sorted", 1) != 0);
    needs_scratch(c, 2 * rows * (int64_t)sizeof(int64_t));
    c->k->flops = (double)type_count_upper(c->g, t) * log2_of(rows);
}

static void call_suppress(Callee *c) {
    enum { BLOCK = 32, MANY = 1024, CELLS = 64 };       // two vectors of the widest; taken boxes that are worth cells
    const Type *scores = &c->n->in[1]->type;
    int count;
    Dim most = node_ints(c->n, "sizes", &count)[0];
    const int64_t boxes = dim_upper(c->g, scores->dim[2]), cells = dim_upper(c->g, most) >= MANY ? CELLS : 1,
                  blocks = (dim_upper(c->g, most) + cells * (BLOCK - 1)) / BLOCK;
    hole_text(c, "RANK", HOLE_OWN, "rank");
    hole_text(c, "SINK", HOLE_OWN, "sink");
    hole_text(c, "CELL", HOLE_OWN, "cell");
    hole_text(c, "FREE", HOLE_OWN, "free");
    hole_text(c, "CORNERS", HOLE_OWN, "corners");
    hole_text(c, "OVERLAPS", HOLE_OWN, "overlaps");
    hole_text(c, "NEAR", HOLE_OWN, "near");
    hole_size(c, "BATCH", scores->dim[0]);
    hole_size(c, "CLASSES", scores->dim[1]);
    hole_size(c, "BOXES", scores->dim[2]);
    hole_size(c, "MOST", most);
    hole(c, "CENTERED", node_int(c->n, "centered", 0) != 0);
    hole(c, "BLOCK", BLOCK);
    hole(c, "CELLS", cells);
    hole(c, "BLOCKS", blocks);
    needs_scratch(c, boxes * (int64_t)sizeof(uint64_t) + blocks * (int64_t)(5 * BLOCK * sizeof(float) + sizeof(int32_t))
            + 2 * cells * (int64_t)sizeof(int32_t));
    c->k->flops = (double)type_count_upper(c->g, scores) * log2_of(boxes);
}

// ---------------------------------------------------------------- windows (ops/window.c)
// The spatial axes are the last of D H W.
static void holes_axis(Callee *c, const Geometry *w, int axis, const Type *x, const Type *y, int at) {
    static const char *const names[3][6] = { { "D", "OD", "KD", "SD", "LD", "PD" },
        { "H", "OH", "KH", "SH", "LH", "PH" }, { "W", "OW", "KW", "SW", "LW", "PW" } };
    const char *const *name = names[axis];
    int i = axis - 3 + w->spatial;
    hole_size(c, name[0], i < 0 ? 1 : x->dim[at + i]);
    hole_size(c, name[1], i < 0 ? 1 : y->dim[at + i]);
    hole(c, name[2], i < 0 ? 1 : w->kernel[i]);
    hole(c, name[3], i < 0 ? 1 : w->stride[i]);
    hole(c, name[4], i < 0 ? 1 : w->dilation[i]);
    hole(c, name[5], i < 0 ? 0 : w->lo[i]);
}

static void call_window_max_grad(Callee *c) {
    enum { FEW = 16, MOST_LANES = 16, LEAST_LANES = 4 };
    const Node *n = c->n;
    const Type *x = &n->in[0]->type, *y = &n->in[1]->type;
    bool last = spatial_axis(n) == 1, apart = true;
    const Dim channels = last ? x->dim[x->rank - 1] : 1;
    int count, lanes = MOST_LANES;
    const int64_t *kernel = node_ints(n, "kernel", &count), taps = op_table[n->op].work(n);
    Geometry w = geometry_of(n, count, kernel);
    for (int i = 0; i < w.spatial; i++)
        apart = apart && (y->dim[spatial_axis(n) + i] == 1 || w.stride[i] > (w.kernel[i] - 1) * w.dilation[i]);
    while (lanes > 1 && dim_lower(c->g, channels) < lanes) lanes = lanes > LEAST_LANES ? lanes / 2 : 1;
    hole_size(c, "OUTER", last ? x->dim[0] : product(c->g, x, 0, 2));
    hole_size(c, "CHANNELS", channels);
    for (int axis = 0; axis < 3; axis++) holes_axis(c, &w, axis, x, y, spatial_axis(n));
    hole(c, "APART", apart);
    hole(c, "LANES", lanes);
    hole_text(c, "UNROLL", HOLE_NAME, taps <= FEW ? "BURN_UNROLL" : "");
    hole_text(c, "VECTOR", HOLE_OWN, "vector");
    hole_text(c, "ELEMENT", HOLE_OWN, "element");
    hole_text(c, "WINDOW", HOLE_OWN, "window");
    hole_text(c, "BOUND", HOLE_OWN, "bound");
    c->k->flops = (double)type_count_upper(c->g, y) * (double)taps / lanes;
}

// ---------------------------------------------------------------- images (ops/image.c)
static void call_image_size(Callee *c) { hole_count(c); }

static void call_image_decode(Callee *c) {
    const Type *t = &c->n->out[0]->type;
    hole_count(c);
    hole(c, "LAYOUT", node_int(c->n, "layout", 0));
    hole_size(c, "HEIGHT", t->dim[0]);
    hole_size(c, "WIDTH", t->dim[1]);
}

// ---------------------------------------------------------------- the model's own (ops/custom.c)
// A Custom node's text is codegen's matter.
static void call_custom(Callee *c) {
    int count;
    const Dim *sizes = node_ints(c->n, "sizes", &count);
    for (int i = 0; i < count; i++) kernel_sizes(c->a, c->k, c->g, sizes[i]);
    if (custom_points(c->n, &c->k->call.points)) kernel_sizes(c->a, c->k, c->g, c->k->call.points);
}

typedef struct CallRow { Op op; Template text; const char *wanted[2]; int fails; void (*fill)(Callee *c); } CallRow;

static const CallRow rows[] = {
    { OP_Sort, { .file = "c/sort.c", .parts = PARTS }, { "VALUES", "POSITIONS" }, 0, call_sort },
    { OP_Positions, { .file = "c/positions.c" }, { NULL }, 0, call_positions },
    { OP_Unique, { .file = "c/unique.c" }, { NULL }, 0, call_unique },
    { OP_Suppress, { .file = "c/nms.c" }, { NULL }, 0, call_suppress },
    { OP_WindowMaxGrad, { .file = "c/window_max_grad.c", .parts = PARTS }, { NULL }, 0, call_window_max_grad },
    { OP_StringFind, { .file = "c/string_find.c" }, { NULL }, 0, call_string_find },
    { OP_StringMatch, { .file = "c/string_match.c" }, { NULL }, 0, call_string_match },
    { OP_StringConcat, { .file = "c/string_concat.c" }, { NULL }, -5, call_string_concat },
    { OP_StringCase, { .file = "c/string_case.c" }, { NULL }, -5, call_string_case },
    { OP_StringParts, { .file = "c/string_split.c" }, { NULL }, 0, call_string_split },
    { OP_StringSplit, { .file = "c/string_split.c" }, { NULL }, -5, call_string_split },
    { OP_StringFormat, { .file = "c/string_format.c" }, { NULL }, -5, call_string_format },
    { OP_StringParse, { .file = "c/string_parse.c" }, { NULL }, 0, call_string_parse },
    { OP_NGrams, { .file = "c/ngrams.c" }, { NULL }, 0, call_ngrams },
    { OP_ImageSize, { .file = "c/image_size.c" }, { NULL }, -6, call_image_size },
    { OP_ImageDecode, { .file = "c/image_decode.c" }, { NULL }, -6, call_image_decode },
    { OP_Custom, { .file = NULL }, { NULL }, 0, call_custom },
};

static const CallRow *row_of(Op op) {
    for (size_t i = 0; i < COUNT(rows); i++)
        if (rows[i].op == op) return &rows[i];
    return NULL;
}

Kernel *kernel_call(const Plan *p, Node *n, const bool *wanted) {
    const CallRow *row = row_of(n->op);
    Arena *a = p->arena;
    Kernel *k = NEW(a, Kernel);
    Callee c = { a, p, p->graph, k, n, wanted };
    k->kind = KERNEL_CALL;
    k->exprs = expr_pool_new(a);
    k->anchor = n;
    if (row) {
        k->template = row->text.file ? &row->text : NULL;
        k->call.fails = row->fails;
    }
    VEC_PUSH(a, k->nodes, n);
    for (int i = 0; i < n->n_in; i++) {
        if (!n->in[i]) continue;
        VEC_PUSH(a, k->call.args, n->in[i]);
        kernel_read(a, k, n->in[i]);
        kernel_moves(k, type_bytes_upper(p->graph, &n->in[i]->type));
    }
    for (int i = 0; i < n->n_out; i++) {
        const char *name = row && i < (int)COUNT(row->wanted) ? row->wanted[i] : NULL;
        if (name) hole(&c, name, wanted[i]);
        if (!n->out[i] || (name && !wanted[i])) continue;
        VEC_PUSH(a, k->call.args, n->out[i]);
        VEC_PUSH(a, k->writes, n->out[i]);
        kernel_moves(k, type_bytes_upper(p->graph, &n->out[i]->type));
    }
    if (row) row->fill(&c);
    return k;
}
