/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The kinds of sources that data.h reads. In: a path and its options, and what the model takes. Out: datasets, and the
 * options that make the same of other data. */
#include "source_own.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int wrong_option(const SourceText *t, burn_said *said)
{
    const char *value = source_option(t, t->wrong);
    return data_said(said, BURN_EINVAL, "%s: %s%s%s cannot be read", t->path, t->wrong, *value ? "=" : "", value);
}

/* ---- files of known names */

static int open_idx(const SourceText *t, const char *part, burn_dataset **data, burn_said *said)
{
    char images[SOURCE_PATH], labels[SOURCE_PATH], name[64];
    snprintf(name, sizeof name, "%s-images-idx3-ubyte", part);
    int ok = source_file(t->path, name, images);
    if (ok) snprintf(name, sizeof name, "%s-labels-idx1-ubyte", part);
    ok = ok && source_file(t->path, name, labels);
    return ok ? burn_data_idx(images, labels, data, said)
              : data_said(said, BURN_EIO, "%s: has no file %s, nor %s.gz", t->path, name, name);
}

int source_mnist(SourceText *t, const burn_asked *asked, burn_source *source, burn_said *said)
{
    char test[SOURCE_PATH];
    (void)asked;
    int error = open_idx(t, "train", &source->train, said);
    if (error || !source_file(t->path, "t10k-images-idx3-ubyte", test)) return error;
    return open_idx(t, "t10k", &source->valid, said);
}

static int open_cifar(int classes, int n, char (*files)[SOURCE_PATH], burn_dataset **data, burn_said *said)
{
    const char *paths[5];
    for (int i = 0; i < n; i++) paths[i] = files[i];
    return burn_data_cifar(classes, n, paths, data, said);
}

int source_cifar10(SourceText *t, const burn_asked *asked, burn_source *source, burn_said *said)
{
    char files[5][SOURCE_PATH], name[32];
    int n = 0;
    (void)asked;
    for (int i = 1; i <= 5; i++) {
        snprintf(name, sizeof name, "data_batch_%d.bin", i);
        n += source_file(t->path, name, files[n]);
    }
    if (!n) return data_said(said, BURN_EIO, "%s: has no file data_batch_1.bin", t->path);
    int error = open_cifar(10, n, files, &source->train, said);
    if (error || !source_file(t->path, "test_batch.bin", files[0])) return error;
    return open_cifar(10, 1, files, &source->valid, said);
}

int source_cifar100(SourceText *t, const burn_asked *asked, burn_source *source, burn_said *said)
{
    char file[1][SOURCE_PATH];
    (void)asked;
    if (!source_file(t->path, "train.bin", file[0]))
        return data_said(said, BURN_EIO, "%s: has no file train.bin", t->path);
    int error = open_cifar(100, 1, file, &source->train, said);
    if (error || !source_file(t->path, "test.bin", file[0])) return error;
    return open_cifar(100, 1, file, &source->valid, said);
}

/* ---- tables */

/* The words of an option, with commas between; "" where it is not given. */
static const char *take_names(const SourceText *t, const char *name, char names[SOURCE_PATH])
{
    const char *value = source_option(t, name);
    size_t n = 0;
    for (; value && value[n] && n + 1 < SOURCE_PATH; n++) names[n] = value[n] == '/' ? ',' : value[n];
    names[n] = 0;
    return names;
}

/* What a table is asked for; `names` has what is left out. */
static burn_csv take_table(SourceText *t, const burn_asked *asked, burn_source *source, char names[SOURCE_PATH])
{
    burn_csv how = { .target = source_option(t, "target"), .ignore = take_names(t, "ignore", names),
                     .like = asked->like, .column_count = asked->column_count, .columns = asked->columns };
    how.drop_missing = source_flag(t, "drop");
    how.scale = source_flag(t, "scale");
    how.classify = source_flag(t, "classify");
    if (how.columns) how.like = NULL;
    for (int i = 0; i < t->count; i++)
        source_setting(source, *t->values[i] ? "%s=%s" : "%s", t->names[i], t->values[i]);
    return how;
}

