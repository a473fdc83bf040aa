// SPDX-License-Identifier: MIT OR Apache-2.0
// Reads the text form that ir/print.c writes: tests are a few lines of it.
//
// In: text. Out: a graph whose values keep the ids of the text, or NULL with diagnostics that name line and column.
// The idea: recursive descent over the characters; a node is made and inferred as soon as its line is read, so shape
// rules speak at its place. A result's type may be left out; when it stands there it must be what the shape rule says.
// Text after `;` is a comment, except that `; node 17 "name" (Op)` and `; at 11:20 "name" (Op)` are the node's place
// in its model.
#include "ir/blocks.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ID 1000000
#define MAX_OPERANDS 4096
#define MAX_BODY_DEPTH 32
#define MAX_ORTHOGONAL (1 << 24)                // elements: their products are the cube of a side
#define MIN_BUDGET (INT64_C(1) << 30)           // bytes that constants may take, which is more for a long text

// A symbol whose size is element `at` of a value further down.
typedef struct Measured {
    int symbol, id, line;
    int64_t at;
    const char *start, *limit;                  // of the symbol's line; of what bounds it, NULL: a number
} Measured;

typedef struct Parser {
    Arena *a;
    const char *file, *at;
    const char *start, *token;                  // of the line; of what is being read
    int line, depth;
    bool failed;
    Value **values;                             // by id
    bool *ended;                                // by id: a body's, which is over
    int n_values;
    VEC(Measured) measured;
    const StrMap *blocks;                       // of large constants' data
    int64_t budget;                             // bytes that constants may still take
} Parser;

// The result that a line announces before its node is made.
typedef struct Result { int id; const char *name; Role role; bool typed; Type type; } Result;

static Loc here(const Parser *p) {
    return (Loc){ .file = p->file, .line = p->line, .column = (int)(p->token - p->start) + 1, .node = -1 };
}

static bool fail(Parser *p, const char *fmt, ...) PRINTF_LIKE(2, 3);

