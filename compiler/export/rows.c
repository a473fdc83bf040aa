// SPDX-License-Identifier: MIT OR Apache-2.0
// From an operation to its row of onnx_rows.def: does ONNX have it, of this type and in this version, and what writes
// it.
//
// In: a node. Out: nodes of ONNX, or a diagnostic at the node that says what is missing.
#include "export/rows.h"

#include <string.h>

#define FLOATS (1u << DT_F16 | 1u << DT_F32 | 1u << DT_F64)
#define BFLOATS (FLOATS | 1u << DT_BF16)
#define UINTS (1u << DT_U8 | 1u << DT_U16 | 1u << DT_U32 | 1u << DT_U64)
#define INTS (UINTS | 1u << DT_I8 | 1u << DT_I16 | 1u << DT_I32 | 1u << DT_I64)
#define NUMBERS (BFLOATS | INTS)
#define BOOLS (1u << DT_BOOL)
#define ANY (~0u)

// ---------------------------------------------------------------- what a row says of a node

static bool fits_always(const Node *n, int opset) { return (void)n, (void)opset, true; }
static bool fits_recurrent(const Node *n, int opset) { return (void)opset, !node_int(n, "layout", 0); }

static bool fits_where(const Node *n, int opset) { return (void)opset, n->out[0]->type.dtype != DT_BOOL; }

static bool fits_is_inf(const Node *n, int opset) {     // of 16 bits since 20
    return opset >= 20 || n->in[0]->type.dtype != DT_F16;
}

// ONNX broadcasts the slope to x and not x to the slope.
static bool fits_prelu(const Node *n, int opset) {
    (void)opset;
    Type x = n->in[0]->type, y = n->out[0]->type;
    return type_equal(&x, &y);
}

static bool fits_pad(const Node *n, int opset) { return opset >= 19 || strcmp(node_string(n, "mode", ""), "wrap"); }

static bool fits_scatter(const Node *n, int opset) {
    const char *how = node_string(n, "reduction", "none");
    return !strcmp(how, "none") || opset >= (how[0] == 'm' && how[1] != 'u' ? 18 : 16);
}

bool fits_window(const Node *n, int opset) { return (void)opset, !node_int(n, "channels_last", 0); }

static bool fits_average(const Node *n, int opset) {
    int count;
    const int64_t *dilations = node_ints(n, "dilations", &count);
    bool dense = true;
    for (int i = 0; i < count; i++) dense = dense && dilations[i] == 1;
    return fits_window(n, opset) && (dense || opset >= 19);
}

