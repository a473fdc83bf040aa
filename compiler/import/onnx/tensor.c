// SPDX-License-Identifier: MIT OR Apache-2.0
// Tensors of an ONNX file in the compiler's in-memory form.
//
// In: a TensorProto's fields. Out: a Tensor, or NULL with a diagnostic naming the tensor. The idea: bytes that
// already have the right form are pointed at (raw data in the decoded message, external data in a mapped file);
// packed elements of 2, 4 and 6 bits, typed fields and strings are converted. The bytes that are there must be exactly
// those that the dimensions ask for, so that nothing is allocated on a dimension's say-so; what expands (sparse
// tensors) is paid from a budget. External data is opened component by component and never through a link.
#define _POSIX_C_SOURCE 200809L
#include "onnx.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

bool onnx_type(
    Type *out, int dtype, int n_dims, const int64_t *dims, const char *what, const char *name, const Loc *loc) {
    *out = (Type){ 0 };
    if (dtype <= DT_NONE || dtype >= DT_INDEX) {
        diag_error(loc, "%s \"%s\" has the unknown or unsupported element type %d", what, name, dtype);
        return false;
    }
    if (n_dims > MAX_RANK) {
        diag_error_as(
            EXIT_LIMIT, loc, "%s \"%s\" has %d dimensions; at most %d are supported", what, name, n_dims, MAX_RANK);
        return false;
    }
    for (int i = 0; i < n_dims; i++) {
        if (dims[i] < 0) {
            diag_error(loc, "%s \"%s\": dimension %d is negative (%lld)", what, name, i, (long long)dims[i]);
            return false;
        }
    }
    *out = type_make((DType)dtype, n_dims, dims);
    if (!type_too_large(out)) return true;
    diag_error_as(EXIT_LIMIT, loc, "%s \"%s\" is too large; a tensor may have %lld GiB", what, name,
        (long long)(MAX_TENSOR_BYTES >> 30));
    return false;
}

// Elements of 2, 4 or 6 bits, a stream of bits from the lowest on, one per byte; signed integers extended.
static void unpack_bits(uint8_t *out, const uint8_t *bytes, int64_t count, DType d) {
    unsigned bits = dtype_bits(d), mask = (1u << bits) - 1;
    for (int64_t i = 0; i < count; i++) {
        int64_t at = i / 4 * bits / 2 + i % 4 * bits / 8;           // four elements are bits / 2 bytes
        unsigned shift = (unsigned)(i % 4) * bits % 8, v = bytes[at];
        if (shift + bits > 8) v |= (unsigned)bytes[at + 1] << 8;
        v = v >> shift & mask;
        if (dtype_class(d) == CLASS_INT && v >> (bits - 1)) v |= ~mask;
        out[i] = (uint8_t)v;
    }
}

// Little-endian bytes in file order become elements: pointed at when they can be.
static Tensor *tensor_from_raw(TensorReader *r, Type type, const uint8_t *raw) {
    Tensor *t = NEW(r->arena, Tensor);
    t->type = type;
    int64_t count = type_count(&type);
    size_t size = dtype_size(type.dtype), word = dtype_class(type.dtype) == CLASS_COMPLEX ? size / 2 : size;
    if (dtype_bits(type.dtype) < 8) {
        uint8_t *out = arena_alloc(r->arena, (size_t)count);
        unpack_bits(out, raw, count, type.dtype);
        t->data = out;
        return t;
    }
    bool copy = (uintptr_t)raw % word != 0;
    if (type.dtype == DT_BOOL)
        for (int64_t i = 0; i < count && !copy; i++) copy = raw[i] > 1;
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    copy |= word > 1;
#endif
    t->data = copy ? arena_copy(r->arena, raw, (size_t)count * size) : (void *)(uintptr_t)raw;
    uint8_t *bytes = t->data;
    if (copy && type.dtype == DT_BOOL)
        for (int64_t i = 0; i < count; i++) bytes[i] = bytes[i] != 0;
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    for (size_t at = 0; at < (size_t)count * size; at += word)
        for (size_t i = 0; i < word / 2; i++) {
            uint8_t low = bytes[at + i];
            bytes[at + i] = bytes[at + word - 1 - i];
            bytes[at + word - 1 - i] = low;
        }
#endif
    return t;
}

// ---------------------------------------------------------------- external data

typedef struct Mapped { const uint8_t *data; size_t size; } Mapped;

