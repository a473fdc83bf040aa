# SPDX-License-Identifier: MIT OR Apache-2.0
"""scripts/bench --training: steps of training beside PyTorch's, eager and by torch.compile, interleaved in one run.

For each network: PyTorch draws parameters and a batch; the first loss and gradients of both are compared with
PyTorch's in double precision; then the processes, on the same cores, take turns. A step is loss, gradients and an
update by Adam (PyTorch's fused one). All memory is in huge pages where the system gives them on request. The number of
operations is burncc's: those of the kernels that it plans, so that Winograd's convolutions count as what they do.
"""
import dataclasses
import datetime
import json
import os
import pathlib
import re
import shlex
import shutil
import statistics
import struct
import sys
import time

import fetch
import machine
import ours
import table
from machine import say
from workers import Failed, Worker

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
RATE = 1e-6                                             # numbers stay ordinary ones however many steps are timed
LOSS_TOLERANCE, GRADIENT_TOLERANCE = 1e-5, 1e-5         # relative; of all gradients' norm
TIMES = 4                                               # ... or as many times as far off as PyTorch is
MODES = {"eager": "PyTorch", "compile": "torch.compile"}
FEWEST_ROUNDS = 3


@dataclasses.dataclass
class Network:
    name: str
    model: str                                          # under the repository
    options: str
    what: str
    limit: str = ""                                     # --train-memory of a second program of ours, a row of its own


NETWORKS = [
    Network("mlp", "models/mlp.c", "--set layers=3 --set width=512 --dim batch=64", "784-512-512-512-10, batch 64"),
    Network("mnist_cnn", "tests/train/described/mnist_cnn.c", "", "two convolutions, two layers, batch 8"),
    Network("lstm", "models/lstm_classifier.c",
            "--set vocabulary=1000 --set features=128 --set hidden=128 --dim batch=8 --dim length=64",
            "128 units, 64 steps, batch 8"),
    Network("resnet18", "models/resnet.c", "--set size=64 --dim batch=8", "batch 8, 64 x 64"),
    Network("mobilenet_v2", "models/mobilenet_v2.c", "--set size=96 --dim batch=8 --no-dropout", "batch 8, 96 x 96"),
    Network("gpt_block", "models/gpt2.c", "--set layers=4 --set width=256 --set heads=4 --set vocabulary=4096 "
            "--set positions=128 --dim batch=8 --dim length=128", "4 layers of 256, batch 8 of 128 tokens"),
    Network("resnet50", "models/resnet.c", "--set depth=50 --dim batch=4", "batch 4, 224 x 224"),
    # parameters and Adam's moments are the most of these; with a limit the rest is little beside them
    Network("gpt2", "models/gpt2.c", "--dim batch=4 --dim length=64", "124 M, batch 4 of 64 tokens", "120M"),
    Network("bert_base", "models/bert.c", "--dim batch=8 --dim length=128", "batch 8 of 128 tokens", "120M"),
]


def python_of(options):
    """The Python that has PyTorch: this one, or one that is fetched."""
    here = ours.call([sys.executable, "-c", "import importlib.util as i; print(bool(i.find_spec('torch')))"], "python")
    if here.strip() == "True":
        return sys.executable
    if options.offline:
        sys.exit("scripts/bench: this Python has no PyTorch, and --offline fetches none")
    return fetch.environment(options.cache, "torch", ["torch", "numpy"])


# ---------------------------------------------------------------- burncc's side


def operations(text):
    """Of a step, from `inspect --train`."""
    at = text[text.index("program      train_step"):]
    number, unit = re.search(r"([\d.]+)( [kMGT])? operations in all", at).groups()
    return float(number) * {None: 1, " k": 1e3, " M": 1e6, " G": 1e9, " T": 1e12}[unit]


