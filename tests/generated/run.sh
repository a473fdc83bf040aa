#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# What generated code promises, over models/digits, its training code and some of small/: C99 without a warning, no
# allocation, no output, no mutable state, no recursion; headers that stand alone; the same bytes each time; the same
# numbers from every target, silent under sanitizers and valgrind. A compiler or tool that is missing is left out.
source "$(dirname "$0")/../commands/tap.sh"
tests=$here/..
runtime=$tests/../runtime
digits=$tests/../models/digits/digits.onnx
small="matmul_bias attention_written_out integer_arithmetic casts quantize_round_trip lstm_step
    string_views string_numbers string_control_flow packed_weights"
targets="portable generic native"
warnings="-std=c99 -pedantic -Wall -Wextra -Wconversion -Wshadow -Wvla -Werror"
plain="-fno-pic -fno-stack-protector -U_FORTIFY_SOURCE"       # objects that call and hold what the source says
compilers=
for cc in gcc clang; do command -v $cc >/dev/null && compilers="${compilers:+$compilers }$cc"; done
[ -n "$compilers" ] || compilers=${CC:-cc}
if [ "${BURNCC_TEST_SHARE:-1}" != 1 ]; then             # a share of them, see scripts/test
    compilers=${compilers%% *}
    small="matmul_bias lstm_step string_views"
fi
machines=("-O2")
grep -qs avx2 /proc/cpuinfo && machines=("-O2" "-O3 -mavx2 -mfma")

python3 "$tests/small/run.py" --burncc "$burncc" --only-write small >out 2>err || \
    { echo "Bail out! small/run.py fails"; exit 1; }
compile() { # model, name, target, options...
    local file=small/$1/model.onnx
    [ -f $file ] || file=$digits
    shift
    "$burncc" "$file" --quiet --target $2 --name $1 -o $1.c "${@:3}" >>out 2>>err
}
for target in $targets; do
    : >out >err
    compile digits digits_$target $target
    result $? "digits, $target"
    compile digits train_$target $target --train
    result $? "digits, $target, --train"
    for model in $small; do
        limit=; [ $model != matmul_bias ] || limit="--embed-limit 100"
        compile $model ${model}_$target $target $limit
        result $? "$model, $target"
    done
done
[ -s matmul_bias_generic.bin ]
result $? "weights above the limit are in a file"
status 0 "strings are not in the file" "$burncc" verify small/string_labels/model.onnx --embed-limit 1 \
    --target portable --quiet
status 0 "any number of strings" "$burncc" verify small/string_join_split/model.onnx --dim count=1..5 \
    --target portable --quiet
status 1 "strings that are too long" "$burncc" verify small/string_join_split/model.onnx --string-bytes 4 \
    --target portable --quiet
says "run returned -5"

# Names that an object leaves to others, and its writable data. Without position independence constants that hold
# addresses are read-only.
libm='acosh?|asinh?|atan2?|atanh|ceil|cosh?|erf|exp|exp2|expm1|fabs|floor|fmax|fmin|fmod|l?l?rint|log|log10|log1p'
libm="$libm|log2|nearbyint|pow|round|sinh?|sqrt|tanh?|trunc"
inference="^(mem(cpy|set|move|cmp)|str(chr|cmp|cspn|len|spn|str)|($libm)f?)$"
files="f(close|error|flush|ileno|open|puts|read|seek|sync|tell|write)|getc|fgetc|putc|fputc|remove|rename|close|open"
texts="snprintf|sscanf|__isoc(99|23)_sscanf|__errno_location"
training="^(mem(chr|cpy|set|move|cmp)|($libm)f?|str(cmp|len|rchr|str)|$files|$texts)$"
foreign() { # object, allowed names
    nm -u $1 | sed 's/.* //' | grep -Ev "$2"
    nm $1 | grep -E ' [bBdDcCsSgG] '
}
headers='math|stdbool|stddef|stdint|string|immintrin|arm_neon|(x86|arm)intrin'
for target in $targets; do
    for source in *_$target.c; do
        allowed=$inference std=$headers
        [[ $source != train_* ]] || allowed=$training std="$headers|limits|stdio|errno|fcntl|unistd"
        [ $target != portable ] || std=${std/|immintrin|arm_neon|(x86|arm)intrin/}
        ! grep -Eh '^ *# *include' $source ${source%.c}.h | grep -Ev "<($std)\.h>|\"${source%.c}\.h\"" >out
        result $? "$source includes standard headers and its own"
        for cc in $compilers; do
            for machine in "${machines[@]}"; do
                [ "$target$machine" = "portable-O3 -mavx2 -mfma" ] && continue
                status 0 "$cc $machine $source" $cc $warnings $plain $machine -c $source -o object.o
                foreign object.o "$allowed" >out
                [ ! -s out ]
                result $? "$cc $machine $source: no foreign name, no mutable data"
            done
        done
    done
