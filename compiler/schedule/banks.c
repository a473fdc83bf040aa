// SPDX-License-Identifier: MIT OR Apache-2.0
// --region: which of a microcontroller's memories (banks here, for regions are control flow) holds what. In: the
// workspace's buffers with their lifetimes, and constants. Out: Buffer.bank, offsets that count from the beginning of
// each bank's part, and by how many bytes the banks are too small.
//
// Each buffer is one piece in one bank. What is read and written most, by byte, comes into the first bank as long as
// what is there already leaves room at some moment; the rest goes to the second, and so on, and what is left over to
// the last. Where that is too much, largest first is tried, into the first bank that has room, or the last.
// Constants come behind the workspace in the banks that may hold them, those first that a run reads most often.
#include "schedule.h"
#include "cpu/templates.h"

#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 4 };                                   // of a result, that a product computes from one load

typedef struct Heat { Buffer *of; double key; } Heat;


static int hottest(const void *x, const void *y) {
    const Heat *a = x, *b = y;
    return a->key != b->key ? (a->key < b->key ? 1 : -1) : a->of->id - b->of->id;
}

// ---------------------------------------------------------------- how often a run reads and writes
static double points(const Plan *p, const Kernel *k) {
    double n = 1;
    for (int i = 0; i < k->axes.n; i++) n *= (double)k->axes.at[i].extent;
    return k->axes.n ? n : k->writes.n ? (double)type_count_upper(p->graph, &k->writes.at[0]->type) : 0;
}

// Elements of v that the kernel loads: of a product's left factor each for some columns, of its right one for each row.
static double loads_of(const Plan *p, const Kernel *k, const Value *v) {
    const double elements = (double)type_count_upper(p->graph, &v->type), products = k->flops / 2;
    if (!k->template || k->kind == KERNEL_CALL || k->kind == KERNEL_REGION) return points(p, k);
    if (k->operand[0] == v) return k->kind == KERNEL_DEPTHWISE ? products : products / COLUMNS;
    for (int i = 1; i < 3; i++)
        if (k->operand[i] == v) return products / COLUMNS;
    return elements;
}

static void add(Heat *heat, Buffer *b, double accesses) {
    int64_t offset;
    b = buffer_owner(b, &offset);
    if ((b->place == PLACE_WORK || b->place == PLACE_WEIGHT) && b->last >= 0 && heat[b->id].of == b)
        heat[b->id].key += accesses;
}

// By the buffer's number: accesses in a run.
static Heat *accesses(Arena *a, const Plan *p) {
    Heat *heat = NEW_ARRAY(a, Heat, p->buffers.n + 1);
    for (int i = 0; i < p->buffers.n; i++) heat[i].of = p->buffers.at[i];
    for (int i = 0; i < p->kernels.n; i++) {
        const Kernel *k = p->kernels.at[i];
        for (int j = 0; j < k->reads.n; j++) {
            Value *v = k->reads.at[j];
            Buffer *b = k->packed && k->packed->value == v ? k->packed : plan_value(p, v).buffer;
            if (b) add(heat, b, loads_of(p, k, v));
        }
        for (int j = 0; j < k->writes.n; j++)
            add(heat, plan_value(p, k->writes.at[j]).buffer,
                (double)type_count_upper(p->graph, &k->writes.at[j]->type));
        if (k->scratch) add(heat, k->scratch, k->flops / 2);
    }
    return heat;
}

// ---------------------------------------------------------------- the workspace
typedef struct Banks {
    Plan *p;
    Arena *a;
    int n; Heat *items;                                 // in the sequence in which they find a bank
    Buffer **there;                                     // of the bank that is looked at
} Banks;

static bool works(const Bank *b) { return b->holds & BANK_WORK; }

static int last_work(const Options *o) {
    int last = -1;
    for (int i = 0; i < o->banks.n; i++) if (works(&o->banks.at[i])) last = i;
    return last;
}

// Bytes that bank `bank` takes for those that are there; thorough: all is done to make them few.
static int64_t takes(const Banks *s, int bank, bool thorough) {
    int n = 0;
    int64_t bound;
    for (int i = 0; i < s->n; i++)
        if (s->items[i].of->bank == bank) s->there[n++] = s->items[i].of;
    Arena *own = arena_new();
    const int64_t bytes = thorough ? place_buffers(own, n, s->there, &bound) : place_roughly(own, n, s->there);
    arena_free(own);
    return bytes;
}

