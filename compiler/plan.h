// SPDX-License-Identifier: MIT OR Apache-2.0
// The plan: kernels in order and where everything lies. Data structures first, then what makes and prints a plan.
#ifndef BURNCC_PLAN_H
#define BURNCC_PLAN_H

#include "ops/lower.h"
#include "options.h"

typedef struct Plan Plan;
typedef struct Kernel Kernel;

// ---------------------------------------------------------------- schedule/: Graph -> Plan
typedef struct Buffer Buffer;
typedef enum Place { PLACE_INPUT, PLACE_OUTPUT, PLACE_WEIGHT, PLACE_WORK, PLACE_ALIAS } Place;
typedef struct Gap { int first, last; } Gap;
// its kernel reads what it overwrites before, where this begins so many bytes further on, or more; above: if it goes
// from the end to the beginning, where this begins so many bytes further down, or more
typedef struct Over { const Buffer *dying; int64_t distance, above; } Over;
enum { NOT_ABOVE = 1 << 30 };
struct Buffer {
    Place place;
    int index;                                          // which input, output
    int64_t offset;                                     // bytes into the weights or the workspace
    int64_t bytes;
    Value *value;
    Buffer *alias;                                      // PLACE_ALIAS: same bytes as this one
    const void *data;                                   // PLACE_WEIGHT: bytes to write; NULL: fill makes them
    // PLACE_WEIGHT in a template's layout, made when written
    void (*fill)(const Buffer *b, void *to); const Kernel *packer;
    DType element;                                      // the value's, or of what fill makes
    // PLACE_WEIGHT: what the bytes are, for comments: "row-major", "panels of 32 columns"
    const char *layout;
    const Buffer *same;                                 // PLACE_WEIGHT: another function's, of the same bytes, or NULL
    const char *array;                                  // codegen's own: what it is called
    int first, last;                                    // lifetime in kernel numbers (PLACE_WORK)
    // when nobody wants its bytes meanwhile, for it is made again behind each
    VEC(Gap) gaps;
    bool over;                                          // PLACE_ALIAS: stored over an operand that dies there
    // PLACE_WORK: operands whose last reader stores it, and which it may lie over (memory.c)
    VEC(Over) over_dying;
    int bank;                                           // which of Options.banks it lies in; 0 where there are none
    const Buffer *base;                                 // PLACE_WORK inside a region: offset counts from this buffer's
    int id;
};

static inline bool buffer_alive(const Buffer *b, int at) {
    bool alive = b->first <= at && at <= b->last;
    for (int i = 0; i < b->gaps.n; i++) alive = alive && !(b->gaps.at[i].first <= at && at <= b->gaps.at[i].last);
    return alive;
}
// memory.c: the buffer whose bytes these are, and where in it they start
Buffer *buffer_owner(Buffer *b, int64_t *offset);

// What planning finds out about values, by their number. A plan shares the table with the plans of its regions'
// bodies, whose graphs share the numbers; the graph knows nothing of it and can be planned again for another machine.
typedef struct ValuePlan {
    Buffer *buffer;                                     // where it lives; NULL: inlined into its users
    // it is the columns from home_at on of this value; NULL: its own
    Value *home; Dim home_at;
} ValuePlan;
typedef struct ValuePlans { int n; ValuePlan *at; } ValuePlans;

// size: exact, perhaps symbolic; extent: its upper bound
typedef struct Axis { int64_t extent; bool reduce; Dim size; } Axis;
// op: of what is there and expr; RED_NONE: expr replaces it
typedef struct Store { Value *value; Expr *index; Expr *guard; Expr *expr; ReduceOp op; } Store;

typedef enum KernelKind {
    KERNEL_LOOP,
    KERNEL_GEMM,
    KERNEL_CONV,
    KERNEL_DEPTHWISE,
    KERNEL_PLANES,
    KERNEL_ATTENTION,
    KERNEL_ATTENTION_GRAD,
    KERNEL_REGION,
    KERNEL_CALL,
    KERNEL_PRODUCT,
    // no code of its own: `sizes` are measured from the value that it reads
    KERNEL_SIZES
} KernelKind;

