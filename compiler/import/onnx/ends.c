// SPDX-License-Identifier: MIT OR Apache-2.0
// The ends of a model: what it declares as inputs and outputs, as inputs and outputs of the graph.
//
// In: declarations, and what the options say of them (--dim, --freeze, --sequence, --absent). Out: values, graph
// inputs and outputs, and a Bundle for each end that is no plain tensor. The idea: a sequence `x` whose length is
// known is as many tensors `x_0`, `x_1`, ..., and an optional is there or not when the model is compiled; so the
// graph knows tensors alone.
#include "onnx.h"

#include <string.h>

#define MAX_SYMBOLS 4096        // which some passes compare with all inputs

// ---------------------------------------------------------------- tensors

// The dimension of an input: a constant, a symbol, or the constant that --dim gives to the symbol.
static bool input_dim(Graph *g, const Options *options, const ModelEnd *in, int index, int axis, Dim *out) {
    Loc file = { .file = g->file, .node = -1 };
    const EndDim *d = &in->dim[axis];
    if (d->known && d->value != -1) {                   // -1: some exporters' way to say unknown
        if (d->value < 0)
            diag_error(&file, "input \"%s\": dimension %d is negative (%lld)", in->name, axis, (long long)d->value);
        *out = d->value;
        return d->value >= 0;
    }
    const char *name = !d->known && *d->symbol ? d->symbol : arena_printf(g->arena, "input_%d_dim_%d", index, axis);
    *out = dim_symbol(g, name);
    int count, number = symbol_number(g, name);
    if (number == MAX_SYMBOLS)
        diag_error_as(EXIT_LIMIT, &file,
            "input \"%s\": more than %d sizes of inputs have names; export the model with sizes that are numbers",
            in->name, MAX_SYMBOLS);
    if (number >= MAX_SYMBOLS) return false;
    Symbol *symbol = &graph_symbols(g, &count)[number];
    if (d->usual) symbol->usual = d->usual;
    for (int i = 0; options && i < options->dims.n; i++) {
        const DimOption *o = &options->dims.at[i];
        if (o->lo != o->hi || strcmp(o->name, name)) continue;
        symbol->lo = symbol->hi = o->lo;
        symbol->pinned = true;
        *out = o->lo;
    }
    return true;
}

static bool input_type(Graph *g, const Options *options, const ModelEnd *in, int index, Type *out) {
    Loc file = { .file = g->file, .node = -1 };
    if (!in->has_shape) {
        diag_error(&file, "input \"%s\" has no shape, not even a rank", in->name);
        return false;
    }
    Dim dims[MAX_RANK];
    int64_t known[MAX_RANK + 1];
    for (int i = 0; i < in->rank && i < MAX_RANK; i++) {
        if (!input_dim(g, options, in, index, i, &dims[i])) return false;
        known[i] = dim_is_const(dims[i]) ? dims[i] : 1;
    }
    if (!onnx_type(out, in->dtype, in->rank, known, "input", in->name, &file)) return false;
    *out = type_make((DType)in->dtype, in->rank, dims);
    return true;
}

static const Tensor *frozen_value(const Options *o, const char *name) {
    for (int i = 0; o && i < o->frozen.n; i++)
        if (!strcmp(o->frozen.at[i].name, name)) return o->frozen.at[i].value;
    return NULL;
}

// Whether the frozen value fits the input's type; symbolic dimensions take any size.
static bool fits(const Type *type, const Tensor *t) {
    bool ok = type->dtype == t->type.dtype && type->rank == t->type.rank;
    for (int i = 0; ok && i < type->rank; i++) ok = !dim_is_const(type->dim[i]) || type->dim[i] == t->type.dim[i];
    return ok;
}

static Value *tensor_input(Graph *g, const Options *o, const ModelEnd *in, int index) {
    Loc file = { .file = g->file, .node = -1 };
    Type type;
    if (!input_type(g, o, in, index, &type)) return NULL;
    const Tensor *frozen = frozen_value(o, in->name);
    if (!frozen) return graph_input(g, in->name, type);
    if (fits(&type, frozen)) return graph_const(g, arena_copy(g->arena, frozen, sizeof *frozen), in->name);
    diag_error(&file, "the value given for input \"%s\" is %s, the model wants %s", in->name,
        type_text(g->arena, g, &frozen->type), type_text(g->arena, g, &type));
    return NULL;
}

// ---------------------------------------------------------------- sequences and optionals

// A name that no end of the model has.
static const char *end_name(Arena *a, const OnnxModel *m, const char *name) {
    for (int i = 0; i < m->graph->n_inputs + m->graph->n_outputs; i++) {
        const ModelEnd *other = i < m->graph->n_inputs ? &m->graph->inputs[i] :
                                                          &m->graph->outputs[i - m->graph->n_inputs];
        if (strcmp(other->name, name)) continue;
        name = arena_printf(a, "%s_", name);
        i = -1;
    }
    return name;
}