def build(options, network, threads, folder, launch, limit=""):
    """The program, what a row says of it."""
    common = [ROOT / network.model, *shlex.split(network.options), "--train", "--optimizer", "adam", "--target",
              options.target[0], *(["--train-memory", limit] if limit else [])]
    found = {"flops": operations(ours.call([options.burncc, "inspect", *common], "burncc inspect"))}
    common += [*(["--threads", threads] if threads > 1 else []), *options.burncc_options]
    _, found["burncc_s"], _ = ours.call_measured(
        launch, folder, [options.burncc, *common, "--name", "net", "--quiet", "-o", folder / "net.c"], "burncc")
    flags = ["-std=c99", *ours.c_flags(options.target[0]), "-ffp-contract=off", "-w",
             *shlex.split(os.environ.get("BURNCC_CFLAGS", ""))]
    _, found["cc_s"], _ = ours.call_measured(
        launch, folder, [*ours.compiler(), *flags, "-c", folder / "net.c", "-o", folder / "net.o"], "the C compiler")
    (folder / "entry.h").write_text(f'#include "net.h"\n#define TRAINING net_training\n#define LEARNING_RATE {RATE}f\n')
    command = [*ours.compiler(), "-O2", "-I", folder, HERE / "training.c", folder / "net.o", "-o", folder / "program"]
    if threads > 1 and "BURN_THREADS_TYPES" in (folder / "net.h").read_text():
        command += [f"-DTHREADS={threads}", "-I", ours.RUNTIME, ours.RUNTIME / "threads.c"]
    ours.call([*command, "-lm", "-pthread"], "linking")
    return found


def first(program, folder):
    """The first loss and gradients, into the folder; the bytes that are planned for steps."""
    return int(ours.call([program, folder, "check"], "the first gradients"))


