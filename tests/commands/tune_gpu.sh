#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# burncc tune --target vulkan, and --records there: blocks are measured and written, records are obeyed with the same
# numbers, and what cannot be obeyed is said. Skips where no Vulkan device is.
source "$(dirname "$0")/tap.sh"
export BURNCC_CFLAGS=-O0

wants_gpu

# a product in a loop nest (a convolution), a matrix product, and a product of few rows
python3 - "$here" <<'END'
import sys
sys.path[:0] = [sys.argv[1]]
from waves import write
from onnx_wire import FLOAT, node
write("three", [node("Conv", ["x", "w"], ["h"], pads=[1, 1, 1, 1]), node("Relu", ["h"], ["r"]),
                node("MatMul", ["r", "v"], ["s"]), node("ReduceMax", ["s"], ["p"], axes=[2, 3], keepdims=0),
                node("MatMul", ["p", "u"], ["y"])],
      [1, 24, 20, 20], [1, 100], {"w": [40, 24, 3, 3], "v": [20, 48], "u": [40, 100]})
# what is not zero, only the run knows
write("host", [node("MatMul", ["x", "w"], ["h"]), node("NonZero", ["h"], ["i"]), node("Cast", ["i"], ["f"], to=FLOAT),
               node("ReduceMax", ["f"], ["y"], axes=[1], keepdims=0)], [40, 64], [2], {"w": [64, 48]})
END
model=three/model.onnx run="run three/model.onnx --input x=three/x.npy"
# of the largest element, which is a thirtieth of the terms it is summed from: f32 is off by 1e-5 on any target
close() { # FOLDER and the most that it may be off, of the largest element
    python3 - $1 $2 <<'END'
import array, pathlib, sys
want, got = (array.array("f", pathlib.Path(f"{d}/y.npy").read_bytes()[-400:]) for d in ("plain", sys.argv[1]))
assert max(abs(a - b) for a, b in zip(want, got)) <= float(sys.argv[2]) * max(map(abs, want)), (want, got)
END
    result $? "$1 has the same numbers"
}

# ---- measuring
status 0 "tune" "$burncc" tune $model --target vulkan --seconds 0.1 -o three.records --report
says '^kernels=3 measured=3 model_ms=[0-9.e-]+ tuned_ms=[0-9.e-]+ records=three.records$'
says '^[0-9.e-]+ +[+-][0-9.]+ %  product [^|]+ \| product bm=[^|]* shares=[0-9]+$'
[ "$(grep -Ec '^vulkan:[^|]+ \| (product|block|rows) [^|]+ \| (product|block|rows) [^|]+ \| [0-9.e-]+ ms, model ' \
    three.records)" = 3 ]
result $? "a record each"
cp three.records before.records
status 0 "what is known" "$burncc" tune $model --target vulkan --seconds 0.1 -o three.records
says 'measured=0'
cmp -s three.records before.records
result $? "stays"
sed -i '/| rows /d' three.records
status 0 "one is missing" "$burncc" tune $model --target vulkan --seconds 0.1 -o three.records
says 'kernels=3 measured=1 '
status 0 "in 16 bits" "$burncc" tune $model --target vulkan --precision f16 --seconds 0.1 -o three.records
says 'kernels=3 measured=3 '
[ "$(wc -l <three.records)" = 7 ]
result $? "has records of its own"
status 0 "those found" "$burncc" $run --target vulkan --records three.records --output tuned
status 0 "the cost model's" "$burncc" $run --target vulkan --output plain
close tuned 1e-4
status 0 "nothing to tune" "$burncc" tune scores.onnx --target vulkan --seconds 0.1 -o none.records
says 'nothing to measure'
BURN_VK_DEVICE=absent status 1 "no device" "$burncc" tune $model --target vulkan -o none2.records
says 'tune measures on a GPU, but no Vulkan device is called "absent"'
absent none2.records

# ---- obeying: one block after another
force() { # NAME PRODUCT BLOCK ROWS
    sed -E "s/\| product bm=[^|]+/| product $2 /; s/\| block bm=[^|]+/| block $3 /; \
        s/\| rows across=[^|]+/| rows $4 /" before.records >$1.records
}
each=0
while read -r bm bn bk tm tn slices stages shares gm gn gk gtm gtn gslices across along of; do
    name=forced$((each++))
    product="bm=$bm bn=$bn bk=$bk tm=$tm tn=$tn slices=$slices stages=$stages shares=$shares"
    block="bm=$gm bn=$gn bk=$gk tm=$gtm tn=$gtn slices=$gslices" rows="across=$across along=$along shares=$of"
    force $name "$product" "$block" "$rows"
    status 0 "$name" "$burncc" $model --target vulkan --records $name.records -o three.c --report
    [ "$(grep -c '(from records)$' out)" = 3 ]
    result $? "three from records"
    silent warning
    says "product $product \(from records\)"
    says "block $block \(from records\)"
    says "rows $rows \(from records\)"
    status 0 "$name runs" "$burncc" $run --target vulkan --records $name.records --output $name
    close $name 1e-4
