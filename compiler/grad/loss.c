// SPDX-License-Identifier: MIT OR Apache-2.0
// --loss [OUTPUT,...=]NAME(option=value, ...)*FACTOR, as often as wanted: what is trained for.
//
// In: the options' text and a model's outputs. Out: terms; for each program its targets as inputs and the weighted sum
// of the terms. NAME is a row of losses.def; `output:NAME` is an output that is a loss itself. A row's operands are the
// outputs that are named, in order, or the model's first; those that it has not are arguments of the program, as the
// targets are: the variances of gaussian_nll may come out of a network or be known.
#include "loss.h"

#include "ops/common.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

// ---------------------------------------------------------------- the text

static bool wrong(const char *text, const char *fmt, const char *what, const char *more) {
    Arena *a = arena_new();
    diag_error_as(EXIT_USAGE, NULL, "--loss %s: %s", text, arena_printf(a, fmt, what, more));
    arena_free(a);
    return false;
}

static bool number_of(const char *s, double *out) {
    char *end;
    *out = strtod(s, &end);
    return end != s && !*end;
}

static bool whole_of(const char *s, int64_t *out) {
    char *end;
    errno = 0;
    *out = strtoll(s, &end, 10);
    return end != s && !*end && !errno;
}

// Numbers with commas or blanks between, to the end or a bracket.
static bool list_of(Arena *a, const char *s, LossNumbers *out) {
    VEC(float) all = { 0 };
    for (;;) {
        char *end;
        s += strspn(s, ", \t\r\n[");
        if (!*s || *s == ']') break;
        double v = strtod(s, &end);
        if (end == s) return false;
        VEC_PUSH(a, all, (float)v);
        s = end;
    }
    out->n = all.n;
    out->at = all.at;
    return all.n > 0;
}

static bool file_of(Arena *a, const char *path, LossNumbers *out) {
    File f;
    if (!file_map(&f, path)) return false;
    bool ok = list_of(a, arena_strndup(a, (const char *)f.data, f.size), out);
    file_unmap(&f);
    return ok;
}

// A number, [numbers] or a file of them.
static bool read_numbers(Arena *a, const char *text, const SpecArg *arg, bool file, LossNumbers *out) {
    const char *word = arg->value->word;
    *out = (LossNumbers){ .name = arg->key };
    if (*word == '[' ? list_of(a, word, out) : file ? file_of(a, word, out) : number_of(word, &out->number))
        return true;
    return wrong(text, "%s wants a number, [numbers] or, for weights, a file of them, not %s", arg->key, word);
}

static bool read_option(LossTerm *t, Arena *a, const char *text, const SpecArg *arg) {
    const LossRow *row = t->row;
    const char *word = arg->value->word;
    bool classes = row->targets == TARGETS_CLASSES, rows = classes || row->targets == TARGETS_DISTRIBUTIONS;
    if (!arg->key || arg->value->args.n) return wrong(text, "options are NAME=VALUE, not '%s'%s", word, "");
    if (!strcmp(arg->key, "reduction")) {
        t->reduction = word;
        if (!strcmp(word, "none"))
            return wrong(text, "one loss per target is nothing to descend%s%s; reduction= mean, sum or batchmean", "",
                "");
        bool known = !strcmp(word, "mean") || !strcmp(word, "sum") || !strcmp(word, "batchmean");
        return known || wrong(text, "there is no reduction '%s'%s; there are mean, sum, batchmean", word, "");
    }
    if (!strcmp(arg->key, "class_axis") && rows) {
        t->has_axis = true;
        return whole_of(word, &t->axis) || wrong(text, "%s wants an axis, not %s", arg->key, word);
    }
    if (!strcmp(arg->key, "ignore_index") && classes && strcmp(row->name, "multi_margin")) {
        t->ignores = true;
        return whole_of(word, &t->ignored) || wrong(text, "%s wants an integer, not %s", arg->key, word);
    }
    if (!strcmp(arg->key, "weight") && rows) return read_numbers(a, text, arg, true, &t->weight);
    if (!loss_has(row, arg->key))
        return wrong(text, "no option is called '%s'; it has: %s", arg->key,
            arena_printf(a, "reduction%s%s%s%s", rows ? " weight class_axis" : "", classes ? " ignore_index" : "",
                *row->options ? " " : "", row->options));
    LossNumbers one;
    if (!read_numbers(a, text, arg, false, &one)) return false;
    VEC_PUSH(a, t->given, one);
    return true;
}

