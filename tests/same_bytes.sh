#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Do two builds of burncc write the same bytes? C leaves open in which order arguments are evaluated, and compilers
# differ, so what one statement does twice (building nodes, say) may come out in either order. usage: same_bytes.sh
# BURNCC BURNCC   Compares the small models and digits, compiled for the CPU, the GPU and for training.
set -u
first=$(realpath "$1") second=$(realpath "$2")
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 tests/small/run.py --only-write "$work/models" >/dev/null || exit 1
mkdir -p "$work/1" "$work/2" "$work/models/digits"
cp models/digits/digits.onnx "$work/models/digits/model.onnx"

passed=0 failed=0
for model in "$work"/models/*/model.onnx; do
    for options in "--target generic" "--target portable" "--target vulkan" "--train --loss mse --optimizer adam"; do
        rm -f "$work"/[12]/m.*
        # shellcheck disable=SC2086 # several options
        (cd "$work/1" && "$first" -q "$model" $options -o m.c >log 2>&1)
        # shellcheck disable=SC2086
        (cd "$work/2" && "$second" -q "$model" $options -o m.c >log 2>&1)
        if diff -r "$work/1" "$work/2" >"$work/diff"; then
            passed=$((passed + 1))
        else
            failed=$((failed + 1))
            echo "not the same: $(basename "$(dirname "$model")") $options"
            head -n 6 "$work/diff"
        fi
    done
done
echo "$passed passed, $failed failed"
[ $failed = 0 ]
