// SPDX-License-Identifier: MIT OR Apache-2.0
// Which kernels go strip by strip together, so that what lies between them stays in the near caches and needs a few
// rows of memory:
//
//   product 24 -> 144, depthwise 3x3, product 144 -> 24, of 56x56 pixels: for each strip of some rows, the first goes
//       until the second has the
//   rows below its strip too, the second does the strip, the third as many pixels as make whole tiles
//
// Depthwise convolutions on planes go plane by plane in the same way. Where memory is the price (strips_ram.c), loops
// are members, too: pooling, and maps of what comes in; and a group may branch and meet again, as residual blocks do.
//
// In: a plan's kernels in order, with their templates. Out: Kernel.strips of those that gain by it, the hole STRIP of
// their templates, scratch memory for each part, and small buffers between them. Results have the same bits: no sum
// is cut, and what a part needs of its neighbour's rows it computes again. What a strip has left for the next one is
// moved to the front of its buffer.
#include "strips.h"
#include "templates.h"

#include <string.h>

// Nanoseconds, for one core of today's servers and laptops; bytes a nanosecond from the second cache and from behind
// it.
static const double compute_rate = 100, near_rate = 60, far_rate = 20, call_ns = 30, barrier_ns = 1000;
enum { SCRATCH_ALIGN = 64 };                            // bytes

static int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

// ---------------------------------------------------------------- what goes by rows
static bool product_by_rows(Member *m) {
    const Kernel *k = m->k;
    const Contraction *s = &k->gemm;
    if (!dim_is_const(s->batch) || !dim_is_const(s->m) || !dim_is_const(s->n) || !dim_is_const(s->k) || s->batch != 1
        || s->c_row != s->n)
        return false;
    *m = (Member){ .k = m->k, .total = s->m, .grain = 1, .width = s->n };
    if (template_is_window(k)) return true;
    if (k->template == &template_dot_q8) {              // an odd row at the end is computed with the one before
        m->grain = template_hole_value(k, "MR");
        m->before = m->grain - 1;
        return true;
    }
    m->grain = template_whole_rows(template_hole_value(k, "MR"));
    return template_hole_value(k, "B_PACKED");
}

static bool conv_by_rows(Member *m, const Convolution *c) {
    const Kernel *k = m->k;
    if (!dim_is_const(c->batch) || c->in[0] != 1 || c->out[0] != 1 || c->kernel[0] != 1 || c->y_pixel != c->oc)
        return false;
    if (k->template == &template_conv
        && (template_hole_value(k, "MR") > c->out[2] || template_hole_value(k, "MF") > c->out[2]))
        return false;
    *m = (Member){ .k = m->k, .total = c->batch * c->out[1] * c->out[2], .grain = c->out[2], .width = c->oc,
        .window = c };
    return true;
}

static bool conv_by_planes(Member *m) {
    const Convolution *c = &m->k->conv;
    if (!dim_is_const(c->batch) || c->oc != c->ic || (c->batch > 1 && c->x_batch < c->ic * c->x_channel)) return false;
    *m = (Member){
        .k = m->k, .total = c->batch * c->oc, .grain = 1, .width = c->out[0] * c->out[1] * c->out[2], .planes = true
    };
    return true;
}

// Its pixels are as wide as the last axis of its result: what comes behind it may be a convolution.
static bool loop_by_rows(Member *m) {
    Kernel *k = m->k;
    int64_t step;
    int axis;
    if (!loop_rows(k, &axis, &step)) return false;
    const Type *t = &k->writes.at[0]->type;
    const int64_t width = t->rank ? t->dim[t->rank - 1] : 1, pixels = step / width;
    *m = (Member){ .k = k, .total = type_count(t) / width, .grain = pixels ? pixels : 1, .width = width,
        .steps = pixels ? 1 : width / step };
    return pixels ? step % width == 0 : width % step == 0;
}

static bool template_by_rows(Member *m) {
    const Kernel *k = m->k;
    if (!k->template || !k->template->strips || k->result_at || kernel_packs(k)) return false;
    if (k->kind == KERNEL_PLANES) return conv_by_planes(m);
    if (k->kind != KERNEL_GEMM) return conv_by_rows(m, &k->conv);
    if (k->template == &template_gemm || template_is_window(k) || k->anchor->op != OP_Conv) return product_by_rows(m);
    return k->window.batch == 1 && conv_by_rows(m, &k->window);
}

