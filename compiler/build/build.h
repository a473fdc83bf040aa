// SPDX-License-Identifier: MIT OR Apache-2.0
// Builders: one call makes a node with its attributes, or a construction of many, and gives its output. Importers,
// expansions of composites, gradients and training all build with these.
//
// In: a graph and operands. Everything is appended at g->cursor with g->loc as its place. Out: the typed result, or
// NULL after a diagnostic at g->loc. Every builder passes a NULL operand through as NULL, so that a chain of them needs
// one check at its end. Axes are non-negative. Builders know the operations (ir.h) and nothing of where a model came
// from: what reads a format's attributes fills in a struct and calls a builder.
#ifndef BURNCC_BUILD_H
#define BURNCC_BUILD_H

#include "ir.h"

// ---------------------------------------------------------------- build/basic.c: one operation each
// Infers the types; output 0, or NULL with a diagnostic and the node removed.
Value *b_finish(Node *n);
Value *b_op(Graph *g, Op op, int n_in, Value *const *in);                   // no attributes, one output
Value *b_unary(Graph *g, Op op, Value *x);
Value *b_binary(Graph *g, Op op, Value *x, Value *y);
Value *b_where(Graph *g, Value *c, Value *x, Value *y);
// b_map(g, "x*y + 1", "x y", 2, in): OP_Map; a diagnostic where the operands' types do not fit the expression
Value *b_map(Graph *g, const char *text, const char *names, int n_in, Value *const *in);
#define B_MAP(g, text, names, ...) \
    b_map(g, text, names, (int)COUNT(((Value *[]){ __VA_ARGS__ })), (Value *[]){ __VA_ARGS__ })
Value *b_cast(Graph *g, Value *x, DType to);
Value *b_wide(Graph *g, Value *x);                                          // f16, bf16, ... as f32, else x
// Views that would change nothing give x back.
Value *b_reshape(Graph *g, Value *x, int rank, const Dim *dims);
Value *b_transpose(Graph *g, Value *x, const int *perm);
Value *b_expand(Graph *g, Value *x, int rank, const Dim *dims);             // numpy broadcast to exactly these dims
// per axis; steps may be negative
// the first of the elements in order along axis, stable: out[0] what they are, out[1] where they were; NULL: diagnosed
Node *b_sort(Graph *g, Value *x, int axis, bool largest, Dim first);
Value *b_slice(Graph *g, Value *x, const int64_t *starts, const int64_t *steps, const Dim *sizes);
Value *b_pad(Graph *g, Value *x, const int64_t *lo, const int64_t *hi, const int64_t *interior,
    Value *fill /* scalar, NULL: 0 */);
Value *b_concat(Graph *g, int axis, int n, Value *const *in);
Value *b_reduce(Graph *g, Op op, Value *x, int n_axes, const int64_t *axes, bool keep);
Value *b_cumulate(Graph *g, Op op, Value *x, int axis, bool exclusive, bool reverse);       // CumSum, CumProd, ...
// sum / count of primitives, where a gradient or an expansion cannot use ReduceMean
Value *b_mean(Graph *g, Value *x, int n_axes, const int64_t *axes, bool keep);
Value *b_softmax(Graph *g, Value *x, int axis);
// [batch, channels, ...] -> [batch, channels, channels]: products of the channels, divided by channels * places
Value *b_gram(Graph *g, Value *x);
Value *b_matmul(Graph *g, Value *x, Value *y);
Value *b_matmul_to(Graph *g, Value *x, Value *y, DType d);                  // d: i32 of bytes, else their own type
Value *b_gather(Graph *g, Value *x, Value *indices, int axis);
Value *b_gather_elements(Graph *g, Value *x, Value *indices, int axis);
// reduction: "none", "add", "mul", "min", "max"
Value *b_scatter_elements(Graph *g, Value *data, Value *indices, Value *updates, int axis, const char *reduction);
// x with part in the place of as many of its elements along axis, from start on
Value *b_slice_scatter(Graph *g, Value *x, Value *part, int axis, Dim start);
Value *b_scatter_nd(Graph *g, Value *data, Value *indices, Value *updates, const char *reduction);
Value *b_scalar(Graph *g, DType d, double v);           // rank 0 constant
Value *b_like(Graph *g, const Value *x, double v);      // rank 0 constant of x's dtype
Value *b_ints(Graph *g, int n, const int64_t *v);       // i64[n] constant
// May a builder make constants of so many numbers, which the file names and does not hold? They are counted: a file
// may cost memory in proportion to its size. False: without a diagnostic.
bool b_table(Graph *g, double numbers);
Value *b_floats(Graph *g, DType d, int rank, const int64_t *dims, const double *v);     // a constant

// ---------------------------------------------------------------- build/module.c: modules, by names of nodes
const char *node_label(const Node *n);                  // its name in the model, or ""
bool same_module(const Node *n, const Node *m);
const char *module_path(Arena *a, const char *name);    // of a node's name: "layers.0.norm"