// One diagnostic per text: what follows the first mistake is guesswork.
static bool fail(Parser *p, const char *fmt, ...) {
    if (p->failed) return false;
    char message[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(message, sizeof message, fmt, ap);
    va_end(ap);
    Loc loc = here(p);
    diag_error(&loc, "%s", message);
    p->failed = true;
    return false;
}

// ---- words

static void space(Parser *p) {                  // within a line
    while (*p->at == ' ' || *p->at == '\t' || *p->at == '\r') p->at++;
    p->token = p->at;
}

static void lines(Parser *p) {                  // across lines and comments
    for (;; p->at++) {
        space(p);
        if (*p->at == ';') p->at += strcspn(p->at, "\n");
        if (*p->at != '\n') return;
        p->line++;
        p->start = p->at + 1;
    }
}

static bool take(Parser *p, const char *word) {
    space(p);
    size_t n = strlen(word);
    if (strncmp(p->at, word, n)) return false;
    if (isalpha((unsigned char)*word) && (isalnum((unsigned char)p->at[n]) || p->at[n] == '_')) return false;
    p->at += n;
    return true;
}

static bool want(Parser *p, const char *word) {
    if (take(p, word)) return true;
    if (!*p->at || *p->at == '\n') return fail(p, "expected `%s` before the line's end", word);
    return fail(p, "expected `%s` at `%.12s`", word, p->at);
}

static const char *word(Parser *p) {            // NULL when there is none
    space(p);
    const char *start = p->at;
    if (isalpha((unsigned char)*p->at) || *p->at == '_')
        while (isalnum((unsigned char)*p->at) || *p->at == '_' || *p->at == '.') p->at++;
    return p->at > start ? arena_strndup(p->a, start, (size_t)(p->at - start)) : NULL;
}

static const char *quoted(Parser *p) {
    Text t;
    text_init(&t, p->a);
    if (!want(p, "\"")) return NULL;
    for (; *p->at && *p->at != '"' && *p->at != '\n'; p->at++) {
        char c = *p->at;
        if (c == '\\') {
            char hex[3] = { p->at[1], p->at[1] ? p->at[2] : (char)0, 0 };
            if (!isxdigit((unsigned char)hex[0]) || !isxdigit((unsigned char)hex[1])) {
                fail(p, "expected two hexadecimal digits after \\");
                return NULL;
            }
            c = (char)strtol(hex, NULL, 16);
            p->at += 2;
        }
        text_append(&t, &c, 1);
    }
    return want(p, "\"") ? t.at : NULL;
}

static const char *name(Parser *p) {            // NULL when there is none
    space(p);
    return *p->at == '"' ? quoted(p) : word(p);
}

static bool integer(Parser *p, int64_t *v) {
    space(p);
    char *end;
    errno = 0;
    *v = strtoll(p->at, &end, 0);
    if (end == p->at || errno) return fail(p, "expected an integer at `%.12s`", p->at);
    p->at = end;
    return true;
}

static bool id(Parser *p, int *out) {
    int64_t v;
    if (!want(p, "%")) return false;
    if (!isdigit((unsigned char)*p->at)) return fail(p, "expected a number behind %%, found `%.12s`", p->at);
    if (!integer(p, &v)) return false;
    if (v < 0 || v >= MAX_ID) return fail(p, "%%%" PRId64 " is no id", v);
    *out = (int)v;
    return true;
}

static bool dim(Parser *p, Graph *g, Dim *d) {
    space(p);
    const char *start = p->at;
    *d = dim_parse(g, &p->at);
    return p->at != start || fail(p, "expected a dimension at `%.12s`", p->at);
}

static bool type(Parser *p, Graph *g, Type *t) {
    const char *w = word(p);
    *t = (Type){ 0 };
    if (!w || !dtype_parse(w, &t->dtype)) return fail(p, "expected an element type at `%.12s`", w ? w : p->at);
    if (!want(p, "[")) return false;
    if (take(p, "]")) return true;
    do {
        if (t->rank == MAX_RANK) return fail(p, "more than %d dimensions", MAX_RANK);
        if (!dim(p, g, &t->dim[t->rank++])) return false;
    } while (take(p, ","));
    if (!want(p, "]")) return false;
    if (!type_too_large(t)) return true;
    return fail(p, "%s is too large: a tensor may have %lld GiB", type_text(p->a, g, t),
        (long long)(MAX_TENSOR_BYTES >> 30));
}

// ---- values

static bool define(Parser *p, int i, Value *v) {
    if (p->values[i]) return fail(p, "%%%d is defined twice", i);
    p->values[i] = v;
    v->id = i;
    return true;
}

static bool operand(Parser *p, Value **v) {
    int i = 0;
    *v = NULL;
    if (take(p, "_")) return true;
    if (!id(p, &i)) return false;
    if (i >= p->n_values || !(*v = p->values[i]) || p->ended[i]) return fail(p, "%%%d is not defined here", i);
    return true;
}

static bool role(Parser *p, Role *out) {
    const char *w = word(p);
    return (w && role_parse(w, out)) || fail(p, "expected a role after @ at `%.12s`", w ? w : p->at);
}

static bool result(Parser *p, Graph *g, Result *r) {
    *r = (Result){ 0 };
    if (!id(p, &r->id)) return false;
    r->name = name(p);
    if (take(p, ":")) {
        r->typed = true;
        if (!type(p, g, &r->type)) return false;
        if (take(p, "@") && !role(p, &r->role)) return false;
    }
    return !p->failed;
}

static bool element(Parser *p, Tensor *t, int64_t i) {
    DType d = t->type.dtype;
    space(p);
    if (d == DT_STRING) {
        const char *s = quoted(p);
        ((const char **)t->data)[i] = s;
        return s != NULL;
    }
    char *end;
    errno = 0;
    if (dtype_is_float(d)) tensor_set_f(t, i, strtod(p->at, &end));
    else if (dtype_class(d) == CLASS_UINT) tensor_set_i(t, i, (int64_t)strtoull(p->at, &end, 0));
    else tensor_set_i(t, i, strtoll(p->at, &end, 0));
    if (end == p->at || (errno && !dtype_is_float(d))) return fail(p, "expected a number at `%.12s`", p->at);
    p->at = end;
    return true;
}

static bool complex_element(Parser *p, Tensor *t, int64_t i) {
    for (int k = 0; k < 2; k++) {
        char *end;
        if (k && !want(p, ",")) return false;
        space(p);
        double v = strtod(p->at, &end);
        if (end == p->at) return fail(p, "expected a number at `%.12s`", p->at);
        if (t->type.dtype == DT_C64) ((float *)t->data)[2 * i + k] = (float)v;
        else ((double *)t->data)[2 * i + k] = v;
        p->at = end;
    }
    return true;
}

static bool elements(Parser *p, Tensor *t) {
    bool is_complex = dtype_class(t->type.dtype) == CLASS_COMPLEX;
    if (!want(p, "{")) return false;
    for (int64_t i = 0, n = type_count(&t->type); i < n; i++) {
        if (i && !want(p, ",")) return false;
        if (!(is_complex ? complex_element : element)(p, t, i)) return false;
    }
    return want(p, "}");
}

// The data under a key, behind the graph.
static bool block(Parser *p, Tensor *t) {
    char *end;
    space(p);
    uint64_t key = strtoull(p->at, &end, 16);
    const char *at = block_at(p->blocks, key);
    if (!at) return fail(p, "this constant's data were left out when it was printed");
    p->at = end;
    if (t->type.dtype != DT_STRING) {
        const char *why = block_read(at, t);
        return !why || fail(p, "%s", why);
    }
    const Parser back = *p;
    for (const char *c = p->at; c < at; c++) {
        if (*c != '\n') continue;
        p->line++;
        p->start = c + 1;
    }
    p->at = at;
    if (!elements(p, t)) return false;
    p->at = back.at;
    p->line = back.line;
    p->start = back.start;
    return true;
}

// The elements of a constant of type t.
static bool tensor_of(Parser *p, const Graph *g, const Type *t, Tensor **out) {
    if (!type_is_static(t)) return fail(p, "a constant has no symbolic dimensions");
    if (type_bytes_upper(g, t) > p->budget) return fail(p, "constants far larger than the text");
    p->budget -= type_bytes(t);
    int64_t n = type_count(t);
    bool is_block = take(p, "hash"), is_fill = !is_block && take(p, "fill");
    if (!is_block && !is_fill && memchr(p->at, 0, (size_t)n)) return fail(p, "expected %lld elements", (long long)n);
    Tensor *v = *out = tensor_new(p->a, *t);
    if (is_block) return block(p, v);
    if (is_fill) {
        size_t size = dtype_size(t->dtype);
        if (n == 0 || !element(p, v, 0)) return false;
        for (int64_t i = 1; i < n; i++) memcpy((char *)v->data + (size_t)i * size, v->data, size);
        return true;
    }
    return elements(p, v);
}

// ---- attributes

static bool number_list(Parser *p, Graph *g, Node *n, const char *key) {
    VEC(int64_t) ints = { 0 };
    VEC(double) floats = { 0 };
    bool is_float = false,
         is_dims = !strcmp(key, "shape") || !strcmp(key, "starts") || !strcmp(key, "sizes") || !strcmp(key, "trips");
    if (!take(p, "]")) {
        do {
            Dim v = 0;
            double f = 0;
            space(p);
            if (is_dims) {
                if (!dim(p, g, &v)) return false;
            } else {
                char *end;
                f = strtod(p->at, &end);
                size_t length = (size_t)(end - p->at);
                if (!length) return fail(p, "expected a number at `%.12s`", p->at);
                if (strcspn(p->at, ".einEIN") < length) {
                    is_float = true;
                    p->at = end;
                } else if (!integer(p, &v)) return false;
            }
            VEC_PUSH(p->a, ints, v);
            VEC_PUSH(p->a, floats, f);
        } while (take(p, ","));
        if (!want(p, "]")) return false;
    }
    if (is_float) node_set_floats(n, key, floats.at, floats.n);
    else node_set_ints(n, key, ints.at, ints.n);
    return true;
}

static bool map_expr(Parser *p, Graph *g, Node *n) {
    static const char *const letters[] = { "x", "y", "z", "w" };
    const char *text = quoted(p), *error = NULL;
    if (!text) return false;
    const char **names = NEW_ARRAY(p->a, const char *, n->n_in);
    Expr **bound = NEW_ARRAY(p->a, Expr *, n->n_in);
    for (int i = 0; i < n->n_in; i++) {
        if (!n->in[i]) return fail(p, "a Map has no optional operands");
        names[i] = i < (int)COUNT(letters) ? letters[i] : arena_printf(p->a, "a%d", i);
        bound[i] = expr_arg(g->exprs, i, n->in[i]->type.dtype);
    }
    n->expr = expr_parse(g->exprs, text, n->n_in, names, bound, DT_NONE, &error);
    return n->expr || fail(p, "expression: %s", error);
}

static bool is_float_text(const char *s) {      // the number at s: 1.5, 1e3, inf, nan
    char *end;
    strtod(s, &end);
    return end > s && strcspn(s, ".einEIN") < (size_t)(end - s);
}

static bool attribute(Parser *p, Graph *g, Node *n) {
    const char *key = word(p), *w;
    if (!key || !want(p, "=")) return fail(p, "expected an attribute");
    space(p);
    if (!strcmp(key, "expr")) return map_expr(p, g, n);
    if (take(p, "[")) {
        space(p);
        return *p->at == '"' ? fail(p, "lists of strings cannot be read") : number_list(p, g, n, key);
    }
    if (*p->at == '"') {
        const char *s = quoted(p);
        if (s) node_set_string(n, key, s);
        return s != NULL;
    }
    if (is_float_text(p->at)) {
        char *end;
        node_set_float(n, key, strtod(p->at, &end));
        p->at = end;
        return true;
    }
    if (!isalpha((unsigned char)*p->at)) {
        int64_t v;
        if (!integer(p, &v)) return false;
        if (attr_is_dtype(key) && (v < DT_NONE || v >= DT_INDEX))
            return fail(p, "%s is an element type, such as f32, not %lld", key, (long long)v);
        node_set_int(n, key, v);
        return true;
    }
    const char *start = p->at;
    DType d;
    if (!(w = word(p)) || !dtype_parse(w, &d)) return fail(p, "expected a value at `%.12s`", start);
    if (*p->at != '[') {
        node_set_int(n, key, d);
        return true;
    }
    p->at = start;
    Type t;
    Tensor *data;
    if (!type(p, g, &t) || !tensor_of(p, g, &t, &data)) return false;
    node_set_tensor(n, key, data);
    return true;
}

// ---- lines

// What the comment `; node 17 "layer1/conv1" (Conv)` or `; at 11:20 "conv1" (conv2d)` behind a node says of its place
// in the model that it is from.
static void place(Parser *p, Loc *l) {
    space(p);
    const char *at = p->at;
    if (*at != ';') return;
    at += 1 + strspn(at + 1, " ");
    bool counted = !strncmp(at, "node ", 5) && isdigit((unsigned char)at[5]), placed = !strncmp(at, "at ", 3);
    char *end;
    if (counted) {
        l->node = (int)strtol(at + 5, &end, 10);
    } else if (placed && isdigit((unsigned char)at[3])) {
        l->line = (int)strtol(at + 3, &end, 10);
        l->column = *end == ':' ? (int)strtol(end + 1, &end, 10) : 0;
    } else return;
    p->at = end;
    space(p);
    if (*p->at == '"') l->name = quoted(p);
    if (take(p, "(")) {
        size_t length = strcspn(p->at, ")\n");
        l->op = arena_strndup(p->a, p->at, length);
        p->at += length;
        take(p, ")");
    }
}

static bool body_of(Parser *p, Graph *g);

// What a body computes and is given cannot be used behind it; its constants can.
static void end_body(Parser *p, const Graph *b) {
    for (int i = 0; i < b->inputs.n; i++) p->ended[b->inputs.at[i]->id] = true;
    for (const Node *n = b->first; n; n = n->next)
        for (int i = 0; i < n->n_out; i++) p->ended[n->out[i]->id] = true;
}

static bool bodies(Parser *p, Graph *g, Node *n) {
    VEC(Graph *) all = { 0 };
    for (;;) {
        Parser ahead = *p;
        lines(&ahead);
        if (!take(&ahead, "body")) break;
        *p = ahead;
        if (p->depth == MAX_BODY_DEPTH) return fail(p, "bodies are nested too deeply");
        Graph *b = graph_body(g, name(p));
        p->depth++;
        if (!body_of(p, b)) return false;
        end_body(p, b);
        p->depth--;
        VEC_PUSH(p->a, all, b);
    }
    n->bodies = all.at;
    n->n_bodies = all.n;
    return true;
}

static bool node(Parser *p, Graph *g, int n_results, const Result *results) {
    space(p);
    Loc *loc = NEW(p->a, Loc);
    *loc = here(p);
    const char *w = word(p);
    Op op;
    if (!w || !op_find(w, &op)) return fail(p, "there is no operation %s", w ? w : "here");
    loc->op = op_table[op].name;
    VEC(Value *) in = { 0 };
    if (!want(p, "(")) return false;
    if (!take(p, ")")) {
        do {
            Value *v;
            if (in.n == MAX_OPERANDS) return fail(p, "too many operands");
            if (!operand(p, &v)) return false;
            VEC_PUSH(p->a, in, v);
        } while (take(p, ","));
        if (!want(p, ")")) return false;
    }
    while (in.n > op_table[op].in_min && !in.at[in.n - 1]) in.n--;      // absent at the end is not there
    if (op_table[op].n_out >= 0 && op_table[op].n_out != n_results)
        return fail(p, "%s has %d results", w, op_table[op].n_out);
    Node *n = graph_node(g, op, in.n, in.at, n_results);
    if (take(p, "{")) {
        if (!take(p, "}")) {
            do if (!attribute(p, g, n)) return false;
            while (take(p, ","));
            if (!want(p, "}")) return false;
        }
    }
    place(p, loc);
    n->loc = loc;
    if (!bodies(p, g, n)) return false;
    int wants = op == OP_If ? 2 : op == OP_Loop ? 1 : 0;
    bool may = (op == OP_Gradient && n->n_bodies == 1) || op == OP_Custom;
    if (n->n_bodies != wants && !may) return fail(p, "%s has %d bodies, here are %d", w, wants, n->n_bodies);
    if (op == OP_Map && !n->expr) return fail(p, "a Map needs an expression");
    for (int i = 0; i < n_results; i++) {       // defined even when the shape rule fails, so that the rest can be read
        n->out[i]->name = results[i].name;
        n->out[i]->role = results[i].role;
        if (!define(p, results[i].id, n->out[i])) return false;
    }
    if (!node_infer(n)) {
        for (int i = 0; i < n_results; i++) n->out[i]->type = results[i].type;
        return true;
    }
    for (int i = 0; i < n_results; i++)
        if (results[i].typed && !type_equal(&results[i].type, &n->out[i]->type)) {
            diag_error(n->loc, "%%%d is %s", results[i].id, type_text(p->a, g, &n->out[i]->type));
            p->failed = true;
        }
    return !p->failed;
}

// Behind `draw`: KIND(NUMBERS), what the elements are to be drawn from.
static Value *drawn(Parser *p, Graph *g, const char *name, const Type *t) {
    Draw d = { 0 };
    const char *w = word(p);
    bool ok = w && draw_find(w, &d.kind) && want(p, "(");
    if (!type_is_static(t) || !dtype_is_float(t->dtype)) fail(p, "what is drawn are floats of known sizes");
    else if (ok && d.kind == DRAW_ORTHOGONAL && type_count(t) > MAX_ORTHOGONAL)
        fail(p, "orthogonal rows of more than %d elements take too long", MAX_ORTHOGONAL);
    if (!ok) fail(p, "expected KIND(NUMBERS), such as uniform(0, 1)");
    for (int i = 0; !p->failed && i < draw_count(d.kind); i++) {
        char *end;
        if (i && !want(p, ",")) break;
        space(p);
        d.of[i] = strtod(p->at, &end);
        if (end == p->at) fail(p, "expected a number at `%.12s`", p->at);
        p->at = end;
    }
    return !p->failed && want(p, ")") ? graph_drawn(g, name, *t, &d) : NULL;
}

static bool definition(Parser *p, Graph *g) {
    VEC(Result) results = { 0 };
    do {
        Result r;
        if (!result(p, g, &r)) return false;
        VEC_PUSH(p->a, results, r);
    } while (take(p, ","));
    if (!want(p, "=")) return false;
    if (!take(p, "const")) return node(p, g, results.n, results.at);
    bool trainable = take(p, "trainable");
    Type t;
    Tensor *data;
    if (results.n != 1) return fail(p, "a constant is one value");
    if (!type(p, g, &t)) return false;
    Value *v = take(p, "draw")       ? drawn(p, g, results.at[0].name, &t) :
        tensor_of(p, g, &t, &data)   ? graph_given(g, data, results.at[0].name) :
                                       NULL;
    if (!v) return false;
    v->trainable = trainable;
    return define(p, results.at[0].id, v);
}

// Behind `dim`: NAME LO..HI, perhaps `pinned` (then it is one size), perhaps `is %ID[ELEMENT]` and `<= LIMIT`,
// whose values and symbols may stand further down: what they are is looked up at the end. The order of lines is that
// of the symbols.
static bool symbol(Parser *p, Graph *g) {
    int64_t lo, hi, id;
    space(p);
    const char *name = symbol_parse(p->a, &p->at);
    if (!name || !integer(p, &lo) || !want(p, "..") || !integer(p, &hi)) return fail(p, "expected NAME LO..HI");
    Measured m = { .symbol = symbol_number(g, name), .line = p->line, .start = p->start };
    Symbol *s = &g->symbols.at[m.symbol];
    s->lo = lo;
    s->hi = hi;
    s->pinned = take(p, "pinned");
    if (lo < 0 || lo > hi) return fail(p, "a dimension's bounds are LO..HI with 0 <= LO <= HI");
    if (s->pinned && lo != hi) return fail(p, "a pinned dimension has one size, as in N..N");
    s->runtime = !s->pinned;
    if (!take(p, "is")) return true;
    if (!want(p, "%") || !integer(p, &id) || id < 0 || id >= p->n_values || !want(p, "[") || !integer(p, &m.at)
        || !want(p, "]"))
        return fail(p, "expected %%ID[ELEMENT]");
    m.id = (int)id;
    if (take(p, "<=")) {
        m.limit = p->at;
        p->at += strcspn(p->at, "\n");
    }
    VEC_PUSH(p->a, p->measured, m);
    return true;
}

static bool bind_measured(Parser *p, Graph *g) {
    for (int i = 0; i < p->measured.n; i++) {
        const Measured *m = &p->measured.at[i];
        Value *v = p->values[m->id];
        Dim limit = g->symbols.at[m->symbol].hi;
        p->line = m->line;
        p->start = p->token = m->start;
        if (!v || v->type.dtype != DT_I64)
            return fail(p, "%%%d, which a dimension is read from, is no value of i64", m->id);
        if (m->at < 0 || !type_is_static(&v->type) || m->at >= type_count(&v->type))
            return fail(p, "%%%d is %s: no element %" PRId64 " for a dimension to be read from", m->id,
                type_text(p->a, g, &v->type), m->at);
        p->at = m->limit;
        if (m->limit && !dim(p, g, &limit)) return false;
        Symbol *s = &g->symbols.at[m->symbol];
        s->from = v;
        s->at = m->at;
        s->limit = limit;
        s->runtime = true;
    }
    return true;
}

// Behind `bundle`: input or output, a name, what it is, and in parentheses the names of its tensors.
static bool bundle(Parser *p, Graph *g) {
    Bundle b = { .output = take(p, "output") };
    VEC(const char *) names = { 0 };
    if ((!b.output && !want(p, "input")) || !(b.name = name(p))) return fail(p, "expected input NAME or output NAME");
    b.optional = take(p, "optional");
    b.sequence = take(p, "sequence");
    b.stacked = take(p, "stacked");
    b.absent = take(p, "absent");
    if (!want(p, "(")) return false;
    if (!take(p, ")")) {
        do VEC_PUSH(p->a, names, name(p));
        while (take(p, ","));
        if (!want(p, ")")) return false;
    }
    for (int i = 0; i < names.n; i++)
        if (!names.at[i]) return fail(p, "expected a name");
    b.n = names.n;
    b.names = names.at;
    VEC_PUSH(p->a, g->bundles, b);
    return true;
}

// Behind `function`: a name, how many inputs and how many outputs are its own.
static bool function(Parser *p, Graph *g) {
    int64_t inputs, outputs;
    const char *called = name(p);
    if (!called || !integer(p, &inputs) || !integer(p, &outputs) || inputs < 0 || outputs < 0 || inputs > MAX_ID
        || outputs > MAX_ID)
        return fail(p, "expected NAME INPUTS OUTPUTS");
    VEC_PUSH(p->a, g->functions, (GraphFunction){ called, (int)inputs, (int)outputs });
    return true;
}

// Every input and output is some function's.
static bool functions_fit(Parser *p, const Graph *g) {
    int64_t inputs = 0, outputs = 0;
    for (int i = 0; i < g->functions.n; i++) {
        inputs += g->functions.at[i].inputs;
        outputs += g->functions.at[i].outputs;
    }
    if (!g->functions.n || (inputs == g->inputs.n && outputs == g->outputs.n)) return true;
    return fail(p, "the functions have %lld inputs and %lld outputs, the graph %d and %d", (long long)inputs,
        (long long)outputs, g->inputs.n, g->outputs.n);
}

static bool returns(Parser *p, Graph *g) {
    lines(p);
    while (*p->at == '%') {
        Value *v;
        if (!operand(p, &v)) return false;
        graph_output(g, v, name(p));
        if (!take(p, ",")) break;
        space(p);
    }
    lines(p);
    return want(p, "}");
}

static bool body_of(Parser *p, Graph *g) {      // from the inputs' parenthesis to the closing brace
    if (!want(p, "(")) return false;
    if (!take(p, ")")) {
        do {
            Result r;
            if (!result(p, g, &r)) return false;
            if (!r.typed) return fail(p, "input %%%d needs a type", r.id);
            Value *v = graph_input(g, r.name, r.type);
            v->role = r.role;
            if (!define(p, r.id, v)) return false;
        } while (take(p, ","));
        if (!want(p, ")")) return false;
    }
    if (!want(p, "{")) return false;
    for (;;) {
        lines(p);
        if (take(p, "return")) return returns(p, g);
        bool ok = *p->at == '%'                ? definition(p, g) :
            !g->parent && take(p, "dim")       ? symbol(p, g) :
            !g->parent && take(p, "bundle")    ? bundle(p, g) :
            !g->parent && take(p, "function")  ? function(p, g) :
            take(p, "dim")                     ? fail(p, "dimensions are of the outer graph") :
                                                 fail(p, "expected a line of a graph at `%.12s`", p->at);
        if (!ok) return false;
    }
}

static int highest_id(const char *text) {
    long top = -1;
    for (; (text = strchr(text, '%')); text++) {
        long v = isdigit((unsigned char)text[1]) ? strtol(text + 1, NULL, 10) : -1;
        if (v > top && v < MAX_ID) top = v;
    }
    return (int)top;
}

Graph *graph_parse(Arena *a, const char *text, const char *file) { return graph_parse_within(a, text, file, 0); }

Graph *graph_parse_within(Arena *a, const char *text, const char *file, int64_t constant_bytes) {
    Parser p = {
        .a = a, .file = file, .at = text, .start = text, .token = text, .line = 1, .n_values = highest_id(text) + 1
    };
    p.values = NEW_ARRAY(a, Value *, p.n_values);
    p.ended = NEW_ARRAY(a, bool, p.n_values);
    p.blocks = blocks_find(a, text);
    p.budget = (constant_bytes ? constant_bytes : MIN_BUDGET) + 16 * (int64_t)strlen(text);
    int errors = diag_errors();
    lines(&p);
    if (!want(&p, "graph")) return NULL;
    Graph *g = graph_new(a, name(&p), file);
    if (!body_of(&p, g)) return NULL;
    lines(&p);
    if (*p.at && !take(&p, "data")) fail(&p, "text after the graph");
    if (!bind_measured(&p, g) || !functions_fit(&p, g)) return NULL;
    g->value_count = p.n_values;                // the ids of the text replaced those given on the way
    return diag_errors() == errors ? g : NULL;
}
