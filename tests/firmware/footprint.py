#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""What models take of a microcontroller is what burncc says: flash as it is linked and RAM as it is declared, to the
byte, and a stack that no run is above and none far below.

In: the small models and digits, on a Cortex-M4, by gcc and clang. Out: a case for each. --report's workspace is the
size of the C type, and what a run in QEMU stays in, between canaries; its .text, .rodata, .data and .bss are those of a
program that links the model's function; the bound of the stack is at least what a run wrote of a painted one, and at
most 256 bytes more. BURNCC_TEST_ALL=1: all models by both compilers, else few."""
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "small")]
import boards       # noqa: E402
import byte_cases   # noqa: E402
import cases        # noqa: E402
import harness      # noqa: E402
import run as small # noqa: E402

DIGITS = HERE.parent.parent / "models" / "digits" / "digits.onnx"
TARGET, RUNNER = "cortex-m4", "qemu-system-arm"
NEAR = 256
FEW = ("softmax_both_axes", "lstm_step", "conv_bn_relu_add", "attention_blocks", "quantize_round_trip",
       "bytes_conv_depthwise", "strips")
# what has no file for a board; what a run refuses of random inputs, or compiling of sequences without a length
LEFT_OUT = {"image_decoder", "cuts", "sequence_positions", "sequence_ragged_positions", "sequence_split"}
NO_WORKSPACE = 8                                        # C has no types without a size
SECTIONS = (".text", ".rodata", ".data", ".bss")


def said(*command):
    return subprocess.run([str(c) for c in command], check=True, capture_output=True, text=True).stdout


def linked(cc, burncc, folder, name):
    """Bytes by section of a program that calls the model's function, a library left out; of its workspace's type."""
    flags = re.search(rf"^  {TARGET} +(-O.*)", said(burncc, "--target", "list"), re.M)[1].split()
    compile_ = [*shlex.split(cc), "-std=c99", *flags, "-ffunction-sections", "-fdata-sections", "-c", "-o"]
    said(*compile_, folder / "m.o", folder / f"{name}.c")
    (folder / "size.c").write_text(f'#include "{name}.h"\n'
                                   f"const unsigned char workspace_size[sizeof({name}_workspace)] = {{1}};\n")
    said(*compile_, folder / "size.o", folder / "size.c")
    said("arm-none-eabi-ld", "--gc-sections", "--unresolved-symbols=ignore-all", "-e", f"{name}_run", folder / "m.o",
         "-o", folder / "m.elf")
    sizes = dict.fromkeys(SECTIONS, 0)
    for line in said("arm-none-eabi-size", "-A", folder / "m.elf").splitlines():
        words = line.split()
        if len(words) == 3 and words[0] in sizes:
            sizes[words[0]] = int(words[1])
    size = re.search(r"^\w+ (\w+) \w workspace_size$", said("arm-none-eabi-nm", "-S", folder / "size.o"), re.M)
    return sizes, int(size[1], 16)


def one(burncc, model):
    """What is wrong with a model's figures, line by line."""
    cc = os.environ["CC"] or "arm-none-eabi-gcc"
    wrong = []
    with tempfile.TemporaryDirectory() as tmp:
        folder = pathlib.Path(tmp)
        report = said(burncc, model, "--target", TARGET, "--name", "model", "-o", folder / "model.c", "--report")
        sections = {name: int(n) for name, n in re.findall(r"(\.\w+) (\d+)", re.search(r"^flash .*", report, re.M)[0])}
        planned = int(re.search(r"^workspace (\d+) bytes", report, re.M)[1])
        sizes, declared = linked(cc, burncc, folder, "model")
        strings = re.search(r"\bburn_string\b", (folder / "model.c").read_text())
    if strings and sizes[".rodata"] <= sections[".rodata"]:     # of strings that end alike a linker keeps one
        sections[".rodata"] = sizes[".rodata"]
    if sections != sizes:
        wrong.append(f"flash: said {sections}, linked {sizes}")
    if (planned or NO_WORKSPACE) != declared:
        wrong.append(f"workspace: said {planned}, declared {declared}")
    got = json.loads(said(burncc, "bench", model, "--quiet", "--json", "--target", TARGET, "--runner", RUNNER))
    stack, bound = got["stack_bytes"], got["stack_bound"]
    if not 0 < stack <= bound <= stack + NEAR:
        wrong.append(f"stack: {stack} of at most {bound}")
    if got["workspace_bytes"] != planned:
        wrong.append(f"workspace: {got['workspace_bytes']} in a run, planned {planned}")
    return wrong


def main():
    if sys.argv[1:2] == ["--one"]:
        wrong = one(sys.argv[2], sys.argv[3])
        print("\n".join(f"FAIL {line}" for line in wrong))
        return bool(wrong)
    args = harness.parse(harness.arguments(__doc__.splitlines()[0], cflags="", timeout=300))
    if not shutil.which("arm-none-eabi-gcc") or not shutil.which(RUNNER):
        harness.skip_all(args, f"gcc-arm-none-eabi or {RUNNER} is not here")
    whole = bool(os.environ.get("BURNCC_TEST_ALL"))
    root = pathlib.Path(args.cache) / "small"
    models = [("digits", DIGITS)]
    for f in cases.EVERYWHERE + byte_cases.ALL + byte_cases.FIXED_POINT:
        if f.__name__ not in LEFT_OUT and (whole or f.__name__ in FEW):
            small.write(root / f.__name__, f())
            models.append((f.__name__, root / f.__name__ / "model.onnx"))
    compilers = [("gcc", "", "")]
    if shutil.which("clang") and shutil.which("ld.lld"):
        compilers.append(("clang", *boards.arm_clang(dict(boards.ARM)[TARGET])))
    runs = [harness.Case(f"{name}:{compiler}", compiler,
                         ["env", f"CC={cc}", f"BURNCC_CFLAGS={flags}", sys.executable, __file__, "--one", args.burncc,
                          str(model)])
            for compiler, cc, flags in compilers for name, model in models]
    return harness.run(runs, args)


if __name__ == "__main__":
    sys.exit(main())
