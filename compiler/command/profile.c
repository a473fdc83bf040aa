// SPDX-License-Identifier: MIT OR Apache-2.0
// Where the time of a run goes. In: a model. Out: for each kernel its time in a run, beside what the machine could do.
//
// The model is built twice: as it always is, and with marks around the kernels' calls (templates/profile.h), which
// alone cost time. Each run leaves the time of each kernel, and what counts is the median of the runs; so the sum of
// the kernels can be held against a run without marks. Kernels of strips take turns on the workers: the time of such a
// group, on the clock, is shared out as the workers spent theirs.
#include "profile.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_RUNS = 4000, MOST_BYTES = 256 << 20 };
static const double plain_share = 0.4;                  // of the seconds: runs without marks

// What the runs in the child leave. A row is a run: by kernel the milliseconds, then those of all workers.
typedef struct Rows { int n; double fastest; int64_t spans[]; } Rows;
typedef struct Collector {
    const Plan *plan;
    burncc_track *tracks;                               // of the loaded code
    int n_tracks, kernels, most;
    Rows *rows;                                         // these three are shared with the child
    float *row;
    burncc_span *span;                                  // BURNCC_SPANS for each track, of the fastest run
    bool begun;                                         // what came before was to warm up
} Collector;

// ---------------------------------------------------------------- in the child

static int64_t *time_of(const Collector *c, int track, int kernel) {
    return c->tracks[track].span ? &c->tracks[track].total[kernel] : NULL;
}

static double worked(const Collector *c, int kernel) {
    double ns = 0;
    for (int i = 1; i < c->n_tracks; i++)
        if (time_of(c, i, kernel)) ns += (double)*time_of(c, i, kernel);
    return ns;
}

// The time of a group of strips in parts stands with its first member.
static void share_strips(const Collector *c, const Strips *s, float *row) {
    double all = 0, wall = row[s->member[0]->number];
    for (int i = 0; i < s->n; i++) all += worked(c, s->member[i]->number);
    for (int i = 0; i < s->n; i++)
        row[s->member[i]->number] = (float)(all > 0 ? wall * worked(c, s->member[i]->number) / all : 0);
}

static void keep_spans(Collector *c, double sum) {
    if (c->rows->n && sum >= c->rows->fastest) return;
    c->rows->fastest = sum;
    for (int i = 0; i < c->n_tracks; i++) {
        const burncc_track *t = &c->tracks[i];
        c->rows->spans[i] = t->spans;
        size_t n = (size_t)min64(t->spans, BURNCC_SPANS);
        if (n) memcpy(c->span + (size_t)i * BURNCC_SPANS, t->span, n * sizeof *t->span);
    }
}

static void add_row(Collector *c) {
    float *row = c->row + (size_t)c->rows->n * 2 * (size_t)c->kernels, *busy = row + c->kernels;
    const burncc_track *run = &c->tracks[0];
    double sum = 0;
    for (int i = 0; i < c->kernels; i++) {
        row[i] = run->span ? (float)(1e-6 * (double)(run->total[i] - run->inner[i])) : 0;
        busy[i] = (float)(1e-6 * worked(c, i));
        sum += row[i];
    }
    for (int i = 0; i < c->plan->kernels.n; i++) {
        const Kernel *k = c->plan->kernels.at[i];
        if (k->strips && k->strips->parts > 1 && k == k->strips->member[0]) share_strips(c, k->strips, row);
    }
    keep_spans(c, sum);
    c->rows->n++;
}

static void forget(Collector *c) {
    for (int i = 0; i < c->n_tracks; i++) {
        burncc_track *t = &c->tracks[i];
        t->spans = 0;
        size_t bytes = sizeof *t->total * (size_t)c->kernels;
        if (!t->span) continue;
        memset(t->total, 0, bytes);
        memset(t->inner, 0, bytes);
    }
}

static void collect(void *collector) {
    Collector *c = collector;
    if (c->begun && c->rows->n < c->most) add_row(c);
    c->begun = true;
    forget(c);
}

