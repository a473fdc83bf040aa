// SPDX-License-Identifier: MIT OR Apache-2.0
// Mutations that keep a file a model: most random bytes die in the first look at them.
//
// In: bytes and a seed. Out: other bytes. The idea: the file is read into a tree of fields by a table of which
// message holds what, one to a few fields change in ways that fit their kind (numbers, names, elements, shapes with
// their data, whole messages), and the tree is written again. Messages and names that went by are remembered and
// planted elsewhere, so operators and attributes meet. Graphs in text change by lines and words (words.c). What is
// neither, and one input in sixteen, is left to libFuzzer's own mutations of bytes.
#include "fuzz.h"

#include <string.h>

// NAME: of values; WORD: other text; NUMBERS: packed
typedef enum Kind { RAW, NUMBER, REAL, NAME, WORD, ELEMENTS, NUMBERS, MESSAGE } Kind;
typedef enum Message {
    NONE,
    MODEL,
    GRAPH,
    NODE,
    ATTRIBUTE,
    TENSOR,
    SPARSE,
    VALUE_INFO,
    TYPE,
    TYPE_TENSOR,
    TYPE_ELEMENT,
    TYPE_MAP,
    SHAPE,
    DIMENSION,
    FUNCTION,
    OPSET,
    ENTRY,
    MESSAGES
} Message;

static const struct { uint8_t in, field, kind, holds;
} schema[] = {
    { MODEL, 1, NUMBER, 0 },
    { MODEL, 7, MESSAGE, GRAPH },
    { MODEL, 8, MESSAGE, OPSET },
    { MODEL, 25, MESSAGE, FUNCTION },
    { GRAPH, 1, MESSAGE, NODE },
    { GRAPH, 2, WORD, 0 },
    { GRAPH, 5, MESSAGE, TENSOR },
    { GRAPH, 11, MESSAGE, VALUE_INFO },
    { GRAPH, 12, MESSAGE, VALUE_INFO },
    { GRAPH, 13, MESSAGE, VALUE_INFO },
    { GRAPH, 15, MESSAGE, SPARSE },
    { NODE, 1, NAME, 0 },
    { NODE, 2, NAME, 0 },
    { NODE, 3, WORD, 0 },
    { NODE, 4, WORD, 0 },
    { NODE, 5, MESSAGE, ATTRIBUTE },
    { NODE, 7, WORD, 0 },
    { ATTRIBUTE, 1, WORD, 0 },
    { ATTRIBUTE, 2, REAL, 0 },
    { ATTRIBUTE, 3, NUMBER, 0 },
    { ATTRIBUTE, 4, WORD, 0 },
    { ATTRIBUTE, 5, MESSAGE, TENSOR },
    { ATTRIBUTE, 6, MESSAGE, GRAPH },
    { ATTRIBUTE, 7, REAL, 0 },
    { ATTRIBUTE, 8, NUMBER, 0 },
    { ATTRIBUTE, 9, WORD, 0 },
    { ATTRIBUTE, 10, MESSAGE, TENSOR },
    { ATTRIBUTE, 11, MESSAGE, GRAPH },
    { ATTRIBUTE, 14, MESSAGE, TYPE },
    { ATTRIBUTE, 20, NUMBER, 0 },
    { ATTRIBUTE, 21, WORD, 0 },
    { ATTRIBUTE, 22, MESSAGE, SPARSE },
    { TENSOR, 1, NUMBER, 0 },
    { TENSOR, 2, NUMBER, 0 },
    { TENSOR, 4, ELEMENTS, 0 },
    { TENSOR, 5, NUMBERS, 0 },
    { TENSOR, 6, WORD, 0 },
    { TENSOR, 7, NUMBERS, 0 },
    { TENSOR, 8, NAME, 0 },
    { TENSOR, 9, ELEMENTS, 0 },
    { TENSOR, 10, ELEMENTS, 0 },
    { TENSOR, 11, NUMBERS, 0 },
    { TENSOR, 13, MESSAGE, ENTRY },
    { TENSOR, 14, NUMBER, 0 },
    { SPARSE, 1, MESSAGE, TENSOR },
    { SPARSE, 2, MESSAGE, TENSOR },
    { SPARSE, 3, NUMBER, 0 },
    { VALUE_INFO, 1, NAME, 0 },
    { VALUE_INFO, 2, MESSAGE, TYPE },
    { TYPE, 1, MESSAGE, TYPE_TENSOR },
    { TYPE, 4, MESSAGE, TYPE_ELEMENT },
    { TYPE, 5, MESSAGE, TYPE_MAP },
    { TYPE, 8, MESSAGE, TYPE_TENSOR },
    { TYPE, 9, MESSAGE, TYPE_ELEMENT },
    { TYPE_TENSOR, 1, NUMBER, 0 },
    { TYPE_TENSOR, 2, MESSAGE, SHAPE },
    { TYPE_ELEMENT, 1, MESSAGE, TYPE },
    { TYPE_MAP, 1, NUMBER, 0 },
    { TYPE_MAP, 2, MESSAGE, TYPE },
    { SHAPE, 1, MESSAGE, DIMENSION },
    { DIMENSION, 1, NUMBER, 0 },
    { DIMENSION, 2, WORD, 0 },
    { FUNCTION, 1, WORD, 0 },
    { FUNCTION, 4, NAME, 0 },
    { FUNCTION, 5, NAME, 0 },
    { FUNCTION, 6, WORD, 0 },
    { FUNCTION, 7, MESSAGE, NODE },
    { FUNCTION, 9, MESSAGE, OPSET },
    { FUNCTION, 10, WORD, 0 },
    { FUNCTION, 11, MESSAGE, ATTRIBUTE },
    { OPSET, 1, WORD, 0 },
    { OPSET, 2, NUMBER, 0 },
    { ENTRY, 1, WORD, 0 },
    { ENTRY, 2, WORD, 0 },
};

