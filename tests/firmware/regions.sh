#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# --region: programs in C and C++ whose linker script has the regions, run in an emulator. Each part of the workspace,
# the constants and the code lie where they are wanted, nothing of the model elsewhere, and results are the bits that
# `burncc run` gives here. Needs gcc-arm-none-eabi and qemu-system-arm; what is missing is left out.
source "$(dirname "$0")/../commands/tap.sh"
model=$here/../../models/digits/digits.onnx
for tool in arm-none-eabi-gcc qemu-system-arm; do
    command -v $tool >/dev/null || { echo "1..0 # SKIP $tool is not here"; exit 0; }
done
arm="-O2 -mthumb -mcpu=cortex-m4 -mfloat-abi=hard -mfpu=fpv4-sp-d16 -ffp-contract=off -fno-math-errno -ffreestanding"
arm="$arm -DBURN_FREESTANDING -Wall -Wextra -Werror"

cat >link.ld <<'EOF'
MEMORY
{
    FLASH (rx) : ORIGIN = 0, LENGTH = 256K
    ITCM (rx) : ORIGIN = 0x00200000, LENGTH = 64K
    QSPI (r) : ORIGIN = 0x00300000, LENGTH = 64K
    DTCM (rw) : ORIGIN = 0x20000000, LENGTH = 16K
    RAM (rw) : ORIGIN = 0x20010000, LENGTH = 16K
    SDRAM (rw) : ORIGIN = 0x21000000, LENGTH = 1M
}
SECTIONS
{
    .text : { KEEP(*(.vectors)) *(.text .text.*) *(.rodata .rodata.*) . = ALIGN(8); } > FLASH
    .ARM.exidx : { *(.ARM.exidx*) } > FLASH
    .itcm : { *(.itcm.text) } > ITCM
    .qspi : { *(.qspi.rodata) } > QSPI
    .dtcm (NOLOAD) : { *(.dtcm) } > DTCM
    .bss : { *(.data .data.*) *(.bss .bss.* COMMON) } > RAM
    .sdram (NOLOAD) : { *(.sdram) } > SDRAM
}
EOF
cat >board.c <<'EOF'
#include <stddef.h>
void answer(void (*write)(const char *));
static int debugger(int call, const void *what)
{
    register int r0 __asm__("r0") = call;
    register const void *r1 __asm__("r1") = what;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}
static void write0(const char *s) { debugger(4, s); }
static void reset(void)
{
    *(volatile unsigned *)0xe000ed88 |= 0xfu << 20;
    answer(write0);
    debugger(0x18, (const void *)0x20026);
}
__attribute__((section(".vectors"), used)) static void *const vectors[] = {(void *)0x20014000, (void *)reset};
EOF
cat >program.c <<'EOF'
#include "net.h"
#ifdef __cplusplus
extern "C"
#endif
void answer(void (*write)(const char *));
NET_WORKSPACE(ws);
static float image[784], logits[10];
static void hex(void (*write)(const char *), const void *at)
{
    const unsigned char *b = (const unsigned char *)at;
    char text[9] = "";
    for (int i = 0; i < 4; i++) {
        text[2 * i] = "0123456789abcdef"[b[3 - i] >> 4];
        text[2 * i + 1] = "0123456789abcdef"[b[3 - i] & 15];
    }
    write(text);
    write("\n");
}
void answer(void (*write)(const char *))
{
    for (int i = 0; i < 784; i++) image[i] = (float)(i % 17) / 16.0f;
    if (net_run(&ws, image, logits)) write("failed\n");
    for (int i = 0; i < 10; i++) hex(write, &logits[i]);
    const void *dtcm = &ws_dtcm, *sdram = &ws_sdram;
    hex(write, &dtcm);
    hex(write, &sdram);
}
EOF
python3 - <<'EOF'
import struct
header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 28, 28), }".ljust(117) + "\n"
data = struct.pack("<784f", *[i % 17 / 16 for i in range(784)])
open("image.npy", "wb").write(b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header.encode() + data)
EOF
status 0 "the same here" "$burncc" run $model --quiet --target cortex-m4 --input image=image.npy --output want
python3 - >want.txt <<'EOF'
import pathlib, struct
raw = next(pathlib.Path("want").glob("*.npy")).read_bytes()
for v in struct.unpack("<10I", raw[-40:]): print(f"{v:08x}")
EOF
regions="--region dtcm:12K --region sdram:1M --region itcm:8K=code --region qspi:64K=weights"

