#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# --package cmake, arduino, platformio, zephyr, esp-idf: built by the tools of each as far as they are here, that is
# cmake and compilers. What the others bring, Arduino's header, Zephyr's and ESP-IDF's functions of CMake, is written
# down here as their documents have it. Two models are in one image, and called from C++: nothing of theirs clashes.
source "$(dirname "$0")/../commands/tap.sh"
digits=$here/../../models/digits
PYTHONPATH=$here/.. python3 - <<'END'
from onnx_wire import blob, graph, model, node, value_info
ends = [value_info("a", 1, [2, 3]), value_info("w", 1, [3, 2]), value_info("long", 6, [2])]
nodes = [node("MatMul", ["a", "w"], ["p"]), node("Add", ["p", "p"], ["y"]), node("Add", ["long", "long"], ["a!"])]
data = model(graph(nodes, ends, [value_info("y", 1, [2, 2]), value_info("a!", 6, [2])]))
open("several.onnx", "wb").write(data + blob(14, blob(1, "license") + blob(2, "MIT")))
END
for kind in cmake arduino platformio zephyr esp-idf; do
    target=$([ $kind = arduino ] && echo cortex-m4)
    status 0 "$kind" "$burncc" "$digits/digits.onnx" --package $kind --quiet ${target:+--target $target}
    status 0 "$kind, several inputs" "$burncc" several.onnx --package $kind --quiet -o several-$kind
    ! grep -rl '@[A-Z_]*@' digits-$kind several-$kind >out
    result $? "no hole is left"
    [ -z "$(grep -rL burncc digits-$kind)" ]
    result $? "files say who wrote them"
done
status 0 "any batch" "$burncc" "$digits/digits_batch.onnx" --dim batch=1..2 --package cmake --name batch --quiet
for name in outside inside; do
    status 0 "ends $name of the workspace" "$burncc" "$digits/digits.onnx" --target cortex-m4 --package cmake --quiet \
        --name $name $([ $name = inside ] && echo --io-in-workspace --region dtcm:24K --region sram:64K)
    status 0 "its example" ${CC:-cc} -Wall -Wextra -Werror -I$name-cmake/src $name-cmake/example/main.c \
        $name-cmake/src/$name.c -lm -o $name
    status 0 "runs" ./$name
    cp out $name.out
done
[ "$(wc -l <inside.out)" = 10 ] && cmp outside.out inside.out
result $? "the same numbers"
status 2 "weights in a file" "$burncc" "$digits/digits.onnx" --package arduino --embed-limit 0
says "wants its weights in the C file: no --embed-limit 0"
mkdir foreign && echo 'name=mine' >foreign/library.properties
status 4 "others' files stay" "$burncc" several.onnx --package arduino -o foreign --quiet
grep -qx 'name=mine' foreign/library.properties
result $? "as they are"

# ---- archives
status 0 "a zip archive" "$burncc" several.onnx --package arduino --quiet --name several -o several.zip
python3 - >out 2>err <<'END'
import os, zipfile
z = zipfile.ZipFile("several.zip")
assert z.testzip() is None
inside = {"several/" + os.path.relpath(os.path.join(d, f), "several-arduino")
          for d, _, files in os.walk("several-arduino") for f in files}
assert set(z.namelist()) == inside and len(z.namelist()) == len(inside)
assert all(z.read(n) == open("several-arduino" + n[len("several"):], "rb").read() for n in inside)
END
result $? "has the folder's files, in one folder"
cp several.zip first.zip
TZ=Asia/Tokyo "$burncc" several.onnx --package arduino --quiet --name several -o several.zip
cmp several.zip first.zip
result $? "the same bytes again, over the first"
echo mine >others.zip
status 4 "others' archives stay" "$burncc" several.onnx --package arduino -o others.zip --quiet
status 2 "no archive" "$burncc" several.onnx --package cargo -o cargo.zip --quiet
status 2 "an archive with weights beside it" "$burncc" "$digits/digits.onnx" --package arduino --embed-limit 0 -o no.zip
[ "$(echo *.zip*)" = "first.zip others.zip several.zip" ] && grep -qx mine others.zip
result $? "nothing is left behind"