static bool read_outputs(LossTerm *t, const Graph *model, const char *text, const char *names, size_t n) {
    while (n) {
        size_t one = 0;
        int at = 0;
        while (one < n && names[one] != ',') one++;
        const char *name = arena_strndup(model->arena, names, one);
        while (at < model->outputs.n && strcmp(model->output_names.at[at], name)) at++;
        if (at == model->outputs.n) return wrong(text, "the model has no output '%s'%s", name, "");
        if (t->n_outputs == MAX_LOSS_OPERANDS) return wrong(text, "no loss has so many operands%s%s", "", "");
        t->outputs[t->n_outputs++] = at;
        names += one + (one < n);
        n -= one + (one < n);
    }
    return true;
}

static bool read_factor(LossTerm *t, const char *text, const char *s) {
    t->factor = 1;
    if (!*s) return true;
    char *end = NULL;
    if (*s == '*') t->factor = strtod(s + 1, &end);
    bool ok = end && end != s + 1 && !*end;
    return ok || wrong(text, "cannot be read at '%s'%s; a loss is [OUTPUT=]NAME(option=value, ...)*FACTOR", s, "");
}

static bool read_term(LossTerm *t, const Graph *model, const char *text) {
    static const char own[] = "output:";
    Arena *a = model->arena;
    *t = (LossTerm){ 0 };
    if (!strncmp(text, own, strlen(own))) {
        const char *name = text + strlen(own);
        size_t n = strcspn(name, "*");
        return read_outputs(t, model, text, name, n) && read_factor(t, text, name + n);
    }
    size_t equals = strcspn(text, "=(");
    const char *s = text;
    if (text[equals] == '=') {
        if (!read_outputs(t, model, text, text, equals)) return false;
        s = text + equals + 1;
    }
    const Spec *spec = spec_parse(a, &s);
    if (!spec) return wrong(text, "cannot be read; a loss is [OUTPUT=]NAME(option=value, ...)*FACTOR%s%s", "", "");
    t->row = loss_find(spec->word);
    if (!t->row) return wrong(text, "no loss is called '%s'; there are%s", spec->word, loss_names);
    int most = loss_operands(t->row);
    if (t->n_outputs > most) return wrong(text, "%s takes fewer outputs%s", t->row->name, "");
    for (int i = 0; !t->n_outputs && i < most && i < model->outputs.n; i++) t->outputs[i] = i;
    if (!t->n_outputs) t->n_outputs = most < model->outputs.n ? most : model->outputs.n;
    for (int i = 0; i < spec->args.n; i++)
        if (!read_option(t, a, text, &spec->args.at[i])) return false;
    return read_factor(t, text, s);
}

// ---------------------------------------------------------------- the model's outputs

static bool has_classes(const LossTerm *t) {
    return t->row && (t->row->targets == TARGETS_CLASSES || t->row->targets == TARGETS_DISTRIBUTIONS);
}

static bool find_axis(LossTerm *t, const Type *x) {
    int64_t axis = t->has_axis ? t->axis : -1;
    t->axis = axis < 0 ? axis + x->rank : axis;
    if (!t->row || t->row->targets == TARGETS_VALUES || t->row->targets == TARGETS_SEQUENCES
        || (t->axis >= 0 && t->axis < x->rank))
        return true;
    diag_error_as(EXIT_USAGE, NULL, "--class-axis %lld: the output has %d axes", (long long)axis, x->rank);
    return false;
}

// PyTorch has the classes of images second, exporters of language models last.
static void note_axis(const LossTerm *t, const Graph *g, const Type *x, const char *name) {
    if (!has_classes(t) || t->has_axis || x->rank < 3) return;
    diag_note(NULL,
        "--loss %s takes the last axis of \"%s\" %s for the classes; --class-axis 1 is what PyTorch does, --class-axis "
        "-1 keeps it",
        t->row->name, name, type_text(g->arena, g, x));
}

static bool takes(const LossRow *row, const Type *x) {
    return dtype_is_float(x->dtype) && (x->rank > 0 || row->targets == TARGETS_VALUES);
}

// What to say instead: the first output that the loss takes.
static const char *taken(const LossRow *row, const Graph *model) {
    for (int i = 0; i < model->outputs.n; i++)
        if (takes(row, &model->outputs.at[i]->type))
            return arena_printf(model->arena, "; --loss '%s=%s' takes another", model->output_names.at[i], row->name);
    return "";
}

