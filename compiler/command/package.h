// SPDX-License-Identifier: MIT OR Apache-2.0
// Between package.c, which knows the kinds of packages, and the files that write one kind each.
#ifndef BURNCC_COMMAND_PACKAGE_H
#define BURNCC_COMMAND_PACKAGE_H
#include "command.h"

typedef struct Package {
    Arena *arena;
    const Options *options;                             // output: the C file in the package
    const char *dir, *name, *licence;                   // licence: of the model's metadata, NULL: it says none
    const Graph *graph;
    bool weights;                                       // they are a file
} Package;

// A row of the table: another kind is another row and its function, which writes the files around c/model.c.
typedef struct PackageKind {
    const char *name, *target, *summary;                // target: without --target
    bool (*write)(Package *p);                          // false with diagnostics
} PackageKind;

// A file in the package, of this text; a template as it stands.
bool package_put(Package *p, const char *file, const char *text);
bool package_template(Package *p, const char *file, const char *name);
bool package_folder(Package *p, const char *folder);    // makes it

bool package_npm(Package *p);
bool package_cargo(Package *p);
#endif
