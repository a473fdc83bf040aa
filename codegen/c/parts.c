// SPDX-License-Identifier: MIT OR Apache-2.0
// How a program calls its kernels: one after the other, in parts that --threads share out, or strip by strip.
#include "run.h"

// ---------------------------------------------------------------- marks
static const char run_track[] = C_RUN_TRACK, worker_track[] = "1 + worker";

void c_mark(const RunText *r, Text *out, int depth, const char *track, const Kernel *k) {
    if (!r->g->options->profile) return;
    if (k) text_printf(out, "%*sburncc_mark(%s, %d);\n", 4 * depth, "", track, k->number);
    else text_printf(out, "%*sburncc_unmark(%s);\n", 4 * depth, "", track);
}

// ---------------------------------------------------------------- parts
// A kernel in parts is called by a function that hands them out. They find their operands where it has put them:
//
//   typedef struct lenet_k3_conv2_call { const float *a0; float *a1; unsigned char *a2; } lenet_k3_conv2_call;
//
//   static void lenet_k3_conv2_part(void *argument, int worker, int part)
//   {
//       const volatile lenet_k3_conv2_call *call = (const volatile lenet_k3_conv2_call *)argument;
//       lenet_k3_conv2(call->a0, call->a1, 800, call->a2 + 2048 * worker, part);
//   }
//
//   BURN_APART static void lenet_k3_conv2_parts(const burn_threads *threads, const float *a0, float *a1, ...)
//   {
//       lenet_k3_conv2_call call = {a0, a1, a2};
//       burn_parts(threads, 2, 16, lenet_k3_conv2_part, &call);
//   }
//
// All calls that differ in where their operands lie, and in nothing else, share these, whichever program they are of: a
// training step calls the thousand kernels of its gradients again.
//
// volatile: no two addresses are known to have one origin. gcc 12 expresses one by a multiple of another then, takes
// that for an access to memory at zero, and leaves out calls of the function, which in its eyes has no effect
// (tree-ssa-loop-ivopts.cc, ipa-pure-const.cc).
//
// Where the calls of one function differ in numbers, too, these are operands as the others are: a hundred layers of
// other sizes share its task.
typedef struct Task {
    Text fields, params, given, body;                   // given: the arguments of the call in the run function
    int n;
    bool open;                                          // numbers are operands
    bool has_own;                                       // each worker has memory of its own
    int keepers;                                        // workers of which nothing may be kept before the first part
    Text forget;
} Task;

static Task task_new(Arena *a, bool open) {
    Task t = { .open = open };
    text_init(&t.fields, a);
    text_init(&t.params, a);
    text_init(&t.given, a);
    text_init(&t.body, a);
    text_init(&t.forget, a);
    return t;
}

// One more operand, as the task's body has it.
static const char *task_operand(RunText *r, Task *t, const char *type, const char *given) {
    text_printf(&t->fields, " %sa%d;", type, t->n);
    text_printf(&t->params, ", %sa%d", type, t->n);
    text_printf(&t->given, ", %s", given);
    return arena_printf(r->g->arena, "call->a%d", t->n++);
}

static const char *task_number(RunText *r, Task *t, int64_t value) {
    const char *number = number_text(r->g->arena, value);
    return t->open ? task_operand(r, t, "ptrdiff_t ", number) : number;
}

static void task_address(RunText *r, Task *t, Text *out, const Argument *x) {
    const char *type = x->at.type ? x->at.type : "unsigned char";
    const int at = t->n;
    text_printf(out, "%s",
        task_operand(r, t, arena_printf(r->g->arena, "%s%s *", x->written ? "" : "const ", type),
            c_argument_origin(r, x)));
    c_argument_further(out, x, x->worker_step ? task_number(r, t, x->worker_step) : "");
    t->has_own = t->has_own || x->worker_step;
    if (!t->keepers || !x->worker_step) return;
    const char *step =
        t->open ? arena_printf(r->g->arena, "a%d", at + 1) : number_text(r->g->arena, x->worker_step);
    text_printf(&t->forget, "    for (int i = 0; i < %d; i++) memset(a%d + %s * i, 0, 2 * sizeof(void *));\n",
        t->keepers, at, step);
}