// Of element k of a sequence.
static const char *slot_name(Arena *a, const OnnxModel *m, const char *sequence, int k) {
    return end_name(a, m, arena_printf(a, "%s_%d", sequence, k));
}

static Bundle *bundle_new(Graph *g, const ModelEnd *end, bool output, int n) {
    const char **names = NEW_ARRAY(g->arena, const char *, n + 1);
    names[0] = end->name;
    VEC_PUSH(g->arena, g->bundles,
        (Bundle){ .name = end->name,
            .output = output,
            .sequence = end->sequence,
            .optional = end->optional,
            .n = n,
            .names = names });
    return &g->bundles.at[g->bundles.n - 1];
}

// An element's declaration: the sizes that the option gives, or the model's, whose symbols all elements share.
static ModelEnd slot_declaration(Arena *a, const ModelEnd *in, const char *name, const Type *given) {
    ModelEnd slot = *in;
    slot.name = name;
    if (!given) return slot;
    EndDim *dims = NEW_ARRAY(a, EndDim, given->rank + 1);
    for (int i = 0; i < given->rank; i++) dims[i] = (EndDim){ .known = true, .value = given->dim[i], .symbol = "" };
    slot.has_shape = true;
    slot.rank = given->rank;
    slot.dim = dims;
    return slot;
}

static bool shape_agrees(const ModelEnd *in, const Type *given) {
    bool ok = !in->has_shape || in->rank == given->rank;
    for (int i = 0; ok && in->has_shape && i < given->rank; i++)
        ok = !in->dim[i].known || in->dim[i].value == -1 || in->dim[i].value == given->dim[i];
    return ok;
}

static const SequenceOption *sequence_option(const Options *o, const char *name) {
    for (int i = 0; o && i < o->sequences.n; i++)
        if (!strcmp(o->sequences.at[i].name, name)) return &o->sequences.at[i];
    return NULL;
}

// A sequence of any length: one tensor, whose first dimension is the symbol NAME_length.
static Value *stacked_input(Graph *g, const Options *o, const ModelEnd *in, const SequenceOption *given, int index) {
    Loc file = { .file = g->file, .node = -1 };
    const Type *shape = given->elements;
    if ((!shape && !in->has_shape) || (shape ? shape->rank : in->rank) >= MAX_RANK
        || (shape && !shape_agrees(in, shape))) {
        diag_error(&file,
            "sequence \"%s\": its elements need a shape that fits the model, of at most %d dimensions: --sequence "
            "'%s=%lld..%lld[2,3]'",
            in->name, MAX_RANK - 1, in->name, (long long)given->lo, (long long)given->hi);
        return NULL;
    }
    ModelEnd rows = slot_declaration(g->arena, in, in->name, shape);
    EndDim *dims = NEW_ARRAY(g->arena, EndDim, rows.rank + 1);
    dims[0] = (EndDim){ .symbol = arena_printf(g->arena, "%s_length", in->name) };
    for (int i = 0; i < rows.rank; i++) dims[i + 1] = rows.dim[i];
    rows.rank++;
    rows.dim = dims;
    Value *v = tensor_input(g, o, &rows, index);
    Bundle *b = v ? bundle_new(g, in, false, 1) : NULL;
    if (b) b->stacked = true;
    return onnx_sequence_of_rows(g, v);
}

static Value *sequence_input(Graph *g, const OnnxModel *m, const Options *o, const ModelEnd *in, int index) {
    Loc file = { .file = g->file, .node = -1 };
    const SequenceOption *given = sequence_option(o, in->name);
    int n = given ? given->n : 1;
    if (given && given->stacked) return stacked_input(g, o, in, given, index);
    if (n && !in->has_shape && !(given && given->elements)) {
        diag_error(&file,
            "sequence \"%s\": the model does not say what shape its elements have; --sequence %s=[2,3],[4,3] does",
            in->name, in->name);
        return NULL;
    }
    if (!given && o && !o->quiet)
        diag_note(&file, "sequence %s is taken to have one element; --sequence %s=N gives it another length", in->name,
            in->name);
    Bundle *b = bundle_new(g, in, false, n);
    const char **names = NEW_ARRAY(g->arena, const char *, n + 1);
    Value **items = NEW_ARRAY(g->arena, Value *, n + 1);
    b->names = names;
    for (int k = 0; k < n; k++) {
        const Type *shape = given && given->elements ? &given->elements[k] : NULL;
        names[k] = slot_name(g->arena, m, in->name, k);
        if (shape && !shape_agrees(in, shape)) {
            diag_error(&file,
                "element %d of sequence \"%s\" is given %d dimensions or sizes that the model does not have", k,
                in->name, shape->rank);
            return NULL;
        }
        ModelEnd slot = slot_declaration(g->arena, in, names[k], shape);
        if (!(items[k] = tensor_input(g, o, &slot, index))) return NULL;
    }
    return onnx_sequence_of(g, n, items);
}

