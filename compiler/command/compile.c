// SPDX-License-Identifier: MIT OR Apache-2.0
// The command `compile`, which stands for none: what is written of compiled programs (the files, --check, --report),
// or of a model in another format; and the names of the stages that --dump takes.
#include "command.h"

#include "codegen/check.h"
#include "export/onnx.h"
#include "export/safetensors.h"
#include "grad/train.h"

#include <string.h>
#include <unistd.h>

static const char *const stages[] = {                   // a pass that runs twice is here twice
    "import", "bind_dims",
#define PASS(phase, name, ...) #name,
#define ASKING_PASS PASS
#include "passes.def"
#undef PASS
#undef ASKING_PASS
    "canon", "grad", "passes", "plan",
};

static int stage_index(const char *stage) {
    int i = 0;
    while (i < (int)COUNT(stages) && strcmp(stages[i], stage)) i++;
    return i;
}

// A stage of the back end's own, after the schedule.
static bool dumps(const Options *o, const char *stage) {
    const Backend *b = o->machine.backend;
    return b->dump && !strcmp(stage, b->dump_stage);
}

bool dump_known(const Options *o, const char *stage) {
    return stage_index(stage) < (int)COUNT(stages) || dumps(o, stage);
}

const char *dump_names(Arena *a, const Options *o) {
    Text t;
    text_init(&t, a);
    for (int i = 0; i < (int)COUNT(stages); i++)
        if (stage_index(stages[i]) == i) text_printf(&t, "%s%s", i ? ", " : "", stages[i]);
    if (o->machine.backend && o->machine.backend->dump) text_printf(&t, ", %s", o->machine.backend->dump_stage);
    return t.at;
}

// model.c -> model.h, model.bin, model.safetensors, model.config.json
static const char *sibling(Arena *a, const char *file, const char *suffix) {
    return arena_printf(a, "%.*s%s", (int)(strrchr(file, '.') - file), file, suffix);
}

bool compile_write(Arena *a, const Options *o, Programs *p) {
    progress_stage("writing %s", o->output);
    return o->machine.backend->write(a, o, o->name, p->n, p->at, p->training);
}

// What was found fault with does not stay.
static bool stays(Arena *a, const Options *o, const Programs *p, bool good) {
    if (good) return true;
    unlink(o->output);
    unlink(sibling(a, o->output, ".h"));
    if (p->training && train_apart(p->training, o)) unlink(sibling(a, o->output, ".safetensors"));
    if (!p->training && p->at[0].plan->weight_bytes > o->embed_limit) unlink(sibling(a, o->output, ".bin"));
    return false;
}

bool compile_check(Arena *a, const Options *o, const Programs *p) {
    return stays(a, o, p, check_c(a, o->output, o));
}

// The same, and beside it the settings that the model was described with. They appear last, or not at all.
static bool write_with_settings(Arena *a, const CommandOptions *c, Programs *p, Text *footprint) {
    const Options *o = &c->compile;
    OutFile *settings = NULL;
    if (p->settings && !(settings = out_open(a, sibling(a, o->output, ".config.json")))) return false;
    bool ok = !settings
        || (out_write(settings, p->settings, strlen(p->settings)) && out_write(settings, NULL, 0));
    ok = ok && compile_write(a, o, p) && (!c->check || compile_check(a, o, p))
        && stays(a, o, p, footprint_check(a, o, p, c->report, footprint));
    if (ok && settings) return out_commit(settings);
    if (settings) out_abandon(settings);
    return ok;
}

void compile_report(Arena *a, const Options *o, const Programs *p, Text *out) {
    const Backend *backend = o->machine.backend;
    for (int i = 0; i < p->n; i++) plan_report(p->at[i].plan, out);
    if (backend->report) backend->report(a, o, p->n, p->at, p->training, out);
}

// The model as it was read, with the weights that it was given, in another format.
static int export_model(Arena *a, const Options *o) {
    Graph *g = import_graph(a, o);
    if (!g) return diag_status();
    if (o->written == WRITTEN_ONNX) export_onnx(a, o, g);
    else export_safetensors(a, o, g);
    if (!diag_errors()) depfile_write(a, o);
    return diag_status();
}

static OutMark mark_of(const Options *o) {
    return o->written == WRITTEN_ONNX      ? onnx_mark :
        o->written == WRITTEN_SAFETENSORS ? safetensors_mark :
                                            o->machine.backend->mark;
}

// Kernels that are fast read weights in their own order, padded, or transformed.
static void note_growth(Arena *a, const Options *o, const Programs *p) {
    enum { WORTH = 64 << 10 };
    int64_t bytes = p->at[0].plan->weight_bytes, more = bytes - p->model_bytes;
    if (o->train || p->n != 1 || o->small || more < WORTH || more <= p->model_bytes / 2) return;
    diag_note(&(Loc){ .file = o->model, .node = -1 },
        "weights take %s, %.1f times the model's %s, as fast kernels read them; --optimize size keeps them small",
        text_bytes(a, bytes), (double)bytes / (double)p->model_bytes, text_bytes(a, p->model_bytes));
}

static const char *what_is(const char *path) {
    static const struct { const char *suffix, *what; } known[] = {
        { ".config.json", "settings" }, { ".onnx.data", "weights" }, { ".onnx", "model" }, { ".c", "code" },
        { ".h", "interface" }, { ".bin", "weights" }, { ".safetensors", "parameters" },
    };
    for (size_t i = 0; i < COUNT(known); i++) {
        size_t n = strlen(path), k = strlen(known[i].suffix);
        if (n > k && !strcmp(path + n - k, known[i].suffix)) return known[i].what;
    }
    return "";
}

void tell_files(Arena *a) {
    const WrittenFiles *files = written_all();
    progress_stage(NULL);
    int width = 0;
    for (int i = 0; i < files->n; i++) {
        int n = (int)strlen(files->at[i].path);
        if (n > width) width = n;
    }
    for (int i = 0; i < files->n; i++)
        progress_line("%-*s %10s  %s", width, text_name(a, files->at[i].path), text_bytes(a, files->at[i].bytes),
            what_is(files->at[i].path));
}

// -o model.c, model.onnx, model.safetensors
static int compile_model(Arena *a, CommandOptions *c) {
    Options *o = &c->compile;
    bool stop = o->dump && !o->output;
    bool beside = o->output != NULL;
    if (!o->output) o->output = arena_printf(a, "%s%s", o->name, o->machine.backend->extension);
    if (beside && !out_allowed(o->output, mark_of(o))) return diag_status();    // before all the work
    if (o->written) return export_model(a, o);
    Programs *programs = compile_programs(a, o);
    if (!programs || stop) return diag_status();
    if (!beside) programs->settings = NULL;
    Text footprint;
    text_init(&footprint, a);
    if (!write_with_settings(a, c, programs, &footprint) || !depfile_write(a, o)) return diag_status();
    note_growth(a, o, programs);
    if (!c->report) return EXIT_OK;
    Text report;
    text_init(&report, a);
    compile_report(a, o, programs, &report);
    text_append(&report, footprint.at, footprint.n);
    return print_text(&report, EXIT_OK);
}

int command_compile(Arena *a, CommandOptions *c) {
    int status = c->package ? command_package(a, c) : compile_model(a, c);
    if (status == EXIT_OK) tell_files(a);
    return status;
}
