// SPDX-License-Identifier: MIT OR Apache-2.0
// If, Loop and Scan.
//
// In: an OnnxNode with graphs in its attributes. Out: what a body computes. The idea: a branch whose condition is
// known while importing, and a few iterations of known number, are built in place and fuse; else the bodies become
// graphs of an OP_If or OP_Loop. Some loops of known number cannot: their shapes change from one iteration to the
// next, or shapes follow from the iteration's number. So an OP_Loop is tried first, and every iteration is built when
// that fails.
#include "import/onnx/run/measure.h"

#include <string.h>

#define FEW_NODES 64                    // iterations times nodes of the body: built in place at once
#define MAX_UNROLLED_NODES 4096         // built in place where a loop cannot be

static bool known_number(OnnxNode *n, Value *v, Tensor **out) {
    return onnx_known_number(n, v, "the condition or the number of iterations", out);
}

static bool branches_differ(OnnxNode *n, int i, const char *how) {
    onnx_fail(n,
        "output %d %s; whether the condition holds must be known while compiling (--freeze makes an input a constant)",
        i, how);
    return false;
}

// A branch's sequence as one tensor; `other` is that of the other branch, whose elements an empty one would have.
static Value *branch_rows(OnnxNode *n, Graph *branch, Value *v, Value *other) {
    OnnxNode inner = *n;
    int count, count_other;
    bool empty = onnx_sequence_items(v, &count) && !count;
    Value *const *items = onnx_sequence_items(other, &count_other), *stack = onnx_sequence_stack(other);
    inner.g = branch;
    branch->loc = n->loc;
    if (!empty) return onnx_sequence_rows(&inner, v);
    Type t = stack ? stack->type : items[0]->type;
    if (!stack && t.rank < MAX_RANK) memmove(t.dim + 1, t.dim, sizeof *t.dim * (size_t)t.rank++);
    t.dim[0] = 0;
    return b_filled(inner.g, t.dtype, 0, t.rank, t.dim);
}

// Sequences of one length become their elements, others one tensor. lengths[i]: of output i, -1 when it is a tensor,
// -2 when it holds nothing, -3 for a sequence as one tensor.
static bool flatten_branches(OnnxNode *n, Graph *const branch[2], int *lengths) {
    Graph flat[2] = { *branch[0], *branch[1] };
    for (int side = 0; side < 2; side++) {
        flat[side].outputs.n = flat[side].outputs.cap = flat[side].output_names.n = flat[side].output_names.cap = 0;
        flat[side].outputs.at = NULL;
        flat[side].output_names.at = NULL;
    }
    for (int i = 0; i < n->n_out; i++) {
        int count[2];
        Value *v[2] = { branch[0]->outputs.at[i], branch[1]->outputs.at[i] };
        Value *const *items[2] = { onnx_sequence_items(v[0], &count[0]), onnx_sequence_items(v[1], &count[1]) };
        bool nothing[2] = { v[0] == onnx_absent(), v[1] == onnx_absent() };
        if (nothing[0] != nothing[1]) return branches_differ(n, i, "holds something in one branch only");
        if (onnx_is_sequence(v[0]) != onnx_is_sequence(v[1]))
            return branches_differ(n, i, "is a sequence in one branch only");
        bool rows = onnx_is_sequence(v[0]) && !nothing[0] && (!items[0] || !items[1] || count[0] != count[1]);
        lengths[i] = nothing[0] ? -2 : rows ? -3 : items[0] ? count[0] : -1;
        for (int side = 0; side < 2 && rows; side++) {
            Value *one = branch_rows(n, branch[side], v[side], v[1 - side]);
            if (!one) return false;
            graph_output(&flat[side], one, NULL);
        }
        for (int side = 0; side < 2 && !nothing[0] && !rows; side++)
            for (int k = 0; k < (items[0] ? count[0] : 1); k++)
                graph_output(&flat[side], items[0] ? items[side][k] : v[side], NULL);
    }
    for (int side = 0; side < 2; side++) {
        branch[side]->outputs = flat[side].outputs;
        branch[side]->output_names = flat[side].output_names;
    }
    return true;
}

// An output whose size depends on the branch taken: both branches give its elements as a list that has room for
// either, and its dimensions.
typedef struct Leveled { bool is; int rank; int64_t room; Dim limit[MAX_RANK]; } Leveled;

// One number may be a scalar in one branch and a list in the other: then it is a scalar, which broadcasts alike.
static void agree_on_rank(Graph *const branch[2], int i) {
    const Type *a = &branch[0]->outputs.at[i]->type, *b = &branch[1]->outputs.at[i]->type;
    if (a->rank == b->rank || !type_is_static(a) || !type_is_static(b) || type_count(a) != 1 || type_count(b) != 1)
        return;
    int rank = a->rank < b->rank ? a->rank : b->rank;
    for (int k = 0; k < 2; k++)
        branch[k]->outputs.at[i] = b_reshape(branch[k], branch[k]->outputs.at[i], rank, (k ? b : a)->dim);
}

