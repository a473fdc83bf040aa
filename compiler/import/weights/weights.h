// SPDX-License-Identifier: MIT OR Apache-2.0
// Files of weights, of whatever format, and how their tensors find the parameters of a model.
//
//   file -- weights_open --> Weights (names, tensors) -- weights_give --> the constants of a Graph
//
// The idea: a format is a row; which one reads a file is told by its content. Nothing in a file is executed, and sizes
// are checked before they are used.
#ifndef BURNCC_IMPORT_WEIGHTS_H
#define BURNCC_IMPORT_WEIGHTS_H
#include "options.h"

typedef struct Weight { const char *name; Tensor *tensor; } Weight;    // row-major, perhaps in the mapped file
typedef struct Weights {
    const char *file, *format;                          // format: for people, "safetensors"
    VEC(Weight) at;
    bool in_out;                                        // matrices of linear layers are [in, out], those of others not
    VEC(File) maps;                                     // that tensors point into
} Weights;

typedef struct WeightFormat {
    const char *name;
    bool (*claims)(const File *f);
    // key: where a file of several dictionaries has the weights; "": all of it; NULL: chosen; false with diagnostics
    bool (*read)(Arena *a, const char *path, const File *f, const char *key, Weights *w);
} WeightFormat;
extern const WeightFormat safetensors_format, safetensors_index_format, npz_format,
    torch_zip_format, torch_legacy_format, torch_tar_format,   // a zip archive that is no .npz goes to PyTorch's
    record_format;                                      // takes safetensors too, which the first has taken

bool weights_claimed(const File *f);                    // is it a file of weights?
Weights *weights_open(Arena *a, const char *path, const char *key);     // NULL with diagnostics
Weights *weights_read(Arena *a, const char *path, const File *f, const char *key);      // f is its now
void weights_close(Weights *w);                         // the files that its tensors lie in

// Parameters of g take the tensors of their names, o->weights says from which files, a later one before an earlier; a
// note says how many, and warnings (with --strict errors) which are left over on either side. False with diagnostics.
bool weights_give(Arena *a, Graph *g, const Options *o);

// What weights_give gives tensors to: constants with a name that are to be drawn, trained, or floats; each name once.
typedef struct Parameters { VEC(Value *) at; } Parameters;
Parameters weights_parameters(Arena *a, const Graph *g);
const char *safetensors_dtype(DType d);                 // as .safetensors calls it; NULL: it has none
#endif
