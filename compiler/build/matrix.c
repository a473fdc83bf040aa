// SPDX-License-Identifier: MIT OR Apache-2.0
// Builders on matrices beyond their product: Einstein sums, determinants and inverses.
//
// In: operands. Out: MatMul with reshapes and transposes around it; a loop that eliminates. The idea of an Einstein
// sum: operands are contracted in pairs from the left; labels of a pair are batch (in both and still needed),
// contracted (in both, needed no more) or free, which is a batched matrix product.
#include "build/build.h"

#include <string.h>

// ---------------------------------------------------------------- Einstein sums

#define ELLIPSIS 64             // labels from here on are the dimensions that "..." stands for, counted from the last
#define MAX_LABELS (ELLIPSIS + MAX_RANK)

typedef struct Labels { int n; int at[MAX_RANK]; } Labels;

typedef struct Summand { Value *v; Labels labels; } Summand;

static int find_label(const Labels *l, int label) {
    for (int i = 0; i < l->n; i++)
        if (l->at[i] == label) return i;
    return -1;
}

static int label_of(char c) { return c >= 'a' && c <= 'z' ? c - 'a' : c >= 'A' && c <= 'Z' ? 26 + c - 'A' : -1; }

// Reads one term such as "b...ij". rank: of its operand, or the number of dimensions that "..." stands for in the
// output as -1 - count.
static bool read_labels(Graph *g, const char **s, int rank, Labels *out) {
    int letters = 0, dots = 0;
    for (const char *p = *s; *p && *p != ',' && *p != '-'; p++) {
        letters += label_of(*p) >= 0;
        dots += *p == '.';
    }
    int hidden = !dots ? 0 : rank < 0 ? -1 - rank : rank - letters;
    bool ok = (dots == 0 || dots == 3) && hidden >= 0 && letters + hidden <= MAX_RANK
        && (rank < 0 || letters + hidden == rank);
    for (out->n = 0; ok && **s && **s != ',' && **s != '-'; (*s)++) {
        if (label_of(**s) >= 0) out->at[out->n++] = label_of(**s);
        else if (!strncmp(*s, "...", 3)) {
            *s += 2;
            for (int i = hidden; i-- > 0;) out->at[out->n++] = ELLIPSIS + i;
        } else if (**s != ' ') ok = false;
    }
    if (!ok) graph_fail(g, "attribute \"equation\" does not fit the operands near \"%s\"", *s);
    return ok;
}

// A label that an operand repeats: its diagonal. The two axes become one of size d*d, of which every (d+1)-th element
// stays.
static bool take_diagonals(Graph *g, Summand *t) {
    for (int i = 0; i < t->labels.n; i++) {
        for (int j = i + 1; j < t->labels.n; j++) {
            if (t->labels.at[i] != t->labels.at[j]) continue;
            int rank = t->labels.n, perm[MAX_RANK], k = 0;
            const Type *from = &t->v->type;
            Dim d = from->dim[i], dims[MAX_RANK];
            if (!dim_is_const(d) || d != from->dim[j])
                return graph_fail(g, "a repeated label wants equal and known sizes"), false;
            Labels labels = { 0 };
            for (int a = 0; a < rank; a++) {
                if (a == i || a == j) continue;
                perm[k] = a;
                dims[k++] = from->dim[a];
                labels.at[labels.n++] = t->labels.at[a];
            }
            labels.at[labels.n++] = t->labels.at[i];
            perm[k] = i;
            perm[k + 1] = j;
            dims[k] = d * d;
            int64_t starts[MAX_RANK] = { 0 }, steps[MAX_RANK];
            for (int a = 0; a <= k; a++) steps[a] = a == k ? d + 1 : 1;
            Value *v = b_reshape(g, b_transpose(g, t->v, perm), k + 1, dims);
            dims[k] = d;
            t->v = b_slice(g, v, starts, steps, dims);
            if (!t->v) return false;
            t->labels = labels;
            j = i;
        }
    }
    return true;
}

// Sums out what nobody needs any more.
static bool sum_unneeded(Graph *g, Summand *t, const bool *needed) {
    int64_t axes[MAX_RANK];
    int count = 0;
    Labels kept = { 0 };
    for (int i = 0; i < t->labels.n; i++) {
        if (needed[t->labels.at[i]]) kept.at[kept.n++] = t->labels.at[i];
        else axes[count++] = i;
    }
    t->labels = kept;
    t->v = b_reduce(g, OP_ReduceSum, t->v, count, axes, false);
    return t->v != NULL;
}

