#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# The text of a graph as a model: what --dump prints, and what is written by hand.
source "$(dirname "$0")/tap.sh"
python3 "$here/../small/run.py" --only-write small || { echo "Bail out! small/run.py fails"; exit 1; }

status 0 "dump" "$burncc" scores.onnx --dump import
mv out scores.txt
status 0 "the model" "$burncc" scores.onnx -o a.c --name scores
status 0 "its text" "$burncc" scores.txt -o b.c --name scores
sed 's/scores.onnx/scores.txt/' a.c | sed 's/a\.h/b.h/' | cmp -s - b.c
result $? "the same code"
mkdir named && cp scores.txt named/scores.onnx
status 0 "the content tells the format, not the name" "$burncc" named/scores.onnx -o c.c
status 0 "after the passes" "$burncc" scores.onnx --dump passes
mv out passes.txt
status 0 "their text" "$burncc" verify passes.txt --data test_data_set_0
status 0 "recorded data" "$burncc" verify scores.txt
[ "$(grep -c '^pass ' out)" = 3 ]
result $? "all data sets pass"
status 0 "inspect" "$burncc" inspect scores.txt
says "format +the compiler's text"
says 'operators +[0-9]+: .*MatMul'
status 0 "inspect --json" "$burncc" inspect scores.txt --json
python3 -c 'import json; d = json.load(open("out")); assert d["supported"] and "opset" not in d'
result $? "no facts of another format"
status 0 "bench" "$burncc" bench scores.txt --seconds 0.01
status 0 "train" "$burncc" scores.txt -o t.c --train --loss mse

status 0 "a sequence of three" "$burncc" small/sequence_positions/model.onnx --dump import --sequence x=3 --dim k=3
mv out three.txt
status 0 "its text" "$burncc" three.txt -o three.c
grep -q 'input x is a sequence of 3: x_0, x_1, x_2$' three.h
result $? "the header names the parameters of x"
status 2 "another length" "$burncc" three.txt -o four.c --sequence x=4
says 'three.txt: error: --sequence x: the graph was made for 3 elements'
status 0 "any length" "$burncc" small/sequence_positions/model.onnx --dump import --sequence x=1..5 --dim k=3
mv out any.txt
status 0 "its text" "$burncc" verify any.txt --data small/sequence_positions/test_data_set_0 --sequence x=1..5

