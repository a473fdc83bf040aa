// SPDX-License-Identifier: MIT OR Apache-2.0
// Images from their files' bytes: the size, then the pixels. Both are called templates (schedule/call.c) that call
// runtime/image.c, which a program with one of them links; constants are folded by the same code.
#include "common.h"
#include "table.h"

#include "runtime/image.h"

static bool wants_bytes(Node *n) {
    const Type *t = &n->in[0]->type;
    if (t->dtype == DT_U8 && t->rank == 1) return true;
    diag_error(
        n->loc, "%s wants the bytes of an image file, u8[n], not %s", op_table[n->op].name, value_type_text(n->in[0]));
    return false;
}

bool shape_image_size(Node *n) {
    n->out[0]->type = type_make(DT_I64, 1, (Dim[]){ 2 });
    return wants_bytes(n);
}

bool eval_image_size(const Node *n, Tensor *const *in, Tensor *const *out) {
    (void)n;
    return !burn_image_size(in[0]->data, (size_t)type_count(&in[0]->type), out[0]->data);
}

bool shape_image_decode(Node *n) {
    const int64_t *shape;
    if (!wants_bytes(n) || !op_ints(n, "shape", 3, &shape)) return false;
    const int64_t layout = node_int(n, "layout", 0);
    if (layout < BURN_IMAGE_RGB || layout > BURN_IMAGE_GRAY || shape[2] != (layout == BURN_IMAGE_GRAY ? 1 : 3)) {
        diag_error(n->loc, "there are no images of layout %lld with %s channels", (long long)layout,
            dim_text(n->graph->arena, n->graph, shape[2]));
        return false;
    }
    n->out[0]->type = type_make(DT_U8, 3, shape);
    return true;
}

bool eval_image_decode(const Node *n, Tensor *const *in, Tensor *const *out) {
    const Dim *d = out[0]->type.dim;
    return !burn_image_decode(
        in[0]->data, (size_t)type_count(&in[0]->type), (int)node_int(n, "layout", 0), d[0], d[1], out[0]->data);
}
