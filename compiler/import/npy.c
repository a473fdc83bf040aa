// SPDX-License-Identifier: MIT OR Apache-2.0
// NumPy's .npy files (format versions 1 to 3: numpy.lib.format). In: a file, which is untrusted. Out: a tensor, or
// the reverse.
//
//   "\x93NUMPY" major minor, header length (2 bytes little endian, from version 2 on 4), a Python dict, then the
//       elements
//   {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
//
// Either byte order is read, and Fortran order (not of strings). Types that NumPy lacks (bfloat16, 8-bit floats) are
// written as float32, 2- and 4-bit integers as int8 or uint8.
#include "import/npy.h"

#include <ctype.h>
#include <string.h>

enum { MAGIC_BYTES = 6, ALIGNMENT = 64, MAX_STRING = 1 << 16 };
static const char magic[] = "\x93NUMPY";

// kind, size: of 'descr'; U: size in characters
typedef struct Header { char kind; int size; bool swap, fortran; Type shape; } Header;

static Tensor *npy_fail(const char *path, const char *what) {
    Loc loc = { .file = path, .node = -1 };
    diag_error(&loc, "%s", what);
    return NULL;
}

static const char *skip_space(const char *s) {
    while (*s == ' ' || *s == '\t' || *s == '\n') s++;
    return s;
}

// Where the value of 'key' begins, NULL when the dict lacks it.
static const char *dict_value(const char *dict, const char *key) {
    size_t n = strlen(key);
    for (const char *s = dict; (s = strstr(s, key)); s += n) {
        if (s == dict || (s[-1] != '\'' && s[-1] != '"') || s[n] != s[-1]) continue;
        const char *colon = skip_space(s + n + 1);
        if (*colon == ':') return skip_space(colon + 1);
    }
    return NULL;
}

static bool parse_shape(const char *s, Type *out) {
    if (*s != '(') return false;
    out->rank = 0;
    for (s = skip_space(s + 1); *s != ')'; s = skip_space(s)) {
        int64_t v = 0;
        if (out->rank == MAX_RANK || !isdigit((unsigned char)*s)) return false;
        for (; isdigit((unsigned char)*s); s++) {
            v = v * 10 + (*s - '0');
            if (v > INT32_MAX) return false;
        }
        out->dim[out->rank++] = v;
        if (*s == 'L') s++;
        s = skip_space(s);
        if (*s == ',') s++;
        else if (*s != ')') return false;
    }
    return true;
}

// The descr '<f4': byte order, kind, bytes.
static bool parse_descr(const char *s, Header *h) {
    if (*s != '\'' && *s != '"') return false;
    char order = s[1];
    if (!order || !strchr("<>=|", order)) return false;
    h->swap = order == '>';
    h->kind = s[2];
    s += 3;
    for (h->size = 0; isdigit((unsigned char)*s); s++) {
        h->size = h->size * 10 + (*s - '0');
        if (h->size > MAX_STRING) return false;
    }
    return *s == '\'' || *s == '"';
}

static DType descr_dtype(const Header *h) {
    static const struct { char kind; int size; DType dtype;
    } rows[] = {
        { 'b', 1, DT_BOOL },
        { 'i', 1, DT_I8 },
        { 'i', 2, DT_I16 },
        { 'i', 4, DT_I32 },
        { 'i', 8, DT_I64 },
        { 'u', 1, DT_U8 },
        { 'u', 2, DT_U16 },
        { 'u', 4, DT_U32 },
        { 'u', 8, DT_U64 },
        { 'f', 2, DT_F16 },
        { 'f', 4, DT_F32 },
        { 'f', 8, DT_F64 },
        { 'c', 8, DT_C64 },
        { 'c', 16, DT_C128 },
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        if (rows[i].kind == h->kind && rows[i].size == h->size) return rows[i].dtype;
    return h->kind == 'U' || h->kind == 'S' ? DT_STRING : DT_NONE;
}

static void swap_bytes(uint8_t *p, size_t n, size_t word) {
    for (size_t i = 0; i + word <= n; i += word)
        for (size_t j = 0; j < word / 2; j++) {
            uint8_t low = p[i + j];
            p[i + j] = p[i + word - 1 - j];
            p[i + word - 1 - j] = low;
        }
}

static void put_utf8(Text *t, uint32_t c) {
    if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) c = 0xfffd;
    char out[4];
    int n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (int i = n - 1; i > 0; i--, c >>= 6) out[i] = (char)(0x80 | (c & 0x3f));
    out[0] = (char)(n == 1 ? c : (uint32_t)(0xf00 >> n & 0xff) | c);
    text_append(t, out, (size_t)n);
}

