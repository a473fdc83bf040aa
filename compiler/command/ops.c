// SPDX-License-Identifier: MIT OR Apache-2.0
// burncc ops: what is supported. In: the front ends' rows and the op table. Out: tables, as text, Markdown or
// JSON: the operators of each format (ONNX) with their versions, and the operations that they become, with gradient and
// kernels.
// Nothing is listed by hand here.
#include "command.h"

#include "ops/table.h"

#include <stdlib.h>
#include <string.h>

static int compare_rows(const void *x, const void *y) {
    const Support *a = x, *b = y;
    int order = strcmp(a->domain, b->domain);
    if (!order) order = strcmp(a->op, b->op);
    return order ? order : (a->since > b->since) - (a->since < b->since);
}

static const Support *sorted_rows(Arena *a, const FrontEnd *format, int *count) {
    const Support *rows = format->support(a, count);
    Support *sorted = arena_copy(a, rows, sizeof *rows * (size_t)*count);
    qsort(sorted, (size_t)*count, sizeof *sorted, compare_rows);
    return sorted;
}

// The versions of n rows of one operator: "1-10, 13+"; adjoining ranges are one.
static const char *versions_text(Arena *a, const Support *rows, int n, int latest) {
    Text t;
    text_init(&t, a);
    for (int i = 0; i < n;) {
        int since = rows[i].since, until = rows[i].until;
        for (i++; i < n && rows[i].since <= until + 1LL; i++)
            if (rows[i].until > until) until = rows[i].until;
        text_printf(&t, "%s%d", t.n ? ", " : "", since);
        if (until >= latest) text_printf(&t, "+");
        else if (until > since) text_printf(&t, "-%d", until);
    }
    return t.at;
}

static const char *gradient_text(const OpInfo *info) {
    if (info->kind == KIND_COMPOSITE) return "derived";
    return info->grad == grad_none ? "no" : info->grad == grad_zero ? "zero" : "yes";
}

// How an operation gets its kernel: within others' (an element expression), one of its own, or through the operations
// it expands into, where no back end claims it.
static const char *kernel_text(const OpInfo *info) {
    if (info->kind == KIND_COMPOSITE) return info->lower == lower_none ? "expanded" : "claimed";
    return info->lower == lower_none ? "own" : "fused";
}

static const char *const kind_names[] = {
    [KIND_PRIMITIVE] = "primitive", [KIND_MAP] = "map", [KIND_COMPOSITE] = "composite"
};

typedef struct Style { const char *title, *head_support, *row_support, *head_ops, *row_ops; } Style;
static const Style plain = { "%s\n\n", "  %-28s %-12s %s\n", "  %-28s %-12s %s\n", "  %-28s %-12s %-10s %s\n",
    "  %-28s %-12s %-10s %s\n" };
static const Style markdown = { "## %s\n\n", "| %s | %s | %s |\n|---|---|---|\n", "| %s | %s | %s |\n",
    "| %s | %s | %s | %s |\n|---|---|---|---|\n", "| %s | %s | %s | %s |\n" };

static void print_row(Text *t, const char *format, const char *const *cells) {
    for (const char *f = format; *f;) {                 // formats are the constants above: %s with an optional width
        if (*f != '%') {
            text_append(t, f++, 1);
            continue;
        }
        char one[8];
        size_t n = strcspn(f, "s") + 1;
        memcpy(one, f, n);
        one[n] = 0;
        int width = atoi(one + 1 + (one[1] == '-'));
        text_printf(t, "%-*s", width, *cells++);
        f += n;
    }
}

static void print_support(Text *t, Arena *a, const Style *s, const FrontEnd *format) {
    int count;
    const Support *rows = sorted_rows(a, format, &count);
    print_row(t, s->title, (const char *const[]){ arena_printf(a, "%s operators", format->name) });
    print_row(t, s->head_support, (const char *const[]){ "operator", "domain", "operator set versions" });
    for (int i = 0, n; i < count; i += n) {
        for (n = 1;
             i + n < count && !strcmp(rows[i].op, rows[i + n].op) && !strcmp(rows[i].domain, rows[i + n].domain);)
            n++;
        print_row(t, s->row_support,
            (const char *const[]){ rows[i].op, rows[i].domain, versions_text(a, rows + i, n, format->latest) });
    }
    text_printf(t, "\n");
}

static void print_tables(Text *t, Arena *a, const Style *s) {
    int n;
    const FrontEnd *const *formats = front_ends(&n);
    for (int i = 0; i < n; i++)
        if (formats[i]->support) print_support(t, a, s, formats[i]);
    print_row(t, s->title, (const char *const[]){ "Operations of the intermediate representation" });
    print_row(t, s->head_ops, (const char *const[]){ "operation", "kind", "gradient", "kernel" });
    for (int i = 1; i < OP_COUNT; i++) {
        const OpInfo *info = &op_table[i];
        print_row(t, s->row_ops,
            (const char *const[]){ info->name, kind_names[info->kind], gradient_text(info), kernel_text(info) });
    }
}

static void json_support(Text *t, Arena *a, const FrontEnd *format) {
    int count;
    const Support *rows = sorted_rows(a, format, &count);
    text_printf(t, "\"%s\":[", format->key);
    for (int i = 0; i < count; i++)
        text_printf(t, "%s{\"operator\":\"%s\",\"domain\":\"%s\",\"since\":%d,\"until\":%d}", i ? "," : "", rows[i].op,
            rows[i].domain, rows[i].since, rows[i].until);
    text_printf(t, "],");
}

static void print_json(Text *t, Arena *a) {
    int n;
    const FrontEnd *const *formats = front_ends(&n);
    text_printf(t, "{");
    for (int i = 0; i < n; i++)
        if (formats[i]->support) json_support(t, a, formats[i]);
    text_printf(t, "\"operations\":[");
    for (int i = 1; i < OP_COUNT; i++) {
        const OpInfo *info = &op_table[i];
        text_printf(t, "%s{\"operation\":\"%s\",\"kind\":\"%s\",\"gradient\":\"%s\",\"kernel\":\"%s\"}",
            i > 1 ? "," : "", info->name, kind_names[info->kind], gradient_text(info), kernel_text(info));
    }
    text_printf(t, "]}\n");
}

int command_ops(Arena *a, CommandOptions *c) {
    Text t;
    text_init(&t, a);
    if (c->json) print_json(&t, a);
    else print_tables(&t, a, c->markdown ? &markdown : &plain);
    return print_text(&t, EXIT_OK);
}