static bool needs_leveling(const Graph *yes, const Graph *no, int i, Leveled *l) {
    const Type *a = &yes->outputs.at[i]->type, *b = &no->outputs.at[i]->type;
    int64_t count = type_count_upper(yes, a), other = type_count_upper(no, b);
    *l = (Leveled){ .rank = a->rank, .room = count > other ? count : other };
    bool differ = !type_is_static(a) || !type_is_static(b);
    for (int k = 0; k < a->rank && k < b->rank; k++) {
        int64_t x = dim_upper(yes, a->dim[k]), y = dim_upper(no, b->dim[k]);
        l->limit[k] = x > y ? x : y;
        differ = differ || a->dim[k] != b->dim[k];
    }
    return l->is = differ && a->rank == b->rank && a->dtype == b->dtype && l->room < INT32_MAX;
}

// The branch's outputs with two in place of each that is leveled: its elements and its dimensions.
static bool level_branch(OnnxNode *n, Graph *branch, const Leveled *l) {
    Graph old = *branch;
    OnnxNode inner = *n;
    inner.g = branch;
    branch->loc = n->loc;
    branch->outputs.n = branch->outputs.cap = branch->output_names.n = branch->output_names.cap = 0;
    branch->outputs.at = NULL;
    branch->output_names.at = NULL;
    for (int i = 0; i < old.outputs.n; i++) {
        Value *v = old.outputs.at[i];
        if (!l[i].is) {
            graph_output(branch, v, old.output_names.at[i]);
            continue;
        }
        Dim size = type_product(branch, &v->type, 0, v->type.rank), room = l[i].room;
        Value *places = b_iota(inner.g, 1, &room, 0, DT_I64);             // those beyond the end read 0
        Value *all = size == 0 ? b_filled(inner.g, v->type.dtype, 0, 1, &room) :
                                 b_gather(branch, b_reshape(branch, v, 1, &size), places, 0);
        Value *dims = b_numbers(inner.g, v->type.rank, v->type.dim);
        if (!all || !dims) return false;
        graph_output(branch, all, NULL);
        graph_output(branch, dims, NULL);
    }
    return true;
}

static Value *unlevel(OnnxNode *n, Value *all, Value *dims, const Leveled *l) {
    Dim shape[MAX_RANK];
    if (!onnx_measure_all(n, dims, l->rank, l->limit, shape)) return NULL;
    Type t = type_make(all->type.dtype, l->rank, shape);
    return b_reshape(n->g, b_part(n->g, all, 0, 0, type_size(n->g, &t)), l->rank, shape);
}

Value *onnx_if(OnnxNode *n) {
    Tensor *t;
    if (!onnx_inputs(n, 1) || !known_number(n, n->in[0], &t)) return NULL;
    if (t)
        return onnx_subgraph(n, tensor_get_i(t, 0) ? "then_branch" : "else_branch", 0, NULL, n->n_out, n->out) ?
            n->out[0] :
            NULL;
    Value *condition = b_scalar_of(n->g, n->in[0]);
    Graph *yes = onnx_body_graph(n, "then_branch", 0, NULL, n->n_out),
          *no = yes ? onnx_body_graph(n, "else_branch", 0, NULL, n->n_out) : NULL;
    int *lengths = NEW_ARRAY(n->g->arena, int, n->n_out + 1), at = 0;
    if (!condition || !no || !flatten_branches(n, (Graph *[]){ yes, no }, lengths)) return NULL;
    int count = yes->outputs.n;
    Leveled *l = NEW_ARRAY(n->g->arena, Leveled, count + 1);
    bool any = false;
    for (int i = 0; i < count; i++) agree_on_rank((Graph *[]){ yes, no }, i);
    for (int i = 0; i < count; i++) any |= needs_leveling(yes, no, i, &l[i]);
    if (any && (!level_branch(n, yes, l) || !level_branch(n, no, l))) return NULL;
    Node *node = graph_node(n->g, OP_If, 1, &condition, yes->outputs.n);
    node->bodies = NEW_ARRAY(n->g->arena, Graph *, 2);
    node->bodies[0] = yes;
    node->bodies[1] = no;
    node->n_bodies = 2;
    if (yes->outputs.n && !b_finish(node)) return NULL;
    Value **out = NEW_ARRAY(n->g->arena, Value *, count + 1);
    for (int i = 0; i < count; at += l[i++].is ? 2 : 1)
        if (!(out[i] = l[i].is ? unlevel(n, node->out[at], node->out[at + 1], &l[i]) : node->out[at])) return NULL;
    at = 0;
    for (int i = 0; i < n->n_out; i++) {
        int k = lengths[i];
        n->out[i] = k == -2 ? onnx_absent() :
            k == -3         ? onnx_sequence_of_rows(n->g, out[at]) :
            k == -1         ? out[at] :
                              onnx_sequence_of(n->g, k, out + at);
        at += k == -2 ? 0 : k < 0 ? 1 : k;
    }
    if (!yes->outputs.n) graph_remove(n->g, node);
    return n->out[0];
}

