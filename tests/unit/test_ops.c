// SPDX-License-Identifier: MIT OR Apache-2.0
// Every primitive against itself, three ways. A case is a graph in text over odd sizes; for each:
//   - the evaluator runs it (and gives the expected numbers where the case states them);
//   - each node's lowering, interpreted element by element, must give what its evaluator gives, with no load outside
//       its tensor;
//   - where inputs are f64, gradients must agree with central differences, and the backward nodes pass the lowering
//       check as well; so must the gradients of a weighted sum of these gradients, and tangents of the outputs.
//   - a sized case has symbolic dimensions: its lowerings, made before the sizes are known, must give what the
//       evaluator gives with them.
// Input names choose the random values: pos (0.5..1.5), below5 (-5..4), anything else -1..1 or small integers.
#include "plan.h"
#include "grad/grad.h"
#include "ir/expr.h"
#include "ops/common.h"
#include "ops/table.h"
#include "passes/passes.h"
#include "schedule/schedule.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct Case { const char *inputs, *body, *result, *expect; } Case;

static const Case cases[] = {
    // ---- views
    { "%0: f64[2,3]", "%1 = Identity(%0)", "%1", NULL },
    { "%0: f64[2,3,5]", "%1 = Reshape(%0) {shape=[3,10]}", "%1", NULL },
    { "%0: f64[4,3,5]", "%1 = Reshape(%0) {shape=[2,2,1,15]}", "%1", NULL },
    { "%0: f64[1,6]", "%1 = Reshape(%0) {shape=[3,1,2,1]}", "%1", NULL },
    { "%0: f64[1]", "%1 = Reshape(%0) {shape=[]}", "%1", NULL },
    { "%0: i8[0,3]", "%1 = Reshape(%0) {shape=[5,0]}", "%1", NULL },
    { "%0: f64[2,3,5]", "%1 = Transpose(%0) {perm=[2,0,1]}", "%1", NULL },
    { "%0: u8[37,41]", "%1 = Transpose(%0) {perm=[1,0]}", "%1", NULL },
    { "", "%0 = const i16[2,3] {1,2,3,4,5,6}\n %1 = Transpose(%0) {perm=[1,0]}", "%1", "1 4 2 5 3 6" },
    { "%0: f16[3,34,2,33]", "%1 = Transpose(%0) {perm=[3,0,2,1]}", "%1", NULL },
    { "%0: f64[3,1]", "%1 = Expand(%0) {shape=[2,3,5]}", "%1", NULL },
    { "%0: f64[]", "%1 = Expand(%0) {shape=[3]}", "%1", NULL },
    { "%0: f64[7,5]", "%1 = Slice(%0) {starts=[1,0], steps=[2,1], sizes=[3,4]}", "%1", NULL },
    { "%0: f64[7,5]", "%1 = Slice(%0) {starts=[6,3], steps=[-3,-1], sizes=[2,4]}", "%1", NULL },
    { "%0: f64[7]", "%1 = Slice(%0) {starts=[3], steps=[1], sizes=[0]}", "%1", NULL },
    { "%0: f64[2,3], %1: f64[2,1], %2: f64[2,4]", "%3 = Concat(%0, %1, %2) {axis=1}", "%3", NULL },
    { "%0: bool[1,3], %1: bool[0,3], %2: bool[2,3]", "%3 = Concat(%0, %1, %2) {axis=0}", "%3", NULL },
    { "", "%0 = Iota() {shape=[2,3], axis=1, dtype=f32}", "%0", "0 1 2 0 1 2" },
    { "%0: f64[2,3,5]", "%1 = Shape(%0)", "%1", "2 3 5" },
    // ---- padding
    { "", "%0 = const i8[2] {7,8}\n %1 = const i8[] {1}\n %2 = Pad(%0, %1) {lo=[2], hi=[1], interior=[2]}", "%2",
        "1 1 7 1 1 8 1" },
    { "%0: f64[3,4]", "%1 = Pad(%0) {lo=[1,0], hi=[2,3]}", "%1", NULL },
    { "%0: f64[3,4], %1: f64[]", "%2 = Pad(%0, %1) {lo=[1,-1], hi=[-1,2], interior=[2,1]}", "%2", NULL },
    { "%0: f64[3,4]", "%1 = Pad(%0) {lo=[-2,-3], hi=[0,-2], interior=[1,2]}", "%1", NULL },
    { "%0: f64[3,4]", "%1 = Pad(%0) {lo=[2,3], hi=[1,2], mode=\"reflect\"}", "%1", NULL },
    { "%0: f64[3]", "%1 = Pad(%0) {lo=[5], hi=[9], mode=\"reflect\"}", "%1", NULL },
    { "%0: f64[3,4]", "%1 = Pad(%0) {lo=[2,-1], hi=[1,5], mode=\"edge\"}", "%1", NULL },
    { "%0: f64[3,4]", "%1 = Pad(%0) {lo=[4,1], hi=[2,-1], mode=\"wrap\"}", "%1", NULL },
    { "", "%0 = const i32[3] {1,2,3}\n %1 = Pad(%0) {lo=[2], hi=[2], mode=\"reflect\"}", "%1", "3 2 1 2 3 2 1" },
    { "", "%0 = const i32[3] {1,2,3}\n %1 = Pad(%0) {lo=[2], hi=[2], mode=\"wrap\"}", "%1", "2 3 1 2 3 1 2" },
    // ---- reductions
    { "%0: f64[3,5,2]", "%1 = ReduceSum(%0) {axes=[0,2], keepdims=0}", "%1", NULL },
    { "%0: f64[3,5]", "%1 = ReduceSum(%0) {keepdims=1}", "%1", NULL },
    { "%0: f64[3,5]", "%1 = ReduceSum(%0) {axes=[]}", "%1", NULL },
    { "%0: f32[0,5]", "%1 = ReduceMin(%0) {axes=[0], keepdims=0}", "%1", "inf inf inf inf inf" },
    { "%0: f16[3,100]", "%1 = ReduceSum(%0) {axes=[1]}", "%1", NULL },
    { "%0: f64[3,5,2]", "%1 = ReduceProd(%0) {axes=[2,0], keepdims=0}", "%1", NULL },
    { "", "%0 = const f64[4] {2,0,3,5}\n %1 = ReduceProd(%0)", "%1", "0" },
    { "%0: i32[4,3]", "%1 = ReduceProd(%0) {axes=[1]}", "%1", NULL },
    { "%0: f64[3,5,2]", "%1 = ReduceMax(%0) {axes=[1], keepdims=0}", "%1", NULL },
    { "%0: f64[3,5,2]", "%1 = ReduceMin(%0) {axes=[1,2]}", "%1", NULL },
    { "%0: u64[7]", "%1 = ReduceMax(%0)", "%1", NULL },
    { "%0: bool[3,5]", "%1 = ReduceMax(%0) {axes=[1]}", "%1", NULL },
    { "%0: bool[3,5]", "%1 = ReduceMin(%0) {axes=[0]}", "%1", NULL },
    { "%0: i32[3,5,2]", "%1 = ArgMax(%0) {axis=1, keepdims=0}", "%1", NULL },
    { "", "%0 = const i32[5] {1,3,0,3,0}\n %1 = ArgMax(%0) {axis=0, last=1}\n %2 = ArgMin(%0) {axis=0}", "%1, %2",
        "3 2" },
    { "%0: f32[3,1,2]", "%1 = ArgMin(%0) {axis=1, last=1}", "%1", NULL },
    { "%0: f64[3,5]", "%1 = CumSum(%0) {axis=1}", "%1", NULL },
    { "%0: f64[4,3]", "%1 = CumSum(%0) {axis=0, exclusive=1, reverse=1}", "%1", NULL },
    { "%0: f64[4,3]", "%1 = CumSum(%0) {axis=0, reverse=1}", "%1", NULL },
    { "", "%0 = const i64[4] {1,2,3,4}\n %1 = CumSum(%0) {axis=0, exclusive=1}", "%1", "0 1 3 6" },
    { "%0: f32[3,5]", "%1 = CumProd(%0) {axis=1, exclusive=1}", "%1", NULL },
    { "%0: f64[3,5]", "%1 = CumProd(%0) {axis=1}", "%1", NULL },
    { "%0: f64[7,2]", "%1 = CumProd(%0) {axis=0, exclusive=1, reverse=1}", "%1", NULL },
    { "%0: f64[2,1,2]", "%1 = CumProd(%0) {axis=1, reverse=1}\n %2 = CumMax(%1) {axis=1}", "%2", NULL },
    { "%0: f64[6]", "%1 = const f64[6] {1,0,2,3,0,1}\n %2 = Mul(%0, %1)\n %3 = CumProd(%2) {axis=0}", "%3", NULL },
    { "%0: f32[4,3]", "%1 = CumMax(%0) {axis=0}\n %2 = CumMin(%0) {axis=1, reverse=1}", "%1, %2", NULL },
    { "%0: f64[3,8]", "%1 = CumMax(%0) {axis=1}\n %2 = CumMax(%0) {axis=0, reverse=1}", "%1, %2", NULL },
    { "%0: f64[3,6]", "%1 = Slice(%0) {starts=[0,1], steps=[1,1], sizes=[3,5]}\n %2 = CumMin(%1) {axis=1, reverse=1}\n"
                      " %3 = CumMin(%0) {axis=1, exclusive=1}\n"
                      " %4 = Slice(%3) {starts=[0,1], steps=[1,1], sizes=[3,5]}", "%2, %4", NULL },
    { "", "%0 = const i64[5] {1,3,2,4,0}\n %1 = CumMax(%0) {axis=0}\n %2 = CumMin(%0) {axis=0}", "%1, %2",
        "1 3 3 4 4 1 1 1 1 0" },
    // ---- windows
    { "%0: f64[2,3,9]", "%1 = WindowSum(%0) {kernel=[3], strides=[2], pads=[1,0]}", "%1", NULL },
    { "%0: f64[1,2,7,8]", "%1 = WindowSum(%0) {kernel=[2,3], strides=[1,2], dilations=[2,1], pads=[1,2,0,1]}", "%1",
        NULL },
    { "%0: f64[1,1,8]", "%1 = WindowSum(%0) {kernel=[3], strides=[3], ceil_mode=1}", "%1", NULL },
    { "", "%0 = const f32[1,1,5] {1,2,3,4,5}\n %1 = WindowSum(%0) {kernel=[2], strides=[2], pads=[1,0]}", "%1",
        "1 5 9" },
    { "%0: f64[2,2,7,6]", "%1 = WindowMax(%0) {kernel=[3,2], strides=[2,2], pads=[1,0,1,0]}", "%1", NULL },
    { "%0: f64[2,2,7,6], %1: f64[2,2,4,3]",
        "%2 = WindowMaxGrad(%0, %1) {kernel=[3,2], strides=[2,2], pads=[1,0,1,0]}", "%2", NULL },
    { "%0: i8[1,2,7]", "%1 = WindowMax(%0) {kernel=[3], pads=[2,2]}", "%1", NULL },
    { "%0: f64[1,2,3,4,5]", "%1 = WindowMax(%0) {kernel=[2,2,2], strides=[1,1,2], ceil_mode=1}", "%1", NULL },
    { "%0: f32[2,7,6,3]", "%1 = WindowMax(%0) {kernel=[3,2], strides=[2,2], pads=[1,0,1,0], channels_last=1}", "%1",
        NULL },
    { "", "%0 = const f32[1,3,2] {1,10,2,20,3,30}\n %1 = WindowSum(%0) {kernel=[2], pads=[1,0], channels_last=1}",
        "%1", "1 10 3 30 5 50" },
    { "%0: f32[2,7,6,4], %1: f32[6,2,3,2]",
        "%2 = Conv(%0, %1) {strides=[2,1], pads=[1,0,1,1], group=2, channels_last=1}", "%2", NULL },
    { "%0: f32[1,9,5], %1: f32[4,5,3]", "%2 = Conv(%0, %1) {dilations=[2], same=1, channels_last=1}", "%2", NULL },
    { "%0: f32[2,2,7]", "%1 = WindowArgMax(%0) {kernel=[3], strides=[2], pads=[1,1], dilations=[2]}", "%1", NULL },
    { "", "%0 = const f32[1,2,3] {1,5,5,2,1,0}\n %1 = WindowArgMax(%0) {kernel=[2]}", "%1", "1 1 3 4" },
    // ---- contractions
    { "%0: f64[3,5], %1: f64[5,4]", "%2 = MatMul(%0, %1)", "%2", NULL },
    { "", "%0 = const i8[2,2] {1,2,3,4}\n %1 = const i8[2] {100,1}\n %2 = MatMul(%0, %1)", "%2", "102 48" },
    { "%0: f64[5], %1: f64[5]", "%2 = MatMul(%0, %1)", "%2", NULL },
    { "%0: f64[5], %1: f64[2,5,3]", "%2 = MatMul(%0, %1)", "%2", NULL },
    { "%0: f64[2,3,5], %1: f64[5]", "%2 = MatMul(%0, %1)", "%2", NULL },
    { "%0: f64[2,1,3,5], %1: f64[4,5,2]", "%2 = MatMul(%0, %1)", "%2", NULL },
    { "%0: f64[2,3,5], %1: f64[5,4]", "%2 = MatMul(%0, %1)", "%2", NULL },
    { "%0: f16[3,17], %1: f16[17,4]", "%2 = MatMul(%0, %1)", "%2", NULL },
    { "%0: f64[2,0], %1: f64[0,3]", "%2 = MatMul(%0, %1)", "%2", "0 0 0 0 0 0" },
    { "%0: f64[2,3,9], %1: f64[4,3,3]", "%2 = Conv(%0, %1) {strides=[2], pads=[1,2]}", "%2", NULL },
    { "%0: f64[2,4,6,7], %1: f64[6,2,3,2]",
        "%2 = Conv(%0, %1) {strides=[1,2], dilations=[2,1], pads=[1,0,2,1], group=2}", "%2", NULL },
    { "%0: f64[1,3,8,8], %1: f64[3,1,3,3]", "%2 = Conv(%0, %1) {strides=[3,2], pads=[3,0,0,3], group=3}", "%2", NULL },
    { "%0: f64[1,2,5,5], %1: f64[3,2,1,1]", "%2 = Conv(%0, %1) {strides=[2,2]}", "%2", NULL },
    { "%0: f64[1,2,3,4,3], %1: f64[2,2,2,2,2]", "%2 = Conv(%0, %1) {pads=[0,1,0,1,0,1]}", "%2", NULL },
    { "%0: f64[1,1,12], %1: f64[1,1,2]", "%2 = Conv(%0, %1) {strides=[5], pads=[0,0]}", "%2", NULL },
    { "%0: f64[1,2,7,8], %1: f64[3,2,3,3]",
        "%2 = Conv(%0, %1) {strides=[2,2], same=1}\n %3 = WindowMax(%2) {kernel=[2,3], strides=[3,2], same=2}", "%3",
        NULL },
    { "%0: i32[1,2,5], %1: i32[2,2,3]", "%2 = Conv(%0, %1) {pads=[1,1]}", "%2", NULL },
    { "", "%0 = const f32[1,1,3,3] {1,2,3,4,5,6,7,8,9}\n %1 = const f32[1,1,2,2] {1,0,0,-1}\n %2 = Conv(%0, %1)", "%2",
        "-4 -4 -4 -4" },
    // ---- indexed access
    { "%0: f64[3,5,2], %1 below5: i64[2,3]", "%2 = Gather(%0, %1) {axis=1}", "%2", NULL },
    { "%0: f64[3,5], %1 below5: i32[4]", "%2 = Gather(%0, %1) {axis=0}", "%2", NULL }, // some are outside: 0
    { "%0: u16[5,3]", "%1 = const i64[2] {-1,0}\n %2 = Gather(%0, %1) {axis=0}", "%2", NULL },
    { "%0: f64[5], %1 below5: i64[]", "%2 = Gather(%0, %1) {axis=0}", "%2", NULL },
    { "%0: f64[5,3], %1 below5: i64[2,3]", "%2 = GatherElements(%0, %1) {axis=0}", "%2", NULL },
    { "%0: f64[2,5], %1 below5: i64[2,7]", "%2 = GatherElements(%0, %1) {axis=1}", "%2", NULL },
    { "%0: f64[5,4,3], %1 below5: i64[2,3,2]", "%2 = GatherND(%0, %1)", "%2", NULL },
    { "%0: f64[2,5,3], %1 below5: i64[2,4,1]", "%2 = GatherND(%0, %1) {batch_dims=1}", "%2", NULL },
    { "%0: f64[5,3], %1: f64[2,3]", "%2 = const i64[2,3] {0,1,2,4,-2,3}\n %3 = ScatterElements(%0, %2, %1) {axis=0}",
        "%3", NULL },
    { "%0: f64[2,5], %1 below5: i64[2,7], %2: f64[2,7]",
        "%3 = ScatterElements(%0, %1, %2) {axis=1, reduction=\"add\"}", "%3", NULL },
    { "%0: f64[2,5], %1 below5: i64[2,3], %2 pos: f64[2,3]",
        "%3 = ScatterElements(%0, %1, %2) {axis=1, reduction=\"mul\"}", "%3", NULL },
    { "%0: f64[2,5], %1 below5: i64[2,4], %2: f64[2,4]",
        "%3 = ScatterElements(%0, %1, %2) {axis=1, reduction=\"max\"}", "%3", NULL },
    { "%0: f64[5,3], %1: f64[2,3]", "%2 = const i64[2,1] {3,-5}\n %3 = ScatterND(%0, %2, %1)", "%3", NULL },
    { "%0: f64[5,4], %1 below5: i64[3,2], %2: f64[3]", "%3 = ScatterND(%0, %1, %2) {reduction=\"add\"}", "%3", NULL },
    { "%0: f64[5,2], %1 below5: i64[6,1], %2: f64[6,2]", "%3 = ScatterND(%0, %1, %2) {reduction=\"min\"}", "%3",
        NULL },
    { "",
        "%0 = const i32[3] fill 1\n %1 = const i64[4] {0,0,2,9}\n %2 = const i32[4] {2,3,4,5}\n"
        "%3 = ScatterElements(%0, %1, %2) {axis=0, reduction=\"add\"}",
        "%3", "6 1 5" },
    { "%0: f64[2,5], %1: f64[2,2]", "%2 = SliceScatter(%0, %1) {axis=1, starts=[2]}\n %3 = Sin(%2)", "%3", NULL },
    // ---- order, random numbers
    { "%0: f64[3,7,2]", "%1, %2 = Sort(%0) {axis=1}", "%1, %2", NULL },
    { "", "%0 = const i32[5] {3,1,2,1,3}\n %1, %2 = Sort(%0) {axis=0, largest=1}", "%1, %2", "3 3 2 1 1 0 4 2 1 3" },
    // ---- found
    { "", "%0 = const bool[6] {0,1,1,0,0,1}\n %1, %2 = Positions(%0)", "%1, %2", "1 2 5 0 0 0 3" },
    { "", "%0 = const f32[5,1] {2,nan,-1,2,nan}\n %1, %2, %3, %4 = Unique(%0)", "%1, %2, %3, %4",
        "2 0 1 0 0 1 2 0 1 2 1 2 2 0 0 3" },
    { "", "%0 = const i8[4,2] {3,1, 0,9, 3,1, 3,0}\n %1, %2, %3, %4 = Unique(%0) {sorted=0}", "%1, %2, %3, %4",
        "0 1 3 0 0 1 0 2 2 1 1 0 3" },
    { "",
        "%0 = const f32[1,3,4] {0,0,1,1, 0,0.1,1,1.1, 0,5,1,6}\n %1 = const f32[1,1,3] {0.5,0.9,0.1}\n"
        " %2 = const i64[] {3}\n %3 = const f32[] {0.5}\n %4 = const f32[] {0}\n"
        " %5, %6 = Suppress(%0, %1, %2, %3, %4) {sizes=[3], centered=0}",
        "%5, %6", "0 0 1 0 0 2 0 0 0 2" },
    { "", "%0 = RandomUniform() {shape=[3,7], dtype=f32, seed=42}", "%0", NULL },
    { "", "%0 = RandomUniform() {shape=[9], dtype=f64, seed=-7}", "%0", NULL },
    { "%0: i64[]", "%1 = RandomUniform(%0) {shape=[9], dtype=f16, seed=1}", "%1", NULL },
    // ---- composites
    { "%0: f64[3,5]", "%1 = Softmax(%0) {axis=1}", "%1", NULL },
    { "%0: f64[3,5]", "%1 = LogSoftmax(%0) {axis=0}", "%1", NULL },
    { "%0: f16[3,5]", "%1 = Softmax(%0) {axis=1}", "%1", NULL },
    { "%0: f32[3,5,2]", "%1 = Softmax(%0) {axis=1}", "%1", NULL },
    { "", "%0 = const f32[2,3] {-inf,-inf,-inf,nan,0,1}\n %1 = Softmax(%0) {axis=1, empty=2}", "%1", "0 0 0 0 0 0" },
    { "", "%0 = const f32[2,2] {-inf,-inf,-inf,0}\n %1 = Softmax(%0) {axis=1, empty=1}", "%1", "0 0 0 1" },
    { "", "%0 = const f32[2,2] {1000,1000,-inf,0}\n %1 = Softmax(%0) {axis=1}", "%1", "0.5 0.5 0 1" },
    { "%0: f64[2,3,10], %1: u8[5,3,2], %2: f64[5,3]", "%3 = MatMulBits(%0, %1, %2) {bits=4, block=4, k=10}", "%3",
        NULL },
    { "%0: f64[9], %1: u8[5,2,2], %2: f64[5,2], %3: u8[5,2]", "%4 = MatMulBits(%0, %1, %2, %3) {bits=2, block=8, k=9}",
        "%4", NULL },
    { "%0: f64[3,4], %1: u8[5,2,2], %2: f64[5,2], %3: f64[5,2]",
        "%4 = MatMulBits(%0, %1, %2, %3) {bits=8, block=2, k=4}", "%4", NULL },
    { "%0: f64[3,8], %1: u8[5,2,2], %2: f64[5,2], %3: u8[5,2], %4 below5: i32[8]",
        "%5 = MatMulBits(%0, %1, %2, %3, %4) {bits=4, block=4, k=8}", "%5", NULL },
    { "%0: f16[3,1], %1: u8[5,1,1], %2: f16[5,1]", "%3 = MatMulBits(%0, %1, %2) {bits=4, block=2, k=1}", "%3", NULL },
    { "", "%0 = const f32[1,3] {1,2,4}\n %1 = const u8[2,2,1] {33,3,240,8}\n %2 = const f32[2,2] {1,0.5,2,1}\n"
          " %3 = MatMulBits(%0, %1, %2) {bits=4, block=2, k=3}", "%3", "-29 12" },
    { "", "%0 = const f32[2,3] {1,7,7,4,2,3}\n %1 = Hardmax(%0) {axis=1}", "%1", "0 1 0 1 0 0" },
    { "%0: f64[2,3]", "%1 = Hardmax(%0) {axis=1}\n %2 = Mul(%0, %1)", "%2", NULL },
    { "%0: f64[3,5]", "%1 = ReduceMean(%0) {axes=[1], keepdims=0}", "%1", NULL },
    { "%0 pos: f64[3,5]", "%1 = ReduceL1(%0) {axes=[1]}", "%1", NULL },
    { "%0: f64[3,5]", "%1 = ReduceL2(%0) {axes=[0], keepdims=0}", "%1", NULL },
    { "%0: f64[3,5]", "%1 = ReduceSumSquare(%0)", "%1", NULL },
    { "%0 pos: f64[3,5]", "%1 = ReduceLogSum(%0) {axes=[1], keepdims=0}", "%1", NULL },
    { "%0: f64[3,5]", "%1 = ReduceLogSumExp(%0) {axes=[0,1], keepdims=0}", "%1", NULL },
    { "", "%0 = const f32[2,2] {-inf,-inf,0,-inf}\n %1 = ReduceLogSumExp(%0) {axes=[1], keepdims=0}", "%1", "-inf 0" },
    { "%0: f64[2,3,4], %1: f64[3], %2: f64[3], %3: f64[3], %4 pos: f64[3]",
        "%5 = BatchNorm(%0, %1, %2, %3, %4) {epsilon=0.001}", "%5", NULL },
    { "%0: f64[2,3,4], %1: f64[3], %2: f64[3]", "%3, %4, %5 = BatchNormTraining(%0, %1, %2) {epsilon=0.001}",
        "%3, %4, %5", NULL },
    { "%0: f64[3,5]", "%1 = const i64[] {7}\n %2 = Dropout(%0, %1) {ratio=0.5, seed=3}\n %3 = Dropout(%0) {ratio=0.5}",
        "%2, %3", NULL },
    { "%0: f64[2,3,4], %1: f64[3,4], %2: f64[3,4]", "%3 = LayerNorm(%0, %1, %2) {axis=1, epsilon=0.01}", "%3", NULL },
    { "%0: f64[3,4], %1: f64[4]", "%2 = LayerNorm(%0, %1) {axis=1}", "%2", NULL },
    { "%0: f64[3,4], %1: f64[4]", "%2 = RMSNorm(%0, %1) {axis=1}", "%2", NULL },
    { "%0: f64[2,3,4], %1: f64[3], %2: f64[3]", "%3 = InstanceNorm(%0, %1, %2)", "%3", NULL },
    { "%0: f64[2,4,3], %1: f64[4], %2: f64[4]", "%3 = GroupNorm(%0, %1, %2) {num_groups=2}", "%3", NULL },
    { "%0: f64[1,2,7,6]", "%1 = AveragePool(%0) {kernel=[3,2], strides=[2,2], pads=[1,0,1,0]}", "%1", NULL },
    { "", "%0 = const f32[1,1,4] {1,2,3,4}\n %1 = AveragePool(%0) {kernel=[3], strides=[2], pads=[1,0], ceil_mode=1}",
        "%1", "1.5 3 4" },
    { "",
        "%0 = const f32[1,1,4] {3,3,3,3}\n"
        " %1 = AveragePool(%0) {kernel=[3], strides=[2], pads=[1,0], ceil_mode=1, count_include_pad=1}",
        "%1", "2 3 3" },
    { "%0: f64[2,4,5], %1: f64[4,2,3]",
        "%2 = ConvTranspose(%0, %1) {strides=[2], pads=[1,0], output_padding=[1], group=2}", "%2", NULL },
    { "%0: f64[1,2,3,4], %1: f64[2,3,2,3]",
        "%2 = ConvTranspose(%0, %1) {strides=[3,1], dilations=[1,2], pads=[0,3,0,2]}", "%2", NULL },
    { "", "%0 = const f32[1,1,2] {1,2}\n %1 = const f32[1,1,3] {1,10,100}\n %2 = ConvTranspose(%0, %1) {strides=[2]}",
        "%2", "1 10 102 20 200" },
    { "%0: f64[3,5]", "%1 = const i64[3] {0,4,2}\n %2 = CrossEntropy(%0, %1)", "%2", NULL },
    { "%0: f64[2,3,5]", "%1 = const i32[2,3] {0,4,2,1,1,3}\n %2 = NegativeLogLikelihood(%0, %1)", "%2", NULL },
    { "%0: f64[3,5], %1: f64[3,5]", "%2 = MeanSquaredError(%0, %1)", "%2", NULL },
    { "%0: f64[3,5], %1: f64[3,5]", "%2 = MeanAbsoluteError(%0, %1)", "%2", NULL },
    { "%0: f64[3,5], %1: f64[3,5]", "%2 = BinaryCrossEntropy(%0, %1)", "%2", NULL },
    // ---- optimizers: hyper-parameters as operands, as attributes and by default
    { "", "%0 = const f32[2] {1,2}\n %1 = const f32[2] {4,8}\n %2 = const f32[] {0.5}\n %3 = Sgd(%0, %1, %2)", "%3",
        "-1 -2" },
    { "", "%0 = const f32[2] {1,2}\n %1 = const f32[2] {4,8}\n %2 = Sgd(%0, %1) {learning_rate=0.25}", "%2", "0 0" },
    { "",
        "%0 = const f32[1] {1}\n %1 = const f32[1] {4}\n %2 = const f32[1] {8}\n"
        " %3, %4 = Momentum(%0, %1, %2) {learning_rate=0.5, momentum=0.5}",
        "%3", "-3" },
    { "",
        "%0 = const f32[1] {3}\n %1 = const f32[1] {4}\n %2 = const f32[1] {0}\n"
        " %3, %4 = Adagrad(%0, %1, %2) {learning_rate=0.5, epsilon=4}",
        "%3", "2.75" },
    // the first step grows by all of the gradient, later ones by beta of it
    { "",
        "%0 = const f32[1] {1}\n %1 = const f32[1] {4}\n %2 = const f32[1] {8}\n %3 = const f32[] {0.5}\n"
        " %4 = const i64[] {0}\n"
        "%5, %6 = OnnxMomentum(%0, %1, %2, %3, %4) {alpha=0.5, beta=0.25, norm_coefficient=2}",
        "%6", "10" },
    { "",
        "%0 = const f32[1] {1}\n %1 = const f32[1] {4}\n %2 = const f32[1] {8}\n %3 = const f32[] {0.5}\n"
        " %4 = const i64[] {1}\n"
        "%5, %6 = OnnxMomentum(%0, %1, %2, %3, %4) {alpha=0.5, beta=0.25, norm_coefficient=2}",
        "%6", "5.5" },
    // ---- loops: values captured whole, multiplied by, gathered from; carried ones that change places; a loop in a
    // loop; recurrent layers
    { "%0: f64[5,2,3], %1: f64[3,3], %2: f64[3], %3: f64[2,3]",
        "%4 = const i64[] {5}\n %20, %21 = Loop(%4, _, %3) body step(%5: i64[], %6: bool[], %7: f64[2,3]) {\n"
        "%8 = const bool[] {1}\n %9 = Gather(%0, %5) {axis=0}\n %10 = MatMul(%7, %1)\n %11 = Add(%10, %9)\n"
        " %12 = Add(%11, %2)\n %13 = Tanh(%12)\n return %8, %13, %13\n }",
        "%20, %21", NULL },
    { "%0: f64[2,4], %1: f64[2], %2: f64[2]",
        "%20, %21, %22 = Loop(_, _, %1, %2) {trips=[4]} body step(%5: i64[], %6: bool[], %7: f64[2], %8: f64[2]) {\n"
        "%9 = const bool[] {1}\n %10 = Map(%5) {expr=\"-1 - x\"}\n %11 = Gather(%0, %10) {axis=1}\n"
        " %12 = Mul(%7, %11)\n %13 = Sin(%12)\n %14 = Mul(%1, %8)\n return %9, %8, %13, %7\n }\n %23 = Mul(%20, %21)",
        "%22, %23", NULL },
    { "%0: f64[3], %1: f64[3]",
        "%30, %31 = Loop(_, _, %0) {trips=[3]} body outer(%2: i64[], %3: bool[], %4: f64[3]) {\n"
        " %5 = const bool[] {1}\n"
        "%15, %16 = Loop(_, _, %4) {trips=[2]} body inner(%6: i64[], %7: bool[], %8: f64[3]) {\n %9 = Mul(%8, %4)\n"
        " %10 = Sin(%9)\n %11 = Add(%10, %1)\n return %5, %11, %9\n }\n"
        "%17 = ReduceSum(%16) {axes=[0], keepdims=0}\n return %5, %15, %17\n }",
        "%30, %31", NULL },
    { "%0: f64[3,2,3], %1: f64[2,8,3], %2: f64[2,8,2], %3: f64[2,16], %4: f64[2,2,2], %5: f64[2,2,2], %6: f64[2,6]",
        "%7 = const i32[2] {3,1}\n %8, %9, %10 = LSTM(%0, %1, %2, %3, %7, %4, %5, %6) {direction=\"bidirectional\", "
        "activations=\"Sigmoid Tanh Tanh Sigmoid Tanh Softsign\"}",
        "%8, %9, %10", NULL },
    { "%0: f64[2,3,3], %1: f64[1,6,3], %2: f64[1,6,2], %3: f64[1,12]",
        "%8, %9 = GRU(%0, %1, %2, %3) {layout=1, activations=\"Sigmoid ScaledTanh\", activation_alpha=[0.5], "
        "activation_beta=[1.5]}",
        "%8, %9", NULL },
    { "%0: f64[4,1,3], %1: f64[1,6,3], %2: f64[1,6,2], %3: f64[1,12]",
        "%8, %9 = GRU(%0, %1, %2, %3) {linear_before_reset=1, direction=\"reverse\", activations=\"Sigmoid Tanh\"}",
        "%8, %9", NULL },
    { "%0: f64[1,2,3], %1: f64[1,2,3], %2: f64[1,2,2]", "%8, %9 = RNN(%0, %1, %2) {activations=\"Elu\"}", "%8, %9",
        NULL },
    // ---- loops that a condition ends: bounded by what is stacked, by the count; one that ends at once
    { "%0: f64[3], %1: f64[3]",
        "%20, %21 = Loop(_, _, %0) {trips=[6], early=1} body step(%2: i64[], %3: bool[], %4: f64[3]) {\n"
        " %5 = const i64[] {2}\n %6 = Less(%2, %5)\n %7 = Mul(%4, %1)\n %8 = Sin(%7)\n return %6, %8, %7\n }\n"
        " %22 = Slice(%21) {starts=[0,0], steps=[1,1], sizes=[3,3]}", "%20, %22", NULL },
    { "%0: f64[3], %1: f64[3,3]",
        "%2 = const i64[] {5}\n %3 = const f64[] {-100}\n"
        " %20 = Loop(%2, _, %0) body step(%4: i64[], %5: bool[], %6: f64[3]) {\n"
        " %7 = MatMul(%6, %1)\n %8 = Tanh(%7)\n %9 = ReduceSum(%8) {keepdims=0}\n %10 = Greater(%9, %3)\n"
        " return %10, %8\n }\n", "%20", NULL },
    { "%0: f64[3], %1: bool[]",
        "%2 = Not(%1)\n %3 = And(%1, %2)\n %4 = const i64[] {5}\n"
        " %20 = Loop(%4, %3, %0) body step(%5: i64[], %6: bool[], %7: f64[3]) {\n"
        " %8 = Mul(%7, %0)\n return %6, %8\n }\n", "%20", NULL },
    // ---- an operation of the model's own, by its formula and its gradient
    { "%0: f64[3]",
        "%1 = Custom(%0) {dtypes=[11], ranks=[1], shape=[3]} body formula(%2: f64[3]) {\n %3 = Sin(%2)\n return %3\n }"
        " body gradient(%4: f64[3], %5: f64[3], %6: f64[3]) {\n %7 = Map(%4, %6) {expr=\"cos(x) * y\"}\n"
        " return %7 \"0\"\n }",
        "%1", NULL },
    // ---- choices: either branch; what one of them has no use for; a branch that is what it captures; one in another
    { "%0: f64[3], %1: f64[3], %2: bool[]",
        "%3, %4 = If(%2) body yes() {\n %5 = Mul(%0, %1)\n %6 = Sin(%0)\n return %5, %6\n } body no() {\n"
        " %7 = Exp(%0)\n return %7, %0\n }\n %8 = Mul(%3, %1)", "%8, %4", NULL },
    { "%0: f64[3], %1: f64[3]",
        "%2 = ReduceSum(%0) {keepdims=0}\n %3 = const f64[] {100}\n %4 = Less(%2, %3)\n"
        " %20 = If(%4) body yes() {\n %5 = Greater(%2, %3)\n"
        " %6 = If(%5) body a() {\n return %1\n } body b() {\n %7 = Mul(%0, %1)\n %8 = Tanh(%7)\n return %8\n }\n"
        " %9 = Mul(%6, %6)\n return %9\n } body no() {\n %10 = Exp(%0)\n return %10\n }", "%20", NULL },
    { "%0: f64[3], %1: f64[3]",
        "%20, %21 = Loop(_, _, %0) {trips=[4]} body step(%2: i64[], %3: bool[], %4: f64[3]) {\n"
        " %5 = const bool[] {1}\n %6 = const i64[] {2}\n %7 = Less(%2, %6)\n"
        " %8 = If(%7) body yes() {\n %9 = Mul(%4, %1)\n return %9\n } body no() {\n %10 = Sin(%4)\n"
        " %11 = Add(%10, %0)\n return %11\n }\n return %5, %8, %4\n }",
        "%20, %21", NULL },
};