// Canonical forms that templates are filled from. Sizes and strides of a contraction and a convolution's batch may be
// symbolic; views and pads are already canonical.
// C[b][m][n] = sum_k A[b][m][k] * B[b][k][n], batch strides 0 broadcast, in elements
typedef struct Contraction {
    Dim batch, m, n, k;
    Dim a_batch, a_row, a_col, b_batch, b_row, b_col, c_batch, c_row;
} Contraction;
// 1-D and 2-D are 3-D with size-1 axes; order d, h, w; channels last
typedef struct Convolution {
    Dim batch;
    int64_t groups, ic, oc;                             // ic, oc: totals
    int64_t in[3], out[3], kernel[3], stride[3], dilation[3], pad[3];      // pad: at the low end
    Dim x_batch;
    int64_t x_axis[3], x_channel;                       // strides of the input in elements, as for the batch
    // strides of weights that are no constants: of groups, channels of the result and of the input in one, taps; where
    // they begin. And how they are packed: groups that become one, floats of a panel
    int64_t w_group, w_oc, w_ic, w_tap[3], w_at, w_merge, w_panel;
    // from one pixel of the output to the next: oc, or more in a part of a concatenation
    int64_t y_pixel;
    // half-cycles that 1024 bytes of packed weights cost: time to fetch them, and memory
    int price;
} Convolution;

// C[b][m][n] = sum over k of a * b, the factors being expressions over the kernel's axes. Each axis is a digit of one
// coordinate, whose last varies fastest. Axis number `axes.n + i` stands in them for the number that digit i and those
// behind it in its coordinate make, and `2 * axes.n + i` for own[i]: what a factor's indices add up of its rows, or
// columns, alone. fours: values whose elements a factor loads four at a time, along one coordinate; of those in
// `paired` (bits) two neighbours hold four terms. few: the template is that of few rows. norm: a loop kernel of rows,
// which makes the left factor in each workgroup; NULL: it is in memory. shares: of the terms, each a workgroup's;
// blocks: of all batches. bytes: of factors of bytes, summed in i32: templates count words of four terms; words: so
// many of a factor are read at once where they lie, 0: a word's bytes lie apart.
enum { COORD_B, COORD_M, COORD_N, COORD_K, COORDS, MAX_OWN = 4, MAX_FOURS = 3 };
typedef struct Coordinate { int n; int64_t size; signed char axis[32]; } Coordinate;
typedef struct Product {
    Expr *factor[2];
    Coordinate of[COORDS];
    Expr *own[MAX_OWN]; int n_own;
    struct { const Value *value[MAX_FOURS]; int n; unsigned paired; } fours[2];
    bool few, bytes;
    signed char words[2];
    const Kernel *norm;
    int64_t shares, blocks;
} Product;

// A product on a GPU's matrix units, besides the form for those that have none. wide: along which axis eight elements
// of a factor lie together, 1: the terms, 2: its rows or columns, 0: none; runs: do neighbours in memory lie along the
// terms?
typedef struct Units {
    const struct MatrixBlock *block;                    // NULL: there is no such kernel
    bool pieces;                                        // its factors are f32, in pieces of 16 bits
    int64_t shares, blocks;                             // of the terms, each a workgroup's; of all batches
    signed char wide[2];
    bool runs[2];
} Units;

// Attention on a GPU's matrix units: subgroups of a workgroup, tiles of 16 queries of each, keys of a block.
typedef struct AttentionUnits { int tiles, subgroups, keys; } AttentionUnits;
// Attention of few queries on a GPU. together: the axis of b along which a workgroup has the queries of all that share
// keys and values, or 3; rows: its queries; columns: threads that have a value's vectors; shares: of the keys, each a
// workgroup's, of so many keys or more.
typedef struct AttentionRows {
    int together, rows, threads, columns, shares, each_share;
    int64_t blocks;
} AttentionRows;

