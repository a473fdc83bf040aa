// SPDX-License-Identifier: MIT OR Apache-2.0
// Strings: search in a table, automata, joining, splitting, case, and numbers as text. Each is a called template
// (schedule/call.c), for a string's length is known to nobody; what only moves strings (views, gathers, Where) is
// compiled as for any other element. Here: the shapes, and the plain reference that constants are folded with. New
// strings live in the graph's arena.
#include "common.h"
#include "table.h"

#include "unicode.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char *string_at(const Tensor *t, int64_t i) {
    const char *s = ((const char *const *)t->data)[i];
    return s ? s : "";
}

static bool wants_strings(Node *n, int upto) {
    for (int i = 0; i < upto; i++) {
        if (n->in[i] && n->in[i]->type.dtype == DT_STRING) continue;
        diag_error(n->loc, "%s wants strings, input %d is %s", op_table[n->op].name, i, value_type_text(n->in[i]));
        return false;
    }
    return true;
}

static bool like_input(Node *n, DType d) {
    n->out[0]->type = n->in[0]->type;
    n->out[0]->type.dtype = d;
    return true;
}

// ---------------------------------------------------------------- search
bool shape_string_find(Node *n) {
    if (!wants_strings(n, 2)) return false;
    if (n->in[1]->type.rank == 1) return like_input(n, DT_I64);
    diag_error(n->loc, "the table must be a vector, it is %s", value_type_text(n->in[1]));
    return false;
}

bool eval_string_find(const Node *n, Tensor *const *in, Tensor *const *out) {
    int64_t count = type_count(&in[0]->type), keys = type_count(&in[1]->type);
    (void)n;
    for (int64_t i = 0; i < count; i++) {
        int64_t found = -1;
        for (int64_t k = 0; k < keys && found < 0; k++)
            if (!strcmp(string_at(in[0], i), string_at(in[1], k))) found = k;
        tensor_set_i(out[0], i, found);
    }
    return true;
}

bool shape_string_match(Node *n) {
    if (!wants_strings(n, 1)) return false;
    const Type *classes = &n->in[1]->type, *next = &n->in[2]->type;
    if (classes->dtype == DT_U8 && classes->rank == 1 && classes->dim[0] == 256 && next->rank == 2
        && (next->dtype == DT_I32 || next->dtype == DT_U16))
        return like_input(n, DT_I64);
    diag_error(n->loc, "an automaton is u8[256] and i32 or u16 [states, classes], here %s and %s",
        value_type_text(n->in[1]), value_type_text(n->in[2]));
    return false;
}

bool eval_string_match(const Node *n, Tensor *const *in, Tensor *const *out) {
    int64_t count = type_count(&in[0]->type), classes = in[2]->type.dim[1];
    (void)n;
    for (int64_t i = 0; i < count; i++) {
        int64_t state = 0;
        for (const char *s = string_at(in[0], i); *s; s++) {
            const int64_t class = tensor_get_i(in[1], (unsigned char)*s);
            if (state < 0 || state >= in[2]->type.dim[0] || class >= classes) return false;
            state = tensor_get_i(in[2], state * classes + class);
        }
        tensor_set_i(out[0], i, state);
    }
    return true;
}

// ---------------------------------------------------------------- joining and case
bool shape_string_concat(Node *n) {
    if (!wants_strings(n, 2)) return false;
    if (type_equal(&n->in[0]->type, &n->in[1]->type)) return like_input(n, DT_STRING);
    diag_error(n->loc, "the shapes differ: %s and %s", value_type_text(n->in[0]), value_type_text(n->in[1]));
    return false;
}

bool eval_string_concat(const Node *n, Tensor *const *in, Tensor *const *out) {
    int64_t count = type_count(&in[0]->type);
    for (int64_t i = 0; i < count; i++)
        ((const char **)out[0]->data)[i] = arena_printf(
            n->graph->arena, "%s%s", string_at(in[0], i), string_at(in[1], i));
    return true;
}

bool shape_string_case(Node *n) { return wants_strings(n, 1) && like_input(n, DT_STRING); }

bool eval_string_case(const Node *n, Tensor *const *in, Tensor *const *out) {
    int64_t count = type_count(&in[0]->type);
    for (int64_t i = 0; i < count; i++)
        ((const char **)out[0]->data)[i] = string_to_case(
            n->graph->arena, string_at(in[0], i), node_int(n, "upper", 0) != 0);
    return true;
}

// ---------------------------------------------------------------- splitting
// The next part of *s, which moves behind it; NULL after the last. An empty delimiter is white space, runs of it
// count once.
static const char *next_part(const char **s, const char *delimiter, bool whole, size_t *length) {
    static const char space[] = " \t\n\v\f\r";
    size_t n = strlen(delimiter);
    const char *from = *s;
    if (!from) return NULL;
    if (!n) {
        from += strspn(from, space);
        if (!*from) return *s = NULL;
        *length = whole ? strlen(from) : strcspn(from, space);
        *s = whole ? NULL : from + *length;
        return from;
    }
    const char *end = whole ? NULL : strstr(from, delimiter);
    *length = end ? (size_t)(end - from) : strlen(from);
    *s = end ? end + n : NULL;
    return from;
}

