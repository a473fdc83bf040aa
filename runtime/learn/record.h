/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Records: what was learnt, kept. Parameters, an optimizer's state, how many steps are done (all that a schedule is a
 * function of) and whatever else the caller adds, as named tensors in a file or a buffer.
 *
 *     burn_held held = { .training = &lenet_training, .params = &params, .state = &state, .step = &step };
 *     int error = burn_record_save("lenet.mpk.gz", NULL, &held, &said);
 *     if (!error) error = burn_record_load("lenet.mpk.gz", &held, &said);
 *
 * Formats: MessagePack, a plain binary, JSON and safetensors, each as it is or in gzip; which one a file has is told by
 * its content. All keep the same: a version, the program's name, the precision, a checksum of it all, and the tensors.
 * A file is written beside, sent to the disk and renamed, so that a crash leaves the old one or the new one.
 *
 * Loading looks at everything before it changes anything: version, checksum, that each tensor is there once, of the
 * shape that is wanted and of a type that can become it, and that none is there that nobody wants. Also read are the
 * files of generated code (safetensors), and two formats of the framework Burn, NamedMpk and burnpack.
 *
 * Functions return 0 or a BURN_E... code, and then say in `said` (may be NULL) what is wrong with which file and
 * tensor. MessagePack, JSON, safetensors, gzip and burnpack want libraries that the build may lack, and say so. */
#ifndef BURN_RECORD_H
#define BURN_RECORD_H

#include "data.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum burn_record_format {
    BURN_RECORD_MESSAGEPACK = 1, BURN_RECORD_BINARY, BURN_RECORD_JSON, BURN_RECORD_SAFETENSORS
} burn_record_format;

typedef struct burn_recording {
    burn_record_format format;
    int gzip;                         /* 1: packed */
    burn_dtype precision;             /* what floats become: BURN_DOUBLE, FLOAT, FLOAT16, BFLOAT16; 0: as they are */
} burn_recording;

/* What a record is of. Saving reads it, loading writes it. Names are those that the training code gives: a
 * parameter's, "optimizer." and the state's, "optimizer.step". */
typedef struct burn_held {
    const burn_training *training;    /* may be NULL: then only `more` */
    void *params, *state;             /* structs of `training`; NULL: without them */
    int64_t *step;                    /* how many are done; NULL: without it */
    int more_count;                   /* other tensors, under names that end in those of no parameter */
    const burn_tensor_info *more;
    void *const *more_data;
    int passes_over;                  /* 1: loading passes over tensors of the record that are not here */
} burn_held;

/* A record that was read: its tensors as the file has them. */
typedef struct burn_recorded {
    burn_tensor_info tensor;          /* shape: the largest and only one */
    const void *data;                 /* tensor.bytes */
} burn_recorded;
typedef struct burn_record {
    const char *format;               /* for people: "MessagePack", "burnpack" */
    int version;                      /* of the format */
    const char *program;              /* the training's name; "" where the format has none */
    burn_dtype precision;
    int of_burn;                      /* 1: written by Burn, with its names and layouts */
    int count;
    const burn_recorded *tensors;
} burn_record;

/* The recording that a path's ending says: .mpk .bin .json .safetensors, each also with .gz; precision 0. BURN_EINVAL
 * for others. */
int burn_recording_of(const char *path, burn_recording *how, burn_said *said);

/* how: NULL for that of the path's ending. BURN_ERANGE: a number is too large for the precision. */
int burn_record_save(const char *path, const burn_recording *how, const burn_held *held, burn_said *said);
int burn_record_load(const char *path, const burn_held *held, burn_said *said);

/* The same in memory. The caller frees *data. */
int burn_record_write(const burn_recording *how, const burn_held *held, void **data, size_t *bytes, burn_said *said);
int burn_record_read(const void *data, size_t bytes, burn_record **record, burn_said *said);

/* In two steps, for whoever looks first. give: as load, from a record that is there. */
int burn_record_open(const char *path, burn_record **record, burn_said *said);
int burn_record_give(const burn_record *record, const burn_held *held, burn_said *said);
void burn_record_close(burn_record *record);
/* Do these bytes begin as a record? The name of its format, or NULL. */
const char *burn_record_claims(const void *data, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
