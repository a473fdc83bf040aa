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

// Taylor's series in x, which is a square; no term waits for the one before it.
static inline double series(const double c[8], double x) {
    double square = x * x, low = c[0] + c[1] * x + (c[2] + c[3] * x) * square,
           high = c[4] + c[5] * x + (c[6] + c[7] * x) * square;
    return low + high * (square * square);
}

// Box and Muller: normal numbers at..at + 2 * PAIRS - 1, a pair from two uniform ones. Pairs are in loops of their own
// for what is bits and what is arithmetic, which then goes several at a time. The logarithm is 2 artanh((m - 1) /
// (m + 1)) of the mantissa and some ln 2; cosine and sine are of up to an eighth of a turn, the rest by symmetry. They
// are no library's: those differ from machine to machine in the last bits.
enum { PAIRS = 32 };

static void normals(uint64_t key, uint64_t at, double out[2 * PAIRS]) {
    static const double artanh[8] = { 1, 1.0 / 3, 1.0 / 5, 1.0 / 7, 1.0 / 9, 1.0 / 11, 1.0 / 13, 1.0 / 15 };
    static const double cosines[8] = { 1, -1.0 / 2, 1.0 / 24, -1.0 / 720, 1.0 / 40320, -1.0 / 3628800,
        1.0 / 479001600, -1.0 / 87178291200 };
    static const double sines[8] = { 1, -1.0 / 6, 1.0 / 120, -1.0 / 5040, 1.0 / 362880, -1.0 / 39916800,
        1.0 / 6227020800, -1.0 / 1307674368000 };
    const int64_t root = INT64_C(0x3fe6a09e667f3bcd);   // the bits of sqrt(1/2), from which a mantissa counts
    double exponent[PAIRS], mantissa[PAIRS], turn[PAIRS], square[PAIRS], c[PAIRS], s[PAIRS];
    int quarter[PAIRS];
    for (int i = 0; i < PAIRS; i++) {
        double u = uniform(key, at + 2 * (uint64_t)i);
        int64_t bits, whole;
        memcpy(&bits, &u, sizeof bits);
        whole = (bits - root) >> 52;
        bits -= whole * (INT64_C(1) << 52);
        memcpy(&mantissa[i], &bits, sizeof bits);
        exponent[i] = (double)whole;
        turn[i] = 4 * uniform(key, at + 2 * (uint64_t)i + 1);
        quarter[i] = (int)(turn[i] + 0.5);
        turn[i] -= quarter[i];
    }
    for (int i = 0; i < PAIRS; i++) {
        double m = (mantissa[i] - 1) / (mantissa[i] + 1), a = turn[i] * 1.57079632679489661923;
        square[i] = exponent[i] * 0.693147180559945309417 + 2 * m * series(artanh, m * m);
        c[i] = series(cosines, a * a);
        s[i] = a * series(sines, a * a);
    }
    for (int i = 0; i < PAIRS; i++) {
        const double r = sqrt(-2 * square[i]), ways[4] = { c[i], -s[i], -c[i], s[i] };
        out[2 * i] = r * ways[quarter[i] & 3];
        out[2 * i + 1] = r * ways[(quarter[i] + 3) & 3];
    }
}

static double normal(uint64_t key, uint64_t at) {
    double some[2 * PAIRS];
    normals(key, at & ~UINT64_C(1), some);
    return some[at & 1];
}

// Normal, but drawn again beyond two deviations; v is the first draw, of mixed(key).
static double truncated(uint64_t key, uint64_t at, double v) {
    for (uint64_t again = 1; fabs(v) > 2 && again <= 64; again++) v = normal(mixed(key + again), at);
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
    double *m = NEW_ARRAY(scratch, double, n + 2 * PAIRS);
    for (int64_t i = 0; i < n; i += 2 * PAIRS) normals(key, (uint64_t)i, m + i);
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
    bool pairs = d->kind == DRAW_NORMAL || d->kind == DRAW_TRUNCATED || d->kind == DRAW_PADDED;
    double drawn[2 * PAIRS];
    for (int64_t i = 0; i < n && d->kind != DRAW_ORTHOGONAL; i++) {
        double v = d->of[0];
        int64_t at = i % (2 * PAIRS);
        if (pairs && at == 0) normals(d->kind == DRAW_TRUNCATED ? mixed(key) : key, (uint64_t)i, drawn);
        switch (d->kind) {
        case DRAW_UNIFORM: v += (d->of[1] - d->of[0]) * uniform(key, (uint64_t)i); break;
        case DRAW_NORMAL: v += d->of[1] * drawn[at]; break;
        case DRAW_TRUNCATED: v += d->of[1] * truncated(key, (uint64_t)i, drawn[at]); break;
        case DRAW_PADDED: v = (double)(i / row) == d->of[2] ? 0 : v + d->of[1] * drawn[at]; break;
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
