// SPDX-License-Identifier: MIT OR Apache-2.0
// Which parameters an option's text means; see select.c.
#ifndef BURNCC_SELECT_H
#define BURNCC_SELECT_H
#include "options.h"
#include "uses.h"

// Parameters that no loss depends on are trainable no more, which a note says.
void select_used(Uses *all, const Graph *model, const bool *outputs);
// --train-only, --train-last, --freeze: what they do not leave to learn is trainable no more, its running statistics
// stay; a note says what learns. False with diagnostics.
bool select_learning(Uses *all, Graph *model, const Options *o);
// marks[i]: does text, of that option, mean use i? False with diagnostics: no regular expression, or it meets nothing.
// all->places has to be there.
bool select_uses(const Uses *all, const char *option, const char *text, bool *marks);
void select_share(const Uses *all, bool *marks);        // uses of one parameter are one: any of them is enough
const Use *select_places(const Uses *all, Graph *model);
#endif
