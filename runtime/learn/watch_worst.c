/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What a model is most wrong about. In: the batches of a validation with what was predicted. Out: the items with the
 * greatest loss, with copies of their inputs, and those as pictures, text or numbers.
 *
 * An item's loss is -log of the probability of its class, the mean over its places (tokens, pixels), or the mean square
 * of the difference from its values: scores that are positive and add up to 1 are probabilities, others logits. */
#include "watch_worst.h"
#include "watch_own.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#ifdef BURN_WATCH_PNG
#include <png.h>
#endif

enum { SHOWN_NUMBERS = 8, SHOWN_TOKENS = 160, SIDE = 160 };    /* of items; pixels of a picture's longer side */

static int is_image(const burn_field *f)
{
    if (f->dtype != BURN_FLOAT && f->dtype != BURN_UINT8) return 0;
    return (f->rank == 3 && (f->shape[0] == 1 || f->shape[0] == 3)) ||
           (f->rank == 2 && f->shape[0] >= 8 && f->shape[1] >= 8);
}

static int is_text(const burn_field *f)
{
    return f->dtype == BURN_INT64 && f->class_count > 0 && f->rank == 1;
}

void worst_open(Worst *w, const burn_dataset *data)
{
    *w = (Worst){ .input = -1, .label = -1 };
    if (!data) return;
    w->data = burn_data_keep((burn_dataset *)data);            /* a hold more is all that changes */
    for (int f = data->field_count; f-- > 0;) {
        const burn_field *field = &data->fields[f];
        int before = w->input < 0 ? -1 : is_image(&data->fields[w->input]) + is_text(&data->fields[w->input]);
        if (is_image(field) + is_text(field) >= before && (field->rank > 0 || data->field_count == 1)) w->input = f;
    }
}

void worst_forget(Worst *w)
{
    for (int i = 0; i < w->count; i++) free(w->items[i].input);
    w->count = 0;
}

void worst_close(Worst *w)
{
    worst_forget(w);
    if (w->data) burn_data_close(w->data);
    w->data = NULL;
}

/* ---- losses */

/* Of `classes` scores, `stride` apart: the loss of the wanted one; the class that is predicted and its probability. */
static double place_loss(const float *x, int64_t stride, int64_t classes, int64_t wanted, int64_t *top, double *sure)
{
    double sum = 0, exps = 0;
    int is_probability = 1;
    *top = 0;
    for (int64_t c = 0; c < classes; c++) {
        is_probability &= x[c * stride] >= 0;
        sum += (double)x[c * stride];
        if (x[c * stride] > x[*top * stride]) *top = c;
    }
    double most = (double)x[*top * stride];
    for (int64_t c = 0; c < classes; c++) exps += exp((double)x[c * stride] - most);
    is_probability &= fabs(sum - 1) < 1e-3;
    *sure = is_probability ? most : 1 / exps;
    double own = (double)x[wanted * stride];
    return is_probability ? -log(own > 1e-30 ? own : 1e-30) : most + log(exps) - own;
}

typedef struct Places { int64_t classes, inner, of_item; } Places;   /* [items, ..., classes, inner] */

static int places_of(const burn_observation *o, Places *p)
{
    if (o->rank < 2 || !o->predicted || !o->shape) return 0;
    int axis = o->class_axis ? o->class_axis : o->rank - 1;
    *p = (Places){ o->shape[axis], 1, 1 };
    for (int i = 1; i < o->rank; i++) {
        if (i != axis) p->of_item *= o->shape[i];
        if (i > axis) p->inner *= o->shape[i];
    }
    return p->classes > 0 && p->of_item > 0;
}

/* Item i of an observation of classes. */
static WorstItem class_item(const burn_observation *o, const Places *p, int64_t i)
{
    WorstItem item = { .wanted = -1, .predicted = -1, .sure = NAN };
    double sum = 0, worst = -INFINITY;
    int64_t places = 0;
    for (int64_t k = i * p->of_item; k < (i + 1) * p->of_item; k++) {
        int64_t wanted = o->classes[k], top;
        double sure;
        if (wanted < 0 || wanted >= p->classes) continue;      /* padding */
        const float *at = o->predicted + k / p->inner * p->classes * p->inner + k % p->inner;
        double loss = place_loss(at, p->inner, p->classes, wanted, &top, &sure);
        sum += loss;
        places++;
        if (loss <= worst) continue;
        worst = loss;
        item.wanted = wanted;
        item.predicted = top;
        item.sure = sure;
    }
    item.loss = places ? sum / (double)places : NAN;
    return item;
}

