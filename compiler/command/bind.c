// SPDX-License-Identifier: MIT OR Apache-2.0
// Fits a model to the tensors it is to run on. In: a model with symbolic dimensions, and one tensor an input. Out:
// the model built for these sizes.
//
// The idea: sizes are bound by comparing the tensors' shapes with the inputs' types. Where a shape depends on an
// input's value (the target of a Reshape), sizes are not enough; then the small inputs become constants: first the
// integers, then the floats too.
#include "command.h"
#include "passes/passes.h"

#include <math.h>
#include <string.h>

enum { FREEZE_COUNT = 64 };                             // inputs of more elements are data, not parameters of shapes
typedef enum Freeze { FREEZE_NONE, FREEZE_INTS, FREEZE_ALL, FREEZE_END } Freeze;

// Adds NAME=size; false with a diagnostic when the name already has another size.
static bool bind_dim(Arena *a, Options *o, const Value *input, const char *name, int64_t size) {
    for (int i = 0; i < o->dims.n; i++) {
        DimOption *d = &o->dims.at[i];
        if (strcmp(d->name, name)) continue;
        if (size < d->lo || size > d->hi) {
            diag_error(NULL, "input '%s': dimension %s is %lld here, but %lld%s elsewhere", input->name, name,
                (long long)size, (long long)d->lo, d->lo < d->hi ? " and up" : "");
            return false;
        }
        if (!keeps_sizes(o) || o->keep) d->lo = d->hi = size;       // else the code takes every size in lo..hi
        return true;
    }
    VEC_PUSH(a, o->dims, (DimOption){ name, size, size });
    return true;
}

static bool bind_dims(Arena *a, Options *o, const Graph *signature, const Inputs *in) {
    DimOption *given = o->dims.at;
    int n = o->dims.n;
    o->dims.at = NULL;
    o->dims.n = o->dims.cap = 0;
    for (int i = 0; i < n; i++) VEC_PUSH(a, o->dims, given[i]);
    for (int i = 0; i < in->n; i++) {
        if (!in->at[i]) continue;
        const Value *v = signature->inputs.at[i];
        const Type *t = &in->at[i]->type;
        if (!tensor_fits(in->at[i], &v->type)) {
            diag_error(NULL, "input '%s' is given as %s, the model wants %s", v->name, type_text(a, NULL, t),
                type_text(a, signature, &v->type));
            return false;
        }
        for (int d = 0; d < t->rank; d++)
            if (!dim_is_const(v->type.dim[d]) && !bind_dim(a, o, v, dim_text(a, signature, v->type.dim[d]), t->dim[d]))
                return false;
    }
    return true;
}

Options *inputs_bind(Arena *a, const Options *o, const Graph *signature, const Inputs *in) {
    Options *bound = arena_copy(a, o, sizeof *o);
    return bind_dims(a, bound, signature, in) ? bound : NULL;
}

static bool may_freeze(const Tensor *t, Freeze how) {
    if (how == FREEZE_NONE || !t || t->type.rank > 1 || type_count(&t->type) > FREEZE_COUNT) return false;
    return how == FREEZE_ALL || dtype_is_int(t->type.dtype) || t->type.dtype == DT_BOOL;
}

static int count_freezable(const Inputs *in, Freeze how) {
    int n = 0;
    for (int i = 0; i < in->n; i++) n += may_freeze(in->at[i], how);
    return n;
}

// Adds the inputs to o->frozen and the values to the key; returns their names.
static const char *freeze(Arena *a, Options *o, const Graph *signature, const Inputs *in, Freeze how, Text *key) {
    FrozenInput *given = o->frozen.at;
    int n = o->frozen.n;
    o->frozen.at = NULL;
    o->frozen.n = o->frozen.cap = 0;
    for (int i = 0; i < n; i++) VEC_PUSH(a, o->frozen, given[i]);
    Text names;
    text_init(&names, a);
    text_append(&names, "", 0);
    for (int i = 0; i < in->n; i++) {
        const Tensor *t = in->at[i];
        if (!may_freeze(t, how)) continue;
        const char *name = signature->inputs.at[i]->name;
        bool twice = false;
        for (int j = 0; j < n; j++) twice |= strcmp(given[j].name, name) == 0;
        if (twice) continue;
        Tensor *copy = tensor_new(a, t->type);
        size_t bytes = (size_t)type_bytes(&t->type);
        if (bytes) memcpy(copy->data, t->data, bytes);
        VEC_PUSH(a, o->frozen, (FrozenInput){ arena_strdup(a, name), copy });
        text_printf(&names, "%s%s", names.n ? "," : "", name);
        text_printf(key, " %s:", name);
        for (int64_t e = 0, count = type_count(&t->type); e < count; e++) {
            if (t->type.dtype == DT_STRING) text_printf(key, "%s\x1f", ((const char *const *)t->data)[e]);
            else if (dtype_is_float(t->type.dtype)) text_printf(key, "%a,", tensor_get_f(t, e));
            else text_printf(key, "%lld,", (long long)tensor_get_i(t, e));
        }
    }
    return names.n ? names.at : "";
}

