// SPDX-License-Identifier: MIT OR Apache-2.0
// What a file is that is no model.
#ifndef BURNCC_FOREIGN_H
#define BURNCC_FOREIGN_H
#include "base/base.h"

// The file's kind and what to do with it, as the rest of a sentence that begins with "this is "; NULL: nothing known.
const char *foreign_file(const File *f);
// The same of a path that is a folder; NULL: it is none.
const char *foreign_folder(Arena *a, const char *path);
#endif
