// SPDX-License-Identifier: MIT OR Apache-2.0
// Convolutions get the channels last, and what surrounds them follows. Contract: the same numbers. The weights stay in
// the order that their model has: constants are packed when compiling, others in each run.
//
//   before   %2: f32[1,8,9,9] = Conv(%0, %1)                                  %1: f32[8,3,3,3], a constant
//            %3: f32[1,8,9,9] = Relu(%2)
//            %5: f32[1,4,9,9] = Conv(%3, %4)                                  %4: f32[4,8,1,1], a constant
//   after    %6: f32[1,9,9,3] = Transpose(%0) {perm=[0,2,3,1]}
//            %7: f32[1,9,9,8] = Conv(%6, %1) {channels_last=1}
//            %8: f32[1,9,9,8] = Relu(%7)
//            %9: f32[1,9,9,4] = MatMul(%8, %4')                               %4': f32[8,4]; a 1x1 convolution is a
//                product
//            %10: f32[1,4,9,9] = Transpose(%9) {perm=[0,3,1,2]}
//
// The idea: every convolution becomes one between two transposes, and a transpose that this pass made sinks below
// whatever commutes with it (maps, reductions, windows, concatenations, slices, pads, reshapes that only split or
// join axes), until it meets its inverse. The walk is in topological order, so one walk is enough. Vectors then run
// over channels everywhere: no window, stride or border cuts them. Where turning takes longer than that gains,
// convolutions stay as they are (layout_stay.c).
#include "ops/common.h"
#include "layout.h"

#include <string.h>

// ours: by value id, results of transposes that sink; in_loops: Backend.windows_in_loops
typedef struct Layout { Rewrite r; VEC(bool) ours; bool in_loops; } Layout;

// ---------------------------------------------------------------- transposes that sink
static bool is_ours(const Layout *l, const Value *v) {
    return v && v->def && v->def->op == OP_Transpose && v->id < l->ours.n && l->ours.at[v->id];
}

static const int64_t *perm_of(const Value *v) {
    int count;
    return node_ints(v->def, "perm", &count);
}

static Value *transposed(Layout *l, Graph *g, Value *z, const int *perm) {
    bool moves = false;
    for (int i = 0; z && i < z->type.rank; i++) moves = moves || perm[i] != i;
    Value *v = z && moves ? b_transpose(g, z, perm) : z;
    if (!v || !moves) return v;
    while (l->ours.n <= v->id) VEC_PUSH(l->r.scratch, l->ours, false);
    l->ours.at[v->id] = true;
    return v;
}

// The transpose that node n's result becomes: of z, by the perm of the operand that it went through.
static Value *through(Layout *l, Graph *g, Value *z, const int64_t *p) {
    int perm[MAX_RANK];
    for (int i = 0; z && i < z->type.rank; i++) perm[i] = (int)p[i];
    return transposed(l, g, z, perm);
}

static void perm_last(int rank, int *perm) {            // [n,c,...] -> [n,...,c]
    perm[0] = 0;
    for (int i = 1; i < rank; i++) perm[i] = i == rank - 1 ? 1 : i + 1;
}

static void perm_first(int rank, int *perm) {
    perm[0] = 0;
    for (int i = 1; i < rank; i++) perm[i] = i == 1 ? rank - 1 : i - 1;
}

static bool is_first(const int64_t *p, int rank) {
    int perm[MAX_RANK];
    perm_first(rank, perm);
    for (int i = 0; i < rank; i++)
        if (p[i] != perm[i]) return false;
    return true;
}

static bool same_perm(const Value *a, const Value *b) {
    return a->type.rank == b->type.rank && !memcmp(perm_of(a), perm_of(b), sizeof(int64_t) * (size_t)a->type.rank);
}

