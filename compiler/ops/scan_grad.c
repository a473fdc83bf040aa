// SPDX-License-Identifier: MIT OR Apache-2.0
// Gradients of the running CumSum, CumProd, CumMax and CumMin.
//
// An exclusive scan gives the inclusive one an element later, so that its gradient is that of the inclusive one an
// element earlier; what follows is about inclusive ones. "Ahead" is where the scan comes later.
//
//   product    dx[k] = x[0] .. x[k-1] * s[k]     s[k] = dy[k] + x[k+1] s[k+1]
//   extreme    dx[k] = sum of the dy[i] whose y[i] is x[k], of equal elements the last
//
// Nothing is divided by, so that zeros among the factors do no harm. The recurrence of s is taken in steps of doubling
// width, as pairs (a, b) that stand for s[k] = a s[k + width] + b: maps of shifted values, which have gradients again.
#include "common.h"
#include "table.h"

typedef struct Scan { Graph *g; int axis; int64_t size; bool exclusive, reverse; } Scan;

static bool scan_of(Node *n, Scan *s) {
    int axis = (int)node_int(n, "axis", 0);
    *s = (Scan){ n->graph, axis, n->in[0]->type.dim[axis], node_int(n, "exclusive", 0) != 0,
        node_int(n, "reverse", 0) != 0 };
    return op_static(n, s->size, "the size of the axis that a gradient runs along");
}

static Value *cumulate(const Scan *s, Op op, Value *x, bool exclusive, bool reverse) {
    return b_cumulate(s->g, op, x, s->axis, exclusive, reverse);
}

// x[k + by] at k, zeros behind the end
static Value *ahead(const Scan *s, Value *x, int64_t by) {
    int64_t lo[MAX_RANK] = { 0 }, hi[MAX_RANK] = { 0 };
    lo[s->axis] = s->reverse ? by : -by;
    hi[s->axis] = -lo[s->axis];
    return b_pad(s->g, x, lo, hi, NULL, NULL);
}

// The gradients of the inclusive scan.
static Value *inclusive(const Scan *s, Value *dy) { return s->exclusive ? ahead(s, dy, 1) : dy; }

bool grad_cumsum(Node *n, Value *const *dout, Value **din) {
    const Scan s = { n->graph, (int)node_int(n, "axis", 0), 0, node_int(n, "exclusive", 0) != 0,
        node_int(n, "reverse", 0) != 0 };
    din[0] = cumulate(&s, OP_CumSum, dout[0], s.exclusive, !s.reverse);
    return din[0] != NULL;
}

bool grad_cumprod(Node *n, Value *const *dout, Value **din) {
    Scan s;
    if (!scan_of(n, &s)) return false;
    Value *x = n->in[0], *before = cumulate(&s, OP_CumProd, x, true, s.reverse), *a = ahead(&s, x, 1),
          *b = inclusive(&s, dout[0]);
    for (int64_t width = 1; width < s.size; width *= 2) {
        Value *later = ahead(&s, b, width);
        b = B_MAP(s.g, "a * y + b", "a y b", a, later, b);
        if (2 * width < s.size) a = b_binary(s.g, OP_Mul, a, ahead(&s, a, width));
    }
    din[0] = b_binary(s.g, OP_Mul, before, b);
    return din[0] != NULL;
}

// Where the extreme so far stands: the last place whose element is it.
bool grad_cum_extreme(Node *n, Value *const *dout, Value **din) {
    Scan s;
    if (!scan_of(n, &s)) return false;
    Graph *g = s.g;
    Value *x = n->in[0], *y = s.exclusive ? cumulate(&s, n->op, x, false, s.reverse) : n->out[0],
          *place = b_iota(g, x->type.rank, x->type.dim, s.axis, DT_I64);
    Value *first = place ? b_like(g, place, s.reverse ? (double)(s.size - 1) : 0) : NULL;
    Value *is = b_binary(g, OP_Equal, x, y), *at = b_where(g, is, place, first);
    at = cumulate(&s, s.reverse ? OP_CumMin : OP_CumMax, at, false, s.reverse);
    Value *zero = b_full(g, &x->type, 0);
    din[0] = b_scatter_elements(g, zero, at, inclusive(&s, dout[0]), s.axis, "add");
    return din[0] != NULL;
}
