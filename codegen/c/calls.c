// SPDX-License-Identifier: MIT OR Apache-2.0
// The calls of a program's kernels, as lists of arguments: where operands lie, sizes, scratch memory, over the run
// function's variables:
//
//   lenet_k3_conv2(lenet_run_w1, (float *)(void *)(work + 0), (float *)(void *)(work + 6272));
#include "run.h"
#include "schedule/cpu/templates.h"

void c_line(RunText *r, int depth) { for (int i = 0; i < depth; i++) text_printf(&r->body, "    "); }

#include <string.h>

// ---------------------------------------------------------------- addresses
static int64_t work_offset(const Buffer *b) {           // a region's buffers count from its scratch memory
    int64_t at = 0;
    for (; b; b = b->base) at += b->offset;
    return at;
}

static int bank_of(const Buffer *b) {
    while (b->base) b = b->base;
    return b->bank;
}

static Address address_of(const RunText *r, Buffer *at, const Value *v, const char *type) {
    int64_t offset;
    const Buffer *b = buffer_owner(at, &offset);
    Address a = { .type = type, .offset = offset, .value = b->value };
    switch (b->place) {
    case PLACE_INPUT: case PLACE_OUTPUT:
        a.base = b->place == PLACE_INPUT ? BASE_INPUT : BASE_OUTPUT;
        a.index = b->index;
        return a;
    case PLACE_WEIGHT:
        a.base = weights_in_file(b) && (r->g->external || r->g->handover) ? BASE_CONSTANTS : BASE_STATIC;
        a.index = b->id;
        a.array = b->array;
        a.offset += b->offset;
        return a;
    default:
        a.base = BASE_WORK;
        a.index = bank_of(b);
        a.offset = work_offset(b);
        // counted in pointers: theirs may be shorter
        if (v->type.dtype == DT_STRING) a.strings = offset / (int64_t)dtype_size(DT_STRING);
        else a.offset += offset;
        return a;
    }
}

static Address scratch_of(const Buffer *b) {
    return (Address){ .base = BASE_WORK, .index = bank_of(b), .offset = work_offset(b) };
}

// The variable that an address is counted from.
static const char *base_text(RunText *r, const Address *a) {
    r->uses[a->base] = true;
    if (a->base == BASE_STATIC) return a->array;
    if (a->base == BASE_WORK) r->banks |= 1u << a->index;
    if (a->base == BASE_WORK && c_has_banks(r->g)) return arena_printf(r->g->arena, "work%d", a->index);
    if (a->base == BASE_WORK) return "work";
    if (a->base == BASE_CONSTANTS) return "constants";
    return (a->base == BASE_INPUT ? &r->s->in : &r->s->outs)->at[a->index];
}

static const char *element_pointer(Arena *a, const char *type, bool is_const, const char *base, int64_t offset) {
    return arena_printf(a, "(%s%s *)(%svoid *)(%s + %lld)", is_const ? "const " : "", type, is_const ? "const " : "",
        base, (long long)offset);
}

static const char *address_text(RunText *r, const Address *a) {
    Arena *arena = r->g->arena;
    const char *base = base_text(r, a);
    switch (a->base) {
    case BASE_STATIC: return base;
    case BASE_INPUT: case BASE_OUTPUT: {
        bool input = a->base == BASE_INPUT;
        DType d = a->value->type.dtype;
        if (strcmp(a->type, spell_c_storage(d)))
            return element_pointer(arena, a->type, input,
                arena_printf(arena, "(%sunsigned char *)%s", input ? "const " : "", base), a->offset);
        if (!a->offset) return base;
        return arena_printf(arena, "%s + %lld", base, (long long)(a->offset / (int64_t)dtype_size(d)));
    }
    default:
        if (!a->type) return arena_printf(arena, "%s + %lld", base, (long long)a->offset);
        base = element_pointer(arena, a->type, a->base == BASE_CONSTANTS, base, a->offset);
        return a->strings ? arena_printf(arena, "%s + %lld", base, (long long)a->strings) : base;
    }
}

static Address value_address(const RunText *r, const Value *v) {
    return address_of(r, plan_value(r->s->program->plan, v).buffer, v, spell_c_storage(v->type.dtype));
}

const char *c_value_place(RunText *r, const Value *v) {
    const Address a = value_address(r, v);
    return address_text(r, &a);
}

// ---------------------------------------------------------------- lists of arguments
static void add(const RunText *r, Arguments *to, Argument a) { VEC_PUSH(r->g->arena, *to, a); }
static void add_word(const RunText *r, Arguments *to, const char *word) {
    add(r, to, (Argument){ .kind = ARG_WORD, .word = word });
}

