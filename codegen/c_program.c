// SPDX-License-Identifier: MIT OR Apache-2.0
// One program of a generated file: its constants, its kernels, and a run function that is nothing but the kernels' calls over fixed
// offsets of the caller's workspace. Values of a group ("params grads": struct type and parameter) are fields of a struct the caller owns.
#include "c.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

typedef struct Ends {                                   // inputs or outputs with the names they have in the signature
    const char **name;                                  // of the parameter or the struct's field
    const char **at;                                    // the expression for its first element
} Ends;

static const char *group_param(Arena *a, const char *group) { return arena_strdup(a, strchr(group, ' ') + 1); }
static const char *group_type(Arena *a, const char *group) { return arena_strndup(a, group, strcspn(group, " ")); }

// A field of a struct; else an array of its own, or a number passed by value.
static bool in_struct(const Value *v) { return v->group && strchr(v->group, ' '); }
static bool by_value(const Value *v) { return v->group && !strchr(v->group, ' '); }

static bool clashes(const Graph *g, bool threads, const char *name, const char *const *before, int n) {
    static const char *const shared[] = { "threads", "frame", "argument", "part", "constants" }, *const strips[] = { "strip", "was", "now" };
    int symbols;
    const Symbol *all = graph_symbols(graph_root(g), &symbols);
    for (int i = 0; i < symbols; i++)
        if (!strcmp(name, all[i].c_name)) return true;
    for (size_t i = 0; threads && i < COUNT(shared); i++)
        if (!strcmp(name, shared[i])) return true;
    for (size_t i = 0; i < COUNT(strips); i++)
        if (!strcmp(name, strips[i])) return true;
    if (!strcmp(name, "ws") || !strcmp(name, "weights") || !strcmp(name, "work") || !strcmp(name, "strings") || !strncmp(name, "burn_", 5)) return true;
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
        for (int k = 2; !in_struct(v) && clashes(g, threads, name, names, before + i); k++) name = arena_printf(a, "%s_%d", base, k);
        names[before + i] = in_struct(v) ? "" : name;
        e.name[i] = name;
        e.at[i] = by_value(v) ? arena_printf(a, "&%s", name) : v->group ? arena_printf(a, "%s->%s", group_param(a, v->group), name) : name;
    }
    return e;
}

