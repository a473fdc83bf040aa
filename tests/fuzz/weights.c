// SPDX-License-Identifier: MIT OR Apache-2.0
// The fuzz target of files of weights: bytes as a file, which the reader that claims it reads.
//
// In: bytes, which BURN_FUZZ says what they are:
//   (nothing)     a file of any format
//   pickle        the objects of a file of PyTorch's before 1.6 and what follows them; the head goes before them
//   zip, tar      parts of an archive (pack.c), since checksums let few changes through to what reads the parts
//   index         the index of safetensors; beside it lie the parts p (a) and q (b)
// Out: nothing, or the end of the process.
#define _DEFAULT_SOURCE
#include "fuzz.h"

#include "import/weights/weights.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef enum Form { WHOLE, PICKLE, ZIP, TAR, INDEX, FORMS } Form;

static char folder[64], path[80];                      // path: of a file that is not there, beside the parts
static Form form;

static const char *beside(const char *name) {
    static char at[80];
    snprintf(at, sizeof at, "%.60s/%s", folder, name);
    return at;
}

static void clean(void) {
    unlink(beside("p"));
    unlink(beside("q"));
    rmdir(folder);
}

static void write_part(const char *name, const char *tensor) {
    char header[128];
    int n = snprintf(header, sizeof header, "{\"%s\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
        tensor);
    FILE *f = fopen(beside(name), "wb");
    uint8_t size[8] = { (uint8_t)n }, one[4] = { 0, 0, 0x80, 0x3f };
    if (!f || fwrite(size, 8, 1, f) != 1 || fputs(header, f) < 0 || fwrite(one, 4, 1, f) != 1 || fclose(f))
        fatal(EXIT_IO, "cannot write a part");
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    static const char *const names[FORMS] = { "", "pickle", "zip", "tar", "index" };
    (void)argc, (void)argv;
    const char *want = getenv("BURN_FUZZ");
    for (Form i = WHOLE; want && i < FORMS; i++)
        if (!strcmp(want, names[i])) form = i;
    snprintf(folder, sizeof folder, "%s/burncc-fuzz-XXXXXX", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
    if (!mkdtemp(folder)) fatal(EXIT_IO, "cannot make %s", folder);
    snprintf(path, sizeof path, "%s/w", folder);
    atexit(clean);
    write_part("p", "a");
    write_part("q", "b");
    return 0;
}

// The bytes of the file, in memory of just its size: what is read behind its end is seen.
static File make_file(const uint8_t *data, size_t size) {
    static const uint8_t head[] = "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.\x80\x02M\xe9\x03.\x80\x02}"
        "X\x0d\0\0\0little_endian\x88s.";
    static uint8_t archive[1 << 18];
    size_t n = form == PICKLE ? sizeof head - 1 : 0;
    if (form == ZIP || form == TAR) {
        size = fuzz_pack(data, size, form == TAR, archive, sizeof archive);
        data = archive;
    }
    uint8_t *at = malloc(n + size + !(n + size));
    if (!at) fatal(EXIT_MEMORY, "out of memory");
    memcpy(at, head, n);
    if (size) memcpy(at + n, data, size);
    return (File){ .data = at, .size = n + size };
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    File f = make_file(data, size);
    Arena *a = arena_new();
    Text said;
    text_init(&said, a);
    diag_reset();
    diag_capture(&said);
    Weights *w = weights_read(a, path, &f, size % 2 ? "" : NULL);
    volatile double sum = 0;
    for (int i = 0; w && i < w->at.n; i++) {
        const Tensor *t = w->at.at[i].tensor;
        int64_t n = t->type.dtype == DT_STRING ? 0 : type_bytes(&t->type);
        for (int64_t b = 0; b < n; b++) sum += ((const uint8_t *)t->data)[b];
    }
    (void)sum;
    if (!w && !diag_errors()) bug("a file is refused without a word");
    if (w) weights_close(w);
    diag_capture(NULL);
    arena_free(a);
    free((void *)(uintptr_t)f.data);
    return 0;
}