// v, of rank `rank` or less and broadcast, as it stands beside what lies under a transpose by p.
static Value *beneath(const Layout *l, Graph *g, Value *v, const int64_t *p, int rank) {
    Dim dims[MAX_RANK];
    int perm[MAX_RANK], lead = rank - v->type.rank;
    bool one = true;
    if (is_ours(l, v) && lead == 0 && !memcmp(perm_of(v), p, sizeof(int64_t) * (size_t)rank)) return v->def->in[0];
    for (int i = 0; i < v->type.rank; i++) one = one && v->type.dim[i] == 1;
    if (one) return v->type.rank ? b_reshape(g, v, 0, NULL) : v;
    for (int i = 0; i < rank; i++) {
        dims[i] = i < lead ? 1 : v->type.dim[i - lead];
        perm[p[i]] = i;
    }
    return b_transpose(g, lead ? b_reshape(g, v, rank, dims) : v, perm);
}

// ---------------------------------------------------------------- what commutes with a transpose
// Integers in the lists named here go along with the axes.
static Value *inferred(Node *m) { return m ? b_finish(m) : NULL; }

static void permute_ints(Node *m, const char *name, const int64_t *p) {
    int count;
    int64_t moved[MAX_RANK];
    const int64_t *v = node_ints(m, name, &count);
    for (int i = 0; i < count; i++) moved[p[i]] = v[i];
    if (count) node_set_ints(m, name, moved, count);
}

// Of operands as large as the result: as many under p as not. Constants do not count, they are turned at compile time.
static Value *leading(const Layout *l, const Node *n, const Type *whole) {
    Value *first = NULL;
    int with = 0, against = 0;
    for (int i = 0; i < n->n_in; i++) {
        Value *v = n->in[i];
        if (!v || v->data || v->type.rank != whole->rank
            || memcmp(v->type.dim, whole->dim, sizeof(Dim) * (size_t)whole->rank))
            continue;
        if (is_ours(l, v) && (!first || same_perm(first, v))) {
            if (!first) first = v;
            with++;
        } else against++;
    }
    return with >= against ? first : NULL;
}

static Value *sink_map(Layout *l, Graph *g, Node *n) {
    const Type *t = &n->out[0]->type;
    Value *lead = leading(l, n, t), *in[MAX_RANK * 4];
    if (!lead || n->n_in > (int)COUNT(in)) return NULL;
    for (int i = 0; i < n->n_in; i++) in[i] = n->in[i] ? beneath(l, g, n->in[i], perm_of(lead), t->rank) : NULL;
    return through(l, g, inferred(node_like(g, n, in)), perm_of(lead));
}

// Reductions leave out axes, or leave them with size 1.
static Value *sink_reduce(Layout *l, Graph *g, Node *n) {
    Value *x = n->in[0];
    int rank = x->type.rank, count, perm[MAX_RANK], left = 0;
    if (!is_ours(l, x)) return NULL;
    const int64_t *p = perm_of(x), *axes = node_ints(n, "axes", &count);
    bool gone[MAX_RANK] = { false };                    // by axis of what lies beneath
    if (!count) return NULL;
    Node *m = node_like(g, n, (Value *[]){ x->def->in[0] });
    int64_t moved[MAX_RANK];
    for (int i = 0; i < count; i++) gone[moved[i] = p[axes[i]]] = true;
    node_set_ints(m, "axes", moved, count);
    Value *y = inferred(m);
    if (node_int(n, "keepdims", 1)) return through(l, g, y, p);
    // result axis `left` was p[i], which is now as many places further left as axes before it are gone
    for (int i = 0; i < rank; i++) {
        int at = (int)p[i];
        if (gone[at]) continue;
        for (int k = 0; k < p[i]; k++) at -= gone[k];
        perm[left++] = at;
    }
    return transposed(l, g, y, perm);
}

static Value *sink_axis(Layout *l, Graph *g, Node *n) {
    Value *x = n->in[0];
    if (!is_ours(l, x) || n->n_out != 1 || n->out[0]->type.rank != x->type.rank) return NULL;
    if (n->op == OP_Gather && n->in[1]->type.rank != 1) return NULL;
    if (op_table[n->op].form == FORM_ARG && !node_int(n, "keepdims", 1)) return NULL;
    Node *m = node_like(g, n, (Value *[]){ x->def->in[0], n->n_in > 1 ? n->in[1] : NULL });
    node_set_int(m, "axis", perm_of(x)[node_int(n, "axis", 0)]);
    return through(l, g, inferred(m), perm_of(x));
}

