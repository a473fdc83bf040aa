// SPDX-License-Identifier: MIT OR Apache-2.0
// The run function of a program: nothing but the kernels' calls over fixed offsets of the caller's workspace, after
// the checks of its arguments. Control flow is C's own, around the calls of its bodies.
#include "run.h"

#include <string.h>

static bool same_place(const Plan *p, const Value *x, const Value *y) {
    int64_t at[2];
    Buffer *bx = plan_value(p, x).buffer, *by = plan_value(p, y).buffer;
    return x == y || (bx && by && buffer_owner(bx, &at[0]) == buffer_owner(by, &at[1]));
}

// What follows is the host's: it reads what kernels have written.
static void print_wait(RunText *r, int depth) {
    if (!r->g->handover) return;
    c_line(r, depth);
    text_printf(&r->body, "if (burn_gpu->wait(burn_gpu)) return -4; /* BURN_EDEVICE */\n");
}

static const char *copying(const RunText *r, const char *gpu, const char *host) { return r->g->handover ? gpu : host; }

static void copy(RunText *r, int depth, Value *to, const char *advance, Value *from) {
    const Graph *g = r->s->graph;
    if (same_place(r->s->program->plan, to, from) || type_count_upper(g, &from->type) == 0) return;
    c_line(r, depth);
    const char *bytes =  c_bytes(r->g->arena, g, &from->type);
    if (!type_is_static(&from->type)) bytes = arena_printf(r->g->arena, "(size_t)(%s)", bytes);
    // zeros: region.c
    if (from->data && !plan_value(r->s->program->plan, from).buffer)
        text_printf(&r->body, copying(r, "burn_gpu->zero(burn_gpu, %s%s, %s);\n", "memset(%s%s, 0, %s);\n"),
            c_value_place(r, to), advance, bytes);
    else
        text_printf(&r->body, copying(r, "burn_gpu->copy(burn_gpu, %s%s, %s, %s);\n", "memcpy(%s%s, %s, %s);\n"),
            c_value_place(r, to), advance, c_value_place(r, from), bytes);
}

static void print_steps(RunText *r, const Plan *plan, int depth);

static void print_if(RunText *r, const Kernel *k, int depth) {
    const Node *n = k->anchor;
    print_wait(r, depth);
    for (int i = 0; i < 2; i++) {
        c_line(r, depth);
        if (i == 0) text_printf(&r->body, "if (*(%s) != 0) {\n", c_value_place(r, n->in[0]));
        else text_printf(&r->body, "} else {\n");
        print_steps(r, k->region.bodies[i], depth + 1);
        for (int j = 0; j < n->n_out; j++) copy(r, depth + 1, n->out[j], "", n->bodies[i]->outputs.at[j]);
    }
    c_line(r, depth);
    text_printf(&r->body, "}\n");
}

// Does a kernel of the loop's body read v's bytes, or the loop copy them from output `first` on?
static bool body_reads(const Plan *body, const Value *v, int first) {
    for (int i = first; i < body->graph->outputs.n; i++)
        if (same_place(body, body->graph->outputs.at[i], v)) return true;
    for (int i = 0; i < body->kernels.n; i++)
        for (int j = 0; j < body->kernels.at[i]->reads.n; j++)
            if (same_place(body, body->kernels.at[i]->reads.at[j], v)) return true;
    return false;
}

// A scalar: the number where it is constant, else the element's place.
static const char *scalar_text(RunText *r, Value *v) {
    if (v->data) return arena_printf(r->g->arena, "%lld", (long long)tensor_get_i(v->data, 0));
    return arena_printf(r->g->arena, "*(%s)", c_value_place(r, v));
}

static bool always(const Value *condition) {
    return !condition || (condition->data && tensor_get_i(condition->data, 0));
}

static const char *trips_text(RunText *r, const Node *n) {
    int count;
    const int64_t *trips = node_ints(n, "trips", &count);
    if (trips) return spell_size(r->g->arena, n->graph, trips[0]);
    return n->in[0] ? scalar_text(r, n->in[0]) : "INT64_MAX";
}

