// SPDX-License-Identifier: MIT OR Apache-2.0
// Builders on strings: sorted tables and searches in them, matching a pattern, counting n-grams; casts from and to
// numbers.
//
// In: tensors of strings, words that are known. Out: the few string operations of ops/string.c around gathers, maps and
// reductions. The idea: a search in a sorted table makes strings numbers, a gather makes numbers strings, and
// everything between is as for any tensor.
#include "build/build.h"
#include "build/regex.h"

#include <stdlib.h>
#include <string.h>

// ---------------------------------------------------------------- tables

Value *b_strings(Graph *g, int count, const char *const *strings) {
    Tensor *t = tensor_new(g->arena, type_make(DT_STRING, 1, (Dim[]){ count }));
    for (int i = 0; i < count; i++) ((const char **)t->data)[i] = strings[i];
    return graph_const(g, t, NULL);
}

typedef struct Entry { const char *s; int at; } Entry;

static int by_string(const void *x, const void *y) {
    const Entry *a = x, *b = y;
    int order = strcmp(a->s, b->s);
    return order ? order : a->at - b->at;
}

Value *b_string_table(Graph *g, int count, const char *const *strings, int *kept, int64_t *first) {
    Entry *entries = NEW_ARRAY(g->arena, Entry, count + 1);
    const char **sorted = NEW_ARRAY(g->arena, const char *, count + 1);
    for (int i = 0; i < count; i++) entries[i] = (Entry){ strings[i], i };
    qsort(entries, (size_t)count, sizeof *entries, by_string);
    *kept = 0;
    for (int i = 0; i < count; i++) {
        if (i && !strcmp(entries[i].s, entries[i - 1].s)) continue;
        first[*kept] = entries[i].at;
        sorted[(*kept)++] = entries[i].s;
    }
    return b_strings(g, *kept, sorted);
}

Value *b_string_find(Graph *g, Value *x, Value *table) {
    return x && table ? b_finish(graph_node(g, OP_StringFind, 2, (Value *[]){ x, table }, 1)) : NULL;
}

int b_string_place(const Value *table, const char *s) {
    const char *const *sorted = table->data->data;
    int low = 0, high = (int)table->type.dim[0] - 1;
    while (low < high) {
        int mid = (low + high) / 2;
        if (strcmp(sorted[mid], s) < 0) low = mid + 1;
        else high = mid;
    }
    return low;
}

Value *b_string_case(Graph *g, Value *x, bool upper) {
    if (!x) return NULL;
    Node *node = graph_node(g, OP_StringCase, 1, &x, 1);
    node_set_int(node, "upper", upper);
    return b_finish(node);
}

Value *b_not_among(Graph *g, Value *x, int count, const char *const *among, bool sensitive) {
    const char **words = NEW_ARRAY(g->arena, const char *, count + 1);
    int64_t *first = NEW_ARRAY(g->arena, int64_t, count + 1);
    int kept;
    memcpy(words, among, sizeof *words * (size_t)count);
    if (!sensitive) {                                   // the words and the elements in lower case
        Tensor *lower = value_const(b_string_case(g, b_strings(g, count, words), false));
        if (!lower) return NULL;
        memcpy(words, lower->data, sizeof *words * (size_t)count);
        x = b_string_case(g, x, false);
    }
    Value *at = b_string_find(g, x, b_string_table(g, count, words, &kept, first));
    return at ? B_MAP(g, "x < 0", "x", at) : NULL;
}

Value *b_cast_string(Graph *g, Value *x, DType to) {
    if (to == DT_STRING) return b_finish(graph_node(g, OP_StringFormat, 1, &x, 1));
    bool whole = dtype_is_int(to);
    Node *node = graph_node(g, OP_StringParse, 1, &x, 1);
    node_set_int(node, "to", whole ? DT_I64 : DT_F64);
    return b_cast(g, b_finish(node), to);
}

// ---------------------------------------------------------------- patterns

