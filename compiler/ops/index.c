// SPDX-License-Identifier: MIT OR Apache-2.0
// Indexed access: Gather, GatherElements, GatherND, ScatterElements, ScatterND.
//
// Negative indices count from the end of their axis. An index that is outside even so reads 0 and its write is
// dropped; that makes each gather and the adding scatter exact adjoints of each other, which is what their gradients
// are. Gathers copy bytes of any dtype.
#include "common.h"
#include "table.h"

#include <string.h>

// ---------------------------------------------------------------- shared
// The index wrapped into 0..size-1, or -1
static int64_t wrap_index(int64_t i, int64_t size) {
    if (i < 0) i += size;
    return i >= 0 && i < size ? i : -1;
}

static void copy_or_clear(char *to, const char *from, int64_t at, size_t bytes, DType d) {
    if (at >= 0) memcpy(to, from + (size_t)at * bytes, bytes);
    else if (d == DT_STRING) for (size_t i = 0; i < bytes / sizeof(char *); i++) ((const char **)(void *)to)[i] = "";
    else memset(to, 0, bytes);
}

// How often the loop runs whose iteration number v is; NULL when it is none.
static const Node *loop_of(const Value *v) {
    const Graph *g = v->graph;
    if (!v->is_input || !g->parent || g->inputs.n < 2 || g->inputs.at[0] != v) return NULL;
    for (const Node *n = g->parent->first; n; n = n->next)
        if (n->op == OP_Loop && n->bodies[0] == g) return n;
    return NULL;
}

// Is every index known to be in 0..size-1? Constants, a loop's iteration number i, and N - i with a constant N.
static bool is_inside(Graph *g, const Value *v, Dim size) {
    int count;
    const Node *loop = loop_of(v), *d = v->def;
    const int64_t *trips = loop ? node_ints(loop, "trips", &count) : NULL;
    if (trips) return dim_equal(g, trips[0], size);
    if (!dim_is_const(size)) return false;
    if (loop) return loop->in[0] && loop->in[0]->data && tensor_get_i(loop->in[0]->data, 0) <= size;
    if (d && d->op == OP_Sub && d->in[0]->data && type_count(&d->in[0]->type) == 1 && loop_of(d->in[1])) {
        int64_t from = tensor_get_i(d->in[0]->data, 0);
        loop = loop_of(d->in[1]);
        return from < size && loop->in[0] && loop->in[0]->data && tensor_get_i(loop->in[0]->data, 0) <= from + 1;
    }
    for (int64_t i = 0; v->data && i < type_count(&v->type); i++)
        if (tensor_get_i(v->data, i) < 0 || tensor_get_i(v->data, i) >= size) return false;
    return v->data != NULL;
}

Expr *lower_index(Lower *l, Value *indices, Expr *const *at, Dim size, Expr **cond) {
    bool negative = !is_inside(indices->graph, indices, size), outside = negative;
    if (negative && indices->data && dim_is_const(size)) {
        int64_t count = type_count(&indices->type);
        negative = outside = false;
        for (int64_t i = 0; i < count; i++) {
            int64_t v = tensor_get_i(indices->data, i);
            negative = negative || v < 0;
            outside = outside || wrap_index(v, size) < 0;
        }
    }
    Expr *i = lower_load(l, indices, at);
    if (!i) return NULL;
    i = expr_cast(l->p, i, DT_INDEX);
    if (negative && dtype_class(indices->type.dtype) == CLASS_INT && i->lo < 0) {
        Expr *below = expr_binary(l->p, E_Lt, i, expr_index(l->p, 0));
        i = expr_select(l->p, below, expr_binary(l->p, E_Add, i, lower_dim(l, size)), i);
    }
    Expr *inside = outside ? ix_in_range(l, NULL, i, 0, size) : NULL;
    if (!inside) return i;
    *cond = *cond ? expr_binary(l->p, E_And, *cond, inside) : inside;
    // no address is computed from an index that is outside
    return expr_select(l->p, inside, i, expr_index(l->p, 0));
}

