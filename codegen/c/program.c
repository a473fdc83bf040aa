// SPDX-License-Identifier: MIT OR Apache-2.0
// One program of a generated file: its constants, its kernels, and a run function that is nothing but the kernels'
// calls over fixed offsets of the caller's workspace. Parameters, gradients and state are fields of structs that the
// caller owns.
#include "run.h"

#include <stdlib.h>
#include <string.h>

// Gradients have the type of the parameters.
static const struct { const char *param, *type; } structs[ROLE_COUNT] = {
    [ROLE_PARAM] = { "params", "params" },
    [ROLE_GRAD] = { "grads", "params" },
    [ROLE_STATE] = { "state", "state" },
};
const char *c_struct_param(Role r) { return structs[r].param; }
const char *c_struct_type(Role r) { return structs[r].type; }
bool c_in_struct(const Value *v) { return structs[v->role].param != NULL; }

static bool clashes(const Graph *g, bool threads, const char *name, const char *const *before, int n) {
    static const char *const shared[] = { "threads", "frame", "argument", "part", "constants" },
                             *const strips[] = { "strip", "was", "now" };
    int symbols;
    const Symbol *all = graph_symbols(graph_root(g), &symbols);
    for (int i = 0; i < symbols; i++)
        if (!strcmp(name, all[i].c_name)) return true;
    for (size_t i = 0; threads && i < COUNT(shared); i++)
        if (!strcmp(name, shared[i])) return true;
    for (size_t i = 0; i < COUNT(strips); i++)
        if (!strcmp(name, strips[i])) return true;
    if (!strcmp(name, "ws") || !strcmp(name, "weights") || !strcmp(name, "work") || !strcmp(name, "strings")
        || !strncmp(name, "burn_", 5))
        return true;
    if (name[0] == 'v' && name[1] && !name[1 + strspn(name + 1, "0123456789")]) return true;
    for (int i = 0; i < n; i++)
        if (!strcmp(name, before[i])) return true;
    return false;
}

