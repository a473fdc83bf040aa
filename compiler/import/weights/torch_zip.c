// SPDX-License-Identifier: MIT OR Apache-2.0
// PyTorch's files since 1.6 (.pt, .pth), and TorchScript's: a zip archive.
//
//   NAME/data.pkl     the pickled objects; a storage is ('storage', torch.FloatStorage, '0', 'cpu', 64)
//   NAME/data/0       its bytes, not compressed
//   NAME/byteorder    little, or absent
//
// In a TorchScript archive the object is a module, whose attributes are parameters and modules.
#include "import/weights/torch.h"
#include "import/weights/zip.h"

#include <string.h>

typedef struct Archive { Zip *zip; const char *folder; StrMap *storages; } Archive;

static bool claims(const File *f) { return zip_begins(f); }

static const Storage *storage(TorchFile *t, const char *key) {
    Archive *r = t->own;
    Storage *s = strmap_get(r->storages, key);
    if (s) return s;
    int i = zip_find(r->zip, arena_printf(t->a, "%sdata/%s", r->folder, key));
    size_t size;
    if (i < 0) return torch_fail(t, key, "the storage is not in the archive"), NULL;
    s = NEW(t->a, Storage);
    if (!zip_entry(t->a, r->zip, i, &s->data, &size)) return NULL;
    s->size = size;
    strmap_put(r->storages, key, s);
    return s;
}

// The folder, with its slash, of the one data.pkl; NULL with a diagnostic.
static const char *find_folder(TorchFile *t, const Zip *z) {
    static const char name[] = "data.pkl";
    const char *found = NULL;
    for (int i = 0; i < zip_count(z); i++) {
        const char *path = zip_name(z, i), *slash = strchr(path, '/'), *last = slash ? slash + 1 : path;
        if (strcmp(last, name)) continue;
        if (found) return torch_fail(t, path, "the archive has two data.pkl"), NULL;
        found = arena_strndup(t->a, path, (size_t)(last - path));
    }
    if (!found) torch_fail(t, NULL, "this zip archive is none of PyTorch's (no data.pkl), and has no .npy files");
    return found;
}

static bool little_endian(TorchFile *t, const Archive *r) {
    const uint8_t *order;
    size_t n;
    int i = zip_find(r->zip, arena_printf(t->a, "%sbyteorder", r->folder));
    if (i < 0) return true;
    if (!zip_entry(t->a, r->zip, i, &order, &n)) return false;
    return (n == 6 && !memcmp(order, "little", n)) ||
           torch_fail(t, NULL, "its numbers are not little endian (byteorder)");
}

static bool read_archive(TorchFile *t, Archive *r, const char *key, Weights *w) {
    const uint8_t *at;
    size_t n;
    r->folder = find_folder(t, r->zip);
    if (!r->folder || !little_endian(t, r)) return false;
    if (!zip_entry(t->a, r->zip, zip_find(r->zip, arena_printf(t->a, "%sdata.pkl", r->folder)), &at, &n)) return false;
    const Py *root = pickle_read(t->a, t->path, &at, at + n, NULL);
    return root && torch_collect(t, root, key, w);
}

static bool read_file(Arena *a, const char *path, const File *f, const char *key, Weights *w) {
    Archive r = { .zip = zip_read(a, path, f), .storages = strmap_new(a) };
    TorchFile t = { .a = a, .path = path, .room = TORCH_COPIES + 4 * (uint64_t)f->size, .storage = storage, .own = &r };
    if (!r.zip) return false;
    bool ok = read_archive(&t, &r, key, w);
    zip_done(r.zip);
    return ok;
}

const WeightFormat torch_zip_format = { "PyTorch", claims, read_file };