// ---------------------------------------------------------------- build/shape.c: views by axis, tensors of one rule
Value *b_along(Graph *g, Value *v, int rank, int axis); // [C] -> [1,..,C,..,1]
Value *b_insert(Graph *g, Value *v, int axis);          // a dimension of size 1 before axis
Value *b_remove(Graph *g, Value *v, int axis);
Value *b_part(Graph *g, Value *v, int axis, Dim start, Dim size);           // start..start+size-1 along axis
// elements start, start + step, ... along axis; start NULL: 0, step NULL: 1; those outside read 0
Value *b_take(Graph *g, Value *x, int axis, Value *start, Value *step, Dim size);
Value *b_swap(Graph *g, Value *v, int a, int b);        // transposes two axes
Value *b_stored(Graph *g, Value *v);                    // v in memory, whoever reads it
// axes from..from+count-1 become to..to+count-1
Value *b_move_axes(Graph *g, Value *x, int from, int count, int to);
Value *b_channels_last(Graph *g, Value *x);             // [n, c, space...] -> [n, space..., c]
Value *b_channels_first(Graph *g, Value *x);            // and back
Value *b_stack(Graph *g, int axis, int count, Value *const *items);         // values of one type along a new axis
Value *b_flip(Graph *g, Value *x, const bool *axes);    // reverses the marked axes, which are static
Value *b_sum_to(Graph *g, Value *x, const Type *t);     // adjoint of broadcasting: sums x down to t's dimensions
Value *b_scalar_of(Graph *g, Value *v);                 // one element of any rank -> rank 0, else a diagnostic
Value *b_repeat(Graph *g, Value *x, int axis, Dim times);                   // x `times` times along axis
// [n, c, h, w] in blocks of b x b: channels are (block row, block column, depth), with crd (depth, row, column)
Value *b_depth_to_space(Graph *g, Value *x, int64_t b, bool crd);
Value *b_space_to_depth(Graph *g, Value *x, int64_t b, bool crd);
// mode: "constant", "reflect", "edge", "wrap"
Value *b_pad_mode(Graph *g, Value *x, const int64_t *lo, const int64_t *hi, const char *mode, Value *fill);
// keeps the upper (column >= row + k) or lower (column <= row + k) triangle of each matrix; k: a number, or NULL: 0
Value *b_triangle(Graph *g, Value *x, Value *k, bool upper);
Value *b_iota(Graph *g, int rank, const Dim *dims, int axis, DType d);      // the coordinate along axis
// a tensor of one value; of strings and complex numbers: the empty one, zero
Value *b_filled(Graph *g, DType d, double value, int rank, const Dim *dims);
Value *b_full(Graph *g, const Type *t, double v);       // the same of a type

// ---------------------------------------------------------------- build/number.c: sizes as numbers of the program
Value *b_number(Graph *g, Dim d);                       // a dimension as i64, rank 0
Value *b_numbers(Graph *g, int count, const Dim *d);    // i64[count]
Value *b_item(Graph *g, Value *list, int at);           // an element of a list, rank 0
Value *b_joined(Graph *g, int count, Value *const *items);                  // scalars as a list [count]
Value *b_size_of(Graph *g, Value *v, int axis);         // a size of v as i64, rank 0
// elements of x along the axes, a scalar; computed when run if symbolic
Value *b_count(Graph *g, Value *x, int n_axes, const int64_t *axes, DType d);
Value *b_normal_axes(Graph *g, Value *axes, int rank);  // negative ones counted from the end
// are all sizes known? Else a diagnostic with a hint at --dim, which says that `what` needs them
bool b_static(Graph *g, const Value *v, const char *what);

// ---------------------------------------------------------------- build/loop.c: control flow
typedef Value *Branch(Graph *g, void *of);              // makes its nodes in g
// an If of values of one type; condition: a scalar
Value *b_choose(Graph *g, Value *condition, Branch *yes, Branch *no, void *of);
// A graph to build a loop's body in, whose inputs are in[0] the iteration's number, in[1] whether to go on and in[2..]
// what is carried, typed as `from`; and the OP_Loop, whose body gives out[0] whether to go on and out[1..] what is
// carried. At most 6 values.
Graph *b_loop_body(Graph *g, const char *name, int carried, Value *const *from, Value **in);
Node *b_loop(Graph *g, Graph *body, Value *trips, int carried, Value *const *from, Value *const *out);

// ---------------------------------------------------------------- build/formula.c: assignments over values
// value NULL: the number
typedef struct Meaning { const char *name; Value *value; double number; } Meaning;
// axis: of functions along one
typedef struct Formula { Graph *g; int axis; VEC(Meaning) at; } Formula;

void formula_let(Formula *f, const char *name, Value *value, double number);
bool formula_run(Formula *f, const char *assignments);  // false: a diagnostic
Value *formula_value(const Formula *f, const char *name);
bool formula_has(const Formula *f, const char *name);