# ---- what the formats want
properties() { # of a library.properties
    for field in name version author maintainer sentence paragraph category url architectures includes; do
        [ "$(grep -c "^$field=" "$1")" = 1 ] || return 1
    done
    ! grep -qvE '^[a-z]+=' "$1" && grep -qE '^version=[0-9]+\.[0-9]+\.[0-9]+$' "$1"
}
properties digits-arduino/library.properties && ! grep -q ^license= digits-arduino/library.properties
result $? "library.properties has its fields"
properties several-arduino/library.properties && grep -qx license=MIT several-arduino/library.properties
result $? "and the model's licence"
! grep -vP '^#|^\w+\t(KEYWORD[12]|LITERAL1)$' digits-arduino/keywords.txt >out
result $? "keywords.txt: a tab, and a class"
status 0 "the linter's rules" python3 "$here/../firmware/arduino_rules.py" digits-arduino several-arduino
[ "$(grep -o ' L[A-Z][0-9]* ' out | sort -u)" = " LD002 " ]
result $? "a licence's text is all that it misses"
python3 - >out 2>err <<'END'
import json, os
for name, licence in (("digits", None), ("several", "MIT")):
    library = json.load(open(f"{name}-platformio/library.json"))
    assert library["name"] == name and library.get("license") == licence and library["version"] == "0.1.0"
    assert os.path.exists(f"{name}-platformio/src/{library['headers']}")
    for example in library["examples"]:
        assert all(os.path.exists(f"{name}-platformio/{example['base']}/{f}") for f in example["files"])
END
result $? "library.json has its fields, and what it names is there"
cmp digits-platformio/examples/digits_example/src/main.cpp digits-arduino/examples/digits_example/digits_example.ino
result $? "PlatformIO's program is Arduino's"
[ "$(grep -c CONFIG_BURNCC_DIGITS=y digits-zephyr/samples/digits/prj.conf)" = 1 ] \
    && grep -qx 'config BURNCC_DIGITS' digits-zephyr/Kconfig
result $? "Kconfig has what prj.conf sets"
python3 - >out 2>err <<'END'
try:
    import yaml
except ImportError:
    raise SystemExit
module = yaml.safe_load(open("several-zephyr/zephyr/module.yml"))
assert module == {"name": "several", "build": {"cmake": ".", "kconfig": "Kconfig"}, "samples": ["samples"]}, module
assert "sample.burncc.several" in yaml.safe_load(open("several-zephyr/samples/several/sample.yaml"))["tests"]
component = yaml.safe_load(open("several-esp-idf/idf_component.yml"))
assert component["version"] == "0.1.0" and component["license"] == "MIT" and component["dependencies"], component
END
result $? "YAML says what it should"

# ---- programs of two models
cat >two.inc <<'END'
static digits_workspace digits_memory;
static several_workspace several_memory;
static float image[784], logits[10], a[6] = {1, 2, 3, 4, 5, 6}, w[6] = {1, 0, 0, 1, 1, 1}, y[4];
static int32_t integers[2] = {20, 30}, doubled[2];
static const unsigned char pixels[784] = {
#include "image.inc"
};
static int both(void) /* 7, the digit, where all else is right */
{
    int best = 0;
    for (int i = 0; i < 784; i++) image[i] = (float)pixels[i] / 255;
    if (digits_run(&digits_memory, image, logits)) return -1;
    for (int i = 1; i < 10; i++) best = logits[i] > logits[best] ? i : best;
    if (several_run(&several_memory, a, w, integers, y, doubled)) return -2;
    return y[0] == 8 && y[1] == 10 && y[2] == 20 && y[3] == 22 && doubled[1] == 60 ? best : -3;
}
END
tail -c 784 "$digits/images/7.pgm" | od -An -v -tu1 | sed 's/[0-9]\+/&,/g' >image.inc
printf '#include <stdio.h>\n#include "digits.h"\n#include "several.h"\n#include "two.inc"
int main(void)\n{\n    printf("this is a %%d\\n", both());\n    return 0;\n}\n' >two.c
cp two.c two.cpp

quiet_cmake() { # a project's folder, its build folder, options
    local from=$1 to=$2
    shift 2
    cmake -S "$from" -B "$to" -DCMAKE_BUILD_TYPE=Release -DCMAKE_{C,CXX}_COMPILER_WORKS=1 "$@" && cmake --build "$to"
}
m4="-mthumb -mcpu=cortex-m4 -mfloat-abi=hard -mfpu=fpv4-sp-d16"
arm=false
command -v arm-none-eabi-g++ >/dev/null && command -v qemu-system-arm >/dev/null && arm=true
# Newlib's start-up takes memory from the debugger; before it, the processor's own: a table, and floating point on.
cat >start.c <<'END'
void _start(void);
__attribute__((used)) static void reset(void)
{
    *(volatile unsigned *)0xe000ed88 |= 0xfu << 20;
    _start();
}
__attribute__((section(".vectors"), used)) void *const vectors[] = {(void *)0x21010000, (void *)reset};
END
link="--specs=rdimon.specs -Wl,-u,vectors,--section-start=.vectors=0,-Tdata=0x21000000"
$arm && arm-none-eabi-gcc -O1 $m4 -c start.c -o start.o
board() { qemu-system-arm -M mps2-an386 -nographic -semihosting -kernel "$1" </dev/null 2>&1; }

