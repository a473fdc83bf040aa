// SPDX-License-Identifier: MIT OR Apache-2.0
// The generic descriptor of training code, `const burn_training`: names, types and places of what the structs hold,
// names and shapes of the ends, and the programs behind signatures that are the same for any model. It is what one
// learner drives any module with, as `const burn_model` is for inference.
//
// Each program is called by a function that checks the arrays of tensors and calls the program as its own signature
// says: the arguments are variables of the names that the signature has, or expressions in their place.
#include "signature.h"

#include "build/build.h"
#include "ops/formulas.h"

#include <string.h>

static const char *const burn_roles[] = { [PARAMETER_TRAINED] = "BURN_TRAINED", [PARAMETER_RUNNING] = "BURN_RUNNING",
    [PARAMETER_BATCHES] = "BURN_BATCHES" };

static void print_parts(CFile *g, const char *type, int n, const Parameter *at) {
    Text rows, *out = &g->ends;
    text_init(&rows, g->arena);
    for (int i = 0; i < n; i++) {
        text_printf(&rows, "    {");
        c_tensor_info(out, &rows, g->programs[0].plan->graph, &at[i].type, at[i].name,
            arena_printf(g->arena, "%s_%s%d", g->model, type, i));
        text_printf(
            &rows, ", offsetof(%s_%s, %s), %s},\n", g->model, type, at[i].field, burn_roles[at[i].kind]);
    }
    if (n) text_printf(out, "static const burn_part %s_%s_parts[] = {\n%s};\n\n", g->model, type, rows.at);
}

// list: of a row of optimizers.def or schedules.def; how many
static int print_hypers(CFile *g, const char *of, const char *list) {
    const char *name;
    double usual;
    int n = 0;
    Text rows;
    text_init(&rows, g->arena);
    for (; list && row_word(g->arena, &list, &name, &usual); n++)
        text_printf(&rows, "    {\"%s\", %.9g},\n", name, usual);
    if (n) text_printf(&g->ends, "static const burn_hyper %s_%s_hypers[] = {\n%s};\n\n", g->model, of, rows.at);
    return n;
}

// ---------------------------------------------------------------- calls
typedef struct Call { const char *program, *parameters, *suffix; } Call;

enum { PREDICT, EVALUATE, GRADIENTS, UPDATE, TRAIN_STEP, LEARNING_RATE, GRADIENTS_BY_STATE, CALLS };
#define ENDS "const struct burn_threads *threads, void *ws, const void *weights, "
static const Call calls[CALLS] = {
    { "predict", ENDS "const burn_tensor *inputs, const void *params, const burn_tensor *outputs", "" },
    { "evaluate", ENDS "const burn_tensor *inputs, const void *params, double *loss, const burn_tensor *outputs", "" },
    { "gradients", ENDS "const burn_tensor *inputs, const void *params, int64_t step, double *loss, void *grads", "" },
    { "update", ENDS "const float *hypers, void *params, const void *grads, void *state", "" },
    { "train_step", ENDS "const burn_tensor *inputs, int64_t step, const float *hypers, void *params, void *state, "
                         "double *loss", "" },
    { "learning_rate", "float step, const float *hypers, float *rate", "" },
    { "gradients", ENDS "const burn_tensor *inputs, const void *params, const void *state, int64_t step, "
                        "double *loss, void *grads", "_by_state" },
};
#undef ENDS

static const Program *program_of(const CFile *g, const char *name) {
    for (int i = 0; i < g->n; i++)
        if (!strcmp(g->programs[i].plan->graph->name, name)) return &g->programs[i];
    return NULL;
}

// Ends that are arrays of their own: they have one place in all programs, and infos in common.
static Tensors tensors_of(CFile *g, const Graph *gr, bool outputs) {
    const int n = outputs ? gr->outputs.n : gr->inputs.n;
    Tensors t = { 0, NEW_ARRAY(g->arena, int, n + 1),
        arena_printf(g->arena, "%s_training_%s", g->model, outputs ? "outputs" : "inputs") };
    for (int i = 0; i < n; i++)
        if ((outputs ? gr->outputs.at : gr->inputs.at)[i]->role == ROLE_NONE) t.at[t.n++] = i;
    return t;
}

// The number of a name in a row's list; -1: it is none of them.
static int hyper_at(Arena *a, const char *list, const char *name) {
    const char *word;
    double usual;
    for (int i = 0; row_word(a, &list, &word, &usual); i++)
        if (!strcmp(word, name)) return i;
    return -1;
}

// Numbers are elements of the array, but for a step that is an argument of its own: dropout's, a schedule's.
static const char *number_name(CFile *g, const Training *t, const Call *call, const Value *v) {
    const bool rate = call == &calls[LEARNING_RATE];
    const int at = hyper_at(g->arena, rate ? t->schedule_usual : optimizer_usual(t, g->arena), v->name);
    return v->type.dtype == DT_I64 || (rate && at < 0) ? "step" : arena_printf(g->arena, "hypers[%d]", at);
}

