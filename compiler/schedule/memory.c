// SPDX-License-Identifier: MIT OR Apache-2.0
// Where every stored value lives: inputs and outputs in the caller's arrays, constants in the weights, everything
// else at an offset of one workspace block. In: kernels in execution order. Out: buffers with offsets, the block's
// size, and the lower bound that no plan of this order can beat (most bytes alive at once).
//
// A loop kernel that reads a dying value only at the element it stores writes in place, and what a loop carries is
// updated in place. Offsets are place.c's.
#include "schedule.h"
#include "cpu/templates.h"

#include <string.h>

#define MAX_WORK 0x1p48                                 // bytes that any placement stays below
#define MAX_STATIC_WORK ((int64_t)1 << 40)              // with sizes that are known: 1 TiB, which no machine will have

static Buffer *buffer_new(const Plan *p, Value *v, Place place) {
    Buffer *b = NEW(p->arena, Buffer);
    const int64_t bytes = type_bytes_upper(v->graph, &v->type);
    *b = (Buffer){ .place = place, .value = v, .bytes = bytes, .element = v->type.dtype };
    plan_set_buffer(p, v, b);
    return b;
}

void buffer_within(const Plan *p, Value *v, Value *of, int64_t offset) {
    Buffer *b = buffer_new(p, v, PLACE_ALIAS);
    b->alias = buffer_of(p, of);
    b->offset = offset;
}

Buffer *buffer_of(const Plan *p, Value *v) {
    Buffer *b = plan_value(p, v).buffer;
    if (b) return b;
    b = buffer_new(p, v, v->data ? PLACE_WEIGHT : PLACE_WORK);
    b->first = INT32_MAX;
    b->last = -1;
    if (v->data) {
        b->data = v->data->data;
        b->layout = "row-major";
    }
    return b;
}

Buffer *buffer_owner(Buffer *b, int64_t *offset) {
    *offset = 0;
    for (; b->place == PLACE_ALIAS; b = b->alias) *offset += b->offset;
    return b;
}

Value *field_input(const Graph *g, Role role, const char *name) {
    for (int i = 0; role && name && i < g->inputs.n; i++)
        if (g->inputs.at[i]->role == role && !strcmp(g->inputs.at[i]->name, name)) return g->inputs.at[i];
    return NULL;
}

// It is updated in place, or computed in the workspace, and copied when nobody reads the old one any more. What an
// optimizer's step stores it has read element by element.
static void place_field(const Plan *p, Value *from, Value *to) {
    Buffer *b = buffer_of(p, to);
    if (b->place == PLACE_ALIAS) return;
    if (!p->options->train && to->role == ROLE_STATE && !state_in_place(p, from, to)) {
        b->place = PLACE_WORK;
        return;
    }
    b->place = PLACE_ALIAS;
    b->alias = plan_value(p, from).buffer;
}

static bool place_part(const Plan *p, Value *v) {
    Buffer *b = buffer_of(p, v);
    if (!v->field) return false;
    b->place = PLACE_ALIAS;
    b->alias = buffer_of(p, v->field);
    b->offset = v->field_at * (int64_t)dtype_size(v->type.dtype);
    return true;
}

void memory_ends(Plan *p) {
    const Graph *g = p->graph;
    if (p->parent || p->options->io_inside) return;     // a body's ends are buffers of its own workspace
    for (int i = 0; i < g->inputs.n; i++) {
        Buffer *b = buffer_of(p, g->inputs.at[i]);
        b->index = i;
        if (!place_part(p, g->inputs.at[i])) b->place = PLACE_INPUT;
    }
    for (int i = 0; i < g->outputs.n; i++) {
        Buffer *b = buffer_of(p, g->outputs.at[i]);
        Value *field = field_input(g, g->outputs.at[i]->role, g->output_names.at[i]);
        b->index = i;
        if (place_part(p, g->outputs.at[i])) continue;
        if (field) place_field(p, field, g->outputs.at[i]);
        else b->place = PLACE_OUTPUT;
    }
}

