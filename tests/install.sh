#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# What `meson install` puts where, and that it is of use there: headers, pkg-config, sources to link, the manual page,
# completions, the CMake package, and the projects of examples/build.
#
# usage: install.sh BURNCC BUILD      BUILD: the build's folder. It is installed as it is, into a folder that is moved
#                                     before anything is asked of it
source "$(dirname "${BASH_SOURCE[0]}")/commands/tap.sh"
build=$(cd "$OLDPWD" && realpath "$2")
cc=${CC:-cc}
cxx=${CXX:-c++}
skip() { # the reason, and what
    count=$((count + 1))
    echo "ok $count - $2 # SKIP $1"
}
has() { command -v "$1" >/dev/null; }
there() { # files below the prefix
    local missing=''
    for file in "$@"; do [ -f "$prefix/$file" ] || missing+=" $file"; done
    result "$([ -z "$missing" ]; echo $?)" "installed: $*${missing:+ (not there:$missing)}"
}

option() {
    meson introspect "$build" --buildoptions |
        python3 -c 'import json, sys; print({o["name"]: o["value"] for o in json.load(sys.stdin)}[sys.argv[1]])' "$1"
}
if [ "$(option pkgconfig.relocatable)" != True ]; then
    echo "1..0 # SKIP this build was set up by hand, or long ago: meson configure -Dpkgconfig.relocatable=true"
    exit
fi
status 0 "installing" env DESTDIR="$work/staged" meson install -C "$build" --no-rebuild --quiet
prefix=$work/moved\ to
mv "$work/staged$(option prefix)" "$prefix"
libdir=$(dirname "$(dirname "$(cd "$prefix" && find . -name burncc.pc)")")
export PATH=$prefix/bin:$PATH PKG_CONFIG_PATH=$prefix/$libdir/pkgconfig CMAKE_PREFIX_PATH=$prefix

there bin/burncc include/burncc/{burn,threads,image,lbfgs,data,metric,model}.h
there share/burncc/runtime/{threads,image,vulkan,lbfgs,learn/data}.c share/burncc/runtime/{threads,learn/data}.h
there share/doc/burncc/{LICENSE-MIT,LICENSE-APACHE,README.md,docs/install.md,examples/infer/classify.c}
there share/doc/burncc/examples/build/cmake/CMakeLists.txt
absent "$prefix"/include/*.h
find "$prefix/include" "$prefix/share/burncc" -name meson.build -o -name '*.pyc' >out
silent .

# ---------------------------------------------------------------- programs by pkg-config
cat >use.c <<'END'
#include <threads.h>
#include <burncc/image.h>
#include <burncc/lbfgs.h>
#include <burncc/threads.h>
#include <stdio.h>
static int begun(void *p) { return *(int *)p; }
int main(void) {
    int code = 7, got = 0;
    thrd_t thread;
    burn_threads threads;
    int64_t size[2];
    static const unsigned char image[] = "P5 3 2 255 ......";
    if (thrd_create(&thread, begun, &code) || thrd_join(thread, &got) || burn_threads_open(&threads, 2, 0)) return 1;
    burn_threads_close(&threads);
    if (burn_image_size(image, sizeof image, size)) return 2;
    printf("%d %d %d\n", got, (int)size[0], (int)size[1]);
    return 0;
}
END
sed 's/#include <threads.h>//; s/thrd_t thread;//; s/thrd_create.*|| burn_threads_open/burn_threads_open/
     s/printf("%d/got = begun(\&code); printf("%d/' use.c >use.cpp
mapfile -t flags < <(pkg-config --cflags burncc-threads burncc-image burncc-lbfgs | xargs -n 1)
mapfile -t libs < <(pkg-config --libs burncc-threads burncc-image burncc-lbfgs | xargs -n 1)
if echo '#include <threads.h>' | $cc -E - >/dev/null 2>&1; then
    status 0 "a program in C beside C11's threads.h" $cc -std=c11 -Wall -Werror "${flags[@]}" use.c -o use "${libs[@]}"
    status 0 "it runs" ./use
    says '^7 2 3$'
else
    skip "no threads.h of C11 here" "a program in C beside C11's threads.h"
fi
status 0 "a program in C++" $cxx -std=c++17 -Wall -Werror "${flags[@]}" use.cpp -o use_cpp "${libs[@]}"
status 0 "it runs" ./use_cpp
says '^7 2 3$'
for header in "$prefix"/include/burncc/*.h; do
    echo "#include <burncc/${header##*/}>" >header.c
    cp header.c header.cpp
    $cc -std=gnu11 -Wall -Werror "${flags[@]}" -fsyntax-only header.c
    case $header in */model.h | */language.h) ;; # in C alone
    *) $cxx -std=c++17 -Wall -Werror "${flags[@]}" -fsyntax-only header.cpp ;;
    esac