// The words of "name name=0.5 ...": moves *list past the next one, whose number is 0 where none stands; false at the
// end.
bool row_word(Arena *a, const char **list, const char **name, double *number);

// ---------------------------------------------------------------- build/window.c: convolutions and pools
// Over the spatial axes of [n, c, space...]; kernels, strides and dilations are at most 2^31. pads lo.. hi..; extra:
// part of hi that ceil_mode added; ceil, same: they are left to the operation.
typedef struct Window {
    int rank;
    int64_t kernel[MAX_RANK], strides[MAX_RANK], dilations[MAX_RANK], pads[2 * MAX_RANK], extra[MAX_RANK];
    bool ceil;
    int same;
} Window;
int64_t window_extent(const Window *w, int axis);       // from the first tap to the last
// sets the pads: as many outputs as strides fit into x; upper: the odd element of padding goes after
void window_same(const Value *x, Window *w, bool upper);
// grows the pads so that a last window counts that starts inside x and reaches past its end
void window_ceil(const Value *x, Window *w);
// else a diagnostic with a hint at --dim, which says that `what` needs it
bool b_known_size(Graph *g, const Value *x, int axis, const char *what);
bool b_weight_fits(Graph *g, const Value *x, const Value *w);               // ranks; else a diagnostic
Value *b_convolve(Graph *g, Value *x, Value *w, const Window *win, int64_t group);
// w [in, out / group, k...]; output_padding: pixels more at the end of each axis
Value *b_convolve_transposed(
    Graph *g, Value *x, Value *w, const Window *win, const int64_t *output_padding, int64_t group);
// conv(x with lo, hi, interior per spatial axis, w): paddings may be negative
Value *b_conv_padded(Graph *g, Value *x, Value *w, const int64_t *lo, const int64_t *hi, const int64_t *interior,
    const int64_t *strides, const int64_t *dilations, int64_t group);
// [g*a, b, k...] -> [g*b, a, flipped k...]: the weight of the convolution that runs backwards
Value *b_conv_backward_weight(Graph *g, Value *w, int64_t group);
// A convolution of images of these spatial sizes; pad: before the first pixel.
typedef struct ConvBack {
    int spatial;
    Dim size[MAX_RANK];
    int64_t stride[MAX_RANK], dilation[MAX_RANK], pad[MAX_RANK], group;
} ConvBack;
// the gradient of its input from that of its result, of fixed sizes
Value *b_conv_back(Graph *g, const ConvBack *c, Value *dy, Value *w);
// columns [n, c * taps, places] back to an image [n, c, size...]: overlapping elements add up
Value *b_col2im(Graph *g, Value *x, const int64_t *size, const Window *w);
Value *b_window_op(Graph *g, Op op, Value *x, const Window *w);             // WindowSum, WindowMax, WindowArgMax
Value *b_average_pool(Graph *g, Value *x, const Window *w, bool padding);   // padding: its elements count
// flat indices of WindowArgMax, row-major -> column-major within the image's last two dimensions
Value *b_column_major(Graph *g, Value *indices, const Type *image);
Value *b_lp_before(Graph *g, Value *x, double p);       // |x|^p; and the root behind a sum of them
Value *b_lp_after(Graph *g, Value *x, double p);
Value *b_over_space(Graph *g, Op op, Value *x);         // reduces the spatial axes, which stay as 1

// ---------------------------------------------------------------- build/conv_run.c: the same where sizes are symbolic
// The window's kernel is that of w, its pads are those that it has or, with `same`, what makes the output that large.
Value *b_convolve_run(Graph *g, Value *x, Value *w, const Window *win, int64_t group);
// size: of the result, with i64 scalars of padding before it, NULL: with the pads that it takes; NULL: by the window's
Value *b_convolve_transposed_run(Graph *g, Value *x, Value *w, const Window *win, const Dim *size,
    Value *const *before, const int64_t *output_padding, int64_t group);
Value *b_col2im_run(Graph *g, Value *x, const Dim *dims, const Window *w);  // dims: of the image, then of the block

// ---------------------------------------------------------------- build/matrix.c
// numpy's notation: "bij,bjk->bik", "..." for leading dimensions, without "->" the labels that occur once
Value *b_einsum(Graph *g, const char *equation, int n_in, Value *const *in);
Value *b_determinant(Graph *g, Value *x);               // [..., n, n] -> [...]
Value *b_inverse(Graph *g, Value *x);                   // of each matrix [..., n, n]

// ---------------------------------------------------------------- build/fft.c
// cosine and sine of 2 pi k / n, exact at quarters
void fft_turn(int64_t k, int64_t n, double *c, double *s);
// x + i y times z + i w, in place; y NULL: zero
void b_complex_times(Graph *g, Value **x, Value **y, Value *z, Value *w);
bool fft_fits(int64_t length);                          // no prime factor above 13
// [outer, length] each, any length, im NULL: zero; in place, not scaled; NULL after a diagnostic
void b_fft(Graph *g, Value **re, Value **im, bool inverse);

