// SPDX-License-Identifier: MIT OR Apache-2.0
// Results on standard output: text for people, JSON for machines. Nothing here prints diagnostics.
//
// In: values and names (which may hold any bytes). Out: text; a failed write to standard output is status 4.
#include "command.h"

#include <errno.h>
#include <math.h>
#include <string.h>

// Length of the well-formed UTF-8 sequence at s (Unicode 15, table 3-7), 0 if there is none.
static int utf8_length(const unsigned char *s) {
    if (s[0] < 0x80) return 1;
    int n = s[0] >= 0xc2 && s[0] < 0xe0 ? 2 : s[0] >= 0xe0 && s[0] < 0xf0 ? 3 : s[0] >= 0xf0 && s[0] < 0xf5 ? 4 : 0;
    for (int i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80) return 0;
    bool bad = n
        && ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf0 && s[1] < 0x90)
            || (s[0] == 0xf4 && s[1] > 0x8f));
    return bad ? 0 : n;
}

void json_quoted(Text *t, const char *s) {
    text_append(t, "\"", 1);
    for (const unsigned char *c = (const unsigned char *)s; *c;) {
        int n = utf8_length(c);
        if (!n) text_printf(t, "\\ufffd");
        else if (*c == '"' || *c == '\\') text_printf(t, "\\%c", *c);
        else if (*c < 0x20 || *c == 0x7f) text_printf(t, "\\u%04x", *c);
        else text_append(t, (const char *)c, (size_t)n);
        c += n ? n : 1;
    }
    text_append(t, "\"", 1);
}

void json_number(Text *t, double v) {
    if (isfinite(v)) text_printf(t, "%.9g", v);
    else text_printf(t, "null");
}

void json_type(Text *t, Arena *a, const Graph *g, const Type *type) {
    text_printf(t, "\"dtype\":\"%s\",\"shape\":[", dtype_name(type->dtype));
    for (int i = 0; i < type->rank; i++) {
        if (i) text_append(t, ",", 1);
        if (dim_is_const(type->dim[i])) text_printf(t, "%lld", (long long)type->dim[i]);
        else json_quoted(t, dim_text(a, g, type->dim[i]));
    }
    text_append(t, "]", 1);
}

const char *text_name(Arena *a, const char *s) {
    char *copy = arena_strdup(a, s ? s : "");
    for (char *c = copy; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f) *c = '?';
    return copy;
}

const char *node_words(Arena *a, const Node *n) {
    const Loc *l = n->loc;
    if (!l) return op_table[n->op].name;
    const char *name = l->name && *l->name ? arena_printf(a, " \"%s\"", text_name(a, l->name)) : "";
    return l->node >= 0 ? arena_printf(a, "node %d%s (%s)", l->node, name, l->op ? l->op : "") :
        l->line         ? arena_printf(a, "line %d%s", l->line, name) :
                          op_table[n->op].name;
}

const char *text_bytes(Arena *a, int64_t bytes) {
    static const char *const unit[] = { "B", "KiB", "MiB", "GiB", "TiB" };
    double v = (double)bytes;
    size_t i = 0;
    for (; v >= 1024 && i + 1 < COUNT(unit); i++) v /= 1024;
    return arena_printf(a, i ? "%.1f %s" : "%.0f %s", v, unit[i]);
}

const char *text_count(Arena *a, double n) {
    static const char *const unit[] = { "", " k", " M", " G", " T", " P" };
    size_t i = 0;
    for (; n >= 1000 && i + 1 < COUNT(unit); i++) n /= 1000;
    return arena_printf(a, i ? "%.2f%s" : "%.0f%s", n, unit[i]);
}

int print_text(const Text *t, int status) {
    progress_stage(NULL);
    if (t->n) fwrite(t->at, 1, t->n, stdout);
    return status;
}

bool text_write(Arena *a, const char *path, const Text *t) {
    return out_whole(a, path, t->at, t->n);
}

int output_finish(int status) {
    errno = 0;
    bool failed = ferror(stdout) != 0;
    failed = fflush(stdout) != 0 || failed;
    if (!failed) return status;
    Loc loc = { .file = "standard output", .node = -1 };
    diag_error_as(EXIT_IO, &loc, "cannot write: %s", errno ? strerror(errno) : "an earlier write failed");
    return status ? status : EXIT_IO;
}