typedef struct Field Field;
struct Field {
    uint32_t number;
    uint8_t wire;                                       // 0 varint, 1 eight bytes, 2 a length and bytes, 5 four bytes
    Kind kind;
    Message in, holds;
    uint64_t value;                                     // varint
    const uint8_t *at; size_t n;                        // bytes of the others; a MESSAGE writes its parts instead
    VEC(Field *) parts;
    size_t size;                                        // of what a MESSAGE holds, set while writing
    bool gone;
};

typedef struct Tree { Arena *arena; Field *root; VEC(Field *) all; uint64_t random; } Tree;

enum { MAX_NESTING = 40, POOL = 256, POOL_BYTES = 2048 };
typedef struct Kept { uint16_t n; uint8_t bytes[POOL_BYTES]; } Kept;
static Kept pool[MESSAGES][POOL];                       // messages seen, by type
static Kept words[POOL];                                // and texts
static int word_in[POOL], word_field[POOL];

static uint64_t draw(Tree *t) {                         // splitmix64
    uint64_t z = t->random += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static size_t below(Tree *t, size_t n) { return n ? (size_t)(draw(t) % n) : 0; }

// ---------------------------------------------------------------- bytes to a tree

static bool read_varint(const uint8_t **at, const uint8_t *end, uint64_t *out) {
    *out = 0;
    for (unsigned shift = 0; shift < 64 && *at < end; shift += 7) {
        uint8_t byte = *(*at)++;
        *out |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) return true;
    }
    return false;
}

// The row of a field of a message, and 1; 0: there is none.
static size_t row_of(Message in, uint32_t field) {
    static uint8_t rows[MESSAGES][32];
    _Static_assert(COUNT(schema) < UINT8_MAX, "a row fits a byte");
    if (!rows[schema[0].in][schema[0].field])
        for (size_t i = 0; i < COUNT(schema); i++) rows[schema[i].in][schema[i].field] = (uint8_t)(i + 1);
    return field < COUNT(rows[0]) ? rows[in][field] : 0;
}

static void set_kind(Field *f) {
    size_t row = row_of(f->in, f->number);
    f->kind = RAW;
    if (!row) return;
    Kind kind = (Kind)schema[row - 1].kind;
    bool fits = f->wire == 0 ? kind == NUMBER || kind == NUMBERS : f->wire == 2 ? kind != REAL : kind == REAL;
    if (f->wire == 0 && fits) kind = NUMBER;
    if (f->wire == 2 && kind == NUMBER) kind = NUMBERS;
    if (!fits) return;
    f->kind = kind;
    f->holds = (Message)schema[row - 1].holds;
}

