#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Threads: the pool of runtime/threads.c, with futexes and without, how workers take parts (parts.c), and programs
# compiled with --threads: the same bits on any threads (drive.c), all parts used, even shares, nothing left of threads
# where the option is not given; silent under the thread and the address sanitizer where the compiler has them.
source "$(dirname "$0")/../commands/tap.sh"
tests=$here/..
runtime=$tests/../runtime
compilers=
for cc in gcc clang; do command -v $cc >/dev/null && compilers="${compilers:+$compilers }$cc"; done
[ -n "$compilers" ] || compilers=${CC:-cc}
sanitizer=
echo 'int main(void) { return 0; }' >empty.c
for cc in $compilers; do
    $cc -fsanitize=thread empty.c -o empty 2>err && ./empty && { sanitizer=$cc; break; }
done

warnings="-std=c11 -pedantic -Wall -Wextra -Wconversion -Wshadow -Werror"
pool() { # compiler, flags...
    status 0 "pool, $*" "$@" -g $warnings -I"$runtime" "$tests/threads/pool.c" "$runtime/threads.c" -pthread -o pool
    status 0 "pool runs, $*" ./pool
}
for cc in $compilers; do
    for kind in "" -DBURN_THREADS_NO_FUTEX; do pool $cc -O2 $kind; done
done
for kind in "" -DBURN_THREADS_NO_FUTEX; do [ -z "$sanitizer" ] || pool $sanitizer -O1 -fsanitize=thread $kind; done

parts() { # compiler, flags...
    status 0 "parts, $*" "$@" -g $warnings -I"$runtime" "$tests/threads/parts.c" "$runtime/threads.c" -pthread -o parts
    status 0 "parts run, $*" ./parts
}
for cc in $compilers; do
    for kind in "" -DNO_ATOMICS; do parts $cc -O2 $kind; done
done
[ -z "$sanitizer" ] || parts $sanitizer -O1 -fsanitize=thread

# Programs. With 4:0 every kernel that can be shared out is.
python3 "$tests/small/run.py" --burncc "$burncc" --only-write small >out 2>err || \
    { echo "Bail out! small/run.py fails"; exit 1; }
digits=$tests/../models/digits
model_of() { # name
    case $1 in digits*) echo "$digits/$1.onnx" ;; *) echo small/$1/model.onnx ;; esac
}
options_of() { # name
    case $1 in digits_batch) echo "--dim batch=1..37" ;; matmul_bias) echo "--embed-limit 100" ;; esac
}
drive() { # name, compiler, flags...
    local name=$1 weights=
    shift
    [ ! -f plain_$name.bin ] || weights="plain_$name.bin parts_$name.bin"
    "$@" -g -std=c11 -I"$runtime" -I. "-DPLAIN=plain_${name}_model" "-DTHREADED=parts_${name}_model" \
        "$tests/threads/drive.c" plain_$name.c parts_$name.c \
        "$runtime/threads.c" -lm -pthread -o drive >out 2>err && ./drive $weights >out 2>err
    [ $? = 0 ] && [ ! -s err ]
    result $? "$name: the same bits, $*"
}
models="digits digits_batch matmul_bias attention_written_out lstm_step conv_strided_grouped conv_planes strips
    strips_of_planes conv_bn_relu_add pooling layer_norm reductions
    softmax_both_axes fourier loop_cache loop_while gather_family gemm_dynamic_batch concat_split top_k \
        where_compare pad_modes casts"
[ "${BURNCC_TEST_SHARE:-1}" = 1 ] || models="digits matmul_bias strips conv_planes gemm_dynamic_batch"
sanitized="digits strips attention_written_out conv_bn_relu_add reductions loop_cache gemm_dynamic_batch"
[ "${BURNCC_TEST_SHARE:-1}" = 1 ] || sanitized="strips gemm_dynamic_batch"
cc=${compilers%% *}
for name in $models; do
    for kind in plain parts; do
        threads=
        [ $kind = plain ] || threads="--threads 4:0"
        status 0 "$name, $kind" "$burncc" "$(model_of $name)" --quiet --name ${kind}_$name \
            -o ${kind}_$name.c $(options_of $name) $threads
        status 0 "$name, $kind, without warnings" $cc -std=c99 -pedantic -Wall -Wextra -Wconversion -Wshadow -Werror \
            -O1 -c ${kind}_$name.c -o object.o
    done
    ! grep -Eq "burn_threads \{|burn_parts|ptrdiff_t part" plain_$name.c plain_$name.h
    result $? "$name: no threads where none are asked for"
    grep -q "burn_parts(threads, [234]" parts_$name.c
    result $? "$name: parts where they are asked for"
    drive $name $cc -O2
done
grep -q "burn_keep(" plain_strips.c && grep -q "burn_keep(.* * worker" parts_strips.c
result $? "strips: with buffers of their own in each part"
for name in $sanitized; do
    [ -z "$sanitizer" ] || drive $name $sanitizer -O1 -fsanitize=thread
    ! $cc -fsanitize=address,undefined empty.c -o empty 2>err || drive $name $cc -O1 -fsanitize=address,undefined \
        -fno-sanitize-recover=all
