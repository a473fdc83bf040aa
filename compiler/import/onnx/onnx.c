// SPDX-License-Identifier: MIT OR Apache-2.0
// Reading an ONNX file: the only user of protobuf-c.
//
// In: a path. Out: a Graph, or NULL with diagnostics. Here bytes become plain structs (OnnxModel): text is never
// NULL, tensors are checked and in memory form, graphs in attributes are decoded too. graph.c makes the Graph. The
// idea: what protobuf may allocate is bounded by the file's own size and how deep it may recurse by onnx_wire_check,
// so that a hostile file costs no more than an honest one.
#include "onnx.h"
#include "onnx.pb-c.h"
#include "import/foreign.h"

#include <stdlib.h>
#include <string.h>

typedef struct Decoder {
    Arena *arena;
    TensorReader tensors;
    Loc file;                                           // place without a node
    size_t budget;                                      // bytes that protobuf may still allocate
    bool exhausted;
} Decoder;

static void *budget_alloc(void *ctx, size_t bytes) {
    Decoder *d = ctx;
    size_t cost = bytes + 16;
    if (cost < bytes || cost > d->budget) {
        d->exhausted = true;
        return NULL;
    }
    d->budget -= cost;
    return arena_alloc(d->arena, bytes ? bytes : 1);
}

static void budget_free(void *ctx, void *p) { (void)ctx, (void)p; }    // the arena frees it

static const char *text(const char *s) { return s ? s : ""; }
static const char *domain_text(const char *s) { return !s || !strcmp(s, "ai.onnx") ? "" : s; }
static const char *bytes_text(Decoder *d, ProtobufCBinaryData b) {
    return b.len ? arena_strndup(d->arena, (const char *)b.data, b.len) : "";
}

static const char *const *texts(Decoder *d, size_t n, char **from) {
    const char **to = NEW_ARRAY(d->arena, const char *, n + 1);
    for (size_t i = 0; i < n; i++) to[i] = text(from[i]);
    return to;
}

static const char *const *byte_texts(Decoder *d, size_t n, const ProtobufCBinaryData *from) {
    const char **to = NEW_ARRAY(d->arena, const char *, n + 1);
    for (size_t i = 0; i < n; i++) to[i] = bytes_text(d, from[i]);
    return to;
}

// ---------------------------------------------------------------- tensors

// A whole number of a text such as an external offset; false when it is anything else.
static bool parse_i64(const char *s, int64_t *out) {
    *out = 0;
    if (!*s) return false;
    for (; *s; s++) {
        if (*s < '0' || *s > '9' || *out > (INT64_MAX - 9) / 10) return false;
        *out = *out * 10 + (*s - '0');
    }
    return true;
}

static bool decode_external(Decoder *d, const Onnx__TensorProto *p, TensorSource *s, const Loc *loc) {
    s->external = true;
    s->length = -1;
    for (size_t i = 0; i < p->n_external_data; i++) {
        const char *key = text(p->external_data[i]->key), *value = text(p->external_data[i]->value);
        int64_t *number = !strcmp(key, "offset") ? &s->offset : !strcmp(key, "length") ? &s->length : NULL;
        if (!strcmp(key, "location")) s->location = arena_strdup(d->arena, value);
        if (number && !parse_i64(value, number)) {
            diag_error(loc, "tensor \"%s\": external %s \"%s\" is not a number", s->name, key, value);
            return false;
        }
    }
    return true;
}

static Tensor *decode_tensor(Decoder *d, const Onnx__TensorProto *p, const Loc *loc) {
    TensorSource s = { .name = text(p->name), .dims = p->dims, .dtype = p->data_type };
    s.n_dims = p->n_dims > INT32_MAX ? INT32_MAX : (int)p->n_dims;
    if (p->segment) {
        diag_error(loc, "tensor \"%s\" is stored in segments, which are not supported", s.name);
        return NULL;
    }
    s.has_raw = p->has_raw_data;
    s.raw = p->raw_data.data;
    s.raw_size = p->raw_data.len;
    s.f = p->float_data;
    s.n_f = p->n_float_data;
    s.d = p->double_data;
    s.n_d = p->n_double_data;
    s.i32 = p->int32_data;
    s.n_i32 = p->n_int32_data;
    s.i64 = p->int64_data;
    s.n_i64 = p->n_int64_data;
    s.u64 = p->uint64_data;
    s.n_u64 = p->n_uint64_data;
    if (p->data_type == DT_STRING) {
        s.strings = byte_texts(d, p->n_string_data, p->string_data);
        s.n_strings = p->n_string_data;
    }
    if (p->has_data_location && p->data_location == 1 && !decode_external(d, p, &s, loc)) return NULL;
    return onnx_tensor(&d->tensors, &s, loc);
}

