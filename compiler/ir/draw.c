// SPDX-License-Identifier: MIT OR Apache-2.0
// Parameters that begin as random numbers: what they are drawn from is part of a graph, the numbers are made last.
//
// In: a graph with constants that have no data but a Draw. Out: their data. The idea: a number is a function of (seed,
// the parameter's name, its place in the tensor) by a counter-based generator, so a parameter begins the same whatever
// stands before it in the model, and what a file of weights gives is never drawn at all.
#include "ir.h"

#include <math.h>
#include <string.h>

static const char *const draw_names[DRAW_COUNT] = { "fill", "uniform", "normal", "truncated", "padded",
    "orthogonal" };
static const int draw_numbers[DRAW_COUNT] = { 1, 2, 2, 2, 3, 1 };

const char *draw_name(DrawKind k) { return draw_names[k]; }
int draw_count(DrawKind k) { return draw_numbers[k]; }

bool draw_find(const char *name, DrawKind *out) {
    int i = 0;
    while (i < DRAW_COUNT && strcmp(name, draw_names[i])) i++;
    *out = (DrawKind)i;
    return i < DRAW_COUNT;
}

Value *graph_drawn(Graph *g, const char *name, Type t, const Draw *d) {
    Value *v = graph_const(g, arena_copy(g->arena, &(Tensor){ .type = t }, sizeof(Tensor)), name);
    v->data = NULL;
    v->draw = arena_copy(g->arena, d, sizeof *d);
    return v;
}

// ---------------------------------------------------------------- numbers

static uint64_t mixed(uint64_t x) {             // splitmix64's output function
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static uint64_t key_of(const char *name, uint64_t seed) {
    uint64_t key = UINT64_C(0xcbf29ce484222325);
    for (; *name; name++) key = (key ^ (uint8_t)*name) * UINT64_C(0x100000001b3);
    return mixed(key + mixed(seed + UINT64_C(0x9e3779b97f4a7c15)));
}

static double uniform(uint64_t key, uint64_t at) {      // above 0, below 1
    uint64_t bits = mixed(key + (at + 1) * UINT64_C(0x9e3779b97f4a7c15));
    return ((double)(bits >> 11) + 0.5) * 0x1p-53;
}

static double normal(uint64_t key, uint64_t at) {       // Box and Muller: a pair from two uniform numbers
    double r = sqrt(-2 * log(uniform(key, at & ~UINT64_C(1)))),
           turn = 6.283185307179586476925 * uniform(key, at | 1);
    return r * (at & 1 ? sin(turn) : cos(turn));
}

// Normal, but drawn again beyond two deviations.
static double truncated(uint64_t key, uint64_t at) {
    double v;
    uint64_t again = 0;
    do v = normal(mixed(key + again), at);
    while (fabs(v) > 2 && again++ < 64);
    return v;
}

// The rows (of a matrix [first, rest], or its columns if there are more rows) become an orthonormal system: modified
// Gram-Schmidt, twice, which is as good as a reflection's.
static void orthonormal(double *m, int64_t count, int64_t size) {
    for (int64_t i = 0; i < count; i++) {
        double *row = m + i * size, square = 0;
        for (int64_t pass = 0; pass < 2; pass++)
            for (int64_t j = 0; j < i; j++) {
                double dot = 0;
                for (int64_t k = 0; k < size; k++) dot += row[k] * m[j * size + k];
                for (int64_t k = 0; k < size; k++) row[k] -= dot * m[j * size + k];
            }
        for (int64_t k = 0; k < size; k++) square += row[k] * row[k];
        for (int64_t k = 0; k < size; k++) row[k] /= sqrt(square);
    }
}

static void draw_orthogonal(Tensor *t, uint64_t key, double gain) {
    int64_t n = type_count(&t->type), rows = t->type.rank ? t->type.dim[0] : 1, columns = rows ? n / rows : 0;
    bool turned = rows > columns;
    int64_t count = turned ? columns : rows, size = turned ? rows : columns;
    Arena *scratch = arena_new();
    double *m = NEW_ARRAY(scratch, double, n + 1);
    for (int64_t i = 0; i < n; i++) m[i] = normal(key, (uint64_t)i);
    orthonormal(m, count, size);
    for (int64_t i = 0; i < n; i++)
        tensor_set_f(t, i, gain * m[turned ? i % columns * size + i / columns : i]);
    arena_free(scratch);
}

Tensor *draw_tensor(Arena *a, Type type, const Draw *d, const char *name, uint64_t seed) {
    Tensor *t = tensor_new(a, type);
    uint64_t key = key_of(name ? name : "", seed);
    int64_t n = type_count(&type), row = type.rank ? n / max64(type.dim[0], 1) : 1;
    if (d->kind == DRAW_ORTHOGONAL) draw_orthogonal(t, key, d->of[0]);
    for (int64_t i = 0; i < n && d->kind != DRAW_ORTHOGONAL; i++) {
        double v = d->of[0];
        switch (d->kind) {
        case DRAW_UNIFORM: v += (d->of[1] - d->of[0]) * uniform(key, (uint64_t)i); break;
        case DRAW_NORMAL: v += d->of[1] * normal(key, (uint64_t)i); break;
        case DRAW_TRUNCATED: v += d->of[1] * truncated(key, (uint64_t)i); break;
        case DRAW_PADDED: v = (double)(i / row) == d->of[2] ? 0 : v + d->of[1] * normal(key, (uint64_t)i); break;
        default: break;
        }
        tensor_set_f(t, i, v);
    }
    return t;
}

void graph_fill(Graph *g, Value *v, Tensor *t) {
    if (v->draw) graph_root(g)->folding->given += type_bytes(&v->type);
    v->data = t;
    v->draw = NULL;
}

// Some numbers again and again: no pass takes them for one number, or for another parameter's.
static Tensor *repeated(Arena *a, Type type, const Draw *d, const char *name) {
    enum { PERIOD = 4093 };
    int64_t n = type_count(&type), size = (int64_t)dtype_size(type.dtype);
    if (d->kind == DRAW_FILL || n <= PERIOD) return draw_tensor(a, type, d, name, 0);
    Tensor *t = tensor_new(a, type), *first = draw_tensor(a, type_make(type.dtype, 1, (Dim[]){ PERIOD }), d, name, 0);
    for (int64_t i = 0; i < n; i += PERIOD)
        memcpy((char *)t->data + i * size, first->data, (size_t)((n - i < PERIOD ? n - i : PERIOD) * size));
    return t;
}

typedef struct Drawing { Graph *root; uint64_t seed; bool unseen; } Drawing;

static void draw_value(const Drawing *how, Value *v) {
    Arena *a = how->root->arena;
    if (!v || !v->draw) return;
    graph_fill(how->root, v, how->unseen ? repeated(a, v->type, v->draw, v->name) :
                                           draw_tensor(a, v->type, v->draw, v->name, how->seed));
}

static void draw_in(const Drawing *how, const Graph *g) {
    for (const Node *n = g->first; n; n = n->next) {
        for (int i = 0; i < n->n_in; i++) draw_value(how, n->in[i]);
        for (int i = 0; i < n->n_bodies; i++) draw_in(how, n->bodies[i]);
    }
    for (int i = 0; i < g->outputs.n; i++) draw_value(how, g->outputs.at[i]);
}

void graph_draw(Graph *g, uint64_t seed) { draw_in(&(Drawing){ .root = g, .seed = seed }, g); }
void graph_draw_unseen(Graph *g) { draw_in(&(Drawing){ .root = g, .unseen = true }, g); }
