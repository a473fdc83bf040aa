/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Byte pairs. In: tokenizer.json and a text. Out: tokens.
 *
 *   text -- special tokens cut out --> parts -- regular expressions --> pieces -- pairs merged --> tokens
 *
 * A piece begins as its bytes; of all pairs of neighbours that have a merge the one of the lowest rank, the first of
 * those, becomes one token, until none has (Sennrich, Haddow, Birch 2016). The file spells bytes as characters: those
 * that print stand for themselves, the others are U+0100 and on, in order. Here tokens are their bytes. */
#include "tokenizer_own.h"

#include <stdlib.h>
#include <string.h>

/* ---- tables */

static uint64_t hash_of(const void *data, size_t bytes)
{
    const uint8_t *at = data;
    uint64_t h = bytes;
    for (size_t i = 0; i < bytes; i++) h = (h ^ at[i]) * UINT64_C(0x9e3779b97f4a7c15), h ^= h >> 29;
    return h;
}

int token_find(const burn_tokenizer *t, const void *bytes, size_t n)
{
    for (uint64_t h = hash_of(bytes, n);; h++) {
        const int token = t->by_bytes[h & t->bytes_mask] - 1;
        if (token < 0 || (t->tokens[token].n == n && !memcmp(t->tokens[token].at, bytes, n))) return token;
    }
}

void token_enter(burn_tokenizer *t, int token)
{
    uint64_t h = hash_of(t->tokens[token].at, t->tokens[token].n);
    while (t->by_bytes[h & t->bytes_mask]) h++;
    t->by_bytes[h & t->bytes_mask] = token + 1;
}

Merge *merge_slot(const burn_tokenizer *t, int left, int right)
{
    const int pair[2] = { left, right };
    uint64_t h = hash_of(pair, sizeof pair);
    for (;; h++) {
        Merge *m = &t->merges[h & t->merges_mask];
        if (!m->is_there || (m->left == left && m->right == right)) return m;
    }
}

/* ---- one piece */

typedef struct Out { int64_t *at, n, room; } Out;

static int put(Out *o, int64_t token)
{
    if (o->n == o->room) {
        const int64_t room = o->room ? o->room * 2 : 256;
        int64_t *more = realloc(o->at, (size_t)room * sizeof *more);
        if (!more) return 0;
        o->at = more;
        o->room = room;
    }
    o->at[o->n++] = token;
    return 1;
}

/* Merges the tokens from `from` to the end of the list in place. A text is many short pieces: each look goes over all
 * pairs of one. */
static void merge_all(const burn_tokenizer *t, Out *o, int64_t from)
{
    for (;;) {
        const Merge *best = NULL;
        int64_t n = from;
        for (int64_t i = from; i + 1 < o->n; i++) {
            const Merge *m = merge_slot(t, (int)o->at[i], (int)o->at[i + 1]);
            if (m->is_there && (!best || m->rank < best->rank)) best = m;
        }
        if (!best) return;
        for (int64_t i = from; i < o->n; i++) {
            const int is_pair = i + 1 < o->n && o->at[i] == best->left && o->at[i + 1] == best->right;
            o->at[n++] = is_pair ? best->result : o->at[i];
            i += is_pair;
        }
        o->n = n;
    }
}

static int add_piece(const burn_tokenizer *t, const char *at, size_t n, Out *o, burn_said *said)
{
    const int whole = t->ignore_merges ? token_find(t, at, n) : -1;
    const int64_t from = o->n;
    if (whole >= 0) return put(o, whole) ? BURN_OK : data_said(said, BURN_ENOMEM, "no memory");
    for (size_t i = 0; i < n; i++) {
        const int token = t->of_byte[(uint8_t)at[i]];
        if (token < 0) return data_said(said, BURN_EFORMAT, "the tokenizer has no token for the byte %d",
                                        (uint8_t)at[i]);
        if (!put(o, token)) return data_said(said, BURN_ENOMEM, "no memory");
    }
    merge_all(t, o, from);
    return BURN_OK;
}

/* ---- pieces */

/* The piece, cut by the rules from number `rule` on. */
static int add_part(const burn_tokenizer *t, int rule, const char *at, size_t n, Out *o, burn_said *said)
{
    if (rule == t->rule_count) return n ? add_piece(t, at, n, o, said) : BURN_OK;
    size_t done = 0, from, to;
    int found, error = BURN_OK;
    void *match = rule_begin(&t->rules[rule]);
    if (!match) return data_said(said, BURN_ENOMEM, "no memory");
    while (!error && (found = rule_next(&t->rules[rule], match, at, n, done, &from, &to)) > 0) {
        if (from > done && !t->rules[rule].drops_gaps) error = add_part(t, rule + 1, at + done, from - done, o, said);
        if (!error) error = add_part(t, rule + 1, at + from, to - from, o, said);
        done = to;
    }
    rule_end(match);
    if (!error && found < 0) return data_said(said, BURN_EFORMAT, "the text is no UTF-8, or too much for its rule");
    if (!error && done < n && !t->rules[rule].drops_gaps) error = add_part(t, rule + 1, at + done, n - done, o, said);
    return error;
}

