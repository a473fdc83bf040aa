// SPDX-License-Identifier: MIT OR Apache-2.0
// --threads N: which kernels are shared out, and how. In: kernels with their templates and blocks. Out: Kernel.parts
// and Kernel.workers, the holes of templates that begin with PART, and scratch memory for each worker.
//
// The parts are fixed here, so results have the same bits whoever computes them. No reduction is cut. There are some
// parts for each worker, so that a core that is late or slow holds the others up by little: as many as leave each
// some microseconds (taking one costs a fiftieth of one), and as what every part reads or copies anew allows. A kernel
// that takes little time is left to the caller alone: handing parts out costs about a microsecond, and what another
// core wrote has to be fetched from it.
#include "schedule/schedule.h"

#include <math.h>
#include <string.h>

// Nanoseconds, for one core of today's servers and laptops; only ratios of 2 matter.
// operations a nanosecond: multiply-adds, those of loops, and what a sort has to compare
static const double template_rate = 100, loop_rate = 8, line_rate = 0.5;
static const double near_rate = 20, far_rate = 8;       // bytes a nanosecond, from outer caches and from another core's
static const double pack_rate = 8;                      // ... that are put into panels
// bytes; elements that a part of an innermost axis begins at a multiple of; parts for each worker
enum { SCRATCH_ALIGN = 64, LINE = 16, MOST_EACH = 8, MOST_NESTED = 24 };
static const double slack = 0.02;                       // of a kernel's time: what more parts may cost
// of the time that reading what all parts read takes: what is not hidden behind arithmetic
static const double seen = 0.25;
static const double seen_by_many = 0.5;                 // ... of the weights of products where more than two read them

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

// Parts for each of so many workers of a kernel that takes so long.
static int parts_each(const Options *o, int workers, double ns) {
    int each = MOST_EACH;
    while (each > 1 && ns < 1e3 * o->part_us * workers * each) each--;
    return each;
}

// A product or a convolution goes in a grid of parts: so many of its rows, which each read their own input and so many
// of its columns' weights. Nanoseconds: of the arithmetic, of reading all input and all weights; which part of these is
// not hidden behind arithmetic; of fetching all that other cores have computed, each its own share, of rows or
// (by_columns) of columns. copies: each part copies or transforms its input, whose rows are else read for each panel of
// columns, in one part or several. block: columns that a copy of rows serves. pass: rows that weights are read for
// once, so that parts of so many do not read them more often than one part of all; all rows where each part puts its
// weights into panels first. nests: the template has parts in blocks, of `tallest` rows at most, whose weights do not
// stay near where there are fewer parts across than `far`. keeps: a part's copies serve a worker's next one, too.
// slack: of the time, for more parts than are best.
typedef struct Work {
    int64_t rows, columns, block, pass, tallest;
    double ns, left, right, left_seen, right_seen, fetched, far, slack;
    bool copies, keeps, by_columns, nests;
} Work;
// Parts are numbered in blocks of so many of the grid's rows, each column by column: row by row where a block has one.
// ns: of the worker that is done last.
typedef struct Grid { int down, across, tall; double ns; } Grid;

// The first n of so many shares of the units, as a part of all.
static double first_of(int64_t units, int n, int shares) {
    return (double)(units * n / shares) / (double)units;
}

// The first n parts of a grid.
static double area_of(const Work *w, const Grid *g, int n) {
    const int block = g->tall * g->across, row = n / block * g->tall, column = n % block / g->tall, rest = n % g->tall;
    const double above = first_of(w->rows, row, g->down);
    if (!(n % block)) return above;
    const double left = first_of(w->columns, column, g->across),
                 high = first_of(w->rows, row + g->tall, g->down) - above, area = above + high * left;
    return !rest ? area : area + (first_of(w->rows, row + rest, g->down) - above)
        * (first_of(w->columns, column + 1, g->across) - left);
}