check() { # what, C compiler for the program, its flags, then options
    local what=$1 cc=$2 flags=$3
    shift 3
    status 0 "$what: compiles" env CC= BURNCC_CFLAGS= "$burncc" $model --quiet --target cortex-m4 -o net.c --report \
        $regions "$@"
    cp out report
    arm-none-eabi-gcc -std=c99 $arm -c net.c -o net.o && arm-none-eabi-gcc $arm -c board.c -o board.o &&
        $cc $arm $flags -c program.c -o program.o &&
        arm-none-eabi-gcc $arm -nostdlib -T link.ld -e 0 net.o board.o program.o -lgcc -o net.elf >out 2>err
    result $? "$what: links"
    timeout 60 qemu-system-arm -M mps2-an386 -display none -monitor none -serial none -semihosting-config \
        enable=on,target=native -kernel net.elf >out 2>err
    cat out err >got
    head -10 got | cmp -s - want.txt
    result $? "$what: the same bits"
    [ "$(sed -n '11p;12p' got | tr '\n' ' ')" = "20000000 21000000 " ]
    result $? "$what: each part in its region"
    # in the file: nothing that a program calls is in .text, and sections are as large as the report says
    arm-none-eabi-nm net.elf | grep -E ' [tTrR] net_' >symbols
    [ -s symbols ] &&
        ! grep -vE '^002|^003|net_run_(generic|inputs|outputs|metadata)|net_model|_shape$|_sizes$' symbols >out
    result $? "$what: code and constants in their regions"
    size() { arm-none-eabi-size -A net.elf | awk -v s=$1 '$1 == s { print $2 }'; }
    told() { sed -n "s/^region $1 .*$2 \([0-9]*\).*/\1/p" report; }
    [ "$(size .dtcm)" = "$(told dtcm workspace)" ] && [ "$(size .sdram)" = "$(told sdram workspace)" ] &&
        [ "$(size .qspi)" = "$(told qspi weights)" ]
    result $? "$what: regions take what the report says"
}
check "C" arm-none-eabi-gcc -std=c99
check "size" arm-none-eabi-gcc -std=c99 --optimize size
if command -v arm-none-eabi-g++ >/dev/null; then
    check "C++" "arm-none-eabi-g++ -x c++" "-fno-exceptions -fno-rtti"
else
    echo "# left out: arm-none-eabi-g++ is not here"
fi
# the sections are the user's to choose
status 0 "other sections" arm-none-eabi-gcc -std=c99 $arm '-DNET_CODE_itcm=__attribute__((section(".ramfunc")))' \
    -DNET_WEIGHTS_qspi= -c net.c -o other.o
arm-none-eabi-objdump -h other.o >out 2>err
says "\.ramfunc"
silent "itcm|qspi"
# a plan whose buffers leave holes in both regions is not the last that is tried
for two in '8K 6K' '5K 12K' '2K 20K'; do
    status 0 "regions of $two" "$burncc" $model --quiet --target cortex-m4 -f -o two.c --region a:${two% *} \
        --region b:${two#* } --report
    says "^region b .* workspace [0-9]+, [0-9]+ % of its accesses$"
done
status 3 "code that is too large" env CC= BURNCC_CFLAGS= "$burncc" $model --target cortex-m4 -o no.c --region a:64K \
    --region itcm:1K=code
says "^burncc: error: --region: itcm has 1024 bytes, not the [0-9]* that code takes .arm-none-eabi-gcc"
says "^burncc: note: [0-9]* .text no_k"
absent no.c no.h
finish
