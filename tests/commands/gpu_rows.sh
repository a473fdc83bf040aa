#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# --target vulkan: reductions along rows, each element read once, attention in one kernel, and products of bytes,
# against the portable target. Skips where no Vulkan device is.
source "$(dirname "$0")/tap.sh"
export BURNCC_CFLAGS=-O0

wants_gpu

python3 - "$here/.." <<'END'
import math, sys
sys.path[:0] = [sys.argv[1], sys.argv[1] + "/commands"]
from onnx_wire import FLOAT, INT8, INT64, UINT8, node, tensor
from waves import write

# more elements than stay in registers, few in a row, many rows; what is added first; several axes, and columns
write("softmax_long", [node("Softmax", ["x"], ["y"], axis=-1)], [2, 20011], [2, 20011], {})
write("softmax_short", [node("LogSoftmax", ["x"], ["y"], axis=-1)], [1700, 9], [1700, 9], {})
write("norm_sum", [node("Add", ["x", "a"], ["s"]), node("LayerNormalization", ["s", "w", "b"], ["y"], axis=-1)],
      [7, 300], [7, 300], {"a": [7, 300], "w": [300], "b": [300]})
write("norm_rms", [node("Mul", ["x", "x"], ["q"]), node("ReduceMean", ["q", "i"], ["m"]),
                   node("Add", ["m", "e"], ["s"]), node("Sqrt", ["s"], ["r"]), node("Div", ["x", "r"], ["d"]),
                   node("Mul", ["d", "w"], ["y"])], [5, 3, 768], [5, 3, 768], {"w": [768]},
      [tensor("e", FLOAT, [0.001]), tensor("i", INT64, [-1])])
write("norm_group", [node("InstanceNormalization", ["x", "w", "b"], ["y"])], [2, 6, 11, 13], [2, 6, 11, 13],
      {"w": [6], "b": [6]})
write("sum_columns", [node("ReduceSum", ["x", "a"], ["y"], keepdims=0)], [301, 65], [65], {}, [tensor("a", INT64, [0])])
write("smallest", [node("ArgMin", ["x"], ["i"], axis=0, keepdims=0, select_last_index=1),
                   node("Cast", ["i"], ["y"], to=FLOAT)], [301, 65], [65], {})
# shuffles have no doubles, and sums of different lengths go by teams
write("sum_wide", [node("Cast", ["x"], ["d"], to=11), node("ReduceSum", ["d", "a"], ["s"], keepdims=0),
                   node("Cast", ["s"], ["y"], to=FLOAT)], [9, 1777], [9], {}, [tensor("a", INT64, [1])])
write("teams", [node("Split", ["x", "c"], ["p", "q"], axis=1), node("ReduceSum", ["p", "a"], ["s"], keepdims=0),
                node("ReduceSum", ["q", "a"], ["t"], keepdims=0), node("Add", ["s", "t"], ["y"])], [3, 1200], [3], {},
      [tensor("c", INT64, [500, 700]), tensor("a", INT64, [1])])

# few and long rows: parts of them, also of columns; sums that f16 has not
write("long_softmax", [node("Softmax", ["x"], ["y"], axis=-1)], [1, 98304], [1, 98304], {})
write("long_columns", [node("ReduceMax", ["x", "a"], ["y"], keepdims=0)], [40000, 3], [3], {},
      [tensor("a", INT64, [0])])
write("long_mean", [node("ReduceMean", ["x", "a"], ["m"], keepdims=1), node("Sub", ["x", "m"], ["y"])], [2, 3, 65536],
      [2, 3, 65536], {}, [tensor("a", INT64, [1, 2])])
write("long_prime", [node("ReduceMin", ["x", "a"], ["y"], keepdims=0)], [65537], [1], {}, [tensor("a", INT64, [])])

# several neighbours to a thread: what walks along with them, what stays, what begins in between
write("lanes_map", [node("Mul", ["x", "a"], ["m"]), node("Add", ["m", "b"], ["s"]), node("Sigmoid", ["s"], ["y"])],
      [4, 96, 128], [4, 96, 128], {"a": [96, 1], "b": [128]})
write("lanes_halves", [node("Softmax", ["x"], ["s"], axis=1), node("Softmax", ["s"], ["t"], axis=1),
                       node("Softmax", ["t"], ["y"], axis=1)], [2, 64, 512], [2, 64, 512], {})
write("lanes_between", [node("Slice", ["x", "from", "to", "along"], ["s"]), node("Relu", ["s"], ["r"]),
                        node("Exp", ["s"], ["e"]), node("Concat", ["r", "e"], ["y"], axis=1)], [9, 4105], [9, 8200], {},
      [tensor("from", INT64, [1]), tensor("to", INT64, [4101]), tensor("along", INT64, [1])])
write("lanes_odd", [node("Tanh", ["x"], ["y"])], [33, 1111], [33, 1111], {})

