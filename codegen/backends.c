// SPDX-License-Identifier: MIT OR Apache-2.0
// Back ends by name, and the targets that name them.
#include "codegen.h"

#include <string.h>

#define BACKEND(name) extern const Backend backend_##name;
#include "backends.def"
#undef BACKEND

static const Backend *const backends[] = {
#define BACKEND(name) &backend_##name,
#include "backends.def"
#undef BACKEND
};

const Backend *backend_find(const char *name) {
    for (size_t i = 0; i < COUNT(backends); i++)
        if (!strcmp(backends[i]->name, name)) return backends[i];
    bug("no back end is called %s", name);
}

bool backend_target(const char *name, Target *out) {
    if (!target_find(name, out)) return false;
    out->backend = backend_find(out->backend_name);
    return true;
}
