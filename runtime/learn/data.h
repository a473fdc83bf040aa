/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Data to learn from: datasets, what makes datasets of datasets, and a loader of batches.
 *
 *     burn_said said;
 *     burn_dataset *all, *few, *rest;
 *     int error = burn_data_idx("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz", &all, &said);
 *     if (!error) error = burn_data_split(all, 0.9, 1, &few, &rest, &said);
 *
 * A dataset has `count` items of the same fields; an item's field is a tensor of one type and shape. Item i is got
 * into buffers of the caller's, from any number of threads at once. What is drawn at random follows from `seed`, so
 * that an item is the same whoever gets it and whenever.
 *
 * Datasets are counted: one made of another keeps that one; burn_data_close gives up one's own hold. Functions
 * return 0 or a BURN_E... code of burn.h, and then say in `said` (may be NULL) what is wrong with which file and row.
 */
#ifndef BURN_DATA_H
#define BURN_DATA_H

#include "burn.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct burn_said { char text[480]; } burn_said;

enum { BURN_FIELD_RANK = 6, BURN_FIELDS = 16 };
typedef struct burn_field {
    const char *name;
    burn_dtype dtype;
    int rank;
    int64_t shape[BURN_FIELD_RANK];   /* of one item */
    size_t bytes;                     /* of one item */
    int class_count;                  /* of a field of class numbers: how many there are; else 0 */
    const char *const *classes;       /* their names, or NULL */
} burn_field;

typedef struct burn_dataset burn_dataset;
struct burn_dataset {
    int64_t count;
    int field_count;
    burn_field fields[BURN_FIELDS];
    /* Item i, 0 <= i < count: fields[f].bytes at to[f]. After an error the buffers hold nothing of use. */
    int (*get)(const burn_dataset *data, int64_t i, uint64_t seed, void *const *to, burn_said *said);
    void (*end)(burn_dataset *data);  /* frees what is behind `own`; may be NULL */
    const char *(*path)(const burn_dataset *data, int64_t i);   /* the file that item i is of; NULL: none of its own */
    void *own;
    int holds;
};

/* Item i, with its number checked. */
int burn_data_get(const burn_dataset *data, int64_t i, uint64_t seed, void *const *to, burn_said *said);
burn_dataset *burn_data_keep(burn_dataset *data);
void burn_data_close(burn_dataset *data);
/* The file that item i comes from, also through selections; NULL where there is none. */
const char *burn_data_path(const burn_dataset *data, int64_t i);
/* The field of that name, or -1. */
int burn_data_field(const burn_dataset *data, const char *name);
/* A field of `rank` dimensions; bytes follow. */
burn_field burn_field_of(const char *name, burn_dtype dtype, int rank, const int64_t *shape);
/* A dataset of the caller's own kind: `model` says everything but `holds`, which becomes 1. */
int burn_data_of(const burn_dataset *model, burn_dataset **data);

/* ---- sources */

/* Arrays of count items each, which stay the caller's and as they are until the dataset is closed. */
int burn_data_memory(int64_t count, int field_count, const burn_field *fields, const void *const *arrays,
                     burn_dataset **data, burn_said *said);
/* Numbers drawn by seed: floats of mean 0 and variance 1, integers below class_count (256 without). */
int burn_data_fake(int64_t count, int field_count, const burn_field *fields, uint64_t seed, burn_dataset **data,
                   burn_said *said);
/* MNIST's format, plain or gzip: "image" f32 [1, h, w] from 0 to 1, "label" of the classes that there are. labels:
 * NULL for images alone. */
int burn_data_idx(const char *images, const char *labels, burn_dataset **data, burn_said *said);
/* CIFAR's binary files, n of them: "image" f32 [3, 32, 32] from 0 to 1, "label" of 10 classes; of 100: "label" is the
 * fine one of 100, "coarse" one of 20. */
int burn_data_cifar(int classes, int n, const char *const *paths, burn_dataset **data, burn_said *said);