// ---------------------------------------------------------------- what Loop and Scan share

typedef struct Iteration {
    int n_carried, n_scanned;
    Value **carried;                    // updated by each iteration
    Value ***scanned;                   // [n_scanned][trips]
    int64_t trips, done;
} Iteration;

static bool iteration_init(OnnxNode *n, Iteration *it, int n_carried, Value *const *carried, int64_t trips) {
    Arena *a = n->g->arena;
    it->n_carried = n_carried;
    it->n_scanned = n->n_out - n_carried;
    it->trips = trips;
    it->done = 0;
    if (it->n_scanned < 0 || !n->n_out) return onnx_fail(n, "has fewer outputs than carried values, or none"), false;
    it->carried = NEW_ARRAY(a, Value *, n_carried + 1);
    for (int i = 0; i < n_carried; i++)
        if (!(it->carried[i] = carried[i])) return onnx_fail(n, "a carried value is missing"), false;
    it->scanned = NEW_ARRAY(a, Value **, it->n_scanned + 1);
    for (int i = 0; i < it->n_scanned; i++) it->scanned[i] = NEW_ARRAY(a, Value *, trips + 1);
    return true;
}

static void iteration_take(Iteration *it, Value **out) {
    for (int i = 0; i < it->n_carried; i++) it->carried[i] = out[i];
    for (int i = 0; i < it->n_scanned; i++) it->scanned[i][it->done] = out[it->n_carried + i];
    it->done++;
}

// The values of all iterations along a new axis. No iterations: empty, of the type that the body would give.
static Value *stack(OnnxNode *n, Value **v, int64_t count, int axis, bool reverse, const Type *otherwise) {
    if (!count) {
        if (!otherwise || otherwise->dtype == DT_NONE || otherwise->rank >= MAX_RANK)
            return onnx_fail(n, "no iterations, and the type of a stacked output is not known");
        Dim dims[MAX_RANK] = { 0 };
        for (int i = 0; i < otherwise->rank; i++) dims[i + 1] = otherwise->dim[i];
        return b_filled(n->g, otherwise->dtype, 0, otherwise->rank + 1, dims);
    }
    Value **in_order = NEW_ARRAY(n->g->arena, Value *, count);
    for (int64_t i = 0; i < count; i++) {
        if (onnx_is_sequence(v[i]) || v[i] == onnx_absent())
            return onnx_fail(n, "the body gives a sequence or an optional to be stacked; what is stacked are tensors");
        in_order[i] = v[reverse ? count - 1 - i : i];
    }
    return b_stack(n->g, axis, (int)count, in_order);
}

static bool few_nodes(OnnxNode *n, int64_t trips, int64_t most) {
    const OnnxGraphDef *body = onnx_body(n, "body");
    return body && trips <= most / (body->n_nodes + 1);
}

// Makes the node of the iterations, `count` of them if that is a dimension, or at most so many; NULL with diagnostics.
static Node *loop_finish(
    OnnxNode *n, const Iteration *it, Graph *body, Value *trips, Value *condition, const Dim *count, bool early) {
    for (int i = 0; i < body->outputs.n; i++)
        if (onnx_is_sequence(body->outputs.at[i]) || body->outputs.at[i] == onnx_absent())
            return onnx_fail(n, "makes sequences; that needs a known and small number of iterations"), NULL;
    Value **in = NEW_ARRAY(n->g->arena, Value *, 2 + it->n_carried);
    in[0] = trips ? b_scalar_of(n->g, trips) : NULL;
    in[1] = condition ? b_scalar_of(n->g, condition) : NULL;
    for (int i = 0; i < it->n_carried; i++) in[2 + i] = it->carried[i];
    Node *node = graph_node(n->g, OP_Loop, 2 + it->n_carried, in, it->n_carried + it->n_scanned);
    node->bodies = NEW_ARRAY(n->g->arena, Graph *, 1);
    node->bodies[0] = body;
    node->n_bodies = 1;
    if (count) node_set_ints(node, "trips", count, 1);
    if (early) node_set_int(node, "early", 1);
    return b_finish(node) ? node : NULL;
}

// Builds the body once as a graph of its own, to learn the types of its outputs or to loop over it.
static Graph *loop_body(OnnxNode *n, const Iteration *it) {
    const OnnxGraphDef *body = onnx_body(n, "body");
    Type *types = NEW_ARRAY(n->g->arena, Type, 3 + it->n_carried);
    if (!body) return NULL;
    int one = body->n_inputs && body->inputs[0].has_shape && body->inputs[0].rank == 1;
    types[0] = type_make(DT_I64, one, (Dim[]){ 1 });
    types[1] = type_make(DT_BOOL, 0, NULL);
    for (int i = 0; i < it->n_carried; i++) types[2 + i] = it->carried[i]->type;
    Graph *built = onnx_body_graph(n, "body", 2 + it->n_carried, types, 1 + n->n_out);
    Tensor *next;
    return built && known_number(n, built->outputs.at[0], &next) ? built : NULL;
}

// ---------------------------------------------------------------- Loop

