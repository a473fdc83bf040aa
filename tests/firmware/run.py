#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Targets without an operating system: models as bare-metal programs in QEMU, whose outputs are right and the bits that
the same code gives here; and what they cost.

Out: one case per model, target and C compiler, and for those with an FPU one that bounds the instructions which digits
takes for a multiply-add, with all that is around them: tiles whose sums do not stay in registers take twice as many.
Cortex-M wants gcc-arm-none-eabi, libnewlib-arm-none-eabi and qemu-system-arm; RISC-V gcc-riscv64-unknown-elf,
picolibc-riscv64-unknown-elf and qemu-system-misc; clang, beside these, lld; RISC-V with vectors clang 16 or later. What
is missing here is left out, with a line that says so. BURNCC_TEST_ALL=1: all targets, both compilers and all
small models; else the three processors that differ most, and few models."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "small")]
import byte_cases   # noqa: E402
import cases        # noqa: E402
import harness      # noqa: E402
import run as small # noqa: E402

DIGITS = HERE.parent.parent / "models" / "digits"
# target, and where gcc keeps the libraries that clang, which has none of its own, is to link
ARM = [("cortex-m4", "thumb/v7e-m+fp/hard"), ("cortex-m0", "thumb/v6-m/nofp"), ("cortex-m3", "thumb/v7-m/nofp"),
       ("cortex-m7", "thumb/v7e-m+dp/hard"), ("cortex-m33", "thumb/v8-m.main+fp/hard"),
       ("cortex-m55", "thumb/v8.1-m.main+mve/hard"), ("cortex-m85", "thumb/v8.1-m.main+mve/hard")]
RISCV = ["rv32imafc", "rv32imc"]
VECTORS = "rv32imafcv"
MVE = "cortex-m55"      # of floats, too, which clang would make of loops: the models that showed it are run
FEW = ("conv_bn_relu_add", "conv_strided_grouped", "matmul_bias", "pooling", "softmax_both_axes", "lstm_step",
       "attention_blocks", "quantize_round_trip", "strips", "few_columns",
       "bytes_four_bits", "bytes_conv_four_bits", "halves_product", "halves_conv", "halves_points",
       "halves_depthwise", "averages")
# instructions a multiply-add of digits, measured 2.66 with gcc and 2.65 with clang on a Cortex-M4, 2.67 on RISC-V, 1.56
# with vectors of four floats, 1.82 with RISC-V's by clang 16
COUNTED = {"cortex-m4": 3.0, "cortex-m7": 3.0, "cortex-m33": 3.0, "cortex-m55": 1.8, "rv32imafc": 3.0, VECTORS: 2.0}
# and of digits made integers, with gcc, or clang for RISC-V's vectors: measured 2.64, 1.17 and 0.87
COUNTED_BYTES = {"cortex-m4": 2.9, "cortex-m55": 1.3, VECTORS: 1.0}
# whose stack is painted without BURNCC_TEST_ALL as well; and what ends with an error on random inputs
STACKS = ("softmax_both_axes", "lstm_step", "conv_bn_relu_add", "attention_blocks", "quantize_round_trip")
FAILS = ("cuts", "sequence_positions", "sequence_ragged_positions", "sequence_split")
# what their processors' driver has no file for, and what 16 MB do not hold
LEFT_OUT = {"image_decoder"}


def arm_clang(libraries):
    """clang for an Arm target, with newlib and gcc's own library."""
    found = subprocess.run(["arm-none-eabi-gcc", "-print-libgcc-file-name"], capture_output=True, text=True).stdout
    root = pathlib.Path(found.strip()).parent
    folders = [root / libraries, pathlib.Path("/usr/lib/arm-none-eabi/lib") / libraries]
    flags = " ".join(f"-L{f}" for f in folders)
    return ("clang --target=arm-none-eabi -isystem /usr/lib/arm-none-eabi/include",
            f"-fuse-ld=lld -nostdlib {flags} -lc -lgcc")