/* What a column of a table was found to be. */
typedef struct burn_column {
    const char *name;
    int is_target;
    double mean, scale;               /* of numbers: (x - mean) * scale */
    int word_count;                   /* 0: it is of numbers */
    const char *const *words;         /* in order */
} burn_column;
typedef struct burn_csv {
    char separator;                   /* 0: the one of , ; tab that the first line has most of */
    int no_header;                    /* columns are then named "0", "1" ... */
    const char *target;               /* name of the column to predict; NULL: the last */
    const char *ignore;               /* names of columns that are left out, separated by commas; or NULL */
    int drop_missing;                 /* 1: rows that lack a value are left out; 0: the column's mean stands there,
                                         and the class "" of its own */
    int scale;                        /* 1: columns of numbers are brought to mean 0 and variance 1 */
    int classify;                     /* 1: a target of numbers is one of classes */
    const burn_dataset *like;         /* columns, classes, means and scales of this dataset, of a file before */
    int column_count;                 /* or of these columns, in this order and by their names: the file may have */
    const burn_column *columns;       /* others, and need not have the target's, of which there is then no field */
} burn_csv;
/* A table: "features" f32 [k], columns of numbers as one each, of words as one for each word (1 where it is that), in
 * the file's order; "target" i64 of the classes, sorted by name, or f32. A column is of words where a cell is no
 * number; cells may be in double quotes; empty ones, "?", "NA" and "NaN" are missing. `how`: NULL for all zeros. */
int burn_data_csv(const char *path, const burn_csv *how, burn_dataset **data, burn_said *said);
/* The columns of such a table that are not left out, at most `room` of them; their number. They are the table's. */
int burn_csv_columns(const burn_dataset *table, int room, burn_column *columns);

/* The rows of an SQLite database: of a query (SELECT ...), or of the table or view of that name; NULL: the only one.
 * Without blobs a table as burn_data_csv makes it. With blobs a field for each column: integers i64, reals f32, texts
 * the numbers of classes; blobs u8 [bytes], or what the column's name says: "image:u8[1,28,28]". Elements become what
 * those of arrays do. */
int burn_data_sqlite(const char *path, const char *query, const burn_csv *how, burn_dataset **data, burn_said *said);
/* Arrays by name as fields, of NumPy's .npz or of a record (record.h; .safetensors is one). Their first axes count the
 * items. Floats become f32, integers i64, bytes in three or more axes f32 from 0 to 1. fields: "x,y" for these alone;
 * NULL: all of the file. */
int burn_data_npz(const char *path, const char *fields, burn_dataset **data, burn_said *said);
int burn_data_record(const char *path, const char *fields, burn_dataset **data, burn_said *said);

typedef enum burn_fit { BURN_STRETCH, BURN_CROP } burn_fit;   /* CROP: the largest part of that shape, its middle */
typedef struct burn_images {
    int64_t height, width;            /* what images become; 0: as the first one is */
    int gray;                         /* 1: one channel; 0: red, green, blue */
    burn_fit fit;
    float mean[3], deviation[3];      /* a pixel from 0 to 1 becomes (pixel - mean) / deviation; 0 is 1 */
    /* Drawn anew each time that an item is got: */
    int flip;                         /* 1: half of them mirrored, left to right */
    double least_area;                /* a part of at least this share of the image, 3:4 to 4:3; 0: all of it */
    double jitter;                    /* brightness, contrast and saturation times 1 - jitter to 1 + jitter */
    const burn_dataset *like;         /* the classes of this dataset, of a folder before */
} burn_images;
/* A folder of folders of images: "image" f32 [3, h, w], "label" of the folders' names in order. Without folders in
 * it: "image" alone. Files whose names begin with a dot are left out; formats are those of burn_image_decode. */
int burn_data_images(const char *folder, const burn_images *how, burn_dataset **data, burn_said *said);
typedef struct burn_sounds {
    int64_t rate, samples;            /* what sounds become: a second's samples, all samples; 0: as the first one */
    int64_t window, hop, mels;        /* mels > 0: log-mel spectra of windows of so many samples, every hop samples */
    const burn_dataset *like;         /* the classes of this dataset */
} burn_sounds;
/* A folder of folders of WAV files (PCM of 8 to 32 bits, floats), labelled as images are: channels are averaged,
 * other rates resampled, short ones padded with zeros behind, long ones cut. "sound" f32 [samples], from -1 to 1; or
 * "mel" f32 [mels, 1 + (samples - window) / hop], log(max(p, 1e-10)) of the powers p of a Hann window in triangles
 * that are even on the mel scale, 2595 log10(1 + f / 700), from 0 to rate / 2. */
int burn_data_sounds(const char *folder, const burn_sounds *how, burn_dataset **data, burn_said *said);

