// SPDX-License-Identifier: MIT OR Apache-2.0
// LSTM, GRU and RNN: composites with ONNX's operands, which a back end may claim whole. In: x [t,b,i] (layout=1:
// [b,t,i]), weights w [d,g*h,i] and r [d,g*h,h], and optional bias [d,2*g*h], sequence_lens [b], initial_h and
// initial_c [d,b,h], peepholes [d,3*h]; d directions, g gates. Out: y [t,d,b,h] (layout=1: [b,t,d,h]), y_h and y_c
// [d,b,h] (layout=1: [b,d,h]).
//
// The expansion: x*W^T + b for all steps is one MatMul before an OP_Loop over time, whose body multiplies the state
// by R^T, adds its row of that product and applies the gates. Reverse counts the rows down. A single step needs no
// loop.
//
// Attributes: direction, activations ("Sigmoid Tanh Tanh" for each direction; any case), activation_alpha and
// activation_beta (used up in order by the functions that have one), clip (absent: none), input_forget,
// linear_before_reset, layout.
#include "common.h"
#include "table.h"

#include <ctype.h>
#include <string.h>

enum { X, W, R, BIAS, LENGTHS, INITIAL_H, INITIAL_C, PEEPHOLES, MAX_FUNCTIONS = 3 };

// y = f(x), with parameters a and b where the function has them; op OP_Map: what `text` says
typedef struct Function { Op op; const char *name, *text; int parameters; double a, b; } Function;
static const Function functions[] = {
    { OP_Sigmoid, "Sigmoid", NULL, 0, 0, 0 },
    { OP_Tanh, "Tanh", NULL, 0, 0, 0 },
    { OP_Relu, "Relu", NULL, 0, 0, 0 },
    { OP_Softsign, "Softsign", NULL, 0, 0, 0 },
    { OP_Softplus, "Softplus", NULL, 0, 0, 0 },
    { OP_LeakyRelu, "LeakyRelu", NULL, 1, 0.01, 0 },
    { OP_ThresholdedRelu, "ThresholdedRelu", NULL, 1, 1, 0 },
    { OP_Elu, "Elu", NULL, 1, 1, 0 },
    { OP_HardSigmoid, "HardSigmoid", NULL, 2, 0.2, 0.5 },
    { OP_Map, "Affine", "a * x + b", 2, 1, 0 },
    { OP_Map, "ScaledTanh", "a * tanh(b * x)", 2, 1, 1 },
};

// One direction of a layer, ready to step.
typedef struct Layer {
    const Node *node;
    int64_t hidden;
    Value *rt;                                          // [h,g*h]
    // of a GRU that resets before the product: [h,2*h] and [h,h]; else NULL
    Value *rt_gates, *rt_hidden;
    // [h]: of GRU's hidden gate when it is reset after the product; else NULL
    Value *recurrent_bias;
    Value *peephole[3];                                 // [h] for the input, output and forget gate; or NULL
    Function function[MAX_FUNCTIONS];
} Layer;

// The next state (h or h, c) from a step's row of the input projection [b,g*h]. False after a diagnostic.
typedef bool Step(const Layer *l, Graph *g, Value *row, Value **state);
typedef struct Cell { int gates, n_functions, n_states; Step *step; } Cell;

// ---------------------------------------------------------------- activations
static bool name_is(const char *name, const char *text, size_t length) {
    for (size_t i = 0; i < length; i++)
        if (!name[i] || tolower((unsigned char)name[i]) != tolower((unsigned char)text[i])) return false;
    return !name[length];
}

static const Function *function_find(const char *text, size_t length) {
    for (size_t i = 0; i < COUNT(functions); i++)
        if (name_is(functions[i].name, text, length)) return &functions[i];
    return NULL;
}

static double float_at(const Node *n, const char *name, int i, double otherwise) {
    const Attr *a = node_attr(n, name);
    if (a && a->kind == ATTR_FLOATS && i < a->n) return a->floats[i];
    return a && a->kind == ATTR_INTS && i < a->n ? (double)a->ints[i] : otherwise;
}

// The function number `index` of attribute activations with its parameters; false with a diagnostic.
static bool function_at(const Node *n, int index, Function *out) {
    const char *at = node_string(n, "activations", "");
    int alphas = 0, betas = 0;
    for (int i = 0; i <= index; i++) {
        at += strspn(at, " ");
        size_t length = strcspn(at, " ");
        const Function *f = function_find(at, length);
        if (!length) diag_error(n->loc, "attribute \"activations\" holds fewer than %d functions", index + 1);
        else if (!f) diag_error(n->loc, "activation \"%.*s\" is not known", (int)length, at);
        if (!f) return false;
        *out = *f;
        if (f->parameters > 0) out->a = float_at(n, "activation_alpha", alphas++, f->a);
        if (f->parameters > 1) out->b = float_at(n, "activation_beta", betas++, f->b);
        at += length;
    }
    return true;
}

