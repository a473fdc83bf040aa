// SPDX-License-Identifier: MIT OR Apache-2.0
// --package cargo: a crate without dependencies. build.rs compiles c/model.c; src/burn.rs is the descriptor, the same
// for every model; src/lib.rs is this model's: arrays where sizes are fixed, slices with shapes where the caller has
// them.
#include "package.h"

#include "codegen/codegen.h"

#include <string.h>

// One input or output, as Rust spells it.
typedef struct End { const char *name, *constant, *type, *shape; const Type *of; int64_t most; } End;

static const char *const keywords[] = { "as", "async", "await", "box", "break", "const", "continue", "crate", "dyn",
    "else", "enum", "extern", "false", "fn", "for", "if", "impl", "in", "let", "loop", "macro", "match", "mod", "move",
    "mut", "pub", "ref", "return", "self", "static", "struct", "super", "trait", "true", "try", "type", "unsafe", "use",
    "where", "while", "yield", "workspace", "inputs", "outputs", "abstract", "become", "do", "final", "gen",
    "override", "priv", "typeof", "unsized", "virtual" };

static const char *element(DType d) {
    switch (d) {
    case DT_F32: return "f32";
    case DT_F64: return "f64";
    case DT_I8: case DT_I4: case DT_I2: return "i8";
    case DT_I16: return "i16";
    case DT_I32: return "i32";
    case DT_I64: return "i64";
    case DT_U16: case DT_F16: case DT_BF16: return "u16";
    case DT_U32: return "u32";
    case DT_U64: return "u64";
    case DT_BOOL: return "bool";
    case DT_C64: return "[f32; 2]";
    case DT_C128: return "[f64; 2]";
    default: return "u8";
    }
}

static const char *rust_name(Arena *a, const char *given, const End *before, int n) {
    const char *base = text_lower(a, name_c(a, given && *given ? given : "value")), *name = base;
    for (size_t i = 0; i < COUNT(keywords); i++)
        if (!strcmp(name, keywords[i])) name = arena_printf(a, "%s_", base);
    for (int i = 0, k = 2; i < n; i++)
        if (!strcmp(before[i].name, name)) {
            name = arena_printf(a, "%s_%d", base, k++);
            i = -1;
        }
    return name;
}

// Inputs, then outputs.
static End *ends_of(Package *p, int *n_in, int *n) {
    Arena *a = p->arena;
    const Graph *g = p->graph;
    *n_in = g->inputs.n;
    *n = g->inputs.n + g->outputs.n;
    End *e = NEW_ARRAY(a, End, *n + 1);
    for (int i = 0; i < *n; i++) {
        const bool output = i >= *n_in;
        const Value *v = output ? g->outputs.at[i - *n_in] : g->inputs.at[i];
        Text shape;
        text_init(&shape, a);
        for (int k = 0; k < v->type.rank; k++)
            text_printf(&shape, "%s%lld", k ? ", " : "", (long long)dim_upper(g, v->type.dim[k]));
        e[i] = (End){ .name = rust_name(a, output ? g->output_names.at[i - *n_in] : v->name, e, i),
            .type = element(v->type.dtype), .shape = shape.n ? shape.at : "", .of = &v->type,
            .most = type_count_upper(g, &v->type) };
        e[i].constant = arena_printf(a, "%s_LEN", text_upper(a, e[i].name));
    }
    return e;
}

