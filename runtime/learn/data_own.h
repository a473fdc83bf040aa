/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the sources and transforms of datasets (data_*.c) share. */
#ifndef BURN_DATA_OWN_H
#define BURN_DATA_OWN_H

#include "data.h"

/* Writes the message; gives back `error`. */
int data_said(burn_said *said, int error, const char *format, ...);
/* A whole file, of gzip unpacked where zlib is there, with a zero byte behind it; NULL with a message. The caller
 * frees it. */
uint8_t *data_read(const char *path, size_t *bytes, burn_said *said);
/* Makes a dataset of `own`, with the fields of `like` (or none); frees `own` by `end` when it cannot. */
int data_make(const burn_dataset *like, int64_t count, void *own,
              int (*get)(const burn_dataset *, int64_t, uint64_t, void *const *, burn_said *),
              void (*end)(burn_dataset *), burn_dataset **data, burn_said *said);

/* A table of the text of a CSV file, which it frees; path: for messages. */
int data_table(const char *path, char *text, size_t bytes, const burn_csv *how, burn_dataset **data, burn_said *said);

/* Arrays that become a dataset: begins with *arrays NULL; done makes the dataset, or frees it all after an error. */
typedef struct DataArrays DataArrays;
typedef struct DataArray {
    const char *name;
    burn_dtype dtype;
    int rank;
    const int64_t *shape;                                  /* the first axis counts the items */
    const void *data;                                      /* copied */
    size_t bytes;
    /* Names of classes, in a block that the first begins; taken over where no error is given. NULL: none. */
    char **words;
    int word_count;
} DataArray;
int data_arrays_add(DataArrays **arrays, const char *path, const DataArray *one, burn_said *said);
int data_arrays_done(DataArrays *arrays, const char *path, int error, burn_dataset **data, burn_said *said);

/* The files of a folder of classes, or one file. */
typedef struct DataTree {
    burn_dataset *like;                                    /* kept: its field "label" has the classes; or NULL */
    int64_t count, room;
    char **paths;
    int64_t *labels;
    int class_count;
    char **classes;
} DataTree;
/* like: may be NULL. NULL with *error and a message. */
DataTree *data_tree_open(const char *path, const burn_dataset *like, int *error, burn_said *said);
void data_tree_close(DataTree *t);
/* Adds the field "label" where the folder has classes. */
void data_tree_fields(const DataTree *t, burn_dataset *model);
/* The field `f` of classes with names that data before had; NULL: it has none. */
const burn_field *data_classes(const burn_dataset *like, int f);

/* Random numbers from a state that counts up: SplitMix64 (Steele, Lea, Flood 2014). */
uint64_t data_random(uint64_t *state);
/* Below n, without bias worth telling (n / 2^64). */
int64_t data_below(uint64_t *state, int64_t n);
double data_uniform(uint64_t *state);                  /* in [0, 1) */
/* The numbers from 0 to n - 1 in an order by seed; NULL without memory. */
int64_t *data_order(int64_t n, uint64_t seed);

#endif
