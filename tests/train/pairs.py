#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Switches of training two by two: every pair of settings below is in some run, and no run learns anything else for it.

usage: pairs.py BURNCC [--cc CC]

A setting either changes what is learnt (loss, optimizer, schedule, batch, what learns: MEANING) or only how (target,
threads, memory, where LEAST is as little as there is a way with, sizes, more outputs: HOW). The runs are a covering
array of all settings, made greedily. Each trains the same little net, pairs_net.c, for some steps over its descriptor;
its losses must be those of the run that has the same meaning and everything else as usual, within 1e-5 of the first
(16 bits: 3e-2). Needs the standard library only. Prints TAP."""
import argparse
import itertools
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from tap import Tap     # noqa: E402

FLAGS = "-std=c11 -O1 -Wall -Wextra -Werror".split()
MEANING = {
    "loss": [[], ["--loss", "cross_entropy(label_smoothing=0.1,weight=[1,2,0.5,1])"], ["--loss", "multi_margin"]],
    "optimizer": [[], ["--optimizer", "adam"], ["--optimizer", "muon"], ["--optimizer", "rmsprop"]],
    "schedule": [[], ["--schedule", "sequential(linear(start=0.1,end=1,steps=2),cosine(steps=9);2)"]],
    "batch": [["--dim", "batch=6"], ["--dim", "batch=2..6"]],
    "norm": [[], ["--frozen-norm"]],
    "drop": [[], ["--no-dropout"]],
    "learns": [[], ["--train-last", "2"], ["--train-only", "biases"], ["--freeze", "^c1"], ["--lora", "2"]],
    "head": [[], ["--replace-head", "4"]],
    "clip": [[], ["--clip-norm"], ["--clip-value"]],
    "group": [[], ["--group", "l[12]:learning_rate*0.5"]],
    "seed": [[], ["--seed", "3"]],
}
HOW = {
    "target": [[], ["--target", "portable"], ["--target", "native"], ["--target", "x86-64-v3"]],
    "threads": [[], ["--threads", "2:0"]],
    "memory": [[], ["--train-memory", "LEAST"]],
    "file": [[], ["--embed-limit", "0"]],
    "more": [[], ["--input-gradients", "all"], ["--jvp"]],
    "precision": [[], ["--precision", "bf16"], ["--precision", "f16"]],
    "fuse": [[], ["--no-fuse"]],
    "scale": [[], ["--loss-scale", "1024"], ["--loss-scale", "dynamic(initial=1024,interval=2)"]],
}
ALL = {**MEANING, **HOW}


def runs():
    """A covering array: a run is a choice of a value for each setting; every pair of values is in one."""
    names, left = list(ALL), set()
    for a, b in itertools.combinations(names, 2):
        left |= {(a, i, b, k) for i in range(len(ALL[a])) for k in range(len(ALL[b]))}
    while left:
        first = min(left)
        run = {first[0]: first[1], first[2]: first[3]}
        for name in names:
            if name in run:
                continue

            def gain(value):
                return sum(1 for other, at in run.items()
                           if ((other, at, name, value) if names.index(other) < names.index(name)
                               else (name, value, other, at)) in left)
            run[name] = max(range(len(ALL[name])), key=gain)
        left -= {(a, run[a], b, run[b]) for a, b in itertools.combinations(names, 2)}
        yield run


def compiled(args, folder, options):
    return subprocess.run([args.burncc, "-q", HERE / "pairs_net.c", "--train", *options, "-o", folder / "m.c"],
                          capture_output=True, text=True)


def built(args, folder, options):
    """The program, or what burncc or the C compiler said."""
    made = compiled(args, folder, [o.replace("LEAST", "1K") for o in options])
    for _ in range(8):                                  # blocks depend on the budget: the least may grow with it
        least = re.search(r"needs a workspace of (\d+) bytes", made.stderr)
        if "LEAST" not in options or not least:
            break
        made = compiled(args, folder, [o.replace("LEAST", least[1]) for o in options])
    if made.returncode:
        return None, made.stderr.strip()
    words = " ".join(options)
    defines = ["-DBATCH=6"] if "2..6" in words else []
    more = []
    if "--threads" in options:
        defines, more = [*defines, "-DPOOL", f"-I{args.runtime}", "-pthread"], [args.runtime / "threads.c"]
    for name, define in (("m.safetensors", "PARAMS"), ("m.bin", "WEIGHTS")):
        if (folder / name).exists():
            defines.append(f'-D{define}="{folder}/{name}"')
    made = subprocess.run([*args.cc.split(), *FLAGS, *defines, "-I", folder, HERE / "pairs.c", folder / "m.c", *more,
                           "-lm", "-o", folder / "m"], capture_output=True, text=True)
    return (folder / "m", "") if made.returncode == 0 else (None, made.stderr.strip())


def losses(args, options):
    with tempfile.TemporaryDirectory(prefix="burncc-pairs-") as tmp:
        program, said = built(args, pathlib.Path(tmp), options)
        if not program:
            return None, said
        ran = subprocess.run([program], capture_output=True, text=True)
        if ran.returncode:
            return None, f"exit {ran.returncode}: {ran.stdout.strip()}"
        return [float(x) for x in ran.stdout.split()], ""


def chosen(run, settings):
    return [word for name in settings for word in ALL[name][run[name]]]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("burncc"), p.add_argument("--cc", default="cc")
    args = p.parse_args()
    args.runtime = HERE.parent.parent / "runtime"
    tap, known = Tap(), {}
    # BURNCC_TEST_SHARE: one in so many cases, here half as sparing
    for run in list(runs())[::max(1, int(os.environ.get("BURNCC_TEST_SHARE", "1")) // 2)]:
        plain = {**run, "batch": 0}
        meaning = tuple(chosen(plain, MEANING))
        if meaning not in known:
            known[meaning] = losses(args, list(meaning))
        options = chosen(run, ALL)
        got, said = losses(args, options)
        wanted, why = known[meaning]
        name = " ".join(options)
        if got is None or wanted is None:
            tap.check(name, False, said or why)
            continue
        bound = 3e-2 if "--precision" in options else 1e-5
        error = max(abs(a - b) for a, b in zip(got, wanted)) / abs(wanted[0])
        tap.check(name, error <= bound and wanted[4] != wanted[0], f"losses {got}, as usual {wanted}")
    return tap.end()


sys.exit(main())
