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

// What the runs in the child leave. A row is a run: by kernel the milliseconds, then those of all workers.
typedef struct Rows { int n; double fastest; int64_t spans[]; } Rows;
struct Collector {
    const Plan *plan;
    burncc_track *tracks;                               // of the loaded code
    int n_tracks, kernels, most;
    Rows *rows;                                         // these three are shared with the child
    float *row;
    burncc_span *span;                                  // BURNCC_SPANS for each track, of the fastest run
    bool begun;                                         // what came before was to warm up
    double *device_ms;                                  // of the run, by kernel, on a GPU's clock; 0: on the host
};

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
        if (c->device_ms[i] > 0) row[i] = (float)c->device_ms[i];
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
    memset(c->device_ms, 0, sizeof *c->device_ms * (size_t)c->kernels);
}

// The kernel that the host has just handed over is the one that is marked now.
void profile_handed(void *collector, const char *name, double ms) {
    const Collector *c = collector;
    const burncc_track *run = &c->tracks[0];
    (void)name;
    if (run->depth > 0 && run->depth <= BURNCC_DEPTH) c->device_ms[run->open[run->depth - 1].kernel] += ms;
}

void profile_ran(void *collector) {
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

void profile_number(Arena *a, const Plan *p, KernelTime *at) {
    for (int i = 0; i < p->kernels.n; i++) {
        const Kernel *k = p->kernels.at[i];
        at[k->number] = (KernelTime){ .kernel = k, .nodes = nodes_text(a, k), .times = at[k->number].times + 1 };
        for (int j = 0; j < kernel_bodies(k); j++) profile_number(a, k->region.bodies[j], at);
    }
}

static Profile *digest(Arena *a, const Collector *c) {
    Profile *p = NEW(a, Profile);
    p->n = c->kernels;
    p->at = NEW_ARRAY(a, KernelTime, p->n + 1);
    profile_number(a, c->plan, p->at);
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

static size_t row_bytes(const Collector *c) { return 2 * (size_t)(c->kernels + 1) * sizeof *c->row; }
static size_t span_bytes(const Collector *c) { return (size_t)c->n_tracks * BURNCC_SPANS * sizeof *c->span; }
static size_t head_bytes(const Collector *c) { return sizeof *c->rows + (size_t)c->n_tracks * sizeof(int64_t); }

static void release(Collector *c) {
    sandbox_release(c->rows, head_bytes(c));
    sandbox_release(c->row, (size_t)c->most * row_bytes(c));
    sandbox_release(c->span, span_bytes(c));
}

Collector *profile_begin(Arena *a, const Plan *p, const Options *o, void *library) {
    Collector *c = NEW(a, Collector);
    *c = (Collector){ .plan = p, .kernels = p->numbered, .n_tracks = profile_tracks(o) };
    c->device_ms = NEW_ARRAY(a, double, c->kernels + 1);
    if (!(c->tracks = dlsym(library, "burncc_tracks"))) bug("the marked code has no tracks");
    c->most = (int)min64(MOST_RUNS, 1 + (int64_t)(MOST_BYTES / row_bytes(c)));
    c->rows = sandbox_memory(head_bytes(c));
    c->row = sandbox_memory((size_t)c->most * row_bytes(c));
    c->span = sandbox_memory(span_bytes(c));
    if (c->rows && c->row && c->span) return c;
    release(c);
    return NULL;
}

Profile *profile_end(Arena *a, Collector *c) {
    Profile *p = c->rows->n ? digest(a, c) : NULL;
    release(c);
    return p;
}

static const char *time_marked(Arena *a, const Built *b, const Inputs *in, const CommandOptions *c, Profile **out) {
    Timing marked = { 0 };
    Collector *runs = profile_begin(a, b->plan, b->options, b->library);
    if (!runs) return "not enough memory";
    const double seconds = c->seconds * (1 - PLAIN_SHARE);
    const char *why = sandbox_watch(a, b, in, seconds, c->timeout, profile_ran, runs, &marked);
    *out = profile_end(a, runs);
    if (!why && !*out) why = "no run came to its end";
    if (!why) (*out)->marked = marked;
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
    const double share = o->profile ? 1 - PLAIN_SHARE : PLAIN_SHARE;
    progress_stage("timing for %.3g s", c->seconds * share);
    return b;
}

static const Profile *take_gpu(Arena *a, CommandOptions *c, BuildCache *built, const Graph *signature, Inputs *in) {
    Inputs bound;
    Timing timing = { 0 };
    Profile *p = NULL;
    *built = (BuildCache){ .arena = a };
    const Built *b = built_for(c, built, &c->compile, signature, in, &bound);
    if (!b) return NULL;
    const char *why = sandbox_time(a, b, &bound, c->seconds * PLAIN_SHARE, c->timeout, &timing);
    if (!why) why = profile_gpu(a, b, &bound, c, true, &p);
    if (why) diag_error(NULL, "the model's code failed: %s", why);
    if (!p) return NULL;
    p->plain = timing;
    p->program = c->compile.name;
    return p;
}

const Profile *profile_take(Arena *a, CommandOptions *c, BuildCache *marked) {
    BuildCache plain = { .arena = a };
    Inputs in, bound;
    Profile *p = NULL;
    Timing timing = { 0 };
    const char *why = NULL;
    const Graph *signature = inputs_read(a, c, false, &in);
    if (!signature) return NULL;
    if (c->compile.machine.backend->descriptor == DESCRIPTOR_VULKAN) return take_gpu(a, c, marked, signature, &in);
    const Built *b = built_for(c, &plain, &c->compile, signature, &in, &bound);
    if (b) why = sandbox_time(a, b, &bound, c->seconds * PLAIN_SHARE, c->timeout, &timing);
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