static void print_loop_head(RunText *r, const Kernel *k, int depth, const char *it, const char *go) {
    const Node *n = k->anchor;
    print_wait(r, depth);
    if (go) {
        c_line(r, depth);
        text_printf(&r->body, "uint8_t %s = %s;\n", go, n->in[1] ? scalar_text(r, n->in[1]) : "1");
    }
    c_line(r, depth);
    text_printf(&r->body, "for (int64_t %s = 0; ", it);
    if (go) text_printf(&r->body, "%s != 0 && ", go);
    text_printf(&r->body, "%s < %s; %s++) {\n", it, trips_text(r, n), it);
    for (int i = 0; i < 2; i++) {
        Value *v = n->bodies[0]->inputs.at[i];
        if (!body_reads(k->region.bodies[0], v, go ? 0 : 1)) continue;
        c_line(r, depth + 1);
        const char *value = i ? go ? go : "1" : it;
        if (r->g->handover)
            text_printf(&r->body, "burn_gpu->put(burn_gpu, %s, &(const %s){%s}, sizeof(%s));\n", c_value_place(r, v),
                spell_c_storage(v->type.dtype), value, spell_c_storage(v->type.dtype));
        else text_printf(&r->body, "*(%s) = %s;\n", c_value_place(r, v), value);
    }
}

// Inputs: trip count or none, condition or none, carried values. Body: (iteration, condition, carried) -> (condition,
// carried, scanned). Scanned values are copied first: they may be carried ones of before.
static void print_loop(RunText *r, const Kernel *k, int depth) {
    const Node *n = k->anchor;
    const Graph *b = n->bodies[0];
    int carried = n->n_in - 2, id = r->loops++;
    bool goes_on = always(n->in[1]) && (always(b->outputs.at[0]) || b->outputs.at[0] == b->inputs.at[1]);
    const char *it = arena_printf(r->g->arena, "iteration%d", id),
               *go = goes_on ? NULL : arena_printf(r->g->arena, "go%d", id);
    for (int i = 0; i < carried; i++) copy(r, depth, b->inputs.at[2 + i], "", n->in[2 + i]);
    if (r->g->handover && r->g->handover->takes_loop(r->g, k)) {
        r->g->handover->loop(r, k, depth, trips_text(r, n));
        for (int i = 0; i < carried; i++) copy(r, depth, n->out[i], "", b->inputs.at[2 + i]);
        return;
    }
    print_loop_head(r, k, depth, it, go);
    print_steps(r, k->region.bodies[0], depth + 1);
    for (int i = carried; i < n->n_out; i++) {
        Value *v = b->outputs.at[1 + i];
        copy(r, depth + 1, n->out[i],
            arena_printf(r->g->arena, " + %s * %s", it,
                spell_size(r->g->arena, r->s->graph, type_size(graph_root(r->s->graph), &v->type))),
            v);
    }
    if (go) {
        print_wait(r, depth + 1);
        c_line(r, depth + 1);
        text_printf(&r->body, "%s = %s;\n", go, scalar_text(r, b->outputs.at[0]));
    }
    for (int i = 0; i < carried; i++) copy(r, depth + 1, b->inputs.at[2 + i], "", b->outputs.at[1 + i]);
    c_line(r, depth);
    text_printf(&r->body, "}\n");
    for (int i = 0; i < carried; i++) copy(r, depth, n->out[i], "", b->inputs.at[2 + i]);
}

static void print_region(RunText *r, const Kernel *k, int depth) {
    c_mark(r, &r->body, depth, C_RUN_TRACK, k);
    if (k->anchor->op == OP_If) print_if(r, k, depth);
    else print_loop(r, k, depth);
    c_mark(r, &r->body, depth, C_RUN_TRACK, NULL);
}

static bool is_known(const RunText *r, const Graph *root, Dim d) {
    for (int i = 0; i < root->symbols.n; i++)
        if (!r->known[i] && dim_uses(root, d, i)) return false;
    return true;
}

// Dimensions that the model takes to be equal, as soon as both are known.
static void print_required(RunText *r, const Graph *g, bool *checked, int depth) {
    const Graph *root = graph_root(g);
    for (int i = 0; i < g->required.n; i++) {
        const DimPair *pair = &g->required.at[i];
        Dim a = dim_bound(root, pair->a), b = dim_bound(root, pair->b);
        if (checked[i] || a == b || (dim_is_const(a) && dim_is_const(b)) || !is_known(r, root, a)
            || !is_known(r, root, b))
            continue;
        checked[i] = true;
        c_line(r, depth);
        text_printf(&r->body, "if (%s != %s) return -1; /* BURN_EINVAL */\n", spell_size(r->g->arena, root, a),
            spell_size(r->g->arena, root, b));
    }
}

