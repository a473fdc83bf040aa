// SPDX-License-Identifier: MIT OR Apache-2.0
// .npz, NumPy's archives: a zip archive of .npy files, an array each, perhaps compressed.
#include "import/npy.h"
#include "import/weights/weights.h"
#include "import/weights/zip.h"

#include <string.h>

// Where the ending of an entry's name begins, NULL: it is no array.
static const char *ending(const char *name) {
    size_t n = strlen(name);
    return n > 4 && !strcmp(name + n - 4, ".npy") ? name + n - 4 : NULL;
}

static bool claims(const File *f) {
    if (!zip_begins(f)) return false;
    Arena *a = arena_new();
    Zip *z = zip_read(a, NULL, f);
    bool arrays = false;
    for (int i = 0; z && i < zip_count(z); i++) arrays |= ending(zip_name(z, i)) != NULL;
    if (z) zip_done(z);
    arena_free(a);
    return arrays;
}

static bool read_array(Arena *a, const char *path, const Zip *z, int i, Weights *w) {
    const char *name = zip_name(z, i), *end = ending(name);
    File f = { 0 };
    if (!end) return true;
    if (!zip_entry(a, z, i, &f.data, &f.size)) return false;
    Tensor *t = npy_decode(a, &f, arena_printf(a, "%s(%s)", path, name));
    if (t) VEC_PUSH(a, w->at, (Weight){ arena_strndup(a, name, (size_t)(end - name)), t });
    return t != NULL;
}

static bool read_file(Arena *a, const char *path, const File *f, const char *key, Weights *w) {
    Loc file = { .file = path, .node = -1 };
    if (key && *key) {
        diag_error(&file, "--weights-key: a .npz has no keys");
        return false;
    }
    Zip *z = zip_read(a, path, f);
    bool ok = z != NULL;
    for (int i = 0; ok && i < zip_count(z); i++) ok = read_array(a, path, z, i, w);
    if (z) zip_done(z);
    return ok;
}

const WeightFormat npz_format = { "NumPy", claims, read_file };
