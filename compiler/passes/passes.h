// SPDX-License-Identifier: MIT OR Apache-2.0
// The passes, and what they share: replacing values while walking a graph once.
//
// graph_replace visits the whole graph for one value; a Rewrite collects replacements and every later node's operands
// are looked up in it as the walk gets there, so a pass stays linear. Ids are unique over bodies, so one Rewrite
// serves a graph and its bodies.
#ifndef BURNCC_PASSES_H
#define BURNCC_PASSES_H
#include "build/build.h"
#include "options.h"

typedef struct Rewrite { Arena *scratch; VEC(Value *) to; bool changed; } Rewrite;    // to: by id, NULL: stays
// later uses of old become `with`, which takes over its name when it has none
void rewrite_set(Rewrite *r, Value *old, Value *with);
Value *rewrite_get(const Rewrite *r, Value *v);
void rewrite_operands(const Rewrite *r, Node *n);       // not those inside its bodies: the walk comes to them
void rewrite_outputs(const Rewrite *r, Graph *g);

// A node as n is, over other operands and not inferred yet; NULL where one that n has is NULL.
Node *node_like(Graph *g, const Node *n, Value *const *in);
// The number that every element of a constant is; false when v is no numeric constant or its elements differ.
bool const_splat(const Value *v, double *number);

// By value id: the node of the same graph that uses the value; of several, one of them.
Node **value_users(Graph *g, Arena *scratch);
// fold_conv.c: the numbers of v for each channel, when v is a constant that varies along axis 1 of an [n, c, ...]
// result at most; and a constant that varies so
bool numbers_per_channel(const Value *v, const Type *result, double *number);
Value *channel_constant(Graph *g, DType d, const double *v, int64_t n, int rank, int axis);

bool has_gradient(const Graph *g);                      // does anything in it wait to be differentiated?
bool all_ints(const Node *n, const char *name, int64_t is);     // each number of the attribute, if there are any

bool bind_required(Graph *g);                           // bind_dims.c
bool bind_given(Graph *g, const Options *o);            // false: diagnostics
typedef bool PassFn(Graph *g);                          // true: changed something
typedef bool AskingPassFn(Graph *g, const Options *o);  // the same; asks what the back end wants
bool passes_run(Graph *g, const Options *o);            // all phases; false: diagnostics
bool passes_canon(Graph *g, const Options *o);          // CANON alone, sizes as they are
// prints it if --dump asks for this stage
void dump_graph(const Graph *g, const Options *o, const char *stage);
bool pass_bind_dims(Graph *g, const Options *o);        // pins or bounds every symbol, then re-infers
// may --dim NAME=LO..HI stay a size at run time? Shaders and training steps have all sizes fixed
bool keeps_sizes(const Options *o);
void keep_values(Graph *g, Keep how);                   // keep.c: before the passes, where o->keep asks for it
// Is the back end to have convolutions with the channels last?
bool wants_channels_last(const Options *o);
// keep_halves.c: what the backward part reads of the forward part's stored values is of this type; true: something is
typedef bool StoredFn(void *context, const Value *v);
bool keep_halves(Graph *g, DType to, StoredFn *stored, void *context);
// update_rows.c: the gradients of large matrices, in a graph that updates fields, a block of rows at a time; true: some
bool update_rows(Graph *g, const Options *o);
bool pass_custom(Graph *g, const Options *o);           // o: whose back end takes kernels in a language
bool pass_expand(Graph *g, const Options *o);
bool pass_expand_all(Graph *g);
bool pass_gradient(Graph *g);
bool pass_recognise(Graph *g);
bool pass_fold(Graph *g);
bool pass_simplify(Graph *g);
bool pass_cse(Graph *g);
bool pass_dce(Graph *g);
bool pass_inline_if(Graph *g);
bool pass_attention_grad(Graph *g, const Options *o);   // o: whose back end has a kernel for it
bool pass_fold_conv(Graph *g);
bool pass_join_conv(Graph *g);
bool pass_io(Graph *g, const Options *o);               // o: which type inputs and outputs become
bool pass_quantize(Graph *g, const Options *o);         // o: whether bytes are signed, and stay so
bool pass_requantize(Graph *g, const Options *o);       // o: whether integers are what the machine is good at
bool pass_few_bits(Graph *g, const Options *o);        // o: whether memory is the price
bool pass_whole_weights(Graph *g);
bool pass_turned_bits(Graph *g);
bool pass_layout(Graph *g, const Options *o);           // o: whose back end takes some as they are
bool pass_point_conv(Graph *g);
bool pass_unfold_conv(Graph *g);
bool pass_block_conv(Graph *g);
bool pass_split_scan(Graph *g);
bool pass_pick(Graph *g);
bool pass_split_reduce(Graph *g);
bool pass_split_matmul(Graph *g, const Options *o);     // o: whose back end says into how many
bool pass_lay_taps(Graph *g, const Options *o);         // o: whose back end has templates, which pack for themselves
bool pass_hoist_scale(Graph *g);
bool pass_merge_matmul(Graph *g);
bool pass_share_weights(Graph *g, const Options *o);    // o: whose back end packs weights
bool pass_nest_concat(Graph *g);
#endif
