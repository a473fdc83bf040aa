#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# --target vulkan --precision: kernels for matrix units, by a burncc whose matrices are emulated (tests/gpu/emulate.c),
# so that any device runs them, against those for devices without. Skips where no Vulkan device is.
plain=$(realpath "$2")                                 # a burncc that emulates nothing
source "$(dirname "$0")/tap.sh"
export BURNCC_CFLAGS=-O0

wants_gpu

python3 - "$here/.." <<'END'
import math, sys
sys.path[:0] = [sys.argv[1], sys.argv[1] + "/commands"]
from onnx_wire import FLOAT, INT64, node, tensor
from waves import write

# a convolution between others, so that what it reads and stores is of 16 bits; then another to end with
def conv(name, x, oc, k, out=8, **given):
    n, ic, h, w = x
    stride, pad, gap, group = (given.get(a, b) for a, b in (("stride", 1), ("pad", 0), ("gap", 1), ("group", 1)))
    side = lambda s: (s + 2 * pad - gap * (k - 1) - 1) // stride + 1
    nodes = [node("Tanh", ["x"], ["t"]), node("Conv", ["t", "u"], ["h"], kernel_shape=[1, 1]),
             node("Conv", ["h", "w", "b"], ["c"], kernel_shape=[k, k], strides=[stride] * 2, pads=[pad] * 4,
                  dilations=[gap] * 2, group=group), node("Relu", ["c"], ["r"]),
             node("Conv", ["r", "v"], ["y"], kernel_shape=[1, 1])]
    write(name, nodes, x, [n, out, side(h), side(w)],
          {"u": [ic, ic, 1, 1], "w": [oc, ic // group, k, k], "b": [oc], "v": [out, oc, 1, 1]})

conv("conv_window", [1, 16, 9, 9], 24, 3, pad=1)
conv("conv_strided", [2, 16, 11, 9], 24, 3, stride=2, pad=1)
conv("conv_dilated", [1, 16, 12, 10], 24, 3, pad=2, gap=2)
conv("conv_groups", [1, 32, 9, 9], 32, 3, pad=1, group=2)
conv("conv_odd", [1, 20, 9, 9], 36, 5, pad=2)           # no eight elements lie together
conv("conv_colours", [1, 3, 20, 20], 16, 7, stride=2, pad=3)
conv("conv_shares", [1, 256, 7, 7], 32, 3, pad=1)        # few blocks of many terms
conv("conv_depthwise", [1, 32, 9, 9], 32, 3, pad=1, group=32)

# windows between convolutions, so that channels lie last: their lanes
def window(name, x, node_of, side, **more):
    n, c, h, w = x
    write(name, [node("Conv", ["x", "u"], ["h"], kernel_shape=[1, 1]), node_of,
                 node("Conv", ["p", "v"], ["y"], kernel_shape=[1, 1])], x, [n, 8, side(h), side(w)],
          {"u": [c, c, 1, 1], "v": [8, c, 1, 1], **more})

window("window_max", [1, 64, 33, 31], node("MaxPool", ["h"], ["p"], kernel_shape=[3, 3], strides=[2, 2],
                                           pads=[1] * 4), lambda v: (v - 1) // 2 + 1)
window("window_depthwise", [1, 40, 17, 15], node("Conv", ["h", "w", "b"], ["p"], kernel_shape=[5, 5], strides=[2, 2],
                                                 pads=[2] * 4, group=40), lambda v: (v - 1) // 2 + 1,
       w=[40, 1, 5, 5], b=[40])

def product(name, m, k, n, **attributes):
    write(name, [node("Tanh", ["x"], ["t"]), node("Gemm", ["t", "w", "b"], ["s"], **attributes),
                 node("Relu", ["s"], ["r"]), node("MatMul", ["r", "v"], ["y"])], [m, k], [m, 16],
          {"w": [n, k] if attributes else [k, n], "b": [n], "v": [n, 16]})

# the factors as the model has them: a left one of f32
def given(name, m, k, n):
    write(name, [node("MatMul", ["x", "w"], ["s"]), node("Relu", ["s"], ["r"]), node("MatMul", ["r", "v"], ["y"])],
          [m, k], [m, 16], {"w": [k, n], "v": [n, 16]})

# heads that share keys by groups, whose queries, keys and values come of a kernel of their own
def attention(name, batch, heads, groups, t, d, banded=False):
    share = heads // groups
    sizes = {"c": [heads, groups, groups], "w1": [2], "w5": [batch, groups, share, t, d], "w4": [batch, heads, t, d],
             "w3": [batch, t, heads * d]}
    nodes = [node("Tanh", ["x"], ["h"]), node("Split", ["h", "c"], ["q", "k1", "v1"], axis=1)]
    for part in "kv":
        nodes += [node("Unsqueeze", [part + "1", "w1"], [part + "2"]), node("Expand", [part + "2", "w5"], [part + "3"]),
                  node("Reshape", [part + "3", "w4"], [part])]
    nodes += [node("Transpose", ["k"], ["t"], perm=[0, 1, 3, 2]), node("MatMul", ["q", "t"], ["p"]),
              node("Mul", ["p", "scale"], ["s"]), node("Add", ["s", "band"], ["m"]),
              node("Softmax", ["m"], ["f"], axis=-1), node("MatMul", ["f", "v"], ["o"]),
              node("Transpose", ["o"], ["u"], perm=[0, 2, 1, 3]), node("Reshape", ["u", "w3"], ["y"])]
    band = [[0.0 if j <= i or not banded else -math.inf for j in range(t)] for i in range(t)]
    write(name, nodes, [batch, heads + 2 * groups, t, d], sizes["w3"], {},
          [tensor("scale", FLOAT, [d ** -0.5]), tensor("band", FLOAT, band),
           *(tensor(n, INT64, v) for n, v in sizes.items())])

attention("attention", 1, 2, 2, 80, 32)
attention("attention_masked", 1, 6, 2, 130, 64, banded=True)
attention("attention_odd", 2, 3, 3, 37, 19)
attention("attention_wide", 1, 70, 70, 70, 128)         # 32 queries at a time
attention("attention_many", 4, 140, 140, 40, 16)        # two tiles of queries a subgroup

product("product", 40, 64, 48)
product("product_turned", 40, 64, 48, transB=1)
product("product_odd", 37, 51, 45)
product("product_shares", 40, 1024, 48)
product("product_large", 300, 72, 520)
given("product_f32", 40, 64, 48)
given("product_f32_odd", 37, 51, 45)
END
# of model $1 in $2, at most this error relative to the largest element, beside the kernels for devices without units:
# sums in another order, and so now and then another rounding on the way
compare() {
    rm -rf $1/got $1/want
    "$plain" run $1/model.onnx --input x=$1/x.npy --target vulkan --precision $2 --output $1/want >/dev/null 2>&1
    status 0 "$1 in $2" "$burncc" run $1/model.onnx --input x=$1/x.npy --target vulkan --precision $2 --output $1/got
    python3 "$here/waves.py" $1 $3
    result $? "$1 in $2 agrees with what other devices compute"
}
for model in conv_* product* attention*; do
    compare $model f16 4e-3
    compare $model bf16 3e-2
done
rm -rf conv_window/want
"$plain" run conv_window/model.onnx --input x=conv_window/x.npy --target portable --output conv_window/want >out 2>err
python3 "$here/waves.py" conv_window 2e-2
result $? "and with the portable target"

# sums over windows whose channels lie last
for model in window_max window_depthwise; do
    "$plain" run $model/model.onnx --input x=$model/x.npy --target portable --output $model/want >out 2>err
    status 0 "$model" "$burncc" run $model/model.onnx --input x=$model/x.npy --target vulkan --precision f16 \
        --output $model/got
    python3 "$here/waves.py" $model 5e-3
    result $? "$model agrees with the portable target"
    "$burncc" $model/model.onnx --target vulkan --precision f16 --dump glsl >out 2>err
    grep -q 'float sums\[[48]\];' out
    result $? "$model has lanes"
done

# records of blocks that no table has
status 0 "tune" "$burncc" tune product_shares/model.onnx --target vulkan --precision f16 --seconds 0.05 -o any.records
"$plain" run product_shares/model.onnx --input x=product_shares/x.npy --target vulkan --precision f16 \
    --output product_shares/want >out 2>err
for units in "bm=64 bn=96 bk=32 wm=32 wn=48 slices=1 halves=1 shares=2" \
    "bm=32 bn=16 bk=64 wm=16 wn=16 slices=2 halves=2 shares=1"; do
    sed -E "s/\| (units|block) bm=[^|]+/| units $units /" any.records >forced.records
    status 0 "$units" "$burncc" run product_shares/model.onnx --input x=product_shares/x.npy --target vulkan \
        --precision f16 --records forced.records --output product_shares/got
    silent warning
    python3 "$here/waves.py" product_shares 4e-3
    result $? "agrees with what other devices compute"
done
# bytes: the same integers as the portable target's
python3 "$here/products_of_bytes.py"
for model in ints*; do
    "$plain" run $model/model.onnx --input x=$model/x.npy --target portable --output $model/want >/dev/null 2>&1
    status 0 "$model" "$burncc" run $model/model.onnx --input x=$model/x.npy --target vulkan --output $model/got
    cmp -s $model/want/y.npy $model/got/y.npy
    result $? "$model: the same integers"
done
"$burncc" ints_signed/model.onnx --target vulkan -o ints_signed.c -q
grep -q '_instead2\[' ints_signed.c
result $? "bytes have kernels for matrix units"
# which form they have: windows as well, eight elements at a time, shares within the kernel
"$burncc" conv_shares/model.onnx --target vulkan --precision f16 --dump glsl >out 2>err
grep -q 'conv_c, on matrix units' out
result $? "windows go to matrix units"
grep -q 'return a_u16x8_if(' out && grep -Eq 'EACH_STEPS = \(STEPS \+ ([248]|16) - 1\)' out
result $? "eight channels at a time, in shares"
"$burncc" product/model.onnx --target vulkan --precision f16 --dump glsl >out 2>err
grep -q '^void finish4(const vec4 sums' out
result $? "four of a row are stored at once"
"$burncc" product_odd/model.onnx --target vulkan --precision f16 --dump glsl >out 2>err
grep -q '^void finish(const float acc' out
result $? "or one by one, where rows are odd"
grep -q '^uvec4 A_eight(const int i, const int n)' out && grep -q '^uvec4 B_eight(const int i, const int n)' out
result $? "eight of a row that begins anywhere at a time"
"$burncc" product_f32/model.onnx --target vulkan --precision bf16 --dump glsl >out 2>err
grep -q '^uvec4 A_eight(const int i) {' out
result $? "and eight of f32, rounded on their way"
"$burncc" attention/model.onnx --target vulkan --precision bf16 --dump glsl >out 2>err
grep -q 'MATRIX_C score' out
result $? "scores on matrix units"
# in training every product: gradients that are added to keep f32, and parameters have it
"$burncc" "$here/../../models/gpt2.c" --set layers=2 --set vocabulary=500 --set width=64 --set heads=2 \
    --dim batch=2 --dim length=32 --train --loss cross_entropy --optimizer adam --target vulkan --precision bf16 \
    --dump glsl >out 2>err
products=$(grep -Ec '^// k[0-9]+_(MatMul|lm_head): ' out)
[ "$products" -gt 20 ] && [ "$products" = "$(grep -Ec '^// k[0-9]+_(MatMul|lm_head), on matrix units: ' out)" ]
result $? "all $products products of a training step"
# and large ones of f32, in pieces: gradients beside differences
cat >pieces.c <<'END'
#include <burncc/model.h>
MODEL(net)
{
    Tensor x = input("x", F32, symbol("batch"), 192);
    x = relu(linear(x, "a", 640));
    output("scores", linear(x, "c", 192));
}
END
step="--train --loss cross_entropy --optimizer sgd --dim batch=512 --target vulkan"
status 0 "a step with pieces" "$burncc" verify pieces.c $step --gradients
"$burncc" pieces.c $step --dump glsl >out 2>err
grep -q 'uvec4 piece_of(inout Eight x)' out
result $? "which it has"
sed -e 's/symbol("batch"), 192/512, 1024/' -e 's/640/512/' pieces.c >large.c
"$burncc" large.c --target vulkan --dump glsl >out 2>err
[ "$(grep -c 'uvec4 piece_of(inout Eight x)' out)" = 1 ]
result $? "a run has one of its two products in pieces"
status 0 "without them" "$burncc" pieces.c $step --no-matrix-units --dump glsl
silent 'piece_of'
status 0 "nor of 16 bits" "$burncc" attention/model.onnx --target vulkan --precision f16 --no-matrix-units --dump glsl
silent 'fcoopmatNV'
# an infinity has no pieces, nor has what is none of a number: beside blocks of floats, row by row
cat >ends.c <<'END'
#include "net.h"
#include <burn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
enum { ROWS = 512, IN = 192, OUT = 192 };
int main(void)
{
    net_params *params = burn_gpu_memory(sizeof *params);
    float *x = malloc(sizeof(float) * ROWS * IN), *y = malloc(sizeof(float) * ROWS * OUT), *all = (float *)params;
    if (!params || !x || !y) return 1;
    for (size_t i = 0; i < sizeof *params / sizeof *all; i++) all[i] = 0.1f * sinf(0.37f * (float)i);
    for (int i = 0; i < ROWS * IN; i++) x[i] = sinf(0.7f * (float)i) * (i / IN == 9 ? 1e-37f : i / IN == 8 ? 1e30f : 1);
    x[1 * IN + 3] = INFINITY;
    x[2 * IN + 5] = -INFINITY;
    x[3 * IN + 7] = INFINITY, x[3 * IN + 90] = -INFINITY;
    x[4 * IN + 191] = NAN;
    x[5 * IN] = 3.4028235e38f;                          /* and no rounding makes an infinity of it */
    x[6 * IN + 1] = 3e38f, x[6 * IN + 2] = -3e38f;
    x[7 * IN + 1] = 1e-44f;
    const int code = net_predict(burn_gpu_memory(sizeof(net_predict_workspace)), x, params, y);
    for (int i = 0; i < 12 * OUT; i++) printf("%.9g%c", (double)y[i], (i + 1) % OUT ? ' ' : '\n');
    return code ? puts(burn_gpu_error()), 1 : 0;
}
END
for part in vulkan vulkan_steps; do
    ${CC:-cc} -O1 -c "$here/../../runtime/$part.c" -o $part.o >err 2>&1
done
for form in "" --no-matrix-units; do
    status 0 "code: $form" "$burncc" -q pieces.c $step $form -o net.c
    ${CC:-cc} -O0 -I . -I "$here/../../runtime" ends.c net.c vulkan.o vulkan_steps.o -lvulkan -pthread -lm -o ends \
        >out 2>err && ./ends >"ends$form.txt" 2>err
    result $? "runs: $form"
done
python3 - >out 2>err <<'END'
from math import isfinite
got, want = ([[float(x) for x in line.split()] for line in open(f)] for f in ("ends.txt", "ends--no-matrix-units.txt"))
odd = 0
for row, (a, b) in enumerate(zip(got, want)):
    size = max([abs(x) for x in b if isfinite(x)], default=0)
    for x, y in zip(a, b):
        odd += not isfinite(y)
        same = abs(x - y) <= 2e-6 * size if isfinite(y) else repr(x) == repr(y)
        assert same, (row, x, y, size)
assert len(got) == 12 and odd > 500, odd
END
result $? "infinities, what is no number, the largest and the smallest: $(cat err)"
status 0 "without fusion" "$burncc" attention/model.onnx --target vulkan --precision f16 --no-fuse --dump glsl
silent 'MATRIX_C score'
finish
