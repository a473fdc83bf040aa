// SPDX-License-Identifier: MIT OR Apache-2.0
// Runs cases: text files with a graph before a pass and what it is to be after it.
//
//   ; pass: simplify              the pass (a name of passes.def, bind_dims, or parse: none); several run one after
//       the other
//   ; dim: n=4                    as --dim n=4, for bind_dims; n=1..8 stays a size of the running program
//   ; backend: vulkan             whose claims expand asks for; without: c
//   before:
//   graph g(...) { ... }          a line may end in `; error: TEXT`: the diagnostic that this line's node must cause
//   after:                        left out when errors are expected
//   graph g(...) { ... }
//
// usage: run CASE...   Prints TAP. With BLESS=1 in the environment what comes out is written into the cases as what
// is expected. Every graph is also printed and read back, which must give the same text.
#include "passes/passes.h"
#include "codegen/codegen.h"

#include <stdlib.h>
#include <string.h>

#define MAX_LINES 400
#define ERROR_MARK "; error: "

typedef struct Case {
    Arena *a;
    const char *path;
    Options options;
    VEC(const char *) passes;
    VEC(const char *) head, before;             // lines; errors taken out of `before`
    const char *expected[MAX_LINES], *found[MAX_LINES];         // diagnostics by line of `before`
    const char *after, *result;
    const char *why;                            // it fails; NULL: it passes
} Case;

static void case_fail(Case *c, const char *why) {
    if (!c->why) c->why = why;
}

// ---- reading

static char *read_file(Arena *a, const char *path) {
    FILE *f = fopen(path, "rb");
    if (!f) fatal(EXIT_IO, "cannot open %s", path);
    Text t;
    text_init(&t, a);
    char buffer[4096];
    for (size_t n; (n = fread(buffer, 1, sizeof buffer, f)) > 0;) text_append(&t, buffer, n);
    fclose(f);
    return t.at;
}

static bool take_word(const char **s, const char *word) {
    size_t n = strlen(word);
    if (strncmp(*s, word, n)) return false;
    *s += n + strspn(*s + n, " ");
    return true;
}

static void read_head(Case *c, const char *line) {
    VEC_PUSH(c->a, c->head, line);
    if (take_word(&line, "; pass:")) {
        while (*line) {
            size_t n = strcspn(line, " ,");
            VEC_PUSH(c->a, c->passes, arena_strndup(c->a, line, n));
            line += n + strspn(line + n, " ,");
        }
    } else if (take_word(&line, "; dim:")) {
        size_t n = strcspn(line, "=");
        char *end = NULL;
        int64_t lo = line[n] ? strtoll(line + n + 1, &end, 10) : 0,
                hi = end && !strncmp(end, "..", 2) ? strtoll(end + 2, NULL, 10) : lo;
        VEC_PUSH(c->a, c->options.dims, (DimOption){ arena_strndup(c->a, line, n), lo, hi });
    } else if (take_word(&line, "; backend:")) c->options.machine.backend = backend_find(line);
}

static void read_before(Case *c, char *line) {
    char *mark = strstr(line, ERROR_MARK);
    if (c->before.n == MAX_LINES) fatal(EXIT_LIMIT, "%s: more than %d lines", c->path, MAX_LINES);
    if (mark) {
        c->expected[c->before.n] = mark + strlen(ERROR_MARK);
        while (mark > line && mark[-1] == ' ') mark--;
        *mark = 0;
    }
    VEC_PUSH(c->a, c->before, line);
}

static void case_read(Case *c) {
    char *text = read_file(c->a, c->path);
    bool in_before = false;
    for (char *line = text, *end; *line; line = end) {
        end = line + strcspn(line, "\n");
        if (*end) *end++ = 0;
        if (!strcmp(line, "before:")) in_before = true;
        else if (!strcmp(line, "after:")) {
            c->after = end;
            return;
        } else if (in_before) read_before(c, line);
        else read_head(c, line);
    }
}

// ---- running

static bool run_pass(Case *c, Graph *g, const char *name) {
    static const struct { const char *name; PassFn *run; AskingPassFn *asks; } passes[] = {
#define PASS(phase, name, when) { #name, pass_##name, NULL },
#define ASKING_PASS(phase, name, when) { #name, NULL, pass_##name },
#include "passes.def"
#undef PASS
#undef ASKING_PASS
    };
    if (!strcmp(name, "parse")) return true;
    if (!strcmp(name, "bind_dims")) {
        pass_bind_dims(g, &c->options);
        return true;
    }
    for (size_t i = 0; i < COUNT(passes); i++)
        if (!strcmp(passes[i].name, name)) {
            if (passes[i].asks) passes[i].asks(g, &c->options);
            else passes[i].run(g);
            return true;
        }
    case_fail(c, arena_printf(c->a, "there is no pass %s", name));
    return false;
}

