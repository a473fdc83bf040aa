// SPDX-License-Identifier: MIT OR Apache-2.0
// burncc bench: builds the model and times it. In: --input files, or random values from a fixed seed. Out: one line,
//   median_ms=0.118 min_ms=0.117 gflops=33.1 workspace_bytes=65536 weights_bytes=0 runs=16900
// where gflops are the plan's operations (a multiply-add counts as two) over the median. On a GPU with
//   device_ms=1.91 copies_ms=2.6 host_ms=0.06
// which are its parts (bench_gpu.c). On a board without a clock
//   instructions=8324944 per_multiply_add=3.13 stack_bytes=640 stack_bound=648 ...
// or cycles, counted in one run; the bound where the C compiler accounts for it (stack.c).
#include "profile.h"

#include <math.h>
#include <string.h>

static const uint64_t seed = 0x6275726e63630a31;

// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014).
static uint64_t random_bits(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

// How many numbers an integer input takes, from *low on; 0: nobody says.
static uint64_t numbers_taken(const Value *input, int64_t *low) {
    unsigned bits = dtype_bits(input->type.dtype);
    if (graph_quantized(input->graph, input->name, false)) {
        *low = dtype_class(input->type.dtype) == CLASS_UINT ? 0 : -((int64_t)1 << (bits - 1));
        return (uint64_t)1 << bits;
    }
    if (!input->range || input->range->hi == INT64_MAX) return 0;
    *low = input->range->lo;
    return (uint64_t)(input->range->hi - *low) + 1;
}

// Where an element says how large something is, as the tokens so far: the most that the program takes.
static void set_sizes(const Value *input, Tensor *t) {
    int n;
    const Symbol *symbols = graph_symbols(graph_root(input->graph), &n);
    for (int i = 0; i < n; i++)
        if (symbols[i].from == input && symbols[i].at < type_count(&t->type))
            tensor_set_i(t, symbols[i].at, symbols[i].hi);
}

// Floats from -1 to 1; integers 0 or 1, which are valid indices nearly everywhere, or what the program says it takes.
// Sizes at their upper bounds.
Tensor *tensor_random(Arena *a, const Value *input, uint64_t *state) {
    Type largest = input->type;
    const Type *type = &largest;
    for (int i = 0; i < largest.rank; i++) largest.dim[i] = dim_upper(input->graph, largest.dim[i]);
    Tensor *t = tensor_new(a, largest);
    int64_t n = type_count(type);
    DClass class = dtype_class(type->dtype);
    int64_t low = 0;
    uint64_t values = numbers_taken(input, &low);
    for (int64_t i = 0; i < n; i++) {
        uint64_t bits = random_bits(state);
        double v = (double)(bits >> 11) * 0x1p-52 - 1;
        if (class == CLASS_FLOAT) tensor_set_f(t, i, v);
        else if (class == CLASS_STRING) ((const char **)t->data)[i] = "";
        else if (type->dtype == DT_C64) ((float *)t->data)[2 * i] = (float)v;
        else if (type->dtype == DT_C128) ((double *)t->data)[2 * i] = v;
        else if (values) tensor_set_i(t, i, low + (int64_t)(bits % values));
        else tensor_set_i(t, i, (int64_t)(bits >> 63));
    }
    set_sizes(input, t);
    return t;
}

static double plan_flops(const Plan *p) {
    double flops = 0;
    for (int i = 0; i < p->kernels.n; i++) flops += p->kernels.at[i]->flops;
    return flops;
}

static void print_count(Arena *a, const CommandOptions *c, const Plan *p, const Timing *t) {
    double each = 2 * t->counted / plan_flops(p);
    Text out;
    text_init(&out, a);
    if (c->json) {
        text_printf(&out, "{\"model\":");
        json_quoted(&out, c->compile.model);
        text_printf(&out, ",\"target\":\"%s\",\"%s\":%.0f,\"per_multiply_add\":", c->compile.target, t->counts,
            t->counted);
        json_number(&out, each);
        text_printf(&out, ",\"stack_bytes\":%lld,", (long long)t->stack);
        if (t->stack_bound >= 0) text_printf(&out, "\"stack_bound\":%lld,", (long long)t->stack_bound);
        text_printf(&out, "\"workspace_bytes\":%lld,\"weights_bytes\":%lld}\n", (long long)p->work_bytes,
            (long long)p->weight_bytes);
    } else {
        text_printf(&out, "%s=%.0f per_multiply_add=%.3g stack_bytes=%lld ", t->counts, t->counted, each,
            (long long)t->stack);
        if (t->stack_bound >= 0) text_printf(&out, "stack_bound=%lld ", (long long)t->stack_bound);
        text_printf(&out, "workspace_bytes=%lld weights_bytes=%lld\n", (long long)p->work_bytes,
            (long long)p->weight_bytes);
    }
    print_text(&out, 0);
}

// Of a run on a GPU: kernels, the way of inputs and outputs, and what the host adds. They make up the median, but for
// what one measurement differs from the next.
static void print_split(Text *out, const CommandOptions *c, const Timing *t) {
    const struct { const char *name; double ms; } parts[] = { { "device_ms", t->gpu.device_ms },
        { "copies_ms", fmax(0, t->median_ms - t->gpu.resident_ms) },
        { "host_ms", fmax(0, t->gpu.resident_ms - t->gpu.device_ms) } };
    for (size_t i = 0; i < COUNT(parts) && t->gpu.known; i++)
        text_printf(out, c->json ? "\"%s\":%.6g," : "%s=%.5g ", parts[i].name, parts[i].ms);
}

static void print_timing(Arena *a, const CommandOptions *c, const Built *b, const Timing *t) {
    const Plan *p = b->plan;
    double flops = plan_flops(p);
    double gflops = t->median_ms > 0 ? flops / t->median_ms * 1e-6 : 0;
    long long work = b->gpu ? (long long)b->gpu->arena_bytes :
        b->model            ? (long long)b->model->workspace_bytes :
                              (long long)p->work_bytes;
    Text out;
    text_init(&out, a);
    if (c->json) {
        text_printf(&out, "{\"model\":");
        json_quoted(&out, c->compile.model);
        text_printf(&out, ",\"target\":\"%s\",\"median_ms\":%.6g,\"min_ms\":%.6g,\"gflops\":%.6g,", c->compile.target,
            t->median_ms, t->min_ms, gflops);
        print_split(&out, c, t);
        text_printf(&out, "\"flops\":%.17g,\"workspace_bytes\":%lld,\"weights_bytes\":%lld,\"runs\":%lld}\n", flops,
            work, (long long)p->weight_bytes, (long long)t->runs);
    } else {
        text_printf(&out, "median_ms=%.5g min_ms=%.5g ", t->median_ms, t->min_ms);
        print_split(&out, c, t);
        text_printf(&out, "gflops=%.4g workspace_bytes=%lld weights_bytes=%lld runs=%lld\n", gflops, work,
            (long long)p->weight_bytes, (long long)t->runs);
    }
    print_text(&out, 0);
}

Inputs inputs_random(Arena *a, const Built *b, const Graph *signature, const Inputs *in) {
    Inputs bound = inputs_select(a, b, signature, in);
    uint64_t state = seed;
    for (int i = 0; i < bound.n; i++)
        if (!bound.at[i]) bound.at[i] = tensor_random(a, b->plan->graph->inputs.at[i], &state);
    return bound;
}

static int bench_profile(Arena *a, CommandOptions *c) {
    BuildCache marked = { .arena = a };
    const Profile *p = profile_take(a, c, &marked);
    int status = p ? profile_report(a, c, 1, &p) : diag_status();
    build_cache_free(&marked);
    return status;
}

int command_bench(Arena *a, CommandOptions *c) {
    const Options *o = &c->compile;
    if (o->train) return bench_training(a, c);
    if (c->profile) return bench_profile(a, c);
    Inputs in;
    const Graph *signature = inputs_read(a, c, false, &in);
    if (!signature) return diag_status();
    BuildCache cache = { .arena = a, .runner = c->runner };
    const char *frozen = "";
    Built *b = build_for_inputs(&cache, o, signature, &in, &frozen);
    if (!b) return diag_status();
    if (*frozen) diag_note(NULL, "shapes depend on the values of %s; compiled for these values", frozen);
    Inputs bound = inputs_random(a, b, signature, &in);
    progress_stage("timing for %.3g s", c->seconds);
    Timing timing;
    const char *why = sandbox_time(a, b, &bound, c->seconds, c->timeout, &timing);
    if (why) diag_error(NULL, "the model's code failed: %s", why);
    else if (timing.counts) print_count(a, c, b->plan, &timing);
    else print_timing(a, c, b, &timing);
    build_cache_free(&cache);
    return diag_status();
}