// O[b][m][d] = sum over n of softmax(SCORE(sum over k of Q[b][m][k] * K[b][n][k])) * V[b][n][d], b of three axes
typedef struct Attention {
    Expr *score;                                        // of E_Acc, the first product's element
    // keys that a query may see, the first and the last, as expressions of the query; NULL: all (attention_keys.c)
    Expr *first, *last;
    Dim batch[3], m, n, k, d;
    // strides in elements of Q (m, k), K (n, k), V (n, d), O (m, d); backward the gradient of O and those by Q, K, V
    struct { Dim batch[3], row, col; } of[7];
    SoftmaxEmpty empty;                                 // what rows without a score give
    // backward (templates/c/attention_grad.c): the expressions of what meets the values, of its gradient, and of the
    // score's; shared: the axis b2 has the same keys and values
    Expr *pass, *passed, *dscore;
    bool shared;
    AttentionUnits units;                               // GPUs: on matrix units; all 0: it is not for these
    AttentionRows few;                                  // GPUs: of few queries; all 0: it has more
} Attention;

// Kernels that follow one another and of which each reads, of what the one before it stores, only some rows around
// those that it computes. They go strip by strip, so that a few rows of what lies between them are in memory at a
// time. Counted in pixels, or rows of a product, each in its own result. Lines 0, 1, ... are moments: line[i * (2*n -
// 1) + m] is the pixel up to which member m has come, and line[i * (2*n - 1) + n + m] the one that its buffer begins
// with. Between two lines of a part lies a step.
typedef struct Strips {
    Kernel **member; int n;
    // 1, or those that --threads shares out, to so many workers, each with buffers of its own
    int parts, workers;
    int *part;                                          // parts + 1: the first line of each
    VEC(int64_t) line;
    int64_t *elements;                                  // by member but the last: of a part's buffer
    int64_t *width;                                     // elements of a pixel
    // by member, of loops: of the axis that goes by rows, steps that so many pixels make
    int64_t *steps, *pixels;
    int *from;                                          // by member: whose pixels its input are; -1: no member's
    int64_t moved;                                      // bytes to the fronts of buffers, in a run
} Strips;

// How many GPU threads work on a point; by_point: neighbouring threads have neighbouring points, else neighbouring
// shares of one
typedef struct Team { int size; bool by_point; } Team;

// A loop kernel whose reductions go along one row each, on a GPU a team's (templates/glsl/rowwise.comp). Its
// expressions name columns by `column`, the digits of one number, and read what is known by values of the kernel's
// own: sums of the stages before (sum) and what of an element more than one stage needs (kept).
enum { MAX_SUMS = 8, MAX_KEPT = 4 };
typedef struct RowSum {
    ReduceOp op;
    Expr *term, *payload;                               // payload: of an index
    Value *result, *extreme;                            // extreme: of an index: what is compared
    int stage;
} RowSum;
typedef struct Rowwise {
    int64_t rows, columns;
    int n_columns; signed char column[MAX_RANK];
    RowSum sum[MAX_SUMS]; int n_sums, stages;
    struct { Value *value; Expr *is; } kept[MAX_KEPT]; int n_kept;
    VEC(Store) stores;
    bool elements, by_point;                            // elements: the stores are of each column
    int team, members, kept_each;
    int64_t shares, share;                              // workgroups that a row's columns are shared out to; of one
} Rowwise;

// What a template's hole is filled with; the back end spells it.
typedef enum HoleKind {
    HOLE_NUMBER,                                        // value
    HOLE_SIZE,                                          // value: a Dim,
    HOLE_ARGUMENT,                                      // or a number, that the function is given,
    HOLE_SHARED,                                        // or is where kernels share functions (CFile.numbers)
    HOLE_ELEMENT,                                       // value: a DType, as its elements are in memory,
    HOLE_TYPE,                                          // as arithmetic on it runs,
    HOLE_LOAD,                                          // and how the one becomes the other
    HOLE_STRING,                                        // text: a string's bytes
    HOLE_HELPER,                                        // text: a function of c_functions.def, of params
    HOLE_OWN,                                           // text: what the kernel calls a function of its own
    HOLE_NAME                                           // text: a name of the library that the template calls
} HoleKind;
typedef struct HoleValue { const char *name; HoleKind kind; int64_t value; const char *params, *text; } HoleValue;

// A row of templates.def, or of the operations that are called (schedule/call.c): those have a file alone.
typedef enum TemplateParts { NO_PARTS, PARTS, PARTS_BY_AXIS } TemplateParts;
typedef struct Template {
    const char *file, *params, *axes, *epilogue;
    TemplateParts parts;
    bool strips, over;
} Template;
#define TEMPLATE(name, ...) extern const Template template_##name;
#include "templates.def"
#undef TEMPLATE

