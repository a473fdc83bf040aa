// SPDX-License-Identifier: MIT OR Apache-2.0
// What of the data a model needs when it is used: MODEL.json beside MODEL.onnx. In: a source that was learnt from. Out:
//
//   {"burncc": 1, "source": "images", "settings": "size=64x64,gray", "output": "logits", "classes": ["cat", "dog"],
//    "columns": [{"name": "size", "mean": 1.5, "scale": 2}, {"name": "colour", "words": ["blue", "red"]}, ...]}
//
// and from there data that is read in the same way, with the same classes.
#include "fit_memory.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST_COLUMNS = 65536, VERSION = 1 };

FitMemory fit_remember(Arena *a, const burn_source *source) {
    FitMemory m = { .kind = source->kind, .settings = arena_strdup(a, source->settings) };
    m.column_count = burn_csv_columns(source->train, 0, NULL);
    burn_column *columns = NEW_ARRAY(a, burn_column, m.column_count + 1);
    burn_csv_columns(source->train, m.column_count, columns);
    m.columns = columns;
    return m;
}

static json_t *words_json(int n, const char *const *words) {
    json_t *list = json_array();
    for (int i = 0; i < n; i++) json_array_append_new(list, json_string_nocheck(words[i]));
    return list;
}

static json_t *column_json(const burn_column *c) {
    json_t *o = json_object();
    json_object_set_new(o, "name", json_string_nocheck(c->name));
    if (c->is_target) json_object_set_new(o, "target", json_true());
    if (c->word_count) json_object_set_new(o, "words", words_json(c->word_count, c->words));
    else json_object_set_new(o, "mean", json_real(c->mean));
    if (!c->word_count) json_object_set_new(o, "scale", json_real(c->scale));
    return o;
}

bool fit_memory_write(Arena *a, const char *path, const FitMemory *m) {
    json_t *o = json_object(), *columns = json_array();
    json_object_set_new(o, "burncc", json_integer(VERSION));
    json_object_set_new(o, "source", json_string_nocheck(m->kind));
    json_object_set_new(o, "settings", json_string_nocheck(m->settings));
    json_object_set_new(o, "output", json_string_nocheck(m->binary ? "logit" : m->logits ? "logits" : "numbers"));
    json_object_set_new(o, "class_count", json_integer(m->class_count));
    if (m->classes) json_object_set_new(o, "classes", words_json(m->class_count, m->classes));
    json_object_set_new(o, "loss", words_json(m->loss_count, m->losses));
    for (int i = 0; i < m->column_count; i++) json_array_append_new(columns, column_json(&m->columns[i]));
    if (m->column_count) json_object_set(o, "columns", columns);
    char *text = json_dumps(o, JSON_INDENT(1) | JSON_PRESERVE_ORDER);
    OutFile *out = text ? out_open(a, path) : NULL;
    bool ok = out && out_write(out, text, strlen(text)) && out_write(out, "\n", 1) && out_commit(out);
    free(text);
    json_decref(columns);
    json_decref(o);
    return ok;
}

// ---------------------------------------------------------------- reading

static const char *text_of(Arena *a, const json_t *o, const char *key) {
    const char *s = json_string_value(json_object_get(o, key));
    return s ? arena_strdup(a, s) : NULL;
}

static const char *const *words_of(Arena *a, const json_t *list, int *n) {
    *n = (int)json_array_size(list);
    if (!*n) return NULL;
    const char **words = NEW_ARRAY(a, const char *, *n);
    for (int i = 0; i < *n; i++) {
        const char *s = json_string_value(json_array_get(list, (size_t)i));
        words[i] = s ? arena_strdup(a, s) : "";
    }
    return words;
}

static void take_columns(Arena *a, const json_t *list, FitMemory *m) {
    size_t n = json_array_size(list);
    if (!n || n > MOST_COLUMNS) return;
    burn_column *columns = NEW_ARRAY(a, burn_column, n);
    for (size_t i = 0; i < n; i++) {
        const json_t *c = json_array_get(list, i);
        const char *name = text_of(a, c, "name");
        columns[i] = (burn_column){ .name = name ? name : "", .is_target = json_is_true(json_object_get(c, "target")),
            .mean = json_number_value(json_object_get(c, "mean")),
            .scale = json_number_value(json_object_get(c, "scale")) };
        columns[i].words = words_of(a, json_object_get(c, "words"), &columns[i].word_count);
    }
    m->columns = columns;
    m->column_count = (int)n;
}