// ---------------------------------------------------------------- Gather
bool shape_gather(Node *n) {
    const Type *x = &n->in[0]->type, *i = &n->in[1]->type;
    int axis;
    if (!op_index_type(n, n->in[1]) || !op_axis(n, x->rank, &axis)) return false;
    if (x->rank - 1 + i->rank > MAX_RANK) {
        diag_error_as(EXIT_LIMIT, n->loc, "gathering %s by %s gives more than %d dimensions",
            value_type_text(n->in[0]), value_type_text(n->in[1]), MAX_RANK);
        return false;
    }
    Type t = { .dtype = x->dtype };
    for (int k = 0; k < axis; k++) t.dim[t.rank++] = x->dim[k];
    for (int k = 0; k < i->rank; k++) t.dim[t.rank++] = i->dim[k];
    for (int k = axis + 1; k < x->rank; k++) t.dim[t.rank++] = x->dim[k];
    n->out[0]->type = t;
    return true;
}

bool eval_gather(const Node *n, Tensor *const *in, Tensor *const *out) {
    const Type *x = &in[0]->type;
    int axis = (int)node_int(n, "axis", 0);
    int64_t outer = 1, inner = 1, count = type_count(&in[1]->type), size = x->dim[axis];
    for (int i = 0; i < axis; i++) outer *= x->dim[i];
    for (int i = axis + 1; i < x->rank; i++) inner *= x->dim[i];
    size_t bytes = (size_t)inner * dtype_size(x->dtype);
    char *to = out[0]->data;
    for (int64_t o = 0; o < outer; o++)
        for (int64_t k = 0; k < count; k++, to += bytes) {
            int64_t i = wrap_index(tensor_get_i(in[1], k), size);
            copy_or_clear(to, in[0]->data, i < 0 ? -1 : o * size + i, bytes, x->dtype);
        }
    return true;
}

// Rows of dy are added where they were read: with the gathered axis moved first, one ScatterND of whole rows.
bool grad_gather(Node *n, Value *const *dout, Value **din) {
    Graph *g = n->graph;
    const Type *x = &n->in[0]->type;
    Type at = n->in[1]->type, rows = *x;
    int axis = (int)node_int(n, "axis", 0);
    if (at.rank == MAX_RANK) {
        diag_error_as(
            EXIT_LIMIT, n->loc, "indices %s have too many dimensions to be differentiated", value_type_text(n->in[1]));
        return false;
    }
    Value *dy = b_move_axes(g, dout[0], axis, at.rank, 0);
    rows.dim[0] = x->dim[axis];
    for (int i = 0; i < axis; i++) rows.dim[i + 1] = x->dim[i];
    at.dim[at.rank++] = 1;
    Value *indices = b_reshape(g, n->in[1], at.rank, at.dim);
    Value *dx = b_scatter_nd(g, b_full(g, &rows, 0), indices, dy, "add");
    din[0] = b_move_axes(g, dx, 0, 1, axis);
    return din[0] != NULL;
}

Expr *lower_gather(Lower *l, Node *n, int out, Expr *const *idx) {
    (void)out;
    const Type *x = &n->in[0]->type, *t = &n->in[1]->type;
    int axis = (int)node_int(n, "axis", 0);
    Expr *at[MAX_RANK], *cond = NULL;
    for (int i = 0; i < x->rank; i++) at[i] = i < axis ? idx[i] : i > axis ? idx[i - 1 + t->rank] : NULL;
    at[axis] = lower_index(l, n->in[1], idx + axis, x->dim[axis], &cond);
    return at[axis] ? lower_guarded(l, n->in[0], at, cond, expr_zero(l->p, x->dtype)) : NULL;
}

