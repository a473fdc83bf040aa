// SPDX-License-Identifier: MIT OR Apache-2.0
// Which parameters learn: --train-only, --train-last, --freeze.
//
// In: the uses of a model's parameters and a selection, a list with commas of `biases`, `norms` and regular expressions
// on names: of a parameter, of a node that it is an operand of, or as PyTorch calls it by that node's module. Out:
// parameters that are trainable no more, so that they stay the constants that they were: folded and packed as in
// inference, and without a place in the structs. The idea: nothing else has to know. Backward stops at constants by
// itself, and a batch normalization whose statistics are not selected is one of inference.
#define _POSIX_C_SOURCE 200809L
#include "select.h"
#include "build/build.h"

#include <regex.h>
#include <string.h>

enum { MOST_LISTED = 8 };

// ---------------------------------------------------------------- what a use is for

// At most one of its dimensions is more than 1.
static bool is_vector(const Type *t) {
    int longer = 0;
    for (int i = 0; i < t->rank; i++) longer += t->dim[i] != 1;
    return longer <= 1;
}

static bool is_norm(const Node *n) {
    return n->op == OP_BatchNorm || n->op == OP_LayerNorm || n->op == OP_GroupNorm || n->op == OP_InstanceNorm
        || n->op == OP_RMSNorm;
}

static bool is_cell(const Node *n) { return n->op == OP_LSTM || n->op == OP_GRU || n->op == OP_RNN; }

// Is it added: to products and convolutions, or behind a normalization?
static bool is_bias(const Use *u) {
    if (!is_vector(&u->v->type) && !is_cell(u->n)) return false;
    if (is_norm(u->n)) return u->i == 2;
    if (is_cell(u->n)) return u->i == 3;
    return u->n->op == OP_Add || u->n->op == OP_Sub;
}

// Is it a scale or shift of a normalization, its statistic, or a vector that something is multiplied by?
static bool is_of_norm(const Use *u) {
    return (is_norm(u->n) && u->i) || (u->n->op == OP_Mul && is_vector(&u->v->type));
}

// ---------------------------------------------------------------- where a parameter meets what is computed

static void number_nodes(Graph *g, int number) {        // bodies' are the number of the node that they belong to
    for (Node *n = g->first; n; n = n->next) {
        n->mark = g->parent ? number : number++;
        for (int i = 0; i < n->n_bodies; i++) number_nodes(n->bodies[i], n->mark);
    }
}

static bool is_fixed(const bool *fixed, const Value *v) { return !v || (v->def ? fixed[v->id] : !v->is_input); }

// By value id: what depends on constants alone.
static void mark_fixed(const Graph *g, bool *fixed) {
    for (const Node *n = g->first; n; n = n->next) {
        bool all = n->n_in > 0 && !n->n_bodies;
        for (int i = 0; i < n->n_in; i++) all = all && is_fixed(fixed, n->in[i]);
        for (int i = 0; i < n->n_out; i++) fixed[n->out[i]->id] = all;
        for (int i = 0; i < n->n_bodies; i++) mark_fixed(n->bodies[i], fixed);
    }
}

// The first node of the same graph that reads what u's node gives; NULL: none
static bool reader_of(Use *u) {
    for (Node *m = u->n->next; m; m = m->next)
        for (int i = 0; i < m->n_in; i++) {
            if (!m->in[i] || m->in[i]->def != u->n) continue;
            u->n = m;
            u->i = i;
            return true;
        }
    return false;
}

// The uses as they are behind what only transposes, cuts or joins parameters.
const Use *select_places(const Uses *all, Graph *model) {
    Use *places = NEW_ARRAY(all->scratch, Use, all->at.n + 1);
    bool *fixed = NEW_ARRAY(all->scratch, bool, model->value_count + 1);
    number_nodes(model, 0);
    mark_fixed(model, fixed);
    for (int i = 0; i < all->at.n; i++) {
        places[i] = all->at.at[i];
        while (places[i].n->n_out && fixed[places[i].n->out[0]->id] && reader_of(&places[i])) continue;
    }
    return places;
}

// ---------------------------------------------------------------- selections

typedef bool Means(const Use *place);
typedef struct Item { Means *means; regex_t re; } Item;         // means NULL: re

static bool meets(const Item *item, Arena *a, const Use *u, const Use *place) {
    if (item->means) return item->means(place);
    const char *names[] = { u->v->name, node_label(u->n), use_own_name(a, u) };
    for (size_t i = 0; i < COUNT(names); i++)
        if (names[i] && *names[i] && !regexec(&item->re, names[i], 0, NULL, 0)) return true;
    return false;
}

