// SPDX-License-Identifier: MIT OR Apache-2.0
// What --report says of a device's memory. In: programs with their plans. Out: lines with the bytes that the runtime
// will take, block by block as it takes them, so that burn_vk_memory (of a list of kernels) and burn_gpu_usage (of a
// program with control on the host) say the same of the run.
#include "vulkan.h"
#include "codegen/weights.h"

enum {
    BLOCK_ALIGN = 256,                                  // what vulkan/memory.h and vulkan_steps.c round blocks up to
    STAGING_ALIGN = 64,                                 // of each tensor in staging memory: vulkan.c
    COUNTERS_BYTES = 4 << 16,                           // what dispatches count in: vulkan_steps.c
    PIECE = 16 << 20,                                   // through which weights travel: vulkan.c
};

static int64_t block(int64_t bytes) {
    return bytes > BLOCK_ALIGN ? (bytes + BLOCK_ALIGN - 1) / BLOCK_ALIGN * BLOCK_ALIGN : BLOCK_ALIGN;
}

static int64_t staged(const Graph *g, int n, Value *const *values) {
    int64_t bytes = 0;
    for (int i = 0; i < n; i++) {
        const int64_t one = type_bytes_upper(g, &values[i]->type);
        bytes += (one + STAGING_ALIGN - 1) / STAGING_ALIGN * STAGING_ALIGN;
    }
    return n ? block(bytes) : 0;
}

static void report_list(Arena *a, const Options *o, const Plan *p, Text *out) {
    const Graph *g = p->graph;
    const Layout l = layout_make(a, p, p->weight_bytes > o->embed_limit);
    const int64_t weights = block(l.weights_bytes), arena = block(l.arena_bytes);
    const int64_t in = staged(g, g->inputs.n, g->inputs.at),
                  back = staged(g, g->outputs.n, g->outputs.at), pieces = l.weights_bytes ? PIECE : 0;
    text_printf(out,
        "device memory: %lld bytes of weights, %lld of each workspace (%lld between kernels, the rest inputs, outputs "
        "and counters)\n",
        (long long)weights, (long long)arena, (long long)l.work_bytes);
    text_printf(out, "  peak of one workspace: %lld bytes where the host reaches that memory;\n",
        (long long)(weights + arena));
    text_printf(out, "  elsewhere %lld, with %lld to stage inputs, %lld outputs, %lld weights\n",
        (long long)(weights + arena + in + back + pieces), (long long)in, (long long)back, (long long)pieces);
}

static bool is_struct(Role r) { return r == ROLE_PARAM || r == ROLE_GRAD || r == ROLE_TANGENT || r == ROLE_STATE; }

// Of one side of a function: the struct's fields of this role, one after the other.
static int64_t fields_bytes(const Graph *g, bool outputs, Role role) {
    int64_t bytes = 0;
    for (int i = 0; i < (outputs ? g->outputs.n : g->inputs.n); i++) {
        const Value *v = outputs ? g->outputs.at[i] : g->inputs.at[i];
        if (v->role == role) bytes += type_bytes_upper(g, &v->type);
    }
    return bytes;
}

// A struct is one block, whether it is read or written or both, and holds the fields of all functions.
static int64_t struct_bytes(int n, const Program *programs, Role role) {
    int64_t most = 0;
    for (int i = 0; i < n; i++)
        for (int side = 0; side < 2; side++) {
            const int64_t bytes = fields_bytes(programs[i].plan->graph, side, role);
            if (bytes > most) most = bytes;
        }
    return block(most);
}

static int64_t structs_bytes(int n, const Program *programs, const Graph *g) {
    int64_t bytes = 0;
    for (int r = 0; r < ROLE_COUNT; r++)
        if (is_struct((Role)r) && (fields_bytes(g, false, (Role)r) || fields_bytes(g, true, (Role)r)))
            bytes += struct_bytes(n, programs, (Role)r);
    return bytes;
}

static int64_t tensors_bytes(const Graph *g) {
    int64_t bytes = 0;
    for (int i = 0; i < g->inputs.n + g->outputs.n; i++) {
        const Value *v = i < g->inputs.n ? g->inputs.at[i] : g->outputs.at[i - g->inputs.n];
        if (!is_struct(v->role) && v->role != ROLE_VALUE) bytes += block(type_bytes_upper(g, &v->type));
    }
    return bytes;
}

// Numbers that the function is given: each kernel that reads one has it in a block of its own.
static int64_t numbers_bytes(Arena *a, const Plan *p) {
    int64_t bytes = 0;
    for (int i = 0; i < p->kernels.n; i++) {
        const Kernel *k = p->kernels.at[i];
        for (int j = 0; j < k->reads.n; j++)
            if (k->reads.at[j]->role == ROLE_VALUE && glsl_can(a, k)) bytes += BLOCK_ALIGN;
    }
    return bytes;
}

static void report_steps(Arena *a, int n, const Program *programs, const struct Training *training, Text *out) {
    const int64_t weights = programs->function || training ? weights_share(n, programs) : programs->plan->weight_bytes;
    int64_t work = 0;
    for (int i = 0; i < n; i++)
        if (programs[i].plan->work_bytes > work) work = programs[i].plan->work_bytes;
    text_printf(out,
        "device memory, all of it in one buffer: %lld bytes of constants and counters, and during a call of\n",
        (long long)(COUNTERS_BYTES + (weights ? block(weights) : 0)));
    for (int i = 0; i < n; i++) {
        const Program *p = &programs[i];
        const int64_t own = p->descriptor || p->plan->work_bytes ? block(p->function ? work : p->plan->work_bytes) : 0,
                      tensors = tensors_bytes(p->plan->graph) + numbers_bytes(a, p->plan),
                      structs = structs_bytes(n, programs, p->plan->graph);
        text_printf(out, "  %s: %lld, a workspace of %lld; %lld of tensors", p->name,
            (long long)(own + tensors + structs), (long long)own, (long long)tensors);
        if (structs) text_printf(out, ", %lld of structs", (long long)structs);
        text_printf(out, " that lie elsewhere\n");
    }
}

void vulkan_report(
    Arena *a, const Options *o, int n, const Program *programs, const struct Training *training, Text *out) {
    if (steps_wanted(a, n, programs, training)) report_steps(a, n, programs, training, out);
    else report_list(a, o, programs->plan, out);
}
