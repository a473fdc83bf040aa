// SPDX-License-Identifier: MIT OR Apache-2.0
// What forms.c, which says what templates allow, and candidates.c, which proposes it, share: the templates' limits.
#ifndef BURNCC_FORMS_H
#define BURNCC_FORMS_H
#include "tune.h"

// of the templates; MAX_MARGIN: floats between pixels that nobody reads
enum { PANEL = 16, MAX_ROWS = 16, MAX_VECTORS = 4, MAX_MARGIN = 1024 };
#endif