// ---------------------------------------------------------------- build/chirp.c
// the same where a prime factor is large
void b_chirp(Graph *g, Value **re, Value **im, bool inverse);
int64_t chirp_length(int64_t n);                        // of the transforms that it takes for a length up to n

// ---------------------------------------------------------------- build/fourier.c, build/fourier_run.c
// x [..., axis, ..., 1 or 2], real or complex, over `length` along axis (shorter ones padded with 0). onesided: the
// half of the spectrum that tells the other, [.., length / 2 + 1, .., 2], or with inverse real numbers from such a
// half.
Value *b_fourier(Graph *g, Value *x, int axis, int64_t length, bool inverse, bool onesided);
// along an axis that a scalar names, of a tensor of known sizes
Value *b_fourier_along(Graph *g, Value *x, Value *axis, bool inverse);
// places [frames, length] of frames, one every `step` elements; x [b, t, parts] -> [b, frames, length, parts] by them
Value *b_frame_places(Graph *g, int64_t frames, int64_t length, int64_t step);
Value *b_frames(Graph *g, Value *x, int64_t frames, int64_t length, int64_t step);
// a[0] - a[1] cos(2 pi i / n) + a[2] cos(4 pi i / n), with n the size, less 1 unless periodic
Value *b_cosine_window(Graph *g, DType d, int64_t size, bool periodic, const double *a);
// Triangles over the bins of a spectrum, evenly spaced on the mel scale m = 2595 log10(1 + f / 700) from low to high
// (Hz), at a sampling rate and a length of the transform: [length / 2 + 1, bins].
typedef struct MelFilters { int64_t bins, length; double rate, low, high; } MelFilters;
Value *b_mel_weights(Graph *g, DType d, const MelFilters *m);
// The same where sizes are symbolic. Of `in` (real or complex) elements into `out`, as a transform over `length`, which
// is at most `most`; 0: no bound is known.
typedef struct Fourier {
    Dim in, length, out;
    int64_t most, in_parts, out_parts;
    bool inverse, onesided;
} Fourier;
void fourier_sizes(Graph *g, Fourier *t, Dim length);   // sets the sizes for a length
// x [rows, length, parts] -> [rows, out, parts]; what is missing of `in` elements is 0
Value *b_fourier_rows(Graph *g, Value *x, const Fourier *t);
Value *b_frame_places_run(Graph *g, Dim frames, Dim length, Value *step);
Value *b_frames_run(Graph *g, Value *x, Dim frames, Dim length, Value *step);
Value *b_cosine_window_run(Graph *g, DType d, Dim size, bool periodic, const double *a);
// in: bins, length, rate, low and high as f64 scalars
Value *b_mel_weights_run(Graph *g, DType d, Dim bins, Dim spectrum, Value *const in[5]);

// ---------------------------------------------------------------- build/quant.c: x = (q - zero) * scale
// a scale or zero point in a shape that broadcasts against x; block 0: one per element of axis
Value *b_spread(Graph *g, Value *v, const Value *x, int axis, int64_t block);
// round(y) + zero in type d, kept in its range (small floats: if `saturate`); zero NULL: 0
Value *b_round_to(Graph *g, Value *y, Value *zero, DType d, bool saturate);
Value *b_centred(Graph *g, Value *x, Value *zero);      // x - zero without loss: i32 of integers, f32 of small floats
// Scales and zero points (NULL: 0) of one number, a vector along axis, or blocks along it.
typedef struct Quant { Value *scale, *zero; int axis; int64_t block; } Quant;
// ONNX's QuantizeLinear, dividing in `wide`, and DequantizeLinear
Value *b_quantize(Graph *g, Value *x, const Quant *by, DType to, DType wide, bool saturate);
Value *b_dequantize(Graph *g, Value *x, const Quant *by, DType to);
// Is n the last node of one of them? Then of what and by what; axis -1: by one number.
bool quant_read(const Node *n, Value **x, Quant *by);
bool quant_read_back(const Node *n, Value **q, Quant *by);
// a scale or zero point of the first factor of a product, where a vector goes with its rows; of the second
Value *b_of_rows(Graph *g, Value *v);
Value *b_of_columns(Graph *g, Value *v);
// sum * sa * sb / sy in zero's type
Value *b_rescale(Graph *g, Value *sum, Value *sa, Value *sb, Value *sy, Value *zero);
// x in u8 by its own range, which its scale and zero point come from
Value *b_quantized_u8(Graph *g, Value *x, Value **scale, Value **zero);
// `count` numbers of 2, 4 or 8 bits, low bits first, that bytes hold along the last axis
Value *b_unpacked(Graph *g, Value *bytes, int64_t bits, int64_t count);
Value *b_bit_shifts(Graph *g, int64_t bits);            // u8 [8 / bits]: 0, bits, 2 bits...
bool b_known_bits(Graph *g, int64_t bits);              // 2, 4 or 8, else a diagnostic

