// SPDX-License-Identifier: MIT OR Apache-2.0
// The intermediate representation: data structures first, then a section per file of ir/ and the op table.
//
//   import -> Graph -> passes -> Graph -> schedule -> Plan -> codegen -> text
//
// Everything lives in one Arena per compilation and is freed once. Tensors' elements are pointed at, not copied.
// A dimension is a constant or (negative number) an index into the graph's table of symbolic expressions.
#ifndef BURNCC_IR_H
#define BURNCC_IR_H

#include "base/base.h"

#define MAX_RANK 8          // largest tensor rank; larger is a diagnostic at the importer
#define MAX_TENSOR_BYTES ((int64_t)1 << 38)     // of one value, 256 GiB: what is larger is a mistake or an attack

typedef struct Tensor Tensor;
typedef struct Value Value;
typedef struct Node Node;
typedef struct Graph Graph;
typedef struct Expr Expr;
typedef struct ExprPool ExprPool;
typedef struct Lower Lower;

// ---------------------------------------------------------------- ir/type.c
// ONNX's TensorProto.DataType numbers. In memory 2- and 4-bit integers and 4-/8-bit floats take one byte per element
// (value in the low bits, integers sign-extended), bool one byte, strings a char pointer, complex two floats.
typedef enum DType {
    DT_NONE = 0,
    DT_F32 = 1,
    DT_U8,
    DT_I8,
    DT_U16,
    DT_I16,
    DT_I32,
    DT_I64,
    DT_STRING,
    DT_BOOL,
    DT_F16,
    DT_F64,
    DT_U32,
    DT_U64,
    DT_C64,
    DT_C128,
    DT_BF16,
    DT_F8E4M3FN,
    DT_F8E4M3FNUZ,
    DT_F8E5M2,
    DT_F8E5M2FNUZ,
    DT_U4,
    DT_I4,
    DT_F4E2M1,
    DT_F8E8M0,
    DT_U2,
    DT_I2,
    DT_F6E2M3,
    DT_F6E3M2,
    DT_INDEX, // loop indices and addresses in kernels; never a tensor's type
    DT_COUNT
} DType;
typedef enum DClass { CLASS_FLOAT, CLASS_INT, CLASS_UINT, CLASS_BOOL, CLASS_COMPLEX, CLASS_STRING, CLASS_NONE } DClass;
const char *dtype_name(DType d);                        // "f32", "i64", ...
bool dtype_parse(const char *s, DType *out);
size_t dtype_size(DType d);                             // bytes per element in memory
unsigned dtype_bits(DType d);                           // of an element; below 8: that many of its byte
DClass dtype_class(DType d);
bool dtype_is_float(DType d);                           // any width
bool dtype_is_byte(DType d);                            // an integer of 8 bits, signed or not
bool dtype_is_int(DType d);                             // signed or unsigned, any width; not bool
bool dtype_is_small_float(DType d);                     // f16, bf16, f8*, f6*, f4: computed in f32, rounded when stored
DType dtype_wide(DType d);                              // what d is computed in: f32 for small floats, else d

typedef int64_t Dim;                                    // >= 0: a constant; < 0: symbolic, see ir/dim.c
typedef struct Type { DType dtype; int rank; Dim dim[MAX_RANK]; } Type;
Type type_make(DType d, int rank, const Dim *dims);
bool type_equal(const Type *a, const Type *b);
bool type_same_shape(const Type *a, const Type *b);
bool type_is_static(const Type *t);                     // no symbolic dimension
int64_t type_count(const Type *t);                      // elements; bug() when symbolic
int64_t type_bytes(const Type *t);
// more than MAX_TENSOR_BYTES; a dimension of 0 or of symbols counts as 1, so that no product of others overflows
bool type_too_large(const Type *t);
int64_t type_count_upper(const Graph *g, const Type *t);             // with every symbol at its upper bound; saturates
int64_t type_bytes_upper(const Graph *g, const Type *t);
Dim type_size(Graph *g, const Type *t);                 // the number of elements as a Dim
Dim type_product(Graph *g, const Type *t, int from, int to);         // of dimensions from..to-1
bool type_uses(const Graph *g, const Type *t, int symbol);           // does a dimension of it depend on this symbol?
// numpy rule on the dimensions; dtype from a; false if impossible
bool type_broadcast(Type *out, const Type *a, const Type *b);
void type_strides(const Type *t, int64_t *strides);     // row-major, in elements
const char *type_text(Arena *a, const Graph *g, const Type *t);      // f32[batch,3,224,224]

