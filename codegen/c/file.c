// SPDX-License-Identifier: MIT OR Apache-2.0
// Assembles and writes the generated files: model.c, model.h and, when the constants are large, model.bin;
// of a training program model.safetensors, too, when the parameters are.
// Nothing is written before everything is known to be right; each file appears whole or not at all.
#include "names.h"
#include "signature.h"
#include "schedule/cpu/templates.h"

#include <string.h>

static const char *flag(bool holds) { return holds ? "1" : "0"; }

static bool says(const Text *t, const char *word) { return t->at && strstr(t->at, word); }

static bool calls_blas(const CFile *g) { return g->options->blas && says(&g->c, "(CblasRowMajor, "); }

static void print_blas(const CFile *g, Text *out) {
    if (!calls_blas(g)) return;
    text_printf(out,
        "/* Calls OpenBLAS: link with -l%s. On how many threads its products compute is the library's own affair "
        "(OPENBLAS_NUM_THREADS;\n"
        " * all processors where nothing is said), and the last bits of results may follow from that. */\n",
        g->options->blas);
}

static void print_header(CFile *g, Text *h) {
    const int64_t bytes = g->external ? g->weight_bytes + WEIGHTS_HEADER : 0;
    const char *types = burn_types(g->arena, "burn-model-types");
    if (g->handover) types = arena_printf(g->arena, "%s\n%s", types, burn_types(g->arena, "burn-gpu-types"));
    print_banner(h, g->options);
    print_blas(g, h);
    skeleton_fill(g->arena, h, "skeleton/model.h", 11,
        (Hole[]){ { "MODEL", NULL, g->model },
            { "GUARD", NULL, text_upper(g->arena, g->model) },
            { "TYPES", NULL, types },
            { "HAS_THREADS", NULL, flag(g->threads) },
            { "HAS_TRAINING", NULL, flag(g->training) },
            { "TRAINING_TYPES", NULL, g->training ? burn_types(g->arena, "burn-training-types") : "" },
            { "THREAD_TYPES", NULL, burn_types(g->arena, "burn-threads-types") },
            { "PROGRAMS", NULL, g->h.n ? g->h.at : "" },
            { "N_WEIGHTS", NULL, number_text(g->arena, bytes) },
            { "HAS_SIZE", NULL, "1" },
            { "HAS_MODEL", NULL, flag(g->descriptor && !g->programs->function) } });
}

// A file of templates/ that has no holes, without its opening comment, what it includes of templates/ and, where there
// may be no C library, string.h: the file's head has seen to that.
static void print_part(Text *c, const char *file, bool bare) {
    const char *text = template_text(file), *line = text ? strstr(text, "*/\n") : NULL, *end;
    if (!line) bug("no template %s", file);
    line += 3;
    for (line += *line == '\n'; *line; line = end) {
        end = strchr(line, '\n');
        end = end ? end + 1 : line + strlen(line);
        bool ours = !strncmp(line, "#include \"", 10), library = !strncmp(line, "#include <string.h>", 19);
        if (!ours && !(bare && library)) text_append(c, line, (size_t)(end - line));
    }
    text_append(c, "\n", 1);
}

// The sums of window.c for each type that weights have in a file.
static void print_sums(Text *out, const char *code, bool bare) {
    static const char *const of[][5] = {
        { "burn_window_weight *W", "FLOATS", "weight", "weight_at", "WEIGHTS" },
        { "burn_window_byte *W", "WHOLE", "byte", "byte_at", "BYTES" } };
    for (size_t i = 0; i < COUNT(of); i++) {
        if (!strstr(code, of[i][0])) continue;
        text_printf(out, "#define BURN_SUMS BURN_WINDOW_%s\n#define BURN_WEIGHT burn_window_%s\n", of[i][1], of[i][2]);
        text_printf(out, "#define BURN_WEIGHT_AT burn_window_%s\n", of[i][3]);
        text_printf(out, "#define BURN_WEIGHTS BURN_WINDOW_%s\n", of[i][4]);
        print_part(out, "c/window_sums.h", bare);
        text_printf(out, "#undef BURN_SUMS\n#undef BURN_WEIGHT\n#undef BURN_WEIGHT_AT\n#undef BURN_WEIGHTS\n\n");
    }
}