static Value *finish_loop(OnnxNode *n, Iteration *it) {
    const Graph *types = NULL;
    if (!it->done && it->n_scanned && !(types = loop_body(n, it))) return NULL;
    for (int i = 0; i < it->n_carried; i++) n->out[i] = it->carried[i];
    for (int i = 0; i < it->n_scanned; i++)
        n->out[it->n_carried + i] = stack(
            n, it->scanned[i], it->done, 0, false, types ? &types->outputs.at[1 + it->n_carried + i]->type : NULL);
    return n->out[0];
}

// Does the body give its condition on as it is?
static bool keeps_condition(const Graph *body) {
    const Value *v = body->outputs.at[0];
    while (v->def && v->def->op == OP_Identity) v = v->def->in[0];
    return v == body->inputs.at[1];
}

// Sequences that the body grows by one element each time, as outputs stacked after the others: body (condition,
// carried, scanned), `plain` without them; from[i]: where output i of the loop is then. False with a diagnostic when
// the body does anything else with one.
static bool loop_grow(OnnxNode *n, const Iteration *it, Graph *body, Iteration *plain, int *from) {
    Value **old = body->outputs.at, **grown = NEW_ARRAY(n->g->arena, Value *, n->n_out + 1);
    int at = 0, more = 0;
    *plain = *it;
    plain->n_carried = 0;
    plain->carried = NEW_ARRAY(n->g->arena, Value *, it->n_carried + 2);         // room for count_iterations
    for (int i = 0; i < n->n_out; i++) {
        bool sequence = i < it->n_carried && onnx_is_sequence(it->carried[i]);
        if (sequence && !(grown[more++] = onnx_sequence_appended(old[1 + i])))
            return onnx_fail(n,
                       "does more with a sequence that it carries than to append an element; that needs a known and "
                       "small number of iterations"),
                   false;
        if (sequence) continue;
        if (i < it->n_carried) plain->carried[plain->n_carried++] = it->carried[i];
        from[i] = at++;
        body->outputs.at[at] = old[1 + i];
    }
    for (int i = 0, k = at; i < it->n_carried; i++)
        if (onnx_is_sequence(it->carried[i])) from[i] = k++;
    for (int k = 0; k < more; k++) body->outputs.at[1 + at + k] = grown[k];
    plain->n_scanned = n->n_out - plain->n_carried;
    return true;
}

// Can the condition end the iterations before their number is reached? A number that is computed, and a condition that
// stays as it is, are all iterations or none: that number is another one.
static bool ends_early(Value *trips, Value *condition, const Graph *body) {
    Tensor *first = condition ? value_const(condition) : NULL, *next = value_const(body->outputs.at[0]);
    if (keeps_condition(body) && trips && !value_const(trips)) return false;
    if (condition && (!first || !tensor_get_i(first, 0))) return true;
    return !keeps_condition(body) && !(next && tensor_get_i(next, 0));
}

// Is the number of iterations a dimension, or computed from dimensions?
static bool symbolic_trips(OnnxNode *n, Value *trips, Dim *count) {
    DimValue known;
    if (!trips || !onnx_dim_value(n->g, trips, &known) || !known.symbolic) return false;
    *count = known.v;
    return true;
}

// A number of iterations that the program computes, as a dimension.
static bool measured_trips(
    OnnxNode *n, const Iteration *it, Value **trips, Value **condition, const Graph *body, Dim *count) {
    Value *list = b_reshape(n->g, B_MAP(n->g, "max(x, 0)", "x", b_cast(n->g, *trips, DT_I64)), 1, (Dim[]){ 1 });
    if (*condition && keeps_condition(body)) {          // all iterations or none
        Value *all = b_reshape(n->g, *condition, 0, NULL);
        list = list && all ? b_where(n->g, all, list, b_ints(n->g, 1, (int64_t[]){ 0 })) : NULL;
        *trips = b_reshape(n->g, list, 0, NULL);
        *condition = NULL;
    }
    return onnx_measure(n, list, 0, it->n_scanned ? it->n_carried : 0, 0, 0, NO_LIMIT, count);
}

// Iterations that a condition ends, and that stack. The loop carries how many it has done and whether it would go on,
// two values behind those of `it`; a number of iterations that the program computes becomes part of the condition.
static bool count_iterations(OnnxNode *n, Iteration *it, Graph *body, Value *trips, Value **condition) {
    Graph *outer = n->g;
    const int at = it->n_carried;
    Value *done = b_number(outer, 0),
          *more = *condition ? b_scalar_of(outer, *condition) : b_scalar(outer, DT_BOOL, 1);
    if (trips) trips = b_cast(outer, b_scalar_of(outer, trips), DT_I64);
    if (trips) more = B_MAP(outer, "c && t > 0", "c t", more, trips);
    if (!done || !more) return false;
    graph_input(body, "done", done->type);
    graph_input(body, "more", more->type);
    n->g = body;
    Value *now = B_MAP(body, "x + 1", "x", b_scalar_of(body, body->inputs.at[0])),
          *next = b_scalar_of(body, body->outputs.at[0]);
    if (trips) next = B_MAP(body, "c && x < t", "c x t", next, now, trips);
    n->g = outer;
    if (!now || !next) return false;
    graph_output(body, now, "done");
    graph_output(body, next, "more");
    memmove(body->outputs.at + 1 + at + 2, body->outputs.at + 1 + at, sizeof now * (size_t)it->n_scanned);
    body->outputs.at[0] = next;
    body->outputs.at[1 + at] = now;
    body->outputs.at[2 + at] = next;
    it->carried[at] = done;
    it->carried[at + 1] = *condition = more;
    it->n_carried += 2;
    return true;
}