// static type, row-major, data in an arena or a mapped file (read-only when so)
struct Tensor { Type type; void *data; };
Tensor *tensor_new(Arena *a, Type type);                // zeroed
double tensor_get_f(const Tensor *t, int64_t i);        // element i as double (any numeric dtype)
int64_t tensor_get_i(const Tensor *t, int64_t i);       // element i as integer (floats truncate)
void tensor_set_f(Tensor *t, int64_t i, double v);      // rounds to the tensor's dtype
void tensor_set_i(Tensor *t, int64_t i, int64_t v);
float small_to_float(DType d, uint32_t bits);           // f16, bf16, f8*, f4
uint32_t small_from_float(DType d, float v, bool saturate);          // round to nearest even
float float_to_odd(double v);                                        // before small_from_float: rounds once in all

// ---------------------------------------------------------------- ir/dim.c: symbolic dimensions
typedef struct Symbol {
    const char *name;
    const char *word;                                   // the name in letters, digits and _; unique in the graph
    int64_t lo, hi;
    bool pinned;                                        // lo == hi by --dim or by default
    bool runtime;                                       // stays a size of the running program, within lo..hi
    // measured: element `at` of this i64 value, computed by the program; NULL: a parameter
    Value *from; int64_t at;
    int64_t usual;                                      // its size where nobody says another; 0: 1
    Dim limit;                                          // measured: hi is at most this dimension's upper bound
} Symbol;
typedef struct DimPair { Dim a, b; } DimPair;
Dim dim_symbol(Graph *g, const char *name);             // finds or makes it; bounds lo=1, hi=INT32_MAX until set
Symbol *dim_as_symbol(Graph *g, Dim d);                 // the symbol that d is, or NULL
// A new symbol, named after `base`, whose size the running program takes from element `at` of `from`; checked there
// to be lo..hi.
Dim dim_measured(Graph *g, const char *base, int64_t lo, int64_t hi, Value *from, int64_t at);
static inline bool dim_is_const(Dim d) { return d >= 0; }
Dim dim_add(Graph *g, Dim a, Dim b);
Dim dim_sub(Graph *g, Dim a, Dim b);
Dim dim_offset(Graph *g, Dim d, int64_t k);             // d + k, k of any sign: a negative Dim is a symbolic one
Dim dim_mul(Graph *g, Dim a, Dim b);
Dim dim_div(Graph *g, Dim a, Dim b);                    // floor
Dim dim_ceil_div(Graph *g, Dim a, Dim b);
int64_t dim_upper(const Graph *g, Dim d);               // value at the symbols' upper bounds
int64_t dim_lower(const Graph *g, Dim d);               // a lower bound of the value
// an upper bound of the product of n sizes, which may be less than that of their bounds
int64_t dims_upper(const Graph *g, int n, const Dim *d);
// d as coef[0]*mono[0] + coef[1]*mono[1] + ...: each mono is 1 or a product of symbols and floor divisions with
// factor 1; the number of terms, 0 where they are more than max
int dim_terms(Graph *g, Dim d, int max, int64_t *coef, Dim *mono);
bool dim_uses(const Graph *g, Dim d, int symbol);       // does it depend on this symbol (number in graph_symbols)?
bool dim_equal(const Graph *g, Dim a, Dim b);           // provably
const char *dim_text(Arena *a, const Graph *g, Dim d);
Dim dim_bound(const Graph *g, Dim d);                   // d with constants for the symbols that have one possible size
// d with what symbol() gives for each of its symbols
Dim dim_subst(Graph *g, Dim d, Dim (*symbol)(void *ctx, int number), void *ctx);
// where it runs g (a model or a body) the program checks that they are equal, else it returns BURN_EINVAL
void dim_require(Graph *g, Dim a, Dim b);
// constant or symbol or expression as printed; *s stays when there is none
Dim dim_parse(Graph *g, const char **s);
// letters, digits, _ and . after a letter or _: needs no quotes in text
bool name_is_plain(const char *s);
void *dims_clone(Arena *a, const Graph *g);             // for graph_clone
void symbol_print(Text *out, const char *name);
const char *symbol_parse(Arena *a, const char **s);     // a symbol's name; NULL: there is none
int symbol_number(Graph *g, const char *name);          // in graph_symbols: finds or makes it, as dim_symbol does
Symbol *graph_symbols(Graph *g, int *n);