static bool goes_by_rows(const Plan *p, Member *m) {
    const Kernel *k = m->k;
    const bool small = template_small(p->options);      // the others strips for caches know no loops
    if (k->writes.n != 1 || !(k->kind == KERNEL_LOOP ? small && loop_by_rows(m) : template_by_rows(m))) return false;
    const Type *t = &k->writes.at[0]->type;
    m->bytes = (int64_t)dtype_size(t->dtype);
    return (small || t->dtype == DT_F32) && type_is_static(t) && type_count(t) == m->total * m->width
        && m->total < INT32_MAX;
}

static bool loads(const Kernel *k, const Value *v) {
    for (int i = 0; i < k->loads.n; i++)
        if (k->loads.at[i] == v) return true;
    return false;
}

static int uses(const Plan *p, const Value *v) {
    int n = 0;
    for (int i = 0; i < p->graph->outputs.n; i++) n += p->graph->outputs.at[i] == v;
    for (int i = 0; i < p->kernels.n; i++)
        for (int j = 0; j < p->kernels.at[i]->reads.n; j++) n += p->kernels.at[i]->reads.at[j] == v;
    return n;
}

// Does `next` add what `m` stores to its own result, element by element?
static bool adds(const Plan *p, const Member *m, const Member *next) {
    const Kernel *k = next->k;
    const Value *v = m->k->writes.at[0];
    return template_may_over(k) && loads(k, v) && k->operand[0] != v && kernel_in_place(p->arena, k, v)
        && next->total == m->total && next->width == m->width;
}

// Does `next` read what `m` stores, pixel after pixel?
static bool reads_rows(const Member *m, Member *next) {
    const Kernel *k = next->k;
    const Value *v = m->k->writes.at[0];
    const Contraction *s = &k->gemm;
    const Convolution *c = next->planes ? &k->conv : next->window;
    if (next->planes != m->planes) return false;
    if (k->kind == KERNEL_LOOP) return loop_reach(k, v, &next->reach) && next->reach.count == m->total * m->width;
    if (k->operand[0] != v || k->operand[1] == v || k->operand_at[0] || loads(k, v)) return false;
    if (next->planes)
        return c->x_channel == m->width && c->x_axis[2] == 1 && c->x_axis[1] == c->in[2]
            && (c->in[0] == 1 || c->x_axis[0] == c->in[1] * c->in[2]) && c->in[0] * c->in[1] * c->in[2] == m->width
            && next->total == m->total
            && (c->batch == 1 || c->x_batch == c->ic * m->width);
    if (!c) return s->a_row == (Dim)m->width && s->a_col == 1 && s->k == s->a_row && next->total == m->total;
    return c->x_channel == 1 && c->x_axis[2] == m->width && c->x_axis[1] == c->in[2] * m->width && c->ic == m->width
        && (c->batch == 1 || c->x_batch == c->in[1] * c->x_axis[1]) && c->batch * c->in[1] * c->in[2] == m->total;
}

// Both are templates of one input, as the shortcut of a residual block and its first layer are.
static bool shares_input(const Trial *t, const Kernel *k) {
    bool shares = false;
    for (int i = 0; i < t->n && k->kind != KERNEL_LOOP; i++)
        shares = shares || (t->m[i].k->kind != KERNEL_LOOP && t->m[i].k->operand[0] == k->operand[0]);
    return shares;
}

// May `next` be one more member: does it read what others store row by row, and from two of them at most? Strips for
// caches are chains, those for a budget may branch and meet again.
static bool joins(const Trial *t, Member *next) {
    const Plan *p = t->p;
    next->from = next->beside = -1;
    for (int i = 0; i < t->n; i++) {
        const Member *m = &t->m[i];
        const Value *v = m->k->writes.at[0];
        const Buffer *there = plan_value(p, v).buffer;
        if (!kernel_reads(next->k, v)) continue;
        if (there && there->place == PLACE_ALIAS) return false;
        if (next->beside < 0 && adds(p, m, next)) next->beside = i;
        else if (next->from < 0 && reads_rows(m, next)) next->from = i;
        else return false;
    }
    if (template_small(p->options)) return next->from >= 0 || next->beside >= 0 || shares_input(t, next->k);
    return (next->from == t->n - 1 || next->beside == t->n - 1)
        && uses(p, t->m[t->n - 1].k->writes.at[0]) == 1;
}

bool strips_closed(const Trial *t) {
    for (int i = 0; i + 1 < t->n; i++) {
        const Value *v = t->m[i].k->writes.at[0];
        int within = 0;
        for (int j = i + 1; j < t->n; j++)
            for (int l = 0; l < t->m[j].k->reads.n; l++) within += t->m[j].k->reads.at[l] == v;
        if (!within || within != uses(t->p, v)) return false;
    }
    return true;
}

