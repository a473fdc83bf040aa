#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Every model of the zoo describes a network of the published number of parameters, running statistics aside. Those of
# many parameters with one layer: 12 of bert's 7087872, for example, are its 109482240.
source "$(dirname "$0")/tap.sh"
models=$here/../../models

holds() { # PARAMETERS MODEL SETTINGS...
    local want=$1 model=$2
    shift 2
    "$burncc" "$models/$model.c" "$@" --dump import >out 2>err
    local got
    got=$(sed -nE 's/^  %[0-9]+ [^ ]+ = const trainable f32\[([0-9,]*)\].*/\1/p' out |
        awk -F, '{ n = 1; for (i = 1; i <= NF; i++) n *= $i; sum += n } END { printf "%.0f", sum }')
    : >out
    [ "$got" = "$want" ]
    result $? "$model $*: $want parameters$([ "$got" = "$want" ] || echo ", not $got")"
}
holds 61706 lenet
holds 118282 mlp
holds 11689512 resnet
holds 3504872 mobilenet_v2
holds 1235496 squeezenet
holds 5288548 efficientnet_b0
holds 7978856 densenet
holds 912159 yolox_nano
holds 1675778 lstm_classifier
holds 106758 gru_classifier
holds 31037698 unet
holds $((86567656 - 11 * 7087872)) vit_b_16 --set layers=1
holds $((22713216 - 5 * 1774464)) bert --set layers=1 --set width=384
holds $((66362880 - 5 * 7087872 - 30000 * 768)) distilbert --set layers=1 --set vocabulary=522
holds 11683584 albert
holds $((35330816 - 5 * 3146752 - 32000 * 512)) t5_encoder --set layers=1 --set vocabulary=128
holds $((124439808 - 11 * 7087872 - 50000 * 768)) gpt2 --set layers=1 --set vocabulary=257
holds $((494032768 - 23 * 14912384 - 151000 * 896)) llama --set width=896 --set layers=1 --set heads=14 \
    --set kv_heads=2 --set inner=4864 --set bias=1 --set vocabulary=936 --set base=1e6 --set eps=1e-6 --set tied=1
holds $((37760640 - 51000 * 384 - 576000)) whisper --set vocabulary=865
status 1 "a depth that there is not" "$burncc" inspect "$models/vgg.c" --set depth=12
says 'there is no VGG of depth 12; there are 11, 13, 16 and 19'
finish