static bool read_message(Tree *t, Field *message, const uint8_t *at, const uint8_t *end, int depth) {
    while (at < end) {
        uint64_t key, n;
        Field *f = NEW(t->arena, Field);
        if (!read_varint(&at, end, &key) || key >> 3 == 0 || key >> 32) return false;
        f->number = (uint32_t)(key >> 3);
        f->wire = key & 7;
        f->in = message->holds;
        if (f->wire == 0) {
            if (!read_varint(&at, end, &f->value)) return false;
        } else {
            if (f->wire == 2 && !read_varint(&at, end, &n)) return false;
            if (f->wire == 1 || f->wire == 5) n = f->wire == 1 ? 8 : 4;
            else if (f->wire != 2) return false;
            if (n > (size_t)(end - at)) return false;
            f->at = at;
            f->n = (size_t)n;
            at += n;
        }
        set_kind(f);
        if (f->kind == MESSAGE && (depth == MAX_NESTING || !read_message(t, f, f->at, f->at + f->n, depth + 1)))
            f->kind = RAW;
        VEC_PUSH(t->arena, message->parts, f);
        VEC_PUSH(t->arena, t->all, f);
    }
    return true;
}

// ---------------------------------------------------------------- a tree to bytes

static size_t varint_size(uint64_t v) {
    size_t n = 1;
    for (; v > 0x7f; v >>= 7) n++;
    return n;
}

static uint8_t *write_varint(uint8_t *to, uint64_t v) {
    for (; v > 0x7f; v >>= 7) *to++ = (uint8_t)(v | 0x80);
    *to++ = (uint8_t)v;
    return to;
}

static size_t measure(Field *message) {
    message->size = 0;
    for (int i = 0; i < message->parts.n; i++) {
        Field *f = message->parts.at[i];
        if (f->gone) continue;
        size_t n = f->kind == MESSAGE ? measure(f) : f->n;
        message->size += varint_size((uint64_t)f->number << 3)
            + (f->wire == 0 ? varint_size(f->value) : n + (f->wire == 2 ? varint_size(n) : 0));
    }
    return message->size;
}

static uint8_t *write_message(uint8_t *to, const Field *message) {
    for (int i = 0; i < message->parts.n; i++) {
        const Field *f = message->parts.at[i];
        if (f->gone) continue;
        to = write_varint(to, (uint64_t)f->number << 3 | f->wire);
        if (f->wire == 0) to = write_varint(to, f->value);
        else if (f->wire == 2) to = write_varint(to, f->kind == MESSAGE ? f->size : f->n);
        if (f->kind == MESSAGE) to = write_message(to, f);
        else if (f->n) {
            memcpy(to, f->at, f->n);
            to += f->n;
        }
    }
    return to;
}

// ---------------------------------------------------------------- what was seen

static void keep(Tree *t) {
    for (int i = 0; i < 4 && t->all.n; i++) {
        const Field *f = t->all.at[below(t, (size_t)t->all.n)];
        if (f->wire != 2 || f->n > POOL_BYTES || (f->kind != MESSAGE && f->kind != WORD)) continue;
        size_t at = below(t, POOL);
        Kept *k = f->kind == MESSAGE ? &pool[f->holds][at] : &words[at];
        k->n = (uint16_t)f->n;
        memcpy(k->bytes, f->at, f->n);
        if (f->kind != WORD) continue;
        word_in[at] = (int)f->in;
        word_field[at] = (int)f->number;
    }
}

// A kept message of this type as a field, or NULL.
static Field *recall(Tree *t, Message type, uint32_t number, Message in) {
    const Kept *k = &pool[type][below(t, POOL)];
    if (!k->n) return NULL;
    Field *f = NEW(t->arena, Field);
    *f = (Field){ .number = number, .wire = 2, .kind = MESSAGE, .in = in, .holds = type, .n = k->n };
    f->at = arena_copy(t->arena, k->bytes, k->n);
    if (!read_message(t, f, f->at, f->at + f->n, 1)) return NULL;
    VEC_PUSH(t->arena, t->all, f);
    return f;
}

// ---------------------------------------------------------------- changes

static const char *const op_names[] = {
#define ONNX(name, ...) #name,
#include "import/onnx/onnx_ops.def"
#undef ONNX
};

