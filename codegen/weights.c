// SPDX-License-Identifier: MIT OR Apache-2.0
// Constants on their way out: as C arrays inside the generated file, or as one binary file beside it.
//
// The file is 64 bytes of header (magic "burnw1", size, checksum), then the buffers at the plan's offsets, each
// aligned to 64 bytes: it can be mapped, embedded or read into any memory aligned to 64. Buffers in a template's
// layout are packed while they are written.
#include "codegen.h"
#include "weights.h"

#include <stdlib.h>
#include <string.h>

// The bytes of a weight: its data, or freshly packed into *owned, which the caller frees.
static const void *weight_bytes(const Buffer *b, void **owned) {
    *owned = NULL;
    if (!b->fill) return b->data;
    void *p = calloc(1, (size_t)b->bytes);
    if (!p) fatal(EXIT_MEMORY, "no memory for %lld bytes of weights", (long long)b->bytes);
    b->fill(b, p);
    *owned = p;
    return p;
}

static void print_element(Text *out, const char *type, const void *at, int64_t i) {
    if (!strcmp(type, "burn_string")) {
        text_printf(out, "\"%s\"", c_string(out->arena, ((const char *const *)at)[i]));
        return;
    }
    if (!strncmp(type, "burn_complex", 12)) {
        const char *part = strcmp(type, "burn_complex64") ? "double" : "float";
        text_printf(out, "{ ");
        print_element(out, part, at, 2 * i);
        text_printf(out, ", ");
        print_element(out, part, at, 2 * i + 1);
        text_printf(out, " }");
    } else if (!strcmp(type, "float") || !strcmp(type, "double")) {
        bool single = type[0] == 'f';
        double v = single ? (double)((const float *)at)[i] : ((const double *)at)[i];
        char text[48];
        if (v != v) {
            text_printf(out, "%sNAN", single ? "" : "(double)");
            return;
        }
        if (v - v != 0) {
            text_printf(out, "%s%sINFINITY", v < 0 ? "-" : "", single ? "" : "(double)");
            return;
        }
        snprintf(text, sizeof text, single ? "%.9g" : "%.17g", v);
        text_printf(out, "%s%s%s", text, strpbrk(text, ".e") ? "" : ".0", single ? "f" : "");
    } else if (!strcmp(type, "int64_t")) {
        int64_t v = ((const int64_t *)at)[i];
        if (v == INT64_MIN) text_printf(out, "-INT64_C(9223372036854775807) - 1");
        else text_printf(out, "INT64_C(%lld)", (long long)v);
    } else if (!strcmp(type, "uint64_t"))
        text_printf(out, "UINT64_C(%llu)", (unsigned long long)((const uint64_t *)at)[i]);
    else if (!strcmp(type, "int32_t")) {
        int32_t v = ((const int32_t *)at)[i];
        if (v == INT32_MIN) text_printf(out, "-2147483647 - 1");
        else text_printf(out, "%d", v);
    } else if (!strcmp(type, "uint32_t")) text_printf(out, "%uu", ((const uint32_t *)at)[i]);
    else if (!strcmp(type, "int16_t")) text_printf(out, "%d", ((const int16_t *)at)[i]);
    else if (!strcmp(type, "uint16_t")) text_printf(out, "%u", ((const uint16_t *)at)[i]);
    else if (!strcmp(type, "int8_t")) text_printf(out, "%d", ((const int8_t *)at)[i]);
    else text_printf(out, "%u", ((const uint8_t *)at)[i]);
}

void weights_print_array(Text *out, const Buffer *b, const char *name) {
    const char *type = spell_c_storage(b->element);
    int64_t n = b->bytes / (int64_t)dtype_size(b->element);
    void *owned;
    const void *data = weight_bytes(b, &owned);
    text_printf(out, "static const %s %s[%lld] = {", type, name, (long long)(n ? n : 1));
    for (int64_t i = 0; i < n; i++) {
        text_printf(out, i % 12 ? ", " : i ? ",\n    " : "\n    ");
        print_element(out, type, data, i);
    }
    text_printf(out, "%s\n};\n",
        n                                      ? "" :
            !strncmp(type, "burn_complex", 12) ? "{ 0, 0 }" :
            !strcmp(type, "burn_string")       ? "\"\"" :
                                                 "0");
    free(owned);
}