if command -v cmake >/dev/null; then
    export CFLAGS="-O1 -Wall -Wextra -Werror" CXXFLAGS="-O1 -Wall -Wextra -Werror"
    cat >arm.cmake <<END
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR arm)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
set(CMAKE_C_COMPILER arm-none-eabi-gcc)
set(CMAKE_CXX_COMPILER arm-none-eabi-gcc) # links no libstdc++, which Debian has in a package of 1.5 GB
set(CMAKE_C_FLAGS_INIT "$m4")
set(CMAKE_CXX_FLAGS_INIT "$m4")
set(CMAKE_EXE_LINKER_FLAGS_INIT "$link $work/start.o")
END
    mkdir two && cp two.c two.cpp two.inc image.inc two/
    cat >two/CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.13)
project(two LANGUAGES C CXX)
find_package(digits 0.1 REQUIRED)
find_package(several 0.1.0 REQUIRED)
find_package(digits 0.2 QUIET)
if(digits_FOUND)
  message(FATAL_ERROR "0.1 passes for 0.2")
endif()
foreach(language c cpp)
  add_executable(two-${language} two.${language})
  target_link_libraries(two-${language} PRIVATE digits::digits several::several)
endforeach()
END
    for machine in host $($arm && echo arm); do
        toolchain=$([ $machine = arm ] && echo "-DCMAKE_TOOLCHAIN_FILE=$work/arm.cmake")
        for name in digits several; do
            status 0 "cmake, $machine" quiet_cmake $name-cmake build-$machine-$name $toolchain
            status 0 "installs" cmake --install build-$machine-$name --prefix "$work/prefix-$machine"
        done
        status 0 "both" quiet_cmake two build-$machine-two "-DCMAKE_PREFIX_PATH=$work/prefix-$machine" \
            -DCMAKE_FIND_ROOT_PATH="$work/prefix-$machine" $toolchain
        for language in c cpp; do
            program=build-$machine-two/two-$language
            if [ $machine = arm ]; then status 0 "runs, $machine" board $program; else status 0 "runs" ./$program; fi
            says '^this is a 7'
        done
    done
    status 0 "the example" quiet_cmake several-cmake/example build-example "-DCMAKE_PREFIX_PATH=$work/prefix-host"
    status 0 "runs" build-example/several_example
    says '^y\[3\] = 0$'
    status 0 "any batch" quiet_cmake batch-cmake build-batch -DBATCH_FREESTANDING=ON
    result $? "without a C library"

    # Zephyr: its package finds modules, reads their module.yml, and has these functions.
    mkdir -p zephyr/share
    cat >zephyr/share/ZephyrConfig.cmake <<'END'
project(Zephyr-Kernel LANGUAGES C)
function(zephyr_library_named name)
  add_library(${name} STATIC)
  set(ZEPHYR_CURRENT_LIBRARY ${name} PARENT_SCOPE)
  target_link_libraries(app PRIVATE ${name} m)
endfunction()
function(zephyr_library_sources)
  target_sources(${ZEPHYR_CURRENT_LIBRARY} PRIVATE ${ARGN})
endfunction()
function(zephyr_library_compile_options)
  target_compile_options(${ZEPHYR_CURRENT_LIBRARY} PRIVATE ${ARGN})
endfunction()
function(zephyr_include_directories)
  foreach(folder ${ARGN})
    target_include_directories(app PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/${folder})
  endforeach()
endfunction()
add_executable(app)
file(STRINGS ${CMAKE_CURRENT_SOURCE_DIR}/prj.conf lines REGEX "^CONFIG_.*=y$")
foreach(line ${lines})
  string(REPLACE "=y" "" name ${line})
  set(${name} y)
endforeach()
foreach(module ${ZEPHYR_EXTRA_MODULES})
  file(STRINGS "${module}/zephyr/module.yml" at REGEX "^  cmake: ")
  string(REPLACE "  cmake: " "" at ${at})
  get_filename_component(module ${module} ABSOLUTE)
  get_filename_component(name ${module} NAME)
  add_subdirectory(${module}/${at} modules/${name})
