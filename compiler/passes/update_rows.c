// SPDX-License-Identifier: MIT OR Apache-2.0
// --train: the gradient of a large matrix is computed and used up some rows at a time, so that it is never there as a
// whole.
//
//   before   %3: f32[50257,768] = MatMul(%1, %2)               %1: f32[50257,256]   %2: f32[256,768]
//            %4: f32[50257,768] = ScatterND(%3, %tokens, %rows) {reduction="add"}
//            %5: f32[50257,768] = Identity(%4) {stored=1}
//            %6: f32[50257,768] = Map(%weight, %5, %rate)      an output: the weight
//   after    %7: f32[2514,256] = Slice(%1)                     a view: rows 0 to 2513
//            %8: f32[2514,768] = MatMul(%7, %2)
//            %9: i64[4,64,1] = Map(%tokens)                    those of other rows are outside, and nothing is added
//            %10: f32[2514,768] = ScatterND(%8, %9, %rows) {reduction="add"}
//            %11: f32[2514,768] = Identity(%10) {stored=1}
//            %12: f32[2514,768] = Map(%13, %11, %rate)         an output, as %13 an input: rows 0 to 2513 of the weight
//            ... and so the rows behind them
//
// In: a graph of a training step behind all passes, its outputs with their roles. Out: the same with inputs and outputs
// that are rows of a field (Value.field). It is done where all that reads the gradient are scalar expressions that end
// in fields, and where the gradient comes from what can be computed by rows: products, rows that are scattered, scalar
// expressions. Each number is the same sum, in the same order.
#include "passes.h"

#include <string.h>

enum {
    LARGE = 32 << 20, BLOCK = 8 << 20,                  // bytes of a gradient, and of its blocks
    LARGE_PART = 4, BLOCK_PART = 16,                    // the same of --train-memory
    LEAST_ROWS = 16, MOST_BLOCKS = 64                   // a product of fewer rows is another kernel
};

typedef VEC(Node *) Users;
typedef struct Rows {
    Graph *g;
    Arena *a;                                           // for what is below
    const Value *whole;                                 // the gradient
    Users *users;                                       // by value id
    bool *output;                                       // by value id
    bool *inside;                                       // by value id: the gradient, and what is computed from it
    Value **part;                                       // by value id: its rows of this block
    int count;                                          // of values before anything is added
    Dim from, rows;                                     // of this block
} Rows;

static bool same_shape(const Rows *r, const Value *v) { return type_same_shape(&v->type, &r->whole->type); }

// ---------------------------------------------------------------- what may go by rows

// Is it computed from the gradient, or what is, by scalar expressions alone, up to fields?
static bool ends_in_fields(Rows *r, const Value *v) {
    bool some = r->output[v->id];
    if (some && (v == r->whole || (v->role != ROLE_PARAM && v->role != ROLE_STATE))) return false;
    r->inside[v->id] = true;
    for (int i = 0; i < r->users[v->id].n; i++) {
        const Node *n = r->users[v->id].at[i];
        const Value *y = n->out[0];
        if (!op_is_map(n->op) || !same_shape(r, y)) return false;
        if (!r->inside[y->id] && !ends_in_fields(r, y)) return false;
        some = true;
    }
    return some;
}

static bool is_matrix_product(const Node *n) {
    return n->op == OP_MatMul && n->in[0]->type.rank == 2 && n->in[1]->type.rank == 2;
}

static bool is_row_scatter(const Node *n) {
    if (n->op != OP_ScatterND) return false;
    const Type *at = &n->in[1]->type;
    return at->rank > 0 && at->dim[at->rank - 1] == 1 && at->dtype == DT_I64;
}

static bool is_fill(const Node *n) { return n->op == OP_Expand && type_count_upper(n->graph, &n->in[0]->type) == 1; }

// Is it read by nobody else, and made of what can be computed by rows? What is not is computed as a whole.
static bool goes_by_rows(const Rows *r, const Value *v) {
    const Node *n = v->def;
    if (!n || v->graph != r->g || n->n_out != 1 || r->users[v->id].n != 1 || r->output[v->id]) return false;
    if (is_matrix_product(n) || is_fill(n)) return true;
    if (is_row_scatter(n)) return goes_by_rows(r, n->in[0]);
    bool some = false;
    for (int i = 0; op_is_map(n->op) && i < n->n_in; i++)
        some = some || (same_shape(r, n->in[i]) && goes_by_rows(r, n->in[i]));
    return some;
}

// ---------------------------------------------------------------- rows of values
static Value *rows_of(Rows *r, Value *v);

static void set_field(const Rows *r, Value *part, Value *field) {
    part->role = field->role;
    part->field = field;
    part->field_at = r->from * (type_count(&field->type) / field->type.dim[0]);
}

static Value *part_of_field(const Rows *r, Value *field) {
    Type t = field->type;
    t.dim[0] = r->rows;
    Value *part = graph_input(r->g, field->name, t);
    set_field(r, part, field);
    return part;
}

// The indices of rows of this block, counted from its first; others are behind its last.
static Value *tokens_of(const Rows *r, Value *indices) {
    const long long all = r->whole->type.dim[0], from = r->from, n = r->rows;
    return B_MAP(r->g,
        arena_printf(r->g->arena,
            "t0 = x < 0 ? x + %lld : x; t1 = t0 - %lld; t1 < 0 ? %lld : t1", all, from, n), "x", indices);
}

static Value *rows_of_map(Rows *r, const Node *n) {
    Value **in = NEW_ARRAY(r->a, Value *, n->n_in + 1);
    for (int i = 0; i < n->n_in; i++)
        if (!(in[i] = n->in[i] && same_shape(r, n->in[i]) ? rows_of(r, n->in[i]) : n->in[i])) return NULL;
    return b_finish(node_like(r->g, n, in));
}

