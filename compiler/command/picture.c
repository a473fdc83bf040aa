// SPDX-License-Identifier: MIT OR Apache-2.0
// Graphs and plans as boxes and arrows. In: a graph, as imported or behind the passes, or a plan. Out: a box for each
// input, output and node, or kernel; an arrow for each value that one makes and another takes. Constants are lines in
// the boxes that take them, for hundreds of weights are no part of what goes on.
//
// Who makes a value is known by its number, which bodies share with the graph around them. Several kernels may make
// one, when it is a concatenation that each stores its part of.
#include "picture.h"

#include <string.h>

const char *const stage_names[STAGE_COUNT] = { "import", "passes", "kernels" };

int stage_find(const char *name) {
    for (int i = 0; i < STAGE_COUNT; i++)
        if (!strcmp(stage_names[i], name)) return i;
    return -1;
}

typedef struct Makers { VEC(int) boxes; } Makers;
typedef struct Sketch {
    Arena *arena;
    Picture *picture;
    const Plan *plan;                                   // NULL: of a graph
    Makers *makers;                                     // by value id: the boxes that make it
} Sketch;

static Sketch sketch_new(Arena *a, const Graph *g, const Plan *p, const char *title) {
    Sketch s = { .arena = a, .picture = NEW(a, Picture), .plan = p };
    s.picture->title = title;
    s.makers = NEW_ARRAY(a, Makers, graph_root(g)->value_count + 1);
    return s;
}

static int add_box(Sketch *s, Box b) {
    VEC_PUSH(s->arena, s->picture->boxes, b);
    return s->picture->boxes.n - 1;
}

static void add_line(Sketch *s, int box, const char *line) {
    VEC_PUSH(s->arena, s->picture->boxes.at[box].lines, line);
}

static const char *typed_name(Sketch *s, const Value *v) {
    const char *type = type_text(s->arena, v->graph, &v->type);
    return v->name ? arena_printf(s->arena, "%s %s", v->name, type) : type;
}

static void add_arrow(Sketch *s, int from, int to, const Value *v) {
    const Picture *p = s->picture;
    const char *name = v->name ? v->name : "";
    for (int i = p->arrows.n - 1; i >= 0 && p->arrows.at[i].to == to; i--)
        if (p->arrows.at[i].from == from && !strcmp(p->arrows.at[i].name, name)) return;
    VEC_PUSH(s->arena, s->picture->arrows, (Arrow){ from, to, type_text(s->arena, v->graph, &v->type), name });
}

// The boxes that make v, or the value that it is columns of.
static const Makers *makers_of(const Sketch *s, const Value *v) {
    const Makers *m = &s->makers[v->id];
    const Value *home = s->plan && !m->boxes.n ? plan_value(s->plan, v).home : NULL;
    return home ? &s->makers[home->id] : m;
}

static void take(Sketch *s, int box, const Value *v) {
    if (!v) return;
    const Makers *m = makers_of(s, v);
    for (int i = 0; i < m->boxes.n; i++)
        if (m->boxes.at[i] != box) add_arrow(s, m->boxes.at[i], box, v);
    if (!m->boxes.n && (v->data || v->draw)) add_line(s, box, typed_name(s, v));
}

// A kernel that runs again makes again what it made.
static void give(Sketch *s, int box, const Value *v) {
    const Box *boxes = s->picture->boxes.at;
    Makers *m = &s->makers[v->id];
    for (int i = 0; i < m->boxes.n; i++)
        if (boxes[box].kernel && boxes[m->boxes.at[i]].kernel == boxes[box].kernel) {
            m->boxes.at[i] = box;
            return;
        }
    VEC_PUSH(s->arena, m->boxes, box);
}

static void add_inputs(Sketch *s, const Graph *g, int inside, const char *body) {
    for (int i = 0; i < g->inputs.n; i++) {
        const Value *v = g->inputs.at[i];
        int box = add_box(s, (Box){ BOX_INPUT, "input", v->name ? v->name : "", .inside = inside, .body = body });
        add_line(s, box, type_text(s->arena, g, &v->type));
        give(s, box, v);
    }
}

