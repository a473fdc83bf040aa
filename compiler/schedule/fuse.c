// SPDX-License-Identifier: MIT OR Apache-2.0
// What shares a kernel. In: a graph of primitives. Out: the plan's kernels in execution order, each with its
// expressions.
//
// Nodes are visited from the outputs back. A value that some kernel loads becomes the root of a kernel of its own,
// which then grows towards the inputs: views always join (they move no data), maps and reductions join when all their
// users are already inside, one contraction or convolution may join as the anchor whose epilogue the rest becomes.
// The grown kernel is lowered; where the expression shows that fusing was wrong (a reduction that would be
// recomputed, an anchor read anywhere but at the stored element) that value is cut off and the kernel grown again.
#include "cpu/templates.h"
#include "schedule.h"

#include <string.h>

// nodes and operands of one kernel: bounds compile time and the generated function's size
enum { MAX_INSIDE = 256, MAX_READS = 48, FAR_SMALLER = 64 };

typedef struct Fuser {
    Plan *plan;
    Arena *arena;                                       // the plan's, for its kernels
    Arena *scratch;                                     // for what is below
    Node **nodes; int n_nodes;                          // topological; Node.mark is the position here
    VEC(Node *) *users;                                 // by value id; a graph output counts as a NULL user
    const Node *root;                                   // of the kernel being grown
    int *group;                                         // by value id: outputs.c; 0: none
    bool *needed;                                       // by value id: some kernel loads it, it must be stored
    bool *scores;                                       // `inside` of an attention's scores
    // by node position, for the kernel being grown; pointwise: element i meets element i of the root
    bool *inside, *cut, *pointwise;
    bool *seen;                                         // somebody inside reads it
    int64_t *reads;                                     // how often the kernel computes it
    // by node position: a reduction, or inside one of the kernel being grown
    bool *summed;
    // by node position: the kernel being grown has a transpose behind it
    bool *turned;
    // by node position: maps that an anchor before them could take as its epilogue; of any type
    bool *epilogue, *retyped;
    // by node position: views that the kernel's anchor reads its factors through (Backend.windows_in_loops)
    bool *factor;
    // products of few rows (Backend.attends_few): `scores`, those of an attention, are looked for; by node position:
    // what is no attention's after all
    bool few_scores, *loops;
    VEC(Kernel *) found;                                // kernels, last first
} Fuser;
typedef ConcatUsers Users;

static OpForm form_of(const Node *n) { return op_table[n->op].form; }

bool node_is_stored(const Node *n) {
    if (n->op != OP_Identity || !node_int(n, "stored", 0)) return false;
    const Value *v = n->in[0];
    while (v->def && op_is_view(v->def->op)) v = v->def->in[0];
    return !node_int(n, "sums", 0) || !v->def || !node_is_outer_product(v->def);
}

static bool is_pull(const Node *n) { return op_table[n->op].lower != lower_none && form_of(n) != FORM_CONCAT; }

// How often the kernel would compute the value if its producer joined, given its users inside.
static int64_t reads_of(const Fuser *f, const Value *v) {
    const Users *u = (const Users *)&f->users[v->id];
    // a product of few rows in a loop reads its weights as they are stored; processors have templates, and panels
    const bool loops = f->plan->options->machine.backend->spread_points;
    int64_t total = 0;
    for (int i = 0; i < u->n; i++)
        for (int j = 0; u->at[i] && j < u->at[i]->n_in; j++)
            if (u->at[i]->in[j] == v) total += f->reads[u->at[i]->mark] * node_rereads(u->at[i], loops ? j : -1);
    return total;
}

// Would nobody else compute the value again? A view that others read too is lowered in place there as well, and what
// it shows with it.
static bool users_inside(const Fuser *f, const Value *v) {
    const Users *u = (const Users *)&f->users[v->id];
    for (int i = 0; i < u->n; i++) {
        const Node *n = u->at[i];
        if (!n || !f->inside[n->mark]) return false;
        if (op_is_view(n->op) && n != f->root && !users_inside(f, n->out[0])) return false;
    }
    return u->n > 0;
}

// An input of so few elements that they stay near, as the classes that rows have.
static bool is_small_input(const Fuser *f, const Value *v, const Value *of) {
    return !v->def && !v->data && v->graph == f->plan->graph && type_is_static(&v->type) && type_is_static(&of->type)
        && type_count(&v->type) <= type_count(&of->type) / FAR_SMALLER;
}

// Is the value computed from where its element stands alone, or a far smaller input, in few operations? Every kernel
// that reads it computes it again: that costs no memory traffic, and shows a mask of positions to attention_keys.c.
static bool spends(const Fuser *f, const Value *v, const Value *of, double *left) {
    const Node *n = v->def;
    if (is_small_input(f, v, of)) return true;
    if (v->data) return type_size(f->plan->graph, &v->type) == 1;
    if (!n || v->graph != f->plan->graph) return false;
    if (n->op == OP_Iota) return true;
    *left -= node_cost(n);
    if (*left < 0 || !is_pull(n) || (!op_is_map(n->op) && !op_is_view(n->op))) return false;
    for (int i = 0; i < n->n_in; i++) if (n->in[i] && !spends(f, n->in[i], of, left)) return false;
    return true;
}

