#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# The compiler as an npm package (scripts/npm): it is installed and writes what the native one writes. Behind
# BURNCC_TEST_ALL: some 400 files are compiled, and Debian's sources fetched.
#
# usage: npm.sh BURNCC         which lies in its build folder
source "$(dirname "${BASH_SOURCE[0]}")/commands/tap.sh"
root=$(realpath "$here/../..")
reason=''
[ -n "${BURNCC_TEST_ALL:-}" ] || reason="BURNCC_TEST_ALL is not set"
for tool in node npm cmake clang wasm-ld apt-get; do
    command -v $tool >/dev/null || reason="no $tool here"
done
[ -z "$reason" ] || { echo "1..0 # SKIP $reason"; exit 0; }

status 0 "the package" "$root/scripts/npm" --build "$(dirname "$burncc")" "$work/package"
echo '{}' >package.json
status 0 "npm installs it" npm install --offline --no-audit --no-fund "$work/package"
models=("$root"/models/digits/*.onnx "$root/examples/text/net.txt")
for model in "$root"/../shared/models/*/model.onnx; do # optional: a dozen small ones
    [ ! -f "$model" ] || [ "$(stat -c %s "$model")" -gt 3000000 ] || [ ${#models[@]} -ge 15 ] || models+=("$model")
done
differ=()
for model in "${models[@]}"; do
    for options in "--target x86-64-v4" "--target generic" "--target aarch64 --threads 2" \
        "--target x86-64-v3 --train"; do
        rm -rf native wasm
        mkdir native wasm
        # shellcheck disable=SC2086 # several options
        (cd native && "$burncc" "$model" -o m.c $options >said 2>&1; echo $? >>said)
        # shellcheck disable=SC2086
        (cd wasm && "$work/node_modules/.bin/burncc" "$model" -o m.c $options >said 2>&1; echo $? >>said)
        diff -r native wasm >out || differ+=("$model $options")
    done
done
printf '%s\n' "${differ[@]}" >err
result $((${#differ[@]} > 0)) "${#models[@]} models, four ways: the native compiler's bytes"
status 4 "a file that is not there" node_modules/.bin/burncc none.onnx
says 'none.onnx: .*cannot open'
mkdir -p a/b && cp "$root/models/digits/digits.onnx" a
(cd a/b && ../../node_modules/.bin/burncc ../digits.onnx -o ../d.c)
result $? "paths from the folder that one stands in"
status 2 "a command that runs programs" node_modules/.bin/burncc verify a/digits.onnx
says 'a native burncc can'
status 4 "a model described in C" node_modules/.bin/burncc "$root/models/lenet.c" -o lenet.c
says "cannot run the C compiler"
finish
