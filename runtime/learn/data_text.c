/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Texts. In: a file of UTF-8. Out: windows of its tokens, bytes, code points, words or those of a
 * tokenizer, and the same one token on.
 *
 * The text is cut into pieces once; the different pieces, sorted, are the vocabulary, and a piece's token is its place
 * there. Of words, token 0 is "", which stands for words that a text before had not. */
#include "data_own.h"
#include "tokenizer.h"

#include <stdlib.h>
#include <string.h>

typedef struct Piece { const char *at; size_t bytes; } Piece;
typedef struct Text {
    burn_dataset *like;                                    /* kept: its first field's classes are the tokens; or NULL */
    burn_text how;
    char *text, *names;
    int64_t count, *tokens;
    int class_count;
    const char **classes;
    burn_tokenizer *tokenizer;                             /* of pairs: has the classes */
} Text;

static void text_free(Text *t)
{
    if (!t) return;
    free(t->text);
    free(t->names);
    free(t->tokens);
    if (!t->like && !t->tokenizer) free(t->classes);
    burn_tokenizer_close(t->tokenizer);
    burn_data_close(t->like);
    free(t);
}

static void text_end(burn_dataset *data)
{
    text_free(data->own);
}

static int is_letter(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (signed char)c < 0;
}

static size_t piece_bytes(const char *at, size_t left, burn_tokens by)
{
    size_t n = 1;
    if (by == BURN_CHARACTERS)
        while (n < left && ((unsigned char)at[n] & 0xc0) == 0x80) n++;
    if (by == BURN_WORDS && is_letter(*at))
        while (n < left && is_letter(at[n])) n++;
    return n;
}

