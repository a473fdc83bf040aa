/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Datasets made of datasets. One kind chooses items by a list of numbers: parts, shuffled orders, samples and splits
 * are such lists; the others join, stack and map. */
#include "data_own.h"

#include <stdlib.h>
#include <string.h>

/* ---- items by their numbers */
typedef struct Chosen { burn_dataset *of; int64_t items[]; } Chosen;

static int chosen_get(const burn_dataset *data, int64_t i, uint64_t seed, void *const *to, burn_said *said)
{
    const Chosen *c = data->own;
    return c->of->get(c->of, c->items[i], seed, to, said);
}

static void chosen_end(burn_dataset *data)
{
    Chosen *c = data->own;
    burn_data_close(c->of);
    free(c);
}

int burn_data_select(burn_dataset *of, int64_t count, const int64_t *items, burn_dataset **data, burn_said *said)
{
    if (!of || count < 0 || (count && !items)) return BURN_EINVAL;
    for (int64_t i = 0; i < count; i++)
        if (items[i] < 0 || items[i] >= of->count)
            return data_said(said, BURN_ERANGE, "there is no item %lld; there are %lld", (long long)items[i],
                             (long long)of->count);
    Chosen *c = malloc(sizeof *c + (size_t)count * sizeof *c->items);
    if (!c) return data_said(said, BURN_ENOMEM, "no memory");
    c->of = burn_data_keep(of);
    if (count) memcpy(c->items, items, (size_t)count * sizeof *items);
    return data_make(of, count, c, chosen_get, chosen_end, data, said);
}

/* `count` numbers of `order`, from `from`; frees the order. */
static int choose(burn_dataset *of, int64_t from, int64_t count, int64_t *order, burn_dataset **data, burn_said *said)
{
    int error = order ? burn_data_select(of, count, order + from, data, said)
                      : data_said(said, BURN_ENOMEM, "no memory");
    free(order);
    return error;
}

int burn_data_shuffle(burn_dataset *of, uint64_t seed, burn_dataset **data, burn_said *said)
{
    return of ? choose(of, 0, of->count, data_order(of->count, seed), data, said) : BURN_EINVAL;
}

int burn_data_part(burn_dataset *of, int64_t from, int64_t count, burn_dataset **data, burn_said *said)
{
    if (!of || from < 0 || count < 0 || from > of->count - count)
        return data_said(said, BURN_ERANGE, "items %lld to %lld are not all there", (long long)from,
                         (long long)(from + count - 1));
    int64_t *numbers = malloc((size_t)(of->count ? of->count : 1) * sizeof *numbers);
    for (int64_t i = 0; numbers && i < of->count; i++) numbers[i] = i;
    return choose(of, from, count, numbers, data, said);
}

int burn_data_split(burn_dataset *of, double share, uint64_t seed, burn_dataset **first, burn_dataset **second,
                    burn_said *said)
{
    if (!of || !first || !second || !(share >= 0 && share <= 1)) return BURN_EINVAL;
    int64_t cut = (int64_t)((double)of->count * share + 0.5);
    int error = choose(of, 0, cut, data_order(of->count, seed), first, said);
    if (error) return error;
    error = choose(of, cut, of->count - cut, data_order(of->count, seed), second, said);
    if (error) burn_data_close(*first);
    return error;
}

/* Sums of weights in a binary tree over a power of two: draws and removals take log n steps. */
typedef struct Tree { int64_t leaves; double *sum; } Tree;

static int tree_make(Tree *t, int64_t n, const double *weights)
{
    for (t->leaves = 1; t->leaves < n;) t->leaves *= 2;
    t->sum = calloc((size_t)(2 * t->leaves), sizeof *t->sum);
    if (!t->sum) return 0;
    for (int64_t i = 0; i < n; i++) t->sum[t->leaves + i] = weights ? weights[i] : 1;
    for (int64_t k = t->leaves - 1; k > 0; k--) t->sum[k] = t->sum[2 * k] + t->sum[2 * k + 1];
    return 1;
}

