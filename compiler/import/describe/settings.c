// SPDX-License-Identifier: MIT OR Apache-2.0
// The settings of a description: what it asks for by name, what --set and --config say of it.
//
// In: config("classes", 10), --set classes=47, a JSON file of --config, whose objects within objects are names with
// dots and whose lists are numbers with commas between. Out: the value; --set wins over the file, the file over the
// default. A file may say more than the model asks for, as the config.json of published weights does; --set may not.
#include "import/describe/describe.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

// ---------------------------------------------------------------- --config

static const char *text_of(const json_t *v);

static const char *list_of(const json_t *v) {
    Text t;
    text_init(&t, describing->arena);
    for (size_t i = 0; i < json_array_size(v); i++) {
        const char *item = text_of(json_array_get(v, i));
        text_printf(&t, "%s%s", i ? "," : "", item ? item : "null");
    }
    return t.at;
}

// As --set would have it; NULL: it says nothing.
static const char *text_of(const json_t *v) {
    Arena *a = describing->arena;
    switch (json_typeof(v)) {
    case JSON_STRING: return arena_strdup(a, json_string_value(v));
    case JSON_INTEGER: return arena_printf(a, "%lld", (long long)json_integer_value(v));
    case JSON_REAL: return arena_printf(a, "%.17g", json_real_value(v));
    case JSON_TRUE: return "true";
    case JSON_FALSE: return "false";
    case JSON_ARRAY: return list_of(v);
    default: return NULL;
    }
}

static void take_object(json_t *object, const char *before) {
    Description *d = describing;
    const char *key;
    json_t *v;
    json_object_foreach(object, key, v) {
        const char *name = arena_printf(d->arena, "%s%s", before, key), *text;
        if (json_is_object(v)) take_object(v, arena_printf(d->arena, "%s.", name));
        else if ((text = text_of(v))) VEC_PUSH(d->arena, d->file_settings, (SetOption){ name, text });
    }
}

bool settings_read(const char *path) {
    json_error_t wrong;
    File f;
    if (!file_map(&f, path)) return false;
    json_t *top = json_loadb((const char *)f.data, f.size, JSON_REJECT_DUPLICATES, &wrong);
    file_unmap(&f);
    Loc at = { .file = path, .node = -1, .line = top ? 0 : wrong.line };
    bool ok = json_is_object(top);
    if (ok) take_object(top, "");
    else if (top) diag_error(&at, "a configuration is an object of JSON: { \"classes\": 10 }");
    else diag_error(&at, "no JSON: %s", wrong.text);
    json_decref(top);
    return ok;
}

// ---------------------------------------------------------------- what the description asks

typedef struct Said { const char *option, *value; } Said;       // value NULL: nobody says anything

static Said said(const char *name) {
    Description *d = describing;
    const Options *o = d->options;
    int i = 0;
    while (i < d->settings.n && strcmp(d->settings.at[i], name)) i++;
    if (i == d->settings.n) VEC_PUSH(d->arena, d->settings, arena_strdup(d->arena, name));
    for (i = o->settings.n - 1; i >= 0; i--)            // the last one counts
        if (!strcmp(o->settings.at[i].name, name)) return (Said){ "--set ", o->settings.at[i].value };
    for (i = 0; i < d->file_settings.n; i++)
        if (!strcmp(d->file_settings.at[i].name, name))
            return (Said){ arena_printf(d->arena, "%s: ", o->config), d->file_settings.at[i].value };
    return (Said){ "", NULL };
}

double language_number(const burn_place *at, const char *name, double otherwise) {
    Said s = said(name);
    char *end;
    if (!s.value) return otherwise;
    double v = strtod(s.value, &end);
    if (!strcmp(s.value, "true") || !strcmp(s.value, "false")) return *s.value == 't';
    if (end != s.value && !*end) return v;
    graph_fail(here(at, NULL), "%s%s=%s: a number is wanted, such as %g", s.option, name, s.value, otherwise);
    return otherwise;
}

const char *language_word(const burn_place *at, const char *name, const char *otherwise) {
    Said s = said(name);
    here(at, NULL);
    return s.value ? s.value : otherwise;
}

void language_numbers(const burn_place *at, const char *name, int n, int64_t *list) {
    Said s = said(name);
    const char *text = s.value;
    for (int i = 0; text && i < n; i++) {
        char *end;
        list[i] = strtoll(text, &end, 10);
        if (end == text || *end != (i + 1 < n ? ',' : 0)) {
            graph_fail(here(at, NULL), "%s%s=%s: %d whole numbers are wanted, with commas between", s.option, name,
                s.value, n);
            return;
        }
        text = end + 1;
    }
}

void settings_check(void) {
    const Description *d = describing;
    const Options *o = d->options;
    Text known;
    text_init(&known, d->arena);
    for (int i = 0; i < d->settings.n; i++) text_printf(&known, " %s", d->settings.at[i]);
    for (int i = 0; i < o->settings.n; i++) {
        int k = 0;
        while (k < d->settings.n && strcmp(d->settings.at[k], o->settings.at[i].name)) k++;
        if (k == d->settings.n)
            diag_error_as(EXIT_USAGE, NULL, "--set %s: the model has no such setting; it has%s",
                o->settings.at[i].name, d->settings.n ? known.at : " none");
    }
}
