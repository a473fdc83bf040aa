// SPDX-License-Identifier: MIT OR Apache-2.0
// Zip archives through libzip, which checks the structure and the checksums; and writes them.
//
// In: a mapped file, untrusted. Out: names, and bytes of entries. The idea: what all entries say to hold together is
// bounded by the file's own size before any is unpacked, so that neither a bomb nor entries that overlap take more.
#include "import/weights/zip.h"

#include <string.h>
#include <zip.h>

enum { MOST_BYTES = 64 << 20, MOST_RATIO = 128 };       // unpacked: so much, and so many times the file

struct Zip { zip_t *zip; const char *path; StrMap *index; const char **names; uint64_t *sizes; int n; };

static void say(const char *path, const char *name, const char *what) {
    Loc file = { .file = path, .node = -1, .name = name };
    if (path) diag_error(&file, "%s", what);
}

bool zip_begins(const File *f) { return f->size >= 4 && !memcmp(f->data, "PK\3\4", 4); }

static zip_t *open_bytes(const char *path, const File *f) {
    zip_error_t error;
    zip_error_init(&error);
    zip_source_t *source = zip_source_buffer_create(f->data, f->size, 0, &error);
    zip_t *zip = source ? zip_open_from_source(source, ZIP_RDONLY, &error) : NULL;
    if (!zip) {
        char what[160];
        snprintf(what, sizeof what, "its zip archive cannot be read: %s", zip_error_strerror(&error));
        say(path, NULL, what);
        if (source) zip_source_free(source);
    }
    zip_error_fini(&error);
    return zip;
}

static bool list(Arena *a, Zip *z, uint64_t room) {
    z->names = NEW_ARRAY(a, const char *, z->n + 1);
    z->sizes = NEW_ARRAY(a, uint64_t, z->n + 1);
    for (int i = 0; i < z->n; i++) {
        zip_stat_t st;
        if (zip_stat_index(z->zip, (zip_uint64_t)i, ZIP_FL_ENC_RAW, &st) || !st.name || !(st.valid & ZIP_STAT_SIZE)) {
            say(z->path, NULL, "its zip archive has an entry without name or size");
            return false;
        }
        z->names[i] = arena_strdup(a, st.name);
        z->sizes[i] = st.size;
        if (strmap_get(z->index, st.name)) {
            say(z->path, st.name, "its zip archive has this entry twice");
            return false;
        }
        strmap_put(z->index, st.name, &z->names[i]);
        if (st.size > room) {
            say(z->path, NULL, "its zip archive unpacks to far more than the file");
            return false;
        }
        room -= st.size;
    }
    return true;
}

Zip *zip_read(Arena *a, const char *path, const File *f) {
    zip_t *zip = open_bytes(path, f);
    if (!zip) return NULL;
    Zip *z = arena_copy(a, &(Zip){ .zip = zip, .path = path, .index = strmap_new(a) }, sizeof *z);
    zip_int64_t n = zip_get_num_entries(zip, 0);
    z->n = n < 0 || n > INT32_MAX / 16 ? 0 : (int)n;
    if (list(a, z, MOST_BYTES + MOST_RATIO * (uint64_t)f->size)) return z;
    zip_done(z);
    return NULL;
}

void zip_done(Zip *z) { zip_discard(z->zip); }
int zip_count(const Zip *z) { return z->n; }
const char *zip_name(const Zip *z, int i) { return z->names[i]; }

int zip_find(const Zip *z, const char *name) {
    const char *const *at = strmap_get(z->index, name);
    return at ? (int)(at - z->names) : -1;
}

bool zip_entry(Arena *a, const Zip *z, int i, const uint8_t **data, size_t *size) {
    zip_file_t *f = zip_fopen_index(z->zip, (zip_uint64_t)i, 0);
    size_t n = z->sizes[i], got = 0;
    uint8_t *at = f ? arena_alloc(a, n + 1) : NULL;     // the byte behind: reading on to the end checks the checksum
    zip_int64_t more = f ? 1 : -1;
    while (more > 0 && got <= n) {
        more = zip_fread(f, at + got, n + 1 - got);
        if (more > 0) got += (size_t)more;
    }
    if (f) zip_fclose(f);
    if (more || got != n) say(z->path, z->names[i], "this entry of its zip archive is damaged");
    *data = at;
    *size = n;
    return !more && got == n;
}

// ---------------------------------------------------------------- writing
static bool add_file(zip_t *zip, int i, const char *name, const char *from) {
    enum { YEAR_1980 = 1 << 5 | 1 };                    // as DOS dates begin: no time of day in what we write
    zip_source_t *source = zip_source_file(zip, from, 0, -1);
    const zip_int64_t at = source ? zip_file_add(zip, name, source, ZIP_FL_ENC_UTF_8) : -1;
    if (source && at < 0) zip_source_free(source);
    return at >= 0 && !zip_set_file_compression(zip, (zip_uint64_t)at, i ? ZIP_CM_DEFLATE : ZIP_CM_STORE, 0)
        && !zip_file_set_dostime(zip, (zip_uint64_t)at, 0, YEAR_1980, 0);
}

bool zip_write(const char *path, int n, const char *const *names, const char *const *from) {
    int code = 0;
    zip_t *zip = zip_open(path, ZIP_CREATE | ZIP_TRUNCATE, &code);
    bool good = zip != NULL;
    for (int i = 0; good && i < n; i++) good = add_file(zip, i, names[i], from[i]);
    if (good && !zip_close(zip)) return true;
    if (zip) zip_discard(zip);
    const Loc file = { .file = path, .node = -1 };
    diag_error_as(EXIT_IO, &file, "the zip archive cannot be written");
    return false;
}
