// SPDX-License-Identifier: MIT OR Apache-2.0
// The table of calls that a description is given; language/language.def has the rows.
#include "import/describe/describe.h"

const struct burn_language language_table = {
    .version = BURN_LANGUAGE_VERSION,
#define CALL(type, name, ...) .call_##name = language_##name,
#include "language/language.def"
#undef CALL
};
