// SPDX-License-Identifier: MIT OR Apache-2.0
// burncc verify: builds the model, runs it on recorded inputs and compares what comes out with what was recorded.
//
// In: data sets in ONNX's test layout, folders with input_N.pb and output_N.pb, and for second valid references
// optall_output_N.pb. Out: a line a data set,
//   pass max_abs=1.2e-07 max_rel=3.4e-06 ulp=1.1 data=test_data_set_0
//   FAIL probabilities element 3 [0,3]: 0.5, recorded 0.25 (12 of 40 differ, max_abs=0.25 ...) data=test_data_set_1
// and status 0 only if all pass. compare.c says when an element passes.
#define _POSIX_C_SOURCE 200809L
#include "command.h"

#include <ctype.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef VEC(const char *) Paths;

// ---------------------------------------------------------------- finding data sets

// Numbers within names compare as numbers: test_data_set_2 before test_data_set_10.
static int compare_names(const void *x, const void *y) {
    const char *a = *(const char *const *)x, *b = *(const char *const *)y;
    while (*a && *b) {
        if (isdigit((unsigned char)*a) && isdigit((unsigned char)*b)) {
            char *a_end, *b_end;
            unsigned long long m = strtoull(a, &a_end, 10), n = strtoull(b, &b_end, 10);
            if (m != n) return m < n ? -1 : 1;
            a = a_end;
            b = b_end;
        } else if (*a != *b) {
            return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
        } else {
            a++;
            b++;
        }
    }
    return (*a != 0) - (*b != 0);
}

static bool is_data_set(Arena *a, const char *folder) {
    return !access(arena_printf(a, "%s/output_0.pb", folder), R_OK)
        || !access(arena_printf(a, "%s/input_0.pb", folder), R_OK);
}

static void find_sets(Arena *a, const char *folder, Paths *out) {
    int first = out->n;
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));) {
        if (strncmp(e->d_name, "test_data_set_", 14)) continue;
        const char *path = arena_printf(a, "%s/%s", folder, e->d_name);
        if (is_data_set(a, path)) VEC_PUSH(a, *out, path);
    }
    if (d) closedir(d);
    if (out->n > first) qsort(out->at + first, (size_t)(out->n - first), sizeof *out->at, compare_names);
}

static const char *folder_of(Arena *a, const char *path) {
    const char *slash = strrchr(path, '/');
    return slash == path ? "/" : slash ? arena_strndup(a, path, (size_t)(slash - path)) : ".";
}

static bool all_sets(Arena *a, const CommandOptions *c, Paths *out) {
    if (!c->data.n) find_sets(a, folder_of(a, c->compile.model), out);
    for (int i = 0; i < c->data.n; i++) {
        const char *folder = c->data.at[i];
        int before = out->n;
        if (is_data_set(a, folder)) VEC_PUSH(a, *out, folder);
        else find_sets(a, folder, out);
        if (out->n == before)
            diag_error_as(EXIT_IO, NULL, "no data set in '%s': neither input_0.pb nor test_data_set_0/", folder);
    }
    if (!out->n && !diag_errors() && (!c->golden || c->trace))
        diag_error_as(EXIT_IO, NULL, "no test_data_set_0 beside the model; say where with --data DIR%s", c->runner ?
            ", or compare this machine's bits alone, for inputs that are drawn, with --golden" : "");
    return !diag_errors();
}

// tolerance.txt (`rtol atol`) in the data set's folder or the one above, if the command line does not say.
static Tolerance find_tolerance(Arena *a, const CommandOptions *c, const char *set) {
    Tolerance t = usual_tolerance(c->compile.precision);
    const char *const candidates[] = { arena_printf(a, "%s/tolerance.txt", set),
        arena_printf(a, "%s/../tolerance.txt", set) };
    for (size_t i = 0; i < COUNT(candidates); i++) {
        FILE *f = fopen(candidates[i], "r");
        if (!f) continue;
        double rtol, atol;
        if (fscanf(f, "%lf %lf", &rtol, &atol) == 2 && rtol >= 0 && atol >= 0)
            t = (Tolerance){ rtol, atol, 0, t.precision, t.against };
        else diag_warn(WARN_tolerance, NULL, "%s: wants two numbers, rtol and atol; ignored", candidates[i]);
        fclose(f);
        break;
    }
    if (c->rtol >= 0 || c->atol >= 0) t.ulps = 0;
    if (c->rtol >= 0) t.rtol = c->rtol;
    if (c->atol >= 0) t.atol = c->atol;
    if (c->ulp >= 0) t.ulps = c->ulp;
    return t;
}

// ---------------------------------------------------------------- comparing

// An output passes if it matches the reference or, where there is one, the second reference.
static void compare_output(Arena *a, const char *name, const Tensor *got, const Tensor *want, const Tensor *second,
    Tolerance allowed, Difference *all) {
    Difference one = compare_tensors(a, got, want, allowed);
    if (one.fault && second) {
        Difference other = compare_tensors(a, got, second, allowed);
        if (!other.fault) one = other;
    }
    if (one.max_abs > all->max_abs) all->max_abs = one.max_abs;
    if (one.max_rel > all->max_rel) all->max_rel = one.max_rel;
    if (one.ulps > all->ulps) all->ulps = one.ulps;
    if (one.fault && !all->fault) all->fault = arena_printf(a, "%s %s", text_name(a, name), one.fault);
}

