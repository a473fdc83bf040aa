// SPDX-License-Identifier: MIT OR Apache-2.0
// Profiles for people and machines. In: the programs of one model with their times. Out: a table each; an object of
// JSON, an array of them where there are several; trace events as Chrome and Perfetto read them.
#include "profile.h"

#include <string.h>

static double per_second(double n, double ms) { return ms > 0 ? n / ms * 1e-6 : 0; }      // in 10^9

static void print_share(Text *t, double of, double limit) {
    if (limit > 0) text_printf(t, " %6.1f %%", 100 * of / limit);
    else text_printf(t, " %8s", "-");
}

// Of a run: a kernel that runs again does it all again.
static double operations(const KernelTime *k) { return k->kernel->flops * k->times; }
static int64_t bytes(const KernelTime *k) { return k->kernel->traffic * k->times; }

static bool in_parts(const Profile *p) { return p->n_tracks > 1; }

static void print_row(Text *t, Arena *a, const Profile *p, const KernelTime *k) {
    enum { NAMES = 40 };
    const double gflops = per_second(operations(k), k->ms), gbytes = per_second((double)bytes(k), k->ms);
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

// The run that the kernels' times are of: with marks, or on a GPU's clock.
static const char *whole_name(const Profile *p) { return p->device_ms > 0 ? "device_ms" : "marked_ms"; }
static double whole_ms(const Profile *p) { return p->device_ms > 0 ? p->device_ms : p->marked.median_ms; }

static void print_table(Text *t, Arena *a, const Profile *p) {
    text_printf(t, "%-32s %-40s %10s %8s %9s %8s %8s %8s%s\n", "kernel", "nodes", "ms", "share", "GFLOP/s", "of peak",
        "GB/s", "of mem", in_parts(p) ? "    busy" : "");
    for (int i = 0; i < p->n; i++)
        if (p->at[i].kernel->kind != KERNEL_SIZES) print_row(t, a, p, &p->at[i]);
    text_printf(t, "median_ms=%.5g kernels_ms=%.5g %s=%.5g peak_gflops=%.4g memory_gbs=%.4g runs=%lld\n",
        p->plain.median_ms, p->ms, whole_name(p), whole_ms(p), p->limits.gflops, p->limits.gbytes,
        (long long)p->marked.runs);
}

void profile_print(Text *t, Arena *a, int n, const Profile *const *all) {
    for (int i = 0; i < n; i++) {
        if (n > 1) text_printf(t, "%sprogram %s\n", i ? "\n" : "", all[i]->program);
        print_table(t, a, all[i]);
    }
}

// ---------------------------------------------------------------- JSON

static void json_profile(Text *t, const CommandOptions *c, const Profile *p) {
    text_printf(t, "{\"model\":");
    json_quoted(t, c->compile.model);
    text_printf(t, ",\"program\":");
    json_quoted(t, p->program);
    text_printf(t,
        ",\"target\":\"%s\",\"median_ms\":%.6g,\"kernels_ms\":%.6g,\"%s\":%.6g,\"peak_gflops\":%.6g,"
        "\"memory_gbs\":%.6g,\"runs\":%lld,\"kernels\":[",
        c->compile.target, p->plain.median_ms, p->ms, whole_name(p), whole_ms(p), p->limits.gflops, p->limits.gbytes,
        (long long)p->marked.runs);
    for (int i = 0; i < p->n; i++) {
        const KernelTime *k = &p->at[i];
        text_printf(t, "%s{\"kernel\":\"%s\",\"kind\":\"%s\",\"nodes\":", i ? "," : "", k->kernel->name,
            kernel_kind(k->kernel));
        json_quoted(t, k->nodes);
        text_printf(t, ",\"ms\":%.6g,\"busy_ms\":%.6g,\"flops\":%.17g,\"bytes\":%lld}", k->ms, k->busy_ms,
            operations(k), (long long)bytes(k));
    }
    text_printf(t, "]}");
}

void profile_json(Text *t, const CommandOptions *c, int n, const Profile *const *all) {
    if (n > 1) text_append(t, "[", 1);
    for (int i = 0; i < n; i++) {
        if (i) text_append(t, ",\n", 2);
        json_profile(t, c, all[i]);
    }
    text_printf(t, "%s\n", n > 1 ? "]" : "");
}

// ---------------------------------------------------------------- Chrome's trace events

static void trace_track(Text *t, const Profile *p, int process, int track, int64_t zero) {
    const char *name = track ? arena_printf(t->arena, "worker %d", track - 1) : "run";
    text_printf(t, ",\n{\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"name\":\"thread_name\",\"args\":{\"name\":\"%s\"}}",
        process, track, name);
    for (int64_t i = 0; i < p->tracks[track].n; i++) {
        const burncc_span *s = &p->tracks[track].span[i];
        const KernelTime *k = &p->at[s->kernel];
        text_printf(t, ",\n{\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"name\":\"%s\",\"cat\":\"%s\",\"ts\":%.3f,\"dur\":%.3f,"
            "\"args\":{\"nodes\":", process, track, k->kernel->name, kernel_kind(k->kernel),
            1e-3 * (double)(s->begin - zero), 1e-3 * (double)(s->end - s->begin));
        json_quoted(t, k->nodes);
        text_printf(t, ",\"operations\":%.0f,\"bytes\":%lld,\"median_ms\":%.6g}}", k->kernel->flops,
            (long long)k->kernel->traffic, k->ms);
    }
}

// A process for each program; its fastest run begins at zero.
static void trace_program(Text *t, const Profile *p, int process) {
    int64_t zero = INT64_MAX;
    for (int i = 0; i < p->n_tracks; i++)
        for (int64_t j = 0; j < p->tracks[i].n; j++) zero = min64(zero, p->tracks[i].span[j].begin);
    text_printf(t, "%s\n{\"ph\":\"M\",\"pid\":%d,\"name\":\"process_name\",\"args\":{\"name\":",
        process > 1 ? "," : "", process);
    json_quoted(t, p->program);
    text_printf(t, "}}");
    for (int i = 0; i < p->n_tracks; i++)
        if (p->tracks[i].n) trace_track(t, p, process, i, zero);
}

void profile_trace(Text *t, const char *model, int n, const Profile *const *all) {
    int64_t lost = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < all[i]->n_tracks; j++) lost += all[i]->tracks[j].lost;
    text_printf(t, "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"left_out\":%lld,\"model\":", (long long)lost);
    json_quoted(t, model);
    text_printf(t, "},\"traceEvents\":[");
    for (int i = 0; i < n; i++) trace_program(t, all[i], i + 1);
    text_printf(t, "\n]}\n");
}

int profile_report(Arena *a, const CommandOptions *c, int n, const Profile *const *all) {
    Text table, trace;
    text_init(&table, a);
    text_init(&trace, a);
    if (c->json) profile_json(&table, c, n, all);
    else profile_print(&table, a, n, all);
    print_text(&table, 0);
    profile_trace(&trace, c->compile.model, n, all);
    if (c->compile.output) text_write(a, c->compile.output, &trace);
    return diag_status();
}
