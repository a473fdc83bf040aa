// SPDX-License-Identifier: MIT OR Apache-2.0
// Labels and categories of ai.onnx.ml: LabelEncoder, CategoryMapper, OneHotEncoder, with numbers and strings on
// either side; and maps, which are two vectors, their keys and their values: DictVectorizer, CastMap.
//
// In: an OnnxNode. Out: what build/ml.c makes of the tables that its attributes spell.
#include "import/onnx/onnx.h"

#include <string.h>

// ---------------------------------------------------------------- tables

// A column of a table: attribute prefix + "strings", "int64s", "floats" or "tensor". NULL without a diagnostic when
// there is none.
static Tensor *column(const OnnxNode *n, const char *prefix) {
    Arena *a = n->g->arena;
    int count;
    const OnnxAttr *strings = onnx_attr(n, arena_printf(a, "%s_strings", prefix), ONNX_STRINGS);
    if (strings && strings->n) {
        Tensor *t = tensor_new(a, type_make(DT_STRING, 1, (Dim[]){ strings->n }));
        memcpy(t->data, strings->strings, sizeof(char *) * (size_t)strings->n);
        return t;
    }
    const int64_t *ints = onnx_ints(n, arena_printf(a, "%s_int64s", prefix), &count);
    if (count) {
        Tensor *t = tensor_new(a, type_make(DT_I64, 1, (Dim[]){ count }));
        memcpy(t->data, ints, sizeof *ints * (size_t)count);
        return t;
    }
    const float *floats = onnx_floats(n, arena_printf(a, "%s_floats", prefix), &count);
    if (count) {
        Tensor *t = tensor_new(a, type_make(DT_F32, 1, (Dim[]){ count }));
        memcpy(t->data, floats, sizeof *floats * (size_t)count);
        return t;
    }
    const OnnxAttr *tensor = onnx_attr(n, arena_printf(a, "%s_tensor", prefix), ONNX_TENSOR);
    return tensor ? tensor->tensor : NULL;
}

// The integers 0..count-1.
static Tensor *counting(Arena *a, int64_t count) {
    Tensor *t = tensor_new(a, type_make(DT_I64, 1, (Dim[]){ count }));
    for (int64_t i = 0; i < count; i++) tensor_set_i(t, i, i);
    return t;
}

// ---------------------------------------------------------------- operators

static Default defaults(const OnnxNode *n, const char *unknown) {
    Default d = { .i = onnx_int64(n, "default_int64", -1),
        .f = onnx_float(n, "default_float", -0.0),
        .s = onnx_string(n, "default_string", unknown) };
    const OnnxAttr *given = onnx_attr(n, "default_tensor", ONNX_TENSOR);
    const Tensor *t = given ? given->tensor : NULL;
    if (!t || !type_count(&t->type) || dtype_class(t->type.dtype) == CLASS_COMPLEX) return d;
    if (t->type.dtype == DT_STRING) d.s = ((const char *const *)t->data)[0];
    else if (dtype_is_float(t->type.dtype)) d.f = tensor_get_f(t, 0);
    else d.i = tensor_get_i(t, 0);
    return d;
}

// From version 2 on any kind to any; from version 4 on NaN is a key like another. Before: strings to their places in
// a list, or back.
Value *onnx_label_encoder(OnnxNode *n) {
    if (!onnx_inputs(n, 1)) return NULL;
    Value *x = n->in[0];
    Default otherwise = defaults(n, "_Unused");
    Tensor *keys, *values;
    if (n->opset < 2) {
        Tensor *classes = column(n, "classes");
        if (!classes || classes->type.dtype != DT_STRING)
            return onnx_fail(n, "attribute \"classes_strings\" is missing");
        Tensor *places = counting(n->g->arena, type_count(&classes->type));
        keys = x->type.dtype == DT_STRING ? classes : places;
        values = x->type.dtype == DT_STRING ? places : classes;
    } else {
        keys = column(n, "keys");
        values = column(n, "values");
    }
    if (!keys || !values) return onnx_fail(n, "lacks keys or values");
    if (dtype_class(values->type.dtype) == CLASS_COMPLEX || dtype_class(keys->type.dtype) == CLASS_COMPLEX)
        return onnx_fail(n, "complex labels are not supported");
    return b_look_up(n->g, x, keys, values, &otherwise, n->opset >= 4);
}

// Strings to integers or back, by a list of pairs.
Value *onnx_category_mapper(OnnxNode *n) {
    if (!onnx_inputs(n, 1)) return NULL;
    Value *x = n->in[0];
    Default otherwise = defaults(n, "_Unused");
    Tensor *cats[2] = { NULL, NULL };
    int count;
    const int64_t *ints = onnx_ints(n, "cats_int64s", &count);
    const OnnxAttr *strings = onnx_attr(n, "cats_strings", ONNX_STRINGS);
    if (!count || !strings || strings->n != count)
        return onnx_fail(n, "needs as many \"cats_int64s\" as \"cats_strings\"");
    cats[0] = tensor_new(n->g->arena, type_make(DT_STRING, 1, (Dim[]){ count }));
    cats[1] = tensor_new(n->g->arena, type_make(DT_I64, 1, (Dim[]){ count }));
    memcpy(cats[0]->data, strings->strings, sizeof(char *) * (size_t)count);
    memcpy(cats[1]->data, ints, sizeof *ints * (size_t)count);
    bool text = x->type.dtype == DT_STRING;
    return b_look_up(n->g, x, cats[!text], cats[text], &otherwise, n->opset >= 4);
}