static bool is_of_index(const Fuser *f, const Value *v) {
    double left = 8;
    return spends(f, v, v, &left);
}

// The same where random numbers of a counter are among it: attention computes them again rather than keep a matrix.
static bool is_of_counter(const Fuser *f, const Value *v) {
    const Node *n = v->def;
    if (is_of_index(f, v)) return true;
    if (v->data || !n || v->graph != f->plan->graph) return v->data && type_size(f->plan->graph, &v->type) == 1;
    if (n->op == OP_RandomUniform) return true;
    if (!is_pull(n) || n->n_out != 1 || !(op_is_map(n->op) || op_is_view(n->op)) || node_is_stored(n)) return false;
    for (int i = 0; i < n->n_in; i++) if (n->in[i] && !is_of_counter(f, n->in[i])) return false;
    return true;
}

static bool same_size(const Fuser *f, const Value *x, const Value *y) {
    return type_size(f->plan->graph, &x->type) == type_size(f->plan->graph, &y->type);
}

// Do maps and sums alone read it, through views or not?
static bool is_for_loops(const Fuser *f, const Value *v) {
    const Users *u = (const Users *)&f->users[v->id];
    for (int i = 0; i < u->n; i++) {
        const Node *n = u->at[i];
        if (!n || (op_is_view(n->op) ? !is_for_loops(f, n->out[0]) : !op_is_map(n->op) && !op_is_reduce(n->op)))
            return false;
    }
    return u->n > 0;
}

// Does somebody load it where it lies, or this kernel besides for n?
static bool is_loaded(const Fuser *f, const Value *v, const Node *n) {
    const Users *u = (const Users *)&f->users[v->id];
    if (v->data || !v->def || v->graph != f->plan->graph) return false;
    for (int i = 0; i < u->n; i++)
        if (u->at[i] && u->at[i] != n && f->inside[u->at[i]->mark]) return true;
    return f->needed[v->id];
}

// Is the value made in an operation or two from an element that lies in memory at its own place, and far smaller
// values, as a normalized one is? Every kernel that reads it makes it again, and it takes no memory. In training, where
// many read one value much later; where what lies there is read at the speed of memory.
static bool is_of_stored(const Fuser *f, const Value *v, const Options *o) {
    enum { CHEAP = 2 };
    const Node *n = v->def;
    const Value *large = NULL;
    if (!o->machine.backend->spread_points || !graph_trains(f->plan->graph) || !op_is_map(n->op) || !is_for_loops(f, v)
        || node_cost(n) > CHEAP || !type_is_static(&v->type))
        return false;
    for (int i = 0; i < n->n_in; i++) {
        const Value *in = n->in[i];
        if (type_is_static(&in->type) && type_count(&in->type) <= type_count(&v->type) / FAR_SMALLER) continue;
        if (large || !same_size(f, v, in) || in->type.dtype != v->type.dtype) return false;
        large = in;
    }
    return large && is_loaded(f, large, n);
}

static bool is_pointwise(const Node *n) { return op_is_map(n->op) || form_of(n) == FORM_RESHAPE; }

// Do all users, and so the value, meet the root's element at the same place?
static bool users_pointwise(const Fuser *f, const Value *v, const Value *root) {
    const Users *u = (const Users *)&f->users[v->id];
    if (!is_pointwise(v->def) || !same_size(f, v, root)) return false;
    for (int i = 0; i < u->n; i++)
        if (!f->pointwise[u->at[i]->mark]) return false;
    return true;
}

static bool has_template(const Node *n, const Options *o) {
    const Backend *b = o->machine.backend;
    return b->has_template && b->has_template(n, o);
}

// Has it no template of its own, but perhaps one of an attention?
static bool is_of_few(const Fuser *f, const Node *n, const Options *o) {
    const Backend *b = o->machine.backend;
    return b->attends_few && !f->loops[n->mark] && !has_template(n, o) && b->attends_few(n);
}

static bool is_anchor(const Fuser *f, const Node *n, const Options *o) {
    return has_template(n, o) || is_of_few(f, n, o) || (f->few_scores && n->op == OP_MatMul);
}

static bool stays_loop(const Node *n, const Options *o) {
    return (n->op == OP_Conv || node_of_bytes(n)) && o->machine.backend->windows_in_loops;
}

// What follows it reads these few bytes; as the product's epilogue it would be stored in their place, and take more.
static bool is_stored_byte(const Node *n) {
    const DType d = n->out[0]->type.dtype;
    return node_is_stored(n) && (dtype_size(d) == 1 || (dtype_size(d) == 2 && dtype_is_int(d)));
}

