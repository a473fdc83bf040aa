// SPDX-License-Identifier: MIT OR Apache-2.0
// Layers with parameters, pools and images: names, shapes and first values of the parameters are PyTorch's.
//
// In: a tensor and a layer's options. Out: what build/ makes of it, its parameters in the table of names.
#include "import/describe/describe.h"

#include <math.h>
#include <string.h>

// The init that the layer was given, else uniform within 1 / sqrt(fan in): PyTorch's of linear layers, convolutions.
static burn_init usual(burn_init given, int64_t fan_in) {
    double bound = 1 / sqrt((double)max64(fan_in, 1));
    return given.kind ? given : (burn_init){ BURN_INIT_UNIFORM, -bound, bound };
}

static Type type1(DType d, Dim n) { return type_make(d, 1, &n); }

static Value *plus_bias(Graph *g, Value *y, Value *bias, int axis) {
    return y && bias ? b_binary(g, OP_Add, y, b_along(g, bias, y->type.rank, axis)) : NULL;
}

static bool is_float(Graph *g, const Value *x) {
    return dtype_is_float(x->type.dtype) || graph_fail(g, "wants floats, not %s", shown(g, x));
}

// ---------------------------------------------------------------- linear, embedding

burn_value *language_linear(const burn_place *at, burn_value *x, const struct burn_linear *o) {
    Graph *g = here(at, o->name);
    int64_t in, out;
    if (!x || !is_float(g, x)) return NULL;
    if (x->type.rank < 1) return graph_fail(g, "wants an axis of features, %s has none", shown(g, x));
    if (!number_in(dim_out(x->type.dim[x->type.rank - 1]), "the size of the last axis", &in)
        || !number_in(o->features, "the number of features", &out))
        return NULL;
    if (out < 1) return graph_fail(g, "wants a number of features: linear(x, \"%s\", 10)", o->name ? o->name : "fc");
    Fan fan = { in, out };
    Type t = type_make(x->type.dtype, 2, (Dim[]){ out, in });
    Value *w =
        o->share ? shared_parameter(o->share, &t) : layer_parameter(o->name, "weight", t, usual(o->init, in), fan);
    Value *y = b_matmul(g, x, b_swap(g, w, 0, 1));
    if (!y || !yes(o->bias)) return y;
    Value *bias = layer_parameter(o->name, "bias", type1(t.dtype, out), usual(o->bias_init, in), fan);
    return b_binary(g, OP_Add, y, bias);
}

burn_value *language_embedding(const burn_place *at, burn_value *x, const struct burn_embedding *o) {
    Graph *g = here(at, o->name);
    int64_t count, features;
    if (!x || !number_in(o->count, "the number of rows", &count)
        || !number_in(o->features, "the number of features", &features))
        return NULL;
    if (!dtype_is_int(x->type.dtype)) return graph_fail(g, "wants integers that number rows, not %s", shown(g, x));
    if (count < 1 || features < 1)
        return graph_fail(
            g, "wants numbers of rows and features: embedding(ids, \"%s\", 1000, 64)", o->name ? o->name : "emb");
    burn_init init = o->init.kind ? o->init : (burn_init){ BURN_INIT_NORMAL, 0, 1 };
    Type t = type_make(DT_F32, 2, (Dim[]){ count, features });
    int64_t padding = (int64_t)given((double)o->padding_idx, -1);
    if (padding < -1 || padding >= count)
        return graph_fail(g, "there is no row %lld of %lld", (long long)padding, (long long)count);
    Value *w = layer_parameter(o->name, "weight", t, init, (Fan){ features, count });
    if (padding >= 0) begin_padded(w, padding);
    return b_gather(g, w, x, 0);
}

// ---------------------------------------------------------------- convolutions

// Spatial axes that the call's name says: conv2d
static int spatial(const burn_place *at) { return at->call[strlen(at->call) - 2] - '0'; }

// As torchvision's: a place and a mask for each tap, offset groups are what the offset's channels say.
static Value *deformed(Graph *g, Value *x, Value *weight, const struct burn_conv *o, const Window *w, int64_t groups) {
    Sampler s;
    int64_t taps = 2 * w->kernel[0] * w->kernel[1];
    if (!weight || !o->offset || !b_sampler(g, &s, x)) return NULL;
    if (o->offset->type.rank != 4 || !dim_is_const(o->offset->type.dim[1]) || o->offset->type.dim[1] % taps)
        return graph_fail(g, "wants offsets [batch, %lld * groups, height, width], not %s", (long long)taps,
            shown(g, o->offset));
    DeformConv d = { .window = *w, .groups = groups, .offset_groups = o->offset->type.dim[1] / taps, .mask = o->mask };
    return b_deform_conv(g, &s, x, weight, o->offset, &d);
}

