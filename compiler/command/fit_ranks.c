// SPDX-License-Identifier: MIT OR Apache-2.0
// Several processes that learn one model: `mpirun -n 4 burncc fit ...`. In: what mpirun says in the environment. Out:
// burn_ranks for the learner; the module that rank 0 has built, in every process.
//
// burncc itself is linked with no MPI: where mpirun has started it, $MPICC compiles runtime/learn/ranks_mpi.c, which
// comes with it as text, and the object is loaded. So it is the MPI of the machine, whichever that is, and no other
// command knows of it. Ranks but the first keep their diagnostics to themselves until all agree who speaks.
#include "fit_ranks.h"

#include "runtime/learn/ranks_mpi.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

// What Open MPI, and MPICH and its kin, say of the world to its processes.
static const char *const sizes[] = { "OMPI_COMM_WORLD_SIZE", "PMI_SIZE" };

static long world_size(void) {
    long n = 0;
    for (size_t i = 0; i < COUNT(sizes) && n < 1; i++) {
        const char *text = getenv(sizes[i]);
        n = text ? strtol(text, NULL, 10) : 0;
    }
    return n;
}

static const char *write_text(Arena *a, const char *dir, const char *name) {
    const char *text = template_text(arena_printf(a, "runtime/%s", name));
    const char *path = arena_printf(a, "%s/%s", dir, name);
    return out_whole(a, path, text, strlen(text)) ? path : NULL;
}

// ranks_mpi.c as a shared object in the temporary folder.
static const char *compile(Arena *a, const char *dir, const char *cc) {
    static const char *const headers[] = { "burn.h", "ranks.h", "ranks_mpi.h" };
    const char *source = write_text(a, dir, "ranks_mpi.c"), *object = arena_printf(a, "%s/ranks.so", dir);
    Argv argv = { 0 };
    for (size_t i = 0; i < COUNT(headers) && source; i++)
        if (!write_text(a, dir, headers[i])) source = NULL;
    if (!source) return NULL;
    argv_add(a, &argv, cc);
    argv_add(a, &argv, "-std=c11 -O2 -w -fPIC -shared -o");
    VEC_PUSH(a, argv, object);
    VEC_PUSH(a, argv, source);
    int status = process_run(a, &argv);
    if (!status) return object;
    diag_error_as(EXIT_IO, NULL,
        status == PROCESS_NONE ? "mpirun started this process, but '%s', which compiles programs for MPI, cannot be "
                                 "run: install it (libopenmpi-dev, libmpich-dev), or set MPICC" :
                                 "mpirun started this process, but '%s' does not compile a program for MPI; set MPICC",
        cc);
    return NULL;
}

typedef int OpenFn(int *argc, char ***argv, burn_ranks *ranks);
typedef void CloseFn(burn_ranks *ranks);

static bool begin(FitRanks *r, long size, const char *object, const char *cc) {
    union { void *object; OpenFn *open; } f = { NULL };  // ISO C converts no object pointer to a function's
    r->library = dlopen(object, RTLD_NOW | RTLD_GLOBAL);     // global: an MPI loads parts of its own that look for it
    if (r->library) f.object = dlsym(r->library, "burn_mpi_open");
    if (!f.object) {
        const char *why = dlerror();
        diag_error_as(EXIT_IO, NULL, "cannot load what '%s' compiled: %s", cc, why ? why : "a function is missing");
        return false;
    }
    if (f.open(NULL, NULL, &r->of)) {
        diag_error_as(EXIT_IO, NULL, "MPI cannot be begun");
        return false;
    }
    if (r->of.count == size) return true;
    diag_error_as(EXIT_IO, NULL, "'%s' is of another MPI than mpirun: it knows of %d process%s, not of %ld; set MPICC",
        cc, r->of.count, r->of.count == 1 ? "" : "es", size);
    return false;
}

bool fit_ranks_open(Arena *a, FitRanks *r) {
    const char *given = getenv("MPICC"), *cc = given && *given ? given : "mpicc";
    long size = world_size();
    *r = (FitRanks){ .of.count = 1 };
    if (size < 2) return true;
    const char *dir = folder_make(), *object = dir ? compile(a, dir, cc) : NULL;
    bool ok = object && begin(r, size, object, cc);
    folder_remove(dir);                                 // at once: a rank may be killed when another one ends
    if (!ok) return false;
    text_init(&r->said, a);
    if (!fit_ranks_leads(r)) diag_capture(&r->said);
    return true;
}

bool fit_ranks_leads(const FitRanks *r) { return !r->of.rank; }

static void speak(FitRanks *r) {
    diag_capture(NULL);
    diag_replay(&r->said);
    r->said.n = 0;
}

bool fit_ranks_agree(FitRanks *r, bool ok) {
    if (r->of.count < 2) return ok;
    int mine = ok ? 0 : diag_status(), *all = calloc((size_t)r->of.count, sizeof mine), first = 0;
    int error = all ? r->of.gather(r->of.own, &mine, all, sizeof mine, NULL) : BURN_ENOMEM;
    while (!error && first < r->of.count && !all[first]) first++;
    int status = !error && first < r->of.count ? all[first] : 0;
    free(all);
    if (error && ok) diag_error_as(EXIT_IO, NULL, "rank %d of %d: another rank is lost", r->of.rank, r->of.count);
    if (error || (status && first == r->of.rank)) speak(r);
    else if (status && ok) diag_passed_on(1, status);
    return !error && !status;
}

void fit_ranks_close(FitRanks *r) {
    union { void *object; CloseFn *close; } f = { NULL };
    if (r->library && r->of.own) f.object = dlsym(r->library, "burn_mpi_close");
    if (f.object) f.close(&r->of);                      // the library stays: MPI has threads and handlers of its own
    diag_capture(NULL);
}

// ---------------------------------------------------------------- what rank 0 has built

// Rank 0's bytes; others', of malloc. NULL: no memory, or another rank is lost.
static void *share(const FitRanks *r, const void *bytes, size_t n) {
    bool leads = fit_ranks_leads(r);
    void *room = module_memory(n);
    if (room && leads && n) memcpy(room, bytes, n);
    if (room && !r->of.share(r->of.own, room, n, NULL)) return room;
    free(room);
    return NULL;
}

bool fit_ranks_module(FitRanks *r, Module **module, void **params) {
    if (r->of.count < 2) return true;
    File object = { 0 };
    Module *m = *module;
    size_t mine[3] = { 0 }, *bytes;
    bool leads = fit_ranks_leads(r);
    if (!fit_ranks_agree(r, !leads || file_map(&object, m->object))) return false;
    if (leads) memcpy(mine, (size_t[]){ object.size, m->weights.size, m->training->params_bytes }, sizeof mine);
    bytes = share(r, mine, sizeof mine);
    void *code = bytes ? share(r, object.data, bytes[0]) : NULL, *weights = code ? share(r, m ? m->weights.data : NULL,
        bytes[1]) : NULL, *initial = weights ? share(r, *params, bytes[2]) : NULL;
    if (!initial) diag_error_as(EXIT_MEMORY, NULL, "not enough memory for what rank 0 has built");
    if (initial && !leads) {
        m = *module = module_received(code, bytes[0], weights, bytes[1]);
        *params = initial;
    }
    if (leads) free(initial);
    if (leads) file_unmap(&object);
    free(bytes);
    free(code);
    free(weights);
    return fit_ranks_agree(r, initial && m);
}
