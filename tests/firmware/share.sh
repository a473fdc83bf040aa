#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# --share: two and three models in one image. Each computes the same bits as alone; of what they have in common there
# is one copy, and less code than where each brings its own. By this machine's compilers, whose linker throws away what
# nobody calls, and with sizes by arm-none-eabi-gcc where it is.
source "$(dirname "$0")/../commands/tap.sh"
tests=$here/..
python3 "$tests/small/run.py" --burncc "$burncc" --only-write small >out 2>err || \
    { echo "Bail out! small/run.py fails"; exit 1; }
digits=$tests/../models/digits/digits.onnx
models="digits other depth lenet image bytes soft"
source_of() { # the model that is compiled under this name
    case $1 in
    digits | other) echo "$digits" ;;
    lenet) echo "$tests/../models/lenet.c" ;;
    depth) echo small/bytes_conv_depthwise/model.onnx ;;
    image) echo small/conv_bn_relu_add/model.onnx ;;
    bytes) echo small/bytes_conv_image/model.onnx ;;
    soft) echo small/softmax_both_axes/model.onnx ;;
    esac
}
for way in apart share; do
    mkdir $way
    for m in $models; do
        status 0 "$m, $way" "$burncc" "$(source_of $m)" --quiet --target cortex-m4 --optimize size --name $m \
            -o $way/$m.c $([ $way = share ] && echo --share)
    done
done

strict="-std=c99 -Wall -Wextra -Werror -Wmissing-prototypes -pedantic -O1 -ffp-contract=off"
objects() { # of all models, by this compiler, with the flags behind the names of the way and of the folder
    local way=$1 to=$2 m failed=0
    shift 2
    mkdir -p $to
    for m in $models; do $cc $strict "$@" -c $way/$m.c -o $to/$m.o >>out 2>>err || failed=1; done
    return $failed
}
run_of() { # what these models compute, in one program of the objects in $1
    local from=$1 listed= files=
    shift
    rm -f program
    for m in "$@"; do listed+="X($m)" files+=" $from/$m.o"; done
    status 0 "$from: $*" $cc $strict -Ishare -DFIRST="\"$1.h\"" "-DMODELS=$listed" \
        "$here/../firmware/share.c" $files $collect -lm -o program
    status 0 "runs" ./program
}
copies() { nm program | awk '$3 ~ /^burn_k_[0-9a-f]*$/ { print $3 }' | sort; }

for cc in gcc clang; do
    command -v $cc >/dev/null || { echo "# left out: $cc is not here"; continue; }
    collect=-Wl,--gc-sections
    for way in apart share; do status 0 "$cc, $way" objects $way $way-$cc; done
    for m in $models; do
        run_of apart-$cc $m
        cp out $m.alone
    done
    for set in "digits other" "digits lenet image" "digits other depth" "$models"; do
        run_of share-$cc $set
        cp out together
        [ -s together ] && for m in $set; do cat $m.alone; done | cmp - together
        result $? "the same bits as alone: $set"
        copies >out
        [ -s out ] && [ -z "$(uniq -d out)" ]
        result $? "one copy of each: $(wc -l <out)"
    done
    # ---- a linker that keeps what it is given; compilers that have no such functions; one translation unit
    collect= run_of share-$cc digits other lenet
    cat digits.alone other.alone lenet.alone | cmp - out
    result $? "the same bits where all copies stay"
    status 0 "$cc, functions of their own" objects share own-$cc -U__ELF__
    run_of own-$cc digits other lenet
    cat digits.alone other.alone lenet.alone | cmp - out && [ "$(copies | uniq -d | wc -l)" -gt 0 ]
    result $? "and where they cannot be shared"
    printf '#include "%s.c"\n' $models >share/one.c
    status 0 "one file of all" $cc $strict -Ishare -DFIRST='"one.c"' "-DMODELS=$(printf 'X(%s)' $models)" \
        -Wno-missing-prototypes -Wno-redundant-decls "$here/../firmware/share.c" -lm -o program
    status 0 "runs" ./program
    for m in $models; do cat $m.alone; done | cmp - out
    result $? "the same bits"
done

# ---- the same model twice is one model's code, and files of other options have nothing in common
names() { grep -ho '#define BURN_K_[0-9a-f]*' "$@" | sort -u; }
names share/digits.c >out
names share/other.c | cmp - out
result $? "the same names"
status 0 "another target" "$burncc" "$digits" --quiet --target cortex-m55 --optimize size --share -o m55.c
[ -z "$(names m55.c share/digits.c | sort | uniq -d)" ] || ! diff <(names m55.c) <(names share/digits.c) >out
result $? "has names of its own where its code is another"
status 0 "as it is without" "$burncc" "$digits" --quiet --target cortex-m4 --optimize size --name digits -o plain.c
sed 's/plain\.h/digits.h/' plain.c | cmp - apart/digits.c && ! grep -q burn_k_ plain.c
result $? "nothing of it is there"
status 0 "verify" "$burncc" verify "$digits" --share --optimize size --data "$tests/../models/digits/test_data_set_0"
status 0 "training" "$burncc" "$digits" --quiet --train --share -o learns.c
status 0 "compiles" ${CC:-cc} -std=c99 -Wall -Wextra -Werror -O1 -c learns.c -o learns.o

# ---- what does not go together
status 2 "several targets" "$burncc" "$digits" --target x86-64-v3,x86-64-v4 --share -o no.c
says "^burncc: error: --share is for one target"
status 2 "a GPU" "$burncc" "$digits" --target vulkan --share -o no.c
says "^burncc: error: --share is for C, not for --target vulkan"
status 2 "code in a region" "$burncc" "$digits" --target cortex-m4 --region itcm:64K=code --region ram:64K \
    --share -o no.c
says "^burncc: error: --share and a --region for code do not go together"
[ ! -f no.c ]
result $? "nothing is written"

# ---- sizes
if command -v arm-none-eabi-gcc >/dev/null; then
    arm="-Os -mthumb -mcpu=cortex-m4 -mfloat-abi=hard -mfpu=fpv4-sp-d16 -ffp-contract=off -ffreestanding
        -DBURN_FREESTANDING -ffunction-sections -fdata-sections -nostdlib -nostartfiles -Wl,--gc-sections"
    text() { # of an image of these models in the folder $1
        local from=$1 keep= files=
        shift
        for m in "$@"; do keep+=" -Wl,-u,${m}_run" files+=" $from/$m.c"; done
        arm-none-eabi-gcc $arm -Wl,-e,$1_run $keep $files -lgcc -o image.elf 2>err &&
            arm-none-eabi-size -A image.elf | awk '$1 == ".text" { print $2 }'
    }
    for set in "digits other" "digits lenet image" "$models"; do
        apart=$(text apart $set) together=$(text share $set)
        echo "# $set: $apart bytes of text, shared $together"
        [ "$together" -lt "$apart" ]
        result $? "less code: $set"
    done
    status 0 "footprint" env CC= BURNCC_CFLAGS= "$burncc" "$digits" --quiet --target cortex-m4 --optimize size --share \
        -o report.c --report
    says "^flash [0-9]* bytes: .text [0-9]*, .*by arm-none-eabi-gcc$"
    says "^stack [0-9]* bytes at most: .*burn_k_"
else
    echo "# left out: arm-none-eabi-gcc is not here"
fi
finish
