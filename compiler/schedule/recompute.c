// SPDX-License-Identifier: MIT OR Apache-2.0
// What it costs to compute a value once more instead of storing it: scalar operations of an element, and how often an
// operation reads each element of its input. Rough: fusing asks whether they are few.
#include "schedule.h"

static double expr_cost(const Expr *e) {
    double c = 0;
    for (int i = 0; i < 3; i++) if (e->a[i]) c += expr_cost(e->a[i]);
    switch (e->op) {
    case E_Const: case E_Arg: case E_Cast: return c;
    case E_Add:
    case E_Sub:
    case E_Mul:
    case E_Min:
    case E_Max:
    case E_Neg:
    case E_Abs:
    case E_BitAnd:
    case E_Shl:
    case E_Shr:
    case E_Select:
    case E_Lt:
    case E_Le:
    case E_Eq: return c + 1;
    case E_Div: case E_Sqrt: return c + 4;
    default: return c + 12;
    }
}

bool node_is_outer_product(const Node *n) {
    const Type *x = n->op == OP_MatMul ? &n->in[0]->type : NULL;
    return x && x->rank > 0 && x->dim[x->rank - 1] == 1;
}

double node_cost(const Node *n) {
    if (op_is_view(n->op) || op_table[n->op].form == FORM_PAD || n->op == OP_Cast || n->op == OP_Gather) return 1;
    if (op_has_expr(n->op)) {
        const Expr *e = node_expr(n);
        return e->id > 200 ? 200 : expr_cost(e);
    }
    return 20;
}

// Each element of a factor is in so many products: of a single row, those of the matrix are in one. -1: nobody knows.
static int64_t products_of(const Node *n, int operand) {
    const Type *x = &n->in[0]->type, *y = &n->out[0]->type, *of = &n->in[operand]->type;
    if (n->op != OP_MatMul || operand > 1 || !type_is_static(x) || !type_is_static(y) || !type_is_static(of)) return -1;
    const int64_t count = type_count(of);
    return count ? type_count(y) * x->dim[x->rank - 1] / count : -1;
}

int64_t node_rereads(const Node *n, int operand) {
    const int64_t products = operand < 0 ? -1 : products_of(n, operand);
    if (products > 0) return products;
    switch (op_table[n->op].form) {
    case FORM_WINDOW: {
        int count = 0, sc = 0;
        int64_t reads = 1;
        const int64_t *k = node_ints(n, "kernel", &count), *s = node_ints(n, "strides", &sc);
        for (int i = 0; i < count; i++) reads *= (k[i] + (i < sc ? s[i] : 1) - 1) / (i < sc ? s[i] : 1);
        return reads;
    }
    case FORM_CONTRACT: case FORM_SCAN: return 1 << 20;
    case FORM_GATHER: return 2;
    default: return n->op == OP_Softmax ? 4 : 1;        // in the maximum, twice in the sum, and in the quotient
    }
}