static void print_sizes(RunText *r, const Kernel *k, int depth) {
    print_wait(r, depth);
    for (int i = 0; i < k->sizes.n; i++) {
        const Symbol *s = c_symbol(r->s->graph, k->sizes.at[i]);
        c_line(r, depth);
        text_printf(&r->body, "const int64_t %s = (%s)[%lld];\n", spell_symbol(r->g->arena, s),
            c_value_place(r, s->from), (long long)s->at);
        c_line(r, depth);
        c_bounds_print(&r->body, s);
        r->known[k->sizes.at[i]] = true;
    }
}

// An output whose sizes the program found out: it says them.
static void print_shapes(RunText *r) {
    const Graph *g = r->s->graph;
    for (int i = 0; i < g->outputs.n; i++) {
        const Type *t = &g->outputs.at[i]->type;
        if (!c_is_measured(g, t)) continue;
        for (int j = 0; j < t->rank; j++)
            text_printf(
                &r->body, "    %s_shape[%d] = %s;\n", r->s->outs.name[i], j, spell_size(r->g->arena, g, t->dim[j]));
    }
}

// States that were computed beside their old values.
static void print_states(RunText *r) {
    const Plan *p = r->s->program->plan;
    const Graph *g = r->s->graph;
    for (int i = 0; i < g->outputs.n; i++) {
        Value *v = g->outputs.at[i];
        int64_t at;
        if (v->role != ROLE_STATE || buffer_owner(plan_value(p, v).buffer, &at)->place != PLACE_WORK) continue;
        c_line(r, 1);
        text_printf(&r->body, copying(r, "burn_gpu->copy(burn_gpu, %s, %s, %lld);\n", "memcpy(%s, %s, %lld);\n"),
            r->s->outs.at[i], c_value_place(r, v), (long long)type_bytes(&v->type));
    }
}

// A loss has to be finite. The bits tell, for compilers may take any float to be finite (-ffast-math).
static void print_losses(const Signature *s, Text *out) {
    const Graph *gr = s->graph;
    for (int i = 0; i < gr->outputs.n; i++) {
        const Value *v = gr->outputs.at[i];
        if (v->role != ROLE_LOSS) continue;
        const bool wide = v->type.dtype == DT_F64;
        text_printf(out, "    uint%d_t burn_bits;\n    memcpy(&burn_bits, %s, %d);\n", wide ? 64 : 32, s->outs.at[i],
            wide ? 8 : 4);
        text_printf(out, "    if (%s) return -9; /* BURN_ENAN */\n",
            wide ? "(burn_bits >> 52 & 2047) == 2047" : "(burn_bits >> 23 & 255) == 255");
    }
}

static void print_last_losses(CFile *g, const Signature *s) {
    bool some = false;
    for (int i = 0; i < s->graph->outputs.n; i++) some = some || s->graph->outputs.at[i]->role == ROLE_LOSS;
    if (some && g->handover)
        text_printf(&g->c, "    if (burn_gpu->wait(burn_gpu)) return -4; /* BURN_EDEVICE */\n");
    print_losses(s, &g->c);
}

// Before parameters are updated.
bool c_losses_after(const Plan *p, const Kernel *k) {
    for (int i = 0; i < k->writes.n; i++)
        if (k->writes.at[i]->role == ROLE_LOSS) return c_struct_written(p->graph, ROLE_PARAM);
    return false;
}

// The words that it is made of take ten times its memory, and go with `own`.
static void print_call(RunText *r, const Kernel *k, int depth) {
    Arena *whole = r->g->arena, *own = arena_new();
    r->g->arena = own;
    if (!((const KernelText *)k->text)->handed) print_wait(r, depth);
    if (k->strips) c_strips(r, k->strips, depth);
    else c_call(r, k, depth);
    r->g->arena = whole;
    arena_free(own);
}