static bool is_image(Graph *g, const Value *x, int space) {
    if (x->type.rank == space + 2) return is_float(g, x);
    return graph_fail(g, "wants [batch, channels%s], not %s", space == 1 ? ", length" : space == 2 ? ", height, width" :
        ", depth, height, width", shown(g, x));
}

static bool window_in(Graph *g, const Value *x, const struct burn_conv *o, Window *w) {
    int n = w->rank;
    bool explicit = false;
    if (!sizes_in(o->kernel, n, 0, "the kernel", w->kernel) || !sizes_in(o->stride, n, 1, "the stride", w->strides)
        || !sizes_in(o->dilation, n, 1, "the dilation", w->dilations))
        return false;
    for (int i = 0; i < n; i++)
        if (w->kernel[i] < 1) return graph_fail(g, "wants a kernel: conv2d(x, \"conv\", channels, 3)");
    if (o->padding == INT64_MIN) {
        window_same(x, w, true);
        return true;
    }
    if (!sizes_in(o->padding, n, 0, "the padding", w->pads)) return false;
    memcpy(w->pads + n, w->pads, sizeof *w->pads * (size_t)n);
    for (int i = 0; i < 2 * n; i++) explicit |= o->pads[i] != 0;
    for (int i = 0; i < 2 * n && explicit; i++) w->pads[i] = o->pads[i];
    return true;
}

// The padding of other modes than zeros, put around x, for a window without.
static Value *padded(Graph *g, Value *x, Window *w, const char *mode) {
    int64_t lo[MAX_RANK] = { 0 }, hi[MAX_RANK] = { 0 };
    bool edge = !strcmp(mode, "replicate"), wrap = !strcmp(mode, "circular");
    if (!edge && !wrap && strcmp(mode, "reflect"))
        return graph_fail(g, "there is no padding mode \"%s\"; there are zeros, reflect, replicate, circular", mode);
    memcpy(lo + 2, w->pads, sizeof *lo * (size_t)w->rank);
    memcpy(hi + 2, w->pads + w->rank, sizeof *hi * (size_t)w->rank);
    memset(w->pads, 0, sizeof w->pads);
    return b_pad_mode(g, x, lo, hi, edge ? "edge" : wrap ? "wrap" : "reflect", NULL);
}

burn_value *language_conv(const burn_place *at, burn_value *x, const struct burn_conv *o) {
    Graph *g = here(at, o->name);
    bool transposed = strstr(at->call, "transpose") != NULL;
    Window w = { .rank = spatial(at) };
    int64_t in, out, groups = o->groups ? o->groups : 1, taps = 1, extra[MAX_RANK];
    if (!x || !is_image(g, x, w.rank) || !window_in(g, x, o, &w)
        || !sizes_in(o->output_padding, w.rank, 0, "the output padding", extra)
        || !number_in(dim_out(x->type.dim[1]), "the number of channels of the input", &in)
        || !number_in(o->channels, "the number of channels", &out))
        return NULL;
    if (out < 1 || groups < 1 || in % groups || out % groups)
        return graph_fail(g, "%lld channels into %lld in %lld groups: both must be multiples of the groups",
            (long long)in, (long long)out, (long long)groups);
    if (o->padding_mode && strcmp(o->padding_mode, "zeros")) {
        if (transposed) return graph_fail(g, "a transposed convolution pads with zeros only");
        if (!(x = padded(g, x, &w, o->padding_mode))) return NULL;
    }
    Type t = { .dtype = x->type.dtype, .rank = 2 + w.rank };
    t.dim[0] = transposed ? in : out;
    t.dim[1] = (transposed ? out : in) / groups;
    for (int i = 0; i < w.rank; i++) taps *= t.dim[2 + i] = w.kernel[i];
    Fan fan = { t.dim[1] * taps, t.dim[0] * taps };
    Value *weight = layer_parameter(o->name, "weight", t, usual(o->init, fan.in), fan);
    Value *y = transposed        ? b_convolve_transposed(g, x, weight, &w, extra, groups) :
        at->call[0] == 'd' ? deformed(g, x, weight, o, &w, groups) :
                                   b_convolve(g, x, weight, &w, groups);
    if (!y || !yes(o->bias)) return y;
    return plus_bias(g, y, layer_parameter(o->name, "bias", type1(t.dtype, out), usual(o->bias_init, fan.in), fan), 1);
}

