// SPDX-License-Identifier: MIT OR Apache-2.0
// PyTorch's oldest files (0.1): a tar archive of sys_info, storages, tensors and pickle.
//
//   storages   pickle n; n times: pickle (key, location, torch.FloatStorage), the number of elements (8 bytes), the
//              elements; pickle of a list of views: (key, key of the whole, offset, elements)
//   tensors    pickle n; n times: pickle (key, storage's key, torch.FloatTensor), rank (4 bytes and 4 of nothing),
//              sizes, strides, offset (8 bytes each)
//   pickle     the objects, in which a persistent id is a tensor's key
//
// Numbers are little endian. All of a tar: blocks of 512 bytes, a header (name at 0, size in octal at 124, kind at
// 156), then the bytes.
#include "import/weights/torch.h"

#include <string.h>

enum { BLOCK = 512, NAME_BYTES = 100, SIZE_AT = 124, SIZE_BYTES = 12, KIND_AT = 156, MAGIC_AT = 257 };

typedef struct Part { const uint8_t *at, *end; } Part;
typedef struct OldStorage { Storage bytes; DType dtype; } OldStorage;
typedef struct Tar { StrMap *storages, *tensors; } Tar;

static bool claims(const File *f) { return f->size >= BLOCK && !memcmp(f->data + MAGIC_AT, "ustar", 5); }

// The size in a header, in octal; -1: it is none, or larger than what is left.
static int64_t member_size(const uint8_t *header, size_t left) {
    int64_t n = 0;
    for (int i = 0; i < SIZE_BYTES && header[SIZE_AT + i] > ' '; i++) {
        int digit = header[SIZE_AT + i] - '0';
        if (digit < 0 || digit > 7) return -1;
        n = n * 8 + digit;
    }
    return (uint64_t)n > left ? -1 : n;
}

static bool find_member(TorchFile *t, const File *f, const char *name, Part *out) {
    for (size_t at = 0; f->size - at >= BLOCK && f->data[at];) {
        const uint8_t *header = f->data + at;
        int64_t n = member_size(header, f->size - at - BLOCK);
        if (n < 0) return torch_fail(t, name, torch_cut);
        bool plain = header[KIND_AT] == '0' || !header[KIND_AT];
        const char *called = arena_strndup(t->a, (const char *)header, NAME_BYTES);
        if (plain && !strcmp(strncmp(called, "./", 2) ? called : called + 2, name)) {
            *out = (Part){ header + BLOCK, header + BLOCK + n };
            return true;
        }
        size_t padded = ((size_t)n + BLOCK - 1) / BLOCK * BLOCK;
        if (padded > f->size - at - BLOCK) break;
        at += BLOCK + padded;
    }
    return torch_fail(t, name, "the tar archive lacks this part of PyTorch's");
}

static bool take_int(TorchFile *t, Part *p, int bytes, int64_t *out) {
    uint64_t v = 0;
    *out = 0;
    if (p->end - p->at < bytes) return torch_fail(t, NULL, torch_cut);
    for (int i = bytes - 1; i >= 0; i--) v = v << 8 | p->at[i];
    p->at += bytes;
    *out = (int64_t)v;
    return true;
}

static const Py *take_pickle(TorchFile *t, Part *p) { return pickle_read(t->a, t->path, &p->at, p->end, NULL); }

static bool take_count(TorchFile *t, Part *p, int64_t *n) {
    const Py *count = take_pickle(t, p);
    *n = count && count->kind == PY_INT ? count->i : -1;
    return count && (*n >= 0 || torch_fail(t, NULL, "a number of parts is none"));
}

// (key, ..., ...): the tuple of three that stands before each part
static const Py *take_triple(TorchFile *t, Part *p) {
    const Py *triple = take_pickle(t, p);
    if (!triple) return NULL;
    if (triple->kind == PY_TUPLE && triple->at.n == 3 && torch_key(t->a, triple->at.at[0])) return triple;
    torch_fail(t, NULL, "a part is not described as PyTorch does it");
    return NULL;
}

static bool put_once(TorchFile *t, StrMap *map, const char *key, void *value) {
    if (strmap_get(map, key)) return torch_fail(t, key, "a part of this key is there twice");
    strmap_put(map, key, value);
    return true;
}

static bool read_storage(TorchFile *t, Part *p) {
    int64_t n;
    const Py *id = take_triple(t, p);
    if (!id || !take_int(t, p, 8, &n)) return false;
    const char *key = torch_key(t->a, id->at.at[0]);
    OldStorage s = { .dtype = torch_dtype(id->at.at[2]) };
    if (!s.dtype) return torch_fail(t, key, "the storage's element type is not known");
    if (n < 0 || (uint64_t)n > (uint64_t)(p->end - p->at) / dtype_size(s.dtype)) return torch_fail(t, key, torch_cut);
    s.bytes = (Storage){ p->at, (uint64_t)n * dtype_size(s.dtype) };
    p->at += s.bytes.size;
    return put_once(t, ((Tar *)t->own)->storages, key, arena_copy(t->a, &s, sizeof s));
}