// A list of arguments as the task's body has them. The end of a range comes behind its beginning.
static const char *task_arguments(RunText *r, Task *t, const Arguments *all) {
    const char *extent = "", *parts = "";
    Text out;
    text_init(&out, r->g->arena);
    for (int i = 0; i < all->n; i++) {
        const Argument *x = &all->at[i];
        text_printf(&out, "%s", i ? ", " : "");
        switch (x->kind) {
        case ARG_ADDRESS: task_address(r, t, &out, x); break;
        case ARG_SIZE: text_printf(&out, "%s", task_operand(r, t, "int64_t ", c_argument_origin(r, x))); break;
        case ARG_NUMBER: text_printf(&out, "%s", task_number(r, t, x->value)); break;
        case ARG_FIRST:
            extent = task_number(r, t, x->value);
            parts = task_number(r, t, x->parts);
            text_printf(&out, "burn_begin(%s, %d, part, %s)", extent, x->line, parts);
            break;
        case ARG_LAST: text_printf(&out, "burn_begin(%s, %d, part + 1, %s)", extent, x->line, parts); break;
        default: text_printf(&out, "%s", c_argument_text(r, x));
        }
    }
    return out.at;
}

static void print_task(RunText *r, const Task *t, const char *name, int workers, const char *parts) {
    const char *call = arena_printf(r->g->arena, "const volatile %s_call *", name);
    text_printf(&r->tasks, "typedef struct %s_call {%s } %s_call;\n\n", name, t->fields.at, name);
    text_printf(&r->tasks, "static void %s_part(void *argument, int worker, int part)\n{\n", name);
    text_printf(&r->tasks, "    %scall = (%s)argument;\n%s%s}\n\n", call, call,
        t->has_own ? "" : "    (void)worker;\n", t->body.at);
    text_printf(&r->tasks, "BURN_APART static void %s_parts(const burn_threads *threads%s%s)\n{\n", name,
        t->open ? ", int parts" : "", t->params.at);
    text_printf(&r->tasks, "    %s_call call = {", name);
    for (int i = 0; i < t->n; i++) text_printf(&r->tasks, "%sa%d", i ? ", " : "", i);
    text_printf(&r->tasks, "};\n%s    burn_parts(threads, %d, %s, %s_part, &call);\n}\n\n", t->forget.at, workers,
        parts, name);
}

// Its call, and the functions unless some call before has had the same.
static void print_task_call(RunText *r, const Task *t, const char *name, int workers, int parts, const char *threads) {
    CFile *g = r->g;
    const char *number = number_text(g->arena, parts), *inside = t->open ? "parts" : number,
               *key = arena_printf(g->arena, "%d %s%s\n%s%s", workers, inside, t->params.at, t->body.at, t->forget.at);
    char *known = strmap_get(g->tasks, key);
    if (!known) {
        known = arena_strdup(r->tasks.arena, name);
        print_task(r, t, known, workers, inside);
        strmap_put(g->tasks, key, known);
    }
    text_printf(&r->body, "%s_parts(%s%s%s%s);\n", known, threads, t->open ? ", " : "", t->open ? number : "",
        t->given.at);
}

static void print_parts(RunText *r, const Kernel *k, int depth) {
    const KernelText *t = k->text;
    const Arguments arguments = c_arguments(r, k);
    Task task = task_new(r->g->arena, *t->varies);
    task.keepers = k->keeps ? k->workers : 0;
    const char *text = task_arguments(r, &task, &arguments);
    c_mark(r, &task.body, 1, worker_track, k);
    text_printf(&task.body, "    %s(%s);\n", t->function, text);
    c_mark(r, &task.body, 1, worker_track, NULL);
    c_line(r, depth);
    const char *threads = "threads";
    if (k->part_least > 0)
        threads = arena_printf(r->g->arena, "%s >= %lld ? threads : (const burn_threads *)0",
            spell_size(r->g->arena, r->s->graph, k->part_size), (long long)k->part_least);
    print_task_call(r, &task, t->name, k->workers, k->parts, threads);
}

