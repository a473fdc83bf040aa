// SPDX-License-Identifier: MIT OR Apache-2.0
// Where code is to be small (--optimize size): calls of the same functions that repeat, layer after layer, as a loop
// over what they differ in. Eight calls of a convolutional network, of 36 bytes each, become
//
//   static const struct { const float *a0; const float *a1; ... uint16_t a4; } net_k1_calls[] = {
//       {net_w5, net_w3, 8512, 6720}, ... };
//   for (int call = 0; call < 4; call++) {
//       net_k1_conv(net_k1_calls[call].a0, (float *)(void *)(work + net_k1_calls[call].a2), ...);
//       net_k0_conv(...);
//   }
//
// In: a plan's kernels from one on. Only what is an address in the workspace or among the constants, a number or a
// table of sizes may differ; what is the same in all rows stays in the call.
#include "run.h"

#include <string.h>

// calls that a loop takes together; those that are no longer written, at least: a loop has code, too
enum { MAX_PERIOD = 6, MIN_SAVED = 3 };

typedef struct Field { Argument *rows; const char *type, *name; int size; } Field;
typedef struct Rolled { int period, times; Arguments *calls; } Rolled;    // calls: period * times of them

static bool plain_call(const Plan *p, const Kernel *k) {
    if (k->kind == KERNEL_SIZES || k->kind == KERNEL_REGION || k->strips || k->parts > 1) return false;
    return !kernel_fails(k) && !kernel_packs(k) && !c_losses_after(p, k);
}

static const char *function(const Plan *p, int i) { return ((const KernelText *)p->kernels.at[i]->text)->function; }

static bool same_text(const char *x, const char *y) { return x == y || (x && y && !strcmp(x, y)); }

static bool fits(const Argument *x, const Argument *y) {
    if (x->kind != y->kind) return false;
    switch (x->kind) {
    case ARG_NUMBER: case ARG_TABLE: return true;
    case ARG_SIZE: return x->value == y->value;
    case ARG_WORD: return !strcmp(x->word, y->word);
    default: break;
    }
    const Address *a = &x->at, *b = &y->at;
    return a->base == b->base && (a->base == BASE_STATIC || a->base == BASE_WORK) && same_text(a->type, b->type)
        && (a->type || a->base == BASE_WORK) && !a->strings && !b->strings && !x->plus && !y->plus && !x->minus
        && !y->minus && x->worker_step == y->worker_step;
}

static bool equal(const Argument *x, const Argument *y) {
    if (x->kind == ARG_NUMBER) return x->value == y->value;
    if (x->kind == ARG_TABLE) return !strcmp(x->word, y->word);
    if (x->kind != ARG_ADDRESS) return true;
    return x->at.base == BASE_STATIC ? same_text(x->at.array, y->at.array) : x->at.offset == y->at.offset;
}

static bool call_fits(const Plan *p, int i, const Arguments *x, int j, const Arguments *y) {
    if (strcmp(function(p, i), function(p, j)) || x->n != y->n) return false;
    for (int a = 0; a < x->n; a++)
        if (!fits(&x->at[a], &y->at[a])) return false;
    return true;
}

// How often the calls from i on repeat, `period` of them at a time.
static int repeats(const Plan *p, int i, int n, int period, const Arguments *calls) {
    int same = period;
    while (same < n && call_fits(p, i + same - period, &calls[same - period], i + same, &calls[same])) same++;
    return same / period;
}

static Rolled find(RunText *r, const Plan *p, int i) {
    Rolled best = { 0 };
    int n = 0;
    while (i + n < p->kernels.n && plain_call(p, p->kernels.at[i + n])) n++;
    best.calls = NEW_ARRAY(r->g->arena, Arguments, n + 1);
    for (int j = 0; j < n; j++) best.calls[j] = c_arguments(r, p->kernels.at[i + j]);
    for (int period = 1; period <= MAX_PERIOD && 2 * period <= n; period++) {
        const int times = repeats(p, i, n, period, best.calls);
        if ((times - 1) * period < MIN_SAVED || (times - 1) * period <= (best.times - 1) * best.period) continue;
        best.period = period;
        best.times = times;
    }
    return best;
}

// ---------------------------------------------------------------- the table
static int64_t number_of(const Argument *a) { return a->kind == ARG_NUMBER ? a->value : a->at.offset; }

static void choose_type(Arena *a, Field *f, int times) {
    const Argument *first = &f->rows[0];
    f->size = 8;
    if (first->kind == ARG_TABLE || (first->kind == ARG_ADDRESS && first->at.base == BASE_STATIC)) {
        f->type = arena_printf(a, "const %s *", first->kind == ARG_TABLE ? "ptrdiff_t" : first->at.type);
        return;
    }
    int64_t low = 0, high = 0;
    for (int i = 0; i < times; i++) {
        const int64_t v = number_of(&f->rows[i]);
        if (v < low) low = v;
        if (v > high) high = v;
    }
    f->size = low >= 0 && high <= UINT16_MAX ? 2 : low >= INT32_MIN && high <= INT32_MAX ? 4 : 8;
    f->type = f->size == 2 ? "uint16_t " : f->size == 4 ? "int32_t " : "int64_t ";
}

