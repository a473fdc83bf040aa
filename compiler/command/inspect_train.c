// SPDX-License-Identifier: MIT OR Apache-2.0
// burncc inspect --train: what learns and what that takes. In: the model as imported, and the programs of its training.
// Out: a line for each parameter (its name, shape, whether it is trained, a running statistic or frozen and why, the
// first node that uses it), bytes of the structs, and what is in memory at the worst moment of each program.
#include "command.h"

#include "grad/train.h"
#include "grad/uses.h"
#include "schedule/schedule.h"

#include <string.h>

enum { SHOWN = 8 };                                     // values at the worst moment

typedef struct Learner { const char *name, *kind, *why; Type type; const Use *use; } Learner;
typedef VEC(Learner) Learners;
static const char trained[] = "trained", running[] = "running", frozen[] = "frozen";

static const Use *first_use(const Uses *all, const char *name) {
    for (int i = 0; i < all->at.n; i++)
        if (all->at.at[i].v->name && !strcmp(all->at.at[i].v->name, name)) return &all->at.at[i];
    return NULL;
}

static bool is_known(const Learners *l, const char *name) {
    for (int i = 0; i < l->n; i++)
        if (!strcmp(l->at[i].name, name)) return true;
    return false;
}

static const char *why_frozen(const Options *o, const Use *u) {
    if (u->idle) return "no loss depends on it";
    bool chosen = o->train_only || o->train_last || o->frozen_params.n;
    if (use_is_statistic(u) && o->frozen_norm) return "--frozen-norm";
    if (chosen) return "not chosen to learn";
    return use_is_statistic(u) ? "a statistic that cannot run" : "each module has its own";
}

static Uses find_uses(Arena *a, const Options *o, const Graph *model, const Training *t) {
    Uses all = { .scratch = a, .frozen = o->frozen_norm };
    uses_find(&all, model, model);
    uses_idle(&all, model, losses_outputs(a, &t->losses, model));
    return all;
}

// Those in the structs, and then those of the model that are not.
static Learners find_learners(Arena *a, const Options *o, const Uses *all, const Training *t) {
    Learners l = { 0 };
    for (int i = 0; i < t->params.n; i++) {
        const Parameter *p = &t->params.at[i];
        if (p->kind == PARAMETER_BATCHES) continue;
        VEC_PUSH(a, l, ((Learner){ .name = p->name, .kind = p->kind == PARAMETER_TRAINED ? trained : running,
            .type = p->type, .use = first_use(all, p->name) }));
    }
    for (int i = 0; i < all->at.n; i++) {
        const Use *u = &all->at.at[i];
        const Value *v = u->v;
        bool weight = v->trainable || use_is_statistic(u);
        if (!weight || !v->name || is_known(&l, v->name)) continue;
        VEC_PUSH(a, l,
            ((Learner){ .name = v->name, .kind = frozen, .why = why_frozen(o, u), .type = v->type, .use = u }));
    }
    return l;
}

typedef struct Sizes { int64_t trained, running, frozen, params, state; int n_trained, n_frozen; } Sizes;

static Sizes sizes_of(const Learners *l, const Training *t) {
    Sizes s = { 0 };
    for (int i = 0; i < l->n; i++) {
        int64_t bytes = type_bytes(&l->at[i].type);
        *(l->at[i].kind == trained ? &s.trained : l->at[i].kind == running ? &s.running : &s.frozen) += bytes;
        s.n_trained += l->at[i].kind == trained;
        s.n_frozen += l->at[i].kind == frozen;
    }
    for (int i = 0; i < t->params.n; i++) s.params += type_bytes(&t->params.at[i].type);
    for (int i = 0; i < t->state.n; i++) s.state += type_bytes(&t->state.at[i].type);
    return s;
}

static void print_learner(Text *t, Arena *a, const Learner *l, int width) {
    text_printf(t, "  %-*s  %-7s  %s", width, text_name(a, l->name), l->kind, type_text(a, NULL, &l->type));
    if (l->why) text_printf(t, ", %s", l->why);
    if (l->use && *node_label(l->use->n)) text_printf(t, "  %s", text_name(a, node_label(l->use->n)));
    text_printf(t, "\n");
}

void inspect_training(Text *t, Arena *a, const Options *o, Graph *model, const Programs *p) {
    const Training *training = p->training;
    Uses all = find_uses(a, o, model, training);
    Learners l = find_learners(a, o, &all, training);
    Sizes s = sizes_of(&l, training);
    int width = 0;
    for (int i = 0; i < l.n; i++)
        if ((int)strlen(l.at[i].name) > width) width = (int)strlen(l.at[i].name);
    text_printf(t, "%-12s %d parameters, %s; running statistics %s; %d frozen, %s\n", "learns", s.n_trained,
        text_bytes(a, s.trained), text_bytes(a, s.running), s.n_frozen, text_bytes(a, s.frozen));
    for (int i = 0; i < l.n; i++) print_learner(t, a, &l.at[i], width);
    text_printf(t, "%-12s parameters %s, gradients %s, optimizer's state %s\n", "structs", text_bytes(a, s.params),
        text_bytes(a, s.params), text_bytes(a, s.state));
    for (int i = 0; i < p->n; i++) {
        if (!graph_trains(p->at[i].plan->graph)) continue;
        text_printf(t, "%-12s at the worst moment of %s, ", "memory", p->at[i].plan->graph->name);
        plan_kept(p->at[i].plan, t, SHOWN);
    }
}

void inspect_training_json(Text *t, Arena *a, const Options *o, Graph *model, const Programs *p) {
    Uses all = find_uses(a, o, model, p->training);
    Learners l = find_learners(a, o, &all, p->training);
    Sizes s = sizes_of(&l, p->training);
    text_printf(t, ",\"learns\":[");
    for (int i = 0; i < l.n; i++) {
        text_printf(t, "%s{\"name\":", i ? "," : "");
        json_quoted(t, l.at[i].name);
        text_printf(t, ",\"kind\":\"%s\",", l.at[i].kind);
        if (l.at[i].why) text_printf(t, "\"why\":\"%s\",", l.at[i].why);
        json_type(t, a, NULL, &l.at[i].type);
        text_printf(t, "}");
    }
    text_printf(t, "],\"params_bytes\":%lld,\"state_bytes\":%lld,\"programs\":[", (long long)s.params,
        (long long)s.state);
    for (int i = 0; i < p->n; i++)
        text_printf(t, "%s{\"name\":\"%s\",\"workspace_bytes\":%lld,\"workspace_bound\":%lld}", i ? "," : "",
            p->at[i].plan->graph->name, (long long)p->at[i].plan->work_bytes, (long long)p->at[i].plan->live_bytes);
    text_printf(t, "]");
}
