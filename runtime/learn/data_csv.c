/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Tables in text. In: a file of rows (RFC 4180, other separators too). Out: items of "features" and "target".
 *
 * The file is cut once into cells, which stay in the text as it was read; the columns are then looked at as a whole:
 * of numbers or of words, their means, their words in order. What a column was found to be is a Column, and a dataset
 * that is `like` another, or of columns that are given, takes those. */
#include "data_own.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef enum ColumnKind { NUMBERS, WORDS } ColumnKind;
typedef struct Column {
    char *name;
    ColumnKind kind;
    int is_left_out, is_target;
    int64_t place;                                         /* of its first number in "features" */
    double mean, scale;                                    /* NUMBERS: (x - mean) * scale, mean where missing */
    int word_count;
    const char **words;                                    /* in order; classes of a target, too */
} Column;

typedef struct Table {
    int holds;                                             /* datasets that are like it */
    char *text;
    int64_t rows, columns, room;
    char **cells;                                          /* [rows][columns] */
    int64_t *line;                                         /* of a row in the file, from 1 */
    Column *of;
    int64_t *at;                                           /* of the columns that it is by: the file's; -1: none */
    char (*numbers)[24];                                   /* of columns, names where there is no header */
    int64_t features;
    int scales;
} Table;

/* A dataset's own: the numbers of all its items, and the table that its columns' names are in. */
typedef struct Rows { Table *table; float *features; void *target; } Rows;

static void table_free(Table *t)
{
    if (!t || --t->holds) return;
    for (int64_t c = 0; t->of && c < t->columns; c++) free(t->of[c].words);
    free(t->of);
    free(t->at);
    free(t->numbers);
    free(t->cells);
    free(t->line);
    free(t->text);
    free(t);
}

static int is_missing(const char *cell)
{
    return !*cell || !strcmp(cell, "?") || !strcasecmp(cell, "na") || !strcasecmp(cell, "nan");
}

static int read_number(const char *cell, double *x)
{
    char *end;
    *x = strtod(cell, &end);
    return end != cell && !*end && isfinite(*x);
}

/* ---- cutting */

/* The separator that the first line has most of. */
static char find_separator(const char *text)
{
    static const char some[] = ",;\t";
    size_t count[3] = { 0, 0, 0 }, best = 0;
    for (const char *p = text; *p && *p != '\n'; p++)
        for (size_t k = 0; k < 3; k++) count[k] += *p == some[k];
    for (size_t k = 1; k < 3; k++)
        if (count[k] > count[best]) best = k;
    return some[best];
}

/* Cuts the cell at *at out in place, without its quotes and the white space around it; *at goes behind it, on its
 * separator or line's end, of which *end keeps the character. */
static char *cut_cell(char **at, char separator, char *end, int64_t *line)
{
    char *p = *at, *to, *cell;
    while (*p == ' ') p++;
    cell = to = p;
    if (*p == '"') {
        for (p++; *p && !(*p == '"' && p[1] != '"'); p++) {
            p += *p == '"';
            *line += *p == '\n';
            *to++ = *p;
        }
        if (*p) p++;
        while (*p && *p != separator && *p != '\n') p++;
    } else {
        while (*p && *p != separator && *p != '\n') p++;
        for (to = p; to > cell && (to[-1] == ' ' || to[-1] == '\r'); to--) {}
    }
    *end = *p;
    *to = 0;
    *at = p;
    return cell;
}

static int add_cell(Table *t, int64_t n, char *cell)
{
    if (n >= t->room) {
        int64_t room = t->room ? 2 * t->room : 1024;
        char **cells = realloc(t->cells, (size_t)room * sizeof *cells);
        if (!cells) return 0;
        t->cells = cells;
        t->room = room;
    }
    t->cells[n] = cell;
    return 1;
}

