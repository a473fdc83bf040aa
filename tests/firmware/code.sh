#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# What code for microcontrollers promises beside its numbers: it links without any library (BURN_FREESTANDING), all of
# clang's warnings but those of docs/firmware.md are silent, and cppcheck's MISRA addon finds no rule broken that is not
# among the deviations there. A tool that is missing is left out.
source "$(dirname "$0")/../commands/tap.sh"
tests=$here/..
page=$tests/../docs/firmware.md
models="digits conv_bn_relu_add matmul_bias pooling softmax_both_axes lstm_step concat_split quantize_round_trip
    bytes_conv_image bytes_conv_depthwise shared string_numbers string_join_split string_labels"
misra="conv_bn_relu_add matmul_bias pooling softmax_both_axes bytes_conv_image bytes_conv_depthwise
    shared conv_windows.portable branch.portable packed_weights.cortex-m4 halves_conv.cortex-m4
    bytes_any_batch.cortex-m4 axes.cortex-m4 string_numbers.cortex-m4 string_found.cortex-m4
    string_normalizer.cortex-m4 string_join_split.cortex-m4 shapes.cortex-m4 sequence_strings.cortex-m4"
[ "${BURNCC_TEST_SHARE:-1}" = 1 ] || misra="conv_bn_relu_add bytes_conv_depthwise shared conv_windows.portable"
python3 "$tests/small/run.py" --burncc "$burncc" --only-write small >out 2>err || \
    { echo "Bail out! small/run.py fails"; exit 1; }
for model in $models; do
    file=small/${model/shared/conv_bn_relu_add}/model.onnx
    [ -f $file ] || file=$tests/../models/digits/digits.onnx
    status 0 "$model" "$burncc" $file --quiet --target cortex-m4 --name $model -o $model.c \
        $([ $model = shared ] && echo --share --optimize size)
done

listed() { # what stands between the first two columns' backquotes of the page's table of this heading
    sed -n "/^### $1/,/^##/p" "$page" | grep -o '^| `[^`]*`' | cut -d'`' -f2
}

arm="-O2 -mthumb -mcpu=cortex-m4 -mfloat-abi=hard -mfpu=fpv4-sp-d16 -ffp-contract=off -fno-math-errno"
free="-std=c99 -Wall -Wextra -Werror -ffreestanding -DBURN_FREESTANDING"
for cc in "arm-none-eabi-gcc -nostdinc -isystem $(arm-none-eabi-gcc -print-file-name=include 2>/dev/null)" \
    "clang --target=arm-none-eabi -nostdlibinc"; do
    command -v ${cc%% *} >/dev/null || { echo "# left out: ${cc%% *} is not here"; continue; }
    for model in digits conv_bn_relu_add matmul_bias pooling softmax_both_axes concat_split; do
        status 0 "$model alone, ${cc%% *}" $cc $arm $free -c $model.c -o $model.o
        nm -u $model.o >out 2>err && [ ! -s out ]
        result $? "asks for nothing"
    done
done