def riscv_clang(folder):
    """A clang that has RISC-V's vectors in C, with picolibc and gcc's own library; None: there is none."""
    asked = ["--target=riscv32-unknown-elf", "-march=rv32imafc_zve32f", "-mabi=ilp32f", "-E", "-dM", "-x", "c",
             "/dev/null"]
    libgcc = subprocess.run(["riscv64-unknown-elf-gcc", "-march=rv32imafc", "-mabi=ilp32f",
                             "-print-libgcc-file-name"], capture_output=True, text=True).stdout
    picolibc = "/usr/lib/picolibc/riscv64-unknown-elf"
    for clang in ("clang", *(f"clang-{n}" for n in range(22, 15, -1))):
        if not shutil.which(clang):
            continue
        macros = subprocess.run([clang, *asked], capture_output=True, text=True).stdout
        found = re.search(r"__riscv_v_intrinsic (\d+)", macros)
        if not found or int(found[1]) < 11000:
            continue
        script = folder / "riscv-clang"
        folder.mkdir(parents=True, exist_ok=True)
        script.write_text(f"#!/bin/sh\nexec {clang} --target=riscv32-unknown-elf -isystem {picolibc}/include "
                          f"--ld-path={shutil.which('riscv64-unknown-elf-ld')} -Wl,-m,elf32lriscv -nostdlib \"$@\" "
                          f"-L{picolibc}/lib/rv32imafc/ilp32f -L{pathlib.Path(libgcc.strip()).parent} -lc -lgcc\n")
        script.chmod(0o755)
        return str(script)
    return None


def longer(folder):
    """A runner whose vectors have 512 bits: as burncc's words for QEMU, but for the processor."""
    script = folder / "qemu-vlen512"
    script.write_text("#!/bin/sh\nexec qemu-system-riscv32 -M virt -bios none -cpu "
                      "rv32,v=true,vlen=512,vext_spec=v1.0 -display none -monitor none -serial none "
                      "-semihosting-config enable=on,target=native -kernel \"$1\"\n")
    script.chmod(0o755)
    return str(script)


def tools(whole, folder):
    """(target, name of the compiler, runner, CC, BURNCC_CFLAGS) of what can be built and run here."""
    found = []
    if not shutil.which("arm-none-eabi-gcc") or not shutil.which("qemu-system-arm"):
        print("# left out: Cortex-M: gcc-arm-none-eabi or qemu-system-arm is not here")
    else:
        for target, libraries in ARM if whole else [a for a in ARM if a[0] in COUNTED_BYTES]:
            found.append((target, "gcc", "qemu-system-arm", "", ""))
            if (whole or target == MVE) and shutil.which("clang") and shutil.which("ld.lld"):
                found.append((target, "clang", "qemu-system-arm", *arm_clang(libraries)))
    if not shutil.which("riscv64-unknown-elf-gcc") or not shutil.which("qemu-system-riscv32"):
        print("# left out: RISC-V: gcc-riscv64-unknown-elf or qemu-system-riscv32 is not here")
    else:
        found += [(target, "gcc", "qemu-system-riscv32", "", "") for target in (RISCV if whole else RISCV[:1])]
        clang = riscv_clang(folder)
        if clang:
            found.append((VECTORS, "clang", "qemu-system-riscv32", clang, ""))
        else:
            print(f"# left out: {VECTORS}: no clang here has riscv_vector.h")
    return found


def large(burncc, model):
    """A layer whose weights of 4 MiB the flash of a board with a Cortex-M4 does not hold."""
    path = model.with_suffix(".c")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('#include <burncc/model.h>\n\nMODEL(large)\n{\n    Tensor x = input("x", F32, 1, 1024);\n'
                    '    output("y", linear(x, "fc", 1024));\n}\n')
    subprocess.run([burncc, path, "-f", "--quiet", "-o", model], check=True, stdout=subprocess.DEVNULL)
    return model


def quantized(burncc, q):
    """digits on integers."""
    if not q.exists():
        q.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([burncc, "quantize", str(DIGITS / "digits.onnx"), "--data", f"images:{DIGITS / 'images'}",
                        "--quiet", "-f", "-o", str(q)], check=True, stdout=subprocess.DEVNULL)
    return q