// The room for what such a loop stacks; *bounded: it does whatever the condition says.
static Dim room_for(OnnxNode *n, Value *trips, int scanned, bool *bounded) {
    Tensor *known = trips ? value_const(trips) : NULL;
    int64_t most = known ? tensor_get_i(known, 0) : INT64_MAX;
    Dim count;
    *bounded = symbolic_trips(n, trips, &count);
    if (*bounded) return count;
    *bounded = most < INT32_MAX;
    return *bounded ? (most < 0 ? 0 : most) : onnx_bound(n, scanned, 0);
}

// The iterations that such a loop has done, as a dimension. Where the room did not do, the size is one that the check
// on it refuses.
static bool iterations_done(
    OnnxNode *n, const Iteration *it, const Node *node, int scanned, bool bounded, Dim most, Dim *count) {
    Value *done = node->out[it->n_carried - 2], *more = node->out[it->n_carried - 1];
    if (!bounded) done = B_MAP(n->g, "m ? r + 1 : d", "m r d", more, b_number(n->g, most), done);
    return onnx_measure(n, b_reshape(n->g, done, 1, (Dim[]){ 1 }), 0, scanned, 0, 0, most, count);
}

static bool loop_early(
    OnnxNode *n, const Iteration *it, Iteration *plain, const int *from, Graph *body, Value *trips, Value *condition) {
    const int scanned = it->n_scanned ? it->n_carried : 0, first = plain->n_carried;
    bool bounded;
    Dim most = room_for(n, trips, scanned, &bounded), all;
    if (!count_iterations(n, plain, body, bounded ? NULL : trips, &condition)) return false;
    const Node *node = loop_finish(n, plain, body, NULL, condition, &most, true);
    if (!node || !iterations_done(n, plain, node, scanned, bounded, most, &all)) return false;
    for (int i = 0; i < n->n_out; i++) {
        bool sequence = i < it->n_carried && onnx_is_sequence(it->carried[i]);
        Value *v = from[i] < first ? node->out[from[i]] : b_part(n->g, node->out[from[i] + 2], 0, 0, all);
        n->out[i] = sequence ? onnx_sequence_joined(n, it->carried[i], v) : v;
        if (!n->out[i]) return false;
    }
    return true;
}

// The iterations at run time. Where outputs are stacked, their number is a dimension.
static bool loop_node(OnnxNode *n, const Iteration *it, Value *trips, Value *condition) {
    Iteration plain;
    int *from = NEW_ARRAY(n->g->arena, int, n->n_out + 1);
    for (int i = 0; i < it->n_carried; i++)
        if (it->carried[i] == onnx_absent())
            return onnx_fail(n, "carries an optional; that needs a known and small number of iterations"), false;
    Graph *body = loop_body(n, it);
    if (!body || !loop_grow(n, it, body, &plain, from)) return false;
    if (plain.n_scanned && (!trips || ends_early(trips, condition, body)))
        return loop_early(n, it, &plain, from, body, trips, condition);
    Dim count;                                          // what is stacked has as many parts as there are iterations
    bool certain = !condition || value_const(condition),
         symbolic = plain.n_scanned && certain && symbolic_trips(n, trips, &count),
         measured = plain.n_scanned && !symbolic && !value_const(trips);
    if (measured && !measured_trips(n, it, &trips, &condition, body, &count)) return false;
    Node *node = loop_finish(n, &plain, body, trips, condition, symbolic || measured ? &count : NULL, false);
    for (int i = 0; i < n->n_out && node; i++) {
        bool sequence = i < it->n_carried && onnx_is_sequence(it->carried[i]);
        n->out[i] = sequence ? onnx_sequence_joined(n, it->carried[i], node->out[from[i]]) : node->out[from[i]];
        if (!n->out[i]) return false;
    }
    return node != NULL;
}

// The same, leaving nothing behind and no diagnostic when it cannot be.
static bool loop_trial(OnnxNode *n, const Iteration *it, Value *trips, Value *condition) {
    Text said;
    text_init(&said, n->g->arena);
    DiagHold hold = diag_hold(&said);
    bool poisoned = n->poisoned, ok = loop_node(n, it, trips, condition);
    n->poisoned = poisoned;
    return diag_release(hold) && ok;
}

