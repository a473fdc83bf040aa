// SPDX-License-Identifier: MIT OR Apache-2.0
// The fuzz target of files of weights: bytes as a file, which the reader that claims it reads.
//
// In: bytes, or with BURN_FUZZ=pickle the objects of a file of PyTorch's before 1.6, whose head goes before them: a zip
// archive's checksums let few changes through to what reads its pickle, and this is the same reader. Out: nothing, or
// the end of the process.
#define _DEFAULT_SOURCE
#include "fuzz.h"

#include "import/weights/weights.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[64];
static int file = -1;
static bool pickle;

static void remove_file(void) { unlink(path); }

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc, (void)argv;
    const char *want = getenv("BURN_FUZZ");
    pickle = want && !strcmp(want, "pickle");
    snprintf(path, sizeof path, "%s/burncc-fuzz-XXXXXX", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
    file = mkstemp(path);
    if (file < 0) fatal(EXIT_IO, "cannot write %s", path);
    atexit(remove_file);
    return 0;
}

static void write_file(const uint8_t *data, size_t size) {
    static const uint8_t head[] = "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.\x80\x02M\xe9\x03.\x80\x02}"
        "X\x0d\0\0\0little_endian\x88s.";
    size_t n = pickle ? sizeof head - 1 : 0;
    if (ftruncate(file, 0) || pwrite(file, head, n, 0) != (ssize_t)n ||
        pwrite(file, data, size, (off_t)n) != (ssize_t)size)
        fatal(EXIT_IO, "cannot write the input");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    write_file(data, size);
    Arena *a = arena_new();
    Text said;
    text_init(&said, a);
    diag_reset();
    diag_capture(&said);
    Weights *w = weights_open(a, path, size % 2 ? "" : NULL);
    volatile double sum = 0;
    for (int i = 0; w && i < w->at.n; i++) {
        const Tensor *t = w->at.at[i].tensor;
        int64_t n = t->type.dtype == DT_STRING ? 0 : type_bytes(&t->type);
        for (int64_t b = 0; b < n; b++) sum += ((const uint8_t *)t->data)[b];
    }
    if (!w && !diag_errors()) bug("a file is refused without a word");
    if (w) weights_close(w);
    diag_capture(NULL);
    arena_free(a);
    return 0;
}
