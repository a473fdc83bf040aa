// SPDX-License-Identifier: MIT OR Apache-2.0
// What a C compiler made of generated code for a board: its sections, which function calls which, and frames.
//
// In: an object file (ELF of 32 bits, little-endian, not linked) compiled with -ffunction-sections and -fdata-sections,
// and beside it the list that gcc's and clang's -fstack-usage writes, a line a function:
//   model.c:12:5:model_run<TAB>24<TAB>static
// Out: an Object. What a section wants of others its relocations say, so the graph of calls is the linker's own view,
// the same whichever compiler it was; a function whose address is taken counts as called. Sections that a program
// wants are found as the linker's --gc-sections finds them, from all functions that other files can call.
//
// Tool Interface Standard: ELF, version 1.2, 1995; ELF for the Arm Architecture; RISC-V ELF psABI.
#include "object.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SHT_SYMTAB = 2, SHT_RELA = 4, SHT_NOBITS = 8, SHT_REL = 9 };
enum { SHF_WRITE = 1, SHF_ALLOC = 2, SHF_EXECINSTR = 4 };
enum { STT_OBJECT = 1, STT_FUNC = 2, STT_SECTION = 3, STB_GLOBAL = 1, SHN_LORESERVE = 0xff00 };
enum { HEADER_BYTES = 52, SECTION_BYTES = 40, SYMBOL_BYTES = 16, CLASS_AT = 4, ORDER_AT = 5 };

typedef struct ElfSection { uint32_t name, type, flags, offset, size, link, info, alignment; } ElfSection;
typedef struct ElfSymbol { uint32_t name, value; int type, binding; uint32_t section; } ElfSymbol;
typedef struct Reader { Arena *arena; const uint8_t *at; size_t size; Object *out; ElfSection *sections; } Reader;

static uint32_t half(const uint8_t *p) { return (uint32_t)p[0] | (uint32_t)p[1] << 8; }

static uint32_t word(const uint8_t *p) { return half(p) | half(p + 2) << 16; }

static bool inside(const Reader *r, uint64_t offset, uint64_t bytes) {
    return offset <= r->size && bytes <= r->size - offset;
}

// A string of a table of them; "" where it is none.
static const char *string_at(const Reader *r, const ElfSection *table, uint32_t at) {
    if (at >= table->size || !memchr(r->at + table->offset + at, 0, table->size - at)) return "";
    return arena_strdup(r->arena, (const char *)r->at + table->offset + at);
}

static bool read_sections(Reader *r) {
    if (!inside(r, 0, HEADER_BYTES) || memcmp(r->at, "\177ELF", 4) || r->at[CLASS_AT] != 1 || r->at[ORDER_AT] != 1)
        return false;
    const uint32_t table = word(r->at + 32), n = half(r->at + 48), names = half(r->at + 50);
    r->out->machine = (int)half(r->at + 18);
    if (!inside(r, table, (uint64_t)n * SECTION_BYTES) || names >= n) return false;
    r->out->n_sections = (int)n;
    r->out->sections = NEW_ARRAY(r->arena, ObjectSection, n);
    r->sections = NEW_ARRAY(r->arena, ElfSection, n);
    for (uint32_t i = 0; i < n; i++) {
        const uint8_t *p = r->at + table + i * SECTION_BYTES;
        ElfSection *s = &r->sections[i];
        *s = (ElfSection){ word(p), word(p + 4), word(p + 8), word(p + 16), word(p + 20), word(p + 24), word(p + 28),
            word(p + 32) };
        if (s->type == SHT_NOBITS ? s->link >= n : !inside(r, s->offset, s->size) || s->link >= n) return false;
    }
    for (uint32_t i = 0; i < n; i++) {
        const ElfSection *s = &r->sections[i];
        const ObjectKind kind = s->flags & SHF_EXECINSTR ? OBJECT_TEXT :
            !(s->flags & SHF_WRITE)                      ? OBJECT_RODATA :
            s->type == SHT_NOBITS                        ? OBJECT_BSS :
                                                           OBJECT_DATA;
        r->out->sections[i] = (ObjectSection){ .name = string_at(r, &r->sections[names], s->name),
            .kind = kind, .bytes = s->flags & SHF_ALLOC ? s->size : 0, .alignment = s->alignment ? s->alignment : 1,
            .frame = -1 };
    }
    return true;
}

