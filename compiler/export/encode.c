// SPDX-License-Identifier: MIT OR Apache-2.0
// An OnnxModel as a file: what onnx.c of the importer decodes, encoded.
//
// In: plain structs. Out: the file, and a second one with the data of initializers where they make the first larger
// than a limit (protobuf itself ends at 2 GiB); both under temporary names until all is written. The idea: tensors'
// bytes are pointed at and go to the file as protobuf comes by, so a model is never in memory twice.
#include "export/put.h"
#include "onnx.pb-c.h"

#include "config.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 4096, LEAST_OUTSIDE = 1024 };        // of external data; smaller tensors stay

// outside: initializers of at least LEAST_OUTSIDE bytes are there; at: its length
typedef struct Encoder { Arena *arena; const char *beside; OutFile *outside; int64_t at; bool ok; } Encoder;

static char *text(Encoder *e, const char *s) { return arena_strdup(e->arena, s); }

// ---------------------------------------------------------------- tensors

// Elements of fewer than 8 bits, which have a byte each in memory, as a stream of bits from the lowest on.
static ProtobufCBinaryData packed(Encoder *e, const Tensor *t) {
    unsigned bits = dtype_bits(t->type.dtype);
    int64_t n = type_count(&t->type);
    size_t bytes = (size_t)ceil_div(n * bits, 8);
    uint8_t *out = arena_alloc(e->arena, bytes + 1);
    const uint8_t *from = t->data;
    for (int64_t i = 0; i < n; i++) {
        int64_t bit = i * bits;
        unsigned v = (unsigned)(from[i] & ((1u << bits) - 1)) << bit % 8;
        out[bit / 8] |= (uint8_t)v;
        if (v >> 8) out[bit / 8 + 1] |= (uint8_t)(v >> 8);
    }
    return (ProtobufCBinaryData){ bytes, out };
}

static void add_entry(Encoder *e, Onnx__TensorProto *p, const char *key, const char *value) {
    Onnx__StringStringEntryProto *entry = NEW(e->arena, Onnx__StringStringEntryProto);
    onnx__string_string_entry_proto__init(entry);
    entry->key = text(e, key);
    entry->value = text(e, value);
    p->external_data[p->n_external_data++] = entry;
}

static void put_outside(Encoder *e, Onnx__TensorProto *p, ProtobufCBinaryData data) {
    static const char zeros[ALIGNMENT] = { 0 };
    int64_t gap = (ALIGNMENT - e->at % ALIGNMENT) % ALIGNMENT;
    const char *slash = strrchr(e->beside, '/');
    e->ok = e->ok && out_write(e->outside, zeros, (size_t)gap) && out_write(e->outside, data.data, data.len);
    e->at += gap;
    p->external_data = NEW_ARRAY(e->arena, Onnx__StringStringEntryProto *, 3);
    add_entry(e, p, "location", slash ? slash + 1 : e->beside);
    add_entry(e, p, "offset", arena_printf(e->arena, "%lld", (long long)e->at));
    add_entry(e, p, "length", arena_printf(e->arena, "%lld", (long long)data.len));
    p->has_data_location = true;
    p->data_location = 1;
    e->at += (int64_t)data.len;
}

static Onnx__TensorProto *encode_tensor(Encoder *e, const Tensor *t, const char *name, bool initializer) {
    Onnx__TensorProto *p = NEW(e->arena, Onnx__TensorProto);
    onnx__tensor_proto__init(p);
    int64_t n = type_count(&t->type);
    p->n_dims = (size_t)t->type.rank;
    p->dims = arena_copy(e->arena, t->type.dim, sizeof t->type.dim);
    p->has_data_type = true;
    p->data_type = (int32_t)t->type.dtype;
    if (name) p->name = text(e, name);
    if (t->type.dtype == DT_STRING) {
        const char *const *s = t->data;
        p->n_string_data = (size_t)n;
        p->string_data = NEW_ARRAY(e->arena, ProtobufCBinaryData, n + 1);
        for (int64_t i = 0; i < n; i++)
            p->string_data[i] = (ProtobufCBinaryData){ strlen(s[i]), (uint8_t *)(uintptr_t)s[i] };
        return p;
    }
    ProtobufCBinaryData data = { (size_t)type_bytes(&t->type), t->data };
    if (dtype_bits(t->type.dtype) < 8) data = packed(e, t);
    if (e->outside && initializer && data.len >= LEAST_OUTSIDE) put_outside(e, p, data);
    else {
        p->has_raw_data = true;
        p->raw_data = data;
    }
    return p;
}

// ---------------------------------------------------------------- ends

