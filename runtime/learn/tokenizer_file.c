/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Reads tokenizer.json: vocabulary, merges, special tokens, and the rules by which a text is cut, which are regular
 * expressions for PCRE2. Whatever would change tokens and is not known here is refused. */
#include "tokenizer_own.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(BURN_HAS_JSON) && defined(BURN_HAS_PCRE2)
#include <jansson.h>
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

/* GPT-2's rule, which ByteLevel means: contractions, letters, digits and the rest, each with a space before it. */
static const char gpt2[] = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

typedef struct Reading { burn_tokenizer *t; const char *path; burn_said *said; } Reading;

static int bad(const Reading *r, const char *what, const char *name)
{
    return data_said(r->said, BURN_EFORMAT, "%s: %s%s", r->path, what, name ? name : "");
}

/* ---- rules */

void *rule_begin(const Rule *rule)
{
    return pcre2_match_data_create_from_pattern(rule->code, NULL);
}

int rule_next(const Rule *rule, void *match, const char *text, size_t bytes, size_t at, size_t *from, size_t *to)
{
    const uint32_t checked = at ? PCRE2_NO_UTF_CHECK : 0;  /* the first look checks all of it */
    const int n = pcre2_match(rule->code, (PCRE2_SPTR)text, bytes, at, checked | PCRE2_NOTEMPTY, match, NULL);
    if (n == PCRE2_ERROR_NOMATCH) return 0;
    if (n < 0) return -1;
    *from = pcre2_get_ovector_pointer(match)[0];
    *to = pcre2_get_ovector_pointer(match)[1];
    return 1;
}

void rule_end(void *match)
{
    pcre2_match_data_free(match);
}

void rule_close(Rule *rule)
{
    pcre2_code_free(rule->code);
}

static int add_rule(const Reading *r, const char *pattern, int drops_gaps)
{
    int why;
    size_t at;
    PCRE2_UCHAR text[128];
    if (r->t->rule_count == TOKENIZER_RULES) return bad(r, "too many pre-tokenizers", NULL);
    Rule *rule = &r->t->rules[r->t->rule_count];
    rule->code = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, PCRE2_UTF | PCRE2_UCP, &why, &at, NULL);
    rule->drops_gaps = drops_gaps;
    if (rule->code) {
        (void)pcre2_jit_compile(rule->code, PCRE2_JIT_COMPLETE);       /* or it is slower */
        r->t->rule_count++;
        return BURN_OK;
    }
    pcre2_get_error_message(why, text, sizeof text);
    return data_said(r->said, BURN_EFORMAT, "%s: the pre-tokenizer's pattern, character %zu: %s", r->path, at, text);
}

static const char *text_of(const json_t *o, const char *key)
{
    const char *text = json_string_value(json_object_get(o, key));
    return text ? text : "";
}

/* A text that stands for itself in a pattern. */
static int add_literal(const Reading *r, const char *text, int drops_gaps)
{
    char pattern[256];
    snprintf(pattern, sizeof pattern, "\\Q%s\\E", text);
    if (strlen(text) + 5 > sizeof pattern || strstr(text, "\\E")) return bad(r, "a pre-tokenizer's pattern: ", text);
    return add_rule(r, pattern, drops_gaps);
}