static void print_value(RunText *r, const Argument *a) {
    if (a->kind == ARG_TABLE) text_printf(&r->tables, "%s", a->word);
    else if (a->kind == ARG_ADDRESS && a->at.base == BASE_STATIC) text_printf(&r->tables, "%s", a->at.array);
    else text_printf(&r->tables, "%lld", (long long)number_of(a));
}

// Wide fields first: nothing between them is lost.
static void print_table(RunText *r, const char *name, int n, const Field *fields, int times) {
    text_printf(&r->tables, "static const struct {");
    for (int size = 8; size >= 2; size /= 2)
        for (int i = 0; i < n; i++)
            if (fields[i].size == size) text_printf(&r->tables, " %s%s;", fields[i].type, fields[i].name);
    text_printf(&r->tables, " } %s[%d] = {\n", name, times);
    for (int row = 0; row < times; row++) {
        const char *between = "    {";
        for (int size = 8; size >= 2; size /= 2)
            for (int i = 0; i < n; i++) {
                if (fields[i].size != size) continue;
                text_printf(&r->tables, "%s", between);
                print_value(r, &fields[i].rows[row]);
                between = ", ";
            }
        text_printf(&r->tables, "},\n");
    }
    text_printf(&r->tables, "};\n");
}

// ---------------------------------------------------------------- the loop
static const char *field_text(RunText *r, const Argument *a, const char *at) {
    Arena *arena = r->g->arena;
    if (a->kind != ARG_ADDRESS || a->at.base == BASE_STATIC) return at;
    if (!a->at.type) return arena_printf(arena, "work + %s", at);
    return arena_printf(arena, "(%s *)(void *)(work + %s)", a->at.type, at);
}

static bool same_in_all(const Rolled *c, int call, int argument) {
    for (int i = 1; i < c->times; i++)
        if (!equal(&c->calls[call].at[argument], &c->calls[i * c->period + call].at[argument])) return false;
    return true;
}

static Field take_field(RunText *r, const Rolled *c, int call, int argument, int number) {
    Arena *a = r->g->arena;
    Field f = { .rows = NEW_ARRAY(a, Argument, c->times), .name = arena_printf(a, "a%d", number) };
    for (int i = 0; i < c->times; i++) f.rows[i] = c->calls[i * c->period + call].at[argument];
    choose_type(a, &f, c->times);
    return f;
}

// f, or the one before that has the same in all rows: what a kernel writes the next one reads.
static const Field *field_of(Field *all, int *n, Field f, int times) {
    for (int i = 0; i < *n; i++) {
        int same = 0;
        while (same < times && fits(&all[i].rows[same], &f.rows[same]) && equal(&all[i].rows[same], &f.rows[same]))
            same++;
        if (same == times) return &all[i];
    }
    all[*n] = f;
    return &all[(*n)++];
}

static int fields_of(const Rolled *c) {
    int n = 0;
    for (int call = 0; call < c->period; call++)
        for (int j = 0; j < c->calls[call].n; j++) n += !same_in_all(c, call, j);
    return n;
}

static void print_loop(RunText *r, const Plan *p, int first, const Rolled *c, int depth) {
    Arena *a = r->g->arena;
    const char *name = arena_printf(a, "%s_calls", ((const KernelText *)p->kernels.at[first]->text)->name);
    Field *fields = NEW_ARRAY(a, Field, fields_of(c) + 1);
    int n = 0;
    c_line(r, depth);
    text_printf(&r->body, "for (int call = 0; call < %d; call++) {\n", c->times);
    for (int i = 0; i < c->period; i++) {
        c_line(r, depth + 1);
        text_printf(&r->body, "%s(", function(p, first + i));
        for (int j = 0; j < c->calls[i].n; j++) {
            const Argument *argument = &c->calls[i].at[j];
            const char *text = c_argument_text(r, argument);
            if (!same_in_all(c, i, j)) {
                const Field *f = field_of(fields, &n, take_field(r, c, i, j, n), c->times);
                text = field_text(r, argument, arena_printf(a, "%s[call].%s", name, f->name));
            }
            text_printf(&r->body, "%s%s", j ? ", " : "", text);
        }
        text_printf(&r->body, ");\n");
    }
    c_line(r, depth);
    text_printf(&r->body, "}\n");
    if (n && !c_says_word(r->tables.n ? r->tables.at : "", name)) print_table(r, name, n, fields, c->times);
}

int c_rolled(RunText *r, const Plan *plan, int i, int depth) {
    const CFile *g = r->g;
    if (!g->options->small || g->options->profile || g->handover || g->threads) return 0;
    const Rolled c = find(r, plan, i);
    if (!c.times || !fields_of(&c)) return 0;
    print_loop(r, plan, i, &c, depth);
    return c.period * c.times;
}
