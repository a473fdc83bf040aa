// SPDX-License-Identifier: MIT OR Apache-2.0
// Resize and Upsample.
//
// In: an OnnxNode. Out: what build/resize.c makes of known sizes; run/resize.c has those that the program computes.
#include "resize.h"

#include <string.h>

static bool is(const char *s, const char *t) { return !strcmp(s, t); }

static bool read_scales(OnnxNode *n, Resize *r, Value *x, int input, const int64_t *axes) {
    Tensor *t = onnx_const_input(n, input, "scales");
    if (!t) return false;
    if (type_count(&t->type) != r->count)
        return onnx_fail(n, "%lld scales for %d axes", (long long)type_count(&t->type), r->count), false;
    for (int i = 0; i < r->count; i++)
        if (!resize_by_scale(n->g, x, &r->axes[i], (int)axes[i], tensor_get_f(t, i))) return false;
    return true;
}

static bool read_sizes(OnnxNode *n, Resize *r, Value *x, const int64_t *axes) {
    int64_t sizes[MAX_RANK];
    int count;
    if (!onnx_ints_input(n, 3, "sizes", sizes, &count, MAX_RANK)) return false;
    if (count != r->count) return onnx_fail(n, "%d sizes for %d axes", count, r->count), false;
    for (int i = 0; i < r->count; i++)
        if (!resize_to_size(n->g, x, &r->axes[i], (int)axes[i], sizes[i])) return false;
    const char *policy = onnx_string(n, "keep_aspect_ratio_policy", "stretch");
    if (!is(policy, "stretch") && r->count) resize_keep_aspect(r, is(policy, "not_smaller"));
    return true;
}

static bool read_roi(OnnxNode *n, Resize *r) {
    for (int i = 0; i < r->count; i++) r->axes[i].roi_end = 1;
    if (r->coordinates != PLACE_CROP_AND_RESIZE) return true;
    Tensor *t = onnx_const_input(n, 1, "roi");
    if (!t) return false;
    if (type_count(&t->type) != 2 * r->count)
        return onnx_fail(n, "roi has %lld elements, expected %d", (long long)type_count(&t->type), 2 * r->count),
               false;
    for (int i = 0; i < r->count; i++) {
        r->axes[i].roi_start = tensor_get_f(t, i);
        r->axes[i].roi_end = tensor_get_f(t, r->count + i);
    }
    return true;
}

// Which of the names an attribute has: its index.
static bool read_choice(OnnxNode *n, const char *attribute, size_t count, const char *const *names, unsigned *index) {
    const char *given = onnx_string(n, attribute, names[0]);
    for (size_t i = 0; i < count; i++) {
        *index = (unsigned)i;
        if (is(names[i], given)) return true;
    }
    return onnx_fail(n, "attribute \"%s\" is \"%s\"", attribute, given), false;
}

static bool read_mode(OnnxNode *n, Resize *r, bool imaginary) {
    static const char *const places[] = { // in the enumerations' order; the first is what holds where none is named
        "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
        "tf_crop_and_resize", "tf_half_pixel_for_nn"
    };
    static const char *const roundings[] = { "round_prefer_floor", "round_prefer_ceil", "floor", "ceil" };
    bool old = n->opset < 11;
    const char *mode = onnx_string(n, "mode", "nearest");
    if (!is(mode, "nearest") && !is(mode, "linear") && !is(mode, "bilinear") && !is(mode, "cubic"))
        return onnx_fail(n, "attribute \"mode\" is \"%s\"", mode), false;
    r->mode = is(mode, "nearest") ? RESIZE_NEAREST : is(mode, "cubic") ? RESIZE_CUBIC : RESIZE_LINEAR;
    unsigned place = PLACE_ASYMMETRIC, rounding = ROUND_FLOOR;
    if (!old && (!read_choice(n, "coordinate_transformation_mode", COUNT(places), places, &place)
                || !read_choice(n, "nearest_mode", COUNT(roundings), roundings, &rounding)))
        return false;
    r->coordinates = place;
    r->rounding = rounding;
    if (n->in[0]->type.dtype == DT_STRING && (r->mode != RESIZE_NEAREST || r->coordinates == PLACE_CROP_AND_RESIZE))
        return onnx_fail(n, "strings are taken from the nearest place alone, not computed"), false;
    r->antialias = onnx_int(n, "antialias", 0) != 0;
    r->exclude_outside = onnx_int(n, "exclude_outside", 0) != 0;
    r->cubic_a = onnx_float(n, "cubic_coeff_a", -0.75);
    r->extrapolation = imaginary ? 0 : onnx_float(n, "extrapolation_value", 0);     // a real number
    return true;
}

