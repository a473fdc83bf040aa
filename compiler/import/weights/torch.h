// SPDX-License-Identifier: MIT OR Apache-2.0
// What PyTorch's formats have in common: from the pickled objects of a file to its tensors.
#ifndef BURNCC_TORCH_H
#define BURNCC_TORCH_H
#include "import/weights/pickle.h"
#include "import/weights/weights.h"

typedef struct Storage { const uint8_t *data; uint64_t size; } Storage;        // bytes

// Where the storages of a file are.
typedef struct TorchFile TorchFile;
struct TorchFile {
    Arena *a;
    const char *path;
    const char *name;                                   // of the tensor that is being made, for diagnostics
    uint64_t room;                                      // bytes that copies of tensors may still take
    // of this key; the same each time; NULL with a diagnostic
    const Storage *(*storage)(TorchFile *t, const char *key);
    Tensor *(*stored)(TorchFile *t, const Py *p);       // in formats that store tensors themselves, else NULL
    void *own;                                          // the format's
    uint64_t values;                                    // that were looked at: the file's, each once
};

enum { TORCH_COPIES = 64 << 20 };                       // bytes beside a few times the file's

bool torch_fail(const TorchFile *t, const char *name, const char *what);        // false
// of a storage's type (torch.FloatStorage) or a dtype (torch.float32); DT_NONE: none that is known
DType torch_dtype(const Py *global);
// A tensor of a part of a storage; sizes are checked. NULL with a diagnostic.
Tensor *torch_view(TorchFile *t, const Storage *s, Type type, int64_t offset, const int64_t *stride);
// The tensors in a pickled object, by their dotted names; key as for weights_open. False with diagnostics.
bool torch_collect(TorchFile *t, const Py *root, const char *key, Weights *w);
// The key of a storage as text.
const char *torch_key(Arena *a, const Py *key);
extern const char torch_cut[];                          // "the file is cut short"
#endif
