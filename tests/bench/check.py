#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Does scripts/bench measure what it says? It runs on two tiny models, offline and short, and its results are looked at.

The interpreter that --python names must have numpy, onnx and onnxruntime; without them the test skips itself.
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import xml.dom.minidom

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import harness      # noqa: E402

NETS = ["tiny_digits", "op_matvec_768x3072"]
MARKED = "before\n<!-- scripts/bench: begin -->\nold\n<!-- scripts/bench: end -->\nafter\n"


def bench(args, folder, *options):
    command = [args.python, HERE.parent.parent / "scripts" / "bench", "--offline", "--quick", "--burncc", args.burncc, "--cache", folder, *options]
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=args.timeout)


def check_report(found, report, table):
    """Every number that a row promises, for both sides."""
    rows = {r["model"]: r for r in report["rows"]}
    yield "a row for each model", sorted(rows) == sorted(NETS)
    for name, row in rows.items():
        ours, theirs = row["contestants"]["native"], row["contestants"]["ort"]
        yield f"{name}: both sides took turns", ours["samples"] >= 3 and theirs["samples"] >= 3 and len(ours["rounds_ms"]) == len(theirs["rounds_ms"])
        yield f"{name}: the outputs were compared and agree", ours["error"] < 1e-4 and not ours["differs"]
        yield f"{name}: the ratio is the peer's time over ours", abs(theirs["ratio"] * ours["median_ms"] / theirs["median_ms"] - 1) < 1e-9
        yield f"{name}: memory, starts and sizes are there", all(ours[k] > 0 for k in ("rss_bytes", "load_ms", "cold_ms", "burncc_s", "cc_s", "text_bytes", "weights_bytes"))
        yield f"{name}: a row of the table", any(line.startswith(f"| {name} |") and "failed" not in line for line in table.splitlines())
    yield "multiply-adds are counted from the file", rows["op_matvec_768x3072"]["macs"] == 768 * 3072
    yield "the share of the peak is one", 0 < rows["op_matvec_768x3072"]["contestants"]["native"]["share_of_peak"] < 1
    yield "it ends well", found.returncode == 0


def check_all(args, folder):
    readme = folder / "README.md"
    readme.write_text(MARKED)
    subprocess.run([args.python, HERE / "models.py", folder / "nets", *NETS], check=True, stdout=subprocess.DEVNULL)
    found = bench(args, folder, folder / "nets", "--readme", readme)
    yield from check_report(found, json.loads((folder / "bench.json").read_text()), found.stdout)
    yield "the plot is XML", xml.dom.minidom.parse(str(folder / "bench.svg")).documentElement.tagName == "svg"
    text = readme.read_text()
    yield "the README's table stands between its markers", text.startswith("before\n") and text.endswith("after\n") and "old" not in text and "| tiny_digits |" in text
    (folder / "broken.onnx").write_bytes(b"no model")
    found = bench(args, folder, folder / "broken.onnx", folder / "nets" / "tiny_digits.onnx", "--seconds", "0.5")
    yield "a broken model does not stop the next", found.returncode == 1 and "| broken | failed" in found.stdout and "| tiny_digits | 0" in found.stdout


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
