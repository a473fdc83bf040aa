// SPDX-License-Identifier: MIT OR Apache-2.0
// A graph as it is quantized: folded, simplified, and without batch normalization behind convolutions.
//
// In: an imported graph. Out: the same function; weights that were multiplied into others keep their names.
#include "passes/passes.h"
#include "quantize/quantize.h"
#include "target/backend.h"

static bool claims(const Node *n, const Options *o) { return (void)o, n->op != OP_BatchNorm; }

// The name of the parameter that weights are made of.
static const char *name_of_weight(const Value *v) {
    while (v && !v->name && v->def && v->def->n_in) v = v->def->in[0];
    return v && !v->is_input ? v->name : NULL;
}

typedef struct Named { const Loc *loc; const char *name; } Named;
typedef VEC(Named) Names;

static bool takes_weights(const Node *n) { return n->op == OP_Conv || n->op == OP_MatMul; }

static void give_names(const Graph *g, const Names *names) {
    for (Node *n = g->first; n; n = n->next)
        for (int i = 0; i < names->n && takes_weights(n) && n->loc && n->in[1]->data; i++) {
            if (names->at[i].loc != n->loc) continue;
            if (!n->in[1]->name) n->in[1]->name = names->at[i].name;
            n->in[1]->trainable = true;                 // as what it is made of
        }
}

bool quant_prepare(Graph *g, const Options *o) {
    static const Backend whole = { .name = "quantize", .sizes = true, .claims = claims };
    Options as = *o;
    Names names = { 0 };
    as.machine.backend = &whole;
    for (Node *n = g->first; n; n = n->next)
        if (takes_weights(n) && n->loc) VEC_PUSH(g->arena, names, (Named){ n->loc, name_of_weight(n->in[1]) });
    if (o->dims.n && !bind_given(g, o)) return false;
    if (!passes_canon(g, &as)) return false;
    pass_expand(g, &as);
    pass_fold(g);
    pass_simplify(g);
    pass_fold_conv(g);
    pass_fold(g);
    pass_simplify(g);
    pass_dce(g);
    give_names(g, &names);
    return !diag_errors();
}
