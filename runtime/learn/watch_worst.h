/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The items of a validation that a model is most wrong about (watch_worst.c). */
#ifndef BURN_WATCH_WORST_H
#define BURN_WATCH_WORST_H

#include "watch.h"

enum { WORST_ITEMS = 12 };

typedef struct WorstItem {
    double loss;                  /* its own */
    int64_t item;                 /* of the dataset */
    double sure;                  /* the probability of what was predicted; NaN where there are no classes */
    int64_t wanted, predicted;    /* classes of its worst place; -1 where values are wanted */
    float wanted_value, predicted_value;     /* the first ones */
    void *input;                  /* a copy of its field */
} WorstItem;

typedef struct Worst {
    burn_dataset *data;           /* kept; NULL: nothing is looked at */
    int input, label;             /* fields: what items are shown by, and whose classes are predicted; or -1 */
    int count;
    WorstItem items[WORST_ITEMS]; /* the greatest loss first */
} Worst;

void worst_open(Worst *w, const burn_dataset *data);
void worst_forget(Worst *w);      /* before another validation */
void worst_see(Worst *w, const burn_seen *seen);
void worst_close(Worst *w);
/* Names of what was wanted and predicted, or NULL. */
const char *worst_class(const Worst *w, int64_t number);
/* An item's input as "data:image/png;base64,...", where it is an image (three dimensions, of 1 or 3 channels) or a
 * spectrum (two); as text or numbers. The caller frees it; NULL where it is no such thing. */
char *worst_image(const Worst *w, const WorstItem *item);
char *worst_text(const Worst *w, const WorstItem *item);

#endif
