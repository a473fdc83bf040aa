// SPDX-License-Identifier: MIT OR Apache-2.0
// --train: an imported model becomes three programs over structs that the caller owns.
//
//   predict   (params, inputs) -> outputs
//   gradients (params, inputs, target) -> loss, grads
//   update    (params, grads, state, hyper-parameters) -> params, state        in place
//
// Weights turn into inputs of the group "params"; the gradients are those of a loss appended to the model; an
// optimizer is a row of assignments in the language of scalar expressions, so that it runs on every back end.
#include "train.h"
#include "passes/passes.h"
#include "grad/grad.h"

#include <string.h>

// ---------------------------------------------------------------- losses
// classes: targets are class numbers, one per row of the output
typedef struct Loss { const char *name; Op op; bool classes; } Loss;
static const Loss losses[] = {
    { "cross_entropy", OP_CrossEntropy, true },
    { "nll", OP_NegativeLogLikelihood, true },
    { "mse", OP_MeanSquaredError, false },
};

// ---------------------------------------------------------------- optimizers (formulas and defaults as in PyTorch's torch.optim)
// p parameter, g gradient, then the state's fields; assignments run in order and later ones see the new values.
typedef struct Optimizer { const char *name, *state, *hyper, *steps; } Optimizer;
static const Optimizer optimizers[] = {
    { "sgd", "", "learning_rate", "p = p - learning_rate * g" },
    { "momentum", "velocity", "learning_rate momentum weight_decay",
        "velocity = momentum * velocity + (g + weight_decay * p); p = p - learning_rate * velocity" },
    { "nesterov", "velocity", "learning_rate momentum weight_decay",
        "velocity = momentum * velocity + (g + weight_decay * p); p = p - learning_rate * (g + weight_decay * p + momentum * velocity)" },
    { "adam", "mean square", "learning_rate beta1 beta2 epsilon weight_decay step",
        "mean = beta1 * mean + (1 - beta1) * (g + weight_decay * p); square = beta2 * square + (1 - beta2) * (g + weight_decay * p) * (g + weight_decay * p);"
        "p = p - learning_rate / (1 - pow(beta1, step)) * mean / (sqrt(square) / sqrt(1 - pow(beta2, step)) + epsilon)" },
    { "adamw", "mean square", "learning_rate beta1 beta2 epsilon weight_decay step",
        "mean = beta1 * mean + (1 - beta1) * g; square = beta2 * square + (1 - beta2) * g * g;"
        "p = p * (1 - learning_rate * weight_decay) - learning_rate / (1 - pow(beta1, step)) * mean / (sqrt(square) / sqrt(1 - pow(beta2, step)) + epsilon)" },
    { "rmsprop", "square average velocity", "learning_rate alpha epsilon momentum",
        "square = alpha * square + (1 - alpha) * g * g; average = average + (1 - alpha) * (g - average);"
        "velocity = momentum * velocity + g / (sqrt(square - average * average) + epsilon); p = p - learning_rate * velocity" },
    { "adagrad", "sum", "learning_rate epsilon",
        "sum = sum + g * g; p = p - learning_rate * g / (sqrt(sum) + epsilon)" },
};

#define NAMES(table) \
    Text t; text_init(&t, a); \
    for (size_t i = 0; i < COUNT(table); i++) text_printf(&t, "%s%s", i ? ", " : "", table[i].name); \
    return t.at
const char *train_losses(Arena *a) { NAMES(losses); }
const char *train_optimizers(Arena *a) { NAMES(optimizers); }

static const Loss *find_loss(const char *name) {
    for (size_t i = 0; i < COUNT(losses); i++) if (!strcmp(losses[i].name, name)) return &losses[i];
    return NULL;
}

static const Optimizer *find_optimizer(const char *name) {
    for (size_t i = 0; i < COUNT(optimizers); i++) if (!strcmp(optimizers[i].name, name)) return &optimizers[i];
    return NULL;
}

// ---------------------------------------------------------------- parameters
static bool field_taken(const Training *t, const char *field) {
    for (int i = 0; i < t->params.n; i++) if (!strcmp(t->params.at[i].field, field)) return true;
    return false;
}