static WorstItem value_item(const burn_observation *o, int64_t i)
{
    int64_t size = 1;
    double sum = 0;
    for (int d = 1; d < o->rank; d++) size *= o->shape[d];
    const float *predicted = o->predicted + i * size, *wanted = o->values + i * size;
    for (int64_t k = 0; k < size; k++) {
        double d = (double)predicted[k] - (double)wanted[k];
        sum += d * d;
    }
    return (WorstItem){ .loss = sum / (double)size, .sure = NAN, .wanted = -1, .predicted = -1,
                        .wanted_value = *wanted, .predicted_value = *predicted };
}

/* Puts the item where it belongs, if it does; its input is copied then. */
static void keep(Worst *w, WorstItem item, const void *input, size_t bytes)
{
    int at = w->count;
    while (at > 0 && w->items[at - 1].loss < item.loss) at--;
    if (isnan(item.loss) || at == WORST_ITEMS) return;
    item.input = input ? malloc(bytes) : NULL;
    if (item.input) memcpy(item.input, input, bytes);
    if (w->count == WORST_ITEMS) free(w->items[--w->count].input);
    memmove(&w->items[at + 1], &w->items[at], (size_t)(w->count - at) * sizeof *w->items);
    w->items[at] = item;
    w->count++;
}

/* The field whose classes are predicted: the last of that many; of fewer, where the model has room for more. */
static int label_of(const burn_dataset *data, int64_t classes)
{
    int label = -1;
    for (int f = 0; f < data->field_count; f++) {
        const burn_field *field = &data->fields[f];
        int before = label < 0 ? 0 : data->fields[label].class_count;
        if (field->classes && field->class_count >= before && field->class_count <= classes) label = f;
    }
    return label;
}

void worst_see(Worst *w, const burn_seen *seen)
{
    const burn_observation *o = seen->observation;
    Places p;
    if (!w->data || !o || !places_of(o, &p) || (!o->classes && !o->values)) return;
    if (o->classes) w->label = label_of(w->data, p.classes);
    const burn_field *field = w->input < 0 ? NULL : &w->data->fields[w->input];
    for (int64_t i = 0; i < o->items; i++) {
        WorstItem item = o->classes ? class_item(o, &p, i) : value_item(o, i);
        item.item = seen->batch->numbers ? seen->batch->numbers[i] : seen->first_item + i;
        const char *input = field ? (const char *)seen->batch->fields[w->input] + (size_t)i * field->bytes : NULL;
        keep(w, item, input, field ? field->bytes : 0);
    }
}

const char *worst_class(const Worst *w, int64_t number)
{
    int is_known = w->label >= 0 && number >= 0 && number < w->data->fields[w->label].class_count;
    return is_known ? w->data->fields[w->label].classes[number] : NULL;
}

/* ---- what is shown of an item */
#ifdef BURN_WATCH_PNG
static char *base64(const uint8_t *from, size_t bytes)
{
    static const char DIGITS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    static const char BEFORE[] = "data:image/png;base64,";
    char *text = malloc(sizeof BEFORE + (bytes + 2) / 3 * 4), *to = text;
    if (!text) return NULL;
    memcpy(to, BEFORE, sizeof BEFORE);
    to += sizeof BEFORE - 1;
    for (size_t i = 0; i < bytes; i += 3, to += 4) {
        uint32_t three = (uint32_t)from[i] << 16;
        if (i + 1 < bytes) three |= (uint32_t)from[i + 1] << 8;
        if (i + 2 < bytes) three |= from[i + 2];
        for (int d = 0; d < 4; d++) to[d] = DIGITS[three >> (18 - 6 * d) & 63];
        if (i + 1 >= bytes) to[2] = '=';
        if (i + 2 >= bytes) to[3] = '=';
    }
    *to = 0;
    return text;
}