// ---------------------------------------------------------------- build/attention.c
// Letters: b batch, s queries, t keys, d elements of a head.
// [b, s, heads * d] -> [b, heads, s, d]; 4-D values already are
Value *b_split_heads(Graph *g, Value *x, int64_t heads);
Value *b_join_heads(Graph *g, Value *x);                // back to [b, s, heads * d]
// [b, hq, l, m] times [b, hkv, m, s], hq a multiple of hkv
Value *b_grouped_matmul(Graph *g, Value *x, Value *y);
// q k^T scale: each times sqrt(scale), as ONNX says, where rounding could tell the difference; else q times scale
Value *b_scores(Graph *g, Value *q, Value *k, double scale);
Value *b_masked_softmax(Graph *g, Value *x, bool may_be_empty);             // over the last axis; rows of -inf give 0
Value *b_causal(Graph *g, Dim queries, Dim keys, Value *past);      // bool [s, t]: key <= query + past (i64, or NULL)

// What a score [b, heads, s, t] becomes before the softmax: -inf where not allowed (NULL: all are); plus added or NULL.
typedef struct Masks { Value *allowed, *added; bool may_be_empty; } Masks;
// a model's mask, bool or numbers of type d, its last axis filled up to the number of keys
bool b_mask(Graph *g, Masks *m, Value *mask, Dim keys, DType d);
// Which keys j a query i may see: causal j <= i + offset; left, right (-1: none) a window around i + offset. Offset:
// cached keys before the first query, of all (past [b, heads, offset, d]) or by the lengths [b] of the sequences.
typedef struct KeyRange { bool causal; int64_t left, right; Value *past, *lengths; } KeyRange;
bool b_mask_positions(Graph *g, Masks *m, const KeyRange *r, Dim queries, Dim keys);

// softmax(softcap(q k^T scale) + masks) v -> [b, heads, s, d] in the operands' type, the softmax in `soft`
typedef struct MaskedAttention {
    Value *q, *k, *v;                                   // [b, heads, s or t, d]
    double scale, softcap;                              // softcap 0: none
    Masks masks;
    DType soft;
    Value *scores, *capped, *masked, *probabilities;    // set: after each step
} MaskedAttention;
Value *b_masked_attention(Graph *g, MaskedAttention *a);

// softmax(softcap(q k^T scale) + added..., only where allowed) v -> [b, s, heads * d], in f32 for small floats
typedef struct Attend {
    Value *q, *k, *v;                                   // [b, heads, s or t, d]
    Value *added[3];                                    // broadcast over the scores [b, heads, s, t], or NULL
    Value *allowed;                                     // bool, or NULL: all
    // [heads] (or a number): a key more, with this score and a value of 0; or NULL
    Value *sink;
    double scale, softcap;                              // scale 0: 1 / sqrt(d); softcap 0: none
    bool may_be_empty;                                  // rows may have nothing allowed
    Value *scores, *probabilities;                      // set: before and after the softmax
} Attend;
Value *b_attend(Graph *g, Attend *a);

// x [b, heads, s, d]: pairs of the first `size` elements, halves or neighbours, turn by angles whose cosine and sine
// broadcast to [b, heads, s, size / 2]
Value *b_rotated(Graph *g, Value *x, Value *cosine, Value *sine, int64_t size, bool interleaved);
// One state matrix [dk, dv] per head: S = exp(decay) S + k (beta (v - S^T k))^T or k v^T, y = scale q^T S, step after
// step; decay, beta [b, heads, t, 1 or d] or NULL. -> [b, heads, t, dv], and state becomes the last one.
typedef struct LinearAttention { Value *state, *q, *k, *v, *decay, *beta; double scale; } LinearAttention;
Value *b_linear_attention(Graph *g, LinearAttention *l);
// A depthwise convolution [b, c, t] over time that goes on from the last k - 1 inputs (past, NULL: zeros); state: of
// the next call.
Value *b_causal_conv(Graph *g, Value *x, Value *w, Value *bias, Value *past, Value **state);

// ---------------------------------------------------------------- build/experts.c: mixtures of experts
typedef struct Experts {
    Value *w[3], *bias[3];                              // fc1, fc2, fc3: [experts, out, in], [experts, out]; or NULL
    int64_t count, chosen;                              // of experts; of those that a token gets
    bool normalize;                                     // the chosen ones' weights add up to 1
    Value *mixing;                                      // weights [tokens, experts] of their own; NULL: of the scores
    const char *activation;                             // "relu", "gelu", "silu", "swiglu", "identity"
    int64_t fusion;                                     // swiglu: fc1 gives both parts; 1: interleaved; 0: fc3 does
    double alpha, beta, limit;                          // of swiglu
} Experts;
// x [tokens, features] or [batch, sequence, features], scores [tokens, experts]
Value *b_experts(Graph *g, const Experts *e, Value *x, Value *scores);