// fresh: nothing of what it held before is wanted
static void touch(Plan *p, Buffer *b, int at, bool fresh) {
    int64_t offset;
    b = buffer_owner(b, &offset);
    // the outermost plan's
    if (p->parent && (b->place == PLACE_WEIGHT || (b->value && b->value->graph != p->graph))) return;
    if (b->place == PLACE_WORK || b->place == PLACE_WEIGHT) {
        if (b->last < 0) {
            VEC_PUSH(p->arena, p->buffers, b);
            b->id = p->buffers.n - 1;
            b->first = at;
        }
        if (fresh && at > b->last + 1) VEC_PUSH(p->arena, b->gaps, ((Gap){ b->last + 1, at - 1 }));
        if (at < b->first) b->first = at;
        if (at > b->last) b->last = at;
    }
}

// The packed operand is read from its own layout; its row-major bytes are needed only if an expression loads them too.
static bool packed_away(const Kernel *k, const Value *v) {
    return k->packed && !kernel_packs(k) && k->packed->value == v;
}

// Members of strips take turns: what one of them uses is alive from the first to the last of them.
static void touch_both(Plan *p, Buffer *b, const int *at, bool fresh) {
    touch(p, b, at[0], fresh);
    touch(p, b, at[1], false);
}

static void lifetimes(Plan *p) {
    int at[2] = { 0, 0 };
    for (int i = 0; i < p->kernels.n; i++) {
        Kernel *k = p->kernels.at[i];
        if (!k->strips || k == k->strips->member[0]) {
            at[0] = i;
            at[1] = k->strips ? i + k->strips->n - 1 : i;
        }
        const bool ran = plan_ran(p, i);
        for (int j = 0; j < k->reads.n; j++)
            if (!packed_away(k, k->reads.at[j])) touch_both(p, buffer_of(p, k->reads.at[j]), at, false);
        for (int j = 0; j < k->writes.n; j++) touch_both(p, buffer_of(p, k->writes.at[j]), at, ran);
        if (k->packed) touch_both(p, k->packed, at, kernel_packs(k) && ran);
        for (int j = 0; k->kind == KERNEL_REGION && j < k->region.packs.n; j++)
            touch_both(p, k->region.packs.at[j], at, false);
        if (!k->scratch_bytes) continue;
        if (!k->scratch) k->scratch = NEW(p->arena, Buffer);
        if (!ran)
            *k->scratch = (Buffer){ .place = PLACE_WORK, .bytes = k->scratch_bytes, .first = INT32_MAX, .last = -1 };
        touch_both(p, k->scratch, at, ran);
    }
    for (int i = 0; p->options->io_inside && !p->parent && i < p->graph->inputs.n; i++)
        touch(p, buffer_of(p, p->graph->inputs.at[i]), 0, false);
    // states that are copied to their places last, and outputs in the workspace
    for (int i = 0; !p->parent && i < p->graph->outputs.n; i++) {
        Buffer *b = buffer_of(p, p->graph->outputs.at[i]);
        if (b->place == PLACE_WORK) touch(p, b, p->kernels.n, false);
    }
    // alive through the whole body
    for (int i = 0; p->parent && i < p->graph->inputs.n + p->graph->outputs.n; i++) {
        bool out = i >= p->graph->inputs.n;
        Value *v = out ? p->graph->outputs.at[i - p->graph->inputs.n] : p->graph->inputs.at[i];
        if (v->data) continue;                          // the region reads it, or sets zeros
        Buffer *b = buffer_of(p, v);
        touch(p, b, p->kernels.n, false);
        if (!out) touch(p, b, 0, false);
    }
}

// Is every load of v in e at this very index, and in no inner loop that would read it again?
typedef struct Same { const Value *v; const Expr *index; bool *seen; } Same;
static bool loads_only_at(const Same *s, const Expr *e) {
    if (!e || s->seen[e->id]) return true;
    s->seen[e->id] = true;
    if (e->op == E_Load && e->value == s->v) return e->a[0] == s->index;
    return loads_only_at(s, e->a[0]) && loads_only_at(s, e->a[1]) && loads_only_at(s, e->a[2]);
}

