// SPDX-License-Identifier: MIT OR Apache-2.0
// Memory that is freed all at once: one arena holds everything a compilation makes.
//
// In: sizes. Out: zeroed blocks, 64-byte aligned when they are large enough for it to matter (tensors), else 16-byte.
// The idea: a list of chunks, each filled from its start; a block larger than a chunk gets a chunk of its own.
// A large one may go before the others do.
// Running out of memory ends the process with status 5: no caller has to check. For the fuzzer what is not handed
// out, and a gap behind each block, is poisoned, so that a step past a block is seen inside a chunk too.
#include "base/base.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

// the first chunk; each is twice the one before, as scratch arenas are many and small
#define FIRST_BYTES ((size_t)4 << 10)
#ifndef CHUNK_BYTES                             // less in the fuzzer's build, whose allocator maps larger ones anew
#define CHUNK_BYTES ((size_t)256 << 10)         // up to this
#endif
#define LARGE_BYTES ((size_t)64 << 10)          // from here on a block has its own chunk, so that chunks waste little

typedef struct Chunk Chunk;
struct Chunk {
    Chunk *next;
    size_t used, size;                          // in bytes, header included
};

struct Arena {
    Chunk *chunks;                              // the first one is being filled
    size_t bytes;                               // handed out so far
    size_t chunk;                               // size of the next chunk
};

#ifdef POISONS                                  // the fuzzer's build, which has AddressSanitizer
#include <sanitizer/asan_interface.h>
#define GAP_BYTES ((size_t)16)
#else
#define ASAN_POISON_MEMORY_REGION(at, n) ((void)(at), (void)(n))
#define ASAN_UNPOISON_MEMORY_REGION(at, n) ((void)(at), (void)(n))
#define GAP_BYTES ((size_t)0)
#endif

#define HEADER_BYTES ((size_t)64)               // keeps the first block of a chunk aligned
_Static_assert(sizeof(Chunk) <= HEADER_BYTES, "chunk header fits");

static size_t round_up(size_t n, size_t to) { return (n + to - 1) / to * to; }

static Chunk *chunk_new(size_t bytes) {
    if (bytes > SIZE_MAX - 2 * HEADER_BYTES) fatal(EXIT_MEMORY, "out of memory");
    size_t size = round_up(bytes + HEADER_BYTES, 64);
    // calloc gives zeroed pages for free when the block is large; it aligns to 16, so the chunk starts up to 48 bytes
    // in.
    char *raw = calloc(1, size + 64);
    if (!raw) fatal(EXIT_MEMORY, "out of memory allocating %zu bytes", bytes);
    size_t skip = round_up((uintptr_t)raw + sizeof(void *), 64) - (uintptr_t)raw;
    char *at = raw + skip;
    memcpy(at - sizeof(void *), &raw, sizeof raw);      // what free() wants back
    Chunk *c = (Chunk *)(void *)at;
    c->used = HEADER_BYTES;
    c->size = size;
    return c;
}

Arena *arena_new(void) {
    Arena *a = calloc(1, sizeof *a);
    if (!a) fatal(EXIT_MEMORY, "out of memory");
    a->chunk = FIRST_BYTES;
    return a;
}

void arena_free(Arena *a) {
    if (!a) return;
    for (Chunk *c = a->chunks, *next; c; c = next) {
        void *raw;
        next = c->next;
        memcpy(&raw, (char *)c - sizeof raw, sizeof raw);
        free(raw);
    }
    free(a);
}

void *arena_alloc(Arena *a, size_t bytes) {
    size_t align = bytes >= 64 ? 64 : 16;
    a->bytes += bytes;
    bytes += !bytes;                            // even empty blocks have an address of their own, inside their chunk
    if (bytes >= LARGE_BYTES) {                 // its own chunk, kept behind the one being filled
        Chunk *c = chunk_new(bytes);
        c->used = c->size + 1;                  // which no chunk of many blocks reaches
        if (a->chunks) {
            c->next = a->chunks->next;
            a->chunks->next = c;
        } else a->chunks = c;
        return (char *)c + HEADER_BYTES;
    }
    Chunk *c = a->chunks;
    size_t at = c ? round_up(c->used, align) : 0;
    if (!c || at > c->size || c->size - at < bytes) {
        size_t size = a->chunk > bytes ? a->chunk : bytes;
        if (a->chunk < CHUNK_BYTES) a->chunk *= 2;
        Chunk *fresh = chunk_new(size);
        ASAN_POISON_MEMORY_REGION((char *)fresh + HEADER_BYTES, fresh->size - HEADER_BYTES);
        fresh->next = c;
        a->chunks = c = fresh;
        at = HEADER_BYTES;
    }
    c->used = at + bytes + GAP_BYTES < c->size ? at + bytes + GAP_BYTES : c->size;
    ASAN_UNPOISON_MEMORY_REGION((char *)c + at, bytes);
    return (char *)c + at;
}

bool arena_release(Arena *a, const void *block) {
    for (Chunk **at = &a->chunks, *c; (c = *at); at = &c->next) {
        if ((const char *)c + HEADER_BYTES != block || c->used <= c->size) continue;
        void *raw;
        *at = c->next;
        memcpy(&raw, (char *)c - sizeof raw, sizeof raw);
        free(raw);
        return true;
    }
    return false;
}

void *arena_copy(Arena *a, const void *p, size_t bytes) {
    void *to = arena_alloc(a, bytes);
    if (bytes) memcpy(to, p, bytes);
    return to;
}

char *arena_strndup(Arena *a, const char *s, size_t n) {
    char *to = arena_alloc(a, n + 1);
    if (n) memcpy(to, s, n);
    return to;
}

char *arena_strdup(Arena *a, const char *s) { return arena_strndup(a, s, strlen(s)); }

char *arena_printf(Arena *a, const char *fmt, ...) {
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n < 0) bug("bad format \"%s\"", fmt);
    char *to = arena_alloc(a, (size_t)n + 1);
    vsnprintf(to, (size_t)n + 1, fmt, again);
    va_end(again);
    return to;
}

size_t arena_bytes(const Arena *a) { return a->bytes; }

void vec_grow(Arena *a, void **at, int *n, int *cap, size_t size) {
    if (*n == *cap) {
        if (*cap > INT32_MAX / 2) fatal(EXIT_MEMORY, "a list grew past %d entries", *cap);
        int grown = *cap ? 2 * *cap : 8;
        void *to = arena_alloc(a, (size_t)grown * size);
        if (*n) memcpy(to, *at, (size_t)*n * size);
        *at = to;
        *cap = grown;
    }
    ++*n;
}
