// SPDX-License-Identifier: MIT OR Apache-2.0
// burncc verify --gradients: the gradients that training code computes, against differences of the loss. In: the model
// and its parameters, --input files or random values, targets that the loss takes. Out: a line a parameter, and one of
// all,
//   conv1.weight  f32[8,1,3,3]  32 elements, 0 at kinks, worst 2.1e-07 at 17 [1,0,2,2]: 0.0123, by differences 0.0123
//   pass gradients=312 worst=2.1e-07 rounding=1.1e-07 parameter=conv1.weight kinks=3 parameters=12
//
// The code is compiled as asked for. The loss is another program, of the same graph in training mode with every float
// in double precision (grad/widen.c); differences.c takes its differences. Errors are relative to the largest gradient
// of a parameter; where it is by rounding that gradients are so far off they may be.
#include "module.h"

#include "codegen/codegen.h"
#include "grad/train.h"
#include "passes/passes.h"

#include <math.h>
#include <string.h>

static const double usual_error = 1e-3, usual_small_error = 5e-2;      // of f32; where values are rounded to 16 bits
static const double usual_seconds = 20;
static const double rounding_share = 4;                 // roundings of a whole step to those of its parameters

// ---------------------------------------------------------------- the loss in double precision

static const char *reader_words(Arena *a, const Value *v, const Graph *g) {
    for (const Node *n = g->first; n; n = n->next)
        for (int i = 0; i < n->n_in; i++)
            if (n->in[i] == v && n->loc) return node_words(a, n);
    return "no node";
}

// The graph, with the parameters' inputs as plain ones; said: by its inputs, which node uses each.
static Graph *loss_graph(Arena *a, const Options *o, const Model **model) {
    *model = model_open(a, o);
    Graph *g = *model ? model_graph(a, *model, o) : NULL;
    Training *t = g ? train_parameters(g, o) : NULL;
    if (!t) return NULL;
    pass_bind_dims(g, o);
    Graph *loss = diag_errors() ? NULL : train_loss(t, g, "loss");
    if (!loss || !graph_widen(loss)) return NULL;
    loss->outputs.n = loss->output_names.n = 1;         // without statistics of the batch
    loss->outputs.at[0]->role = ROLE_NONE;
    return loss;
}

// Which parameter each of the graph's inputs is; -1: none.
static void find_parameters(Arena *a, const Graph *g, Differences *d) {
    for (int i = 0; i < d->n; i++) {
        DiffParameter *p = &d->at[i];
        for (int k = 0; k < g->inputs.n; k++)
            if (g->inputs.at[k]->role == ROLE_PARAM && !strcmp(g->inputs.at[k]->name, p->name)) {
                p->input = k;
                p->node = reader_words(a, g->inputs.at[k], g);
            }
    }
}

// Threads, libraries and strict sums are for the code that is looked at.
static Options *loss_options(Arena *a, const Options *o) {
    Options *own = arena_copy(a, o, sizeof *o);
    own->train = false;
    own->fast_math = true;                              // sums in any order: they are in double precision
    own->precision = own->blas = NULL;
    own->threads = 0;
    own->records = NULL;
    own->quiet = true;
    backend_target("native", &own->machine);
    own->target = "native";
    return own;
}

static Built *build_loss(const Options *o, Differences *d) {
    Arena *a = arena_new();
    const Model *m;
    Options *own = loss_options(a, o), *of_training = arena_copy(a, o, sizeof *o);
    of_training->quiet = true;                          // what there is to say the code's compilation says
    Graph *g = loss_graph(a, of_training, &m);
    if (g) find_parameters(a, g, d);
    for (int i = 0; g && i < g->inputs.n; i++) g->inputs.at[i]->role = ROLE_NONE;
    Programs *p = g ? compile_graph(a, own, m, g) : NULL;
    if (p) return build_program(a, own, p);
    arena_free(a);
    return NULL;
}

// ---------------------------------------------------------------- what goes in

// The element in double precision, or as it is.
static burn_tensor loss_input(Arena *a, const Value *v, const Type *of, const void *data) {
    int64_t n = type_count(of);
    Tensor given = { *of, (void *)(uintptr_t)data }, *t = tensor_new(a, v->type);
    for (int64_t i = 0; i < n; i++) {
        if (dtype_is_float(of->dtype)) tensor_set_f(t, i, tensor_get_f(&given, i));
        else tensor_set_i(t, i, tensor_get_i(&given, i));
    }
    return (burn_tensor){ .data = t->data, .bytes = (size_t)type_bytes(&t->type) };
}

