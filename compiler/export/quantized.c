// SPDX-License-Identifier: MIT OR Apache-2.0
// Operators that the importer takes apart and other runtimes want whole: QuantizeLinear, DequantizeLinear, and the bias
// of a convolution or a matrix product.
//
// In: the last node of what one of them is made of (build/quant.c). Out: the operator; what was written for the nodes
// before has no user then and goes (onnx.c). What stays in pieces means the same.
#include "export/put.h"

// The axis and blocks of scale and zero point, as attributes.
static int axis_attrs(const Quant *by, OnnxAttr *attrs) {
    int n = 0;
    if (by->axis >= 0) attrs[n++] = attr_int("axis", by->axis);
    if (by->block) attrs[n++] = attr_int("block_size", by->block);
    return n;
}

// ONNX takes the type from the zero point, which has the scale's shape.
static const char *put_zero(Put *p, const Quant *by, DType d) {
    if (by->zero) return put_value(p, by->zero);
    if (!by->scale->type.rank) return put_number(p, d, 0);
    Type t = by->scale->type;
    t.dtype = d;
    return type_is_static(&t) ? put_constant(p, tensor_new(p->x->arena, t)) : NULL;
}

static bool newer(const Put *p, DType d, const Quant *by) {
    bool wide = dtype_size(d) == 2 || dtype_bits(d) < 8 || by->block;
    return p->x->opset < (wide ? 21 : 13);
}

bool put_quantized(Put *p, Node *n) {
    OnnxAttr attrs[2];
    Quant by;
    Value *x;
    if (quant_read_back(n, &x, &by) && !newer(p, x->type.dtype, &by)) {
        const char *from = put_value(p, x), *scale = put_value(p, by.scale), *zero = put_value(p, by.zero);
        int count = axis_attrs(&by, attrs);
        return put_op(p, put_name(p, n->out[0]), "DequantizeLinear", NAMES(from, scale, zero), count, attrs) != NULL;
    }
    DType d = n->out[0]->type.dtype;
    if (!quant_read(n, &x, &by) || dtype_size(d) > 2 || newer(p, d, &by)) return false;
    const char *from = put_value(p, x), *scale = put_value(p, by.scale);
    const char *zero = put_zero(p, &by, d);
    if (!zero) return false;
    int count = axis_attrs(&by, attrs);
    return put_op(p, put_name(p, n->out[0]), "QuantizeLinear", NAMES(from, scale, zero), count, attrs) != NULL;
}

// A vector that was brought to [1, n, 1, ...] to be added to the channels.
static Value *channel_vector(const Value *v, const Type *sum) {
    const Node *n = v->def;
    if (!n || n->op != OP_Reshape || n->in[0]->type.rank != 1 || v->type.rank != sum->rank) return NULL;
    for (int i = 0; i < sum->rank; i++)
        if (v->type.dim[i] != (i == 1 ? sum->dim[1] : 1)) return NULL;
    return n->in[0];
}

// Whose operand the bias becomes: of the last node that was written, which nothing else uses.
static OnnxNodeDef *last_written(Put *p, const Value *v) {
    const char *name = p->x->names[v->id];
    for (int i = p->nodes.n - 1; i >= 0 && name; i--)
        for (int k = 0; k < p->nodes.at[i].n_out; k++)
            if (p->nodes.at[i].out[k] == name) return &p->nodes.at[i];
    return NULL;
}

// Two operators of the model's stay two, unless the bias is of integers, which runtimes want to see at the operator.
static bool one_operator(const Node *of, const Node *n, const Value *bias) {
    Quant by;
    Value *q;
    const Node *from = bias->def && bias->def->op == OP_Reshape ? bias->def->in[0]->def : bias->def;
    return (n->loc && n->loc == of->loc) || (from && quant_read_back(from, &q, &by));
}

bool put_biased(Put *p, Node *n) {
    if (n->op != OP_Add || !n->in[0]->def || n->in[0]->graph != p->g || p->x->uses[n->in[0]->id] != 1) return false;
    const Node *of = n->in[0]->def;
    const Type *sum = &n->out[0]->type;
    Value *bias = n->in[1];
    if (!one_operator(of, n, bias)) return false;
    bool conv = of->op == OP_Conv;
    bool gemm = of->op == OP_MatMul && sum->rank == 2 && of->in[0]->type.rank == 2 && of->in[1]->type.rank == 2
        && bias->type.rank == 1 && bias->type.dim[0] == sum->dim[1] && dim_is_const(sum->dim[1]);
    if (conv) bias = channel_vector(bias, sum);
    if ((!conv && !gemm) || !bias || !dtype_is_float(sum->dtype) || !type_equal(sum, &n->in[0]->type)) return false;
    const char *third = put_value(p, bias);
    const OnnxNodeDef *made = last_written(p, n->in[0]);
    if (!made || made->n_in != 2) return false;
    const OnnxNodeDef first = *made;
    p->x->node = of;
    put_op(p, put_name(p, n->out[0]), conv ? "Conv" : "Gemm", NAMES(first.in[0], first.in[1], third), first.n_attrs,
        first.attrs);
    p->nodes.at[p->nodes.n - 1].name = first.name;
    return true;
}