static void promote(Training *t, Graph *g, Value *v) {
    const char *base = name_c(g->arena, v->name && *v->name ? v->name : "weight"), *field = base;
    for (int i = 2; field_taken(t, field); i++) field = arena_printf(g->arena, "%s_%d", base, i);
    VEC_PUSH(g->arena, t->params,
        (Parameter){ .name = v->name ? v->name : field, .field = field, .type = v->type, .initial = v->data });
    v->data = NULL;
    v->is_input = true;
    v->trainable = false;
    v->name = field;
    v->role = ROLE_PARAM;
    VEC_PUSH(g->arena, g->inputs, v);
}

static void promote_all(Training *t, Graph *model, const Graph *g) {     // g: the model or a body in it
    for (const Node *n = g->first; n; n = n->next) {
        for (int i = 0; i < n->n_in; i++) {
            Value *v = n->in[i];
            if (v && v->data && v->trainable && v->graph == model) promote(t, model, v);
        }
        for (int i = 0; i < n->n_bodies; i++) promote_all(t, model, n->bodies[i]);
    }
}

static Value *role_input(Graph *g, const char *name, Type type, Role role) {
    Value *v = graph_input(g, name, type);
    v->role = role;
    return v;
}

// ---------------------------------------------------------------- loss and gradients
static Graph *gradient_graph(Graph *model, const Loss *loss, const Options *o) {
    Graph *g = graph_clone(model, model->name);
    if (!passes_run(g, o)) return NULL;
    Value *y = g->outputs.at[0];
    Type target = y->type;
    if (loss->classes) {
        target.dtype = DT_I64;
        target.rank--;
    }
    if (y->type.rank < 1 || !dtype_is_float(y->type.dtype)) {
        diag_error(y->def ? y->def->loc : NULL,
            "--loss %s wants float outputs [..., classes], the model's first output is %s", loss->name,
            type_text(g->arena, g, &y->type));
        return NULL;
    }
    int n = 0;
    Value **params = NEW_ARRAY(g->arena, Value *, g->inputs.n + 1);
    for (int i = 0; i < g->inputs.n; i++) if (g->inputs.at[i]->role) params[n++] = g->inputs.at[i];
    Value *t = graph_input(g, "target", target);
    g->cursor = NULL;
    g->outputs.n = g->output_names.n = 0;
    Value *l = b_op(g, loss->op, 2, (Value *[]){ y, t });
    if (!l) return NULL;
    graph_output(g, l, "loss");
    if (!passes_run(g, o)) return NULL;
    g->cursor = NULL;
    Value *const *grads = graph_gradient(g, g->outputs.at[0], n, params);
    if (!grads) return NULL;
    for (int i = 0; i < n; i++) graph_output(g, grads[i], params[i]->name);
    if (!passes_run(g, o)) return NULL;
    g->cursor = NULL;
    for (int i = 0; i < n; i++) {                       // values of their own: two parameters may share one gradient
        Value *d = b_unary(g, OP_Identity, g->outputs.at[1 + i]);
        d->role = ROLE_GRAD;
        g->outputs.at[1 + i] = d;
    }
    return g;
}

// ---------------------------------------------------------------- optimizer step
typedef struct Binding { const char *name; Value *value; } Binding;
typedef struct Scope { Graph *g; Binding at[16]; int n; } Scope;

static const char *word(Arena *a, const char **s) {
    while (**s == ' ' || **s == ';') ++*s;
    size_t n = strcspn(*s, " =;");
    const char *w = n ? arena_strndup(a, *s, n) : NULL;
    *s += n;
    return w;
}

static void bind(Scope *s, const char *name, Value *v) {
    for (int i = 0; i < s->n; i++)
        if (!strcmp(s->at[i].name, name)) {
            s->at[i].value = v;
            return;
        }
    s->at[s->n++] = (Binding){ name, v };
}

static Value *assign(Scope *s, const char *text) {
    Text names;
    Value *in[16];
    text_init(&names, s->g->arena);
    for (int i = 0; i < s->n; i++) {
        text_printf(&names, "%s%s", i ? " " : "", s->at[i].name);
        in[i] = s->at[i].value;
    }
    return b_map(s->g, text, names.at, s->n, in);
}