// ---------------------------------------------------------------- ir/graph.c
typedef enum AttrKind {
    ATTR_INT,
    ATTR_FLOAT,
    ATTR_STRING,
    ATTR_INTS,
    ATTR_FLOATS,
    ATTR_STRINGS,
    ATTR_TENSOR
} AttrKind;
typedef struct Attr {
    const char *name;
    AttrKind kind;
    int n;                                              // length of the plural kinds
    int64_t i; double f; const char *s;
    const int64_t *ints; const double *floats; const char *const *strings;
    Tensor *tensor;
} Attr;

typedef enum Op {
    OP_NONE,
#define OP(name, ...) OP_##name,
#define MAP(name, ...) OP_##name,
#define COMPOSITE(name, ...) OP_##name,
#include "ops.def"
#undef OP
#undef MAP
#undef COMPOSITE
    OP_COUNT
} Op;

// What an input or output of a training program is to its caller; NONE: an array of its own.
typedef enum Role {
    ROLE_NONE,
    ROLE_PARAM,                                         // a field of the struct of parameters,
    ROLE_GRAD,                                          // of that of their gradients,
    ROLE_TANGENT,                                       // of that of the directions they move in,
    ROLE_STATE,                                         // of the optimizer's state
    ROLE_VALUE,                                         // a number passed by value
    ROLE_LOSS,                                          // an array of its own, whose number has to be finite
    ROLE_COUNT
} Role;
const char *role_name(Role r);                          // in text, after @: "param"
bool role_parse(const char *s, Role *out);

// What a parameter begins as where no file of weights has it (ir/draw.c).
typedef enum DrawKind {
    DRAW_FILL,                                          // of[0]
    DRAW_UNIFORM,                                       // from of[0] to of[1]
    DRAW_NORMAL,                                        // mean, deviation
    DRAW_TRUNCATED,                                     // the same within two deviations of the mean
    DRAW_PADDED,                                        // as DRAW_NORMAL, but row of[2] is 0
    DRAW_ORTHOGONAL,                                    // rows [first, rest] or columns are orthogonal, of length of[0]
    DRAW_COUNT
} DrawKind;
typedef struct Draw { DrawKind kind; double of[3]; } Draw;

struct Value {
    int id;                                             // unique in the graph; printed %id
    const char *name;                                   // the user's name or NULL
    Type type;
    Node *def;
    int def_out; // which output of which node; def NULL: graph input or constant
    // constant (initializer or folded): exactly then def is NULL and it is no input; NULL too before graph_draw
    Tensor *data;
    // value_const's memo of a computed value; read it through value_const
    Tensor *folded;
    Graph *graph;
    bool is_input;
    Role role;
    // of an input or output that is a part of a field: the input that is the whole field, and which element of it is
    // the first; NULL: it is none
    Value *field; int64_t field_at;
    // of an input: the program checks that its elements are lo..hi, or `ignored`; NULL: it takes any
    const struct Allowed { int64_t lo, hi; bool ignores; int64_t ignored; } *range;
    bool trainable;                                     // a constant that --train turns into a parameter
    const Draw *draw;                                   // a constant without data yet: where they come from
};

struct Node {
    Op op;
    Value **in; int n_in;                               // absent optional inputs are NULL
    Value **out; int n_out;
    Attr *attrs; int n_attrs;
    Expr *expr;                                         // OP_Map: the scalar function of E_Arg 0..n_in-1
    Graph **bodies; int n_bodies;                       // control flow
    const Loc *loc;
    Graph *graph;
    Node *prev, *next;                                  // topological order
    int mark;                                           // scratch of the running pass
    bool not_folded;                                    // its evaluator gave up once: value_const does not ask again
};

// An end of the model that is a sequence or optional, and the graph's inputs or outputs that its tensors have become.
typedef struct Bundle {
    const char *name;                                   // the model's
    bool output, sequence, optional;
    bool absent;                                        // an optional that holds nothing
    bool stacked;                                       // a sequence as one tensor, the elements along its first axis
    int n; const char *const *names;                    // of a sequence name_0, name_1, ...; stacked: name
} Bundle;

