#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# What commands say of training code: bench --train.
source "$(dirname "$0")/tap.sh"
lenet=$here/../../models/lenet.c

number='[0-9.]+(e[+-][0-9]+)?'
step="^median_ms=$number min_ms=$number gradients_ms=$number update_ms=$number gflops=$number"
step="$step workspace_bytes=[1-9][0-9]* params_bytes=[1-9][0-9]* state_bytes=[0-9]+ runs=[1-9][0-9]*\$"
bench="--train --seconds 0.02 --quiet"
for options in "" "--dim batch=4 --threads 2" "--optimizer adam --loss mse" "--threads 2 --optimizer nesterov" \
    "--dim batch=3 --embed-limit 8" "--target native --precision bf16" "--seed 3 --schedule cosine"; do
    status 0 "a step $options" "$burncc" bench scores.onnx $bench $options
    says "$step"
done
status 0 "a step of a described model" "$burncc" bench $lenet $bench --dim batch=2 --threads 2 --optimizer adam --json
python3 -c 'import json
o = json.load(open("out"))
assert o["median_ms"] > 0 and o["params_bytes"] == 4 * 61706 and o["state_bytes"] == 8 * 61706 and o["runs"] > 0
assert o["gradients_ms"] <= o["median_ms"] * 1.5'
result $? "it is JSON"
status 0 "inputs that are given" "$burncc" bench scores.onnx $bench --input image=image.npy
status 1 "inputs that do not fit" "$burncc" bench scores.onnx $bench --input image=flat.npy
says 'holds f32\[4\], the model wants f32\[batch,1,2,2\]'
status 2 "another machine" "$burncc" bench scores.onnx $bench --runner qemu-aarch64
says '\-\-train is timed on this machine alone'
status 2 "a loss without training" "$burncc" bench scores.onnx --loss mse
status 1 "nothing to train" "$burncc" bench pair.onnx $bench
finish
