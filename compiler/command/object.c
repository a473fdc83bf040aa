// SPDX-License-Identifier: MIT OR Apache-2.0
// What a C compiler made of generated code for a board: its sections, which function calls which, and frames.
//
// In: an object file (ELF of 32 or 64 bits, little-endian, not linked) compiled with -ffunction-sections and
// -fdata-sections, and beside it the list that gcc's and clang's -fstack-usage writes, a line a function:
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
enum { CLASS_AT = 4, ORDER_AT = 5, MACHINE_AT = 18 };

// Where fields stand, in bytes. The header's: the table of sections, how many there are; a section's; a symbol's: its
// kind, its section; a relocation's: its symbol, above bits of its type.
typedef struct ElfForm {
    int address, header, table, count, section, flags, offset, size, link, alignment;
    int symbol, kind, home, relocation, type_bits;
} ElfForm;
static const ElfForm elf_forms[] = {
    { .address = 4, .header = 52, .table = 32, .count = 48, .section = 40, .flags = 8, .offset = 16, .size = 20,
        .link = 24, .alignment = 32, .symbol = 16, .kind = 12, .home = 14, .relocation = 8, .type_bits = 8 },
    { .address = 8, .header = 64, .table = 40, .count = 60, .section = 64, .flags = 8, .offset = 24, .size = 32,
        .link = 40, .alignment = 48, .symbol = 24, .kind = 4, .home = 6, .relocation = 16, .type_bits = 32 },
};

typedef struct ElfSection { uint32_t name, type, link, info; uint64_t flags, offset, size, alignment; } ElfSection;
typedef struct ElfSymbol { uint32_t name; int type, binding; uint32_t section; } ElfSymbol;
typedef struct Reader {
    Arena *arena;
    const uint8_t *at;
    size_t size;
    const ElfForm *form;
    Object *out;
    ElfSection *sections;
} Reader;

static uint32_t half(const uint8_t *p) { return (uint32_t)p[0] | (uint32_t)p[1] << 8; }

static uint32_t word(const uint8_t *p) { return half(p) | half(p + 2) << 16; }

static uint64_t address(const Reader *r, const uint8_t *p) {
    return r->form->address == 4 ? word(p) : word(p) | (uint64_t)word(p + 4) << 32;
}

static bool inside(const Reader *r, uint64_t offset, uint64_t bytes) {
    return offset <= r->size && bytes <= r->size - offset;
}

// A string of a table of them; "" where it is none.
static const char *string_at(const Reader *r, const ElfSection *table, uint32_t at) {
    if (at >= table->size || !memchr(r->at + table->offset + at, 0, table->size - at)) return "";
    return arena_strdup(r->arena, (const char *)r->at + table->offset + at);
}

static bool read_sections(Reader *r) {
    if (!inside(r, 0, (uint64_t)elf_forms[0].header) || memcmp(r->at, "\177ELF", 4) || r->at[ORDER_AT] != 1)
        return false;
    if (r->at[CLASS_AT] != 1 && r->at[CLASS_AT] != 2) return false;
    const ElfForm *f = r->form = &elf_forms[r->at[CLASS_AT] - 1];
    if (!inside(r, 0, (uint64_t)f->header)) return false;
    const uint64_t table = address(r, r->at + f->table);
    const uint32_t n = half(r->at + f->count), names = half(r->at + f->count + 2);
    r->out->machine = (int)half(r->at + MACHINE_AT);
    if (!inside(r, table, (uint64_t)n * (uint64_t)f->section) || names >= n) return false;
    r->out->n_sections = (int)n;
    r->out->sections = NEW_ARRAY(r->arena, ObjectSection, n);
    r->sections = NEW_ARRAY(r->arena, ElfSection, n);
    for (uint32_t i = 0; i < n; i++) {
        const uint8_t *p = r->at + table + (size_t)i * (size_t)f->section;
        ElfSection *s = &r->sections[i];
        *s = (ElfSection){ .name = word(p), .type = word(p + 4), .link = word(p + f->link),
            .info = word(p + f->link + 4), .flags = address(r, p + f->flags), .offset = address(r, p + f->offset),
            .size = address(r, p + f->size), .alignment = address(r, p + f->alignment) };
        if (s->type == SHT_NOBITS ? s->link >= n : !inside(r, s->offset, s->size) || s->link >= n) return false;
    }
    for (uint32_t i = 0; i < n; i++) {
        const ElfSection *s = &r->sections[i];
        const ObjectKind kind = s->flags & SHF_EXECINSTR ? OBJECT_TEXT :
            !(s->flags & SHF_WRITE)                      ? OBJECT_RODATA :
            s->type == SHT_NOBITS                        ? OBJECT_BSS :
                                                           OBJECT_DATA;
        r->out->sections[i] = (ObjectSection){ .name = string_at(r, &r->sections[names], s->name),
            .kind = kind, .bytes = s->flags & SHF_ALLOC ? (int64_t)s->size : 0,
            .alignment = s->alignment ? (int64_t)s->alignment : 1, .frame = -1 };
    }
    return true;
}

static ElfSymbol symbol_at(const Reader *r, const ElfSection *table, uint32_t i) {
    const ElfForm *f = r->form;
    if (i >= table->size / (uint64_t)f->symbol) return (ElfSymbol){ 0 };
    const uint8_t *p = r->at + table->offset + (size_t)i * (size_t)f->symbol;
    return (ElfSymbol){ word(p), p[f->kind] & 15, p[f->kind] >> 4, half(p + f->home) };
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
    const ElfForm *f = r->form;
    const uint64_t step = (uint64_t)(f->relocation + (s->type == SHT_RELA ? f->address : 0));
    const ElfSection *symbols = &r->sections[s->link];
    if (s->info >= (uint32_t)r->out->n_sections || symbols->type != SHT_SYMTAB) return;
    for (uint64_t at = 0; at + step <= s->size; at += step) {
        const uint64_t info = address(r, r->at + s->offset + at + f->address);
        const ElfSymbol symbol = symbol_at(r, symbols, (uint32_t)(info >> f->type_bits));
        want(r, s->info, symbols, &symbol);
    }
}

static void read_symbols(const Reader *r, const ElfSection *table) {
    for (uint32_t i = 1; i < table->size / (uint64_t)r->form->symbol; i++) {
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
static bool frame_scales(const uint8_t *code, uint64_t bytes) {
    bool length = false, moved = false;
    for (uint64_t at = 0; at + 4 <= bytes; at += 2) {
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
