#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""burncc bench --profile: every kernel of the plan has its time, and the trace is Chrome's trace-event format.

usage: profile.py BURNCC
In: the repository's models, and one with control flow. Out: TAP. How long anything takes is the machine's affair; what
is checked is that kernels are there, that their times add up, and that events nest."""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from tap import Tap  # noqa: E402
import look.models as models  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DIGITS = str(ROOT / "models" / "digits" / "digits.onnx")
ROW = re.compile(r"^(k\d\S*) +(\S.*?) +([\d.]+) +([\d.]+) % +[\d.]+ +(?:[\d.]+ %|-) +[\d.]+ +(?:[\d.]+ %|-)", re.M)
tap = Tap()


def bench(burncc, model, *options):
    command = [burncc, "bench", model, "--profile", "--seconds", "0.05", "-q", *options]
    run = subprocess.run(command, capture_output=True, text=True)
    tap.check(f"bench --profile {' '.join(options)} {model.rsplit('/', 1)[-1]}", run.returncode == 0, run.stderr)
    return run.stdout


def kernels(burncc, model, *options):
    """The plan's, in order, those of bodies aside."""
    text = subprocess.run([burncc, model, "--dump", "schedule", "-q", *options], capture_output=True, text=True).stdout
    return re.findall(r"^  (?!sizes)\w+ (k\d+_\w+) \[", text, re.M)


def table(burncc):
    text = bench(burncc, DIGITS)
    rows = ROW.findall(text)
    tap.check("a row for each kernel", [row[0] for row in rows] == kernels(burncc, DIGITS), text)
    tap.check("with the nodes it came from", rows and rows[0][1] == "conv1+bn1+relu1", rows[:1])
    tap.check("shares come to 100 %", abs(sum(float(row[3]) for row in rows) - 100) < 1, rows)
    figures = dict(re.findall(r"(\w+)=(\S+)", text.splitlines()[-1]))
    total = sum(float(row[2]) for row in rows)
    tap.check("times come to kernels_ms", abs(total - float(figures["kernels_ms"])) < 1e-4 * len(rows), figures)
    tap.check("limits of the machine", float(figures["peak_gflops"]) > 0.1 and float(figures["memory_gbs"]) > 0.1,
              figures)
    data = json.loads(bench(burncc, DIGITS, "--json"))
    tap.check("the same as JSON", [k["kernel"] for k in data["kernels"]] == [row[0] for row in rows])


def nested(events):
    """Whether events of one track are one after the other, or one inside the other."""
    ends = []
    for e in sorted(events, key=lambda e: (e["ts"], -e["dur"])):
        while ends and ends[-1] <= e["ts"] + 0.002:     # three digits of a microsecond
            ends.pop()
        if ends and e["ts"] + e["dur"] > ends[-1] + 0.002:
            return False
        ends.append(e["ts"] + e["dur"])
    return True


def trace(burncc, folder, model, *options):
    path = folder / "trace.json"
    text = bench(burncc, model, "-o", str(path), *options)
    data = json.loads(path.read_text())
    events = [e for e in data["traceEvents"] if e["ph"] == "X"]
    tracks = {(e["pid"], e["tid"]) for e in events}
    tap.check("events have what the format wants", events and all(
        isinstance(e["name"], str) and e["dur"] >= 0 and e["ts"] >= 0 for e in events))
    tap.check("every track has a name", tracks == {(e["pid"], e["tid"]) for e in data["traceEvents"]
                                                   if e["name"] == "thread_name"})
    tap.check("events of a track nest", all(nested([e for e in events if (e["pid"], e["tid"]) == t]) for t in tracks))
    return text, events, tracks


def parallel(burncc, folder):
    model, options = str(ROOT / "models" / "lenet.c"), ("--threads", "2:1", "--dim", "batch=4")
    text, events, tracks = trace(burncc, folder, model, *options)
    tap.check("a track for the run and for workers", (1, 0) in tracks and len(tracks) > 1, tracks)
    tap.check("every kernel has an event", {e["name"] for e in events} == set(kernels(burncc, model, *options)))
    tap.check("how busy workers are", "busy" in text.splitlines()[0])


def control(burncc, folder):
    path = folder / "hostile.onnx"
    path.write_bytes(models.hostile())
    text, events, _ = trace(burncc, folder, str(path))
    region = [e for e in events if e["cat"] == "region"]
    inside = [e for e in events if region and e["name"].startswith(region[0]["name"].split("_")[0] + "_")
              and e is not region[0]]
    tap.check("an If's kernels are inside it", inside and all(
        region[0]["ts"] <= e["ts"] and e["ts"] + e["dur"] <= region[0]["ts"] + region[0]["dur"] + 0.002
        for e in inside), events)
    tap.check("rows of both branches", len(re.findall(r"^k\d+_[01]_", text, re.M)) >= 2, text)