static bool item_open(Item *item, const char *option, const char *text) {
    char why[128];
    *item = (Item){ .means = !strcmp(text, "biases") ? is_bias : !strcmp(text, "norms") ? is_of_norm : NULL };
    int code = item->means ? 0 : regcomp(&item->re, text, REG_EXTENDED | REG_NOSUB);
    if (!code) return true;
    regerror(code, &item->re, why, sizeof why);
    diag_error_as(EXIT_USAGE, NULL, "%s wants biases, norms or a regular expression, not '%s': %s", option, text, why);
    return false;
}

// How far a name is from what a regular expression says: the longest run of letters that they share, the longer the
// nearer.
static int shared(const char *text, const char *name) {
    int best = 0;
    for (const char *s = text; *s; s++)
        for (const char *t = name; *t; t++) {
            int n = 0;
            while (s[n] && s[n] == t[n]) n++;
            best = n > best ? n : best;
        }
    return best;
}

static void report_none(const Uses *all, const char *option, const char *text) {
    const char *near[3] = { NULL };
    int likeness[3] = { 0 };
    for (int i = 0; i < all->values.n; i++) {
        const char *name = all->values.at[i]->name;
        int like = name ? shared(text, name) : 0, k = 3;
        while (k > 0 && like > likeness[k - 1]) k--;
        for (int j = 2; j > k; j--) {
            near[j] = near[j - 1];
            likeness[j] = likeness[j - 1];
        }
        if (k == 3) continue;
        near[k] = name;
        likeness[k] = like;
    }
    Text t;
    text_init(&t, all->scratch);
    text_append(&t, "", 0);
    for (int k = 0; k < 3 && near[k]; k++) text_printf(&t, "%s%s", k ? ", " : "; there is ", near[k]);
    diag_error_as(EXIT_USAGE, NULL, "%s %s: matches no parameter and none of their nodes%s", option, text, t.at);
}

// The end of the first item of a list: at a comma that is not between braces.
static const char *item_end(const char *s) {
    int depth = 0;
    for (; *s && (*s != ',' || depth > 0); s++) depth += *s == '{' ? 1 : *s == '}' ? -1 : 0;
    return s;
}

bool select_uses(const Uses *all, const char *option, const char *text, bool *marks) {
    bool found = false;                                 // a word alone may mean nothing: a model without norms
    for (const char *s = text, *end;; s = end + 1) {
        end = item_end(s);
        Item item;
        const char *one = arena_strndup(all->scratch, s, (size_t)(end - s));
        if (!item_open(&item, option, one)) return false;
        bool any = false;
        for (int i = 0; i < all->at.n; i++) {
            bool hit = meets(&item, all->scratch, &all->at.at[i], &all->places[i]);
            marks[i] = marks[i] || hit;
            any = any || hit;
        }
        if (!item.means) regfree(&item.re);
        found = found || any;
        bool vain = !any && (!item.means || (!found && !*end));
        if (vain) report_none(all, option, one);
        if (vain || !*end) return !vain;
    }
}

// ---------------------------------------------------------------- --train-last

static bool is_matrix(const Use *place) {
    return !use_is_statistic(place) && !is_vector(&place->v->type) && !is_bias(place);
}

// The number of the node where the last `count` layers begin: modules with a matrix of weights. -1: there are fewer,
// and *found says how many.
static int last_layers(const Uses *all, int count, int *found) {
    const Node *at[2] = { NULL };                       // the layer found last, and the next one before it
    int begin = -1;
    for (*found = 0; *found < count; ++*found, at[0] = at[1], begin = at[0]->mark) {
        at[1] = NULL;
        for (int i = 0; i < all->at.n; i++) {
            const Node *n = all->places[i].n;
            if (all->at.at[i].idle || !is_matrix(&all->places[i])) continue;
            bool before = !at[0] || (n->mark < begin && !same_module(n, at[0]));
            if (before && (!at[1] || n->mark > at[1]->mark)) at[1] = n;
        }
        if (!at[1]) return -1;
    }
    return begin;
}

static bool mark_last(const Uses *all, int count, bool *marks) {
    int found, begin = last_layers(all, count, &found);
    if (begin < 0) {
        diag_error_as(EXIT_USAGE, NULL, "--train-last %d: the model has %d layers with weights", count, found);
        return false;
    }
    for (int i = 0; i < all->at.n; i++) marks[i] = all->places[i].n->mark >= begin;
    for (int i = 0; i < all->at.n; i++)                 // of their modules all
        for (int k = 0; k < all->at.n && !marks[i]; k++) {
            const Node *n = all->places[k].n;
            marks[i] = n->mark >= begin && is_matrix(&all->places[k]) && same_module(n, all->places[i].n);
        }
    return true;
}

// ---------------------------------------------------------------- what learns