static bool is_absent(const Options *o, const char *name) {
    for (int i = 0; o && i < o->absent.n; i++)
        if (!strcmp(o->absent.at[i], name)) return true;
    return false;
}

// A map is two vectors of the size NAME_size: its keys, each once, and their values.
static Value *map_input(Graph *g, const OnnxModel *m, const Options *o, const ModelEnd *in, int index) {
    EndDim size = { .symbol = arena_printf(g->arena, "%s_size", in->name) };
    ModelEnd half = { .kind = "tensor", .has_shape = true, .rank = 1, .dim = &size };
    Value *halves[2];
    for (int i = 0; i < 2; i++) {
        half.name = end_name(g->arena, m, arena_printf(g->arena, i ? "%s_values" : "%s_keys", in->name));
        half.dtype = i ? in->map_value : in->map_key;
        if (!(halves[i] = tensor_input(g, o, &half, index))) return NULL;
    }
    return onnx_sequence_of(g, 2, halves);
}

Value *onnx_end_input(Graph *g, const OnnxModel *m, const Options *o, const ModelEnd *in, int index) {
    Loc file = { .file = g->file, .node = -1 };
    if (!strcmp(in->kind, "map") && !in->sequence && !in->optional && in->map_key && in->map_value)
        return map_input(g, m, o, in, index);
    if (strcmp(in->kind, "tensor")) {
        diag_error(&file,
            "input \"%s\" is a %s; inputs are tensors, maps to numbers or strings, sequences of tensors, or optional "
            "ones of these",
            in->name, in->kind);
        return NULL;
    }
    if (in->optional && is_absent(o, in->name)) {
        bundle_new(g, in, false, 0)->absent = true;
        return onnx_absent();
    }
    if (in->sequence) return sequence_input(g, m, o, in, index);
    Value *v = tensor_input(g, o, in, index);
    if (v && in->optional) bundle_new(g, in, false, 1);
    return v;
}

static void tensor_output(Graph *g, Value *v, const char *name) {
    if (v->def || (v = b_unary(g, OP_Identity, v))) graph_output(g, v, name);
}

void onnx_end_output(Graph *g, const OnnxModel *m, const ModelEnd *declared, Value *v) {
    Loc file = { .file = g->file, .node = -1 };
    ModelEnd end = *declared;
    if (v == onnx_absent()) {
        if (!declared->optional) diag_error(&file, "output \"%s\" is an optional that holds nothing", declared->name);
        bundle_new(g, &end, true, 0)->absent = true;
        return;
    }
    int n;
    Value *const *items = onnx_sequence_items(v, &n);
    Value *stack = onnx_sequence_stack(v);
    end.sequence = items || stack;
    if (stack) {
        v = stack;
        bundle_new(g, &end, true, 1)->stacked = true;
    }
    DType dtype = items ? n ? items[0]->type.dtype : DT_NONE : v->type.dtype;
    bool is_map = !strcmp(declared->kind, "map");
    if (declared->dtype && dtype && !is_map && (DType)declared->dtype != dtype)
        diag_warn(WARN_output_type, &file, "output \"%s\" is declared with another element type than the %s it has",
            declared->name, dtype_name(dtype));
    if (items || (declared->optional && !is_map && !stack)) {
        const char **names = NEW_ARRAY(g->arena, const char *, n + 1);
        for (int k = 0; k < n; k++) names[k] = slot_name(g->arena, m, declared->name, k);
        Bundle *b = bundle_new(g, &end, true, items ? n : 1);
        if (items) b->names = names;
        for (int k = 0; k < n; k++) tensor_output(g, items[k], names[k]);
    }
    if (!items) tensor_output(g, v, declared->name);
}

static const ModelEnd *find_input(int n, const ModelEnd *const *in, const char *name) {
    for (int i = 0; i < n; i++)
        if (!strcmp(in[i]->name, name)) return in[i];
    return NULL;
}

bool onnx_ends_check(Arena *a, const OnnxModel *m, const Options *o) {
    Loc file = { .file = m->file, .node = -1 };
    int n, errors = diag_errors();
    const ModelEnd *const *in = onnx_true_inputs(a, m, &n);
    for (int i = 0; i < o->sequences.n; i++) {
        const ModelEnd *found = find_input(n, in, o->sequences.at[i].name);
        if (!found || !found->sequence)
            diag_error_as(EXIT_USAGE, &file, "--sequence %s: the model has no input of this name that is a sequence",
                o->sequences.at[i].name);
    }
    for (int i = 0; i < o->absent.n; i++) {
        const ModelEnd *found = find_input(n, in, o->absent.at[i]);
        if (!found || !found->optional)
            diag_error_as(EXIT_USAGE, &file, "--absent %s: the model has no input of this name that is optional",
                o->absent.at[i]);
    }
    return diag_errors() == errors;
}