// A softmax of rows stays one: it is claimed as such.
static Value *sink_softmax(Layout *l, Graph *g, Node *n) {
    int last = n->in[0]->type.rank - 1;
    if (!is_ours(l, n->in[0]) || node_int(n, "axis", 0) != last || perm_of(n->in[0])[last] != last) return NULL;
    return sink_axis(l, g, n);
}

static Value *sink_window(Layout *l, Graph *g, Node *n) {
    Value *x = n->in[0];
    if (!is_ours(l, x) || !is_first(perm_of(x), x->type.rank)) return NULL;
    Value *dy = n->n_in > 1 ? beneath(l, g, n->in[1], perm_of(x), x->type.rank) : NULL;
    Node *m = node_like(g, n, (Value *[]){ x->def->in[0], dy });
    node_set_int(m, "channels_last", 1);
    return through(l, g, inferred(m), perm_of(x));
}

static Value *sink_concat(Layout *l, Graph *g, Node *n) {
    Value *lead = NULL, **in = NEW_ARRAY(g->arena, Value *, n->n_in);
    int64_t with = 0, against = 0;
    for (int i = 0; i < n->n_in; i++) {
        Value *v = n->in[i];
        bool fits = is_ours(l, v) && (!lead || same_perm(lead, v));
        if (fits && !lead) lead = v;
        int64_t size = min64(dims_upper(g, v->type.rank, v->type.dim), INT64_MAX / n->n_in);     // so the sums fit
        *(fits || v->data ? &with : &against) += size;
    }
    if (!lead || against > with) return NULL;
    for (int i = 0; i < n->n_in; i++) {
        int inverse[MAX_RANK];
        const int64_t *p = perm_of(lead);
        for (int k = 0; k < lead->type.rank; k++) inverse[p[k]] = k;
        in[i] = is_ours(l, n->in[i]) && same_perm(lead, n->in[i]) ? n->in[i]->def->in[0] :
                                                                    b_transpose(g, n->in[i], inverse);
    }
    Node *m = node_like(g, n, in);
    if (!m) return NULL;
    node_set_int(m, "axis", perm_of(lead)[node_int(n, "axis", 0)]);
    return through(l, g, inferred(m), perm_of(lead));
}

static Value *sink_lists(Layout *l, Graph *g, Node *n) {
    static const char *const lists[] = { "starts", "steps", "sizes", "lo", "hi", "interior", "shape" };
    Value *x = n->in[0];
    if (!is_ours(l, x) || n->out[0]->type.rank != x->type.rank) return NULL;
    Node *m = node_like(g, n, (Value *[]){ x->def->in[0], n->n_in > 1 ? n->in[1] : NULL });
    for (size_t i = 0; i < COUNT(lists); i++) permute_ints(m, lists[i], perm_of(x));
    return through(l, g, inferred(m), perm_of(x));
}

static Value *sink_transpose(Layout *l, Graph *g, Node *n) {
    Value *x = n->in[0];
    int count, perm[MAX_RANK];
    if (!is_ours(l, x)) return NULL;
    const int64_t *q = node_ints(n, "perm", &count), *p = perm_of(x);
    for (int i = 0; i < count; i++) perm[i] = (int)p[q[i]];
    return transposed(l, g, x->def->in[0], perm);
}

// ---------------------------------------------------------------- reshapes that split axes, or join neighbours
// axes from..to-1 before and at..end-1 after hold the same elements; z: where they begin beneath
typedef struct Part { int from, to, at, end, z; } Part;

static bool take(const Type *t, int *at, int64_t *product) {
    return *at < t->rank && t->dim[*at] > 0 && !__builtin_mul_overflow(*product, t->dim[(*at)++], product);
}

// The smallest parts of equal size; 0 when the sizes are not constants that say so.
static int find_parts(const Type *x, const Type *y, Part *parts) {
    int i = 0, j = 0, n = 0;
    while (i < x->rank || j < y->rank) {
        Part p = { .from = i, .at = j, .z = -1 };
        int64_t a = 1, b = 1;
        if (i < x->rank && j < y->rank && x->dim[i] == y->dim[j]) {
            i++;
            j++;
        } else {
            if ((i < x->rank && !take(x, &i, &a)) || (j < y->rank && !take(y, &j, &b))) return 0;
            while (a != b)
                if (!(a < b ? take(x, &i, &a) : take(y, &j, &b))) return 0;
        }
        p.to = i;
        p.end = j;
        parts[n++] = p;
    }
    return n;
}

