// SPDX-License-Identifier: MIT OR Apache-2.0
// What this machine can do at most, measured: templates/c/limits.c, compiled as the target's code is (for this machine
// where the code is there for several), on as many threads at once as the runs have. In: options. Out: multiply-adds
// and bytes a second, of all threads together.
#include "profile.h"

#include "runtime/threads.h"

#include <dlfcn.h>
#include <string.h>

enum { MOST_WORKERS = 256, SECONDS = 60 };
#define BUFFER_BYTES ((size_t)64 << 20)                 // at least, for each thread; four times the largest cache

typedef void LimitsFn(double *gflops, double *gbytes, const void *memory, size_t bytes);
typedef struct Measure {
    LimitsFn *limits;
    int workers;
    size_t bytes;                                       // for each
    unsigned char *memory;
    double (*rates)[2];                                 // by worker; shared with the child
} Measure;

static void measure(void *argument, int worker) {
    const Measure *m = argument;
    unsigned char *own = m->memory + (size_t)worker * m->bytes;
    memset(own, 0, m->bytes);                           // else all pages are the one of zeros
    m->limits(&m->rates[worker][0], &m->rates[worker][1], own, m->bytes);
}

static int child(void *argument) {
    Measure *m = argument;
    burn_threads threads = { NULL, NULL };
    m->memory = sandbox_memory((size_t)m->workers * m->bytes);
    int code = !m->memory ? BURN_ENOMEM : m->workers > 1 ? burn_threads_open(&threads, m->workers, 0) : 0;
    if (code) return code;
    if (m->workers > 1) threads.run(threads.pool, m->workers, measure, m);
    else measure(m, 0);
    burn_threads_close(&threads);
    return 0;
}

static bool write_source(Arena *a, const char *dir, const char *name, const char *template) {
    const char *text = template_text(template);
    OutFile *out = out_open(a, arena_printf(a, "%s/%s", dir, name));
    if (!out) return false;
    const char *head = "#define _POSIX_C_SOURCE 200809L\n";
    return out_write(out, head, strlen(head)) && out_write(out, text, strlen(text)) && out_commit(out);
}

bool limits_take(Arena *a, const Options *options, Limits *out) {
    Options *o = arena_copy(a, options, sizeof *options);
    if (o->machine.n_parts) o->machine.flags = "-O3 -march=native";
    Measure m = { .workers = o->threads > 1 ? (int)min64(o->threads, MOST_WORKERS) : 1,
        .bytes = o->machine.l3 * 4 > BUFFER_BYTES ? o->machine.l3 * 4 : BUFFER_BYTES };
    const char *dir = folder_make(), *object = arena_printf(a, "%s/limits.so", dir);
    *out = (Limits){ 0 };
    if (!dir) return false;
    bool ok = write_source(a, dir, "vec.h", "c/vec.h") && write_source(a, dir, "limits.c", "c/limits.c")
        && build_object(a, o, NULL, arena_printf(a, "%s/limits.c", dir), object);
    void *library = ok ? dlopen(object, RTLD_NOW | RTLD_LOCAL) : NULL;
    void *symbol = library ? dlsym(library, "burncc_limits") : NULL;
    memcpy(&m.limits, &symbol, sizeof symbol);          // ISO C has no cast between pointers to objects and functions
    m.rates = sandbox_memory(sizeof *m.rates * (size_t)m.workers);
    const char *why = symbol && m.rates ? sandbox_call(a, child, &m, SECONDS) : "it cannot be loaded";
    if (ok && why) diag_error(NULL, "what this machine can do cannot be measured: %s", why);
    for (int i = 0; m.rates && !why && i < m.workers; i++) {
        out->gflops += m.rates[i][0];
        out->gbytes += m.rates[i][1];
    }
    sandbox_release(m.rates, sizeof *m.rates * (size_t)m.workers);
    if (library) dlclose(library);
    folder_remove(dir);
    return ok && !why;
}
