/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The kinds of sources, a row each, and what they have in common: the text that names one, taken apart; the kind that a
 * path is of where none is named; the part that is split off. */
#include "source_own.h"

#include <dirent.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

/* suffixes: of a file, or of some file in a folder or in its folders; holds: a file that a folder of this kind has.
 * The first row that fits is what a path is guessed to be. */
typedef struct SourceRow {
    burn_source_help help;
    const char *holds, *suffixes;
    int of_folder;
    SourceOpen *open;
} SourceRow;

static const SourceRow rows[] = {
    { { "mnist", "FOLDER", "MNIST's four files, plain or .gz; t10k-... are for validation", "" },
      "train-images-idx3-ubyte", NULL, 1, source_mnist },
    { { "cifar10", "FOLDER", "data_batch_1.bin ...; test_batch.bin is for validation", "" },
      "data_batch_1.bin", NULL, 1, source_cifar10 },
    { { "cifar100", "FOLDER", "train.bin; test.bin is for validation", "" }, "train.bin", NULL, 1, source_cifar100 },
    { { "audio", "FOLDER", "a folder of WAV files for each class",
        "rate=HZ samples=N seconds=S mels=N window=N hop=N" }, NULL, ".wav", 1, source_audio },
    { { "images", "FOLDER", "a folder of images for each class",
        "size=HxW gray crop mean=R/G/B deviation=R/G/B; in training: flip area=LEAST jitter=X" },
      NULL, ".png .jpg .jpeg .bmp .pgm .ppm .pnm .webp .tif .tiff .jp2", 1, source_images },
    { { "csv", "FILE", "a table with a line of names; the last column is predicted",
        "target=COLUMN ignore=A/B scale drop classify no_header separator=C" }, NULL, ".csv .tsv", 0, source_csv },
    { { "sqlite", "FILE", "a table or view of a database, as csv is; with blobs a field for each column",
        "table=NAME target=COLUMN ignore=A/B scale drop classify" }, NULL, ".sqlite .sqlite3 .db", 0, source_sqlite },
    { { "npz", "FILE", "NumPy's arrays by name, a field each; the first axis counts the items", "fields=A/B" },
      NULL, ".npz", 0, source_npz },
    { { "safetensors", "FILE", "arrays as of npz, of this or any other format of records", "fields=A/B" },
      NULL, ".safetensors", 0, source_safetensors },
    { { "text", "FILE", "a text, to predict each next token",
        "tokens=chars|bytes|words length=N step=N tokenizer=FILE" },
      NULL, ".txt", 0, source_of_text },
};
enum { KINDS = sizeof rows / sizeof *rows };

int burn_source_kind(int i, burn_source_help *help)
{
    if (i < 0 || i >= KINDS) return 0;
    *help = rows[i].help;
    return 1;
}

/* ---- options */

const char *source_option(const SourceText *t, const char *name)
{
    for (int i = 0; i < t->count; i++)
        if (!strcmp(t->names[i], name)) return t->values[i];
    return NULL;
}

int source_flag(SourceText *t, const char *name)
{
    const char *value = source_option(t, name);
    if (value && *value) t->wrong = name;
    return value != NULL;
}

int source_numbers(SourceText *t, const char *name, int n, double *numbers)
{
    const char *at = source_option(t, name);
    int count = 0;
    while (at) {
        char *end;
        double x = strtod(at, &end);
        int ok = end != at && (!*end || *end == '/') && isfinite(x) && count < n;
        if (!ok) t->wrong = name;
        if (!ok) return 0;
        numbers[count++] = x;
        at = *end ? end + 1 : NULL;
    }
    return count;
}

double source_number(SourceText *t, const char *name, double least, double usual)
{
    double x;
    if (!source_numbers(t, name, 1, &x)) return usual;
    if (x < least) t->wrong = name;
    return x;
}

int64_t source_count(SourceText *t, const char *name, int64_t usual)
{
    double x = source_number(t, name, 0, (double)usual);
    if (x > 1e12 || x != floor(x)) t->wrong = name;
    return t->wrong ? usual : (int64_t)x;
}

