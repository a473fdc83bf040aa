#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Quantised models on machines in fixed point: integers from one tensor of bytes to the next, every result within a step
# of the one by way of floats, the same bits by arm_acle.h's instructions (written out in C here) and by plain C.
source "$(dirname "$0")/tap.sh"
cc=${CC:-cc}
PYTHONPATH=$here/.. python3 "$here/integers.py" || { echo "Bail out! integers.py fails"; exit 1; }
mkdir acle
cat >acle/arm_acle.h <<'END_C'
#include <stdint.h>
typedef uint32_t int16x2_t;
static inline int32_t half(uint32_t w, int at) { return (int16_t)(w >> 16 * at); }
static inline uint32_t __ror(uint32_t w, unsigned n) { return w >> n | w << (32 - n); }
static inline int16x2_t __sxtb16(uint32_t w)
{
    return (uint16_t)(int8_t)w | (uint32_t)(uint16_t)(int8_t)(w >> 16) << 16;
}
static inline int32_t __smlad(int16x2_t a, int16x2_t b, int32_t s)
{
    return s + half(a, 0) * half(b, 0) + half(a, 1) * half(b, 1);
}
static inline int32_t __smlabb(int16x2_t a, int16x2_t b, int32_t s) { return s + half(a, 0) * half(b, 0); }
static inline int32_t __smlatt(int16x2_t a, int16x2_t b, int32_t s) { return s + half(a, 1) * half(b, 1); }
END_C
cat >drive.c <<'END_C'
/* Steps between the results of MODEL by floats and by integers, and whether both integer builds agree. */
#include "floats.h"
#include "integers.h"
#include "paired.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static floats_workspace wf;
static integers_workspace wi;
static paired_workspace wp;
int main(void)
{
    uint32_t s = 1;
    int most = 0, off = 0, all = 0;
    for (int k = 0; k < 200; k++) {
        static float in[IN];
        static TYPE a[OUT], b[OUT], c[OUT];
        for (int i = 0; i < IN; i++, s = s * 1664525u + 1013904223u)
            in[i] = (float)(int32_t)s / 2147483648.0f;
        if (floats_run(&wf, in, a) || integers_run(&wi, in, b) || paired_run(&wp, in, c))
            return 2;
        if (memcmp(b, c, sizeof b))
            return 3;
        for (int i = 0; i < OUT; i++, all++) {
            const int d = abs(a[i] - b[i]);
            off += d > 0;
            most = d > most ? d : most;
        }
    }
    printf("most %d, other %d of %d\n", most, off, all);
    return most > 1 || off * 10 > all;
}
END_C
for model in network layers functions halves unsigned_halves half_functions fours; do
    sizes=$(cat $model.sizes)
    for name in floats:portable integers:cortex-m0 paired:cortex-m4; do
        status 0 "$model for ${name#*:}" "$burncc" $model.onnx --target ${name#*:} --name ${name%:*} -o ${name%:*}.c \
            --quiet
        flags="-std=c99 -Wall -Wextra -Wconversion -Wshadow -Werror -O1 -c ${name%:*}.c"
        status 0 "without a warning" $cc $flags -o ${name%:*}.o
    done
    status 0 "by instructions" $cc -std=c99 -O1 -Iacle -D__ARM_FEATURE_SIMD32 -D__ARM_FEATURE_DSP \
        -D__ARM_FEATURE_UNALIGNED -c paired.c -o paired.o
    grep -q '__smlad' paired.c
    result $? "products of half words in $model"
    status 0 "drive $model" $cc -std=c99 -O1 $sizes drive.c floats.o integers.o paired.o -lm -o drive
    status 0 "within a step: $model" ./drive
    says '^most [01],'
done
# weights of 4 bits lie two to a byte unless speed is asked for, and give the same bits
grep -q 'burn_q4_tile' paired.c
result $? 'weights of 4 bits'
status 0 'for speed' "$burncc" fours.onnx --target cortex-m4 --optimize speed --name paired -o apart.c -f --quiet
status 0 'one to a byte' $cc -std=c99 -O1 -c apart.c -o paired.o
! grep -q 'burn_q4' apart.c
result $? 'without taking them apart'
status 0 'drive fours' $cc -std=c99 -O1 $(cat fours.sizes) drive.c floats.o integers.o paired.o -lm -o drive
status 0 'the same bits' ./drive
# floats are left at the model's ends
[ "$("$burncc" network.onnx --target cortex-m4 --dump schedule | grep -c 'round(')" = 1 ]
result $? "nothing is rounded but the input"

"$burncc" functions.onnx --target cortex-m4 --io int8 --name all -o all.c --quiet
! grep -Eq '\(float\)|rintf|burn_exp' <(sed -n '/^static void all_/,$p' all.c)
result $? 'functions of bytes are no floats'
[ "$(grep -c 'int8_t all_.*\[256\]' all.c)" = 5 ]
result $? 'equal tables are one'
# of 16 bits they are parabolas, where these are near enough: at a kink, inside of a run of 256, they are not
"$burncc" half_functions.onnx --target cortex-m4 --io int16 --name all -o all.c -f --quiet
! grep -Eq '\(float\)|rintf|burn_exp|erf_f32' <(sed -n '/^static void all_/,$p' all.c)
result $? 'functions of 16 bits are no floats'
"$burncc" kink.onnx --target cortex-m4 --io int16 --name kink -o kink.c -f --quiet
grep -q '(float)' <(sed -n '/^static void kink_/,$p' kink.c)
result $? 'what bends at once is left to floats'

# --io: the quantized tensors themselves, of either sign
cat >ends.c <<'END_C'
/* Results of MODEL with floats at its ends, and with bytes whose steps the headers and the descriptors tell. */
#include "real.h"
#include "signed.h"
#include "unsigned.h"
#include <math.h>
#include <stdio.h>
static real_workspace wr;
static signed_workspace ws;
static unsigned_workspace wu;
int main(void)
{
    static float x[126], exact[126], y[5], z[126];
    static int8_t in[126], out[5];
    static uint8_t in_u[126], out_u[5];
    uint32_t s = 1;
    for (int k = 0; k < 50; k++) {
        for (int i = 0; i < 126; i++, s = s * 1664525u + 1013904223u) {
            const float q = rintf((float)(int32_t)s / 2147483648.0f / SIGNED_X_SCALE) + SIGNED_X_ZERO;
            in[i] = (int8_t)(q < -128 ? -128 : q > 127 ? 127 : q);
            in_u[i] = (uint8_t)(in[i] + 128);
            x[i] = (float)(in[i] - SIGNED_X_ZERO) * SIGNED_X_SCALE;
        }
        if (real_run(&wr, x, y, exact) || signed_run(&ws, in, out, z) || unsigned_run(&wu, in_u, out_u, z)) return 2;
        for (int i = 0; i < 5; i++) {
            if (fabsf((float)(out[i] - SIGNED_Y_ZERO) * SIGNED_Y_SCALE - y[i]) > 1e-6f) return 3;
            if (out_u[i] != out[i] + 128) return 4;
        }
        for (int i = 0; i < 126; i++)
            if (z[i] != exact[i]) return 5;
    }
    const burn_steps *u = unsigned_model.steps, *v = signed_model.steps;
    printf("%d %d %d\n", (int)u[0].zero, (int)v[0].zero, (int)(SIGNED_X_ZERO - UNSIGNED_X_ZERO));
    return !(u[0].scale == UNSIGNED_X_SCALE && v[1].scale == SIGNED_Y_SCALE && v[2].scale == 0 && !real_model.steps);
}
END_C
for target in cortex-m4 portable; do
    status 0 "floats at the ends for $target" "$burncc" ends.onnx --target $target --name real -o real.c --quiet
    for name in signed:int8 unsigned:uint8; do
        status 0 "--io ${name#*:} for $target" "$burncc" ends.onnx --target $target --io ${name#*:} --name ${name%:*} \
            -o ${name%:*}.c
        says "note: --io: output 'z' stays f32"
    done
    status 0 'drive the ends' $cc -std=c99 -Wall -Wextra -Werror -O1 ends.c real.c signed.c unsigned.c -lm -o ends
    status 0 'bytes at the ends' ./ends
    says '^131 3 -128$'
done
status 2 'no such type' "$burncc" ends.onnx --io int4
status 1 'no such steps' "$burncc" ends.onnx --io int16 -o none.c
says '`burncc quantize` makes models of which they are bytes'
absent none.c
status 2 'not for a model of floats to come' "$burncc" quantize ends.onnx --io int8 --data x -o none.onnx
status 2 'no gradients' "$burncc" ends.onnx --io int8 --train
status 0 'inputs given as floats' "$burncc" bench ends.onnx --io int8 --target cortex-m4 --seconds 0.01
finish
