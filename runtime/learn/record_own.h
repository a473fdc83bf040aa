/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the formats of records (record_*.c) share: a format makes bytes of a list of tensors, and a list of bytes. */
#ifndef BURN_RECORD_OWN_H
#define BURN_RECORD_OWN_H

#include "data_own.h"
#include "record.h"

enum { RECORD_VERSION = 1, RECORD_RANK = 16, RECORD_TENSORS = 1 << 20 };
#define RECORD_MARK "burncc record"

/* A record under construction; burn_record is its beginning. */
typedef struct Record {
    burn_record seen;
    burn_recorded *tensors;                                /* seen.tensors */
    int room;
    uint64_t sum;                                          /* as the file has it */
    int has_sum;
    void **blocks;                                         /* what is freed with it */
    int block_count, block_room;
    char where[128];                                       /* the file, for messages */
} Record;

/* Bytes that grow; failed: memory ran out, and at is what there was. */
typedef struct RecordBytes { uint8_t *at; size_t n, room; int failed; } RecordBytes;
void record_append(RecordBytes *b, const void *data, size_t bytes);

/* Memory that lasts as long as the record; NULL without. */
void *record_keep(Record *r, void *block);                 /* a block of malloc's; frees it when that fails */
void *record_room(Record *r, size_t bytes);
/* Adds a tensor, with a copy of the name, which is not zero-terminated, and of the shape: checks that sizes are sizes,
 * and that `bytes` is what they take. data stays where it is. 0 or a BURN_E... code. */
int record_add(Record *r, const char *name, size_t name_bytes, burn_dtype dtype, int rank, const int64_t *shape,
               const void *data, size_t bytes, burn_said *said);
/* Is it a version that is read? */
int record_version(Record *r, int64_t version, burn_said *said);
/* Message about a tensor of the record; gives back BURN_EFORMAT. */
int record_bad(const Record *r, const char *name, burn_said *said, const char *what);   /* name NULL: about all */

/* F32 and its kind, of safetensors and of Burn; 0 and NULL for what has none. */
burn_dtype record_dtype(const char *name, size_t bytes);
const char *record_dtype_name(burn_dtype dtype);
size_t record_dtype_bytes(burn_dtype dtype);
int record_is_float(burn_dtype dtype);
/* n floats of one type as those of another, or only whether they can be (to NULL); 0: element *i is too large. */
int record_convert(const void *from, burn_dtype type, void *to, burn_dtype wanted, size_t n, size_t *i);
/* One float of any size. */
double record_number(const void *data, burn_dtype type, size_t i);
void record_set_number(void *data, burn_dtype type, size_t i, double x);

/* Of version, program, precision and tensors: their names, types, shapes and bytes. */
uint64_t record_sum(const Record *r);
/* Sixteen digits; 0: they are none. */
int record_sum_of(const char *digits, size_t n, uint64_t *sum);

typedef struct RecordFormat {
    const char *name, *ending;                             /* ending NULL: only read */
    burn_record_format format;
    const char *needs;                                     /* the library that this build lacks; NULL: none */
    int (*claims)(const uint8_t *data, size_t bytes);
    /* Tensors of r point into data, or into memory of r. */
    int (*decode)(const uint8_t *data, size_t bytes, Record *r, burn_said *said);
    void (*encode)(const Record *r, RecordBytes *to);
} RecordFormat;
extern const RecordFormat record_binary, record_messagepack, record_json, record_safetensors, record_named_mpk,
    record_burnpack;

/* gzip; 0 or a BURN_E... code. unpack: *to is malloc's. */
int record_is_packed(const uint8_t *data, size_t bytes);
int record_unpack(const uint8_t *data, size_t bytes, uint8_t **to, size_t *n, burn_said *said);
int record_pack(const uint8_t *data, size_t bytes, RecordBytes *to, burn_said *said);

/* A file as it is; NULL with a message. */
uint8_t *record_file(const char *path, size_t *bytes, int *error, burn_said *said);
/* Replaces a file as a whole. */
int record_replace(const char *path, const void *data, size_t bytes, burn_said *said);

#endif
