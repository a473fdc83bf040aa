// SPDX-License-Identifier: MIT OR Apache-2.0
// ONNX Runtime as a contestant of scripts/bench, through the C interface of the library in its Python package: no
// interpreter stands in its way or counts as its memory. All optimisations, its own thread pool, inputs bound once.
//
// usage: ort LIBRARY MODEL FOLDER THREADS    FOLDER holds inputs.txt, in_N.bin, wanted.txt (the outputs' names)
//
// The package brings no header. The interface is a table of functions whose places never change (a promise of the
// library's ABI); those used here have their numbers below.
#include "worker.h"

#include <dlfcn.h>

enum Place {
    GET_ERROR_MESSAGE = 2,
    CREATE_ENV = 3,
    CREATE_SESSION = 7,
    RUN = 9,
    CREATE_SESSION_OPTIONS = 10,
    SET_LEVEL = 23,
    SET_INTRA_OP = 24,
    SET_INTER_OP = 25,
    CREATE_TENSOR = 49,
    GET_DATA = 51,
    GET_TYPE = 60,
    GET_RANK = 61,
    GET_SHAPE = 62,
    GET_COUNT = 64,
    GET_TYPE_AND_SHAPE = 65,
    CREATE_CPU_MEMORY = 69
};
enum { API_VERSION = 1, LOG_ERRORS = 3, ALL_OPTIMISATIONS = 99, ARENA_ALLOCATOR = 1, DEFAULT_MEMORY = 0, MOST = 256 };

typedef struct ApiBase {
    const void *(*get_api)(uint32_t version);
    const char *(*get_version)(void);
} ApiBase;
typedef void *Status;                                   // NULL: it went well
typedef void (*Function)(void);
typedef Status Run(void *session, void *options, const char *const *in_names, void *const *in, size_t n_in,
    const char *const *out_names, size_t n_out, void **out);
typedef Status MakeTensor(
    void *memory, void *data, size_t bytes, const int64_t *shape, size_t rank, int dtype, void **out);

static const Function *api;
static void *session, *values[MOST], *results[MOST];
static const char *in_names[MOST], *out_names[MOST];
static Tensor inputs[MOST], outputs[MOST];
static int n_in, n_out;

static void check(Status s) {
    if (s) worker_fail("ONNX Runtime", ((const char *(*)(Status))api[GET_ERROR_MESSAGE])(s));
}

static int worker_run(void) {
    check(((Run *)api[RUN])(session, NULL, in_names, values, (size_t)n_in, out_names, (size_t)n_out, results));
    return 0;
}

static void api_load(const char *path) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) worker_fail("ONNX Runtime", dlerror());
    const ApiBase *(*base)(void);
    *(void **)&base = dlsym(library, "OrtGetApiBase");
    if (!base) worker_fail("ONNX Runtime", "the library has no OrtGetApiBase");
    if (!(api = base()->get_api(API_VERSION))) worker_fail("ONNX Runtime", "it has no interface of version 1");
}

static void session_make(const char *model, int threads) {
    void *environment, *options;
    check(((Status (*)(int, const char *, void **))api[CREATE_ENV])(LOG_ERRORS, "bench", &environment));
    check(((Status (*)(void **))api[CREATE_SESSION_OPTIONS])(&options));
    check(((Status (*)(void *, int))api[SET_LEVEL])(options, ALL_OPTIMISATIONS));
    check(((Status (*)(void *, int))api[SET_INTRA_OP])(options, threads));
    check(((Status (*)(void *, int))api[SET_INTER_OP])(options, 1));
    check(((Status(*)(void *, const char *, void *, void **))api[CREATE_SESSION])(
        environment, model, options, &session));
}

static void inputs_bind(const char *folder) {
    void *memory;
    check(((Status (*)(int, int, void **))api[CREATE_CPU_MEMORY])(ARENA_ALLOCATOR, DEFAULT_MEMORY, &memory));
    n_in = worker_read_table(folder, "inputs.txt", inputs, MOST);
    for (int i = 0; i < n_in; i++) {
        Tensor *t = &inputs[i];
        t->data = worker_load(folder, "in", i, t->bytes);
        check(((MakeTensor *)api[CREATE_TENSOR])(
            memory, t->data, t->bytes, t->shape, (size_t)t->rank, t->dtype, &values[i]));
        in_names[i] = t->name;
    }
    n_out = worker_read_table(folder, "wanted.txt", outputs, MOST);
    for (int i = 0; i < n_out; i++) out_names[i] = outputs[i].name;
}

// Types, shapes and places of the results, which the library allocated at the first run and now writes in place.
static void outputs_describe(void) {
    for (int i = 0; i < n_out; i++) {
        Tensor *t = &outputs[i];
        void *info;
        size_t rank, count;
        check(((Status (*)(void *, void **))api[GET_TYPE_AND_SHAPE])(results[i], &info));
        check(((Status (*)(void *, int *))api[GET_TYPE])(info, &t->dtype));
        check(((Status (*)(void *, size_t *))api[GET_RANK])(info, &rank));
        if (rank > WORKER_RANK) worker_fail("ONNX Runtime", "a rank above 8");
        check(((Status (*)(void *, int64_t *, size_t))api[GET_SHAPE])(info, t->shape, rank));
        check(((Status (*)(void *, size_t *))api[GET_COUNT])(info, &count));
        check(((Status (*)(void *, void **))api[GET_DATA])(results[i], &t->data));
        static const int sizes[] = { 0, 4, 1, 1, 2, 2, 4, 8, 0, 1, 2, 8, 4, 8, 8, 16, 2 };
        t->rank = (int)rank;
        t->bytes = t->dtype < (int)(sizeof sizes / sizeof *sizes) ? count * (size_t)sizes[t->dtype] : 0;
    }
}

int main(int argc, char **argv) {
    if (argc != 5) worker_fail(argv[0], "wants LIBRARY MODEL FOLDER THREADS");
    api_load(argv[1]);
    int64_t began = worker_now();
    session_make(argv[2], atoi(argv[4]));
    int64_t loaded = worker_now();
    inputs_bind(argv[3]);
    int64_t bound = worker_now();
    worker_run();
    int64_t ran = worker_now();
    outputs_describe();
    return worker_serve(argv[3], outputs, n_out, began + (bound - loaded), bound, ran);
}