static bool update_parameter(Training *t, Graph *g, const Optimizer *opt, const Parameter *p, Value *const *hyper,
    int n_hyper, const char *const *hyper_names) {
    Scope s = { .g = g };
    Arena *a = g->arena;
    bind(&s, "p", role_input(g, p->field, p->type, ROLE_PARAM));
    bind(&s, "g", role_input(g, p->field, p->type, ROLE_GRAD));
    for (const char *at = opt->state, *name; (name = word(a, &at));) {
        const char *field = arena_printf(a, "%s_%s", p->field, name);
        VEC_PUSH(a, t->state, (Parameter){ .name = field, .field = field, .type = p->type });
        bind(&s, name, role_input(g, field, p->type, ROLE_STATE));
    }
    for (int i = 0; i < n_hyper; i++) bind(&s, hyper_names[i], hyper[i]);
    for (const char *at = opt->steps, *name; (name = word(a, &at));) {
        at += strspn(at, " =");
        size_t n = strcspn(at, ";");
        Value *v = assign(&s, arena_strndup(a, at, n));
        if (!v) return false;
        at += n;
        bind(&s, name, v);
        graph_output(g, v, strcmp(name, "p") ? arena_printf(a, "%s_%s", p->field, name) : p->field);
    }
    return true;
}

static bool is_state(const Training *t, const char *field) {
    for (int i = 0; i < t->state.n; i++) if (!strcmp(t->state.at[i].field, field)) return true;
    return false;
}

static Graph *update_graph(Training *t, Graph *model, const Optimizer *opt, const Options *o) {
    Graph *g = graph_new(model->arena, model->name, model->file);
    Value *hyper[16];
    const char *names[16], *at = opt->hyper, *name;
    int n = 0;
    for (; (name = word(g->arena, &at)); n++) names[n] = name;
    for (int i = 0; i < n; i++) hyper[i] = graph_input(g, names[i], type_make(DT_F32, 0, NULL));
    for (int i = 0; i < n; i++) hyper[i]->role = ROLE_VALUE;
    for (int i = 0; i < t->params.n; i++)
        if (!update_parameter(t, g, opt, &t->params.at[i], hyper, n, names)) return NULL;
    if (!passes_run(g, o)) return NULL;
    for (int i = 0; i < g->outputs.n; i++)
        g->outputs.at[i]->role = is_state(t, g->output_names.at[i]) ? ROLE_STATE : ROLE_PARAM;
    return g;
}

// ---------------------------------------------------------------- the three programs
static bool add_program(Training *t, Graph *g, const Options *o, const char *suffix, const char *doc, bool descriptor) {
    Plan *p = g ? plan_make(g, o) : NULL;
    if (!p) return false;
    Arena *a = g->arena;
    t->programs[t->n_programs++] = (Program){ .name = arena_printf(a, "%s_%s", o->name, suffix),
        .name_of_workspace = arena_printf(a, "%s_%s", o->name, suffix),
        .doc = doc,
        .plan = p,
        .descriptor = descriptor };
    return true;
}

Training *train_programs(Graph *model, const Options *o) {
    const Loss *loss = find_loss(o->loss ? o->loss : "cross_entropy");
    const Optimizer *opt = find_optimizer(o->optimizer ? o->optimizer : "sgd");
    Arena *a = model->arena;
    if (!loss)
        diag_error_as(EXIT_USAGE, NULL, "--loss: no loss is called '%s'; there are %s", o->loss, train_losses(a));
    if (!opt)
        diag_error_as(EXIT_USAGE, NULL, "--optimizer: no optimizer is called '%s'; there are %s", o->optimizer,
            train_optimizers(a));
    if (!loss || !opt) return NULL;
    if (model->outputs.n > 1)
        diag_note(NULL, "the loss is computed on the first of %d outputs, \"%s\"", model->outputs.n,
            model->output_names.at[0]);
    Training *t = NEW(a, Training);
    promote_all(t, model, model);
    if (!t->params.n) {
        diag_error(NULL, "the model has no float weights to train");
        return NULL;
    }
    Graph *predict = graph_clone(model, model->name);
    bool ok = passes_run(predict, o)
        && add_program(t, predict, o, "predict", "The model with the caller's parameters.", false);
    ok = ok
        && add_program(t, gradient_graph(model, loss, o), o, "gradients",
            "Loss of one batch (the mean over its items) and the gradients of all parameters; nothing is updated.",
            false);
    return ok
            && add_program(t, update_graph(t, model, opt, o), o, "update",
                "One step of the optimizer: params and state change in place.", false) ?
        t :
        NULL;
}