static int64_t split(const Node *n, const char *s, const char **parts, int64_t room) {
    const char *delimiter = node_string(n, "delimiter", ""), *part;
    int64_t most = node_int(n, "maxsplit", -1), count = 0;
    size_t length;
    while ((part = next_part(&s, delimiter, most >= 0 && count >= most, &length))) {
        if (parts && count < room) parts[count] = arena_strndup(n->graph->arena, part, length);
        count++;
    }
    return count;
}

bool shape_string_parts(Node *n) { return wants_strings(n, 1) && like_input(n, DT_I64); }

bool eval_string_parts(const Node *n, Tensor *const *in, Tensor *const *out) {
    int64_t count = type_count(&in[0]->type);
    for (int64_t i = 0; i < count; i++) tensor_set_i(out[0], i, split(n, string_at(in[0], i), NULL, 0));
    return true;
}

bool shape_string_split(Node *n) {
    const int64_t *size;
    if (!wants_strings(n, 1) || !op_ints(n, "sizes", 1, &size)) return false;
    Type *t = &n->out[0]->type;
    *t = n->in[0]->type;
    if (t->rank == MAX_RANK) {
        diag_error_as(EXIT_LIMIT, n->loc, "the result has more than %d dimensions", MAX_RANK);
        return false;
    }
    t->dim[t->rank++] = *size;
    return true;
}

bool eval_string_split(const Node *n, Tensor *const *in, Tensor *const *out) {
    int64_t count = type_count(&in[0]->type), room = out[0]->type.dim[out[0]->type.rank - 1];
    const char **to = out[0]->data;
    for (int64_t i = 0; i < count; i++, to += room)
        for (int64_t k = split(n, string_at(in[0], i), to, room); k < room; k++) to[k] = "";
    return true;
}

// ---------------------------------------------------------------- numbers
bool shape_string_format(Node *n) {
    if (n->in[0]->type.dtype != DT_BOOL && !op_numeric(n, n->in[0])) return false;
    return like_input(n, DT_STRING);
}

// The fewest digits that give the number back, plain where the exponent is -5..15.
static const char *float_text(Arena *a, DType d, double v) {
    char s[40], digits[24];
    if (isnan(v)) return "NaN";
    if (isinf(v)) return v < 0 ? "-INF" : "INF";
    int p = 0;
    do snprintf(s, sizeof s, "%.*e", p, v);
    while (++p < 17 && (d == DT_F64 ? strtod(s, NULL) != v : (float)strtod(s, NULL) != (float)v));
    int exponent = atoi(strchr(s, 'e') + 1), n = 0;
    for (const char *c = s; *c != 'e'; c++)
        if (*c >= '0' && *c <= '9') digits[n++] = *c;
    while (n > 1 && digits[n - 1] == '0') n--;
    digits[n] = 0;
    const char *sign = signbit(v) ? "-" : "";
    if (exponent < -5 || exponent > 15)
        return arena_printf(a, "%s%c%s%se%+03d", sign, digits[0], n > 1 ? "." : "", digits + 1, exponent);
    if (exponent < 0) return arena_printf(a, "%s0.%.*s%s", sign, -exponent - 1, "0000", digits);
    if (n <= exponent + 1) return arena_printf(a, "%s%s%.*s", sign, digits, exponent + 1 - n, "0000000000000000");
    return arena_printf(a, "%s%.*s.%s", sign, exponent + 1, digits, digits + exponent + 1);
}

bool eval_string_format(const Node *n, Tensor *const *in, Tensor *const *out) {
    int64_t count = type_count(&in[0]->type);
    Arena *a = n->graph->arena;
    DType d = in[0]->type.dtype;
    for (int64_t i = 0; i < count; i++) {
        Scalar x = element_get(in[0], i);
        const char *s = dtype_is_float(d) ? float_text(a, d, x.f) :
            d == DT_U64                   ? arena_printf(a, "%llu", (unsigned long long)x.u) :
                                            arena_printf(a, "%lld", (long long)x.i);
        ((const char **)out[0]->data)[i] = s;
    }
    return true;
}

bool shape_string_parse(Node *n) {
    DType to = (DType)node_int(n, "to", DT_NONE);
    if (!wants_strings(n, 1)) return false;
    if (to == DT_F64 || to == DT_I64) return like_input(n, to);
    diag_error(n->loc, "strings are read as f64 or i64");
    return false;
}

