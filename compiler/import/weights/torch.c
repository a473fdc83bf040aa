// SPDX-License-Identifier: MIT OR Apache-2.0
// From pickled objects to tensors with names, whichever of PyTorch's formats they came in.
//
// In: a tree of Py and a way to the storages. Out: Weights. The idea: a tensor is a call of torch._utils._rebuild_...
// with a storage, an offset, sizes and strides; everything around it, dictionaries, lists, modules with their
// attributes, only gives it a name. Storages that several tensors share are read once; a tensor whose elements lie in
// order points into its storage.
#include "import/weights/torch.h"

#include <string.h>

enum {
    MAX_DEPTH = 64,                                     // of containers in containers
    SPARE_STEPS = 16 << 10,                             // containers may be shared: so many steps on the ways to
    MOST_WAYS = 4,                                      // tensors, and four times the values that there are
    MAX_NAME = 1024,
};

const char torch_cut[] = "the file is cut short";

bool torch_fail(const TorchFile *t, const char *name, const char *what) {
    Loc file = { .file = t->path, .node = -1, .name = name ? name : t->name };
    diag_error(&file, "%s", what);
    return false;
}

DType torch_dtype(const Py *global) {
    static const struct { const char *storage, *name; DType dtype; } rows[] = {
        { "DoubleStorage", "float64", DT_F64 }, { "FloatStorage", "float32", DT_F32 },
        { "HalfStorage", "float16", DT_F16 }, { "BFloat16Storage", "bfloat16", DT_BF16 },
        { "LongStorage", "int64", DT_I64 }, { "IntStorage", "int32", DT_I32 }, { "ShortStorage", "int16", DT_I16 },
        { "CharStorage", "int8", DT_I8 }, { "ByteStorage", "uint8", DT_U8 }, { "BoolStorage", "bool", DT_BOOL },
        { "ComplexFloatStorage", "complex64", DT_C64 }, { "ComplexDoubleStorage", "complex128", DT_C128 },
        { "UntypedStorage", "uint8", DT_U8 }, { "", "uint16", DT_U16 }, { "", "uint32", DT_U32 },
        { "", "uint64", DT_U64 }, { "", "float8_e4m3fn", DT_F8E4M3FN }, { "", "float8_e5m2", DT_F8E5M2 },
        { "", "float8_e4m3fnuz", DT_F8E4M3FNUZ }, { "", "float8_e5m2fnuz", DT_F8E5M2FNUZ },
        { "", "float8_e8m0fnu", DT_F8E8M0 },
    };
    if (!global || global->kind != PY_GLOBAL || strncmp(global->module, "torch", 5)) return DT_NONE;
    for (size_t i = 0; i < COUNT(rows) && *global->s; i++)
        if (!strcmp(rows[i].storage, global->s) || !strcmp(rows[i].name, global->s)) return rows[i].dtype;
    return DT_NONE;
}

const char *torch_key(Arena *a, const Py *key) {
    if (key && key->kind == PY_STRING) return key->s;
    return key && key->kind == PY_INT ? arena_printf(a, "%lld", (long long)key->i) : NULL;
}

// ---------------------------------------------------------------- a tensor of a storage

// The elements that the furthest one needs before its end, or -1.
static int64_t reach(const Type *type, int64_t offset, const int64_t *stride) {
    int64_t last = offset, step;
    for (int i = 0; i < type->rank; i++)
        if (stride[i] < 0 || __builtin_mul_overflow(stride[i], type->dim[i] - 1, &step) ||
            __builtin_add_overflow(last, step, &last))
            return -1;
    return last == INT64_MAX ? -1 : last + 1;
}

static bool in_order(const Type *type, const int64_t *stride) {
    int64_t want = 1;
    for (int i = type->rank - 1; i >= 0; want *= type->dim[i--])
        if (type->dim[i] != 1 && stride[i] != want) return false;
    return true;
}