// f(x), after the clipping that attribute clip asks for
static Value *activate(const Layer *l, Graph *g, int i, Value *x) {
    const Function *f = &l->function[i];
    const Attr *clip = node_attr(l->node, "clip");
    if (!x) return NULL;
    if (clip) {
        double c = node_float(l->node, "clip", 0);
        x = b_binary(g, OP_Max, x, b_like(g, x, -c));
        x = b_binary(g, OP_Min, x, b_like(g, x, c));
    }
    if (!x) return NULL;
    if (f->op == OP_Map) {
        Value *a = b_like(g, x, f->a), *b = b_like(g, x, f->b);
        return b_map(g, f->text, "x a b", 3, (Value *[]){ x, a, b });
    }
    Node *n = graph_node(g, f->op, 1, &x, 1);
    if (f->parameters > 0) node_set_float(n, "alpha", f->a);
    if (f->parameters > 1) node_set_float(n, "beta", f->b);
    return b_finish(n);
}

// ---------------------------------------------------------------- pieces
// Elements from..from+size-1 along one axis
static Value *part(Graph *g, Value *x, int axis, int64_t from, int64_t size) {
    if (!x) return NULL;
    int64_t starts[MAX_RANK] = { 0 }, steps[MAX_RANK];
    Dim sizes[MAX_RANK];
    for (int i = 0; i < x->type.rank; i++) {
        steps[i] = 1;
        sizes[i] = x->type.dim[i];
    }
    starts[axis] = from;
    sizes[axis] = size;
    return b_slice(g, x, starts, steps, sizes);
}

static Value *without_axis(Graph *g, Value *x, int axis) {
    Dim dims[MAX_RANK];
    int rank = 0;
    if (!x) return NULL;
    for (int i = 0; i < x->type.rank; i++)
        if (i != axis) dims[rank++] = x->type.dim[i];
    return b_reshape(g, x, rank, dims);
}

static Value *with_axis(Graph *g, Value *x, int axis) {
    Dim dims[MAX_RANK];
    if (!x) return NULL;
    for (int i = 0; i <= x->type.rank; i++) dims[i] = i < axis ? x->type.dim[i] : i == axis ? 1 : x->type.dim[i - 1];
    return b_reshape(g, x, x->type.rank + 1, dims);
}

static Value *swap_axes(Graph *g, Value *x, int a, int b) {
    int perm[MAX_RANK];
    for (int i = 0; x && i < x->type.rank; i++) perm[i] = i == a ? b : i == b ? a : i;
    return b_transpose(g, x, perm);
}

// x + y, where an absent y adds nothing
static Value *plus(Graph *g, Value *x, Value *y) { return y ? b_binary(g, OP_Add, x, y) : x; }
static Value *times(Graph *g, Value *x, Value *y) { return b_binary(g, OP_Mul, x, y); }

static Value *gate(const Layer *l, Graph *g, Value *z, int i) { return part(g, z, 1, i * l->hidden, l->hidden); }

// ---------------------------------------------------------------- cells
// h' = f(x W^T + h R^T + b)
static bool step_rnn(const Layer *l, Graph *g, Value *row, Value **state) {
    state[0] = activate(l, g, 0, plus(g, b_matmul(g, state[0], l->rt), row));
    return state[0] != NULL;
}

// z, r = f(...); n = g(xn + (r * h) Rn^T) or, linear before reset, g(xn + r * (h Rn^T + bn)); h' = (1 - z) * n + z * h
static bool step_gru(const Layer *l, Graph *g, Value *row, Value **state) {
    Value *h = state[0], *xn = gate(l, g, row, 2), *xzr = part(g, row, 1, 0, 2 * l->hidden), *hn, *zr, *r;
    if (l->recurrent_bias) {
        Value *product = b_matmul(g, h, l->rt);
        zr = plus(g, part(g, product, 1, 0, 2 * l->hidden), xzr);
        r = activate(l, g, 0, gate(l, g, zr, 1));
        hn = times(g, r, plus(g, gate(l, g, product, 2), l->recurrent_bias));
    } else {
        zr = plus(g, b_matmul(g, h, l->rt_gates), xzr);
        r = times(g, activate(l, g, 0, gate(l, g, zr, 1)), h);
        hn = b_matmul(g, r, l->rt_hidden);
    }
    Value *z = activate(l, g, 0, gate(l, g, zr, 0)), *n = activate(l, g, 1, plus(g, hn, xn));
    state[0] = b_map(g, "(1 - z) * n + z * h", "z n h", 3, (Value *[]){ z, n, h });
    return state[0] != NULL;
}