static Tensor *decode_sparse(Decoder *d, const Onnx__SparseTensorProto *p, const char *name, const Loc *loc) {
    if (!p->values || !p->indices) {
        diag_error(loc, "sparse tensor \"%s\" lacks its values or indices", name);
        return NULL;
    }
    Tensor *values = decode_tensor(d, p->values, loc), *indices = decode_tensor(d, p->indices, loc);
    if (!values || !indices) return NULL;
    return onnx_sparse_tensor(
        &d->tensors, values, indices, p->n_dims > INT32_MAX ? INT32_MAX : (int)p->n_dims, p->dims, name, loc);
}

// ---------------------------------------------------------------- inputs, attributes, nodes, graphs

static void decode_shape(Decoder *d, ModelEnd *in, const Onnx__TensorShapeProto *p) {
    if (!p) return;
    in->has_shape = true;
    in->rank = p->n_dim > MAX_RANK ? MAX_RANK + 1 : (int)p->n_dim;
    if (in->rank == 0) return;
    EndDim *to = NEW_ARRAY(d->arena, EndDim, in->rank);
    for (int i = 0; i < in->rank; i++) {
        const Onnx__TensorShapeProto__Dimension *dim = p->dim[i];
        to[i] = (EndDim){ .known = dim->has_dim_value, .value = dim->dim_value, .symbol = text(dim->dim_param) };
    }
    in->dim = to;
}

static ModelEnd decode_input(Decoder *d, const Onnx__ValueInfoProto *p) {
    ModelEnd in = { .name = text(p->name), .kind = "value without a type" };
    const Onnx__TypeProto *t = p->type;
    if (t && t->optional_type) {
        in.optional = true;
        t = t->optional_type->elem_type;
    }
    if (t && t->sequence_type) {
        in.sequence = true;
        t = t->sequence_type->elem_type;
    }
    if (!t) return in;
    if (t->tensor_type) {
        in.kind = "tensor";
        in.dtype = t->tensor_type->elem_type;
        decode_shape(d, &in, t->tensor_type->shape);
    } else {
        const Onnx__TypeProto *value = t->map_type ? t->map_type->value_type : NULL;
        if (value && value->tensor_type) in.map_value = value->tensor_type->elem_type;
        if (value) in.map_key = t->map_type->key_type;
        in.kind = t->sequence_type ? "sequence of sequences" :
            t->map_type            ? "map" :
            t->optional_type       ? "sequence of optionals" :
            t->sparse_tensor_type  ? "sparse tensor" :
                                     in.kind;
    }
    return in;
}

static OnnxGraphDef *decode_graph(Decoder *d, const Onnx__GraphProto *p);

// Old files (IR version 1) leave out the type: the field that is there tells.
static int attr_type(const Onnx__AttributeProto *p) {
    if (p->has_type && p->type) return p->type;
    return p->n_ints     ? ONNX_INTS :
        p->n_floats      ? ONNX_FLOATS :
        p->n_strings     ? ONNX_STRINGS :
        p->t             ? ONNX_TENSOR :
        p->g             ? ONNX_GRAPH :
        p->has_s         ? ONNX_STRING :
        p->has_f         ? ONNX_FLOAT :
        p->has_i         ? ONNX_INT :
        p->sparse_tensor ? ONNX_SPARSE_TENSOR :
                           0;
}

static OnnxAttr decode_attr(Decoder *d, const Onnx__AttributeProto *p, const Loc *loc) {
    OnnxAttr a = { .name = text(p->name),
        .ref = p->ref_attr_name && *p->ref_attr_name ? p->ref_attr_name : NULL,
        .type = attr_type(p),
        .s = "" };
    a.i = p->i;
    a.f = (double)p->f;
    size_t n = 0;
    switch (a.type) {
    case ONNX_STRING: a.s = bytes_text(d, p->s); break;
    case ONNX_FLOATS:
        a.floats = p->floats;
        n = p->n_floats;
        break;
    case ONNX_INTS:
        a.ints = p->ints;
        n = p->n_ints;
        break;
    case ONNX_STRINGS:
        a.strings = byte_texts(d, p->n_strings, p->strings);
        n = p->n_strings;
        break;
    case ONNX_TENSOR:
        if (p->t) a.tensor = decode_tensor(d, p->t, loc);
        break;
    case ONNX_SPARSE_TENSOR:
        if (p->sparse_tensor) a.tensor = decode_sparse(d, p->sparse_tensor, a.name, loc);
        break;
    case ONNX_GRAPH:
        if (p->g) a.graph = decode_graph(d, p->g);
        break;
    default: break;
    }
    a.n = n > INT32_MAX ? INT32_MAX : (int)n;
    return a;
}