// Axes from..to-1 of a transpose by p of z as neighbours in z, in the same order; *first: where they begin there, -1:
// all have size 1.
static bool neighbours(const Type *z, const int64_t *p, int from, int to, int *first) {
    int last = -1;
    *first = -1;
    for (int i = from; i < to; i++) {
        int at = (int)p[i];
        if (z->dim[at] == 1) continue;
        if (at < last) return false;
        for (int k = last + 1; last >= 0 && k < at; k++)
            if (z->dim[k] != 1) return false;
        if (last < 0) *first = at;
        last = at;
    }
    return true;
}

static Value *sink_reshape(Layout *l, Graph *g, Node *n) {
    Value *x = n->in[0], *z = is_ours(l, x) ? x->def->in[0] : NULL;
    const Type *t = &n->out[0]->type;
    Part parts[2 * MAX_RANK];
    Dim dims[MAX_RANK];
    int n_parts = z ? find_parts(&x->type, t, parts) : 0, perm[MAX_RANK], at = 0;
    for (int k = 0; k < n_parts; k++) {
        if (!neighbours(&z->type, perm_of(x), parts[k].from, parts[k].to, &parts[k].z)) return NULL;
        if (parts[k].z < 0 && k > 0) parts[k].z = parts[k - 1].z;       // axes of 1 stay behind what they are behind
    }
    for (int first = -1; n_parts && first < z->type.rank; first++)      // the parts as they follow each other beneath
        for (int k = 0; k < n_parts; k++)
            for (int j = parts[k].at; j < parts[k].end && parts[k].z == first; j++) {
                dims[at] = t->dim[j];
                perm[j] = at++;
            }
    return n_parts ? transposed(l, g, b_reshape(g, z, t->rank, dims), perm) : NULL;
}

// A product of flattened maps and constant rows: the rows change places instead of the maps' elements.
static Value *sink_product(Layout *l, Graph *g, Node *n) {
    Value *flat = n->in[0], *w = n->in[1], *x = flat->def && flat->def->op == OP_Reshape ? flat->def->in[0] : NULL;
    Part parts[2 * MAX_RANK];
    int rank = flat->type.rank, perm[MAX_RANK], lead;
    if (!is_ours(l, x) || !w->data || w->type.rank != 2) return NULL;
    const int64_t *p = perm_of(x);
    Value *z = x->def->in[0];
    int n_parts = find_parts(&x->type, &flat->type, parts), count = x->type.rank;
    if (n_parts < 1 || parts[n_parts - 1].end - parts[n_parts - 1].at != 1) return NULL;
    // axes before it stay where they are, those from it on are the rows
    lead = parts[n_parts - 1].from;
    for (int i = 0; i < lead; i++) if (p[i] != i) return NULL;
    Dim dims[MAX_RANK + 1];
    if (count - lead + 1 > MAX_RANK) return NULL;
    for (int i = lead; i < count; i++) {
        dims[i - lead] = x->type.dim[i];
        perm[p[i] - lead] = i - lead;
    }
    dims[count - lead] = w->type.dim[1];
    perm[count - lead] = count - lead;
    Value *rows = b_transpose(g, b_reshape(g, w, count - lead + 1, dims), perm);
    z = b_reshape(g, z, rank, flat->type.dim);
    return b_matmul_to(g, z, b_reshape(g, rows, 2, w->type.dim), n->out[0]->type.dtype);
}

typedef Value *SinkFn(Layout *l, Graph *g, Node *n);