bool weights_in_file(const Buffer *b) { return b->place == PLACE_WEIGHT && b->value->type.dtype != DT_STRING; }

// A 64-bit FNV-1a variant over little-endian words of eight bytes; sizes are multiples of 64. The generated check
// repeats it.
static uint64_t checksum(uint64_t h, const void *p, size_t n) {
    for (size_t i = 0; i + 8 <= n; i += 8) {
        uint64_t w;
        memcpy(&w, (const char *)p + i, 8);
        h = (h ^ w) * WEIGHTS_PRIME;
        h ^= h >> 32;
    }
    return h;
}

// from: the file's bytes before it, and after it
static bool for_each(const Plan *p, OutFile *f, uint64_t *sum, int64_t *from) {
    bool ok = true;
    int64_t at = *from;
    for (int i = 0; i < p->buffers.n && ok; i++) {
        const Buffer *b = p->buffers.at[i];
        if (!weights_in_file(b) || b->same) continue;
        void *owned;
        const void *data = weight_bytes(b, &owned);
        if (at != b->offset) bug("weights are not in the order of their offsets");
        size_t whole = (size_t)b->bytes / 64 * 64, rest = (size_t)b->bytes - whole;
        char tail[64] = { 0 };
        memcpy(tail, (const char *)data + whole, rest);
        if (sum) {
            *sum = checksum(*sum, data, whole);
            if (rest) *sum = checksum(*sum, tail, 64);
        }
        if (f) ok = out_write(f, data, whole) && (!rest || out_write(f, tail, 64));
        at += (int64_t)(whole + (rest ? 64 : 0));
        free(owned);
    }
    *from = at;
    return ok;
}

// ---------------------------------------------------------------- what several functions have
// Where weights of one hash stand: chains through `next`.
typedef struct Known { Buffer *buffer; int function, next; uint64_t hash; } Known;
typedef struct Sharing { Known *known; int n, *heads, slots; } Sharing;

static uint64_t hash_bytes(const void *p, size_t n) {
    uint64_t h = checksum(n, p, n), rest = 0;
    memcpy(&rest, (const char *)p + n / 8 * 8, n % 8);
    return (h ^ rest) * WEIGHTS_PRIME;
}

// One of another function with the same bytes, which are `data`; NULL: there is none.
static Buffer *find_same(const Sharing *s, const Buffer *b, int function, uint64_t hash, const void *data) {
    for (int i = s->heads[hash % (uint64_t)s->slots]; i >= 0; i = s->known[i].next) {
        const Known *k = &s->known[i];
        if (k->hash != hash || k->function == function || k->buffer->bytes != b->bytes
            || k->buffer->element != b->element)
            continue;
        void *owned;
        const void *other = weight_bytes(k->buffer, &owned);
        bool same = other == data || !memcmp(other, data, (size_t)b->bytes);
        free(owned);
        if (same) return k->buffer;
    }
    return NULL;
}

static void share(Sharing *s, Buffer *b, int function) {
    void *owned;
    const void *data = weight_bytes(b, &owned);
    uint64_t hash = hash_bytes(data, (size_t)b->bytes);
    b->same = find_same(s, b, function, hash, data);
    free(owned);
    if (b->same) {
        b->offset = b->same->offset;
        return;
    }
    int *head = &s->heads[hash % (uint64_t)s->slots];
    s->known[s->n] = (Known){ b, function, *head, hash };
    *head = s->n++;
}