// What stands for the signature's names: elements of the arrays, variables for outputs, whose shapes have names too.
static void take_names(
    CFile *g, Text *out, const Training *t, Signature *s, const Tensors *in, const Tensors *outs, const Call *call) {
    Arena *a = g->arena;
    const Graph *gr = s->graph;
    for (int i = 0; i < in->n; i++)
        s->in.name[in->at[i]] = arena_printf(
            a, "(const %s *)inputs[%d].data", spell_c_storage(gr->inputs.at[in->at[i]]->type.dtype), i);
    for (int i = 0; i < gr->inputs.n; i++)
        if (gr->inputs.at[i]->role == ROLE_VALUE) s->in.name[i] = number_name(g, t, call, gr->inputs.at[i]);
    for (int i = 0; i < gr->outputs.n; i++)
        if (gr->outputs.at[i]->role == ROLE_LOSS) {
            s->outs.name[i] = "value";
            text_printf(out, "    %s value[1];\n", spell_c_storage(gr->outputs.at[i]->type.dtype));
        }
    for (int i = 0; i < gr->outputs.n; i++) {           // gradients by inputs: the call has no place for them
        const Value *v = gr->outputs.at[i];
        if (v->role == ROLE_NONE && (!strcmp(call->program, "gradients") || call == &calls[TRAIN_STEP]))
            text_printf(out, "    %s %s[%lld];\n", spell_c_storage(v->type.dtype), s->outs.name[i],
                (long long)type_count_upper(gr, &v->type));
    }
    for (int i = 0; i < outs->n; i++) {
        const int at = outs->at[i];
        const Type *y = &gr->outputs.at[at]->type;
        const char *type = spell_c_storage(y->dtype), *name = s->outs.name[at] = arena_printf(a, "out%d", at);
        text_printf(out, "    %s *const %s = (%s *)outputs[%d].data;\n", type, name, type, i);
        if (c_is_measured(gr, y))
            text_printf(out, "    int64_t %s_shape[%d], *const shape%d = %s_shape;\n", name, y->rank, at, name);
    }
}

// A parameter that this program has no use for.
static void print_unused(Text *out, const Call *call, const char *name, bool used) {
    if (!used && strstr(call->parameters, name)) text_printf(out, "    (void)%s;\n", name);
}

static void print_unuseds(const CFile *g, Text *out, const Call *call, const Signature *s) {
    const Graph *gr = s->graph;
    bool step = call == &calls[LEARNING_RATE], hypers = false;
    for (int i = 0; i < gr->inputs.n; i++) {
        if (gr->inputs.at[i]->role != ROLE_VALUE) continue;
        step = step || !strcmp(s->in.name[i], "step");
        hypers = hypers || strcmp(s->in.name[i], "step");
    }
    if (hypers) text_printf(out, "    if (!hypers) return -1; /* BURN_EINVAL */\n");
    print_unused(out, call, "threads", g->threads);
    print_unused(out, call, "ws", c_has_workspace(s->program));
    print_unused(out, call, "weights", c_takes_weights(g, s->program));
    print_unused(out, call, "step", step);
    print_unused(out, call, "hypers", hypers);
    print_unused(out, call, "params", c_struct_seen(gr, gr->outputs.n, true, ROLE_PARAM));
    print_unused(out, call, "state", c_struct_seen(gr, gr->outputs.n, true, ROLE_STATE));
}

static void print_call(CFile *g, const Training *t, const Call *call) {
    Text *out = &g->ends;
    const Program *p = program_of(g, call->program);
    if (!p) return;
    Signature s = c_signature(g, p);
    const bool rate = call == &calls[LEARNING_RATE], loss = strstr(call->parameters, "*loss");
    Tensors in = { 0 }, outs = { 0 };
    if (c_has_banks(g) && c_has_workspace(p) && !*call->suffix) c_space_declare(g, p, out, NULL);
    text_printf(out, "static int %s%s_generic(%s)\n{\n", p->name, call->suffix, call->parameters);
    if (strstr(call->parameters, "*inputs")) in = tensors_of(g, s.graph, false);
    if (strstr(call->parameters, "*outputs")) outs = tensors_of(g, s.graph, true);
    if (in.n || outs.n) c_tensor_checks(out, &s, &in, &outs);
    if (loss) text_printf(out, "    if (!loss) return -1; /* BURN_EINVAL */\n");
    take_names(g, out, t, &s, &in, &outs, call);
    if (rate) s.outs.name[0] = "rate";
    if (rate && g->threads) text_printf(out, "    const burn_threads *const threads = NULL;\n");
    if (rate && c_has_workspace(p))
        text_printf(out, "    %s_%s;\n", p->name_of_workspace,
            c_has_banks(g) ? "space scratch" : "workspace scratch, *const ws = &scratch");
    print_unuseds(g, out, call, &s);
    if (c_has_banks(g) && c_has_workspace(p)) s.work = c_space_open(g, p, out, rate ? "&scratch" : "ws");
    if (call == &calls[GRADIENTS] && c_struct_seen(s.graph, s.graph->outputs.n, true, ROLE_STATE))
        text_printf(out, "    const %s_state *const state = NULL; /* refused: gradients_by_state is given it */\n",
            g->model);
    text_printf(out, "    const int code = %s(", p->name);
    c_signature_parameters(g, out, &s, false);
    text_printf(out, ");\n");
    if (loss) text_printf(out, "    if (!code || code == -9) *loss = (double)value[0]; /* BURN_ENAN */\n");
    c_tensor_shapes(out, s.graph, &outs);
    text_printf(out, "    return code;\n}\n\n");
}

