// SPDX-License-Identifier: MIT OR Apache-2.0
// What the planners of template kernels share (templates*.c): holes, and constant
// operands in panels.
#ifndef BURNCC_SCHEDULE_TEMPLATES_H
#define BURNCC_SCHEDULE_TEMPLATES_H
#include "plan.h"
#include "tiles.h"

// taps of a depthwise convolution of signed bytes: the places of each lie on the stack
enum { Q8_MOST_TAPS = 64 };

TileTarget template_target(const Options *o);
void template_hole(Arena *a, Kernel *k, const char *name, int64_t value);
typedef struct TemplateHole { const char *name; int64_t value; } TemplateHole;
void template_holes(Arena *a, Kernel *k, int n, const TemplateHole *all);
#define TEMPLATE_HOLES(a, k, ...)                                                                                      \
    template_holes(a, k, (int)COUNT(((TemplateHole[]){ __VA_ARGS__ })), (TemplateHole[]){ __VA_ARGS__ })
// a size or stride, which may be symbolic, or be given to the function as an argument
void template_hole_dim(Arena *a, Kernel *k, const char *name, Dim d);
void template_hole3(Arena *a, Kernel *k, const char *prefix, const int64_t *v);         // prefix D, prefix H, prefix W
int64_t template_hole_value(const Kernel *k, const char *name);
int64_t template_whole_rows(int64_t mr);                // in whole tiles on machines of 32 and of 16 registers
// The least size, above 0, that leaves the same edges as this one where it is cut into multiples of what divides
// `unit`: kernels that differ in it alone are one text.
int64_t template_edge(int64_t size, int64_t unit);
Buffer *template_packed(
    Arena *a, Kernel *k, Value *v, size_t floats, const char *layout, void (*fill)(const Buffer *, void *));
Buffer *template_packed_as(Arena *a, Kernel *k, Value *v, DType element, size_t bytes, const char *layout,
    void (*fill)(const Buffer *, void *));

void template_plan(Arena *a, const Graph *g, Kernel *k, const Options *o);          // one kernel
bool template_packs(const Kernel *k, const Value *v);   // v: the right operand, constant and packed
GemmShape template_gemm_shape(const Graph *g, const Kernel *k);
ConvShape template_conv_shape(const Graph *g, const Convolution *c);
// What a record knows a contraction or convolution by; kind: its first words. Sizes that the running program knows
// are theirs at most.
const char *template_gemm_signature(Arena *a, const Graph *g, const Kernel *k, const GemmShape *s, const char *kind);
const char *template_layout_signature(Arena *a, const ConvLayout *l, const char *kind);
const char *template_conv_signature(Arena *a, const Graph *g, const Convolution *c, const Options *o, const char *kind);
ConvLayout template_conv_layout(const Graph *g, const Convolution *c, const Options *o);
// bytes that its weights take more than in the model, by the cost model's choice
int64_t template_conv_growth(const Graph *g, const Kernel *k, const Options *o);
ConvLayout template_conv_merged(ConvLayout l);          // small groups made one, for conv.c
// A convolution or depthwise convolution with the channels last: the template that should be fastest.
void plan_conv(Arena *a, const Graph *g, Kernel *k, const Options *o);
// a depthwise convolution with the channels first
void plan_planes(Arena *a, const Graph *g, Kernel *k, const Options *o);
// Where memory or code is the price (o): products and convolutions without scratch memory; false: the kernel is none.
bool template_small(const Options *o);
bool template_is_window(const Kernel *k);
bool template_takes_scratch(const Kernel *k);           // has its function a parameter for it?
bool window_halves(const Options *o);                   // are its weights of f16?
bool plan_window(Arena *a, const Graph *g, Kernel *k, const Options *o);
// May its result lie over what it reads? Pixels are finished in order then, and each element is stored once.
static inline bool template_may_over(const Kernel *k) { return k->template && k->template->over; }
// How many bytes behind the beginning of its result its operand v has to begin for the result to lie over it; false:
// never.
bool template_distance(const Graph *g, const Kernel *k, const Value *v, int64_t *bytes);
// The same where its pixels go from the last to the first, by its hole BACK: how many bytes behind the beginning of its
// operand its result has to begin. Of kernels that have a distance.
int64_t template_above(const Graph *g, const Kernel *k);
void template_back(Kernel *k, bool back);               // which way it goes
bool window_distance(const Graph *g, const Kernel *k, int64_t *bytes);
// Where pixel p's window begins, in elements of the input.
int64_t window_start(const Convolution *c, int64_t p);
int64_t window_end(const Convolution *c, int64_t p);    // and behind its last element
bool q8_distance(const Kernel *k, int64_t *bytes);      // templates_q8.c: of products of signed bytes
int64_t q8_above(const Kernel *k);
Convolution window_shape(const Graph *g, const Kernel *k);      // products are convolutions of one row, with a tap
void window_share(Plan *p);                             // what differs between its kernels becomes an argument
void plan_attention(Arena *a, const Graph *g, Kernel *k, const Options *o);
void plan_attention_grad(Arena *a, const Graph *g, Kernel *k, const Options *o);
// Products of bytes, and with weights of few bits; false: the kernel is none.
void plan_q8(Arena *a, Kernel *k, const Options *o);    // of signed bytes
bool plan_bytes(Arena *a, const Graph *g, Kernel *k, const Options *o);
bool plan_low(Arena *a, const Graph *g, Kernel *k, const Options *o);
// --train --precision bf16; false: the kernel is none.
bool plan_pairs(Arena *a, const Graph *g, Kernel *k, const Options *o);
// --blas; false: the kernel is ours.
bool plan_blas(Arena *a, const Graph *g, Kernel *k, const Options *o);
#endif
