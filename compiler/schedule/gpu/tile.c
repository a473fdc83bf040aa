// SPDX-License-Identifier: MIT OR Apache-2.0
// How a loop kernel is spread over a GPU's threads.
//
// In: a loop kernel. Out: its `loop`: how many of its outer axes threads share out, and the team that works on a point;
// and perhaps tiles instead of single elements. Two ideas. A tile: each thread stores several elements along up to two
// axes, so that what it loads meets several accumulators (the kernel gets one store per element of the tile, over the
// same reduction axes, which loops.c runs as one loop). A team: where there are fewer points than the machine has
// threads, several threads split each point's reductions.
#include "tile.h"
#include "schedule/schedule.h"

enum { WANTED_THREADS = 1 << 17,                        // enough to keep any GPU busy
       ENOUGH_THREADS = 1 << 14,                        // when each has a tile of independent sums
       // 32-bit accumulators of one thread: its registers, and the team's memory
       MAX_TILE = 28,
       MAX_REDUCES = 4,
       MAX_TEAM_BY_POINT = 16, MAX_TEAM_BY_RANK = 128,
       EACH_BY_POINT = 16, EACH_BY_RANK = 4 };          // steps of the shared loop that each member keeps

typedef struct Loads { const Expr *at[64]; int n; } Loads;
typedef struct Survey {                                 // of a kernel's expressions
    const Kernel *kernel;
    bool *seen;
    int outer, depth;                                   // depth: reductions around the expression being looked at
    Expr *reduces[MAX_REDUCES];
    int n_reduces, n_tops; // those outside all others, of n_tops; n_reduces: all
    // the axis that a team would share out, of all outermost reductions the shortest
    int split;
    int64_t extent;
    Loads loads;                                        // inside reductions
} Survey;

static int longest_axis(const Kernel *k, const Expr *e) {
    int best = e->axes[0];
    for (int i = 1; i < e->n_axes; i++)
        if (k->axes.at[e->axes[i]].extent >= k->axes.at[best].extent) best = e->axes[i];
    return best;
}

static void survey(Survey *s, Expr *e) {
    if (!e || s->seen[e->id]) return;
    s->seen[e->id] = true;
    if (e->op == E_Load && s->depth && s->loads.n < 64) s->loads.at[s->loads.n++] = e;
    bool reduce = e->op == E_Reduce;
    if (reduce) s->n_reduces++;
    if (reduce && !s->depth && !(e->axes_used >> s->outer)) {
        int axis = longest_axis(s->kernel, e);
        int64_t extent = s->kernel->axes.at[axis].extent;
        if (s->n_tops < MAX_REDUCES) s->reduces[s->n_tops] = e;
        s->n_tops++;
        if (!reduce_is_arg(e->rop) && (s->split < 0 || extent < s->extent)) {
            s->split = axis;
            s->extent = extent;
        }
    }
    s->depth += reduce;
    for (int i = 0; i < 3; i++) survey(s, e->a[i]);
    s->depth -= reduce;
}

static Survey survey_kernel(Arena *a, const Kernel *k, int outer) {
    Survey s = { .kernel = k, .seen = NEW_ARRAY(a, bool, expr_count(k->exprs) + 1), .outer = outer, .split = -1 };
    for (int i = 0; i < k->stores.n; i++) survey(&s, k->stores.at[i].expr);
    return s;
}

static int64_t points_of(const Kernel *k, int outer) {
    int64_t points = 1;
    for (int i = 0; i < outer; i++)
        if (__builtin_mul_overflow(points, k->axes.at[i].extent, &points)) return INT64_MAX;
    return points;
}

// ---------------------------------------------------------------- teams
// Loads whose neighbours in memory the axis walks.
static int contiguous_loads(const Kernel *k, const Loads *l, int axis) {
    int n = 0;
    int64_t coef[64], c0;
    for (int i = 0; i < l->n; i++)
        n += expr_affine(l->at[i]->a[0], k->axes.n, coef, &c0) && (coef[axis] == 1 || coef[axis] == -1);
    return n;
}

static int fastest_axis(const Kernel *k, int outer) {
    for (int i = outer - 1; i >= 0; i--)
        if (k->axes.at[i].extent > 1) return i;
    return -1;
}