// Several stores (outputs.c) follow the loads of all, and one of them may go over v.
bool kernel_in_place(Arena *a, const Kernel *k, const Value *v) {
    bool finishes = template_may_over(k) && k->operand[0] != v && !k->result_at;       // each element as it is stored
    if ((k->kind != KERNEL_LOOP && !finishes) || !k->stores.n) return false;
    Same same = { v, k->stores.at[0].index, NEW_ARRAY(a, bool, expr_count(k->exprs) + 1) };
    for (int i = 0; i < k->stores.n; i++) {
        const Store *s = &k->stores.at[i];
        bool fits = s->index == same.index && s->value->type.dtype == v->type.dtype;
        if (!fits || !loads_only_at(&same, s->expr)) return false;
    }
    return true;
}

// Rows that are reduced before their elements are stored: where no thread stores an element that another one reads
// (Backend.keeps_rows), the reductions of a row are done when its first element is stored over what they read. Each
// load of v inside a reduction has to be the store's own row then: the same index, its last axis being the reduction's.
// For programs that train, whose logits are long.
typedef struct Rows { const Kernel *k; Graph *g; const Value *v; const Expr *index; int column; bool *seen; } Rows;

static bool is_own_row(const Rows *r, const Expr *index, int axis) {
    Dim stored[64], loaded[64], at[2];
    const Axis *axes = r->k->axes.at;
    if (!expr_affine_sizes(r->index, r->g, r->k->axes.n, stored, &at[0])
        || !expr_affine_sizes(index, r->g, r->k->axes.n, loaded, &at[1]) || at[0] != at[1])
        return false;
    for (int i = 0; i < r->k->axes.n; i++) {
        const Dim want = i == axis ? stored[r->column] : i == r->column ? 0 : stored[i];
        if (loaded[i] != want) return false;
    }
    return axes[axis].size == axes[r->column].size;
}

// axis: of the reduction around e; -1: none is
static bool reads_own_rows(const Rows *r, const Expr *e, int axis) {
    if (!e || (axis < 0 && r->seen[e->id])) return true;
    if (axis < 0) r->seen[e->id] = true;
    if (e->op == E_Load && e->value == r->v) return axis < 0 ? e->a[0] == r->index : is_own_row(r, e->a[0], axis);
    if (e->op == E_Reduce) {
        if (e->n_axes != 1 || e->axes_used >> r->column & 1) return false;
        axis = e->axes[0];
    }
    return reads_own_rows(r, e->a[0], axis) && reads_own_rows(r, e->a[1], axis) && reads_own_rows(r, e->a[2], axis);
}

static bool kernel_over_rows(const Plan *p, const Kernel *k, const Value *v) {
    int column = k->n_parallel - 1;
    bool (*keeps_rows)(Arena *, const Kernel *) = p->options->machine.backend->keeps_rows;
    if (k->kind != KERNEL_LOOP || !graph_trains(p->graph)) return false;
    while (column >= 0 && k->axes.at[column].size == 1) column--;
    const Store *s = &k->stores.at[0];
    if (column < 0 || s->op != RED_NONE || s->guard || s->value->type.dtype != v->type.dtype) return false;
    Rows r = { k, p->graph, v, s->index, column, NEW_ARRAY(p->arena, bool, expr_count(k->exprs) + 1) };
    return reads_own_rows(&r, s->expr, -1) && (!keeps_rows || keeps_rows(p->arena, k));
}

static void try_in_place(Plan *p, Kernel *k, int at) {
    if ((k->kind != KERNEL_LOOP && !template_may_over(k)) || k->stores.n != 1 || k->runs > 1 || k->strips) return;
    const Store *s = &k->stores.at[0];
    Buffer *out = plan_value(p, s->value).buffer;
    if (out->place != PLACE_WORK || out->first != at) return;
    for (int i = 0; i < k->reads.n; i++) {
        Value *v = k->reads.at[i];
        Buffer *in = plan_value(p, v).buffer;
        if (in && in->place == PLACE_ALIAS && in->over) in = in->alias;     // itself over another
        if (!in || in->place != PLACE_WORK || in->last != at || in->bytes != out->bytes
            || !(kernel_in_place(p->arena, k, v) || kernel_over_rows(p, k, v)))
            continue;
        out->place = PLACE_ALIAS;
        out->over = true;
        out->alias = in;
        out->offset = 0;
        in->last = out->last;
        return;
    }
}

