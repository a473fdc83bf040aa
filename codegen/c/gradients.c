// SPDX-License-Identifier: MIT OR Apache-2.0
// Gradients as values: what a caller does with those of several batches or threads before the optimizer's step. They
// are sums of structs, field by field; fields of one type lie behind each other, so that a sum is a loop or two over
// the whole struct.
#include "c.h"

typedef struct Span { const Parameter *first; int64_t n; } Span;        // n numbers from this field on
typedef VEC(Span) Spans;

static Spans spans_of(Arena *a, const Training *t) {
    Spans all = { 0 };
    for (int i = 0; i < t->params.n; i++) {
        const Parameter *p = &t->params.at[i];
        Span *last = all.n ? &all.at[all.n - 1] : NULL;
        if (last && last->first->type.dtype == p->type.dtype) last->n += type_count(&p->type);
        else VEC_PUSH(a, all, ((Span){ p, type_count(&p->type) }));
    }
    return all;
}

// Bytes and not the field: the loop goes on behind its array.
static const char *place(const CFile *g, const Span *s, const char *of) {
    return arena_printf(g->arena, "%s *)(%svoid *)((%sunsigned char *)%s + offsetof(%s_params, %s));\n",
        spell_c_storage(s->first->type.dtype), *of == 'g' ? "const " : "", *of == 'g' ? "const " : "", of, g->model,
        s->first->field);
}

static const char *loops(CFile *g, const Spans *all, bool adds) {
    Text t;
    text_init(&t, g->arena);
    for (int i = 0; i < all->n; i++) {
        const Span *s = &all->at[i];
        const char *type = spell_c_storage(s->first->type.dtype), *by = adds ? "+= x[i]" : "*= factor";
        text_printf(&t, "    {\n        %s *const to = (%s", type, place(g, s, "sum"));
        if (adds) text_printf(&t, "        const %s *const x = (const %s", type, place(g, s, "grads"));
        text_printf(&t, "        for (size_t i = 0; i < %lld; i++) to[i] %s;\n    }\n", (long long)s->n, by);
    }
    return t.at;
}

void c_gradients(CFile *g, const Training *t) {
    const Spans all = spans_of(g->arena, t);
    const Hole holes[] = { { "MODEL", NULL, g->model },
        { "ADDS", NULL, loops(g, &all, true) },
        { "SCALES", NULL, loops(g, &all, false) } };
    skeleton_fill(g->arena, &g->h, "skeleton/gradients.h", 1, holes);
    text_printf(&g->h, "\n");
    skeleton_fill(g->arena, &g->ends, "skeleton/gradients.c", 3, holes);
    text_printf(&g->ends, "\n");
}