// ---------------------------------------------------------------- GatherElements
// Indices address every axis but `axis` by their own position, so they may not be longer there.
static bool elements_fit(Node *n, const Type *x, const Type *i, int axis) {
    bool fits = x->rank == i->rank;
    for (int k = 0; fits && k < x->rank; k++)
        fits = k == axis || !dim_is_const(x->dim[k]) || !dim_is_const(i->dim[k]) || i->dim[k] <= x->dim[k];
    if (!fits)
        diag_error(n->loc, "indices %s do not fit %s along the axes other than %d", value_type_text(n->in[1]),
            value_type_text(n->in[0]), axis);
    return fits;
}

bool shape_gather_elements(Node *n) {
    const Type *x = &n->in[0]->type, *i = &n->in[1]->type;
    int axis;
    if (!op_index_type(n, n->in[1]) || !op_axis(n, x->rank, &axis) || !elements_fit(n, x, i, axis)) return false;
    n->out[0]->type = *i;
    n->out[0]->type.dtype = x->dtype;
    return true;
}

// Flat position in `data` of the element that index element `idx` (value v) addresses; -1 outside.
static int64_t element_position(const Type *data, const int64_t *stride, int axis, const int64_t *idx, int64_t v) {
    int64_t at = wrap_index(v, data->dim[axis]);
    if (at < 0) return -1;
    at *= stride[axis];
    for (int i = 0; i < data->rank; i++)
        if (i != axis) at += idx[i] * stride[i];
    return at;
}

bool eval_gather_elements(const Node *n, Tensor *const *in, Tensor *const *out) {
    const Type *x = &in[0]->type, *t = &in[1]->type;
    int axis = (int)node_int(n, "axis", 0);
    int64_t stride[MAX_RANK], idx[MAX_RANK] = { 0 }, count = type_count(t);
    type_strides(x, stride);
    size_t size = dtype_size(x->dtype);
    char *to = out[0]->data;
    for (int64_t k = 0; k < count; k++, to += size) {
        copy_or_clear(to, in[0]->data, element_position(x, stride, axis, idx, tensor_get_i(in[1], k)), size, x->dtype);
        index_next(t->rank, t->dim, idx);
    }
    return true;
}

bool grad_gather_elements(Node *n, Value *const *dout, Value **din) {
    Value *zero = b_full(n->graph, &n->in[0]->type, 0);
    din[0] = b_scatter_elements(n->graph, zero, n->in[1], dout[0], (int)node_int(n, "axis", 0), "add");
    return din[0] != NULL;
}

Expr *lower_gather_elements(Lower *l, Node *n, int out, Expr *const *idx) {
    (void)out;
    const Type *x = &n->in[0]->type;
    int axis = (int)node_int(n, "axis", 0);
    Expr *at[MAX_RANK], *cond = NULL;
    for (int i = 0; i < x->rank; i++) at[i] = idx[i];
    at[axis] = lower_index(l, n->in[1], idx, x->dim[axis], &cond);
    return at[axis] ? lower_guarded(l, n->in[0], at, cond, expr_zero(l->p, x->dtype)) : NULL;
}

// ---------------------------------------------------------------- GatherND
// Indices [batch..., i..., depth] address the `depth` axes after the batch axes of x and read what is below them.
bool shape_gather_nd(Node *n) {
    const Type *x = &n->in[0]->type, *i = &n->in[1]->type;
    int64_t batch = node_int(n, "batch_dims", 0);
    Dim depth = i->rank ? i->dim[i->rank - 1] : 0;
    if (!op_index_type(n, n->in[1])) return false;
    bool fits = i->rank >= 1 && dim_is_const(depth) && batch >= 0 && batch < i->rank && batch + depth <= x->rank;
    for (int k = 0; fits && k < batch; k++) fits = dims_agree(n, x->dim[k], i->dim[k]);
    if (!fits) {
        diag_error(n->loc, "indices %s do not address %s with %lld batch dimensions", value_type_text(n->in[1]),
            value_type_text(n->in[0]), (long long)batch);
        return false;
    }
    int below = (int)(batch + depth);
    if (i->rank - 1 + x->rank - below > MAX_RANK) {
        diag_error_as(EXIT_LIMIT, n->loc, "gathering %s by %s gives more than %d dimensions",
            value_type_text(n->in[0]), value_type_text(n->in[1]), MAX_RANK);
        return false;
    }
    Type t = { .dtype = x->dtype };
    for (int k = 0; k < i->rank - 1; k++) t.dim[t.rank++] = i->dim[k];
    for (int k = below; k < x->rank; k++) t.dim[t.rank++] = x->dim[k];
    n->out[0]->type = t;
    return true;
}

