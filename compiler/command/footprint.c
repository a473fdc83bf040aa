// SPDX-License-Identifier: MIT OR Apache-2.0
// What generated code takes on a processor without an operating system: flash by section, and stack.
//
// In: the C file as it was written, compiled here by the target's compiler: $CC, the one that the target's row names,
// or clang, whichever makes code for that processor, with the flags that the row has. Out: lines of --report, and
// whether --flash and --stack are kept, with what takes most where they are not. Counted is what a program that calls
// the model's functions links: the descriptor goes where nobody asks for it (--gc-sections), and what a library is
// asked for (names in the report) comes on top. Without a compiler code is estimated, and stack is not known.
#include "object.h"

#include <stdlib.h>
#include <string.h>

enum { SHOWN = 6 };                                     // sections that an error names
// Bytes of code for each kernel, for speed and for size. Five networks take 184 to 990 and 64 to 230 on a Cortex-M4
// (gcc 12 at -O2 and -Os).
enum { ESTIMATE = 600, ESTIMATE_SMALL = 200 };
static const char *const section_names[OBJECT_KINDS] = { ".text", ".rodata", ".data", ".bss" };

typedef struct Footprint {
    const char *compiler;                               // NULL: none; the numbers are an estimate
    Object *object;
    int64_t bytes[OBJECT_KINDS];
} Footprint;

static Object *compiled(Arena *a, const Options *o, const char *cc, const char *dir) {
    const Unlinked to = unlinked_of(a, arena_printf(a, "%s/footprint", dir));
    if (build_unlinked(a, o, cc, o->output, &to, true)) return NULL;
    Object *made = object_read(a, &to);
    const int machine = !strncmp(o->machine.triple, "arm", 3) ? MACHINE_ARM : MACHINE_RISCV;
    return made && made->machine == machine ? made : NULL;
}

static int a_kernel(const Options *o) { return o->small ? ESTIMATE_SMALL : ESTIMATE; }

// As a linker lays sections, one behind the other with what they are aligned to. Strings that are in two functions are
// counted twice, which it may bring together.
static void count(Footprint *f, const Options *o, const Programs *p) {
    for (int i = 0; f->object && i < f->object->n_sections; i++) {
        const ObjectSection *s = &f->object->sections[i];
        int64_t *bytes = &f->bytes[s->kind];
        if (s->wanted && s->bytes) *bytes = (*bytes + s->alignment - 1) / s->alignment * s->alignment + s->bytes;
    }
    if (f->object) return;
    for (int i = 0; i < p->n; i++) {
        f->bytes[OBJECT_TEXT] += (int64_t)p->at[i].plan->numbered * a_kernel(o);
        f->bytes[OBJECT_RODATA] += p->at[i].plan->weight_bytes;
    }
}

static Footprint take(Arena *a, const Options *o, const Programs *p) {
    const char *own = getenv("CC"), *dir = folder_make(),
               *const candidates[] = { own && *own ? own : NULL, o->machine.cc,
                   arena_printf(a, "clang --target=%s -nostdlibinc -ffreestanding -DBURN_FREESTANDING",
                       o->machine.triple) };
    Footprint f = { 0 };
    progress_stage("%s: code and stack", o->name);
    for (size_t i = 0; dir && i < COUNT(candidates) && !f.object; i++)
        if (candidates[i] && (f.object = compiled(a, o, candidates[i], dir)))
            f.compiler = arena_strndup(a, candidates[i], strcspn(candidates[i], " "));
    if (dir) folder_remove(dir);
    count(&f, o, p);
    return f;
}

static int64_t flash_of(const Footprint *f) {
    return f->bytes[OBJECT_TEXT] + f->bytes[OBJECT_RODATA] + f->bytes[OBJECT_DATA];
}

// ---------------------------------------------------------------- the report
static void print_library(Arena *a, const Object *o, Text *out) {
    StrMap *seen = strmap_new(a);
    const char *before = "; a library has";
    for (int i = 0; i < o->n_sections; i++)
        for (int j = 0; o->sections[i].wanted && j < o->sections[i].outside.n; j++) {
            const char *name = o->sections[i].outside.at[j];
            if (strmap_get(seen, name)) continue;
            text_printf(out, "%s %s", before, name);
            strmap_put(seen, name, seen);
            before = ",";
        }
}