static void put_errors(Text *t) {
    static const struct { const char *name, *text; int code; } errors[] = {
#define BURN_ERROR(name, number, text) { #name, text, number },
        BURN_ERRORS(BURN_ERROR)
#undef BURN_ERROR
    };
    const size_t prefix = strlen("BURN_E");
    text_printf(t, "/// What a run returns.\n#[derive(Clone, Copy, Debug, PartialEq, Eq)]\npub enum Error {\n");
    for (size_t i = 0; i < COUNT(errors); i++) {
        text_printf(t, "    /// %s\n    %c%s,\n", errors[i].text, errors[i].name[prefix],
            text_lower(t->arena, errors[i].name + prefix + 1));
    }
    text_printf(t, "    /// another code\n    Other(i32),\n}\n\nimpl Error {\n"
        "    fn check(code: i32) -> Result<(), Error> {\n        match code {\n            0 => Ok(()),\n");
    for (size_t i = 0; i < COUNT(errors); i++)
        text_printf(t, "            %d => Err(Error::%c%s),\n", errors[i].code, errors[i].name[prefix],
            text_lower(t->arena, errors[i].name + prefix + 1));
    text_printf(t, "            other => Err(Error::Other(other)),\n        }\n    }\n}\n\n"
        "impl std::fmt::Display for Error {\n"
        "    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {\n"
        "        let text = match self {\n");
    for (size_t i = 0; i < COUNT(errors); i++)
        text_printf(t, "            Error::%c%s => \"%s\",\n", errors[i].name[prefix],
            text_lower(t->arena, errors[i].name + prefix + 1), errors[i].text);
    text_printf(t, "            Error::Other(code) => return write!(f, \"code {code}\"),\n        };\n"
        "        f.write_str(text)\n    }\n}\n\nimpl std::error::Error for Error {}\n\n");
}

static void put_head(Package *p, Text *t) {
    text_printf(t,
        "//! The model %s, compiled to C by burncc. The C is reentrant: any number of threads may run it, each with a\n"
        "//! [`Workspace`] of its own.\nmod burn;\n\npub use burn::Workspace;\n\nextern \"C\" {\n"
        "    #[link_name = \"%s_model\"]\n    static MODEL: burn::Model;\n}\n\n",
        p->name, p->name);
    if (p->weights)
        text_printf(t, "static WEIGHTS: &burn::Aligned<[u8]> =\n"
            "    &burn::Aligned(*include_bytes!(\"../c/model.bin\"));\n\n");
    put_errors(t);
    text_printf(t,
        "fn model() -> &'static burn::Model {\n    unsafe { &*std::ptr::addr_of!(MODEL) }\n}\n\n"
        "impl Workspace {\n    #[allow(clippy::new_without_default)]\n    pub fn new() -> Self {\n"
        "        Workspace::of(model())\n    }\n}\n\n");
}

static void put_weights(const Package *p, Text *t) {
    text_printf(t, "    let weights = %s;\n", p->weights ? "Some(&WEIGHTS.0)" : "None");
}

static void put_fixed(Package *p, Text *t, const End *e, int n_in, int n) {
    for (int i = 0; i < n; i++)
        text_printf(t, "/// elements of `%s`, %s\npub const %s: usize = %lld;\n", e[i].name,
            type_text(p->arena, p->graph, e[i].of), e[i].constant, (long long)e[i].most);
    text_printf(t, "\n/// One inference; tensors are dense and row-major.\npub fn run(\n"
        "    workspace: &mut Workspace,\n");
    for (int i = 0; i < n; i++)
        text_printf(t, "    %s: &%s[%s; %s],\n", e[i].name, i < n_in ? "" : "mut ", e[i].type, e[i].constant);
    text_printf(t, ") -> Result<(), Error> {\n");
    for (int i = 0; i < n; i++)
        text_printf(t, "    let mut shape%d: [i64; %d] = [%s];\n", i, e[i].of->rank, e[i].shape);
    for (int side = 0; side < 2; side++) {
        text_printf(t, "    let %s = [\n", side ? "outputs" : "inputs");
        for (int i = side ? n_in : 0; i < (side ? n : n_in); i++)
            text_printf(t, "        burn::Tensor::%s(%s, &mut shape%d, %d),\n", side ? "written" : "read", e[i].name, i,
                e[i].of->dtype);
        text_printf(t, "    ];\n");
    }
    put_weights(p, t);
    text_printf(t, "    burn::run(model(), workspace, weights, &inputs, &outputs)\n}\n");
}

