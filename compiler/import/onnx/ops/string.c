// SPDX-License-Identifier: MIT OR Apache-2.0
// ONNX's operators on strings: joining, splitting, normalising, matching a pattern, counting n-grams; and casts from
// and to numbers.
//
// In: an OnnxNode. Out: the few string operations of ops/string.c around gathers, maps and reductions. The idea: a
// search in a sorted table makes strings numbers, a gather makes numbers strings, and everything between is as for
// any tensor.
#include "import/onnx/run/measure.h"
#include "regex.h"

#include <stdlib.h>
#include <string.h>

// What moves elements or compares them, without a look at what they are; and which of its inputs (bit i: input i,
// ALL: any) that goes for.
bool onnx_takes_strings(const char *op, int input) {
    enum { FIRST = 1, TWO = 3, ALL = -1 };
    static const struct { const char *op; int inputs;
    } rows[] = {
        { "ArrayFeatureExtractor", FIRST },
        { "Cast", FIRST },
        { "CastLike", TWO },
        { "CategoryMapper", FIRST },
        { "CenterCropPad", FIRST },
        { "Compress", FIRST },
        { "Concat", ALL },
        { "DepthToSpace", FIRST },
        { "Equal", TWO },
        { "Expand", FIRST },
        { "Flatten", FIRST },
        { "Gather", FIRST },
        { "GatherElements", FIRST },
        { "GatherND", FIRST },
        { "LabelEncoder", FIRST },
        { "OneHot", 1 << 2 },
        { "OneHotEncoder", FIRST },
        { "Pad", 1 | 1 << 2 },
        { "RegexFullMatch", FIRST },
        { "Reshape", FIRST },
        { "ReverseSequence", FIRST },
        { "Scatter", 1 | 1 << 2 },
        { "ScatterElements", 1 | 1 << 2 },
        { "ScatterND", 1 | 1 << 2 },
        { "Shape", FIRST },
        { "Size", FIRST },
        { "Slice", FIRST },
        { "SpaceToDepth", FIRST },
        { "Split", FIRST },
        { "Squeeze", FIRST },
        { "StringConcat", TWO },
        { "StringNormalizer", FIRST },
        { "StringSplit", FIRST },
        { "TensorScatter", TWO },
        { "TfIdfVectorizer", FIRST },
        { "Tile", FIRST },
        { "Transpose", FIRST },
        { "Unsqueeze", FIRST },
        { "Where", 1 << 1 | 1 << 2 },
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        if (!strcmp(rows[i].op, op)) return rows[i].inputs == ALL || (input < 31 && rows[i].inputs >> input & 1);
    return false;
}

// ---------------------------------------------------------------- tables

Value *onnx_strings(OnnxNode *n, int count, const char *const *strings) {
    Tensor *t = tensor_new(n->g->arena, type_make(DT_STRING, 1, (Dim[]){ count }));
    for (int i = 0; i < count; i++) ((const char **)t->data)[i] = strings[i];
    return graph_const(n->g, t, NULL);
}

typedef struct Entry { const char *s; int at; } Entry;

static int by_string(const void *x, const void *y) {
    const Entry *a = x, *b = y;
    int order = strcmp(a->s, b->s);
    return order ? order : a->at - b->at;
}

Value *onnx_string_table(OnnxNode *n, int count, const char *const *strings, int *kept, int64_t *first) {
    Entry *entries = NEW_ARRAY(n->g->arena, Entry, count + 1);
    const char **sorted = NEW_ARRAY(n->g->arena, const char *, count + 1);
    for (int i = 0; i < count; i++) entries[i] = (Entry){ strings[i], i };
    qsort(entries, (size_t)count, sizeof *entries, by_string);
    *kept = 0;
    for (int i = 0; i < count; i++) {
        if (i && !strcmp(entries[i].s, entries[i - 1].s)) continue;
        first[*kept] = entries[i].at;
        sorted[(*kept)++] = entries[i].s;
    }
    return onnx_strings(n, *kept, sorted);
}

Value *onnx_string_find(OnnxNode *n, Value *x, Value *table) {
    return x && table ? b_finish(graph_node(n->g, OP_StringFind, 2, (Value *[]){ x, table }, 1)) : NULL;
}

static bool all_strings(OnnxNode *n, int count) {
    if (!onnx_inputs(n, count)) return false;
    for (int i = 0; i < count; i++)
        if (n->in[i]->type.dtype != DT_STRING)
            return onnx_fail(
                       n, "input %d must be strings, it is %s", i, type_text(n->g->arena, n->g, &n->in[i]->type)),
                   false;
    return true;
}

// ---------------------------------------------------------------- joining and splitting

Value *onnx_string_concat(OnnxNode *n) {
    if (!all_strings(n, 2)) return NULL;
    Type t;
    Value *x[2];
    if (!type_broadcast(&t, &n->in[0]->type, &n->in[1]->type))
        return onnx_fail(n, "shapes do not broadcast: %s and %s", type_text(n->g->arena, n->g, &n->in[0]->type),
            type_text(n->g->arena, n->g, &n->in[1]->type));
    for (int i = 0; i < 2; i++) {
        x[i] = type_equal(&t, &n->in[i]->type) ? n->in[i] : b_expand(n->g, n->in[i], t.rank, t.dim);
        if (!x[i]) return NULL;
    }
    return b_finish(graph_node(n->g, OP_StringConcat, 2, x, 1));
}

// The number of parts of the string that has most is only known to the running program; MANY where nothing bounds it.
static bool most_parts(OnnxNode *n, Value *counts, int64_t cuts, Dim *d) {
    enum { MANY = 64 };
    Graph *g = n->g;
    const int64_t axis = 0;
    int rank = n->in[0]->type.rank;
    if (type_count_upper(g, &counts->type) == 0) return *d = 0, true;
    Value *flat = b_reshape(g, counts, 1, (Dim[]){ type_size(g, &counts->type) });
    Value *zero = b_concat(g, 0, 2, (Value *[]){ flat, b_ints(g, 1, (int64_t[]){ 0 }) });
    Value *most = zero ? b_reduce(g, OP_ReduceMax, zero, 1, &axis, true) : NULL;
    const EndDim *declared = onnx_declared_dim(n, 0, rank);
    Dim limit = cuts >= 0 && cuts < MANY                    ? cuts + 1 :
        declared && declared->known && declared->value >= 0 ? declared->value :
                                                              MANY;
    return most && onnx_measure(n, most, 0, 0, rank, 0, limit, d);
}

Value *onnx_string_split(OnnxNode *n) {
    if (!all_strings(n, 1)) return NULL;
    const char *delimiter = onnx_string(n, "delimiter", "");
    int64_t cuts = onnx_has(n, "maxsplit") ? onnx_int(n, "maxsplit", -1) : -1;
    Dim most;
    Node *count = graph_node(n->g, OP_StringParts, 1, n->in, 1);
    node_set_string(count, "delimiter", delimiter);
    node_set_int(count, "maxsplit", cuts);
    if (!b_finish(count) || !most_parts(n, count->out[0], cuts, &most)) return NULL;
    Node *split = graph_node(n->g, OP_StringSplit, 1, n->in, 1);
    node_set_string(split, "delimiter", delimiter);
    node_set_int(split, "maxsplit", cuts);
    node_set_ints(split, "size", &most, 1);
    if (n->n_out > 1) n->out[1] = count->out[0];
    return b_finish(split);
}

// ---------------------------------------------------------------- normalising

static Value *change_case(OnnxNode *n, Value *x, bool upper) {
    if (!x) return NULL;
    Node *node = graph_node(n->g, OP_StringCase, 1, &x, 1);
    node_set_int(node, "upper", upper);
    return b_finish(node);
}

// Which of the strings x[C] are no stop words.
static Value *not_stopped(OnnxNode *n, Value *x, const OnnxAttr *stop, bool sensitive) {
    const char **words = NEW_ARRAY(n->g->arena, const char *, stop->n + 1);
    int64_t *first = NEW_ARRAY(n->g->arena, int64_t, stop->n + 1);
    int kept;
    memcpy(words, stop->strings, sizeof *words * (size_t)stop->n);
    if (!sensitive) {                                   // the words and the elements in lower case
        Tensor *lower = value_const(change_case(n, onnx_strings(n, stop->n, words), false));
        if (!lower) return NULL;
        memcpy(words, lower->data, sizeof *words * (size_t)stop->n);
        x = change_case(n, x, false);
    }
    Value *at = onnx_string_find(n, x, onnx_string_table(n, stop->n, words, &kept, first));
    return at ? B_MAP(n->g, "x < 0", "x", at) : NULL;
}

// The elements of y[C] that are kept, in their order; where none is, one empty string.
static Value *kept_strings(OnnxNode *n, Value *y, Value *keep, int last) {
    Graph *g = n->g;
    const int64_t axis = 0;
    Value *none = onnx_strings(n, 1, (const char *[]){ "" }),
          *some = keep ? b_reduce(g, OP_ReduceMax, keep, 1, &axis, true) : NULL;
    y = b_concat(g, 0, 2, (Value *[]){ y, none });
    keep = b_concat(g, 0, 2, (Value *[]){ keep, b_unary(g, OP_Not, some) });
    if (!y || !keep) return NULL;
    Value *count = b_reduce(g, OP_ReduceSum, b_cast(g, keep, DT_I64), 1, &axis, true);
    Value *place = b_iota(n->g, 1, keep->type.dim, 0, DT_I64),
          *order = count && place ? B_MAP(n->g, "x ? y : 9223372036854775807", "x y", keep, place) : NULL;
    Dim size;
    if (!order || !onnx_measure(n, count, 0, 0, last, 1, keep->type.dim[0], &size)) return NULL;
    Node *sort = graph_node(g, OP_Sort, 1, &order, 2);
    node_set_int(sort, "axis", 0);
    return b_gather(g, y, b_part(n->g, b_finish(sort), 0, 0, size), 0);
}

Value *onnx_string_normalizer(OnnxNode *n) {
    if (!all_strings(n, 1)) return NULL;
    const char *action = onnx_string(n, "case_change_action", "NONE");
    bool sensitive = onnx_int(n, "is_case_sensitive", 0) != 0, upper = !strcmp(action, "UPPER"),
         lower = !strcmp(action, "LOWER");
    const OnnxAttr *stop = onnx_attr(n, "stopwords", ONNX_STRINGS);
    const Type *t = &n->in[0]->type;
    int rank = t->rank;
    onnx_string(n, "locale", "");                       // the mapping of characters is the same everywhere
    if (!upper && !lower && strcmp(action, "NONE"))
        return onnx_fail(n, "attribute \"case_change_action\" is \"%s\"", action);
    if (rank < 1 || rank > 2 || (rank == 2 && t->dim[0] != 1))
        return onnx_fail(n, "the input must be string[C] or string[1,C], it is %s", type_text(n->g->arena, n->g, t));
    Value *x = b_reshape(n->g, n->in[0], 1, (Dim[]){ t->dim[rank - 1] }),
          *y = upper || lower ? change_case(n, x, upper) : x;
    if (stop && stop->n) y = kept_strings(n, y, not_stopped(n, x, stop, sensitive), rank - 1);
    return y && rank == 2 ? b_insert(n->g, y, 0) : y;
}

// ---------------------------------------------------------------- patterns

Value *onnx_regex_full_match(OnnxNode *n) {
    Automaton a;
    const char *why;
    if (!all_strings(n, 1)) return NULL;
    const OnnxAttr *pattern = onnx_attr(n, "pattern", ONNX_STRING);
    if (!pattern) return onnx_fail(n, "attribute \"pattern\" is missing");
    if ((why = regex_compile(n->g->arena, pattern->s, &a))) return onnx_fail(n, "pattern \"%s\": %s", pattern->s, why);
    bool wide = a.n_states > UINT16_MAX;
    Tensor *class_of = tensor_new(n->g->arena, type_make(DT_U8, 1, (Dim[]){ 256 })),
           *accept = tensor_new(n->g->arena, type_make(DT_BOOL, 1, (Dim[]){ a.n_states }));
    Tensor *next = tensor_new(n->g->arena, type_make(wide ? DT_I32 : DT_U16, 2, (Dim[]){ a.n_states, a.n_classes }));
    memcpy(class_of->data, a.class_of, 256);
    for (int i = 0; i < a.n_states; i++) tensor_set_i(accept, i, a.accepts[i]);
    for (int64_t i = 0; i < (int64_t)a.n_states * a.n_classes; i++) tensor_set_i(next, i, a.next[i]);
    Value *state = b_finish(graph_node(n->g, OP_StringMatch, 3,
        (Value *[]){ n->in[0], graph_const(n->g, class_of, NULL), graph_const(n->g, next, NULL) }, 1));
    return b_gather(n->g, graph_const(n->g, accept, NULL), state, 0);
}

// ---------------------------------------------------------------- n-grams

typedef struct Gram { const int64_t *items; int64_t length, column; } Gram;

static int by_items(const void *x, const void *y) {
    const Gram *a = x, *b = y;
    for (int64_t i = 0; i < a->length; i++)
        if (a->items[i] != b->items[i]) return a->items[i] < b->items[i] ? -1 : 1;
    return (a->column > b->column) - (a->column < b->column);
}

typedef struct Grams { VEC(int64_t) pool, column, lengths; int64_t columns; } Grams;

// The n-grams of each length in range, sorted. Lengths begin at the places of ngram_counts in the pool.
static bool collect_grams(OnnxNode *n, int items, const int64_t *pool, int64_t least, int64_t most, Grams *out) {
    Arena *a = n->g->arena;
    int lengths, indices;
    const int64_t *from = onnx_ints(n, "ngram_counts", &lengths), *column = onnx_ints(n, "ngram_indexes", &indices);
    int64_t seen = 0;
    *out = (Grams){ .columns = 0 };
    for (int i = 0; i < indices; i++) {
        if (column[i] < 0 || column[i] >= INT32_MAX)
            return onnx_fail(n, "ngram_indexes has %lld", (long long)column[i]), false;
        if (column[i] >= out->columns) out->columns = column[i] + 1;
    }
    for (int64_t length = 1; length <= lengths; length++) {
        int64_t first = from[length - 1], end = length < lengths ? from[length] : items;
        int64_t count = first < 0 || end < first || end > items ? -1 : (end - first) / length;
        if (count < 0 || (end - first) % length || seen + count > indices)
            return onnx_fail(n, "ngram_counts and ngram_indexes do not fit a pool of %d elements", items), false;
        Gram *grams = NEW_ARRAY(a, Gram, count + 1);
        for (int64_t i = 0; i < count; i++) grams[i] = (Gram){ pool + first + i * length, length, column[seen + i] };
        seen += count;
        if (length < least || length > most || !count) continue;
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

// Strings become their places in the vocabulary of the pool; what is not in it is -1 and meets no n-gram.
static Value *gram_items(OnnxNode *n, int *items, const int64_t **pool) {
    const OnnxAttr *words = onnx_attr(n, "pool_strings", ONNX_STRINGS);
    Value *x = n->in[0];
    *pool = onnx_ints(n, "pool_int64s", items);
    if (x->type.dtype != DT_STRING)
        return *items ? b_cast(n->g, x, DT_I64) :
                        onnx_fail(n, "the input is integers, but there is no attribute \"pool_int64s\"");
    if (!words || !words->n) return onnx_fail(n, "the input is strings, but there is no attribute \"pool_strings\"");
    int kept;
    int64_t *first = NEW_ARRAY(n->g->arena, int64_t, words->n), *ids = NEW_ARRAY(n->g->arena, int64_t, words->n);
    Value *table = onnx_string_table(n, words->n, words->strings, &kept, first);
    const char *const *sorted = table->data->data;
    for (int i = 0; i < words->n; i++) {
        int low = 0, high = kept - 1;
        while (low < high) {
            int mid = (low + high) / 2;
            if (strcmp(sorted[mid], words->strings[i]) < 0) low = mid + 1;
            else high = mid;
        }
        ids[i] = low;
    }
    *items = words->n;
    *pool = ids;
    return onnx_string_find(n, x, table);
}

Value *onnx_tf_idf_vectorizer(OnnxNode *n) {
    const int64_t *pool;
    int items, n_weights;
    Grams grams;
    if (!onnx_inputs(n, 1)) return NULL;
    const char *mode = onnx_string(n, "mode", "TF");
    int64_t least = onnx_int(n, "min_gram_length", 1), most = onnx_int(n, "max_gram_length", 1),
            skips = onnx_int(n, "max_skip_count", 0);
    const float *weights = onnx_floats(n, "weights", &n_weights);
    int rank = n->in[0]->type.rank;
    if (strcmp(mode, "TF") && strcmp(mode, "IDF") && strcmp(mode, "TFIDF"))
        return onnx_fail(n, "attribute \"mode\" is \"%s\"", mode);
    if (least < 1 || most < least || skips < 0 || skips > INT32_MAX || rank > 2)
        return onnx_fail(n, "the lengths of n-grams, the skip count or the input's rank make no sense");
    Value *x = gram_items(n, &items, &pool);
    if (!x || !collect_grams(n, items, pool, least, most, &grams)) return NULL;
    Dim dims[2] = { rank == 2 ? x->type.dim[0] : 1, rank ? x->type.dim[rank - 1] : 1 };
    x = b_reshape(n->g, x, 2, dims);
    Value *table[3] = { b_ints(n->g, grams.pool.n, grams.pool.at), b_ints(n->g, grams.column.n, grams.column.at),
        b_ints(n->g, grams.lengths.n, grams.lengths.at) };
    table[2] = b_reshape(n->g, table[2], 2, (Dim[]){ grams.lengths.n / 3, 3 });
    if (!x || !table[2]) return NULL;
    Node *node = graph_node(n->g, OP_NGrams, 4, (Value *[]){ x, table[0], table[1], table[2] }, 1);
    node_set_int(node, "skips", skips);
    node_set_int(node, "columns", grams.columns);
    Value *y = b_finish(node);
    if (y && *mode == 'I') y = B_MAP(n->g, "x > 0 ? 1 : 0", "x", y);
    if (y && strcmp(mode, "TF") && n_weights) {
        if (n_weights < grams.columns)
            return onnx_fail(n, "has %d weights for %lld columns", n_weights, (long long)grams.columns);
        Tensor *w = tensor_new(n->g->arena, type_make(DT_F32, 1, (Dim[]){ grams.columns }));
        for (int64_t i = 0; i < grams.columns; i++) tensor_set_f(w, i, (double)weights[i]);
        y = b_binary(n->g, OP_Mul, y, graph_const(n->g, w, NULL));
    }
    return y && rank < 2 ? b_remove(n->g, y, 0) : y;
}

// ---------------------------------------------------------------- casts

Value *onnx_cast_string(OnnxNode *n, Value *x, DType to) {
    onnx_int(n, "saturate", 1);
    if (to == DT_STRING) return b_finish(graph_node(n->g, OP_StringFormat, 1, &x, 1));
    bool whole = dtype_is_int(to);
    Node *node = graph_node(n->g, OP_StringParse, 1, &x, 1);
    node_set_int(node, "to", whole ? DT_I64 : DT_F64);
    return b_cast(n->g, b_finish(node), to);
}