// Fixed-width strings: S has bytes, U has UCS-4; both end at the first zero.
static void read_strings(Arena *a, const Header *h, const uint8_t *from, Tensor *t) {
    const char **to = t->data;
    int64_t count = type_count(&t->type);
    size_t width = (size_t)h->size * (h->kind == 'U' ? 4 : 1);
    for (int64_t i = 0; i < count; i++, from += width) {
        Text text;
        text_init(&text, a);
        text_append(&text, "", 0);
        for (size_t j = 0; h->kind == 'S' && j < width && from[j]; j++) text_append(&text, (const char *)from + j, 1);
        for (size_t j = 0; h->kind == 'U' && j < width; j += 4) {
            uint8_t c[4];
            memcpy(c, from + j, 4);
            if (h->swap) swap_bytes(c, 4, 4);
            uint32_t code = (uint32_t)c[0] | (uint32_t)c[1] << 8 | (uint32_t)c[2] << 16 | (uint32_t)c[3] << 24;
            if (!code) break;
            put_utf8(&text, code);
        }
        to[i] = text.n ? arena_strndup(a, text.at, text.n) : "";
    }
}

// Elements whose first index runs fastest, brought in our order.
static void copy_columns(uint8_t *to, const uint8_t *from, const Type *t, size_t width) {
    int64_t at[MAX_RANK] = { 0 }, step[MAX_RANK], source = 0, all = 1;
    for (int d = 0; d < t->rank; all *= t->dim[d++]) step[d] = all;
    for (int64_t i = 0; i < all; i++) {
        memcpy(to + (size_t)i * width, from + (size_t)source * width, width);
        for (int d = t->rank - 1; d >= 0; d--) {
            source += step[d];
            if (++at[d] < t->dim[d]) break;
            source -= step[d] * at[d];
            at[d] = 0;
        }
    }
}

Tensor *npy_decode(Arena *a, const File *f, const char *path) {
    if (f->size < 10 || memcmp(f->data, magic, MAGIC_BYTES) || f->data[6] < 1 || f->data[6] > 3)
        return npy_fail(path, "not a .npy file");
    size_t prefix = f->data[6] == 1 ? 10 : 12;
    if (f->size < prefix) return npy_fail(path, "the .npy header is cut short");
    size_t length = f->data[8] | (size_t)f->data[9] << 8;
    if (prefix == 12) length |= (size_t)f->data[10] << 16 | (size_t)f->data[11] << 24;
    if (length > f->size - prefix) return npy_fail(path, "the .npy header is cut short");
    const char *dict = arena_strndup(a, (const char *)f->data + prefix, length);
    const char *descr = dict_value(dict, "descr"), *fortran = dict_value(dict, "fortran_order"),
               *shape = dict_value(dict, "shape");
    Header h = { 0 };
    if (!descr || !fortran || !shape || !parse_descr(descr, &h))
        return npy_fail(path, "the .npy header is malformed or describes a record type");
    if (!parse_shape(shape, &h.shape))
        return npy_fail(path, "the .npy header has a malformed shape, or more than 8 dimensions");
    h.shape.dtype = descr_dtype(&h);
    h.fortran = *fortran != 'F' && h.shape.rank > 1;
    if (h.fortran && h.shape.dtype == DT_STRING)
        return npy_fail(path, "strings in Fortran order; save numpy.ascontiguousarray of them");
    if (h.shape.dtype == DT_NONE) return npy_fail(path, "the array's element type has no counterpart in ONNX");
    size_t width = h.shape.dtype == DT_STRING ? (size_t)h.size * (h.kind == 'U' ? 4 : 1) : dtype_size(h.shape.dtype);
    size_t count = 1, room = f->size - prefix - length;
    bool empty = false;
    for (int i = 0; i < h.shape.rank; i++) empty |= h.shape.dim[i] == 0;
    for (int i = 0; i < h.shape.rank && !empty; i++) {
        size_t n = (size_t)h.shape.dim[i];
        if (count > room / n + 1) return npy_fail(path, "the array is cut short");
        count *= n;
    }
    if (empty) count = 0;
    if (width && count > room / width) return npy_fail(path, "the array is cut short");
    if (!width && count > MAX_STRING) return npy_fail(path, "too many empty strings");
    Tensor *t = tensor_new(a, h.shape);
    const uint8_t *from = f->data + prefix + length;
    if (h.shape.dtype == DT_STRING) {
        read_strings(a, &h, from, t);
        return t;
    }
    if (count && h.fortran) copy_columns(t->data, from, &h.shape, width);
    else if (count) memcpy(t->data, from, count * width);
    if (h.swap) swap_bytes(t->data, count * width, h.kind == 'c' ? width / 2 : width);
    return t;
}

