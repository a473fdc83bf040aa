// SPDX-License-Identifier: MIT OR Apache-2.0
// Runs cases: text files with a graph, and what passes, the scheduler and the printers are to make of it.
//
//   ; pass: simplify              the pass (a name of passes.def, bind_dims, or parse: none); several run one after
//       the other; without this line all of them, in their order
//   ; dim: n=4                    as --dim n=4; n=1..8 stays a size of the running program
//   ; target: portable            as --target; without: generic
//   ; threads: 4                  as --threads 4
//   ; optimize: size            as --optimize size
//   ; no-fuse                     as --no-fuse
//   ; train: mse adam             the training programs, with this loss and optimizer
//   ; from: int net_run(          of what is written, from the first line that begins so, to the one that ends this
//   ; to: }                       definition, or that begins so; without: the kernels and the run function
//   before:
//   graph g(...) { ... }          a line may end in `; error: TEXT`: the diagnostic that this line's node must cause
//   after:                        the graph after the passes; left out when errors are expected
//   graph g(...) { ... }
//   plan:                         what --dump schedule prints
//   c:, h:                        of the generated files
//   glsl:                         what the back end dumps under this name
//
// usage: run CASE...   Prints TAP. With BLESS=1 in the environment what comes out is written into the cases as what
// is expected, under the headings that stand there. Every graph is also printed and read back, which must give the same
// text. Weights' values and helpers are left out of what is compared: golden text is for structure.
#define _XOPEN_SOURCE 700
#include "codegen/codegen.h"
#include "compile.h"
#include "passes/passes.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_LINES 400
#define ERROR_MARK "; error: "

// What is compared under a heading.
typedef struct Section { const char *name, *expected, *found; } Section;

