// SPDX-License-Identifier: MIT OR Apache-2.0
// Shared by the files that make, simplify, evaluate, differentiate and spell scalar expressions: the operation table
// as data, the postorder of a DAG (every walk is a loop over it: fused expressions are thousands of nodes deep), and
// the steps a constructor goes through.
#ifndef BURNCC_EXPR_H
#define BURNCC_EXPR_H
#include "ir.h"

typedef enum ExprRule {
    RULE_SPECIAL, RULE_SAME, RULE_FLOAT, RULE_INT, RULE_CMP, RULE_TEST, RULE_BOOL, RULE_PART, RULE_PAIR
} ExprRule;
typedef struct ExprInfo {
    const char *name;
    int arity;
    ExprRule rule;
    const char *diff[2];
} ExprInfo;
extern const ExprInfo expr_table[E_COUNT];
bool expr_rule_accepts(EOp op, DType d);                // may its operands be of this dtype?
const char *expr_rule_wants(EOp op);                    // "floats", for diagnostics
Arena *expr_arena(const ExprPool *p);

// Infix spellings, shared by parser and printer; longer ones first where one begins another. swap: `x > y` is Lt(y, x).
typedef struct ExprInfix { const char *text; EOp op; int level; bool swap; } ExprInfix;
extern const ExprInfix expr_infix[];                    // ends with text NULL
enum { LEVEL_SELECT = 0, LEVEL_UNARY = 11, LEVEL_PRIMARY = 12 };

// Every node of a DAG once, operands before users; arg[i] are the positions of at[i]'s operands, -1 when absent.
// Freed by order_free.
typedef struct ExprOrder { int n, cap; Expr **at; int (*arg)[3]; int *uses; void *index; } ExprOrder;
void order_make(ExprOrder *o, const Expr *e);
int order_find(const ExprOrder *o, const Expr *e);      // position, -1 when absent
void order_free(ExprOrder *o);

// Rebuild e in p. For each node, operands first, `replace` may give a substitute (in p); NULL rebuilds the node over
// its operands' substitutes.
Expr *expr_rebuild(ExprPool *p, Expr *e, Expr *(*replace)(void *ctx, Expr *e), void *ctx);
Expr *expr_make(ExprPool *p, EOp op, DType d, Expr *a, Expr *b, Expr *c);   // hash-consed, not simplified
// to_infinity: 8-bit floats overflow to infinity or NaN, not to their maximum
Expr *expr_cast_to(ExprPool *p, Expr *x, DType to, bool to_infinity);
Expr *expr_not(ExprPool *p, Expr *x);

// expr_index.c: DT_INDEX arithmetic as sums of terms with constant factors and known ranges
Expr *index_binary(ExprPool *p, EOp op, Expr *x, Expr *y);
Expr *index_compare(ExprPool *p, EOp op, Expr *x, Expr *y);
Expr *index_cast(ExprPool *p, Expr *x);                 // an integer becomes DT_INDEX
void index_range(Expr *e);                              // sets lo, hi from the operands'
Expr *index_size(ExprPool *p, const Graph *g, Dim d);   // a symbolic dimension as a sum
Expr *expr_size_leaf(ExprPool *p, const Graph *g, Dim d);                   // as one leaf
const Graph *expr_pool_graph(const ExprPool *p);        // whose symbols its sizes are made of, NULL when it has none

// expr_simplify.c: NULL when nothing simpler is exactly equal
Expr *simplify_unary(ExprPool *p, EOp op, Expr *x);
Expr *simplify_binary(ExprPool *p, EOp op, Expr *x, Expr *y);
Expr *simplify_select(ExprPool *p, Expr *c, Expr *x, Expr *y);
Expr *simplify_cast(ExprPool *p, Expr *x, DType to);
static inline bool is_const(const Expr *e) { return e->op == E_Const; }
bool const_is(const Expr *e, double v);                 // a numeric constant equal to v (a float's sign of zero counts)

Expr *expr_chain(ExprPool *p, Expr *x, Expr *y);         // expr_diff.c: x * y, where 1/z as a factor divides

// expr_eval.c
Scalar eval_op(EOp op, DType operands, Scalar x, Scalar y);                 // operands: dtype of x and y
Scalar eval_cast_scalar(DType from, DType to, bool to_infinity, Scalar x);
Scalar eval_bits(DType from, DType to, Scalar x);       // one of them a float, the other an integer of its width
int64_t int_wrap(DType d, uint64_t bits);               // the low bits, sign- or zero-extended to d's width
bool int_bounds(DType d, int64_t *lo, int64_t *hi);     // of an integer dtype; hi of u64 saturates
double float_round(DType d, double v);                  // to the precision that arithmetic of this dtype runs in
#endif
