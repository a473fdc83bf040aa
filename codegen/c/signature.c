// SPDX-License-Identifier: MIT OR Apache-2.0
// What a run function is given: its workspace, weights, sizes, inputs and outputs, each with a name that nothing else
// in the function has. Parameters, gradients and state are fields of structs that the caller owns, one parameter each.
#include "signature.h"

#include <string.h>

// Gradients have the type of the parameters.
static const struct { const char *param, *type; } structs[ROLE_COUNT] = {
    [ROLE_PARAM] = { "params", "params" },
    [ROLE_GRAD] = { "grads", "params" },
    [ROLE_TANGENT] = { "tangents", "params" },
    [ROLE_STATE] = { "state", "state" },
};
const char *c_struct_param(Role r) { return structs[r].param; }
const char *c_struct_type(Role r) { return structs[r].type; }
bool c_in_struct(const Value *v) { return structs[v->role].param != NULL; }

// The parameters of a run function: their names, and by name the next number that makes another of it.
typedef struct Scope { StrMap *taken, *numbers; } Scope;

static bool clashes(bool threads, const StrMap *taken, const char *name) {
    static const char *const shared[] = { "threads", "constants" },
                             *const strips[] = { "strip", "was", "now" };
    for (size_t i = 0; threads && i < COUNT(shared); i++)
        if (!strcmp(name, shared[i])) return true;
    for (size_t i = 0; i < COUNT(strips); i++)
        if (!strcmp(name, strips[i])) return true;
    if (!strcmp(name, "ws") || !strcmp(name, "weights") || !strcmp(name, "strings")) return true;
    if (!strncmp(name, "work", 4) && !name[4 + strspn(name + 4, "0123456789")]) return true;
    if (name[0] == 'v' && name[1] && !name[1 + strspn(name + 1, "0123456789")]) return true;
    return name_is_library(name) || strmap_get(taken, name);
}

// The name that an end is to have, or with the next number of those that were to have the same.
static const char *parameter(Arena *a, const char *base, bool threads, Scope *s) {
    int *number = strmap_get(s->numbers, base);
    if (!number) {
        number = NEW(a, int);
        *number = 2;
        strmap_put(s->numbers, base, number);
    }
    const char *name = base;
    while (clashes(threads, s->taken, name)) name = arena_printf(a, "%s_%d", base, (*number)++);
    strmap_put(s->taken, name, number);
    return name;
}

static EndNames name_ends(
    Arena *a, const Graph *gr, const char *model, bool threads, bool outputs, Scope *scope) {
    int n = outputs ? gr->outputs.n : gr->inputs.n;
    EndNames e = { NEW_ARRAY(a, const char *, n + 1), NEW_ARRAY(a, const char *, n + 1) };
    for (int i = 0; i < n; i++) {
        const Value *v = outputs ? gr->outputs.at[i] : gr->inputs.at[i];
        const char *given = outputs ? gr->output_names.at[i] : v->name;
        const char *kind = outputs ? "output" : "input", *base = name_c(a, given && *given ? given : kind);
        if (!c_in_struct(v) && (!strncmp(base, "burn_", 5) || c_is_file_name(model, base)))
            base = arena_printf(a, "%s_%s", kind, base);
        const char *name = c_in_struct(v) ? base : parameter(a, base, threads, scope);
        e.name[i] = name;
        e.at[i] = v->role == ROLE_VALUE ? arena_printf(a, "&%s", name) :
            c_in_struct(v)      ? arena_printf(a, "%s->%s", c_struct_param(v->role), name) :
                                  name;
    }
    return e;
}

// [1*28*28], for the reader; nothing where it is not constant
static const char *extent_text(Arena *a, const Type *t) {
    Text s;
    text_init(&s, a);
    if (!type_is_static(t)) return "";
    if (type_count(t) > INT32_MAX) text_printf(&s, "(size_t)");      // more than an int holds
    for (int i = 0; i < t->rank; i++) text_printf(&s, "%s%lld", i ? "*" : "", (long long)t->dim[i]);
    return t->rank == 0 || type_count(t) == 0 ? "[1]" : arena_printf(a, "[%s]", s.at);
}

