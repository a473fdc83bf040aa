#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""burncc inspect --dot: what is drawn of known models, and that Graphviz reads it.

usage: dot.py BURNCC
In: the repository's models, and one whose names are hostile. Out: TAP. `dot` reads each picture where it is installed;
what the boxes and arrows are is asked of the text, without it."""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from tap import Tap  # noqa: E402
import look.models as models  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DIGITS = str(ROOT / "models" / "digits" / "digits.onnx")
LENET = str(ROOT / "models" / "lenet.c")
BOX = re.compile(r'^ +(p\d+_n\d+) \[label="((?:[^"\\]|\\.)*)"(, shape=ellipse|, style=rounded|)\]$', re.M)
ARROW = re.compile(r'^ +(p\d+_n\d+) -> (p\d+_n\d+) \[label="((?:[^"\\]|\\.)*)"\]$', re.M)
tap = Tap()


def draw(burncc, *arguments):
    run = subprocess.run([burncc, "inspect", *arguments, "--dot", "-q"], capture_output=True, text=True)
    tap.check(f"inspect --dot {' '.join(a.rsplit('/', 1)[-1] for a in arguments)}", run.returncode == 0, run.stderr)
    return run.stdout


def read_by_graphviz(text, name):
    """The labels that Graphviz makes of it, None without Graphviz."""
    if not shutil.which("dot"):
        tap.skip(f"dot reads {name}", "Graphviz is not installed")
        return None
    run = subprocess.run(["dot", "-Tjson0"], input=text, capture_output=True, text=True)
    tap.check(f"dot reads {name}", run.returncode == 0 and not run.stderr, run.stderr)
    objects = json.loads(run.stdout).get("objects", []) if run.returncode == 0 else []
    boxes, arrows = dict((m[0], m) for m in BOX.findall(text)), ARROW.findall(text)
    tap.check(f"{name}: dot finds the same boxes", {o["name"] for o in objects if "nodes" not in o
              and not o["name"].startswith("cluster")} == set(boxes))
    tap.check(f"{name}: arrows join boxes", all(a in boxes and b in boxes for a, b, _ in arrows))
    return [o.get("label", "") for o in objects]


def stages(burncc):
    labels = {}
    for stage in "import", "passes", "kernels":
        text = draw(burncc, DIGITS, "--stage", stage)
        read_by_graphviz(text, stage)
        labels[stage] = [label for _, label, _ in BOX.findall(text)]
        shapes = [label for _, _, label in ARROW.findall(text)]
        tap.check(f"{stage}: shapes on arrows", all(re.fullmatch(r"f32\[[\d,]+\]", s) for s in shapes) and shapes,
                  shapes)
    tap.check("import has the file's operators", sum(b.startswith(("Conv", "BatchNorm\\nbn1", "Relu"))
                                                     for b in labels["import"]) >= 5, labels["import"])
    tap.check("the passes fold the norm away", not any("BatchNorm" in b for b in labels["passes"]), labels["passes"])
    kernels = [b for b in labels["kernels"] if re.match(r"\w+\\nk\d+_", b)]
    plan = subprocess.run([burncc, DIGITS, "--dump", "schedule", "-q"], capture_output=True, text=True).stdout
    tap.check("a box for each kernel of the plan",
              [b.split("\\n")[1] for b in kernels] == re.findall(r"^  \w+ (k\d+_\w+) \[", plan, re.M), kernels)
    tap.check("with the nodes behind it", "Conv conv1\\nAdd bn1\\nRelu relu1" in kernels[0], kernels[0])


def hostile(burncc, folder):
    path = folder / "hostile.onnx"
    path.write_bytes(models.hostile())
    for stage in "import", "passes", "kernels":
        text = draw(burncc, str(path), "--stage", stage)
        labels = read_by_graphviz(text, f"hostile names, {stage}")
        if labels is not None:
            tap.check(f"names arrive as they are, {stage}", any(models.SCRIPT in one for one in labels) and any(
                models.LETTERS in one.replace("\\n", "") for one in labels), labels)
        tap.check(f"bodies are frames, {stage}", len(re.findall(r"subgraph cluster_", text)) == 4)


def files(burncc, folder):
    out = folder / "lenet.dot"
    draw(burncc, LENET, "--train", "--stage", "kernels", "-o", str(out))
    text = out.read_text()
    read_by_graphviz(text, "training")
    tap.check("a frame for each program of training",
              all(f'label="lenet_{name}"' in text for name in ("predict", "gradients", "update", "train_step")),
              re.findall(r'^  label="([^"]*)"', text, re.M))
    run = subprocess.run([burncc, "inspect", LENET, "--dot", "-o", str(folder / "none" / "x.dot")], capture_output=True)
    tap.check("a file that cannot be written: status 4", run.returncode == 4)
    for words in ["--stage", "kernel", "--dot"], ["--stage", "kernels"]:
        run = subprocess.run([burncc, "inspect", LENET, *words], capture_output=True, text=True)
        tap.check(f"{' '.join(words)}: status 2", run.returncode == 2 and "--stage" in run.stderr, run.stderr)


def main():
    burncc = sys.argv[1]
    stages(burncc)
    with tempfile.TemporaryDirectory() as folder:
        hostile(burncc, pathlib.Path(folder))
        files(burncc, pathlib.Path(folder))
    return tap.end()


sys.exit(main())