static void copy_strided(uint8_t *to, const uint8_t *from, const Type *type, const int64_t *stride) {
    size_t size = dtype_size(type->dtype);
    int64_t at[MAX_RANK] = { 0 }, source = 0;
    for (int64_t i = 0, n = type_count(type); i < n; i++) {
        memcpy(to + (size_t)i * size, from + (size_t)source * size, size);
        for (int d = type->rank - 1; d >= 0; d--) {
            source += stride[d];
            if (++at[d] < type->dim[d]) break;
            source -= stride[d] * at[d];
            at[d] = 0;
        }
    }
}

// The elements of a type whose dimensions are not checked yet; -1 with a diagnostic.
static int64_t checked_count(const TorchFile *t, const Type *type) {
    int64_t bytes = (int64_t)dtype_size(type->dtype), n = 1;
    bool empty = false;
    for (int i = 0; i < type->rank; i++) {
        if (type->dim[i] < 0 || type->dim[i] > INT32_MAX)
            return torch_fail(t, NULL, "a size of a tensor is no size"), -1;
        empty |= type->dim[i] == 0;
    }
    for (int i = 0; i < type->rank && !empty; i++) {
        n *= type->dim[i];
        if (__builtin_mul_overflow(bytes, type->dim[i], &bytes) || bytes > MAX_TENSOR_BYTES)
            return torch_fail(t, NULL, "a tensor is larger than any can be"), -1;
    }
    return empty ? 0 : n;
}

Tensor *torch_view(TorchFile *t, const Storage *s, Type type, int64_t offset, const int64_t *stride) {
    uint64_t size = dtype_size(type.dtype);
    int64_t n = checked_count(t, &type), end = n > 0 ? reach(&type, offset, stride) : 0;
    if (n < 0) return NULL;
    if (end < 0 || (n && offset < 0) || (uint64_t)end > s->size / size) {
        torch_fail(t, NULL, "a tensor reaches beyond its storage");
        return NULL;
    }
    Tensor *tensor = arena_copy(t->a, &(Tensor){ .type = type }, sizeof *tensor);
    const uint8_t *from = s->data + (n ? (uint64_t)offset * size : 0);
    if (in_order(&type, stride) && (uintptr_t)from % size == 0) {
        tensor->data = (void *)(uintptr_t)from;
        return tensor;
    }
    if ((uint64_t)n * size > t->room) {
        torch_fail(t, NULL, "its tensors together are far larger than the file");
        return NULL;
    }
    t->room -= (uint64_t)n * size;
    tensor->data = arena_alloc(t->a, (size_t)n * size);
    copy_strided(tensor->data, from, &type, stride);
    return tensor;
}

// ---------------------------------------------------------------- a tensor of a call

static const Py *argument(const Py *args, int i) { return i < args->at.n ? args->at.at[i] : NULL; }

static bool is_rebuilt(const Py *p) {
    const Py *by = p->kind == PY_OBJECT ? p->made_by : NULL;
    return by && by->kind == PY_GLOBAL && !strncmp(by->s, "_rebuild_", 9) &&
           (!strcmp(by->module, "torch._utils") || !strcmp(by->module, "torch._tensor"));
}

static bool is_tensor(const TorchFile *t, const Py *p) {
    return is_rebuilt(p) || (t->stored && p->kind == PY_STORED);
}

// Sizes or strides; fewer than MAX_RANK integers.
static int integers(const Py *p, int64_t *out) {
    if (!p || (p->kind != PY_TUPLE && p->kind != PY_LIST) || p->at.n > MAX_RANK) return -1;
    for (int i = 0; i < p->at.n; i++) {
        if (p->at.at[i]->kind != PY_INT) return -1;
        out[i] = p->at.at[i]->i;
    }
    return p->at.n;
}

