// SPDX-License-Identifier: MIT OR Apache-2.0
// Describes neural networks in C: include this, write MODEL(name) { ... }, and give the file to burncc.
//
//   #include <burncc/model.h>
//
//   MODEL(lenet)
//   {
//       Dim batch = symbol("batch");
//       Tensor x = input("image", F32, batch, 1, 28, 28);
//       x = max_pool2d(relu(conv2d(x, "conv1", 6, 5, .padding = 2)), 2);
//       x = max_pool2d(relu(conv2d(x, "conv2", 16, 5)), 2);
//       x = relu(linear(flatten(x, 1), "fc1", 120));
//       output("logits", linear(x, "fc2", config("classes", 10)));
//   }
//
// Operations have PyTorch's names and defaults. Layers take what they must know in order and options by name, of which
// 0 is the default. A layer's name behind those of the scopes around it is the name of its parameters in a file of
// weights: conv1.weight. A mistake is told at its line; what follows from it is not told again.
//
// Everything here is a macro that passes on its place in the file, so each name can be used for something else behind
// an #undef. Names that <math.h> has too (exp, sqrt, ...) still take numbers.
#ifndef BURNCC_MODEL_H
#define BURNCC_MODEL_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "language.h"

typedef burn_value *Tensor;                 // known by its shape and element type alone
typedef burn_dim Dim;                       // a size: a number, or a symbol; for symbols use dim_add, dim_mul, ...
typedef burn_init Init;

enum { F32 = 1, U8, I8, U16, I16, I32, I64, STRING, BOOL, F16, F64, U32, U64, C64, C128, BF16 };       // element types
enum { YES = 1, NO = 2 };                   // of options where 0 is the default
#define ZERO (INT64_MIN + 1)                // a number that is 0, where 0 is the default: .ignore_index = ZERO
#define SAME INT64_MIN                      // .padding = SAME: as many outputs as inputs (divided by the stride)

// ---------------------------------------------------------------- what a description is made of