static Value *peep(const Layer *l, Graph *g, Value *z, int i, Value *c) {
    return l->peephole[i] ? plus(g, z, times(g, l->peephole[i], c)) : z;
}

// i, f, o = f(...); c' = f * c + i * g(...); h' = o * h(c')
static bool step_lstm(const Layer *l, Graph *g, Value *row, Value **state) {
    Value *c = state[1], *z = plus(g, b_matmul(g, state[0], l->rt), row);
    Value *i = activate(l, g, 0, peep(l, g, gate(l, g, z, 0), 0, c)), *f;
    if (node_int(l->node, "input_forget", 0)) f = b_map(g, "1 - x", "x", 1, &i);
    else f = activate(l, g, 0, peep(l, g, gate(l, g, z, 2), 2, c));
    c = times(g, f, c);
    c = plus(g, c, times(g, i, activate(l, g, 1, gate(l, g, z, 3))));
    Value *o = activate(l, g, 0, peep(l, g, gate(l, g, z, 1), 1, c));
    state[0] = times(g, o, activate(l, g, 2, c));
    state[1] = c;
    return state[0] && state[1];
}

static const Cell rnn_cell = { 1, 1, 1, step_rnn }, gru_cell = { 3, 2, 1, step_gru },
                  lstm_cell = { 4, 3, 2, step_lstm };

// ---------------------------------------------------------------- shapes
static Value *operand(const Node *n, int i) { return i < n->n_in ? n->in[i] : NULL; }

static bool check_operand(const Node *n, int i, const char *what, DType d, int rank, const Dim *dims) {
    const Value *v = operand(n, i);
    if (!v) return true;
    bool ok = v->type.dtype == d && v->type.rank == rank;
    for (int k = 0; ok && k < rank; k++) ok = dims_agree((Node *)n, v->type.dim[k], dims[k]);
    Type want = type_make(d, rank, dims);
    if (!ok)
        diag_error(
            n->loc, "%s wants %s, it is %s", what, type_text(n->graph->arena, n->graph, &want), value_type_text(v));
    return ok;
}

static int directions(const Node *n) {
    const char *d = node_string(n, "direction", "forward");
    if (!strcmp(d, "forward") || !strcmp(d, "reverse")) return 1;
    if (!strcmp(d, "bidirectional")) return 2;
    diag_error(n->loc, "direction \"%s\" is none of forward, reverse and bidirectional", d);
    return 0;
}

static bool shape_cell(Node *n, const Cell *cell) {
    const Type *x = &n->in[X]->type, *r = &n->in[R]->type;
    const DType d = x->dtype;
    const int64_t dirs = directions(n), gates = cell->gates;
    const bool batch_first = node_int(n, "layout", 0) != 0;
    if (!dirs) return false;
    if (!dtype_is_float(d) || x->rank != 3 || r->rank != 3 || !dim_is_const(r->dim[2])) {
        diag_error(n->loc, "input and recurrent weights must be floats of rank 3, they are %s and %s",
            value_type_text(n->in[X]), value_type_text(n->in[R]));
        return false;
    }
    const Dim h = r->dim[2], t = x->dim[batch_first ? 1 : 0], b = x->dim[batch_first ? 0 : 1];
    const Dim first = batch_first ? b : dirs, second = batch_first ? dirs : b;
    if (!check_operand(n, W, "weights", d, 3, (Dim[]){ dirs, gates * h, x->dim[2] })
        || !check_operand(n, R, "recurrent weights", d, 3, (Dim[]){ dirs, gates * h, h })
        || !check_operand(n, BIAS, "bias", d, 2, (Dim[]){ dirs, 2 * gates * h })
        || !check_operand(n, LENGTHS, "sequence_lens", DT_I32, 1, &b)
        || !check_operand(n, INITIAL_H, "initial_h", d, 3, (Dim[]){ first, second, h })
        || !check_operand(n, INITIAL_C, "initial_c", d, 3, (Dim[]){ first, second, h })
        || !check_operand(n, PEEPHOLES, "peepholes", d, 2, (Dim[]){ dirs, 3 * h }))
        return false;
    Function last;
    if (!function_at(n, (int)dirs * cell->n_functions - 1, &last)) return false;       // and with it all before
    n->out[0]->type = batch_first ? type_make(d, 4, (Dim[]){ b, t, dirs, h }) :
                                    type_make(d, 4, (Dim[]){ t, dirs, b, h });
    for (int i = 1; i < n->n_out; i++) n->out[i]->type = type_make(d, 3, (Dim[]){ first, second, h });
    return true;
}

