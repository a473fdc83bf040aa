#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""The zoo, models/*.c, with parameters of a formula against outputs that PyTorch computed with the same parameters.

usage: recorded.py BURNCC [NAME]... [--target T]

recorded.json, written by `torch_refs.py --record`, has for each network the settings, what it is given (numbers, or a
shape that the formula fills) and of each output the shape, the largest element and some elements; these must be within
1e-4 of the largest. Needs the standard library only. Prints TAP."""
import argparse
import array
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import zlib

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from tap import Tap     # noqa: E402

MODELS = HERE.parent.parent / "models"
BOUND = 1e-4
SAMPLES = 12        # elements recorded of an output
PERIOD = 251        # prime, so that rows of a matrix differ


def noise():
    """Numbers from -1 to 1 (Park and Miller's generator)."""
    value, found = 1, []
    for _ in range(PERIOD):
        value = value * 48271 % 2147483647
        found.append(2 * value / 2147483647 - 1)
    return found


NOISE = noise()


def formula(name, shape, scale, middle=0.0):
    """Elements of a tensor, as bytes of f32: the noise from a place on that the name says."""
    at, count = zlib.crc32(name.encode()) % PERIOD, math.prod(shape)
    period = array.array("f", [middle + scale * v for v in NOISE[at:] + NOISE[:at]]).tobytes()
    return (period * (count // PERIOD + 1))[:4 * count]


def parameter(name, shape):
    """Such that nothing is without effect: norms of neither 1 nor 0, no bias of 0, embeddings so small that an epsilon
    shows."""
    if name.endswith("running_var"):
        return formula(name, shape, 0.5, 1.0)
    if len(shape) < 2:
        return formula(name, shape, 0.2, 1.0 if name.endswith("weight") else 0.0)
    table = any(word in name for word in ("embed", "shared", "wte", "wpe"))
    return formula(name, shape, 0.05 if table else 1.9 / math.sqrt(math.prod(shape[1:])))


def given_reals(name, shape):
    return formula(name, shape, 1.7)


# ---------------------------------------------------------------- files


def write_weights(path, shapes):
    header, parts, offset = {}, [], 0
    for name, shape in shapes.items():
        data = parameter(name, shape)
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [offset, offset + len(data)]}
        parts.append(data)
        offset += len(data)
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(parts))


def write_given(path, name, given):
    if isinstance(given, dict):
        descr, shape, data = "<f4", given["shape"], given_reals(name, given["shape"])
    else:
        descr, shape = "<i8", [len(given), len(given[0])]
        data = array.array("q", [v for row in given for v in row]).tobytes()
    head = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {tuple(shape)}, }}\n".encode()
    path.write_bytes(b"\x93NUMPY\1\0" + len(head).to_bytes(2, "little") + head + data)


def read_output(path):
    data = path.read_bytes()
    end = 10 + int.from_bytes(data[8:10], "little")
    shape = re.search(rb"'shape': \(([\d, ]*)\)", data[:end])[1]
    values = array.array("f")
    values.frombytes(data[end:])
    return [int(d) for d in re.findall(rb"\d+", shape)], values


def samples(values):
    return [values[i * (len(values) // SAMPLES)] for i in range(min(SAMPLES, len(values)))]


# ---------------------------------------------------------------- a network


def settings_of(case):
    return [word for setting in case["settings"].split() for word in ("--set", setting)]


def shapes_of(burncc, case):
    """The description's parameters."""
    text = subprocess.run([burncc, MODELS / f"{case['model']}.c", "--dump", "import", *settings_of(case)], check=True,
                          cwd=case["folder"], capture_output=True, text=True).stdout
    found = re.finditer(r"^  %\d+ (\S+) = const (?:trainable )?f32\[([\d,]*)\]", text, re.M)
    return {m[1].strip('"'): [int(d) for d in m[2].split(",") if d] for m in found}


def difference(burncc, case, target):
    """The largest difference of a recorded element, as a share of the largest element."""
    folder = case["folder"]
    write_weights(folder / "weights.safetensors", shapes_of(burncc, case))
    command = [burncc, "run", MODELS / f"{case['model']}.c", "--quiet", "--target", target, "--weights",
        folder / "weights.safetensors", "--strict", "--output", folder / "out", *settings_of(case)]
    for name, given in case["given"].items():
        write_given(folder / f"{name}.npy", name, given)
        command += ["--input", f"{name}={folder}/{name}.npy"]
    (folder / "out").mkdir()
    subprocess.run(command, check=True, capture_output=True, text=True)
    worst = 0.0
    for name, want in case["outputs"].items():
        shape, values = read_output(folder / "out" / f"{name}.npy")
        if shape != want["shape"]:
            return math.inf
        apart = [abs(a - b) for a, b in zip(samples(values), want["values"], strict=True)]
        worst = max(worst, math.inf if any(math.isnan(v) for v in apart) else max(apart) / want["largest"])
    return worst


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("burncc"), p.add_argument("names", nargs="*")
    p.add_argument("--target", default="generic")
    args = p.parse_args()
    os.environ.setdefault("BURNCC_CFLAGS", "-O1")
    cases = json.loads((HERE / "recorded.json").read_text())
    cases = {n: c for n, c in cases.items() if not args.names or n in args.names}
    tap = Tap()
    for name, case in cases.items():
        with tempfile.TemporaryDirectory(prefix="burncc-zoo-") as tmp:
            case["folder"] = pathlib.Path(tmp)
            try:
                differ = difference(str(pathlib.Path(args.burncc).resolve()), case, args.target)
                said, ok = f"{differ:.1e} of the largest", differ <= BOUND
            except subprocess.CalledProcessError as e:
                said, ok = e.stderr.strip().replace("\n", "; "), False
        tap.check(f"{name}: {said}", ok)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