// Marks the maps that follow an anchor and nothing else, so that reductions leave them to it.
static void mark_epilogues(Fuser *f, const Options *o) {
    for (int at = 0; at < f->n_nodes; at++) {
        const Node *n = f->nodes[at];
        if (!is_pointwise(n) || n->n_out != 1 || is_stored_byte(n)) continue;
        for (int i = 0; i < n->n_in; i++) {
            const Value *v = n->in[i];
            if (!v || !v->def || v->data || v->graph != f->plan->graph || ((const Users *)&f->users[v->id])->n != 1)
                continue;
            bool follows = is_anchor(f, v->def, o) || f->epilogue[v->def->mark];
            bool bytes = follows && (f->epilogue[v->def->mark] ? f->retyped[v->def->mark] : node_of_bytes(v->def));
            if (!follows || !same_size(f, v, n->out[0]) || (v->type.dtype != n->out[0]->type.dtype && !bytes)) continue;
            f->epilogue[at] = true;
            f->retyped[at] = bytes;
        }
    }
}

static bool users_summed(const Fuser *f, const Value *v) {
    const Users *u = (const Users *)&f->users[v->id];
    for (int i = 0; i < u->n; i++)
        if (u->at[i] && f->summed[u->at[i]->mark]) return true;
    return false;
}

static bool users_turned(const Fuser *f, const Value *v) {
    const Users *u = (const Users *)&f->users[v->id];
    for (int i = 0; i < u->n; i++)
        if (u->at[i] && (u->at[i]->op == OP_Transpose || f->turned[u->at[i]->mark])) return true;
    return false;
}

static bool may_join(const Fuser *f, const Value *v, const Fusion *fu, const Options *o) {
    const Node *n = v->def;
    const Value *root = fu->root;
    if (!n || v->data || f->needed[v->id] || f->cut[n->mark] || !is_pull(n)) return false;
    if (node_is_stored(n)) return false;
    if (op_is_view(n->op)) return true;
    if (o->no_fuse || (!users_inside(f, v) && !is_of_index(f, v) && !is_of_stored(f, v, o))) return false;
    if (fu->n_also && users_pointwise(f, v, root)) return true;     // all stores share it
    if (f->epilogue[n->mark] && !users_pointwise(f, v, root)) return false;
    int64_t r = reads_of(f, v);
    // a contraction is to have all threads for points of its own
    bool spread = o->machine.backend->spread_points;
    if (spread && form_of(n) == FORM_CONTRACT && users_summed(f, v)) return false;
    // its vectors run over the channels: turned, it would take them one by one
    if (form_of(n) == FORM_WINDOW && node_int(n, "channels_last", 0) && users_turned(f, v)) return false;
    // read at one index per row, computed once per row: kernel_loop checks it
    if (op_is_row_reduce(n->op)) return true;
    if (op_is_reduce(n->op)) return r <= 3;
    return r <= 1 || (double)(r - 1) * node_cost(n) <= 40;
}

// What n reads is to be looked at; in front of an anchor, and of views in front of it, views alone join.
static void see_inputs(Fuser *f, const Node *n, bool factor) {
    for (int i = 0; i < n->n_in; i++) {
        const Value *v = n->in[i];
        if (!v || !v->def || v->data || v->graph != f->plan->graph) continue;
        f->seen[v->def->mark] = true;
        if (factor) f->factor[v->def->mark] = true;
    }
}

// Grows the set from the root's node: positions below it in descending order, so that all users of a node are decided
// before it.
static void grow(Fuser *f, Fusion *fu, const Options *o) {
    int root = fu->root->def->mark, count = 1;
    f->root = fu->root->def;
    memset(f->inside, 0, sizeof(bool) * (size_t)f->n_nodes);
    memset(f->pointwise, 0, sizeof(bool) * (size_t)f->n_nodes);
    memset(f->summed, 0, sizeof(bool) * (size_t)f->n_nodes);
    memset(f->turned, 0, sizeof(bool) * (size_t)f->n_nodes);
    memset(f->seen, 0, sizeof(bool) * (size_t)f->n_nodes);
    memset(f->factor, 0, sizeof(bool) * (size_t)f->n_nodes);
    memset(f->reads, 0, sizeof(int64_t) * (size_t)f->n_nodes);
    f->inside[root] = true;
    f->pointwise[root] = is_pointwise(fu->root->def);
    f->summed[root] = op_is_reduce(fu->root->def->op);
    f->reads[root] = 1;
    fu->anchor = is_anchor(f, fu->root->def, o) ? fu->root : NULL;
    f->seen[root] = true;
    if (fu->anchor && stays_loop(fu->root->def, o)) see_inputs(f, fu->root->def, true);
    for (int i = 0; i < fu->n_also; i++) {
        int at = fu->also[i]->def->mark;
        f->inside[at] = f->pointwise[at] = f->seen[at] = true;
        f->reads[at] = 1;
    }
    for (int at = root; at >= 0; at--) {
        if (!f->seen[at]) continue;
        Node *n = f->nodes[at];
        if (!f->inside[at]) {
            Value *v = n->out[0];
            if (n->n_out != 1 || count >= MAX_INSIDE || !may_join(f, v, fu, o)) continue;
            if (f->factor[at] && !op_is_view(n->op)) continue;
            if (is_anchor(f, n, o)) {
                bool fits = same_size(f, v, fu->root) && (v->type.dtype == fu->root->type.dtype || node_of_bytes(n));
                // templates of floats store what they sum: the epilogue ends in the anchor's dtype
                if (fu->anchor || !fits) continue;
                fu->anchor = v;
                if (stays_loop(n, o)) see_inputs(f, n, true);
                continue;
            }
            f->reads[at] = reads_of(f, v);
            if (f->reads[at] < 1) f->reads[at] = 1;
            f->inside[at] = true;
            f->pointwise[at] = users_inside(f, v) && users_pointwise(f, v, fu->root);
            f->summed[at] = op_is_reduce(n->op) || users_summed(f, v);
            f->turned[at] = users_turned(f, v);
            count++;
        }
        if (!is_anchor(f, n, o)) see_inputs(f, n, f->factor[at]);
    }
}