static int64_t tree_draw(const Tree *t, double u)
{
    int64_t k = 1;
    u *= t->sum[1];
    while (k < t->leaves) {
        k *= 2;
        if (!(u < t->sum[k] || !(t->sum[k + 1] > 0))) u -= t->sum[k++];
    }
    return k - t->leaves;
}

static void tree_remove(Tree *t, int64_t i)
{
    int64_t k = t->leaves + i;
    for (t->sum[k] = 0; k > 1;) {
        k /= 2;
        t->sum[k] = t->sum[2 * k] + t->sum[2 * k + 1];
    }
}

int burn_data_sample(burn_dataset *of, int64_t count, const double *weights, int replace, uint64_t seed,
                     burn_dataset **data, burn_said *said)
{
    Tree t;
    int64_t possible = 0;
    if (!of || count < 0) return BURN_EINVAL;
    for (int64_t i = 0; i < of->count; i++) {
        if (weights && !(weights[i] >= 0 && weights[i] < 1e300))
            return data_said(said, BURN_ERANGE, "the weight of item %lld is %g", (long long)i, weights[i]);
        possible += !weights || weights[i] > 0;
    }
    if (count > (replace && possible ? INT64_MAX : possible))
        return data_said(said, BURN_ERANGE, "%lld items can be drawn, %lld are wanted", (long long)possible,
                         (long long)count);
    int64_t *drawn = malloc((size_t)(count ? count : 1) * sizeof *drawn);
    if (!drawn || !tree_make(&t, of->count, weights)) return free(drawn), data_said(said, BURN_ENOMEM, "no memory");
    for (int64_t i = 0; i < count; i++) {
        drawn[i] = tree_draw(&t, data_uniform(&seed));
        if (!replace) tree_remove(&t, drawn[i]);
    }
    free(t.sum);
    return choose(of, 0, count, drawn, data, said);
}

/* ---- one after another */
typedef struct Joined { int n; burn_dataset *of[]; } Joined;

static int joined_get(const burn_dataset *data, int64_t i, uint64_t seed, void *const *to, burn_said *said)
{
    const Joined *j = data->own;
    int k = 0;
    while (i >= j->of[k]->count) i -= j->of[k++]->count;
    return j->of[k]->get(j->of[k], i, seed, to, said);
}

static void joined_end(burn_dataset *data)
{
    Joined *j = data->own;
    for (int k = 0; k < j->n; k++) burn_data_close(j->of[k]);
    free(j);
}

static int same_fields(const burn_dataset *a, const burn_dataset *b)
{
    int same = a->field_count == b->field_count;
    for (int f = 0; same && f < a->field_count; f++) {
        const burn_field *x = &a->fields[f], *y = &b->fields[f];
        same = !strcmp(x->name, y->name) && x->dtype == y->dtype && x->rank == y->rank &&
               !memcmp(x->shape, y->shape, sizeof x->shape);
    }
    return same;
}

int burn_data_join(int n, burn_dataset *const *of, burn_dataset **data, burn_said *said)
{
    if (n < 1 || !of) return BURN_EINVAL;
    int64_t count = 0;
    for (int k = 0; k < n; k++) {
        if (!of[k]) return BURN_EINVAL;
        if (!same_fields(of[0], of[k])) return data_said(said, BURN_EINVAL, "dataset %d has other fields", k);
        count += of[k]->count;
    }
    Joined *j = malloc(sizeof *j + (size_t)n * sizeof *j->of);
    if (!j) return data_said(said, BURN_ENOMEM, "no memory");
    j->n = n;
    for (int k = 0; k < n; k++) j->of[k] = burn_data_keep(of[k]);
    return data_make(of[0], count, j, joined_get, joined_end, data, said);
}

/* ---- items in a row */
typedef struct Windows { burn_dataset *of; int64_t size, step; } Windows;

static int windows_get(const burn_dataset *data, int64_t i, uint64_t seed, void *const *to, burn_said *said)
{
    const Windows *w = data->own;
    void *at[BURN_FIELDS];
    int error = BURN_OK;
    for (int64_t k = 0; k < w->size && !error; k++) {
        for (int f = 0; f < data->field_count; f++) at[f] = (uint8_t *)to[f] + (size_t)k * w->of->fields[f].bytes;
        error = w->of->get(w->of, i * w->step + k, seed + (uint64_t)k, at, said);
    }
    return error;
}