// a random field of this kind (and in this message, if it is not NONE)
static Field *any(Tree *t, Kind kind, Message in) {
    for (int tries = 0; tries < 24 && t->all.n; tries++) {
        Field *f = t->all.at[below(t, (size_t)t->all.n)];
        if (f->kind == kind && (in == NONE || f->in == in) && !f->gone) return f;
    }
    return NULL;
}

static uint64_t number(Tree *t, uint64_t was) {
    static const int64_t odd[] = { 0, 1, -1, 2, 3, 4, 5, 7, 8, 9, 16, 31, 63, 64, 127, 255, 256, 1000, 4096, 65535,
        65536, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, INT64_C(1) << 31, INT64_C(1) << 32, INT64_C(1) << 47,
        INT64_C(1) << 62, -2, -3, -8 };
    switch (below(t, 4)) {
    case 0: return (uint64_t)odd[below(t, COUNT(odd))];
    case 1: return below(t, 30);
    case 2: return was + 1 - 2 * below(t, 2);
    default: return below(t, 5);
    }
}

static void change_number(Tree *t) {
    Field *f = any(t, NUMBER, NONE);
    if (f) f->value = number(t, f->value);
}

static void change_real(Tree *t) {
    static const float odd[] = { 0, -0.0f, 1, -1, 0.5f, 2, 1e-30f, 1e30f, -1e30f, 1e-44f, __builtin_inff(),
        -__builtin_inff(), __builtin_nanf(""), 3.7f, 1e9f };
    Field *f = any(t, REAL, NONE);
    if (f && f->n == 4) f->at = arena_copy(t->arena, &odd[below(t, COUNT(odd))], 4);
}

static void set_text(Tree *t, Field *f, const void *s, size_t n) {
    f->at = arena_copy(t->arena, s, n);
    f->n = n;
}

static void change_name(Tree *t) {                      // values are rewired
    Field *f = any(t, NAME, NONE), *from = any(t, NAME, NONE);
    if (!f || !from) return;
    if (below(t, 8) == 0) f->n = 0;
    else set_text(t, f, from->at, from->n);
}

static void change_word(Tree *t) {
    static const char *const paths[] = { "data.bin", "sub/data.bin", "sub/../data.bin", "link", "/etc/passwd", "0",
        "4", "64", "4096", "99999999999999999999", "-1", "location", "offset", "length", "sub", "", ".",
        "./data.bin" };
    Field *f = any(t, WORD, NONE);
    if (!f) return;
    if (f->in == ENTRY && below(t, 2)) {
        const char *s = paths[below(t, COUNT(paths))];
        set_text(t, f, s, strlen(s));
        return;
    }
    if (f->in == NODE && f->number == 4 && below(t, 2)) {
        const char *s = op_names[below(t, COUNT(op_names))];
        set_text(t, f, s, strlen(s));
        return;
    }
    for (int tries = 0; tries < 40; tries++) {
        size_t i = below(t, POOL);
        if (word_in[i] != (int)f->in || word_field[i] != (int)f->number) continue;
        set_text(t, f, words[i].bytes, words[i].n);
        return;
    }
    uint8_t bytes[64] = { 0 };
    size_t n = f->n < sizeof bytes ? f->n : sizeof bytes;
    if (n) memcpy(bytes, f->at, n);
    n = LLVMFuzzerMutate(bytes, n, sizeof bytes);
    set_text(t, f, bytes, n);
}

static void change_elements(Tree *t) {
    static const uint32_t odd[] = { 0, 1, 0xffffffff, 0x7f800000, 0xff800000, 0x7fc00000, 0x80000000, 0x7fffffff, 2, 3,
        0x3f800000, 0x7c007c00, 0x00010001, 1u << 20 };
    Field *f = any(t, ELEMENTS, TENSOR);
    if (!f || !f->n) return;
    uint8_t *to = arena_copy(t->arena, f->at, f->n);
    for (size_t i = 0, n = 1 + below(t, 4); i < n; i++) {
        uint32_t v = odd[below(t, COUNT(odd))];
        size_t width = (size_t)1 << below(t, 4), at = below(t, f->n) / width * width;
        uint64_t wide = width == 8 ? (uint64_t)(int64_t)(int32_t)v : v;
        if (at + width <= f->n) memcpy(to + at, &wide, width);
    }
    f->at = to;
}

