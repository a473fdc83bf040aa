// SPDX-License-Identifier: MIT OR Apache-2.0
// Sequences and optionals among the inputs and outputs that commands read: of recorded data sets, and of --input.
//
// In: files, and what the model declares. Out: tensors, and options that say how long each sequence is and what is
// absent (--sequence, --absent), so that the model is compiled for this data. The idea: only the declared type tells
// what a file holds.
#define _POSIX_C_SOURCE 200809L
#include "command.h"

#include <string.h>
#include <strings.h>
#include <unistd.h>

// A copy whose lists can grow without changing those of the original.
static Options *options_copy(Arena *a, const Options *o) {
    Options *own = arena_copy(a, o, sizeof *o);
    own->sequences.at = NULL;
    own->sequences.n = own->sequences.cap = 0;
    own->absent.at = NULL;
    own->absent.n = own->absent.cap = 0;
    for (int i = 0; i < o->sequences.n; i++) VEC_PUSH(a, own->sequences, o->sequences.at[i]);
    for (int i = 0; i < o->absent.n; i++) VEC_PUSH(a, own->absent, o->absent.at[i]);
    return own;
}

static const SequenceOption *stacked_option(const Options *o, const char *name) {
    for (int i = 0; i < o->sequences.n; i++)
        if (o->sequences.at[i].stacked && !strcmp(o->sequences.at[i].name, name)) return &o->sequences.at[i];
    return NULL;
}

// The elements of a sequence along a new first axis; `one`: the shape of an element where there are none. NULL with a
// diagnostic.
static Tensor *stack(Arena *a, const char *name, const Type *one, int n, Tensor *const *items) {
    Type t = n ? items[0]->type : *one;
    for (int i = t.rank; i > 0; i--) t.dim[i] = dim_is_const(t.dim[i - 1]) ? t.dim[i - 1] : 1;
    t.dim[0] = n;
    bool same = t.rank++ < MAX_RANK;
    for (int i = 0; i < n && same; i++) same = type_equal(&items[i]->type, &items[0]->type);
    if (!same) {
        diag_error(NULL, "sequence '%s': a range of lengths needs elements of one shape", name);
        return NULL;
    }
    Tensor *all = tensor_new(a, t);
    for (int i = 0; i < n; i++) {
        size_t bytes = (size_t)type_bytes(&items[i]->type);
        if (bytes) memcpy((char *)all->data + (size_t)i * bytes, items[i]->data, bytes);
    }
    return all;
}

// The shape of an element as the option, else the model has it; unknown sizes are 1.
static Type element_type(const SequenceOption *o, const ModelEnd *end) {
    Type t = o->elements ? o->elements[0] : (Type){ .rank = end->rank < MAX_RANK ? end->rank : 0 };
    for (int i = 0; i < t.rank && !o->elements; i++)
        t.dim[i] = end->dim[i].known && end->dim[i].value >= 0 ? end->dim[i].value : 1;
    t.dtype = (DType)end->dtype;
    return t;
}

// The sequence has these elements, whatever was said before.
static void set_sequence(Arena *a, Options *o, const char *name, int n, Tensor *const *items) {
    Type *types = NEW_ARRAY(a, Type, n + 1);
    for (int i = 0; i < n; i++) types[i] = items[i]->type;
    SequenceOption s = { .name = arena_strdup(a, name), .n = n, .elements = types };
    for (int i = 0; i < o->sequences.n; i++)
        if (!strcmp(o->sequences.at[i].name, name)) {
            o->sequences.at[i] = s;
            return;
        }
    VEC_PUSH(a, o->sequences, s);
}

// What the data says counts, not --absent.
static void set_absent(Arena *a, Options *o, const char *name, bool absent) {
    for (int i = 0; i < o->absent.n; i++)
        if (!strcmp(o->absent.at[i], name)) o->absent.at[i--] = o->absent.at[--o->absent.n];
    if (absent) VEC_PUSH(a, o->absent, arena_strdup(a, name));
}

// ---------------------------------------------------------------- recorded data sets

// PREFIX0.pb, PREFIX1.pb, ... as far as they go; false with a diagnostic when one cannot be read.
bool recorded_read(
    Arena *a, const char *set, const char *prefix, int n_declared, const ModelEnd *declared, Recorded *out) {
    int n = 0;
    while (!access(arena_printf(a, "%s/%s%d.pb", set, prefix, n), F_OK)) n++;
    *out = (Recorded){ n, NEW_ARRAY(a, EndData, n + 1) };
    for (int i = 0; i < n; i++)
        if (!end_data_read(
                a, arena_printf(a, "%s/%s%d.pb", set, prefix, i), i < n_declared ? &declared[i] : NULL, &out->at[i]))
            return false;
    return true;
}

static int declared_index(int n, const ModelEnd *declared, const char *name) {
    for (int i = 0; i < n; i++)
        if (!strcmp(declared[i].name, name)) return i;
    return -1;
}

static bool all_tensors(int n, const ModelEnd *declared) {
    for (int i = 0; i < n; i++)
        if (declared[i].optional || declared[i].sequence) return false;
    return true;
}

