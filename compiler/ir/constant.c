// SPDX-License-Identifier: MIT OR Apache-2.0
// Constants on demand: value_const() evaluates what only depends on constants.
//
// In: a value. Out: its elements, or NULL: it depends on inputs, or costs too much. They are remembered in `folded`
// without touching the node list, so that importers may ask while they build; pass_fold makes them final. The limits
// are work, not time, so that the same file always gives the same program: a small file may spend FREE_WORK, and each
// byte of constants that a file brings along allows more, as weights are turned, unpacked and scaled a few times.
#include "ir.h"

#define MAX_BYTES ((int64_t)1 << 30)            // of a value that is computed
#define FREE_BYTES ((int64_t)32 << 20)          // larger results may not be much larger than their operands
#define GROWTH 4
#ifndef FREE_WORK                               // less in the fuzzer's build, for more files a second
#define FREE_WORK ((int64_t)1 << 25)            // multiply-adds or elements: 1 to 30 ns each
#endif
#define WORK_PER_BYTE 64
#define NODE_WORK 128                           // of a node beside its elements
#define PRODUCT 16                              // multiply-adds of a matrix product that are one of anything else

Value *graph_given(Graph *g, Tensor *t, const char *name) {
    int64_t *given = &graph_root(g)->folding->given;
    if (__builtin_add_overflow(*given, type_bytes(&t->type), given)) *given = INT64_MAX;
    return graph_const(g, t, name);
}

static Tensor *known(const Value *v) { return v->data ? v->data : v->folded; }

// What a node costs to compute, at least 1 for each byte: they stay until the compilation ends. Saturates.
static int64_t work_of(const Node *n) {
    __int128 work = 0, bytes = 0;
    for (int i = 0; i < n->n_out; i++) {
        work += type_count(&n->out[i]->type);
        bytes += type_bytes(&n->out[i]->type);
    }
    work = work * op_table[n->op].work(n) / (n->op == OP_MatMul ? PRODUCT : 1);
    work = (work > bytes ? work : bytes) + NODE_WORK;
    return work > INT64_MAX ? INT64_MAX : (int64_t)work;
}

bool graph_spend(Graph *g, int64_t work) {
    Folding *f = graph_root(g)->folding;
    int64_t more = f->given > INT64_MAX / 2 / WORK_PER_BYTE ? INT64_MAX / 2 : f->given * WORK_PER_BYTE;
    if (!graph_root(g)->evaluated && work > FREE_WORK + more - f->spent) return false;
    f->spent += work;
    return true;
}

static bool affordable(const Node *n) {
    if (graph_spend(n->graph, work_of(n))) return true;
    Folding *f = graph_root(n->graph)->folding;
    if (!f->said)
        diag_warn(WARN_folding, n->loc,
            "computing what is constant takes too much from here on; the program computes the rest");
    f->said = true;
    return false;
}

static bool fold_allowed(const Node *n) {
    int64_t in = 0, out = 0;
    bool limits = !graph_root(n->graph)->evaluated;
    if (n->not_folded) return false;
    for (int i = 0; i < n->n_in; i++) {
        if (!n->in[i]) continue;
        if (!type_is_static(&n->in[i]->type)) return false;
        int64_t bytes = type_bytes(&n->in[i]->type);
        if (bytes > MAX_BYTES && limits) return false;
        in += bytes;
    }
    for (int i = 0; i < n->n_out; i++) {
        const Type *t = &n->out[i]->type;
        if (t->dtype == DT_NONE || !type_is_static(t) || (type_bytes(t) > MAX_BYTES && limits)) return false;
        out += type_bytes(t);
    }
    return !limits || out <= FREE_BYTES || out / GROWTH <= in;
}

