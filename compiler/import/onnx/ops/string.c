// SPDX-License-Identifier: MIT OR Apache-2.0
// ONNX's operators on strings: joining, splitting, normalising, matching a pattern, counting n-grams; and casts from
// and to numbers.
//
// In: an OnnxNode. Out: what build/string.c makes of its inputs and attributes; where the running program counts parts
// or words, a measured dimension.
#include "import/onnx/run/measure.h"

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
        { "NonZero", FIRST },
        { "OneHot", 1 << 2 },
        { "OneHotEncoder", FIRST },
        { "Pad", 1 | 1 << 2 },
        { "RegexFullMatch", FIRST },
        { "Reshape", FIRST },
        { "Resize", FIRST },
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
        { "Trilu", FIRST },
        { "Unique", FIRST },
        { "Unsqueeze", FIRST },
        { "Upsample", FIRST },
        { "Where", 1 << 1 | 1 << 2 },
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        if (!strcmp(rows[i].op, op)) return rows[i].inputs == ALL || (input < 31 && rows[i].inputs >> input & 1);
    return false;
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
    node_set_ints(split, "sizes", &most, 1);
    if (n->n_out > 1) n->out[1] = count->out[0];
    return b_finish(split);
}

// ---------------------------------------------------------------- normalising

// The elements of y[C] that are kept, in their order; where none is, one empty string.
static Value *kept_strings(OnnxNode *n, Value *y, Value *keep, int last) {
    Graph *g = n->g;
    const int64_t axis = 0;
    Value *none = b_strings(n->g, 1, (const char *[]){ "" }),
          *some = keep ? b_reduce(g, OP_ReduceMax, keep, 1, &axis, true) : NULL;
    y = b_concat(g, 0, 2, (Value *[]){ y, none });
    keep = b_concat(g, 0, 2, (Value *[]){ keep, b_unary(g, OP_Not, some) });
    if (!y || !keep) return NULL;
    Value *count = b_reduce(g, OP_ReduceSum, b_cast(g, keep, DT_I64), 1, &axis, true);
    Value *place = b_iota(n->g, 1, keep->type.dim, 0, DT_I64),
          *order = count && place ? B_MAP(n->g, "x ? y : 9223372036854775807", "x y", keep, place) : NULL;
    Dim size;
    if (!order || !onnx_measure(n, count, 0, 0, last, 1, keep->type.dim[0], &size)) return NULL;
    Node *sort = b_sort(g, order, 0, false, size);
    return sort ? b_gather(g, y, sort->out[0], 0) : NULL;
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
          *y = upper || lower ? b_string_case(n->g, x, upper) : x;
    if (stop && stop->n) y = kept_strings(n, y, b_not_among(n->g, x, stop->n, stop->strings, sensitive), rank - 1);
    return y && rank == 2 ? b_insert(n->g, y, 0) : y;
}

// ---------------------------------------------------------------- patterns, n-grams

Value *onnx_regex_full_match(OnnxNode *n) {
    if (!all_strings(n, 1)) return NULL;
    const OnnxAttr *pattern = onnx_attr(n, "pattern", ONNX_STRING);
    if (!pattern) return onnx_fail(n, "attribute \"pattern\" is missing");
    return b_string_match(n->g, n->in[0], pattern->s);
}

// Strings become their places in the vocabulary of the pool; what is not in it is -1 and meets no n-gram.
static Value *gram_items(OnnxNode *n, NGrams *o) {
    const OnnxAttr *words = onnx_attr(n, "pool_strings", ONNX_STRINGS);
    Value *x = n->in[0];
    o->pool = onnx_ints(n, "pool_int64s", &o->items);
    if (x->type.dtype != DT_STRING)
        return o->items ? b_cast(n->g, x, DT_I64) :
                          onnx_fail(n, "the input is integers, but there is no attribute \"pool_int64s\"");
    if (!words || !words->n) return onnx_fail(n, "the input is strings, but there is no attribute \"pool_strings\"");
    int kept;
    int64_t *first = NEW_ARRAY(n->g->arena, int64_t, words->n), *ids = NEW_ARRAY(n->g->arena, int64_t, words->n);
    Value *table = b_string_table(n->g, words->n, words->strings, &kept, first);
    for (int i = 0; i < words->n; i++) ids[i] = b_string_place(table, words->strings[i]);
    o->items = words->n;
    o->pool = ids;
    return b_string_find(n->g, x, table);
}

Value *onnx_tf_idf_vectorizer(OnnxNode *n) {
    int n_weights;
    if (!onnx_inputs(n, 1)) return NULL;
    const char *mode = onnx_string(n, "mode", "TF");
    NGrams o = { .least = onnx_int(n, "min_gram_length", 1),
        .most = onnx_int(n, "max_gram_length", 1),
        .skips = onnx_int(n, "max_skip_count", 0) };
    const float *weights = onnx_floats(n, "weights", &n_weights);
    int rank = n->in[0]->type.rank;
    if (strcmp(mode, "TF") && strcmp(mode, "IDF") && strcmp(mode, "TFIDF"))
        return onnx_fail(n, "attribute \"mode\" is \"%s\"", mode);
    if (o.least < 1 || o.most < o.least || o.skips < 0 || o.skips > INT32_MAX || rank > 2)
        return onnx_fail(n, "the lengths of n-grams, the skip count or the input's rank make no sense");
    Value *x = gram_items(n, &o);
    if (!x) return NULL;
    o.from = onnx_ints(n, "ngram_counts", &o.lengths);
    o.column = onnx_ints(n, "ngram_indexes", &o.indices);
    int64_t columns;
    Value *y = b_ngrams(n->g, x, &o, &columns);
    if (y && *mode == 'I') y = B_MAP(n->g, "x > 0 ? 1 : 0", "x", y);
    if (y && strcmp(mode, "TF") && n_weights) {
        if (n_weights < columns)
            return onnx_fail(n, "has %d weights for %lld columns", n_weights, (long long)columns);
        y = b_binary(n->g, OP_Mul, y, b_float_vector(n->g, DT_F32, (int)columns, weights));
    }
    return y && rank < 2 ? b_remove(n->g, y, 0) : y;
}