// One of several functions of a model, in the order of the graph's inputs and outputs: how many of each are its own.
typedef struct GraphFunction { const char *name; int inputs, outputs; } GraphFunction;

// What computing constants has taken, and what the file brought along (ir/constant.c).
typedef struct Folding { int64_t given, spent; bool said; } Folding;

// An input or output that is integers which stand for the model's floats: (q - zero) * scale (passes/io.c).
typedef struct QuantizedEnd { const char *name; bool output; double scale; int64_t zero; } QuantizedEnd;

struct Graph {
    Arena *arena;
    const char *name;                                   // C identifier
    const char *file;                                   // model path, for diagnostics
    Node *first, *last;
    Node *cursor;                                       // new nodes go before this one; NULL: at the end
    const Loc *loc;                                     // given to new nodes
    VEC(Value *) inputs;
    VEC(Value *) outputs;
    VEC(const char *) output_names;
    int value_count;
    Graph *parent;                                      // of a control-flow body: whose values it may use
    ExprPool *exprs;                                    // expressions of its OP_Map nodes
    VEC(Symbol) symbols;
    VEC(DimPair) required;                              // see dim_require
    bool bound;                                         // sizes and bounds of the symbols are final
    void *dims;                                         // ir/dim.c's table (shared with bodies)
    bool evaluated;                                     // of the outermost graph: value_const computes all it can
    // of the outermost graph: constants that graph_release may free, unless a clone has them too
    VEC(Tensor *) large; bool shared;
    Folding *folding;                                   // of the outermost graph and its clones: see value_const
    // of the outermost graph: those of its model's ends that are no plain tensor
    VEC(Bundle) bundles;
    VEC(QuantizedEnd) quantized;                        // of the outermost graph
    VEC(GraphFunction) functions;                       // of a model; none: it is one function
    VEC(const char *) metadata;                         // of the outermost graph: keys and values by turns
};

// A diagnostic at g->loc; returns NULL, for builders.
void *graph_fail(const Graph *g, const char *fmt, ...) PRINTF_LIKE(2, 3);
Graph *graph_new(Arena *a, const char *name, const char *file);
// a control-flow body: shares ids, symbols and expressions with the graphs around it
Graph *graph_body(Graph *parent, const char *name);
Graph *graph_root(const Graph *g);                      // the outermost graph
Value *graph_input(Graph *g, const char *name, Type t);
void graph_output(Graph *g, Value *v, const char *name);
Value *graph_const(Graph *g, Tensor *t, const char *name);
// ir/draw.c: constants whose data are still to come; static types of floats. name: what the numbers depend on
Value *graph_drawn(Graph *g, const char *name, Type t, const Draw *d);
void graph_fill(Graph *g, Value *v, Tensor *t);         // a constant's numbers, or others than it had
void graph_draw(Graph *g, uint64_t seed);               // gives all of them data: the same for the same seed and name
void graph_draw_unseen(Graph *g);                       // data that cost little, where shapes alone matter
Tensor *draw_tensor(Arena *a, Type t, const Draw *d, const char *name, uint64_t seed);
const char *draw_name(DrawKind k);                      // in text: "uniform"
int draw_count(DrawKind k);                             // how many numbers tell it
bool draw_find(const char *name, DrawKind *out);
// another value of a constant's bytes and name, not trainable
Value *graph_const_again(Graph *g, const Value *v);
void graph_release(Graph *g);                           // frees large constants that no node has any more
// appends at the cursor; outputs without type: call node_infer when attributes are set
Node *graph_node(Graph *g, Op op, int n_in, Value *const *in, int n_out);
Value *node_add_output(Node *n, int at);                // a result more, at that place
bool node_infer(Node *n);                               // runs the shape rule; false with a diagnostic at n->loc
void graph_remove(Graph *g, Node *n);
void graph_replace(Graph *g, Value *old, Value *with);  // every use, outputs and bodies included
int *graph_use_counts(const Graph *g, Arena *scratch);  // by value id; an output counts as a use
const Bundle *graph_bundle(const Graph *g, const char *name, bool output);  // NULL when this end is a plain tensor
const QuantizedEnd *graph_quantized(const Graph *g, const char *name, bool output);    // NULL: this end is none
Graph *graph_clone(Graph *g, const char *name);
// ir/function.c: the graph of one function alone; NULL with a diagnostic: it uses what another one is given
Graph *graph_function(Graph *g, int which);
const char *graph_functions(Arena *a, const Graph *g);  // their names, for diagnostics
// copies a body's nodes before to's cursor
void graph_inline(const Graph *body, Graph *to, Value *const *inputs, Value **outputs);
bool attr_is_dtype(const char *name);                   // the integer of such an attribute is an element type
void node_set_int(Node *n, const char *name, int64_t v);
void node_set_float(Node *n, const char *name, double v);
void node_set_string(Node *n, const char *name, const char *v);
void node_set_ints(Node *n, const char *name, const int64_t *v, int count);
void node_set_floats(Node *n, const char *name, const double *v, int count);
void node_set_tensor(Node *n, const char *name, Tensor *t);
const Attr *node_attr(const Node *n, const char *name); // NULL when absent
int64_t node_int(const Node *n, const char *name, int64_t otherwise);
double node_float(const Node *n, const char *name, double otherwise);
const char *node_string(const Node *n, const char *name, const char *otherwise);
const int64_t *node_ints(const Node *n, const char *name, int *count);      // NULL and 0 when absent
// ir/constant.c: the value when it can be computed now (evaluates its constant ancestors), else NULL
Tensor *value_const(Value *v);
// Counts work (elements, 1 to 30 ns each) that constants cost. False: what the file may spend is spent.
bool graph_spend(Graph *g, int64_t work);
Value *graph_given(Graph *g, Tensor *t, const char *name);           // a constant of the file's: how much that may take