void source_setting(burn_source *s, const char *format, ...)
{
    size_t n = strlen(s->settings);
    va_list ap;
    va_start(ap, format);
    if (n && n + 1 < sizeof s->settings) s->settings[n++] = ',';
    vsnprintf(s->settings + n, sizeof s->settings - n, format, ap);
    va_end(ap);
}

/* Is `name` one of the options in a row's words, "size=HxW flip"? */
static int is_option(const char *options, const char *name)
{
    size_t bytes = strlen(name);
    for (const char *p = options; *p; p += strcspn(p, " "), p += *p == ' ')
        if (!strncmp(p, name, bytes) && strchr("= ", p[bytes])) return 1;
    return 0;
}

static int take_apart(SourceText *t, const SourceRow *row, const char *text, burn_said *said)
{
    t->own = malloc(strlen(text) + 1);
    if (!t->own) return data_said(said, BURN_ENOMEM, "no memory");
    char *at = strcpy(t->own, text);
    t->path = at;
    for (at += strcspn(at, ","); *at; at += strcspn(at, ",")) {
        *at++ = 0;
        char *name = at, *equals;
        size_t bytes = strcspn(at, ",");
        equals = memchr(at, '=', bytes);
        if (t->count == SOURCE_OPTIONS) return data_said(said, BURN_EINVAL, "%s: too many options", t->path);
        t->names[t->count] = name;
        t->values[t->count++] = equals ? equals + 1 : at + bytes;
        if (equals) *equals = 0;
        if (equals) at = equals + 1;
    }
    for (int i = 0; i < t->count; i++)
        if (!is_option(row->help.options, t->names[i]))
            return data_said(said, BURN_EINVAL, "%s:%s has no option '%s'; %s%s", row->help.name, t->path, t->names[i],
                             *row->help.options ? "it has " : "it has none", row->help.options);
    return BURN_OK;
}

/* ---- which kind */

int source_file(const char *folder, const char *name, char path[SOURCE_PATH])
{
    struct stat st;
    for (int gz = 0; gz < 2; gz++) {
        int n = snprintf(path, SOURCE_PATH, "%s/%s%s", folder, name, gz ? ".gz" : "");
        if (n > 0 && n < SOURCE_PATH && !stat(path, &st) && S_ISREG(st.st_mode)) return 1;
    }
    return 0;
}

static int has_suffix(const char *suffixes, const char *path)
{
    const char *dot = strrchr(path, '.');
    size_t bytes = dot ? strlen(dot) : 0;
    for (const char *p = suffixes; dot && p && *p; p += strcspn(p, " "), p += *p == ' ')
        if (strcspn(p, " ") == bytes && !strncasecmp(p, dot, bytes)) return 1;
    return 0;
}

/* Has the folder, or one of its folders, a file with such a suffix? */
static int holds_suffix(const char *folder, const char *suffixes, int deep)
{
    DIR *d = opendir(folder);
    int found = 0;
    for (struct dirent *e; d && !found && (e = readdir(d));) {
        char path[SOURCE_PATH];
        struct stat st;
        int n = snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (e->d_name[0] == '.' || n < 0 || n >= SOURCE_PATH || stat(path, &st)) continue;
        found = S_ISDIR(st.st_mode) ? deep && holds_suffix(path, suffixes, 0) : has_suffix(suffixes, e->d_name);
    }
    if (d) closedir(d);
    return found;
}

static int fits(const SourceRow *row, const char *path, int is_folder)
{
    char file[SOURCE_PATH];
    if (!is_folder) return has_suffix(row->suffixes, path);
    return row->of_folder && (row->holds ? source_file(path, row->holds, file) : holds_suffix(path, row->suffixes, 1));
}

static const char *kind_names(char names[SOURCE_PATH])
{
    size_t n = 0;
    for (int i = 0; i < KINDS; i++)
        n += (size_t)snprintf(names + n, SOURCE_PATH - n, "%s%s", i ? ", " : "", rows[i].help.name);
    return names;
}