// ---------------------------------------------------------------- what reads what
static bool reads_member(const Member *m, int j) { return m->from == j || m->beside == j; }

// Pixels of member j that those of member i before `to` need: all up to there.
static int64_t needs_to(const Trial *t, int i, int j, int64_t to) {
    const Member *m = &t->m[i];
    const Convolution *c = m->from == j ? m->window : NULL;
    if (m->steps && to > 0)
        return ceil_div(reach_high(&m->reach, ceil_div(to, m->grain) * m->steps - 1), t->m[j].width);
    if (!c || to <= 0) return max64(to, 0);
    int64_t row = to / c->out[2] - 1,
            last = row % c->out[1] * c->stride[1] - c->pad[1] + (c->kernel[1] - 1) * c->dilation[1];
    return (row / c->out[1] * c->in[1] + max64(0, min64(last + 1, c->in[1]))) * c->in[2];
}

// The first of member j that those of member i from `from` on need.
static int64_t needs_from(const Trial *t, int i, int j, int64_t from) {
    const Member *m = &t->m[i];
    const Convolution *c = m->from == j ? m->window : NULL;
    if (m->steps) return reach_low(&m->reach, from / m->grain * m->steps) / t->m[j].width;
    if (!c) return max64(0, from - (m->from == j ? m->before : 0));
    int64_t row = from / c->out[2], first = row % c->out[1] * c->stride[1] - c->pad[1];
    return (row / c->out[1] * c->in[1] + max64(0, min64(first, c->in[1]))) * c->in[2];
}

static int64_t whole(const Member *m, int64_t to) { return min64(round_up(to, m->grain), m->total); }

// ---------------------------------------------------------------- steps
// pixels that each has come to; those that the buffers behind them begin with
typedef struct Moment { int64_t at[MOST_MEMBERS], base[MOST_MEMBERS]; } Moment;

static void keep(Arena *a, Strips *s, const Moment *now) {
    for (int i = 0; i < s->n; i++) VEC_PUSH(a, s->line, now->at[i]);
    for (int i = 0; i + 1 < s->n; i++) VEC_PUSH(a, s->line, now->base[i]);
}

// The first pixel of member j that is needed once the members behind it have come so far.
static int64_t first_needed(const Trial *t, int j, const int64_t *at, int64_t most) {
    for (int i = j + 1; i < t->n; i++)
        if (reads_member(&t->m[i], j)) most = min64(most, needs_from(t, i, j, at[i]));
    return most;
}

// Up to which pixel member j has to come for the members behind it to come so far.
static int64_t last_needed(const Trial *t, int j, const int64_t *to, int64_t last) {
    for (int i = j + 1; i < t->n; i++)
        if (reads_member(&t->m[i], j)) last = max64(last, whole(&t->m[j], needs_to(t, i, j, to[i])));
    return last;
}

// Has member i got what it needs of others to come there?
static bool is_fed(const Trial *t, int i, const int64_t *to, int64_t there) {
    const Member *m = &t->m[i];
    return (m->from >= 0 || m->beside >= 0) && (m->from < 0 || needs_to(t, i, m->from, there) <= to[m->from])
        && (m->beside < 0 || there <= to[m->beside]);
}

// One step towards `goal` pixels of the last: each member first goes as far as those behind it need, then as far as
// there is input for it.
static void advance(Trial *t, Moment *now, const int64_t *end, int64_t goal) {
    int64_t to[MOST_MEMBERS], last = t->n - 1;
    to[last] = goal;
    for (int64_t i = last - 1; i >= 0; i--) to[i] = last_needed(t, (int)i, to, now->at[i]);
    for (int i = 1; i < t->n; i++)
        while (to[i] < end[i]) {
            int64_t more = min64(to[i] + t->m[i].grain, end[i]);
            if (!is_fed(t, i, to, more)) break;
            to[i] = more;
        }
    for (int i = 0; i < last; i++) {
        int64_t base = first_needed(t, i, now->at, now->at[i]);
        if (base > now->base[i]) t->moved += (now->at[i] - base) * t->m[i].width * t->m[i].bytes;
        now->base[i] = max64(base, now->base[i]);
        t->most[i] = max64(t->most[i], to[i] - now->base[i]);
    }
    memcpy(now->at, to, sizeof to);
    t->steps++;
}

