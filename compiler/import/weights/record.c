// SPDX-License-Identifier: MIT OR Apache-2.0
// Records of runtime/learn/record.h, in all their formats, and the files of the framework Burn that it reads.
//
// In: a mapped file. Out: copies of its tensors. Burn keeps the matrix of a linear layer as [in, out], which the match
// of names turns around where the model has it the other way, and calls a norm's weight and bias gamma and beta.
#include "import/weights/weights.h"
#include "runtime/learn/record.h"

#include <string.h>

static bool claims(const File *f) {
    return burn_record_claims(f->data, f->size) != NULL;
}

static bool add(Arena *a, const char *path, const burn_recorded *r, Weights *w) {
    const burn_tensor_info *from = &r->tensor;
    Loc file = { .file = path, .node = -1, .name = from->name };
    Type t = { .dtype = (DType)from->dtype, .rank = from->rank };
    if (from->rank > MAX_RANK) {
        diag_error(&file, "it has more dimensions than are supported");
        return false;
    }
    for (int i = 0; i < from->rank; i++) {
        t.dim[i] = from->shape[i];
        if (t.dim[i] <= INT32_MAX) continue;
        diag_error(&file, "a size of its shape is no size");
        return false;
    }
    Tensor *tensor = tensor_new(a, t);
    if (from->bytes) memcpy(tensor->data, r->data, from->bytes);
    VEC_PUSH(a, w->at, (Weight){ arena_strdup(a, from->name), tensor });
    return true;
}

// norm.gamma is norm.weight
static const char *renamed(Arena *a, const char *name) {
    static const char *const ends[][2] = { { ".gamma", ".weight" }, { ".beta", ".bias" } };
    for (size_t i = 0; i < COUNT(ends); i++) {
        const char *end = strrchr(name, '.');
        if (end && !strcmp(end, ends[i][0])) return arena_printf(a, "%.*s%s", (int)(end - name), name, ends[i][1]);
    }
    return name;
}

static bool read_file(Arena *a, const char *path, const File *f, const char *key, Weights *w) {
    Loc file = { .file = path, .node = -1 };
    burn_record *r;
    burn_said said;
    if (key && *key) {
        diag_error(&file, "--weights-key: a record has no keys");
        return false;
    }
    if (burn_record_read(f->data, f->size, &r, &said)) {
        diag_error(&file, "%s", said.text);
        return false;
    }
    bool ok = true;
    w->format = arena_strdup(a, r->format);
    w->in_out = r->of_burn;
    for (int i = 0; ok && i < r->count; i++) ok = add(a, path, &r->tensors[i], w);
    for (int i = 0; ok && w->in_out && i < w->at.n; i++) w->at.at[i].name = renamed(a, w->at.at[i].name);
    burn_record_close(r);
    return ok;
}

const WeightFormat record_format = { "a record", claims, read_file };