// The kernel being grown, for those that build kernels.
static Fusion fusion_of(const Fuser *f, Value *root) {
    return (Fusion){ .plan = f->plan, .root = root, .inside = f->inside, .nodes = f->nodes, .n_nodes = f->n_nodes };
}

static void need(Fuser *f, Value *v) {
    if (v && v->def && !v->data && v->graph == f->plan->graph) f->needed[v->id] = true;
}

static void found(Fuser *f, Kernel *k) {
    VEC_PUSH(f->scratch, f->found, k);
    for (int i = 0; i < k->reads.n; i++) need(f, k->reads.at[i]);
}

// The node in the middle of the set, where a kernel of too many operands is cut in two.
static Node *middle_inside(const Fuser *f, const Value *root) {
    int n = 0, at = 0;
    for (int i = 0; i < f->n_nodes; i++) n += f->inside[i] && (!root->def || i != root->def->mark);
    for (int i = 0; i < f->n_nodes; i++)
        if (f->inside[i] && (!root->def || i != root->def->mark) && at++ == n / 2) return f->nodes[i];
    return NULL;
}

static void see(Fuser *f, const Value *v) {
    if (v && v->def && !v->data && v->graph == f->plan->graph) f->seen[v->def->mark] = true;
}

// Between a product of attention and those behind it: what nobody else reads, and what is made of a place alone.
static bool joins_attention(const Fuser *f, const Node *n) {
    const Value *v = n->out[0];
    if (n->n_out != 1 || f->needed[v->id]) return false;
    if (n->op == OP_Softmax || n->op == OP_SoftmaxGrad) return true;
    if (!is_pull(n) || node_is_stored(n)) return false;
    const bool element = op_is_map(n->op) || n->op == OP_RandomUniform;
    return op_is_view(n->op) || (element && (users_inside(f, v) || is_of_counter(f, v)));
}

// Marks what joins from a node back, whose operands have been seen.
static void join_attention(Fuser *f, const Node *from) {
    for (int at = from->mark - 1; at >= 0; at--) {
        if (!f->seen[at] || f->inside[at] || !joins_attention(f, f->nodes[at])) continue;
        f->inside[at] = true;
        for (int i = 0; i < f->nodes[at]->n_in; i++) see(f, f->nodes[at]->in[i]);
    }
}

// What lies between the softmax and the product: maps, and what they are told from where an element stands.
static bool *weights_inside(Fuser *f, const Softmax *s, const Node *product) {
    bool *const before = f->inside, *inside = NEW_ARRAY(f->plan->scratch, bool, f->n_nodes + 1);
    f->inside = inside;
    memset(f->seen, 0, sizeof(bool) * (size_t)f->n_nodes);
    for (int i = 0; i + 1 < s->nodes.n; i++) {
        inside[s->nodes.at[i]->mark] = true;
        for (int j = 0; j < s->nodes.at[i]->n_in; j++) see(f, s->nodes.at[i]->in[j]);
    }
    f->seen[s->softmax->def->mark] = false;
    join_attention(f, product);
    f->inside = before;
    return inside;
}

// Attention, when the anchor multiplies a softmax that nobody else reads. NULL: it is a product like any other.
static Kernel *fuse_attention(Fuser *f, Fusion *epilogue) {
    Softmax s;
    Fusion score = { .plan = f->plan, .inside = f->scores };
    bool *inside = f->inside, alone = true;
    if (f->plan->options->no_fuse || epilogue->violation || epilogue->anchor->type.dtype != DT_F32
        || !softmax_before(f->plan->scratch, f->plan->graph, epilogue->anchor->def, &s))
        return NULL;
    memset(f->scores, 0, sizeof(bool) * (size_t)f->n_nodes);
    for (int i = 0; i < s.nodes.n; i++) f->scores[s.nodes.at[i]->mark] = true;
    f->scores[epilogue->anchor->def->mark] = true;
    f->inside = f->scores;
    for (int i = 0; i < s.nodes.n; i++) alone = alone && users_inside(f, s.nodes.at[i]->out[0]);
    score.root = s.score;
    alone = alone && users_inside(f, s.score) && !f->needed[s.score->id] && is_pull(s.score->def);
    if (alone && s.weighted) s.inside = weights_inside(f, &s, epilogue->anchor->def);
    f->few_scores = is_of_few(f, epilogue->anchor->def, f->plan->options);
    if (alone) grow(f, &score, f->plan->options);
    f->few_scores = false;
    f->inside = inside;
    return alone && score.anchor && score.anchor->def->op == OP_MatMul ?
        kernel_attention(f->plan->scratch, &s, epilogue, &score, f->n_nodes) :
        NULL;
}