static Onnx__TensorShapeProto *encode_shape(Encoder *e, const ModelEnd *end) {
    Onnx__TensorShapeProto *shape = NEW(e->arena, Onnx__TensorShapeProto);
    onnx__tensor_shape_proto__init(shape);
    shape->n_dim = (size_t)end->rank;
    shape->dim = NEW_ARRAY(e->arena, Onnx__TensorShapeProto__Dimension *, end->rank + 1);
    for (int i = 0; i < end->rank; i++) {
        Onnx__TensorShapeProto__Dimension *d = shape->dim[i] = NEW(e->arena, Onnx__TensorShapeProto__Dimension);
        onnx__tensor_shape_proto__dimension__init(d);
        d->has_dim_value = end->dim[i].known;
        d->dim_value = end->dim[i].value;
        if (*end->dim[i].symbol) d->dim_param = text(e, end->dim[i].symbol);
    }
    return shape;
}

static Onnx__ValueInfoProto **encode_ends(Encoder *e, int n, const ModelEnd *ends) {
    Onnx__ValueInfoProto **all = NEW_ARRAY(e->arena, Onnx__ValueInfoProto *, n + 1);
    for (int i = 0; i < n; i++) {
        Onnx__ValueInfoProto *info = all[i] = NEW(e->arena, Onnx__ValueInfoProto);
        onnx__value_info_proto__init(info);
        info->name = text(e, ends[i].name);
        info->type = NEW(e->arena, Onnx__TypeProto);
        onnx__type_proto__init(info->type);
        Onnx__TypeProto__Tensor *t = info->type->tensor_type = NEW(e->arena, Onnx__TypeProto__Tensor);
        onnx__type_proto__tensor__init(t);
        t->has_elem_type = true;
        t->elem_type = ends[i].dtype;
        t->shape = encode_shape(e, &ends[i]);
    }
    return all;
}

// ---------------------------------------------------------------- nodes

static Onnx__GraphProto *encode_graph(Encoder *e, const OnnxGraphDef *g);

static ProtobufCBinaryData bytes_of(const char *s) {
    return (ProtobufCBinaryData){ strlen(s), (uint8_t *)(uintptr_t)s };
}

static Onnx__AttributeProto *encode_attr(Encoder *e, const OnnxAttr *a) {
    Onnx__AttributeProto *p = NEW(e->arena, Onnx__AttributeProto);
    onnx__attribute_proto__init(p);
    p->name = text(e, a->name);
    p->has_type = true;
    p->type = a->type;
    p->has_i = a->type == ONNX_INT;
    p->i = a->i;
    p->has_f = a->type == ONNX_FLOAT;
    p->f = (float)a->f;
    p->has_s = a->type == ONNX_STRING;
    if (p->has_s) p->s = bytes_of(a->s);
    if (a->type == ONNX_TENSOR) p->t = encode_tensor(e, a->tensor, NULL, false);
    if (a->type == ONNX_GRAPH) p->g = encode_graph(e, a->graph);
    if (a->type == ONNX_INTS) {
        p->n_ints = (size_t)a->n;
        p->ints = (int64_t *)(uintptr_t)a->ints;
    }
    if (a->type == ONNX_FLOATS) {
        p->n_floats = (size_t)a->n;
        p->floats = (float *)(uintptr_t)a->floats;
    }
    if (a->type == ONNX_STRINGS) {
        p->n_strings = (size_t)a->n;
        p->strings = NEW_ARRAY(e->arena, ProtobufCBinaryData, a->n + 1);
        for (int i = 0; i < a->n; i++) p->strings[i] = bytes_of(a->strings[i]);
    }
    return p;
}

static char **encode_names(Encoder *e, int n, Names names) {
    char **to = NEW_ARRAY(e->arena, char *, n + 1);
    for (int i = 0; i < n; i++) to[i] = text(e, names[i]);
    return to;
}

static Onnx__NodeProto *encode_node(Encoder *e, const OnnxNodeDef *n) {
    Onnx__NodeProto *p = NEW(e->arena, Onnx__NodeProto);
    onnx__node_proto__init(p);
    p->n_input = (size_t)n->n_in;
    p->input = encode_names(e, n->n_in, n->in);
    p->n_output = (size_t)n->n_out;
    p->output = encode_names(e, n->n_out, n->out);
    if (*n->name) p->name = text(e, n->name);
    p->op_type = text(e, n->op);
    if (*n->domain) p->domain = text(e, n->domain);
    p->n_attribute = (size_t)n->n_attrs;
    p->attribute = NEW_ARRAY(e->arena, Onnx__AttributeProto *, n->n_attrs + 1);
    for (int i = 0; i < n->n_attrs; i++) p->attribute[i] = encode_attr(e, &n->attrs[i]);
    return p;
}

