// SPDX-License-Identifier: MIT OR Apache-2.0
// What every generated file has, whichever back end writes it: banner, comments, names of the files beside it, the
// public types. All files of a model are written to temporaries and renamed together: a full disk leaves none of
// them.
#include "codegen.h"
#include "config.h"

#include <string.h>

const char *path_swap(Arena *a, const char *path, const char *extension) {
    const char *slash = strrchr(path, '/'), *dot = strrchr(slash ? slash : path, '.');
    return arena_printf(a, "%.*s%s", (int)(dot ? (size_t)(dot - path) : strlen(path)), path, extension);
}

const char *path_base(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

const char *text_lower(Arena *a, const char *s) {
    char *t = arena_strdup(a, s);
    for (char *c = t; *c; c++) if (*c >= 'A' && *c <= 'Z') *c = (char)(*c - 'A' + 'a');
    return t;
}

const char *text_upper(Arena *a, const char *s) {
    char *t = arena_strdup(a, s);
    for (char *c = t; *c; c++) if (*c >= 'a' && *c <= 'z') *c = (char)(*c - 'a' + 'A');
    return t;
}

// Word for word as runtime/burn.h has them, so that a generated file needs no header of ours.
const char *burn_types(Arena *a, const char *block) {
    const char *text = template_text("runtime/burn.h");
    const char *begin = text ? strstr(text, arena_printf(a, "/* %s begin */\n", block)) : NULL;
    const char *end = begin ? strstr(begin, arena_printf(a, "/* %s end */", block)) : NULL;
    if (!end) bug("runtime/burn.h has lost its markers");
    begin = strchr(begin, '\n') + 1;
    return arena_strndup(a, begin, (size_t)(end - begin));
}

const char *number_text(Arena *a, int64_t n) { return arena_printf(a, "%lld", (long long)n); }

void c_comment(Text *out, const char *s) {              // names come from strangers: no end of comment, no line ends
    for (; *s; s++) {
        char c = *s;
        if ((c == '/' && out->n && out->at[out->n - 1] == '*') || (c == '*' && out->n && out->at[out->n - 1] == '/'))
            c = '_';
        if ((unsigned char)c < 32 || (unsigned char)c >= 127 || c == '\\' || c == '?') c = '_';
        text_append(out, &c, 1);
    }
}

void bundles_comment(Text *h, const Graph *g, const char *const *inputs, const char *const *outputs) {
    for (int i = 0; i < g->bundles.n; i++) {
        const Bundle *b = &g->bundles.at[i];
        const char *kind = b->absent ? "an optional that holds nothing" : !b->sequence ? "an optional that holds"
                         : b->optional ? "an optional that holds a sequence of" : "a sequence of";
        text_printf(h, " *   %s ", b->output ? "output" : "input");
        c_comment(h, b->name);
        text_printf(h, " is %s", kind);
        if (b->sequence && !b->stacked && !b->absent) text_printf(h, " %d", b->n);
        for (int k = 0, n = b->output ? g->outputs.n : g->inputs.n; k < b->n; k++) {
            int at = 0;
            while (at < n && strcmp(b->output ? g->output_names.at[at] : g->inputs.at[at]->name, b->names[k])) at++;
            text_printf(h, "%s",
                k               ? ", " :
                    b->stacked  ? " any length along the first axis of " :
                    b->sequence ? ": " :
                                  " ");
            c_comment(h, at == n ? "a constant" : inputs ? (b->output ? outputs : inputs)[at] : b->names[k]);
        }
        text_printf(h, "\n");
    }
}

const char *c_string(Arena *a, const char *s) {
    Text t;
    text_init(&t, a);
    for (; s && *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\' || c == '?') text_printf(&t, "\\%c", c);
        else if (c < 32 || c >= 127) text_printf(&t, "\\%03o", c);
        else text_append(&t, (const char *)&c, 1);
    }
    return t.n ? t.at : "";
}

void print_banner(Text *t, const Options *o) {
    text_printf(t, BANNER BURNCC_VERSION " from ");
    c_comment(t, path_base(o->model));
    text_printf(t, " for --target %s. */\n", o->target);
}

// Sums of many sizes are not told whole.
static void print_type(Arena *a, Text *out, const Graph *g, const Type *t) {
    enum { LONGEST = 120 };
    const char *text = type_text(a, g, t);
    size_t n = strlen(text), cut = n > LONGEST ? LONGEST : n;
    while (cut < n && ((unsigned char)text[cut] & 0xc0) == 0x80) cut--;      // between two characters of UTF-8
    text_append(out, text, cut);
    text_printf(out, "%s", cut < n ? "...]" : "");
}

void print_origin(Arena *a, Text *out, const Graph *g, const Kernel *k) {
    text_printf(out, "/* ");
    for (int i = 0; i < k->nodes.n; i++) {
        const Node *n = k->nodes.at[i];
        if (i) text_printf(out, "\n   ");
        text_printf(out, "%s", op_table[n->op].name);
        if (n->loc && n->loc->name && *n->loc->name) {
            text_printf(out, n->loc->backward ? ", backward of \"" : " \"");
            c_comment(out, n->loc->name);
            text_printf(out, "\"");
        } else if (n->loc && n->loc->backward && n->loc->op) {
            text_printf(out, ", backward of ");
            c_comment(out, n->loc->op);
        }
        for (int j = 0; j < n->n_in && j < 4; j++)
            if (n->in[j]) {
                text_printf(out, "%s", j ? ", " : "  ");
                print_type(a, out, g, &n->in[j]->type);
            }
        text_printf(out, " -> ");
        print_type(a, out, g, &n->out[0]->type);
    }
    text_printf(out, " */\n");
}

bool files_write(Arena *a, OutMark ours, const Text *texts, const char *const *paths, int n, int n_more,
    OutFile *const *more) {
    OutFile *files[4] = { NULL };
    int open = 0;
    bool ok = true;
    while (open < n_more) {
        files[open] = more[open];
        open++;
    }
    for (int i = 0; i < n && ok; i++) {
        files[open] = out_replace(a, paths[i], ours);
        ok = files[open] != NULL;
        if (ok) ok = out_write(files[open++], texts[i].at, texts[i].n);
    }
    for (int i = 0; i < open && ok; i++) ok = !files[i] || out_write(files[i], NULL, 0);
    for (int i = open - 1; i >= 0; i--) {               // the C file first: when it cannot be had, nothing is
        if (!files[i]) continue;
        if (ok) ok = out_commit(files[i]);
        else out_abandon(files[i]);
    }
    return ok;
}