// Element k of the sequence whose elements lie along the tensor's first axis.
static Tensor *row_of(Arena *a, const Tensor *rows, int64_t k) {
    Tensor *one = NEW(a, Tensor);
    one->type = (Type){ .dtype = rows->type.dtype, .rank = rows->type.rank - 1 };
    for (int i = 0; i < one->type.rank; i++) one->type.dim[i] = rows->type.dim[i + 1];
    one->data = (char *)rows->data + k * type_bytes(&one->type);
    return one;
}

// A sequence or optional of another kind or length than the recorded one?
static const char *compare_bundle(Arena *a, const Bundle *b, Tensor *const *got, const EndData *want) {
    int64_t n = b->stacked ? (*got)->type.dim[0] : b->n;
    if (b->absent != want->absent)
        return arena_printf(a, "%s holds %s, recorded is %s", text_name(a, b->name),
            b->absent ? "nothing" : "something", want->absent ? "nothing" : "something");
    return n == want->n ?
        NULL :
        arena_printf(a, "%s has %lld elements, recorded %d", text_name(a, b->name), (long long)n, want->n);
}

// Compares all outputs: a sequence of the model's is several of the graph's.
static Difference compare_outputs(Arena *a, const Graph *g, const Model *m, Tensor *const *got,
    const Recorded *want, const Recorded *second, Tolerance allowed) {
    Difference all = { 0 };
    if (want->n > m->n_outputs) {
        all.fault = arena_printf(a, "%d outputs are recorded, the model has %d", want->n, m->n_outputs);
        return all;
    }
    for (int i = 0, at = 0; i < want->n && !all.fault; i++) {
        const Bundle *b = graph_bundle(g, m->outputs[i].name, true);
        const EndData *w = &want->at[i], *s = i < second->n && second->at[i].n == w->n ? &second->at[i] : NULL;
        bool stacked = b && b->stacked;
        if (b) all.fault = compare_bundle(a, b, &got[at], w);
        for (int k = 0; k < w->n && !all.fault; k++) {
            const char *name = g->output_names.at[stacked ? at : at + k];
            Tensor *one = stacked ? row_of(a, got[at], k) : output_real(a, g, name, got[at + k]);
            compare_output(a, name, one, w->at[k], s ? s->at[k] : NULL, allowed, &all);
        }
        at += stacked ? 1 : w->n;
    }
    return all;
}

// The same code built and run here, on the inputs given and, in the place of NULL, the numbers that are always drawn.
// What differs from the runner's outputs in bits, or NULL.
static const char *differs_here(Arena *a, BuildCache *here, const CommandOptions *c, const Options *o,
    const Graph *signature, const Inputs *in, Tensor *const *got) {
    Options *own = arena_copy(a, o, sizeof *o);
    const char *frozen;
    own->plain_cc = true;
    Built *b = build_for_inputs(here, own, signature, in, &frozen);
    if (!b) return arena_printf(a, "not built here: %s", diag_first());
    const Graph *g = b->plan->graph;
    Tensor **golden = NEW_ARRAY(a, Tensor *, g->outputs.n + 1);
    Inputs bound = inputs_random(a, b, signature, in);
    const char *why = sandbox_run(a, b, &bound, golden, c->timeout);
    for (int i = 0; i < g->outputs.n && !why; i++) {
        Difference d = compare_tensors(a, got[i], golden[i], (Tolerance){ .against = "here" });
        if (d.fault) why = arena_printf(a, "%s %s", text_name(a, g->output_names.at[i]), d.fault);
    }
    return why;
}

// ---------------------------------------------------------------- one data set, all data sets

// The recorded outputs say how large results are that the model leaves open.
static int64_t largest_size(const Recorded *r, int64_t least) {
    for (int i = 0; i < r->n; i++)
        for (int k = 0; k < r->at[i].n; k++)
            for (int d = 0; d < r->at[i].at[k]->type.rank; d++)
                if (r->at[i].at[k]->type.dim[d] > least) least = r->at[i].at[k]->type.dim[d];
    return least;
}