// ('storage', torch.FloatStorage, key, location, elements[, (view's key, offset, elements)])
static bool find_storage(TorchFile *t, const Py *p, Storage *out, DType *dtype) {
    const Py *id = p && p->kind == PY_STORED ? p->args : NULL;
    if (!id || id->kind != PY_TUPLE || id->at.n < 5 || id->at.at[4]->kind != PY_INT || id->at.at[4]->i < 0)
        return torch_fail(t, NULL, "a tensor has no storage that is known");
    const char *key = torch_key(t->a, id->at.at[2]);
    *dtype = torch_dtype(id->at.at[1]);
    if (!key) return torch_fail(t, NULL, "a storage has no key");
    if (!*dtype) return torch_fail(t, key, "the storage's element type is not known");
    const Storage *s = t->storage(t, key);
    if (!s) return false;
    uint64_t size = dtype_size(*dtype), n = (uint64_t)id->at.at[4]->i;
    if (n > s->size / size) return torch_fail(t, key, "the storage is shorter than it should be");
    *out = (Storage){ s->data, n * size };
    const Py *view = argument(id, 5);
    if (!view || view->kind == PY_NONE) return true;
    int64_t from = view->at.n == 3 && view->at.at[1]->kind == PY_INT ? view->at.at[1]->i : -1;
    int64_t count = view->at.n == 3 && view->at.at[2]->kind == PY_INT ? view->at.at[2]->i : -1;
    if (from < 0 || count < 0 || (uint64_t)from > n || (uint64_t)count > n - (uint64_t)from)
        return torch_fail(t, key, "a view reaches beyond its storage");
    *out = (Storage){ s->data + (uint64_t)from * size, (uint64_t)count * size };
    return true;
}

static Tensor *rebuild_view(TorchFile *t, const Py *args, bool v3) {
    int64_t stride[MAX_RANK];
    const Py *offset = argument(args, 1);
    Type type = { 0 };
    Storage s;
    type.rank = integers(argument(args, 2), type.dim);
    if (type.rank < 0 || integers(argument(args, 3), stride) != type.rank || offset->kind != PY_INT) {
        torch_fail(t, NULL, "a tensor's sizes and strides are none, or more than 8");
        return NULL;
    }
    if (!find_storage(t, argument(args, 0), &s, &type.dtype)) return NULL;
    if (v3) type.dtype = torch_dtype(argument(args, 6));
    if (type.dtype) return torch_view(t, &s, type, offset->i, stride);
    torch_fail(t, NULL, "a tensor's element type is not known");
    return NULL;
}

static Tensor *rebuild(TorchFile *t, const Py *by, const Py *args, int depth) {
    bool nested = !strcmp(by->s, "_rebuild_parameter") || !strcmp(by->s, "_rebuild_parameter_with_state");
    const Py *inner = nested ? argument(args, 0) : NULL;
    if (inner && inner->kind == PY_OBJECT && is_rebuilt(inner) && depth < MAX_DEPTH)
        return rebuild(t, inner->made_by, inner->args, depth + 1);
    if (inner && t->stored && inner->kind == PY_STORED) return t->stored(t, inner);
    if (!strcmp(by->s, "_rebuild_from_type_v2") && args->at.n > 2 && depth < MAX_DEPTH) {
        by = args->at.at[0];
        args = args->at.at[2];
        if (by->kind == PY_GLOBAL && args->kind == PY_TUPLE) return rebuild(t, by, args, depth + 1);
    }
    bool v2 = py_is_global(by, "torch._utils", "_rebuild_tensor_v2"),
         v3 = py_is_global(by, "torch._utils", "_rebuild_tensor_v3");
    if (v2 || v3 || py_is_global(by, "torch._utils", "_rebuild_tensor")) return rebuild_view(t, args, v3);
    torch_fail(t, NULL, arena_printf(t->a, "a tensor of a kind that is not supported (%.100s)", by->s));
    return NULL;
}

static Tensor *tensor_of(TorchFile *t, Py *p) {
    if (!p->tensor) p->tensor = p->kind == PY_STORED ? t->stored(t, p) : rebuild(t, p->made_by, p->args, 0);
    return p->tensor;
}

// ---------------------------------------------------------------- names