// Number of the block of x's axes below `first + depth` that index row `row` addresses within block `base` of the
// axes above; -1 outside.
static int64_t block_position(
    const Type *x, const Tensor *indices, int64_t row, int first, int64_t depth, int64_t base) {
    for (int64_t k = 0; k < depth; k++) {
        int64_t size = x->dim[first + k], i = wrap_index(tensor_get_i(indices, row * depth + k), size);
        if (i < 0) return -1;
        base = base * size + i;
    }
    return base;
}

bool eval_gather_nd(const Node *n, Tensor *const *in, Tensor *const *out) {
    const Type *x = &in[0]->type, *t = &in[1]->type;
    int batch = (int)node_int(n, "batch_dims", 0);
    int64_t depth = t->dim[t->rank - 1], rows = 1, batches = 1, block = 1;
    for (int i = 0; i < t->rank - 1; i++) rows *= t->dim[i];
    for (int i = 0; i < batch; i++) batches *= x->dim[i];
    for (int i = batch + (int)depth; i < x->rank; i++) block *= x->dim[i];
    size_t bytes = (size_t)block * dtype_size(x->dtype);
    char *to = out[0]->data;
    for (int64_t r = 0; r < rows; r++, to += bytes)
        copy_or_clear(
            to, in[0]->data, block_position(x, in[1], r, batch, depth, r / (rows / batches)), bytes, x->dtype);
    return true;
}

// Indices that address the batch axes, too: the coordinates of each row's batch before its own.
static Value *batched_indices(Graph *g, Value *indices, int batch) {
    Value *parts[MAX_RANK + 1];
    Type t = indices->type;
    t.dim[t.rank - 1] = 1;
    for (int i = 0; i < batch; i++) {
        Node *c = graph_node(g, OP_Iota, 0, NULL, 1);
        node_set_ints(c, "shape", t.dim, t.rank);
        node_set_int(c, "axis", i);
        node_set_int(c, "dtype", t.dtype);
        if (!node_infer(c)) return NULL;
        parts[i] = c->out[0];
    }
    parts[batch] = indices;
    return batch ? b_concat(g, t.rank - 1, batch + 1, parts) : indices;
}

bool grad_gather_nd(Node *n, Value *const *dout, Value **din) {
    Graph *g = n->graph;
    Value *zero = b_full(g, &n->in[0]->type, 0);
    Value *indices = batched_indices(g, n->in[1], (int)node_int(n, "batch_dims", 0));
    din[0] = b_scatter_nd(g, zero, indices, dout[0], "add");
    return din[0] != NULL;
}

Expr *lower_gather_nd(Lower *l, Node *n, int out, Expr *const *idx) {
    (void)out;
    const Type *x = &n->in[0]->type, *t = &n->in[1]->type;
    int batch = (int)node_int(n, "batch_dims", 0), depth = (int)t->dim[t->rank - 1];
    Expr *at[MAX_RANK], *which[MAX_RANK], *cond = NULL;
    for (int i = 0; i < t->rank - 1; i++) which[i] = idx[i];
    for (int i = 0; i < batch; i++) at[i] = idx[i];
    for (int k = 0; k < depth; k++) {
        which[t->rank - 1] = expr_index(l->p, k);
        at[batch + k] = lower_index(l, n->in[1], which, x->dim[batch + k], &cond);
        if (!at[batch + k]) return NULL;
    }
    for (int i = batch + depth; i < x->rank; i++) at[i] = idx[t->rank - 1 + i - batch - depth];
    return lower_guarded(l, n->in[0], at, cond, expr_zero(l->p, x->dtype));
}