bool losses_read(LossTerms *terms, const Graph *model, const Options *o) {
    static const char usual[] = "cross_entropy";
    for (int i = 0; i < o->losses.n || !i; i++) {
        const char *text = o->losses.n ? o->losses.at[i] : usual;
        LossTerm t;
        if (!read_term(&t, model, text)) return false;
        if (o->has_class_axis && has_classes(&t) && !t.has_axis) {
            t.has_axis = true;
            t.axis = o->class_axis;
        }
        const Type *x = &model->outputs.at[t.outputs[0]]->type;
        if (t.row && !takes(t.row, x)) {
            diag_error(NULL, "--loss %s wants float outputs [..., classes], \"%s\" is %s%s", t.row->name,
                model->output_names.at[t.outputs[0]], type_text(model->arena, model, x), taken(t.row, model));
            return false;
        }
        if (t.row && t.row->targets == TARGETS_SEQUENCES && x->rank != (strcmp(t.row->name, "ctc") ? 4 : 3)) {
            diag_error(NULL, "--loss %s wants an output %s, \"%s\" is %s", t.row->name,
                strcmp(t.row->name, "ctc") ? "[batch, time, length + 1, classes]" : "[time, batch, classes]",
                model->output_names.at[t.outputs[0]], type_text(model->arena, model, x));
            return false;
        }
        note_axis(&t, model, x, model->output_names.at[t.outputs[0]]);
        if (!find_axis(&t, x)) return false;
        VEC_PUSH(model->arena, *terms, t);
    }
    bool used = terms->n > 1 || terms->at[0].n_outputs > 1 || o->losses.n;
    if (model->outputs.n > 1 && !used)
        diag_note(NULL, "the loss is computed on the first of %d outputs, \"%s\"", model->outputs.n,
            model->output_names.at[0]);
    return true;
}

bool *losses_outputs(Arena *a, const LossTerms *terms, const Graph *model) {
    bool *marks = NEW_ARRAY(a, bool, model->outputs.n + 1);
    for (int i = 0; i < terms->n; i++)
        for (int k = 0; k < terms->at[i].n_outputs; k++) marks[terms->at[i].outputs[k]] = true;
    return marks;
}

// ---------------------------------------------------------------- graphs

static const char *free_input_name(const Graph *g, const char *name) {
    for (int i = 0; i < g->inputs.n; i++)
        if (g->inputs.at[i]->name && !strcmp(g->inputs.at[i]->name, name))
            return free_input_name(g, arena_printf(g->arena, "%s_", name));
    return name;
}

static Value *add_target(const LossTerms *terms, const LossTerm *t, Graph *g, const char *what, Type type) {
    if (terms->n > 1) what = arena_printf(g->arena, "%s_%s", what, g->output_names.at[t->outputs[0]]);
    return graph_input(g, free_input_name(g, what), type);
}

static void limit_classes(Graph *g, const LossTerm *t, Value *target, Dim classes) {
    if (!dim_is_const(classes)) return;
    struct Allowed *r = NEW(g->arena, struct Allowed);
    *r = (struct Allowed){ .lo = 0, .hi = classes - 1, .ignores = t->ignores, .ignored = t->ignored };
    target->range = r;
}

// How many of a row's steps count, or of its targets: none up to all.
static void limit_count(Graph *g, Value *count, Dim most) {
    if (!dim_is_const(most)) return;
    struct Allowed *r = NEW(g->arena, struct Allowed);
    *r = (struct Allowed){ .lo = 0, .hi = most };
    count->range = r;
}

// The targets and the numbers of what counts of both sides, as sequence_loss.c wants them. ctc's targets are as long as
// length= says, else as the predictions.
static void sequence_targets(const LossTerms *terms, LossTerm *t, Graph *g, const Type *x) {
    LossOptions o = { .reduction = NULL };
    for (int i = 0; i < t->given.n; i++)
        VEC_PUSH(g->arena, o.given, ((LossOption){ t->given.at[i].name, NULL, t->given.at[i].number }));
    const bool pairs = x->rank == 4, first = pairs || loss_number(t->row, &o, "batch_first") > 0;
    const Dim steps = x->dim[first ? 1 : 0], batch = x->dim[first ? 0 : 1];
    const int64_t said = pairs ? 0 : (int64_t)loss_number(t->row, &o, "length");
    const Dim length = pairs ? dim_offset(g, x->dim[2], -1) : said > 0 ? said : steps;
    Value *target = add_target(terms, t, g, "target", type_make(DT_I64, 2, (Dim[]){ batch, length }));
    Value *times = add_target(terms, t, g, "steps", type_make(DT_I64, 1, &batch));
    Value *lengths = add_target(terms, t, g, "lengths", type_make(DT_I64, 1, &batch));
    limit_classes(g, t, target, x->dim[x->rank - 1]);
    limit_count(g, times, steps);
    limit_count(g, lengths, length);
    t->targets[t->n_targets++] = target;
    t->targets[t->n_targets++] = times;
    t->targets[t->n_targets++] = lengths;
}

