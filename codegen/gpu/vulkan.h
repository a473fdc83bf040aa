// SPDX-License-Identifier: MIT OR Apache-2.0
// Between vulkan.c (memory, levels, files) and glsl.c (one kernel as a shader).
#ifndef BURNCC_CODEGEN_VULKAN_H
#define BURNCC_CODEGEN_VULKAN_H
#include "codegen/codegen.h"

// Two buffers hold everything: binding 0 is the arena (workspace, then inputs, then outputs), binding 1 the weights.
// Where values may lie anywhere (Layout.moved), the counters are with the weights, and structs of parameters are
// binding 2, those of gradients and state 3: of each binding a kernel sees only so much at once.
enum { BINDINGS = 4 };
typedef struct Layout {
    const Plan *plan;
    int64_t *input_at, *output_at;                      // bytes into the arena, by number
    // of the first weight in its buffer: what stands before it in a file
    int64_t weights_at;
    int64_t arena_bytes, weights_bytes, work_bytes;     // work: of the arena, before the inputs
    // the end of the arena: counters of products' shares, words that are 0 when a run begins, and when it has ended
    int64_t counters_at; uint32_t n_counters;
    // parts of the weights that kernels see, each kernel one of them, and which; none: all see all (layout_windows)
    struct WeightWindow { int64_t at, bytes; } *windows; int n_windows;
    int *window_of;
    bool moved;                                         // values lie where the run says: none is far from its beginning
} Layout;

typedef struct Region { bool is_weight; int64_t at, bytes; } Region;   // bytes of one of the two buffers
// layout.c; external: the weights come from a file
Layout layout_make(Arena *a, const Plan *p, bool external);
Region layout_region(const Layout *l, Value *v);        // aliases resolved
int layout_binding(const Layout *l, const Value *v);          // the value's
DType layout_element(const Layout *l, const Value *v);  // of the value in memory: its own, or what --precision makes it
// Weights of more bytes than every device lets a kernel see get windows.
void layout_windows(Arena *a, Layout *l);
int layout_window(const Layout *l, const Kernel *k);    // of a kernel of the plan; 0 where there are none
int64_t layout_weights_from(const Layout *l, const Kernel *k);      // where it begins
Region layout_scratch(const Kernel *k);                 // of no bytes where it has none
uint32_t layout_counter(const Layout *l, const Kernel *k);          // the first of a product's, in words of the arena

enum { MAX_PUSH = 32 };                                 // words of push constants on every device
// One dispatch: invocations beyond `points` do nothing.
// A kernel with sizes of the running program has them as push constants behind the values: first the points, then
// Kernel.sizes; its groups are for the upper bounds.
typedef struct Shader {
    const char *glsl;
    int64_t points;
    int each;                                           // points of a group
    Dim size;                                           // the points as a size
    uint32_t groups[3]; bool all_groups;                // all_groups: whatever the sizes are
    uint32_t push[MAX_PUSH]; int n_push;
    // NULL, or the same in a way that not all devices have: on matrix units, in GL_NV_cooperative_matrix, of elements
    // of what type; else with shuffles in subgroups, or dot products of bytes, which may have another way instead
    struct Shader *instead; DType matrices;
    Value *placed[MAX_PUSH]; int n_placed;              // whose places the last of those are
    struct Shader *then;                                // what the kernel goes on with when all of this is done
} Shader;

// custom.c: an operand of a model's own kernel: the view and the element of it that it begins with
typedef struct Operand { const char *name, *view, *first; } Operand;
const char *glsl_custom_text(Arena *a, const char *text, int n, const Operand *operands);

// glsl.c
// has GLSL all that the kernel computes with?
bool glsl_can(Arena *a, const Kernel *k);
// false with a diagnostic at the kernel's node
bool glsl_kernel(Arena *a, const Options *o, const Layout *l, const Kernel *k, Shader *out);
// loop.c: is this loop one dispatch? Its shader, which takes how often it runs as its last push constant; how many of
// the values placed it writes, the first ones
bool glsl_takes_loop(Arena *a, const Kernel *k);
int glsl_loop(Arena *a, const Options *o, const Layout *l, const Kernel *k, Shader *out);
// steps.c: the C file of programs that are more than one list of kernels
bool steps_wanted(Arena *a, int n, const Program *programs, const struct Training *training);
bool steps_write(
    Arena *a, const Options *o, const char *model, int n, Program *programs, const struct Training *training);
// report.c: as Backend.report
void vulkan_report(
    Arena *a, const Options *o, int n, const Program *programs, const struct Training *training, Text *out);
// vulkan.c: prints a module's words as an array, or nothing with a diagnostic at the kernel's node
bool vulkan_print_module(Arena *a, Text *out, const Plan *p, const Kernel *k, const Shader *s, const char *name,
    uint64_t *key, size_t *count);
#endif