typedef struct Walk { TorchFile *t; Weights *w; char path[MAX_NAME]; uint64_t steps; int found; bool failed; } Walk;

static void stop(Walk *k, const char *what) {
    if (!k->failed) torch_fail(k->t, NULL, what);
    k->failed = true;
}

static void walk(Walk *k, Py *p, size_t n, int depth);

static void walk_named(Walk *k, const char *name, Py *p, size_t n, int depth) {
    int more = snprintf(k->path + n, MAX_NAME - n, "%s%s", n ? "." : "", name);
    if (more < 0 || (size_t)more >= MAX_NAME - n) {
        k->path[n] = 0;                                 // no parameter is called so
        return;
    }
    walk(k, p, n + (size_t)more, depth);
    k->path[n] = 0;
}

// The attributes in which a module of PyTorch keeps its parts: no part of their names.
static bool is_kept_in(const char *key) {
    return !strcmp(key, "_parameters") || !strcmp(key, "_buffers") || !strcmp(key, "_modules");
}

static void walk_pairs(Walk *k, const Py *p, size_t n, int depth, bool attributes) {
    for (int i = 0; i + 1 < p->at.n && !k->failed; i += 2) {
        const char *key = torch_key(k->t->a, p->at.at[i]);
        if (key && p->at.at[i]->n != strlen(key) && p->at.at[i]->kind == PY_STRING) stop(k, "a name has a zero byte");
        else if (attributes && key && is_kept_in(key)) walk(k, p->at.at[i + 1], n, depth);
        else walk_named(k, key ? key : arena_printf(k->t->a, "%d", i / 2), p->at.at[i + 1], n, depth);
    }
}

static void walk_list(Walk *k, const Py *p, size_t n, int depth) {
    for (int i = 0; i < p->at.n && !k->failed; i++) {
        char index[16];
        snprintf(index, sizeof index, "%d", i);
        walk_named(k, index, p->at.at[i], n, depth);
    }
}

static void found(Walk *k, Py *p) {
    k->found++;
    if (!k->w) return;
    const char *name = arena_strdup(k->t->a, *k->path ? k->path : "tensor");
    k->t->name = name;
    Tensor *tensor = tensor_of(k->t, p);
    k->t->name = NULL;
    if (tensor) VEC_PUSH(k->t->a, k->w->at, (Weight){ name, tensor });
    k->failed = !tensor;
}

static void walk(Walk *k, Py *p, size_t n, int depth) {
    if (k->failed || p->holds != PY_WITH) return;
    if (++k->steps > SPARE_STEPS + MOST_WAYS * k->t->values) stop(k, "its objects hold one another too often");
    else if (depth > MAX_DEPTH) stop(k, "its objects are nested too deep, or hold themselves");
    else if (is_tensor(k->t, p)) found(k, p);
    else if (p->kind == PY_DICT) walk_pairs(k, p, n, depth + 1, false);
    else if (p->kind == PY_LIST || p->kind == PY_TUPLE) walk_list(k, p, n, depth + 1);
    else if (p->kind == PY_OBJECT) {
        walk_pairs(k, p, n, depth + 1, false);
        if (p->state && p->state->kind == PY_DICT) walk_pairs(k, p->state, n, depth + 1, true);
    }
}

// ---------------------------------------------------------------- where the weights are

// Notes of every value whether tensors are in it, each once however many hold it. False with a diagnostic.
static bool note_tensors(TorchFile *t, Py *p, int depth) {
    if (p->holds) return true;
    if (depth > MAX_DEPTH) return torch_fail(t, NULL, "its objects are nested too deep");
    bool list = p->kind == PY_LIST || p->kind == PY_TUPLE, some = is_tensor(t, p), ok = true;
    bool inside = !some && (list || p->kind == PY_DICT || p->kind == PY_OBJECT);
    Py *state = inside && p->kind == PY_OBJECT && p->state && p->state->kind == PY_DICT ? p->state : NULL;
    p->holds = PY_WITHOUT;                              // what holds itself adds nothing to itself
    t->values++;
    for (int i = list ? 0 : 1; inside && ok && i < p->at.n; i += list ? 1 : 2) {
        ok = note_tensors(t, p->at.at[i], depth + 1);
        some |= p->at.at[i]->holds == PY_WITH;
    }
    if (state) ok = ok && note_tensors(t, state, depth + 1);
    if (some || (state && state->holds == PY_WITH)) p->holds = PY_WITH;
    return ok;
}