static const char *printed(Arena *a, const Graph *g) {
    Text t;
    text_init(&t, a);
    graph_print(g, &t);
    return t.at;
}

static void check_round_trip(Case *c, const Graph *g) {
    const char *text = printed(c->a, g);
    if (strstr(text, " hash 0x")) return;
    Graph *again = graph_parse(c->a, text, "printed");
    if (!again) case_fail(c, arena_printf(c->a, "cannot be read back:\n%s", text));
    else if (strcmp(text, printed(c->a, again)))
        case_fail(c, arena_printf(c->a, "reads back as another graph:\n%s%s", text, printed(c->a, again)));
}

// The line of `before` that a diagnostic is about: "case:3:10: ..."; one about the model stands at the graph's first.
static int line_of(const Case *c, const char *diagnostic) {
    static const char file[] = "case:";
    int at = strncmp(diagnostic, file, strlen(file)) ? 0 : atoi(diagnostic + strlen(file)) - 1;
    return at < 0 ? 0 : at < c->before.n ? at : c->before.n - 1;
}

static void collect_errors(Case *c, char *diagnostics) {
    for (char *line = diagnostics, *end; *line; line = end) {
        end = line + strcspn(line, "\n");
        if (*end) *end++ = 0;
        char *message = strstr(line, "error: ");
        if (!message) continue;
        int at = line_of(c, line);
        message += strlen("error: ");
        c->found[at] = c->found[at] ? arena_printf(c->a, "%s | %s", c->found[at], message) : message;
    }
}

static void case_run(Case *c) {
    Text before, diagnostics;
    text_init(&before, c->a);
    text_init(&diagnostics, c->a);
    for (int i = 0; i < c->before.n; i++) text_printf(&before, "%s\n", c->before.at[i]);
    diag_reset();
    diag_capture(&diagnostics);
    Graph *g = graph_parse(c->a, before.at, "case");
    if (g) {
        check_round_trip(c, g);
        for (int i = 0; i < c->passes.n && run_pass(c, g, c->passes.at[i]) && !diag_errors(); i++)
            if (!diag_errors()) graph_validate(g, c->passes.at[i]);
        if (!diag_errors()) {
            c->result = printed(c->a, g);
            check_round_trip(c, g);
        }
    }
    diag_capture(NULL);
    collect_errors(c, diagnostics.at);
}

// ---- judging

static bool same(const char *a, const char *b) { return a == b || (a && b && !strcmp(a, b)); }

static void case_judge(Case *c) {
    for (int i = 0; i < c->before.n; i++)
        if (!same(c->expected[i], c->found[i]))
            case_fail(c,
                arena_printf(c->a, "line %d: expected %s, found %s", i + 1,
                    c->expected[i] ? c->expected[i] : "no error", c->found[i] ? c->found[i] : "no error"));
    if (!same(c->after, c->result))
        case_fail(c,
            arena_printf(c->a, "expected:\n%sfound:\n%s", c->after ? c->after : "errors\n",
                c->result ? c->result : "errors\n"));
}

static void case_bless(const Case *c) {
    FILE *f = fopen(c->path, "wb");
    if (!f) fatal(EXIT_IO, "cannot write %s", c->path);
    for (int i = 0; i < c->head.n; i++) fprintf(f, "%s\n", c->head.at[i]);
    fputs("before:\n", f);
    for (int i = 0; i < c->before.n; i++)
        fprintf(f, "%s%s%s\n", c->before.at[i], c->found[i] ? "   " ERROR_MARK : "", c->found[i] ? c->found[i] : "");
    if (c->result) fprintf(f, "after:\n%s", c->result);
    if (fclose(f)) fatal(EXIT_IO, "cannot write %s", c->path);
}

static void print_indented(const char *text) {
    for (const char *end; *text; text = end) {
        end = text + strcspn(text, "\n");
        printf("#   %.*s\n", (int)(end - text), text);
        end += *end == '\n';
    }
}

int main(int argc, char **argv) {
    bool bless = getenv("BLESS") != NULL;
    int failed = 0;
    printf("1..%d\n", argc - 1);
    for (int i = 1; i < argc; i++) {
        Case *c = calloc(1, sizeof *c);
        if (!c) fatal(EXIT_MEMORY, "out of memory");
        c->a = arena_new();
        c->path = argv[i];
        c->options.quiet = true;
        c->options.machine.backend = backend_find("c");
        case_read(c);
        case_run(c);
        if (bless) case_bless(c);
        else case_judge(c);
        const char *name = strrchr(argv[i], '/');
        printf("%sok %d - %s\n", c->why ? "not " : "", i, name ? name + 1 : argv[i]);
        if (c->why) print_indented(c->why);
        failed += c->why != NULL;
        arena_free(c->a);
        free(c);
    }
    printf("# %d passed, %d failed\n", argc - 1 - failed, failed);
    return failed > 0;
}
