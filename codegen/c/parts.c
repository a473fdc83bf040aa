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
// A kernel in parts is called by a function of its own, which finds the run's variables in a frame:
//
//   static void lenet_k3_conv2_part(void *argument, int worker, int part)
//   {
//       const volatile lenet_run_frame *frame = (const volatile lenet_run_frame *)argument;
//       lenet_k3_conv2(lenet_run_w1, (float *)(void *)(frame->work + 0), (float *)(void *)(frame->work + 6272),
//           frame->work + 12544 + 2048 * worker, part);
//   }
//
// volatile: no two addresses are known to have one origin. gcc 12 expresses one by a multiple of another then, takes
// that for an access to memory at zero, and leaves out calls of the function, which in its eyes has no effect
// (tree-ssa-loop-ivopts.cc, ipa-pure-const.cc). has_own: each worker has memory of its own.
static void begin_task(RunText *r, const char *name, bool has_own) {
    const char *frame = arena_printf(r->g->arena, "const volatile %s_frame *", r->s->program->name);
    text_printf(&r->tasks, "static void %s_part(void *argument, int worker, int part)\n{\n", name);
    text_printf(&r->tasks, "    %sframe = (%s)argument;\n%s", frame, frame, has_own ? "" : "    (void)worker;\n");
}

static bool has_own(const Arguments *all) {
    for (int i = 0; i < all->n; i++)
        if (all->at[i].kind == ARG_ADDRESS && all->at[i].worker_step) return true;
    return false;
}

static void print_parts(RunText *r, const Kernel *k, int depth) {
    const KernelText *t = k->text;
    const Arguments arguments = c_arguments(r, k);
    c_arguments_frame(r, &arguments, depth);
    if (!r->ran) {
        begin_task(r, t->name, has_own(&arguments));
        c_mark(r, &r->tasks, 1, worker_track, k);
        text_printf(&r->tasks, "    %s(%s);\n", t->function, c_arguments_text(r, &arguments, true));
        c_mark(r, &r->tasks, 1, worker_track, NULL);
        text_printf(&r->tasks, "}\n\n");
    }
    c_line(r, depth);
    const char *threads = "threads";
    if (k->part_least > 0)
        threads = arena_printf(r->g->arena, "%s >= %lld ? threads : (const burn_threads *)0",
            spell_size(r->g->arena, r->s->graph, k->part_size), (long long)k->part_least);
    text_printf(&r->body, "burn_parts(%s, %d, %d, %s_part, &frame);\n", threads, k->workers, k->parts, t->name);
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

// `first`, `end`: the lines of the table; calls of a task where there are parts.
static void print_strip_loop(RunText *r, Text *out, const Strips *s, int depth, const char *first, const char *end) {
    const KernelText *head = s->member[0]->text;
    const bool task = s->parts > 1;
    const char *indent = arena_printf(r->g->arena, "%*s", 4 * depth, "");
    text_printf(out, "%sfor (int strip = %s; strip < %s; strip++) {\n", indent, first, end);
    text_printf(out, "%s    const int *const was = %s_strips[strip - 1], *const now = %s_strips[strip];\n", indent,
        head->name, head->name);
    for (int i = 0; i + 1 < s->n; i++) {
        Arguments rows = { 0 };
        VEC_PUSH(r->g->arena, rows, c_strip_rows(r, s, i));
        if (task) c_arguments_frame(r, &rows, depth);
        const int64_t pixel = s->width[i] * (int64_t)dtype_size(s->member[i]->writes.at[0]->type.dtype);
        text_printf(out, "%s    burn_keep(%s, %lld, was[%d], now[%d], was[%d]);\n", indent,
            c_arguments_text(r, &rows, task), (long long)pixel, s->n + i, s->n + i, i);
    }
    for (int i = 0; i < s->n; i++) {
        const Arguments arguments = c_arguments(r, s->member[i]);
        if (task) c_arguments_frame(r, &arguments, depth);
        c_mark(r, out, depth + 1, task ? worker_track : run_track, s->member[i]);
        text_printf(out, "%s    %s(%s);\n", indent, ((const KernelText *)s->member[i]->text)->function,
            c_arguments_text(r, &arguments, task));
        c_mark(r, out, depth + 1, task ? worker_track : run_track, NULL);
    }
    text_printf(out, "%s}\n", indent);
}

static void print_strip_task(RunText *r, const Strips *s, const char *name) {
    begin_task(r, name, true);
    text_printf(&r->tasks, "    static const int first[] = {");
    for (int i = 0; i <= s->parts; i++) text_printf(&r->tasks, "%s%d", i ? ", " : "", s->part[i]);
    text_printf(&r->tasks, "};\n");
    print_strip_loop(r, &r->tasks, s, 1, "first[part] + 1", "first[part + 1]");
    text_printf(&r->tasks, "}\n\n");
}

void c_strips(RunText *r, const Strips *s, int depth) {
    CFile *g = r->g;
    const char *name = ((const KernelText *)s->member[0]->text)->name;
    if (!r->ran) print_table(r, s, name);
    if (s->parts == 1) {
        print_strip_loop(r, &r->body, s, depth, "1", arena_printf(g->arena, "%d", s->part[1]));
        return;
    }
    if (!r->ran) print_strip_task(r, s, name);
    c_mark(r, &r->body, depth, run_track, s->member[0]);
    c_line(r, depth);
    text_printf(&r->body, "burn_parts(threads, %d, %d, %s_part, &frame);\n", s->workers, s->parts, name);
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
    text_printf(&r->body, fails ? "if (%s(%s" : "%s(%s", t->function, c_arguments_text(r, &arguments, false));
    if (fails)
        text_printf(&r->body, ") != 0) return %d; /* BURN_%s */\n", fails, fails == -5 ? "ELIMIT" : "EFORMAT");
    else text_printf(&r->body, ");\n");
}

void c_call(RunText *r, const Kernel *k, int depth) {
    c_mark(r, &r->body, depth, run_track, k);
    print_call(r, k, depth);
    c_mark(r, &r->body, depth, run_track, NULL);
}
