// SPDX-License-Identifier: MIT OR Apache-2.0
// --lora R[:ALPHA]: low-rank adaptation (Hu et al. 2021) of linear layers.
//
//   y = x W   becomes   y = x W + ALPHA / R * (x A') B'      A: [R, in], B: [out, R], ' transposes
//
// In: an imported graph. Out, with --train: the same with these products, of whose constants A and B alone learn; W and
// all else stay constants. A begins as PyTorch's layers do, B with zeros, so that the model begins as it was. Without
// --train a file of weights has given A and B their numbers, and they are merged: W + ALPHA / R * A' B' is the layer's
// weight, and inference costs what it did. Their names are those of PEFT's files:
// base_model.model.MODULE.lora_A.weight.
#define _POSIX_C_SOURCE 200809L
#include "lora.h"
#include "build/build.h"
#include "head.h"

#include <math.h>
#include <regex.h>
#include <string.h>

// ---------------------------------------------------------------- which layers

static void freeze(Graph *g) {
    for (Node *n = g->first; n; n = n->next) {
        for (int i = 0; i < n->n_in; i++)
            if (n->in[i]) n->in[i]->trainable = false;
        for (int i = 0; i < n->n_bodies; i++) freeze(n->bodies[i]);
    }
}

void lora_freeze(Graph *g, const Options *o) {
    if (o && o->lora_rank) freeze(g);
}

static bool is_linear(const Node *n) {
    const Value *w = n->op == OP_MatMul ? head_constant(n->in[1]) : NULL;
    return w && n->in[1]->type.rank == 2 && type_is_static(&n->in[1]->type) && dtype_is_float(w->type.dtype);
}

static bool matches(const regex_t *re, const char *s) { return s && *s && !regexec(re, s, 0, NULL, 0); }

// "fc" of "fc.weight"; else by the path in the node's name; else a number
static const char *module_of(Arena *a, const Node *n, int number) {
    static const char weight[] = ".weight";
    const char *name = head_constant(n->in[1])->name, *path = module_path(a, node_label(n));
    size_t length = name ? strlen(name) : 0, end = sizeof weight - 1;
    if (length > end && !strcmp(name + length - end, weight)) return arena_strndup(a, name, length - end);
    return *path ? path : arena_printf(a, "linear_%d", number);
}

// ---------------------------------------------------------------- adding

static Value *matrix(Graph *g, const char *module, const char *which, DType d, int64_t rows, int64_t columns,
    const Draw *draw) {
    const char *name = arena_printf(g->arena, "base_model.model.%s.lora_%s.weight", module, which);
    Value *v = graph_drawn(g, name, type_make(d, 2, (Dim[]){ rows, columns }), draw);
    v->trainable = true;
    return v;
}

static bool adapt(Lora *l, Graph *g, const Options *o, Node *n) {
    const Type *w = &n->in[1]->type;
    const char *module = module_of(g->arena, n, l->at.n);
    double bound = w->dim[0] ? 1 / sqrt((double)w->dim[0]) : 0;
    LoraPair p = { 0 };
    g->cursor = n;
    g->loc = n->loc;
    p.a = matrix(g, module, "A", w->dtype, o->lora_rank, w->dim[0], &(Draw){ DRAW_UNIFORM, { -bound, bound } });
    p.b = matrix(g, module, "B", w->dtype, w->dim[1], o->lora_rank, &(Draw){ DRAW_FILL, { 0 } });
    Value *down = b_matmul(g, n->in[0], b_swap(g, p.a, 0, 1)), *up = b_swap(g, p.b, 0, 1);
    Value *product = b_matmul(g, n->in[0], n->in[1]);
    p.part = b_matmul(g, down, up);
    Value *scale = p.part ? b_like(g, p.part, o->lora_alpha / o->lora_rank) : NULL;
    p.part = b_binary(g, OP_Mul, p.part, scale);
    p.sum = b_binary(g, OP_Add, product, p.part);
    if (!p.sum) return false;
    p.product = product->def;
    p.sum->name = n->out[0]->name;
    graph_replace(g, n->out[0], p.sum);
    graph_remove(g, n);
    VEC_PUSH(g->arena, l->at, p);
    return true;
}