static int add_pre_tokenizer(const Reading *r, const json_t *o, int *is_bytes)
{
    const char *type = text_of(o, "type"), *behavior = text_of(o, "behavior");
    const json_t *pattern = json_object_get(o, "pattern"), *use = json_object_get(o, "use_regex");
    if (!strcmp(type, "Sequence")) {
        const json_t *all = json_object_get(o, "pretokenizers");
        int error = BURN_OK;
        for (size_t i = 0; !error && i < json_array_size(all); i++)
            error = add_pre_tokenizer(r, json_array_get(all, i), is_bytes);
        return error;
    }
    if (*is_bytes) return bad(r, "a pre-tokenizer stands behind ByteLevel: ", type);
    if (!strcmp(type, "ByteLevel")) {
        *is_bytes = 1;
        r->t->prefix_space = json_is_true(json_object_get(o, "add_prefix_space"));
        if (r->t->prefix_space && r->t->rule_count) return bad(r, "add_prefix_space behind a Split is not known", NULL);
        return json_is_false(use) ? BURN_OK : add_rule(r, gpt2, 0);
    }
    if (!strcmp(type, "Digits"))
        return add_rule(r, json_is_true(json_object_get(o, "individual_digits")) ? "\\p{N}" : "\\p{N}+", 0);
    const int keeps = !strcmp(behavior, "Removed") && json_is_true(json_object_get(o, "invert"));
    if (strcmp(type, "Split") || (!keeps && strcmp(behavior, "Isolated")))
        return bad(r, "a pre-tokenizer that is not known: ", type);
    return *text_of(pattern, "Regex") ? add_rule(r, text_of(pattern, "Regex"), keeps)
                                      : add_literal(r, text_of(pattern, "String"), keeps);
}

/* ---- tokens */

/* Which byte a character stands for, or -1. */
static int byte_of(unsigned c)
{
    const int prints = (c >= '!' && c <= '~') || (c >= 0xa1 && c <= 0xac) || (c >= 0xae && c <= 0xff);
    unsigned next = 0x100;
    if (c < 0x100) return prints ? (int)c : -1;
    for (unsigned b = 0; b < 0x100; b++) {
        if ((b >= '!' && b <= '~') || (b >= 0xa1 && b <= 0xac) || b >= 0xae) continue;
        if (next++ == c) return (int)b;
    }
    return -1;
}

/* The bytes that a name spells; 0: one of its characters spells none. Characters are of at most two bytes. */
static int spell(const int *bytes_of, const char *name, char *to, size_t *n)
{
    *n = 0;
    for (const uint8_t *at = (const uint8_t *)name; *at; at++) {
        const unsigned c = *at < 0x80 ? *at : (*at & 0xe0) == 0xc0 ? (*at & 0x1fu) << 6 | (at[1] & 0x3fu) : 0xffff;
        if (c >= 0x200 || bytes_of[c] < 0) return 0;
        to[(*n)++] = (char)bytes_of[c];
        at += *at >= 0x80;
    }
    return 1;
}

/* Token `id` becomes what the name spells, or, as it is, the name. */
static int set_token(const Reading *r, const int *bytes_of, int64_t id, const char *name, int as_it_is)
{
    const size_t length = strlen(name);
    if (id < 0 || id >= r->t->count || !length) return bad(r, "a token's number or name makes no sense: ", name);
    Token *token = &r->t->tokens[id];
    if (token->name && !as_it_is) return bad(r, "two tokens have the number of ", name);
    if (token->name) free(token->name), free(token->at);
    token->name = malloc(length + 1);
    token->at = malloc(length + 1);
    if (!token->name || !token->at) return data_said(r->said, BURN_ENOMEM, "%s: no memory", r->path);
    memcpy(token->name, name, length + 1);
    memcpy(token->at, name, length + 1);
    token->n = length;
    if (as_it_is) return BURN_OK;
    if (!spell(bytes_of, name, token->at, &token->n)) memcpy(token->at, name, token->n = length);
    token->at[token->n] = 0;
    return BURN_OK;
}

static int64_t largest_id(const json_t *vocabulary, const json_t *added)
{
    const char *name;
    json_t *id;
    int64_t most = -1;
    json_object_foreach((json_t *)(uintptr_t)vocabulary, name, id)
        if (json_integer_value(id) > most) most = json_integer_value(id);
    for (size_t i = 0; i < json_array_size(added); i++) {
        const int64_t one = json_integer_value(json_object_get(json_array_get(added, i), "id"));
        if (one > most) most = one;
    }
    return most;
}