// Opens base/location without following a link in any component of location. -1 with a diagnostic.
static int open_inside(const char *base, const char *location, const char *tensor, const Loc *loc) {
    int dir = open(base && *base ? base : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const char *at = location, *why = NULL;
    if (*at == '/' || !*at) why = *at ? "an absolute path" : "no path";
    while (!why && dir >= 0) {
        size_t n = strcspn(at, "/");
        char part[256];
        if (n >= sizeof part) {
            why = "a name that is too long";
            break;
        }
        memcpy(part, at, n);
        part[n] = 0;
        if (!strcmp(part, "..")) {
            why = "\"..\"";
            break;
        }
        bool last = !at[n];
        int next = *part ?
            openat(dir, part, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | (last ? 0 : O_DIRECTORY)) :
            dup(dir);
        int saved = errno;
        close(dir);
        dir = next;
        if (next < 0 && saved == ELOOP) {
            why = "a symbolic link";
            break;
        }
        errno = saved;
        if (last) break;
        at += n + 1;
    }
    if (why) {
        diag_error(
            loc, "tensor \"%s\": external data \"%s\" leaves the model's folder: it has %s", tensor, location, why);
        if (dir >= 0) close(dir);
        return -1;
    }
    if (dir < 0)
        diag_error_as(EXIT_IO, loc,
            "tensor \"%s\": cannot open external data \"%s\" in the model's folder: %s; it belongs to the model, "
            "copy it there",
            tensor, location, strerror(errno));
    return dir;
}

// Each file is mapped once and stays mapped, as the tensors point into it.
static Mapped *map_inside(TensorReader *r, const char *location, const char *tensor, const Loc *loc) {
    Mapped *m = strmap_get(r->files, location);
    if (m) return m;
    int fd = open_inside(r->base_dir, location, tensor, loc);
    if (fd < 0) return NULL;
    struct stat st;
    static const uint8_t empty[1];
    void *map = NULL;
    if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
        diag_error_as(EXIT_IO, loc, "tensor \"%s\": external data \"%s\" is not a regular file", tensor, location);
    } else if (st.st_size == 0) {
        map = (void *)(uintptr_t)empty;
    } else {
        map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (map == MAP_FAILED) {
            diag_error_as(
                EXIT_IO, loc, "tensor \"%s\": cannot map external data \"%s\": %s", tensor, location, strerror(errno));
            map = NULL;
        }
    }
    close(fd);
    if (!map) return NULL;
    m = NEW(r->arena, Mapped);
    *m = (Mapped){ map, (size_t)st.st_size };
    strmap_put(r->files, location, m);
    bool beside = !strcmp(r->base_dir, ".");
    reads_add(beside ? location : arena_printf(r->arena, "%s/%s", r->base_dir, location));
    return m;
}

static bool external_bytes(TensorReader *r, const TensorSource *s, const uint8_t **raw, size_t *size, const Loc *loc) {
    if (!s->location) {
        diag_error(loc, "tensor \"%s\" is stored outside the model but names no file", s->name);
        return false;
    }
    Mapped *m = map_inside(r, s->location, s->name, loc);
    if (!m) return false;
    if (s->offset < 0 || (uint64_t)s->offset > m->size || s->length < -1
        || (s->length >= 0 && (uint64_t)s->length > m->size - (size_t)s->offset)) {
        diag_error(loc,
            "tensor \"%s\": offset %lld, length %lld do not lie in external data \"%s\" of %zu bytes; copy it again",
            s->name, (long long)s->offset, (long long)s->length, s->location, m->size);
        return false;
    }
    *raw = m->data + s->offset;
    *size = s->length >= 0 ? (size_t)s->length : m->size - (size_t)s->offset;
    return true;
}

// ---------------------------------------------------------------- typed fields

static bool wants(const TensorSource *s, size_t have, int64_t need, const Loc *loc) {
    if (have == (uint64_t)need) return true;
    diag_error(
        loc, "tensor \"%s\" holds %zu elements where its dimensions ask for %lld", s->name, have, (long long)need);
    return false;
}

static Tensor *tensor_from_i32(TensorReader *r, const TensorSource *s, Type type, int64_t count, const Loc *loc) {
    unsigned bits = dtype_bits(type.dtype), per = bits < 6 ? 8 / bits : 1;        // of 6 bits: one a word
    int64_t words = (count + per - 1) / per;
    if (!wants(s, s->n_i32, words, loc)) return NULL;
    Tensor *t = tensor_new(r->arena, type);
    if (bits < 6) {
        uint8_t *packed = arena_alloc(r->arena, (size_t)words + 1);
        for (int64_t i = 0; i < words; i++) packed[i] = (uint8_t)s->i32[i];
        unpack_bits(t->data, packed, count, type.dtype);
    } else if (type.dtype == DT_BOOL) {
        for (int64_t i = 0; i < count; i++) ((uint8_t *)t->data)[i] = s->i32[i] != 0;
    } else {
        for (int64_t i = 0; i < count; i++) {
            switch (dtype_size(type.dtype)) {
            case 1: ((uint8_t *)t->data)[i] = (uint8_t)((uint32_t)s->i32[i] & ((1u << bits) - 1)); break;
            case 2: ((uint16_t *)t->data)[i] = (uint16_t)s->i32[i]; break;
            default: ((int32_t *)t->data)[i] = s->i32[i]; break;
            }
        }
    }
    return t;
}