/* The row that `text` names, or that its path fits; *rest: the text without the name. */
static const SourceRow *find_row(const char *text, const char **rest, burn_said *said)
{
    char names[SOURCE_PATH], path[SOURCE_PATH];
    size_t word = strcspn(text, ":,/.");
    struct stat st;
    *rest = text;
    for (int i = 0; text[word] == ':' && i < KINDS; i++)
        if (strlen(rows[i].help.name) == word && !strncmp(rows[i].help.name, text, word)) {
            *rest = text + word + 1;
            return &rows[i];
        }
    int n = snprintf(path, sizeof path, "%.*s", (int)strcspn(text, ","), text);
    if (n >= SOURCE_PATH || stat(path, &st)) {
        data_said(said, 0, text[word] == ':' ? "%.*s is no kind of data; there are %s" : "%.*s: no such file or folder",
                  text[word] == ':' ? (int)word : n, text, kind_names(names));
        return NULL;
    }
    for (int i = 0; i < KINDS; i++)
        if (fits(&rows[i], path, S_ISDIR(st.st_mode))) return &rows[i];
    data_said(said, 0, "%s: what kind of data this is cannot be told; say KIND:%s, where KIND is one of %s", path, path,
              kind_names(names));
    return NULL;
}

int burn_source_open(const char *text, const burn_asked *asked, burn_source *source, burn_said *said)
{
    static const burn_asked nothing;
    const char *rest;
    SourceText t = { 0 };
    if (!text || !source) return BURN_EINVAL;
    *source = (burn_source){ 0 };
    const SourceRow *row = find_row(text, &rest, said);
    if (!row) return BURN_EINVAL;
    source->kind = row->help.name;
    int error = take_apart(&t, row, rest, said);
    if (!error) error = row->open(&t, asked ? asked : &nothing, source, said);
    if (!error && !source->train->count) error = data_said(said, BURN_EFORMAT, "%s: has no items", text);
    free(t.own);
    if (error) burn_source_close(source);
    return error;
}

/* ---- parts */

/* The first items, and the last ones, which nothing of the first is in. */
static int cut(burn_source *s, int64_t first, burn_dataset **train, burn_dataset **valid, burn_said *said)
{
    int64_t apart = first - (s->in_order - 1);
    int error = burn_data_part(s->train, 0, apart > 0 ? apart : 1, train, said);
    return error ? error : burn_data_part(s->train, first, s->train->count - first, valid, said);
}

/* The same draw twice: what is learnt from has what is drawn anew, the rest has not. */
static int deal(burn_source *s, double share, uint64_t seed, burn_dataset **train, burn_dataset **valid,
                burn_said *said)
{
    burn_dataset *rest = NULL, *few = NULL;
    int error = burn_data_split(s->train, share, seed, train, &rest, said);
    if (!error) error = burn_data_split(s->plain ? s->plain : s->train, share, seed, &few, valid, said);
    if (rest) burn_data_close(rest);
    if (few) burn_data_close(few);
    return error;
}

int burn_source_split(burn_source *s, double share, uint64_t seed, burn_said *said)
{
    burn_dataset *train = NULL, *valid = NULL;
    if (s && s->valid) return BURN_OK;
    if (!s || !(share > 0 && share < 1)) return data_said(said, BURN_EINVAL, "a share is from 0 to 1, and neither");
    int64_t count = s->train->count, first = (int64_t)((1 - share) * (double)count + 0.5);
    if (first < 1 || first >= count)
        return data_said(said, BURN_EINVAL, "%lld items are too few to keep a share of %g for validation",
                         (long long)count, share);
    int error = s->in_order ? cut(s, first, &train, &valid, said) : deal(s, 1 - share, seed, &train, &valid, said);
    burn_dataset *old[] = { error ? train : s->train, error ? valid : NULL };
    if (!error) s->train = train, s->valid = valid;
    for (int i = 0; i < 2; i++)
        if (old[i]) burn_data_close(old[i]);
    return error;
}

void burn_source_close(burn_source *s)
{
    burn_dataset *all[] = { s->train, s->plain, s->valid };
    for (int i = 0; i < 3; i++)
        if (all[i]) burn_data_close(all[i]);
    s->train = s->plain = s->valid = NULL;
}