struct Kernel {
    KernelKind kind;
    const char *name;                                   // C identifier, from the nodes' names
    int number;                                         // among those of the program, of bodies too
    VEC(Node *) nodes;                                  // where it comes from, for comments and reports
    ExprPool *exprs;
    VEC(Axis) axes;                                     // parallel axes first, in nest order; n_parallel of them
    int n_parallel;
    // loop kernels: what each point stores; template kernels: one for each result, whose expr holds E_Acc
    VEC(Store) stores;
    Node *anchor;                                       // template kernels: the contraction, convolution or called op
    // template kernels: left and right factor, or input and weights; queries, keys and values, the result's gradient
    Value *operand[4];
    // element where the template's own begins in each: operands may be slices, the result a part of a concatenation
    Dim operand_at[4], result_at;
    VEC(Value *) loads;                                 // values that the expressions load
    VEC(Value *) reads;                                 // materialised values read: loads and operands
    VEC(Value *) writes;
    // symbols (numbers in graph_symbols) that its loops and expressions need
    VEC(int) sizes;
    // one operand in the template's layout, or NULL: a constant, or weights that each run packs into the workspace
    Buffer *packed;
    const Template *template; VEC(HoleValue) holes;     // NULL: none; what its holes are filled with
    // what a record of `burncc tune` knows it by, NULL: none does; its algorithm and blocks; tuned: they are a
    // record's
    const char *signature, *choice; bool tuned;
    // workspace a template needs while it runs, all its workers together
    int64_t scratch_bytes; Buffer *scratch;
    // > 1: --threads cut it into so many parts, for so many workers, each with scratch memory of its own
    int parts, workers;
    // what a worker has made of its operands stays for its next part: two pointers at the front of its scratch memory,
    // which are NULL before the first
    bool keeps;
    // nanoseconds, as the schedule reckons with --threads: of one thread; of the worker whose share is the largest
    double alone_ns, share_ns;
    // where this size is less, the caller does them all: too little to hand out; 0: never
    Dim part_size; int64_t part_least;
    Units units;
    Strips *strips;                                     // those it is a member of, or NULL
    int runs;                                           // how often the plan has it; 0: once
    int64_t string_bytes;                               // room in the pool of strings for those that it makes
    double flops; int64_t traffic;                      // for reports: operations, bytes read and written once
    const void *text;                                   // codegen's own
    // what only one kind has
    union {
        // part_axis: its parts are ranges of this axis; GPUs: threads share out the points of the first `spread` axes,
        // or rows are what it is; windows: a thread may have neighbours along the last axis (schedule/gpu/windows.c)
        struct { int part_axis, spread; Team team; const Rowwise *rows; bool windows; } loop;
        // window: of a convolution of bytes, whose rows the template of a product reads where they lie
        struct { Contraction gemm; Convolution window; };
        // KERNEL_PRODUCT: on a GPU
        Product product;
        Convolution conv;                               // KERNEL_CONV, KERNEL_DEPTHWISE, KERNEL_PLANES
        Attention attention;
        // parameters in order, inputs first; fails: not 0: it returns an int, and where that is not 0 the run returns
        // this; points: so many shares of equal work, 0: it is one
        struct { VEC(Value *) args; int fails; Dim points; } call;
        // If and Loop hold plans of their own, whose workspace is `scratch`; packs: packed operands of their kernels
        struct { Plan **bodies; int n_bodies; VEC(Buffer *) packs; } region;
    };
};
static inline bool kernel_is_conv(const Kernel *k) {
    return k->kind == KERNEL_CONV || k->kind == KERNEL_DEPTHWISE || k->kind == KERNEL_PLANES;
}
// Does its run pack the weights?
static inline bool kernel_packs(const Kernel *k) { return k->packed && k->packed->place == PLACE_WORK; }
static inline int kernel_fails(const Kernel *k) { return k->kind == KERNEL_CALL ? k->call.fails : 0; }
static inline int kernel_bodies(const Kernel *k) { return k->kind == KERNEL_REGION ? k->region.n_bodies : 0; }