bool shape_rnn(Node *n) { return shape_cell(n, &rnn_cell); }
bool shape_gru(Node *n) { return shape_cell(n, &gru_cell); }
bool shape_lstm(Node *n) { return shape_cell(n, &lstm_cell); }

// ---------------------------------------------------------------- expansion
// The operand's slice of this direction, in f32 for smaller floats: [d,...] -> [...]; NULL when absent
static Value *of_direction(const Node *n, int i, int direction) {
    Graph *g = n->graph;
    Value *v = operand(n, i);
    bool state = i == INITIAL_H || i == INITIAL_C;
    int axis = state && node_int(n, "layout", 0) ? 1 : 0;
    return v ? without_axis(g, part(g, b_wide(g, v), axis, direction, 1), axis) : NULL;
}

// The bias of the input projection [g*h]: both halves summed, but for GRU's hidden gate when that is reset after its
// product.
static Value *projection_bias(Graph *g, Layer *l, const Cell *cell, Value *bias) {
    int64_t h = l->hidden, all = cell->gates * h;
    if (!bias) return NULL;
    Value *input = part(g, bias, 0, 0, all), *recurrent = part(g, bias, 0, all, all);
    if (!l->recurrent_bias) return plus(g, input, recurrent);
    l->recurrent_bias = part(g, recurrent, 0, 2 * h, h);
    Value *zr = part(g, input, 0, 0, 2 * h);
    zr = plus(g, zr, part(g, recurrent, 0, 0, 2 * h));
    return b_concat(g, 0, 2, (Value *[]){ zr, part(g, input, 0, 2 * h, h) });
}

static bool layer_init(Layer *l, Node *n, const Cell *cell, int direction) {
    Graph *g = n->graph;
    *l = (Layer){
        .node = n, .hidden = n->in[R]->type.dim[2], .rt = swap_axes(g, of_direction(n, R, direction), 0, 1)
    };
    if (cell == &gru_cell && node_int(n, "linear_before_reset", 0)) l->recurrent_bias = b_like(g, l->rt, 0);
    else if (cell == &gru_cell) {
        l->rt_gates = part(g, l->rt, 1, 0, 2 * l->hidden);
        l->rt_hidden = part(g, l->rt, 1, 2 * l->hidden, l->hidden);
    }
    Value *p = of_direction(n, PEEPHOLES, direction);
    for (int i = 0; p && i < 3; i++) l->peephole[i] = part(g, p, 0, i * l->hidden, l->hidden);
    for (int i = 0; i < cell->n_functions; i++)
        if (!function_at(n, direction * cell->n_functions + i, &l->function[i])) return false;
    return l->rt != NULL;
}

static Value *zero_state(Graph *g, Dim batch, int64_t hidden, DType d) {
    return b_expand(g, b_scalar(g, d, 0), 2, (Dim[]){ batch, hidden });
}

// Steps past a sequence's end leave its state and give 0. `time`: the row that the step reads; NULL lengths: every
// step counts.
static bool step_masked(
    const Cell *cell, const Layer *l, Graph *g, Value *row, Value *lengths, Value *time, Value **state, Value **y) {
    Value *before[2] = { state[0], state[1] };
    if (!row || !cell->step(l, g, row, state)) return false;
    *y = state[0];
    if (!lengths) return true;
    Value *active = b_binary(g, OP_Less, time, lengths);
    *y = b_where(g, active, state[0], b_like(g, state[0], 0));
    for (int i = 0; i < cell->n_states; i++) state[i] = b_where(g, active, state[i], before[i]);
    return *y && state[0] && (cell->n_states == 1 || state[1]);
}

typedef struct Run {
    const Cell *cell;
    const Layer *layer;
    Value *rows;
    int time_axis;
    Value *lengths;
    bool reverse;
} Run;

