// SPDX-License-Identifier: MIT OR Apache-2.0
// What the op families share: checked attributes, element access by class, byte copies over strides, index expressions.
// Private to compiler/ops and compiler/grad.
#ifndef BURNCC_OPS_COMMON_H
#define BURNCC_OPS_COMMON_H
#include "build/build.h"
#include "ops/lower.h"

// ---- shape rules
const char *value_type_text(const Value *v);                                // "f32[1,3]" for diagnostics, NULL-safe
// attribute axis (default 0) in 0..rank-1, else a diagnostic
bool op_axis(Node *n, int rank, int *axis);
bool slice_inside(Graph *g, Dim d, Dim start, int64_t step, Dim size);      // view.c
// attribute with exactly `want` integers, else a diagnostic
bool op_ints(Node *n, const char *name, int want, const int64_t **at);
// attribute or `otherwise` everywhere
void op_ints_or(const Node *n, const char *name, int count, int64_t otherwise, int64_t *at);
// integers or real floats, else a diagnostic
bool op_numeric(Node *n, const Value *v);
bool op_index_type(Node *n, const Value *v);                                // an integer tensor, else a diagnostic
// may they be equal? Once sizes are bound, the running program checks what is not certain
bool dims_agree(Node *n, Dim a, Dim b);
bool dims_broadcast(Node *n, Type *out, const Type *a, const Type *b);      // type_broadcast, with the same check
// a constant dimension, else a diagnostic that names --dim
bool op_static(Node *n, Dim d, const char *why);

// A window that slides over the spatial axes of [n,c,...], or with attribute channels_last of [n,...,c]: windows and
// convolutions. Attributes strides and dilations default to 1, pads (lo... hi...) to 0. Output o and kernel position
// k meet input o * stride + k * dilation - lo.
// lo, hi: symbolic only with attribute same
typedef struct Geometry {
    int spatial;
    int64_t kernel[MAX_RANK], stride[MAX_RANK], dilation[MAX_RANK];
    Dim lo[MAX_RANK], hi[MAX_RANK];
    bool ceil;
} Geometry;
// the first one
static inline int spatial_axis(const Node *n) { return node_int(n, "channels_last", 0) ? 1 : 2; }
static inline int channel_axis(const Node *n, int rank) { return node_int(n, "channels_last", 0) ? rank - 1 : 1; }
bool geometry_check(Node *n, int spatial, const int64_t *kernel);           // the attributes' lengths and ranges
Geometry geometry_of(const Node *n, int spatial, const int64_t *kernel);
// output size of spatial axis i over an input of size d
bool geometry_out(Node *n, const Geometry *w, int i, Dim d, Dim *out);

// composite.c: y (dy - sum(y dy)) of y, a softmax along axis: of what the forward pass computes nothing but y is read
Value *softmax_gradient(Graph *g, Value *y, Value *dy, int64_t axis);

// ---- evaluation
// One element by the class of its dtype: .f for floats, .i for integers and bool, .u the address of a string.
Scalar element_get(const Tensor *t, int64_t i);
void element_set(Tensor *t, int64_t i, Scalar s);
// NaN is above every number, so an order exists
bool element_less(DType d, Scalar a, Scalar b);
// Evaluates a channels_last node of one data operand by a function that wants channels first.
bool eval_channels_last(const Node *n, Tensor *const *in, Tensor *const *out, EvalFn *eval);
void *scratch_new(size_t count, size_t size);                               // checked malloc; fatal when memory is out
// dst[sum i*dst_stride] = src[sum i*src_stride] over all i in dims; strides in elements of `size` bytes, any sign or 0
void strided_copy(void *dst, const int64_t *dst_stride, const void *src, const int64_t *src_stride, int rank,
    const int64_t *dims, size_t size);
// odometer, last axis fastest; false after the last
bool index_next(int rank, const int64_t *dims, int64_t *idx);

// ---- index expressions (all DT_INDEX)
Expr *ix_add(Lower *l, Expr *a, Expr *b);
Expr *ix_addc(Lower *l, Expr *a, int64_t c);
Expr *ix_mulc(Lower *l, Expr *a, int64_t c);
Expr *ix_divc(Lower *l, Expr *a, int64_t c);
Expr *ix_modc(Lower *l, Expr *a, int64_t c);
// cond && lo <= i && i < hi; NULL: always true. Leaves out what i's range proves
Expr *ix_in_range(Lower *l, Expr *cond, Expr *i, int64_t lo, Dim hi);
// element where cond (NULL: always), else otherwise
Expr *lower_guarded(Lower *l, Value *v, Expr *const *idx, Expr *cond, Expr *otherwise);
// A loaded index as a coordinate of an axis of `size`: wrapped, and `cond` narrowed to the indices that are inside.
// Indices that are known to be inside need neither.
Expr *lower_index(Lower *l, Value *indices, Expr *const *at, Dim size, Expr **cond);
Expr *expr_identity(ExprPool *p, DType d, ReduceOp op);                     // reduce_identity as a constant
Expr *expr_zero(ExprPool *p, DType d);
// small floats reduce in f32
Expr *expr_accumulate(Lower *l, ReduceOp op, int n_axes, const int *axes, Expr *body);

// ---- control flow
bool body_eval(Graph *body, Tensor *const *out);        // all outputs of a body whose inputs are set (folded)
// the number of iterations; false: known only at run time
bool loop_trips(const Node *n, Dim *out);
// Makes the marked values (by id below count) that the bodies of an If or a Loop capture into operands, of a Loop as
// carried values that never change. How many operands the node has when it has been differentiated: an If none of them.
int control_lift(Node *n, const bool *marked, int count);
// a result more of the node at place `at`, and the body's output for it
Value *loop_add_result(Node *n, int at, Value *output);

// ---- expansions
// y in the dtype of n's output as the replacement; false: NULL
bool expand_done(Node *n, Value *y, Value **out);
int all_axes(const Value *x, int64_t *axes);             // 0..rank-1; how many
#endif
