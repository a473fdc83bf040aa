#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# --target vulkan: small models against their recorded outputs, and kernels with tiles and teams against the portable
# target; files, diagnostics. Skips where no Vulkan device is.
source "$(dirname "$0")/tap.sh"
export BURNCC_CFLAGS=-O0

wants_gpu

python3 "$here/../small/run.py" --burncc "$burncc" --only-write small >out 2>err
result $? "small models"
tried=0
for model in small/*/; do
    status 0 "$model" "$burncc" verify "$model/model.onnx" --target vulkan --rtol 1e-5 --atol 1e-6
    # 16 bits between kernels: within the ULP that verify allows them; every eighth model, of either kind by turns
    case $((tried++ % 16)) in 3) precision=f16 ;; 11) precision=bf16 ;; *) continue ;; esac
    case $model in *halves_*) continue ;; esac              # integers of more digits than such floats have
    "$burncc" verify "$model/model.onnx" --target vulkan --precision $precision >out 2>err
    got=$?
    # 16 bits are for lists of kernels, and what C computes takes none
    grep -Eq 'control on the host|this is computed on the host, whose kernels do not read' out err && got=0
    result $got "$model in $precision"
done

status 2 "f16 elsewhere" "$burncc" scores.onnx --precision f16 -o scores.c
says '--precision f16 is for --train, --target vulkan or targets without an operating system, not for --target generic'

python3 - "$here/.." <<'END'
import sys
sys.path[:0] = [sys.argv[1], sys.argv[1] + "/commands"]
from onnx_wire import FLOAT, INT32, INT64, UINT8, node, tensor
from waves import nest, wave, write

# a template's block for each size of a product, with a bias and relu after it; four elements at once and one by one;
# factors that are turned; batches; a product whose terms are shared out
write("gemm", [node("Gemm", ["x", "w", "b"], ["h"]), node("Relu", ["h"], ["y"])], [256, 64], [256, 256],
      {"w": [64, 256], "b": [256]})
for name, m, k, n in (("product_odd", 33, 50, 71), ("product_sliced", 1010, 20, 1022),
                      ("product_square", 2040, 16, 1030), ("product_tall", 2048, 20, 2050),
                      ("product_large", 1186, 16, 1310), ("product_long", 250, 2048, 64)):
    write(name, [node("MatMul", ["x", "w"], ["h"]), node("Relu", ["h"], ["y"])], [m, k], [m, n], {"w": [k, n]})
write("product_turned", [node("Gemm", ["x", "w"], ["y"], transA=1, transB=1)], [48, 36], [36, 30], {"w": [30, 48]})
write("product_gram", [node("Transpose", ["x"], ["t"], perm=[0, 2, 1]), node("MatMul", ["x", "t"], ["y"])],
      [3, 37, 64], [3, 37, 37], {})
# a table of rows that a product reads turned: stored once
table = nest(wave(700 * 400, 0.7), [700, 400])
write("tied", [node("Cast", ["x"], ["i"], to=INT64), node("Gather", ["t", "i"], ["e"]),
               node("MatMul", ["e", "u"], ["y"])], [5], [5, 700], {"t": [700, 400]},
      [tensor("u", FLOAT, [list(row) for row in zip(*table)])])
# tiles of 4 x 7, two sums in one kernel, padding
nodes = [node("Conv", ["x", "w"], ["h"], pads=[1, 1, 1, 1]), node("Conv", ["x", "v"], ["s"])]
write("conv", nodes + [node("Add", ["h", "s"], ["y"])],
      [1, 64, 28, 28], [1, 96, 28, 28], {"w": [96, 64, 3, 3], "v": [96, 64, 1, 1]})
# products too: strides, dilation, padding, groups; one and three axes of space, several images, a part of a
# concatenation, and more rows than columns
for name, x, w, out, more in (
        ("conv_strided", [2, 5, 23, 29], [19, 5, 5, 3], [2, 19, 12, 8],
         {"strides": [2, 3], "dilations": [1, 2], "pads": [2, 1, 2, 0]}),
        ("conv_groups", [1, 24, 13, 11], [36, 8, 3, 3], [1, 36, 13, 11], {"group": 3, "pads": [1, 1, 1, 1]}),
        ("conv_1d", [3, 16, 50], [24, 16, 4], [3, 24, 47], {}),
        ("conv_3d", [1, 3, 7, 9, 8], [16, 3, 3, 3, 3], [1, 16, 5, 7, 6], {}),
        ("conv_shares", [1, 256, 7, 7], [40, 256, 3, 3], [1, 40, 7, 7], {"pads": [1, 1, 1, 1]})):
    write(name, [node("Conv", ["x", "w"], ["h"], **more), node("Relu", ["h"], ["y"])], x, out, {"w": w})
write("conv_part", [node("Conv", ["x", "w"], ["h"], pads=[1, 1, 1, 1]), node("Concat", ["x", "h"], ["y"], axis=1)],
      [2, 24, 9, 9], [2, 44, 9, 9], {"w": [20, 24, 3, 3]})
# products of few rows, or columns: weights that lie along the columns or along the terms, sizes that fill no vector,
# terms in shares, batches, a factor that is turned; weights of 8 and 4 bits, with a scale of each column or block
rows = lambda *n: list(n) + [node("Relu", ["h"], ["y"])]
write("rows_aligned", rows(node("Gemm", ["x", "w", "b"], ["h"])), [1, 700], [1, 336], {"w": [700, 336], "b": [336]})
write("rows_terms", [node("MatMul", ["x", "w"], ["y"])], [3, 701], [3, 44], {"w": [701, 44]})
write("rows_odd", rows(node("Gemm", ["x", "w", "b"], ["h"], transB=1)), [5, 700], [5, 333],
      {"w": [333, 700], "b": [333]})
write("rows_long", [node("Gemm", ["x", "w"], ["y"], transB=1)], [1, 4096], [1, 19], {"w": [19, 4096]})
write("rows_turned", [node("Gemm", ["x", "w"], ["y"], transA=1, transB=1)], [48, 4], [4, 30], {"w": [30, 48]})
write("rows_columns", [node("MatMul", ["x", "w"], ["y"])], [400, 64], [400, 3], {"w": [64, 3]})
write("rows_batch", [node("MatMul", ["x", "w"], ["y"])], [6, 2, 40], [6, 2, 52], {"w": [6, 40, 52]})
for name, bits in (("rows_bytes", 8), ("rows_bits", 4)):
    q = [[[(37 * i + 11 * j + 5 * k * k) % 256 for k in range(4 * bits)] for j in range(4)] for i in range(66)]
    write(name, [node("MatMulNBits", ["x", "q", "s"], ["y"], "com.microsoft", N=66, K=128, block_size=32, bits=bits)],
          [2, 128], [2, 66], {"s": [66, 4]}, [tensor("q", UINT8, q)], ["com.microsoft"])
# a row of outputs from a long sum that is none of products: teams of neighbouring points, sizes that fill no workgroup
write("distances", [node("Sub", ["x", "w"], ["d"]), node("Abs", ["d"], ["a"]),
                    node("ReduceSum", ["a", "axes"], ["y"], keepdims=0)], [700, 1], [333], {"w": [700, 333]},
      [tensor("axes", INT64, [0])])
# teams of neighbouring ranks: two reductions, then the row
write("softmax", [node("Softmax", ["x"], ["y"], axis=-1)], [5, 1000], [5, 1000], {})
write("norm", [node("LayerNormalization", ["x", "w", "b"], ["y"], axis=-1)], [7, 300], [7, 300],
      {"w": [300], "b": [300]})
write("total", [node("ReduceMean", ["x"], ["y"], keepdims=0)], [37, 1003], [], {})
write("largest", [node("ArgMax", ["x"], ["i"], axis=1, keepdims=0), node("Cast", ["i"], ["y"], to=FLOAT)],
      [9, 401], [9], {})
# numbers below zero, widened and then compared
write("widened", [node("Cast", ["x"], ["i"], to=INT32), node("Cast", ["i"], ["l"], to=INT64),
                  node("Abs", ["l"], ["a"]), node("Less", ["l", "a"], ["c"]), node("Add", ["l", "a"], ["s"]),
                  node("Where", ["c", "s", "l"], ["w"]), node("Cast", ["w"], ["y"], to=FLOAT)], [500], [500], {})
# more points than one row of workgroups takes
write("rows", [node("Relu", ["x"], ["y"])], [4200, 1001], [4200, 1001], {})
END
# more weights than every device lets a kernel see at once: in two windows
cat >windows.c <<'END'
#include <burncc/model.h>
MODEL(windows)
{
    Tensor x = input("x", F32, 1, 4320), h = relu(linear(x, "a", 4200));
    output("y", linear(linear(h, "b", 4320), "c", 10));
    output("z", add(sum(reshape(x, 10, 432), 0), parameter("d", (432), .init = init_normal(0, 1))));
}
END
status 0 "more weights than a kernel sees" "$burncc" windows.c --target vulkan -o windows_out.c
[ "$(grep -c '^    {[0-9]*, [0-9]*},$' windows_out.c)" = 2 ]
result $? "have two windows"
python3 - <<'END'
import math, pathlib, struct
head = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 4320), }"
head += " " * (63 - (len(head) + 10) % 64) + "\n"
pathlib.Path("windows.npy").write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode()
                                        + struct.pack("<4320f", *(math.sin(0.013 * i) for i in range(4320))))
END
mkdir windows
for target in portable vulkan; do
    status 0 "they run: $target" "$burncc" run windows.c --input x=windows.npy --target $target --output windows/$target
done
python3 - <<'END'
import array, pathlib
for name, count in ("y", 10), ("z", 432):
    want, got = (array.array("f", pathlib.Path(f"windows/{t}/{name}.npy").read_bytes()[-4 * count:])
                 for t in ("portable", "vulkan"))
    assert max(abs(a - b) for a, b in zip(want, got)) <= 1e-5 * max(map(abs, want)), (name, want[:4], got[:4])
END
result $? "as the portable target's"
rm -r windows*
# of it, with this precision, and at most this error relative to the largest element
compare() {
    status 0 "$1 in $2" "$burncc" run $1/model.onnx --input x=$1/x.npy --target vulkan --precision $2 --output $1/got
    python3 "$here/waves.py" $1 $3
    result $? "$1 in $2 agrees with the portable target"
}
for model in gemm product_* tied conv conv_* rows_* distances softmax norm total largest widened rows; do
    "$burncc" run $model/model.onnx --input x=$model/x.npy --target portable --output $model/want >/dev/null 2>&1
    compare $model f32 1e-5
done
# weights and what two kernels hand over are rounded, by 2^-11 or 2^-8; these sums are smaller than their terms
for model in gemm product_odd product_long conv rows_odd rows_bytes; do
    compare $model f16 1e-2
    compare $model bf16 8e-2
done

status 0 "shaders" "$burncc" gemm/model.onnx --target vulkan --dump glsl
says '^shared vec4 pool'
status 0 "shaders for matrix units" "$burncc" gemm/model.onnx --target vulkan --precision bf16 --dump glsl
says 'on matrix units'
says 'coopMatMulAddNV'
says '^uvec4 A_eight\(const int i\)'                           # an input in f32, eight at once along its rows
status 0 "shares of a product" "$burncc" product_long/model.onnx --target vulkan --dump plan
says 'gemm k0_matmul_h \[16 250 64\]'
status 0 "a table that is read turned" "$burncc" tied/model.onnx --target vulkan -o tied.c
grep -q 'weights: the 1120064 bytes' tied.h
result $? "is stored once"
for model in conv_strided conv_groups conv_1d conv_3d conv_shares conv_part; do
    status 0 "$model is a product" "$burncc" $model/model.onnx --target vulkan --dump plan
    says '^  product '
done
status 0 "shaders of shares" "$burncc" conv_shares/model.onnx --target vulkan --dump glsl
says 'atomicAdd\(counts'
says 'counts\[counts_at \+ \(block\)\] = 0u;'
for model in rows_*; do
    "$burncc" $model/model.onnx --target vulkan --dump glsl >out 2>err
    grep -q '^const int EACH = ' out
    result $? "$model is a product of few rows"
done
"$burncc" rows_bytes/model.onnx --target vulkan --dump glsl | grep -q 'uint w_u8x4\[\]'
result $? "bytes are read four at a time"
"$burncc" rows_odd/model.onnx --target vulkan --precision f16 --dump glsl | grep -q 'vec4 A4_at'
result $? "and rows of halves"
absent gemm.c model.c
status 0 "files" "$burncc" gemm/model.onnx --target vulkan -o gemm.c
status 0 "C99 without warnings" ${CC:-cc} -std=c99 -Wall -Wextra -Wconversion -Wshadow -pedantic -Werror -c gemm.c \
    -o gemm.o
echo '#include "runtime/vulkan.h"
#include "gemm.h"
int main() { return gemm_program.input_count - 1; }' >caller.cc
status 0 "the headers in C++" ${CXX:-c++} -std=c++11 -Wall -Wextra -pedantic -Werror -I. -I"$here/../.." \
    -fsyntax-only caller.cc
# ---- what --report says of the device's memory is what the runtime takes
cat >count.c <<'END'
#include "used.h"
#include <burn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(void)
{
    burn_vk *vk;
    burn_vk_session *session;
    uint64_t now, most;
    const burn_tensor_info *in = &used_program.inputs[0].tensor, *out = &used_program.outputs[0].tensor;
    int64_t sizes[2][8];
    burn_tensor x = { .dtype = in->dtype, .rank = in->rank, .shape = sizes[0], .bytes = in->bytes },
                y = { .dtype = out->dtype, .rank = out->rank, .shape = sizes[1], .bytes = out->bytes };
    memcpy(sizes[0], in->shape, (size_t)in->rank * 8);
    memcpy(sizes[1], out->shape, (size_t)out->rank * 8);
    x.data = calloc(1, x.bytes);
    y.data = calloc(1, y.bytes);
    if (burn_vk_open(&vk, NULL) || burn_vk_load(vk, &used_program, used_weights, &session)) return 1;
    if (burn_vk_run(session, &x, &y)) return 2;
    burn_vk_memory(vk, &now, &most);
    printf("%llu\n", (unsigned long long)most);
    burn_vk_session_free(session);
    burn_vk_close(vk);
    return 0;
}
END
for model in gemm conv_shares; do
    status 0 "memory of $model" "$burncc" $model/model.onnx --target vulkan --report -o used.c
    shared=$(sed -n 's/^  peak of one workspace: \([0-9]*\) bytes.*/\1/p' out)
    staged=$(sed -n 's/^  elsewhere \([0-9]*\),.*/\1/p' out)
    ${CC:-cc} -O1 -I . -I "$here/../../runtime" count.c used.c "$here/../../runtime/vulkan.c" -lvulkan -pthread \
        -o count >out 2>err && BURN_VK_STAGING=1 ./count >out 2>err
    [ -n "$staged" ] && [ "$(cat out)" = "$staged" ]
    result $? "where it is staged: $staged, $(cat out)"
    ./count >out 2>err                                      # where the device has memory that the host does not reach
    [ "$(cat out)" = "$shared" ] || [ "$(cat out)" = "$staged" ]
    result $? "where it is shared: $shared, $(cat out)"