// What a wrong graph says
static const struct { const char *inputs, *body, *says;
} faults[] = {
    { "%0: f32[2,3]", "%1 = Reshape(%0) {shape=[7]}", "cannot reshape f32[2,3] to f32[7]" },
    { "%0: f32[2,3]", "%1 = Transpose(%0) {perm=[0,0]}", "not an order" },
    { "%0: f32[2,3]", "%1 = Expand(%0) {shape=[2,4]}", "cannot broadcast" },
    { "%0: f32[5]", "%1 = Slice(%0) {starts=[3], steps=[2], sizes=[2]}", "no slice" },
    { "%0: f32[5]", "%1 = Slice(%0) {starts=[0], steps=[4611686018427387904], sizes=[3]}", "no slice" },
    { "%0: f32[5]", "%1 = Pad(%0) {lo=[-4], hi=[-4]}", "nothing left" },
    { "%0: f32[5]", "%1 = Pad(%0) {lo=[1], hi=[1], mode=\"mirror\"}", "mirror" },
    { "%0: f32[2,3], %1: f32[3,3]", "%2 = Concat(%0, %1) {axis=1}", "cannot join" },
    { "%0: f32[2,3]", "%1 = ReduceSum(%0) {axes=[2]}", "outside 0..1" },
    { "%0: f32[2,3], %1: f32[4,2]", "%2 = MatMul(%0, %1)", "cannot multiply f32[2,3] by f32[4,2]" },
    { "%0: f32[1,32,9], %1: f32[8,64,3]", "%2 = Conv(%0, %1)", "wants 64 input channels" },
    { "%0: f32[1,1,3], %1: f32[1,1,5]", "%2 = Conv(%0, %1)", "reaches over 5" },
    { "%0: f32[1,1,3]", "%1 = WindowSum(%0) {kernel=[2], strides=[0]}", "strides must be 1 or more" },
    { "%0: f32[3], %1: f32[3]", "%2 = Gather(%0, %1) {axis=0}", "indices must be integers" },
    { "%0: f32[3], %1: i64[2], %2: f32[3]", "%3 = ScatterElements(%0, %1, %2) {axis=0}",
        "must have the shape of the indices" },
    { "%0: bool[3]", "%1 = ReduceSum(%0)", "wants numbers, not bool[3]; cast it" },
    { "%0: c64[3]", "%1 = ReduceSum(%0)",
        "wants real numbers, not c64[3]; give real and imaginary parts as tensors of their own" },
    { "", "%0 = RandomUniform() {shape=[3], dtype=i32}", "random numbers are" },
};

