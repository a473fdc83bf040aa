// SPDX-License-Identifier: MIT OR Apache-2.0
// The calls of a program's kernels: where their operands lie, kernels that --threads share out in parts, and those
// that go strip by strip.
#include "run.h"

#include <ctype.h>
#include <string.h>

// ---------------------------------------------------------------- operands
static int64_t work_offset(const Buffer *b) {           // a region's buffers count from its scratch memory
    int64_t at = 0;
    for (; b; b = b->base) at += b->offset;
    return at;
}

static const char *element_pointer(Gen *g, const char *type, bool is_const, const char *base, int64_t offset) {
    return arena_printf(g->arena, "(%s%s *)(%svoid *)(%s + %lld)", is_const ? "const " : "", type,
        is_const ? "const " : "", base, (long long)offset);
}

// Where a value's elements are, as an expression of the run function.
static const char *place_of(const Run *r, Buffer *at, const Value *v, const char *type) {
    Gen *g = r->g;
    int64_t offset;
    Buffer *b = buffer_owner(at, &offset);
    switch (b->place) {
    case PLACE_INPUT: case PLACE_OUTPUT: {
        bool input = b->place == PLACE_INPUT, same = !strcmp(type, expr_c_storage(b->value->type.dtype));
        const char *name = input ? r->in->at[b->index] : r->outs->at[b->index];
        if (same)
            return offset ?
                arena_printf(g->arena, "%s + %lld", name, (long long)(offset / (int64_t)dtype_size(v->type.dtype))) :
                name;
        return element_pointer(
            g, type, input, arena_printf(g->arena, "(%sunsigned char *)%s", input ? "const " : "", name), offset);
    }
    case PLACE_WEIGHT:
        if (!g->external || b->value->type.dtype == DT_STRING)
            return arena_printf(g->arena, "%s_w%d", r->p->name, b->id);
        return element_pointer(g, type, true, "constants", b->offset + offset);
    default:
        if (v->type.dtype == DT_STRING && offset)           // counted in pointers: theirs may be shorter
            return arena_printf(g->arena, "%s + %lld", element_pointer(g, type, false, "work", work_offset(b)),
                (long long)(offset / (int64_t)dtype_size(DT_STRING)));
        return element_pointer(g, type, false, "work", work_offset(b) + offset);
    }
}

const char *c_value_place(const Run *r, Value *v) {
    return place_of(r, plan_value(r->p->plan, v).buffer, v, expr_c_storage(v->type.dtype));
}

void c_line(Run *r, int depth) { for (int i = 0; i < depth; i++) text_printf(&r->body, "    "); }

// The number of the member of k's strips that stores v for the next one; else -1.
static int between_strips(const Kernel *k, const Value *v) {
    for (int i = 0; k->strips && i + 1 < k->strips->n; i++)
        if (k->strips->member[i]->writes.at[0] == v) return i;
    return -1;
}

// From where to where it goes in a step, and the pixels that its input and its result begin with.
static void strip_arguments(const Kernel *k, Text *out) {
    const Strips *s = k->strips;
    int i = 0;
    while (s->member[i] != k) i++;
    text_printf(out, ", was[%d], now[%d], ", i, i);
    text_printf(out, i ? "now[%d], " : "0, ", s->n + i - 1);
    text_printf(out, i + 1 < s->n ? "now[%d]" : "0", s->n + i);
}

// The arguments of a kernel's call; where it goes in parts, those of the part `part`.
static const char *call_arguments(const Run *r, const Kernel *k) {
    const KernelText *t = k->text;
    Text out;
    text_init(&out, r->g->arena);
    for (int j = 0; j < t->n_params; j++) {
        const Value *v = t->params[j].value;
        bool packed = k->packed && k->packed->value == v && j < t->first_shared;
        Buffer *at = packed ? k->packed : plan_value(r->p->plan, v).buffer;
        text_printf(&out, "%s%s", j ? ", " : "",
            place_of(r, at, v, packed ? k->packed->element : expr_c_storage(v->type.dtype)));
        const int between = between_strips(k, v);
        if (between >= 0 && k->strips->parts > 1)
            text_printf(&out, " + %lld * part", (long long)k->strips->floats[between]);
        if (t->params[j].at) text_printf(&out, " + %s", dim_c_text(r->g->arena, r->g->plan->graph, t->params[j].at));
    }
    for (int j = 0; j < t->kernel->sizes.n; j++)
        text_printf(&out, "%s%s", j || t->n_params ? ", " : "", c_size(r->g, t->kernel, j));
    if (t->y_pixel) text_printf(&out, ", %lld", (long long)t->y_pixel);
    if (k->string_bytes) text_printf(&out, ", &strings");
    if (k->template_file && (k->kind != KERNEL_CALL || k->scratch_bytes)) {
        text_printf(&out, ", %s",
            k->scratch ? arena_printf(r->g->arena, "work + %lld", (long long)work_offset(k->scratch)) :
                         "(unsigned char *)0");
        const int parts = k->strips ? k->strips->parts : k->parts;
        if (k->scratch && parts > 1) text_printf(&out, " + %lld * part", (long long)(k->scratch_bytes / parts));
    }
    if (k->strips) strip_arguments(k, &out);
    else if (k->parts > 1) text_printf(&out, ", part");
    return out.n ? out.at : "";
}