def count(burncc, model, target, runner, most):
    """Bench's count of a model is at most so many instructions a multiply-add, and its bound of the stack is one; run
    as a case's command."""
    run = subprocess.run([burncc, "bench", model, "--quiet", "--json", "--target", target, "--runner", runner],
                         capture_output=True, text=True)
    if run.returncode:
        print(run.stderr, file=sys.stderr)
        return run.returncode
    got = json.loads(run.stdout)
    stack, bound = got["stack_bytes"], got.get("stack_bound")
    # where a compiler keeps RISC-V's vectors in memory, only the processor knows how much that is
    bounded = target == VECTORS if bound is None else stack <= bound <= stack + 256
    good = 0 < stack and bounded and (not most or 0.1 < got["per_multiply_add"] <= most)
    print(run.stdout if good else f"FAIL {run.stdout}")
    return not good


def main():
    if sys.argv[1:2] == ["--count"]:
        return count(*sys.argv[2:6], float(sys.argv[6]))
    p = harness.arguments(__doc__.splitlines()[0], cflags="", timeout=300)
    args = harness.parse(p)
    whole = bool(os.environ.get("BURNCC_TEST_ALL"))
    root = pathlib.Path(args.cache) / "small"
    models = [("digits", DIGITS / "digits.onnx")]
    for f in cases.EVERYWHERE + byte_cases.ALL + byte_cases.FIXED_POINT:
        if f.__name__ not in LEFT_OUT and (whole or f.__name__ in FEW):
            small.write(root / f.__name__, f())
            models.append((f.__name__, root / f.__name__ / "model.onnx"))
    integers = quantized(args.burncc, root / "digits_bytes" / "model.onnx")
    runs = []
    for target, compiler, runner, cc, flags in tools(whole, root.parent):
        for name, model in models:
            if not (whole or name == "digits" or target == ARM[0][0] or (target, compiler) == (MVE, "clang")
                    or (target in COUNTED_BYTES and name.startswith(("bytes_", "halves_", "averages")))):
                continue
            command = ["env", f"CC={cc}", f"BURNCC_CFLAGS={flags}", args.burncc, "verify", str(model), "--quiet",
                       "--target", target, "--runner", runner, "--golden", "--rtol", "1e-5", "--atol", "1e-5"]
            runs.append(harness.Case(f"{name}:{target}:{compiler}", f"{target} {compiler}", command))
            if target == VECTORS and name.startswith(("bytes_", "halves_")):
                again = [longer(root.parent) if word == runner else word for word in command]
                runs.append(harness.Case(f"{name}:{target}-512:{compiler}", f"{target} {compiler}", again))
        if target in COUNTED_BYTES and (compiler == "gcc" or target == VECTORS):
            runs.append(harness.Case(f"bytes:{target}:{compiler}", f"{target} {compiler}", [
                "env", f"CC={cc}", "BURNCC_CFLAGS=", sys.executable, __file__, "--count", args.burncc, str(integers),
                target, runner, str(COUNTED_BYTES[target])]))
        if target == ARM[0][0]:
            command = ["env", f"CC={cc}", f"BURNCC_CFLAGS={flags}", sys.executable, __file__, "--count", args.burncc,
                       str(large(args.burncc, root / "large" / "model.onnx")), target, runner, "0"]
            runs.append(harness.Case(f"constants:{target}:{compiler}", f"{target} {compiler}", command))
        if target in COUNTED:
            for name, model in models:
                counted = name == "digits"
                if not (counted or (whole and target == ARM[0][0]) or name in STACKS) or name in FAILS:
                    continue
                command = ["env", f"CC={cc}", f"BURNCC_CFLAGS={flags}", sys.executable, __file__, "--count",
                           args.burncc, str(model), target, runner, str(COUNTED[target] if counted else 0)]
                what = "instructions" if counted else f"stack:{name}"
                runs.append(harness.Case(f"{what}:{target}:{compiler}", f"{target} {compiler}", command))
    if not runs:
        harness.skip_all(args, "neither Cortex-M nor RISC-V programs can be built and run here")
    return harness.run(runs, args)


if __name__ == "__main__":
    sys.exit(main())
