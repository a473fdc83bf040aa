#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""burncc on a GPU beside PyTorch on the same card, in one run.

usage: gpu.py [--models NAMES] [--batch 1,32] [--precision f32,f16] [--burncc PROGRAM] [--folder DIR] ...

First everything is prepared at once, as far as the cores go: burncc compiles models/*.c, the C compiler what it wrote,
the driver its kernels (kept in a folder, burn_vk_cache), and PyTorch compiles (torch.compile) what it gets to within
--compile seconds. Then the contestants of each network, precision and batch take turns in short slices, in an order
that rotates: ours with inputs and outputs on the device (stays) and from and to the host (copies); PyTorch eager, as a
CUDA graph, and compiled and recorded as one, inputs and outputs on the device. Every run is waited for. A time is the
median of its rounds' medians.

Out: a line for each as it comes, a table (Markdown) at the end, with geometric means, and with --json everything. On a
machine without CUDA PyTorch computes on the processor, and ours on what Vulkan offers: for trying this out."""
import argparse
import collections
import concurrent.futures
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE))
from workers import Failed, Worker      # noqa: E402

LENGTH = "--dim length=128"
MODELS = {                              # as gpu_torch.py has them; BATCH is how that is said
    "resnet50": "resnet.c --set depth=50 BATCH",
    "mobilenet_v2": "mobilenet_v2.c BATCH",
    "vit_b_16": "vit_b_16.c BATCH",
    "bert_base": f"bert.c BATCH {LENGTH}",
    "gpt2": f"gpt2.c BATCH {LENGTH}",
    "gpt2_decode": "gpt2.c --set cache=1024 --set batch=SIZE --function step",
    "llama_tiny": f"llama.c --set layers=8 --set width=512 --set heads=8 --set kv_heads=4 --set inner=1376 "
                  f"--set eps=1e-6 BATCH {LENGTH}",
    "unet": "unet.c BATCH",
    "whisper_tiny_encoder": "whisper.c --set decoder=0 BATCH",
}
PAST = 255                              # tokens that gpt2_decode stands behind, as in gpu_torch.py
PEERS = ("eager", "graph", "compiled")
WAYS = ("copies2", "host", "host2")     # as gpu.c has them


def parse():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--models", type=lambda s: s.split(","), default=list(MODELS))
    p.add_argument("--batch", type=lambda s: s.split(","), default=["1", "32"])
    p.add_argument("--precision", type=lambda s: s.split(","), default=["f32", "f16"])
    p.add_argument("--burncc", type=pathlib.Path, default=ROOT / "build" / "burncc")
    p.add_argument("--folder", type=pathlib.Path, help="for what is built (a temporary one)")
    p.add_argument("--python", default=sys.executable, help="the Python that has PyTorch (this one)")
    p.add_argument("--slice", type=float, default=0.15, help="seconds of a turn (0.15)")
    p.add_argument("--rounds", type=int, default=4, help="turns of each contestant (4)")
    p.add_argument("--jobs", type=int, default=max(1, os.cpu_count() // 3), help="models prepared at a time")
    p.add_argument("--compile", type=float, default=60, metavar="S",
                   help="torch.compile begins nothing after so many seconds; 0: leave it out (60)")
    p.add_argument("--compilers", type=int, default=max(1, os.cpu_count() // 3), help="processes that compile")
    p.add_argument("--budget", type=float, default=1e9, metavar="S", help="no network is begun after so many seconds")
    p.add_argument("--json", type=pathlib.Path)
    p.add_argument("--ways", action="store_true",
                   help="ours from and to memory of the host that the device copies, too, and two runs under way")
    p.add_argument("--compare", type=pathlib.Path, metavar="BURNCC", help="another build of burncc that takes part")
    return p.parse_args()


class Program:
    """One model, batch and precision as a program, and how it got there."""
    def __init__(self, options, burncc, key, folder):
        self.key, self.folder, self.failed, self.seconds, self.size = key, folder, None, {}, 0
        name, batch, precision = key.split(":")
        description, *words = MODELS[name].replace("BATCH", f"--dim batch={batch}").replace("SIZE", batch).split()
        folder.mkdir(parents=True, exist_ok=True)
        step = "gpt2_decode" == name
        self.path, weights = folder / "program", folder / "model.bin"
        try:
            self.timed("burncc", [burncc, ROOT / "models" / description, *words, "--target", "vulkan", "--precision",
                                  precision, "--name", "model", "-o", folder / "model.c"])
            own = [f"-DWEIGHTS={'NULL' if weights.exists() else 'model_weights'}"]
            runtime = [ROOT / "runtime" / "vulkan.c"]
            if step:
                own, runtime = ["-DSTEP", f"-DPOSITION={PAST}"], runtime + [ROOT / "runtime" / "vulkan_steps.c"]
            self.timed("cc", ["cc", "-O2", "-w", *own, "-I", folder, "-I", ROOT / "runtime", "-I", HERE, "-o",
                              self.path, HERE / "gpu.c", folder / "model.c", *runtime, "-lvulkan", "-lpthread", "-lm"])
            self.size = self.path.stat().st_size
            self.command = [self.path, weights if weights.exists() else "-"]
            self.environment = {"BURN_VK_CACHE": str(folder)}
            worker = self.start()
            self.seconds["first"] = sum(worker.ready) * 1e-9
            worker.stop()
        except Failed as e:
            self.failed = str(e)

    def timed(self, what, command):
        began = time.monotonic()
        ran = subprocess.run([str(c) for c in command], capture_output=True, text=True)
        self.seconds[what] = time.monotonic() - began
        if ran.returncode:
            raise Failed(f"{what}: {(ran.stderr.strip() or 'failed').splitlines()[-1][:200]}")

    def start(self):
        return Worker(self.key, self.command, os.sched_getaffinity(0), 60, self.environment)


def torch_worker(options, keys, seconds):
    return Worker("torch", [options.python, HERE / "gpu_torch.py", seconds, *keys], os.sched_getaffinity(0),
                  seconds + 60)


class Compilers:
    """Processes that compile networks with PyTorch, all at once; those that go past their time are ended."""
    def __init__(self, options, keys):
        self.of = {}
        shares = [keys[i::options.compilers] for i in range(options.compilers)] if options.compile else []
        self.threads = [threading.Thread(target=self.run, args=(options, share)) for share in shares if share]
        for thread in self.threads:
            thread.start()

    def run(self, options, keys):
        try:
            worker = torch_worker(options, keys, options.compile)
            for key in worker.ask("have", "have"):
                self.of[key] = worker
        except Failed as e:
            print("torch.compile:", e, file=sys.stderr, flush=True)

    def wait(self):
        for thread in self.threads:
            thread.join()

    def stop(self):
        for worker in set(self.of.values()):
            worker.stop()


def ours(options, program, name, row):
    """A program and what it does: contestants; all but the first have memory of their own, which is not counted."""
    worker = program.start()
    row[name + "first_kept_s"] = sum(worker.ready) * 1e-9
    row[name + "bytes"] = int(worker.ask("memory", "memory")[0])
    ways = ("stays", "copies") + (WAYS if options.ways and "gpt2_decode" not in program.key else ())
    return [(name + way, worker, f"slice {way}") for way in ways]


def theirs(worker, key, row):
    worker.ask(f"load {key}", "loaded")
    row["torch_bytes"] = max(row.get("torch_bytes", 0), int(worker.ask("memory", "memory")[0]))
    return [(way, worker, f"slice {way}") for way in worker.ask("ways", "ways")]


def take_turns(options, present, failed):
    """Each contestant's rounds, in ms; one that fails is left out from then on."""
    rounds = collections.defaultdict(list)
    for n in range(options.rounds):
        first = n % max(1, len(present))
        for name, worker, request in present[first:] + present[:first]:
            if name in failed:
                continue
            try:
                times = [int(t) for t in worker.ask(f"{request} {options.slice}", "times")]
                rounds[name].append(statistics.median(times) * 1e-6 / (2 if name.endswith("2") else 1))
            except Failed as e:
                failed[name] = str(e)
    return {name: r for name, r in rounds.items() if name not in failed}


def contest(options, program, other, eager, compiled):
    row = {"key": program.key, "seconds": program.seconds, "program_bytes": program.size, "failed": {}}
    present = []
    for name, p in (("", program), ("other ", other), ("eager", eager), ("compiled", compiled)):
        if not p:
            continue
        try:
            if not isinstance(p, Program):
                present += theirs(p, program.key, row)
            elif p.failed:
                row["failed"][name + "program"] = p.failed
            else:
                present += ours(options, p, name, row)
        except Failed as e:
            row["failed"][name] = str(e)
    row["rounds_ms"] = take_turns(options, present, row["failed"])
    for worker in {w for name, w, _ in present if name.endswith(("stays", "copies", *WAYS))}:
        worker.stop()
    row["ms"] = {name: statistics.median(r) for name, r in row["rounds_ms"].items()}
    best = [row["ms"][p] for p in PEERS if p in row["ms"]]
    for ratio, own in (("ratio", "stays"), ("ratio_copies", "copies")):
        if best and own in row["ms"]:
            row[ratio] = min(best) / row["ms"][own]
    return row


def number(row, name):
    return f"{row['ms'][name]:.3g}" if name in row["ms"] else "–"


def mean(rows, what):
    return math.exp(statistics.fmean(math.log(r[what]) for r in rows))


def table(options, rows):
    other = (list(WAYS) if options.ways else []) + (["other stays"] if options.compare else [])
    print("\n| network | batch | | ours, on the device | with copies |" + "".join(f" {o} |" for o in other)
          + " PyTorch eager | graph | compiled | best : ours | best : copies | MB, ours | PyTorch |")
    print("|---" * (12 + len(other)) + "|")
    for row in rows:
        name, batch, precision = row["key"].split(":")
        cells = [name, batch, precision, *(number(row, n) for n in ("stays", "copies", *other, *PEERS)),
                 *(f"{row[r]:.2f}" if r in row else "–" for r in ("ratio", "ratio_copies")),
                 *(f"{row[b] / 1e6:.0f}" if b in row else "–" for b in ("bytes", "torch_bytes"))]
        print("| " + " | ".join(cells) + " |")
    print("\n| prepared | burncc s | cc s | program MB | first result s | with kept kernels |")
    print("|---" * 6 + "|")
    for row in rows:
        s, kept = row["seconds"], row.get("first_kept_s")
        print("| " + " | ".join([row["key"], *(f"{s[w]:.2f}" if w in s else "–" for w in ("burncc", "cc")),
                                 f"{row['program_bytes'] / 1e6:.1f}", f"{s.get('first', 0):.2f}",
                                 f"{kept:.2f}" if kept else "–"]) + " |")
    print()
    for batch in options.batch:
        for precision in options.precision:
            own = [r for r in rows if r["key"].endswith(f":{batch}:{precision}") and "ratio_copies" in r
                   and "ratio" in r]
            if own:
                least = min(own, key=lambda r: r["ratio"])
                print(f"batch {batch}, {precision}: PyTorch's best over ours, geometric mean of {len(own)}: "
                      f"{mean(own, 'ratio'):.2f} (with copies {mean(own, 'ratio_copies'):.2f}); "
                      f"least {least['key'].split(':')[0]} {least['ratio']:.2f}")


def prepare(options, folder, keys):
    """All programs, while PyTorch compiles: ({key: Program}, those of the other build, Compilers)."""
    compilers = Compilers(options, sorted(keys, key=lambda k: not k.endswith("f16")))
    made = [{}, {}]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        waiting = [(into, key, pool.submit(Program, options, burncc, key, folder / str(i) / key.replace(":", "_")))
                   for key in keys for i, (into, burncc) in enumerate(zip(made, (options.burncc, options.compare)))
                   if burncc]
        for into, key, program in waiting:
            into[key] = program.result()
            if into[key].failed:
                print(key, into[key].failed, file=sys.stderr, flush=True)
    programs_at = time.monotonic()
    compilers.wait()
    return made[0], made[1], compilers, programs_at


def run(options, folder):
    began, rows = time.monotonic(), []
    keys = [f"{m}:{b}:{p}" for b in options.batch for m in options.models for p in options.precision]
    programs, others, compilers, programs_at = prepare(options, folder, keys)
    print(f"prepared: programs after {programs_at - began:.0f} s, {len(compilers.of)} of {len(keys)} compiled by "
          f"PyTorch after {time.monotonic() - began:.0f} s", flush=True)
    try:
        eager = torch_worker(options, [], 0)
    except Failed as e:
        print("PyTorch:", e, file=sys.stderr)
        eager = None
    for key in keys:
        if time.monotonic() - began > options.budget:
            print(key, "not begun: out of time", flush=True)
            continue
        rows.append(contest(options, programs[key], others.get(key), eager, compilers.of.get(key)))
        times = " ".join(f"{n.replace(' ', '_')}={t:.4g}" for n, t in rows[-1]["ms"].items())
        print(f"{key} {times} ratio={rows[-1].get('ratio', 0):.2f} "
              + "; ".join(f"{n}: {why}" for n, why in rows[-1]["failed"].items()), flush=True)
    compilers.stop()
    if eager:
        eager.stop()
    table(options, rows)
    print(f"{time.monotonic() - began:.0f} s in all")
    if options.json:
        options.json.write_text(json.dumps({"rows": rows}, indent=1))
    return any(r["failed"] for r in rows)


def main():
    options = parse()
    unknown = [m for m in options.models if m not in MODELS]
    if unknown:
        sys.exit(f"gpu.py: no model '{unknown[0]}'; there are {', '.join(MODELS)}")
    if options.folder:
        return run(options, options.folder)
    with tempfile.TemporaryDirectory() as folder:
        return run(options, pathlib.Path(folder))


if __name__ == "__main__":
    sys.exit(main())
