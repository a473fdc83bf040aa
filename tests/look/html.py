#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""burncc inspect --html: the page holds what the plan has, no name gets out of where it stands, and a browser draws it
without an error.

usage: html.py BURNCC
In: the repository's models, one whose names are hostile, one of 1,000 nodes. Out: TAP. Chromium, headless, opens each
page where it is installed, node runs its layout; what is in the pages is asked of their text, without either."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from onnx_wire import FLOAT, graph, model, node, value_info  # noqa: E402
from tap import Tap  # noqa: E402
import look.models as models  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DIGITS = str(ROOT / "models" / "digits" / "digits.onnx")
CHROMIUM = next((p for p in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if p), None)
DATA = re.compile(r'<script type="application/json" id="data">\n(.*?)</script>', re.S)
tap = Tap()


def page(burncc, path, model_path, *options):
    run = subprocess.run([burncc, "inspect", str(model_path), "--html", str(path), "-q", *options],
                         capture_output=True, text=True)
    tap.check(f"inspect --html {path.name} {' '.join(options)}", run.returncode == 0 and path.exists(), run.stderr)
    text = path.read_text(encoding="utf-8")
    return text, json.loads(DATA.search(text)[1])


def opened(path, place=""):
    """The document that a browser makes of the page; None without one."""
    if not CHROMIUM:
        tap.skip(f"a browser draws {path.name}{place}", "Chromium is not installed")
        return None
    with tempfile.TemporaryDirectory() as profile:
        command = [CHROMIUM, "--headless=new", "--disable-gpu", f"--user-data-dir={profile}", "--no-first-run",
                   "--enable-logging=stderr", "--window-size=1400,900", "--virtual-time-budget=5000", "--dump-dom"]
        command += ["--no-sandbox"] if os.geteuid() == 0 else []
        run = subprocess.run([*command, f"file://{path}{place}"], capture_output=True, text=True, timeout=100)
    said = [line for line in run.stderr.splitlines() if "CONSOLE" in line]
    ready = 'data-ready="yes"' in run.stdout and "data-error" not in run.stdout
    tap.check(f"a browser draws {path.name}{place} without an error", ready and not said,
              said or run.stdout[:200] + run.stderr[-500:])
    return run.stdout


def laid_out(path):
    """Where the page's own script puts boxes, asked of it in node."""
    if not shutil.which("node"):
        tap.skip(f"the layout of {path.name}", "node is not installed")
        return
    command = ["node", str(ROOT / "tests" / "look" / "layout.mjs"), str(ROOT / "templates" / "look" / "layout.js")]
    run = subprocess.run([*command, str(path)], capture_output=True, text=True)
    drawn = json.loads(run.stdout) if run.returncode == 0 else []
    tap.check(f"the layout of {path.name}: no box over another, arrows lead down",
              drawn and all(p["overlaps"] == p["up"] == 0 and p["ms"] < 5000 for p in drawn), run.stderr or drawn)


def counted(document, what):
    found = re.search(rf'data-{what}="(\d+)"', document)
    return int(found[1]) if found else -1


def digits(burncc, folder):
    path = folder / "digits.html"
    text, data = page(burncc, path, DIGITS)
    laid_out(path)
    program = data["programs"][0]
    plan = subprocess.run([burncc, DIGITS, "--dump", "schedule", "-q"], capture_output=True, text=True).stdout
    names = re.findall(r"^  \w+ (k\d+_\w+) \[", plan, re.M)
    tap.check("the plan's kernels", [k["name"] for k in program["kernels"]] == names)
    head = re.search(r"workspace (\d+) bytes, live (\d+), weights (\d+)", plan)
    tap.check("and its memory", [program[k] for k in ("workspace", "live", "weight_bytes")] == [int(n) for n in
                                                                                           head.groups()])
    tap.check("buffers end within the workspace", max(b["offset"] + b["bytes"] for b in program["buffers"]) <=
              program["workspace"])
    tap.check("each kernel has its C", all(k["code"] >= 0 and "static void digits_k" in data["code"][k["code"]]["text"]
                                           for k in program["kernels"]))
    tap.check("three stages", [p["stage"] for p in data["pictures"]] == ["import", "passes", "kernels"])
    outside = set(re.findall(r"(?:https?:)?//[\w.]+\.\w+[^\s\"']*", text)) - {"http://www.w3.org/2000/svg"}
    tap.check("nothing of a network", not outside and "src=" not in text, outside)
    again = folder / "again.html"
    page(burncc, again, DIGITS)
    tap.check("the same bytes again", again.read_bytes() == path.read_bytes())
    for stage, picture in enumerate(data["pictures"]):
        document = opened(path, f"#graph/{stage}")
        if document:
            tap.check(f"boxes and arrows of {picture['stage']}", counted(document, "boxes") == len(picture["boxes"]) and
                      counted(document, "arrows") == len(picture["arrows"]))
    document = opened(path, "#graph/2/k0_conv1")
    if document:
        details = re.search(r'<aside id="details".*?</aside>', document, re.S)[0]
        tap.check("a kernel that is chosen shows its nodes and its C",
                  "<div>Add bn1</div>" in details and "digits_k0_conv1_epilogue(" in details, details[:300])


