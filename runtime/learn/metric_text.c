/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Metrics of texts. In: predicted_texts and texts, UTF-8; words are what white space separates. Out: errors of
 * characters (code points) and words, edits over the length of what was wanted (Levenshtein 1966); BLEU of the corpus
 * with one reference and no smoothing (Papineni et al. 2002); ROUGE-L, the mean F-measure of the longest common
 * subsequence of words (Lin 2004). */
#include "metric_family.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A text in pieces: words, or code points. */
typedef struct Piece { const char *at; size_t bytes; } Piece;
typedef struct Pieces { Piece *of; int64_t count; } Pieces;

static int same(Piece a, Piece b)
{
    return a.bytes == b.bytes && !memcmp(a.at, b.at, a.bytes);
}

/* The piece at `text`, which is none at its end: a word behind white space, or a code point. */
static Piece next_piece(const char *text, int is_word)
{
    static const char white[] = " \t\n\v\f\r";
    if (is_word) text += strspn(text, white);
    Piece p = { text, is_word ? strcspn(text, white) : *text != 0 };
    while (!is_word && p.bytes && ((unsigned char)text[p.bytes] & 0xc0) == 0x80) p.bytes++;
    return p;
}

/* Cuts a text; false without memory. The caller frees what it is cut to. */
static int cut(const char *text, int is_word, Pieces *p)
{
    *p = (Pieces){ malloc((strlen(text) + 1) * sizeof *p->of), 0 };
    if (!p->of) return 0;
    for (Piece one = next_piece(text, is_word); one.bytes; one = next_piece(one.at + one.bytes, is_word))
        p->of[p->count++] = one;
    return 1;
}

/* What a family does with an item's two texts: BURN_OK or BURN_ENOMEM. */
typedef int Compare(void *state, const Pieces *said, const Pieces *wanted);

static int each_item(void *state, const burn_observation *seen, int is_word, Compare *compare)
{
    if (!seen->predicted_texts || !seen->texts) return BURN_EINVAL;
    for (int64_t i = 0; i < seen->items; i++)
        if (!seen->predicted_texts[i] || !seen->texts[i]) return BURN_EINVAL;
    int error = BURN_OK;
    for (int64_t i = 0; i < seen->items && !error; i++) {
        Pieces said = { NULL, 0 }, wanted = { NULL, 0 };
        int cuts = cut(seen->predicted_texts[i], is_word, &said) && cut(seen->texts[i], is_word, &wanted);
        error = cuts ? compare(state, &said, &wanted) : BURN_ENOMEM;
        free(said.of);
        free(wanted.of);
    }
    return error;
}

/* ---- cer, wer */
static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int edits(void *state, const Pieces *said, const Pieces *wanted)
{
    Mean *m = state;
    int64_t *row = malloc((size_t)(wanted->count + 1) * sizeof *row);
    if (!row) return BURN_ENOMEM;
    for (int64_t j = 0; j <= wanted->count; j++) row[j] = j;
    for (int64_t i = 1; i <= said->count; i++) {
        int64_t diagonal = row[0]++;
        for (int64_t j = 1; j <= wanted->count; j++) {
            int64_t change = diagonal + !same(said->of[i - 1], wanted->of[j - 1]);
            diagonal = row[j];
            row[j] = least(change, least(row[j], row[j - 1]) + 1);
        }
    }
    m->sum += (double)row[wanted->count];
    m->weight += (double)wanted->count;
    free(row);
    return BURN_OK;
}

int metric_cer_add(void *state, const burn_observation *seen)
{
    return each_item(state, seen, 0, edits);
}

int metric_wer_add(void *state, const burn_observation *seen)
{
    return each_item(state, seen, 1, edits);
}

/* ---- rouge: 2 LCS / (words said + words wanted) */
static int common(void *state, const Pieces *said, const Pieces *wanted)
{
    Mean *m = state;
    int64_t *row = calloc((size_t)(wanted->count + 1), sizeof *row);
    if (!row) return BURN_ENOMEM;
    for (int64_t i = 0; i < said->count; i++)
        for (int64_t j = 1, diagonal = 0; j <= wanted->count; j++) {
            int64_t above = row[j];
            if (same(said->of[i], wanted->of[j - 1])) row[j] = diagonal + 1;
            else if (row[j - 1] > above) row[j] = row[j - 1];
            diagonal = above;
        }
    double words = (double)(said->count + wanted->count);
    m->sum += words > 0 ? 2 * (double)row[wanted->count] / words : 1;
    m->weight += 1;
    free(row);
    return BURN_OK;
}

int metric_rouge_add(void *state, const burn_observation *seen)
{
    return each_item(state, seen, 1, common);
}

/* ---- bleu */
enum { MAX_ORDER = 8 };
typedef struct Bleu {
    int order;
    double said, wanted;                                      /* words */
    double hits[MAX_ORDER], grams[MAX_ORDER];                 /* n-grams said: those wanted too, all; by n - 1 */
} Bleu;
typedef struct Gram { const Piece *at; int n; } Gram;

void *metric_bleu_begin(const double *parameters)
{
    Bleu *b = calloc(1, sizeof *b);
    if (b) b->order = parameters[0] >= 1 && parameters[0] <= MAX_ORDER ? (int)parameters[0] : 4;
    return b;
}

static int compare_grams(const void *a, const void *b)
{
    const Gram *x = a, *y = b;
    for (int i = 0; i < x->n; i++) {
        size_t shorter = x->at[i].bytes < y->at[i].bytes ? x->at[i].bytes : y->at[i].bytes;
        int order = memcmp(x->at[i].at, y->at[i].at, shorter);
        if (order) return order;
        if (x->at[i].bytes != y->at[i].bytes) return x->at[i].bytes < y->at[i].bytes ? -1 : 1;
    }
    return 0;
}

static int64_t sorted_grams(const Pieces *p, int n, Gram *to)
{
    int64_t count = p->count >= n ? p->count - n + 1 : 0;
    for (int64_t i = 0; i < count; i++) to[i] = (Gram){ p->of + i, n };
    qsort(to, (size_t)count, sizeof *to, compare_grams);
    return count;
}

static int count_grams(void *state, const Pieces *said, const Pieces *wanted)
{
    Bleu *b = state;
    Gram *x = malloc((size_t)(said->count + wanted->count + 1) * sizeof *x), *y = x + said->count;
    if (!x) return BURN_ENOMEM;
    b->said += (double)said->count;
    b->wanted += (double)wanted->count;
    for (int n = 1; n <= b->order; n++) {
        int64_t nx = sorted_grams(said, n, x), ny = sorted_grams(wanted, n, y), i = 0, j = 0;
        b->grams[n - 1] += (double)nx;
        while (i < nx && j < ny) {
            int order = compare_grams(&x[i], &y[j]);
            b->hits[n - 1] += !order;
            i += order <= 0;
            j += order >= 0;
        }
    }
    free(x);
    return BURN_OK;
}

int metric_bleu_add(void *state, const burn_observation *seen)
{
    return each_item(state, seen, 1, count_grams);
}

/* The geometric mean of the precisions, less where too little was said. */
double metric_bleu_value(void *state)
{
    Bleu *b = state;
    double logs = 0;
    if (!(b->wanted > 0)) return NAN;
    for (int n = 0; n < b->order; n++) {
        if (!(b->hits[n] > 0)) return 0;
        logs += log(b->hits[n] / b->grams[n]) / b->order;
    }
    return exp(logs + fmin(0, 1 - b->wanted / b->said));
}
