// SPDX-License-Identifier: MIT OR Apache-2.0
// com.microsoft: normalisations merged with the sums before them, and those of channels-last images.
//
// In: an OnnxNode. Out: sums, then LayerNorm, RMSNorm or GroupNorm composites. Formulas: y = (s - mean) / sqrt(var +
// epsilon) * gamma + beta, or s / sqrt(mean(s^2) + epsilon) * gamma, with s the sum of the inputs that the operator
// adds.
#include "import/onnx/onnx.h"

#include <string.h>

static Value *plus(OnnxNode *n, Value *x, Value *y) { return x && y ? b_binary(n->g, OP_Add, x, y) : x; }

static bool output_asked(const OnnxNode *n, int i) { return i < n->n_out && n->asked[i]; }

// input + skip + bias, over the last axis. Outputs: y, mean, 1 / deviation, the sum. The row's argument "rms":
// without mean and beta.
Value *onnx_ms_skip_layer_norm(OnnxNode *n) {
    if (!onnx_inputs(n, 3)) return NULL;
    bool rms = !strcmp(n->argument, "rms");
    Value *gamma = n->in[2], *beta = rms ? NULL : onnx_optional(n, 3), *mean = NULL;
    double epsilon = onnx_float(n, "epsilon", 1e-12);
    if (n->in[0]->type.rank < 2) return onnx_fail(n, "the input must have at least 2 dimensions");
    Value *sum = plus(n, plus(n, n->in[0], n->in[1]), onnx_optional(n, rms ? 3 : 4));
    if (!sum) return NULL;
    int axis = sum->type.rank - 1;
    if (output_asked(n, 1) || output_asked(n, 2)) {
        n->out[2] = b_reciprocal_deviation(n->g, b_cast(n->g, sum, DT_F32), axis, epsilon, rms ? NULL : &mean);
        n->out[1] = mean;
    }
    n->out[3] = sum;
    return rms ? b_rms_norm(n->g, sum, gamma, axis, epsilon) :
                 b_layer_norm(n->g, sum, gamma, beta, axis, epsilon);
}

// The name that RMSNormalization had before it was in the standard; a second output is 1 / deviation.
Value *onnx_ms_simplified_layer_norm(OnnxNode *n) {
    int axis;
    DType stash;
    if (!onnx_inputs(n, 2) || !onnx_axis(n, onnx_int(n, "axis", -1), n->in[0]->type.rank, &axis)
        || !onnx_dtype(n, "stash_type", DT_F32, &stash))
        return NULL;
    if (output_asked(n, 1))
        n->out[1] = b_reciprocal_deviation(
            n->g, b_cast(n->g, n->in[0], stash), axis, onnx_float(n, "epsilon", 1e-5), NULL);
    return onnx_rms_norm(n);
}

// ---------------------------------------------------------------- embeddings

// word[ids] + position[0, 1, 2... or ids of their own] + segment[ids], normalised. Outputs: y, how many ones each row
// of the mask has, the sum.
typedef struct Embedding {
    Value *ids, *segments, *word, *position, *segment, *gamma, *beta, *mask, *places;
    int mask_output, sum_output;
} Embedding;

static Value *position_rows(OnnxNode *n, const Embedding *e) {
    if (e->places) return b_gather(n->g, e->position, e->places, 0);
    return b_gather(n->g, e->position, b_iota(n->g, 1, &e->ids->type.dim[1], 0, DT_I64), 0);
}

static Value *embed(OnnxNode *n, const Embedding *e) {
    if (e->ids->type.rank != 2 || e->position->type.rank != 2)
        return onnx_fail(n, "input_ids and position_embedding must have 2 dimensions");
    if (!e->segments != !e->segment) return onnx_fail(n, "segment_ids and segment_embedding go together");
    Value *sum = b_gather(n->g, e->word, e->ids, 0);
    sum = plus(n, sum, position_rows(n, e));
    if (e->segments) sum = plus(n, sum, b_gather(n->g, e->segment, e->segments, 0));
    if (!sum) return NULL;
    if (output_asked(n, e->mask_output)) {
        Value *ones = e->mask ? b_cast(n->g, b_binary(n->g, OP_Equal, e->mask, b_like(n->g, e->mask, 1)), DT_I32) :
                                b_filled(n->g, DT_I32, 0, 2, e->ids->type.dim);
        n->out[e->mask_output] = b_reduce(n->g, OP_ReduceSum, ones, 1, (int64_t[]){ 1 }, false);
    }
    if (output_asked(n, e->sum_output)) n->out[e->sum_output] = sum;
    return b_layer_norm(n->g, sum, e->gamma, e->beta, 2, onnx_float(n, "epsilon", 1e-12));
}