// Sizes n, m, h >= 3 and s are given after lowering.
static const Case sized[] = {
    { "%0: f64[n,3]", "%1 = Identity(%0)", "%1", NULL },
    { "%0: f64[n,3,5]", "%1 = Reshape(%0) {shape=[3*n,5]}\n %2 = Reshape(%1) {shape=[n,15]}", "%2", NULL },
    { "%0: f64[n,m,h,6]",
        "%1 = Reshape(%0) {shape=[n*m,h*6]}\n %2 = Reshape(%1) {shape=[n*m*h,2,3]}\n"
        " %3 = Reshape(%2) {shape=[6*h*m,n]}",
        "%3", NULL },
    { "%0: f64[n,1,h]", "%1 = Reshape(%0) {shape=[n,h,1]}\n %2 = Reshape(%1) {shape=[1,h,n]}", "%2", NULL },
    { "%0: f64[n,h,m]", "%1 = Transpose(%0) {perm=[2,0,1]}\n %2 = Reshape(%1) {shape=[m,n*h]}", "%2", NULL },
    { "%0: f64[n,1]", "%1 = Expand(%0) {shape=[m,n,h]}", "%1", NULL },
    { "%0: f64[h,5]",
        "%1 = Slice(%0) {starts=[1,0], steps=[1,2], sizes=[h-2,3]}\n"
        " %2 = Slice(%1) {starts=[0,2], steps=[1,-1], sizes=[h-2,2]}",
        "%2", NULL },
    { "%0: f64[n,h]",
        "%1 = Slice(%0) {starts=[n-1,1], steps=[-1,1], sizes=[n,h-1]}\n"
        " %2 = Slice(%1) {starts=[0,h-3], steps=[1,-1], sizes=[n,h-2]}\n"
        " %3 = Slice(%2) {starts=[n-1,h-3], steps=[1,1], sizes=[1,1]}",
        "%3", NULL },
    { "%0: f64[n,3], %1: f64[m,3], %2: f64[2,3], %3: f64[n,3]", "%4 = Concat(%0, %1, %2, %3) {axis=0}", "%4", NULL },
    { "%0: i8[2,n], %1: i8[2,2*n]", "%2 = Concat(%0, %1) {axis=1}\n %3 = Reshape(%2) {shape=[6,n]}", "%3", NULL },
    { "", "%0 = Iota() {shape=[n,h], axis=1, dtype=f32}", "%0", NULL },
    { "%0: f64[n,3,2*h]", "%1 = Shape(%0)", "%1", NULL },
    { "%0: f64[n,h]", "%1 = Pad(%0) {lo=[1,0], hi=[2,3]}\n %2 = Pad(%1) {lo=[0,-2], hi=[-1,1], interior=[1,2]}", "%2",
        NULL },
    { "%0: f64[n,h]", "%1 = Pad(%0) {lo=[0,2], hi=[0,1], mode=\"reflect\"}", "%1", NULL },
    { "%0: f64[n,4]", "%1 = Pad(%0) {lo=[3,0], hi=[2,0], mode=\"reflect\"}", "%1", NULL },
    { "%0: f64[n,h]", "%1 = Pad(%0) {lo=[2,-1], hi=[1,5], mode=\"edge\"}", "%1", NULL },
    { "%0: f64[n,h]", "%1 = Pad(%0) {lo=[4,1], hi=[2,-1], mode=\"wrap\"}", "%1", NULL },
    { "%0: f64[n,h,m]",
        "%1 = ReduceSum(%0) {axes=[0,2], keepdims=0}\n %2 = ReduceMax(%0) {axes=[1], keepdims=1}\n %3 = ReduceProd(%0)",
        "%1, %2, %3", NULL },
    { "%0: i32[n,h,2]", "%1 = ArgMax(%0) {axis=1, keepdims=0}\n %2 = ArgMin(%0) {axis=0, last=1}", "%1, %2", NULL },
    { "%0: f64[n,h]", "%1 = CumSum(%0) {axis=1}\n %2 = CumProd(%0) {axis=0, exclusive=1, reverse=1}", "%1, %2", NULL },
    { "%0: f64[n,2,h]",
        "%1 = WindowSum(%0) {kernel=[3], strides=[2], pads=[1,0]}\n %2 = WindowMax(%0) {kernel=[3]}\n"
        " %3 = WindowArgMax(%0) {kernel=[2], strides=[2], pads=[1,1], dilations=[2]}",
        "%1, %2, %3", NULL },
    { "%0: f64[n,2,h,s+2]", "%1 = WindowMax(%0) {kernel=[2,3], strides=[1,2], dilations=[2,1], pads=[1,2,0,1]}", "%1",
        NULL },
    { "%0: f64[n,h], %1: f64[h,m]", "%2 = MatMul(%0, %1)", "%2", NULL },
    { "%0: f64[h], %1: f64[n,h,3]", "%2 = MatMul(%0, %1)", "%2", NULL },
    { "%0: f64[n,1,s,5], %1: f64[m,5,h]", "%2 = MatMul(%0, %1)", "%2", NULL },
    { "%0: f64[n,3,h], %1: f64[4,3,3]", "%2 = Conv(%0, %1) {strides=[2], pads=[1,2]}", "%2", NULL },
    { "%0: f64[n,3,h,m], %1: f64[4,3,3,2]",
        "%2 = Conv(%0, %1) {strides=[2,2], same=1}\n %3 = Conv(%0, %1) {strides=[3,1], dilations=[1,2], same=2}",
        "%2, %3", NULL },
    { "%0: f64[n,2,h]",
        "%1 = WindowMax(%0) {kernel=[3], strides=[2], same=1}\n %2 = AveragePool(%0) {kernel=[3], strides=[2], same=2}",
        "%1, %2", NULL },
    { "%0: f64[n,4,h,s+3], %1: f64[6,2,3,2]",
        "%2 = Conv(%0, %1) {strides=[1,2], dilations=[1,1], pads=[1,0,2,1], group=2}", "%2", NULL },
    { "%0: f64[n,h,2], %1 below3: i64[m,3]", "%2 = Gather(%0, %1) {axis=1}\n %3 = Gather(%0, %1) {axis=0}", "%2, %3",
        NULL },
    { "%0: f64[h,3], %1 below5: i64[2,3]", "%2 = GatherElements(%0, %1) {axis=0}", "%2", NULL },
    { "%0: f64[n,h,m], %1 below5: i64[s,3,2]", "%2 = GatherND(%0, %1)", "%2", NULL },
    { "%0: f64[n,h,m], %1 below5: i64[n,4,1]", "%2 = GatherND(%0, %1) {batch_dims=1}", "%2", NULL },
    { "", "%0 = RandomUniform() {shape=[n,h], dtype=f32, seed=42}", "%0", NULL },
    { "%0: f64[n,h], %1: f64[1,h], %2: f64[n,1]", "%3 = Add(%0, %1)\n %4 = Mul(%3, %2)", "%4", NULL },
    { "%0: f64[n,h]", "%1 = Softmax(%0) {axis=1}\n %2 = LogSoftmax(%0) {axis=0}\n %3 = Hardmax(%0) {axis=1}",
        "%1, %2, %3", NULL },
    { "%0: f64[n,h,m]", "%1 = ReduceMean(%0) {axes=[0,1], keepdims=0}\n %2 = ReduceMean(%0)", "%1, %2", NULL },
    { "%0 pos: f64[n,h]",
        "%1 = ReduceL1(%0) {axes=[1]}\n %2 = ReduceL2(%0) {axes=[0], keepdims=0}\n"
        " %3 = ReduceLogSumExp(%0) {axes=[0,1]}",
        "%1, %2, %3", NULL },
    { "%0: f64[n,3,h], %1: f64[3], %2: f64[3], %3: f64[3], %4 pos: f64[3]",
        "%5 = BatchNorm(%0, %1, %2, %3, %4) {epsilon=0.001}", "%5", NULL },
    { "%0: f64[n,3,h], %1: f64[3], %2: f64[3]", "%3, %4, %5 = BatchNormTraining(%0, %1, %2) {epsilon=0.001}",
        "%3, %4, %5", NULL },
    { "%0: f64[n,m,h], %1: f64[m,h], %2: f64[m,h]", "%3 = LayerNorm(%0, %1, %2) {axis=1, epsilon=0.01}", "%3", NULL },
    { "%0: f64[n,h,4], %1: f64[4], %2: f64[4]", "%3 = LayerNorm(%0, %1, %2) {axis=2}\n %4 = RMSNorm(%0, %1) {axis=2}",
        "%3, %4", NULL },
    { "%0: f64[n,3,h], %1: f64[3], %2: f64[3]", "%3 = InstanceNorm(%0, %1, %2)", "%3", NULL },
    { "%0: f64[n,4,h,m], %1: f64[4], %2: f64[4]", "%3 = GroupNorm(%0, %1, %2) {num_groups=2}", "%3", NULL },
    { "%0: f64[n,2,h,m+2]", "%1 = AveragePool(%0) {kernel=[3,2], strides=[2,2], pads=[1,0,1,0]}", "%1", NULL },
    { "%0: f64[n,2,h]",
        "%1 = AveragePool(%0) {kernel=[2], strides=[2], ceil_mode=1}\n"
        " %2 = AveragePool(%0) {kernel=[2], strides=[2], pads=[1,1], count_include_pad=1}",
        "%1, %2", NULL },
    { "%0: f64[n,4,h], %1: f64[4,2,3]",
        "%2 = ConvTranspose(%0, %1) {strides=[2], pads=[1,0], output_padding=[1], group=2}", "%2", NULL },
    { "%0: f64[n,2,h,m], %1: f64[2,3,2,3]",
        "%2 = ConvTranspose(%0, %1) {strides=[3,1], dilations=[1,2], pads=[0,3,0,0]}", "%2", NULL },
    { "%0: f64[h,n,3], %1: f64[2,8,3], %2: f64[2,8,2], %3: f64[2,16]",
        "%8, %9, %10 = LSTM(%0, %1, %2, %3) {direction=\"bidirectional\", activations=\"Sigmoid Tanh Tanh Sigmoid "
        "Tanh Tanh\"}",
        "%8, %9, %10", NULL },
    { "%0: f64[n,h,3], %1: f64[1,6,3], %2: f64[1,6,2], %3 below5: i32[n]",
        "%8, %9 = GRU(%0, %1, %2, _, %3) {layout=1, direction=\"reverse\", activations=\"Sigmoid Tanh\"}", "%8, %9",
        NULL },
    { "%0: f64[n,h,5], %1 below5: i32[n,h]",
        "%2 = LogSoftmax(%0) {axis=2}\n %3 = NegativeLogLikelihood(%2, %1)\n %4 = CrossEntropy(%0, %1)\n"
        " %5 = MeanSquaredError(%0, %2)",
        "%3, %4, %5", NULL },
};