// Transposes to batch, first, second; sizes of the three groups multiplied.
static Value *as_matrix(
    Graph *g, const Summand *t, const Labels *batch, const Labels *first, const Labels *second, const Dim *size) {
    int perm[MAX_RANK], k = 0;
    const Labels *groups[3] = { batch, first, second };
    Dim dims[3] = { 1, 1, 1 }, wide[MAX_RANK];
    for (int group = 0; group < 3; group++)
        for (int i = 0; i < groups[group]->n; i++) {
            int label = groups[group]->at[i];
            perm[k] = find_label(&t->labels, label);
            wide[k++] = size[label];
            dims[group] = dim_mul(g, dims[group], size[label]);
        }
    Value *v = b_expand(g, b_transpose(g, t->v, perm), k, wide);
    return b_reshape(g, v, 3, dims);
}

static bool contract_pair(Graph *g, Summand *a, const Summand *b, const bool *needed, const Dim *size) {
    Labels batch = { 0 }, contracted = { 0 }, left = { 0 }, right = { 0 }, out = { 0 };
    for (int i = 0; i < a->labels.n; i++) {
        int label = a->labels.at[i];
        Labels *to = find_label(&b->labels, label) < 0 ? &left : needed[label] ? &batch : &contracted;
        to->at[to->n++] = label;
    }
    for (int i = 0; i < b->labels.n; i++)
        if (find_label(&a->labels, b->labels.at[i]) < 0) right.at[right.n++] = b->labels.at[i];
    if (batch.n + left.n + right.n > MAX_RANK)
        return graph_fail(g, "an intermediate result has more than %d dimensions", MAX_RANK), false;
    Value *x = as_matrix(g, a, &batch, &left, &contracted, size),
          *y = as_matrix(g, b, &batch, &contracted, &right, size);
    Value *v = b_matmul(g, x, y);
    Dim dims[MAX_RANK];
    const Labels *groups[3] = { &batch, &left, &right };
    for (int group = 0; group < 3; group++)
        for (int i = 0; i < groups[group]->n; i++) {
            dims[out.n] = size[groups[group]->at[i]];
            out.at[out.n++] = groups[group]->at[i];
        }
    a->v = b_reshape(g, v, out.n, dims);
    a->labels = out;
    return a->v != NULL;
}

// Sizes of the labels; broadcasting makes a size of 1 the other's.
static bool label_sizes(Graph *g, int count, const Summand *terms, Dim *size) {
    for (int i = 0; i < MAX_LABELS; i++) size[i] = 1;
    for (int t = 0; t < count; t++)
        for (int i = 0; i < terms[t].labels.n; i++) {
            Dim d = terms[t].v->type.dim[i], *to = &size[terms[t].labels.at[i]];
            if (*to == 1) *to = d;
            else if (d != 1 && dim_is_const(d) && dim_is_const(*to) && d != *to)
                return graph_fail(g, "sizes %lld and %lld of the same label differ", (long long)*to, (long long)d),
                       false;
        }
    return true;
}

// Without "->" the output has the labels that occur once, in alphabetical order (capitals first), after those of "...".
static void implicit_output(int count, const Summand *terms, Labels *out) {
    int uses[MAX_LABELS] = { 0 };
    for (int t = 0; t < count; t++)
        for (int i = 0; i < terms[t].labels.n; i++) uses[terms[t].labels.at[i]]++;
    out->n = 0;
    for (int i = MAX_LABELS; i-- > ELLIPSIS;)
        if (uses[i] && out->n < MAX_RANK) out->at[out->n++] = i;
    for (int i = 0; i < 52; i++) {
        int label = (i + 26) % 52;
        if (uses[label] == 1 && out->n < MAX_RANK) out->at[out->n++] = label;
    }
}

static bool output_labels(Graph *g, const char *s, int count, const Summand *terms, Labels *out) {
    if (!*s) return implicit_output(count, terms, out), true;
    int hidden = 0;
    for (int t = 0; t < count; t++)
        for (int i = 0; i < terms[t].labels.n; i++)
            if (terms[t].labels.at[i] >= ELLIPSIS && terms[t].labels.at[i] - ELLIPSIS >= hidden)
                hidden = terms[t].labels.at[i] - ELLIPSIS + 1;
    s += 2;
    return read_labels(g, &s, -1 - hidden, out);
}