done >out 2>err
silent . # each header stands alone, in C and C++
cat >learn.c <<'END'
#include <burncc/learner.h>
#include <burncc/source.h>
int main(void) {
    int kinds = 0;
    burn_source_help help;
    burn_learner_close(NULL);
    return !burn_metric_kinds(&kinds) || !burn_source_kind(0, &help) || !kinds;
}
END
mapfile -t libs < <(pkg-config --libs burncc-learn | xargs -n 1)
status 0 "a program that learns" $cc -std=c11 -Wall -Werror "${flags[@]}" learn.c -o learn "${libs[@]}"
status 0 "it runs" ./learn
# from a folder of images to a classifier, by three commands
python3 - <<'END'
import os, random
draw = random.Random(1)
for kind in ("across", "down"):
    os.makedirs(f"photos/{kind}")
    for i in range(12):
        at, side = draw.randrange(4, 12), draw.randrange(16, 24)
        dots = bytes(draw.randrange(40) + 200 * ((k // side if kind == "across" else k % side) == at)
                     for k in range(side * side) for _ in range(3))
        open(f"photos/{kind}/{i}.ppm", "wb").write(b"P6 %d %d 255\n" % (side, side) + dots)
END
mapfile -t libs < <(pkg-config --libs burncc-learn burncc-weights | xargs -n 1)
status 0 "a model learns" burncc fit "$here/../../examples/train/photos.c" --data photos --valid photos --set size=16 \
    --set width=8 --epochs 8 --lr 0.01 --batch 8 --artifacts learnt -q
status 0 "the example of what has learnt" $cc -std=c11 -Wall -Wextra -Werror "${flags[@]}" -I learnt \
    "$here/../../examples/infer/learnt.c" learnt/model.c -o see "${libs[@]}"
status 0 "it runs" ./see learnt photos/across/3.ppm photos/down
says '^photos/across/3.ppm	across	'
says '^photos/down/11.ppm	down	'
runtime=$(pkg-config --variable=runtime burncc | sed 's/\\//g')
status 0 "a program with the source of threads" \
    $cc -std=c11 -pthread -c "$runtime/threads.c" -o threads.o
status 0 "sources of the library of data and metrics" $cc -std=c11 -D_POSIX_C_SOURCE=200809L -I "$runtime" -c \
    "$runtime/learn/metric.c" -o metric.o

# ---------------------------------------------------------------- the manual page and completions
page=share/man/man1/burncc.1
there $page share/bash-completion/completions/burncc share/zsh/site-functions/_burncc \
    share/fish/vendor_completions.d/burncc.fish
if has man; then
    status 0 "the manual page is set without a warning" env MANROFFSEQ='' LC_ALL=C.UTF-8 MANWIDTH=120 \
        man --warnings -E UTF-8 -l -Tutf8 "$prefix/$page"
    result "$([ ! -s err ]; echo $?)" "no warning"
    col -bx <out >plain
    cp plain out
    says '^ +--depfile FILE'
    says 'burncc verify MODEL'
    says 'BURNCC_CFLAGS'
else
    skip "no man here" "the manual page is set without a warning"
fi
if has mandoc; then # a date would change with each build
    mandoc -T lint -W warning "$prefix/$page" | grep -v 'missing date' >out
    result "$([ ! -s out ]; echo $?)" "mandoc has no warning"
else skip "no mandoc here" "mandoc has no warning"; fi
complete_bash() { # the last word is being typed
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) bash -c 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
        _burncc; printf "%s\n" "${COMPREPLY[@]}"' - "$prefix/share/bash-completion/completions/burncc" "$@"
}
status 0 "bash completes a command" complete_bash burncc veri
says '^verify$'
status 0 "bash completes an option" complete_bash burncc verify --rt
says '^--rtol$'
status 0 "bash completes another command's option not" complete_bash burncc run x.onnx --rt
silent rtol
status 0 "bash completes a value" complete_bash burncc net.onnx --optimizer ad
says '^adamw$'
if has zsh; then status 0 "zsh reads its completions" zsh -n "$prefix/share/zsh/site-functions/_burncc"
else skip "no zsh here" "zsh reads its completions"; fi
if has fish; then
    status 0 "fish completes" fish --no-config -c "source '$prefix/share/fish/vendor_completions.d/burncc.fish'
        complete -C 'burncc net.onnx --target x86'"
    says '^x86-64-v3'
else skip "no fish here" "fish completes"; fi

# ---------------------------------------------------------------- the projects of examples/build
cp -r "$prefix/share/doc/burncc" tree
chmod -R u+w tree
seven=$work/tree/models/digits/images/7.pgm
projects=$work/tree/examples/build
predicts() { # the program
    status 0 "its prediction" "$1" "$seven"
    says '^7$'
}
# what, what the build says when burncc runs, the command that builds
rebuilds() {
    local what=$1 said=$2
    shift 2
    sleep 0.01
    touch "$work/tree/models/digits/digits.onnx"
    status 0 "$what, when the model has changed" "$@"
    says "$said"
    status 0 "$what, when nothing has" "$@"
    silent "$said"
}

if has make; then
    status 0 "make" make -C "$projects/make"
    predicts "$projects/make/predict"
    rebuilds "make" 'burncc -q' make -C "$projects/make"
else skip "no make here" "make"; fi
if has cmake; then
    for project in cmake cmake-cpp; do
        status 0 "$project: configuring" cmake -S "$projects/$project" -B $project
        status 0 "$project: building" cmake --build $project
        predicts $project/predict
    done
    rebuilds "cmake" 'Compiling the model' cmake --build cmake
    for lang in c cpp; do
        status 0 "a new project" burncc new new-$lang --lang $lang
        sed -n '0,/^The same/s/^    //p' new-$lang/README.md >commands
        status 0 "it builds and predicts by its README" bash -ec "cd new-$lang; $(cat commands)"
        says '^kinds: 5\.66[0-9]*e-05 0\.0969[0-9]+ 0\.9029[0-9]+$'
    done
    mkdir described
    cat >described/CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.20)
