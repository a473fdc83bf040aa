// SPDX-License-Identifier: MIT OR Apache-2.0
// Custom: an operation that a description brings along, with kernels in C and GLSL of its own.
//
// Its results' types are attributes: dtypes, ranks, and all their dimensions in `shape`. A kernel is text, `c` or
// `glsl`, with the words of its parameters (c_params, glsl_params): pointers to the inputs and to the results, then
// `sizes` (Dims), then `numbers`. trips: so many shares, which may be computed in any order and at once; a kernel in C
// is told from which one on and before which one, one in GLSL runs for each.
//
// What it computes may also stand in the language's own operations, a body "formula", and so may its gradient, a body
// "gradient". The pass custom (passes/custom.c) takes a formula where no kernel is; the evaluator knows nothing else,
// as a kernel is code for another machine.
#include "ops/custom.h"

#include "common.h"
#include "table.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

Graph *custom_body(const Node *n, const char *name) {
    for (int i = 0; i < n->n_bodies; i++)
        if (!strcmp(n->bodies[i]->name, name)) return n->bodies[i];
    return NULL;
}

bool custom_points(const Node *n, Dim *out) {
    int count;
    const int64_t *trips = node_ints(n, "trips", &count);
    if (count == 1) *out = trips[0];
    return count == 1;
}

// ---------------------------------------------------------------- parameters
static bool is_word(char c) { return isalnum((unsigned char)c) || c == '_'; }

// The last word is the name, what is left of the others the type.
static bool param_of(Arena *a, const char *s, const char *end, CustomParam *to) {
    const char *words[8];
    int n = 0;
    *to = (CustomParam){ .type = "" };
    for (; s < end; s++) {
        to->is_pointer = to->is_pointer || *s == '*' || *s == '[';
        if (!is_word(*s)) continue;
        const char *from = s;
        while (s < end && is_word(*s)) s++;
        const char *word = arena_strndup(a, from, (size_t)(s-- - from));
        if (!strcmp(word, "const")) to->is_const = true;
        else if (strcmp(word, "restrict") && n < (int)COUNT(words)) words[n++] = word;
    }
    if (!n) return false;
    to->name = words[n - 1];
    for (int i = 0; i + 1 < n; i++) to->type = arena_printf(a, "%s%s%s", to->type, i ? " " : "", words[i]);
    return true;
}

int custom_params(Arena *a, const char *text, CustomParam *to) {
    const char *s = text + strspn(text, " \n\t"), *end = strrchr(s, ')');
    int n = 0;
    if (*s != '(' || !end) return -1;
    for (s++; s < end; n++) {
        const char *stop = s;
        while (stop < end && *stop != ',') stop++;
        if (n == MAX_CUSTOM_PARAMS || !param_of(a, s, stop, &to[n])) return -1;
        s = stop + 1;
    }
    return n;
}

static bool params_fit(Node *n, const char *language, const char *text, const char *params, int shares) {
    int sizes, count;
    CustomParam all[MAX_CUSTOM_PARAMS];
    const Attr *numbers = node_attr(n, "numbers");
    Dim points;
    const char *code = node_string(n, text, NULL), *list = node_string(n, params, NULL);
    if (!code) return true;
    node_ints(n, "sizes", &sizes);
    count = n->n_in + n->n_out + sizes + (numbers ? numbers->n : 0) + (custom_points(n, &points) ? shares : 0);
    int has = list ? custom_params(n->graph->arena, list, all) : -1;
    if (has == count) return true;
    const char *more = shares && custom_points(n, &points) ? ", and from which point to which" : "";
    if (has < 0)
        diag_error(n->loc, "the kernel in %s has no list of at most %d parameters", language, MAX_CUSTOM_PARAMS);
    else
        diag_error(n->loc,
            "the kernel in %s takes %d parameters, here are %d: %d inputs, %d results, %d sizes, %d numbers%s",
            language, has, count, n->n_in, n->n_out, sizes, numbers ? numbers->n : 0, more);
    return false;
}

// ---------------------------------------------------------------- types
// Where sizes are symbols, what is certain.
static bool agrees(const Type *a, const Type *b) {
    bool same = a->dtype == b->dtype && a->rank == b->rank;
    for (int i = 0; same && i < a->rank; i++)
        same = a->dim[i] == b->dim[i] || !dim_is_const(a->dim[i]) || !dim_is_const(b->dim[i]);
    return same;
}

static bool body_fits(const Node *n, const char *what, int i, const Value *is, const Type *wanted) {
    if (agrees(&is->type, wanted)) return true;
    diag_error(n->loc, "%s %d is %s, it should be %s", what, i, value_type_text(is),
        type_text(n->graph->arena, n->graph, wanted));
    return false;
}

static bool formula_fits(const Node *n, const Graph *body) {
    if (body->inputs.n != n->n_in || body->outputs.n != n->n_out) {
        diag_error(n->loc, "the formula has %d inputs and %d results, the operation %d and %d", body->inputs.n,
            body->outputs.n, n->n_in, n->n_out);
        return false;
    }
    for (int i = 0; i < n->n_in; i++)
        if (!body_fits(n, "the formula's input", i, body->inputs.at[i], &n->in[i]->type)) return false;
    for (int i = 0; i < n->n_out; i++)
        if (!body_fits(n, "the formula's result", i, body->outputs.at[i], &n->out[i]->type)) return false;
    return true;
}