// Builds iteration after iteration while the condition is known. False: it is not, or there was a diagnostic.
static bool unroll(OnnxNode *n, Iteration *it, bool go, bool *unknown) {
    const OnnxGraphDef *body = onnx_body(n, "body");
    bool vector = body->n_inputs && body->inputs[0].has_shape && body->inputs[0].rank == 1;
    Value **in = NEW_ARRAY(n->g->arena, Value *, 2 + it->n_carried),
          **out = NEW_ARRAY(n->g->arena, Value *, 2 + n->n_out);
    while (go && it->done < it->trips) {
        Value *number = b_ints(n->g, 1, &it->done);
        in[0] = vector ? number : b_reshape(n->g, number, 0, NULL);
        in[1] = b_scalar(n->g, DT_BOOL, 1);
        for (int i = 0; i < it->n_carried; i++) in[2 + i] = it->carried[i];
        if (!onnx_subgraph(n, "body", 2 + it->n_carried, in, 1 + n->n_out, out)) return false;
        Tensor *next;
        if (!known_number(n, out[0], &next)) return false;
        if (!next) {
            *unknown = true;
            return false;
        }
        go = tensor_get_i(next, 0) != 0;
        iteration_take(it, out + 1);
    }
    return true;
}

Value *onnx_loop(OnnxNode *n) {
    Iteration it;
    Value *trips = onnx_optional(n, 0), *condition = onnx_optional(n, 1);
    Tensor *known_trips, *known_condition;
    if (n->n_in < 2) return onnx_fail(n, "wants a trip count and a condition");
    if (!known_number(n, trips, &known_trips) || !known_number(n, condition, &known_condition)) return NULL;
    Value **carried = NEW_ARRAY(n->g->arena, Value *, n->n_in);
    for (int i = 2; i < n->n_in; i++) carried[i - 2] = onnx_given(n, i);
    if (!iteration_init(n, &it, n->n_in - 2, carried, 0)) return NULL;
    int64_t most = known_trips ? tensor_get_i(known_trips, 0) : 0;
    bool known = known_trips && (!condition || known_condition) && few_nodes(n, most, MAX_UNROLLED_NODES),
         unknown = false;
    if (!known) return loop_node(n, &it, trips, condition) ? n->out[0] : NULL;
    if (!few_nodes(n, most, FEW_NODES) && loop_trial(n, &it, trips, condition)) return n->out[0];
    if (!iteration_init(n, &it, n->n_in - 2, carried, most > 0 ? most : 0)) return NULL;
    if (unroll(n, &it, !known_condition || tensor_get_i(known_condition, 0), &unknown)) return finish_loop(n, &it);
    if (!unknown) return NULL;
    for (int i = 0; i < it.n_carried; i++) it.carried[i] = carried[i];
    return loop_node(n, &it, trips, condition) ? n->out[0] : NULL;
}

// ---------------------------------------------------------------- Scan

typedef struct ScanAxes {
    int n_in, n_out;
    int in_axis[MAX_DIM_VALUES], out_axis[MAX_DIM_VALUES];
    bool in_reverse[MAX_DIM_VALUES], out_reverse[MAX_DIM_VALUES];
} ScanAxes;

static bool list_attr(OnnxNode *n, const char *name, int count, int64_t *out) {
    int given;
    const int64_t *v = onnx_ints(n, name, &given);
    if (v && given != count)
        return onnx_fail(n, "attribute \"%s\" has %d elements, expected %d", name, given, count), false;
    for (int i = 0; i < count; i++) out[i] = v ? v[i] : 0;
    return true;
}

static bool scan_axes(OnnxNode *n, ScanAxes *s, Value *const *x, const Iteration *it) {
    int64_t v[4][MAX_DIM_VALUES];
    if (s->n_in > MAX_DIM_VALUES || it->n_scanned > MAX_DIM_VALUES)
        return onnx_fail(n, "has too many scanned values"), false;
    s->n_out = it->n_scanned;
    bool old = n->opset < 9;
    if (!list_attr(n, old ? "directions" : "scan_input_directions", s->n_in, v[0])
        || !list_attr(n, "scan_input_axes", s->n_in, v[1]))
        return false;
    if (!list_attr(n, "scan_output_directions", s->n_out, v[2]) || !list_attr(n, "scan_output_axes", s->n_out, v[3]))
        return false;
    for (int i = 0; i < s->n_in; i++) {
        if (!x[i] || !onnx_axis(n, v[1][i], x[i]->type.rank, &s->in_axis[i])) return false;
        s->in_reverse[i] = v[0][i] != 0;
    }
    const OnnxGraphDef *body = onnx_body(n, "body");
    for (int i = 0; i < s->n_out; i++) {
        int rank = body && it->n_carried + i < body->n_outputs ? body->outputs[it->n_carried + i].rank + 1 : 1;
        s->out_axis[i] = (int)(v[3][i] < 0 ? v[3][i] + rank : v[3][i]);
        if (s->out_axis[i] < 0 || s->out_axis[i] >= MAX_RANK)
            return onnx_fail(n, "attribute \"scan_output_axes\" holds %lld", (long long)v[3][i]), false;
        s->out_reverse[i] = v[2][i] != 0;
    }
    return true;
}