static ElfSymbol symbol_at(const Reader *r, const ElfSection *table, uint32_t i) {
    if (i >= table->size / SYMBOL_BYTES) return (ElfSymbol){ 0 };
    const uint8_t *p = r->at + table->offset + i * SYMBOL_BYTES;
    return (ElfSymbol){ word(p), word(p + 4), p[12] & 15, p[12] >> 4, half(p + 14) };
}

// What section `from` wants: another, or by its name what some library has.
static void want(const Reader *r, uint32_t from, const ElfSection *symbols, const ElfSymbol *s) {
    ObjectSection *section = &r->out->sections[from];
    if (s->section && s->section < SHN_LORESERVE && s->section < (uint32_t)r->out->n_sections) {
        if (s->section != from || s->type == STT_FUNC) VEC_PUSH(r->arena, section->wants, (int)s->section);
        return;
    }
    const char *name = s->section ? "" : string_at(r, &r->sections[symbols->link], s->name);
    if (*name) VEC_PUSH(r->arena, section->outside, name);
}

static void read_relocations(const Reader *r, const ElfSection *s) {
    const uint32_t step = s->type == SHT_RELA ? 12 : 8;
    const ElfSection *symbols = &r->sections[s->link];
    if (s->info >= (uint32_t)r->out->n_sections || symbols->type != SHT_SYMTAB) return;
    for (uint32_t at = 0; at + step <= s->size; at += step) {
        const ElfSymbol symbol = symbol_at(r, symbols, word(r->at + s->offset + at + 4) >> 8);
        want(r, s->info, symbols, &symbol);
    }
}

static void read_symbols(const Reader *r, const ElfSection *table) {
    for (uint32_t i = 1; i < table->size / SYMBOL_BYTES; i++) {
        const ElfSymbol s = symbol_at(r, table, i);
        if (!s.section || s.section >= (uint32_t)r->out->n_sections) continue;
        ObjectSection *section = &r->out->sections[s.section];
        const size_t prefix = strlen(".text.");
        if (s.type == STT_FUNC && !strncmp(section->name, ".text.", prefix)) section->symbol = section->name + prefix;
        else if (s.type == STT_FUNC || s.type == STT_OBJECT)
            section->symbol = string_at(r, &r->sections[table->link], s.name);
        if (s.type == STT_FUNC) section->open |= s.binding != 0;
    }
}

// ---------------------------------------------------------------- frames

// Behind the numbers of clones.
static const char *past_numbers(const char *s) {
    for (size_t digits; *s == '.' && (digits = strspn(s + 1, "0123456789")) > 0;) s += 1 + digits;
    return s;
}

// Is the symbol this function's, or a clone of it: model_k0.constprop.isra for model_k0.constprop.0.isra.1?
static bool is_of(const char *symbol, const char *function) {
    for (;; symbol++, function++) {
        symbol = past_numbers(symbol);
        function = past_numbers(function);
        if (*symbol != *function) return false;
        if (!*function) return true;
    }
}

static void read_frame(const Reader *r, const char *line) {
    const char *tab = strchr(line, '\t'), *name = tab;
    if (!tab) return;
    while (name > line && name[-1] != ':') name--;
    const char *function = arena_strndup(r->arena, name, (size_t)(tab - name));
    const bool unbounded = strstr(tab, "dynamic") && !strstr(tab, "bounded");
    const int64_t bytes = strtoll(tab + 1, NULL, 10);
    for (int i = 0; i < r->out->n_sections; i++) {
        ObjectSection *s = &r->out->sections[i];
        if (!s->symbol || s->kind != OBJECT_TEXT || !is_of(s->symbol, function)) continue;
        if (bytes > s->frame) s->frame = bytes;
        s->unbounded |= unbounded;
    }
}

