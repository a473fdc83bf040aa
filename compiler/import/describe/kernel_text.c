// SPDX-License-Identifier: MIT OR Apache-2.0
// The text of a kernel as it stands in the description.
//
// In: what KERNEL(name, parameters, text) made of it, where the preprocessor has put all on one line without comments;
// the file's text. Out: the block from its brace on as it was written, and its line. Where the file has no such block,
// or another one, the line as it is.
#include "import/describe/describe.h"

#include <ctype.h>
#include <string.h>

// Behind a comment, a string or a character that begins here; the next character where none does.
static const char *step(const char *s, bool *is_comment) {
    *is_comment = true;
    if (s[0] == '/' && s[1] == '/') return s + strcspn(s, "\n");
    if (s[0] == '/' && s[1] == '*') {
        const char *end = strstr(s + 2, "*/");
        return end ? end + 2 : s + strlen(s);
    }
    *is_comment = false;
    char quote = *s;
    if (quote != '"' && quote != '\'') return s + 1;
    for (s++; *s && *s != quote; s++)
        if (*s == '\\' && s[1]) s++;
    return *s ? s + 1 : s;
}

// Both are the same but for white space and comments.
static bool same_code(const char *a, const char *a_end, const char *b) {
    bool comment;
    while (a < a_end || *b) {
        if (a < a_end && isspace((unsigned char)*a)) {
            a++;
            continue;
        }
        const char *next = a < a_end ? step(a, &comment) : a;
        if (a < a_end && comment) {
            a = next;
            continue;
        }
        while (isspace((unsigned char)*b)) b++;
        if (a >= a_end) return !*b;
        if (*a++ != *b++) return false;
    }
    return true;
}

// The block that begins at the first brace from s on; NULL: it does not end.
static const char *block_end(const char *s) {
    int depth = 0;
    bool comment;
    while (*s) {
        const char *next = step(s, &comment);
        if (!comment) depth += *s == '{' ? 1 : *s == '}' ? -1 : 0;
        s = next;
        if (!comment && depth == 0 && s[-1] == '}') return s;
    }
    return NULL;
}

static int line_of(const char *text, const char *at) {
    int line = 1;
    for (; text < at; text++) line += *text == '\n';
    return line;
}

const char *kernel_text(Arena *a, const char *source, const struct burn_kernel *k, int *line) {
    size_t length = strlen(k->name);
    for (const char *s = source; (s = strstr(s, k->name)); s += length) {
        const char *before = s;
        while (before > source && isspace((unsigned char)before[-1])) before--;
        if (before == source || before[-1] != '(' || isalnum((unsigned char)s[length]) || s[length] == '_') continue;
        const char *from = strchr(s, '{'), *to = from ? block_end(from) : NULL;
        if (!to || !same_code(from, to, k->text)) continue;
        *line = line_of(source, from);
        return arena_strndup(a, from, (size_t)(to - from));
    }
    *line = 1;
    return k->text;
}