// ---------------------------------------------------------------- scatters: shapes
static ReduceOp scatter_reduction(const Node *n) { return reduce_of_scatter(node_string(n, "reduction", "none")); }

static bool scatter_check(Node *n) {
    ReduceOp op = scatter_reduction(n);
    if (op == RED_COUNT) {
        diag_error(n->loc, "reduction \"%s\" is not one of none, add, mul, min, max", node_string(n, "reduction", ""));
        return false;
    }
    if (!op_index_type(n, n->in[1]) || (op != RED_NONE && !op_numeric(n, n->in[0]))) return false;
    if (n->in[0]->type.dtype == n->in[2]->type.dtype) return true;
    diag_error(n->loc, "updates are %s but data is %s; cast one of them", value_type_text(n->in[2]),
        value_type_text(n->in[0]));
    return false;
}

static bool same_dims(Node *n, const Type *a, const Type *b) {
    bool same = a->rank == b->rank;
    for (int i = 0; same && i < a->rank; i++) same = dims_agree(n, a->dim[i], b->dim[i]);
    return same;
}

bool shape_scatter_elements(Node *n) {
    const Type *x = &n->in[0]->type, *i = &n->in[1]->type;
    int axis;
    if (!scatter_check(n) || !op_axis(n, x->rank, &axis) || !elements_fit(n, x, i, axis)) return false;
    if (!same_dims(n, i, &n->in[2]->type)) {
        diag_error(n->loc, "updates %s must have the shape of the indices %s", value_type_text(n->in[2]),
            value_type_text(n->in[1]));
        return false;
    }
    n->out[0]->type = *x;
    return true;
}

bool shape_scatter_nd(Node *n) {
    const Type *x = &n->in[0]->type, *i = &n->in[1]->type;
    if (!scatter_check(n)) return false;
    Dim depth = i->rank ? i->dim[i->rank - 1] : 0;
    bool fits = i->rank >= 1 && dim_is_const(depth) && depth <= x->rank && i->rank - 1 + x->rank - depth <= MAX_RANK;
    Type want = { .dtype = x->dtype };
    if (fits) {
        for (int k = 0; k < i->rank - 1; k++) want.dim[want.rank++] = i->dim[k];
        for (int k = (int)depth; k < x->rank; k++) want.dim[want.rank++] = x->dim[k];
        fits = same_dims(n, &want, &n->in[2]->type);
    }
    if (!fits) {
        diag_error(n->loc,
            "indices %s and updates %s do not address %s: updates must be [indices but the last..., axes below "
            "those addressed...]",
            value_type_text(n->in[1]), value_type_text(n->in[2]), value_type_text(n->in[0]));
        return false;
    }
    n->out[0]->type = *x;
    return true;
}

// ---------------------------------------------------------------- scatters: evaluation
static void scatter_one(Tensor *y, int64_t at, const Tensor *updates, int64_t from, ReduceOp op) {
    size_t size = dtype_size(y->type.dtype);
    if (op == RED_NONE)
        memcpy((char *)y->data + (size_t)at * size, (const char *)updates->data + (size_t)from * size, size);
    else element_set(y, at, reduce_combine(op, y->type.dtype, element_get(y, at), element_get(updates, from)));
}

bool eval_scatter_elements(const Node *n, Tensor *const *in, Tensor *const *out) {
    const Type *x = &in[0]->type, *t = &in[1]->type;
    int axis = (int)node_int(n, "axis", 0);
    ReduceOp op = scatter_reduction(n);
    int64_t stride[MAX_RANK], idx[MAX_RANK] = { 0 }, count = type_count(t);
    type_strides(x, stride);
    memcpy(out[0]->data, in[0]->data, (size_t)type_bytes(x));
    for (int64_t k = 0; k < count; k++) {
        int64_t at = element_position(x, stride, axis, idx, tensor_get_i(in[1], k));
        if (at >= 0) scatter_one(out[0], at, in[2], k, op);
        index_next(t->rank, t->dim, idx);
    }
    return true;
}

