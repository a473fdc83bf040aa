// SPDX-License-Identifier: MIT OR Apache-2.0
// Constant weights of a convolution with the channels last lie channel beside channel: those of a depthwise one, where
// a loop over channels computes it, and those of each result, where the back end finds products in loops. Contract: the
// same bits; runs last, as folding would take it back.
//
//   before   %2: i32[1,25,5,64] = Conv(%0, %1) {channels_last=1, group=64}       %1: i8[64,1,3,3], a constant
//   after    %3: i8[64,1,3,3] = Transpose(%4) {perm=[3,2,0,1]}                   %4: i8[3,3,1,64], a constant
//            %2: i32[1,25,5,64] = Conv(%0, %3) {channels_last=1, group=64}
//
// The loop's vectors then read both factors from consecutive addresses; a template packs weights by itself.
#include "passes.h"

enum { FEW_CHANNELS = 8 };                              // an image's: neighbours are read along a window's rows there

static bool strided(const Node *n, const Options *o) {
    const Backend *b = o->machine.backend;
    if (n->op != OP_Conv || !node_int(n, "channels_last", 0) || !n->in[1]->data) return false;
    return n->in[1]->type.dim[1] > 1 ? b->windows_in_loops && n->in[1]->type.dim[1] >= FEW_CHANNELS :
                                       node_int(n, "group", 1) > 1 && !b->has_template(n, o);
}

static Value *laid(Graph *g, Value *w) {
    const int rank = w->type.rank;
    const bool depthwise = w->type.dim[1] == 1;         // [taps, 1, channels]; else [results, taps, channels]
    int order[MAX_RANK], back[MAX_RANK];
    for (int i = 0; i < rank; i++)
        order[i] = !depthwise ? (i == 0 ? 0 : i < rank - 1 ? i + 1 : 1) : i < rank - 2 ? i + 2 : rank - 1 - i;
    for (int i = 0; i < rank; i++) back[order[i]] = i;
    Tensor *t = value_const(b_transpose(g, w, order));
    return t ? b_transpose(g, graph_const(g, t, w->name), back) : NULL;
}

static bool lay(Graph *g, const Options *o) {
    bool changed = false;
    for (Node *n = g->first; n; n = n->next) {
        for (int i = 0; i < n->n_bodies; i++) changed |= lay(n->bodies[i], o);
        if (!strided(n, o)) continue;
        g->cursor = n;
        g->loc = n->loc;
        Value *w = laid(g, n->in[1]);
        if (!w) continue;
        n->in[1] = w;
        changed = true;
    }
    g->cursor = NULL;
    return changed;
}

bool pass_lay_taps(Graph *g, const Options *o) { return lay(g, o); }
