// SPDX-License-Identifier: MIT OR Apache-2.0
// If, Loop and Scan.
//
// In: an OnnxNode with graphs in its attributes. Out: what a body computes. The idea: where the condition or the number of iterations is known while
// importing, the branch or every iteration is built in place, so shapes may change from one iteration to the next and everything fuses; where it is
// not, or there are many iterations, the bodies become graphs of an OP_If or OP_Loop.
#include "import/onnx.h"

#include <string.h>

#define MAX_UNROLLED_NODES 4096         // iterations times nodes of the body

// The constant that v is, or NULL when it is computed at run time. False with a diagnostic when it is no single number.
static bool known_number(OnnxNode *n, Value *v, Tensor **out) {
    *out = v && !onnx_is_sequence(v) && v->type.dtype != DT_STRING ? value_const(v) : NULL;
    if (!v || (!onnx_is_sequence(v) && v->type.dtype != DT_STRING && (!*out || type_count(&(*out)->type) == 1))) return true;
    return onnx_fail(n, "the condition and the number of iterations must be single numbers"), false;
}

Value *onnx_if(OnnxNode *n) {
    Tensor *t;
    if (!onnx_inputs(n, 1) || !known_number(n, n->in[0], &t)) return NULL;
    if (t) return onnx_subgraph(n, tensor_get_i(t, 0) ? "then_branch" : "else_branch", 0, NULL, n->n_out, n->out) ? n->out[0] : NULL;
    Value *condition = onnx_scalar_of(n, n->in[0]);
    Graph *yes = onnx_body_graph(n, "then_branch", 0, NULL, n->n_out), *no = yes ? onnx_body_graph(n, "else_branch", 0, NULL, n->n_out) : NULL;
    if (!condition || !no) return NULL;
    Node *node = graph_node(n->g, OP_If, 1, &condition, n->n_out);
    node->bodies = NEW_ARRAY(n->g->arena, Graph *, 2);
    node->bodies[0] = yes;
    node->bodies[1] = no;
    node->n_bodies = 2;
    Value *v = onnx_finish(node);
    for (int i = 0; i < n->n_out && v; i++) n->out[i] = node->out[i];
    return v;
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
    if (it->n_scanned < 0) return onnx_fail(n, "has fewer outputs than carried values"), false;
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
        if (!otherwise || otherwise->rank >= MAX_RANK) return onnx_fail(n, "no iterations, and the type of a stacked output is not known");
        Dim dims[MAX_RANK] = { 0 };
        for (int i = 0; i < otherwise->rank; i++) dims[i + 1] = otherwise->dim[i];
        return onnx_filled(n, otherwise->dtype, 0, otherwise->rank + 1, dims);
    }
    Value **parts = NEW_ARRAY(n->g->arena, Value *, count);
    for (int64_t i = 0; i < count; i++) parts[i] = onnx_insert(n, v[reverse ? count - 1 - i : i], axis);
    return b_concat(n->g, axis, (int)count, parts);
}

static bool small_enough(OnnxNode *n, int64_t trips) {
    const OnnxGraphDef *body = onnx_body(n, "body");
    return body && trips * (body->n_nodes + 1) <= MAX_UNROLLED_NODES;
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
    return onnx_body_graph(n, "body", 2 + it->n_carried, types, 1 + n->n_out);
}

// ---------------------------------------------------------------- Loop

static Value *finish_loop(OnnxNode *n, Iteration *it) {
    const Graph *types = NULL;
    if (!it->done && it->n_scanned && !(types = loop_body(n, it))) return NULL;
    for (int i = 0; i < it->n_carried; i++) n->out[i] = it->carried[i];
    for (int i = 0; i < it->n_scanned; i++)
        n->out[it->n_carried + i] = stack(n, it->scanned[i], it->done, 0, false, types ? &types->outputs.at[1 + it->n_carried + i]->type : NULL);
    return n->out[0];
}