done

# Several targets: names that begin as the compiler's own words do must not become the copies' names.
several=x86-64-v2,x86-64-v3,x86-64-v4
: >out >err
compile digits vector $several
result $? "digits, $several"
compile digits train_several $several --train
result $? "digits, $several, --train"
for source in vector.c train_several.c; do
    allowed=$inference
    [ $source = vector.c ] || allowed=$training
    for cc in $compilers; do
        for machine in -O3 "-O3 -march=native"; do
            status 0 "$cc $machine $source" $cc $warnings $plain $machine -c $source -o object.o
            foreign object.o "$allowed|^__cpu_model$" >out
            [ ! -s out ]
            result $? "$cc $machine $source: no foreign name, no mutable data"
        done
    done
done

# Addresses that gcc writes relative to null: kernels keep their effects, and so do parts (tests/threads has them all).
for cc in $compilers; do
    for machine in -O1 -O2 -O3; do
        for kind in "" -DBURN_PORTABLE; do
            status 0 "addresses in one object, $cc $machine $kind" $cc -std=c99 -pedantic -Wall -Wextra \
                -Werror $machine $kind -Wno-unused-function -I"$tests/../templates/c" "$tests/generated/addresses.c" \
                -o addresses
            status 0 "their kernel runs, $cc $machine $kind" ./addresses
        done
    done
done

