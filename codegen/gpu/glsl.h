// SPDX-License-Identifier: MIT OR Apache-2.0
// State of one shader that is printed, shared by the printers of loop kernels (glsl.c) and of templates (gemm.c).
#ifndef BURNCC_CODEGEN_GLSL_H
#define BURNCC_CODEGEN_GLSL_H
#include "vulkan.h"

// views of several elements at a time
typedef enum Wide { WIDE_F32X4, WIDE_U16X4, WIDE_U16X8, WIDE_U8X4, WIDE_U8X2, WIDE_U8X16, WIDE_COUNT } Wide;

typedef struct More { const char *name; uint32_t value; } More;
enum { MAX_LANES_READ = 6 };                            // values that a thread reads several elements of at once
typedef struct Printing {
    Arena *arena;
    const Options *options;
    const Layout *layout;
    const Kernel *kernel;
    int64_t weights_from;                               // where what the kernel sees of the weights begins, in bytes
    bool viewed[BINDINGS][DT_COUNT];                    // by buffer and dtype: elements loaded or stored
    bool wide[BINDINGS][WIDE_COUNT], wide_written[BINDINGS][WIDE_COUNT];        // by buffer
    bool written[BINDINGS], guarded[BINDINGS][DT_COUNT];
    bool coherent;                                      // what one thread has written others read
    // push constants: where the kernel's values lie in their views, so that kernels alike but for that are one module
    VEC(Value *) placed;
    More more[2]; int n_more;                           // and before them others, by name
    const char *number;                                 // and the last, which the call has; NULL: none
    Team team;
    int parts[DT_COUNT];                                // shared memory: slots of each dtype
    const Value *four[MAX_LANES_READ]; int n_four;      // of which a function, or a thread, has several elements
    unsigned paired;                                    // bits: of these two elements, each in two lanes
    bool converts;                                      // the shader has float16: GLSL_MATRICES
    bool dots;                                          // ... and dot products of four bytes
    const struct Packing *packing; char factor;         // product.c: how which factor of bytes is read
    int lanes, lane_at;                                 // lanes.c: elements of a thread; which of `four` is read
} Printing;

// the push constant that says at which element of its view v begins
const char *glsl_origin(const Printing *p, Value *v);
// element `index` of v in its view
const char *glsl_element(Printing *p, Value *v, const char *index, bool written);
// the view of several elements of v's buffer at a time; and n of v from element `index` on, a multiple of n
const char *glsl_wide(Printing *p, Value *v, Wide wide);
const char *glsl_elements(Printing *p, Value *v, Wide wide, int n, const char *index);
// what a load of this element of memory gives, as arithmetic takes it
const char *glsl_load_text(Arena *a, DType d, const char *element);
bool glsl_has_type(DType d);                            // has GLSL such elements?
void glsl_axes(const Printing *p, Text *out, int n);    // the first n axes as digits of `point`
// how loop nests are spelled for p
Dialect glsl_dialect(Printing *p);
// a template for matrix units, behind what all of them include
void glsl_fill_units(const Printing *p, Text *out, const char *file, int n, const Hole *holes);
// The shader around `body`: what it views, its helpers and functions; `extensions`: lines of its own before them.
void glsl_shader(Printing *p, const char *extensions, const char *shared, const char *body, Shader *out);
// the extensions of shaders for matrix units. Where those are, float16 is: conversions to it round as GLSL_NEAREST asks
#define GLSL_MATRICES \
    "#extension GL_KHR_memory_scope_semantics : require\n" \
    "#extension GL_KHR_shader_subgroup_basic : require\n" \
    "#extension GL_NV_cooperative_matrix : require\n" \
    "#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require\n" \
    "#extension GL_EXT_control_flow_attributes : require\n" \
    "#extension GL_EXT_spirv_intrinsics : require\n"
#define GLSL_BYTES \
    "#extension GL_NV_integer_cooperative_matrix : require\n" \
    "#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require\n" \
    "#define BYTES\n"
#define GLSL_DOTS \
    "#extension GL_EXT_control_flow_attributes : require\n" \
    "#extension GL_EXT_spirv_intrinsics : require\n"
