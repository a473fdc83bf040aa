// SPDX-License-Identifier: MIT OR Apache-2.0
// Writers of what has bodies or states: If, Loop, and the recurrent layers.
//
// In: a node. Out: ONNX's, whose operands and results are in the order of ours.
#include "export/rows.h"

#include <string.h>

static OnnxAttr attr_graph(const char *name, OnnxGraphDef *g) {
    return (OnnxAttr){ .name = name, .type = ONNX_GRAPH, .graph = g };
}

static Names result_names(Put *p, const Node *n) {
    const char **out = NEW_ARRAY(p->x->arena, const char *, n->n_out + 1);
    for (int i = 0; i < n->n_out; i++) out[i] = put_name(p, n->out[i]);
    return out;
}

bool write_if(Put *p, Node *n, const Row *row) {
    const char *condition = put_value(p, n->in[0]);
    OnnxGraphDef *yes = put_body(p, n->bodies[0]), *no = yes ? put_body(p, n->bodies[1]) : NULL;
    if (!no) return false;
    Names out = result_names(p, n);
    p->x->node = n;
    put_node(p, row->op, 1, &condition, n->n_out, out,
        ATTRS(attr_graph("then_branch", yes), attr_graph("else_branch", no)));
    return true;
}

// Iterations that ended early leave room behind what they stack.
static bool pad_early(Put *p, Node *n, int first, const char **out) {
    for (int i = first; i < n->n_out; i++) {
        const Type *t = &n->out[i]->type;
        int64_t none[2 * MAX_RANK] = { 0 };
        const char *shape = put_op(p, NULL, "Shape", NAMES(out[i]), NO_ATTRS), *at = put_ints(p, 1, none);
        const char *size = put_op(p, NULL, "Gather", NAMES(shape, at), ATTRS(attr_int("axis", 0)));
        const char *room = put_size(p, t->dim[0], NULL), *before = put_ints(p, t->rank, none);
        if (!room) return false;
        const char *parts[3] = { before, put_op(p, NULL, "Sub", NAMES(room, size), NO_ATTRS),
            put_ints(p, t->rank - 1, none) };
        const char *pads = put_op(p, NULL, "Concat", 3, parts, ATTRS(attr_int("axis", 0)));
        put_op(p, put_name(p, n->out[i]), "Pad", NAMES(out[i], pads), NO_ATTRS);
    }
    return true;
}

bool write_loop(Put *p, Node *n, const Row *row) {
    const char **in = NEW_ARRAY(p->x->arena, const char *, n->n_in + 1);
    const char **out = NEW_ARRAY(p->x->arena, const char *, n->n_out + 1);
    int count = 0, carried = n->n_in - 2;
    bool early = node_int(n, "early", 0) != 0;
    const int64_t *trips = node_ints(n, "trips", &count);
    for (int i = 0; i < n->n_in; i++) in[i] = put_value(p, n->in[i]);
    if (!*in[0] && trips && !early) {
        const char *size = put_size(p, trips[0], NULL);
        if (!size) return false;
        in[0] = put_reshape(p, NULL, size, 0, NULL);
    }
    OnnxGraphDef *body = put_body(p, n->bodies[0]);
    if (!body) return false;
    p->x->node = n;
    for (int i = 0; i < n->n_out; i++)
        out[i] = early && i >= carried ? put_fresh(p, "stacked") : put_name(p, n->out[i]);
    put_node(p, row->op, n->n_in, in, n->n_out, out, ATTRS(attr_graph("body", body)));
    return !early || pad_early(p, n, carried, out);
}

// ---------------------------------------------------------------- RNN, GRU, LSTM

static OnnxAttr activations(Arena *a, const char *text) {
    VEC(const char *) words = { 0 };
    while (*(text += strspn(text, " "))) {
        size_t length = strcspn(text, " ");
        VEC_PUSH(a, words, arena_strndup(a, text, length));
        text += length;
    }
    return (OnnxAttr){ .name = "activations", .type = ONNX_STRINGS, .n = words.n, .strings = words.at };
}

bool write_recurrent(Put *p, Node *n, const Row *row) {
    static const char *const floats[] = { "activation_alpha", "activation_beta" };
    Arena *a = p->x->arena;
    OnnxAttr attrs[MAX_ATTRS];
    int count = 0;
    attrs[count++] = attr_int("hidden_size", n->in[2]->type.dim[2]);
    attrs[count++] = attr_string("direction", node_string(n, "direction", "forward"));
    if (node_attr(n, "activations")) attrs[count++] = activations(a, node_string(n, "activations", ""));
    for (size_t i = 0; i < COUNT(floats); i++) {
        const Attr *given = node_attr(n, floats[i]);
        if (given) attrs[count++] = attr_floats(a, floats[i], given->n, given->floats);
    }
    if (node_attr(n, "clip")) attrs[count++] = attr_float("clip", node_float(n, "clip", 0));
    count = row_attrs(n, row, count, attrs);
    const char **in = NEW_ARRAY(a, const char *, n->n_in + 1);
    for (int i = 0; i < n->n_in; i++) in[i] = put_value(p, n->in[i]);
    put_node(p, row->op, n->n_in, in, n->n_out, result_names(p, n), count, attrs);
    return true;
}