// ---------------------------------------------------------------- build/recurrent.c
// v quantised by its range, times the weights (less their zero points), in f32
Value *b_byte_product(Graph *g, Value *v, Value *weight, Value *scale);
// An LSTM over time whose recurrent product is so; gates in the order i, o, f, c; the inputs' part and the bias are in
// the rows [t, b, 4h]. state: h and c [b, h], become the last ones. -> h of each step in the order of time, [t, b, h].
typedef struct ByteLstm { Value *weight, *scale; int64_t hidden; bool reverse; } ByteLstm;
Value *b_byte_lstm(Graph *g, const ByteLstm *l, Value *rows, Value **state);

// ---------------------------------------------------------------- build/string.c, build/regex.c, build/automaton.c
Value *b_strings(Graph *g, int count, const char *const *strings);          // a constant string[count]
// A constant table for b_string_find: the strings in the order of their bytes, each once; first: where each of these
// stands first among those given.
Value *b_string_table(Graph *g, int count, const char *const *strings, int *kept, int64_t *first);
int b_string_place(const Value *table, const char *s);  // of a string that is in it
Value *b_string_find(Graph *g, Value *x, Value *table); // i64: position, or -1
Value *b_string_case(Graph *g, Value *x, bool upper);
// bool [C]: which of the strings x [C] are none of these, with a look at the case or none
Value *b_not_among(Graph *g, Value *x, int count, const char *const *among, bool sensitive);
Value *b_cast_string(Graph *g, Value *x, DType to);     // x or `to` are strings
Value *b_string_match(Graph *g, Value *x, const char *pattern);             // bool: the whole string is of the pattern
// A pool of items that holds n-grams, those of length k from from[k - 1] on (`lengths` of them), each with its column
// of the result; those of least..most items are counted, with gaps of up to `skips` between their items.
typedef struct NGrams {
    int items; const int64_t *pool;
    int lengths; const int64_t *from;
    int indices; const int64_t *column;
    int64_t least, most, skips;
} NGrams;
// how often each occurs in the rows of x [C] or [N, C], integers: f32 [N, columns]
Value *b_ngrams(Graph *g, Value *x, const NGrams *o, int64_t *columns);

// ---------------------------------------------------------------- build/ml.c: classical machine learning
Value *b_float_vector(Graph *g, DType d, int count, const float *v);        // a constant [count]
Value *b_rows_of(Graph *g, Value *x);                   // [N, F] of f32, or f64 where x is; [F] is one row
// x [N, F] by coefficients [rows, F], plus intercepts [rows] or none, in f32; a diagnostic when the sizes do not agree
Value *b_linear(
    Graph *g, Value *x, int rows, int count, const float *coefficients, int biases, const float *bias);
// NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO, PROBIT over [N, C]
Value *b_post_transform(Graph *g, Value *x, const char *how);
Value *b_first_best(Graph *g, Value *scores);           // [N, C] -> index of the first maximum, i64[N]
// [N, 1] -> [N, 2]: 1 - x or -x before x
Value *b_two_scores(Graph *g, Value *x, const char *how, bool probabilities);
// one of both is NULL
typedef struct ClassLabels { const int64_t *ints; int count; const char *const *strings; } ClassLabels;
Value *b_label(Graph *g, const ClassLabels *l, Value *index);
// values[k] for the first k with keys[k] == x, else the default
typedef struct Default { int64_t i; double f; const char *s; } Default;
Value *b_look_up(
    Graph *g, Value *x, Tensor *keys, const Tensor *values, const Default *otherwise, bool nan_is_key);
// values[i] at column at[i] of [1, columns]; what lies outside is left out, what nothing is put into is 0 or ""
Value *b_put_at(Graph *g, Value *at, Value *values, int64_t columns);

// ---------------------------------------------------------------- build/svm.c: support vector machines
typedef struct SupportVectors {
    int64_t count;                                      // 0: a linear model
    int size; const float *vectors;                     // [count, F]
    // POLY (gamma x s + coef0)^degree, SIGMOID tanh(gamma x s + coef0), RBF exp(-gamma |x - s|^2), LINEAR x s
    const char *kernel;
    double gamma, coef0, degree;
    int n_coefficients, n_rho;
    const float *coefficients, *rho;
} SupportVectors;
Value *b_svm_kernels(Graph *g, Value *x, const SupportVectors *m);          // [N, F] -> [N, count]
// [N, pairs]: the supports of class i weigh as row j - 1 of the coefficients says, those of j as row i
Value *b_svm_pairs(
    Graph *g, const SupportVectors *m, Value *kernels, int64_t classes, const int64_t *per_class);
// [N, C]: a pair's positive score is a vote for its first class, any other for its second
Value *b_svm_votes(Graph *g, Value *scores, int64_t classes);
// [N, C] from pairs' scores by 1 / (1 + exp(a score + b)), coupled
Value *b_svm_probabilities(
    Graph *g, Value *scores, int64_t classes, int n_a, const float *a, int n_b, const float *b);