// ---------------------------------------------------------------- what they come to

static int compare_floats(const void *x, const void *y) {
    float a = *(const float *)x, b = *(const float *)y;
    return (a > b) - (a < b);
}

static double median(Arena *a, const Collector *c, int column) {
    float *ms = NEW_ARRAY(a, float, c->rows->n + 1);
    for (int i = 0; i < c->rows->n; i++) ms[i] = c->row[(size_t)i * 2 * (size_t)c->kernels + (size_t)column];
    qsort(ms, (size_t)c->rows->n, sizeof *ms, compare_floats);
    return ms[c->rows->n / 2];
}

// Each name once, in order; operators of nodes that have none.
static const char *nodes_text(Arena *a, const Kernel *k) {
    Text t;
    StrMap *seen = strmap_new(a);
    text_init(&t, a);
    for (int i = 0; i < k->nodes.n; i++) {
        const Node *n = k->nodes.at[i];
        const char *name = n->loc && n->loc->name && *n->loc->name ? text_name(a, n->loc->name) : op_table[n->op].name;
        if (strmap_get(seen, name)) continue;
        strmap_put(seen, name, &t);
        text_printf(&t, "%s%s", t.n ? "+" : "", name);
    }
    return t.n ? t.at : "";
}

static void number_kernels(Arena *a, const Plan *p, KernelTime *at) {
    for (int i = 0; i < p->kernels.n; i++) {
        const Kernel *k = p->kernels.at[i];
        at[k->number] = (KernelTime){ .kernel = k, .nodes = nodes_text(a, k) };
        for (int j = 0; j < kernel_bodies(k); j++) number_kernels(a, k->region.bodies[j], at);
    }
}

static Profile *digest(Arena *a, const Collector *c) {
    Profile *p = NEW(a, Profile);
    p->n = c->kernels;
    p->at = NEW_ARRAY(a, KernelTime, p->n + 1);
    number_kernels(a, c->plan, p->at);
    for (int i = 0; i < p->n; i++) {
        p->at[i].ms = median(a, c, i);
        p->at[i].busy_ms = median(a, c, c->kernels + i);
        p->ms += p->at[i].ms;
    }
    p->n_tracks = c->n_tracks;
    p->tracks = NEW_ARRAY(a, ProfileTrack, p->n_tracks);
    for (int i = 0; i < p->n_tracks; i++) {
        ProfileTrack *t = &p->tracks[i];
        t->n = min64(c->rows->spans[i], BURNCC_SPANS);
        t->lost = c->rows->spans[i] - t->n;
        t->span = NEW_ARRAY(a, burncc_span, t->n + 1);
        if (t->n) memcpy(t->span, c->span + (size_t)i * BURNCC_SPANS, sizeof *t->span * (size_t)t->n);
    }
    return p;
}

// ---------------------------------------------------------------- the runs

static const char *time_marked(Arena *a, const Built *b, const Inputs *in, const CommandOptions *c, Profile **out) {
    Collector all = { .plan = b->plan, .kernels = b->plan->numbered, .n_tracks = profile_tracks(b->options) };
    all.tracks = dlsym(b->library, "burncc_tracks");
    if (!all.tracks) bug("the marked code has no tracks");
    const size_t row = 2 * (size_t)(all.kernels + 1) * sizeof *all.row,
                 spans = (size_t)all.n_tracks * BURNCC_SPANS * sizeof *all.span,
                 head = sizeof *all.rows + (size_t)all.n_tracks * sizeof(int64_t);
    all.most = (int)min64(MOST_RUNS, 1 + (int64_t)(MOST_BYTES / row));
    all.rows = sandbox_memory(head);
    all.row = sandbox_memory((size_t)all.most * row);
    all.span = sandbox_memory(spans);
    const char *why = "not enough memory";
    Timing marked;
    if (all.rows && all.row && all.span)
        why = sandbox_watch(a, b, in, c->seconds * (1 - plain_share), c->timeout, collect, &all, &marked);
    if (!why && !all.rows->n) why = "no run came to its end";
    if (!why) {
        *out = digest(a, &all);
        (*out)->marked = marked;
    }
    sandbox_release(all.rows, head);
    sandbox_release(all.row, (size_t)all.most * row);
    sandbox_release(all.span, spans);
    return why;
}

