// SPDX-License-Identifier: MIT OR Apache-2.0
// What a model described in C and the compiler say to each other. A description includes model.h and never needs this
// file's names: its macros fill in these structs and call through the table.
//
// A description is compiled by the C compiler at hand into a shared object, which burncc loads in a child process;
// burn_describe gets the table and calls it. A value is known here by its address alone.
#ifndef BURNCC_LANGUAGE_H
#define BURNCC_LANGUAGE_H

#include <stdbool.h>
#include <stdint.h>

#define BURN_LANGUAGE_VERSION 1

typedef struct Value burn_value;            // NULL: what a mistake gives; whatever is made of it is NULL too
typedef int64_t burn_dim;                   // a size: a number, or a symbol, for dim_add...
typedef struct burn_place { const char *file; int line; const char *call; } burn_place;

// An operand: a tensor or a number, which takes the other operands' element type.
typedef struct burn_arg { burn_value *tensor; double number; bool is_number; } burn_arg;

// What a parameter begins as. DEFAULT: what the layer's reference says (PyTorch's defaults).
typedef enum burn_init_kind {
    BURN_INIT_DEFAULT,
    BURN_INIT_CONSTANT,                     // a
    BURN_INIT_UNIFORM,                      // from a to b
    BURN_INIT_NORMAL,                       // mean a, deviation b
    BURN_INIT_TRUNCATED_NORMAL,             // the same within two deviations
    BURN_INIT_KAIMING_UNIFORM,              // negative slope a of the leaky ReLU behind; fan_out if b
    BURN_INIT_KAIMING_NORMAL,
    BURN_INIT_XAVIER_UNIFORM,               // gain a
    BURN_INIT_XAVIER_NORMAL,
    BURN_INIT_ORTHOGONAL                    // gain a
} burn_init_kind;
typedef struct burn_init { burn_init_kind kind; double a, b; } burn_init;

