// SPDX-License-Identifier: MIT OR Apache-2.0
// The door for front ends: a model's file, of whatever format, becomes a Model, and a Model becomes a Graph.
//
//   file -- model_open --> Model (what the file declares) -- model_graph --> Graph
//
// The idea: a format is a FrontEnd in a folder of its own; which one reads a file is told by its content. Commands know
// a Model and nothing of its format.
#ifndef BURNCC_IMPORT_H
#define BURNCC_IMPORT_H
#include "options.h"

// An input or output as the model declares it.
// symbol "": unknown and unnamed; usual: what an unknown one is where nobody says another, 0: nothing is usual
typedef struct EndDim { bool known; int64_t value; const char *symbol; int64_t usual; } EndDim;
typedef struct ModelEnd {
    const char *name;
    bool optional, sequence;                            // of what follows
    const char *kind;                                   // "tensor", "map", ...
    int map_key, map_value;                             // element types of a map; 0: none that is known
    int dtype;                                          // as in the file: perhaps none that there is
    bool has_shape;
    int rank;                                           // MAX_RANK + 1: more
    const EndDim *dim;
} ModelEnd;

// What the format says about the file besides, for inspect: "opset", "operator set", 17
typedef struct ModelFact { const char *key, *label; int64_t value; } ModelFact;

typedef struct Model {
    const struct FrontEnd *format;
    const char *file;
    int n_inputs, n_outputs;
    const ModelEnd *inputs, *outputs;
    int n_facts; const ModelFact *facts;
    const void *source;                                 // the format's own
    const char *settings;                               // taken by the description, as --config reads them; NULL: none
    bool damaged;                                       // diagnostics were recorded; there will be no graph
} Model;

// An operator of the format and the versions of it that are supported, for `burncc ops`.
typedef struct Support { const char *op, *domain; int since, until; } Support;

typedef struct FrontEnd {
    const char *name, *key;                             // for people: "ONNX"; in JSON: "onnx"
    bool has_settings, draws;                           // --set and --config mean something, and --seed
    bool takes_shapes;                                  // --shape
    bool again;                                         // graph() may be called more than once for a model
    bool (*claims)(const File *f);                      // does the content look like it?
    // fills in what the file declares; false with diagnostics
    bool (*open)(Arena *a, const File *f, const Options *o, Model *m);
    // NULL with diagnostics, or the caller looks for them; once for a model, as the graph may be what open has read
    Graph *(*graph)(Arena *a, const Model *m, const Options *o);
    // a graph of which the inputs alone count; of the options, --sequence and --absent do
    Graph *(*inputs)(Arena *a, const Model *m, const Options *o);
    // calls found() with the operator of every node that the file has; NULL: not known before graph()
    void (*operators)(const Model *m, void (*found)(void *ctx, const char *op), void *ctx);
    const Support *(*support)(Arena *a, int *n);        // NULL when the format has no operators of its own
    int latest;                                         // the newest version of them
} FrontEnd;
extern const FrontEnd text_front_end, c_front_end, onnx_front_end;
const FrontEnd *const *front_ends(int *n);

// o->model; of the options --set counts too. NULL with diagnostics
Model *model_open(Arena *a, const Options *o);
Graph *model_graph(Arena *a, const Model *m, const Options *o);     // NULL with diagnostics: all of them at once
Graph *import_graph(Arena *a, const Options *o);        // both, of o->model

// What a file of recorded data holds, which is told by what the model declares (NULL: a tensor): a tensor, the
// elements of a sequence, or nothing. Recorded data has the form of ONNX's test data (.pb) for models of all formats;
// import/onnx/ reads it.
typedef struct EndData { const char *name; bool absent; int n; Tensor **at; } EndData;
bool end_data_read(Arena *a, const char *path, const ModelEnd *declared, EndData *out);
#endif
