// SPDX-License-Identifier: MIT OR Apache-2.0
// Zip archives in memory, as formats of weights use them.
#ifndef BURNCC_ZIP_H
#define BURNCC_ZIP_H
#include "base/base.h"

typedef struct Zip Zip;
bool zip_begins(const File *f);                         // f has a zip archive's magic
// NULL with a diagnostic about path, or path NULL: without. Its entries together are not much larger than the file, and
// no name is there twice.
Zip *zip_read(Arena *a, const char *path, const File *f);
void zip_done(Zip *z);
int zip_count(const Zip *z);
const char *zip_name(const Zip *z, int i);
int zip_find(const Zip *z, const char *name);           // -1: none
// An entry's bytes, in the arena and checked against their checksum; false with a diagnostic.
bool zip_entry(Arena *a, const Zip *z, int i, const uint8_t **data, size_t *size);

// Writes the files at `from` as an archive at path, under these names, whole or not at all; the first of them as it is,
// for whoever looks at the archive's beginning. Same files, same bytes. False with a diagnostic.
bool zip_write(const char *path, int n, const char *const *names, const char *const *from);
#endif