// Which input the body's output i is the gradient of; -1: none
static int gradient_of(const Node *n, const Graph *body, int i) {
    char *end;
    const char *name = body->output_names.at[i];
    long at = name && isdigit((unsigned char)*name) ? strtol(name, &end, 10) : -1;
    return at >= 0 && at < n->n_in && !*end ? (int)at : -1;
}

static bool gradient_fits(const Node *n, const Graph *body) {
    int floats = 0, at = 0;
    for (int i = 0; i < n->n_out; i++) floats += dtype_is_float(n->out[i]->type.dtype);
    if (body->inputs.n != n->n_in + n->n_out + floats) {
        diag_error(n->loc, "the gradient has %d inputs; the operation's, its results and theirs are %d", body->inputs.n,
            n->n_in + n->n_out + floats);
        return false;
    }
    for (int i = 0; i < n->n_in; i++, at++)
        if (!body_fits(n, "the gradient's input", at, body->inputs.at[at], &n->in[i]->type)) return false;
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < n->n_out; i++) {
            if (k && !dtype_is_float(n->out[i]->type.dtype)) continue;
            if (!body_fits(n, "the gradient's input", at, body->inputs.at[at], &n->out[i]->type)) return false;
            at++;
        }
    for (int i = 0; i < body->outputs.n; i++) {
        int of = gradient_of(n, body, i);
        if (of < 0 || !dtype_is_float(n->in[of]->type.dtype)) {
            diag_error(n->loc, "the gradient's result %d is that of no input of floats", i);
            return false;
        }
        if (!body_fits(n, "the gradient by input", of, body->outputs.at[i], &n->in[of]->type)) return false;
    }
    return true;
}

static bool bodies_fit(const Node *n) {
    const Graph *formula = custom_body(n, "formula"), *gradient = custom_body(n, "gradient");
    if (n->n_bodies != (formula != NULL) + (gradient != NULL)) {
        diag_error(n->loc, "a custom operation's bodies are a formula and a gradient");
        return false;
    }
    return (!formula || formula_fits(n, formula)) && (!gradient || gradient_fits(n, gradient));
}

static bool ends_fit(const Node *n) {
    const Attr *numbers = node_attr(n, "numbers");
    for (int i = 0; i < n->n_in + n->n_out; i++) {
        const Value *v = i < n->n_in ? n->in[i] : n->out[i - n->n_in];
        if (!v) diag_error(n->loc, "input %d is absent", i);
        else if (v->type.dtype == DT_STRING) diag_error(n->loc, "custom operations take and give no strings");
        else continue;
        return false;
    }
    for (int i = 0; numbers && i < numbers->n; i++)
        if (numbers->kind != ATTR_FLOATS || !isfinite(numbers->floats[i])) {
            diag_error(n->loc, "its numbers are finite fractions");
            return false;
        }
    return true;
}

bool shape_custom(Node *n) {
    const int64_t *dtypes, *ranks, *dims;
    int count, at = 0;
    if (!op_ints(n, "dtypes", n->n_out, &dtypes) || !op_ints(n, "ranks", n->n_out, &ranks)) return false;
    dims = node_ints(n, "shape", &count);
    for (int i = 0; i < n->n_out; i++) {
        if (dtypes[i] <= DT_NONE || dtypes[i] >= DT_INDEX || ranks[i] < 0 || ranks[i] > MAX_RANK
            || ranks[i] > count - at) {
            diag_error(n->loc, "result %d has no type", i);
            return false;
        }
        n->out[i]->type = type_make((DType)dtypes[i], (int)ranks[i], dims ? dims + at : (Dim[]){ 0 });
        at += (int)ranks[i];
    }
    return ends_fit(n) && params_fit(n, "C", "c", "c_params", 2) && params_fit(n, "GLSL", "glsl", "glsl_params", 0)
        && bodies_fit(n);
}

// Only where everything is evaluated, to compare with: elsewhere a kernel is there to be run.
bool eval_custom(const Node *n, Tensor *const *in, Tensor *const *out) {
    Graph *body = custom_body(n, "formula");
    if (!graph_root(n->graph)->evaluated) return false;
    if (!body) {
        diag_error(n->loc, "it has no formula, which would compute it without its kernel");
        return false;
    }
    for (int i = 0; i < n->n_in; i++) body->inputs.at[i]->folded = in[i];
    return body_eval(body, out);
}

bool grad_custom(Node *n, Value *const *dout, Value **din) {
    Graph *g = n->graph, *body = custom_body(n, "gradient");
    if (!body) {
        diag_error(n->loc, "it has no gradient: give it .gradient, or a .formula to take it of");
        return false;
    }
    Value **in = NEW_ARRAY(g->arena, Value *, body->inputs.n + 1),
          **out = NEW_ARRAY(g->arena, Value *, body->outputs.n + 1);
    int at = 0;
    for (int i = 0; i < n->n_in; i++) in[at++] = n->in[i];
    for (int i = 0; i < n->n_out; i++) in[at++] = n->out[i];
    for (int i = 0; i < n->n_out; i++) {
        const Type *t = &n->out[i]->type;
        if (!dtype_is_float(t->dtype)) continue;
        if (!(in[at++] = dout[i] ? dout[i] : b_full(g, t, 0))) return false;
    }
    graph_inline(body, g, in, out);
    for (int i = 0; i < body->outputs.n; i++) din[gradient_of(n, body, i)] = out[i];
    return true;
}