// ir/print.c, ir/parse.c, ir/validate.c: the exact text form
//   graph lenet(%0 image: f32[1,1,28,28]) {
//     %1 = const f32[8,1,3,3] hash 0x1234567890abcdef     (or {1.5, ...} up to 16 elements, or `fill 0`)
//     %2: f32[1,8,26,26] = Conv(%0, %1) {pads=[0,0,0,0], group=1}   ; node 3 "conv1"
//     return %2 logits
//   }
//   data 0x1234567890abcdef
//     AACAPwAAAEAAAEBA...
void graph_print(const Graph *g, Text *out);            // without the data of large constants: to look at
void graph_print_full(const Graph *g, Text *out);       // with them: a model
Graph *graph_parse(Arena *a, const char *text, const char *file);           // NULL with diagnostics
// the same; constants take so many bytes at most, and 16 more for each of the text (0: a gigabyte)
Graph *graph_parse_within(Arena *a, const char *text, const char *file, int64_t constant_bytes);
void node_print_attrs(const Node *n, Text *out);         // {pads=[0,0,0,0], group=1}, or nothing
bool graph_validate(const Graph *g, const char *after); // bug-level checks after each pass: order, types, arity

// ---------------------------------------------------------------- ir/expr.c: scalar expressions (see exprs.def)
// One hash-consed DAG per pool: equal expressions are the same pointer. The folder, autodiff and the
// printers of every language read it.
typedef enum EOp {
#define EXPR(name, ...) E_##name,
#include "exprs.def"
#undef EXPR
    E_COUNT
} EOp;
typedef enum ReduceOp {
    RED_NONE,                                           // of a store: what is there is replaced
#define REDUCE(name, ...) RED_##name,
#define REDUCE_ARG(name, ...) RED_##name,
#include "reduces.def"
#undef REDUCE
#undef REDUCE_ARG
    RED_COUNT
} ReduceOp;
// f for floats (rounded to the dtype), i for ints/bool/index, u for unsigned
typedef union Scalar { double f; int64_t i; uint64_t u; } Scalar;

struct Expr {
    EOp op;
    DType dtype;                                        // of the result
    int id;                                             // dense in the pool, operands before users
    Expr *a[3];                                         // operands
    Scalar c;                                           // E_Const: value;  E_Arg, E_Axis: number in c.i
    // E_Size: the size, symbolic; other DT_INDEX: a symbolic bound, the value is below it, or 0; graph: whose symbols
    // are in it, or NULL
    const Graph *graph; Dim extent;
    // E_Load: the tensor; a[0] flat element index, a[1] guard or NULL, a[2] result when the guard is false (NULL: 0)
    Value *value;
    // E_Reduce over these loop axes of a[0]; ARG*: result is a[1] (index) where a[0] is extreme
    ReduceOp rop; int n_axes; signed char axes[MAX_RANK];
    int64_t lo, hi;                                     // DT_INDEX: inclusive range
    // bit i: depends on loop axis i (an E_Reduce's own axes taken out)
    uint64_t axes_used;
};

