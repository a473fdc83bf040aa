// SPDX-License-Identifier: MIT OR Apache-2.0
// The front end of models described in C: the description is compiled, runs in a child process, and hands over a
// graph.
//
// In: a C file that includes burncc/model.h. Out: the settings that it took, and the graph that it built, through its
// text (ir/print.c), as if that had been the model; its diagnostics, which the child has printed. The child is the
// user's own code: what it crashes on or never ends with is a line of ours that names the call where it was last.
#define _DEFAULT_SOURCE
#include "import/describe/describe.h"

#include "import/text/text.h"

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SECONDS = 30, MAX_TEXT = 1 << 30 };

static const char marker[] = "burncc/model.h";

static bool claims(const File *f) {
    const char *at = (const char *)f->data, *end = at + f->size;
    if (memchr(at, 0, f->size < 4096 ? f->size : 4096)) return false;
    for (; (at = memchr(at, '#', (size_t)(end - at))); at++) {
        const char *line = memchr(at, '\n', (size_t)(end - at)), *to = line ? line : end;
        if (to - at < 8 || memcmp(at, "#include", 8)) continue;
        for (const char *c = at; c + sizeof marker - 1 <= to; c++)
            if (!memcmp(c, marker, sizeof marker - 1)) return true;
    }
    return false;
}

// ---------------------------------------------------------------- the shared object

static bool write_file(Arena *a, const char *folder, const char *name) {
    const char *text = template_text(arena_printf(a, "burncc/%s", name));
    return out_whole(a, arena_printf(a, "%s/burncc/%s", folder, name), text, strlen(text));
}

static bool write_headers(Arena *a, const char *folder) {
    const char *inner = arena_printf(a, "%s/burncc", folder);
    if (mkdir(inner, 0700)) {
        diag_error_as(EXIT_IO, NULL, "%s: %s", inner, strerror(errno));
        return false;
    }
    return write_file(a, folder, "model.h") && write_file(a, folder, "language.h")
           && write_file(a, folder, "language.def");
}

// The files of a rule that the C compiler wrote, without its targets and what lies in our own folder.
static void note_headers(const char *rule, const char *folder) {
    char word[4096];
    size_t n = 0;
    FILE *f = fopen(rule, "r");
    for (int c = 0; f && c != EOF;) {
        c = getc(f);
        int next = c == '\\' || c == '$' ? getc(f) : 0;
        bool escaped = c == '$' ? next == '$' : next == ' ' || next == '#';
        if (next && !escaped) ungetc(next, f);
        if (escaped) c = next;
        bool ends = !escaped && (c == EOF || c == ' ' || c == '\n' || (c == '\\' && next == '\n'));
        if (!ends && n + 1 < sizeof word) word[n++] = (char)c;
        if (!ends || !n) continue;
        word[n] = 0;
        if (word[n - 1] != ':' && strncmp(word, folder, strlen(folder))) reads_add(word);
        n = 0;
    }
    if (f) fclose(f);
}

static bool compile_description(Arena *a, const char *model, const char *folder, const char *object) {
    const char *cc = getenv("CC"), *rule = arena_printf(a, "%s/rule", folder);
    Argv argv = { 0 };
    argv_add(a, &argv, cc && *cc ? cc : "cc");
    argv_add(a, &argv, "-std=gnu11 -O0 -g -fPIC -shared -Wall -Werror=implicit-function-declaration -x c -I");
    VEC_PUSH(a, argv, folder);
    argv_add(a, &argv, "-o");
    VEC_PUSH(a, argv, object);
    VEC_PUSH(a, argv, model);
    argv_add(a, &argv, "-lm -MMD -MF");
    VEC_PUSH(a, argv, rule);
    int status = process_run(a, &argv);
    note_headers(rule, folder);
    Loc file = { .file = model, .node = -1 };
    if (status == PROCESS_NONE)
        diag_error_as(EXIT_IO, NULL, "cannot run the C compiler '%s', which a description needs; set CC", argv.at[0]);
    else if (status) diag_error(&file, "the C compiler '%s' does not take this description", argv.at[0]);
    return !status;
}

// ---------------------------------------------------------------- in the child

typedef void Describe(const struct burn_language *);

static void send(int out, const Text *t) {
    for (size_t done = 0; done < t->n;) {
        ssize_t n = write(out, t->at + done, t->n - done);
        if (n < 0 && errno != EINTR) return;
        if (n > 0) done += (size_t)n;
    }
}