void strips_walk(Arena *a, Trial *t, int64_t pixels, Strips *out) {
    const Member *last = &t->m[t->n - 1];
    int64_t units = (last->total + last->grain - 1) / last->grain;
    memset(t->most, 0, sizeof t->most);
    t->steps = t->moved = 0;
    t->again = 0;
    for (int part = 0; part < t->parts; part++) {
        Moment now = { .at = { 0 } };
        int64_t end[MOST_MEMBERS];
        now.at[t->n - 1] = min64(units * part / t->parts * last->grain, last->total);
        end[t->n - 1] = min64(units * (part + 1) / t->parts * last->grain, last->total);
        for (int i = t->n - 2; i >= 0; i--) {
            end[i] = last_needed(t, i, end, 0);
            now.base[i] = now.at[i] = first_needed(t, i, now.at, end[i]) / t->m[i].grain * t->m[i].grain;
        }
        for (int i = 0; i < t->n; i++)
            t->again += t->m[i].k->flops * (double)(end[i] - now.at[i]) / (double)t->m[i].total;
        if (out) {
            out->part[part] = out->line.n / (2 * t->n - 1);
            keep(a, out, &now);
        }
        while (now.at[t->n - 1] < end[t->n - 1]) {
            advance(t, &now, end, min64(now.at[t->n - 1] + pixels, end[t->n - 1]));
            if (out) keep(a, out, &now);
        }
    }
    if (out) out->part[t->parts] = out->line.n / (2 * t->n - 1);
    for (int i = 0; i < t->n; i++) t->again -= t->m[i].k->flops;
}

static int64_t whole_bytes(const Member *m) { return m->total * m->width * m->bytes; }

int64_t strips_buffer(const Trial *t, int i) {
    return round_up(t->most[i] * t->m[i].width * t->m[i].bytes, SCRATCH_ALIGN);
}

// ---------------------------------------------------------------- what it gains
// Where memory is short: what a byte between two kernels is worth.
static double byte_price(const Trial *t, double bytes) {
    double budget = (double)t->p->options->train_memory;
    return bytes > budget / 8 && budget > 0 ? 1 : 0;
}

static double saved_ns(const Trial *t) {
    double ns = 0;
    for (int i = 0; i + 1 < t->n; i++) {
        double bytes = (double)whole_bytes(&t->m[i]) / t->parts;
        if (t->steps > t->parts && bytes > (double)t->p->options->machine.l2 / 4)
            ns += 2 * bytes * (1 / far_rate - 1 / near_rate);
        ns += bytes * byte_price(t, bytes);
        if (t->parts > 1) ns += barrier_ns;
    }
    return ns;
}

static double uneven(const Trial *t, int parts) {
    const Member *last = &t->m[t->n - 1];
    return parts_unevenness((last->total + last->grain - 1) / last->grain, parts);
}

// What the steps and parts cost that are not there without them; the buffers have to leave room for the rest in the
// second cache. Planes have weights of their own, which come once.
static double paid_ns(const Trial *t) {
    double bytes = 0, weights = 0, l2 = (double)t->p->options->machine.l2;
    for (int i = 0; i + 1 < t->n; i++) bytes += (double)strips_buffer(t, i);
    for (int i = 0; i < t->n; i++) weights += t->m[i].planes ? 0 : (double)t->m[i].k->packed->bytes;
    if (bytes > l2 / 2) return 1e30;
    double price = 0;
    for (int i = 0; i + 1 < t->n; i++)
        price += (double)strips_buffer(t, i) * byte_price(t, (double)whole_bytes(&t->m[i]));
    double cut = 0;
    for (int i = 0; t->parts > 1 && i < t->n; i++) {
        const Kernel *k = t->m[i].k;
        cut += parts_rows_ns(t->p->graph, k, t->p->options, t->parts, uneven(t, t->parts))
            - parts_best_ns(t->p->graph, k, t->p->options, t->parts);
    }
    double steps = (double)t->steps / t->parts - 1, reads = weights / (weights + bytes > l2 ? far_rate : near_rate);
    return price + cut + steps * (reads + call_ns * t->n) + 2 * (double)t->moved / t->parts / near_rate
        + t->again / t->parts / compute_rate;
}

// As many pixels as a row of the image has, where only the member before knows it.
int64_t strips_unit(const Trial *t) {
    const Member *last = &t->m[t->n - 1];
    const Member *before = &t->m[last->from >= 0 ? last->from : last->beside >= 0 ? last->beside : t->n - 2];
    const bool window = last->window && last->from >= 0;
    return !window && (before->window || before->steps) && !last->steps ? before->grain : last->grain;
}

