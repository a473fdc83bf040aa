// SPDX-License-Identifier: MIT OR Apache-2.0
// --threads N: which kernels are shared out, and how. In: kernels with their templates and blocks. Out: Kernel.parts
// and Kernel.workers, the holes PARTS and PART_AXIS of templates that have them, and scratch memory for each worker.
//
// The parts are fixed here, so results have the same bits whoever computes them. No reduction is cut. There are some
// parts for each worker, so that a core that is late or slow holds the others up by little: as many as leave each
// some microseconds (taking one costs a fiftieth of one), and as what every part reads or copies anew allows. A kernel
// that takes little time is left to the caller alone: handing parts out costs about a microsecond, and what another
// core wrote has to be fetched from it.
#include "schedule/schedule.h"

#include <string.h>

// Nanoseconds, for one core of today's servers and laptops; only ratios of 2 matter.
static const double template_rate = 100, loop_rate = 8;  // operations a nanosecond
static const double near_rate = 20, far_rate = 4;       // bytes a nanosecond, from outer caches and from another core's
// bytes; elements that a part of an innermost axis begins at a multiple of; parts for each worker
enum { SCRATCH_ALIGN = 64, LINE = 16, MOST_EACH = 8 };
static const double near_part = 0.5;                    // of the least time of a worker: that of a part
static const double slack = 0.02;                       // of a kernel's time: what more parts may cost
// of the time that reading what all parts read takes: what is not hidden behind arithmetic
static const double seen = 0.25;

static double larger(double x, double y) { return x > y ? x : y; }

// ---------------------------------------------------------------- how even
// What the largest of n shares of so many units takes, in shares of equal size.
double parts_unevenness(int64_t units, int n) {
    return units > 0 ? (double)((units + n - 1) / n) * n / (double)units : n;
}

// Workers for a kernel that takes so long, cut so unevenly: 1 when it should stay whole.
int parts_workers(const Options *o, double ns, double uneven) {
    if (o->part_us <= 0) return o->threads;
    double most = ns / (1e3 * o->part_us);
    int n = most < o->threads ? (int)most : o->threads;
    return n < 2 || n / uneven < 1.3 ? 1 : n;
}

// Parts for each of so many workers of a kernel that takes so long, where each part costs `again` ns more.
static int parts_each(const Options *o, int workers, double ns, double again) {
    int each = MOST_EACH;
    double least = 1e3 * near_part * o->part_us;
    while (each > 1 && (ns < least * workers * each || (each - 1) * workers * again > slack * ns)) each--;
    return each;
}

// Finer than its units nothing can be cut.
static int parts_of_units(int workers, int each, int64_t units) {
    int64_t parts = (int64_t)workers * each;
    return (int)(units >= workers && units < parts ? units : parts);
}

