// SPDX-License-Identifier: MIT OR Apache-2.0
// --threads N: which kernels are shared out, and how. In: kernels with their templates and blocks. Out: Kernel.parts,
// the holes PARTS and PART_AXIS of templates that have them, and scratch memory for each part.
//
// The shares are fixed here, so results have the same bits whoever computes them. No reduction is cut. A kernel that
// takes little time is left to the caller alone: handing parts out costs about a microsecond, and what another core
// wrote has to be fetched from it.
#include "schedule/schedule.h"

#include <string.h>

// Nanoseconds, for one core of today's servers and laptops; only ratios of 2 matter.
static const double template_rate = 100, loop_rate = 8;  // operations a nanosecond
static const double near_rate = 20, far_rate = 4;       // bytes a nanosecond, from outer caches and from another core's
// bytes; elements that a part of an innermost axis begins at a multiple of
enum { SCRATCH_ALIGN = 64, LINE = 16 };

static double larger(double x, double y) { return x > y ? x : y; }

// ---------------------------------------------------------------- how even
// What the largest of n shares of so many units takes, in shares of equal size.
double parts_unevenness(int64_t units, int n) {
    return units > 0 ? (double)((units + n - 1) / n) * n / (double)units : n;
}

// Shares for a kernel that takes so long, cut so unevenly: 1 when it should stay whole.
int parts_shares(const Options *o, double ns, double uneven) {
    if (o->part_us <= 0) return o->threads;
    double most = ns / (1e3 * o->part_us);
    int n = most < o->threads ? (int)most : o->threads;
    return n < 2 || n / uneven < 1.3 ? 1 : n;
}

// A kernel of run-time sizes takes so long at their bounds, and less in proportion to `size`: from where on are its
// parts worth handing out?
static void hand_out_from(const Options *o, const Graph *g, Kernel *k, Dim size, double ns) {
    double share = 2e3 * o->part_us / ns;
    if (dim_is_const(size) || k->parts < 2) return;
    k->part_size = size;
    k->part_least = (int64_t)((double)dim_upper(g, size) * (share < 1 ? share : 1));
}

// ---------------------------------------------------------------- loop kernels
static bool only_sets(const Kernel *k) {
    for (int i = 0; i < k->stores.n; i++)
        if (k->stores.at[i].op != RED_NONE) return false;
    for (int i = 0; i < k->n_parallel; i++)
        if (k->axes.at[i].reduce) return false;         // serial
    return k->stores.n > 0;
}

// A gather from a large table reads little of it.
static double loop_ns(const Graph *g, const Kernel *k) {
    double points = 1, bytes = 0;
    for (int i = 0; i < k->axes.n; i++) points *= (double)k->axes.at[i].extent;
    for (int i = 0; i < k->writes.n; i++) bytes += (double)type_bytes_upper(g, &k->writes.at[i]->type);
    for (int i = 0; i < k->reads.n; i++) {
        double all = (double)type_bytes_upper(g, &k->reads.at[i]->type),
               loaded = points * (double)dtype_size(k->reads.at[i]->type.dtype);
        bytes += all < loaded ? all : loaded;
    }
    return larger(k->flops / loop_rate, bytes / near_rate);
}

// The axis whose ranges the parts are: outside of every reduction that points share, cut most evenly, the outermost
// of equals.
static void cut_loop(Graph *g, Kernel *k, const Options *o) {
    int inner = -1, best = -1, outer = only_sets(k) ? nest_outer_axes(k) : 0;
    double least = o->part_us > 0 ? o->threads : 1e9;
    for (int i = 0; i < k->n_parallel; i++) if (k->axes.at[i].size != 1) inner = i;
    for (int i = 0; i < outer; i++) {
        const Axis *x = &k->axes.at[i];
        double uneven = parts_unevenness(i == inner ? (x->extent + LINE - 1) / LINE : x->extent, o->threads)
            * (dim_is_const(x->size) ? 1 : 1.2);
        if (x->size == 1 || uneven >= least) continue;
        least = uneven;
        best = i;
    }
    if (best < 0) return;
    Dim points = 1;
    for (int i = 0; i < k->axes.n; i++) points = dim_mul(g, points, k->axes.at[i].size);
    k->parts = parts_shares(o, loop_ns(g, k), least);
    k->loop.part_axis = best;
    hand_out_from(o, g, k, points, loop_ns(g, k));
}

// ---------------------------------------------------------------- templates
static int64_t hole_or(const Kernel *k, const char *name, int64_t otherwise) {
    for (int i = 0; i < k->holes.n; i++)
        if (!strcmp(k->holes.at[i].name, name)) return k->holes.at[i].value;
    return otherwise;
}