static char *png(const uint8_t *pixels, int64_t height, int64_t width, int channels)
{
    png_image image = { .version = PNG_IMAGE_VERSION, .width = (png_uint_32)width, .height = (png_uint_32)height,
                        .format = channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY };
    png_alloc_size_t bytes = 0;
    if (!png_image_write_to_memory(&image, NULL, &bytes, 0, pixels, 0, NULL)) return NULL;
    uint8_t *file = malloc(bytes);
    char *text = NULL;
    if (file && png_image_write_to_memory(&image, file, &bytes, 0, pixels, 0, NULL)) text = base64(file, bytes);
    free(file);
    return text;
}

static float sample(const burn_field *f, const void *from, int64_t at)
{
    return f->dtype == BURN_UINT8 ? (float)((const uint8_t *)from)[at] : ((const float *)from)[at];
}

char *worst_image(const Worst *w, const WorstItem *item)
{
    if (!item->input || !is_image(&w->data->fields[w->input])) return NULL;
    const burn_field *f = &w->data->fields[w->input];
    int channels = f->rank == 3 ? (int)f->shape[0] : 1;
    int64_t high = f->shape[f->rank - 2], wide = f->shape[f->rank - 1], all = channels * high * wide;
    float least = INFINITY, most = -INFINITY;
    for (int64_t i = 0; i < all; i++) {
        float v = sample(f, item->input, i);
        if (v < least) least = v;
        if (v > most) most = v;
    }
    /* pixels as they are, from 0 to 1; normalised ones and spectra over all that there is */
    if (f->dtype == BURN_UINT8 || (f->rank == 3 && least >= 0 && most <= 1)) {
        least = 0;
        most = f->dtype == BURN_UINT8 ? 255 : 1;
    }
    int64_t step = 1 + ((high > wide ? high : wide) - 1) / SIDE, rows = (high + step - 1) / step;
    int64_t columns = (wide + step - 1) / step;
    uint8_t *pixels = malloc((size_t)(rows * columns * channels)), *to = pixels;
    if (!pixels) return NULL;
    for (int64_t y = 0; y < high; y += step)
        for (int64_t x = 0; x < wide; x += step)
            for (int c = 0; c < channels; c++) {
                int64_t row = f->rank == 2 ? high - 1 - y : y;         /* low frequencies below */
                float v = (sample(f, item->input, (c * high + row) * wide + x) - least) / (most - least);
                *to++ = v > 0 ? (uint8_t)lrintf(255 * (v < 1 ? v : 1)) : 0;
            }
    char *text = png(pixels, rows, columns, channels);
    free(pixels);
    return text;
}
#else
char *worst_image(const Worst *w, const WorstItem *item)
{
    (void)w;
    (void)item;
    return NULL;
}
#endif

/* Tokens by their names: words with blanks between them, bytes and characters without. */
static char *tokens_text(const burn_field *f, const int64_t *tokens)
{
    int64_t n = f->shape[0] < SHOWN_TOKENS ? f->shape[0] : SHOWN_TOKENS;
    int are_words = 0;
    for (int i = 0; f->classes && i < f->class_count; i++) are_words |= strlen(f->classes[i]) > 4;
    char *text = watch_copy("");
    for (int64_t i = 0; text && i < n; i++) {
        char byte[2] = { (char)tokens[i], 0 };
        int is_known = f->classes && tokens[i] >= 0 && tokens[i] < f->class_count;
        char *more = watch_format("%s%s%s", text, is_known ? f->classes[tokens[i]] : byte, are_words ? " " : "");
        free(text);
        text = more;
    }
    return text;
}

char *worst_text(const Worst *w, const WorstItem *item)
{
    const burn_field *f = w->input < 0 ? NULL : &w->data->fields[w->input];
    if (!f || !item->input) return NULL;
    if (is_text(f)) return tokens_text(f, item->input);
    if (f->dtype != BURN_FLOAT) return NULL;
    int64_t n = (int64_t)(f->bytes / sizeof(float));
    const float *values = item->input;
    char *text = watch_copy("");
    for (int64_t i = 0; text && i < n && i < SHOWN_NUMBERS; i++) {
        char *more = watch_format("%s%s%.4g", text, i ? ", " : "", (double)values[i]);
        free(text);
        text = more;
    }
    if (!text || n <= SHOWN_NUMBERS) return text;
    char *more = watch_format("%s ... (%lld)", text, (long long)n);
    free(text);
    return more;
}