static void sequences_key(Arena *a, const Options *o, Text *key) {
    for (int i = 0; i < o->sequences.n; i++) {
        const SequenceOption *s = &o->sequences.at[i];
        text_printf(key, "%s=%d%s ", s->name, s->n, s->stacked ? "+" : "");
        for (int k = 0; k < s->n && s->elements; k++) text_printf(key, "%s ", type_text(a, NULL, &s->elements[k]));
    }
    for (int i = 0; i < o->absent.n; i++) text_printf(key, "-%s ", o->absent.at[i]);
}

// One attempt, from the cache if it is there; what it says goes into `said`. *compiled: the stages went well.
static Built *attempt(BuildCache *cache, const Options *bound, const Graph *signature, const Inputs *in, Freeze how,
    Text *said, bool *compiled, const char **frozen) {
    Arena *a = cache->arena;
    Options *own = arena_copy(a, bound, sizeof *bound);
    Text key;
    text_init(&key, a);
    *compiled = false;
    for (int i = 0; i < own->dims.n; i++)
        text_printf(&key, "%s=%lld..%lld ", own->dims.at[i].name, (long long)own->dims.at[i].lo,
            (long long)own->dims.at[i].hi);
    text_printf(&key, "<=%lld ", (long long)own->largest_size);
    sequences_key(a, own, &key);
    text_append(&key, "", 0);
    *frozen = freeze(a, own, signature, in, how, &key);
    const char *text = key.n ? key.at : "";
    for (int i = 0; i < cache->keys.n; i++)
        if (strcmp(cache->keys.at[i], text) == 0) return cache->built.at[i];
    diag_capture(said);
    Built *b = build_model(own, cache->runner, compiled);
    diag_capture(NULL);
    if (!b) return NULL;
    VEC_PUSH(a, cache->built, b);
    VEC_PUSH(a, cache->keys, text);
    VEC_PUSH(a, cache->frozen, *frozen);
    return b;
}

Built *build_for_inputs(
    BuildCache *cache, const Options *o, const Graph *signature, const Inputs *in, const char **frozen) {
    bool compiled;
    Options *bound = inputs_bind(cache->arena, o, signature, in);
    if (!bound) return NULL;
    // what helped the last time
    Freeze how = cache->frozen.n && *cache->frozen.at[cache->frozen.n - 1] ? FREEZE_INTS : FREEZE_NONE;
    for (int n = -1; how < FREEZE_END; how++) {
        int freezable = count_freezable(in, how);
        if (freezable == n) continue;                   // nothing more than the last time
        n = freezable;
        bool last = how == FREEZE_ALL || count_freezable(in, FREEZE_ALL) == n;
        Text said;
        text_init(&said, cache->arena);
        Built *b = attempt(cache, bound, signature, in, how, last ? NULL : &said, &compiled, frozen);
        if (b) return b;
        bool of_shapes = !compiled && diag_status() != EXIT_IO;         // not of $CC, a folder, the disk
        if (!of_shapes) diag_replay(&said);
        if (last || !of_shapes) break;
        diag_reset();
    }
    *frozen = "";
    return NULL;
}

// ---------------------------------------------------------------- --input

static const char *input_names(Arena *a, const Graph *g, const Inputs *only_missing) {
    Text t;
    text_init(&t, a);
    text_append(&t, "", 0);
    for (int i = 0; i < g->inputs.n; i++) {
        const Value *v = g->inputs.at[i];
        if (!only_missing || !only_missing->at[i])
            text_printf(&t, "%s%s: %s", t.n ? ", " : "", v->name, type_text(a, g, &v->type));
    }
    return t.n ? t.at : "none";
}

// Those of sequences and optionals.
static void place_bundles(Arena *a, const Graph *signature, const StrMap *tensors, Inputs *out) {
    for (int i = 0; i < signature->bundles.n; i++) {
        const Bundle *b = &signature->bundles.at[i];
        for (int k = 0; k < b->n; k++)
            for (int j = 0; j < out->n; j++)
                if (!strcmp(signature->inputs.at[j]->name, b->names[k]))
                    out->at[j] = strmap_get(tensors, arena_printf(a, "%s\n%d", b->name, k));
    }
}