int source_csv(SourceText *t, const burn_asked *asked, burn_source *source, burn_said *said)
{
    const char *separator = source_option(t, "separator");
    char names[SOURCE_PATH];
    burn_csv how = take_table(t, asked, source, names);
    if (separator && strcmp(separator, "tab") && strlen(separator) != 1) t->wrong = "separator";
    else if (separator) how.separator = strcmp(separator, "tab") ? *separator : '\t';
    how.no_header = source_flag(t, "no_header");
    return t->wrong ? wrong_option(t, said) : burn_data_csv(t->path, &how, &source->train, said);
}

int source_sqlite(SourceText *t, const burn_asked *asked, burn_source *source, burn_said *said)
{
    char names[SOURCE_PATH];
    const burn_csv how = take_table(t, asked, source, names);
    if (t->wrong) return wrong_option(t, said);
    return burn_data_sqlite(t->path, source_option(t, "table"), &how, &source->train, said);
}

/* ---- arrays */

/* The first field takes the model's shape where only axes of size 1 are others: [28, 28] for [1, 28, 28]. */
static int take_shape(int error, const burn_asked *asked, burn_dataset *data)
{
    size_t k = 0, n = 0;
    burn_field *f = error ? NULL : &data->fields[0];
    int64_t is[BURN_FIELD_RANK], wanted[BURN_FIELD_RANK];
    if (!f || !asked->rank || f->dtype != BURN_FLOAT) return error;
    for (int i = 0; i < f->rank; i++)
        if (f->shape[i] != 1) is[k++] = f->shape[i];
    for (int i = 0; i < asked->rank; i++)
        if (asked->shape[i] != 1) wanted[n++] = asked->shape[i];
    if (k != n || memcmp(is, wanted, k * sizeof *is)) return BURN_OK;
    f->rank = asked->rank;
    memcpy(f->shape, asked->shape, sizeof f->shape);
    return BURN_OK;
}

static int open_arrays(int (*open)(const char *, const char *, burn_dataset **, burn_said *), SourceText *t,
                       const burn_asked *asked, burn_source *source, burn_said *said)
{
    char names[SOURCE_PATH];
    if (source_option(t, "fields")) source_setting(source, "fields=%s", source_option(t, "fields"));
    const int error = open(t->path, take_names(t, "fields", names), &source->train, said);
    return take_shape(error, asked, source->train);
}

int source_npz(SourceText *t, const burn_asked *asked, burn_source *source, burn_said *said)
{
    return open_arrays(burn_data_npz, t, asked, source, said);
}

int source_safetensors(SourceText *t, const burn_asked *asked, burn_source *source, burn_said *said)
{
    return open_arrays(burn_data_record, t, asked, source, said);
}

/* ---- folders */

static void take_size(SourceText *t, const burn_asked *asked, burn_images *how)
{
    const char *size = source_option(t, "size");
    char *end = NULL;
    if (asked->rank == 3) {
        how->height = asked->shape[1];
        how->width = asked->shape[2];
    }
    if (!size) return;
    how->height = how->width = strtol(size, &end, 10);
    if (*end == 'x') how->width = strtol(end + 1, &end, 10);
    if (*end || how->height < 1 || how->width < 1) t->wrong = "size";
}

static void take_colours(SourceText *t, const char *name, float at[3])
{
    double x[3];
    int n = source_numbers(t, name, 3, x);
    for (int k = 0; k < 3 && n; k++) at[k] = (float)x[k < n ? k : n - 1];
}

static void set_colours(burn_source *source, const char *name, const float at[3])
{
    if ((double)(at[0] * at[0] + at[1] * at[1] + at[2] * at[2]) > 0)
        source_setting(source, "%s=%.9g/%.9g/%.9g", name, (double)at[0], (double)at[1], (double)at[2]);
}