cat >net.txt <<'END'
; y = relu(x w) of any number of rows
graph net(%0 x: f32[n,3]) {
  dim n 2..8
  %1 w = const trainable f32[3,2] {1, 2, 3, 4, 5, 6}
  %2 = MatMul(%0, %1)
  %3 = Relu(%2)
  return %3 y
}
END
echo '1 1 1 -1 -1 -1' >rows
status 0 "by hand" "$burncc" run net.txt --input x=rows
says '^y: f32\[2,2\]'
says '^  9 12 0 0'
status 0 "what it is" "$burncc" inspect net.txt
says '^operators +2: MatMul 1, Relu 1$'
says '^support +all of it$'
status 0 "a size at run time" "$burncc" net.txt -o net.c
grep -q 'size     n_n: n, 2 to 8' net.h
result $? "its bounds are those of the text"
status 0 "one size" "$burncc" net.txt -o net.c --dim n=4
grep -q 'x: f32\[4,3\]' net.h
result $? "--dim fixes it"
status 0 "sizes at run time to train on" "$burncc" net.txt -o net.c --train --loss mse
[ "$(grep -c '^int net_.*int64_t n_n' net.h)" = 4 ]
result $? "all programs but update are told the size"
status 0 "a batch to train on" "$burncc" net.txt -o net.c --train --loss mse --dim n=4
grep -q 'x: f32\[4,3\]' net.h
result $? "--dim fixes it in all programs"
status 0 "the same of a model" "$burncc" small/gemm_dynamic_batch/model.onnx -o net.c --train --loss mse --dim batch=4
status 2 "another dimension" "$burncc" net.txt -o net.c --train --loss mse --dim m=4
says 'error: --dim m: the model has no such dimension; its dimensions: n'
status 0 "targets" "$burncc" verify passes.txt --data test_data_set_0 --target portable
sed 's/MatMul(%0, %1)/MatMul(%1, %0)/; s/dim n 2/dim n 4/' net.txt >wrong.txt
status 1 "shapes that do not fit" "$burncc" wrong.txt -o bad.c
says '^wrong.txt:5:8: \(MatMul\): error: cannot multiply f32\[3,2\] by f32\[n,3\]'
sed 's/Relu(%2)/Relu(%9)/' net.txt >wrong.txt
status 1 "a value that is not there" "$burncc" wrong.txt -o bad.c
says '^wrong.txt:6:14: error: %9 is not defined here'
sed 's/Relu/Rilu/' net.txt >wrong.txt
status 1 "an operation that is not there" "$burncc" wrong.txt -o bad.c
says '^wrong.txt:6:8: error: there is no operation Rilu'
sed '/^}/q' passes.txt >cut.txt
status 1 "its data are cut off" "$burncc" cut.txt -o bad.c
says '^cut.txt:[0-9]+:[0-9]+: error: this constant.s data were left out'
sed '$d' passes.txt >cut.txt
status 1 "a part of them" "$burncc" cut.txt -o bad.c
says '^cut.txt:[0-9]+:[0-9]+: error: its data are shorter than its type'
printf 'graph g(%%0: f32[2]) {\n  %%1 = const f32[200000,200000] fill 0\n  return %%0\n}\n' >huge.txt
status 1 "a constant that no text holds" "$burncc" huge.txt -o bad.c
says '^huge.txt:2:.*: error: constants far larger than the text'
absent bad.c

# Parameters that several modules share: what exporters merge, and an embedding that is the head, too.
cat >tied.txt <<'END'
graph tied(%0 ids: i64[4]) {
  %1 emb.weight = const trainable f32[3,2] {1, 2, 3, 4, 5, 6}
  %2 = Gather(%1, %0) {axis=0}   ; node 0 "/emb/Gather"
  %3 layers.0.norm.weight = const trainable f32[2] fill 1.0
  %4 layers.0.norm.bias = const trainable f32[2] fill 0.0
  %5 = LayerNorm(%2, %3, %4) {axis=1, epsilon=1e-05}   ; node 1 "/layers/layers.0/norm/LayerNormalization"
  %6 = LayerNorm(%5, %3, %4) {axis=1, epsilon=1e-05}   ; node 2 "/layers/layers.0/norm/LayerNormalization_1"
  %7 = LayerNorm(%6, %3, %4) {axis=1, epsilon=1e-05}   ; node 3 "/last/LayerNormalization"
  %8 = Transpose(%1) {perm=[1,0]}   ; node 4 "/head/Transpose"
  %9 = MatMul(%7, %8)   ; node 5 "/head/MatMul"
  return %9 y
}
END
fields() { # of the struct of parameters
    sed -n '/typedef struct .*_params {/,/}/p' "$1" | sed -n 's/^    float \([a-z0-9_]*\).*/\1/p' | tr '\n' ' '
}
status 0 "shared parameters" "$burncc" tied.txt --train -o tied.c
says 'note: parameter layers.0.norm.weight is one of several nodes \(/layers/layers.0/norm/LayerNorm.*, /last/'
says 'merged gives each its own'
says 'note: parameter emb.weight is one of several nodes \(/emb/Gather, /head/Transpose\).* --untie NAME gives'
[ "$(fields tied.h)" = "emb_weight layers_0_norm_weight layers_0_norm_bias " ]
result $? "they stay shared"
sed 's/ "[^"]*"$//' tied.txt >unnamed.txt
status 0 "shared parameters of nodes without names" "$burncc" unnamed.txt --train -o tied.c
says 'note: parameter emb.weight is one of several nodes \(node 0 Gather, node 4 Transpose\)'
status 0 "merged ones apart" "$burncc" tied.txt --train --untie merged -o tied.c
[ "$(fields tied.h)" = "emb_weight layers_0_norm_weight layers_0_norm_bias last_weight last_bias " ]
result $? "one a module, and the head stays tied"
says 'emb.weight is one of'
silent 'norm.weight is one of'
status 0 "all apart" "$burncc" tied.txt --train --untie all -o tied.c
[ "$(fields tied.h)" = "emb_weight layers_0_norm_weight layers_0_norm_bias last_weight last_bias head_weight " ]
result $? "the head too"
silent 'is one of'
status 0 "one apart" "$burncc" tied.txt --train --untie 'last.*|nothing' -o tied.c
[ "$(fields tied.h)" = "emb_weight layers_0_norm_weight layers_0_norm_bias last_weight last_bias " ]
result $? "by the name of a node"
status 0 "one apart" "$burncc" tied.txt --train --untie '^emb' -o tied.c
[ "$(fields tied.h)" = "emb_weight layers_0_norm_weight layers_0_norm_bias head_weight " ]
result $? "by the name of a parameter"
status 2 "none of these" "$burncc" tied.txt --train --untie nothing -o no.c
says 'untie nothing: matches no parameter that several modules share'
status 2 "no expression" "$burncc" tied.txt --train --untie '(' -o no.c
says "wants merged, all or a regular expression, not '\('"
status 2 "nothing to train" "$burncc" tied.txt --untie all -o no.c