static int64_t room(const Options *o, int bank) { return o->banks.at[bank].bytes & ~(int64_t)(BUFFER_ALIGN - 1); }

// The first bank in the order of from..to that has room; else the last.
static void find_bank(const Banks *s, Buffer *b, bool backwards) {
    const Options *o = s->p->options;
    for (int j = 0; j < o->banks.n; j++) {
        const int i = backwards ? o->banks.n - 1 - j : j;
        if (!works(&o->banks.at[i]) || align_up(b->bytes) > room(o, i)) continue;
        b->bank = i;
        if (takes(s, i, false) <= room(o, i)) return;
    }
    b->bank = last_work(o);
}

enum { WAYS = 3 };

// How many bytes too many this way needs.
static int64_t distribute(Banks *s, const Heat *heat, int way) {
    const Options *o = s->p->options;
    for (int i = 0; i < s->n; i++) {
        Buffer *b = s->items[i].of;
        s->items[i].key = way ? (double)b->bytes : heat[b->id].key / (double)(b->bytes + 1);
        b->bank = -1;
    }
    qsort(s->items, (size_t)s->n, sizeof *s->items, hottest);
    for (int i = 0; i < s->n; i++) find_bank(s, s->items[i].of, way == 2);
    int64_t excess = 0;
    s->p->work_bytes = 0;
    for (int i = 0; i < o->banks.n; i++) {
        if (!works(&o->banks.at[i])) continue;
        const int64_t bytes = s->p->bank_bytes[i] = takes(s, i, true);
        s->p->work_bytes += bytes;
        if (bytes > o->banks.at[i].bytes) excess += bytes - o->banks.at[i].bytes;
    }
    return excess;
}

static int64_t share_of(const Plan *p, const Heat *heat, int bank) {
    double all = 0, own = 0;
    for (int i = 0; i < p->buffers.n; i++) {
        const Buffer *b = p->buffers.at[i];
        if (b->place != PLACE_WORK) continue;
        all += heat[i].key;
        own += b->bank == bank ? heat[i].key : 0;
    }
    return all > 0 ? (int64_t)(100 * own / all + 0.5) : 0;
}

void banks_place(Plan *p, int n, Buffer *const *buffers) {
    const Options *o = p->options;
    Arena *a = arena_new();
    const Heat *heat = accesses(a, p);
    Banks s = { .p = p, .a = a, .n = n, .items = NEW_ARRAY(a, Heat, n + 1),
        .there = NEW_ARRAY(a, Buffer *, n + 1) };
    if (!p->bank_bytes) p->bank_bytes = NEW_ARRAY(p->arena, int64_t, o->banks.n);
    if (!p->bank_shares) p->bank_shares = NEW_ARRAY(p->arena, int64_t, o->banks.n);
    for (int i = 0; i < n; i++) {
        s.items[i].of = buffers[i];
        buffers[i]->bank = 0;
    }
    place_buffers(a, n, buffers, &p->live_bytes);
    int64_t least = INT64_MAX;
    int best = 0;
    for (int way = 0; way < WAYS && least > 0; way++) {
        const int64_t excess = distribute(&s, heat, way);
        if (excess < least) best = way;
        least = excess < least ? excess : least;
    }
    p->bank_excess = distribute(&s, heat, best);
    for (int i = 0; i < o->banks.n; i++) p->bank_shares[i] = share_of(p, heat, i);
    arena_free(a);
}

int64_t banks_bytes(const Options *o) {
    int64_t all = 0;
    for (int i = 0; i < o->banks.n; i++)
        if (works(&o->banks.at[i])) all += room(o, i);
    return all;
}

// ---------------------------------------------------------------- constants
static bool is_constant(const Buffer *b) { return b->place == PLACE_WEIGHT && b->value; }

// What several programs have in a bank: functions of a model share a workspace, and programs of training may.
static int64_t work_of(int n, const Program *programs, int bank) {
    int64_t most = 0;
    for (int i = 0; i < n; i++) {
        const int64_t *bytes = programs[i].plan->bank_bytes;
        if (bytes && bytes[bank] > most) most = bytes[bank];
    }
    return most;
}