static void put_open(Package *p, Text *t, const End *e, int n_in, int n) {
    text_printf(t, "/// What a run gives: elements and shapes.\npub struct Outputs {\n");
    for (int i = n_in; i < n; i++)
        text_printf(t, "    /// %s\n    pub %s: (Vec<%s>, [usize; %d]),\n", type_text(p->arena, p->graph, e[i].of),
            e[i].name, e[i].type, e[i].of->rank);
    text_printf(t, "}\n\n/// One inference. Inputs: elements and shapes,\n");
    for (int i = 0; i < n_in; i++)
        text_printf(t, "/// `%s`: %s\n", e[i].name, type_text(p->arena, p->graph, e[i].of));
    text_printf(t, "pub fn run(\n    workspace: &mut Workspace,\n");
    for (int i = 0; i < n_in; i++)
        text_printf(t, "    %s: (&[%s], [usize; %d]),\n", e[i].name, e[i].type, e[i].of->rank);
    text_printf(t, ") -> Result<Outputs, Error> {\n");
    for (int i = 0; i < n_in; i++)
        text_printf(t, "    let mut shape%d = burn::shape(%s.0.len(), %s.1)?;\n", i, e[i].name, e[i].name);
    text_printf(t, "    let inputs = [\n");
    for (int i = 0; i < n_in; i++)
        text_printf(t, "        burn::Tensor::read(%s.0, &mut shape%d, %d),\n", e[i].name, i, e[i].of->dtype);
    text_printf(t, "    ];\n");
    for (int i = n_in; i < n; i++)
        text_printf(t, "    let mut shape%d: [i64; %d] = [%s];\n", i, e[i].of->rank, e[i].shape);
    text_printf(t, "    let told = [\n");
    for (int i = n_in; i < n; i++)
        text_printf(t, "        burn::Tensor::told(&mut shape%d, %d),\n", i, e[i].of->dtype);
    text_printf(t, "    ];\n    burn::shapes(model(), &inputs, &told)?;\n");
    for (int i = n_in; i < n; i++)
        text_printf(t, "    let mut data%d = vec![<%s>::default(); burn::count(&shape%d)];\n", i, e[i].type, i);
    text_printf(t, "    let outputs = [\n");
    for (int i = n_in; i < n; i++)
        text_printf(t, "        burn::Tensor::written(&mut data%d, &mut shape%d, %d),\n", i, i, e[i].of->dtype);
    text_printf(t, "    ];\n");
    put_weights(p, t);
    text_printf(t, "    burn::run(model(), workspace, weights, &inputs, &outputs)?;\n");
    for (int i = n_in; i < n; i++) text_printf(t, "    data%d.truncate(burn::count(&shape%d));\n", i, i);
    text_printf(t, "    Ok(Outputs {\n");
    for (int i = n_in; i < n; i++)
        text_printf(t, "        %s: (data%d, shape%d.map(|d: i64| d as usize)),\n", e[i].name, i, i);
    text_printf(t, "    })\n}\n");
}

static const char *library(Package *p) {
    Text t;
    int n_in, n;
    const End *e = ends_of(p, &n_in, &n);
    bool fixed = true;
    text_init(&t, p->arena);
    put_head(p, &t);
    for (int i = 0; i < n; i++) fixed = fixed && type_is_static(e[i].of);
    if (fixed) put_fixed(p, &t, e, n_in, n);
    else put_open(p, &t, e, n_in, n);
    return t.at;
}

static const char *description(Package *p) {
    const char *licence = p->licence ? arena_printf(p->arena, "license = \"%s\"\n", p->licence) : "";
    return arena_printf(p->arena,
        "[package]\nname = \"%s\"\nversion = \"0.1.0\"\nedition = \"2021\"\nrust-version = \"1.65\"\n%s"
        "description = \"a model compiled by burncc\"\n"
        "build = \"build.rs\"\nlinks = \"burn_model_%s\"\n\n[lib]\npath = \"src/lib.rs\"\n\n[workspace]\n",
        p->name, licence, p->name);
}

bool package_cargo(Package *p) {
    return package_folder(p, "src") && package_template(p, "src/burn.rs", "burn.rs")
        && package_template(p, "build.rs", "build.rs") && package_put(p, "src/lib.rs", library(p))
        && package_put(p, "Cargo.toml", description(p));
}