typedef struct Case {
    Arena *a;
    const char *path;
    Options options;
    const char *from, *to;                      // NULL: not given
    VEC(const char *) passes;
    VEC(const char *) head, before;             // lines; errors taken out of `before`
    const char *expected[MAX_LINES], *found[MAX_LINES];         // diagnostics by line of `before`
    Section sections[5];
    int n_sections;
    bool failed;                                // there are diagnostics, so nothing is to be compared
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

static void read_training(Case *c, const char *line) {
    size_t n = strcspn(line, " ");
    c->options.train = true;
    VEC_PUSH(c->a, c->options.losses, arena_strndup(c->a, line, n));
    c->options.optimizer = line + n + strspn(line + n, " ");
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
    } else if (take_word(&line, "; target:")) c->options.target = line;
    else if (take_word(&line, "; threads:")) c->options.threads = atoi(line);
    else if (take_word(&line, "; precision:")) c->options.precision = line;
    else if (take_word(&line, "; optimize: size")) c->options.small = true;
    else if (take_word(&line, "; no-fuse")) c->options.no_fuse = true;
    else if (take_word(&line, "; train:")) read_training(c, line);
    else if (take_word(&line, "; from:")) c->from = line;
    else if (take_word(&line, "; to:")) c->to = line;
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

// A line that is a heading begins a section.
static bool read_heading(Case *c, const char *line, const char *rest) {
    static const char *const names[] = { "after:", "plan:", "c:", "h:", "glsl:" };
    size_t i = 0;
    while (i < COUNT(names) && strcmp(line, names[i])) i++;
    if (i == COUNT(names)) return false;
    if (c->n_sections == (int)COUNT(c->sections)) fatal(EXIT_LIMIT, "%s: a heading stands twice", c->path);
    c->sections[c->n_sections++] = (Section){ .name = names[i], .expected = rest };
    return true;
}

static void case_read(Case *c) {
    char *text = read_file(c->a, c->path);
    bool in_before = false;
    for (char *line = text, *end; *line; line = end) {
        end = line + strcspn(line, "\n");
        bool ends = *end == '\n';
        if (ends) *end++ = 0;
        if (!in_before && !strcmp(line, "before:")) in_before = true;
        else if (read_heading(c, line, end)) {
            if (c->n_sections > 1) *line = 0;   // the end of the section before
        } else if (c->n_sections) {
            if (ends) end[-1] = '\n';
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

static const char *printed(Arena *a, const Graph *g, void print(const Graph *g, Text *out)) {
    Text t;
    text_init(&t, a);
    print(g, &t);
    return t.at;
}

static void check_round_trip(Case *c, const Graph *g) {
    const char *text = printed(c->a, g, graph_print_full);
    Graph *again = graph_parse(c->a, text, "printed");
    if (!again) case_fail(c, arena_printf(c->a, "cannot be read back:\n%s", text));
    else if (strcmp(text, printed(c->a, again, graph_print_full)))
        case_fail(c,
            arena_printf(c->a, "reads back as another graph:\n%s%s", text, printed(c->a, again, graph_print_full)));
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

// ---- what is written

static bool begins(const char *line, const char *with) { return !strncmp(line, with, strlen(with)); }

static const char *next_line(const char *line) {
    line += strcspn(line, "\n");
    return *line ? line + 1 : line;
}

// `/* MatMul  f32[2,3] ...` stands over a kernel.
static bool is_kernel(const char *line) {
    char word[64];
    Op op;
    return sscanf(line, "/* %63[A-Za-z0-9_]", word) == 1 && op_find(word, &op);
}

// The part of a generated file that the case is about.
static const char *part_of(const Case *c, const char *text) {
    const char *line = text, *end;
    while (*line && !(c->from ? begins(line, c->from) : is_kernel(line) || begins(line, "int net_run(")))
        line = next_line(line);
    end = line;
    while (*end && !c->from && !begins(end, "int net_run(")) end = next_line(end);
    while (*end && !begins(end, c->to ? c->to : "}")) end = next_line(end);
    return arena_strndup(c->a, line, (size_t)(next_line(end) - line));
}

static void write_files(Case *c, int n, Program *programs, const struct Training *t) {
    char folder[] = "/tmp/burncc-case-XXXXXX";
    Section *s = c->sections;
    if (!mkdtemp(folder)) fatal(EXIT_IO, "cannot make %s", folder);
    c->options.output = arena_printf(c->a, "%s/net.c", folder);
    if (c->options.machine.backend->write(c->a, &c->options, c->options.name, n, programs, t))
        for (int i = 0; i < c->n_sections; i++)
            if (!strcmp(s[i].name, "c:") || !strcmp(s[i].name, "h:"))
                s[i].found = part_of(c, read_file(c->a, arena_printf(c->a, "%s/net.%c", folder, s[i].name[0])));
    static const char kinds[] = { 'c', 'h' };
    for (size_t i = 0; i < COUNT(kinds); i++) unlink(arena_printf(c->a, "%s/net.%c", folder, kinds[i]));
    rmdir(folder);
}

static bool wants(const Case *c, const char *section) {
    for (int i = 0; i < c->n_sections; i++)
        if (!strcmp(c->sections[i].name, section)) return true;
    return false;
}

static void found(Case *c, const char *section, const char *text) {
    for (int i = 0; i < c->n_sections; i++)
        if (!strcmp(c->sections[i].name, section)) c->sections[i].found = text;
}

static void run_passes(Case *c, Graph *g) {
    if (!c->passes.n) passes_run(g, &c->options);
    for (int i = 0; i < c->passes.n && run_pass(c, g, c->passes.at[i]) && !diag_errors(); i++)
        graph_validate(g, c->passes.at[i]);
    if (diag_errors()) return;
    check_round_trip(c, g);
    found(c, "after:", printed(c->a, g, graph_print));
}

static void run_plan(Case *c, Graph *g) {
    const Backend *b = c->options.machine.backend;
    Text plan, dump;
    text_init(&plan, c->a);
    text_init(&dump, c->a);
    Plan *p = plan_make(g, &c->options);
    Program program = { .name = "net_run", .name_of_workspace = "net", .prefix = "net", .plan = p, .descriptor = true };
    if (!p) return;
    plan_print(p, &plan);
    found(c, "plan:", plan.at);
    if (b->dump && wants(c, arena_printf(c->a, "%s:", b->dump_stage))) {
        b->dump(c->a, &c->options, p, &dump);
        found(c, arena_printf(c->a, "%s:", b->dump_stage), dump.at);
    }
    if (wants(c, "c:") || wants(c, "h:")) write_files(c, 1, &program, NULL);
}

static void run_training(Case *c, const char *text) {
    char path[] = "/tmp/burncc-case-XXXXXX";
    int file = mkstemp(path);
    if (file < 0 || write(file, text, strlen(text)) < 0 || close(file)) fatal(EXIT_IO, "cannot write %s", path);
    c->options.model = path;
    Programs *p = compile_programs(c->a, &c->options);
    unlink(path);
    if (p) write_files(c, p->n, p->at, p->training);
}

static void case_run(Case *c) {
    Text before, diagnostics;
    text_init(&before, c->a);
    text_init(&diagnostics, c->a);
    for (int i = 0; i < c->before.n; i++) text_printf(&before, "%s\n", c->before.at[i]);
    diag_reset();
    diag_capture(&diagnostics);
    Graph *g = graph_parse(c->a, before.at, "case");
    if (g) check_round_trip(c, g);
    if (g && c->options.train) run_training(c, before.at);
    else if (g) {
        run_passes(c, g);
        bool planned = c->n_sections && (c->n_sections > 1 || !wants(c, "after:"));
        if (planned && !diag_errors()) run_plan(c, g);
    }
    diag_capture(NULL);
    c->failed = diag_errors() > 0;
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
    for (int i = 0; i < c->n_sections; i++) {
        const Section *s = &c->sections[i];
        if (!same(s->expected, s->found))
            case_fail(c,
                arena_printf(c->a, "%s expected:\n%sfound:\n%s", s->name, s->expected,
                    s->found ? s->found : "nothing\n"));
    }
    if (!c->n_sections && !c->failed) case_fail(c, "expected errors");
}

static void case_bless(const Case *c) {
    FILE *f = fopen(c->path, "wb");
    if (!f) fatal(EXIT_IO, "cannot write %s", c->path);
    for (int i = 0; i < c->head.n; i++) fprintf(f, "%s\n", c->head.at[i]);
    fputs("before:\n", f);
    for (int i = 0; i < c->before.n; i++)
        fprintf(f, "%s%s%s\n", c->before.at[i], c->found[i] ? "   " ERROR_MARK : "", c->found[i] ? c->found[i] : "");
    for (int i = 0; i < c->n_sections; i++) fprintf(f, "%s\n%s", c->sections[i].name, c->sections[i].found);
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
        c->options = (Options){ .target = "generic", .model = "net.txt", .name = "net", .quiet = true };
        c->options.embed_limit = 1 << 20;
        c->options.part_us = 3;
        c->options.string_bytes = 256;
        case_read(c);
        if (!backend_target(c->options.target, &c->options.machine)) fatal(EXIT_USAGE, "%s: its target", c->path);
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
