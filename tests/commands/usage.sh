#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Mistakes on the command line: status 2 and a line that helps.
source "$(dirname "$0")/tap.sh"

status 2 "no arguments" "$burncc"
says 'no model; usage: burncc MODEL'
status 0 "help" "$burncc" --help
says 'burncc verify MODEL'
says 'Exit status'
for command in compile verify run bench inspect tune ops manual completions; do
    status 0 "$command --help" "$burncc" $command --help
    says "Usage: burncc"
done
status 0 "version" "$burncc" --version
says '^burncc [0-9]+\.[0-9]+'
says 'MIT OR Apache-2.0'
says 'protobuf-c +[0-9]'
says 'jansson +[0-9]'
says 'libzip +[0-9]'
says 'OpenBLAS +(no$|found .*generated code wants it with --blas alone)'

status 0 "the manual page" "$burncc" manual
says '^\.TH BURNCC 1 .*"burncc [0-9]'
says '^\\fB\\-\\-rtol\\fR \\fIX\\fR$'
silent '^[.'"'"'](pb|npy)'
status 2 "a manual of something" "$burncc" manual verify
for shell in bash zsh fish; do
    status 0 "completions for $shell" "$burncc" completions $shell
    says 'embed-limit'
    says 'x86-64-v3'
done
status 2 "completions for nobody" "$burncc" completions
status 2 "completions for another shell" "$burncc" completions tcsh
says "there are completions for bash zsh fish, not for 'tcsh'"

status 0 "topics" "$burncc" help
says '^  shapes +sizes that inputs have'
says '^  burncc verify MODEL'
for topic in $("$burncc" help | sed -n '/^Topics/,/^$/s/^  \([a-z]*\) .*/\1/p'); do
    status 0 "help $topic" "$burncc" help $topic
    [ -f "$here/../../$(sed -n 's/^More: //p' out)" ]
    result $? "its chapter is there"
done
status 0 "help shapes" "$burncc" help shapes
says '^ +--shape INPUT=SIZE,... +other sizes'
says '^ +--dim NAME=V\|LO..HI +the size'
silent '--optimizer'
status 0 "help train" "$burncc" help train
says '^ +--optimizer NAME'
says '^ +--replace-head N'
says '^ +--lora R'
status 2 "a loss of no name" "$burncc" "$here/../../models/lenet.c" --train --loss none -o none.c
losses=$(sed -n 's/.*there are //p' err)
status 0 "help lists every loss" "$burncc" help loss
for loss in ${losses:-none}; do says "The first.* $loss( |$)"; done
status 0 "help targets" "$burncc" help targets
says 'x86-64-v3 +-O3'
status 0 "help of a command" "$burncc" help verify
says '^Usage: burncc verify MODEL'
status 0 "help of an option" "$burncc" help rtol
says '^\(verify\)$'
status 2 "help of nothing known" "$burncc" help cookies
says "no topic, command or option is called 'cookies'; the topics are targets shapes "
status 0 "bash knows them" "$burncc" completions bash
says "help/\*\) words='targets shapes "

status 2 "unknown option" "$burncc" scores.onnx --tagret generic
says "unknown option '--tagret'; did you mean --target\?"
status 2 "option of another command" "$burncc" scores.onnx --seconds 3
says '--seconds is not an option of `burncc compile`'
status 2 "unknown command" "$burncc" verfy scores.onnx
says "unknown command 'verfy'; did you mean verify\?"
status 2 "command without model" "$burncc" verify
status 2 "unknown target" "$burncc" scores.onnx --target genric
says 'the targets are generic, portable, native'
status 0 "targets" "$burncc" --target list
says 'x86-64-v3 +-O3 -march=x86-64-v3'
says 'cortex-m4 +-O2 -mthumb -mcpu=cortex-m4'
status 2 "several that do not go together" "$burncc" scores.onnx --target x86-64-v3,aarch64
says 'several in one file can be, once each, of x86-64-v2, x86-64-v3, x86-64-v4'
status 2 "the same twice" "$burncc" scores.onnx --target x86-64-v3,x86-64-v3
status 2 "unknown BLAS" "$burncc" scores.onnx --blas mkl
says "--blas knows openblas alone, not 'mkl'"
status 2 "a BLAS for a GPU" "$burncc" scores.onnx --blas openblas --target vulkan
says '--blas is for programs in C, not for --target vulkan'
status 2 "missing value" "$burncc" scores.onnx --target
says '--target wants a value'
status 2 "two models" "$burncc" scores.onnx pair.onnx
says "'pair.onnx' is too many"
status 2 "dim without value" "$burncc" scores.onnx --dim batch
status 2 "dim with bad range" "$burncc" scores.onnx --dim batch=4..2
status 2 "dim twice" "$burncc" scores.onnx --dim batch=1 --dim batch=2
status 2 "dim that is not there" "$burncc" scores.onnx -o a.c --dim bacth=2
says 'batch'
status 2 "output that is no C file" "$burncc" scores.onnx -o scores.txt
status 2 "name that is no identifier" "$burncc" scores.onnx -o a.c --name 9lives
status 2 "embed limit that is no number" "$burncc" scores.onnx --embed-limit lots
status 2 "a time limit of nothing" "$burncc" bench scores.onnx --timeout 0
status 2 "another back end's stage" "$burncc" scores.onnx --dump glsl
status 2 "a plan in a C file" "$burncc" scores.onnx --target plan -o a.c
says '-o wants the name of a file such as model.plan'
status 2 "a plan that is run" "$burncc" verify scores.onnx --target plan
says 'what is written for --target plan does not run'
status 2 "a plan that is read as C" "$burncc" scores.onnx --target plan --check
if "$burncc" --version | grep -q 'libclang.*no$'; then echo "# left out: this burncc is built without libclang"; else
    for target in generic portable cortex-m4; do
        status 0 "what clang says of it, $target" "$burncc" scores.onnx --target $target --check -f -o checked.c
    done