static void print_footprint(Arena *a, const Options *o, const Footprint *f, const Programs *p, Text *out) {
    text_printf(out, "flash %lld bytes:", (long long)flash_of(f));
    for (int i = 0; i < OBJECT_KINDS; i++)
        text_printf(out, "%s %s %lld", i ? "," : "", section_names[i], (long long)f->bytes[i]);
    if (!f->object) {
        text_printf(out, ", estimated: constants, and %d bytes of code a kernel; there is no C compiler for it here\n",
            a_kernel(o));
        return;
    }
    text_printf(out, ", by %s", f->compiler);
    print_library(a, f->object, out);
    text_printf(out, "\n");
    for (int i = 0; i < p->n; i++) {
        Text chain;
        text_init(&chain, a);
        const int64_t bytes = stack_of(f->object, p->at[i].name, &chain);
        if (bytes < 0) text_printf(out, "stack of %s: no bound\n", p->at[i].name);
        else text_printf(out, "stack %lld bytes at most: %s\n", (long long)bytes, chain.at);
    }
}

// ---------------------------------------------------------------- budgets
static int by_bytes(const void *x, const void *y) {
    const ObjectSection *a = x, *b = y;
    return a->bytes != b->bytes ? (a->bytes < b->bytes ? 1 : -1) : strcmp(a->name, b->name);
}

// Those of one kind, or (OBJECT_KINDS) of all.
static void print_largest(Arena *a, const Footprint *f, ObjectKind kind) {
    if (!f->object) return;
    ObjectSection *largest = NEW_ARRAY(a, ObjectSection, f->object->n_sections);
    int n = 0;
    for (int i = 0; i < f->object->n_sections; i++) {
        const ObjectSection *s = &f->object->sections[i];
        if (s->wanted && (kind == OBJECT_KINDS || s->kind == kind)) largest[n++] = *s;
    }
    qsort(largest, (size_t)n, sizeof *largest, by_bytes);
    for (int i = 0; i < n && i < SHOWN; i++)
        diag_note(NULL, "%lld %s %s", (long long)largest[i].bytes, section_names[largest[i].kind],
            largest[i].symbol ? largest[i].symbol : largest[i].name);
}

static bool flash_holds(Arena *a, const Options *o, const Footprint *f) {
    if (!o->flash || flash_of(f) <= o->flash) return true;
    diag_error_as(EXIT_LIMIT, NULL, "--flash: %s takes %lld bytes (%s %lld, %s %lld, %s %lld; %s), not %lld", o->name,
        (long long)flash_of(f), section_names[0], (long long)f->bytes[0], section_names[1], (long long)f->bytes[1],
        section_names[2], (long long)f->bytes[2], f->compiler ? f->compiler : "estimated", (long long)o->flash);
    print_largest(a, f, OBJECT_KINDS);
    return false;
}

// Of code, which has one region, beside what the plan has put there.
static bool code_holds(Arena *a, const Options *o, const Footprint *f, const Programs *p) {
    for (int i = 0; i < o->banks.n; i++) {
        const Bank *b = &o->banks.at[i];
        const int64_t others = (b->holds & BANK_CODE) ? banks_used(p->n, p->at, i) : 0;
        if (!(b->holds & BANK_CODE) || f->bytes[OBJECT_TEXT] + others <= b->bytes) continue;
        diag_error_as(EXIT_LIMIT, NULL, "--region: %s has %lld bytes, not the %lld that code takes (%s)%s", b->name,
            (long long)b->bytes, (long long)f->bytes[OBJECT_TEXT], f->compiler ? f->compiler : "estimated",
            others ? arena_printf(a, " beside %lld of workspace and weights", (long long)others) : "");
        print_largest(a, f, OBJECT_TEXT);
        return false;
    }
    return true;
}

static bool stack_holds(Arena *a, const Options *o, const Footprint *f, const Programs *p) {
    bool holds = true;
    for (int i = 0; o->stack && i < p->n; i++) {
        Text chain;
        text_init(&chain, a);
        const int64_t bytes = f->object ? stack_of(f->object, p->at[i].name, &chain) : -1;
        if (bytes < 0)
            diag_error_as(EXIT_LIMIT, NULL, "--stack: what %s takes is not known: %s", p->at[i].name,
                f->object ? "its calls have no bound" : "there is no C compiler for the target here; set CC");
        else if (bytes > o->stack)
            diag_error_as(EXIT_LIMIT, NULL, "--stack: %s takes %lld bytes (%s), not %lld: %s", p->at[i].name,
                (long long)bytes, f->compiler, (long long)o->stack, chain.at);
        holds = holds && bytes >= 0 && bytes <= o->stack;
    }
    return holds;
}

static bool has_code(const Options *o) {
    for (int i = 0; i < o->banks.n; i++)
        if (o->banks.at[i].holds & BANK_CODE) return true;
    return false;
}

bool footprint_check(Arena *a, const Options *o, const Programs *p, bool report, Text *out) {
    if (!board_bare(&o->machine) || !(report || o->flash || o->stack || has_code(o))) return true;
    const Footprint f = take(a, o, p);
    const bool flash = flash_holds(a, o, &f), stack = stack_holds(a, o, &f, p),
               code = code_holds(a, o, &f, p);
    if (report) print_footprint(a, o, &f, p, out);
    return flash && stack && code;
}