int64_t weights_share(int n, const Program *programs) {
    Arena *scratch = arena_new();
    Sharing s = { .slots = 1 };
    int64_t bytes = 0;
    for (int i = 0; i < n; i++) s.slots += programs[i].plan->buffers.n;
    s.known = NEW_ARRAY(scratch, Known, s.slots);
    s.heads = NEW_ARRAY(scratch, int, s.slots);
    for (int i = 0; i < s.slots; i++) s.heads[i] = -1;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < programs[i].plan->buffers.n; j++) {
            Buffer *b = programs[i].plan->buffers.at[j];
            if (!weights_in_file(b)) continue;
            b->offset = bytes;
            share(&s, b, i);
            if (!b->same) bytes += (b->bytes + 63) / 64 * 64;
        }
    arena_free(scratch);
    return bytes;
}

// The same sum in C99, for the generated file.
void weights_print_check(Text *c, const char *model, uint64_t sum, int64_t weight_bytes) {
    Arena *a = c->arena;
    skeleton_fill(a, c, "skeleton/weights.c", 6,
        (Hole[]){ { "MODEL", NULL, model },
            { "N_WEIGHTS", NULL, number_text(a, weight_bytes + WEIGHTS_HEADER) },
            { "N_HEADER", NULL, number_text(a, WEIGHTS_HEADER) },
            { "SEED", NULL, arena_printf(a, "UINT64_C(0x%llx)", (unsigned long long)WEIGHTS_SEED) },
            { "PRIME", NULL, arena_printf(a, "UINT64_C(0x%llx)", (unsigned long long)WEIGHTS_PRIME) },
            { "SUM", NULL, arena_printf(a, "UINT64_C(0x%llx)", (unsigned long long)sum) } });
    text_printf(c, "\n");
}

// from: the words before them, and after them
static void print_words(Text *out, const Plan *p, int64_t *from) {
    int64_t at = *from;
    for (int i = 0; i < p->buffers.n; i++) {
        const Buffer *b = p->buffers.at[i];
        if (!weights_in_file(b) || b->same) continue;
        void *owned;
        const char *data = weight_bytes(b, &owned);
        for (int64_t k = 0; k < (b->bytes + 63) / 64 * 64; k += 4, at++) {
            uint32_t word = 0;
            if (k < b->bytes) memcpy(&word, data + k, b->bytes - k < 4 ? (size_t)(b->bytes - k) : 4);
            text_printf(out, at % 10 ? ", 0x%08xu" : at ? ",\n    0x%08xu" : "\n    0x%08xu", word);
        }
        free(owned);
    }
    *from = at;
}

void weights_print_words(Text *out, int n, const Program *programs, int64_t bytes, const char *name) {
    int64_t at = 0;
    text_printf(out, "static const uint32_t %s[%lld] = {", name, (long long)bytes / 4);
    for (int i = 0; i < n; i++) print_words(out, programs[i].plan, &at);
    text_printf(out, "\n};\n\n");
}

uint64_t weights_sum(int n, const Program *programs) {
    uint64_t sum = WEIGHTS_SEED;
    int64_t at = 0;
    for (int i = 0; i < n; i++) for_each(programs[i].plan, NULL, &sum, &at);
    return sum;
}

// The checksum stands in the header, before the data: it is written when all are known, so that buffers are packed
// once and never kept. A pipe has them packed twice. The caller commits the file.
OutFile *weights_write_file(
    Arena *a, int n, const Program *programs, int64_t bytes, const char *path, uint64_t *sum) {
    uint64_t size = (uint64_t)bytes;
    OutFile *f = out_replace(a, path, (OutMark){ "burnw1", true });
    if (!f) return NULL;
    const bool once = out_can_rewrite(f);
    *sum = once ? WEIGHTS_SEED : weights_sum(n, programs);
    char header[WEIGHTS_HEADER] = "burnw1";
    memcpy(header + 8, &size, 8);
    memcpy(header + 16, sum, 8);
    bool ok = out_write(f, header, sizeof header);
    int64_t at = 0;
    for (int i = 0; i < n; i++) ok = ok && for_each(programs[i].plan, f, once ? sum : NULL, &at);
    if (once) ok = ok && out_rewrite(f, 16, sum, 8);
    if (ok) return f;
    out_abandon(f);
    return NULL;
}