static const OnnxAttr *decode_attrs(Decoder *d, size_t n, Onnx__AttributeProto **from, const Loc *loc) {
    OnnxAttr *to = NEW_ARRAY(d->arena, OnnxAttr, n + 1);
    for (size_t i = 0; i < n; i++) to[i] = decode_attr(d, from[i], loc);
    return to;
}

static const OnnxNodeDef *decode_nodes(Decoder *d, size_t n, Onnx__NodeProto **from) {
    OnnxNodeDef *to = NEW_ARRAY(d->arena, OnnxNodeDef, n + 1);
    for (size_t i = 0; i < n; i++) {
        const Onnx__NodeProto *p = from[i];
        Loc *loc = NEW(d->arena, Loc);
        *loc = (Loc){ .file = d->file.file, .node = (int)i, .name = text(p->name), .op = text(p->op_type) };
        to[i] = (OnnxNodeDef){
            .name = loc->name,
            .op = loc->op,
            .domain = domain_text(p->domain),
            .overload = text(p->overload),
            .loc = loc,
            .n_in = (int)p->n_input,
            .in = texts(d, p->n_input, p->input),
            .n_out = (int)p->n_output,
            .out = texts(d, p->n_output, p->output),
            .n_attrs = (int)p->n_attribute,
            .attrs = decode_attrs(d, p->n_attribute, p->attribute, loc),
        };
    }
    return to;
}

static OnnxGraphDef *decode_graph(Decoder *d, const Onnx__GraphProto *p) {
    OnnxGraphDef *g = NEW(d->arena, OnnxGraphDef);
    g->name = text(p->name);
    OnnxInit *inits = NEW_ARRAY(d->arena, OnnxInit, p->n_initializer + p->n_sparse_initializer + 1);
    for (size_t i = 0; i < p->n_initializer; i++)
        inits[g->n_inits++] = (OnnxInit){ text(p->initializer[i]->name),
            decode_tensor(d, p->initializer[i], &d->file) };
    for (size_t i = 0; i < p->n_sparse_initializer; i++) {
        const Onnx__SparseTensorProto *s = p->sparse_initializer[i];
        const char *name = s->values ? text(s->values->name) : "";
        inits[g->n_inits++] = (OnnxInit){ name, decode_sparse(d, s, name, &d->file) };
    }
    ModelEnd *inputs = NEW_ARRAY(d->arena, ModelEnd, p->n_input + 1),
              *outputs = NEW_ARRAY(d->arena, ModelEnd, p->n_output + 1);
    ModelEnd *infos = NEW_ARRAY(d->arena, ModelEnd, p->n_value_info + 1);
    for (size_t i = 0; i < p->n_input; i++) inputs[i] = decode_input(d, p->input[i]);
    for (size_t i = 0; i < p->n_output; i++) outputs[i] = decode_input(d, p->output[i]);
    for (size_t i = 0; i < p->n_value_info; i++) infos[i] = decode_input(d, p->value_info[i]);
    g->inits = inits;
    g->infos = infos;
    g->n_infos = (int)p->n_value_info;
    g->inputs = inputs;
    g->n_inputs = (int)p->n_input;
    g->outputs = outputs;
    g->n_outputs = (int)p->n_output;
    g->nodes = decode_nodes(d, p->n_node, p->node);
    g->n_nodes = (int)p->n_node;
    return g;
}

static const OnnxOpset *decode_opsets(Decoder *d, size_t n, Onnx__OperatorSetIdProto **from) {
    OnnxOpset *to = NEW_ARRAY(d->arena, OnnxOpset, n + 1);
    for (size_t i = 0; i < n; i++) to[i] = (OnnxOpset){ domain_text(from[i]->domain), from[i]->version };
    return to;
}

