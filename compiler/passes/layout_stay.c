// SPDX-License-Identifier: MIT OR Apache-2.0
// Which convolutions keep their channels first. In: a graph before layout.c turns it. Out: marks.
//
//   y = Conv(x, w) {group=144}      x, y: f32[1,144,56,56], ends of the model: two turns cost more than they gain
//
// The idea: convolutions that layout.c would join, through what commutes with a transpose, turn together or not at
// all. Such a part of the graph stays when every convolution in it is a product, or one that the back end has a kernel
// for with the channels first (depthwise ones, on planes), and when turning at the part's ends takes longer than its
// convolutions gain by channels that lie last. Trained networks have at least one other convolution, and turn.
#include "layout.h"

#include <string.h>

// Nanoseconds for one core of today's servers; only ratios matter, and none within a factor of 1.3.
static const double turn_rate = 9;                      // bytes of a map turned, read and written
static const double product_rate = 100, tap_rate = 60;  // multiply-adds of a matrix product, and of taps
// of planes: a vector, what conv_planes.c unrolls; fewer channels are not turned for a convolution
enum { LANES = 16, FEW_TAPS = 25, READ_IN_PLACE = 8 };

bool layout_turns(const Node *n) {
    if (n->op != OP_Conv) return false;
    const Type *x = &n->in[0]->type, *w = &n->in[1]->type;
    if (node_int(n, "channels_last", 0) || (x->dtype != DT_F32 && n->out[0]->type.dtype == x->dtype) || x->rank < 3
        || x->rank > 5)
        return false;
    for (int i = 1; i < x->rank; i++)
        if (!dim_is_const(x->dim[i])) return false;
    const Type *y = &n->out[0]->type;
    return type_is_static(w) && type_count(w) > 0 && dims_upper(n->graph, y->rank, y->dim) > 0;
}

bool layout_is_product(const Node *n) {
    const Type *w = &n->in[1]->type;
    for (int i = 2; i < w->rank; i++)
        if (w->dim[i] != 1) return false;
    return node_int(n, "group", 1) == 1 && all_ints(n, "strides", 1) && all_ints(n, "pads", 0);
}

// bytes, nanoseconds; turns: a convolution in it has no other way
typedef struct Joined { double turned, gained; bool turns; } Joined;
// by value id; last: of what would have the channels last
typedef struct Stay {
    Graph *graph;
    const Backend *backend;
    bool (*sinks)(const Node *n);
    int *parent;
    Joined *part;
    bool *last, *counted;
} Stay;

static int find(const Stay *s, int id) {
    while (s->parent[id] != id) id = s->parent[id] = s->parent[s->parent[id]];
    return id;
}

static void join(Stay *s, const Value *a, const Value *b) { s->parent[find(s, a->id)] = find(s, b->id); }

// Bytes that a turn of v moves: none where it changes no element's place.
static double moved(const Stay *s, const Value *v) {
    double pixels = 1, all = (double)type_bytes_upper(s->graph, &v->type);
    if (v->type.rank < 3) return all;
    for (int i = 2; i < v->type.rank; i++) pixels *= (double)dim_upper(s->graph, v->type.dim[i]);
    return pixels == 1 || v->type.dim[1] == 1 ? 0 : all;
}

static bool is_map(const Value *v) { return v && !v->data; }

static void turn(Stay *s, const Value *v) {
    if (!s->counted[v->id]) s->part[find(s, v->id)].turned += moved(s, v);
    s->counted[v->id] = true;
}

// ---------------------------------------------------------------- what is gained
static double ceil_to(double n, double unit) { return (double)(int64_t)((n + unit - 1) / unit) * unit; }

// What a convolution takes longer with the channels first, in nanoseconds; < 0: it has to be turned.
static double gain(const Stay *s, const Node *n) {
    const Type *y = &n->out[0]->type, *w = &n->in[1]->type;
    double all = (double)type_count_upper(s->graph, y), columns = (double)y->dim[y->rank - 1], depth = 1;
    for (int i = 1; i < w->rank; i++) depth *= (double)w->dim[i];
    // products of integers have their weights on the right
    if (node_int(n, "wide", 0) || n->in[0]->type.dtype != n->in[1]->type.dtype) return -1;
    if (layout_is_product(n)) {                         // vectors run over all pixels; panels of them are copied
        double pixels = 1;
        for (int i = 2; i < y->rank; i++) pixels *= (double)y->dim[i];
        return all * depth / product_rate * (1.03 * ceil_to(pixels, 2 * LANES) / pixels - 1);
    }
    if (!s->backend->channels_first(n)) return -1;
    return all * depth / tap_rate * (ceil_to(columns, LANES) / columns * (depth > FEW_TAPS ? 1.6 : 1) - 1);
}

static void meet_conv(Stay *s, const Node *n) {
    const Value *x = n->in[0], *y = n->out[0];
    double ns = gain(s, n);
    bool in_place = layout_is_product(n) || (x->type.dim[1] < READ_IN_PLACE && !s->backend->channels_first(n));
    if (!s->last[x->id] && !in_place) turn(s, x);
    Joined *p = &s->part[find(s, y->id)];
    p->turns = p->turns || ns < 0;
    p->gained += ns;
    s->last[y->id] = true;
}

// ---------------------------------------------------------------- the walk
// A reshape that joins the channels with the pixels is where a part ends; before a product of constant rows, these
// are turned instead.
static bool flattens(const Node *n) { return n->op == OP_Reshape && n->out[0]->type.rank < 3; }

static bool carries(const Stay *s, const Node *n) { return s->sinks(n) && n->n_out == 1 && !flattens(n); }

static void joins(Stay *s) {
    for (const Node *n = s->graph->first; n; n = n->next)
        for (int i = 0; i < (layout_turns(n) ? 1 : carries(s, n) ? n->n_in : 0); i++)
            if (is_map(n->in[i])) join(s, n->in[i], n->out[0]);
}

static void meet(Stay *s, const Node *n) {
    bool any = false;
    for (int i = 0; i < n->n_in; i++) any = any || (is_map(n->in[i]) && s->last[n->in[i]->id]);
    if (!any) return;
    bool sinks = carries(s, n);
    if (sinks) s->last[n->out[0]->id] = true;
    for (int i = 0; i < n->n_in; i++)
        if (is_map(n->in[i]) && s->last[n->in[i]->id] != sinks && !flattens(n)) turn(s, n->in[i]);
}

bool *layout_stay(Arena *scratch, Graph *g, const Backend *b, bool (*sinks)(const Node *n)) {
    int count = graph_root(g)->value_count;
    Stay s = { .graph = g,
        .backend = b,
        .sinks = sinks,
        .parent = NEW_ARRAY(scratch, int, count),
        .part = NEW_ARRAY(scratch, Joined, count),
        .last = NEW_ARRAY(scratch, bool, count),
        .counted = NEW_ARRAY(scratch, bool, count) };
    bool *stays = NEW_ARRAY(scratch, bool, count);
    for (int i = 0; i < count; i++) s.parent[i] = i;
    joins(&s);
    for (const Node *n = g->first; n; n = n->next) {
        if (layout_turns(n)) meet_conv(&s, n);
        else meet(&s, n);
    }
    for (int i = 0; i < g->outputs.n; i++)
        if (s.last[g->outputs.at[i]->id]) turn(&s, g->outputs.at[i]);
    for (const Node *n = g->first; n; n = n->next) {
        if (!layout_turns(n)) continue;
        const Joined *p = &s.part[find(&s, n->out[0]->id)];
        stays[n->out[0]->id] = !p->turns && p->gained < p->turned / turn_rate;
    }
    return stays;
}