Tensor *npy_read(Arena *a, const char *path) {
    File f;
    if (!file_map(&f, path)) return NULL;
    Tensor *t = npy_decode(a, &f, path);
    file_unmap(&f);
    return t;
}

// ---------------------------------------------------------------- writing

static const char *descr_of(DType d) {
    switch (d) {
    case DT_BOOL: return "|b1";
    case DT_I8: case DT_I4: case DT_I2: return "|i1";
    case DT_U8: case DT_U4: case DT_U2: return "|u1";
    case DT_I16: return "<i2";
    case DT_U16: return "<u2";
    case DT_I32: return "<i4";
    case DT_U32: return "<u4";
    case DT_I64: return "<i8";
    case DT_U64: return "<u8";
    case DT_F16: return "<f2";
    case DT_F64: return "<f8";
    case DT_C64: return "<c8";
    case DT_C128: return "<c16";
    default: return "<f4";
    }
}

// The code point at *s, which moves on; a byte that is not UTF-8 stands for itself.
static uint32_t take_utf8(const unsigned char **s) {
    uint32_t c = *(*s)++;
    int more = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : c >= 0xc0 ? 1 : 0;
    for (int i = 0; i < more; i++)
        if (((*s)[i] & 0xc0) != 0x80) return c;
    if (more) c &= 0x3fu >> more;
    while (more--) c = c << 6 | (*(*s)++ & 0x3fu);
    return c;
}

static void write_strings(Text *body, const Tensor *t, int64_t width) {
    const char *const *from = t->data;
    int64_t count = type_count(&t->type);
    for (int64_t i = 0; i < count; i++) {
        const unsigned char *s = (const unsigned char *)(from[i] ? from[i] : "");
        for (int64_t j = 0; j < width; j++) {
            uint32_t c = *s ? take_utf8(&s) : 0;
            char le[4] = { (char)(c & 0xff), (char)(c >> 8 & 0xff), (char)(c >> 16 & 0xff), (char)(c >> 24) };
            text_append(body, le, 4);
        }
    }
}

static int64_t longest_string(const Tensor *t) {
    const char *const *at = t->data;
    int64_t most = 1, count = type_count(&t->type);
    for (int64_t i = 0; i < count; i++) {
        int64_t n = 0;
        for (const unsigned char *s = (const unsigned char *)(at[i] ? at[i] : ""); *s; n++) take_utf8(&s);
        if (n > most) most = n;
    }
    return most;
}

bool npy_write(Arena *a, const char *path, const Tensor *t) {
    bool strings = t->type.dtype == DT_STRING;
    int64_t width = strings ? longest_string(t) : 0, count = type_count(&t->type);
    Text head, body;
    text_init(&head, a);
    text_init(&body, a);
    text_printf(&head, "{'descr': '");
    if (strings) text_printf(&head, "<U%lld", (long long)width);
    else text_printf(&head, "%s", descr_of(t->type.dtype));
    text_printf(&head, "', 'fortran_order': False, 'shape': (");
    for (int i = 0; i < t->type.rank; i++) text_printf(&head, "%s%lld", i ? ", " : "", (long long)t->type.dim[i]);
    text_printf(&head, "%s), }", t->type.rank == 1 ? "," : "");
    while ((MAGIC_BYTES + 4 + head.n + 1) % ALIGNMENT) text_append(&head, " ", 1);
    text_append(&head, "\n", 1);
    if (strings) write_strings(&body, t, width);
    bool widened = strcmp(descr_of(t->type.dtype), "<f4") == 0 && t->type.dtype != DT_F32 && !strings;
    for (int64_t i = 0; widened && i < count; i++) {
        float v = (float)tensor_get_f(t, i);
        text_append(&body, (const char *)&v, sizeof v);
    }
    OutFile *o = out_open(a, path);
    if (!o) return false;
    const uint8_t version[4] = { 1, 0, (uint8_t)(head.n & 0xff), (uint8_t)(head.n >> 8) };
    out_write(o, magic, MAGIC_BYTES);
    out_write(o, version, sizeof version);
    out_write(o, head.at, head.n);
    if (strings || widened) out_write(o, body.at, body.n);
    else out_write(o, t->data, (size_t)type_bytes(&t->type));
    return out_commit(o);
}