def times(burncc, folder):
    path = folder / "times.html"
    _, data = page(burncc, path, DIGITS, "--profile", "--seconds", "0.05")
    tap.check("--profile: each kernel has its time", all(k["ms"] >= 0 for k in data["programs"][0]["kernels"]) and
              data["limits"]["gflops"] > 0 and data["median_ms"] > 0)
    document = opened(path, "#roofline")
    if document:
        section = re.search(r'<section id="roofline".*?</section>', document, re.S)[0]
        tap.check("the machine's limits, and circles under them", 'class="roof"' in section and "<circle" in section)


def hostile(burncc, folder):
    source, path = folder / "hostile.onnx", folder / "hostile.html"
    source.write_bytes(models.hostile())
    text, data = page(burncc, path, source)
    laid_out(path)
    tap.check("no name ends an element", text.count("</script") == 2 and text.count("<script") == 2 and
              "<" not in DATA.search(text)[1])
    names = {box["name"] for picture in data["pictures"] for box in picture["boxes"]}
    tap.check("names arrive as they are", {models.SCRIPT, models.LETTERS} <= names, names)
    document = opened(path, "#graph/0")
    if document:
        tap.check("nor does one run", "<title>owned" not in document and "hostile.onnx" in
                  re.search(r"<title>(.*?)</title>", document)[1])


def large(burncc, folder):
    source, path = folder / "large.onnx", folder / "large.html"
    nodes = []
    for i in range(500):
        nodes.append(node("MatMul", [f"x{i}", f"x{i}"], [f"y{i}"]))
        nodes.append(node("Add", [f"y{i}", f"x{max(0, i - 3)}"], [f"x{i + 1}"]))
    ends = [value_info("x0", FLOAT, [4, 4])], [value_info("x500", FLOAT, [4, 4])]
    source.write_bytes(model(graph(nodes, *ends)))
    page(burncc, path, source)
    laid_out(path)
    document = opened(path, "#graph/0/add_x250")
    if document:
        tap.check("1,000 nodes", counted(document, "boxes") == 1002, counted(document, "boxes"))
        tap.check("and one of them is found", "1 found" in document)


def programs(burncc, folder):
    path = folder / "lenet.html"
    _, data = page(burncc, path, ROOT / "models" / "lenet.c", "--train")
    tap.check("programs of training", len(data["programs"]) == 5 and len(data["pictures"]) == 11)
    opened(path)


def mistakes(burncc, folder):
    bad = folder / "none" / "x.html"
    run = subprocess.run([burncc, "inspect", DIGITS, "--html", str(bad)], capture_output=True, text=True)
    tap.check("a page that cannot be written: status 4", run.returncode == 4, run.stderr)
    kept = folder / "kept.html"
    kept.write_text("mine")
    run = subprocess.run([burncc, "inspect", str(folder / "absent.onnx"), "--html", str(kept)], capture_output=True)
    tap.check("no model: the old file stays", run.returncode != 0 and kept.read_text() == "mine")
    tap.check("and nothing beside it", not [p for p in folder.iterdir() if p.name.startswith("kept.html.")])
    for words in ["--html", "x.html", "--dot"], ["--profile"]:
        run = subprocess.run([burncc, "inspect", DIGITS, *words], capture_output=True, text=True)
        tap.check(f"{' '.join(words)}: status 2", run.returncode == 2, run.stderr)


def main():
    burncc = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        for part in digits, times, hostile, large, programs, mistakes:
            part(burncc, pathlib.Path(folder))
    return tap.end()


sys.exit(main())
