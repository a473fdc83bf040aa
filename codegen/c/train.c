// SPDX-License-Identifier: MIT OR Apache-2.0
// What generated training code has besides its programs: the structs of parameters and optimizer state, their initial
// values, and saving and loading. The structs are the caller's; gradients have the parameters' type, so that a caller
// can sum those of several threads. Initial values up to the embedding limit stand in the C file; larger ones are
// written beside it, as a file that the generated code loads like any other that it saved: as text they would be four
// times as large, and most of what the C compiler reads.
#include "c.h"

#include "export/safetensors.h"
#include "import/weights/weights.h"

#include <string.h>

static void print_struct(CFile *g, Text *h, const char *type, const char *doc, int n, const Parameter *at) {
    text_printf(h, "/* %s */\ntypedef struct %s_%s {\n", doc, g->model, type);
    for (int i = 0; i < n; i++)
        text_printf(h, "    %s %s[%lld]; /* %s */\n", spell_c_storage(at[i].type.dtype), at[i].field,
            (long long)type_count(&at[i].type), type_text(g->arena, NULL, &at[i].type));
    if (!n) text_printf(h, "    char unused; /* this optimizer keeps none */\n");
    text_printf(h, "} %s_%s;\n\n", g->model, type);
}

void c_train_declare(CFile *g, const Training *t) {
    const char *doc = "All that is trained. Gradients have the same type: one per worker, summed as the caller likes.";
    if (t->runs)
        doc = arena_printf(g->arena,
            "All that is trained, and the running statistics of batch normalization. Gradients have the same type: one "
            "per\n * worker, summed as the caller likes; where the statistics are they have the batch's, and %s counts "
            "the batches\n * of the sum (in parameters it means nothing).",
            t->runs);
    print_struct(g, &g->h, "params", doc, t->params.n, t->params.at);
    print_struct(g, &g->h, "state",
        "What the optimizer remembers between steps. All zero before the first: memset does it.", t->state.n,
        t->state.at);
}

// What a file has of the parameters, and what they begin with: all but the count of batches, which comes last.
static int saved_params(const Training *t) { return t->params.n - (t->runs ? 1 : 0); }

static void print_initial(CFile *g, const Training *t) {
    if (train_apart(t, g->options)) {
        text_printf(&g->h,
            "/* The model's own weights, the start of fine-tuning, are in %s beside this file:\n"
            " * %s_params_load(params, path) reads them. */\n\n",
            path_base(path_swap(g->arena, g->options->output, ".safetensors")), g->model);
        return;
    }
    for (int i = 0; i < saved_params(t); i++) {
        const Parameter *p = &t->params.at[i];
        Value v = { .type = p->type };
        Buffer b = { .place = PLACE_WEIGHT,
            .value = &v,
            .data = p->initial->data,
            .bytes = type_bytes(&p->type),
            .element = p->type.dtype };
        weights_print_array(&g->ends, &b, arena_printf(g->arena, "%s_initial_%s", g->model, p->field));
    }
    text_printf(&g->ends, "\nvoid %s_params_init(%s_params *params)\n{\n    if (!params) return;\n", g->model,
        g->model);
    for (int i = 0; i < saved_params(t); i++)
        text_printf(&g->ends, "    memcpy(params->%s, %s_initial_%s, sizeof params->%s);\n", t->params.at[i].field,
            g->model, t->params.at[i].field, t->params.at[i].field);
    if (t->runs) text_printf(&g->ends, "    params->%s[0] = 0.0f;\n", t->runs);
    text_printf(&g->ends, "}\n\n");
    text_printf(&g->h,
        "/* The model's own weights, the start of fine-tuning. */\nvoid %s_params_init(%s_params *params);\n\n",
        g->model, g->model);
}

static void print_fields(CFile *g, const char *prefix, const char *type, int base, int n, const Parameter *at) {
    for (int i = 0; i < n; i++)
        text_printf(&g->ends, "    {\"%s%s\", \"%s\", \"%s\", %d, offsetof(%s_%s, %s), %lld},\n", prefix,
            c_string(g->arena, safetensors_name(g->arena, at[i].name)), safetensors_dtype(at[i].type.dtype),
            safetensors_shape(g->arena, &at[i].type), base, g->model, type, at[i].field,
            (long long)type_bytes(&at[i].type));
}

static void print_io(CFile *g, const Training *t) {
    Arena *a = g->arena;
    const int n = saved_params(t);
    text_printf(&g->ends, "#ifndef BURN_NO_FILES\nstatic const burn_saved %s_fields[] = {\n", g->model);
    print_fields(g, "", "params", 0, n, t->params.at);
    print_fields(g, "optimizer.", "state", 1, t->state.n, t->state.at);
    text_printf(&g->ends, "    {\"optimizer.step\", \"I64\", \"[]\", 2, 0, 8},\n};\n\n");
    skeleton_fill(a, &g->ends, "skeleton/fields.c", 4,
        (Hole[]){ { "MODEL", NULL, g->model },
            { "N_PARAMS", NULL, number_text(a, n) },
            { "N_STATE", NULL, number_text(a, t->state.n) },
            { "N_FIELDS", NULL, number_text(a, n + t->state.n + 1) } });
    text_printf(&g->ends, "#endif\n\n");
    skeleton_fill(a, &g->h, "skeleton/fields.h", 2,
        (Hole[]){ { "MODEL", NULL, g->model }, { "HAS_STATE", NULL, t->state.n ? "1" : "0" } });
    text_printf(&g->h, "\n");
}

void c_train_define(CFile *g, const Training *t) {
    print_initial(g, t);
    print_io(g, t);
}

bool c_train_initial(Arena *a, const Options *o, const Training *t, OutFile **file) {
    *file = NULL;
    if (!t || !train_apart(t, o)) return true;
    SafeTensor *tensors = NEW_ARRAY(a, SafeTensor, t->params.n + 1);
    int n = saved_params(t);
    for (int i = 0; i < n; i++) tensors[i] = (SafeTensor){ t->params.at[i].name, t->params.at[i].initial };
    *file = safetensors_write(a, path_swap(a, o->output, ".safetensors"), n, tensors);
    return *file != NULL;
}

// Is a constant of some program among these bytes?
static bool is_constant(const CFile *g, const char *from, int64_t bytes) {
    for (int i = 0; i < g->n; i++) {
        const Plan *p = g->programs[i].plan;
        for (int j = 0; j < p->buffers.n; j++) {
            const Buffer *b = p->buffers.at[j];
            const char *at[] = { b->data, b->value && b->value->data ? b->value->data->data : NULL };
            for (int k = 0; b->place == PLACE_WEIGHT && k < 2; k++)
                if (at[k] && (uintptr_t)at[k] - (uintptr_t)from < (uintptr_t)bytes) return true;
        }
    }
    return false;
}

void c_train_release(CFile *g, const Training *t) {
    for (int i = 0; i < saved_params(t); i++) {
        const Tensor *initial = t->params.at[i].initial;
        if (!is_constant(g, initial->data, type_bytes(&initial->type))) arena_release(g->arena, initial->data);
    }
}
