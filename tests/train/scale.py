#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""--loss-scale: a little net learns with a scale and without one, and has the same bits, since scales are powers of 2.

usage: scale.py BURNCC [--cc CC]

Steps whose gradients have an element that is infinite or not a number leave parameters, running statistics and the
optimizer's state as they are and are not counted by it; the scale moves as PyTorch's GradScaler moves it, and is in
checkpoints. train_step does what gradients and update do. Needs the standard library only. Prints TAP."""
import argparse
import pathlib
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from tap import run_checks      # noqa: E402

FLAGS = "-std=c11 -O1 -Wall -Wextra -Werror".split()
RUNTIME = HERE.parent.parent / "runtime"
DYNAMIC = "dynamic(initial=1024, interval=%d)"
CASES = {
    "adam": (3, ["--optimizer", "adam"]),
    "a growth every step": (1, ["--optimizer", "sgd"]),
    "no growth": (100, ["--optimizer", "momentum", "--frozen-norm", "--no-dropout"]),
    "a number": (0, ["--optimizer", "adam"]),
    "muon, clipped": (2, ["--optimizer", "muon", "--clip-norm", "--clip-value"]),
    "few of the parameters": (3, ["--optimizer", "adamw", "--train-only", "biases", "--group", "l1:learning_rate*0.5"]),
    "lora": (3, ["--optimizer", "rmsprop", "--lora", "2"]),
    "threads": (3, ["--optimizer", "adam", "--threads", "2:0"]),
    "portable": (3, ["--optimizer", "adam", "--target", "portable"]),
    "values of f16": (3, ["--optimizer", "adam", "--precision", "f16"]),
    "each operation alone": (3, ["--optimizer", "adam", "--no-fuse"]),
}


def learns(args, folder, interval, options):
    scale = DYNAMIC % interval if interval else "1024"
    for name, more in (("plain", ["--loss-scale", "none"]), ("scaled", ["--loss-scale", scale])):
        subprocess.run([args.burncc, "-q", HERE / "pairs_net.c", "--train", "--dim", "batch=6", "--loss",
                        "cross_entropy*16", *options, *more,
                        "-o", folder / f"{name}.c"], check=True, capture_output=True, text=True)
    defines = [f"-DDYNAMIC={interval}"] if interval else []
    extra = ["-DPOOL", "-pthread", RUNTIME / "threads.c"] if "--threads" in options else []
    subprocess.run([*args.cc.split(), *FLAGS, *defines, f'-DCHECKPOINT="{folder}/c.safetensors"', "-I", folder,
                    "-I", RUNTIME, HERE / "scale.c", folder / "plain.c", folder / "scaled.c", *extra, "-lm",
                    "-o", folder / "m"], check=True, capture_output=True, text=True)
    ran = subprocess.run([folder / "m"], capture_output=True, text=True)
    return ran.returncode == 0 and ran.stdout == "ok\n", ran.stdout.strip() or f"exit {ran.returncode}"


def refused(args, folder, text):
    ran = subprocess.run([args.burncc, HERE / "pairs_net.c", "--train", "--loss-scale", text, "-o", folder / "m.c"],
                         capture_output=True, text=True)
    wanted = "--loss-scale wants a number above 0, none, or dynamic("
    return ran.returncode == 2 and wanted in ran.stderr and not (folder / "m.c").exists(), ran.stderr.strip()


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("burncc"), p.add_argument("--cc", default="cc")
    args = p.parse_args()
    checks = [(name, lambda folder, c=case: learns(args, folder, *c)) for name, case in CASES.items()]
    checks += [(f"'{text}' is refused", lambda folder, t=text: refused(args, folder, t))
               for text in ("0", "-1", "nan", "8(x=1)", "dynamic(growth=0.5)", "dynamic(backoff=2)", "dynamic(x=1)",
                            "dynamic(interval=0)", "static", "dynamic(2)")]
    return run_checks(checks)


sys.exit(main())
