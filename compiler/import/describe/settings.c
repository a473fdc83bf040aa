// SPDX-License-Identifier: MIT OR Apache-2.0
// The settings of a description: what it asks for by name, what --set and --config say of it.
//
// In: config("classes", 10), --set classes=47, a JSON file of --config, whose objects within objects are names with
// dots and whose lists are numbers with commas between. Out: the value; --set wins over the file, the file over the
// default. A file may say more than the model asks for, as the config.json of published weights does; --set may not.
// And JSON of all that it took, which --config reads again.
#include "import/describe/describe.h"

#include <jansson.h>
#include <math.h>
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

// Where a setting's value is noted; the first question for it counts.
static const char **taken(const char *name) {
    Description *d = describing;
    int i = 0;
    while (i < d->settings.n && strcmp(d->settings.at[i].name, name)) i++;
    if (i == d->settings.n) VEC_PUSH(d->arena, d->settings, (SetOption){ arena_strdup(d->arena, name), NULL });
    return &d->settings.at[i].value;
}

static Said said(const char *name) {
    Description *d = describing;
    const Options *o = d->options;
    int i;
    taken(name);
    for (i = o->settings.n - 1; i >= 0; i--)            // the last one counts
        if (!strcmp(o->settings.at[i].name, name)) return (Said){ "--set ", o->settings.at[i].value };
    for (i = 0; i < d->file_settings.n; i++)
        if (!strcmp(d->file_settings.at[i].name, name))
            return (Said){ arena_printf(d->arena, "%s: ", o->config), d->file_settings.at[i].value };
    return (Said){ "", NULL };
}

static double number_said(const burn_place *at, const char *name, double otherwise) {
    Said s = said(name);
    char *end;
    if (!s.value) return otherwise;
    double v = strtod(s.value, &end);
    if (!strcmp(s.value, "true") || !strcmp(s.value, "false")) return *s.value == 't';
    if (end != s.value && !*end) return v;
    graph_fail(here(at, NULL), "%s%s=%s: a number is wanted, such as %g", s.option, name, s.value, otherwise);
    return otherwise;
}

// The shortest text that is read as this number again; JSON has none for others.
static const char *number_json(double v) {
    Arena *a = describing->arena;
    if (!isfinite(v)) return arena_printf(a, "\"%g\"", v);
    for (int digits = 1; digits < 17; digits++) {
        const char *text = arena_printf(a, "%.*g", digits, v);
        if (strtod(text, NULL) == v) return fabs(v) < 1e15 && v == floor(v) ? arena_printf(a, "%.0f", v) : text;
    }
    return arena_printf(a, "%.17g", v);
}

static const char *word_json(const char *text) {
    json_t *v = json_stringn(text, strlen(text));
    char *quoted = v ? json_dumps(v, JSON_ENCODE_ANY) : NULL;
    const char *copy = arena_strdup(describing->arena, quoted ? quoted : "null");
    free(quoted);
    json_decref(v);
    return copy;
}

double language_number(const burn_place *at, const char *name, double otherwise) {
    double v = number_said(at, name, otherwise);
    const char **note = taken(name);
    if (!*note) *note = number_json(v);
    return v;
}

const char *language_word(const burn_place *at, const char *name, const char *otherwise) {
    Said s = said(name);
    const char *word = s.value ? s.value : otherwise, **note = taken(name);
    here(at, NULL);
    if (!*note && word) *note = word_json(word);
    return word;
}

static void note_numbers(const char *name, int n, const int64_t *list) {
    const char **note = taken(name);
    Text t;
    text_init(&t, describing->arena);
    for (int i = 0; i < n; i++) text_printf(&t, "%s%lld", i ? ", " : "[", (long long)list[i]);
    if (!*note && n > 0) *note = arena_printf(describing->arena, "%s]", t.at);
}

static void numbers_said(const burn_place *at, const char *name, int n, int64_t *list) {
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

void language_numbers(const burn_place *at, const char *name, int n, int64_t *list) {
    numbers_said(at, name, n, list);
    note_numbers(name, n, list);
}

void settings_print(Text *out) {
    const Description *d = describing;
    int n = 0;
    for (int i = 0; i < d->settings.n; i++) {
        const SetOption *s = &d->settings.at[i];
        if (s->value) text_printf(out, "%s    %s: %s", n++ ? ",\n" : "{\n", word_json(s->name), s->value);
    }
    if (n) text_printf(out, "\n}\n");
}

void settings_check(void) {
    const Description *d = describing;
    const Options *o = d->options;
    Text known;
    text_init(&known, d->arena);
    for (int i = 0; i < d->settings.n; i++) text_printf(&known, " %s", d->settings.at[i].name);
    for (int i = 0; i < o->settings.n; i++) {
        int k = 0;
        while (k < d->settings.n && strcmp(d->settings.at[k].name, o->settings.at[i].name)) k++;
        if (k == d->settings.n)
            diag_error_as(EXIT_USAGE, NULL, "--set %s: the model has no such setting; it has%s",
                o->settings.at[i].name, d->settings.n ? known.at : " none");
    }
}
