// SPDX-License-Identifier: MIT OR Apache-2.0
// .safetensors: eight bytes that say how long a header of JSON is, the header, the tensors' bytes. And the index of
// several such files, JSON whose weight_map says which tensor is in which.
//
// In: a mapped file. Out: tensors that point into it; those in packed formats of few bits are a diagnostic. Checked:
// the header lies in the file, offsets lie in what follows it and are as long as the shape says, no key is there
// twice.
#include "import/weights/weights.h"

#include <jansson.h>
#include <string.h>

enum { MAX_HEADER = 100 << 20 };

static uint64_t header_bytes(const File *f) {
    uint64_t n = 0;
    for (int i = 7; i >= 0 && f->size >= 8; i--) n = n << 8 | f->data[i];
    return n;
}

static bool claims(const File *f) {
    uint64_t n = header_bytes(f);
    return f->size > 9 && n >= 2 && n <= UINT32_MAX && f->data[8] == '{';
}

static bool fail(const char *path, const char *name, const char *what) {
    Loc file = { .file = path, .node = -1, .name = name };
    diag_error(&file, "%s", what);
    return false;
}

static const struct { const char *name; DType dtype; } dtypes[] = {
    { "F64", DT_F64 }, { "F32", DT_F32 }, { "F16", DT_F16 }, { "BF16", DT_BF16 }, { "I64", DT_I64 },
    { "I32", DT_I32 }, { "I16", DT_I16 }, { "I8", DT_I8 }, { "U64", DT_U64 }, { "U32", DT_U32 }, { "U16", DT_U16 },
    { "U8", DT_U8 }, { "BOOL", DT_BOOL }, { "F8_E4M3", DT_F8E4M3FN }, { "F8_E5M2", DT_F8E5M2 },
    { "F8_E8M0", DT_F8E8M0 }, { "C64", DT_C64 },
};

static DType dtype_of(const char *s) {
    for (size_t i = 0; s && i < COUNT(dtypes); i++)
        if (!strcmp(s, dtypes[i].name)) return dtypes[i].dtype;
    return DT_NONE;
}

const char *safetensors_dtype(DType d) {
    for (size_t i = 0; i < COUNT(dtypes); i++)
        if (d == dtypes[i].dtype) return dtypes[i].name;
    return NULL;
}

static bool type_of(const char *path, const char *name, const json_t *entry, Type *t) {
    const json_t *shape = json_object_get(entry, "shape");
    const char *dtype = json_string_value(json_object_get(entry, "dtype"));
    *t = (Type){ .dtype = dtype_of(dtype), .rank = (int)json_array_size(shape) };
    if (!dtype || !json_is_array(shape)) return fail(path, name, "its entry lacks dtype or shape");
    if (!t->dtype) return fail(path, name, "its element type is not known");
    if (json_array_size(shape) > MAX_RANK) return fail(path, name, "it has more dimensions than are supported");
    int64_t bytes = (int64_t)dtype_size(t->dtype);
    for (int i = 0; i < t->rank; i++) {
        const json_t *d = json_array_get(shape, (size_t)i);
        t->dim[i] = json_integer_value(d);
        if (!json_is_integer(d) || t->dim[i] < 0 || __builtin_mul_overflow(bytes, t->dim[i], &bytes) ||
            t->dim[i] > INT32_MAX)
            return fail(path, name, "a size of its shape is no size");
    }
    return true;
}

static bool read_entry(Arena *a, const char *path, const File *f, uint64_t from, const char *name, const json_t *entry,
    Weights *w) {
    Type t;
    const json_t *offsets = json_object_get(entry, "data_offsets");
    int64_t begin = json_integer_value(json_array_get(offsets, 0)),
            end = json_integer_value(json_array_get(offsets, 1)), room = (int64_t)(f->size - from);
    if (!type_of(path, name, entry, &t)) return false;
    if (json_array_size(offsets) != 2 || begin < 0 || end < begin || end > room)
        return fail(path, name, "its data_offsets lie outside the file");
    if (end - begin != type_bytes(&t)) return fail(path, name, "its data_offsets and its shape do not agree");
    Tensor *tensor = arena_copy(a, &(Tensor){ .type = t }, sizeof *tensor);
    const uint8_t *data = f->data + from + begin;
    bool aligned = (uintptr_t)data % dtype_size(t.dtype) == 0;
    tensor->data = aligned ? (void *)(uintptr_t)data : arena_copy(a, data, (size_t)(end - begin));
    VEC_PUSH(a, w->at, (Weight){ arena_strdup(a, name), tensor });
    return true;
}

// Bytes as a JSON object; NULL with a diagnostic.
static json_t *parse(const char *path, const uint8_t *at, size_t n) {
    json_error_t why;
    json_t *root = json_loadb((const char *)at, n, JSON_REJECT_DUPLICATES, &why);
    Loc file = { .file = path, .node = -1 };
    if (!root) diag_error(&file, "its JSON cannot be read at byte %d: %s", why.position, why.text);
    else if (!json_is_object(root)) diag_error(&file, "its JSON is no object");
    else return root;
    json_decref(root);
    return NULL;
}

static bool read_file(Arena *a, const char *path, const File *f, const char *key, Weights *w) {
    uint64_t n = header_bytes(f);
    const char *name;
    json_t *entry;
    if (key && *key) return fail(path, NULL, "--weights-key: a file of safetensors has no keys");
    if (n > MAX_HEADER || n > f->size - 8) return fail(path, NULL, "its header is longer than the file");
    json_t *root = parse(path, f->data + 8, n);
    bool ok = root != NULL;
    json_object_foreach(root, name, entry) {
        if (!ok || !strcmp(name, "__metadata__")) continue;
        ok = read_entry(a, path, f, 8 + n, name, entry, w);
    }
    json_decref(root);
    return ok;
}

const WeightFormat safetensors_format = { "safetensors", claims, read_file };

// ---------------------------------------------------------------- several files

static bool claims_index(const File *f) {
    static const char word[] = "\"weight_map\"";
    for (size_t i = 0; i + sizeof word <= f->size && f->data[0] == '{'; i++)
        if (!memcmp(f->data + i, word, sizeof word - 1)) return true;
    return false;
}

// A file beside the index: its name is no way to elsewhere.
static bool read_part(Arena *a, const char *index, const char *part, Weights *w) {
    const char *slash = strrchr(index, '/');
    File f;
    if (!*part || strchr(part, '/')) return fail(index, part, "a part is a file beside the index");
    const char *path = slash ? arena_printf(a, "%.*s/%s", (int)(slash - index), index, part) : part;
    if (!file_map(&f, path)) return false;
    VEC_PUSH(a, w->maps, f);
    return claims(&f) ? read_file(a, path, &f, NULL, w) : fail(path, NULL, "this is no file of safetensors");
}

static bool read_index(Arena *a, const char *path, const File *f, const char *key, Weights *w) {
    const char *name;
    json_t *part, *root = parse(path, f->data, f->size);
    StrMap *seen = strmap_new(a);
    bool ok = root && !(key && *key);
    if (key && *key) fail(path, NULL, "--weights-key: a file of safetensors has no keys");
    json_object_foreach(json_object_get(root, "weight_map"), name, part) {
        const char *file = json_string_value(part);
        if (ok && !file) ok = fail(path, name, "the index names no file for it");
        if (!ok || strmap_get(seen, file)) continue;
        strmap_put(seen, file, part);
        ok = read_part(a, path, file, w);
    }
    json_decref(root);
    return ok;
}

const WeightFormat safetensors_index_format = { "safetensors in parts", claims_index, read_index };