static void hole(Arena *a, Kernel *k, const char *name, int64_t value) {
    VEC_PUSH(a, k->holes, (HoleValue){ .name = name, .value = value });
}

// A contraction goes by batches (0), rows (1) or panels of columns (2): each part reads what its elements need, so
// one of the operands, or none, is read by all. What kernels compute, they share out by rows or pixels; a part of
// some columns reads rows that other cores have written, and writes for them. The nanoseconds that a part takes.
static double axis_ns(const Graph *g, const Kernel *k, int threads, int axis) {
    const Contraction *s = &k->gemm;
    double b = (double)dim_upper(g, s->batch), m = (double)dim_upper(g, s->m), n = (double)dim_upper(g, s->n),
           depth = (double)dim_upper(g, s->k);
    int64_t mr = hole_or(k, "MR", 1), nr = hole_or(k, "NV", 1) * (hole_or(k, "LAYOUT", 0) == 2 ? 4 : 16);
    double left = 4 * depth * m * (s->a_batch ? b : 1), right = 4 * depth * n * (s->b_batch ? b : 1),
           packing = hole_or(k, "PACK_B", 0) ? right / 10 : 0;
    int64_t units = axis == 0 ? (int64_t)b : axis == 1 ? ((int64_t)m + mr - 1) / mr : ((int64_t)n + nr - 1) / nr;
    double read = (axis == 1        ? left / threads + right :
                          axis == 2 ? left + right / threads :
                                      (left + right) / threads)
        / near_rate;
    double ns = larger(k->flops / template_rate / threads, read) * parts_unevenness(units, threads)
        + (axis == 1 ? packing : packing / threads);
    if (m == 1 && axis == 1) return 1e30;               // gemv.c
    return m > 1 && axis == 2 ? ns + (1 - 1.0 / threads) * (left + 4 * b * m * n / threads) / far_rate : ns;
}

static int contraction_axis(const Graph *g, const Kernel *k, int threads, double *of_part) {
    int best = 0;
    for (int i = 0; i < 3; i++) {
        double ns = axis_ns(g, k, threads, i);
        if (i && ns >= *of_part) continue;
        *of_part = ns;
        best = i;
    }
    return best;
}

static double whole_ns(const Kernel *k) { return larger(k->flops / template_rate, (double)k->traffic / near_rate); }

// A part of a product or a convolution cut as it likes best.
double parts_best_ns(const Graph *g, const Kernel *k, int threads) {
    if (k->kind != KERNEL_GEMM)
        return whole_ns(k) / threads
            * parts_unevenness(dim_upper(g, k->conv.batch) * k->conv.out[0] * k->conv.out[1], threads);
    double ns = 0;
    contraction_axis(g, k, threads, &ns);
    return ns;
}

// The same by rows, so unevenly.
double parts_rows_ns(const Graph *g, const Kernel *k, int threads, double uneven) {
    double weights = k->kind == KERNEL_GEMM ? 4.0 * (double)dim_upper(g, k->gemm.n) * (double)dim_upper(g, k->gemm.k) :
                                              0;
    return larger(whole_ns(k) / threads, weights / near_rate) * uneven;
}

// What the work of a template grows with.
static Dim template_size(Graph *g, const Kernel *k) {
    const Contraction *s = &k->gemm;
    if (k->kind == KERNEL_GEMM) return dim_mul(g, dim_mul(g, dim_mul(g, s->batch, s->m), s->n), s->k);
    return kernel_is_conv(k) ? k->conv.batch : 0;
}

static void cut_template(Arena *a, Graph *g, Kernel *k, const Options *o) {
    double whole = whole_ns(k), of_part = whole / o->threads;
    bool contraction = k->template->parts == PARTS_BY_AXIS;
    if (contraction) contraction_axis(g, k, o->threads, &of_part);
    k->parts = parts_shares(o, whole, of_part * o->threads / whole);
    if (k->parts < 2) return;
    if (contraction) hole(a, k, "PART_AXIS", contraction_axis(g, k, k->parts, &of_part));
    hole(a, k, "PARTS", k->parts);
    k->scratch_bytes = (k->scratch_bytes + SCRATCH_ALIGN - 1) / SCRATCH_ALIGN * SCRATCH_ALIGN * k->parts;
    hand_out_from(o, g, k, template_size(g, k), whole);
}

void parts_plan(Plan *p) {
    const Options *o = p->options;
    for (int i = 0; i < p->kernels.n && o->threads > 1; i++) {
        Kernel *k = p->kernels.at[i];
        if (k->strips) continue;                        // strips.c cuts them
        if (k->kind == KERNEL_LOOP) cut_loop(p->graph, k, o);
        else if (k->template && k->template->parts)
            cut_template(p->arena, p->graph, k, o);
    }
}
