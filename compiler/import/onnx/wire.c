// SPDX-License-Identifier: MIT OR Apache-2.0
// A look at the bytes of an ONNX file before they are decoded: do they parse as fields, and how deep do messages nest?
//
// In: the file's bytes. Out: true, or a diagnostic. The idea: which fields hold messages is known, and the only way
// to nest deeply is through the few recursive ones (a graph in an attribute, a type in a type), so a stack of ends is
// enough: the walk is iterative and bounded.
#include "onnx.h"

#include "import/foreign.h"

#define MAX_DEPTH 96            // messages inside messages; a graph in a graph costs three (graph, node, attribute)

typedef enum Message {
    BYTES,
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
    FUNCTION,
    LEAF
} Message;

// Which field of which message holds what. Messages without message fields are LEAF: only their own fields are walked.
static const struct { uint8_t in, field, holds;
} nesting[] = {
    { MODEL, 7, GRAPH },
    { MODEL, 8, LEAF },
    { MODEL, 25, FUNCTION },
    { GRAPH, 1, NODE },
    { GRAPH, 5, TENSOR },
    { GRAPH, 11, VALUE_INFO },
    { GRAPH, 12, VALUE_INFO },
    { GRAPH, 13, VALUE_INFO },
    { GRAPH, 15, SPARSE },
    { NODE, 5, ATTRIBUTE },
    { ATTRIBUTE, 5, TENSOR },
    { ATTRIBUTE, 6, GRAPH },
    { ATTRIBUTE, 10, TENSOR },
    { ATTRIBUTE, 11, GRAPH },
    { ATTRIBUTE, 14, TYPE },
    { ATTRIBUTE, 22, SPARSE },
    { TENSOR, 3, LEAF },
    { TENSOR, 13, LEAF },
    { SPARSE, 1, TENSOR },
    { SPARSE, 2, TENSOR },
    { VALUE_INFO, 2, TYPE },
    { TYPE, 1, TYPE_TENSOR },
    { TYPE, 4, TYPE_ELEMENT },
    { TYPE, 5, TYPE_MAP },
    { TYPE, 8, TYPE_TENSOR },
    { TYPE, 9, TYPE_ELEMENT },
    { TYPE_TENSOR, 2, SHAPE },
    { TYPE_ELEMENT, 1, TYPE },
    { TYPE_MAP, 2, TYPE },
    { SHAPE, 1, LEAF },
    { FUNCTION, 7, NODE },
    { FUNCTION, 9, LEAF },
    { FUNCTION, 11, ATTRIBUTE },
};

static Message nested(Message in, uint64_t field) {
    for (size_t i = 0; i < COUNT(nesting); i++)
        if (nesting[i].in == in && nesting[i].field == field) return (Message)nesting[i].holds;
    return BYTES;
}

static bool read_varint(const uint8_t *data, size_t end, size_t *at, uint64_t *out) {
    *out = 0;
    for (unsigned shift = 0; shift < 64 && *at < end; shift += 7) {
        uint8_t byte = data[(*at)++];
        *out |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) return true;
    }
    return false;
}

static bool broken(const Loc *loc, const File *f, size_t at) {
    const char *what = foreign_file(f);
    if (what) diag_error(loc, "not an ONNX model: this is %s", what);
    else diag_error(loc, "not an ONNX file, or a damaged one: byte %zu cannot be read as part of a message", at);
    return false;
}

// A message of the model's own that ends behind the file.
static bool cut(const Loc *loc, const File *f, size_t at, uint64_t length) {
    if (foreign_file(f)) return broken(loc, f, at);
    diag_error(loc, "the file is cut short: it has %zu bytes of at least %llu; copy or load it again", f->size,
        (unsigned long long)at + length);
    return false;
}

bool onnx_wire_check(const File *f, const Loc *loc) {
    struct { size_t end; Message kind; } stack[MAX_DEPTH];
    int depth = 0;
    const uint8_t *data = f->data;
    const size_t size = f->size;
    stack[0].end = size;
    stack[0].kind = MODEL;
    for (size_t at = 0; at < size || depth;) {
        size_t end = stack[depth].end, start = at;
        if (at == end) {
            depth--;
            continue;
        }
        uint64_t key, length;
        if (!read_varint(data, end, &at, &key) || key >> 3 == 0 || key >> 32) return broken(loc, f, start);
        switch (key & 7) {
        case 0: if (!read_varint(data, end, &at, &length)) return broken(loc, f, start); break;
        case 1:
            if (end - at < 8) return broken(loc, f, start);
            at += 8;
            break;
        case 5:
            if (end - at < 4) return broken(loc, f, start);
            at += 4;
            break;
        case 2: {
            if (!read_varint(data, end, &at, &length)) return broken(loc, f, start);
            Message kind = nested(stack[depth].kind, key >> 3);
            bool inside = length <= end - at;
            if (!inside && !depth && kind != BYTES && length < UINT64_C(1) << 40) return cut(loc, f, at, length);
            if (!inside) return broken(loc, f, start);
            if (kind == BYTES) {
                at += (size_t)length;
                break;
            }
            if (++depth == MAX_DEPTH) {
                diag_error_as(EXIT_LIMIT, loc, "messages are nested more than %d deep", MAX_DEPTH);
                return false;
            }
            stack[depth].end = at + (size_t)length;
            stack[depth].kind = kind;
            break;
        }
        default: return broken(loc, f, start);
        }
    }
    return true;
}
