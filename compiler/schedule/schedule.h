// SPDX-License-Identifier: MIT OR Apache-2.0
// What the files of schedule/ share and nobody else needs: the fusion set of a kernel under construction and its steps.
#ifndef BURNCC_SCHEDULE_H
#define BURNCC_SCHEDULE_H
#include "plan.h"

typedef struct ReduceUse { Value *value; Expr *expr; } ReduceUse;

enum { MAX_TOGETHER = 8 };                              // outputs that one kernel stores

// A kernel being grown from its root towards the inputs. `inside` says which nodes are computed within it.
typedef struct Fusion {
    const Plan *plan;
    Value *root;                                        // what the kernel stores
    Value *also[MAX_TOGETHER]; int n_also;              // and other values of its shape (outputs.c)
    // a contraction or convolution in the middle whose accumulator is E_Acc; or NULL
    Value *anchor;
    Expr *anchor_flat;                                  // flat index of the accumulator's element at the kernel's axes
    bool *inside;                                       // by node number (Node.mark): lowered in place
    Node *const *nodes; int n_nodes;                    // by number, where kernels are to say what they come from
    bool views_only;                                    // operand mode: only free views are lowered in place
    Value *violation;                                   // first value that must be materialised after all; NULL: none
    VEC(ReduceUse) reduces;  // reductions lowered in place, to check that they hoist
} Fusion;

// lower.c
void lower_init(Lower *l, Arena *a, Kernel *k, Fusion *f);      // a: of k's axes
Expr *lower_root(Lower *l, Value *v, Expr *const *idx); // element of the root itself
// flat index of an element of v in the value that holds it
Expr *lower_stored(Lower *l, Value *v, Expr *const *idx, Value **where);

// kernel.c: builds kernels; false in *ok with f->violation set when a value has to be materialised
Kernel *kernel_loop(Arena *a, Fusion *f, Value *into, int concat_axis, int64_t concat_at);
// into: NULL, or a concatenation along the last axis that the root is a part of, from `at` on
Kernel *kernel_gemm(Arena *a, Fusion *f, Value *into, Dim at);
// has the product's result one batch axis, of equal steps in both factors?
bool kernel_gemm_folds(Graph *g, const Type *x, const Type *y);
Kernel *kernel_conv(Arena *a, Fusion *f, Value *into, Dim at);          // kernel_conv.c
// The parts that builders in other files share.
// element sum of coef[axis] * axis + offset of a stored value
typedef struct Operand { Value *value; Dim coef[64], offset; } Operand;
Kernel *kernel_new(Arena *a, KernelKind kind);
// a kernel that was built in the plan's scratch memory as one of the plan's, with the expressions that it needs: a
// fraction of those that building it made
Kernel *kernel_keep(const Plan *p, const Kernel *built);
void kernel_finish(Arena *a, Kernel *k, Fusion *f);      // what it reads, writes and costs, from its expressions
// where element idx of v lies in the stored value that its views lead to; NULL: there is none
Expr *operand_index(const Plan *p, Kernel *axes, Value *v, Expr *const *idx, Value **base);
// element idx of v; false: not affine
bool operand_through_views(const Plan *p, Kernel *axes, Value *v, Expr *const *idx, Operand *out);
// of v itself, stored
bool operand_direct(const Plan *p, Kernel *axes, Value *v, Expr *const *idx, Operand *out);
// the root's element as an expression of E_Acc at the template's three axes; false: f->violation
bool kernel_epilogue(Arena *a, Kernel *k, Fusion *f, const Dim *extent);
void kernel_operands(Arena *a, Kernel *k, Value *x, Value *y);
// the result goes into `into`, whose last axis is longer, from `at` on: rows of more elements
void kernel_store_into(Kernel *k, Value *into, Dim at);
Convolution kernel_conv_shape(const Node *n);            // kernel_conv.c
Kernel *kernel_copy(const Plan *p, Node *n);
Kernel *kernel_scatter(const Plan *p, Node *n);              // adds to, or replaces, what is there

// budget.c: does the plan keep to --ram and --flash? false with diagnostics
bool budget_holds(const Plan *p);

// banks.c, --region: place_buffers for several memories; does the plan keep to them? false with diagnostics; what lies
// where, for --report
void banks_place(Plan *p, int n, Buffer *const *buffers);
bool banks_hold(const Plan *p);
void banks_report(const Plan *p, Text *out);
// budget.c: what is in memory at the worst moment, as notes
void plan_note_kept(const Plan *p, int shown);

// plan.c
bool graph_trains(const Graph *g);                       // is it a program that goes forward and back?
// what is planned for values
void plan_set_buffer(const Plan *p, const Value *v, Buffer *b);
void plan_set_home(const Plan *p, const Value *v, Value *home, Dim at);
Buffer *buffer_of(const Plan *p, Value *v);             // memory.c: the value's buffer, made on first use
// the input that is the field of this name in the struct of this role, which an output may update; NULL: there is none
Value *field_input(const Graph *g, Role role, const char *name);
// its buffer is a window of `of`'s from this byte on
void buffer_within(const Plan *p, Value *v, Value *of, int64_t offset);

// bytes for strings of one kernel: more is no memory of today, and sums of these are numbers
#define MAX_POOL (INT64_C(1) << 48)

// call.c: operations that are functions called with whole tensors
Kernel *kernel_call(const Plan *p, Node *n, const bool *wanted);         // wanted: which outputs anyone uses

