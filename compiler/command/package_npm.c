// SPDX-License-Identifier: MIT OR Apache-2.0
// --package npm: model.wasm (by clang), and what the files say of this model: types for TypeScript, an example.
// index.js drives any model by its descriptor. $BURNCC_WASM_CC is the compiler, split at spaces.
#include "package.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Lower case, with - between words.
static const char *npm_name(Arena *a, const char *name) {
    char *s = arena_strdup(a, name);
    for (char *c = s; *c; c++) *c = *c == '_' ? '-' : (char)tolower((unsigned char)*c);
    return s + strspn(s, "-");
}

static const char *array_type(DType d) {
    switch (d) {
    case DT_F32: return "Float32Array";
    case DT_F64: return "Float64Array";
    case DT_I8: return "Int8Array";
    case DT_I16: return "Int16Array";
    case DT_I32: return "Int32Array";
    case DT_I64: return "BigInt64Array";
    case DT_U16: case DT_F16: case DT_BF16: return "Uint16Array";
    case DT_U32: return "Uint32Array";
    case DT_U64: return "BigUint64Array";
    default: return "Uint8Array";
    }
}

static const char *name_of(const Package *p, bool output, int i) {
    return output ? p->graph->output_names.at[i] : p->graph->inputs.at[i]->name;
}

static const Type *type_of(const Package *p, bool output, int i) {
    return &(output ? p->graph->outputs.at : p->graph->inputs.at)[i]->type;
}

static const char *comment(Arena *a, const char *text) {        // no end of it
    char *s = arena_strdup(a, text);
    for (char *c = s; *c; c++)
        if (*c == '*' || (unsigned char)*c < 32) *c = '.';
    return s;
}

static const char *types(Package *p, bool output) {
    Arena *a = p->arena;
    Text t;
    text_init(&t, a);
    for (int i = 0; i < (output ? p->graph->outputs.n : p->graph->inputs.n); i++) {
        const Type *type = type_of(p, output, i);
        const char *array = array_type(type->dtype);
        text_printf(&t, "    /** %s */\n    ", comment(a, type_text(a, p->graph, type)));
        json_quoted(&t, name_of(p, output, i));
        text_printf(&t, ": %sTensor<%s>;\n", output || !type_is_static(type) ? "" : arena_printf(a, "%s | ", array),
            array);
    }
    return t.at;
}

static const char *example(Package *p) {
    Text t;
    text_init(&t, p->arena);
    for (int i = 0; i < p->graph->inputs.n; i++) {
        const Type *type = type_of(p, false, i);
        text_printf(&t, "    ");
        json_quoted(&t, name_of(p, false, i));
        text_printf(&t, ": new %s(...), // %s\n", array_type(type->dtype), type_text(p->arena, p->graph, type));
    }
    return t.at;
}

void package_npm_words(Package *p) {
    package_word(p, "PACKAGE", npm_name(p->arena, p->name));
    package_word(p, "INPUTS", types(p, false));
    package_word(p, "OUTPUTS", types(p, true));
    package_word(p, "EXAMPLE", example(p));
    package_word(p, "WEIGHTS", p->weights ? ", \"model.bin\"" : "");
}

static bool build(Package *p) {
    Arena *a = p->arena;
    const char *cc = getenv("BURNCC_WASM_CC"), *module = arena_printf(a, "%s/c/module.c", p->dir);
    Argv argv = { 0 };
    argv_add(a, &argv, cc && *cc ? cc : "clang --target=wasm32-wasi");
    argv_add(a, &argv, "-std=c99 -O3 -msimd128 -ffp-contract=off -w -nostartfiles -Wl,--no-entry "
        "-Wl,--export=__heap_base -Wl,-z,stack-size=1048576 -include");
    VEC_PUSH(a, argv, arena_printf(a, "%s/c/model.c", p->dir));
    VEC_PUSH(a, argv, arena_printf(a, "-DMODEL=%s_model", p->name));
    VEC_PUSH(a, argv, "-o");
    VEC_PUSH(a, argv, arena_printf(a, "%s/model.wasm", p->dir));
    VEC_PUSH(a, argv, module);
    VEC_PUSH(a, argv, "-lm");
    const int status = process_run(a, &argv);
    if (status == PROCESS_NONE)
        diag_error_as(EXIT_IO, NULL,
            "cannot run '%s', which makes WebAssembly (Debian: clang lld wasi-libc libclang-rt-dev-wasm32); "
            "BURNCC_WASM_CC says another", argv.at[0]);
    else if (status) diag_error(NULL, "'%s' makes no WebAssembly of %s", argv.at[0], module);
    return !status;
}

static bool move_weights(Package *p) {
    if (!p->weights) return true;
    const char *from = arena_printf(p->arena, "%s/c/model.bin", p->dir);
    if (!rename(from, arena_printf(p->arena, "%s/model.bin", p->dir))) return true;
    diag_error_as(EXIT_IO, NULL, "cannot move %s", from);
    return false;
}

bool package_npm_make(Package *p) { return build(p) && move_weights(p); }
