// SPDX-License-Identifier: MIT OR Apache-2.0
// What models spell in primitives becomes the operation that they mean: softmax, GELU, layer and RMS normalisation.
// Contract: composites and maps of the same function stand for the pieces; results differ in rounding.
//
//   before   %2: f32[4,1] = ReduceMax(%0) {axes=[1], keepdims=1}
//            %3: f32[4,8] = Sub(%0, %2)
//            %4: f32[4,8] = Exp(%3)
//            %5: f32[4,1] = ReduceSum(%4) {axes=[1], keepdims=1}
//            %6: f32[4,8] = Div(%4, %5)
//   after    %7: f32[4,8] = Softmax(%0) {axis=1}
//
// The one place that knows spellings: other passes, back ends and the scheduler ask for the operation. An attention is
// a Softmax between two products, whatever its score is made of. Runs before composites are expanded, so that a mean
// is still one node. A graph that waits to be differentiated stays as it is spelled, and is looked at behind the
// gradient: which reads pieces that are stored then, where it would have to compute those of a whole GELU again.
//
// One function for each rule, listed by the op of the last piece. A rule notes the nodes that it goes through; it
// holds when nobody else uses their results, for else they would be computed twice.
#include "passes.h"

#include <math.h>
#include <string.h>

enum { MAX_PIECES = 32, LOOK = 6, MAX_ROUNDS = 4 };
typedef struct Finder {
    Graph *graph;
    const int *uses; int n_values;                      // by value id; newer values have pieces of their own next round
    Node *piece[MAX_PIECES]; int n_pieces;              // what the rule has gone through
} Finder;

// ---------------------------------------------------------------- pieces
static bool note(Finder *f, Node *n) {
    for (int i = 0; i < f->n_pieces; i++)
        if (f->piece[i] == n) return true;
    if (f->n_pieces == MAX_PIECES) return false;
    f->piece[f->n_pieces++] = n;
    return true;
}

static Node *made_by(Finder *f, const Value *v, Op op) {
    Node *n = v && !v->data && v->graph == f->graph ? v->def : NULL;
    return n && n->op == op && note(f, n) ? n : NULL;
}

// Does nobody but the pieces, of which `last` makes the result, use what they make?
static bool alone(const Finder *f, const Node *last) {
    for (int i = 0; i < f->n_pieces; i++) {
        const Value *v = f->piece[i]->out[0];
        int inside = 0;
        if (f->piece[i] == last) continue;
        for (int j = 0; j < f->n_pieces; j++)
            for (int k = 0; k < f->piece[j]->n_in; k++) inside += f->piece[j]->in[k] == v;
        if (v->id >= f->n_values || f->uses[v->id] != inside) return false;
    }
    return true;
}

static bool is_number(const Value *v, double number) {
    double c;
    return const_splat(v, &c) && c == number;
}

// The operand of a map of two that is not a number, and the number.
static Value *beside_number(const Node *n, double *number) {
    for (int i = 0; i < 2; i++)
        if (const_splat(n->in[i], number)) return n->in[1 - i];
    return NULL;
}

static bool is_real(const Value *v) { return v->type.dtype == DT_F32 || v->type.dtype == DT_F64; }

// ---------------------------------------------------------------- softmax
// A reduction along one axis, which stays as 1.
static Node *along(Finder *f, const Value *v, Op op, int64_t *axis) {
    Node *n = made_by(f, v, op);
    int count = 0;
    const int64_t *axes = n ? node_ints(n, "axes", &count) : NULL;
    if (count != 1 || !node_int(n, "keepdims", 1)) return NULL;
    *axis = axes[0];
    return n;
}

static Value *softmax(Graph *g, Value *x, int64_t axis, SoftmaxEmpty empty) {
    Node *n = graph_node(g, OP_Softmax, 1, &x, 1);
    node_set_int(n, "axis", axis);
    if (empty != EMPTY_NAN) node_set_int(n, "empty", empty);
    return b_finish(n);
}