Value *onnx_ms_embed_layer_norm(OnnxNode *n) {
    if (!onnx_input(n, 0) || !onnx_input(n, 2) || !onnx_input(n, 3) || !onnx_input(n, 5) || !onnx_input(n, 6))
        return NULL;
    onnx_int(n, "mask_index_type", 0);
    Value **in = n->in;
    Embedding e = { in[0], in[1], in[2], in[3], in[4], in[5], in[6], onnx_optional(n, 7), onnx_optional(n, 8), 1, 2 };
    return embed(n, &e);
}

// The same with tables, gamma and beta quantised: scales are inputs 8.., zero points the inputs after them.
Value *onnx_ms_qembed_layer_norm(OnnxNode *n) {
    static const int tables[] = { 2, 3, 4, 5, 6 };
    Value *plain[5] = { 0 };
    for (size_t i = 0; i < COUNT(tables); i++) {
        int at = tables[i];
        if (at == 4 && !onnx_optional(n, 4)) continue;
        if (!onnx_input(n, at) || !onnx_input(n, (int)i + 8) || !onnx_input(n, (int)i + 13)) return NULL;
        Value *scale = b_scalar_of(n->g, n->in[i + 8]), *zero = b_scalar_of(n->g, n->in[i + 13]);
        if (!scale || !zero) return NULL;
        plain[i] = B_MAP(n->g, "f32(i32(x) - i32(y)) * z", "x y z", n->in[at], zero, scale);
    }
    if (!onnx_input(n, 0) || !plain[0] || !plain[1] || !plain[3] || !plain[4]) return NULL;
    Embedding e = { n->in[0], onnx_optional(n, 1), plain[0], plain[1], plain[2], plain[3], plain[4],
        onnx_optional(n, 7), NULL, 1, 99 };
    return embed(n, &e);
}

// ---------------------------------------------------------------- groups of channels

static Value *group_norm(OnnxNode *n, Value *x, bool last) {
    int64_t activation = onnx_int(n, "activation", 0), groups = onnx_int(n, "groups", 0);
    if (!x) return NULL;
    int rank = x->type.rank;
    if (activation != 0 && activation != 1)
        return onnx_fail(n, "activation %lld is not supported; 0 (none) and 1 (SiLU) are", (long long)activation);
    DType d = x->type.dtype;
    Dim channels = rank > 2 ? x->type.dim[last ? rank - 1 : 1] : -1;
    if (!dim_is_const(channels) || groups < 1 || channels % groups)
        return onnx_fail(n, "groups (%lld) must divide a known number of channels", (long long)groups);
    Value *in[3] = { b_cast(n->g, last ? b_channels_first(n->g, x) : x, DT_F32), b_cast(n->g, n->in[1], DT_F32),
        b_cast(n->g, n->in[2], DT_F32) };
    if (!in[0] || !in[1] || !in[2]) return NULL;
    Node *node = graph_node(n->g, OP_GroupNorm, 3, in, 1);
    node_set_int(node, "num_groups", groups);
    node_set_float(node, "epsilon", onnx_float(n, "epsilon", 1e-5));
    Value *y = b_finish(node);
    if (activation) y = b_unary(n->g, OP_Swish, y);
    return b_cast(n->g, last ? b_channels_last(n->g, y) : y, d);
}

// Images with channels last, or second where channels_last is 0. SkipGroupNorm adds skip [N, C] or an image, and a
// bias per channel, first.
Value *onnx_ms_group_norm(OnnxNode *n) {
    if (!onnx_inputs(n, 3)) return NULL;
    Value *x = n->in[0];
    bool last = onnx_int(n, "channels_last", 1) != 0, skips = !strcmp(n->argument, "skip");
    if (!skips) return group_norm(n, x, last);
    Value *skip = onnx_input(n, 3), *bias = onnx_optional(n, 4);
    int rank = x->type.rank, channel = last ? rank - 1 : 1;
    if (!skip || rank < 3) return skip ? onnx_fail(n, "the input must have at least 3 dimensions") : NULL;
    if (skip->type.rank == 2) {
        Dim dims[MAX_RANK];
        for (int i = 0; i < rank; i++) dims[i] = i == 0 ? skip->type.dim[0] : i == channel ? skip->type.dim[1] : 1;
        skip = b_reshape(n->g, skip, rank, dims);
    }
    Value *sum = b_binary(n->g, OP_Add, x, skip);
    sum = plus(n, sum, b_along(n->g, bias, rank, channel));
    n->out[1] = sum;
    return group_norm(n, sum, last);
}