# A scale that is a variance too, and what cannot be trained.
cat >norm.txt <<'END'
graph norm(%0 x: f32[4,2]) {
  %1 a.weight = const trainable f32[2] fill 1.0
  %2 a.bias = const trainable f32[2] fill 0.0
  %3 = BatchNorm(%0, %1, %2, %2, %1) {epsilon=1e-05}   ; node 0 "/a/BatchNormalization"
  return %3 y
}
END
status 0 "batch normalization" "$burncc" norm.txt --train --loss mse -o norm.c
[ "$(fields norm.h)" = "a_weight a_bias a_running_mean a_running_var batches " ]
result $? "statistics run, and are neither scale nor shift"
silent 'keeps its statistics'
status 2 "no norm to freeze" "$burncc" norm.txt --frozen-norm -o no.c
says 'frozen-norm goes with --train'
status 0 "batch normalization by fixed statistics" "$burncc" norm.txt --train --frozen-norm --loss mse -o norm.c
[ "$(fields norm.h)" = "a_weight a_bias " ]
result $? "scale and shift are trained"
says 'note: batch normalization keeps its statistics, as in inference \(/a/BatchNormalization\)'

# Dropout has masks of steps, where nothing says otherwise.
cat >drop.txt <<'END'
graph drop(%0 x: f32[4,3]) {
  %1 w = const trainable f32[3,2] {0.5, -0.25, 0.75, 1, -0.5, 0.125}
  %2 = Dropout(%0) {ratio=0.5}   ; node 0 "drop"
  %3 = MatMul(%2, %1)
  return %3 y
}
END
status 0 "dropout" "$burncc" drop.txt --train --loss mse -o drop.c
grep -q 'drop_gradients(.*int64_t step, float loss' drop.h && ! grep -q 'drop_predict(.*step' drop.h
result $? "the gradients are told a step, predictions are not"
sed -n '/^static void drop_predict/,/^}/p' drop.c | grep -q Dropout
[ $? -ne 0 ]
result $? "predictions drop nothing"
cat >drop_model.c <<'END'
#include <burncc/model.h>
MODEL(drop) { output("y", linear(dropout(input("x", F32, 4, 3), 0.5), "l", 2)); }
END
status 0 "a description that drops" "$burncc" drop_model.c --train --loss mse -o drop.c
grep -q 'drop_gradients(.*int64_t step, float loss' drop.h
result $? "its gradients are told a step"
status 0 "a description that drops nothing" "$burncc" drop_model.c --train --no-dropout --loss mse -o drop.c
grep -q 'drop_gradients(.*int64_t step' drop.h
[ $? -ne 0 ]
result $? "its gradients are told none"
says 'note: dropout passes its input on, as in inference'

