// SPDX-License-Identifier: MIT OR Apache-2.0
// Reading files by mapping them and writing files so that they appear whole or not at all.
//
// In: paths. Out: mapped bytes; files written. The idea: output goes to a temporary beside its target (made with
// O_EXCL, so it never follows what someone else put there) and is renamed at the end; a target that exists and is no
// regular file (/dev/stdout, /dev/full, a pipe) is written directly. Every error of writing and closing is a
// diagnostic with status 4.
#define _POSIX_C_SOURCE 200809L
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static void io_error(const char *path, const char *what) {
    Loc loc = { .file = path, .node = -1 };
    diag_error_as(EXIT_IO, &loc, "%s: %s", what, strerror(errno));
}

// ---------------------------------------------------------------- what was read and written

static struct { Arena *arena; ReadFiles read; WrittenFiles written; } kept;

void files_keep(Arena *a) {
    kept.arena = a;
    kept.read = (ReadFiles){ 0 };
    kept.written = (WrittenFiles){ 0 };
}

void reads_add(const char *path) {
    if (!kept.arena) return;
    for (int i = 0; i < kept.read.n; i++)
        if (!strcmp(kept.read.at[i], path)) return;
    VEC_PUSH(kept.arena, kept.read, arena_strdup(kept.arena, path));
}

// A path that is written twice counts once, as it is now.
static void written_add(const char *path, int64_t bytes) {
    int i = 0;
    if (!kept.arena || folder_holds(path)) return;
    while (i < kept.written.n && strcmp(kept.written.at[i].path, path)) i++;
    if (i == kept.written.n)
        VEC_PUSH(kept.arena, kept.written, (WrittenFile){ .path = arena_strdup(kept.arena, path) });
    kept.written.at[i].bytes = bytes;
}

const ReadFiles *reads_all(void) { return &kept.read; }
const WrittenFiles *written_all(void) { return &kept.written; }

// ---------------------------------------------------------------- reading and writing

bool file_map(File *f, const char *path) {
    static const uint8_t empty[1];
    *f = (File){ .data = empty };
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        io_error(path, "cannot open");
        return false;
    }
    struct stat st;
    bool ok = false;
    if (fstat(fd, &st)) io_error(path, "cannot read");
    else if (!S_ISREG(st.st_mode)) {
        Loc loc = { .file = path, .node = -1 };
        diag_error_as(EXIT_IO, &loc, "not a regular file");
    } else if (st.st_size == 0) ok = true;
    else {
        void *map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (map == MAP_FAILED) io_error(path, "cannot map");
        else {
            *f = (File){ .data = map, .size = (size_t)st.st_size, .map = map };
            ok = true;
        }
    }
    close(fd);
    if (ok) reads_add(path);
    return ok;
}

void file_unmap(File *f) {
    if (f->map) munmap(f->map, f->size);
    *f = (File){ 0 };
}

#define OUT_BUFFER ((size_t)64 << 10)

struct OutFile {
    int fd;
    const char *path, *temporary;               // temporary NULL: the target is written directly
    uint8_t *buffer;
    size_t n;                                   // bytes waiting in buffer
    int64_t total;                              // bytes in all
    bool failed;                                // already diagnosed
};

OutFile *out_open(Arena *a, const char *path) {
    OutFile *o = NEW(a, OutFile);
    o->path = arena_strdup(a, path);
    o->buffer = arena_alloc(a, OUT_BUFFER);
    struct stat st;
    if (!stat(path, &st) && !S_ISREG(st.st_mode)) {
        o->fd = open(path, O_WRONLY | O_CLOEXEC);
        if (o->fd < 0) {
            io_error(path, "cannot write");
            return NULL;
        }
        return o;
    }
    for (int i = 0; i < 100; i++) {
        o->temporary = arena_printf(a, "%s.%ld.%d.tmp", path, (long)getpid(), i);
        o->fd = open(o->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (o->fd >= 0) return o;
        if (errno != EEXIST) break;
    }
    io_error(path, "cannot create");
    return NULL;
}

static bool forced;

void out_force(void) { forced = true; }

static bool has_text(const char *bytes, size_t n, const char *text) {
    size_t length = strlen(text);
    for (size_t i = 0; i + length <= n; i++)
        if (!memcmp(bytes + i, text, length)) return true;
    return false;
}

bool out_allowed(const char *path, OutMark ours) {
    enum { HEAD = 512 };
    char head[HEAD];
    struct stat st;
    if (forced || stat(path, &st) || !S_ISREG(st.st_mode) || !st.st_size) return true;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, head, sizeof head);
    if (fd >= 0) close(fd);
    if (n >= 0 && has_text(head, (size_t)n, ours.text) == ours.has) return true;
    Loc loc = { .file = path, .node = -1 };
    diag_error_as(EXIT_IO, &loc, "this file is there and burncc did not write it; choose another name, or --force");
    return false;
}

OutFile *out_replace(Arena *a, const char *path, OutMark ours) {
    return out_allowed(path, ours) ? out_open(a, path) : NULL;
}

// at: where in the file; -1: behind what is there
static bool write_bytes(OutFile *o, int64_t at, const uint8_t *from, size_t count) {
    for (size_t done = 0; done < count && !o->failed;) {
        ssize_t n = at < 0 ? write(o->fd, from + done, count - done) :
                             pwrite(o->fd, from + done, count - done, (off_t)(at + (int64_t)done));
        if (n > 0) done += (size_t)n;
        else if (n < 0 && errno == EINTR) continue;
        else {
            io_error(o->path, "cannot write");
            o->failed = true;
        }
    }
    return !o->failed;
}

static bool out_flush(OutFile *o) {
    size_t n = o->n;
    o->n = 0;
    return write_bytes(o, -1, o->buffer, n);
}

// Nothing to write (n is 0): what waits in the buffer goes out, so that a full disk is known before any file is
// committed.
bool out_write(OutFile *o, const void *p, size_t n) {
    const uint8_t *from = p;
    if (!n) out_flush(o);
    o->total += (int64_t)n;
    while (n && !o->failed) {
        size_t take = OUT_BUFFER - o->n < n ? OUT_BUFFER - o->n : n;
        memcpy(o->buffer + o->n, from, take);
        o->n += take;
        from += take;
        n -= take;
        if (o->n == OUT_BUFFER) out_flush(o);
    }
    return !o->failed;
}

bool out_can_rewrite(const OutFile *o) { return o->temporary != NULL; }

bool out_rewrite(OutFile *o, int64_t at, const void *p, size_t n) { return out_flush(o) && write_bytes(o, at, p, n); }

bool out_commit(OutFile *o) {
    out_flush(o);
    if (close(o->fd) && !o->failed) {
        io_error(o->path, "cannot write");
        o->failed = true;
    }
    if (!o->temporary) return !o->failed;
    if (!o->failed && rename(o->temporary, o->path)) {
        io_error(o->path, "cannot replace");
        o->failed = true;
    }
    if (o->failed) unlink(o->temporary);
    else written_add(o->path, o->total);
    return !o->failed;
}

void out_abandon(OutFile *o) {
    close(o->fd);
    if (o->temporary) unlink(o->temporary);
}

bool out_whole(Arena *a, const char *path, const void *p, size_t n) {
    OutFile *out = out_open(a, path);
    if (out) out_write(out, p, n);                      // a failure is remembered, and out_commit cleans up
    return out && out_commit(out);
}