// ir/reduce.c: reductions (see reduces.def)
typedef enum ReduceStart { START_ZERO, START_ONE, START_LOWEST, START_HIGHEST, START_ONES } ReduceStart;
typedef enum ReduceTie { TIE_FIRST, TIE_LAST } ReduceTie;
typedef struct ReduceInfo {
    const char *word, *scatter;
    EOp step, step_bool;
    ReduceStart start;
    bool rounds;
    ReduceOp extreme; ReduceTie tie;                    // of an index: MAX or MIN; RED_NONE: not an index
} ReduceInfo;
extern const ReduceInfo reduce_table[RED_COUNT];
bool reduce_is_arg(ReduceOp op);                        // is the result an index?
ReduceOp reduce_arg(ReduceOp extreme, ReduceTie tie);
ReduceOp reduce_of_scatter(const char *name);           // by a scatter's attribute `reduction`; RED_COUNT: none
EOp reduce_step(ReduceOp op, DType d);                  // acc = step(acc, term)
Scalar reduce_identity(ReduceOp op, DType d);
// one step of the evaluator: floats in double, integers cut to their width
Scalar reduce_combine(ReduceOp op, DType d, Scalar acc, Scalar x);

ExprPool *expr_pool_new(Arena *a);
// The expression that a row of maps.def has for arguments of these types, the first and the last; NULL: not set yet.
Expr **expr_memo(ExprPool *p, int row, DType first, DType last);
// A new pool of what is behind the roots, which become its; NULL is none.
ExprPool *expr_pool_keep(Arena *a, const ExprPool *from, int n, Expr **const *roots);
int expr_count(const ExprPool *p);
Expr *expr_const_f(ExprPool *p, DType d, double v);
Expr *expr_const_i(ExprPool *p, DType d, int64_t v);
Expr *expr_index(ExprPool *p, int64_t v);               // DT_INDEX constant
Expr *expr_arg(ExprPool *p, int i, DType d);
Expr *expr_axis(ExprPool *p, int axis, int64_t extent); // DT_INDEX in 0..extent-1
Expr *expr_axis_size(ExprPool *p, const Graph *g, int axis, Dim extent);    // the same for any extent
// a dimension as DT_INDEX: a constant, or sums and products over E_Size leaves
Expr *expr_size(ExprPool *p, const Graph *g, Dim d);
Expr *expr_load(ExprPool *p, Value *v, Expr *index, Expr *guard, Expr *otherwise);
Expr *expr_reduce(ExprPool *p, ReduceOp op, int n_axes, const int *axes, Expr *body, Expr *payload);
Expr *expr_acc(ExprPool *p, DType d);                   // E_Acc: a template kernel's finished accumulator
Expr *expr_unary(ExprPool *p, EOp op, Expr *x);
// INDEX operands are kept in simplified affine form, div/mod by ranges
Expr *expr_binary(ExprPool *p, EOp op, Expr *x, Expr *y);
Expr *expr_select(ExprPool *p, Expr *c, Expr *x, Expr *y);
// the same bits as another type of the same width: numbers of 8, 16, 32 or 64 bits
Expr *expr_bits(ExprPool *p, Expr *x, DType to);
Expr *expr_cast(ExprPool *p, Expr *x, DType to);        // to/from DT_INDEX allowed
// E_Arg i -> args[i]; args from any pool are copied into p
Expr *expr_subst(ExprPool *p, Expr *e, Expr *const *args);
// rebuild with leaves replaced (NULL: keep)
Expr *expr_map_leaves(ExprPool *p, Expr *e, Expr *(*leaf)(void *ctx, Expr *e), void *ctx);
Scalar expr_eval(const Expr *e, const Scalar *args);    // E_Arg leaves only; rounds to the dtype after every operation
// Affine view of an index expression: e = c0 + sum coef[axis]*axis exactly; false when it holds a div, mod, load or
// select
bool expr_affine(const Expr *e, int n_axes, int64_t *coef, int64_t *c0);
// the same where coefficients may be symbolic
bool expr_affine_sizes(const Expr *e, const Graph *g, int n_axes, Dim *coef, Dim *c0);
// what of an index is a constant or a size, whatever else it adds
bool expr_offset(const Expr *e, const Graph *g, Dim *c0);
// ir/expr_parse.c: C-like text with ?:, || && comparisons + - * / % ! - calls and literals; names bound to
// expressions; literals take the type of context
Expr *expr_parse(ExprPool *p, const char *text, int n, const char *const *names, Expr *const *bound, DType result,
    const char **error);