# weights of bytes and few rows: read as they are stored
def bytes_of(k, n, lo, step):
    return [[lo + (i * 37 + j * step) % 255 for j in range(n)] for i in range(k)]

for rows in 1, 3:
    write(f"bytes_columns{rows}", [node("DequantizeLinear", ["w", "s", "z"], ["d"], axis=1),
                                   node("MatMul", ["x", "d"], ["m"]), node("Add", ["m", "b"], ["y"])],
          [rows, 320], [rows, 96], {"s": [96], "b": [96]},
          [tensor("w", UINT8, bytes_of(320, 96, 0, 11)), tensor("z", UINT8, [100 + j for j in range(96)])])
    write(f"bytes_rows{rows}", [node("DequantizeLinear", ["w", "s"], ["d"], axis=0),
                                node("Transpose", ["d"], ["t"], perm=[1, 0]), node("MatMul", ["x", "t"], ["y"])],
          [rows, 320], [rows, 97], {"s": [97]}, [tensor("w", INT8, bytes_of(97, 320, -128, 5))])

for rows in 1, 5:
    write(f"bits_rows{rows}", [node("MatMulNBits", ["x", "w", "s"], ["y"], domain="com.microsoft", K=192, N=50, bits=4,
                                    block_size=32)], [rows, 192], [rows, 50], {"s": [300]},
          [tensor("w", UINT8, [bytes_of(6, 16, 0, 13 + n) for n in range(50)])], ["com.microsoft"])

# heads that share keys by groups; queries, keys and values are parts of x, of first's result where there is one; more:
# nodes from the scaled product "s" to the score "m"
def attention(name, batch, heads, groups, t, d, more=(), first=(), weights={}, turned=()):
    share = heads // groups
    sizes = {"c": [heads, groups, groups], "w1": [2], "w5": [batch, groups, share, t, d], "w4": [batch, heads, t, d],
             "w3": [batch, t, heads * d]}
    nodes = [*first, node("Split", ["h" if first else "x", "c"], ["q", "k1", "v1"], axis=1)]
    for part in "kv":
        nodes += [node("Unsqueeze", [part + "1", "w1"], [part + "2"]), node("Expand", [part + "2", "w5"], [part + "3"]),
                  node("Reshape", [part + "3", "w4"], [part])]
    nodes += [node("Transpose", ["k"], ["t"], perm=[0, 1, 3, 2]), node("MatMul", ["q", "t"], ["p"]),
              node("Mul", ["p", "scale"], ["s"]), *more, node("Softmax", ["m" if more else "s"], ["f"], axis=-1),
              node("MatMul", ["f", "v"], ["o"]), node("Transpose", ["o"], ["u"], perm=[0, 2, 1, 3]),
              node("Reshape", ["u", "w3"], ["y"])]
    write(name, nodes, [batch, heads + 2 * groups, t, d], sizes["w3"], weights,
          [tensor("scale", FLOAT, [d ** -0.5]), *(tensor(n, INT64, v) for n, v in sizes.items()), *turned])

mask = [node("Add", ["s", "band"], ["m"])]
def band(t):
    return [tensor("band", FLOAT, [[0.0 if j <= i else -math.inf for j in range(t)] for i in range(t)])]

attention("attention_odd", 2, 3, 3, 37, 19)
attention("attention_long", 1, 2, 2, 130, 64, more=mask, turned=band(130))
attention("attention_shared", 1, 6, 2, 65, 40, more=mask, turned=band(65))
attention("attention_wide", 1, 2, 1, 24, 300)
attention("attention_bias", 2, 2, 2, 40, 128, more=mask, weights={"band": [40, 40]})
attention("attention_halves", 1, 2, 2, 48, 32, first=[node("Tanh", ["x"], ["h"])], more=mask, turned=band(48))
attention("attention_huge", 1, 1, 1, 16, 1200)
END
# of it, with this precision, and at most this error relative to the largest element
compare() {
    status 0 "$1 in $2" "$burncc" run $1/model.onnx --input x=$1/x.npy --target vulkan --precision $2 --output $1/got
    python3 "$here/waves.py" $1 $3
    result $? "$1 in $2 agrees with the portable target"
}
for model in softmax_* norm_* smallest sum_columns sum_wide teams attention_* lanes_* bytes_* bits_* \
    long_*; do
    "$burncc" run $model/model.onnx --input x=$model/x.npy --target portable --output $model/want >/dev/null 2>&1
    compare $model f32 1e-5
done
compare norm_sum f16 2e-3
compare norm_rms bf16 2e-2
compare attention_halves f16 2e-3
compare attention_halves bf16 2e-2
compare lanes_halves f16 2e-3
compare lanes_halves bf16 2e-2
compare bytes_columns3 f16 2e-3
compare long_softmax f16 2e-3

for model in odd long shared wide bias halves; do
    status 0 "attention_$model" "$burncc" attention_$model/model.onnx --target vulkan --dump plan
    says '^  attention '
