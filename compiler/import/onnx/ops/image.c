// SPDX-License-Identifier: MIT OR Apache-2.0
// ImageDecoder.
//
// In: the bytes of an image's file. Out: its pixels, u8[height, width, channels]. The size is the declared one, or
// the running program finds it out within bounds that --dim gives, else DEFAULT_SIDE.
#include "import/onnx/run/measure.h"

#include "runtime/image.h"

#include <string.h>

enum { DEFAULT_SIDE = 2048 };   // of either side: 12 MiB of pixels

static bool image_side(OnnxNode *n, Value **list, int axis, Dim *d) {
    const EndDim *declared = onnx_declared_dim(n, 0, axis);
    if (declared && declared->known && declared->value > 0) {
        *d = declared->value;
        return true;
    }
    if (!*list) *list = b_unary(n->g, OP_ImageSize, n->in[0]);
    if (!onnx_measure(n, *list, axis, 0, axis, 1, DEFAULT_SIDE, d)) return false;
    const char *name = dim_text(n->g->arena, n->g, *d);
    if (!dim_is_const(*d) && !onnx_dim_option(n, name))
        onnx_note(n, "images of at most %d for %s; --dim %s=1..N gives another bound", DEFAULT_SIDE, name, name);
    return true;
}

Value *onnx_image_decoder(OnnxNode *n) {
    static const char *const formats[] = {
        [BURN_IMAGE_RGB] = "RGB", [BURN_IMAGE_BGR] = "BGR", [BURN_IMAGE_GRAY] = "Grayscale"
    };
    const char *format = onnx_string(n, "pixel_format", "RGB");
    int layout = 0;
    while (layout < (int)COUNT(formats) && strcmp(formats[layout], format)) layout++;
    if (layout == (int)COUNT(formats))
        return onnx_fail(n, "attribute \"pixel_format\" is \"%s\"; there are RGB, BGR and Grayscale", format);
    if (!onnx_inputs(n, 1)) return NULL;
    if (n->in[0]->type.dtype != DT_U8 || n->in[0]->type.rank != 1)
        return onnx_fail(
            n, "wants the bytes of an image file, u8[n], not %s", type_text(n->g->arena, n->g, &n->in[0]->type));
    Value *size = NULL;
    Dim dims[3] = { 0, 0, layout == BURN_IMAGE_GRAY ? 1 : 3 };
    for (int i = 0; i < 2; i++)
        if (!image_side(n, &size, i, &dims[i])) return NULL;
    Node *node = graph_node(n->g, OP_ImageDecode, 1, n->in, 1);
    node_set_ints(node, "shape", dims, 3);
    node_set_int(node, "layout", layout);
    return b_finish(node);
}