static void print_steps(RunText *r, const Plan *plan, int depth) {
    bool *checked = NEW_ARRAY(r->g->arena, bool, plan->graph->required.n + 1);
    print_required(r, plan->graph, checked, depth);
    for (int i = 0; i < plan->kernels.n; i++) {
        const Kernel *k = plan->kernels.at[i];
        if (k->kind == KERNEL_SIZES) {
            print_sizes(r, k, depth);
            print_required(r, plan->graph, checked, depth);
            continue;
        }
        r->ran = plan_ran(plan, i);
        const int rolled = c_rolled(r, plan, i, depth);
        if (rolled) {
            i += rolled - 1;
            continue;
        }
        if (k->strips && k != k->strips->member[0]) continue;
        if (k->kind == KERNEL_REGION) print_region(r, k, depth);
        else print_call(r, k, depth);
        if (c_losses_after(plan, k)) {
            print_wait(r, depth);
            print_losses(r->s, &r->body);
        }
        if (plan == r->s->program->plan) VEC_PUSH(r->g->arena, r->cuts, r->body.n);
    }
}

static void print_range(CFile *g, const Graph *gr, const Value *v, const char *name) {
    const struct Allowed *r = v->range;
    if (v->role == ROLE_VALUE) {
        text_printf(&g->c, "    if (!(%s >= %lld)) return -8; /* BURN_ERANGE */\n", name, (long long)r->lo);
        return;
    }
    text_printf(&g->c, "    for (int64_t burn_i = 0; burn_i < %s; burn_i++)\n",
        spell_size(g->arena, gr, type_size(graph_root(gr), &v->type)));
    const char *other = "";
    if (r->ignores) other = arena_printf(g->arena, " && %s[burn_i] != %lld", name, (long long)r->ignored);
    text_printf(&g->c, "        if (%s%s[burn_i] < %lld || %s[burn_i] > %lld%s%s) return -8; /* BURN_ERANGE */\n",
        *other ? "(" : "", name, (long long)r->lo, name, (long long)r->hi, *other ? ")" : "", other);
}

static void print_checks(CFile *g, const Signature *s) {
    const Graph *gr = s->graph;
    Text t;
    text_init(&t, g->arena);
    if (c_has_workspace(s->program)) {
        text_printf(&t, "!ws");
        c_banks_check(g, s->program, &t);
    }
    if (c_takes_weights(g, s->program)) text_printf(&t, "%s!weights", t.n ? " || " : "");
    for (int side = 0; side < 2 && !g->options->io_inside; side++)
        for (int i = 0; i < (side ? gr->outputs.n : gr->inputs.n); i++) {
            const Value *v = side ? gr->outputs.at[i] : gr->inputs.at[i];
            if (v->role == ROLE_VALUE || (c_in_struct(v) && c_struct_seen(gr, i, side, v->role))) continue;
            text_printf(&t, "%s!%s", t.n ? " || " : "",
                c_in_struct(v) ? c_struct_param(v->role) : (side ? &s->outs : &s->in)->name[i]);
            if (side && c_is_measured(gr, &v->type)) text_printf(&t, " || !%s_shape", s->outs.name[i]);
        }
    if (g->threads) text_printf(&t, "%s(threads && !threads->run)", t.n ? " || " : "");
    if (t.n) text_printf(&g->c, "    if (%s) return -1; /* BURN_EINVAL */\n", t.at);
    for (int i = 0; i < s->sizes.n; i++) {
        text_printf(&g->c, "    ");
        c_bounds_print(&g->c, c_symbol(gr, s->sizes.at[i]));
    }
    for (int i = 0; i < gr->inputs.n; i++)
        if (gr->inputs.at[i]->range) print_range(g, gr, gr->inputs.at[i], s->in.name[i]);
}

// Hyper-parameters that no update reads, as where only biases learn and they are others' than the optimizer's own.
static void print_unread(CFile *g, const Signature *s, const RunText *r) {
    for (int i = 0; i < s->graph->inputs.n; i++) {
        const char *name = s->in.name[i];
        if (s->graph->inputs.at[i]->role != ROLE_VALUE || s->graph->inputs.at[i]->range) continue;
        if (!(r->body.n && c_says_word(r->body.at, name))) text_printf(&g->c, "    (void)%s;\n", name);
    }
}

static void print_copy_call(CFile *g, const Signature *s, const Target *t) {
    text_printf(&g->ends, "return %s_on%s(", s->program->name, c_target_suffix(g->arena, t));
    c_signature_parameters(g, &g->ends, s, false);
    text_printf(&g->ends, ");\n");
}