Graph *inputs_read(Arena *a, CommandOptions *c, bool all, Inputs *out) {
    const Options *o = &c->compile;
    const Model *m = model_open(a, o);
    StrMap *tensors = strmap_new(a);
    Graph *signature = m && ends_given(a, c, m, all, tensors) ? m->format->inputs(a, m, o) : NULL;
    if (!signature) return NULL;
    int n = signature->inputs.n;
    *out = (Inputs){ n, NEW_ARRAY(a, Tensor *, n + 1) };
    place_bundles(a, signature, tensors, out);
    for (int i = 0; i < c->inputs.n; i++) {
        const char *given = c->inputs.at[i], *file = NULL;
        int at = -1;
        for (int j = 0; j < n; j++) {                   // names may hold '=' themselves
            const char *name = signature->inputs.at[j]->name;
            size_t length = strlen(name);
            if (!strncmp(given, name, length) && given[length] == '=') {
                at = j;
                file = given + length + 1;
            }
        }
        if (at < 0 && n == 1 && !strchr(given, '=')) {
            at = 0;
            file = given;
        }
        if (at < 0) {
            diag_error_as(EXIT_USAGE, NULL, "--input %s: wants NAME=FILE; the inputs are %s", given,
                input_names(a, signature, NULL));
            continue;
        }
        out->at[at] = tensor_read(a, signature, file, &signature->inputs.at[at]->type, c->normalize);
    }
    for (int j = 0; j < n; j++)                         // a state begins as zero
        if (!out->at[j] && signature->inputs.at[j]->role == ROLE_STATE)
            out->at[j] = tensor_new(a, signature->inputs.at[j]->type);
    return diag_errors() ? NULL : signature;
}

bool inputs_complete(Arena *a, const Options *o, const Graph *signature, const Inputs *in) {
    for (int i = 0; i < in->n; i++) {
        bool frozen = false;
        for (int j = 0; j < o->frozen.n; j++)
            frozen |= strcmp(o->frozen.at[j].name, signature->inputs.at[i]->name) == 0;
        if (in->at[i] || frozen) continue;
        diag_error_as(EXIT_USAGE, NULL, "inputs without a value: %s; give each one as --input NAME=FILE",
            input_names(a, signature, in));
        return false;
    }
    return true;
}

// ---------------------------------------------------------------- --io: integers for floats
// The integers that a quantized input takes for floats; all else as it is.
static Tensor *input_quantized(Arena *a, const Value *input, Tensor *t) {
    const QuantizedEnd *e = graph_quantized(input->graph, input->name, false);
    if (!e || !t || t->type.dtype != DT_F32) return t;
    Type type = t->type;
    type.dtype = input->type.dtype;
    Tensor *q = tensor_new(a, type);
    int64_t low = type.dtype == DT_U8 ? 0 : type.dtype == DT_I8 ? INT8_MIN : INT16_MIN;
    int64_t high = type.dtype == DT_U8 ? UINT8_MAX : type.dtype == DT_I8 ? INT8_MAX : INT16_MAX;
    for (int64_t i = 0, n = type_count(&type); i < n; i++) {
        double steps = rint((double)((float)tensor_get_f(t, i) / (float)e->scale)) + (double)e->zero;
        tensor_set_i(q, i, (int64_t)fmin(fmax(steps, (double)low), (double)high));
    }
    return q;
}

Tensor *output_real(Arena *a, const Graph *g, const char *name, Tensor *q) {
    const QuantizedEnd *e = graph_quantized(g, name, true);
    if (!e || !dtype_is_int(q->type.dtype)) return q;
    Type type = q->type;
    type.dtype = DT_F32;
    Tensor *t = tensor_new(a, type);
    for (int64_t i = 0, n = type_count(&type); i < n; i++)
        tensor_set_f(t, i, (double)(tensor_get_i(q, i) - e->zero) * e->scale);
    return t;
}

Inputs inputs_select(Arena *a, const Built *b, const Graph *signature, const Inputs *in) {
    const Graph *g = b->plan->graph;
    Inputs out = { g->inputs.n, NEW_ARRAY(a, Tensor *, g->inputs.n + 1) };
    for (int i = 0; i < out.n; i++) {
        int at = -1;
        for (int j = 0; j < in->n; j++)
            if (strcmp(signature->inputs.at[j]->name, g->inputs.at[i]->name) == 0) at = j;
        if (at >= 0) out.at[i] = input_quantized(a, g->inputs.at[i], in->at[at]);
        else bug("the built model has an input '%s' that its file lacks", g->inputs.at[i]->name);
    }
    return out;
}

void build_cache_free(BuildCache *cache) {
    for (int i = 0; i < cache->built.n; i++) build_free(cache->built.at[i]);
    cache->built.n = cache->keys.n = cache->frozen.n = 0;
}

// ---------------------------------------------------------------- what comes out
typedef struct GivenSizes { Graph *graph; const Inputs *in; } GivenSizes;

// The size that an input's shape gives a symbol; the symbol itself where only the run finds out.
static Dim size_given(void *ctx, int number) {
    const GivenSizes *s = ctx;
    int n;
    Dim symbol = dim_symbol(s->graph, graph_symbols(s->graph, &n)[number].name);
    for (int i = 0; i < s->in->n; i++) {
        const Type *t = &s->graph->inputs.at[i]->type;
        for (int k = 0; k < t->rank; k++)
            if (t->dim[k] == symbol) return s->in->at[i]->type.dim[k];
    }
    return symbol;
}

size_t output_bytes(Graph *g, const Inputs *in, const Type *output) {
    Type t = *output;
    GivenSizes sizes = { g, in };
    for (int k = 0; k < t.rank; k++) t.dim[k] = dim_subst(g, t.dim[k], size_given, &sizes);
    return (size_t)(type_is_static(&t) ? type_bytes(&t) : type_bytes_upper(g, output));
}