// By what a transpose sinks below n; NULL: by nothing.
static SinkFn *sink_of(const Node *n) {
    switch (op_table[n->op].form) {
    case FORM_MAP: return sink_map;
    case FORM_RESHAPE: return n->op == OP_Reshape ? sink_reshape : sink_map;
    case FORM_VIEW: return n->op == OP_Transpose ? sink_transpose : sink_lists;
    case FORM_PAD: return sink_lists;
    case FORM_CONCAT: return sink_concat;
    case FORM_REDUCE: return sink_reduce;
    case FORM_ARG: case FORM_SCAN: return sink_axis;
    case FORM_GATHER: return n->op == OP_Gather ? sink_axis : NULL;
    case FORM_WINDOW: return n->op == OP_WindowArgMax ? NULL : sink_window;     // it counts elements as they lie
    case FORM_CONTRACT: return n->op == OP_MatMul ? sink_product : NULL;
    default: return n->op == OP_Softmax ? sink_softmax : n->op == OP_WindowMaxGrad ? sink_window : NULL;
    }
}

static bool sinks(const Node *n) { return sink_of(n) && n->op != OP_MatMul; }

static Value *sink(Layout *l, Graph *g, Node *n) {
    SinkFn *f = n->n_out == 1 ? sink_of(n) : NULL;
    return f ? f(l, g, n) : NULL;
}

// Does tap k of spatial axis i meet the input anywhere?
static bool meets(const Geometry *geo, int i, int64_t k, Dim in, Dim out) {
    int64_t from = k * geo->dilation[i] - geo->lo[i], s = geo->stride[i];
    int64_t o = from < 0 ? (-from + s - 1) / s : 0;     // the first output that reads at 0 or later
    return o < out && o * s + from < in;
}

// The taps of spatial axis i from the first to the last that meet the input; where strides jump over it, a few at
// either end that do not may be among them.
static void meeting_taps(const Geometry *geo, int i, Dim in, Dim out, int64_t *first, int64_t *last) {
    enum { STEPS = 256 };
    *first = max64(ceil_div(geo->lo[i] - (out - 1) * geo->stride[i], geo->dilation[i]), 0);
    *last = min64((geo->lo[i] + in - 1) / geo->dilation[i], geo->kernel[i] - 1);
    *first = min64(*first, geo->kernel[i] - 1);
    *last = max64(*first, *last);
    for (int k = 0; k < STEPS && *first < *last && !meets(geo, i, *first, in, out); k++) ++*first;
    for (int k = 0; k < STEPS && *first < *last && !meets(geo, i, *last, in, out); k++) --*last;
}

// Taps that read nothing but padding are left out: the outer ones of wide dilations on small maps.
static Node *trim_conv(Graph *g, Node *n) {
    const Type *x = &n->in[0]->type, *y = &n->out[0]->type, *w = &n->in[1]->type;
    int spatial = x->rank - 2;
    Geometry geo = geometry_of(n, spatial, w->dim + 2);
    Dim starts[MAX_RANK] = { 0 }, sizes[MAX_RANK];
    int64_t steps[MAX_RANK], pads[2 * MAX_RANK];
    bool less = false;
    if (node_int(n, "fill", 0)) return n;               // padding that counts
    for (int i = 0; i < w->rank; i++) {
        steps[i] = 1;
        sizes[i] = w->dim[i];
    }
    for (int i = 0; i < spatial; i++) {
        int64_t first, last;
        meeting_taps(&geo, i, x->dim[2 + i], y->dim[2 + i], &first, &last);
        pads[i] = geo.lo[i] - first * geo.dilation[i];
        pads[spatial + i] = geo.hi[i] - (geo.kernel[i] - 1 - last) * geo.dilation[i];
        if (pads[i] < 0 || pads[spatial + i] < 0) return n;
        less = less || last - first + 1 < geo.kernel[i];
        starts[2 + i] = first;
        sizes[2 + i] = last - first + 1;
    }
    Value *taps = less ? b_slice(g, n->in[1], starts, steps, sizes) : NULL;
    if (!taps) return n;
    Node *m = node_like(g, n, (Value *[]){ n->in[0], taps });
    node_set_ints(m, "pads", pads, 2 * spatial);
    node_set_int(m, "same", 0);
    return node_infer(m) ? m : n;
}