// The function that users call, where there are several targets: the widest that the processor has. The compiler's
// library keeps what it has in memory, so this costs a few loads.
static void print_choice(CFile *g, const Signature *s) {
    const Target *all = &g->options->machine;
    c_signature_print(g, &g->ends, s, s->program->name);
    text_printf(&g->ends, "\n{\n#if BURN_SEVERAL\n");
    for (int i = all->n_parts - 1; i >= 0; i--) {
        text_printf(&g->ends, "    if (%s)\n        ", c_target_test(g->arena, all->parts[i]));
        print_copy_call(g, s, all->parts[i]);
    }
    text_printf(&g->ends, "    return -7; /* BURN_ENODEV */\n#else\n    ");
    print_copy_call(g, s, NULL);
    text_printf(&g->ends, "#endif\n}\n\n");
}

const char *c_work(const RunText *r) {
    return plan_slack(r->s->program->plan) ? "ws->bytes + (64 - (uintptr_t)ws->bytes % 64) % 64" : "ws->bytes";
}

const char *c_constants(const RunText *r) {
    return arena_printf(r->g->arena, "(const unsigned char *)weights + %d", WEIGHTS_HEADER);
}

void c_run(CFile *g, const Signature *s) {
    const Program *p = s->program;
    RunText r = { .g = g, .s = s };
    const Graph *root = graph_root(p->plan->graph);
    const bool several = g->options->machine.n_parts > 0;
    text_init(&r.body, g->arena);
    text_init(&r.tables, g->arena);
    text_init(&r.tasks, g->arena);
    r.known = NEW_ARRAY(g->arena, bool, root->symbols.n);
    for (int i = 0; i < s->sizes.n; i++) r.known[s->sizes.at[i]] = true;
    print_steps(&r, p->plan, 1);
    print_shapes(&r);
    print_states(&r);
    if (r.tables.n) text_append(&g->c, r.tables.at, r.tables.n);
    if (r.tasks.n) text_append(&g->c, r.tasks.at, r.tasks.n);
    const bool stretches = c_has_stretches(&r);
    if (stretches) c_stretches(&r);
    if (several) text_printf(&g->c, "static ");
    if (g->handover) c_steps_begin(g, s);
    else c_signature_print(g, &g->c, s, several ? arena_printf(g->arena, "%s_on", p->name) : p->name);
    text_printf(&g->c, "\n{\n");
    print_checks(g, s);
    const Buffer *pool = p->plan->strings;
    const char *pools = g->handover ? "burn_pool_at" :
        pool && c_has_banks(g)      ? arena_printf(g->arena, "work%d", pool->bank) :
                                      "work";
    if (pool) r.banks |= 1u << pool->bank;
    for (int i = 0; c_has_banks(g) && i < g->options->banks.n; i++)
        if (r.banks >> i & 1u)
            text_printf(&g->c, "    unsigned char *const work%d = ws->%s->bytes;\n", i, c_bank_name(g, i));
    if ((pool || r.uses[BASE_WORK]) && !c_has_banks(g) && !stretches)
        text_printf(&g->c, "    unsigned char *const work = %s;\n", c_work(&r));
    if (pool)
        text_printf(&g->c, "    burn_pool strings = {(char *)%s + %lld, (char *)%s + %lld};\n", pools,
            (long long)pool->offset, pools, (long long)(pool->offset + pool->bytes));
    if (r.uses[BASE_CONSTANTS] && g->handover) c_steps_constants(g);
    else if (r.uses[BASE_CONSTANTS] && !stretches)
        text_printf(&g->c, "    const unsigned char *const constants = %s;\n", c_constants(&r));
    if (g->threads && !stretches && !(r.body.n && c_says_word(r.body.at, "threads")))
        text_printf(&g->c, "    (void)threads;\n");
    print_unread(g, s, &r);
    if (r.body.n) text_append(&g->c, r.body.at, r.body.n);
    if (!c_struct_written(s->graph, ROLE_PARAM)) print_last_losses(g, s);
    text_printf(&g->c, "    return 0;\n}\n\n");
    if (several) print_choice(g, s);
    if (g->handover) c_steps_end(g, s);
}