static bool has_elements(const OnnxNode *n, int i) {
    const Value *v = onnx_optional(n, i);
    return v && !(v->type.rank == 1 && v->type.dim[0] == 0);
}

// May coordinates and weights be constants?
static bool known_inputs(const OnnxNode *n, const Resize *r, int numbers) {
    Value *v = onnx_optional(n, numbers), *roi = r->coordinates == PLACE_CROP_AND_RESIZE ? onnx_optional(n, 1) : NULL;
    return type_is_static(&n->in[0]->type) && (!v || value_const(v)) && (!roi || value_const(roi));
}

static Value *resize(OnnxNode *n, bool imaginary) {
    Resize r = { 0 };
    int64_t axes[MAX_RANK];
    bool given;
    if (!read_mode(n, &r, imaginary)) return NULL;
    Value *x = n->in[0];
    if (!onnx_axes(n, 99, x->type.rank, axes, &r.count, &given)) return NULL;
    if (!given)
        for (r.count = 0; r.count < x->type.rank; r.count++) axes[r.count] = r.count;
    bool by_sizes = n->opset >= 11 && has_elements(n, 3);
    int scales_at = n->opset < 11 ? 1 : 2;
    if (!known_inputs(n, &r, by_sizes ? 3 : scales_at)) return onnx_resize_run(n, &r, axes, by_sizes ? -1 : scales_at);
    bool ok = by_sizes ? read_sizes(n, &r, x, axes) : read_scales(n, &r, x, scales_at, axes);
    return ok && read_roi(n, &r) ? b_resize(n->g, &r, x) : NULL;
}

Value *onnx_resize(OnnxNode *n) { return onnx_inputs(n, 1) ? onnx_by_parts(n, resize) : NULL; }

static Value *upsample(OnnxNode *n, bool imaginary) {
    Resize r = { 0 };
    if (!read_mode(n, &r, imaginary)) return NULL;
    Value *x = n->in[0];
    int64_t axes[MAX_RANK];
    for (r.count = 0; r.count < x->type.rank; r.count++) axes[r.count] = r.count;
    if (n->opset >= 9 && !known_inputs(n, &r, 1)) return onnx_resize_run(n, &r, axes, 1);
    if (n->opset < 9 && !b_static(n->g, x, "Upsample")) return NULL;
    if (n->opset >= 9) return read_scales(n, &r, x, 1, axes) && read_roi(n, &r) ? b_resize(n->g, &r, x) : NULL;
    const OnnxAttr *scales = n->opset < 7 ? NULL : onnx_attr(n, "scales", ONNX_FLOATS);
    if (n->opset < 7 ? r.count != 4 : !scales || scales->n != r.count)
        return onnx_fail(n,
            "wants an image [n, c, h, w], or from version 7 on an attribute \"scales\" of one element per dimension");
    const double sides[2] = { n->opset < 7 ? onnx_float(n, "height_scale", 1) : 1,
        n->opset < 7 ? onnx_float(n, "width_scale", 1) : 1 };
    for (int i = 0; i < r.count; i++)
        if (!resize_by_scale(n->g, x, &r.axes[i], i, scales ? (double)scales->floats[i] : i < 2 ? 1 : sides[i - 2]))
            return NULL;
    return read_roi(n, &r) ? b_resize(n->g, &r, x) : NULL;
}

Value *onnx_upsample(OnnxNode *n) { return onnx_inputs(n, 1) ? onnx_by_parts(n, upsample) : NULL; }