// trace: what --trace has to say of it goes there; here: where --golden builds
static Difference verify_set(Arena *a, BuildCache *cache, BuildCache *here, const CommandOptions *c, const Model *m,
    const char *set, const char **frozen, Text *trace) {
    Inputs in;
    Recorded want, second;
    Options *own;
    Difference failed = { .fault = "the recorded data cannot be used" };
    const Graph *signature = recorded_inputs(a, cache->arena, &c->compile, m, set, &own, &in);
    if (!signature || !recorded_read(a, set, "output_", m->n_outputs, m->outputs, &want)
        || !recorded_read(a, set, "optall_output_", m->n_outputs, m->outputs, &second))
        return failed;
    own->largest_size = largest_size(&want, own->largest_size);
    Built *b = build_for_inputs(cache, own, signature, &in, frozen);
    if (!b) {
        failed.fault = arena_printf(a, "not built: %s", diag_first());
        return failed;
    }
    const Graph *g = b->plan->graph;
    Tensor **got = NEW_ARRAY(a, Tensor *, g->outputs.n + 1);
    Inputs bound = inputs_select(a, b, signature, &in);
    progress_stage("%s: running", set);
    failed.fault = sandbox_run(a, b, &bound, got, c->timeout);
    Tolerance allowed = find_tolerance(a, c, set);
    Difference d = failed.fault ? failed : compare_outputs(a, g, m, got, &want, &second, allowed);
    if (c->golden && !d.fault) d.fault = differs_here(a, here, c, own, signature, &in, got);
    Trace t = { 0 };
    if (c->trace && trace_start(&t, a, c, own, signature, &in, allowed)) {
        Difference plain = { 0 };
        if (t.outputs) plain = compare_outputs(a, g, m, t.outputs, &want, &second, allowed);
        trace_print(trace, &t, d.fault, plain.fault, c->json);
    }
    return d;
}

// --golden where nothing is recorded: inputs are drawn, and the bits of this machine are all that is compared.
static Difference verify_drawn(Arena *a, BuildCache *cache, BuildCache *here, CommandOptions *c, const char **frozen) {
    Inputs in;
    Difference d = { .fault = "there are no inputs for it" };
    const Graph *signature = inputs_read(a, c, false, &in);
    if (!signature) return d;
    Built *b = build_for_inputs(cache, &c->compile, signature, &in, frozen);
    if (!b) {
        d.fault = arena_printf(a, "not built: %s", diag_first());
        return d;
    }
    Tensor **got = NEW_ARRAY(a, Tensor *, b->plan->graph->outputs.n + 1);
    Inputs bound = inputs_random(a, b, signature, &in);
    d.fault = sandbox_run(a, b, &bound, got, c->timeout);
    if (!d.fault) d.fault = differs_here(a, here, c, &c->compile, signature, &in, got);
    return d;
}

static void print_set(const CommandOptions *c, Arena *a, const char *set, const Difference *r, const char *frozen,
    const Text *trace) {
    const char *slash = strrchr(set, '/'), *name = slash && slash[1] ? slash + 1 : set;
    Text t;
    text_init(&t, a);
    if (c->json) {
        text_printf(&t, "{\"data\":");
        json_quoted(&t, set);
        text_printf(&t, ",\"pass\":%s,\"max_abs\":", r->fault ? "false" : "true");
        json_number(&t, r->max_abs);
        text_printf(&t, ",\"max_rel\":");
        json_number(&t, r->max_rel);
        text_printf(&t, ",\"ulp\":");
        json_number(&t, r->ulps);
        text_printf(&t, ",\"frozen\":");
        json_quoted(&t, frozen);
        if (r->fault) {
            text_printf(&t, ",\"fault\":");
            json_quoted(&t, r->fault);
        }
        text_append(&t, trace->at, trace->n);
        text_printf(&t, "}\n");
    } else {
        text_append(&t, trace->at, trace->n);
        if (r->fault) text_printf(&t, "FAIL %s", text_name(a, r->fault));
        else text_printf(&t, "pass max_abs=%.3g max_rel=%.3g ulp=%.3g", r->max_abs, r->max_rel, r->ulps);
        text_printf(&t, " data=%s%s%s\n", name, *frozen ? " frozen=" : "", text_name(a, frozen));
    }
    print_text(&t, 0);
    fflush(stdout);
}

int command_verify(Arena *a, CommandOptions *c) {
    Paths sets = { 0 };
    if (c->gradients) return verify_gradients(a, c);
    if (!all_sets(a, c, &sets)) return diag_status();
    const Model *model = model_open(a, &c->compile);
    for (int i = 0; i < sets.n && !model; i++)
        print_set(c, a, sets.at[i], &(Difference){ .fault = "the model cannot be read" }, "", &(Text){ .at = "" });
    if (!model) return diag_status();
    BuildCache cache = { .arena = a, .runner = c->runner }, here = { .arena = a };
    bool all = true;
    int status = EXIT_OK;
    const int runs = sets.n ? sets.n : 1;               // without data: one, of inputs that are drawn
    for (int i = 0; i < runs; i++) {
        Arena *scratch = arena_new();
        const char *frozen = "", *set = sets.n ? sets.at[i] : "drawn";
        Text trace;
        text_init(&trace, scratch);
        text_append(&trace, "", 0);
        diag_reset();
        Difference r = sets.n ? verify_set(scratch, &cache, &here, c, model, set, &frozen, &trace) :
            verify_drawn(scratch, &cache, &here, c, &frozen);
        print_set(c, scratch, set, &r, frozen, &trace);
        all = all && !r.fault;
        if (!status) status = diag_status();
        arena_free(scratch);
    }
    build_cache_free(&cache);
    build_cache_free(&here);
    return all ? EXIT_OK : status ? status : EXIT_INVALID;
}