static bool read_view(TorchFile *t, const Py *view) {
    Tar *r = t->own;
    bool known = view->kind == PY_TUPLE && view->at.n == 4 && view->at.at[2]->kind == PY_INT &&
        view->at.at[3]->kind == PY_INT;
    const char *key = known ? torch_key(t->a, view->at.at[0]) : NULL;
    const char *whole = key ? torch_key(t->a, view->at.at[1]) : NULL;
    const OldStorage *s = whole ? strmap_get(r->storages, whole) : NULL;
    if (!s) return torch_fail(t, key, "a view has no storage");
    uint64_t size = dtype_size(s->dtype), n = s->bytes.size / size;
    int64_t from = view->at.at[2]->i, count = view->at.at[3]->i;
    if (from < 0 || count < 0 || (uint64_t)from > n || (uint64_t)count > n - (uint64_t)from)
        return torch_fail(t, key, "a view reaches beyond its storage");
    OldStorage part = { { s->bytes.data + (uint64_t)from * size, (uint64_t)count * size }, s->dtype };
    return put_once(t, r->storages, key, arena_copy(t->a, &part, sizeof part));
}

static bool read_storages(TorchFile *t, const File *f) {
    Part p;
    int64_t n;
    if (!find_member(t, f, "storages", &p) || !take_count(t, &p, &n)) return false;
    for (int64_t i = 0; i < n; i++)
        if (!read_storage(t, &p)) return false;
    const Py *views = take_pickle(t, &p);
    if (!views) return false;
    for (int i = 0; i < views->at.n; i++)
        if (!read_view(t, views->at.at[i])) return false;
    return true;
}

static bool read_tensor(TorchFile *t, Part *p) {
    int64_t rank, nothing, offset, stride[MAX_RANK];
    Type type = { 0 };
    const Py *id = take_triple(t, p);
    const char *key = id ? torch_key(t->a, id->at.at[0]) : NULL, *of = id ? torch_key(t->a, id->at.at[1]) : NULL;
    const OldStorage *s = of ? strmap_get(((Tar *)t->own)->storages, of) : NULL;
    if (!id) return false;
    if (!s) return torch_fail(t, key, "the tensor has no storage that is known");
    if (!take_int(t, p, 4, &rank) || !take_int(t, p, 4, &nothing)) return false;
    if (rank < 0 || rank > MAX_RANK) return torch_fail(t, key, "the tensor has more dimensions than are supported");
    type.dtype = s->dtype;
    type.rank = (int)rank;
    for (int i = 0; i < type.rank; i++)
        if (!take_int(t, p, 8, &type.dim[i])) return false;
    for (int i = 0; i < type.rank; i++)
        if (!take_int(t, p, 8, &stride[i])) return false;
    if (!take_int(t, p, 8, &offset)) return false;
    t->name = key;
    Tensor *tensor = torch_view(t, &s->bytes, type, offset, stride);
    t->name = NULL;
    return tensor && put_once(t, ((Tar *)t->own)->tensors, key, tensor);
}

static bool read_tensors(TorchFile *t, const File *f) {
    Part p;
    int64_t n;
    if (!find_member(t, f, "tensors", &p) || !take_count(t, &p, &n)) return false;
    for (int64_t i = 0; i < n; i++)
        if (!read_tensor(t, &p)) return false;
    return true;
}

static Tensor *stored(TorchFile *t, const Py *p) {
    const char *key = torch_key(t->a, p->args);
    Tensor *tensor = key ? strmap_get(((Tar *)t->own)->tensors, key) : NULL;
    if (!tensor) torch_fail(t, NULL, "the tensor is not in the file");
    return tensor;
}

static bool read_file(Arena *a, const char *path, const File *f, const char *key, Weights *w) {
    Tar r = { strmap_new(a), strmap_new(a) };
    TorchFile t = { .a = a, .path = path, .room = TORCH_COPIES + 4 * (uint64_t)f->size, .stored = stored, .own = &r };
    Part p;
    if (!read_storages(&t, f) || !read_tensors(&t, f) || !find_member(&t, f, "pickle", &p)) return false;
    const Py *root = take_pickle(&t, &p);
    return root && torch_collect(&t, root, key, w);
}

const WeightFormat torch_tar_format = { "PyTorch 0.1", claims, read_file };
