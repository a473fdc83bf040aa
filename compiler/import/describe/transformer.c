// SPDX-License-Identifier: MIT OR Apache-2.0
// Transformer layers made of this language's own calls, with PyTorch's names of their parameters; positions.
//
// In: a sequence [batch, length, features] and a layer's options. Out: the same shape.
#include "import/describe/describe.h"

#include <math.h>
#include <string.h>

typedef struct Layer { const burn_place *at; const struct burn_transformer *o; int norms; } Layer;

// Another call at this place, a part of the layer: its parameters are the layer's name, a dot, theirs.
static burn_place inner(const Layer *l, const char *call) {
    burn_place p = *l->at;
    p.call = call;
    return p;
}
static const char *part_name(const Layer *l, const char *part) {
    return arena_printf(describing->arena, "%s.%s", l->o->name, part);
}

static Value *norm(Layer *l, Value *x) {
    burn_place at = inner(l, "layer_norm");
    const char *name = part_name(l, arena_printf(describing->arena, "norm%d", ++l->norms));
    return language_normalize(&at, x, &(struct burn_norm){ .name = name, .eps = l->o->eps });
}

static Value *self(Layer *l, Value *x) {
    burn_place at = inner(l, "multi_head_attention");
    return language_attention(&at, x, &(struct burn_attention){ .name = part_name(l, "self_attn"), .heads = l->o->heads,
        .mask = l->o->mask, .causal = l->o->causal });
}

static Value *crossed(Layer *l, Value *x) {
    burn_place at = inner(l, "multi_head_attention");
    return language_attention(&at, x, &(struct burn_attention){ .name = part_name(l, "multihead_attn"),
        .heads = l->o->heads, .key = l->o->memory, .mask = l->o->memory_mask });
}

static Value *feed_forward(Layer *l, Value *x) {
    burn_place at = inner(l, "linear"), between = inner(l, l->o->activation ? l->o->activation : "relu");
    burn_dim features = x ? dim_out(x->type.dim[x->type.rank - 1]) : 1, wide = l->o->wide ? l->o->wide : 2048;
    x = language_linear(&at, x, &(struct burn_linear){ .name = part_name(l, "linear1"), .features = wide });
    x = language_map(&between, 1, &(burn_arg){ .tensor = x });
    return language_linear(&at, x, &(struct burn_linear){ .name = part_name(l, "linear2"), .features = features });
}

typedef Value *Part(Layer *l, Value *x);
static Value *added(Layer *l, Value *x, Part *part) {
    Graph *g = describing->g;
    if (l->o->norm_first == 1) return b_binary(g, OP_Add, x, part(l, norm(l, x)));
    return norm(l, b_binary(g, OP_Add, x, part(l, x)));
}

burn_value *language_transformer(const burn_place *at, burn_value *x, const struct burn_transformer *o) {
    static const char *const activations[] = { "relu", "gelu", "gelu_tanh", "silu" };
    Graph *g = here(at, o->name);
    Layer l = { at, o, 0 };
    bool decoder = strstr(at->call, "decoder") != NULL;
    size_t known = 0;
    if (!x) return NULL;
    if (!o->name || !*o->name) return graph_fail(g, "a layer needs a name");
    if (decoder && !o->memory) return graph_fail(g, "wants what the encoder gave: .memory = x");
    while (o->activation && known < COUNT(activations) && strcmp(activations[known], o->activation)) known++;
    if (known == COUNT(activations))
        return graph_fail(g, "there is no activation \"%s\" here; there are relu, gelu, gelu_tanh, silu",
            o->activation);
    x = added(&l, x, self);
    if (decoder) x = added(&l, x, crossed);
    return added(&l, x, feed_forward);
}

// x + sines and cosines of the positions: element 2 i turns by base^(-2 i / features), 2 i + 1 is its cosine
burn_value *language_positional(const burn_place *at, burn_value *x, double base) {
    Graph *g = here(at, NULL);
    int64_t features;
    if (!x) return NULL;
    if (x->type.rank < 2)
        return graph_fail(g, "wants [..., length, features], not %s", type_text(g->arena, g, &x->type));
    if (!number_in(dim_out(x->type.dim[x->type.rank - 1]), "the number of features", &features)) return NULL;
    double *rate = NEW_ARRAY(g->arena, double, features), *even = NEW_ARRAY(g->arena, double, features);
    for (int64_t i = 0; i < features; i++) {
        rate[i] = pow(base, -(double)(i - i % 2) / (double)features);
        even[i] = i % 2 ? 0.0 : 1.0;
    }
    DType d = x->type.dtype;
    Dim square[2] = { x->type.dim[x->type.rank - 2], features };
    Value *position = b_iota(g, 2, square, 0, d), *turn = b_floats(g, d, 1, &features, rate);
    Value *sine = b_floats(g, d, 1, &features, even);
    Value *wave = B_MAP(g, "z > 0 ? sin(x * y) : cos(x * y)", "x y z", position, turn, sine);
    return b_binary(g, OP_Add, x, wave);
}
