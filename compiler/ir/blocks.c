// SPDX-License-Identifier: MIT OR Apache-2.0
// The data of large constants, to and from text.
//
//   data 0x1234567890abcdef
//     AACAPwAAAEAAAEBA...
//
// In base64 (RFC 4648), of the elements as they lie in memory, little-endian; of strings as in the graph, in braces.
// The idea: the graph's text stays readable, as the data come behind it, and constants with the same bytes share a
// block, as the key is a hash of them (FNV-1a; should two be alike, the next free number).
#include "ir/blocks.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 112 };                            // characters of base64: 84 bytes

typedef struct Block { uint64_t key; const Tensor *tensor; } Block;
struct Blocks { Arena *arena; StrMap *by_key; VEC(Block) all; };

Blocks *blocks_new(Arena *a) {
    Blocks *b = NEW(a, Blocks);
    *b = (Blocks){ .arena = a, .by_key = strmap_new(a) };
    return b;
}

static uint64_t hash_data(const Tensor *t) {    // of strings their text
    uint64_t h = 0xcbf29ce484222325u;
    int64_t n = t->type.dtype == DT_STRING ? type_count(&t->type) : type_bytes(&t->type);
    for (int64_t i = 0; i < n; i++)
        if (t->type.dtype == DT_STRING)
            for (const char *s = ((const char *const *)t->data)[i]; ; s++) {
                h = (h ^ (unsigned char)*s) * 0x100000001b3u;
                if (!*s) break;
            }
        else h = (h ^ ((const uint8_t *)t->data)[i]) * 0x100000001b3u;
    return h;
}

static bool same_data(const Tensor *a, const Tensor *b) {
    bool strings = a->type.dtype == DT_STRING;
    int64_t n = type_count(&a->type);
    if (a == b) return true;
    if (strings != (b->type.dtype == DT_STRING) || type_bytes(&a->type) != type_bytes(&b->type)) return false;
    if (!strings) return !memcmp(a->data, b->data, (size_t)type_bytes(&a->type));
    for (int64_t i = 0; i < n; i++)
        if (strcmp(((const char *const *)a->data)[i], ((const char *const *)b->data)[i])) return false;
    return true;
}

static const char *key_text(char *to, size_t size, uint64_t key) {
    snprintf(to, size, "%016" PRIx64, key);
    return to;
}

uint64_t block_key(Blocks *b, const Tensor *t) {
    char name[24];
    uint64_t key = hash_data(t);
    for (;; key++) {
        const Tensor *other = strmap_get(b->by_key, key_text(name, sizeof name, key));
        if (other && !same_data(other, t)) continue;
        if (other) return key;
        strmap_put(b->by_key, name, (void *)(uintptr_t)t);
        VEC_PUSH(b->arena, b->all, (Block){ key, t });
        return key;
    }
}

// ---- base64

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

// Byte i of the elements, little-endian whatever this machine is; numbers of a complex one are words of their own.
static size_t byte_at(const Type *t, size_t i) {
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    size_t size = dtype_size(t->dtype), word = dtype_class(t->dtype) == CLASS_COMPLEX ? size / 2 : size;
    return i / word * word + (word - 1 - i % word);
#else
    (void)t;
    return i;
#endif
}

static void base64_print(Text *out, const Tensor *t) {
    const uint8_t *data = t->data;
    size_t bytes = (size_t)type_bytes(&t->type), column = 0;
    char line[LINE + 4] = "  ";
    for (size_t i = 0; i < bytes; i += 3) {
        uint32_t group = 0;
        for (size_t k = 0; k < 3; k++) group = group << 8 | (i + k < bytes ? data[byte_at(&t->type, i + k)] : 0u);
        for (size_t k = 0; k < 4; k++)
            line[2 + column++] = i + k <= bytes ? digits[group >> (18 - 6 * k) & 63] : '=';
        if (column < LINE && i + 3 < bytes) continue;
        line[2 + column] = '\n';
        text_append(out, line, 3 + column);
        column = 0;
    }
}

static int digit_value(char c) {
    return c >= 'A' && c <= 'Z' ? c - 'A' :
        c >= 'a' && c <= 'z'    ? c - 'a' + 26 :
        c >= '0' && c <= '9'    ? c - '0' + 52 :
        c == '+'                ? 62 :
        c == '/'                ? 63 :
                                  -1;
}

// Elements narrower than their byte: what no element is becomes one.
static void make_valid(Tensor *t) {
    DType d = t->type.dtype;
    bool narrow = dtype_bits(d) < 8;
    for (int64_t i = 0, n = type_count(&t->type); i < n; i++) {
        if (d == DT_BOOL) ((uint8_t *)t->data)[i] = ((uint8_t *)t->data)[i] != 0;
        else if (narrow && dtype_is_float(d)) ((uint8_t *)t->data)[i] &= (uint8_t)((1u << dtype_bits(d)) - 1);
        else if (narrow) tensor_set_i(t, i, tensor_get_i(t, i));
        else break;
    }
}

const char *block_read(const char *at, Tensor *t) {
    uint8_t *data = t->data;
    size_t bytes = (size_t)type_bytes(&t->type), n = 0;
    uint32_t bits = 0;
    int have = 0;
    for (;; at++) {
        int v = digit_value(*at);
        if (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t') {
            if (*at == '\n' && at[1] != ' ') break;     // lines of a block are indented
            continue;
        }
        if (v < 0) break;
        bits = bits << 6 | (uint32_t)v;
        have += 6;
        if (have < 8) continue;
        have -= 8;
        if (n == bytes) return "its data are longer than its type";
        data[byte_at(&t->type, n++)] = (uint8_t)(bits >> have);
    }
    while (*at == '=') at++;
    if (*at && *at != '\n' && *at != '\r') return "its data are not base64";
    if (n < bytes) return "its data are shorter than its type";
    make_valid(t);
    return NULL;
}

// ---- blocks

void blocks_print(const Blocks *b, Text *out) {
    for (int i = 0; i < b->all.n; i++) {
        const Tensor *t = b->all.at[i].tensor;
        text_printf(out, "data 0x%016" PRIx64 "\n", b->all.at[i].key);
        if (t->type.dtype != DT_STRING) {
            base64_print(out, t);
            continue;
        }
        for (int64_t k = 0, n = type_count(&t->type); k < n; k++) {
            text_append(out, k ? ", " : "  {", k ? 2 : 3);
            text_quoted(out, ((const char *const *)t->data)[k]);
        }
        text_append(out, "}\n", 2);
    }
}

StrMap *blocks_find(Arena *a, const char *text) {
    StrMap *found = strmap_new(a);
    static const char mark[] = "\ndata 0x";
    for (const char *at = text; (at = strstr(at, mark));) {
        char *end, name[24];
        uint64_t key = strtoull(at + strlen(mark), &end, 16);
        at = end;
        if (*end == '\r') end++;
        if (*end == '\n') strmap_put(found, key_text(name, sizeof name, key), end + 1);
    }
    return found;
}

const char *block_at(const StrMap *found, uint64_t key) {
    char name[24];
    return strmap_get(found, key_text(name, sizeof name, key));
}