// A composite is computed by expanding a copy of it over constants.
static bool eval_composite(const Node *n, Tensor *const *in, Tensor **out) {
    Graph *g = graph_new(n->graph->arena, "fold", n->graph->file);
    g->folding = graph_root(n->graph)->folding;
    g->evaluated = graph_root(n->graph)->evaluated;
    Value **args = NEW_ARRAY(g->arena, Value *, n->n_in), **results = NEW_ARRAY(g->arena, Value *, n->n_out);
    for (int i = 0; i < n->n_in; i++) args[i] = in[i] ? graph_const(g, in[i], NULL) : NULL;
    Node *copy = graph_node(g, n->op, n->n_in, args, n->n_out);
    copy->loc = n->loc;
    copy->attrs = n->attrs;
    copy->n_attrs = n->n_attrs;
    for (int i = 0; i < n->n_out; i++) copy->out[i]->type = n->out[i]->type;
    g->cursor = copy;
    if (!op_table[n->op].expand(copy, results)) return false;
    for (int i = 0; i < n->n_out; i++)
        if (!results[i] || !(out[i] = value_const(results[i]))) return false;
    return true;
}

// The same elements under another shape: they stay where they are.
static Tensor *view_of(Arena *a, const Node *n, const Tensor *in) {
    Tensor *t = NEW(a, Tensor);
    *t = (Tensor){ n->out[0]->type, in->data };
    return t;
}

static bool node_fold(Node *n) {
    Arena *a = n->graph->arena;
    if (!affordable(n)) return false;
    Tensor **in = NEW_ARRAY(a, Tensor *, n->n_in), **out = NEW_ARRAY(a, Tensor *, n->n_out);
    for (int i = 0; i < n->n_in; i++) {
        if (!n->in[i]) continue;
        in[i] = known(n->in[i]);
        if (in[i]) continue;
        in[i] = NEW(a, Tensor);                 // OP_Shape: asks for the type alone
        in[i]->type = n->in[i]->type;
    }
    if (n->op == OP_Identity || n->op == OP_Reshape) out[0] = view_of(a, n, in[0]);
    else if (op_table[n->op].kind == KIND_COMPOSITE) {
        if (!eval_composite(n, in, out)) return false;
    } else {
        for (int i = 0; i < n->n_out; i++) out[i] = tensor_new(a, n->out[i]->type);
        if (!op_table[n->op].eval(n, in, out)) return false;
    }
    for (int i = 0; i < n->n_out; i++) n->out[i]->folded = out[i];
    return true;
}

// A value from around the body that must be known first; NULL when there is none.
static Value *unknown_capture(const Graph *body, const Graph *around) {
    for (const Node *n = body->first; n; n = n->next) {
        for (int i = 0; i < n->n_in; i++)
            if (n->in[i] && n->in[i]->graph == around && !known(n->in[i])) return n->in[i];
        for (int i = 0; i < n->n_bodies; i++) {
            Value *v = unknown_capture(n->bodies[i], around);
            if (v) return v;
        }
    }
    for (int i = 0; i < body->outputs.n; i++)
        if (body->outputs.at[i]->graph == around && !known(body->outputs.at[i])) return body->outputs.at[i];
    return NULL;
}

static Value *unknown_operand(const Node *n) {
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i] && !known(n->in[i]) && n->op != OP_Shape) return n->in[i];
    for (const Graph *g = n->graph; g; g = g->parent)
        for (int i = 0; i < n->n_bodies; i++) {
            Value *v = unknown_capture(n->bodies[i], g);
            if (v) return v;
        }
    return NULL;
}

Tensor *value_const(Value *v) {
    if (!v) return NULL;
    if (known(v)) return known(v);
    Arena *scratch = arena_new();
    VEC(Value *) stack = { 0 };                 // each needs the one above it
    bool ok = true;
    VEC_PUSH(scratch, stack, v);
    while (ok && stack.n) {
        Value *top = stack.at[stack.n - 1];
        Node *n = top->def;
        Value *need = NULL;
        if (known(top)) stack.n--;
        else if (!n || !fold_allowed(n)) ok = false;
        else if ((need = unknown_operand(n))) VEC_PUSH(scratch, stack, need);
        else if (!node_fold(n)) {
            n->not_folded = true;
            ok = false;
        }
    }
    arena_free(scratch);
    return ok ? known(v) : NULL;
}