fi
for runner in qemu-system-riscv32 '/usr/bin/qemu-system-riscv64 -S' qemu-arm; do
    status 2 "another processor's emulator" "$burncc" verify scores.onnx --target cortex-m4 --runner "$runner"
    says "^burncc: error: --runner $runner is not for --target cortex-m4, which qemu-system-arm emulates$"
done
status 2 "bits of reordered sums" "$burncc" verify scores.onnx --target cortex-m4 --runner env --golden --fast-math
says '--golden: with --fast-math'
for option in '--threads 2' '--blas openblas'; do
    status 2 "$option without an operating system" "$burncc" scores.onnx --target cortex-m4 $option -o a.c
    says 'is for machines with an operating system, not for --target cortex-m4; --target portable has it'
done
status 2 "unknown stage" "$burncc" scores.onnx --dump optimise
says 'import.*fold.*plan'
status 2 "ops with a model" "$burncc" ops scores.onnx
absent a.c a.h scores.c scores.h
status 0 "what is done" "$burncc" scores.onnx -o quiet.c --dim batch=1 -v
says '^burncc: +[0-9]+\.[0-9]{3} s  reading scores.onnx$'
says '^burncc: +[0-9]+\.[0-9]{3} s  writing quiet.c$'
status 0 "a note" "$burncc" scores.onnx -o quiet.c
says 'note: dimension batch is taken as 1; --dim batch=N'
status 0 "no note" "$burncc" scores.onnx -o quiet.c --quiet
silent 'note:'
status 0 "a note of training, once" "$burncc" scores.onnx --train -o quiet.c
[ "$(grep -c 'dimension batch' err)" = 1 ]
result $? "it is said once"
status 0 "parameters" "$burncc" scores.onnx -o params.safetensors
weights="--weights params.safetensors --map none=some"
status 0 "a warning" "$burncc" scores.onnx -o quiet.c $weights
says 'warning: --map none matches no tensor of params.safetensors \(--silence map\)$'
status 0 "a warning silenced" "$burncc" scores.onnx -o quiet.c $weights --silence map
silent 'warning:'
status 0 "all warnings silenced" "$burncc" scores.onnx -o quiet.c $weights --silence all
silent 'warning:'
status 2 "no such warning" "$burncc" scores.onnx --silence maps
says "no warning is called 'maps'; there are attribute, .*map, .*all$"

CLICOLOR_FORCE=1 status 4 "colour" "$burncc" missing.onnx
grep -qF $'\e[1mmissing.onnx: \e[31merror:\e[0m cannot open' err
result $? "place and kind stand out"
NO_COLOR=1 CLICOLOR_FORCE=1 status 4 "no colour" "$burncc" missing.onnx
grep -q '^missing.onnx: error: cannot open' err
result $? "nothing does"
cat >terminal.py <<'END'
import os, pty, re, sys
seen = []
def read(fd):
    data = os.read(fd, 4096)
    seen.append(data)
    return data
pty.spawn(sys.argv[2:], read, lambda fd: b"")
sys.exit(not re.search(sys.argv[1].encode(), b"".join(seen)))
END
digits=$here/../../models/digits/digits.onnx
timing='\r\x1b\[Ktiming for 1.6 s [0-9]+s'
status 0 "progress on a terminal" python3 terminal.py "$timing" "$burncc" bench "$digits" --seconds 1.6
status 1 "none with --quiet" python3 terminal.py "$timing" "$burncc" bench "$digits" --seconds 1.6 --quiet
status 0 "none in a file" "$burncc" bench scores.onnx --dim batch=1 --seconds 1.6
silent 'timing'

written='listed.c +[0-9.]+ KiB  code\s+listed.h +[0-9.]+ KiB  interface\s+listed.bin +[0-9.]+ KiB  weights'
to_list=("$burncc" "$digits" -o listed.c --embed-limit 1K)
status 0 "files that were written, on a terminal" python3 terminal.py "$written" "${to_list[@]}"
status 1 "not with --quiet" python3 terminal.py listed.h "${to_list[@]}" --quiet
status 0 "not in a file" "${to_list[@]}"
silent listed
status 0 "but with -v" "${to_list[@]}" -v
says '^listed.bin +[0-9.]+ KiB  weights$'
[ ! -s out ]
result $? "nothing on standard output"
status 0 "a model, described" "$burncc" "$here/../../models/mlp.c" -o mlp.onnx -v
says '^mlp.onnx +[0-9.]+ .*B  model$'
silent 'language.h .*interface'
finish