endforeach()
END
    for name in digits several; do
        status 0 "Zephyr" quiet_cmake $name-zephyr/samples/$name build-zephyr-$name "-DZephyr_DIR=$work/zephyr/share"
        status 0 "runs" build-zephyr-$name/app
        says '\[0\] = '
    done
    mkdir -p application/src && cp two.inc image.inc application/src && cp two.c application/src/main.c
    sed "s,^list.*,list(APPEND ZEPHYR_EXTRA_MODULES $work/digits-zephyr $work/several-zephyr)," \
        digits-zephyr/samples/digits/CMakeLists.txt >application/CMakeLists.txt
    cat {digits,several}-zephyr/samples/*/prj.conf >application/prj.conf
    status 0 "Zephyr, two modules" quiet_cmake application build-zephyr "-DZephyr_DIR=$work/zephyr/share"
    status 0 "runs" build-zephyr/app
    says '^this is a 7'

    # ESP-IDF: its project() makes a library of each component, and the program's start calls app_main.
    mkdir -p idf/tools/cmake && echo 'void app_main(void);
int main(void) { app_main(); return 0; }' >idf/start.c
    cat >idf/tools/cmake/project.cmake <<'END'
function(idf_component_register)
  cmake_parse_arguments(x "" "" "SRCS;INCLUDE_DIRS;REQUIRES" ${ARGN})
  get_filename_component(name ${CMAKE_CURRENT_SOURCE_DIR} NAME)
  add_library(__idf_${name} STATIC ${x_SRCS})
  target_include_directories(__idf_${name} PUBLIC ${x_INCLUDE_DIRS})
  set(COMPONENT_LIB __idf_${name} PARENT_SCOPE)
endfunction()
macro(project name)
  _project(${name} C)
  add_executable(${name}.elf $ENV{IDF_PATH}/start.c)
  add_subdirectory(main)
  target_link_libraries(${name}.elf PRIVATE __idf_main)
  foreach(folder ${EXTRA_COMPONENT_DIRS})
    get_filename_component(folder ${folder} ABSOLUTE)
    get_filename_component(component ${folder} NAME)
    add_subdirectory(${folder} ${component})
    target_link_libraries(__idf_main PRIVATE __idf_${component} m)
  endforeach()
endmacro()
END
    for name in digits several; do
        status 0 "ESP-IDF" env IDF_PATH="$work/idf" cmake -S $name-esp-idf/examples/$name -B build-idf-$name
        status 0 "builds" cmake --build build-idf-$name
        status 0 "runs" build-idf-$name/${name}_example.elf
        says '\[0\] = '
    done
else
    echo "# left out: cmake is not here"
fi

# ---- Arduino: every .c of a library's src/, and the sketch, which is C++ behind the header
cat >Arduino.h <<'END'
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
struct Printer {
    void begin(long) {}
    void print(const char *s) { printf("%s", s); }
    void print(char c) { printf("%c", c); }
    void print(int n) { printf("%d", n); }
    void println(const char *s) { printf("%s\n", s); }
    void println(unsigned long n) { printf("%lu\n", n); }
    void println(double x, int digits) { printf("%.*f\n", digits, x); }
};
__attribute__((unused)) static Printer Serial;
static inline unsigned long micros() { return 0; }
static inline void delay(unsigned long) { exit(0); }
void setup();
void loop();
END
echo '#include "Arduino.h"
int main() { setup(); for (;;) loop(); }' >sketch.cpp
if $arm; then
    flags="-Os $m4 -Wall -Wextra -Werror -ffunction-sections -fdata-sections -I."
    flags+=" -Idigits-arduino/src -Iseveral-arduino/src"
    for name in digits several; do
        status 0 "Arduino" arm-none-eabi-gcc -std=gnu11 $flags -c $name-arduino/src/$name.c -o $name.o
        sketch=$name-arduino/examples/${name}_example/${name}_example.ino
        status 0 "its sketch" arm-none-eabi-gcc -std=gnu++11 $flags -x c++ $sketch sketch.cpp -x none $name.o \
            start.o $link -Wl,--gc-sections -lm -o $name.elf
        status 0 "runs" board $name.elf
        says 'microseconds: 0'
    done
    says '^a! 1: 0.000000'
    status 0 "two libraries" arm-none-eabi-gcc -std=gnu++11 $flags two.cpp digits.o several.o start.o $link \
        -Wl,--gc-sections -lm -o two.elf
    status 0 "run" board two.elf
    says '^this is a 7'
else
    echo "# left out: Arduino: arm-none-eabi-g++ or qemu-system-arm is not here"
fi
finish
