// SPDX-License-Identifier: MIT OR Apache-2.0
// --region: a workspace of several parts. In: the plan's bytes in each memory (bank), and which holds constants and
// code. Out: the types of the parts, a struct of pointers to them, and macros that put things into sections:
//
//   typedef union lenet_workspace_dtcm { double align; unsigned char bytes[4096]; } lenet_workspace_dtcm;
//   typedef struct lenet_workspace { lenet_workspace_dtcm *dtcm; lenet_workspace_sdram *sdram; } lenet_workspace;
//
// Programs that drive any model have one block for it; they see the parts behind one another.
#include "signature.h"

#include <ctype.h>
#include <string.h>

bool c_has_banks(const CFile *g) { return banks_bytes(g->options) > 0; }

int64_t c_bank_bytes(const CFile *g, const Program *p, int bank) {
    int64_t most = 0, all = 0;
    int first = -1;
    for (int j = g->options->banks.n - 1; j >= 0; j--)
        if (g->options->banks.at[j].holds & BANK_WORK) first = j;
    for (int i = 0; i < g->n; i++) {
        const Plan *plan = g->programs[i].plan;
        if (!p->function && p != &g->programs[i]) continue;
        most = max64(most, plan->bank_bytes[bank]);
        all = max64(all, plan->work_bytes);
    }
    return !all && bank == first ? 1 : most;            // a struct is not empty
}

const char *c_bank_name(const CFile *g, int bank) { return g->options->banks.at[bank].name; }

// ---------------------------------------------------------------- the header
static void print_section(Text *out, const char *macro, const char *section) {
    text_printf(out,
        "#ifndef %s\n#if defined(__GNUC__) && defined(__ELF__)\n#define %s __attribute__((section(\"%s\")))\n"
        "#else\n#define %s\n#endif\n#endif\n",
        macro, macro, section, macro);
}

const char *c_bank_macro(const CFile *g, const char *what, int bank) {
    return arena_printf(g->arena, "%s_%s_%s", text_upper(g->arena, g->model), what, c_bank_name(g, bank));
}

static void print_definition(CFile *g, const Program *p, Text *out) {
    const char *space = p->name_of_workspace;
    text_printf(out,
        "/* Defines a workspace at file scope, each part in its region: %s_WORKSPACE(ws); then a run is given &ws. */\n"
        "#define %s_WORKSPACE(name)",
        text_upper(g->arena, space), text_upper(g->arena, space));
    for (int i = 0; i < g->options->banks.n; i++)
        if (c_bank_bytes(g, p, i))
            text_printf(out, " \\\n    static %s %s_workspace_%s name##_%s;", c_bank_macro(g, "SECTION", i), space,
                c_bank_name(g, i), c_bank_name(g, i));
    text_printf(out, " \\\n    static %s_workspace name = {", space);
    const char *before = "";
    for (int i = 0; i < g->options->banks.n; i++) {
        if (!c_bank_bytes(g, p, i)) continue;
        text_printf(out, "%s&name##_%s", before, c_bank_name(g, i));
        before = ", ";
    }
    text_printf(out, "}\n");
}

const char *c_banks_declare(CFile *g, const Program *p, const char *kept) {
    const Options *o = g->options;
    const char *space = p->name_of_workspace;
    Text t;
    text_init(&t, g->arena);
    text_append(&t, "", 0);
    if (!c_has_banks(g) || !c_has_workspace(p) || (p->function && p != g->programs)) return t.at;
    text_printf(&t, "/* Where the parts of a workspace are: sections of the linker script, unless these macros are "
        "defined before. */\n");
    for (int i = 0; i < o->banks.n; i++)
        if (c_bank_bytes(g, p, i))
            print_section(&t, c_bank_macro(g, "SECTION", i), arena_printf(g->arena, ".%s", c_bank_name(g, i)));
    text_printf(&t,
        "\n/* Scratch memory of one run, a part in each region; its content means nothing before and after%s. Runs at\n"
        " * the same time need one each. */\n",
        kept);
    for (int i = 0; i < o->banks.n; i++)
        if (c_bank_bytes(g, p, i))
            text_printf(&t, "typedef union %s_workspace_%s {\n    double align;\n    unsigned char bytes[%lld];\n"
                "} %s_workspace_%s;\n", space, c_bank_name(g, i), (long long)c_bank_bytes(g, p, i), space,
                c_bank_name(g, i));
    text_printf(&t, "typedef struct %s_workspace {\n", space);
    for (int i = 0; i < o->banks.n; i++)
        if (c_bank_bytes(g, p, i))
            text_printf(&t, "    %s_workspace_%s *%s;\n", space, c_bank_name(g, i), c_bank_name(g, i));
    text_printf(&t, "} %s_workspace;\n", space);
    print_definition(g, p, &t);
    text_printf(&t, "\n");
    return t.at;
}