// ---------------------------------------------------------------- graphs
static Graph *make_graph(Arena *a, const char *inputs, const char *body, const char *result) {
    char text[2048];
    snprintf(text, sizeof text, "graph t(%s) {\n %s\n return %s\n}\n", inputs, body, result);
    return graph_parse(a, text, "case");
}

static uint32_t next_random(void) {
    static uint32_t state = 1;
    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

static double random_number(const char *name, bool real) {
    double u = (double)next_random() / (double)(1 << 24);
    if (!strcmp(name, "pos")) return 0.5 + u;
    if (!strncmp(name, "below", 5)) return floor((2 * u - 1) * atof(name + 5));
    return real ? 2 * u - 1 : floor(u * 12) - 4;
}

typedef struct Run { Arena *arena; Graph *g; Tensor **at; } Run;         // tensors by value id

static Tensor *tensor_of(const Run *r, const Value *v) { return !v ? NULL : v->data ? v->data : r->at[v->id]; }

static void fill_inputs(Run *r) {
    for (int i = 0; i < r->g->inputs.n; i++) {
        Value *v = r->g->inputs.at[i];
        Tensor *t = r->at[v->id] = tensor_new(r->arena, v->type);
        for (int64_t k = 0; k < type_count(&v->type); k++) {
            double x = random_number(v->name ? v->name : "", dtype_is_float(v->type.dtype));
            element_set(t, k, dtype_is_float(v->type.dtype) ? (Scalar){ .f = x } : (Scalar){ .i = (int64_t)x });
        }
    }
}

// Bodies see the values around them through their memo.
static void show(const Run *r, bool yes) {
    for (int i = 0; i < r->g->inputs.n; i++) r->g->inputs.at[i]->folded = yes ? r->at[r->g->inputs.at[i]->id] : NULL;
    for (Node *n = r->g->first; n; n = n->next)
        for (int i = 0; i < n->n_out; i++) n->out[i]->folded = yes ? r->at[n->out[i]->id] : NULL;
}

// By what it expands into, of constants.
static void eval_composite(const Run *r, const Node *n, Tensor *const *in, Tensor *const *out) {
    Graph *g = graph_new(r->arena, "composite", NULL);
    Value *operands[32] = { 0 };
    for (int i = 0; i < n->n_in; i++)
        if (in[i]) operands[i] = graph_const(g, in[i], NULL);
    Node *copy = graph_node(g, n->op, n->n_in, operands, n->n_out);
    copy->attrs = n->attrs;
    copy->n_attrs = n->n_attrs;
    assert_true(node_infer(copy));
    for (int i = 0; i < n->n_out; i++) {
        const Tensor *t = value_const(copy->out[i]);
        assert_non_null(t);
        memcpy(out[i]->data, t->data, (size_t)type_bytes(&t->type));
    }
}

// All nodes up to the one that makes `until` (NULL: all)
static void run_graph(Run *r, const Value *until) {
    for (Node *n = r->g->first; n; n = n->next) {
        Tensor *in[32] = { 0 }, *out[32] = { 0 };
        for (int i = 0; i < n->n_in; i++) in[i] = tensor_of(r, n->in[i]);
        for (int i = 0; i < n->n_out; i++) {
            if (!r->at[n->out[i]->id]) r->at[n->out[i]->id] = tensor_new(r->arena, n->out[i]->type);
            out[i] = r->at[n->out[i]->id];
        }
        if (n->n_bodies) show(r, true);
        if (op_table[n->op].kind == KIND_COMPOSITE) eval_composite(r, n, in, out);
        else if (!op_table[n->op].eval(n, in, out)) fail_msg("%s is not evaluated", op_table[n->op].name);
        if (n->n_bodies) show(r, false);
        if (until && until->def == n) return;
    }
}

// ---------------------------------------------------------------- lowerings, interpreted
typedef struct Point { const Run *run; const Kernel *kernel; int64_t axis[64]; } Point;

static Scalar interpret(Point *p, const Expr *e);

static Scalar interpret_load(Point *p, const Expr *e) {
    const Tensor *t = tensor_of(p->run, e->value);
    if (e->a[1] && !interpret(p, e->a[1]).i) return e->a[2] ? interpret(p, e->a[2]) : (Scalar){ .i = 0 };
    int64_t at = interpret(p, e->a[0]).i;
    if (at < 0 || at >= type_count(&t->type))
        fail_msg("load of element %lld of %lld", (long long)at, (long long)type_count(&t->type));
    return element_get(t, at);
}

static Scalar interpret_reduce(Point *p, const Expr *e) {
    DType d = e->a[0]->dtype;
    bool arg = reduce_is_arg(e->rop), min = reduce_table[e->rop].extreme == RED_MIN,
         last = reduce_table[e->rop].tie == TIE_LAST, first = true;
    int64_t extent[MAX_RANK], k[MAX_RANK] = { 0 };
    Scalar best = { .i = 0 }, acc = arg ? best : reduce_identity(e->rop, d);
    for (int i = 0; i < e->n_axes; i++) {
        extent[i] = dim_upper(p->run->g, p->kernel->axes.at[e->axes[i]].size);
        if (extent[i] == 0) return acc;
    }
    do {
        for (int i = 0; i < e->n_axes; i++) p->axis[e->axes[i]] = k[i];
        Scalar x = interpret(p, e->a[0]);
        if (!arg) acc = reduce_combine(e->rop, d, acc, x);
        else if (first || (min ? element_less(d, x, best) : element_less(d, best, x))
            || (last && !element_less(d, x, best) && !element_less(d, best, x))) {
            best = x;
            acc = interpret(p, e->a[1]);
        }
        first = false;
    } while (index_next(e->n_axes, extent, k));
    return acc;
}

static Scalar interpret(Point *p, const Expr *e) {
    switch (e->op) {
    case E_Const: return e->c;
    case E_Axis: return (Scalar){ .i = p->axis[e->c.i] };
    case E_Size: return (Scalar){ .i = dim_upper(e->graph, e->extent) };
    case E_Load: return interpret_load(p, e);
    case E_Reduce: return interpret_reduce(p, e);
    case E_Cast: return eval_cast_scalar(e->a[0]->dtype, e->dtype, e->c.i != 0, interpret(p, e->a[0]));
    case E_Select: {                                    // both sides run: loads have to be guarded by themselves
        Scalar c = interpret(p, e->a[0]), x = interpret(p, e->a[1]), y = interpret(p, e->a[2]);
        return c.i ? x : y;
    }
    default:
        return eval_op(
            e->op, e->a[0]->dtype, interpret(p, e->a[0]), e->a[1] ? interpret(p, e->a[1]) : (Scalar){ .i = 0 });
    }
}

static double tolerance(DType d) {
    return d == DT_F64 ? 1e-12 : d == DT_F32 ? 1e-5 : d == DT_BF16 ? 1e-2 : 2e-3;
}

static bool close_to(DType d, Scalar a, Scalar b, double tol) {
    if (!dtype_is_float(d)) return a.i == b.i;
    return (isnan(a.f) && isnan(b.f)) || a.f == b.f || fabs(a.f - b.f) <= tol * (1 + fabs(b.f));
}

// What node n's LowerFn says about one of its outputs.
typedef struct Lowered { Node *n; Value *v; Kernel k; Expr *idx[MAX_RANK], *e; } Lowered;

static void lower_output(const Run *r, Node *n, int out, Lowered *to) {
    Value *v = n->out[out];
    ValuePlans none = { 0 };
    const Plan p = { .arena = r->arena, .scratch = r->arena, .graph = r->g, .values = &none };
    Fusion f = { .plan = &p, .root = v, .inside = NEW_ARRAY(r->arena, bool, 2) };
    Lower l;
    *to = (Lowered){ .n = n, .v = v, .k = { .exprs = expr_pool_new(r->arena) } };
    for (Node *m = r->g->first; m; m = m->next) m->mark = m == n;
    f.inside[1] = true;
    lower_init(&l, r->arena, &to->k, &f);
    for (int i = 0; i < v->type.rank; i++) to->idx[i] = lower_axis(&l, v->type.dim[i], false);
    to->e = lower_root(&l, v, to->idx);
    assert_non_null(to->e);
    assert_int_equal(to->e->dtype, v->type.dtype);
    assert_null(f.violation);
    assert_null(l.guard);
}

// Element by element: against what the evaluator left in r->at.
static void check_lowered(const Run *r, const Lowered *l) {
    const Value *v = l->v;
    const Expr *e = l->e;
    Point p = { .run = r, .kernel = &l->k };
    int64_t at[MAX_RANK] = { 0 }, count = type_count(&v->type);
    for (int64_t o = 0; o < count; o++) {
        for (int i = 0; i < v->type.rank; i++)
            if (l->idx[i]->op == E_Axis) p.axis[l->idx[i]->c.i] = at[i];
        Scalar got = interpret(&p, e), want = element_get(r->at[v->id], o);
        if (dtype_is_small_float(e->dtype))
            got.f = (double)small_to_float(e->dtype, small_from_float(e->dtype, (float)got.f, true));
        if (!close_to(v->type.dtype, got, want, tolerance(v->type.dtype)))
            fail_msg("%s: element %lld is %g lowered, %g evaluated", op_table[l->n->op].name, (long long)o,
                dtype_is_float(e->dtype) ? got.f : (double)got.i, dtype_is_float(e->dtype) ? want.f : (double)want.i);
        index_next(v->type.rank, v->type.dim, at);
    }
}

static void check_lowering(const Run *r, Node *n, int out) {
    Lowered l;
    if (type_count(&n->out[out]->type) == 0) return;
    lower_output(r, n, out, &l);
    check_lowered(r, &l);
}

static void check_lowerings(const Run *r) {
    for (Node *n = r->g->first; n; n = n->next)
        for (int i = 0; i < n->n_out; i++)
            if (op_table[n->op].lower != lower_none) check_lowering(r, n, i);
}

// ---------------------------------------------------------------- gradients
// loss = sum of outputs times fixed random weights
static Value *make_loss(Graph *g) {
    Value *loss = NULL;
    for (int i = 0; i < g->outputs.n; i++) {
        Value *y = g->outputs.at[i];
        if (y->type.dtype != DT_F64) continue;
        Tensor *w = tensor_new(g->arena, y->type);
        for (int64_t k = 0; k < type_count(&y->type); k++) tensor_set_f(w, k, random_number("pos", true));
        Value *weighted = b_binary(g, OP_Mul, y, graph_const(g, w, NULL));
        weighted = b_reduce(g, OP_ReduceSum, weighted, y->type.rank, (int64_t[]){ 0, 1, 2, 3, 4, 5, 6, 7 }, false);
        loss = loss ? b_binary(g, OP_Add, loss, weighted) : weighted;
    }
    return loss;
}

static double loss_at(Run *r, const Value *loss, Tensor *x, int64_t k, double v) {
    tensor_set_f(x, k, v);
    run_graph(r, loss);
    return tensor_get_f(tensor_of(r, loss), 0);
}

static void check_gradient(Run *r, const Value *loss, const Value *x, const Value *dx) {
    Tensor *t = r->at[x->id];
    Tensor *grad = tensor_new(r->arena, dx->type);
    assert_true(type_equal(&dx->type, &x->type));
    memcpy(grad->data, tensor_of(r, dx)->data, (size_t)type_bytes(&dx->type));
    for (int64_t k = 0; k < type_count(&x->type); k++) {
        double at = tensor_get_f(t, k), h = 1e-5;
        double slope = (loss_at(r, loss, t, k, at + h) - loss_at(r, loss, t, k, at - h)) / (2 * h),
               got = tensor_get_f(grad, k);
        tensor_set_f(t, k, at);
        if (!(fabs(got - slope) <= 1e-6 * (1 + fabs(slope))))
            fail_msg("gradient %lld of %%%d is %g, the slope is %g", (long long)k, x->id, got, slope);
    }
}

// Room for the values that have come since.
static void extend(Run *r) {
    Tensor **more = NEW_ARRAY(r->arena, Tensor *, r->g->value_count);
    for (int i = 0; i < r->g->inputs.n; i++) more[r->g->inputs.at[i]->id] = r->at[r->g->inputs.at[i]->id];
    r->at = more;
}

static void move(Run *r, const Value *x, const Tensor *direction, double by) {
    Tensor *t = r->at[x->id];
    for (int64_t k = 0; k < type_count(&t->type); k++)
        tensor_set_f(t, k, tensor_get_f(t, k) + by * tensor_get_f(direction, k));
}

static Tensor *copy_of(const Run *r, const Value *v) {
    Tensor *t = tensor_new(r->arena, v->type);
    memcpy(t->data, tensor_of(r, v)->data, (size_t)type_bytes(&t->type));
    return t;
}

// The loss by the inputs, then the sum of these gradients, weighted.
static void check_order(Run *r, Value *loss, int n, Value *const *wrt, bool again) {
    Value *const *grads = graph_gradient(r->g, loss, n, wrt);
    assert_non_null(grads);
    r->g->outputs.n = r->g->output_names.n = 0;
    for (int i = 0; i < n; i++) graph_output(r->g, grads[i], NULL);
    Value *next = again ? make_loss(r->g) : NULL;
    extend(r);
    run_graph(r, NULL);
    check_lowerings(r);
    for (int i = 0; i < n; i++) {
        check_gradient(r, loss, wrt[i], grads[i]);
        run_graph(r, NULL);
    }
    if (again) check_order(r, next, n, wrt, false);
}

// How the outputs move along a direction, forward mode: the slope of each element.
static void check_tangents(Run *r, int n, Value *const *x) {
    Value *y[8], *v[8];
    int n_y = 0;
    const double h = 1e-5;
    for (int i = 0; i < r->g->outputs.n; i++)
        if (r->g->outputs.at[i]->type.dtype == DT_F64) y[n_y++] = r->g->outputs.at[i];
    for (int i = 0; i < n; i++) {
        Tensor *t = tensor_new(r->g->arena, x[i]->type);
        for (int64_t k = 0; k < type_count(&t->type); k++) tensor_set_f(t, k, random_number("", true));
        v[i] = graph_const(r->g, t, NULL);
    }
    Value *const *tangent = graph_tangent(r->g, n_y, y, n, x, v);
    assert_non_null(tangent);
    extend(r);
    Tensor *side[2][8];
    for (int s = 0; s < 2; s++) {
        for (int i = 0; i < n; i++) move(r, x[i], v[i]->data, s ? -2 * h : h);
        run_graph(r, NULL);
        for (int i = 0; i < n_y; i++) side[s][i] = copy_of(r, y[i]);
    }
    for (int i = 0; i < n; i++) move(r, x[i], v[i]->data, h);
    run_graph(r, NULL);
    for (int i = 0; i < n_y; i++)
        for (int64_t k = 0; k < type_count(&y[i]->type); k++) {
            double slope = (tensor_get_f(side[0][i], k) - tensor_get_f(side[1][i], k)) / (2 * h),
                   got = tensor_get_f(tensor_of(r, tangent[i]), k);
            if (isfinite(slope) && !(fabs(got - slope) <= 1e-6 * (1 + fabs(slope))))
                fail_msg("element %lld of %%%d moves by %g, the slope is %g", (long long)k, y[i]->id, got, slope);
        }
}

static bool differentiated[OP_COUNT];                   // by a case

static void mark_differentiated(const Graph *g) {
    for (const Node *n = g->first; n; n = n->next) {
        differentiated[n->op] = true;
        for (int i = 0; i < n->n_bodies; i++) mark_differentiated(n->bodies[i]);
    }
}

// Where the op table says that no gradient flows, no float goes in or none comes out.
static void check_zero(const Graph *g) {
    for (const Node *n = g->first; n; n = n->next) {
        bool in = false, out = false;
        for (int i = 0; i < n->n_in; i++) in = in || (n->in[i] && dtype_is_float(n->in[i]->type.dtype));
        for (int i = 0; i < n->n_out; i++) out = out || dtype_is_float(n->out[i]->type.dtype);
        if (op_table[n->op].kind == KIND_PRIMITIVE && op_table[n->op].grad == grad_zero && in && out)
            fail_msg("a gradient may flow through %s", op_table[n->op].name);
    }
}

static void check_gradients(Run *r) {
    Value *wrt[8];
    int n = 0;
    for (int i = 0; i < r->g->inputs.n; i++)
        if (r->g->inputs.at[i]->type.dtype == DT_F64) wrt[n++] = r->g->inputs.at[i];
    Value *loss = make_loss(r->g);
    if (!n || !loss) return;
    mark_differentiated(r->g);
    check_tangents(r, n, wrt);
    check_order(r, loss, n, wrt, true);
}

// ---------------------------------------------------------------- the cases
static void check_numbers(const Run *r, const char *expect) {
    char *end;
    for (int i = 0; i < r->g->outputs.n; i++) {
        const Tensor *t = tensor_of(r, r->g->outputs.at[i]);
        for (int64_t k = 0; k < type_count(&t->type); k++, expect = end) {
            double want = strtod(expect, &end), got = tensor_get_f(t, k);
            assert_true(end > expect);
            if (got != want && !(fabs(got - want) < 1e-6))
                fail_msg("element %lld is %g, not %g", (long long)k, got, want);
        }
    }
}

static bool has_lowering(const Node *n, const Options *o) {
    (void)o;
    return op_table[n->op].lower != lower_none;
}

// Composites that loops may be asked for: the lowering against the expansion.
static void check_kept(const Case *c) {
    static const Backend keeps = { .claims = has_lowering };
    const Options o = { .quiet = true, .machine.backend = &keeps };
    Arena *a = arena_new();
    Run r = { .arena = a, .g = make_graph(a, c->inputs, c->body, c->result) };
    bool any = false;
    assert_non_null(r.g);
    for (const Node *n = r.g->first; n; n = n->next)
        any = any || (op_table[n->op].kind == KIND_COMPOSITE && has_lowering(n, &o));
    if (any) {
        pass_expand(r.g, &o);
        r.at = NEW_ARRAY(a, Tensor *, r.g->value_count);
        fill_inputs(&r);
        run_graph(&r, NULL);
        check_lowerings(&r);
    }
    arena_free(a);
}

static void test_case(void **state) {
    const Case *c = *state;
    check_kept(c);
    Arena *a = arena_new();
    Run r = { .arena = a, .g = make_graph(a, c->inputs, c->body, c->result) };
    assert_non_null(r.g);
    r.g->evaluated = true;
    check_zero(r.g);
    for (int i = 0; i < r.g->inputs.n; i++)
        if (r.g->inputs.at[i]->type.dtype == DT_F64) mark_differentiated(r.g);
    pass_expand(r.g, NULL);
    assert_int_equal(diag_errors(), 0);
    r.at = NEW_ARRAY(a, Tensor *, r.g->value_count);
    fill_inputs(&r);
    run_graph(&r, NULL);
    if (c->expect) check_numbers(&r, c->expect);
    check_lowerings(&r);
    check_gradients(&r);
    assert_int_equal(diag_errors(), 0);
    arena_free(a);
}

// Sizes are given only after the lowerings are made.
static void check_sized(const Case *c, const DimOption *sizes, int n_sizes) {
    Arena *a = arena_new();
    Run r = { .arena = a, .g = make_graph(a, c->inputs, c->body, c->result) };
    Options o = { .quiet = true };
    assert_non_null(r.g);
    pass_expand(r.g, NULL);
    assert_int_equal(diag_errors(), 0);
    VEC(Lowered) lowered = { 0 };
    for (Node *n = r.g->first; n; n = n->next)
        for (int i = 0; i < n->n_out; i++)
            if (op_table[n->op].lower != lower_none) {
                Lowered l;
                lower_output(&r, n, i, &l);
                VEC_PUSH(a, lowered, l);
            }
    for (int i = 0; i < n_sizes; i++) {
        dim_symbol(r.g, sizes[i].name);
        VEC_PUSH(a, o.dims, sizes[i]);
    }
    pass_bind_dims(r.g, &o);
    assert_int_equal(diag_errors(), 0);
    r.at = NEW_ARRAY(a, Tensor *, r.g->value_count);
    fill_inputs(&r);
    run_graph(&r, NULL);
    for (int i = 0; i < lowered.n; i++) check_lowered(&r, &lowered.at[i]);
    arena_free(a);
}

static void test_sized(void **state) {
    static const int64_t values[][4] = { { 1, 1, 3, 1 }, { 4, 2, 5, 3 }, { 2, 3, 8, 7 }, { 5, 1, 9, 4 } };
    static const char *const names[] = { "n", "m", "h", "s" };
    const Case *c = *state;
    for (size_t i = 0; i < COUNT(values); i++) {
        DimOption sizes[4];
        for (int k = 0; k < 4; k++) sizes[k] = (DimOption){ names[k], values[i][k], values[i][k] };
        check_sized(c, sizes, 4);
    }
}

static void test_faults(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(faults); i++) {
        Arena *a = arena_new();
        Text said;
        text_init(&said, a);
        text_printf(&said, "%s", "");
        diag_capture(&said);
        make_graph(a, faults[i].inputs, faults[i].body, "%0");
        diag_capture(NULL);
        if (!diag_errors() || !strstr(said.at, faults[i].says)) fail_msg("%s says \"%s\"", faults[i].body, said.at);
        diag_reset();
        arena_free(a);
    }
}