static bool place_constants(const Options *o, const Program *program, int64_t *left) {
    const Plan *p = program->plan;
    Arena *a = arena_new();
    Heat *heat = accesses(a, p);
    bool fit = true;
    for (int i = 0; i < p->buffers.n; i++) heat[i].key /= (double)(heat[i].of->bytes + 1);
    qsort(heat, (size_t)p->buffers.n, sizeof *heat, hottest);
    for (int i = 0; i < p->buffers.n; i++) {
        Buffer *b = heat[i].of;
        if (!is_constant(b)) continue;
        b->bank = -1;
        for (int j = 0; j < o->banks.n && b->bank < 0; j++)
            if ((o->banks.at[j].holds & BANK_WEIGHTS) && align_up(b->bytes) <= left[j]) b->bank = j;
        if (b->bank >= 0) {
            left[b->bank] -= align_up(b->bytes);
            continue;
        }
        diag_error_as(EXIT_LIMIT, NULL, "--region: no region has room for %lld bytes of weights, %s of %s",
            (long long)b->bytes, type_text(p->arena, p->graph, &b->value->type), p->kernels.at[b->first]->name);
        for (int j = 0; j < o->banks.n; j++)
            if (o->banks.at[j].holds & BANK_WEIGHTS)
                diag_note(NULL, "%s has %lld bytes left of %lld", o->banks.at[j].name, (long long)left[j],
                    (long long)o->banks.at[j].bytes);
        fit = false;
        break;
    }
    arena_free(a);
    return fit;
}

bool banks_constants(const Options *o, int n, const Program *programs) {
    bool wanted = false;
    int64_t bytes = 0, left[MOST_BANKS] = { 0 };
    for (int i = 0; i < o->banks.n; i++) {
        wanted = wanted || (o->banks.at[i].holds & BANK_WEIGHTS);
        left[i] = o->banks.at[i].bytes - work_of(n, programs, i);
    }
    for (int i = 0; i < n; i++) bytes += programs[i].plan->weight_bytes;
    if (!wanted) return true;
    if (bytes > o->embed_limit) {
        diag_error_as(EXIT_USAGE, NULL, "--region: weights of %lld bytes become a file, which lies where the program "
            "has loaded it; a larger --embed-limit makes them arrays", (long long)bytes);
        return false;
    }
    for (int i = 0; i < n; i++)
        if (!place_constants(o, &programs[i], left)) return false;
    return true;
}

static int64_t constants_in(const Plan *p, int bank) {
    int64_t bytes = 0;
    for (int i = 0; i < p->buffers.n; i++) {
        const Buffer *b = p->buffers.at[i];
        if (is_constant(b) && b->bank == bank && (p->options->banks.at[bank].holds & BANK_WEIGHTS)) bytes += b->bytes;
    }
    return bytes;
}

int64_t banks_used(int n, const Program *programs, int bank) {
    int64_t bytes = work_of(n, programs, bank);
    for (int i = 0; i < n; i++) bytes += constants_in(programs[i].plan, bank);
    return bytes;
}

// ---------------------------------------------------------------- for people
void banks_report(const Plan *p, Text *out) {
    const Options *o = p->options;
    for (int i = 0; i < o->banks.n; i++) {
        const Bank *b = &o->banks.at[i];
        const char *before = ":";
        text_printf(out, "region %s %lld bytes", b->name, (long long)b->bytes);
        if (works(b)) {
            text_printf(out, ": workspace %lld, %lld %% of its accesses", (long long)p->bank_bytes[i],
                (long long)p->bank_shares[i]);
            before = ",";
        }
        if (b->holds & BANK_WEIGHTS) {
            text_printf(out, "%s weights %lld", before, (long long)constants_in(p, i));
            before = ",";
        }
        if (b->holds & BANK_CODE) text_printf(out, "%s code", before);
        text_printf(out, "\n");
    }
}

bool banks_hold(const Plan *p) {
    const Options *o = p->options;
    enum { SHOWN = 6 };
    if (!p->bank_excess) return true;
    for (int i = 0; i < o->banks.n; i++) {
        const Bank *b = &o->banks.at[i];
        if (!works(b) || p->bank_bytes[i] <= b->bytes) continue;
        diag_error_as(EXIT_LIMIT, NULL, "--region: %s has %lld bytes, not the %lld that are left to it of a workspace "
            "of %lld", b->name, (long long)b->bytes, (long long)p->bank_bytes[i], (long long)p->work_bytes);
    }
    plan_note_kept(p, SHOWN);
    return false;
}
