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
Value *b_slice(Graph *g, Value *x, const int64_t *starts, const int64_t *steps, const Dim *sizes);
Value *b_pad(Graph *g, Value *x, const int64_t *lo, const int64_t *hi, const int64_t *interior,
    Value *fill /* scalar, NULL: 0 */);
Value *b_concat(Graph *g, int axis, int n, Value *const *in);
Value *b_reduce(Graph *g, Op op, Value *x, int n_axes, const int64_t *axes, bool keep);
// sum / count of primitives, where a gradient or an expansion cannot use ReduceMean
Value *b_mean(Graph *g, Value *x, int n_axes, const int64_t *axes, bool keep);
Value *b_softmax(Graph *g, Value *x, int axis);
Value *b_matmul(Graph *g, Value *x, Value *y);
Value *b_gather(Graph *g, Value *x, Value *indices, int axis);
Value *b_gather_elements(Graph *g, Value *x, Value *indices, int axis);
// reduction: "none", "add", "mul", "min", "max"
Value *b_scatter_elements(Graph *g, Value *data, Value *indices, Value *updates, int axis, const char *reduction);
Value *b_scatter_nd(Graph *g, Value *data, Value *indices, Value *updates, const char *reduction);
Value *b_scalar(Graph *g, DType d, double v);           // rank 0 constant
Value *b_like(Graph *g, const Value *x, double v);      // rank 0 constant of x's dtype
Value *b_ints(Graph *g, int n, const int64_t *v);       // i64[n] constant
Value *b_floats(Graph *g, DType d, int rank, const int64_t *dims, const double *v);     // a constant

// ---------------------------------------------------------------- build/shape.c: views by axis, tensors of one rule
Value *b_along(Graph *g, Value *v, int rank, int axis); // [C] -> [1,..,C,..,1]
Value *b_insert(Graph *g, Value *v, int axis);          // a dimension of size 1 before axis
Value *b_remove(Graph *g, Value *v, int axis);
Value *b_part(Graph *g, Value *v, int axis, Dim start, Dim size);           // start..start+size-1 along axis
// elements start, start + step, ... along axis; start NULL: 0, step NULL: 1; those outside read 0
Value *b_take(Graph *g, Value *x, int axis, Value *start, Value *step, Dim size);
Value *b_swap(Graph *g, Value *v, int a, int b);        // transposes two axes
// axes from..from+count-1 become to..to+count-1
Value *b_move_axes(Graph *g, Value *x, int from, int count, int to);
Value *b_flip(Graph *g, Value *x, const bool *axes);    // reverses the marked axes, which are static
Value *b_sum_to(Graph *g, Value *x, const Type *t);     // adjoint of broadcasting: sums x down to t's dimensions
Value *b_scalar_of(Graph *g, Value *v);                 // one element of any rank -> rank 0, else a diagnostic
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

// ---------------------------------------------------------------- build/window.c: convolutions
// conv(x with lo, hi, interior per spatial axis, w): paddings may be negative
Value *b_conv_padded(Graph *g, Value *x, Value *w, const int64_t *lo, const int64_t *hi, const int64_t *interior,
    const int64_t *strides, const int64_t *dilations, int64_t group);
// [g*a, b, k...] -> [g*b, a, flipped k...]: the weight of the convolution that runs backwards
Value *b_conv_backward_weight(Graph *g, Value *w, int64_t group);

// ---------------------------------------------------------------- build/matrix.c
// numpy's notation: "bij,bjk->bik", "..." for leading dimensions, without "->" the labels that occur once
Value *b_einsum(Graph *g, const char *equation, int n_in, Value *const *in);
Value *b_determinant(Graph *g, Value *x);               // [..., n, n] -> [...], n at most 5

// ---------------------------------------------------------------- build/fft.c
// cosine and sine of 2 pi k / n, exact at quarters
void fft_turn(int64_t k, int64_t n, double *c, double *s);
bool fft_fits(int64_t length);                          // no prime factor above 13
// [outer, length] each, im NULL: zero; in place, not scaled; NULL after a diagnostic
void b_fft(Graph *g, Value **re, Value **im, bool inverse);

// ---------------------------------------------------------------- build/fourier.c, build/fourier_run.c
// x [..., axis, ..., 1 or 2], real or complex, over `length` along axis (shorter ones padded with 0). onesided: the
// half of the spectrum that tells the other, [.., length / 2 + 1, .., 2], or with inverse real numbers from such a half.
Value *b_fourier(Graph *g, Value *x, int axis, int64_t length, bool inverse, bool onesided);
// along an axis that a scalar names, of a tensor of known sizes
Value *b_fourier_along(Graph *g, Value *x, Value *axis, bool inverse);
// x [b, t, parts] -> [b, frames, length, parts], every `step` elements
Value *b_frames(Graph *g, Value *x, int64_t frames, int64_t length, int64_t step);
// a[0] - a[1] cos(2 pi i / n) + a[2] cos(4 pi i / n), with n the size, less 1 unless periodic
Value *b_cosine_window(Graph *g, DType d, int64_t size, bool periodic, const double *a);
// Triangles over the bins of a spectrum, evenly spaced on the mel scale m = 2595 log10(1 + f / 700) from low to high
// (Hz), at a sampling rate and a length of the transform: [length / 2 + 1, bins].
typedef struct MelFilters { int64_t bins, length; double rate, low, high; } MelFilters;
Value *b_mel_weights(Graph *g, DType d, const MelFilters *m);
// The same where sizes are symbolic. Of `in` (real or complex) elements into `out`, as a transform over `length`.
typedef struct Fourier { Dim in, length, out; int64_t in_parts, out_parts; bool inverse, onesided; } Fourier;
void fourier_sizes(Graph *g, Fourier *t, Dim length);   // sets the sizes for a length
// x [rows, length, parts] -> [rows, out, parts]; what is missing of `in` elements is 0
Value *b_fourier_rows(Graph *g, Value *x, const Fourier *t);
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

// ---------------------------------------------------------------- build/formula.c: assignments over values
// value NULL: the number
typedef struct Meaning { const char *name; Value *value; double number; } Meaning;
typedef struct Formula { Graph *g; VEC(Meaning) at; } Formula;

void formula_let(Formula *f, const char *name, Value *value, double number);
bool formula_run(Formula *f, const char *assignments);  // false: a diagnostic
Value *formula_value(const Formula *f, const char *name);

// The words of "name name=0.5 ...": moves *list past the next one, whose number is 0 where none stands; false at the
// end.
bool row_word(Arena *a, const char **list, const char **name, double *number);
#endif