// exp(x - max(x)) / sum(exp(x - max(x)))
static Value *rule_softmax(Finder *f, Node *n) {
    int64_t over, under;
    Node *e = made_by(f, n->in[0], OP_Exp), *sum = along(f, n->in[1], OP_ReduceSum, &over);
    if (!e || !sum || sum->in[0] != e->out[0]) return NULL;
    Node *shifted = made_by(f, e->in[0], OP_Sub),
         *top = shifted ? along(f, shifted->in[1], OP_ReduceMax, &under) : NULL;
    if (!top || over != under || top->in[0] != shifted->in[0] || !is_real(top->in[0]) || !alone(f, n)) return NULL;
    return softmax(f->graph, top->in[0], over, EMPTY_NAN);
}

// Rows without a score give 0: choose 0 where the maximum is -inf, or where the quotient is NaN. The choice may see the
// softmax in another shape.
static Value *rule_empty_rows(Finder *f, Node *n) {
    Value *shown = n->in[2], *quotient = shown;
    Node *view = made_by(f, shown, OP_Reshape), *test = made_by(f, n->in[0], OP_IsNaN);
    if (view) quotient = view->in[0];
    Node *soft = made_by(f, quotient, OP_Softmax);
    if (!soft || node_attr(soft, "empty") || !is_number(n->in[1], 0) || !type_equal(&shown->type, &n->out[0]->type))
        return NULL;
    int64_t axis = node_int(soft, "axis", quotient->type.rank - 1), top_axis;
    SoftmaxEmpty empty = EMPTY_NAN_ZERO;
    if (!test || (test->in[0] != shown && test->in[0] != quotient)) {
        if (!(test = made_by(f, n->in[0], OP_Equal))) return NULL;
        int at = is_number(test->in[0], -INFINITY) ? 1 : 0;
        Node *top = along(f, test->in[at], OP_ReduceMax, &top_axis);
        if (!is_number(test->in[1 - at], -INFINITY) || !top || top->in[0] != soft->in[0] || top_axis != axis)
            return NULL;
        empty = EMPTY_ZERO;
    }
    if (!alone(f, n)) return NULL;
    Value *y = softmax(f->graph, soft->in[0], axis, empty);
    return view ? b_reshape(f->graph, y, shown->type.rank, shown->type.dim) : y;
}

// ---------------------------------------------------------------- GELU
// c[0][i] x^i + c[1][i] x^i t, where t is the error function or the hyperbolic tangent of something
enum { DEGREE = 3 };
typedef struct Series { double c[2][DEGREE + 1]; } Series;

static bool is_constant(const Series *a) {
    for (int i = 0; i < 2; i++)
        for (int j = 0; j <= DEGREE; j++)
            if (i + j && a->c[i][j] != 0) return false;
    return true;
}

static bool multiply(const Series *a, const Series *b, Series *out) {
    Series product = { 0 };
    for (int i = 0; i < 2; i++)
        for (int j = 0; j <= DEGREE; j++)
            for (int k = 0; k < 2; k++)
                for (int m = 0; m <= DEGREE; m++) {
                    double c = a->c[i][j] * b->c[k][m];
                    if (c == 0) continue;
                    if (i + k > 1 || j + m > DEGREE) return false;
                    product.c[i + k][j + m] += c;
                }
    *out = product;
    return true;
}

static void add(Series *a, const Series *b, double times) {
    for (int i = 0; i < 2; i++)
        for (int j = 0; j <= DEGREE; j++) a->c[i][j] += times * b->c[i][j];
}

// x^2 as a node of one operand, x^k as a power.
static bool power_of(const Node *n, const Series *x, Series *out) {
    double k = 2;
    if (n->op == OP_Pow && (!const_splat(n->in[1], &k) || (k != 2 && k != 3))) return false;
    return multiply(x, x, out) && (k == 2 || multiply(out, x, out));
}

