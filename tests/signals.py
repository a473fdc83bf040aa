#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Fourier transforms in f32 beside those of f64: lengths of small factors, primes by a matrix and by a chirp, an axis
or a length that is chosen when run, how large the files are that hold their tables.

usage: signals.py BURNCC
The error of a fast transform, as a root mean square over that of the spectrum, grows with the root of the logarithm of
its length (J. Schatzman, SIAM J. Sci. Comput. 17, 1996): roundings of some stages that are added at random. It is held
to those of three transforms, which a chirp takes, of 4 n elements. Needs the standard library only. Prints TAP."""
import cmath
import math
import pathlib
import random
import struct
import subprocess
import sys

from npy import read_npy, write_npy
from onnx_wire import DOUBLE, FLOAT, INT64, graph, model, node, tensor, value_info
from tap import run_checks

EPSILON = 2.0**-24
NAMES, CODES = {FLOAT: "f32", DOUBLE: "f64"}, {FLOAT: "f", DOUBLE: "d"}
# nothing, what one stage, a matrix and several stages do; chirps of odd and even lengths
LENGTHS = (1, 3, 97, 360, 739, 1024, 1042, 2053)


def transform(x, sign):
    """In f64, one stage for each prime factor: a sum of n terms for each element of a prime length n."""
    n = len(x)
    r = next((p for p in range(2, math.isqrt(n) + 1) if n % p == 0), n)
    if n == 1:
        return x
    turn = [cmath.exp(sign * 2j * math.pi * k / n) for k in range(n)]
    if r == n:
        return [sum(v * turn[i * k % n] for i, v in enumerate(x)) for k in range(n)]
    parts = [transform(x[j::r], sign) for j in range(r)]
    m = n // r
    return [sum(parts[j][k % m] * turn[j * k % n] for j in range(r)) for k in range(n)]


def dft(n, kind, dtype, chosen=""):
    """A model of one transform of n numbers; chosen: "axis", an input; "length", the dimension n, or with "back" an
    input; "frames", one of STFT in a signal of n numbers. kind: real, half, complex, inverse, back."""
    half, parts = n // 2 + 1, 1 if kind in ("real", "half") else 2
    x = [1, half if kind == "back" else n, parts]
    y = [1, half if kind == "half" else n, 1 if kind == "back" else 2]
    attributes = {"inverse": int(kind in ("inverse", "back")), "onesided": int(kind in ("half", "back"))}
    attributes = {"inverse": int(kind in ("inverse", "back")), "onesided": int(kind in ("half", "back"))}
    size = "n" if chosen in ("length", "frames") else x[1]
    run = {"axis": ["axis"], "length": ["n"] if kind == "back" else []}.get(chosen, [])
    inputs = [value_info("x", dtype, [1, size, parts])] + [value_info(name, INT64, []) for name in run]
    known = [tensor("axis", INT64, 1), tensor("n", INT64, n)]
    length = "" if chosen == "axis" or (chosen == "length" and kind != "back") else "n"
    nodes = [node("DFT", ["x", length, "axis"], ["y"], **attributes)]
    if chosen == "frames":
        nodes = [node("STFT", ["x", "axis", "", "n"], ["f"], onesided=attributes["onesided"]),
                 node("Reshape", ["f", "shape"], ["y"])]
        known = known + [tensor("shape", INT64, y)]
    known = [t for name, t in zip(("axis", "n", "shape"), known) if name not in run]
    made = value_info("y", dtype, [1, None, y[2]] if chosen == "length" else y)
    return model(graph(nodes, inputs, [made], known), opset=20), x, run


def expected(flat, n, kind):
    """Pairs of the spectrum, or numbers."""
    z = [complex(v) for v in flat] if kind in ("real", "half") else [complex(*p) for p in zip(flat[::2], flat[1::2])]
    if kind == "back":                                  # imaginary parts at the ends are not looked at
        z = [complex(v.real, v.imag * (0 < k < n / 2)) for k, v in enumerate(z)]
        z += [z[n - k].conjugate() for k in range(n // 2 + 1, n)]
        return [v.real / n for v in transform(z, 1)]
    z = [v / n for v in transform(z, 1)] if kind == "inverse" else transform(z, -1)
    return [p for v in (z[:n // 2 + 1] if kind == "half" else z) for p in (v.real, v.imag)]


def error(burncc, folder, n, kind, dtype, options=(), chosen=""):
    """Root mean square of the error over that of the result."""
    text, shape, run = dft(n, kind, dtype, chosen)
    draw = random.Random(n)
    x = [draw.gauss(0, 1) for _ in range(math.prod(shape))]
    x = list(struct.unpack(f"{len(x)}{CODES[dtype]}", struct.pack(f"{len(x)}{CODES[dtype]}", *x)))
    (folder / "m.onnx").write_bytes(text)
    write_npy(folder / "x.npy", NAMES[dtype], shape, x)
    write_npy(folder / "axis.npy", "i64", [], [-2])
    write_npy(folder / "n.npy", "i64", [], [n])
    command = [burncc, "run", "-q", folder / "m.onnx", *options, "-o", folder, "--input", f"x={folder}/x.npy"]
    command += [word for name in run for word in ("--input", f"{name}={folder}/{name}.npy")]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    (_, y), want = read_npy(folder / "y.npy"), expected(x, n, kind)
    if len(y) != len(want):
        raise RuntimeError(f"{len(y)} numbers, not {len(want)}")
    return math.sqrt(sum((a - b)**2 for a, b in zip(y, want)) / max(sum(b * b for b in want), 1e-300))


def check_errors(burncc, n, dtype, kinds, options=(), chosen=""):
    def check(folder):
        # f64: what is beside it is a sum of n terms of that type
        bound = math.sqrt(3 * math.log2(4 * n)) * EPSILON if dtype == FLOAT else 1e-14
        seen = {k: error(burncc, pathlib.Path(folder), n, k, dtype, options, chosen) for k in kinds}
        return all(e <= bound for e in seen.values()), f"{seen}, at most {bound:.3g}"
    return check


def check_size(burncc, chosen, options=()):
    """Tables are linear in the length: 65,537 is a prime, whose matrix would take 34 GB."""
    def check(folder):
        sizes = []
        for n in (16411, 65537):
            (pathlib.Path(folder) / "m.onnx").write_bytes(dft(n, "complex", FLOAT, chosen)[0])
            command = [burncc, "-q", "m.onnx", "-o", "m.c", *(o.format(n) for o in options)]
            subprocess.run(command, cwd=folder, check=True)
            sizes.append(sum(p.stat().st_size for p in pathlib.Path(folder).glob("m.[cb]*")))
        return sizes[1] < 5 * sizes[0], f"{sizes} bytes"
    return check


def main():
    burncc, every = str(pathlib.Path(sys.argv[1]).resolve()), ("real", "half", "complex", "inverse", "back")
    checks = [(f"f32, {n}", check_errors(burncc, n, FLOAT, every)) for n in LENGTHS]
    checks += [(f"f64, {n}", check_errors(burncc, n, DOUBLE, every)) for n in (97, 746)]
    checks += [("f32, 1031, portable, threads", check_errors(burncc, 1031, FLOAT, ("half", "back"),
                                                            ("--target", "portable", "--threads", "3:0"))),
               ("f32, 1031, its axis chosen", check_errors(burncc, 1031, FLOAT, ("complex", "inverse"), chosen="axis"))]
    # lengths that are far below their bound, at it, and short enough for a matrix
    for n, most, kinds in ((1, 300, ("half", "back")), (97, 300, every), (300, 300, ("half", "back")),
                           (1031, 1500, ("real", "inverse", "back")), (5, 30, ("complex", "back"))):
        checks.append((f"f32, {n} of at most {most}",
                       check_errors(burncc, n, FLOAT, kinds, ("--dim", f"n=1..{most}"), "length")))
    checks += [("f64, 97 of at most 300",
                check_errors(burncc, 97, DOUBLE, ("complex", "back"), ("--dim", "n=1..300"), "length")),
               ("f32, 739, a frame of a signal of any length",
                check_errors(burncc, 739, FLOAT, ("real", "half", "complex"), ("--dim", "n=739..2000"), "frames")),
               ("tables are linear in the length", check_size(burncc, "axis")),
               ("tables are linear in the most that the length may be",
                check_size(burncc, "length", ("--dim", "n=1..{}")))]
    return run_checks(checks)


if __name__ == "__main__":
    sys.exit(main())