static void loss_inputs(Arena *a, Differences *d) {
    const Graph *g = d->loss->plan->graph, *code = d->gradients.graph;
    d->in = NEW_ARRAY(a, burn_tensor, g->inputs.n + 1);
    for (int i = 0; i < g->inputs.n; i++)
        for (int k = 0; k < code->inputs.n; k++) {
            const Value *v = code->inputs.at[k];
            if (d->gradients.call.in[k] && !strcmp(v->name, g->inputs.at[i]->name))
                d->in[i] = loss_input(a, g->inputs.at[i], &v->type, d->gradients.call.in[k]);
        }
}

// ---------------------------------------------------------------- the report

// at: whose error is the worst to what it may be; worst: the largest of all
typedef struct Summary {
    int compared, kinks, parameters, missed;
    double worst, rounding;
    const DiffParameter *at;
} Summary;

static double error_of(const DiffParameter *p, const Element *e) {
    double error = fabs(e->gradient - e->difference) / (p->largest > 0 ? p->largest : 1);
    return isnan(error) ? INFINITY : error;
}

static const Element *worst_of(const DiffParameter *p) {
    const Element *worst = NULL;
    for (int i = 0; i < p->n; i++)
        if (p->element[i].smooth && (!worst || error_of(p, &p->element[i]) > error_of(p, worst)))
            worst = &p->element[i];
    return worst;
}

static double allowed_for(const Differences *d, const DiffParameter *p) {
    return fmax(d->allowed, rounding_share * p->rounding);
}

static int kinks_of(const DiffParameter *p) {
    int n = 0;
    for (int i = 0; i < p->n; i++) n += !p->element[i].smooth;
    return n;
}

static const char *place_text(Arena *a, const Type *t, int64_t at) {
    Text s;
    text_init(&s, a);
    text_printf(&s, "[");
    int64_t count = type_count(t);
    for (int i = 0; i < t->rank; i++) {
        count /= t->dim[i];
        text_printf(&s, "%s%lld", i ? "," : "", (long long)(at / count));
        at %= count;
    }
    text_printf(&s, "]");
    return s.at;
}

static const char *element_text(Arena *a, const DiffParameter *p, const Element *e) {
    return arena_printf(a, "%s: %.6g, by differences %.6g", place_text(a, &p->type, e->at), e->gradient, e->difference);
}

static Summary summarize(const Differences *d) {
    Summary s = { 0 };
    for (int i = 0; i < d->n; i++) {
        const DiffParameter *p = &d->at[i];
        const Element *e = worst_of(p);
        if (!p->trained) continue;
        s.parameters++;
        s.missed += !p->n;
        s.kinks += kinks_of(p);
        s.compared += p->n - kinks_of(p);
        if (!e) continue;
        double share = error_of(p, e) / allowed_for(d, p);
        if (!s.at || share > error_of(s.at, worst_of(s.at)) / allowed_for(d, s.at)) s.at = p;
        s.worst = fmax(s.worst, error_of(p, e));
        s.rounding = fmax(s.rounding, p->rounding);
    }
    return s;
}

static void print_parameters(Text *t, Arena *a, const Differences *d) {
    int width = 0;
    for (int i = 0; i < d->n; i++)
        if (d->at[i].trained && (int)strlen(d->at[i].name) > width) width = (int)strlen(d->at[i].name);
    for (int i = 0; i < d->n; i++) {
        const DiffParameter *p = &d->at[i];
        const Element *e = worst_of(p);
        if (!p->trained) continue;
        text_printf(t, "%-*s  %s  %d element%s, %d at kinks", width, p->name, type_text(a, NULL, &p->type), p->n,
            p->n == 1 ? "" : "s", kinks_of(p));
        if (e) text_printf(t, ", worst %.2g at %s", error_of(p, e), element_text(a, p, e));
        text_printf(t, "\n");
    }
}

