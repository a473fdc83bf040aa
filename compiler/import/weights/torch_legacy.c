// SPDX-License-Identifier: MIT OR Apache-2.0
// PyTorch's files before 1.6: pickles one after another, then the storages.
//
//   pickle 119547037146038801333356, pickle 1001, pickle {'little_endian': True, ...}, pickle of the objects, pickle of
//   the storages' keys; for each key the number of elements (8 bytes, little endian) and the elements
//
// A storage may be given as a view of another, ('storage', type, key, location, n, (key of the view, offset, n)).
#include "import/weights/torch.h"

#include <string.h>

static const uint8_t magic[] = { 0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19 };

static bool claims(const File *f) {
    return f->size >= 4 && f->data[0] == 0x80 && f->data[1] >= 2 && f->data[1] <= 5 &&
           (f->data[2] == 0x8a || f->data[2] == 0x95);  // LONG1, or a FRAME around it
}

static const Storage *storage(TorchFile *t, const char *key) {
    const Storage *s = strmap_get(t->own, key);
    if (!s) torch_fail(t, key, "the storage is not in the file");
    return s;
}

// Bytes of an element of each storage, by key; 0: not known.
static StrMap *element_sizes(TorchFile *t, const PyList *stored) {
    StrMap *sizes = strmap_new(t->a);
    for (int i = 0; i < stored->n; i++) {
        const Py *id = stored->at[i]->args;
        const char *key = id->kind == PY_TUPLE && id->at.n > 4 ? torch_key(t->a, id->at.at[2]) : NULL;
        DType dtype = key ? torch_dtype(id->at.at[1]) : DT_NONE;
        size_t size = dtype ? dtype_size(dtype) : 0;
        if (key) strmap_put(sizes, key, arena_copy(t->a, &size, sizeof size));
    }
    return sizes;
}

static bool read_storages(TorchFile *t, const Py *keys, const StrMap *sizes, const uint8_t *at, const uint8_t *end) {
    for (int i = 0; i < keys->at.n; i++) {
        const char *key = torch_key(t->a, keys->at.at[i]);
        const size_t *size = key ? strmap_get(sizes, key) : NULL;
        uint64_t n = 0;
        if (!size || !*size) return torch_fail(t, key, "nothing says what the storage's elements are");
        if (strmap_get(t->own, key)) return torch_fail(t, key, "the storage is there twice");
        if (end - at < 8) return torch_fail(t, key, torch_cut);
        for (int b = 7; b >= 0; b--) n = n << 8 | at[b];
        at += 8;
        if (n > (uint64_t)(end - at) / *size) return torch_fail(t, key, torch_cut);
        strmap_put(t->own, key, arena_copy(t->a, &(Storage){ at, n * *size }, sizeof(Storage)));
        at += n * *size;
    }
    return true;
}

static bool read_head(TorchFile *t, const uint8_t **at, const uint8_t *end) {
    const Py *number = pickle_read(t->a, t->path, at, end, NULL);
    if (!number) return false;
    if (number->kind != PY_LONG || number->n != sizeof magic || memcmp(number->s, magic, sizeof magic))
        return torch_fail(t, NULL, "this is a pickle, but no file of PyTorch's: save the state_dict with torch.save");
    const Py *version = pickle_read(t->a, t->path, at, end, NULL);
    if (!version) return false;
    if (version->kind != PY_INT || version->i != 1001) return torch_fail(t, NULL, "its version is not known");
    const Py *system = pickle_read(t->a, t->path, at, end, NULL);
    if (!system) return false;
    const Py *little = py_get(system, "little_endian");
    return (little && little->kind == PY_BOOL && little->i) ||
           torch_fail(t, NULL, "its numbers are not little endian");
}

static bool read_file(Arena *a, const char *path, const File *f, const char *key, Weights *w) {
    const uint8_t *at = f->data, *end = f->data + f->size;
    TorchFile t = { .a = a, .path = path, .room = TORCH_COPIES + 4 * (uint64_t)f->size, .storage = storage,
        .own = strmap_new(a) };
    PyList stored = { 0 };
    if (!read_head(&t, &at, end)) return false;
    const Py *root = pickle_read(a, path, &at, end, &stored);
    const Py *keys = root ? pickle_read(a, path, &at, end, NULL) : NULL;
    if (!keys) return false;
    if (keys->kind != PY_LIST && keys->kind != PY_TUPLE) return torch_fail(&t, NULL, "its storages' keys are no list");
    return read_storages(&t, keys, element_sizes(&t, &stored), at, end) && torch_collect(&t, root, key, w);
}

const WeightFormat torch_legacy_format = { "PyTorch before 1.6", claims, read_file };
