// SPDX-License-Identifier: MIT OR Apache-2.0
// --schedule: the learning rate of a step, by a row of schedules.def or several that are combined.
//
//   NAME(parameter=value, ...)                        a row; what is given no value is an argument of the function
//   product(S, S, ...), mean(S, ...), sum(S, ...)     a product's rates after the first are factors: of a learning rate
//                                                     of 1, unless they say one
//   sequential(S, S, ...; STEP, ...)                  the next begins at each STEP, and counts from 0 there
//
// In: the option's text. Out: a graph of maps. Arguments of a row that is not alone begin with its name, but for the
// learning rate, which all share.
#include "schedule.h"

#include "ops/formulas.h"
#include "step.h"

#include <stdlib.h>
#include <string.h>

typedef struct Combination { const char *name, *text; } Combination;    // of x, so far, and y
static const Combination combinations[] = {
    { "product", "x * y" },
    { "mean", "x + y" },
    { "sum", "x + y" },
    { "sequential", NULL },
};

typedef struct Rates {
    Graph *g;
    Text usual;
    StrMap *arguments;                                  // name -> Value
    StrMap *rows;                                       // name -> itself, of those met
    bool alone;
} Rates;

static const Combination *combination_of(const char *name) {
    for (size_t i = 0; i < COUNT(combinations); i++)
        if (!strcmp(combinations[i].name, name)) return &combinations[i];
    return NULL;
}

// ---------------------------------------------------------------- the text

static bool is_number(const Spec *s, double *number) {
    char *end;
    *number = strtod(s->word, &end);
    return end != s->word && !*end && !s->args.n;
}

static bool wrong(const char *text, const char *why, const char *what) {
    diag_error_as(EXIT_USAGE, NULL, "--schedule %s: %s%s", text, why, what);
    return false;
}

static bool row_fits(Arena *a, const char *text, const Spec *s) {
    const ScheduleRow *row = schedule_find(s->word);
    if (!row) {
        diag_error_as(EXIT_USAGE, NULL,
            "--schedule: no schedule is called '%s'; there are%s product mean sum sequential", s->word, schedule_names);
        return false;
    }
    for (int i = 0; i < s->args.n; i++) {
        const char *list = row->hyper, *name, *key = s->args.at[i].key;
        double number;
        bool known = false;
        while (key && row_word(a, &list, &name, &number)) known = known || !strcmp(name, key);
        if (!known) return wrong(text, arena_printf(a, "%s has the parameters ", row->name), row->hyper);
        if (!is_number(s->args.at[i].value, &number)) return wrong(text, "no number: ", s->args.at[i].value->word);
    }
    return true;
}

static bool fits(Arena *a, const char *text, const Spec *s) {
    const Combination *c = combination_of(s->word);
    if (!c) return row_fits(a, text, s);
    int schedules = 0, steps = 0;
    double last = 0, number;
    for (int i = 0; i < s->args.n; i++) {
        const Spec *one = s->args.at[i].value;
        if (s->args.at[i].key) return wrong(text, "a combination has no parameters: ", s->args.at[i].key);
        if (!is_number(one, &number)) {
            schedules++;
            if (!fits(a, text, one)) return false;
            continue;
        }
        if (number <= last) return wrong(text, "milestones grow: ", one->word);
        last = number;
        steps++;
    }
    if (!schedules || steps != (c->text ? 0 : schedules - 1))
        return wrong(
            text, c->text ? "wants schedules alone in " : "wants a step between each two schedules of ", c->name);
    return true;
}

bool schedule_read(Arena *a, const char *text, const Spec **spec) {
    const char *s = text;
    *spec = spec_parse(a, &s);
    if (!*spec || *s) return wrong(text, "cannot be read; it is NAME(parameter=value, ...)", "");
    return fits(a, text, *spec);
}

// ---------------------------------------------------------------- the graph

