/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Data by a word: KIND:PATH,OPTION=VALUE,OPTION ..., or a path that says itself what lies there.
 *
 *     burn_source from;
 *     int error = burn_source_open("images:photos,size=64x64,flip", NULL, &from, &said);
 *     if (!error) error = burn_source_split(&from, 0.1, 1, &said);     // from.train and from.valid
 *
 * A kind is a row of source.c. What a source leaves open, sizes above all, is taken from the model's input. The path
 * ends at the first comma; where an option's value is a list it has '/' between. Functions return 0 or a BURN_E... code
 * and then say in `said` (may be NULL) what is wrong. */
#ifndef BURN_SOURCE_H
#define BURN_SOURCE_H

#include "data.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What is known before the data is looked at; NULL and all zeros: nothing. */
typedef struct burn_asked {
    int rank;                         /* of an item of the model's first input */
    int64_t shape[BURN_FIELD_RANK];   /* its sizes; 0: any */
    const burn_dataset *like;         /* data with the classes, or tokens, that this has */
    int column_count;                 /* columns of a table before: see burn_csv */
    const burn_column *columns;
} burn_asked;

typedef struct burn_source {
    const char *kind;
    burn_dataset *train;
    burn_dataset *plain;              /* the same items without what is drawn anew each time; NULL: train is so */
    burn_dataset *valid;              /* what the source keeps for validation; NULL: nothing */
    int64_t in_order;                 /* 0: items stand alone; n: they continue one another, and share what they are of
                                         with the n - 1 next ones, so that a part split off is the end */
    char settings[320];               /* options that make the same of other data, as they turned out */
} burn_source;

/* The caller closes *source. */
int burn_source_open(const char *text, const burn_asked *asked, burn_source *source, burn_said *said);
/* Where there is no validation data a share of the items becomes it, drawn by seed; else nothing is done. */
int burn_source_split(burn_source *source, double share, uint64_t seed, burn_said *said);
void burn_source_close(burn_source *source);

/* A kind for help: "images", "FOLDER", what lies there, its options with spaces between ("size=HxW flip"). */
typedef struct burn_source_help { const char *name, *path, *what, *options; } burn_source_help;
/* Row i of the kinds; 0: there are fewer. */
int burn_source_kind(int i, burn_source_help *help);

#ifdef __cplusplus
}
#endif
#endif