static const Row rows[OP_COUNT] = {
#define ROW(op, name, since, types, fits, writer, attrs) \
    [OP_##op] = { name, since, types, fits_##fits, write_##writer, attrs },
#include "export/onnx_rows.def"
#undef ROW
};

int put_dtype_since(DType d) {
    switch (d) {
    case DT_F8E4M3FN: case DT_F8E4M3FNUZ: case DT_F8E5M2: case DT_F8E5M2FNUZ: return 19;
    case DT_U4: case DT_I4: return 21;
    case DT_F4E2M1: return 23;
    case DT_F8E8M0: return 24;
    case DT_U2: case DT_I2: return 25;
    case DT_F6E2M3: case DT_F6E3M2: return EXPORT_OPSET_NEWEST + 1;
    default: return EXPORT_OPSET_OLDEST;
    }
}

static bool type_fits(const Node *n, const Row *row) {
    DType d = n->n_in && n->in[0] ? n->in[0]->type.dtype : DT_F32;
    return row->types == ANY || (d < 32 && row->types >> d & 1);
}

bool put_has_row(const Node *n, int opset) {
    const Row *row = &rows[n->op];
    return row->op && row->since <= opset && type_fits(n, row) && row->fits(n, opset);
}

// ---------------------------------------------------------------- attributes

static OnnxAttr attribute(const Node *n, const char *from, const char *to, bool whole) {
    const Attr *a = node_attr(n, from);
    switch (a->kind) {
    case ATTR_INT: return attr_int(to, a->i);
    case ATTR_FLOAT: return whole ? attr_int(to, (int64_t)a->f) : attr_float(to, a->f);
    case ATTR_STRING: return attr_string(to, a->s);
    case ATTR_INTS: return attr_ints(to, a->n, a->ints);
    case ATTR_FLOATS: return attr_floats(n->graph->arena, to, a->n, a->floats);
    default: bug("%s: attribute %s has no place in ONNX", op_table[n->op].name, from);
    }
}

int row_attrs(const Node *n, const Row *row, int count, OnnxAttr *attrs) {
    Arena *a = n->graph->arena;
    for (const char *at = row->attrs; *at; at += strspn(at, " ")) {
        size_t length = strcspn(at, " "), name = strcspn(at, "=: ");
        const char *word = arena_strndup(a, at, name), *rest = "";
        if (name < length) rest = arena_strndup(a, at + name + 1, length - name - 1);
        bool whole = at[name] == ':';
        at += length;
        if (count == MAX_ATTRS) bug("%s has more than %d attributes", row->op, MAX_ATTRS);
        if (*word == '#') attrs[count++] = attr_int(word + 1, rest[0] - '0');
        else if (*word == '$') attrs[count++] = attr_string(word + 1, rest);
        else if (node_attr(n, word)) attrs[count++] = attribute(n, word, *rest && !whole ? rest : word, whole);
    }
    return count;
}

bool is_zero(int n, const int64_t *v) {
    bool zero = true;
    for (int i = 0; i < n; i++) zero = zero && v[i] == 0;
    return zero;
}

bool write_plain(Put *p, Node *n, const Row *row) {
    OnnxAttr attrs[MAX_ATTRS];
    const char **in = NEW_ARRAY(p->x->arena, const char *, n->n_in + 1);
    const char **out = NEW_ARRAY(p->x->arena, const char *, n->n_out + 1);
    for (int i = 0; i < n->n_in; i++) in[i] = put_value(p, n->in[i]);
    for (int i = 0; i < n->n_out; i++) out[i] = put_name(p, n->out[i]);
    int count = row_attrs(n, row, 0, attrs);
    put_node(p, row->op, n->n_in, in, n->n_out, out, count, attrs);
    return true;
}

// ---------------------------------------------------------------- a node

static bool types_exist(const Put *p, const Node *n) {
    for (int i = 0; i < n->n_in + n->n_out; i++) {
        const Value *v = i < n->n_in ? n->in[i] : n->out[i - n->n_in];
        int since = v ? put_dtype_since(v->type.dtype) : 0;
        if (since <= p->x->opset) continue;
        if (since > EXPORT_OPSET_NEWEST) diag_error(n->loc, "ONNX has no element type %s", dtype_name(v->type.dtype));
        else
            diag_error(n->loc, "element type %s needs operator set %d; --opset %d or a newer one has it",
                dtype_name(v->type.dtype), since, since);
        return false;
    }
    return true;
}

static bool no_operator(const Put *p, const Node *n) {
    const Row *row = &rows[n->op];
    const char *name = op_table[n->op].name, *type = "";
    if (n->n_in && n->in[0]) type = arena_printf(p->x->arena, " of %s", dtype_name(n->in[0]->type.dtype));
    if (row->op && row->since > p->x->opset)
        diag_error(n->loc, "%s needs operator set %d; --opset %d or a newer one has it", name, row->since, row->since);
    else if (row->op && put_has_row(n, EXPORT_OPSET_NEWEST))
        diag_error(n->loc, "this form of %s is newer than operator set %d; try --opset %d", name, p->x->opset,
            EXPORT_OPSET_NEWEST);
    else diag_error(n->loc, "ONNX has no operator for %s%s", name, type);
    return false;
}

bool put_operation(Put *p, Node *n) {
    p->x->node = n;
    if (!types_exist(p, n)) return false;
    if (put_quantized(p, n) || put_biased(p, n)) return true;
    if (put_has_row(n, p->x->opset)) return rows[n->op].write(p, n, &rows[n->op]);
    return op_has_expr(n->op) ? put_expr(p, n) : no_operator(p, n);
}
