/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The rows of an SQLite database. Without blobs they are a table as a CSV file is, and go its way: columns of numbers
 * and of words, missing values, a target. With blobs each column is a field, an array of data_arrays.c; a column's name
 * says what its blobs are: "image:u8[1,28,28]". */
#include "data_own.h"
#include "record_own.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef BURN_HAS_SQLITE
#include <sqlite3.h>

typedef struct Rows {
    sqlite3 *db;
    sqlite3_stmt *all;
    const char *path;
} Rows;

static int failed(const Rows *r, int error, burn_said *said)
{
    return data_said(said, error, "%s: %s", r->path, r->db ? sqlite3_errmsg(r->db) : "no memory");
}

/* The only table there is. */
static int only_table(const Rows *r, char *name, size_t room, burn_said *said)
{
    sqlite3_stmt *s = NULL;
    int n = 0;
    if (sqlite3_prepare_v2(r->db, "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE "
                           "'sqlite\\_%' ESCAPE '\\' ORDER BY name", -1, &s, NULL))
        return failed(r, BURN_EFORMAT, said);
    char names[200] = "";
    while (sqlite3_step(s) == SQLITE_ROW) {
        const char *one = (const char *)sqlite3_column_text(s, 0);
        const size_t used = strlen(names);
        if (!n++) snprintf(name, room, "%s", one ? one : "");
        snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "", one ? one : "");
    }
    sqlite3_finalize(s);
    if (n == 1) return BURN_OK;
    return data_said(said, BURN_EFORMAT, "%s: has %d tables: %s: choose one", r->path, n, names);
}

/* What: a query, or a table's name. */
static int begin(Rows *r, const char *what, burn_said *said)
{
    char name[200];
    if (sqlite3_open_v2(r->path, &r->db, SQLITE_OPEN_READONLY, NULL)) return failed(r, BURN_EIO, said);
    if (!what || !*what) {
        const int error = only_table(r, name, sizeof name, said);
        if (error) return error;
        what = name;
    }
    const int is_query = !sqlite3_strnicmp(what, "select", 6) || !sqlite3_strnicmp(what, "with", 4);
    char *query = sqlite3_mprintf(is_query ? "%s" : "SELECT * FROM \"%w\"", what);
    const int bad = query ? sqlite3_prepare_v2(r->db, query, -1, &r->all, NULL) : SQLITE_NOMEM;
    sqlite3_free(query);
    return bad ? failed(r, BURN_EFORMAT, said) : BURN_OK;
}

static void end(Rows *r)
{
    sqlite3_finalize(r->all);
    sqlite3_close(r->db);
}

/* ---- a table */

static void put_cell(RecordBytes *to, const char *text, int quoted)
{
    if (quoted) record_append(to, "\"", 1);
    for (; *text; text++) {
        if (quoted && *text == '"') record_append(to, "\"", 1);
        record_append(to, text, 1);
    }
    if (quoted) record_append(to, "\"", 1);
}

/* The rows as the text of a CSV file. */
static int as_text(const Rows *r, RecordBytes *to, burn_said *said)
{
    const int n = sqlite3_column_count(r->all);
    int state;
    for (int c = 0; c < n; c++) {
        put_cell(to, sqlite3_column_name(r->all, c), 1);
        record_append(to, c + 1 < n ? "," : "\n", 1);
    }
    while ((state = sqlite3_step(r->all)) == SQLITE_ROW)
        for (int c = 0; c < n; c++) {
            const int type = sqlite3_column_type(r->all, c);
            const char *text = (const char *)sqlite3_column_text(r->all, c);
            if (text) put_cell(to, text, type == SQLITE_TEXT);
            record_append(to, c + 1 < n ? "," : "\n", 1);
        }
    record_append(to, "", 1);
    if (state != SQLITE_DONE) return failed(r, BURN_EFORMAT, said);
    return to->failed ? data_said(said, BURN_ENOMEM, "%s: no memory for its rows", r->path) : BURN_OK;
}

/* ---- fields */

