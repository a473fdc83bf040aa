// SPDX-License-Identifier: MIT OR Apache-2.0
// Constant weights of a convolution with the channels last lie channel beside channel: those of a depthwise one, where
// a loop over channels computes it, and those of each result, where the back end finds products in loops. Contract: the
// same bits; runs last, as folding would take it back.
//
//   before   %2: i32[1,25,5,64] = Conv(%0, %1) {channels_last=1, group=64}       %1: i8[64,1,3,3], a constant
//   after    %3: i8[64,1,3,3] = Transpose(%4) {perm=[3,2,0,1]}                   %4: i8[3,3,1,64], a constant
//            %2: i32[1,25,5,64] = Conv(%0, %3) {channels_last=1, group=64}
//
// The loop's vectors then read both factors from consecutive addresses; a template packs weights by itself. Of weights
// that learn a run makes one copy in that order, which its convolutions read, those of gradients through the views that
// they had of the parameter:
//
//   before   %2: f32[1,9,9,8] = Conv(%0, %1) {channels_last=1}                    %1: f32[8,16,3,3] @param
//   after    %3: f32[8,3,3,16] = Identity(Transpose(%1)) {stored=1}
//            %4: f32[8,16,3,3] = Transpose(%3)
//            %2: f32[1,9,9,8] = Conv(%0, %4) {channels_last=1}
//
// A constant matrix of bytes lies term beside term where words of four terms are multiplied:
//
//   before   %2: i32[40,96] = MatMul(%0, %1)                                      %1: i8[128,96], a constant
//   after    %3: i8[128,96] = Transpose(%4) {perm=[1,0]}                          %4: i8[96,128], a constant
//            %2: i32[40,96] = MatMul(%0, %3)
#include "passes.h"

enum { FEW_CHANNELS = 8 };                              // an image's: neighbours are read along a window's rows there

typedef struct Laying { const Options *options; Arena *scratch; Value **copies; } Laying;    // by id of a parameter

// What a view shows, through all views.
static Value *shown(Value *v) {
    while (v->def && op_is_view(v->def->op)) v = v->def->in[0];
    return v;
}

static bool learns(const Graph *g, Value *w) {
    const Value *p = shown(w);
    return !p->data && p->role == ROLE_PARAM && p->graph == g && p->type.rank == w->type.rank
        && type_is_static(&p->type) && p->type.dim[1] >= FEW_CHANNELS;
}

static bool strided(const Graph *g, const Node *n, const Options *o) {
    const Backend *b = o->machine.backend;
    if (n->op != OP_Conv || !node_int(n, "channels_last", 0)) return false;
    Value *w = n->in[1];
    const bool in_loops = b->windows_in_loops && w->type.dim[1] >= FEW_CHANNELS;
    if (!w->data) return in_loops && learns(g, w);
    return w->type.dim[1] > 1 ? in_loops : node_int(n, "group", 1) > 1 && !b->has_template(n, o);
}

static void order_of(const Type *w, int *order, int *back) {
    const int rank = w->rank;
    const bool depthwise = w->dim[1] == 1;              // [taps, 1, channels]; else [results, taps, channels]
    for (int i = 0; i < rank; i++)
        order[i] = !depthwise ? (i == 0 ? 0 : i < rank - 1 ? i + 1 : 1) : i < rank - 2 ? i + 2 : rank - 1 - i;
    for (int i = 0; i < rank; i++) back[order[i]] = i;
}

// A constant matrix of bytes, where the back end multiplies words of four terms.
static bool of_words(const Node *n, const Options *o) {
    return o->machine.backend->channels_last_of_bytes && n->op == OP_MatMul && node_of_bytes(n) && n->in[1]->data
        && n->in[1]->type.rank > 1;
}

// Term beside term.
static Value *turned(Graph *g, Value *w) {
    const int rank = w->type.rank;
    int swap[MAX_RANK];
    for (int i = 0; i < rank; i++) swap[i] = i < rank - 2 ? i : 2 * rank - 3 - i;
    Tensor *t = value_const(b_transpose(g, w, swap));
    return t ? b_transpose(g, graph_const(g, t, w->name), swap) : NULL;
}

static Value *laid(Graph *g, Value *w) {
    int order[MAX_RANK], back[MAX_RANK];
    order_of(&w->type, order, back);
    Tensor *t = value_const(b_transpose(g, w, order));
    return t ? b_transpose(g, graph_const(g, t, w->name), back) : NULL;
}

// The same view, of the parameter's copy.
static Value *laid_view(Laying *l, Graph *g, Value *w) {
    int order[MAX_RANK], back[MAX_RANK];
    if (w->def) {
        Value *in[MAX_RANK] = { laid_view(l, g, w->def->in[0]) };
        for (int i = 1; i < w->def->n_in; i++) in[i] = w->def->in[i];
        Node *view = in[0] ? node_like(g, w->def, in) : NULL;
        return view ? b_finish(view) : NULL;
    }
    order_of(&w->type, order, back);
    Value **copy = &l->copies[w->id];
    if (!*copy) {
        Value *turned = b_transpose(g, w, order);
        *copy = turned ? b_stored(g, turned) : NULL;
    }
    return *copy ? b_transpose(g, *copy, back) : NULL;
}

static bool lay(Laying *l, Graph *g) {
    bool changed = false;
    for (Node *n = g->first; n; n = n->next) {
        for (int i = 0; i < n->n_bodies; i++) changed |= lay(l, n->bodies[i]);
        const bool words = of_words(n, l->options);
        if (!words && !strided(g, n, l->options)) continue;
        g->cursor = n;
        g->loc = n->loc;
        Value *w = words ? turned(g, n->in[1]) : n->in[1]->data ? laid(g, n->in[1]) : laid_view(l, g, n->in[1]);
        if (!w) continue;
        n->in[1] = w;
        changed = true;
    }
    g->cursor = NULL;
    return changed;
}

bool pass_lay_taps(Graph *g, const Options *o) {
    Laying l = { .options = o, .scratch = arena_new() };
    l.copies = NEW_ARRAY(l.scratch, Value *, graph_root(g)->value_count);
    bool changed = lay(&l, g);
    arena_free(l.scratch);
    return changed;
}
