#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Models with sizes known at run time only: one compiled file must be right at each of them.

Out: for each model, target and C compiler two cases: `burncc verify` over all its sizes, and drive.py, which calls
the generated functions from C, in buffers of exactly the run-time sizes under the sanitizers, and with what they must
refuse. This takes Python's standard library alone; where --python names an interpreter with numpy, onnx and
onnxruntime, whole networks are compared with ONNX Runtime too."""
import json
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]
import cases        # noqa: E402
import harness      # noqa: E402
import onnx_wire    # noqa: E402
import weights      # noqa: E402, F401


def write(folder, case):
    """The model in ONNX's test layout, and for drive.py spec.json and each input's bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(case.bytes)
    spec = {
        "bounds": case.bounds, "found": case.found, "inputs": [[n, d] for n, _, d in case.inputs],
        "outputs": [n for n, _, _ in case.outputs], "sets": []
    }
    sets = [(f"test_data_set_{k}", 0, *s) for k, s in enumerate(case.sets())]
    if hasattr(case.compute, "beyond"):
        sets.append(("beyond", -5, *case.compute.beyond(), []))
    for name, code, sizes, ins, outs in sets:
        data = folder / name
        data.mkdir(exist_ok=True)
        for what, ends, tensors in (("input", case.inputs, ins), ("output", case.outputs, outs)):
            for i, ((end, dtype, _), t) in enumerate(zip(ends, tensors)):
                (data / f"{what}_{i}.pb").write_bytes(onnx_wire.tensor(end, dtype, t.flat, t.shape))
                (data / f"{what}_{i}.bin").write_bytes(onnx_wire.pack(dtype, t.flat))
        spec["sets"].append({
            "folder": name, "code": code, "sizes": sizes, "in": [t.shape for t in ins], "out": [t.shape for t in outs]
        })
    (folder / "spec.json").write_text(json.dumps(spec))


def verify(args, name, folder, bounds, tolerance, target, cc):
    dims = [f"--dim={n}={lo}..{hi}" for n, (lo, hi) in bounds.items()]
    command = [
        args.burncc, "verify",
        str(folder / "model.onnx"), *dims, "--target", target, "--rtol", tolerance[0], "--atol", tolerance[1],
        "--quiet"
    ]
    return harness.Case(f"{name}:{target}:{cc}", f"{target} {cc}", ["env", f"CC={cc}"] + command)


def networks(args, root):
    """(name, folder, bounds) of each, if there is an interpreter that can make them."""
    made = subprocess.run([args.python, str(HERE / "networks.py"), str(root)], capture_output=True, text=True)
    if made.returncode:
        print(f"# no networks: {made.stderr.strip().splitlines()[-1]}", file=sys.stderr)
    return [(f.parent.name, f.parent, json.loads(f.read_text())) for f in sorted(root.glob("*/bounds.json"))]


def main():
    p = harness.arguments(__doc__.splitlines()[0], cflags="-O1")
    p.add_argument("--targets", default="portable,generic", help="burncc targets, comma-separated")
    p.add_argument("--ccs", default="gcc,clang", help="C compilers, comma-separated; those missing are left out")
    p.add_argument("--python", default=sys.executable, help="an interpreter with numpy, onnx and onnxruntime")
    p.add_argument("--only-write", type=pathlib.Path, metavar="DIR", help="write the models there and stop")
    args = harness.parse(p)
    root = (args.only_write or pathlib.Path(args.cache) / "dynamic").resolve()
    for case in cases.ALL:
        write(root / case.name, case)
    if args.only_write:
        return 0
    runs, whole = [], networks(args, root.with_name("dynamic-networks"))
    for target in args.targets.split(","):
        for cc in [c for c in args.ccs.split(",") if shutil.which(c)] or [args.cc]:
            for case in cases.ALL:
                folder = root / case.name
                runs.append(
                    verify(args, case.name, folder, {**case.bounds, **case.found}, ("1e-5", "2e-6"), target, cc))
                drive = [
                    sys.executable,
                    str(HERE / "drive.py"),
                    str(pathlib.Path(args.burncc).resolve()),
                    str(folder), target, cc
                ]
                if not args.sanitize and target != "vulkan":    # drive.py always does, and links no GPU
                    runs.append(harness.Case(f"{case.name}:{target}:{cc}:drive", f"{target} {cc} drive", drive))
            runs += [verify(args, *network, ("1e-4", "1e-5"), target, cc) for network in whole]
    return harness.run(runs, args)


if __name__ == "__main__":
    sys.exit(main())