static OnnxFunction decode_function(Decoder *d, const Onnx__FunctionProto *p) {
    OnnxFunction f = { .name = text(p->name), .domain = domain_text(p->domain), .overload = text(p->overload) };
    Loc *loc = NEW(d->arena, Loc);
    *loc = (Loc){ .file = d->file.file, .node = -1, .name = f.name };
    f.in = texts(d, p->n_input, p->input);
    f.n_in = (int)p->n_input;
    f.out = texts(d, p->n_output, p->output);
    f.n_out = (int)p->n_output;
    f.attrs = decode_attrs(d, p->n_attribute_proto, p->attribute_proto, loc);
    f.n_attrs = (int)p->n_attribute_proto;
    f.nodes = decode_nodes(d, p->n_node, p->node);
    f.n_nodes = (int)p->n_node;
    f.opsets = decode_opsets(d, p->n_opset_import, p->opset_import);
    f.n_opsets = (int)p->n_opset_import;
    return f;
}

static void add_metadata(Decoder *d, OnnxModel *m, const char *key, const char *value) {
    if (!*key || !*value) return;
    VEC_PUSH(d->arena, m->metadata, key);
    VEC_PUSH(d->arena, m->metadata, value);
}

static void decode_metadata(Decoder *d, const Onnx__ModelProto *p, OnnxModel *m) {
    add_metadata(d, m, "producer_name", text(p->producer_name));
    add_metadata(d, m, "producer_version", text(p->producer_version));
    add_metadata(d, m, "domain", text(p->domain));
    if (p->model_version)
        add_metadata(d, m, "model_version", arena_printf(d->arena, "%lld", (long long)p->model_version));
    add_metadata(d, m, "doc_string", text(p->doc_string));
    for (size_t i = 0; i < p->n_metadata_props; i++)
        add_metadata(d, m, text(p->metadata_props[i]->key), text(p->metadata_props[i]->value));
}

static OnnxModel *decode_model(Decoder *d, const Onnx__ModelProto *p) {
    OnnxModel *m = NEW(d->arena, OnnxModel);
    *m = (OnnxModel){ .file = d->file.file, .ir_version = p->ir_version };
    m->opsets = decode_opsets(d, p->n_opset_import, p->opset_import);
    m->n_opsets = (int)p->n_opset_import;
    OnnxFunction *functions = NEW_ARRAY(d->arena, OnnxFunction, p->n_functions + 1);
    for (size_t i = 0; i < p->n_functions; i++) functions[i] = decode_function(d, p->functions[i]);
    m->functions = functions;
    m->n_functions = (int)p->n_functions;
    m->graph = decode_graph(d, p->graph);
    decode_metadata(d, p, m);
    return m;
}

// ---------------------------------------------------------------- the file

static void no_model(const Decoder *d, const File *f, const char *why) {
    const char *what = foreign_file(f);
    diag_error(&d->file, "%s%s%s", why, what ? "; this is " : "", what ? what : "");
}

static OnnxModel *decode(Decoder *d, const File *f) {
    if (!onnx_wire_check(f, &d->file)) return NULL;
    ProtobufCAllocator allocator = { budget_alloc, budget_free, d };
    Onnx__ModelProto *p = onnx__model_proto__unpack(&allocator, f->size, f->data);
    if (!p) {
        if (d->exhausted)
            diag_error_as(
                EXIT_LIMIT, &d->file, "decoding the file would take far more memory than its %zu bytes", f->size);
        else no_model(d, f, "not an ONNX file, or a damaged one");
        return NULL;
    }
    if (!p->graph) {
        no_model(d, f, "not an ONNX model: it has no graph");
        return NULL;
    }
    return decode_model(d, p);
}

static Decoder decoder_for(Arena *a, const char *path, size_t size) {
    const char *slash = strrchr(path, '/');
    const char *base_dir = slash == path ? "/" : slash ? arena_strndup(a, path, (size_t)(slash - path)) : ".";
    size_t budget = 16 * size + ((size_t)64 << 20);
    Decoder d = { .arena = a, .file = { .file = arena_strdup(a, path), .node = -1 }, .budget = budget };
    d.tensors = (TensorReader){ a, base_dir, budget, strmap_new(a) };
    return d;
}

// Messages of protobuf have no mark of their own.
static bool claims(const File *f) { return f->size > 0; }

static const ModelFact *facts(Arena *a, const OnnxModel *m) {
    int64_t opset = m->ir_version < 3;                  // the first files import none
    for (int i = m->n_opsets - 1; i >= 0; i--)
        if (!*m->opsets[i].domain) opset = m->opsets[i].version;
    const ModelFact both[] = { { "ir_version", "IR", m->ir_version }, { "opset", "operator set", opset } };
    return arena_copy(a, both, sizeof both);
}