// A kernel of run-time sizes takes so long at their bounds, and less in proportion to `size`: from where on are its
// parts worth handing out?
static void hand_out_from(const Options *o, const Graph *g, Kernel *k, Dim size, double ns) {
    double share = 2e3 * o->part_us / ns;
    if (dim_is_const(size) || k->workers < 2) return;
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
    int64_t units = 0;
    double least = o->part_us > 0 ? o->threads : 1e9;
    for (int i = 0; i < k->n_parallel; i++) if (k->axes.at[i].size != 1) inner = i;
    for (int i = 0; i < outer; i++) {
        const Axis *x = &k->axes.at[i];
        int64_t n = i == inner ? (x->extent + LINE - 1) / LINE : x->extent;
        double uneven = parts_unevenness(n, o->threads) * (dim_is_const(x->size) ? 1 : 1.2);
        if (x->size == 1 || uneven >= least) continue;
        least = uneven;
        best = i;
        units = n;
    }
    if (best < 0) return;
    Dim points = 1;
    for (int i = 0; i < k->axes.n; i++) points = dim_mul(g, points, k->axes.at[i].size);
    double ns = loop_ns(g, k);
    k->workers = parts_workers(o, ns, least);
    if (k->workers < 2) return;
    k->parts = parts_of_units(k->workers, parts_each(o, k->workers, ns, 0), units);
    k->loop.part_axis = best;
    hand_out_from(o, g, k, points, ns);
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
// one of the operands, or none, is read by all. What kernels compute, they share out by rows or pixels; a worker on
// some columns reads rows that other cores have written, and writes for them.
typedef struct Way { int axis, each; int64_t units; double ns; } Way;      // ns: what a worker's parts take

static double axis_ns(const Graph *g, const Kernel *k, int workers, Way *w) {
    const Contraction *s = &k->gemm;
    double b = (double)dim_upper(g, s->batch), m = (double)dim_upper(g, s->m), n = (double)dim_upper(g, s->n),
           depth = (double)dim_upper(g, s->k), parts = (double)workers * w->each;
    int64_t mr = hole_or(k, "MR", 1), nr = hole_or(k, "NV", 1) * (hole_or(k, "LAYOUT", 0) == 2 ? 4 : 16);
    double left = 4 * depth * m * (s->a_batch ? b : 1), right = 4 * depth * n * (s->b_batch ? b : 1),
           pack_left = hole_or(k, "PACK_A", 0) ? left / 10 : 0, pack_right = hole_or(k, "PACK_B", 0) ? right / 10 : 0;
    w->units = w->axis == 0 ? (int64_t)b : w->axis == 1 ? ((int64_t)m + mr - 1) / mr : ((int64_t)n + nr - 1) / nr;
    double own = w->axis == 1 ? left : w->axis == 2 ? right : left + right,
           shared = (w->axis ? left + right - own : 0) / near_rate, read = own / parts / near_rate + shared;
    if (m == 1 && w->axis == 1) return 1e30;            // gemv.c
    double ns = larger(k->flops / template_rate / parts, read) * w->each * parts_unevenness(w->units, workers)
        + (w->each - 1) * seen * shared + (w->axis == 1 ? pack_right * w->each : pack_right / workers)
        + (w->axis == 2 ? pack_left * w->each : pack_left / workers);
    return m > 1 && w->axis == 2 ? ns + (1 - 1.0 / workers) * (left + 4 * b * m * n / workers) / far_rate : ns;
}

static Way contraction_way(const Graph *g, const Kernel *k, int workers, int each) {
    Way best = { .ns = 1e31 };
    for (int axis = 0; axis < 3; axis++) {
        Way w = { .axis = axis, .each = each };
        w.ns = axis_ns(g, k, workers, &w);
        if (w.ns < best.ns) best = w;
    }
    return best;
}

// As many parts for each worker as cost next to nothing.
static Way contraction_cut(const Graph *g, const Kernel *k, const Options *o, int workers) {
    Way one = contraction_way(g, k, workers, 1), w = one;
    for (int each = parts_each(o, workers, k->flops / template_rate, 0); each > 1; each--) {
        w = contraction_way(g, k, workers, each);
        if (w.ns <= (1 + slack) * one.ns) return w;
    }
    return one;
}

static double whole_ns(const Kernel *k) { return larger(k->flops / template_rate, (double)k->traffic / near_rate); }

// A part of a product or a convolution cut as it likes best.
double parts_best_ns(const Graph *g, const Kernel *k, int threads) {
    if (k->kind != KERNEL_GEMM)
        return whole_ns(k) / threads
            * parts_unevenness(dim_upper(g, k->conv.batch) * k->conv.out[0] * k->conv.out[1], threads);
    return contraction_way(g, k, threads, 1).ns;
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

// Convolutions go by rows or tiles, and each part reads all weights; or by panels of output channels, and each reads,
// copies or transforms the whole input.
static int conv_parts(const Graph *g, const Kernel *k, const Options *o) {
    const Convolution *c = &k->conv;
    double weights = k->packed ? (double)k->packed->bytes : 0,
           input = 4.0 * (double)(dim_upper(g, c->batch) * c->ic * c->in[0] * c->in[1] * c->in[2]);
    bool winograd = k->template == &template_winograd, taps = k->template == &template_conv_taps;
    int64_t rows = dim_upper(g, c->batch) * c->out[0], mr = hole_or(k, "MR", 1), th = hole_or(k, "TH", 1),
            tw = hole_or(k, "TW", 1);
    double ns = whole_ns(k), points = (double)((th + c->kernel[1] - 1) * (tw + c->kernel[2] - 1));
    if (winograd) ns *= points / (double)(th * tw * c->kernel[1] * c->kernel[2]);
    if (taps || hole_or(k, "PART_PANELS", 0)) {
        int64_t panels = hole_or(k, "G", 1) * ceil_div(hole_or(k, "OC", 1), 16 * hole_or(k, "NV", 1));
        double again = winograd ? 4 : taps || hole_or(k, "IMAGE", 0) ? 1 : seen;
        return parts_of_units(k->workers, parts_each(o, k->workers, ns, again * input / near_rate), panels);
    }
    if (winograd) rows *= ceil_div(ceil_div(c->out[1], th) * ceil_div(c->out[2], tw), mr);
    else if (k->template == &template_conv)
        rows *= mr > c->out[2] ? ceil_div(c->out[1], mr / c->out[2]) :
                                 c->out[1] * ceil_div(c->out[2], hole_or(k, "CC", c->out[2]));
    else rows *= c->out[1];
    return parts_of_units(k->workers, parts_each(o, k->workers, ns, seen * weights / near_rate), rows);
}

// Parts are of whole heads, whose keys and values are packed once then, or one for each worker.
static int attention_parts(const Graph *g, const Kernel *k, const Options *o) {
    int64_t heads = 1, least = k->workers;
    for (int i = 0; i < 3; i++) heads *= dim_upper(g, k->attention.batch[i]);
    int each = parts_each(o, k->workers, whole_ns(k), 0);
    return (int)(heads <= least * each && (heads % least == 0 || heads >= 3 * least) ? heads : least);
}

static int template_parts(const Graph *g, const Kernel *k, const Options *o) {
    if (k->kind == KERNEL_ATTENTION) return attention_parts(g, k, o);
    return kernel_is_conv(k) ? conv_parts(g, k, o) : k->workers;
}

static void cut_template(Arena *a, Graph *g, Kernel *k, const Options *o) {
    double whole = whole_ns(k), of_part = whole / o->threads;
    bool contraction = k->template->parts == PARTS_BY_AXIS;
    if (contraction) of_part = contraction_way(g, k, o->threads, 1).ns;
    k->workers = parts_workers(o, whole, of_part * o->threads / whole);
    if (k->workers < 2) return;
    if (contraction) {
        Way w = contraction_cut(g, k, o, k->workers);
        k->parts = parts_of_units(k->workers, w.each, w.units);
        hole(a, k, "PART_AXIS", w.axis);
    } else k->parts = template_parts(g, k, o);
    hole(a, k, "PARTS", k->parts);
    k->scratch_bytes = (k->scratch_bytes + SCRATCH_ALIGN - 1) / SCRATCH_ALIGN * SCRATCH_ALIGN * k->workers;
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
