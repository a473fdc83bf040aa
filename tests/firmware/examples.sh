#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# examples/embed: its models learn here, its programs run on a Cortex-M4 in QEMU, in 64 KB of RAM; the bits that the
# layers learn there are those that they learn on this machine.
source "$(dirname "$0")/../commands/tap.sh"
for tool in arm-none-eabi-gcc qemu-system-arm make; do
    command -v $tool >/dev/null || { echo "1..0 # SKIP $tool is not here"; exit; }
done
embed=$(realpath "$here/../../examples/embed")
build() { make -s -f "$embed/Makefile" BURNCC="$burncc" "$@"; }
status 0 "models and programs" build {keyword,image,anomaly,learn}.elf learn.host
status 0 "they run" build run
cat >want <<'END'
beeps
fall
rise
trill
this is a 7
END
head -5 out | cmp - want
result $? "a sound each, and a digit"
says '^as usual, [0-9]+ thousandths'
says '^unusual, [0-9]+ thousandths'
says '^1[0-2] of 12 others right; workspace, parameters and state take 117[0-9][0-9] bytes'
grep -o '^loss [0-9]*' out | cut -d' ' -f2 >losses
[ "$(wc -l <losses)" = 6 ] && sort -nrc losses && [ $((3 * $(tail -1 losses))) -lt "$(head -1 losses)" ]
result $? "the loss falls, to a third and less"
grep '^loss' out >device
./learn.host new 2>err | grep '^loss' >host
cmp device host
result $? "to the same bits as here"
status 0 "sizes" build sizes
awk '$1 ~ /^[0-9]/ { n++; if ($1 + $2 > 40960 || $2 + $3 > 28672) exit 1 } END { exit n != 4 }' out
result $? "40 KB of flash and 28 KB of RAM, stack and all, do for each"
status 1 "no such file" qemu-system-arm -M mps2-an386 -display none -monitor none -serial none -kernel keyword.elf \
    -semihosting-config enable=on,target=native,arg=keyword,arg=none.wav
says 'none.wav: no WAV file'
finish