// The description runs. Its settings and its graph, as texts that a zero byte ends, go to `out`, unless a mistake was
// told.
static void describe_in_child(Arena *a, const Model *m, const Options *o, const char *object, int out) {
    void *library = dlopen(object, RTLD_NOW | RTLD_LOCAL), *symbol = library ? dlsym(library, "burn_model") : NULL;
    Describe *describe = NULL;
    Loc file = { .file = m->file, .node = -1 };
    if (!library) diag_error(&file, "cannot load the compiled description: %s", dlerror());
    else if (!symbol) diag_error(&file, "a description has one MODEL(name) { ... }");
    if (!symbol) return;
    memcpy(&describe, &symbol, sizeof symbol);          // ISO C has no cast from objects to functions
    describing->g = graph_new(a, o->name, m->file);
    if (o->config && !settings_read(o->config)) return;
    describe(&language_table);
    Graph *g = describing->g;
    if (diag_errors()) return;
    functions_check(m->file);
    settings_check();
    if (diag_errors()) return;
    Text t;
    text_init(&t, a);
    settings_print(&t);
    text_append(&t, "", 1);
    graph_print_full(g, &t);
    text_append(&t, "", 1);
    send(out, &t);
}

void child_end(void) {
    fflush(NULL);
    describing->progress->errors = diag_errors();
    describing->progress->status = diag_status();
    _exit(diag_status());
}

static NORETURN void child(Arena *a, const Model *m, const Options *o, const char *object, int out,
    Progress *progress) {
    Description d = { .arena = a, .options = o, .parameters = strmap_new(a), .sources = strmap_new(a),
        .part = { .parameters = strmap_new(a) }, .progress = progress };
    describing = &d;
    dup2(STDERR_FILENO, STDOUT_FILENO);                 // what a description prints is no result of burncc
    describe_in_child(a, m, o, object, out);
    child_end();
}

// ---------------------------------------------------------------- its parent

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// What comes until the child closes its end; false: the time is over.
static bool read_all(int in, Text *t) {
    double end = now() + SECONDS;
    char block[65536];
    for (;;) {
        struct pollfd p = { .fd = in, .events = POLLIN };
        double left = end - now();
        int ready = left > 0 ? poll(&p, 1, (int)(left * 1e3) + 1) : 0;
        if (ready < 0 && errno == EINTR) continue;
        if (ready <= 0 || t->n > MAX_TEXT) return false;
        ssize_t n = read(in, block, sizeof block);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return true;
        text_append(t, block, (size_t)n);
    }
}

// One line about a child that did not end well; false.
static bool ended(const Model *m, int status, bool late, bool told, const Progress *p) {
    Loc at = { .file = *p->file ? p->file : m->file, .line = p->line, .op = *p->call ? p->call : NULL, .node = -1 };
    if (late)
        diag_error_as(EXIT_LIMIT, &at, "the description takes more than %d seconds; this call was its last", SECONDS);
    else if (WIFSIGNALED(status))
        diag_error(&at, "the description ended by signal %d (%s) behind this call", WTERMSIG(status),
            strsignal(WTERMSIG(status)));
    else if (p->errors) diag_passed_on(p->errors, p->status);
    else if (WEXITSTATUS(status)) diag_error(&at, "the description ended with exit status %d", WEXITSTATUS(status));
    else if (!told) diag_error(&at, "the description ended behind this call, by exit(0)");
    else return true;
    return false;
}

static bool run(Arena *a, const Model *m, const Options *o, const char *object, Text *out) {
    int ends[2];
    Progress *p = mmap(NULL, sizeof *p, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED || pipe(ends)) {
        diag_error_as(EXIT_IO, NULL, "cannot start a process for %s: %s", m->file, strerror(errno));
        return false;
    }
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        child(a, m, o, object, ends[1], p);
    }
    close(ends[1]);
    bool in_time = pid > 0 && read_all(ends[0], out);
    int status = 0;
    close(ends[0]);
    if (!in_time && pid > 0) kill(pid, SIGKILL);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) { }
    bool ok = pid > 0 && ended(m, status, !in_time, out->n, p);
    munmap(p, sizeof *p);
    return ok;
}

static Graph *described(Arena *a, Model *m, const Options *o) {
    const char *folder = folder_make();
    if (!folder) return NULL;
    const char *object = arena_printf(a, "%s/model.so", folder);
    Text t;
    text_init(&t, a);
    bool ok = write_headers(a, folder) && compile_description(a, m->file, folder, object) && run(a, m, o, object, &t);
    folder_remove(folder);
    if (!ok) return NULL;
    if (o->config) reads_add(o->config);                // the child did
    const char *graph = t.at + strlen(t.at) + 1;
    if (graph > t.at + 1) m->settings = t.at;
    return graph_parse(a, graph, m->file);
}

// ---------------------------------------------------------------- the front end

static bool open_description(Arena *a, const File *f, const Options *o, Model *m) {
    (void)f;                                            // the compiler opens it by its name
    Graph *g = described(a, m, o);
    return g && text_model(a, g, o, m);
}

const FrontEnd c_front_end = {
    .name = "a description in C", .key = "c", .has_settings = true, .draws = true,
    .claims = claims, .open = open_description, .graph = text_graph, .inputs = text_inputs
};
