#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""The language of models in C: every call of language/model.h against a definition of it in numpy,
    in double precision.

usage: run.py BURNCC [NAME]...
A case is a description with many outputs, whose parameters are in a .safetensors that is written here; `burncc run`
gives its outputs. Values agree within 2e-5 of the largest, or as the output says; element types and shapes are equal.
Skips without numpy. Prints TAP.
"""
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
try:
    import numpy as np
except ImportError:
    print("1..0 # SKIP numpy is not installed")
    sys.exit(0)
import elements     # noqa: E402
import initial      # noqa: E402
import layers       # noqa: E402
import moves        # noqa: E402
import places       # noqa: E402
import sequences    # noqa: E402
import tables       # noqa: E402

NAMES = {"float32": "F32", "float64": "F64", "float16": "F16", "int64": "I64", "int32": "I32", "uint8": "U8",
    "int8": "I8", "bool": "BOOL"}
SAFE = {"float32": "F32", "float64": "F64"}
count = failures = 0


def result(ok, what, detail=""):
    global count, failures
    count += 1
    failures += not ok
    print(f"{'ok' if ok else 'not ok'} {count} - {what}", flush=True)
    for line in [] if ok else detail.splitlines()[-12:]:
        print(f"# {line}")


def write_safetensors(path, tensors):
    head, data = {}, b""
    for name, x in tensors.items():
        head[name] = {"dtype": SAFE[x.dtype.name], "shape": x.shape, "data_offsets": [len(data),
            len(data) + x.nbytes]}
        data += np.ascontiguousarray(x).tobytes()
    text = json.dumps(head).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def describe(case):
    """The case as C: its inputs with symbols where it names them, its lines, its outputs y0, y1, ..."""
    lines = ["#include <burncc/model.h>", "", f"MODEL({case.name})", "{"]
    for name, (x, symbols) in case.inputs.items():
        sizes = [f'symbol("{symbols[i]}")' if i in symbols else str(n) for i, n in enumerate(x.shape)]
        lines.append(f'    Tensor {name} = input("{name}", {", ".join([NAMES[x.dtype.name], *sizes])});')
    lines += [f"    {line}" for line in case.lines]
    lines += [f'    output("y{i}", {text});' for i, (text, _, _) in enumerate(case.outputs)]
    return "\n".join([*lines, "}", ""])


def compare(case, text, want, bound, path):
    what = f"{case.name}: {text}"
    if not path.exists():
        return result(False, what, "there is no such output")
    got = np.load(path)
    if callable(want):
        return result(want(got.astype(np.float64)), what, f"mean {got.mean()}, deviation {got.std()}, from {got.min()} "
                      f"to {got.max()}")
    want = np.asarray(want)
    expected = want.dtype if want.dtype != np.float64 else np.dtype(case.floats)
    if got.dtype != expected or got.shape != want.shape:
        return result(False, what, f"{got.dtype}{got.shape} instead of {expected}{want.shape}")
    if want.dtype.kind in "biu":
        return result(np.array_equal(got, want), what, f"got {got}\nwant {want}")
    got = got.astype(np.float64)
    finite = np.isfinite(want)
    same = np.array_equal(got[~finite], want[~finite], equal_nan=True)
    away = np.max(np.abs(got[finite] - want[finite]), initial=0) / max(np.max(np.abs(want[finite]), initial=0), 1e-3)
    return result(same and away <= bound, what, f"off by {away:.2e} of the largest\ngot {got}\nwant {want}")


def run_case(case, burncc, work):
    folder = work / case.name
    folder.mkdir()
    (folder / "model.c").write_text(describe(case), encoding="utf-8")
    command = [burncc, "run", "model.c", "--output", "out", "--quiet"]
    if case.parameters:
        write_safetensors(folder / "weights.safetensors", case.parameters)
        command += ["--weights", "weights.safetensors", "--strict"]
    sizes = {}
    for name, (x, symbols) in case.inputs.items():
        np.save(folder / f"{name}.npy", x)
        command += ["--input", f"{name}={name}.npy"]
        sizes.update({symbol: x.shape[axis] for axis, symbol in symbols.items()})
    for symbol, size in sizes.items():
        command += ["--dim", f"{symbol}=1..{2 * size}"]
    env = dict(os.environ, BURNCC_CFLAGS="-O1")
    run = subprocess.run(command, cwd=folder, env=env, text=True, capture_output=True)
    result(run.returncode == 0, f"{case.name} runs", run.stderr)
    if run.returncode == 0:
        for i, (text, want, bound) in enumerate(case.outputs):
            compare(case, text, want, bound, folder / "out" / f"y{i}.npy")


def main():
    burncc = str(pathlib.Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory() as work:
        for make in elements.ALL + moves.ALL + layers.ALL + sequences.ALL + places.ALL + tables.ALL + initial.ALL:
            case = make()
            if len(sys.argv) == 2 or case.name in sys.argv[2:]:
                run_case(case, burncc, pathlib.Path(work))
    print(f"1..{count}")
    return failures > 0


sys.exit(main())