static Onnx__GraphProto *encode_graph(Encoder *e, const OnnxGraphDef *g) {
    Onnx__GraphProto *p = NEW(e->arena, Onnx__GraphProto);
    onnx__graph_proto__init(p);
    p->name = text(e, g->name);
    p->n_node = (size_t)g->n_nodes;
    p->node = NEW_ARRAY(e->arena, Onnx__NodeProto *, g->n_nodes + 1);
    for (int i = 0; i < g->n_nodes; i++) p->node[i] = encode_node(e, &g->nodes[i]);
    p->n_initializer = (size_t)g->n_inits;
    p->initializer = NEW_ARRAY(e->arena, Onnx__TensorProto *, g->n_inits + 1);
    for (int i = 0; i < g->n_inits; i++)
        p->initializer[i] = encode_tensor(e, g->inits[i].tensor, g->inits[i].name, true);
    p->n_input = (size_t)g->n_inputs;
    p->input = encode_ends(e, g->n_inputs, g->inputs);
    p->n_output = (size_t)g->n_outputs;
    p->output = encode_ends(e, g->n_outputs, g->outputs);
    return p;
}

// ---------------------------------------------------------------- the model

static void add_property(Encoder *e, Onnx__ModelProto *p, const char *key, const char *value) {
    Onnx__StringStringEntryProto *entry = NEW(e->arena, Onnx__StringStringEntryProto);
    onnx__string_string_entry_proto__init(entry);
    entry->key = text(e, key);
    entry->value = text(e, value);
    p->metadata_props[p->n_metadata_props++] = entry;
}

// What the model says of itself goes on. Its producer is burncc now; who it was before is a property.
static void encode_metadata(Encoder *e, const OnnxModel *m, Onnx__ModelProto *p) {
    const char *producer = "", *version = "";
    p->metadata_props = NEW_ARRAY(e->arena, Onnx__StringStringEntryProto *, m->metadata.n / 2 + 1);
    for (int i = 0; i + 1 < m->metadata.n; i += 2) {
        const char *key = m->metadata.at[i], *value = m->metadata.at[i + 1];
        if (!strcmp(key, "doc_string")) p->doc_string = text(e, value);
        else if (!strcmp(key, "domain")) p->domain = text(e, value);
        else if (!strcmp(key, "producer_name")) producer = value;
        else if (!strcmp(key, "producer_version")) version = value;
        else if (!strcmp(key, "model_version")) {
            p->has_model_version = true;
            p->model_version = strtoll(value, NULL, 10);
        } else {
            add_property(e, p, key, value);
        }
    }
    if (*producer && strcmp(producer, "burncc"))
        add_property(e, p, "original_producer",
            arena_printf(e->arena, "%s%s%s", producer, *version ? " " : "", version));
}

static Onnx__ModelProto *encode_model(Encoder *e, const OnnxModel *m) {
    Onnx__ModelProto *p = NEW(e->arena, Onnx__ModelProto);
    onnx__model_proto__init(p);
    p->has_ir_version = true;
    p->ir_version = m->ir_version;
    p->producer_name = text(e, "burncc");
    p->producer_version = text(e, BURNCC_VERSION);
    p->n_opset_import = (size_t)m->n_opsets;
    p->opset_import = NEW_ARRAY(e->arena, Onnx__OperatorSetIdProto *, m->n_opsets + 1);
    for (int i = 0; i < m->n_opsets; i++) {
        Onnx__OperatorSetIdProto *o = p->opset_import[i] = NEW(e->arena, Onnx__OperatorSetIdProto);
        onnx__operator_set_id_proto__init(o);
        o->domain = text(e, m->opsets[i].domain);
        o->has_version = true;
        o->version = m->opsets[i].version;
    }
    encode_metadata(e, m, p);
    p->graph = encode_graph(e, m->graph);
    return p;
}

typedef struct Sink { ProtobufCBuffer base; OutFile *file; bool ok; } Sink;

static void sink_append(ProtobufCBuffer *base, size_t n, const uint8_t *bytes) {
    Sink *s = (Sink *)base;
    s->ok = s->ok && out_write(s->file, bytes, n);
}

// Both files or none: what waits in their buffers goes out before either takes its name.
static bool commit(OutFile *outside, OutFile *file, bool ok) {
    ok = ok && (!outside || out_write(outside, NULL, 0)) && out_write(file, NULL, 0);
    if (ok) return (!outside || out_commit(outside)) && out_commit(file);
    if (outside) out_abandon(outside);
    if (file) out_abandon(file);
    return false;
}

const OutMark onnx_mark = { "\x12\x06" "burncc", true };       // the producer's name

bool onnx_encode(Arena *a, const OnnxModel *m, const char *path, const char *beside, int64_t limit) {
    Encoder e = { .arena = a, .beside = beside, .ok = true };
    const Onnx__ModelProto *p = encode_model(&e, m);
    if (onnx__model_proto__get_packed_size(p) > (size_t)limit) {
        if (!(e.outside = out_open(a, beside))) return false;
        p = encode_model(&e, m);
    }
    Sink sink = { .base = { sink_append }, .file = out_replace(a, path, onnx_mark) };
    sink.ok = e.ok && sink.file;
    if (sink.ok) onnx__model_proto__pack_to_buffer(p, &sink.base);
    return commit(e.outside, sink.file, sink.ok);
}