Value *b_einsum(Graph *g, const char *equation, int n_in, Value *const *in) {
    const char *s = equation;
    Summand *terms = NEW_ARRAY(g->arena, Summand, n_in + 1);
    for (int t = 0; t < n_in; t++) {
        if (!(terms[t].v = in[t])) return NULL;
        if (!read_labels(g, &s, in[t]->type.rank, &terms[t].labels)) return NULL;
        if (*s == ',') s++;
        else if (t + 1 < n_in)
            return graph_fail(g, "attribute \"equation\" has fewer terms than there are operands");
    }
    Labels out;
    Dim size[MAX_LABELS];
    if (*s && strncmp(s, "->", 2)) return graph_fail(g, "attribute \"equation\" is not understood from \"%s\" on", s);
    if (!output_labels(g, s, n_in, terms, &out) || !label_sizes(g, n_in, terms, size)) return NULL;
    Summand acc = { 0 };
    for (int t = 0; t < n_in; t++) {
        bool needed[MAX_LABELS] = { false };
        for (int i = 0; i < out.n; i++) needed[out.at[i]] = true;
        for (int u = t + 1; u < n_in; u++)
            for (int i = 0; i < terms[u].labels.n; i++) needed[terms[u].labels.at[i]] = true;
        if (!take_diagonals(g, &terms[t])) return NULL;
        if (t == 0) acc = terms[0];
        else if (!contract_pair(g, &acc, &terms[t], needed, size)) return NULL;
        if (!sum_unneeded(g, &acc, needed)) return NULL;
    }
    int perm[MAX_RANK];
    Dim dims[MAX_RANK];
    for (int i = 0; i < out.n; i++) {
        perm[i] = find_label(&acc.labels, out.at[i]);
        dims[i] = size[out.at[i]];
        if (perm[i] < 0) return graph_fail(g, "attribute \"equation\": a label of the output is in no operand");
    }
    if (acc.labels.n != out.n) return graph_fail(g, "attribute \"equation\" repeats a label in the output");
    return b_expand(g, b_transpose(g, acc.v, perm), out.n, dims);
}

// ---------------------------------------------------------------- elimination

// Step k of Gauss and Jordan's elimination in [b, s, n]: the row with the largest pivot (at or below k) goes to k,
// the row there takes its place, and column k becomes 0 in every other row. A column of zeros changes nothing.
typedef struct Eliminated {
    Value *m;
    Value *pivot;                                       // [b]
    Value *swapped;                                     // bool[b]: did rows change places?
} Eliminated;

static Eliminated eliminate(Graph *g, Value *m, Value *k) {
    const Type t = m->type;
    Value *row = b_iota(g, 3, (Dim[]){ 1, t.dim[1], 1 }, 1, DT_I64), *column = b_insert(g, b_gather(g, m, k, 2), 2),
          *size = B_MAP(g, "r < k ? -1 : abs(x)", "r k x", row, k, column);
    if (!size) return (Eliminated){ 0 };
    Node *best = graph_node(g, OP_ArgMax, 1, &size, 1);
    node_set_int(best, "axis", 1);
    node_set_int(best, "keepdims", 1);
    Value *at = b_finish(best), *chosen = b_binary(g, OP_Equal, row, at), *old = b_insert(g, b_gather(g, m, k, 1), 1);
    if (!chosen || !old) return (Eliminated){ 0 };
    Value *line = b_reduce(g, OP_ReduceSum, b_where(g, chosen, m, b_like(g, m, 0)), 1, (int64_t[]){ 1 }, true),
          *pivot = b_insert(g, b_gather(g, line, k, 2), 2), *rest = b_where(g, chosen, old, m),
          *below = b_insert(g, b_gather(g, rest, k, 2), 2);
    Value *next = B_MAP(g, "r == k ? p : a == 0 ? x : x - c / a * p", "r k p a x c", row, k, line, pivot, rest, below);
    Value *swapped = B_MAP(g, "x != k", "x k", at, k);
    return (Eliminated){ next, b_reshape(g, pivot, 1, t.dim), b_reshape(g, swapped, 1, t.dim) };
}

// The matrices as [b, s, s] of a type that is computed in.
static Value *square_matrices(Graph *g, Value *x) {
    const Type *t = &x->type;
    if (t->rank < 2 || t->dim[t->rank - 2] != t->dim[t->rank - 1])
        return graph_fail(g, "wants square matrices, not %s", type_text(g->arena, g, t));
    const Dim s = t->dim[t->rank - 1];
    return b_reshape(g, b_cast(g, x, dtype_wide(t->dtype)), 3, (Dim[]){ type_product(g, t, 0, t->rank - 2), s, s });
}

