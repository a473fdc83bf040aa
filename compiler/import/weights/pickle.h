// SPDX-License-Identifier: MIT OR Apache-2.0
// Python's pickles as data: what a program of pickle opcodes would build, without building it.
//
// The idea: nothing is called. A call, or an instance of a class, becomes a PY_OBJECT that remembers what would have
// been called with what; who knows the name makes something of it. Containers may contain themselves, so who walks
// them bounds depth and steps.
#ifndef BURNCC_PICKLE_H
#define BURNCC_PICKLE_H
#include "base/base.h"

typedef enum PyKind {
    PY_NONE, PY_BOOL, PY_INT, PY_LONG, PY_FLOAT,        // PY_LONG: an integer of more than 64 bits, little endian in s
    PY_STRING,                                          // bytes too
    PY_TUPLE, PY_LIST, PY_DICT,                         // at; a dict's are key, value, key, value; sets are lists
    PY_GLOBAL,                                          // a class or function: module, s
    PY_OBJECT,                                          // made by `made_by` of `args`; at: pairs, of a kind of dict
    PY_STORED,                                          // what persistent_load would return for `args`
    PY_MARK,                                            // on the stack only
} PyKind;

typedef struct Py Py;
struct Py {
    PyKind kind;
    int64_t i;                                          // PY_BOOL, PY_INT
    const char *s;                                      // ends in a zero that n does not count
    size_t n;
    const char *module;
    VEC(Py *) at;
    Py *made_by, *args, *state;                         // state: its attributes, perhaps NULL
    void *tensor;                                       // for who makes tensors of it: made before
    enum { PY_UNSEEN, PY_WITHOUT, PY_WITH } holds;      // and whether there are any in it
};

typedef VEC(Py *) PyList;

// The object that begins at *at, which moves behind it; every PY_STORED is added to stored (NULL: not). NULL with a
// diagnostic about path.
Py *pickle_read(Arena *a, const char *path, const uint8_t **at, const uint8_t *end, PyList *stored);
bool py_is_global(const Py *p, const char *module, const char *name);
const Py *py_get(const Py *dict, const char *key);      // NULL: no such key, or no dict
#endif