void select_share(const Uses *all, bool *marks) {
    const bool *given = arena_copy(all->scratch, marks, (size_t)(all->at.n + 1) * sizeof(bool));
    for (int i = 0; i < all->at.n; i++)
        for (int k = 0; k < all->at.n && !marks[i]; k++) {
            const Use *u = &all->at.at[i], *w = &all->at.at[k];
            marks[i] = given[k] && u->v == w->v && use_is_statistic(u) == use_is_statistic(w);
        }
}

// The statistics of a normalization run both or stay both.
static void pair(const Uses *all, bool *learns) {
    for (int i = 0; i < all->at.n; i++)
        for (int k = 0; k < all->at.n; k++) {
            const Use *u = &all->at.at[i], *w = &all->at.at[k];
            if (u->n == w->n && use_is_statistic(u) && use_is_statistic(w) && !learns[k]) learns[i] = false;
        }
}

static void leave(Uses *all, const bool *learns) {
    for (int i = 0; i < all->at.n; i++) {
        Use *u = &all->at.at[i];
        if (learns[i]) continue;
        if (use_is_statistic(u)) u->stays = true;
        else u->v->trainable = false;
    }
}

void select_used(Uses *all, const Graph *model, const bool *outputs) {
    uses_idle(all, model, outputs);
    Loc file = { .file = model->file, .node = -1 };
    Text t;
    text_init(&t, all->scratch);
    int n = 0;
    for (int i = 0; i < all->values.n; i++) {
        Value *v = all->values.at[i];
        bool idle = v->trainable;
        for (int k = 0; k < all->at.n && idle; k++) idle = all->at.at[k].v != v || all->at.at[k].idle;
        if (!idle) continue;
        v->trainable = false;
        if (n++ < MOST_LISTED) text_printf(&t, "%s%s", n > 1 ? ", " : "", v->name ? v->name : "");
    }
    if (n)
        diag_note(&file, "no loss depends on %d of the parameters, which stay as they are: %s%s", n, t.at,
            n > MOST_LISTED ? ", ..." : "");
}

static void note_learning(const Uses *all, const Graph *model, const int *before, int n_before) {
    Loc file = { .file = model->file, .node = -1 };
    int n = 0;
    int64_t numbers = 0, of = 0;
    Text t;
    text_init(&t, all->scratch);
    for (int i = 0; i < n_before; i++) {
        const Value *v = all->values.at[before[i]];
        of += type_count(&v->type);
        if (!v->trainable) continue;
        numbers += type_count(&v->type);
        if (n++ < MOST_LISTED) text_printf(&t, "%s%s", n > 1 ? ", " : "", v->name ? v->name : "");
    }
    if (n)
        diag_note(&file, "%d of %d parameters learn (%lld of %lld numbers): %s%s", n, n_before, (long long)numbers,
            (long long)of, t.at, n > MOST_LISTED ? ", ..." : "");
}

// The values that are trained where nothing is said.
static int trained_values(const Uses *all, int *at) {
    int n = 0;
    for (int i = 0; i < all->values.n; i++) {
        bool used = false;
        for (int k = 0; k < all->at.n && !used; k++)
            used = all->at.at[k].v == all->values.at[i] && !use_is_statistic(&all->at.at[k]);
        if (used && all->values.at[i]->trainable) at[n++] = i;
    }
    return n;
}

bool select_learning(Uses *all, Graph *model, const Options *o) {
    if (!o->train_only && !o->train_last && !o->frozen_params.n) return true;
    int n = all->at.n;
    bool *learns = NEW_ARRAY(all->scratch, bool, n + 1), *marks = NEW_ARRAY(all->scratch, bool, n + 1);
    int *before = NEW_ARRAY(all->scratch, int, all->values.n + 1), n_before = trained_values(all, before);
    int *left = NEW_ARRAY(all->scratch, int, all->values.n + 1);
    for (int i = 0; i < n; i++) learns[i] = !o->train_only;
    if (o->train_only && !select_uses(all, "--train-only", o->train_only, learns)) return false;
    if (o->train_last && !mark_last(all, o->train_last, marks)) return false;
    for (int i = 0; i < n && o->train_last; i++) learns[i] = learns[i] && marks[i];
    select_share(all, learns);
    memset(marks, 0, (size_t)n * sizeof(bool));
    for (int k = 0; k < o->frozen_params.n; k++)
        if (!select_uses(all, "--freeze", o->frozen_params.at[k], marks)) return false;
    select_share(all, marks);
    for (int i = 0; i < n; i++) learns[i] = learns[i] && !marks[i];
    pair(all, learns);
    leave(all, learns);
    int n_left = trained_values(all, left);
    if (!n_left)
        diag_error_as(EXIT_USAGE, NULL, "--train-only, --train-last and --freeze leave no parameter that learns");
    else note_learning(all, model, before, n_before);
    return n_left > 0;
}