// The iterations at run time.
static Value *loop_node(OnnxNode *n, Iteration *it, Value *trips, Value *condition) {
    for (int i = 0; i < it->n_carried; i++)
        if (onnx_is_sequence(it->carried[i])) return onnx_fail(n, "carries a sequence; that needs a known and small number of iterations");
    Graph *body = loop_body(n, it);
    if (!body) return NULL;
    Value **in = NEW_ARRAY(n->g->arena, Value *, 2 + it->n_carried);
    in[0] = trips ? onnx_scalar_of(n, trips) : NULL;
    in[1] = condition ? onnx_scalar_of(n, condition) : NULL;
    for (int i = 0; i < it->n_carried; i++) in[2 + i] = it->carried[i];
    Node *node = graph_node(n->g, OP_Loop, 2 + it->n_carried, in, n->n_out);
    node->bodies = NEW_ARRAY(n->g->arena, Graph *, 1);
    node->bodies[0] = body;
    node->n_bodies = 1;
    Value *v = onnx_finish(node);
    for (int i = 0; i < n->n_out && v; i++) n->out[i] = node->out[i];
    return v;
}

// Builds iteration after iteration while the condition is known. False: it is not, or there was a diagnostic.
static bool unroll(OnnxNode *n, Iteration *it, bool go, bool *unknown) {
    const OnnxGraphDef *body = onnx_body(n, "body");
    bool vector = body->n_inputs && body->inputs[0].has_shape && body->inputs[0].rank == 1;
    Value **in = NEW_ARRAY(n->g->arena, Value *, 2 + it->n_carried), **out = NEW_ARRAY(n->g->arena, Value *, 2 + n->n_out);
    while (go && it->done < it->trips) {
        Value *number = b_ints(n->g, 1, &it->done);
        in[0] = vector ? number : b_reshape(n->g, number, 0, NULL);
        in[1] = b_scalar(n->g, DT_BOOL, 1);
        for (int i = 0; i < it->n_carried; i++) in[2 + i] = it->carried[i];
        if (!onnx_subgraph(n, "body", 2 + it->n_carried, in, 1 + n->n_out, out)) return false;
        Tensor *next;
        if (!known_number(n, out[0], &next)) return false;
        if (!next) { *unknown = true; return false; }
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
    int64_t most = known_trips ? tensor_get_i(known_trips, 0) : 0;
    bool known = known_trips && (!condition || known_condition), unknown = false;
    if (known && most > 0 && !small_enough(n, most)) known = false;
    if (!iteration_init(n, &it, n->n_in - 2, n->in + 2, known && most > 0 ? most : 0)) return NULL;
    if (known && unroll(n, &it, !known_condition || tensor_get_i(known_condition, 0), &unknown)) return finish_loop(n, &it);
    if (known && !unknown) return NULL;
    for (int i = 0; i < it.n_carried; i++) it.carried[i] = n->in[2 + i];
    return loop_node(n, &it, trips, condition);
}

// ---------------------------------------------------------------- Scan

typedef struct ScanAxes { int n_in, n_out; int in_axis[MAX_DIM_VALUES], out_axis[MAX_DIM_VALUES]; bool in_reverse[MAX_DIM_VALUES], out_reverse[MAX_DIM_VALUES]; } ScanAxes;

static bool list_attr(OnnxNode *n, const char *name, int count, int64_t *out) {
    int given;
    const int64_t *v = onnx_ints(n, name, &given);
    if (v && given != count) return onnx_fail(n, "attribute \"%s\" has %d elements, expected %d", name, given, count), false;
    for (int i = 0; i < count; i++) out[i] = v ? v[i] : 0;
    return true;
}

static bool scan_axes(OnnxNode *n, ScanAxes *s, Value *const *x, const Iteration *it) {
    int64_t v[4][MAX_DIM_VALUES];
    if (s->n_in > MAX_DIM_VALUES || it->n_scanned > MAX_DIM_VALUES) return onnx_fail(n, "has too many scanned values"), false;
    s->n_out = it->n_scanned;
    bool old = n->opset < 9;
    if (!list_attr(n, old ? "directions" : "scan_input_directions", s->n_in, v[0]) || !list_attr(n, "scan_input_axes", s->n_in, v[1])) return false;
    if (!list_attr(n, "scan_output_directions", s->n_out, v[2]) || !list_attr(n, "scan_output_axes", s->n_out, v[3])) return false;
    for (int i = 0; i < s->n_in; i++) {
        if (!x[i] || !onnx_axis(n, v[1][i], x[i]->type.rank, &s->in_axis[i])) return false;
        s->in_reverse[i] = v[0][i] != 0;
    }
    const OnnxGraphDef *body = onnx_body(n, "body");
    for (int i = 0; i < s->n_out; i++) {
        int rank = body && it->n_carried + i < body->n_outputs ? body->outputs[it->n_carried + i].rank + 1 : 1;
        s->out_axis[i] = (int)(v[3][i] < 0 ? v[3][i] + rank : v[3][i]);
        if (s->out_axis[i] < 0 || s->out_axis[i] >= MAX_RANK) return onnx_fail(n, "attribute \"scan_output_axes\" holds %lld", (long long)v[3][i]), false;
        s->out_reverse[i] = v[2][i] != 0;
    }
    return true;
}

// Many steps: an OP_Loop whose body reads slice i of each scanned input. Its stacked outputs are along axis 0 and in order.
static bool scan_node(OnnxNode *n, const Iteration *it, const ScanAxes *s, int64_t trips, int n_x, Value *const *x, Value **out) {
    Graph *outer = n->g, *body = graph_body(outer, "scan");
    Value **in = NEW_ARRAY(outer->arena, Value *, it->n_carried + n_x + 2), **step = NEW_ARRAY(outer->arena, Value *, n->n_out + 1);
    Value *number = graph_input(body, "i", type_make(DT_I64, 0, NULL)), *go = graph_input(body, "go", type_make(DT_BOOL, 0, NULL));
    n->g = body;
    for (int i = 0; i < it->n_carried; i++) in[i] = graph_input(body, "carried", it->carried[i]->type);
    for (int i = 0; i < n_x; i++) {
        Value *at = s->in_reverse[i] ? ONNX_MAP(n, arena_printf(outer->arena, "%lld - x", (long long)trips - 1), "x", number) : number;
        in[it->n_carried + i] = b_gather(body, x[i], at, s->in_axis[i]);
    }
    bool ok = onnx_subgraph(n, "body", it->n_carried + n_x, in, n->n_out, step);
    n->g = outer;
    if (!ok) return false;
    graph_output(body, go, "go");
    for (int i = 0; i < n->n_out; i++) graph_output(body, step[i], "step");
    in[0] = b_reshape(outer, b_ints(outer, 1, &trips), 0, NULL);
    in[1] = NULL;
    for (int i = 0; i < it->n_carried; i++) in[2 + i] = it->carried[i];
    Node *node = graph_node(outer, OP_Loop, 2 + it->n_carried, in, n->n_out);
    node->bodies = NEW_ARRAY(outer->arena, Graph *, 1);
    node->bodies[0] = body;
    node->n_bodies = 1;
    if (!onnx_finish(node)) return false;
    for (int i = 0; i < n->n_out; i++) {
        out[i] = node->out[i];
        for (int k = 0, axis = i < it->n_carried ? 0 : s->out_axis[i - it->n_carried]; k < axis; k++) out[i] = onnx_swap(n, out[i], k, k + 1);
        if (i < it->n_carried || !s->out_reverse[i - it->n_carried]) continue;
        const Type *t = &out[i]->type;
        int axis = s->out_axis[i - it->n_carried];
        int64_t starts[MAX_RANK] = { 0 }, steps[MAX_RANK];
        for (int k = 0; k < t->rank; k++) steps[k] = k == axis ? -1 : 1;
        starts[axis] = trips - 1;
        out[i] = b_slice(outer, out[i], starts, steps, t->dim);
    }
    return true;
}

// One sequence: carried and scanned outputs into out.
static bool scan_sequence(OnnxNode *n, int n_carried, Value *const *carried, int n_x, Value *const *x, Value **out) {
    Iteration it;
    ScanAxes s = { .n_in = n_x };
    int64_t trips = -1;
    if (!iteration_init(n, &it, n_carried, carried, 0) || !scan_axes(n, &s, x, &it)) return false;
    for (int i = 0; i < n_x; i++) {
        Dim size = x[i]->type.dim[s.in_axis[i]];
        if (!dim_is_const(size)) return onnx_fail(n, "the length of scanned input %d is %s; pin it with --dim NAME=V", i, dim_text(n->g->arena, n->g, size)), false;
        if (trips >= 0 && trips != size) return onnx_fail(n, "scanned inputs have the lengths %lld and %lld", (long long)trips, (long long)size), false;
        trips = size;
    }
    if (trips < 1) return onnx_fail(n, "scans nothing"), false;
    if (!small_enough(n, trips)) return scan_node(n, &it, &s, trips, n_x, x, out);
    if (!iteration_init(n, &it, n_carried, carried, trips)) return false;
    Value **in = NEW_ARRAY(n->g->arena, Value *, n_carried + n_x + 1), **step = NEW_ARRAY(n->g->arena, Value *, n->n_out + 1);
    while (it.done < trips) {
        for (int i = 0; i < n_carried; i++) in[i] = it.carried[i];
        for (int i = 0; i < n_x; i++) {
            int64_t at = s.in_reverse[i] ? trips - 1 - it.done : it.done;
            in[n_carried + i] = onnx_remove(n, onnx_part(n, x[i], s.in_axis[i], at, 1), s.in_axis[i]);
        }
        if (!onnx_subgraph(n, "body", n_carried + n_x, in, n->n_out, step)) return false;
        iteration_take(&it, step);
    }
    for (int i = 0; i < n_carried; i++) out[i] = it.carried[i];
    for (int i = 0; i < it.n_scanned; i++) out[n_carried + i] = stack(n, it.scanned[i], trips, s.out_axis[i], s.out_reverse[i], NULL);
    return true;
}

Value *onnx_scan(OnnxNode *n) {
    int64_t n_x = onnx_int(n, "num_scan_inputs", 0);
    if (n_x < 1 || n_x > n->n_in) return onnx_fail(n, "attribute \"num_scan_inputs\" is %lld", (long long)n_x);
    int n_carried = n->n_in - (int)n_x;
    return scan_sequence(n, n_carried, n->in, (int)n_x, n->in + n_carried, n->out) ? n->out[0] : NULL;
}

// Opset 8: input 0 is a list of lengths (not supported), and every other value has a batch in front.
Value *onnx_scan_batched(OnnxNode *n) {
    int64_t n_x = onnx_int(n, "num_scan_inputs", 0);
    if (n_x < 1 || n_x > n->n_in - 1 || onnx_optional(n, 0)) return onnx_fail(n, "sequence_lens is not supported, or num_scan_inputs is wrong");
    int count = n->n_in - 1, n_carried = count - (int)n_x;
    for (int i = 1; i <= count; i++)
        if (!onnx_input(n, i)) return NULL;
    Dim batch = n->in[1]->type.rank ? n->in[1]->type.dim[0] : 0;
    if (!dim_is_const(batch) || batch < 1 || batch > 256) return onnx_fail(n, "the batch must be known and between 1 and 256");
    Value **in = NEW_ARRAY(n->g->arena, Value *, count), ***out = NEW_ARRAY(n->g->arena, Value **, batch), **column = NEW_ARRAY(n->g->arena, Value *, batch);
    for (int64_t b = 0; b < batch; b++) {
        out[b] = NEW_ARRAY(n->g->arena, Value *, n->n_out);
        for (int i = 0; i < count; i++)
            if (!(in[i] = onnx_remove(n, onnx_part(n, n->in[1 + i], 0, b, 1), 0))) return NULL;
        if (!scan_sequence(n, n_carried, in, (int)n_x, in + n_carried, out[b])) return NULL;
    }
    for (int i = 0; i < n->n_out; i++) {
        for (int64_t b = 0; b < batch; b++) column[b] = out[b][i];
        n->out[i] = stack(n, column, batch, 0, false, NULL);
    }
    return n->out[0];
}
