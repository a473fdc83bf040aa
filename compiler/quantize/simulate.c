// SPDX-License-Identifier: MIT OR Apache-2.0
// A program that computes as integers would, for any scales and weights.
//
// In: a plan. Out: a graph over the same inputs and more: the scale and zero point of each point, and the weights and
// biases, which are numbers of the caller's. With scale 0 a point is as it was, so that one program, compiled once,
// observes values, tells what each unit alone would cost, and measures what is chosen.
//
//   before   %3: f32[1,8,9,9] = Relu(%2)                         a point
//   after    %9: f32[1,8,9,9] = s > 0 ? (clamp(round(%3 / s) + z) - z) * s : %3, an output besides
#include "build/build.h"
#include "quantize/quantize.h"

#include <string.h>

typedef struct Twin { Node **node; Graph *g; const Quantizer *q; } Twin;

static Value *twin_of(const Twin *t, const Value *v) {
    if (v->def) return t->node[v->def->mark]->out[v->def_out];
    for (int i = 0; i < t->q->graph->inputs.n; i++)
        if (t->q->graph->inputs.at[i] == v) return t->g->inputs.at[i];
    bug("a point is neither computed nor an input");
}

static Value *number_at(Graph *g, Value *list, int64_t at) { return b_reshape(g, b_part(g, list, 0, at, 1), 0, NULL); }

static void simulate_point(const Twin *t, Value *scales, int i) {
    Graph *g = t->g;
    Value *x = twin_of(t, t->q->points.at[i].value);
    g->cursor = x->def ? x->def->next : scales->def ? scales->def->next : g->first;
    g->loc = x->def ? x->def->loc : NULL;
    Node *before = x->def;
    Value *s = number_at(g, scales, 2 * i), *z = number_at(g, scales, 2 * i + 1);
    const char *steps = arena_printf(g->arena, "s > 0 ? (min(max(round(x / s) + z, %d), %d) - z) * s : x",
        (int)quant_least(&t->q->how), (int)quant_most(&t->q->how));
    Value *y = b_map(g, steps, "x s z", 3, (Value *[]){ x, s, z });
    for (Node *n = before ? before->next : g->first; n; n = n->next)
        for (int k = 0; k < n->n_in && n != y->def; k++)
            if (n->in[k] == x) n->in[k] = y;
    for (int k = 0; k < g->outputs.n; k++)
        if (g->outputs.at[k] == x) g->outputs.at[k] = y;
    graph_output(g, y, arena_printf(g->arena, "point%d", i));
}

static void simulate_weights(const Twin *t, int i) {
    const QuantUnit *u = &t->q->units.at[i];
    Graph *g = t->g;
    Node *product = t->node[u->first->mark];
    product->in[1] = graph_input(g, arena_printf(g->arena, "weights%d", i), u->w->type);
    if (!u->b) return;
    Node *sum = t->node[u->sum->mark];
    Value *b = graph_input(g, arena_printf(g->arena, "bias%d", i), u->b->type);
    g->cursor = sum;
    g->loc = sum->loc;
    int rank = sum->out[0]->type.rank;
    sum->in[1] = b_along(g, b, rank, u->first->op == OP_Conv ? 1 : rank - 1);
}

Graph *quant_simulation(const Quantizer *q) {
    Twin t = { .q = q, .g = graph_clone(q->graph, NULL) };
    int n = 0;
    for (const Node *m = q->graph->first; m; m = m->next) n++;
    t.node = NEW_ARRAY(q->arena, Node *, n + 1);
    const Node *from = q->graph->first;
    for (Node *to = t.g->first; to; to = to->next, from = from->next) t.node[from->mark] = to;
    int64_t count = 2 * (int64_t)q->points.n;
    Value *scales = graph_input(t.g, "scales", type_make(DT_F32, 1, &count));
    for (int i = 0; i < q->units.n; i++)
        if (q->units.at[i].kind == QUANT_WEIGHTED) simulate_weights(&t, i);
    for (int i = 0; i < q->points.n; i++) simulate_point(&t, scales, i);
    t.g->cursor = NULL;
    return t.g;
}

int quant_tensors(const Quantizer *q) {
    int n = 0;
    for (int i = 0; i < q->units.n; i++)
        if (q->units.at[i].kind == QUANT_WEIGHTED) n += 1 + (q->units.at[i].b != NULL);
    return n;
}

void quant_program(const Quantizer *q, bool floats, float *scales, float *const *weights) {
    for (int i = 0; i < q->points.n; i++) {
        const QuantPoint *p = &q->points.at[i];
        scales[2 * i] = p->active && !floats ? (float)p->scale : 0;
        scales[2 * i + 1] = (float)p->zero;
    }
    for (int i = 0; i < q->units.n; i++) {
        const QuantUnit *u = &q->units.at[i];
        if (u->kind != QUANT_WEIGHTED) continue;
        const float *w = u->w->data;
        for (int64_t k = 0, n = type_count(&u->w->type); k < n; k++)
            (*weights)[k] = u->integer && !floats ? quant_rounded(u, k) : w[k];
        weights++;
        if (u->b) memcpy(*weights++, u->b->data, (size_t)type_bytes(&u->b->type));
    }
}