static Team team_of(Arena *a, const Kernel *k, int outer) {
    Survey s = survey_kernel(a, k, outer);
    Team t = { 1, false };
    if (s.split < 0) return t;
    for (int i = 0; i < k->n_parallel; i++)
        if (k->axes.at[i].reduce) return t;             // stores in order, by one thread
    int fastest = fastest_axis(k, outer);
    t.by_point = outer == k->n_parallel && fastest >= 0
        && contiguous_loads(k, &s.loads, fastest) >= contiguous_loads(k, &s.loads, s.split);
    int most = t.by_point ? MAX_TEAM_BY_POINT : MAX_TEAM_BY_RANK, each = t.by_point ? EACH_BY_POINT : EACH_BY_RANK;
    int64_t points = points_of(k, outer);
    while (t.size < most && points < WANTED_THREADS / t.size && s.extent / (2 * t.size) >= each) t.size *= 2;
    return t;
}

// ---------------------------------------------------------------- tiles
// Loads that stay the same along an axis, as bits.
static uint64_t steady_loads(const Loads *l, int axis) {
    uint64_t bits = 0;
    for (int i = 0; i < l->n; i++)
        if (!(l->at[i]->axes_used >> axis & 1)) bits |= UINT64_C(1) << i;
    return bits;
}

static int tile_of(int64_t extent, int most) {
    static const int sizes[] = { 4, 7, 3, 2 };
    for (size_t i = 0; i < COUNT(sizes); i++)
        if (sizes[i] <= most && extent % sizes[i] == 0) return sizes[i];
    return 1;
}

typedef struct Move { ExprPool *pool; int axis[2]; int64_t extent[2]; int64_t shift[2]; } Move;

// The element of a tile: neighbouring threads keep neighbouring elements, so the tile's elements lie a whole row of
// threads apart.
static Expr *move_axis(void *ctx, Expr *e) {
    const Move *m = ctx;
    for (int i = 0; i < 2; i++) {
        if (e->op != E_Axis || e->c.i != m->axis[i]) continue;
        Expr *axis = expr_axis(m->pool, m->axis[i], m->extent[i]);
        return expr_binary(m->pool, E_Add, axis, expr_index(m->pool, m->shift[i] * m->extent[i]));
    }
    return NULL;
}

static void make_tiles(Arena *a, Kernel *k, const Survey *of, const int axis[2], const int tile[2]) {
    Move m = { .pool = k->exprs };
    const Store s = k->stores.at[0];
    k->stores.n = 0;
    for (int i = 0; i < 2; i++) {
        m.axis[i] = axis[i];
        m.extent[i] = axis[i] < 0 ? 0 : k->axes.at[axis[i]].extent / tile[i];
        if (axis[i] >= 0) k->axes.at[axis[i]].extent = k->axes.at[axis[i]].size = m.extent[i];
    }
    // all copies of a reduction first: loops.c runs them as one loop, before anything that uses one
    for (int pass = 0; pass <= of->n_tops; pass++)
        for (m.shift[0] = 0; m.shift[0] < tile[0]; m.shift[0]++)
            for (m.shift[1] = 0; m.shift[1] < tile[1]; m.shift[1]++) {
                if (pass < of->n_tops) {
                    expr_map_leaves(k->exprs, of->reduces[pass], move_axis, &m);
                    continue;
                }
                Store moved = s;
                moved.index = expr_map_leaves(k->exprs, s.index, move_axis, &m);
                moved.expr = expr_map_leaves(k->exprs, s.expr, move_axis, &m);
                VEC_PUSH(a, k->stores, moved);
            }
}

// Will teams make up for the threads that tiles save?
static bool threads_remain(int64_t points, int64_t extent) {
    int64_t team = extent / EACH_BY_POINT;
    if (team > MAX_TEAM_BY_POINT) team = MAX_TEAM_BY_POINT;
    return points * (team > 1 ? team : 1) >= ENOUGH_THREADS;
}