static int add_row(Table *t, int64_t line)
{
    if (!(t->rows & (t->rows - 1))) {
        int64_t *more = realloc(t->line, (size_t)(t->rows ? 2 * t->rows : 1) * sizeof *more);
        if (!more) return 0;
        t->line = more;
    }
    t->line[t->rows++] = line;
    return 1;
}

/* All cells; rows of other lengths than the first one's are errors, empty lines none. */
static int cut_table(Table *t, const char *path, char separator, burn_said *said)
{
    char *at = t->text, end = '\n';
    int64_t n = 0;
    for (int64_t line = 1; *at; line++) {
        int64_t start = line, cells = 0;
        if (*at == '\n' || (*at == '\r' && at[1] == '\n')) {
            at += 1 + (*at == '\r');
            continue;
        }
        do {
            char *cell = cut_cell(&at, separator, &end, &line);
            if (!add_cell(t, n + cells++, cell)) return data_said(said, BURN_ENOMEM, "no memory");
            at += end != 0;
        } while (end == separator);
        if (!t->columns) t->columns = cells;
        if (cells != t->columns)
            return data_said(said, BURN_EFORMAT, "%s: line %lld has %lld cells, the first one %lld", path,
                             (long long)start, (long long)cells, (long long)t->columns);
        n += cells;
        if (!add_row(t, start)) return data_said(said, BURN_ENOMEM, "no memory");
    }
    return t->rows ? BURN_OK : data_said(said, BURN_EFORMAT, "%s: is empty", path);
}

/* ---- columns */