/* Between special tokens. */
static int add_text(const burn_tokenizer *t, const char *at, size_t n, Out *o, burn_said *said)
{
    if (!n) return BURN_OK;
    if (!t->prefix_space || *at == ' ') return add_part(t, 0, at, n, o, said);
    char *copy = malloc(n + 1);
    if (!copy) return data_said(said, BURN_ENOMEM, "no memory");
    *copy = ' ';
    memcpy(copy + 1, at, n);
    const int error = add_part(t, 0, copy, n + 1, o, said);
    free(copy);
    return error;
}

/* The longest special token that begins here, or -1. */
static int special_at(const burn_tokenizer *t, const char *at, size_t left)
{
    int best = -1;
    for (int i = 0; i < t->special_count; i++) {
        const Token *s = &t->tokens[t->specials[i].token];
        if (s->n <= left && *s->at == *at && !memcmp(s->at, at, s->n)
            && (best < 0 || s->n > t->tokens[t->specials[best].token].n))
            best = i;
    }
    return best;
}

int burn_tokenizer_encode(const burn_tokenizer *t, const char *text, size_t bytes, int64_t **tokens, int64_t *count,
                          burn_said *said)
{
    Out o = { 0 };
    size_t done = 0;
    if (!t || !text || !tokens || !count) return data_said(said, BURN_EINVAL, "a null pointer");
    int error = put(&o, 0) ? BURN_OK : data_said(said, BURN_ENOMEM, "no memory");      /* so that there is memory */
    o.n = 0;
    for (size_t i = 0; !error && i < bytes; i++) {
        const int special = t->begins_special[(uint8_t)text[i]] ? special_at(t, text + i, bytes - i) : -1;
        if (special < 0) continue;
        const Token *s = &t->tokens[t->specials[special].token];
        if (t->specials[special].is_odd)
            error = data_said(said, BURN_EINVAL, "the text has \"%s\", which takes the space beside it or stands for a "
                              "whole word: that is not known here", s->at);
        if (!error) error = add_text(t, text + done, i - done, &o, said);
        if (!error && !put(&o, t->specials[special].token)) error = data_said(said, BURN_ENOMEM, "no memory");
        done = i + s->n;
        i = done - 1;
    }
    if (!error) error = add_text(t, text + done, bytes - done, &o, said);
    if (error) return free(o.at), error;
    *tokens = o.at;
    *count = o.n;
    return BURN_OK;
}

int burn_tokenizer_decode(const burn_tokenizer *t, int64_t count, const int64_t *tokens, char **text, size_t *bytes,
                          burn_said *said)
{
    size_t n = 0;
    if (!t || (count && !tokens) || !text || !bytes) return data_said(said, BURN_EINVAL, "a null pointer");
    for (int64_t i = 0; i < count; i++) {
        if (tokens[i] < 0 || tokens[i] >= t->count || !t->tokens[tokens[i]].name)
            return data_said(said, BURN_ERANGE, "there is no token %lld", (long long)tokens[i]);
        n += t->tokens[tokens[i]].n;
    }
    char *to = *text = malloc(n + 1);
    if (!to) return data_said(said, BURN_ENOMEM, "no memory");
    for (int64_t i = 0; i < count; i++) {
        memcpy(to, t->tokens[tokens[i]].at, t->tokens[tokens[i]].n);
        to += t->tokens[tokens[i]].n;
    }
    *to = 0;
    *bytes = n;
    return BURN_OK;
}

const char *const *burn_tokenizer_names(const burn_tokenizer *t, int *count)
{
    *count = t->count;
    return t->names;
}

void burn_tokenizer_close(burn_tokenizer *t)
{
    if (!t) return;
    for (int i = 0; i < t->rule_count; i++) rule_close(&t->rules[i]);
    for (int i = 0; t->tokens && i < t->count; i++) {
        free(t->tokens[i].name);
        free(t->tokens[i].at);
    }
    free(t->tokens);
    free(t->names);
    free(t->by_bytes);
    free(t->merges);
    free(t->specials);
    free(t);
}