// All steps as a loop: state becomes the final one; the result is h of every step, in the order of the steps, [t,b,h].
static Value *run_loop(const Run *r, Graph *g, Dim steps, Value **state) {
    int n = r->cell->n_states;
    bool known = dim_is_const(steps);
    Value *in[4] = { known ? b_number(g, steps) : NULL, NULL, state[0], state[1] }, *now[2] = { 0 }, *y,
          *last = r->reverse ? b_number(g, dim_sub(g, steps, 1)) : NULL;
    Graph *body = graph_body(g, "step");
    Value *time = graph_input(body, "iteration", type_make(DT_I64, 0, NULL));
    graph_input(body, "condition", type_make(DT_BOOL, 0, NULL));
    for (int i = 0; i < n; i++) now[i] = graph_input(body, i ? "c" : "h", state[i]->type);
    if (r->reverse) time = b_binary(body, OP_Sub, last, time);
    if (!step_masked(r->cell, r->layer, body, b_gather(body, r->rows, time, r->time_axis), r->lengths, time, now, &y))
        return NULL;
    graph_output(body, b_scalar(body, DT_BOOL, 1), "condition");
    for (int i = 0; i < n; i++) graph_output(body, now[i], i ? "c" : "h");
    graph_output(body, y, "y");
    Node *loop = graph_node(g, OP_Loop, 2 + n, in, n + 1);
    loop->bodies = NEW_ARRAY(g->arena, Graph *, 1);
    loop->bodies[0] = body;
    loop->n_bodies = 1;
    if (!known) node_set_ints(loop, "trips", &steps, 1);
    if (!node_infer(loop)) return NULL;
    for (int i = 0; i < n; i++) state[i] = loop->out[i];
    return r->reverse ? b_flip(g, loop->out[n], (bool[]){ true, false, false }) : loop->out[n];
}

static Value *run_direction(Node *n, const Cell *cell, int direction, bool reverse, Value **state) {
    Graph *g = n->graph;
    Layer l;
    if (!layer_init(&l, n, cell, direction)) return NULL;
    Value *x = b_wide(g, n->in[X]), *lengths = operand(n, LENGTHS);
    if (!x) return NULL;
    int time_axis = node_int(n, "layout", 0) ? 1 : 0;
    Dim steps = x->type.dim[time_axis];
    Dim batch = x->type.dim[1 - time_axis];
    Value *bias = projection_bias(g, &l, cell, of_direction(n, BIAS, direction));
    Run r = { cell, &l, plus(g, b_matmul(g, x, swap_axes(g, of_direction(n, W, direction), 0, 1)), bias), time_axis,
        NULL, reverse };
    if (lengths) r.lengths = b_reshape(g, b_cast(g, lengths, DT_I64), 2, (Dim[]){ batch, 1 });
    for (int i = 0; i < cell->n_states; i++) {
        state[i] = of_direction(n, i ? INITIAL_C : INITIAL_H, direction);
        if (!state[i]) state[i] = zero_state(g, batch, l.hidden, x->type.dtype);
        if (!state[i]) return NULL;
    }
    if (!r.rows) return NULL;
    if (steps != 1) return run_loop(&r, g, steps, state);
    Value *y, *row = without_axis(g, r.rows, time_axis);
    if (!step_masked(cell, &l, g, row, r.lengths, b_number(g, 0), state, &y)) return NULL;
    return with_axis(g, y, 0);
}

// Joins the directions along a new axis, in the dtype of the node's output.
static Value *join(Node *n, int count, Value **v, int axis, int out) {
    Value *parts[2];
    for (int i = 0; i < count; i++) parts[i] = with_axis(n->graph, v[i], axis);
    return b_cast(n->graph, b_concat(n->graph, axis, count, parts), n->out[out]->type.dtype);
}

static bool expand_cell(Node *n, Value **out, const Cell *cell) {
    const int count = directions(n);
    const bool batch_first = node_int(n, "layout", 0) != 0;
    Value *y[2], *last[2][2] = { { 0 } };
    for (int i = 0; i < count; i++) {
        Value *state[2] = { 0 };
        y[i] = run_direction(n, cell, i, i == 1 || !strcmp(node_string(n, "direction", "forward"), "reverse"), state);
        if (!y[i]) return false;
        if (batch_first) y[i] = swap_axes(n->graph, y[i], 0, 1);
        for (int k = 0; k < cell->n_states; k++) last[k][i] = state[k];
    }
    out[0] = join(n, count, y, batch_first ? 2 : 1, 0);
    for (int k = 0; k < cell->n_states; k++) out[1 + k] = join(n, count, last[k], batch_first ? 1 : 0, 1 + k);
    for (int i = 0; i < n->n_out; i++)
        if (!out[i]) return false;
    return true;
}

bool expand_rnn(Node *n, Value **out) { return expand_cell(n, out, &rnn_cell); }
bool expand_gru(Node *n, Value **out) { return expand_cell(n, out, &gru_cell); }
bool expand_lstm(Node *n, Value **out) { return expand_cell(n, out, &lstm_cell); }