static void windows_end(burn_dataset *data)
{
    Windows *w = data->own;
    burn_data_close(w->of);
    free(w);
}

int burn_data_windows(burn_dataset *of, int64_t size, int64_t step, burn_dataset **data, burn_said *said)
{
    if (!of || size < 1 || step < 1) return BURN_EINVAL;
    burn_dataset model = *of;
    model.path = NULL;
    for (int f = 0; f < of->field_count; f++) {
        burn_field *field = &model.fields[f];
        if (field->rank == BURN_FIELD_RANK)
            return data_said(said, BURN_ELIMIT, "field %s has %d dimensions already", field->name, field->rank);
        memmove(field->shape + 1, field->shape, (size_t)field->rank++ * sizeof *field->shape);
        field->shape[0] = size;
        field->bytes *= (size_t)size;
    }
    Windows *w = malloc(sizeof *w);
    if (!w) return data_said(said, BURN_ENOMEM, "no memory");
    *w = (Windows){ burn_data_keep(of), size, step };
    return data_make(&model, of->count < size ? 0 : (of->count - size) / step + 1, w, windows_get, windows_end, data,
                     said);
}

/* ---- functions of items */
typedef struct Mapped { burn_dataset *of; burn_map *map; void *context; size_t bytes; } Mapped;
enum { LINE = 64 };

static size_t lines(size_t bytes)
{
    return (bytes + LINE - 1) / LINE * LINE;
}

static int mapped_get(const burn_dataset *data, int64_t i, uint64_t seed, void *const *to, burn_said *said)
{
    const Mapped *m = data->own;
    void *from[BURN_FIELDS];
    uint8_t *room = malloc(m->bytes);
    if (!room) return data_said(said, BURN_ENOMEM, "no memory");
    size_t at = 0;
    for (int f = 0; f < m->of->field_count; f++) {
        from[f] = room + at;
        at += lines(m->of->fields[f].bytes);
    }
    int error = m->of->get(m->of, i, seed, from, said);
    if (!error) error = m->map(m->context, seed, (const void *const *)from, to, said);
    free(room);
    return error;
}

static void mapped_end(burn_dataset *data)
{
    Mapped *m = data->own;
    burn_data_close(m->of);
    free(m);
}

int burn_data_map(burn_dataset *of, int field_count, const burn_field *fields, burn_map *map, void *context,
                  burn_dataset **data, burn_said *said)
{
    if (!of || !map || !fields || field_count < 1 || field_count > BURN_FIELDS) return BURN_EINVAL;
    burn_dataset model = { .field_count = field_count };
    memcpy(model.fields, fields, (size_t)field_count * sizeof *fields);
    Mapped *m = malloc(sizeof *m);
    if (!m) return data_said(said, BURN_ENOMEM, "no memory");
    *m = (Mapped){ burn_data_keep(of), map, context, 1 };
    for (int f = 0; f < of->field_count; f++) m->bytes += lines(of->fields[f].bytes);
    return data_make(&model, of->count, m, mapped_get, mapped_end, data, said);
}

/* The dataset that item *i is of, and *i its number there; NULL of a source. */
static const burn_dataset *source_of(const burn_dataset *data, int64_t *i)
{
    if (data->get == mapped_get) return ((const Mapped *)data->own)->of;
    if (data->get == chosen_get) {
        const Chosen *c = data->own;
        *i = c->items[*i];
        return c->of;
    }
    if (data->get != joined_get) return NULL;
    const Joined *j = data->own;
    int k = 0;
    while (*i >= j->of[k]->count) *i -= j->of[k++]->count;
    return j->of[k];
}

const char *burn_data_path(const burn_dataset *data, int64_t i)
{
    if (!data || i < 0 || i >= data->count) return NULL;
    for (const burn_dataset *of; (of = source_of(data, &i));) data = of;
    return data->path ? data->path(data, i) : NULL;
}