// ---------------------------------------------------------------- pools

burn_value *language_pool(const burn_place *at, burn_value *x, const struct burn_pool *o) {
    Graph *g = here(at, NULL);
    Window w = { .rank = spatial(at) };
    bool largest = at->call[0] == 'm';
    if (!x || !is_image(g, x, w.rank) || !sizes_in(o->kernel, w.rank, 0, "the kernel", w.kernel)
        || !sizes_in(o->dilation, w.rank, 1, "the dilation", w.dilations)
        || !sizes_in(o->padding, w.rank, 0, "the padding", w.pads))
        return NULL;
    for (int i = 0; i < w.rank; i++)
        if (w.kernel[i] < 1) return graph_fail(g, "wants a kernel: %s(x, 2)", at->call);
    if (!sizes_in(o->stride ? o->stride : o->kernel, w.rank, 1, "the stride", w.strides)) return NULL;
    memcpy(w.pads + w.rank, w.pads, sizeof *w.pads * (size_t)w.rank);
    if (o->ceil == 1) window_ceil(x, &w);
    return largest ? b_window_op(g, OP_WindowMax, x, &w) : b_average_pool(g, x, &w, yes(o->count_padding));
}

// As PyTorch divides an axis: part i from floor(i n / m) to ceil((i + 1) n / m); equal parts are a plain pool.
static Value *adapted_axis(Graph *g, Value *x, int axis, int64_t parts, Op op) {
    int64_t n = x->type.dim[axis], axes[1] = { axis };
    Value **part = NEW_ARRAY(g->arena, Value *, parts);
    for (int64_t i = 0; i < parts; i++) {
        int64_t from = i * n / parts, to = ceil_div((i + 1) * n, parts);
        part[i] = b_reduce(g, op, b_part(g, x, axis, from, to - from), 1, axes, true);
    }
    return b_concat(g, axis, (int)parts, part);
}

burn_value *language_adaptive(const burn_place *at, burn_value *x, int64_t size) {
    Graph *g = here(at, NULL);
    Window w = { .rank = spatial(at) };
    Op op = strstr(at->call, "max") ? OP_ReduceMax : OP_ReduceMean;
    int64_t to[MAX_RANK];
    bool equal = true, whole = true;
    if (!x || !is_image(g, x, w.rank) || !sizes_in(size, w.rank, 0, "the size", to)) return NULL;
    for (int i = 0; i < w.rank; i++) whole &= to[i] == 1;
    if (whole) return b_over_space(g, op, x);
    for (int i = 0; i < w.rank; i++) {
        if (to[i] < 1 || !b_known_size(g, x, 2 + i, at->call)) return to[i] < 1 ? graph_fail(g, "wants a size") : NULL;
        int64_t n = x->type.dim[2 + i];
        equal &= n % to[i] == 0 && n > 0;
        w.kernel[i] = w.strides[i] = n / to[i];
        w.dilations[i] = 1;
    }
    if (equal) return op == OP_ReduceMax ? b_window_op(g, OP_WindowMax, x, &w) : b_average_pool(g, x, &w, true);
    for (int i = 0; i < w.rank && x; i++)
        if (x->type.dim[2 + i] != to[i]) x = adapted_axis(g, x, 2 + i, to[i], op);
    return x;
}

// ---------------------------------------------------------------- norms

typedef struct Affine { Value *scale, *bias; } Affine;

// weight and bias of these sizes, 1 and 0, unless the layer has none
static Affine affine_of(Graph *g, const Value *x, const struct burn_norm *o, int rank, const Dim *dims, bool bias) {
    Type t = type_make(x->type.dtype, rank, dims);
    Affine a = { 0 };
    if (!yes(o->affine)) {
        a.scale = b_full(g, &t, 1);
        if (bias) a.bias = b_full(g, &t, 0);
        return a;
    }
    a.scale = layer_parameter(o->name, "weight", t, (burn_init){ BURN_INIT_CONSTANT, 1, 0 }, (Fan){ 1, 1 });
    if (!a.scale) return a;
    if (bias && yes(o->bias)) a.bias = layer_parameter(o->name, "bias", t, (burn_init){ 0 }, (Fan){ 1, 1 });
    else if (bias) a.bias = b_full(g, &t, 0);
    return a;
}