// The length of all scanned inputs.
static bool scan_length(OnnxNode *n, const ScanAxes *s, Value *const *x, Dim *length) {
    *length = x[0]->type.dim[s->in_axis[0]];
    for (int i = 1; i < s->n_in; i++) {
        Dim size = x[i]->type.dim[s->in_axis[i]];
        if (dim_is_const(size) && dim_is_const(*length) && size != *length)
            return onnx_fail(n, "scanned inputs have the lengths %lld and %lld", (long long)*length, (long long)size),
                   false;
        if (dim_is_const(size)) *length = size;
    }
    return true;
}

// Every step in place.
static bool scan_unrolled(OnnxNode *n, const ScanAxes *s, Iteration *it, Value *const *x, Value **out) {
    Value **in = NEW_ARRAY(n->g->arena, Value *, it->n_carried + s->n_in + 1),
          **step = NEW_ARRAY(n->g->arena, Value *, n->n_out + 1);
    while (it->done < it->trips) {
        for (int i = 0; i < it->n_carried; i++) in[i] = it->carried[i];
        for (int i = 0; i < s->n_in; i++) {
            int64_t at = s->in_reverse[i] ? it->trips - 1 - it->done : it->done;
            in[it->n_carried + i] = b_remove(n->g, b_part(n->g, x[i], s->in_axis[i], at, 1), s->in_axis[i]);
        }
        if (!onnx_subgraph(n, "body", it->n_carried + s->n_in, in, n->n_out, step)) return false;
        iteration_take(it, step);
    }
    for (int i = 0; i < it->n_carried; i++) out[i] = it->carried[i];
    for (int i = 0; i < it->n_scanned; i++) {
        out[it->n_carried + i] = stack(n, it->scanned[i], it->trips, s->out_axis[i], s->out_reverse[i], NULL);
        if (!out[it->n_carried + i]) return false;
    }
    return true;
}

// The body of a loop over the steps: gathers a step's elements and does what Scan's body says with them.
static Graph *scan_body(OnnxNode *n, const ScanAxes *s, const Iteration *it, Value *const *x) {
    Graph *outer = n->g, *g = onnx_new_body(n, "scan");
    if (!g) return NULL;
    Value **in = NEW_ARRAY(g->arena, Value *, it->n_carried + s->n_in + 1),
          **out = NEW_ARRAY(g->arena, Value *, n->n_out + 1);
    Value *number = graph_input(g, "iteration", type_make(DT_I64, 0, NULL));
    graph_input(g, "condition", type_make(DT_BOOL, 0, NULL));
    for (int i = 0; i < it->n_carried; i++) in[i] = graph_input(g, it->carried[i]->name, it->carried[i]->type);
    n->g = g;
    for (int i = 0; i < s->n_in; i++) {                 // -1 is the last
        Value *at = s->in_reverse[i] ? B_MAP(n->g, "-1 - x", "x", number) : number;
        in[it->n_carried + i] = b_gather(g, x[i], at, s->in_axis[i]);
    }
    bool ok = onnx_subgraph(n, "body", it->n_carried + s->n_in, in, n->n_out, out);
    n->g = outer;
    if (!ok) return NULL;
    graph_output(g, b_scalar(g, DT_BOOL, 1), "condition");
    for (int i = 0; i < n->n_out; i++) graph_output(g, out[i], NULL);
    return g;
}

// The steps' values, stacked along axis 0, as the scanned output they are: turned round, and along another axis.
static Value *unstack(OnnxNode *n, Value *v, int axis, bool reverse) {
    if (axis >= v->type.rank)
        return onnx_fail(n, "attribute \"scan_output_axes\" holds %d for an output of rank %d", axis, v->type.rank);
    Value *last_first = reverse ? b_iota(n->g, 1, v->type.dim, 0, DT_I64) : NULL;
    if (reverse) v = b_gather(n->g, v, B_MAP(n->g, "-1 - x", "x", last_first), 0);
    return b_move_axes(n->g, v, 0, 1, axis);
}

static bool scan_loop(OnnxNode *n, const ScanAxes *s, const Iteration *it, Value *const *x, Dim length, Value **out) {
    Graph *body = scan_body(n, s, it, x);
    Node *node = body ? loop_finish(n, it, body, NULL, NULL, &length, false) : NULL;
    for (int i = 0; i < n->n_out && node; i++) {
        bool scanned = i >= it->n_carried;
        out[i] = scanned ?
            unstack(n, node->out[i], s->out_axis[i - it->n_carried], s->out_reverse[i - it->n_carried]) :
            node->out[i];
        if (!out[i]) return false;
    }
    return node != NULL;
}

// One sequence: carried and scanned outputs into out.
static bool scan_sequence(OnnxNode *n, int n_carried, Value *const *carried, int n_x, Value *const *x, Value **out) {
    Iteration it;
    ScanAxes s = { .n_in = n_x };
    Dim length;
    if (!iteration_init(n, &it, n_carried, carried, 0) || !scan_axes(n, &s, x, &it) || !scan_length(n, &s, x, &length))
        return false;
    if (!dim_is_const(length) || length == 0 || !few_nodes(n, length, FEW_NODES))
        return scan_loop(n, &s, &it, x, length, out);
    return iteration_init(n, &it, n_carried, carried, length) && scan_unrolled(n, &s, &it, x, out);
}