static void change_packed(Tree *t) {                    // one of several packed numbers
    Field *f = any(t, NUMBERS, NONE);
    if (!f) return;
    uint8_t *to = arena_alloc(t->arena, f->n + 32), *end = to;
    const uint8_t *at = f->at;
    uint64_t v;
    size_t which = below(t, f->n + 1), i = 0;
    for (; at < f->at + f->n && read_varint(&at, f->at + f->n, &v) && end < to + f->n + 8; i++)
        end = write_varint(end, i == which ? number(t, v) : v);
    if (i <= which && below(t, 4) == 0) end = write_varint(end, number(t, 0));
    f->at = to;
    f->n = (size_t)(end - to);
}

static size_t element_bytes(uint64_t dtype) {
    return dtype && dtype < DT_INDEX ? dtype_size((DType)dtype) : 1;
}

// A dimension, or the type, of a tensor with raw data changes, and the data with it.
static void change_shape(Tree *t) {
    Field *owner = NULL;
    for (int tries = 0; tries < 24 && !owner && t->all.n; tries++) {
        Field *f = t->all.at[below(t, (size_t)t->all.n)];
        if (f->kind == MESSAGE && f->holds == TENSOR) owner = f;
    }
    if (!owner) return;
    Field *raw = NULL, *type = NULL;
    VEC(Field *) dims = { 0 };
    for (int i = 0; i < owner->parts.n; i++) {
        Field *f = owner->parts.at[i];
        if (f->kind == ELEMENTS && f->number == 9) raw = f;
        if (f->kind == NUMBER && f->number == 2) type = f;
        if (f->kind == NUMBER && f->number == 1 && !f->gone) VEC_PUSH(t->arena, dims, f);
    }
    if (!raw || !type || !raw->n) return;
    if (below(t, 4) == 0) type->value = 1 + below(t, DT_INDEX - 1);
    else if (dims.n) dims.at[below(t, (size_t)dims.n)]->value = below(t, 9);
    uint64_t count = element_bytes(type->value);
    for (int i = 0; i < dims.n && count < 1 << 16; i++)
        count *= dims.at[i]->value < 1 << 16 ? dims.at[i]->value : 1 << 16;
    if (count >= 1 << 14) return;
    uint8_t *to = arena_alloc(t->arena, (size_t)count + 1);
    for (size_t i = 0; i < count; i++) to[i] = raw->at[i % raw->n];
    raw->at = to;
    raw->n = (size_t)count;
}

static void insert(Tree *t, Field *message, Field *f) {
    VEC_PUSH(t->arena, message->parts, f);
    for (int i = message->parts.n - 1, to = (int)below(t, (size_t)message->parts.n); i > to; i--) {
        message->parts.at[i] = message->parts.at[i - 1];
        message->parts.at[i - 1] = f;
    }
}

static Field *any_message(Tree *t) {                    // the root too
    Field *f = below(t, 8) ? any(t, MESSAGE, NONE) : t->root;
    return f ? f : t->root;
}

static void change_parts(Tree *t) {                     // remove, repeat or exchange
    Field *m = any_message(t);
    if (!m->parts.n) return;
    size_t i = below(t, (size_t)m->parts.n), j = below(t, (size_t)m->parts.n);
    Field *f = m->parts.at[i];
    switch (below(t, 3)) {
    case 0: f->gone = true; break;
    case 1: insert(t, m, f); break;
    default:
        m->parts.at[i] = m->parts.at[j];
        m->parts.at[j] = f;
        break;
    }
}

// a message seen elsewhere, in the place of one of its type or beside it
static void plant(Tree *t) {
    Field *m = any_message(t), *f = m->parts.n ? m->parts.at[below(t, (size_t)m->parts.n)] : NULL;
    if (below(t, 3) == 0) {                             // an attribute or a node more
        Message in = m->holds;
        Field *fresh = in == NODE ? recall(t, ATTRIBUTE, 5, in) :
            in == GRAPH           ? recall(t, NODE, 1, in) :
            in == MODEL           ? recall(t, FUNCTION, 25, in) :
                                    NULL;
        if (fresh) insert(t, m, fresh);
        return;
    }
    if (!f || f->kind != MESSAGE) return;
    Field *fresh = recall(t, f->holds, f->number, f->in);
    if (!fresh) return;
    if (below(t, 3) == 0) insert(t, m, fresh);
    else *f = *fresh;
}