Value *b_string_match(Graph *g, Value *x, const char *pattern) {
    Automaton a;
    const char *why = regex_compile(g->arena, pattern, &a);
    if (why) return graph_fail(g, "pattern \"%s\": %s", pattern, why);
    bool wide = a.n_states > UINT16_MAX;
    Tensor *class_of = tensor_new(g->arena, type_make(DT_U8, 1, (Dim[]){ 256 })),
           *accept = tensor_new(g->arena, type_make(DT_BOOL, 1, (Dim[]){ a.n_states }));
    Tensor *next = tensor_new(g->arena, type_make(wide ? DT_I32 : DT_U16, 2, (Dim[]){ a.n_states, a.n_classes }));
    memcpy(class_of->data, a.class_of, 256);
    for (int i = 0; i < a.n_states; i++) tensor_set_i(accept, i, a.accepts[i]);
    for (int64_t i = 0; i < (int64_t)a.n_states * a.n_classes; i++) tensor_set_i(next, i, a.next[i]);
    Value *state = b_finish(graph_node(
        g, OP_StringMatch, 3, (Value *[]){ x, graph_const(g, class_of, NULL), graph_const(g, next, NULL) }, 1));
    return b_gather(g, graph_const(g, accept, NULL), state, 0);
}

// ---------------------------------------------------------------- n-grams

typedef struct Gram { const int64_t *items; int64_t length, column; } Gram;

static int by_items(const void *x, const void *y) {
    const Gram *a = x, *b = y;
    for (int64_t i = 0; i < a->length; i++)
        if (a->items[i] != b->items[i]) return a->items[i] < b->items[i] ? -1 : 1;
    return (a->column > b->column) - (a->column < b->column);
}

typedef struct SortedGrams { VEC(int64_t) pool, column, lengths; int64_t columns; } SortedGrams;

// The n-grams of each length in range, sorted.
static bool collect_grams(Graph *g, const NGrams *o, SortedGrams *out) {
    Arena *a = g->arena;
    const int items = o->items, lengths = o->lengths, indices = o->indices;
    const int64_t *pool = o->pool, *from = o->from, *column = o->column;
    int64_t seen = 0;
    *out = (SortedGrams){ .columns = 0 };
    for (int i = 0; i < indices; i++) {
        if (column[i] < 0 || column[i] >= INT32_MAX)
            return graph_fail(g, "ngram_indexes has %lld", (long long)column[i]), false;
        if (column[i] >= out->columns) out->columns = column[i] + 1;
    }
    for (int64_t length = 1; length <= lengths; length++) {
        int64_t first = from[length - 1], end = length < lengths ? from[length] : items;
        int64_t count = first < 0 || end < first || end > items ? -1 : (end - first) / length;
        if (count < 0 || (end - first) % length || seen + count > indices)
            return graph_fail(g, "ngram_counts and ngram_indexes do not fit a pool of %d elements", items), false;
        Gram *grams = NEW_ARRAY(a, Gram, count + 1);
        for (int64_t i = 0; i < count; i++) grams[i] = (Gram){ pool + first + i * length, length, column[seen + i] };
        seen += count;
        if (length < o->least || length > o->most || !count) continue;
        qsort(grams, (size_t)count, sizeof *grams, by_items);
        VEC_PUSH(a, out->lengths, length);
        VEC_PUSH(a, out->lengths, out->pool.n);
        VEC_PUSH(a, out->lengths, out->column.n);
        for (int64_t i = 0; i < count; i++) {
            for (int64_t k = 0; k < length; k++) VEC_PUSH(a, out->pool, grams[i].items[k]);
            VEC_PUSH(a, out->column, grams[i].column);
        }
    }
    return true;
}

Value *b_ngrams(Graph *g, Value *x, const NGrams *o, int64_t *columns) {
    SortedGrams grams;
    if (!x || !collect_grams(g, o, &grams)) return NULL;
    int rank = x->type.rank;
    Dim dims[2] = { rank == 2 ? x->type.dim[0] : 1, rank ? x->type.dim[rank - 1] : 1 };
    x = b_reshape(g, x, 2, dims);
    Value *table[3] = { b_ints(g, grams.pool.n, grams.pool.at), b_ints(g, grams.column.n, grams.column.at),
        b_ints(g, grams.lengths.n, grams.lengths.at) };
    table[2] = b_reshape(g, table[2], 2, (Dim[]){ grams.lengths.n / 3, 3 });
    if (!x || !table[2]) return NULL;
    Node *node = graph_node(g, OP_NGrams, 4, (Value *[]){ x, table[0], table[1], table[2] }, 1);
    node_set_int(node, "skips", o->skips);
    node_set_int(node, "columns", *columns = grams.columns);
    return b_finish(node);
}