bool fit_memory_read(Arena *a, const char *path, FitMemory *m) {
    const char *dot = strrchr(path, '.');
    const char *file = arena_printf(a, "%.*s.json", (int)(dot ? dot - path : (long)strlen(path)), path);
    struct stat st;
    json_error_t why;
    *m = (FitMemory){ 0 };
    if (stat(file, &st)) return true;
    json_t *o = json_load_file(file, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &why);
    const char *output = json_string_value(json_object_get(o, "output"));
    bool known = output && json_integer_value(json_object_get(o, "burncc")) == VERSION;
    if (known) {
        m->kind = text_of(a, o, "source");
        m->settings = text_of(a, o, "settings");
        m->binary = !strcmp(output, "logit");
        m->logits = m->binary || !strcmp(output, "logits");
        m->classes = words_of(a, json_object_get(o, "classes"), &m->class_count);
        m->class_count = (int)json_integer_value(json_object_get(o, "class_count"));
        m->losses = words_of(a, json_object_get(o, "loss"), &m->loss_count);
        take_columns(a, json_object_get(o, "columns"), m);
        if (m->classes && json_array_size(json_object_get(o, "classes")) != (size_t)m->class_count) known = false;
    }
    json_decref(o);
    if (known && m->kind && m->settings) return true;
    diag_error(&(Loc){ .file = file, .node = -1 }, "is not what `burncc fit` writes beside a model");
    return false;
}

// ---------------------------------------------------------------- data in the same way

bool fit_failed(int error, const burn_said *said) {
    int status = error == BURN_EIO ? EXIT_IO : error == BURN_ENOMEM ? EXIT_MEMORY : EXIT_INVALID;
    if (error) diag_error_as(status, NULL, "%s", *said->text ? said->text : "not enough memory");
    return error != 0;
}

// Does it begin with the name of a kind? Then that one's length.
static size_t kind_bytes(const char *text) {
    burn_source_help kind;
    size_t word = strcspn(text, ":");
    for (int i = 0; text[word] && burn_source_kind(i, &kind); i++)
        if (strlen(kind.name) == word && !strncmp(kind.name, text, word)) return word;
    return 0;
}

// What is remembered of it goes behind what is given, which counts.
static const char *source_words(Arena *a, const FitMemory *m, const char *text) {
    size_t named = kind_bytes(text);
    if (!m->kind || (named && (strlen(m->kind) != named || strncmp(m->kind, text, named)))) return text;
    return arena_printf(a, "%s%s%s%s%s", named ? "" : m->kind, named ? "" : ":", text, *m->settings ? "," : "",
        m->settings);
}

// Data of no items, that has the names of classes.
static int nothing(const burn_dataset *data, int64_t i, uint64_t seed, void *const *to, burn_said *said) {
    (void)data, (void)i, (void)seed, (void)to, (void)said;
    return BURN_ERANGE;
}

bool fit_source(Arena *a, const FitMemory *m, const burn_asked *model, const char *text, burn_source *source) {
    burn_said said = { "" };
    burn_asked asked = *model;
    burn_dataset classes = { .field_count = 1, .get = nothing }, *like = NULL;
    bool text_kind = m->kind && !strcmp(m->kind, "text");
    if (m->classes) {
        classes.fields[0] = burn_field_of(text_kind ? "tokens" : "label", BURN_INT64, 0, NULL);
        classes.fields[0].class_count = m->class_count;
        classes.fields[0].classes = m->classes;
        if (burn_data_of(&classes, &like)) fatal(EXIT_MEMORY, "not enough memory");
    }
    asked.column_count = m->column_count;
    asked.columns = m->columns;
    if (like) asked.like = like;
    if (m->column_count) asked.like = NULL;
    int error = burn_source_open(source_words(a, m, text), &asked, source, &said);
    if (like) burn_data_close(like);
    return !fit_failed(error, &said);
}
