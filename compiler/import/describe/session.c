// SPDX-License-Identifier: MIT OR Apache-2.0
// The state of a description: places, scopes, names of parameters, sizes, and the model's ends.
//
// In: calls of the description. Out: a graph whose parameters have names but no numbers yet, only what they are drawn
// from (ir/draw.c). A mistake is a diagnostic and gives NULL, which every later call passes on in silence.
#define _POSIX_C_SOURCE 200809L
#include "import/describe/describe.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

enum { MAX_VALUES = 500000 };

Description *describing;

// ---------------------------------------------------------------- places

const char *source_text(const char *file) {
    const char *text = strmap_get(describing->sources, file);
    File f;
    if (text) return text;
    if (access(file, R_OK) || !file_map(&f, file)) text = "";           // without it there are no columns
    else {
        text = arena_strndup(describing->arena, (const char *)f.data, f.size);
        file_unmap(&f);
    }
    strmap_put(describing->sources, file, (void *)(uintptr_t)text);
    return text;
}

// Where the call's name stands in its line, from 1; 0: nowhere (a macro of the description's own).
static int column_of(const burn_place *at) {
    const char *line = source_text(at->file);
    for (int i = 1; i < at->line && *line; i++) {
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    size_t length = strcspn(line, "\n"), word = strlen(at->call);
    for (size_t i = 0; i + word <= length; i++)
        if (!strncmp(line + i, at->call, word) && strchr(" (", line[i + word])) return (int)i + 1;
    return 0;
}

const char *full_name(const char *name) {
    const Description *d = describing;
    const char *scope = d->scopes.n ? d->scopes.at[d->scopes.n - 1] : "";
    return arena_printf(d->arena, "%s%s", scope, name);
}

// The parent tells it if the description crashes behind this call, or never ends.
static void note(const burn_place *at) {
    Progress *p = describing->progress;
    snprintf(p->file, sizeof p->file, "%s", at->file);
    snprintf(p->call, sizeof p->call, "%s", at->call);
    p->line = at->line;
}

Graph *here(const burn_place *at, const char *name) {
    Graph *g = describing->g;
    note(at);
    Loc loc = { .file = arena_strdup(g->arena, at->file), .line = at->line, .column = column_of(at), .node = -1,
        .name = name ? full_name(name) : NULL, .op = arena_strdup(g->arena, at->call) };
    g->loc = arena_copy(g->arena, &loc, sizeof loc);
    if (g->value_count > MAX_VALUES) {
        diag_error_as(
            EXIT_LIMIT, g->loc, "the description makes more than %d values; does a loop never end?", MAX_VALUES);
        child_end();
    }
    return g;
}

// ---------------------------------------------------------------- scopes

void language_model(const burn_place *at, const char *name) {
    Graph *g = here(at, NULL);
    if (!describing->options->name) g->name = arena_strdup(g->arena, name);
}

static const char *formatted(const burn_place *at, const char *format, va_list ap) {
    char name[256];
    int n = vsnprintf(name, sizeof name, format, ap);
    Graph *g = here(at, NULL);
    if (n < 0 || (size_t)n >= sizeof name) graph_fail(g, "a name has at most %zu bytes", sizeof name - 1);
    return arena_strdup(describing->arena, name);
}

void language_scope(const burn_place *at, const char *format, ...) {
    Description *d = describing;
    va_list ap;
    va_start(ap, format);
    const char *name = formatted(at, format, ap);
    va_end(ap);
    const char *inner = *name ? arena_printf(d->arena, "%s.", full_name(name)) : full_name("");
    VEC_PUSH(d->arena, d->scopes, inner);
}

void language_scope_end(void) { describing->scopes.n--; }

const char *language_named(const burn_place *at, const char *format, ...) {
    va_list ap;
    va_start(ap, format);
    const char *name = formatted(at, format, ap);
    va_end(ap);
    return name;
}

void language_shared(const burn_place *at) {
    here(at, NULL);
    describing->shared++;
}

void language_shared_end(void) { describing->shared--; }

void language_mistake(const burn_place *at, const char *format, ...) {
    char line[1024];
    va_list ap;
    va_start(ap, format);
    vsnprintf(line, sizeof line, format, ap);
    va_end(ap);
    graph_fail(here(at, NULL), "%s", line);
}

// ---------------------------------------------------------------- sizes
// A symbolic size is a number that C's operators turn into no other symbolic size, so that a mistake is found.
#define SYMBOL_BASE (INT64_C(1) << 40)
#define SYMBOL_STEP INT64_C(1000003)

burn_dim dim_out(Dim d) {
    Description *s = describing;
    if (dim_is_const(d)) return d;
    int i = 0;
    while (i < s->symbols.n && s->symbols.at[i] != d) i++;
    if (i == s->symbols.n) VEC_PUSH(s->arena, s->symbols, d);
    return -SYMBOL_BASE - i * SYMBOL_STEP;
}

bool dim_in(burn_dim d, const char *what, Dim *out) {
    const Description *s = describing;
    int64_t at = -d - SYMBOL_BASE;
    bool symbol = at >= 0 && at % SYMBOL_STEP == 0 && at / SYMBOL_STEP < s->symbols.n;
    *out = symbol ? s->symbols.at[at / SYMBOL_STEP] : d;
    if (symbol || (d >= 0 && d <= INT32_MAX)) return true;
    if (d <= -SYMBOL_BASE / 4 || d >= SYMBOL_BASE / 4)
        graph_fail(s->g,
            "%s was computed from a symbol by C's operators; use dim_add, dim_sub, dim_mul and dim_div", what);
    else graph_fail(s->g, "%s is %lld", what, (long long)d);
    return false;
}

bool dims_in(int n, const burn_dim *d, const char *what, Dim *out) {
    if (n > MAX_RANK) return graph_fail(describing->g, "a tensor has at most %d dimensions, here are %d", MAX_RANK, n);
    for (int i = 0; i < n; i++)
        if (!dim_in(d[i], what, &out[i])) return false;
    return true;
}

bool number_in(burn_dim d, const char *what, int64_t *out) {
    if (!dim_in(d, what, out)) return false;
    if (dim_is_const(*out)) return true;
    graph_fail(describing->g, "%s is the symbol %s, which only the running program knows; it must be a number", what,
        dim_text(describing->arena, describing->g, *out));
    return false;
}

bool axis_in(const Value *x, int64_t axis, int *out) {
    int rank = x->type.rank;
    *out = (int)(axis < 0 ? axis + rank : axis);
    if (axis >= -rank && axis < rank) return true;
    graph_fail(describing->g, "there is no axis %lld in %s", (long long)axis,
        type_text(describing->arena, describing->g, &x->type));
    return false;
}

bool axes_in(const Value *x, int n, const int64_t *axes, bool *seen, int *out) {
    memset(seen, 0, sizeof *seen * MAX_RANK);
    if (n > x->type.rank) return graph_fail(describing->g, "%d axes of %s", n, shown(describing->g, x));
    for (int i = 0; i < n; i++) {
        if (!axis_in(x, axes[i], &out[i])) return false;
        if (seen[out[i]]) return graph_fail(describing->g, "axis %lld is named twice", (long long)axes[i]);
        seen[out[i]] = true;
    }
    return true;
}

bool yes(int option) { return option != 2; }

double given(double number, double otherwise) {
    const double zero = (double)(INT64_MIN + 1);        // model.h's ZERO, as a double has it
    return number == 0 ? otherwise : number == zero ? 0 : number;
}

bool sizes_in(int64_t packed, int n, int64_t otherwise, const char *what, int64_t *out) {
    const int64_t pair = INT64_C(1) << 61, triple = INT64_C(1) << 60, mask = (1 << 20) - 1;
    int count = !(packed & pair) || packed < 0 ? 1 : packed & triple ? 3 : 2;
    if (count > 1 && count != n) {
        graph_fail(describing->g, "%s has %d numbers, here are %d axes", what, count, n);
        return false;
    }
    for (int i = 0; i < n; i++) {
        out[i] = count == 1 ? packed : packed >> (20 * (n - 1 - i)) & mask;
        if (count == 1 && packed == 0) out[i] = otherwise;
        if (out[i] >= 0 && out[i] <= mask) continue;
        graph_fail(describing->g, "%s is %lld", what, (long long)out[i]);
        return false;
    }
    return true;
}

const char *shown(const Graph *g, const Value *x) { return type_text(g->arena, g, &x->type); }

bool dtype_in(const Graph *g, int dtype) {
    return (dtype > DT_NONE && dtype < DT_INDEX) || graph_fail(g, "%d is no element type, such as F32", dtype);
}

bool type_in(Graph *g, int dtype, int rank, const burn_dim *dims, Type *out) {
    Dim d[MAX_RANK];
    if (!dtype_in(g, dtype) || !dims_in(rank, dims, "a size", d)) return false;
    *out = type_make((DType)dtype, rank, d);
    return true;
}

burn_dim language_symbol(const burn_place *at, const char *name, int64_t low, int64_t high) {
    Graph *g = here(at, NULL);
    if (!of_model(g, "symbol")) return 1;
    if (!name_is_plain(name) || low < 0 || high < low) {
        graph_fail(g, "a symbol is called like a variable of C and lies within 0 <= low <= high: \"%s\", %lld..%lld",
            name, (long long)low, (long long)high);
        return 1;
    }
    Dim d = dim_symbol(g, arena_strdup(g->arena, name));
    Symbol *s = &g->symbols.at[symbol_number(g, name)];
    s->lo = low;
    s->hi = high;
    return dim_out(d);
}

burn_dim language_dim(const burn_place *at, burn_value *x, int64_t axis) {
    int i;
    here(at, NULL);
    return x && axis_in(x, axis, &i) ? dim_out(x->type.dim[i]) : 1;
}

int language_rank(const burn_place *at, burn_value *x) {
    here(at, NULL);
    return x ? x->type.rank : 0;
}

burn_dim language_size_of(const burn_place *at, burn_value *x, int64_t low, int64_t high) {
    Graph *g = here(at, NULL);
    if (!x) return 1;
    if (x->type.dtype != DT_I64 || !type_is_static(&x->type) || type_count(&x->type) != 1)
        return graph_fail(g, "wants one number of I64, not %s", shown(g, x)), 1;
    if (low < 0 || high < low || high > INT32_MAX)
        return graph_fail(g, "a size lies within 0 <= low <= high: %lld..%lld", (long long)low, (long long)high), 1;
    const char *name = x->name ? arena_printf(g->arena, "%s_size", name_c(g->arena, x->name)) : "size";
    return dim_out(dim_measured(g, name, low, high, x, 0));
}

burn_dim language_dim_of(const burn_place *at, burn_dim a, burn_dim b) {
    Graph *g = here(at, NULL);
    Dim x, y, z;
    if (!dim_in(a, "the first size", &x) || !dim_in(b, "the second size", &y)) return 1;
    if (at->call[4] == 'd' && y == 0) return graph_fail(g, "a size is divided by 0"), 1;
    switch (at->call[4]) {                              // dim_add, dim_sub, dim_mul, dim_div
    case 'a': z = dim_add(g, x, y); break;
    case 's': z = dim_sub(g, x, y); break;
    case 'm': z = dim_mul(g, x, y); break;
    default: z = dim_div(g, x, y);
    }
    return dim_out(z);
}

// ---------------------------------------------------------------- the model's ends

burn_value *language_input(const burn_place *at, const char *name, int dtype, int rank, const burn_dim *dims) {
    Graph *g = here(at, NULL);
    Type t;
    if (!of_model(g, "input") || !type_in(g, dtype, rank, dims, &t) || !end_inside(g, "an input")) return NULL;
    for (int i = describing->part.inputs; i < g->inputs.n; i++)
        if (!strcmp(g->inputs.at[i]->name, name)) return graph_fail(g, "there is an input \"%s\" already", name);
    return graph_input(g, name, t);
}

void language_output(const burn_place *at, const char *name, burn_value *x) {
    Graph *g = here(at, NULL);
    if (!of_model(g, "output") || !end_inside(g, "an output")) return;
    for (int i = describing->part.outputs; i < g->outputs.n; i++)
        if (!strcmp(g->output_names.at[i], name)) graph_fail(g, "there is an output \"%s\" already", name);
    if (x) graph_output(g, x, name);
}

// ---------------------------------------------------------------- parameters

static Draw drawn_from(burn_init init, Fan fan) {
    double a = init.a, count = (double)max64(init.b != 0 ? fan.out : fan.in, 1),
           both = (double)max64(fan.in + fan.out, 1);
    double he = sqrt(2 / (1 + a * a) / count), glorot = a * sqrt(2 / both), wide = sqrt(3.0);
    switch (init.kind) {
    case BURN_INIT_UNIFORM: return (Draw){ DRAW_UNIFORM, { a, init.b } };
    case BURN_INIT_NORMAL: return (Draw){ DRAW_NORMAL, { a, init.b } };
    case BURN_INIT_TRUNCATED_NORMAL: return (Draw){ DRAW_TRUNCATED, { a, init.b } };
    case BURN_INIT_KAIMING_UNIFORM: return (Draw){ DRAW_UNIFORM, { -wide * he, wide * he } };
    case BURN_INIT_KAIMING_NORMAL: return (Draw){ DRAW_NORMAL, { 0, he } };
    case BURN_INIT_XAVIER_UNIFORM: return (Draw){ DRAW_UNIFORM, { -wide * glorot, wide * glorot } };
    case BURN_INIT_XAVIER_NORMAL: return (Draw){ DRAW_NORMAL, { 0, glorot } };
    case BURN_INIT_ORTHOGONAL: return (Draw){ DRAW_ORTHOGONAL, { a, 0 } };
    default: return (Draw){ DRAW_FILL, { a, 0 } };
    }
}

static Value *named(const char *name, Type t, const Draw *draw, bool trainable) {
    Description *d = describing;
    const Value *before = strmap_get(d->parameters, name), *taken = strmap_get(d->part.parameters, name);
    if (!of_model(d->g, "parameter")) return NULL;
    if (!*name) return graph_fail(d->g, "it has parameters and needs a name");
    if (taken && d->shared) return shared_parameter(name, &t);
    if (taken)
        return graph_fail(d->g, "there is a parameter \"%s\" already; use another name, a scope, or shared()", name);
    strmap_put(d->part.parameters, name, d);
    if (before) return shared_parameter(name, &t);      // of another function
    if (!type_is_static(&t))
        return graph_fail(d->g, "parameter \"%s\" would be %s: its sizes must be numbers", name,
            type_text(d->arena, d->g, &t));
    Value *v = graph_drawn(d->g, name, t, draw);
    v->trainable = trainable;
    strmap_put(d->parameters, name, v);
    return v;
}

static const char *parameter_name(const char *layer, const char *name) {
    return full_name(layer && *layer ? arena_printf(describing->arena, "%s.%s", layer, name) : name);
}

Value *layer_parameter(const char *layer, const char *name, Type t, burn_init init, Fan fan) {
    Draw draw = drawn_from(init, fan);
    if (!layer || !*layer) return graph_fail(describing->g, "a layer needs a name");
    return named(parameter_name(layer, name), t, &draw, dtype_is_float(t.dtype));
}

// A parameter that layers share has begun already.
void begin_padded(Value *w, int64_t row) {
    if (!w || !w->draw || w->draw->kind != DRAW_NORMAL) return;
    Draw padded = { DRAW_PADDED, { w->draw->of[0], w->draw->of[1], (double)row } };
    w->draw = arena_copy(describing->arena, &padded, sizeof padded);
}

Value *layer_buffer(const char *layer, const char *name, Type t, double value) {
    Draw draw = { DRAW_FILL, { value, 0 } };
    if (!layer || !*layer) return graph_fail(describing->g, "a layer needs a name");
    return named(parameter_name(layer, name), t, &draw, false);
}

Value *shared_parameter(const char *name, const Type *t) {
    Description *d = describing;
    Value *v = strmap_get(d->parameters, name);
    if (!of_model(d->g, "parameter")) return NULL;
    if (!v) return graph_fail(d->g, "there is no parameter \"%s\" yet to share", name);
    if (type_equal(&v->type, t)) return v;
    return graph_fail(d->g, "the shared \"%s\" is %s, here %s is wanted", name, type_text(d->arena, d->g, &v->type),
        type_text(d->arena, d->g, t));
}

burn_value *language_parameter(
    const burn_place *at, const struct burn_parameter *o, int rank, const burn_dim *dims) {
    Graph *g = here(at, o->name);
    Type t;
    if (!type_in(g, o->dtype ? o->dtype : DT_F32, rank, dims, &t)) return NULL;
    if (!dtype_is_float(t.dtype)) return graph_fail(g, "a parameter has elements of floats");
    Fan fan = { 1, rank ? t.dim[0] : 1 };
    for (int i = 1; i < rank; i++) fan.in *= dim_is_const(t.dim[i]) ? t.dim[i] : 1;
    Draw draw = drawn_from(o->init, fan);
    return named(full_name(o->name ? o->name : ""), t, &draw, o->frozen != 1);
}