int source_images(SourceText *t, const burn_asked *asked, burn_source *source, burn_said *said)
{
    burn_images how = { .like = asked->like };
    take_size(t, asked, &how);
    how.gray = source_flag(t, "gray") || (asked->rank == 3 && asked->shape[0] == 1);
    how.fit = source_flag(t, "crop") ? BURN_CROP : BURN_STRETCH;
    take_colours(t, "mean", how.mean);
    take_colours(t, "deviation", how.deviation);
    burn_images plain = how;
    how.flip = source_flag(t, "flip");
    how.least_area = source_number(t, "area", 0, 0);
    how.jitter = source_number(t, "jitter", 0, 0);
    if (t->wrong) return wrong_option(t, said);
    int error = burn_data_images(t->path, &how, &source->train, said);
    if (!error && (how.flip || how.least_area > 0 || how.jitter > 0))
        error = burn_data_images(t->path, &plain, &source->plain, said);
    if (error) return error;
    const int64_t *shape = source->train->fields[0].shape;
    source_setting(source, "size=%lldx%lld", (long long)shape[1], (long long)shape[2]);
    if (how.gray) source_setting(source, "gray");
    if (how.fit == BURN_CROP) source_setting(source, "crop");
    set_colours(source, "mean", how.mean);
    set_colours(source, "deviation", how.deviation);
    return BURN_OK;
}

/* Samples where the model takes [samples], a spectrum where it takes [mels, frames], with or without a channel. */
int source_audio(SourceText *t, const burn_asked *asked, burn_source *source, burn_said *said)
{
    const int64_t *shape = asked->shape + (asked->rank > 1 && asked->shape[0] == 1);
    int rank = asked->rank - (asked->rank > 1 && asked->shape[0] == 1);
    burn_sounds how = { .like = asked->like };
    how.rate = source_count(t, "rate", rank ? 16000 : 0);
    how.mels = source_count(t, "mels", rank == 2 ? shape[0] : 0);
    if (how.mels) {
        how.window = source_count(t, "window", how.rate / 40);
        how.hop = source_count(t, "hop", how.window / 2);
    }
    int64_t all = rank == 1 ? shape[0] : rank == 2 && shape[1] ? (shape[1] - 1) * how.hop + how.window : 0;
    double seconds = source_number(t, "seconds", 0, 0);
    how.samples = source_count(t, "samples", seconds > 0 ? (int64_t)(seconds * (double)how.rate) : all);
    if (t->wrong) return wrong_option(t, said);
    int error = burn_data_sounds(t->path, &how, &source->train, said);
    if (error) return error;
    const int64_t *is = source->train->fields[0].shape;
    if (how.rate) source_setting(source, "rate=%lld", (long long)how.rate);
    source_setting(source, "samples=%lld", (long long)(how.mels ? (is[1] - 1) * how.hop + how.window : is[0]));
    if (how.mels)
        source_setting(source, "mels=%lld,window=%lld,hop=%lld", (long long)how.mels, (long long)how.window,
                       (long long)how.hop);
    return BURN_OK;
}

/* ---- texts */

int source_of_text(SourceText *t, const burn_asked *asked, burn_source *source, burn_said *said)
{
    static const char *const names[] = { [BURN_BYTES] = "bytes", [BURN_CHARACTERS] = "chars", [BURN_WORDS] = "words" };
    enum { USUAL_LENGTH = 64 };
    const char *tokens = source_option(t, "tokens");
    burn_text how = { .tokens = BURN_CHARACTERS, .like = asked->like, .tokenizer = source_option(t, "tokenizer") };
    int known = !tokens;
    if (how.tokenizer) how.tokens = BURN_PAIRS;
    if (how.tokenizer && tokens) t->wrong = "tokens";
    for (int k = BURN_BYTES; tokens && k <= BURN_WORDS; k++)
        if (!strcmp(names[k], tokens)) {
            how.tokens = (burn_tokens)k;
            known = 1;
        }
    if (!known) t->wrong = "tokens";
    how.length = source_count(t, "length", asked->rank == 1 && asked->shape[0] ? asked->shape[0] : USUAL_LENGTH);
    how.step = source_count(t, "step", 0);
    if (t->wrong) return wrong_option(t, said);
    source->in_order = 1 + (how.step ? (how.length - 1) / how.step : 0);
    source_setting(source, "%s=%s,length=%lld", how.tokenizer ? "tokenizer" : "tokens",
                   how.tokenizer ? how.tokenizer : names[how.tokens], (long long)how.length);
    return burn_data_text(t->path, &how, &source->train, said);
}
