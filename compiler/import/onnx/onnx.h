// SPDX-License-Identifier: MIT OR Apache-2.0
// What the files of the ONNX importer share: the decoded model as plain structs, and the node that operator builders
// are given.
//
//   bytes -- wire.c (depth) --> onnx.c (protobuf) -- OnnxModel --> graph.c (names, scopes, functions) -- OnnxNode -->
//       builders -> Graph
//
// The idea: protobuf ends in onnx.c and names end in graph.c, so that a builder sees only values, attributes and an
// opset version.
#ifndef BURNCC_ONNX_H
#define BURNCC_ONNX_H

#include "build/build.h"
#include "import/import.h"

#define ONNX_IR_LATEST 14       // newer files are read with a warning
#define ONNX_OPSET_LATEST 28    // newer files are not read: their operators may mean something else

// ---------------------------------------------------------------- wire.c
// Bounds the nesting of messages without recursion, so that the decoder may recurse. False with a diagnostic.
bool onnx_wire_check(const File *f, const Loc *loc);

// ---------------------------------------------------------------- tensor.c
// A TensorProto's fields. At most one data field is used, chosen by dtype; external: a file beside the model.
typedef struct TensorSource {
    const char *name;
    int n_dims; const int64_t *dims;
    int dtype;
    bool has_raw; const uint8_t *raw; size_t raw_size;
    size_t n_f; const float *f;
    size_t n_d; const double *d;
    size_t n_i32; const int32_t *i32;
    size_t n_i64; const int64_t *i64;
    size_t n_u64; const uint64_t *u64;
    size_t n_strings; const char *const *strings;       // terminated copies
    bool external; const char *location; int64_t offset, length;        // length -1: to the end of the file
} TensorSource;
// budget: bytes that expansion may still make
typedef struct TensorReader { Arena *arena; const char *base_dir; size_t budget; StrMap *files; } TensorReader;
Tensor *onnx_tensor(TensorReader *r, const TensorSource *s, const Loc *loc);            // NULL with a diagnostic
Tensor *onnx_sparse_tensor(TensorReader *r, const Tensor *values, const Tensor *indices, int n_dims,
    const int64_t *dims, const char *name, const Loc *loc);
// checks dtype, rank, sizes
bool onnx_type(
    Type *out, int dtype, int n_dims, const int64_t *dims, const char *what, const char *name, const Loc *loc);

// ---------------------------------------------------------------- onnx.c: the decoded model
typedef struct OnnxGraphDef OnnxGraphDef;
typedef struct OnnxModel OnnxModel;
// AttributeType
enum {
    ONNX_FLOAT = 1,
    ONNX_INT,
    ONNX_STRING,
    ONNX_TENSOR,
    ONNX_GRAPH,
    ONNX_FLOATS,
    ONNX_INTS,
    ONNX_STRINGS,
    ONNX_SPARSE_TENSOR = 11
};

typedef struct OnnxAttr {
    // ref: the attribute of the enclosing function that this one stands for, or NULL
    const char *name, *ref;
    int type;
    int64_t i; double f; const char *s;
    int n; const int64_t *ints; const float *floats; const char *const *strings;
    Tensor *tensor;                                     // also of a sparse tensor, expanded
    OnnxGraphDef *graph;
} OnnxAttr;
typedef struct OnnxNodeDef {
    const char *name, *op, *domain, *overload;          // never NULL; domain "" for ai.onnx
    int n_in, n_out, n_attrs;
    const char *const *in, *const *out;                 // "" when absent
    const OnnxAttr *attrs;
    const Loc *loc;
} OnnxNodeDef;
typedef struct OnnxInit { const char *name; Tensor *tensor; } OnnxInit;
struct OnnxGraphDef {
    const char *name;
    int n_nodes, n_inits, n_inputs, n_outputs, n_infos;
    // infos: value_info, of values between the nodes
    const OnnxNodeDef *nodes; const OnnxInit *inits; const ModelEnd *inputs, *outputs, *infos;
};
typedef struct OnnxOpset { const char *domain; int64_t version; } OnnxOpset;
typedef struct OnnxFunction {
    const char *name, *domain, *overload;
    int n_in, n_out, n_attrs, n_nodes, n_opsets;
    const char *const *in, *const *out;
    const OnnxAttr *attrs;                              // defaults; those without one are only named by their users
    const OnnxNodeDef *nodes;
    const OnnxOpset *opsets;
} OnnxFunction;
struct OnnxModel {
    const char *file;
    int64_t ir_version;
    int n_opsets, n_functions;
    const OnnxOpset *opsets; const OnnxFunction *functions;
    const OnnxGraphDef *graph;
    const ModelEnd *was;                                // the graph's inputs in the file; NULL: no --shape
    VEC(const char *) metadata;                         // keys and values by turns
};