struct Plan {
    Arena *arena;
    Arena *scratch;                                     // fuse.c: what building the kernels of a node wants
    Graph *graph;
    const Plan *parent;                                 // of a region's body
    ValuePlans *values;
    VEC(Kernel *) kernels;                              // in execution order
    int numbered;                                       // of the outermost plan: how many kernels have a number
    VEC(Buffer *) buffers;
    // the pool where strings are made, of the outermost plan; NULL: none are
    Buffer *strings;
    int64_t work_bytes;                                 // workspace, all symbols at their upper bounds
    int64_t live_bytes;                                 // lower bound: most bytes alive at once in this order
    // --region, by bank: bytes of the workspace there, their share of all accesses in percent; by how many the banks
    // are too small
    int64_t *bank_bytes, *bank_shares, bank_excess;
    int64_t saved_bytes;                                // by the order of the kernels
    // --train-memory: kernels that run again, and their share of the time of all others, as the schedule reckons
    int runs_again; double again_share;
    int64_t weight_bytes;
    const Options *options;
};
// A program is one entry point of the generated file; a file may hold several (inference; loss and gradients; update).
typedef struct Program {
    const char *name;                                   // of the function: lenet_run
    const char *name_of_workspace, *prefix;             // prefixes of its workspace's type, and of its kernels: lenet
    const char *function;                               // of several of a model, which share much; NULL: none of them
    const char *doc;                                    // what it does, for the header; NULL: one inference
    Plan *plan;
    bool descriptor;                                    // give it the generic `const burn_model`
} Program;

const char *kernel_kind(const Kernel *k);               // "loop", "conv", ...
Plan *plan_make(Graph *g, const Options *o);            // by o->machine.backend->plan; NULL with diagnostics
// What the rows of back ends say, for processors and for GPUs
bool cpu_plan(Plan *p);
bool cpu_has_template(const Node *n, const Options *o); // cpu/anchors.c
bool cpu_on_planes(const Node *n);                      // a depthwise convolution with the channels first
// templates_attention.c: an attention's backward pass, by the product that gives its scores
bool cpu_attends_back(const Node *scores, int64_t depth, bool masked, const Options *o);
// softmaxes of rows, and products with constant weights of few bits
bool cpu_claims(const Node *n, const Options *o);
bool gpu_plan(Plan *p);
bool gpu_claims(const Node *n, const Options *o);       // products of few rows with weights of few bits
bool gpu_has_template(const Node *n, const Options *o); // gpu/gemm.c
bool gpu_channels_first(const Node *n);                 // depthwise convolutions
bool gpu_keeps_rows(Arena *a, const Kernel *k);          // gpu/tile.c
int64_t gpu_shares(const Node *product);
// matrix.c: counters, 0 between runs, with which the shares of a product's terms find out who is the last
int64_t gpu_counters(const Kernel *k);
// plan.c: microseconds of a body's kernels in one workgroup, and of the commands that they are otherwise
double gpu_alone_time(const Plan *body);
double gpu_commands_time(const Plan *body);
bool gpu_calls(const Kernel *k);                        // gpu/sort.c: a called operation that has shaders
bool gpu_attends(const Kernel *attention, const Options *o);              // gpu/attention.c
bool gpu_attends_few(const Node *product);
ValuePlan plan_value(const Plan *p, const Value *v);    // all zero where nothing is planned for it
bool plan_ran(const Plan *p, int at);                   // is the kernel there one that has run before?
// bytes of the workspace in front of what is planned, that it may begin anywhere
int64_t plan_slack(const Plan *p);
// --threads: how many times as fast as one thread the workers are, as even as their shares are, where nothing else
// costs them time; 1 without
double plan_speedup(const Plan *p);
void plan_report(const Plan *p, Text *out);             // --report
int64_t banks_bytes(const Options *o);                  // banks.c: of the regions that a workspace may lie in; 0: none
int64_t banks_used(int n, const Program *programs, int bank);          // bytes of workspace and constants there
// which regions hold the constants of programs; false with diagnostics
bool banks_constants(const Options *o, int n, const Program *programs);
// the worst moment for memory: what is there, the largest `shown`, and what is computed again for --train-memory
void plan_kept(const Plan *p, Text *out, int shown);
void plan_print(const Plan *p, Text *out);              // --dump schedule
#endif