// ---------------------------------------------------------------- parts
// A kernel in parts is called by a function of its own, which finds the run's variables in a frame:
//
//   static void lenet_k3_conv2_part(void *argument, int part)
//   {
//       const volatile lenet_run_frame *frame = (const volatile lenet_run_frame *)argument;
//       lenet_k3_conv2(lenet_run_w1, (float *)(void *)(frame->work + 0), (float *)(void *)(frame->work + 6272),
//           frame->work + 12544 + 2048 * part, part);
//   }
//
// volatile: no two addresses are known to have one origin. gcc 12 expresses one by a multiple of another then, takes
// that for an access to memory at zero, and leaves out calls of the function, which in its eyes has no effect
// (tree-ssa-loop-ivopts.cc, ipa-pure-const.cc).
static bool is_word(char c) { return isalnum((unsigned char)c) || c == '_'; }

// The next mention of a variable, at or after `s`; after -> stands a field.
static const char *find_word(const char *text, const char *s, const char *name) {
    for (size_t n = strlen(name); n && (s = strstr(s, name)); s += n)
        if ((s == text || (!is_word(s[-1]) && s[-1] != '>')) && !is_word(s[n])) return s;
    return NULL;
}

// The same arguments with a variable that they may mention taken from the frame.
static const char *take_from_frame(Run *r, const char *arguments, const char *type, const char *name, bool set) {
    Text out;
    bool framed = false;
    const char *from = arguments, *at = find_word(arguments, arguments, name);
    if (!at) return arguments;
    text_init(&out, r->g->arena);
    for (; at; from = at + strlen(name), at = find_word(arguments, from, name)) {
        bool number = at > arguments && at[-1] == '&';  // passed by its address
        text_append(&out, from, (size_t)(at - from) - number);
        if (number) text_printf(&out, "(const %s*)&", type);
        text_printf(&out, "frame->%s", name);
    }
    text_printf(&out, "%s", from);
    for (int i = 0; i < r->framed.n; i++) framed = framed || !strcmp(r->framed.at[i], name);
    if (framed) return out.at;
    VEC_PUSH(r->g->arena, r->framed, name);
    text_printf(&r->fields, "    %s%s;\n", type, name);
    if (set) text_printf(&r->settings, "    frame.%s = %s;\n", name, name);
    return out.at;
}

static const char *take_ends(Run *r, const char *arguments, const Ends *e, bool outputs) {
    const Graph *g = r->p->plan->graph;
    for (int i = 0; i < (outputs ? g->outputs.n : g->inputs.n); i++) {
        const Value *v = outputs ? g->outputs.at[i] : g->inputs.at[i];
        const char *storage = expr_c_storage(v->type.dtype),
                   *type = arena_printf(r->g->arena, "%s%s *", outputs ? "" : "const ", storage);
        if (c_in_struct(v) && c_struct_seen(g, i, outputs, v->role)) continue;
        if (c_in_struct(v))
            type = arena_printf(r->g->arena, "%s%s_%s *", c_struct_written(g, v->role) ? "" : "const ", r->g->model,
                c_struct_type(v->role));
        else if (v->role == ROLE_VALUE) type = arena_printf(r->g->arena, "%s ", storage);
        arguments = take_from_frame(
            r, arguments, type, c_in_struct(v) ? c_struct_param(v->role) : e->name[i], true);
    }
    return arguments;
}

// What a task calls a kernel with; `whole`: the same as the run function would.
static const char *framed_arguments(Run *r, const char *whole, int depth) {
    const char *arguments = whole;
    int n;
    const Symbol *symbols = graph_symbols(graph_root(r->p->plan->graph), &n);
    arguments = take_from_frame(r, arguments, "unsigned char *", "work", true);
    arguments = take_from_frame(r, arguments, "const unsigned char *", "constants", true);
    for (int i = 0; i < n; i++) {
        arguments = take_from_frame(r, arguments, "int64_t ", symbols[i].c_name, !symbols[i].from);
        if (!symbols[i].from || !find_word(whole, whole, symbols[i].c_name)) continue;
        c_line(r, depth);
        text_printf(&r->body, "frame.%s = %s;\n", symbols[i].c_name, symbols[i].c_name);
    }
    return take_ends(r, take_ends(r, arguments, r->in, false), r->outs, true);
}

static void begin_task(Run *r, const char *name) {
    const char *frame = arena_printf(r->g->arena, "const volatile %s_frame *", r->p->name);
    text_printf(&r->tasks, "static void %s_part(void *argument, int part)\n{\n    %sframe = (%s)argument;\n", name,
        frame, frame);
}