void c_prelude(CFile *g, Text *out, const Text *above, const Text *code) {
    if (!code->at) return;
    const Target *m = &g->options->machine;
    const Language scalar = spell_c_scalar(g->arena, g->options->small), *language = m->lanes == 1 ? &scalar : &spell_c;
    if (strstr(code->at, "burn_tile") || strstr(code->at, "burn_vf") || strstr(code->at, "BURN_KERNEL")
        || strstr(code->at, "burn_turn(") || strstr(code->at, "burn_pack_w_")) {
        if (!m->vectors) text_printf(out, "#define BURN_PORTABLE 1\n");
        if (m->ram_first) text_printf(out, "#define BURN_VF_LANES %d\n#define BURN_MANY_REGISTERS 0\n", SCALAR_LANES);
        if (m->ram_first && !m->unfused) text_printf(out, "#define BURN_FUSES 1\n");
        if (window_halves(g->options) && strstr(code->at, "burn_window"))
            text_printf(out, "#define BURN_WINDOW_HALVES 1\n");
        print_part(out, "c/vec.h", m->ram_first);
    }
    static const char *const parts[][2] = { { "burn_dot_", "c/vec_i8.h" }, { "burn_q8_", "c/vec_q8.h" },
        { "burn_q4_", "c/vec_q8.h" }, { "burn_across_", "c/vec_q8.h" }, { "burn_q4_", "c/vec_q4.h" },
        { "burn_across_", "c/across_q8.h" }, { "burn_low_", "c/vec_low.h" },
        { "burn_bf16_tile", "c/vec_bf16.h" }, { "burn_pool ", "c/pool.h" }, { "burn_case(", "c/case.h" },
        { "burn_decimal(", "c/decimal.h" }, { "burn_taps", "c/taps.h" },
        { "burn_pair_", "c/pairs.h" }, { "burn_planes_", "c/planes.h" },
        { "burn_window", "c/window.h" },
        { "burn_turn(", "c/turn.h" }, { "burn_pack_w_", "c/turn.h" }, { "burn_wino_", "c/winograd.h" },
        { "burn_params_", "c/params.h" }, { "burn_pack_w_", "c/pack_taps.h" }, { "burn_pack_w_conv(", "c/pack.h" },
        { "burn_pack_w_winograd(", "c/winograd_g.h" }, { "burn_pack_w_winograd(", "c/pack_winograd.h" },
        { "burn_keep(", "c/strips.h" }, { "burn_part_down(", "c/blocks.h" } };
    const char *printed = "";
    for (size_t i = 0; i < COUNT(parts); i++) {
        if (!strstr(code->at, parts[i][0]) || !strcmp(printed, parts[i][1])) continue;
        printed = parts[i][1];
        print_part(out, printed, g->options->machine.ram_first);
    }
    print_sums(out, code->at, g->options->machine.ram_first);
    if (g->threads && strstr(code->at, "burn_parts(")) {
        text_printf(out, "#define BURN_WORKERS %d\n", g->options->threads);
        print_part(out, "c/parts.h", false);
    }
    bool fuses = g->options->machine.vectors && spell_c_has_functions(code->at);
    if (fuses) text_printf(out, "#if defined(__clang__)\n#pragma STDC FP_CONTRACT ON\n#endif\n");
    spell_helpers(language, out, above, code->at);
    if (fuses) text_printf(out, "#if defined(__clang__)\n#pragma STDC FP_CONTRACT DEFAULT\n#endif\n");
}

// What the code asks of the C compiler and its library.
static void print_head(CFile *g, Text *out, const char *header) {
    const Target *m = &g->options->machine;
    skeleton_fill(g->arena, out, "skeleton/source.c", 12,
        (Hole[]){ { "HEADER", NULL, arena_printf(g->arena, "\"%s\"", path_base(header)) },
            { "HAS_FILES", NULL, flag(g->training) },
            { "HAS_BLAS", NULL, flag(calls_blas(g)) },
            { "HAS_BARE", NULL, flag(m->ram_first) },
            { "HAS_PLAIN", NULL, flag(!m->vectors) },
            { "HAS_VECTORS", NULL, flag(m->vectors && !m->n_parts) },
            { "HAS_FUSED", NULL, flag(says(&g->c, "BURN_FUSED ")) },
            { "HAS_APART", NULL, flag(says(&g->c, "BURN_APART ")) },
            { "HAS_ONE", NULL, flag(says(&g->c, "BURN_ONE(")) },
            { "HAS_LANES", NULL, flag(says(&g->c, "BURN_LANES ")) },
            { "HAS_ALIGNED", NULL, flag(says(&g->data, "BURN_ALIGNED")) },
            { "SECTIONS", NULL, c_sections(g) } });
}

// Plain C is what checkers of firmware read.
static void print_code(const CFile *g, Text *out, const char *text) {
    if (g->options->machine.vectors) text_append(out, text, strlen(text));
    else c_compound(out, text);
}

