// SPDX-License-Identifier: MIT OR Apache-2.0
// --package npm: model.wasm (by clang), index.js, which drives any model by its descriptor, and what is this model's
// own: types for TypeScript, package.json, README.md. $BURNCC_WASM_CC is the compiler, split at spaces.
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

static void put_ends(Package *p, Text *t, bool output) {
    Arena *a = p->arena;
    text_printf(t, "export interface %s {\n", output ? "Outputs" : "Inputs");
    for (int i = 0; i < (output ? p->graph->outputs.n : p->graph->inputs.n); i++) {
        const Type *type = type_of(p, output, i);
        const char *array = array_type(type->dtype);
        text_printf(t, "    /** %s */\n    ", comment(a, type_text(a, p->graph, type)));
        json_quoted(t, name_of(p, output, i));
        text_printf(t, ": %sTensor<%s>;\n", output || !type_is_static(type) ? "" : arena_printf(a, "%s | ", array),
            array);
    }
    text_printf(t, "}\n\n");
}

static const char *declarations(Package *p) {
    Text t;
    text_init(&t, p->arena);
    text_printf(&t, "// Written by burncc.\nexport interface Tensor<T> {\n    data: T;\n    dims: number[];\n}\n\n");
    put_ends(p, &t, false);
    put_ends(p, &t, true);
    text_printf(&t,
        "export interface Described {\n    name: string;\n    dims: (number | string)[];\n    type: string;\n}\n\n"
        "export class ModelError extends Error {\n    /** a BURN_E... code */\n    code: number;\n}\n\n"
        "/** One at a time; several instances have memory of their own. */\n"
        "export class Model {\n    constructor(instance: WebAssembly.Instance, weights?: Uint8Array);\n"
        "    readonly name: string;\n    readonly inputs: Described[];\n    readonly outputs: Described[];\n"
        "    run(inputs: Inputs): Outputs;\n}\n\n"
        "/** The model of this package, or its files from elsewhere. */\n"
        "export function load(from?: { wasm?: string | URL; weights?: string | URL }): Promise<Model>;\n");
    return t.at;
}

static const char *description(Package *p) {
    Text t;
    text_init(&t, p->arena);
    text_printf(&t, "{\n  \"description\": \"a model compiled by burncc\",\n  \"name\": ");
    json_quoted(&t, npm_name(p->arena, p->name));
    text_printf(&t, ",\n  \"version\": \"0.1.0\",\n  \"type\": \"module\",\n");
    if (p->licence) text_printf(&t, "  \"license\": \"%s\",\n", p->licence);
    text_printf(&t,
        "  \"exports\": {\n    \".\": {\n      \"types\": \"./index.d.ts\",\n"
        "      \"default\": \"./index.js\"\n    }\n  },\n"
        "  \"files\": [\"index.js\", \"index.d.ts\", \"model.wasm\"%s]\n}\n",
        p->weights ? ", \"model.bin\"" : "");
    return t.at;
}

static const char *manual(Package *p) {
    Text t;
    text_init(&t, p->arena);
    text_printf(&t, "# %s\n\nA model compiled to WebAssembly by burncc.\n\n```js\nimport { load } from \"%s\";\n\n"
        "const model = await load();\nconst outputs = model.run({\n",
        p->name, npm_name(p->arena, p->name));
    for (int i = 0; i < p->graph->inputs.n; i++) {
        const Type *type = type_of(p, false, i);
        text_printf(&t, "    ");
        json_quoted(&t, name_of(p, false, i));
        text_printf(&t, ": new %s(...), // %s\n", array_type(type->dtype), type_text(p->arena, p->graph, type));
    }
    text_printf(&t, "});\n```\n\nEach output is `{ data, dims }`. Where a dimension has a name, an input is that too.\n"
        "`c/` has the C that `model.wasm` is made of; it is not published.\n");
    return t.at;
}

static bool build(Package *p) {
    Arena *a = p->arena;
    const char *cc = getenv("BURNCC_WASM_CC"), *module = arena_printf(a, "%s/c/module.c", p->dir);
    const char *text = arena_printf(a, "#include \"model.c\"\n#define MODEL %s_model\n%s", p->name,
        template_text("package/module.c"));
    if (!package_put(p, "c/module.c", text)) return false;
    Argv argv = { 0 };
    argv_add(a, &argv, cc && *cc ? cc : "clang --target=wasm32-wasi");
    argv_add(a, &argv, "-std=c99 -O3 -msimd128 -ffp-contract=off -w -nostartfiles -Wl,--no-entry "
        "-Wl,--export=__heap_base -Wl,-z,stack-size=1048576 -o");
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

bool package_npm(Package *p) {
    return build(p) && move_weights(p) && package_template(p, "index.js", "index.js")
        && package_put(p, "index.d.ts", declarations(p)) && package_put(p, "package.json", description(p))
        && package_put(p, "README.md", manual(p));
}