// The largest of the workers' shares, which follow one another, as a part of all.
static double largest_area(const Work *w, int workers, const Grid *g) {
    const int64_t all = (int64_t)g->down * g->across;
    double most = 0;
    for (int i = 0; i < workers; i++)
        most = larger(most, area_of(w, g, (int)(all * (i + 1) / workers)) - area_of(w, g, (int)(all * i / workers)));
    return most;
}

// The same of units in so many parts, which are rows of one column.
static double largest_share(int64_t units, int parts, int workers) {
    const Work w = { .rows = units, .columns = 1 };
    return units > 0 ? largest_area(&w, workers, &(Grid){ .down = parts, .across = 1, .tall = 1 }) : 1;
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
static double read_bytes(const Graph *g, const Kernel *k, const Value *v) {
    double all = (double)type_bytes_upper(g, &v->type), loaded = (double)dtype_size(v->type.dtype);
    for (int i = 0; i < k->axes.n; i++) loaded *= (double)k->axes.at[i].extent;
    return k->kind != KERNEL_LOOP || all < loaded ? all : loaded;
}

static double loop_ns(const Graph *g, const Kernel *k) {
    double bytes = 0;
    for (int i = 0; i < k->writes.n; i++) bytes += (double)type_bytes_upper(g, &k->writes.at[i]->type);
    for (int i = 0; i < k->reads.n; i++) bytes += read_bytes(g, k, k->reads.at[i]);
    return larger(k->flops / loop_rate, bytes / near_rate);
}

// The axis whose ranges the parts are: outside of every reduction that points share, cut most evenly, the outermost
// of equals.
static void cut_loop(Graph *g, Kernel *k, const Options *o, double foreign) {
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
    const double ns = k->alone_ns;
    k->workers = parts_workers(o, ns + foreign, least);
    if (k->workers < 2) return;
    k->parts = parts_of_units(k->workers, parts_each(o, k->workers, ns), units);
    k->share_ns = ns * largest_share(units, k->parts, k->workers);
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

// Kernels that differ in this number alone may be one function.
static void shared_hole(Arena *a, Kernel *k, const char *name, int64_t value) {
    VEC_PUSH(a, k->holes, (HoleValue){ .name = name, .kind = HOLE_SHARED, .value = value });
}

// PARTS: what the template's conditions read.
static void parts_holes(Arena *a, Kernel *k) {
    hole(a, k, "PARTS", k->parts);
    shared_hole(a, k, "SHARES", k->parts);
}

// Of two cores it is rare that one is slower than the other, of eight it is usual: whose core has a second hyperthread
// at work is slower by a third and more. By so much of its last part the others wait for it, and `moved` of that is
// what they take of its share.
static const double moved = 1.0 / 6;
static double lateness(int workers) { return workers < 8 ? 0.05 * (workers - 2) : 0.3; }

// How often a worker reads the weights that it needs, as a part of all: of so many rows of blocks.
static double weight_reads(const Work *w, const Grid *g, double below) {
    const double each = (double)w->rows / (g->down / g->tall), pass = (double)w->pass;
    return below <= 1 ? below : below * ceil(each / pass) / ceil(below * each / pass);
}

// What a worker has copied for one part serves the next ones of the same rows.
static bool keeps_rows(const Work *w, const Grid *g) {
    return w->keeps && g->tall == 1 && ceil_div(w->rows, g->down) <= w->pass;
}

// Each worker has parts that follow one another, as long as all are on time.
static double grid_ns(const Work *w, int workers, const Grid *g) {
    const int64_t all = (int64_t)g->down * g->across;
    const int block = g->tall * g->across;
    double most = 0;
    for (int i = 0; i < workers; i++) {
        const int first = (int)(all * i / workers), end = (int)(all * (i + 1) / workers), n = end - first;
        if (!n) continue;
        const double rows = first_of(w->rows, ((end - 1) / block + 1) * g->tall, g->down)
                         - first_of(w->rows, first / block * g->tall, g->down),
                     area = area_of(w, g, end) - area_of(w, g, first), below = (double)n / block,
                     copies = (double)n / g->down * (double)ceil_div(ceil_div(w->columns, g->across), w->block),
                     left = w->left * (!w->copies || keeps_rows(w, g) ? rows : copies),
                     right = w->right * weight_reads(w, g, below),
                     ns = larger(w->ns * area, left + right), seen_ns = w->left_seen * left + w->right_seen * right,
                     reads = !w->by_columns ? rows : below < 1 ? below : 1;
        most = larger(most, ns + seen_ns + w->fetched * larger(reads - 1.0 / workers, 0));
    }
    return most;
}

// Of what others take they have neither weights nor copies of rows near: these are fetched for each part, however
// small.
static double late_ns(const Work *w, int workers, int down, int across) {
    const double part = (double)ceil_div(w->rows, down) * (double)ceil_div(w->columns, across),
                 taken = 2 * w->right / across + (w->copies ? w->left / down : 0);
    return lateness(workers) * (w->ns * part / (double)w->rows / (double)w->columns
        + moved * taken * down * across / workers);
}

// Weights that do not stay near while the rows of a block pass by are read for each of them.
static double nested_ns(const Work *w, int workers, const Grid *g) {
    const double far = g->tall > 1 && w->far > g->across ? 2 * w->right_seen * w->right : 0;
    const double below = (double)g->down / g->tall / workers;
    return grid_ns(w, workers, g) + far * (g->tall - 1) * weight_reads(w, g, below)
        + (w->nests ? late_ns(w, workers, g->down, g->across) : 0);
}

// May so many rows of blocks be cut into more? Whole numbers of workers share them; of grids that cut columns equally
// the smallest will do.
static bool may_nest(const Work *w, int workers, int blocks, int across) {
    return w->nests && lateness(workers) > 0 && workers % blocks == 0
        && across == ceil_div(w->columns, ceil_div(w->columns, across));
}

// The grid that is done first, and of those that take next to no longer the one of most parts.
static Grid grid_best(const Work *w, int workers, double part_ns) {
    const int each = w->nests && lateness(workers) > 0 ? MOST_NESTED : MOST_EACH;
    const int64_t most = (int64_t)workers * each;
    Grid best = { .down = 1, .across = 1, .tall = 1, .ns = 1e30 };
    for (int pass = 0; pass < 2; pass++) {
        const double limit = (1 + w->slack) * best.ns;
        for (int blocks = 1; blocks <= w->rows && blocks <= most; blocks++)
            for (int across = 1; across <= w->columns && (int64_t)blocks * across <= most; across++) {
                const bool nests = may_nest(w, workers, blocks, across);
                const int64_t tallest = nests ? min64(w->tallest, min64(w->rows, most / across) / blocks) : 1;
                for (int tall = 1; tall <= tallest; tall++) {
                    Grid g = { blocks * tall, across, tall, 0 };
                    const int n = g.down * across, before = best.down * best.across;
                    const bool fine = n <= workers || w->ns >= part_ns * n;
                    const bool few = n <= 2 * workers || (w->nests && fine);
                    g.ns = nested_ns(w, workers, &g);
                    if (!pass ? g.ns < best.ns && few : fine && g.ns <= limit && n > before) best = g;
                }
            }
    }
    return best;
}

// A product goes by batches (axis 0) or rows (1), and by panels of columns.
static Work contraction_work(const Graph *g, const Kernel *k, const Options *o, int workers, int axis) {
    const Contraction *s = &k->gemm;
    double b = (double)dim_upper(g, s->batch), m = (double)dim_upper(g, s->m), n = (double)dim_upper(g, s->n),
           depth = (double)dim_upper(g, s->k), left = 4 * depth * m * (s->a_batch ? b : 1),
           right = 4 * depth * n * (s->b_batch ? b : 1);
    int64_t mr = hole_or(k, "MR", 1), nr = hole_or(k, "NV", 1) * (hole_or(k, "LAYOUT", 0) == 2 ? 4 : 16);
    const bool by_columns = k->operand[0] && k->operand[0]->data,   // channels are rows: the weights are on the left
               packs = hole_or(k, "PACK_B", 0) == 1;
    return (Work){ .rows = axis ? ceil_div((int64_t)m, mr) : (int64_t)b,
        .columns = ceil_div((int64_t)n, nr),
        .block = max64(hole_or(k, "NC", (int64_t)n) / nr, 1),
        .pass = axis ? ceil_div(packs ? (int64_t)m : hole_or(k, "MC", (int64_t)m), mr) : 1,
        .ns = k->flops / template_rate,
        .left = left / near_rate,
        .right = right / (packs ? pack_rate : near_rate),
        .left_seen = hole_or(k, "PACK_A", 0) ? 1 : seen,
        .copies = hole_or(k, "PACK_A", 0) != 0,
        .right_seen = hole_or(k, "PACK_B", 0) ? 1 : lateness(workers) > 0 ? seen_by_many : seen,
        .fetched = m > 1 ? ((by_columns ? right : left) + 4 * b * m * n / workers) / far_rate : 0,
        .far = 2 * right / (double)o->machine.l2,
        .nests = k->template == &template_gemm && !hole_or(k, "PACK_B", 0) && lateness(workers) > 0,
        .tallest = axis ? INT32_MAX : 1,
        .slack = k->template == &template_gemm && lateness(workers) > 0 ? 0 : slack,
        .by_columns = by_columns };
}

static Grid contraction_grid(const Graph *g, const Kernel *k, const Options *o, int workers, int *axis) {
    Grid best = { .ns = 1e31 };
    for (int i = 0; i < 2; i++) {
        Work w = contraction_work(g, k, o, workers, i);
        if (i && dim_upper(g, k->gemm.m) == 1) break;   // gemv.c
        Grid grid = grid_best(&w, workers, 1e3 * o->part_us);
        if (grid.ns >= best.ns) continue;
        best = grid;
        *axis = i;
    }
    return best;
}

// What of a convolution's multiply-adds Winograd's needs.
static double needed(const Kernel *k) {
    if (k->template != &template_winograd) return 1;
    const int64_t *window = k->conv.kernel, th = hole_or(k, "TH", 1), tw = hole_or(k, "TW", 1);
    return (double)((th + window[1] - 1) * (tw + window[2] - 1)) / (double)(th * tw * window[1] * window[2]);
}

static double whole_ns(const Kernel *k) {
    return larger(k->flops / template_rate * needed(k), (double)k->traffic / near_rate);
}

// What the work of a template grows with.
static Dim template_size(Graph *g, const Kernel *k) {
    const Contraction *s = &k->gemm;
    if (k->kind == KERNEL_GEMM) return dim_mul(g, dim_mul(g, dim_mul(g, s->batch, s->m), s->n), s->k);
    return kernel_is_conv(k) ? k->conv.batch : 0;
}

// Convolutions go by rows, or tiles, and by panels of output channels. Each part copies or transforms its input.
static Work conv_work(const Graph *g, const Kernel *k, const Options *o, int workers) {
    const Convolution *c = &k->conv;
    bool winograd = k->template == &template_winograd, taps = k->template == &template_conv_taps,
         image = k->template == &template_conv_pairs || hole_or(k, "IMAGE", 0);
    int64_t mr = hole_or(k, "MR", 1), th = hole_or(k, "TH", 1), tw = hole_or(k, "TW", 1), rows = c->out[1];
    int64_t tall = mr > c->out[2] ? mr / c->out[2] : 1, pass = 0;       // tall: rows of a tile
    if (winograd) {
        rows = ceil_div(ceil_div(c->out[1], th) * ceil_div(c->out[2], tw), mr);
        pass = hole_or(k, "TB", mr) / mr;
    } else if (k->template == &template_conv) {
        rows = ceil_div(c->out[1], tall) * (tall > 1 ? 1 : ceil_div(c->out[2], hole_or(k, "CC", c->out[2])));
        pass = hole_or(k, "RC", 1) / tall;
    } else if (k->template == &template_conv_pairs) {
        rows = ceil_div(c->out[1], 2);
        pass = hole_or(k, "RC", 1);
    } else if (k->template == &template_conv_planes) {
        rows = c->groups * ceil_div(c->out[1], hole_or(k, "RC", 1));
    }
    bool panels = winograd || taps || k->template == &template_conv;
    const double in = 4.0 * (double)(dim_upper(g, c->batch) * c->ic * c->in[0] * c->in[1] * c->in[2]);
    const double out = 4.0 * (double)(dim_upper(g, c->batch) * c->oc * c->out[0] * c->out[1] * c->out[2]);
    return (Work){ .rows = taps ? 1 : dim_upper(g, c->batch) * c->out[0] * rows,
        .columns = panels ? hole_or(k, "G", 1) * ceil_div(hole_or(k, "OC", 1), 16 * hole_or(k, "NV", 1)) : 1,
        .block = INT32_MAX,
        .pass = pass > 0 ? pass : rows,
        .ns = k->flops / template_rate * needed(k),
        .left = in / near_rate,
        .right = k->packed ? (double)k->packed->bytes / near_rate : 0,
        .left_seen = winograd ? 4 : taps || image ? 1 : seen,
        .copies = winograd || taps || image,
        .right_seen = seen,
        .far = k->packed ? 2 * (double)k->packed->bytes / (double)o->machine.l2 : 0,
        .nests = winograd || k->template == &template_conv,
        .slack = slack,
        .keeps = winograd && lateness(workers) > 0,
        .tallest = INT32_MAX,
        .fetched = (in + out / workers) / far_rate };
}

static int64_t heads_of(const Graph *g, const Kernel *k) {
    int64_t heads = 1;
    for (int i = 0; i < (k->attention.shared ? 2 : 3); i++) heads *= dim_upper(g, k->attention.batch[i]);
    return heads;
}

// Tiles of queries, in heads that follow one another.
static int64_t attention_units(const Graph *g, const Kernel *k) {
    const int64_t tile = hole_or(k, "DIRECT", 0) ? 1 : hole_or(k, "MR", 1);
    return k->kind == KERNEL_ATTENTION ? heads_of(g, k) * ceil_div(dim_upper(g, k->attention.m), tile) : heads_of(g, k);
}

// Parts are of whole heads, whose keys and values are packed once then, or one for each worker; from three workers on,
// who keep what they have packed for the next part, of some tiles of a head.
static int attention_parts(const Graph *g, const Kernel *k, const Options *o) {
    const int64_t heads = heads_of(g, k), least = k->workers, each = parts_each(o, k->workers, whole_ns(k));
    if (k->kind == KERNEL_ATTENTION && lateness(k->workers) > 0)
        return (int)min64(heads < least * each ? heads * ceil_div(least * each, heads) : least * each,
            max64(attention_units(g, k), least));
    return (int)(heads <= least * each && (heads % least == 0 || heads >= 3 * least) ? heads : least);
}

static Grid template_grid(const Graph *g, const Kernel *k, const Options *o, int workers, int *axis) {
    if (k->kind == KERNEL_GEMM) return contraction_grid(g, k, o, workers, axis);
    Work w = conv_work(g, k, o, workers);
    return grid_best(&w, workers, 1e3 * o->part_us);
}

static Work template_work(const Graph *g, const Kernel *k, const Options *o, int workers, int axis) {
    return k->kind == KERNEL_GEMM ? contraction_work(g, k, o, workers, axis) : conv_work(g, k, o, workers);
}

// The same by one worker, who reads and copies as much as one part of all does.
static double template_alone_ns(const Graph *g, const Kernel *k, const Options *o) {
    Work w = template_work(g, k, o, 1, dim_upper(g, k->gemm.m) > 1);
    return grid_ns(&w, 1, &(Grid){ .down = 1, .across = 1, .tall = 1 });
}

// A worker's parts of a product or a convolution cut as it likes best.
double parts_best_ns(const Graph *g, const Kernel *k, const Options *o, int workers) {
    int axis;
    return template_grid(g, k, o, workers, &axis).ns;
}

// The same by rows, so unevenly.
double parts_rows_ns(const Graph *g, const Kernel *k, const Options *o, int workers, double uneven) {
    Work w = template_work(g, k, o, workers, 1);
    w.rows = workers;
    const Grid grid = { .down = workers, .across = 1, .tall = 1 };
    return grid_ns(&w, workers, &grid) * uneven + (w.nests ? late_ns(&w, workers, workers, 1) : 0);
}

// What a part leaves in its worker's scratch memory, behind a line that says what it is.
static void keep(Kernel *k) {
    k->keeps = true;
    k->scratch_bytes += SCRATCH_ALIGN;
}

// Each worker's begins at a line of the cache.
static void own_scratch(Kernel *k) {
    k->scratch_bytes = (k->scratch_bytes + SCRATCH_ALIGN - 1) / SCRATCH_ALIGN * SCRATCH_ALIGN * k->workers;
}

// Two workers' parts are never in blocks.
static void block_holes(Arena *a, Kernel *k, const Options *o, const Grid *g) {
    void (*const put)(Arena *, Kernel *, const char *, int64_t) = lateness(o->threads) > 0 ? shared_hole : hole;
    put(a, k, "PART_TALL", g->tall);
}

static void cut_template(Arena *a, Graph *g, Kernel *k, const Options *o, double foreign) {
    const double whole = k->alone_ns;
    bool contraction = k->template->parts == PARTS_BY_AXIS, in_grid = contraction || kernel_is_conv(k);
    int axis = 0;
    double uneven = 1;
    if (in_grid) uneven = template_grid(g, k, o, o->threads, &axis).ns * o->threads / template_alone_ns(g, k, o);
    k->workers = parts_workers(o, whole + foreign, uneven);
    if (k->workers < 2) return;
    if (in_grid) {
        Grid grid = template_grid(g, k, o, k->workers, &axis);
        const Work w = template_work(g, k, o, k->workers, axis);
        k->share_ns = whole * largest_area(&w, k->workers, &grid);
        k->parts = grid.down * grid.across;
        if (k->parts < 2) {
            k->workers = 0;
            k->share_ns = whole;
            return;
        }
        if (contraction) shared_hole(a, k, "PART_COLUMNS", grid.across);
        else if (k->template == &template_conv || k->template == &template_winograd)
            shared_hole(a, k, "PART_PANELS", grid.across);
        if (k->template == &template_gemm) shared_hole(a, k, "PART_AXIS", axis);
        if (w.nests || k->template == &template_gemm) block_holes(a, k, o, &grid);
        if (k->template == &template_winograd) hole(a, k, "KEEPS", w.keeps);
        if (w.keeps) keep(k);
    } else {
        const bool heads = k->kind == KERNEL_ATTENTION || k->kind == KERNEL_ATTENTION_GRAD;
        k->parts = heads ? attention_parts(g, k, o) : k->workers;
        if (k->kind == KERNEL_ATTENTION && !hole_or(k, "DIRECT", 0)) keep(k);
        k->share_ns = whole * (heads ? largest_share(attention_units(g, k), k->parts, k->workers) : 1.0 / k->workers);
    }
    parts_holes(a, k);
    own_scratch(k);
    hand_out_from(o, g, k, template_size(g, k), whole);
}

// ---------------------------------------------------------------- called operations
// Those that take lines one after the other (OUTER * INNER of them) go by lines, the model's own kernels by points. Of
// these nothing is known: as if they did an operation with each element that they read or write, one by one.
static void cut_call(Arena *a, Graph *g, Kernel *k, const Options *o, double foreign) {
    static const double own_rate = 4;                   // bytes a nanosecond
    const Dim lines = k->call.points ? k->call.points : dim_mul(g, hole_or(k, "OUTER", 1), hole_or(k, "INNER", 1));
    int64_t units = dim_upper(g, lines);
    double ns = k->alone_ns = k->share_ns = k->call.points ? (double)k->traffic / own_rate : k->flops / line_rate;
    int workers = parts_workers(o, ns + foreign, parts_unevenness(units, o->threads));
    if (workers < 2 || units < 2) return;
    k->workers = units < workers ? (int)units : workers;
    k->parts = parts_of_units(k->workers, parts_each(o, k->workers, ns), units);
    k->share_ns = ns * largest_share(units, k->parts, k->workers);
    parts_holes(a, k);
    own_scratch(k);
    hand_out_from(o, g, k, lines, ns);
}

// ---------------------------------------------------------------- all kernels
// What the caller alone would wait for: what others have made of what the kernel reads. made: by value's number.
static double foreign_ns(const Graph *g, const Kernel *k, const bool *made, int workers) {
    double bytes = 0;
    for (int i = 0; i < k->reads.n; i++)
        if (made[k->reads.at[i]->id]) bytes += read_bytes(g, k, k->reads.at[i]);
    return bytes * (1 - 1.0 / workers) / far_rate;
}

static bool in_parts(const Kernel *k) { return k->strips ? k->strips->parts > 1 : k->workers > 1; }

// The most that a worker does of kernels that go by strips, as a part of all: pixels of the last one.
static double strips_share(const Strips *s) {
    const int n = 2 * s->n - 1;
    const int64_t all = s->line.at[(s->part[s->parts] - 1) * n + s->n - 1];
    int64_t most = 0;
    for (int i = 0; i < s->parts; i++)
        most = max64(most, s->line.at[(s->part[i + 1] - 1) * n + s->n - 1] - s->line.at[s->part[i] * n + s->n - 1]);
    return all > 0 ? (double)most / (double)all : 1;
}

// As long as it is not cut. A region's kernels stand in plans of their own.
static void reckon(const Graph *g, Kernel *k) {
    k->alone_ns = k->kind == KERNEL_LOOP ? loop_ns(g, k) : k->kind == KERNEL_REGION ? 0 : whole_ns(k);
    k->share_ns = k->alone_ns * (k->strips ? strips_share(k->strips) : 1);
}

static void cut(Plan *p, Kernel *k, double foreign) {
    const Options *o = p->options;
    if (k->kind == KERNEL_LOOP) cut_loop(p->graph, k, o, foreign);
    else if (k->kind == KERNEL_CALL && (k->call.points || (k->template && k->template->parts)))
        cut_call(p->arena, p->graph, k, o, foreign);
    else if (k->template && k->template->parts)
        cut_template(p->arena, p->graph, k, o, foreign);
}

void parts_plan(Plan *p) {
    const int threads = p->options->threads;
    bool *made = NEW_ARRAY(p->arena, bool, graph_root(p->graph)->value_count + 1);
    for (int i = 0; i < p->kernels.n && threads > 1; i++) {
        Kernel *k = p->kernels.at[i];
        reckon(p->graph, k);
        if (!k->strips) cut(p, k, foreign_ns(p->graph, k, made, threads));          // strips.c cuts those
        for (int j = 0; j < k->writes.n && in_parts(k); j++) made[k->writes.at[j]->id] = true;
    }
}