// Inputs come first in `names`, outputs after them: all parameters are in one scope.
static Ends name_ends(Arena *a, const Graph *g, bool threads, bool outputs, const char **names, int before) {
    int n = outputs ? g->outputs.n : g->inputs.n;
    Ends e = { NEW_ARRAY(a, const char *, n + 1), NEW_ARRAY(a, const char *, n + 1) };
    for (int i = 0; i < n; i++) {
        const Value *v = outputs ? g->outputs.at[i] : g->inputs.at[i];
        const char *given = outputs ? g->output_names.at[i] : v->name;
        const char *base = name_c(a, given && *given ? given : outputs ? "output" : "input"), *name = base;
        for (int k = 2; !c_in_struct(v) && clashes(g, threads, name, names, before + i); k++)
            name = arena_printf(a, "%s_%d", base, k);
        names[before + i] = c_in_struct(v) ? "" : name;
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
    for (int i = 0; i < t->rank; i++) text_printf(&s, "%s%lld", i ? "*" : "", (long long)t->dim[i]);
    return t->rank == 0 || type_count(t) == 0 ? "[1]" : arena_printf(a, "[%s]", s.at);
}

// ---------------------------------------------------------------- sizes
// Numbers of the symbols that are parameters of the run function: those of its inputs that stay open.
typedef struct Sizes { int n; int *at; } Sizes;

static Sizes parameter_sizes(Arena *a, const Graph *g) {
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

static const Symbol *symbol_at(const Graph *g, int i) {
    int n;
    return &graph_symbols(graph_root(g), &n)[i];
}

// Does the program itself find out the size? Then it says so through a parameter of its own.
static bool is_measured(const Graph *g, const Type *t) {
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

static const char *bytes_text(Arena *a, const Graph *g, const Type *t) {
    if (t->dtype == DT_STRING && type_is_static(t)) return string_bytes_text(a, type_count(t));
    if (t->dtype == DT_STRING)
        return arena_printf(a, "%s * (int64_t)sizeof(burn_string)", dim_c_text(a, g, type_size(graph_root(g), t)));
    if (type_is_static(t)) return arena_printf(a, "%lld", (long long)type_bytes(t));
    return dim_c_text(a, g, dim_mul(graph_root(g), type_size(graph_root(g), t), (Dim)dtype_size(t->dtype)));
}

static const char *most_bytes_text(Arena *a, const Graph *g, const Type *t) {
    return t->dtype == DT_STRING ? string_bytes_text(a, type_count_upper(g, t)) :
                                   arena_printf(a, "%lld", (long long)type_bytes_upper(g, t));
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
static void print_ends(Gen *g, Text *out, const Graph *gr, const Ends *e, bool outputs, bool typed, Separator *sep) {
    int n = outputs ? gr->outputs.n : gr->inputs.n;
    for (int i = 0; i < n; i++) {
        const Value *v = outputs ? gr->outputs.at[i] : gr->inputs.at[i];
        const char *name = e->name[i], *type = "", *extent = "";
        if (c_in_struct(v)) {
            if (c_struct_seen(gr, i, outputs, v->role)) continue;
            name = c_struct_param(v->role);
            type = arena_printf(g->arena, "%s%s_%s *", c_struct_written(gr, v->role) ? "" : "const ", g->model,
                c_struct_type(v->role));
        } else if (v->role == ROLE_VALUE) type = arena_printf(g->arena, "%s ", expr_c_storage(v->type.dtype));
        else {
            type = arena_printf(g->arena, "%s%s %s", outputs ? "" : "const ", expr_c_storage(v->type.dtype),
                type_is_static(&v->type) ? "" : "*");
            extent = extent_text(g->arena, &v->type);
        }
        text_printf(out, "%s%s%s%s", next(sep), typed ? type : "", name, typed ? extent : "");
        if (!outputs || !is_measured(gr, &v->type)) continue;
        if (typed) text_printf(out, "%sint64_t %s_shape[%d]", next(sep), name, v->type.rank);
        else text_printf(out, "%s%s_shape", next(sep), name);
    }
}

// Every model that a descriptor drives has a workspace; other programs only if they need one.
static bool has_workspace(const Program *p) { return p->descriptor || p->plan->work_bytes > 0; }

// Bytes by which the run moves its memory up to a cache line, for vectors wider than the 16 bytes that malloc aligns
// to: one that crosses a line is two accesses. Other targets take the workspace as it comes.
static int64_t workspace_slack(const Plan *plan) {
    return plan->options->machine.vectors && plan->options->machine.lanes != 4 && plan->work_bytes ? 63 : 0;
}

static void print_parameters(Gen *g, Text *out, const Program *p, const Ends *in, const Ends *outs, bool typed) {
    Separator sep = { "" };
    if (has_workspace(p))
        text_printf(
            out, "%s%s", next(&sep), typed ? arena_printf(g->arena, "%s_workspace *ws", p->name_of_workspace) : "ws");
    if (g->external) text_printf(out, "%s%sweights", next(&sep), typed ? "const void *" : "");
    const Sizes sizes = parameter_sizes(g->arena, p->plan->graph);
    for (int i = 0; i < sizes.n; i++)
        text_printf(
            out, "%s%s%s", next(&sep), typed ? "int64_t " : "", symbol_at(p->plan->graph, sizes.at[i])->c_name);
    print_ends(g, out, p->plan->graph, in, false, typed, &sep);
    print_ends(g, out, p->plan->graph, outs, true, typed, &sep);
    if (g->threads) text_printf(out, "%s%sthreads", next(&sep), typed ? "const burn_threads *" : "");
}

static void print_signature(Gen *g, Text *out, const Program *p, const char *name, const Ends *in, const Ends *outs) {
    text_printf(out, "int %s(", name);
    print_parameters(g, out, p, in, outs, true);
    text_printf(out, ")");
}

// ---------------------------------------------------------------- the run function

static bool same_place(const Plan *p, const Value *x, const Value *y) {
    int64_t at[2];
    Buffer *bx = plan_value(p, x).buffer, *by = plan_value(p, y).buffer;
    return x == y || (bx && by && buffer_owner(bx, &at[0]) == buffer_owner(by, &at[1]));
}

static void copy(Run *r, int depth, Value *to, const char *advance, Value *from) {
    const Graph *g = r->p->plan->graph;
    if (same_place(r->p->plan, to, from) || type_count_upper(g, &from->type) == 0) return;
    c_line(r, depth);
    const char *bytes = bytes_text(r->g->arena, g, &from->type);
    if (!type_is_static(&from->type)) bytes = arena_printf(r->g->arena, "(size_t)(%s)", bytes);
    // zeros: region.c
    if (from->data && !plan_value(r->p->plan, from).buffer)
        text_printf(&r->body, "memset(%s%s, 0, %s);\n", c_value_place(r, to), advance, bytes);
    else text_printf(&r->body, "memcpy(%s%s, %s, %s);\n", c_value_place(r, to), advance, c_value_place(r, from), bytes);
}

static void print_steps(Run *r, const Plan *plan, int depth);

static void print_if(Run *r, const Kernel *k, int depth) {
    const Node *n = k->anchor;
    for (int i = 0; i < 2; i++) {
        c_line(r, depth);
        if (i == 0) text_printf(&r->body, "if (*(%s)) {\n", c_value_place(r, n->in[0]));
        else text_printf(&r->body, "} else {\n");
        print_steps(r, k->region.bodies[i], depth + 1);
        for (int j = 0; j < n->n_out; j++) copy(r, depth + 1, n->out[j], "", n->bodies[i]->outputs.at[j]);
    }
    c_line(r, depth);
    text_printf(&r->body, "}\n");
}

// Does a kernel of the loop's body read v's bytes, or the loop copy them from output `first` on?
static bool body_reads(const Plan *body, const Value *v, int first) {
    for (int i = first; i < body->graph->outputs.n; i++)
        if (same_place(body, body->graph->outputs.at[i], v)) return true;
    for (int i = 0; i < body->kernels.n; i++)
        for (int j = 0; j < body->kernels.at[i]->reads.n; j++)
            if (same_place(body, body->kernels.at[i]->reads.at[j], v)) return true;
    return false;
}

// A scalar: the number where it is constant, else the element's place.
static const char *scalar_text(Run *r, Value *v) {
    if (v->data) return arena_printf(r->g->arena, "%lld", (long long)tensor_get_i(v->data, 0));
    return arena_printf(r->g->arena, "*(%s)", c_value_place(r, v));
}

static bool always(const Value *condition) {
    return !condition || (condition->data && tensor_get_i(condition->data, 0));
}

static const char *trips_text(Run *r, const Node *n) {
    int count;
    const int64_t *trips = node_ints(n, "trips", &count);
    if (trips) return dim_c_text(r->g->arena, n->graph, trips[0]);
    return n->in[0] ? scalar_text(r, n->in[0]) : "INT64_MAX";
}

static void print_loop_head(Run *r, const Kernel *k, int depth, const char *it, const char *go) {
    const Node *n = k->anchor;
    if (go) {
        c_line(r, depth);
        text_printf(&r->body, "uint8_t %s = %s;\n", go, n->in[1] ? scalar_text(r, n->in[1]) : "1");
    }
    c_line(r, depth);
    text_printf(&r->body, "for (int64_t %s = 0; ", it);
    if (go) text_printf(&r->body, "%s && ", go);
    text_printf(&r->body, "%s < %s; %s++) {\n", it, trips_text(r, n), it);
    for (int i = 0; i < 2; i++) {
        Value *v = n->bodies[0]->inputs.at[i];
        if (!body_reads(k->region.bodies[0], v, go ? 0 : 1)) continue;
        c_line(r, depth + 1);
        text_printf(&r->body, "*(%s) = %s;\n", c_value_place(r, v), i ? go ? go : "1" : it);
    }
}

// Inputs: trip count or none, condition or none, carried values. Body: (iteration, condition, carried) -> (condition,
// carried, scanned). Scanned values are copied first: they may be carried ones of before.
static void print_loop(Run *r, const Kernel *k, int depth) {
    const Node *n = k->anchor;
    const Graph *b = n->bodies[0];
    int carried = n->n_in - 2, id = r->loops++;
    bool goes_on = always(n->in[1]) && (always(b->outputs.at[0]) || b->outputs.at[0] == b->inputs.at[1]);
    const char *it = arena_printf(r->g->arena, "iteration%d", id),
               *go = goes_on ? NULL : arena_printf(r->g->arena, "go%d", id);
    for (int i = 0; i < carried; i++) copy(r, depth, b->inputs.at[2 + i], "", n->in[2 + i]);
    print_loop_head(r, k, depth, it, go);
    print_steps(r, k->region.bodies[0], depth + 1);
    for (int i = carried; i < n->n_out; i++) {
        Value *v = b->outputs.at[1 + i];
        copy(r, depth + 1, n->out[i],
            arena_printf(r->g->arena, " + %s * %s", it,
                dim_c_text(r->g->arena, r->p->plan->graph, type_size(graph_root(r->p->plan->graph), &v->type))),
            v);
    }
    if (go) {
        c_line(r, depth + 1);
        text_printf(&r->body, "%s = %s;\n", go, scalar_text(r, b->outputs.at[0]));
    }
    for (int i = 0; i < carried; i++) copy(r, depth + 1, b->inputs.at[2 + i], "", b->outputs.at[1 + i]);
    c_line(r, depth);
    text_printf(&r->body, "}\n");
    for (int i = 0; i < carried; i++) copy(r, depth, n->out[i], "", b->inputs.at[2 + i]);
}

static void print_bounds(Text *out, const Symbol *s) {
    if (s->lo == s->hi) text_printf(out, "if (%s != %lld) return -5; /* BURN_ELIMIT */\n", s->c_name, (long long)s->lo);
    else
        text_printf(out, "if (%s < %lld || %s > %lld) return -5; /* BURN_ELIMIT */\n", s->c_name, (long long)s->lo,
            s->c_name, (long long)s->hi);
}

static bool is_known(const Run *r, const Graph *root, Dim d) {
    for (int i = 0; i < root->symbols.n; i++)
        if (!r->known[i] && dim_uses(root, d, i)) return false;
    return true;
}

// Dimensions that the model takes to be equal, as soon as both are known.
static void print_required(Run *r, const Graph *g, bool *checked, int depth) {
    const Graph *root = graph_root(g);
    for (int i = 0; i < g->required.n; i++) {
        const DimPair *pair = &g->required.at[i];
        Dim a = dim_bound(root, pair->a), b = dim_bound(root, pair->b);
        if (checked[i] || a == b || (dim_is_const(a) && dim_is_const(b)) || !is_known(r, root, a)
            || !is_known(r, root, b))
            continue;
        checked[i] = true;
        c_line(r, depth);
        text_printf(&r->body, "if (%s != %s) return -1; /* BURN_EINVAL */\n", dim_c_text(r->g->arena, root, a),
            dim_c_text(r->g->arena, root, b));
    }
}

static void print_sizes(Run *r, const Kernel *k, int depth) {
    for (int i = 0; i < k->sizes.n; i++) {
        const Symbol *s = symbol_at(r->p->plan->graph, k->sizes.at[i]);
        c_line(r, depth);
        text_printf(
            &r->body, "const int64_t %s = (%s)[%lld];\n", s->c_name, c_value_place(r, s->from), (long long)s->at);
        c_line(r, depth);
        print_bounds(&r->body, s);
        r->known[k->sizes.at[i]] = true;
    }
}

// An output whose sizes the program found out: it says them.
static void print_shapes(Run *r) {
    const Graph *g = r->p->plan->graph;
    for (int i = 0; i < g->outputs.n; i++) {
        const Type *t = &g->outputs.at[i]->type;
        if (!is_measured(g, t)) continue;
        for (int j = 0; j < t->rank; j++)
            text_printf(
                &r->body, "    %s_shape[%d] = %s;\n", r->outs->name[i], j, dim_c_text(r->g->arena, g, t->dim[j]));
    }
}

static void print_steps(Run *r, const Plan *plan, int depth) {
    bool *checked = NEW_ARRAY(r->g->arena, bool, plan->graph->required.n + 1);
    print_required(r, plan->graph, checked, depth);
    for (int i = 0; i < plan->kernels.n; i++) {
        const Kernel *k = plan->kernels.at[i];
        if (k->kind == KERNEL_SIZES) {
            print_sizes(r, k, depth);
            print_required(r, plan->graph, checked, depth);
            continue;
        }
        if (k->strips) {
            if (k == k->strips->member[0]) c_strips(r, k->strips, depth);
            continue;
        }
        if (k->kind != KERNEL_REGION) c_call(r, k, depth);
        else if (k->anchor->op == OP_If) print_if(r, k, depth);
        else print_loop(r, k, depth);
    }
}

static void print_checks(Gen *g, const Program *p, const Ends *in, const Ends *outs) {
    const Graph *gr = p->plan->graph;
    Separator sep = { "" };
    Text t;
    text_init(&t, g->arena);
    if (has_workspace(p)) {
        next(&sep);
        text_printf(&t, "!ws");
    }
    if (g->external) { text_printf(&t, "%s!weights", *next(&sep) ? " || " : ""); }
    for (int side = 0; side < 2; side++)
        for (int i = 0; i < (side ? gr->outputs.n : gr->inputs.n); i++) {
            const Value *v = side ? gr->outputs.at[i] : gr->inputs.at[i];
            if (v->role == ROLE_VALUE || (c_in_struct(v) && c_struct_seen(gr, i, side, v->role))) continue;
            text_printf(&t, "%s!%s", *next(&sep) ? " || " : "",
                c_in_struct(v) ? c_struct_param(v->role) : (side ? outs : in)->name[i]);
            if (side && is_measured(gr, &v->type)) text_printf(&t, " || !%s_shape", outs->name[i]);
        }
    if (g->threads) text_printf(&t, "%s(threads && !threads->run)", *next(&sep) ? " || " : "");
    if (t.n) text_printf(&g->c, "    if (%s) return -1; /* BURN_EINVAL */\n", t.at);
    const Sizes sizes = parameter_sizes(g->arena, gr);
    for (int i = 0; i < sizes.n; i++) {
        text_printf(&g->c, "    ");
        print_bounds(&g->c, symbol_at(gr, sizes.at[i]));
    }
}

static void print_copy_call(Gen *g, const Program *p, const Target *t, const Ends *in, const Ends *outs) {
    text_printf(&g->ends, "return %s_on%s(", p->name, c_target_suffix(g->arena, t));
    print_parameters(g, &g->ends, p, in, outs, false);
    text_printf(&g->ends, ");\n");
}

// The function that users call, where there are several targets: the widest that the processor has. The compiler's
// library keeps what it has in memory, so this costs a few loads.
static void print_choice(Gen *g, const Program *p, const Ends *in, const Ends *outs) {
    const Target *all = &g->options->machine;
    print_signature(g, &g->ends, p, p->name, in, outs);
    text_printf(&g->ends, "\n{\n#if BURN_SEVERAL\n");
    for (int i = all->n_parts - 1; i >= 0; i--) {
        text_printf(&g->ends, "    if (%s)\n        ", c_target_test(g->arena, all->parts[i]));
        print_copy_call(g, p, all->parts[i], in, outs);
    }
    text_printf(&g->ends, "    return -7; /* BURN_ENODEV */\n#else\n    ");
    print_copy_call(g, p, NULL, in, outs);
    text_printf(&g->ends, "#endif\n}\n\n");
}

static void print_run(Gen *g, const Program *p, const Ends *in, const Ends *outs) {
    Run r = { .g = g, .p = p, .in = in, .outs = outs };
    const Graph *root = graph_root(p->plan->graph);
    const Sizes sizes = parameter_sizes(g->arena, p->plan->graph);
    const bool several = g->options->machine.n_parts > 0;
    text_init(&r.body, g->arena);
    text_init(&r.tables, g->arena);
    text_init(&r.tasks, g->arena);
    text_init(&r.fields, g->arena);
    text_init(&r.settings, g->arena);
    r.known = NEW_ARRAY(g->arena, bool, root->symbols.n);
    for (int i = 0; i < sizes.n; i++) r.known[sizes.at[i]] = true;
    print_steps(&r, p->plan, 1);
    print_shapes(&r);
    if (r.tables.n) text_append(&g->c, r.tables.at, r.tables.n);
    if (r.tasks.n) {
        text_printf(&g->c, "/* What the parts of a run see of it. */\ntypedef struct %s_frame {\n%s} %s_frame;\n\n",
            p->name, r.fields.n ? r.fields.at : "    int none;\n", p->name);
        text_append(&g->c, r.tasks.at, r.tasks.n);
    }
    if (several) text_printf(&g->c, "static ");
    print_signature(g, &g->c, p, several ? arena_printf(g->arena, "%s_on", p->name) : p->name, in, outs);
    text_printf(&g->c, "\n{\n");
    print_checks(g, p, in, outs);
    const Buffer *pool = p->plan->strings;
    if (pool || r.uses[BASE_WORK])
        text_printf(&g->c, "    unsigned char *const work = ws->bytes%s;\n",
            workspace_slack(p->plan) ? " + (64 - (uintptr_t)ws->bytes % 64) % 64" : "");
    if (pool)
        text_printf(&g->c, "    burn_pool strings = {(char *)work + %lld, (char *)work + %lld};\n",
            (long long)pool->offset, (long long)(pool->offset + pool->bytes));
    if (r.uses[BASE_CONSTANTS])
        text_printf(&g->c, "    const unsigned char *const constants = (const unsigned char *)weights + %d;\n",
            WEIGHTS_HEADER);
    if (r.tasks.n) text_printf(&g->c, "    %s_frame frame;\n%s", p->name, r.settings.n ? r.settings.at : "");
    else if (g->threads) text_printf(&g->c, "    (void)threads;\n");
    if (r.body.n) text_append(&g->c, r.body.at, r.body.n);
    text_printf(&g->c, "    return 0;\n}\n\n");
    if (several) print_choice(g, p, in, outs);
}

// ---------------------------------------------------------------- the generic descriptor
static const char *info_dims(Gen *g, const Program *p, const Type *t, const char *name, bool least) {
    const Graph *gr = p->plan->graph;
    if (t->rank == 0 || (least && type_is_static(t))) return "(const int64_t *)0";
    text_printf(&g->ends, "static const int64_t %s[] = {", name);
    for (int j = 0; j < t->rank; j++) {
        int64_t low = dim_lower(gr, t->dim[j]);
        text_printf(&g->ends, "%s%lld", j ? ", " : "",
            (long long)(!least ? dim_upper(gr, t->dim[j]) :
                    low < 0    ? 0 :
                                 low));
    }
    text_printf(&g->ends, "};\n");
    return name;
}

static void print_infos(Gen *g, const Program *p, bool outputs) {
    const Graph *gr = p->plan->graph;
    int n = outputs ? gr->outputs.n : gr->inputs.n;
    const char *side = outputs ? "output" : "input";
    if (!n) return;
    Text rows;
    text_init(&rows, g->arena);
    for (int i = 0; i < n; i++) {
        const Type *t = &(outputs ? gr->outputs.at[i] : gr->inputs.at[i])->type;
        const char *shape = info_dims(g, p, t, arena_printf(g->arena, "%s_%s%d_shape", p->name, side, i), false);
        const char *least = info_dims(g, p, t, arena_printf(g->arena, "%s_%s%d_least", p->name, side, i), true);
        text_printf(&rows, "    {\"%s\", (burn_dtype)%d, %d, %s, %s, %s},\n",
            c_string(g->arena, outputs ? gr->output_names.at[i] : gr->inputs.at[i]->name), t->dtype, t->rank, shape,
            most_bytes_text(g->arena, gr, t), least);
    }
    text_printf(&g->ends, "static const burn_tensor_info %s_%ss[] = {\n%s};\n", p->name, side, rows.at);
}

// Sizes are those of the first input that has the symbol for a dimension and brings its shape; else the upper bounds.
static void print_given_sizes(Gen *g, const Graph *gr) {
    const Sizes sizes = parameter_sizes(g->arena, gr);
    for (int i = 0; i < sizes.n; i++) {
        const Symbol *s = symbol_at(gr, sizes.at[i]);
        const Dim self = dim_symbol(graph_root(gr), s->name);
        text_printf(&g->ends, "    int64_t %s = %lld;\n", s->c_name, (long long)s->hi);
        for (int j = gr->inputs.n - 1; j >= 0; j--)
            for (int k = 0; k < gr->inputs.at[j]->type.rank; k++)
                if (gr->inputs.at[j]->type.dim[k] == self)
                    text_printf(
                        &g->ends, "    if (inputs[%d].shape) %s = inputs[%d].shape[%d];\n", j, s->c_name, j, k);
    }
    for (int i = 0; i < sizes.n; i++) {
        text_printf(&g->ends, "    ");
        print_bounds(&g->ends, symbol_at(gr, sizes.at[i]));
    }
}

static void print_buffer_check(Gen *g, const Graph *gr, const Type *t, const char *side, int i, bool output) {
    const char *bytes = output && is_measured(gr, t) ? most_bytes_text(g->arena, gr, t) : bytes_text(g->arena, gr, t);
    const char *cast = type_is_static(t) ? "" : "(size_t)";
    text_printf(&g->ends, "    if (!%s[%d].data || %s[%d].bytes < %s%s) return -1; /* BURN_EINVAL */\n", side, i, side,
        i, cast, *cast ? arena_printf(g->arena, "(%s)", bytes) : bytes);
    if (output || !t->rank) return;
    text_printf(&g->ends, "    if (inputs[%d].shape && (", i);
    for (int j = 0; j < t->rank; j++)
        text_printf(
            &g->ends, "%sinputs[%d].shape[%d] != %s", j ? " || " : "", i, j, dim_c_text(g->arena, gr, t->dim[j]));
    text_printf(&g->ends, ")) return -1; /* BURN_EINVAL */\n");
}

static bool all_static(const Graph *gr) {
    for (int i = 0; i < gr->inputs.n; i++) if (!type_is_static(&gr->inputs.at[i]->type)) return false;
    for (int i = 0; i < gr->outputs.n; i++) if (!type_is_static(&gr->outputs.at[i]->type)) return false;
    return true;
}

static void print_generic_checks(Gen *g, const Program *p) {
    const Graph *gr = p->plan->graph;
    bool fixed = all_static(gr);
    if (!fixed) {
        text_printf(&g->ends, "    if (%s%s%s) return -1; /* BURN_EINVAL */\n", gr->inputs.n ? "!inputs" : "",
            gr->inputs.n && gr->outputs.n ? " || " : "", gr->outputs.n ? "!outputs" : "");
        print_given_sizes(g, gr);
    }
    for (int side = 0; side < 2; side++) {
        int n = side ? gr->outputs.n : gr->inputs.n;
        const char *name = side ? "output" : "input";
        if (!n) text_printf(&g->ends, "    (void)%ss;\n", name);
        else if (fixed)
            text_printf(&g->ends,
                "    for (int i = 0; i < %d; i++)\n        if (!%ss || !%ss[i].data || %ss[i].bytes < %s_%ss[i].bytes) return -1; /* BURN_EINVAL */\n",
                n, name, name, name, p->name, name);
        else
            for (int i = 0; i < n; i++)
                print_buffer_check(
                    g, gr, &(side ? gr->outputs.at[i] : gr->inputs.at[i])->type, side ? "outputs" : "inputs", i, side);
    }
}

// A shape that the run finds out goes through an array of the wrapper's own: the caller's may be absent.
static void print_generic_call(Gen *g, const Program *p) {
    const Graph *gr = p->plan->graph;
    const Sizes sizes = parameter_sizes(g->arena, gr);
    for (int i = 0; i < gr->outputs.n; i++)
        if (is_measured(gr, &gr->outputs.at[i]->type))
            text_printf(&g->ends, "    int64_t shape%d[%d];\n", i, gr->outputs.at[i]->type.rank);
    text_printf(&g->ends, "    const int code = %s((%s_workspace *)workspace%s", p->name, p->name_of_workspace,
        g->external ? ", weights" : "");
    for (int i = 0; i < sizes.n; i++) text_printf(&g->ends, ", %s", symbol_at(gr, sizes.at[i])->c_name);
    for (int i = 0; i < gr->inputs.n; i++)
        text_printf(&g->ends, ", (const %s *)inputs[%d].data", expr_c_storage(gr->inputs.at[i]->type.dtype), i);
    for (int i = 0; i < gr->outputs.n; i++) {
        text_printf(&g->ends, ", (%s *)outputs[%d].data", expr_c_storage(gr->outputs.at[i]->type.dtype), i);
        if (is_measured(gr, &gr->outputs.at[i]->type)) text_printf(&g->ends, ", shape%d", i);
    }
    text_printf(&g->ends, "%s);\n", g->threads ? ", threads" : "");
    for (int i = 0; i < gr->outputs.n; i++) {
        const Type *t = &gr->outputs.at[i]->type;
        bool measured = is_measured(gr, t);
        if (!t->rank) continue;
        text_printf(&g->ends, "    if (outputs[%d].shape) {\n", i);
        for (int j = 0; j < t->rank; j++)
            text_printf(&g->ends, "        outputs[%d].shape[%d] = %s;\n", i, j,
                measured ? arena_printf(g->arena, "code ? 0 : shape%d[%d]", i, j) :
                           dim_c_text(g->arena, gr, t->dim[j]));
        text_printf(&g->ends, "    }\n");
    }
    text_printf(&g->ends, "    return code;\n}\n\n");
}

static void print_descriptor(Gen *g, const Program *p) {
    const Graph *gr = p->plan->graph;
    print_infos(g, p, false);
    print_infos(g, p, true);
    text_printf(&g->ends,
        "static int %s_generic%s(%svoid *workspace, const void *weights, const burn_tensor *inputs, const burn_tensor *outputs)\n{\n",
        p->name, g->threads ? "_threads" : "", g->threads ? "const burn_threads *threads, " : "");
    if (!g->external) text_printf(&g->ends, "    (void)weights;\n");
    print_generic_checks(g, p);
    print_generic_call(g, p);
    if (g->threads)
        text_printf(&g->ends,
            "static int %s_generic(void *workspace, const void *weights, const burn_tensor *inputs, const burn_tensor *outputs)\n{\n"
            "    return %s_generic_threads((const burn_threads *)0, workspace, weights, inputs, outputs);\n}\n",
            p->name, p->name);
    text_printf(&g->ends,
        "const burn_model %s_model = {\n    \"%s\", %d, %d, %s, %s,\n    sizeof(%s_workspace), %lld, %s_generic\n};\n",
        g->model, g->model, gr->inputs.n, gr->outputs.n,
        gr->inputs.n ? arena_printf(g->arena, "%s_inputs", p->name) : "(const burn_tensor_info *)0",
        gr->outputs.n ? arena_printf(g->arena, "%s_outputs", p->name) : "(const burn_tensor_info *)0",
        p->name_of_workspace, g->external ? (long long)p->plan->weight_bytes + WEIGHTS_HEADER : 0LL, p->name);
    if (g->threads)
        text_printf(&g->ends, "const burn_threaded_model %s_threaded = {&%s_model, %d, %s_generic_threads};\n",
            g->model, g->model, g->options->threads, p->name);
}

// ---------------------------------------------------------------- all of it
static bool has_sizes(const Plan *plan) {
    for (int i = 0; i < plan->kernels.n; i++) {
        const Kernel *k = plan->kernels.at[i];
        for (int j = 0; j < kernel_bodies(k); j++) if (has_sizes(k->region.bodies[j])) return true;
        if (k->sizes.n) return true;
    }
    return false;
}

// Can it meet bytes that are not what they should be?
static bool reads_formats(const Plan *plan) {
    bool found = false;
    for (int i = 0; i < plan->kernels.n; i++) {
        const Kernel *k = plan->kernels.at[i];
        found = found || kernel_fails(k) == -6;
        for (int j = 0; j < kernel_bodies(k); j++) found = found || reads_formats(k->region.bodies[j]);
    }
    return found;
}

// What BURN_ELIMIT and BURN_EFORMAT mean here.
static const char *limits_text(Arena *a, const Plan *plan) {
    const char *image = reads_formats(plan) ?
        ", -6 (BURN_EFORMAT) when\n * an image is damaged, not of this size or of no known format (runtime/image.c decodes it)" :
        "";
    const char *sizes = has_sizes(plan) ? "a size is out of its bounds" : "", *strings = "";
    if (plan->strings)
        strings = arena_printf(a, "the strings that it makes\n * take more than %lld bytes, their zero bytes included",
            (long long)plan->strings->bytes);
    const char *older = plan->options->machine.n_parts ?
        arena_printf(
            a, ", -7 (BURN_ENODEV) when\n * the processor is older than %s", plan->options->machine.parts[0]->name) :
        "";
    const char *limits = *sizes || *strings ?
        arena_printf(a, ", -5 (BURN_ELIMIT) when\n * %s%s%s", sizes, *sizes && *strings ? " or " : "", strings) :
        "";
    return arena_printf(a, "%s%s%s", limits, image, older);
}

static void declare(Gen *g, const Program *p, const Ends *in, const Ends *outs) {
    const Graph *gr = p->plan->graph;
    Text *h = &g->h;
    if (has_workspace(p))
        text_printf(h,
            "/* Scratch memory of one run; its content means nothing before and after%s. Concurrent runs need one each. */\n",
            p->plan->strings ? ",\n * but for the strings that outputs point to" : "");
    if (has_workspace(p))
        text_printf(h,
            "typedef union %s_workspace {\n    double align;\n    unsigned char bytes[%lld];\n} %s_workspace;\n\n",
            p->name_of_workspace,
            (long long)(p->plan->work_bytes ? p->plan->work_bytes + workspace_slack(p->plan) : 1),
            p->name_of_workspace);
    text_printf(h, "/* %s\n", p->doc ? p->doc : "One inference. Tensors are dense and row-major.");
    for (int side = 0; side < 2; side++)
        for (int i = 0; i < (side ? gr->outputs.n : gr->inputs.n); i++) {
            const Value *v = side ? gr->outputs.at[i] : gr->inputs.at[i];
            if (v->role) continue;
            text_printf(h, " *   %-8s %s: %s\n", side ? "writes" : "reads", (side ? outs : in)->name[i],
                type_text(g->arena, gr, &v->type));
            if (side && is_measured(gr, &v->type))
                text_printf(h, " *            up to %lld elements; its dimensions go to %s_shape\n",
                    (long long)type_count_upper(gr, &v->type), outs->name[i]);
        }
    const Sizes sizes = parameter_sizes(g->arena, gr);
    for (int i = 0; i < sizes.n; i++) {
        const Symbol *s = symbol_at(gr, sizes.at[i]);
        text_printf(h, " *   size     %s: %s, %lld to %lld\n", s->c_name, s->name, (long long)s->lo, (long long)s->hi);
    }
    bundles_print(h, gr, in->name, outs->name);
    if (g->external)
        text_printf(h, " *   weights  the bytes of %s.bin, aligned to 64; check them once with %s_weights_check\n",
            g->model, g->model);
    if (g->threads)
        text_printf(h,
            " *   threads  what computes the parts of the run, up to %d at a time; NULL: the calling thread, one after the other\n",
            g->options->threads);
    text_printf(h,
        " * No input may overlap an output. Returns 0, or -1 (BURN_EINVAL) when a pointer is null%s. Reentrant; allocates nothing. */\n",
        limits_text(g->arena, p->plan));
    print_signature(g, h, p, p->name, in, outs);
    text_printf(h, ";\n\n");
}

static void print_kernels(Gen *g, const Program *p, Plan *plan, Functions *f) {
    g->plan = plan;
    for (int i = 0; i < plan->kernels.n; i++) {
        Kernel *k = plan->kernels.at[i];
        for (int j = 0; j < kernel_bodies(k); j++) print_kernels(g, p, k->region.bodies[j], f);
        g->plan = plan;
        if (k->kind == KERNEL_REGION || k->kind == KERNEL_SIZES) continue;
        KernelText *t = NEW(g->arena, KernelText);
        *t = (KernelText){ .gen = g, .kernel = k, .name = arena_printf(g->arena, "%s_%s", p->name_of_workspace, k->name) };
        k->text = t;
        c_functions_add(f, g, t);
    }
}

void c_program(Gen *g, const Program *p) {
    Plan *plan = p->plan;
    const Graph *gr = plan->graph;
    const char **names = NEW_ARRAY(g->arena, const char *, gr->inputs.n + gr->outputs.n + 1);
    Ends in = name_ends(g->arena, gr, g->threads, false, names, 0),
         outs = name_ends(g->arena, gr, g->threads, true, names, gr->inputs.n);
    Functions *functions = c_functions_new(g);
    g->plan = plan;
    for (int i = 0; i < plan->buffers.n; i++) {
        const Buffer *b = plan->buffers.at[i];
        if (b->place != PLACE_WEIGHT || (g->external && weights_in_file(b))) continue;
        text_printf(&g->data, "/* ");
        c_comment(&g->data, b->value->name ? b->value->name : "constant");
        text_printf(&g->data, " %s, %s */\n", type_text(g->arena, gr, &b->value->type), b->layout);
        if (b->bytes >= 64 && (g->options->machine.vectors || g->options->machine.n_parts))
            text_printf(&g->data, "BURN_ALIGNED ");
        weights_print_array(&g->data, b, arena_printf(g->arena, "%s_w%d", p->name, b->id));
        text_printf(&g->data, "\n");
    }
    print_kernels(g, p, plan, functions);
    c_functions_print(functions, g);
    declare(g, p, &in, &outs);
    print_run(g, p, &in, &outs);
    if (p->descriptor) print_descriptor(g, p);
}