done
# ---- C++
status 0 "digits" "$burncc" "$here/../../models/digits/digits.onnx" --target vulkan -o digits_gpu.c --quiet
for part in digits_gpu.c "$here/../../runtime/vulkan.c"; do
    ${CC:-cc} -O1 -c -I"$here/../../runtime" "$part" -o "cc_$(basename "$part" .c).o" || exit 1
done
for cxx in g++ clang++; do
    for std in 17 20; do
        echo 'int main() {}' | $cxx -std=c++$std -x c++ - -o empty 2>err || continue
        status 0 "burn::vk, $cxx, C++$std" $cxx -std=c++$std -Wall -Wextra -Wpedantic -Wshadow -Werror -O1 -I. \
            -I"$here/../../runtime" "$here/gpu.cc" cc_digits_gpu.o cc_vulkan.o -lvulkan -pthread -o cc_gpu
        status 0 "runs, $cxx, C++$std" ./cc_gpu "$here/../../models/digits/images/7.pgm"
        says '^no Vulkan device is called "no such device"'
    done
done
cp gemm.c first.c
"$burncc" gemm/model.onnx --target vulkan -o gemm.c
cmp -s gemm.c first.c
result $? "the same bytes again"
status 0 "control on the host" "$burncc" small/lstm_step/model.onnx --target vulkan -o lstm.c
status 0 "C99 without warnings" ${CC:-cc} -std=c99 -Wall -Wextra -Wconversion -Wshadow -pedantic -Werror -c lstm.c \
    -o lstm.o
status 0 "its shaders" "$burncc" small/suppression/model.onnx --target vulkan --dump glsl
says ': on the host$'
finish