# ---- what it takes: flash as the linker counts it, stack, budgets
if command -v arm-none-eabi-gcc >/dev/null; then
    m4="$burncc $tests/../models/digits/digits.onnx --quiet --target cortex-m4"
    status 0 "footprint" env CC= BURNCC_CFLAGS= $m4 --name digits -o taken.c --report
    flash=$(grep '^flash' out) stack=$(grep '^stack' out)
    says "^flash [0-9]* bytes: .text [0-9]*, .rodata [0-9]*, .data 0, .bss 0, by arm-none-eabi-gcc$"
    sections=$(echo "$flash" | sed 's/.*text \([0-9]*\), .rodata \([0-9]*\).*/\1 \2/')
    arm-none-eabi-gcc -std=c99 $arm -ffunction-sections -fdata-sections -c taken.c -o taken.o &&
        arm-none-eabi-ld --gc-sections -e digits_run taken.o -o taken.elf 2>err
    [ "$(arm-none-eabi-size -A taken.elf | awk '/^.text|^.rodata/ { printf "%s%s", s, $2; s = " " }')" = "$sections" ]
    result $? "flash is what is linked: $sections"
    takes=$(echo "$flash" | cut -d' ' -f2) needs=$(echo "$stack" | cut -d' ' -f2)
    status 0 "budgets that are kept" env CC= BURNCC_CFLAGS= $m4 -o kept.c --flash $takes --stack $needs
    status 3 "budgets that are passed" env CC= BURNCC_CFLAGS= ${m4/--quiet/} -o passed.c \
        --flash $((takes - 1)) --stack $((needs - 1))
    says "^burncc: error: --flash: passed takes $takes bytes .*; arm-none-eabi-gcc.*, not $((takes - 1))$"
    says "^burncc: note: [0-9]* .rodata passed_run_w"
    says "^burncc: error: --stack: passed_run takes $needs bytes .*: passed_run [0-9]*, passed_k0_conv1"
    [ ! -f passed.c ] && [ ! -f passed.h ]
    result $? "nothing is written"
    model=$tests/../models/digits/digits.onnx
    for command in verify "bench --seconds 0.01"; do
        status 0 "$command within budgets" env CC= BURNCC_CFLAGS= "$burncc" $command $model --quiet \
            --target cortex-m4 --flash $takes --stack $needs
        status 3 "$command, budgets that are passed" env CC= BURNCC_CFLAGS= "$burncc" $command $model \
            --target cortex-m4 --flash $((takes - 1)) --stack $((needs - 1))
        says "^burncc: error: --flash: digits takes $takes bytes .*; arm-none-eabi-gcc.*, not $((takes - 1))$"
        says "^burncc: error: --stack: digits_run takes $needs bytes "
    done
    status 3 "without a compiler" env CC= PATH=/nowhere $m4 -o passed.c --flash 38K --stack 1K
    says "estimated\), not 38912$"
    says "^burncc: error: --stack: .* there is no C compiler for the target here; set CC"
    status 0 "an estimate" env CC= PATH=/nowhere $m4 -o kept.c -f --report
    says "bytes of code a kernel"
    # two convolutions and a product without a Relu are one function
    status 0 "small code" env CC= BURNCC_CFLAGS= $m4 --optimize size --name small -o small.c -f --report
    text=$(sed -n 's/^flash .*: .text \([0-9]*\),.*/\1/p' out)
    [ "${text:-9999}" -le 800 ]
    result $? "small code takes $text bytes"
    [ "$(grep -c '^static.* small_k[0-9]*_[^;]*$' small.c)" -gt 0 ] && grep -q 'small_k0_conv1_sizes' small.c
    result $? "its layers are calls of a function with a table"
    if command -v clang >/dev/null; then
        status 0 "footprint, clang" env CC="clang --target=arm-none-eabi -nostdlibinc -DBURN_FREESTANDING" \
            $m4 -o kept.c -f --report
        says "^flash .* by clang"
        says "^stack [0-9]* bytes at most: kept_run"
    fi
fi
status 2 "a stack elsewhere" "$burncc" $tests/../models/digits/digits.onnx --target portable -o no.c --stack 1K
says "--stack"

if command -v clang >/dev/null; then
    silenced=$(listed "Warnings" | sed 's/^-W/-Wno-/')
    [ -n "$silenced" ]
    result $? "the page lists warnings"
    for model in $models; do
        status 0 "all warnings, $model" clang $arm --target=arm-none-eabi -nostdlibinc -ffreestanding \
            -DBURN_FREESTANDING -std=c99 -Weverything $silenced -Werror -c $model.c -o all.o
    done
else
    echo "# left out: clang is not here"
fi

if command -v cppcheck >/dev/null; then
    listed "MISRA C" | sed 's/^/misra-c2012-/' | sort >deviations
    [ -s deviations ]
    result $? "the page lists deviations"
    sed -n '/^### MISRA C/,/^##/s/^| `\([0-9.]*\)` | required.*/\1/p' "$page" | sort >required
    sed -n '/^\/\* Required rules of MISRA/,/\*\//p' pooling.c | grep '^ \*   ' | cut -c6- | sed 's/   *.*//' |
        tr -d ' ' | tr , '\n' | sort >stated
    [ -s required ] && cmp required stated >out 2>err
    result $? "and each file those from required rules"
    for model in $misra; do
        [ -f $model.c ] || "$burncc" small/$(echo $model | cut -d. -f1)/model.onnx --quiet --target ${model#*.} \
            --name model -o $model.c
        cppcheck --addon=misra --std=c99 --quiet --template='{id}' -D__GNUC__=12 $model.c >/dev/null 2>found
        grep -o 'misra-c2012-[0-9.]*' found | sort -u | grep -vxF -f deviations >out
        [ -s found ] && [ ! -s out ]
        result $? "MISRA C:2012, $model"
    done
else
    echo "# left out: cppcheck is not here"
fi
finish