// Is all that the kernels from `at` to `end` read of these bytes this value?
static bool alone(const Plan *p, const Value *v, const Buffer *in, int at, int end) {
    int64_t from;
    for (int i = at; i <= end; i++)
        for (int j = 0; j < p->kernels.at[i]->reads.n; j++) {
            Value *read = p->kernels.at[i]->reads.at[j];
            Buffer *b = plan_value(p, read).buffer;
            if (read != v && b && buffer_owner(b, &from) == in) return false;
        }
    return true;
}

// Templates that store their elements in order, alone or in strips, may store over what they read, at a distance.
static void try_over(const Plan *p, const Kernel *k, int at) {
    if (k->strips ? k != k->strips->member[0] : !template_may_over(k)) return;
    if (k->runs > 1) return;
    const int end = at + (k->strips ? k->strips->n : 1) - 1;
    const Kernel *last = p->kernels.at[end];
    Buffer *out = plan_value(p, last->writes.at[0]).buffer;
    if (out->place != PLACE_WORK || out->first != at || out->gaps.n || last->result_at) return;
    for (int i = at; i <= end; i++)
        for (int j = 0; j < p->kernels.at[i]->reads.n; j++) {
            const Value *v = p->kernels.at[i]->reads.at[j];
            const Buffer *in = plan_value(p, v).buffer;
            int64_t distance;
            if (!in || in == out || in->place != PLACE_WORK || in->last != end || in->gaps.n
                || (in->first >= at && !v->is_input)
                || !alone(p, v, in, at, end))
                continue;
            if (k->strips ? strips_distance(p, k->strips, v, &distance) : template_distance(p->graph, k, v, &distance))
                VEC_PUSH(p->arena, out->over_dying,
                    ((Over){ in, distance, k->strips ? NOT_ABOVE : template_above(p->graph, k) }));
        }
}

// A loop's carried value is updated in place where its new value is stored after the last read of the old one, or by
// a loop kernel that reads it at the element it stores. Nobody then copies it from step to step.
static void carry_in_place(Plan *p) {
    const Graph *g = p->graph;
    // a loop's body: iteration, condition, carried... -> condition, carried..., scanned...
    for (int i = 2; p->parent && i < g->inputs.n; i++) {
        Value *in = g->inputs.at[i], *out = g->outputs.at[i - 1];
        int uses = 0, last = -1;
        for (int j = 0; j < g->outputs.n; j++) uses += g->outputs.at[j] == in;
        if (uses || out->data || out->graph != g || out->is_input || !type_equal(&in->type, &out->type)) continue;
        Buffer *from = plan_value(p, in).buffer, *to = plan_value(p, out).buffer;
        if (from->place != PLACE_WORK || to->place != PLACE_WORK || from == to) continue;
        if (to->first >= p->kernels.n) continue;                // of no elements: nobody makes it
        for (int k = 0; k < p->kernels.n; k++)
            for (int j = 0; j < p->kernels.at[k]->reads.n; j++)
                if (p->kernels.at[k]->reads.at[j] == in) last = k;
        const Kernel *maker = p->kernels.at[to->first];
        Same same = { in, maker->stores.n ? maker->stores.at[0].index : NULL, NULL };
        bool there = last == to->first && maker->kind == KERNEL_LOOP && maker->stores.n == 1;
        if (there) same.seen = NEW_ARRAY(p->arena, bool, expr_count(maker->exprs) + 1);
        if (last > to->first || (last == to->first && !(there && loads_only_at(&same, maker->stores.at[0].expr))))
            continue;
        to->place = PLACE_ALIAS;
        to->alias = from;
        to->offset = 0;
    }
}