// ---------------------------------------------------------------- checks, and the block of generic programs
void c_banks_check(CFile *g, const Program *p, Text *out) {
    for (int i = 0; c_has_banks(g) && i < g->options->banks.n; i++)
        if (c_bank_bytes(g, p, i)) text_printf(out, " || !ws->%s", c_bank_name(g, i));
}

// Behind the parts the state, where there is one.
void c_space_declare(CFile *g, const Program *p, Text *out, const char *state) {
    text_printf(out, "typedef struct %s_space {\n", p->name);
    if (!c_has_banks(g)) text_printf(out, "    %s_workspace workspace;\n", p->name_of_workspace);
    for (int i = 0; c_has_banks(g) && i < g->options->banks.n; i++)
        if (c_bank_bytes(g, p, i))
            text_printf(out, "    %s_workspace_%s %s;\n", p->name_of_workspace, c_bank_name(g, i), c_bank_name(g, i));
    if (state) text_printf(out, "    %s_state state;\n", state);
    text_printf(out, "} %s_space;\n", p->name);
}

const char *c_space_open(CFile *g, const Program *p, Text *out, const char *block) {
    text_printf(out, "    %s_space *const space = (%s_space *)%s;\n    if (!space) return -1; /* BURN_EINVAL */\n",
        p->name, p->name, block);
    if (!c_has_banks(g)) return "&space->workspace";
    const char *before = "";
    text_printf(out, "    const %s_workspace parts = {", p->name_of_workspace);
    for (int i = 0; i < g->options->banks.n; i++) {
        if (!c_bank_bytes(g, p, i)) continue;
        text_printf(out, "%s&space->%s", before, c_bank_name(g, i));
        before = ", ";
    }
    text_printf(out, "};\n");
    return "&parts";
}

// ---------------------------------------------------------------- constants and code
static int code_bank(const Options *o) {
    for (int i = 0; i < o->banks.n; i++)
        if (o->banks.at[i].holds & BANK_CODE) return i;
    return -1;
}

const char *c_weights_section(const CFile *g, const Buffer *b) {
    if (!g->options->banks.n || b->bank < 0 || !(g->options->banks.at[b->bank].holds & BANK_WEIGHTS)) return "";
    return arena_printf(g->arena, "%s ", c_bank_macro(g, "WEIGHTS", b->bank));
}

const char *c_sections(CFile *g) {
    const Options *o = g->options;
    Text t;
    text_init(&t, g->arena);
    text_append(&t, "", 0);
    for (int i = 0; i < o->banks.n; i++)
        if (o->banks.at[i].holds & BANK_WEIGHTS)
            print_section(&t, c_bank_macro(g, "WEIGHTS", i), arena_printf(g->arena, ".%s.rodata", c_bank_name(g, i)));
    if (code_bank(o) >= 0)
        print_section(&t, c_bank_macro(g, "CODE", code_bank(o)),
            arena_printf(g->arena, ".%s.text", c_bank_name(g, code_bank(o))));
    if (t.n) text_printf(&t, "\n");
    return t.at;
}

// Does a function's definition begin at this line? Its head ends in a parenthesis, and a brace follows.
static bool defines(const char *s) {
    int depth = 0;
    char last = 0;
    if (!isalpha((unsigned char)*s) && *s != '_') return false;
    if (!strncmp(s, "typedef", 7)) return false;
    for (; *s; s++) {
        if (*s == '(') depth++;
        if (*s == ')') depth--;
        if (!depth && (*s == ';' || *s == '=' || *s == '#')) return false;
        if (!depth && *s == '{') return last == ')';
        if (!isspace((unsigned char)*s)) last = *s;
    }
    return false;
}

const char *c_in_section(CFile *g, const char *code) {
    const int bank = code_bank(g->options);
    if (bank < 0 || !code) return code;
    const char *macro = c_bank_macro(g, "CODE", bank);
    Text t;
    text_init(&t, g->arena);
    bool goes_on = false;                               // a line of a macro
    for (size_t n; *code; code += n) {
        n = strcspn(code, "\n");
        if (!goes_on && defines(code)) text_printf(&t, "%s ", macro);
        goes_on = n && code[n - 1] == '\\';
        n += code[n] == '\n';
        text_append(&t, code, n);
    }
    return t.n ? t.at : "";
}