static void fuse_attention_grad(Fuser *f, Node *n) {
    Fusion inside = fusion_of(f, n->out[0]);
    f->root = n;
    memset(f->inside, 0, sizeof(bool) * (size_t)f->n_nodes);
    memset(f->seen, 0, sizeof(bool) * (size_t)f->n_nodes);
    f->inside[n->mark] = true;
    see(f, n->in[0]);
    see(f, n->in[1]);
    join_attention(f, n);
    Kernel *k = kernel_attention_grad(f->plan->scratch, &inside, n);
    if (!k) bug("no kernel for the backward pass of an attention");
    found(f, kernel_keep(f->plan, k));
}

static Kernel *fuse_anchor(Fuser *f, Fusion *fu, Value *into, int axis, Dim at) {
    if (stays_loop(fu->anchor->def, f->plan->options)) {
        f->inside[fu->anchor->def->mark] = true;
        fu->anchor = NULL;
        return kernel_loop(f->plan->scratch, fu, into, axis, at);
    }
    if (fu->anchor->def->op == OP_Conv) return kernel_conv(f->plan->scratch, fu, into, at);
    Kernel *k = into ? NULL : fuse_attention(f, fu);
    if (!k && !fu->violation && is_of_few(f, fu->anchor->def, f->plan->options)) {
        f->loops[fu->anchor->def->mark] = true;
        return NULL;
    }
    return k || fu->violation ? k : kernel_gemm(f->plan->scratch, fu, into, at);
}

// Can the anchor's kernel store rows that are pieces of the concatenation's? Its rows are then the root's.
static bool is_row_part(const Value *anchor, const Value *root, const Value *into, int axis) {
    int last = root->type.rank - 1;
    Dim row = anchor->type.dim[anchor->type.rank - 1];
    const Node *n = anchor->def;
    bool matrix = n->op == OP_Conv ? node_int(n, "channels_last", 0) : n->in[1]->type.rank > 1;
    return matrix && axis == last && into->type.rank == root->type.rank && row == root->type.dim[last] && row != 1
        && root->type.dtype == DT_F32;
}

// A scale or zero point inside the kernel of a quantised product: one number, which no element should compute anew.
static Node *number_inside(const Fuser *f, const Value *root) {
    for (int at = 0; at < f->n_nodes; at++) {
        const Value *v = f->nodes[at]->out[0];
        const Users *u = f->inside[at] ? (const Users *)&f->users[v->id] : NULL;
        if (!u || v == root || op_is_view(f->nodes[at]->op) || type_size(f->plan->graph, &v->type) != 1) continue;
        for (int i = 0; i < u->n; i++)
            if (u->at[i] && f->inside[u->at[i]->mark] && !same_size(f, v, u->at[i]->out[0])) return f->nodes[at];
    }
    return NULL;
}

// Does it follow an anchor, through maps alone? Only `own`, or, where that is NULL, any.
static bool leads_to(const Fuser *f, const Node *n, const Value *own, const Options *o) {
    for (int i = 0; i < n->n_in; i++) {
        const Value *v = n->in[i];
        if (!v || !v->def || v->data || v->graph != f->plan->graph) continue;
        if (is_anchor(f, v->def, o) ? !own || v == own : f->epilogue[v->def->mark] && leads_to(f, v->def, own, o))
            return true;
    }
    return false;
}

// Where memory or its traffic is dear, bytes that the sums of another product become: the sums would be stored, four
// bytes each.
static Node *narrow_inside(const Fuser *f, const Fusion *fu, const Options *o) {
    const bool dear = template_small(o) || o->machine.backend->windows_in_loops;
    for (int at = f->n_nodes - 1; at >= 0 && dear && fu->anchor && node_of_bytes(fu->anchor->def); at--) {
        Node *n = f->nodes[at];
        if (f->inside[at] && n->out[0] != fu->root && f->retyped[at] && dtype_size(n->out[0]->type.dtype) < 4
            && !leads_to(f, n, fu->anchor, o) && leads_to(f, n, NULL, o))
            return n;
    }
    return NULL;
}

// A sum beside that of a quantised product in a loop: its rows' zero points go with such, which no column should
// compute anew.
static Node *sum_inside(const Fuser *f, const Fusion *fu, const Options *o) {
    if (!fu->anchor || !node_of_bytes(fu->anchor->def) || !stays_loop(fu->anchor->def, o)) return NULL;
    for (int at = f->n_nodes - 1; at >= 0; at--)
        if (f->inside[at] && f->nodes[at]->out[0] != fu->root && op_is_reduce(f->nodes[at]->op)) return f->nodes[at];
    return NULL;
}

