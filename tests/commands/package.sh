#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# --package: models as npm packages, run in node, and as crates, built and run by cargo without a network.
source "$(dirname "$0")/tap.sh"
digits=$here/../../models/digits
export DIGIT=$digits/images/7.pgm
PYTHONPATH=$here/.. python3 - "$digits/digits.onnx" <<'END_PYTHON'
import sys
from onnx_wire import blob, graph, model, node, value_info
ends = [value_info("a", 1, [2, 3]), value_info("w", 1, [3, 2]), value_info("b", 1, [2])]
nodes = [node("MatMul", ["a", "w"], ["p"]), node("Add", ["p", "b"], ["y"])]
data = model(graph(nodes, ends, [value_info("y", 1, [2, 2])]))
open("several.onnx", "wb").write(data + blob(14, blob(1, "license") + blob(2, "MIT")))
END_PYTHON

status 2 "a kind that there is none of" "$burncc" several.onnx --package tar
says 'there is no .tar.'
cp several.onnx math.onnx
status 0 "a name that a header of C has" "$burncc" math.onnx --package cargo --quiet
cp several.onnx burn_it.onnx
status 2 "a name of the runtime's" "$burncc" burn_it.onnx --package cargo
says "names that begin with burn_ are the runtime's; --name gives another than 'burn_it'"
status 2 "no training" "$burncc" several.onnx --package cargo --train
says '^.*--package is for inference in C'

# ---- cargo
status 0 "a crate, its weights a file" "$burncc" "$digits/digits.onnx" --package cargo --embed-limit 0 -o digits --quiet
status 0 "a crate of any batch" "$burncc" "$digits/digits_batch.onnx" --package cargo --dim batch=1..8 -o digits_batch \
    --quiet
status 0 "a crate of several inputs" "$burncc" several.onnx --package cargo --quiet
grep -q '^license = "MIT"$' several-cargo/Cargo.toml
result $? "the model's licence is the crate's"
export PATH=$PATH:$HOME/.cargo/bin
if command -v cargo >/dev/null && cargo --version >out 2>err; then
    mkdir -p user/tests user/src && : >user/src/lib.rs && cp "$here/package.rs" user/tests/
    cat >user/Cargo.toml <<'END'
[package]
name = "user"
version = "0.1.0"
edition = "2021"
[dev-dependencies]
digits = { path = "../digits" }
digits_batch = { path = "../digits_batch" }
several = { path = "../several-cargo" }
END
    status 0 "cargo test" env CFLAGS=-O1 RUSTFLAGS=-Dwarnings cargo test --offline --manifest-path user/Cargo.toml
    says '3 passed; 0 failed'
else
    result 0 "cargo # SKIP there is none"
fi

mkdir foreign && echo '[package]' >foreign/Cargo.toml
status 4 "others' files stay" "$burncc" several.onnx --package cargo -o foreign --quiet
says 'Cargo.toml: .*this file is there and burncc did not write it'
status 0 "its own are replaced" "$burncc" several.onnx --package cargo --quiet

# ---- npm
if echo 'int main(void) { return 0; }' | clang --target=wasm32-wasi -x c - -o empty.wasm 2>err; then
    status 0 "a module" "$burncc" "$digits/digits.onnx" --package npm -o image --quiet
    status 0 "with weights beside it" "$burncc" "$digits/digits.onnx" --package npm --embed-limit 0 -o apart --quiet
    [ -s apart/model.bin ] && grep -q '"model.bin"' apart/package.json
    result $? "which the package has"
    status 0 "of any batch" "$burncc" "$digits/digits_batch.onnx" --dim batch=1..8 --package npm -o batch --quiet
    status 0 "of several inputs" "$burncc" several.onnx --package npm --quiet
    grep -q '"license": "MIT"' several-npm/package.json
    result $? "the model's licence is the package's"
    grep -q '"b": Float32Array | Tensor<Float32Array>;' several-npm/index.d.ts
    result $? "types"
    if command -v node >/dev/null; then
        for kind in image batch; do status 0 "$kind in node" node "$here/package.mjs" $kind $kind "$DIGIT"; done
        status 0 "weights beside it, in node" node "$here/package.mjs" apart image "$DIGIT"
        status 0 "several in node" node "$here/package.mjs" several-npm several
    else
        result 0 "node # SKIP there is none"
    fi
    printf 'x' | dd of=apart/model.bin bs=1 seek=500 conv=notrunc 2>err
    ! node "$here/package.mjs" apart image "$DIGIT" >out 2>err && grep -q 'a file is not what it should be' err
    result $? "other weights are refused"
else
    result 0 "npm # SKIP clang makes no WebAssembly"
fi
status 4 "no compiler for WebAssembly" env BURNCC_WASM_CC=/none/clang "$burncc" several.onnx --package npm --quiet
says "cannot run '/none/clang', which makes WebAssembly"
finish
