#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""ONNX's backend tests against burncc: each test's recorded inputs and outputs, with its own tolerance.

In: the archives of tests in ONNX's layout (test_x/model.onnx, test_data_set_0/{input,output}_0.pb), unpacked once
under build/. Out: a state per test, compared with status.txt (suite node) or status-models.txt (suite models), and a
table by operator family. `--check` is for CI: it fails on what got worse and on any crash or hang. `--bless` records
this run. `--symbolic` is a suite of its own: the same tests, compiled for sizes at run time (symbolic.py), with their
states in status-symbolic.txt."""
import pathlib
import re
import shutil
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import harness      # noqa: E402
import onnx_wire    # noqa: E402
from symbolic import symbolic   # noqa: E402


def families():
    family = {}
    for line in (HERE / "families.txt").read_text().splitlines():
        if not line.startswith("#"):
            name, *ops = line.split()
            family.update((op, name) for op in ops)
    return family


def family_of(model, name, known):
    """By the first operator; a test of a function's body counts to the function, whose name the test carries."""
    ops = [op.split(":")[-1] for op in onnx_wire.model_ops(model.read_bytes())]
    if "_expanded" in name:
        stem = re.sub(r"[^a-z0-9]", "", name.lower().removeprefix("test_").split("_expanded")[0])
        stem = re.sub("^sce", "softmaxcrossentropyloss", re.sub("^nllloss", "negativeloglikelihoodloss", stem))
        ops = sorted((op for op in known if stem.startswith(op.lower())), key=len)[-1:] or ops
    return known.get(ops[0], "other") if ops else "other"


def write_symbolic(args, name, model):
    path = pathlib.Path(args.cache) / "symbolic" / name / "model.onnx"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(model)
    return path


def collect(root, prefix, args, known, random):
    cases = []
    for model in sorted(root.glob("*/model.onnx")):
        name = prefix + model.parent.name
        command = [
            args.burncc, "verify",
            str(model), "--data",
            str(model.parent), "--target", args.target, "--ulp", "4", "--quiet"
        ]
        if args.symbolic:
            bytes_, bounds = symbolic(model.read_bytes())
            if name in random or not bounds:
                continue
            command[2] = str(write_symbolic(args, name, bytes_))
            command += [f"--dim={n}={lo}..{hi}" for n, (lo, hi) in bounds.items()]
        elif name in random:
            command = [sys.executable, str(HERE / "random_numbers.py"), args.burncc, str(model), args.target]
        cases.append(harness.Case(name, family_of(model, name, known), command))
    return cases


def lay_out_light(folder):
    """The light models: single files whose input is i / n for all n elements (one image of 224 x 224), put into the
    layout of the others."""
    count = 3 * 224 * 224
    for model in sorted(folder.glob("*.onnx")):
        data = folder / model.stem / "test_data_set_0"
        if (data / "output_0.pb").exists():
            continue
        data.mkdir(parents=True, exist_ok=True)
        shutil.copy(model, data.parent / "model.onnx")
        ramp = [i / count for i in range(count)]
        (data / "input_0.pb").write_bytes(onnx_wire.tensor("", onnx_wire.FLOAT, ramp, [1, 3, 224, 224]))
        shutil.copy(folder / f"{model.stem}_output_0.pb", data / "output_0.pb")


def main():
    p = harness.arguments(__doc__.splitlines()[0], cflags="-O0", timeout=120)
    p.add_argument("--archives", type=pathlib.Path, default=harness.shared("conformance"),
                   help="folder of the archives")
    p.add_argument("--suite", choices=("node", "models"), default="node",
                   help="one operator each, or small whole models")
    p.add_argument("--symbolic", action="store_true", help="sizes at run time")
    p.add_argument("--short", action="store_true", help="only the tests of short.txt")
    p.add_argument("--every", type=int, default=1, metavar="N", help="one in N of these")
    args = harness.parse(p)
    found = sorted(args.archives.glob(f"onnx-*-{args.suite}.tar.xz"))
    if not found:
        harness.skip_all(args, f"no onnx-*-{args.suite}.tar.xz in {args.archives}")
    root = harness.unpack(found[-1], args.cache)
    if args.suite == "models":
        lay_out_light(root / "light")
        args.cflags = args.cflags.replace("-O0", "")        # whole networks: what runs takes longer than what compiles
    known = families()
    random = {line for line in (HERE / "random.txt").read_text().splitlines() if not line.startswith("#")}
    cases = []
    for folder in sorted(d for d in root.iterdir() if d.is_dir()):
        cases += collect(folder, "" if folder.name == "node" else folder.name + "/", args, known, random)
    if args.short:
        wanted = set((HERE / "short.txt").read_text().split())
        cases = [c for c in cases if c.name in wanted]
    cases = cases[::args.every]
    status = HERE / ("status-symbolic.txt"
                     if args.symbolic else "status.txt" if args.suite == "node" else "status-models.txt")
    suite = f"{args.suite}{', sizes at run time' if args.symbolic else ''}"
    heading = f"ONNX backend tests, suite {suite}: name, state, reason. Written by run.py --bless."
    return harness.run(cases, args, status, heading)


if __name__ == "__main__":
    sys.exit(main())