# Parameters of 16 bits are kept in f32: the same loss and gradients as those of f32 but for the rounding of values.
cat >single.txt <<'END'
graph single(%0 x: f32[4,3]) {
  %1 w = const trainable f32[3,2] {0.5, -0.25, 0.75, 1, -0.5, 0.125}
  %2 b = const trainable f32[2] {0.5, -1}
  %3 = MatMul(%0, %1)
  %4 = Add(%3, %2)
  %5 = Tanh(%4)
  return %5 y
}
END
sed 's/f32/f16/g; s/single/half/' single.txt >half.txt
sed 's/f32/bf16/g; s/single/brain/' single.txt >brain.txt
for name in single half brain; do
    status 0 "parameters of $name" "$burncc" $name.txt --train --loss cross_entropy --optimizer adam -o $name.c
done
cat >halves.c <<'END'
#include "brain.h"
#include "half.h"
#include "single.h"
#include <math.h>
#include <stdio.h>
int main(void) {
    static const float x[12] = {1, -1, .5f, 1, 1, -1, .5f, .5f, -1, -1, 1, .5f};
    static const int64_t target[4] = {0, 1, 1, 0};
    uint16_t h[12], b[12];
    for (int i = 0; i < 12; i++) {
        h[i] = (uint16_t)((x[i] < 0 ? 0x8000 : 0) | (fabsf(x[i]) < 1 ? 0x3800 : 0x3c00));
        b[i] = (uint16_t)((x[i] < 0 ? 0x8000 : 0) | (fabsf(x[i]) < 1 ? 0x3f00 : 0x3f80));
    }
    static single_params sp, sg, bad; static half_params hp, hg; static brain_params bp, bg;
    static single_gradients_workspace sw; static half_gradients_workspace hw; static brain_gradients_workspace bw;
    float loss[3], worst_h = 0, worst_b = 0;
    single_params_init(&sp), half_params_init(&hp), brain_params_init(&bp);
    if (single_gradients(&sw, x, &sp, target, &loss[0], &sg) || half_gradients(&hw, h, &hp, target, &loss[1], &hg)
        || brain_gradients(&bw, b, &bp, target, &loss[2], &bg)) return 1;
    for (int i = 0; i < 6; i++) {
        worst_h = fmaxf(worst_h, fabsf(hg.w[i] - sg.w[i]));
        worst_b = fmaxf(worst_b, fabsf(bg.w[i] - sg.w[i]));
    }
    int64_t beyond[4] = {0, 1, 2, 0}, before[4] = {-1, 0, 0, 0};
    static single_state state;
    if (single_gradients(&sw, x, &sp, beyond, &loss[2], &bad) != -8
        || single_gradients(&sw, x, &sp, before, &loss[2], &bad) != -8
        || single_update(.1f, .9f, .99f, 1e-8f, 0, 0, &sp, &sg, &state) != -8
        || single_update(.1f, .9f, .99f, 1e-8f, 0, 1, &sp, &sg, &state)) return 2;
    printf("%g %g %g %g\n", fabs(loss[1] - loss[0]), fabs(loss[2] - loss[0]), worst_h, worst_b);
    return !(fabsf(loss[1] - loss[0]) < 1e-3f && worst_h < 1e-3f && fabsf(loss[2] - loss[0]) < 1e-2f && worst_b < 1e-2f
        && worst_h > 0);
}
END
# shellcheck disable=SC2086
status 0 "they compile" ${CC:-cc} $BURNCC_CFLAGS halves.c single.c half.c brain.c -lm -o halves
status 0 "their gradients" ./halves
grep -q 'target is outside 0..1' single.h && grep -q 'step is below 1' single.h
result $? "what is out of range is in the header"
finish