// One kernel for `root`, or for the piece of a concatenation that `root` fills.
static void fuse_root(Fuser *f, Value *root, Value *into, int axis, Dim at) {
    const Options *o = f->plan->options;
    memset(f->cut, 0, sizeof(bool) * (size_t)f->n_nodes);
    for (int tries = 0;; tries++) {
        Fusion fu = fusion_of(f, root);
        bool computed = root->def && !root->data && root->graph == f->plan->graph && !(into && f->needed[root->id]);
        if (into && computed
            && (!is_pull(root->def) || f->cut[root->def->mark] || ((Users *)&f->users[root->id])->n > 1))
            computed = false;
        if (computed) grow(f, &fu, o);
        else memset(f->inside, 0, sizeof(bool) * (size_t)f->n_nodes);
        const Node *number = fu.anchor && node_of_bytes(fu.anchor->def) ? number_inside(f, root) : NULL;
        const Node *narrow = number ? number : narrow_inside(f, &fu, o);
        const Node *apart = narrow ? narrow : sum_inside(f, &fu, o);
        if (apart) {
            f->cut[apart->mark] = true;
            continue;
        }
        Kernel *k = NULL;
        const bool few = fu.anchor && is_of_few(f, fu.anchor->def, o);
        bool piece = into && fu.anchor && !stays_loop(fu.anchor->def, o);
        if (piece && !is_row_part(fu.anchor, root, into, axis)) fu.violation = fu.anchor;
        else if (fu.anchor) k = fuse_anchor(f, &fu, into, axis, at);
        else k = kernel_loop(f->plan->scratch, &fu, into, axis, at);
        if (few && f->loops[fu.anchor->def->mark]) continue;
        Node *half = k && k->reads.n > MAX_READS ? middle_inside(f, root) : NULL;
        if (k && !half) {
            found(f, kernel_keep(f->plan, k));
            return;
        }
        // a root that no epilogue can end in
        if (fu.violation == root && fu.anchor && fu.anchor != root) fu.violation = fu.anchor;
        Node *n = half ? half : fu.violation ? fu.violation->def : NULL;
        if (!n || f->cut[n->mark]) bug("fusion of %%%d makes no progress", root->id);
        f->cut[n->mark] = true;
    }
}

static bool read_elsewhere(const Fuser *f, const Value *v) {
    const Users *u = (const Users *)&f->users[v->id];
    for (int i = 0; i < u->n; i++)
        if (u->at[i] && !f->inside[u->at[i]->mark]) return true;
    return false;
}

// One kernel for all outputs of root's group, which it is the last of, where the last of them is due: nobody else reads
// them. false: that is not so, or they read too much; the group is no more.
static bool fuse_group(Fuser *f, Value *root) {
    Fusion fu = fusion_of(f, root);
    const Graph *g = f->plan->graph;
    int group = f->group[root->id];
    memset(f->cut, 0, sizeof(bool) * (size_t)f->n_nodes);
    for (int i = 0; i < g->outputs.n; i++)
        if (g->outputs.at[i] != root && f->group[g->outputs.at[i]->id] == group)
            fu.also[fu.n_also++] = g->outputs.at[i];
    grow(f, &fu, f->plan->options);
    bool alone = !read_elsewhere(f, root);
    f->group[root->id] = 0;
    for (int i = 0; i < fu.n_also; i++) {
        alone = alone && !read_elsewhere(f, fu.also[i]);
        f->group[fu.also[i]->id] = 0;
    }
    Kernel *k = alone ? kernel_loop(f->plan->scratch, &fu, NULL, 0, 0) : NULL;
    if (!k || k->reads.n > MAX_READS) return false;
    for (int i = 0; i < fu.n_also; i++) f->needed[fu.also[i]->id] = false;
    found(f, kernel_keep(f->plan, k));
    return true;
}

// A part whose elements lie in one run of the result is computed in its place: its buffer is a window of the
// concatenation's.
static bool place_part(Fuser *f, Value *whole, Value *part, Dim outer, Dim at_bytes) {
    if (outer != 1 || !dim_is_const(at_bytes) || !part->def || part->data || plan_value(f->plan, part).buffer
        || part->graph != f->plan->graph || part == whole)
        return false;
    for (int i = 0; i < f->plan->graph->outputs.n; i++)
        if (f->plan->graph->outputs.at[i] == part) return false;
    if (!is_pull(part->def) && part->def->op != OP_Concat && form_of(part->def) != FORM_SCATTER) return false;
    buffer_within(f->plan, part, whole, at_bytes);
    need(f, part);
    return true;
}

static void fuse_concat(Fuser *f, Value *v) {
    int axis = (int)node_int(v->def, "axis", 0);
    Graph *g = f->plan->graph;
    const ValuePlan whole = plan_value(f->plan, v);
    Value *into = whole.home ? whole.home : v;
    Dim at = 0, from = whole.home ? whole.home_at : 0, outer = 1, inner = (Dim)dtype_size(v->type.dtype);
    for (int i = 0; i < axis; i++) outer = dim_mul(g, outer, v->type.dim[i]);
    for (int i = axis + 1; i < v->type.rank; i++) inner = dim_mul(g, inner, v->type.dim[i]);
    for (int i = 0; i < v->def->n_in; i++) {
        Value *part = v->def->in[i];
        const ValuePlan piece = plan_value(f->plan, part);
        bool some = type_count_upper(g, &part->type) > 0;
        if (some && piece.home == into && piece.home_at == dim_add(g, from, at)) need(f, part);
        else if (some && !place_part(f, v, part, outer, dim_mul(g, at, inner)))
            fuse_root(f, part, into, axis, dim_add(g, from, at));
        at = dim_add(g, at, part->type.dim[axis]);
    }
}

