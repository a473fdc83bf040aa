#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# burncc tune: records are written, obeyed and the same code each time; what cannot be read or obeyed is said.
source "$(dirname "$0")/tap.sh"

status 0 "tune" "$burncc" tune convs.onnx --target native --seconds 2 -o convs.records
says '^kernels=4 measured=[1-4] model_ms=[0-9.e-]+ tuned_ms=[0-9.e-]+ records=convs.records$'
head -1 convs.records | grep -qx 'burncc-records 1'
result $? "a header"
! grep -Evq '^burncc-records 1$|^native:[^ ]+ \| (conv|depthwise|gemm) [^|]+ \| (direct|taps|winograd|depthwise|gemm|gemv) [^|]+ \| [0-9.e-]+ ms, model [0-9.e-]+ ms$' convs.records
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
status 0 "joined files" "$burncc" convs.onnx --target native --records joined.records --records convs.records -o two/convs.c
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

sed 's/^native:[^ ]*/native:other/' convs.records >other.records
status 0 "another machine's" "$burncc" convs.onnx --target native --records other.records -o two/convs.c --report
says 'none of the records is for native:'
silent 'from records'
sed 's/nv=[0-9]/nv=9/' convs.records >wide.records
status 0 "what does not fit" "$burncc" convs.onnx --target native --records wide.records -o two/convs.c --report
says 'wide.records:2: warning: .* does not fit .*, the cost model.s choice stands'
silent 'gemm .*from records'
for line in 'native | gemm' 'native | frob | gemv nv=1 | 1 ms, model 1 ms' 'native | gemm m=1 | frob nv=1 | 1 ms, model 1 ms' \
    'native | gemm m=1 | gemv nv=one | 1 ms, model 1 ms' 'native | gemm m=1 | gemv nv=1 | fast' ' | gemm m=1 | gemv nv=1 | 1 ms, model 1 ms' 'native | gemm m=1 | gemv nv=1 | 1 ms, model 1 ms | more'; do
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
status 4 "no such file" "$burncc" convs.onnx --records none.records -o two/odd.c
status 1 "tune does not overwrite what is no records" "$burncc" tune convs.onnx -o convs.txt
status 2 "tune for another processor" "$burncc" tune convs.onnx --target wasm-simd128
says 'tune there'
status 2 "tune for several" "$burncc" tune convs.onnx --target x86-64-v2,x86-64-v3
absent two/odd.c
finish