bool eval_scatter_nd(const Node *n, Tensor *const *in, Tensor *const *out) {
    const Type *x = &in[0]->type, *t = &in[1]->type;
    ReduceOp op = scatter_reduction(n);
    int64_t depth = t->dim[t->rank - 1], rows = 1, block = 1;
    for (int i = 0; i < t->rank - 1; i++) rows *= t->dim[i];
    for (int i = (int)depth; i < x->rank; i++) block *= x->dim[i];
    memcpy(out[0]->data, in[0]->data, (size_t)type_bytes(x));
    for (int64_t r = 0; r < rows; r++) {
        int64_t at = block_position(x, in[1], r, 0, depth, 0);
        for (int64_t i = 0; at >= 0 && i < block; i++)
            scatter_one(out[0], at * block + i, in[2], r * block + i, op);
    }
    return true;
}

// ---------------------------------------------------------------- scatters: gradients
// Both scatters in one: how to read back what an update met, and how to scatter again.
typedef struct Scatter { Graph *g; Node *n; bool nd; } Scatter;

static Value *take(const Scatter *s, Value *v) {
    return s->nd ? b_op(s->g, OP_GatherND, 2, (Value *[]){ v, s->n->in[1] }) :
                   b_gather_elements(s->g, v, s->n->in[1], (int)node_int(s->n, "axis", 0));
}

static Value *put(const Scatter *s, double into, Value *updates, const char *reduction) {
    Value *data = b_full(s->g, &s->n->in[0]->type, into);
    return s->nd ? b_scatter_nd(s->g, data, s->n->in[1], updates, reduction)
                 : b_scatter_elements(s->g, data, s->n->in[1], updates, (int)node_int(s->n, "axis", 0), reduction);
}

// min, max: data and updates that equal the result share its gradient evenly.
static void scatter_extreme(const Scatter *s, Value *dy, Value **din) {
    Graph *g = s->g;
    Value *x = s->n->in[0], *u = s->n->in[2], *y = s->n->out[0];
    Value *kept = b_cast(g, b_binary(g, OP_Equal, x, y), x->type.dtype);
    Value *met = b_cast(g, b_binary(g, OP_Equal, u, take(s, y)), x->type.dtype);
    Value *count = b_binary(g, OP_Add, kept, put(s, 0, met, "add"));
    Value *share = b_binary(g, OP_Div, dy, b_binary(g, OP_Max, count, b_like(g, x, 1)));
    din[0] = b_binary(g, OP_Mul, kept, share);
    din[2] = b_binary(g, OP_Mul, met, take(s, share));
}

static bool scatter_gradient(Node *n, bool nd, Value *dy, Value **din) {
    Graph *g = n->graph;
    Scatter s = { g, n, nd };
    ReduceOp op = scatter_reduction(n);
    if (op == RED_NONE) {                               // what was overwritten has no part in y
        Value *kept = put(&s, 1, b_full(g, &n->in[2]->type, 0), "none");
        din[0] = b_binary(g, OP_Mul, dy, kept);
        din[2] = take(&s, dy);
    } else if (op == RED_SUM) {
        din[0] = dy;
        din[2] = take(&s, dy);
    } else if (op == RED_PROD) {                        // d/du = y / u: an update of 0 has no finite gradient here
        din[0] = b_binary(g, OP_Mul, dy, put(&s, 1, n->in[2], "mul"));
        Value *product = take(&s, b_binary(g, OP_Mul, dy, n->out[0]));
        din[2] = b_binary(g, OP_Div, product, n->in[2]);
    } else {
        scatter_extreme(&s, dy, din);
    }
    return din[0] && din[2];
}

bool grad_scatter_elements(Node *n, Value *const *dout, Value **din) {
    return scatter_gradient(n, false, dout[0], din);
}
bool grad_scatter_nd(Node *n, Value *const *dout, Value **din) { return scatter_gradient(n, true, dout[0], din); }