// The part is computed where it goes, over what lies there.
static void fuse_slice_scatter(Fuser *f, Node *n) {
    const Graph *g = f->plan->graph;
    Value *v = n->out[0];
    const Buffer *placed = plan_value(f->plan, v).buffer;         // over its data's
    int axis = (int)node_int(n, "axis", 0), count;
    if (type_count_upper(g, &n->in[1]->type) > 0) fuse_root(f, n->in[1], v, axis, node_ints(n, "starts", &count)[0]);
    if (placed) need(f, n->in[0]);
    else found(f, kernel_keep(f->plan, kernel_copy(f->plan, n)));
}

static bool is_read_once(const Fuser *f, const Value *v) { return ((const Users *)&f->users[v->id])->n == 1; }

// What nobody else reads is computed where it is scattered into; else it is copied there.
static void fuse_scatter(Fuser *f, Node *n) {
    if (n->op == OP_SliceScatter) {
        fuse_slice_scatter(f, n);
        return;
    }
    found(f, kernel_keep(f->plan, kernel_scatter(f->plan, n)));
    if (!is_read_once(f, n->in[0]) || !place_part(f, n->out[0], n->in[0], 1, 0))
        found(f, kernel_keep(f->plan, kernel_copy(f->plan, n)));
}

// An output, or what is kept, that only repeats what was scattered: that is made in its place.
static bool place_repeated(Fuser *f, Node *n) {
    return n->op == OP_Identity && n->in[0]->def && form_of(n->in[0]->def) == FORM_SCATTER
        && is_read_once(f, n->in[0]) && place_part(f, n->out[0], n->in[0], 1, 0);
}

// A reshape of something that is stored anyway is another name for the same bytes.
static bool share_bytes(Fuser *f, Node *n) {
    if (form_of(n) != FORM_RESHAPE) return false;       // what is made of nothing has no operand to look at
    Value *v = n->out[0], *from = n->in[0];
    if (plan_value(f->plan, v).buffer || from->data
        || plan_value(f->plan, from).home || from->graph != f->plan->graph)
        return false;
    for (int i = 0; i < f->plan->graph->outputs.n; i++)
        if (f->plan->graph->outputs.at[i] == v) return false;
    bool stored = from->is_input || node_is_stored(n)
        || (from->def && (f->needed[from->id] || !is_pull(from->def) || ((Users *)&f->users[from->id])->n > 1));
    if (!stored) return false;
    buffer_within(f->plan, v, from, 0);
    need(f, from);
    return true;
}

static void fuse_region(Fuser *f, Node *n) {
    Kernel *k = kernel_region(f->plan, n);
    if (k) found(f, k);
}

static void fuse_call(Fuser *f, Node *n) {
    bool *wanted = NEW_ARRAY(f->scratch, bool, n->n_out);
    for (int i = 0; i < n->n_out; i++) wanted[i] = n->out[i] && f->needed[n->out[i]->id];
    found(f, kernel_call(f->plan, n, wanted));
}

static void fuse_node(Fuser *f, Node *n) {
    Value *v = n->out[0];
    if (share_bytes(f, n) || place_repeated(f, n) || (f->group[v->id] && fuse_group(f, v))) return;
    OpForm form = form_of(n);
    if (form == FORM_CONCAT) fuse_concat(f, v);
    else if (form == FORM_SCATTER) fuse_scatter(f, n);
    else if (n->op == OP_AttentionGrad) fuse_attention_grad(f, n);
    else if (n->n_bodies) fuse_region(f, n);
    else if (op_is_called(n->op)) fuse_call(f, n);
    else if (is_pull(n)) fuse_root(f, v, NULL, 0, 0);
    else
        diag_error(n->loc,
            "%s cannot be compiled by this version; it would have to be computed at compile time from constants",
            op_table[n->op].name);
}

static void capture_value(Fuser *f, Value *v) {
    if (!v || v->graph != f->plan->graph) return;
    VEC_PUSH(f->scratch, f->users[v->id], NULL);
}

static void capture(Fuser *f, Graph *body) {
    for (Node *n = body->first; n; n = n->next) {
        for (int i = 0; i < n->n_in; i++) capture_value(f, n->in[i]);
        for (int i = 0; i < n->n_bodies; i++) capture(f, n->bodies[i]);
    }
    for (int i = 0; i < body->outputs.n; i++) capture_value(f, body->outputs.at[i]);
}