static bool series_of(Finder *f, Value *v, const Value *x, const Value *t, int look, Series *out) {
    double c;
    Series a, b;
    *out = (Series){ 0 };
    if (v == x || v == t) {
        out->c[v == t][v == x] = 1;
        return true;
    }
    if (const_splat(v, &c)) {
        out->c[0][0] = c;
        return true;
    }
    Node *n = v->data || v->graph != f->graph ? NULL : v->def;
    if (!n || !look || n->n_in < 1 || n->n_in > 2 || !note(f, n) || !series_of(f, n->in[0], x, t, look - 1, &a))
        return false;
    if (n->op == OP_Square || n->op == OP_Pow) return power_of(n, &a, out);
    if (n->n_in != 2 || !series_of(f, n->in[1], x, t, look - 1, &b)) return false;
    switch (n->op) {
    case OP_Mul: return multiply(&a, &b, out);
    case OP_Div:
        if (!is_constant(&b) || b.c[0][0] == 0) return false;
        add(out, &a, 1 / b.c[0][0]);
        return true;
    case OP_Add: case OP_Sub:
        add(out, &a, 1);
        add(out, &b, n->op == OP_Add ? 1 : -1);
        return true;
    default: return false;
    }
}

static bool is_series(const Series *a, const Series *b) {
    for (int i = 0; i < 2; i++)
        for (int j = 0; j <= DEGREE; j++)
            if (fabs(a->c[i][j] - b->c[i][j]) > 1e-5 * fabs(b->c[i][j])) return false;
    return true;
}

// The first node of op among what v is computed from by sums, products and powers.
static Node *find(const Value *v, Op op, int look) {
    Node *n = v->data ? NULL : v->def;
    if (!n || !look) return NULL;
    if (n->op == op) return n;
    if (n->op != OP_Mul && n->op != OP_Div && n->op != OP_Add && n->op != OP_Sub) return NULL;
    Node *first = find(n->in[0], op, look - 1);
    return first ? first : find(n->in[1], op, look - 1);
}

// x/2 (1 + t) with t = erf(x / sqrt(2)) or tanh(sqrt(2 / pi) (x + 0.044715 x^3))
static const Series gelu = { { { 0, 0.5 }, { 0, 0.5 } } };
static const Series erf_of = { { { 0, 0.70710678118654752 } } };
static const Series tanh_of = { { { 0, 0.79788456080286536, 0, 0.79788456080286536 * 0.044715 } } };

static Value *gelu_of(Finder *f, Node *n, Node *t, Value *x) {
    Series whole, inner;
    const Series *want = t->op == OP_Erf ? &erf_of : &tanh_of;
    f->n_pieces = 0;
    if (!note(f, n) || !note(f, t) || !type_equal(&x->type, &n->out[0]->type)) return NULL;
    if (!series_of(f, t->in[0], x, NULL, LOOK, &inner) || !is_series(&inner, want)) return NULL;
    if (!series_of(f, n->out[0], x, t->out[0], LOOK, &whole) || !is_series(&whole, &gelu) || !alone(f, n)) return NULL;
    return b_unary(f->graph, t->op == OP_Erf ? OP_Gelu : OP_GeluTanh, x);
}

static Value *rule_gelu(Finder *f, Node *n) {
    double c;
    if (!is_real(n->out[0])) return NULL;
    Node *t = find(n->out[0], OP_Erf, LOOK);
    if (t) {                                            // what is scaled
        const Value *u = t->in[0];
        Node *scale = u->data ? NULL : u->def;
        Value *x = scale && (scale->op == OP_Mul || scale->op == OP_Div) ? beside_number(scale, &c) : NULL;
        return x ? gelu_of(f, n, t, x) : NULL;
    }
    t = find(n->out[0], OP_Tanh, LOOK);
    Node *cube = t ? find(t->in[0], OP_Pow, LOOK) : NULL;
    if (!cube && t) cube = find(t->in[0], OP_Square, LOOK);
    return cube ? gelu_of(f, n, t, cube->in[0]) : NULL;
}