// attention.c: softmax(score) times V as one kernel
// nodes: all between the score and the product; weighted: there are maps among them, computed with what is `inside`
typedef struct Softmax {
    Value *score, *softmax;
    SoftmaxEmpty empty;
    bool weighted, *inside;
    VEC(Node *) nodes;
} Softmax;
// is the product's left factor a softmax, perhaps reshaped or with maps behind it, as dropout?
bool softmax_before(Arena *a, Graph *g, const Node *product, Softmax *s);
// NULL: no attention after all
Kernel *kernel_attention(Arena *a, const Softmax *s, Fusion *epilogue, Fusion *score, int n_nodes);
// attention_grad.c: an AttentionGrad; inside: what lies between it and the products that it takes in. NULL: it cannot
Kernel *kernel_attention_grad(Arena *a, Fusion *inside, Node *n);
// attention_keys.c: sets first and last of an attention; key: the axis of the keys, `count` of them
void attention_keys(const Graph *g, Kernel *kernel, Expr *key, Dim count);

void kernel_read(Arena *a, Kernel *k, Value *v);         // notes a materialised value that it reads, once
bool kernel_reads(const Kernel *k, const Value *v);
void kernel_moves(Kernel *k, int64_t bytes);             // so much more is read or written; saturates
void kernel_sizes(Arena *a, Kernel *k, Graph *g, Dim d); // notes the symbols of a size that it needs, each once

// recompute.c: a matrix product of one term for each element, as the gradient of a dense layer's weights from one
// example: nothing is summed, and who reads an element computes it in the same rounding
bool node_is_outer_product(const Node *n);
// rough scalar operations per element of a map, 1 for views; how often the operation reads each element of
// its input (windows, plain convolutions)
double node_cost(const Node *n);
int64_t node_rereads(const Node *n, int operand);      // of that operand; -1: of whichever

// outputs.c: by value id, the number of the group of outputs that it belongs to; 0: none
int *outputs_together(const Plan *p);

// concat.c: concatenations that are columns of larger ones
typedef VEC(Node *) ConcatUsers;                        // of a value; NULL: a graph output or a body
void concat_homes(Plan *p, const ConcatUsers *users);   // users: by value id

// state.c: states that are updated where they lie
void state_homes(Plan *p, const ConcatUsers *users);
// may the result `to` be stored where input `from` is, whose bytes nobody wants afterwards?
bool state_in_place(const Plan *p, const Value *from, const Value *to);

// nest.c: how many parallel axes lie outside every hoisted reduction: those whose points can be shared out without
// repeating one
int nest_outer_axes(const Kernel *k);

// region.c: control flow as a kernel that holds its bodies' plans
Kernel *kernel_region(const Plan *outer, Node *n);      // NULL with diagnostics
Plan *plan_body(const Plan *outer, Graph *body);        // plan.c: a plan inside another's workspace

// blas.c: --blas
// a product of doubles, which then has a template
bool blas_takes_doubles(const Node *n, const Options *o);
bool blas_can(const Graph *g, const Contraction *s);     // are its strides and sizes such that a BLAS can be called?

// fuse.c
bool node_is_stored(const Node *n);                     // does the graph say that its value is, whatever would fuse?
bool fuse_graph(Plan *p);
// blocks, packed weights and scratch of template kernels (templates.c)
bool templates_plan(Plan *p);
void parts_plan(Plan *p);                               // parts.c: which kernels --threads shares out, and how
// what the largest of n shares of so many units takes, in shares of equal size
double parts_unevenness(int64_t units, int n);
// for what takes so long, cut so unevenly: 1 when it should stay whole
int parts_workers(const Options *o, double ns, double uneven);
// how long so many workers take for a product or convolution cut as is best for it, and by rows, so unevenly
double parts_best_ns(const Graph *g, const Kernel *k, const Options *o, int workers);
double parts_rows_ns(const Graph *g, const Kernel *k, const Options *o, int workers, double uneven);
void memory_lifetimes(Plan *p);                         // memory.c: each buffer apart
// strips_ram.c: memory_plan with strips where it needs more than so many bytes
bool strips_within(Plan *p, int64_t ram);
// How many bytes behind the result of strips this input of theirs has to begin to be overwritten; false: never.
bool strips_distance(const Plan *p, const Strips *s, const Value *in, int64_t *bytes);
void strips_plan(Plan *p);                              // strips.c: which kernels go strip by strip together
// Operations of products and of loops, and bytes, that a machine does in a nanosecond; what a call costs in these; the
// share of the time that running again may take unasked
typedef struct Rates { double products, loops, bytes, call, spare; } Rates;
// checkpoint.c: memory_plan within a workspace of so many bytes, by kernels that run again; false with diagnostics
bool checkpoint_plan(Plan *p, int64_t budget, const Rates *rates);
// the order with those kernels twice that cost next to no time and save memory; memory_plan is still to come
void checkpoint_spare(Plan *p, const Rates *rates);
void order_plan(Plan *p);                               // order.c: the kernels in an order that needs less memory
// memory.c: where inputs and outputs lie, fields that are updated in the struct that they came in
void memory_ends(Plan *p);
bool memory_plan(Plan *p);
// may a loop kernel store its result over v, which it reads for the last time?
bool kernel_in_place(Arena *a, const Kernel *k, const Value *v);
// place.c: bytes in all; *bound: most bytes alive at once. Roughly: at once, a few percent above what the other finds
int64_t place_buffers(Arena *scratch, int n, Buffer *const *buffers, int64_t *bound);
int64_t place_roughly(Arena *scratch, int n, Buffer *const *buffers);
// of where buffers begin, in bytes: one AVX-512 vector and one cache line
enum { BUFFER_ALIGN = 64 };
static inline int64_t align_up(int64_t n) { return (n + BUFFER_ALIGN - 1) & ~(int64_t)(BUFFER_ALIGN - 1); }
#endif