Value *onnx_scan(OnnxNode *n) {
    int64_t n_x = onnx_int(n, "num_scan_inputs", 0);
    if (n_x < 1 || n_x > n->n_in) return onnx_fail(n, "attribute \"num_scan_inputs\" is %lld", (long long)n_x);
    int n_carried = n->n_in - (int)n_x;
    return scan_sequence(n, n_carried, n->in, (int)n_x, n->in + n_carried, n->out) ? n->out[0] : NULL;
}

// The body of a loop over a batch: gathers each value's part and scans it.
static Graph *batch_body(OnnxNode *n, int n_carried, int n_x) {
    Graph *outer = n->g, *g = onnx_new_body(n, "batch");
    if (!g) return NULL;
    const int count = n_carried + n_x;
    Value **in = NEW_ARRAY(g->arena, Value *, count), **out = NEW_ARRAY(g->arena, Value *, n->n_out + 1);
    Value *number = graph_input(g, "iteration", type_make(DT_I64, 0, NULL));
    graph_input(g, "condition", type_make(DT_BOOL, 0, NULL));
    bool ok = true;
    for (int i = 0; i < count && ok; i++) ok = (in[i] = b_gather(g, n->in[1 + i], number, 0)) != NULL;
    n->g = g;
    ok = ok && scan_sequence(n, n_carried, in, n_x, in + n_carried, out);
    n->g = outer;
    if (!ok) return NULL;
    graph_output(g, b_scalar(g, DT_BOOL, 1), "condition");
    for (int i = 0; i < n->n_out; i++) graph_output(g, out[i], NULL);
    return g;
}

static bool batch_loop(OnnxNode *n, int n_carried, int n_x, Dim batch) {
    Graph *body = batch_body(n, n_carried, n_x);
    Iteration it = { .n_scanned = n->n_out };
    Node *node = body ? loop_finish(n, &it, body, NULL, NULL, &batch, false) : NULL;
    for (int i = 0; i < n->n_out && node; i++) n->out[i] = node->out[i];
    return node != NULL;
}

static bool batch_unrolled(OnnxNode *n, int n_carried, int n_x, int64_t batch) {
    const int count = n_carried + n_x;
    Value **in = NEW_ARRAY(n->g->arena, Value *, count), ***out = NEW_ARRAY(n->g->arena, Value **, batch),
          **column = NEW_ARRAY(n->g->arena, Value *, batch);
    for (int64_t b = 0; b < batch; b++) {
        out[b] = NEW_ARRAY(n->g->arena, Value *, n->n_out);
        for (int i = 0; i < count; i++)
            if (!(in[i] = b_remove(n->g, b_part(n->g, n->in[1 + i], 0, b, 1), 0))) return false;
        if (!scan_sequence(n, n_carried, in, n_x, in + n_carried, out[b])) return false;
    }
    for (int i = 0; i < n->n_out; i++) {
        for (int64_t b = 0; b < batch; b++) column[b] = out[b][i];
        n->out[i] = stack(n, column, batch, 0, false, NULL);
    }
    return true;
}

// In place, that is; a scan of many steps, or of an open number, is one loop.
static bool few_scans(OnnxNode *n, Dim batch, const Type *x) {
    bool known = x->rank > 1 && dim_is_const(x->dim[1]) && x->dim[1] > 0 && few_nodes(n, x->dim[1], FEW_NODES);
    return dim_is_const(batch) && batch > 0 && batch <= FEW_NODES
        && few_nodes(n, batch * (known ? x->dim[1] : 1), FEW_NODES);
}

// Opset 8: input 0 is a list of lengths (not supported), and every other value has a batch in front.
Value *onnx_scan_batched(OnnxNode *n) {
    int64_t n_x = onnx_int(n, "num_scan_inputs", 0);
    if (n_x < 1 || n_x > n->n_in - 1 || onnx_optional(n, 0))
        return onnx_fail(n, "sequence_lens is not supported, or num_scan_inputs is wrong");
    const int n_carried = n->n_in - 1 - (int)n_x;
    for (int i = 1; i < n->n_in; i++)
        if (!onnx_input(n, i)) return NULL;
    Dim batch = n->in[1]->type.rank ? n->in[1]->type.dim[0] : 0;
    for (int i = 1; i < n->n_in; i++)
        if (!n->in[i]->type.rank || n->in[i]->type.dim[0] != batch)
            return onnx_fail(n, "input %d has no batch in front, or not that of the others", i);
    bool few = few_scans(n, batch, &n->in[1 + n_carried]->type);
    if (!(few ? batch_unrolled(n, n_carried, (int)n_x, batch) : batch_loop(n, n_carried, (int)n_x, batch))) return NULL;
    return n->out[0];
}