static const Built *built_for(
    CommandOptions *c, BuildCache *cache, const Options *o, const Graph *signature, const Inputs *in, Inputs *bound) {
    const char *frozen = "";
    const Built *b = build_for_inputs(cache, o, signature, in, &frozen);
    if (!b) return NULL;
    if (*frozen && !o->profile)
        diag_note(NULL, "shapes depend on the values of %s; compiled for these values", frozen);
    *bound = inputs_random(cache->arena, b, signature, in);
    const double share = o->profile ? 1 - plain_share : plain_share;
    progress_stage("timing for %.3g s", c->seconds * share);
    return b;
}

const Profile *profile_take(Arena *a, CommandOptions *c, BuildCache *marked) {
    BuildCache plain = { .arena = a };
    Inputs in, bound;
    Profile *p = NULL;
    Timing timing = { 0 };
    const char *why = NULL;
    const Graph *signature = inputs_read(a, c, false, &in);
    if (!signature) return NULL;
    const Built *b = built_for(c, &plain, &c->compile, signature, &in, &bound);
    if (b) why = sandbox_time(a, b, &bound, c->seconds * plain_share, c->timeout, &timing);
    build_cache_free(&plain);
    if (b && !why) {
        Options *with = arena_copy(a, &c->compile, sizeof *with);
        with->profile = true;
        *marked = (BuildCache){ .arena = a };
        b = built_for(c, marked, with, signature, &in, &bound);
        if (b) why = time_marked(a, b, &bound, c, &p);
    }
    if (why) diag_error(NULL, "the model's code failed: %s", why);
    if (!p || !limits_take(a, &c->compile, &p->limits)) return NULL;
    p->plain = timing;
    p->program = c->compile.name;
    return p;
}

// ---------------------------------------------------------------- for people and machines

static double per_second(double n, double ms) { return ms > 0 ? n / ms * 1e-6 : 0; }      // in 10^9

static void print_share(Text *t, double of, double limit) {
    if (limit > 0) text_printf(t, " %6.1f %%", 100 * of / limit);
    else text_printf(t, " %8s", "-");
}

static bool in_parts(const Profile *p) { return p->n_tracks > 1; }

static void print_row(Text *t, Arena *a, const Profile *p, const KernelTime *k) {
    enum { NAMES = 40 };
    const double gflops = per_second(k->kernel->flops, k->ms), gbytes = per_second((double)k->kernel->traffic, k->ms);
    size_t n = strlen(k->nodes), cut = n > NAMES ? NAMES - 3 : n;
    while (cut < n && ((unsigned char)k->nodes[cut] & 0xc0) == 0x80) cut--;      // between two characters of UTF-8
    const char *nodes = arena_printf(a, "%.*s%s", (int)cut, k->nodes, cut < n ? "..." : "");
    text_printf(t, "%-32s %-40s %10.5f %6.1f %% %9.2f", k->kernel->name, nodes, k->ms,
        p->ms > 0 ? 100 * k->ms / p->ms : 0, gflops);
    print_share(t, gflops, p->limits.gflops);
    text_printf(t, " %8.2f", gbytes);
    print_share(t, gbytes, p->limits.gbytes);
    if (in_parts(p) && k->busy_ms > 0) text_printf(t, " %7.2f", k->ms > 0 ? k->busy_ms / k->ms : 0);
    text_printf(t, "\n");
}

