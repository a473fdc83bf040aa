# SPDX-License-Identifier: MIT OR Apache-2.0
"""The processors of these tests, and compilers for them that need more than their names."""
import pathlib
import re
import shutil
import subprocess

# target, and where gcc keeps the libraries that clang, which has none of its own, is to link
ARM = [("cortex-m4", "thumb/v7e-m+fp/hard"), ("cortex-m0", "thumb/v6-m/nofp"), ("cortex-m3", "thumb/v7-m/nofp"),
       ("cortex-m7", "thumb/v7e-m+dp/hard"), ("cortex-m33", "thumb/v8-m.main+fp/hard"),
       ("cortex-m55", "thumb/v8.1-m.main+mve/hard"), ("cortex-m85", "thumb/v8.1-m.main+mve/hard")]
RISCV = ["rv32imafc", "rv64gc", "rv32imc"]
# with vectors: bits, and for clang -march, -mabi, and the folder of picolibc's library
VECTORS = {"rv32imafcv": (32, "rv32imafc_zve32f", "ilp32f", "rv32imafc/ilp32f"),
           "rv64gcv": (64, "rv64gcv", "lp64d", "rv64imafdc/lp64d")}


def arm_clang(libraries):
    """clang for an Arm target, with newlib and gcc's own library."""
    found = subprocess.run(["arm-none-eabi-gcc", "-print-libgcc-file-name"], capture_output=True, text=True).stdout
    root = pathlib.Path(found.strip()).parent
    folders = [root / libraries, pathlib.Path("/usr/lib/arm-none-eabi/lib") / libraries]
    flags = " ".join(f"-L{f}" for f in folders)
    return ("clang --target=arm-none-eabi -isystem /usr/lib/arm-none-eabi/include",
            f"-fuse-ld=lld -nostdlib {flags} -lc -lgcc")


def riscv_clang(folder, target):
    """A clang that has RISC-V's vectors in C, with picolibc and gcc's own library; None: there is none."""
    bits, march, abi, libraries = VECTORS[target]
    triple = f"--target=riscv{bits}-unknown-elf"
    asked = [triple, f"-march={march}", f"-mabi={abi}", "-E", "-dM", "-x", "c", "/dev/null"]
    libgcc = subprocess.run(["riscv64-unknown-elf-gcc", f"-march={libraries.split('/')[0]}", f"-mabi={abi}",
                             "-print-libgcc-file-name"], capture_output=True, text=True).stdout
    picolibc = "/usr/lib/picolibc/riscv64-unknown-elf"
    for clang in ("clang", *(f"clang-{n}" for n in range(22, 15, -1))):
        if not shutil.which(clang):
            continue
        macros = subprocess.run([clang, *asked], capture_output=True, text=True).stdout
        found = re.search(r"__riscv_v_intrinsic (\d+)", macros)
        if not found or int(found[1]) < 11000:
            continue
        script = folder / f"riscv{bits}-clang"
        folder.mkdir(parents=True, exist_ok=True)
        script.write_text(f"#!/bin/sh\nexec {clang} {triple} -isystem {picolibc}/include "
                          f"--ld-path={shutil.which('riscv64-unknown-elf-ld')} -Wl,-m,elf{bits}lriscv -nostdlib \"$@\" "
                          f"-L{picolibc}/lib/{libraries} -L{pathlib.Path(libgcc.strip()).parent} -lc -lgcc\n")
        script.chmod(0o755)
        return str(script)
    return None


def qemu_of(target):
    return f"qemu-system-riscv{target[2:4]}"


def longer(folder, target):
    """A runner whose vectors have 512 bits: as burncc's words for QEMU, but for the processor."""
    bits = VECTORS[target][0]
    script = folder / f"qemu{bits}-vlen512"
    script.write_text(f"#!/bin/sh\nexec {qemu_of(target)} -M virt -bios none -cpu "
                      f"rv{bits},v=true,vlen=512,vext_spec=v1.0 -display none -monitor none -serial none "
                      "-semihosting-config enable=on,target=native -kernel \"$1\"\n")
    script.chmod(0o755)
    return str(script)