// The best size of a step for these members; its gain in nanoseconds of one part, below zero where there is none.
static double gain(Trial *t, int64_t *pixels) {
    const Member *last = &t->m[t->n - 1];
    int64_t unit = strips_unit(t), most = (last->total + t->parts - 1) / t->parts;
    double best = -1;
    for (int64_t n = 1, more = 1; ; n += more) {
        int64_t size = round_up(n * unit, last->grain);
        strips_walk(NULL, t, size, NULL);
        double g = saved_ns(t) - paid_ns(t);
        if (g > best) {
            best = g;
            *pixels = size;
        }
        if (size >= most) return best;
        if (n >= 8 * more) more *= 2;
    }
}

// ---------------------------------------------------------------- the plan
Strips *strips_make(const Plan *p, Trial *t, int64_t pixels) {
    Arena *a = p->arena;
    Strips *s = NEW(a, Strips);
    *s = (Strips){ .member = NEW_ARRAY(a, Kernel *, t->n), .n = t->n, .parts = t->parts, .workers = t->parts,
        .part = NEW_ARRAY(a, int, t->parts + 1), .elements = NEW_ARRAY(a, int64_t, t->n),
        .width = NEW_ARRAY(a, int64_t, t->n), .steps = NEW_ARRAY(a, int64_t, t->n),
        .pixels = NEW_ARRAY(a, int64_t, t->n), .from = NEW_ARRAY(a, int, t->n), .moved = 0 };
    strips_walk(a, t, pixels, s);
    s->moved = t->moved;
    for (int i = 0; i < t->n; i++) {
        Kernel *k = s->member[i] = t->m[i].k;
        k->strips = s;
        if (k->template) template_hole(a, k, "STRIP", 1);
        else loop_rows(k, &k->loop.part_axis, &s->steps[i]);
        s->steps[i] = t->m[i].steps;
        s->pixels[i] = t->m[i].grain;
        k->scratch_bytes = round_up(k->scratch_bytes, SCRATCH_ALIGN) * t->parts;
        s->width[i] = t->m[i].width;
        s->from[i] = t->m[i].from;
        if (i + 1 == t->n) break;
        s->elements[i] = strips_buffer(t, i) / t->m[i].bytes;
        buffer_of(p, k->writes.at[0])->bytes = strips_buffer(t, i) * t->parts;
    }
    return s;
}

int strips_reach(Trial *t, int i) {
    const Plan *p = t->p;
    for (t->n = 0; t->n < MOST_MEMBERS && i + t->n < p->kernels.n; t->n++) {
        Member *m = &t->m[t->n];
        m->k = p->kernels.at[i + t->n];
        if (!goes_by_rows(p, m)) break;
        m->from = m->beside = -1;
        if (t->n && !joins(t, m)) break;
    }
    return t->n;
}

// Parts as for a single kernel, at the last member's tiles.
static int parts_of(const Trial *t) {
    const Options *o = t->p->options;
    double ns = 0;
    for (int i = 0; i < t->n; i++) ns += t->m[i].k->flops / compute_rate;
    return o->threads > 1 ? parts_workers(o, ns, uneven(t, o->threads)) : 1;
}

// The choice of groups that gains most, from the last kernel to the first: best[i] is what those from i on gain.
void strips_plan(Plan *p) {
    int n = p->kernels.n;
    if (p->options->no_fuse || template_small(p->options)) return;
    Arena *scratch = arena_new();
    double *best = NEW_ARRAY(scratch, double, n + MOST_MEMBERS + 1);
    int *length = NEW_ARRAY(scratch, int, n + 1), *parts = NEW_ARRAY(scratch, int, n + 1);
    int64_t *size = NEW_ARRAY(scratch, int64_t, n + 1);
    Trial t = { .p = p };
    for (int i = n - 1; i >= 0; i--) {
        int most = strips_reach(&t, i);
        best[i] = best[i + 1];
        length[i] = 1;
        for (t.n = 2; t.n <= most; t.n++) {
            int64_t pixels = 0;
            t.parts = parts_of(&t);
            double g = gain(&t, &pixels) + best[i + t.n];
            if (g <= best[i]) continue;
            best[i] = g;
            length[i] = t.n;
            size[i] = pixels;
            parts[i] = t.parts;
        }
    }
    for (int i = 0; i < n; i += length[i]) {
        if (length[i] < 2) continue;
        strips_reach(&t, i);
        t.n = length[i];
        t.parts = parts[i];
        strips_make(p, &t, size[i]);
    }
    arena_free(scratch);
}
