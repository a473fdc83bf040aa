// SPDX-License-Identifier: MIT OR Apache-2.0
// The modules of a model, by the paths that PyTorch writes into nodes' names:
// "/layers/layers.0/norm/LayerNormalization" is of layers.0.norm.
#include "build/build.h"

#include <string.h>

const char *node_label(const Node *n) { return n->loc && n->loc->name ? n->loc->name : ""; }

// The path of a node's module: its name without the last part; a name that is no path stands for itself.
static size_t scope_length(const char *name) {
    const char *slash = strrchr(name, '/');
    return slash ? (size_t)(slash - name) : strlen(name);
}

bool same_module(const Node *n, const Node *m) {
    const char *a = node_label(n), *b = node_label(m);
    if (!*a || !*b) return n == m || (n->loc && n->loc == m->loc);
    size_t length = scope_length(a);
    return length == scope_length(b) && !strncmp(a, b, length);
}

// "/layers/layers.0/norm/LayerNormalization": layers.0.norm. A container that is called (Sequential) is there twice.
const char *module_path(Arena *a, const char *name) {
    size_t end = scope_length(name);
    Text t;
    text_init(&t, a);
    text_append(&t, "", 0);
    for (size_t at = 0; at < end;) {
        size_t n = strcspn(name + at, "/"), next = at + n + 1;
        n = n < end - at ? n : end - at;
        bool again = next + n < end && !strncmp(name + next, name + at, n) && name[next + n] == '.';
        if (n && !again) text_printf(&t, "%s%.*s", t.n ? "." : "", (int)n, name + at);
        at = next;
    }
    return t.at;
}