// Mean and variance of uniform numbers, no repetition along the index, and another stream for another seed.
static void test_random_quality(void **state) {
    (void)state;
    Arena *a = arena_new();
    enum { N = 40000 };
    Run r = { .arena = a,
        .g = make_graph(a, "",
            "%0 = RandomUniform() {shape=[40000], dtype=f64, seed=3}\n"
            " %1 = RandomUniform() {shape=[40000], dtype=f64, seed=4}",
            "%0, %1") };
    r.at = NEW_ARRAY(a, Tensor *, r.g->value_count);
    run_graph(&r, NULL);
    const Tensor *x = tensor_of(&r, r.g->outputs.at[0]), *y = tensor_of(&r, r.g->outputs.at[1]);
    double mean = 0, square = 0, lag = 0, cross = 0;
    for (int64_t i = 0; i < N; i++) {
        double u = tensor_get_f(x, i) - 0.5;
        mean += u / N;
        square += u * u / N;
        lag += u * (tensor_get_f(x, (i + 1) % N) - 0.5) / N;
        cross += u * (tensor_get_f(y, i) - 0.5) / N;
    }
    assert_true(fabs(mean) < 0.006 && fabs(square - 1 / 12.0) < 0.002 && fabs(lag) < 0.002 && fabs(cross) < 0.002);
    arena_free(a);
}