bool losses_targets(LossTerms *terms, Graph *g) {
    for (int i = 0; i < terms->n; i++) {
        LossTerm *t = &terms->at[i];
        t->n_targets = 0;
        if (!t->row) continue;
        Type x = g->outputs.at[t->outputs[0]]->type;
        x.dtype = dtype_wide(x.dtype);
        if (t->row->targets == TARGETS_SEQUENCES) {
            sequence_targets(terms, t, g, &x);
            continue;
        }
        const char *list = t->row->operands, *name;
        double none;
        for (int k = 0; row_word(g->arena, &list, &name, &none); k++)
            if (k >= t->n_outputs) t->targets[t->n_targets++] = add_target(terms, t, g, name, x);
        if (t->row->targets == TARGETS_NONE) continue;
        Value *target = add_target(terms, t, g, "target", loss_target_type(t->row, &x, (int)t->axis));
        if (t->row->targets == TARGETS_CLASSES) limit_classes(g, t, target, x.dim[t->axis]);
        t->targets[t->n_targets++] = target;
    }
    return true;
}

static Value *numbers_value(Graph *g, const LossNumbers *n) {
    return n->n ? b_float_vector(g, DT_F32, n->n, n->at) : NULL;
}

static Value *term_value(const LossTerm *t, Graph *g) {
    Value *in[2 * MAX_LOSS_OPERANDS];
    int n = 0;
    for (int i = 0; i < t->n_outputs; i++) in[n++] = b_wide(g, g->outputs.at[t->outputs[i]]);
    if (!t->row) return b_scalar_of(g, in[0]);
    for (int i = 0; i < t->n_targets; i++) in[n++] = t->targets[i];
    LossOptions o = { .reduction = t->reduction, .axis = (int)t->axis, .ignores = t->ignores, .ignored = t->ignored };
    o.weight = numbers_value(g, &t->weight);
    for (int i = 0; i < t->given.n; i++) {
        const LossNumbers *given = &t->given.at[i];
        VEC_PUSH(g->arena, o.given, ((LossOption){ given->name, numbers_value(g, given), given->number }));
    }
    return b_loss(g, t->row, in, &o);
}

Value *losses_sum(const LossTerms *terms, Graph *g) {
    Value *sum = NULL;
    for (int i = 0; i < terms->n; i++) {
        const LossTerm *t = &terms->at[i];
        Value *one = term_value(t, g);
        if (one && t->factor != 1) one = b_binary(g, OP_Mul, one, b_like(g, one, t->factor));
        sum = sum ? b_binary(g, OP_Add, sum, one) : one;
        if (!sum) return NULL;
    }
    return sum;
}

static const char *targets_doc(const LossTerm *t, const Graph *g) {
    Arena *a = g->arena;
    const Value *target = t->n_targets ? t->targets[t->n_targets - 1] : NULL;
    if (t->row->targets == TARGETS_SEQUENCES)
        return arena_printf(a, "; %s: %s numbers of classes, of which the first %s count; %s: how many steps of the "
            "output count", t->targets[0]->name, type_text(a, g, &t->targets[0]->type), target->name,
            t->targets[1]->name);
    if (t->row->targets != TARGETS_CLASSES) {
        const char *what = t->row->targets == TARGETS_DISTRIBUTIONS ? "probabilities of the classes" :
            t->row->targets == TARGETS_ROWS                         ? "1 or -1 for each row" :
                                                                      "as the output";
        return target && t->row->targets != TARGETS_NONE ?
            arena_printf(a, "; %s: %s %s", target->name, type_text(a, g, &target->type), what) : "";
    }
    return arena_printf(a, "; %s: %s numbers of classes, which are axis %lld of the output%s", target->name,
        type_text(a, g, &target->type), (long long)t->axis,
        t->ignores ? arena_printf(a, ", %lld counts for nothing", (long long)t->ignored) : "");
}

const char *losses_doc(const LossTerms *terms, const Graph *g) {
    Text text;
    text_init(&text, g->arena);
    for (int i = 0; i < terms->n; i++) {
        const LossTerm *t = &terms->at[i];
        text_printf(&text, "\n * %s", i ? "  + " : "loss = ");
        if (t->factor != 1) text_printf(&text, "%.9g * ", t->factor);
        if (!t->row) {
            text_printf(&text, "the output");
            continue;
        }
        text_printf(&text, "%s, %s%s", t->row->name, t->reduction ? t->reduction : "mean", targets_doc(t, g));
    }
    return text.at;
}
