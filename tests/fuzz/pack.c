// SPDX-License-Identifier: MIT OR Apache-2.0
// Archives of fuzzed parts: checksums, offsets and headers are right, so every change reaches what reads the parts.
//
// In: bytes that are names and contents: the length of a name (1 byte), the name, the length of the content (2 bytes,
// little endian), the content; a length reaches at most to the end. Out: a zip archive, whose parts are not compressed,
// or a tar archive of them.
#include "fuzz.h"

#include <string.h>

enum { BLOCK = 512, MAX_PARTS = 64 };
typedef struct Part { const uint8_t *name, *data; size_t name_bytes, bytes, at; uint32_t crc; } Part;
typedef struct Packed { uint8_t *to; size_t n, room; } Packed;

static void put(Packed *p, const void *from, size_t n) {
    if (n > p->room - p->n) n = p->room - p->n;
    memcpy(p->to + p->n, from, n);
    p->n += n;
}

static void put_number(Packed *p, uint64_t v, int bytes) {
    uint8_t little[8] = { 0 };
    for (int i = 0; i < bytes && i < 8; i++) little[i] = (uint8_t)(v >> 8 * i);
    put(p, little, (size_t)bytes);
}

static size_t take(const uint8_t **at, const uint8_t *end, int bytes, const uint8_t **out) {
    size_t n = 0;
    for (int i = 0; i < bytes && *at < end; i++) n |= (size_t)*(*at)++ << 8 * i;
    if (n > (size_t)(end - *at)) n = (size_t)(end - *at);
    *out = *at;
    *at += n;
    return n;
}

static int parts_of(const uint8_t *data, size_t size, Part part[MAX_PARTS]) {
    const uint8_t *end = data + size;
    int n = 0;
    for (; data < end && n < MAX_PARTS; n++) {
        part[n].name_bytes = take(&data, end, 1, &part[n].name);
        part[n].bytes = take(&data, end, 2, &part[n].data);
    }
    return n;
}

// CRC-32 as zip archives have it (ISO 3309, bits reversed).
static uint32_t checksum(const uint8_t *at, size_t n) {
    static uint32_t table[256];
    for (uint32_t i = 0; !table[255] && i < 256; i++) {
        table[i] = i;
        for (int k = 0; k < 8; k++) table[i] = table[i] >> 1 ^ (table[i] & 1 ? 0xedb88320u : 0);
    }
    uint32_t c = ~0u;
    for (size_t i = 0; i < n; i++) c = table[(c ^ at[i]) & 255] ^ c >> 8;
    return ~c;
}

// What a part's header and its entry in the directory have in common.
static void put_about(Packed *p, const Part *part) {
    put_number(p, 20, 8);                               // version, flags, no compression, time
    put_number(p, 0, 2);                                // date
    put_number(p, part->crc, 4);
    put_number(p, part->bytes, 4);
    put_number(p, part->bytes, 4);
    put_number(p, part->name_bytes, 2);
    put_number(p, 0, 2);
}

static void put_zip(Packed *p, Part *part, int n) {
    for (int i = 0; i < n; i++) {
        part[i].at = p->n;
        part[i].crc = checksum(part[i].data, part[i].bytes);
        put(p, "PK\3\4", 4);
        put_about(p, &part[i]);
        put(p, part[i].name, part[i].name_bytes);
        put(p, part[i].data, part[i].bytes);
    }
    size_t directory = p->n;
    for (int i = 0; i < n; i++) {
        put(p, "PK\1\2", 4);
        put_number(p, 20, 2);
        put_about(p, &part[i]);
        put_number(p, 0, 8);                            // comment, disk, attributes
        put_number(p, (uint64_t)part[i].at << 16, 6);
        put(p, part[i].name, part[i].name_bytes);
    }
    size_t bytes = p->n - directory;
    put(p, "PK\5\6\0\0\0", 8);
    put_number(p, (uint64_t)n, 2);
    put_number(p, (uint64_t)n, 2);
    put_number(p, bytes, 4);
    put_number(p, directory, 4);
    put_number(p, 0, 2);
}

static void put_tar(Packed *p, const Part *part, int n) {
    for (int i = 0; i < n; i++) {
        uint8_t block[BLOCK] = { [156] = '0', [257] = 'u', 's', 't', 'a', 'r', 0, '0', '0' };
        memcpy(block, part[i].name, part[i].name_bytes < 100 ? part[i].name_bytes : 100);
        snprintf((char *)block + 124, 12, "%011zo", part[i].bytes);
        put(p, block, BLOCK);
        put(p, part[i].data, part[i].bytes);
        put(p, (const uint8_t[BLOCK]){ 0 }, (BLOCK - part[i].bytes % BLOCK) % BLOCK);
    }
    put(p, (const uint8_t[2 * BLOCK]){ 0 }, (size_t)2 * BLOCK);
}

size_t fuzz_pack(const uint8_t *data, size_t size, bool tar, uint8_t *to, size_t room) {
    Part part[MAX_PARTS];
    Packed p = { to, 0, room };
    int n = parts_of(data, size, part);
    if (tar) put_tar(&p, part, n);
    else put_zip(&p, part, n);
    return p.n;
}
