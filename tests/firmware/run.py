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
import math
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "small")]
import boards       # noqa: E402
import byte_cases   # noqa: E402
import cases        # noqa: E402
import harness      # noqa: E402
import run as small # noqa: E402
from onnx_wire import FLOAT, node, tensor    # noqa: E402
from small_model import Model, numbers      # noqa: E402

DIGITS = HERE.parent.parent / "models" / "digits"
MVE = "cortex-m55"      # of floats, too, which clang would make of loops: the models that showed it are run
FEW = ("conv_bn_relu_add", "conv_strided_grouped", "matmul_bias", "pooling", "softmax_both_axes", "lstm_step",
       "attention_blocks", "quantize_round_trip", "strips", "few_columns",
       "bytes_four_bits", "bytes_conv_four_bits", "halves_product", "halves_conv", "halves_long",
       "halves_long_groups", "halves_points", "halves_depthwise", "averages")
# Instructions a multiply-add of digits, the least and the most that a count may be: measured 2.66 with gcc and 2.65
# with clang on a Cortex-M4, 2.67 on RISC-V, 1.56 with vectors of four floats, 1.82 with RISC-V's by clang 16; with
# 64 bits 2.68 and 1.83. Two thirds of that are less than any code of these takes: then the count is wrong.
SCALAR = (1.8, 3.0)
COUNTED = {"cortex-m4": SCALAR, "cortex-m7": SCALAR, "cortex-m33": SCALAR, "cortex-m55": (1.0, 1.8),
           "rv32imafc": SCALAR, "rv32imafcv": (1.2, 2.0), "rv64gc": SCALAR, "rv64gcv": (1.2, 2.0)}
# and of digits made integers, with gcc, or clang for RISC-V's vectors: measured 2.64, 1.17 and 0.87
COUNTED_BYTES = {"cortex-m4": (1.8, 2.9), "cortex-m55": (0.8, 1.3), "rv32imafcv": (0.6, 1.0), "rv64gcv": (0.6, 1.0)}
ANY = (0, 1e9)
# weights of halves (--precision f16): each converts them by other instructions, or by none
HALVES = ("conv_bn_relu_add", "conv_strided_grouped", "matmul_bias", "few_columns", "digits")
# what their processors' driver has no file for, and what 16 MB do not hold
LEFT_OUT = {"image_decoder"}


def tools(whole, folder):
    """(target, name of the compiler, runner, CC, BURNCC_CFLAGS) of what can be built and run here."""
    found = []
    if not shutil.which("arm-none-eabi-gcc") or not shutil.which("qemu-system-arm"):
        print("# left out: Cortex-M: gcc-arm-none-eabi or qemu-system-arm is not here")
    else:
        for target, libraries in boards.ARM if whole else [a for a in boards.ARM if a[0] in COUNTED_BYTES]:
            found.append((target, "gcc", "qemu-system-arm", "", ""))
            if (whole or target == MVE) and shutil.which("clang") and shutil.which("ld.lld"):
                found.append((target, "clang", "qemu-system-arm", *boards.arm_clang(libraries)))
    if not shutil.which("riscv64-unknown-elf-gcc") or not shutil.which("qemu-system-riscv32"):
        print("# left out: RISC-V: gcc-riscv64-unknown-elf or qemu-system-riscv32 is not here")
    else:
        targets = boards.RISCV if whole else boards.RISCV[:2]
        found += [(target, "gcc", boards.qemu_of(target), "", "") for target in targets]
        for target in boards.VECTORS:
            if clang := boards.riscv_clang(folder, target):
                found.append((target, "clang", boards.qemu_of(target), clang, ""))
            else:
                print(f"# left out: {target}: no clang here has riscv_vector.h")
    return found


def large(burncc, model):
    """A layer whose weights of 4 MiB the flash of a board with a Cortex-M4 does not hold."""
    path = model.with_suffix(".c")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('#include <burncc/model.h>\n\nMODEL(large)\n{\n    Tensor x = input("x", F32, 1, 1024);\n'
                    '    output("y", linear(x, "fc", 1024));\n}\n')
    subprocess.run([burncc, path, "-f", "--quiet", "-o", model], check=True, stdout=subprocess.DEVNULL)
    return model


def exact():
    """A product with weights that f16 holds, the least of them too: the results of floats."""
    x = numbers(5, 5, 37)
    w = [[round(v * 64) / 64 if (i + j) % 3 else round(v * 1000) * 2.0**-24 for j, v in enumerate(row)]
         for i, row in enumerate(numbers(6, 37, 11))]
    y = [[math.fsum(a * b for a, b in zip(row, column)) for column in zip(*w)] for row in x]
    z = [[math.fsum(4096 * a * b for a, b in zip(row, column)) for column in zip(*small_only(w))] for row in x]
    return Model([node("MatMul", ["x", "w"], ["y"]), node("MatMul", ["u", "least"], ["z"])],
                 [("x", FLOAT, [5, 37]), ("u", FLOAT, [5, 37])], [("y", FLOAT, [5, 11]), ("z", FLOAT, [5, 11])],
                 [([x, [[4096 * v for v in row] for row in x]], [y, z])],
                 [tensor("w", FLOAT, w), tensor("least", FLOAT, small_only(w))])