# Skeletons are C as they stand, like the templates.
for cc in $compilers; do
    for skeleton in "$tests"/../templates/skeleton/*; do
        status 0 "$cc $(basename "$skeleton")" $cc -std=c99 -Wall -Werror -Wno-unused-function -fsyntax-only \
            -x c "$skeleton"
    done
done

# Each header alone, in C++; all of them together with the runtime's.
if command -v g++ >/dev/null; then
    for header in *_portable.h *_generic.h; do
        status 0 "$header in C++" g++ -std=c++11 -Wall -Wextra -pedantic -Werror -fsyntax-only -x c++ \
            -include $header /dev/null
    done
fi
: >all.c
for header in *_portable.h *_generic.h; do printf '#include "%s"\n' $header >>all.c; done
printf '#include "burn.h"\nint none(void);\nint none(void) { return 0; }\n' >>all.c
sed '/none/d' all.c | cat - all.c >twice.c
for cc in $compilers; do status 0 "all headers twice, $cc" $cc $warnings -I"$runtime" -I. -c twice.c -o object.o; done
# Training code in one file with the headers of all that it may be used with: no name is of both.
for header in "$runtime"/*.h "$runtime"/learn/*.h; do
    case $header in */*_own.h | */*_family.h) ;; *) echo "#include \"${header#"$runtime"/}\"" ;; esac
done >headers.c
echo '#include "train_generic.c"' | cat - headers.c >beside.c
for cc in $compilers; do
    status 0 "training code beside the library's headers, $cc" $cc $warnings -I"$runtime" -I. -c beside.c -o object.o
done
for cc in $compilers; do
    status 0 "typed functions, $cc" $cc $warnings -O1 -I"$runtime" \
        -I. "$tests/generated/nulls.c" digits_portable.c matmul_bias_portable.c -lm -o nulls
    status 0 "null pointers" ./nulls
done

# All of them in one file, those for several targets too: what they have in common gets a name of each. Training code
# comes first, as it asks the C library for POSIX. And inference is C++ as well.
for source in train_*.c; do echo "#include \"$source\""; done >unity.c
for source in *_portable.c *_generic.c vector.c; do
    case $source in train_*) ;; *) echo "#include \"$source\"" ;; esac
done | tee inference.c >>unity.c
for cc in $compilers; do status 0 "all code in one file, $cc" $cc $warnings -O0 -c unity.c -o object.o; done
for cc in g++ clang++; do
    command -v $cc >/dev/null || continue
    status 0 "inference in C++, $cc" $cc -std=c++11 -O0 -Wall -Wno-enum-compare -Werror \
        -x c++ -c inference.c -o object.o
done

# No function calls itself, by any path; no stack frame of unknown size.
if gcc -fcallgraph-info -c all.c -I"$runtime" -o object.o 2>/dev/null; then
    for source in *_portable.c; do
        gcc -std=c99 -O0 -fcallgraph-info=su -c $source -o graph.o
        python3 - graph.ci >out <<'END_PYTHON'
import re, sys
text = open(sys.argv[1]).read()
calls = {}
for a, b in re.findall(r'edge: \{ sourcename: "([^"]*)" targetname: "([^"]*)"', text):
    calls.setdefault(a, set()).add(b)
done = set()
def walk(f, path):
    if f in path:
        sys.exit("recursion: " + " ".join(path[path.index(f):] + [f]))
    if f not in done:
        for g in sorted(calls.get(f, ())):
            walk(g, path + [f])
        done.add(f)
for f in sorted(calls):
    walk(f, [])
assert calls and "static)" in text
assert "(dynamic)" not in text, "a frame of unknown size"
END_PYTHON
        result $? "$source: no recursion, frames of known size"
    done
fi

# The same bytes, wherever it is run from.
mkdir -p elsewhere/deep
for target in $targets; do
    for model in digits train; do
        options=; [ $model = digits ] || options=--train
        for folder in elsewhere elsewhere/deep; do
            (cd $folder && cp "$digits" . &&
                "$burncc" digits.onnx --quiet --target $target $options -o ${model}_$target.c) >out 2>err
            cmp -s $folder/${model}_$target.c ${model}_$target.c && cmp -s $folder/${model}_$target.h ${model}_$target.h
            result $? "${model}_$target: the same bytes from $folder"
        done
    done
    (cd elsewhere && "$burncc" ../small/matmul_bias/model.onnx --quiet --target $target --embed-limit 100 \
        -o matmul_bias_$target.c) >out 2>err
    cmp -s elsewhere/matmul_bias_$target.bin matmul_bias_$target.bin &&
        cmp -s elsewhere/matmul_bias_$target.c matmul_bias_$target.c
    result $? "matmul_bias_$target: the same bytes, weights too"
done
for model in digits train lstm_step; do                 # headers differ in the target's name and in sizes of workspaces
    for target in $targets; do
        names="s/_$target/_T/g; s/_${target^^}_H/_T_H/; s/--target $target/--target T/"
        sed "$names; s/bytes\[[0-9]*\]/bytes[]/" ${model}_$target.h >$target.header
    done
    cmp -s portable.header generic.header && cmp -s portable.header native.header
    result $? "$model: one interface for all targets"
done

# All targets in one program. The sanitizers see each access; valgrind, reads of what was never written.
drive() { # model, compiler, flags
    local model=$1 cc=$2 list= sources= target
    shift 2
    for target in $targets; do
        list="$list&${model}_${target}_model,"
        sources="$sources -include ${model}_$target.h"
    done
    $cc -std=c99 -D_POSIX_C_SOURCE=200112L "$@" -I"$runtime" -I. $sources "-DMODELS=$list" \
        "$tests/generated/drive.c" ${model}_{portable,generic,native}.c -lm -o drive >out 2>err && ./drive >out 2>err
    [ $? = 0 ] && [ ! -s err ]
    result $? "$model: targets agree, $cc $*"
}
for target in $targets; do sed "s/train_$target/train/g" train_$target.c >$target.train.c; done
sanitize="-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all"
export ASAN_OPTIONS=detect_leaks=0
can_sanitize=
echo 'int main(void) { return 0; }' >empty.c
for cc in $compilers; do
    $cc $sanitize empty.c -o empty 2>err && ./empty && { can_sanitize=$cc; break; }
done
cc=${compilers%% *}
for model in digits $small; do
    [ -z "$can_sanitize" ] || drive $model $can_sanitize $sanitize
    for machine in "${machines[@]}"; do drive $model $cc $machine; done
    case $model in digits | attention_written_out | lstm_step) ;; *) continue ;; esac
    if command -v valgrind >/dev/null; then status 0 "$model under valgrind" valgrind -q --error-exitcode=9 ./drive; fi
done
for target in $targets; do
    sed "s/train_$target/train/g" train_$target.h >train.h
    status 0 "training, $target, builds" "${can_sanitize:-$cc}" -std=c99 ${can_sanitize:+$sanitize} -I. \
        "$tests/generated/train.c" $target.train.c -lm -o train
    status 0 "training, $target" ./train
done
finish