static Value *batch_norm(Graph *g, Value *x, const struct burn_norm *o, double eps) {
    Dim channels = x->type.dim[1];
    Affine a = affine_of(g, x, o, 1, &channels, true);
    if (!a.scale || !a.bias) return NULL;
    Value *mean = layer_buffer(o->name, "running_mean", type1(x->type.dtype, channels), 0),
          *variance = layer_buffer(o->name, "running_var", type1(x->type.dtype, channels), 1);
    if (!mean || !variance) return NULL;
    double momentum = 1 - (o->momentum > 0 ? o->momentum : 0.1);        // PyTorch counts what is new
    return b_batch_norm(g, x, (Value *[]){ a.scale, a.bias, mean, variance }, eps, momentum);
}

// Over the last `axes` axes.
static Value *last_axes_norm(Graph *g, Value *x, const struct burn_norm *o, bool centred, double eps) {
    int rank = x->type.rank;
    int64_t axes = o->axes ? o->axes : 1;
    if (axes < 1 || axes > rank) return graph_fail(g, "%lld axes of %s", (long long)axes, shown(g, x));
    Affine a = affine_of(g, x, o, (int)axes, x->type.dim + rank - axes, false);
    if (centred && yes(o->affine) && yes(o->bias)) {
        Type t = type_make(x->type.dtype, (int)axes, x->type.dim + rank - axes);
        a.bias = layer_parameter(o->name, "bias", t, (burn_init){ 0 }, (Fan){ 1, 1 });
        if (!a.bias) return NULL;
    }
    return centred ? b_layer_norm(g, x, a.scale, a.bias, rank - (int)axes, eps) :
                     b_rms_norm(g, x, a.scale, rank - (int)axes, eps);
}

static Value *channel_norm(Graph *g, Value *x, const struct burn_norm *o, bool groups, double eps) {
    Dim channels = x->type.dim[1];
    int64_t count = groups ? o->groups : 1;
    if (count < 1 || !dim_is_const(channels) || channels % count)
        return graph_fail(g, "%s in %lld groups: its channels must be a multiple", shown(g, x), (long long)count);
    Affine a = affine_of(g, x, o, 1, &channels, true);
    GroupNorm norm = { .groups = count, .epsilon = eps, .stash = DT_F32 };
    return groups ? b_group_norm(g, x, a.scale, a.bias, &norm) : b_instance_norm(g, x, a.scale, a.bias, eps);
}

burn_value *language_normalize(const burn_place *at, burn_value *x, const struct burn_norm *o) {
    Graph *g = here(at, o->name);
    char kind = at->call[0];                            // batch_norm, layer_norm, rms_norm, instance_norm, group_norm
    if (!x || !is_float(g, x)) return NULL;
    if ((yes(o->affine) || kind == 'b') && (!o->name || !*o->name)) return graph_fail(g, "a layer needs a name");
    double eps = o->eps > 0 ? o->eps : kind == 'r' ? 1e-6 : 1e-5;
    if (kind == 'l' || kind == 'r') return last_axes_norm(g, x, o, kind == 'l', eps);
    if (x->type.rank < 2) return graph_fail(g, "wants [batch, channels, ...], not %s", shown(g, x));
    return kind == 'b' ? batch_norm(g, x, o, eps) : channel_norm(g, x, o, kind == 'g', eps);
}

burn_value *language_response(const burn_place *at, burn_value *x, const struct burn_response *o) {
    Graph *g = here(at, NULL);
    if (!x || !is_float(g, x)) return NULL;
    if (x->type.rank < 3 || o->size < 1)
        return graph_fail(g, "wants [batch, channels, ...] and a size, not %s and %lld", shown(g, x),
            (long long)o->size);
    return b_local_response_norm(
        g, x, o->size, given(o->alpha, 1e-4), given(o->beta, 0.75), given(o->k, 1));
}

burn_value *language_dropout(const burn_place *at, burn_value *x, double p) {
    Graph *g = here(at, NULL);
    if (!(p >= 0 && p <= 1)) return graph_fail(g, "%g is no probability", p);
    if (!x || p == 0 || !describing->options->train) return x;
    return is_float(g, x) ? b_dropout_trained(g, x, p) : NULL;
}

// ---------------------------------------------------------------- images