static void print_source(CFile *g, Text *c, const char *header) {
    Text head, before, code, end;
    text_init(&head, g->arena);
    text_init(&before, g->arena);
    text_init(&code, g->arena);
    text_init(&end, g->arena);
    print_head(g, &head, header);
    if (g->options->machine.n_parts) c_prelude(g, &before, NULL, &g->ends);
    c_prelude(g, &code, &before, &g->c);
    if (!g->options->machine.n_parts) c_prelude(g, &code, &code, &g->ends);
    if (g->external) weights_print_check(&before, g->model, g->sum, g->weight_bytes);
    else if (g->handover && g->weight_bytes)
        weights_print_words(
            &before, g->n, g->programs, g->weight_bytes, arena_printf(g->arena, "%s_constants", g->model));
    text_append(&before, g->data.at ? g->data.at : "", g->data.n);
    text_append(&code, g->c.at, g->c.n);
    print_banner(c, g->options);
    print_blas(g, c);
    if (g->options->machine.n_parts) {
        c_targets(g, c, header, &head, &before, &code);
        return;
    }
    const char *const texts[] = { c_in_section(g, head.at), c_in_section(g, before.at), c_in_section(g, code.at),
        g->ends.at };
    print_code(g, c, texts[0]);
    c_names_apart(g, COUNT(texts), texts, c, &end);
    for (size_t i = 1; i < COUNT(texts); i++)
        if (texts[i]) print_code(g, c, texts[i]);
    text_append(c, end.at ? end.at : "", end.n);
}

static void abandon(OutFile *const more[2]) {
    for (int i = 0; i < 2; i++) if (more[i]) out_abandon(more[i]);
}

// Files of values, not committed yet. They come first, so that memory of parameters is free for the text.
static bool write_values(CFile *g, const Training *training, OutFile *more[2]) {
    Arena *a = g->arena;
    const Options *o = g->options;
    if (!c_train_initial(a, o, training, &more[0])) return false;
    if (g->external && !(more[1] = weights_write_file(a, g->n, g->programs, g->weight_bytes,
        path_swap(a, o->output, ".bin"), &g->sum))) {
        abandon(more);
        return false;
    }
    if (more[0]) c_train_release(g, training);
    return true;
}

// The file, and what is known of it before its programs are printed.
static CFile file_of(
    Arena *a, const Options *o, const char *model, int n, Program *programs, const Training *training) {
    CFile g = { .arena = a, .options = o, .model = model, .n = n, .programs = programs };
    text_init(&g.c, a);
    text_init(&g.h, a);
    text_init(&g.data, a);
    text_init(&g.ends, a);
    g.weight_bytes = programs->function || training ? weights_share(n, programs) : programs->plan->weight_bytes;
    g.threads = o->threads > 1;
    g.training = training != NULL;
    g.numbers = g.training || o->small;
    for (int i = 0; i < n; i++) g.descriptor = g.descriptor || programs[i].descriptor;
    g.external = g.weight_bytes > o->embed_limit;
    return g;
}

// g->functions are then there.
static void print_programs(CFile *g, const Training *training) {
    if (training) c_train_declare(g, training);
    else c_state_declare(g);
    g->functions = c_functions_new(g);
    g->tasks = strmap_new(g->arena);
    for (int i = 0; i < g->n; i++) c_program(g, &g->programs[i]);
}

void codegen_listing(Arena *a, const Options *o, int n, Program *programs, const Training *training, Listing *out) {
    CFile g = file_of(a, o, o->name, n, programs, training);
    print_programs(&g, training);
    *out = c_functions_list(g.functions, a);
    c_functions_free(g.functions);
}

const char *codegen_function(const Kernel *k) { return k->text ? ((const KernelText *)k->text)->function : NULL; }

bool c_write(Arena *a, const Options *o, const char *model, int n, Program *programs, const Training *training,
    const Handover *handover) {
    CFile g = file_of(a, o, model, n, programs, training);
    g.handover = handover;
    Text out[2];                                        // header, source
    const char *paths[2] = { path_swap(a, o->output, ".h"), o->output };
    text_init(&out[0], a);
    text_init(&out[1], a);
    OutFile *more[2] = { NULL };                        // parameters' initial values, constants
    if (!write_values(&g, training, more)) return false;
    print_programs(&g, training);
    c_functions_free(g.functions);
    if (training) c_train_define(&g, training);
    if (training) c_gradients(&g, training);
    if (training) c_training(&g, training);
    if (programs->function) c_functions_declare(&g);
    if (diag_errors()) {
        abandon(more);
        return false;
    }
    print_header(&g, &out[0]);
    print_source(&g, &out[1], paths[0]);
    return files_write(a, o->machine.backend->mark, out, paths, 2, 2, more);
}

static bool write_c(
    Arena *a, const Options *o, const char *model, int n, Program *programs, const Training *training) {
    return c_write(a, o, model, n, programs, training, NULL);
}

const Backend backend_c = {
    .name = "c",
    .extension = ".c",
    .mark = BANNER_MARK,
    .sizes = true,
    .training = true,
    .states = true,
    .threads = true,
    .blas = true,
    .choices = true,
    .source = true,
    .descriptor = DESCRIPTOR_MODEL,
    .has_template = cpu_has_template,
    .packs_weights = true,
    .channels_last = true,
    .channels_first = cpu_on_planes,
    .byte_products = true,
    .columns = true,
    .attends_back = cpu_attends_back,
    .kernels = "c",
    .claims = cpu_claims,
    .plan = cpu_plan,
    .write = write_c,
};