void expr_print(const Expr *e, Text *out);              // text that expr_parse reads back (E_Arg as x y z w, a4...)
// ir/expr_diff.c: d e / d E_Arg(i)
Expr *expr_diff(ExprPool *p, Expr *e, int arg);
// The expression of an elementwise node: node->expr or its MAP row with attributes bound; E_Arg i has the dtype of
// input i
Expr *node_expr(const Node *n);

// ---------------------------------------------------------------- ops/: the op table
// Softmax's attribute `empty`: what a row gives in which nothing but -inf stands
typedef enum SoftmaxEmpty {
    EMPTY_NAN,                                          // what the formula gives
    EMPTY_ZERO,
    EMPTY_NAN_ZERO                                      // 0, and so do all rows whose sum is NaN
} SoftmaxEmpty;
typedef enum OpKind { KIND_PRIMITIVE, KIND_MAP, KIND_COMPOSITE } OpKind;
// what an element of the result takes of the inputs (see ops.def)
typedef enum OpForm {
    FORM_OTHER,
    FORM_MAP,
    FORM_RESHAPE,
    FORM_VIEW,
    FORM_INDEX,
    FORM_PAD,
    FORM_CONCAT,
    FORM_REDUCE,
    FORM_ARG,
    FORM_SCAN,
    FORM_WINDOW,
    FORM_CONTRACT,
    FORM_GATHER,
    FORM_SCATTER,
    FORM_CALL
} OpForm;
typedef struct GradCtx { Graph *g; Node *node; } GradCtx;
typedef bool ShapeFn(Node *n);                          // sets out[i]->type; false with diag_error(n->loc)
typedef bool EvalFn(const Node *n, Tensor *const *in, Tensor *const *out);  // out allocated; plain reference
// dout[i] may be NULL; sets din[i] for float inputs (NULL: no gradient flows)
typedef bool GradFn(Node *n, Value *const *dout, Value **din);
// element idx of output `out` as an expression of the inputs' elements
typedef Expr *LowerFn(Lower *l, Node *n, int out, Expr *const *idx);
typedef int64_t WorkFn(const Node *n);                  // multiply-adds, or steps, of one element; saturates
typedef bool ExpandFn(Node *n, Value **out);            // composites: builds the replacement before n (g->cursor is n)
typedef struct OpInfo {
    const char *name;
    OpKind kind;
    int in_min, in_max;                                 // in_max -1: variadic
    int n_out;                                          // -1: variadic
    ShapeFn *shape; EvalFn *eval; GradFn *grad; LowerFn *lower; ExpandFn *expand;
    OpForm form;
    ReduceOp reduce;                                    // of what it combines elements by; RED_NONE: it does not
    WorkFn *work;
    const char *args, *expr, *attrs;                    // MAP: "x y", "x + alpha*y", "alpha=0.01 beta=1"
} OpInfo;
extern const OpInfo op_table[OP_COUNT];
bool op_find(const char *name, Op *out);
// one scalar expression of its inputs' elements: node_expr gives it
bool op_has_expr(Op op);
bool op_is_map(Op op);                                  // that, or a Cast
// moves no data when fused: its element is one of its input, or a number
bool op_is_view(Op op);
bool op_is_called(Op op);                               // a function of whole tensors
bool op_is_reduce(Op op);                               // its element is an E_Reduce
bool op_has_gradient(Op op);                            // of its own
bool op_is_row_reduce(Op op);                           // along whole axes, unlike windows and contractions
// a product or convolution of u8 by i8, or of i8 by i8 with wide=1: its sums are i32, and an epilogue turns them into
// any type
bool node_of_bytes(const Node *n);
bool grad_none(Node *n, Value *const *dout, Value **din);           // reports "OP has no gradient" at the node
Expr *lower_none(Lower *l, Node *n, int out, Expr *const *idx);     // claimed by a template kernel, never inlined
#endif