def training(burncc, folder):
    model, options = str(ROOT / "models" / "lenet.c"), ("--train", "--optimizer", "sgd", "--dim", "batch=2")
    text, events, tracks = trace(burncc, folder, model, *options)
    parts = text.split("\nprogram update\n")
    tap.check("gradients and update, a table each", len(parts) == 2 and parts[0].startswith("program gradients\n") and
              all(len(ROW.findall(part)) > 4 and "kernels_ms=" in part for part in parts), text)
    tap.check("and a process each in the trace", {pid for pid, _ in tracks} == {1, 2}, tracks)
    tap.check("every kernel has an event", len({(e["pid"], e["name"]) for e in events}) == len(ROW.findall(text)))


def again(burncc):
    """What runs twice in a step has done its operations twice."""
    sizes = "layers=2 width=32 heads=2 vocabulary=64 positions=32".split()
    model = str(ROOT / "models" / "gpt2.c")
    options = ("--train", "--dim", "batch=2", "--dim", "length=32", "--json", "--target", "portable",
               *(word for size in sizes for word in ("--set", size)))

    def operations(*more):
        both = json.loads(bench(burncc, model, *options, *more))
        return {k["kernel"]: k["flops"] for k in both[0]["kernels"] if k["flops"]}
    once, twice = operations("--train-memory", "1M"), operations("--train-memory", "140K")
    forward = list(once)[:16]                           # further on kernels of one number differ
    times = {name: twice[name] / once[name] for name in forward}
    tap.check("operations of what is computed again", set(times.values()) == {1, 2}, times)


def gpu(burncc, folder):
    """On the device's clock, where there is a device."""
    path, options = folder / "gpu.json", ("--target", "vulkan")
    run = subprocess.run([burncc, "bench", DIGITS, "--profile", "--seconds", "0.05", "-q", "-o", str(path), *options],
                         capture_output=True, text=True)
    if run.returncode and re.search("no Vulkan device|built without", run.stderr):
        print("# no Vulkan device: kernels on a GPU are not timed")
        return
    rows, last = ROW.findall(run.stdout), run.stdout.splitlines()[-1:]
    tap.check("a GPU's kernels, a row each", [row[0] for row in rows] == kernels(burncc, DIGITS, *options), run.stderr)
    figures = dict(re.findall(r"(\w+)=(\S+)", " ".join(last)))
    tap.check("their times, the device's and its limits", abs(sum(float(r[2]) for r in rows) - float(
        figures["kernels_ms"])) < 1e-3 and float(figures["device_ms"]) > 0 and float(figures["peak_gflops"]) > 0.1
        and float(figures["memory_gbs"]) > 0.1, figures)
    events = [e for e in json.loads(path.read_text())["traceEvents"] if e["ph"] == "X"]
    tap.check("and a trace, one after the other", [e["name"] for e in events] == [r[0] for r in rows]
              and nested(events), events)
    data = json.loads(bench(burncc, DIGITS, "--json", *options))
    tap.check("the same as JSON", [k["kernel"] for k in data["kernels"]] == [r[0] for r in rows]
              and data["device_ms"] > 0)


def mistakes(burncc, folder):
    for words, says in ([DIGITS, "-o", "x.json"], "--output goes with --profile"), (
            [DIGITS, "--profile", "--target", "plan"], "plan"), (
            [DIGITS, "--profile", "--runner", "env"], "--runner"):
        run = subprocess.run([burncc, "bench", *words], capture_output=True, text=True)
        tap.check(f"{' '.join(words[1:])}: status 2", run.returncode == 2 and says in run.stderr, run.stderr)
    run = subprocess.run([burncc, "bench", DIGITS, "--profile", "--seconds", "0.01", "-q", "-o",
                          str(folder / "none" / "x.json")], capture_output=True, text=True)
    tap.check("a trace that cannot be written: status 4", run.returncode == 4, run.stderr)


def main():
    burncc = sys.argv[1]
    table(burncc)
    with tempfile.TemporaryDirectory() as folder:
        parallel(burncc, pathlib.Path(folder))
        control(burncc, pathlib.Path(folder))
        training(burncc, pathlib.Path(folder))
        again(burncc)
        gpu(burncc, pathlib.Path(folder))
        mistakes(burncc, pathlib.Path(folder))
    return tap.end()


sys.exit(main())