void profile_print(Text *t, Arena *a, const Profile *p) {
    text_printf(t, "%-32s %-40s %10s %8s %9s %8s %8s %8s%s\n", "kernel", "nodes", "ms", "share", "GFLOP/s", "of peak",
        "GB/s", "of mem", in_parts(p) ? "    busy" : "");
    for (int i = 0; i < p->n; i++)
        if (p->at[i].kernel->kind != KERNEL_SIZES) print_row(t, a, p, &p->at[i]);
    text_printf(t, "median_ms=%.5g kernels_ms=%.5g marked_ms=%.5g peak_gflops=%.4g memory_gbs=%.4g runs=%lld\n",
        p->plain.median_ms, p->ms, p->marked.median_ms, p->limits.gflops, p->limits.gbytes, (long long)p->marked.runs);
}

void profile_json(Text *t, const CommandOptions *c, const Profile *p) {
    text_printf(t, "{\"model\":");
    json_string(t, c->compile.model);
    text_printf(t,
        ",\"target\":\"%s\",\"median_ms\":%.6g,\"kernels_ms\":%.6g,\"marked_ms\":%.6g,\"peak_gflops\":%.6g,"
        "\"memory_gbs\":%.6g,\"runs\":%lld,\"kernels\":[",
        c->compile.target, p->plain.median_ms, p->ms, p->marked.median_ms, p->limits.gflops, p->limits.gbytes,
        (long long)p->marked.runs);
    for (int i = 0; i < p->n; i++) {
        const KernelTime *k = &p->at[i];
        text_printf(t, "%s{\"kernel\":\"%s\",\"kind\":\"%s\",\"nodes\":", i ? "," : "", k->kernel->name,
            kernel_kind(k->kernel));
        json_string(t, k->nodes);
        text_printf(t, ",\"ms\":%.6g,\"busy_ms\":%.6g,\"flops\":%.17g,\"bytes\":%lld}", k->ms, k->busy_ms,
            k->kernel->flops, (long long)k->kernel->traffic);
    }
    text_printf(t, "]}\n");
}

// ---------------------------------------------------------------- Chrome's trace events

static void trace_track(Text *t, const Profile *p, int track, int64_t zero) {
    const char *name = track ? arena_printf(t->arena, "worker %d", track - 1) : "run";
    text_printf(t, ",\n{\"ph\":\"M\",\"pid\":1,\"tid\":%d,\"name\":\"thread_name\",\"args\":{\"name\":\"%s\"}}", track,
        name);
    for (int64_t i = 0; i < p->tracks[track].n; i++) {
        const burncc_span *s = &p->tracks[track].span[i];
        const KernelTime *k = &p->at[s->kernel];
        text_printf(t, ",\n{\"ph\":\"X\",\"pid\":1,\"tid\":%d,\"name\":\"%s\",\"cat\":\"%s\",\"ts\":%.3f,\"dur\":%.3f,"
            "\"args\":{\"nodes\":", track, k->kernel->name, kernel_kind(k->kernel), 1e-3 * (double)(s->begin - zero),
            1e-3 * (double)(s->end - s->begin));
        json_string(t, k->nodes);
        text_printf(t, ",\"operations\":%.0f,\"bytes\":%lld,\"median_ms\":%.6g}}", k->kernel->flops,
            (long long)k->kernel->traffic, k->ms);
    }
}

void profile_trace(Text *t, const char *model, const Profile *p) {
    int64_t zero = INT64_MAX, lost = 0;
    for (int i = 0; i < p->n_tracks; i++) {
        for (int64_t j = 0; j < p->tracks[i].n; j++) zero = min64(zero, p->tracks[i].span[j].begin);
        lost += p->tracks[i].lost;
    }
    text_printf(t, "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"left_out\":%lld},\"traceEvents\":[\n"
        "{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{\"name\":", (long long)lost);
    json_string(t, model);
    text_printf(t, "}}");
    for (int i = 0; i < p->n_tracks; i++)
        if (p->tracks[i].n) trace_track(t, p, i, zero);
    text_printf(t, "\n]}\n");
}
