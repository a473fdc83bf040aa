// SPDX-License-Identifier: MIT OR Apache-2.0
// The most stack that a run can take: of a program on a board, and of a model's function alone.
//
// In: what a compiler made of it (object.c). Out: bytes of the deepest chain of calls. A board's program counts from
// its driver's on_paint on (templates/firmware/driver.c), from where the paint is counted too; that calls run_model,
// and run_model, by the model's descriptor, the model's function for tensors. -1: there is no bound, or a compiler
// that says nothing of frames.
#include "object.h"

#include <string.h>

static bool ends_with(const char *s, const char *end) {
    size_t n = strlen(s), m = strlen(end);
    return n >= m && !strcmp(s + n - m, end);
}

// Or what a compiler made of it: on_paint.constprop.0.
static bool is_function(const ObjectSection *s, const char *name) {
    const size_t n = strcspn(s->symbol, ".");
    return n == strlen(name) && !strncmp(s->symbol, name, n);
}

int64_t stack_bound(Arena *a, const Unlinked *program) {
    Object *o = object_read(a, program);
    int64_t driver = 0, model = -1;
    for (int i = 0; o && o->frames && i < o->n_sections; i++) {
        const ObjectSection *s = &o->sections[i];
        if (s->kind != OBJECT_TEXT || !s->symbol || s->frame < 0) continue;
        if (is_function(s, "on_paint") || is_function(s, "run_model")) driver += s->frame;
        else if (ends_with(s->symbol, "_run_generic")) model = object_depth(o, i);
    }
    return model < 0 ? -1 : driver + model;
}

int64_t stack_of(Object *o, const char *function, Text *chain) {
    int at = o->frames ? object_function(o, function) : -1;
    const int64_t bytes = at < 0 ? -1 : object_depth(o, at);
    const char *before = "";
    for (; bytes >= 0 && at >= 0; at = o->sections[at].deepest) {
        const ObjectSection *s = &o->sections[at];
        if (s->kind != OBJECT_TEXT) continue;
        text_printf(chain, "%s%s %lld", before, s->symbol, (long long)s->frame);
        before = ", ";
        if (s->deepest < 0 && s->outside.n) text_printf(chain, ", %s %d", s->outside.at[0], LIBRARY_FRAME);
    }
    return bytes;
}