// The product of the pivots, whose sign turns with each exchange of rows.
static Value *by_elimination(Graph *g, Value *x) {
    Value *m = square_matrices(g, x), *in[4], *from[2], *out[3];
    if (!m) return NULL;
    from[0] = m;
    from[1] = b_filled(g, m->type.dtype, 1, 1, m->type.dim);
    Graph *body = b_loop_body(g, "eliminate", 2, from, in);
    Eliminated e = eliminate(body, in[2], in[0]);
    out[0] = b_scalar(body, DT_BOOL, 1);
    out[1] = e.m;
    out[2] = B_MAP(body, "s ? -d * p : d * p", "s d p", e.swapped, in[3], e.pivot);
    Node *loop = b_loop(g, body, b_number(g, m->type.dim[1]), 2, from, out);
    return loop ? b_cast(g, b_reshape(g, loop->out[1], x->type.rank - 2, x->type.dim), x->type.dtype) : NULL;
}

#define STEPS_IN_PLACE 64       // an inverse of so many rows wants no loop, which GPUs have not

// All steps in [b, s, 2 s].
static Value *eliminated(Graph *g, Value *both) {
    const Dim steps = both->type.dim[1];
    Value *in[3], *out[2];
    if (dim_is_const(steps) && steps <= STEPS_IN_PLACE) {
        for (int64_t k = 0; k < steps && both; k++) both = eliminate(g, both, b_number(g, k)).m;
        return both;
    }
    Graph *body = b_loop_body(g, "eliminate", 1, &both, in);
    out[0] = b_scalar(body, DT_BOOL, 1);
    out[1] = eliminate(body, in[2], in[0]).m;
    Node *loop = b_loop(g, body, b_number(g, steps), 1, &both, out);
    return loop ? loop->out[0] : NULL;
}

// [b, s, 2 s] starts as (x, 1) and ends as (p, p x^-1) with the pivots p on a diagonal.
Value *b_inverse(Graph *g, Value *x) {
    Value *m = x ? square_matrices(g, x) : NULL;
    if (!m) return NULL;
    const Type t = m->type;
    Value *row = b_iota(g, 2, t.dim + 1, 0, DT_I64), *column = b_iota(g, 2, t.dim + 1, 1, DT_I64),
          *unit = b_expand(g, b_cast(g, b_binary(g, OP_Equal, row, column), t.dtype), 3, t.dim),
          *both = b_concat(g, 2, 2, (Value *[]){ m, unit });
    if (!both || !(both = eliminated(g, both))) return NULL;
    Value *left = b_part(g, both, 2, 0, t.dim[1]), *right = b_part(g, both, 2, t.dim[1], t.dim[1]);
    Value *pivots = b_reduce(g, OP_ReduceSum, b_binary(g, OP_Mul, left, unit), 1, (int64_t[]){ 2 }, true);
    return b_cast(g, b_reshape(g, b_binary(g, OP_Div, right, pivots), x->type.rank, x->type.dim), x->type.dtype);
}

// ---------------------------------------------------------------- determinants

#define FEW_ROWS 5              // expansion along the first row: size! products, and no loop

static Value *determinant(Graph *g, Value *const m[FEW_ROWS][FEW_ROWS], int size, int row, unsigned columns) {
    Value *sum = NULL;
    bool minus = false;
    for (int c = 0; c < size; c++) {
        if (!(columns >> c & 1)) continue;
        Value *v = m[row][c];
        if (row + 1 < size) v = b_binary(g, OP_Mul, v, determinant(g, m, size, row + 1, columns & ~(1u << c)));
        sum = sum ? b_binary(g, minus ? OP_Sub : OP_Add, sum, v) : v;
        minus = !minus;
    }
    return sum;
}

Value *b_determinant(Graph *g, Value *x) {
    if (!x) return NULL;
    Value *m[FEW_ROWS][FEW_ROWS];
    int rank = x->type.rank;
    Dim size = rank >= 2 ? x->type.dim[rank - 1] : -1;
    if (size == 0 && x->type.dim[rank - 2] == 0)        // an empty product
        return b_filled(g, x->type.dtype, 1, rank - 2, x->type.dim);
    if (rank < 2 || size < 1 || size > FEW_ROWS || x->type.dim[rank - 2] != size) return by_elimination(g, x);
    for (int i = 0; i < size; i++)
        for (int j = 0; j < size; j++) {
            Value *row = b_part(g, x, rank - 2, i, 1), *element = b_part(g, row, rank - 1, j, 1);
            m[i][j] = b_remove(g, b_remove(g, element, rank - 1), rank - 2);
        }
    return determinant(g, m, (int)size, 0, (1u << size) - 1);
}
