// SPDX-License-Identifier: MIT OR Apache-2.0
// Gradient: what is to be differentiated. The pass of that name replaces it before a back end sees it, so that it has a
// shape and nothing else: each result has the type of the operand that it is the gradient by.
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

// Nothing is folded before the backward graph is there.
bool eval_gradient(const Node *n, Tensor *const *in, Tensor *const *out) {
    (void)n;
    (void)in;
    (void)out;
    return false;
}
