// SPDX-License-Identifier: MIT OR Apache-2.0
// Contractions of ONNX: matrix products and Einstein sums.
//
// In: an OnnxNode. Out: MatMul with reshapes and transposes around it. The idea of Einsum: operands are contracted in
// pairs from the left; labels of a pair are batch (in both and still needed), contracted (in both, needed no more) or
// free, which is a batched matrix product.
#include "import/onnx/onnx.h"

#include <ctype.h>
#include <string.h>

Value *onnx_matmul(OnnxNode *n) { return onnx_inputs(n, 2) ? b_matmul(n->g, n->in[0], n->in[1]) : NULL; }

// (a - zero) times (b - zero), exact in i32. A vector of zero points goes with a's rows, b's columns.
Value *onnx_matmul_integer(OnnxNode *n) {
    if (!onnx_inputs(n, 2)) return NULL;
    Value *v[2];
    for (int i = 0; i < 2; i++) {
        v[i] = b_cast(n->g, n->in[i], DT_I32);
        Value *zero = b_cast(n->g, onnx_optional(n, 2 + i), DT_I32);
        if (zero && i == 0 && zero->type.rank == 1 && zero->type.dim[0] != 1) zero = b_insert(n->g, zero, 1);
        if (zero) v[i] = b_binary(n->g, OP_Sub, v[i], zero);
    }
    return b_matmul(n->g, v[0], v[1]);
}

Value *onnx_gemm(OnnxNode *n) {
    if (!onnx_inputs(n, 2)) return NULL;
    Value *a = n->in[0], *b = n->in[1], *c = onnx_optional(n, 2);
    if (a->type.rank != 2 || b->type.rank != 2) return onnx_fail(n, "both factors must be matrices");
    if (onnx_int(n, "transA", 0)) a = b_swap(n->g, a, 0, 1);
    if (onnx_int(n, "transB", 0)) b = b_swap(n->g, b, 0, 1);
    double alpha = onnx_float(n, "alpha", 1), beta = onnx_float(n, "beta", 1);
    onnx_int(n, "broadcast", 0);
    Value *y = b_matmul(n->g, a, b);
    if (y && alpha != 1) y = b_binary(n->g, OP_Mul, y, b_like(n->g, y, alpha));
    if (c && beta != 1) c = b_binary(n->g, OP_Mul, c, b_like(n->g, c, beta));
    return c ? b_binary(n->g, OP_Add, y, c) : y;
}

// ---------------------------------------------------------------- Einsum

#define ELLIPSIS 64             // labels from here on are the dimensions that "..." stands for, counted from the last
#define MAX_LABELS (ELLIPSIS + MAX_RANK)

typedef struct Labels { int n; int at[MAX_RANK]; } Labels;
typedef struct Term { Value *v; Labels labels; } Term;

static int find_label(const Labels *l, int label) {
    for (int i = 0; i < l->n; i++)
        if (l->at[i] == label) return i;
    return -1;
}

static int label_of(char c) { return c >= 'a' && c <= 'z' ? c - 'a' : c >= 'A' && c <= 'Z' ? 26 + c - 'A' : -1; }

// Reads one term such as "b...ij". rank: of its operand, or the number of dimensions that "..." stands for in the
// output as -1 - count.
static bool read_labels(OnnxNode *n, const char **s, int rank, Labels *out) {
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
    if (!ok) onnx_fail(n, "attribute \"equation\" does not fit the operands near \"%s\"", *s);
    return ok;
}

// A label that an operand repeats: its diagonal. The two axes become one of size d*d, of which every (d+1)-th element
// stays.
static bool take_diagonals(OnnxNode *n, Term *t) {
    for (int i = 0; i < t->labels.n; i++) {
        for (int j = i + 1; j < t->labels.n; j++) {
            if (t->labels.at[i] != t->labels.at[j]) continue;
            int rank = t->labels.n, perm[MAX_RANK], k = 0;
            const Type *from = &t->v->type;
            Dim d = from->dim[i], dims[MAX_RANK];
            if (!dim_is_const(d) || d != from->dim[j])
                return onnx_fail(n, "a repeated label wants equal and known sizes"), false;
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
            Value *v = b_reshape(n->g, b_transpose(n->g, t->v, perm), k + 1, dims);
            dims[k] = d;
            t->v = b_slice(n->g, v, starts, steps, dims);
            if (!t->v) return false;
            t->labels = labels;
            j = i;
        }
    }
    return true;
}

// Sums out what nobody needs any more.
static bool sum_unneeded(OnnxNode *n, Term *t, const bool *needed) {
    int64_t axes[MAX_RANK];
    int count = 0;
    Labels kept = { 0 };
    for (int i = 0; i < t->labels.n; i++) {
        if (needed[t->labels.at[i]]) kept.at[kept.n++] = t->labels.at[i];
        else axes[count++] = i;
    }
    t->labels = kept;
    t->v = b_reduce(n->g, OP_ReduceSum, t->v, count, axes, false);
    return t->v != NULL;
}

// Transposes to batch, first, second; sizes of the three groups multiplied.
static Value *as_matrix(
    OnnxNode *n, const Term *t, const Labels *batch, const Labels *first, const Labels *second, const Dim *size) {
    int perm[MAX_RANK], k = 0;
    const Labels *groups[3] = { batch, first, second };
    Dim dims[3] = { 1, 1, 1 }, wide[MAX_RANK];
    for (int g = 0; g < 3; g++)
        for (int i = 0; i < groups[g]->n; i++) {
            int label = groups[g]->at[i];
            perm[k] = find_label(&t->labels, label);
            wide[k++] = size[label];
            dims[g] = dim_mul(n->g, dims[g], size[label]);
        }
    Value *v = b_expand(n->g, b_transpose(n->g, t->v, perm), k, wide);
    return b_reshape(n->g, v, 3, dims);
}