typedef enum burn_tokens { BURN_BYTES, BURN_CHARACTERS, BURN_WORDS, BURN_PAIRS } burn_tokens;
typedef struct burn_text {
    burn_tokens tokens;               /* CHARACTERS are code points; WORDS: letters and digits, else one by one; PAIRS:
                                         those of a tokenizer (tokenizer.h) */
    int64_t length;                   /* of an item, in tokens */
    int64_t step;                     /* between the starts of items; 0: length */
    const burn_dataset *like;         /* the tokens of this dataset; others become its token 0 */
    const char *tokenizer;            /* of PAIRS: the path of a tokenizer.json */
} burn_text;
/* A text as windows: "tokens" i64 [length] and "next" i64 [length], those one further. classes of both: the tokens,
 * sorted (bytes: 256, without names; words: 0 is "", of words not seen before). */
int burn_data_text(const char *path, const burn_text *how, burn_dataset **data, burn_said *said);

/* ---- datasets of datasets */

/* Items by their numbers in `of`, copied. The next four are such selections. */
int burn_data_select(burn_dataset *of, int64_t count, const int64_t *items, burn_dataset **data, burn_said *said);
int burn_data_shuffle(burn_dataset *of, uint64_t seed, burn_dataset **data, burn_said *said);
int burn_data_part(burn_dataset *of, int64_t from, int64_t count, burn_dataset **data, burn_said *said);
/* `count` draws, item i with a chance in proportion to weights[i] (NULL: all the same); without replacement each at
 * most once, and count at most of->count. */
int burn_data_sample(burn_dataset *of, int64_t count, const double *weights, int replace, uint64_t seed,
                     burn_dataset **data, burn_said *said);
/* Two parts of a shuffled order, the first of `share` of the items (rounded). */
int burn_data_split(burn_dataset *of, double share, uint64_t seed, burn_dataset **first, burn_dataset **second,
                    burn_said *said);
/* One after another; fields must be the same. */
int burn_data_join(int n, burn_dataset *const *of, burn_dataset **data, burn_said *said);
/* `size` items in a row, every `step` items: shapes get `size` in front. */
int burn_data_windows(burn_dataset *of, int64_t size, int64_t step, burn_dataset **data, burn_said *said);
/* A function of an item: from `from`, of's fields, to `to`, these fields. */
typedef int burn_map(void *context, uint64_t seed, const void *const *from, void *const *to, burn_said *said);
int burn_data_map(burn_dataset *of, int field_count, const burn_field *fields, burn_map *map, void *context,
                  burn_dataset **data, burn_said *said);

/* ---- batches */

typedef struct burn_loading {
    int64_t batch;
    int shuffle;                      /* 1: another order each epoch, by seed */
    uint64_t seed;
    int workers;                      /* threads that get items ahead; 0: burn_loader_next gets them itself */
    int ahead;                        /* batches that are got ahead at most; 0: 2 a worker */
    int drop_last;                    /* 1: no batch is smaller; 0: the last one is, of items (see burn_batch) */
    int skip_bad;                     /* 1: an item that cannot be had is left out and counted; 0: it is an error */
    int shard, shards;                /* this process' share: batches shard, shard + shards, ...; 0 of 0: all. Each
                                         share has as many batches: the last may be of no items */
} burn_loading;

/* Until the next call of burn_loader_next. */
typedef struct burn_batch {
    int64_t epoch, number, items;     /* from 0, of all shards; items: at most burn_loading.batch,
                                         the rest of the arrays is zeros */
    void *const *fields;              /* [batch, ...] each */
    const int64_t *numbers;           /* of the items in the dataset */
} burn_batch;

typedef struct burn_loader burn_loader;
/* Keeps the dataset. The same batches in the same order for any number of workers. */
int burn_loader_open(burn_dataset *data, const burn_loading *how, burn_loader **loader, burn_said *said);
/* Goes to a batch of an epoch, as where a run that stopped goes on. The next one is this, or with shards the one of
 * this shard among those from there on. */
int burn_loader_seek(burn_loader *loader, int64_t epoch, int64_t batch);
/* The next batch of the epoch: 1 and *batch, 0 at its end (the next call begins the next epoch), or an error. */
int burn_loader_next(burn_loader *loader, burn_batch *batch, burn_said *said);
int64_t burn_loader_batches(const burn_loader *loader);   /* of an epoch, of all shards */
int64_t burn_loader_skipped(burn_loader *loader);         /* bad items so far */
void burn_loader_close(burn_loader *loader);

#ifdef __cplusplus
}
#endif
#endif