static int add_specials(const Reading *r, const int *bytes_of, const json_t *added)
{
    burn_tokenizer *t = r->t;
    int error = BURN_OK;
    t->specials = calloc(json_array_size(added) + 1, sizeof *t->specials);
    if (!t->specials) return data_said(r->said, BURN_ENOMEM, "%s: no memory", r->path);
    for (size_t i = 0; !error && i < json_array_size(added); i++) {
        const json_t *one = json_array_get(added, i);
        const json_t *id = json_object_get(one, "id");
        error = set_token(r, bytes_of, json_is_integer(id) ? json_integer_value(id) : -1, text_of(one, "content"), 1);
        if (error) break;
        t->specials[t->special_count++] = (Special){ (int)json_integer_value(id),
            json_is_true(json_object_get(one, "lstrip")) || json_is_true(json_object_get(one, "rstrip"))
                || json_is_true(json_object_get(one, "single_word")) };
        t->begins_special[(uint8_t)*text_of(one, "content")] = 1;
    }
    return error;
}

static int add_vocabulary(const Reading *r, json_t *vocabulary, const json_t *added)
{
    enum { MOST = 1 << 24 };
    burn_tokenizer *t = r->t;
    const char *name;
    json_t *id;
    int bytes_of[0x200], error = BURN_OK;
    const int64_t most = largest_id(vocabulary, added);
    for (unsigned c = 0; c < 0x200; c++) bytes_of[c] = byte_of(c);
    if (!json_is_object(vocabulary) || most < 0 || most >= MOST) return bad(r, "its vocabulary is none", NULL);
    t->count = (int)most + 1;
    t->bytes_mask = 1;
    while (t->bytes_mask < (uint64_t)t->count * 2) t->bytes_mask *= 2;
    t->tokens = calloc((size_t)t->count, sizeof *t->tokens);
    t->names = calloc((size_t)t->count, sizeof *t->names);
    t->by_bytes = calloc(t->bytes_mask--, sizeof *t->by_bytes);
    if (!t->tokens || !t->names || !t->by_bytes) return data_said(r->said, BURN_ENOMEM, "%s: no memory", r->path);
    json_object_foreach(vocabulary, name, id)
        if (!error) error = set_token(r, bytes_of, json_is_integer(id) ? json_integer_value(id) : -1, name, 0);
    for (int k = 0; !error && k < t->count; k++)
        if (t->tokens[k].name) token_enter(t, k);
    for (int b = 0; !error && b < 0x100; b++) t->of_byte[b] = token_find(t, (const char[]){ (char)b }, 1);
    if (!error) error = add_specials(r, bytes_of, added);
    for (int k = 0; !error && k < t->count; k++) t->names[k] = t->tokens[k].name ? t->tokens[k].name : "";
    return error;
}

/* ---- merges */

/* "a b" or ["a", "b"]; 0: it is neither. */
static int sides_of(const json_t *o, char *copy, size_t room, const char **left, const char **right)
{
    const char *pair = json_string_value(o), *space = pair ? strchr(pair, ' ') : NULL;
    if (json_is_array(o)) {
        *left = json_string_value(json_array_get(o, 0));
        *right = json_string_value(json_array_get(o, 1));
        return json_array_size(o) == 2 && *left && *right;
    }
    if (!space || strlen(pair) >= room) return 0;
    memcpy(copy, pair, strlen(pair) + 1);
    copy[space - pair] = 0;
    *left = copy;
    *right = copy + (space - pair) + 1;
    return 1;
}

static int add_merge(const Reading *r, const json_t *o, const json_t *vocabulary, int rank)
{
    char copy[1024], both[1024];
    const char *left, *right;
    if (!sides_of(o, copy, sizeof copy, &left, &right)) return bad(r, "a merge is none", NULL);
    if ((size_t)snprintf(both, sizeof both, "%s%s", left, right) >= sizeof both) return bad(r, "a merge is none", NULL);
    const json_t *a = json_object_get(vocabulary, left), *b = json_object_get(vocabulary, right);
    const json_t *c = json_object_get(vocabulary, both);
    if (!a || !b || !c) return bad(r, "a merge makes a token that the vocabulary has not: ", both);
    Merge *m = merge_slot(r->t, (int)json_integer_value(a), (int)json_integer_value(b));
    if (!m->is_there)
        *m = (Merge){ (int)json_integer_value(a), (int)json_integer_value(b), (int)json_integer_value(c), rank, 1 };
    return BURN_OK;
}