typedef struct Field {
    char name[64];
    burn_dtype dtype;                                      /* of blobs, as the name says; 0: it says nothing */
    int rank;
    int64_t shape[BURN_FIELD_RANK + 1];                    /* [0]: rows */
    int type;                                              /* SQLite's, of the first row */
    size_t bytes;                                          /* of one */
    RecordBytes all;
} Field;

/* image:u8[1,28,28] */
static int read_name(Field *f, const char *name)
{
    const char *colon = strrchr(name, ':');
    const size_t n = colon ? (size_t)(colon - name) : strlen(name);
    snprintf(f->name, sizeof f->name, "%.*s", n < sizeof f->name ? (int)n : (int)sizeof f->name - 1, name);
    if (!colon) return 1;
    char type[8] = "";
    const size_t word = strcspn(colon + 1, "[");
    for (size_t i = 0; i < word && i + 1 < sizeof type; i++)
        type[i] = (char)(colon[1 + i] >= 'a' ? colon[1 + i] - 'a' + 'A' : colon[1 + i]);
    f->dtype = record_dtype(type, strlen(type));
    f->bytes = record_dtype_bytes(f->dtype);
    const char *at = colon + 1 + word;
    for (char *rest; *at && *at != ']'; at = rest) {
        at += strspn(at, "[, ");
        if (f->rank == BURN_FIELD_RANK) return 0;
        const int64_t size = strtoll(at, &rest, 10);
        if (rest == at || size < 1 || __builtin_mul_overflow(f->bytes, (size_t)size, &f->bytes)) return 0;
        f->shape[++f->rank] = size;
    }
    return f->dtype != BURN_UNDEFINED;
}