// The number of the member of k's strips that stores v for the next one; else -1.
static int between_strips(const Kernel *k, const Value *v) {
    for (int i = 0; k->strips && i + 1 < k->strips->n; i++)
        if (k->strips->member[i]->writes.at[0] == v) return i;
    return -1;
}

// From where to where it goes in a step, and the pixels that its input and its result begin with; a loop steps along an
// axis, and its operands are counted from pixels that are not there.
static void strip_arguments(const RunText *r, const Kernel *k, Arguments *to) {
    const Strips *s = k->strips;
    Arena *a = r->g->arena;
    int i = 0;
    while (s->member[i] != k) i++;
    if (k->kind == KERNEL_LOOP) {
        const char *by = s->steps[i] > 1 ? arena_printf(a, " * %lld", (long long)s->steps[i]) :
            s->pixels[i] > 1             ? arena_printf(a, " / %lld", (long long)s->pixels[i]) :
                                           "";
        add_word(r, to, arena_printf(a, "was[%d]%s", i, by));
        add_word(r, to, arena_printf(a, "now[%d]%s", i, by));
        return;
    }
    add_word(r, to, arena_printf(a, "was[%d]", i));
    add_word(r, to, arena_printf(a, "now[%d]", i));
    add_word(r, to, s->from[i] >= 0 ? arena_printf(a, "now[%d]", s->n + s->from[i]) : "0");
    add_word(r, to, i + 1 < s->n ? arena_printf(a, "now[%d]", s->n + i) : "0");
}

static void scratch_argument(const RunText *r, const Kernel *k, Arguments *to) {
    const int workers = k->strips ? k->strips->workers : k->workers;
    if (!k->scratch) {
        add_word(r, to, "(unsigned char *)0");
        return;
    }
    add(r, to,
        (Argument){ .kind = ARG_ADDRESS,
            .at = scratch_of(k->scratch),
            .written = true,
            .worker_step = workers > 1 ? k->scratch_bytes / workers : 0 });
}

Argument c_strip_rows(const RunText *r, const Strips *s, int i) {
    return (Argument){ .kind = ARG_ADDRESS,
        .at = value_address(r, s->member[i]->writes.at[0]),
        .written = true,
        .worker_step = s->workers > 1 ? s->elements[i] : 0 };
}

static Argument operand_argument(const RunText *r, const Kernel *k, const KernelText *t, int j) {
    const Value *v = t->params[j].value;
    // of a convolution the weights come first; what it convolves is another value
    bool packed = k->packed && k->packed->value == v && j < (kernel_is_conv(k) ? 1 : t->first_shared);
    const int between = between_strips(k, v);
    Argument a = { .kind = ARG_ADDRESS, .plus = t->params[j].at, .written = t->params[j].written };
    a.at = packed ? address_of(r, k->packed, v, spell_c_storage(k->packed->element)) : value_address(r, v);
    if (between >= 0 && k->strips->workers > 1) a.worker_step = k->strips->elements[between];
    if (between >= 0 && j >= t->first_shared)           // elements counted from the first pixel, which is not there
        a.minus = arena_printf(r->g->arena, "now[%d] * %lld", k->strips->n + between,
            (long long)k->strips->width[between]);
    return a;
}

static const char *numbers(RunText *r, int n, const int64_t *v) {
    Text t;
    text_init(&t, r->g->arena);
    for (int i = 0; i < n; i++) text_printf(&t, "%s%lld", i ? ", " : "(const ptrdiff_t[]){", (long long)v[i]);
    text_append(&t, "}", 1);
    return t.at;
}

void c_pack(RunText *r, const Kernel *k, int depth) {
    const Convolution *c = &k->conv;
    const bool single = k->kind == KERNEL_DEPTHWISE;
    const int64_t oc = c->oc / c->groups, ic = c->ic / c->groups,
                  stride[] = { single ? 0 : c->w_group, single ? c->w_group : c->w_oc, c->w_ic, c->w_tap[0],
                      c->w_tap[1], c->w_tap[2] };
    Address to = address_of(r, k->packed, k->packed->value, spell_c_storage(DT_F32));
    Address from = value_address(r, k->packed->value);
    from.offset += c->w_at * (int64_t)sizeof(float);
    const char *place = address_text(r, &to), *weights = address_text(r, &from);
    c_line(r, depth);
    if (k->template == &template_winograd) {
        const int64_t size[] = { template_hole_value(k, "TH") + c->kernel[1] - 1,
            template_hole_value(k, "TW") + c->kernel[2] - 1 };
        text_printf(&r->body, "burn_pack_w_winograd(%s, %s, %lld, %lld, %lld, %s, %s, %s);\n", place, weights,
            (long long)oc, (long long)ic, (long long)c->w_panel, numbers(r, 3, c->kernel), numbers(r, 2, size),
            numbers(r, COUNT(stride), stride));
        return;
    }
    text_printf(&r->body, "burn_pack_w_conv(%s, %s, %lld, %lld, %lld, %lld, %lld, %s, %s);\n", place, weights,
        (long long)(single ? 1 : c->groups), (long long)c->w_merge, (long long)(single ? c->groups : oc), (long long)ic,
        (long long)c->w_panel, numbers(r, 3, c->kernel), numbers(r, COUNT(stride), stride));
}

