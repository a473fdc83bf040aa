// SPDX-License-Identifier: MIT OR Apache-2.0
// The text of a kernel that a model brings along in GLSL, with its inputs and results put where they lie.
//
//   y[i] = x[3 * i] + 1.0;     becomes     a_f32[at0 + int(i)] = w_f32[at1 + int(3 * i)] + 1.0;
//
// GLSL has no pointers, so each NAME[index] is spelled as an element of the buffer's view; what has another name, or is
// no index, stays as it is.
#include "vulkan.h"

#include <ctype.h>
#include <string.h>

enum { MAX_DEPTH = 64 };                                // of brackets

static bool is_word(char c) { return isalnum((unsigned char)c) || c == '_'; }

// An element's beginning, up to its index; false: the word is no operand of which one is asked for.
static bool begin_element(Text *out, const char *word, size_t length, int n, const Operand *operands) {
    for (int i = 0; i < n; i++) {
        const Operand *o = &operands[i];
        if (strlen(o->name) != length || memcmp(o->name, word, length)) continue;
        text_printf(out, "%s[%s + int(", o->view, o->first);
        return true;
    }
    return false;
}

const char *glsl_custom_text(Arena *a, const char *s, int n, const Operand *operands) {
    bool ours[MAX_DEPTH] = { false };
    int depth = 0;
    Text out;
    text_init(&out, a);
    text_printf(&out, "%s", "");
    while (*s) {
        size_t length = 0, gap;
        while (is_word(s[length])) length++;
        gap = length + strspn(s + length, " ");
        if (length && s[gap] == '[' && depth < MAX_DEPTH && begin_element(&out, s, length, n, operands)) {
            ours[depth++] = true;
            s += gap + 1;
            continue;
        }
        if (*s == '[' && depth < MAX_DEPTH) ours[depth++] = false;
        if (*s == ']' && depth && ours[--depth]) text_append(&out, ")", 1);
        length += length == 0;
        text_append(&out, s, length);
        s += length;
    }
    return out.at;
}