static void place_work(Plan *p) {
    Buffer **stored = NEW_ARRAY(p->arena, Buffer *, p->buffers.n + 1);
    int n = 0;
    double all = 0;
    for (int i = 0; i < p->buffers.n; i++) {
        if (p->buffers.at[i]->place != PLACE_WORK) continue;
        stored[n++] = p->buffers.at[i];
        all += (double)p->buffers.at[i]->bytes;
    }
    if (all > MAX_WORK) {
        diag_error_as(EXIT_LIMIT, NULL,
            "the values between the operators could take %.3g bytes; bound the sizes with --dim NAME=LO..HI", all);
        return;
    }
    if (banks_bytes(p->options) && !p->parent) banks_place(p, n, stored);
    else {
        Arena *scratch = arena_new();
        p->work_bytes = place_buffers(scratch, n, stored, &p->live_bytes);
        arena_free(scratch);
    }
    if (p->work_bytes > MAX_STATIC_WORK && !graph_root(p->graph)->symbols.n)
        diag_error_as(EXIT_LIMIT, NULL, "the values between the operators take %lld GiB, a program's may take %lld",
            (long long)(p->work_bytes >> 30), (long long)(MAX_STATIC_WORK >> 30));
}

// Kernels whose result lies over the end of what they read go from the end.
static void set_ways(const Plan *p) {
    for (int i = 0; i < p->kernels.n; i++) {
        Kernel *k = p->kernels.at[i];
        const Buffer *out = k->writes.n == 1 ? plan_value(p, k->writes.at[0]).buffer : NULL;
        bool back = false;
        for (int j = 0; out && out->place == PLACE_WORK && j < out->over_dying.n; j++) {
            const Over *o = &out->over_dying.at[j];
            const Buffer *in = o->dying;
            const bool meet = in->bank == out->bank && in->offset < out->offset + out->bytes
                && out->offset < in->offset + in->bytes;
            back = back || (meet && out->offset > in->offset - align_up(o->distance));
        }
        template_back(k, back);
    }
}

static void place_weights(Plan *p) {
    for (int i = 0; i < p->buffers.n; i++) {
        Buffer *b = p->buffers.at[i];
        // strings are always in the C file
        if (b->place != PLACE_WEIGHT || b->value->type.dtype == DT_STRING) continue;
        b->offset = p->weight_bytes;
        p->weight_bytes += align_up(b->bytes);
    }
}

// Strings that the program makes travel as addresses, so their bytes are kept through the whole run.
static void place_strings(Plan *p) {
    int64_t bytes = 0;
    for (int i = 0; i < p->kernels.n; i++) bytes += p->kernels.at[i]->string_bytes;
    if (!bytes || p->parent) return;
    p->strings = NEW(p->arena, Buffer);
    *p->strings = (Buffer){
        .place = PLACE_WORK, .bytes = bytes, .first = 0, .last = p->kernels.n - 1, .id = p->buffers.n
    };
    VEC_PUSH(p->arena, p->buffers, p->strings);
}

// Before planning once more: what has been found out about the workspace.
static void forget(Plan *p) {
    for (int i = 0; i < p->kernels.n; i++)
        for (int j = 0; j < p->kernels.at[i]->writes.n; j++) {
            Buffer *b = plan_value(p, p->kernels.at[i]->writes.at[j]).buffer;
            if (!b || !b->over) continue;
            b->place = PLACE_WORK;
            b->over = false;
        }
    for (int i = 0; i < p->buffers.n; i++) {
        Buffer *b = p->buffers.at[i];
        b->first = INT32_MAX;
        b->last = -1;
        b->gaps.n = 0;
        b->over_dying.n = 0;
    }
    p->buffers.n = 0;
    p->weight_bytes = 0;
}

void memory_lifetimes(Plan *p) {
    forget(p);
    memory_ends(p);
    lifetimes(p);
}

bool memory_plan(Plan *p) {
    memory_lifetimes(p);
    place_strings(p);
    carry_in_place(p);
    for (int i = 0; i < p->kernels.n; i++) try_in_place(p, p->kernels.at[i], i);
    for (int i = 0; i < p->kernels.n; i++) try_over(p, p->kernels.at[i], i);
    int errors = diag_errors();
    place_work(p);
    set_ways(p);
    place_weights(p);
    return diag_errors() == errors;
}