// ---------------------------------------------------------------- build/forest.c: ensembles of decision trees
// up to TREE_MEMBER as ONNX's TreeEnsemble numbers them
typedef enum TreeMode { TREE_LEQ, TREE_LT, TREE_GTE, TREE_GT, TREE_EQ, TREE_NEQ, TREE_MEMBER, TREE_LEAF } TreeMode;
// child[1]: where the comparison holds
typedef struct TreeNode { TreeMode mode; int64_t feature; double split; int64_t child[2]; bool nan_true; } TreeNode;
typedef struct LeafWeight { int64_t node, target; double weight; } LeafWeight;
typedef struct Forest {
    Graph *g;
    DType dtype;                                        // of thresholds and weights: the input's, f32 or f64
    Value *x;                                           // [N, F]
    VEC(TreeNode) nodes;
    VEC(int64_t) roots;
    VEC(LeafWeight) weights;
    int64_t targets;
    const char *aggregate;                              // SUM, AVERAGE, MIN, MAX
    // set by b_forest: a node's place in the tables
    int64_t *place;
    int64_t n_leaves;
    int depth;
} Forest;
bool forest_fail(const Forest *f, const char *what);    // a diagnostic; false
Value *b_forest(Forest *f);                             // scores [N, targets]

// ---------------------------------------------------------------- build/norm.c: normalisations
// means over the axes, which stay as 1; 1 / sqrt(mean((x - mean)^2) + epsilon); x - mean
typedef struct Moments { Value *mean, *rstd, *centred; } Moments;
Moments b_moments(Graph *g, Value *x, int count, const int64_t *axes, double epsilon);
// parameters: scale, bias, mean, variance, [C] each; momentum: what a step of training keeps of the latter two
Value *b_batch_norm(Graph *g, Value *x, Value *const parameters[4], double epsilon, double momentum);
// by the batch's own statistics; now[2]: its mean and its variance (the sum of squares over the count)
Value *b_batch_norm_training(Graph *g, Value *x, Value *const parameters[2], double epsilon, Value **now);
// the composites: over the axes from `axis` on; bias or NULL
Value *b_layer_norm(Graph *g, Value *x, Value *scale, Value *bias, int axis, double epsilon);
Value *b_rms_norm(Graph *g, Value *x, Value *scale, int axis, double epsilon);
// the same of primitives, with statistics in type `stash`
Value *b_layer_norm_in(
    Graph *g, Value *x, Value *scale, Value *bias, int axis, double epsilon, DType stash, Moments *m);
Value *b_rms_norm_in(Graph *g, Value *x, Value *scale, int axis, double epsilon, DType stash);
// 1 / sqrt(mean((x - mean)^2) + epsilon) over the axes from `axis` on; mean NULL: around 0
Value *b_reciprocal_deviation(Graph *g, Value *x, int axis, double epsilon, Value **mean);
// the composite: of [n, c, space...], over space
Value *b_instance_norm(Graph *g, Value *x, Value *scale, Value *bias, double epsilon);
// over groups of channels and space; per_group: so many scales and biases as groups, not as channels
typedef struct GroupNorm { int64_t groups; double epsilon; DType stash; bool per_group; } GroupNorm;
Value *b_group_norm(Graph *g, Value *x, Value *scale, Value *bias, const GroupNorm *o);
Value *b_lp_norm(Graph *g, Value *x, int axis, int64_t p);                  // x / norm, p 1 or 2; 0 where that is 0
Value *b_mean_variance_norm(Graph *g, Value *x, int count, const int64_t *axes);    // 1e-9 keeps the deviation from 0
// across channels: x / (bias + alpha / size * sum of squares of the `size` channels around)^beta
Value *b_local_response_norm(Graph *g, Value *x, int64_t size, double alpha, double beta, double bias);

// ---------------------------------------------------------------- build/random.c: functions of a seed
Value *b_uniform(Graph *g, const Type *shape, int64_t seed);                // f32 from 0 to below 1
Value *b_random_uniform(Graph *g, const Type *t, int64_t seed, double low, double high);
Value *b_random_normal(Graph *g, const Type *t, int64_t seed, double mean, double deviation);
Value *b_bernoulli(Graph *g, Value *p, DType d, int64_t seed);              // 1 with probability p
// classes drawn for each row of unnormalised log-probabilities [b, c]: [b, samples]
Value *b_multinomial(Graph *g, Value *x, int64_t samples, DType d, int64_t seed);
// kept elements grow by 1 / (1 - ratio), so the expectation stays; mask: which were kept
// step: an integer scalar, of which the mask is another function each; NULL: always the same
typedef struct Drop { double ratio; int64_t seed; Value *step; } Drop;
Value *b_dropout(Graph *g, Value *x, const Drop *o, DType mask_type, Value **mask);
Value *b_dropout_trained(Graph *g, Value *x, double ratio);          // the composite: drops in training alone
// the same where the program is told the ratio, and whether anything is dropped
Value *b_dropout_run(
    Graph *g, Value *x, Value *ratio, Value *training, int64_t seed, DType mask_type, Value **mask);