// ---------------------------------------------------------------- sizes
Sizes c_sizes(Arena *a, const Graph *g) {
    int n;
    const Symbol *all = graph_symbols(graph_root(g), &n);
    Sizes s = { 0, NEW_ARRAY(a, int, n + 1) };
    for (int i = 0; i < n; i++)
        for (int j = 0; !all[i].from && j < g->inputs.n; j++)
            if (type_uses(g, &g->inputs.at[j]->type, i)) {
                s.at[s.n++] = i;
                break;
            }
    return s;
}

const Symbol *c_symbol(const Graph *g, int i) {
    int n;
    return &graph_symbols(graph_root(g), &n)[i];
}

// Does the program itself find out the size? Then it says so through a parameter of its own.
bool c_is_measured(const Graph *g, const Type *t) {
    int n;
    const Symbol *all = graph_symbols(graph_root(g), &n);
    for (int i = 0; i < n; i++)
        if (all[i].from && type_uses(g, t, i)) return true;
    return false;
}

// Pointers need not have the 8 bytes that the workspace has for each.
static const char *string_bytes_text(Arena *a, int64_t n) {
    return arena_printf(a, "%lld * sizeof(burn_string)", (long long)n);
}

const char * c_bytes(Arena *a, const Graph *g, const Type *t) {
    if (t->dtype == DT_STRING && type_is_static(t)) return string_bytes_text(a, type_count(t));
    if (t->dtype == DT_STRING)
        return arena_printf(a, "%s * (int64_t)sizeof(burn_string)", spell_size(a, g, type_size(graph_root(g), t)));
    if (type_is_static(t)) return arena_printf(a, "%lld", (long long)type_bytes(t));
    return spell_size(a, g, dim_mul(graph_root(g), type_size(graph_root(g), t), (Dim)dtype_size(t->dtype)));
}

const char *c_most_bytes(Arena *a, const Graph *g, const Type *t) {
    return t->dtype == DT_STRING ? string_bytes_text(a, type_count_upper(g, t)) :
                                   arena_printf(a, "%lld", (long long)type_bytes_upper(g, t));
}

void c_bounds_print(Text *out, const Symbol *s) {
    const char *size = spell_symbol(out->arena, s);
    if (s->lo == s->hi) text_printf(out, "if (%s != %lld) return -5; /* BURN_ELIMIT */\n", size, (long long)s->lo);
    else
        text_printf(out, "if (%s < %lld || %s > %lld) return -5; /* BURN_ELIMIT */\n", size, (long long)s->lo, size,
            (long long)s->hi);
}

// ---------------------------------------------------------------- signature
typedef struct Separator { const char *text; } Separator;
static const char *next(Separator *s) {
    const char *t = s->text;
    s->text = ", ";
    return t;
}

bool c_struct_seen(const Graph *gr, int upto, bool outputs, Role r) {
    for (int i = 0; i < gr->inputs.n && (outputs || i < upto); i++)
        if (gr->inputs.at[i]->role == r) return true;
    for (int i = 0; outputs && i < upto; i++)
        if (gr->outputs.at[i]->role == r) return true;
    return false;
}

bool c_struct_written(const Graph *gr, Role r) {
    for (int i = 0; i < gr->outputs.n; i++)
        if (gr->outputs.at[i]->role == r) return true;
    return false;
}