static void add_outputs(Sketch *s, const Graph *g, int inside, const char *body) {
    for (int i = 0; i < g->outputs.n; i++) {
        const Value *v = g->outputs.at[i];
        const char *name = g->output_names.at[i] ? g->output_names.at[i] : "";
        int box = add_box(s, (Box){ BOX_OUTPUT, "output", name, .inside = inside, .body = body });
        add_line(s, box, type_text(s->arena, g, &v->type));
        take(s, box, v);
    }
}

static const char *body_name(Arena *a, const Node *n, int i) {
    if (n->op == OP_If) return i ? "else" : "then";
    return n->n_bodies > 1 ? arena_printf(a, "body %d", i) : "body";
}

static const char *node_name(const Node *n) { return n->loc && n->loc->name ? n->loc->name : ""; }

// What a custom operation could be made of instead is no part of the model.
static void add_graph(Sketch *s, const Graph *g, int inside, const char *body) {
    add_inputs(s, g, inside, body);
    for (const Node *n = g->first; n; n = n->next) {
        int box = add_box(s, (Box){ BOX_NODE, op_table[n->op].name, node_name(n), .inside = inside, .body = body });
        Text attributes;
        text_init(&attributes, s->arena);
        node_print_attrs(n, &attributes);
        if (attributes.n) add_line(s, box, attributes.at);
        for (int i = 0; i < n->n_in; i++) take(s, box, n->in[i]);
        for (int i = 0; i < n->n_bodies && n->op != OP_Custom; i++)
            add_graph(s, n->bodies[i], box, body_name(s->arena, n, i));
        for (int i = 0; i < n->n_out; i++) give(s, box, n->out[i]);
    }
    add_outputs(s, g, inside, body);
}

static void add_kernel_lines(Sketch *s, int box, const Kernel *k) {
    for (int i = 0; i < k->nodes.n; i++) {
        const Node *n = k->nodes.at[i];
        const char *op = op_table[n->op].name, *back = n->loc && n->loc->backward ? "backward of " : "";
        add_line(s, box, *node_name(n) ? arena_printf(s->arena, "%s %s%s", op, back, node_name(n)) : op);
    }
}

static void add_plan(Sketch *s, const Plan *p, int inside, const char *body) {
    add_inputs(s, p->graph, inside, body);
    for (int i = 0; i < p->kernels.n; i++) {
        const Kernel *k = p->kernels.at[i];
        int box = add_box(s, (Box){ BOX_KERNEL, kernel_kind(k), k->name, .inside = inside, .body = body, .kernel = k });
        add_kernel_lines(s, box, k);
        for (int j = 0; j < k->reads.n; j++) take(s, box, k->reads.at[j]);
        for (int j = 0; j < kernel_bodies(k); j++)
            add_plan(s, k->region.bodies[j], box, body_name(s->arena, k->anchor, j));
        for (int j = 0; j < k->writes.n; j++) give(s, box, k->writes.at[j]);
    }
    add_outputs(s, p->graph, inside, body);
}

Picture *picture_graph(Arena *a, const Graph *g, const char *title) {
    Sketch s = sketch_new(a, g, NULL, title);
    add_graph(&s, g, -1, "");
    return s.picture;
}

Picture *picture_plan(Arena *a, const Plan *p, const char *title) {
    Sketch s = sketch_new(a, p->graph, p, title);
    add_plan(&s, p, -1, "");
    return s.picture;
}

Pictures pictures_of(Arena *a, Stage stage, const Graph *imported, const Programs *programs) {
    Pictures p = { 0 };
    if (stage == STAGE_IMPORT) p.at[p.n++] = picture_graph(a, imported, imported->name);
    for (int i = 0; stage != STAGE_IMPORT && i < programs->n; i++) {
        const Program *one = &programs->at[i];
        p.at[p.n++] = stage == STAGE_PASSES ? picture_graph(a, one->plan->graph, one->name) :
                                              picture_plan(a, one->plan, one->name);
    }
    return p;
}
