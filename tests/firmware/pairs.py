#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Switches of microcontrollers two at a time: a net of floats and one of integers, with every pair (and every one
alone), run in QEMU on a Cortex-M4 and on RISC-V, right and with the bits that the same file gives here (but for
--fast-math); or refused in the words below. BURNCC_TEST_ALL=1, else skipped: some ten minutes."""
import itertools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import harness      # noqa: E402

DIGITS = HERE.parent.parent / "models" / "digits"
TARGETS = {"cortex-m4": ("qemu-system-arm", "arm-none-eabi-gcc"),
           "rv32imc": ("qemu-system-riscv32", "riscv64-unknown-elf-gcc")}
SWITCHES = {
    "ram": ["--ram", "24K"],            # less than the plan of either without it
    "flash": ["--flash", "64K"],
    "stack": ["--stack", "2K"],
    "ends": ["--io-in-workspace"],
    "work": ["--region", "fast:8K=work", "--region", "slow:64K=work"],
    "code": ["--region", "tcm:32K=code"],
    "weights": ["--region", "rom:64K=weights"],
    "share": ["--share"],
    "halves": ["--precision", "f16"],
    "size": ["--optimize", "size"],
    "speed": ["--optimize", "speed"],
    "plain": ["--no-fuse"],
    "fast": ["--fast-math"],
    "bytes": ["--io", "int8"],
    "threads": ["--threads", "2"],
    "blas": ["--blas", "openblas"],
}
SYSTEM = r"error: --(threads|blas) is for machines with an operating system, not for --target"
# what is refused: the switch alone, or the pair, of the net of this kind (None: of both)
REFUSED = {
    (None, "threads"): SYSTEM,
    (None, "blas"): SYSTEM,
    ("floats", "bytes"): r"error: --io: no input or output is quantized to i8; `burncc quantize` makes",
    (None, "code", "share"): r"error: --share and a --region for code do not go together",
    (None, "ram", "plain"): r"(?s)error: --ram: net needs a workspace of 31360 bytes, .*without --no-fuse",
}


def refusal(kind, switches):
    """What burncc has to say, or None."""
    for (of, *which), said in REFUSED.items():
        if of in (None, kind) and set(which) <= set(switches):
            return said
    return None


def run(burncc, target, switches, *words):
    options = [word for s in switches for word in SWITCHES[s]]
    done = subprocess.run([burncc, *words, "--target", target, *options], capture_output=True, text=True,
                          env={**os.environ, "CC": "", "BURNCC_CFLAGS": ""})
    return done.returncode, done.stdout + done.stderr


def check(burncc, model, kind, target, switches):
    """None, or what is wrong."""
    status, said = run(burncc, target, switches, model, "-f", "-o", f"{model.parent}/net.c")
    wanted = refusal(kind, switches)
    if wanted:
        return None if status in (1, 2, 3) and re.search(wanted, said) else f"not refused: {status} {said}"
    if status:
        return said
    status, said = run(burncc, target, [s for s in switches if s != "stack"], "verify", model, "--data", DIGITS,
                       "--runner", TARGETS[target][0], *([] if "fast" in switches else ["--golden"]),
                       "--rtol", "0.001", "--atol", "0.8" if kind == "integers" else "0.05")
    return None if status == 0 and said.startswith("pass ") else said


def nets(burncc, folder):
    """digits as it is, and quantized over its own ten images."""
    for i in range(10):
        (folder / "data" / str(i)).mkdir(parents=True)
        shutil.copy(DIGITS / "images" / f"{i}.pgm", folder / "data" / str(i))
    floats, integers = folder / "floats.onnx", folder / "integers.onnx"
    shutil.copy(DIGITS / "digits.onnx", floats)
    subprocess.run([burncc, "quantize", floats, "--data", f"images:{folder}/data", "-o", integers, "--quiet"],
                   check=True, stdout=subprocess.DEVNULL)
    return ("floats", floats), ("integers", integers)


def main():
    p = harness.arguments(__doc__.splitlines()[0])
    args = p.parse_args()
    if not os.environ.get("BURNCC_TEST_ALL"):
        print("1..0 # SKIP takes long; set BURNCC_TEST_ALL=1")
        return 0
    burncc = str(pathlib.Path(args.burncc).resolve())
    failed = n = 0
    with tempfile.TemporaryDirectory() as folder:
        for kind, model in nets(burncc, pathlib.Path(folder)):
            for target, tools in TARGETS.items():
                if not all(map(shutil.which, tools)):
                    print(f"# left out: {target}: {' or '.join(tools)} is not here")
                    continue
                for pair in itertools.combinations_with_replacement(SWITCHES, 2):
                    name = f"{kind} {target} {' '.join(dict.fromkeys(pair))}"
                    if not re.search(args.filter, name):
                        continue
                    wrong = check(burncc, model, kind, target, tuple(dict.fromkeys(pair)))
                    n += 1
                    failed += bool(wrong)
                    print(f"{'not ' if wrong else ''}ok {n} - {name}", flush=True)
                    for line in (wrong or "").splitlines()[:4]:
                        print(f"# {line}", flush=True)
    print(f"1..{n}")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