// 1 where the input is the category, along a new last axis. An unknown one gives zeros.
Value *onnx_one_hot_encoder(OnnxNode *n) {
    int count;
    const int64_t *categories = onnx_ints(n, "cats_int64s", &count);
    const OnnxAttr *strings = onnx_attr(n, "cats_strings", ONNX_STRINGS);
    if (!onnx_inputs(n, 1)) return NULL;
    bool text = n->in[0]->type.dtype == DT_STRING;
    if (text ? !strings || !strings->n : !count)
        return onnx_fail(n, "attribute \"%s\" is missing", text ? "cats_strings" : "cats_int64s");
    if (!onnx_int(n, "zeros", 1))
        diag_warn(WARN_categories, n->loc, "zeros = 0 asks for an error on unknown categories; they give zeros");
    Value *x = b_insert(n->g, text ? n->in[0] : b_cast(n->g, n->in[0], DT_I64), n->in[0]->type.rank);
    Value *all = text ? b_strings(n->g, strings->n, strings->strings) : b_ints(n->g, count, categories);
    return x ? b_cast(n->g, b_binary(n->g, OP_Equal, x, all), DT_F32) : NULL;
}

// ---------------------------------------------------------------- maps

static Value *const *map_halves(OnnxNode *n) {
    int count;
    Value *const *halves = onnx_input(n, 0) ? onnx_sequence_items(n->in[0], &count) : NULL;
    if (halves && count == 2 && halves[0]->type.rank == 1 && halves[1]->type.rank == 1) return halves;
    return onnx_fail(n, "input 0 must be a map that is an input of the model"), NULL;
}

Value *onnx_dict_vectorizer(OnnxNode *n) {
    Value *const *map = map_halves(n);
    int count;
    const int64_t *ints = onnx_ints(n, "int64_vocabulary", &count);
    const OnnxAttr *strings = onnx_attr(n, "string_vocabulary", ONNX_STRINGS);
    if (!map) return NULL;
    bool text = map[0]->type.dtype == DT_STRING;
    if (text ? !strings || !strings->n : !count)
        return onnx_fail(n, "attribute \"%s\" is missing", text ? "string_vocabulary" : "int64_vocabulary");
    Tensor *words = tensor_new(
        n->g->arena, type_make(text ? DT_STRING : DT_I64, 1, (Dim[]){ text ? strings->n : count }));
    memcpy(words->data, text ? (const void *)strings->strings : ints, (size_t)type_bytes(&words->type));
    int64_t columns = type_count(&words->type);
    Default outside = { .i = columns };
    return b_put_at(n->g, b_look_up(n->g, map[0], words, counting(n->g->arena, columns), &outside, n->opset >= 4),
        map[1], columns);
}

// The values in the order of their keys, or each at the column that its key names.
Value *onnx_cast_map(OnnxNode *n) {
    static const struct {
        const char *name;
        DType to;
    } casts[] = { { "TO_FLOAT", DT_F32 }, { "TO_STRING", DT_STRING }, { "TO_INT64", DT_I64 } };
    Value *const *map = map_halves(n);
    const char *to = onnx_string(n, "cast_to", "TO_FLOAT"), *form = onnx_string(n, "map_form", "DENSE");
    int64_t columns = onnx_int(n, "max_map", 1);
    size_t cast = 0;
    while (cast < COUNT(casts) && strcmp(casts[cast].name, to)) cast++;
    if (!map) return NULL;
    if (cast == COUNT(casts) || (strcmp(form, "DENSE") && strcmp(form, "SPARSE")) || columns < 1 || columns > INT32_MAX
        || !dtype_is_int(map[0]->type.dtype))
        return onnx_fail(n, "cast_to, map_form, max_map or the keys' type make no sense");
    Value *y;
    if (*form == 'S') {
        y = b_put_at(n->g, B_MAP(n->g, arena_printf(n->g->arena, "x < 0 ? %lld : x", (long long)columns), "x", map[0]),
            map[1], columns);
    } else {
        Node *sort = b_sort(n->g, map[0], 0, false, map[0]->type.dim[0]);
        y = sort ? b_insert(n->g, b_gather(n->g, map[1], sort->out[1], 0), 0) : NULL;
    }
    if (!y || y->type.dtype == casts[cast].to) return y;
    return y->type.dtype == DT_STRING || casts[cast].to == DT_STRING ? b_cast_string(n->g, y, casts[cast].to) :
                                                                       b_cast(n->g, y, casts[cast].to);
}