static Value *turn_conv(Layout *l, Graph *g, Node *n) {
    n = trim_conv(g, n);
    Value *x = n->in[0], *w = n->in[1], *y;
    int rank = x->type.rank, last[MAX_RANK], first[MAX_RANK];
    perm_last(rank, last);
    perm_first(rank, first);
    x = is_ours(l, x) && is_first(perm_of(x), rank) ? x->def->in[0] : b_transpose(g, x, last);
    if (layout_is_product(n)) {
        w = b_reshape(g, w, 2, (Dim[]){ w->type.dim[0], w->type.dim[1] });
        y = b_matmul_to(g, x, b_transpose(g, w, (int[]){ 1, 0 }), n->out[0]->type.dtype);
    } else {
        Node *m = node_like(g, n, (Value *[]){ x, w });
        node_set_int(m, "channels_last", 1);
        y = inferred(m);
    }
    return transposed(l, g, y, first);
}

Value *layout_product(Graph *g, Value *x, Value *w, const Type *t) {
    Dim pixels = 1;
    for (int i = 2; i < t->rank; i++) pixels = dim_mul(g, pixels, t->dim[i]);
    Value *left = b_reshape(g, w, 2, (Dim[]){ w->type.dim[0], w->type.dim[1] });
    Value *right = b_reshape(g, x, 3, (Dim[]){ x->type.dim[0], x->type.dim[1], pixels });
    return b_reshape(g, b_matmul_to(g, left, right, t->dtype), t->rank, t->dim);
}

// With the channels first: a depthwise convolution as it is, or a product.
static Value *keep_conv(Graph *g, Node *n) {
    if (!layout_is_product(n)) return trim_conv(g, n)->out[0];
    return layout_product(g, n->in[0], n->in[1], &n->out[0]->type);
}

// A convolution over the batch, as those are that give gradients by weights: its first axis, the channels, lies last in
// what it reads, and its last ones are summed. It stays, and a back end that finds products in loops reads both factors
// as they lie.
static bool sums_the_batch(const Layout *l, const Node *n) {
    if (!l->in_loops || n->op != OP_Conv) return false;
    const Value *x = n->in[0];
    int64_t axis = 0;
    for (; x->def && x->def->op == OP_Transpose; x = x->def->in[0]) axis = perm_of(x)[axis];
    return axis == x->type.rank - 1;
}

static void layout_graph(Layout *l, Graph *g, const Backend *b) {
    const bool *stays = layout_stay(l->r.scratch, g, b, sinks);
    const int known = graph_root(g)->value_count;       // values before this; what is made from now on has no mark
    for (Node *n = g->first; n; n = n->next) {
        bool stay = n->n_out == 1 && n->out[0]->id < known && stays[n->out[0]->id];
        rewrite_operands(&l->r, n);
        for (int i = 0; i < n->n_bodies; i++) layout_graph(l, n->bodies[i], b);
        g->cursor = n;
        g->loc = n->loc;
        if (n->n_bodies || sums_the_batch(l, n)) continue;
        Value *v = stay ? keep_conv(g, n) : layout_turns(n) ? turn_conv(l, g, n) : sink(l, g, n);
        if (v && v != n->out[0]) rewrite_set(&l->r, n->out[0], v);
    }
    g->cursor = NULL;
    rewrite_outputs(&l->r, g);
}

bool wants_channels_last(const Options *o) {
    const Backend *b = o->machine.backend;
    return b->channels_last || b->channels_last_of_bytes || (b->channels_last_in_halves && o->precision);
}

static bool convolves_bytes(const Graph *g) {
    bool any = false;
    for (const Node *n = g->first; n && !any; n = n->next) {
        any = n->op == OP_Conv && node_of_bytes(n);
        for (int i = 0; i < n->n_bodies && !any; i++) any = convolves_bytes(n->bodies[i]);
    }
    return any;
}

bool pass_layout(Graph *g, const Options *o) {
    const Backend *b = o->machine.backend;
    const bool all = b->channels_last || (b->channels_last_in_halves && o->precision);
    if (!all && !convolves_bytes(g)) return false;
    Layout l = { .r = { .scratch = arena_new() }, .in_loops = b->windows_in_loops };
    layout_graph(&l, g, b);
    arena_free(l.r.scratch);
    return pass_dce(g) || l.r.changed;
}
