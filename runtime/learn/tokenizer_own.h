/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A tokenizer as tokenizer_file.c reads it and tokenizer.c uses it. */
#ifndef BURN_TOKENIZER_OWN_H
#define BURN_TOKENIZER_OWN_H

#include "data_own.h"
#include "tokenizer.h"

enum { TOKENIZER_RULES = 8 };
typedef struct Token { char *name, *at; size_t n; } Token;         /* as the file spells it; its bytes */
typedef struct Merge { int left, right, result, rank, is_there; } Merge;
typedef struct Special { int token, is_odd; } Special;             /* odd: it changes what stands beside it */
typedef struct Rule { void *code; int drops_gaps; } Rule;          /* code: the regular expression's */

struct burn_tokenizer {
    int count;                                             /* numbers of tokens, from 0 */
    Token *tokens;
    const char **names;
    int *by_bytes;                                         /* a hash table of tokens + 1; 0: free */
    uint64_t bytes_mask, merges_mask;
    Merge *merges;                                         /* a hash table */
    int special_count;
    Special *specials;
    char begins_special[256];
    int of_byte[256];                                      /* -1: none */
    int rule_count;
    Rule rules[TOKENIZER_RULES];
    int prefix_space, ignore_merges;
};

int token_find(const burn_tokenizer *t, const void *bytes, size_t n);      /* -1: none is these bytes */
void token_enter(burn_tokenizer *t, int token);
Merge *merge_slot(const burn_tokenizer *t, int left, int right);

/* A rule's matches, one after the other, in what begin gave (NULL without memory). next: 1 and from, to; 0: no more; a
 * match that is empty is passed over; -1: an error. */
void *rule_begin(const Rule *rule);
int rule_next(const Rule *rule, void *match, const char *text, size_t bytes, size_t at, size_t *from, size_t *to);
void rule_end(void *match);
void rule_close(Rule *rule);

#endif