// ---------------------------------------------------------------- normalisations
// The mean over the last axes, which stay as 1, from `axis` on.
static Node *row_mean(Finder *f, const Value *v, int64_t *axis) {
    Node *n = made_by(f, v, OP_ReduceMean);
    int count = 0;
    const int64_t *axes = n ? node_ints(n, "axes", &count) : NULL;
    if (!count || !node_int(n, "keepdims", 1)) return NULL;
    for (int i = 0; i < count; i++)
        if (axes[i] != n->in[0]->type.rank - count + i) return NULL;
    *axis = axes[0];
    return n;
}

static Value *squared(Finder *f, Value *v) {
    Node *n = made_by(f, v, OP_Square);
    if (n) return n->in[0];
    n = made_by(f, v, OP_Mul);
    if (n) return n->in[0] == n->in[1] ? n->in[0] : NULL;
    n = made_by(f, v, OP_Pow);
    return n && is_number(n->in[1], 2) ? n->in[0] : NULL;
}

typedef struct Norm { Value *x; int64_t axis; double epsilon; bool centred; } Norm;

// v = d / sqrt(mean(d^2) + epsilon) over rows; d may be x - mean(x).
static bool is_norm(Finder *f, const Value *v, Norm *out) {
    Node *n = made_by(f, v, OP_Div), *root = NULL, *mean;
    Value *d = NULL, *divisor = n ? n->in[1] : NULL;
    if (n) d = n->in[0];
    else if ((n = made_by(f, v, OP_Mul)))
        for (int i = 0; i < 2 && !d; i++) {
            Node *inverse = made_by(f, n->in[i], OP_Reciprocal);
            if (inverse) divisor = inverse->in[0];
            else root = made_by(f, n->in[i], OP_Rsqrt);
            if (inverse || root) d = n->in[1 - i];
        }
    if (!root && divisor) root = made_by(f, divisor, OP_Sqrt);
    Node *sum = root && d ? made_by(f, root->in[0], OP_Add) : NULL;
    Value *variance = sum ? beside_number(sum, &out->epsilon) : NULL;
    if (!variance || !(mean = row_mean(f, variance, &out->axis)) || squared(f, mean->in[0]) != d) return false;
    int64_t axis;
    int before = f->n_pieces;
    Node *centred = made_by(f, d, OP_Sub), *centre = centred ? row_mean(f, centred->in[1], &axis) : NULL;
    out->centred = centre && centre->in[0] == centred->in[0] && axis == out->axis;
    out->x = out->centred ? centre->in[0] : d;
    if (!out->centred) f->n_pieces = before;
    return true;
}

// A factor or summand for each element of a row.
static bool is_of_row(const Value *v, const Value *x, int64_t axis) {
    int rank = x->type.rank - (int)axis;
    return v->type.dtype == x->type.dtype && v->type.rank == rank
        && !memcmp(v->type.dim, x->type.dim + axis, sizeof(Dim) * (size_t)rank);
}

static Value *norm(Graph *g, Op op, int n_in, Value *const *in, int64_t axis, double epsilon) {
    Node *n = graph_node(g, op, n_in, in, 1);
    node_set_int(n, "axis", axis);
    node_set_float(n, "epsilon", epsilon);
    return b_finish(n);
}

// A norm times a scale.
static Value *rule_norm(Finder *f, Node *n) {
    for (int i = 0; i < 2; i++) {
        Norm m;
        f->n_pieces = 0;
        if (!is_real(n->out[0]) || !note(f, n) || !is_norm(f, n->in[i], &m)) continue;
        Value *scale = n->in[1 - i];
        if (!is_of_row(scale, m.x, m.axis)) continue;
        if (alone(f, n))
            return norm(
                f->graph, m.centred ? OP_LayerNorm : OP_RMSNorm, 2, (Value *[]){ m.x, scale }, m.axis, m.epsilon);
    }
    return NULL;
}

