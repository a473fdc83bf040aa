/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A tokenizer of byte pairs, as a `tokenizer.json` has it: GPT-2's, and those of models since whose pre-tokenizer is
 * one or several regular expressions and bytes.
 *
 *     burn_tokenizer *t;
 *     int error = burn_tokenizer_open("tokenizer.json", &t, &said);
 *     if (!error) error = burn_tokenizer_encode(t, text, strlen(text), &tokens, &count, &said);
 *
 * Special tokens are found in the text; none are added in front or behind. What a file asks for besides (normalizers,
 * other kinds of models) is refused when it is opened. A tokenizer does not change: any number of threads may use it.
 * Functions return 0 or a BURN_E... code, and then say in `said` (may be NULL) what is wrong. */
#ifndef BURN_TOKENIZER_H
#define BURN_TOKENIZER_H

#include "data.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct burn_tokenizer burn_tokenizer;
int burn_tokenizer_open(const char *path, burn_tokenizer **tokenizer, burn_said *said);
void burn_tokenizer_close(burn_tokenizer *tokenizer);

/* `text` is UTF-8. The caller frees *tokens, of which there are *count. */
int burn_tokenizer_encode(const burn_tokenizer *tokenizer, const char *text, size_t bytes, int64_t **tokens,
                          int64_t *count, burn_said *said);
/* The caller frees *text, of *bytes and a zero byte: the tokens' bytes, which need not end with a whole character. */
int burn_tokenizer_decode(const burn_tokenizer *tokenizer, int64_t count, const int64_t *tokens, char **text,
                          size_t *bytes, burn_said *said);

/* All tokens as the file spells them ("" for a number that is none), *count of them, the tokenizer's. */
const char *const *burn_tokenizer_names(const burn_tokenizer *tokenizer, int *count);

#ifdef __cplusplus
}
#endif
#endif
