#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# burncc tune: records are written, obeyed and the same code each time; what cannot be read or obeyed is said.
source "$(dirname "$0")/tap.sh"

status 0 "tune" "$burncc" tune convs.onnx --target native --seconds 2 -o convs.records
says '^kernels=4 measured=[1-4] model_ms=[0-9.e-]+ tuned_ms=[0-9.e-]+ records=convs.records$'
head -1 convs.records | grep -qx 'burncc-records 1'
result $? "a header"
kinds='(conv|depthwise|gemm) [^|]+ \| (direct|taps|winograd|depthwise|gemm|gemv) [^|]+'
! grep -Evq "^burncc-records 1\$|^native:[^ ]+ \\| $kinds \\| [0-9.e-]+ ms, model [0-9.e-]+ ms\$" convs.records
result $? "a record a line"
cp convs.records before.records
status 0 "no time" "$burncc" tune convs.onnx --target native --seconds 0 -o convs.records
says 'measured=0'
cmp -s convs.records before.records
result $? "the records stay"
sed -i '$d' convs.records
status 0 "some time" "$burncc" tune convs.onnx --target native --seconds 0.1 -o convs.records
says 'measured=1'

mkdir -p one two
status 0 "report" "$burncc" convs.onnx --target native --records convs.records -o one/convs.c --report
says 'conv .*(winograd|direct|taps) .*from records'
cat convs.records before.records convs.records >joined.records
status 0 "joined files" "$burncc" convs.onnx --target native --records joined.records --records convs.records \
    -o two/convs.c
cmp -s one/convs.c two/convs.c
result $? "the same code"
status 0 "without" "$burncc" run convs.onnx --input convs.txt --target native --output plain
status 0 "with" "$burncc" run convs.onnx --input convs.txt --target native --records convs.records --output tuned
python3 - <<'PYTHON'
import struct
one, two = (struct.unpack("<20f", open(f"{d}/y.npy", "rb").read()[-80:]) for d in ("plain", "tuned"))
assert max(abs(a - b) for a, b in zip(one, two)) <= 1e-4 * max(map(abs, one))
PYTHON
result $? "the same numbers"

# Products of bytes and with weights of few bits; on threads. Every run measures a kernel at least, however busy the
# machine.
for again in 1 2 3; do "$burncc" tune bytes.onnx --target native --seconds 0.1 -o bytes.records >out 2>err; done
says '^kernels=2 measured=0 '
of_bytes='bytes (batch|n)=[^|]+ \| bytes mr=[0-9]+ nv=[1-4]'
[ $(grep -Ec "^native:[^ ]+ \\| $of_bytes \\| [0-9.e-]+ ms, model [0-9.e-]+ ms\$" bytes.records) = 2 ]
result $? "a record each"
sed -E 's/mr=[0-9]+ nv=[0-9]/mr=2 nv=3/' bytes.records >turned.records
inputs="--input x=rows.txt --input image=maps.txt"
status 0 "bytes without" "$burncc" run bytes.onnx $inputs --target native --output plain
status 0 "bytes with others" "$burncc" run bytes.onnx $inputs --target native --records turned.records --output tuned
cmp -s plain/y.npy tuned/y.npy && cmp -s plain/z.npy tuned/z.npy
result $? "the same sums"
status 0 "bytes, report" "$burncc" bytes.onnx --target native --records turned.records -o two/bytes.c --report
[ $(grep -c 'bytes mr=2 nv=3 (from records)' out) = 2 ]
result $? "as recorded"
sed -E 's/mr=[0-9]+ nv/mr=10 nv/' bytes.records >tall.records
status 0 "tiles of more rows than there are" "$burncc" bytes.onnx --target native --records tall.records \
    -o two/bytes.c --report
says "tall.records:[23]: warning: .* does not fit bytes "
for again in 1 2 3; do "$burncc" tune convs.onnx --precision bf16 --target native --seconds 0.1 \
    -o low.records >out 2>err; done
says '^kernels=3 measured=[01] '
grep -Eq '^native:[^ ]+ \| low bits=16 [^|]+ \| low mr=[0-9]+ nv=[1-4] \|' low.records
result $? "a record of few bits"
# a convolution whose channels fill half a vector at most
cat >few.c <<'E'
#include <burncc/model.h>

MODEL(few) { output("y", conv2d(input("x", F32, 1, 3, 24, 24), "conv", 2, 3, .padding = 1)); }
E
status 0 "tune pairs" "$burncc" tune few.c --target native --seconds 0.1 -o few.records
sed -i -E 's/ \| (direct|taps|pairs) [^|]+ \|/ | pairs mr=4 rc=3 |/' few.records
status 0 "pairs from records" "$burncc" few.c --target native --records few.records -o one/few.c --report
says 'conv .*pairs mr=4 rc=3 \(from records\)'
status 0 "records on threads" "$burncc" convs.onnx --target native --threads 4:0 --records convs.records \
    -o two/convs.c --report
says 'conv .*(winograd|direct) .*from records'
status 0 "nothing to tune" "$burncc" tune scores.onnx --target native -o none.records
says 'nothing to measure'
status 0 "records for several" "$burncc" convs.onnx --target x86-64-v2,x86-64-v3 --records convs.records -o two/convs.c
says 'a file of several targets takes no records'

sed 's/^native:[^ ]*/native:other/' convs.records >other.records
status 0 "another machine's" "$burncc" convs.onnx --target native --records other.records -o two/convs.c --report
says 'none of the records is for native:'
silent 'from records'
sed 's/nv=[0-9]/nv=9/' convs.records >wide.records
status 0 "what does not fit" "$burncc" convs.onnx --target native --records wide.records -o two/convs.c --report
says 'wide.records:2: warning: .* does not fit .*, the cost model.s choice stands'
silent 'gemm .*from records'
for line in 'native | gemm' 'native | frob | gemv nv=1 | 1 ms, model 1 ms' \
    'native | gemm m=1 | frob nv=1 | 1 ms, model 1 ms' \
    'native | gemm m=1 | gemv nv=one | 1 ms, model 1 ms' 'native | gemm m=1 | gemv nv=1 | fast' \
        ' | gemm m=1 | gemv nv=1 | 1 ms, model 1 ms' 'native | gemm m=1 | gemv nv=1 | 1 ms, model 1 ms | more'; do
    printf 'burncc-records 1\n# a comment\n\n%s\n' "$line" >odd.records
    status 1 "'$line'" "$burncc" convs.onnx --records odd.records -o two/odd.c
    says 'odd.records:4: error: .*; remove the line, or measure again'
done
printf 'burncc-records 7\n' >late.records
status 1 "a later version" "$burncc" convs.onnx --records late.records -o two/odd.c
says 'late.records:1: error: .*burncc-records 7'
status 1 "no records" "$burncc" convs.onnx --records convs.txt -o two/odd.c
says "convs.txt:1: error: records begin with the line 'burncc-records 1'"
printf 'burncc-records 1\n\0\n' >bytes.records
status 1 "bytes that are no text" "$burncc" convs.onnx --records bytes.records -o two/odd.c
rm -f none.records
status 4 "no such file" "$burncc" convs.onnx --records none.records -o two/odd.c
status 1 "tune does not overwrite what is no records" "$burncc" tune convs.onnx -o convs.txt
status 2 "tune for another processor" "$burncc" tune convs.onnx --target wasm-simd128
says 'tune there'
status 2 "tune for several" "$burncc" tune convs.onnx --target x86-64-v2,x86-64-v3
absent two/odd.c
finish