// Recorded inputs in the model's order: by name where every name is an input's, else as they are. Optional ones may
// be left out at the end.
static bool order_inputs(Arena *a, int n, const ModelEnd *declared, Recorded *in) {
    EndData *ordered = NEW_ARRAY(a, EndData, n + 1);
    while (in->n < n && declared[in->n].optional) {
        EndData *more = NEW_ARRAY(a, EndData, in->n + 1);
        if (in->n) memcpy(more, in->at, sizeof *more * (size_t)in->n);
        more[in->n] = (EndData){ .name = "", .absent = true };
        *in = (Recorded){ in->n + 1, more };
    }
    if (in->n != n) {
        diag_error(NULL, "%d inputs are recorded, the model has %d", in->n, n);
        return false;
    }
    if (!all_tensors(n, declared)) return true;
    for (int i = 0; i < n; i++) {
        int at = declared_index(n, declared, in->at[i].name);
        if (at < 0 || ordered[at].at) return true;
        ordered[at] = in->at[i];
    }
    in->at = ordered;
    return true;
}

Graph *recorded_inputs(
    Arena *a, Arena *kept, const Options *o, const Model *m, const char *set, Options **own, Inputs *in) {
    Recorded all;
    int n = m->n_inputs, total = 0;
    const ModelEnd *declared = m->inputs;
    if (!recorded_read(a, set, "input_", n, declared, &all) || !order_inputs(a, n, declared, &all)) return NULL;
    *own = options_copy(kept, o);
    for (int i = 0; i < n; i++) {
        total += all.at[i].n;
        const SequenceOption *stacked = stacked_option(o, declared[i].name);
        if (declared[i].optional) set_absent(kept, *own, declared[i].name, all.at[i].absent);
        if (stacked && !all.at[i].absent) {
            Type one = element_type(stacked, &declared[i]);
            if (!(all.at[i].at[0] = stack(a, declared[i].name, &one, all.at[i].n, all.at[i].at))) return NULL;
            total += all.at[i].n ? 0 : 1;
            all.at[i].n = 1;
        } else if (!all.at[i].absent && declared[i].sequence)
            set_sequence(kept, *own, declared[i].name, all.at[i].n, all.at[i].at);
    }
    *in = (Inputs){ 0, NEW_ARRAY(a, Tensor *, total + 1) };
    for (int i = 0; i < n; i++)
        for (int k = 0; k < all.at[i].n; k++) in->at[in->n++] = all.at[i].at[k];
    return m->format->inputs(a, m, *own);
}

// ---------------------------------------------------------------- --input

static bool names(const char *given, const char *name) {
    return !strncmp(given, name, strlen(name)) && given[strlen(name)] == '=';
}

static bool is_pb(const char *path) { return strlen(path) > 3 && !strcasecmp(path + strlen(path) - 3, ".pb"); }

// What --input NAME=FILE gives a sequence or optional, in the order of the command line: a .pb file holds all of it,
// a .npy file one tensor.
static bool read_given(Arena *a, const CommandOptions *c, const ModelEnd *end, EndData *out, bool *given) {
    VEC(Tensor *) items = { 0 };
    *given = false;
    for (int i = 0; i < c->inputs.n; i++) {
        if (!names(c->inputs.at[i], end->name)) continue;
        const char *path = c->inputs.at[i] + strlen(end->name) + 1;
        EndData data = { .n = 1, .at = NEW(a, Tensor *) };
        bool ok = is_pb(path) ? end_data_read(a, path, end, &data) :
                                (data.at[0] = tensor_read(a, NULL, path, NULL, NULL)) != NULL;
        if (!ok) return false;
        for (int k = 0; k < data.n; k++) VEC_PUSH(a, items, data.at[k]);
        out->absent = data.absent;
        *given = true;
    }
    out->n = items.n;
    out->at = items.at;
    return end->sequence || out->n < 2
        || (diag_error_as(EXIT_USAGE, NULL, "--input %s is given %d times; it is one tensor", end->name, out->n),
            false);
}

bool ends_given(Arena *a, CommandOptions *c, const Model *m, bool all, StrMap *tensors) {
    Options *o = &c->compile;
    for (int i = 0; i < m->n_inputs; i++) {
        const ModelEnd *end = &m->inputs[i];
        EndData data = { 0 };
        bool given;
        if (!end->sequence && !end->optional) continue;
        if (!read_given(a, c, end, &data, &given)) return false;
        const SequenceOption *stacked = stacked_option(o, end->name);
        if (end->optional && (all || given)) set_absent(a, o, end->name, data.absent || !given);
        if (stacked && given && !data.absent) {
            Type one = element_type(stacked, end);
            Tensor *rows = stack(a, end->name, &one, data.n, data.at);
            if (!rows) return false;
            data = (EndData){ .n = 1, .at = arena_copy(a, &rows, sizeof rows) };
        } else if (end->sequence && given && !data.absent) set_sequence(a, o, end->name, data.n, data.at);
        for (int k = 0; k < data.n; k++) strmap_put(tensors, arena_printf(a, "%s\n%d", end->name, k), data.at[k]);
        for (int k = 0; k < c->inputs.n; k++)
            if (names(c->inputs.at[k], end->name)) c->inputs.at[k--] = c->inputs.at[--c->inputs.n];
    }
    return true;
}
