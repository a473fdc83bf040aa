#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Does scripts/bench measure what it says? It runs on two tiny models, offline and short, and its results are looked
at.

The interpreter that --python names must have numpy, onnx and onnxruntime; without them the test skips itself.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import xml.dom.minidom

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]
import harness      # noqa: E402
import workers      # noqa: E402

NETS = ["tiny_digits", "op_matvec_768x3072"]
MARKED = "before\n<!-- {0}: begin -->\nold\n<!-- {0}: end -->\nafter\n"


def bench(args, folder, *options):
    command = [
        args.python, HERE.parent.parent / "scripts" / "bench", "--offline", "--quick", "--burncc", args.burncc,
        "--cache", folder, *options
    ]
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=args.timeout)


def check_report(found, report, table):
    """Every number that a row promises, for both sides."""
    rows = {r["model"]: r for r in report["rows"]}
    yield "a row for each model", sorted(rows) == sorted(NETS)
    for name, row in rows.items():
        ours, theirs = row["contestants"]["native"], row["contestants"]["ort"]
        yield f"{name}: both sides took turns", ours["samples"] >= 3 and theirs["samples"] >= 3 and len(
            ours["rounds_ms"]) == len(theirs["rounds_ms"])
        yield f"{name}: the outputs were compared and agree", ours["error"] < 1e-4 and not ours["differs"]
        yield f"{name}: the ratio is the peer's time over ours", abs(theirs["ratio"] * ours["median_ms"] /
                                                                     theirs["median_ms"] - 1) < 1e-9
        yield f"{name}: memory, starts and sizes are there", all(ours[k] > 0 for k in ("rss_bytes", "load_ms",
                                                                                       "cold_ms", "burncc_s", "cc_s",
                                                                                       "text_bytes", "weights_bytes"))
        yield f"{name}: a row of the table", any(
            line.startswith(f"| {name} |") and "failed" not in line for line in table.splitlines())
    yield "multiply-adds are counted from the file", rows["op_matvec_768x3072"]["macs"] == 768 * 3072
    yield "one sentence for all, for networks, for operators", re.search(
        r"geometric means: \S+ over all 2 models, \S+ over 1 network, \S+ over 1 single operator, "
        r"\S+ over 1 tiny network \(the least is tiny_digits ", table)
    yield "starts of tiny networks", re.search(
        r"first result at least \S+ times as soon \(\w+\); of tiny networks \S+ times \(tiny_digits\)", table)
    yield "the share of the peak is one", 0 < rows["op_matvec_768x3072"]["contestants"]["native"]["share_of_peak"] < 1
    yield "it ends well", found.returncode == 0


def check_growth(args, folder):
    """Two points of a series, and what they leave."""
    page = folder / "GROWTH.md"
    page.write_text(MARKED.format("scripts/bench --growth"))
    found = bench(args, folder, "--growth", "--only", "image_64,image_128", "--into", page)
    report = json.loads((folder / "growth.json").read_text())
    mine = [row["contestants"]["native"] for row in report["rows"]]
    yield "growth: two points, outputs compared", found.returncode == 0 and len(mine) == 2 and not any(m["differs"]
                                                                                                       for m in mine)
    yield "growth: more pixels, more work, more memory", report["rows"][1][
        "macs"] > 3 * report["rows"][0]["macs"] and mine[1]["workspace_bytes"] > mine[0]["workspace_bytes"]
    text = page.read_text()
    shown = "old" not in text and "| mobilenet: pixels a side | 64 | 128 |" in text and "(growth.svg)" in text
    yield "growth: the table stands between its markers", shown
    yield "growth: the plot is XML", xml.dom.minidom.parse(str(folder / "growth.svg")).documentElement.tagName == "svg"


LOOP = """import onnx, sys
from onnx import TensorProto as T, helper as h
def end(name, kind, *shape):
    return h.make_tensor_value_info(name, kind, shape)
body = h.make_graph([h.make_node("MatMul", ["x", "w"], ["p"]), h.make_node("Identity", ["go"], ["on"])], "body",
                    [end("i", T.INT64), end("go", T.BOOL)], [end("on", T.BOOL), end("p", T.FLOAT, 6, 4)])
g = h.make_graph([h.make_node("Loop", ["twice", ""], ["y"], body=body)], "loop",
                 [end("x", T.FLOAT, 6, 5)], [end("y", T.FLOAT, 2, 6, 4)],
                 [h.make_tensor("twice", T.INT64, [], [2]), h.make_tensor("w", T.FLOAT, [5, 4], range(20))])
onnx.save(h.make_model(g, opset_imports=[h.make_opsetid("", 17)], ir_version=8), sys.argv[1])
"""


