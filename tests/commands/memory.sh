#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# burncc's memory: at most three times the model's file, beside what the process takes for a model of 38 KB. The models
# are those of the zoo, with their parameters as files of ONNX: many small kernels, whose graphs and texts outgrow the
# parameters first, and where something is quadratic, densenet's 121 layers first.
source "$(dirname "$0")/tap.sh"
models=$here/../../models

peak() { # COMMAND...: its greatest resident memory, in bytes
    python3 -I -S -c 'import os, resource, sys
child = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ)
_, status, used = os.wait4(child, 0)
open("peak", "w").write(f"{1024 * used.ru_maxrss}\n")
sys.exit(os.waitstatus_to_exitcode(status))' "$@"
}
peak "$burncc" "$models/digits/digits.onnx" -o digits.c >out 2>err || { echo "Bail out! digits.onnx"; exit 1; }
base=$(cat peak)
if [ "$base" -gt $((32 << 20)) ]; then
    echo "1..0 # SKIP a burncc that takes $((base >> 20)) MiB for nothing: one with sanitizers"
    exit 0
fi
for model in squeezenet mobilenet_v2 densenet; do
    status 0 "$model as ONNX" "$burncc" "$models/$model.c" -o $model.onnx
    for train in "" --train; do
        what=$model.onnx${train:+ $train}
        peak "$burncc" $model.onnx $train -o net.c >out 2>err
        result $? "$what"
        bytes=$(stat -c %s $model.onnx) used=$(cat peak)
        [ $((used - base)) -le $((3 * bytes)) ]
        result $? "$what: $((used >> 10)) KiB for a file of $((bytes >> 10)), beside $((base >> 10))"
    done
done
finish