static bool read_frames(const Reader *r, const char *path) {
    File file;
    if (access(path, R_OK) || !file_map(&file, path)) return false;
    const char *text = arena_strndup(r->arena, (const char *)file.data, file.size);
    file_unmap(&file);
    for (size_t n; *text; text += n + (text[n] == '\n')) {
        n = strcspn(text, "\n");
        read_frame(r, arena_strndup(r->arena, text, n));
    }
    return true;
}

// Does the stack pointer move by a multiple of a vector's length, which the processor knows? clang's list says nothing
// of that: csrr t, vlenb; ...; sub sp, sp, t.
static bool frame_scales(const uint8_t *code, uint32_t bytes) {
    bool length = false, moved = false;
    for (uint32_t at = 0; at + 4 <= bytes; at += 2) {
        const uint32_t instruction = word(code + at);
        length |= (instruction & 0xfffff07f) == 0xc2202073;
        moved |= length && (instruction & 0xfe0fffff) == 0x40010133;
    }
    return moved;
}

static void find_scaling(const Reader *r) {
    enum { EM_RISCV = 243 };
    for (int i = 0; r->out->machine == EM_RISCV && i < r->out->n_sections; i++) {
        const ElfSection *s = &r->sections[i];
        if (s->flags & SHF_EXECINSTR && s->type != SHT_NOBITS)
            r->out->sections[i].unbounded |= frame_scales(r->at + s->offset, s->size);
    }
}

static void mark(Object *o, int at) {
    ObjectSection *s = &o->sections[at];
    if (s->wanted) return;
    s->wanted = true;
    for (int i = 0; i < s->wants.n; i++) mark(o, s->wants.at[i]);
}

Object *object_read(Arena *a, const Unlinked *from) {
    File file;
    if (access(from->object, R_OK) || !file_map(&file, from->object)) return NULL;
    Reader r = { .arena = a, .at = file.data, .size = file.size, .out = NEW(a, Object) };
    const bool read = read_sections(&r);
    for (int i = 0; read && i < r.out->n_sections; i++) {
        const ElfSection *s = &r.sections[i];
        if (s->type == SHT_REL || s->type == SHT_RELA) read_relocations(&r, s);
        if (s->type == SHT_SYMTAB) read_symbols(&r, s);
    }
    if (read) r.out->frames = read_frames(&r, from->frames);
    if (read) find_scaling(&r);
    file_unmap(&file);
    for (int i = 0; read && i < r.out->n_sections; i++)
        if (r.out->sections[i].open) mark(r.out, i);
    return read ? r.out : NULL;
}

// ---------------------------------------------------------------- stack

int object_function(const Object *o, const char *name) {
    for (int i = 0; i < o->n_sections; i++)
        if (o->sections[i].kind == OBJECT_TEXT && o->sections[i].symbol && !strcmp(o->sections[i].symbol, name))
            return i;
    return -1;
}

int64_t object_depth(Object *o, int at) {
    ObjectSection *s = &o->sections[at];
    const bool text = s->kind == OBJECT_TEXT;               // else a table, of functions perhaps
    if (s->known) return s->depth;
    if (s->entered || (text && (s->unbounded || s->frame < 0))) return -1;
    int64_t most = text && s->outside.n ? LIBRARY_FRAME : 0;
    s->entered = true;
    s->deepest = -1;
    for (int i = 0; i < s->wants.n && most >= 0; i++) {
        const int64_t below = object_depth(o, s->wants.at[i]);
        if (below > most) s->deepest = s->wants.at[i];
        if (below > most || below < 0) most = below;
    }
    s->entered = false;
    s->known = most >= 0;
    return s->depth = s->known ? most + (text ? s->frame : 0) : -1;
}
