#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# What commands say of training code: bench --train, verify --gradients, inspect --train.
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

summary="^pass gradients=[1-9][0-9]* worst=$number rounding=$number parameter=[a-z0-9_]+ kinks=0 parameters=[1-9][0-9]*"
for options in "" "--dim batch=4 --threads 2" "--target portable --loss mse" "--no-fuse --embed-limit 8" \
    "--input image=image.npy --loss l1" "--rtol 1e-5 --elements 3"; do
    status 0 "gradients $options" "$burncc" verify scores.onnx --gradients --quiet $options
    says "$summary"'$'
done
status 0 "gradients of a described model" "$burncc" verify $lenet --gradients --quiet --elements 2 --dim batch=2 --json
python3 -c 'import json
o = json.load(open("out"))
assert o["pass"] and o["gradients"] == 20 and o["parameters"] == 10 and o["worst"] < 1e-4 and not o["missed"]'
result $? "it is JSON"
cat >detached.txt <<'END'
graph detached(%0 x: f32[2,3]) {
  %1 w = const trainable f32[3,2] {0.5, -0.25, 1, 0.125, 0.75, -1}
  %2 v = const trainable f32[2] {0, 0.5}
  %3: f32[2,2] = MatMul(%0, %1)
  %4: f32[2,2] = Identity(%3) {stop_gradient=1}
  %5: f32[2] = Abs(%2)
  %6: f32[2,2] = Mul(%3, %5)
  %7: f32[2,2] = Add(%6, %4)
  return %7 y
}
END
status 1 "a gradient that is none, and a kink" "$burncc" verify detached.txt --gradients --loss mse
says '^v  f32\[2\]  2 elements, 1 at kinks, worst'
says '^FAIL w \[[0-2],[01]\]: .*, by differences .*; error .* 0.001 are allowed; line 4 gradients=7 '
says ' kinks=1 parameters=2$'
sed -i 's/stop_gradient=1/stop_gradient=0/' detached.txt
status 0 "the same undetached" "$burncc" verify detached.txt --gradients --loss mse
# tiles of Winograd's algorithm, forwards and backwards, go on from one image to the next
cat >tiles.c <<'END'
#include <burncc/model.h>

MODEL(tiles)
{
    Tensor x = input("image", F32, symbol("batch"), 3, 28, 27);
    x = tanh(conv2d(x, "a", 32, 1));
    x = tanh(conv2d(x, "b", 32, 3, .padding = 1));
    output("y", flatten(adaptive_avg_pool2d(conv2d(x, "c", 4, 1), 2), 1));
}
END
status 0 "gradients by Winograd's algorithm" "$burncc" verify tiles.c --gradients --loss mse --dim batch=3
"$burncc" tiles.c --train --loss mse --dim batch=3 -o tiles_train.c
[ "$(grep -c '^    burn_pack_w_winograd(' tiles_train.c)" -ge 2 ]
result $? "it is taken"
# convolutions of images of a few points are products of their windows: strides, dilations, pads, no square
cat >points.c <<'END'
#include <burncc/model.h>

MODEL(points)
{
    Tensor x = input("image", F32, symbol("batch"), 16, 7, 5);
    x = tanh(conv2d(x, "a", 40, 3, .stride = 2, .padding = 1));
    x = tanh(conv2d(x, "b", 48, 3, .padding = 2, .dilation = 2));
    x = conv2d(x, "c", 64, 2, .bias = NO);
    output("y", flatten(x, 1));
}
END
for options in "" "--threads 2" "--target portable" "--input-gradients all"; do
    status 0 "gradients by windows $options" "$burncc" verify points.c --gradients --loss mse --dim batch=3 $options