project(described LANGUAGES C)
find_package(burncc 0.1 REQUIRED COMPONENTS threads image OPTIONAL_COMPONENTS nonsense)
burncc_add_model(my-net net.c NAME net OPTIONS --threads 2 --target portable)
add_executable(described main.c)
target_link_libraries(described PRIVATE my-net burncc::threads)
get_target_property(weights my-net BURNCC_WEIGHTS)
message(STATUS "weights may be in ${weights}")
END
    printf '#include <burncc/model.h>\n#include "width.h"\nMODEL(net) {\n    Tensor x = input("x", F32, 1, 4);\n%s' \
        '    output("y", linear(x, "fc", WIDTH));
}
' >described/net.c
    echo '#define WIDTH 3' >described/width.h
    printf '#include <burncc/threads.h>\n#include <stdio.h>\n#include "net.h"\n%s' 'static net_workspace ws;
int main(void) {
    float x[4] = { 0 }, y[9];
    burn_threads threads;
    if (burn_threads_open(&threads, 2, 0)) return 1;
    int code = net_run(&ws, x, y, &threads);
    burn_threads_close(&threads);
    printf("%d of %d\n", code, (int)net_model.outputs[0].shape[1]);
    return 0;
}
' >described/main.c
    status 0 "cmake: a description, with threads" cmake -S described -B cmake-described
    says 'weights may be in .*cmake-described/burncc/my-net/net.bin'
    status 0 "cmake: it builds" cmake --build cmake-described
    status 0 "cmake: it runs" cmake-described/described
    says '^0 of 3$'
    sleep 0.01
    echo '#define WIDTH 5' >described/width.h
    status 0 "cmake: a header of the description has changed" cmake --build cmake-described
    says 'Compiling the model'
    status 0 "cmake: it runs" cmake-described/described
    says '^0 of 5$'
    sed -i 's/0\.1 REQUIRED/99 REQUIRED/' described/CMakeLists.txt
    status 1 "cmake: a version that is not here" cmake -S described -B cmake-described
    says 'that is compatible'
else skip "no cmake here" "cmake"; fi
status 0 "meson: configuring" meson setup "$projects/meson" meson-project
status 0 "meson: building" ninja -v -C meson-project
predicts meson-project/predict
rebuilds "meson" "burncc'? -q" ninja -v -C meson-project
if has bazel && [ -n "${BURNCC_TEST_ALL:-}" ]; then
    cp "$projects/predict.c" "$work/tree/models/digits/digits.onnx" "$projects/bazel"
    (cd "$projects/bazel" && bazel --output_user_root="$work/bazel" build --action_env=PATH :predict) >out 2>err
    if grep -q 'Error downloading' err; then skip "Bazel cannot fetch its own rules here" "bazel"
    else
        says 'Build completed successfully'
        predicts "$projects/bazel/bazel-bin/predict"
    fi
    (cd "$projects/bazel" && bazel --output_user_root="$work/bazel" shutdown) && chmod -R u+w "$work/bazel"
else skip "no bazel here, or BURNCC_TEST_ALL is not set" "bazel"; fi
finish