done
status 0 "16 bits" "$burncc" attention_halves/model.onnx --target vulkan --precision f16 --dump glsl
says 'burn_f16x4_to_f32\(a_u16x4'
status 0 "keys behind a query" "$burncc" attention_long/model.onnx --target vulkan --dump glsl
says 'stop = max\(stop, min\(int\(last_key\('
status 0 "heads longer than a block has room for" "$burncc" attention_huge/model.onnx --target vulkan --dump plan
says '^  (gemm|product) '
silent '^  attention '

status 0 "shaders of teams" "$burncc" teams/model.onnx --target vulkan --dump glsl
says '^shared float part_f32'
status 0 "shaders of rows" "$burncc" softmax_long/model.onnx --target vulkan --dump glsl
says 'with shuffles'
says 'subgroupShuffleXor'
grep -c 'a_f32\[at1' out | grep -qx 2                       # in each of the two forms
result $? "the text reads an element of a softmax once"
status 0 "shaders of norms" "$burncc" norm_rms/model.onnx --target vulkan --dump glsl
grep -c ' = a_f32\[at' out | grep -qx 2
result $? "the text reads an element of a norm once"
lanes() { # MODEL LANES KERNELS OPTIONS: so many of its kernels have so many lanes
    status 0 "shaders of $1" "$burncc" $1/model.onnx --target vulkan --dump glsl "${@:4}"
    grep -c "lane < $2;" out | grep -qx $3
    result $? "$3 have $2 lanes"
}
for model in long_softmax long_columns long_mean; do
    status 0 "plan of $model" "$burncc" $model/model.onnx --target vulkan --dump plan
    says '^  loop .* r2(048|500)( [0-9]+)?\]$'              # a part
done
lanes lanes_map 4 1
lanes lanes_halves 8 4 --precision f16
lanes lanes_odd 4 0
for model in bytes_*; do
    status 0 "shaders of $model" "$burncc" $model/model.onnx --target vulkan --dump glsl
    grep -c '^// k' out | grep -qx 1 && grep -q 'w_u8x4\[' out
    result $? "one kernel reads four bytes at once"
done
status 0 "shaders of bits" "$burncc" bits_rows5/model.onnx --target vulkan --dump glsl
says 'w_u8x2\['
status 0 "shaders of wide sums" "$burncc" sum_wide/model.onnx --target vulkan --dump glsl
silent subgroup

# ---- products of bytes: the same integers, by words of four, with the device's dot products and without
python3 "$here/products_of_bytes.py"
for model in ints*; do
    "$burncc" run $model/model.onnx --input x=$model/x.npy --target portable --output $model/want >/dev/null 2>&1
    status 0 "$model" "$burncc" run $model/model.onnx --input x=$model/x.npy --target vulkan --output $model/got
    cmp -s $model/want/y.npy $model/got/y.npy
    result $? "$model: the same integers"
done
for model in ints ints_odd ints_window ints_row; do
    BURN_VK_PLAIN=1 status 0 "$model without dot products" "$burncc" run $model/model.onnx --input x=$model/x.npy \
        --target vulkan --output $model/got
    cmp -s $model/want/y.npy $model/got/y.npy
    result $? "$model: the same integers"
    status 0 "shaders of $model" "$burncc" $model/model.onnx --target vulkan --dump glsl
    says '^int dot4\('
done
for model in ints_window ints_strided ints_scores; do
    status 0 "plan of $model" "$burncc" $model/model.onnx --target vulkan --dump plan
    silent '^  loop .* r[0-9]+ .*r[0-9]+\]$'
done

# ---- values that are called as what hands a kernel over
cat >names.txt <<'END'
graph g(%0 kernel: f32[n,8], %1 groups: f32[n,8], %2 instead: f32[n,8]) {
  %3 = Mul(%0, %1)
  %4 = Sub(%3, %2)
  %5 = Exp(%4)
  %6 = Transpose(%5) {perm=[1,0]}
  return %4 points, %5 each, %6 operands
}
END
status 0 "names" "$burncc" names.txt --target vulkan --dim n=1..9 -o names.c --quiet
status 0 "they do not meet its locals" ${CC:-cc} -std=c99 -Wall -Wextra -Werror -fsyntax-only \
    -I"$here/../../runtime" names.c

# ---- what a run is made of: copies of an output that is large beside the work
status 0 "bench" "$burncc" bench softmax_short/model.onnx --target vulkan --seconds 0.2
says '^median_ms=[0-9.e-]+ min_ms=[0-9.e-]+ device_ms=[0-9.e-]+ copies_ms=[0-9.e-]+ host_ms=[0-9.e-]+ gflops='
BURN_VK_STAGING=1 status 0 "bench, staged" "$burncc" bench softmax_long/model.onnx --target vulkan --seconds 0.2 --json
python3 -c 'import json
o = json.load(open("out"))
parts = o["device_ms"] + o["copies_ms"] + o["host_ms"]
assert o["device_ms"] > 0 and parts >= 0.99 * o["median_ms"], o'
result $? "parts of the median"
finish
