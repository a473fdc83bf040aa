#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# burncc quantize: models/digits over its own images, and small models that are made here. Results beside ONNX Runtime's
# where Python has it.
source "$(dirname "$0")/tap.sh"
export BURNCC_CFLAGS=-O0
digits=$here/../../models/digits
for i in 0 1 2 3 4 5 6 7 8 9; do mkdir -p "digits/$i" && cp "$digits/images/$i.pgm" "digits/$i/"; done
quantize() { "$burncc" quantize "$digits/digits.onnx" --data images:digits -f "$@"; }
operators() { "$burncc" inspect "$1" --json | python3 -c '
import json, sys
for op, n in sorted(json.load(sys.stdin)["operators"].items()): print(op, n)'; }

# ---------------------------------------------------------------- integers
status 0 'quantize' quantize -o q.onnx --report
says '^conv1 +Conv +i8 .* [0-9.]+ +[0-9.]+$'
says '^fc +Gemm +i8'
says '^layers=3 float_layers=0 weights_bytes=36392 quantized_bytes=9336 sqnr_db=[34]'
says ' float_accuracy=1 accuracy=1 items=10$'
says 'note: 10 items: values that other data has may be out of the ranges'
status 0 'what is written' operators q.onnx
says 'DequantizeLinear 13'
says 'QuantizeLinear 7'
silent 'BatchNormalization'
status 0 'what is written again' "$burncc" q.onnx -o again.onnx
status 0 'what is written again' operators again.onnx
says 'DequantizeLinear 13'
status 0 'the recorded digit' "$burncc" verify q.onnx --data "$digits" --atol 0.8 --rtol 0
status 1 'and not to the bit' "$burncc" verify q.onnx --data "$digits" --atol 0.001 --rtol 0
status 0 'unsigned' quantize -o u.onnx --unsigned --per-tensor --json
says '"sqnr_db":[34][0-9.]+,"float_accuracy":1,"accuracy":1,"items":10}'
status 0 'unsigned bytes' "$burncc" u.onnx --dump import
says 'u8\[1,1,28,28\] = Cast'
status 0 'entropy' quantize -o m.onnx --method entropy --calibrate 5 --bias-correction
says ' accuracy=1 '
status 0 'weights of 4 bits' quantize -o q4.onnx --weight-type int4 --bias-correction
says 'quantized_bytes=4804 sqnr_db=(1[5-9]|2)'
status 0 'two to a byte' "$burncc" verify q4.onnx --target cortex-m4 --data "$digits" --atol 5 --rtol 0
status 2 'not both' quantize -o q4.onnx --weight-type int4 --weights-only int4
status 0 'values of 16 bits' quantize -o h.onnx --activations int16 --report
says '^conv1 +Conv +i16 '
says 'quantized_bytes=9336 sqnr_db=4[3-9]'
status 0 'on integers' "$burncc" verify h.onnx --target cortex-m4 --data "$digits" --atol 0.3 --rtol 0
[ "$("$burncc" h.onnx --target cortex-m4 --dump schedule | grep -c 'round(')" = 1 ]
result $? 'nothing is rounded but the input'
status 0 'at its ends' "$burncc" bench h.onnx --io int16 --target cortex-m4 --seconds 0.01
status 2 'of two types' quantize -o h.onnx --activations int16 --unsigned
cat > likely.c <<'END'
#include <burncc/model.h>

MODEL(likely)
{
    Tensor x = avg_pool2d(input("image", F32, 1, 1, 28, 28), 4);
    x = linear(flatten(x, 1), "fc", 10);
    output("classes", softmax(x, 1));
}
END
for bits in 8 16; do
    status 0 "a softmax at the end, $bits bits" "$burncc" quantize likely.c --data images:digits -f -o likely.onnx \
        --activations int$bits
    status 0 'is of integers' "$burncc" likely.onnx --target cortex-m4 --io int$bits -o said.c -f
    grep -q "int${bits}_t classes\[" said.h && ! grep -q burn_exp said.c
    result $? 'its exp is a table'
done
status 0 'a description in C' "$burncc" quantize "$here/../../models/lenet.c" --set classes=12 --seed 3 \
    --data images:digits -o lenet.onnx
says ' items=10$'
status 0 'with a new head' quantize -o newhead.onnx --replace-head 10 --seed 4
says ' items=10$'
status 0 'percentile' quantize -o e.onnx --method percentile --equalize --per-tensor
says 'note: 1 pairs of layers equalized'
says 'sqnr_db=[34]'

# ---------------------------------------------------------------- what stays float
status 1 'a head of integers' "$burncc" e.onnx --replace-head 3 --train --train-last 1 -o no.c
says "the layer that gives .*computes on integers.*burncc quantize --keep '.fc'"
absent no.c
status 0 'keep' quantize -o k.onnx --keep '^conv1$' --report
says '^conv1 +Conv +float .*--keep'
says 'float_layers=1'
status 0 'budget' quantize -o b.onnx --budget 33K --report
says '--budget$'
says 'quantized_bytes=(3[0-3]|[12][0-9])[0-9]{3} '
status 1 'no room' quantize -o b.onnx --budget 1K
says 'the weights take 9336 bytes as integers'
for ram in 8K:1 20K:2 31K:3; do        # its floats, and what the file then takes
    status 0 "ram ${ram%:*}" quantize -o fits.onnx -f --ram ${ram%:*}
    says "float_layers=${ram#*:} "
    status 0 "ram ${ram%:*}, planned" "$burncc" fits.onnx --quiet -f --target cortex-m4 --ram ${ram%:*} -o fits.c
done
status 0 'ram and weights' quantize -o fits.onnx -f --ram 20K --budget 33K
says 'float_layers=1 '
status 3 'too little ram' quantize -o no.onnx --ram 4K
says '--ram: with all that can be integers the model needs a workspace of 7872 bytes, not 4096'
status 2 'ram of weights alone' "$burncc" quantize q.onnx --weights-only int8 --ram 4K -o no.onnx
status 0 'nothing lost' quantize -o a.onnx --accuracy 0
says 'float_accuracy=1 accuracy=1 '
status 2 'no such layer' quantize -o k.onnx --keep conv9
says 'no layer is called so'
status 2 'no expression' quantize -o k.onnx --keep '('

cat >line.txt <<'END'
graph line(%0 features: f32[1,8]) {
  %1: f32[1,1,8] = Reshape(%0) {shape=[1,1,8]}
  %2 w = const trainable f32[2,1,3] {1, -1, 0.5, 0.25, 2, -0.5}
  %3: f32[1,2,6] = Conv(%1, %2) {strides=[1], dilations=[1], pads=[0,0], group=1}
  return %3 y
}
END
printf 'a,b,c,d,e,f,g,h,t\n1,2,3,4,3,2,1,0,1\n-1,2,-3,4,-3,2,-1,0,1\n' >line.csv
status 0 'along one axis' "$burncc" quantize line.txt --data csv:line.csv -o l.onnx --report
says '^ +Conv +i8'
says 'has 1 values, the model.s output 12: no error beside it is measured'

# ---------------------------------------------------------------- weights alone
only() { "$burncc" quantize "$digits/digits.onnx" -o "w$1.onnx" --weights-only "$@"; }
status 0 'int8 weights' only int8
says '^tensors=3 weights_bytes=36256 quantized_bytes=10160 sqnr_db=4[0-9.]+$'
status 0 'their values' "$burncc" verify wint8.onnx --data "$digits" --atol 0.7 --rtol 0
status 0 'int4 weights' only int4 --block 16
says 'quantized_bytes=(5[0-9]|6[0-9])[0-9]{2} sqnr_db=2'
status 0 'blocks, read and written again' "$burncc" wint4.onnx -o wagain.onnx
status 0 'their operators' operators wagain.onnx
says 'DequantizeLinear 3'
status 0 'f16 weights' only f16
says 'quantized_bytes=18128 sqnr_db=7'
status 0 'their values' "$burncc" verify wf16.onnx --data "$digits" --atol 0.01 --rtol 0

# ---------------------------------------------------------------- mistakes
status 2 'no data' "$burncc" quantize "$digits/digits.onnx" -o q.onnx
says 'quantize wants --data SOURCE'
status 2 'no file' quantize
says 'quantize wants -o MODEL.onnx'
status 2 'no method' quantize -o q.onnx --method best
says "there is no 'best'"
status 2 'both' quantize -o q.onnx --per-tensor --per-channel
status 2 'data for nothing' quantize -o q.onnx --weights-only int8
cat >relu.txt <<'END'
graph relu(%0 image: f32[1,1,28,28]) {
  %1: f32[1,1,28,28] = Relu(%0)
  return %1 y
}
END
status 1 'nothing to quantize' "$burncc" quantize relu.txt --data images:digits -o r.onnx
says 'has nothing to quantize'
status 1 'nothing to store' "$burncc" quantize relu.txt --weights-only int8 -o r.onnx
absent r.onnx

# ---------------------------------------------------------------- integers that learn
# y = dequantize(quantize(x w1)) w2 with w2 of integers, one step of sgd on (y - t)^2: gradients pass rounding as if it
# were not there, and stop where a value is cut off, which here is the second of three.
cat >learn.txt <<'END'
graph learn(%0 features: f32[batch,2]) {
  %1 w1 = const trainable f32[2,3] {0.5, 9, -0.25, 0.75, 8, 0.1}
  %2: f32[batch,3] = MatMul(%0, %1)
  %3 hidden_scale = const trainable f32[] {0.01}
  %4: f32[batch,3] = Div(%2, %3)
  %5: f32[batch,3] = Round(%4)
  %6 hidden_zero = const i8[] {7}
  %7: f32[] = Cast(%6) {to=f32}
  %8: f32[batch,3] = Add(%5, %7)
  %9: i8[batch,3] = Cast(%8) {to=i8}
  %10: i32[batch,3] = Cast(%9) {to=i32}
  %11: i32[] = Cast(%6) {to=i32}
  %12: i32[batch,3] = Sub(%10, %11)
  %13: f32[batch,3] = Cast(%12) {to=f32}
  %14: f32[batch,3] = Mul(%13, %3)
  %15 w2_quantized = const i8[3,1] {40, -100, 127}
  %16: i32[3,1] = Cast(%15) {to=i32}
  %21 w2_zero_point = const i8[] {0}
  %22: i32[] = Cast(%21) {to=i32}
  %23: i32[3,1] = Sub(%16, %22)
  %17: f32[3,1] = Cast(%23) {to=f32}
  %18 w2_scale = const trainable f32[] {0.02}
  %19: f32[3,1] = Mul(%17, %18)
  %20: f32[batch,1] = MatMul(%14, %19)
  return %20 y
}
END
printf 'a,b,t\n0.61,0.37,1\n' >learn.csv
status 0 'a step' "$burncc" fit learn.txt --data csv:learn.csv --valid csv:learn.csv --epochs 1 --batch 1 --lr 0.01 \
    --optimizer sgd --artifacts learnt
status 0 'gradients by hand' python3 - <<'END'
import json, struct
data = open("learnt/model.safetensors", "rb").read()
size = struct.unpack("<Q", data[:8])[0]
head = json.loads(data[8:8 + size])
def got(name):
    a, b = head[name]["data_offsets"]
    return struct.unpack(f"<{(b - a) // 4}f", data[8 + size + a:8 + size + b])
x, w1, w2, s, z, lr = (0.61, 0.37), ((0.5, 9, -0.25), (0.75, 8, 0.1)), (0.8, -2.0, 2.54), 0.01, 7, 0.01
h = [x[0] * w1[0][j] + x[1] * w1[1][j] for j in range(3)]
q = [round(v / s) + z for v in h]
mask = [-128 <= v <= 127 for v in q]
assert mask == [True, False, True], q
y = [(min(max(v, -128), 127) - z) * s for v in q]
dy = 2 * (sum(a * b for a, b in zip(y, w2)) - 1)
want1 = [w1[i][j] - lr * x[i] * dy * w2[j] * mask[j] for i in range(2) for j in range(3)]
want2 = [w2[j] - lr * y[j] * dy for j in range(3)]
for name, want in ("w1", want1), ("w2", want2):
    for a, b in zip(got(name), want):
        assert abs(a - b) < 1e-5 * max(1, abs(b)), (name, got(name), want)
assert abs(got("hidden_scale")[0] - 0.01) < 1e-9 and abs(got("w2_scale")[0] - 0.02) < 1e-9
END
status 0 'integers again' operators learnt/model.onnx
says 'DequantizeLinear 2'
says 'QuantizeLinear 1'
status 0 'digits learn on' "$burncc" fit q.onnx --data images:digits --valid images:digits --epochs 2 --lr 0.0001 \
    --artifacts digits-run
says 'valid_accuracy=1 '
status 0 'and stay integers' operators digits-run/model.onnx
says 'DequantizeLinear 13'
status 0 'with the same result' "$burncc" evaluate digits-run/model.onnx images:digits
says 'accuracy=1 '

# ---------------------------------------------------------------- the last layer learns, of floats; before it, integers
status 0 'a head of floats' "$burncc" quantize "$digits/digits.onnx" --data images:digits --keep '^fc' -o head.onnx
status 0 'as it runs' "$burncc" head.onnx --target cortex-m4 -o runs.c --quiet
status 0 'as it learns' "$burncc" head.onnx --target cortex-m4 --train --train-last 1 --optimizer sgd -o learns.c
says '2 of [0-9]+ parameters learn \(7850 of'
cat >learn.c <<'END_C'
#include "learns.h"
#include "runs.h"
#include <math.h>
static runs_workspace w;
static learns_predict_workspace p;
static learns_train_step_workspace t;
static learns_params params;
int main(void)
{
    static float image[784], a[10], b[10], first[1], loss[1];
    const int64_t target[1] = {4};
    for (int i = 0; i < 784; i++) image[i] = (float)(i * 7919 % 256) / 255;
    learns_params_init(&params);
    if (runs_run(&w, image, a) || learns_predict(&p, image, &params, b)) return 2;
    for (int i = 0; i < 10; i++)
        if (fabsf(a[i] - b[i]) > 1e-4f) return 4; /* the head's sums are in another order */
    for (int k = 0; k < 10; k++)
        if (learns_train_step(&t, image, &params, target, 0.02f, k ? loss : first)) return 3;
    return !(loss[0] < first[0] / 4);
}
END_C
flags='-std=c99 -O1 -Wall -Werror -ffp-contract=off'
status 0 'compiles' ${CC:-cc} $flags -DBURN_NO_FILES learn.c learns.c runs.c -lm -o learn
status 0 'the same as what runs; then it learns' ./learn
! grep -q 'constant f32\[\(8,1,3,3\|16,8,3,3\)\]' learns.c && grep -q 'static const int8_t' learns.c
result $? 'weights of the layers before it are bytes'

# ---------------------------------------------------------------- ONNX Runtime's results for the same file
if python3 -c 'import onnxruntime, onnx, numpy' 2>/dev/null; then
    for i in 3 8; do
        "$burncc" run q.onnx --input "image=$digits/images/$i.pgm" --output "out$i" >/dev/null 2>&1
    done
    status 0 'within a step of ONNX Runtime' python3 - "$digits" <<'END'
import sys
import numpy as np, onnx, onnxruntime
model = onnx.load("q.onnx")
onnx.checker.check_model(model, full_check=True)
step = {t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer}["logits_scale"]
options = onnxruntime.SessionOptions()
options.log_severity_level = 3
session = onnxruntime.InferenceSession("q.onnx", options, providers=["CPUExecutionProvider"])
for i in 3, 8:
    raw = open(f"{sys.argv[1]}/images/{i}.pgm", "rb").read()
    image = np.frombuffer(raw[-784:], np.uint8).astype(np.float32).reshape(1, 1, 28, 28) / 255
    want, got = session.run(None, {"image": image})[0], np.load(f"out{i}/logits.npy")
    assert np.abs(want - got).max() <= 1.001 * step, (want, got, step)
END
else
    count=$((count + 1))
    echo "ok $count - within a step of ONNX Runtime # SKIP Python has no onnxruntime"
fi
finish