static Value *rows_made(Rows *r, Value *v) {
    Graph *g = r->g;
    const Node *n = v->def;
    if (v == r->whole) {
        Value *made = b_stored(g, rows_of(r, n->in[0]));
        if (made) node_set_int(made->def, "sums", node_int(n, "sums", 0));
        return made;
    }
    if (v->is_input && (v->role == ROLE_PARAM || v->role == ROLE_STATE)) return part_of_field(r, v);
    if (!r->inside[v->id] && !goes_by_rows(r, v)) return b_part(g, v, 0, r->from, r->rows);
    if (is_matrix_product(n)) return b_matmul_to(g, b_part(g, n->in[0], 0, r->from, r->rows), n->in[1], v->type.dtype);
    if (is_row_scatter(n))
        return b_scatter_nd(g, rows_of(r, n->in[0]), tokens_of(r, n->in[1]), n->in[2],
            node_string(n, "reduction", "none"));
    if (!is_fill(n)) return rows_of_map(r, n);
    Type t = v->type;
    t.dim[0] = r->rows;
    return b_expand(g, n->in[0], t.rank, t.dim);
}

static Value *rows_of(Rows *r, Value *v) {
    if (!v || r->part[v->id]) return v ? r->part[v->id] : NULL;
    const Loc *loc = r->g->loc;
    if (v->def) r->g->loc = v->def->loc;
    Value *made = rows_made(r, v);
    r->g->loc = loc;
    return r->part[v->id] = made;
}

// ---------------------------------------------------------------- the blocks

static Value *field_of(const Graph *g, Role role, const char *name) {
    for (int i = 0; i < g->inputs.n; i++)
        if (g->inputs.at[i]->role == role && !strcmp(g->inputs.at[i]->name, name)) return g->inputs.at[i];
    bug("no field is called %s", name);
}

// One more block, of each output that goes by rows.
static void add_block(Rows *r, int n_outputs) {
    Graph *g = r->g;
    for (int i = 0; i < r->count; i++) r->part[i] = NULL;
    for (int i = 0; i < n_outputs; i++) {
        Value *v = g->outputs.at[i];
        if (v->id >= r->count || !r->inside[v->id]) continue;
        Value *part = rows_of(r, v);
        if (!part) bug("%s does not go by rows", op_table[v->def->op].name);
        set_field(r, part, field_of(g, v->role, g->output_names.at[i]));
        graph_output(g, part, g->output_names.at[i]);
    }
}

// The first n outputs without those that have become rows; true: there are some.
static void drop_outputs(Rows *r) {
    Graph *g = r->g;
    int n = 0;
    for (int i = 0; i < g->outputs.n; i++) {
        const Value *v = g->outputs.at[i];
        if (v->id < r->count && r->inside[v->id]) continue;
        g->outputs.at[n] = g->outputs.at[i];
        g->output_names.at[n++] = g->output_names.at[i];
    }
    g->outputs.n = g->output_names.n = n;
}

// How many blocks; 1: it stays whole.
static Dim blocks_of(const Value *v, const Options *o) {
    const int64_t bytes = type_bytes(&v->type), budget = o->train_memory;
    const int64_t large = budget && budget / LARGE_PART < LARGE ? budget / LARGE_PART : LARGE;
    int64_t block = budget && budget / BLOCK_PART < BLOCK ? budget / BLOCK_PART : BLOCK;
    if (bytes <= large || bytes < MOST_BLOCKS) return 1;
    if (block < bytes / MOST_BLOCKS) block = bytes / MOST_BLOCKS;
    const int64_t n = (bytes + block - 1) / block, most = v->type.dim[0] / LEAST_ROWS;
    return n < most ? n : most;
}

static bool is_gradient(const Node *n) {
    const Type *t = n->op == OP_Identity && node_int(n, "stored", 0) ? &n->out[0]->type : NULL;
    return t && t->rank == 2 && type_is_static(t) && dtype_is_float(t->dtype);
}

static bool split(Graph *g, Node *n, const Options *o) {
    const int values = graph_root(g)->value_count;
    Rows r = { .g = g, .a = arena_new(), .whole = n->out[0], .count = values };
    r.users = NEW_ARRAY(r.a, Users, values);
    r.output = NEW_ARRAY(r.a, bool, values);
    r.inside = NEW_ARRAY(r.a, bool, values);
    r.part = NEW_ARRAY(r.a, Value *, values);
    bool bodies = false;
    for (Node *m = g->first; m; m = m->next) {
        bodies = bodies || m->n_bodies > 0;
        for (int i = 0; i < m->n_in; i++)
            if (m->in[i]) VEC_PUSH(r.a, r.users[m->in[i]->id], m);
    }
    for (int i = 0; i < g->outputs.n; i++) r.output[g->outputs.at[i]->id] = true;
    const Dim blocks = blocks_of(r.whole, o), all = r.whole->type.dim[0];
    const bool goes = blocks > 1 && !bodies && goes_by_rows(&r, n->in[0]) && ends_in_fields(&r, r.whole);
    const int n_outputs = g->outputs.n;
    for (Dim i = 0; goes && i < blocks; i++) {
        r.from += r.rows;                               // the smaller ones first, as order.c likes them
        r.rows = all / blocks + (i >= blocks - all % blocks);
        add_block(&r, n_outputs);
    }
    if (goes) drop_outputs(&r);
    arena_free(r.a);
    return goes;
}

bool update_rows(Graph *g, const Options *o) {
    bool changed = false;
    const Node *last = g->last;
    for (Node *n = g->first; n; n = n == last ? NULL : n->next)
        if (is_gradient(n) && blocks_of(n->out[0], o) > 1) changed = split(g, n, o) || changed;
    return changed;
}
