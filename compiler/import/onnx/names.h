// SPDX-License-Identifier: MIT OR Apache-2.0
// What an import keeps while it builds: the names that mean something where a node stands, and what they mean. Private
// to names.c, node.c, body.c and graph.c; a builder sees none of it.
#ifndef BURNCC_ONNX_NAMES_H
#define BURNCC_ONNX_NAMES_H
#include "import/onnx/run/measure.h"

#define MAX_CALLS 64            // functions inside functions, bodies inside bodies
#define MAX_INLINED (1 << 17)   // nodes that calls of functions, and bodies built more than once, may come to
#define MAX_ENDS (1 << 14)      // inputs or outputs of a node, outputs of a model: some are compared with each other
#define MAX_BODIES 2048         // graphs of their own in one model: what is kept for each goes with all values

// An inlined call, whose node holds the attributes that the function's nodes refer to.
typedef struct Inlined {
    const OnnxFunction *function;
    const OnnxNodeDef *node;
    const struct Inlined *up;
} Inlined;

typedef struct Namespace {
    const struct Namespace *outer;                      // of a body: whose values it may use
    StrMap *values;                                     // name -> Value *
    StrMap *makers;                                     // name -> the OnnxNodeDef that will define it
    const Inlined *call;
    int n_opsets; const OnnxOpset *opsets;
    int n_nodes; const OnnxNodeDef *nodes;              // those being built in it
    const Loc *loc;                                     // of the call or the node that holds the body; NULL at the top
    Graph *g;
    int depth;
} Namespace;

// Dimensions that a Reshape has made one, with their sizes in the file.
typedef struct Merge { Dim whole; int n; const Dim *part; const int64_t *was; } Merge;

typedef struct Resized { int rank, axis; int64_t was; Dim now; } Resized;

typedef struct Import {
    Arena *arena;
    const OnnxModel *model;
    const Options *options;
    StrMap *functions;                                  // "domain\nname\noverload" -> OnnxFunction
    int nodes, most;                                    // built so far; what the file holds and MAX_INLINED
    int bodies;                                         // that are graphs of their own, so far
    bool stop;                                          // a limit was passed
    // --shape: the same import with the file's own sizes, and the inputs that each node had there
    const struct Import *was;
    StrMap *inputs;                                     // by node and calls; NULL: nobody asks
    VEC(Merge) merges;                                  // resized.c: dimensions that became one
    VEC(Resized) resized;                               // resized.c: sizes that are others than in the file
} Import;

// ---------------------------------------------------------------- names.c
extern Value names_poison;                              // an output of a node that failed
// an optional that holds nothing, or an input that a function's user left out
extern Value names_absent;
void names_init(Import *im, Namespace *s, const Namespace *outer, Graph *g);
Value *names_find(const Namespace *s, const char *name);             // NULL: defined nowhere yet
bool names_bind(Namespace *s, const char *name, Value *v, const Loc *loc);      // false with a diagnostic: it was

// ---------------------------------------------------------------- shapes.c
Graph *onnx_import_resized(Import *im);                 // the same of a model whose inputs --shape has changed

// ---------------------------------------------------------------- resized.c
// The node's shape constants for the sizes that its inputs have now; false with a diagnostic.
bool onnx_resized(OnnxNode *n);

// ---------------------------------------------------------------- calls.c
bool onnx_calls_check(Import *im);                      // do the calls of functions end? Else a diagnostic

// ---------------------------------------------------------------- graph.c
const OnnxFunction *onnx_function(Import *im, const OnnxNodeDef *def);       // that the node calls, or NULL
Graph *onnx_import(Import *im);                         // the model; the caller looks for diagnostics
void onnx_build_node(Import *im, Namespace *s, const OnnxNodeDef *def);
void onnx_build_nodes(Import *im, Namespace *s, int count, const OnnxNodeDef *nodes);
void onnx_add_initializers(Import *im, Namespace *s, const OnnxGraphDef *def, bool top);
#endif
