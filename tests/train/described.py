#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""PyTorch's weights in models described in C: each file of weights of a recorded case, loaded into described/CASE.c.

usage: described.py BURNCC FOLDER [--target T] [--bound 1e-5]
FOLDER holds cases: weights*.pt and weights*.safetensors, and reference.safetensors with an input x0 and eval_output,
what PyTorch makes of it. Errors are relative to the largest value. Needs the standard library only. Prints TAP; skips
everything when FOLDER is absent."""
import argparse
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from run import error, floats, read_safetensors     # noqa: E402
from tap import Tap, skip_all                       # noqa: E402


def write_npy(path, dtype, shape, raw):
    descr = "<" + {"F32": "f4", "I64": "i8"}[dtype]
    head = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {tuple(shape)}, }}\n".encode()
    path.write_bytes(b"\x93NUMPY\1\0" + len(head).to_bytes(2, "little") + head + raw)


def read_npy(path):
    data = path.read_bytes()
    return floats(data[10 + int.from_bytes(data[8:10], "little"):])


def difference(args, case, weights):
    reference = read_safetensors(case / "reference.safetensors")
    with tempfile.TemporaryDirectory() as tmp:
        tmp = pathlib.Path(tmp)
        write_npy(tmp / "x.npy", *reference["x0"])
        subprocess.run([args.burncc, "run", HERE / "described" / f"{case.name}.c", "--weights", weights, "--strict",
                        "--quiet", "--target", args.target, "--input", f"input={tmp}/x.npy", "--output", tmp],
                       check=True, capture_output=True, text=True)
        return error(read_npy(tmp / "output.npy"), floats(reference["eval_output"][2]))


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("burncc"), p.add_argument("folder", type=pathlib.Path)
    p.add_argument("--target", default="generic")
    p.add_argument("--bound", type=float, default=1e-5)
    args = p.parse_args()
    files = [(case, weights) for case in sorted(HERE.glob("described/*.c"))
             for weights in sorted((args.folder / case.stem).glob("weights*"))]
    if not files:
        return skip_all(f"no recorded runs at {args.folder}")
    tap = Tap()
    for model, weights in files:
        try:
            differ = difference(args, weights.parent, weights)
            said, ok = f"{differ:.1e}", differ <= args.bound
        except subprocess.CalledProcessError as e:
            said, ok = e.stderr.strip().replace("\n", "; "), False
        tap.check(f"{model.stem} {weights.name}: {said}", ok)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