// ---------------------------------------------------------------- strips
// Kernels that go strip by strip: a loop over the steps, whose limits stand in a table.
//
//   static const int net_k3_expand_strips[][5] = { {0, 0, 0, 0, 0}, {616, 224, 224, 0, 0}, ... };
//   for (int strip = 1; strip < 15; strip++) {
//       const int *const was = net_k3_expand_strips[strip - 1], *const now = net_k3_expand_strips[strip];
//       burn_keep((float *)(void *)(work + 4096), 576, was[3], now[3], was[0]);
//       net_k3_expand(..., was[0], now[0], 0, now[3]);
//       ...
//   }
static void print_table(RunText *r, const Strips *s, const char *name) {
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

static const char *strip_arguments(RunText *r, Task *t, const Arguments *all) {
    return t ? task_arguments(r, t, all) : c_arguments_text(r, all);
}

// `first`, `end`: the lines of the table; calls of a task where there are parts, else NULL.
static void print_strip_loop(
    RunText *r, Text *out, const Strips *s, int depth, const char *first, const char *end, Task *task) {
    const KernelText *head = s->member[0]->text;
    const char *indent = arena_printf(r->g->arena, "%*s", 4 * depth, "");
    text_printf(out, "%sfor (int strip = %s; strip < %s; strip++) {\n", indent, first, end);
    text_printf(out, "%s    const int *const was = %s_strips[strip - 1], *const now = %s_strips[strip];\n", indent,
        head->name, head->name);
    for (int i = 0; i + 1 < s->n; i++) {
        Arguments rows = { 0 };
        VEC_PUSH(r->g->arena, rows, c_strip_rows(r, s, i));
        const int64_t pixel = s->width[i] * (int64_t)dtype_size(s->member[i]->writes.at[0]->type.dtype);
        text_printf(out, "%s    burn_keep(%s, %lld, was[%d], now[%d], was[%d]);\n", indent,
            strip_arguments(r, task, &rows), (long long)pixel, s->n + i, s->n + i, i);
    }
    for (int i = 0; i < s->n; i++) {
        const Arguments arguments = c_arguments(r, s->member[i]);
        c_mark(r, out, depth + 1, task ? worker_track : run_track, s->member[i]);
        text_printf(out, "%s    %s(%s);\n", indent, ((const KernelText *)s->member[i]->text)->function,
            strip_arguments(r, task, &arguments));
        c_mark(r, out, depth + 1, task ? worker_track : run_track, NULL);
    }
    text_printf(out, "%s}\n", indent);
}

void c_strips(RunText *r, const Strips *s, int depth) {
    CFile *g = r->g;
    const char *name = ((const KernelText *)s->member[0]->text)->name;
    if (!r->ran) print_table(r, s, name);
    if (s->parts == 1) {
        print_strip_loop(r, &r->body, s, depth, "1", arena_printf(g->arena, "%d", s->part[1]), NULL);
        return;
    }
    Task task = task_new(g->arena, false);
    text_printf(&task.body, "    static const int first[] = {");
    for (int i = 0; i <= s->parts; i++) text_printf(&task.body, "%s%d", i ? ", " : "", s->part[i]);
    text_printf(&task.body, "};\n");
    print_strip_loop(r, &task.body, s, 1, "first[part] + 1", "first[part + 1]", &task);
    c_mark(r, &r->body, depth, run_track, s->member[0]);
    c_line(r, depth);
    print_task_call(r, &task, name, s->workers, s->parts, "threads");
    c_mark(r, &r->body, depth, run_track, NULL);
}

static void print_call(RunText *r, const Kernel *k, int depth) {
    const KernelText *t = k->text;
    if (kernel_packs(k)) c_pack(r, k, depth);
    if (k->parts > 1) {
        print_parts(r, k, depth);
        return;
    }
    const Arguments arguments = c_arguments(r, k);
    c_line(r, depth);
    const int fails = kernel_fails(k);
    text_printf(&r->body, fails ? "if (%s(%s" : "%s(%s", t->function, c_arguments_text(r, &arguments));
    if (fails)
        text_printf(&r->body, ") != 0) return %d; /* BURN_%s */\n", fails, fails == -5 ? "ELIMIT" : "EFORMAT");
    else text_printf(&r->body, ");\n");
}

void c_call(RunText *r, const Kernel *k, int depth) {
    c_mark(r, &r->body, depth, run_track, k);
    print_call(r, k, depth);
    c_mark(r, &r->body, depth, run_track, NULL);
}