static bool adapt_all(Lora *l, Graph *g, const Options *o, const Node *head, const regex_t *re) {
    bool ok = true;
    for (Node *n = g->first, *next; n && ok; n = next) {
        next = n->next;
        if (n == head || !is_linear(n)) continue;
        if (!re || matches(re, node_label(n)) || matches(re, head_constant(n->in[1])->name)) ok = adapt(l, g, o, n);
    }
    g->cursor = NULL;
    g->loc = NULL;
    return ok;
}

bool lora_add(Lora *l, Graph *g, const Options *o, const Node *head) {
    char why[128];
    regex_t re;
    if (!o || !o->lora_rank) return true;
    int code = o->lora_on ? regcomp(&re, o->lora_on, REG_EXTENDED | REG_NOSUB) : 0;
    if (code) {
        regerror(code, &re, why, sizeof why);
        diag_error_as(EXIT_USAGE, NULL, "--lora-on %s: %s", o->lora_on, why);
        return false;
    }
    bool ok = adapt_all(l, g, o, head, o->lora_on ? &re : NULL);
    if (o->lora_on) regfree(&re);
    if (ok && !l->at.n)
        diag_error_as(EXIT_USAGE, NULL, "--lora: no linear layer of constant weights%s%s",
            o->lora_on ? " matches " : "", o->lora_on ? o->lora_on : "");
    else if (ok)
        diag_note(&(Loc){ .file = g->file, .node = -1 }, "%d linear layers have matrices of rank %d beside them",
            l->at.n, o->lora_rank);
    return ok && l->at.n;
}

// ---------------------------------------------------------------- merging

// W + scale * A' B' as a constant in the order in which the model has W.
static Value *merged(Graph *g, const Options *o, const LoraPair *p) {
    Value *w = p->product->in[1], *root = head_constant(w);
    Tensor *was = value_const(w), *a = value_const(p->a), *b = value_const(p->b);
    if (!was || !a || !b) return graph_fail(g, "--lora: the weights of a linear layer are not known");
    bool turned = w->def && w->def->op == OP_Transpose && !w->def->in[0]->def;
    int64_t in = w->type.dim[0], out = w->type.dim[1];
    const Dim dims[] = { turned ? out : in, turned ? in : out };
    Tensor *t = tensor_new(g->arena, type_make(w->type.dtype, 2, dims));
    for (int64_t i = 0; i < in; i++)
        for (int64_t j = 0; j < out; j++) {
            double sum = 0;
            for (int64_t r = 0; r < o->lora_rank; r++)
                sum += tensor_get_f(a, r * in + i) * tensor_get_f(b, j * o->lora_rank + r);
            sum = tensor_get_f(was, i * out + j) + o->lora_alpha / o->lora_rank * sum;
            tensor_set_f(t, turned ? j * in + i : i * out + j, sum);
        }
    Value *v = graph_const(g, t, root->name);
    v->trainable = root->trainable;
    return turned ? b_swap(g, v, 0, 1) : v;
}

// v's node and those before it that nobody else reads.
static void drop(Graph *g, Value *v) {
    Arena *scratch = arena_new();
    Node *n = v && v->def && !graph_use_counts(g, scratch)[v->id] ? v->def : NULL;
    Value *in[2] = { n ? n->in[0] : NULL, n && n->n_in > 1 ? n->in[1] : NULL };
    arena_free(scratch);
    if (!n) return;
    graph_remove(g, n);
    for (size_t i = 0; i < COUNT(in); i++) drop(g, in[i]);
}

bool lora_merge(const Lora *l, Graph *g, const Options *o) {
    for (int i = 0; i < l->at.n && !o->train; i++) {
        const LoraPair *p = &l->at.at[i];
        Value *was = p->product->in[1];
        g->cursor = p->product;
        g->loc = p->product->loc;
        Value *w = merged(g, o, p);
        if (!w) return false;
        p->product->in[1] = w;
        p->product->out[0]->name = p->sum->name;
        graph_replace(g, p->sum, p->product->out[0]);
        drop(g, p->sum);
        drop(g, was);
    }
    g->cursor = NULL;
    g->loc = NULL;
    return true;
}
