#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""The learner of runtime/learn/learner.h over a small net: beside a plain loop over the module's own calls.

usage: learner.py BURNCC LIBRARY [--cc CC]    LIBRARY: runtime/learn as a shared library
Needs the standard library only. Prints TAP."""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent))
from tap import Tap     # noqa: E402

FLAGS = "-std=c11 -D_POSIX_C_SOURCE=200809L -O1 -Wall -Wextra -Werror".split()
EINVAL, EFORMAT, ERANGE = -1, -6, -8


class Run:
    """What a run of learner.c printed."""

    def __init__(self, program, **options):
        command = [str(program), *(f"{k}={v}" for k, v in options.items())]
        done = subprocess.run(command, capture_output=True, text=True)
        self.text, self.status = done.stdout + done.stderr, done.returncode
        self.bits = re.findall(r"^bits (\w+)", self.text, re.M)
        self.end = (re.findall(r"^end (.*)", self.text, re.M) or [""])[0]

    def figures(self, split, name):
        return [float(x) for x in re.findall(rf"^{split} \d+ .*?\b{name}=(\S+)", self.text, re.M)]


class Programs:
    """learner.c over modules of the net, built when first asked for."""

    def __init__(self, args, folder):
        self.args, self.folder, self.built = args, pathlib.Path(folder), {}

    def __call__(self, batch, *options):
        name = "net_" + re.sub(r"\W+", "_", "_".join([batch, *options]))
        if name not in self.built:
            module, program, library = self.folder / f"{name}.c", self.folder / name, pathlib.Path(self.args.library)
            subprocess.run([self.args.burncc, "-q", HERE / "net.c", "--train", "--name", name, "--dim",
                            f"batch={batch}", *options, "-o", module], check=True)
            subprocess.run([*self.args.cc.split(), *FLAGS, f"-DMODULE={name}", f'-DMODULE_HEADER="{name}.h"', "-I",
                            self.folder, "-I", ROOT / "runtime", HERE / "learner.c", module,
                            ROOT / "runtime" / "threads.c", library, f"-Wl,-rpath,{library.resolve().parent}",
                            "-lm", "-lpthread", "-o", program], check=True)
            self.built[name] = program
        return self.built[name]


def check_steps(tap, programs):
    adam = programs("2..16", "--optimizer", "adam")
    plain, run = (Run(adam, items=100, batch=16, epochs=3, seed=4, plain=p, valid=40, metrics=1) for p in (1, 0))
    tap.check("the losses and bits of a plain loop", plain.bits == run.bits != []
              and plain.figures("train", "loss") == run.figures("train", "loss"), plain.text + run.text)
    tap.check("all items, in epochs of seven batches", "items=100" in run.text and "steps=21" in run.end, run.text)
    run = Run(adam, items=200, batch=16, epochs=8, valid=40, metrics=1, learning_rate=0.02)
    tap.check("it learns", run.figures("valid", "accuracy")[-1] > 0.7 and
              run.figures("valid", "loss")[-1] < 0.7 * run.figures("valid", "loss")[0], run.text)
    sums = [Run(adam, items=96, batch=8, accumulate=4, epochs=2, plain=1)]
    sums += [Run(adam, items=96, batch=8, accumulate=4, epochs=2, at_once=n, threads=t, workers=t // 2)
             for n, t in ((1, 0), (1, 2), (2, 2), (4, 4), (3, 2))]
    tap.check("sums of four batches: a plain loop's bits for any threads", len({str(s.bits) for s in sums}) == 1
              and sums[0].bits, "\n".join(s.text for s in sums))
    still = programs("2..16", "--optimizer", "adam", "--no-dropout", "--frozen-norm")
    whole = Run(still, items=96, batch=16, epochs=3)
    parts = Run(still, items=96, batch=8, accumulate=2, epochs=3)
    tap.check("two small batches are a large one", all(
        abs(a - b) < 1e-5 for a, b in zip(whole.figures("train", "loss"), parts.figures("train", "loss"))),
        whole.text + parts.text)


def check_batches(tap, programs):
    anyone, fixed = programs("2..16", "--optimizer", "adam"), programs("16", "--optimizer", "adam")
    runs = [Run(p, items=96, valid=41, batch=16, epochs=2, metrics=1) for p in (anyone, fixed)]
    same = all(abs(a - b) < 1e-5 for name in ("loss", "accuracy")
               for a, b in zip(*(r.figures("valid", name) for r in runs)))
    tap.check("a rest of 9 items in validation: any module counts them alike", same and "items=41" in runs[1].text,
              runs[0].text + runs[1].text)
    short = Run(fixed, items=100, batch=16, epochs=1)
    tap.check("a fixed module leaves a rest out in training", "items=96" in short.text and not short.status, short.text)
    one = Run(anyone, items=33, batch=16, epochs=1)
    tap.check("so does one whose least batch is more than the rest", "items=32" in one.text, one.text)
    swapped = Run(fixed, items=96, valid=41, batch=16, epochs=2, metrics=1, swap=1)
    tap.check("fields are found by type and shape", swapped.bits == runs[1].bits, swapped.text)
    refused = Run(fixed, items=96, batch=8, epochs=1)
    tap.check("a batch that a fixed module has not", "refused -1 batches of 8" in refused.text
              and "--dim batch=1..8" in refused.text, refused.text)


def check_data(tap, programs):
    adam = programs("2..16", "--optimizer", "adam")
    for skip, what in ((0, "ends it"), (1, "is counted")):
        run = Run(adam, items=100, batch=16, epochs=1, broken=17, skip_bad=skip)
        ok = ("skipped=1" in run.text and "items=99" in run.text and not run.status if skip
              else run.end.startswith(f"{EFORMAT} epochs=0") and "points.txt: row 17" in run.end)
        tap.check(f"a broken row {what}", ok, run.text)
    stopped = Run(adam, items=100, batch=16, epochs=5, stop_at=10)
    tap.check("a wish to stop", stopped.end == "0 epochs=1 steps=10 best=1: stopped", stopped.text)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("burncc")
    parser.add_argument("library")
    parser.add_argument("--cc", default="cc")
    args = parser.parse_args()
    tap = Tap()
    with tempfile.TemporaryDirectory() as folder:
        programs = Programs(args, folder)
        check_steps(tap, programs)
        check_batches(tap, programs)
        check_data(tap, programs)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