static int by_bytes(const void *a, const void *b)
{
    const Piece *x = a, *y = b;
    int order = memcmp(x->at, y->at, x->bytes < y->bytes ? x->bytes : y->bytes);
    return order ? order : (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

/* All pieces of the text; NULL without memory. */
static Piece *cut(const char *text, size_t bytes, burn_tokens by, int64_t *count)
{
    Piece *p = malloc((bytes + 1) * sizeof *p);
    *count = 0;
    for (size_t at = 0; p && at < bytes; at += p[*count - 1].bytes)
        p[(*count)++] = (Piece){ text + at, piece_bytes(text + at, bytes - at, by) };
    return p;
}

/* The vocabulary: the different pieces, each a string in `names`. */
static int name_tokens(Text *t, const Piece *pieces, size_t bytes)
{
    Piece *sorted = malloc((size_t)(t->count + 1) * sizeof *sorted);
    int has_other = t->how.tokens == BURN_WORDS;
    int64_t different = 0;
    if (!sorted) return 0;
    memcpy(sorted, pieces, (size_t)t->count * sizeof *sorted);
    qsort(sorted, (size_t)t->count, sizeof *sorted, by_bytes);
    for (int64_t i = 0; i < t->count; i++)
        if (!different || by_bytes(&sorted[different - 1], &sorted[i])) sorted[different++] = sorted[i];
    t->class_count = (int)different + has_other;
    t->names = malloc(bytes + (size_t)t->class_count);
    t->classes = malloc((size_t)t->class_count * sizeof *t->classes);
    if (t->names && t->classes) {
        char *to = t->names;
        if (has_other) {
            *to = 0;
            t->classes[0] = to++;
        }
        for (int64_t i = 0; i < different; i++) {
            t->classes[i + has_other] = memcpy(to, sorted[i].at, sorted[i].bytes);
            to += sorted[i].bytes;
            *to++ = 0;
        }
    }
    free(sorted);
    return t->names && t->classes;
}

/* The token of a piece: its place among the sorted classes, 0 where it is none. */
static int64_t token_of(int class_count, const char *const *classes, Piece p)
{
    int low = 0, high = class_count;
    while (low < high) {
        int at = (low + high) / 2;
        Piece here = { classes[at], strlen(classes[at]) };
        int order = by_bytes(&here, &p);
        if (!order) return at;
        if (order < 0) low = at + 1;
        else high = at;
    }
    return 0;
}

static int read_pairs(Text *t, size_t bytes, burn_said *said)
{
    if (!t->how.tokenizer) return data_said(said, BURN_EINVAL, "pairs: no tokenizer.json is given");
    int error = burn_tokenizer_open(t->how.tokenizer, &t->tokenizer, said);
    if (!error) error = burn_tokenizer_encode(t->tokenizer, t->text, bytes, &t->tokens, &t->count, said);
    if (!error) t->classes = (const char **)(uintptr_t)burn_tokenizer_names(t->tokenizer, &t->class_count);
    return error;
}

static int read_tokens(Text *t, const char *path, burn_said *said)
{
    size_t bytes;
    t->text = (char *)data_read(path, &bytes, said);
    if (!t->text) return BURN_EIO;
    if (t->how.tokens != BURN_BYTES && strlen(t->text) != bytes)
        return data_said(said, BURN_EFORMAT, "%s: is no text: byte %zu is 0", path, strlen(t->text));
    if (t->how.tokens == BURN_PAIRS) return read_pairs(t, bytes, said);
    Piece *pieces = cut(t->text, bytes, t->how.tokens, &t->count);
    t->tokens = pieces ? malloc((size_t)(t->count + 1) * sizeof *t->tokens) : NULL;
    int ok = t->tokens && (t->how.tokens == BURN_BYTES || t->like || name_tokens(t, pieces, bytes));
    if (ok && t->like) {
        t->class_count = t->like->fields[0].class_count;
        t->classes = (const char **)(uintptr_t)t->like->fields[0].classes;
    }
    for (int64_t i = 0; ok && i < t->count; i++)
        t->tokens[i] = t->how.tokens == BURN_BYTES ? (unsigned char)*pieces[i].at
                                                   : token_of(t->class_count, t->classes, pieces[i]);
    free(pieces);
    return ok ? BURN_OK : data_said(said, BURN_ENOMEM, "no memory");
}

static int text_get(const burn_dataset *data, int64_t i, uint64_t seed, void *const *to, burn_said *said)
{
    const Text *t = data->own;
    (void)seed;
    (void)said;
    for (int f = 0; f < 2; f++) memcpy(to[f], t->tokens + i * t->how.step + f, data->fields[f].bytes);
    return BURN_OK;
}

int burn_data_text(const char *path, const burn_text *how, burn_dataset **data, burn_said *said)
{
    if (!path || !how || how->length < 1 || how->step < 0) return BURN_EINVAL;
    const burn_dataset *like = how->like;
    int other = like && like->get == text_get && ((const Text *)like->own)->how.tokens != how->tokens;
    if (other || (like && how->tokens != BURN_BYTES && !data_classes(like, 0)))
        return data_said(said, BURN_EINVAL, "like: is no text of such tokens");
    Text *t = calloc(1, sizeof *t);
    if (!t) return data_said(said, BURN_ENOMEM, "no memory");
    t->how = *how;
    if (!t->how.step) t->how.step = how->length;
    if (like) t->like = burn_data_keep((burn_dataset *)(uintptr_t)like);
    int error = read_tokens(t, path, said);
    if (error) return text_free(t), error;
    burn_dataset model = { .field_count = 2 };
    for (int f = 0; f < 2; f++) {
        model.fields[f] = burn_field_of(f ? "next" : "tokens", BURN_INT64, 1, &how->length);
        model.fields[f].class_count = how->tokens == BURN_BYTES ? 256 : t->class_count;
        model.fields[f].classes = t->classes;
    }
    int64_t count = t->count > how->length ? (t->count - 1 - how->length) / t->how.step + 1 : 0;
    return data_make(&model, count, t, text_get, text_end, data, said);
}