#define GLSL_NEAREST "spirv_execution_mode(capabilities = [4467], 4462, 16);\n"      // RoundingModeRTE of 16 bits
// gemm.c, and matrix.c of that and of product.c: on matrix units (Kernel.units)
bool glsl_gemm(Printing *p, Shader *out);
void glsl_matrix(Printing *p, Shader *out);
void glsl_pieces(Printing *p, Shader *out);             // pieces.c: the same of f32
// Both factors and finish() as templates want them (product.comp): functions into `out`, and holes.
void glsl_gemm_factors(Printing *p, Text *out, Hole *holes, int *n);
void glsl_product_factors(Printing *p, Text *out, Hole *holes, int *n);
bool glsl_product(Printing *p, Shader *out);            // product.c
// of a product's nest, whose b and m are known: these stores at column `at`
void glsl_product_nest(Printing *p, Text *out, const Dialect *d, const Store *stores, int n, const char *at);
// product.c: the view of several elements of this dtype, its type, and element `lane` of those that were read of v
Wide glsl_wide_of(DType d, int lanes);
const char *glsl_wide_type(DType d, int lanes);
const char *glsl_load_lane(void *ctx, Value *v, const char *index);
// a float as the 16 bits that it is stored as
const char *glsl_bits_text(const Printing *p, DType d, const char *value);
// what the sums of a product are in its shaders: float, or int of bytes; and four of them
const char *glsl_sum(const Kernel *k);
const char *glsl_sums(const Kernel *k);
// lanes.c: how many neighbours along `axis` a thread of this kernel has (1: one element), and which loads bring all of
// them; the text behind the places of its axes, of which that one counts vectors
// sums: E_Acc is one of `sums`, by lane
typedef struct Lanes { int n, axis, loads; const Expr *load[MAX_LANES_READ]; bool sums; } Lanes;
Lanes glsl_lanes(Printing *p);
Lanes glsl_lanes_along(Printing *p, int axis);          // of a product's result: four along this axis, or one
Lanes glsl_lanes_of_term(Printing *p, int axis, int lanes, const Expr *term);
Lanes glsl_lanes_of_sums(Printing *p, int axis, int lanes);
void glsl_print_lanes(Printing *p, const Lanes *l, Text *out);
// w0, w1, ... of its loads; otherwise: what they are where a load is of none, or NULL
void glsl_print_whole(Printing *p, const Lanes *l, Text *out, const char *const *otherwise);
bool glsl_windows(Printing *p, Shader *out);            // windows.c; false: it is to be a loop
// a thread's place, `outer` axes of it
void glsl_print_thread(const Printing *p, Text *out, const Shader *s, int outer);
bool glsl_choose_groups(const Kernel *k, int64_t points, int team, Shader *out);
bool glsl_is_map(const Kernel *k);                      // neither sums nor sizes of the run
// the nest with these stores alone, behind `place`, which says where the innermost axes are: "i1 = first"
void glsl_print_nest(Printing *p, Text *out, const Dialect *d, const Store *stores, int n, const char *place);
bool glsl_tiles(Printing *p, Shader *out);              // tiles.c; false: not for this kernel
// Where the sums of a block's shares meet, and the counters: push constants, like the places of values, the same for
// all shaders of a kernel, and views of them.
const char *glsl_share_memory(Printing *p);
// Of a product found in a loop nest, what gemm_mma.comp wants: functions for both factors, as bits of `to`, and for the
// result, into `out`; wide: which are read eight at a time; and holes.
void glsl_product_units(Printing *p, Text *out, DType to, bool wide[2], Hole *holes, int *n);
void glsl_sort(Printing *p, Shader *out);               // sort.c: a chain of shaders
bool glsl_rowwise(Printing *p, Shader *out);            // rowwise.c
// of a product whose left factor is a norm's rows: what makes them, by so many threads a row, so many rows at a time
void glsl_norm(Printing *p, int team, int members, Text *out, Text *shared, Hole *holes, int *n);
bool glsl_attention(Printing *p, Shader *out);          // attention.c
// void finish(acc, i0, i1, i2): what becomes of the sum at that batch, row and column, and where it is stored; if
// `fours` and four columns can be stored at once, void finish4(sums, i0, i1, first) instead. C_WIDE, FINISH and FINISH4
// say so.
void glsl_finish(Printing *p, Text *out, bool fours, Hole *holes, int *n);
void glsl_finish_holes(bool four, Hole *holes, int *n);
void glsl_blocks(const Kernel *k, Shader *out);         // the workgroups of a product: a block of the result each
// what the schedule chose, as the first holes; their number. And one of them, which the layout does not allow
int glsl_chosen(const Printing *p, Hole *holes);
void glsl_refuse(int n, Hole *holes, const char *name);
#endif
