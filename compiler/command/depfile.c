// SPDX-License-Identifier: MIT OR Apache-2.0
// --depfile: a rule in Make's syntax, as C compilers write them, so that a build runs burncc again when a file that it
// read has changed. In: the output's path, as it was given, and what was read. Out: `model.c: model.onnx`, then an
// empty rule for each file that was read, without which make would stop over one that is gone.
#include "command.h"

static void put_path(Text *t, const char *path) {
    for (; *path; path++) {
        if (*path == ' ' || *path == '#') text_printf(t, "\\");
        if (*path == '$') text_printf(t, "$");
        text_append(t, path, 1);
    }
}

bool depfile_write(Arena *a, const Options *o) {
    if (!o->depfile) return true;
    const ReadFiles *read = reads_all();
    Text t;
    text_init(&t, a);
    put_path(&t, o->output);
    text_printf(&t, ":");
    for (int i = 0; i < read->n; i++) {
        text_printf(&t, " \\\n  ");
        put_path(&t, read->at[i]);
    }
    text_printf(&t, "\n");
    for (int i = 0; i < read->n; i++) {
        put_path(&t, read->at[i]);
        text_printf(&t, ":\n");
    }
    return text_write(a, o->depfile, &t);
}