static Field *field(Tree *t, Field *in, uint32_t number, const void *bytes, size_t n) {    // bytes NULL: a varint
    Field *f = NEW(t->arena, Field);
    *f = (Field){ .number = number, .wire = bytes ? 2 : 0, .in = in->holds, .value = bytes ? 0 : n, .at = bytes,
        .n = bytes ? n : 0 };
    set_kind(f);
    VEC_PUSH(t->arena, in->parts, f);
    return f;
}

static const Field *part(const Field *m, uint32_t number) {
    for (int i = 0; m && i < m->parts.n; i++)
        if (m->parts.at[i]->number == number && !m->parts.at[i]->gone) return m->parts.at[i];
    return NULL;
}

// An input of a graph gets a constant value, so that folding computes what depends on it.
static void freeze_input(Tree *t) {
    Field *g = t->root;
    for (int i = 0; i < g->parts.n; i++)
        if (g->parts.at[i]->kind == MESSAGE && g->parts.at[i]->holds == GRAPH) {
            g = g->parts.at[i];
            break;
        }
    if (g->holds != GRAPH || !g->parts.n) return;
    const Field *input = g->parts.at[below(t, (size_t)g->parts.n)];
    if (input->kind != MESSAGE || input->number != 11) return;
    const Field *name = part(input, 1), *type = part(part(input, 2), 1), *dtype = part(type, 1), *shape = part(type, 2);
    if (!name || !dtype || dtype->wire) return;
    Field *tensor = NEW(t->arena, Field);
    *tensor = (Field){ .number = 5, .wire = 2, .kind = MESSAGE, .in = GRAPH, .holds = TENSOR };
    size_t count = element_bytes(dtype->value);
    for (int i = 0; shape && i < shape->parts.n; i++) {
        const Field *d = part(shape->parts.at[i], 1);
        size_t n = d && !d->wire && d->value < 64 ? (size_t)d->value : 2;
        field(t, tensor, 1, NULL, n);
        if (count < 1 << 14) count *= n;
    }
    if (count >= 1 << 14) return;
    uint8_t *raw = arena_alloc(t->arena, count + 1);
    size_t width = element_bytes(dtype->value), kind = below(t, 3);
    for (size_t i = 0; i < count; i++)
        raw[i] = kind == 0     ? (uint8_t)draw(t) :
            kind == 1 && width ? (i % width == 0 ? (uint8_t)below(t, 4) : 0) :
                                 0x3f;
    field(t, tensor, 2, NULL, (size_t)dtype->value);
    field(t, tensor, 8, name->at, name->n);
    field(t, tensor, 9, raw, count);
    VEC_PUSH(t->arena, g->parts, tensor);
}

static void (*const changes[])(Tree *t) = {
    change_number,
    change_number,
    change_number,
    change_real,
    change_name,
    change_name,
    change_word,
    change_word,
    change_elements,
    change_packed,
    change_shape,
    change_parts,
    change_parts,
    plant,
    plant,
    freeze_input,
};

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
    Tree t = { .arena = arena_new(), .random = (uint64_t)seed << 17 ^ size };
    t.root = NEW(t.arena, Field);
    t.root->kind = MESSAGE;
    t.root->holds = MODEL;
    bool whole = below(&t, 16) && size && read_message(&t, t.root, data, data + size, 0);
    size_t n = 0;
    if (whole) {
        keep(&t);
        do changes[below(&t, COUNT(changes))](&t);
        while (below(&t, 3) == 0);
        n = measure(t.root);
        if (n && n <= max_size) {
            uint8_t *to = arena_alloc(t.arena, n);      // the fields point into data
            write_message(to, t.root);
            memcpy(data, to, n);
        } else n = 0;
    }
    bool text = !whole && below(&t, 16) && is_graph_text(data, size);
    if (text) n = mutate_words(data, size, max_size, draw(&t));
    arena_free(t.arena);
    return n ? n : LLVMFuzzerMutate(data, size, max_size);
}