// unless the corners are aligned
static const struct { const char *name; Resize how; } resizes[] = {
    { "nearest", { .mode = RESIZE_NEAREST, .rounding = ROUND_FLOOR, .coordinates = PLACE_ASYMMETRIC } },
    { "nearest-exact", { .mode = RESIZE_NEAREST, .rounding = ROUND_PREFER_CEIL, .coordinates = PLACE_HALF_PIXEL } },
    { "linear", { .mode = RESIZE_LINEAR, .rounding = ROUND_FLOOR, .coordinates = PLACE_PYTORCH_HALF_PIXEL } },
    { "bilinear", { .mode = RESIZE_LINEAR, .rounding = ROUND_FLOOR, .coordinates = PLACE_PYTORCH_HALF_PIXEL } },
    { "trilinear", { .mode = RESIZE_LINEAR, .rounding = ROUND_FLOOR, .coordinates = PLACE_PYTORCH_HALF_PIXEL } },
    { "bicubic",
        { .mode = RESIZE_CUBIC, .rounding = ROUND_FLOOR, .coordinates = PLACE_PYTORCH_HALF_PIXEL, .cubic_a = -0.75 } },
};

burn_value *language_resize(const burn_place *at, burn_value *x, const struct burn_resize *o) {
    Graph *g = here(at, NULL);
    size_t row = 0;
    int64_t size[MAX_RANK];
    if (!x) return NULL;
    int space = x->type.rank - 2;
    if (space < 1 || !is_image(g, x, space)) return NULL;
    for (int i = 2; i < x->type.rank; i++)
        if (!number_in(dim_out(x->type.dim[i]), "a size of the image", &size[i])) return NULL;
    while (o->mode && row < COUNT(resizes) && strcmp(resizes[row].name, o->mode)) row++;
    if (row == COUNT(resizes))
        return graph_fail(g, "there is no mode \"%s\"; there are nearest, nearest-exact, linear, bilinear, trilinear, "
            "bicubic", o->mode);
    if ((o->size != 0) == (o->scale > 0)) return graph_fail(g, "wants .size or .scale");
    Resize r = resizes[row].how;
    if (o->align_corners == 1 && r.mode != RESIZE_NEAREST) r.coordinates = PLACE_ALIGN_CORNERS;
    r.count = space;
    if (o->size && !sizes_in(o->size, space, 0, "the size", size)) return NULL;
    for (int i = 0; i < space; i++) {
        bool ok = o->size ? resize_to_size(g, x, &r.axes[i], 2 + i, size[i]) :
                            resize_by_scale(g, x, &r.axes[i], 2 + i, o->scale);
        if (!ok) return NULL;
        r.axes[i].roi_end = 1;
    }
    return b_resize(g, &r, x);
}

burn_value *language_shuffle(const burn_place *at, burn_value *x, int64_t factor) {
    Graph *g = here(at, NULL);
    bool back = strstr(at->call, "un") != NULL;
    if (!x || !is_image(g, x, 2)) return NULL;
    if (factor < 1) return graph_fail(g, "the factor is %lld", (long long)factor);
    return back ? b_space_to_depth(g, x, factor, true) : b_depth_to_space(g, x, factor, true);
}

// ---------------------------------------------------------------- integers with a scale

// Operands as they are; numbers become scalars.
static Value *scale_of(Graph *g, const Value *x, burn_arg arg, int axis) {
    if (arg.is_number) return b_scalar(g, DT_F32, arg.number);
    return arg.tensor ? b_spread(g, b_cast(g, arg.tensor, DT_F32), x, axis, 0) : NULL;
}

burn_value *language_quantize(
    const burn_place *at, burn_value *x, burn_arg scale, burn_arg zero, int dtype, int64_t axis) {
    Graph *g = here(at, NULL);
    bool back = at->call[0] == 'd';
    int i;
    if (!x || !axis_in(x, axis, &i) || !dtype_in(g, dtype)) return NULL;
    DType d = (DType)dtype;
    if (back ? !dtype_is_int(x->type.dtype) : !dtype_is_float(x->type.dtype) || !dtype_is_int(d))
        return graph_fail(g, "turns %s, not %s into %s", back ? "integers into floats" : "floats into integers",
            shown(g, x), dtype_name(d));
    Value *by = scale_of(g, x, scale, i), *at_zero = scale_of(g, x, zero, i);
    if (!by || !at_zero) return NULL;
    if (!back) return b_round_to(g, b_binary(g, OP_Div, x, by), at_zero, d, true);
    return B_MAP(g, "(x - y) * z", "x y z", b_cast(g, x, DT_F32), at_zero, by);
}