// ---------------------------------------------------------------- the descriptor
static void print_tables(CFile *g, const Graph *in, const Graph *outs) {
    const Tensors i = tensors_of(g, in, false), o = tensors_of(g, outs, true);
    c_tensor_infos(&g->ends, in, &i, false);
    c_tensor_infos(&g->ends, outs, &o, true);
    text_printf(&g->ends, "\n");
}

// In the order of the struct: bytes of work, function.
static void print_program(CFile *g, Text *out, const Call *call) {
    const Program *p = program_of(g, call->program);
    if (call != &calls[LEARNING_RATE])
        text_printf(out, "    %s,\n",
            p && c_has_workspace(p) ? arena_printf(g->arena, "sizeof(%s_%s)", p->name_of_workspace,
                c_has_banks(g) ? "space" : "workspace") : "0");
    text_printf(out, "    %s,\n", p ? arena_printf(g->arena, "%s_generic", p->name) : "NULL");
}

static const char *loss_text(Arena *a, const Training *t) {
    Text s;
    text_init(&s, a);
    for (int i = 0; i < t->losses.n; i++) {
        const LossTerm *one = &t->losses.at[i];
        text_printf(&s, "%s", i ? " + " : "");
        if (one->factor != 1) text_printf(&s, "%.9g * ", one->factor);
        text_printf(&s, "%s", one->row ? one->row->name : "output");
    }
    return s.at;
}

static const char *table(CFile *g, int n, const char *name) {
    return n ? arena_printf(g->arena, "%s_%s", g->model, name) : "NULL";
}

void c_training(CFile *g, const Training *t) {
    Arena *a = g->arena;
    const Graph *predict = program_of(g, "predict")->plan->graph, *gradients = program_of(g, "gradients")->plan->graph;
    const int n_in = tensors_of(g, predict, false).n, n_all = tensors_of(g, gradients, false).n,
              n_out = tensors_of(g, predict, true).n;
    print_parts(g, "params", t->params.n, t->params.at);
    print_parts(g, "state", t->state.n, t->state.at);
    const int n_hypers = print_hypers(g, "update", optimizer_usual(t, g->arena)),
              n_schedule = print_hypers(g, "schedule", t->schedule ? t->schedule_usual : NULL);
    print_tables(g, gradients, predict);
    for (int i = 0; i < CALLS; i++) print_call(g, t, &calls[i]);
    Text programs;
    text_init(&programs, a);
    for (int i = 0; i < GRADIENTS_BY_STATE; i++) print_program(g, &programs, &calls[i]);
    skeleton_fill(a, &g->ends, "skeleton/training.c", 22,
        (Hole[]){ { "MODEL", NULL, g->model },
            { "LOSS", NULL, loss_text(a, t) },
            { "OPTIMIZER", NULL, t->optimizer->name },
            { "SCHEDULE", NULL, t->schedule ? arena_printf(a, "\"%s\"", c_string(a, t->schedule_text)) : "NULL" },
            { "N_WEIGHTS", NULL, number_text(a, g->external ? g->weight_bytes + WEIGHTS_HEADER : 0) },
            { "N_PARAMS", NULL, number_text(a, t->params.n) },
            { "N_STATE", NULL, number_text(a, t->state.n) },
            { "PARAMS", NULL, table(g, t->params.n, "params_parts") },
            { "STATE", NULL, table(g, t->state.n, "state_parts") },
            { "N_INPUTS", NULL, number_text(a, n_in) },
            { "N_TARGETS", NULL, number_text(a, n_all - n_in) },
            { "N_OUTPUTS", NULL, number_text(a, n_out) },
            { "INPUTS", NULL, table(g, n_all, "training_inputs") },
            { "OUTPUTS", NULL, table(g, n_out, "training_outputs") },
            { "N_HYPERS", NULL, number_text(a, n_hypers) },
            { "N_SCHEDULE", NULL, number_text(a, n_schedule) },
            { "HYPERS", NULL, table(g, n_hypers, "update_hypers") },
            { "SCHEDULED", NULL, table(g, n_schedule, "schedule_hypers") },
            { "TAKES_STEP", NULL, t->step ? "1" : "0" },
            { "N_PARTS", NULL, number_text(a, g->threads ? g->options->threads : 0) },
            { "PROGRAMS", NULL, programs.at },
            { "HAS_INIT", NULL, train_apart(t, g->options) ? "0" : "1" } });
}
