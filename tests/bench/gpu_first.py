#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""From the start of a process to its first result on the host, on a GPU: burncc's program and PyTorch, in one run.

usage: gpu_first.py [--models NAMES] [--precision f32,f16] [--burncc PROGRAM] [--folder DIR] [--runs N] ...

Everything is prepared first: burncc compiles models/*.c, the C compiler what it wrote, one run of each program leaves
what the driver made of its kernels (burn_vk_cache), and PyTorch saves the parameters of its networks. Then, network by
network, processes are started one after the other, each measured from outside, from its start to its end: ours N times,
before and behind one of PyTorch, which imports it, builds the network on the device, loads the parameters and runs
once, eager. Of ours the median counts. Out: a line for each as it comes, and a table (Markdown)."""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import concurrent.futures

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE))
from gpu import ROOT, Program       # noqa: E402

MODELS = ("resnet50", "mobilenet_v2", "vit_b_16", "bert_base", "gpt2")


def parse():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--models", type=lambda s: s.split(","), default=list(MODELS),
                   help="NAME, or NAME:PRECISION for that alone")
    p.add_argument("--precision", type=lambda s: s.split(","), default=["f32", "f16"])
    p.add_argument("--burncc", type=pathlib.Path, default=ROOT / "build" / "burncc")
    p.add_argument("--folder", type=pathlib.Path, help="for what is built (a temporary one)")
    p.add_argument("--python", default=sys.executable, help="the Python that has PyTorch (this one)")
    p.add_argument("--runs", type=int, default=6, help="processes of ours (6)")
    p.add_argument("--jobs", type=int, default=max(1, os.cpu_count() // 3), help="models prepared at a time")
    p.add_argument("--budget", type=float, default=1e9, metavar="S", help="no network is begun after so many seconds")
    return p.parse_args()


def process(command, environment=None):
    """What it took from start to end, in seconds, and its last line."""
    began = time.perf_counter()
    ran = subprocess.run([str(c) for c in command], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                         env={**os.environ, **(environment or {})})
    seconds = time.perf_counter() - began
    if ran.returncode:
        said = (ran.stderr.strip() or "failed").splitlines()[-1][:200]
        print(f"{command[0]}: {said}", file=sys.stderr, flush=True)
        return None, said
    return seconds, (ran.stdout.strip() or "-").splitlines()[-1]


def contest(options, program, folder):
    ours = []

    def some(count):
        for _ in range(count):
            seconds, said = process([*program.command, "copies"], program.environment)
            if seconds:
                ours.append((seconds, said))
    some(options.runs // 2)
    theirs, said = process([options.python, HERE / "gpu_torch_first.py", "run", folder, program.key])
    some(options.runs - options.runs // 2)
    if not ours:
        return None
    seconds, ready = sorted(ours)[len(ours) // 2]
    row = {"key": program.key, "ours": seconds, "least": min(ours)[0], "torch": theirs}
    stages = " ".join(f"{int(ns) * 1e-6:.0f}" for ns in ready.split()[1:])
    print(f"{program.key}: ours {seconds:.3f} s (least {row['least']:.3f}; in it, ms: {stages}), PyTorch "
          + (f"{theirs:.2f} s ({said}), ours {seconds / theirs:.3f} of it" if theirs else "failed"), flush=True)
    return row


def run(options, folder):
    began = time.monotonic()
    keys = [f"{m.split(':')[0]}:1:{p}" for p in options.precision for m in options.models
            if m.split(":")[1:] in ([], [p])]
    saving = threading.Thread(target=process, args=(
        [options.python, HERE / "gpu_torch_first.py", "save", folder, *keys],))
    saving.start()
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        programs = list(pool.map(lambda key: Program(options, options.burncc, key, folder / key.replace(":", "_")),
                                 keys))
    saving.join()
    print(f"prepared after {time.monotonic() - began:.0f} s", flush=True)
    rows = []
    for program in programs:
        late = time.monotonic() - began > options.budget
        if program.failed or late:
            print(program.key, program.failed or "not begun: out of time", file=sys.stderr, flush=True)
        if not program.failed:
            rows.append((program, None if late else contest(options, program, folder)))
    print("\n| network, precision | burncc, s | cc, s | program, MB | weights, MB | first, kernels not kept, s | kept "
          "| PyTorch, s | ratio |\n" + "|---" * 9 + "|")
    for program, row in rows:
        name, _, precision = program.key.split(":")
        weights = program.folder / "model.bin"
        cells = [f"{name}, {precision}", f"{program.seconds['burncc']:.2f}", f"{program.seconds['cc']:.2f}",
                 f"{program.size / 1e6:.2f}", f"{weights.stat().st_size / 1e6:.0f}" if weights.exists() else "in it",
                 f"{program.seconds['first']:.2f}"]
        cells += [f"{row['ours']:.3f}", f"{row['torch']:.2f}" if row["torch"] else "–",
                  f"{row['ours'] / row['torch']:.3f}" if row["torch"] else "–"] if row else ["–"] * 3
        print("| " + " | ".join(cells) + " |")
    ratios = [row["ours"] / row["torch"] for _, row in rows if row and row["torch"]]
    if ratios:
        print(f"\nours of PyTorch's time: at most {max(ratios):.3f}, geometric mean "
              f"{statistics.geometric_mean(ratios):.3f}")


def main():
    options = parse()
    if options.folder:
        options.folder.mkdir(parents=True, exist_ok=True)
        return run(options, options.folder)
    with tempfile.TemporaryDirectory() as folder:
        return run(options, pathlib.Path(folder))


if __name__ == "__main__":
    sys.exit(main())