static Tensor *tensor_from_fields(TensorReader *r, const TensorSource *s, Type type, int64_t count, const Loc *loc) {
    const void *from = NULL;
    size_t have = 0, per = dtype_class(type.dtype) == CLASS_COMPLEX ? 2 : 1;
    switch (type.dtype) {
    case DT_F32:
    case DT_C64:
        from = s->f;
        have = s->n_f;
        break;
    case DT_F64:
    case DT_C128:
        from = s->d;
        have = s->n_d;
        break;
    case DT_I64:
        from = s->i64;
        have = s->n_i64;
        break;
    case DT_U64:
        from = s->u64;
        have = s->n_u64;
        break;
    case DT_STRING:
        from = s->strings;
        have = s->n_strings;
        break;
    case DT_U32: {
        if (!wants(s, s->n_u64, count, loc)) return NULL;
        Tensor *t = tensor_new(r->arena, type);
        for (int64_t i = 0; i < count; i++) ((uint32_t *)t->data)[i] = (uint32_t)s->u64[i];
        return t;
    }
    default: return tensor_from_i32(r, s, type, count, loc);
    }
    if (!wants(s, have, count * (int64_t)per, loc)) return NULL;
    Tensor *t = NEW(r->arena, Tensor);
    t->type = type;
    t->data = count ? (void *)(uintptr_t)from : arena_alloc(r->arena, 1);
    return t;
}

Tensor *onnx_tensor(TensorReader *r, const TensorSource *s, const Loc *loc) {
    Type type;
    if (!onnx_type(&type, s->dtype, s->n_dims, s->dims, "tensor", s->name, loc)) return NULL;
    int64_t count = type_count(&type);
    const uint8_t *raw = s->raw;
    size_t size = s->raw_size;
    if (s->external && !external_bytes(r, s, &raw, &size, loc)) return NULL;
    if (!s->external && !s->has_raw) return tensor_from_fields(r, s, type, count, loc);
    if (type.dtype == DT_STRING) {
        diag_error(loc, "tensor \"%s\": strings cannot be stored as raw bytes", s->name);
        return NULL;
    }
    unsigned bits = dtype_bits(type.dtype);
    uint64_t need = bits < 8 ? ((uint64_t)count * bits + 7) / 8 : (uint64_t)count * dtype_size(type.dtype);
    if (need != size && !(s->external && s->length < 0 && size >= need)) {
        diag_error(loc, "tensor \"%s\" holds %zu bytes where its type and dimensions ask for %llu", s->name, size,
            (unsigned long long)need);
        return NULL;
    }
    static const uint8_t none[16];
    return tensor_from_raw(r, type, count ? raw : none);
}

// values [nnz]; indices [nnz] (flat) or [nnz, rank].
Tensor *onnx_sparse_tensor(TensorReader *r, const Tensor *values, const Tensor *indices, int n_dims,
    const int64_t *dims, const char *name, const Loc *loc) {
    Type type;
    if (!onnx_type(&type, (int)values->type.dtype, n_dims, dims, "sparse tensor", name, loc)) return NULL;
    int64_t n = values->type.rank == 1 ? values->type.dim[0] : -1;
    bool flat = indices->type.rank == 1;
    if (n < 0 || indices->type.dtype != DT_I64
        || !(flat || (indices->type.rank == 2 && indices->type.dim[1] == n_dims))
        || (indices->type.rank && indices->type.dim[0] != n)) {
        diag_error(loc, "sparse tensor \"%s\": values must be [n], indices i64 [n] or [n,%d]", name, n_dims);
        return NULL;
    }
    size_t size = dtype_size(type.dtype), bytes = (size_t)type_count(&type) * size;
    if (type.dtype == DT_STRING || bytes > r->budget) {
        diag_error_as(
            EXIT_LIMIT, loc, "sparse tensor \"%s\" is too large to expand (%zu bytes) or holds strings", name, bytes);
        return NULL;
    }
    r->budget -= bytes;
    Tensor *t = tensor_new(r->arena, type);
    for (int64_t i = 0; i < n; i++) {
        int64_t at = 0;
        bool ok = true;
        for (int d = 0; d < (flat ? 1 : n_dims); d++) {
            int64_t extent = flat ? type_count(&type) : dims[d], x = tensor_get_i(indices, flat ? i : i * n_dims + d);
            ok = ok && x >= 0 && x < extent;
            at = ok ? at * extent + x : 0;
        }
        if (!ok) {
            diag_error(loc, "sparse tensor \"%s\": index %lld lies outside", name, (long long)i);
            return NULL;
        }
        memcpy((char *)t->data + (size_t)at * size, (const char *)values->data + (size_t)i * size, size);
    }
    return t;
}
