// SPDX-License-Identifier: MIT OR Apache-2.0
// Generated code runs where it is made for: under an emulator, in a WebAssembly engine, on another machine.
//
// In: a program that build.c made of the model and templates/driver.c, and the model's inputs. Out: outputs and
// times, or one line about what went wrong. The runner's command gets the program's path as its last word; the
// request is its standard input, the answer what it prints (driver.c says what they look like), so it needs to pass
// on nothing else. Both are files in the build's folder, which programs without an operating system open themselves.
#define _POSIX_C_SOURCE 200809L
#include "command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char magic[] = "BURNRUN2";
static const char cut_short[] = "the program's answer ends early";

// ---------------------------------------------------------------- the request
static void put(FILE *f, const void *p, size_t n) {
    if (n) fwrite(p, 1, n, f);
}

static void put_int(FILE *f, int64_t v) { put(f, &v, sizeof v); }

static void put_tensor(FILE *f, const Tensor *t) {
    int64_t n = type_count(&t->type);
    put(f, t->type.dim, (size_t)t->type.rank * sizeof *t->type.dim);
    put_int(f, n);
    if (t->type.dtype != DT_STRING) put(f, t->data, (size_t)type_bytes(&t->type));
    for (int64_t i = 0; i < n && t->type.dtype == DT_STRING; i++) {
        const char *s = ((const char *const *)t->data)[i];
        size_t length = s ? strlen(s) : 0;
        put_int(f, (int64_t)length);
        put(f, s, length);
    }
}

static bool write_request(const char *path, const Built *b, const Inputs *in, double seconds) {
    FILE *f = fopen(path, "wb");
    Graph *g = b->plan->graph;
    if (!f) return false;
    put(f, magic, strlen(magic));
    put(f, &seconds, sizeof seconds);
    put_int(f, b->weights ? (int64_t)b->weights_file.size : 0);
    put(f, b->weights, b->weights ? b->weights_file.size : 0);
    for (int i = 0; i < in->n; i++) put_tensor(f, in->at[i]);
    for (int i = 0; i < g->outputs.n; i++) {
        const Type *t = &g->outputs.at[i]->type;
        put_int(f, (int64_t)(output_bytes(g, in, t) / dtype_size(t->dtype)));
    }
    bool ok = !ferror(f);
    return fclose(f) == 0 && ok;
}

// ---------------------------------------------------------------- the answer
typedef struct Answer { const uint8_t *at, *end; } Answer;

static bool get(Answer *r, void *to, size_t n) {
    if (n > (size_t)(r->end - r->at)) return false;
    if (n) memcpy(to, r->at, n);
    r->at += n;
    return true;
}

static bool get_int(Answer *r, int64_t *v) { return get(r, v, sizeof *v); }

static bool get_string(Arena *a, Answer *r, const char **s) {
    int64_t n;
    if (!get_int(r, &n) || n < 0 || n > r->end - r->at) return false;
    *s = arena_strndup(a, (const char *)r->at, (size_t)n);
    r->at += n;
    return true;
}

static const char *get_output(Arena *a, Answer *r, const char *name, Type t, Tensor **out) {
    int64_t n, room = r->end - r->at, count = 1;
    if (!get(r, t.dim, (size_t)t.rank * sizeof *t.dim) || !get_int(r, &n)) return cut_short;
    for (int k = 0; k < t.rank; k++) {
        if (t.dim[k] < 0 || (t.dim[k] > 0 && count > room / t.dim[k]))
            return arena_printf(a, "gave output '%s' the size %lld", name, (long long)t.dim[k]);
        count *= t.dim[k];
    }
    if (n != count) return cut_short;
    *out = tensor_new(a, t);
    if (t.dtype != DT_STRING) return get(r, (*out)->data, (size_t)type_bytes(&t)) ? NULL : cut_short;
    for (int64_t i = 0; i < n; i++)
        if (!get_string(a, r, &((const char **)(*out)->data)[i]))
            return arena_printf(a, "output '%s' has an element that is no string", name);
    return NULL;
}