// ---------------------------------------------------------------- build/resize.c, build/resize_run.c
// one axis: from `in` to `out` elements; roi: of coordinates "tf_crop_and_resize"
typedef struct AxisPlan {
    int axis;
    int64_t in, out;
    double scale, roi_start, roi_end;
} AxisPlan;

// coordinates, rounding: ONNX's coordinate_transformation_mode and nearest_mode
typedef struct Resize {
    enum { RESIZE_NEAREST, RESIZE_LINEAR, RESIZE_CUBIC } mode;
    enum {
        PLACE_HALF_PIXEL,
        PLACE_HALF_PIXEL_SYMMETRIC,
        PLACE_PYTORCH_HALF_PIXEL,
        PLACE_ALIGN_CORNERS,
        PLACE_ASYMMETRIC,
        PLACE_CROP_AND_RESIZE,
        PLACE_HALF_PIXEL_FOR_NN
    } coordinates;
    enum { ROUND_PREFER_FLOOR, ROUND_PREFER_CEIL, ROUND_FLOOR, ROUND_CEIL } rounding;
    bool antialias, exclude_outside;
    double cubic_a, extrapolation;
    int count;
    AxisPlan axes[MAX_RANK];
} Resize;
// plan an axis of x by its scale, its new size; false with a diagnostic
bool resize_by_scale(Graph *g, const Value *x, AxisPlan *p, int axis, double scale);
bool resize_to_size(Graph *g, const Value *x, AxisPlan *p, int axis, int64_t size);
// one scale for all axes, such that no axis is smaller (larger) than asked for
void resize_keep_aspect(Resize *r, bool larger);
Value *b_resize(Graph *g, const Resize *r, Value *x);
// One axis: its size, its new size (also as f64 scalars), scale and region as f64 scalars.
typedef struct RunAxis { int axis; Dim out; Value *n, *m, *scale, *start, *end; } RunAxis;
Value *b_resize_axis(Graph *g, const Resize *r, const RunAxis *p, Value *x);
// floor(old * scale) as an expression of the old size: of a constant scale that was 32 bits wide; else false
bool resize_scaled_size(Graph *g, Dim old, const Tensor *scales, int i, Dim *out);

// ---------------------------------------------------------------- build/sample.c: images at computed places
#define MAX_SPACE 4
typedef enum Outside { SAMPLE_ZEROS, SAMPLE_BORDER, SAMPLE_REFLECTION } Outside;
typedef enum Interpolation { SAMPLE_NEAREST, SAMPLE_LINEAR, SAMPLE_CUBIC } Interpolation;
// combine: Add, or Max over the corners; align: the ends of a grid are the middles of the outer elements
typedef struct Sampler {
    int space;
    Dim size[MAX_SPACE];
    Interpolation mode;
    Outside outside;
    bool align;
    Op combine;
} Sampler;
bool b_sampler(Graph *g, Sampler *s, const Value *x); // of x [b, c, space...], linear, zeros outside; or a diagnostic
Value *b_size_like(Graph *g, const Sampler *s, int axis, const Value *v);   // a size as a scalar of v's type
Value *b_flat_space(Graph *g, Value *x);                // [b, c, space...] -> [b, c, space]
// x [b, c, space] at the places at[axis] [b, p] -> [b, c, p]
Value *b_sample(Graph *g, const Sampler *s, Value *x, Value *const *at);
// x [b, c, space...] at a grid [b, places..., space] of -1..1 -> [b, c, places...]
Value *b_grid_sample(Graph *g, const Sampler *s, Value *x, Value *grid);
// theta [n, k, k+1] applied to the regular grid over size: [n, size..., k], x first
Value *b_affine_grid(Graph *g, Value *theta, int k, const int64_t *size, bool align);
Value *b_affine_grid_run(Graph *g, Value *theta, int k, const Dim *size, bool align);      // symbolic sizes

// ---------------------------------------------------------------- build/roi.c: regions of images
// half: by half a pixel; most: the maximum of the samples, else their mean; count: samples along a side of a bin, 0: as
// many as it has pixels
typedef struct RoiAlign { int64_t bins[2], count; bool half, most; double scale; } RoiAlign;
// rois [r, 4] in f32, batch [r]: which image -> [r, c, bins...]
Value *b_roi_align(Graph *g, Sampler *s, Value *x, Value *rois, Value *batch, const RoiAlign *o);
// rois [r, 5]: image, x1, y1, x2, y2, corners included, rounded to pixels; a part that holds none gives 0
Value *b_max_roi_pool(Graph *g, Value *x, Value *rois, const int64_t *bins, double spatial_scale);
// mask, bias: or NULL
typedef struct DeformConv { Window window; int64_t offset_groups, groups; Value *mask, *bias; } DeformConv;
Value *b_deform_conv(Graph *g, Sampler *s, Value *x, Value *weight, Value *offset, const DeformConv *o);
#endif