def small_only(w):
    """What f16 has below its normal numbers, and zeros."""
    return [[v if abs(v) < 2.0**-14 else 0.0 for v in row] for row in w]


def quantized(burncc, q):
    """digits on integers."""
    if not q.exists():
        q.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([burncc, "quantize", str(DIGITS / "digits.onnx"), "--data", f"images:{DIGITS / 'images'}",
                        "--quiet", "-f", "-o", str(q)], check=True, stdout=subprocess.DEVNULL)
    return q


def counting(cc, flags, burncc, model, target, runner, ends):
    """The command of a case: count."""
    return ["env", f"CC={cc}", f"BURNCC_CFLAGS={flags}", sys.executable, __file__, "--count", burncc, str(model),
            target, runner, *map(str, ends)]


def count(burncc, model, target, runner, least, most):
    """Bench's count of a model lies between so many instructions a multiply-add, and its bound of the stack is one; run
    as a case's command."""
    run = subprocess.run([burncc, "bench", model, "--quiet", "--json", "--target", target, "--runner", runner],
                         capture_output=True, text=True)
    if run.returncode:
        print(run.stderr, file=sys.stderr)
        return run.returncode
    got = json.loads(run.stdout)
    stack, bound = got["stack_bytes"], got.get("stack_bound")
    # where a compiler keeps RISC-V's vectors in memory, only the processor knows how much that is
    bounded = target in boards.VECTORS if bound is None else stack <= bound <= stack + 256
    good = 0 < stack and bounded and float(least) <= got["per_multiply_add"] <= float(most)
    print(run.stdout if good else f"FAIL {run.stdout}")
    return not good


def main():
    if sys.argv[1:2] == ["--count"]:
        return count(*sys.argv[2:])
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
    small.write(root / "halves_exact", exact())
    runs = []
    for target, compiler, runner, cc, flags in tools(whole, root.parent):
        for name, model in models:
            if not (whole or name == "digits" or target == boards.ARM[0][0] or (target, compiler) == (MVE, "clang")
                    or (target in COUNTED_BYTES and name.startswith(("bytes_", "halves_", "averages")))):
                continue
            command = ["env", f"CC={cc}", f"BURNCC_CFLAGS={flags}", args.burncc, "verify", str(model), "--quiet",
                       "--target", target, "--runner", runner, "--golden", "--rtol", "1e-5", "--atol", "1e-5"]
            runs.append(harness.Case(f"{name}:{target}:{compiler}", f"{target} {compiler}", command))
            if target in boards.VECTORS and name.startswith(("bytes_", "halves_")):
                again = [boards.longer(root.parent, target) if word == runner else word for word in command]
                runs.append(harness.Case(f"{name}:{target}-512:{compiler}", f"{target} {compiler}", again))
        family = f"{target} {compiler}"
        near = ["--rtol", "1e-6", "--atol", "2e-6"]
        for name, model, allowed in [*((n, m, []) for n, m in models if n in HALVES),
                                     ("exact", root / "halves_exact" / "model.onnx", near)]:
            for form, more in (("", []), (":size", ["--optimize", "size"])):
                runs.append(harness.Case(f"f16:{name}:{target}:{compiler}{form}", family, [
                    "env", f"CC={cc}", f"BURNCC_CFLAGS={flags}", args.burncc, "verify", str(model), "--quiet",
                    "--precision", "f16", "--target", target, "--runner", runner, "--golden", *allowed, *more]))
        if target in COUNTED_BYTES and (compiler == "gcc" or target in boards.VECTORS):
            runs.append(harness.Case(f"bytes:{target}:{compiler}", family, counting(
                cc, "", args.burncc, integers, target, runner, COUNTED_BYTES[target])))
        if target == boards.ARM[0][0]:
            runs.append(harness.Case(f"constants:{target}:{compiler}", family, counting(
                cc, flags, args.burncc, large(args.burncc, root / "large" / "model.onnx"), target, runner, ANY)))
        if target in COUNTED:
            runs.append(harness.Case(f"instructions:{target}:{compiler}", family, counting(
                cc, flags, args.burncc, models[0][1], target, runner, COUNTED[target])))
    if not runs:
        harness.skip_all(args, "neither Cortex-M nor RISC-V programs can be built and run here")
    return harness.run(runs, args)


if __name__ == "__main__":
    sys.exit(main())
