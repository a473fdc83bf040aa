// SPDX-License-Identifier: MIT OR Apache-2.0
// Dimensions as C expressions of int64_t over the variables that generated code has for symbols. Kernels in GLSL have
// sizes that are numbers.
#include "codegen/spell/spell.h"
#include "ir/dim.h"

#include <inttypes.h>
#include <string.h>

const char *spell_symbol(Arena *a, const Symbol *s) { return arena_printf(a, "n_%s", s->word); }

// C's division rounds toward zero: a numerator that may be negative is made so only by a guarded division.
static void print_size(Text *out, const Graph *g, Dim d) {
    if (dim_is_const(d)) {
        text_printf(out, "%" PRId64, d);
        return;
    }
    const Graph *root = graph_root(g);
    const Dims *t = root->dims;
    const Poly *p = &t->polys.at[-1 - d];
    if (p->n > 1) text_printf(out, "(");
    for (int i = 0; i < p->n; i++) {
        const Term *m = &p->terms[i];
        uint64_t size = m->coef < 0 ? -(uint64_t)m->coef : (uint64_t)m->coef;
        if (i || m->coef < 0) text_printf(out, i ? m->coef < 0 ? " - " : " + " : "-");
        if (size != 1 || m->n == 0) text_printf(out, "%" PRIu64 "%s", size, m->n ? " * " : "");
        for (int k = 0; k < m->n; k++) {
            const Atom *a = &t->atoms.at[m->atom[k]];
            if (k) text_printf(out, " * ");
            if (a->symbol >= 0) {
                text_printf(out, "%s", spell_symbol(out->arena, &root->symbols.at[a->symbol]));
                continue;
            }
            text_printf(out, dim_lower(g, a->num) >= 0 ? "(" : "burn_floordiv_i64(");
            print_size(out, g, a->num);
            text_printf(out, dim_lower(g, a->num) >= 0 ? " / " : ", ");
            bool bare = dim_is_const(a->den) || t->polys.at[-1 - a->den].n > 1;     // a sum has parentheses of its own
            if (!bare) text_printf(out, "(");
            print_size(out, g, a->den);
            text_printf(out, bare ? ")" : "))");
        }
    }
    if (p->n > 1) text_printf(out, ")");
}

const char *spell_size(Arena *a, const Graph *g, Dim d) {
    Text t;
    text_init(&t, a);
    print_size(&t, g, d);
    return t.at;
}

const char *spell_size_operand(Arena *a, const Graph *g, Dim d) {
    const char *size = spell_size(a, g, d);
    return strchr(size, ' ') ? arena_printf(a, "(%s)", text_bare(a, size)) : size;
}