static void print_parts(Run *r, const Kernel *k, int depth) {
    const KernelText *t = k->text;
    const char *arguments = framed_arguments(r, call_arguments(r, k), depth);
    begin_task(r, t->name);
    text_printf(&r->tasks, "    %s(%s);\n}\n\n", t->function, arguments);
    c_line(r, depth);
    const char *threads = "threads";
    if (k->part_least > 0)
        threads = arena_printf(r->g->arena, "%s >= %lld ? threads : (const burn_threads *)0",
            dim_c_text(r->g->arena, r->p->plan->graph, k->part_size), (long long)k->part_least);
    text_printf(&r->body, "burn_parts(%s, %d, %s_part, &frame);\n", threads, k->parts, t->name);
}

// ---------------------------------------------------------------- strips
// Kernels that go strip by strip: a loop over the steps, whose limits stand in a table.
//
//   static const int net_k3_expand_strips[][5] = { {0, 0, 0, 0, 0}, {616, 224, 224, 0, 0}, ... };
//   for (int strip = 1; strip < 15; strip++) {
//       const int *const was = net_k3_expand_strips[strip - 1], *const now = net_k3_expand_strips[strip];
//       burn_keep((float *)(void *)(work + 4096), 144, was[3], now[3], was[0]);
//       net_k3_expand(..., was[0], now[0], 0, now[3]);
//       ...
//   }
static void print_table(Run *r, const Strips *s, const char *name) {
    const int n = 2 * s->n - 1;
    text_printf(&r->tables, "/* The pixels that");
    for (int i = 0; i < s->n; i++)
        text_printf(&r->tables, "%s %s", !i ? "" : i + 1 < s->n ? "," : " and", s->member[i]->name);
    text_printf(&r->tables,
        " have come to; those that the buffers between them begin with. */\nstatic const int %s_strips[][%d] = {\n",
        name, n);
    for (int i = 0; i < s->line.n; i++)
        text_printf(
            &r->tables, "%s%lld%s", i % n ? ", " : "    {", (long long)s->line.at[i], i % n == n - 1 ? "},\n" : "");
    text_printf(&r->tables, "};\n\n");
}

// `first`, `end`: the lines of the table; calls of a task where there are parts.
static void print_strip_loop(Run *r, Text *out, const Strips *s, int depth, const char *first, const char *end) {
    const KernelText *head = s->member[0]->text;
    const bool task = s->parts > 1;
    const char *indent = arena_printf(r->g->arena, "%*s", 4 * depth, "");
    text_printf(out, "%sfor (int strip = %s; strip < %s; strip++) {\n", indent, first, end);
    text_printf(out, "%s    const int *const was = %s_strips[strip - 1], *const now = %s_strips[strip];\n", indent,
        head->name, head->name);
    for (int i = 0; i + 1 < s->n; i++) {
        Value *v = s->member[i]->writes.at[0];
        const char *rows = c_value_place(r, v);
        if (task)
            rows = arena_printf(
                r->g->arena, "%s + %lld * part", framed_arguments(r, rows, depth), (long long)s->floats[i]);
        text_printf(out, "%s    burn_keep(%s, %lld, was[%d], now[%d], was[%d]);\n", indent, rows,
            (long long)s->width[i], s->n + i, s->n + i, i);
    }
    for (int i = 0; i < s->n; i++) {
        const char *arguments = call_arguments(r, s->member[i]);
        if (task) arguments = framed_arguments(r, arguments, depth);
        text_printf(out, "%s    %s(%s);\n", indent, ((const KernelText *)s->member[i]->text)->function, arguments);
    }
    text_printf(out, "%s}\n", indent);
}

void c_strips(Run *r, const Strips *s, int depth) {
    Gen *g = r->g;
    const char *name = ((const KernelText *)s->member[0]->text)->name;
    print_table(r, s, name);
    if (s->parts == 1) {
        print_strip_loop(r, &r->body, s, depth, "1", arena_printf(g->arena, "%d", s->part[1]));
        return;
    }
    begin_task(r, name);
    text_printf(&r->tasks, "    static const int first[] = {");
    for (int i = 0; i <= s->parts; i++) text_printf(&r->tasks, "%s%d", i ? ", " : "", s->part[i]);
    text_printf(&r->tasks, "};\n");
    print_strip_loop(r, &r->tasks, s, 1, "first[part] + 1", "first[part + 1]");
    text_printf(&r->tasks, "}\n\n");
    c_line(r, depth);
    text_printf(&r->body, "burn_parts(threads, %d, %s_part, &frame);\n", s->parts, name);
}

void c_call(Run *r, const Kernel *k, int depth) {
    const KernelText *t = k->text;
    if (k->parts > 1) {
        print_parts(r, k, depth);
        return;
    }
    c_line(r, depth);
    const int fails = kernel_fails(k);
    text_printf(&r->body, fails ? "if (%s(%s" : "%s(%s", t->function, call_arguments(r, k));
    if (fails)
        text_printf(&r->body, ")) return %d; /* BURN_%s */\n", fails, fails == -5 ? "ELIMIT" : "EFORMAT");
    else text_printf(&r->body, ");\n");
}