// Options of layers. What is 0 takes its default, which the comment names; `end` is the place of no option.
struct burn_parameter {
    const char *name;                       // behind the scopes' names
    int dtype;                              // F32
    burn_init init;                         // 0
    int frozen;                             // NO; YES: --train leaves it as it is
    int end;
};
struct burn_linear {
    const char *name;
    burn_dim features;                      // of the output
    int bias;                               // YES
    const char *share;                      // the full name of the weight to use instead of one of its own
    burn_init init, bias_init;              // uniform within 1 / sqrt(features of the input)
    int end;
};
struct burn_conv {
    const char *name;
    burn_dim channels;                      // of the output
    int64_t kernel;                         // a number for all axes, or hw(3, 5)
    int64_t stride, padding, dilation;      // 1, 0, 1; padding: also SAME
    int64_t pads[6];                        // instead: before each axis, then behind each
    int64_t output_padding;                 // transposed: 0
    const char *padding_mode;               // "zeros"; "reflect", "replicate", "circular"
    int64_t groups;                         // 1
    int bias;                               // YES
    burn_value *offset, *mask;              // of deform_conv2d
    burn_init init, bias_init;              // uniform within 1 / sqrt(channels of a group * kernel)
    int end;
};
struct burn_pool {
    int64_t kernel, stride, padding, dilation;      // the kernel, 0, 1
    int ceil, count_padding;                // NO; YES: the average counts the padding, as PyTorch's does
    int end;
};
struct burn_norm {
    const char *name;
    int64_t groups;                         // of group_norm
    double eps;                             // 1e-5; rms_norm: 1e-6
    double momentum;                        // of batch_norm: 0.1
    int affine;                             // YES: weight and bias
    int bias;                               // YES, where affine
    int64_t axes;                           // layer_norm, rms_norm: how many axes, from the last on: 1
    int end;
};
struct burn_embedding {
    const char *name;
    burn_dim count, features;
    burn_init init;                         // normal(0, 1)
    int64_t padding_idx;                    // none; this row begins as 0
    int end;
};
struct burn_response {
    int64_t size;
    double alpha, beta, k;                  // 1e-4, 0.75, 1
    int end;
};
struct burn_stft {
    int64_t n_fft, hop;                     // hop: n_fft / 4
    burn_value *window;                     // of up to n_fft elements; ones
    int center;                             // YES: frames lie around their places, the ends are reflected
    int onesided;                           // YES
    int normalized;                         // NO; YES: by 1 / sqrt(n_fft)
    int64_t length;                         // of istft: of the result; as long as the frames reach
    int end;
};
struct burn_sdpa {
    burn_value *mask;                       // bool (true: may see) or added to the scores; none
    int causal;                             // NO
    double scale;                           // 1 / sqrt(size of a head)
    int end;
};
struct burn_attention {
    const char *name;
    int64_t heads;
    burn_value *key, *value;                // those of the query: self-attention
    burn_value *mask;
    int causal, bias;                       // NO, YES
    int end;
};
struct burn_recurrent {
    const char *name;
    burn_dim hidden;
    int64_t layers;                         // 1
    int bidirectional, bias;                // NO, YES
    const char *activation;                 // of rnn: "tanh"; "relu"
    int batch_first;                        // NO: [time, batch, features], as PyTorch's
    burn_value *h0, *c0;                    // [layers * directions, batch, hidden]; zeros
    burn_value **h, **c;                    // where to put the last states; nowhere
    int end;
};
struct burn_resize {
    int64_t size;                           // hw(64, 64), or
    double scale;                           // the factor of all axes
    const char *mode;                       // "nearest"; "nearest-exact", "linear", "bilinear", "trilinear", "bicubic"
    int align_corners;                      // NO
    int end;
};
struct burn_sample {
    const char *mode;                       // "bilinear"; "nearest", "bicubic"
    const char *padding_mode;               // "zeros"; "border", "reflection"
    int align_corners;                      // NO
    int end;
};
struct burn_loss {
    burn_value *third;                      // of losses of three tensors
    const char *reduction;                  // "mean"; "sum", "none"; kl_div: also "batchmean"
    burn_value *weight;                     // of each class; of binary_cross_entropy: of each element; 1
    int64_t ignore_index;                   // of cross_entropy, nll_loss: -100
    double label_smoothing;                 // of cross_entropy: 0
    burn_value *pos_weight;                 // of binary_cross_entropy_with_logits: of the ones; 1
    double beta, delta;                     // of smooth_l1_loss, huber_loss: 1
    double margin;                          // 1; margin_ranking_loss, cosine_embedding_loss: 0
    double p;                               // lp_loss, triplet_margin_loss: 2; multi_margin_loss: 1
    double eps;                             // gaussian_nll_loss, triplet_margin_loss: 1e-6; poisson_nll_loss: 1e-8
    int full;                               // NO; YES: gaussian_nll_loss, poisson_nll_loss with their constant terms
    int log_input, log_target;              // poisson_nll_loss: YES; kl_div: NO
    int swap;                               // of triplet_margin_loss: NO
    int64_t blank;                          // of ctc_loss, rnnt_loss: 0
    int zero_infinity;                      // of ctc_loss: NO
    int end;
};
struct burn_transformer {
    const char *name;
    int64_t heads;
    burn_dim wide;                          // features between linear1 and linear2: 2048
    const char *activation;                 // "relu"; "gelu", "gelu_tanh", "silu"
    int norm_first;                         // NO
    double eps;                             // 1e-5
    burn_value *mask;                       // as scaled_dot_product_attention's
    int causal;                             // NO
    burn_value *memory, *memory_mask;       // of a decoder's: what the encoder gave
    int end;
};
struct burn_pad {
    int64_t pads[8];                        // before, behind of the last axis, then of the one before it, ...
    const char *mode;                       // "constant"; "reflect", "replicate", "circular"
    double value;                           // 0
    int end;
};
// Lists with their lengths: .sizes = SIZES(dim(x, 0), 3)
struct burn_sizes { int n; const burn_dim *at; };
struct burn_numbers { int n; const double *at; };
// The text of a kernel, and where it is from: KERNEL, GLSL
struct burn_kernel { const char *file, *name, *parameters, *text; };
struct burn_custom {
    void (*shape)(burn_value *const *x);    // says each result by result(); as the formula gives, or as the first input
    void (*formula)(burn_value *const *x, burn_value **y);      // none
    // from the inputs, results and the results' gradients: those of inputs, NULL where none flows
    void (*gradient)(burn_value *const *x, burn_value *const *y, burn_value *const *dy, burn_value **dx);
    struct burn_kernel kernel, glsl;        // none
    struct burn_sizes sizes;                // given to the kernels behind the inputs and results
    struct burn_numbers numbers;            // and then these
    burn_dim points;                        // shares that can be computed in any order and at once; 0: one
    burn_value **results;                   // where to put all results; the call gives the first
    int end;
};
struct burn_found { burn_value *values, *indices; };        // of sort, topk, ...
struct burn_located { burn_value *values, *count; };        // of argwhere, ...

struct burn_language {
    int version;
#define CALL(type, name, ...) type (*call_##name)(__VA_ARGS__);    // call_: model.h has macros of these names
#include "language.def"
#undef CALL
};
#endif