def floats_of(path):
    """The tensors of a .safetensors file of 32-bit floats."""
    import numpy as np
    data = path.read_bytes()
    n, = struct.unpack_from("<Q", data)
    places = {name: t["data_offsets"] for name, t in json.loads(data[8:8 + n]).items() if name != "__metadata__"}
    return {name: np.frombuffer(data, "<f4", (to - at) // 4, 8 + n + at) for name, (at, to) in places.items()}


def read_loss(path):
    return struct.unpack("<d", path.read_bytes())[0]


def distance(got, want):
    """Of the norm of all together."""
    import numpy as np
    apart = sum(float(np.sum((got[name].astype(float) - w)**2)) for name, w in want.items())
    return (apart / sum(float(np.sum(w.astype(float)**2)) for w in want.values()))**0.5


def compare(folder):
    """Relative errors, against PyTorch in double precision: of our first loss, of our gradients, of PyTorch's."""
    import numpy as np
    mine, exact = read_loss(folder / "loss.bin"), read_loss(folder / "f64_loss.bin")
    want = floats_of(folder / "f64_grads.safetensors")
    grads, got = (folder / "grads.bin").read_bytes(), {}
    for line in (folder / "grads.txt").read_text().splitlines():
        at, name = line.split(" ", 1)
        if name in want:
            got[name] = np.frombuffer(grads, "<f4", want[name].size, int(at))
    for name in want:
        if name not in got:
            raise Failed(f"{name} is no parameter")
    theirs = floats_of(folder / "f32_grads.safetensors")
    return abs(mine - exact) / abs(exact), distance(got, want), distance(theirs, want)


# ---------------------------------------------------------------- a network, in turns


class Contest:
    def __init__(self, network, threads, cores, options, python, peak, launch):
        self.network, self.threads, self.cores, self.options = network, threads, cores, options
        self.python, self.peak, self.launch = python, peak, launch
        self.folder = options.cache / "work" / f"training-{network.name}-{threads}"
        self.row = {"model": network.name, "what": network.what, "threads": threads, "contestants": {}}
        self.limited = {"model": f"{network.name}, {network.limit}iB", "what": network.what, "threads": threads,
                        "limited": network.name} if network.limit else None
        self.workers = {}

    def programs(self):
        """(name, folder of the program, limit, row) of each of our programs."""
        yield "burncc", self.folder, "", self.row
        if self.limited:
            yield "limited", self.folder / "limited", self.network.limit, self.limited

    def torch(self, *arguments):
        return [self.python, HERE / "training_torch.py", self.network.name, *arguments]

    def enter(self, name, command):
        environment = {"OMP_NUM_THREADS": str(self.threads), "MKL_NUM_THREADS": str(self.threads),
                       "THP_MEM_ALLOC_ENABLE": "1"}
        try:
            self.workers[name] = Worker(name, command, self.cores, self.options.timeout, environment)
            self.row["contestants"][name] = {}
        except Failed as e:
            self.row["contestants"][name] = {"failed": str(e)}

    def take_turns(self):
        seconds = self.options.seconds / self.options.rounds
        longest, begin = self.options.seconds * len(self.workers) * 1.5, time.monotonic()
        self.peak.begin()
        for n in range(self.options.rounds):
            self.peak.worker.slice(min(0.05, seconds))
            names = list(self.workers)
            for name in names[n % len(names):] + names[:n % len(names)]:
                self.workers[name].slice(seconds)
            if n + 1 >= FEWEST_ROUNDS and time.monotonic() - begin > longest:
                break

    def prepare(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        ours.call(self.torch("write", self.folder), "PyTorch")
        for _, folder, limit, row in self.programs():
            folder.mkdir(exist_ok=True)
            row.update(build(self.options, self.network, self.threads, folder, self.launch, limit))
            row["planned_bytes"] = first(folder / "program", self.folder)
            row["loss_error"], row["gradient_error"], row["torch_error"] = compare(self.folder)

    def enter_ours(self):
        for name, folder, _, _ in self.programs():
            self.enter(name, [folder / "program", self.folder])

    def enter_torch(self, mode):
        self.enter(mode, self.torch(mode, self.threads, RATE))

    def finish(self):
        """What was measured, as rows: ours, and where there is a limit ours within it."""
        for name, worker in self.workers.items():
            if worker.rounds:
                self.row["contestants"][name].update(
                    median_ms=statistics.median(worker.rounds) * 1e-6, min_ms=min(worker.samples) * 1e-6,
                    samples=len(worker.samples), rss_bytes=worker.memory())
        found = self.row["contestants"]
        if self.limited:
            mine = found.pop("limited")
            self.limited["contestants"] = {**found, "burncc": mine}
        peak = self.peak.gflops() * self.threads
        rows = [row for *_, row in self.programs()]
        for row in rows:
            mine = row["contestants"]["burncc"].get("median_ms")
            row["share_of_peak"] = row["flops"] / mine * 1e-6 / peak if mine and peak else None
        return rows

    def stop(self):
        for worker in self.workers.values():
            worker.stop()
        if not self.options.keep:
            shutil.rmtree(self.folder, ignore_errors=True)

    def measure(self):
        try:
            self.enter_ours()
            for mode in self.options.modes:
                self.enter_torch(mode)
            self.take_turns()
            return self.finish()
        finally:
            self.stop()


# ---------------------------------------------------------------- the table


def wrong(row):
    return "failed" not in row and (row["loss_error"] > LOSS_TOLERANCE or
                                    row["gradient_error"] > max(GRADIENT_TOLERANCE, TIMES * row["torch_error"]))


def memory_ratio(row, mode):
    """Our peak over the peer's."""
    mine, theirs = (row["contestants"].get(name, {}).get("rss_bytes") for name in ("burncc", mode))
    return mine / theirs if mine and theirs else None


def memory_lines(rows, mode):
    within = {r.get("limited") for r in rows}
    known = [(x, r["model"]) for r in rows if r["model"] not in within and (x := memory_ratio(r, mode))]
    if known:
        mean = table.figure(table.geometric([x for x, _ in known]))
        text = f"Peak memory, {MODES[mode]}'s as 1: {mean} in geometric mean, the most {table.listed([max(known)])}."
        yield from ("", table.filled(text))


def cells(row, modes):
    figure, found = table.figure, row["contestants"]
    mine = found["burncc"].get("median_ms")
    yield from (row["model"], row["what"], figure(mine) + ("*" if wrong(row) else ""))
    for mode in modes:
        yield from (figure(found[mode].get("median_ms")), figure(table.ratio(row, "burncc", mode)))
    yield figure(row["share_of_peak"] and 100 * row["share_of_peak"], 2)
    yield from (table.mega(row["planned_bytes"]), table.mega(found["burncc"].get("rss_bytes")))
    for mode in modes[:1]:
        yield from (table.mega(found[mode].get("rss_bytes")), figure(memory_ratio(row, mode)))
    yield from (figure(row["burncc_s"], 2), figure(row["cc_s"], 2))


def page(report):
    m, modes, lines = report["machine"], report["modes"], []
    lines.append(table.filled(
        f"{m['cpu']}, {m['cores']} cores; {m['compiler']}; {m['burncc']}; PyTorch {report['torch']}; {report['date']}. "
        f"Medians of interleaved rounds in one run, pinned; ratio: the peer's time over ours." +
        (" At one thread processor time." if report["clock"] == "cpu" else "")))
    for threads in table.threads_of(report):
        rows = [r for r in report["rows"] if r["threads"] == threads and "failed" not in r]
        heads = ["network", "size", f"ms, {table.thread_text(threads)}"]
        heads += [h for mode in modes for h in (f"{MODES[mode]} ms", "ratio")]
        heads += ["% of peak", "planned MB", "RSS MB"]
        heads += [h for mode in modes[:1] for h in (f"{MODES[mode]} RSS", "of it")]
        heads += ["burncc s", "cc s"]
        lines += ["", "| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
        lines += ["| " + " | ".join(cells(row, modes)) + " |" for row in rows]
        for mode in modes:
            known = [(x, r["model"]) for r in rows if "limited" not in r and (x := table.ratio(r, "burncc", mode))]
            if known:
                behind = sorted(k for k in known if k[0] < 1)
                lines += ["", table.filled(
                    f"Against {MODES[mode]}, {table.thread_text(threads)}: "
                    f"{table.figure(table.geometric([x for x, _ in known]))} in geometric mean, " +
                    (f"below 1: {table.listed(behind)}." if behind else f"the least {table.listed([min(known)])}."))]
        for mode in modes[:1]:
            lines += memory_lines(rows, mode)
    for row in report["rows"]:
        failed = [f"{n} ({f['failed']})" for n, f in row.get("contestants", {}).items() if "failed" in f]
        if "failed" in row or failed:
            lines += ["", table.filled(f"{row['model']}: failed: {row.get('failed') or ', '.join(failed)}")]
    return "\n".join(lines)


def one_line(row):
    if "failed" in row:
        return f"failed: {row['failed']}"
    words = [f"{n} {table.figure(f.get('median_ms'))} ms" if "failed" not in f else f"{n} failed: {f['failed']}"
             for n, f in row["contestants"].items()]
    return f"{', '.join(words)}; loss differs by {row['loss_error']:.1e}, gradients by {row['gradient_error']:.1e} " \
        f"(PyTorch's by {row['torch_error']:.1e})"


def run_all(report, options, python):
    launch = ours.helper("launch", options.cache)
    wanted = [n for n in NETWORKS if not options.only or any(w in n.name for w in options.only.split(","))]
    for threads in options.threads:
        cores = machine.cores_for(options, threads)
        if not cores:
            say(f"no {threads} cores to pin {threads} threads to: left out")
            continue
        # the calling thread's time says nothing of the others
        os.environ["BENCH_CLOCK"] = options.clock if threads == 1 else "wall"
        peak = machine.Peak(options.cache, {min(cores)})
        try:
            for network in wanted:
                contest = Contest(network, threads, cores, options, python, peak, launch)
                try:
                    contest.prepare()
                    rows = contest.measure()
                except Failed as e:
                    rows = [{"model": network.name, "threads": threads, "failed": str(e)}]
                report["rows"] += rows
                for row in rows:
                    say(f"{row['model']}, {table.thread_text(threads)}: {one_line(row)}")
        finally:
            peak.worker.stop()


def run(options):
    python = python_of(options)
    version = ours.call([python, "-c", "import torch; print(torch.__version__)"], "PyTorch").split("+")[0].strip()
    report = {"date": datetime.date.today().isoformat(), "machine": machine.described(options), "torch": version,
              "modes": options.modes, "seconds": options.seconds, "clock": options.clock, "rows": []}
    try:
        run_all(report, options, python)
    except KeyboardInterrupt:
        say("stopped; what is there:")
    text = page(report)
    files = {"training.md": text + "\n", "training.json": json.dumps(report, indent=1)}
    machine.write_files(options, files, text + "\n")
    if options.into:
        table.put_between(options.into, "scripts/bench --training", text)
        say(f"wrote the table into {options.into}")
    return 1 if any("failed" in r or wrong(r) for r in report["rows"]) else 0