static bool open_file(Arena *a, const File *f, const Options *o, Model *model) {
    Decoder d = decoder_for(a, model->file, f->size);
    OnnxModel *m = decode(&d, f);
    if (!m || !onnx_shapes_give(a, m, o)) return false;
    const ModelEnd *const *inputs = onnx_true_inputs(a, m, &model->n_inputs);
    ModelEnd *flat = NEW_ARRAY(a, ModelEnd, model->n_inputs + 1);
    for (int i = 0; i < model->n_inputs; i++) flat[i] = *inputs[i];
    model->inputs = flat;
    model->n_outputs = m->graph->n_outputs;
    model->outputs = m->graph->outputs;
    model->n_facts = 2;
    model->facts = facts(a, m);
    model->source = m;
    return true;
}

static void operators_of(const OnnxGraphDef *g, void (*found)(void *ctx, const char *op), void *ctx) {
    for (int i = 0; i < g->n_nodes; i++) {
        const OnnxNodeDef *n = &g->nodes[i];
        found(ctx, n->op);
        for (int k = 0; k < n->n_attrs; k++)
            if (n->attrs[k].graph) operators_of(n->attrs[k].graph, found, ctx);
    }
}

static void operators(const Model *m, void (*found)(void *ctx, const char *op), void *ctx) {
    operators_of(((const OnnxModel *)m->source)->graph, found, ctx);
}

const FrontEnd onnx_front_end = {
    .name = "ONNX",
    .key = "onnx",
    .claims = claims,
    .open = open_file,
    .graph = onnx_build,
    .takes_shapes = true,
    .again = true,
    .operators = operators,
    .inputs = onnx_inputs_only,
    .support = onnx_support,
    .latest = ONNX_OPSET_LATEST,
};

// ---------------------------------------------------------------- test data

// No message of these holds its own kind, so nothing nests deeply.
static void *unpack_data(Decoder *d, const File *f, const ProtobufCMessageDescriptor *kind) {
    ProtobufCAllocator allocator = { budget_alloc, budget_free, d };
    void *p = protobuf_c_message_unpack(kind, &allocator, f->size, f->data);
    if (p) return p;
    if (d->exhausted)
        diag_error_as(
            EXIT_LIMIT, &d->file, "decoding the file would take far more memory than its %zu bytes", f->size);
    else diag_error(&d->file, "not the ONNX data that the model declares, or damaged");
    return NULL;
}

static bool read_tensors(Decoder *d, size_t n, Onnx__TensorProto **from, EndData *out) {
    if (n > INT32_MAX) return false;
    out->n = (int)n;
    out->at = NEW_ARRAY(d->arena, Tensor *, n + 1);
    for (size_t i = 0; i < n; i++)
        if (!(out->at[i] = decode_tensor(d, from[i], &d->file))) return false;
    return true;
}

static bool read_sequence(Decoder *d, const Onnx__SequenceProto *p, EndData *out) {
    return p && read_tensors(d, p->n_tensor_values, p->tensor_values, out);
}

// An element type of 0 says that there is none.
static bool read_optional(Decoder *d, const Onnx__OptionalProto *p, bool sequence, EndData *out) {
    if (!p) return false;
    out->name = text(p->name);
    out->absent = !p->elem_type || (sequence ? !p->sequence_value : !p->tensor_value);
    if (out->absent) return true;
    return sequence ? read_sequence(d, p->sequence_value, out) :
                      read_tensors(d, 1, (Onnx__TensorProto **)(uintptr_t)&p->tensor_value, out);
}

static bool read_data(Decoder *d, const File *f, bool optional, bool sequence, EndData *out) {
    if (optional) return read_optional(d, unpack_data(d, f, &onnx__optional_proto__descriptor), sequence, out);
    if (sequence) {
        const Onnx__SequenceProto *p = unpack_data(d, f, &onnx__sequence_proto__descriptor);
        if (p) out->name = text(p->name);
        return read_sequence(d, p, out);
    }
    Onnx__TensorProto *p = unpack_data(d, f, &onnx__tensor_proto__descriptor);
    if (p) out->name = text(p->name);
    return p && read_tensors(d, 1, &p, out);
}

// A list of maps is recorded as the matrix of their values.
bool end_data_read(Arena *a, const char *path, const ModelEnd *declared, EndData *out) {
    File f;
    *out = (EndData){ .name = "" };
    if (!file_map(&f, path)) return false;
    Decoder d = decoder_for(a, path, f.size);
    bool tensors = !declared || strcmp(declared->kind, "map") == 0;
    bool ok = read_data(&d, &f, !tensors && declared->optional, !tensors && declared->sequence, out);
    out->name = arena_strdup(a, out->name);
    file_unmap(&f);
    return ok;
}