// One stands in a file.
#define MODEL(name) \
    static void burn_describe_##name(void); \
    __attribute__((visibility("default"))) void burn_model(const struct burn_language *language); \
    void burn_model(const struct burn_language *language) { \
        burn = language; \
        burn->call_model(BURN_AT("MODEL"), #name); \
        burn_describe_##name(); \
    } \
    static void burn_describe_##name(void)
static const struct burn_language *burn;    // what burncc gives before it calls the model

// The parameters of the layers within get this name and a dot before theirs: scope("layer%d", 1) x = block(x);
#define scope(...) \
    for (int burn_once __attribute__((cleanup(burn_leave))) = (burn->call_scope(BURN_AT("scope"), __VA_ARGS__), 1); \
        burn_once; burn_once = 0)
static inline __attribute__((unused)) void burn_leave(int *once) {
    (void)once;
    burn->call_scope_end();
}

// A name that is put together, printf's format: conv2d(x, named("features.%d", i), 64, 3)
#define named(...) burn->call_named(BURN_AT("named"), __VA_ARGS__)

// Layers within take the parameters of these names that there are already: shared() x = block(x);
#define shared() \
    for (int burn_once __attribute__((cleanup(burn_own))) = (burn->call_shared(BURN_AT("shared")), 1); burn_once; \
        burn_once = 0)
static inline __attribute__((unused)) void burn_own(int *once) {
    (void)once;
    burn->call_shared_end();
}

// A size that is known when the program runs, or given by --dim NAME=4 or NAME=1..64.
#define symbol(name) burn->call_symbol(BURN_AT("symbol"), name, 1, INT32_MAX)
#define symbol_within(name, low, high) burn->call_symbol(BURN_AT("symbol_within"), name, low, high)
// input("image", F32, batch, 3, 224, 224); without sizes: one number
#define input(name, ...) BURN_INPUT(BURN_AT("input"), name, __VA_ARGS__, )
#define output(name, x) burn->call_output(BURN_AT("output"), name, x)

// One of several functions of a model, which share parameters and states: function("step") { ... }
#define function(name) \
    for (int burn_once __attribute__((cleanup(burn_return))) = (burn->call_function(BURN_AT("function"), name), 1); \
        burn_once; burn_once = 0)
static inline __attribute__((unused)) void burn_return(int *once) {
    (void)once;
    burn->call_function_end();
}
// What the caller keeps from one run to the next, zero at first: state("h", F32, 1, 64) is what it was,
#define state(name, ...) BURN_STATE(BURN_AT("state"), name, __VA_ARGS__, )
// and this what it becomes, which it gives.
#define state_set(x, to) burn->call_state_set(BURN_AT("state_set"), x, to)
// All rows so far of a cache: x's stand behind the `past` ones that it has, along an axis with room for `capacity`.
#define cached(x, name, axis, capacity, past) burn->call_cached(BURN_AT("cached"), x, name, axis, capacity, past)

// A setting of the model with its default, which --set NAME=VALUE or --config FILE.json replaces.
#define config(name, otherwise) \
    _Generic((otherwise), char *: burn_config_word, const char *: burn_config_word, float: burn_config_number, \
        double: burn_config_number, default: burn_config_integer)(BURN_AT("config"), name, otherwise)
// the same of n integers, whose defaults stand in the list: int64_t depths[4] = { 2, 2, 2, 2 };
#define config_list(name, n, list) burn->call_numbers(BURN_AT("config_list"), name, n, list)

// A mistake of the caller's, at this place: printf's format.
#define fail(...) burn->call_mistake(BURN_AT("fail"), __VA_ARGS__)

// ---------------------------------------------------------------- sizes
#define dim(x, axis) burn->call_dim(BURN_AT("dim"), x, axis)         // axes count from the end if negative
#define rank(x) burn->call_rank(BURN_AT("rank"), x)
#define dim_add(a, b) burn->call_dim_of(BURN_AT("dim_add"), a, b)
#define dim_sub(a, b) burn->call_dim_of(BURN_AT("dim_sub"), a, b)
#define dim_mul(a, b) burn->call_dim_of(BURN_AT("dim_mul"), a, b)
#define dim_div(a, b) burn->call_dim_of(BURN_AT("dim_div"), a, b)    // rounded down
// a size that is the one element of a tensor of I64, within these bounds: size_of(input("past", I64), 0, 1023)
#define size_of(x, low, high) burn->call_size_of(BURN_AT("size_of"), x, low, high)
// a height and a width, or a depth too, where one number would be for all axes: .kernel = hw(1, 7)
#define hw(h, w) (BURN_SIZES | (int64_t)(h) << 20 | (int64_t)(w))
#define dhw(d, h, w) (BURN_SIZES | INT64_C(1) << 60 | (int64_t)(d) << 40 | (int64_t)(h) << 20 | (int64_t)(w))
#define BURN_SIZES (INT64_C(1) << 61)

// ---------------------------------------------------------------- parameters and constants
// parameter("scale", (heads, 1), .init = init_constant(1))
#define parameter(name_, dims, ...) \
    burn->call_parameter(BURN_AT("parameter"), &(struct burn_parameter){ .name = name_, __VA_ARGS__ }, BURN_LIST dims)
#define init_constant(v) ((Init){ BURN_INIT_CONSTANT, v, 0 })
#define init_zeros() init_constant(0)
#define init_ones() init_constant(1)
#define init_uniform(low, high) ((Init){ BURN_INIT_UNIFORM, low, high })
#define init_normal(mean, deviation) ((Init){ BURN_INIT_NORMAL, mean, deviation })
#define init_truncated_normal(mean, deviation) ((Init){ BURN_INIT_TRUNCATED_NORMAL, mean, deviation })
#define init_kaiming_uniform(slope) ((Init){ BURN_INIT_KAIMING_UNIFORM, slope, 0 })
#define init_kaiming_normal(slope) ((Init){ BURN_INIT_KAIMING_NORMAL, slope, 0 })
#define init_kaiming_uniform_fan_out(slope) ((Init){ BURN_INIT_KAIMING_UNIFORM, slope, 1 })
#define init_kaiming_normal_fan_out(slope) ((Init){ BURN_INIT_KAIMING_NORMAL, slope, 1 })
#define init_xavier_uniform(gain) ((Init){ BURN_INIT_XAVIER_UNIFORM, gain, 0 })
#define init_xavier_normal(gain) ((Init){ BURN_INIT_XAVIER_NORMAL, gain, 0 })
#define init_orthogonal(gain) ((Init){ BURN_INIT_ORTHOGONAL, gain, 0 })

// constant(F32, table, 4, 2): row-major elements of this type
#define constant(dtype, data, ...) burn->call_constant(BURN_AT("constant"), dtype, data, BURN_LIST(__VA_ARGS__))
#define full(dtype, value, ...) burn->call_full(BURN_AT("full"), dtype, value, BURN_LIST(__VA_ARGS__))
#define zeros(dtype, ...) full(dtype, 0, __VA_ARGS__)
#define ones(dtype, ...) full(dtype, 1, __VA_ARGS__)
#define zeros_like(x) burn->call_like(BURN_AT("zeros_like"), x, 0)
#define ones_like(x) burn->call_like(BURN_AT("ones_like"), x, 1)
#define full_like(x, value) burn->call_like(BURN_AT("full_like"), x, value)
#define arange(dtype, end) burn->call_arange(BURN_AT("arange"), dtype, end)      // 0, 1, ... end - 1
// start, start + step, ... before end
#define arange_step(dtype, start, end, step) burn->call_steps(BURN_AT("arange_step"), dtype, start, end, step)
#define linspace(dtype, start, end, n) burn->call_linspace(BURN_AT("linspace"), dtype, start, end, n)
#define eye(dtype, n) burn->call_eye(BURN_AT("eye"), dtype, n)
// bools: column <= row + diagonal, column >= row + diagonal, column == row + diagonal
#define tril_mask(rows, columns, diagonal) burn->call_mask(BURN_AT("tril_mask"), rows, columns, diagonal)
#define triu_mask(rows, columns, diagonal) burn->call_mask(BURN_AT("triu_mask"), rows, columns, diagonal)
#define diag_mask(rows, columns, diagonal) burn->call_mask(BURN_AT("diag_mask"), rows, columns, diagonal)
// grid `which` of lists: [size of a, size of b, ...], in which each varies along its own axis
#define meshgrid(which, ...) burn->call_meshgrid(BURN_AT("meshgrid"), which, BURN_TENSORS(__VA_ARGS__))
// all their combinations as rows, the last varies fastest
#define cartesian_prod(...) burn->call_meshgrid(BURN_AT("cartesian_prod"), 0, BURN_TENSORS(__VA_ARGS__))
// windows of F32 over a period of n
#define hann_window(n) burn->call_window(BURN_AT("hann_window"), n)
#define hamming_window(n) burn->call_window(BURN_AT("hamming_window"), n)
#define blackman_window(n) burn->call_window(BURN_AT("blackman_window"), n)
// drawn from --seed and the place among such calls: the same at each run
#define rand(dtype, ...) BURN_DRAWN("rand", dtype, 0, 1, __VA_ARGS__)                    // uniform, 0 to below 1
#define rand_uniform(dtype, low, high, ...) BURN_DRAWN("rand_uniform", dtype, low, high, __VA_ARGS__)
#define randn(dtype, ...) BURN_DRAWN("randn", dtype, 0, 1, __VA_ARGS__)
#define rand_normal(dtype, mean, deviation, ...) BURN_DRAWN("rand_normal", dtype, mean, deviation, __VA_ARGS__)
#define randint(dtype, low, high, ...) BURN_DRAWN("randint", dtype, low, high, __VA_ARGS__)      // below high
#define bernoulli(p) burn->call_chance(BURN_AT("bernoulli"), p, 1)                      // 1 with probability p
// rows of probabilities: numbers of classes, with replacement
#define multinomial(p, samples) burn->call_chance(BURN_AT("multinomial"), p, samples)

// ---------------------------------------------------------------- elements
// Operands are tensors, broadcast against each other as numpy does, or numbers.
#define add(x, y) BURN_MAP("add", x, y)
#define sub(x, y) BURN_MAP("sub", x, y)
#define mul(x, y) BURN_MAP("mul", x, y)
#define div(x, y) BURN_MAP("div", x, y)
#define remainder(x, y) BURN_MATH("remainder", remainder, x, y)     // the sign is the divisor's
#define fmod(x, y) BURN_MATH("fmod", fmod, x, y)                    // the sign is the dividend's
#define pow(x, y) BURN_MATH("pow", pow, x, y)
#define atan2(y, x) BURN_MATH("atan2", atan2, y, x)
#define hypot(x, y) BURN_MATH("hypot", hypot, x, y)
#define minimum(x, y) BURN_MAP("minimum", x, y)
#define maximum(x, y) BURN_MAP("maximum", x, y)
#define clamp(x, low, high) BURN_MAP("clamp", x, low, high)
#define lerp(x, y, weight) BURN_MAP("lerp", x, y, weight)
#define where(condition, x, y) BURN_MAP("where", condition, x, y)
#define masked_fill(x, mask, value) BURN_MAP("where", mask, value, x)
#define eq(x, y) BURN_MAP("eq", x, y)
#define ne(x, y) BURN_MAP("ne", x, y)
#define lt(x, y) BURN_MAP("lt", x, y)
#define le(x, y) BURN_MAP("le", x, y)
#define gt(x, y) BURN_MAP("gt", x, y)
#define ge(x, y) BURN_MAP("ge", x, y)
#define logical_and(x, y) BURN_MAP("logical_and", x, y)
#define logical_or(x, y) BURN_MAP("logical_or", x, y)
#define logical_xor(x, y) BURN_MAP("logical_xor", x, y)
#define logical_not(x) BURN_MAP("logical_not", x)
#define bitwise_and(x, y) BURN_MAP("bitwise_and", x, y)
#define bitwise_or(x, y) BURN_MAP("bitwise_or", x, y)
#define bitwise_xor(x, y) BURN_MAP("bitwise_xor", x, y)
#define bitwise_not(x) BURN_MAP("bitwise_not", x)
#define bitwise_left_shift(x, y) BURN_MAP("bitwise_left_shift", x, y)
#define bitwise_right_shift(x, y) BURN_MAP("bitwise_right_shift", x, y)

#define neg(x) BURN_MAP("neg", x)
#define sign(x) BURN_MAP("sign", x)
#define square(x) BURN_MAP("square", x)
#define reciprocal(x) BURN_MAP("reciprocal", x)
#define rsqrt(x) BURN_MAP("rsqrt", x)
#define trunc(x) BURN_MATH("trunc", trunc, x)
#define fabs(x) BURN_MATH("abs", fabs, x)
#define absolute(x) BURN_MAP("abs", x)
#define sqrt(x) BURN_MATH("sqrt", sqrt, x)
#define exp(x) BURN_MATH("exp", exp, x)
#define exp2(x) BURN_MATH("exp2", exp2, x)
#define expm1(x) BURN_MATH("expm1", expm1, x)
#define log(x) BURN_MATH("log", log, x)
#define log2(x) BURN_MATH("log2", log2, x)
#define log10(x) BURN_MATH("log10", log10, x)
#define log1p(x) BURN_MATH("log1p", log1p, x)
#define sin(x) BURN_MATH("sin", sin, x)
#define cos(x) BURN_MATH("cos", cos, x)
#define tan(x) BURN_MATH("tan", tan, x)
#define asin(x) BURN_MATH("asin", asin, x)
#define acos(x) BURN_MATH("acos", acos, x)
#define atan(x) BURN_MATH("atan", atan, x)
#define sinh(x) BURN_MATH("sinh", sinh, x)
#define cosh(x) BURN_MATH("cosh", cosh, x)
#define tanh(x) BURN_MATH("tanh", tanh, x)
#define asinh(x) BURN_MATH("asinh", asinh, x)
#define acosh(x) BURN_MATH("acosh", acosh, x)
#define atanh(x) BURN_MATH("atanh", atanh, x)
#define erf(x) BURN_MATH("erf", erf, x)
#define floor(x) BURN_MATH("floor", floor, x)
#define ceil(x) BURN_MATH("ceil", ceil, x)
#define round(x) BURN_MATH("round", rint, x)            // halves to even, as PyTorch's
#define deg2rad(x) BURN_MAP("deg2rad", x)
#define rad2deg(x) BURN_MAP("rad2deg", x)
#define is_nan(x) BURN_MAP("is_nan", x)
#define is_inf(x) BURN_MAP("is_inf", x)
#define is_finite(x) BURN_MAP("is_finite", x)
#define is_close(x, y) BURN_MAP("is_close", x, y)        // within 1e-8 + 1e-5 |y|
#define all_close(x, y) all(is_close(x, y))
#define cast(x, dtype) burn->call_cast(BURN_AT("cast"), x, dtype)

// activations; numbers at the end may be left out
#define relu(x) BURN_MAP("relu", x)
#define relu6(x) BURN_MAP("relu6", x)
#define sigmoid(x) BURN_MAP("sigmoid", x)
#define silu(x) BURN_MAP("silu", x)
#define gelu(x) BURN_MAP("gelu", x)
#define gelu_tanh(x) BURN_MAP("gelu_tanh", x)           // approximate="tanh"
#define quick_gelu(x) BURN_MAP("quick_gelu", x)         // x sigmoid(1.702 x)
#define mish(x) BURN_MAP("mish", x)
#define softplus(...) BURN_MAP("softplus", __VA_ARGS__)           // x, beta
#define softsign(x) BURN_MAP("softsign", x)
#define log_sigmoid(x) BURN_MAP("log_sigmoid", x)
#define hardtanh(...) BURN_MAP("hardtanh", __VA_ARGS__)           // x, least, most
#define hardsigmoid(x) BURN_MAP("hardsigmoid", x)
#define hardswish(x) BURN_MAP("hardswish", x)
#define tanhshrink(x) BURN_MAP("tanhshrink", x)
#define selu(x) BURN_MAP("selu", x)
#define elu(...) BURN_MAP("elu", __VA_ARGS__)                         // x, alpha
#define celu(...) BURN_MAP("celu", __VA_ARGS__)                       // x, alpha
#define leaky_relu(...) BURN_MAP("leaky_relu", __VA_ARGS__)           // x, slope
#define prelu(x, weight) BURN_MAP("prelu", x, weight)
#define hardshrink(...) BURN_MAP("hardshrink", __VA_ARGS__)           // x, lambda
#define softshrink(...) BURN_MAP("softshrink", __VA_ARGS__)           // x, lambda
#define threshold(x, at_most, value) BURN_MAP("threshold", x, at_most, value)
#define thresholded_relu(...) BURN_MAP("thresholded_relu", __VA_ARGS__)       // x, alpha
#define shrink(...) BURN_MAP("shrink", __VA_ARGS__)                   // x, lambda, bias
#define rrelu(...) BURN_MAP("rrelu", __VA_ARGS__)                     // x, lower, upper: their mean is the slope

// ---------------------------------------------------------------- shapes
#define reshape(x, ...) burn->call_reshape(BURN_AT("reshape"), x, BURN_LIST(__VA_ARGS__))        // -1: what is left
#define expand(x, ...) burn->call_expand(BURN_AT("expand"), x, BURN_LIST(__VA_ARGS__))           // -1: as it is
#define flatten(x, from) burn->call_flatten(BURN_AT("flatten"), x, from, -1)
#define flatten_range(x, from, to) burn->call_flatten(BURN_AT("flatten_range"), x, from, to)
#define permute(x, ...) burn->call_permute(BURN_AT("permute"), x, BURN_INTS(__VA_ARGS__))
#define transpose(x, a, b) burn->call_transpose(BURN_AT("transpose"), x, a, b)
#define squeeze(x, ...) burn->call_squeeze(BURN_AT("squeeze"), x, BURN_INTS(__VA_ARGS__))
#define movedim(x, from, to) burn->call_movedim(BURN_AT("movedim"), x, from, to)
#define unsqueeze(x, ...) burn->call_unsqueeze(BURN_AT("unsqueeze"), x, BURN_INTS(__VA_ARGS__))
#define narrow(x, axis, start, length) burn->call_narrow(BURN_AT("narrow"), x, axis, start, length)
// x with a part in the place of as many of its elements along the axis, from start on
#define paste(x, part, axis, start) burn->call_paste(BURN_AT("paste"), x, part, axis, start)
// elements start, start + step, ... before end, which count from the end if negative; INT64_MAX: to the end
#define slice(x, axis, start, end, step) burn->call_slice(BURN_AT("slice"), x, axis, start, end, step)
#define select(x, axis, index) burn->call_chosen(BURN_AT("select"), x, axis, index)      // without the axis
// x with such a part replaced: by a tensor, or by a number
#define slice_scatter(x, from, axis, start, end, step) \
    burn->call_replace(BURN_AT("slice_scatter"), x, axis, start, end, step, BURN_ARG(from))
#define select_scatter(x, from, axis, index) \
    burn->call_replace(BURN_AT("select_scatter"), x, axis, index, 0, 1, BURN_ARG(from))
// part `which` (0, 1, ...) of so many, of parts of this size, of parts of these sizes
#define chunk(x, parts, axis, which) burn->call_chunk(BURN_AT("chunk"), x, parts, axis, which)
#define split(x, size, axis, which) burn->call_chunk(BURN_AT("split"), x, size, axis, which)
#define split_sizes(x, axis, which, ...) \
    burn->call_split(BURN_AT("split_sizes"), x, axis, which, BURN_LIST(__VA_ARGS__))
// parts of this size, every `step` elements, with what they hold along a new last axis
#define unfold_axis(x, axis, size, step) burn->call_frames(BURN_AT("unfold_axis"), x, axis, size, step)
#define cat(axis, ...) burn->call_cat(BURN_AT("cat"), axis, BURN_TENSORS(__VA_ARGS__))
#define stack(axis, ...) burn->call_cat(BURN_AT("stack"), axis, BURN_TENSORS(__VA_ARGS__))
#define cat_list(axis, n, list) burn->call_cat(BURN_AT("cat"), axis, n, list)
#define stack_list(axis, n, list) burn->call_cat(BURN_AT("stack"), axis, n, list)
#define flip(x, ...) burn->call_flip(BURN_AT("flip"), x, BURN_INTS(__VA_ARGS__))
#define repeat(x, ...) burn->call_repeat(BURN_AT("repeat"), x, BURN_INTS(__VA_ARGS__))   // so often along each axis
#define tile(x, ...) burn->call_repeat(BURN_AT("tile"), x, BURN_INTS(__VA_ARGS__))       // along the last axes
#define repeat_interleave(x, times, axis) burn->call_interleave(BURN_AT("repeat_interleave"), x, times, axis)
// pad(x, .pads = { 1, 1 }): before and behind the last axis
#define pad(x, ...) burn->call_pad(BURN_AT("pad"), x, &(struct burn_pad){ __VA_ARGS__, .end = 0 })
#define tril(x, diagonal) burn->call_triangle(BURN_AT("tril"), x, diagonal)
#define triu(x, diagonal) burn->call_triangle(BURN_AT("triu"), x, diagonal)

// ---------------------------------------------------------------- along axes
// over these axes; without any, over all. _keep: the axes stay, of size 1
#define sum(...) BURN_REDUCE("sum", false, __VA_ARGS__, )
#define mean(...) BURN_REDUCE("mean", false, __VA_ARGS__, )
#define prod(...) BURN_REDUCE("prod", false, __VA_ARGS__, )
#define amax(...) BURN_REDUCE("amax", false, __VA_ARGS__, )
#define amin(...) BURN_REDUCE("amin", false, __VA_ARGS__, )
#define any(...) BURN_REDUCE("any", false, __VA_ARGS__, )
#define all(...) BURN_REDUCE("all", false, __VA_ARGS__, )
#define var(...) BURN_REDUCE("var", false, __VA_ARGS__, )               // unbiased, as PyTorch's
#define var_biased(...) BURN_REDUCE("var_biased", false, __VA_ARGS__, ) // divided by n, not n - 1
#define std(...) BURN_REDUCE("std", false, __VA_ARGS__, )
#define logsumexp(...) BURN_REDUCE("logsumexp", false, __VA_ARGS__, )
#define norm(...) BURN_REDUCE("norm", false, __VA_ARGS__, )             // the Euclidean length
#define sum_keep(...) BURN_REDUCE("sum", true, __VA_ARGS__, )
#define mean_keep(...) BURN_REDUCE("mean", true, __VA_ARGS__, )
#define prod_keep(...) BURN_REDUCE("prod", true, __VA_ARGS__, )
#define amax_keep(...) BURN_REDUCE("amax", true, __VA_ARGS__, )
#define amin_keep(...) BURN_REDUCE("amin", true, __VA_ARGS__, )
#define var_keep(...) BURN_REDUCE("var", true, __VA_ARGS__, )
#define var_biased_keep(...) BURN_REDUCE("var_biased", true, __VA_ARGS__, )
#define std_keep(...) BURN_REDUCE("std", true, __VA_ARGS__, )
#define norm_keep(...) BURN_REDUCE("norm", true, __VA_ARGS__, )
// (sum of |x|^p)^(1/p) over these axes; p 0: how many are not 0; INFINITY, -INFINITY: the largest, the least
#define vector_norm(x, ...) BURN_LP("vector_norm", x, false, __VA_ARGS__, )
#define vector_norm_keep(x, ...) BURN_LP("vector_norm", x, true, __VA_ARGS__, )
#define normalize(x, p, axis) burn->call_normalized(BURN_AT("normalize"), x, p, axis)    // over that, or 1e-12
#define pairwise_distance(x, y, p) burn->call_distance(BURN_AT("pairwise_distance"), x, y, p)    // of rows; + 1e-6
#define cdist(x, y, p) burn->call_distance(BURN_AT("cdist"), x, y, p)         // of each row of x and each of y
#define argmax(x, axis) burn->call_along(BURN_AT("argmax"), x, axis)
#define argmin(x, axis) burn->call_along(BURN_AT("argmin"), x, axis)
#define softmax(x, axis) burn->call_along(BURN_AT("softmax"), x, axis)
#define log_softmax(x, axis) burn->call_along(BURN_AT("log_softmax"), x, axis)
#define softmin(x, axis) burn->call_along(BURN_AT("softmin"), x, axis)
#define quiet_softmax(x, axis) burn->call_along(BURN_AT("quiet_softmax"), x, axis)       // exp(x) / (1 + their sum)
// the first half along the axis times sigmoid, relu, gelu, silu of the second
#define glu(x, axis) burn->call_along(BURN_AT("glu"), x, axis)
#define reglu(x, axis) burn->call_along(BURN_AT("reglu"), x, axis)
#define geglu(x, axis) burn->call_along(BURN_AT("geglu"), x, axis)
#define swiglu(x, axis) burn->call_along(BURN_AT("swiglu"), x, axis)
#define cumsum(x, axis) burn->call_along(BURN_AT("cumsum"), x, axis)
#define cumprod(x, axis) burn->call_along(BURN_AT("cumprod"), x, axis)
#define sort(x, axis, descending) burn->call_topk(BURN_AT("sort"), x, -1, axis, descending)
#define topk(x, k, axis) burn->call_topk(BURN_AT("topk"), x, k, axis, true)      // .values and .indices
#define topk_smallest(x, k, axis) burn->call_topk(BURN_AT("topk_smallest"), x, k, axis, false)
#define argtopk(x, k, axis) topk(x, k, axis).indices
// these give .values and .indices as well; median: the lower one of two
#define max_with_indices(x, axis) burn->call_found(BURN_AT("max_with_indices"), x, axis)
#define min_with_indices(x, axis) burn->call_found(BURN_AT("min_with_indices"), x, axis)
#define median(x, axis) burn->call_found(BURN_AT("median"), x, axis)
#define cummax(x, axis) burn->call_found(BURN_AT("cummax"), x, axis)
#define cummin(x, axis) burn->call_found(BURN_AT("cummin"), x, axis)
#define gather(x, axis, index) burn->call_gather(BURN_AT("gather"), x, axis, index)
#define index_select(x, axis, index) burn->call_gather(BURN_AT("index_select"), x, axis, index)
#define take(x, index) burn->call_take(BURN_AT("take"), x, index)              // of x as one list
#define one_hot(x, classes) burn->call_one_hot(BURN_AT("one_hot"), x, classes)
#define one_hot_fill(x, classes, on, off) where(one_hot(x, classes), on, off)
#define argsort(x, axis, descending) sort(x, axis, descending).indices
// x with the elements of from at places along axis that the index says; from: a tensor like the index, or a number
#define scatter(x, axis, index, from) BURN_SCATTER("scatter", x, axis, index, from, "none")
#define scatter_add(x, axis, index, from) BURN_SCATTER("scatter_add", x, axis, index, from, "sum")
// how: "sum", "prod", "amin", "amax", with what is there
#define scatter_reduce(x, axis, index, from, how) BURN_SCATTER("scatter_reduce", x, axis, index, from, how)
#define index_add(x, axis, index, from) burn->call_index_put(BURN_AT("index_add"), x, axis, index, from)
#define index_copy(x, axis, index, from) burn->call_index_put(BURN_AT("index_copy"), x, axis, index, from)
#define index_fill(x, axis, index, value) burn->call_index_fill(BURN_AT("index_fill"), x, axis, index, value)
// index [..., k]: places in the first k axes, as ONNX's
#define gather_nd(x, index) burn->call_gather_nd(BURN_AT("gather_nd"), x, index)
#define scatter_nd(x, index, from) burn->call_scatter_nd(BURN_AT("scatter_nd"), x, index, from, "none")
#define scatter_nd_reduce(x, index, from, how) burn->call_scatter_nd(BURN_AT("scatter_nd_reduce"), x, index, from, how)
#define roll(x, shift, axis) burn->call_roll(BURN_AT("roll"), x, shift, axis)
#define diagonal(x, offset) burn->call_diagonal(BURN_AT("diagonal"), x, offset)            // of the last two axes
#define diag_embed(x) burn->call_diag_embed(BURN_AT("diag_embed"), x)
// How many are found is known when the program runs: lists as long as they can get, 0 behind what was found, and
// the number, I64[1]: .values and .count
#define argwhere(x) burn->call_located(BURN_AT("argwhere"), x)                 // rows of places, as nonzero gives them
#define masked_select(x, mask) burn->call_masked(BURN_AT("masked_select"), x, mask)
// boxes [n, 4] of x1, y1, x2, y2: those that overlap no better one by more, best first
#define nms(boxes, scores, overlap) burn->call_suppress(BURN_AT("nms"), boxes, scores, overlap)

// ---------------------------------------------------------------- signals
// complex numbers are pairs along a last axis; length 0: that of x, or what it can only have come from
#define rfft(x, axis, length) burn->call_fourier(BURN_AT("rfft"), x, axis, length)
#define irfft(x, axis, length) burn->call_fourier(BURN_AT("irfft"), x, axis, length)
#define fft(x, axis, length) burn->call_fourier(BURN_AT("fft"), x, axis, length)
#define ifft(x, axis, length) burn->call_fourier(BURN_AT("ifft"), x, axis, length)
// stft(x, n_fft, .hop = 128): [batch, samples] -> [batch, n_fft / 2 + 1, frames, 2]; istft goes back
#define stft(x, ...) burn->call_stft(BURN_AT("stft"), x, &(struct burn_stft){ __VA_ARGS__, .end = 0 })
#define istft(x, ...) burn->call_stft(BURN_AT("istft"), x, &(struct burn_stft){ __VA_ARGS__, .end = 0 })

// ---------------------------------------------------------------- losses
// mse_loss(x, target, .reduction = "sum")
#define cross_entropy(x, ...) BURN_LOSS("cross_entropy", x, __VA_ARGS__, )      // scores and numbers of classes
#define nll_loss(x, ...) BURN_LOSS("nll_loss", x, __VA_ARGS__, )
#define multi_margin_loss(x, ...) BURN_LOSS("multi_margin_loss", x, __VA_ARGS__, )
#define mse_loss(x, ...) BURN_LOSS("mse_loss", x, __VA_ARGS__, )
#define l1_loss(x, ...) BURN_LOSS("l1_loss", x, __VA_ARGS__, )
#define lp_loss(x, ...) BURN_LOSS("lp_loss", x, __VA_ARGS__, )                  // |x - target|^p
#define smooth_l1_loss(x, ...) BURN_LOSS("smooth_l1_loss", x, __VA_ARGS__, )
#define huber_loss(x, ...) BURN_LOSS("huber_loss", x, __VA_ARGS__, )
#define binary_cross_entropy(x, ...) BURN_LOSS("binary_cross_entropy", x, __VA_ARGS__, )
#define binary_cross_entropy_with_logits(x, ...) BURN_LOSS("binary_cross_entropy_with_logits", x, __VA_ARGS__, )
#define kl_div(x, ...) BURN_LOSS("kl_div", x, __VA_ARGS__, )
#define poisson_nll_loss(x, ...) BURN_LOSS("poisson_nll_loss", x, __VA_ARGS__, )
#define soft_margin_loss(x, ...) BURN_LOSS("soft_margin_loss", x, __VA_ARGS__, )
#define hinge_embedding_loss(x, ...) BURN_LOSS("hinge_embedding_loss", x, __VA_ARGS__, )
#define gaussian_nll_loss(x, target, ...) BURN_LOSS3("gaussian_nll_loss", x, target, __VA_ARGS__, )  // and variances
#define margin_ranking_loss(x, y, ...) BURN_LOSS3("margin_ranking_loss", x, y, __VA_ARGS__, )        // and 1 or -1
#define cosine_embedding_loss(x, y, ...) BURN_LOSS3("cosine_embedding_loss", x, y, __VA_ARGS__, )    // and 1 or -1
// anchors, positives, negatives: rows
#define triplet_margin_loss(x, y, ...) BURN_LOSS3("triplet_margin_loss", x, y, __VA_ARGS__, )
// log-probabilities [time, batch, classes], targets [batch, length], how many of both count: [batch]
#define ctc_loss(x, target, times, lengths, ...) \
    burn->call_sequence_loss(BURN_AT("ctc_loss"), x, target, times, lengths, &(struct burn_loss){ __VA_ARGS__ })
// the transducer's: scores [batch, time, length + 1, classes]
#define rnnt_loss(x, target, times, lengths, ...) \
    burn->call_sequence_loss(BURN_AT("rnnt_loss"), x, target, times, lengths, &(struct burn_loss){ __VA_ARGS__ })
// of feature maps [batch, channels, ...]: [batch, channels, channels], divided by channels * places
#define gram_matrix(x) burn->call_gram(BURN_AT("gram_matrix"), x)

// ---------------------------------------------------------------- derivatives
// of y's sum by x: a part of the graph as all else, so that a force is neg(gradient(energy, positions)), and a penalty
// on it trains
#define gradient(y, x) burn->call_gradient(BURN_AT("gradient"), y, x)

// ---------------------------------------------------------------- products
#define outer(x, y) BURN_MAP("mul", unsqueeze(x, -1), y)
#define matmul(x, y) burn->call_matmul(BURN_AT("matmul"), x, y)
#define dot(x, y) burn->call_matrix(BURN_AT("dot"), x, y)
#define trace(x) burn->call_matrix(BURN_AT("trace"), x, NULL)                  // of the last two axes, as all of these
#define det(x) burn->call_matrix(BURN_AT("det"), x, NULL)
#define inverse(x) burn->call_matrix(BURN_AT("inverse"), x, NULL)
#define cov(x) burn->call_matrix(BURN_AT("cov"), x, NULL)                      // of rows, divided by columns - 1
#define cross(x, y, axis) burn->call_cross(BURN_AT("cross"), x, y, axis)
#define cosine_similarity(x, y, axis) burn->call_cosine(BURN_AT("cosine_similarity"), x, y, axis)
#define einsum(equation, ...) burn->call_einsum(BURN_AT("einsum"), equation, BURN_TENSORS(__VA_ARGS__))

// ---------------------------------------------------------------- layers
// linear(x, "fc", features): over the last axis
#define linear(x, ...) burn->call_linear(BURN_AT("linear"), x, &(struct burn_linear){ __VA_ARGS__, .end = 0 })
// conv2d(x, "conv", channels, kernel, .stride = 2): x is [batch, channels, height, width]
#define conv1d(x, ...) BURN_CONV("conv1d", x, __VA_ARGS__)
#define conv2d(x, ...) BURN_CONV("conv2d", x, __VA_ARGS__)
#define conv3d(x, ...) BURN_CONV("conv3d", x, __VA_ARGS__)
#define conv_transpose1d(x, ...) BURN_CONV("conv_transpose1d", x, __VA_ARGS__)
#define conv_transpose2d(x, ...) BURN_CONV("conv_transpose2d", x, __VA_ARGS__)
#define conv_transpose3d(x, ...) BURN_CONV("conv_transpose3d", x, __VA_ARGS__)
// deform_conv2d(x, offset, "conv", channels, kernel, .mask = m): offset [batch, 2 * taps * groups, height, width]
#define deform_conv2d(x, offset_, ...) BURN_CONV("deform_conv2d", x, __VA_ARGS__, .offset = offset_)
// max_pool2d(x, kernel, .stride = 1)
#define max_pool1d(x, ...) BURN_POOL("max_pool1d", x, __VA_ARGS__)
#define max_pool2d(x, ...) BURN_POOL("max_pool2d", x, __VA_ARGS__)
#define max_pool3d(x, ...) BURN_POOL("max_pool3d", x, __VA_ARGS__)
#define avg_pool1d(x, ...) BURN_POOL("avg_pool1d", x, __VA_ARGS__)
#define avg_pool2d(x, ...) BURN_POOL("avg_pool2d", x, __VA_ARGS__)
#define avg_pool3d(x, ...) BURN_POOL("avg_pool3d", x, __VA_ARGS__)
// to this size, which must be known; 1: the whole
#define adaptive_avg_pool1d(x, size) burn->call_adaptive(BURN_AT("adaptive_avg_pool1d"), x, size)
#define adaptive_avg_pool2d(x, size) burn->call_adaptive(BURN_AT("adaptive_avg_pool2d"), x, size)
#define adaptive_avg_pool3d(x, size) burn->call_adaptive(BURN_AT("adaptive_avg_pool3d"), x, size)
#define adaptive_max_pool1d(x, size) burn->call_adaptive(BURN_AT("adaptive_max_pool1d"), x, size)
#define adaptive_max_pool2d(x, size) burn->call_adaptive(BURN_AT("adaptive_max_pool2d"), x, size)
#define adaptive_max_pool3d(x, size) burn->call_adaptive(BURN_AT("adaptive_max_pool3d"), x, size)
// batch_norm(x, "bn1"): over channels (axis 1); its running statistics are buffers, which training updates by .momentum
#define batch_norm(x, ...) BURN_NORM("batch_norm", x, __VA_ARGS__)
#define layer_norm(x, ...) BURN_NORM("layer_norm", x, __VA_ARGS__)
#define rms_norm(x, ...) BURN_NORM("rms_norm", x, __VA_ARGS__)
#define instance_norm(x, ...) BURN_NORM("instance_norm", x, __VA_ARGS__)
#define group_norm(x, ...) BURN_NORM("group_norm", x, __VA_ARGS__)        // group_norm(x, "gn", groups)
// local_response_norm(x, size): over so many channels around each
#define local_response_norm(x, ...) \
    burn->call_response(BURN_AT("local_response_norm"), x, &(struct burn_response){ __VA_ARGS__, .end = 0 })
// in training each element is 0 with probability p, and the others grow by 1 / (1 - p)
#define dropout(x, p) burn->call_dropout(BURN_AT("dropout"), x, p)
// embedding(ids, "emb", count, features)
#define embedding(x, ...) \
    burn->call_embedding(BURN_AT("embedding"), x, &(struct burn_embedding){ __VA_ARGS__, .end = 0 })
// q, k, v: [batch, heads, length, size]; heads of q may be a multiple of those of k and v
#define scaled_dot_product_attention(q, k, v, ...) \
    burn->call_sdpa(BURN_AT("scaled_dot_product_attention"), q, k, v, &(struct burn_sdpa){ __VA_ARGS__ })
// [batch, length, heads * size] as [batch, heads, length, size], and back
#define split_heads(x, heads_) burn->call_heads(BURN_AT("split_heads"), x, heads_)
#define join_heads(x) burn->call_heads(BURN_AT("join_heads"), x, 0)
// multi_head_attention(x, "attn", heads, .causal = YES): x is [batch, length, features]; parameters named as PyTorch's
// MultiheadAttention names them
#define multi_head_attention(x, ...) \
    burn->call_attention(BURN_AT("multi_head_attention"), x, &(struct burn_attention){ __VA_ARGS__, .end = 0 })
// turns pairs of the last axis of x [batch, heads, length, size] by positions [batch or 1, length]: of its halves, or
// neighbours
#define rotary(x, at, base) burn->call_rotary(BURN_AT("rotary"), x, at, base, false)
#define rotary_interleaved(x, at, base) burn->call_rotary(BURN_AT("rotary_interleaved"), x, at, base, true)
// lstm(x, "lstm", hidden, .layers = 2): x is [time, batch, features]
#define lstm(x, ...) BURN_RECURRENT("lstm", x, __VA_ARGS__)
#define gru(x, ...) BURN_RECURRENT("gru", x, __VA_ARGS__)
#define rnn(x, ...) BURN_RECURRENT("rnn", x, __VA_ARGS__)
// round(x / scale) + zero in integers of dtype, and back; scale, zero: numbers, or tensors of one number for each
// element of axis
#define quantize(x, scale, zero, dtype, axis) \
    burn->call_quantize(BURN_AT("quantize"), x, BURN_ARG(scale), BURN_ARG(zero), dtype, axis)
#define dequantize(x, scale, zero, axis) \
    burn->call_quantize(BURN_AT("dequantize"), x, BURN_ARG(scale), BURN_ARG(zero), F32, axis)
// interpolate(x, .scale = 2, .mode = "bilinear")
#define interpolate(x, ...) burn->call_resize(BURN_AT("interpolate"), x, &(struct burn_resize){ __VA_ARGS__, .end = 0 })
#define pixel_shuffle(x, factor) burn->call_shuffle(BURN_AT("pixel_shuffle"), x, factor)
#define pixel_unshuffle(x, factor) burn->call_shuffle(BURN_AT("pixel_unshuffle"), x, factor)
// patches as columns [batch, channels * taps, places]; and back, where they overlap added
#define unfold(x, ...) \
    burn->call_fold(BURN_AT("unfold"), x, 0, &(struct burn_pool){ __VA_ARGS__, .end = 0 })
#define fold(x, size, ...) \
    burn->call_fold(BURN_AT("fold"), x, size, &(struct burn_pool){ __VA_ARGS__, .end = 0 })
// grid [batch, height, width, 2] of -1..1, x first
#define grid_sample(x, ...) BURN_SAMPLE(x, __VA_ARGS__, )
// theta [batch, 2, 3] on a grid of this size
#define affine_grid(theta, size) burn->call_affine_grid(BURN_AT("affine_grid"), theta, size, false)
#define affine_grid_aligned(theta, size) burn->call_affine_grid(BURN_AT("affine_grid_aligned"), theta, size, true)
// transformer_encoder_layer(x, "layers.0", heads, wide, .norm_first = YES): x is [batch, length, features]
#define transformer_encoder_layer(x, ...) BURN_TRANSFORMER("transformer_encoder_layer", x, __VA_ARGS__)
#define transformer_decoder_layer(x, ...) BURN_TRANSFORMER("transformer_decoder_layer", x, __VA_ARGS__)
#define positional_encoding(x) burn->call_positional(BURN_AT("positional_encoding"), x, 10000)

// ---------------------------------------------------------------- operations of one's own
// elementwise("x > 0 ? x : 0.1 * x", x): an expression of C over x, y, z (or a number), with its gradient
#define elementwise(text, ...) \
    burn->call_formula(BURN_AT("elementwise"), text, (int)(sizeof(BURN_EACH(__VA_ARGS__)) / sizeof(burn_arg)), \
        BURN_EACH(__VA_ARGS__))
// custom("prefix", (x), .kernel = prefix, .gradient = prefix_gradient): docs/custom.md
#define custom(name, ...) BURN_CUSTOM(name, __VA_ARGS__, )
// in a function .shape: one result more
#define result(dtype, ...) BURN_RESULT(dtype, __VA_ARGS__, )
#define result_like(x) burn->call_result_like(BURN_AT("result_like"), x)
#define SIZES(...) { BURN_LIST(__VA_ARGS__) }
#define NUMBERS(...) { (int)(sizeof((double[]){ __VA_ARGS__ }) / sizeof(double)), (const double[]){ __VA_ARGS__ } }
// A function of C that goes into the generated code as it stands here, and calls nothing but the C library:
//   KERNEL(prefix, (const float *x, float *y, int64_t n), { for (int64_t i = 0; i < n; i++) ... })
#define KERNEL(name, parameters, ...) \
    static __attribute__((unused)) void burn_kernel_##name parameters __VA_ARGS__ \
    static __attribute__((unused)) const struct burn_kernel name = { __FILE__, #name, #parameters, #__VA_ARGS__ };
// The same for --target vulkan: run for each int point below .points
//   GLSL(prefix_glsl, (x, y, n), { ... })
#define GLSL(name, parameters, ...) \
    static __attribute__((unused)) const struct burn_kernel name = { __FILE__, #name, #parameters, #__VA_ARGS__ };

// ---------------------------------------------------------------- how it is done
#define BURN_CUSTOM(name, inputs, ...) \
    burn->call_custom(BURN_AT("custom"), name, BURN_TENSORS inputs, &(struct burn_custom){ __VA_ARGS__ .end = 0 })
#define BURN_RESULT(dtype, ...) burn->call_result(BURN_AT("result"), dtype, BURN_LIST(__VA_ARGS__))
#define BURN_AT(call) (&(const burn_place){ __FILE__, __LINE__, call })
#define BURN_LIST(...) \
    (int)(sizeof((const burn_dim[]){ 0, __VA_ARGS__ }) / sizeof(burn_dim)) - 1, (const burn_dim[]){ 0, __VA_ARGS__ } + 1
#define BURN_INPUT(at, name, dtype, ...) burn->call_input(at, name, dtype, BURN_LIST(__VA_ARGS__))
#define BURN_STATE(at, name, dtype, ...) burn->call_state(at, name, dtype, BURN_LIST(__VA_ARGS__))
#define BURN_INTS(...) \
    (int)(sizeof((int64_t[]){ 0, __VA_ARGS__ }) / sizeof(int64_t)) - 1, (const int64_t[]){ 0, __VA_ARGS__ } + 1
#define BURN_TENSORS(...) (int)(sizeof((Tensor[]){ __VA_ARGS__ }) / sizeof(Tensor)), (Tensor[]){ __VA_ARGS__ }
#define BURN_REDUCE(call, keep, x, ...) burn->call_reduce(BURN_AT(call), x, keep, BURN_INTS(__VA_ARGS__))
#define BURN_LP(call, x, keep, p, ...) burn->call_length(BURN_AT(call), x, p, keep, BURN_INTS(__VA_ARGS__))
#define BURN_DRAWN(call, dtype, a, b, ...) burn->call_drawn(BURN_AT(call), dtype, a, b, BURN_LIST(__VA_ARGS__))
#define BURN_CONV(call, x, ...) burn->call_conv(BURN_AT(call), x, &(struct burn_conv){ __VA_ARGS__, .end = 0 })
#define BURN_POOL(call, x, ...) burn->call_pool(BURN_AT(call), x, &(struct burn_pool){ __VA_ARGS__, .end = 0 })
#define BURN_NORM(call, x, ...) burn->call_normalize(BURN_AT(call), x, &(struct burn_norm){ __VA_ARGS__, .end = 0 })
#define BURN_TRANSFORMER(call, x, ...) \
    burn->call_transformer(BURN_AT(call), x, &(struct burn_transformer){ __VA_ARGS__, .end = 0 })
#define BURN_SAMPLE(x, grid, ...) \
    burn->call_grid_sample(BURN_AT("grid_sample"), x, grid, &(struct burn_sample){ __VA_ARGS__ .end = 0 })
#define BURN_LOSS(call, x, target, ...) \
    burn->call_loss(BURN_AT(call), x, target, &(struct burn_loss){ __VA_ARGS__ .end = 0 })
#define BURN_LOSS3(call, x, y, target, ...) \
    burn->call_loss(BURN_AT(call), x, y, &(struct burn_loss){ .third = target, __VA_ARGS__ .end = 0 })
#define BURN_SCATTER(call, x, axis, index, from, how) \
    burn->call_scatter(BURN_AT(call), x, axis, index, BURN_ARG(from), how)
#define BURN_RECURRENT(call, x, ...) \
    burn->call_recurrent(BURN_AT(call), x, &(struct burn_recurrent){ __VA_ARGS__, .end = 0 })

#define BURN_ARG(x) _Generic((x), Tensor: burn_of_tensor, default: burn_of_number)(x)
#define BURN_ARGS1(x) BURN_ARG(x)
#define BURN_ARGS2(x, y) BURN_ARG(x), BURN_ARG(y)
#define BURN_ARGS3(x, y, z) BURN_ARG(x), BURN_ARG(y), BURN_ARG(z)
#define BURN_THIRD(a, b, c, name, ...) name
#define BURN_MAP(call, ...) \
    burn->call_map(BURN_AT(call), (int)(sizeof(BURN_EACH(__VA_ARGS__)) / sizeof(burn_arg)), BURN_EACH(__VA_ARGS__))
#define BURN_EACH(...) \
    (burn_arg[]){ BURN_THIRD(__VA_ARGS__, BURN_ARGS3, BURN_ARGS2, BURN_ARGS1, )(__VA_ARGS__) }
// of tensors, if one is; else <math.h>'s
#define BURN_MATH(call, f, ...) \
    _Generic(BURN_THIRD(__VA_ARGS__, BURN_IS3, BURN_IS2, BURN_IS1, )(__VA_ARGS__), \
        Tensor: BURN_MAP(call, __VA_ARGS__), \
        default: (f)(BURN_THIRD(__VA_ARGS__, BURN_NUMBERS3, BURN_NUMBERS2, BURN_NUMBERS1, )(__VA_ARGS__)))
#define BURN_IS1(x) (x)
#define BURN_IS2(x, y) _Generic((x), Tensor: (x), default: (y))
#define BURN_NUMBER(x) _Generic((x), Tensor: 0.0, default: (x))
#define BURN_NUMBERS1(x) BURN_NUMBER(x)
#define BURN_NUMBERS2(x, y) BURN_NUMBER(x), BURN_NUMBER(y)

static inline __attribute__((unused)) burn_arg burn_of_tensor(Tensor x) { return (burn_arg){ x, 0, false }; }
static inline __attribute__((unused)) burn_arg burn_of_number(double v) { return (burn_arg){ NULL, v, true }; }
static inline __attribute__((unused)) int64_t burn_config_integer(const burn_place *at, const char *name, int64_t v) {
    double given = burn->call_number(at, name, (double)v);
    if (given != rint(given)) burn->call_mistake(at, "\"%s\" is a whole number, not %g", name, given);
    return (int64_t)given;
}
static inline __attribute__((unused)) double burn_config_number(const burn_place *at, const char *name, double v) {
    return burn->call_number(at, name, v);
}
static inline __attribute__((unused)) const char *burn_config_word(
    const burn_place *at, const char *name, const char *v) {
    return burn->call_word(at, name, v);
}
#endif