static int add_merges(const Reading *r, const json_t *merges, const json_t *vocabulary)
{
    burn_tokenizer *t = r->t;
    int error = BURN_OK;
    if (!json_is_array(merges)) return bad(r, "it has no merges", NULL);
    t->merges_mask = 1;
    while (t->merges_mask < json_array_size(merges) * 2 + 2) t->merges_mask *= 2;
    t->merges = calloc(t->merges_mask--, sizeof *t->merges);
    if (!t->merges) return data_said(r->said, BURN_ENOMEM, "%s: no memory", r->path);
    for (size_t i = 0; !error && i < json_array_size(merges); i++)
        error = add_merge(r, json_array_get(merges, i), vocabulary, (int)i);
    return error;
}

/* ---- the file */

static int is_given(const json_t *o, const char *key)
{
    const json_t *value = json_object_get(o, key);
    return value && !json_is_null(value) && !json_is_false(value) && !(json_is_string(value) && !*text_of(o, key));
}

static int fill(const Reading *r, const json_t *root)
{
    static const char *const not_known[] = { "dropout", "continuing_subword_prefix", "end_of_word_suffix",
        "byte_fallback" };
    const json_t *model = json_object_get(root, "model");
    json_t *vocabulary = json_object_get(model, "vocab");
    int is_bytes = 0, error;
    if (*text_of(model, "type") && strcmp(text_of(model, "type"), "BPE"))
        return bad(r, "it is no tokenizer of byte pairs (BPE): ", text_of(model, "type"));
    if (is_given(root, "normalizer"))
        return bad(r, "a normalizer is not known: ", text_of(json_object_get(root, "normalizer"), "type"));
    for (size_t i = 0; i < sizeof not_known / sizeof *not_known; i++)
        if (is_given(model, not_known[i])) return bad(r, "the model has what is not known: ", not_known[i]);
    if ((error = add_pre_tokenizer(r, json_object_get(root, "pre_tokenizer"), &is_bytes))) return error;
    if (!is_bytes) return bad(r, "its pre-tokenizer is not of bytes (ByteLevel)", NULL);
    r->t->ignore_merges = json_is_true(json_object_get(model, "ignore_merges"));
    error = add_vocabulary(r, vocabulary, json_object_get(root, "added_tokens"));
    return error ? error : add_merges(r, json_object_get(model, "merges"), vocabulary);
}

int burn_tokenizer_open(const char *path, burn_tokenizer **tokenizer, burn_said *said)
{
    size_t bytes;
    json_error_t why;
    if (!path || !tokenizer) return data_said(said, BURN_EINVAL, "a null pointer");
    char *text = (char *)data_read(path, &bytes, said);
    if (!text) return BURN_EIO;
    json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &why);
    free(text);
    if (!root) return data_said(said, BURN_EFORMAT, "%s: line %d, column %d: %s", path, why.line, why.column, why.text);
    burn_tokenizer *t = calloc(1, sizeof *t);
    const Reading r = { t, path, said };
    const int error = t ? fill(&r, root) : data_said(said, BURN_ENOMEM, "%s: no memory", path);
    json_decref(root);
    if (error) burn_tokenizer_close(t);
    else *tokenizer = t;
    return error;
}
#else
void *rule_begin(const Rule *rule)
{
    return rule->code;
}

int rule_next(const Rule *rule, void *match, const char *text, size_t bytes, size_t at, size_t *from, size_t *to)
{
    (void)rule, (void)match, (void)text, (void)bytes, (void)at, (void)from, (void)to;
    return -1;
}

void rule_end(void *match)
{
    (void)match;
}

void rule_close(Rule *rule)
{
    rule->code = NULL;
}

int burn_tokenizer_open(const char *path, burn_tokenizer **tokenizer, burn_said *said)
{
    (void)tokenizer;
    return data_said(said, BURN_EINVAL, "%s: this build has no PCRE2, which tokenizers need", path ? path : "no path");
}
#endif