static bool holds_directly(TorchFile *t, const Py *p) {
    for (int i = 1; p->kind == PY_DICT && i < p->at.n; i += 2)
        if (is_tensor(t, p->at.at[i])) return true;
    return false;
}

static Py *descend(const Py *p, const char *key) {
    for (int i = 0; p->kind == PY_DICT && i + 1 < p->at.n; i += 2) {
        const Py *name = p->at.at[i];
        if (name->kind != PY_STRING || strncmp(key, name->s, name->n)) continue;
        if (!key[name->n]) return p->at.at[i + 1];
        Py *deeper = key[name->n] == '.' ? descend(p->at.at[i + 1], key + name->n + 1) : NULL;
        if (deeper) return deeper;
    }
    return NULL;
}

static const char *keys_of(TorchFile *t, const Py *p) {
    Text out;
    text_init(&out, t->a);
    text_append(&out, "", 0);
    for (int i = 0; p->kind == PY_DICT && i + 1 < p->at.n && out.n < MAX_NAME; i += 2) {
        const char *key = torch_key(t->a, p->at.at[i]);
        if (key && p->at.at[i + 1]->holds == PY_WITH) text_printf(&out, "%s \"%.200s\"", out.n ? "," : "", key);
    }
    return out.n ? out.at : " none";
}

static bool is_usual(const char *key) {
    static const char *const usual[] = { "state_dict", "model_state_dict", "model_state", "model", "module", "net",
        "network", "params", "weights", "ema", "model_ema", "params_ema", "state_dict_ema" };
    for (size_t i = 0; key && i < COUNT(usual); i++)
        if (!strcmp(usual[i], key)) return true;
    return false;
}

// The dictionary of weights among others: the only one with tensors, or of them the only one with a usual name. NULL
// with a diagnostic: several. p itself: none, its tensors are all wanted.
static Py *choose(TorchFile *t, Py *p) {
    Py *only = NULL, *usual = NULL;
    int n = 0, n_usual = 0;
    if (p->kind != PY_DICT || holds_directly(t, p)) return p;
    for (int i = 0; i + 1 < p->at.n; i += 2) {
        Py *part = p->at.at[i + 1];
        if (part->kind != PY_DICT || part->holds != PY_WITH) continue;
        only = part;
        n++;
        if (!holds_directly(t, part) || !is_usual(torch_key(t->a, p->at.at[i]))) continue;
        usual = part;
        n_usual++;
    }
    if (n == 1 && holds_directly(t, only)) return only;
    if (n_usual == 1) return usual;
    if (!n_usual) return p;
    torch_fail(t, NULL, arena_printf(t->a, "it has several dictionaries of tensors; choose with --weights-key:%s",
        keys_of(t, p)));
    return NULL;
}

bool torch_collect(TorchFile *t, const Py *root, const char *key, Weights *w) {
    Walk k = { .t = t, .w = w };
    Py *p = (Py *)(uintptr_t)root;
    if (!note_tensors(t, p, 0)) return false;
    if (!key) p = choose(t, p);
    else if (*key) {
        p = descend(p, key);
        if (!p)
            return torch_fail(t, NULL, arena_printf(t->a,
                "it has nothing under the key \"%.200s\"; keys with tensors:%s", key, keys_of(t, root)));
    }
    if (!p) return false;
    walk(&k, p, 0, 0);
    if (k.failed) return false;
    return k.found || torch_fail(t, NULL, "it has no tensors");
}