static int put_value(const Rows *r, Field *f, int c, int64_t row, burn_said *said)
{
    const int type = sqlite3_column_type(r->all, c);
    const int64_t integer = sqlite3_column_int64(r->all, c);
    const double real = sqlite3_column_double(r->all, c);
    const char *text = type == SQLITE_TEXT ? (const char *)sqlite3_column_text(r->all, c) : NULL;
    if (!row) f->type = type;
    if (!row && type == SQLITE_BLOB && !f->dtype) {
        f->dtype = BURN_UINT8;
        f->bytes = (size_t)sqlite3_column_bytes(r->all, c);
        f->shape[++f->rank] = (int64_t)f->bytes;
    }
    if (type != f->type || type == SQLITE_NULL)
        return data_said(said, BURN_EFORMAT, "%s: row %lld: \"%s\" is of another type than in the first row, or null",
                         r->path, (long long)row + 1, f->name);
    if (type == SQLITE_BLOB && (size_t)sqlite3_column_bytes(r->all, c) != f->bytes)
        return data_said(said, BURN_EFORMAT, "%s: row %lld: \"%s\" has %d bytes, not %zu", r->path, (long long)row + 1,
                         f->name, sqlite3_column_bytes(r->all, c), f->bytes);
    if (type == SQLITE_BLOB) record_append(&f->all, sqlite3_column_blob(r->all, c), f->bytes);
    else if (type == SQLITE_TEXT) record_append(&f->all, text ? text : "", text ? strlen(text) + 1 : 1);
    else record_append(&f->all, type == SQLITE_INTEGER ? (const void *)&integer : (const void *)&real, 8);
    return BURN_OK;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Texts become numbers of classes, which are the texts in order. The block of texts becomes that of the words. */
static int take_words(Field *f, DataArray *one, int64_t rows, int64_t **numbers)
{
    char **all = malloc((size_t)rows * sizeof *all), **words = malloc((size_t)rows * sizeof *words);
    *numbers = malloc((size_t)rows * sizeof **numbers);
    char *block = malloc(f->all.n);
    if (!all || !words || !*numbers || !block) return free(all), free(words), free(block), 0;
    char *at = (char *)f->all.at;
    for (int64_t i = 0; i < rows; i++, at += strlen(at) + 1) words[i] = all[i] = at;
    qsort(words, (size_t)rows, sizeof *words, by_text);
    int n = 0;
    for (int64_t i = 0; i < rows; i++)
        if (!n || strcmp(words[n - 1], words[i])) words[n++] = words[i];
    for (int64_t i = 0; i < rows; i++)
        (*numbers)[i] = (char **)bsearch(&all[i], words, (size_t)n, sizeof *words, by_text) - words;
    for (int k = 0; k < n; k++) {
        const size_t bytes = strlen(words[k]) + 1;
        words[k] = memcpy(block, words[k], bytes);
        block += bytes;
    }
    free(all);
    one->dtype = BURN_INT64;
    one->data = *numbers;
    one->bytes = (size_t)rows * sizeof **numbers;
    one->words = words;
    one->word_count = n;
    return 1;
}

static int add_field(DataArrays **a, const char *path, Field *f, int64_t rows, burn_said *said)
{
    int64_t *numbers = NULL;
    f->shape[0] = rows;
    DataArray one = { f->name, f->dtype, f->rank + 1, f->shape, f->all.at, f->all.n, NULL, 0 };
    if (f->type == SQLITE_INTEGER) one.dtype = BURN_INT64;
    if (f->type == SQLITE_FLOAT) one.dtype = BURN_DOUBLE;
    if (f->type != SQLITE_BLOB) one.rank = 1;
    const int ok = !f->all.failed && (f->type != SQLITE_TEXT || take_words(f, &one, rows, &numbers));
    const int error = ok ? data_arrays_add(a, path, &one, said) : data_said(said, BURN_ENOMEM, "%s: no memory", path);
    if (error && one.words) free(one.words[0]), free(one.words);
    free(numbers);
    return error;
}

static int read_fields(const Rows *r, DataArrays **a, burn_said *said)
{
    const int n = sqlite3_column_count(r->all);
    Field *fields = calloc((size_t)n, sizeof *fields);
    int error = fields ? BURN_OK : data_said(said, BURN_ENOMEM, "%s: no memory", r->path), state;
    for (int c = 0; !error && c < n; c++)
        if (!read_name(&fields[c], sqlite3_column_name(r->all, c)))
            error = data_said(said, BURN_EFORMAT, "%s: \"%s\" is no NAME:TYPE[SIZE,SIZE], as image:u8[1,28,28] is",
                              r->path, sqlite3_column_name(r->all, c));
    int64_t rows = 0;
    for (; !error && (state = sqlite3_step(r->all)) != SQLITE_DONE; rows++) {
        if (state != SQLITE_ROW) error = failed(r, BURN_EFORMAT, said);
        for (int c = 0; !error && c < n; c++) error = put_value(r, &fields[c], c, rows, said);
    }
    for (int c = 0; !error && rows && c < n; c++) error = add_field(a, r->path, &fields[c], rows, said);
    for (int c = 0; fields && c < n; c++) free(fields[c].all.at);
    free(fields);
    return error;
}

/* Are there blobs in the first row, or names that say so? */
static int has_blobs(const Rows *r)
{
    int found = 0;
    const int row = sqlite3_step(r->all) == SQLITE_ROW;
    for (int c = 0; c < sqlite3_column_count(r->all); c++)
        found |= strchr(sqlite3_column_name(r->all, c), '[') || (row && sqlite3_column_type(r->all, c) == SQLITE_BLOB);
    sqlite3_reset(r->all);
    return found;
}

int burn_data_sqlite(const char *path, const char *query, const burn_csv *how, burn_dataset **data, burn_said *said)
{
    Rows r = { .path = path ? path : "(no path)" };
    RecordBytes text = { 0 };
    DataArrays *a = NULL;
    int error = begin(&r, query, said);
    const int fields = !error && has_blobs(&r);
    if (fields) error = read_fields(&r, &a, said);
    if (fields) error = data_arrays_done(a, path, error, data, said);
    else if (!error) error = as_text(&r, &text, said);
    end(&r);
    if (error || fields) return free(text.at), error;
    return data_table(path, (char *)text.at, text.n - 1, how, data, said);
}
#else
int burn_data_sqlite(const char *path, const char *query, const burn_csv *how, burn_dataset **data, burn_said *said)
{
    (void)query, (void)how, (void)data;
    return data_said(said, BURN_EINVAL, "%s: this build has no SQLite", path);
}
#endif
