// SPDX-License-Identifier: MIT OR Apache-2.0
// What the files of ONNX's export share: a graph in the making, and how a node's writer adds to it.
//
//   Graph -- onnx.c (walk, names, ends) --> rows.c (onnx_rows.def) --> writers --> OnnxModel -- encode.c --> bytes
//
// The idea: what is made are the structs that the importer decodes into, so both directions speak of the same things.
// In them values are names; a writer asks for its operands' names, adds nodes, and the last one has the value's own.
#ifndef BURNCC_EXPORT_PUT_H
#define BURNCC_EXPORT_PUT_H
#include "export/onnx.h"

typedef struct Export {
    Arena *arena;
    Graph *g;
    int opset;
    bool optimized;                                     // constants were computed from others: none is told apart
    StrMap *taken;                                      // names of values
    StrMap *node_names;
    const char **names;                                 // of values by id; NULL: not written yet
    const int *uses;                                    // of values by id
    const Node *node;                                   // that is being written
} Export;

// A graph or body. known: what constants and sizes are called that have been written, by their text
typedef struct Put Put;
struct Put {
    Export *x;
    Put *outer;
    const Graph *g;
    VEC(OnnxNodeDef) nodes;
    VEC(OnnxInit) inits;
    StrMap *known;
};

// ---------------------------------------------------------------- put.c
OnnxAttr attr_int(const char *name, int64_t i);
OnnxAttr attr_float(const char *name, double f);
OnnxAttr attr_string(const char *name, const char *s);
OnnxAttr attr_ints(const char *name, int n, const int64_t *v);
OnnxAttr attr_floats(Arena *a, const char *name, int n, const double *v);
OnnxAttr attr_tensor(const char *name, Tensor *t);

typedef const char *const *Names;
#define NAMES(...) (int)COUNT(((const char *[]){ __VA_ARGS__ })), (const char *[]){ __VA_ARGS__ }
#define ATTRS(...) (int)COUNT(((OnnxAttr[]){ __VA_ARGS__ })), (OnnxAttr[]){ __VA_ARGS__ }
#define NO_ATTRS 0, NULL

const char *put_fresh(Put *p, const char *wanted);      // a name that no value has
const char *put_name(Put *p, Value *v);                 // of a result that is about to be written
const char *put_value(Put *p, Value *v);                // of an operand; "" of one that is absent
// A node with these operands and results; the lists are copied.
void put_node(Put *p, const char *op, int n_in, Names in, int n_out, Names out, int n_attrs, const OnnxAttr *attrs);
// One result: of this name, or NULL: of a new one. Gives the name.
const char *put_op(Put *p, const char *result, const char *op, int n_in, Names in, int n_attrs, const OnnxAttr *attrs);
const char *put_constant(Put *p, Tensor *t);
const char *put_ints(Put *p, int n, const int64_t *v);  // i64[n]
const char *put_int(Put *p, int64_t v);                 // i64, rank 0
const char *put_number(Put *p, DType d, double v);      // rank 0
const char *put_cast(Put *p, const char *result, const char *x, DType to);
const char *put_reshape(Put *p, const char *result, const char *x, int n, const int64_t *shape);

// ---------------------------------------------------------------- sizes.c: dimensions as numbers of the model
// i64[n]; near: a value whose shape is looked at first, or NULL. NULL after a diagnostic
const char *put_sizes(Put *p, int n, const Dim *d, Value *near);
const char *put_size(Put *p, Dim d, Value *near);       // i64[1]

// ---------------------------------------------------------------- expr.c
bool put_expr(Put *p, Node *n);                         // the node's scalar expression, an operator a step

// ---------------------------------------------------------------- rows.c: what ONNX calls an operation
typedef struct Row Row;
typedef bool WriteFn(Put *p, Node *n, const Row *row);
typedef bool FitsFn(const Node *n, int opset);
struct Row { const char *op; int since; unsigned types; FitsFn *fits; WriteFn *write; const char *attrs; };
bool put_has_row(const Node *n, int opset);             // is there an operator for it as it is?
bool put_operation(Put *p, Node *n);                    // false with a diagnostic
int put_dtype_since(DType d);                           // the first version that has it

// ---------------------------------------------------------------- quantized.c: operators made of several nodes
// n is the last of them: false, and nothing is written, where it is not
bool put_quantized(Put *p, Node *n);                    // QuantizeLinear, DequantizeLinear
bool put_biased(Put *p, Node *n);                       // Conv and Gemm with a bias

// ---------------------------------------------------------------- onnx.c
OnnxGraphDef *put_body(Put *p, Graph *body);            // NULL with a diagnostic

// ---------------------------------------------------------------- encode.c
// beside: where the data of initializers goes that make the file larger than `limit` bytes
bool onnx_encode(Arena *a, const OnnxModel *m, const char *path, const char *beside, int64_t limit);
#endif