static Value *argument(Rates *r, const char *row, const char *name, double usual) {
    Graph *g = r->g;
    bool shared = !strcmp(name, "learning_rate");
    const char *full = r->alone || shared ? name : arena_printf(g->arena, "%s_%s", row, name);
    Value *v = strmap_get(r->arguments, full);
    if (v) return v;
    v = train_input(g, full, type_make(DT_F32, 0, NULL), ROLE_VALUE);
    strmap_put(r->arguments, full, v);
    text_printf(&r->usual, "%s%s=%.9g", r->usual.n ? " " : "", full, usual);
    return v;
}

// The row's name, with a number where it is not the first of its kind.
static const char *row_again(Rates *r, const char *name) {
    const char *full = name;
    for (int k = 2; strmap_get(r->rows, full); k++) full = arena_printf(r->g->arena, "%s%d", name, k);
    strmap_put(r->rows, full, r);
    return full;
}

static Value *row_rate(Rates *r, const Spec *s, Value *step, bool factor) {
    const ScheduleRow *row = schedule_find(s->word);
    const char *list = row->hyper, *name, *full = row_again(r, row->name);
    Formula f = { .g = r->g };
    formula_let(&f, "step", step, 0);
    for (double usual; row_word(r->g->arena, &list, &name, &usual);) {
        bool top = !strcmp(name, "learning_rate"), given = factor && top;
        double number = 1;
        for (int i = 0; i < s->args.n; i++)
            if (!strcmp(s->args.at[i].key, name)) given = is_number(s->args.at[i].value, &number);
        // of f32 even where all is known
        Value *v = given ? NULL : argument(r, full, name, usual);
        formula_let(&f, name, given && top ? b_scalar(r->g, DT_F32, number) : v, number);
    }
    return formula_run(&f, row->assignments) ? formula_value(&f, "rate") : NULL;
}

static Value *rate_of(Rates *r, const Spec *s, Value *step, bool factor);

static Value *sequence(Rates *r, const Spec *s, Value *step, bool factor) {
    double from[2] = { 0 };
    Value *rate = NULL;
    int milestone = 0;
    for (int i = 0; i < s->args.n; i++) {
        if (is_number(s->args.at[i].value, &from[1])) continue;
        if (rate) {
            while (!is_number(s->args.at[milestone].value, &from[0])) milestone++;
            milestone++;
        }
        const char *since = arena_printf(r->g->arena, "x - %.17g", from[0]);
        Value *at = rate ? B_MAP(r->g, since, "x", step) : step, *next = rate_of(r, s->args.at[i].value, at, factor);
        const char *which = arena_printf(r->g->arena, "x < %.17g ? y : z", from[0]);
        rate = rate && next ? B_MAP(r->g, which, "x y z", step, rate, next) : next;
        if (!rate) return NULL;
    }
    return rate;
}

static Value *rate_of(Rates *r, const Spec *s, Value *step, bool factor) {
    const Combination *c = combination_of(s->word);
    if (!c) return row_rate(r, s, step, factor);
    if (!c->text) return sequence(r, s, step, factor);
    Value *rate = NULL;
    for (int i = 0; i < s->args.n; i++) {
        bool times = factor || (i && !strcmp(c->name, "product"));
        Value *next = rate_of(r, s->args.at[i].value, step, times);
        rate = i && rate && next ? B_MAP(r->g, c->text, "x y", rate, next) : next;
    }
    if (rate && !strcmp(c->name, "mean")) rate = B_MAP(r->g, arena_printf(r->g->arena, "x / %d", s->args.n), "x", rate);
    return rate;
}

Graph *schedule_graph(const Graph *model, const Spec *spec, const char **usual) {
    Graph *g = graph_new(model->arena, "learning_rate", model->file);
    g->bound = true;
    Rates r = { .g = g, .alone = !combination_of(spec->word) };
    r.arguments = strmap_new(g->arena);
    r.rows = strmap_new(g->arena);
    text_init(&r.usual, g->arena);
    text_append(&r.usual, "", 0);
    Value *step = train_input(g, "step", type_make(DT_F32, 0, NULL), ROLE_VALUE);
    Value *rate = rate_of(&r, spec, step, false);
    if (!rate) return NULL;
    graph_output(g, rate, "rate");
    *usual = r.usual.at;
    return g;
}
