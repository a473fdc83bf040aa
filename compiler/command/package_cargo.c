// SPDX-License-Identifier: MIT OR Apache-2.0
// --package cargo: what src/lib.rs says of this model: errors, and a function of arrays where sizes are fixed, of
// slices with shapes where the caller has them. build.rs compiles c/model.c; src/burn.rs is the descriptor, the same
// for every model.
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

// BURN_EINVAL is Error::Inval.
typedef enum ErrorForm { ERROR_VARIANT, ERROR_CODE, ERROR_TEXT } ErrorForm;
static const char *errors(Arena *a, ErrorForm form) {
    static const struct { const char *name, *text; int code; } all[] = {
#define BURN_ERROR(name, number, text) { #name, text, number },
        BURN_ERRORS(BURN_ERROR)
#undef BURN_ERROR
    };
    const size_t prefix = strlen("BURN_E");
    Text t;
    text_init(&t, a);
    for (size_t i = 0; i < COUNT(all); i++) {
        const char initial = all[i].name[prefix], *rest = text_lower(a, all[i].name + prefix + 1);
        if (form == ERROR_VARIANT) text_printf(&t, "    /// %s\n    %c%s,\n", all[i].text, initial, rest);
        else if (form == ERROR_CODE)
            text_printf(&t, "            %d => Err(Error::%c%s),\n", all[i].code, initial, rest);
        else text_printf(&t, "            Error::%c%s => \"%s\",\n", initial, rest, all[i].text);
    }
    return t.at;
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

void package_cargo_words(Package *p) {
    Arena *a = p->arena;
    Text run;
    int n_in, n;
    const End *e = ends_of(p, &n_in, &n);
    bool fixed = true;
    text_init(&run, a);
    for (int i = 0; i < n; i++) fixed = fixed && type_is_static(e[i].of);
    if (fixed) put_fixed(p, &run, e, n_in, n);
    else put_open(p, &run, e, n_in, n);
    package_word(p, "WEIGHTS", !p->weights ? "" :
        "static WEIGHTS: &burn::Aligned<[u8]> =\n    &burn::Aligned(*include_bytes!(\"../c/model.bin\"));\n\n");
    package_word(p, "ERRORS", errors(a, ERROR_VARIANT));
    package_word(p, "ERROR_CODES", errors(a, ERROR_CODE));
    package_word(p, "ERROR_TEXTS", errors(a, ERROR_TEXT));
    package_word(p, "RUN", run.at);
}