// without those that are initializers
const ModelEnd *const *onnx_true_inputs(Arena *a, const OnnxModel *m, int *n);

// ---------------------------------------------------------------- shapes.c
// --shape: puts the sizes that it gives into the inputs; false with diagnostics
bool onnx_shapes_give(Arena *a, OnnxModel *m, const Options *o);

// ---------------------------------------------------------------- graph.c
// the caller looks for diagnostics
Graph *onnx_build(Arena *a, const Model *model, const Options *o);
// the inputs without initializers; of the options, --sequence and --absent count
Graph *onnx_inputs_only(Arena *a, const Model *model, const Options *o);

// A node as its builder sees it. Inputs are values (NULL when absent), attributes are checked when read.
typedef struct OnnxNode {
    Graph *g;
    const Loc *loc;
    const OnnxNodeDef *def;
    int64_t opset;                                      // version of the node's domain
    int n_in, n_out;
    Value **in;
    // a builder returns out[0] and sets out[1..]; asked[i] tells which the model uses
    Value **out;
    bool *asked;
    // which attributes a builder has looked at; the others are warned about
    bool *read;
    const char *argument;                               // the row's last column
    bool poisoned;                                      // a body uses what failed elsewhere: nothing more to report
    struct Import *import; const struct Namespace *scope;   // see names.h
} OnnxNode;
typedef Value *OnnxBuilder(OnnxNode *n);                // NULL after a diagnostic

// NULL when absent; a diagnostic when of another type
const OnnxAttr *onnx_attr(const OnnxNode *n, const char *name, int type);
bool onnx_has(const OnnxNode *n, const char *name);
int64_t onnx_int(const OnnxNode *n, const char *name, int64_t otherwise);     // a count or a size: of 32 bits
int64_t onnx_int64(const OnnxNode *n, const char *name, int64_t otherwise);   // any
double onnx_float(const OnnxNode *n, const char *name, double otherwise);
const char *onnx_string(const OnnxNode *n, const char *name, const char *otherwise);
const int64_t *onnx_ints(const OnnxNode *n, const char *name, int *count);      // NULL and 0 when absent
// does --train give batch normalizations the batch's statistics?
bool onnx_trains_norms(const OnnxNode *n);
bool onnx_trains_dropout(const OnnxNode *n);            // may it drop what this node passes on?
Value *onnx_fail(const OnnxNode *n, const char *fmt, ...) PRINTF_LIKE(2, 3);    // diagnostic at the node; returns NULL
void onnx_note(const OnnxNode *n, const char *fmt, ...) PRINTF_LIKE(2, 3);      // unless --quiet
Value *onnx_input(OnnxNode *n, int i);                  // NULL with a diagnostic when absent
Value *onnx_absent(void);                               // what an optional that holds nothing is bound to
// input i, onnx_absent() when it is an optional that holds nothing, NULL when it is not given
Value *onnx_given(const OnnxNode *n, int i);
bool onnx_inputs(OnnxNode *n, int at_least);            // the first inputs are there, else a diagnostic
// What `make` makes of the first input: of a complex one from its real and from its imaginary parts, put together.
Value *onnx_by_parts(OnnxNode *n, Value *(*make)(OnnxNode *n, bool imaginary));
static inline Value *onnx_optional(const OnnxNode *n, int i) { return i < n->n_in ? n->in[i] : NULL; }
// -rank..rank-1 made non-negative, else a diagnostic
bool onnx_axis(const OnnxNode *n, int64_t axis, int rank, int *out);
bool onnx_dtype(OnnxNode *n, const char *attr, DType otherwise, DType *out);    // a DataType attribute
// attribute "axes" or input `input`; sorted as given, no duplicates
bool onnx_axes(OnnxNode *n, int input, int rank, int64_t *axes, int *count, bool *given);
// inlines the body of attribute `attr`
bool onnx_subgraph(OnnxNode *n, const char *attr, int n_in, Value *const *in, int n_out, Value **out);
// the same as a graph of its own, for control flow
Graph *onnx_new_body(OnnxNode *n, const char *name);    // empty; NULL with a diagnostic where there are too many
Graph *onnx_body_graph(OnnxNode *n, const char *attr, int n_in, const Type *types, int n_out);
// The value named `wanted` once more, in g: the nodes between `names` and it are built again, reading `values` under
// these names. NULL with a diagnostic.
Value *onnx_recompute(
    OnnxNode *n, Graph *g, int count, const char *const *names, Value *const *values, const char *wanted);