/* Is `name` one of "a,b,c"? */
static int is_listed(const char *list, const char *name)
{
    size_t bytes = strlen(name);
    for (const char *p = list; p && *p; p += strcspn(p, ","), p += *p == ',') {
        size_t here = strcspn(p, ",");
        if (here == bytes && !memcmp(p, name, bytes)) return 1;
    }
    return 0;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Numbers as numbers, so that class 10 comes behind class 9. */
static int by_number(const void *a, const void *b)
{
    double x = strtod(*(const char *const *)a, NULL), y = strtod(*(const char *const *)b, NULL);
    return x != y ? (x > y) - (x < y) : by_text(a, b);
}

/* The different words of a column, in order. */
static int find_words(const Table *t, int64_t column, int numbers)
{
    Column *c = &t->of[column];
    int64_t n = 0;
    c->words = malloc((size_t)t->rows * sizeof *c->words);
    if (!c->words) return 0;
    for (int64_t r = 0; r < t->rows; r++) {
        const char *cell = t->cells[r * t->columns + column];
        c->words[n++] = is_missing(cell) ? "" : cell;
    }
    qsort(c->words, (size_t)n, sizeof *c->words, numbers ? by_number : by_text);
    for (int64_t r = 0; r < n; r++)
        if (!c->word_count || strcmp(c->words[c->word_count - 1], c->words[r])) c->words[c->word_count++] = c->words[r];
    return 1;
}

/* What the column is of, its mean and its spread. */
static int look_at(const Table *t, int64_t column, const burn_csv *how)
{
    Column *c = &t->of[column];
    double n = 0, spread = 0, x;
    c->kind = NUMBERS;
    for (int64_t r = 0; r < t->rows; r++) {
        const char *cell = t->cells[r * t->columns + column];
        if (is_missing(cell)) continue;
        if (!read_number(cell, &x)) c->kind = WORDS;
        double off = x - c->mean;
        n += 1;
        c->mean += off / n;
        spread += off * (x - c->mean);
    }
    c->scale = spread > 0 ? 1 / sqrt(spread / n) : 1;
    int numbers = c->kind == NUMBERS;
    if (c->is_target && how->classify) c->kind = WORDS;
    return c->kind == NUMBERS || find_words(t, column, numbers);
}

/* Rows without a missing value; those that lack one go. The target's never may. */
static void drop_rows(Table *t, int drop_missing)
{
    int64_t kept = 0;
    for (int64_t r = 0; r < t->rows; r++) {
        int lacks = 0;
        for (int64_t c = 0; c < t->columns; c++)
            lacks |= !t->of[c].is_left_out && (t->of[c].is_target || drop_missing) &&
                     is_missing(t->cells[r * t->columns + c]);
        if (lacks) continue;
        memmove(t->cells + kept * t->columns, t->cells + r * t->columns, (size_t)t->columns * sizeof *t->cells);
        t->line[kept++] = t->line[r];
    }
    t->rows = kept;
}

static int name_columns(Table *t, const char *path, const burn_csv *how, burn_said *said)
{
    int found = 0;
    t->of = calloc((size_t)t->columns, sizeof *t->of);
    t->numbers = calloc((size_t)t->columns, sizeof *t->numbers);
    if (!t->of || !t->numbers) return data_said(said, BURN_ENOMEM, "no memory");
    for (int64_t c = 0; c < t->columns; c++) {
        Column *column = &t->of[c];
        snprintf(t->numbers[c], sizeof *t->numbers, "%lld", (long long)c);
        column->name = how->no_header ? t->numbers[c] : t->cells[c];
        column->is_target = how->target ? !strcmp(column->name, how->target) : c == t->columns - 1;
        column->is_left_out = is_listed(how->ignore, column->name);
        found += column->is_target && !column->is_left_out;
    }
    if (!found && !how->columns)
        return data_said(said, BURN_EINVAL, "%s: has no column '%s' to predict; the first is '%s', the last '%s'", path,
                         how->target ? how->target : "(last)", t->of[0].name, t->of[t->columns - 1].name);
    if (!how->no_header) {
        memmove(t->cells, t->cells + t->columns, (size_t)(--t->rows * t->columns) * sizeof *t->cells);
        memmove(t->line, t->line + 1, (size_t)t->rows * sizeof *t->line);
    }
    return BURN_OK;
}

/* ---- numbers */

/* The place of a word among the column's, or -1. */
static int64_t word_place(const Column *c, const char *cell)
{
    const char *word = is_missing(cell) ? "" : cell;
    for (int k = 0; k < c->word_count; k++)
        if (!strcmp(c->words[k], word)) return k;
    return -1;
}

/* A row's cell to where it belongs: numbers at `features`, the target at `target`. */
static int put_cell(const Table *by, const Column *c, const char *cell, float *features, void *target)
{
    double x = c->mean;
    int64_t k = c->kind == WORDS ? word_place(c, cell) : 0;
    if (c->kind == NUMBERS && !is_missing(cell) && !read_number(cell, &x)) return 0;
    if (c->is_target) {
        if (c->kind == WORDS) *(int64_t *)target = k;
        else *(float *)target = (float)x;
        return k >= 0;
    }
    if (c->kind == NUMBERS) features[c->place] = (float)(by->scales ? (x - c->mean) * c->scale : x);
    else if (k >= 0) features[c->place + k] = 1;           /* a word that was not there before is none of them */
    return 1;
}

static int put_rows(const Table *t, const Table *by, const char *path, Rows *rows, size_t target_bytes,
                    burn_said *said)
{
    for (int64_t r = 0; r < t->rows; r++)
        for (int64_t k = 0; k < by->columns; k++) {
            const Column *c = &by->of[k];
            if (c->is_left_out || t->at[k] < 0) continue;
            const char *cell = t->cells[r * t->columns + t->at[k]];
            if (!put_cell(by, c, cell, rows->features + r * by->features,
                                             (uint8_t *)rows->target + (size_t)r * target_bytes))
                return data_said(said, BURN_EFORMAT, "%s: line %lld, column '%s': '%s' is no %s", path,
                                 (long long)t->line[r], c->name, cell,
                                 c->kind == WORDS ? "class that was there before" : "number");
        }
    return BURN_OK;
}

static void rows_free(Rows *rows)
{
    if (!rows) return;
    table_free(rows->table);
    free(rows->features);
    free(rows->target);
    free(rows);
}

static void rows_end(burn_dataset *data)
{
    rows_free(data->own);
}

static int rows_get(const burn_dataset *data, int64_t i, uint64_t seed, void *const *to, burn_said *said)
{
    const Rows *rows = data->own;
    (void)seed;
    (void)said;
    memcpy(to[0], rows->features + i * rows->table->features, data->fields[0].bytes);
    if (data->field_count > 1)
        memcpy(to[1], (const uint8_t *)rows->target + (size_t)i * data->fields[1].bytes, data->fields[1].bytes);
    return BURN_OK;
}

/* ---- columns of a table before */

/* A column's name and words, copied: one block, in which the texts lie behind the pointers to the words. */
static int copy_column(Column *c, const burn_column *from)
{
    size_t bytes = strlen(from->name) + 1;
    for (int k = 0; k < from->word_count; k++) bytes += strlen(from->words[k]) + 1;
    c->words = malloc((size_t)from->word_count * sizeof *c->words + bytes);
    if (!c->words) return 0;
    char *to = (char *)(c->words + from->word_count);
    c->name = strcpy(to, from->name);
    for (int k = 0; k < from->word_count; k++) {
        to += strlen(to) + 1;
        c->words[k] = strcpy(to, from->words[k]);
    }
    return 1;
}

/* A table of columns that are given; NULL without memory. */
static Table *table_of(const burn_csv *how)
{
    Table *t = calloc(1, sizeof *t);
    if (!t) return NULL;
    t->holds = 1;
    t->scales = how->scale;
    t->columns = how->column_count;
    t->of = calloc((size_t)t->columns + 1, sizeof *t->of);
    for (int64_t k = 0; t->of && k < t->columns; k++) {
        const burn_column *from = &how->columns[k];
        Column *c = &t->of[k];
        *c = (Column){ .kind = from->word_count ? WORDS : NUMBERS, .is_target = from->is_target, .place = t->features,
                       .mean = from->mean, .scale = from->scale, .word_count = from->word_count };
        if (!copy_column(c, from)) return table_free(t), NULL;
        if (!c->is_target) t->features += c->word_count ? c->word_count : 1;
    }
    if (t->of) return t;
    table_free(t);
    return NULL;
}

int burn_csv_columns(const burn_dataset *table, int room, burn_column *columns)
{
    if (table->get != rows_get) return 0;
    const Table *t = ((const Rows *)table->own)->table;
    int n = 0;
    for (int64_t k = 0; k < t->columns; k++) {
        const Column *c = &t->of[k];
        if (c->is_left_out) continue;
        if (n < room)
            columns[n] = (burn_column){ c->name, c->is_target, c->mean, c->scale, c->word_count, c->words };
        n++;
    }
    return n;
}

/* Which of the file's columns are the ones that it is by: all, in order, of a table before; of columns that are given
 * those of their names. */
static int match_columns(Table *t, const Table *by, const char *path, int by_name, burn_said *said)
{
    t->at = malloc((size_t)(by->columns + 1) * sizeof *t->at);
    if (!t->at) return data_said(said, BURN_ENOMEM, "no memory");
    if (!by_name && by->columns != t->columns)
        return data_said(said, BURN_EFORMAT, "%s: has %lld columns, the table before %lld", path, (long long)t->columns,
                         (long long)by->columns);
    for (int64_t k = 0; k < by->columns; k++) {
        t->at[k] = by_name ? -1 : k;
        for (int64_t c = 0; by_name && c < t->columns; c++)
            if (!strcmp(t->of[c].name, by->of[k].name)) t->at[k] = c;
        if (t->at[k] < 0 && !by->of[k].is_target)
            return data_said(said, BURN_EFORMAT, "%s: has no column '%s'", path, by->of[k].name);
        if (t->at[k] >= 0 && strcmp(t->of[t->at[k]].name, by->of[k].name))
            return data_said(said, BURN_EFORMAT, "%s: column %lld is '%s', in the table before '%s'", path,
                             (long long)k, t->of[k].name, by->of[k].name);
    }
    return BURN_OK;
}

/* Reads, cuts and looks; the columns are t's own or, of a dataset that is like one, that one's. */
static int read_table(Table *t, const char *path, size_t bytes, const burn_csv *how, const Table *like, burn_said *said)
{
    if (strlen(t->text) != bytes) return data_said(said, BURN_EFORMAT, "%s: is no text", path);
    int error = cut_table(t, path, how->separator ? how->separator : find_separator(t->text), said);
    if (!error) error = name_columns(t, path, how, said);
    if (error) return error;
    if ((error = match_columns(t, like ? like : t, path, how->columns != NULL, said))) return error;
    if (how->columns)                                      /* what a row may lack is told by the columns */
        for (int64_t c = 0; c < t->columns; c++) t->of[c].is_left_out = 1;
    for (int64_t k = 0; how->columns && k < like->columns; k++)
        if (t->at[k] >= 0) t->of[t->at[k]].is_left_out = 0, t->of[t->at[k]].is_target = like->of[k].is_target;
    drop_rows(t, how->drop_missing);
    for (int64_t c = 0; c < t->columns && !like; c++) {
        Column *column = &t->of[c];
        if (column->is_left_out) continue;
        if (!look_at(t, c, how)) return data_said(said, BURN_ENOMEM, "no memory");
        column->place = t->features;
        if (!column->is_target) t->features += column->kind == WORDS ? column->word_count : 1;
    }
    t->scales = how->scale;
    return BURN_OK;
}

int burn_data_csv(const char *path, const burn_csv *how, burn_dataset **data, burn_said *said)
{
    size_t bytes;
    char *text = (char *)data_read(path, &bytes, said);
    return text ? data_table(path, text, bytes, how, data, said) : BURN_EIO;
}

int data_table(const char *path, char *text, size_t bytes, const burn_csv *asked, burn_dataset **data, burn_said *said)
{
    static const burn_csv usual;
    const burn_csv *how = asked ? asked : &usual;
    if (how->like && how->like->get != rows_get) return free(text), data_said(said, BURN_EINVAL, "like: is no table");
    Table *like = how->like ? ((Rows *)how->like->own)->table : how->columns ? table_of(how) : NULL;
    Table *t = calloc(1, sizeof *t), *by = like ? like : t;
    Rows *rows = calloc(1, sizeof *rows);
    if (how->like) like->holds++;
    if (!t || !rows || (how->columns && !like))
        return free(text), free(t), free(rows), table_free(like), data_said(said, BURN_ENOMEM, "no memory");
    t->holds = 1;
    t->text = text;
    int error = read_table(t, path, bytes, how, like, said);
    burn_dataset model = { .field_count = 1 };
    const Column *target = NULL;
    for (int64_t k = 0; k < by->columns && !error; k++)
        if (by->of[k].is_target && !by->of[k].is_left_out && t->at[k] >= 0) target = &by->of[k];
    if (!error) {
        model.fields[0] = burn_field_of("features", BURN_FLOAT, 1, &by->features);
        model.fields[1] = burn_field_of("target", target && target->kind == WORDS ? BURN_INT64 : BURN_FLOAT, 0, NULL);
        model.field_count += target != NULL;
        model.fields[1].class_count = target ? target->word_count : 0;
        model.fields[1].classes = target ? target->words : NULL;
        rows->features = calloc((size_t)(t->rows * by->features) + 1, sizeof *rows->features);
        rows->target = calloc((size_t)t->rows + 1, 8);
        if (!rows->features || !rows->target) error = data_said(said, BURN_ENOMEM, "no memory");
    }
    if (!error) error = put_rows(t, by, path, rows, model.fields[1].bytes, said);
    int64_t count = t->rows;
    rows->table = by;
    if (like) table_free(t);
    if (error) return rows_free(rows), error;
    return data_make(&model, count, rows, rows_get, rows_end, data, said);
}