// A layer norm without a bias, plus one.
static Value *rule_norm_bias(Finder *f, Node *n) {
    for (int i = 0; i < 2; i++) {
        f->n_pieces = 0;
        Node *m = note(f, n) ? made_by(f, n->in[i], OP_LayerNorm) : NULL;
        if (!m || m->n_in != 2) continue;
        int64_t axis = node_int(m, "axis", m->in[0]->type.rank - 1);
        Value *bias = n->in[1 - i];
        if (is_of_row(bias, m->in[0], axis) && alone(f, n))
            return norm(f->graph, OP_LayerNorm, 3, (Value *[]){ m->in[0], m->in[1], bias }, axis,
                node_float(m, "epsilon", 1e-5));
    }
    return NULL;
}

// ---------------------------------------------------------------- the gradient of a maximum
// Numbers added where the largest elements of windows are, to nothing. The result stays a row of them.
static Value *rule_window_max_grad(Finder *f, Node *n) {
    Graph *g = f->graph;
    Node *at = made_by(f, n->in[1], OP_Reshape), *most = made_by(f, at ? at->in[0] : n->in[1], OP_WindowArgMax);
    const Value *to = n->in[0]->def && n->in[0]->def->op == OP_Expand ? n->in[0]->def->in[0] : n->in[0];
    if (!most || !is_number(to, 0) || strcmp(node_string(n, "reduction", "none"), "add") != 0
        || n->out[0]->type.rank != 1 || !dim_equal(g, n->out[0]->type.dim[0], type_size(g, &most->in[0]->type)))
        return NULL;
    Value *dy = b_reshape(g, n->in[2], most->out[0]->type.rank, most->out[0]->type.dim);
    if (!dy || !alone(f, n)) return NULL;
    Node *m = graph_node(g, OP_WindowMaxGrad, 2, (Value *[]){ most->in[0], dy }, 1);
    m->attrs = arena_copy(g->arena, most->attrs, sizeof(Attr) * (size_t)most->n_attrs);
    m->n_attrs = most->n_attrs;
    return b_reshape(g, b_finish(m), 1, n->out[0]->type.dim);
}

// ---------------------------------------------------------------- the walk
static const struct { Op last; Value *(*apply)(Finder *f, Node *n); } rules[] = {
    { OP_Div, rule_softmax },
    { OP_Where, rule_empty_rows },
    { OP_Mul, rule_gelu },
    { OP_Mul, rule_norm },
    { OP_Add, rule_norm_bias },
    { OP_ScatterElements, rule_window_max_grad },
};

static void recognise_graph(Rewrite *r, Graph *g, const int *uses, int n_values) {
    for (Node *n = g->first, *next; n; n = next) {
        next = n->next;
        rewrite_operands(r, n);
        for (int i = 0; i < n->n_bodies; i++) recognise_graph(r, n->bodies[i], uses, n_values);
        Value *v = NULL;
        g->cursor = n;
        g->loc = n->loc;
        for (size_t i = 0; i < COUNT(rules) && !v; i++) {
            Finder f = { .graph = g, .uses = uses, .n_values = n_values };
            if (rules[i].last == n->op && note(&f, n)) v = rules[i].apply(&f, n);
        }
        if (!v) continue;
        rewrite_set(r, n->out[0], v);
        g->cursor = NULL;
        graph_remove(g, n);
    }
    g->cursor = NULL;
    rewrite_outputs(r, g);
}

bool pass_recognise(Graph *g) {
    bool changed = false;
    for (int round = 0; round < MAX_ROUNDS && !has_gradient(g); round++) {
        Rewrite r = { .scratch = arena_new() };
        int n_values = graph_root(g)->value_count;
        recognise_graph(&r, g, graph_use_counts(g, r.scratch), n_values);
        arena_free(r.scratch);
        if (!r.changed) break;
        changed = true;
        pass_dce(g);                                    // the pieces
    }
    return changed;
}