const OnnxGraphDef *onnx_body(const OnnxNode *n, const char *attr);             // NULL with a diagnostic

// ---------------------------------------------------------------- dims.c: integers that the model computes from shapes
// A number that is known while importing: a constant, or a symbolic dimension.
typedef struct DimValue { bool symbolic; int64_t v; } DimValue;
#define MAX_DIM_VALUES 64
// rank 0 or 1 integers; false without a diagnostic
bool onnx_dim_values(Graph *g, Value *v, DimValue *out, int *count);            // out: MAX_DIM_VALUES of them
bool onnx_dim_value(Graph *g, Value *v, DimValue *out); // of one number
// the same of input i, with a diagnostic
bool onnx_shape_input(OnnxNode *n, int i, const char *what, DimValue *out, int *count);
bool onnx_ints_input(OnnxNode *n, int i, const char *what, int64_t *out, int *count, int max);        // constants only
Tensor *onnx_const_input(OnnxNode *n, int i, const char *what);                 // diagnostic when it is not constant
Tensor *onnx_const_number(OnnxNode *n, int i, const char *what);                // the same, of exactly one element
// the constant that v is; NULL when it is absent or computed at run time. False with a diagnostic: no single number
bool onnx_known_number(OnnxNode *n, Value *v, const char *what, Tensor **out);
// diagnostic with a hint at --dim when a dimension is symbolic
bool onnx_static(OnnxNode *n, const Value *v, const char *what);

// ---------------------------------------------------------------- ops/window.c
// kernel: sizes when attribute kernel_shape is absent, or NULL; symbolic ones leave auto_pad to the operation
bool onnx_window(OnnxNode *n, const Value *x, const Dim *kernel, Window *w);
Value *onnx_transposed_by(OnnxNode *n, int pads, int bias);          // ConvTranspose by input pads, which the run knows
Value *onnx_convolution(OnnxNode *n, Value *x, Value *w, const Window *win);    // w of constant or symbolic sizes

// ---------------------------------------------------------------- ops/sequence.c
// a stand-in for values that are known one by one; rows with the argument "any" take it
bool onnx_is_sequence(const Value *v);
Value *onnx_sequence_of(Graph *g, int n, Value *const *items);
Value *const *onnx_sequence_items(const Value *v, int *n);           // NULL when v is no list of values
// run/stacked.c: a sequence whose elements lie along the first axis of a tensor; those of any sequence so, NULL with
// a diagnostic
Value *onnx_sequence_of_rows(Graph *g, Value *rows);
Value *onnx_sequence_stack(const Value *v);             // the tensor of such a sequence, else NULL
Value *onnx_sequence_rows(OnnxNode *n, Value *v);
Value *onnx_sequence_joined(OnnxNode *n, Value *first, Value *rows);      // a sequence, then rows
Value *onnx_sequence_carried(Graph *g);                 // what a loop carries, in its body
// the element that the body has put at its end; NULL: v is something else
Value *onnx_sequence_appended(const Value *v);

// ---------------------------------------------------------------- ends.c
// NULL with diagnostics
Value *onnx_end_input(Graph *g, const OnnxModel *m, const Options *o, const ModelEnd *in, int index);
// do --sequence and --absent name inputs of that kind? Else diagnostics
bool onnx_ends_check(Arena *a, const OnnxModel *m, const Options *o);
void onnx_end_output(Graph *g, const OnnxModel *m, const ModelEnd *declared, Value *v);

// ---------------------------------------------------------------- ml/ml.c
const float *onnx_floats(const OnnxNode *n, const char *name, int *count);      // NULL and 0 when absent or empty
// the attributes' names
ClassLabels onnx_class_labels(const OnnxNode *n, const char *ints, const char *strings);

// ---------------------------------------------------------------- ops/string.c
bool onnx_takes_strings(const char *op, int input);     // may this input be strings?

// ---------------------------------------------------------------- rows.c
typedef struct OnnxCount { int fewest, most; } OnnxCount;
typedef struct OnnxRow {
    Support is;
    OnnxCount in, out;                                  // how many a node may have
    OnnxBuilder *build;
    const char *argument;
} OnnxRow;
const Support *onnx_support(Arena *a, int *n);          // all, for `burncc ops`
// known: the operator exists in some version; newest, where there is no row: the last version of the domain, 0 when it
// has no operators
const OnnxRow *onnx_row(const char *domain, const char *op, int64_t opset, bool *known, int *newest);
#define ONNX(op, domain, since, until, fewest_in, most_in, fewest_out, most_out, builder, argument) \
    OnnxBuilder onnx_##builder;
#include "onnx_ops.def"
#undef ONNX
#endif