// `typed`: as parameters, else as the arguments of a call.
static void print_ends(
    CFile *g, Text *out, const Graph *gr, const EndNames *e, bool outputs, bool typed, Separator *sep) {
    int n = g->options->io_inside ? 0 : outputs ? gr->outputs.n : gr->inputs.n;
    for (int i = 0; i < n; i++) {
        const Value *v = outputs ? gr->outputs.at[i] : gr->inputs.at[i];
        const char *name = e->name[i], *type = "", *extent = "";
        if (c_in_struct(v)) {
            if (c_struct_seen(gr, i, outputs, v->role)) continue;
            name = c_struct_param(v->role);
            type = arena_printf(g->arena, "%s%s_%s *", c_struct_written(gr, v->role) ? "" : "const ", g->model,
                c_struct_type(v->role));
        } else if (v->role == ROLE_VALUE) type = arena_printf(g->arena, "%s ", spell_c_storage(v->type.dtype));
        else {
            type = arena_printf(g->arena, "%s%s %s", outputs ? "" : "const ", spell_c_storage(v->type.dtype),
                type_is_static(&v->type) ? "" : "*");
            extent = extent_text(g->arena, &v->type);
        }
        text_printf(out, "%s%s%s%s", next(sep), typed ? type : "", name, typed ? extent : "");
        if (!outputs || !c_is_measured(gr, &v->type)) continue;
        if (typed) text_printf(out, "%sint64_t %s_shape[%d]", next(sep), name, v->type.rank);
        else text_printf(out, "%s%s_shape", next(sep), name);
    }
}

// Every model that a descriptor drives has a workspace; other programs only if they need one.
bool c_has_workspace(const Program *p) { return p->descriptor || p->plan->work_bytes > 0; }

// So with the file of constants: programs of training that have none in it are not given it.
bool c_takes_weights(const CFile *g, const Program *p) {
    bool has = p->descriptor;
    for (int i = 0; i < p->plan->buffers.n; i++) has = has || weights_in_file(p->plan->buffers.at[i]);
    return g->external && has;
}

int64_t c_inside(const Program *p, const Value *v, int *bank) {
    int64_t at;
    const Buffer *owner = buffer_owner(plan_value(p->plan, v).buffer, &at);
    *bank = owner->bank;
    return owner->offset + at;
}

void c_signature_parameters(CFile *g, Text *out, const Signature *s, bool typed) {
    const Program *p = s->program;
    Separator sep = { "" };
    if (c_has_workspace(p))
        text_printf(
            out, "%s%s", next(&sep), 
            typed ? arena_printf(g->arena, "%s%s_workspace *ws", c_has_banks(g) ? "const " : "", p->name_of_workspace) :
                s->work ? s->work : "ws");
    if (c_takes_weights(g, p)) text_printf(out, "%s%sweights", next(&sep), typed ? "const void *" : "");
    for (int i = 0; i < s->sizes.n; i++)
        text_printf(out, "%s%s%s", next(&sep), typed ? "int64_t " : "",
            spell_symbol(out->arena, c_symbol(s->graph, s->sizes.at[i])));
    print_ends(g, out, s->graph, &s->in, false, typed, &sep);
    print_ends(g, out, s->graph, &s->outs, true, typed, &sep);
    if (g->threads) text_printf(out, "%s%sthreads", next(&sep), typed ? "const burn_threads *" : "");
}

void c_signature_print(CFile *g, Text *out, const Signature *s, const char *name) {
    text_printf(out, "int %s(", name);
    c_signature_parameters(g, out, s, true);
    text_printf(out, ")");
}

void c_ends(Arena *a, const Graph *gr, const char *model, bool threads, EndNames *in, EndNames *outs) {
    Scope s = { .taken = strmap_new(a), .numbers = strmap_new(a) };
    int symbols;
    const Symbol *all = graph_symbols(graph_root(gr), &symbols);
    for (int i = 0; i < symbols; i++) strmap_put(s.taken, spell_symbol(a, &all[i]), &s);
    *in = name_ends(a, gr, model, threads, false, &s);
    *outs = name_ends(a, gr, model, threads, true, &s);
}

const char *c_place(Arena *a, const char *prefix, const char *end) {
    return arena_printf(a, "%s_%s", text_upper(a, prefix), text_upper(a, end));
}

Signature c_signature(CFile *g, const Program *p) {
    const Graph *gr = p->plan->graph;
    Signature s = { .program = p, .graph = gr, .sizes = c_sizes(g->arena, gr) };
    c_ends(g->arena, gr, g->model, g->threads, &s.in, &s.outs);
    return s;
}
