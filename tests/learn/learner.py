#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""The learner of runtime/learn/learner.h over a small net: beside a plain loop over the module's own calls; stopped,
interrupted, killed and resumed, with the bits of a run that was not; and what it says of bad data and full disks.

usage: learner.py BURNCC LIBRARY [--cc CC]    LIBRARY: runtime/learn as a shared library
Needs the standard library only. Prints TAP."""
import argparse
import os
import pathlib
import random
import re
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent))
from tap import Tap     # noqa: E402

FLAGS = "-std=c11 -D_POSIX_C_SOURCE=200809L -O1 -Wall -Wextra -Werror".split()
EINVAL, EIO, EFORMAT, ERANGE, ENAN = -1, -3, -6, -8, -9


class Run:
    """What a run of learner.c printed."""

    def __init__(self, program, before=(), signals=(), limit=None, **options):
        """before: words in front of the command; signals: (after seconds, number); limit: bytes of a file."""
        words = [f"{k}={v:d}" if isinstance(v, bool) else f"{k}={v}" for k, v in options.items()]
        command = [*before, str(program), *words]
        started = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                   preexec_fn=lambda: limit and limit_files(limit))
        for seconds, number in signals:
            time.sleep(seconds)
            started.send_signal(number)
        self.text, self.status = started.communicate()[0], started.returncode
        self.bits, self.best = (re.findall(rf"^{name} (\w+)", self.text, re.M) for name in ("bits", "best"))
        self.end = (re.findall(r"^end (.*)", self.text, re.M) or [""])[0]

    def figures(self, split, name):
        return [float(x) for x in re.findall(rf"^{split} \d+ .*?\b{name}=(\S+)", self.text, re.M)]


def limit_files(limit):
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


class Programs:
    """learner.c over modules of the net, built when first asked for."""

    def __init__(self, args, folder):
        self.args, self.folder, self.built = args, pathlib.Path(folder), {}

    def __call__(self, batch, *options, more=()):
        """more: words of the C compiler's command."""
        name = "net_" + re.sub(r"\W+", "_", "_".join([batch, *options]))
        if name not in self.built:
            module, program, library = self.folder / f"{name}.c", self.folder / name, pathlib.Path(self.args.library)
            subprocess.run([self.args.burncc, "-q", HERE / "net.c", "--train", "--name", name, "--dim",
                            f"batch={batch}", *options, "-o", module], check=True)
            subprocess.run([*self.args.cc.split(), *FLAGS, f"-DMODULE={name}", f'-DMODULE_HEADER="{name}.h"', "-I",
                            self.folder, "-I", ROOT / "runtime", HERE / "learner.c", module,
                            ROOT / "runtime" / "threads.c", *more, library, f"-Wl,-rpath,{library.resolve().parent}",
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
    seen = Run(adam, items=200, batch=16, epochs=8, valid=40, metrics=1, learning_rate=0.02, train_metrics=1)
    accuracy = seen.figures("train", "accuracy")
    tap.check("metrics of training: the same bits, and it becomes better", seen.bits == run.bits and len(accuracy) == 8
              and accuracy[0] + 0.1 < accuracy[-1] <= 1 and not run.figures("train", "accuracy"), seen.text)
    parts = Run(adam, items=200, batch=8, accumulate=2, epochs=8, metrics=1, learning_rate=0.02, train_metrics=1)
    tap.check("of sums, too", 0.7 < parts.figures("train", "accuracy")[-1] <= 1, parts.text)
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
        run = Run(adam, items=100, batch=16, epochs=1, bad_label=18, skip_bad=skip)
        ok = ("skipped=1" in run.text and "items=99" in run.text and not run.status if skip
              else run.end.startswith(f"{ERANGE} epochs=0 ")
              and run.end.endswith("points.txt: item 18: target is 7, which the module has not"))
        tap.check(f"a label out of range {what}", ok, run.text)
    run = Run(adam, items=100, batch=16, epochs=1, no_number=18)
    tap.check("a number that is none, in the data", run.end.startswith(f"{ENAN} epochs=0 ") and
              "the loss is not a number: x of item 18 of points.txt" in run.end, run.text)
    run = Run(adam, items=100, batch=16, epochs=1, learning_rate=1e38)
    tap.check("a parameter that is none", run.end.startswith(f"{ENAN} ") and "parameter first." in run.end, run.text)
    still = programs("2..16", "--no-dropout", "--frozen-norm")
    run = Run(still, items=100, batch=16, epochs=2, learning_rate=1e18)
    tap.check("a large step: the first tensor that is none is named", run.end.startswith(f"{ENAN} ") and
              re.search("(output scores|parameter|gradient of)", run.end), run.text)


def check_early(tap, programs):
    adam = programs("2..16", "--optimizer", "adam")
    run = Run(adam, items=60, valid=40, batch=16, epochs=30, learning_rate=0.5, patience=3, metrics=1, best_by=1)
    accuracy = run.figures("valid", "accuracy")
    best = 1 + accuracy.index(max(accuracy))
    reason = rf"^0 epochs={best + 3} .*best={best}: stopped early: no better accuracy since epoch {best}$"
    tap.check("it stops when nothing becomes better", re.search(reason, run.end) and len(accuracy) == best + 3,
              run.text)
    until = Run(adam, items=60, valid=40, batch=16, epochs=best, learning_rate=0.5)
    tap.check("the best epoch's parameters", run.best == until.bits != run.bits, until.text)
    least = Run(adam, items=60, valid=40, batch=16, epochs=30, learning_rate=0.001, patience=2, least_change=10)
    tap.check("a change that is too small is none", "epochs=3 " in least.end, least.text)
    wrong = Run(adam, items=60, valid=40, batch=16, metrics=1, best_by=2)
    tap.check("a figure that there is not", "refused -1 no figure 'valid nothing'" in wrong.text
              and "'valid accuracy'" in wrong.text, wrong.text)


LONG = dict(items=100, valid=40, batch=16, epochs=4, metrics=1, learning_rate=0.02)


def check_resuming(tap, programs, folder):
    adam = programs("2..16", "--optimizer", "adam")
    whole = Run(adam, **LONG)

    def resumed(name, *stops, **options):
        """Stops at these batches one after the other, then goes on to the end."""
        where = folder / name
        runs = [Run(adam, artifacts=where, resume=k > 0, stop_at=n, **LONG, **options) for k, n in enumerate(stops)]
        runs.append(Run(adam, artifacts=where, resume=1, **LONG, **options))
        text = "".join(r.text for r in runs)
        ok = runs[-1].bits == whole.bits and runs[-1].best == whole.best
        for split in ("train", "valid"):
            told = {line.split(" ")[1]: line for line in re.findall(rf"^{split} .*", text, re.M)}
            ok = ok and list(told.values()) == re.findall(rf"^{split} .*", whole.text, re.M)
        return ok, text

    tap.check("stopped in the middle of an epoch and resumed", *resumed("middle", 10))
    tap.check("stopped where an epoch ends", *resumed("end", 7, 7))
    tap.check("stopped again and again", *resumed("often", *[3] * 8, workers=2))
    tap.check("stopped with sums of two batches", *(lambda w, r: (r.bits == w.bits, w.text + r.text))(
        Run(adam, accumulate=2, **LONG), (Run(adam, accumulate=2, artifacts=folder / "two", stop_at=9, **LONG),
                                          Run(adam, accumulate=2, artifacts=folder / "two", resume=1, **LONG))[1]))
    kept = Run(adam, artifacts=folder / "kept", checkpoint_steps=2, keep=3, **LONG)
    files = sorted(p.name for p in (folder / "kept" / "checkpoint").iterdir())
    tap.check("the newest three, and the best", files == sorted(
        f"step-{n:09}.{e}" for n in (24, 26, 28) for e in ("txt", "safetensors")), (files, kept.text))
    other = Run(adam, artifacts=folder / "kept", resume=1, seed=9, **LONG)
    tap.check("a run of another seed does not go on", f"end {EINVAL} " in other.text
              and "batches of 16, seed 0" in other.end, other.text)
    check_damage(tap, adam, folder, whole)


def check_damage(tap, adam, folder, whole):
    for name, change in (("cut short", lambda b: b[:-5]), ("changed", lambda b: b[:-9] + b"~~" + b[-7:]),
                         ("empty", lambda b: b"")):
        for end in ("txt", "safetensors"):
            where = folder / f"{name} {end}"
            Run(adam, artifacts=where, checkpoint_steps=1, stop_at=12, **LONG)
            newest = where / "checkpoint" / f"step-000000012.{end}"
            newest.write_bytes(change(newest.read_bytes()))
            run = Run(adam, artifacts=where, resume=1, **LONG)
            tap.check(f"a checkpoint whose .{end} is {name}: from the one before", run.bits == whole.bits and
                      re.search(rf"^said 1 .*12\.{end}: .*; goes on after step 11", run.text, re.M), run.text)
    for file in (folder / "changed txt" / "checkpoint").iterdir():
        file.write_bytes(b"burncc")
    run = Run(adam, artifacts=folder / "changed txt", resume=1, **LONG)
    tap.check("none that is good", run.end.startswith(f"{EFORMAT} ") and "no checkpoint there is good" in run.end,
              run.text)
    where = folder / "full"
    Run(adam, artifacts=where, stop_at=9, **LONG)
    full = Run(adam, artifacts=where, resume=1, limit=300, **LONG)
    tap.check("a file that may not grow: said, with its path", full.end.startswith(f"{EIO} ")
              and "full/checkpoint/step-000000014.safetensors: File too large" in full.end, full.text)
    mount = f'mount -t tmpfs -o size=12k none {where} && cd {where} && exec "$@"'
    if subprocess.run(["unshare", "-Urm", "sh", "-c", mount.replace('"$@"', "true")], capture_output=True).returncode:
        tap.skip("a full disk", "no file system can be mounted")
    else:
        full = Run(adam, before=["unshare", "-Urm", "sh", "-c", mount, "sh"], artifacts=where, keep=9, **LONG)
        tap.check("a full disk", full.end.startswith(f"{EIO} ") and ": No space left on device" in full.end, full.text)
    run = Run(adam, artifacts=where, resume=1, **LONG)
    tap.check("then it goes on from the last good one", run.bits == whole.bits, run.text)


def check_interrupts(tap, programs, folder):
    adam = programs("2..16", "--optimizer", "adam")
    long = dict(LONG, epochs=15)
    whole = Run(adam, **long)
    for number in (signal.SIGINT, signal.SIGTERM):
        where, name = folder / f"signal {number}", signal.Signals(number).name
        first = Run(adam, artifacts=where, interrupts=1, slow=5, signals=[(0.3, number)], **long)
        run = Run(adam, artifacts=where, resume=1, **long)
        tap.check(f"{name} saves and ends", first.end.endswith(": interrupted") and "checkpoint " in first.text
                  and first.status == 0 and run.bits == whole.bits, first.text + run.text)
    run = Run(adam, interrupts=1, slow=300, signals=[(0.2, signal.SIGINT), (0.02, signal.SIGINT)], **long)
    tap.check("a second one ends it at once", run.status == -signal.SIGINT and not run.end, (run.status, run.text))
    kills = 100 if os.environ.get("BURNCC_TEST_ALL") else 4
    draw, count, where = random.Random(kills), 0, folder / "killed"
    options = dict(long, checkpoint_steps=1, slow=2, workers=1, artifacts=where)
    while count < kills:
        run = Run(adam, resume=count > 0, signals=[(draw.uniform(0.02, 0.35), signal.SIGKILL)], **options)
        count += run.status == -signal.SIGKILL
        if run.status != -signal.SIGKILL and (run.bits != whole.bits or run.best != whole.best):
            break
        if run.status == 0:                                # it came to the end: once more, from nothing
            options["artifacts"] = folder / f"killed {count}"
    run = Run(adam, resume=1, **options)
    tap.check(f"killed at {kills} random moments: the bits of a run that was not", count == kills
              and run.bits == whole.bits and run.best == whole.best, run.text)


def write_digits(folder, name, count, draw):
    """MNIST's files of squares, one of ten places for each digit, among noise."""
    labels, images = bytes(draw.randrange(10) for _ in range(count)), bytearray()
    for digit in labels:
        image = bytearray(draw.randrange(60) for _ in range(28 * 28))
        for row in range(8):
            at = 28 * (4 + 12 * (digit // 5) + row) + 5 * (digit % 5)
            image[at:at + 6] = b"\xf0" * 6
        images += image
    (folder / f"{name}-images-idx3-ubyte").write_bytes(struct.pack(">HBBIII", 0, 8, 3, count, 28, 28) + images)
    (folder / f"{name}-labels-idx1-ubyte").write_bytes(struct.pack(">HBBI", 0, 8, 1, count) + labels)


def check_examples(tap, args, folder):
    """examples/train/lenet.c and loop.c as their first lines say, on digits that are easily learnt."""
    digits, library, examples = folder / "digits", pathlib.Path(args.library).resolve(), ROOT / "examples" / "train"
    digits.mkdir()
    write_digits(digits, "train", 640, random.Random(1))
    write_digits(digits, "t10k", 192, random.Random(2))

    def run(name, *words, batch):
        own = folder / f"example {name}"
        own.mkdir(exist_ok=True)
        if not (own / name).exists():
            schedule = ["--schedule", "cosine"] if name == "lenet" else []
            subprocess.run([args.burncc, "-q", ROOT / "models" / "lenet.c", "--train", "--optimizer", "adam",
                            *schedule, "--dim", f"batch={batch}", "--target", "native", "-o", own / "lenet.c"],
                           check=True)
            subprocess.run([*args.cc.split(), *FLAGS, "-march=native", "-I", own, "-I", ROOT / "runtime",
                            examples / f"{name}.c", own / "lenet.c", library, f"-Wl,-rpath,{library.parent}", "-lm",
                            "-o", own / name], check=True)
        done = subprocess.run([own / name, f"mnist:{digits}", *words], cwd=own, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    status, text = run("lenet", "4", batch="1..64")
    accuracy = [float(x) for x in re.findall(r"accuracy ([\d.]+)", text)]
    tap.check("examples/train/lenet.c", status == 0 and accuracy and accuracy[-1] > 0.9
              and (folder / "example lenet" / "lenet.safetensors").exists(), text)
    status, text = run("lenet", "5", batch="1..64")
    tap.check("... goes on when it is called again", status == 0 and "goes on after step 40, 4 epochs done" in text
              and "epochs done after 5 epochs, 50 steps" in text, text)
    status, text = run("loop", batch="64")
    accuracy = [float(x) for x in re.findall(r"accuracy ([\d.]+)", text)]
    tap.check("examples/train/loop.c", status == 0 and len(accuracy) == 3 and accuracy[-1] > 0.9, text)
    lines = {n: len((examples / f"{n}.c").read_text().splitlines()) for n in ("lenet", "loop")}
    tap.check("under 60 lines, and under 40", lines["lenet"] < 60 and lines["loop"] < 40, lines)


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("burncc")
    parser.add_argument("library")
    parser.add_argument("--cc", default="cc")
    return parser.parse_args()


def main():
    args = arguments()
    tap = Tap()
    with tempfile.TemporaryDirectory() as folder:
        programs = Programs(args, folder)
        check_steps(tap, programs)
        check_batches(tap, programs)
        check_data(tap, programs)
        check_early(tap, programs)
        check_resuming(tap, programs, pathlib.Path(folder))
        check_interrupts(tap, programs, pathlib.Path(folder))
        check_examples(tap, args, pathlib.Path(folder))
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