done

# From three workers on parts are finer: in blocks of rows and columns, and of the queries of a head.
cat >nested.c <<'E'
#include <burncc/model.h>

MODEL(nested)
{
    Tensor rows = input("rows", F32, 200, 96), image = input("image", F32, 1, 16, 56, 56);
    Tensor words = input("words", F32, 2, 50, 96), sets = input("sets", F32, 100, 1024);
    output("product", relu(linear(rows, "fc", 320)));
    output("far", linear(sets, "far", 192));
    output("wide", conv2d(image, "wide", 192, 5, .stride = 2, .padding = 2));
    output("winograd", conv2d(image, "winograd", 192, 3, .padding = 1));
    output("attended", multi_head_attention(words, "attention", 3));
}
E
for kind in plain parts; do
    threads=
    [ $kind = plain ] || threads="--threads 8:0"
    status 0 "nested, $kind" "$burncc" nested.c --quiet --name ${kind}_nested -o ${kind}_nested.c $threads
done
[ "$(grep -c 'burn_part_across(part, [0-9]*, [2-9])' parts_nested.c)" -ge 2 ]
result $? "nested: a product and a convolution in blocks"
grep -q "\*kept != unit + 1" parts_nested.c && ! grep -q "\*kept" plain_nested.c
result $? "nested: workers keep tiles that they have transformed"
for threads in 2 8; do
    "$burncc" nested.c --quiet --target x86-64-v4 --name sets -o sets_$threads.c --threads $threads:0
done
grep -q "burn_pack_rows(rows," sets_2.c && ! grep -q "burn_pack_rows(rows," sets_8.c
result $? "nested: from three workers on rows that share cache sets are not copied"
grep -q "i < 8; i++) memset(a[0-9]* + [0-9]* \* i, 0, 2 \* sizeof(void \*))" parts_nested.c
result $? "nested: workers attend to parts of heads, and keep what they have packed"
drive nested $cc -O2

cat parts_digits.h parts_digits_batch.h "$runtime/threads.h" "$runtime/burn.h" parts_digits.h >all.h
for compiler in "$cc -std=c99" "g++ -std=c++11 -x c++"; do
    ! command -v ${compiler%% *} >/dev/null || status 0 "headers together, $compiler" $compiler -Wall -Wextra \
        -pedantic -Werror -fsyntax-only -I"$runtime" -include all.h /dev/null
done
"$burncc" "$digits/digits.onnx" --quiet --name one -o one.c --threads 1 && "$burncc" "$digits/digits.onnx" --quiet \
    --name one -o two.c
sed 's/two\.h/one.h/' two.c | cmp -s - one.c && cmp -s one.h two.h
result $? "--threads 1 is no threads"

# Real networks: how even the workers' shares are, as the plan has them.
even() { # threads, least, model, options...
    local threads=$1 least=$2 name=$3
    shift 3
    status 0 "$name, plan for $threads" "$burncc" "$tests/../models/$name.c" "$@" --quiet --target x86-64-v4 \
        --threads $threads --dump plan
    grep -o "$threads threads at best [0-9.]*" out >best
    awk -v least=$least '{ n++; good = $5 >= least } END { exit !(n == 1 && good) }' best
    result $? "$name: $(cat best) times as fast, $least or more"
}
networks="vit_b_16 gpt2 resnet"
[ "${BURNCC_TEST_SHARE:-1}" = 1 ] || networks=resnet
for name in $networks; do
    case $name in vit_b_16) least="7.9 15.3" ;; gpt2) least="7.9 15.6" ;; resnet) least="7.9 15.5" ;; esac
    case $name in gpt2) set -- --dim length=128 ;; resnet) set -- --set depth=50 ;; *) set -- ;; esac
    even 8 ${least% *} $name "$@"
    even 16 ${least#* } $name "$@"
done

# Commands.
status 0 "verify" "$burncc" verify "$digits/digits.onnx" --quiet --threads 3:0
says "^pass"
status 0 "bench" "$burncc" bench "$digits/digits.onnx" --quiet --threads 2 --seconds 0.1
says "median_ms"
status 0 "run" "$burncc" run "$digits/digits.onnx" --quiet --threads 2:0 --input image="$digits/images/7.pgm"
status 0 "example" "$burncc" "$digits/digits_batch.onnx" --quiet --dim batch=1..512 --threads 4 -o digits_batch.c
status 0 "example builds" $cc -std=c11 -O2 -Wall -Wextra -I. -I"$runtime" "$tests/../examples/infer/threads.c" \
    digits_batch.c "$runtime/threads.c" -lm -pthread -o example
status 0 "example runs" ./example "$digits"/images/*.pgm
says "7.pgm: 7"
says "the same bits"
silent "NOT"
for wrong in 0 257 4: 4:x x; do status 2 "--threads $wrong" "$burncc" "$digits/digits.onnx" --threads $wrong \
    -o none.c; done
status 2 "--target vulkan" "$burncc" "$digits/digits.onnx" --threads 2 --target vulkan -o none.c
finish
