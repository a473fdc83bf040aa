#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# What a program puts a model into: weights from a path, and as part of the program (runtime/weights.c, examples/infer),
# and C++ (runtime/burn.hpp) by each compiler and standard that is there.
source "$(dirname "$0")/tap.sh"
cc=${CC:-cc}
root=$here/../..
runtime=$root/runtime
digits=$root/models/digits
seven=$digits/images/7.pgm
flags="-Wall -Wextra -Wconversion -Wshadow -pedantic -Werror -O1"

# ---- weights
status 0 "a model with its weights beside it" "$burncc" "$digits/digits.onnx" --embed-limit 0 -o digits.c --quiet
status 0 "without warnings" $cc -std=c99 $flags -I"$runtime" -c "$runtime/weights.c" -o loader.o
for how in "" -DBURN_WEIGHTS_NO_MAP; do
    status 0 "the example $how" $cc -std=c99 $flags $how -I. -I"$runtime" "$root/examples/infer/weights.c" digits.c \
        "$runtime/weights.c" -lm -o path
    status 0 "weights by path" ./path digits.bin "$seven"
    says 'this is a 7$'
    status 1 "no such file" ./path none.bin "$seven"
    says '^none.bin: a file could not be read'
    head -c 1000 digits.bin >cut.bin
    status 1 "a part of the file" ./path cut.bin "$seven"
    says '^cut.bin: a file is not what it should be'
    (cat digits.bin; echo more) >long.bin
    status 1 "more than the file" ./path long.bin "$seven"
    says '^long.bin: a file is not what it should be'
    sed 's/burnw1/burnw2/' digits.bin >changed.bin
    status 1 "another file" ./path changed.bin "$seven"
    says '^changed.bin: a file is not what it should be'
    status 1 "a folder" ./path . "$seven"
done
status 0 "weights in the program" $cc -c -DWEIGHTS=digits_weights "-DFILE=\"digits.bin\"" \
    "$root/examples/infer/weights.S" -o weights.o
status 0 "a program of them" $cc -std=c99 $flags -DLINKED -I. -I"$runtime" "$root/examples/infer/weights.c" digits.c \
    weights.o -lm -o linked
rm digits.bin
status 0 "runs without a file" ./linked - "$seven"
says 'this is a 7$'
[ "$(($(nm linked | sed -n 's/^\([0-9a-f]*\) [rR] digits_weights$/0x\1/p') % 64))" = 0 ]
result $? "read-only, at a boundary of 64"

# ---- firmware: arrays, whatever their size
for target in portable cortex-m4; do
    status 0 "1.3 MB for $target" "$burncc" "$root/models/mlp.c" --set width=400 --dim batch=1 --target $target \
        -o mlp_$target.c --quiet
done
[ -e mlp_portable.bin ] && [ ! -e mlp_cortex-m4.bin ] && [ "$(wc -c <mlp_cortex-m4.c)" -gt 1000000 ]
result $? "in flash"

# ---- C++
PYTHONPATH=$here/.. python3 - <<'END_PYTHON'
from onnx_wire import graph, model, node, value_info
ends = [value_info("a", 1, [2, 3]), value_info("w", 1, [3, 2]), value_info("b", 1, [2])]
nodes = [node("MatMul", ["a", "w"], ["p"]), node("Add", ["p", "b"], ["y"])]
open("several.onnx", "wb").write(model(graph(nodes, ends, [value_info("y", 1, [2, 2])])))
END_PYTHON
status 0 "digits" "$burncc" "$digits/digits.onnx" -o digits.c --quiet
status 0 "with weights beside" "$burncc" "$digits/digits.onnx" --embed-limit 0 -o apart.c --quiet
status 0 "of any batch" "$burncc" "$digits/digits_batch.onnx" --dim batch=1..8 --threads 2:0 -o batch.c --quiet
status 0 "of several inputs" "$burncc" several.onnx -o several.c --quiet
for file in digits apart batch several; do
    status 0 "$file.c" $cc -std=c99 -O1 -c $file.c -o $file.o
done
status 0 "threads.c" $cc -std=c11 -O1 -c "$runtime/threads.c" -o threads.o
for cxx in g++ clang++; do
    for std in 17 20; do
        if ! echo 'int main() {}' | $cxx -std=c++$std -x c++ - -o empty 2>err; then
            result 0 "C++$std # SKIP no $cxx that knows it"
            continue
        fi
        status 0 "burn.hpp, $cxx, C++$std" $cxx -std=c++$std -Wall -Wextra -Wpedantic -Wshadow -Werror -O1 -I. \
            -I"$runtime" "$here/embed.cc" digits.o apart.o batch.o several.o threads.o -lm -pthread -o embed
        status 0 "models in C++$std by $cxx" ./embed "$seven"
        says '^digits: input "image": a tensor of another rank'
    done
done
finish