static const char *extent_text(Arena *a, const Type *t) {       // [1*28*28], for the reader; nothing where it is not constant
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
            if (type_uses(g, &g->inputs.at[j]->type, i)) { s.at[s.n++] = i; break; }
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
static const char *string_bytes_text(Arena *a, int64_t n) { return arena_printf(a, "%lld * sizeof(burn_string)", (long long)n); }

static const char *bytes_text(Arena *a, const Graph *g, const Type *t) {
    if (t->dtype == DT_STRING && type_is_static(t)) return string_bytes_text(a, type_count(t));
    if (t->dtype == DT_STRING) return arena_printf(a, "%s * (int64_t)sizeof(burn_string)", dim_c_text(a, g, type_size(graph_root(g), t)));
    if (type_is_static(t)) return arena_printf(a, "%lld", (long long)type_bytes(t));
    return dim_c_text(a, g, dim_mul(graph_root(g), type_size(graph_root(g), t), (Dim)dtype_size(t->dtype)));
}

static const char *most_bytes_text(Arena *a, const Graph *g, const Type *t) {
    return t->dtype == DT_STRING ? string_bytes_text(a, type_count_upper(g, t)) : arena_printf(a, "%lld", (long long)type_bytes_upper(g, t));
}

// ---------------------------------------------------------------- signature
typedef struct Separator { const char *text; } Separator;
static const char *next(Separator *s) { const char *t = s->text; s->text = ", "; return t; }

static bool group_seen(const Graph *gr, int upto, bool outputs, const char *group) {
    for (int i = 0; i < gr->inputs.n && (outputs || i < upto); i++)
        if (gr->inputs.at[i]->group && !strcmp(gr->inputs.at[i]->group, group)) return true;
    for (int i = 0; outputs && i < upto; i++)
        if (gr->outputs.at[i]->group && !strcmp(gr->outputs.at[i]->group, group)) return true;
    return false;
}

static bool group_written(const Graph *gr, const char *group) {
    for (int i = 0; i < gr->outputs.n; i++)
        if (gr->outputs.at[i]->group && !strcmp(gr->outputs.at[i]->group, group)) return true;
    return false;
}

// `typed`: as parameters, else as the arguments of a call.
static void print_ends(Gen *g, Text *out, const Graph *gr, const Ends *e, bool outputs, bool typed, Separator *sep) {
    int n = outputs ? gr->outputs.n : gr->inputs.n;
    for (int i = 0; i < n; i++) {
        const Value *v = outputs ? gr->outputs.at[i] : gr->inputs.at[i];
        const char *name = e->name[i], *type = "", *extent = "";
        if (v->group && !by_value(v)) {
            if (group_seen(gr, i, outputs, v->group)) continue;
            name = group_param(g->arena, v->group);
            type = arena_printf(g->arena, "%s%s_%s *", group_written(gr, v->group) ? "" : "const ", g->model, group_type(g->arena, v->group));
        } else if (by_value(v)) type = arena_printf(g->arena, "%s ", expr_c_storage(v->type.dtype));
        else {
            type = arena_printf(g->arena, "%s%s %s", outputs ? "" : "const ", expr_c_storage(v->type.dtype), type_is_static(&v->type) ? "" : "*");
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

// Bytes by which the run moves its memory up to a cache line, for vectors wider than the 16 bytes that malloc aligns to: one that crosses a
// line is two accesses. Other targets take the workspace as it comes.
static int64_t workspace_slack(const Plan *plan) { return plan->options->machine.vectors && plan->options->machine.lanes != 4 && plan->work_bytes ? 63 : 0; }

static void print_parameters(Gen *g, Text *out, const Program *p, const Ends *in, const Ends *outs, bool typed) {
    Separator sep = { "" };
    if (has_workspace(p)) text_printf(out, "%s%s", next(&sep), typed ? arena_printf(g->arena, "%s_workspace *ws", p->name_of_workspace) : "ws");
    if (g->external) text_printf(out, "%s%sweights", next(&sep), typed ? "const void *" : "");
    const Sizes sizes = parameter_sizes(g->arena, p->plan->graph);
    for (int i = 0; i < sizes.n; i++) text_printf(out, "%s%s%s", next(&sep), typed ? "int64_t " : "", symbol_at(p->plan->graph, sizes.at[i])->c_name);
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
typedef struct Run {
    Gen *g;
    const Program *p;
    const Ends *in, *outs;
    Text body;
    Text tables;                                        // how far strips go
    Text tasks, fields, settings;                       // functions that compute a part; fields of the frame that they get, and what sets them
    VEC(const char *) framed;                           // those fields' names
    int loops;
    bool *known;                                        // symbols that are variables by now
} Run;

static int64_t work_offset(const Buffer *b) {           // a region's buffers count from its scratch memory
    int64_t at = 0;
    for (; b; b = b->base) at += b->offset;
    return at;
}

static const char *element_pointer(Gen *g, const char *type, bool is_const, const char *base, int64_t offset) {
    return arena_printf(g->arena, "(%s%s *)(%svoid *)(%s + %lld)", is_const ? "const " : "", type, is_const ? "const " : "", base, (long long)offset);
}

// Where a value's elements are, as an expression of the run function.
static const char *place_of(const Run *r, Buffer *at, const Value *v, const char *type) {
    Gen *g = r->g;
    int64_t offset;
    Buffer *b = buffer_owner(at, &offset);
    switch (b->place) {
    case PLACE_INPUT: case PLACE_OUTPUT: {
        bool input = b->place == PLACE_INPUT, same = !strcmp(type, expr_c_storage(b->value->type.dtype));
        const char *name = input ? r->in->at[b->index] : r->outs->at[b->index];
        if (same) return offset ? arena_printf(g->arena, "%s + %lld", name, (long long)(offset / (int64_t)dtype_size(v->type.dtype))) : name;
        return element_pointer(g, type, input, arena_printf(g->arena, "(%sunsigned char *)%s", input ? "const " : "", name), offset);
    }
    case PLACE_WEIGHT:
        if (!g->external || b->value->type.dtype == DT_STRING) return arena_printf(g->arena, "%s_w%d", r->p->name, b->id);
        return element_pointer(g, type, true, "constants", b->offset + offset);
    default:
        if (v->type.dtype == DT_STRING && offset)           // counted in pointers: theirs may be shorter
            return arena_printf(g->arena, "%s + %lld", element_pointer(g, type, false, "work", work_offset(b)), (long long)(offset / (int64_t)dtype_size(DT_STRING)));
        return element_pointer(g, type, false, "work", work_offset(b) + offset);
    }
}

static const char *value_place(const Run *r, Value *v) { return place_of(r, v->buffer, v, expr_c_storage(v->type.dtype)); }

static void line(Run *r, int depth) { for (int i = 0; i < depth; i++) text_printf(&r->body, "    "); }

static bool same_place(const Value *x, const Value *y) {
    int64_t at[2];
    return x == y || (x->buffer && y->buffer && buffer_owner(x->buffer, &at[0]) == buffer_owner(y->buffer, &at[1]));
}

static void copy(Run *r, int depth, Value *to, const char *advance, Value *from) {
    const Graph *g = r->p->plan->graph;
    if (same_place(to, from) || type_count_upper(g, &from->type) == 0) return;
    line(r, depth);
    const char *bytes = bytes_text(r->g->arena, g, &from->type);
    if (!type_is_static(&from->type)) bytes = arena_printf(r->g->arena, "(size_t)(%s)", bytes);
    if (from->data && !from->buffer) text_printf(&r->body, "memset(%s%s, 0, %s);\n", value_place(r, to), advance, bytes);      // zeros: region.c
    else text_printf(&r->body, "memcpy(%s%s, %s, %s);\n", value_place(r, to), advance, value_place(r, from), bytes);
}

static void print_steps(Run *r, const Plan *plan, int depth);

static void print_if(Run *r, const Kernel *k, int depth) {
    const Node *n = k->anchor;
    for (int i = 0; i < 2; i++) {
        line(r, depth);
        if (i == 0) text_printf(&r->body, "if (*(%s)) {\n", value_place(r, n->in[0]));
        else text_printf(&r->body, "} else {\n");
        print_steps(r, k->bodies[i], depth + 1);
        for (int j = 0; j < n->n_out; j++) copy(r, depth + 1, n->out[j], "", n->bodies[i]->outputs.at[j]);
    }
    line(r, depth);
    text_printf(&r->body, "}\n");
}

// Does a kernel of the loop's body read v's bytes, or the loop copy them from output `first` on?
static bool body_reads(const Plan *body, const Value *v, int first) {
    for (int i = first; i < body->graph->outputs.n; i++)
        if (same_place(body->graph->outputs.at[i], v)) return true;
    for (int i = 0; i < body->kernels.n; i++)
        for (int j = 0; j < body->kernels.at[i]->reads.n; j++)
            if (same_place(body->kernels.at[i]->reads.at[j], v)) return true;
    return false;
}

// A scalar: the number where it is constant, else the element's place.
static const char *scalar_text(const Run *r, Value *v) {
    if (v->data) return arena_printf(r->g->arena, "%lld", (long long)tensor_get_i(v->data, 0));
    return arena_printf(r->g->arena, "*(%s)", value_place(r, v));
}

static bool always(const Value *condition) { return !condition || (condition->data && tensor_get_i(condition->data, 0)); }

static const char *trips_text(const Run *r, const Node *n) {
    int count;
    const int64_t *trips = node_ints(n, "trips", &count);
    if (trips) return dim_c_text(r->g->arena, n->graph, trips[0]);
    return n->in[0] ? scalar_text(r, n->in[0]) : "INT64_MAX";
}

static void print_loop_head(Run *r, const Kernel *k, int depth, const char *it, const char *go) {
    const Node *n = k->anchor;
    if (go) {
        line(r, depth);
        text_printf(&r->body, "uint8_t %s = %s;\n", go, n->in[1] ? scalar_text(r, n->in[1]) : "1");
    }
    line(r, depth);
    text_printf(&r->body, "for (int64_t %s = 0; ", it);
    if (go) text_printf(&r->body, "%s && ", go);
    text_printf(&r->body, "%s < %s; %s++) {\n", it, trips_text(r, n), it);
    for (int i = 0; i < 2; i++) {
        Value *v = n->bodies[0]->inputs.at[i];
        if (!body_reads(k->bodies[0], v, go ? 0 : 1)) continue;
        line(r, depth + 1);
        text_printf(&r->body, "*(%s) = %s;\n", value_place(r, v), i ? go ? go : "1" : it);
    }
}

// Inputs: trip count or none, condition or none, carried values. Body: (iteration, condition, carried) -> (condition, carried, scanned).
// Scanned values are copied first: they may be carried ones of before.
static void print_loop(Run *r, const Kernel *k, int depth) {
    const Node *n = k->anchor;
    const Graph *b = n->bodies[0];
    int carried = n->n_in - 2, id = r->loops++;
    bool goes_on = always(n->in[1]) && (always(b->outputs.at[0]) || b->outputs.at[0] == b->inputs.at[1]);
    const char *it = arena_printf(r->g->arena, "iteration%d", id), *go = goes_on ? NULL : arena_printf(r->g->arena, "go%d", id);
    for (int i = 0; i < carried; i++) copy(r, depth, b->inputs.at[2 + i], "", n->in[2 + i]);
    print_loop_head(r, k, depth, it, go);
    print_steps(r, k->bodies[0], depth + 1);
    for (int i = carried; i < n->n_out; i++) {
        Value *v = b->outputs.at[1 + i];
        copy(r, depth + 1, n->out[i], arena_printf(r->g->arena, " + %s * %s", it, dim_c_text(r->g->arena, r->p->plan->graph, type_size(graph_root(r->p->plan->graph), &v->type))), v);
    }
    if (go) {
        line(r, depth + 1);
        text_printf(&r->body, "%s = %s;\n", go, scalar_text(r, b->outputs.at[0]));
    }
    for (int i = 0; i < carried; i++) copy(r, depth + 1, b->inputs.at[2 + i], "", b->outputs.at[1 + i]);
    line(r, depth);
    text_printf(&r->body, "}\n");
    for (int i = 0; i < carried; i++) copy(r, depth, n->out[i], "", b->inputs.at[2 + i]);
}

// The number of the member of k's strips that stores v for the next one; else -1.
static int between_strips(const Kernel *k, const Value *v) {
    for (int i = 0; k->strips && i + 1 < k->strips->n; i++)
        if (k->strips->member[i]->writes.at[0] == v) return i;
    return -1;
}

// From where to where it goes in a step, and the pixels that its input and its result begin with.
static void strip_arguments(const Kernel *k, Text *out) {
    const Strips *s = k->strips;
    int i = 0;
    while (s->member[i] != k) i++;
    text_printf(out, ", was[%d], now[%d], ", i, i);
    text_printf(out, i ? "now[%d], " : "0, ", s->n + i - 1);
    text_printf(out, i + 1 < s->n ? "now[%d]" : "0", s->n + i);
}

// The arguments of a kernel's call; where it goes in parts, those of the part `part`.
static const char *call_arguments(const Run *r, const Kernel *k) {
    const KernelText *t = k->text;
    Text out;
    text_init(&out, r->g->arena);
    for (int j = 0; j < t->n_params; j++) {
        const Value *v = t->params[j].value;
        bool packed = k->packed && k->packed->value == v && j < t->first_shared;
        text_printf(&out, "%s%s", j ? ", " : "", place_of(r, packed ? k->packed : v->buffer, v, packed ? k->packed->element : expr_c_storage(v->type.dtype)));
        const int between = between_strips(k, v);
        if (between >= 0 && k->strips->parts > 1) text_printf(&out, " + %lld * part", (long long)k->strips->floats[between]);
        if (t->params[j].at) text_printf(&out, " + %s", dim_c_text(r->g->arena, r->g->graph, t->params[j].at));
    }
    for (int j = 0; j < t->kernel->sizes.n; j++) text_printf(&out, "%s%s", j || t->n_params ? ", " : "", c_size(r->g, t->kernel, j));
    if (t->y_pixel) text_printf(&out, ", %lld", (long long)t->y_pixel);
    if (k->string_bytes) text_printf(&out, ", &strings");
    if (k->template_file && (k->kind != KERNEL_CALL || k->scratch_bytes)) {
        text_printf(&out, ", %s", k->scratch ? arena_printf(r->g->arena, "work + %lld", (long long)work_offset(k->scratch)) : "(unsigned char *)0");
        const int parts = k->strips ? k->strips->parts : k->parts;
        if (k->scratch && parts > 1) text_printf(&out, " + %lld * part", (long long)(k->scratch_bytes / parts));
    }
    if (k->strips) strip_arguments(k, &out);
    else if (k->parts > 1) text_printf(&out, ", part");
    return out.n ? out.at : "";
}

// ---------------------------------------------------------------- parts
// A kernel in parts is called by a function of its own, which finds the run's variables in a frame:
//
//   static void lenet_k3_conv2_part(void *argument, int part)
//   {
//       const volatile lenet_run_frame *frame = (const volatile lenet_run_frame *)argument;
//       lenet_k3_conv2(lenet_run_w1, (float *)(void *)(frame->work + 0), (float *)(void *)(frame->work + 6272), frame->work + 12544 + 2048 * part, part);
//   }
//
// volatile: no two addresses are known to have one origin. gcc 12 expresses one by a multiple of another then, takes that for an access to
// memory at zero, and leaves out calls of the function, which in its eyes has no effect (tree-ssa-loop-ivopts.cc, ipa-pure-const.cc).
static bool is_word(char c) { return isalnum((unsigned char)c) || c == '_'; }

// The next mention of a variable, at or after `s`; after -> stands a field.
static const char *find_word(const char *text, const char *s, const char *name) {
    for (size_t n = strlen(name); n && (s = strstr(s, name)); s += n)
        if ((s == text || (!is_word(s[-1]) && s[-1] != '>')) && !is_word(s[n])) return s;
    return NULL;
}

// The same arguments with a variable that they may mention taken from the frame.
static const char *take_from_frame(Run *r, const char *arguments, const char *type, const char *name, bool set) {
    Text out;
    bool framed = false;
    const char *from = arguments, *at = find_word(arguments, arguments, name);
    if (!at) return arguments;
    text_init(&out, r->g->arena);
    for (; at; from = at + strlen(name), at = find_word(arguments, from, name)) {
        bool number = at > arguments && at[-1] == '&';  // passed by its address
        text_append(&out, from, (size_t)(at - from) - number);
        if (number) text_printf(&out, "(const %s*)&", type);
        text_printf(&out, "frame->%s", name);
    }
    text_printf(&out, "%s", from);
    for (int i = 0; i < r->framed.n; i++) framed = framed || !strcmp(r->framed.at[i], name);
    if (framed) return out.at;
    VEC_PUSH(r->g->arena, r->framed, name);
    text_printf(&r->fields, "    %s%s;\n", type, name);
    if (set) text_printf(&r->settings, "    frame.%s = %s;\n", name, name);
    return out.at;
}

static const char *take_ends(Run *r, const char *arguments, const Ends *e, bool outputs) {
    const Graph *g = r->p->plan->graph;
    for (int i = 0; i < (outputs ? g->outputs.n : g->inputs.n); i++) {
        const Value *v = outputs ? g->outputs.at[i] : g->inputs.at[i];
        const char *storage = expr_c_storage(v->type.dtype), *type = arena_printf(r->g->arena, "%s%s *", outputs ? "" : "const ", storage);
        if (in_struct(v) && group_seen(g, i, outputs, v->group)) continue;
        if (in_struct(v)) type = arena_printf(r->g->arena, "%s%s_%s *", group_written(g, v->group) ? "" : "const ", r->g->model, group_type(r->g->arena, v->group));
        else if (by_value(v)) type = arena_printf(r->g->arena, "%s ", storage);
        arguments = take_from_frame(r, arguments, type, in_struct(v) ? group_param(r->g->arena, v->group) : e->name[i], true);
    }
    return arguments;
}

// What a task calls a kernel with; `whole`: the same as the run function would.
static const char *framed_arguments(Run *r, const char *whole, int depth) {
    const char *arguments = whole;
    int n;
    const Symbol *symbols = graph_symbols(graph_root(r->p->plan->graph), &n);
    arguments = take_from_frame(r, arguments, "unsigned char *", "work", true);
    arguments = take_from_frame(r, arguments, "const unsigned char *", "constants", true);
    for (int i = 0; i < n; i++) {
        arguments = take_from_frame(r, arguments, "int64_t ", symbols[i].c_name, !symbols[i].from);
        if (!symbols[i].from || !find_word(whole, whole, symbols[i].c_name)) continue;
        line(r, depth);
        text_printf(&r->body, "frame.%s = %s;\n", symbols[i].c_name, symbols[i].c_name);
    }
    return take_ends(r, take_ends(r, arguments, r->in, false), r->outs, true);
}

static void begin_task(Run *r, const char *name) {
    const char *frame = arena_printf(r->g->arena, "const volatile %s_frame *", r->p->name);
    text_printf(&r->tasks, "static void %s_part(void *argument, int part)\n{\n    %sframe = (%s)argument;\n", name, frame, frame);
}

static void print_parts(Run *r, const Kernel *k, int depth) {
    const KernelText *t = k->text;
    const char *arguments = framed_arguments(r, call_arguments(r, k), depth);
    begin_task(r, t->name);
    text_printf(&r->tasks, "    %s(%s);\n}\n\n", t->function, arguments);
    line(r, depth);
    const char *threads = "threads";
    if (k->part_least > 0) threads = arena_printf(r->g->arena, "%s >= %lld ? threads : (const burn_threads *)0", dim_c_text(r->g->arena, r->p->plan->graph, k->part_size), (long long)k->part_least);
    text_printf(&r->body, "burn_parts(%s, %d, %s_part, &frame);\n", threads, k->parts, t->name);
}

// ---------------------------------------------------------------- strips
// Kernels that go strip by strip: a loop over the steps, whose limits stand in a table.
//
//   static const int net_k3_expand_strips[][5] = { {0, 0, 0, 0, 0}, {616, 224, 224, 0, 0}, ... };
//   for (int strip = 1; strip < 15; strip++) {
//       const int *const was = net_k3_expand_strips[strip - 1], *const now = net_k3_expand_strips[strip];
//       burn_keep((float *)(void *)(work + 4096), 144, was[3], now[3], was[0]);
//       net_k3_expand(..., was[0], now[0], 0, now[3]);
//       ...
//   }
static void print_table(Run *r, const Strips *s, const char *name) {
    const int n = 2 * s->n - 1;
    text_printf(&r->tables, "/* The pixels that");
    for (int i = 0; i < s->n; i++) text_printf(&r->tables, "%s %s", !i ? "" : i + 1 < s->n ? "," : " and", s->member[i]->name);
    text_printf(&r->tables, " have come to; those that the buffers between them begin with. */\nstatic const int %s_strips[][%d] = {\n", name, n);
    for (int i = 0; i < s->line.n; i++) text_printf(&r->tables, "%s%lld%s", i % n ? ", " : "    {", (long long)s->line.at[i], i % n == n - 1 ? "},\n" : "");
    text_printf(&r->tables, "};\n\n");
}

// `first`, `end`: the lines of the table; calls of a task where there are parts.
static void print_strip_loop(Run *r, Text *out, const Strips *s, int depth, const char *first, const char *end) {
    const KernelText *head = s->member[0]->text;
    const bool task = s->parts > 1;
    const char *indent = arena_printf(r->g->arena, "%*s", 4 * depth, "");
    text_printf(out, "%sfor (int strip = %s; strip < %s; strip++) {\n", indent, first, end);
    text_printf(out, "%s    const int *const was = %s_strips[strip - 1], *const now = %s_strips[strip];\n", indent, head->name, head->name);
    for (int i = 0; i + 1 < s->n; i++) {
        Value *v = s->member[i]->writes.at[0];
        const char *rows = value_place(r, v);
        if (task) rows = arena_printf(r->g->arena, "%s + %lld * part", framed_arguments(r, rows, depth), (long long)s->floats[i]);
        text_printf(out, "%s    burn_keep(%s, %lld, was[%d], now[%d], was[%d]);\n", indent, rows, (long long)s->width[i], s->n + i, s->n + i, i);
    }
    for (int i = 0; i < s->n; i++) {
        const char *arguments = call_arguments(r, s->member[i]);
        if (task) arguments = framed_arguments(r, arguments, depth);
        text_printf(out, "%s    %s(%s);\n", indent, ((const KernelText *)s->member[i]->text)->function, arguments);
    }
    text_printf(out, "%s}\n", indent);
}

static void print_strips(Run *r, const Strips *s, int depth) {
    Gen *g = r->g;
    const char *name = ((const KernelText *)s->member[0]->text)->name;
    print_table(r, s, name);
    if (s->parts == 1) {
        print_strip_loop(r, &r->body, s, depth, "1", arena_printf(g->arena, "%d", s->part[1]));
        return;
    }
    begin_task(r, name);
    text_printf(&r->tasks, "    static const int first[] = {");
    for (int i = 0; i <= s->parts; i++) text_printf(&r->tasks, "%s%d", i ? ", " : "", s->part[i]);
    text_printf(&r->tasks, "};\n");
    print_strip_loop(r, &r->tasks, s, 1, "first[part] + 1", "first[part + 1]");
    text_printf(&r->tasks, "}\n\n");
    line(r, depth);
    text_printf(&r->body, "burn_parts(threads, %d, %s_part, &frame);\n", s->parts, name);
}

static void print_call(Run *r, const Kernel *k, int depth) {
    const KernelText *t = k->text;
    if (k->parts > 1) { print_parts(r, k, depth); return; }
    line(r, depth);
    text_printf(&r->body, k->fails ? "if (%s(%s" : "%s(%s", t->function, call_arguments(r, k));
    if (k->fails) text_printf(&r->body, ")) return %d; /* BURN_%s */\n", k->fails, k->fails == -5 ? "ELIMIT" : "EFORMAT");
    else text_printf(&r->body, ");\n");
}

static void print_bounds(Text *out, const Symbol *s) {
    if (s->lo == s->hi) text_printf(out, "if (%s != %lld) return -5; /* BURN_ELIMIT */\n", s->c_name, (long long)s->lo);
    else text_printf(out, "if (%s < %lld || %s > %lld) return -5; /* BURN_ELIMIT */\n", s->c_name, (long long)s->lo, s->c_name, (long long)s->hi);
}

static bool is_known(const Run *r, const Graph *root, Dim d) {
    for (int i = 0; i < root->symbols.n; i++)
        if (!r->known[i] && dim_uses(root, d, i)) return false;
    return true;
}

// Dimensions that the model takes to be equal, as soon as both are known.
static void print_required(Run *r, const Graph *g, int depth) {
    const Graph *root = graph_root(g);
    for (int i = 0; i < g->required.n; i++) {
        DimPair *pair = &g->required.at[i];
        Dim a = dim_bound(root, pair->a), b = dim_bound(root, pair->b);
        if (pair->checked || a == b || (dim_is_const(a) && dim_is_const(b)) || !is_known(r, root, a) || !is_known(r, root, b)) continue;
        pair->checked = true;
        line(r, depth);
        text_printf(&r->body, "if (%s != %s) return -1; /* BURN_EINVAL */\n", dim_c_text(r->g->arena, root, a), dim_c_text(r->g->arena, root, b));
    }
}

static void print_sizes(Run *r, const Graph *g, const Kernel *k, int depth) {
    for (int i = 0; i < k->sizes.n; i++) {
        const Symbol *s = symbol_at(r->p->plan->graph, k->sizes.at[i]);
        line(r, depth);
        text_printf(&r->body, "const int64_t %s = (%s)[%lld];\n", s->c_name, value_place(r, s->from), (long long)s->at);
        line(r, depth);
        print_bounds(&r->body, s);
        r->known[k->sizes.at[i]] = true;
    }
    print_required(r, g, depth);
}

// An output whose sizes the program found out: it says them.
static void print_shapes(Run *r) {
    const Graph *g = r->p->plan->graph;
    for (int i = 0; i < g->outputs.n; i++) {
        const Type *t = &g->outputs.at[i]->type;
        if (!is_measured(g, t)) continue;
        for (int j = 0; j < t->rank; j++) text_printf(&r->body, "    %s_shape[%d] = %s;\n", r->outs->name[i], j, dim_c_text(r->g->arena, g, t->dim[j]));
    }
}

static void print_steps(Run *r, const Plan *plan, int depth) {
    for (int i = 0; i < plan->graph->required.n; i++) plan->graph->required.at[i].checked = false;
    print_required(r, plan->graph, depth);
    for (int i = 0; i < plan->kernels.n; i++) {
        const Kernel *k = plan->kernels.at[i];
        if (k->kind == KERNEL_SIZES) { print_sizes(r, plan->graph, k, depth); continue; }
        if (k->strips) {
            if (k == k->strips->member[0]) print_strips(r, k->strips, depth);
            continue;
        }
        if (k->kind != KERNEL_REGION) print_call(r, k, depth);
        else if (k->anchor->op == OP_If) print_if(r, k, depth);
        else print_loop(r, k, depth);
    }
}

static void print_checks(Gen *g, const Program *p, const Ends *in, const Ends *outs) {
    const Graph *gr = p->plan->graph;
    Separator sep = { "" };
    Text t;
    text_init(&t, g->arena);
    if (has_workspace(p)) { next(&sep); text_printf(&t, "!ws"); }
    if (g->external) { text_printf(&t, "%s!weights", *next(&sep) ? " || " : ""); }
    for (int side = 0; side < 2; side++)
        for (int i = 0; i < (side ? gr->outputs.n : gr->inputs.n); i++) {
            const Value *v = side ? gr->outputs.at[i] : gr->inputs.at[i];
            if (by_value(v) || (v->group && group_seen(gr, i, side, v->group))) continue;
            text_printf(&t, "%s!%s", *next(&sep) ? " || " : "", v->group ? group_param(g->arena, v->group) : (side ? outs : in)->name[i]);
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

// The function that users call, where there are several targets: the widest that the processor has. The compiler's library keeps what it has
// in memory, so this costs a few loads.
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

// Does the run function, or a part, take addresses from this base?
static bool needs(const Run *r, const char *base) {
    for (int i = 0; i < r->framed.n; i++)
        if (!strcmp(r->framed.at[i], base)) return true;
    return r->body.n && strstr(r->body.at, arena_printf(r->g->arena, "%s + ", base));
}

static void print_run(Gen *g, const Program *p, const Ends *in, const Ends *outs) {
    Run r = { .g = g, .p = p, .in = in, .outs = outs };
    const Graph *root = graph_root(p->plan->graph);
    const Sizes sizes = parameter_sizes(g->arena, p->plan->graph);
    const bool several = g->options->machine.n_parts > 0;
    text_init(&r.body, g->arena); text_init(&r.tables, g->arena); text_init(&r.tasks, g->arena); text_init(&r.fields, g->arena); text_init(&r.settings, g->arena);
    r.known = NEW_ARRAY(g->arena, bool, root->symbols.n);
    for (int i = 0; i < sizes.n; i++) r.known[sizes.at[i]] = true;
    print_steps(&r, p->plan, 1);
    print_shapes(&r);
    if (r.tables.n) text_append(&g->c, r.tables.at, r.tables.n);
    if (r.tasks.n) {
        text_printf(&g->c, "/* What the parts of a run see of it. */\ntypedef struct %s_frame {\n%s} %s_frame;\n\n", p->name, r.fields.n ? r.fields.at : "    int none;\n", p->name);
        text_append(&g->c, r.tasks.at, r.tasks.n);
    }
    if (several) text_printf(&g->c, "static ");
    print_signature(g, &g->c, p, several ? arena_printf(g->arena, "%s_on", p->name) : p->name, in, outs);
    text_printf(&g->c, "\n{\n");
    print_checks(g, p, in, outs);
    const Buffer *pool = p->plan->strings;
    if (pool || needs(&r, "work")) text_printf(&g->c, "    unsigned char *const work = ws->bytes%s;\n", workspace_slack(p->plan) ? " + (64 - (uintptr_t)ws->bytes % 64) % 64" : "");
    if (pool) text_printf(&g->c, "    burn_pool strings = {(char *)work + %lld, (char *)work + %lld};\n", (long long)pool->offset, (long long)(pool->offset + pool->bytes));
    if (needs(&r, "constants")) text_printf(&g->c, "    const unsigned char *const constants = (const unsigned char *)weights + %d;\n", WEIGHTS_HEADER);
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
        text_printf(&g->ends, "%s%lld", j ? ", " : "", (long long)(!least ? dim_upper(gr, t->dim[j]) : low < 0 ? 0 : low));
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
        text_printf(&rows, "    {\"%s\", (burn_dtype)%d, %d, %s, %s, %s},\n", c_string(g->arena, outputs ? gr->output_names.at[i] : gr->inputs.at[i]->name), t->dtype, t->rank, shape, most_bytes_text(g->arena, gr, t), least);
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
                if (gr->inputs.at[j]->type.dim[k] == self) text_printf(&g->ends, "    if (inputs[%d].shape) %s = inputs[%d].shape[%d];\n", j, s->c_name, j, k);
    }
    for (int i = 0; i < sizes.n; i++) {
        text_printf(&g->ends, "    ");
        print_bounds(&g->ends, symbol_at(gr, sizes.at[i]));
    }
}

static void print_buffer_check(Gen *g, const Graph *gr, const Type *t, const char *side, int i, bool output) {
    const char *bytes = output && is_measured(gr, t) ? most_bytes_text(g->arena, gr, t) : bytes_text(g->arena, gr, t);
    const char *cast = type_is_static(t) ? "" : "(size_t)";
    text_printf(&g->ends, "    if (!%s[%d].data || %s[%d].bytes < %s%s) return -1; /* BURN_EINVAL */\n", side, i, side, i, cast, *cast ? arena_printf(g->arena, "(%s)", bytes) : bytes);
    if (output || !t->rank) return;
    text_printf(&g->ends, "    if (inputs[%d].shape && (", i);
    for (int j = 0; j < t->rank; j++) text_printf(&g->ends, "%sinputs[%d].shape[%d] != %s", j ? " || " : "", i, j, dim_c_text(g->arena, gr, t->dim[j]));
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
        text_printf(&g->ends, "    if (%s%s%s) return -1; /* BURN_EINVAL */\n", gr->inputs.n ? "!inputs" : "", gr->inputs.n && gr->outputs.n ? " || " : "", gr->outputs.n ? "!outputs" : "");
        print_given_sizes(g, gr);
    }
    for (int side = 0; side < 2; side++) {
        int n = side ? gr->outputs.n : gr->inputs.n;
        const char *name = side ? "output" : "input";
        if (!n) text_printf(&g->ends, "    (void)%ss;\n", name);
        else if (fixed) text_printf(&g->ends, "    for (int i = 0; i < %d; i++)\n        if (!%ss || !%ss[i].data || %ss[i].bytes < %s_%ss[i].bytes) return -1; /* BURN_EINVAL */\n", n, name, name, name, p->name, name);
        else for (int i = 0; i < n; i++) print_buffer_check(g, gr, &(side ? gr->outputs.at[i] : gr->inputs.at[i])->type, side ? "outputs" : "inputs", i, side);
    }
}

// A shape that the run finds out goes through an array of the wrapper's own: the caller's may be absent.
static void print_generic_call(Gen *g, const Program *p) {
    const Graph *gr = p->plan->graph;
    const Sizes sizes = parameter_sizes(g->arena, gr);
    for (int i = 0; i < gr->outputs.n; i++)
        if (is_measured(gr, &gr->outputs.at[i]->type)) text_printf(&g->ends, "    int64_t shape%d[%d];\n", i, gr->outputs.at[i]->type.rank);
    text_printf(&g->ends, "    const int code = %s((%s_workspace *)workspace%s", p->name, p->name_of_workspace, g->external ? ", weights" : "");
    for (int i = 0; i < sizes.n; i++) text_printf(&g->ends, ", %s", symbol_at(gr, sizes.at[i])->c_name);
    for (int i = 0; i < gr->inputs.n; i++) text_printf(&g->ends, ", (const %s *)inputs[%d].data", expr_c_storage(gr->inputs.at[i]->type.dtype), i);
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
        for (int j = 0; j < t->rank; j++) text_printf(&g->ends, "        outputs[%d].shape[%d] = %s;\n", i, j, measured ? arena_printf(g->arena, "code ? 0 : shape%d[%d]", i, j) : dim_c_text(g->arena, gr, t->dim[j]));
        text_printf(&g->ends, "    }\n");
    }
    text_printf(&g->ends, "    return code;\n}\n\n");
}

static void print_descriptor(Gen *g, const Program *p) {
    const Graph *gr = p->plan->graph;
    print_infos(g, p, false);
    print_infos(g, p, true);
    text_printf(&g->ends, "static int %s_generic%s(%svoid *workspace, const void *weights, const burn_tensor *inputs, const burn_tensor *outputs)\n{\n", p->name,
        g->threads ? "_threads" : "", g->threads ? "const burn_threads *threads, " : "");
    if (!g->external) text_printf(&g->ends, "    (void)weights;\n");
    print_generic_checks(g, p);
    print_generic_call(g, p);
    if (g->threads) text_printf(&g->ends, "static int %s_generic(void *workspace, const void *weights, const burn_tensor *inputs, const burn_tensor *outputs)\n{\n"
        "    return %s_generic_threads((const burn_threads *)0, workspace, weights, inputs, outputs);\n}\n", p->name, p->name);
    text_printf(&g->ends, "const burn_model %s_model = {\n    \"%s\", %d, %d, %s, %s,\n    sizeof(%s_workspace), %lld, %s_generic\n};\n", g->model, g->model, gr->inputs.n, gr->outputs.n,
        gr->inputs.n ? arena_printf(g->arena, "%s_inputs", p->name) : "(const burn_tensor_info *)0", gr->outputs.n ? arena_printf(g->arena, "%s_outputs", p->name) : "(const burn_tensor_info *)0",
        p->name_of_workspace, g->external ? (long long)p->plan->weight_bytes + WEIGHTS_HEADER : 0LL, p->name);
    if (g->threads) text_printf(&g->ends, "const burn_threaded_model %s_threaded = {&%s_model, %d, %s_generic_threads};\n", g->model, g->model, g->options->threads, p->name);
}

// ---------------------------------------------------------------- all of it
static bool has_sizes(const Plan *plan) {
    for (int i = 0; i < plan->kernels.n; i++) {
        const Kernel *k = plan->kernels.at[i];
        for (int j = 0; j < k->n_bodies; j++) if (has_sizes(k->bodies[j])) return true;
        if (k->sizes.n) return true;
    }
    return false;
}

// Can it meet bytes that are not what they should be?
static bool reads_formats(const Plan *plan) {
    bool found = false;
    for (int i = 0; i < plan->kernels.n; i++) {
        const Kernel *k = plan->kernels.at[i];
        found = found || k->fails == -6;
        for (int j = 0; j < k->n_bodies; j++) found = found || reads_formats(k->bodies[j]);
    }
    return found;
}

// What BURN_ELIMIT and BURN_EFORMAT mean here.
static const char *limits_text(Arena *a, const Plan *plan) {
    const char *image = reads_formats(plan) ? ", -6 (BURN_EFORMAT) when\n * an image is damaged, not of this size or of no known format (runtime/image.c decodes it)" : "";
    const char *sizes = has_sizes(plan) ? "a size is out of its bounds" : "", *strings = "";
    if (plan->strings) strings = arena_printf(a, "the strings that it makes\n * take more than %lld bytes, their zero bytes included", (long long)plan->strings->bytes);
    const char *older = plan->options->machine.n_parts ? arena_printf(a, ", -7 (BURN_ENODEV) when\n * the processor is older than %s", plan->options->machine.parts[0]->name) : "";
    const char *limits = *sizes || *strings ? arena_printf(a, ", -5 (BURN_ELIMIT) when\n * %s%s%s", sizes, *sizes && *strings ? " or " : "", strings) : "";
    return arena_printf(a, "%s%s%s", limits, image, older);
}

static void declare(Gen *g, const Program *p, const Ends *in, const Ends *outs) {
    const Graph *gr = p->plan->graph;
    Text *h = &g->h;
    if (has_workspace(p)) text_printf(h, "/* Scratch memory of one run; its content means nothing before and after%s. Concurrent runs need one each. */\n", p->plan->strings ? ",\n * but for the strings that outputs point to" : "");
    if (has_workspace(p)) text_printf(h, "typedef union %s_workspace {\n    double align;\n    unsigned char bytes[%lld];\n} %s_workspace;\n\n", p->name_of_workspace, (long long)(p->plan->work_bytes ? p->plan->work_bytes + workspace_slack(p->plan) : 1), p->name_of_workspace);
    text_printf(h, "/* %s\n", p->doc ? p->doc : "One inference. Tensors are dense and row-major.");
    for (int side = 0; side < 2; side++)
        for (int i = 0; i < (side ? gr->outputs.n : gr->inputs.n); i++) {
            const Value *v = side ? gr->outputs.at[i] : gr->inputs.at[i];
            if (v->group) continue;
            text_printf(h, " *   %-8s %s: %s\n", side ? "writes" : "reads", (side ? outs : in)->name[i], type_text(g->arena, gr, &v->type));
            if (side && is_measured(gr, &v->type)) text_printf(h, " *            up to %lld elements; its dimensions go to %s_shape\n", (long long)type_count_upper(gr, &v->type), outs->name[i]);
        }
    const Sizes sizes = parameter_sizes(g->arena, gr);
    for (int i = 0; i < sizes.n; i++) {
        const Symbol *s = symbol_at(gr, sizes.at[i]);
        text_printf(h, " *   size     %s: %s, %lld to %lld\n", s->c_name, s->name, (long long)s->lo, (long long)s->hi);
    }
    bundles_print(h, gr, in->name, outs->name);
    if (g->external) text_printf(h, " *   weights  the bytes of %s.bin, aligned to 64; check them once with %s_weights_check\n", g->model, g->model);
    if (g->threads) text_printf(h, " *   threads  what computes the parts of the run, up to %d at a time; NULL: the calling thread, one after the other\n", g->options->threads);
    text_printf(h, " * No input may overlap an output. Returns 0, or -1 (BURN_EINVAL) when a pointer is null%s. Reentrant; allocates nothing. */\n", limits_text(g->arena, p->plan));
    print_signature(g, h, p, p->name, in, outs);
    text_printf(h, ";\n\n");
}

static void print_kernels(Gen *g, const Program *p, Plan *plan, Functions *f) {
    g->graph = plan->graph;
    for (int i = 0; i < plan->kernels.n; i++) {
        Kernel *k = plan->kernels.at[i];
        for (int j = 0; j < k->n_bodies; j++) print_kernels(g, p, k->bodies[j], f);
        g->graph = plan->graph;
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
    Ends in = name_ends(g->arena, gr, g->threads, false, names, 0), outs = name_ends(g->arena, gr, g->threads, true, names, gr->inputs.n);
    Functions *functions = c_functions_new(g);
    g->graph = gr;
    for (int i = 0; i < plan->buffers.n; i++) {
        const Buffer *b = plan->buffers.at[i];
        if (b->place != PLACE_WEIGHT || (g->external && weights_in_file(b))) continue;
        text_printf(&g->data, "/* ");
        c_comment(&g->data, b->value->name ? b->value->name : "constant");
        text_printf(&g->data, " %s, %s */\n", type_text(g->arena, gr, &b->value->type), b->layout);
        if (b->bytes >= 64 && (g->options->machine.vectors || g->options->machine.n_parts)) text_printf(&g->data, "BURN_ALIGNED ");
        weights_print_array(&g->data, b, arena_printf(g->arena, "%s_w%d", p->name, b->id));
        text_printf(&g->data, "\n");
    }
    print_kernels(g, p, plan, functions);
    c_functions_print(functions, g);
    declare(g, p, &in, &outs);
    print_run(g, p, &in, &outs);
    if (p->descriptor) print_descriptor(g, p);
}