static const char *outside_text(Arena *a, const Graph *g, int64_t which) {
    if (which <= g->inputs.n) return arena_printf(a, "wrote outside input '%s'", g->inputs.at[which - 1]->name);
    which -= g->inputs.n;
    return which <= g->outputs.n ? arena_printf(a, "wrote outside output '%s'", g->output_names.at[which - 1]) :
                                   "wrote outside the workspace";
}

static const char *read_answer(Arena *a, const Graph *g, Answer r, Remote *out) {
    char opening[sizeof magic - 1];
    int64_t code, outside, n;
    if (!get(&r, opening, sizeof opening) || memcmp(opening, magic, sizeof opening))
        return "the runner's output is not the program's answer";
    if (!get_int(&r, &code) || !get_int(&r, &outside) || !get_int(&r, &out->runs) || !get_int(&r, &out->stack)
        || !get_int(&r, &n) || n < 0
        || n > (r.end - r.at) / (int64_t)sizeof(double))
        return cut_short;
    if (code) return arena_printf(a, "run returned %lld", (long long)code);
    if (outside) return outside_text(a, g, outside);
    out->n_samples = (int)n;
    out->samples = NEW_ARRAY(a, double, n + 1);
    get(&r, out->samples, (size_t)n * sizeof *out->samples);
    for (int i = 0; i < g->outputs.n && out->outputs; i++) {
        const char *why = get_output(a, &r, g->output_names.at[i], g->outputs.at[i]->type, &out->outputs[i]);
        if (why) return why;
    }
    return NULL;
}

// ---------------------------------------------------------------- the run
NORETURN static void child(char **words, const char *request, const char *answer, int timeout) {
    int in = open(request ? request : "/dev/null", O_RDONLY),
        out = open(answer ? answer : "/dev/null", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    for (int i = 1; i < 32; i++) signal(i, SIG_DFL);
    if (in < 0 || out < 0 || dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0) _exit(126);
    alarm((unsigned)timeout);
    execvp(words[0], words);
    _exit(127);
}

static const char *outcome(Arena *a, pid_t pid, const char *runner, int timeout) {
    int status = 0;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR) return "the child process is lost";
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) return arena_printf(a, "no end after %d s", timeout);
    if (WIFSIGNALED(status)) return arena_printf(a, "crashed: %s", strsignal(WTERMSIG(status)));
    if (WEXITSTATUS(status) == 127) return arena_printf(a, "cannot run the runner '%s'", runner);
    return WEXITSTATUS(status) ? arena_printf(a, "the runner ended with status %d", WEXITSTATUS(status)) : NULL;
}

const char *remote_request(Arena *a, const char *dir) { return arena_printf(a, "%s/request-", dir); }

const char *remote_answer(Arena *a, const char *dir) { return arena_printf(a, "%s/answer-", dir); }

const char *remote_run(Arena *a, const Built *b, const Inputs *in, double seconds, int timeout, Remote *out) {
    const char *request = remote_request(a, b->dir), *answer = remote_answer(a, b->dir);
    const Target *target = &b->options->machine;
    bool bare = board_bare(target);
    Argv v = { 0 };
    if (bare) board_words(a, target, b->runner, &v);
    else argv_add(a, &v, b->runner);
    VEC_PUSH(a, v, b->program);
    char **words = argv_end(a, &v);
    if (!write_request(request, b, in, seconds))
        return arena_printf(a, "cannot write %s: %s", request, strerror(errno));
    unlink(answer);
    fflush(NULL);                                       // nothing twice
    timeout += (int)(2 * seconds);
    pid_t pid = fork();
    if (pid == 0) child(words, bare ? NULL : request, bare ? NULL : answer, timeout);
    const char *why = pid < 0 ? arena_printf(a, "cannot start a process: %s", strerror(errno)) :
                                outcome(a, pid, words[0], timeout);
    File f;
    if (why) return why;
    if (!file_map(&f, answer)) return cut_short;
    why = read_answer(a, b->plan->graph, (Answer){ f.data, f.data + f.size }, out);
    file_unmap(&f);
    return why;
}