def check_counts(args, folder):
    """A product in a loop of two steps: no shape says how often."""
    subprocess.run([args.python, "-c", LOOP, folder / "loop.onnx"], check=True)
    bench(args, folder, folder / "loop.onnx")
    row, = json.loads((folder / "bench.json").read_text())["rows"]
    yield "multiply-adds that only a run knows", row["macs"] == 2 * 6 * 5 * 4


FINDINGS = """import sys
sys.path.insert(0, sys.argv[1])
import numpy as np, data
want = {"boxes": np.array([[10, 20, 300, 400], [50, 60, 70, 80]], np.float32), "scores": np.array([.5, .5], np.float32),
        "labels": np.array([3, 1])}
swapped = {name: a[::-1] * (1 if a.dtype.kind == "i" else np.float32(1 + 1e-6)) for name, a in want.items()}
others = {**swapped, "labels": want["labels"]}
print(0 < data.distance(want, swapped) < 1e-5, data.distance(want, others) > 1e-3)
"""


def check_findings(args):
    """What two detectors find, in another order, is the same; with another's label it is not."""
    said = subprocess.run([args.python, "-c", FINDINGS, HERE], capture_output=True, text=True)
    yield f"findings may change places{said.stderr[-300:]}", said.stdout.split() == ["True", "True"]


SPINNING = """import sys, threading, time
def look(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end: pass
print("ready 1 1", flush=True)
for line in sys.stdin:
    print("times 1000", flush=True)
    threading.Thread(target=look, args=(float(sys.argv[1]),)).start()
"""


def check_settling():
    """Who comes next waits until the threads of the one before sleep."""
    def seconds_of_slice(spins):
        worker = workers.Worker("spinning", [sys.executable, "-c", SPINNING, spins], os.sched_getaffinity(0))
        begin = time.monotonic()
        worker.slice(0)
        seconds = time.monotonic() - begin
        worker.stop()
        return seconds
    yield "threads that look for work are waited for", 0.2 < seconds_of_slice(0.3) < workers.MOST_SPINNING_S
    yield "but not for ever", workers.MOST_SPINNING_S <= seconds_of_slice(2) < 2


def check_training(args, folder):
    command = [args.python, HERE / "check_training.py", args.burncc, folder]
    found = subprocess.run(command, capture_output=True, text=True)
    for line in found.stdout.splitlines():
        good, what = line.split(" ", 1)
        yield f"training: {what}", good == "1"
    yield f"training: all was asked{found.stderr[-300:] if found.returncode else ''}", found.returncode == 0


def check_all(args, folder):
    page = folder / "PAGE.md"
    page.write_text(MARKED.format("scripts/bench"))
    subprocess.run([args.python, HERE / "models.py", folder / "nets", *NETS], check=True, stdout=subprocess.DEVNULL)
    found = bench(args, folder, folder / "nets", "--into", page)
    yield from check_report(found, json.loads((folder / "bench.json").read_text()), found.stdout)
    yield "the plot is XML", xml.dom.minidom.parse(str(folder / "bench.svg")).documentElement.tagName == "svg"
    text = page.read_text()
    yield "the page's table stands between its markers", text.startswith("before\n") and text.endswith(
        "after\n") and "old" not in text and "| tiny_digits |" in text
    yield from check_growth(args, folder)
    yield from check_counts(args, folder)
    yield from check_findings(args)
    yield from check_settling()
    yield from check_training(args, folder / "training")
    (folder / "broken.onnx").write_bytes(b"no model")
    found = bench(args, folder, folder / "broken.onnx", folder / "nets" / "tiny_digits.onnx", "--seconds", "0.5")
    went_on = "| broken | failed" in found.stdout and "| tiny_digits | 0" in found.stdout
    yield "a broken model does not stop the next", found.returncode == 1 and went_on


def main():
    p = harness.arguments(__doc__.splitlines()[0])
    harness.add_python(p)
    args = harness.parse(p)
    harness.require_reference(args)
    args.timeout = 300
    with tempfile.TemporaryDirectory(prefix="burncc-bench-") as folder:
        results = list(check_all(args, pathlib.Path(folder)))
    print(f"1..{len(results)}")
    for n, (what, good) in enumerate(results, 1):
        print(f"{'ok' if good else 'not ok'} {n} {what}")
    return 0 if all(good for _, good in results) else 1


if __name__ == "__main__":
    sys.exit(main())