// What is wrong; NULL: nothing.
static const char *fault_of(Arena *a, const Differences *d, const Summary *s) {
    const double *loss = d->losses;
    if (!isfinite(loss[1]) || fabs(loss[0] - loss[1]) > d->allowed * fmax(fabs(loss[1]), 1))
        return arena_printf(a, "the loss is %.9g, in double precision %.9g", loss[0], loss[1]);
    if (!s->compared) return "no element has a difference to compare with";
    const Element *e = worst_of(s->at);
    if (error_of(s->at, e) <= allowed_for(d, s->at)) return NULL;
    return arena_printf(a, "%s %s; error %.2g of the largest, %.2g are allowed; %s", s->at->name,
        element_text(a, s->at, e), error_of(s->at, e), allowed_for(d, s->at), s->at->node);
}

static bool print_report(Arena *a, const CommandOptions *c, const Differences *d) {
    Summary s = summarize(d);
    const char *fault = fault_of(a, d, &s), *name = s.at ? s.at->name : "";
    Text t;
    text_init(&t, a);
    if (c->json) {
        text_printf(&t, "{\"pass\":%s,\"gradients\":%d,\"worst\":", fault ? "false" : "true", s.compared);
        json_number(&t, s.worst);
        text_printf(&t, ",\"rounding\":");
        json_number(&t, s.rounding);
        text_printf(&t, ",\"parameter\":");
        json_quoted(&t, name);
        text_printf(&t, ",\"kinks\":%d,\"parameters\":%d,\"missed\":%d", s.kinks, s.parameters, s.missed);
        if (fault) {
            text_printf(&t, ",\"fault\":");
            json_quoted(&t, fault);
        }
        text_printf(&t, "}\n");
    } else {
        print_parameters(&t, a, d);
        text_printf(&t, "%s%s gradients=%d worst=%.2g rounding=%.2g parameter=%s kinks=%d parameters=%d",
            fault ? "FAIL " : "pass", fault ? fault : "", s.compared, s.worst, s.rounding, text_name(a, name), s.kinks,
            s.parameters);
        text_printf(&t, s.missed ? " missed=%d\n" : "\n", s.missed);
    }
    print_text(&t, 0);
    return !fault;
}

// ---------------------------------------------------------------- the command

static bool rounds_small(const Options *o, const Graph *g) {
    if (o->precision) return true;
    for (const Node *n = g->first; n; n = n->next)
        for (int i = 0; i < n->n_out; i++)
            if (dtype_is_small_float(n->out[i]->type.dtype)) return true;
    return false;
}

static void list_parameters(Differences *d) {
    const Training *t = d->module->programs->training;
    d->n = t->params.n;
    d->at = sandbox_memory((size_t)d->n * sizeof *d->at + 2 * sizeof *d->losses);
    d->losses = d->at ? (double *)(void *)(d->at + d->n) : NULL;
    for (int i = 0; d->at && i < d->n; i++) {
        const Parameter *p = &t->params.at[i];
        d->at[i] = (DiffParameter){ .name = p->field,
            .type = p->type,
            .offset = d->module->code->fields[i],
            .input = -1,
            .trained = p->kind == PARAMETER_TRAINED };
    }
}

static bool verify(Arena *a, const CommandOptions *c, Differences *d, const Graph *signature, const Inputs *in) {
    const Module *m = d->module;
    d->gradients = module_call(a, m, "gradients", signature, in);
    double usual = rounds_small(d->options, d->gradients.graph) ? usual_small_error : usual_error;
    d->allowed = c->rtol >= 0 ? c->rtol : usual;
    d->rounds = c->elements && c->elements < MOST_ELEMENTS ? c->elements : MOST_ELEMENTS;
    d->seconds = c->elements ? 0.2 * c->timeout : usual_seconds;
    list_parameters(d);
    if (!d->at) diag_error(NULL, "not enough memory");
    else if ((d->loss = build_loss(d->options, d))) {
        loss_inputs(a, d);
        progress_stage("taking differences");
        const char *why = sandbox_call(a, differences_take, d, c->timeout);
        if (why) diag_error(NULL, "the training code failed: %s", why);
        else return print_report(a, c, d);
    }
    return false;
}

int verify_gradients(Arena *a, CommandOptions *c) {
    OpenModule open;
    if (!module_open(a, c, "--gradients are verified", &open)) return diag_status();
    Differences d = { .module = open.module, .options = open.options };
    bool pass = verify(a, c, &d, open.signature, &open.in);
    sandbox_release(d.at, (size_t)d.n * sizeof *d.at + 2 * sizeof *d.losses);
    if (d.loss) build_free((Built *)(uintptr_t)d.loss);
    module_free(open.module);
    return pass ? EXIT_OK : diag_status() ? diag_status() : EXIT_INVALID;
}