done
"$burncc" points.c --train --loss mse --dim batch=3 --report -o points_train.c >report
[ "$(grep -c '^k[0-9]*_[bc] .* MatMul' report)" -ge 6 ] && ! grep '^k[0-9]*_[bc] .*backward.* Conv' report
result $? "they are products"
status 2 "training without --gradients" "$burncc" verify scores.onnx --train
says 'verify --train wants --gradients'
status 2 "elements without --gradients" "$burncc" verify scores.onnx --elements 3
status 2 "gradients elsewhere" "$burncc" verify scores.onnx --gradients --runner qemu-aarch64
status 1 "no gradients" "$burncc" verify pair.onnx --gradients

digits=$here/../../models/digits/digits.onnx
status 0 "what learns" "$burncc" inspect $digits --train --optimizer adam
says '^learns +8 parameters, 35.6 KiB; running statistics 192 B; 0 frozen'
says '^  bn1.mean +running  f32\[8\]  bn1$'
says '^structs +parameters 35.8 KiB, gradients 35.8 KiB, optimizer.s state 71.3 KiB$'
says '^program +gradients$'
says '^memory +at the worst moment of gradients, at .* are kept$'
says '^ +25088 f32\[1,28,28,8\] of .*_conv1$'
status 0 "what is not chosen" "$burncc" inspect $digits --train --train-only fc --target portable
says '^learns +2 parameters, .*; 10 frozen'
says '^  conv1.weight +frozen +f32\[8,1,3,3\], not chosen to learn  conv1$'
status 0 "what stays" "$burncc" inspect $digits --train --frozen-norm
says '^  bn2.var +frozen +f32\[16\], --frozen-norm  bn2$'
cat >heads.c <<'END'
#include <burncc/model.h>
MODEL(heads)
{
    Tensor x = relu(linear(input("x", F32, symbol("batch"), 8), "fc", 16));
    output("scores", linear(x, "a", 3));
    output("boxes", linear(x, "b", 4));
}
END
status 0 "what no loss depends on" "$burncc" inspect heads.c --train --optimizer adam
says 'note: no loss depends on 2 of the parameters, which stay as they are: b.weight, b.bias$'
says '^learns +4 parameters, .*; 2 frozen'
says '^  b.weight +frozen +f32\[4,16\], no loss depends on it  b$'
says '^  a.weight +trained +f32\[3,16\]  a$'
status 0 "the last layer that leads to the loss" "$burncc" inspect heads.c --train --train-last 1
says '2 of 4 parameters learn .*: a.weight, a.bias$'
status 0 "the other output's" "$burncc" inspect heads.c --train --train-last 1 --loss boxes=mse
says '2 of 4 parameters learn .*: b.weight, b.bias$'
status 0 "both outputs" "$burncc" inspect heads.c --train --loss scores=cross_entropy --loss boxes=mse
says '^learns +6 parameters, .*; 0 frozen'
status 0 "tangents are of all outputs" "$burncc" inspect heads.c --train --jvp
says '^learns +6 parameters, .*; 0 frozen'
cat >named.c <<'END'
#include <burncc/model.h>
MODEL(named)
{
    Tensor x = linear(input("x", F32, symbol("batch"), 8), "a", 3);
    output("class", argmax(x, 1));
    output("scores", x);
}
END
status 1 "a loss of numbers of classes" "$burncc" named.c --train -o named.c.c
says 'wants float outputs .*"class" is i64\[batch\]; --loss .scores=cross_entropy. takes another$'
status 1 "a head behind an argmax" "$burncc" named.c --train --replace-head 5 -o named.c.c
says 'comes from this ArgMax; wanted is'
status 0 "with a budget" "$burncc" inspect $lenet --train --dim batch=8 --train-memory 640K
says 'worst moment of gradients, .* run again, .* at .* are kept'
status 0 "what learns, for machines" "$burncc" inspect $digits --train --optimizer adam --train-only fc --json
python3 -c 'import json
o = json.load(open("out"))
kinds = [p["kind"] for p in o["learns"]]
assert kinds.count("trained") == 2 and kinds.count("frozen") == 10 and o["state_bytes"] == 2 * o["params_bytes"]
assert {"gradients", "update", "evaluate"} <= {p["name"] for p in o["programs"]}'
result $? "it is JSON"
finish