static void choose_tiles(Arena *a, Kernel *k, int outer) {
    Survey s = survey_kernel(a, k, outer);
    int axis[2] = { -1, -1 }, tile[2] = { 1, 1 };
    if (outer != k->n_parallel || k->stores.n != 1 || k->stores.at[0].guard || k->stores.at[0].op != RED_NONE)
        return;
    if (!s.n_tops || s.n_reduces != s.n_tops || s.n_tops > MAX_REDUCES || s.loads.n < 2) return;
    int most = MAX_TILE / s.n_tops;
    for (int i = 0; i < s.n_tops; i++) {
        if (reduce_is_arg(s.reduces[i]->rop)) return;
        if (dtype_size(s.reduces[i]->dtype) > 4) most = MAX_TILE / 2 / s.n_tops;
    }
    for (int i = outer - 1; i >= 0 && axis[1] < 0; i--)
        if (steady_loads(&s.loads, i) && tile_of(k->axes.at[i].extent, 7) > 1) axis[1] = i;
    if (axis[1] < 0) return;
    uint64_t steady = steady_loads(&s.loads, axis[1]);
    // the other axis: along it loads stay that do not stay along the first
    for (int i = 0; i < outer; i++) {
        bool other = i != axis[1] && steady_loads(&s.loads, i) & ~steady && tile_of(k->axes.at[i].extent, 4) > 1;
        if (other && (axis[0] < 0 || k->axes.at[i].extent > k->axes.at[axis[0]].extent)) axis[0] = i;
    }
    int64_t points = points_of(k, outer);
    int best = 1;
    for (int x = 4; x >= 1; x--)
        for (int y = 7; y >= 1; y--) {
            int t0 = axis[0] < 0 ? 1 : tile_of(k->axes.at[axis[0]].extent, x),
                t1 = tile_of(k->axes.at[axis[1]].extent, y);
            if (t0 * t1 <= best || t0 * t1 > most || !threads_remain(points / (t0 * t1), s.extent)) continue;
            best = t0 * t1;
            tile[0] = t0;
            tile[1] = t1;
        }
    if (best > 1) make_tiles(a, k, &s, axis, tile);
}

// Updates that may meet go in order, by one invocation.
static int spread_axes(const Kernel *k) {
    int outer = nest_outer_axes(k);
    for (int i = 0; i < outer; i++)
        if (k->axes.at[i].reduce) return i;
    return outer;
}

// Tiles are of sizes that are known.
static bool has_tiles(const Kernel *k) {
    for (int i = 0; i < k->axes.n; i++)
        if (!dim_is_const(k->axes.at[i].size)) return false;
    return !k->sizes.n;
}

// Of many columns of a matrix each thread has one: a team would be of no use.
static bool are_columns(const Kernel *k) { return k->loop.team.by_point && k->loop.team.size == 1; }

void gpu_share(Arena *a, Kernel *k) {
    const int outer = spread_axes(k);
    const Team team = team_of(a, k, outer);
    const Rowwise *r = has_tiles(k) && team.by_point ? gpu_rowwise(a, k, outer, true, true) : NULL;
    if (!r || r->shares < 2) return;
    k->loop.spread = outer;
    k->loop.team = team;
    k->loop.rows = r;
    k->scratch_bytes = r->shares * r->n_sums * ceil_div(r->rows, 4) * 4 * (int64_t)sizeof(float);
}

void gpu_spread(Arena *a, Kernel *k) {
    const int stores = k->stores.n;
    if (k->loop.rows) return;
    k->loop.spread = spread_axes(k);
    k->loop.windows = has_tiles(k) && gpu_windows(a, k);
    k->loop.team = (Team){ 1, false };
    if (k->loop.windows) return;
    if (has_tiles(k)) choose_tiles(a, k, k->loop.spread);
    k->loop.team = team_of(a, k, k->loop.spread);
    if (has_tiles(k) && k->stores.n == stores && !are_columns(k))
        k->loop.rows = gpu_rowwise(a, k, k->loop.spread, k->loop.team.by_point, false);
}

bool gpu_keeps_rows(Arena *a, const Kernel *k) {
    Kernel as = *k;
    as.stores.at = arena_copy(a, k->stores.at, sizeof *k->stores.at * (size_t)k->stores.n);
    as.stores.cap = as.stores.n;
    gpu_spread(a, &as);
    return as.loop.rows && as.loop.rows->shares == 1;
}
