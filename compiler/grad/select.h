// SPDX-License-Identifier: MIT OR Apache-2.0
// Which parameters an option's text means; see select.c.
#ifndef BURNCC_SELECT_H
#define BURNCC_SELECT_H
#include "options.h"
#include "uses.h"

// --train-only, --train-last, --freeze: what they do not leave to learn is trainable no more, its running statistics
// stay; a note says what learns. False with diagnostics.
bool select_learning(Uses *all, Graph *model, const Options *o);
// marks[i]: does text, of that option, mean use i? False with diagnostics: no regular expression, or it meets nothing.
bool select_uses(const Uses *all, const char *option, const char *text, bool *marks);
#endif
