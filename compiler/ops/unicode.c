// SPDX-License-Identifier: MIT OR Apache-2.0
// In: a string of UTF-8. Out: the same in upper or lower case. The mapping is the one that generated code carries
// (templates/c/case.h), so that a constant folds to what the running program would make of it.
#include "unicode.h"

#include "../../templates/c/case.h"

const char *string_to_case(Arena *a, const char *s, bool upper) {
    Text t;
    text_init(&t, a);
    while (*s) {
        char bytes[4];
        bool plain;
        uint32_t c = burn_case_read(&s, &plain);
        text_append(
            &t, bytes, burn_case_write(bytes, plain && c >= 0x80 ? c : burn_case(c, upper), plain && c >= 0x80));
    }
    return t.n ? arena_strndup(a, t.at, t.n) : "";
}