// Decimal numbers, INF and NaN; what is none is 0.
static double parse_float(const char *s) {
    s += strspn(s, " \t\n\v\f\r");
    bool minus = *s == '-';
    s += *s == '-' || *s == '+';
    if (!strncasecmp(s, "inf", 3)) return minus ? -INFINITY : INFINITY;
    if (!strncasecmp(s, "nan", 3)) return NAN;
    if (!strchr("0123456789.", *s) || s[strspn(s, "0")] == 'x' || s[strspn(s, "0")] == 'X') return 0;
    double v = strtod(s, NULL);
    return minus ? -v : v;
}

static int64_t parse_int(const char *s) {
    const char *t = s + strspn(s, " \t\n\v\f\r");
    bool minus = *t == '-';
    t += *t == '-' || *t == '+';
    size_t digits = strspn(t, "0123456789");
    if (digits && digits < 20 && (!t[digits] || strchr(" \t\n\v\f\r", t[digits]))) {
        uint64_t v = strtoull(t, NULL, 10);
        return (int64_t)(minus ? 0 - v : v);
    }
    double v = parse_float(s);
    return isnan(v) ? 0 : v >= 0x1p63 ? INT64_MAX : v < -0x1p63 ? INT64_MIN : (int64_t)v;
}

bool eval_string_parse(const Node *n, Tensor *const *in, Tensor *const *out) {
    int64_t count = type_count(&in[0]->type);
    (void)n;
    for (int64_t i = 0; i < count; i++) {
        if (out[0]->type.dtype == DT_I64) tensor_set_i(out[0], i, parse_int(string_at(in[0], i)));
        else tensor_set_f(out[0], i, parse_float(string_at(in[0], i)));
    }
    return true;
}

// ---------------------------------------------------------------- n-grams
// The pool holds for each length the n-grams of that length in order; a row of `lengths` is the length, where its
// n-grams begin in the pool, and how many there are before them. `column` says for each n-gram where it is counted.
bool shape_ngrams(Node *n) {
    for (int i = 0; i < 4; i++)
        if (n->in[i]->type.dtype != DT_I64 || (i != 1 && i != 2 && n->in[i]->type.rank != 2)) {
            diag_error(n->loc, "n-grams: input %d is %s", i, value_type_text(n->in[i]));
            return false;
        }
    const int64_t columns = node_int(n, "columns", 0), skips = node_int(n, "skips", 0);
    if (columns < 0 || skips < 0 || skips > INT32_MAX || n->in[3]->type.dim[1] != 3) {
        diag_error(n->loc, "n-grams: %lld columns, %lld skips and lengths %s", (long long)columns, (long long)skips,
            value_type_text(n->in[3]));
        return false;
    }
    n->out[0]->type = type_make(DT_F32, 2, (Dim[]){ n->in[0]->type.dim[0], columns });
    return true;
}

static bool gram_at(const int64_t *x, int64_t step, const int64_t *gram, int64_t length) {
    for (int64_t i = 0; i < length; i++)
        if (x[i * step] != gram[i]) return false;
    return true;
}

static void count_grams(const int64_t *x, int64_t size, int64_t skips, const int64_t *pool, const int64_t *column,
    const int64_t *lengths, int64_t end, float *to) {
    int64_t length = lengths[0], grams = end - lengths[2];
    for (int64_t step = 1; step <= (length == 1 ? 1 : skips + 1) && (length - 1) * step < size; step++)
        for (int64_t at = 0; at + (length - 1) * step < size; at++)
            for (int64_t k = 0; k < grams; k++)
                if (gram_at(x + at, step, pool + lengths[1] + k * length, length)) to[column[lengths[2] + k]]++;
}

// Do the n-grams of a length lie in the pool, and their columns in the result?
static bool grams_fit(Tensor *const *in, const int64_t *lengths, int64_t end, int64_t columns) {
    const int64_t pool = type_count(&in[1]->type), all = type_count(&in[2]->type), *column = in[2]->data;
    if (lengths[0] < 1 || lengths[1] < 0 || lengths[1] > pool || lengths[2] < 0 || lengths[2] > end || end > all
        || end - lengths[2] > (pool - lengths[1]) / lengths[0])
        return false;
    for (int64_t i = lengths[2]; i < end; i++)
        if (column[i] < 0 || column[i] >= columns) return false;
    return true;
}

bool eval_ngrams(const Node *n, Tensor *const *in, Tensor *const *out) {
    int64_t rows = in[0]->type.dim[0], size = in[0]->type.dim[1], columns = out[0]->type.dim[1],
            kinds = in[3]->type.dim[0], all = type_count(&in[2]->type);
    memset(out[0]->data, 0, (size_t)type_bytes(&out[0]->type));
    for (int64_t r = 0; r < rows; r++)
        for (int64_t k = 0; k < kinds; k++) {
            const int64_t *lengths = (const int64_t *)in[3]->data + 3 * k, end = k + 1 < kinds ? lengths[5] : all;
            if (!grams_fit(in, lengths, end, columns)) return false;
            count_grams((const int64_t *)in[0]->data + r * size, size, node_int(n, "skips", 0), in[1]->data,
                in[2]->data, lengths, end, (float *)out[0]->data + r * columns);
        }
    return true;
}