// Numbers that calls of one function differ in, as a constant array, one for all calls with the same: a call that gives
// its address is short.
static const char *sizes_table(RunText *r, const KernelText *t) {
    const char *name = arena_printf(r->tables.arena, "%s_sizes", t->name);
    Text sizes;
    text_init(&sizes, r->g->arena);
    text_printf(&sizes, "[] = {");
    for (int i = 0; i < t->hole_numbers; i++)
        text_printf(&sizes, "%s%lld", i ? ", " : "", (long long)t->numbers.at[i].value);
    text_printf(&sizes, "};\n");
    const char *same = r->tables.n ? strstr(r->tables.at, sizes.at) : NULL;
    if (same) {
        const char *from = same;
        while (from > r->tables.at && from[-1] != ' ') from--;
        return arena_strndup(r->tables.arena, from, (size_t)(same - from));
    }
    text_printf(&r->tables, "static const ptrdiff_t %s%s", name, sizes.at);
    return name;
}

Arguments c_arguments(RunText *r, const Kernel *k) {
    const KernelText *t = k->text;
    Arguments all = { 0 };
    if (t->handed) add_word(r, &all, "burn_gpu");
    for (int j = 0; j < t->n_params; j++) add(r, &all, operand_argument(r, k, t, j));
    for (int j = 0; j < t->n_sizes; j++) add(r, &all, (Argument){ .kind = ARG_SIZE, .value = t->sizes[j] });
    if (t->table) add(r, &all, (Argument){ .kind = ARG_TABLE, .word = sizes_table(r, t) });
    for (int j = t->table ? t->hole_numbers : 0; j < t->numbers.n; j++)
        add(r, &all, (Argument){ .kind = ARG_NUMBER, .value = t->numbers.at[j].value });
    if (k->string_bytes) add_word(r, &all, "&strings");
    const bool own_scratch = template_takes_scratch(k) && (k->kind != KERNEL_CALL || k->scratch_bytes);
    if (own_scratch || (t->handed && k->scratch_bytes)) scratch_argument(r, k, &all);
    if (k->strips) strip_arguments(r, k, &all);
    else if (c_takes_range(k))
        for (int end = 0; end < 2; end++)
            add(r, &all,
                (Argument){ .kind = end ? ARG_LAST : ARG_FIRST,
                    .value = k->axes.at[k->loop.part_axis].size,
                    .line = c_part_line(k),
                    .parts = k->parts });
    else if (k->parts > 1) add_word(r, &all, "part");
    return all;
}

const char *c_argument_origin(RunText *r, const Argument *a) {
    Arena *arena = r->g->arena;
    const Graph *g = r->s->graph;
    int n;
    if (a->kind == ARG_SIZE) return spell_symbol(arena, &graph_symbols(graph_root(g), &n)[a->value]);
    const char *text = address_text(r, &a->at);
    return a->plus ? arena_printf(arena, "%s + %s", text, spell_size(arena, g, a->plus)) : text;
}

void c_argument_further(Text *out, const Argument *a, const char *step) {
    if (a->worker_step) text_printf(out, " + %s * worker", step);
    if (a->minus) text_printf(out, " - %s", a->minus);
}

const char *c_argument_text(RunText *r, const Argument *a) {
    Text out;
    if (a->kind == ARG_NUMBER) return number_text(r->g->arena, a->value);
    if (a->kind == ARG_WORD || a->kind == ARG_TABLE) return a->word;
    text_init(&out, r->g->arena);
    text_printf(&out, "%s", c_argument_origin(r, a));
    if (a->kind == ARG_ADDRESS) c_argument_further(&out, a, number_text(r->g->arena, a->worker_step));
    return out.at;
}

const char *c_arguments_text(RunText *r, const Arguments *all) {
    Text out;
    text_init(&out, r->g->arena);
    for (int i = 0; i < all->n; i++)
        text_printf(&out, "%s%s", i ? ", " : "", c_argument_text(r, &all->at[i]));
    return out.n ? out.at : "";
}