// ---------------------------------------------------------------- which gradients there are
// Numbers that every function is smooth at and has a value for.
static double smooth_number(const char *op) {
    double u = random_number("pos", true);              // 0.5..1.5
    return !strcmp(op, "Acosh") ? 1 + u : !strcmp(op, "FMod") || !strcmp(op, "Mod") ? 3 * u : 0.1 + 0.5 * u;
}

// A map of operands of its expression's types, twice: of positive numbers, and of negative ones where it has values.
static void check_map(Op op, int n_in, bool negative) {
    Arena *a = arena_new();
    Run r = { .arena = a, .g = graph_new(a, "map", NULL) };
    Value *in[4];
    for (int i = 0; i < n_in; i++)
        in[i] = graph_input(r.g, NULL, type_make(op == OP_Where && !i ? DT_BOOL : DT_F64, 1, (Dim[]){ 3 }));
    Node *n = graph_node(r.g, op, n_in, in, 1);
    assert_true(node_infer(n));
    graph_output(r.g, n->out[0], NULL);
    r.at = NEW_ARRAY(a, Tensor *, r.g->value_count);
    for (int i = 0; i < n_in; i++) {
        Tensor *t = r.at[in[i]->id] = tensor_new(a, in[i]->type);
        for (int64_t k = 0; k < 3; k++) {
            double x = smooth_number(op_table[op].name);
            element_set(t, k, t->type.dtype == DT_BOOL ? (Scalar){ .i = k == 1 } : (Scalar){ .f = negative ? -x : x });
        }
    }
    run_graph(&r, NULL);
    if (n->out[0]->type.dtype != DT_F64 || isfinite(tensor_get_f(tensor_of(&r, n->out[0]), 0))) check_gradients(&r);
    differentiated[op] = true;
    arena_free(a);
}

