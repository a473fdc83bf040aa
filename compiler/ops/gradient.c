// SPDX-License-Identifier: MIT OR Apache-2.0
// Gradient and Tangent: what is to be differentiated. The pass gradient replaces them before a back end sees them, so
// that they have shapes and nothing else: of Gradient each result has the type of the operand that it is the gradient
// by, of Tangent the type of the operand that it is the derivative of.
#include "common.h"
#include "table.h"

bool shape_gradient(Node *n) {
    const Graph *body = n->n_bodies ? n->bodies[0] : NULL;
    int first = body ? 0 : 1;
    bool fits = body ? body->inputs.n == n->n_in && body->outputs.n == 1 && n->n_out <= n->n_in :
                       n->n_in == 1 + n->n_out;
    if (!fits) {
        diag_error(n->loc, "Gradient of %d inputs and %d outputs: wants a result, then what it is differentiated by",
            n->n_in, n->n_out);
        return false;
    }
    for (int i = 0; body && i < n->n_in; i++) {
        const Value *own = body->inputs.at[i];
        if (type_equal(&own->type, &n->in[i]->type)) continue;
        diag_error(n->loc, "input %d of the body is %s, the operand is %s", i, value_type_text(own),
            value_type_text(n->in[i]));
        return false;
    }
    for (int i = 0; i < n->n_out; i++) {
        const Value *x = n->in[first + i];
        if (!dtype_is_float(x->type.dtype)) {
            diag_error(n->loc, "cannot differentiate by %s: only floats have gradients", value_type_text(x));
            return false;
        }
        n->out[i]->type = x->type;
    }
    return true;
}

bool shape_tangent(Node *n) {
    int moved = (n->n_in - n->n_out) / 2;
    if (moved < 1 || n->n_in != n->n_out + 2 * moved) {
        diag_error(n->loc, "Tangent of %d inputs and %d outputs: wants results, what moves, and each one's direction",
            n->n_in, n->n_out);
        return false;
    }
    for (int i = 0; i < n->n_out + moved; i++) {
        const Value *v = n->in[i], *direction = i < n->n_out ? v : n->in[i + moved];
        if (dtype_is_float(v->type.dtype) && type_equal(&v->type, &direction->type)) continue;
        diag_error(n->loc, "Tangent of %s by %s: wants floats, and a direction of the type of what moves",
            value_type_text(v), value_type_text(direction));
        return false;
    }
    for (int i = 0; i < n->n_out; i++) n->out[i]->type = n->in[i]->type;
    return true;
}

// Nothing is folded before the backward graph is there.
bool eval_gradient(const Node *n, Tensor *const *in, Tensor *const *out) {
    (void)n;
    (void)in;
    (void)out;
    return false;
}
