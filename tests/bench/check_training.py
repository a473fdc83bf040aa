# SPDX-License-Identifier: MIT OR Apache-2.0
"""What check.py asks of scripts/bench --training: its worker against numpy, its table from made-up rows, and where this
Python has PyTorch a short run. Prints a line for each question: 1 or 0, and what it is.

usage: check_training.py BURNCC FOLDER
"""
import importlib.util
import json
import os
import pathlib
import struct
import subprocess
import sys
import types

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.dont_write_bytecode = True
import numpy as np      # noqa: E402
import ours             # noqa: E402
import training         # noqa: E402
from workers import Worker      # noqa: E402

LAYERS = [(512, 784), (512, 512), (512, 512), (10, 512)]


def write(folder, rng):
    """Parameters, a batch and its targets, as PyTorch's side writes them; the loss and the last bias's gradient."""
    header, data, x = {}, b"", rng.standard_normal((64, 784)).astype("<f4")
    target, y = rng.integers(0, 10, 64), x.astype(float)
    for number, shape in enumerate(LAYERS):
        for kind, size in (("weight", shape), ("bias", shape[:1])):
            a = (rng.standard_normal(size) / 25).astype("<f4")
            header[f"{3 * number}.{kind}"] = {"dtype": "F32", "shape": list(size),
                                             "data_offsets": [len(data), len(data) + a.nbytes]}
            data += a.tobytes()
            y = y @ a.T.astype(float) if kind == "weight" else y + a
        y = np.maximum(y, 0) if number + 1 < len(LAYERS) else y
    text = json.dumps(header).encode()
    (folder / "init.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
    (folder / "in_0.bin").write_bytes(x.tobytes())
    (folder / "in_1.bin").write_bytes(target.astype("<i8").tobytes())
    (folder / "inputs.txt").write_text(f"1 {x.nbytes} 2 64 784 x\n7 {64 * 8} 1 64 target\n")
    p = np.exp(y - y.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    return -np.log(p[range(64), target]).mean(), (p - np.eye(10)[target]).mean(0)


def check_worker(burncc, folder, threads):
    network = next(n for n in training.NETWORKS if n.name == "mlp")
    options = types.SimpleNamespace(burncc=burncc, target=["native"], burncc_options=[])
    folder.mkdir(parents=True)
    found = training.build(options, network, threads, folder, ours.helper("launch", folder.parent))
    yield f"{threads}: operations of a step", 3 * 2 * 64 * 512 * (784 + 512 + 512 + 10) > found["flops"] > 1e8
    loss, bias = write(folder, np.random.default_rng(0))
    bytes_of_three = 3 * 4 * sum(rows * columns + rows for rows, columns in LAYERS)     # parameters, Adam's two moments
    planned = training.first(folder / "program", folder)
    yield f"{threads}: bytes that are planned", bytes_of_three < planned < 2 * bytes_of_three
    places = dict(reversed(line.split(" ", 1)) for line in (folder / "grads.txt").read_text().splitlines())
    got = np.frombuffer((folder / "grads.bin").read_bytes(), "<f4", 10, int(places["9.bias"]))
    yield f"{threads}: the first loss", abs(training.read_loss(folder / "loss.bin") - loss) < 1e-5
    yield f"{threads}: the first gradients", np.abs(got - bias).max() < 1e-6
    worker = Worker("burncc", [folder / "program", folder], os.sched_getaffinity(0), 60)
    worker.slice(0.02)
    yield f"{threads}: it takes turns", len(worker.samples) >= 1 and min(worker.samples) > 0 and worker.memory() > 0
    worker.stop()


def row(name, mine, eager, compiled, memory=1e6, **more):
    return {
        "model": name, "what": "a net", "threads": 1, "loss_error": 0, "gradient_error": 1e-7, "torch_error": 1e-7,
        "share_of_peak": 0.5, "planned_bytes": 9e5, "burncc_s": 0.1, "cc_s": 1, "contestants": {
            "burncc": {"median_ms": mine, "rss_bytes": memory}, "eager": {"median_ms": eager, "rss_bytes": 1e8},
            "compile": {"median_ms": compiled} if compiled else {"failed": "no compiler"}
        }, **more
    }


def check_table():
    machine = {"cpu": "a processor", "cores": 1, "compiler": "cc", "burncc": "burncc"}
    kinds = ["eager", "compile"]
    report = {"machine": machine, "torch": "2", "date": "today", "clock": "wall", "modes": kinds, "rows": [
        row("one", 1, 2, 0.5), row("two", 1, 8, None, gradient_error=1e-3, memory=2e6),
        {"model": "three", "threads": 1, "failed": "it broke"}]}
    text = training.page(report)
    yield "a row of the table", \
        "| one | a net | 1.00 | 2.00 | 2.00 | 0.500 | 0.500 | 50 | 0.900 | 1.00 | 100 | 0.0100 |" in text
    yield "gradients that are wrong are marked", "| two | a net | 1.00* | 8.00 | 8.00 | – | – |" in text
    yield "means and what is below 1", "4.00 in geometric mean, the least one (2.00)" in text and \
        "below 1: one (0.500)" in text
    yield "memory beside PyTorch's", "0.0141 in geometric mean, the most two (0.0200)" in text
    report["rows"].insert(1, row("one, 1MiB", 4, 2, 0.5, memory=5e5, limited="one"))
    text = training.page(report)
    yield "within a limit: no part of the means of time, the memory of its network", "| one, 1MiB | a net | 4.00 |" in \
        text and "the least one (2.00)" in text and "0.0100 in geometric mean, the most two (0.0200)" in text
    yield "what failed is said", "three: failed: it broke" in text and "two: failed: compile (no compiler)" in text


def check_run(burncc, folder):
    """The whole, against PyTorch."""
    command = [sys.executable, HERE.parent.parent / "scripts" / "bench", "--training", "--offline", "--quick"]
    command += ["--burncc", burncc, "--cache", folder, "--only", "mlp", "--modes", "eager"]
    found = subprocess.run(command, capture_output=True, text=True)
    rows = json.loads((folder / "training.json").read_text())["rows"]
    yield "beside PyTorch", found.returncode == 0 and len(rows) == 1 and rows[0]["gradient_error"] < 1e-5


def main():
    burncc, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    checks = [check_worker(burncc, folder / "one", 1), check_worker(burncc, folder / "two", 2), check_table()]
    if importlib.util.find_spec("torch"):
        checks.append(check_run(burncc, folder / "torch"))
    for check in checks:
        for what, good in check:
            print(int(bool(good)), what)


if __name__ == "__main__":
    main()