static bool contract_pair(OnnxNode *n, Term *a, const Term *b, const bool *needed, const Dim *size) {
    Labels batch = { 0 }, contracted = { 0 }, left = { 0 }, right = { 0 }, out = { 0 };
    for (int i = 0; i < a->labels.n; i++) {
        int label = a->labels.at[i];
        Labels *to = find_label(&b->labels, label) < 0 ? &left : needed[label] ? &batch : &contracted;
        to->at[to->n++] = label;
    }
    for (int i = 0; i < b->labels.n; i++)
        if (find_label(&a->labels, b->labels.at[i]) < 0) right.at[right.n++] = b->labels.at[i];
    if (batch.n + left.n + right.n > MAX_RANK)
        return onnx_fail(n, "an intermediate result has more than %d dimensions", MAX_RANK), false;
    Value *x = as_matrix(n, a, &batch, &left, &contracted, size),
          *y = as_matrix(n, b, &batch, &contracted, &right, size);
    Value *v = b_matmul(n->g, x, y);
    Dim dims[MAX_RANK];
    const Labels *groups[3] = { &batch, &left, &right };
    for (int g = 0; g < 3; g++)
        for (int i = 0; i < groups[g]->n; i++) {
            dims[out.n] = size[groups[g]->at[i]];
            out.at[out.n++] = groups[g]->at[i];
        }
    a->v = b_reshape(n->g, v, out.n, dims);
    a->labels = out;
    return a->v != NULL;
}

// Sizes of the labels; broadcasting makes a size of 1 the other's.
static bool label_sizes(OnnxNode *n, int count, const Term *terms, Dim *size) {
    for (int i = 0; i < MAX_LABELS; i++) size[i] = 1;
    for (int t = 0; t < count; t++)
        for (int i = 0; i < terms[t].labels.n; i++) {
            Dim d = terms[t].v->type.dim[i], *to = &size[terms[t].labels.at[i]];
            if (*to == 1) *to = d;
            else if (d != 1 && dim_is_const(d) && dim_is_const(*to) && d != *to)
                return onnx_fail(n, "sizes %lld and %lld of the same label differ", (long long)*to, (long long)d),
                       false;
        }
    return true;
}

// Without "->" the output has the labels that occur once, in alphabetical order (capitals first), after those of "...".
static void implicit_output(int count, const Term *terms, Labels *out) {
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

static bool output_labels(OnnxNode *n, const char *s, int count, const Term *terms, Labels *out) {
    if (!*s) return implicit_output(count, terms, out), true;
    int hidden = 0;
    for (int t = 0; t < count; t++)
        for (int i = 0; i < terms[t].labels.n; i++)
            if (terms[t].labels.at[i] >= ELLIPSIS && terms[t].labels.at[i] - ELLIPSIS >= hidden)
                hidden = terms[t].labels.at[i] - ELLIPSIS + 1;
    s += 2;
    return read_labels(n, &s, -1 - hidden, out);
}

Value *onnx_einsum(OnnxNode *n) {
    const char *s = onnx_string(n, "equation", "");
    Term *terms = NEW_ARRAY(n->g->arena, Term, n->n_in + 1);
    if (!n->n_in || !onnx_inputs(n, n->n_in)) return NULL;
    for (int t = 0; t < n->n_in; t++) {
        terms[t].v = n->in[t];
        if (!read_labels(n, &s, n->in[t]->type.rank, &terms[t].labels)) return NULL;
        if (*s == ',') s++;
        else if (t + 1 < n->n_in)
            return onnx_fail(n, "attribute \"equation\" has fewer terms than there are operands");
    }
    Labels out;
    Dim size[MAX_LABELS];
    if (*s && strncmp(s, "->", 2)) return onnx_fail(n, "attribute \"equation\" is not understood from \"%s\" on", s);
    if (!output_labels(n, s, n->n_in, terms, &out) || !label_sizes(n, n->n_in, terms, size)) return NULL;
    Term acc = { 0 };
    for (int t = 0; t < n->n_in; t++) {
        bool needed[MAX_LABELS] = { false };
        for (int i = 0; i < out.n; i++) needed[out.at[i]] = true;
        for (int u = t + 1; u < n->n_in; u++)
            for (int i = 0; i < terms[u].labels.n; i++) needed[terms[u].labels.at[i]] = true;
        if (!take_diagonals(n, &terms[t])) return NULL;
        if (t == 0) acc = terms[0];
        else if (!contract_pair(n, &acc, &terms[t], needed, size)) return NULL;
        if (!sum_unneeded(n, &acc, needed)) return NULL;
    }
    int perm[MAX_RANK];
    Dim dims[MAX_RANK];
    for (int i = 0; i < out.n; i++) {
        perm[i] = find_label(&acc.labels, out.at[i]);
        dims[i] = size[out.at[i]];
        if (perm[i] < 0) return onnx_fail(n, "attribute \"equation\": a label of the output is in no operand");
    }
    if (acc.labels.n != out.n) return onnx_fail(n, "attribute \"equation\" repeats a label in the output");
    return b_expand(n->g, b_transpose(n->g, acc.v, perm), out.n, dims);
}
