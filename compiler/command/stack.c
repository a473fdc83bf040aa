// SPDX-License-Identifier: MIT OR Apache-2.0
// The most stack that a run on a board can take, by the C compiler's account of its functions.
//
// In: the .ci file that gcc's -fcallgraph-info=su writes beside a program: VCG with a line a node or an edge,
//   node: { title: "f.c:g" label: "g\nf.c:3:5\n24 bytes (static)" }
//   edge: { sourcename: "f.c:g" targetname: "memcpy" label: "f.c:4:9" }
// Out: the bytes of the deepest chain of calls from the driver's on_paint on (templates/firmware/driver.c), from where
// the paint is counted too. Functions of a library have no frame there and are taken for LIBRARY bytes. -1: the file
// is not there (clang writes none), or a chain has no bound: recursion, or a frame whose size the run decides.
#include "command.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

enum { LIBRARY = 96 };

typedef struct Frame {
    const char *name;                                   // the function's, without its file and what gcc made of it
    int64_t bytes, depth;                               // depth -1: not known yet, or without bound
    bool entered, unbounded;
    VEC(struct Frame *) calls;
} Frame;
typedef struct Frames { Arena *arena; StrMap *by_title; VEC(Frame *) all; } Frames;

// What stands between the quotes behind `key`; NULL: it is not in this line.
static const char *quoted(Arena *a, const char *line, const char *key) {
    const char *from = strstr(line, key), *end = from ? strchr(from + strlen(key), '"') : NULL;
    return end ? arena_strndup(a, from + strlen(key), (size_t)(end - from) - strlen(key)) : NULL;
}

static Frame *frame_of(Frames *f, const char *title) {
    Frame *found = strmap_get(f->by_title, title);
    if (found) return found;
    const char *colon = strrchr(title, ':'), *name = colon ? colon + 1 : title;
    found = NEW(f->arena, Frame);
    *found = (Frame){ .name = arena_strndup(f->arena, name, strcspn(name, ".")), .bytes = LIBRARY, .depth = -1 };
    strmap_put(f->by_title, title, found);
    VEC_PUSH(f->arena, f->all, found);
    return found;
}

static void read_line(Frames *f, const char *line) {
    const char *title = quoted(f->arena, line, "node: { title: \""), *label = quoted(f->arena, line, "label: \""),
               *from = quoted(f->arena, line, "edge: { sourcename: \""),
               *to = quoted(f->arena, line, "targetname: \"");
    if (title && label) {
        const char *bytes = strstr(label, " bytes (");
        Frame *frame = frame_of(f, title);
        frame->unbounded = bytes && strstr(bytes, "dynamic") && !strstr(bytes, "bounded");
        while (bytes && bytes > label && bytes[-1] >= '0' && bytes[-1] <= '9') bytes--;
        if (bytes) frame->bytes = strtoll(bytes, NULL, 10);
    } else if (from && to && strcmp(to, "__indirect_call")) {
        Frame *caller = frame_of(f, from);
        VEC_PUSH(f->arena, caller->calls, frame_of(f, to));
    }
}

static int64_t depth_of(Frame *f) {
    if (f->depth >= 0 || f->entered || f->unbounded) return f->depth;
    int64_t most = 0;
    f->entered = true;
    for (int i = 0; i < f->calls.n; i++) {
        int64_t below = depth_of(f->calls.at[i]);
        if (below < 0) return -1;
        if (below > most) most = below;
    }
    f->entered = false;
    return f->depth = f->bytes + most;
}

static bool ends_with(const char *s, const char *end) {
    size_t n = strlen(s), m = strlen(end);
    return n >= m && !strcmp(s + n - m, end);
}

// on_paint calls run_model, and that, by the model's descriptor, its function for tensors.
static int64_t bound_of(const Frames *f) {
    int64_t driver = 0, model = -1;
    for (int i = 0; i < f->all.n; i++) {
        Frame *one = f->all.at[i];
        if (!strcmp(one->name, "on_paint") || !strcmp(one->name, "run_model")) driver += one->bytes;
        else if (ends_with(one->name, "_run_generic")) model = depth_of(one);
    }
    return model < 0 ? -1 : driver + model;
}

static const char *account_path(Arena *a, const char *dir) {
    DIR *d = opendir(dir);
    const char *found = NULL;
    for (struct dirent *e; d && !found && (e = readdir(d));)
        if (ends_with(e->d_name, ".ci")) found = arena_printf(a, "%s/%s", dir, e->d_name);
    if (d) closedir(d);
    return found;
}

int64_t stack_bound(Arena *a, const char *dir) {
    const char *path = account_path(a, dir);
    File file;
    if (!path || !file_map(&file, path)) return -1;
    Frames f = { .arena = a, .by_title = strmap_new(a) };
    const char *text = arena_strndup(a, (const char *)file.data, file.size);
    for (size_t n; *text; text += n + (text[n] == '\n')) {
        n = strcspn(text, "\n");
        read_line(&f, arena_strndup(a, text, n));
    }
    file_unmap(&file);
    return bound_of(&f);
}