static void collect(Fuser *f, Graph *g) {
    for (Node *n = g->first; n; n = n->next) f->n_nodes++;
    f->nodes = NEW_ARRAY(f->scratch, Node *, f->n_nodes + 1);
    int values = graph_root(g)->value_count + 1;        // a body may use newer values of the graphs around it
    f->users = arena_alloc(f->scratch, sizeof(Users) * (size_t)values);
    f->needed = NEW_ARRAY(f->scratch, bool, values);
    f->inside = NEW_ARRAY(f->scratch, bool, f->n_nodes + 1);
    f->scores = NEW_ARRAY(f->scratch, bool, f->n_nodes + 1);
    f->cut = NEW_ARRAY(f->scratch, bool, f->n_nodes + 1);
    f->pointwise = NEW_ARRAY(f->scratch, bool, f->n_nodes + 1);
    f->seen = NEW_ARRAY(f->scratch, bool, f->n_nodes + 1);
    f->reads = NEW_ARRAY(f->scratch, int64_t, f->n_nodes + 1);
    f->summed = NEW_ARRAY(f->scratch, bool, f->n_nodes + 1);
    f->turned = NEW_ARRAY(f->scratch, bool, f->n_nodes + 1);
    f->epilogue = NEW_ARRAY(f->scratch, bool, f->n_nodes + 1);
    f->retyped = NEW_ARRAY(f->scratch, bool, f->n_nodes + 1);
    f->factor = NEW_ARRAY(f->scratch, bool, f->n_nodes + 1);
    int at = 0;
    for (Node *n = g->first; n; n = n->next) {
        n->mark = at;
        f->nodes[at++] = n;
        for (int i = 0; i < n->n_in; i++) {
            bool twice = false;                         // x*x: one user, counted once; reads_of counts the operands
            for (int j = 0; j < i; j++) twice = twice || n->in[j] == n->in[i];
            if (n->in[i] && !twice && n->in[i]->graph == g) VEC_PUSH(f->scratch, f->users[n->in[i]->id], n);
        }
    }
    for (Node *n = g->first; n; n = n->next)            // what a body captures is stored before the region runs
        for (int i = 0; i < n->n_bodies; i++) capture(f, n->bodies[i]);
    int n_symbols;
    const Symbol *symbols = graph_symbols(g, &n_symbols);
    for (int i = 0; i < n_symbols; i++) capture_value(f, symbols[i].from);      // what a size is read from is stored
    for (int i = 0; i < g->outputs.n; i++) {
        Value *v = g->outputs.at[i];
        if (v->graph == g) VEC_PUSH(f->scratch, f->users[v->id], NULL);
        need(f, v);
    }
}

// The symbols that are measured from v become known where v has been computed. Kernels are found last first.
static void find_sizes(Fuser *f, Value *v) {
    int n;
    const Symbol *all = graph_symbols(f->plan->graph, &n);
    Kernel *k = NULL;
    for (int i = 0; i < n; i++) {
        if (all[i].from != v) continue;
        if (!k) {
            k = NEW(f->arena, Kernel);
            *k = (Kernel){ .kind = KERNEL_SIZES, .exprs = expr_pool_new(f->arena) };
            kernel_read(f->arena, k, v);
            found(f, k);
        }
        VEC_PUSH(f->arena, k->sizes, i);
    }
}

// What a size is measured from may have become a constant.
static void find_constant_sizes(Fuser *f) {
    int n;
    const Symbol *all = graph_symbols(f->plan->graph, &n);
    for (int i = 0; i < n; i++) {
        bool first = all[i].from && all[i].from->data && all[i].from->graph == f->plan->graph;
        for (int k = 0; k < i; k++) first = first && all[k].from != all[i].from;
        if (first) find_sizes(f, all[i].from);
    }
}

bool fuse_graph(Plan *p) {
    Fuser f = { .plan = p, .arena = p->arena, .scratch = arena_new() };
    int errors = diag_errors();
    collect(&f, p->graph);
    f.loops = NEW_ARRAY(f.scratch, bool, f.n_nodes + 1);
    mark_epilogues(&f, p->options);
    f.group = outputs_together(p);
    concat_homes(p, (const ConcatUsers *)f.users);
    state_homes(p, (const ConcatUsers *)f.users);
    for (int at = f.n_nodes - 1; at >= 0; at--) {
        Node *n = f.nodes[at];
        bool wanted = false;
        for (int i = 0; i < n->n_out; i++) find_sizes(&f, n->out[i]);
        for (int i = 0; i < n->n_out; i++)
            wanted = wanted
                || (n->out[i] && f.needed[n->out[i]->id] && type_count_upper(p->graph, &n->out[i]->type) > 0);
        if (!wanted) continue;
        p->scratch = arena_new();
        fuse_node(&f, n);
        arena_free(p->scratch);
        p->scratch = NULL;
    }
    for (int i = 0; i < p->graph->inputs.n; i++) find_sizes(&f, p->graph->inputs.at[i]);
    find_constant_sizes(&f);
    for (int i = f.found.n - 1; i >= 0; i--) VEC_PUSH(p->arena, p->kernels, f.found.at[i]);
    arena_free(f.scratch);
    return diag_errors() == errors;
}