static bool of_integers(Op op) {                        // they take no floats
    const char *name = op_table[op].name;
    return !strncmp(name, "Bitwise", 7) || !strncmp(name, "Shift", 5) || op == OP_And || op == OP_Or || op == OP_Xor
        || op == OP_Not;
}

static bool is_row(Op op) {                              // of formulas: tests/train/ has them
    static const Op rows[] = {
#define LOSS(name, ...) OP_##name,
#include "losses.def"
#undef LOSS
#define OPTIMIZER(name, ...) OP_##name,
#include "optimizers.def"
#undef OPTIMIZER
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        if (rows[i] == op) return true;
    return false;
}

// Every operation has a gradient that a case above compares with central differences, or none to flow.
static void test_gradients(void **state) {
    (void)state;
    int counts[3] = { 0 };
    for (int op = 1; op < OP_COUNT; op++) {
        const OpInfo *info = &op_table[op];
        if (info->kind == KIND_MAP && !of_integers((Op)op))
            for (int negative = 0; negative < 2; negative++) check_map((Op)op, info->in_min, negative);
        bool maps_integers = info->kind == KIND_MAP && of_integers((Op)op);
        if (op == OP_Gradient || op == OP_Tangent || maps_integers || is_row((Op)op)) continue;
        if (info->kind == KIND_PRIMITIVE && info->grad == grad_zero) counts[1]++;
        else if (info->kind == KIND_PRIMITIVE && info->grad == grad_none) fail_msg("%s has no gradient", info->name);
        else if (!differentiated[op]) fail_msg("no case differentiates %s", info->name);
        else counts[info->kind == KIND_COMPOSITE ? 2 : 0]++;
    }
    printf("%d gradients, %d of composites, %d zero\n", counts[0], counts[2], counts[1]);
}

// What the loss does not depend on gets zeros; an operation without gradient is named.
static void test_reverse(void **state) {
    (void)state;
    Arena *a = arena_new();
    Text said;
    Graph *g = make_graph(a, "%0: f32[2], %1: f32[3]",
        "%2 = ReduceSum(%0)\n %3 = ReduceSum(%2) {keepdims=0}\n %4 = Gradient(%3, %0)\n %5 = ReduceSum(%4)",
        "%3, %5");
    Value *const *grads = graph_gradient(g, g->outputs.at[0], 2, g->inputs.at);
    assert_non_null(grads);
    Tensor *zeros = value_const(grads[1]);
    assert_true(zeros && zeros->type.dim[0] == 3 && tensor_get_f(zeros, 2) == 0);
    text_init(&said, a);
    diag_capture(&said);
    assert_null(graph_gradient(g, g->outputs.at[1], 1, g->inputs.at));
    assert_null(graph_gradient(g, g->inputs.at[0], 1, g->inputs.at));
    diag_capture(NULL);
    diag_reset();
    assert_non_null(strstr(said.at, "Gradient has no gradient"));
    assert_non_null(strstr(said.at, "the loss must be one float, it is f32[2]"));
    arena_free(a);
}

// Symbolic dimensions go through the shape rules.
static void test_symbols(void **state) {
    (void)state;
    Arena *a = arena_new();
    Graph *g = make_graph(a, "%0: f32[n,3,h,8], %1: f32[4,3,3,3]",
        "%2 = Conv(%0, %1) {strides=[2,2], pads=[1,1,1,1]}\n %3 = Concat(%0, %0) {axis=0}\n"
        "%4 = Reshape(%0) {shape=[n,24*h]}\n %5 = Pad(%0) {lo=[0,0,1,0], hi=[0,0,-3,0], interior=[0,0,1,0]}",
        "%2, %3, %4, %5");
    assert_non_null(g);
    assert_string_equal(type_text(a, g, &g->outputs.at[1]->type), "f32[2*n,3,h,8]");
    assert_int_equal(g->outputs.at[0]->type.dim[3], 4);
    Dim h = g->inputs.at[0]->type.dim[2];
    assert_true(dim_equal(g, g->outputs.at[0]->type.dim[2], dim_add(g, dim_div(g, dim_sub(g, h, 1), 2), 1)));
    assert_true(dim_equal(g, g->outputs.at[3]->type.dim[2], dim_sub(g, dim_mul(g, h, 2), 3)));
    assert_int_equal(diag_errors(), 0);
    arena_free(a);
}

// A row's form agrees with its other columns.
static void test_forms(void **state) {
    (void)state;
    for (int i = 1; i < OP_COUNT; i++) {
        const OpInfo *info = &op_table[i];
        bool lowers = info->lower != lower_none, whole = info->form == FORM_CALL || info->form == FORM_SCATTER;
        if (info->form != FORM_OTHER && lowers == whole)
            fail_msg("%s: its form and its lowering contradict each other", info->name);
        if ((info->reduce != RED_NONE) != op_is_reduce((Op)i))
            fail_msg("%s: its form and its reduction contradict each other", info->name);
    }
}

// What a reduction starts from adds nothing, on either side.
static void test_identities(void **state) {
    (void)state;
    static const DType types[] = { DT_F32, DT_F64, DT_I2, DT_I8, DT_U8, DT_I32, DT_U32, DT_I64, DT_U64, DT_BOOL };
    for (int op = RED_NONE + 1; op < RED_COUNT; op++)
        for (size_t i = 0; i < COUNT(types) && !reduce_is_arg((ReduceOp)op); i++) {
            DType d = types[i];
            if (dtype_is_float(d) && !expr_rule_accepts(reduce_step((ReduceOp)op, d), d)) continue;
            for (int64_t v = 0; v < 2; v++) {
                Scalar x = dtype_is_float(d) ? (Scalar){ .f = (double)v } : (Scalar){ .i = v },
                       none = reduce_identity((ReduceOp)op, d);
                Scalar left = reduce_combine((ReduceOp)op, d, none, x),
                       right = reduce_combine((ReduceOp)op, d, x, none);
                if (left.u != x.u || right.u != x.u)
                    fail_msg("%s of %s: %lld and nothing", reduce_table[op].word, dtype_name(d), (long long)v);
            }
        }
}

int main(void) {
    static const struct CMUnitTest listed[] = {
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_identities),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_random_quality),
        cmocka_unit_test(test_reverse),
        cmocka_unit_test(test_symbols),
    };
    static struct CMUnitTest tests[COUNT(listed) + COUNT(cases) + COUNT(sized) + 1];
    memcpy(tests, listed, sizeof listed);
    for (size_t i = 0; i < COUNT(cases); i++)
        tests[COUNT(listed) + i] = (struct CMUnitTest){
            .name = cases[i].body, .test_func = test_case, .initial_state = (void *)(uintptr_t)&cases[i]
        };
    for (size_t i = 0; i < COUNT(sized); i++)
        tests[COUNT(listed) + COUNT(cases) + i] = (struct CMUnitTest){
            .name = sized[i].body, .test_func = test_sized, .initial_state = (void *)(uintptr_t)&sized[i]
        };
    tests[COUNT(tests) - 1] = (struct CMUnitTest)cmocka_unit_test(test_gradients);       // behind all cases
    return cmocka_run_group_tests(tests, NULL, NULL);
}