done <<'END'
128 128 16 8 8 1 1 1  128 64 16 8 4 1  128 1 1
64 32 8 4 8 4 2 4  32 128 4 4 4 1  2 64 1
32 32 4 8 8 8 1 3  64 64 32 8 8 1  64 4 2
END
"$burncc" $model --target vulkan --records forced1.records --dump glsl >out 2>err
grep -Fq 'local_size_x = (64 / 4) * (32 / 8) * 4)' out && grep -Fq 'local_size_x = (32 / 4) * (128 / 4) * 1)' out \
    && grep -Fq 'local_size_x = 2 * 64)' out
result $? "the shaders are of these blocks"
status 0 "in training" "$burncc" $model --train --loss mse --target vulkan --records forced1.records -o trained.c
status 0 "beside another precision" "$burncc" $model --target vulkan --precision bf16 --records forced1.records \
    -o three.c --report
silent 'from records'
# matrix units: the block is in the module that takes them; elsewhere it has no effect
units="units bm=32 bn=64 bk=64 wm=32 wn=32 slices=4 halves=1 shares=1"
grep '| block .*precision=f16' three.records \
    | sed "s/^/burncc-records 1\n/; s/| [a-z]* bm=[^|]*/| $units /" >units.records
status 0 "matrix units" "$burncc" $model --target vulkan --precision f16 --records units.records -o three.c --report
says "$units \(from records\)"
"$burncc" $model --target vulkan --precision f16 --records units.records --dump glsl >out 2>err
grep -Fq 'local_size_x = 32 * (32 / 32) * (64 / 32) * 4)' out
result $? "their shader is of this block"
status 0 "it runs" "$burncc" $run --target vulkan --precision f16 --records units.records --output halves
close halves 1e-2

# ---- what does not fit, and whose records they are
force stale "bm=128 bn=128 bk=64 tm=4 tn=4 slices=8 stages=2 shares=1" "bm=64 bn=64 bk=16 tm=4 tn=4 slices=1" \
    "across=3 along=16 shares=1"
status 0 "what does not fit" "$burncc" $model --target vulkan --records stale.records -o three.c --report
[ "$(grep -Ec "^stale.records:[0-9]+: warning: '(product bm=128|rows across=3) .*' does not fit " err)" = 2 ]
result $? "is said"
says 'block bm=64 bn=64 bk=16 tm=4 tn=4 slices=1 \(from records\)'
[ "$(grep -c '(from records)$' out)" = 1 ]
result $? "and the cost model's stands"
sed 's/^vulkan:[^|]*/vulkan:Another GPU /' forced1.records >other.records
status 0 "one device's, whatever is here" "$burncc" $model --target vulkan --records other.records -o three.c --report
[ "$(grep -c '(from records)$' out)" = 3 ]
result $? "are taken"
status 2 "two devices'" "$burncc" $model --target vulkan --records other.records --records forced0.records -o three.c
says 'these records are of several GPUs: vulkan:Another GPU, vulkan:.*; BURN_VK_DEVICE=PART OF ITS NAME says which'
BURN_VK_DEVICE=another status 0 "one of them" "$burncc" $model --target vulkan --records other.records \
    --records forced0.records -o three.c --report
says 'bk=4 tm=4 tn=4 slices=1 \(from records\)'
printf 'burncc-records 1\nnative:sse:l1=1K:l2=1K | gemm m=1 | gemv nv=1 side=1 | 1 ms, model 1 ms\n' >cpu.records
status 0 "a processor's" "$burncc" $model --target vulkan --records cpu.records -o three.c
says 'none of the records is for '
status 0 "a GPU's for a processor" "$burncc" $model --records forced0.records -o three.c
says 'none of the records is for generic'
# ---- control on the host
status 2 "control on the host" "$burncc" tune host/model.onnx --target vulkan --seconds 0.1 \
    -o none2.records
says 'tune measures GPU programs that are one list of kernels; this one has control on the host'
finish
